//! `gt adopt`, and tmux sessions that are agents by name only.

mod attach;
mod handoff;
mod interrupted;
mod moved_pane;
mod other_server;
mod program_end;
mod two_sessions;

use crate::env::{Answer, TIMEOUT, TestEnv, is_alive, signal};
use crate::sessions;
use gt_tmux::testing::{wait_until, wait_until_or};
use gt_tmux::{Command as Tmux, Server, Socket};
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const GT: &str = env!("CARGO_BIN_EXE_gt");
const CONVERSATION: &str = "0193a2b4-c5d6-7abc-8def-0123456789ab";

/// A person's tmux session with a shell, in a separate folder.
struct Desk<'a> {
    env: &'a TestEnv,
    socket: PathBuf,
    folder: PathBuf,
}

impl<'a> Desk<'a> {
    fn open(env: &'a TestEnv, socket: &Path) -> Self {
        let folder = env.path("My Project");
        fs::create_dir_all(&folder).unwrap();
        let folder = folder.canonicalize().unwrap();
        let desk = Desk {
            env,
            socket: socket.to_owned(),
            folder,
        };
        let folder = desk.folder.to_str().unwrap();
        let size = ["-x", "120", "-y", "30"];
        let new = ["new-session", "-d", "-s", "desk", "-c", folder];
        desk.tmux(&[&new[..], &size, &["sh"]].concat());
        desk
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = self.env.command("tmux");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"]);
        let answer = Answer::of(command.args(words).output().unwrap()).ok();
        answer.stdout.trim_end().to_owned()
    }

    /// Types a command line into the shell.
    fn run(&self, line: &str) {
        self.tmux(&["send-keys", "-t", "=desk:", "-l", line]);
        self.tmux(&["send-keys", "-t", "=desk:", "Enter"]);
    }

    /// Waits until the screen contains a text.
    fn wait_screen(&self, text: &str) {
        let screen = || self.tmux(&["capture-pane", "-p", "-t", "=desk:"]);
        let matches = || screen().contains(text).then_some(());
        wait_until_or(text, TIMEOUT, matches, screen);
    }

    /// Starts the demo agent in the shell, and waits until it shows its prompt.
    fn start_program(&self, arguments: &str) -> Value {
        self.run(&format!("'{GT}' demo-agent {arguments}"));
        wait_until("the program is a candidate", TIMEOUT, || {
            let is_ready = self.tmux(&["capture-pane", "-p", "-t", "=desk:"]);
            let found = self.candidates().first()?.clone();
            is_ready.contains("? for shortcuts").then_some(found)
        })
    }

    /// Returns the candidates on this socket only: other tests run programs on the same machine.
    fn candidates(&self) -> Vec<Value> {
        let all = self
            .env
            .json(&["adopt", "--socket", self.socket.to_str().unwrap()]);
        all.as_array().unwrap().clone()
    }

    fn panes(&self) -> String {
        let format = "#{session_name} #{window_id} #{pane_id} #{pane_pid} #{window_layout}";
        self.tmux(&["list-panes", "-s", "-t", "=desk", "-F", format])
    }

    fn sessions(&self) -> Vec<String> {
        let all = self.tmux(&["list-sessions", "-F", "#{session_name}"]);
        all.lines().map(str::to_owned).collect()
    }

    fn settings(&self) -> PathBuf {
        self.folder.join(".gt-demo/settings.local.json")
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        let server = Server::new(Socket::Path(self.socket.clone()));
        let _ = server.run(Tmux::new("kill-server"));
    }
}

/// Checks the commands that work with every adopted agent, on any tmux server.
fn check_session_of_adopted(env: &TestEnv, desk: &Desk<'_>) {
    // A second pane of the person in the same window.
    desk.tmux(&["split-window", "-d", "-t", "=desk:", "sh"]);
    let candidate = desk.start_program(&format!("--session-id {CONVERSATION}"));
    assert_eq!(candidate["harness"], "demo", "{candidate}");
    assert_eq!(candidate["conversation"], CONVERSATION, "{candidate}");
    assert_eq!(candidate["work_dir"], json!(desk.folder), "{candidate}");
    let pid = u32::try_from(candidate["pid"].as_u64().unwrap()).unwrap();
    let before = desk.panes();

    let adopted = env.json(&["adopt", &pid.to_string()]);
    assert_eq!(adopted["agent"], "agent/my-project", "{adopted}");
    assert_eq!(adopted["conversation"], CONVERSATION, "{adopted}");
    assert_eq!(adopted["hooks"], json!(desk.settings()), "{adopted}");
    assert_eq!(desk.panes(), before, "the person's panes are as they were");
    assert_eq!(
        desk.candidates(),
        Vec::<Value>::new(),
        "it is none any more"
    );
    env.gt(&["adopt", &pid.to_string()]).fails(3);
    env.gt(&["adopt", "agent/my-project"]).fails(4);

    let listed = env.agent("agent/my-project");
    assert_eq!(listed["pid"], pid, "{listed}");
    assert_eq!(listed["adopted"], true, "{listed}");
    assert_eq!(listed["health"], "healthy", "{listed}");
    env.gt(&["wait", "my-project", "--until", "idle", "--timeout", "30"])
        .ok();
    env.wait_screen("agent/my-project", "? for shortcuts");

    let nudged = env.json(&["nudge", "my-project", "hello there"]);
    assert_eq!(nudged["delivered"], "agent", "{nudged}");
    env.wait_screen("my-project", "You said: hello there");
    wait_until("a hook has told the state", TIMEOUT, || {
        let agent = env.agent("agent/my-project");
        (agent["state"] == "idle" && agent["state_source"] == "hook").then_some(())
    });
    let known = &sessions::list_sessions(env, &["--agent", "agent/my-project"])[0];
    assert_eq!(known["harness_session_id"], CONVERSATION, "{known}");
    assert_eq!(known["status"], "running", "{known}");
    assert_eq!(env.json(&["sync"])["changes"], json!([]));
    // The agent cannot be started a second time.
    env.gt(&["start", "agent/my-project"]).fails(4);

    env.gt(&["stop", "my-project"]).ok();
    assert!(!is_alive(pid), "the program has ended");
    assert_eq!(desk.panes(), before, "and nothing else of the person's");
    assert_eq!(desk.sessions(), ["desk"]);
    assert!(!desk.settings().exists(), "no hook is left");
    assert!(!desk.folder.join(".gt-demo").exists());
    desk.run("echo the shell goes on-$((6 * 7))");
    desk.wait_screen("the shell goes on-42");
    let known = &sessions::list_sessions(env, &["--agent", "agent/my-project"])[0];
    assert_eq!(known["status"], "stopped", "{known}");
}

#[test]
fn program_in_a_pane_of_the_towns_server_becomes_an_agent() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.socket());
    check_session_of_adopted(&env, &desk);
}

#[test]
fn program_on_another_tmux_server_becomes_an_agent() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    check_session_of_adopted(&env, &desk);
}

#[test]
fn adopted_program_that_exits_is_released_and_can_be_started() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    // Existing settings of the person are preserved.
    fs::create_dir_all(desk.settings().parent().unwrap()).unwrap();
    let own = "{\n  \"permissions\": {\n    \"allow\": []\n  }\n}\n";
    fs::write(desk.settings(), own).unwrap();
    let pid = desk.start_program("")["pid"].to_string();
    let adopted = env.json(&["adopt", &pid, "--name", "helper"]);
    assert_eq!(adopted["agent"], "agent/helper", "{adopted}");
    assert!(
        fs::read_to_string(desk.settings())
            .unwrap()
            .contains("signal --adopted")
    );
    signal(pid.parse().unwrap(), Signal::KILL);
    wait_until("a sync takes it off the list", TIMEOUT, || {
        env.gt(&["sync"]).ok();
        env.running().is_empty().then_some(())
    });
    env.gt(&["nudge", "agent/helper", "hello"]).fails(3);
    assert_eq!(fs::read_to_string(desk.settings()).unwrap(), own);
    assert_eq!(desk.sessions(), ["desk"], "only the container is gone");
    let known = &sessions::list_sessions(&env, &["--agent", "agent/helper"])[0];
    assert_eq!(known["status"], "stopped", "{known}");
    // After the stop it is an ordinary agent.
    env.gt(&["start", "agent/helper"]).ok();
    let agent = env.agent("agent/helper");
    assert_eq!(agent["work_dir"], json!(desk.folder), "{agent}");
    assert_eq!(agent["adopted"], Value::Null, "{agent}");
}

#[test]
fn settings_that_are_not_understood_are_left_as_they_are() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.socket());
    fs::create_dir_all(desk.settings().parent().unwrap()).unwrap();
    fs::write(desk.settings(), "no JSON {").unwrap();
    let pid = desk.start_program("")["pid"].to_string();
    assert_snapshot!(env.masked(&env.gt(&["adopt", &pid, "--json"]).ok().stderr), @"warning: no hooks are installed: ~/My Project/.gt-demo/settings.local.json is not in the expected form");
    assert_eq!(fs::read_to_string(desk.settings()).unwrap(), "no JSON {");
    // Without hooks, messages are delivered by the screen.
    let nudged = env.json(&["nudge", "my-project", "hello"]);
    assert_eq!(
        (&nudged["delivered"], &nudged["proof"]),
        (&json!("agent"), &json!("screen"))
    );
}

#[test]
fn adopt_takes_an_address_and_refuses_one_that_is_taken() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "mayor"]).ok();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    // The option had another name before.
    env.gt(&["adopt", &pid, "--as", "mayor"]).fails(4);
    env.gt(&["adopt", &pid, "--name", "no such name"]).fails(2);
    assert_eq!(desk.sessions(), ["desk"]);
    let adopted = env.json(&["adopt", &pid, "--agent", "gastown/max", "--no-hooks"]);
    assert_eq!(adopted["agent"], "gastown/crew/max", "{adopted}");
    assert_eq!(adopted["hooks"], Value::Null, "{adopted}");
    assert_eq!(desk.sessions(), ["desk", "gt-crew-max"]);
    let agent = env.agent("gastown/crew/max");
    assert_eq!(agent["socket"], json!(desk.socket), "{agent}");
}

#[test]
fn untagged_agent_session_is_listed_peeked_nudged_and_renamed() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let program = ["--", GT, "demo-agent", "--session-id", CONVERSATION];
    let new = Tmux::new("new-session").args(["-d", "-s", "agent_helper"]);
    env.tmux(new.args(program));
    env.wait_screen("agent/helper", "? for shortcuts");
    let agent = env.agent("agent/helper");
    assert_eq!(agent["harness"], "demo", "{agent}");
    assert_eq!(agent["health"], "healthy", "{agent}");
    let nudged = env.json(&["nudge", "agent_helper", "hello there"]);
    assert_eq!(nudged["delivered"], "agent", "{nudged}");
    env.wait_screen("helper", "You said: hello there");
    assert_eq!(env.format("agent_helper", "#{@gt_town}#{@gt_session}"), "");

    // A queued message is delivered without another command.
    env.gt(&["nudge", "agent/helper", "be busy [[delay=1]]"]);
    env.gt(&["nudge", "agent/helper", "--mode", "queue", "queued words"])
        .ok();
    env.wait_screen("helper", "You said: queued words");

    // The agent's name follows the name of its tmux session.
    env.gt(&["sync"]).ok();
    let session = agent["session"].clone();
    let target = gt_tmux::SessionName::try_from("agent_helper").unwrap();
    env.tmux(
        Tmux::new("rename-session")
            .target(target)
            .arg("agent_other"),
    );
    env.wait_screen("agent/other", "You said: hello there");
    env.gt(&["peek", "agent/helper"]).fails(3);
    wait_until("the journal knows the new name", TIMEOUT, || {
        let known = env.json(&["sessions", "show", session.as_str().unwrap()]);
        (known["agent"] == "agent/other" && known["container"] == "agent_other").then_some(())
    });

    // After adoption the agent has a conversation and hooks; its tmux session still belongs to the
    // person.
    let socket = env.socket();
    let socket = ["--socket", socket.to_str().unwrap()];
    let adopted = env.json(&[&["adopt", "agent_other"], &socket[..]].concat());
    assert_eq!(adopted["agent"], "agent/other", "{adopted}");
    assert_eq!(adopted["conversation"], CONVERSATION, "{adopted}");
    env.json(&["nudge", "agent/other", "hello again"]);
    wait_until("a hook has told the state", TIMEOUT, || {
        (env.agent("agent/other")["state_source"] == "hook").then_some(())
    });
    env.gt(&["stop", "agent/other"]).ok();
    assert_eq!(env.running(), ["mayor"]);
}

#[test]
fn adopt_prints_candidates_and_the_agent() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let socket = desk.socket.to_str().unwrap();
    assert_snapshot!(env.snapshot(&["adopt", "--socket", socket]), @"
    exit code: 0
    --- stdout
    No agent program runs in a tmux pane that is not an agent already.
    ");
    let pid = desk.start_program("")["pid"].to_string();
    let adopted = env.snapshot(&["adopt", &pid, "--name", "helper"]);
    assert_snapshot!(adopted.replace(&pid, "[PID]"), @"
    exit code: 0
    --- stdout
    ✓ agent/helper (demo, process [PID], pane %0) in agent_helper
      Conversation [UUID] (open-transcript).
      Its state is reported by hooks in ~/My Project/.gt-demo/settings.local.json, which `gt stop` removes.
    ");
    assert_snapshot!(env.snapshot(&["adopt", "unknown"]), @r#"
    exit code: 3
    --- stderr
    error: no agent program can be adopted as "unknown"
    hint: `gt adopt` lists those that can be
    "#);
}
