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
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::{fault, files};
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
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
/// Fault points at which a test can kill the process, before those of the move itself.
pub const FAULT_POINTS: &[&str] = &["limits.noted"];

/// Message to an agent whose limit has ended.
const GO_ON: &str = "The usage limit has ended. Continue with your work.";

/// The content of `.runtime/limits.json`. It is written before an agent is told to continue, so
/// that after a kill no agent is told twice.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct LimitNotes {
    /// Time of the last resume, by account.
    accounts: BTreeMap<String, i64>,
    /// End of the limit after which an agent was last told to continue, by address.
    told: BTreeMap<String, i64>,
    /// End of the limit of each account that reached one.
    limited: BTreeMap<String, i64>,
    /// End of the limit because of which an agent was last moved, by address.
    moved: BTreeMap<String, i64>,
    /// End of the limit because of which a move has begun, by address. A move whose process was
    /// killed is retried once.
    moving: BTreeMap<String, i64>,
}

impl LimitNotes {
    /// Notes the limits of these agents' accounts, and drops those that have ended.
    fn note_limits(&mut self, limited: &[LimitedAgent<'_>], now: i64) {
        self.limited.retain(|_, until| *until > now);
        for agent in limited.iter().filter(|agent| agent.until > now) {
            let until = self.limited.entry(agent.account.clone()).or_default();
            *until = agent.until.max(*until);
        }
    }

    /// Notes that a move begins. The second one for the same limit is the last, however it ends.
    fn begin_move(&mut self, address: &str, until: i64) {
        let before = self.moving.insert(address.to_owned(), until);
        if before.is_some_and(|before| is_same_limit(before, until)) {
            self.end_move(address, until);
        }
    }

    fn end_move(&mut self, address: &str, until: i64) {
        self.moving.remove(address);
        self.moved.insert(address.to_owned(), until);
    }

    /// Returns whether an agent was moved because of the limit that ends at this time.
    fn has_moved(&self, address: &str, until: i64) -> bool {
        let moved = self.moved.get(address);
        moved.is_some_and(|moved| is_same_limit(*moved, until))
    }
}

/// Returns whether two ends are those of one limit: some programs only count the rest down.
fn is_same_limit(one: i64, other: i64) -> bool {
    const MARGIN: i64 = 120;
    (one - other).abs() < MARGIN
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
/// limit has ended to continue, one of each account. Sets a timer for the next one. `now` is in
/// seconds since the epoch.
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
    // An adopted program is the person's who started it. It only shows that its account is limited.
    let is_ours = |agent: &LimitedAgent<'_>| agent.container.adopted().is_none();
    for agent in limited.into_iter().filter(is_ours) {
        let address = agent.identity.address();
        if let Some(account) = switch::target(town, &agent, &notes, now)?
            && is_still_limited(town, agent.identity)?
        {
            notes.begin_move(&address, agent.until);
            write(&path, &notes)?;
            fault::point(town, "limits.noted");
            let is_moved = switch::switch_account(town, &agent, &account);
            notes.end_move(&address, agent.until);
            write(&path, &notes)?;
            if is_moved {
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
        notify_limit_end(town, agent.identity, &address);
        resumed.agents.push(agent.identity.clone());
    }
    if let Some(next) = resumed.next {
        limit_timer::set(town, next);
    }
    Ok(resumed)
}

/// Calls [`resume_due`] in a moment, in a process of its own, for an agent whose limit only its
/// screen shows. The call moves the agent, or sets the timer for the end of the limit.
pub fn resume_soon(town: &Town) {
    limit_timer::set_soon(town);
}

/// Returns whether an agent is limited now. Moving other agents takes seconds, during which it may
/// have continued.
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
    /// Key of its account.
    account: String,
    /// Time at which the limit has certainly ended, in seconds since the epoch.
    until: i64,
    /// The program continues by itself then.
    continues: bool,
}

fn limited_among<'a>(town: &Town, all: &'a [Container]) -> Vec<LimitedAgent<'a>> {
    let is_ours = |container: &&Container| {
        // An exhausted budget holds an agent.
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
            account: container.account_key(),
            until: limits::ended_by(&report)?,
            continues: report.limit.as_ref().is_some_and(|limit| limit.continues),
        })
    });
    let mut limited: Vec<LimitedAgent<'a>> = limited.collect();
    limited.sort_by_key(|agent| agent.until);
    limited
}

fn notify_limit_end(town: &Town, identity: &Identity, address: &str) {
    let request = NudgeRequest {
        is_command: false,
        text: GO_ON,
        sender: None,
        mode: DeliveryMode::Queue,
        // The message ends a wait and interrupts no work.
        priority: Priority::Urgent,
        timeout: Duration::ZERO,
    };
    let told = nudge::send(town, identity, &request);
    if told
        .or_warn(format_args!(
            "{identity} was not told that its limit has ended"
        ))
        .is_some()
    {
        let event = town.event_at("resumed", address).by_gt();
        Events::of(town).note(vec![event.with("reason", "its usage limit has ended")]);
    }
}

fn read(path: &Path) -> Result<LimitNotes> {
    let text = files::read_if_there(path)?.unwrap_or_default();
    // If the file is damaged, an agent may be told once more.
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

fn write(path: &Path, notes: &LimitNotes) -> Result<()> {
    let text = serde_json::to_vec(notes).map_err(|error| {
        Problem::failed("the notes about usage limits cannot be written").caused_by(error)
    })?;
    files::write_whole(path, &text)
}

#[cfg(test)]
mod tests;
