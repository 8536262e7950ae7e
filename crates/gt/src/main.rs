//! `gt`: runs AI coding agents as named tmux sessions.
//!
//! This crate is the only one that prints, exits and reads the environment. A
//! command is one file under `commands/`; it turns arguments into calls to the
//! engine (`gt-town`) and answers into text or JSON.

mod args;
mod commands;
mod context;
mod demo;
mod error;
mod output;
mod raw_mode;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return error::usage(&error),
    };
    let context = match context::Context::new(&cli.global) {
        Ok(context) => context,
        Err(problem) => return error::report(&problem, cli.global.json),
    };
    match commands::run(cli.command, &context) {
        Ok(code) => code,
        Err(problem) => error::report(&problem, cli.global.json),
    }
}
