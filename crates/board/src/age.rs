//! Ages as short labels, with the moment at which the label changes.
//!
//! Labels show no seconds: a board that updates every second is never idle.

use crate::Moment;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Returns the label for the time since `since`, and the moment at which it changes.
pub(crate) fn label(since: i64, now: Moment) -> (String, Moment) {
    let passed = now.seconds().saturating_sub(since).max(0);
    let (text, unit) = words(passed);
    let next = since.saturating_add((passed / unit + 1).saturating_mul(unit));
    // A time in the future counts from now.
    let next = next.max(now.seconds().saturating_add(1));
    (text, Moment::from_seconds(next))
}

/// Returns the label for the time left until `until`, and the moment at which it changes; `None`
/// once `until` has passed.
pub(crate) fn time_left(until: i64, now: Moment) -> Option<(String, Moment)> {
    let left = until.saturating_sub(now.seconds());
    if left <= 0 {
        return None;
    }
    let (text, unit) = words(left);
    let shorter = until.saturating_sub((left / unit).saturating_mul(unit));
    Some((text, Moment::from_seconds(shorter.saturating_add(1))))
}

/// Formats a duration in its largest unit. Returns the text and the unit in seconds.
fn words(seconds: i64) -> (String, i64) {
    match seconds {
        ..MINUTE => ("<1m".to_owned(), MINUTE),
        MINUTE..HOUR => (format!("{}m", seconds / MINUTE), MINUTE),
        _ if seconds < 2 * DAY => (format!("{}h", seconds / HOUR), HOUR),
        _ => (format!("{}d", seconds / DAY), DAY),
    }
}

/// Formats a duration that does not change.
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
            time_left(since, Moment::from_seconds(0));
        }
    }

    #[test]
    fn a_countdown_says_when_it_will_be_another_and_ends() {
        let until = 1_000_000;
        for (remains, text, changes_with) in [
            (2 * DAY, "2d", 2 * DAY - 1),
            (2 * DAY - 1, "47h", 47 * HOUR - 1),
            (90, "1m", 59),
            (1, "<1m", -1),
        ] {
            let (found, changes) = time_left(until, Moment::from_seconds(until - remains)).unwrap();
            assert_eq!(found, text, "{remains}");
            assert_eq!(
                changes,
                Moment::from_seconds(until - changes_with),
                "{remains}"
            );
        }
        assert_eq!(time_left(until, Moment::from_seconds(until)), None);
    }
}
