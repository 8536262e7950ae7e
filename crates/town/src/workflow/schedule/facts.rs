//! Collects the facts for [`gt_core::schedule::plan`].

use super::pause;
use crate::agents::account::{self, Account};
use crate::base::{estop, processes};
use crate::catalog::{harnesses, roles};
use crate::records::budget;
use crate::records::items::{QueuedAssignment, Work};
use crate::terminal::containers::Container;
use crate::workflow::polecat::TownSnapshot;
use crate::{Result, Town};
use gt_core::schedule::{
    self, AssignmentOptions, RunningAgent, ScheduleFacts, ScheduleLimits, StartPlan,
    WaitingAssignment,
};
use gt_core::work::{Item, ItemStatus, WorkId};
use gt_core::{Identity, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The queue, the running agents and the limits at one moment.
pub(crate) struct ScheduleSnapshot {
    /// The entries as stored, in the order of the queue.
    pub(crate) entries: Vec<QueuedAssignment>,
    pub(crate) queue: Vec<WaitingAssignment>,
    pub(crate) running: Vec<RunningAgent>,
    pub(crate) limits: ScheduleLimits,
    closed_rigs: BTreeMap<String, String>,
    /// Addresses of the agents that run.
    alive: BTreeSet<String>,
    accounts: Vec<Account>,
}

impl ScheduleSnapshot {
    pub(crate) fn read(town: &Town) -> Result<Self> {
        let settings = town.settings();
        let limits = ScheduleLimits {
            polecats: settings.limits.polecats,
            polecats_per_rig: settings.limits.polecats_per_rig,
            harnesses: settings.schedule.harnesses.clone(),
            accounts: settings.schedule.accounts.clone(),
            max_load: settings.schedule.max_load,
            start_spacing: i64::try_from(settings.schedule.start_spacing.0).unwrap_or(i64::MAX),
        };
        let rigs = &town.registry().rigs;
        let closed = rigs
            .iter()
            .filter_map(|(name, entry)| Some((name.clone(), entry.service()?.to_owned())));
        let stopped = estop::all(town).into_iter();
        let stopped = stopped.filter_map(|note| Some((note.rig?, "stopped".to_owned())));
        let entries = Work::of(town).queued_assignments()?;
        let town_now = TownSnapshot::read(town)?;
        let mut snapshot = ScheduleSnapshot {
            queue: Vec::new(),
            running: Vec::new(),
            closed_rigs: closed.chain(stopped).collect(),
            alive: town_now
                .alive()
                .filter_map(|container| Some(container.identity()?.address()))
                .collect(),
            accounts: match limits.accounts.is_empty() {
                true => Vec::new(),
                false => account::list(town)?,
            },
            limits,
            entries: Vec::new(),
        };
        snapshot.count_running(town, &town_now, &entries)?;
        for entry in &entries {
            let waiting = snapshot.waiting(town, entry)?;
            snapshot.queue.push(waiting);
        }
        snapshot.entries = entries;
        Ok(snapshot)
    }

    pub(crate) fn is_running(&self, address: &str) -> bool {
        self.alive.contains(address)
    }

    /// Adds an item behind the queue that is not stored there.
    pub(super) fn add(
        &mut self,
        town: &Town,
        item: &Item,
        rig: &str,
        options: &AssignmentOptions,
    ) -> Result<()> {
        self.queue.retain(|entry| entry.item != item.id);
        let (harness, account) = self.needs(town, rig, options)?;
        let number = i64::try_from(self.queue.len()).unwrap_or(i64::MAX);
        self.queue.push(WaitingAssignment {
            item: item.id.clone(),
            rig: rig.to_owned(),
            priority: item.priority,
            // Behind all stored entries.
            number: i64::MAX.saturating_sub(1_000_000).saturating_add(number),
            harness,
            account,
            blockers: Vec::new(),
            is_blocked: false,
            refused: None,
            not_before: None,
        });
        Ok(())
    }

    /// Moves an entry from the queue to the running agents.
    pub(crate) fn occupy(&mut self, item: &WorkId) {
        let Some(place) = self.queue.iter().position(|entry| entry.item == *item) else {
            return;
        };
        let entry = self.queue.remove(place);
        self.running.push(RunningAgent {
            polecat_of: Some(entry.rig),
            harness: entry.harness,
            account: entry.account,
        });
    }

    pub(crate) fn plan(&self, town: &Town) -> StartPlan {
        let load = match self.limits.max_load {
            Some(_) => processes::load_per_processor(),
            None => None,
        };
        schedule::plan(&ScheduleFacts {
            queue: &self.queue,
            running: &self.running,
            limits: &self.limits,
            load,
            closed_rigs: &self.closed_rigs,
            last_start: pause::last_start(town),
            now: town.clock().seconds(),
        })
    }

    /// Counts the agents that occupy slots. The holder of a queued item that is due is counted when
    /// it starts.
    fn count_running(
        &mut self,
        town: &Town,
        town_now: &TownSnapshot,
        entries: &[QueuedAssignment],
    ) -> Result<()> {
        let now = town.clock().seconds();
        let is_due = |entry: &&QueuedAssignment| not_before(entry).is_none_or(|at| at <= now);
        let queued: BTreeSet<&str> = entries
            .iter()
            .filter(is_due)
            .filter_map(|entry| entry.holder.as_deref())
            .collect();
        let busy = town_now.busy_polecats(town)?;
        for container in town_now.alive() {
            let Some(agent) = container.identity() else {
                continue;
            };
            let harness = container.pane().tag_harness.clone();
            let account = self.account_of(container);
            self.running.push(RunningAgent {
                polecat_of: rig_of_polecat(agent),
                harness,
                account,
            });
        }
        for agent in busy {
            let address = agent.address();
            if self.is_running(&address) || queued.contains(&*address) {
                continue;
            }
            let rig = agent.rig().unwrap_or_default().to_owned();
            let (harness, account) = self.needs(town, &rig, &AssignmentOptions::default())?;
            self.running.push(RunningAgent {
                polecat_of: Some(rig),
                harness,
                account,
            });
        }
        Ok(())
    }

    fn waiting(&self, town: &Town, entry: &QueuedAssignment) -> Result<WaitingAssignment> {
        let (harness, account) = self.needs(town, &entry.rig, &entry.options)?;
        // A started assignment has passed the check, and `--force` skips it.
        let is_free = entry.options.force || entry.holder.is_some();
        Ok(WaitingAssignment {
            item: entry.item.id.clone(),
            rig: entry.rig.clone(),
            priority: entry.item.priority,
            number: entry.number,
            harness,
            account,
            blockers: match is_free {
                true => Vec::new(),
                false => entry.blockers.clone(),
            },
            is_blocked: entry.item.status == ItemStatus::Blocked && !is_free,
            refused: {
                let id = entry.item.id.as_str();
                let refused = budget::refuse_exhausted(town, None, Some(&entry.rig), Some(id));
                refused.err().map(|problem| problem.message().to_owned())
            },
            not_before: not_before(entry),
        })
    }

    /// Returns the harness and the account of a new polecat.
    fn needs(
        &self,
        town: &Town,
        rig: &str,
        options: &AssignmentOptions,
    ) -> Result<(String, Option<String>)> {
        let role = roles::resolve(town, Role::Polecat, Some(rig))?.value;
        let harness = harnesses::choose(town, options.harness.as_deref(), &role);
        let is_default = |account: &&Account| account.default_for.contains(&harness);
        let default = self.accounts.iter().find(is_default);
        let default = default.map(|account| account.account.clone());
        Ok((harness, options.account.clone().or(default)))
    }

    /// Returns the account of a running agent; `None` if it uses none.
    fn account_of(&self, container: &Container) -> Option<String> {
        if self.accounts.is_empty() {
            return None;
        }
        let folder = container.config_dir()?;
        let account = Account::with_folder(&self.accounts, Path::new(&folder))?;
        Some(account.account.clone())
    }
}

/// Returns the time of the next attempt, in seconds since the epoch; `None` means at once.
fn not_before(entry: &QueuedAssignment) -> Option<i64> {
    let at = entry.not_before.as_deref()?.parse::<jiff::Timestamp>();
    at.ok().map(jiff::Timestamp::as_second)
}

fn rig_of_polecat(agent: &Identity) -> Option<String> {
    let is_polecat = agent.role() == Role::Polecat;
    agent.rig().filter(|_| is_polecat).map(str::to_owned)
}
