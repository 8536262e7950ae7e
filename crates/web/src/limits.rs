//! RequestLimits: the rate of requests of a caller, and failed logins.
//!
//! Valid credentials are accepted during a lockout: secrets are too long to guess, and otherwise any
//! local process could lock the person out.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Requests that a caller may send at once, and per second from then on.
const BURST: f64 = 200.0;
const PER_SECOND: f64 = 50.0;
/// Failed logins within [`WINDOW`] after which further ones are not checked in detail.
const MAX_FAILURES: usize = 20;
const WINDOW: Duration = Duration::from_secs(60);
/// Callers that are remembered.
const MAX_CALLERS: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct RequestLimits {
    buckets: Mutex<HashMap<String, RequestBudget>>,
    failures: Mutex<Vec<Instant>>,
}

/// The requests that a caller may still send.
#[derive(Clone, Copy, Debug)]
struct RequestBudget {
    left: f64,
    at: Instant,
}

impl RequestLimits {
    /// Returns whether a caller may send another request now.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> bool {
        let mut buckets = lock(&self.buckets);
        if buckets.len() >= MAX_CALLERS {
            buckets.retain(|_, budget| budget.refilled(now) < BURST);
        }
        let budget = buckets.entry(caller.to_owned()).or_insert(RequestBudget {
            left: BURST,
            at: now,
        });
        let left = budget.refilled(now);
        *budget = RequestBudget {
            left: (left - 1.0).max(0.0),
            at: now,
        };
        left >= 1.0
    }

    /// Notes a failed login. Returns whether there were too many.
    pub(crate) fn fail(&self, now: Instant) -> bool {
        let mut failures = lock(&self.failures);
        failures.retain(|at| now.duration_since(*at) < WINDOW);
        let is_locked = failures.len() >= MAX_FAILURES;
        if !is_locked {
            failures.push(now);
        }
        is_locked
    }
}

impl RequestBudget {
    fn refilled(&self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + passed * PER_SECOND).min(BURST)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_limited_for_each_caller() {
        let (limits, now) = (RequestLimits::default(), Instant::now());
        let allowed = (0..300).filter(|_| limits.take("a", now)).count();
        assert_eq!(allowed, 200);
        assert!(limits.take("b", now));
        let later = now + Duration::from_secs(1);
        let allowed = (0..300).filter(|_| limits.take("a", later)).count();
        assert_eq!(allowed, 50);
    }

    #[test]
    fn failures_are_forgotten_after_a_minute() {
        let (limits, now) = (RequestLimits::default(), Instant::now());
        assert!((0..20).all(|_| !limits.fail(now)));
        assert!(limits.fail(now));
        assert!(!limits.fail(now + WINDOW));
    }
}
