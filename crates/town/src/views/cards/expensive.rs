//! The expensive facts about one card, and the stamp that tells when they are out of date.

use super::{WorkSite, task};
use crate::Town;
use crate::base::git;
use crate::base::or_log::OrLog;
use crate::catalog::roles;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::records::usage;
use crate::repo::workspace::WorktreesByBranch;
use crate::repo::{base_branch, project, workspace};
use crate::terminal::containers::{Container, PaneRow};
use crate::terminal::{containers, dev_servers};
use crate::views::monitor::{self, Files};
use crate::workflow::task::BaseAt;
use gt_core::card::{Branch, Card, CardAgent, CardServer, ServerState};
use gt_core::project::Project;
use gt_core::state::State;
use gt_core::usage::Usage;
use gt_core::work::WorkId;
use gt_core::{Identity, Role};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The expensive facts, with the stamp of when they were read.
#[derive(Debug)]
pub(super) struct ExpensiveFacts {
    branch: Option<Branch>,
    servers: Vec<CardServer>,
    usage: Option<Usage>,
    stamp: Stamp,
}

/// Values whose change makes the facts out of date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Time of the container's last output, and the agent's state with its start.
    activity: Option<i64>,
    state: Option<State>,
    since: Option<i64>,
    /// The windows beside the agent, and how they ended.
    windows: Vec<WindowStamp>,
    base: Option<String>,
    /// Git files of the worktree, for change detection.
    pub(super) git: Files,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WindowStamp {
    name: String,
    dead: bool,
    /// Exit status and signal. tmux may report them a moment after the death.
    end: (Option<i32>, Option<i32>),
    /// The last recorded result of the port check.
    answers: String,
}

impl WindowStamp {
    fn of(row: &PaneRow) -> Self {
        WindowStamp {
            name: row.tag_window.clone(),
            dead: row.dead,
            end: (row.exit_status, row.exit_signal),
            answers: row.tag_answers.clone(),
        }
    }
}

impl Stamp {
    pub(super) fn of(
        container: Option<&Container>,
        session: Option<&CardAgent>,
        base: Option<&BaseAt>,
        dir: Option<&Path>,
    ) -> Self {
        let windows = container.map_or_else(Vec::new, |container| {
            container.own_windows().map(WindowStamp::of).collect()
        });
        Stamp {
            activity: container.map(|container| container.pane().activity),
            state: session.map(|session| session.state),
            since: session.and_then(|session| session.since),
            windows,
            base: base.map(|base| base.commit.clone()),
            git: dir.map_or_else(Files::new, |dir| monitor::stamps(git::own_files(dir))),
        }
    }
}

impl ExpensiveFacts {
    pub(super) fn find(town: &Town, id: &WorkId, site: &WorkSite) -> Self {
        let dir = site.dir.as_deref();
        let branch = dir
            .zip(site.base.as_ref())
            .and_then(|(dir, base)| {
                // A worktree that is still being created has no facts yet.
                let facts = task::branch_facts(town, dir, base);
                facts.or_debug(format_args!("the branch of {id} is unknown"))
            })
            .map(|branch| Branch {
                // Committed conflicts need no resolver, even if its process still runs.
                resolver: branch.merging && has_resolver(site.container.as_ref()),
                ..branch
            });
        ExpensiveFacts {
            branch,
            servers: dir.map_or_else(Vec::new, |dir| servers(town, site, dir)),
            usage: usage_of(town, id),
            stamp: site.stamp.clone(),
        }
    }

    pub(super) fn is_stale(&self, now: &Stamp) -> bool {
        self.stamp != *now || self.servers.iter().any(is_starting)
    }

    pub(super) fn fill(&self, card: &mut Card) {
        card.branch.clone_from(&self.branch);
        card.servers.clone_from(&self.servers);
        card.usage.clone_from(&self.usage);
    }
}

pub(super) fn is_in_motion(card: &Card) -> bool {
    let state = card.session.as_ref().map(|session| session.state);
    let works = matches!(
        state,
        Some(State::Busy | State::Initializing | State::Starting)
    );
    works || card.servers.iter().any(is_starting)
}

fn is_starting(server: &CardServer) -> bool {
    server.state == ServerState::Starting
}

fn servers(town: &Town, site: &WorkSite, dir: &Path) -> Vec<CardServer> {
    let found = dev_servers::of_agent(town, &site.agent, dir, site.container.as_ref());
    let found = found.or_warn(format_args!("the servers of {} are unknown", site.agent));
    let servers = found.unwrap_or_default().into_iter();
    servers
        .map(|server| CardServer {
            state: match server.state {
                dev_servers::DevServerState::Running => ServerState::Running,
                dev_servers::DevServerState::Starting => ServerState::Starting,
                dev_servers::DevServerState::Stopped => ServerState::Stopped,
                dev_servers::DevServerState::Error => ServerState::Error,
            },
            name: server.name,
            port: server.port,
            since: server.since,
            reason: server.reason,
        })
        .collect()
}

/// Returns whether an agent resolves the conflicts of a merge beside this agent.
fn has_resolver(container: Option<&Container>) -> bool {
    container.is_some_and(|container| {
        let mut windows = container.own_windows();
        windows.any(|row| row.tag_window == containers::RESOLVER_WINDOW && !row.dead)
    })
}

/// Returns the usage of all sessions for the item while it was on their hook.
fn usage_of(town: &Town, id: &WorkId) -> Option<Usage> {
    let query = SessionQuery {
        work: Some(id.to_string()),
        ..SessionQuery::default()
    };
    let sessions = Sessions::of(town).find(&query);
    let mut sessions = sessions.or_warn(format_args!("the usage of {id} is unknown"))?;
    usage::refresh(town, &mut sessions);
    usage::keep_shares(&mut sessions, id.as_str());
    let mut all = sessions.iter().filter_map(|session| session.usage.as_ref());
    let mut sum = all.next()?.clone();
    for more in all {
        sum += more;
    }
    Some(sum.rounded())
}

/// Locations of worktrees and commits of their bases, read once per rig.
#[derive(Debug, Default)]
pub(super) struct WorktreeLocations {
    bases: HashMap<String, Option<BaseAt>>,
    /// Git files of the bases, with their state before the bases were read.
    pub(super) files: Files,
    projects: HashMap<(String, String), Option<Project>>,
    elsewhere: HashMap<String, WorktreesByBranch>,
}

impl WorktreeLocations {
    /// Clears the bases for a new round: bases move.
    pub(super) fn begin(&mut self) {
        self.bases.clear();
        self.files.clear();
    }

    pub(super) fn base(&mut self, town: &Town, rig: &str) -> Option<BaseAt> {
        if let Some(known) = self.bases.get(rig) {
            return known.clone();
        }
        let files = monitor::stamps(base_branch::files(town, rig));
        self.files.extend(files);
        let base = task::base_of(town, rig).or_warn(format_args!("the base of {rig} is unknown"));
        self.bases.insert(rig.to_owned(), base.clone());
        base
    }

    /// Returns the folder of an agent's worktree, if it exists.
    pub(super) fn worktree(&mut self, town: &Town, agent: &Identity, rig: &str) -> Option<PathBuf> {
        if agent.role() != Role::Task {
            let unknown = format!("the folder of {agent} is unknown");
            let role = roles::resolve(town, agent.role(), agent.rig()).or_warn(&unknown)?;
            let dir = workspace::path(town, agent, &role.value).or_warn(&unknown)?;
            return dir.join(".git").exists().then_some(dir);
        }
        // The project's settings change only with the base commit.
        let base = self.base(town, rig)?;
        let key = (rig.to_owned(), base.commit);
        let project = self.projects.entry(key).or_insert_with(|| {
            let project = project::of_rig(town, rig);
            project.or_warn(format_args!("the settings of {rig} are unknown"))
        });
        let project = project.as_ref();
        let by_template =
            project.and_then(|project| workspace::task_worktree_at_template(town, agent, project));
        by_template.or_else(|| self.elsewhere(town, rig).worktree(town, agent))
    }

    /// Returns the rig's worktrees outside the usual place. Cached per rig, so that git is not
    /// called for each item.
    fn elsewhere(&mut self, town: &Town, rig: &str) -> &WorktreesByBranch {
        let known = self.elsewhere.entry(rig.to_owned());
        let known = known.or_insert_with_key(|rig| WorktreesByBranch::of_rig(town, rig));
        if known.is_old(town, rig) {
            *known = WorktreesByBranch::of_rig(town, rig);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn unknown_base_and_usage_are_logged() {
        let (_folder, town) = town();
        let (base, warnings) = warnings_of(|| WorktreeLocations::default().base(&town, "nope"));
        assert!(base.is_none());
        assert!(
            warnings[0].starts_with("the base of nope is unknown"),
            "{warnings:?}"
        );
        let journal = Sessions::of(&town).journal_path().to_owned();
        std::fs::create_dir_all(&journal).unwrap();
        let (usage, warnings) = warnings_of(|| usage_of(&town, &"gt-abc12".parse().unwrap()));
        assert!(usage.is_none());
        assert!(
            warnings[0].starts_with("the usage of gt-abc12 is unknown"),
            "{warnings:?}"
        );
    }
}
