//! Faults of the simulated town, and new work.

use super::world::{Cure, SimulatedActivity, World};
use super::{HOUR, MINUTE};
use crate::patrol::{LimitFacts, Presence};
use crate::record::Outcome;
use crate::state::State;

impl World {
    /// Injects random faults for about one minute.
    pub(super) fn inject(&mut self) {
        for agent in 0..self.bodies.len() {
            if self.is_alive(agent) {
                self.harm(agent);
            }
        }
        if self.rng.chance(50) {
            let count = self.rng.between(1, 8);
            self.add_items(usize::try_from(count).unwrap());
        }
        if self.rng.chance(300) {
            let last = self.bodies.len() - 3;
            let agent = last + usize::try_from(self.rng.between(0, 2)).unwrap();
            self.send(agent);
        }
        if self.rng.chance(20) {
            self.kill_many();
        }
        if self.rng.chance(15) {
            self.kill_server();
        }
        if self.rng.chance(30) {
            self.merger_runs = false;
        }
        if self.rng.chance(5) {
            self.stopped_until = self.now + self.rng.between(1, 40) * MINUTE;
        }
        if self.rng.chance(5) {
            self.disk_low_until = self.now + self.rng.between(1, 60) * MINUTE;
        }
    }

    fn harm(&mut self, agent: usize) {
        let is_working = self.bodies[agent].doing == SimulatedActivity::Working;
        if self.rng.chance(if is_working { 60 } else { 8 }) {
            // Some die again and again.
            return self.end(agent, Outcome::Crash, false);
        }
        if self.rng.chance(2) && self.snapshot.agents[agent].respawn.is_wanted {
            self.snapshot.agents[agent].respawn.deaths = 8;
            return self.end(agent, Outcome::Crash, false);
        }
        if !is_working {
            return;
        }
        match self.rng.between(0, 1_000) {
            0..3 => self.end(agent, Outcome::Exited, false),
            3..5 => self.set_state(agent, State::Busy, SimulatedActivity::Hung(Cure::Nudge)),
            5..7 => self.set_state(agent, State::Busy, SimulatedActivity::Hung(Cure::Interrupt)),
            7..9 => self.set_state(agent, State::Busy, SimulatedActivity::Hung(Cure::Restart)),
            9..13 => self.set_state(agent, State::Idle, SimulatedActivity::Stalled),
            13..16 => self.set_state(agent, State::Error, SimulatedActivity::Stalled),
            16 => self.set_state(agent, State::Waiting, SimulatedActivity::Nothing),
            17..20 => self.limit_account(agent),
            _ => {}
        }
    }

    /// A usage limit stops all agents of an account that work.
    fn limit_account(&mut self, agent: usize) {
        let account = agent % 2;
        let is_known = !self.rng.chance(2_000);
        let until = self.now + self.rng.between(MINUTE, 2 * HOUR);
        for other in 0..self.bodies.len() {
            let works =
                self.is_alive(other) && self.bodies[other].doing == SimulatedActivity::Working;
            if other % 2 != account || !works {
                continue;
            }
            self.set_state(other, State::Limited, SimulatedActivity::Limited);
            self.snapshot.agents[other].limit = Some(LimitFacts {
                until: is_known.then_some(until),
                account: account.to_string(),
                continues: false,
            });
        }
    }

    /// Several agents die at the same time, as when memory runs out.
    fn kill_many(&mut self) {
        for agent in 0..self.bodies.len() {
            if self.is_alive(agent) && self.rng.chance(7_000) {
                self.end(agent, Outcome::Crash, false);
            }
        }
    }

    fn kill_server(&mut self) {
        self.snapshot.server.is_alive = false;
        for agent in 0..self.bodies.len() {
            if self.snapshot.agents[agent].presence == Presence::Alive {
                self.end(agent, Outcome::Crash, true);
            }
        }
    }
}
