//! Costs of sessions by day, item, agent, model or rig.
//!
//! The index answers with sums; no transcript of an ended session is read. Archived sessions count.
//! Usage of running sessions is not in the index yet, so the caller refreshes those.

use super::index::{Index, IndexError};
use super::{SessionQuery, Sessions, query};
use crate::Result;
use crate::base::time;
use gt_core::record::{Record, SessionStatus};
use gt_core::usage::{DailyUsage, Usage};
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};

/// Key by which costs are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostsBy {
    /// Local day on which the tokens were used.
    Day,
    Item,
    Agent,
    Model,
    Rig,
}

impl CostsBy {
    pub fn as_str(self) -> &'static str {
        match self {
            CostsBy::Day => "day",
            CostsBy::Item => "item",
            CostsBy::Agent => "agent",
            CostsBy::Model => "model",
            CostsBy::Rig => "rig",
        }
    }
}

/// Sum of tokens and costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostSum {
    pub tokens: u64,
    /// Tokens that are not included in the cost.
    pub unpriced_tokens: u64,
    pub cost_usd: Option<f64>,
}

impl CostSum {
    fn add(&mut self, tokens: u64, unpriced: u64, cost: Option<f64>) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(unpriced);
        let costs = self.cost_usd.into_iter().chain(cost);
        self.cost_usd = costs.reduce(|a, b| a + b);
    }

    /// Returns the cost; 0 if no token has a price.
    pub fn dollars(&self) -> f64 {
        self.cost_usd.unwrap_or_default()
    }
}

/// Costs by key. The key of usage without one, such as an agent of no rig, is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    pub rows: BTreeMap<String, CostSum>,
    pub total: CostSum,
    /// Models without a price.
    pub unpriced_models: BTreeSet<String>,
}

impl Costs {
    fn add(&mut self, key: &str, model: Option<&str>, (tokens, unpriced, cost): Figures) {
        if tokens == 0 {
            return;
        }
        let row = self.rows.entry(key.to_owned()).or_default();
        row.add(tokens, unpriced, cost);
        self.total.add(tokens, unpriced, cost);
        if let Some(model) = model.filter(|model| unpriced > 0 && !model.is_empty()) {
            self.unpriced_models.insert(model.to_owned());
        }
    }

    fn add_usage(&mut self, key: &str, usage: &Usage) {
        let figures = (usage.tokens(), usage.unpriced_tokens, usage.cost_usd);
        self.add(key, usage.model.as_deref(), figures);
    }

    /// Adds a session whose usage is not in the index.
    fn add_session(&mut self, by: CostsBy, since: &str, session: &Record) {
        let Some(usage) = &session.usage else {
            return;
        };
        let parts = daily(session, usage);
        if by == CostsBy::Item {
            if parts.iter().any(|part| part.day.as_str() >= since) {
                self.add_items(session);
            }
            return;
        }
        for part in parts.iter().filter(|part| part.day.as_str() >= since) {
            let key = match by {
                CostsBy::Day => Some(part.day.as_str()),
                CostsBy::Agent => session.agent.as_deref(),
                CostsBy::Rig => session.rig.as_deref(),
                CostsBy::Model | CostsBy::Item => part.model.as_deref(),
            };
            let figures = (part.tokens, part.unpriced_tokens, part.cost_usd);
            self.add(key.unwrap_or_default(), part.model.as_deref(), figures);
        }
    }

    /// Adds the share of each item of a session.
    fn add_items(&mut self, session: &Record) {
        let earlier = session.earlier_work.iter().flatten();
        let earlier = earlier.map(|entry| entry.work_unit.as_str());
        let present = session.work_unit.as_deref();
        let items: BTreeSet<&str> = earlier.chain(present).collect();
        for item in &items {
            let share = session.share_of(item);
            // An unknown share would count the total once for each item.
            let is_counted = !share.is_undivided || present == Some(item);
            if let Some(usage) = share.usage.filter(|_| is_counted) {
                self.add_usage(item, &usage);
            }
        }
        if let (true, Some(usage)) = (items.is_empty(), &session.usage) {
            self.add_usage("", usage);
        }
    }
}

/// Tokens, tokens without a price, and cost.
type Figures = (u64, u64, Option<f64>);

/// Returns the usage of a session by day and model.
pub(super) fn daily(session: &Record, usage: &Usage) -> Vec<DailyUsage> {
    session.daily.clone().unwrap_or_else(|| {
        let started = session.started_at.as_deref().and_then(time::local_day);
        vec![DailyUsage::of(&started.unwrap_or_default(), usage)]
    })
}

impl Sessions {
    /// Returns the costs since a local day (`2026-11-17`), or all costs. An item counts whole
    /// sessions that were used since that day. `refresh` adds the usage of running sessions, which
    /// so far is only in their transcripts.
    pub fn costs(
        &self,
        by: CostsBy,
        since_day: Option<&str>,
        refresh: impl FnOnce(&mut [Record]),
    ) -> Result<Costs> {
        let since = since_day.unwrap_or_default();
        let mut costs = self.ask(|index| match by {
            CostsBy::Item => by_item(index, since),
            _ => by_column(index, by, since),
        })?;
        let mut running = self.running()?;
        refresh(&mut running);
        for session in &running {
            costs.add_session(by, since, session);
        }
        Ok(costs)
    }

    /// Returns the running sessions.
    pub fn running(&self) -> Result<Vec<Record>> {
        self.find(&SessionQuery {
            status: Some(SessionStatus::Running.as_str().to_owned()),
            ..SessionQuery::default()
        })
    }
}

/// Usage of ended sessions by day and model. `?1` is the first day, `?2` the millisecond at which it
/// begins.
pub(super) const FACTS: &str = "
WITH facts (day, agent, rig, model, tokens, unpriced, cost) AS (
    SELECT date(started / 1000, 'unixepoch', 'localtime'), agent, rig, coalesce(model, ''),
        tokens, unpriced, cost
    FROM lives WHERE started >= ?2 AND tokens > 0 AND status IS NOT 'running'
        AND NOT EXISTS (SELECT 1 FROM daily WHERE daily.id = lives.id)
    UNION ALL SELECT day, agent, rig, model, tokens, unpriced, cost
    FROM daily WHERE day >= ?1
        AND NOT EXISTS (SELECT 1 FROM lives WHERE lives.id = daily.id AND status = 'running')
)";

fn by_column(index: &Index, by: CostsBy, since: &str) -> Result<Costs, IndexError> {
    let text = format!(
        "{FACTS} SELECT coalesce({}, ''), model, sum(tokens), sum(unpriced), sum(cost)
         FROM facts GROUP BY 1, 2",
        by.as_str()
    );
    let mut query = index.db().prepare(&text)?;
    let mut rows = query.query(params![since, begin_of(since)])?;
    let mut costs = Costs::default();
    while let Some(row) = rows.next()? {
        let (key, model): (String, String) = (row.get(0)?, row.get(1)?);
        let unpriced = row.get::<_, Option<u64>>(3)?.unwrap_or_default();
        costs.add(&key, Some(&model), (row.get(2)?, unpriced, row.get(4)?));
    }
    Ok(costs)
}

/// Sums whole sessions by item. Only sessions that had several items, and archived ones, are read
/// from their records.
fn by_item(index: &Index, since: &str) -> Result<Costs, IndexError> {
    let mut costs = Costs::default();
    let mut query = index.db().prepare(
        "SELECT coalesce(work_unit, ''), coalesce(model, ''), sum(tokens), sum(unpriced), sum(cost)
         FROM lives WHERE coalesce(ended, started) >= ?1 AND tokens > 0
             AND status IS NOT 'running'
             AND id NOT IN (SELECT id FROM earlier_work)
         GROUP BY 1, 2",
    )?;
    let mut rows = query.query([begin_of(since)])?;
    while let Some(row) = rows.next()? {
        let (key, model): (String, String) = (row.get(0)?, row.get(1)?);
        let unpriced = row.get::<_, Option<u64>>(3)?.unwrap_or_default();
        costs.add(&key, Some(&model), (row.get(2)?, unpriced, row.get(4)?));
    }
    for session in query::with_several_items(index, begin_of(since))? {
        costs.add_items(&session);
    }
    for session in query::usage_of_archived(index, since)? {
        costs.add_items(&session);
    }
    Ok(costs)
}

/// Returns the millisecond at which a local day begins. Returns the earliest time if the text is
/// not a date.
pub(super) fn begin_of(day: &str) -> i64 {
    let begin = |day: &str| {
        let date: jiff::civil::Date = day.parse().ok()?;
        let begin = date.to_zoned(jiff::tz::TimeZone::system()).ok()?;
        Some(begin.timestamp().as_millisecond())
    };
    begin(day).unwrap_or(i64::MIN)
}
