//! A private tmux with the demo agent in it.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use gt_tmux::testing::{temp_root, wait_until_or};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
pub(crate) const ID: &str = "01234567-89ab-7def-8123-456789abcdef";
pub(crate) const EVENTS: [&str; 9] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// A home folder and a tmux server that runs one agent at a time.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    /// Counts the servers, so that a socket that was just closed is not reused.
    servers: Cell<u32>,
}

impl Stage {
    /// Makes a stage without an agent.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("gtd")
            .tempdir_in(temp_root());
        Self {
            folder: folder.expect("a folder"),
            servers: Cell::new(0),
        }
    }

    /// Makes a stage with an agent that is ready.
    pub(crate) fn ready(args: &[&str]) -> Self {
        let stage = Self::empty();
        stage.start(args);
        stage.wait_ready();
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path(&format!("s{}", self.servers.get()))
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("GT_ROLE", "toast")
            .current_dir(self.folder.path());
        command
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        self.tmux_with_input(args, "")
    }

    pub(crate) fn tmux_with_input(&self, args: &[&str], input: &str) -> String {
        let mut command = self.command("tmux");
        command
            .arg("-S")
            .arg(self.socket())
            .args(["-f", "/dev/null"]);
        let output = run(command.args(args), input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {args:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Starts an agent, and replaces the previous one if there is one.
    pub(crate) fn start(&self, args: &[&str]) {
        let log = self.path("log");
        let mut command = vec!["set", "-g", "remain-on-exit", "on", ";"];
        command.extend(["new-session", "-d", "-x", "100", "-y", "30"]);
        command.extend([env!("CARGO_BIN_EXE_gt"), "demo-agent", "--log"]);
        command.push(log.to_str().expect("text"));
        command.extend(args);
        self.kill_server();
        self.servers.update(|count| count + 1);
        self.tmux(&command);
    }

    /// Runs an agent without a terminal.
    pub(crate) fn pipe(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_gt"));
        run(command.arg("demo-agent").args(args), input)
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    pub(crate) fn format(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format])
            .trim_end()
            .to_owned()
    }

    pub(crate) fn pid(&self) -> String {
        self.format("#{pane_pid}")
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.pid()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// Types a text and sends it.
    pub(crate) fn say(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    pub(crate) fn paste(&self, text: &str) {
        self.tmux_with_input(&["load-buffer", "-"], text);
        self.tmux(&["paste-buffer", "-p", "-d"]);
    }

    pub(crate) fn wait_until(&self, name: &str, mut test: impl FnMut(&str) -> bool) {
        let matches = || test(&self.screen()).then_some(());
        wait_until_or(name, TIMEOUT, matches, || self.screen());
    }

    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    pub(crate) fn wait_ready(&self) {
        self.wait_until("an empty prompt between two rules", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            lines.windows(3).any(|lines| {
                lines[0].starts_with("──") && lines[1] == "❯" && lines[2].starts_with("──")
            })
        });
    }

    pub(crate) fn wait_title(&self, title: &str) {
        self.wait_until(title, |_| self.format("#{pane_title}") == title);
    }

    /// Waits for the end of the agent, and returns its exit status.
    pub(crate) fn status(&self) -> String {
        self.wait_ended("#{pane_dead_status}")
    }

    /// Waits until tmux knows of the agent's end, and returns the expanded format. tmux 3.3a
    /// sometimes misses the end of a child until another child ends, so this makes another one end.
    pub(crate) fn wait_ended(&self, format: &str) -> String {
        let mut known = String::new();
        self.wait_until("the end of the agent", |_| {
            known = self.format(format);
            if known.is_empty() {
                self.tmux(&["run-shell", "-b", "true"]);
            }
            !known.is_empty()
        });
        known
    }

    /// Returns the messages received so far.
    pub(crate) fn received(&self) -> Vec<String> {
        let lines = json_lines(&self.path("log"));
        let prompt = |line: &Value| line["prompt"].as_str().expect("a prompt").to_owned();
        lines.iter().map(prompt).collect()
    }

    pub(crate) fn wait_received(&self, count: usize) -> Vec<String> {
        let mut received = Vec::new();
        self.wait_until("messages in the log", |_| {
            received = self.received();
            received.len() >= count
        });
        received
    }

    /// Returns settings with a hook for every event; each hook appends its input to a file.
    pub(crate) fn settings(&self) -> String {
        let command = format!("cat >> {}", self.path("hooks").display());
        let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
        let hooks: serde_json::Map<String, Value> = EVENTS
            .iter()
            .map(|event| ((*event).to_owned(), hook.clone()))
            .collect();
        self.write("settings.json", &json!({ "hooks": hooks }).to_string())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("writes");
        path.to_str().expect("text").to_owned()
    }

    pub(crate) fn hooks(&self) -> Vec<Value> {
        json_lines(&self.path("hooks"))
    }

    pub(crate) fn wait_hook(&self, event: &str) -> Value {
        let mut found = None;
        self.wait_until(event, |_| {
            let hooks = self.hooks().into_iter();
            found = hooks.rev().find(|hook| hook["hook_event_name"] == event);
            found.is_some()
        });
        found.expect("a hook")
    }

    pub(crate) fn hook_names(&self) -> Vec<String> {
        let name = |hook: &Value| hook["hook_event_name"].as_str().expect("a name").to_owned();
        self.hooks().iter().map(name).collect()
    }

    /// Ends the server; there may be none.
    pub(crate) fn kill_server(&self) {
        let mut command = self.command("tmux");
        command.arg("-S").arg(self.socket()).arg("kill-server");
        run(&mut command, "");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill_server();
    }
}

pub(crate) fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("an input");
    // A process that does not read its input may have closed it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("ends")
}

pub(crate) fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    lines
        .map(|line| serde_json::from_str(line).expect("json"))
        .collect()
}
