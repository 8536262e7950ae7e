//! Answering a dialog: read, moved to the wanted row, seen there, confirmed.
//!
//! Every key follows a look, as everywhere in [`crate::inject`]. If the question
//! changes on the way, nothing more is pressed.

use crate::containers::Container;
use crate::inject::{Seen, Typist, press};
use crate::lock::FileLock;
use crate::queue::Queue;
use crate::{Result, Town};
use gt_core::answer::{self, Choice};
use gt_core::harness::Preset;
use gt_core::screen::Asking;
use gt_core::{Identity, Problem};
use gt_tmux::PaneId;
use std::time::{Duration, Instant};

/// How long others may type to the same agent before we.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);
/// How long a program may take to draw what a key has changed.
const REDRAW_PATIENCE: Duration = Duration::from_secs(2);
/// How long a question must have stood to be whole, and to be answered.
const DRAWN: Duration = Duration::from_millis(200);
const STANDS: Duration = Duration::from_secs(1);
const MOST_ENTERS: u32 = 3;

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
    open_question(&mut Typist::new(town, container, preset), identity, DRAWN)
}

/// The question that is open, or is just about to open, once it has stood for so long:
/// before that it may be half drawn, or nobody can have read it.
fn open_question(typist: &mut Typist<'_>, identity: &Identity, stands: Duration) -> Result<Asking> {
    let deadline = Instant::now() + stands + REDRAW_PATIENCE;
    let mut standing: Option<(Asking, Instant)> = None;
    loop {
        let seen = typist.observe()?;
        if let Some(now) = seen.asking {
            match &standing {
                Some((before, since)) if is_same(before, &now) => {
                    if since.elapsed() >= stands {
                        return Ok(now);
                    }
                }
                _ => standing = Some((now, Instant::now())),
            }
        } else if !seen.dialog && standing.is_none() {
            return Err(Problem::conflict(format!("{identity} asks nothing"))
                .hint(format!("`gt peek {identity}` shows its screen")));
        }
        if Instant::now() >= deadline {
            return Err(
                Problem::conflict(format!("what {identity} asks cannot be read"))
                    .hint(format!("`gt peek {identity}` shows its screen")),
            );
        }
        typist.wait(Duration::from_millis(100));
    }
}

/// Chooses an option of the dialog that an agent has open. If one is expected, by its
/// [`answer::fingerprint`], another gets no key.
pub fn answer(
    town: &Town,
    identity: &Identity,
    container: &Container,
    preset: &Preset,
    choice: &Choice,
    expected: Option<&str>,
) -> Result<Answered> {
    let _lock = FileLock::take(&Queue::of(town, identity).lock_path(), LOCK_PATIENCE)?;
    let mut typist = Typist::new(town, container, preset);
    let asking = open_question(&mut typist, identity, STANDS)?;
    if expected.is_some_and(|expected| expected != answer::fingerprint(&asking)) {
        return Err(
            Problem::conflict(format!("{identity} asks something else by now"))
                .cause(asking.text.clone())
                .hint(answer::listed(&asking)),
        );
    }
    let chosen = answer::pick(&asking, choice)?;
    let pane = container.pane().pane;
    let mut marked = marked(&asking, identity)?;
    let mut keys = 2 * asking.options.len();
    while marked != chosen {
        let key = match (chosen > marked, asking.across) {
            (true, false) => "Down",
            (false, false) => "Up",
            (true, true) => "Right",
            (false, true) => "Left",
        };
        press(town, pane, &[key.to_owned()])?;
        keys -= 1;
        // What cannot be read is being drawn.
        let place = |seen: &Seen| {
            let same = seen.asking.as_ref().filter(|now| is_same(now, &asking));
            same.and_then(|now| now.marked)
        };
        let now = await_look(&mut typist, |seen| {
            place(seen).is_some_and(|now| now != marked)
        })?;
        let moved = place(&now);
        let is_moved = |now: &usize| *now != marked && keys > 0;
        marked = moved.filter(is_moved).ok_or_else(|| {
            let what =
                format!("the question of {identity} has changed, or {key} does not help there");
            Problem::conflict(what).hint(format!(
                "`gt peek {identity}` shows it, `gt keys {identity} KEY` presses keys"
            ))
        })?;
    }
    confirm(town, identity, &mut typist, &asking, (pane, chosen))?;
    Ok(Answered { asking, chosen })
}

/// Presses Enter on the marked option. Claude Code takes none in the first moment of a
/// dialog, so that nobody answers what he has not read; it has stood for a while when we
/// come here. Enter is pressed again only where nothing at all has changed: the same
/// question again would be another one.
fn confirm(
    town: &Town,
    identity: &Identity,
    typist: &mut Typist<'_>,
    asking: &Asking,
    (pane, chosen): (PaneId, usize),
) -> Result<()> {
    let is_it = |seen: &Seen| {
        let now = seen.asking.as_ref();
        now.is_some_and(|now| is_same(now, asking) && now.marked == Some(chosen))
    };
    let changed = || {
        Problem::conflict(format!("the question of {identity} has changed"))
            .hint(format!("`gt answer {identity}` shows what it asks now"))
    };
    for _ in 0..MOST_ENTERS {
        let before = await_look(typist, is_it)?;
        if !is_it(&before) || before.is_over {
            return Err(changed());
        }
        press(town, pane, &["Enter".to_owned()])?;
        let after = await_look(typist, |seen| seen.picture != before.picture)?;
        if after.picture != before.picture {
            return Ok(());
        }
    }
    Err(Problem::failed(format!(
        "{identity} does not take {:?}",
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

/// Looks until it is as hoped for, or it has had its time.
fn await_look(typist: &mut Typist<'_>, is_so: impl Fn(&Seen) -> bool) -> Result<Seen> {
    let deadline = Instant::now() + REDRAW_PATIENCE;
    loop {
        let seen = typist.observe()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if is_so(&seen) || seen.is_over || left.is_zero() {
            return Ok(seen);
        }
        typist.wait(left.min(Duration::from_millis(100)));
    }
}
