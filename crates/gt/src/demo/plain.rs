//! The agent in a pipe: each line of the input is a message, and answers go to the output.
//!
//! There is no user to ask, so a command that needs permission is refused and a question stays
//! open. Everything else, including hooks and the transcript, works as on a terminal.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Signal, getpid, kill_process};

use super::command::Running;
use super::conversation::{DemoConversation, Tool};
use super::directive::{DirectiveStep, steps};
use super::hooks::HookOutput;
use super::script::{Script, ScriptLine};
use super::signals::Signals;
use super::turn::{LocalCommand, local};

/// Early end of the program, with this exit status.
#[derive(Debug)]
struct EarlyExit(u8);

#[derive(Debug)]
pub(super) struct PlainAgent<W> {
    conversation: DemoConversation,
    signals: Rc<Signals>,
    out: W,
    input: Vec<u8>,
    exit_at: Option<Instant>,
}

impl<W: Write> PlainAgent<W> {
    pub(super) fn new(
        conversation: DemoConversation,
        signals: Rc<Signals>,
        out: W,
        exit_at: Option<Instant>,
    ) -> Self {
        Self {
            conversation,
            signals,
            out,
            input: Vec::new(),
            exit_at,
        }
    }

    /// Runs until the input ends. Returns the exit status.
    pub(super) fn run(mut self, source: &str, prompt: Option<String>, script: Script) -> u8 {
        let notes = self.conversation.start(source);
        let EarlyExit(status) = match self
            .show_notes(notes)
            .and_then(|()| self.talk(prompt, script))
        {
            Ok(()) => EarlyExit(0),
            Err(end) => end,
        };
        let notes = self.conversation.end("other");
        // If the output is closed, there is no other place for the notes.
        let _ = self.show_notes(notes);
        status
    }

    fn talk(&mut self, mut prompt: Option<String>, mut script: Script) -> Result<(), EarlyExit> {
        while let Some(line) = script.pop() {
            match line {
                ScriptLine::Do(step) => {
                    let mut turn = VecDeque::from([step]);
                    // An error ends a turn; the next step begins another.
                    while !matches!(turn.back(), Some(DirectiveStep::Error(_)))
                        && let Some(step) = script.next_step()
                    {
                        turn.push_back(step);
                    }
                    self.answer(turn)?;
                }
                ScriptLine::Sleep(length) => self.sleep(Instant::now() + length)?,
                ScriptLine::WaitPrompt => match self.next(&mut prompt)? {
                    Some(message) => self.receive(&message)?,
                    None => return Ok(()),
                },
            }
        }
        while let Some(message) = self.next(&mut prompt)? {
            match local(&message) {
                Some(LocalCommand::Exit) => break,
                Some(LocalCommand::Clear) => {
                    let notes = self.conversation.clear();
                    self.show_notes(notes)?;
                }
                None => {
                    self.receive(&message)?;
                    self.answer(steps(&message).into())?;
                }
            }
        }
        Ok(())
    }

    fn next(&mut self, prompt: &mut Option<String>) -> Result<Option<String>, EarlyExit> {
        match prompt.take() {
            Some(prompt) => Ok(Some(prompt)),
            None => self.line(),
        }
    }

    fn receive(&mut self, message: &str) -> Result<(), EarlyExit> {
        let notes = self.conversation.receive(message);
        self.show_notes(notes)
    }

    fn answer(&mut self, mut steps: VecDeque<DirectiveStep>) -> Result<(), EarlyExit> {
        let mut said = String::new();
        while let Some(step) = steps.pop_front() {
            if let DirectiveStep::Error(error) = step {
                self.print(&format!("API Error: {error}"))?;
                let notes = self.conversation.failed(&error);
                return self.show_notes(notes);
            }
            if let Some(text) = self.perform(step)? {
                said = text;
            }
        }
        let notes = self.conversation.stop(&said);
        self.show_notes(notes)
    }

    /// Performs a step. Returns the text that the agent said.
    fn perform(&mut self, step: DirectiveStep) -> Result<Option<String>, EarlyExit> {
        let text = match step {
            DirectiveStep::Delay(length) => {
                self.sleep(Instant::now() + length)?;
                return Ok(None);
            }
            DirectiveStep::Say(text) => text,
            DirectiveStep::Error(error) => format!("API Error: {error}"),
            DirectiveStep::Tool(command) if self.conversation.bypasses_permissions() => {
                self.command(&command)?
            }
            DirectiveStep::Tool(command) => format!("The command was refused: {command}"),
            DirectiveStep::Ask(question, _) => format!("No person can be asked: {question}"),
            DirectiveStep::Fill(lines) => {
                for line in 1..=lines {
                    self.print(&format!("line {line} of {lines}"))?;
                }
                return Ok(None);
            }
            // Only the agent on a terminal creates or performs these.
            DirectiveStep::Title(_)
            | DirectiveStep::PutBack
            | DirectiveStep::Hang
            | DirectiveStep::Freeze
            | DirectiveStep::Answer { .. } => {
                return Ok(None);
            }
            DirectiveStep::Crash => {
                // Signalling the own process cannot fail.
                let _ = kill_process(getpid(), Signal::KILL);
                return Ok(None);
            }
            DirectiveStep::Exit(status) => return Err(EarlyExit(status)),
        };
        self.print(&text)?;
        let notes = self.conversation.say(&text);
        self.show_notes(notes)?;
        Ok(Some(text))
    }

    fn command(&mut self, command: &str) -> Result<String, EarlyExit> {
        let tool = Tool::bash(command);
        let notes = self.conversation.before_tool(&tool);
        self.show_notes(notes)?;
        let ended = Running::start(command, Vec::new()).and_then(|mut running| {
            loop {
                if let Some(finished) = running.transfer()? {
                    return Ok(Some(finished));
                }
                if self.signals.ending().is_some() {
                    running.kill();
                    return Ok(None);
                }
                let mut fds = Vec::new();
                running.watch(&mut fds);
                self.signals.wait(&mut fds, self.exit_at);
            }
        });
        let finished = match ended {
            Ok(Some(finished)) => finished,
            Ok(None) => return Err(self.ending()),
            Err(error) => return Ok(format!("The command could not be run: {error}")),
        };
        self.print(format!("{}{}", finished.stdout, finished.stderr).trim_end())?;
        let notes = self.conversation.after_command(&tool, &finished);
        self.show_notes(notes)?;
        let end = finished.failure().unwrap_or("exit code 0".to_owned());
        Ok(format!("The command ended with {end}."))
    }

    /// Returns the next line that is not blank, or `None` at the end of the input.
    fn line(&mut self) -> Result<Option<String>, EarlyExit> {
        loop {
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line[..end]).into_owned();
                if !line.trim().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            let stdin = io::stdin();
            let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
            self.signals.wait(&mut fds, self.exit_at);
            self.check()?;
            if fds[0].revents().is_empty() {
                continue;
            }
            let mut chunk = [0; 16 * 1024];
            match rustix::io::read(&stdin, &mut chunk) {
                Ok(count) if count > 0 => self.input.extend_from_slice(&chunk[..count]),
                Err(rustix::io::Errno::INTR) => {}
                // The last line may have no line end.
                _ if self.input.is_empty() => return Ok(None),
                _ => self.input.push(b'\n'),
            }
        }
    }

    fn sleep(&mut self, until: Instant) -> Result<(), EarlyExit> {
        let until = self.exit_at.map_or(until, |exit_at| exit_at.min(until));
        self.signals.sleep_until(until);
        self.check()
    }

    /// Fails once a signal or `--exit-after` ends the program.
    fn check(&self) -> Result<(), EarlyExit> {
        let late = self
            .exit_at
            .is_some_and(|exit_at| exit_at <= Instant::now());
        match self.signals.ending() {
            None if !late => Ok(()),
            _ => Err(self.ending()),
        }
    }

    fn ending(&self) -> EarlyExit {
        EarlyExit(self.signals.ending().unwrap_or(0))
    }

    fn show_notes(&mut self, notes: Vec<HookOutput>) -> Result<(), EarlyExit> {
        for note in notes {
            match note {
                HookOutput::Context(text) => self.print(&format!("⎿  {text}"))?,
                HookOutput::Warning(text) => self.print(&format!("⎿  warning: {text}"))?,
            }
        }
        Ok(())
    }

    fn print(&mut self, text: &str) -> Result<(), EarlyExit> {
        let written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        // A closed pipe ends the program silently, with the status of SIGPIPE.
        written.map_err(|_: io::Error| EarlyExit(141))
    }
}
