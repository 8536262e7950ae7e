//! A timer of tmux that calls `gt internal resume-limited` after the end of a usage limit.

use crate::Town;
use crate::base::callback::Call;
use crate::base::or_log::OrLog;
use crate::records::limits;
use crate::terminal::{save_schedule, tmux_hooks};
use gt_core::limit::Limit;
use gt_core::state::{State, StateReport, StateSource};

/// Seconds after the end of a limit: clocks differ.
pub(crate) const MARGIN: i64 = 5;
/// Seconds after which a call that has not come counts as lost.
const VALID: i64 = 30;

/// Delay before an agent is moved to another account: its program may still write its transcript.
const SOON: i64 = 2;

/// Calls `gt internal resume-limited` in a moment, for agents that move to another account or whose
/// limit has no timer yet.
pub(crate) fn set_soon(town: &Town) {
    let town = &*town.with_own_server();
    let option = format!("@gt_limit_soon_{}", tmux_hooks::hook_index(town));
    let line = Call::ResumeLimited.line("");
    let call = save_schedule::call_once(town, &option, SOON, SOON, &line);
    let set = town.server().run(call);
    set.or_warn("agents at a usage limit are moved by the next upkeep");
}

/// Sets the timer for the end of the limit in a program's message, if it names one.
pub(crate) fn set_for_message(town: &Town, message: &str) {
    let report = StateReport {
        since: Some(town.clock().seconds()),
        limit: Some(Limit::from_text(message)),
        ..StateReport::new(State::Limited, StateSource::Hook)
    };
    if let Some(until) = limits::ended_by(&report) {
        set(town, until + MARGIN);
    }
}

/// Sets the timer for this time, in seconds since the epoch, unless it is set already. Regular upkeep
/// does the work if the timer cannot be set.
pub(crate) fn set(town: &Town, at: i64) {
    let town = &*town.with_own_server();
    let wait = (at - town.clock().seconds()).max(1);
    // One option for each minute: a later limit does not hide an earlier one.
    let option = format!("@gt_limit_{}_{}", tmux_hooks::hook_index(town), at / 60);
    let line = Call::ResumeLimited.line("");
    let call = save_schedule::call_once(town, &option, wait + VALID, wait, &line);
    let set = town.server().run(call);
    set.or_warn("agents are resumed after their limit by the next upkeep");
}
