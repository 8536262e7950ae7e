use super::CommandResult;
use crate::context::Context;
use crate::output;
use crate::output::question;
use clap::Args;
use gt_core::Problem;
use gt_core::sandbox::DefaultSandbox;
use gt_core::settings::{SettingKey, SettingScope};
use gt_town::Town;
use gt_town::agents::sandbox::bubblewrap;
use gt_town::catalog::config::{ConfigFile, ConfigTarget};
use gt_town::catalog::harnesses;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod questions;

/// Make a town: the folder that holds everything
///
/// On a terminal, and without --harness, --socket and --yes, it asks for the agent program, the
/// notifications and the tmux server.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder [default: ~/gt]
    path: Option<PathBuf>,
    /// Its name [default: that of the folder]
    #[arg(long)]
    name: Option<String>,
    /// A tmux server of its own: a socket name or an absolute path [default: tmux's own]
    #[arg(long, value_name = "SOCKET")]
    socket: Option<String>,
    /// The agent program for roles that name none [default: claude]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The sandbox of agents that run without permission prompts: `none`, `workspace`, `strict`, or
    /// `auto` for `workspace` where it works [default: auto]
    #[arg(long, value_name = "LEVEL", value_parser = default_sandbox)]
    sandbox: Option<DefaultSandbox>,
    /// Ask nothing: take the defaults
    #[arg(long, short)]
    yes: bool,
}

/// Choices for a new town.
struct InitChoices {
    harness: String,
    socket: String,
    /// Whether desktop notifications are on.
    desktop: bool,
}

pub(crate) fn run(args: InitArgs, context: &Context) -> CommandResult {
    let around = context.around();
    let path = match &args.path {
        Some(path) => around.current_dir.join(path),
        None => around.home().map(|home| home.join("gt")).ok_or_else(|| {
            Problem::usage("there is no HOME to make a town in").hint("name a folder")
        })?,
    };
    Town::check_new(&path)?;
    let is_decided = args.yes || args.harness.is_some() || args.socket.is_some();
    let is_asked = !is_decided && question::can_ask(context);
    let chosen = match is_asked {
        true => questions::ask(&path, context)?,
        false => InitChoices {
            harness: args
                .harness
                .unwrap_or_else(|| harnesses::FALLBACK.to_owned()),
            socket: args.socket.unwrap_or_default(),
            desktop: false,
        },
    };
    let name = args.name.as_deref();
    let root = Town::init(&path, name, &chosen.socket, &chosen.harness)?;
    let sandbox = args.sandbox.unwrap_or(DefaultSandbox::Auto);
    set(&root, "sandbox.default", sandbox.as_str(), context)?;
    if chosen.desktop {
        set(&root, "notify.desktop", "true", context)?;
    }
    let town = Town::open(&root, around.clone())?;
    // Reports a misspelt harness now instead of at the first start.
    let known = harnesses::resolve(&town, &chosen.harness);
    if context.json {
        output::json(&json!({"town": town.root(), "name": town.settings().name}))?;
    } else {
        output::line(format!("Made the town {}.", town.root().display()))?;
        output::line(
            "Next: `gt rig add PATH-OR-URL` adds a repository, `gt up` starts the town's own agents.",
        )?;
        if is_asked {
            question::text("`gt config list` shows all settings, `gt config set` changes one.")?;
        }
        if chosen.desktop {
            output::line("`gt notify test` sends a test notification.")?;
        }
    }
    if let Err(problem) = known {
        output::warn(problem.message());
    }
    if sandbox == DefaultSandbox::Auto {
        warn_without_sandbox(&town);
    }
    Ok(ExitCode::SUCCESS)
}

fn set(root: &Path, key: &str, value: &str, context: &Context) -> Result<(), Problem> {
    let file = ConfigFile::of(root, ConfigTarget::Town, context.around())?;
    let key = SettingKey::find(SettingScope::Town, key)?;
    file.set(&key, &[value])?;
    Ok(())
}

fn default_sandbox(word: &str) -> Result<DefaultSandbox, String> {
    DefaultSandbox::from_word(word)
        .ok_or_else(|| "the words are auto, none, workspace and strict".to_owned())
}

/// Warns that agents have no sandbox although it is the default.
fn warn_without_sandbox(town: &Town) {
    if let Err(problem) = bubblewrap::check_again(town) {
        let hint = problem.hints().first();
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        output::warn(format!(
            "agents run without permission prompts and without a sandbox: {problem}{hint}"
        ));
    }
}
