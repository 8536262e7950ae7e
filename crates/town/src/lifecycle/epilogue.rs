//! Writes the details of a session after its end: usage, commits and a timeline.
//!
//! Figures and commits go into the journal. `.sessions/<id>.json` holds larger data for sessions
//! that have any: commits with their subjects, steps and a timeline. Nothing depends on it. If a
//! process was killed before it wrote an epilogue, the next query for that session writes it.

use crate::base::callback::{self, Call};
use crate::base::files;
use crate::base::or_log::OrLog;
use crate::base::time::timestamp;
use crate::records::events::{self, Events};
use crate::records::sessions::Sessions;
use crate::records::usage;
use crate::repo::commits::{self, Commit};
use crate::{Result, Town};
use gt_core::event::Event;
use gt_core::record::Record;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::Path;

/// Writes the epilogues of these ended sessions, one journal line each. A failed epilogue is
/// retried by the next query for its session.
pub fn write(town: &Town, sessions: &Sessions, ids: &[String]) {
    let names = ids.join(", ");
    let known = sessions.in_journal(ids.iter().map(String::as_str));
    let Some(known) = known.or_warn(format_args!("no epilogue of session {names}")) else {
        return;
    };
    let records: Vec<&Record> = known.values().collect();
    let mut lines = usage::figures(town, &records);
    // Figures are written even if the details cannot be; the files of steps then stay.
    let details = details(town, sessions, &records);
    let details = details.or_warn(format_args!("no details of session {names}"));
    let told = if details.is_some() {
        records.as_slice()
    } else {
        &[]
    };
    for detail in details.unwrap_or_default() {
        match lines.iter_mut().find(|line| line.id == detail.id) {
            Some(line) => line.merge(detail),
            None => lines.push(detail),
        }
    }
    let settled = settle(sessions, told, &lines);
    if settled
        .or_warn(format_args!("no epilogue of session {names}"))
        .is_some()
    {
        records
            .iter()
            .for_each(|session| usage::forget(town, &session.id));
    }
}

/// Starts a background process that writes the epilogue of a session: it calls git, and nothing
/// waits for it. The process first ends the processes that the session left running.
pub(crate) fn write_detached(town: &Town, id: &str, leaving: Option<&str>) {
    let [internal, settle] = Call::Settle.words();
    let mut words = vec![internal, settle, id];
    words.extend(leaving.iter().flat_map(|word| ["--leaving", *word]));
    callback::start_detached(town, &words);
}

/// Writes these lines to the journal and removes the files that they were made from.
fn settle(sessions: &Sessions, records: &[&Record], lines: &[Record]) -> Result<()> {
    if !lines.is_empty() {
        sessions.record(lines)?;
    }
    for session in records {
        files::remove_if_there(sessions.step_lines(&session.id).path())?;
    }
    Ok(())
}

/// Writes the details of an ended session if they are missing, and merges them into its record. A
/// running session gets its steps so far.
pub fn complete(town: &Town, sessions: &Sessions, session: &mut Record) -> Result<()> {
    if session.outcome.is_none() {
        session.steps = Some(sessions.steps(&session.id)?).filter(|steps| !steps.is_empty());
        return Ok(());
    }
    let is_archived = sessions
        .in_journal([session.id.as_str()].into_iter())?
        .is_empty();
    if is_archived || sessions.detail(&session.id)?.is_some() {
        return Ok(());
    }
    let lines = details(town, sessions, &[session])?;
    settle(sessions, &[session], &lines)?;
    for line in lines {
        session.merge(line);
    }
    Ok(())
}

/// Writes the detail files. Returns the lines that the journal needs for them.
fn details(town: &Town, sessions: &Sessions, records: &[&Record]) -> Result<Vec<Record>> {
    let began = records
        .iter()
        .filter_map(|session| time(session.started_at.as_deref()));
    let events = match began.min() {
        Some(since) => Events::of(town).find(&events::EventQuery {
            since: Some(since),
            // Only the events of these sessions are in a timeline.
            about: records.iter().map(|session| session.id.clone()).collect(),
            ..events::EventQuery::default()
        })?,
        None => Vec::new(),
    };
    let mut lines = Vec::new();
    for session in records {
        let commits = committed(town, session);
        let timeline = timeline(session, &commits, &events);
        // The start and the end are already in the record.
        let told = sessions.steps(&session.id)?;
        let steps = if told.is_empty() {
            session.steps.clone().unwrap_or_default()
        } else {
            told
        };
        let is_rich = !commits.is_empty() || !steps.is_empty() || timeline.len() > 2;
        if !is_rich {
            continue;
        }
        let detail = json!({
            "id": session.id,
            "commits": commits.iter().map(document).collect::<Vec<Value>>(),
            "steps": steps,
            "timeline": timeline,
        });
        files::write_whole(
            &sessions.detail_path(&session.id),
            format!("{detail:#}\n").as_bytes(),
        )?;
        let hashes: Vec<String> = commits.into_iter().map(|commit| commit.hash).collect();
        let line = Record {
            commits: Some(hashes)
                .filter(|now| !now.is_empty() && Some(now) != session.commits.as_ref()),
            steps: Some(steps).filter(|now| !now.is_empty() && Some(now) != session.steps.as_ref()),
            ..Record::about(&session.id)
        };
        if line.commits.is_some() || line.steps.is_some() {
            lines.push(line);
        }
    }
    Ok(lines)
}

fn committed(town: &Town, session: &Record) -> Vec<Commit> {
    let began = time(session.started_at.as_deref());
    let ended = time(session.ended_at.as_deref());
    match (&session.cwd, began, ended) {
        (Some(dir), Some(began), Some(ended)) => commits::made_between(
            Path::new(dir),
            began.as_second(),
            ended.as_second(),
            town.around(),
        ),
        _ => Vec::new(),
    }
}

/// Returns the timeline of a session, oldest first.
fn timeline(session: &Record, commits: &[Commit], events: &[Event]) -> Vec<Value> {
    let mut entries: Vec<(String, &str, String)> = Vec::new();
    let own = |event: &&Event| event.payload.get("session_id") == Some(&json!(session.id));
    for event in events.iter().filter(own) {
        entries.push((event.ts.clone(), &event.kind, event.line()));
    }
    for commit in commits {
        let at = timestamp(commit.at);
        entries.push((at, "commit", format!("committed: {}", commit.subject)));
    }
    // Git has a resolution of seconds, so the start is forced to be first.
    entries.sort_by_key(|(at, kind, _)| (*kind != "session_start", at.clone()));
    entries
        .into_iter()
        .map(|(at, kind, text)| json!({"at": at, "type": kind, "text": text}))
        .collect()
}

fn document(commit: &Commit) -> Value {
    json!({
        "hash": commit.hash,
        "at": timestamp(commit.at),
        "subject": commit.subject,
    })
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn epilogue_that_cannot_be_written_is_logged() {
        let (_folder, town) = town();
        let journal = Sessions::of(&town).journal_path().to_owned();
        std::fs::create_dir_all(&journal).unwrap();
        let id = "01a1e1f0-8c1b-7c02-9d3e-5f0d8a6a2f11".to_owned();
        let ((), warnings) = warnings_of(|| write(&town, &Sessions::of(&town), &[id]));
        assert!(
            warnings[0].starts_with("no epilogue of session 01a1e1f0"),
            "{warnings:?}"
        );
    }
}
