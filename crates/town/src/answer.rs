//! Answering a dialog: read, moved to the wanted row, seen there, confirmed.
//!
//! Every key follows a look, as everywhere in [`crate::inject`]. If the question
//! changes on the way, nothing more is pressed.

use crate::containers::Container;
use crate::inject::{Typist, press};
use crate::lock::FileLock;
use crate::queue::Queue;
use crate::{Result, Town};
use gt_core::answer::{self, Choice};
use gt_core::harness::Preset;
use gt_core::screen::Asking;
use gt_core::{Identity, Problem};
use std::time::{Duration, Instant};

/// How long others may type to the same agent before we.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);
/// How long a program may take to draw what a key has changed.
const REDRAW_PATIENCE: Duration = Duration::from_secs(1);
/// Claude Code takes no Enter in the first moment of a dialog, so that nobody answers
/// what he has not read. The row is seen to be marked still before it is pressed again.
const MOST_ENTERS: u32 = 5;

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    pub asking: Asking,
    /// The place of the option that was chosen.
    pub chosen: usize,
}

/// The question that an agent asks.
pub fn question(
    town: &Town,
    identity: &Identity,
    container: &Container,
    preset: &Preset,
) -> Result<Asking> {
    open_question(&mut Typist::new(town, container, preset), identity)
}

/// The question that is open, or is just about to open.
fn open_question(typist: &mut Typist<'_>, identity: &Identity) -> Result<Asking> {
    let deadline = Instant::now() + REDRAW_PATIENCE;
    loop {
        let seen = typist.observe()?;
        if let Some(asking) = seen.asking {
            return Ok(asking);
        }
        if !seen.dialog || Instant::now() >= deadline {
            return Err(Problem::conflict(format!("{identity} asks nothing"))
                .hint(format!("`gt peek {identity}` shows its screen")));
        }
        typist.wait(Duration::from_millis(100));
    }
}

/// Chooses an option of the dialog that an agent has open.
pub fn answer(
    town: &Town,
    identity: &Identity,
    container: &Container,
    preset: &Preset,
    choice: &Choice,
) -> Result<Answered> {
    let _lock = FileLock::take(&Queue::of(town, identity).lock_path(), LOCK_PATIENCE)?;
    let mut typist = Typist::new(town, container, preset);
    let asking = open_question(&mut typist, identity)?;
    let chosen = answer::pick(&asking, choice)?;
    let pane = container.pane().pane;
    let mut marked = marked(&asking, identity)?;
    while marked != chosen {
        let key = match (chosen > marked, asking.across) {
            (true, false) => "Down",
            (false, false) => "Up",
            (true, true) => "Right",
            (false, true) => "Left",
        };
        press(town, pane, &[key.to_owned()])?;
        let now = await_change(&mut typist, &asking, Some(marked))?;
        let moved = now
            .filter(|now| is_same(now, &asking))
            .and_then(|now| now.marked);
        marked = moved.filter(|now| *now != marked).ok_or_else(|| {
            Problem::conflict(format!(
                "the question of {identity} has changed, or {key} does nothing there"
            ))
            .hint(format!(
                "`gt peek {identity}` shows it, `gt keys {identity} KEY` presses keys"
            ))
        })?;
    }
    for _ in 0..MOST_ENTERS {
        press(town, pane, &["Enter".to_owned()])?;
        let now = await_change(&mut typist, &asking, None)?;
        let is_unmoved = |now: &Asking| is_same(now, &asking) && now.marked == Some(chosen);
        if !now.is_some_and(|now| is_unmoved(&now)) {
            return Ok(Answered { asking, chosen });
        }
    }
    Err(Problem::failed(format!(
        "{identity} still asks, although Enter was pressed on {:?}",
        asking.options[chosen]
    )))
}

fn marked(asking: &Asking, identity: &Identity) -> Result<usize> {
    asking.marked.ok_or_else(|| {
        Problem::failed("which of its options is marked cannot be read".to_owned())
            .hint(format!("`gt attach {identity}` and answer there"))
    })
}

/// The same question, wherever its mark is.
fn is_same(now: &Asking, before: &Asking) -> bool {
    now.text == before.text && now.options == before.options
}

/// Looks until the question, or only its mark where one is given, is another.
fn await_change(
    typist: &mut Typist<'_>,
    before: &Asking,
    marked: Option<usize>,
) -> Result<Option<Asking>> {
    let deadline = Instant::now() + REDRAW_PATIENCE;
    loop {
        let now = typist.observe()?.asking;
        let is_still = now
            .as_ref()
            .is_some_and(|now| is_same(now, before) && (marked.is_none() || now.marked == marked));
        let left = deadline.saturating_duration_since(Instant::now());
        if !is_still || left.is_zero() || typist.has_ended() {
            return Ok(now);
        }
        typist.wait(left.min(Duration::from_millis(100)));
    }
}
