//! Statistics of sessions.

use super::index::{Index, IndexError};
use super::query::{self, conditions};
use super::{SessionQuery, Sessions};
use crate::Result;
use gt_core::record::{Outcome, Record, SessionStatus};
use rusqlite::types::Value;
use std::collections::HashMap;

/// Key by which sessions are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsBy {
    Agent,
    Rig,
    Role,
    Harness,
    /// Day of the start, in local time.
    Day,
}

impl StatsBy {
    pub fn as_str(self) -> &'static str {
        match self {
            StatsBy::Agent => "agent",
            StatsBy::Rig => "rig",
            StatsBy::Role => "role",
            StatsBy::Harness => "harness",
            StatsBy::Day => "day",
        }
    }

    fn column(self) -> &'static str {
        match self {
            StatsBy::Day => "date(started / 1000, 'unixepoch', 'localtime')",
            other => other.as_str(),
        }
    }

    fn key(self, session: &Record) -> Option<String> {
        match self {
            StatsBy::Agent => session.agent.clone(),
            StatsBy::Rig => session.rig.clone(),
            StatsBy::Role => session.role.clone(),
            StatsBy::Harness => session.harness.clone(),
            StatsBy::Day => {
                let began: jiff::Timestamp = session.started_at.as_deref()?.parse().ok()?;
                Some(
                    began
                        .to_zoned(jiff::tz::TimeZone::system())
                        .date()
                        .to_string(),
                )
            }
        }
    }
}

/// Totals of all sessions with one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionTally {
    /// Empty for sessions without this key, such as those of no rig.
    pub key: String,
    pub sessions: u64,
    pub running: u64,
    /// Number of sessions per outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    pub seconds: i64,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
    pub commits: u64,
}

impl Sessions {
    /// Returns the totals of the sessions that match. Days are in chronological order; otherwise
    /// the key with the most sessions is first. `refresh` adds the usage of running sessions, which so
    /// far is only in their transcripts.
    pub fn stats(
        &self,
        by: StatsBy,
        query: &SessionQuery,
        refresh: impl FnOnce(&mut [Record]),
    ) -> Result<Vec<SessionTally>> {
        let now = self.clock.now().as_millisecond();
        let mut tallies = self.ask(|index| tally(index, by, query, now))?;
        self.divide(by, query, &mut tallies)?;
        self.add_running(by, query, &mut tallies, refresh)?;
        Ok(tallies)
    }

    /// Counts only its share of a session that had several items, if the query names one item.
    fn divide(
        &self,
        by: StatsBy,
        query: &SessionQuery,
        tallies: &mut [SessionTally],
    ) -> Result<()> {
        let Some(item) = &query.work else {
            return Ok(());
        };
        let all = SessionQuery {
            status: Some(SessionStatus::Stopped.as_str().to_owned()),
            limit: None,
            ..query.clone()
        };
        for mut session in self.ask(|index| query::find(index, &all))? {
            let Some(all) = session.usage.take_if(|_| session.earlier_work.is_some()) else {
                continue;
            };
            session.usage = Some(all.clone());
            let others = session.share_of(item).usage.map(|share| all - &share);
            let key = by.key(&session).unwrap_or_default();
            let tally = tallies.iter_mut().find(|tally| tally.key == key);
            if let (Some(tally), Some(others)) = (tally, others) {
                tally.tokens = tally.tokens.saturating_sub(others.tokens());
                let rest = |cost: f64| (cost - others.cost_usd.unwrap_or_default()).max(0.0);
                tally.cost_usd = tally.cost_usd.map(rest);
            }
        }
        Ok(())
    }

    /// Adds the usage of running sessions.
    fn add_running(
        &self,
        by: StatsBy,
        query: &SessionQuery,
        tallies: &mut [SessionTally],
        refresh: impl FnOnce(&mut [Record]),
    ) -> Result<()> {
        if tallies.iter().all(|tally| tally.running == 0) {
            return Ok(());
        }
        let mut running = self.find(&SessionQuery {
            status: Some(SessionStatus::Running.as_str().to_owned()),
            limit: None,
            ..query.clone()
        })?;
        refresh(&mut running);
        let mut places: HashMap<String, &mut SessionTally> = tallies
            .iter_mut()
            .map(|tally| (tally.key.clone(), tally))
            .collect();
        for session in running {
            let key = by.key(&session).unwrap_or_default();
            let used = match &query.work {
                Some(item) => session.share_of(item).usage,
                None => session.usage,
            };
            if let (Some(tally), Some(used)) = (places.get_mut(&key), &used) {
                tally.tokens += used.tokens();
                let cost = tally.cost_usd.into_iter().chain(used.cost_usd);
                tally.cost_usd = cost.reduce(|a, b| a + b);
            }
        }
        Ok(())
    }
}

/// Adds up the index. The stored usage of running sessions is not counted: their transcripts are
/// more recent.
fn tally(
    index: &Index,
    by: StatsBy,
    query: &SessionQuery,
    now: i64,
) -> Result<Vec<SessionTally>, IndexError> {
    let (filter, mut values) = conditions(query);
    let order = if by == StatsBy::Day { "1" } else { "2 DESC, 1" };
    values.push(Value::from(now));
    let outcomes = Outcome::ALL.map(|outcome| format!("sum(outcome = '{}')", outcome.as_str()));
    let text = format!(
        "SELECT coalesce({}, ''), count(*), sum(status = 'running'),
         sum(max(coalesce(ended, ?{now}) - started, 0)) / 1000,
         sum(iif(status = 'running', 0, tokens)), sum(iif(status = 'running', NULL, cost)),
         sum(commits), {outcomes}
         FROM lives {filter} GROUP BY 1 ORDER BY {order}",
        by.column(),
        now = values.len(),
        outcomes = outcomes.join(", "),
    );
    let mut statement = index.db().prepare(&text)?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), |row| {
        let count = |place: usize| {
            row.get::<_, Option<u64>>(place)
                .map(Option::unwrap_or_default)
        };
        let mut outcomes = [0; Outcome::ALL.len()];
        for (place, number) in (7..).zip(&mut outcomes) {
            *number = count(place)?;
        }
        Ok(SessionTally {
            key: row.get(0)?,
            sessions: count(1)?,
            running: count(2)?,
            outcomes,
            seconds: row.get::<_, Option<i64>>(3)?.unwrap_or_default(),
            tokens: count(4)?,
            cost_usd: row.get(5)?,
            commits: count(6)?,
        })
    })?;
    rows.map(|row| Ok(row?)).collect()
}
