//! Events: what happened in a town, one line each.
//!
//! Events are operational data: they serve live monitoring and a history of a few days, and they
//! decay ([`Decay`]). Permanent data is in the session records. The table of types ([`KINDS`])
//! holds the visibility, the retention and the text of each type. Types that are not in the table
//! are valid too.

mod chain;
mod state;
mod table;
mod text;

pub use chain::{
    ChainBreak, ChainHead, ChainReport, ChainVerifier, FileHash, LONGEST_SEAL, StoredHead,
};
pub use state::{asks_another, resumed, state_event};
pub use table::{EventKind, KINDS, OTHER, kind_of};

use crate::state::StateSource;
use crate::{Caller, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum size of a payload, in bytes.
pub const LARGEST_PAYLOAD: usize = 64 * 1024;
const LONGEST_TYPE: usize = 64;

/// Payload field that names the source of an event. Its value is `COMMAND` if the actor ran a
/// command.
const VIA: &str = "via";
const COMMAND: &str = "command";

/// The audience of an event. The log holds all events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Only the log.
    Audit,
    /// The feed.
    Feed,
    #[default]
    Both,
}

impl Visibility {
    pub fn is_in_feed(self) -> bool {
        self != Visibility::Audit
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Visibility::Audit => "audit",
            Visibility::Feed => "feed",
            Visibility::Both => "both",
        }
    }
}

/// One event, as a line of the log holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// RFC 3339, in UTC, with milliseconds. Empty until the event is written.
    pub ts: String,
    pub source: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// The actor: a person by login name, an agent by address, or `gt` for an automatic action. The
    /// actor of an agent's sessions and turns is that agent.
    pub actor: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub payload: Map<String, Value>,
    #[serde(default)]
    pub visibility: Visibility,
    /// The process that wrote the event.
    #[serde(flatten)]
    pub origin: EventOrigin,
    /// The number of its line in the log, from 1: the cursor of clients. `None` until the event is
    /// written, and in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// The process that wrote an event. Empty in events of earlier versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventOrigin {
    /// The caller of the command, if it is not the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The command without its arguments, which may be secret: `gt answer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl Event {
    /// Creates an event of this type, caused by this caller. The table sets its visibility.
    pub fn new(kind: &str, actor: impl Into<Caller>) -> Self {
        Self::emitted(kind, actor.into().as_str())
    }

    /// Creates an event with an actor that is given from outside (`gt events emit`).
    pub fn emitted(kind: &str, actor: &str) -> Self {
        Event {
            ts: String::new(),
            source: "gt".to_owned(),
            kind: kind.to_owned(),
            actor: actor.to_owned(),
            payload: Map::new(),
            visibility: kind_of(kind).visibility,
            origin: EventOrigin::default(),
            seq: None,
        }
    }

    /// Adds a field. A null value is omitted.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if !value.is_null() {
            self.payload.insert(name.to_owned(), value);
        }
        self
    }

    /// Sets the source from which the event is known.
    #[must_use]
    pub fn known_by(self, source: StateSource) -> Self {
        self.with(VIA, source.as_str())
    }

    /// Marks the event as caused by a command of its actor.
    #[must_use]
    pub fn by_command(self) -> Self {
        self.with(VIA, COMMAND)
    }

    /// Marks the event as a side effect of another action of `gt`.
    #[must_use]
    pub fn by_gt(self) -> Self {
        self.known_by(StateSource::Gt)
    }

    /// Adds the names of files, up to a limit, and the number of the others.
    #[must_use]
    pub fn with_files(self, files: &[String]) -> Self {
        const MAX: usize = 20;
        if files.is_empty() {
            return self;
        }
        let more = files.len().saturating_sub(MAX);
        let named: Vec<Value> = files.iter().take(MAX).cloned().map(Value::from).collect();
        self.with("files", named)
            .with("more", (more > 0).then_some(more))
    }

    /// Sets the process that writes the event, unless it has one.
    pub fn set_origin(&mut self, origin: &EventOrigin) {
        if self.origin == EventOrigin::default() {
            self.origin = origin.clone();
            self.origin.caller = origin.caller.clone().filter(|it| *it != self.actor);
        }
    }

    /// Returns whether the event is about this agent or work item: as its actor or in its payload.
    pub fn is_about(&self, name: &str) -> bool {
        let is_it = |value: &Value| value.as_str() == Some(name);
        let names =
            |value: &Value| is_it(value) || value.as_array().is_some_and(|v| v.iter().any(is_it));
        self.actor == name || self.payload.values().any(names)
    }

    /// Describes how the event is known: the source, or the caller of the command.
    pub fn source_words(&self) -> String {
        let via = self.payload.get(VIA).and_then(Value::as_str);
        match via.filter(|via| *via != COMMAND) {
            Some(via)
                if [StateSource::Start, StateSource::Gt]
                    .map(StateSource::as_str)
                    .contains(&via) =>
            {
                "gt".to_owned()
            }
            Some(via) => via.to_owned(),
            None if self.actor == "gt" => "gt".to_owned(),
            None => format!("command by {}", self.actor),
        }
    }

    /// Validates an event that comes from outside.
    pub fn check(&self) -> Result<(), Problem> {
        let is_word = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_lowercase())
                && text
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        if !is_word(&self.kind) || self.kind.len() > LONGEST_TYPE {
            return Err(
                Problem::usage(format!("{:?} is not a valid event type", self.kind)).hint(format!(
                    "small letters, digits and _, at most {LONGEST_TYPE}: deploy_finished"
                )),
            );
        }
        if self.actor.is_empty() || self.actor.chars().any(char::is_control) {
            return Err(Problem::usage(format!(
                "{:?} is not a valid actor",
                self.actor
            )));
        }
        let size = Value::Object(self.payload.clone()).to_string().len();
        if size > LARGEST_PAYLOAD {
            return Err(Problem::usage(format!(
                "the payload has {size} bytes, and {LARGEST_PAYLOAD} are the most"
            ))
            .hint("write it to a file, and give its path"));
        }
        Ok(())
    }

    /// Returns the line for the feed.
    pub fn line(&self) -> String {
        text::render(kind_of(&self.kind).line, self, None)
    }

    /// Returns the line without its actor, for a list of events about `agent`, which becomes `it`.
    pub fn line_about(&self, agent: &str) -> String {
        let line = kind_of(&self.kind).line;
        let action = line.strip_prefix("{actor}").unwrap_or(line);
        let action = action.trim_start_matches([':', ' ']);
        text::render(action, self, Some(agent))
    }
}

/// How the value of an event decays, from 1 when it is new to 0 when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// Heartbeats and routine events of patrols.
    Rapid,
    Steady,
    /// Work, errors, escalations.
    Slow,
    /// Full value for nine tenths of its lifetime: for audits.
    Flat,
}

impl Decay {
    /// Returns the value at this fraction of the event's lifetime, and 0 after its end.
    pub fn value(self, part: f64) -> f64 {
        let part = part.max(0.0);
        if part >= 1.0 {
            return 0.0;
        }
        match self {
            Decay::Rapid => (-4.0 * part).exp2(),
            Decay::Steady => 1.0 - part,
            Decay::Slow => (-part / 0.75).exp2(),
            // Falls linearly to 0 within the last tenth.
            Decay::Flat if part < 0.9 => 1.0,
            Decay::Flat => (1.0 - part) / 0.1,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Decay::Rapid => "rapid",
            Decay::Steady => "steady",
            Decay::Slow => "slow",
            Decay::Flat => "flat",
        }
    }
}

/// How long events are kept: the table, and the overrides of a town.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Seconds by type, or by `prefix_*`.
    pub ttl: BTreeMap<String, u64>,
}

/// One row of the effective policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RetentionRule {
    #[serde(rename = "type")]
    pub pattern: String,
    pub ttl_seconds: u64,
    pub decay: Decay,
    pub visibility: Visibility,
    /// The town overrides the table.
    pub overridden: bool,
}

impl Policy {
    /// Returns the retention of this type, in seconds.
    pub fn ttl_of(&self, kind: &str) -> u64 {
        self.set_for(kind).unwrap_or(kind_of(kind).ttl_seconds)
    }

    /// Returns the town's override for a type. Its `*` applies only to types without a row.
    fn set_for(&self, kind: &str) -> Option<u64> {
        let has_row = kind_of(kind).pattern != OTHER.pattern;
        let patterns = self.ttl.keys().map(String::as_str);
        let pattern = best(patterns.filter(|p| *p != OTHER.pattern || !has_row), kind)?;
        self.ttl.get(pattern).copied()
    }

    /// Returns the value of an event of this age.
    pub fn value(&self, kind: &str, age_seconds: i64) -> f64 {
        let (age, ttl) = (age_seconds.max(0), self.ttl_of(kind));
        if self.is_expired(kind, age_seconds) {
            return 0.0;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "an age in seconds is far from where floats lose whole numbers"
        )]
        kind_of(kind).decay.value(age as f64 / ttl as f64)
    }

    pub fn is_expired(&self, kind: &str, age_seconds: i64) -> bool {
        u64::try_from(age_seconds).is_ok_and(|age| age >= self.ttl_of(kind))
    }

    /// Returns all rows: those of the table, then those that only the town has.
    pub fn rules(&self) -> Vec<RetentionRule> {
        let rows = KINDS.iter().chain([&OTHER]);
        let known: Vec<RetentionRule> = rows.map(|row| self.rule(row.pattern, row)).collect();
        let new = self
            .ttl
            .keys()
            .filter(|pattern| known.iter().all(|rule| rule.pattern != **pattern));
        let new: Vec<RetentionRule> = new
            .map(|pattern| self.rule(pattern, kind_of(pattern)))
            .collect();
        known.into_iter().chain(new).collect()
    }

    fn rule(&self, pattern: &str, row: &EventKind) -> RetentionRule {
        let set = self.set_for(pattern);
        RetentionRule {
            pattern: pattern.to_owned(),
            ttl_seconds: set.unwrap_or(row.ttl_seconds),
            decay: row.decay,
            visibility: row.visibility,
            overridden: set.is_some(),
        }
    }
}

/// Returns whether a type matches a pattern such as `session_*`.
pub fn matches_pattern(pattern: &str, kind: &str) -> bool {
    match pattern.split_once('*') {
        Some((before, after)) => {
            kind.len() >= before.len() + after.len()
                && kind.starts_with(before)
                && kind.ends_with(after)
        }
        None => pattern == kind,
    }
}

/// Returns the most specific pattern for a type: the type itself, or the longest match.
fn best<'a>(patterns: impl Iterator<Item = &'a str>, kind: &str) -> Option<&'a str> {
    patterns
        .filter(|pattern| matches_pattern(pattern, kind))
        .max_by_key(|pattern| (!pattern.contains('*'), pattern.len()))
}

#[cfg(test)]
mod tests;
