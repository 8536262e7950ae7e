use super::{TargetArgs, target};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::output;
use crate::output::question;
use clap::Args;
use gt_core::Problem;
use gt_town::catalog::config::{ConfigEdit, ConfigFile, EditError};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Edit a file of settings with $VISUAL or $EDITOR
///
/// The editor opens a copy, which replaces the file if it is valid. A file that does not exist is
/// offered with every setting as a comment.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn run(args: &EditArgs, context: &Context) -> CommandResult {
    let root = context.root()?;
    let file = ConfigFile::of(&root, target(&args.target, context)?, context.around())?;
    let edit = file.begin_edit()?;
    loop {
        open_editor(edit.path(), context).map_err(|problem| kept(problem, &file, &edit))?;
        let problem = match file.finish_edit(&edit) {
            Ok(true) => {
                output::line(format!("Changed {}.", file.path().display()))?;
                return Ok(ExitCode::SUCCESS);
            }
            Ok(false) => {
                output::line("No change.")?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(EditError::Invalid(problem)) => problem,
            Err(EditError::Other(problem)) => return Err(kept(problem, &file, &edit)),
        };
        if !question::can_ask(context) {
            return Err(kept(problem, &file, &edit));
        }
        output::warn(
            [problem.message()]
                .into_iter()
                .chain(problem.causes().iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join("\n"),
        );
        if !question::yes("Edit again?", true)? {
            return Err(kept(problem, &file, &edit));
        }
    }
}

/// Adds where the copy is, and that the file is unchanged.
fn kept(problem: Problem, file: &ConfigFile<'_>, edit: &ConfigEdit) -> Problem {
    problem
        .hint(format!("your copy is {}", edit.path().display()))
        .hint(format!("{} is unchanged", file.path().display()))
}

/// Runs the editor and waits for its end.
fn open_editor(path: &Path, context: &Context) -> Result<(), Problem> {
    let around = context.around();
    let wanted = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| around.var(name));
    let editor = match wanted {
        Some(line) => line.to_owned(),
        None => ["vi", "nano"]
            .into_iter()
            .find(|program| around.find_program(program).is_some())
            .map(str::to_owned)
            .ok_or_else(|| {
                Problem::environment("there is no editor")
                    .hint("set EDITOR, for example: EDITOR=nano gt config edit")
            })?,
    };
    // The variable is a shell line, as for git.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$@\""))
        .arg(&editor)
        .arg(path)
        .status()
        .map_err(|error| Problem::failed(format!("cannot run {editor}")).caused_by(error))?;
    match status.success() {
        true => Ok(()),
        false => Err(Problem::failed(format!(
            "the editor {editor:?} failed: {status}"
        ))),
    }
}
