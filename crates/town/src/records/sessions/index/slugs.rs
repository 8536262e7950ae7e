//! The table `sessions`: one row per agent, by its slug.
//!
//! Programs that were written for the schema of the sync document read it with any SQLite client. A
//! row describes the agent's newest session. It is written in the transaction that writes the
//! session, and rebuilt with the index.

use gt_core::record::{Record, SessionStatus};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// Agents whose address is one word. A standalone agent with such a slug keeps its full address, so
/// that the primary key stays unique.
const ONE_WORD_ADDRESSES: [&str; 4] = ["mayor", "deacon", "boot", "overseer"];
/// Harness names of the sync document: it calls our `claude` `claude-code`.
const HARNESS_TYPES: [(&str, &str); 1] = [("claude", "claude-code")];

/// Returns the slug of an agent: the suffix of `agent_{slug}` for a standalone agent, the address
/// for any other.
fn slug(agent: &str) -> &str {
    match agent.strip_prefix("agent/") {
        Some(slug) if !ONE_WORD_ADDRESSES.contains(&slug) => slug,
        _ => agent,
    }
}

fn harness_type(harness: Option<&str>) -> &str {
    let harness = harness.unwrap_or("claude");
    let known = HARNESS_TYPES.iter().find(|(name, _)| *name == harness);
    known.map_or(harness, |(_, harness_type)| harness_type)
}

/// Writes the rows of these agents after their sessions have changed. Each change raises
/// `updated_at`, even twice in a second or after the clock was set back.
pub(super) fn update(db: &Connection, agents: &BTreeSet<String>) -> rusqlite::Result<()> {
    for agent in agents {
        write(db, agent, "unixepoch()")?;
    }
    Ok(())
}

/// Writes the rows of all agents into a new database. The journal holds no time of a change except
/// the start and the end of a session, so `updated_at` is the later of the two.
pub(super) fn fill(db: &Connection) -> rusqlite::Result<()> {
    // One step in the index per agent, however many sessions it has had.
    let mut agents = db.prepare(
        "WITH RECURSIVE agents (agent) AS (
             SELECT min(agent) FROM lives
             UNION ALL SELECT (SELECT min(agent) FROM lives WHERE lives.agent > agents.agent)
             FROM agents WHERE agents.agent IS NOT NULL
         ) SELECT agent FROM agents WHERE agent IS NOT NULL",
    )?;
    let agents: Vec<String> = agents
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for agent in agents {
        write(
            db,
            &agent,
            "coalesce(max(ended, started), ended, started) / 1000",
        )?;
    }
    Ok(())
}

/// Writes the row of an agent from its newest session; `updated` is an SQL expression.
fn write(db: &Connection, agent: &str, updated: &str) -> rusqlite::Result<()> {
    let newest = db
        .prepare_cached(
            "SELECT id, harness, record ->> 'cwd', status, record ->> 'initial_prompt'
             FROM lives JOIN records ON life = lives.rowid
             WHERE agent = ?1 ORDER BY started DESC, id DESC LIMIT 1",
        )?
        .query_row([agent], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, Option<String>>(1)?,
                row.get::<_, Option<String>>(2)?,
                row.get::<_, Option<String>>(3)?,
                row.get::<_, Option<String>>(4)?,
            ))
        });
    let (id, harness, directory, status, prompt) = match newest {
        Ok(newest) => newest,
        // The only session of this agent now belongs to another agent.
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            db.prepare_cached("DELETE FROM sessions WHERE slug = ?1")?
                .execute([slug(agent)])?;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let text = format!(
        "INSERT INTO sessions
         (slug, harness_type, working_directory, status, initial_prompt, id, created_at, updated_at)
         SELECT ?1, ?2, ?3, coalesce(?4, 'running'), ?5, ?6,
             coalesce((SELECT min(started) FROM lives WHERE agent = ?7) / 1000, unixepoch()),
             coalesce({updated}, unixepoch())
         FROM lives WHERE id = ?6
         ON CONFLICT (slug) DO UPDATE SET
             harness_type = excluded.harness_type, working_directory = excluded.working_directory,
             status = excluded.status, initial_prompt = excluded.initial_prompt,
             created_at = min(created_at, excluded.created_at),
             updated_at = max(updated_at + 1, excluded.updated_at), id = excluded.id"
    );
    db.prepare_cached(&text)?
        .execute(params![
            slug(agent),
            harness_type(harness.as_deref()),
            directory,
            status,
            prompt,
            id,
            agent
        ])
        .map(drop)
}

/// Writes the row of an agent from an archived session, which `lives` does not have. Newer sessions
/// overwrite it.
pub(super) fn note_archived(
    db: &Connection,
    session: &Record,
    started: Option<i64>,
    ended: Option<i64>,
) -> rusqlite::Result<()> {
    let Some(agent) = &session.agent else {
        return Ok(());
    };
    let mut insert = db.prepare_cached(
        "INSERT INTO sessions
         (slug, harness_type, working_directory, status, initial_prompt, id, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7 / 1000, coalesce(?8, ?7) / 1000)
         ON CONFLICT (slug) DO UPDATE SET
             harness_type = excluded.harness_type, working_directory = excluded.working_directory,
             status = excluded.status, initial_prompt = excluded.initial_prompt,
             created_at = min(created_at, excluded.created_at),
             updated_at = max(updated_at, excluded.updated_at), id = excluded.id",
    )?;
    insert
        .execute(params![
            slug(agent),
            harness_type(session.harness.as_deref()),
            session.cwd,
            session.status.unwrap_or(SessionStatus::Stopped).as_str(),
            session.initial_prompt,
            session.id,
            started,
            ended
        ])
        .map(drop)
}
