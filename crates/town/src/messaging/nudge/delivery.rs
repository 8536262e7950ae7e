//! Delivery from the queue under the typing lock.

use super::{event, stale_reason};
use crate::base::estop;
use crate::base::fault;
use crate::messaging::inject::{Reached, Submission, Typist};
use crate::messaging::queue::{MessageQueue, Phase, Receipt, TakenMessage};
use crate::records::events::Events;
use crate::records::usage::{Evidence, find_prompt};
use crate::terminal::containers::Container;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::harness::Preset;
use gt_core::nudge::{NotNow, Proof, fingerprint, is_in_input};
use std::time::{Duration, Instant};

/// Why a message that may have arrived is not retried.
const UNKNOWN: &str = "delivery unknown: its session ended just after Enter was pressed, and \
                       nothing tells whether it was taken; not sent again";

/// The result of an Enter that was pressed in an earlier session.
enum EarlierEnter {
    /// The message was taken, with this proof.
    Took(Proof),
    DidNotTake,
    Unknown,
}

/// The final result for the message that a delivery was run for.
pub(super) enum FinalResult {
    Delivered(Receipt),
    /// It was set aside for this reason.
    SetAside(String),
}

/// The result of a delivery.
pub(super) struct DeliveryResult {
    /// `None` if the message still waits, or if none was named.
    pub(super) settled: Option<FinalResult>,
    /// Why the delivery stopped before the queue was empty.
    pub(super) reason: Option<NotNow>,
}

/// Returns why no message may be typed to an agent now, whatever its screen shows.
pub(super) fn held(town: &Town, agent: &Identity, queue: &MessageQueue) -> Option<NotNow> {
    if estop::read(town, agent.rig()).is_some() {
        return Some(NotNow::Stopped);
    }
    let is_held = queue.is_held_back(town, agent);
    is_held.then_some(NotNow::DoNotDisturb)
}

/// Delivers from one queue to one session of its agent.
pub(super) struct QueueDelivery<'a> {
    town: &'a Town,
    queue: &'a MessageQueue,
    typist: Typist<'a>,
    identity: Option<Identity>,
    /// The id of the agent's session.
    session: String,
    while_busy: bool,
    deadline: Instant,
    /// The message that this delivery is run for.
    wanted: Option<String>,
    settled: Option<FinalResult>,
}

impl<'a> QueueDelivery<'a> {
    pub(super) fn new(
        town: &'a Town,
        queue: &'a MessageQueue,
        container: &Container,
        preset: &'a Preset,
        while_busy: bool,
        deadline: Instant,
    ) -> Self {
        let session = container.session_id();
        QueueDelivery {
            town,
            queue,
            typist: Typist::new(town, container, preset),
            identity: container.identity().cloned(),
            session: session.map_or_else(|| "unknown".to_owned(), |session| session.to_string()),
            while_busy,
            deadline,
            wanted: None,
            settled: None,
        }
    }

    /// Delivers in order until the message `until` is delivered or set aside, or the queue is
    /// empty. Calls `on_wait` once before it waits.
    pub(super) fn run(
        mut self,
        until: Option<&str>,
        on_wait: &dyn Fn(NotNow),
    ) -> Result<DeliveryResult> {
        self.wanted = until.map(str::to_owned);
        let mut is_told = false;
        while self.settled.is_none() {
            let agent = self.identity.as_ref();
            if let Some(reason) = agent.and_then(|it| held(self.town, it, self.queue)) {
                return Ok(DeliveryResult {
                    settled: None,
                    reason: Some(reason),
                });
            }
            let Some(mut taken) = self.next()? else {
                break;
            };
            match self.type_one(&mut taken)? {
                Submission::Submitted { proof, attempts } => {
                    self.finish(&taken, proof, attempts)?;
                }
                Submission::NotShown { in_line } => self.set_aside_unshown(&taken, in_line)?,
                Submission::NotNow(reason, _) => {
                    // A pasted message has left traces on the screen, from which the next delivery
                    // continues.
                    if taken.phase == Phase::Taken {
                        self.queue.put_back(&taken)?;
                    }
                    if reason == NotNow::Occupied && self.resume_from_line()? {
                        continue;
                    }
                    let left = self.deadline.saturating_duration_since(Instant::now());
                    // The agent may have ended since the screen was read.
                    let reason = match self.typist.has_ended() {
                        true => NotNow::Ended,
                        false => reason,
                    };
                    if matches!(reason, NotNow::Ended | NotNow::Paused)
                        || left.is_zero()
                        || self.town.around().cancel.is_set()
                    {
                        return Ok(DeliveryResult {
                            settled: None,
                            reason: Some(reason),
                        });
                    }
                    if !std::mem::replace(&mut is_told, true) {
                        on_wait(reason);
                    }
                    let pause = left.min(Duration::from_millis(250));
                    self.typist.wait_until_ready(reason, pause)?;
                }
            }
        }
        Ok(DeliveryResult {
            settled: self.settled,
            reason: None,
        })
    }

    /// Resumes a message that was set aside and whose text has appeared in the input line since:
    /// only Enter is missing. Returns whether there is one.
    fn resume_from_line(&mut self) -> Result<bool> {
        let aside = self.queue.set_aside_messages();
        if aside.is_empty() {
            return Ok(false);
        }
        let seen = self.typist.observe()?;
        let line = seen.input.as_deref().unwrap_or_default();
        let is_it =
            |message: &gt_core::nudge::Message| is_in_input(line, &message.displayed_text());
        let Some(found) = aside.into_iter().find(|it| is_it(&it.message)) else {
            return Ok(false);
        };
        self.queue
            .resume(&found.message, &self.session, seen.prompts)?;
        Ok(true)
    }

    /// Sets aside a message that the program does not show, and clears a different text that it
    /// shows instead.
    fn set_aside_unshown(&mut self, taken: &TakenMessage, in_line: bool) -> Result<()> {
        let reason = match in_line {
            true => "not delivered: its program shows a different text than was typed",
            false => "not delivered: its program does not show the typed text",
        };
        if in_line {
            self.typist.clear_line()?;
        }
        self.set_aside(taken, reason)
    }

    /// Sets a message aside and writes an event.
    fn set_aside(&mut self, taken: &TakenMessage, reason: &str) -> Result<()> {
        self.queue.set_aside(taken)?;
        fault::point(self.town, "nudge.aside");
        self.queue.write_reason(&taken.message, reason)?;
        if let Some(target) = &self.identity {
            let failed = event(&taken.message, target)
                .with("delivered", "failed")
                .with("session_id", taken.session.clone())
                .with("reason", reason);
            Events::of(self.town).note(vec![failed]);
        }
        self.note_end(&taken.message.id, || {
            FinalResult::SetAside(reason.to_owned())
        });
        Ok(())
    }

    /// Returns the next message: an interrupted delivery first, then the queue. Returns `None` if
    /// the queue is empty, or if the wanted message turned out to be settled.
    fn next(&mut self) -> Result<Option<TakenMessage>> {
        let Some(taken) = self.queue.interrupted() else {
            return self.queue.take(&self.session);
        };
        if let Some(receipt) = self.queue.receipt(&taken.message.id) {
            self.queue.forget(&taken)?;
            self.note_end(&taken.message.id, || FinalResult::Delivered(receipt));
            return self.next_unsettled();
        }
        if taken.session == self.session {
            return Ok(Some(taken));
        }
        // Typed to an earlier session, whose input line is gone. A receipt or tag of its hook, or
        // its transcript, may prove the delivery. Otherwise the session may have received it, and
        // the message is not retried.
        match self.taken_by_earlier(&taken)? {
            EarlierEnter::Took(proof) => self.finish(&taken, proof, 1)?,
            EarlierEnter::DidNotTake => self.queue.put_back(&taken)?,
            EarlierEnter::Unknown => self.set_aside(&taken, UNKNOWN)?,
        }
        self.next_unsettled()
    }

    fn next_unsettled(&mut self) -> Result<Option<TakenMessage>> {
        match self.settled {
            Some(_) => Ok(None),
            None => self.next(),
        }
    }

    /// Returns whether an earlier session took the message.
    fn taken_by_earlier(&self, taken: &TakenMessage) -> Result<EarlierEnter> {
        if taken.phase != Phase::Entering {
            return Ok(EarlierEnter::DidNotTake);
        }
        let text = taken.message.displayed_text();
        let seen = self.typist.observe()?;
        if seen.prompts > taken.prompts && seen.last_prompt == fingerprint(&text) {
            return Ok(EarlierEnter::Took(Proof::Hook));
        }
        Ok(
            match find_prompt(self.town, &taken.session, &text, taken.since) {
                Evidence::Present => EarlierEnter::Took(Proof::Transcript),
                Evidence::Absent => EarlierEnter::DidNotTake,
                Evidence::Unknown => EarlierEnter::Unknown,
            },
        )
    }

    fn type_one(&mut self, taken: &mut TakenMessage) -> Result<Submission> {
        let text = taken.message.displayed_text();
        let reached = Reached {
            phase: taken.phase,
            since: taken.since,
            prompts: taken.prompts,
            pastes: taken.pastes,
        };
        let queue = self.queue;
        let while_busy = self.while_busy;
        self.typist
            .submit(&text, reached, while_busy, |phase, prompts| {
                queue.advance(taken, phase, prompts)
            })
    }

    fn finish(&mut self, taken: &TakenMessage, proof: Proof, attempts: u32) -> Result<()> {
        let receipt = Receipt {
            id: taken.message.id.clone(),
            proof: Some(proof),
            attempts,
        };
        self.queue.finish(taken, &receipt)?;
        if let Some(target) = &self.identity {
            let session = taken.session.parse().ok();
            let stale = session.and_then(|session| stale_reason(&taken.message, &session));
            let delivered = event(&taken.message, target)
                .with("delivered", "agent")
                .with("proof", proof.as_str())
                .with("session_id", taken.session.clone())
                .with("stale", stale.as_ref().map(|_| true))
                .with("stale_reason", stale);
            Events::of(self.town).note(vec![delivered]);
        }
        self.note_end(&taken.message.id, || FinalResult::Delivered(receipt));
        Ok(())
    }

    /// Stores the final result for the message that this delivery is run for.
    fn note_end(&mut self, id: &str, end: impl FnOnce() -> FinalResult) {
        if self.wanted.as_deref() == Some(id) {
            self.settled = Some(end());
        }
    }
}
