//! Commands that the board asks for. Each is a `gt` of its own: what it does is what it does
//! at the command line, and whatever becomes of it, the board goes on.

use super::inbox::Post;
use gt_board::{Event, Order};
use gt_town::Town;
use serde_json::Value;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// So many run at a time; the others wait for their turn.
const AT_A_TIME: usize = 4;

/// What is wanted of a command.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Run,
    Foresee,
}

/// Takes orders and carries them out.
#[derive(Debug)]
pub(super) struct Orders {
    queue: Sender<(Order, Purpose)>,
    words: Words,
}

/// How `gt` is called for this town.
#[derive(Clone, Debug)]
struct Words {
    gt: std::path::PathBuf,
    town: std::path::PathBuf,
}

impl Orders {
    pub(super) fn new(town: &Town, post: &Post) -> Self {
        let (queue, waiting) = channel::<(Order, Purpose)>();
        let waiting = Arc::new(Mutex::new(waiting));
        let words = Words {
            gt: town.around().gt.clone(),
            town: town.root().to_owned(),
        };
        for _ in 0..AT_A_TIME {
            let (waiting, words, post) = (Arc::clone(&waiting), words.clone(), post.clone());
            std::thread::spawn(move || {
                loop {
                    let next = waiting
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    let Ok((order, purpose)) = next else { return };
                    post.send(carry_out(&words, &order, purpose));
                }
            });
        }
        Orders { queue, words }
    }

    pub(super) fn run(&self, order: Order) {
        let _ = self.queue.send((order, Purpose::Run));
    }

    pub(super) fn foresee(&self, order: Order) {
        let _ = self.queue.send((order, Purpose::Foresee));
    }

    /// Runs a command that has the terminal to itself. What went wrong it would tell on a
    /// terminal that is not to be seen any more, so that is kept.
    pub(super) fn run_here(&self, order: &Order) -> Event {
        let mut command = self.words.command(order);
        let ran = command.stderr(Stdio::piped()).spawn();
        let ran = ran.and_then(Child::wait_with_output);
        let result = match ran {
            Ok(output) if output.status.success() => Ok(String::new()),
            Ok(output) => Err(failure(&output)),
            Err(error) => Err(error.to_string()),
        };
        Event::Outcome {
            order: order.number,
            result,
        }
    }
}

impl Words {
    fn command(&self, order: &Order) -> Command {
        let mut command = Command::new(&self.gt);
        command.arg("--town").arg(&self.town).args(&order.words);
        command
    }
}

fn carry_out(words: &Words, order: &Order, purpose: Purpose) -> Event {
    let number = order.number;
    let result = answer(words, order);
    match purpose {
        Purpose::Run => Event::Outcome {
            order: number,
            result: result.map(|answer| summary(&answer)),
        },
        Purpose::Foresee => Event::Foreseen {
            order: number,
            result: result.and_then(|answer| steps(&answer)),
        },
    }
}

fn answer(words: &Words, order: &Order) -> Result<Value, String> {
    let mut command = words.command(order);
    // Not of the terminal's group: nothing that is pressed there is meant for it.
    command.process_group(0);
    command.stdin(match order.input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let (Some(input), Some(mut pipe)) = (&order.input, child.stdin.take()) {
        // One that does not read it says why.
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap_or_default());
    }
    Err(failure(&output))
}

/// What a command says of its failure.
fn failure(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let error = text
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str::<Value>(line).ok())
        .and_then(|document| document.get("error").cloned());
    match error {
        Some(error) => told(&error),
        None => told_to_people(&text).unwrap_or_else(|| output.status.to_string()),
    }
}

/// The same of what is told for people: `error:`, and `caused by:` and `hint:` below it.
fn told_to_people(text: &str) -> Option<String> {
    let is_error = |line: &&str| line.starts_with("error: ");
    let Some(first) = text.lines().find(is_error) else {
        return text.lines().last().map(str::to_owned);
    };
    let below = text.lines().skip_while(|line| !is_error(line)).skip(1);
    let mut told = first.trim_start_matches("error: ").to_owned();
    for line in below {
        if let Some(cause) = line.strip_prefix("caused by: ") {
            told.push_str(": ");
            told.push_str(cause);
        } else {
            told.push('\n');
            told.push_str(line.trim_start_matches("hint: ").trim_start());
        }
    }
    Some(told)
}

/// A problem as it is told: its message, its causes, its hints.
fn told(error: &Value) -> String {
    let list = |name: &str| texts(&error[name]);
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let causes = list("causes").into_iter().map(|cause| format!(": {cause}"));
    let hints = list("hints").into_iter().map(|hint| format!("\n{hint}"));
    let parts = std::iter::once(message).chain(causes);
    parts.chain(hints).collect()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    let texts = texts.filter_map(|text| Some(text.as_str()?.to_owned()));
    texts.collect()
}

/// What is worth saying of an answer.
fn summary(answer: &Value) -> String {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let found = text("message")
        .or_else(|| text("result"))
        .or_else(|| text("url"));
    found.unwrap_or_default().replace('_', " ")
}

/// What a command would do, step by step; a refusal is a failure.
fn steps(answer: &Value) -> Result<Vec<String>, String> {
    if let Some(refusal) = answer.get("refused") {
        return Err(told(refusal));
    }
    let steps = answer["steps"].as_array().into_iter().flatten();
    let texts = steps.filter_map(|step| Some(step["text"].as_str()?.to_owned()));
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_to_people_is_told_without_its_labels() {
        let text = "warning: x\nerror: it did not go\ncaused by: a, b\nhint: `gt x` tries again\n";
        assert_eq!(
            told_to_people(text).as_deref(),
            Some("it did not go: a, b\n`gt x` tries again")
        );
        assert_eq!(told_to_people("no server").as_deref(), Some("no server"));
        assert_eq!(told_to_people(""), None);
    }
}
