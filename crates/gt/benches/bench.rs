//! Measures the cost of `gt` commands as ratios to the bare tmux commands that do the same.
//!
//! Both sides run alternately in the same minute on the same server, and only their ratio is
//! printed as a result: absolute times depend on the machine more than on `gt`. Each figure is the
//! median of many runs.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "shared/home.rs"]
mod home;
#[path = "shared/measure.rs"]
mod measure;

use home::Home;
use measure::{compare, median, report, time};
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let stage = Stage::new();
    println!("gt against the bare tmux commands (median of each, same run)\n");
    println!("{:<46} {:>9} {:>9} {:>7}", "", "tmux", "gt", "ratio");
    stage.start_up();
    stage.clear();
    stage.start_and_stop();
    stage.start_in_a_sandbox();
    stage.completion();
}

struct Stage {
    home: Home,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new("gtb");
        home.add_rig(50);
        Stage { home }
    }

    fn gt(&self, args: &[&str]) -> Command {
        self.home.gt(args)
    }

    fn tmux(&self, args: &[&str]) -> Command {
        self.home.tmux(args)
    }

    fn ok(&self, args: &[&str]) {
        self.home.ok(args);
    }

    fn start_up(&self) {
        let runs = 200;
        let (tmux, gt) = compare(runs, || self.tmux(&["-V"]), || self.gt(&["--version"]));
        report("start-up: tmux -V, gt --version", tmux, gt);
    }

    fn clear(&self) {
        let _ = self.tmux(&["kill-server"]).status();
        // A server that is exiting holds its socket for a moment.
        while self.is_listening() {}
        let _ = std::fs::remove_file(self.home.path("s"));
        // A session outside the town keeps the server alive for both sides.
        time(&mut self.tmux(&["new-session", "-d", "-s", "mine", "sleep 100000"]));
        println!();
    }

    fn is_listening(&self) -> bool {
        std::os::unix::net::UnixStream::connect(self.home.path("s")).is_ok()
    }

    fn start_and_stop(&self) {
        let runs = 20;
        let gt = home::gt();
        let bare_start = || self.tmux(&["new-session", "-d", "-s", "bare", gt, "demo-agent"]);
        let bare_stop = || self.tmux(&["kill-session", "-t", "=bare"]);
        let list = || self.tmux(&["list-panes", "-a", "-F", "#{session_name} #{pane_pid}"]);
        let same_start = self.the_same_start();
        let [
            mut starts,
            mut same_starts,
            mut our_starts,
            mut stops,
            mut same_stops,
            mut our_stops,
            mut ready,
            mut our_ready,
        ] = [const { Vec::new() }; 8];
        for _ in 0..runs {
            starts.push(time(&mut bare_start()));
            stops.push(time(&mut bare_stop()));
            let looked = time(&mut list());
            let made =
                time(&mut self.tmux(&same_start.iter().map(String::as_str).collect::<Vec<_>>()));
            let said =
                time(&mut self.tmux(&["set-option", "-t", "=bare:", "@gt_state", "running"]));
            same_starts.push(looked + made + said);
            same_stops.push(time(&mut list()) + time(&mut bare_stop()));
            our_starts.push(time(&mut self.gt(&[
                "mayor",
                "start",
                "--no-prompt",
                "--no-wait",
            ])));
            our_stops.push(time(&mut self.gt(&["mayor", "stop", "--force"])));
            let began = Instant::now();
            time(&mut bare_start());
            while !self.shows("=bare:", "for shortcuts") {}
            ready.push(began.elapsed());
            time(&mut bare_stop());
            our_ready.push(time(&mut self.gt(&["mayor", "start", "--no-prompt"])));
            self.ok(&["mayor", "stop", "--force"]);
        }
        let our_starts = median(our_starts);
        report(
            "start without waiting (tmux new-session alone)",
            median(starts),
            our_starts,
        );
        report(
            "  (list-panes, new-session with all options, set-option)",
            median(same_starts),
            our_starts,
        );
        report(
            "start until ready (and tmux capture-pane)",
            median(ready),
            median(our_ready),
        );
        let our_stops = median(our_stops);
        report(
            "stop --force (tmux kill-session alone)",
            median(stops),
            our_stops,
        );
        report(
            "  (list-panes, kill-session)",
            median(same_stops),
            our_stops,
        );
        self.stop_fifty();
    }

    /// Measures the start until ready without and with a sandbox.
    fn start_in_a_sandbox(&self) {
        let start = |level: &str| {
            let took = time(&mut self.gt(&["crew", "start", "w00", "--sandbox", level]));
            self.ok(&["crew", "stop", "w00", "--force"]);
            took
        };
        if !self
            .gt(&["crew", "start", "w00", "--sandbox", "workspace"])
            .status()
            .is_ok_and(|it| it.success())
        {
            println!("start in a sandbox: not measured (bubblewrap does not work here)");
            return;
        }
        self.ok(&["crew", "stop", "w00", "--force"]);
        for level in ["workspace", "strict"] {
            let [mut open, mut inside] = [const { Vec::new() }; 2];
            for _ in 0..20 {
                open.push(start("none"));
                inside.push(start(level));
            }
            report(
                &format!("start until ready, {level} (no sandbox)"),
                median(open),
                median(inside),
            );
        }
    }

    /// Measures the completion of an agent's name, as bash asks for it, among 500 agents.
    fn completion(&self) {
        for number in self.agents()..500 {
            let folder = format!("gt/gastown/crew/x{number}");
            std::fs::create_dir(self.home.path(&folder)).expect("a folder");
        }
        let complete = || {
            let mut command = self.gt(&["--", "gt", "peek", "gastown/crew/"]);
            command
                .env("GT_COMPLETE", "bash")
                .env("_CLAP_COMPLETE_INDEX", "2")
                .env("_CLAP_IFS", "\n");
            command
        };
        let output = complete().stdout(Stdio::piped()).output().expect("gt runs");
        let names = output.stdout.split(|byte| *byte == b'\n').count();
        assert!(names >= 500, "{names}");
        let (version, ours) = compare(100, || self.gt(&["--version"]), complete);
        report("completion at 500 agents (gt --version)", version, ours);
    }

    fn agents(&self) -> usize {
        let crew = std::fs::read_dir(self.home.path("gt/gastown/crew"));
        crew.expect("the crew").count()
    }

    /// Returns the tmux command line that has the effect of a start: a session with the environment
    /// and the options of a container.
    fn the_same_start(&self) -> Vec<String> {
        self.ok(&["mayor", "start", "--no-prompt"]);
        let words = |args: &[&str]| {
            let output = self.tmux(args).output().expect("tmux");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let environment = words(&["show-environment", "-t", "=hq-mayor"]);
        let options = words(&["show-options", "-t", "=hq-mayor:"]);
        self.ok(&["mayor", "stop", "--force"]);
        let mut line: Vec<String> = ["new-session", "-d", "-s", "bare"].map(String::from).into();
        for variable in environment.lines().filter(|line| line.starts_with("GT_")) {
            line.extend(["-e".to_owned(), variable.to_owned()]);
        }
        line.extend([home::gt().to_owned(), "demo-agent".to_owned()]);
        for (name, value) in options.lines().filter_map(|line| line.split_once(' ')) {
            let set = [
                ";",
                "set-option",
                "-t",
                "=bare:",
                name,
                value.trim_matches('"'),
            ];
            line.extend(set.map(String::from));
        }
        line
    }

    fn stop_fifty(&self) {
        let gt = home::gt();
        let names: Vec<String> = (0..50).map(|n| format!("bare{n}")).collect();
        let bare = (0..5).map(|_| {
            for name in &names {
                time(&mut self.tmux(&["new-session", "-d", "-s", name, gt, "demo-agent"]));
            }
            let targets: Vec<String> = names.iter().map(|name| format!("={name}")).collect();
            let kill: Vec<&str> = targets
                .iter()
                .flat_map(|target| ["kill-session", "-t", target, ";"])
                .collect();
            time(&mut self.tmux(&kill))
        });
        let bare = median(bare.collect());
        let stop = |start: &[&str], stop: &[&str]| {
            let times = (0..5).map(|_| {
                self.ok(start);
                time(&mut self.gt(stop))
            });
            median(times.collect())
        };
        let one = stop(&["crew", "start", "w00"], &["crew", "stop", "--all"]);
        let fifty = stop(&["crew", "start", "--all"], &["crew", "stop", "--all"]);
        report("stop 50, asked first (50 tmux kill-session)", bare, fifty);
        println!(
            "\nstopping 50 agents takes {:.1} times as long as stopping one",
            fifty.as_secs_f64() / one.as_secs_f64()
        );
        self.one_that_stays();
    }

    /// Measures the stop of agents that leave only at TERM. They share one wait for the quit
    /// timeout, instead of one wait per agent.
    fn one_that_stays(&self) {
        let preset = self.home.path("gt/harnesses/demo.toml");
        std::fs::write(preset, "[quit]\nkeys = ['x']\nseconds = 1\n").expect("a preset");
        self.ok(&["crew", "start", "w00"]);
        let one = time(&mut self.gt(&["crew", "stop", "--all"]));
        self.ok(&["crew", "start", "--all"]);
        let fifty = time(&mut self.gt(&["crew", "stop", "--all"]));
        println!(
            "stopping 50 agents that leave only at TERM takes {:.2} times as long as stopping one",
            fifty.as_secs_f64() / one.as_secs_f64()
        );
    }

    fn shows(&self, target: &str, text: &str) -> bool {
        let output = self
            .tmux(&["capture-pane", "-p", "-t", target])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .output()
            .expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).contains(text)
    }
}
