//! Giving agents messages: exactly once, whole, and never into the wrong place.
//!
//! Every message goes into the agent's queue first, where it survives everything.
//! Whoever holds the agent's typing lock then delivers from the queue, in order,
//! until its own is through; those who wait for the lock meanwhile find their
//! answers in the queue. A message that cannot be typed now stays there for the
//! end of the turn.

use crate::containers::{self, Container};
use crate::inject::{Submission, Typist};
use crate::lock::FileLock;
use crate::queue::{Phase, Queue, Receipt};
use crate::{Result, Town, harnesses};
use gt_core::harness::Preset;
use gt_core::nudge::{Message, NotNow, Priority};
use gt_core::{Identity, Problem};
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
    let container = running(town, identity)?;
    let preset = harnesses::resolve(town, &container.pane().tag_harness)?.value;
    let message = message(town, order);
    if message.shown().trim().is_empty() {
        return Err(Problem::usage("the message is empty"));
    }
    let queue = Queue::of(town, identity);
    let now = message.created_at;
    queue.expire(now)?;
    queue.add(&message, town.settings().nudge.depth)?;
    let sent = |outcome| Sent {
        id: message.id.clone(),
        outcome,
        elapsed: began.elapsed(),
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
    let mut delivery = Delivery {
        town,
        queue: &queue,
        typist: Typist::new(town, &container, &preset),
        while_busy: order.mode == Mode::Immediate,
        deadline,
    };
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
    let container = running(town, identity)?;
    let preset = harnesses::resolve(town, &container.pane().tag_harness)?.value;
    // Whoever types already goes on until nothing of his is left; ours may be.
    let Some(_lock) = FileLock::try_take(&queue.lock_path())? else {
        return Ok(Some(NotNow::Busy));
    };
    let mut delivery = Delivery {
        town,
        queue: &queue,
        typist: Typist::new(town, &container, &preset),
        while_busy: false,
        deadline: Instant::now() + patience,
    };
    delivery.run(None)
}

/// The agent's container, with a living agent in it.
pub fn running(town: &Town, identity: &Identity) -> Result<Container> {
    let container = containers::of_agent(town, identity)?.ok_or_else(|| {
        Problem::not_found(format!("{identity} is not running"))
            .hint(format!("`gt start {identity}` starts it"))
    })?;
    if container.pane().dead || container.lost_agent_pane() {
        return Err(Problem::conflict(format!("{identity} has ended"))
            .hint(format!("`gt start {identity}` starts it again")));
    }
    Ok(container)
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
    while_busy: bool,
    deadline: Instant,
}

impl Delivery<'_> {
    /// Delivers in order, until that message is through or nothing is left. Gives
    /// the reason why it could not go on.
    fn run(&mut self, until: Option<&str>) -> Result<Option<NotNow>> {
        loop {
            let Some((message, phase)) = self.next()? else {
                return Ok(None);
            };
            let (submission, reached) = self.type_one(&message, phase)?;
            match submission {
                Submission::Submitted { proof, attempts } => {
                    let receipt = Receipt {
                        id: message.id.clone(),
                        proof: proof.map(str::to_owned),
                        attempts,
                    };
                    self.queue.finish(&message, reached, &receipt)?;
                    if until == Some(message.id.as_str()) {
                        return Ok(None);
                    }
                }
                Submission::NotNow(reason, _) => {
                    let left = self.deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() || self.town.around().cancel.is_set() {
                        // Of one that was pasted the traces are still there: whoever
                        // comes next goes on from them.
                        if reached == Phase::Taken {
                            self.queue.put_back(&message, reached)?;
                        }
                        return Ok(Some(reason));
                    }
                    if reached == Phase::Taken {
                        self.queue.put_back(&message, reached)?;
                    }
                    self.typist
                        .wait_for_chance(reason, left.min(Duration::from_millis(250)))?;
                }
            }
        }
    }

    /// What a crashed process had begun comes first, then the queue.
    fn next(&self) -> Result<Option<(Message, Phase)>> {
        if let Some(interrupted) = self.queue.interrupted() {
            return Ok(Some(interrupted));
        }
        Ok(self.queue.take()?.map(|message| (message, Phase::Taken)))
    }

    fn type_one(&mut self, message: &Message, phase: Phase) -> Result<(Submission, Phase)> {
        let mut reached = phase;
        let queue = self.queue;
        let submission = self
            .typist
            .submit(&message.shown(), phase, self.while_busy, |next| {
                if next != reached {
                    queue.advance(message, reached, next)?;
                    reached = next;
                }
                Ok(())
            })?;
        Ok((submission, reached))
    }
}

/// Presets are read once per call; this is for callers that have none at hand.
pub fn preset_of(town: &Town, container: &Container) -> Result<Preset> {
    Ok(harnesses::resolve(town, &container.pane().tag_harness)?.value)
}
