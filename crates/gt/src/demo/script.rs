//! Script mode: a file of lines that the agent performs without a user, for tests and demos.
//!
//! ```text
//! # A comment.
//! wait prompt            until a message is submitted
//! busy 2s                busy for that long
//! say Two lines\nof text an answer (\n is a new line)
//! permission touch x     the permission dialog; runs the command on yes
//! ask Which?|a|b         a question
//! error 500 Overloaded   an API error ends the turn
//! title ⠂ demo           the terminal title
//! sleep 500ms            idle for that long
//! exit 0
//! ```
//!
//! A turn lasts until the next `wait`, `sleep`, `exit` or the end of the file. A dialog waits for
//! its answer. A `sleep` right after it is its timeout, so that a script can run without a user.
//! After the last line the agent answers messages as usual.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::directive::{DirectiveStep, duration, question};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScriptLine {
    Do(DirectiveStep),
    WaitPrompt,
    Sleep(Duration),
}

/// Remaining lines.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script(VecDeque<ScriptLine>);

impl Script {
    pub(super) fn front(&self) -> Option<&ScriptLine> {
        self.0.front()
    }

    pub(super) fn pop(&mut self) -> Option<ScriptLine> {
        self.0.pop_front()
    }

    /// Returns whether the next line is part of a turn.
    pub(super) fn is_in_turn(&self) -> bool {
        matches!(self.front(), Some(ScriptLine::Do(_)))
    }

    /// Takes the next line if it is part of a turn.
    pub(super) fn next_step(&mut self) -> Option<DirectiveStep> {
        match self.is_in_turn().then(|| self.pop()).flatten() {
            Some(ScriptLine::Do(step)) => Some(step),
            _ => None,
        }
    }
}

/// Reads a script. The error names the file and the line.
pub(super) fn load(path: &Path) -> Result<Script, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|(line, problem)| format!("{}:{line}: {problem}", path.display()))
}

fn parse(text: &str) -> Result<Script, (usize, String)> {
    let numbered = text.lines().map(str::trim).zip(1..);
    numbered
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, number)| parse_line(line).map_err(|problem| (number, problem)))
        .collect::<Result<_, _>>()
        .map(Script)
}

fn parse_line(line: &str) -> Result<ScriptLine, String> {
    let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let time = || {
        duration(rest).ok_or(format!(
            "`{verb}` needs a time like 500ms or 2s, not `{rest}`"
        ))
    };
    let text = || match rest {
        "" => Err(format!("`{verb}` needs a text")),
        _ => Ok(rest.replace("\\n", "\n")),
    };
    let step = match verb {
        "say" => DirectiveStep::Say(text()?),
        "busy" => DirectiveStep::Delay(time()?),
        "ask" => question(&text()?),
        "permission" => DirectiveStep::Tool(text()?),
        "error" => DirectiveStep::Error(text()?),
        "title" => DirectiveStep::Title(text()?),
        "exit" => {
            let code = rest
                .parse()
                .map_err(|_| format!("`exit` needs a status from 0 to 255, not `{rest}`"))?;
            DirectiveStep::Exit(code)
        }
        "wait" if rest == "prompt" => return Ok(ScriptLine::WaitPrompt),
        "wait" => return Err(format!("`wait` knows only `wait prompt`, not `{rest}`")),
        "sleep" => return Ok(ScriptLine::Sleep(time()?)),
        _ => return Err(format!("unknown line `{verb}`")),
    };
    Ok(ScriptLine::Do(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb() {
        let script = "# demo\n\nsay hi\\nthere\nbusy 2s\nask Q?|a|b\npermission ls -l\n\
                      error 500 x\ntitle t\nwait prompt\nsleep 500ms\n  exit 4  \n";
        let options = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            parse(script).expect("a script").0,
            [
                ScriptLine::Do(DirectiveStep::Say("hi\nthere".to_owned())),
                ScriptLine::Do(DirectiveStep::Delay(Duration::from_secs(2))),
                ScriptLine::Do(DirectiveStep::Ask("Q?".to_owned(), options)),
                ScriptLine::Do(DirectiveStep::Tool("ls -l".to_owned())),
                ScriptLine::Do(DirectiveStep::Error("500 x".to_owned())),
                ScriptLine::Do(DirectiveStep::Title("t".to_owned())),
                ScriptLine::WaitPrompt,
                ScriptLine::Sleep(Duration::from_millis(500)),
                ScriptLine::Do(DirectiveStep::Exit(4)),
            ]
        );
    }

    #[test]
    fn errors_carry_the_line() {
        for (script, line, problem) in [
            ("say a\ndance", 2, "unknown line `dance`"),
            ("say", 1, "`say` needs a text"),
            (
                "\nbusy soon",
                2,
                "`busy` needs a time like 500ms or 2s, not `soon`",
            ),
            (
                "exit 300",
                1,
                "`exit` needs a status from 0 to 255, not `300`",
            ),
            ("wait", 1, "`wait` knows only `wait prompt`, not ``"),
        ] {
            assert_eq!(parse(script), Err((line, problem.to_owned())), "{script}");
        }
    }
}
