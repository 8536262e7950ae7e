//! Restores saved containers: each under its name, with its windows and their contents, and its
//! agent in its last conversation.
//!
//! [`plan`] returns what a restore would do; [`restore`] does it for one container, through the
//! usual start. `start/layout.rs` recreates the user's own windows and panes beside the agent.

mod source;

pub use source::{RestoreSource, find, lost_agents};

use crate::base::lock::FileLock;
use crate::base::{fault, processes};
use crate::catalog::{harnesses, roles};
use crate::lifecycle::start::{self, Restored, StartError, StartOptions, StartedAgent, restored};
use crate::lifecycle::stop;
use crate::messaging::nudge;
use crate::records::items::Work;
use crate::records::sessions::{SessionEnd, Sessions};
use crate::repo::workspace;
use crate::terminal::containers::{self, Container, Owner};
use crate::{Result, Town};
use gt_core::record::{Outcome, Record};
use gt_core::save::{self as core, NameOwner, RestoreDecision, SavedContainer};
use gt_core::startup::Conversation;
use gt_core::{Identity, Problem, Role};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for another restore: it may start many slow agents.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A saved container, and the decision about it.
#[derive(Clone, Debug)]
pub struct RestoreIntent {
    pub identity: Identity,
    pub saved: SavedContainer,
    pub verdict: RestoreDecision,
    pub conversation: Conversation,
    /// The tmux server of its last session, if that is not the town's. It is restored on the town's
    /// server.
    pub other_server: Option<String>,
    /// The agent's newest session in the journal.
    last: Option<Record>,
}

/// An agent that was restored.
#[derive(Clone, Debug)]
pub struct RestoredAgent {
    pub started: StartedAgent,
    pub conversation: Conversation,
}

/// Returns the decision for each of these containers, or only for the named ones. A container whose
/// rig is gone is left out, with a warning.
pub fn plan(
    town: &Town,
    source: &RestoreSource,
    named: &[Identity],
) -> Result<(Vec<RestoreIntent>, Vec<String>)> {
    let sessions = Sessions::of(town);
    let all = containers::list_everywhere(town)?;
    let socket = town.server().socket_path();
    let (mut intents, mut warnings) = (Vec::new(), Vec::new());
    let mut records = Vec::new();
    for saved in &source.containers {
        records.push(sessions.newest_of(&saved.agent)?);
    }
    let folders: Vec<Option<&str>> = source
        .containers
        .iter()
        .zip(&records)
        .map(|(saved, last)| folder(saved).or(last.as_ref()?.cwd.as_deref()))
        .collect();
    for (place, (saved, last)) in source.containers.iter().zip(&records).enumerate() {
        let Some(identity) = Identity::from_address(&saved.agent, town.registry()) else {
            warnings.push(format!(
                "{} is unknown here: its rig was removed",
                saved.agent
            ));
            continue;
        };
        let is_named = named.contains(&identity);
        if !named.is_empty() && !is_named {
            continue;
        }
        let here = here(town, &identity, saved, last.as_ref(), &all)?;
        let on_exit = roles::on_exit(town, &saved.agent);
        let verdict = core::judge(saved, here, last.as_ref(), is_named, on_exit);
        if verdict == RestoreDecision::Removed {
            warnings.push(format!("{identity} was removed: its folder is gone"));
        }
        let is_neighbour = |(other, its): (&SavedContainer, &Option<&str>)| {
            other.agent != saved.agent && other.harness == saved.harness && *its == folders[place]
        };
        let alone = !source.containers.iter().zip(&folders).any(is_neighbour);
        let came_up = sessions.newest_that_came_up(&saved.agent)?;
        intents.push(RestoreIntent {
            // The journal is the most current source: it records changes after the save too.
            conversation: conversation(
                town,
                &identity,
                &Resumable {
                    harness: &saved.harness,
                    start: &saved.start,
                    id: came_up
                        .as_ref()
                        .and_then(|session| session.harness_session_id.as_deref())
                        .or(saved.harness_session.as_deref()),
                    alone,
                },
            ),
            identity,
            saved: saved.clone(),
            verdict,
            other_server: last
                .as_ref()
                .and_then(|session| session.tmux_socket.clone())
                .filter(|its| socket.as_path() != Path::new(its)),
            last: last.clone(),
        });
    }
    Ok((intents, warnings))
}

fn folder(saved: &SavedContainer) -> Option<&str> {
    saved.agents_pane().map(|(_, pane)| pane.folder.as_str())
}

/// Returns what currently has the agent's name, and whether the agent runs anywhere.
fn here(
    town: &Town,
    identity: &Identity,
    saved: &SavedContainer,
    last: Option<&Record>,
    all: &[Container],
) -> Result<NameOwner> {
    if all.iter().any(|c| c.identity() == Some(identity)) {
        return Ok(NameOwner::Itself);
    }
    let name = roles::container_name(town, identity)?;
    let other = all.iter().find(|container| container.name() == name);
    Ok(match other.map(|other| (other, other.owner())) {
        _ if !has_folder(town, identity, saved, last)? => NameOwner::NoFolder,
        // Only the user's panes are left: the agent gets a window beside them.
        None => NameOwner::Nothing,
        Some((other, _)) if other.is_vacant() => NameOwner::Nothing,
        Some((_, Owner::Agent(owner))) => NameOwner::Another(format!("{name} holds {owner}")),
        Some((_, Owner::OtherTown(root))) => {
            NameOwner::Another(format!("{name} belongs to the town at {root}"))
        }
        Some(_) => NameOwner::Another(format!("{name} is a tmux session that gt did not start")),
    })
}

/// Returns whether the agent's folder exists or a start would create it: removing a worker removes
/// its folder.
fn has_folder(
    town: &Town,
    identity: &Identity,
    saved: &SavedContainer,
    last: Option<&Record>,
) -> Result<bool> {
    let role = identity.role();
    // The start reports options that cannot be read.
    let options = StartOptions::from_tag(&saved.start).unwrap_or_default();
    if let Some(given) = options.work_dir {
        return Ok(given_folder(given, last).is_dir());
    }
    if !workspace::is_worktree(role) && role != Role::Agent {
        return Ok(true);
    }
    let role = roles::resolve(town, role, identity.rig())?.value;
    Ok(workspace::path(town, identity, &role)?.is_dir())
}

/// Returns the folder that was given at the start, as it was resolved then.
fn given_folder(given: PathBuf, last: Option<&Record>) -> PathBuf {
    let understood = last.and_then(|session| session.cwd.as_deref());
    understood.map_or(given, PathBuf::from)
}

/// The facts about an ended session that determine its conversation.
pub(crate) struct Resumable<'a> {
    pub(crate) harness: &'a str,
    /// The options of its start, in the format of the tag.
    pub(crate) start: &'a str,
    /// The program's own id of the conversation.
    pub(crate) id: Option<&'a str>,
    /// Whether no other agent with this harness works in its folder.
    pub(crate) alone: bool,
}

/// Returns the conversation in which an agent is started after this session.
pub(crate) fn conversation(
    town: &Town,
    identity: &Identity,
    ended: &Resumable<'_>,
) -> Conversation {
    let role = roles::resolve(town, identity.role(), identity.rig());
    // The start reports options that cannot be read.
    let options = StartOptions::from_tag(ended.start).unwrap_or_default();
    let own_line = options.command.is_some()
        || role.is_ok_and(|role| role.value.session.start_command.is_some());
    let preset = harnesses::resolve(town, ended.harness);
    // The start reports a harness that cannot be read.
    let Some(preset) = preset.ok().filter(|_| !own_line) else {
        return Conversation::New;
    };
    core::conversation(&preset.value, ended.id, ended.alone)
}

/// Starts an agent in this conversation, or in a new one if its program cannot resume it. Only an
/// exit of the program shows that; other failures say nothing about the conversation. Returns the
/// actual conversation, and a warning if it is a new one.
pub(crate) fn resume_or_begin<T>(
    town: &Town,
    conversation: &Conversation,
    mut start: impl FnMut(&Conversation) -> Result<T, StartError>,
) -> Result<(T, Conversation, Option<String>), StartError> {
    match start(conversation) {
        Err(StartError::ProgramExited(problem))
            if *conversation != Conversation::New && !town.around().cancel.is_set() =>
        {
            let started = start(&Conversation::New)?;
            let warning = format!(
                "its conversation could not be resumed, so a new one was started: {problem}"
            );
            Ok((started, Conversation::New, Some(warning)))
        }
        result => Ok((result?, conversation.clone(), None)),
    }
}

/// Restores one container, in its conversation if its program finds it.
pub fn restore(
    town: &Town,
    intent: &RestoreIntent,
    extra_env: &[(String, String)],
) -> Result<RestoredAgent, StartError> {
    let mut last = intent.last.clone();
    let (mut started, conversation, warning) =
        resume_or_begin(town, &intent.conversation, |conversation| {
            let started = start(town, intent, &last, conversation, extra_env);
            if started.is_err() {
                // The failed attempt is a session too, and the next session follows it.
                last = Sessions::of(town).newest_of(&intent.saved.agent)?;
            }
            started
        })?;
    started.warnings.extend(warning);
    Ok(RestoredAgent {
        started,
        conversation,
    })
}

fn start(
    town: &Town,
    intent: &RestoreIntent,
    last: &Option<Record>,
    conversation: &Conversation,
    extra_env: &[(String, String)],
) -> Result<StartedAgent, StartError> {
    let saved = &intent.saved;
    let before = StartOptions::from_tag(&saved.start)?;
    let text = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
    let (session, chain) = match last {
        Some(session) => (session.id.clone(), session.chain_id.clone()),
        None => (saved.session.clone(), text(&saved.chain)),
    };
    let options = StartOptions {
        harness: text(&saved.harness),
        work_dir: before
            .work_dir
            .clone()
            .map(|given| given_folder(given, last.as_ref())),
        sender: Some("gt".to_owned()),
        conversation: conversation.clone(),
        extra_env: extra_env.to_vec(),
        // A slow start keeps the restored container, and is reported.
        keep_on_timeout: true,
        restored: Some(Restored {
            chain: chain.unwrap_or_else(|| session.clone()),
            session,
            is_ended: last
                .as_ref()
                .is_some_and(|session| session.outcome.is_some()),
            saved: saved.clone(),
        }),
        ..before
    };
    start::start(town, &intent.identity, &options)
}

/// Takes the lock for a restore of this town. A second restore waits for the first, and then plans
/// the rest.
pub fn lock(town: &Town) -> Result<FileLock> {
    FileLock::take(&town.runtime_dir().join("locks/restore.lock"), TIMEOUT)
}

/// Returns whether an agent runs, after any concurrent start or stop has finished.
pub fn is_there(town: &Town, identity: &Identity) -> bool {
    const TIMEOUT: Duration = Duration::from_secs(30);
    fault::point(town, "restore.contended");
    drop(FileLock::take(&town.lock_path(identity), TIMEOUT));
    nudge::running(town, identity).is_ok()
}

/// Prepares a restore: removes leftovers of earlier restores, and ends processes that outlived
/// their containers. Some programs ignore the loss of their terminal, and two processes in one
/// conversation would corrupt it.
pub fn begin(town: &Town, intents: &[RestoreIntent]) -> Result<()> {
    fault::point(town, "restore.planned");
    restored::forget_old(town);
    let is_meant = |container: &str| {
        let mut wanted = intents
            .iter()
            .filter(|i| i.verdict == RestoreDecision::Restore);
        wanted.any(|intent| intent.saved.name == container)
    };
    stop::end_orphans_of(town, processes::GRACE, is_meant).map(drop)
}

/// Records that this agent is not to be restored. For a lost agent, nothing else records that.
pub fn forget(town: &Town, identity: &Identity) -> Result<()> {
    let outcome = match Work::of(town).is_finished_task(identity) {
        true => Outcome::Done,
        false => Outcome::Stopped,
    };
    let sessions = Sessions::of(town);
    let Some(last) = sessions.newest_of(&identity.address())? else {
        return Ok(());
    };
    let is_wanted_back = last.lost == Some(true) || last.failed_start == Some(true);
    let line = match last.outcome {
        None => Sessions::ending(last.id, SessionEnd::of(outcome), town.clock()),
        // The recorded time of the end stays.
        Some(Outcome::Crash) if is_wanted_back => Record {
            outcome: Some(outcome),
            ..Record::about(last.id)
        },
        Some(_) => return Ok(()),
    };
    sessions.record(&[Record {
        ended_by: (outcome == Outcome::Stopped).then(|| town.caller().as_str().to_owned()),
        ..line
    }])
}

/// Returns the error for a name that is already taken.
pub fn name_taken(words: &str) -> Problem {
    Problem::conflict(words.to_owned()).hint("rename or stop it, then restore again")
}

#[cfg(test)]
mod tests;
