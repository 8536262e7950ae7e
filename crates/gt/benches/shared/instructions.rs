//! Counts the instructions of the calls that agents and tmux make constantly, with callgrind.
//!
//! Times differ between runs by more than most regressions; these counts differ by less than 1 %.
//! The calls run in a window of an agent's container, below a shell, as the hooks of an agent do:
//! `gt` reads files of each of its ancestors, so their number must always be the same.

use crate::home::{self, Home};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A call of `gt`, with the report on its standard input.
struct Call {
    name: &'static str,
    args: &'static [&'static str],
    report: &'static str,
}

/// The calls of one turn of an agent, in order.
const CALLS: &[Call] = &[
    call("--version", &["--version"], ""),
    call("signal (prompt)", &["signal"], PROMPT),
    call("signal (tool)", &["signal"], TOOL),
    call("hook", &["hook"], ""),
    call("prime --hook", &["prime", "--hook"], SESSION),
    call("peek", &["peek", AGENT], ""),
    call(
        "nudge --mode queue",
        &["nudge", OTHER, "Hello", "--mode", "queue"],
        "",
    ),
    call("status-line", &["status-line", "--session", CONTAINER], ""),
    call("signal (stop)", &["signal"], STOP),
];

const AGENT: &str = "gastown/crew/w00";
const CONTAINER: &str = "gt-crew-w00";
/// Messages to this agent are held, so that no process delivers them while the calls are counted.
const OTHER: &str = "gastown/crew/w01";

const PROMPT: &str = r#"{"session_id":"11111111-2222-4333-8444-555555555555","cwd":"/","hook_event_name":"UserPromptSubmit","prompt":"Look at the tests"}"#;
const TOOL: &str = r#"{"session_id":"11111111-2222-4333-8444-555555555555","cwd":"/","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cargo test"},"tool_response":{"stdout":"ok","stderr":""}}"#;
const SESSION: &str = r#"{"session_id":"11111111-2222-4333-8444-555555555555","cwd":"/","hook_event_name":"SessionStart","source":"compact"}"#;
const STOP: &str = r#"{"session_id":"11111111-2222-4333-8444-555555555555","cwd":"/","hook_event_name":"Stop","stop_hook_active":false}"#;

/// Channel on which a round tells that it has ended.
const CHANNEL: &str = "counted";

const fn call(name: &'static str, args: &'static [&'static str], report: &'static str) -> Call {
    Call { name, args, report }
}

/// Instructions of each call, by its name.
pub(crate) type Counts = BTreeMap<String, u64>;

/// A town with an agent whose calls are counted.
pub(crate) struct CallCounter {
    home: Home,
}

impl CallCounter {
    pub(crate) fn new() -> Self {
        let home = Home::new("gti");
        home.add_rig(2);
        home.ok(&["crew", "start", "--all", "--no-prompt"]);
        home.ok(&["dnd", "on", OTHER]);
        let counter = CallCounter { home };
        std::fs::write(counter.home.path("calls"), counter.script()).expect("the script");
        counter.hook_an_item();
        counter
    }

    fn hook_an_item(&self) {
        let create = [
            "work",
            "create",
            "Mend the roof",
            "--rig",
            "gastown",
            "--json",
        ];
        let mut create = self.home.gt(&create);
        let output = create.stdout(std::process::Stdio::piped()).output();
        let item: serde_json::Value =
            serde_json::from_slice(&output.expect("gt runs").stdout).expect("an item");
        let id = item["id"].as_str().expect("an id");
        self.home.ok(&["hook", id, "--agent", AGENT]);
    }

    /// Makes all calls once, and lowers the counts to those of this round: a call may also wait for
    /// a lock, or be the first one of its kind.
    pub(crate) fn count(&self, counts: &mut Counts) {
        let line = format!("sh {}; :", self.home.path("calls").display());
        let target = format!("={CONTAINER}:");
        run(&mut self.home.tmux(&["new-window", "-d", "-t", &target, &line]));
        run(&mut self.home.tmux(&["wait-for", CHANNEL]));
        for (index, call) in CALLS.iter().enumerate() {
            let count = self.result(index, call.name);
            let lowest = counts.entry(call.name.to_owned()).or_insert(count);
            *lowest = count.min(*lowest);
        }
    }

    /// Returns the shell script that makes all calls.
    fn script(&self) -> String {
        let quoted = |text: &str| format!("'{text}'");
        let collect = match cfg!(debug_assertions) {
            // Without the dynamic linker, which differs between systems.
            true => "--toggle-collect=main",
            // A release build has no symbols.
            false => "",
        };
        // It is written at most once a second.
        let keepalive = self
            .home
            .path("gt/.runtime/keepalive/gastown.crew.w00.json");
        let mut text = String::new();
        for (index, call) in CALLS.iter().enumerate() {
            let log = self.log(index);
            let args: Vec<String> = call.args.iter().map(|arg| quoted(arg)).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "touch {}\nprintf %s {} | valgrind --tool=callgrind --callgrind-out-file=/dev/null {collect} \
                 --log-file={log} {} {} >{log}.out 2>&1 || echo failed >>{log}",
                keepalive.display(),
                quoted(call.report),
                quoted(home::gt()),
                args.join(" "),
                log = log.display(),
            );
        }
        let socket = self.home.path("s");
        text + &format!("tmux -S {} wait-for -S {CHANNEL}\n", socket.display())
    }

    fn log(&self, index: usize) -> PathBuf {
        self.home.path(&format!("log{index}"))
    }

    /// Returns the count of a call that valgrind has written.
    fn result(&self, index: usize, name: &str) -> u64 {
        let path = self.log(index);
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        let (log, output) = (read(&path), read(&path.with_extension("out")));
        let count = log.lines().find_map(|line| line.split_once("Collected : "));
        let count = count.and_then(|(_, count)| count.trim().parse().ok());
        let count = count.filter(|_| !log.contains("failed"));
        count.unwrap_or_else(|| panic!("{name}: {output}{log}"))
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("tmux runs");
    assert!(status.success(), "{command:?}");
}

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.toml");
const HEADER: &str = "\
# Instructions of calls of gt, counted by callgrind: without the dynamic linker in a debug build, whole
# processes in a release build. To record them again:
#   GT_COUNTS=record cargo test -p gt --test instructions
#   GT_COUNTS=record cargo bench -p gt --bench instructions
";

/// The counts that are recorded for this kind of build.
pub(crate) struct Recorded {
    /// The compiler that they were recorded with.
    pub(crate) compiler: String,
    pub(crate) counts: Counts,
}

impl Recorded {
    pub(crate) fn read() -> Self {
        let table = recorded_table()
            .remove(section())
            .unwrap_or(toml::Value::Table(toml::Table::new()));
        let compiler = table.get("compiler").and_then(toml::Value::as_str);
        let counts = table.as_table().into_iter().flatten();
        let counts = counts.filter_map(|(name, count)| {
            Some((name.clone(), u64::try_from(count.as_integer()?).ok()?))
        });
        Recorded {
            compiler: compiler.unwrap_or_default().to_owned(),
            counts: counts.collect(),
        }
    }

    /// Writes these counts to the file, if the caller asks for that.
    pub(crate) fn write_if_asked(counts: &Counts) {
        if std::env::var("GT_COUNTS").is_ok_and(|word| word == "record") {
            let mut section_table = toml::Table::new();
            section_table.insert("compiler".to_owned(), compiler().into());
            for (name, count) in counts {
                let count = i64::try_from(*count).expect("a count");
                section_table.insert(name.clone(), count.into());
            }
            let mut table = recorded_table();
            table.insert(section().to_owned(), section_table.into());
            let text = format!("{HEADER}\n{table}");
            std::fs::write(FILE, text).expect("the counts are written");
        }
    }
}

fn recorded_table() -> toml::Table {
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    toml::from_str(&text).expect("a TOML file")
}

fn section() -> &'static str {
    match cfg!(debug_assertions) {
        true => "debug",
        false => "release",
    }
}

/// Returns the compiler and the architecture, on which the counts depend.
pub(crate) fn compiler() -> String {
    let program = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let output = Command::new(program).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    format!("{} {}", version.unwrap_or_default(), std::env::consts::ARCH)
}
