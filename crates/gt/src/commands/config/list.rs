use super::{ScopeArg, TargetArgs, target};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::Args;
use gt_core::settings::resolve::ResolvedSetting;
use gt_core::settings::{SettingKind, SettingScope};
use gt_core::{Problem, Role};
use gt_town::catalog::config::{ConfigFile, ConfigTarget};
use gt_town::catalog::harnesses;
use serde_json::json;
use std::process::ExitCode;
use toml::Value;

/// List settings with their values, origins, defaults and meanings
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only keys that begin with this, such as notify
    #[arg(value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
    /// The settings of every rig, role or harness, or all there are
    #[arg(long, value_enum, conflicts_with_all = ["rig", "role", "harness", "project"])]
    scope: Option<ScopeArg>,
    /// Only settings whose value is not the default
    #[arg(long)]
    changed: bool,
}

/// Narrower terminals show the meaning of a setting below its row.
const WIDE: usize = 120;
/// Width of the meanings on wider terminals.
const MEANING: usize = 46;

pub(super) fn run(args: &ListArgs, context: &Context) -> CommandResult {
    let root = context.root()?;
    let targets = match args.scope {
        None => vec![target(&args.target, context)?],
        Some(scope) => all(scope, context)?,
    };
    let mut documents = Vec::new();
    let mut sections = Vec::new();
    for target in targets {
        let file = ConfigFile::of(&root, target, context.around())?;
        let settings = file.settings()?.into_iter();
        if let Err(problem) = file.check_values() {
            let causes = problem.causes().join(": ");
            output::warn(format!("{}: {causes}", problem.message()));
        }
        let shown: Vec<ResolvedSetting> = settings.filter(|row| is_wanted(args, row)).collect();
        documents.extend(shown.iter().map(|row| document(&file, row)));
        if !shown.is_empty() {
            sections.push((title(file.target()), table(&shown)));
        }
    }
    if context.json {
        output::json(&documents)?;
        return Ok(ExitCode::SUCCESS);
    }
    match (sections.as_slice(), args.changed) {
        ([], true) => output::line("Nothing is changed: all settings have their defaults.")?,
        ([], false) => return Err(unknown(args, context)),
        (sections, _) => {
            let has_titles = args.scope.is_some();
            for (index, (title, table)) in sections.iter().enumerate() {
                if has_titles {
                    let gap = if index == 0 { "" } else { "\n" };
                    let title = Paint::for_stdout().bold(&output::clean(title));
                    output::line(format!("{gap}{title}"))?;
                }
                output::print(&table.render(Paint::for_stdout()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_wanted(args: &ListArgs, row: &ResolvedSetting) -> bool {
    let key = row.setting.key;
    let fits = args.key.as_ref().is_none_or(|wanted| {
        let rest = key.strip_prefix(wanted.trim_end_matches('.'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    fits && (!args.changed || row.is_changed())
}

/// Returns the error for a beginning that no key has.
fn unknown(args: &ListArgs, context: &Context) -> Problem {
    let key = args.key.as_deref().unwrap_or_default();
    let scope = target(&args.target, context).map_or(SettingScope::Town, |target| target.scope());
    match gt_core::settings::SettingKey::find(scope, key) {
        Err(problem) => problem,
        Ok(_) => Problem::not_found(format!("no settings begin with {key:?}")),
    }
}

/// Returns all owners of settings of a scope.
fn all(scope: ScopeArg, context: &Context) -> Result<Vec<ConfigTarget>, Problem> {
    let town = context.town()?;
    let has = |one: ScopeArg| scope == one || scope == ScopeArg::All;
    let mut targets = Vec::new();
    if has(ScopeArg::Town) {
        targets.push(ConfigTarget::Town);
    }
    let rigs: Vec<&String> = town.registry().rigs.keys().collect();
    if has(ScopeArg::Rig) {
        targets.extend(rigs.iter().map(|rig| ConfigTarget::Rig((*rig).clone())));
    }
    if has(ScopeArg::Role) {
        for role in Role::all() {
            targets.push(ConfigTarget::Role { role, rig: None });
            let of_rigs = rigs.iter().map(|rig| ConfigTarget::Role {
                role,
                rig: Some((*rig).clone()),
            });
            // Only rigs with a file differ from the town.
            targets.extend(of_rigs.filter(|it| it.path(town.root()).is_file()));
        }
    }
    if has(ScopeArg::Harness) {
        let names = harnesses::names(&town).into_iter();
        targets.extend(names.map(ConfigTarget::Harness));
    }
    if has(ScopeArg::Project) {
        let folders = rigs
            .iter()
            .map(|rig| gt_town::repo::project::folder(&town, rig));
        targets.extend(folders.map(ConfigTarget::Project));
    }
    if scope == ScopeArg::Project && targets.is_empty() {
        let here = TargetArgs {
            project: true,
            ..TargetArgs::default()
        };
        targets.push(target(&here, context)?);
    }
    match targets.is_empty() {
        true => Err(Problem::not_found("this town has no rigs").hint("`gt rig add PATH` adds one")),
        false => Ok(targets),
    }
}

fn title(target: &ConfigTarget) -> String {
    match target.name() {
        None => "Town".to_owned(),
        Some(name) => match target.scope() {
            SettingScope::Project => format!("Project {name}"),
            scope => {
                let word = scope.as_str();
                format!("{}{} {name}", word[..1].to_uppercase(), &word[1..])
            }
        },
    }
}

fn table(settings: &[ResolvedSetting]) -> Table {
    let is_wide = output::terminal_columns().is_none_or(|columns| columns >= WIDE);
    let header: &[&str] = match is_wide {
        true => &["KEY", "VALUE", "ORIGIN", "DEFAULT", "MEANING"],
        false => &["KEY", "VALUE", "ORIGIN"],
    };
    let mut table = Table::new(header).wrapping().keeping_first();
    if is_wide {
        table = table.with_last_width(MEANING);
    }
    for row in settings {
        let (value, origin) = (value_text(row), row.origin.to_string());
        let (value, origin) = match row.is_changed() {
            true => (Cell::painted(value, Paint::cyan), Cell::from(origin)),
            false => (Cell::from(value), Cell::painted(origin, Paint::dim)),
        };
        let mut cells = vec![Cell::painted(row.setting.key, Paint::bold), value, origin];
        let meaning = row.setting.described();
        match (is_wide, default_text(row)) {
            (true, default) => {
                cells.push(Cell::painted(default.unwrap_or_default(), Paint::dim));
                cells.push(Cell::from(meaning));
                table.row(cells);
            }
            (false, Some(default)) => {
                table.row_with_note(cells, &format!("{meaning} Default: {default}."));
            }
            (false, None) => table.row_with_note(cells, &meaning),
        }
    }
    table
}

/// Returns the default, unless it is the value.
fn default_text(row: &ResolvedSetting) -> Option<String> {
    match &row.default {
        Some(_) if !row.is_changed() => None,
        Some(value) => Some(short(row, value)),
        None => Some(row.setting.default_text().to_owned()).filter(|text| !text.is_empty()),
    }
}

fn value_text(row: &ResolvedSetting) -> String {
    match &row.value {
        Some(value) => short(row, value),
        None => "–".to_owned(),
    }
}

/// Formats a value in one line; only the number of a list of tables.
fn short(row: &ResolvedSetting, value: &Value) -> String {
    match (row.setting.kind, value) {
        (SettingKind::Tables, Value::Array(values)) if values.is_empty() => "none".to_owned(),
        (SettingKind::Tables, Value::Array(values)) => {
            gt_core::plural::counted(values.len(), "table")
        }
        (_, value) => value.to_string(),
    }
}

/// Returns a setting as JSON.
pub(super) fn document(file: &ConfigFile<'_>, row: &ResolvedSetting) -> serde_json::Value {
    let target = file.target();
    output::without_nulls(json!({
        "scope": target.scope().as_str(),
        "name": target.name(),
        "key": row.setting.key,
        "value": row.value,
        "origin": row.origin.to_string(),
        "changed": row.is_changed(),
        "default": row.default,
        "default_text": row.setting.default_text(),
        "allowed": row.setting.kind.allowed(),
        "description": row.setting.about,
    }))
}
