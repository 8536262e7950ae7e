//! Converts a program's text about the end of a usage limit to a timestamp.

use crate::base::clock::Clock;
use gt_core::limit::{Date, Reset};
use gt_core::state::StateReport;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// Returns the end of the limit that an agent has reached, in seconds since the epoch.
pub fn resets_at(report: &StateReport) -> Option<i64> {
    let reset = report.limit.as_ref()?.reset.as_ref()?;
    let now = Clock::default().now();
    let since = report
        .since
        .and_then(|since| Timestamp::from_second(since).ok());
    resolve(reset, since.unwrap_or(now), now, &TimeZone::system()).map(Timestamp::as_second)
}

/// Returns the time at which the limit has certainly ended, in seconds since the epoch. Programs that
/// name a time of day omit its seconds.
pub fn ended_by(report: &StateReport) -> Option<i64> {
    let reset = report.limit.as_ref()?.reset.as_ref()?;
    let omitted = match reset {
        Reset::At { .. } => 59,
        Reset::In(_) | Reset::Left(_) => 0,
    };
    Some(resets_at(report)? + omitted)
}

/// Returns the time that a text, printed at `said_at`, refers to. `here` is the default time zone.
fn resolve(
    reset: &Reset,
    said_at: Timestamp,
    now: Timestamp,
    here: &TimeZone,
) -> Option<Timestamp> {
    let (date, hour, minute, zone) = match reset {
        Reset::In(seconds) => return said_at.checked_add(Span::new().seconds(*seconds)).ok(),
        Reset::Left(seconds) => return now.checked_add(Span::new().seconds(*seconds)).ok(),
        Reset::At {
            date,
            hour,
            minute,
            zone,
        } => (date, *hour, *minute, zone),
    };
    let zone = match zone.as_deref() {
        // Works without a time zone database.
        Some("UTC" | "GMT") => TimeZone::UTC,
        // An unknown zone or an impossible date leaves the end of the limit unknown.
        Some(name) => TimeZone::get(name).ok()?,
        None => here.clone(),
    };
    let said = said_at.to_zoned(zone.clone());
    let at = |day: DateTime| -> Option<Zoned> {
        // The hour and minute are from a text of the program.
        let time = day.with().hour(hour).minute(minute).build().ok()?;
        time.to_zoned(zone.clone()).ok()
    };
    let today = said
        .datetime()
        .date()
        .to_datetime(jiff::civil::Time::midnight());
    // Programs omit the seconds: a limit may end in the minute in which it is reported.
    let is_past = |time: &Zoned| time.timestamp() < said_at - Span::new().minutes(1);
    let found = match date {
        None => {
            let first = at(today)?;
            match is_past(&first) {
                true => at(today.checked_add(Span::new().days(1)).ok()?)?,
                false => first,
            }
        }
        Some(Date { year, month, day }) => {
            let in_year = |year: i16| {
                // 29 February exists in some years only.
                let date = jiff::civil::Date::new(year, *month, *day).ok()?;
                at(date.to_datetime(jiff::civil::Time::midnight()))
            };
            let first = in_year(year.unwrap_or(said.year()))?;
            match year.is_none() && is_past(&first) {
                true => in_year(said.year() + 1)?,
                false => first,
            }
        }
    };
    Some(found.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_times_are_the_next_ones_after_the_message() {
        let check = |text: &str, said_at: &str, expected: Option<&str>| {
            let reset = Reset::parse(text).unwrap();
            let said_at: Timestamp = said_at.parse().unwrap();
            let now: Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
            let here = TimeZone::fixed(jiff::tz::offset(1));
            let found = resolve(&reset, said_at, now, &here);
            assert_eq!(
                found.map(|at| at.to_string()).as_deref(),
                expected,
                "{text}"
            );
        };
        let said = "2026-11-17T04:22:10Z";
        check("resets 6:22am (UTC)", said, Some("2026-11-17T06:22:00Z"));
        check("resets 4:22am (UTC)", said, Some("2026-11-17T04:22:00Z"));
        check("resets 4:20am (UTC)", said, Some("2026-11-18T04:20:00Z"));
        check("try again at 6:31 AM.", said, Some("2026-11-17T05:31:00Z"));
        check(
            "resets Nov 20, 4:38am (UTC)",
            said,
            Some("2026-11-20T04:38:00Z"),
        );
        check(
            "resets Jan 2, 1pm (UTC)",
            said,
            Some("2027-01-02T13:00:00Z"),
        );
        check(
            "try again at Nov 20th, 2026 4:31 AM.",
            said,
            Some("2026-11-20T03:31:00Z"),
        );
        check("reset in 2 hours", said, Some("2026-11-17T06:22:10Z"));
        check("resets 6am (No/Where)", said, None);
        check("resets Feb 30, 6am", said, None);
    }
}
