//! The container of a task before its agent runs: an interactive shell in the worktree, into which
//! the init commands are typed.
//!
//! Its tags name the agent, but no session has begun: it has no `@gt_session`. Later the agent
//! program replaces the shell in the same pane, through [`crate::lifecycle::start`].

use super::tags;
use crate::catalog::roles;
use crate::lifecycle::start::{COLUMNS, ROWS, with_history_limit};
use crate::terminal::containers::{self, tmux_problem};
use crate::terminal::environment::{self, ServerEnvironment};
use crate::terminal::{appearance, pidfile, tmux_hooks};
use crate::{Result, Town};
use gt_core::startup::tag;
use gt_core::state::State;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, ErrorKind, SessionName, format};
use std::collections::BTreeMap;
use std::path::Path;

/// Creates the container, with an id for its steps.
pub(super) fn make(town: &Town, agent: &Identity, name: &SessionName, dir: &Path) -> Result<()> {
    pidfile::refuse_elsewhere(town, agent, name.as_str())?;
    let role = roles::resolve(town, agent.role(), agent.rig())?.value;
    // Panes of the user may have kept the container open.
    let is_open = containers::find(town, name.as_str())?.is_some_and(|c| c.is_vacant());
    let folder = format::escape(&dir.to_string_lossy());
    let mut shell = match is_open {
        true => Command::new("new-window").target(name.clone()),
        false => Command::new("new-session")
            .args(["-d", "-x", COLUMNS, "-y", ROWS])
            .args(["-s", name.as_str()]),
    }
    .args(["-c", &folder, "-n", agent.role().as_str()]);
    let variables = [
        ("GT_ROOT", Some(town.root_text().to_owned())),
        ("GT_TMUX_SOCKET", Some(town.socket_text())),
        ("GT_ROLE", Some(agent.address())),
        ("PATH", town.around().agents_path()),
    ];
    for (variable, value) in variables {
        if let Some(value) = value {
            shell = shell.arg("-e").arg(format!("{variable}={value}"));
        }
    }
    // tmux runs the user's shell itself, so the server's variables can only be made empty in it.
    let foreign = ServerEnvironment::read(town).foreign(town, None, &BTreeMap::new());
    for variable in &foreign {
        shell = shell.arg("-e").arg(format!("{variable}="));
    }
    let set = |option: &str, value: &str| {
        Command::new("set-option")
            .target(name.clone())
            .args([option, value])
    };
    let now = town.clock().seconds().to_string();
    let batch = Batch::from(vec![
        shell,
        Command::new("set-option")
            .arg("-p")
            .target(name.clone())
            .args(["remain-on-exit", "on"]),
        Command::new("set-option")
            .arg("-F")
            .target(name.clone())
            .args([tag::PANE, "#{pane_id}"]),
        set(tag::TOWN, town.root_text()),
        set(tag::AGENT, &agent.address()),
        set(tag::STATE, State::Initializing.as_str()),
        set(tag::STATE_SINCE, &now),
        set(tag::STATE_SOURCE, "start"),
        set(tags::INIT, &town.clock().new_id().simple().to_string()),
    ])
    .then_all(environment::removals(name, &foreign))
    .then_all(tmux_hooks::commands(town))
    .then_all(appearance::options(town, name, agent, &role, None))
    .then_all(containers::pack(name.clone()));
    let batch = with_history_limit(town, batch);
    town.server().run_private(batch).map(drop).map_err(|error| {
        if error.kind() == ErrorKind::Duplicate {
            return Problem::conflict(format!("there is a container {name} already"))
                .hint("look with `gt agents --all`");
        }
        tmux_problem(&format!("cannot make the container {name}"), error)
    })
}
