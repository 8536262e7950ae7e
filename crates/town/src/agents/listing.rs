//! The agents of a town as `gt agents` shows them.

use crate::agents::states::States;
use crate::base::dnd::{self, DndNote};
use crate::base::processes;
use crate::catalog::{directory, roles};
use crate::records::keepalive;
use crate::repo::workspace;
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use gt_core::health::{self, Health, Vitals};
use gt_core::process::ProcessTable;
use gt_core::sandbox::SandboxLevel;
use gt_core::session::SessionId;
use gt_core::state::{State, StateReport, StateSource};
use gt_core::{Identity, Role};
use gt_tmux::PaneId;

/// One agent, running or not.
#[derive(Clone, Debug)]
pub struct AgentView {
    pub identity: Identity,
    pub container: String,
    pub harness: Option<String>,
    /// Model that it was started with; `None` if the program chose it.
    pub model: Option<String>,
    pub report: StateReport,
    pub health: Health,
    pub session: Option<SessionId>,
    pub pid: Option<u32>,
    pub pane: Option<PaneId>,
    pub work_dir: Option<String>,
    pub attached: bool,
    /// Seconds since the epoch.
    pub created_at: Option<i64>,
    /// Whether a person started the program and `gt` adopted it.
    pub adopted: bool,
    /// The socket of its tmux server, if that is not the town's.
    pub socket: Option<String>,
    /// Seconds since its last `gt` command; `None` if it does not run or has never run one.
    pub keepalive_age: Option<i64>,
    /// Level of the sandbox of its program; `None` if it does not run.
    pub sandbox: Option<SandboxLevel>,
    /// Whether its program runs without permission prompts.
    pub never_asks: bool,
    /// Set while do-not-disturb is on.
    pub dnd: Option<DndNote>,
}

impl AgentView {
    /// Returns whether the agent's process runs. A dead agent may still have a container.
    pub fn is_alive(&self) -> bool {
        !matches!(self.health, Health::SessionDead | Health::AgentDead)
    }

    /// Returns whether it can do what its user can, without asking.
    pub fn is_unconfined(&self) -> bool {
        self.is_alive() && self.never_asks && self.sandbox == Some(SandboxLevel::None)
    }
}

/// Selects the agents of a listing.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentFilter<'a> {
    /// Includes agents that do not run.
    pub stopped: bool,
    /// Only agents of this rig.
    pub rig: Option<&'a str>,
    /// Only agents of this role.
    pub role: Option<Role>,
}

/// Returns the town's agents, sorted: town roles first, then by rig, role and name.
pub fn list(town: &Town, wanted: AgentFilter<'_>) -> Result<Vec<AgentView>> {
    let containers = containers::list_everywhere(town)?;
    list_among(town, &containers, wanted)
}

/// Returns the town's agents from containers that were already read
/// ([`containers::list_everywhere`]), sorted as by [`list`].
pub fn list_among(
    town: &Town,
    containers: &[Container],
    wanted: AgentFilter<'_>,
) -> Result<Vec<AgentView>> {
    let mut agents = running_among(town, containers, wanted)?;
    if wanted.stopped {
        let is_wanted = |identity: &Identity| wanted.takes(identity);
        for identity in directory::on_disk(town).into_iter().filter(is_wanted) {
            if agents.iter().all(|agent| agent.identity != identity) {
                // `gt doctor` reports agents with broken settings; the listing omits them.
                agents.extend(stopped(town, identity).ok());
            }
        }
    }
    agents.sort_by(|a, b| order(&a.identity).cmp(&order(&b.identity)));
    Ok(agents)
}

/// Returns the agents in these containers.
fn running_among(
    town: &Town,
    containers: &[Container],
    wanted: AgentFilter<'_>,
) -> Result<Vec<AgentView>> {
    let ours: Vec<(&Identity, &Container)> = containers
        .iter()
        .filter_map(|container| Some((container.identity()?, container)))
        .filter(|(identity, _)| wanted.takes(identity))
        .collect();
    let mut table = if ours.is_empty() {
        ProcessTable::default()
    } else {
        processes::snapshot()
    };
    let now = town.clock().seconds();
    let theirs: Vec<&Container> = ours.iter().map(|(_, container)| *container).collect();
    let reports = States::default().read(town, &theirs);
    let agents = ours
        .iter()
        .zip(reports)
        .map(|((identity, container), report)| {
            view(town, identity, container, report, &mut table, now)
        });
    Ok(agents.collect())
}

impl AgentFilter<'_> {
    fn takes(&self, identity: &Identity) -> bool {
        self.rig.is_none_or(|rig| identity.rig() == Some(rig))
            && self.role.is_none_or(|role| identity.role() == role)
    }
}

/// Returns the sort key: the town's own agents in the order of their roles, then each rig.
pub(crate) fn order(identity: &Identity) -> (bool, Option<&str>, Role, Option<&str>) {
    (
        identity.rig().is_some() || matches!(identity.role(), Role::Agent | Role::Task),
        identity.rig(),
        identity.role(),
        identity.name(),
    )
}

fn view(
    town: &Town,
    identity: &Identity,
    container: &Container,
    report: StateReport,
    table: &mut ProcessTable,
    now: i64,
) -> AgentView {
    let pane = container.pane();
    let names = container.process_names();
    let alive = !pane.dead && !container.lost_agent_pane();
    if alive {
        processes::tree_has(table, pane.pid, &names);
    }
    let silent = u64::try_from(now - pane.activity).unwrap_or_default();
    let vitals = Vitals {
        pane_dead: !alive,
        pane_pid: pane.pid,
        process_names: &names,
        state: report.state,
        silent_seconds: silent,
        hung_after_seconds: town.settings().limits.hung_after_minutes * 60,
    };
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    AgentView {
        identity: identity.clone(),
        container: container.name().to_owned(),
        harness: text(&pane.tag_harness),
        model: text(&pane.tag_model),
        health: health::examine(&vitals, table),
        report,
        session: container.session_id(),
        pid: alive.then_some(pane.pid),
        pane: Some(pane.pane),
        work_dir: text(&pane.folder()),
        attached: container.is_attached(),
        created_at: Some(pane.created),
        adopted: container.adopted().is_some(),
        socket: container.socket().map(|path| path.display().to_string()),
        keepalive_age: keepalive::read(town, identity).and_then(|it| keepalive::age(&it, now)),
        // Agents of earlier versions have no tag, and no sandbox.
        sandbox: Some(SandboxLevel::from_word(&pane.tag_sandbox).unwrap_or_default()),
        never_asks: pane.tag_never_asks,
        dnd: dnd::read(town, &identity.address()),
    }
}

fn stopped(town: &Town, identity: Identity) -> Result<AgentView> {
    let role = roles::resolve(town, identity.role(), identity.rig())?.value;
    Ok(AgentView {
        container: roles::container_by(town, &identity, &role)?,
        work_dir: Some(
            workspace::path(town, &identity, &role)?
                .display()
                .to_string(),
        ),
        harness: None,
        model: None,
        report: StateReport::new(State::Stopped, StateSource::Process),
        health: Health::SessionDead,
        session: None,
        pid: None,
        pane: None,
        attached: false,
        created_at: None,
        adopted: false,
        socket: None,
        keepalive_age: None,
        sandbox: None,
        never_asks: false,
        dnd: dnd::read(town, &identity.address()),
        identity,
    })
}
