//! `gt`: runs AI coding agents as named tmux sessions.
//!
//! Only this crate prints, exits and reads the environment. A command is one file under
//! `commands/`; it turns arguments into calls to the engine (`gt-town`) and answers into text or
//! JSON.

mod args;
mod audit;
mod board;
mod commands;
mod context;
mod demo;
mod error;
mod logging;
#[cfg(test)]
mod named_commands;
mod output;
mod raw_mode;
mod sandboxed;
mod served;

use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = sandboxed::forward() {
        return code;
    }
    args::complete::answer();
    if let Some(text) = args::group_help() {
        return match output::styled(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => error::report(&problem, false),
        };
    }
    let parsed =
        args::matches().and_then(|found| Ok((args::Cli::from_arg_matches(&found)?, found)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return error::usage(&error),
    };
    let context = match context::Context::new(&cli.global) {
        Ok(context) => context,
        Err(problem) => return error::report(&problem, cli.global.json),
    };
    let words = args::words(&matches);
    if let Err(problem) = sandboxed::check(&matches, &words) {
        return error::report(&problem, cli.global.json);
    }
    let context = context.for_command(&words);
    logging::install(&context, &words);
    context.note_unreadable_variables();
    context.write_keepalive(&words);
    let result = commands::run_or_begin(cli.command, &context);
    audit::record(&context, &matches, &words, &result);
    match result {
        Ok(code) => code,
        Err(problem) => {
            error::record(&problem, &context);
            // The output of such a call is discarded.
            if context.is_unattended(&words) {
                tracing::error!("{}", problem.line());
            }
            error::report(&problem, cli.global.json)
        }
    }
}
