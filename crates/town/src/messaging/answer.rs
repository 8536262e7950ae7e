//! Answers a dialog: reads it, moves the mark to the wanted option, checks the mark and confirms.
//!
//! As everywhere in [`crate::messaging::inject`], the screen is read before every key. If the
//! question changes meanwhile, no further key is sent. The dialog is that of an agent, or of the
//! program that resolves merge conflicts in a window beside it.

use crate::base::lock::FileLock;
use crate::base::wake;
use crate::catalog::harnesses;
use crate::messaging::inject::{PaneObservation, Typist, press};
use crate::messaging::nudge;
use crate::messaging::queue::MessageQueue;
use crate::records::events::{self, Events};
use crate::terminal::containers;
use crate::terminal::containers::{Container, PaneRow};
use crate::{Result, Town};
use gt_core::answer::{self, Choice};
use gt_core::harness::Preset;
use gt_core::screen::Asking;
use gt_core::{Identity, Problem};
use std::fmt;
use std::time::{Duration, Instant};

/// Maximum wait for the typing lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum wait for the program to redraw after a key.
const REDRAW_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum time that a question must be unchanged: to be completely drawn, and to be answered.
const DRAWN: Duration = Duration::from_millis(200);
const STANDS: Duration = Duration::from_secs(1);
const MAX_ENTERS: u32 = 3;

/// The question and the option that was chosen.
#[derive(Clone, Debug)]
pub struct AnsweredDialog {
    pub asking: Asking,
    /// Index of the chosen option.
    pub chosen: usize,
}

/// The program whose dialog is read: an agent, or a program in a window beside it.
#[derive(Debug)]
pub struct Asker<'a> {
    identity: &'a Identity,
    window: Option<&'a str>,
    pane: &'a PaneRow,
    preset: Preset,
}

impl<'a> Asker<'a> {
    pub fn agent(
        town: &Town,
        identity: &'a Identity,
        container: &'a Container,
    ) -> Result<Asker<'a>> {
        Ok(Asker {
            identity,
            window: None,
            pane: container.pane(),
            preset: nudge::preset_of(town, container)?,
        })
    }

    /// Returns the program in this window. Fails if it is not the resolver, whose dialogs are those
    /// of an agent program.
    pub fn in_window(
        town: &Town,
        identity: &'a Identity,
        container: &'a Container,
        window: &'a str,
    ) -> Result<Asker<'a>> {
        if window != containers::RESOLVER_WINDOW {
            let known = containers::RESOLVER_WINDOW;
            return Err(
                Problem::usage(format!("the window {window} asks no questions")).hint(format!(
                    "`--window {known}` is for the conflicts of a merge"
                )),
            );
        }
        let pane = container.resolver_pane().ok_or_else(|| {
            Problem::not_found(format!("{identity} has no window {window}"))
                .hint("`gt task update` opens it where a merge has conflicts")
        })?;
        if pane.dead {
            return Err(Problem::conflict(format!(
                "the program in the window {window} of {identity} has ended"
            )));
        }
        Ok(Asker {
            identity,
            window: Some(window),
            pane,
            preset: harnesses::resolve(town, pane.harness_beside())?.value,
        })
    }

    fn typist<'t>(&'t self, town: &'t Town) -> Typist<'t> {
        let typist = Typist::for_row(town, self.pane, &self.preset);
        match self.window {
            Some(_) => typist.for_side_program(),
            None => typist,
        }
    }

    /// Returns the hint that says how to see its screen.
    fn screen_hint(&self) -> String {
        match self.window {
            None => format!("`gt peek {self}` shows its screen"),
            Some(window) => format!(
                "its window {window} shows it: `gt attach {}`",
                self.identity
            ),
        }
    }
}

impl fmt::Display for Asker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.window {
            None => self.identity.fmt(f),
            Some(window) => write!(f, "{window} of {}", self.identity),
        }
    }
}

/// Returns the open question.
pub fn question(town: &Town, asker: &Asker<'_>) -> Result<Asking> {
    open_question(&mut asker.typist(town), asker, DRAWN)
}

/// Returns the open question once it has been unchanged for `stands`. Before that it may be half
/// drawn, or too new for a person to have read it.
fn open_question(typist: &mut Typist<'_>, asker: &Asker<'_>, stands: Duration) -> Result<Asking> {
    let deadline = Instant::now() + stands + REDRAW_TIMEOUT;
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
            return Err(Problem::conflict(format!("{asker} has no open question"))
                .hint(asker.screen_hint()));
        }
        if Instant::now() >= deadline {
            return Err(
                Problem::conflict(format!("the question of {asker} cannot be read"))
                    .hint(asker.screen_hint()),
            );
        }
        typist.wait(Duration::from_millis(100));
    }
}

/// Chooses an option of the open dialog. If `expected` is given and is not the dialog's
/// [`answer::fingerprint`], no key is sent.
pub fn answer(
    town: &Town,
    asker: &Asker<'_>,
    choice: &Choice,
    expected: Option<&str>,
) -> Result<AnsweredDialog> {
    let queue = MessageQueue::of(town, asker.identity);
    let _lock = FileLock::take(&queue.lock_path(), LOCK_TIMEOUT)?;
    let mut typist = asker.typist(town);
    let asking = open_question(&mut typist, asker, STANDS)?;
    if expected.is_some_and(|expected| expected != answer::fingerprint(&asking)) {
        return Err(
            Problem::conflict(format!("{asker} now asks another question"))
                .cause(asking.text.clone())
                .hint(answer::listed(&asking)),
        );
    }
    let chosen = answer::pick(&asking, choice)?;
    let pane = asker.pane.pane;
    let mut marked = marked(&asking, asker)?;
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
        // A dialog that cannot be parsed is still being drawn.
        let place = |seen: &PaneObservation| {
            let same = seen.asking.as_ref().filter(|now| is_same(now, &asking));
            same.and_then(|now| now.marked)
        };
        let now = await_look(&mut typist, |seen| {
            place(seen).is_some_and(|now| now != marked)
        })?;
        let moved = place(&now);
        let is_moved = |now: &usize| *now != marked && keys > 0;
        marked = moved.filter(is_moved).ok_or_else(|| {
            let what = format!(
                "the question of {asker} has changed, or the key {key} has no effect there"
            );
            let problem = Problem::conflict(what).hint(asker.screen_hint());
            match asker.window {
                None => problem.hint(format!("`gt keys {asker} KEY` presses keys")),
                Some(_) => problem,
            }
        })?;
    }
    confirm(town, asker, &mut typist, &asking, chosen)?;
    // No hook reports an approval, and titles are polled only occasionally.
    wake::monitors(town);
    // The event has the number of the option and not its text, which is private.
    let shown = asking.numbers.get(chosen).copied().flatten();
    let event = events::by_command(town, "answer")
        .with("target", asker.identity.address())
        .with("option", shown.unwrap_or(chosen + 1))
        .with("window", asker.window);
    Events::of(town).note(vec![event]);
    Ok(AnsweredDialog { asking, chosen })
}

/// Presses Enter on the marked option. Claude Code ignores keys in the first moment of a dialog; by
/// now the dialog has been open longer. Enter is retried only if the screen is unchanged: a
/// question that reappears is a new one.
fn confirm(
    town: &Town,
    asker: &Asker<'_>,
    typist: &mut Typist<'_>,
    asking: &Asking,
    chosen: usize,
) -> Result<()> {
    let is_it = |seen: &PaneObservation| {
        let now = seen.asking.as_ref();
        now.is_some_and(|now| is_same(now, asking) && now.marked == Some(chosen))
    };
    let changed = || {
        Problem::conflict(format!("the question of {asker} has changed"))
            .hint("`gt answer` without an answer shows what it asks now")
    };
    for _ in 0..MAX_ENTERS {
        let before = await_look(typist, is_it)?;
        if !is_it(&before) || before.is_over {
            return Err(changed());
        }
        press(town, asker.pane.pane, &["Enter".to_owned()])?;
        let after = await_look(typist, |seen| seen.picture != before.picture)?;
        if after.picture != before.picture {
            return Ok(());
        }
    }
    Err(Problem::failed(format!(
        "{asker} does not accept {:?}",
        asking.options[chosen]
    )))
}

fn marked(asking: &Asking, asker: &Asker<'_>) -> Result<usize> {
    asking.marked.ok_or_else(|| {
        Problem::failed("the selected option cannot be recognised".to_owned())
            .hint(format!("`gt attach {}` and answer there", asker.identity))
    })
}

/// Returns whether two questions are equal, regardless of the mark.
fn is_same(now: &Asking, before: &Asking) -> bool {
    now.text == before.text && now.options == before.options
}

/// Reads the screen until the condition holds, the program ends or the timeout passes.
fn await_look(
    typist: &mut Typist<'_>,
    is_so: impl Fn(&PaneObservation) -> bool,
) -> Result<PaneObservation> {
    let deadline = Instant::now() + REDRAW_TIMEOUT;
    loop {
        let seen = typist.observe()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if is_so(&seen) || seen.is_over || left.is_zero() {
            return Ok(seen);
        }
        typist.wait(left.min(Duration::from_millis(100)));
    }
}
