//! How long ago something was, in a few characters, and when those will be others.
//!
//! There are no seconds: a board that counts them is never idle.

use crate::Moment;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The words for the time since then, and the moment at which they change.
pub(crate) fn label(since: i64, now: Moment) -> (String, Moment) {
    let passed = now.seconds().saturating_sub(since).max(0);
    let (text, unit) = if passed < MINUTE {
        ("<1m".to_owned(), MINUTE)
    } else if passed < HOUR {
        (format!("{}m", passed / MINUTE), MINUTE)
    } else if passed < 2 * DAY {
        (format!("{}h", passed / HOUR), HOUR)
    } else {
        (format!("{}d", passed / DAY), DAY)
    };
    let next = since.saturating_add((passed / unit + 1).saturating_mul(unit));
    // One that lies in the future counts from now.
    let next = next.max(now.seconds().saturating_add(1));
    (text, Moment::from_seconds(next))
}

/// A length of time, where nothing will change.
pub(crate) fn span(seconds: i64) -> String {
    label(0, Moment::from_seconds(seconds)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_says_when_it_will_be_another() {
        for (passed, text, next) in [
            (-5, "<1m", 60),
            (0, "<1m", 60),
            (59, "<1m", 60),
            (60, "1m", 120),
            (3599, "59m", 3600),
            (3600, "1h", 7200),
            (2 * DAY - 1, "47h", 2 * DAY),
            (2 * DAY, "2d", 3 * DAY),
        ] {
            let since = 1_000_000;
            let (found, changes) = label(since, Moment::from_seconds(since + passed));
            assert_eq!(found, text, "{passed}");
            assert_eq!(changes, Moment::from_seconds(since + next), "{passed}");
        }
        for since in [i64::MIN, i64::MAX] {
            label(since, Moment::from_seconds(0));
        }
    }
}
