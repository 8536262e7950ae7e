//! Opens and migrates the database of work items.

use super::Work;
use super::database_file::RESTORE;
use crate::Result;
use crate::base::lock::FileLock;
use crate::base::open_database::PooledConnection;
use crate::base::{database, files};
use gt_core::Problem;
use gt_core::work::LENGTH;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::time::{Duration, UNIX_EPOCH};

/// Maximum wait for other writers.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the current time for a record, by the clock of the town.
pub(super) fn now(db: &Connection) -> Result<String> {
    db.query_row("SELECT gt_now()", [], |row| row.get(0))
        .map_err(problem)
}

/// Migrations, each from one version to the next. Append only.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE items (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT NOT NULL DEFAULT '',
    type TEXT NOT NULL, priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4),
    status TEXT NOT NULL, assignee TEXT, parent TEXT REFERENCES items (id),
    notes TEXT NOT NULL DEFAULT '', ephemeral INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, closed_at TEXT, close_reason TEXT
) WITHOUT ROWID;
CREATE INDEX items_by_status ON items (status, priority, created_at);
CREATE INDEX items_by_assignee ON items (assignee, status) WHERE assignee IS NOT NULL;
CREATE INDEX items_by_parent ON items (parent) WHERE parent IS NOT NULL;
CREATE TABLE labels (
    item TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE, label TEXT NOT NULL,
    PRIMARY KEY (item, label)
) WITHOUT ROWID;
CREATE INDEX labels_by_label ON labels (label);
CREATE TABLE dependencies (
    item TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    blocker TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    PRIMARY KEY (item, blocker), CHECK (item <> blocker)
) WITHOUT ROWID;
CREATE INDEX dependencies_by_blocker ON dependencies (blocker);
CREATE TABLE hooks (
    agent TEXT PRIMARY KEY, item TEXT NOT NULL UNIQUE REFERENCES items (id), since TEXT NOT NULL
) WITHOUT ROWID;
",
    "
CREATE TABLE letters (
    item TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
    sender TEXT NOT NULL, recipient TEXT NOT NULL, thread TEXT NOT NULL, reply_to TEXT,
    sent_at TEXT NOT NULL, read_at TEXT
) WITHOUT ROWID;
CREATE INDEX letters_by_recipient ON letters (recipient, sent_at);
CREATE INDEX letters_by_sender ON letters (sender, sent_at);
CREATE INDEX letters_by_thread ON letters (thread, sent_at);
ALTER TABLE hooks ADD COLUMN letter TEXT REFERENCES items (id);
CREATE UNIQUE INDEX hooks_by_letter ON hooks (letter) WHERE letter IS NOT NULL;
",
    "
CREATE TABLE merges (
    id TEXT PRIMARY KEY, rig TEXT NOT NULL, item TEXT NOT NULL REFERENCES items (id),
    branch TEXT NOT NULL, commit_id TEXT NOT NULL, base TEXT NOT NULL, worker TEXT NOT NULL,
    status TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, reason TEXT,
    files TEXT NOT NULL DEFAULT '[]', log TEXT, repair TEXT REFERENCES items (id),
    handed INTEGER NOT NULL DEFAULT 0, merged_as TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX merges_by_rig ON merges (rig, status);
CREATE INDEX merges_by_item ON merges (item);
CREATE INDEX merges_by_repair ON merges (repair) WHERE repair IS NOT NULL;
CREATE TABLE finishes (
    agent TEXT PRIMARY KEY, life TEXT, item TEXT REFERENCES items (id), leaving TEXT NOT NULL,
    branch TEXT, merge TEXT REFERENCES merges (id), at TEXT NOT NULL,
    ended INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
",
    "
CREATE TABLE beads (
    item TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE, rig TEXT NOT NULL,
    seen TEXT NOT NULL, touched INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX beads_by_rig ON beads (rig);
CREATE INDEX touched_beads ON beads (touched) WHERE touched <> 0;
CREATE TABLE beads_looks (
    rig TEXT PRIMARY KEY, folder TEXT NOT NULL, trace TEXT NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER bead_changed AFTER UPDATE ON items BEGIN
    UPDATE beads SET touched = 1 WHERE item = NEW.id; END;
CREATE TRIGGER bead_labelled AFTER INSERT ON labels BEGIN
    UPDATE beads SET touched = 1 WHERE item = NEW.item; END;
CREATE TRIGGER bead_unlabelled AFTER DELETE ON labels BEGIN
    UPDATE beads SET touched = 1 WHERE item = OLD.item; END;
CREATE TRIGGER bead_waits AFTER INSERT ON dependencies BEGIN
    UPDATE beads SET touched = 1 WHERE item = NEW.item; END;
CREATE TRIGGER bead_waits_no_more AFTER DELETE ON dependencies BEGIN
    UPDATE beads SET touched = 1 WHERE item = OLD.item; END;
",
    // These fields of mirrored items are unknown until the next refresh.
    "
ALTER TABLE items ADD COLUMN design TEXT NOT NULL DEFAULT '';
ALTER TABLE items ADD COLUMN acceptance_criteria TEXT NOT NULL DEFAULT '';
DELETE FROM beads_looks;
",
    "
CREATE TABLE beads_gone (
    item TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE, rig TEXT NOT NULL,
    seen TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE beads_unread (
    rig TEXT NOT NULL, bead TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (rig, bead)
) WITHOUT ROWID;
DELETE FROM beads_looks;
",
    // The sender of an assigned item, and the last announced result of a merge. Results from before
    // this version are no longer announced.
    "
CREATE TABLE slings (
    item TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE, sender TEXT NOT NULL,
    at TEXT NOT NULL
) WITHOUT ROWID;
ALTER TABLE merges ADD COLUMN announced TEXT;
UPDATE merges SET announced = CASE status WHEN 'queued' THEN 'queued:' || coalesce(reason, '')
    ELSE status || ':' || attempts END;
",
    "
CREATE TABLE escalations (
    id TEXT PRIMARY KEY, severity TEXT NOT NULL, state TEXT NOT NULL, message TEXT NOT NULL,
    source TEXT NOT NULL, raised_by TEXT NOT NULL, item TEXT, agent TEXT, key TEXT,
    count INTEGER NOT NULL DEFAULT 1, raised INTEGER NOT NULL DEFAULT 0,
    told INTEGER NOT NULL DEFAULT 0, thread TEXT, created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL, raised_at TEXT NOT NULL, again_at TEXT, acknowledged_at TEXT,
    acknowledged_by TEXT, closed_at TEXT, closed_by TEXT, reason TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX escalations_by_key ON escalations (key)
    WHERE key IS NOT NULL AND state <> 'closed';
CREATE INDEX escalations_not_closed ON escalations (state, again_at) WHERE state <> 'closed';
",
    "
CREATE TABLE schedule_queue (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    item TEXT NOT NULL UNIQUE REFERENCES items (id) ON DELETE CASCADE, rig TEXT NOT NULL,
    options TEXT NOT NULL, queued_at TEXT NOT NULL, queued_by TEXT NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0, last_error TEXT, not_before TEXT
);
",
    "
CREATE TABLE batches (
    item TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE, owner TEXT NOT NULL,
    at TEXT NOT NULL, landed_at TEXT, mail TEXT, told INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX batches_to_settle ON batches (item) WHERE told = 0;
",
    "
CREATE TABLE recurring (
    name TEXT PRIMARY KEY, cron TEXT NOT NULL, formula TEXT NOT NULL, rig TEXT NOT NULL,
    vars TEXT NOT NULL, options TEXT NOT NULL, added_at TEXT NOT NULL, added_by TEXT NOT NULL,
    seen_at TEXT NOT NULL, last_at TEXT, last_item TEXT, runs INTEGER NOT NULL DEFAULT 0,
    last_error TEXT
) WITHOUT ROWID;
",
    "ALTER TABLE merges ADD COLUMN approved TEXT;",
    // Lists read only the rows that they show: the order of a list is that of an index. A message has
    // its priority and status twice, so that one index has all that an inbox needs.
    "
CREATE INDEX items_in_order ON items (priority, created_at, id) WHERE type <> 'message';
CREATE INDEX items_not_closed ON items (priority, created_at, id)
    WHERE type <> 'message' AND status <> 'closed';
CREATE INDEX items_by_closing ON items (closed_at) WHERE type <> 'message' AND status = 'closed';
CREATE INDEX items_of_assignee ON items (assignee, priority, created_at, id)
    WHERE type <> 'message';
CREATE INDEX merges_unsettled ON merges (rig, id)
    WHERE status NOT IN ('merged', 'rejected', 'withdrawn');
ALTER TABLE letters ADD COLUMN mail_priority INTEGER NOT NULL DEFAULT 2;
ALTER TABLE letters ADD COLUMN mail_status TEXT NOT NULL DEFAULT 'open';
UPDATE letters SET recipient = 'human' WHERE recipient = 'overseer';
UPDATE letters SET (mail_priority, mail_status) =
    (SELECT priority, status FROM items WHERE id = letters.item);
CREATE TRIGGER letter_written AFTER INSERT ON letters BEGIN
    UPDATE letters SET (mail_priority, mail_status) =
        (SELECT priority, status FROM items WHERE id = NEW.item) WHERE item = NEW.item; END;
CREATE TRIGGER letter_changed AFTER UPDATE OF priority, status ON items
    WHEN NEW.priority <> OLD.priority OR NEW.status <> OLD.status BEGIN
    UPDATE letters SET mail_priority = NEW.priority, mail_status = NEW.status
        WHERE item = NEW.id; END;
CREATE INDEX letters_all ON letters (recipient, mail_priority, sent_at DESC, item);
CREATE INDEX letters_kept
    ON letters (recipient, mail_priority, sent_at DESC, item, mail_status)
    WHERE mail_status <> 'closed';
CREATE INDEX letters_unread
    ON letters (recipient, mail_priority, sent_at DESC, item, mail_status, read_at)
    WHERE read_at IS NULL AND mail_status = 'open';
",
];

/// Version that this gt writes.
pub(super) const LATEST: usize = MIGRATIONS.len();

impl Work {
    /// Opens the database for reading; `None` if nothing was ever written.
    pub(super) fn open_if_there(&self) -> Result<Option<PooledConnection>> {
        match self.is_there()? {
            true => self.open_present().map(Some),
            false => Ok(None),
        }
    }

    /// Opens the database ahead of the next query, which reports any failure.
    pub(crate) fn open_early(&self) {
        // The next query reports a failure.
        let _ = self.open_if_there();
    }

    /// Checkpoints the log, so that the next change does not have to wait for it. That change
    /// reports any failure.
    pub fn tidy(&self) {
        if let Ok(Some(db)) = self.open_if_there() {
            // The next change reports a failure.
            let _ = database::tidy(&db, &self.path);
        }
    }

    /// Opens the database; the first writer creates it.
    pub(super) fn open(&self) -> Result<PooledConnection> {
        if !self.is_there()? {
            self.create_first()?;
        }
        self.open_present()
    }

    fn open_present(&self) -> Result<PooledConnection> {
        let timeout = || self.deadline.at_most(TIMEOUT);
        if let Some(kept) = PooledConnection::take_idle(&self.path) {
            kept.busy_timeout(timeout()).map_err(problem)?;
            return Ok(kept);
        }
        let open = || -> rusqlite::Result<(Connection, bool)> {
            // If a disk is missing, SQLite would create a new database.
            let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE;
            let db = Connection::open_with_flags(&self.path, flags)?;
            db.busy_timeout(timeout())?;
            // A reported change must survive a power failure.
            db.pragma_update(None, "synchronous", "FULL")?;
            db.pragma_update(None, "foreign_keys", "ON")?;
            // With this check, damaged pages cause errors more often than wrong answers.
            db.pragma_update(None, "cell_size_check", true)?;
            let clock = self.clock.clone();
            let flags = FunctionFlags::SQLITE_UTF8;
            db.create_scalar_function("gt_now", 0, flags, move |_| Ok(clock.text()))?;
            let clock = self.clock.clone();
            let random = move |_: &Context<'_>| Ok(clock.random_bytes::<LENGTH>());
            db.create_scalar_function("gt_random", 0, flags, random)?;
            let is_short = database::keep_log(&db, &self.path)?;
            Ok((db, is_short))
        };
        let (mut db, is_short) = open().map_err(problem)?;
        let found = version(&db).map_err(problem)?;
        if found == 0 {
            return Err(Problem::failed(CANNOT)
                .cause(format!("{} holds none", self.path.display()))
                .hint(RESTORE));
        }
        if found < MIGRATIONS.len() {
            let _lock = FileLock::take(&self.mark(), timeout())?;
            files::make_private(&self.path)?;
            migrate(&mut db).map_err(problem)?;
        }
        if found > MIGRATIONS.len() {
            return Err(
                Problem::environment("the work items were written by a newer gt")
                    .hint("use that version: this one could damage them"),
            );
        }
        self.note_there();
        Ok(PooledConnection::new(db, &self.path, is_short))
    }

    /// Checks the integrity of the database and returns the number of items; `None` if nothing was
    /// ever written.
    pub fn check(&self) -> Result<Option<usize>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(None);
        };
        let said: String = db
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(problem)?;
        if said != "ok" {
            return Err(Problem::failed("the work items are damaged")
                .cause(said.replace('\n', " "))
                .hint(RESTORE));
        }
        db.query_row("SELECT count(*) FROM items", [], |row| row.get(0))
            .map(Some)
            .map_err(problem)
    }

    /// Runs a change atomically. Changes of items in beads are written there first, and a refusal
    /// there rolls the change back.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.change_or(change)
    }

    /// Runs a change atomically, as [`change`](Self::change) does, with an error enum.
    pub(super) fn change_or<T, E: From<Problem>>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut db = self.open()?;
        let transaction = db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(problem)?;
        self.begin_transaction(&transaction)?;
        let answer = change(&transaction)?;
        self.write_through(&transaction)?;
        transaction.commit().map_err(problem)?;
        self.mark_change();
        Ok(answer)
    }

    /// Sets the modification time of the database's file, for file watchers. SQLite writes its log,
    /// syncs, and only then makes the change visible: a watcher of the log may read too early.
    ///
    /// Uses the path, because opening and closing the file here would release SQLite's locks.
    fn mark_change(&self) {
        let now = self.clock.system_time().duration_since(UNIX_EPOCH);
        let now = now.ok().and_then(|now| Timespec::try_from(now).ok());
        let Some(now) = now else { return };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        // If this fails, watchers notice the change only with the next one.
        let _ = utimensat(CWD, &self.path, &times, AtFlags::empty());
    }
}

pub(super) fn version(db: &Connection) -> rusqlite::Result<usize> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

pub(super) fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated it meanwhile.
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(version(&change)?) {
        change.execute_batch(migration)?;
        change.pragma_update(None, "user_version", number + 1)?;
    }
    change.commit()
}

const CANNOT: &str = "the work items cannot be read or written";

/// Converts a failure of the database. It is never treated as "there is no work".
pub(super) fn problem(error: rusqlite::Error) -> Problem {
    let problem = Problem::failed(CANNOT);
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full: make room and try again",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another gt process uses them: try again"
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => RESTORE,
        Some(ErrorCode::CannotOpen) => {
            "check who owns .work/items.db, and whether its disk is mounted"
        }
        _ => "`gt doctor` checks the town's files",
    };
    problem.caused_by(error).hint(hint)
}
