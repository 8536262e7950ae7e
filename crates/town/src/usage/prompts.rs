//! Whether a session was given a prompt, by its transcripts. For messages whose delivery
//! nothing else proves any more: `gt` and tmux have both died.

use super::notes::Notes;
use super::{find, window};
use crate::Town;
use crate::harnesses::Presets;
use crate::sessions::Sessions;
use gt_core::usage::is_prompt;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Whether a transcript of this session has the prompt, at that time or later. `false` where
/// there is no transcript, or none that can be read.
pub(crate) fn has_prompt(town: &Town, session: &str, prompt: &str, since: i64) -> bool {
    look(town, session, prompt, since).unwrap_or(false)
}

fn look(town: &Town, session: &str, prompt: &str, since: i64) -> Option<bool> {
    let found = Sessions::of(town).in_journal([session].into_iter()).ok()?;
    let life = found.get(session)?;
    let preset = Presets::default()
        .get(town, life.harness.as_deref()?)?
        .clone();
    let window = window(life, session.parse().ok()?)?;
    let notes = Notes::of(town, session);
    let since = jiff::Timestamp::from_second(since).ok()?.to_string();
    let files = find::transcripts(town, life, &preset, &notes, &[], &window);
    let has_it = files.iter().any(|(path, _)| {
        let lines = File::open(path).map(BufReader::new).map(BufRead::lines);
        let lines = lines.into_iter().flatten().map_while(Result::ok);
        lines
            .into_iter()
            .any(|line| is_prompt(&line, prompt, &since))
    });
    Some(has_it)
}
