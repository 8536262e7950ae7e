//! Recordings of an agent's pane, for replay.
//!
//! If a role asks for it, tmux pipes every byte of the pane into a small `gt` process ([`record`]),
//! from the first byte on: [`commands`] are part of the call that creates the container. That
//! process writes `.sessions/recordings/<session>.cast` (asciicast v2, see [`gt_core::cast`]), and
//! `<session>.1.cast` and so on when it becomes long; it ends with the session. [`Recordings`]
//! finds recordings and removes old ones.

mod reader;
mod recorder;
mod retention;
mod writer;

pub use reader::Summary;
pub use recorder::{RecordRequest, record};

use crate::base::clock::Clock;
use crate::base::files;
use crate::{Result, Town};
use gt_core::role::RecordConfig;
use gt_tmux::{Command, PaneId, Target};
use std::path::{Path, PathBuf};

/// Tag of panes whose pipe is ours.
const TAG_RECORDED: &str = "@gt_recorded";

/// The shell line of the recorder. Paths and names are values of tags and reach the shell quoted,
/// so they are never code.
const CALL: &str = "exec env GT_TMUX_SOCKET=#{q:socket_path} #{q:@gt_bin} --town #{q:@gt_town} \
    internal record #{q:@gt_session} --pane=#{q:pane_id} --pid=#{pane_pid} --tty=#{q:pane_tty} \
    --columns=#{pane_width} --rows=#{pane_height} --title=#{q:@gt_agent} \
    --term=#{q:default-terminal}";

/// Returns the commands that start or stop recording the pane of a new session. They follow the
/// commands for its process and its tags, in the same call. `before` is the pane of an earlier
/// session, which may have been recorded.
pub fn commands(config: &RecordConfig, target: &Target, before: Option<PaneId>) -> Vec<Command> {
    let tag = |value: &str| {
        Command::new("set-option")
            .arg("-p")
            .target(target.clone())
            .args([TAG_RECORDED, value])
    };
    match (config.enabled, before) {
        (true, _) => vec![
            tag("1"),
            // Replaces the pipe that recorded the earlier session.
            Command::new("pipe-pane")
                .arg("-O")
                .target(target.clone())
                .arg(format!("{CALL} --max-bytes={}", config.max_bytes())),
        ],
        (false, Some(pane)) => vec![
            // A pipe of the user stays.
            Command::new("if-shell")
                .arg("-F")
                .target(pane)
                .arg(format!("#{{{TAG_RECORDED}}}"))
                .arg(format!("pipe-pane -t {pane}")),
            tag(""),
        ],
        (false, None) => Vec::new(),
    }
}

/// The recordings of a town.
#[derive(Clone, Debug)]
pub struct Recordings {
    folder: PathBuf,
    clock: Clock,
}

/// The recording of one session.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The files by their numbers, the oldest first.
    parts: Vec<(u32, PathBuf)>,
}

impl Recordings {
    pub fn of(town: &Town) -> Self {
        Recordings {
            folder: town.root().join(".sessions/recordings"),
            clock: town.clock().clone(),
        }
    }

    /// Returns the recording of that session, if there is one.
    pub fn find(&self, session: &str) -> Result<Option<Recording>> {
        let parts: Vec<(u32, PathBuf)> = self
            .files()?
            .into_iter()
            .filter(|(id, _, _)| id == session)
            .map(|(_, number, path)| (number, path))
            .collect();
        Ok((!parts.is_empty()).then_some(Recording { parts }))
    }

    /// Returns all files: session, number of the part and path, sorted in this order.
    fn files(&self) -> Result<Vec<(String, u32, PathBuf)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(files::io_problem("read", &self.folder, &error)),
        };
        let mut found: Vec<(String, u32, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let (session, number) = parse_name(&name)?;
                Some((session.to_owned(), number, entry.path()))
            })
            .collect();
        found.sort();
        Ok(found)
    }
}

impl Recording {
    /// Returns its first file.
    pub fn path(&self) -> &Path {
        &self.parts[0].1
    }
}

/// Returns the file name of a part.
fn file_name(session: &str, number: u32) -> String {
    match number {
        0 => format!("{session}.cast"),
        number => format!("{session}.{number}.cast"),
    }
}

fn parse_name(name: &str) -> Option<(&str, u32)> {
    let stem = name.strip_suffix(".cast")?;
    match stem.split_once('.') {
        Some((session, number)) => Some((session, number.parse().ok()?)),
        None => Some((stem, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_both_ways() {
        for number in [0, 1, 12] {
            assert_eq!(parse_name(&file_name("abc", number)), Some(("abc", number)));
        }
        for other in ["abc", "abc.json", "abc.x.cast", "abc.1.2.cast"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }
}
