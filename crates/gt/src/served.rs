//! Runs commands for the HTTP API: inside the daemon, on behalf of its callers.
//!
//! An operation is its command: the arguments are parsed as those of a process, capabilities are
//! checked for the caller, and the JSON document that the command prints is the answer.

use crate::args::{self, Cli};
use crate::context::Context;
use crate::output::captured;
use crate::{commands, error};
use clap::{CommandFactory, FromArgMatches};
use gt_core::operation::{Action, Operation};
use gt_core::{Problem, ProblemKind, caller};
use gt_town::Surroundings;
use gt_web::{ApiCaller, OperationOutput, OperationRunner, Principal};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

/// The commands of this binary, for a town.
#[derive(Debug)]
pub(crate) struct ServedCommands {
    pub(crate) root: PathBuf,
    /// The surroundings of the daemon.
    pub(crate) around: Surroundings,
}

impl OperationRunner for ServedCommands {
    fn run(
        &self,
        operation: &Operation,
        arguments: Vec<String>,
        principal: &Principal,
    ) -> Result<OperationOutput, Problem> {
        let (cli, words) = parse(operation, arguments)?;
        let context = Context::served(self.root.clone(), self.surroundings(principal));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let context = context.for_command(&words);
        let Some(command) = cli.command else {
            return Err(Problem::failed(format!(
                "{} has no command",
                operation.name
            )));
        };
        let (done, text) = captured::capture(|| commands::run(command, &context));
        let code = done.inspect_err(|problem| error::record(problem, &context))?;
        let document = match text.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text).map_err(|error| {
                Problem::failed(format!("{} printed no JSON", operation.name)).caused_by(error)
            })?,
        };
        let queued = ProblemKind::Queued.exit_code();
        let exit_code = match code == ExitCode::from(queued) {
            true => queued,
            false => u8::from(code != ExitCode::SUCCESS),
        };
        Ok(OperationOutput {
            exit_code,
            document,
        })
    }
}

impl ServedCommands {
    /// Returns the surroundings of a command of this caller. Folders mean nothing for a remote
    /// caller, so the command runs in the root of the town.
    fn surroundings(&self, principal: &Principal) -> Surroundings {
        let mut around = self.around.clone();
        around.current_dir.clone_from(&self.root);
        let name = principal.caller_name(&around);
        if let ApiCaller::Agent(address) = &principal.caller {
            around.env.insert("GT_ROLE".to_owned(), address.clone());
        }
        around.env.insert(caller::VARIABLE.to_owned(), name);
        around
    }
}

/// Parses the arguments of an operation. Returns the names of the command as well.
fn parse(operation: &Operation, arguments: Vec<String>) -> Result<(Cli, Vec<String>), Problem> {
    let words = std::iter::once("gt".to_owned()).chain(arguments);
    let invalid = |error: clap::Error| {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ");
        let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
        let problem = Problem::usage(message.trim());
        match rest.trim() {
            "" => problem,
            rest => problem.hint(rest),
        }
    };
    let matches = Cli::command()
        .try_get_matches_from(words)
        .map_err(invalid)?;
    let names: Vec<String> = args::words(&matches)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let is_of_row = match operation.action {
        Action::Command(words) => {
            let mut own = words.iter().filter(|word| !word.starts_with('-'));
            own.by_ref().eq(names.iter())
        }
        _ => false,
    };
    if !is_of_row {
        let names = names.join(" ");
        return Err(Problem::failed(format!(
            "{} does not run `gt {names}`",
            operation.name
        )));
    }
    Ok((Cli::from_arg_matches(&matches).map_err(invalid)?, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::capabilities::{self, Need};
    use gt_core::operation::{ParameterKind, TABLE};
    use serde_json::{Map, json};

    /// Returns a value for each parameter, all of which could be mistaken for options.
    fn values(operation: &Operation) -> Map<String, Value> {
        let value = |kind: ParameterKind| match kind {
            ParameterKind::Text => json!("--help"),
            ParameterKind::Texts => json!(["--town=/x", "--json"]),
            ParameterKind::Boolean => json!(true),
            ParameterKind::Integer { min, .. } => json!(min),
            ParameterKind::Choice(words) => json!(words[0]),
        };
        let parameters = operation.parameters.iter();
        parameters
            .map(|one| (one.name.to_owned(), value(one.kind)))
            .collect()
    }

    #[test]
    fn every_row_parses_as_its_command_with_its_capability() {
        for row in TABLE {
            let Action::Command(_) = row.action else {
                continue;
            };
            let mut all = values(row);
            // These exclude each other.
            if row.name == "mail_inbox" {
                all.remove("all");
            }
            let arguments = row.arguments(&all).unwrap();
            let (cli, words) = match parse(row, arguments.clone()) {
                Ok(parsed) => parsed,
                Err(problem) => panic!(
                    "{}: {arguments:?}: {problem} {:?}",
                    row.name,
                    problem.hints()
                ),
            };
            assert!(cli.global.town.is_none(), "{}: {arguments:?}", row.name);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let need = match capabilities::need(&words) {
                Some(Need::Each(capability) | Need::Town(capability)) => Some(capability),
                Some(Need::Nothing) | None => None,
            };
            assert_eq!(row.capability, need, "{}", row.name);
        }
    }

    #[test]
    fn a_row_runs_only_its_own_command() {
        let row = TABLE.iter().find(|row| row.name == "agents_show").unwrap();
        for other in [
            &["agents", "check"][..],
            &["status"],
            &["agents", "env", "x"],
        ] {
            let arguments = other.iter().map(|word| (*word).to_owned()).collect();
            let problem = parse(row, arguments).unwrap_err();
            assert!(problem.message().contains("does not run"), "{problem}");
        }
    }
}
