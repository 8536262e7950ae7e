//! The first phase: chooses the polecat for an item, with its worktree and its hook.
//!
//! All of it runs under the rig's lock, so that concurrent processes see each other's results. The
//! worktree comes before the hook: an item is never on the hook of a polecat without a folder. A
//! chosen polecat stays claimed until it has been started.

use super::SlingError;
use super::assignment::Assignment;
use super::steps::SlingChanges;
use crate::Result;
use crate::base::fault;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::catalog::directory;
use crate::lifecycle::start;
use crate::lifecycle::stop::{self, StopOptions};
use crate::records::items::Work;
use crate::repo::workspace::{self, Placed};
use crate::workflow::polecat::{TownSnapshot, claim, work_dir};
use gt_core::{Identity, Problem, Role, polecat};

/// Result of an allocation.
pub(super) enum Allocation {
    /// This polecat has the item on its hook, and its worktree is on the branch.
    New {
        agent: Identity,
        placed: Placed,
        reused: bool,
        claim: FileLock,
    },
    /// An agent already has the item.
    HeldBy(String),
    /// The requested polecat is running.
    Runs(Identity, TownSnapshot),
}

struct ChosenPolecat {
    agent: Identity,
    reused: bool,
    claim: FileLock,
}

impl Assignment<'_> {
    pub(super) fn allocate(
        &self,
        rig: &str,
        wanted: Option<&Identity>,
    ) -> Result<Allocation, SlingError> {
        let town = self.town;
        let _rig = claim::rig(town, rig)?;
        town.around().cancel.check()?;
        if let Some(holder) = Work::of(town).holder(&self.item.id)? {
            return Ok(Allocation::HeldBy(holder));
        }
        let snapshot = TownSnapshot::read(town)?;
        let choice = match wanted {
            Some(agent) if snapshot.is_running(agent) => {
                return Ok(Allocation::Runs(agent.clone(), snapshot));
            }
            Some(agent) => self.this_one(&snapshot, agent)?,
            None => self.choose(&snapshot, rig)?,
        };
        let agent = &choice.agent;
        if let Some(refusal) = snapshot.refusal(town, agent)? {
            return Err(SlingError::Full(refusal));
        }
        // Check harness, program and role before anything is created.
        start::check(town, agent, self.start)?;
        fault::point(town, "sling.allocated");
        if snapshot.container(agent).is_some() {
            // It died after its last item; the new item must not continue that chain of respawns.
            let options = StopOptions {
                force: true,
                ..StopOptions::default()
            };
            stop::stop_one(town, agent, options)?;
        }
        let dir = work_dir(town, agent)?;
        let branch = workspace::work_branch(agent, &self.item.id);
        let placed = workspace::place(town, agent, &dir, &branch)?;
        fault::point(town, "sling.placed");
        if let Err(error) = self.admit_and_hook(agent, placed.made_folder) {
            let made = SlingChanges {
                placed: Some(placed),
                ..SlingChanges::default()
            };
            return Err(error.map(|problem| self.take_back(agent, &made, problem)));
        }
        Ok(Allocation::New {
            agent: choice.agent,
            placed,
            reused: choice.reused,
            claim: choice.claim,
        })
    }

    /// Counts again and hooks the item under one lock: calls for other rigs hold only the lock of
    /// their rig. The containers are read again, too: a polecat may have been started since, and
    /// still run although it has finished its item. Fails if other calls have taken the last
    /// slot, or the item.
    fn admit_and_hook(&self, agent: &Identity, is_new: bool) -> Result<(), SlingError> {
        let _count = claim::lock_count(self.town)?;
        self.town.around().cancel.check()?;
        let refusal = TownSnapshot::read(self.town)?.refusal(self.town, agent)?;
        if let Some(refusal) = refusal {
            return Err(SlingError::Full(refusal));
        }
        self.hook(agent)?;
        if is_new {
            self.event("spawn", "polecat", agent);
        }
        Ok(())
    }

    /// Returns a free polecat, or a new one. Prefers a polecat with a branch for this item.
    fn choose(&self, snapshot: &TownSnapshot, rig: &str) -> Result<ChosenPolecat> {
        let town = self.town;
        let mut known = directory::workers(town, rig, Role::Polecat);
        known.retain(|agent| Some(agent) != self.options.avoid.as_ref());
        let has_branch = |agent: &Identity| {
            let branch = workspace::work_branch(agent, &self.item.id);
            let branches = workspace::branches(town, agent);
            let branches = branches.or_warn(format_args!("branches of {agent} are not found"));
            branches.is_some_and(|all| all.iter().any(|(name, _)| *name == branch))
        };
        known.sort_by_cached_key(|agent| !has_branch(agent));
        for agent in known {
            if let Some(claim) = self.is_free(snapshot, &agent)? {
                return Ok(ChosenPolecat {
                    agent,
                    reused: true,
                    claim,
                });
            }
        }
        self.new_one(snapshot, rig)
    }

    /// Claims an existing polecat if it is free.
    fn is_free(&self, snapshot: &TownSnapshot, agent: &Identity) -> Result<Option<FileLock>> {
        let town = self.town;
        if snapshot.is_running(agent)
            || snapshot.bead(agent).is_some()
            || FileLock::is_held(&town.lock_path(agent))
        {
            return Ok(None);
        }
        let dir = work_dir(town, agent)?;
        // If it has worked on this item, the changes in its worktree belong to the item.
        let due = workspace::work_branch(agent, &self.item.id);
        let is_back =
            workspace::current_branch(town, &dir) == Some(due) && !workspace::is_unfinished(&dir);
        if !is_back && !workspace::is_settled(town, &dir)? {
            return Ok(None);
        }
        claim::try_agent(town, agent)
    }

    fn new_one(&self, snapshot: &TownSnapshot, rig: &str) -> Result<ChosenPolecat> {
        let town = self.town;
        let pool = town.settings().polecats.pool(rig)?;
        // `rig/name` resolves to a crew worker first, and file systems may ignore case.
        let mut taken: Vec<String> = [Role::Crew, Role::Polecat]
            .iter()
            .flat_map(|role| directory::workers(town, rig, *role))
            .map(|agent| agent.short_name().to_ascii_lowercase())
            .collect();
        loop {
            let name = polecat::free_name(&pool, |name| {
                let agent = Identity::polecat(rig, name);
                !taken.contains(&name.to_ascii_lowercase())
                    && agent.check_new(town.registry()).is_ok()
                    && snapshot.bead(&agent).is_none()
                    && snapshot.container(&agent).is_none()
            });
            let name = name.ok_or_else(|| {
                Problem::conflict(format!("the rig {rig} has no free name for a polecat"))
                    .hint("`gt polecat gc --older-than 0s` removes those that are free")
            })?;
            let agent = Identity::polecat(rig, name.clone());
            // A held claim means that another process is removing a polecat of that name.
            if let Some(claim) = claim::try_agent(town, &agent)? {
                return Ok(ChosenPolecat {
                    agent,
                    reused: false,
                    claim,
                });
            }
            taken.push(name.to_ascii_lowercase());
        }
    }

    /// Claims the requested polecat, which is not running.
    fn this_one(&self, snapshot: &TownSnapshot, agent: &Identity) -> Result<ChosenPolecat> {
        let town = self.town;
        agent.check_new(town.registry())?;
        if let Some(bead) = snapshot.bead(agent) {
            return Err(Problem::conflict(format!("{agent} has {bead} on its hook"))
                .hint(format!("`gt unhook --agent {agent}` takes it off")));
        }
        let is_there = work_dir(town, agent)?.exists();
        let claim = match is_there {
            true => self.is_free(snapshot, agent)?,
            false => claim::try_agent(town, agent)?,
        };
        let claim = claim.ok_or_else(|| {
            Problem::conflict(format!("{agent} is not free")).hint(
                "`gt polecat show` shows its worktree; another process may be assigning work to it",
            )
        })?;
        Ok(ChosenPolecat {
            agent: agent.clone(),
            reused: is_there,
            claim,
        })
    }
}
