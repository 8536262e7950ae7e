//! Parses time expressions: `90m`, `24h`, `7d`, `2w`, `today`, `yesterday`, a date, or a full
//! timestamp.

use crate::Result;
use crate::base::clock::{self, Clock};
use gt_core::Problem;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// Formats a time in seconds since the epoch for a record.
pub fn timestamp(seconds: i64) -> String {
    clock::format(Timestamp::from_second(seconds).unwrap_or_default())
}

/// Parses a time expression, relative to `now`.
pub fn parse(text: &str, now: &Zoned) -> Result<Timestamp> {
    // Days at the limits of the calendar have no midnight: they are refused like any other text.
    let midnight = |date: Date| {
        let at = date.to_zoned(now.time_zone().clone()).ok()?;
        Some(at.timestamp())
    };
    let found = match text.trim() {
        "now" => Some(now.timestamp()),
        "today" => midnight(now.date()),
        "yesterday" => {
            let date = now.date().checked_sub(Span::new().days(1)).ok();
            date.and_then(midnight)
        }
        text => ago(text, now)
            .or_else(|| text.parse::<Timestamp>().ok())
            .or_else(|| midnight(text.parse().ok()?)),
    };
    found.ok_or_else(|| {
        Problem::usage(format!("{text:?} is not a valid time"))
            .hint("90m, 24h, 7d, today, yesterday, 2026-01-17 or 2026-01-17T01:00:00Z")
    })
}

/// Parses a duration such as `90m`, `24h`, `7d` or `2w`. Returns seconds.
pub fn seconds(text: &str) -> Result<u64> {
    let units = [
        ('s', 1),
        ('m', 60),
        ('h', 3_600),
        ('d', 86_400),
        ('w', 604_800),
    ];
    let text = text.trim();
    let found = units.iter().find_map(|(unit, length)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*length)
    });
    found.ok_or_else(|| {
        Problem::usage(format!("{text:?} is not a valid duration")).hint("30s, 90m, 24h, 7d or 2w")
    })
}

/// Parses a time in the future, relative to `now`: a duration such as `90m`, the next time that the
/// clock shows `18:30`, a date, or a full timestamp.
pub fn parse_ahead(text: &str, now: &Zoned) -> Result<Timestamp> {
    let text = text.trim();
    let after = || {
        // The text may have another form.
        let length = i64::try_from(seconds(text).ok()?).ok()?;
        // The result may be beyond the calendar.
        let span = Span::new().try_seconds(length).ok()?;
        now.timestamp().checked_add(span).ok()
    };
    let clock = || {
        let (hour, minute) = text.split_once(':')?;
        let is_clock = hour.len() <= 2 && minute.len() == 2;
        let time = jiff::civil::time(0, 0, 0, 0).with();
        let time = time.hour(hour.parse().ok().filter(|_| is_clock)?);
        let time = time.minute(minute.parse().ok()?).build().ok()?;
        let today = now.date().to_datetime(time);
        let next = |at: jiff::civil::DateTime| at.to_zoned(now.time_zone().clone()).ok();
        let found = next(today).filter(|at| at > now);
        let tomorrow = || next(today.checked_add(Span::new().days(1)).ok()?);
        Some(found.or_else(tomorrow)?.timestamp())
    };
    let date = || {
        let date: Date = text.parse().ok()?;
        Some(date.to_zoned(now.time_zone().clone()).ok()?.timestamp())
    };
    let found = after()
        .or_else(clock)
        .or_else(|| text.parse::<Timestamp>().ok())
        .or_else(date);
    let found = found.ok_or_else(|| {
        Problem::usage(format!("{text:?} is not a valid time"))
            .hint("90m, 18:30, 2026-01-17 or 2026-01-17T01:00:00Z")
    })?;
    match found > now.timestamp() {
        true => Ok(found),
        false => Err(Problem::usage(format!("{text} is in the past"))),
    }
}

/// Parses a time in the future, in this machine's time zone. Returns seconds since the epoch.
pub fn parse_future(text: &str) -> Result<i64> {
    let now = Clock::default().now().to_zoned(TimeZone::system());
    Ok(parse_ahead(text, &now)?.as_second())
}

/// Parses `24h` and the like as a time in the past.
fn ago(text: &str, now: &Zoned) -> Option<Timestamp> {
    let unit = text.chars().next_back()?;
    let number: i64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    let span = match unit {
        's' => Span::new().try_seconds(number),
        'm' => Span::new().try_minutes(number),
        'h' => Span::new().try_hours(number),
        'd' => Span::new().try_days(number),
        'w' => Span::new().try_weeks(number),
        _ => return None,
    };
    let at = now.checked_sub(span.ok().filter(|_| number >= 0)?).ok()?;
    Some(at.timestamp())
}

/// Parses a time expression relative to the current time, in this machine's time zone.
pub fn parse_time(text: &str) -> Result<Timestamp> {
    parse(text, &Clock::default().now().to_zoned(TimeZone::system()))
}

/// Parses a time expression and formats it for a record.
pub fn recorded(text: &str) -> Result<String> {
    Ok(format!("{:.3}", parse_time(text)?))
}

/// Returns the local day of a time in RFC 3339.
pub fn local_day(at: &str) -> Option<String> {
    let at: Timestamp = at.parse().ok()?;
    let zoned = at.to_zoned(TimeZone::system());
    Some(zoned.date().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (text, expected) in [("30s", 30), ("90m", 5_400), ("7d", 604_800), ("0s", 0)] {
            assert_eq!(seconds(text).ok(), Some(expected), "{text}");
        }
        for text in ["", "h", "-3h", "3y", "3", "9999999999999999999w"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_as_people_say_them() {
        let now: Timestamp = "2026-01-17T12:00:00Z".parse().unwrap();
        let now = now.to_zoned(TimeZone::UTC);
        let check = |text: &str, expected: &str| {
            let at = parse(text, &now).map(|at| at.to_string());
            assert_eq!(at.ok().as_deref(), Some(expected), "{text}");
        };
        check("90m", "2026-01-17T10:30:00Z");
        check("24h", "2026-01-16T12:00:00Z");
        check("7d", "2026-01-10T12:00:00Z");
        check("2w", "2026-01-03T12:00:00Z");
        check("today", "2026-01-17T00:00:00Z");
        check("yesterday", "2026-01-16T00:00:00Z");
        check("2026-01-02", "2026-01-02T00:00:00Z");
        check("2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05Z");
        for text in ["", "h", "-3h", "3y", "soon", "9999999999999999999h", "ü"] {
            assert!(parse(text, &now).is_err(), "{text}");
        }
    }

    #[test]
    fn times_ahead() {
        let now: Timestamp = "2026-01-17T12:00:00Z".parse().unwrap();
        let now = now.to_zoned(TimeZone::UTC);
        let check = |text: &str, expected: Option<&str>| {
            let at = parse_ahead(text, &now).map(|at| at.to_string());
            assert_eq!(at.ok().as_deref(), expected, "{text}");
        };
        check("90m", Some("2026-01-17T13:30:00Z"));
        check("18:30", Some("2026-01-17T18:30:00Z"));
        check("7:05", Some("2026-01-18T07:05:00Z"));
        check("12:00", Some("2026-01-18T12:00:00Z"));
        check("2026-01-18", Some("2026-01-18T00:00:00Z"));
        check("2026-01-17T14:00:00+01:00", Some("2026-01-17T13:00:00Z"));
        for text in [
            "",
            "soon",
            "24:00",
            "7:5",
            "0s",
            "2026-01-17",
            "2026-01-17T11:00:00Z",
        ] {
            check(text, None);
        }
    }
}
