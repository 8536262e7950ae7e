//! A program of an agent's harness that is not the agent: it runs in a window beside it,
//! in the same folder, for one thing that it is told.
//!
//! It gets none of our hooks, and nothing in its environment says that it is the agent.
//! So it cannot speak for the agent: not about its state, its conversation or its claim.
//! Its pane says which program it is, and who is starting it, so that as long as that one
//! lives nobody tells people of questions that are answered here.

use super::StartOptions;
use super::await_ready::bring_up;
use super::container::parse_made;
use super::prepared::Prepared;
use crate::containers::tmux_problem;
use crate::{Result, Town, hooks, processes, wake};
use gt_core::session::SessionId;
use gt_core::startup::tag;
use gt_core::{Identity, Problem, shell};
use gt_tmux::{Command, PaneId};

/// What says in an agent's environment which agent it is.
const WHO: [&str; 3] = ["GT_ROLE", "GT_SESSION", "GT_SESSION_UUID"];

/// What a window needs to have such a program.
pub(crate) struct Opening<'a> {
    pub(crate) harness: &'a str,
    /// A shell line.
    pub(crate) line: &'a str,
    pub(crate) env: &'a [(String, String)],
    /// The tags of its pane.
    pub(crate) tags: &'a [(&'a str, &'a str)],
}

/// Runs the program with a prompt, in the window that `open` makes. Answers its first
/// questions as a start does, and gives what went not as wished: it is there then all the
/// same, to be looked at.
pub(crate) fn beside(
    town: &Town,
    identity: &Identity,
    window: &str,
    options: &StartOptions,
    prompt: &str,
    open: impl FnOnce(&Opening<'_>) -> Result<PaneId>,
) -> Result<Vec<String>> {
    let mut prepared = Prepared::new(town, identity, options)?;
    prepared.prompt = Some(prompt.to_owned());
    prepared.window = Some(window);
    let session = SessionId::new(uuid::Uuid::now_v7());
    let mut plan = prepared.plan(town, session, None);
    let mut warnings = prepared.plant_answers(town, &plan);
    // The window inherits what the agent was given, our hooks among it.
    let wiring = hooks::wire(town, &prepared.preset, prepared.role.handoff.on_compact)?;
    let wired = wiring.env.iter().map(|(name, _)| name.as_str());
    let unset: Vec<&str> = WHO.into_iter().chain(wired).collect();
    plan.env.retain(|name, _| !unset.contains(&name.as_str()));
    let mut line = format!("unset {}; ", unset.join(" "));
    if let Some(path) = plan.env.remove("PATH") {
        // tmux gives a new process the PATH of whoever asks for it.
        line.push_str(&format!("export PATH={}; ", shell::quote(&path)));
    }
    let words: Vec<String> = plan.argv.iter().map(|word| shell::quote(word)).collect();
    line.push_str(&format!("exec {}", words.join(" ")));
    let env: Vec<(String, String)> = plan.env.clone().into_iter().collect();
    let harness = prepared.preset.name.as_str();
    let own = std::process::id();
    let born = processes::birth_certificate(own).unwrap_or_default();
    let now = jiff::Timestamp::now().as_second();
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
    let told = told.map_err(|error| tmux_problem("the window was lost again", error))?;
    let made = parse_made(&told).ok_or_else(|| Problem::failed("tmux did not say where it is"))?;
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
    // One that has left already has nothing more to say.
    let _ = town.server().run(is_up);
    wake::monitors(town);
    Ok(warnings)
}
