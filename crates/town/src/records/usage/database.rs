//! The database of opencode. Its rows change after they are written, so there is no position to
//! continue from: it is read again when its files have changed, and only the messages of one
//! agent's folder and time.

use gt_core::nudge::fingerprint;
use gt_core::price::Prices;
use gt_core::usage::{DailyUsage, TranscriptProgress, Usage, UsageWindow, opencode};
use rusqlite::{Connection, OpenFlags, params};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for the database. The program itself never waits for us.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Query of an agent's messages. Subagents have their own sessions, below the calling one.
const MESSAGES: &str = "
WITH RECURSIVE mine (id) AS (
    SELECT id FROM session WHERE directory = ?1
    UNION SELECT session.id FROM session JOIN mine ON session.parent_id = mine.id
)
SELECT message.id, message.data, message.time_created FROM message JOIN mine ON message.session_id = mine.id
WHERE message.time_created >= ?2 AND message.time_created <= ?3
ORDER BY message.time_created";

/// Query of typed texts: parts that opencode and its plugins add are marked as synthetic.
const PROMPTS: &str = "
WITH RECURSIVE mine (id) AS (
    SELECT id FROM session WHERE directory = ?1
    UNION SELECT session.id FROM session JOIN mine ON session.parent_id = mine.id
)
SELECT json_extract(part.data, '$.text')
FROM message JOIN mine ON message.session_id = mine.id JOIN part ON part.message_id = message.id
WHERE message.time_created >= ?2
    AND json_extract(message.data, '$.role') = 'user'
    AND json_extract(part.data, '$.type') = 'text'
    AND json_extract(part.data, '$.synthetic') IS NOT 1";

/// Result of a read, and the state of the files at that time.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StoredUsage {
    /// Length and time of the database and of its write-ahead log.
    files: Vec<(u64, i64)>,
    until: Option<String>,
    pub(super) usage: Usage,
    pub(super) daily: Vec<DailyUsage>,
}

pub(super) fn read(
    path: &Path,
    folder: &str,
    window: &UsageWindow,
    prices: &Prices,
    seen: &mut StoredUsage,
) -> rusqlite::Result<()> {
    let files = stamps(path);
    let is_known = seen.files == files && seen.until == window.until;
    if files.is_empty() || is_known {
        return Ok(());
    }
    let db = open(path)?;
    let since = millis(Some(&window.since)).unwrap_or_default();
    let until = millis(window.until.as_ref()).unwrap_or(i64::MAX);
    let mut query = db.prepare(MESSAGES)?;
    let mut rows = query.query(params![folder, since, until])?;
    let mut reading = TranscriptProgress::default();
    while let Some(row) = rows.next()? {
        let (id, data): (String, String) = (row.get(0)?, row.get(1)?);
        if let Some(answer) = opencode::answer(&id, &data) {
            let at = jiff::Timestamp::from_millisecond(row.get(2)?).unwrap_or_default();
            reading.count(answer, &window.day(&format!("{at:.3}")), prices);
        }
    }
    *seen = StoredUsage {
        files,
        until: window.until.clone(),
        usage: reading.usage(),
        daily: reading.daily(),
    };
    Ok(())
}

/// Returns whether a conversation of this folder got the prompt, at that time (in seconds) or
/// later.
pub(super) fn has_prompt(
    path: &Path,
    folder: &str,
    prompt: &str,
    since: i64,
) -> rusqlite::Result<bool> {
    let db = open(path)?;
    let mut query = db.prepare(PROMPTS)?;
    let mut rows = query.query(params![folder, since.saturating_mul(1_000)])?;
    let wanted = fingerprint(prompt);
    while let Some(row) = rows.next()? {
        let text: Option<String> = row.get(0)?;
        if text.is_some_and(|text| fingerprint(&text) == wanted) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(TIMEOUT)?;
    Ok(db)
}

fn millis(time: Option<&String>) -> Option<i64> {
    let time: jiff::Timestamp = time?.parse().ok()?;
    Some(time.as_millisecond())
}

fn stamps(path: &Path) -> Vec<(u64, i64)> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let files = [path.to_owned(), PathBuf::from(log)];
    let stamp = |path: &PathBuf| {
        // Either file may be missing.
        let meta = path.metadata().ok()?;
        let nanos = meta.mtime().checked_mul(1_000_000_000)?;
        Some((meta.len(), nanos.checked_add(meta.mtime_nsec())?))
    };
    files.iter().filter_map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(since: &str, until: Option<&str>) -> UsageWindow {
        UsageWindow {
            since: since.to_owned(),
            until: until.map(str::to_owned),
            ..UsageWindow::default()
        }
    }

    /// Creates the tables of 1.18.33, without those that are not read here.
    fn database(path: &Path) -> Connection {
        let db = Connection::open(path).unwrap();
        db.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL);
             CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
                 time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
             CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
                 time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
             INSERT INTO session VALUES ('ses_1', NULL, '/town/max'), ('ses_2', 'ses_1', '/elsewhere'),
                 ('ses_3', NULL, '/town/amy');",
        )
        .unwrap();
        db
    }

    fn say(db: &Connection, id: &str, session: &str, at: i64, output: u64) {
        let data = format!(
            r#"{{"role":"assistant","cost":0.5,"modelID":"m","tokens":{{"input":1,"output":{output},"reasoning":0,"cache":{{"read":0,"write":0}}}}}}"#
        );
        db.execute(
            "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4) ON CONFLICT (id) DO UPDATE SET data = ?4",
            params![id, session, at, data],
        )
        .unwrap();
    }

    #[test]
    fn messages_of_the_folder_and_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("opencode.db");
        let db = database(&path);
        // 2026-11-16T02:33:00Z
        let now = 1_794_796_380_000;
        say(&db, "old", "ses_1", now - 1, 1000);
        say(&db, "mine", "ses_1", now, 7);
        say(&db, "my subagent's", "ses_2", now + 1, 20);
        say(&db, "another's", "ses_3", now + 2, 3000);
        let prices = Prices::builtin();
        let since = window("2026-11-16T02:33:00.000Z", None);
        let mut seen = StoredUsage::default();
        read(&path, "/town/max", &since, &prices, &mut seen).unwrap();
        assert_eq!(seen.usage.output_tokens, 27);
        assert_eq!(seen.usage.cost_usd, Some(1.0), "its own word");
        // While the database is open elsewhere, a message grows and another is added.
        say(&db, "mine", "ses_1", now, 9);
        say(&db, "next", "ses_1", now + 60_000, 100);
        read(&path, "/town/max", &since, &prices, &mut seen).unwrap();
        assert_eq!(seen.usage.output_tokens, 129);
        let ended = window("2026-11-16T02:33:00.000Z", Some("2026-11-16T02:33:30.000Z"));
        read(&path, "/town/max", &ended, &prices, &mut seen).unwrap();
        assert_eq!(seen.usage.output_tokens, 29);
    }

    #[test]
    fn prompt_is_found_by_folder_time_and_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("opencode.db");
        let db = database(&path);
        let at = 1_794_796_380_123;
        let put = |id: &str, session: &str, role: &str, part: &str| {
            let data = format!(r#"{{"role":"{role}","time":{{"created":{at}}}}}"#);
            let message = "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)";
            db.execute(message, params![id, session, at, data]).unwrap();
            let text = "INSERT INTO part VALUES (?1, ?1, ?2, ?3, ?3, ?4)";
            db.execute(text, params![id, session, at, part]).unwrap();
        };
        put("1", "ses_1", "user", r#"{"type":"text","text":"typed "}"#);
        put(
            "2",
            "ses_1",
            "assistant",
            r#"{"type":"text","text":"said"}"#,
        );
        let added = r#"{"type":"text","text":"added","synthetic":true}"#;
        put("3", "ses_1", "user", added);
        put("4", "ses_3", "user", r#"{"type":"text","text":"to amy"}"#);
        put("5", "ses_1", "user", r#"{"type":"file","url":"x"}"#);
        let second = at / 1_000;
        for (prompt, since, expected) in [
            ("typed", second, true),
            ("typed", second - 60, true),
            ("typed", second + 1, false),
            ("type", second, false),
            ("said", second, false),
            ("added", second, false),
            ("to amy", second, false),
        ] {
            let found = has_prompt(&path, "/town/max", prompt, since).unwrap();
            assert_eq!(found, expected, "{prompt} {since}");
        }
        // A database of another release proves nothing.
        db.execute_batch("DROP TABLE part").unwrap();
        assert!(has_prompt(&path, "/town/max", "typed", second).is_err());
        assert!(has_prompt(&dir.path().join("none.db"), "/town/max", "x", 0).is_err());
    }

    #[test]
    fn a_database_that_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("opencode.db");
        std::fs::write(&path, "nonsense ".repeat(1000)).unwrap();
        let mut seen = StoredUsage::default();
        let always = window("", None);
        assert!(read(&path, "/x", &always, &Prices::builtin(), &mut seen).is_err());
        assert_eq!(seen.usage.tokens(), 0);
        let none = dir.path().join("none.db");
        read(&none, "/x", &always, &Prices::builtin(), &mut seen).unwrap();
        assert_eq!(seen.usage.tokens(), 0);
        assert!(!none.exists());
    }
}
