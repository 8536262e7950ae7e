//! Commands that create, change and assign items.
//!
//! The description goes to the standard input. Other values follow `=` in their option, so that a
//! value may begin with a dash.

use super::{CommandDraft, CommandKind};
use crate::ItemFields;
use gt_core::work::WorkId;

/// Returns the command that creates an item in a rig.
pub(crate) fn create(item: &ItemFields, rig: &str) -> CommandDraft {
    let mut words = vec![
        "work".to_owned(),
        "create".to_owned(),
        "--json".to_owned(),
        format!("--rig={rig}"),
        format!("--type={}", item.kind),
        format!("--priority={}", item.priority),
    ];
    words.extend(item.labels.iter().map(|label| format!("--label={label}")));
    words.extend(item.blockers.iter().map(|id| format!("--dep={id}")));
    let input = described(&mut words, &item.description);
    words.extend(["--".to_owned(), item.title.clone()]);
    CommandDraft {
        words,
        input,
        ..CommandDraft::new(None, "Creating an item", &[])
    }
}

/// Reads the description from the standard input, if there is one.
fn described(words: &mut Vec<String>, description: &str) -> Option<String> {
    if description.is_empty() {
        return None;
    }
    words.push("--description=-".to_owned());
    Some(description.to_owned())
}

/// Returns the commands that change an item from `before` to `after`: one for its fields, and one
/// for each blocker. There is none if nothing has changed.
pub(crate) fn update(id: &WorkId, before: &ItemFields, after: &ItemFields) -> Vec<CommandDraft> {
    let mut words = Vec::new();
    if before.title != after.title {
        words.push(format!("--title={}", after.title));
    }
    if before.priority != after.priority {
        words.push(format!("--priority={}", after.priority));
    }
    if before.kind != after.kind {
        words.push(format!("--type={}", after.kind));
    }
    let added = |label: &&String| !before.labels.contains(label);
    let removed = |label: &&String| !after.labels.contains(label);
    let labels = after.labels.iter().filter(added);
    words.extend(labels.map(|label| format!("--add-label={label}")));
    let labels = before.labels.iter().filter(removed);
    words.extend(labels.map(|label| format!("--remove-label={label}")));
    let mut input = None;
    if before.description.trim_end() != after.description {
        words.push("--description=-".to_owned());
        input = Some(after.description.clone());
    }
    let title = format!("Changing {id}");
    let mut drafts = Vec::new();
    if !words.is_empty() {
        let head = ["work", "update", id.as_str(), "--json"].map(str::to_owned);
        drafts.push(CommandDraft {
            words: head.into_iter().chain(words).collect(),
            input,
            ..CommandDraft::new(id, title.as_str(), &[])
        });
    }
    let dep = |verb: &str, blocker: &str| {
        let words = ["work", "dep", verb, "--json", "--", id.as_str(), blocker];
        CommandDraft::new(id, title.as_str(), &words)
    };
    let added = after.blockers.iter();
    let added = added.filter(|it| !before.blockers.contains(it));
    drafts.extend(added.map(|blocker| dep("add", blocker)));
    let removed = before.blockers.iter();
    let removed = removed.filter(|it| !after.blockers.contains(it));
    drafts.extend(removed.map(|blocker| dep("remove", blocker)));
    drafts
}

/// Returns the command that reads an item for the form.
pub(crate) fn read(id: &WorkId) -> CommandDraft {
    let words = ["work", "show", id.as_str(), "--json"];
    CommandDraft {
        manner: CommandKind::ReadItem,
        ..CommandDraft::new(id, format!("Reading {id}"), &words)
    }
}

/// Returns the command that assigns an item to an agent, or to a polecat of its rig.
pub(crate) fn sling(id: &WorkId, agent: Option<&str>) -> CommandDraft {
    let mut words = vec!["sling", "--json", "--", id.as_str()];
    words.extend(agent);
    CommandDraft::new(id, format!("Assigning {id}"), &words)
}

/// Returns the command that escalates an item.
pub(crate) fn escalate(id: &WorkId, message: &str) -> CommandDraft {
    let words = ["escalate", "--stdin", "--item", id.as_str(), "--json"];
    CommandDraft {
        input: Some(message.to_owned()),
        ..CommandDraft::new(id, format!("Escalating {id}"), &words)
    }
}
