//! Places at which a test can kill us.
//!
//! What has several steps must survive a SIGKILL between any two of them. Each such
//! place has a name, `<operation>.<what was just done>`, and a process whose environment
//! says `GT_FAULT=<name>` dies there as if somebody had killed it. Each operation lists
//! its places in a table, so that a test goes through all of them. With
//! `GT_HOLD=<name>=<path>` a process waits there until that file exists, and says with the
//! file `<path>.reached` that it does: so a test forces the order of two processes. A
//! released binary has none of this.

use crate::{Surroundings, Town};
#[cfg(debug_assertions)]
use std::path::Path;
#[cfg(debug_assertions)]
use std::time::{Duration, Instant};

/// Dies here, if a test wants it.
pub(crate) fn point(town: &Town, name: &str) {
    point_in(town.around(), name);
}

/// The same where the town is not at hand.
#[cfg(debug_assertions)]
pub(crate) fn point_in(around: &Surroundings, name: &str) {
    hold(around, name);
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

#[cfg(debug_assertions)]
fn hold(around: &Surroundings, name: &str) {
    const TIMEOUT: Duration = Duration::from_secs(60);
    const POLL: Duration = Duration::from_millis(5);
    let wanted = around.var("GT_HOLD").and_then(|hold| hold.split_once('='));
    let Some((_, path)) = wanted.filter(|(wanted, _)| *wanted == name) else {
        return;
    };
    // A test that never sees this file fails by that.
    let _ = std::fs::write(format!("{path}.reached"), "");
    let deadline = Instant::now() + TIMEOUT;
    while !Path::new(path).exists() && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn point_in(_: &Surroundings, _: &str) {}
