//! Resolves targets: finds the agent that a typed text means.

use crate::agents::caller;
use crate::base::or_log::OrLog;
use crate::catalog::{directory, roles};
use crate::records::items::Work;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::repo::workspace;
use crate::terminal::adopted;
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use gt_core::identity::unknown_rig;
use gt_core::record::SessionStatus;
use gt_core::role::RoleScope;
use gt_core::target::KnownAgent;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role, mail, target};
use gt_tmux::{Command, PaneId};
use std::collections::HashSet;
use std::path::Path;

/// Resolves a target. Reads the existing agents only if the text is ambiguous.
pub fn resolve(town: &Town, text: &str) -> Result<Identity> {
    let agent = match of_own_rig(town, text) {
        Some(agent) => agent,
        None => match target::read_exact(text, town.registry()) {
            Some(identity) if !is_ambiguous(text, &identity) => identity,
            _ => find_narrowly(town, text)?,
        },
    };
    town.authorize(&agent)?;
    Ok(agent)
}

/// Finds the agent of an ambiguous text. Reads all agents only if the few that fit the text do not
/// decide: then the error names those that are similar.
fn find_narrowly(town: &Town, text: &str) -> Result<Identity> {
    if let Some(containers) = containers_named(town, text)? {
        let mut known = running(&containers);
        add_stopped(town, &mut known, directory::named(town, text))?;
        let found = find_among(town, text, known.clone());
        if let Ok(identity) = found
            && known.iter().any(|agent| agent.identity == identity)
        {
            return Ok(identity);
        }
    }
    find_among(town, text, all(town, &containers::list_everywhere(town)?)?)
}

/// Returns the containers that the text could mean; `None` if that needs a look at all of them.
fn containers_named(town: &Town, text: &str) -> Result<Option<Vec<Container>>> {
    let is_of_many = |role: Role| !matches!(role, Role::Witness | Role::Refinery);
    if Role::from_word(text).is_some_and(is_of_many) || !adopted::on_other_servers(town).is_empty()
    {
        return Ok(None);
    }
    let texts = match text.split_once('/') {
        Some((rig, name)) => {
            let both = [Identity::crew(rig, name), Identity::polecat(rig, name)];
            both.map(|identity| identity.address()).to_vec()
        }
        None => vec![text.to_owned()],
    };
    containers::list_named(town, &texts)
}

/// Resolves `witness` and `refinery`, if the caller is an agent of a rig, to those of that rig.
fn of_own_rig(town: &Town, text: &str) -> Option<Identity> {
    let role =
        Role::from_word(text).filter(|role| matches!(role, Role::Witness | Role::Refinery))?;
    let caller = caller::calling_agent(town)?;
    caller.rig().map(|rig| Identity::of_rig(role, rig))
}

/// Returns the agent that a command without a target means: the caller, the agent of this folder,
/// or the agent of this tmux pane.
pub fn default_agent(town: &Town) -> Result<Identity> {
    default_agent_if_any(town)?.ok_or_else(|| {
        Problem::usage("which agent? This is not the folder or pane of an agent")
            .hint("add `--agent NAME`, or go to its folder")
    })
}

/// Returns the agent that a command without a target means, or `None` for a person outside every
/// agent's folder and pane.
pub fn default_agent_if_any(town: &Town) -> Result<Option<Identity>> {
    let around = town.around();
    if let Some(address) = around.var("GT_ROLE").filter(|role| *role != mail::PERSON) {
        let agent = Identity::from_address(address, town.registry()).ok_or_else(|| {
            Problem::usage(format!(
                "GT_ROLE says {address:?}, which is not the address of an agent"
            ))
            .hint("unset it, or name the agent with `--agent NAME`")
        })?;
        let rigs = &town.registry().rigs;
        return match agent.rig() {
            Some(rig) if agent.role().scope() == RoleScope::Rig && !rigs.contains_key(rig) => {
                Err(unknown_rig(rig, town.registry()))
            }
            _ => Ok(Some(agent).filter(|agent| !caller::is_person(agent))),
        };
    }
    let dir = &around.current_dir;
    if let Some(agent) =
        directory::by_folder(town, dir).or_else(|| workspace::task_by_folder(town, dir))
    {
        return Ok(Some(agent));
    }
    match by_pane(town) {
        Some(agent) => Ok(Some(agent)),
        None => by_session(town, dir),
    }
}

/// Returns the agent whose container holds the caller's tmux pane; `None` if the server does not
/// answer.
fn by_pane(town: &Town) -> Option<Identity> {
    let around = town.around();
    let (socket, _) = around.var("TMUX")?.split_once(',')?;
    let pane: PaneId = around.var("TMUX_PANE")?.parse().ok()?;
    // Adopted agents are checked first: the pane of an adopted program is also in a session of the
    // person, which may itself be the container of another agent.
    if let Some(agent) = adopted::agent_of_pane(town, Path::new(socket), pane) {
        return Some(agent);
    }
    if Path::new(socket) != town.server().socket_path() {
        return None;
    }
    let ask = Command::new("display-message").arg("-p").target(pane);
    let answer = town
        .server()
        .run(ask.arg("#{@gt_agent} #{@gt_town}"))
        .or_debug("the pane names no agent")?;
    let (agent, root) = answer.trim_end_matches('\n').split_once(' ')?;
    Identity::from_address(agent, town.registry()).filter(|_| root == town.root_text())
}

/// Returns the agent whose running session has this folder, or a parent of it, as its work folder:
/// agents may be started in any folder.
fn by_session(town: &Town, dir: &Path) -> Result<Option<Identity>> {
    let running = Sessions::of(town).find(&SessionQuery {
        status: Some(SessionStatus::Running.as_str().to_owned()),
        ..SessionQuery::default()
    })?;
    let mut here = running.into_iter().filter(|session| {
        let cwd = session.cwd.as_deref().map(Path::new);
        cwd.is_some_and(|cwd| dir.starts_with(cwd))
    });
    // If several agents run in this folder, none of them is chosen.
    let agent = match (here.next(), here.next()) {
        (Some(only), None) => only.agent,
        _ => None,
    };
    Ok(agent.and_then(|agent| Identity::from_address(&agent, town.registry())))
}

/// Resolves a target for queries, and fails if the agent is unknown: that is a typing error, and
/// not an agent without work. A removed agent is known as long as it has records.
pub fn resolve_known(town: &Town, text: &str) -> Result<Identity> {
    let agent = resolve(town, text)?;
    check_known(town, &agent)?;
    Ok(agent)
}

/// Fails if the agent has no folder, no work, no session and no container.
pub fn check_known(town: &Town, agent: &Identity) -> Result<()> {
    let query = SessionQuery {
        agent: Some(agent.address()),
        limit: Some(1),
        ..SessionQuery::default()
    };
    let is_known = directory::has(town, agent)
        || Work::of(town).hooked(&agent.address())?.is_some()
        || Work::of(town).molecule(&agent.address())?.is_some()
        || !Sessions::of(town).find(&query)?.is_empty()
        || containers::of_agent(&adopted::home_of(town, agent), agent)?.is_some();
    match is_known {
        true => Ok(()),
        false => {
            let problem = Problem::not_found(format!("there is no agent {agent}"));
            let problem =
                target::with_similar(problem, &agent.address(), &directory::on_disk(town));
            Err(problem.hint("`gt agents --stopped` lists all agents"))
        }
    }
}

/// Returns whether the target depends on the existing agents.
fn is_ambiguous(text: &str, identity: &Identity) -> bool {
    match identity.role() {
        // A container name cannot contain the dots of a task's id; only the container's tag has the
        // id.
        Role::Task => true,
        // The id of a work item looks like a polecat's container, and may mean the item's agent.
        Role::Polecat => text.parse::<WorkId>().is_ok(),
        _ => false,
    }
}

/// Returns all agents, on disk or running, without duplicates.
pub fn all(town: &Town, containers: &[Container]) -> Result<Vec<KnownAgent>> {
    let mut known = running(containers);
    add_stopped(town, &mut known, directory::on_disk(town))?;
    Ok(known)
}

fn running(containers: &[Container]) -> Vec<KnownAgent> {
    let agent = |container: &Container| {
        Some(KnownAgent {
            identity: container.identity()?.clone(),
            container: container.name().to_owned(),
            session: container.session_id(),
            running: true,
        })
    };
    containers.iter().filter_map(agent).collect()
}

fn add_stopped(town: &Town, known: &mut Vec<KnownAgent>, on_disk: Vec<Identity>) -> Result<()> {
    let running: HashSet<Identity> = known.iter().map(|agent| agent.identity.clone()).collect();
    for identity in on_disk.into_iter().filter(|it| !running.contains(it)) {
        known.push(KnownAgent {
            container: roles::container_name(town, &identity)?,
            identity,
            session: None,
            running: false,
        });
    }
    Ok(())
}

/// Resolves a target against containers that were already read.
pub fn resolve_among(town: &Town, text: &str, containers: &[Container]) -> Result<Identity> {
    let agent = find_among(town, text, all(town, containers)?)?;
    town.authorize(&agent)?;
    Ok(agent)
}

fn find_among(town: &Town, text: &str, known: Vec<KnownAgent>) -> Result<Identity> {
    if known.iter().all(|agent| agent.container != text)
        && let Some(holder) = holder(town, text)
    {
        return Ok(holder);
    }
    let identity = target::resolve(text, town.registry(), &known)?;
    let is_known = known.iter().any(|agent| agent.identity == identity);
    // The id of an existing item names its task, if there is no such polecat.
    match text.parse::<WorkId>() {
        Ok(id) if identity.role() == Role::Polecat && !is_known => {
            match Work::of(town).get(&id).is_ok() {
                true => Ok(Identity::task(id.as_str(), town.registry())),
                false => Ok(identity),
            }
        }
        _ => Ok(identity),
    }
}

/// Returns the agent that holds a work item; `None` if the items cannot be read, so that agents are
/// still found by name.
fn holder(town: &Town, text: &str) -> Option<Identity> {
    let id: WorkId = text.parse().ok()?;
    let work = Work::of(town);
    let id = work.expand(&id).or_debug("the id is ambiguous")?;
    let holder = work.holder(&id);
    let holder = holder.or_warn(format_args!("the agent of {id} is unknown"))??;
    Identity::from_address(&holder, town.registry())
}
