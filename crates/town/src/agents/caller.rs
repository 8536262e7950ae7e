//! Detects the caller of a command.
//!
//! Detection starts no subprocess and does not call tmux. The process tree decides
//! ([`crate::agents::ancestry`]); variables must agree with it. Outside the trees of all agents,
//! variables are believed, then the current folder: its agent is the caller if the agent's process
//! is an ancestor of this process. Otherwise the caller is the person. For a command without a
//! target, [`crate::agents::target::default_agent`] finds the agent that it means.

use crate::agents::{ancestry, claim};
use crate::base::processes;
use crate::catalog::{directory, roles};
use crate::terminal::pidfile;
use crate::{Result, Town};
use gt_core::caller::{Caller, CallerFacts, ProcessTree, VARIABLE};
use gt_core::event::Event;
use gt_core::{Identity, Problem, Role, shell};

impl Town {
    /// Returns the caller of this command: a person, an agent, or `gt` itself. If the variables
    /// disagree with the process tree, the process tree is right; [`Town::check_caller`] has
    /// reported it then.
    pub fn caller(&self) -> Caller {
        match self.check_caller() {
            Ok(caller) => caller,
            Err(_) => match calling_agent(self) {
                Some(agent) => Caller::from(&agent),
                None => Caller::Person(self.around().login_name().to_owned()),
            },
        }
    }

    /// Returns the caller of this command. Fails if a variable claims to be another one.
    pub fn check_caller(&self) -> Result<Caller> {
        let around = self.around();
        let told = around.var(VARIABLE);
        let role = around.var("GT_ROLE");
        let role_agent = role.and_then(|role| Identity::from_address(role, self.registry()));
        let role_agent = role_agent.filter(|agent| !is_person(agent));
        let is_own_town = around.var("GT_ROOT") == Some(self.root_text());
        let session = around.var("GT_SESSION").filter(|_| is_own_town);
        let facts = CallerFacts {
            login: around.login_name(),
            tree: self.process_tree().clone(),
            told: told.and_then(|text| Caller::parse(text, self.registry())),
            role,
            session_agent: self.session_agent(),
            role_agent,
            session,
        };
        facts.decide(|| by_folder(self))
    }

    /// Returns this town with the caller of this command checked. In the process tree of an agent,
    /// `GT_ROLE` is set even if the agent has removed it: senders and default targets come from it.
    pub fn with_checked_caller(mut self) -> Result<Self> {
        self.check_caller()?;
        let tree = self.process_tree();
        if let Some(agent) = tree.agent.clone().filter(|_| !tree.by_gt) {
            self.set_variable("GT_ROLE", agent.address());
        }
        Ok(self)
    }

    /// Fails if an agent names another sender or actor than itself.
    pub fn check_own_name(&self, option: &str, name: &str) -> Result<()> {
        let tree = self.process_tree();
        let Some(agent) = tree.agent.as_ref().filter(|_| !tree.by_gt) else {
            return Ok(());
        };
        match Identity::from_address(name, self.registry()).as_ref() == Some(agent) {
            true => Ok(()),
            false => Err(not_own(option, name, agent)),
        }
    }

    /// Fails if an agent names the container of another.
    pub fn check_own_container(&self, option: &str, name: &str) -> Result<()> {
        let tree = self.process_tree();
        match (&tree.agent, &tree.container) {
            (Some(agent), Some(own)) if own != name && !tree.by_gt => {
                Err(not_own(option, name, agent))
            }
            _ => Ok(()),
        }
    }

    /// Returns the agent of the container in whose environment this command runs.
    pub(super) fn session_agent(&self) -> Option<Identity> {
        let around = self.around();
        let is_own_town = around.var("GT_ROOT") == Some(self.root_text());
        let session = around.var("GT_SESSION").filter(|_| is_own_town)?;
        let role = around.var("GT_ROLE");
        let role = role.and_then(|role| Identity::from_address(role, self.registry()));
        agent_of_container(self, session, role.as_ref())
    }

    /// Returns the process tree that this command runs in. It is read once.
    pub(super) fn process_tree(&self) -> &ProcessTree {
        self.cached_tree().get_or_init(|| ancestry::read(self))
    }

    /// Returns the agent in whose process tree another process runs, by the kernel alone. Fails if
    /// the process is gone.
    pub fn agent_of_process(&self, pid: u32) -> Result<Option<Identity>> {
        Ok(ancestry::read_of(self, pid)?.agent)
    }

    /// Returns a new event that the caller of this command caused.
    pub(crate) fn event(&self, kind: &str) -> Event {
        Event::new(kind, self.caller())
    }

    /// Returns a new event that the caller caused and that concerns an agent. The event names the
    /// agent as its target unless the agent is the caller.
    pub(crate) fn event_at(&self, kind: &str, agent: &str) -> Event {
        let caller = self.caller();
        let target = (!caller.is_agent(agent)).then(|| agent.to_owned());
        Event::new(kind, caller).with("target", target)
    }

    /// Returns the shell assignment that makes a call of `gt` run on behalf of this caller.
    pub fn caller_assignment(&self) -> String {
        format!("{VARIABLE}={}", shell::quote(self.caller().as_str()))
    }
}

fn not_own(option: &str, name: &str, agent: &Identity) -> Problem {
    Problem::denied(format!(
        "{option} is {name}, but this command runs in the process tree of {agent}"
    ))
    .hint(format!(
        "leave out {option}: an agent cannot act as another"
    ))
}

/// Returns the agent of a container, by its name. The agent that `GT_ROLE` names is tried first,
/// because settings may change the names of containers.
fn agent_of_container(town: &Town, container: &str, role: Option<&Identity>) -> Option<Identity> {
    // The container of a role that cannot be read is unknown.
    let is_its =
        |agent: &&Identity| roles::container_name(town, agent).is_ok_and(|name| name == container);
    let agent = role.filter(is_its).cloned();
    agent.or_else(|| Identity::from_container(container, town.registry()))
}

/// Returns the agent that runs this command, if an agent does: regardless of the caller on whose
/// behalf the command runs.
pub(crate) fn calling_agent(town: &Town) -> Option<Identity> {
    let tree = town.process_tree();
    if let Some(agent) = tree.agent.as_ref().filter(|_| !tree.by_gt) {
        return Some(agent.clone());
    }
    match town.around().var("GT_ROLE") {
        Some(address) => {
            Identity::from_address(address, town.registry()).filter(|agent| !is_person(agent))
        }
        None => tree.agent.clone().or_else(|| by_folder(town)),
    }
}

/// Returns the agent of the current folder, if its process is an ancestor of this process: an agent
/// program that was started by hand. The folder alone is no proof, because people work in those
/// folders too.
fn by_folder(town: &Town) -> Option<Identity> {
    let agent = directory::by_folder(town, &town.around().current_dir)?;
    // A role that cannot be read proves nothing.
    let container = roles::container_name(town, &agent).ok();
    let started = container.and_then(|container| pidfile::process(town, &container));
    let claimed = || claim::process(town, &agent);
    let is_ours = |process: Option<u32>| process.is_some_and(processes::is_ancestor);
    (is_ours(started) || is_ours(claimed())).then_some(agent)
}

/// Returns whether the agent is the overseer, the person who runs the town.
pub(crate) fn is_person(agent: &Identity) -> bool {
    agent.role() == Role::Overseer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::surroundings::{Login, Surroundings};

    fn town(root: &std::path::Path, dir: &str, env: &[(&str, &str)]) -> Town {
        let env = env
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let around = Surroundings {
            env: env.collect(),
            current_dir: root.join(dir),
            login: Login::named("ada"),
            ..Surroundings::default()
        };
        Town::open(root, around).unwrap()
    }

    #[test]
    fn callers_are_told_apart_by_environment_and_process() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        Town::init(&root, None, "/tmp/nobody", "demo").unwrap();
        std::fs::create_dir_all(root.join("mayor")).unwrap();
        let check = |dir: &str, env: &[(&str, &str)], expected: Caller| {
            assert_eq!(town(&root, dir, env).caller(), expected, "{dir} {env:?}");
        };
        let person = || Caller::Person("ada".to_owned());
        check(".", &[], person());
        check(".", &[("USER", "mallory")], person());
        check(".", &[("GT_ROLE", "deacon")], Caller::agent("deacon"));
        check(".", &[("GT_ROLE", "no such thing")], person());
        check(".", &[("GT_ROLE", "human")], person());
        check(".", &[("GT_ROLE", "overseer")], person());
        let automatic = [("GT_ROLE", "deacon"), ("GT_CALLER", "gt")];
        check(".", &automatic, Caller::Gt);
        let behalf = [("GT_ROLE", "deacon"), ("GT_CALLER", "bob")];
        check(".", &behalf, Caller::Person("bob".to_owned()));
        // In an agent's folder, the caller is a person unless the agent's process is an ancestor.
        check("mayor", &[], person());
        if processes::caller().is_none() {
            // If init itself runs the tests, as in a container, there is no process to claim.
            return;
        }
        let mayor = Identity::town(Role::Mayor);
        claim::take(&town(&root, "mayor", &[]), &mayor, None).unwrap();
        check("mayor", &[], Caller::agent("mayor"));
        check(".", &[], person());
    }

    #[test]
    fn a_target_is_named_unless_it_is_the_caller() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        Town::init(&root, None, "/tmp/nobody", "demo").unwrap();
        let target = |env: &[(&str, &str)]| {
            let event = town(&root, ".", env).event_at("hook", "deacon");
            (event.actor.clone(), event.payload.get("target").cloned())
        };
        assert_eq!(
            target(&[("GT_ROLE", "deacon")]),
            ("deacon".to_owned(), None)
        );
        assert_eq!(target(&[]), ("ada".to_owned(), Some("deacon".into())));
    }
}
