//! Finds the agent in whose process tree this command runs.
//!
//! The kernel knows the ancestors of a process, and a process cannot choose them. An ancestor is an
//! agent's if `gt` recorded it as the first process of the agent's pane (by pid and start time), or
//! if it was started with the variables of an agent. The topmost such ancestor decides: an agent
//! can start processes with any variables, but only below itself. No tmux call and no listing of
//! agents is needed, so the cost does not depend on the number of agents.
//!
//! Without a sandbox this does not stop a process that hides: it can leave the tree and clear its
//! environment, or let the tmux server run a command.

use crate::base::callback::Call;
use crate::base::processes;
use crate::terminal::{adopted, pidfile};
use crate::{Result, Town};
use gt_core::caller::ProcessTree;
use gt_core::process::Process;
use gt_core::{Identity, Problem};
use std::time::{Duration, Instant};

/// Variable that names the agent beside which a program runs, such as the resolver of a conflict.
pub(crate) const BESIDE: &str = "GT_BESIDE";

/// Maximum wait for the end of a parent that is exiting.
const EXIT_TIMEOUT: Duration = Duration::from_millis(100);

/// Reads the process tree of this command. A background call of `gt` may outlive the `gt` that
/// started it. While that one exits, it is still the parent, but the kernel no longer knows its
/// program; then the tree is read again.
pub(super) fn read(town: &Town) -> ProcessTree {
    let began = Instant::now();
    loop {
        let (tree, parent) = read_once(town);
        let is_exiting = parent.is_some_and(processes::is_exiting);
        if !is_exiting || began.elapsed() > EXIT_TIMEOUT {
            return tree;
        }
        // No event reports that a parent has changed.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads the tree of another process, which calls `gt` through a socket.
pub(super) fn read_of(town: &Town, pid: u32) -> Result<ProcessTree> {
    let chain: Vec<Process> = processes::with_ancestors(pid).collect();
    match chain.is_empty() {
        true => Err(Problem::denied(format!("the process {pid} is gone"))),
        false => Ok(read_among(town, &chain).0),
    }
}

/// Reads the process tree, and the process in it that decides whether `gt` started this command.
fn read_once(town: &Town) -> (ProcessTree, Option<u32>) {
    let ancestors: Vec<Process> = processes::ancestors().collect();
    read_among(town, &ancestors)
}

fn read_among(town: &Town, ancestors: &[Process]) -> (ProcessTree, Option<u32>) {
    let adopted = adopted::processes(town);
    let agent_of = |(at, process): (usize, &Process)| {
        let agent = pidfile::agent_of(town, process.pid)
            .or_else(|| adopted.iter().find_map(|agent| agent.is(process)));
        // tmux gives the variables of a session to the commands of its hooks and key bindings, too.
        let is_by_tmux = || ancestors.get(at + 1).is_some_and(is_tmux);
        let agent = agent.or_else(|| match is_by_tmux() {
            true => None,
            false => by_environment(town, process.pid),
        });
        Some((at, agent?))
    };
    let Some((top, (agent, container))) = ancestors.iter().enumerate().rev().find_map(agent_of)
    else {
        return (ProcessTree::default(), None);
    };
    let mut inside = ancestors.iter().take(top + 1);
    let program = inside.find(|process| !processes::is_shell(process));
    let tree = ProcessTree {
        agent: Some(agent),
        container,
        by_gt: is_call_of_gt(town) && program.is_some_and(|process| is_gt(process.pid)),
    };
    let parent = program.map(|process| process.pid);
    let parent = parent.filter(|_| !tree.by_gt);
    (tree, parent)
}

/// Returns whether this is a command that `gt` itself starts. A process of an agent can start any
/// other command and then become `gt` (`exec gt wait`), which makes `gt` the parent of that command.
fn is_call_of_gt(town: &Town) -> bool {
    let command = &town.around().command;
    command.starts_with("gt internal ") || command == "gt daemon run"
}

fn is_tmux(process: &Process) -> bool {
    process.name.starts_with("tmux")
}

/// Returns whether a process is `gt` itself. The demo agent and the broker of a sandbox are not:
/// they run commands of others.
fn is_gt(pid: u32) -> bool {
    let runs_others = |words: &[String]| {
        let at = |index: usize| words.get(index).map_or("", String::as_str);
        at(1) == "demo-agent" || [at(1), at(2)] == Call::RunAgent.words()
    };
    processes::runs_own_program(pid) && !runs_others(&processes::arguments(pid))
}

/// Returns the agent of this town, and its container, with whose variables a process was started.
fn by_environment(town: &Town, pid: u32) -> Option<(Identity, Option<String>)> {
    let environment = processes::initial_environment(pid);
    let var = |name: &str| {
        let mut entries = environment.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| {
            let rest = entry.strip_prefix(name.as_bytes())?;
            rest.strip_prefix(b"=")
        })?;
        std::str::from_utf8(value).ok().filter(|it| !it.is_empty())
    };
    let container = var("GT_SESSION");
    let address = match var(BESIDE) {
        Some(beside) => beside,
        None => container.and_then(|_| var("GT_ROLE"))?,
    };
    if var("GT_ROOT") != Some(town.root_text()) {
        return None;
    }
    let agent = Identity::from_address(address, town.registry())?;
    Some((agent, container.map(str::to_owned)))
}
