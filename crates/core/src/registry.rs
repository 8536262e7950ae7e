//! The rigs of a town and their prefixes, in the format of `mayor/rigs.json`.
//!
//! Other tools share the file, so unknown fields are kept as they are. The engine reads and writes
//! the file.

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Registry {
    #[serde(default = "one")]
    pub version: u32,
    #[serde(default)]
    pub rigs: BTreeMap<String, RigEntry>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// A rig: a git repository with a short prefix.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RigEntry {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub git_url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_at: Option<String>,
    /// A parked rig keeps everything but starts nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parked: bool,
    /// A docked rig is out of service: its agents were stopped, and it starts nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub docked: bool,
    pub beads: BeadsEntry,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BeadsEntry {
    pub prefix: String,
    #[serde(flatten)]
    other: Map<String, Value>,
}

fn one() -> u32 {
    1
}

impl Default for Registry {
    fn default() -> Self {
        Registry {
            version: one(),
            rigs: BTreeMap::new(),
            other: Map::new(),
        }
    }
}

impl Registry {
    /// Parses `rigs.json`. The error has line and column; the caller adds the file.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn to_json(&self) -> String {
        // Cannot fail: all fields are plain values.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Returns a registry of `(rig, prefix)` pairs.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut registry = Registry::default();
        for (rig, prefix) in pairs {
            registry
                .rigs
                .insert(rig.to_owned(), RigEntry::with_prefix(prefix));
        }
        registry
    }

    pub fn prefix_of(&self, rig: &str) -> Option<&str> {
        self.rigs.get(rig).map(|entry| entry.beads.prefix.as_str())
    }

    pub fn rig_of(&self, prefix: &str) -> Option<&str> {
        self.rigs
            .iter()
            .find(|(_, entry)| entry.beads.prefix == prefix)
            .map(|(rig, _)| rig.as_str())
    }

    /// Splits `<prefix>-<rest>` into the rig and the rest, longest prefix first, so that the rig
    /// `gt-web` is not taken for an agent `web-…` of the rig `gt`.
    pub fn split<'a>(&self, container: &'a str) -> Option<(&str, &'a str)> {
        self.rigs
            .iter()
            .filter_map(|(rig, entry)| {
                let rest = container
                    .strip_prefix(entry.beads.prefix.as_str())?
                    .strip_prefix('-')?;
                (!rest.is_empty()).then_some((rig.as_str(), rest))
            })
            .min_by_key(|(_, rest)| rest.len())
    }

    /// Fails if the name or the prefix of a new rig conflicts with an existing rig.
    pub fn check_new(&self, rig: &str, prefix: &str) -> Result<(), Problem> {
        crate::name::check_rig(rig)?;
        crate::name::check_prefix(prefix)?;
        if let Some(known) = self.rigs.keys().find(|k| k.eq_ignore_ascii_case(rig)) {
            return Err(Problem::conflict(format!("the rig {known} exists already"))
                .hint("`gt rig list` shows the rigs of this town"));
        }
        for (other, entry) in &self.rigs {
            let theirs = entry.beads.prefix.as_str();
            if theirs.eq_ignore_ascii_case(prefix) {
                return Err(Problem::conflict(format!(
                    "the prefix {prefix} belongs to the rig {other}"
                ))
                .hint("choose another with `--prefix`"));
            }
            let nested = |long: &str, short: &str| {
                long.strip_prefix(short)
                    .is_some_and(|rest| rest.starts_with('-'))
            };
            if nested(prefix, theirs) || nested(theirs, prefix) {
                return Err(Problem::conflict(format!(
                    "with the prefix {prefix} a container's name could also be read as one of the rig {other} (prefix {theirs})"
                ))
                .hint("choose a prefix with `--prefix` that does not extend another by a dash"));
            }
        }
        Ok(())
    }

    /// Returns a free prefix for a rig: its initials or first letters, lower case.
    pub fn suggest_prefix(&self, rig: &str) -> Option<String> {
        let lower = rig.to_ascii_lowercase();
        let words: Vec<&str> = lower
            .split(['-', '_'])
            .filter(|word| !word.is_empty())
            .collect();
        let initials: String = words.iter().filter_map(|w| w.chars().next()).collect();
        let messages: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
        let from_messages = (2..=messages.len().max(2)).filter_map(|n| messages.get(..n));
        let candidates = (initials.len() > 1)
            .then_some(initials.as_str())
            .into_iter()
            .chain(from_messages)
            .chain((messages.len() == 1).then_some(messages.as_str()));
        candidates
            .map(str::to_owned)
            .find(|prefix| self.check_new(rig, prefix).is_ok())
    }
}

impl RigEntry {
    /// Returns why the rig starts nothing: `docked` or `parked`. `None` if it is in service.
    pub fn service(&self) -> Option<&'static str> {
        match (self.docked, self.parked) {
            (true, _) => Some("docked"),
            (_, true) => Some("parked"),
            _ => None,
        }
    }

    pub fn is_in_service(&self) -> bool {
        self.service().is_none()
    }

    pub fn with_prefix(prefix: &str) -> Self {
        RigEntry {
            beads: BeadsEntry {
                prefix: prefix.to_owned(),
                ..BeadsEntry::default()
            },
            ..RigEntry::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_documented_format_and_keeps_what_it_does_not_know() {
        let text = r#"{"rigs":{"gastown":{"beads":{"prefix":"gt","repo":"x"},"crew":{"theme":"mad"}},"beads":{"beads":{"prefix":"bd"}}},"note":1}"#;
        let registry = Registry::from_json(text).unwrap();
        assert_eq!(registry.prefix_of("gastown"), Some("gt"));
        assert_eq!(registry.rig_of("bd"), Some("beads"));
        let again: Value = serde_json::from_str(&registry.to_json()).unwrap();
        assert_eq!(again["note"], 1);
        assert_eq!(again["rigs"]["gastown"]["crew"]["theme"], "mad");
        assert_eq!(again["rigs"]["gastown"]["beads"]["repo"], "x");
    }

    #[test]
    fn splits_by_the_longest_prefix() {
        let registry = Registry::of([("a", "gt"), ("b", "gt-web"), ("c", "g")]);
        assert_eq!(registry.split("gt-web-max"), Some(("b", "max")));
        assert_eq!(registry.split("gt-max"), Some(("a", "max")));
        assert_eq!(registry.split("g-max"), Some(("c", "max")));
        assert_eq!(registry.split("gt-"), None);
        assert_eq!(registry.split("zz-max"), None);
    }

    #[test]
    fn refuses_rigs_that_could_be_mistaken() {
        let registry = Registry::of([("gastown", "gt")]);
        for (rig, prefix) in [
            ("gastown", "xx"),
            ("GasTown", "xx"),
            ("other", "gt"),
            ("other", "GT"),
            ("other", "gt-web"),
            ("mayor", "my"),
            ("other", "hq"),
        ] {
            assert!(registry.check_new(rig, prefix).is_err(), "{rig} {prefix}");
        }
        assert!(registry.check_new("other", "gtw").is_ok());
    }

    #[test]
    fn suggests_a_free_prefix() {
        let registry = Registry::of([("gastown", "ga"), ("my-web-app", "mwa")]);
        assert_eq!(registry.suggest_prefix("gastate").as_deref(), Some("gas"));
        assert_eq!(registry.suggest_prefix("my-tool").as_deref(), Some("mt"));
        assert_eq!(registry.suggest_prefix("beads").as_deref(), Some("be"));
        assert_eq!(registry.suggest_prefix("x").as_deref(), Some("x"));
    }
}
