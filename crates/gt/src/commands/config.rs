use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use gt_core::Problem;
use gt_core::settings::SettingKey;
use gt_town::catalog::config::{ConfigChange, ConfigFile, ConfigTarget};
use gt_town::repo::rig;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toml::Value;

mod edit;
mod list;

/// Settings of the town, its rigs, roles and harnesses, and of projects
///
/// Without an option, the settings are those of the town (town.toml). `gt config list` shows all
/// keys.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ConfigCommand {
    List(list::ListArgs),
    Get(GetArgs),
    Set(SetArgs),
    Unset(UnsetArgs),
    Edit(edit::EditArgs),
}

/// The owner of the settings; the town without any of these options.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TargetArgs {
    /// The settings of this rig
    #[arg(long, value_name = "RIG")]
    rig: Option<String>,
    /// The settings of this role; with --rig, as that rig has them
    #[arg(long, value_name = "ROLE", conflicts_with_all = ["harness", "project"])]
    role: Option<String>,
    /// The settings of this harness
    #[arg(long, value_name = "NAME", conflicts_with_all = ["rig", "project"])]
    harness: Option<String>,
    /// The settings of the project (.gt.toml) in this folder; with --rig, those in the rig's checkout
    #[arg(long)]
    project: bool,
}

/// Print the value of a setting
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The key, such as notify.desktop
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    target: TargetArgs,
}

/// Change a setting
///
/// Comments and the order of the file stay. The file is checked before it is replaced, so that an
/// invalid value changes nothing.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The key, such as notify.desktop
    #[arg(value_name = "KEY")]
    key: String,
    /// The value; several for a list. A value that begins with a dash comes after `--`
    #[arg(value_name = "VALUE", required = true, allow_negative_numbers = true)]
    values: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
}

/// Remove a setting from its file, so that the default applies
#[derive(Debug, Args)]
pub(crate) struct UnsetArgs {
    /// The key, such as notify.desktop
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    Town,
    Rig,
    Role,
    Harness,
    Project,
    All,
}

pub(crate) fn run(command: ConfigCommand, context: &Context) -> CommandResult {
    match command {
        ConfigCommand::List(args) => list::run(&args, context),
        ConfigCommand::Get(args) => get(&args, context),
        ConfigCommand::Set(args) => set(&args, context),
        ConfigCommand::Unset(args) => unset(&args, context),
        ConfigCommand::Edit(args) => edit::run(&args, context),
    }
}

fn get(args: &GetArgs, context: &Context) -> CommandResult {
    let root = context.root()?;
    let (file, key) = find(&root, &args.target, &args.key, context)?;
    let settings = file.settings()?;
    let found = settings
        .iter()
        .find(|row| std::ptr::eq(row.setting, key.setting));
    let found = found.ok_or_else(|| Problem::failed(format!("{} has no value", args.key)))?;
    let value = match &key.entry {
        Some(entry) => found.value.as_ref().and_then(|value| value.get(entry)),
        None => found.value.as_ref(),
    };
    if context.json {
        output::json(&list::document(&file, found))?;
        return Ok(ExitCode::SUCCESS);
    }
    match value {
        Some(Value::Array(values)) if values.iter().all(Value::is_str) => {
            for value in values {
                output::line(output::clean(&plain(value)))?;
            }
        }
        Some(value) => output::line(output::clean(&plain(value)))?,
        None => output::note(format!(
            "{} is not set. Default: {}.",
            args.key,
            found.setting.default_text()
        )),
    }
    Ok(ExitCode::SUCCESS)
}

fn set(args: &SetArgs, context: &Context) -> CommandResult {
    let root = context.root()?;
    let (file, key) = find(&root, &args.target, &args.key, context)?;
    let words: Vec<&str> = args.values.iter().map(String::as_str).collect();
    let changed = file.set(&key, &words)?;
    report(&file, &key, &changed, context)
}

fn unset(args: &UnsetArgs, context: &Context) -> CommandResult {
    let root = context.root()?;
    let (file, key) = find(&root, &args.target, &args.key, context)?;
    let changed = file.unset(&key)?;
    report(&file, &key, &changed, context)
}

/// Prints the result of a change.
fn report(
    file: &ConfigFile<'_>,
    key: &SettingKey,
    changed: &ConfigChange,
    context: &Context,
) -> CommandResult {
    let name = key.path().join(".");
    if context.json {
        output::json(&output::without_nulls(json!({
            "key": name,
            "file": file.path(),
            "before": changed.before,
            "after": changed.after,
        })))?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = |value: &Value| output::clean(&value.to_string());
    let path = file.path().display();
    output::line(match (&changed.before, &changed.after) {
        (Some(before), Some(after)) if before == after => {
            format!("{name} is {} already.", shown(after))
        }
        (Some(before), Some(after)) => {
            let (before, after) = (shown(before), shown(after));
            format!("Set {name} = {after} in {path} (was {before}).")
        }
        (None, Some(after)) => format!("Set {name} = {} in {path}.", shown(after)),
        (Some(before), None) => {
            let default = key.setting.default_text();
            let before = shown(before);
            format!("Removed {name} from {path} (was {before}; now the default: {default}).")
        }
        (None, None) => format!("{name} is not set in {path}."),
    })?;
    let overridden = key.setting.variable.filter(|_| key.entry.is_none());
    if let Some(variable) = overridden.filter(|name| context.around().var(name).is_some()) {
        output::warn(format!(
            "the variable {variable} overrides this setting here"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats a value for scripts: a text without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the file and the setting that a person named. `rigs.NAME.KEY` is a key of a rig.
fn find<'a>(
    root: &'a Path,
    args: &TargetArgs,
    key: &str,
    context: &'a Context,
) -> Result<(ConfigFile<'a>, SettingKey), Problem> {
    let mut target = target(args, context)?;
    let mut key = key;
    let of_rig = key
        .strip_prefix("rigs.")
        .and_then(|rest| rest.split_once('.'));
    if let (ConfigTarget::Town, Some((rig, rest))) = (&target, of_rig) {
        let args = TargetArgs {
            rig: Some(rig.to_owned()),
            ..TargetArgs::default()
        };
        (target, key) = (self::target(&args, context)?, rest);
    }
    let found = SettingKey::find(target.scope(), key)?;
    let file = ConfigFile::of(root, target, context.around())?;
    Ok((file, found))
}

/// Returns the owner that the options name.
fn target(args: &TargetArgs, context: &Context) -> Result<ConfigTarget, Problem> {
    if let Some(name) = &args.rig {
        rig::entry(&context.town()?, name)?;
    }
    let rig = args.rig.clone();
    Ok(match (&args.role, &args.harness, args.project, rig) {
        (Some(role), _, _, rig) => ConfigTarget::Role {
            role: super::role::parse(role)?,
            rig,
        },
        (None, Some(name), ..) => ConfigTarget::Harness(name.clone()),
        (None, None, true, rig) => ConfigTarget::Project(project_folder(rig, context)?),
        (None, None, false, Some(rig)) => ConfigTarget::Rig(rig),
        (None, None, false, None) => ConfigTarget::Town,
    })
}

/// Returns the root of the repository in this folder, or of the rig's checkout.
fn project_folder(rig: Option<String>, context: &Context) -> Result<PathBuf, Problem> {
    let around = context.around();
    if let Some(rig) = rig {
        return Ok(gt_town::repo::project::folder(&context.town()?, &rig));
    }
    let here = &around.current_dir;
    let root = here.ancestors().find(|dir| dir.join(".git").exists());
    root.map(Path::to_owned).ok_or_else(|| {
        Problem::not_found(format!("{} is not in a git repository", here.display()))
            .hint("go to the project's folder, or name its rig with `--rig NAME`")
    })
}
