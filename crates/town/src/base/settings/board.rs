//! `[board]`: settings of the board.

use serde::Deserialize;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoardSettings {
    /// Minutes between two fetches of the rigs' remotes while a board is open; 0 means never.
    pub fetch_minutes: u64,
}

impl Default for BoardSettings {
    fn default() -> Self {
        BoardSettings { fetch_minutes: 5 }
    }
}

impl BoardSettings {
    /// Returns the interval of the fetches; `None` if there are none.
    pub fn fetch_interval(&self) -> Option<Duration> {
        let seconds = self.fetch_minutes.checked_mul(60)?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }
}
