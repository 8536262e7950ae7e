//! Pages of the event log, by the numbers of its lines.
//!
//! The number of a line ([`super::chain`]) is the cursor of all clients: it only grows, and neither
//! a prune nor a restart changes it. Numbers are assigned without holes, so a hole shows that events
//! were pruned; a page reports it as an [`EventGap`].

use super::search::first_with_number;
use super::{EventQuery, Events, find_before, read};
use crate::Result;
use crate::base::files;
use crate::base::lines::{Backwards, each_line_in, whole_length};
use gt_core::Problem;
use gt_core::event::{ChainHead, Event, StoredHead};
use serde::Serialize;
use std::fs::File;

/// A part of the log, the oldest event first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventPage {
    /// The events that match the query.
    pub events: Vec<Event>,
    /// The cursor of the next page.
    pub next: u64,
    /// Events after the cursor of the request that are no longer in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<EventGap>,
    /// Whether the log has later events.
    pub more: bool,
}

/// Events that a client cannot get any more: it must read its state anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventGap {
    /// The cursor after which events are missing.
    pub after: u64,
    /// The number of missing events. Absent if the log is not the one that the cursor is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
}

/// Why reading of a page ends before the end of the log.
enum PageEnd {
    Full,
    Failed(Problem),
}

impl From<Problem> for PageEnd {
    fn from(problem: Problem) -> Self {
        PageEnd::Failed(problem)
    }
}

impl Events {
    /// Returns the matching events after a cursor, at most `limit`; without a cursor, the newest.
    pub fn page(&self, after: Option<u64>, limit: usize, query: &EventQuery) -> Result<EventPage> {
        let Some(mut file) = self.log().open()? else {
            return self.empty_page(after.unwrap_or_default(), 0);
        };
        let cannot = |error| files::io_problem("read", self.log().path(), &error);
        let length = file.metadata().map_err(cannot)?.len();
        let end = whole_length(&file, length).map_err(cannot)?;
        let start = start_after(&file, end, after).map_err(cannot)?;
        let Some(after) = after else {
            let query = EventQuery {
                limit: Some(limit),
                ..query.clone()
            };
            return Ok(EventPage {
                events: find_before(self.log().path(), &file, end, &query)?.events,
                next: start.last,
                ..EventPage::default()
            });
        };
        if start.last <= after {
            return self.empty_page(after, start.last);
        }
        let mut page = EventPage {
            next: after,
            ..EventPage::default()
        };
        let mut missing = 0;
        let done = self.log().read_file(&mut file, start.offset, |line| {
            let Some(head) = ChainHead::at_end(line) else {
                return Ok(());
            };
            if page.events.len() >= limit {
                page.more = true;
                return Err(PageEnd::Full);
            }
            missing += head.seq.saturating_sub(page.next + 1);
            page.next = page.next.max(head.seq);
            page.events
                .extend(read(line).filter(|event| query.matches(event)));
            Ok(())
        });
        if let Err(PageEnd::Failed(problem)) = done {
            return Err(problem);
        }
        page.gap = (missing > 0).then_some(EventGap {
            after,
            missing: Some(missing),
        });
        Ok(page)
    }

    /// Returns the gap after a cursor, if events are missing.
    pub fn gap_after(&self, after: u64) -> Result<Option<EventGap>> {
        let Some(file) = self.log().open()? else {
            return Ok(self.empty_page(after, 0)?.gap);
        };
        let path = self.log().path();
        let cannot = |error| files::io_problem("read", path, &error);
        let length = file.metadata().map_err(cannot)?.len();
        let end = whole_length(&file, length).map_err(cannot)?;
        let start = start_after(&file, end, Some(after)).map_err(cannot)?;
        if start.last <= after {
            return Ok(self.empty_page(after, start.last)?.gap);
        }
        let (mut missing, mut last) = (0, after);
        each_line_in(path, &file, start.offset, end, |line| {
            if let Some(head) = ChainHead::at_end(line) {
                missing += head.seq.saturating_sub(last + 1);
                last = last.max(head.seq);
            }
            Ok::<(), Problem>(())
        })?;
        Ok((missing > 0).then_some(EventGap {
            after,
            missing: Some(missing),
        }))
    }

    /// Returns the number of the newest event; 0 without one.
    pub fn newest(&self) -> Result<u64> {
        Ok(self.page(None, 0, &EventQuery::default())?.next)
    }

    /// Returns the page after a cursor with no later event in the log, which ends with `last`.
    fn empty_page(&self, after: u64, last: u64) -> Result<EventPage> {
        let stored = match self.stored_head()? {
            StoredHead::Present(head) => head.seq,
            StoredHead::Missing | StoredHead::Damaged => 0,
        };
        // The head may be older than the log, and lines may be missing from the log.
        let newest = stored.max(last);
        let gap = (after > newest).then_some(EventGap {
            after,
            missing: None,
        });
        Ok(EventPage {
            next: after.min(newest),
            gap,
            ..EventPage::default()
        })
    }
}

/// The place in a log at which a page begins.
#[derive(Default)]
struct PageStart {
    offset: u64,
    /// The number of the last line.
    last: u64,
}

/// Finds the first line with a later number. Without a cursor, only the number of the last line.
fn start_after(file: &File, end: u64, after: Option<u64>) -> std::io::Result<PageStart> {
    let mut start = PageStart {
        offset: end,
        last: 0,
    };
    let mut lines = Backwards::before(file, end)?;
    while let Some((_, mut line)) = lines.next_line()? {
        line.push(b'\n');
        if let Some(head) = ChainHead::at_end(&line) {
            start.last = head.seq;
            break;
        }
    }
    if let Some(after) = after.filter(|after| *after < start.last) {
        start.offset = first_with_number(file, end, after + 1)?;
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::settings::KrcSettings;
    use crate::records::retention::EventRetention;

    fn kinds(page: &EventPage) -> Vec<&str> {
        page.events
            .iter()
            .map(|event| event.kind.as_str())
            .collect()
    }

    fn log_of(count: usize) -> (tempfile::TempDir, Events) {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::in_folder(folder.path());
        let all = (1..=count).map(|at| Event::emitted(&format!("e{at}"), "a"));
        events.append(all.collect()).unwrap();
        (folder, events)
    }

    #[test]
    fn pages_follow_each_other_without_loss_or_duplicates() {
        let (_folder, events) = log_of(7);
        let any = EventQuery::default();
        let mut after = 0;
        let mut found = Vec::new();
        loop {
            let page = events.page(Some(after), 3, &any).unwrap();
            assert_eq!(page.gap, None);
            found.extend(page.events.iter().filter_map(|event| event.seq));
            after = page.next;
            if !page.more {
                break;
            }
        }
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 7]);
        let end = events.page(Some(7), 3, &any).unwrap();
        assert_eq!((end.events.len(), end.next, end.gap), (0, 7, None));
        let newest = events.page(None, 2, &any).unwrap();
        assert_eq!((kinds(&newest), newest.next), (vec!["e6", "e7"], 7));
    }

    #[test]
    fn gap_is_counted_over_the_rest_of_the_log() {
        let (folder, events) = log_of(9);
        let path = folder.path().join(".events.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let kept = |at: &usize| ![2, 3, 6].contains(at);
        let lines = text.lines().enumerate().filter(|(at, _)| kept(at));
        let text: String = lines.map(|(_, line)| format!("{line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let missing = |after| {
            let gap = events.gap_after(after).unwrap();
            gap.map(|gap| (gap.after, gap.missing))
        };
        assert_eq!(missing(0), Some((0, Some(3))));
        assert_eq!(missing(3), Some((3, Some(2))));
        assert_eq!(missing(7), None);
        assert_eq!(missing(9), None);
        assert_eq!(missing(10), Some((10, None)));
    }

    #[test]
    fn filtered_page_moves_the_cursor_past_other_events() {
        let (_folder, events) = log_of(5);
        let only = EventQuery {
            kinds: vec!["e2".to_owned()],
            ..EventQuery::default()
        };
        let page = events.page(Some(0), 10, &only).unwrap();
        assert_eq!((kinds(&page), page.next, page.more), (vec!["e2"], 5, false));
        assert_eq!(page.gap, None, "filtered events are not missing");
    }

    #[test]
    fn pruned_events_are_a_gap() {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::in_folder(folder.path());
        let old = |kind: &str| Event {
            ts: "2020-01-01T00:00:00.000Z".to_owned(),
            ..Event::emitted(kind, "a")
        };
        let all = vec![old("one"), old("two"), Event::emitted("three", "a")];
        events.append(all).unwrap();
        let settings = KrcSettings {
            minimum_kept: 0,
            ..KrcSettings::default()
        };
        let retention = EventRetention::new(folder.path().to_owned(), settings);
        retention.prune(false).unwrap();
        let page = events.page(Some(1), 10, &EventQuery::default()).unwrap();
        assert_eq!(kinds(&page), ["three", "krc_prune"]);
        let gap = EventGap {
            after: 1,
            missing: Some(1),
        };
        assert_eq!((page.gap, page.next), (Some(gap), 4));
        let later = events.page(Some(2), 10, &EventQuery::default()).unwrap();
        assert_eq!(later.gap, None);
    }

    #[test]
    fn cursor_of_another_log_is_a_gap() {
        let (_folder, events) = log_of(2);
        let page = events.page(Some(9), 10, &EventQuery::default()).unwrap();
        let gap = EventGap {
            after: 9,
            missing: None,
        };
        assert_eq!((page.gap, page.next, page.events.len()), (Some(gap), 2, 0));
        let empty = tempfile::tempdir().unwrap();
        let page = Events::in_folder(empty.path())
            .page(Some(0), 10, &EventQuery::default())
            .unwrap();
        assert_eq!(page, EventPage::default());
    }
}
