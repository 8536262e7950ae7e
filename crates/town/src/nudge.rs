//! Giving agents messages: exactly once, whole, and never into the wrong place.
//!
//! Every message goes into the agent's queue first, where it survives everything.
//! Whoever holds the agent's typing lock then delivers from the queue, in order,
//! until its own is through; those who wait for the lock meanwhile find their
//! answers in the queue. A message that cannot be typed now stays there for the
//! end of the turn.

use crate::containers::{self, Container};
use crate::events::Events;
use crate::inject::{Reached, Submission, Typist};
use crate::lock::FileLock;
use crate::queue::{Phase, Queue, Receipt, Taken};
use crate::{Result, Town, harnesses};
use gt_core::event::Event;
use gt_core::harness::Preset;
use gt_core::nudge::{Message, NotNow, Priority, fingerprint};
use gt_core::session::SessionId;
use gt_core::{Caller, Identity, Problem, stale};
use std::time::{Duration, Instant};

/// How long others may type to the same agent before we.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// When a message is to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Now or, where Enter could answer a question, not by us.
    Immediate,
    /// At the end of the turn, by whoever is awake then.
    Queue,
    /// When the agent is idle, if that is soon enough; else by the queue.
    #[default]
    WaitIdle,
}

impl Mode {
    pub fn word(self) -> &'static str {
        match self {
            Mode::Immediate => "immediate",
            Mode::Queue => "queue",
            Mode::WaitIdle => "wait-idle",
        }
    }
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    pub text: &'a str,
    pub sender: Option<&'a str>,
    pub mode: Mode,
    pub priority: Priority,
    /// How long to wait for an idle agent.
    pub patience: Duration,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Sent {
    pub id: String,
    pub outcome: Outcome,
    pub elapsed: Duration,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    Delivered(Receipt),
    /// It waits in the queue, for this reason.
    Queued(Option<NotNow>),
}

/// Sends a message to a running agent.
pub fn send(town: &Town, identity: &Identity, order: &Order<'_>) -> Result<Sent> {
    let began = Instant::now();
    running(town, identity)?;
    let message = message(town, order);
    if message.shown().trim().is_empty() {
        return Err(Problem::usage("the message is empty"));
    }
    let queue = Queue::of(town, identity);
    let now = message.created_at;
    queue.expire(now)?;
    queue.add(&message, town.settings().nudge.depth)?;
    let sent = |outcome| {
        if let Outcome::Queued(reason) = &outcome {
            let reason = reason.map_or("for the end of a turn", NotNow::words);
            let queued = event(&message, identity).with("delivered", "queue");
            Events::of(town).note(vec![queued.with("reason", reason)]);
        }
        Sent {
            id: message.id.clone(),
            outcome,
            elapsed: began.elapsed(),
        }
    };
    if order.mode == Mode::Queue {
        return Ok(sent(Outcome::Queued(None)));
    }
    let deadline = match order.mode {
        Mode::Immediate => Instant::now(),
        _ => Instant::now() + order.patience,
    };
    let Some(_lock) = await_lock(
        town,
        &queue,
        &message.id,
        deadline.max(began + LOCK_PATIENCE),
    )?
    else {
        // Somebody else delivered it, or is still at it.
        return Ok(sent(match queue.receipt(&message.id) {
            Some(receipt) => Outcome::Delivered(receipt),
            None => Outcome::Queued(Some(NotNow::Busy)),
        }));
    };
    // Looked at under the lock: it may have been started anew meanwhile.
    let container = running(town, identity)?;
    let preset = preset_of(town, &container)?;
    let while_busy = order.mode == Mode::Immediate;
    let mut delivery = Delivery::new(town, &queue, &container, &preset, while_busy, deadline);
    let reason = delivery.run(Some(&message.id))?;
    Ok(sent(match queue.receipt(&message.id) {
        Some(receipt) => Outcome::Delivered(receipt),
        None => Outcome::Queued(reason),
    }))
}

/// Delivers what waits for an agent, as far as it is idle within the patience.
pub fn drain(town: &Town, identity: &Identity, patience: Duration) -> Result<Option<NotNow>> {
    let queue = Queue::of(town, identity);
    queue.expire(jiff::Timestamp::now().as_second())?;
    if queue.is_empty() {
        return Ok(None);
    }
    // Whoever types already goes on until nothing of his is left; ours may be.
    let Some(_lock) = FileLock::try_take(&queue.lock_path())? else {
        return Ok(Some(NotNow::Busy));
    };
    let container = running(town, identity)?;
    let preset = preset_of(town, &container)?;
    let deadline = Instant::now() + patience;
    let mut delivery = Delivery::new(town, &queue, &container, &preset, false, deadline);
    // Each message begins a turn of its own, and nobody else may come by.
    delivery.patience = Some(patience);
    delivery.run(None)
}

/// Takes back a message that was not submitted. One that was left behind half way is
/// taken back too, as long as nothing of it can be in the input line.
pub fn cancel(town: &Town, identity: &Identity, id: &str) -> Result<bool> {
    let queue = Queue::of(town, identity);
    if let Some(_lock) = FileLock::try_take(&queue.lock_path())?
        && let Some(taken) = queue.interrupted()
        && taken.message.id == id
        && (taken.phase == Phase::Taken || has_empty_line(town, identity)?)
    {
        queue.put_back(&taken)?;
    }
    queue.cancel(id)
}

/// Whether nothing stands in the agent's input line; one that has ended has none.
fn has_empty_line(town: &Town, identity: &Identity) -> Result<bool> {
    let Ok(container) = running(town, identity) else {
        return Ok(true);
    };
    let preset = preset_of(town, &container)?;
    let seen = Typist::new(town, &container, &preset).observe()?;
    Ok(seen.input.is_some_and(|input| input.is_empty()))
}

/// The agent's container, with a living agent in it.
pub fn running(town: &Town, identity: &Identity) -> Result<Container> {
    let container = living(town, identity)?;
    if container.life().is_none() {
        // A message would be a command there.
        return Err(
            Problem::not_found(format!("{identity} has a shell, and no agent yet"))
                .hint("`gt task start` goes on from there"),
        );
    }
    Ok(container)
}

/// The same, with whatever lives in it: it may be the shell before the agent.
pub fn living(town: &Town, identity: &Identity) -> Result<Container> {
    let container = container_of(town, identity)?;
    if container.pane().dead || container.lost_agent_pane() {
        return Err(Problem::conflict(format!("{identity} has ended"))
            .hint(format!("`gt start {identity}` starts it again")));
    }
    Ok(container)
}

/// The same, whatever has become of its agent: a program beside it may go on.
pub fn container_of(town: &Town, identity: &Identity) -> Result<Container> {
    containers::of_agent(town, identity)?.ok_or_else(|| {
        Problem::not_found(format!("{identity} is not running"))
            .hint(format!("`gt start {identity}` starts it"))
    })
}

/// That there is a message: who sent it, and to whom. What it says is between the two.
fn event(message: &Message, target: &Identity) -> Event {
    let sender = message.caller.as_ref().or(message.sender.as_ref());
    Event::emitted("nudge", sender.map_or(Caller::Gt.as_str(), String::as_str))
        .with("target", target.address())
        .with("id", message.id.clone())
}

/// Why a message was not meant for this life, if it was sent before it began.
pub fn stale_reason(message: &Message, life: &SessionId) -> Option<String> {
    let written = |at: i64| {
        let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
        format!("{at:.3}")
    };
    stale::reason(message.sent_at_millis(), life.began_at_millis()?, written)
}

fn message(town: &Town, order: &Order<'_>) -> Message {
    let now = jiff::Timestamp::now().as_second();
    let minutes = match order.priority {
        Priority::Urgent => town.settings().nudge.urgent_ttl_minutes,
        Priority::Normal => town.settings().nudge.ttl_minutes,
    };
    Message {
        id: uuid::Uuid::now_v7().to_string(),
        sender: order.sender.map(str::to_owned),
        caller: Some(
            order
                .sender
                .map_or_else(|| town.caller().as_str().to_owned(), str::to_owned),
        ),
        text: order.text.to_owned(),
        priority: order.priority,
        created_at: now,
        expires_at: (minutes > 0).then(|| now + minutes * 60),
    }
}

/// Takes the typing lock, unless somebody else delivers our message meanwhile.
fn await_lock(town: &Town, queue: &Queue, id: &str, deadline: Instant) -> Result<Option<FileLock>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if queue.receipt(id).is_some() {
            return Ok(None);
        }
        if let Some(lock) = FileLock::try_take(&queue.lock_path())? {
            return Ok(Some(lock));
        }
        town.around().cancel.check()?;
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// One holder of the typing lock at work.
struct Delivery<'a> {
    town: &'a Town,
    queue: &'a Queue,
    typist: Typist<'a>,
    identity: Option<Identity>,
    /// The agent's life, by its id.
    life: String,
    while_busy: bool,
    deadline: Instant,
    /// What the deadline becomes with every message that is through.
    patience: Option<Duration>,
}

impl<'a> Delivery<'a> {
    fn new(
        town: &'a Town,
        queue: &'a Queue,
        container: &Container,
        preset: &'a Preset,
        while_busy: bool,
        deadline: Instant,
    ) -> Self {
        let life = container.life();
        Delivery {
            town,
            queue,
            typist: Typist::new(town, container, preset),
            identity: container.identity().cloned(),
            life: life.map_or_else(|| "unknown".to_owned(), |life| life.to_string()),
            while_busy,
            deadline,
            patience: None,
        }
    }

    /// Delivers in order, until that message is through or nothing is left. Gives
    /// the reason why it could not go on.
    fn run(&mut self, until: Option<&str>) -> Result<Option<NotNow>> {
        loop {
            let Some(mut taken) = self.next()? else {
                return Ok(None);
            };
            match self.type_one(&mut taken)? {
                Submission::Submitted { proof, attempts } => {
                    self.finish(&taken, proof, attempts)?;
                    if let Some(patience) = self.patience {
                        self.deadline = Instant::now() + patience;
                    }
                    if until == Some(taken.message.id.as_str()) {
                        return Ok(None);
                    }
                }
                Submission::NotNow(reason, _) => {
                    // Of one that was pasted the traces are still there: whoever
                    // comes next goes on from them.
                    if taken.phase == Phase::Taken {
                        self.queue.put_back(&taken)?;
                    }
                    let left = self.deadline.saturating_duration_since(Instant::now());
                    // It may have ended since it was looked at.
                    let reason = match self.typist.has_ended() {
                        true => NotNow::Ended,
                        false => reason,
                    };
                    if matches!(reason, NotNow::Ended | NotNow::Paused)
                        || left.is_zero()
                        || self.town.around().cancel.is_set()
                    {
                        return Ok(Some(reason));
                    }
                    let pause = left.min(Duration::from_millis(250));
                    self.typist.wait_for_chance(reason, pause)?;
                }
            }
        }
    }

    /// What a crashed process had begun comes first, then the queue.
    fn next(&self) -> Result<Option<Taken>> {
        let Some(taken) = self.queue.interrupted() else {
            return self.queue.take(&self.life);
        };
        if self.queue.receipt(&taken.message.id).is_some() {
            self.queue.forget(&taken)?;
            return self.next();
        }
        if taken.life == self.life {
            return Ok(Some(taken));
        }
        // Typed to an earlier life, whose input line is gone. Only its hook can tell
        // whether it took the message; where it did not, this life gets it.
        let seen = self.typist.observe()?;
        let was_taken =
            seen.prompts > taken.prompts && seen.last_prompt == fingerprint(&taken.message.shown());
        if taken.phase == Phase::Entering && was_taken {
            self.finish(&taken, "hook", 1)?;
        } else {
            self.queue.put_back(&taken)?;
        }
        self.next()
    }

    fn type_one(&mut self, taken: &mut Taken) -> Result<Submission> {
        let text = taken.message.shown();
        let reached = Reached {
            phase: taken.phase,
            since: taken.since,
            prompts: taken.prompts,
        };
        let queue = self.queue;
        let while_busy = self.while_busy;
        self.typist
            .submit(&text, reached, while_busy, |phase, prompts| {
                queue.advance(taken, phase, prompts)
            })
    }

    fn finish(&self, taken: &Taken, proof: &str, attempts: u32) -> Result<()> {
        let receipt = Receipt {
            id: taken.message.id.clone(),
            proof: Some(proof.to_owned()),
            attempts,
        };
        self.queue.finish(taken, &receipt)?;
        if let Some(target) = &self.identity {
            let life = taken.life.parse().ok();
            let stale = life.and_then(|life| stale_reason(&taken.message, &life));
            let delivered = event(&taken.message, target)
                .with("delivered", "agent")
                .with("proof", proof)
                .with("session_id", taken.life.clone())
                .with("stale", stale.as_ref().map(|_| true))
                .with("stale_reason", stale);
            Events::of(self.town).note(vec![delivered]);
        }
        Ok(())
    }
}

/// Presets are read once per call; this is for callers that have none at hand.
pub fn preset_of(town: &Town, container: &Container) -> Result<Preset> {
    Ok(harnesses::resolve(town, &container.pane().tag_harness)?.value)
}
