//! `gt`: runs AI coding agents as named tmux sessions.
//!
//! Only this crate prints, exits and reads the environment. A command is one file under
//! `commands/`; it turns arguments into calls to the engine (`gt-town`) and answers into text or
//! JSON.

mod args;
mod board;
mod commands;
mod context;
mod demo;
mod error;
#[cfg(test)]
mod named_commands;
mod output;
mod raw_mode;

use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
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
    context.leave_sign(&args::words(&matches));
    match commands::run(cli.command, &context) {
        Ok(code) => code,
        Err(problem) => error::report(&problem, cli.global.json),
    }
}
