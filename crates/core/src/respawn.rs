//! When an agent that keeps dying is started again, and when it is given up.

/// After this long without a death an agent counts as well again.
pub const WELL_AFTER_SECONDS: u64 = 600;
/// The first wait leaves somebody who is awake the time to act first.
const FIRST_WAIT_SECONDS: u64 = 3;
const LONGEST_WAIT_SECONDS: u64 = 300;
/// More deaths than this, each within [`WELL_AFTER_SECONDS`] of the last, and it is given up.
const MOST_DEATHS: usize = 8;

/// What to do after a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Start it again this long after the death.
    After { seconds: u64 },
    /// Leave it dead, and its last screen to be read.
    GiveUp { deaths: usize },
}

/// The deaths that still count: an agent that lived long enough starts afresh.
pub fn recent_deaths(deaths: &[u64], now: u64) -> Vec<u64> {
    let mut recent: Vec<u64> = Vec::new();
    for death in deaths.iter().copied().chain([now]) {
        if recent
            .last()
            .is_some_and(|last| death.saturating_sub(*last) > WELL_AFTER_SECONDS)
        {
            recent.clear();
        }
        recent.push(death);
    }
    recent
}

/// Decides from the recent deaths, the one just now included.
pub fn decide(recent: &[u64]) -> Decision {
    let deaths = recent.len();
    if deaths > MOST_DEATHS {
        return Decision::GiveUp { deaths };
    }
    let doublings = u32::try_from(deaths.saturating_sub(1))
        .unwrap_or(u32::MAX)
        .min(16);
    Decision::After {
        seconds: (FIRST_WAIT_SECONDS << doublings).min(LONGEST_WAIT_SECONDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end() {
        let waits: Vec<Decision> = (1..=9).map(|n| decide(&vec![0; n])).collect();
        let seconds = |seconds| Decision::After { seconds };
        assert_eq!(
            waits,
            [
                seconds(3),
                seconds(6),
                seconds(12),
                seconds(24),
                seconds(48),
                seconds(96),
                seconds(192),
                seconds(300),
                Decision::GiveUp { deaths: 9 },
            ]
        );
    }

    #[test]
    fn a_long_life_forgives() {
        assert_eq!(recent_deaths(&[], 5), [5]);
        assert_eq!(recent_deaths(&[0, 100], 200), [0, 100, 200]);
        assert_eq!(recent_deaths(&[0, 100], 800), [800]);
        assert_eq!(recent_deaths(&[0, 700], 900), [700, 900]);
    }
}
