//! Places at which a test can kill us.
//!
//! What has several steps must survive a SIGKILL between any two of them. Each such
//! place has a name, `<operation>.<what was just done>`, and a process whose environment
//! says `GT_FAULT=<name>` dies there as if somebody had killed it. Each operation lists
//! its places in a table, so that a test goes through all of them. A released binary has
//! none of this.

use crate::{Surroundings, Town};

/// Dies here, if a test wants it.
pub(crate) fn point(town: &Town, name: &str) {
    point_in(town.around(), name);
}

/// The same where the town is not at hand.
#[cfg(debug_assertions)]
pub(crate) fn point_in(around: &Surroundings, name: &str) {
    if around.var("GT_FAULT") != Some(name) {
        return;
    }
    let own = rustix::process::getpid();
    // Nothing is undone and nothing is flushed, as with a killer from outside.
    let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn point_in(_: &Surroundings, _: &str) {}
