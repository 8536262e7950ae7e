//! Resumes agents whose usage limit has ended, or moves them to another account at once.
//!
//! A program that stops at a usage limit says when the limit ends. A timer of tmux calls
//! `gt internal resume-limited` then: `messaging/signal.rs` sets it when a hook reports the limit,
//! and every call sets the next one. The timer ends with the tmux server, as the agents do. Regular
//! upkeep calls it too, for programs that show the limit only on their screen. Agents of one account
//! are resumed one after another. A program that continues by itself is left alone. With
//! `at_limit = "switch"` an agent is moved instead, once for each limit, if an account is free
//! (`limits/switch.rs`). A dialog that the program opened at the limit is answered first
//! (`limits/dialog.rs`).

mod dialog;
mod switch;

pub(crate) use dialog::leave as leave_dialog;

use crate::agents::states::States;
use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::messaging::nudge::{self, Mode, NudgeRequest};
use crate::records::events::Events;
use crate::records::limits;
use crate::terminal::containers::{self, Container};
use crate::terminal::limit_timer;
use crate::{Result, Town};
use gt_core::nudge::Priority;
use gt_core::state::{State, StateReport};
use gt_core::{Identity, Problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Seconds between two agents of one account.
const SPACING: i64 = 60;
/// Maximum wait for another process that resumes agents.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Message to an agent whose limit has ended.
const GO_ON: &str = "The usage limit has ended. Continue with your work.";

/// The content of `.runtime/limits.json`. It is written before an agent is told, so that a killed
/// process tells none twice.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Notes {
    /// Time of the last resume, by account.
    accounts: BTreeMap<String, i64>,
    /// End of the limit after which an agent was last told to go on, by address.
    told: BTreeMap<String, i64>,
    /// End of the limit of each account that reached one.
    limited: BTreeMap<String, i64>,
    /// End of the limit because of which an agent was last moved, by address.
    moved: BTreeMap<String, i64>,
}

impl Notes {
    /// Notes the limits of these agents' accounts, and drops those that have ended.
    fn note_limits(&mut self, limited: &[LimitedAgent<'_>], now: i64) {
        self.limited.retain(|_, until| *until > now);
        for agent in limited.iter().filter(|agent| agent.until > now) {
            let until = self.limited.entry(agent.account.clone()).or_default();
            *until = agent.until.max(*until);
        }
    }
}

/// Result of [`resume_due`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumedAgents {
    pub agents: Vec<Identity>,
    /// Agents that were moved to another account.
    pub moved: Vec<Identity>,
    /// Time at which the next agent is due, in seconds since the epoch.
    pub next: Option<i64>,
}

/// Moves limited agents to free accounts where the settings say so. Tells the agents whose usage
/// limit has ended to go on, one of each account. Sets a timer for the next one. `now` is in seconds
/// since the epoch.
pub fn resume_due(town: &Town, now: i64) -> Result<ResumedAgents> {
    let all = containers::list_everywhere(town)?;
    let limited = limited_among(town, &all);
    if limited.is_empty() {
        return Ok(ResumedAgents::default());
    }
    let runtime = town.runtime_dir();
    let _lock = FileLock::take(&runtime.join("limits.lock"), LOCK_TIMEOUT)?;
    let path = runtime.join("limits.json");
    let mut notes = read(&path)?;
    notes.note_limits(&limited, now);
    write(&path, &notes)?;
    let mut resumed = ResumedAgents::default();
    let spacing = SPACING / i64::from(town.settings().patrol.speed.max(1));
    for agent in limited {
        let address = agent.identity.address();
        if let Some(account) = switch::target(town, &agent, &notes, now)?
            && is_still_limited(town, agent.identity)?
        {
            notes.moved.insert(address.clone(), agent.until);
            write(&path, &notes)?;
            if switch::to(town, &agent, &account) {
                resumed.moved.push(agent.identity.clone());
                continue;
            }
        }
        if agent.continues {
            continue;
        }
        if notes.told.get(&address) == Some(&agent.until) {
            continue;
        }
        let last = notes.accounts.get(&agent.account).copied();
        let free = last.map_or(i64::MIN, |last| last + spacing);
        let due = free.max(agent.until + limit_timer::MARGIN);
        if now < due {
            resumed.next = Some(resumed.next.map_or(due, |next| next.min(due)));
            continue;
        }
        notes.accounts.insert(agent.account, now);
        notes.told.insert(address.clone(), agent.until);
        write(&path, &notes)?;
        let left = dialog::leave(town, agent.container);
        left.or_warn(format_args!("the dialog of {address} is left to a person"));
        tell(town, agent.identity, &address);
        resumed.agents.push(agent.identity.clone());
    }
    if let Some(next) = resumed.next {
        limit_timer::set(town, next);
    }
    Ok(resumed)
}

/// Returns whether an agent is limited now. Moves of other agents take seconds, in which it may have
/// gone on.
fn is_still_limited(town: &Town, identity: &Identity) -> Result<bool> {
    let Some(container) = containers::of_agent(town, identity)? else {
        return Ok(false);
    };
    Ok(!limited_among(town, std::slice::from_ref(&container)).is_empty())
}

/// An agent that waits for the end of its limit.
struct LimitedAgent<'a> {
    identity: &'a Identity,
    container: &'a Container,
    /// Program and configuration folder.
    account: String,
    /// Time at which the limit has certainly ended, in seconds since the epoch.
    until: i64,
    /// The program continues by itself then.
    continues: bool,
}

fn limited_among<'a>(town: &Town, all: &'a [Container]) -> Vec<LimitedAgent<'a>> {
    let is_ours = |container: &&Container| {
        // The tag tells without a screen which agents may be limited.
        container.identity().is_some() && container.pane().tag_hold.is_empty()
    };
    let ours: Vec<&Container> = all.iter().filter(is_ours).collect();
    let reports: Vec<StateReport> = States::default().read(town, &ours);
    let limited = ours.iter().zip(reports).filter_map(|(container, report)| {
        if report.state != State::Limited {
            return None;
        }
        Some(LimitedAgent {
            identity: container.identity()?,
            container,
            account: account(container),
            until: limits::ended_by(&report)?,
            continues: report.limit.as_ref().is_some_and(|limit| limit.continues),
        })
    });
    let mut limited: Vec<LimitedAgent<'a>> = limited.collect();
    limited.sort_by_key(|agent| agent.until);
    limited
}

/// Returns a key for the account of an agent: its program and its configuration folder.
fn account(container: &Container) -> String {
    let pane = container.pane();
    // An agent whose tag cannot be read is spaced out with those of the default account.
    let options: serde_json::Value = serde_json::from_str(&pane.tag_start).unwrap_or_default();
    let folder = options["config_dir"].as_str().unwrap_or_default();
    account_key(&pane.tag_harness, folder)
}

fn account_key(harness: &str, folder: &str) -> String {
    format!("{harness} {folder}")
}

fn tell(town: &Town, identity: &Identity, address: &str) {
    let request = NudgeRequest {
        text: GO_ON,
        sender: None,
        mode: Mode::Queue,
        // It ends a wait and disturbs no work.
        priority: Priority::Urgent,
        timeout: Duration::ZERO,
    };
    let told = nudge::send(town, identity, &request);
    if told
        .or_warn(format_args!("{identity} is not told that its limit ended"))
        .is_some()
    {
        let event = town.event_at("resumed", address).by_gt();
        Events::of(town).note(vec![event.with("reason", "its usage limit has ended")]);
    }
}

fn read(path: &Path) -> Result<Notes> {
    let text = files::read_if_there(path)?.unwrap_or_default();
    // A damaged file only means that an agent may be told once more.
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

fn write(path: &Path, notes: &Notes) -> Result<()> {
    let text = serde_json::to_vec(notes).map_err(|error| {
        Problem::failed("the notes about usage limits cannot be written").caused_by(error)
    })?;
    files::write_whole(path, &text)
}

#[cfg(test)]
mod tests;
