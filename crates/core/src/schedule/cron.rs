//! Cron expressions: five fields, or a name such as `@daily`, in local time.
//!
//! The crate `cronexpr` parses the fields and finds the next match on a calendar without time zone.
//! It is small and maintained, and depends only on `jiff`, which the engine uses anyway. The
//! alternatives bring more: `croner` needs two crates of derive macros, `jiff-cron` wants a field
//! for seconds. Its own treatment of time zones is not used, because it skips runs in the hour that
//! does not exist when clocks go forward, and repeats those in the hour that exists twice. Nor are
//! its extensions `L`, `W` and `#`: some of them never match in December.
//!
//! Clock changes are treated as by Vixie's cron. An expression whose minutes or hours begin with `*`
//! means intervals, and matches the local time at every moment. Any other names times of day: each
//! occurs once a day. A skipped time occurs later by the length of the change: 02:30 at 03:30.

use crate::problem::Problem;
use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// Names for common expressions.
const NAMES: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Maximum length of the hour that exists twice or not at all; in all known time zones it is
/// shorter.
const LONGEST_SHIFT: SignedDuration = SignedDuration::from_hours(3);

/// A cron expression.
#[derive(Clone, Debug)]
pub struct CronExpression {
    text: String,
    /// On a calendar without time zone, which is represented as UTC.
    calendar: Crontab,
    /// Whether it means intervals instead of times of day.
    is_interval: bool,
}

impl CronExpression {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.split_whitespace().collect::<Vec<&str>>().join(" ");
        let refuse = |why: &str| {
            Problem::usage(format!("{text:?} is not a cron expression: {why}"))
                .hint("minute hour day month weekday, such as \"0 3 * * mon-fri\", or @daily")
        };
        let named = NAMES.iter().find(|(name, _)| *name == text.to_lowercase());
        let fields = match named {
            Some((_, fields)) => fields,
            None if text.starts_with('@') => {
                let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                return Err(refuse(&format!("the names are {}", names.join(", "))));
            }
            None => text.as_str(),
        };
        let parts: Vec<&str> = fields.split(' ').collect();
        let &[minutes, hours, days, _, weekdays] = parts.as_slice() else {
            return Err(refuse("it does not have 5 fields"));
        };
        let is_extended = |field: &str| {
            let last = field.chars().next_back();
            field.contains('#') || last.is_some_and(|last| matches!(last, 'L' | 'l' | 'W' | 'w'))
        };
        let extended = days.split(',').chain(weekdays.split(',')).any(is_extended);
        if extended || fields.contains('?') {
            return Err(refuse("L, W, # and ? are not supported"));
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let calendar = cronexpr::parse_crontab_with(fields, options)
            .map_err(|error| refuse("a field is wrong").cause(error.to_string()))?;
        let expression = CronExpression {
            is_interval: minutes.starts_with('*') || hours.starts_with('*'),
            calendar,
            text: text.clone(),
        };
        match expression.next_on_calendar(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(expression),
            None => Err(refuse("it names a day that does not exist")),
        }
    }

    /// Returns the first time after this one, in this time zone.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self.is_interval {
            true => self.next_interval(after, zone),
            false => self.next_time_of_day(after, zone),
        }
    }

    /// Finds the next moment whose local time matches. Each iteration covers the time until the
    /// next change of the offset.
    fn next_interval(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let (mut period, mut from) = (after, after);
        loop {
            let shift = SignedDuration::from_secs(i64::from(zone.to_offset(period).seconds()));
            let local = self.next_on_calendar(from.checked_add(shift).ok()?)?;
            let found = local.checked_sub(shift).ok()?;
            let change = zone.following(period).next().map(|it| it.timestamp());
            let Some(change) = change.filter(|change| *change <= found) else {
                return Some(found);
            };
            period = change;
            // The moment of the change itself may match.
            from = change.checked_sub(SignedDuration::from_secs(1)).ok()?;
        }
    }

    /// Returns the first moment of the next local time that matches; `None` at the end of the calendar.
    fn next_time_of_day(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let shift = SignedDuration::from_secs(i64::from(zone.to_offset(after).seconds()));
        // A time that was skipped occurs later than its place on the calendar.
        let mut local = after
            .checked_add(shift)
            .ok()?
            .checked_sub(LONGEST_SHIFT)
            .ok()?;
        loop {
            local = self.next_on_calendar(local)?;
            let civil = local.to_zoned(TimeZone::UTC).datetime();
            let found = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
            if found > after {
                return Some(found);
            }
        }
    }

    fn next_on_calendar(&self, after: Timestamp) -> Option<Timestamp> {
        // Fails if no time matches within four years, or at the end of the calendar.
        let next = self.calendar.find_next(MakeTimestamp(after)).ok()?;
        Some(next.timestamp())
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the next times after a moment, as local times with their offset.
    fn next(text: &str, after: &str, zone: &TimeZone, count: usize) -> Vec<String> {
        let cron = CronExpression::parse(text).unwrap();
        let mut at: Timestamp = after.parse().unwrap();
        let mut found = Vec::new();
        for _ in 0..count {
            at = cron.next_after(at, zone).unwrap();
            found.push(
                at.to_zoned(zone.clone())
                    .strftime("%m-%d %H:%M %:z")
                    .to_string(),
            );
        }
        found
    }

    /// Berlin, without the system's database.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn fields_are_ranges_steps_lists_and_names() {
        let check = |text: &str, expected: &[&str]| {
            let found = next(text, "2026-01-16T10:07:30Z", &TimeZone::UTC, expected.len());
            let found: Vec<&str> = found
                .iter()
                .map(|it| it.trim_end_matches(" +00:00"))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("*/15 * * * *", &["01-16 10:15", "01-16 10:30"]);
        check("0 3 * * *", &["01-17 03:00", "01-18 03:00"]);
        check("5,35 8-10/2 * * *", &["01-16 10:35", "01-17 08:05"]);
        check("0 9 * * mon-fri", &["01-19 09:00", "01-20 09:00"]);
        check("0 9 * * 7", &["01-18 09:00"]);
        check("0 0 1 JAN,Jul *", &["07-01 00:00"]);
        // A day of the month or of the week, as in every cron.
        check("0 12 20 * sat", &["01-17 12:00", "01-20 12:00"]);
        check("0 0 29 2 *", &["02-29 00:00"]);
        check("@daily", &["01-17 00:00"]);
        check(" @Hourly ", &["01-16 11:00"]);
        check("@weekly", &["01-18 00:00"]);
        check("@monthly", &["02-01 00:00"]);
        check("@yearly", &["01-01 00:00"]);
    }

    #[test]
    fn wrong_expressions_are_refused() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "* * * * * UTC",
            "60 * * * *",
            "* 24 * * *",
            "0 0 0 * *",
            "0 0 30 2 *",
            "5-1 * * * *",
            "*/0 * * * *",
            "H * * * *",
            "0 0 L * *",
            "0 0 15W * *",
            "0 0 * * 5#3",
            "0 0 * * 5L",
            "0 0 ? * *",
            "0 0 * * xyz",
            "@reboot",
            "@fortnightly",
        ] {
            let problem = CronExpression::parse(text).expect_err(text);
            assert_eq!(problem.kind(), crate::ProblemKind::Usage, "{text}");
            assert!(!problem.hints().is_empty(), "{text}");
        }
    }

    #[test]
    fn skipped_time_of_day_occurs_once_after_the_change() {
        // The clocks go from 02:00 to 03:00 on 29 March 2026.
        let from = "2026-03-27T12:00:00Z";
        assert_eq!(
            next("30 2 * * *", from, &berlin(), 3),
            [
                "03-28 02:30 +01:00",
                "03-29 03:30 +02:00",
                "03-30 02:30 +02:00"
            ]
        );
        // Also if it is asked for after the change.
        assert_eq!(
            next("30 2 * * *", "2026-03-29T01:10:00Z", &berlin(), 1),
            ["03-29 03:30 +02:00"]
        );
        assert_eq!(
            next("*/30 * * * *", "2026-03-29T00:20:00Z", &berlin(), 3),
            [
                "03-29 01:30 +01:00",
                "03-29 03:00 +02:00",
                "03-29 03:30 +02:00"
            ]
        );
    }

    #[test]
    fn repeated_time_of_day_occurs_once_and_intervals_go_on() {
        // The clocks go from 03:00 back to 02:00 on 25 October 2026.
        let from = "2026-10-24T12:00:00Z";
        assert_eq!(
            next("30 2 * * *", from, &berlin(), 2),
            ["10-25 02:30 +02:00", "10-26 02:30 +01:00"]
        );
        // Between the two occurrences of 02:30.
        assert_eq!(
            next("30 2 * * *", "2026-10-25T01:10:00Z", &berlin(), 1),
            ["10-26 02:30 +01:00"]
        );
        assert_eq!(
            next("0,30 * * * *", "2026-10-25T00:20:00Z", &berlin(), 4),
            [
                "10-25 02:30 +02:00",
                "10-25 02:00 +01:00",
                "10-25 02:30 +01:00",
                "10-25 03:00 +01:00"
            ]
        );
    }

    #[test]
    fn every_time_is_later_than_the_one_before() {
        for text in [
            "* * * * *",
            "*/7 */5 * * *",
            "0 1,2,3 * * *",
            "59 23 31 12 *",
        ] {
            let cron = CronExpression::parse(text).unwrap();
            let mut at: Timestamp = "2026-03-28T20:00:00Z".parse().unwrap();
            for _ in 0..300 {
                let next = cron.next_after(at, &berlin()).unwrap();
                assert!(next > at, "{text}: {next} after {at}");
                at = next;
            }
        }
    }
}
