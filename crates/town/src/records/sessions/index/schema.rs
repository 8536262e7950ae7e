//! The tables of the index.

/// Schema version, raised whenever the tables change: an older database is rebuilt.
pub(super) const VERSION: i64 = 9;
/// Application id that marks a database as ours.
pub(super) const APPLICATION: i32 = 0x6774_6c76;

/// Tables of the index. Times are milliseconds since the epoch. `lives` holds only the columns that
/// are queried, so that a scan is fast; the records are in `records`. `earlier_work` has the items
/// that a session had before the one in `work_unit`, also for archived sessions: most have none,
/// and a rebuild writes no row for them. `daily` has the usage by day and model of sessions that
/// cannot be derived from their row in `lives`: those with several days or models, and archived
/// ones. `sessions` is for programs that expect one row per agent,
/// with times in seconds ([`super::slugs`]).
pub(super) const TABLES: &str = "
CREATE TABLE read_so_far (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL, first TEXT NOT NULL, tail BLOB NOT NULL, boot TEXT);
CREATE TABLE lives (
    id TEXT PRIMARY KEY, agent TEXT, rig TEXT, role TEXT, harness TEXT, status TEXT, outcome TEXT,
    work_unit TEXT, chain_id TEXT, started INTEGER, ended INTEGER,
    tokens INTEGER, cost REAL, commits INTEGER, model TEXT, unpriced INTEGER
);
CREATE TABLE records (life INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE earlier_work (work_unit TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (work_unit, id)) WITHOUT ROWID;
CREATE TABLE daily (id TEXT NOT NULL, day TEXT NOT NULL, model TEXT NOT NULL, agent TEXT, rig TEXT, tokens INTEGER, unpriced INTEGER, cost REAL, PRIMARY KEY (id, day, model)) WITHOUT ROWID;
CREATE INDEX daily_by_day ON daily (day);
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
/// Indexes that a rebuild fills row by row: it only appends to them, while it waits for the reader
/// of the journal anyway. Each ends with the time, so that the newest sessions of a value are the
/// end of a range. Few sessions run, so their index is small.
pub(super) const EARLY_INDEXES: &str = "
CREATE INDEX by_time ON lives (started);
CREATE INDEX by_running ON lives (started) WHERE status = 'running';
";
/// Indexes that a rebuild creates after all rows are written.
pub(super) const LATE_INDEXES: &str = "
CREATE INDEX by_role ON lives (role, started);
CREATE INDEX by_harness ON lives (harness, started);
CREATE INDEX by_chain ON lives (chain_id, started);
CREATE INDEX by_agent ON lives (agent, started);
CREATE INDEX by_rig ON lives (rig, started);
CREATE INDEX by_outcome ON lives (outcome, started);
CREATE INDEX by_work ON lives (work_unit, started) WHERE work_unit IS NOT NULL;
";
