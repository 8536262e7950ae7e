//! The agent on a terminal: its state and its event loop.
//!
//! One iteration of the loop does everything that is possible now (`turn`), draws, waits for input,
//! a command, a signal or a deadline, and passes on keys (`keys`). Deadlines are plain [`Instant`]s
//! in the state, and the earliest one limits the wait. An idle agent has none, so it sleeps until a
//! key is pressed.

use std::collections::VecDeque;
use std::io;
use std::process::Child;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::conversation::{DemoConversation, Tool};
use super::dialog::DemoDialog;
use super::editor::{Editor, SubmittedText};
use super::hooks::HookOutput;
use super::input::{ESCAPE_WAIT, InputEvent, KeyDecoder};
use super::live::{LiveView, frame};
use super::screen::DemoScreen;
use super::script::Script;
use super::signals::Signals;
use super::terminal;
use super::transcript::TranscriptEntry;
use super::turn::{DemoTurn, TurnActivity};

const TITLE_IDLE: &str = "✳ demo";
const TITLE_BUSY: &str = "◑ demo";
const TITLE_WAITING: &str = "✋ demo";

/// Time after which Claude Code reports an open dialog.
const NOTIFY_DIALOG: Duration = Duration::from_secs(6);
/// Time after which Claude Code reports an idle prompt.
const NOTIFY_IDLE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) conversation: DemoConversation,
    pub(super) screen: DemoScreen,
    pub(super) editor: Editor,
    /// Messages that wait for the end of the turn.
    pub(super) queue: VecDeque<SubmittedText>,
    pub(super) turn: Option<DemoTurn>,
    pub(super) open: Option<PendingDialog>,
    pub(super) script: Script,
    /// End of the script's sleep.
    pub(super) pause: Option<Instant>,
    /// Time until which a second Ctrl-C exits.
    pub(super) exit_hint: Option<Instant>,
    pub(super) leaving: Option<AgentExit>,
    notify: Option<(Instant, HookNotice)>,
    signals: Rc<Signals>,
    ignore_term: bool,
    /// Processes started for tests. They are only reaped.
    children: Vec<Child>,
    exit_at: Option<Instant>,
    decoder: KeyDecoder,
    escape_at: Option<Instant>,
    /// The terminal is gone, and the agent runs on because of `--ignore-term`.
    orphan: bool,
    /// Command that decides the answers.
    pub(super) answer: Option<String>,
    /// Options of the session's start, until it has started.
    begin: Option<SessionStart>,
}

/// An open dialog, and the purpose of its answer.
#[derive(Debug)]
pub(super) struct PendingDialog {
    pub(super) dialog: DemoDialog,
    pub(super) purpose: DialogPurpose,
}

#[derive(Debug)]
pub(super) enum DialogPurpose {
    Trust,
    Command(String, Tool),
    Question(Vec<String>, Tool),
}

/// Exit status, and Claude Code's word for the reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentExit {
    status: u8,
    reason: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum HookNotice {
    Dialog,
    Idle,
}

/// Options of the session's start.
#[derive(Debug)]
pub(super) struct SessionStart {
    pub(super) identity: String,
    pub(super) source: &'static str,
    pub(super) entries: Vec<TranscriptEntry>,
    pub(super) prompt: Option<String>,
    pub(super) trust_dialog: bool,
    pub(super) ignore_term: bool,
    pub(super) children: Vec<Child>,
    pub(super) exit_at: Option<Instant>,
    pub(super) answer: Option<String>,
}

impl Agent {
    pub(super) fn new(
        conversation: DemoConversation,
        screen: DemoScreen,
        script: Script,
        signals: Rc<Signals>,
        mut begin: SessionStart,
    ) -> Self {
        Self {
            conversation,
            screen,
            editor: Editor::default(),
            queue: VecDeque::new(),
            turn: None,
            open: None,
            script,
            pause: None,
            exit_hint: None,
            leaving: None,
            notify: None,
            signals,
            ignore_term: begin.ignore_term,
            children: std::mem::take(&mut begin.children),
            exit_at: begin.exit_at,
            decoder: KeyDecoder::default(),
            escape_at: None,
            orphan: false,
            answer: begin.answer.take(),
            begin: Some(begin),
        }
    }

    /// Runs the event loop to its end. Returns the exit status.
    pub(super) fn run(mut self) -> u8 {
        match &self.begin {
            Some(begin) if begin.trust_dialog => {
                let dialog = DemoDialog::trust(self.conversation.cwd());
                self.open = Some(PendingDialog {
                    dialog,
                    purpose: DialogPurpose::Trust,
                });
            }
            _ => self.start(),
        }
        loop {
            self.advance(Instant::now());
            if let Some(leave) = self.leaving.take() {
                return self.end(leave);
            }
            self.draw();
            self.wait();
        }
    }

    /// Starts the session, once the folder is trusted or without a trust dialog.
    pub(super) fn start(&mut self) {
        let Some(begin) = self.begin.take() else {
            return;
        };
        self.screen.greeting(&begin.identity);
        for TranscriptEntry { kind, text } in &begin.entries {
            match kind.as_str() {
                "user" => self.screen.user(text),
                "assistant" => self.screen.answer(text),
                _ => {}
            }
        }
        let notes = self.conversation.start(begin.source);
        self.show_notes(notes);
        self.queue.extend(begin.prompt.map(SubmittedText::plain));
    }

    /// Shows the notes of hooks.
    pub(super) fn show_notes(&mut self, notes: Vec<HookOutput>) {
        for note in notes {
            match note {
                HookOutput::Context(text) => self.screen.output(&text),
                HookOutput::Warning(text) => self.screen.output(&format!("warning: {text}")),
            }
        }
    }

    /// Asks the loop to end.
    pub(super) fn leave(&mut self, status: u8, reason: &'static str) {
        self.leaving = Some(AgentExit { status, reason });
    }

    pub(super) fn notify_later(&mut self, notice: HookNotice) {
        let after = match notice {
            HookNotice::Dialog => NOTIFY_DIALOG,
            HookNotice::Idle => NOTIFY_IDLE,
        };
        let wanted = self.conversation.has_hook("Notification");
        self.notify = wanted.then(|| (Instant::now() + after, notice));
    }

    pub(super) fn forget_notice(&mut self) {
        self.notify = None;
    }

    pub(super) fn draw(&mut self) {
        let busy = self.turn.as_ref().map(|turn| turn.started.elapsed());
        let view = LiveView {
            busy,
            dialog: self.open.as_ref().map(|open| &open.dialog),
            editor: &self.editor,
            queued: self
                .queue
                .iter()
                .map(|message| message.shown.as_str())
                .collect(),
            exit_hint: self.exit_hint.is_some(),
        };
        let frame = frame(&view, self.screen.size());
        self.screen.state_title(match (&self.open, busy) {
            (Some(_), _) => TITLE_WAITING,
            (None, Some(_)) => TITLE_BUSY,
            (None, None) => TITLE_IDLE,
        });
        self.screen.draw(frame);
    }

    fn wait(&mut self) {
        let until = self.deadline();
        let stdin = io::stdin();
        let mut fds = Vec::with_capacity(5);
        if !self.orphan {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        if let Some(DemoTurn {
            doing: TurnActivity::Command(running, ..) | TurnActivity::Answer(running),
            ..
        }) = &self.turn
        {
            running.watch(&mut fds);
        }
        self.signals.wait(&mut fds, until);
        let input = !self.orphan && !fds[0].revents().is_empty();
        drop(fds);

        if let Some(status) = self.signals.ending() {
            self.leave(status, "other");
            return;
        }
        self.children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.signals.take_resized() {
            self.screen.resize();
        }
        if input {
            self.read();
        }
        self.look_at_the_clock();
        if self.screen.is_gone() {
            self.hang_up();
        }
    }

    fn read(&mut self) {
        let mut bytes = Vec::new();
        let read = terminal::read_available(&mut bytes);
        let events = self.decoder.feed(&bytes);
        self.escape_at = self
            .decoder
            .is_waiting()
            .then(|| Instant::now() + ESCAPE_WAIT);
        for event in events {
            self.handle(event);
        }
        if read.is_err() {
            self.hang_up();
        }
    }

    /// Handles a closed terminal as SIGHUP does; the end of the input may be seen before the
    /// signal.
    fn hang_up(&mut self) {
        self.orphan = true;
        if !self.ignore_term {
            self.leave(129, "other");
        }
    }

    /// Returns the earliest deadline.
    fn deadline(&self) -> Option<Instant> {
        let mut due = vec![
            self.exit_at,
            self.escape_at,
            self.exit_hint,
            self.pause,
            self.notify.map(|(at, _)| at),
        ];
        if let (Some(turn), None) = (&self.turn, &self.open)
            && !matches!(turn.doing, TurnActivity::Hanging)
        {
            // The busy line shows seconds.
            let next = turn.started.elapsed().as_secs() + 1;
            due.push(Some(turn.started + Duration::from_secs(next)));
            if let TurnActivity::Waiting(until) = turn.doing {
                due.push(Some(until));
            }
        }
        due.into_iter().flatten().min()
    }

    /// Handles the deadlines that no other method checks.
    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.escape_at) {
            self.escape_at = None;
            if let Some(key) = self.decoder.flush() {
                self.handle(InputEvent::Key(key));
            }
        }
        if due(self.exit_hint) {
            self.exit_hint = None;
        }
        if due(self.exit_at) {
            self.exit_at = None;
            self.leave(0, "other");
        }
        if let Some((at, notice)) = self.notify
            && at <= now
        {
            self.notify = None;
            let notes = match notice {
                HookNotice::Dialog => self
                    .conversation
                    .notify("permission_prompt", "demo needs your permission"),
                HookNotice::Idle => self
                    .conversation
                    .notify("idle_prompt", "demo is waiting for your input"),
            };
            self.show_notes(notes);
        }
    }

    fn end(mut self, leave: AgentExit) -> u8 {
        if let Some(turn) = &mut self.turn {
            turn.kill_command();
        }
        let notes = match &self.begin {
            None => self.conversation.end(leave.reason),
            // A session that never began fires no hook at its end.
            Some(begin) if begin.source == "resume" => Vec::new(),
            Some(_) => self.conversation.discard(),
        };
        self.show_notes(notes);
        self.screen.close();
        leave.status
    }
}
