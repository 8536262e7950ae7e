//! Questions to a person at a terminal. Enter accepts the default.

use crate::context::Context;
use crate::output::{self, Paint};
use gt_core::Problem;
use std::io::{BufRead, IsTerminal, Write};

/// Maximum width of questions.
const MAX_COLUMNS: usize = 100;

/// Prints a text, broken between words.
pub(crate) fn text(text: &str) -> Result<(), Problem> {
    let lines = output::wrapped(&output::clean(text), output::columns(MAX_COLUMNS));
    output::line(lines.join("\n"))
}

/// Returns whether there is a person to ask: stdin and stdout are terminals, and no JSON is wanted.
pub(crate) fn can_ask(context: &Context) -> bool {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    is_terminal && !context.json
}

/// Asks a yes-or-no question.
pub(crate) fn yes(question: &str, default: bool) -> Result<bool, Problem> {
    let choice = if default { "[Y/n]" } else { "[y/N]" };
    loop {
        let answer = ask(&format!("{question} {choice}"))?;
        match answer.to_lowercase().as_str() {
            "" => return Ok(default),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => output::line("Please answer y or n.")?,
        }
    }
}

/// Asks for one of several options, by number or name. The first is the default.
pub(crate) fn choose(question: &str, options: &[(String, String)]) -> Result<usize, Problem> {
    let paint = Paint::for_stdout();
    text(question)?;
    let longest = options.iter().map(|(name, _)| name.len()).max();
    let longest = longest.unwrap_or(0);
    // The descriptions are a column of their own.
    let indent = longest + "  1)   ".len();
    let width = output::columns(MAX_COLUMNS).saturating_sub(indent);
    for (index, (name, about)) in options.iter().enumerate() {
        let mut head = format!("  {}) {name:<longest$}  ", index + 1);
        for line in output::wrapped(&output::clean(about), width) {
            output::line(format!("{head}{}", paint.dim(&line)).trim_end())?;
            head = " ".repeat(indent);
        }
    }
    loop {
        let answer = ask("Number or name [1]:")?;
        if answer.is_empty() {
            return Ok(0);
        }
        let by_name = options.iter().position(|(name, _)| *name == answer);
        let number = answer
            .parse::<usize>()
            .ok()
            .and_then(|it| it.checked_sub(1));
        match by_name.or(number.filter(|index| *index < options.len())) {
            Some(index) => return Ok(index),
            None => output::line(format!("Please answer 1 to {}, or a name.", options.len()))?,
        }
    }
}

/// Asks a question, and returns the trimmed answer. The end of the input cancels the command.
fn ask(question: &str) -> Result<String, Problem> {
    let lines = output::wrapped(question, output::columns(MAX_COLUMNS) - 5);
    output::print(&format!("{} ", lines.join("\n")))?;
    let flushed = std::io::stdout().flush();
    flushed.map_err(|error| Problem::failed("cannot write the question").caused_by(error))?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read {
        Ok(0) => Err(Problem::failed("there is no answer").hint("nothing was changed")),
        Ok(_) => Ok(answer.trim().to_owned()),
        Err(error) => Err(Problem::failed("cannot read the answer").caused_by(error)),
    }
}
