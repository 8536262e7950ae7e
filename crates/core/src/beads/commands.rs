//! The command lines for `bd` and `br`.

use super::{Dialect, OWN_LABEL};
use crate::problem::Problem;
use crate::work::{Item, ItemStatus, WorkId};

/// Returns the arguments that list all items.
pub fn list() -> Vec<String> {
    words(["list", "--all", "--limit=0", "--json"])
}

/// Returns the arguments that show these items with their dependencies.
pub fn show<'a>(ids: impl IntoIterator<Item = &'a WorkId>) -> Vec<String> {
    let mut command = words(["show"]);
    command.extend(ids.into_iter().map(WorkId::to_string));
    command.push("--json".to_owned());
    command
}

/// Returns the arguments that create an item. Dependencies follow in a second step ([`changes`]):
/// the two programs disagree on how `create` takes them.
pub fn create(item: &Item) -> Vec<String> {
    let mut command = words(["create", "--json"]);
    let mut say = |option: &str, value: &str| {
        if !value.is_empty() {
            command.push(format!("--{option}={value}"));
        }
    };
    say("title", &item.title);
    say("description", &item.description);
    say("type", &item.kind);
    say("priority", &item.priority.to_string());
    say("assignee", item.assignee.as_deref().unwrap_or_default());
    say("labels", &written_labels(&item.labels).join(","));
    say("parent", item.parent.as_ref().map_or("", WorkId::as_str));
    if item.ephemeral {
        command.push("--ephemeral".to_owned());
    }
    command
}

/// Returns the commands that change an item in beads to our version, in order.
pub fn changes(dialect: Dialect, seen: &Item, now: &Item) -> Vec<Vec<String>> {
    let id = now.id.as_str();
    let closed = |item: &Item| item.status == ItemStatus::Closed;
    let mut commands = Vec::new();
    if closed(seen) && !closed(now) {
        commands.push(words(["reopen", id, "--json"]));
    }
    let mut options = Vec::new();
    let mut say = |option: &str, before: &str, after: &str| {
        if before != after {
            options.push(format!("--{option}={after}"));
        }
    };
    let before = match closed(seen) {
        true => ItemStatus::Open,
        false => seen.status,
    };
    if !closed(now) {
        say("status", before.as_str(), now.status.as_str());
    }
    let name = |item: &Item| item.assignee.clone().unwrap_or_default();
    say("assignee", &name(seen), &name(now));
    say("title", &seen.title, &now.title);
    say("description", &seen.description, &now.description);
    say("notes", &seen.notes, &now.notes);
    say("type", &seen.kind, &now.kind);
    let priority = |item: &Item| item.priority.to_string();
    say("priority", &priority(seen), &priority(now));
    let (old, new) = (written_labels(&seen.labels), written_labels(&now.labels));
    let labels = |option: &str, these: &[&str], those: &[&str]| -> Vec<String> {
        let missing = these.iter().filter(|label| !those.contains(label));
        missing.map(|label| format!("--{option}={label}")).collect()
    };
    options.extend(labels("add-label", &new, &old));
    options.extend(labels("remove-label", &old, &new));
    if !options.is_empty() {
        let mut command = words(["update", id, "--json"]);
        if dialect == Dialect::Br {
            // Without it `br` refuses to make a text much shorter.
            command.push("--force".to_owned());
        }
        command.extend(options);
        commands.push(command);
    }
    for blocker in now.deps.iter().filter(|on| !seen.deps.contains(on)) {
        let blocker = blocker.as_str();
        commands.push(words([
            "dep",
            "add",
            id,
            blocker,
            "--type=blocks",
            "--json",
        ]));
    }
    for blocker in seen.deps.iter().filter(|on| !now.deps.contains(on)) {
        commands.push(words(["dep", "remove", id, blocker.as_str(), "--json"]));
    }
    if closed(now) && !closed(seen) {
        let reason = now.close_reason.as_deref().unwrap_or("done");
        // `--force`: the item is closed even if it still depends on open items.
        let reason = format!("--reason={reason}");
        commands.push(words(["close", id, &reason, "--force", "--json"]));
    }
    commands
}

/// Fails if an argument is too long for the kernel or contains a NUL byte.
pub fn check_words(words: &[String]) -> Result<(), Problem> {
    for word in words {
        let name = word.split_once('=').map_or("a word", |(option, _)| option);
        if word.len() > LONGEST_WORD {
            return Err(Problem::usage(format!(
                "{name} is longer than the {} KiB that one argument of a program can have",
                (LONGEST_WORD + 1) / 1024
            )));
        }
        if word.contains('\0') {
            return Err(Problem::usage(format!("{name} holds a NUL byte")));
        }
    }
    Ok(())
}

/// Maximum length of one argument on Linux, without its terminating NUL byte.
const LONGEST_WORD: usize = 128 * 1024 - 1;

/// Returns the labels that are written to beads.
pub(super) fn written_labels(labels: &[String]) -> Vec<&str> {
    let labels = labels.iter().map(String::as_str);
    labels
        .filter(|label| !label.starts_with(OWN_LABEL))
        .collect()
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
