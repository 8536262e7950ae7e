//! Turns: the agent takes a message, performs its steps, and ends the turn.
//!
//! [`Agent::advance`] does everything that is possible now and returns. A pending delay, command or
//! dialog is part of the state, and the loop in `agent` calls again when it may be over. A script
//! uses the same state machine: its lines become steps of a turn that is opened for them.

use std::collections::VecDeque;
use std::time::Instant;

use rustix::process::{Signal, getpid, kill_process};

use super::agent::{Agent, DialogPurpose, HookNotice, PendingDialog};
use super::command::{CommandOutput, Running};
use super::conversation::Tool;
use super::dialog::{DemoDialog, DialogAnswer};
use super::directive::{DirectiveStep, LONGEST, steps};
use super::editor::SubmittedText;
use super::script::ScriptLine;

#[derive(Debug)]
pub(super) struct DemoTurn {
    pub(super) started: Instant,
    pub(super) doing: TurnActivity,
    steps: VecDeque<DirectiveStep>,
    /// Last text that the agent said.
    said: String,
    /// Message of the turn.
    message: String,
    /// Whether an interrupt puts the message back into the input line, as Claude Code does before
    /// its first answer.
    puts_back: bool,
}

#[derive(Debug)]
pub(super) enum TurnActivity {
    Nothing,
    Waiting(Instant),
    Command(Box<Running>, Tool),
    /// A command decides the answer.
    Answer(Box<Running>),
    /// Until an interrupt, without any output.
    Hanging,
}

impl DemoTurn {
    fn new(steps: impl IntoIterator<Item = DirectiveStep>) -> Self {
        Self {
            started: Instant::now(),
            doing: TurnActivity::Nothing,
            steps: steps.into_iter().collect(),
            said: String::new(),
            message: String::new(),
            puts_back: false,
        }
    }

    /// Kills a running command.
    pub(super) fn kill_command(&mut self) {
        if let TurnActivity::Command(running, _) | TurnActivity::Answer(running) = &mut self.doing {
            running.kill();
        }
    }
}

/// Local commands that a message can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalCommand {
    Exit,
    Clear,
}

pub(super) fn local(message: &str) -> Option<LocalCommand> {
    match message.trim() {
        "/exit" | "/quit" => Some(LocalCommand::Exit),
        "/clear" => Some(LocalCommand::Clear),
        _ => None,
    }
}

impl Agent {
    /// Does everything that is possible now.
    pub(super) fn advance(&mut self, now: Instant) {
        while self.leaving.is_none() && self.progress(now) {}
    }

    pub(super) fn do_local(&mut self, local: LocalCommand) {
        match local {
            LocalCommand::Exit => self.leave(0, "prompt_input_exit"),
            LocalCommand::Clear => {
                self.screen.clear();
                let notes = self.conversation.clear();
                self.show_notes(notes);
            }
        }
    }

    /// Handles Esc or Ctrl-C while the agent works or asks. Fires no hook, as in Claude Code.
    pub(super) fn interrupt(&mut self) {
        if let Some(mut turn) = self.turn.take() {
            turn.kill_command();
            if turn.puts_back {
                self.editor.insert_text(&turn.message);
                return;
            }
            self.screen
                .output("Interrupted · What should demo do instead?");
        }
    }

    pub(super) fn answered(&mut self, open: PendingDialog, answer: DialogAnswer) {
        self.forget_notice();
        match open.purpose {
            DialogPurpose::Trust if answer == DialogAnswer::Row(1) => self.start(),
            DialogPurpose::Trust => self.leave(1, "other"),
            _ if answer == DialogAnswer::Cancelled => self.interrupt(),
            DialogPurpose::Command(command, tool) if answer == DialogAnswer::Row(0) => {
                self.run_command(&command, tool);
            }
            DialogPurpose::Command(command, _) => {
                self.say(&format!("The command was refused: {command}"));
            }
            DialogPurpose::Question(options, tool) => {
                let row = match answer {
                    DialogAnswer::Row(row) => options.get(row),
                    DialogAnswer::Cancelled => None,
                };
                let choice = row.map(String::as_str).unwrap_or_default();
                let notes = self.conversation.after_question(&tool, choice);
                self.show_notes(notes);
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
            Some(ScriptLine::Do(_)) => self.script_step(),
            Some(ScriptLine::Sleep(_)) => self.script_sleep(now),
            Some(ScriptLine::WaitPrompt) => {
                let Some(message) = self.queue.pop_front() else {
                    return false;
                };
                self.script.pop();
                self.take_up(&message, DemoTurn::new([]));
                true
            }
            None => {
                let Some(message) = self.queue.pop_front() else {
                    return false;
                };
                let steps = match &self.answer {
                    Some(command) => vec![DirectiveStep::Answer {
                        command: command.clone(),
                        message: message.text.clone(),
                    }],
                    None => steps(&message.text),
                };
                self.take_up(&message, DemoTurn::new(steps));
                true
            }
        }
    }

    /// Handles a `sleep` of the script below its own dialog: its end closes the dialog.
    fn progress_under_dialog(&mut self, now: Instant) -> bool {
        let trust =
            matches!(&self.open, Some(open) if matches!(open.purpose, DialogPurpose::Trust));
        if trust || !self.script_sleep(now) {
            return false;
        }
        self.open = None;
        self.forget_notice();
        self.screen.output("No answer");
        true
    }

    fn script_sleep(&mut self, now: Instant) -> bool {
        let Some(ScriptLine::Sleep(length)) = self.script.front() else {
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
            DirectiveStep::Title(_) | DirectiveStep::Exit(_) | DirectiveStep::Crash => {
                self.perform(step);
            }
            _ => self.turn = Some(DemoTurn::new([step])),
        }
        true
    }

    fn take_up(&mut self, message: &SubmittedText, mut turn: DemoTurn) {
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
        self.show_notes(notes);
    }

    fn progress_turn(&mut self, now: Instant) -> bool {
        let Some(turn) = &mut self.turn else {
            return false;
        };
        match &mut turn.doing {
            TurnActivity::Waiting(until) if now < *until => return false,
            TurnActivity::Waiting(_) => turn.doing = TurnActivity::Nothing,
            TurnActivity::Hanging => return false,
            TurnActivity::Answer(running) => match running.transfer() {
                Ok(None) => return false,
                Ok(Some(finished)) => {
                    turn.doing = TurnActivity::Nothing;
                    turn.steps.extend(steps(&finished.stdout));
                }
                Err(error) => {
                    turn.doing = TurnActivity::Nothing;
                    self.screen.output(&format!("warning: {error}"));
                }
            },
            TurnActivity::Command(running, tool) => match running.transfer() {
                Ok(None) => return false,
                Ok(Some(finished)) => {
                    let tool = tool.clone();
                    turn.doing = TurnActivity::Nothing;
                    self.command_ended(&tool, &finished);
                }
                Err(error) => {
                    turn.doing = TurnActivity::Nothing;
                    self.screen.output(&format!("warning: {error}"));
                }
            },
            TurnActivity::Nothing => match turn.steps.pop_front() {
                Some(step) => self.perform(step),
                None => match self.script.next_step() {
                    Some(step) => self.perform(step),
                    None => self.end_turn(),
                },
            },
        }
        true
    }

    fn perform(&mut self, step: DirectiveStep) {
        match step {
            DirectiveStep::Delay(length) => {
                self.set_doing(TurnActivity::Waiting(Instant::now() + length));
            }
            DirectiveStep::Say(text) => self.say(&text),
            DirectiveStep::Error(error) => {
                self.screen.answer(&format!("API Error: {error}"));
                self.draw();
                let notes = self.conversation.failed(&error);
                self.show_notes(notes);
                self.turn = None;
            }
            DirectiveStep::Tool(command) => {
                let tool = Tool::bash(&command);
                let notes = self.conversation.before_tool(&tool);
                self.show_notes(notes);
                if self.conversation.bypasses_permissions() {
                    self.run_command(&command, tool);
                } else {
                    let dialog = DemoDialog::permission(&command);
                    self.ask(dialog, &tool.clone(), DialogPurpose::Command(command, tool));
                }
            }
            DirectiveStep::Ask(question, options) => {
                let tool = Tool::question(&question, &options);
                let notes = self.conversation.before_tool(&tool);
                self.show_notes(notes);
                let dialog = DemoDialog::question(&question, &options);
                self.ask(
                    dialog,
                    &tool.clone(),
                    DialogPurpose::Question(options, tool),
                );
            }
            DirectiveStep::Fill(lines) => {
                (1..=lines).for_each(|line| self.screen.line(&format!("  line {line} of {lines}")));
            }
            DirectiveStep::Title(title) => {
                // Draws first, because drawing sets the title of the state.
                self.draw();
                self.screen.set_title(&title);
            }
            DirectiveStep::PutBack => {
                if let Some(turn) = &mut self.turn {
                    turn.puts_back = true;
                }
            }
            DirectiveStep::Answer { command, message } => {
                match Running::start(&command, message.into_bytes()) {
                    Ok(running) => self.set_doing(TurnActivity::Answer(Box::new(running))),
                    Err(error) => self.screen.output(&format!("warning: {error}")),
                }
            }
            DirectiveStep::Hang => {
                self.draw();
                self.set_doing(TurnActivity::Hanging);
            }
            DirectiveStep::Freeze => {
                self.draw();
                loop {
                    std::thread::sleep(LONGEST);
                }
            }
            DirectiveStep::Crash => {
                // Signalling the own process cannot fail.
                let _ = kill_process(getpid(), Signal::KILL);
            }
            DirectiveStep::Exit(status) => self.leave(status, "other"),
        }
    }

    fn set_doing(&mut self, doing: TurnActivity) {
        if let Some(turn) = &mut self.turn {
            turn.doing = doing;
        }
    }

    fn say(&mut self, text: &str) {
        self.screen.answer(text);
        let notes = self.conversation.say(text);
        self.show_notes(notes);
        if let Some(turn) = &mut self.turn {
            turn.said = text.to_owned();
        }
    }

    fn ask(&mut self, dialog: DemoDialog, tool: &Tool, purpose: DialogPurpose) {
        self.open = Some(PendingDialog { dialog, purpose });
        self.notify_later(HookNotice::Dialog);
        self.draw();
        let notes = self.conversation.report_dialog(tool);
        self.show_notes(notes);
    }

    fn run_command(&mut self, command: &str, tool: Tool) {
        self.screen
            .line(&format!("● Bash({})", command.replace('\n', "⏎")));
        match Running::start(command, Vec::new()) {
            Ok(running) => self.set_doing(TurnActivity::Command(Box::new(running), tool)),
            Err(error) => self.screen.output(&format!("warning: {error}")),
        }
    }

    fn command_ended(&mut self, tool: &Tool, finished: &CommandOutput) {
        let output = format!("{}{}", finished.stdout, finished.stderr);
        let shown = if output.trim().is_empty() {
            "(no output)"
        } else {
            output.trim_end()
        };
        self.screen.output(shown);
        let notes = self.conversation.after_command(tool, finished);
        self.show_notes(notes);
        // A turn ends with an answer.
        let steps = self.turn.iter().flat_map(|turn| &turn.steps);
        if !self.script.is_in_turn()
            && !steps
                .into_iter()
                .any(|step| matches!(step, DirectiveStep::Say(_)))
        {
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
        self.show_notes(notes);
        self.turn = None;
        self.notify_later(HookNotice::Idle);
    }
}
