//! The simulated town: its agents, items, messages and queues, and the effects of actions.

use super::{MINUTE, Night, Rng};
use crate::Role;
use crate::patrol::*;
use crate::record::Outcome;
use crate::state::State;
use std::collections::BTreeSet;

const POLECATS: usize = 6;
/// The mayor and the witness get messages; all of these are respawned by the tmux hook.
const ROLES: [(&str, Role); 3] = [
    ("mayor", Role::Mayor),
    ("lab/witness", Role::Witness),
    ("deacon", Role::Deacon),
];

/// Real activity of an agent, which the patrol cannot see.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SimulatedActivity {
    Nothing,
    Working,
    /// Hangs until this action.
    Hung(Cure),
    Limited,
    /// Ended its turn and does not continue by itself.
    Stalled,
    StartHangs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cure {
    Nudge,
    Interrupt,
    Restart,
}

/// The place of an item. It is always in exactly one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ItemPlace {
    Scheduled,
    Held(usize),
    /// Taken from one agent, and not given to another yet.
    Nowhere,
    Merging,
    Merged,
}

#[derive(Clone, Debug)]
pub(super) struct SimulatedItem {
    pub(super) place: ItemPlace,
    since: i64,
    /// Seconds of work that are left.
    left: i64,
    /// Every agent that works on it crashes.
    is_poison: bool,
    is_escalated: bool,
}

#[derive(Clone, Debug)]
pub(super) struct SimulatedAgent {
    pub(super) doing: SimulatedActivity,
    messages: Vec<usize>,
    /// The tmux hook will respawn it then.
    respawn_at: Option<i64>,
    account: usize,
    is_escalated: bool,
    /// The process that delivers its messages was killed.
    is_cut_off: bool,
}

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) now: i64,
    pub(super) snapshot: Snapshot,
    pub(super) settings: RuleSettings,
    pub(super) bodies: Vec<SimulatedAgent>,
    pub(super) items: Vec<SimulatedItem>,
    /// Number of deliveries of each message.
    pub(super) messages: Vec<usize>,
    /// A process merges, until it is killed.
    pub(super) merger_runs: bool,
    pub(super) merge_at: i64,
    pub(super) stopped_until: i64,
    pub(super) disk_low_until: i64,
    account_used: [i64; 2],
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut world = World {
            rng: Rng(seed),
            now: 0,
            snapshot: Snapshot::default(),
            settings: RuleSettings::default(),
            bodies: Vec::new(),
            items: Vec::new(),
            messages: Vec::new(),
            merger_runs: true,
            merge_at: 0,
            stopped_until: 0,
            disk_low_until: 0,
            account_used: [i64::MIN / 2; 2],
        };
        world.snapshot.server.is_alive = true;
        for place in 0..POLECATS {
            let address = format!("lab/polecats/p{place}");
            let mut agent = AgentFacts::idle(&address, Role::Polecat, 0);
            agent.rig = Some("lab".to_owned());
            agent.presence = Presence::Gone;
            agent.state = State::Stopped;
            world.add(agent, place % 2);
        }
        for (address, role) in ROLES {
            let mut agent = AgentFacts::idle(address, role, 0);
            agent.respawn.is_wanted = true;
            agent.respawn.is_armed = true;
            world.add(agent, 0);
        }
        world.add_items(8);
        world
    }

    fn add(&mut self, agent: AgentFacts, account: usize) {
        self.snapshot.agents.push(agent);
        self.bodies.push(SimulatedAgent {
            doing: SimulatedActivity::Nothing,
            messages: Vec::new(),
            respawn_at: None,
            account,
            is_escalated: false,
            is_cut_off: false,
        });
    }

    pub(super) fn add_items(&mut self, count: usize) {
        for _ in 0..count {
            let left = self.rng.between(5, 40) * MINUTE;
            let is_poison = self.rng.chance(200);
            self.items.push(SimulatedItem {
                place: ItemPlace::Scheduled,
                since: self.now,
                left,
                is_poison,
                is_escalated: false,
            });
        }
    }

    pub(super) fn place(&self, item: usize) -> ItemPlace {
        self.items[item].place
    }

    /// Returns whether nothing happens: no item is open, and every agent is well.
    pub(super) fn is_calm(&self) -> bool {
        let is_still = |item: &SimulatedItem| item.place == ItemPlace::Merged || item.is_escalated;
        let is_well = |body: &SimulatedAgent| {
            body.doing == SimulatedActivity::Nothing && body.messages.is_empty()
        };
        self.items.iter().all(is_still) && self.bodies.iter().all(is_well)
    }

    pub(super) fn is_alive(&self, agent: usize) -> bool {
        self.snapshot.agents[agent].presence == Presence::Alive
    }

    pub(super) fn set_state(&mut self, agent: usize, state: State, doing: SimulatedActivity) {
        let now = self.now;
        let facts = &mut self.snapshot.agents[agent];
        facts.state = state;
        facts.since = Some(now);
        facts.limit = None;
        self.bodies[agent].doing = doing;
    }

    /// Ends an agent's process.
    pub(super) fn end(&mut self, agent: usize, outcome: Outcome, is_lost: bool) {
        let state = match outcome {
            Outcome::Exited => State::Exited,
            _ => State::Crashed,
        };
        self.set_state(agent, state, SimulatedActivity::Nothing);
        // A hook of tmux records most ends, and respawns most agents.
        let is_recorded = !self.rng.chance(1_000);
        let is_missed = self.rng.chance(2_000);
        let now = self.now;
        let facts = &mut self.snapshot.agents[agent];
        facts.presence = if is_lost {
            Presence::Gone
        } else {
            Presence::Dead
        };
        facts.ended = Some(EndFacts {
            at: now,
            outcome,
            how: "killed by signal 9".to_owned(),
            is_recorded,
            is_lost,
        });
        if is_lost {
            self.snapshot.server.lost.push(facts.address.clone());
            return;
        }
        if outcome == Outcome::Crash {
            let agent = facts.address.clone();
            self.snapshot
                .deaths
                .retain(|death| now - death.at < 15 * MINUTE);
            self.snapshot.deaths.push(AgentDeath { agent, at: now });
        }
        if facts.respawn.is_wanted && facts.respawn.is_armed {
            facts.respawn.deaths += 1;
            if facts.respawn.deaths > 8 {
                facts.respawn.is_armed = false;
            } else if !is_missed {
                let wait = crate::respawn::wait_seconds(facts.respawn.deaths);
                self.bodies[agent].respawn_at = Some(now + i64::try_from(wait).unwrap());
            }
        }
    }

    /// Starts an agent; it works if it has an item. A start may fail or hang.
    fn start(&mut self, agent: usize) -> Result<(), String> {
        if self.is_alive(agent) {
            return Err(format!(
                "duplicate start of {}",
                self.snapshot.agents[agent].address
            ));
        }
        self.snapshot.server.is_alive = true;
        self.bodies[agent].respawn_at = None;
        let address = self.snapshot.agents[agent].address.clone();
        self.snapshot.server.lost.retain(|lost| *lost != address);
        let now = self.now;
        let facts = &mut self.snapshot.agents[agent];
        facts.presence = Presence::Alive;
        facts.ended = None;
        facts.started_at = Some(now);
        facts.signs.printed_at = Some(now);
        let has_item = facts.item.is_some();
        if self.now < super::BUSY && self.rng.chance(300) {
            self.end(agent, Outcome::Crash, false);
        } else if self.now < super::BUSY && self.rng.chance(200) {
            self.set_state(agent, State::Starting, SimulatedActivity::StartHangs);
        } else if has_item {
            self.set_state(agent, State::Busy, SimulatedActivity::Working);
        } else {
            self.set_state(agent, State::Idle, SimulatedActivity::Nothing);
        }
        Ok(())
    }

    /// Advances everything that works without intervention.
    pub(super) fn advance(&mut self, seconds: i64) -> Result<(), String> {
        self.now += seconds;
        for agent in 0..self.bodies.len() {
            self.advance_agent(agent, seconds)?;
        }
        if self.merger_runs && self.now >= self.merge_at {
            let waiting = self
                .items
                .iter_mut()
                .find(|item| item.place == ItemPlace::Merging);
            if let Some(item) = waiting {
                item.place = ItemPlace::Merged;
                self.merge_at = self.now + self.rng.between(10, 120);
            }
        }
        // The end of a session feeds the schedule, unless its process is killed.
        if !self.rng.chance(2_000) {
            self.feed()?;
        }
        self.check_places()
    }

    fn advance_agent(&mut self, agent: usize, seconds: i64) -> Result<(), String> {
        if let Some(at) = self.bodies[agent].respawn_at
            && self.now >= at
        {
            return self.start(agent);
        }
        let is_well = self.is_alive(agent)
            && matches!(
                self.bodies[agent].doing,
                SimulatedActivity::Nothing | SimulatedActivity::Working
            );
        if !is_well {
            return Ok(());
        }
        // Messages are delivered at the end of a turn, unless their process was killed.
        let body = &self.bodies[agent];
        if !body.messages.is_empty() && !body.is_cut_off && self.rng.chance(5_000) {
            self.deliver(agent)?;
        }
        if self.bodies[agent].doing != SimulatedActivity::Working {
            return Ok(());
        }
        // A long command prints nothing for up to 25 minutes.
        if self.rng.chance(2_500)
            || self.now - self.snapshot.agents[agent].last_activity() > 24 * MINUTE
        {
            self.snapshot.agents[agent].signs.printed_at = Some(self.now);
        }
        let Some(item) = self.item_of(agent) else {
            self.set_state(agent, State::Idle, SimulatedActivity::Nothing);
            return Ok(());
        };
        if self.items[item].is_poison {
            self.end(agent, Outcome::Crash, false);
            return Ok(());
        }
        self.items[item].left -= seconds;
        if self.items[item].left <= 0 {
            // Some forget to submit their work.
            match self.rng.chance(500) {
                true => {
                    self.snapshot.agents[agent].is_finished = true;
                    self.set_state(agent, State::Idle, SimulatedActivity::Stalled);
                }
                false => self.hand_in(agent),
            }
        }
        Ok(())
    }

    pub(super) fn item_of(&self, agent: usize) -> Option<usize> {
        self.items
            .iter()
            .position(|item| item.place == ItemPlace::Held(agent))
    }

    /// Submits the work of a polecat, and ends its session.
    fn hand_in(&mut self, agent: usize) {
        if let Some(item) = self.item_of(agent) {
            self.items[item].place = ItemPlace::Merging;
            self.items[item].since = self.now;
        }
        self.set_state(agent, State::Stopped, SimulatedActivity::Nothing);
        let facts = &mut self.snapshot.agents[agent];
        facts.item = None;
        facts.is_finished = false;
        facts.presence = Presence::Gone;
        facts.ended = None;
    }

    /// Gives scheduled items to free polecats.
    fn feed(&mut self) -> Result<(), String> {
        while self.now >= self.stopped_until && self.now >= self.disk_low_until {
            let next = self
                .items
                .iter()
                .position(|item| item.place == ItemPlace::Scheduled);
            let Some(item) = next.filter(|_| self.assign_any()) else {
                return Ok(());
            };
            self.assign(item)?;
        }
        Ok(())
    }

    fn assign_any(&self) -> bool {
        self.free_polecat().is_some()
    }

    fn free_polecat(&self) -> Option<usize> {
        let agents = self.snapshot.agents.iter();
        agents
            .take(POLECATS)
            .position(|agent| agent.item.is_none() && agent.presence != Presence::Alive)
    }

    /// Gives an item to a free polecat and starts it. A killed process leaves it hooked and not
    /// started.
    fn assign(&mut self, item: usize) -> Result<(), String> {
        let Some(agent) = self.free_polecat() else {
            return Ok(());
        };
        self.items[item].place = ItemPlace::Held(agent);
        self.items[item].since = self.now;
        let facts = &mut self.snapshot.agents[agent];
        facts.item = Some(name(item));
        facts.ended = None;
        facts.presence = Presence::Gone;
        if self.now < super::BUSY && self.rng.chance(100) {
            return Ok(());
        }
        self.start(agent)
    }

    fn deliver(&mut self, agent: usize) -> Result<(), String> {
        self.bodies[agent].is_cut_off = false;
        for message in std::mem::take(&mut self.bodies[agent].messages) {
            self.messages[message] += 1;
            if self.messages[message] > 1 {
                return Err(format!("duplicate delivery of message {message}"));
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self, agent: usize) {
        self.bodies[agent].messages.push(self.messages.len());
        self.messages.push(0);
        self.bodies[agent].is_cut_off |= self.rng.chance(1_000);
        if self.snapshot.agents[agent].queue.is_none() {
            self.snapshot.agents[agent].queue = Some(QueueFacts {
                waiting: 1,
                oldest_at: self.now,
                has_deliverer: false,
            });
        }
    }

    /// Updates the facts that are derived from others.
    pub(super) fn observe(&mut self, memory: &PatrolMemory) {
        self.snapshot.is_stopped = self.now < self.stopped_until;
        let is_low = self.now < self.disk_low_until;
        self.snapshot.free_bytes = Some(if is_low { 1 } else { u64::MAX });
        for (agent, body) in self.snapshot.agents.iter_mut().zip(&self.bodies) {
            if body.messages.is_empty() {
                agent.queue = None;
            }
        }
        self.snapshot.items.clear();
        let reassigned: BTreeSet<&str> = memory.reassigned().collect();
        for (place, item) in self.items.iter().enumerate() {
            let holder = match item.place {
                ItemPlace::Held(agent) => Some(self.snapshot.agents[agent].address.clone()),
                ItemPlace::Nowhere if reassigned.contains(name(place).as_str()) => None,
                _ => continue,
            };
            self.snapshot.items.push(ItemFacts {
                id: name(place),
                rig: Some("lab".to_owned()),
                holder,
                since: Some(item.since),
                holder_exists: true,
            });
        }
        self.snapshot.merge_queues.clear();
        let merging = self
            .items
            .iter()
            .filter(|item| item.place == ItemPlace::Merging);
        if let Some(oldest_at) = merging.map(|item| item.since).min() {
            self.snapshot.merge_queues.push(MergeQueueFacts {
                rig: "lab".to_owned(),
                waiting: 1,
                oldest_at,
                is_running: self.merger_runs,
                is_automatic: true,
            });
        }
        let scheduled = self
            .items
            .iter()
            .filter(|item| item.place == ItemPlace::Scheduled);
        let oldest = scheduled.map(|item| item.since).min();
        self.snapshot.schedule = oldest.map(|oldest_at| WaitingFacts {
            waiting: 1,
            oldest_at,
            is_running: false,
            is_paused: false,
        });
    }

    fn agent_of(&self, action: &PatrolAction) -> Result<usize, String> {
        let mut agents = self.snapshot.agents.iter();
        let found = agents.position(|agent| Some(&agent.address) == action.agent.as_ref());
        found.ok_or_else(|| format!("an action without its agent: {action:?}"))
    }

    fn item_in(&self, action: &PatrolAction) -> Result<usize, String> {
        let number = action.item.as_deref().and_then(|id| id.strip_prefix("lb-"));
        let number = number.and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("an action without its item: {action:?}"))
    }

    /// Carries out an action, as the engine would.
    pub(super) fn apply(&mut self, action: &PatrolAction) -> Result<(), String> {
        match action.kind {
            ActionKind::Record => {
                for agent in &mut self.snapshot.agents {
                    if let Some(end) = &mut agent.ended {
                        end.is_recorded = true;
                    }
                }
            }
            ActionKind::Respawn | ActionKind::Resume => return self.start(self.agent_of(action)?),
            ActionKind::Reassign => {
                self.take_from_holder(action)?;
                return self.assign(self.item_in(action)?);
            }
            ActionKind::Nudge | ActionKind::ResumeAfterLimit => {
                let agent = self.agent_of(action)?;
                return self.nudge(agent, action);
            }
            ActionKind::Interrupt => {
                let agent = self.agent_of(action)?;
                self.check_force(agent, action)?;
                self.snapshot.agents[agent].signs.printed_at = Some(self.now + 5);
                if self.bodies[agent].doing == SimulatedActivity::Hung(Cure::Interrupt) {
                    self.set_state(agent, State::Idle, SimulatedActivity::Stalled);
                }
            }
            ActionKind::Restart => {
                let agent = self.agent_of(action)?;
                self.check_force(agent, action)?;
                self.snapshot.agents[agent].presence = Presence::Gone;
                return self.start(agent);
            }
            ActionKind::Redeliver => return self.deliver(self.agent_of(action)?),
            ActionKind::RunMergeQueue => self.merger_runs = true,
            ActionKind::RunScheduler => return self.feed(),
            ActionKind::RestoreServer => {
                for agent in 0..self.bodies.len() {
                    let lost = &self.snapshot.server.lost;
                    if lost.contains(&self.snapshot.agents[agent].address) {
                        self.start(agent)?;
                    }
                }
            }
            ActionKind::Clean(_) => {
                let agent = self.agent_of(action)?;
                self.snapshot.agents[agent].presence = Presence::Gone;
            }
            ActionKind::Escalate => {
                if let Ok(item) = self.item_in(action) {
                    self.items[item].is_escalated = true;
                }
                if let Ok(agent) = self.agent_of(action) {
                    self.bodies[agent].is_escalated = true;
                }
            }
            ActionKind::MassDeathAlarm | ActionKind::RaiseAgain => {}
            ActionKind::End => panic!("no agent of the world is started on demand: {action:?}"),
        }
        Ok(())
    }

    /// Takes the item off the hook of a dead polecat.
    pub(super) fn take_from_holder(&mut self, action: &PatrolAction) -> Result<(), String> {
        let item = self.item_in(action)?;
        match self.items[item].place {
            ItemPlace::Held(agent) if self.is_alive(agent) => {
                return Err(format!(
                    "duplicate assignment of an item at work: {action:?}"
                ));
            }
            ItemPlace::Held(agent) => self.snapshot.agents[agent].item = None,
            ItemPlace::Nowhere => {}
            place => return Err(format!("duplicate assignment of an item that is {place:?}")),
        }
        self.items[item].place = ItemPlace::Nowhere;
        Ok(())
    }

    fn nudge(&mut self, agent: usize, action: &PatrolAction) -> Result<(), String> {
        if !self.is_alive(agent) {
            return Err(format!("a nudge to a dead agent: {action:?}"));
        }
        // The echo of the message.
        self.snapshot.agents[agent].signs.printed_at = Some(self.now + 5);
        match self.bodies[agent].doing {
            SimulatedActivity::Limited => {
                let account = self.bodies[agent].account;
                let before = std::mem::replace(&mut self.account_used[account], self.now);
                if self.now - before < 30 {
                    return Err(format!(
                        "agents of one account continue together: {action:?}"
                    ));
                }
                self.set_state(agent, State::Busy, SimulatedActivity::Working);
            }
            // Some nudges have no effect.
            SimulatedActivity::Stalled if self.rng.chance(2_500) => {}
            SimulatedActivity::Stalled if self.snapshot.agents[agent].is_finished => {
                self.hand_in(agent);
            }
            SimulatedActivity::Stalled => {
                self.set_state(agent, State::Busy, SimulatedActivity::Working);
            }
            SimulatedActivity::Hung(Cure::Nudge) => {
                self.set_state(agent, State::Busy, SimulatedActivity::Working);
            }
            _ => {}
        }
        Ok(())
    }

    fn check_force(&self, agent: usize, action: &PatrolAction) -> Result<(), String> {
        match self.bodies[agent].doing {
            SimulatedActivity::Hung(_) | SimulatedActivity::StartHangs => Ok(()),
            doing => Err(format!(
                "force against an agent that is {doing:?}: {action:?}"
            )),
        }
    }

    /// Checks that hooks and items agree: every held item is on exactly one hook.
    fn check_places(&self) -> Result<(), String> {
        for (place, item) in self.items.iter().enumerate() {
            let ItemPlace::Held(holder) = item.place else {
                continue;
            };
            let agent = &self.snapshot.agents[holder];
            if agent.item.as_deref() != Some(name(place).as_str()) {
                return Err(format!("lost: {} is on no hook", name(place)));
            }
        }
        let hooked = self
            .snapshot
            .agents
            .iter()
            .filter(|agent| agent.item.is_some())
            .count();
        let held = self
            .items
            .iter()
            .filter(|item| matches!(item.place, ItemPlace::Held(_)))
            .count();
        match hooked == held {
            true => Ok(()),
            false => Err(format!("duplicate: {hooked} hooks hold {held} items")),
        }
    }

    /// Checks that the work is complete, and counts it.
    pub(super) fn check_end(&self, night: &mut Night) -> Result<(), String> {
        for (place, item) in self.items.iter().enumerate() {
            let is_escalated = item.is_escalated
                || matches!(item.place, ItemPlace::Held(agent) if self.bodies[agent].is_escalated);
            match item.place {
                ItemPlace::Merged => night.merged += 1,
                _ if is_escalated => night.escalated += 1,
                at => {
                    let holder = match at {
                        ItemPlace::Held(agent) => {
                            Some((&self.snapshot.agents[agent], &self.bodies[agent]))
                        }
                        _ => None,
                    };
                    return Err(format!("unfinished: {} is {at:?}: {holder:?}", name(place)));
                }
            }
        }
        for (agent, body) in self.snapshot.agents.iter().zip(&self.bodies) {
            if !body.messages.is_empty() && !body.is_escalated {
                return Err(format!(
                    "a message was not delivered to {agent:?} ({body:?})"
                ));
            }
        }
        night.messages += self.messages.iter().filter(|count| **count == 1).count();
        Ok(())
    }
}

pub(super) fn name(item: usize) -> String {
    format!("lb-{item}")
}
