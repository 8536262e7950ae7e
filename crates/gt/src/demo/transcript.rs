//! Conversations on disk: one file of JSON lines per session, and the ids.
//!
//! The files are in `$GT_DEMO_HOME/sessions`, in the town's `.runtime/demo/sessions`, so that they
//! are removed with the town, or in `~/.gt-demo/sessions`. The first line names the folder of the
//! session, the others are `{"type": "user" | "assistant" | "context", "text": …, "at": …}`. They
//! also have `timestamp`, and an answer has `message` with `id`, `model` and `usage`, as in Claude
//! Code. An answer that was copied from another conversation has no `message`. The file is created
//! with `O_EXCL`, so an id that is already in use is an error.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::{Value, json};

use super::tally::TokenTally;

/// Conversation requested on the command line.
#[derive(Debug, Default)]
pub(super) struct RequestedConversation {
    pub(super) session_id: Option<String>,
    pub(super) resume: Option<String>,
    pub(super) newest: bool,
    pub(super) fork: bool,
}

#[derive(Debug)]
pub(super) struct Transcript {
    pub(super) id: String,
    pub(super) path: PathBuf,
    file: File,
    tally: TokenTally,
    /// The model of the answers.
    pub(super) model: String,
}

/// An open conversation and its origin.
#[derive(Debug)]
pub(super) struct OpenedTranscript {
    pub(super) transcript: Transcript,
    /// Claude Code's word: startup, resume or fork.
    pub(super) source: &'static str,
    /// Earlier entries of the conversation.
    pub(super) entries: Vec<TranscriptEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct TranscriptEntry {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: String,
}

#[derive(Deserialize)]
struct TranscriptHeader {
    cwd: String,
}

/// Returns `sessions` in `$GT_DEMO_HOME`, in the town, or under the home folder.
pub(super) fn folder() -> Result<PathBuf, String> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("GT_DEMO_HOME")
        .or_else(|| set("GT_ROOT").map(|town| town.join(".runtime/demo")))
        .or_else(|| set("HOME").map(|home| home.join(".gt-demo")))
        .map(|home| home.join("sessions"))
        .ok_or("neither GT_DEMO_HOME nor HOME is set".to_owned())
}

/// Opens the requested conversation. Error messages match those of Claude Code.
pub(super) fn open(
    folder: &Path,
    cwd: &str,
    wanted: RequestedConversation,
) -> Result<OpenedTranscript, String> {
    if let Some(id) = wanted.session_id.as_ref().filter(|id| !is_uuid(id)) {
        return Err(format!("invalid session id {id}: must be a valid UUID"));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let old = match (wanted.resume, wanted.newest) {
        (Some(id), _) => Some(id),
        (None, true) => {
            Some(newest(folder, cwd).ok_or("no conversation found to continue".to_owned())?)
        }
        (None, false) => None,
    };
    let Some(old) = old else {
        if wanted.fork {
            return Err("--fork-session needs --resume or --continue".to_owned());
        }
        let id = wanted.session_id.unwrap_or_else(new_id);
        let transcript = Transcript::create(folder, id, cwd)?;
        return Ok(OpenedTranscript {
            transcript,
            source: "startup",
            entries: Vec::new(),
        });
    };
    if wanted.session_id.is_some() && !wanted.fork {
        return Err(
            "--session-id goes with --resume or --continue only together with --fork-session"
                .to_owned(),
        );
    }
    let entries = read(folder, &old)?;
    if !wanted.fork {
        let mut transcript = Transcript::append(folder, old)?;
        for entry in &entries {
            transcript.tally.remember(&entry.text);
        }
        return Ok(OpenedTranscript {
            transcript,
            source: "resume",
            entries,
        });
    }
    let id = wanted.session_id.unwrap_or_else(new_id);
    let mut transcript = Transcript::create(folder, id, cwd)?;
    for entry in &entries {
        transcript.tally.remember(&entry.text);
        let copied = transcript.write_plain(&entry.kind, &entry.text);
        copied.map_err(|error| format!("{}: {error}", transcript.path.display()))?;
    }
    Ok(OpenedTranscript {
        transcript,
        source: "fork",
        entries,
    })
}

impl Transcript {
    pub(super) fn create(folder: &Path, id: String, cwd: &str) -> Result<Self, String> {
        let path = folder.join(format!("{id}.jsonl"));
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let mut file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => format!("session id {id} is already in use"),
            _ => format!("{}: {error}", path.display()),
        })?;
        let header = json!({"type": "session", "session_id": id, "cwd": cwd, "at": now()});
        append(&mut file, &header).map_err(|error| format!("{}: {error}", path.display()))?;
        let tally = TokenTally::default();
        Ok(Self {
            id,
            path,
            file,
            tally,
            model: "demo".to_owned(),
        })
    }

    fn append(folder: &Path, id: String) -> Result<Self, String> {
        let path = folder.join(format!("{id}.jsonl"));
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        let tally = TokenTally::default();
        Ok(Self {
            id,
            path,
            file,
            tally,
            model: "demo".to_owned(),
        })
    }

    /// Removes the file. Only valid for a session that has just been created.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// Writes text that the agent received.
    pub(super) fn write(&mut self, kind: &str, text: &str) -> io::Result<()> {
        self.tally.add_input(text);
        self.write_plain(kind, text)
    }

    /// Writes an answer of the agent, with its usage.
    pub(super) fn write_answer(&mut self, text: &str) -> io::Result<()> {
        let usage = self.tally.answer(text);
        let id = format!("msg_{}", new_id());
        let message = json!({"id": id, "model": self.model, "usage": usage});
        let at = now();
        append(
            &mut self.file,
            &json!({"type": "assistant", "text": text, "at": at, "timestamp": at, "message": message}),
        )
    }

    fn write_plain(&mut self, kind: &str, text: &str) -> io::Result<()> {
        let at = now();
        append(
            &mut self.file,
            &json!({"type": kind, "text": text, "at": at, "timestamp": at}),
        )
    }
}

/// Appends a line in one write, so that lines of concurrent writers do not mix.
pub(super) fn append(file: &mut File, line: &Value) -> io::Result<()> {
    file.write_all(format!("{line}\n").as_bytes())
}

/// Returns the time as `2026-01-31T12:00:00.123Z`.
pub(super) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Returns a UUID of version 7: the time in milliseconds, then random bits.
pub(super) fn new_id() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    uuid_v7(since.unwrap_or(Duration::ZERO), random())
}

fn uuid_v7(since_epoch: Duration, random: [u8; 10]) -> String {
    let millis = since_epoch.as_millis() as u64;
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

fn random() -> [u8; 10] {
    let mut bytes = [0; 10];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        // Fallback without the device: the random keys of the hasher.
        use std::hash::{BuildHasher, RandomState};
        let mix = |n: u8| RandomState::new().hash_one(n).to_be_bytes();
        bytes[..8].copy_from_slice(&mix(0));
        bytes[8..].copy_from_slice(&mix(1)[..2]);
    }
    bytes
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn read(folder: &Path, id: &str) -> Result<Vec<TranscriptEntry>, String> {
    let unknown = || format!("no conversation found with session id {id}");
    // The id becomes part of a path, so only a UUID is accepted.
    if !is_uuid(id) {
        return Err(unknown());
    }
    let file = File::open(folder.join(format!("{id}.jsonl"))).map_err(|_| unknown())?;
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    // A line truncated by a crash is skipped.
    let entries = lines.filter_map(|line| serde_json::from_str::<TranscriptEntry>(&line).ok());
    Ok(entries.filter(|entry| entry.kind != "session").collect())
}

/// Returns the id of the session of this folder that was written last.
fn newest(folder: &Path, cwd: &str) -> Option<String> {
    // Before the first session there is no folder.
    let files = folder.read_dir().ok()?.flatten();
    // A file may be removed meanwhile.
    let newest = files
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .filter(|(_, path)| belongs_to(path, cwd))
        .max()?;
    Some(newest.1.file_stem()?.to_str()?.to_owned())
}

fn belongs_to(path: &Path, cwd: &str) -> bool {
    let mut line = String::new();
    let read = File::open(path).and_then(|file| BufReader::new(file).read_line(&mut line));
    // A file without a valid header is not a transcript.
    read.is_ok()
        && serde_json::from_str::<TranscriptHeader>(&line).is_ok_and(|header| header.cwd == cwd)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01234567-89ab-7def-8123-456789abcdef";

    fn wanted(
        session_id: Option<&str>,
        resume: Option<&str>,
        newest: bool,
        fork: bool,
    ) -> RequestedConversation {
        RequestedConversation {
            session_id: session_id.map(str::to_owned),
            resume: resume.map(str::to_owned),
            newest,
            fork,
        }
    }

    fn error(folder: &Path, wanted: RequestedConversation) -> String {
        open(folder, "/a", wanted)
            .map(|_| ())
            .expect_err("an error")
    }

    #[test]
    fn ids_are_uuids_of_version_7() {
        let id = uuid_v7(Duration::from_millis(0x0123_4567_89ab), [0xff; 10]);
        assert_eq!(id, "01234567-89ab-7fff-bfff-ffffffffffff");
        assert!(is_uuid(&new_id()));
        assert_ne!(new_id(), new_id());
        assert!(!is_uuid("../../etc/passwd"));
    }

    #[test]
    fn a_conversation_goes_on() {
        let home = tempfile::tempdir().expect("a folder");
        let home = home.path().join("sessions");
        let mut first = open(&home, "/a", wanted(Some(ID), None, false, false)).expect("opens");
        assert_eq!(first.source, "startup");
        first.transcript.write("user", "hi\nthere").expect("writes");

        let again = open(&home, "/a", wanted(None, Some(ID), false, false)).expect("opens");
        assert_eq!((again.source, again.transcript.id.as_str()), ("resume", ID));
        let entry = TranscriptEntry {
            kind: "user".to_owned(),
            text: "hi\nthere".to_owned(),
        };
        assert_eq!(again.entries, std::slice::from_ref(&entry));

        let fork = open(&home, "/a", wanted(None, Some(ID), false, true)).expect("opens");
        assert_eq!(fork.source, "fork");
        assert_ne!(fork.transcript.id, ID);
        assert_eq!(read(&home, &fork.transcript.id), Ok(vec![entry]));
    }

    #[test]
    fn continue_takes_the_newest_of_the_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let here = open(home.path(), "/a", RequestedConversation::default()).expect("opens");
        open(home.path(), "/b", RequestedConversation::default()).expect("opens");
        let again = open(home.path(), "/a", wanted(None, None, true, false)).expect("opens");
        assert_eq!(again.transcript.id, here.transcript.id);
    }

    #[test]
    fn conversations_that_cannot_be_opened_are_refused() {
        let home = tempfile::tempdir().expect("a folder");
        let used = || wanted(Some(ID), None, false, false);
        open(home.path(), "/a", used()).expect("opens");
        for (wanted, problem) in [
            (used(), format!("session id {ID} is already in use")),
            (
                wanted(None, Some("nope"), false, false),
                "no conversation found with session id nope".to_owned(),
            ),
            (
                wanted(Some("nope"), None, false, false),
                "invalid session id nope: must be a valid UUID".to_owned(),
            ),
            (
                wanted(None, None, false, true),
                "--fork-session needs --resume or --continue".to_owned(),
            ),
        ] {
            assert_eq!(error(home.path(), wanted), problem);
        }
        let elsewhere = open(home.path(), "/z", wanted(None, None, true, false));
        assert_eq!(
            elsewhere.map(|_| ()),
            Err("no conversation found to continue".to_owned())
        );
    }
}
