//! Logs the failure of a result and goes on without its value.

use gt_core::Problem;
use std::fmt;
use std::io;

/// A failure that is logged instead of returned.
///
/// For callers that go on without the value. Callers that can act on a failure return it.
pub trait OrLog<T> {
    /// Returns the value, or logs `what` with the failure as a warning.
    fn or_warn(self, what: impl fmt::Display) -> Option<T>;

    /// Returns the value, or logs `what` with the failure for `--verbose`.
    fn or_debug(self, what: impl fmt::Display) -> Option<T>;
}

impl<T, E: LogText> OrLog<T> for Result<T, E> {
    fn or_warn(self, what: impl fmt::Display) -> Option<T> {
        self.inspect_err(|error| tracing::warn!("{what}: {}", error.text()))
            .ok()
    }

    fn or_debug(self, what: impl fmt::Display) -> Option<T> {
        self.inspect_err(|error| tracing::debug!("{what}: {}", error.text()))
            .ok()
    }
}

/// An error as text of one log entry.
pub trait LogText {
    fn text(&self) -> String;
}

impl LogText for Problem {
    fn text(&self) -> String {
        self.line()
    }
}

macro_rules! log_text_by_display {
    ($($error:ty),*) => {
        $(impl LogText for $error {
            fn text(&self) -> String {
                self.to_string()
            }
        })*
    };
}

log_text_by_display!(
    io::Error,
    serde_json::Error,
    gt_tmux::Error,
    rustix::io::Errno,
    rusqlite::Error
);
