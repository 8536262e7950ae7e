//! Delivers messages to agents: exactly once, complete, and never into the wrong place.
//!
//! Every message goes into the agent's queue first, which survives crashes. The holder of the
//! agent's typing lock delivers from the queue, in order, until its own message is delivered;
//! processes that wait for the lock find their receipts in the queue. A message that cannot be
//! typed now stays there, and a background process (`nudge/deliverer.rs`) types it as soon as
//! possible. `nudge/delivery.rs` does the work under the typing lock.

mod deliverer;
mod delivery;
mod error;

pub use deliverer::{LIMIT as DELIVERER_LIMIT, deliver_waiting};
pub use error::NudgeError;

use crate::base::dnd;
use crate::base::estop;
use crate::base::lock::FileLock;
use crate::base::processes;
use crate::catalog::{directory, harnesses};
use crate::messaging::inject::Typist;
use crate::messaging::queue::{MessageQueue, Phase, Receipt};
use crate::messaging::signal;
use crate::records::events::Events;
use crate::terminal::adopted;
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use delivery::{FinalResult, QueueDelivery};
use gt_core::event::Event;
use gt_core::harness::Preset;
use gt_core::nudge::{Message, NotNow, Priority, is_showable};
use gt_core::session::SessionId;
use gt_core::state::State;
use gt_core::{Caller, Identity, Problem, stale};
use std::time::{Duration, Instant};

/// Fault points of a delivery.
pub const FAULT_POINTS: &[&str] = &[
    "nudge.pasting",
    "nudge.pasted",
    "nudge.entering",
    "nudge.entered",
    "nudge.aside",
];

/// Maximum wait for the typing lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// When a message is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryMode {
    /// Now. If Enter could answer a dialog, the message is queued.
    Immediate,
    /// Delivered by a background process as soon as the agent is ready.
    Queue,
    /// When the agent is idle, if that is within the timeout; otherwise through the queue.
    #[default]
    WaitIdle,
}

impl DeliveryMode {
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryMode::Immediate => "immediate",
            DeliveryMode::Queue => "queue",
            DeliveryMode::WaitIdle => "wait-idle",
        }
    }
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct NudgeRequest<'a> {
    /// Whether a text that begins with a slash is a command of the agent's program.
    pub is_command: bool,
    pub text: &'a str,
    pub sender: Option<&'a str>,
    pub mode: DeliveryMode,
    pub priority: Priority,
    /// Maximum wait for an idle agent.
    pub timeout: Duration,
}

/// The result of sending a message.
#[derive(Clone, Debug)]
pub struct SentMessage {
    pub id: String,
    pub outcome: NudgeOutcome,
    /// The later delivery of a message that waits.
    pub later: Option<LaterDelivery>,
    pub elapsed: Duration,
}

/// The process that delivers a waiting message, and the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaterDelivery {
    pub by: Deliverer,
    /// Seconds since the epoch; `None` without a limit.
    pub until: Option<i64>,
    /// End of the do-not-disturb that holds it, if that has one.
    pub held_until: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deliverer {
    /// A background process that waits until the agent is ready.
    Background,
    /// The end of the agent's pause.
    Resume,
    /// The end of an emergency stop.
    Thaw,
    /// The end of a do-not-disturb.
    DoNotDisturb,
    /// The next start of the agent.
    Start,
    /// The end of the agent's turn, or the next `gt nudge`, `gt sync` or automatic save, because no
    /// background process could be started.
    NextCommand,
}

impl Deliverer {
    pub fn as_str(self) -> &'static str {
        match self {
            Deliverer::Background => "background",
            Deliverer::Resume => "resume",
            Deliverer::Thaw => "thaw",
            Deliverer::DoNotDisturb => "dnd",
            Deliverer::Start => "start",
            Deliverer::NextCommand => "next-command",
        }
    }
}

#[derive(Clone, Debug)]
pub enum NudgeOutcome {
    Delivered(Receipt),
    /// It waits in the queue for this reason.
    Queued(Option<NotNow>),
}

/// Sends a message to a running agent.
pub fn send(
    town: &Town,
    identity: &Identity,
    request: &NudgeRequest<'_>,
) -> Result<SentMessage, NudgeError> {
    send_reporting_wait(town, identity, request, &|_| {})
}

/// Sends a message to a running agent. Calls `on_wait` once, with the reason, before it waits
/// for the agent or for the typing lock.
pub fn send_reporting_wait(
    town: &Town,
    identity: &Identity,
    request: &NudgeRequest<'_>,
    on_wait: &(dyn Fn(NotNow) + Sync),
) -> Result<SentMessage, NudgeError> {
    let town = &*adopted::home_of(town, identity);
    let began = Instant::now();
    let queue = MessageQueue::of(town, identity);
    // If the lock is free, the container needs to be read only once: no restart can come in
    // between. The folder of an unused queue is created only after the message was validated.
    let early = match request.mode {
        DeliveryMode::Immediate | DeliveryMode::WaitIdle if queue.is_used() => {
            FileLock::try_take(&queue.lock_path())?
        }
        _ => None,
    };
    let container = running(town, identity)?;
    let message = message(town, identity, request);
    if message.displayed_text().trim().is_empty() {
        return Err(Problem::usage("the message is empty").into());
    }
    if !is_showable(&message.displayed_text()) {
        // Enter is pressed only after the text is visible on the screen.
        return Err(
            Problem::usage("the message has no character that a terminal can show")
                .hint("add a word, or name a sender: `--sender ADDRESS`")
                .into(),
        );
    }
    let now = message.created_at;
    expire(town, identity, &queue, now)?;
    queue.add(&message, town.settings().nudge.depth)?;
    let sent = |outcome| {
        let later = match &outcome {
            NudgeOutcome::Queued(reason) => {
                let why = reason.map_or("for an idle agent", NotNow::describe);
                let queued = event(&message, identity).with("delivered", "queue");
                Events::of(town).note(vec![queued.with("reason", why)]);
                Some(later(town, &container, &message, *reason))
            }
            NudgeOutcome::Delivered(_) => None,
        };
        SentMessage {
            id: message.id.clone(),
            outcome,
            later,
            elapsed: began.elapsed(),
        }
    };
    if request.mode == DeliveryMode::Queue {
        return Ok(sent(NudgeOutcome::Queued(None)));
    }
    let deadline = match request.mode {
        DeliveryMode::Immediate => Instant::now(),
        _ => Instant::now() + request.timeout,
    };
    let lock_deadline = deadline.max(began + LOCK_TIMEOUT);
    let (_lock, read_again) = match early {
        Some(lock) => (lock, None),
        None => match await_typing_lock(town, &queue, &message.id, lock_deadline, on_wait)? {
            // The agent may have been restarted meanwhile.
            LockOutcome::Ours(lock) => (lock, Some(running(town, identity)?)),
            LockOutcome::Delivered(receipt) => return Ok(sent(NudgeOutcome::Delivered(receipt))),
            LockOutcome::TimedOut => return Ok(sent(NudgeOutcome::Queued(Some(NotNow::Locked)))),
        },
    };
    let present = read_again.as_ref().unwrap_or(&container);
    let preset = preset_of(town, present)?;
    let while_busy = request.mode == DeliveryMode::Immediate;
    let delivery = QueueDelivery::new(town, &queue, present, &preset, while_busy, deadline);
    let ran = delivery.run(Some(&message.id), on_wait)?;
    match ran.settled {
        Some(FinalResult::Delivered(receipt)) => Ok(sent(NudgeOutcome::Delivered(receipt))),
        Some(FinalResult::SetAside(reason)) => Err(Problem::failed(format!(
            "the message to {identity} was set aside: {reason}"
        ))
        .hint(format!(
            "it is kept: `gt nudge {identity} --list` shows it, `--again {id}` sends it again, \
             `--cancel {id}` drops it",
            id = message.id
        ))
        .into()),
        None => Ok(sent(NudgeOutcome::Queued(ran.reason))),
    }
}

/// Sets expired messages aside, and reports each in the log and as an event.
fn expire(town: &Town, identity: &Identity, queue: &MessageQueue, now: i64) -> Result<()> {
    let expired = queue.expire(now)?;
    for message in &expired {
        tracing::warn!(
            "the message {} to {identity} expired undelivered",
            message.id
        );
    }
    let event = |message: &Message| {
        event(message, identity)
            .with("delivered", "failed")
            .with("reason", "expired")
    };
    Events::of(town).note(expired.iter().map(event).collect());
    Ok(())
}

/// Returns whether a person or a budget has paused the agent.
fn is_paused(container: &Container) -> bool {
    let pane = container.pane();
    pane.tag_state == State::Paused.as_str() || !pane.tag_hold.is_empty()
}

/// Starts the background delivery of a waiting message. Returns how it will be delivered.
fn later(
    town: &Town,
    container: &Container,
    message: &Message,
    reason: Option<NotNow>,
) -> LaterDelivery {
    let rig = container.identity().and_then(Identity::rig);
    let is_stopped = estop::read(town, rig).is_some();
    let note = match message.priority {
        Priority::Urgent => None,
        Priority::Normal => container
            .identity()
            .and_then(|agent| dnd::read(town, &agent.address())),
    };
    let by = match reason {
        Some(NotNow::Ended) => Deliverer::Start,
        Some(NotNow::Paused) => Deliverer::Resume,
        Some(NotNow::Stopped) => Deliverer::Thaw,
        _ if note.is_some() => Deliverer::DoNotDisturb,
        None if is_stopped => Deliverer::Thaw,
        None if is_paused(container) => Deliverer::Resume,
        _ => match signal::wake_delivery_to(town, container) {
            Ok(()) => Deliverer::Background,
            Err(problem) => {
                tracing::warn!("no process delivers {}: {}", message.id, problem.line());
                Deliverer::NextCommand
            }
        },
    };
    let limit = i64::try_from(DELIVERER_LIMIT.as_secs()).ok();
    let limit = limit.filter(|_| by == Deliverer::Background);
    let limit = limit.map(|limit| message.created_at + limit);
    let until = [message.expires_at, limit].into_iter().flatten().min();
    LaterDelivery {
        by,
        until,
        held_until: note.and_then(|note| note.until),
    }
}

/// Puts a message that was set aside back into the queue. Returns how it will be delivered.
pub fn requeue(town: &Town, identity: &Identity, id: &str) -> Result<LaterDelivery> {
    let town = &*adopted::home_of(town, identity);
    let queue = MessageQueue::of(town, identity);
    let mut aside = queue.set_aside_messages().into_iter();
    let Some(aside) = aside.find(|it| it.message.id == id) else {
        return Err(
            Problem::conflict(format!("the message {id} was not set aside")).hint(format!(
                "`gt nudge {identity} --list` shows what happened to it"
            )),
        );
    };
    let message = aside.message;
    let now = town.clock().seconds();
    if message.is_expired(now, processes::uptime().as_ref()) {
        return Err(Problem::conflict(format!("the message {id} has expired"))
            .hint("send its text as a new message"));
    }
    queue.requeue(&message)?;
    let queued = event(&message, identity).with("delivered", "queue");
    Events::of(town).note(vec![queued.with("reason", "sent again by request")]);
    let waiting = |by| LaterDelivery {
        by,
        until: message.expires_at,
        held_until: None,
    };
    Ok(match running(town, identity) {
        Ok(container) => later(town, &container, &message, None),
        Err(NudgeError::NotRunning(_)) => waiting(Deliverer::Start),
        // The message is in the queue, so this must not be reported as a failure.
        Err(error) => {
            tracing::warn!("no process delivers {id}: {}", error.problem().line());
            waiting(Deliverer::NextCommand)
        }
    })
}

/// Cancels a message that was not submitted. An interrupted delivery is cancelled too if its text
/// is not in the input line, or can be recognised and removed there.
pub fn cancel(town: &Town, identity: &Identity, id: &str) -> Result<bool> {
    let town = &*adopted::home_of(town, identity);
    let queue = MessageQueue::of(town, identity);
    if let Some(_lock) = FileLock::try_take(&queue.lock_path())?
        && let Some(taken) = queue.interrupted()
        && taken.message.id == id
        && (taken.phase == Phase::Taken || is_out_of_line(town, identity, &taken.message)?)
    {
        queue.put_back(&taken)?;
    }
    queue.cancel(id)
}

/// Removes the message from the agent's input line. Returns whether the line is free of it. An
/// agent that has ended has no input line.
fn is_out_of_line(town: &Town, identity: &Identity, message: &Message) -> Result<bool> {
    let container = match running(town, identity) {
        Err(NudgeError::NotRunning(_)) => return Ok(true),
        container => container?,
    };
    let preset = preset_of(town, &container)?;
    let mut typist = Typist::new(town, &container, &preset);
    let is_empty = typist
        .observe()?
        .input
        .is_some_and(|input| input.is_empty());
    Ok(is_empty || typist.remove_from_line(&message.displayed_text())?)
}

/// Returns the agent's container. Fails unless the agent runs in it.
pub fn running(town: &Town, identity: &Identity) -> Result<Container, NudgeError> {
    let container = with_process(town, identity)?;
    if container.session_id().is_none() {
        // A shell would run the message as a command.
        return Err(NudgeError::NotRunning(
            Problem::not_found(format!("{identity} has a shell, and no agent yet"))
                .hint("`gt task start` continues from there"),
        ));
    }
    Ok(container)
}

/// Returns the agent's container. Fails unless a process runs in it: the agent, or the shell before
/// it.
pub fn with_process(town: &Town, identity: &Identity) -> Result<Container, NudgeError> {
    let container = container_of(town, identity)?;
    if container.pane().dead || container.lost_agent_pane() {
        return Err(NudgeError::NotRunning(
            Problem::conflict(format!("{identity} has ended"))
                .hint(format!("`gt start {identity}` starts it again")),
        ));
    }
    Ok(container)
}

/// Returns the agent's container, even if the agent has ended: a program beside it may still run.
pub fn container_of(town: &Town, identity: &Identity) -> Result<Container, NudgeError> {
    containers::of_agent(town, identity)?.ok_or_else(|| {
        let problem = directory::not_running(town, identity);
        NudgeError::NotRunning(problem.hint(format!("`gt start {identity}` starts it")))
    })
}

/// Returns the event of a message, with its sender and target and without its text, which is
/// private.
fn event(message: &Message, target: &Identity) -> Event {
    let sender = message.caller.as_ref().or(message.sender.as_ref());
    Event::emitted("nudge", sender.map_or(Caller::Gt.as_str(), String::as_str))
        .with("target", target.address())
        .with("id", message.id.clone())
}

/// Returns why a message was not meant for this session, if it was sent before the session began.
pub fn stale_reason(message: &Message, session: &SessionId) -> Option<String> {
    let written = |at: i64| {
        let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
        format!("{at:.3}")
    };
    stale::reason(
        message.sent_at_millis(),
        session.began_at_millis()?,
        written,
    )
}

fn message(town: &Town, identity: &Identity, request: &NudgeRequest<'_>) -> Message {
    let now = town.clock().seconds();
    // The time for which a message is held does not count.
    let held = match request.priority {
        Priority::Urgent => None,
        Priority::Normal => dnd::read(town, &identity.address()),
    };
    let counts_from = match held {
        Some(note) => note.until,
        None => Some(now),
    };
    let minutes = match request.priority {
        Priority::Urgent => town.settings().nudge.urgent_ttl_minutes,
        Priority::Normal => town.settings().nudge.ttl_minutes,
    };
    Message {
        id: town.clock().new_id().to_string(),
        sender: request.sender.map(str::to_owned),
        is_command: request.is_command,
        caller: Some(
            request
                .sender
                .map_or_else(|| town.caller().as_str().to_owned(), str::to_owned),
        ),
        text: request.text.to_owned(),
        priority: request.priority,
        created_at: now,
        expires_at: counts_from
            .filter(|_| minutes > 0)
            .map(|from| from + minutes * 60),
        uptime: processes::uptime(),
    }
}

/// The result of waiting for the typing lock.
enum LockOutcome {
    /// This process has the lock.
    Ours(FileLock),
    /// Another process has delivered the message meanwhile.
    Delivered(Receipt),
    /// Another process still holds the lock.
    TimedOut,
}

/// Waits for the typing lock until the deadline.
fn await_typing_lock(
    town: &Town,
    queue: &MessageQueue,
    id: &str,
    deadline: Instant,
    on_wait: &(dyn Fn(NotNow) + Sync),
) -> Result<LockOutcome> {
    /// Most holders release the lock within this time.
    const SOON: Duration = Duration::from_millis(300);
    let began = Instant::now();
    let mut is_told = false;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(receipt) = queue.receipt(id) {
            return Ok(LockOutcome::Delivered(receipt));
        }
        if let Some(lock) = FileLock::try_take(&queue.lock_path())? {
            return Ok(LockOutcome::Ours(lock));
        }
        town.around().cancel.check()?;
        if Instant::now() >= deadline {
            return Ok(LockOutcome::TimedOut);
        }
        if began.elapsed() > SOON && !std::mem::replace(&mut is_told, true) {
            on_wait(NotNow::Locked);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Returns the preset of a container's harness, for callers that have not read it.
pub fn preset_of(town: &Town, container: &Container) -> Result<Preset> {
    Ok(harnesses::resolve(town, &container.pane().tag_harness)?.value)
}

#[cfg(test)]
mod tests;
