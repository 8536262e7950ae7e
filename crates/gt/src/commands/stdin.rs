//! Reads text from standard input.

use crate::output::captured;
use gt_core::Problem;
use gt_core::mail::LONGEST_BODY;
use std::io::Read;

/// Reads a message. Stops above the maximum length of a mail, because the writer may never end.
pub(crate) fn message() -> Result<String, Problem> {
    check_present()?;
    let most = u64::try_from(LONGEST_BODY).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    std::io::stdin()
        .take(most.saturating_add(1))
        .read_to_end(&mut text)
        .map_err(|error| Problem::usage("cannot read the message").caused_by(error))?;
    if text.len() > LONGEST_BODY {
        return Err(
            Problem::usage(format!("the message is longer than {LONGEST_BODY} bytes"))
                .hint("put it into a file and give its path"),
        );
    }
    String::from_utf8(text).map_err(|_| Problem::usage("the message is not UTF-8"))
}

/// Fails if the command runs for the HTTP API: it has no standard input then.
pub(crate) fn check_present() -> Result<(), Problem> {
    match captured::is_active() {
        true => Err(Problem::usage("there is no standard input here").hint("pass the text itself")),
        false => Ok(()),
    }
}
