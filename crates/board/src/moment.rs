//! A point in time from the caller's clock. The board does not read a clock.

/// Milliseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(i64);

impl Moment {
    pub const fn from_millis(millis: i64) -> Self {
        Moment(millis)
    }

    pub const fn from_seconds(seconds: i64) -> Self {
        Moment(seconds.saturating_mul(1000))
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Moment(self.0.saturating_add(millis))
    }

    /// Rounds up to a multiple of `seconds`.
    #[must_use]
    pub(crate) const fn rounded_up(self, seconds: i64) -> Self {
        let unit = seconds * 1000;
        let over = self.0.rem_euclid(unit);
        match over {
            0 => self,
            _ => Moment(self.0.saturating_add(unit - over)),
        }
    }
}
