//! Measures the daemon of an idle town with 0, 100 and 500 agents, next to a shell loop in the same
//! run that lists the panes every 500 ms: processor time, wake-ups and started processes from a while
//! after one sweep of the daemon to shortly after the next.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/home.rs"]
mod home;
#[path = "shared/process.rs"]
#[expect(dead_code, reason = "the others use more of it")]
mod process;

use gt_tmux::{Batch, Command as Tmux, Server, Socket};
use home::Home;
use process::Spent;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Time after a sweep in which the threads of its duties end. The counters of a thread end with it.
const THREADS_END: Duration = Duration::from_secs(13);
/// Time after a sweep in which its duties run, and none of their threads ends.
const DUTIES_RUN: Duration = Duration::from_secs(5);
/// Time between two looks at the children of a process.
const SAMPLE: Duration = Duration::from_millis(2);

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    println!("an idle town, per minute with one sweep\n");
    println!(
        "{:<12} {:>12} {:>12} {:>7} {:>9} {:>9} {:>10} {:>10}",
        "agents", "poller", "daemon", "ratio", "wakes", "wakes", "processes", "processes"
    );
    println!(
        "{:<12} {:>12} {:>12} {:>7} {:>9} {:>9} {:>10} {:>10}",
        "", "CPU", "CPU", "", "poller", "daemon", "poller", "daemon"
    );
    for agents in [0, 100, 500] {
        measure(agents);
    }
}

fn measure(agents: usize) {
    let home = Home::new("gti");
    home.add_rig(1);
    if agents > 0 {
        fill(&home, agents);
    }
    home.ok(&["daemon", "start"]);
    let daemon = daemon_pid(&home);
    await_sweep(&home);
    std::thread::sleep(THREADS_END);
    let mut poller = poll(&home);
    let before = [poller.id(), daemon].map(Spent::of);
    let began = Instant::now();
    let started = watch_children([poller.id(), daemon], &home);
    let per_minute = 60.0 / began.elapsed().as_secs_f64();
    let after = [poller.id(), daemon].map(Spent::of);
    stop(&mut poller);
    home.ok(&["daemon", "stop"]);
    let [bare, ours] = [0, 1].map(|which: usize| after[which].since(&before[which]));
    // The poller works all the time. The daemon has one sweep, however long the measurement takes.
    let ms = |spent: &Spent| spent.time.as_secs_f64() * 1_000.0;
    println!(
        "{agents:<12} {:>9.1} ms {:>9.1} ms {:>7.3} {:>9.0} {:>9} {:>10.0} {:>10}",
        ms(&bare) * per_minute,
        ms(&ours),
        ms(&ours) / (ms(&bare) * per_minute),
        bare.wakes as f64 * per_minute,
        ours.wakes,
        started[0] as f64 * per_minute,
        started[1],
    );
}

/// Makes containers of idle demo agents: one by a start, the others as copies of its session, which
/// run the same program with their own tags.
fn fill(home: &Home, agents: usize) {
    home.ok(&["crew", "start", "w00", "--no-prompt"]);
    let server = Server::new(Socket::Path(home.path("s"))).with_config("/dev/null");
    let ask = |words: &[&str]| {
        let answer = home.tmux(words).stdout(Stdio::piped()).output();
        String::from_utf8(answer.expect("tmux runs").stdout).expect("text")
    };
    let first = "=gt-crew-w00:";
    let tags: Vec<(String, String)> = ask(&["show-options", "-t", first])
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| name.starts_with("@gt_") && *name != "@gt_pane")
        .map(|(name, _)| {
            let value = ask(&["show-options", "-v", "-t", first, name]);
            (name.to_owned(), value.trim_end_matches('\n').to_owned())
        })
        .collect();
    for number in 1..agents {
        let name = format!("gt-crew-w{number:02}");
        let mut batch = Batch::new();
        let program = format!("exec '{}' demo-agent", home::gt());
        batch.push(
            Tmux::new("new-session").args(["-d", "-s", &name, "-x", "200", "-y", "50", &program]),
        );
        let target = format!("={name}:");
        for (tag, value) in &tags {
            let own = value.replace("w00", &format!("w{number:02}"));
            batch.push(Tmux::new("set-option").args(["-t", &target, tag, &own]));
        }
        batch.push(Tmux::new("set-option").args(["-Ft", &target, "@gt_pane", "#{pane_id}"]));
        server.run(batch).expect("a container");
    }
    let mut listed = home.gt(&["agents", "--all", "--json"]);
    let listed = listed.stdout(Stdio::piped()).output();
    let listed = listed.expect("gt runs").stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).expect("agents");
    assert_eq!(listed.as_array().map(Vec::len), Some(agents));
}

fn daemon_pid(home: &Home) -> u32 {
    let mut status = home.gt(&["daemon", "status", "--json"]);
    let status = status.stdout(Stdio::piped()).output().expect("gt runs");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("a status");
    let pid = status["pid"].as_u64().expect("its pid");
    u32::try_from(pid).expect("a pid")
}

/// Starts the poller, in a process group of its own.
fn poll(home: &Home) -> Child {
    let line = "while :; do tmux -S \"$GT_TMUX_SOCKET\" list-panes -a -F \
                '#{session_name} #{pane_id} #{pane_dead} #{pane_current_command}' >/dev/null 2>&1; \
                sleep 0.5; done";
    let mut shell = home.command("sh");
    shell.args(["-c", line]).process_group(0);
    shell.spawn().expect("a shell")
}

fn stop(poller: &mut Child) {
    let pid = rustix::process::Pid::from_child(poller);
    let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    let _ = poller.wait();
}

/// Returns the number of sweeps of the daemon.
fn sweeps(home: &Home) -> u64 {
    let note = std::fs::read(home.path("gt/.runtime/daemon.json")).unwrap_or_default();
    // A note that is being written is read in the next round.
    let note: serde_json::Value = serde_json::from_slice(&note).unwrap_or_default();
    note["duties"]["upkeep"]["runs"].as_u64().unwrap_or(0)
}

fn await_sweep(home: &Home) {
    let before = sweeps(home);
    while sweeps(home) <= before {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Counts the children that these processes start until shortly after the next sweep.
fn watch_children(parents: [u32; 2], home: &Home) -> [usize; 2] {
    let mut seen = parents.map(children);
    let before = [seen[0].len(), seen[1].len()];
    let first = sweeps(home);
    let mut swept: Option<Instant> = None;
    while swept.is_none_or(|at| at.elapsed() < DUTIES_RUN) {
        if swept.is_none() && sweeps(home) > first {
            swept = Some(Instant::now());
        }
        for (seen, parent) in seen.iter_mut().zip(parents) {
            seen.extend(children(parent));
        }
        std::thread::sleep(SAMPLE);
    }
    [0, 1].map(|which: usize| seen[which].len() - before[which])
}

fn children(pid: u32) -> BTreeSet<u32> {
    let tasks = std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
    let lists: Vec<String> = lists.map(Result::unwrap_or_default).collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}
