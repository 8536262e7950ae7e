//! Measures `gt hook`, `gt prime`, `gt mail inbox` and `gt handoff` in a town with many items.
//!
//! Each figure is a ratio to bare `tmux display-message` calls in the same run.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/home.rs"]
mod home;
#[path = "shared/measure.rs"]
mod measure;

use home::Home;
use measure::{compare, median, report, time};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

const AGENT: &str = "gastown/crew/w00";
const ITEMS: usize = 5_000;

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let home = Home::new("gtc");
    home.add_rig(2);
    // A program that does nothing and ends at once when asked, so that its own time is not
    // measured.
    let preset = home.path("gt/harnesses/still.toml");
    std::fs::create_dir_all(home.path("gt/harnesses")).expect("a folder");
    let text = "name = 'still'\ntitle = 'Still'\n[command]\nprogram = 'sleep'\nargs = ['100000']\n\
                [process]\nnames = ['sleep']\n";
    std::fs::write(preset, text).expect("a preset");
    home.ok(&[
        "start",
        AGENT,
        "--harness",
        "still",
        "--no-prompt",
        "--no-wait",
    ]);
    println!("an agent's questions against bare tmux calls (median of each, same run)\n");
    println!("{:<46} {:>9} {:>9} {:>7}", "", "tmux", "gt", "ratio");
    questions(&home, "a new town");
    fill(&home);
    questions(&home, &format!("{ITEMS} items"));
    handoffs(&home);
}

/// Creates work for the agent among the work of others, and mail.
fn fill(home: &Home) {
    let mut lines = String::new();
    for number in 0..ITEMS {
        let _ = writeln!(
            lines,
            r#"{{"id":"gt-b{number}","title":"Item {number}","description":"What is to be done.","status":"open","priority":2,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}}"#
        );
    }
    let file = home.path("items.jsonl");
    std::fs::write(&file, lines).expect("a file");
    home.ok(&["work", "import", &file.to_string_lossy()]);
    home.ok(&["hook", "gt-b7", "--agent", AGENT]);
    for number in 0..20 {
        let subject = format!("Letter {number}");
        home.ok(&[
            "mail",
            "send",
            AGENT,
            "-s",
            &subject,
            "-m",
            "Read me.",
            "--no-nudge",
        ]);
    }
}

fn questions(home: &Home, town: &str) {
    const RUNS: usize = 100;
    let call = || home.tmux(&["display-message", "-p", "x"]);
    let as_agent = |args: &[&str]| {
        let mut command = home.gt(args);
        command.env("GT_ROLE", AGENT);
        command
    };
    for (what, args) in [
        ("hook", &["hook"][..]),
        ("prime", &["prime"]),
        ("prime --hook", &["prime", "--hook"]),
        ("mail inbox", &["mail", "inbox"]),
    ] {
        let (tmux, gt) = compare(RUNS, call, || as_agent(args));
        report(&format!("{what}, {town}"), tmux, gt);
    }
}

/// Measures a handoff, without the program's own start, against three tmux calls and as many disk
/// syncs as strace counts. The tmux calls are once the cheapest ones, and once those that every
/// replacement of a session needs.
fn handoffs(home: &Home) {
    const RUNS: usize = 30;
    let hand_over = || {
        home.gt(&[
            "handoff",
            AGENT,
            "--force",
            "--no-git-check",
            "-m",
            "Go on.",
        ])
    };
    let call = |args: &[&str]| {
        rest();
        time(&mut home.tmux(args))
    };
    call(&["new-session", "-d", "-s", "mine", "exec sleep 100000"]);
    let respawn = &["respawn-pane", "-k", "-t", "=mine:", "exec sleep 100000"];
    let waits = waits_for_the_disk(home, hand_over());
    let (mut cheapest, mut needed, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let ask = || call(&["display-message", "-p", "x"]);
        let disk = disk(home, waits);
        cheapest.push(ask() + ask() + ask() + disk);
        let list = call(&[
            "list-panes",
            "-a",
            "-F",
            "#{pane_id} #{pane_pid} #{@gt_agent}",
        ]);
        let tag = call(&["set-option", "-t", "=mine:", "@gt_session", "x"]);
        needed.push(list + call(respawn) + tag + disk);
        rest();
        ours.push(time(&mut hand_over()));
        await_what_it_left(home);
    }
    let ours = median(ours);
    let what = format!("handoff (three bare calls, {waits} waits for the disk)");
    report(&what, median(cheapest), ours);
    report(
        "handoff (list, respawn, tag, the same waits)",
        median(needed),
        ours,
    );
}

/// Waits for started programs to settle. tmux answers before the program that it starts is up, and
/// the next measurement would include the rest.
fn rest() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Waits for the background process of a handoff. It would slow down the next measurement.
fn await_what_it_left(home: &Home) {
    let is_it = |entry: std::fs::DirEntry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.contains(" internal settle ") && words.contains(&home.path("").display().to_string())
    };
    let is_there = || {
        let processes = std::fs::read_dir("/proc").into_iter().flatten();
        processes.flatten().any(is_it)
    };
    while is_there() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the number of disk syncs of a command, or 0 if strace is not available.
fn waits_for_the_disk(home: &Home, command: Command) -> usize {
    let trace = home.path("trace");
    let mut strace = home.command("strace");
    strace
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,exit_group", "-o"])
        .arg(&trace);
    strace.arg(command.get_program()).args(command.get_args());
    match strace.status() {
        Ok(status) if status.success() => {
            let text = std::fs::read_to_string(&trace).unwrap_or_default();
            // The caller does not wait for the syncs of a background process.
            let own = text.lines().take_while(|line| !line.contains("exit_group"));
            own.filter(|line| line.contains("sync(")).count()
        }
        _ => 0,
    }
}

/// Measures this number of small synchronous writes.
fn disk(home: &Home, waits: usize) -> Duration {
    let began = Instant::now();
    let mut file = std::fs::File::create(home.path("waits")).expect("a file");
    for _ in 0..waits {
        file.write_all(&[0; 512])
            .and_then(|()| file.sync_data())
            .expect("a write");
    }
    began.elapsed()
}
