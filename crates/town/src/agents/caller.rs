//! Detects the caller of a command.
//!
//! Detection starts no subprocess and does not call tmux. It reads the environment first, then the
//! current folder: the agent of that folder is the caller if the agent's process is an ancestor of
//! this process. Otherwise the caller is the person. For a command without a target,
//! [`crate::agents::target::default_agent`] finds the agent that it means.

use crate::Town;
use crate::agents::claim;
use crate::base::processes;
use crate::catalog::{directory, roles};
use crate::terminal::pidfile;
use gt_core::caller::{Caller, VARIABLE};
use gt_core::event::Event;
use gt_core::{Identity, Role, mail, shell};

impl Town {
    /// Returns the caller of this command: a person, an agent, or `gt` itself.
    pub fn caller(&self) -> Caller {
        let around = self.around();
        let told = around.var(VARIABLE);
        if let Some(caller) = told.and_then(|text| Caller::parse(text, self.registry())) {
            return caller;
        }
        match calling_agent(self) {
            Some(agent) => Caller::from(&agent),
            None => Caller::Person(around.login_name().to_owned()),
        }
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

/// Returns the agent that runs this command, if an agent does.
pub(crate) fn calling_agent(town: &Town) -> Option<Identity> {
    let around = town.around();
    if let Some(address) = around.var("GT_ROLE") {
        let agent = Identity::from_address(address, town.registry());
        return agent
            .filter(|agent| !is_person(agent))
            .filter(|_| address != mail::PERSON);
    }
    // An agent program may remove our variables from the environment of its commands. The folder
    // alone is no proof, because people work in those folders too.
    let agent = directory::by_folder(town, &around.current_dir)?;
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
