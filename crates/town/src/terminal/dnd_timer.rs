//! A timer of tmux that calls `gt internal end-dnd` at the end of a do-not-disturb.

use crate::Town;
use crate::base::callback::Call;
use crate::base::or_log::OrLog;
use crate::terminal::{save_schedule, tmux_hooks};

/// Seconds after which a call that has not come counts as lost.
const VALID: i64 = 30;

/// Sets the timer for this time, in seconds since the epoch, unless it is set already. Without a
/// running tmux server, regular upkeep does the work.
pub(crate) fn set(town: &Town, at: i64) {
    let town = &*town.with_own_server();
    let wait = (at - town.clock().seconds()).max(1);
    let option = format!("@gt_dnd_{}_{at}", tmux_hooks::hook_index(town));
    let line = Call::EndDnd.line("");
    let call = save_schedule::call_once(town, &option, wait + VALID, wait, &line);
    let set = town.server().run(call);
    set.or_debug("held messages are delivered by the next upkeep");
}
