//! Spending of a day and of items, for budgets.

use super::costs::begin_of;
use super::index::{Index, IndexError};
use super::{Sessions, costs};
use crate::Result;
use gt_core::record::Record;
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};

/// Spending in US dollars, with that of running sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    /// The local day of `day`, `rigs` and `agents`.
    pub today: String,
    pub day: f64,
    pub rigs: BTreeMap<String, f64>,
    pub agents: BTreeMap<String, f64>,
    /// Rigs of the agents in `agents`.
    pub rig_of: BTreeMap<String, String>,
    /// Whole spending of the items that were asked for, and of those in `work`.
    pub items: BTreeMap<String, f64>,
    /// The present item of each running agent.
    pub work: BTreeMap<String, String>,
}

impl Spending {
    fn add(&mut self, agent: Option<&str>, rig: Option<&str>, cost: f64) {
        self.day += cost;
        if let Some(rig) = rig {
            *self.rigs.entry(rig.to_owned()).or_default() += cost;
        }
        if let Some(agent) = agent {
            *self.agents.entry(agent.to_owned()).or_default() += cost;
            if let Some(rig) = rig {
                self.rig_of.insert(agent.to_owned(), rig.to_owned());
            }
        }
    }
}

impl Sessions {
    /// Returns the spending of `today` and of items. `refresh` adds the usage of running sessions,
    /// which so far is only in their transcripts.
    pub fn spending(
        &self,
        today: &str,
        items: &[String],
        refresh: impl FnOnce(&mut [Record]),
    ) -> Result<Spending> {
        let mut spending = self.ask(|index| ended_today(index, today))?;
        let mut running = self.running()?;
        let work = running
            .iter()
            .filter_map(|session| Some((session.agent.clone()?, session.work_unit.clone()?)));
        spending.work = work.collect();
        let all: BTreeSet<&str> = items
            .iter()
            .chain(spending.work.values())
            .map(String::as_str)
            .collect();
        let sums = self.usage_by_work(all.iter().copied())?;
        let cost_of = |session: &Record, item: &str| {
            let usage = session.share_of(item).usage;
            usage.and_then(|usage| usage.cost_usd).unwrap_or_default()
        };
        let mut totals: BTreeMap<String, f64> = BTreeMap::new();
        for item in all {
            let ended = sums.get(item).and_then(|usage| usage.cost_usd);
            // The sum has the usage of running sessions as it was last written.
            let stale: f64 = running.iter().map(|session| cost_of(session, item)).sum();
            totals.insert(item.to_owned(), ended.unwrap_or_default() - stale);
        }
        refresh(&mut running);
        for (item, total) in &mut totals {
            let present: f64 = running.iter().map(|session| cost_of(session, item)).sum();
            *total = (*total + present).max(0.0);
        }
        spending.items = totals;
        for session in &running {
            let Some(usage) = &session.usage else {
                continue;
            };
            let parts = costs::daily(session, usage).into_iter();
            let cost = parts
                .filter(|part| part.day.as_str() >= today)
                .filter_map(|part| part.cost_usd)
                .sum();
            spending.add(session.agent.as_deref(), session.rig.as_deref(), cost);
        }
        Ok(spending)
    }
}

fn ended_today(index: &Index, today: &str) -> Result<Spending, IndexError> {
    let text = format!(
        "{} SELECT agent, rig, sum(cost) FROM facts GROUP BY 1, 2",
        costs::FACTS
    );
    let mut query = index.db().prepare(&text)?;
    let mut rows = query.query(params![today, begin_of(today)])?;
    let mut spending = Spending {
        today: today.to_owned(),
        ..Spending::default()
    };
    while let Some(row) = rows.next()? {
        let (agent, rig): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
        let cost = row.get::<_, Option<f64>>(2)?.unwrap_or_default();
        spending.add(agent.as_deref(), rig.as_deref(), cost);
    }
    Ok(spending)
}
