//! Beads, the issue tracker of a repository: parses the output of its programs and builds their
//! command lines.
//!
//! There are two programs, `bd` and `br`, with nearly the same commands. This module converts their
//! JSON to work items, and the difference between two versions of an item to command lines. It runs
//! nothing; the engine does (`town::records::items`).
//!
//! Every value is in one argument with its option (`--title=…`), so that no title is parsed as an
//! option.

mod commands;
#[cfg(test)]
mod tests;

pub use commands::{changes, check_words, create, list, show};

use crate::problem::Problem;
use crate::work::{Item, ItemStatus, USUAL_KIND, WorkId, appended, one_line, to_label};
use serde_json::{Value, json};

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Bd,
    Br,
}

impl Dialect {
    /// Returns the dialect of a program, by its file name.
    pub fn of(program: &str) -> Self {
        match program.rsplit('/').next() {
            Some("br") => Dialect::Br,
            _ => Dialect::Bd,
        }
    }
}

/// The programs, in order of preference.
pub const PROGRAMS: [&str; 2] = ["bd", "br"];

/// Prefix of our labels for properties that an item has no field for. They are never written to
/// beads.
const OWN_LABEL: &str = "beads:";

/// An item as beads reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bead {
    pub item: Item,
    /// The status as beads spells it.
    pub word: String,
    /// The item has dependencies, but the listing does not name them.
    pub is_short: bool,
    /// Comments, each with time and author. Listings omit them.
    pub comments: Vec<String>,
}

impl Bead {
    /// Reads a JSON object. Returns `None` for a tombstone. `time` converts a timestamp to our
    /// format; missing timestamps become `now`.
    pub fn read(
        mut value: Value,
        now: &str,
        time: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Problem> {
        if !value.is_object() {
            return Err(Problem::usage("not a work item").cause("not a JSON object"));
        }
        let bad = |error: serde_json::Error| Problem::usage("not a work item").caused_by(error);
        let word = value["status"].as_str().unwrap_or("open").to_owned();
        if word == "tombstone" || value["deleted_at"].is_string() {
            return Ok(None);
        }
        let known = word.parse::<ItemStatus>().ok();
        // Beads treats statuses that we do not know as not ready.
        let status = match known {
            _ if value["pinned"] == true => ItemStatus::Pinned,
            known => known.unwrap_or(ItemStatus::Blocked),
        };
        value["status"] = status.as_str().into();
        let times = [
            ("created_at", Some(now)),
            ("updated_at", Some(now)),
            ("closed_at", None),
        ];
        for (field, otherwise) in times {
            let given = value[field].as_str().and_then(&time);
            value[field] = given.or(otherwise.map(str::to_owned)).into();
        }
        let dependencies = value["dependencies"].take();
        let comments = value["comments"].take();
        let comments = comments.as_array().into_iter().flatten();
        let comments = comments.filter_map(|said| comment(said, &time)).collect();
        let count = value["dependency_count"].as_u64().unwrap_or(0);
        let is_id = |value: &Value| {
            value
                .as_str()
                .is_some_and(|id| id.parse::<WorkId>().is_ok())
        };
        if !is_id(&value["parent"]) {
            value["parent"] = Value::Null;
        }
        if let Some(fields) = value.as_object_mut() {
            let empty = |value: &Value| value.is_null() || *value == "";
            fields.retain(|name, value| name == "title" || !empty(value));
        }
        let mut item: Item = serde_json::from_value(value).map_err(bad)?;
        // Lists and headings show them on one line.
        for word in [&mut item.title, &mut item.kind]
            .into_iter()
            .chain(&mut item.labels)
        {
            *word = one_line(word);
        }
        if known.is_none() {
            item.labels.push(format!("{OWN_LABEL}{word}"));
        }
        for dependency in dependencies.as_array().into_iter().flatten() {
            let (on, kind) = edge(dependency);
            let Some(on) = on.and_then(|id| id.parse::<WorkId>().ok()) else {
                continue;
            };
            match kind {
                Some("parent-child") => item.parent = Some(on),
                Some("blocks") | None => item.deps.push(on),
                // Other types of dependencies do not affect the order.
                Some(_) => {}
            }
        }
        item.deps.sort();
        item.deps.dedup();
        item.labels.sort();
        item.labels.dedup();
        Ok(Some(Bead {
            item,
            word,
            is_short: count > 0 && !dependencies.is_array(),
            comments,
        }))
    }

    /// Converts the bead to an item of a town that does not share the tracker. An unknown status
    /// becomes open, types and labels become single words, and comments become notes.
    #[must_use]
    pub fn imported(self) -> Item {
        let mut item = self.item;
        if item.status == ItemStatus::Hooked || self.word.parse::<ItemStatus>().is_err() {
            item.status = ItemStatus::Open;
        }
        item.labels.retain(|label| !label.starts_with(OWN_LABEL));
        item.labels = item
            .labels
            .iter()
            .filter_map(|label| to_label(label))
            .collect();
        item.labels.sort();
        item.labels.dedup();
        item.kind = to_label(&item.kind).unwrap_or_else(|| USUAL_KIND.to_owned());
        for comment in self.comments {
            // An item that we exported earlier already has the comment in its notes.
            if !item.notes.contains(&comment) {
                item.notes = appended(&item.notes, &comment);
            }
        }
        item
    }

    /// Reopens an item that is hooked outside this town, and labels it as hooked. Such a hook
    /// assigns the item to no agent here.
    pub fn unhook(&mut self) {
        if self.item.status == ItemStatus::Hooked {
            self.item.status = ItemStatus::Open;
            let label = format!("{OWN_LABEL}{}", ItemStatus::Hooked.as_str());
            if !self.item.labels.contains(&label) {
                self.item.labels.push(label);
                self.item.labels.sort();
            }
        }
    }
}

/// Formats a comment with its time and author.
fn comment(said: &Value, time: impl Fn(&str) -> Option<String>) -> Option<String> {
    let text = said["text"].as_str()?.trim();
    let when = said["created_at"].as_str().and_then(time);
    let who = said["author"].as_str().filter(|who| !who.is_empty());
    let head: Vec<&str> = when.as_deref().into_iter().chain(who).collect();
    match head.as_slice() {
        _ if text.is_empty() => None,
        [] => Some(text.to_owned()),
        head => Some(format!("{}: {text}", head.join(" "))),
    }
}

/// Converts an item to a line of a beads file that the programs can import. The parent is written
/// as a dependency, and a dependency needs a timestamp.
pub fn exported(item: &Item) -> Value {
    let edge = |on: &WorkId, kind: &str| {
        json!({
            "issue_id": item.id,
            "depends_on_id": on,
            "type": kind,
            "created_at": item.created_at,
        })
    };
    let parent = item.parent.iter().map(|on| edge(on, "parent-child"));
    let deps = item.deps.iter().map(|on| edge(on, "blocks"));
    let dependencies: Vec<Value> = parent.chain(deps).collect();
    let mut value = json!(item);
    value["issue_type"] = value["type"].take();
    value["labels"] = commands::written_labels(&item.labels).into();
    value["dependencies"] = dependencies.into();
    if let Some(fields) = value.as_object_mut() {
        let ours = ["type", "deps", "parent"];
        let empty = |value: &Value| *value == "" || *value == json!([]);
        fields.retain(|name, value| !ours.contains(&name.as_str()) && !empty(value));
    }
    value
}

/// Returns the id and the type of a dependency, which is either an edge or the other item itself.
fn edge(dependency: &Value) -> (Option<&str>, Option<&str>) {
    let word = |name: &str| dependency[name].as_str();
    match word("depends_on_id").or(dependency.as_str()) {
        Some(on) => (Some(on), word("type")),
        None => (word("id"), word("dependency_type").or(word("type"))),
    }
}

/// Parses the objects of a response: a list, one object, or a wrapper around either.
pub fn objects(stdout: &str) -> Result<Vec<Value>, Problem> {
    let bad = || Problem::failed("beads did not answer with JSON");
    // The program may print warnings first.
    let start = stdout.find(['[', '{']).ok_or_else(bad)?;
    let mut documents = serde_json::Deserializer::from_str(&stdout[start..]).into_iter::<Value>();
    let mut value = match documents.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(bad().caused_by(error)),
        None => return Err(bad()),
    };
    for wrapper in ["data", "issues"] {
        if value.get(wrapper).is_some_and(|inner| !inner.is_null()) {
            value = value[wrapper].take();
        }
    }
    match value {
        Value::Array(objects) => Ok(objects),
        Value::Object(_) if value["id"].is_string() => Ok(vec![value]),
        _ => Err(bad()),
    }
}

/// Extracts the error message of a program that failed.
pub fn reason(stdout: &str, stderr: &str) -> String {
    let told = |text: &str| {
        let start = text.find('{')?;
        let documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        documents.map_while(Result::ok).find_map(|mut value| {
            if value["data"].is_object() {
                value = value["data"].take();
            }
            let error = &value["error"];
            let text = error["message"].as_str().or(error.as_str())?;
            Some(text.to_owned())
        })
    };
    let lines = |text: &str| {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let full = lines.into_iter().filter(|line| !line.is_empty());
        full.take(5).collect::<Vec<_>>().join("; ")
    };
    told(stdout)
        .or_else(|| told(stderr))
        .unwrap_or_else(|| match lines(stderr) {
            text if text.is_empty() => lines(stdout),
            text => text,
        })
}

/// Merges the changes of both sides since the last common version. Fields that beads has not
/// changed are ours; for all others beads wins.
pub fn merged(seen: &Item, bead: &Item, ours: &Item) -> Item {
    fn pick<T: Clone + PartialEq>(seen: &T, bead: &T, ours: &T) -> T {
        match bead == seen {
            true => ours.clone(),
            false => bead.clone(),
        }
    }
    // Status, assignee and close reason belong together.
    let state = |item: &Item| (item.status, item.assignee.clone());
    let source = match state(bead) == state(seen) {
        true => ours,
        false => bead,
    };
    Item {
        title: pick(&seen.title, &bead.title, &ours.title),
        description: pick(&seen.description, &bead.description, &ours.description),
        notes: pick(&seen.notes, &bead.notes, &ours.notes),
        kind: pick(&seen.kind, &bead.kind, &ours.kind),
        priority: pick(&seen.priority, &bead.priority, &ours.priority),
        labels: pick(&seen.labels, &bead.labels, &ours.labels),
        deps: pick(&seen.deps, &bead.deps, &ours.deps),
        parent: pick(&seen.parent, &bead.parent, &ours.parent),
        status: source.status,
        assignee: source.assignee.clone(),
        closed_at: source.closed_at.clone(),
        close_reason: source.close_reason.clone(),
        ..bead.clone()
    }
}
