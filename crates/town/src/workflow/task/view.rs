//! The list of tasks: items on the hooks of tasks' agents, and their containers.

use super::{is_task_container, tag_of, tags};
use crate::agents::listing::{self, AgentFilter, AgentView};
use crate::agents::states::{ResolverReport, States};
use crate::base::or_log::OrLog;
use crate::records::items::Work;
use crate::repo::workspace::WorktreesByBranch;
use crate::repo::{project, workspace};
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use gt_core::work::{Item, WorkId};
use gt_core::{Identity, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Snapshot of one task.
#[derive(Clone, Debug)]
pub struct Task {
    pub id: WorkId,
    pub agent: Identity,
    pub item: Option<Item>,
    /// Its container and state, if it has one.
    pub view: Option<AgentView>,
    /// The init commands are done in this container.
    pub initialized: bool,
    /// Folder of its worktree, if it has one.
    pub work_dir: Option<PathBuf>,
    pub branch: Option<String>,
    pub windows: Vec<TaskWindow>,
    /// Agent beside the task's agent that resolves the conflicts of a merge.
    pub resolver: Option<ResolverReport>,
}

/// A window that `gt` opened beside the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWindow {
    pub name: String,
    pub running: bool,
    pub exit_code: Option<i32>,
}

/// Returns the tasks of the town, or of one rig.
pub fn list(town: &Town, rig: Option<&str>) -> Result<Vec<Task>> {
    let containers = containers::list(town)?;
    let running = containers
        .iter()
        .filter(|container| is_task_container(container));
    let mut tasks: BTreeSet<Identity> = running.filter_map(Container::identity).cloned().collect();
    for (address, _) in Work::of(town).hooks()? {
        let agent = Identity::from_address(&address, town.registry());
        tasks.extend(agent.filter(|agent| agent.role() == Role::Task));
    }
    tasks.retain(|agent| rig.is_none_or(|rig| agent.rig() == Some(rig)));
    let wanted = AgentFilter {
        role: Some(Role::Task),
        ..AgentFilter::default()
    };
    let views = listing::list_among(town, &containers, wanted)?;
    // Read once per rig, because there may be many tasks.
    let mut projects = BTreeMap::new();
    let mut elsewhere = BTreeMap::new();
    tasks
        .into_iter()
        .map(|agent| {
            let rig = agent.rig().unwrap_or_default().to_owned();
            let project = projects.entry(rig.clone()).or_insert_with_key(|rig| {
                let project = project::of_rig(town, rig);
                project.or_warn(format_args!("the settings of {rig} are unknown"))
            });
            let project = project.as_ref();
            let by_template = project
                .and_then(|project| workspace::task_worktree_at_template(town, &agent, project));
            let dir = by_template.or_else(|| {
                let others = elsewhere.entry(rig);
                let others = others.or_insert_with_key(|rig| WorktreesByBranch::of_rig(town, rig));
                others.worktree(town, &agent)
            });
            snapshot(town, agent, dir, &containers, &views)
        })
        .collect()
}

/// Returns one task. Fails if there is neither an item nor a container.
pub fn show(town: &Town, id: &WorkId) -> Result<Task> {
    let agent = Identity::task(id.as_str(), town.registry());
    let containers = containers::list(town)?;
    let wanted = AgentFilter {
        role: Some(Role::Task),
        ..AgentFilter::default()
    };
    let views = listing::list_among(town, &containers, wanted)?;
    let dir = workspace::task_worktree(town, &agent);
    let task = snapshot(town, agent, dir, &containers, &views)?;
    if task.item.is_none() && task.view.is_none() {
        // Fails with similar ids.
        Work::of(town).get(id)?;
    }
    Ok(task)
}

fn snapshot(
    town: &Town,
    agent: Identity,
    work_dir: Option<PathBuf>,
    containers: &[Container],
    views: &[AgentView],
) -> Result<Task> {
    let id: WorkId = agent.short_name().parse()?;
    let mut its = containers.iter();
    let container = its.find(|container| container.identity() == Some(&agent));
    Ok(Task {
        item: Work::of(town).lookup(&id)?,
        view: views.iter().find(|view| view.identity == agent).cloned(),
        initialized: match container {
            Some(container) => tag_of(town, container, tags::INIT_DONE)? == "1",
            None => false,
        },
        branch: work_dir
            .as_deref()
            .and_then(|dir| workspace::current_branch(town, dir)),
        windows: container.map_or_else(Vec::new, windows),
        resolver: container.and_then(|container| States::default().read_resolver(town, container)),
        work_dir,
        id,
        agent,
    })
}

fn windows(container: &Container) -> Vec<TaskWindow> {
    let own = container.own_windows();
    own.map(|row| TaskWindow {
        name: row.tag_window.clone(),
        running: !row.dead,
        exit_code: row.exit_status.filter(|_| row.dead),
    })
    .collect()
}
