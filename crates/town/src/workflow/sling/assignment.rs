//! The assignment of one item to an agent.

use super::allocate::Allocation;
use super::steps::SlingChanges;
use super::{SlingError, SlingOptions, Slung, held_by};
use crate::base::estop;
use crate::base::fault;
use crate::base::lock::FileLock;
use crate::catalog::{directory, roles};
use crate::lifecycle::start::{self, StartError, StartOptions};
use crate::messaging::nudge;
use crate::records::items::Work;
use crate::repo::rig;
use crate::repo::workspace::{self, Placed};
use crate::terminal::containers::Container;
use crate::workflow::polecat::{TownSnapshot, claim, work_dir};
use crate::{Result, Town};
use gt_core::nudge::Priority;
use gt_core::work::Item;
use gt_core::{Identity, Problem, ProblemKind, Role};
use std::path::Path;
use std::time::Duration;

/// Maximum number of attempts while the holder of the item keeps changing.
const ATTEMPTS: usize = 5;
/// Maximum wait for a busy agent before the message is left in its queue.
const NUDGE_TIMEOUT: Duration = Duration::from_secs(2);

/// One item to assign, with its options.
pub(super) struct Assignment<'a> {
    pub(super) town: &'a Town,
    pub(super) item: &'a Item,
    pub(super) options: &'a SlingOptions,
    pub(super) start: &'a StartOptions,
}

impl Assignment<'_> {
    pub(super) fn to_polecat(
        &self,
        rig: &str,
        wanted: Option<&Identity>,
    ) -> Result<Slung, SlingError> {
        rig::check_not_parked(self.town, rig)?;
        estop::check(self.town, Some(rig))?;
        for _ in 0..ATTEMPTS {
            match self.allocate(rig, wanted)? {
                Allocation::New {
                    agent,
                    placed,
                    reused,
                    claim,
                } => {
                    let made = SlingChanges {
                        hooked: true,
                        placed: Some(placed),
                        noted: None,
                        poured: false,
                    };
                    return self.finish(&agent, made, reused, claim);
                }
                Allocation::Runs(agent, snapshot) => {
                    return self.to_running(&snapshot, &agent);
                }
                Allocation::HeldBy(holder) => {
                    let agent = self
                        .of_this_rig(&holder, rig, wanted)
                        .map_err(SlingError::Taken)?;
                    // Another process may be starting this agent, or rolling back.
                    let claim = claim::agent(self.town, &agent)?;
                    if Work::of(self.town).holder(&self.item.id)? != Some(holder) {
                        continue;
                    }
                    return self.start_holder(&agent, claim);
                }
            }
        }
        Err(SlingError::Taken(self.concurrent_assignment()))
    }

    /// Returns the polecat that already has the item, if it matches the request.
    fn of_this_rig(&self, holder: &str, rig: &str, wanted: Option<&Identity>) -> Result<Identity> {
        let agent = Identity::from_address(holder, self.town.registry());
        let fits = |agent: &Identity| match wanted {
            Some(wanted) => agent == wanted,
            None => agent.role() == Role::Polecat && agent.rig() == Some(rig),
        };
        agent
            .filter(fits)
            .ok_or_else(|| held_by(&self.item.id, holder))
    }

    fn concurrent_assignment(&self) -> Problem {
        Problem::conflict(format!("another process is assigning {}", self.item.id))
            .hint("`gt work show` shows who has it now")
    }

    /// Starts an agent that already has the item on its hook, unless it is running.
    fn start_holder(&self, agent: &Identity, claim: FileLock) -> Result<Slung, SlingError> {
        // A dead polecat does not count. The claim makes it count from here on.
        let count = match self.options.no_start {
            true => None,
            false => Some(claim::lock_count(self.town)?),
        };
        let snapshot = TownSnapshot::read(self.town)?;
        if snapshot.is_running(agent) {
            if self.options.args.is_some() {
                let words = format!("{agent} has {} and runs already", self.item.id);
                let problem = Problem::new(ProblemKind::Running, words);
                return Err(problem.hint("`gt nudge` sends it a message").into());
            }
            return Ok(self.present_in(&snapshot, agent, true)?);
        }
        if count.is_some()
            && let Some(refusal) = snapshot.refusal(self.town, agent)?
        {
            return Err(SlingError::Full(refusal));
        }
        drop(count);
        let made = SlingChanges {
            placed: self.repair(agent)?,
            ..SlingChanges::default()
        };
        self.finish(agent, made, true, claim)
    }

    /// Puts the worktree of a stopped polecat on the branch of its item, if the worktree is
    /// missing, or is on the branch of another item with nothing unsaved. A broken worktree is
    /// linked again; if that fails, it is left as it is and the call fails.
    fn repair(&self, agent: &Identity) -> Result<Option<Placed>> {
        let dir = work_dir(self.town, agent)?;
        workspace::repair_links(self.town, agent, &dir)?;
        let due = workspace::work_branch(agent, &self.item.id);
        let is_own = |branch: &str| workspace::is_branch_of(agent, branch);
        // The folder does not exist, or is empty.
        let is_missing = !workspace::is_usable(self.town, &dir);
        let branch = workspace::current_branch(self.town, &dir);
        let is_elsewhere = branch.is_some_and(|branch| branch != due && is_own(&branch));
        if is_missing || (is_elsewhere && workspace::is_settled(self.town, &dir)?) {
            return workspace::place(self.town, agent, &dir, &due).map(Some);
        }
        Ok(None)
    }

    /// Writes the instructions into the notes and starts the agent; rolls everything back on
    /// failure.
    fn finish(
        &self,
        agent: &Identity,
        mut made: SlingChanges,
        reused: bool,
        _claim: FileLock,
    ) -> Result<Slung, SlingError> {
        let mut run = || -> Result<Slung, StartError> {
            self.note(&mut made)?;
            self.pour(agent, &mut made)?;
            if self.options.no_start {
                return Ok(self.present(agent, reused)?);
            }
            self.forget_other_work(agent)?;
            let started = start::start(self.town, agent, self.start)?;
            fault::point(self.town, "sling.started");
            Ok(self.started(started, reused))
        };
        let result = run();
        let take_back = |problem| self.take_back(agent, &made, problem);
        match result {
            // Another process has started it meanwhile, so it has its work.
            Err(StartError::Running(_)) => Ok(self.present(agent, reused)?),
            Err(StartError::Taken(problem)) => Err(SlingError::Taken(take_back(problem))),
            Err(error) => Err(take_back(error.into()).into()),
            Ok(mut slung) => {
                let warnings = made.placed.iter_mut().flat_map(|it| it.warnings.drain(..));
                slung.warnings.extend(warnings);
                Ok(slung)
            }
        }
    }

    /// Assigns the item to an agent other than a polecat, which has its own folder and may be
    /// running.
    pub(super) fn assign_to_other(&self, agent: &Identity) -> Result<Slung, SlingError> {
        let claim = claim::agent(self.town, agent)?;
        let holder = Work::of(self.town).holder(&self.item.id)?;
        if let Some(holder) = holder.filter(|holder| *holder != agent.address()) {
            return Err(SlingError::Taken(held_by(&self.item.id, &holder)));
        }
        let snapshot = TownSnapshot::read(self.town)?;
        if snapshot.is_running(agent) {
            return self.hook_and_nudge(&snapshot, agent, None);
        }
        let is_known = directory::has(self.town, agent);
        let mut start = self.start.clone();
        // Crew workers are created only by `gt crew add`.
        start.create = agent.role() != Role::Crew;
        start::check(self.town, agent, &start)?;
        let made = SlingChanges {
            hooked: self.hook(agent)?,
            ..SlingChanges::default()
        };
        let order = Assignment {
            start: &start,
            ..*self
        };
        order.finish(agent, made, is_known, claim)
    }

    /// Assigns the item to a polecat that runs with an empty hook.
    fn to_running(&self, snapshot: &TownSnapshot, agent: &Identity) -> Result<Slung, SlingError> {
        let _claim = claim::agent(self.town, agent)?;
        // Between `gt done` and the end of its session it would lose the new work.
        let last = Work::of(self.town).finished(&agent.address())?;
        if last.is_some_and(|last| !last.is_ended) {
            let problem = Problem::conflict(format!("{agent} is ending its session"));
            return Err(problem.hint("try again in a moment").into());
        }
        let placed = self.change_branch(agent)?;
        self.hook_and_nudge(snapshot, agent, placed)
    }

    /// Puts the worktree of a running polecat on the branch of the item. On the branch of another
    /// item, its commits would be submitted as a part of that item.
    fn change_branch(&self, agent: &Identity) -> Result<Option<Placed>> {
        let dir = work_dir(self.town, agent)?;
        let due = workspace::work_branch(agent, &self.item.id);
        if workspace::current_branch(self.town, &dir).as_ref() == Some(&due) {
            return Ok(None);
        }
        if !workspace::is_settled(self.town, &dir)? {
            return Err(Problem::conflict(format!(
                "{agent} runs, and its worktree has work that exists nowhere else"
            ))
            .hint("`gt polecat show` shows it; let it commit, or give the item to another"));
        }
        workspace::place(self.town, agent, &dir, &due).map(Some)
    }

    /// Hooks the item for a running agent and nudges the agent.
    fn hook_and_nudge(
        &self,
        snapshot: &TownSnapshot,
        agent: &Identity,
        placed: Option<Placed>,
    ) -> Result<Slung, SlingError> {
        let mut made = SlingChanges {
            placed,
            ..SlingChanges::default()
        };
        let mut run = || -> Result<(), SlingError> {
            made.hooked = self.hook(agent)?;
            self.note(&mut made)?;
            let more = self.options.args.as_deref().unwrap_or_default();
            let text = format!("You have new work on your hook: gt hook\n{more}");
            let order = nudge::NudgeRequest {
                is_command: false,
                text: text.trim_end(),
                sender: Some(self.sender()),
                mode: nudge::DeliveryMode::WaitIdle,
                priority: Priority::default(),
                timeout: NUDGE_TIMEOUT,
            };
            nudge::send(self.town, agent, &order).map_err(Problem::from)?;
            Ok(())
        };
        match run() {
            Ok(()) => Ok(Slung {
                nudged: true,
                ..self.present_in(snapshot, agent, true)?
            }),
            Err(error) => Err(error.map(|problem| self.take_back(agent, &made, problem))),
        }
    }

    /// Returns the result for an agent that this call did not start.
    fn present(&self, agent: &Identity, reused: bool) -> Result<Slung> {
        self.present_in(&TownSnapshot::read(self.town)?, agent, reused)
    }

    /// Returns the result for an agent that this call did not start, as this snapshot shows it.
    fn present_in(&self, snapshot: &TownSnapshot, agent: &Identity, reused: bool) -> Result<Slung> {
        let record = snapshot.container(agent).and_then(Container::session_id);
        let work_dir = work_dir(self.town, agent)?;
        Ok(Slung {
            id: self.item.id.clone(),
            agent: agent.clone(),
            container: roles::container_name(self.town, agent)?,
            branch: self.branch(agent, &work_dir),
            work_dir,
            session: record.filter(|_| snapshot.is_running(agent)),
            started: false,
            reused,
            nudged: false,
            warnings: Vec::new(),
        })
    }

    /// Returns the result for an agent that this call started. It cannot fail: nothing may be
    /// rolled back after the start.
    fn started(&self, started: start::StartedAgent, reused: bool) -> Slung {
        Slung {
            id: self.item.id.clone(),
            branch: self.branch(&started.identity, &started.work_dir),
            agent: started.identity,
            container: started.container,
            work_dir: started.work_dir,
            session: Some(started.session),
            started: true,
            reused,
            nudged: false,
            warnings: started.warnings,
        }
    }

    fn branch(&self, agent: &Identity, work_dir: &Path) -> Option<String> {
        let is_worktree = workspace::is_worktree(agent.role());
        is_worktree
            .then(|| workspace::current_branch(self.town, work_dir))
            .flatten()
    }
}
