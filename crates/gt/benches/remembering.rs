//! Measures queries about a million sessions, a rebuild of their index, and a sync without changes.
//!
//! Each figure is a ratio to a bare operation in the same run: `gt --version`, a plain parse of
//! every line as JSON, one `tmux list-panes -a`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/home.rs"]
#[expect(dead_code, reason = "the others use more of it")]
mod home;
#[path = "shared/measure.rs"]
mod measure;

use home::Home;
use measure::{compare, report, time};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

const SESSIONS: u64 = 1_000_000;
const CONTAINERS: usize = 500;

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let stage = Stage::new();
    stage.index();
    stage.questions();
    stage.sync();
}

struct Stage {
    home: Home,
}

impl Stage {
    fn new() -> Self {
        Stage {
            home: Home::new("gtr"),
        }
    }

    fn journal(&self) -> PathBuf {
        self.home.path("gt/.sessions/index.jsonl")
    }

    fn gt(&self, args: &[&str]) -> Command {
        self.home.gt(args)
    }

    fn tmux(&self, args: &[&str]) -> Command {
        self.home.tmux(args)
    }

    /// Writes a million sessions of four thousand agents. Most of them have ended.
    fn write_journal(&self) -> u64 {
        let file = File::create(self.journal()).expect("a journal");
        let mut file = BufWriter::new(file);
        let mut lines = 0;
        let mut write = |line: Value| {
            writeln!(file, "{line}").expect("a line");
            lines += 1;
        };
        for number in 0..SESSIONS {
            write(begin(number));
            // Fifty sessions are alive at any time.
            if number >= 50 {
                write(end(number - 50));
            }
        }
        lines
    }

    fn index(&self) {
        let lines = self.write_journal();
        println!("an index of {SESSIONS} sessions, from {lines} lines\n");
        println!("{:<46} {:>9} {:>9} {:>7}", "", "bare", "gt", "ratio");
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let began = Instant::now();
            let reader = BufReader::new(File::open(self.journal()).expect("the journal"));
            let parsed = reader
                .lines()
                .map(|line| serde_json::from_str::<Value>(&line.expect("a line")))
                .filter(Result::is_ok)
                .count();
            assert_eq!(parsed as u64, lines);
            plain.push(began.elapsed());
            ours.push(time(&mut self.gt(&["sessions", "rebuild"])));
        }
        let (plain, ours) = (measure::median(plain), measure::median(ours));
        report("rebuild (a parse of each line)", plain, ours);
    }

    fn questions(&self) {
        // Without a server every query would include a sync.
        time(&mut self.tmux(&["new-session", "-d", "-s", "mine", "exec sleep 100000"]));
        let middle = id(SESSIONS / 2);
        let questions: [(&str, &[&str]); 6] = [
            ("list (gt --version)", &["sessions", "list"]),
            (
                "list --agent (gt --version)",
                &["sessions", "list", "--agent", "rig7/crew/w77"],
            ),
            (
                "list --outcome --since (gt --version)",
                &[
                    "sessions",
                    "list",
                    "--outcome",
                    "crash",
                    "--since",
                    "2023-11-20",
                ],
            ),
            ("show (gt --version)", &["sessions", "show", &middle]),
            ("chain (gt --version)", &["sessions", "chain", &middle]),
            (
                "chain of work (gt --version)",
                &["sessions", "chain", "gt-33333"],
            ),
        ];
        for (name, args) in questions {
            let (bare, ours) = compare(40, || self.gt(&["--version"]), || self.gt(args));
            report(name, bare, ours);
        }
    }

    fn sync(&self) {
        // No server of this town runs the sessions of the journal. An index is not replaced while
        // its journal is missing.
        let sessions = self.home.path("gt/.sessions");
        std::fs::remove_dir_all(sessions).expect("the sessions");
        let root = self.home.path("gt");
        let root = root.canonicalize().unwrap_or(root);
        let mut script = String::new();
        for number in 0..CONTAINERS {
            let name = format!("agent_f{number}");
            script += &format!("new-session -d -s {name} 'exec sleep 100000'\n");
            let session = id(number as u64);
            for (tag, value) in [
                ("@gt_town", root.to_string_lossy().into_owned()),
                ("@gt_agent", format!("agent/f{number}")),
                ("@gt_session", session),
                ("@gt_harness", "demo".to_owned()),
            ] {
                script += &format!("set-option -t ={name}: {tag} '{value}'\n");
            }
        }
        let file = self.home.path("containers");
        std::fs::write(&file, script).expect("a script");
        time(&mut self.tmux(&["source-file", &file.to_string_lossy()]));
        time(&mut self.gt(&["sync"]));
        let list = || self.tmux(&["list-panes", "-a"]);
        let (bare, ours) = compare(40, list, || self.gt(&["sync"]));
        report(
            "sync, nothing to do at 500 (tmux list-panes -a)",
            bare,
            ours,
        );
    }
}

/// Returns a UUIDv7 with the timestamp of that second.
fn id(number: u64) -> String {
    let milliseconds = 1_700_000_000_000 + number * 1000;
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
        milliseconds >> 16,
        milliseconds & 0xffff,
        random & 0xfff,
        (random >> 12) & 0xfff,
        (random >> 16) & 0xffff_ffff_ffff,
    )
}

fn at(number: u64, seconds: i64) -> String {
    let second = 1_700_000_000 + i64::try_from(number).expect("a number") + seconds;
    let time = jiff::Timestamp::from_second(second).expect("a time");
    format!("{time:.3}")
}

fn begin(number: u64) -> Value {
    let (rig, name) = (number % 20, number / 20 % 200);
    let agent = format!("rig{rig}/crew/w{name}");
    // Each chain has five sessions.
    let chain = id(number - number % 5);
    json!({
        "id": id(number), "tmux_session": format!("r{rig}-crew-w{name}"), "agent": agent,
        // Another server, so that a sync of this one does not end them.
        "tmux_socket": "/tmp/tmux-1000/elsewhere",
        "rig": format!("rig{rig}"), "role": "crew", "started_at": at(number, 0),
        "work_unit": number.is_multiple_of(3).then(|| format!("gt-{}", number % 50_000)),
        "chain_id": chain, "cwd": format!("/home/user/gt/{agent}"),
        "branch": format!("crew/w{name}"), "harness": "claude", "harness_session_id": id(number),
        "pane": format!("%{}", number % 500), "pid": number % 32_000 + 2,
        "initial_prompt": format!("[GAS TOWN] {agent} <- human • {} • cold-start\n\nCheck your hook and mail, then act on the hook if present.", at(number, 0)),
        "status": "running", "host": "machine",
    })
}

fn end(number: u64) -> Value {
    let outcomes = ["handoff", "done", "crash", "killed"];
    json!({
        "id": id(number), "ended_at": at(number, 60), "status": "stopped",
        "outcome": outcomes[usize::try_from(number % 4).expect("small")],
    })
}
