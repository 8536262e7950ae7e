//! Measures two operations against each other in the same run.

use std::process::Command;
use std::time::{Duration, Instant};

/// Runs both alternately, so that other load on the machine affects both.
pub(crate) fn compare(
    runs: usize,
    bare: impl Fn() -> Command,
    ours: impl Fn() -> Command,
) -> (Duration, Duration) {
    let mut bare_times = Vec::with_capacity(runs);
    let mut our_times = Vec::with_capacity(runs);
    for _ in 0..runs {
        bare_times.push(time(&mut bare()));
        our_times.push(time(&mut ours()));
    }
    (median(bare_times), median(our_times))
}

pub(crate) fn time(command: &mut Command) -> Duration {
    let began = Instant::now();
    let status = command.status().expect("the command runs");
    let elapsed = began.elapsed();
    assert!(status.success(), "{command:?}");
    elapsed
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub(crate) fn report(what: &str, bare: Duration, ours: Duration) {
    let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1_000.0);
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!("{what:<46} {:>9} {:>9} {ratio:>7.2}", ms(bare), ms(ours));
}
