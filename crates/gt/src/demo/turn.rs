//! Turns: the agent takes a message, performs its steps, and ends the turn.
//!
//! [`Agent::advance`] does everything that is possible now and returns. A pending delay, command or
//! dialog is part of the state, and the loop in `agent` calls again when it may be over. A script
//! uses the same state machine: its lines become steps of a turn that is opened for them.

use std::collections::VecDeque;
use std::time::Instant;

use rustix::process::{Signal, getpid, kill_process};

use super::agent::{Agent, Notice, Open, Purpose};
use super::command::{Finished, Running};
use super::conversation::Tool;
use super::dialog::{Dialog, DialogAnswer};
use super::directive::{LONGEST, Step, steps};
use super::editor::Message;
use super::script::Line;

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) started: Instant,
    pub(super) doing: Doing,
    steps: VecDeque<Step>,
    /// Last text that the agent said.
    said: String,
    /// Message of the turn.
    message: String,
    /// Whether an interrupt puts the message back into the input line, as Claude Code does before
    /// its first answer.
    puts_back: bool,
}

#[derive(Debug)]
pub(super) enum Doing {
    Nothing,
    Waiting(Instant),
    Command(Box<Running>, Tool),
    /// A command decides the answer.
    Answer(Box<Running>),
    /// Until an interrupt, without any output.
    Hanging,
}

impl Turn {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            started: Instant::now(),
            doing: Doing::Nothing,
            steps: steps.into_iter().collect(),
            said: String::new(),
            message: String::new(),
            puts_back: false,
        }
    }

    /// Kills a running command.
    pub(super) fn cut_short(&mut self) {
        if let Doing::Command(running, _) | Doing::Answer(running) = &mut self.doing {
            running.kill();
        }
    }
}

/// Local commands that a message can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Local {
    Exit,
    Clear,
}

pub(super) fn local(message: &str) -> Option<Local> {
    match message.trim() {
        "/exit" | "/quit" => Some(Local::Exit),
        "/clear" => Some(Local::Clear),
        _ => None,
    }
}

impl Agent {
    /// Does everything that is possible now.
    pub(super) fn advance(&mut self, now: Instant) {
        while self.leaving.is_none() && self.progress(now) {}
    }

    pub(super) fn do_local(&mut self, local: Local) {
        match local {
            Local::Exit => self.leave(0, "prompt_input_exit"),
            Local::Clear => {
                self.screen.clear();
                let notes = self.conversation.clear();
                self.tell(notes);
            }
        }
    }

    /// Handles Esc or Ctrl-C while the agent works or asks. Fires no hook, as in Claude Code.
    pub(super) fn interrupt(&mut self) {
        if let Some(mut turn) = self.turn.take() {
            turn.cut_short();
            if turn.puts_back {
                self.editor.put(&turn.message);
                return;
            }
            self.screen
                .output("Interrupted · What should demo do instead?");
        }
    }

    pub(super) fn answered(&mut self, open: Open, answer: DialogAnswer) {
        self.forget_notice();
        match open.purpose {
            Purpose::Trust if answer == DialogAnswer::Row(1) => self.start(),
            Purpose::Trust => self.leave(1, "other"),
            _ if answer == DialogAnswer::Cancelled => self.interrupt(),
            Purpose::Command(command, tool) if answer == DialogAnswer::Row(0) => {
                self.run_command(&command, tool);
            }
            Purpose::Command(command, _) => {
                self.say(&format!("The command was refused: {command}"));
            }
            Purpose::Question(options, tool) => {
                let row = match answer {
                    DialogAnswer::Row(row) => options.get(row),
                    DialogAnswer::Cancelled => None,
                };
                let choice = row.map(String::as_str).unwrap_or_default();
                let notes = self.conversation.after_question(&tool, choice);
                self.tell(notes);
                self.say(&format!("You chose: {choice}"));
            }
        }
    }

    /// Does one thing. Returns false if there is nothing to do.
    fn progress(&mut self, now: Instant) -> bool {
        if self.open.is_some() {
            return self.progress_under_dialog(now);
        }
        if self.turn.is_some() {
            return self.progress_turn(now);
        }
        match self.script.front() {
            Some(Line::Do(_)) => self.script_step(),
            Some(Line::Sleep(_)) => self.script_sleep(now),
            Some(Line::WaitPrompt) => {
                let Some(message) = self.queue.pop_front() else {
                    return false;
                };
                self.script.pop();
                self.take_up(&message, Turn::new([]));
                true
            }
            None => {
                let Some(message) = self.queue.pop_front() else {
                    return false;
                };
                let steps = match &self.answer {
                    Some(command) => vec![Step::Answer {
                        command: command.clone(),
                        message: message.text.clone(),
                    }],
                    None => steps(&message.text),
                };
                self.take_up(&message, Turn::new(steps));
                true
            }
        }
    }

    /// Handles a `sleep` of the script below its own dialog: its end closes the dialog.
    fn progress_under_dialog(&mut self, now: Instant) -> bool {
        let trust = matches!(&self.open, Some(open) if matches!(open.purpose, Purpose::Trust));
        if trust || !self.script_sleep(now) {
            return false;
        }
        self.open = None;
        self.forget_notice();
        self.screen.output("No answer");
        true
    }

    fn script_sleep(&mut self, now: Instant) -> bool {
        let Some(Line::Sleep(length)) = self.script.front() else {
            return false;
        };
        if now < *self.pause.get_or_insert(now + *length) {
            return false;
        }
        self.pause = None;
        self.script.pop();
        true
    }

    /// Handles a line of the script outside a turn. Opens a turn, unless it only sets the title or
    /// ends the program.
    fn script_step(&mut self) -> bool {
        let Some(step) = self.script.next_step() else {
            return false;
        };
        match step {
            Step::Title(_) | Step::Exit(_) | Step::Crash => self.perform(step),
            _ => self.turn = Some(Turn::new([step])),
        }
        true
    }

    fn take_up(&mut self, message: &Message, mut turn: Turn) {
        if let Some(local) = local(&message.text) {
            self.do_local(local);
            return;
        }
        self.forget_notice();
        self.screen.user(&message.shown);
        turn.message.clone_from(&message.text);
        self.turn = Some(turn);
        self.draw();
        let notes = self.conversation.receive(&message.text);
        self.tell(notes);
    }

    fn progress_turn(&mut self, now: Instant) -> bool {
        let Some(turn) = &mut self.turn else {
            return false;
        };
        match &mut turn.doing {
            Doing::Waiting(until) if now < *until => return false,
            Doing::Waiting(_) => turn.doing = Doing::Nothing,
            Doing::Hanging => return false,
            Doing::Answer(running) => match running.pump() {
                Ok(None) => return false,
                Ok(Some(finished)) => {
                    turn.doing = Doing::Nothing;
                    turn.steps.extend(steps(&finished.stdout));
                }
                Err(error) => {
                    turn.doing = Doing::Nothing;
                    self.screen.output(&format!("warning: {error}"));
                }
            },
            Doing::Command(running, tool) => match running.pump() {
                Ok(None) => return false,
                Ok(Some(finished)) => {
                    let tool = tool.clone();
                    turn.doing = Doing::Nothing;
                    self.command_ended(&tool, &finished);
                }
                Err(error) => {
                    turn.doing = Doing::Nothing;
                    self.screen.output(&format!("warning: {error}"));
                }
            },
            Doing::Nothing => match turn.steps.pop_front() {
                Some(step) => self.perform(step),
                None => match self.script.next_step() {
                    Some(step) => self.perform(step),
                    None => self.end_turn(),
                },
            },
        }
        true
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Delay(length) => self.set_doing(Doing::Waiting(Instant::now() + length)),
            Step::Say(text) => self.say(&text),
            Step::Error(error) => {
                self.screen.answer(&format!("API Error: {error}"));
                self.draw();
                let notes = self.conversation.failed(&error);
                self.tell(notes);
                self.turn = None;
            }
            Step::Tool(command) => {
                let tool = Tool::bash(&command);
                let notes = self.conversation.before_tool(&tool);
                self.tell(notes);
                if self.conversation.bypasses_permissions() {
                    self.run_command(&command, tool);
                } else {
                    let dialog = Dialog::permission(&command);
                    self.ask(dialog, &tool.clone(), Purpose::Command(command, tool));
                }
            }
            Step::Ask(question, options) => {
                let tool = Tool::question(&question, &options);
                let notes = self.conversation.before_tool(&tool);
                self.tell(notes);
                let dialog = Dialog::question(&question, &options);
                self.ask(dialog, &tool.clone(), Purpose::Question(options, tool));
            }
            Step::Fill(lines) => {
                (1..=lines).for_each(|line| self.screen.line(&format!("  line {line} of {lines}")));
            }
            Step::Title(title) => {
                // Draws first, because drawing sets the title of the state.
                self.draw();
                self.screen.set_title(&title);
            }
            Step::PutBack => {
                if let Some(turn) = &mut self.turn {
                    turn.puts_back = true;
                }
            }
            Step::Answer { command, message } => {
                match Running::start(&command, message.into_bytes()) {
                    Ok(running) => self.set_doing(Doing::Answer(Box::new(running))),
                    Err(error) => self.screen.output(&format!("warning: {error}")),
                }
            }
            Step::Hang => {
                self.draw();
                self.set_doing(Doing::Hanging);
            }
            Step::Freeze => {
                self.draw();
                loop {
                    std::thread::sleep(LONGEST);
                }
            }
            Step::Crash => {
                // Signalling the own process cannot fail.
                let _ = kill_process(getpid(), Signal::KILL);
            }
            Step::Exit(status) => self.leave(status, "other"),
        }
    }

    fn set_doing(&mut self, doing: Doing) {
        if let Some(turn) = &mut self.turn {
            turn.doing = doing;
        }
    }

    fn say(&mut self, text: &str) {
        self.screen.answer(text);
        let notes = self.conversation.say(text);
        self.tell(notes);
        if let Some(turn) = &mut self.turn {
            turn.said = text.to_owned();
        }
    }

    fn ask(&mut self, dialog: Dialog, tool: &Tool, purpose: Purpose) {
        self.open = Some(Open { dialog, purpose });
        self.notify_later(Notice::Dialog);
        self.draw();
        let notes = self.conversation.asked(tool);
        self.tell(notes);
    }

    fn run_command(&mut self, command: &str, tool: Tool) {
        self.screen
            .line(&format!("● Bash({})", command.replace('\n', "⏎")));
        match Running::start(command, Vec::new()) {
            Ok(running) => self.set_doing(Doing::Command(Box::new(running), tool)),
            Err(error) => self.screen.output(&format!("warning: {error}")),
        }
    }

    fn command_ended(&mut self, tool: &Tool, finished: &Finished) {
        let output = format!("{}{}", finished.stdout, finished.stderr);
        let shown = if output.trim().is_empty() {
            "(no output)"
        } else {
            output.trim_end()
        };
        self.screen.output(shown);
        let notes = self.conversation.after_command(tool, finished);
        self.tell(notes);
        // A turn ends with an answer.
        let steps = self.turn.iter().flat_map(|turn| &turn.steps);
        if !self.script.acts() && !steps.into_iter().any(|step| matches!(step, Step::Say(_))) {
            let end = finished.failure().unwrap_or("exit code 0".to_owned());
            self.say(&format!("The command ended with {end}."));
        }
    }

    fn end_turn(&mut self) {
        self.draw();
        let said = self
            .turn
            .as_mut()
            .map(|turn| std::mem::take(&mut turn.said));
        let notes = self.conversation.stop(&said.unwrap_or_default());
        self.tell(notes);
        self.turn = None;
        self.notify_later(Notice::Idle);
    }
}
