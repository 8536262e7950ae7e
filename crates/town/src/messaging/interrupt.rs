//! Interrupts the turn of an agent with the keys of its program. The program keeps running, with its
//! conversation.

use crate::base::lock::FileLock;
use crate::messaging::inject::{self, PaneObservation, Typist, put_back};
use crate::messaging::queue::MessageQueue;
use crate::messaging::{nudge, signal};
use crate::terminal::adopted;
use crate::terminal::containers::{Container, tmux_problem};
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::startup::tag;
use gt_core::state::State;
use gt_core::{Identity, Problem};
use gt_tmux::Command;
use std::time::{Duration, Instant};

/// Maximum wait for the typing lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for a turn to stop, for a person who waits for it.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before the keys are pressed again, if the program is still busy.
const PRESS_AGAIN: Duration = Duration::from_secs(5);
/// Delay between two keys: programs use it to tell an Escape from the beginning of another key.
const BETWEEN_KEYS: Duration = Duration::from_millis(100);
/// Minimum time that the screen must look stopped: programs draw an empty line between two screens.
const CALM: Duration = Duration::from_millis(400);
/// Minimum time for an agent that was busy, before a key was pressed: a program that has just taken a
/// prompt may not show its turn yet.
const CALM_WHEN_BUSY: Duration = Duration::from_secs(3);
/// Maximum wait for a program to take the prompt that it was started with.
const FIRST_PROMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// Result of [`interrupt`].
pub(crate) struct InterruptOutcome {
    /// The turn that was stopped, if there was one.
    pub(crate) turn: Option<StoppedTurn>,
    /// It shows a question, which stays open.
    pub(crate) asks: bool,
}

pub(crate) struct StoppedTurn {
    /// Fingerprint of its message, as reported by the program's hooks.
    pub(crate) message: String,
    /// Mark of the input line, if the program put the message back into it.
    pub(crate) put_back: Option<String>,
}

/// Result of [`interrupt_turn`].
#[derive(Clone, Copy, Debug)]
pub struct Interrupted {
    /// Whether a turn was stopped.
    pub interrupted: bool,
    /// Whether it shows a question, which stays open.
    pub asks: bool,
}

/// Stops the turn of a running agent. Messages that wait for it are delivered afterwards.
pub fn interrupt_turn(town: &Town, agent: &Identity) -> Result<Interrupted> {
    let town = adopted::home_of(town, agent);
    let container = nudge::running(&town, agent)?;
    let preset = nudge::preset_of(&town, &container)?;
    let before = container.state(Some(&preset)).state;
    // Prevents messages from being typed between the keys.
    let lock = FileLock::take(&MessageQueue::of(&town, agent).lock_path(), LOCK_TIMEOUT)?;
    let stopped = interrupt(&town, &container, &preset, before, STOP_TIMEOUT)?;
    drop(lock);
    signal::wake_deliveries(&town, std::slice::from_ref(&container));
    Ok(Interrupted {
        interrupted: stopped.turn.is_some(),
        asks: stopped.asks,
    })
}

/// Stops the turn. Presses no key if no turn is visible: at a prompt the keys mean something else,
/// and in a dialog they are an answer.
pub(crate) fn interrupt(
    town: &Town,
    container: &Container,
    preset: &Preset,
    before: State,
    timeout: Duration,
) -> Result<InterruptOutcome> {
    let mut typist = Typist::new(town, container, preset);
    let began = Instant::now();
    let mut presses = Presses::new(&preset.interrupt.keys);
    let mut line_was_empty = true;
    let mut calm_since: Option<Instant> = None;
    let first_prompt_timeout = FIRST_PROMPT_TIMEOUT.min(timeout / 2);
    // The screen of a program without marks says nothing; its hooks may.
    let is_blind = preset.screen.busy.is_empty() && preset.screen.ready.is_empty();
    let works = |seen: &PaneObservation| match seen.state {
        Some(state) => state == State::Busy,
        None => before == State::Busy || is_blind,
    };
    loop {
        let seen = typist.observe()?;
        if seen.is_over {
            return Err(Problem::conflict("the agent ended meanwhile")
                .hint("`gt task resume` starts it again"));
        }
        let is_unread = seen.state.is_none();
        if seen.dialog || !works(&seen) || (is_unread && presses.are_done()) {
            let may_begin = before == State::Busy && !presses.have_begun() && !seen.dialog;
            if may_begin
                && began.elapsed() < first_prompt_timeout
                && awaits_first_prompt(town, container)
            {
                calm_since = None;
            }
            let since = *calm_since.get_or_insert_with(Instant::now);
            let calm = if may_begin { CALM_WHEN_BUSY } else { CALM };
            if since.elapsed() >= calm {
                let turn = StoppedTurn {
                    put_back: put_back::mark(&seen).filter(|_| line_was_empty),
                    message: match seen.last_prompt.is_empty() {
                        true => "unknown".to_owned(),
                        false => seen.last_prompt,
                    },
                };
                return Ok(InterruptOutcome {
                    turn: presses.have_begun().then_some(turn),
                    asks: seen.dialog,
                });
            }
        } else {
            calm_since = None;
            if !presses.have_begun() {
                line_was_empty = put_back::mark(&seen).is_none();
            }
            if let Some(key) = presses.next() {
                let keys = inject::key_presses(container.pane().pane, std::slice::from_ref(key));
                let done = town.server().run(keys).map(drop);
                done.map_err(|error| tmux_problem("cannot type into the pane", error))?;
            }
        }
        if began.elapsed() > timeout {
            return Err(Problem::failed("the agent does not stop")
                .hint("`gt attach` shows what it does; `gt task stop` ends it"));
        }
        town.around().cancel.check()?;
        typist.wait(Duration::from_millis(100));
    }
}

/// Returns whether the program was started with a prompt that its hook has not reported yet.
fn awaits_first_prompt(town: &Town, container: &Container) -> bool {
    let ask = Command::new("display-message").arg("-p");
    let ask = ask.target(container.id());
    let answer = town
        .server()
        .run(ask.arg(format!("#{{{}}}", tag::FIRST_PROMPT)));
    // The next look at the screen reports a container that is gone.
    answer.is_ok_and(|answer| !answer.trim().is_empty())
}

/// The keys that stop a turn, pressed one after another: programs read two Escapes at once as one
/// key with Alt, and the second is not pressed once the turn has stopped.
struct Presses<'p> {
    keys: &'p [String],
    count: usize,
    last: Option<Instant>,
}

impl<'p> Presses<'p> {
    fn new(keys: &'p [String]) -> Self {
        Presses {
            keys,
            count: 0,
            last: None,
        }
    }

    fn have_begun(&self) -> bool {
        self.count > 0
    }

    fn are_done(&self) -> bool {
        self.count >= self.keys.len().max(1)
    }

    /// Returns the key to press now, if its delay has passed.
    fn next(&mut self) -> Option<&'p String> {
        let place = self.count % self.keys.len().max(1);
        let pause = if place == 0 {
            PRESS_AGAIN
        } else {
            BETWEEN_KEYS
        };
        if self.last.is_some_and(|at| at.elapsed() < pause) {
            return None;
        }
        self.count += 1;
        self.last = Some(Instant::now());
        self.keys.get(place)
    }
}
