//! Fault points, at which a test can kill this process.
//!
//! An operation with several steps must survive a SIGKILL between any two of them. Each such point
//! has a name, `<operation>.<completed step>`, and a process with `GT_FAULT=<name>` in its
//! environment kills itself there. Each operation lists its points in a table, so that a test
//! covers all of them. With `GT_HOLD=<name>=<path>` a process creates `<path>.reached` at the point
//! and waits until `<path>` exists, so that a test can force the order of two processes. Release
//! builds contain none of this.

use crate::{Surroundings, Town};
#[cfg(debug_assertions)]
use std::path::Path;
#[cfg(debug_assertions)]
use std::time::{Duration, Instant};

/// Kills this process here if a test requests it.
pub(crate) fn point(town: &Town, name: &str) {
    point_in(town.around(), name);
}

/// Does the work of [`point`] for callers without a [`Town`].
#[cfg(debug_assertions)]
pub(crate) fn point_in(around: &Surroundings, name: &str) {
    hold(around, name);
    if around.var("GT_FAULT") != Some(name) {
        return;
    }
    let own = rustix::process::getpid();
    // No destructors run and nothing is flushed, as with a SIGKILL from outside.
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
    // If this fails, the file never appears, and the test that waits for it fails.
    let _ = std::fs::write(format!("{path}.reached"), "");
    let deadline = Instant::now() + TIMEOUT;
    while !Path::new(path).exists() && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn point_in(_: &Surroundings, _: &str) {}
