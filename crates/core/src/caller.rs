//! The caller of a command: the actor that an event names.
//!
//! One rule holds for every event: a person is named by login name, an agent by its
//! address, and `gt` is named only where no person and no agent asked for it (tmux
//! hooks, timers, respawns, background processes). The engine collects the facts
//! ([`CallerFacts`]); this module is the decision, the value and its text form.

use crate::identity::Identity;
use crate::problem::Problem;
use crate::registry::Registry;
use std::fmt;

/// Environment variable by which one call of `gt` tells another its caller. `gt` marks an
/// automatic call; any other value is the caller on whose behalf it runs.
pub const VARIABLE: &str = "GT_CALLER";

/// The actor of automatic actions.
const AUTOMATIC: &str = "gt";

/// A caller, or the agent that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A person, by login name.
    Person(String),
    /// An agent, by address.
    Agent(String),
    /// An automatic action.
    Gt,
}

impl Caller {
    /// Creates an agent caller from an address in text form.
    pub fn agent(address: impl Into<String>) -> Self {
        Caller::Agent(address.into())
    }

    /// Parses the text form. Returns `None` for text that cannot name an actor.
    pub fn parse(text: &str, registry: &Registry) -> Option<Self> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return None;
        }
        if text == AUTOMATIC {
            return Some(Caller::Gt);
        }
        Some(match Identity::from_address(text, registry) {
            Some(agent) => Caller::from(&agent),
            None => Caller::Person(text.to_owned()),
        })
    }

    /// Returns the name that events carry.
    pub fn as_str(&self) -> &str {
        match self {
            Caller::Person(name) => name,
            Caller::Agent(address) => address,
            Caller::Gt => AUTOMATIC,
        }
    }

    /// Returns whether the caller is this agent.
    pub fn is_agent(&self, agent: &str) -> bool {
        matches!(self, Caller::Agent(own) if own == agent)
    }
}

impl From<&Identity> for Caller {
    fn from(agent: &Identity) -> Self {
        Caller::Agent(agent.address())
    }
}

impl From<&Caller> for Caller {
    fn from(caller: &Caller) -> Self {
        caller.clone()
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The agent in whose process tree a command runs, as the kernel reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessTree {
    /// The agent of the topmost ancestor that `gt` started as an agent, or that it adopted.
    pub agent: Option<Identity>,
    /// The container of that agent, if known.
    pub container: Option<String>,
    /// Whether `gt` itself started this process, for a command that only `gt` starts: then its
    /// variables come from `gt`.
    pub by_gt: bool,
}

/// The facts that determine the caller.
#[derive(Clone, Debug, Default)]
pub struct CallerFacts<'a> {
    pub login: &'a str,
    pub tree: ProcessTree,
    /// `GT_CALLER`.
    pub told: Option<Caller>,
    /// `GT_ROLE`.
    pub role: Option<&'a str>,
    /// The agent that `GT_ROLE` names; `None` for a person.
    pub role_agent: Option<Identity>,
    /// `GT_SESSION`, if it names a container of this town.
    pub session: Option<&'a str>,
    /// The agent of that container.
    pub session_agent: Option<Identity>,
}

impl CallerFacts<'_> {
    /// Returns the caller, by the first fact that names one: the process tree, `GT_CALLER`,
    /// `GT_SESSION`, `GT_ROLE`, and the agent of the folder. Variables must agree with the process
    /// tree. Without one (in a person's shell, in a hook of tmux, after the parent has exited) they
    /// are believed; a process that left the tree of an agent still has the agent's `GT_SESSION`.
    pub fn decide(&self, folder: impl FnOnce() -> Option<Identity>) -> Result<Caller, Problem> {
        if let Some(agent) = self.tree.agent.as_ref().filter(|_| !self.tree.by_gt) {
            return self.agree_with(agent).map(|()| Caller::from(agent));
        }
        if let Some(told) = &self.told {
            return Ok(told.clone());
        }
        if let Some(agent) = &self.session_agent {
            return match (self.role, &self.role_agent) {
                (None, _) => Ok(Caller::from(agent)),
                (_, Some(role)) if role == agent => Ok(Caller::from(agent)),
                (Some(role), _) => Err(Problem::denied(format!(
                    "GT_ROLE is {role}, but GT_SESSION is the container of {agent}"
                ))
                .hint("unset GT_ROLE, or both")),
            };
        }
        let agent = match self.role {
            Some(_) => self.role_agent.clone(),
            None => self.tree.agent.clone().or_else(folder),
        };
        Ok(match agent {
            Some(agent) => Caller::from(&agent),
            None => Caller::Person(self.login.to_owned()),
        })
    }

    /// Fails if a variable names another caller than the agent of the process tree.
    fn agree_with(&self, agent: &Identity) -> Result<(), Problem> {
        let told = self.told.as_ref().filter(|told| **told != agent.into());
        let role = self
            .role
            .filter(|_| self.role_agent.as_ref() != Some(agent));
        let container = self.tree.container.as_deref();
        let session = self.session.filter(|_| container.is_some());
        let session = session.filter(|session| Some(*session) != container);
        let (variable, value) = match (told, role, session) {
            (Some(told), _, _) => (VARIABLE, told.as_str()),
            (_, Some(role), _) => ("GT_ROLE", role),
            (_, _, Some(session)) => ("GT_SESSION", session),
            _ => return Ok(()),
        };
        Err(Problem::denied(format!(
            "{variable} is {value}, but this command runs in the process tree of {agent}"
        ))
        .hint(format!("unset {variable}: an agent cannot act as another")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn process_tree_decides_and_variables_must_agree() {
        let (max, mayor) = (
            Identity::crew("gastown", "max"),
            Identity::town(Role::Mayor),
        );
        let inside = || CallerFacts {
            login: "ada",
            tree: ProcessTree {
                agent: Some(max.clone()),
                container: Some("gt-crew-max".to_owned()),
                by_gt: false,
            },
            ..CallerFacts::default()
        };
        let decide = |facts: CallerFacts<'_>| {
            let decided = facts.decide(|| None);
            decided.map_err(|problem| problem.message().to_owned())
        };
        let is_max = Ok(Caller::from(&max));
        assert_eq!(decide(inside()), is_max);
        let own = CallerFacts {
            told: Some(Caller::from(&max)),
            role: Some("gastown/crew/max"),
            role_agent: Some(max.clone()),
            session: Some("gt-crew-max"),
            ..inside()
        };
        assert_eq!(decide(own), is_max);
        let mut claims = vec![
            CallerFacts {
                role: Some("mayor"),
                role_agent: Some(mayor.clone()),
                ..inside()
            },
            CallerFacts {
                role: Some("human"),
                ..inside()
            },
            CallerFacts {
                session: Some("hq-mayor"),
                ..inside()
            },
        ];
        for told in [Caller::Gt, Caller::Person("ada".to_owned())] {
            claims.push(CallerFacts {
                told: Some(told),
                ..inside()
            });
        }
        for claim in claims {
            let error = decide(claim).unwrap_err();
            let end = "but this command runs in the process tree of gastown/crew/max";
            assert!(error.ends_with(end), "{error}");
        }
        // `gt` itself sets the variables of the processes that it starts.
        let mut by_gt = inside();
        by_gt.tree.by_gt = true;
        assert_eq!(decide(by_gt.clone()), is_max);
        by_gt.told = Some(Caller::Gt);
        assert_eq!(decide(by_gt), Ok(Caller::Gt));
    }

    #[test]
    fn outside_every_tree_a_person_may_act_as_an_agent() {
        let (max, mayor) = (
            Identity::crew("gastown", "max"),
            Identity::town(Role::Mayor),
        );
        let person = CallerFacts {
            login: "ada",
            ..CallerFacts::default()
        };
        let ada = Caller::Person("ada".to_owned());
        assert_eq!(person.decide(|| None).unwrap(), ada);
        assert_eq!(
            person.decide(|| Some(max.clone())).unwrap(),
            Caller::from(&max)
        );
        let as_mayor = CallerFacts {
            role: Some("mayor"),
            role_agent: Some(mayor.clone()),
            ..person.clone()
        };
        assert_eq!(as_mayor.decide(|| None).unwrap(), Caller::from(&mayor));
        // A process that left the tree of an agent.
        let left = CallerFacts {
            session: Some("gt-crew-max"),
            session_agent: Some(max.clone()),
            ..person
        };
        assert_eq!(left.decide(|| None).unwrap(), Caller::from(&max));
        for (role, agent) in [("mayor", Some(mayor)), ("human", None)] {
            let other = CallerFacts {
                role: Some(role),
                role_agent: agent,
                ..left.clone()
            };
            assert!(other.decide(|| None).is_err(), "{role}");
        }
        let called = CallerFacts {
            told: Some(Caller::Gt),
            ..left
        };
        assert_eq!(called.decide(|| None).unwrap(), Caller::Gt);
    }

    #[test]
    fn text_form_both_ways() {
        let registry = Registry::of([("gastown", "gt")]);
        let check = |text: &str, expected: Caller| {
            let read = Caller::parse(text, &registry);
            assert_eq!(read.as_ref(), Some(&expected), "{text}");
            assert_eq!(expected.as_str(), text);
        };
        check("gt", Caller::Gt);
        check("ada", Caller::Person("ada".to_owned()));
        check("gastown/crew/max", Caller::agent("gastown/crew/max"));
        check("mayor", Caller::agent("mayor"));
        for text in ["", "a\nb", "a\u{1b}[2J"] {
            assert_eq!(Caller::parse(text, &registry), None, "{text:?}");
        }
    }

    #[test]
    fn agents_are_told_apart_from_people_of_that_name() {
        assert!(Caller::agent("mayor").is_agent("mayor"));
        assert!(!Caller::Person("mayor".to_owned()).is_agent("mayor"));
        assert!(!Caller::Gt.is_agent("gt"));
    }
}
