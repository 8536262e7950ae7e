//! Guards the number of instructions of the calls that agents and tmux make constantly.
//!
//! `crates/gt/benches/instructions.toml` has the recorded counts, and the command that records them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![cfg(target_os = "linux")]

#[path = "cli/external_programs.rs"]
mod external_programs;
#[path = "../benches/shared/home.rs"]
mod home;
#[path = "../benches/shared/instructions.rs"]
mod instructions;

use instructions::{CallCounter, Counts, Recorded, compiler};

/// A call may need this many percent more instructions than recorded.
const SLACK: u64 = 5;
/// Maximum number of rounds. Under load, a call may have to wait for a lock.
const ROUNDS: usize = 3;

#[test]
fn frequent_calls_need_no_more_instructions_than_recorded() {
    if !external_programs::are_there("instructions of frequent calls", &["valgrind"]) {
        return;
    }
    let is_recording = std::env::var_os("GT_COUNTS").is_some();
    let recorded = Recorded::read();
    if recorded.compiler != compiler() && !is_recording {
        external_programs::skip(&format!(
            "the instructions were counted with {}, and this is {}",
            recorded.compiler,
            compiler()
        ));
        return;
    }
    let counter = CallCounter::new();
    let mut counts = Counts::new();
    let mut findings = Vec::new();
    for _ in 0..ROUNDS {
        counter.count(&mut counts);
        findings = excesses(&recorded.counts, &counts);
        if findings.is_empty() && !is_recording {
            return;
        }
    }
    Recorded::write_if_asked(&counts);
    assert!(
        findings.is_empty() || is_recording,
        "more instructions than recorded in crates/gt/benches/instructions.toml, which says how to \
         record them:\n{}",
        findings.join("\n")
    );
}

/// Returns the calls that need too many instructions, and those without a record.
fn excesses(recorded: &Counts, found: &Counts) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, count) in found {
        match recorded.get(name) {
            None => findings.push(format!("gt {name}: {count}, and no record")),
            Some(limit) if count * 100 > limit * (100 + SLACK) => {
                findings.push(format!("gt {name}: {count}, recorded {limit}"));
            }
            Some(_) => {}
        }
    }
    findings
}

#[test]
fn counts_above_the_slack_are_findings() {
    let counts = |count: u64| Counts::from([("hook".to_owned(), count)]);
    let check = |recorded: Counts, found: u64| excesses(&recorded, &counts(found)).len();
    assert_eq!(check(counts(1000), 1050), 0);
    assert_eq!(check(counts(1000), 1051), 1);
    assert_eq!(check(counts(1000), 1), 0);
    assert_eq!(check(Counts::new(), 1), 1);
}
