//! Measures how the cost of a command grows with the number of agents.
//!
//! Each command runs among 1, 50, 300 and 1,000 containers, alternately with the bare tmux command
//! that does the same, or with `tmux display-message` where there is none. tmux itself becomes slower
//! with more sessions, so a command's growth is that of its ratio to tmux.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/home.rs"]
mod home;
#[path = "shared/measure.rs"]
#[expect(dead_code, reason = "this benchmark prints a table of its own")]
mod measure;

use gt_tmux::{Batch, Command as Tmux, Server, SessionName, Socket};
use gt_town::terminal::containers::PaneRow;
use home::Home;
use measure::{compare, median, time};
use std::process::Command;
use std::time::Duration;

const SIZES: [usize; 4] = [1, 50, 300, 1000];
const AGENT: &str = "gastown/crew/w00";
const CONTAINER: &str = "gt-crew-w00";
const SEVEN_FIELDS: &str = "#{session_id} #{session_name} #{pane_id} #{pane_pid} #{pane_dead} #{window_activity} #{@gt_agent}";

/// The tmux command that a command of `gt` is compared with.
#[derive(Clone, Copy)]
enum Bare {
    DisplayMessage,
    CapturePane,
    ListPanes,
}

impl Bare {
    fn words(self) -> &'static [&'static str] {
        match self {
            Bare::DisplayMessage => &["display-message", "-p", "-t", "=gt-crew-w00:", "x"],
            Bare::CapturePane => &["capture-pane", "-p", "-t", "=gt-crew-w00:"],
            Bare::ListPanes => &["list-panes", "-a", "-F", SEVEN_FIELDS],
        }
    }
}

/// Commands that change no container, and the tmux command of each.
const COMMANDS: &[(&[&str], Bare)] = &[
    (
        &["status-line", "--session", CONTAINER],
        Bare::DisplayMessage,
    ),
    (&["peek", AGENT], Bare::CapturePane),
    (&["peek", "w00"], Bare::CapturePane),
    (&["hook", "--agent", AGENT], Bare::DisplayMessage),
    (
        &["signal", "tool-end", "--session", CONTAINER],
        Bare::DisplayMessage,
    ),
    (&["prime", "--agent", AGENT], Bare::DisplayMessage),
    (&["wait", "w00", "--timeout", "5"], Bare::DisplayMessage),
    (
        &["nudge", "w00", "hello", "--mode", "queue"],
        Bare::DisplayMessage,
    ),
    (&["agents"], Bare::ListPanes),
    (&["agents", "--json"], Bare::ListPanes),
];

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let stage = Stage::new();
    let mut rows: Vec<Row> = Vec::new();
    for size in SIZES {
        stage.fill(size);
        for (words, bare) in COMMANDS {
            let runs = if size == 1000 { 31 } else { 61 };
            let (tmux, gt) = compare(
                runs,
                || stage.home.tmux(bare.words()),
                || stage.home.gt(words),
            );
            Row::add(&mut rows, &words.join(" "), tmux, gt);
        }
        let (tmux, gt) = stage.start_and_stop();
        Row::add(&mut rows, "start --no-wait (new-session)", tmux[0], gt[0]);
        Row::add(&mut rows, "stop --force (kill-session)", tmux[1], gt[1]);
    }
    println!("gt / tmux in ms and their ratio, among {SIZES:?} agents; growth of the ratio\n");
    for row in &rows {
        row.print();
    }
}

/// The medians of one command, for each size.
struct Row {
    what: String,
    times: Vec<(Duration, Duration)>,
}

impl Row {
    fn add(rows: &mut Vec<Row>, what: &str, tmux: Duration, gt: Duration) {
        match rows.iter_mut().find(|row| row.what == what) {
            Some(row) => row.times.push((tmux, gt)),
            None => rows.push(Row {
                what: what.to_owned(),
                times: vec![(tmux, gt)],
            }),
        }
    }

    fn print(&self) {
        let ratio = |(tmux, gt): &(Duration, Duration)| gt.as_secs_f64() / tmux.as_secs_f64();
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        let cells = self.times.iter().map(|both| {
            let (tmux, gt) = *both;
            format!("{:6.1} /{:6.1} {:5.2}", ms(gt), ms(tmux), ratio(both))
        });
        let cells: Vec<String> = cells.collect();
        let growth = match self.times.as_slice() {
            [first, .., last] => ratio(last) / ratio(first),
            _ => 1.0,
        };
        println!("{:<40} {} | {growth:5.2}", self.what, cells.join(" |"));
    }
}

struct Stage {
    home: Home,
    server: Server,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new("gtg");
        home.add_rig(1);
        home.ok(&["crew", "start", "w00", "--no-prompt"]);
        let server = Server::new(Socket::Path(home.path("s")));
        Stage { home, server }
    }

    /// Adds containers up to this number. They have the tags of an agent of the town, and run only a
    /// `sleep`.
    fn fill(&self, size: usize) {
        let sessions = self.server.run(Tmux::new("list-sessions"));
        let have = sessions.expect("tmux runs").lines().count();
        let root = self.home.path("gt");
        let root = root.canonicalize().expect("the town");
        for number in have..size {
            let name = format!("gt-filler{number}");
            let target = SessionName::try_from(name.as_str()).expect("a name");
            let set = |option: &str, value: &str| {
                let set = Tmux::new("set-option").target(target.clone());
                set.args([option, value])
            };
            let agent = format!("gastown/polecats/filler{number}");
            let batch = Batch::from(vec![
                Tmux::new("new-session").args(["-d", "-s", &name, "exec sleep 100000"]),
                set("@gt_town", &root.to_string_lossy()),
                set("@gt_agent", &agent),
                set("@gt_harness", "demo"),
                set("@gt_process_names", "sleep"),
                set("@gt_state", "idle"),
                set("@gt_state_source", "hook"),
            ]);
            let batch = batch.then_all(gt_tmux::pack::<PaneRow>(target));
            self.server.run(batch).expect("tmux runs");
        }
    }

    /// Returns the medians of starts and of stops, of tmux and of `gt`.
    fn start_and_stop(&self) -> ([Duration; 2], [Duration; 2]) {
        let gt = home::gt();
        let [mut starts, mut stops, mut our_starts, mut our_stops] = [const { Vec::new() }; 4];
        let tmux = |words: &[&str]| -> Command { self.home.tmux(words) };
        for _ in 0..15 {
            let new = ["new-session", "-d", "-s", "bare", gt, "demo-agent"];
            starts.push(time(&mut tmux(&new)));
            stops.push(time(&mut tmux(&["kill-session", "-t", "=bare"])));
            let start = ["mayor", "start", "--no-prompt", "--no-wait"];
            our_starts.push(time(&mut self.home.gt(&start)));
            our_stops.push(time(&mut self.home.gt(&["mayor", "stop", "--force"])));
        }
        let [starts, stops, our_starts, our_stops] =
            [starts, stops, our_starts, our_stops].map(median);
        ([starts, stops], [our_starts, our_stops])
    }
}
