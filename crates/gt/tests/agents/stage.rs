//! A home folder, a town, a tmux server and a model server for one program.

use crate::program::{KEY, Program};
use gt_model::{FakeModel, LoggedRequest, fingerprint};
use gt_tmux::testing::{wait_until, wait_until_or};
use gt_tmux::{Command as Tmux, Server, SessionName, Socket};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Container of the agent, and a tmux session that `gt` does not manage.
const AGENT: &str = "gt-crew-max";
const BARE: &str = "bare";

pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Stage {
    program: &'static Program,
    model: FakeModel,
    folder: TempDir,
}

impl Stage {
    /// Makes a town with one crew worker for this program; `None` if it is not installed.
    pub(crate) fn new(program: &'static Program) -> Option<Self> {
        Self::with_source(program, |stage, source| {
            stage.git(
                source,
                &["commit", "--quiet", "--allow-empty", "-m", "Begin"],
            );
        })
    }

    /// Makes a town whose rig is a clone of the repository that `make_source` fills.
    pub(crate) fn with_source(
        program: &'static Program,
        make_source: impl Fn(&Stage, &Path),
    ) -> Option<Self> {
        let line = program.command_line()?;
        let folder = tempfile::Builder::new()
            .prefix("gta")
            .tempdir_in(program.place())
            .unwrap();
        let stage = Stage {
            program,
            model: FakeModel::start(None),
            folder,
        };
        let bin = stage.path("bin");
        std::fs::create_dir(&bin).unwrap();
        let file = bin.join(program.harness);
        std::fs::write(&file, format!("#!/bin/sh\n{line}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        for (path, text) in program.settings {
            stage.write(path, text);
        }
        stage.ok(&["init", "--harness", program.harness, "--sandbox", "none"]);
        let source = stage.path("source");
        std::fs::create_dir(&source).unwrap();
        stage.git(&source, &["init", "--quiet", "--initial-branch=main"]);
        make_source(&stage, &source);
        stage.ok(&["rig", "add", "gastown", "source", "--prefix", "gt"]);
        stage.ok(&["crew", "add", "max"]);
        Some(stage)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, self.filled(text)).unwrap();
    }

    /// Removes the seeds and trust arguments, so that the program asks about the folder and `gt`
    /// answers from the screen.
    pub(crate) fn let_it_ask(&self) {
        for (path, text) in self.program.answers.unwrap_or_default() {
            self.write(path, text);
        }
        let preset = "seeds = []\n[command]\ntrust_folder = []\n";
        self.write(
            &format!("gt/harnesses/{}.toml", self.program.harness),
            preset,
        );
    }

    pub(crate) fn program(&self) -> &'static Program {
        self.program
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{url}", &self.model.url())
            .replace("{key_end}", &KEY[KEY.len() - 20..])
            .replace("{key}", KEY)
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("HOME", self.folder.path())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("GT_TMUX_SOCKET", self.path("s"))
            .envs(
                self.program
                    .env
                    .iter()
                    .map(|(name, value)| (name, self.filled(value))),
            )
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs git with an identity, and returns its output.
    #[track_caller]
    pub(crate) fn git(&self, folder: &Path, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let output = self
            .command("git")
            .args(identity)
            .args(args)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Makes the model answer conversations that contain `text` with these shell commands, one call
    /// each.
    pub(crate) fn runs_where(&self, text: &str, commands: &[&str]) {
        let call = |command: &&str| {
            let arguments = serde_json::json!({"command": command, "description": "as asked"});
            format!("[[tool=Bash {arguments}]]")
        };
        let calls: String = commands.iter().map(call).collect();
        self.model.answer_where(text, &calls);
    }

    /// Makes the model answer conversations that contain `text` with these directives.
    pub(crate) fn answer_where(&self, text: &str, directives: &str) {
        self.model.answer_where(text, directives);
    }

    pub(crate) fn gt(&self, args: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_gt"))
            .args(args)
            .output()
            .unwrap()
    }

    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.gt(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "gt {args:?}: {text}{}\n{}",
            String::from_utf8_lossy(&output.stderr),
            self.screen()
        );
        text
    }

    /// Gives the program's environment to the role `task`.
    pub(crate) fn tasks_have_its_environment(&self) {
        let env = self.program.env.iter();
        let env: String = env
            .map(|(name, value)| format!("{name} = '{value}'\n"))
            .collect();
        self.write("gt/roles/task.toml", &format!("[env]\n{env}"));
    }

    /// Creates a work item, and returns its id.
    #[track_caller]
    pub(crate) fn work(&self, title: &str) -> String {
        let made = self.ok(&["work", "create", title, "--rig", "gastown", "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn start(&self, args: &[&str]) {
        let mut all = vec!["crew", "start", "max"];
        for (name, _) in self.program.env {
            all.extend(["--env", name]);
        }
        all.extend(args);
        self.ok(&all);
    }

    /// Kills the tmux server with SIGKILL.
    pub(crate) fn crash(&self) {
        let ask = Tmux::new("display-message").args(["-p", "#{pid}"]);
        let pid = self.tmux(ask).trim().parse().unwrap();
        kill(pid);
        wait_until("the server is gone", TIMEOUT, || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (status.is_empty() || status.contains(") Z ")).then_some(())
        });
    }

    /// Restores the newest save, with the variables of the start.
    #[track_caller]
    pub(crate) fn restore(&self) -> Value {
        let mut all = vec!["restore", "--json"];
        for (name, _) in self.program.env {
            all.extend(["--env", name]);
        }
        serde_json::from_str(&self.ok(&all)).unwrap()
    }

    #[track_caller]
    pub(crate) fn nudge(&self, text: &str) -> Value {
        self.nudge_with(text, &["--timeout", "60"])
    }

    #[track_caller]
    pub(crate) fn nudge_with(&self, text: &str, args: &[&str]) -> Value {
        let mut child = self
            .command(env!("CARGO_BIN_EXE_gt"))
            .args(["nudge", "gastown/max", "--stdin", "--json"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            panic!(
                "{}\n{}",
                String::from_utf8_lossy(&output.stderr),
                self.screen()
            )
        })
    }

    /// Returns address and port of the model.
    pub(crate) fn model_address(&self) -> String {
        self.model.url().trim_start_matches("http://").to_owned()
    }

    /// Returns all requests to the model so far.
    pub(crate) fn requests(&self) -> Vec<LoggedRequest> {
        self.model.requests()
    }

    /// Returns the fingerprints of the prompts in the agent's conversation, oldest first, as of the
    /// model's last request.
    pub(crate) fn history(&self) -> Vec<String> {
        let requests = self.model.requests();
        let last = requests.iter().rev().find(|request| request.has_tools);
        last.map(|request| request.history.clone())
            .unwrap_or_default()
    }

    /// Waits until the conversation has `count` messages and no further one is pending.
    #[track_caller]
    pub(crate) fn wait_history(&self, count: usize) -> Vec<String> {
        wait_until(
            &format!("{} has {count} messages", self.program.harness),
            TIMEOUT,
            || (self.history().len() >= count).then_some(()),
        );
        // With an empty queue no duplicate is in transit. A message that the program itself holds
        // back makes it busy again.
        wait_until("nothing is left in the queue", TIMEOUT, || {
            let list = self.ok(&["nudge", "gastown/max", "--list", "--json"]);
            (list.trim() == "[]").then_some(())
        });
        self.ok(&["wait", "gastown/max", "--timeout", "60"]);
        self.history()
    }

    /// Checks that the model got exactly these messages: each once, complete, in this order.
    #[track_caller]
    pub(crate) fn arrived(&self, sent: &[String]) {
        let expected: Vec<String> = sent.iter().map(|text| fingerprint(text)).collect();
        let got = self.wait_history(expected.len());
        let name = |print: &String| match expected.iter().position(|known| known == print) {
            Some(at) => format!("{at}"),
            None => format!("unknown {print}"),
        };
        let got: Vec<String> = got.iter().map(name).collect();
        let wanted: Vec<String> = (0..sent.len()).map(|at| at.to_string()).collect();
        assert_eq!(got, wanted, "{}\n{}", self.program.harness, self.screen());
    }

    /// Checks that the model got each of these messages once, in any order, and no others.
    #[track_caller]
    pub(crate) fn arrived_in_any_order(&self, sent: &[String]) {
        let mut got = self.wait_history(sent.len());
        let mut expected: Vec<String> = sent.iter().map(|text| fingerprint(text)).collect();
        got.sort();
        expected.sort();
        assert_eq!(got, expected, "{}\n{}", self.program.harness, self.screen());
    }

    /// Waits until the answer to this prompt is in the program's own files. A program that is
    /// killed earlier loses it.
    #[track_caller]
    pub(crate) fn wait_written(&self, prompt: &str) {
        let folder = self.path(self.program.conversations);
        let answer = format!("echo: {prompt}");
        let what = format!("{} has written its answer", self.program.harness);
        wait_until(&what, TIMEOUT, || {
            has_file_with(&folder, answer.as_bytes()).then_some(())
        });
    }

    /// Waits for a request whose prompt begins with this text.
    #[track_caller]
    pub(crate) fn wait_prompt(&self, beginning: &str) {
        let what = format!("{} was given {beginning:?}", self.program.harness);
        let given = || {
            let requests = self.model.requests();
            let found = requests.iter().any(|r| r.prompt.starts_with(beginning));
            found.then_some(())
        };
        wait_until_or(&what, TIMEOUT, given, || self.screen());
    }

    /// Starts `gt` in the background.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(env!("CARGO_BIN_EXE_gt"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Types into the agent's pane without `gt`.
    pub(crate) fn type_by_hand(&self, keys: &[&str]) {
        let send = Tmux::new("send-keys")
            .target(session(AGENT))
            .args(keys.iter().copied());
        self.tmux(send);
    }

    /// Presses Enter every second until the condition holds. A program may treat an Enter right
    /// after typed text as part of the text.
    #[track_caller]
    pub(crate) fn enter_until(&self, what: &str, condition: impl Fn() -> bool) {
        let mut pressed: Option<Instant> = None;
        wait_until(what, TIMEOUT, || {
            let holds = condition();
            if !holds && pressed.is_none_or(|at| at.elapsed() > Duration::from_secs(1)) {
                self.type_by_hand(&["Enter"]);
                pressed = Some(Instant::now());
            }
            holds.then_some(())
        });
    }

    /// Types a command of the program by keys, and waits for its menu, which repeats the command.
    #[track_caller]
    pub(crate) fn type_command(&self, command: &str) {
        self.type_by_hand(&["-l", command]);
        wait_until("the menu of commands", TIMEOUT, || {
            (self.plain_screen().matches(command).count() > 1).then_some(())
        });
    }

    /// Pastes into the agent's pane without pressing Enter.
    pub(crate) fn paste(&self, text: &str) {
        self.tmux(Tmux::new("set-buffer").args(["-b", "by-hand", "--", text]));
        let paste = Tmux::new("paste-buffer").args(["-p", "-d", "-b", "by-hand"]);
        self.tmux(paste.target(session(AGENT)));
    }

    /// Starts the program without `gt`, in the agent's folder and environment.
    pub(crate) fn start_bare(&self, args: &[String]) {
        let (new, words) = self.bare(args);
        self.tmux(new.args(words));
    }

    /// Starts the program without `gt` in a shell.
    pub(crate) fn start_in_shell(&self, args: &[String]) {
        let (new, words) = self.bare(args);
        self.tmux(new.arg("sh"));
        let line: Vec<String> = words
            .iter()
            .map(|word| gt_core::shell::quote(word))
            .collect();
        self.type_bare(&["-l", &line.join(" ")]);
        self.type_bare(&["Enter"]);
    }

    /// Types into the pane of the program that runs without `gt`.
    pub(crate) fn type_bare(&self, keys: &[&str]) {
        let send = Tmux::new("send-keys").target(session(BARE));
        self.tmux(send.args(keys.iter().copied()));
    }

    /// Returns the tmux command for the session of the bare program, and the program's command
    /// line.
    fn bare(&self, args: &[String]) -> (Tmux, Vec<String>) {
        let folder = self.path("gt/gastown/crew/max").display().to_string();
        let quoted = format!("\"{folder}\"");
        let args = args.iter().map(|word| word.replace("{folder}", &quoted));
        let program = self.path("bin").join(self.program.harness);
        let mut new = Tmux::new("new-session").args(["-d", "-s", BARE, "-x", "200", "-y", "50"]);
        new = new.args(["-c", &folder]);
        let own = [("HOME", self.folder.path().display().to_string())];
        let theirs = self.program.env.iter();
        let theirs = theirs.map(|(name, value)| (*name, self.filled(value)));
        for (name, value) in own.into_iter().chain(theirs) {
            new = new.arg("-e").arg(format!("{name}={value}"));
        }
        let words = std::iter::once(program.display().to_string()).chain(args);
        (new.arg("--"), words.collect())
    }

    pub(crate) fn bare_screen(&self) -> String {
        self.tmux(Tmux::new("capture-pane").arg("-p").target(session(BARE)))
    }

    /// Kills the bare session and every process of its kernel session.
    pub(crate) fn stop_bare(&self) {
        let ask = Tmux::new("display-message").arg("-p").target(session(BARE));
        let pid = self.tmux(ask.arg("#{pane_pid}"));
        self.tmux(Tmux::new("kill-session").target(session(BARE)));
        let is_its = |other: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{other}/stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
            let session = fields.and_then(|f| f.split_whitespace().nth(3).map(str::to_owned));
            session.as_deref() == Some(pid.trim())
        };
        let all = processes_of(self.folder.path());
        all.into_iter().filter(is_its).for_each(kill);
    }

    pub(crate) fn plain_screen(&self) -> String {
        self.tmux(Tmux::new("capture-pane").arg("-p").target(session(AGENT)))
    }

    /// Returns a tmux format or tag of the agent's container.
    pub(crate) fn tag(&self, name: &str) -> String {
        let ask = Tmux::new("display-message")
            .arg("-p")
            .target(session(AGENT));
        self.tmux(ask.arg(format!("#{{{name}}}"))).trim().to_owned()
    }

    /// Returns the text of the agent's pane with its history.
    pub(crate) fn scrollback(&self) -> String {
        let capture = Tmux::new("capture-pane").args(["-p", "-S", "-"]);
        self.tmux(capture.target(session(AGENT)))
    }

    fn tmux(&self, command: Tmux) -> String {
        let server = Server::new(Socket::Path(self.path("s"))).with_config("/dev/null");
        server.run_private(command).unwrap()
    }

    pub(crate) fn was_approved(&self) -> bool {
        self.path("gt/gastown/crew/max/approved").exists()
    }

    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.gt(&["peek", "gastown/max", "--ansi"]).stdout).into_owned()
    }

    /// Waits until no process of this stage is left.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self) {
        wait_until("no process is left", TIMEOUT, || {
            processes_of(self.folder.path()).is_empty().then_some(())
        });
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let server = Server::new(Socket::Path(self.path("s"))).with_config("/dev/null");
        // The server may have ended with its last session.
        let _ = server.run(Tmux::new("kill-server"));
        for pid in processes_of(self.folder.path()) {
            kill(pid);
        }
    }
}

/// Reports whether a file under the folder contains these bytes.
fn has_file_with(folder: &Path, bytes: &[u8]) -> bool {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| match entry.path() {
        path if path.is_dir() => has_file_with(&path, bytes),
        path => {
            let text = std::fs::read(path).unwrap_or_default();
            text.windows(bytes.len()).any(|window| window == bytes)
        }
    })
}

fn session(name: &str) -> SessionName {
    SessionName::try_from(name).unwrap()
}

/// Kills one process; it may have ended already.
fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, Signal::KILL);
}

/// Returns the live processes whose HOME is this folder: all that the stage started.
fn processes_of(home: &Path) -> Vec<u32> {
    let wanted = format!("HOME={}", home.display());
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environ = std::fs::read(entry.path().join("environ")).ok()?;
        let ours = environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes());
        ours.then_some(pid)
    })
    .collect()
}
