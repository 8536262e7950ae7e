//! Prints the instructions of the calls that agents and tmux make constantly, and compares them with
//! the recorded ones.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/home.rs"]
mod home;
#[path = "shared/instructions.rs"]
mod instructions;

use instructions::{CallCounter, Counts, Recorded, compiler};
use std::process::Command;

const ROUNDS: usize = 3;

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions: not counted (valgrind is not installed)");
        return;
    }
    let counter = CallCounter::new();
    let mut counts = Counts::new();
    for _ in 0..ROUNDS {
        counter.count(&mut counts);
    }
    let recorded = Recorded::read();
    println!(
        "\ninstructions per call (recorded with {})\n",
        recorded.compiler
    );
    println!("{:<24} {:>12} {:>12} {:>7}", "", "recorded", "now", "ratio");
    for (name, count) in &counts {
        match recorded.counts.get(name) {
            Some(before) => {
                let ratio = *count as f64 / *before as f64;
                println!("{name:<24} {before:>12} {count:>12} {ratio:>7.3}");
            }
            None => println!("{name:<24} {:>12} {count:>12}", "-"),
        }
    }
    if recorded.compiler != compiler() {
        println!("\nThis is another compiler: {}.", compiler());
    }
    Recorded::write_if_asked(&counts);
}
