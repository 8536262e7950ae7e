//! What is written down after a life has ended: what it took, what it committed, and
//! when what happened.
//!
//! Figures and commits go into the journal. `.sessions/<id>.json` holds what is too much
//! for it: commits with their subjects, steps and a timeline, for lives that have any
//! of them. Nothing depends on it, and whoever asks for a life whose epilogue was never
//! written, because a process was killed, has it written then.

use crate::commits::{self, Commit};
use crate::events::{self, Events};
use crate::sessions::Sessions;
use crate::when::timestamp;
use crate::{Result, Town, callback, files, usage};
use gt_core::event::Event;
use gt_core::record::Record;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::Path;

/// Writes the epilogues of these lives, which have ended, all in one line each. What
/// fails is left for whoever asks for that life.
pub fn write(town: &Town, sessions: &Sessions, ids: &[String]) {
    let Ok(known) = sessions.in_journal(ids.iter().map(String::as_str)) else {
        return;
    };
    let lives: Vec<&Record> = known.values().collect();
    let mut lines = usage::figures(town, &lives);
    // Figures are worth writing where the rest cannot be told; its steps stay then.
    let details = details(town, sessions, &lives);
    let told = if details.is_ok() {
        lives.as_slice()
    } else {
        &[]
    };
    for detail in details.unwrap_or_default() {
        match lines.iter_mut().find(|line| line.id == detail.id) {
            Some(line) => line.merge(detail),
            None => lines.push(detail),
        }
    }
    if settle(sessions, told, &lines).is_ok() {
        lives.iter().for_each(|life| usage::forget(town, &life.id));
    }
}

/// Has the epilogue of a life written while whoever ended it goes on: it asks git, and
/// nothing depends on it. What it has left running is ended before.
pub(crate) fn write_apart(town: &Town, id: &str, leaving: Option<&str>) {
    let mut words = vec!["sync", "--settle", id];
    words.extend(leaving.iter().flat_map(|word| ["--leaving", *word]));
    callback::apart(town, &words);
}

/// Writes these lines; what they were made from is not needed any more then.
fn settle(sessions: &Sessions, lives: &[&Record], lines: &[Record]) -> Result<()> {
    if !lines.is_empty() {
        sessions.record(lines)?;
    }
    for life in lives {
        files::remove_if_there(sessions.step_lines(&life.id).path())?;
    }
    Ok(())
}

/// The same for one whose record is at hand, which gets what is known of it beside the
/// journal; of a life that goes on its steps so far.
pub fn complete(town: &Town, sessions: &Sessions, life: &mut Record) -> Result<()> {
    if life.outcome.is_none() {
        life.steps = Some(sessions.steps(&life.id)?).filter(|steps| !steps.is_empty());
        return Ok(());
    }
    let is_archived = sessions
        .in_journal([life.id.as_str()].into_iter())?
        .is_empty();
    if is_archived || sessions.detail(&life.id)?.is_some() {
        return Ok(());
    }
    let lines = details(town, sessions, &[life])?;
    settle(sessions, &[life], &lines)?;
    for line in lines {
        life.merge(line);
    }
    Ok(())
}

/// Writes the files of details, and gives the lines that the journal needs for them.
fn details(town: &Town, sessions: &Sessions, lives: &[&Record]) -> Result<Vec<Record>> {
    let began = lives
        .iter()
        .filter_map(|life| time(life.started_at.as_deref()));
    let events = match began.min() {
        Some(since) => Events::of(town).find(&events::Query {
            since: Some(since),
            ..events::Query::default()
        })?,
        None => Vec::new(),
    };
    let mut lines = Vec::new();
    for life in lives {
        let commits = committed(town, life);
        let timeline = timeline(life, &commits, &events);
        // A beginning and an end are in the record already.
        let told = sessions.steps(&life.id)?;
        let steps = if told.is_empty() {
            life.steps.clone().unwrap_or_default()
        } else {
            told
        };
        let is_rich = !commits.is_empty() || !steps.is_empty() || timeline.len() > 2;
        if !is_rich {
            continue;
        }
        let detail = json!({
            "id": life.id,
            "commits": commits.iter().map(document).collect::<Vec<Value>>(),
            "steps": steps,
            "timeline": timeline,
        });
        files::write_whole(
            &sessions.detail_path(&life.id),
            format!("{detail:#}\n").as_bytes(),
        )?;
        let hashes: Vec<String> = commits.into_iter().map(|commit| commit.hash).collect();
        let line = Record {
            commits: Some(hashes)
                .filter(|now| !now.is_empty() && Some(now) != life.commits.as_ref()),
            steps: Some(steps).filter(|now| !now.is_empty() && Some(now) != life.steps.as_ref()),
            ..Record::about(&life.id)
        };
        if line.commits.is_some() || line.steps.is_some() {
            lines.push(line);
        }
    }
    Ok(lines)
}

fn committed(town: &Town, life: &Record) -> Vec<Commit> {
    let began = time(life.started_at.as_deref());
    let ended = time(life.ended_at.as_deref());
    match (&life.cwd, began, ended) {
        (Some(dir), Some(began), Some(ended)) => commits::made(
            Path::new(dir),
            began.as_second(),
            ended.as_second(),
            town.around(),
        ),
        _ => Vec::new(),
    }
}

/// What happened in a life, the oldest first.
fn timeline(life: &Record, commits: &[Commit], events: &[Event]) -> Vec<Value> {
    let mut entries: Vec<(String, &str, String)> = Vec::new();
    let own = |event: &&Event| event.payload.get("session_id") == Some(&json!(life.id));
    for event in events.iter().filter(own) {
        entries.push((event.ts.clone(), &event.kind, event.line()));
    }
    for commit in commits {
        let at = timestamp(Some(commit.at));
        entries.push((at, "commit", format!("committed: {}", commit.subject)));
    }
    // git knows whole seconds only; and nothing happens before the beginning.
    entries.sort_by_key(|(at, kind, _)| (*kind != "session_start", at.clone()));
    entries
        .into_iter()
        .map(|(at, kind, text)| json!({"at": at, "type": kind, "text": text}))
        .collect()
}

fn document(commit: &Commit) -> Value {
    json!({
        "hash": commit.hash,
        "at": timestamp(Some(commit.at)),
        "subject": commit.subject,
    })
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}
