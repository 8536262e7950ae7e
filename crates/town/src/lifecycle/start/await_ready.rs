//! Waits until an agent is up: its process, its dialogs, its prompt.

use super::container::AgentProcess;
use super::error::StartError;
use super::prepared::Prepared;
use super::type_prompt;
use crate::base::or_log::OrLog;
use crate::base::processes;
use crate::messaging::inject;
use crate::terminal::containers::{self, Container};
use crate::terminal::watch::{PaneWatch, WakeReason};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::harness::Preset;
use gt_core::screen;
use gt_core::startup::LaunchPlan;
use gt_core::state::State;
use gt_tmux::Command;
use std::time::{Duration, Instant};

/// Number of last lines that an error shows.
const SHOWN_LINES: usize = 12;
/// Timeout for the program to begin: longer than any exec, shorter than a person waits.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the program to redraw after a key.
const REDRAW_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum run time after which a command of the caller counts as started.
const FIRST_MOMENTS: Duration = Duration::from_millis(150);

/// Waits for the conditions that the role requires; returns the state of the agent then.
pub(super) fn bring_up(
    town: &Town,
    prepared: &Prepared<'_>,
    plan: &LaunchPlan,
    made: &AgentProcess,
    warnings: &mut Vec<String>,
) -> Result<State, StartError> {
    let Some(process) = processes::hold_one(made.pid) else {
        return Err(death(town, prepared, made));
    };
    let mut watch = PaneWatch::new(&made.tty, Some(process));
    let start = &prepared.role.start;
    if start.wait_for_agent {
        await_process(town, prepared, plan, made, &mut watch, warnings)?;
    }
    let mut state = State::Running;
    if prepared.options.command.is_some() {
        // The prompt of an arbitrary command is unknown, so it only has to survive its first
        // moments.
        return await_survival(town, prepared, made, &mut watch).map(|()| state);
    }
    if start.wait_ready || start.accept_dialogs {
        state = await_prompt(town, prepared, plan, made, &mut watch, warnings)?;
    }
    if let Some(prompt) = &plan.typed_prompt {
        // The agent runs anyway; the caller gets a warning.
        if let Err(problem) = type_prompt(town, prepared, made, prompt) {
            warnings.push(format!("its first prompt was not delivered: {problem}"));
        }
    }
    Ok(state)
}

fn await_survival(
    town: &Town,
    prepared: &Prepared<'_>,
    made: &AgentProcess,
    watch: &mut PaneWatch,
) -> Result<(), StartError> {
    let began = Instant::now();
    while began.elapsed() < FIRST_MOMENTS {
        if watch.wait(FIRST_MOMENTS) == WakeReason::Ended {
            return Err(death(town, prepared, made));
        }
    }
    Ok(())
}

/// Waits until a process with one of the agent's names is in the pane.
fn await_process(
    town: &Town,
    prepared: &Prepared<'_>,
    plan: &LaunchPlan,
    made: &AgentProcess,
    watch: &mut PaneWatch,
    warnings: &mut Vec<String>,
) -> Result<(), StartError> {
    if plan.process_names.is_empty() || prepared.options.command.is_some() {
        return Ok(());
    }
    let deadline = Instant::now() + BEGIN_TIMEOUT;
    loop {
        // Most programs are the pane's first process; the tree is searched only if not.
        let names = &plan.process_names;
        if processes::is_named(made.pid, names)
            || processes::tree_has(&mut processes::snapshot(), made.pid, names)
        {
            return Ok(());
        }
        town.around().cancel.check()?;
        if Instant::now() >= deadline {
            let names = plan.process_names.join(", ");
            let problem = Problem::failed(format!(
                "no process called {names} appeared in {}",
                prepared.container
            ))
            .hint("if the program goes by another name, set `names` under [process] of its preset");
            return give_up(prepared, problem, warnings).map(drop);
        }
        // There is no event for an exec of another program.
        if watch.wait(Duration::from_millis(50)) == WakeReason::Ended {
            return Err(death(town, prepared, made));
        }
    }
}

/// Answers known dialogs and waits for the prompt, or for work already begun.
fn await_prompt(
    town: &Town,
    prepared: &Prepared<'_>,
    plan: &LaunchPlan,
    made: &AgentProcess,
    watch: &mut PaneWatch,
    warnings: &mut Vec<String>,
) -> Result<State, StartError> {
    let preset = &prepared.preset;
    let began = Instant::now();
    let timeout = prepared
        .options
        .ready_timeout
        .unwrap_or(Duration::from_secs(preset.ready.timeout_seconds));
    let settle = Duration::from_millis(preset.ready.settle_ms);
    let has_mark = !preset.screen.ready.is_empty();
    // The screen at the last key press, and its time. Until the screen changes it says nothing new,
    // and another key would be pressed blindly.
    let mut answered: Option<(Vec<String>, Instant)> = None;
    let mut idle_since: Option<Instant> = None;
    loop {
        let lines = inject::visible_lines(town, made.pane)?;
        let is_stale = answered
            .as_ref()
            .is_some_and(|(seen, at)| *seen == lines && at.elapsed() < REDRAW_TIMEOUT);
        if is_stale {
            // Nothing to do except to read the screen again.
        } else if let Some(dialog) = screen::open_dialog(&lines, &preset.dialogs) {
            match dialog.wanted {
                Some(wanted) if prepared.role.start.accept_dialogs => {
                    inject::step_dialog(town, made.pane, &dialog, wanted)?;
                    watch.poll_often();
                    answered = Some((lines.clone(), Instant::now()));
                }
                _ => {
                    warnings.push(question(prepared, &lines));
                    return Ok(State::Waiting);
                }
            }
        } else {
            match screen::read(&lines, preset).map(|(state, _)| state) {
                Some(State::Busy) => return Ok(State::Busy),
                // A dialog without a known answer is left to a person.
                Some(state @ (State::Waiting | State::Limited)) => {
                    warnings.push(question(prepared, &lines));
                    return Ok(state);
                }
                Some(State::Idle) => {
                    let since = *idle_since.get_or_insert_with(Instant::now);
                    if is_settled(&lines, since, plan, preset) {
                        return Ok(State::Idle);
                    }
                }
                _ => idle_since = None,
            }
        }
        if !has_mark && began.elapsed() >= settle {
            return Ok(State::Running);
        }
        town.around().cancel.check()?;
        let left = timeout.saturating_sub(began.elapsed());
        if left.is_zero() {
            let problem = Problem::failed(format!(
                "{} was not ready within {} s",
                prepared.identity,
                timeout.as_secs_f64()
            ))
            .cause(shown_lines(&lines))
            .hint("`--ready-timeout` waits longer, `--keep-on-timeout` keeps it for inspection");
            return give_up(prepared, problem, warnings);
        }
        let nap = if has_mark {
            Duration::from_millis(250)
        } else {
            Duration::from_millis(50)
        };
        if watch.wait(left.min(nap)) == WakeReason::Ended {
            return Err(death(town, prepared, made));
        }
    }
}

/// Returns whether a prompt that is shown since `since` will not be followed by a question.
fn is_settled(lines: &[String], since: Instant, plan: &LaunchPlan, preset: &Preset) -> bool {
    let ready = &preset.ready;
    let shows = |mark: &String| lines.iter().any(|line| screen::matches(line, mark));
    let is_sure = match ready.sure.as_slice() {
        [] => plan.trusts_folder,
        marks => marks.iter().any(shows),
    };
    is_sure || since.elapsed() >= Duration::from_millis(ready.confirm_ms)
}

/// Returns the question that an agent asks at its start, and how to answer it.
fn question(prepared: &Prepared<'_>, lines: &[String]) -> String {
    let identity = prepared.identity;
    let seen = screen::classify(lines, "", &prepared.preset);
    let options = seen.dialog.map(|asking| asking.options).unwrap_or_default();
    let (who, window) = match prepared.window {
        Some(window) => (window.to_owned(), format!(" --window {window}")),
        None => (identity.to_string(), String::new()),
    };
    format!(
        "{who} {}, with the options {}; `gt answer {identity}{window}` answers",
        seen.reason,
        options.join(" / ")
    )
}

/// Fails the start, or only warns if the caller wants to keep the container.
fn give_up(
    prepared: &Prepared<'_>,
    problem: Problem,
    warnings: &mut Vec<String>,
) -> Result<State, StartError> {
    if prepared.options.keep_on_timeout {
        warnings.push(problem.to_string());
        return Ok(State::Starting);
    }
    Err(problem.into())
}

/// Returns the problem of an agent that ended during its start: its exit code and last lines.
pub(super) fn death(town: &Town, prepared: &Prepared<'_>, made: &AgentProcess) -> StartError {
    let last = last_look(town, prepared);
    let how = last.as_ref().map_or_else(
        || "its container is gone".to_owned(),
        |container| {
            container
                .state(None)
                .reason
                .map_or_else(String::new, String::from)
        },
    );
    // A signal, 126 or 127 means that the program did not end by its own decision.
    let by_itself = last.is_some_and(|container| {
        let pane = container.pane();
        pane.exit_signal.is_none() && !matches!(pane.exit_status, Some(126 | 127))
    });
    let lines = inject::dead_pane_lines(town, made.pane);
    let shown = match &lines {
        Ok(lines) => shown_lines(lines),
        Err(problem) => format!("its last lines cannot be read: {problem}"),
    };
    // Long lines are wrapped, by the program or by its terminal.
    let whole = lines.map(|lines| lines.concat()).unwrap_or_default();
    let known = prepared.preset.hint_for(&[whole]);
    let problem = Problem::failed(format!("{} ended at once: {how}", prepared.identity));
    let problem =
        problem.cause(shown).hint(known.unwrap_or(
            "`gt role show` and `gt harness show` say how it is started; try that by hand",
        ));
    match by_itself {
        true => StartError::ProgramExited(problem),
        false => StartError::Other(problem),
    }
}

/// Returns the container of an agent that has ended, once tmux knows its exit status.
fn last_look(town: &Town, prepared: &Prepared<'_>) -> Option<Container> {
    let look = || {
        let found = containers::find(town, prepared.container.as_str());
        found.or_debug("the container is unknown").flatten()
    };
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let container = look()?;
        let pane = container.pane();
        let known = pane.exit_status.is_some() || pane.exit_signal.is_some();
        if (pane.dead && known) || Instant::now() >= deadline {
            return Some(container);
        }
        // tmux 3.3 sometimes loses an exit status until another child ends, so this runs one.
        let _ = town.server().run(Command::new("run-shell").arg("true"));
    }
}

fn shown_lines(lines: &[String]) -> String {
    let written: Vec<&str> = lines
        .iter()
        .map(|line| line.trim_end())
        .filter(|line| !line.is_empty())
        .collect();
    if written.is_empty() {
        return "it printed nothing, or tmux lost it".to_owned();
    }
    let last = &written[written.len().saturating_sub(SHOWN_LINES)..];
    format!("its last lines were:\n{}", last.join("\n"))
}
