//! The beacon: the first prompt of a session.
//!
//! It tells the agent its identity, who started it and why, and makes the conversation easy to
//! find later. Times are passed in as text: this module reads no clock.

use crate::identity::Identity;
use crate::role::Role;
use std::borrow::Cow;

/// The parts of a beacon's first line.
#[derive(Clone, Debug)]
pub struct Beacon<'a> {
    pub recipient: &'a Identity,
    /// The starter: an address, or `self` for a handoff.
    pub sender: &'a str,
    /// `2025-12-30T15:42`
    pub time: &'a str,
    /// `cold-start`, `handoff`, `assigned`, `patrol`, `ready`, `attach`…
    pub topic: &'a str,
    /// The molecule that the topic refers to.
    pub molecule: Option<&'a str>,
    /// The agent has to run `gt prime` itself, because no hook does it.
    pub must_ask: bool,
}

/// The first words of a beacon.
const MARK: &str = "[GAS TOWN]";
const ASK: &str = "Begin with `gt prime`: it says who you are and what there is to do.";

/// Topics after which the agent looks for its work itself.
const PROPELLING: &[&str] = &["attach", "cold-start", "handoff"];

const FIND_WORK: &str = "\
Check your hook and mail, then act on the hook if present:
1. `gt hook` - shows hooked work (if any)
2. `gt mail inbox` - check for messages
3. If work is hooked → execute it immediately
4. If nothing hooked → ";

impl Beacon<'_> {
    /// Returns the whole first prompt: the beacon, the steps for its topic, and the instructions.
    pub fn prompt(&self, instructions: Option<&str>) -> String {
        let mut prompt = self.line();
        if self.must_ask {
            prompt.push_str("\n\n");
            prompt.push_str(ASK);
        }
        if PROPELLING.contains(&self.topic) {
            prompt.push_str("\n\n");
            prompt.push_str(FIND_WORK);
            prompt.push_str(self.recipient.role().without_work());
        }
        if let Some(instructions) = instructions.filter(|text| !text.trim().is_empty()) {
            prompt.push_str("\n\n");
            prompt.push_str(instructions.trim_end());
        }
        prompt
    }

    fn line(&self) -> String {
        let molecule = self
            .molecule
            .map_or_else(String::new, |id| format!(":{id}"));
        format!(
            "{MARK} {} <- {} • {} • {}{molecule}",
            recipient(self.recipient),
            self.sender,
            self.time,
            self.topic,
        )
    }
}

/// Maximum length in bytes of a first prompt in the argument list of a program. All users of the
/// machine can read that list for as long as the program runs.
const LONGEST_ARGUMENT: usize = 600;

const POINTER: &str = "Your instructions are not repeated here, because other users could read them. They are in the text of \
     `gt prime`: run it now if you have not got that text yet.";

/// Returns a first prompt as an argument of a program: a long one is replaced by its first line, if
/// that is a beacon, and a reference to `gt prime`.
pub fn argument(prompt: &str) -> Cow<'_, str> {
    if prompt.len() <= LONGEST_ARGUMENT {
        return Cow::Borrowed(prompt);
    }
    let line = prompt.lines().next().unwrap_or_default();
    Cow::Owned(match line.starts_with(MARK) {
        true => format!("{line}\n\n{POINTER}"),
        false => POINTER.to_owned(),
    })
}

/// Returns the topic of a beacon's first line. Returns any other line unchanged.
pub fn topic(line: &str) -> &str {
    match line.starts_with(MARK) {
        true => line.splitn(3, " • ").nth(2).unwrap_or(line),
        false => line,
    }
}

fn recipient(identity: &Identity) -> String {
    let role = identity.role();
    match (identity.name(), identity.rig()) {
        (Some(name), Some(rig)) => format!("{role} {name} (rig: {rig})"),
        (Some(name), None) => format!("{role} {name}"),
        (None, Some(rig)) if role != Role::Task => format!("{role} (rig: {rig})"),
        (None, _) => role.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_prompts_are_not_arguments() {
        assert_eq!(argument("short"), "short");
        let long = "x".repeat(LONGEST_ARGUMENT + 1);
        assert_eq!(argument(&long), POINTER);
        let beacon = format!("{MARK} crew max <- human\n\n{long}");
        assert_eq!(
            argument(&beacon),
            format!("{MARK} crew max <- human\n\n{POINTER}")
        );
    }

    #[test]
    fn reads_as_documented() {
        let check = |identity: Identity, sender: &str, topic: &str, molecule, expected: &str| {
            let beacon = Beacon {
                recipient: &identity,
                sender,
                time: "2025-12-30T15:42",
                topic,
                molecule,
                must_ask: false,
            };
            assert_eq!(beacon.prompt(None).lines().next(), Some(expected));
        };
        check(
            Identity::crew("gastown", "max"),
            "mayor",
            "cold-start",
            None,
            "[GAS TOWN] crew max (rig: gastown) <- mayor • 2025-12-30T15:42 • cold-start",
        );
        check(
            Identity::polecat("gastown", "Toast"),
            "deacon",
            "assigned",
            Some("mol-7"),
            "[GAS TOWN] polecat Toast (rig: gastown) <- deacon • 2025-12-30T15:42 • assigned:mol-7",
        );
        check(
            Identity::town(Role::Mayor),
            "self",
            "handoff",
            None,
            "[GAS TOWN] mayor <- self • 2025-12-30T15:42 • handoff",
        );
    }

    #[test]
    fn a_topic_is_found_again() {
        let line = "[GAS TOWN] crew max (rig: gastown) <- mayor • 2025-12-30T15:42 • assigned:m-7";
        assert_eq!(topic(line), "assigned:m-7");
        assert_eq!(topic("[GAS TOWN] mayor <- self • t • a • b"), "a • b");
        for other in ["Fix it • then • now", "[GAS TOWN] hello", ""] {
            assert_eq!(topic(other), other);
        }
    }

    #[test]
    fn propelling_topics_carry_their_instructions() {
        let max = Identity::crew("gastown", "max");
        let beacon = |topic| Beacon {
            recipient: &max,
            sender: "mayor",
            time: "t",
            topic,
            molecule: None,
            must_ask: topic == "ready",
        };
        assert!(beacon("ready").prompt(None).contains("`gt prime`"));
        let handoff = beacon("handoff").prompt(None);
        assert!(handoff.contains("`gt hook`"));
        assert!(handoff.ends_with("→ wait for instructions"), "{handoff}");
        let witness = Identity::of_rig(Role::Witness, "gastown");
        let driven = Beacon {
            recipient: &witness,
            ..beacon("handoff")
        };
        let driven = driven.prompt(None);
        assert!(driven.contains("one round of your role"), "{driven}");
        let assigned = beacon("assigned").prompt(Some("Fix the build.\n"));
        assert!(!assigned.contains("`gt hook`"));
        assert!(assigned.ends_with("\n\nFix the build."));
    }
}
