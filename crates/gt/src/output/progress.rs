//! A progress bar for long work. Draws nothing without a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct ProgressLine(Option<ProgressBar>);

impl ProgressLine {
    /// Creates a bar with this number of steps.
    pub(crate) fn bar(what: &str, steps: usize) -> Self {
        Self::new(steps, "{msg} {bar:30} {pos}/{len}", what)
    }

    /// Creates a spinner for work of unknown length.
    pub(crate) fn spinner(what: &str) -> Self {
        Self::new(0, "{spinner} {msg}", what)
    }

    fn new(steps: usize, template: &str, what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return ProgressLine(None);
        }
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        ProgressLine(Some(bar))
    }

    pub(crate) fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
