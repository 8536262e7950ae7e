//! Types to one agent, one message after another.
//!
//! If a dialog is open, Enter confirms it. So Enter is pressed only if the process is the same as
//! before, our text is visible in its input line, and no dialog can open in its present state. Text
//! is pasted only if the line is empty, and no earlier paste of the same message can still appear.

use super::observation::{InputRelation, PaneObservation};
use super::{paste, press, repaint};
use crate::base::{fault, processes};
use crate::messaging::queue::Phase;
use crate::terminal::containers::{Container, PaneRow};
use crate::terminal::watch::{PaneWatch, WakeReason};
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::nudge::{self, NotNow, Proof, TypingConditions};
use gt_core::state::State;
use gt_tmux::{PaneId, Target};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Timeout for a pasted text to appear: the minimum, and the addition per megabyte.
const ARRIVAL: Duration = Duration::from_secs(5);
const ARRIVAL_PER_MEGABYTE: Duration = Duration::from_secs(20);
/// Timeout for keys that a dead `gt` process sent to take effect on the screen.
const LATE: Duration = Duration::from_secs(1);
/// Seconds after a paste: a program that draws later than this has read the paste.
const READ_WITHIN: i64 = 2;
/// Time that a submitted message may stay in the input line before Enter is pressed again.
const TAKEN_AFTER: Duration = Duration::from_millis(1_500);
const MAX_ENTERS: u32 = 3;
/// Maximum number of pastes of a text that does not appear, and the seconds after which the process
/// that pasted it retries.
const MAX_PASTES: u32 = 2;
const PASTE_AGAIN_AFTER: i64 = 6;
/// Timeout for the effect of a key that edits the line.
const EDITED_AFTER: Duration = Duration::from_millis(300);
/// Maximum number of lines that are cleared.
const MAX_CLEARED: usize = 200;
/// Timeout for a program to look busy after its message. Until then it seems idle, and the next
/// message could be typed while a question opens.
const BUSY_AFTER: Duration = Duration::from_secs(1);
/// Time that a screen may be unreadable before the program is made to redraw it, and the interval
/// until the next redraw.
const REPAINT_AFTER: Duration = Duration::from_secs(1);
const REPAINT_AGAIN: Duration = Duration::from_secs(3);

/// Progress of a message: its phase, since when, and the number of prompts that its agent had
/// reported then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    pub phase: Phase,
    /// Seconds since the epoch.
    pub since: i64,
    pub prompts: u64,
    /// Number of pastes so far.
    pub pastes: u32,
}

impl Reached {
    /// Progress of a message of which nothing was typed.
    pub const NOTHING: Reached = Reached {
        phase: Phase::Taken,
        since: 0,
        prompts: 0,
        pastes: 0,
    };
}

/// Result of typing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    Submitted {
        proof: Proof,
        attempts: u32,
    },
    /// Not possible now; the message has reached this phase.
    NotNow(NotNow, Phase),
    /// The program does not show the text. `in_line` is true if the input line holds another text
    /// instead, which only `gt` can have put there.
    NotShown {
        in_line: bool,
    },
}

#[derive(Debug)]
pub struct Typist<'a> {
    pub(super) town: &'a Town,
    pub(super) pane: PaneId,
    /// The pane's first process, which may be the shell of an adopted program.
    pane_pid: u32,
    /// The program's process.
    pid: u32,
    preset: &'a Preset,
    /// The agent's container, which has the reports of its hooks. A program beside an agent has
    /// none.
    container: Option<Target>,
    never_asks: bool,
    watch: PaneWatch,
    /// The last text that this typist pasted.
    pasted: Option<String>,
    /// Time since which nothing on the screen has been recognised.
    unread_since: Option<Instant>,
    repainted: Option<Instant>,
}

impl<'a> Typist<'a> {
    pub fn new(town: &'a Town, container: &Container, preset: &'a Preset) -> Self {
        let row = container.pane();
        Typist {
            never_asks: row.tag_never_asks,
            ..Self::for_row(town, row, preset)
        }
    }

    /// Returns a typist for the agent in a listed pane, and assumes that the agent asks for
    /// permission.
    pub(crate) fn for_row(town: &'a Town, row: &PaneRow, preset: &'a Preset) -> Self {
        let container = Target::SessionId(row.session);
        Typist {
            pane_pid: row.pane_pid(),
            ..Self::for_pane(town, row.pane, container, &row.tty, row.pid, preset)
        }
    }

    /// Returns a typist for a pane that was just made in this container.
    pub(crate) fn for_pane(
        town: &'a Town,
        pane: PaneId,
        container: Target,
        tty: &str,
        pid: u32,
        preset: &'a Preset,
    ) -> Self {
        Typist {
            town,
            pane,
            pane_pid: pid,
            pid,
            preset,
            container: Some(container),
            never_asks: false,
            watch: PaneWatch::new(tty, processes::hold_one(pid)),
            pasted: None,
            unread_since: None,
            repainted: None,
        }
    }

    /// Converts it into a typist for a program beside the agent, which has no hooks.
    pub(crate) fn for_side_program(self) -> Self {
        Typist {
            container: None,
            ..self
        }
    }

    /// Observes the agent.
    pub fn observe(&self) -> Result<PaneObservation> {
        let pid = self.pane_pid;
        let container = self.container.as_ref();
        let mut seen = PaneObservation::observe(self.town, self.pane, pid, container, self.preset)?;
        // Checked last: keys must not reach the shell that an adopted program leaves behind.
        seen.is_over |= self.watch.has_ended();
        // The shell of a suspended program, or another program of the person, would take the keys.
        if self.pid != self.pane_pid && !processes::is_in_foreground(self.pid) {
            seen.hide_prompt();
        }
        Ok(seen)
    }

    /// Returns whether the agent's process is gone.
    pub fn has_ended(&self) -> bool {
        self.watch.has_ended()
    }

    /// Waits until the screen changes, at most this long.
    pub fn wait(&mut self, timeout: Duration) {
        self.watch.wait(timeout);
    }

    /// Waits until typing may be possible, at most this long. A screen that is unreadable for long
    /// is redrawn: programs and terminals disagree about the width of some characters, and text
    /// that is drawn over them ends up in the wrong place.
    pub fn wait_until_ready(&mut self, reason: NotNow, timeout: Duration) -> Result<()> {
        if reason != NotNow::NoPrompt {
            self.unread_since = None;
        } else if self.unread_since.get_or_insert_with(Instant::now).elapsed() > REPAINT_AFTER {
            self.repaint()?;
        }
        self.watch.wait(timeout);
        Ok(())
    }

    fn repaint(&mut self) -> Result<()> {
        if self
            .repainted
            .is_some_and(|at| at.elapsed() < REPAINT_AGAIN)
        {
            return Ok(());
        }
        self.repainted = Some(Instant::now());
        repaint(self.town, self.pane)?;
        self.watch.poll_often();
        Ok(())
    }

    /// Types a message and submits it, continuing from `reached`. Calls `note` before each step,
    /// with the number of prompts reported by then.
    pub fn submit(
        &mut self,
        text: &str,
        reached: Reached,
        while_busy: bool,
        mut note: impl FnMut(Phase, u64) -> Result<()>,
    ) -> Result<Submission> {
        let not_now = |reason, phase| Ok(Submission::NotNow(reason, phase));
        let phase = reached.phase;
        let seen = self.look_again(text, phase)?;
        if seen.is_over {
            return not_now(NotNow::Ended, phase);
        }
        if phase != Phase::Taken && seen.confirms(text, reached.prompts) {
            return Ok(submitted(Proof::Hook, 1));
        }
        match (phase, seen.in_line(text, self.preset)) {
            (Phase::Entering, _) if seen.dialog => return not_now(NotNow::Dialog, phase),
            (Phase::Entering, InputRelation::Unknown) => return not_now(NotNow::NoPrompt, phase),
            // It was in the line; if it is gone, Enter has submitted it.
            (Phase::Entering, InputRelation::Gone) => {
                return match self.has_left(text)? {
                    true => Ok(submitted(Proof::Line, 1)),
                    false => not_now(NotNow::NoPrompt, phase),
                };
            }
            (Phase::Entering | Phase::Pasting, InputRelation::There) => {}
            (Phase::Pasting, InputRelation::Gone)
                if self.is_garbled(&seen, reached.since, text) =>
            {
                return Ok(Submission::NotShown { in_line: true });
            }
            (Phase::Pasting, _) if !self.may_paste_again(text, &seen, reached.since) => {
                let reason = if seen.dialog {
                    NotNow::Dialog
                } else {
                    NotNow::NoPrompt
                };
                return not_now(reason, phase);
            }
            (Phase::Taken | Phase::Pasting, _) => {
                if let Err(reason) = nudge::may_type(&self.moment(&seen), while_busy) {
                    return not_now(reason, phase);
                }
                if reached.pastes >= MAX_PASTES {
                    return Ok(Submission::NotShown { in_line: false });
                }
                note(Phase::Pasting, seen.prompts)?;
                let since = self.town.clock().seconds();
                fault::point(self.town, "nudge.pasting");
                self.pasted = Some(text.to_owned());
                paste(self.town, self.pane, text)?;
                fault::point(self.town, "nudge.pasted");
                if let Err(reason) = self.await_arrival(text)? {
                    let seen = self.observe()?;
                    if reason == NotNow::NoPrompt && !seen.is_over && seen.is_own_paste(since) {
                        return Ok(Submission::NotShown { in_line: true });
                    }
                    return not_now(reason, Phase::Pasting);
                }
            }
        }
        self.enter(text, phase, while_busy, note)
    }

    /// Observes the agent. If an earlier process began to type the message, first waits for the
    /// effects of its keys.
    fn look_again(&mut self, text: &str, phase: Phase) -> Result<PaneObservation> {
        match phase {
            Phase::Taken => self.observe(),
            // Pasted by a process that is gone, perhaps a moment ago.
            Phase::Pasting => {
                self.watch_line(text, LATE + per_megabyte(LATE, text), InputRelation::There)
            }
            // Enter may just have been pressed, and the screen may be outdated.
            Phase::Entering => self.watch_line(text, LATE, InputRelation::Gone),
        }
    }

    /// Returns whether an earlier paste can no longer appear. A busy program reads its input only
    /// when it is done, so it must have drawn something since, or have read all its input, without
    /// showing the text. Without a description of the input line this is never certain.
    fn may_paste_again(&self, text: &str, seen: &PaneObservation, since: i64) -> bool {
        let read_within = match self.pasted.as_deref() == Some(text) {
            true => PASTE_AGAIN_AFTER,
            false => READ_WITHIN,
        };
        let age = self.town.clock().seconds() - since;
        let has_read = || age > PASTE_AGAIN_AFTER && self.watch.has_read_input();
        self.preset.screen.input.is_some() && (seen.drawn_at > since + read_within || has_read())
    }

    /// Returns whether the line holds an earlier paste of ours that cannot be recognised: it has
    /// had the time to appear, and no key was pressed since.
    fn is_garbled(&self, seen: &PaneObservation, since: i64, text: &str) -> bool {
        let arrival = ARRIVAL + per_megabyte(ARRIVAL_PER_MEGABYTE, text);
        let arrival = i64::try_from(arrival.as_secs()).unwrap_or(i64::MAX);
        let age = self.town.clock().seconds() - since;
        !seen.dialog && age > arrival && seen.is_own_paste(since)
    }

    /// Checks whether a message may be typed now, according to this observation. The error is the
    /// reason why not.
    pub(crate) fn may_type(&self, seen: &PaneObservation) -> std::result::Result<(), NotNow> {
        match seen.is_over {
            true => Err(NotNow::Ended),
            false => nudge::may_type(&self.moment(seen), false),
        }
    }

    /// Removes this text from the input line, if the line holds nothing else. Returns whether the
    /// line is empty afterwards.
    pub(crate) fn remove_from_line(&mut self, text: &str) -> Result<bool> {
        let seen = self.observe()?;
        match seen.in_line(text, self.preset) {
            InputRelation::There if !seen.dialog && !seen.is_over => self.clear_line(),
            _ => Ok(false),
        }
    }

    /// Clears the input line, from its end to its beginning. Only for a text of our own. Returns
    /// whether it is empty afterwards.
    pub(crate) fn clear_line(&mut self) -> Result<bool> {
        for _ in 0..MAX_CLEARED {
            // The second key joins an empty line with the one above it.
            for key in ["C-u", "BSpace"] {
                let seen = self.observe()?;
                match &seen.input {
                    Some(_) if seen.dialog || seen.is_over => return Ok(false),
                    Some(input) if input.trim().is_empty() => return Ok(true),
                    Some(_) => {}
                    None => return Ok(false),
                }
                press(self.town, self.pane, &[key.to_owned()])?;
                self.await_screen_change(&seen)?;
            }
        }
        Ok(false)
    }

    /// Waits until the screen changes or the timeout expires.
    fn await_screen_change(&mut self, before: &PaneObservation) -> Result<()> {
        let deadline = Instant::now() + EDITED_AFTER;
        self.watch.poll_often();
        while Instant::now() < deadline {
            if self.observe()?.picture != before.picture {
                break;
            }
            self.watch.wait(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Makes waits also return when files in these folders change.
    pub(crate) fn watch_folders(&mut self, folders: &[PathBuf]) {
        self.watch.add_folders(folders);
    }

    /// Waits until something may have changed. Returns whether it has. An unreadable screen is
    /// redrawn, more often while a pasted text may be missing from it.
    pub(crate) fn wait_for_change(
        &mut self,
        reason: Option<NotNow>,
        has_pasted: bool,
        timeout: Duration,
    ) -> Result<bool> {
        const REPAINT_BACKGROUND: Duration = Duration::from_secs(300);
        let interval = match has_pasted {
            true => REPAINT_AGAIN,
            false => REPAINT_BACKGROUND,
        };
        let is_due = |at: Instant| at.elapsed() >= interval;
        if reason == Some(NotNow::NoPrompt) && self.repainted.is_none_or(is_due) {
            self.repaint()?;
        }
        Ok(self.watch.wait(timeout) != WakeReason::TimedOut)
    }

    fn moment<'s>(&self, seen: &'s PaneObservation) -> TypingConditions<'s> {
        TypingConditions {
            state: seen.state,
            dialog: seen.dialog,
            input: seen.input.as_deref(),
            never_asks: self.never_asks,
            paused: seen.paused,
        }
    }

    /// Observes until the line is as expected or the timeout expires.
    fn watch_line(
        &mut self,
        text: &str,
        timeout: Duration,
        hoped: InputRelation,
    ) -> Result<PaneObservation> {
        let deadline = Instant::now() + timeout;
        self.watch.poll_often();
        loop {
            let seen = self.observe()?;
            let left = deadline.saturating_duration_since(Instant::now());
            let is_so = seen.in_line(text, self.preset) == hoped;
            if is_so || seen.dialog || seen.is_over || left.is_zero() {
                return Ok(seen);
            }
            self.watch.wait(left.min(Duration::from_millis(100)));
        }
    }

    /// Returns whether the text has left the line for good: programs draw an empty line for a
    /// moment when they change screens.
    fn has_left(&mut self, text: &str) -> Result<bool> {
        let began = Instant::now();
        let mut gone_since = None;
        while began.elapsed() < LATE + BUSY_AFTER {
            let seen = self.observe()?;
            if seen.is_over || seen.dialog {
                return Ok(false);
            }
            if seen.in_line(text, self.preset) != InputRelation::Gone {
                gone_since = None;
            } else if gone_since.get_or_insert_with(Instant::now).elapsed() > BUSY_AFTER {
                return Ok(true);
            }
            self.watch.wait(Duration::from_millis(100));
        }
        Ok(false)
    }

    /// Waits until the text, or the program's placeholder for it, is in the input line.
    fn await_arrival(&mut self, text: &str) -> Result<std::result::Result<(), NotNow>> {
        let preset = self.preset;
        self.await_paste(text, |seen| {
            (seen.in_line(text, preset) == InputRelation::There).then_some(())
        })
    }

    /// Waits until a pasted text is found on the screen.
    pub(super) fn await_paste<T>(
        &mut self,
        text: &str,
        find: impl Fn(&PaneObservation) -> Option<T>,
    ) -> Result<std::result::Result<T, NotNow>> {
        let pasted = Instant::now();
        let deadline = pasted + ARRIVAL + per_megabyte(ARRIVAL_PER_MEGABYTE, text);
        let repaint_at = pasted + REPAINT_AFTER + per_megabyte(ARRIVAL_PER_MEGABYTE, text);
        self.watch.poll_often();
        loop {
            let seen = self.observe()?;
            if seen.is_over {
                return Ok(Err(NotNow::Ended));
            }
            if seen.dialog {
                return Ok(Err(NotNow::Dialog));
            }
            if let Some(found) = find(&seen) {
                return Ok(Ok(found));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Err(NotNow::NoPrompt));
            }
            if Instant::now() >= repaint_at {
                self.repaint()?;
            }
            self.watch.wait(left.min(Duration::from_millis(250)));
        }
    }

    /// Presses Enter on a line that holds our text, and waits until it is submitted. Presses Enter
    /// again only while the text is still visible there.
    pub(super) fn enter(
        &mut self,
        text: &str,
        reached: Phase,
        while_busy: bool,
        mut note: impl FnMut(Phase, u64) -> Result<()>,
    ) -> Result<Submission> {
        self.settle(text);
        let mut phase = reached;
        for attempt in 1..=MAX_ENTERS {
            let seen = self.observe()?;
            if let Err(reason) = self.may_enter(&seen, while_busy) {
                return Ok(Submission::NotNow(reason, phase));
            }
            if seen.in_line(text, self.preset) != InputRelation::There {
                // The visible text may have been a remnant that the program had not erased yet.
                if attempt > 1 && self.has_left(text)? {
                    return Ok(submitted(Proof::Line, attempt - 1));
                }
                return Ok(Submission::NotNow(NotNow::NoPrompt, phase));
            }
            if phase != Phase::Entering {
                note(Phase::Entering, seen.prompts)?;
                phase = Phase::Entering;
            }
            fault::point(self.town, "nudge.entering");
            press(self.town, self.pane, &["Enter".to_owned()])?;
            fault::point(self.town, "nudge.entered");
            if let Some(proof) = self.await_taken(text, &seen)? {
                return Ok(submitted(proof, attempt));
            }
            self.repaint()?;
        }
        Ok(Submission::NotNow(NotNow::Occupied, phase))
    }

    /// Checks that Enter may be pressed: no question is open, and none can open.
    pub(super) fn may_enter(
        &self,
        seen: &PaneObservation,
        while_busy: bool,
    ) -> std::result::Result<(), NotNow> {
        if seen.is_over {
            return Err(NotNow::Ended);
        }
        let line_aside = TypingConditions {
            input: None,
            ..self.moment(seen)
        };
        nudge::may_type(&line_aside, while_busy)
    }

    /// Returns the proof that the message was submitted, compared with the observation before
    /// Enter.
    fn await_taken(&mut self, text: &str, before: &PaneObservation) -> Result<Option<Proof>> {
        let was_busy = before.state == Some(State::Busy);
        let pressed = Instant::now();
        let mut left_since: Option<Instant> = None;
        self.watch.poll_often();
        while pressed.elapsed() < TAKEN_AFTER {
            let seen = self.observe()?;
            if seen.confirms(text, before.prompts) {
                return Ok(Some(Proof::Hook));
            }
            let in_line = seen.in_line(text, self.preset);
            if seen.is_over {
                // A slash command may have ended the program. For any other message the outcome is
                // unknown until the next observation.
                return Ok(text.starts_with('/').then_some(Proof::Line));
            }
            if in_line == InputRelation::There || seen.dialog {
                left_since = None;
            } else if seen.state == Some(State::Busy) && !was_busy {
                return Ok(Some(Proof::Screen));
            } else if in_line == InputRelation::Gone
                && left_since.get_or_insert_with(Instant::now).elapsed() > BUSY_AFTER
            {
                // A turn that was over before the first observation, or a command.
                return Ok(Some(Proof::Line));
            }
            self.watch.wait(Duration::from_millis(100));
        }
        Ok(None)
    }

    /// Pauses between paste and Enter: some programs take an Enter that follows too closely as part
    /// of the paste.
    fn settle(&self, text: &str) {
        let typing = &self.preset.typing;
        let long = text.len() > 4_096;
        let pause = if long {
            typing.settle_long_ms
        } else {
            typing.settle_ms
        };
        if pause > 0 {
            std::thread::sleep(Duration::from_millis(pause));
        }
    }
}

/// Returns `time` multiplied by the length of the text in megabytes.
fn per_megabyte(time: Duration, text: &str) -> Duration {
    let kilobytes = u32::try_from(text.len() / 1_000).unwrap_or(u32::MAX);
    time * kilobytes / 1_000
}

fn submitted(proof: Proof, attempts: u32) -> Submission {
    Submission::Submitted { proof, attempts }
}
