//! Searches the event log: backwards from its end for the newest matches, or forwards for all.
//!
//! A log may have gigabytes. The beginning of a period is found by bisection, because the lines are
//! in chronological order; a line is parsed only if it has the words of the query; and a search that
//! need not be complete has a maximum reach.

use super::{DISORDER, EventQuery, read, time_of};
use crate::Result;
use crate::base::files;
use crate::base::lines::{Backwards, each_line_in, first_late, whole_length};
use gt_core::event::{ChainHead, Event};
use memchr::memmem::Finder;
use std::fs::File;
use std::path::Path;

/// Bytes of the log that a search for people reads at once: some 200,000 events.
pub const SEARCHED_AT_ONCE: u64 = 64 << 20;

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundEvents {
    /// The oldest first.
    pub events: Vec<Event>,
    /// The search has reached its limit of bytes: older events may match too.
    pub is_partial: bool,
    /// The number of the oldest event that a partial search has read. Lines of the feed have none.
    pub searched_from: Option<u64>,
}

/// Returns the matching events of an open file before a position, oldest first. Reads backwards
/// from there, and only as far as needed.
pub(crate) fn find_before(
    path: &Path,
    file: &File,
    end: u64,
    query: &EventQuery,
) -> Result<FoundEvents> {
    let cannot = |error| files::io_problem("read", path, &error);
    let (start, end) = bounds(file, end, query).map_err(cannot)?;
    let floor = query
        .reach
        .map_or(start, |reach| start.max(end.saturating_sub(reach)));
    let words = QueryWords::of(query);
    let mut lines = Backwards::before(file, end).map_err(cannot)?;
    let mut found = FoundEvents::default();
    let mut oldest = Vec::new();
    while query.limit.is_none_or(|limit| found.events.len() < limit) {
        let Some((at, line)) = lines.next_line().map_err(cannot)? else {
            break;
        };
        if at < start {
            break;
        }
        if at < floor {
            found.is_partial = true;
            found.searched_from = ChainHead::at_end(&oldest).map(|head| head.seq);
            break;
        }
        if words.may_match(&line)
            && let Some(event) = read(&line)
            && query.matches(&event)
        {
            found.events.push(event);
        }
        oldest = line;
        oldest.push(b'\n');
    }
    found.events.reverse();
    Ok(found)
}

/// Passes the matching events of an open file before a position to `give`, oldest first. The limit
/// of the query does not count.
pub(crate) fn each_before(
    path: &Path,
    file: &File,
    end: u64,
    query: &EventQuery,
    give: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    let cannot = |error| files::io_problem("read", path, &error);
    let (start, end) = bounds(file, end, query).map_err(cannot)?;
    let words = QueryWords::of(query);
    each_line_in(path, file, start, end, |line| {
        if words.may_match(line)
            && let Some(event) = read(line)
            && query.matches(&event)
        {
            give(event)?;
        }
        Ok(())
    })
}

/// Returns the part of a file that the events of a query can be in.
fn bounds(file: &File, end: u64, query: &EventQuery) -> std::io::Result<(u64, u64)> {
    let mut end = whole_length(file, end)?;
    if let Some(before) = query.before {
        end = first_with_number(file, end, before)?;
    }
    let mut start = 0;
    if let Some(after) = query.after {
        start = first_with_number(file, end, after.saturating_add(1))?;
    }
    if let Some(since) = query.since {
        let earliest = since.checked_sub(DISORDER).unwrap_or(since);
        let is_late = |line: &[u8]| Some(time_of(&read(line)?)? >= earliest);
        start = start.max(first_late(file, end, is_late)?);
    }
    Ok((start, end))
}

/// Returns the start of the first line with this number or a later one.
pub(super) fn first_with_number(file: &File, end: u64, number: u64) -> std::io::Result<u64> {
    first_late(file, end, |line| {
        Some(ChainHead::at_end(line)?.seq >= number)
    })
}

/// Words of which a matching line must have at least one of each group. Finding them is much faster
/// than parsing the line.
struct QueryWords(Vec<Vec<Finder<'static>>>);

impl QueryWords {
    fn of(query: &EventQuery) -> Self {
        let actor: Vec<String> = query.actor.iter().cloned().collect();
        let groups = [&query.kinds, &query.about, &actor];
        let groups = groups.into_iter().filter(|names| !names.is_empty());
        // A name that JSON or another writer may write in several ways is no word, nor is a pattern.
        let is_plain = |name: &String| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            name.chars().all(is_plain)
        };
        let groups = groups.filter(|names| names.iter().all(is_plain));
        let finder = |name: &String| Finder::new(&format!("\"{name}\"")).into_owned();
        QueryWords(
            groups
                .map(|names| names.iter().map(finder).collect())
                .collect(),
        )
    }

    fn may_match(&self, line: &[u8]) -> bool {
        let has_one = |words: &Vec<Finder<'_>>| words.iter().any(|word| word.find(line).is_some());
        self.0.iter().all(has_one)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Events;
    use super::*;
    use jiff::{SignedDuration, Timestamp};

    const LATEST: i64 = 1_790_000_000;

    /// A log with one event in each second, until [`LATEST`].
    fn log_of(count: i64) -> (tempfile::TempDir, Events) {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::in_folder(folder.path());
        let all = (1..=count).map(|at| Event {
            ts: format!(
                "{:.3}",
                Timestamp::from_second(LATEST - count + at).unwrap()
            ),
            ..Event::emitted(if at % 1000 == 7 { "rare" } else { "common" }, "a/b").with("n", at)
        });
        events.append(all.collect()).unwrap();
        (folder, events)
    }

    fn numbers(events: &[Event]) -> Vec<u64> {
        events.iter().filter_map(|event| event.seq).collect()
    }

    #[test]
    fn search_ends_at_its_reach_and_continues_before_it() {
        let (_folder, events) = log_of(20_000);
        let mut query = EventQuery {
            kinds: vec!["rare".to_owned()],
            limit: Some(100),
            reach: Some(1 << 20),
            ..EventQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = events.search(&query).unwrap();
            found.splice(0..0, numbers(&page.events));
            assert_eq!(page.is_partial, page.searched_from.is_some());
            match page.searched_from {
                Some(from) => query.before = Some(from),
                None => break,
            }
            assert!(found.len() < 20, "the first page does not have all");
        }
        let all: Vec<u64> = (0..20).map(|at| at * 1000 + 7).collect();
        assert_eq!(found, all);
    }

    #[test]
    fn reached_limit_is_no_incomplete_search() {
        let (_folder, events) = log_of(20_000);
        let query = EventQuery {
            limit: Some(3),
            reach: Some(1 << 20),
            ..EventQuery::default()
        };
        let found = events.search(&query).unwrap();
        assert_eq!(numbers(&found.events), [19_998, 19_999, 20_000]);
        assert!(!found.is_partial);
    }

    #[test]
    fn periods_begin_and_end_where_they_should() {
        let (_folder, events) = log_of(5_000);
        let mut seen = Vec::new();
        let query = EventQuery {
            since: Some(Timestamp::from_second(LATEST - 9).unwrap()),
            after: Some(4_992),
            before: Some(4_999),
            ..EventQuery::default()
        };
        let mut give = |event: Event| {
            seen.push(event);
            Ok(())
        };
        events.each(&query, &mut give).unwrap();
        let expected: Vec<u64> = (4_993..4_999).collect();
        assert_eq!(numbers(&seen), expected);
        assert_eq!(numbers(&events.find(&query).unwrap()), expected);
        let all = EventQuery {
            since: Some(Timestamp::from_second(LATEST).unwrap() - SignedDuration::from_hours(9)),
            ..EventQuery::default()
        };
        assert_eq!(events.find(&all).unwrap().len(), 5_000);
    }

    #[test]
    fn names_in_any_form_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::in_folder(folder.path());
        let all = ["a/b", "a-b", "ü", "q\"q"].map(|name| Event::emitted("x", name));
        events.append(all.to_vec()).unwrap();
        for name in ["a/b", "a-b", "ü", "q\"q"] {
            let query = EventQuery {
                actor: Some(name.to_owned()),
                about: vec![name.to_owned()],
                kinds: vec!["x".to_owned()],
                ..EventQuery::default()
            };
            assert_eq!(events.find(&query).unwrap().len(), 1, "{name}");
        }
        let pattern = EventQuery {
            actor: Some("a*".to_owned()),
            ..EventQuery::default()
        };
        assert_eq!(events.find(&pattern).unwrap().len(), 2);
    }
}
