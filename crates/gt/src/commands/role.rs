use super::CommandResult;
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::capability::{Reach, TABLE};
use gt_core::{Problem, Role, similar};
use gt_town::Town;
use gt_town::catalog::roles;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Roles: what agents are for, and how each is started
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum RoleCommand {
    /// List the roles
    List,
    Show(ShowArgs),
    Capabilities(CapabilitiesArgs),
}

/// Print a role as it is resolved, and where each field came from
///
/// Built-in settings come first, then <town>/roles/<role>.toml, then
/// <rig>/roles/<role>.toml; only the fields that are set override.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The role
    role: String,
    /// As this rig has it
    #[arg(long)]
    rig: Option<String>,
}

/// Print what the agents of each role may do with `gt`
///
/// `own` is the agent itself, `rig` the agents and items of its rig, `town` all. No role may answer its
/// own questions. People may do everything. `[capabilities]` in `town.toml` changes single cells.
#[derive(Debug, Args)]
pub(crate) struct CapabilitiesArgs {
    /// As agents of this rig have them
    #[arg(long)]
    rig: Option<String>,
}

fn capabilities(args: &CapabilitiesArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    if let Some(rig) = &args.rig {
        gt_town::repo::rig::entry(town, rig)?;
    }
    let capabilities = town.capabilities(args.rig.as_deref());
    let roles: Vec<Role> = Role::all().filter(|role| *role != Role::Overseer).collect();
    let head = &[
        "CAPABILITY",
        "MAYOR",
        "DEACON",
        "BOOT",
        "DOG",
        "WITNESS",
        "REFINERY",
        "CREW",
        "POLECAT",
        "AGENT",
        "TASK",
    ];
    let (mut table, mut documents) = (Table::new(head), Vec::new());
    for (capability, _) in TABLE {
        let reach = |role: &Role| capabilities.reach(*role, capability);
        let cells = roles.iter().map(|role| match reach(role) {
            Reach::None => "-".to_owned(),
            reach => reach.as_str().to_owned(),
        });
        table.row(
            std::iter::once(capability.to_string())
                .chain(cells)
                .map(Into::into),
        );
        let cells = roles
            .iter()
            .map(|role| (role.as_str().to_owned(), json!(reach(role))));
        let cells: Map<String, Value> = cells.collect();
        documents.push(json!({"capability": capability, "roles": cells}));
    }
    match context.json {
        true => output::json(&documents),
        false => output::print(&table.render(Paint::for_stdout())),
    }
}

pub(crate) fn parse(word: &str) -> Result<Role, Problem> {
    Role::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = Role::all().map(Role::as_str).collect();
        let near = similar::hint(word, words.iter().copied());
        let problem = Problem::not_found(format!("there is no role {word:?}"));
        let problem = near.into_iter().fold(problem, Problem::hint);
        problem.hint(format!("the roles: {}", words.join(", ")))
    })
}

pub(crate) fn run(command: RoleCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        RoleCommand::List => {
            let mut table = Table::new(&["ROLE", "CONTAINER", "FOLDER", "RESPAWN", ""]);
            let mut documents = Vec::new();
            for role in Role::all() {
                let config = roles::resolve(&town, role, None)?.value;
                documents.push(json!({
                    "role": role,
                    "pattern": config.session.pattern,
                    "work_dir": config.session.work_dir,
                    "auto_respawn": config.start.auto_respawn,
                    "icon": config.look.icon,
                    "description": config.description,
                }));
                table.row([
                    role.as_str().into(),
                    config.session.pattern.into(),
                    config.session.work_dir.into(),
                    if config.start.auto_respawn { "yes" } else { "" }.into(),
                    format!("{} {}", config.look.icon, config.description).into(),
                ]);
            }
            if context.json {
                output::json(&documents)?;
            } else {
                output::print(&table.render(Paint::for_stdout()))?;
            }
        }
        RoleCommand::Capabilities(args) => capabilities(&args, &town, context)?,
        RoleCommand::Show(args) => {
            let role = parse(&args.role)?;
            if let Some(rig) = &args.rig {
                gt_town::repo::rig::entry(&town, rig)?;
            }
            let resolved = roles::resolve(&town, role, args.rig.as_deref())?;
            show(role.as_str(), "role", &resolved.fields, context)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints resolved fields with their sources; shared with harness presets.
pub(crate) fn show(
    name: &str,
    what: &str,
    fields: &std::collections::BTreeMap<String, gt_core::overlay::OverlaidField>,
    context: &Context,
) -> Result<(), Problem> {
    if context.json {
        let fields: Map<String, Value> = fields
            .iter()
            .map(|(field, set)| {
                (
                    field.clone(),
                    json!({"value": set.value, "source": set.source}),
                )
            })
            .collect();
        return output::json(&json!({what: name, "fields": fields}));
    }
    let mut table = Table::new(&["FIELD", "VALUE", "FROM"]).wrapping();
    for (field, set) in fields {
        table.row([
            field.as_str().into(),
            set.value.to_string().into(),
            set.source.as_str().into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}
