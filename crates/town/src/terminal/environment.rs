//! Keeps variables of the tmux server from agents.
//!
//! tmux gives every process the variables that the server was started with. A server that `gt`
//! starts has only the inherited ones ([`gt_core::environment`]), but a person's own server has all
//! of that person's variables, secrets included.

use crate::Town;
use gt_core::environment::is_inherited;
use gt_core::harness::Preset;
use gt_tmux::{Command, SessionName};
use std::collections::BTreeMap;

/// Variables that tmux sets itself in each pane.
const OF_TMUX: &[&str] = &["TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM"];

/// The variables of the tmux server; `None` if no server runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerEnvironment(Option<BTreeMap<String, String>>);

impl ServerEnvironment {
    pub(crate) fn read(town: &Town) -> Self {
        let show = Command::new("show-environment").arg("-g");
        // Without an answer there is no server yet; it will get only the inherited variables.
        let text = town.server().run_private(show).ok();
        ServerEnvironment(text.map(|text| parse(&text)))
    }

    /// Returns the caller's variables that an agent gets, as far as the server has no or another
    /// value.
    pub(crate) fn passed(&self, town: &Town, preset: &Preset) -> Vec<(String, String)> {
        let settings = &town.settings().env;
        let is_wanted = |name: &String| {
            let is_passed = settings.pass.contains(name) || preset.env.pass.contains(name);
            (is_passed || is_inherited(name))
                && !settings.remove.contains(name)
                && !OF_TMUX.contains(&name.as_str())
        };
        // The container keeps variables of the harness itself, for windows beside the agent.
        let has = |name: &String, value: &String| match &self.0 {
            _ if preset.env.pass.contains(name) => false,
            Some(values) => values.get(name) == Some(value),
            None => is_inherited(name),
        };
        let caller = town
            .around()
            .env
            .iter()
            .filter(|(_, value)| !value.is_empty());
        caller
            .filter(|(name, value)| is_wanted(name) && !has(name, value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Returns the names of the server's variables that an agent with the environment `own` must
    /// not get.
    pub(crate) fn foreign(
        &self,
        town: &Town,
        preset: Option<&Preset>,
        own: &BTreeMap<String, String>,
    ) -> Vec<String> {
        let settings = &town.settings().env;
        let is_passed = |name: &String| {
            settings.pass.contains(name)
                || preset.is_some_and(|preset| preset.env.pass.contains(name))
        };
        let is_foreign = |name: &&String| {
            let is_allowed = is_inherited(name) || is_passed(name);
            (settings.remove.contains(name) || !is_allowed)
                && !own.contains_key(*name)
                && !OF_TMUX.contains(&name.as_str())
        };
        let names = self.0.iter().flat_map(BTreeMap::keys);
        names.filter(is_foreign).cloned().collect()
    }
}

/// Returns the commands that keep the variables from all later processes of a container.
pub(crate) fn removals(container: &SessionName, names: &[String]) -> Vec<Command> {
    let remove = |name: &String| {
        Command::new("set-environment")
            .target(container.clone())
            .args(["-r", name])
    };
    names.iter().map(remove).collect()
}

/// Returns the words that start a program without the variables.
pub(crate) fn without(names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let unset = names
        .iter()
        .flat_map(|name| ["-u".to_owned(), name.clone()]);
    std::iter::once("env".to_owned()).chain(unset).collect()
}

/// Parses the output of `show-environment`. A line of a value with several lines is skipped, or
/// taken for a variable that does not exist; removing that does no harm.
fn parse(text: &str) -> BTreeMap<String, String> {
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| is_name(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_show_environment_is_parsed() {
        let parsed = parse("A=1\n-B\nC=x=y\nsecond line\n-----BEGIN=\nD=\n");
        let expected = [("A", "1"), ("C", "x=y"), ("D", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parsed, BTreeMap::from(expected));
    }

    #[test]
    fn program_starts_without_the_variables() {
        assert_eq!(without(&[]), Vec::<String>::new());
        let names = ["A".to_owned(), "B".to_owned()];
        assert_eq!(without(&names), ["env", "-u", "A", "-u", "B"]);
    }
}
