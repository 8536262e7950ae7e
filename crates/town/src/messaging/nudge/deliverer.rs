//! The background process that delivers waiting messages.
//!
//! There is one per agent, ensured by a lock. It sleeps until the agent's terminal prints, its
//! process ends or its queue changes, then reads the screen and delivers what is possible. It takes
//! the typing lock only for a delivery, so that it does not block senders.
//!
//! It ends when the queue is empty or holds only messages that must not disturb the agent, when the
//! agent is gone, paused or stopped, and when its time limit has passed. tmux starts it
//! ([`crate::messaging::signal::wake_delivery_to`]). If it is killed, the end of a turn, the next
//! start or `workflow/recovery.rs` starts another.

use super::delivery::held;
use super::{NudgeError, QueueDelivery, is_paused, preset_of, running};
use crate::base::dnd;
use crate::base::lock::FileLock;
use crate::messaging::inject::Typist;
use crate::messaging::queue::{MessageQueue, Phase};
use crate::terminal::dnd_timer;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::nudge::{NotNow, is_in_input};
use std::time::{Duration, Instant};

/// Maximum run time of one background process.
pub const LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Delay before one more reading after the last event. A hook's report overrides an idle screen for
/// two seconds, and a pasted text may take longer to appear.
const LOOK_AGAIN: Duration = Duration::from_millis(2_500);
/// Seconds for which the screen is searched for a pasted text even without an event.
const RECENT_SECONDS: i64 = 120;
/// Minimum interval between two readings: a busy program draws many times a second.
const BETWEEN_LOOKS: Duration = Duration::from_millis(if cfg!(target_os = "linux") {
    100
} else {
    1_000
});

/// Reason why the process stops waiting.
enum WaitOutcome {
    Empty,
    Paused,
    /// An emergency stop or a do-not-disturb holds the messages.
    Held,
    /// The agent has ended, or the time limit has passed.
    NotNow,
}

/// Delivers the waiting messages of an agent, each as soon as the agent is ready. Returns at once
/// if another process already does so.
pub fn deliver_waiting(town: &Town, identity: &Identity, limit: Duration) -> Result<()> {
    let queue = MessageQueue::of(town, identity);
    let deadline = Instant::now() + limit;
    while !queue.is_empty() {
        let Some(turn) = lock_deliverer(&queue)? else {
            return Ok(());
        };
        let session = running(town, identity)?.session_id();
        let end = await_readiness(town, identity, &queue, deadline)?;
        drop(turn);
        // Checked again after the release: a message, a new session or the end of a pause or stop
        // that came before it found the lock held, and started no other deliverer.
        let now = match running(town, identity) {
            Err(NudgeError::NotRunning(_)) => return Ok(()),
            now => now?,
        };
        let goes_on = match end {
            WaitOutcome::Empty => true,
            WaitOutcome::Paused => !is_paused(&now),
            WaitOutcome::Held => held(town, identity, &queue).is_none(),
            WaitOutcome::NotNow => now.session_id() != session,
        };
        if !goes_on {
            return Ok(());
        }
    }
    Ok(())
}

/// Takes the deliverer's lock. Retries once, because a check by another process holds it for a
/// moment.
fn lock_deliverer(queue: &MessageQueue) -> Result<Option<FileLock>> {
    let path = queue.deliverer_lock_path();
    if let Some(lock) = FileLock::try_take(&path)? {
        return Ok(Some(lock));
    }
    std::thread::sleep(Duration::from_millis(20));
    FileLock::try_take(&path)
}

fn await_readiness(
    town: &Town,
    identity: &Identity,
    queue: &MessageQueue,
    deadline: Instant,
) -> Result<WaitOutcome> {
    let container = running(town, identity)?;
    let preset = preset_of(town, &container)?;
    let mut typist = Typist::new(town, &container, &preset);
    typist.watch_folders(&queue.folders());
    let mut looks_again = true;
    for problem in queue.unreadable(usize::MAX) {
        tracing::warn!("{}", problem.line());
    }
    loop {
        let now = town.clock().seconds();
        super::expire(town, identity, queue, now)?;
        if queue.is_empty() {
            return Ok(WaitOutcome::Empty);
        }
        if typist.has_ended() || Instant::now() >= deadline || town.around().cancel.is_set() {
            return Ok(WaitOutcome::NotNow);
        }
        let reason = match held(town, identity, queue) {
            Some(reason) => Some(reason),
            None => match is_ready(&typist, queue)? {
                Ok(()) => deliver(town, queue, identity)?,
                Err(reason) => Some(reason),
            },
        };
        match reason {
            // Another message has arrived meanwhile.
            None if queue.has_readable() => continue,
            Some(NotNow::Ended) => return Ok(WaitOutcome::NotNow),
            Some(NotNow::Paused) => return Ok(WaitOutcome::Paused),
            Some(NotNow::Stopped) => return Ok(WaitOutcome::Held),
            Some(NotNow::DoNotDisturb) => {
                // The first timer ends with its tmux server.
                let note = dnd::read(town, &identity.address());
                if let Some(until) = note.and_then(|note| note.until) {
                    dnd_timer::set(town, until);
                }
                return Ok(WaitOutcome::Held);
            }
            // Files that cannot be read stay in the queue: only a change of it can help.
            None | Some(_) => {}
        }
        std::thread::sleep(BETWEEN_LOOKS);
        let left = deadline.saturating_duration_since(Instant::now());
        let expiry = next_expiry(queue, now).unwrap_or(left);
        let begun = queue.interrupted();
        let is_recent = begun.is_some_and(|taken| now - taken.since < RECENT_SECONDS);
        let pause = match looks_again || is_recent {
            true => LOOK_AGAIN,
            false => left,
        };
        looks_again = typist.wait_for_change(reason, is_recent, pause.min(left).min(expiry))?;
    }
}

/// Returns whether taking the lock is useful: the agent is ready for a message, or one of our texts
/// is in its input line or about to appear there.
fn is_ready(typist: &Typist<'_>, queue: &MessageQueue) -> Result<std::result::Result<(), NotNow>> {
    let seen = typist.observe()?;
    let Err(reason) = typist.may_type(&seen) else {
        return Ok(Ok(()));
    };
    let line = seen.input.as_deref().unwrap_or_default();
    let has_begun = queue
        .interrupted()
        .is_some_and(|taken| taken.phase != Phase::Taken);
    let is_ours = || {
        let aside = queue.set_aside_messages();
        aside
            .iter()
            .any(|it| is_in_input(line, &it.message.displayed_text()))
    };
    let is_worth_it = match reason {
        NotNow::Occupied => has_begun || is_ours(),
        NotNow::NoPrompt => has_begun,
        _ => false,
    };
    Ok(if is_worth_it { Ok(()) } else { Err(reason) })
}

/// Delivers as many messages as currently possible.
fn deliver(town: &Town, queue: &MessageQueue, identity: &Identity) -> Result<Option<NotNow>> {
    let _lock = FileLock::take_waiting(&queue.lock_path())?;
    // Read under the lock: the agent may have been restarted meanwhile.
    let container = running(town, identity)?;
    let preset = preset_of(town, &container)?;
    let delivery = QueueDelivery::new(town, queue, &container, &preset, false, Instant::now());
    Ok(delivery.run(None, &|_| {})?.reason)
}

/// Returns the time until the next message expires.
fn next_expiry(queue: &MessageQueue, now: i64) -> Option<Duration> {
    let waiting = queue.waiting();
    let expiries = waiting.iter().filter_map(|message| message.expires_at);
    let next = expiries.min()?;
    Some(Duration::from_secs(
        u64::try_from(next - now).unwrap_or(0).max(1),
    ))
}
