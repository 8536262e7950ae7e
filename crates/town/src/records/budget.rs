//! Budgets on disk: `[budget]` in the settings, raises, and the present spending.
//!
//! `.runtime/budget.json` has the raises, and the levels that people were notified of. A process
//! that changes it holds `.runtime/budget.lock`.

use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::time;
use crate::records::sessions::{Sessions, Spending};
use crate::records::usage;
use crate::{Result, Town};
use gt_core::budget::{self, Budget, BudgetLevel, BudgetLimits, BudgetScope, Raise};
use gt_core::{Identity, Problem};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for another change of the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The content of `.runtime/budget.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetNotes {
    pub raises: Vec<Raise>,
    /// Budgets above [`BudgetLevel::Ok`] that people were notified of.
    pub told: BTreeMap<BudgetScope, NotifiedLevel>,
}

/// A level that people were notified of, and the local day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotifiedLevel {
    pub level: BudgetLevel,
    pub day: String,
}

impl BudgetNotes {
    pub fn read(town: &Town) -> Result<Self> {
        let path = path(town);
        let Some(text) = files::read_if_there(&path)? else {
            return Ok(BudgetNotes::default());
        };
        serde_json::from_str(&text).map_err(|error| {
            Problem::failed(format!("{} cannot be read", path.display()))
                .caused_by(error)
                .hint("remove it: raises of budgets are lost then")
        })
    }

    /// Replaces the file. The caller holds [`lock`].
    pub fn write(&self, town: &Town) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Problem::failed("cannot write the budgets").caused_by(error))?;
        files::write_whole(&path(town), &text)
    }
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("budget.json")
}

/// Takes the lock of the file.
pub fn lock(town: &Town) -> Result<FileLock> {
    FileLock::take(&town.runtime_dir().join("budget.lock"), LOCK_TIMEOUT)
}

/// Returns whether any budget is set.
pub fn is_set(town: &Town) -> bool {
    let settings = town.settings();
    let mut rigs = settings.rigs.values();
    settings.budget.is_set() || rigs.any(|rig| rig.budget.is_set())
}

/// Returns the limits for a rig, or for agents of no rig.
pub fn limits(town: &Town, rig: Option<&str>) -> BudgetLimits {
    let settings = town.settings();
    let own = rig.and_then(|rig| settings.rigs.get(rig));
    match own {
        Some(own) => settings.budget.overridden_by(&own.budget),
        None => settings.budget.clone(),
    }
}

/// Returns the present local day.
pub fn today(town: &Town) -> String {
    time::local_day(&town.clock().text()).unwrap_or_default()
}

/// Returns the spending of the present local day, with that of running sessions.
pub fn spent_today(town: &Town) -> Result<Spending> {
    Sessions::of(town).spending(&today(town), &[], |running| {
        usage::refresh(town, running);
    })
}

/// Returns the whole spending on items, with that of running sessions.
pub fn spent_on(town: &Town, items: &[String]) -> Result<BTreeMap<String, f64>> {
    let spending = Sessions::of(town).spending(&today(town), items, |running| {
        usage::refresh(town, running);
    })?;
    let mut spent = spending.items;
    spent.retain(|item, _| items.contains(item));
    Ok(spent)
}

/// Budgets with their spending.
#[derive(Clone, Debug, Default)]
pub struct Budgets {
    pub all: Vec<Budget>,
    pub spending: Spending,
}

impl Budgets {
    /// Sums the spending of all scopes that have a limit. `items` are items in addition to those of
    /// running agents.
    pub fn read(town: &Town, notes: &BudgetNotes, items: &[String]) -> Result<Self> {
        let spending = Sessions::of(town).spending(&today(town), items, |running| {
            usage::refresh(town, running);
        })?;
        let mut all = Vec::new();
        let mut add = |scope: BudgetScope, spent: f64, rig: Option<&str>| {
            let limits = limits(town, rig);
            if let Some(limit) = limits.of(&scope) {
                let limit = limit + budget::raised_usd(&notes.raises, &scope, &spending.today);
                all.push(Budget::new(scope, spent, limit, limits.warn_share()));
            }
        };
        add(BudgetScope::Day, spending.day, None);
        let rigs = town.registry().rigs.keys().map(String::as_str);
        let rigs: BTreeSet<&str> = rigs
            .chain(spending.rigs.keys().map(String::as_str))
            .collect();
        for rig in rigs {
            let spent = spending.rigs.get(rig).copied().unwrap_or_default();
            add(BudgetScope::Rig(rig.to_owned()), spent, Some(rig));
        }
        for (agent, spent) in &spending.agents {
            let rig = spending.rig_of.get(agent).map(String::as_str);
            add(BudgetScope::Agent(agent.clone()), *spent, rig);
        }
        for (item, spent) in &spending.items {
            let rig = town.registry().split(item).map(|(rig, _)| rig);
            add(BudgetScope::Item(item.clone()), *spent, rig);
        }
        Ok(Budgets { all, spending })
    }

    /// Returns the first exhausted budget that an agent, with its item, is under.
    pub fn exhausted(&self, agent: &str, rig: Option<&str>, item: Option<&str>) -> Option<&Budget> {
        self.all.iter().find(|budget| {
            budget.level == BudgetLevel::Exhausted
                && match &budget.scope {
                    BudgetScope::Day => true,
                    BudgetScope::Rig(own) => Some(own.as_str()) == rig,
                    BudgetScope::Agent(own) => own == agent,
                    BudgetScope::Item(own) => Some(own.as_str()) == item,
                }
        })
    }
}

/// Fails if a budget that an agent or an item is under is exhausted. Reads nothing if no budget is
/// set.
pub fn refuse_exhausted(
    town: &Town,
    agent: Option<&Identity>,
    rig: Option<&str>,
    item: Option<&str>,
) -> Result<()> {
    if !is_set(town) {
        return Ok(());
    }
    let notes = BudgetNotes::read(town)?;
    let items: Vec<String> = item.into_iter().map(str::to_owned).collect();
    let budgets = Budgets::read(town, &notes, &items)?;
    let address = agent.map(Identity::address).unwrap_or_default();
    let rig = rig.or_else(|| agent.and_then(Identity::rig));
    match budgets.exhausted(&address, rig, item) {
        Some(budget) => Err(problem(budget)),
        None => Ok(()),
    }
}

fn problem(budget: &Budget) -> Problem {
    let scope = &budget.scope;
    let today = if scope.is_daily() { " --today" } else { "" };
    Problem::conflict(format!(
        "the budget of {} is exhausted: {}",
        scope.describe(),
        budget.figures()
    ))
    .hint(format!("`gt budget raise {scope} AMOUNT{today}` raises it"))
}
