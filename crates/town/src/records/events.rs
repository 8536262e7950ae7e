//! The event log and the feed: `.events.jsonl` and `.feed.jsonl` in the town.
//!
//! The log has every event; the feed has those that interest people. Events are appended under one
//! lock, with one write per file and without fsync: they are operational data, and the journal of
//! sessions holds what must survive a power failure. [`crate::records::retention`] prunes old
//! events; [`crate::records::stream`] follows new ones; [`chain`] makes changes of the log evident;
//! [`cursor`] pages through the log by the numbers of its lines; [`search`] finds events.

mod chain;
mod cursor;
mod search;

pub use chain::accept_break;
pub use cursor::{EventGap, EventPage};
pub use search::{FoundEvents, SEARCHED_AT_ONCE};
pub(crate) use search::{each_before, find_before};

use crate::base::clock::Clock;
use crate::base::lines::{Durability, Lines};
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::surroundings::{Deadline, EventFlag};
use crate::{Result, Town};
use gt_core::capability::Capability;
use gt_core::event::{Event, EventOrigin, LONGEST_SEAL, matches_pattern};
use gt_core::work::Item;
use gt_core::{Caller, Problem};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for the lock of the event files.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time by which a line may be older than the line before it, because clocks are adjusted.
const DISORDER: SignedDuration = SignedDuration::from_secs(60);

/// The events of a town.
#[derive(Clone, Debug)]
pub struct Events {
    log: Lines,
    feed: Lines,
    /// The file that holds the head of the log's chain.
    head: PathBuf,
    lock: PathBuf,
    deadline: Deadline,
    clock: Clock,
    origin: EventOrigin,
    has_noted: EventFlag,
}

/// Filter for events. All fields that are set must match.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Types, or patterns such as `session_*`. One must match.
    pub kinds: Vec<String>,
    /// An actor, or a pattern such as `gastown/*`.
    pub actor: Option<String>,
    /// Subjects: the actor of the event, or an agent or work item that the event names. One must
    /// match; empty means all.
    pub about: Vec<String>,
    pub since: Option<Timestamp>,
    /// Only events with a later number.
    pub after: Option<u64>,
    /// Only events with an earlier number.
    pub before: Option<u64>,
    /// Only events of the feed.
    pub feed: bool,
    /// Maximum number of events; the newest are returned.
    pub limit: Option<usize>,
    /// Maximum number of bytes of the log that a search with a limit reads, from the newest event
    /// back.
    pub reach: Option<u64>,
}

impl EventQuery {
    /// Returns whether an event matches, apart from the limit.
    pub fn matches(&self, event: &Event) -> bool {
        let is_kind =
            self.kinds.is_empty() || self.kinds.iter().any(|k| matches_pattern(k, &event.kind));
        let is_actor = self
            .actor
            .as_ref()
            .is_none_or(|a| matches_pattern(a, &event.actor));
        let is_about = self.about.is_empty() || self.about.iter().any(|it| event.is_about(it));
        let is_recent = self
            .since
            .is_none_or(|since| time_of(event).is_some_and(|at| at >= since));
        is_kind
            && is_actor
            && is_about
            && is_recent
            && self
                .after
                .is_none_or(|after| event.seq.is_some_and(|seq| seq > after))
            && self
                .before
                .is_none_or(|before| event.seq.is_none_or(|seq| seq < before))
            && (!self.feed || event.visibility.is_in_feed())
    }
}

impl Events {
    pub fn of(town: &Town) -> Self {
        Events {
            deadline: town.deadline(),
            clock: town.clock().clone(),
            origin: origin(town),
            has_noted: town.around().has_noted.clone(),
            ..Self::in_folder(town.root())
        }
    }

    /// Returns the events of the town with this root.
    pub(crate) fn in_folder(root: &Path) -> Self {
        Events {
            log: Lines::at(root.join(".events.jsonl")),
            feed: Lines::at(root.join(".feed.jsonl")),
            head: root.join(".runtime/events/head"),
            lock: root.join(".runtime/locks/events.lock"),
            deadline: Deadline::default(),
            clock: Clock::default(),
            origin: EventOrigin::default(),
            has_noted: EventFlag::default(),
        }
    }

    pub(crate) fn log(&self) -> &Lines {
        &self.log
    }

    pub(crate) fn feed(&self) -> &Lines {
        &self.feed
    }

    /// Takes the lock of both files.
    pub(crate) fn lock(&self) -> Result<FileLock> {
        FileLock::take(&self.lock, self.deadline.at_most(TIMEOUT))
    }

    /// Appends events. Events without a time get the current time, taken under the lock, so that
    /// the lines are in chronological order.
    pub fn append(&self, mut events: Vec<Event>) -> Result<Vec<Event>> {
        let _lock = self.lock()?;
        let now = self.clock.text();
        let (mut lines, mut feed) = (Vec::new(), Vec::new());
        for event in &mut events {
            event.set_origin(&self.origin);
            event.seq = None;
            if event.ts.is_empty() {
                event.ts.clone_from(&now);
            }
            let line = line(event)?;
            if event.visibility.is_in_feed() {
                feed.extend_from_slice(&line);
                feed.push(b'\n');
            }
            lines.push(line);
        }
        let mut chain = None;
        self.log
            .append_after(LONGEST_SEAL, Durability::InSystem, |end| {
                let chain = chain.insert(self.open_chain(end)?);
                let seal = |(line, event): (&Vec<u8>, &mut Event)| {
                    let sealed = chain.head.seal(line);
                    event.seq = Some(chain.head.seq);
                    sealed
                };
                Ok(lines.iter().zip(&mut events).flat_map(seal).collect())
            })?;
        if let Some(chain) = chain {
            self.store_head(&chain);
        }
        self.has_noted.set();
        if !feed.is_empty() {
            self.feed.append(&feed, Durability::InSystem)?;
        }
        Ok(events)
    }

    /// Appends events about a completed action. A failure is logged and does not undo the action:
    /// the journal is the source of truth.
    pub fn note(&self, events: Vec<Event>) {
        if !events.is_empty() {
            let kinds: Vec<String> = events.iter().map(|event| event.kind.clone()).collect();
            self.append(events)
                .or_warn(format_args!("no event of {}", kinds.join(", ")));
        }
    }

    /// Returns the matching events, oldest first. Unreadable lines are skipped; `gt events stats`
    /// counts them.
    pub fn find(&self, query: &EventQuery) -> Result<Vec<Event>> {
        self.search(query).map(|found| found.events)
    }

    /// Returns the matching events like [`find`](Self::find), and where a search with a
    /// [reach](EventQuery::reach) has ended.
    pub fn search(&self, query: &EventQuery) -> Result<FoundEvents> {
        let lines = self.lines_of(query);
        match lines.open()? {
            Some(file) => {
                let end = file.metadata().map_or(0, |meta| meta.len());
                find_before(lines.path(), &file, end, query)
            }
            None => Ok(FoundEvents::default()),
        }
    }

    /// Passes the matching events to `give`, oldest first, without holding them in memory. The limit
    /// of the query does not count.
    pub fn each(
        &self,
        query: &EventQuery,
        give: &mut dyn FnMut(Event) -> Result<()>,
    ) -> Result<()> {
        let lines = self.lines_of(query);
        match lines.open()? {
            Some(file) => {
                let end = file.metadata().map_or(0, |meta| meta.len());
                each_before(lines.path(), &file, end, query, give)
            }
            None => Ok(()),
        }
    }

    fn lines_of(&self, query: &EventQuery) -> &Lines {
        if query.feed { &self.feed } else { &self.log }
    }
}

/// Returns the origin of the events that this process writes. Only the binary names its command.
fn origin(town: &Town) -> EventOrigin {
    match town.around().command.as_str() {
        "" => EventOrigin::default(),
        command => EventOrigin {
            caller: Some(town.caller().as_str().to_owned()),
            command: Some(command.to_owned()),
            pid: Some(std::process::id()),
        },
    }
}

/// Returns a new event about an action of the caller, marked as caused by this command.
pub(crate) fn by_command(town: &Town, kind: &str) -> Event {
    town.event(kind).by_command()
}

/// Returns a new event about a call of the HTTP API by the caller.
pub fn by_api(town: &Town) -> Event {
    by_command(town, "api_call")
}

/// Creates the log if there is none: the monitor watches only a log that exists.
pub fn create_log(town: &Town) -> Result<()> {
    let events = Events::of(town);
    let _lock = events.lock()?;
    events.log.append(b"", Durability::InSystem)
}

/// Returns a new event about an action of the caller on an agent, marked as caused by this command.
pub fn about(town: &Town, kind: &str, agent: &str) -> Event {
    town.event_at(kind, agent).by_command()
}

/// Records that the caller has changed work items.
pub fn note_items(town: &Town, kind: &str, items: &[Item], fields: &[&str]) {
    let event = |item: &Item| {
        let event = match &item.assignee {
            Some(agent) => about(town, kind, agent),
            None => by_command(town, kind),
        };
        let fields = (!fields.is_empty()).then(|| fields.join(", "));
        event
            .with("bead", item.id.to_string())
            .with("fields", fields)
    };
    Events::of(town).note(items.iter().map(event).collect());
}

/// Records that a command of the caller was denied.
pub fn note_denied(town: &Town, problem: &Problem) {
    let capability = town.around().capability.map(Capability::as_str);
    let event = by_command(town, "denied")
        .with("capability", capability)
        .with("reason", problem.message());
    Events::of(town).note(vec![event]);
}

/// Records a command that has written no event of its own, unless `gt` itself called it. `names`
/// are those of its arguments.
pub fn note_command(town: &Town, names: &str, has_failed: bool) {
    if town.caller() == Caller::Gt {
        return;
    }
    let names = Some(names).filter(|names| !names.is_empty());
    let event = by_command(town, "command")
        .with("ran", town.around().command.as_str())
        .with("names", names)
        .with("failed", has_failed.then_some(true));
    Events::of(town).note(vec![event]);
}

/// Records that the sandbox of an agent has refused a connection.
pub fn note_sandbox_denial(town: &Town, agent: &str, reason: &str) {
    let event = town.event("denied");
    let event = Event {
        actor: agent.to_owned(),
        ..event
    };
    Events::of(town).note(vec![event.with("reason", reason)]);
}

/// Serializes an event, without the fields of the chain and without a newline.
pub(crate) fn line(event: &Event) -> Result<Vec<u8>> {
    serde_json::to_vec(event)
        .map_err(|error| Problem::failed("cannot write an event").caused_by(error))
}

/// Parses a line of the log. Returns `None` for a line that a crash has cut off or damaged.
pub(crate) fn read(line: &[u8]) -> Option<Event> {
    serde_json::from_slice(line).ok()
}

/// The time and the type of an event, read without its other fields: retention reads every line.
#[derive(Deserialize)]
pub(crate) struct EventStamp<'a> {
    #[serde(borrow)]
    ts: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'a, str>,
    // An event without these is damaged.
    #[serde(rename = "source", borrow)]
    _source: Cow<'a, str>,
    #[serde(rename = "actor", borrow)]
    _actor: Cow<'a, str>,
}

impl EventStamp<'_> {
    /// Parses a line like [`read`].
    pub(crate) fn read(line: &[u8]) -> Option<EventStamp<'_>> {
        // Retention counts damaged lines.
        serde_json::from_slice(line).ok()
    }

    pub(crate) fn text(&self) -> &str {
        &self.ts
    }

    pub(crate) fn time(&self) -> Option<Timestamp> {
        self.ts.parse().ok()
    }
}

/// Returns the time of an event.
pub fn time_of(event: &Event) -> Option<Timestamp> {
    event.ts.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::warnings_of;

    fn kinds(events: &[Event]) -> Vec<&str> {
        events.iter().map(|event| event.kind.as_str()).collect()
    }

    #[test]
    fn events_are_written_and_found() {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::in_folder(folder.path());
        assert_eq!(events.find(&EventQuery::default()).unwrap(), []);
        let mut old = Event::emitted("session_start", "mayor");
        old.ts = "2020-01-01T00:00:00.000Z".into();
        events.append(vec![old]).unwrap();
        let new = ["session_end", "patrol_begun", "nudge"].map(|kind| Event::emitted(kind, "a/b"));
        events.append(new.to_vec()).unwrap();
        let find = |query: EventQuery| events.find(&query).unwrap();
        assert_eq!(
            kinds(&find(EventQuery::default())),
            ["session_start", "session_end", "patrol_begun", "nudge"]
        );
        let of_kind = EventQuery {
            kinds: vec!["session_*".into(), "nudge".into()],
            ..EventQuery::default()
        };
        assert_eq!(find(of_kind).len(), 3);
        let recent = EventQuery {
            since: Some(Timestamp::now() - SignedDuration::from_hours(1)),
            limit: Some(2),
            ..EventQuery::default()
        };
        assert_eq!(kinds(&find(recent)), ["patrol_begun", "nudge"]);
        let of_actor = EventQuery {
            actor: Some("a/*".into()),
            feed: true,
            ..EventQuery::default()
        };
        assert_eq!(kinds(&find(of_actor)), ["session_end", "nudge"]);
        let feed = std::fs::read_to_string(folder.path().join(".feed.jsonl")).unwrap();
        assert!(!feed.contains("patrol_begun"), "{feed}");
    }

    #[test]
    fn incomplete_and_damaged_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::in_folder(folder.path());
        events.append(vec![Event::emitted("one", "a")]).unwrap();
        let path = folder.path().join(".events.jsonl");
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"not json\n{\"ts\":1}\n\xff\xfe\n{\"ts\":\"20");
        std::fs::write(&path, text).unwrap();
        assert_eq!(
            kinds(&events.find(&EventQuery::default()).unwrap()),
            ["one"]
        );
        events.append(vec![Event::emitted("two", "a")]).unwrap();
        let found = events.find(&EventQuery::default()).unwrap();
        assert_eq!(kinds(&found), ["one", "two"]);
        let torn = std::fs::read(folder.path().join(".events.torn")).unwrap();
        assert_eq!(torn, b"{\"ts\":\"20\n");
    }

    #[test]
    fn event_that_cannot_be_written_is_logged() {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::in_folder(folder.path());
        std::fs::create_dir(folder.path().join(".events.jsonl")).unwrap();
        let ((), warnings) = warnings_of(|| events.note(vec![Event::emitted("one", "a")]));
        assert!(warnings[0].starts_with("no event of one: "), "{warnings:?}");
    }
}
