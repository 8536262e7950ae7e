//! The built-in demo agent in a real tmux: what other tests rely on when they run it
//! in place of a real agent.
//!
//! Each test has a server of its own on a short, private socket. Nothing waits for
//! time: every wait is for a named condition, and shows the screen if it never comes.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);
const ID: &str = "01234567-89ab-7def-8123-456789abcdef";
const EVENTS: [&str; 9] = [
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

/// A folder with a home and a tmux server, where one agent at a time runs.
struct Stage {
    folder: TempDir,
    /// Counts the servers: a socket that one has just left is not used again.
    servers: Cell<u32>,
}

impl Stage {
    /// A stage with nobody on it.
    fn empty() -> Self {
        let folder = tempfile::Builder::new().prefix("gtd").tempdir_in("/tmp");
        Self {
            folder: folder.expect("a folder"),
            servers: Cell::new(0),
        }
    }

    /// A stage with an agent that is ready.
    fn ready(args: &[&str]) -> Self {
        let stage = Self::empty();
        stage.start(args);
        stage.wait_ready();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path(&format!("s{}", self.servers.get()))
    }

    fn command(&self, program: &str) -> Command {
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

    fn tmux(&self, args: &[&str]) -> String {
        self.tmux_with_input(args, "")
    }

    fn tmux_with_input(&self, args: &[&str], input: &str) -> String {
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

    /// Starts an agent, in place of the one before if there was one.
    fn start(&self, args: &[&str]) {
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
    fn pipe(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_gt"));
        run(command.arg("demo-agent").args(args), input)
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn format(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format])
            .trim_end()
            .to_owned()
    }

    fn pid(&self) -> String {
        self.format("#{pane_pid}")
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.pid()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal}");
    }

    /// Types a text and sends it.
    fn say(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    fn paste(&self, text: &str) {
        self.tmux_with_input(&["load-buffer", "-"], text);
        self.tmux(&["paste-buffer", "-p", "-d"]);
    }

    fn wait_until(&self, name: &str, mut test: impl FnMut(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if test(&screen) {
                return;
            }
            assert!(
                Instant::now() < until,
                "never: {name}; the screen:\n{screen}"
            );
            sleep(Duration::from_millis(10));
        }
    }

    fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    fn wait_ready(&self) {
        self.wait_until("an empty prompt between two rules", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            lines.windows(3).any(|lines| {
                lines[0].starts_with("──") && lines[1] == "❯" && lines[2].starts_with("──")
            })
        });
    }

    fn wait_title(&self, title: &str) {
        self.wait_until(title, |_| self.format("#{pane_title}") == title);
    }

    /// The exit status, once the agent has ended.
    fn status(&self) -> String {
        self.wait_ended("#{pane_dead_status}")
    }

    /// What tmux knows of the end, once it knows. tmux 3.3a now and then misses that
    /// its child ended until another one does, so another one is made to end.
    fn wait_ended(&self, format: &str) -> String {
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

    /// The messages received so far.
    fn received(&self) -> Vec<String> {
        let lines = json_lines(&self.path("log"));
        let prompt = |line: &Value| line["prompt"].as_str().expect("a prompt").to_owned();
        lines.iter().map(prompt).collect()
    }

    fn wait_received(&self, count: usize) -> Vec<String> {
        let mut received = Vec::new();
        self.wait_until("messages in the log", |_| {
            received = self.received();
            received.len() >= count
        });
        received
    }

    /// Settings with a hook for every event, each of which writes down what it gets.
    fn settings(&self) -> String {
        let command = format!("cat >> {}", self.path("hooks").display());
        let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
        let hooks: serde_json::Map<String, Value> = EVENTS
            .iter()
            .map(|event| ((*event).to_owned(), hook.clone()))
            .collect();
        self.write("settings.json", &json!({ "hooks": hooks }).to_string())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("writes");
        path.to_str().expect("text").to_owned()
    }

    fn hooks(&self) -> Vec<Value> {
        json_lines(&self.path("hooks"))
    }

    fn wait_hook(&self, event: &str) -> Value {
        let mut found = None;
        self.wait_until(event, |_| {
            let hooks = self.hooks().into_iter();
            found = hooks.rev().find(|hook| hook["hook_event_name"] == event);
            found.is_some()
        });
        found.expect("a hook")
    }

    fn hook_names(&self) -> Vec<String> {
        let name = |hook: &Value| hook["hook_event_name"].as_str().expect("a name").to_owned();
        self.hooks().iter().map(name).collect()
    }

    /// Also right when there is no server.
    fn kill_server(&self) {
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

fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("an input");
    // Who does not read its input has closed it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("ends")
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    lines
        .map(|line| serde_json::from_str(line).expect("json"))
        .collect()
}

#[test]
fn shows_a_ready_prompt() {
    let stage = Stage::ready(&[]);
    let screen = stage.screen();
    let folder = stage.folder.path().display();
    assert!(
        screen.starts_with(&format!(" demo agent\n toast · {folder}\n")),
        "{screen}"
    );
    assert!(screen.contains("\n  ? for shortcuts\n"), "{screen}");
    assert_eq!(stage.format("#{alternate_on} #{pane_title}"), "0 ✳ demo");
}

#[test]
fn answers_a_typed_message() {
    let stage = Stage::ready(&[]);
    stage.keys(&["-l", "wrong"]);
    stage.wait_for("❯ wrong");
    stage.keys(&["C-u"]);
    stage.keys(&["-l", "helo"]);
    stage.keys(&["Left", "l", "End", "!"]);
    stage.wait_for("❯ hello!");
    stage.keys(&["Enter"]);
    stage.wait_for("> hello!\n● You said: hello!\n");
    stage.wait_ready();
    assert_eq!(stage.received(), ["hello!"]);
}

#[test]
fn a_prompt_on_the_command_line_is_the_first_message() {
    let stage = Stage::ready(&["do this\nand that"]);
    stage.wait_for("> do this\n  and that\n● You said: do this\n");
    assert_eq!(stage.received(), ["do this\nand that"]);
}

#[test]
fn pastes_arrive_whole() {
    let stage = Stage::ready(&[]);
    let lines: Vec<String> = (1..=30)
        .map(|n| format!("line {n} \\ ünï\t日本 [[x]]"))
        .collect();
    let short = "two\nlines".to_owned();
    let big: String = (0..10_000).map(|n| format!("{n:019}\n")).collect();
    let messages = [
        (lines.join("\n"), "❯ [Pasted text #1 +29 lines]\n"),
        (short, "❯ two\n  lines\n"),
        (big, "❯ [Pasted text #2 +10000 lines]\n"),
    ];
    for (text, shown) in &messages {
        stage.paste(text);
        stage.wait_for(shown);
        stage.keys(&["Enter"]);
        stage.wait_ready();
    }
    let received = stage.wait_received(3);
    for ((text, _), received) in messages.iter().zip(&received) {
        assert!(
            text == received,
            "{} of {} bytes",
            received.len(),
            text.len()
        );
    }
}

#[test]
fn a_message_of_50_kb_is_quick() {
    let stage = Stage::ready(&[]);
    let before = Instant::now();
    stage.paste(&"x".repeat(50_000));
    stage.wait_for("❯ [Pasted text #1]");
    stage.keys(&["Enter"]);
    assert_eq!(stage.wait_received(1)[0].len(), 50_000);
    // A few ms on an idle machine; this only finds what is badly wrong.
    assert!(
        before.elapsed() < Duration::from_secs(3),
        "{:?}",
        before.elapsed()
    );
}

#[test]
fn permission_by_keys() {
    let stage = Stage::ready(&[]);
    stage.say("[[tool=echo ran; touch one]]");
    stage.wait_for(" Bash command\n   echo ran; touch one\n Do you want to proceed?\n ❯ 1. Yes\n");
    stage.wait_title("✋ demo");

    stage.keys(&["Down"]);
    stage.wait_for(" ❯ 2. No, and tell demo what to do differently (esc)\n Esc to cancel\n");
    stage.keys(&["Up", "Enter"]);
    stage.wait_for("  ⎿  ran\n● The command ended with exit code 0.\n");
    assert!(stage.path("one").exists());

    for (message, key, end) in [
        (
            "[[tool=touch two]]",
            "2",
            "● The command was refused: touch two",
        ),
        (
            "[[tool=touch three]]",
            "Escape",
            "  ⎿  Interrupted · What should demo do",
        ),
    ] {
        stage.wait_ready();
        stage.say(message);
        stage.wait_for(" ❯ 1. Yes");
        stage.keys(&[key]);
        stage.wait_for(end);
    }
    assert!(!stage.path("two").exists() && !stage.path("three").exists());
    stage.wait_title("✳ demo");
}

#[test]
fn a_dialog_swallows_a_paste_and_enter_approves() {
    let stage = Stage::ready(&[]);
    stage.say("[[tool=touch one]]");
    stage.wait_for(" ❯ 1. Yes");
    stage.paste("2 no\nplease\n");
    // Typed after the paste, so the dialog has seen the paste when the mark moves.
    stage.keys(&["Down"]);
    stage.wait_for(" ❯ 2. No");
    stage.keys(&["Up", "Enter"]);
    stage.wait_for("● The command ended with exit code 0.");
    stage.wait_ready();
    assert!(stage.path("one").exists());
    assert_eq!(stage.received(), ["[[tool=touch one]]"]);
}

#[test]
fn permissions_can_be_skipped() {
    let stage = Stage::ready(&["--dangerously-skip-permissions"]);
    stage.say("[[tool=pwd; exit 3]][[text=done]]");
    stage.wait_for(&format!("  ⎿  {}\n● done\n", stage.folder.path().display()));
    stage.wait_ready();
}

#[test]
fn a_question_is_asked() {
    let stage = Stage::ready(&[]);
    stage.say("[[ask=Which one?|alpha|beta]]");
    stage.wait_for(" Which one?\n ❯ 1. alpha\n   2. beta\n Enter to select");
    stage.keys(&["2"]);
    stage.wait_for("● You chose: beta\n");
}

#[test]
fn escape_interrupts_and_no_hook_hears_of_it() {
    let stage = Stage::empty();
    stage.start(&["--settings", &stage.settings()]);
    stage.wait_ready();
    stage.say("[[delay=100]]");
    stage.wait_until("a busy line that counts", |screen| {
        screen.contains("✻ Working… (")
            && screen.contains("s · esc to interrupt)\n─")
            && !screen.contains("(0s")
    });
    stage.wait_title("◑ demo");
    stage.keys(&["Escape"]);
    stage.wait_for("  ⎿  Interrupted · What should demo do instead?");
    stage.wait_title("✳ demo");
    assert_eq!(stage.hook_names(), ["SessionStart", "UserPromptSubmit"]);
}

#[test]
fn a_running_command_is_interrupted() {
    let stage = Stage::ready(&["--dangerously-skip-permissions"]);
    stage.say("[[tool=sleep 1000 & echo $! > pid; wait]]");
    stage.wait_until("the command's pid", |_| {
        fs::read_to_string(stage.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let pid = fs::read_to_string(stage.path("pid")).expect("a pid");
    stage.keys(&["C-c"]);
    stage.wait_for("Interrupted");
    stage.wait_until("the end of the command", |_| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // A zombie that init has not collected yet is an end as well.
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    });
}

#[test]
fn a_message_while_busy_is_queued() {
    let stage = Stage::ready(&[]);
    stage.say("[[delay=100]]");
    stage.wait_for("✻ Working…");
    stage.say("second");
    stage.wait_for("❯ Press up to edit queued messages");
    assert_eq!(stage.received(), ["[[delay=100]]"]);
    stage.keys(&["Up"]);
    stage.wait_for("❯ second\n");
    stage.say(" thought");
    stage.wait_for("❯ Press up to edit queued messages");
    stage.keys(&["Escape"]);
    stage.wait_for("● You said: second thought");
    assert_eq!(stage.received(), ["[[delay=100]]", "second thought"]);
}

#[test]
fn hooks_fire_in_order_with_what_claude_code_sends() {
    let stage = Stage::empty();
    stage.start(&["--settings", &stage.settings(), "--session-id", ID]);
    stage.wait_ready();
    stage.say("do [[tool=echo out]][[text=all done]]");
    stage.wait_for(" ❯ 1. Yes");
    stage.wait_hook("PermissionRequest");
    stage.keys(&["Enter"]);
    stage.wait_hook("Stop");
    stage.wait_ready();
    stage.say("[[error=500]]");
    stage.wait_for("● API Error: 500 Internal server error");
    stage.wait_hook("StopFailure");
    stage.wait_ready();
    stage.keys(&["C-d"]);
    assert_eq!(stage.status(), "0");

    let expected = [
        json!({"hook_event_name": "SessionStart", "source": "startup"}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "do [[tool=echo out]][[text=all done]]"}),
        json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "echo out"}}),
        json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "echo out"}}),
        json!({"hook_event_name": "PostToolUse", "tool_response": {"stdout": "out\n", "stderr": ""}}),
        json!({"hook_event_name": "Stop", "last_assistant_message": "all done"}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "[[error=500]]"}),
        json!({"hook_event_name": "StopFailure", "error": "server_error"}),
        json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}),
    ];
    let hooks = stage.hooks();
    assert_eq!(hooks.len(), expected.len(), "{:?}", stage.hook_names());
    let transcript = stage.path(&format!(".gt-demo/sessions/{ID}.jsonl"));
    for (hook, expected) in hooks.iter().zip(&expected) {
        for (field, value) in expected.as_object().expect("fields") {
            assert_eq!(&hook[field], value, "{hook}");
        }
        assert_eq!(hook["session_id"], ID);
        assert_eq!(hook["cwd"], stage.folder.path().to_str().expect("text"));
        assert_eq!(hook["transcript_path"], transcript.to_str().expect("text"));
    }
    let kinds: Vec<Value> = json_lines(&transcript)
        .iter()
        .map(|line| line["type"].clone())
        .collect();
    assert_eq!(kinds, ["session", "user", "assistant", "user"]);
}

#[test]
fn hooks_add_context_and_never_block() {
    let stage = Stage::empty();
    let one = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {
        "SessionStart": one("echo you are toast; echo second line"),
        "UserPromptSubmit": one("echo broken >&2; exit 2"),
        "Stop": one("/no/such/program"),
    }});
    let settings = stage.write("settings.json", &settings.to_string());
    stage.start(&["--settings", &settings]);
    stage.wait_ready();
    stage.wait_for("  ⎿  you are toast\n     second line\n");
    stage.say("hello");
    stage.wait_for("  ⎿  warning: UserPromptSubmit hook: exit code 2 broken\n● You said: hello\n");
    stage.wait_for("  ⎿  warning: Stop hook: exit code 127");
    stage.wait_ready();
}

#[test]
fn clear_starts_a_session_with_a_new_id() {
    let stage = Stage::empty();
    stage.start(&["--settings", &stage.settings(), "--session-id", ID]);
    stage.wait_ready();
    stage.say("hello");
    stage.wait_for("● You said: hello");
    stage.wait_ready();
    stage.say("/clear");
    stage.wait_until("the new session", |_| stage.hooks().len() == 5);
    stage.wait_until("an empty screen", |screen| !screen.contains("hello"));
    let hooks = stage.hooks();
    assert_eq!(
        (&hooks[3]["reason"], &hooks[3]["session_id"]),
        (&json!("clear"), &json!(ID))
    );
    assert_eq!(hooks[4]["source"], "clear");
    assert_ne!(hooks[4]["session_id"], ID);
}

#[test]
fn a_session_is_resumed_and_forked() {
    let stage = Stage::empty();
    stage.start(&["--session-id", ID]);
    stage.wait_ready();
    stage.say("remember me");
    stage.wait_for("● You said: remember me");
    stage.wait_ready();
    stage.say("/exit");
    assert_eq!(stage.status(), "0");

    for (args, source) in [
        (&["--resume", ID][..], "resume"),
        (&["--continue"], "resume"),
        (&["--resume", ID, "--fork-session"], "fork"),
    ] {
        let settings = stage.settings();
        stage.start(&[args, &["--settings", &settings]].concat());
        stage.wait_ready();
        stage.wait_for("> remember me\n● You said: remember me\n");
        let start = stage.wait_hook("SessionStart");
        assert_eq!(start["source"], source);
        assert_eq!(start["session_id"] == ID, source == "resume");
        stage.say("/quit");
        assert_eq!(stage.status(), "0");
        fs::remove_file(stage.path("hooks")).expect("removes");
    }
}

#[test]
fn sessions_that_cannot_be_opened() {
    let stage = Stage::empty();
    assert_eq!(stage.pipe(&["--session-id", ID], "").status.code(), Some(0));
    let unknown = "99999999-89ab-7def-8123-456789abcdef";
    for (args, problem) in [
        (
            &["--session-id", ID][..],
            format!("session id {ID} is already in use"),
        ),
        (
            &["--resume", unknown],
            format!("no conversation found with session id {unknown}"),
        ),
    ] {
        let output = stage.pipe(args, "");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            format!("error: {problem}\n")
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn signals_end_it_in_order() {
    for (signal, status) in [("-TERM", "143"), ("-HUP", "129")] {
        let stage = Stage::empty();
        stage.start(&["--settings", &stage.settings()]);
        stage.wait_ready();
        stage.say("[[delay=100]]");
        stage.wait_for("✻ Working…");
        stage.signal(signal);
        assert_eq!(stage.status(), status);
        assert_eq!(stage.wait_hook("SessionEnd")["reason"], "other");
        assert!(
            !stage.screen().contains("shortcuts"),
            "the live area is taken back"
        );
    }
}

#[test]
fn term_can_be_ignored() {
    let stage = Stage::ready(&["--ignore-term"]);
    stage.signal("-TERM");
    stage.signal("-HUP");
    stage.say("still here");
    stage.wait_for("● You said: still here");
    stage.signal("-KILL");
}

#[test]
fn the_ways_to_end_by_keys() {
    for (keys, status) in [(&["C-c", "C-c"][..], "0"), (&["C-d"], "0")] {
        let stage = Stage::ready(&[]);
        stage.keys(keys);
        assert_eq!(stage.status(), status, "{keys:?}");
    }
    let stage = Stage::ready(&[]);
    stage.keys(&["x", "C-c"]);
    stage.wait_ready();
    stage.keys(&["C-c"]);
    stage.wait_for("  Press Ctrl-C again to exit");
    stage.wait_for("  ? for shortcuts");
}

#[test]
fn directives_end_it() {
    let stage = Stage::ready(&[]);
    stage.say("[[exit=3]]");
    assert_eq!(stage.status(), "3");
    stage.start(&[]);
    stage.wait_ready();
    stage.say("[[crash]]");
    assert_eq!(stage.wait_ended("#{pane_dead_signal}"), "9");
}

#[test]
fn flags_for_starts_and_ends() {
    let stage = Stage::empty();
    let failed = stage.pipe(&["--fail-at-start", "7"], "");
    assert_eq!(failed.status.code(), Some(7));
    assert!(failed.stderr.starts_with(b"error: "));
    stage.start(&["--startup-delay", "1000"]);
    stage.wait_until("an empty screen", |screen| screen.trim().is_empty());
    stage.wait_ready();
    stage.start(&["--exit-after", "100"]);
    assert_eq!(stage.status(), "0");
}

#[test]
fn children_are_left_to_the_caller() {
    let stage = Stage::ready(&["--spawn-child", "setsid", "--spawn-child", "plain"]);
    let agent = stage.pid();
    let list = || {
        let output = Command::new("ps")
            .args(["-o", "pid=,sid=", "--ppid", &agent])
            .output();
        let text = String::from_utf8(output.expect("ps").stdout).expect("text");
        let rows = text.lines().map(|line| {
            let mut numbers = line.split_whitespace().map(str::to_owned);
            (
                numbers.next().expect("a pid"),
                numbers.next().expect("a session"),
            )
        });
        rows.collect::<Vec<_>>()
    };
    stage.wait_until("a child in its own session and one not", |_| {
        let own = |child: &&(String, String)| child.0 == child.1;
        list().len() == 2 && list().iter().filter(own).count() == 1
    });
    let children = list();
    stage.signal("-TERM");
    assert_eq!(stage.status(), "143");
    for (pid, _) in children {
        let killed = Command::new("kill").arg(&pid).status();
        assert!(
            killed.is_ok_and(|status| status.success()),
            "{pid} outlived the agent"
        );
    }
}

#[test]
fn trust_is_asked_for_and_no_is_marked() {
    let asked = " Do you trust the files in this folder?";
    let stage = Stage::empty();
    stage.start(&["--trust-dialog", "--settings", &stage.settings()]);
    stage.wait_for(asked);
    stage.wait_for(" ❯ No, exit\n   Yes, I trust this folder\n Enter to confirm · Esc to cancel\n");
    stage.keys(&["Enter"]);
    assert_eq!(stage.status(), "1");
    assert!(stage.hooks().is_empty());

    stage.start(&["--trust-dialog", "hello"]);
    stage.wait_for(asked);
    stage.keys(&["Down", "Enter"]);
    stage.wait_for("● You said: hello");
    stage.wait_ready();
}

#[test]
fn a_script_is_done_line_by_line() {
    let stage = Stage::empty();
    let script = "say hello\nask Which?|a|b\nsay thanks\npermission false\nsleep 10ms\n\
                  wait prompt\nsay first\nerror 529 Overloaded\ntitle my title\n\
                  wait prompt\nexit 4\n";
    let script = stage.write("script", script);
    stage.start(&["--script", &script, "--settings", &stage.settings()]);
    stage.wait_for("● hello\n");
    stage.wait_for(" Which?\n ❯ 1. a\n");
    stage.keys(&["Enter"]);
    stage.wait_for("● thanks\n");
    stage.wait_for("  ⎿  No answer\n");
    stage.wait_ready();
    stage.say("one");
    stage.wait_for("> one\n● first\n\n● API Error: 529 Overloaded\n");
    stage.wait_title("my title");
    stage.say("two");
    assert_eq!(stage.status(), "4");
    assert_eq!(stage.received(), ["one", "two"]);
    let names = stage.hook_names();
    let ends = ["Stop", "StopFailure", "SessionEnd"];
    let ends: Vec<&String> = names
        .iter()
        .filter(|name| ends.contains(&name.as_str()))
        .collect();
    assert_eq!(ends, ["Stop", "StopFailure", "SessionEnd"]);

    let broken = stage.write("broken", "say hello\n\ndance\n");
    let output = stage.pipe(&["--script", &broken], "");
    let problem = format!("error: {broken}:3: unknown line `dance`\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), problem);
}

#[test]
fn a_pipe_is_answered_line_by_line() {
    let stage = Stage::empty();
    let log = stage.path("log").to_str().expect("text").to_owned();
    let args = ["--log", &log, "--settings", &stage.settings(), "zero"];
    let output = stage.pipe(&args, "one\n\n[[tool=ls]]\n[[error=500]]\nlast");
    let expected = "You said: zero\nYou said: one\nThe command was refused: ls\n\
                    API Error: 500 Internal server error\nYou said: last\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stage.received(),
        ["zero", "one", "[[tool=ls]]", "[[error=500]]", "last"]
    );
    assert_eq!(
        stage.hook_names().last().map(String::as_str),
        Some("SessionEnd")
    );
}

#[test]
fn the_live_area_survives_another_size() {
    let stage = Stage::ready(&[]);
    stage.say("hello");
    stage.wait_for("● You said: hello");
    for columns in ["40", "120", "33"] {
        stage.tmux(&["resize-window", "-x", columns, "-y", "20"]);
        let rule = "─".repeat(columns.parse().expect("a number"));
        stage.wait_until("one live area of the new width", |screen| {
            screen.lines().filter(|line| *line == rule).count() == 2
                && screen.matches("shortcuts").count() == 1
                && screen.matches('❯').count() == 1
        });
    }
    stage.say("[[fill=5000]]");
    stage.wait_for("  line 5000 of 5000\n─");
}
