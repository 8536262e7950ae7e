//! Reports failures to the terminal and to scripts.

use crate::output;
use clap::error::ErrorKind;
use gt_core::{Problem, ProblemKind};
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

/// Prints a problem on stderr and returns its exit code.
pub(crate) fn report(problem: &Problem, json: bool) -> ExitCode {
    // If stderr is closed, the problem cannot be reported.
    let _ = if json {
        writeln!(std::io::stderr(), "{}", as_json(problem))
    } else {
        write!(std::io::stderr(), "{}", as_text(problem))
    };
    ExitCode::from(problem.kind().exit_code())
}

pub(crate) fn as_json(problem: &Problem) -> serde_json::Value {
    json!({"error": {
        "kind": problem.kind().as_str(),
        "message": problem.message(),
        "causes": problem.causes(),
        "hints": problem.hints(),
    }})
}

fn as_text(problem: &Problem) -> String {
    let paint = output::Paint::for_stderr();
    let mut text = format!("{} {}\n", paint.red("error:"), problem.message());
    for cause in problem.causes() {
        let indented = cause.replace('\n', "\n           ");
        text.push_str(&format!("{} {indented}\n", paint.dim("caused by:")));
    }
    for hint in problem.hints() {
        text.push_str(&format!("{} {hint}\n", paint.cyan("hint:")));
    }
    text
}

/// Prints a usage error or a help text, and returns the exit code.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let asked_for_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if !asked_for_help && std::env::args_os().any(|word| word == "--json") {
        let text = error.render().to_string();
        let mut parts = text.splitn(2, "\n\n");
        let message = parts
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        let mut problem = Problem::new(ProblemKind::Usage, message.trim());
        if let Some(rest) = parts.next() {
            problem = problem.hint(rest.trim());
        }
        return report(&problem, true);
    }
    // Without a terminal or a reader, the text cannot be printed.
    let _ = error.print();
    ExitCode::from(if asked_for_help {
        0
    } else {
        ProblemKind::Usage.exit_code()
    })
}
