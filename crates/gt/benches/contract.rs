//! What it costs an agent to ask for its work, to be told how things stand, and to hand
//! over, in a town of some size.
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
    // `cargo test --benches` only wants to know that it builds and begins.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let home = Home::new("gtc");
    home.add_rig(2);
    // A program that does nothing, and ends as soon as it is told to: its own time is not
    // what is measured.
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

/// Work for the agent among that of others, and letters.
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

/// Handing over, without the program's own start, against three tmux calls and the waits
/// for the disk that the promise takes: as many as the kernel counts. Once the cheapest
/// calls that there are, and once those without which nobody takes another's place.
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

/// Lets what was begun come to rest: a program that tmux has just started is still at it
/// when tmux has answered, and what is measured next would pay for it.
fn rest() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Waits for the process to which a handoff has left what nobody waits for: beside it
/// everything measured would be slower.
fn await_what_it_left(home: &Home) {
    let is_it = |entry: std::fs::DirEntry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.contains(" sync --settle ") && words.contains(&home.path("").display().to_string())
    };
    let is_there = || {
        let processes = std::fs::read_dir("/proc").into_iter().flatten();
        processes.flatten().any(is_it)
    };
    while is_there() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How often a command waits for the disk; none where nobody can count.
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
            // What it leaves to another process nobody waits for.
            let own = text.lines().take_while(|line| !line.contains("exit_group"));
            own.filter(|line| line.contains("sync(")).count()
        }
        _ => 0,
    }
}

/// So many small writes that are waited for.
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
