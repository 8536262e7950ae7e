use super::CommandResult;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::harness::{self, Preset};
use gt_core::patterns::Patterns;
use gt_core::screen::{self, Asking, CapturedScreen, Classification, InputContent};
use gt_town::Town;
use gt_town::catalog::harnesses;
use gt_town::repo::project;
use serde_json::json;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

/// Harnesses: the agent programs that can be run
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum HarnessCommand {
    /// List the harnesses, and which of them are installed here
    List,
    Show(ShowArgs),
    Classify(ClassifyArgs),
}

/// Print a preset as it is resolved, and where each field came from
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The harness
    name: String,
}

/// Classify a captured screen: idle, busy, waiting, …
///
/// Reads a screen as `tmux capture-pane -p` prints it (with -e some dialogs tell more), and prints
/// the state that the harness's preset derives from it, with the reason, the rule that decided, and
/// an open dialog with its choices. For people who write presets, and for tests. Works without a
/// town, too.
///
/// Example: `tmux capture-pane -p -t %3 | gt harness classify claude`
#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// The harness
    name: String,

    /// The captured screen; standard input if it is absent or `-`
    file: Option<PathBuf>,

    /// The terminal's title at that moment (`#{pane_title}`)
    #[arg(long, default_value = "", hide_default_value = true)]
    title: String,

    /// The folder of a project whose .gt.toml adds patterns
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
}

pub(crate) fn run(command: HarnessCommand, context: &Context) -> CommandResult {
    match command {
        HarnessCommand::Classify(args) => classify(&args, context)?,
        HarnessCommand::List => {
            let town = context.town()?;
            let default = harnesses::choose(&town, None, &gt_core::role::RoleConfig::default());
            let mut table = Table::new(&["HARNESS", "PROGRAM", "INSTALLED", "", ""]);
            let mut documents = Vec::new();
            for name in harnesses::names(&town) {
                let preset = harnesses::resolve(&town, &name)?.value;
                let path = context.around().find_program(&preset.command.program);
                documents.push(output::without_nulls(json!({
                    "harness": name,
                    "title": preset.title,
                    "program": preset.command.program,
                    "installed": path.is_some(),
                    "path": path,
                    "default": name == default,
                    "install": preset.install,
                })));
                let installed = match &path {
                    Some(path) => Cell::painted(path.display().to_string(), Paint::green),
                    None => Cell::painted("no", Paint::dim),
                };
                table.row([
                    name.as_str().into(),
                    preset.command.program.replace("{gt}", "gt").into(),
                    installed,
                    if name == default { "default" } else { "" }.into(),
                    preset.title.into(),
                ]);
            }
            if context.json {
                output::json(&documents)?;
            } else {
                output::print(&table.render(Paint::for_stdout()))?;
            }
        }
        HarnessCommand::Show(args) => {
            let town = context.town()?;
            let resolved = harnesses::resolve(&town, &args.name)?;
            super::role::show(&args.name, "harness", &resolved.fields, context)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn classify(args: &ClassifyArgs, context: &Context) -> Result<(), Problem> {
    let preset = preset(&args.name, context)?;
    let text = capture(args)?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let looked = CapturedScreen {
        lines: &lines,
        silent_seconds: None,
    };
    let project = args.project.as_deref().map(project::of_worktree);
    let project = project.transpose()?.map(|project| project.states);
    let rules = project.iter().chain([&preset.states]);
    let found = screen::read_state(looked, &args.title, &preset, &Patterns::of(rules));
    if context.json {
        output::json(&found)
    } else {
        output::print(&described(&found))
    }
}

/// Returns the town's preset, or the built-in one outside a town.
fn preset(name: &str, context: &Context) -> Result<Preset, Problem> {
    let resolved = match context.names_town() || Town::find_unnamed(context.around()).is_some() {
        // A named town must exist.
        true => harnesses::resolve(&context.town()?, name)?,
        false => harness::resolve(name, None)?,
    };
    Ok(resolved.value)
}

fn capture(args: &ClassifyArgs) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let read = match args.file.as_deref() {
        Some(path) if path.as_os_str() != "-" => std::fs::read(path).map(|read| bytes = read),
        _ => std::io::stdin().read_to_end(&mut bytes).map(drop),
    };
    read.map_err(|error| {
        let what = args.file.as_ref().map(|path| path.display().to_string());
        let what = what.unwrap_or_else(|| "standard input".to_owned());
        let problem = match error.kind() {
            std::io::ErrorKind::NotFound => Problem::not_found(format!("there is no {what}")),
            _ => Problem::failed(format!("cannot read {what}")),
        };
        problem.caused_by(error)
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn described(found: &Classification) -> String {
    let rule = match &found.mark {
        Some(mark) => format!("{} ({mark:?})", found.rule),
        None => found.rule.clone(),
    };
    let mut rows = vec![
        ("state", found.state.as_str().to_owned()),
        ("reason", found.reason.clone()),
        ("rule", rule),
    ];
    if let Some(dialog) = &found.dialog {
        rows.push(("dialog", dialog.kind.clone()));
        rows.extend(choices(dialog).map(|choice| ("", choice)));
    }
    let input = match &found.input {
        Some(input) => line_shown(input),
        None => "none found".to_owned(),
    };
    rows.push(("input", input));
    rows.iter()
        .map(|(name, value)| format!("{name:<8}{value}\n"))
        .collect()
}

fn choices(dialog: &Asking) -> impl Iterator<Item = String> {
    dialog.options.iter().enumerate().map(|(index, option)| {
        let mark = if dialog.marked == Some(index) {
            '❯'
        } else {
            ' '
        };
        format!("{mark} {}. {option}", index + 1)
    })
}

fn line_shown(input: &InputContent) -> String {
    match (input.typed(), input.placeholder) {
        ("", true) => format!("empty (shows {:?})", input.text),
        ("", false) => "empty".to_owned(),
        (text, _) => format!("{text:?}"),
    }
}
