//! Builds the arguments of `gt` commands for operations.
//!
//! The arguments are complete except for the program's name. All commands except those that take
//! the terminal request JSON. Nothing is quoted, since no shell is involved.

pub(crate) mod items;
pub(crate) mod town;

use crate::action::{CardOperation, EscalationOperation, ServerOperation};
use crate::overlay::AskedItem;
use crate::{BoardRequest, Invocation, Question};
use gt_core::work::WorkId;

/// A command without its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandDraft {
    /// The item or the escalation; `None` for a command about the town or a rig.
    pub(crate) item: Option<WorkId>,
    pub(crate) title: String,
    pub(crate) words: Vec<String>,
    pub(crate) input: Option<String>,
    pub(crate) manner: CommandKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    Run,
    HandOver,
    Foresee,
    Ask,
    ReadItem,
    ReadBehind,
}

impl CommandDraft {
    fn new<'a>(
        item: impl Into<Option<&'a WorkId>>,
        title: impl Into<String>,
        words: &[&str],
    ) -> Self {
        CommandDraft {
            item: item.into().cloned(),
            title: title.into(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            input: None,
            manner: CommandKind::Run,
        }
    }

    pub(crate) fn request(self, number: u64) -> BoardRequest {
        let order = Invocation {
            number,
            item: self.item,
            title: self.title,
            words: self.words,
            input: self.input,
        };
        match self.manner {
            CommandKind::Run => BoardRequest::Run(order),
            CommandKind::HandOver => BoardRequest::HandOver(order),
            CommandKind::Foresee => BoardRequest::Foresee(order),
            CommandKind::Ask => BoardRequest::Ask(order),
            CommandKind::ReadItem => BoardRequest::ReadItem(order),
            CommandKind::ReadBehind => BoardRequest::ReadBehind(order),
        }
    }
}

/// Returns the command of an operation that needs only the item. Other operations have separate
/// functions, or no command: the diff is a view.
pub(crate) fn plain(operation: CardOperation, id: &WorkId) -> Option<CommandDraft> {
    let item = id.as_str();
    let (title, words): (String, &[&str]) = match operation {
        CardOperation::Start => (
            format!("Starting {id}"),
            &["task", "start", item, "--no-attach", "--json"],
        ),
        CardOperation::StartWork => (
            format!("Starting work on {id}"),
            &["task", "start", item, "--work", "--no-attach", "--json"],
        ),
        CardOperation::StartYolo => (
            format!("Starting work on {id} without questions"),
            &[
                "task",
                "start",
                item,
                "--work",
                "--yolo",
                "--no-attach",
                "--json",
            ],
        ),
        CardOperation::Update => (
            format!("Updating {id}"),
            &["task", "update", item, "--json"],
        ),
        CardOperation::Pause => (format!("Pausing {id}"), &["task", "pause", item, "--json"]),
        CardOperation::Resume => (
            format!("Resuming {id}"),
            &["task", "resume", item, "--json"],
        ),
        CardOperation::ResumeKeepWip => (
            format!("Resuming {id}"),
            &["task", "resume", item, "--keep-wip", "--json"],
        ),
        CardOperation::Stop => (format!("Stopping {id}"), &["task", "stop", item, "--json"]),
        CardOperation::Merge => (format!("Merging {id}"), &["task", "merge", item, "--json"]),
        CardOperation::AbortMerge => (
            format!("Aborting the merge of {id}"),
            &["task", "abort-merge", item, "--json"],
        ),
        CardOperation::PullRequest => (
            format!("Opening a pull request for {id}"),
            &["task", "pr", item, "--json"],
        ),
        CardOperation::Close => (format!("Closing {id}"), &["work", "close", item, "--json"]),
        CardOperation::Attach
        | CardOperation::Cleanup
        | CardOperation::Servers
        | CardOperation::Diff
        | CardOperation::Answer
        | CardOperation::Nudge
        | CardOperation::Interrupt
        | CardOperation::Handoff
        | CardOperation::Sling
        | CardOperation::Edit
        | CardOperation::Escalate => return None,
    };
    Some(CommandDraft::new(id, title, words))
}

/// Returns the command that attaches to the task; `how` is `None`, `--merge` or `--skip`.
pub(crate) fn attach(id: &WorkId, how: Option<&str>) -> CommandDraft {
    let mut words = vec!["task", "attach", id.as_str()];
    words.extend(how);
    CommandDraft {
        manner: CommandKind::HandOver,
        ..CommandDraft::new(id, format!("Attaching to {id}"), &words)
    }
}

/// Returns the command that reads how far the branch of a task is behind its base.
pub(crate) fn read_behind(id: &WorkId) -> CommandDraft {
    let words = ["task", "attach", id.as_str(), "--dry-run", "--json"];
    CommandDraft {
        manner: CommandKind::ReadBehind,
        ..CommandDraft::new(id, format!("Attaching to {id}"), &words)
    }
}

/// Returns a retry of a command whose init command failed, with `--continue-on-failure`. The option
/// goes before `--`, since only names follow it.
pub(crate) fn retry_init(id: Option<&WorkId>, title: &str, words: &[String]) -> CommandDraft {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let end = words.iter().position(|word| *word == "--");
    words.insert(end.unwrap_or(words.len()), "--continue-on-failure");
    CommandDraft::new(id, title, &words)
}

/// Returns a retry of a command that needs a confirmation, with `--yes`.
pub(crate) fn confirmed(id: Option<&WorkId>, title: &str, words: &[String]) -> CommandDraft {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let end = words.iter().position(|word| *word == "--");
    words.insert(end.unwrap_or(words.len()), "--yes");
    CommandDraft::new(id, title, &words)
}

/// Returns the command that attaches to an agent other than the item's own task.
pub(crate) fn attach_holder(id: &WorkId, agent: &str) -> CommandDraft {
    let words = ["attach", "--", agent];
    CommandDraft {
        manner: CommandKind::HandOver,
        ..CommandDraft::new(id, format!("Attaching to {agent}"), &words)
    }
}

/// Returns the command that stops an agent other than the item's own task.
pub(crate) fn stop_holder(id: &WorkId, agent: &str) -> CommandDraft {
    let words = ["stop", "--json", "--", agent];
    CommandDraft::new(id, format!("Stopping {agent}"), &words)
}

pub(crate) fn foresee_cleanup(id: &WorkId) -> CommandDraft {
    let words = ["task", "cleanup", id.as_str(), "--dry-run", "--json"];
    CommandDraft {
        manner: CommandKind::Foresee,
        ..CommandDraft::new(
            id,
            format!("Checking what a cleanup of {id} would do"),
            &words,
        )
    }
}

/// Returns the command of a cleanup; `more` is `--close` or `--force`.
pub(crate) fn cleanup(id: &WorkId, more: Option<&str>) -> CommandDraft {
    let mut words = vec!["task", "cleanup", id.as_str(), "--yes"];
    words.extend(more);
    words.push("--json");
    CommandDraft::new(id, format!("Cleaning up {id}"), &words)
}

/// Returns the command for one server, or for all servers of the item.
pub(crate) fn server(operation: ServerOperation, id: &WorkId, name: Option<&str>) -> CommandDraft {
    let (verb, word) = match operation {
        ServerOperation::Start => ("Starting", "start"),
        ServerOperation::Stop => ("Stopping", "stop"),
        ServerOperation::Restart => ("Restarting", "restart"),
        ServerOperation::Open => ("Opening", "open"),
    };
    let title = match name {
        Some(name) => format!("{verb} {name} of {id}"),
        None => format!("{verb} the servers of {id}"),
    };
    let mut words = vec!["dev", word, "--json", "--", id.as_str()];
    words.extend(name);
    CommandDraft::new(id, title, &words)
}

/// Returns the command that reads the question of an agent, or of the program in a window beside
/// it.
pub(crate) fn question(id: &WorkId, agent: &str, window: Option<&str>) -> CommandDraft {
    let mut words = vec!["answer", "--json"];
    words.extend(window.into_iter().flat_map(|window| ["--window", window]));
    words.extend(["--", agent]);
    CommandDraft {
        manner: CommandKind::Ask,
        ..CommandDraft::new(id, format!("Reading what {agent} asks"), &words)
    }
}

/// Returns the command that answers exactly this question. The answer follows `--`, since typed
/// text may begin with a dash.
pub(crate) fn answer(item: &AskedItem, choice: &str, question: &Question) -> CommandDraft {
    let agent = item.agent.as_str();
    let window = item.window.as_deref();
    let mut words = vec!["answer", "--json", "--expect", &question.fingerprint];
    words.extend(window.into_iter().flat_map(|window| ["--window", window]));
    words.extend(["--", agent, choice]);
    let title = match window {
        Some(window) => format!("Answering {window} of {agent}"),
        None => format!("Answering {agent}"),
    };
    CommandDraft::new(&item.id, title, &words)
}

pub(crate) fn nudge(id: &WorkId, agent: &str, message: &str) -> CommandDraft {
    let words = ["nudge", agent, "--stdin", "--json"];
    CommandDraft {
        input: Some(message.to_owned()),
        ..CommandDraft::new(id, format!("Message to {agent}"), &words)
    }
}

/// Returns the command that acknowledges or closes an escalation.
pub(crate) fn escalation(operation: EscalationOperation, id: &WorkId) -> CommandDraft {
    let (verb, word) = match operation {
        EscalationOperation::Acknowledge => ("Acknowledging", "ack"),
        EscalationOperation::Close => ("Closing", "close"),
    };
    let words = ["escalate", word, id.as_str(), "--json"];
    CommandDraft::new(id, format!("{verb} {id}"), &words)
}

/// Returns the command that interrupts the turn of an agent.
pub(crate) fn interrupt(id: &WorkId, agent: &str) -> CommandDraft {
    let words = ["interrupt", "--json", "--", agent];
    CommandDraft::new(id, format!("Interrupting {agent}"), &words)
}

/// Returns the command that hands an agent over to a new session, with these notes.
pub(crate) fn handoff(id: &WorkId, agent: &str, notes: &str) -> CommandDraft {
    let mut words = vec!["handoff", "--collect", "--json"];
    words.extend((!notes.is_empty()).then_some("--stdin"));
    words.extend(["--", agent]);
    CommandDraft {
        input: (!notes.is_empty()).then(|| notes.to_owned()),
        ..CommandDraft::new(id, format!("Handing over {agent}"), &words)
    }
}
