//! Captured output: the daemon runs commands for the HTTP API, and their documents go to the client.
//!
//! The output belongs to the thread that runs the command. Such a command has no standard input.

use std::cell::RefCell;

thread_local! {
    static OUTPUT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a command on this thread. Returns its result and its output.
pub(crate) fn capture<T>(run: impl FnOnce() -> T) -> (T, String) {
    OUTPUT.set(Some(String::new()));
    let result = run();
    (result, OUTPUT.take().unwrap_or_default())
}

/// Returns whether the output of this thread is captured.
pub(crate) fn is_active() -> bool {
    OUTPUT.with_borrow(Option::is_some)
}

/// Adds to the output if it is captured. Returns whether it is.
pub(super) fn add(text: &str) -> bool {
    OUTPUT.with_borrow_mut(|output| match output {
        Some(output) => {
            output.push_str(text);
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output;

    #[test]
    fn output_of_one_command_is_captured() {
        let (result, text) = capture(|| output::line("one").is_ok() && is_active());
        assert_eq!((result, &*text), (true, "one\n"));
        assert!(!is_active());
        assert_eq!(capture(|| ()).1, "");
    }
}
