//! Measures commands in a town with a large history, as ratios to `gt --version` in the same run.
//!
//! `GT_BENCH_HISTORY=100` divides all sizes by 100. The peak memory is that of the `gt` process, as
//! GNU time reports it.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/history.rs"]
mod history;
#[path = "shared/home.rs"]
mod home;
#[path = "shared/measure.rs"]
#[expect(dead_code, reason = "the others use more of it")]
mod measure;

use history::{AGENT, FIRST_TITLE, Marks, RARE_KIND, Scale};
use home::Home;
use measure::{median, time};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Ratio to `gt --version` that commands must not exceed.
const MOST: f64 = 20.0;

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let stage = Stage::new();
    stage.first_reads();
    stage.commands();
    stage.follow();
    stage.board();
    stage.upkeep();
}

struct Stage {
    home: Home,
    marks: Marks,
}

impl Stage {
    fn new() -> Self {
        let divisor = std::env::var("GT_BENCH_HISTORY").ok();
        let divisor = divisor.and_then(|text| text.parse().ok()).unwrap_or(1);
        let scale = Scale::FULL.divided_by(divisor);
        let home = Home::new("gth");
        home.add_rig(1);
        // The first item creates the database.
        home.ok(&["work", "create", "The first item", "--rig", "gastown"]);
        let began = Instant::now();
        let marks = history::write(&home.path("gt"), &home.path(""), scale);
        println!("{scale:?}");
        println!("written in {:.0} s", began.elapsed().as_secs_f64());
        // Without a server every command would include a sync.
        time(&mut home.tmux(&["new-session", "-d", "-s", "mine", "exec sleep 100000"]));
        println!("\n{:<52} {:>11} {:>8} {:>9}", "", "time", "ratio", "memory");
        let stage = Stage { home, marks };
        stage.once("sessions rebuild", &["sessions", "rebuild"]);
        stage
    }

    /// Measures commands whose first run in a town reads more than the next ones.
    fn first_reads(&self) {
        self.once("sync, the first", &["sync"]);
        self.once("sessions list, the first", &["sessions", "list"]);
    }

    fn commands(&self) {
        let marks = &self.marks;
        let commands: &[&[&str]] = &[
            &["sessions", "list"],
            &["sessions", "list", "--agent", "rig7/crew/w77"],
            &["sessions", "list", "--outcome", "crash"],
            &["sessions", "show", &marks.session],
            &["sessions", "chain", &marks.session],
            &["sessions", "chain", &marks.long_chain],
            &["work", "list"],
            &["work", "list", "--page", "20"],
            &["work", "list", "--all"],
            &["work", "list", "--status", "closed"],
            &["work", "list", "--rig", "gastown", "--label", "area-20"],
            &["work", "ready"],
            &["work", "show", &marks.item],
            &["work", "tree", &marks.parent],
            &["work", "search", "number 99999"],
            &["mail", "inbox", "--agent", AGENT],
            &["mail", "inbox", "--agent", AGENT, "--unread"],
            &["mail", "inbox", "--agent", AGENT, "--page", "100"],
            &["mail", "read", &marks.mail, "--thread", "--agent", AGENT],
            &["mail", "search", "Message 59999", "--agent", AGENT],
            &["prime", "--agent", AGENT],
            &["hook", "--agent", AGENT],
            &["agents"],
            &["status"],
            &["events"],
            &["events", "--feed"],
            &["events", "--type", "nudge"],
            &["events", "--about", "rig7/crew/w77"],
            &["events", "--type", RARE_KIND],
            &["events", "--since", "1h"],
            &["events", "--after", "4999000"],
            &["nudge", "--list", AGENT],
            &["costs"],
            &["costs", "--since", "7d"],
            &["sync"],
        ];
        for args in commands {
            self.often(args);
        }
        self.hook_of_a_session("prime --hook", &["prime", "--hook"], "SessionStart");
        self.hook_of_a_session("signal stop", &["signal", "stop"], "Stop");
    }

    /// Measures a command, and `gt --version` alternately.
    fn often(&self, args: &[&str]) {
        let runs = 11;
        let measured = || self.home.gt(args);
        self.report(&args.join(" "), runs, &measured);
    }

    /// Measures a command that takes long, once.
    fn once(&self, name: &str, args: &[&str]) {
        let measured = || self.home.gt(args);
        self.report(name, 1, &measured);
    }

    /// Measures a hook as an agent program calls it.
    fn hook_of_a_session(&self, name: &str, args: &[&str], event: &str) {
        let report = self.home.path("report");
        let text = format!("{{\"hook_event_name\":\"{event}\",\"source\":\"startup\"}}");
        std::fs::write(&report, text).expect("a report");
        self.home.ok(&["crew", "start", "w00", "--no-prompt"]);
        let session = self.marks.session.clone();
        let measured = || {
            let mut command = self.home.gt(args);
            let input = std::fs::File::open(&report).expect("the report");
            command
                .env("GT_ROLE", AGENT)
                .env("GT_SESSION", "gt-crew-w00")
                .env("GT_SESSION_UUID", &session)
                .stdin(Stdio::from(input))
                .stderr(Stdio::null());
            command
        };
        self.report(name, 11, &measured);
        self.home.ok(&["crew", "stop", "w00", "--force"]);
    }

    fn report(&self, name: &str, runs: usize, command: &dyn Fn() -> Command) {
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            bare.push(time(&mut self.home.gt(&["--version"])));
            ours.push(timed(&mut command()));
        }
        // A command that runs once is measured with its memory in the same run only for the time of
        // the next one; its second run is warm.
        let memory = peak_memory(&command(), &self.home.path("memory"));
        line(name, median(ours), self.version(bare), memory);
    }

    fn version(&self, measured: Vec<Duration>) -> Duration {
        match measured.len() {
            0..10 => {
                let more = (0..11).map(|_| time(&mut self.home.gt(&["--version"])));
                median(more.collect())
            }
            _ => median(measured),
        }
    }

    /// Measures the time until a follower has printed the ten events before it.
    fn follow(&self) {
        for (name, args, lines) in [
            (
                "events --follow, until ten lines",
                vec!["events", "--follow"],
                10,
            ),
            (
                "events --follow --type nudge, until ten lines",
                vec!["events", "--follow", "--type", "nudge"],
                10,
            ),
        ] {
            let mut times = Vec::new();
            let mut memory = None;
            for _ in 0..11 {
                let began = Instant::now();
                let mut command = self.home.gt(&args);
                let mut child = command.stdout(Stdio::piped()).spawn().expect("gt runs");
                let stdout = child.stdout.take().expect("its output");
                let read = BufReader::new(stdout).lines().take(lines).count();
                times.push(began.elapsed());
                assert_eq!(read, lines, "{name}");
                memory = memory.max(memory_of(child.id()));
                child.kill().expect("it runs");
                child.wait().expect("it ends");
            }
            line(name, median(times), self.version(Vec::new()), memory);
        }
    }

    /// Measures the time until the board shows the most urgent item.
    fn board(&self) {
        let socket = self.home.path("u");
        let tmux = |args: &[&str]| {
            let mut command = self.home.command("tmux");
            command.arg("-u").arg("-S").arg(&socket);
            command.args(["-f", "/dev/null"]).args(args);
            command
        };
        let mut times = Vec::new();
        let mut memory = None;
        for _ in 0..5 {
            let began = Instant::now();
            let size = ["new-session", "-d", "-x", "200", "-y", "50"];
            let mut start = tmux(&size);
            start.args([home::gt(), "board"]);
            time(&mut start);
            loop {
                let shown = tmux(&["capture-pane", "-p"])
                    .stdout(Stdio::piped())
                    .output();
                let shown = shown.expect("tmux runs").stdout;
                if String::from_utf8_lossy(&shown).contains(&FIRST_TITLE[..12]) {
                    break;
                }
                assert!(began.elapsed() < Duration::from_secs(60), "no board");
            }
            times.push(began.elapsed());
            let pid = tmux(&["display-message", "-p", "#{pane_pid}"])
                .stdout(Stdio::piped())
                .output();
            let pid = String::from_utf8_lossy(&pid.expect("tmux runs").stdout).into_owned();
            memory = memory.max(pid.trim().parse().ok().and_then(memory_of));
            time(&mut tmux(&["kill-server"]));
        }
        line(
            "board, until an item is shown (with a tmux server)",
            median(times),
            self.version(Vec::new()),
            memory,
        );
    }

    /// Measures what reads everything: exports and retention.
    fn upkeep(&self) {
        self.once("costs --by item", &["costs", "--by", "item"]);
        self.once("sessions stats", &["sessions", "stats"]);
        self.once(
            "sessions export --jsonl",
            &["sessions", "export", "--jsonl"],
        );
        self.once("work export", &["work", "export"]);
        self.once(
            "events --since 90d --json",
            &["events", "--since", "90d", "--json"],
        );
        self.once("events stats", &["events", "stats"]);
        self.once("events verify", &["events", "verify"]);
        self.once("events prune --dry-run", &["events", "prune", "--dry-run"]);
        self.once("events prune", &["events", "prune"]);
        let before = ["sessions", "archive", "--before", "90d"];
        self.once(
            "sessions archive --before 90d --dry-run",
            &[&before[..], &["--dry-run"]].concat(),
        );
        self.once("sessions archive --before 90d", &before);
    }
}

fn line(name: &str, ours: Duration, version: Duration, memory: Option<u64>) {
    let ratio = ours.as_secs_f64() / version.as_secs_f64();
    let mark = if ratio > MOST { " *" } else { "" };
    let memory = memory.map_or_else(|| "?".to_owned(), |kb| format!("{:.0} MB", kb as f64 / 1e3));
    let ms = ours.as_secs_f64() * 1_000.0;
    println!("{name:<52} {ms:>8.2} ms {ratio:>8.1} {memory:>9}{mark}");
}

/// Runs a command whose exit code does not matter.
fn timed(command: &mut Command) -> Duration {
    let began = Instant::now();
    command.status().expect("the command runs");
    began.elapsed()
}

/// Runs a command again under GNU time. Returns its peak memory in kB.
fn peak_memory(command: &Command, file: &std::path::Path) -> Option<u64> {
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-q", "-f", "%M", "-o"]).arg(file);
    timed.arg(command.get_program()).args(command.get_args());
    timed.env_clear();
    for (name, value) in command.get_envs() {
        timed.envs(value.map(|value| (name, value)));
    }
    if let Some(folder) = command.get_current_dir() {
        timed.current_dir(folder);
    }
    timed
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    timed.status().ok()?;
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Returns the peak memory of a running process in kB.
fn memory_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
