//! Commands of the board. Each runs as a separate `gt` process: it behaves as on the command line,
//! and its failure does not affect the board.

mod answers;

use super::inbox::Post;
use gt_board::{BoardEvent, CommandFailure, FailureRemedy, Invocation};
use gt_core::ProblemKind;
use gt_core::work::WorkId;
use gt_town::Town;
use serde_json::Value;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The purpose of a command, which determines how its answer is parsed.
#[derive(Clone, Copy, Debug)]
enum InvocationPurpose {
    Run,
    Foresee,
    Ask,
    ReadItem,
    ReadBehind,
}

/// Queue of commands. Commands for one item run in order; commands for different items run
/// concurrently.
#[derive(Debug)]
pub(super) struct Invocations {
    lanes: Arc<Lanes>,
    words: GtArguments,
    post: Post,
}

/// Waiting commands by item. A lane exists while a thread works on it.
type Lanes = Mutex<HashMap<Lane, VecDeque<(Invocation, InvocationPurpose)>>>;

/// The commands that run in order: those of one item, or those about the town.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Lane {
    Item(WorkId),
    Town,
    /// A restore may take minutes, and must not delay an emergency stop.
    Restore,
}

impl Lane {
    fn of(order: &Invocation) -> Self {
        match &order.item {
            Some(item) => Lane::Item(item.clone()),
            None if order.words.first().is_some_and(|word| word == "restore") => Lane::Restore,
            None => Lane::Town,
        }
    }
}

/// Arguments with which `gt` is called for this town.
#[derive(Clone, Debug)]
struct GtArguments {
    gt: PathBuf,
    town: PathBuf,
}

impl Invocations {
    pub(super) fn new(town: &Town, post: &Post) -> Self {
        Invocations {
            lanes: Arc::default(),
            words: GtArguments {
                gt: town.around().gt.clone(),
                town: town.root().to_owned(),
            },
            post: post.clone(),
        }
    }

    pub(super) fn run(&self, order: Invocation) {
        self.take(order, InvocationPurpose::Run);
    }

    pub(super) fn foresee(&self, order: Invocation) {
        self.take(order, InvocationPurpose::Foresee);
    }

    pub(super) fn ask(&self, order: Invocation) {
        self.take(order, InvocationPurpose::Ask);
    }

    pub(super) fn read_item(&self, order: Invocation) {
        self.take(order, InvocationPurpose::ReadItem);
    }

    pub(super) fn read_behind(&self, order: Invocation) {
        self.take(order, InvocationPurpose::ReadBehind);
    }

    fn take(&self, order: Invocation, purpose: InvocationPurpose) {
        let lane = Lane::of(&order);
        match lock(&self.lanes).entry(lane.clone()) {
            Entry::Occupied(mut queue) => return queue.get_mut().push_back((order, purpose)),
            Entry::Vacant(queue) => queue.insert(VecDeque::from([(order, purpose)])),
        };
        let (lanes, words, post) = (
            Arc::clone(&self.lanes),
            self.words.clone(),
            self.post.clone(),
        );
        std::thread::spawn(move || {
            while let Some((order, purpose)) = next(&lanes, &lane) {
                post.send(carry_out(&words, &order, purpose));
            }
        });
    }

    /// Runs a command that has the terminal to itself. Captures stderr, because the board covers
    /// the terminal again afterwards.
    pub(super) fn run_here(&self, order: &Invocation) -> BoardEvent {
        let mut command = self.words.command(order);
        let ran = command.stderr(Stdio::piped()).spawn();
        let ran = ran.and_then(Child::wait_with_output);
        let result = match ran {
            Ok(output) if output.status.success() => Ok(String::new()),
            Ok(output) => Err(failure(&output)),
            Err(error) => Err(error.to_string().into()),
        };
        BoardEvent::Outcome {
            order: order.number,
            result,
        }
    }
}

/// Returns the next command of a lane. Removes the lane if it is empty.
fn next(lanes: &Lanes, lane: &Lane) -> Option<(Invocation, InvocationPurpose)> {
    let mut lanes = lock(lanes);
    let order = lanes.get_mut(lane).and_then(VecDeque::pop_front);
    if order.is_none() {
        lanes.remove(lane);
    }
    order
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GtArguments {
    fn command(&self, order: &Invocation) -> Command {
        let mut command = Command::new(&self.gt);
        command.arg("--town").arg(&self.town).args(&order.words);
        command
    }
}

fn carry_out(words: &GtArguments, order: &Invocation, purpose: InvocationPurpose) -> BoardEvent {
    let number = order.number;
    let result = answer(words, order);
    match purpose {
        InvocationPurpose::Run => BoardEvent::Outcome {
            order: number,
            result: result.map(|answer| answers::summary(&order.words, &answer)),
        },
        InvocationPurpose::Foresee => BoardEvent::Foreseen {
            order: number,
            result: failure_text(result).and_then(|answer| answers::steps(&answer)),
        },
        InvocationPurpose::Ask => BoardEvent::Asked {
            order: number,
            result: failure_text(result).and_then(|answer| answers::question(&answer)),
        },
        InvocationPurpose::ReadItem => BoardEvent::ItemRead {
            order: number,
            result: failure_text(result).map(|answer| answers::item(&answer)),
        },
        InvocationPurpose::ReadBehind => BoardEvent::BehindRead {
            order: number,
            result: result.map(|answer| answers::behind(&answer)),
        },
    }
}

/// Reduces the failure to its text.
fn failure_text(result: Result<Value, CommandFailure>) -> Result<Value, String> {
    result.map_err(|failure| failure.text)
}

fn answer(words: &GtArguments, order: &Invocation) -> Result<Value, CommandFailure> {
    let mut command = words.command(order);
    // A process group apart from the terminal's, so that Ctrl-C does not reach it.
    command.process_group(0);
    command.stdin(match order.input {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let (Some(input), Some(mut pipe)) = (order.input.clone(), child.stdin.take()) {
        // In a thread: the command may fill its output before it reads all of a long input. A
        // command that does not read its input reports the reason itself.
        std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return document(&output.stdout);
    }
    Err(failure(&output))
}

/// Parses the answer of a command. A command without an answer prints nothing.
fn document(stdout: &[u8]) -> Result<Value, CommandFailure> {
    if stdout.trim_ascii().is_empty() {
        return Ok(Value::Null);
    }
    let unreadable = |error| format!("its answer cannot be read: {error}");
    serde_json::from_slice(stdout).map_err(|error| unreadable(error).into())
}

/// Reads the failure from a command's stderr.
fn failure(output: &Output) -> CommandFailure {
    let text = String::from_utf8_lossy(&output.stderr);
    // Warnings are plain text before the JSON of the error.
    let error = text
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str::<Value>(line).ok())
        .and_then(|document| document.get("error").cloned());
    match error {
        Some(error) => CommandFailure {
            remedy: remedy(&error),
            text: answers::problem_text(&error),
            causes: answers::texts(&error["causes"]),
        },
        None => told_to_people(&text)
            .or_else(|| told_of_agents(&output.stdout))
            .unwrap_or_else(|| output.status.to_string())
            .into(),
    }
}

/// Returns the way on after a failure, by the kind in the JSON of the error.
fn remedy(error: &Value) -> Option<FailureRemedy> {
    match error["kind"].as_str().and_then(ProblemKind::from_word)? {
        ProblemKind::Unconfirmed => Some(FailureRemedy::Confirm),
        ProblemKind::InitFailed => Some(FailureRemedy::RetryInit),
        _ => None,
    }
}

/// Formats the agents for which a command failed, from its answer.
fn told_of_agents(stdout: &[u8]) -> Option<String> {
    // Without a document there is nothing to add to the exit code.
    let answer = document(stdout).ok()?;
    let failed = answer.get("failed")?.as_array()?;
    let line = |one: &Value| {
        Some(format!(
            "{}: {}",
            one["agent"].as_str()?,
            one["error"].as_str()?
        ))
    };
    let lines: Vec<String> = failed.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Extracts the failure from plain text: `error:`, with `caused by:` and `hint:` below it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::inbox::BoardInbox;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Duration;

    fn order(number: u64, item: &str, words: &[&str]) -> Invocation {
        Invocation {
            number,
            item: Some(item.parse().unwrap()),
            title: String::new(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            input: None,
        }
    }

    fn outcomes(inbox: &BoardInbox, count: usize) -> Vec<u64> {
        let mut found = Vec::new();
        while found.len() < count {
            inbox.wait(Some(Duration::from_secs(30)));
            found.extend(
                inbox
                    .take_events()
                    .into_iter()
                    .filter_map(|event| match event {
                        BoardEvent::Outcome { order, .. } => Some(order),
                        _ => None,
                    }),
            );
        }
        found
    }

    /// Writes a script in place of `gt` that waits for a file, or creates one.
    fn stand_in(dir: &Path) -> PathBuf {
        let path = dir.join("gt");
        let text = "#!/bin/sh\nshift 2\ncase $1 in\n\
                    await) while [ ! -e \"$2\" ]; do sleep 0.01; done;;\n\
                    make) : > \"$2\";;\n\
                    flood) head -c 300000 /dev/zero; cat >\"$2\";;\nesac\n";
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn orders_for_one_item_keep_their_order_and_hold_up_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = BoardInbox::open().unwrap();
        let invocations = Invocations {
            lanes: Arc::default(),
            words: GtArguments {
                gt: stand_in(dir.path()),
                town: dir.path().to_owned(),
            },
            post: inbox.post(),
        };
        let file = dir.path().join("go");
        let file = file.to_str().unwrap();
        for number in 0..8 {
            let item = format!("gt-0000{number}");
            invocations.run(order(number, &item, &["await", file]));
        }
        // The second command of an item waits for its first, and all of them wait for a file that
        // the command of another item creates.
        invocations.run(order(8, "gt-00000", &["make", "/nonexistent/x"]));
        invocations.run(order(9, "gt-00009", &["make", file]));
        let ended = outcomes(&inbox, 10);
        let place = |number: u64| ended.iter().position(|it| *it == number).unwrap();
        assert!(place(0) < place(8), "{ended:?}");
        // The last outcome is sent before its lane is removed.
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while !lock(&invocations.lanes).is_empty() {
            assert!(std::time::Instant::now() < until, "a lane stays open");
            std::thread::yield_now();
        }
    }

    #[test]
    fn long_input_does_not_block_a_command_that_writes_first() {
        let dir = tempfile::tempdir().unwrap();
        let words = GtArguments {
            gt: stand_in(dir.path()),
            town: dir.path().to_owned(),
        };
        let copy = dir.path().join("copy");
        let order = Invocation {
            input: Some("x".repeat(300_000)),
            ..order(0, "gt-00000", &["flood", copy.to_str().unwrap()])
        };
        let failed = answer(&words, &order).unwrap_err();
        assert!(
            failed.text.starts_with("its answer cannot be read"),
            "{failed:?}"
        );
        assert_eq!(std::fs::metadata(&copy).unwrap().len(), 300_000);
    }

    #[test]
    fn unreadable_answer_is_a_failure_and_an_empty_one_is_not() {
        assert!(document(b"done\n").is_err());
        assert!(document(b"{\"result\":").is_err());
        assert_eq!(document(b"\n").unwrap(), Value::Null);
        assert_eq!(document(b"{\"result\":\"ok\"}\n").unwrap()["result"], "ok");
    }

    #[test]
    fn failed_emergency_stop_names_the_agents() {
        let answer = br#"{"failed":[{"agent":"gt/crew/max","error":"no answer"}],"idle":[]}"#;
        let told = told_of_agents(answer);
        assert_eq!(told.as_deref(), Some("gt/crew/max: no answer"));
        assert_eq!(told_of_agents(br#"{"failed":[]}"#), None);
        assert_eq!(told_of_agents(b""), None);
    }

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
