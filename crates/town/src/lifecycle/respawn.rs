//! Restarts an agent whose program ended, with back-off.
//!
//! A tmux hook calls `gt internal respawn` when the program ends. The times of recent deaths are
//! stored in a tag of the container, and tmux's timer does the waiting, so no process of `gt` has
//! to stay. A container that was disarmed, stopped or restarted meanwhile is left alone, and so is
//! an agent whose role does not respawn it after a clean exit. The conversation is resumed by the
//! code that `gt restore` uses.

use crate::base::callback::{self, Call};
use crate::base::estop;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::wake;
use crate::catalog::roles;
use crate::lifecycle::restore::{self, Resumable};
use crate::lifecycle::start::{self, StartError, StartOptions, StartedAgent};
use crate::messaging::escalate::{self, NewEscalation};
use crate::records::items::Work;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::terminal::save_schedule;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::escalation::Severity;
use gt_core::record::{Outcome as Ended, Record};
use gt_core::respawn::{self, ItemDeaths, RespawnDecision};
use gt_core::role::OnExit;
use gt_core::startup::{Conversation, tag};
use gt_tmux::{Batch, Command, PaneId};
use std::time::Duration;

/// Maximum wait for another process that starts or stops the agent.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The result of a respawn.
#[derive(Debug)]
pub enum RespawnOutcome {
    /// Nothing to do: the agent runs, or respawning is disabled.
    LeftAlone,
    /// Its program exited by itself, and its role does not respawn it then.
    Exited,
    /// The next attempt is in this many seconds.
    Later(u64),
    GaveUp {
        deaths: usize,
    },
    Respawned(Box<StartedAgent>),
}

/// Handles the death of a container's agent. `due` means that the delay has passed.
pub fn respawn(town: &Town, container: &str, pane: PaneId, due: bool) -> Result<RespawnOutcome> {
    let Some(found) = containers::find(town, container)? else {
        return Ok(RespawnOutcome::LeftAlone);
    };
    let row = found.pane();
    let Some(identity) = found.identity().cloned() else {
        return Ok(RespawnOutcome::LeftAlone);
    };
    if row.pane != pane || !row.dead || !row.tag_auto_respawn {
        return Ok(RespawnOutcome::LeftAlone);
    }
    let ended = Ended::of_process(row.exit_status, row.exit_signal);
    if ended == Ended::Exited && roles::on_exit(town, &identity.address()) == OnExit::Stop {
        // The tag is cleared, so that no other process respawns the agent.
        set(town, &found, tag::AUTO_RESPAWN, "")?;
        save_schedule::request(town);
        return Ok(RespawnOutcome::Exited);
    }
    if estop::read(town, identity.rig()).is_some() {
        // The end of the emergency stop calls again; the tag is still set.
        return Ok(RespawnOutcome::LeftAlone);
    }
    if !due {
        let now = u64::try_from(town.clock().seconds()).unwrap_or_default();
        let recent = respawn::recent_deaths(&deaths(&row.tag_deaths), now);
        note_deaths(town, &found, &recent)?;
        let over_item = match ended {
            Ended::Exited => ItemDeaths::default(),
            _ => over_item(town, &identity, &found)?,
        };
        match respawn::decide(&recent, over_item) {
            RespawnDecision::GiveUp { deaths } => {
                let reason = format!("ended {deaths} times in a row; not started again");
                give_up(town, &found, &identity, &reason)?;
                return Ok(RespawnOutcome::GaveUp { deaths });
            }
            RespawnDecision::LeaveItem { deaths } => {
                let reason = format!("died {deaths} times over its work; not started again");
                give_up(town, &found, &identity, &reason)?;
                return Ok(RespawnOutcome::GaveUp { deaths });
            }
            // The hook has already waited for the first attempt.
            RespawnDecision::After { seconds } if recent.len() > 1 => {
                schedule(town, &found, seconds)?;
                return Ok(RespawnOutcome::Later(seconds));
            }
            RespawnDecision::After { .. } => {}
        }
    }
    let how = found
        .state(None)
        .reason
        .map_or_else(String::new, String::from);
    let options = StartOptions {
        resume_prompt: Some(respawn::prompt(identity.role(), ended, &how)),
        sender: Some("gt".to_owned()),
        auto_respawn: Some(true),
        // A death during the start must be counted like any other.
        keep_on_timeout: true,
        keep_container: true,
        respawn_of: Some(pane),
        ..start::options_of(town, &found)?
    };
    let start = || -> Result<_, StartError> {
        let conversation = conversation(town, &identity, &found, ended)?;
        restore::resume_or_begin(town, &conversation, |conversation| {
            let options = StartOptions {
                conversation: conversation.clone(),
                ..options.clone()
            };
            start::start(town, &identity, &options)
        })
    };
    let mut started = start();
    if started.as_ref().is_err_and(StartError::is_lost_to_another) {
        // The holder of the lock may leave the agent dead, and no other hook will run.
        drop(FileLock::share(&town.lock_path(&identity), TIMEOUT)?);
        started = start();
    }
    match started {
        Ok((mut started, _, warning)) => {
            started.warnings.extend(warning);
            Ok(RespawnOutcome::Respawned(Box::new(started)))
        }
        Err(error) if error.is_lost_to_another() => Ok(RespawnOutcome::LeftAlone),
        Err(error) => Err(error.into()),
    }
}

/// Starts an agent that does not run, whatever its role says about respawns. Resumes its last
/// conversation, if its program can.
pub(crate) fn resume(town: &Town, identity: &Identity) -> Result<StartedAgent> {
    let container = containers::of_agent(town, identity)?;
    let last = Sessions::of(town).newest_that_came_up(&identity.address())?;
    let (options, conversation, ended, how) = match &container {
        Some(found) => {
            let ended = found.outcome();
            let how = found.state(None).reason;
            let options = start::options_of(town, found)?;
            let conversation = conversation(town, identity, found, ended)?;
            (options, conversation, ended, how.map(String::from))
        }
        None => {
            let record = last.unwrap_or_default();
            let tag = record.start.as_deref().unwrap_or_default();
            let harness = record.harness.clone();
            let ended = Resumable {
                harness: harness.as_deref().unwrap_or_default(),
                start: tag,
                id: record.harness_session_id.as_deref(),
                alone: true,
            };
            let conversation = restore::conversation(town, identity, &ended);
            let options = StartOptions {
                harness,
                ..StartOptions::from_tag(tag)?
            };
            (options, conversation, Ended::Crash, None)
        }
    };
    let options = StartOptions {
        resume_prompt: Some(respawn::prompt(
            identity.role(),
            ended,
            how.as_deref().unwrap_or("killed"),
        )),
        sender: Some("gt".to_owned()),
        topic: Some("assigned".to_owned()),
        keep_on_timeout: true,
        keep_container: true,
        ..options
    };
    let (mut started, _, warning) =
        restore::resume_or_begin(town, &conversation, |conversation| {
            let options = StartOptions {
                conversation: conversation.clone(),
                ..options.clone()
            };
            start::start(town, identity, &options)
        })?;
    started.warnings.extend(warning);
    Ok(started)
}

/// Returns the conversation of the new session. If the agent crashed again right after it was
/// resumed, a new conversation begins.
fn conversation(
    town: &Town,
    identity: &Identity,
    container: &Container,
    ended: Ended,
) -> Result<Conversation> {
    let row = container.pane();
    let sessions = Sessions::of(town);
    let last = sessions.newest_that_came_up(&identity.address())?;
    if let Some(last) = last.as_ref().filter(|last| last.id == row.tag_session) {
        let parent = last.parent_id.as_deref();
        let known = sessions.find_known(parent.into_iter())?;
        let parent = parent.and_then(|parent| known.get(parent));
        if !respawn::resumes(last, ended, seconds_between(last, row.died_at), parent) {
            return Ok(Conversation::New);
        }
    }
    let is_neighbour = |other: &Container| {
        let its = other.pane();
        other.id() != container.id()
            && its.tag_harness == row.tag_harness
            && its.start_path == row.start_path
    };
    let of_journal = last.and_then(|last| last.harness_session_id);
    let of_tag = Some(row.tag_harness_session.clone()).filter(|id| !id.is_empty());
    let id = of_journal.or(of_tag);
    let ended = Resumable {
        harness: &row.tag_harness,
        start: &start::start_tag(town, container)?,
        id: id.as_deref(),
        alone: !containers::list(town)?.iter().any(is_neighbour),
    };
    Ok(restore::conversation(town, identity, &ended))
}

/// Returns the run time of a session in seconds, up to `ended`.
fn seconds_between(session: &Record, ended: Option<i64>) -> Option<i64> {
    let started: jiff::Timestamp = session.started_at.as_deref()?.parse().ok()?;
    Some(ended? - started.as_second())
}

fn deaths(tag: &str) -> Vec<u64> {
    tag.split(',')
        .filter_map(|death| death.parse().ok())
        .collect()
}

fn note_deaths(town: &Town, container: &Container, recent: &[u64]) -> Result<()> {
    let text: Vec<String> = recent.iter().map(u64::to_string).collect();
    set(town, container, tag::DEATHS, &text.join(","))
}

/// Returns how often the agent has died with the current item on its hook, including this death.
fn over_item(town: &Town, identity: &Identity, container: &Container) -> Result<ItemDeaths> {
    let role = roles::resolve(town, identity.role(), identity.rig())?.value;
    let most = role.start.deaths_per_item;
    let hooked = match most {
        0 => None,
        _ => Work::of(town).hooked(&identity.address())?,
    };
    let Some(hooked) = hooked else {
        return Ok(ItemDeaths::default());
    };
    let crashes = Sessions::of(town).find(&SessionQuery {
        agent: Some(identity.address()),
        work: Some(hooked.item.id.to_string()),
        outcome: Some(Ended::Crash.as_str().to_owned()),
        ..SessionQuery::default()
    })?;
    // A concurrent sync may or may not have recorded this death already.
    let now = &container.pane().tag_session;
    // A session that had moved on to another item did not die with this one.
    let is_over_it = |session: &Record| {
        session.id == *now || session.work_unit.as_deref() == Some(hooked.item.id.as_str())
    };
    let crashes: Vec<Record> = crashes.into_iter().filter(is_over_it).collect();
    let deaths = respawn::deaths_over_item(&crashes, now);
    Ok(ItemDeaths { deaths, most })
}

fn give_up(town: &Town, container: &Container, identity: &Identity, reason: &str) -> Result<()> {
    set(town, container, tag::AUTO_RESPAWN, "")?;
    set(town, container, tag::STATE_REASON, reason)?;
    wake::monitors(town);
    let address = identity.address();
    let hooked = Work::of(town).hooked(&address);
    let hooked = hooked
        .or_warn("the item of a crash loop is unknown")
        .flatten();
    let new = NewEscalation {
        severity: Severity::High,
        message: format!("{address} {reason}"),
        source: "respawn",
        item: hooked.map(|hooked| hooked.item.id),
        agent: Some(address.clone()),
        key: Some(format!("respawn:{address}")),
    };
    let event = town
        .event_at("escalation_raised", &address)
        .with("reason", reason)
        .by_gt();
    escalate::raise_with(town, &new, event).map(drop)
}

fn set(town: &Town, container: &Container, option: &str, value: &str) -> Result<()> {
    let set = Command::new("set-option").target(container.id());
    let batch = Batch::from(set.args([option, value])).then_all(containers::pack(container.id()));
    town.server()
        .run(batch)
        .map(drop)
        .map_err(|error| tmux_problem("cannot tag the container", error))
}

fn schedule(town: &Town, container: &Container, seconds: u64) -> Result<()> {
    let again = Call::Respawn.line("#{q:session_name} --due --pane #{q:@gt_pane}");
    town.server()
        .run(
            Command::new("run-shell")
                .args(["-b", "-d", &seconds.to_string()])
                .target(container.id())
                .arg(callback::automatic_by_tags(&again)),
        )
        .map(drop)
        .map_err(|error| {
            tmux_problem("cannot ask tmux to wait", error).hint("`gt start` brings it back by hand")
        })
}
