//! Logs the error of a `Result` and continues without the value.

use gt_core::Problem;
use std::fmt;
use std::io;

/// Converts a `Result` to an `Option` and logs the error.
///
/// For callers that continue without the value. Callers that can handle an error return it instead.
pub trait OrLog<T> {
    /// Returns the value, or logs `what` with the error as a warning.
    fn or_warn(self, what: impl fmt::Display) -> Option<T>;

    /// Returns the value, or logs `what` with the error at debug level, which `--verbose` shows.
    fn or_debug(self, what: impl fmt::Display) -> Option<T>;
}

impl<T, E: LogText> OrLog<T> for Result<T, E> {
    fn or_warn(self, what: impl fmt::Display) -> Option<T> {
        // The log has the failure.
        self.inspect_err(|error| tracing::warn!("{what}: {}", error.text()))
            .ok()
    }

    fn or_debug(self, what: impl fmt::Display) -> Option<T> {
        // The log has the failure.
        self.inspect_err(|error| tracing::debug!("{what}: {}", error.text()))
            .ok()
    }
}

/// An error that can be written as the text of one log entry.
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
