//! Finds what exists under the name of a start, and decides where the agent's process goes.

use super::error::StartError;
use super::prepared::Prepared;
use super::restored::Restored;
use crate::base::{fault, processes};
use crate::lifecycle::stop::{self, LeavingProcesses};
use crate::records::items::HandedOver;
use crate::terminal::containers::linked;
use crate::terminal::containers::{self, Container, Owner};
use crate::terminal::{adopted, appearance, pidfile};
use crate::{Result, Town};
use gt_core::health::{self, Health, Vitals};
use gt_core::problem::ProblemKind;
use gt_core::record::Outcome;
use gt_core::state::State;
use gt_core::{Identity, Problem};
use gt_tmux::PaneId;
use std::borrow::Cow;
use std::time::Duration;

/// The place for the agent's process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StartPlace {
    /// A new container.
    New,
    /// The pane of an agent that died.
    Respawn(PaneId),
    /// A new window, because the agent's pane is gone but the user's panes are not.
    Window,
}

/// Existing state under the name of a start: where the start's process goes, and which session it
/// replaces.
pub(super) struct Existing {
    pub(super) place: StartPlace,
    pub(super) keys_tag: String,
    /// The session that is replaced.
    pub(super) previous: Option<Previous>,
    /// The container in which it still runs, if it has handed over.
    pub(super) leaving: Option<Container>,
    /// The container of an adopted program that has handed over: it is released, and the pane stays
    /// with the person who started the program.
    pub(super) given_back: Option<Container>,
    /// Hash of the settings of its container, if the next session stays in it.
    pub(super) options_tag: String,
    /// The work that the replaced session has just handed over.
    pub(super) handed: Option<HandedOver>,
}

impl Existing {
    fn new(place: StartPlace, keys_tag: String) -> Self {
        Existing {
            place,
            keys_tag,
            previous: None,
            leaving: None,
            given_back: None,
            options_tag: String::new(),
            handed: None,
        }
    }

    /// Returns the processes of a session that has handed over. They are found by their parents, so
    /// this must be called while it still runs.
    pub(super) fn leaving_processes(&self) -> Option<LeavingProcesses> {
        let leaving = self.leaving.as_ref()?;
        let roots = [leaving.pane().pid, std::process::id()];
        LeavingProcesses::of(leaving, &processes::trees(&roots))
    }
}

/// The session before the one that is started.
pub(super) struct Previous {
    pub(super) id: String,
    pub(super) chain: String,
    pub(super) outcome: Outcome,
    pub(super) died_at: Option<i64>,
    pub(super) exit_code: Option<i32>,
    /// The journal already has its end.
    pub(super) is_ended: bool,
}

impl From<&Restored> for Previous {
    fn from(lost: &Restored) -> Self {
        Previous {
            id: lost.session.clone(),
            chain: lost.chain.clone(),
            outcome: Outcome::Crash,
            died_at: None,
            exit_code: None,
            is_ended: lost.is_ended,
        }
    }
}

impl Previous {
    fn of(container: &Container) -> Option<Self> {
        let row = container.pane();
        let id = container.session_id()?.to_string();
        let chain = Some(row.tag_chain.clone()).filter(|chain| !chain.is_empty());
        Some(Previous {
            chain: chain.unwrap_or_else(|| id.clone()),
            id,
            outcome: container.outcome(),
            died_at: row.died_at,
            exit_code: row.exit_status,
            is_ended: false,
        })
    }
}

/// Checks what exists under that name: nothing, a live agent, a foreign session, or a zombie.
pub(super) fn existing(
    town: &Town,
    identity: &Identity,
    prepared: &Prepared<'_>,
) -> Result<Existing, StartError> {
    refuse_adopted_elsewhere(town, identity)?;
    let name = prepared.container.as_str();
    let own = containers::of_agent(town, identity)?;
    if let Some(own) = &own {
        refuse_elsewhere(own, name, identity)?;
    }
    // A session of another owner may have its name.
    let named = match &own {
        Some(own) => Some(own.clone()),
        None => containers::find(town, name)?,
    };
    let keys_tag = appearance::keys_tag(town)?;
    pidfile::refuse_elsewhere(town, identity, name).map_err(StartError::Running)?;
    if let Some(pane) = prepared.options.respawn_of {
        let wanted = own.as_ref().is_some_and(|container| {
            let row = container.pane();
            row.pane == pane && row.dead && row.tag_auto_respawn
        });
        if !wanted {
            let words = format!("the restart of {identity} is no longer wanted");
            return Err(StartError::Taken(Problem::conflict(words)));
        }
    }
    let mut place = StartPlace::New;
    let mut previous = None;
    if let Some(container) = &named {
        refuse_others(container, identity)?;
        if container.is_vacant() {
            return Ok(Existing::new(StartPlace::Window, keys_tag));
        }
        if container.session_id().is_none() && !container.pane().dead {
            // Only a shell, in which the worktree was or is being prepared.
            return match prepared.options.after_shell {
                true => Ok(Existing::new(
                    StartPlace::Respawn(container.pane().pane),
                    keys_tag,
                )),
                false => Err(running(
                    format!("{identity} has a shell in {name}, and no agent yet"),
                    format!(
                        "`gt task start {}` continues from there",
                        identity.short_name()
                    ),
                )),
            };
        }
        if health(container) == Health::Healthy {
            return Err(running(
                format!("{identity} is running already, in {name}"),
                format!("`gt attach {identity}` goes there, `gt stop {identity}` ends it"),
            ));
        }
        stop::end_processes(town, std::slice::from_ref(container), Duration::ZERO);
        previous = Previous::of(container);
        if container.adopted().is_some() {
            // The pane belongs to the person, so the agent gets its own container or a window.
            stop::remove_container(town, container)?;
            let place = match containers::find(town, name)? {
                Some(_) => StartPlace::Window,
                None => StartPlace::New,
            };
            return Ok(Existing {
                previous,
                ..Existing::new(place, keys_tag)
            });
        }
        // The container is reused, so that attached clients and the user's panes stay.
        place = if container.lost_agent_pane() {
            StartPlace::Window
        } else {
            StartPlace::Respawn(container.pane().pane)
        };
    }
    Ok(Existing {
        previous,
        ..Existing::new(place, keys_tag)
    })
}

/// Returns the place of a session that has handed over. It may still run: it is replaced in its
/// pane, which is never dead in between, so that no process mistakes this for a crash.
pub(super) fn taken_over(
    town: &Town,
    prepared: &Prepared<'_>,
    container: Container,
    handed: Option<HandedOver>,
) -> Result<Existing, StartError> {
    let identity = prepared.identity;
    let before = prepared.options.takes_over.as_ref();
    if before.is_none_or(|before| before.session != container.pane().tag_session) {
        let words = format!("{identity} is no longer in the session that handed over");
        return Err(StartError::Taken(Problem::conflict(words)));
    }
    let previous = Previous::of(&container).map(|before| Previous {
        outcome: Outcome::Handoff,
        died_at: None,
        exit_code: None,
        ..before
    });
    if container.adopted().is_some() {
        return Ok(Existing {
            previous,
            given_back: Some(container),
            handed,
            ..Existing::new(StartPlace::New, appearance::keys_tag(town)?)
        });
    }
    refuse_elsewhere(&container, prepared.container.as_str(), identity)?;
    let place = match container.lost_agent_pane() {
        true => StartPlace::Window,
        false => StartPlace::Respawn(container.pane().pane),
    };
    let existing = Existing {
        previous,
        options_tag: container.pane().tag_options.clone(),
        handed,
        ..Existing::new(place, appearance::keys_tag(town)?)
    };
    let died = container.pane().dead || container.lost_agent_pane();
    Ok(Existing {
        leaving: (!died).then_some(container),
        ..existing
    })
}

/// Releases the container of an adopted program to the person who started it. Returns the place of
/// the next session.
pub(super) fn release_adopted(
    town: &Town,
    name: &str,
    container: &Container,
) -> Result<StartPlace> {
    linked::release(&container.home(town), container)?;
    fault::point(town, "handoff.given_back");
    // Removed last: while the container exists, only the note names its server.
    if let Some(identity) = container.identity() {
        linked::forget(town, identity);
    }
    // A tmux session of the person stays.
    Ok(match containers::find(town, name)? {
        Some(_) => StartPlace::Window,
        None => StartPlace::New,
    })
}

/// Fails if the agent was adopted on another tmux server and still runs there.
fn refuse_adopted_elsewhere(town: &Town, identity: &Identity) -> Result<(), StartError> {
    let Cow::Owned(home) = adopted::home_of(town, identity) else {
        return Ok(());
    };
    match containers::of_agent(&home, identity)? {
        Some(container) if !container.pane().dead && !container.lost_agent_pane() => Err(running(
            format!(
                "{identity} is running already, on the tmux server {}",
                home.server().socket_path().display()
            ),
            format!("`gt attach {identity}` goes there, `gt stop {identity}` ends it"),
        )),
        Some(container) => Ok(stop::remove_container(&home, &container)?),
        None => {
            linked::forget(town, identity);
            Ok(())
        }
    }
}

/// Fails if the agent's container has another name than it would get now.
fn refuse_elsewhere(own: &Container, name: &str, identity: &Identity) -> Result<(), StartError> {
    if own.name() == name {
        return Ok(());
    }
    let words = format!("{identity} is in the container {} already", own.name());
    let hint = format!("`gt stop {identity}` ends it, whatever the container is called");
    Err(StartError::Taken(Problem::conflict(words).hint(hint)))
}

/// Fails if the container of that name belongs to another agent, town or person.
pub(crate) fn refuse_others(container: &Container, identity: &Identity) -> Result<(), StartError> {
    let name = container.name();
    let taken = match container.owner() {
        Owner::Agent(owner) if owner == identity => return Ok(()),
        Owner::Person if container.is_vacant() => return Ok(()),
        Owner::Agent(owner) => Problem::conflict(format!("the container {name} holds {owner}")),
        Owner::OtherTown(root) => Problem::conflict(format!(
            "the container {name} belongs to the town at {root}"
        ))
        .hint("give this town a tmux server of its own: `socket` under [tmux] in town.toml"),
        Owner::Orphan(_) => {
            let problem = Problem::new(
                ProblemKind::Running,
                format!("there is a tmux session {name} that gt did not start"),
            );
            return Err(StartError::Running(
                problem
                    .hint(format!(
                        "`gt adopt {name}` makes the program in it an agent"
                    ))
                    .hint(format!(
                        "or rename it: `tmux rename-session -t ={name} NEW-NAME`"
                    )),
            ));
        }
        Owner::Named(_) | Owner::Person => Problem::conflict(format!(
            "there is a tmux session {name} that gt did not start"
        ))
        .hint(format!(
            "rename it: `tmux rename-session -t ={name} NEW-NAME`"
        )),
    };
    Err(StartError::Taken(taken))
}

fn running(message: String, hint: String) -> StartError {
    StartError::Running(Problem::new(ProblemKind::Running, message).hint(hint))
}

fn health(container: &Container) -> Health {
    if container.lost_agent_pane() {
        return Health::AgentDead;
    }
    let names = container.process_names();
    let pane = container.pane();
    let mut table = processes::trees(&[pane.pid]);
    processes::tree_has(&mut table, pane.pid, &names);
    let vitals = Vitals {
        pane_dead: pane.dead,
        pane_pid: pane.pid,
        process_names: &names,
        state: State::Running,
        silent_seconds: 0,
        hung_after_seconds: u64::MAX,
    };
    health::examine(&vitals, &table)
}
