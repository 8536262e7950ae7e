//! The caller of a command: the actor that an event names.
//!
//! One rule holds for every event: a person is named by login name, an agent by its
//! address, and `gt` is named only where no person and no agent asked for it (tmux
//! hooks, timers, respawns, background processes). The engine detects the caller;
//! this module is the value and its text form.

use crate::identity::Identity;
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

#[cfg(test)]
mod tests {
    use super::*;

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
