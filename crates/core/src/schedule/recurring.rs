//! Recurring work: which entries are due, and when the next one is.
//!
//! Pure: entries, time and time zone come in. `town::supervision::recurring` queues the items.

use super::cron::CronExpression;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The fields of a recurring entry that [`decide`] needs.
#[derive(Clone, Debug)]
pub struct RecurringEntry {
    pub name: String,
    pub cron: CronExpression,
    /// Its last decision: a run, a skipped run, or its creation.
    pub seen_at: Timestamp,
}

/// A run that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRun {
    pub name: String,
    /// The planned time. It is the first one if several were missed: they are one run.
    pub planned: Timestamp,
}

/// Result of [`decide`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecurringPlan {
    /// In the order of their planned times.
    pub due: Vec<DueRun>,
    /// The next planned time of the entries that are not due.
    pub next: Option<Timestamp>,
}

/// Returns the next planned time of an entry, which may be in the past. A clock that was set back
/// does not delay it.
pub fn next_run(entry: &RecurringEntry, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    entry.cron.next_after(entry.seen_at.min(now), zone)
}

/// Decides which entries run now. Runs that were missed, because the machine was off, are one run.
pub fn decide(entries: &[RecurringEntry], now: Timestamp, zone: &TimeZone) -> RecurringPlan {
    let mut plan = RecurringPlan::default();
    for entry in entries {
        let Some(planned) = next_run(entry, now, zone) else {
            continue;
        };
        match planned <= now {
            true => plan.due.push(DueRun {
                name: entry.name.clone(),
                planned,
            }),
            false => plan.next = Some(plan.next.map_or(planned, |next| next.min(planned))),
        }
    }
    plan.due
        .sort_by(|a, b| (a.planned, &a.name).cmp(&(b.planned, &b.name)));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn entry(name: &str, cron: &str, seen_at: &str) -> RecurringEntry {
        RecurringEntry {
            name: name.to_owned(),
            cron: CronExpression::parse(cron).unwrap(),
            seen_at: at(seen_at),
        }
    }

    fn names(plan: &RecurringPlan) -> Vec<&str> {
        plan.due.iter().map(|run| run.name.as_str()).collect()
    }

    #[test]
    fn missed_runs_are_one_run() {
        let mut nightly = entry("nightly", "0 3 * * *", "2026-01-10T12:00:00Z");
        let mut hourly = entry("hourly", "@hourly", "2026-01-10T12:00:00Z");
        let decide_at =
            |entries: &[RecurringEntry], now: &str| decide(entries, at(now), &TimeZone::UTC);
        let both = [nightly.clone(), hourly.clone()];
        let before = decide_at(&both, "2026-01-10T12:59:59Z");
        assert_eq!(
            (before.due.len(), before.next),
            (0, Some(at("2026-01-10T13:00:00Z")))
        );
        let exactly = decide_at(&both, "2026-01-10T13:00:00Z");
        assert_eq!(names(&exactly), ["hourly"]);
        // The machine was off for a week.
        let late = decide_at(&both, "2026-01-17T08:30:00Z");
        assert_eq!(names(&late), ["hourly", "nightly"]);
        nightly.seen_at = at("2026-01-17T08:30:00Z");
        hourly.seen_at = nightly.seen_at;
        let after = decide_at(&[nightly, hourly], "2026-01-17T08:30:01Z");
        assert_eq!(
            (after.due.len(), after.next),
            (0, Some(at("2026-01-17T09:00:00Z")))
        );
    }

    #[test]
    fn clock_that_was_set_back_delays_nothing() {
        let nightly = entry("nightly", "0 3 * * *", "2030-01-01T00:00:00Z");
        let now = at("2026-01-10T12:00:00Z");
        let plan = decide(&[nightly], now, &TimeZone::UTC);
        assert_eq!(plan.next, Some(at("2026-01-11T03:00:00Z")));
    }

    #[test]
    fn simulated_months_run_once_for_each_planned_time() {
        // A process looks every 29 minutes, is off for 50 hours now and then, and records each run.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let mut nightly = entry("nightly", "30 2 * * *", "2026-03-01T00:00:00Z");
        let (mut now, end) = (nightly.seen_at, at("2026-05-30T00:00:00Z"));
        let (mut planned, mut runs, mut steps) = (0, 0, 0_u32);
        while now < end {
            steps += 1;
            let pause = match steps % 1_000 {
                0 => SignedDuration::from_hours(50),
                _ => SignedDuration::from_mins(29),
            };
            let mut since = now;
            now += pause;
            let missed = std::iter::from_fn(|| {
                since = nightly.cron.next_after(since, &zone)?;
                Some(since)
            });
            let missed = missed.take_while(|time| *time <= now).count();
            planned += missed;
            let plan = decide(std::slice::from_ref(&nightly), now, &zone);
            assert_eq!(plan.due.len(), missed.min(1), "{now}");
            if missed > 0 {
                runs += 1;
                nightly.seen_at = now;
            }
        }
        assert_eq!(
            planned, 90,
            "each night has one, also with a change of the clocks"
        );
        assert!(runs < planned, "missed runs are combined");
    }
}
