//! Runs a program of an agent's harness in a window beside the agent, in the same folder, for one
//! prompt.
//!
//! It gets none of our hooks, and its environment does not identify it as the agent. So it cannot
//! report as the agent: not its state, its conversation or its claim. Its pane names the program
//! and the process that starts it, so that people are not notified of questions while that process
//! answers them.

use super::StartOptions;
use super::await_ready::bring_up;
use super::container::parse_process;
use super::prepared::Prepared;
use crate::agents::ancestry::BESIDE;
use crate::base::{processes, wake};
use crate::catalog::hook_installers::{self, Wiring};
use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::session::SessionId;
use gt_core::startup::tag;
use gt_core::{Identity, Problem, shell};
use gt_tmux::{Command, PaneId};

/// Environment variables that identify an agent.
const WHO: [&str; 3] = ["GT_ROLE", "GT_SESSION", "GT_SESSION_UUID"];

/// Description of the window for such a program.
pub(crate) struct Opening<'a> {
    pub(crate) harness: &'a str,
    /// A shell line.
    pub(crate) line: &'a str,
    pub(crate) env: &'a [(String, String)],
    /// The tags of its pane.
    pub(crate) tags: &'a [(&'a str, &'a str)],
}

/// Runs the program with a prompt, in the window that `open` makes. Answers its first questions as
/// a start does. Returns warnings; the program stays open even then.
pub(crate) fn start_beside(
    town: &Town,
    identity: &Identity,
    window: &str,
    options: &StartOptions,
    prompt: &str,
    open: impl FnOnce(&Opening<'_>) -> Result<PaneId>,
) -> Result<Vec<String>> {
    let mut prepared = Prepared::new(town, identity, options)?;
    prepared.prepare_sandbox(town)?;
    prepared.prompt = Some(prompt.to_owned());
    prepared.window = Some(window);
    let session = SessionId::new(town.clock().new_id());
    let unapproved = prepared.unapproved_settings(town)?;
    let mut plan = prepared.plan(town, session, None, &Wiring::default(), &unapproved);
    let mut warnings = prepared.write_onboarding_answers(town, &plan);
    // The window inherits the agent's environment, including our hooks.
    let wiring = hook_installers::wire(town, &prepared.preset, prepared.role.handoff.on_compact)?;
    let wired = wiring.env.iter().map(|(name, _)| name.as_str());
    let unset: Vec<&str> = WHO.into_iter().chain(wired).collect();
    plan.env.retain(|name, _| !unset.contains(&name.as_str()));
    // Its commands are still those of an agent, and not of a person.
    plan.env.insert(BESIDE.to_owned(), identity.address());
    let mut line = format!("unset {}; ", unset.join(" "));
    if let Some(path) = plan.env.remove("PATH") {
        // tmux gives a new process the PATH of the requesting client.
        line.push_str(&format!("export PATH={}; ", shell::quote(&path)));
    }
    let words: Vec<String> = plan.argv.iter().map(|word| shell::quote(word)).collect();
    line.push_str(&format!("exec {}", words.join(" ")));
    let env: Vec<(String, String)> = plan.env.clone().into_iter().collect();
    let harness = prepared.preset.name.as_str();
    let own = std::process::id();
    let born = processes::birth_certificate(own).unwrap_or_default();
    let now = town.clock().seconds();
    let starting = format!("{harness} {now} {own} {born}");
    let pane = open(&Opening {
        harness,
        line: &line,
        env: &env,
        tags: &[(tag::BESIDE, &starting), (tag::TYPED, &now.to_string())],
    })?;
    let ask = Command::new("display-message")
        .arg("-p")
        .target(pane)
        .arg("#{pane_id} #{pane_pid} #{pid} #{pane_tty}");
    let told = town.server().run(ask);
    let told = told
        .map_err(|error| tmux_problem("the window disappeared right after it was opened", error))?;
    let made =
        parse_process(&told).ok_or_else(|| Problem::failed("tmux did not say where it is"))?;
    if bring_up(town, &prepared, &plan, &made, &mut warnings).is_err() {
        warnings.push(format!(
            "{} did not come up as usual; its window shows why",
            prepared.preset.name
        ));
    }
    let is_up = Command::new("set-option")
        .arg("-p")
        .target(pane)
        .args([tag::BESIDE, harness]);
    // Fails if the pane is already gone, which needs no report.
    let _ = town.server().run(is_up);
    wake::monitors(town);
    Ok(warnings)
}
