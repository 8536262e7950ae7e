//! The tables of the index.

/// Raised whenever the tables change: an older database is made anew.
pub(super) const VERSION: i64 = 8;
/// By this a database is known as ours.
pub(super) const APPLICATION: i32 = 0x6774_6c76;

/// Times are milliseconds since the epoch. The table holds only what is asked for, so
/// that it is quickly read; the lives themselves stand beside it. `earlier_work` has the items
/// that a session had before the one in `work_unit`, also of archived sessions: most have none,
/// and a rebuild writes no row for them. `sessions` is for programs
/// that expect one row for each agent, with times in seconds ([`super::slugs`]).
pub(super) const TABLES: &str = "
CREATE TABLE read_so_far (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL, first TEXT NOT NULL, tail BLOB NOT NULL, boot TEXT);
CREATE TABLE lives (
    id TEXT PRIMARY KEY, agent TEXT, rig TEXT, role TEXT, harness TEXT, status TEXT, outcome TEXT,
    work_unit TEXT, chain_id TEXT, started INTEGER, ended INTEGER,
    tokens INTEGER, cost REAL, commits INTEGER
);
CREATE TABLE records (life INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE earlier_work (work_unit TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (work_unit, id)) WITHOUT ROWID;
CREATE TABLE archived (id TEXT PRIMARY KEY, chain_id TEXT, work_unit TEXT, file TEXT NOT NULL, taken TEXT) WITHOUT ROWID;
CREATE INDEX archived_by_chain ON archived (chain_id);
CREATE INDEX archived_by_work ON archived (work_unit) WHERE work_unit IS NOT NULL;
CREATE TABLE sessions (
    slug TEXT PRIMARY KEY,
    harness_type TEXT NOT NULL DEFAULT 'claude-code',
    working_directory TEXT,
    status TEXT NOT NULL DEFAULT 'running',
    initial_prompt TEXT,
    created_at INTEGER DEFAULT (unixepoch()),
    updated_at INTEGER DEFAULT (unixepoch()),
    id TEXT
);
";
/// Each ends with the time, so that the newest lives of any one are the end of a range.
/// Those that run are few, and so is their index. To these a rebuild only adds at the
/// end, while it waits for the reader of the journal anyway.
pub(super) const EARLY_INDEXES: &str = "
CREATE INDEX by_time ON lives (started);
CREATE INDEX by_running ON lives (started) WHERE status = 'running';
";
/// These a rebuild makes when all is there.
pub(super) const LATE_INDEXES: &str = "
CREATE INDEX by_role ON lives (role, started);
CREATE INDEX by_harness ON lives (harness, started);
CREATE INDEX by_chain ON lives (chain_id, started);
CREATE INDEX by_agent ON lives (agent, started);
CREATE INDEX by_rig ON lives (rig, started);
CREATE INDEX by_outcome ON lives (outcome, started);
CREATE INDEX by_work ON lives (work_unit, started) WHERE work_unit IS NOT NULL;
";
