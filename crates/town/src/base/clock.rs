//! The clock, and the source of new ids. Tests replace both.

use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// The system's clock, or one that only moves when a test advances it.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<StoppedClock>>);

#[derive(Debug)]
struct StoppedClock {
    milliseconds: AtomicI64,
    ids: AtomicU64,
}

impl Clock {
    /// Returns a clock that stands at this time and gives out the same ids in every run.
    pub fn stopped_at(time: Timestamp) -> Self {
        Clock(Some(Arc::new(StoppedClock {
            milliseconds: AtomicI64::new(time.as_millisecond()),
            ids: AtomicU64::new(0),
        })))
    }

    /// Moves a stopped clock forward. Does nothing to the system's clock.
    pub fn advance(&self, by: Duration) {
        if let Some(stopped) = &self.0 {
            let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            stopped.milliseconds.fetch_add(by, Ordering::Relaxed);
        }
    }

    pub fn now(&self) -> Timestamp {
        let stopped = self.0.as_ref().map(|stopped| {
            Timestamp::UNIX_EPOCH
                + SignedDuration::from_millis(stopped.milliseconds.load(Ordering::Relaxed))
        });
        stopped.unwrap_or_else(Timestamp::now)
    }

    /// Returns the time in seconds since the epoch.
    pub fn seconds(&self) -> i64 {
        self.now().as_second()
    }

    /// Returns the time in milliseconds since the epoch.
    pub fn milliseconds(&self) -> i64 {
        self.now().as_millisecond()
    }

    /// Returns the time as records contain it.
    pub fn text(&self) -> String {
        format(self.now())
    }

    pub fn system_time(&self) -> SystemTime {
        self.now().into()
    }

    /// Returns a new id. Ids sort by the time at which they were made.
    pub fn new_id(&self) -> Uuid {
        let Some(stopped) = &self.0 else {
            return Uuid::now_v7();
        };
        let number = stopped.ids.fetch_add(1, Ordering::Relaxed);
        let now = self.now();
        let (seconds, nanos) = (now.as_second(), now.subsec_nanosecond());
        let milliseconds = u64::try_from(seconds).unwrap_or_default() * 1000
            + u64::from(nanos.unsigned_abs() / 1_000_000);
        let mut random = [0; 10];
        random[2..].copy_from_slice(&number.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid()
    }

    /// Returns random bytes for a short id, at most 16. A stopped clock returns the digits of a
    /// counter, to the base 32.
    pub(crate) fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let Some(stopped) = &self.0 else {
            let random = Uuid::new_v4().into_bytes();
            return std::array::from_fn(|at| random[at]);
        };
        let mut rest = stopped.ids.fetch_add(1, Ordering::Relaxed);
        std::array::from_fn(|_| {
            let digit = u8::try_from(rest % 32).unwrap_or_default();
            rest /= 32;
            digit
        })
    }
}

/// Formats a time for a record.
pub fn format(at: Timestamp) -> String {
    // Always milliseconds, so that texts sort chronologically.
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_clock_gives_the_same_times_and_ids_in_every_run() {
        let clocks = [0, 1].map(|_| Clock::stopped_at("2026-01-02T03:04:05Z".parse().unwrap()));
        for clock in &clocks {
            assert_eq!(clock.text(), "2026-01-02T03:04:05.000Z");
            clock.advance(Duration::from_millis(1500));
            assert_eq!(clock.text(), "2026-01-02T03:04:06.500Z");
        }
        let ids = clocks.map(|clock| [clock.new_id(), clock.new_id()]);
        assert_eq!(ids[0], ids[1]);
        assert!(ids[0][0] < ids[0][1]);
        let clock = Clock::stopped_at("2026-01-02T03:04:05Z".parse().unwrap());
        let bytes = [0; 33].map(|_| clock.random_bytes::<5>());
        assert_eq!(bytes[31..], [[31, 0, 0, 0, 0], [0, 1, 0, 0, 0]]);
    }
}
