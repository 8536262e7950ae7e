//! Handles keys and pastes, depending on what is on the screen.

use std::time::{Duration, Instant};

use super::agent::Agent;
use super::input::{InputEvent, TerminalKey};
use super::turn::local;

/// Time within which a second Ctrl-C exits.
const EXIT_HINT: Duration = Duration::from_secs(2);

const EXIT: &str = "prompt_input_exit";

impl Agent {
    pub(super) fn handle(&mut self, event: InputEvent) {
        if self.leaving.is_some() {
            return;
        }
        match event {
            // A dialog drops a paste, as in the real programs.
            InputEvent::Paste(_) if self.open.is_some() => {}
            InputEvent::Paste(text) => self.editor.paste(text),
            InputEvent::Key(key) => {
                self.key(key);
                // A key may change the meaning of the next one of the same read.
                if !matches!(key, TerminalKey::Char(_)) {
                    self.advance(Instant::now());
                }
            }
        }
    }

    fn key(&mut self, key: TerminalKey) {
        if let Some(mut open) = self.open.take() {
            match open.dialog.key(key) {
                Some(answer) => self.answered(open, answer),
                None => self.open = Some(open),
            }
            return;
        }
        let exit_hint = self.exit_hint.take();
        match key {
            TerminalKey::Enter => self.submit(),
            TerminalKey::Esc | TerminalKey::Ctrl('c') if self.turn.is_some() => self.interrupt(),
            TerminalKey::Ctrl('c') if !self.editor.is_empty() => self.editor.clear(),
            TerminalKey::Ctrl('c') if exit_hint.is_some() => self.leave(0, EXIT),
            TerminalKey::Ctrl('c') => self.exit_hint = Some(Instant::now() + EXIT_HINT),
            TerminalKey::Ctrl('d') if self.editor.is_empty() => self.leave(0, EXIT),
            TerminalKey::Up if self.editor.is_empty() && !self.queue.is_empty() => {
                self.edit_queue();
            }
            key => self.editor.key(key),
        }
    }

    fn submit(&mut self) {
        let Some(message) = self.editor.enter() else {
            return;
        };
        match local(&message.text) {
            // An idle agent executes it at once, even if a script is not waiting for a message.
            Some(local) if self.turn.is_none() => self.do_local(local),
            _ => self.queue.push_back(message),
        }
    }

    /// Moves the queued messages back into the input line.
    fn edit_queue(&mut self) {
        let messages: Vec<String> = self.queue.drain(..).map(|message| message.text).collect();
        self.editor.paste(messages.join("\n"));
    }
}
