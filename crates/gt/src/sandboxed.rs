//! Calls of `gt` from inside a sandbox.
//!
//! Inside, [`forward`] hands the whole call to the agent's broker, which runs `gt` outside. There,
//! [`check`] refuses the commands and options that would let the agent reach beyond its sandbox:
//! commands that run programs, and options that name files, because `gt` outside could read files
//! that the agent cannot.

use crate::args;
use crate::error;
use clap::ArgMatches;
use clap::builder::ValueParser;
use clap::parser::ValueSource;
use gt_core::Problem;
use gt_core::sandbox::{BROKER_VARIABLE, SANDBOXED_VARIABLE};
use gt_town::base::callback::Call;
use gt_town::terminal::broker;
use std::path::Path;
use std::process::ExitCode;

/// Commands that run inside the sandbox themselves.
const INSIDE: &[&str] = &["demo-agent", "completions", "man"];

/// Commands that an agent inside a sandbox may call. Their capabilities are checked as well.
const ALLOWED: &[&str] = &[
    "agents",
    "answer",
    "broadcast",
    "budget",
    "checkpoint",
    "costs",
    "deacon",
    "dnd",
    "doctor",
    "dog",
    "done",
    "escalate",
    "events",
    "formula",
    "handoff",
    "harness",
    "hook",
    "interrupt",
    "keys",
    "mail",
    "mayor",
    "mol",
    "mq",
    "nudge",
    "patrol",
    "peek",
    "polecat",
    "prime",
    "refinery",
    "restart",
    "rig",
    "role",
    "schedule",
    "sessions",
    "signal",
    "sling",
    "start",
    "status",
    "step",
    "stop",
    "unhook",
    "wait",
    "witness",
    "work",
];

/// Options that are not paths and would widen a sandbox.
const REFUSED_OPTIONS: &[&str] = &["account", "command", "config_dir", "env", "sandbox"];

/// Hands this call to the broker of the sandbox in which it runs. `None` outside of a sandbox.
pub(crate) fn forward() -> Option<ExitCode> {
    let socket = std::env::var_os(BROKER_VARIABLE)?;
    let mut args = std::env::args_os().skip(1).peekable();
    let first = args.peek().and_then(|word| word.to_str());
    if first.is_some_and(|word| INSIDE.contains(&word)) {
        return None;
    }
    let words = || std::env::args_os().skip(1).take(2);
    if [Call::EgressBridge, Call::ContainerInit]
        .iter()
        .any(|call| words().eq(call.words()))
    {
        return None;
    }
    Some(match broker::call(Path::new(&socket), args) {
        Ok(code) => ExitCode::from(code),
        Err(problem) => error::report(&problem, false),
    })
}

/// Fails if an agent inside a sandbox may not make this call.
pub(crate) fn check(matches: &ArgMatches, words: &[&str]) -> Result<(), Problem> {
    match std::env::var_os(SANDBOXED_VARIABLE) {
        Some(_) => check_call(matches, words),
        None => Ok(()),
    }
}

fn check_call(matches: &ArgMatches, words: &[&str]) -> Result<(), Problem> {
    let name = words.first().copied().unwrap_or("status");
    if !ALLOWED.contains(&name) {
        return Err(Problem::denied(format!(
            "`gt {name}` cannot be called from inside a sandbox"
        ))
        .hint("`gt escalate` asks a person"));
    }
    let mut table = args::table();
    table.build();
    let (mut command, mut matches) = (&table, matches);
    loop {
        for id in matches.ids() {
            let is_given = matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
            let arg = command
                .get_arguments()
                .find(|arg| arg.get_id() == id)
                .filter(|_| is_given);
            let names_file = arg.is_some_and(|arg| is_path(arg.get_value_parser()));
            if names_file || (is_given && REFUSED_OPTIONS.contains(&id.as_str())) {
                return Err(Problem::denied(format!(
                    "`{}` cannot be used from inside a sandbox",
                    id.as_str().replace('_', "-")
                ))
                .hint("pass a text as an argument or on standard input"));
            }
        }
        let Some((name, below)) = matches.subcommand() else {
            return Ok(());
        };
        let Some(sub) = command.find_subcommand(name) else {
            return Ok(());
        };
        (command, matches) = (sub, below);
    }
}

fn is_path(parser: &ValueParser) -> bool {
    parser.type_id() == ValueParser::path_buf().type_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_words(words: &[&str]) -> Result<(), String> {
        let words = std::iter::once("gt").chain(words.iter().copied());
        let matches = args::table().try_get_matches_from(words).unwrap();
        check_call(&matches, &args::words(&matches)).map_err(|problem| problem.to_string())
    }

    #[test]
    fn calls_that_reach_beyond_a_sandbox_are_refused() {
        for allowed in [
            &["hook"][..],
            &["mail", "send", "mayor", "-s", "subject", "-m", "text"],
            &["done"],
            &["signal", "claude"],
            &["nudge", "mayor", "hello"],
            &["deacon", "status"],
            &["dog", "run", "an errand"],
        ] {
            assert_eq!(check_words(allowed), Ok(()), "{allowed:?}");
        }
        for refused in [
            &["start", "max", "--command", "id"][..],
            &["start", "max", "--sandbox", "none"],
            &["start", "max", "--work-dir", "/"],
            &["--town", "/other", "hook"],
            &["attach", "max"],
            &["internal", "sync"],
            &["config", "list"],
            &["seance"],
        ] {
            let said = check_words(refused).unwrap_err();
            assert!(said.contains("sandbox"), "{refused:?}: {said}");
        }
    }

    #[test]
    fn allowed_names_are_commands() {
        let table = args::table();
        for name in ALLOWED {
            assert!(table.find_subcommand(name).is_some(), "{name}");
        }
    }
}
