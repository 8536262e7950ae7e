//! Giving work to an agent that is there for it: allocate, hook, start, in this order, so
//! that the agent finds its work when it starts.
//!
//! For a rig a polecat is allocated ([`allocate`]): a free one, or a new one, with its
//! worktree on the branch of the item. Any other agent is taken as it is. What a step has
//! made is taken back when a later one fails, and nothing else. A process that is killed
//! leaves either a free polecat or an item on the hook of one that does not run; the next
//! call for the same item goes on from there.

mod allocate;

use crate::events::Events;
use crate::lock::FileLock;
use crate::polecat::{House, claim, work_dir};
use crate::start::{self, StartOptions};
use crate::work::{Patch, Work};
use crate::workspace::{self, Placed};
use crate::{Result, Town, checkpoint, fault, hook, nudge, rig, roles};
use allocate::Allocation;
use gt_core::event::Event;
use gt_core::nudge::Priority;
use gt_core::session::SessionId;
use gt_core::work::{Item, Status, WorkId};
use gt_core::{Identity, Kind, Problem, Role};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a test can kill us.
pub const FAULT_POINTS: &[&str] = &[
    "sling.allocated",
    "sling.placed",
    "sling.hooked",
    "sling.noted",
    "sling.started",
];

/// How often the holder of an item may change while we look.
const ATTEMPTS: usize = 5;
/// How long an agent that runs may be busy before a message is left to its queue.
const NUDGE_PATIENCE: Duration = Duration::from_secs(2);

/// Who is to do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlingTarget {
    /// A polecat of this rig, whichever is free.
    Rig(String),
    /// This agent.
    Agent(Identity),
}

#[derive(Clone, Debug, Default)]
pub struct SlingOptions {
    /// Another harness than the role's.
    pub harness: Option<String>,
    /// The account under which the agent program runs.
    pub account: Option<String>,
    /// What to say beside the item; kept in its notes.
    pub args: Option<String>,
    /// Only allocate and hook.
    pub no_start: bool,
    /// Also if something that it waits for is not done.
    pub force: bool,
    /// Who gives the work; otherwise `GT_ROLE`, or a human.
    pub sender: Option<String>,
}

/// An item that an agent has now.
#[derive(Clone, Debug)]
pub struct Slung {
    pub id: WorkId,
    pub agent: Identity,
    pub container: String,
    /// What its worktree is on, where it has one.
    pub branch: Option<String>,
    pub work_dir: PathBuf,
    /// The life that works on it.
    pub session: Option<SessionId>,
    /// It was started by this call.
    pub started: bool,
    /// It was there before.
    pub reused: bool,
    /// It ran, and was told.
    pub nudged: bool,
    /// What did not go as wished and did not stop it.
    pub warnings: Vec<String>,
}

/// Gives an item to an agent, and starts that.
pub fn sling(town: &Town, id: &WorkId, to: &SlingTarget, options: &SlingOptions) -> Result<Slung> {
    let item = Work::of(town).get(id)?;
    let start = start_options(town, options)?;
    check(town, &item, options)?;
    let order = Order {
        town,
        item: &item,
        options,
        start: &start,
    };
    match to {
        SlingTarget::Rig(rig) => order.to_polecat(rig, None),
        SlingTarget::Agent(agent) if agent.role() == Role::Polecat => {
            order.to_polecat(agent.rig().unwrap_or_default(), Some(agent))
        }
        SlingTarget::Agent(agent) => order.to_other(agent),
    }
}

/// The rig that an item belongs to, by its prefix.
pub fn rig_of(town: &Town, id: &WorkId) -> Result<String> {
    match town.registry().split(id.as_str()) {
        Some((rig, _)) => Ok(rig.to_owned()),
        None => Err(Problem::usage(format!("{id} belongs to no rig"))
            .hint("name a rig or an agent after it")),
    }
}

/// What keeps an item from being begun by anybody.
fn check(town: &Town, item: &Item, options: &SlingOptions) -> Result<()> {
    let id = &item.id;
    if matches!(item.status, Status::Closed | Status::Pinned) {
        return Err(Problem::conflict(format!("{id} is {}", item.status.word())));
    }
    let blockers = Work::of(town).open_blockers(id)?;
    if options.force || (blockers.is_empty() && item.status != Status::Blocked) {
        return Ok(());
    }
    let names: Vec<&str> = blockers.iter().map(WorkId::as_str).collect();
    let message = match names.as_slice() {
        [] => format!("{id} is blocked"),
        names => format!("{id} waits for {}", names.join(", ")),
    };
    Err(Problem::conflict(message).hint("`--force` gives it to an agent all the same"))
}

fn start_options(town: &Town, options: &SlingOptions) -> Result<StartOptions> {
    let config_dir = match &options.account {
        Some(name) => account_dir(town, name)?,
        None => None,
    };
    Ok(StartOptions {
        harness: options.harness.clone(),
        create: true,
        sender: options.sender.clone(),
        topic: Some("assigned".to_owned()),
        instructions: options.args.clone(),
        config_dir,
        ..StartOptions::default()
    })
}

/// The configuration folder of an account.
fn account_dir(_town: &Town, name: &str) -> Result<Option<String>> {
    // There are no accounts yet: this is the one place that has to know of them.
    Err(Problem::not_found(format!("there is no account {name:?}")))
}

/// One item on its way.
struct Order<'a> {
    town: &'a Town,
    item: &'a Item,
    options: &'a SlingOptions,
    start: &'a StartOptions,
}

/// What was made on the way, and is taken back if it fails.
#[derive(Default)]
struct Made {
    hooked: bool,
    noted: Option<String>,
    placed: Option<Placed>,
}

impl Order<'_> {
    fn to_polecat(&self, rig: &str, wanted: Option<&Identity>) -> Result<Slung> {
        rig::check_not_parked(self.town, rig)?;
        for _ in 0..ATTEMPTS {
            match self.allocate(rig, wanted)? {
                Allocation::New {
                    agent,
                    placed,
                    reused,
                    claim,
                } => {
                    let made = Made {
                        hooked: true,
                        placed: Some(placed),
                        noted: None,
                    };
                    return self.finish(&agent, made, reused, claim);
                }
                Allocation::Runs(agent) => return self.to_running(&agent),
                Allocation::HeldBy(holder) => {
                    let agent = self.of_this_rig(&holder, rig, wanted)?;
                    // Somebody may be starting it at this moment, or taking it back.
                    let claim = claim::agent(self.town, &agent)?;
                    if Work::of(self.town).holder(&self.item.id)? != Some(holder) {
                        continue;
                    }
                    return self.go_on(&agent, claim);
                }
            }
        }
        Err(self.unsteady())
    }

    /// The polecat that has the item already, if it is one that could get it.
    fn of_this_rig(&self, holder: &str, rig: &str, wanted: Option<&Identity>) -> Result<Identity> {
        let agent = Identity::from_address(holder, self.town.registry());
        let fits = |agent: &Identity| match wanted {
            Some(wanted) => agent == wanted,
            None => agent.role() == Role::Polecat && agent.rig() == Some(rig),
        };
        agent.filter(fits).ok_or_else(|| self.held_by(holder))
    }

    fn held_by(&self, holder: &str) -> Problem {
        let id = &self.item.id;
        Problem::conflict(format!("{id} is on the hook of {holder}"))
            .hint(format!("`gt unhook {id}` takes it off"))
    }

    fn unsteady(&self) -> Problem {
        Problem::conflict(format!("others are giving {} away", self.item.id))
            .hint("`gt work show` tells who has it now")
    }

    /// The item is on its hook: it only has to run.
    fn go_on(&self, agent: &Identity, claim: FileLock) -> Result<Slung> {
        if House::look(self.town)?.lives(agent) {
            if self.options.args.is_some() {
                return Err(Problem::new(
                    Kind::Running,
                    format!("{agent} has {} and runs already", self.item.id),
                )
                .hint("`gt nudge` tells it more"));
            }
            return self.present(agent, true);
        }
        let made = Made {
            placed: self.repair(agent)?,
            ..Made::default()
        };
        self.finish(agent, made, true, claim)
    }

    /// Puts the worktree of a polecat that does not run on the branch of its item, where
    /// that is not there, or on the branch of another item with nothing unsaved.
    fn repair(&self, agent: &Identity) -> Result<Option<Placed>> {
        let dir = work_dir(self.town, agent)?;
        let due = workspace::work_branch(agent, &self.item.id);
        let is_own = |branch: &str| workspace::is_branch_of(agent, branch);
        let is_elsewhere = match workspace::current_branch(self.town, &dir) {
            Some(branch) => branch != due && is_own(&branch),
            None => !dir.join(".git").exists(),
        };
        let may_move = !dir.exists() || workspace::is_settled(self.town, &dir)?;
        if is_elsewhere && may_move {
            return workspace::place(self.town, agent, &dir, &due).map(Some);
        }
        Ok(None)
    }

    /// Notes what was said, and starts the agent; takes everything back if that fails.
    fn finish(
        &self,
        agent: &Identity,
        mut made: Made,
        reused: bool,
        _claim: FileLock,
    ) -> Result<Slung> {
        let result = self.note(&mut made).and_then(|()| {
            if self.options.no_start {
                return self.present(agent, reused);
            }
            self.forget_other_work(agent)?;
            let started = start::start(self.town, agent, self.start)?;
            fault::point(self.town, "sling.started");
            Ok(self.started(started, reused))
        });
        match result {
            // Somebody else has started it meanwhile: it has its work.
            Err(problem) if problem.kind() == Kind::Running => self.present(agent, reused),
            Err(problem) => Err(self.take_back(agent, &made, problem)),
            slung => slung,
        }
    }

    /// An agent that is no polecat: it has its folder, and may run.
    fn to_other(&self, agent: &Identity) -> Result<Slung> {
        let _claim = claim::agent(self.town, agent)?;
        let holder = Work::of(self.town).holder(&self.item.id)?;
        if let Some(holder) = holder.filter(|holder| *holder != agent.address()) {
            return Err(self.held_by(&holder));
        }
        if House::look(self.town)?.lives(agent) {
            return self.tell(agent);
        }
        let mut start = self.start.clone();
        // Whoever wants a crew worker makes it with `gt crew add`.
        start.create = agent.role() != Role::Crew;
        start::check(self.town, agent, &start)?;
        let made = Made {
            hooked: self.hook(agent)?,
            ..Made::default()
        };
        let order = Order {
            start: &start,
            ..*self
        };
        order.finish(agent, made, true, _claim)
    }

    /// A polecat that runs with an empty hook.
    fn to_running(&self, agent: &Identity) -> Result<Slung> {
        let _claim = claim::agent(self.town, agent)?;
        self.tell(agent)
    }

    /// Gives an agent that runs its work, and tells it.
    fn tell(&self, agent: &Identity) -> Result<Slung> {
        let mut made = Made {
            hooked: self.hook(agent)?,
            ..Made::default()
        };
        let told = self.note(&mut made).and_then(|()| {
            let more = self.options.args.as_deref().unwrap_or_default();
            let text = format!("You have new work on your hook: gt hook\n{more}");
            let order = nudge::Order {
                text: text.trim_end(),
                sender: Some(self.sender()),
                mode: nudge::Mode::WaitIdle,
                priority: Priority::default(),
                patience: NUDGE_PATIENCE,
            };
            nudge::send(self.town, agent, &order)
        });
        match told {
            Ok(_) => Ok(Slung {
                nudged: true,
                ..self.present(agent, true)?
            }),
            Err(problem) => Err(self.take_back(agent, &made, problem)),
        }
    }

    /// Puts the item on the hook, and says whether it was not there.
    fn hook(&self, agent: &Identity) -> Result<bool> {
        let id = &self.item.id;
        let was_there = Work::of(self.town).holder(id)? == Some(agent.address());
        hook::put(self.town, agent, id)?;
        fault::point(self.town, "sling.hooked");
        if !was_there {
            self.event("sling", "target", agent);
        }
        Ok(!was_there)
    }

    fn event(&self, kind: &str, field: &str, agent: &Identity) {
        let event = Event::new(kind, self.sender().to_owned())
            .with(field, agent.address())
            .with("bead", self.item.id.to_string());
        Events::of(self.town).note(vec![event]);
    }

    fn sender(&self) -> &str {
        let given = self.options.sender.as_deref();
        given
            .or_else(|| self.town.around().var("GT_ROLE"))
            .unwrap_or("human")
    }

    /// Keeps what was said with the item, so that a later life sees it; once.
    fn note(&self, made: &mut Made) -> Result<()> {
        let Some(args) = self.options.args.as_deref().map(str::trim) else {
            return Ok(());
        };
        let work = Work::of(self.town);
        let before = work.get(&self.item.id)?.notes;
        if !args.is_empty() && !before.contains(args) {
            let patch = Patch {
                append_notes: Some(args.to_owned()),
                ..Patch::default()
            };
            work.update(&self.item.id, &patch)?;
            made.noted = Some(before);
        }
        fault::point(self.town, "sling.noted");
        Ok(())
    }

    /// A checkpoint says where the work stood; that of another item would mislead.
    fn forget_other_work(&self, agent: &Identity) -> Result<()> {
        let found = checkpoint::read(self.town, agent)?.and_then(|found| found.hooked_bead);
        if found.is_some_and(|bead| bead != self.item.id.as_str()) {
            checkpoint::clear(self.town, agent)?;
        }
        Ok(())
    }

    /// Takes back what was made, the last first. What cannot be is told.
    fn take_back(&self, agent: &Identity, made: &Made, mut problem: Problem) -> Problem {
        let work = Work::of(self.town);
        let id = &self.item.id;
        let mut failures = Vec::new();
        if let Some(before) = &made.noted {
            let patch = Patch {
                notes: Some(before.clone()),
                ..Patch::default()
            };
            failures.extend(work.update(id, &patch).err());
        }
        if made.hooked && work.holder(id).ok().flatten() == Some(agent.address()) {
            failures.extend(hook::take_off_item(self.town, id).err());
        }
        if let Some(placed) = &made.placed {
            let back = work_dir(self.town, agent)
                .and_then(|dir| workspace::take_back(self.town, agent, &dir, placed));
            failures.extend(back.err());
        }
        for failure in failures {
            problem = problem.cause(format!("and not all could be taken back: {failure}"));
        }
        problem
    }

    /// What there is, of an agent that this call did not start.
    fn present(&self, agent: &Identity, reused: bool) -> Result<Slung> {
        let house = House::look(self.town)?;
        let life = house
            .container(agent)
            .and_then(crate::containers::Container::life);
        let work_dir = work_dir(self.town, agent)?;
        Ok(Slung {
            id: self.item.id.clone(),
            agent: agent.clone(),
            container: roles::container_name(self.town, agent)?,
            branch: self.branch(agent, &work_dir),
            work_dir,
            session: life.filter(|_| house.lives(agent)),
            started: false,
            reused,
            nudged: false,
            warnings: Vec::new(),
        })
    }

    /// The same of one that was started. It cannot fail: nothing may be taken back now.
    fn started(&self, started: start::Started, reused: bool) -> Slung {
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
