//! Stops the turn of a task's agent, to be resumed later: the program keeps running, with its
//! conversation.

use super::site::Site;
use super::{event_of, tag_of, tags, wip};
use crate::base::fault;
use crate::base::lock::FileLock;
use crate::messaging::inject::{self, Seen, Typist, put_back};
use crate::messaging::queue::Queue;
use crate::messaging::{nudge, signal};
use crate::records::events::Events;
use crate::terminal::containers::{Container, tmux_problem};
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::state::State;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_tmux::Command;
use std::time::{Duration, Instant};

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &[
    "pause.marked",
    "pause.stopped",
    "pause.noted",
    "pause.committed",
];

/// Maximum wait for the typing lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for a turn to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before the keys are pressed again, if the program is still busy.
const PRESS_AGAIN: Duration = Duration::from_secs(5);
/// Delay between two keys: programs use it to tell an Escape from the beginning of another key.
const BETWEEN_KEYS: Duration = Duration::from_millis(100);
/// Minimum time that the screen must look stopped: programs draw an empty line between two screens.
const CALM: Duration = Duration::from_millis(400);

#[derive(Clone, Debug)]
pub struct Paused {
    pub id: WorkId,
    pub agent: Identity,
    /// It was busy and was stopped.
    pub interrupted: bool,
    /// It shows a question, which stays open.
    pub asks: bool,
    /// Commit that contains the uncommitted changes.
    pub wip: Option<String>,
    pub warnings: Vec<String>,
}

/// Pauses the agent of a task.
pub fn pause(town: &Town, id: &WorkId, given: Option<&str>) -> Result<Paused> {
    let site = Site::of(town, id)?;
    let _lock = site.lock()?;
    let container = nudge::running(town, &site.agent)?;
    let preset = nudge::preset_of(town, &container)?;
    let before = container.state(Some(&preset)).state;
    // Prevents that messages are typed between the keys.
    let _typing = FileLock::take(&Queue::of(town, &site.agent).lock_path(), LOCK_TIMEOUT)?;
    let reason = given.unwrap_or("paused by a person");
    // Marked first: otherwise the end of the turn would deliver the next message.
    let is_new = signal::mark_paused(town, &site.agent, reason)?;
    fault::point(town, "pause.marked");
    let stopped = interrupt(town, &container, &preset, before);
    let stopped = match stopped {
        Ok(stopped) => stopped,
        Err(problem) => {
            signal::clear_paused(town, &site.agent)?;
            return Err(problem);
        }
    };
    if let Some(turn) = &stopped.turn {
        set_tag(&site, &container, tags::STOPPED, &turn.message)?;
        let put_back = turn.put_back.as_deref().unwrap_or_default();
        set_tag(&site, &container, tags::PUT_BACK, put_back)?;
    }
    fault::point(town, "pause.stopped");
    let mut warnings = Vec::new();
    let wip = wip::commit(&site, &mut warnings).unwrap_or_else(|problem| {
        let causes = problem.causes().join(": ");
        let words = format!("its changes could not be committed: {problem} {causes}");
        warnings.push(words.trim_end().to_owned());
        None
    });
    if let Some(wip) = &wip {
        set_tag(&site, &container, tags::WIP, wip)?;
    }
    // Marked again: late reports of the stopped turn are compared with this time.
    signal::mark_paused(town, &site.agent, reason)?;
    let interrupted = stopped.turn.is_some();
    if is_new {
        let event = event_of(town, "paused", id, &site.agent)
            .with("reason", given)
            .with("interrupted", interrupted)
            .with("wip", wip.clone());
        Events::of(town).note(vec![event]);
    }
    Ok(Paused {
        id: id.clone(),
        agent: site.agent.clone(),
        interrupted,
        asks: stopped.asks,
        wip,
        warnings,
    })
}

/// Undoes the commit of a pause that a prompt has ended, before the agent continues from it.
pub fn prompted(town: &Town, agent: &Identity) -> Result<()> {
    let id = agent.short_name().parse::<WorkId>();
    // A task without a worktree has no commit of a pause.
    let Some(site) = id.ok().and_then(|id| Site::of(town, &id).ok()) else {
        return Ok(());
    };
    if !wip::is_noted(&site) {
        return Ok(());
    }
    // The holder of the lock is pausing or resuming, and handles the commit itself.
    let Some(_lock) = site.try_lock()? else {
        return Ok(());
    };
    let undone = wip::undo(&site)?;
    match (undone, site.container()?) {
        (wip::Undone::Commit(_), Some(container)) => set_tag(&site, &container, tags::WIP, ""),
        _ => Ok(()),
    }
}

pub(super) fn set_tag(
    site: &Site<'_>,
    container: &Container,
    name: &str,
    value: &str,
) -> Result<()> {
    if value.is_empty() && tag_of(site.town, container, name)?.is_empty() {
        return Ok(());
    }
    let set = Command::new("set-option")
        .target(container.id())
        .args([name, value]);
    let done = site.town.server().run(set).map(drop);
    done.map_err(|error| tmux_problem("cannot mark the container", error))
}

struct Stopped {
    /// The turn that was stopped, if there was one.
    turn: Option<StoppedTurn>,
    asks: bool,
}

struct StoppedTurn {
    /// Fingerprint of its message, as reported by the program's hooks.
    message: String,
    /// Mark of the input line, if the program put the message back into it.
    put_back: Option<String>,
}

/// Stops the turn. Presses no key if no turn is visible: at a prompt the keys mean something else,
/// and in a dialog they are an answer.
fn interrupt(
    town: &Town,
    container: &Container,
    preset: &Preset,
    before: State,
) -> Result<Stopped> {
    let mut typist = Typist::new(town, container, preset);
    let began = Instant::now();
    let mut presses = Presses::new(&preset.interrupt.keys);
    let mut line_was_empty = true;
    let mut calm_since: Option<Instant> = None;
    // The screen of a program without marks says nothing; its hooks may.
    let is_blind = preset.screen.busy.is_empty() && preset.screen.ready.is_empty();
    let works = |seen: &Seen| match seen.state {
        Some(state) => state == State::Busy,
        None => before == State::Busy || is_blind,
    };
    loop {
        let seen = typist.observe()?;
        if seen.is_over {
            return Err(Problem::conflict("the agent ended meanwhile")
                .hint("`gt task resume` starts it again"));
        }
        let is_unread = seen.state.is_none();
        if seen.dialog || !works(&seen) || (is_unread && presses.are_done()) {
            let since = *calm_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= CALM {
                let turn = StoppedTurn {
                    put_back: put_back::mark(&seen).filter(|_| line_was_empty),
                    message: match seen.last_prompt.is_empty() {
                        true => "unknown".to_owned(),
                        false => seen.last_prompt,
                    },
                };
                return Ok(Stopped {
                    turn: presses.have_begun().then_some(turn),
                    asks: seen.dialog,
                });
            }
        } else {
            calm_since = None;
            if !presses.have_begun() {
                line_was_empty = put_back::mark(&seen).is_none();
            }
            if let Some(key) = presses.next() {
                let keys = inject::key_presses(container.pane().pane, std::slice::from_ref(key));
                let done = town.server().run(keys).map(drop);
                done.map_err(|error| tmux_problem("cannot type into the pane", error))?;
            }
        }
        if began.elapsed() > STOP_TIMEOUT {
            return Err(Problem::failed("the agent does not stop")
                .hint("`gt attach` shows what it does; `gt task stop` ends it"));
        }
        town.around().cancel.check()?;
        typist.wait(Duration::from_millis(100));
    }
}

/// The keys that stop a turn, pressed one after another: programs read two Escapes at once as one
/// key with Alt, and the second is not pressed once the turn has stopped.
struct Presses<'p> {
    keys: &'p [String],
    count: usize,
    last: Option<Instant>,
}

impl<'p> Presses<'p> {
    fn new(keys: &'p [String]) -> Self {
        Presses {
            keys,
            count: 0,
            last: None,
        }
    }

    fn have_begun(&self) -> bool {
        self.count > 0
    }

    fn are_done(&self) -> bool {
        self.count >= self.keys.len().max(1)
    }

    /// Returns the key to press now, if its delay has passed.
    fn next(&mut self) -> Option<&'p String> {
        let place = self.count % self.keys.len().max(1);
        let pause = if place == 0 {
            PRESS_AGAIN
        } else {
            BETWEEN_KEYS
        };
        if self.last.is_some_and(|at| at.elapsed() < pause) {
            return None;
        }
        self.count += 1;
        self.last = Some(Instant::now());
        self.keys.get(place)
    }
}
