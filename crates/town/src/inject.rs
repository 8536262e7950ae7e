//! The only place that types into a pane.
//!
//! Blind keys kill: a dialog may have "No, exit" marked, and Enter may approve
//! what an agent asks. So every key here follows a look at the screen, goes to
//! a pane by its id, and nothing is pressed where no known picture shows. How
//! far a message has come is told to the caller *before* each step, so that
//! after a crash somebody else can go on from there; see [`crate::queue`].

use crate::containers::{Container, tmux_problem};
use crate::queue::Phase;
use crate::watch::PaneWatch;
use crate::{Result, Town, processes};
use gt_core::harness::Preset;
use gt_core::nudge::{self, Moment, NotNow};
use gt_core::screen::{self, Asking, OpenDialog};
use gt_core::state::State;
use gt_tmux::{Command, PaneId};
use std::time::{Duration, Instant};

/// How long a pasted text may take to appear: the least, and per megabyte.
const ARRIVAL: Duration = Duration::from_secs(5);
const ARRIVAL_PER_MEGABYTE: Duration = Duration::from_secs(20);
/// A program that draws so many seconds after a paste has read it.
const READ_WITHIN: i64 = 2;
/// How long what a process did before it died may take to show.
const LATE: Duration = Duration::from_millis(1_000);
/// How long a submitted message may stay in the input line before Enter is pressed again.
const TAKEN_AFTER: Duration = Duration::from_millis(1_500);
const MOST_ENTERS: u32 = 3;
/// How long after its message a program may take to look busy. Until then it seems
/// idle, and whoever types next would not know that it may ask something.
const BUSY_AFTER: Duration = Duration::from_secs(1);
/// How long a screen may be unreadable before the program is made to draw it anew,
/// and how long until it is asked again.
const REPAINT_AFTER: Duration = Duration::from_secs(1);
const REPAINT_AGAIN: Duration = Duration::from_secs(3);

/// The visible lines of a pane.
pub fn look(town: &Town, pane: PaneId) -> Result<Vec<String>> {
    let text = town
        .server()
        .run(Command::new("capture-pane").arg("-p").target(pane))
        .map_err(|error| tmux_problem("cannot read the pane", error))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// What a dead pane showed last. tmux adds a line of its own to it, which may push
/// the first ones into the scrollback.
pub fn look_back(town: &Town, pane: PaneId) -> Result<Vec<String>> {
    let text = town
        .server()
        .run(
            Command::new("capture-pane")
                .args(["-p", "-J", "-S", "-50"])
                .target(pane),
        )
        .map_err(|error| tmux_problem("cannot read the pane", error))?;
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("Pane is dead"));
    Ok(lines.map(str::to_owned).collect())
}

/// Presses keys by their tmux names.
pub fn press(town: &Town, pane: PaneId, keys: &[String]) -> Result<()> {
    town.server()
        .run(
            Command::new("send-keys")
                .target(pane)
                .arg("--")
                .args(keys.iter().cloned()),
        )
        .map(drop)
        .map_err(|error| tmux_problem("cannot type into the pane", error))
}

/// The commands that press keys which are right whatever the screen shows, such
/// as Ctrl-C; for callers that press them in many panes at once.
pub fn key_presses(pane: PaneId, keys: &[String]) -> [Command; 2] {
    [
        Command::new("copy-mode").arg("-q").target(pane),
        Command::new("send-keys")
            .target(pane)
            .arg("--")
            .args(keys.iter().cloned()),
    ]
}

/// Takes one step towards the wanted row of an open dialog: moves the mark by
/// one, or confirms when it stands there. The caller looks again in between.
pub fn step_dialog(town: &Town, pane: PaneId, dialog: &OpenDialog, wanted: usize) -> Result<()> {
    let key = match wanted.cmp(&dialog.menu.marked) {
        std::cmp::Ordering::Equal => "Enter",
        std::cmp::Ordering::Greater => "Down",
        std::cmp::Ordering::Less => "Up",
    };
    press(town, pane, &[key.to_owned()])
}

/// What one look at an agent shows.
#[derive(Clone, Debug)]
pub struct Seen {
    pub state: Option<State>,
    pub dialog: bool,
    /// The question that is open, as far as it can be read.
    pub asking: Option<Asking>,
    pub input: Option<String>,
    /// What stands before the cursor, where the preset does not describe the input line.
    before_cursor: Option<String>,
    /// The fingerprint of the last prompt that the agent's hook reported.
    pub last_prompt: String,
    /// When the program wrote something last, in seconds since the epoch.
    drawn_at: i64,
}

/// What can be said about our text and the input line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InLine {
    There,
    /// The line is to be seen, and the text is not in it.
    Gone,
    /// No input line is to be seen.
    Unknown,
}

impl Seen {
    fn in_line(&self, text: &str) -> InLine {
        match (&self.input, &self.before_cursor) {
            (Some(input), _) if nudge::is_in_input(input, text) => InLine::There,
            (None, Some(before)) if nudge::ends_with(before, text) => InLine::There,
            (Some(_), _) | (None, Some(_)) => InLine::Gone,
            // Some programs show no input line while they work.
            (None, None) if self.state == Some(State::Busy) => InLine::Gone,
            (None, None) => InLine::Unknown,
        }
    }
}

/// Somebody who types to one agent, one message after another.
#[derive(Debug)]
pub struct Typist<'a> {
    town: &'a Town,
    pane: PaneId,
    preset: &'a Preset,
    never_asks: bool,
    watch: PaneWatch,
    /// Since when nothing known is on its screen.
    unread_since: Option<Instant>,
    repainted: Option<Instant>,
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    Submitted {
        proof: &'static str,
        attempts: u32,
    },
    /// Not now; it has come this far.
    NotNow(NotNow, Phase),
}

impl<'a> Typist<'a> {
    pub fn new(town: &'a Town, container: &Container, preset: &'a Preset) -> Self {
        let row = container.pane();
        Typist {
            town,
            pane: row.pane,
            preset,
            never_asks: row.tag_never_asks,
            watch: PaneWatch::new(&row.tty, processes::hold_one(row.pid)),
            unread_since: None,
            repainted: None,
        }
    }

    /// The same for a pane that was just made.
    pub fn for_pane(town: &'a Town, pane: PaneId, tty: &str, pid: u32, preset: &'a Preset) -> Self {
        Typist {
            town,
            pane,
            preset,
            never_asks: false,
            watch: PaneWatch::new(tty, processes::hold_one(pid)),
            unread_since: None,
            repainted: None,
        }
    }

    /// Looks at the agent, in one call.
    pub fn observe(&self) -> Result<Seen> {
        const FACTS: &str = "#{@gt_last_prompt}\n#{cursor_x} #{cursor_y}\n#{?#{==:#{@gt_state_source},hook},#{@gt_state},} #{@gt_state_since}\n#{window_activity}\n#{pane_title}";
        let answers = self
            .town
            .server()
            .run_each([
                // With colours: hints and marked rows are often told by them alone.
                Command::new("capture-pane")
                    .args(["-e", "-p"])
                    .target(self.pane),
                Command::new("display-message")
                    .arg("-p")
                    .target(self.pane)
                    .arg(FACTS),
            ])
            .map_err(|error| tmux_problem("cannot read the pane", error))?;
        let lines: Vec<&str> = answers
            .first()
            .map(|text| text.lines().collect())
            .unwrap_or_default();
        let facts = answers.get(1).map(String::as_str).unwrap_or_default();
        let mut facts = facts.splitn(5, '\n');
        let mut fact = || facts.next().unwrap_or_default().trim_end();
        let (last_prompt, cursor, hooked) = (fact(), fact(), fact());
        let (drawn_at, title) = (fact(), fact());
        let seen = screen::classify(&lines, title, self.preset);
        let is_described = self.preset.screen.input.is_some();
        let before_cursor = (!is_described).then(|| screen::before_cursor(&lines, cursor));
        let hooked = said_just_now(hooked);
        let state = match seen.state {
            // What a program has begun shows on its screen only after a moment.
            State::Idle | State::Error if hooked == Some(State::Busy) => hooked,
            _ if seen.is_at_prompt() => Some(State::Idle),
            State::Starting | State::Running => None,
            state => Some(state),
        };
        Ok(Seen {
            state,
            // A question that is about to open counts as one that is open.
            dialog: seen.dialog.is_some()
                || seen.state == State::Waiting
                || hooked == Some(State::Waiting),
            asking: seen.dialog,
            input: seen.input.map(|input| input.typed().to_owned()),
            before_cursor,
            last_prompt: last_prompt.to_owned(),
            drawn_at: drawn_at.parse().unwrap_or_default(),
        })
    }

    /// Whether the agent's process is gone.
    pub fn has_ended(&self) -> bool {
        self.watch.has_ended()
    }

    /// Waits a moment for the screen to change.
    pub fn wait(&mut self, patience: Duration) {
        self.watch.wait(patience);
    }

    /// Waits a moment for a chance to type. A screen that has said nothing for long is
    /// drawn anew: programs and terminals differ about the width of some signs, and
    /// what is drawn over them then ends up in the wrong place.
    pub fn wait_for_chance(&mut self, reason: NotNow, patience: Duration) -> Result<()> {
        if reason != NotNow::NoPrompt {
            self.unread_since = None;
        } else if self.unread_since.get_or_insert_with(Instant::now).elapsed() > REPAINT_AFTER {
            self.repaint()?;
        }
        self.watch.wait(patience);
        Ok(())
    }

    /// Makes the program draw its whole screen, without a key: its window becomes a
    /// column narrower for a moment.
    fn repaint(&mut self) -> Result<()> {
        if self
            .repainted
            .is_some_and(|at| at.elapsed() < REPAINT_AGAIN)
        {
            return Ok(());
        }
        self.repainted = Some(Instant::now());
        let server = self.town.server();
        let problem = |error| tmux_problem("cannot have the pane drawn anew", error);
        let ask = Command::new("display-message")
            .arg("-p")
            .target(self.pane)
            .arg("#{window_width} #{window-size}");
        let answer = server.run(ask).map_err(problem)?;
        let Some((width, policy)) = answer.trim_end().split_once(' ') else {
            return Ok(());
        };
        let Some(narrower) = width.parse::<u32>().ok().and_then(|w| w.checked_sub(1)) else {
            return Ok(());
        };
        let resize = |width: &str| {
            Command::new("resize-window")
                .target(self.pane)
                .args(["-x", width])
        };
        server.run(resize(&narrower.to_string())).map_err(problem)?;
        self.watch.be_attentive();
        self.watch.wait(Duration::from_millis(250));
        // `resize-window` leaves a window of a fixed size behind.
        let policy = Command::new("set-option")
            .arg("-w")
            .target(self.pane)
            .args(["window-size", policy]);
        server
            .run_private([resize(width), policy])
            .map_err(problem)?;
        self.watch.be_attentive();
        Ok(())
    }

    /// Whether a message could be typed now.
    pub fn chance(&self, while_busy: bool) -> Result<std::result::Result<(), NotNow>> {
        let seen = self.observe()?;
        Ok(nudge::may_type(&self.moment(&seen), while_busy))
    }

    fn moment<'s>(&self, seen: &'s Seen) -> Moment<'s> {
        Moment {
            state: seen.state,
            dialog: seen.dialog,
            input: seen.input.as_deref(),
            never_asks: self.never_asks,
        }
    }

    /// Types a message and submits it, from the phase that it reached at that time, in
    /// seconds since the epoch.
    pub fn submit(
        &mut self,
        text: &str,
        (phase, since): (Phase, i64),
        while_busy: bool,
        mut note: impl FnMut(Phase) -> Result<()>,
    ) -> Result<Submission> {
        let mut seen = self.observe()?;
        if phase == Phase::Pasting {
            // Pasted by a process that has gone, perhaps a moment ago.
            seen = self.watch_line(text, LATE * megabytes(text), InLine::There)?;
        } else if phase == Phase::Entering {
            // Enter may just have been pressed, and what shows be what was.
            seen = self.watch_line(text, LATE, InLine::Gone)?;
        }
        match (phase, seen.in_line(text)) {
            (Phase::Entering, _) if seen.dialog => {
                return Ok(Submission::NotNow(NotNow::Dialog, phase));
            }
            (Phase::Entering, InLine::Unknown) => {
                return Ok(Submission::NotNow(NotNow::NoPrompt, phase));
            }
            // It was in the line; if it is not any more, Enter has taken it.
            (Phase::Entering, InLine::Gone) => {
                let is_hooked = seen.last_prompt == nudge::fingerprint(text);
                return Ok(submitted(if is_hooked { "hook" } else { "screen" }, 1));
            }
            (Phase::Entering | Phase::Pasting, InLine::There) => {}
            // A program that is busy with itself reads what was pasted when it is done:
            // only one that has drawn something since and has it not will not have it.
            (Phase::Pasting, _) if seen.drawn_at <= since + READ_WITHIN => {
                let reason = if seen.dialog {
                    NotNow::Dialog
                } else {
                    NotNow::NoPrompt
                };
                return Ok(Submission::NotNow(reason, phase));
            }
            // A paste alone submits nothing: what did not arrive may be pasted again.
            _ => {
                if let Err(reason) = nudge::may_type(&self.moment(&seen), while_busy) {
                    return Ok(Submission::NotNow(reason, phase));
                }
                note(Phase::Pasting)?;
                self.paste(text)?;
                if let Err(reason) = self.await_arrival(text)? {
                    return Ok(Submission::NotNow(reason, Phase::Pasting));
                }
            }
        }
        if phase != Phase::Entering {
            note(Phase::Entering)?;
        }
        self.enter(text)
    }

    /// Looks until the line is as hoped for, or the time is over.
    fn watch_line(&mut self, text: &str, patience: Duration, hoped: InLine) -> Result<Seen> {
        let deadline = Instant::now() + patience;
        self.watch.be_attentive();
        loop {
            let seen = self.observe()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if seen.in_line(text) == hoped || seen.dialog || left.is_zero() {
                return Ok(seen);
            }
            self.watch.wait(left.min(Duration::from_millis(100)));
        }
    }

    /// Waits until the text, or what the program shows for it, is in the input line.
    fn await_arrival(&mut self, text: &str) -> Result<std::result::Result<(), NotNow>> {
        let megabytes = megabytes(text);
        let deadline = Instant::now() + ARRIVAL + ARRIVAL_PER_MEGABYTE * (megabytes - 1);
        let pasted = Instant::now();
        self.watch.be_attentive();
        loop {
            let seen = self.observe()?;
            if seen.dialog {
                return Ok(Err(NotNow::Dialog));
            }
            if seen.in_line(text) == InLine::There {
                return Ok(Ok(()));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Err(NotNow::NoPrompt));
            }
            if pasted.elapsed() > REPAINT_AFTER * megabytes {
                self.repaint()?;
            }
            self.watch.wait(left.min(Duration::from_millis(250)));
        }
    }

    /// Presses Enter on a line that holds our text, and waits until it is taken. It
    /// is pressed again only while the text is still seen there.
    fn enter(&mut self, text: &str) -> Result<Submission> {
        let wanted = nudge::fingerprint(text);
        let before = self.observe()?.last_prompt;
        self.settle(text);
        for attempt in 1..=MOST_ENTERS {
            let seen = self.observe()?;
            if seen.dialog {
                return Ok(Submission::NotNow(NotNow::Dialog, Phase::Entering));
            }
            press(self.town, self.pane, &["Enter".to_owned()])?;
            self.watch.be_attentive();
            let pressed = Instant::now();
            let mut left_since: Option<Instant> = None;
            while left_since.is_some() || pressed.elapsed() < TAKEN_AFTER {
                let seen = self.observe()?;
                if seen.last_prompt == wanted && (seen.last_prompt != before || attempt > 1) {
                    return Ok(submitted("hook", attempt));
                }
                let in_line = seen.in_line(text);
                if in_line == InLine::There || seen.dialog {
                    left_since = None;
                } else if seen.state == Some(State::Busy) {
                    return Ok(submitted("screen", attempt));
                } else if in_line == InLine::Gone
                    && left_since.get_or_insert_with(Instant::now).elapsed() > BUSY_AFTER
                {
                    // A turn that was over before the first look, or a command.
                    return Ok(submitted("line", attempt));
                }
                self.watch.wait(Duration::from_millis(100));
            }
            // What still seems to be there may only not have been wiped.
            self.repaint()?;
        }
        Ok(Submission::NotNow(NotNow::Occupied, Phase::Entering))
    }

    /// Some programs take an Enter that follows a paste too closely for a part of it.
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

    /// A bracketed paste under a buffer name of its own. The text goes through
    /// tmux's socket or standard input: it has no limit there and shows in no argv.
    fn paste(&self, text: &str) -> Result<()> {
        let buffer = format!("gt-{}", uuid::Uuid::now_v7().simple());
        let leave_copy_mode = Command::new("copy-mode").arg("-q").target(self.pane);
        let load = Command::new("set-buffer").args(["-b", &buffer, "--", text]);
        let insert = Command::new("paste-buffer")
            .args(["-d", "-p", "-r", "-b", &buffer])
            .target(self.pane);
        self.town
            .server()
            .run_private([leave_copy_mode, load, insert])
            .map(drop)
            .map_err(|error| tmux_problem("cannot paste into the pane", error))
    }
}

/// The state that a hook reported in the last two seconds, from `state since`.
fn said_just_now(hooked: &str) -> Option<State> {
    let (state, since) = hooked.split_once(' ')?;
    let age = jiff::Timestamp::now().as_second() - since.parse::<i64>().ok()?;
    State::from_word(state).filter(|_| age < 2)
}

/// For waiting times: every text counts as one, a long one as more.
fn megabytes(text: &str) -> u32 {
    u32::try_from(text.len() / 1_000_000 + 1).unwrap_or(1)
}

fn submitted(proof: &'static str, attempts: u32) -> Submission {
    Submission::Submitted { proof, attempts }
}
