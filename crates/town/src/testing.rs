//! A town for tests that run in process: a temporary folder, a private tmux server, and an agent
//! program that is a shell script.
//!
//! Calls of `gt` that the engine leaves to tmux do nothing here: a script stands in for `gt`. A test
//! calls the engine itself where such a call would come.

use crate::base::clock::Clock;
use crate::catalog::directory::{self, AgentFile};
use crate::lifecycle::start::{self, StartOptions, StartedAgent};
use crate::records::items::{ItemDraft, Work};
use crate::records::sessions::{SessionQuery, Sessions};
use crate::repo::rig;
use crate::terminal::containers::{self, Container};
use crate::terminal::peek;
use crate::{Surroundings, Town};
use gt_core::Identity;
use gt_core::record::Record;
use gt_core::work::WorkId;
use gt_tmux::testing::{TIMEOUT, TestServer, wait_until};
use gt_tmux::{Command, SessionName};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Name of the harness of a test town.
pub(crate) const HARNESS: &str = "echo";

/// Shows a prompt, repeats each line, and ends at `exit` or `crash`.
const PROGRAM: &str = r#"#!/bin/sh
printf '> '
while IFS= read -r line; do
    case $line in
    exit) exit 0 ;;
    crash) exit 3 ;;
    esac
    printf 'said: %s\n> ' "$line"
done
"#;

/// Stands in for `gt`: prints a restored text and runs the program after it. Other calls do nothing.
const GT: &str = r#"#!/bin/sh
[ "$1 $2" = "internal replay-scrollback" ] || exit 0
file=$3
shift 3
[ "$1" = --login ] && shift
shift
until [ -e "$file" ]; do sleep 0.01; done
cat "$file"
rm "$file"
exec "$@"
"#;

const PRESET: &str = r#"
[command]
program = "{town}/echo-agent"

[process]
names = ["sh", "echo-agent"]

[screen]
ready = ["^> "]

[ready]
timeout_seconds = 10
"#;

pub(crate) struct TestTown {
    pub(crate) town: Town,
    pub(crate) tmux: TestServer,
    folder: tempfile::TempDir,
}

/// A test town with a rig, and with a clock that only the test advances. The tests of a module add
/// their own methods to it.
pub(crate) struct StoppedTown {
    pub(crate) town: TestTown,
    pub(crate) clock: Clock,
}

impl StoppedTown {
    pub(crate) fn new() -> Self {
        let clock = Clock::stopped_at(jiff::Timestamp::now());
        StoppedTown {
            town: TestTown::with_clock(clock.clone()).with_rig(),
            clock,
        }
    }

    pub(crate) fn town(&self) -> &Town {
        &self.town.town
    }

    pub(crate) fn is_alive(&self, agent: &Identity) -> bool {
        self.town.container(agent).is_some_and(|it| !it.pane().dead)
    }
}

impl TestTown {
    /// Makes a town whose agents run the script.
    pub(crate) fn new() -> Self {
        Self::with_clock(Clock::default())
    }

    pub(crate) fn with_clock(clock: Clock) -> Self {
        let tmux = TestServer::new();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        let socket = tmux.socket_path().display().to_string();
        Town::init(&root, None, &socket, HARNESS).unwrap();
        for (name, text) in [("echo-agent", PROGRAM), ("gt", GT)] {
            std::fs::write(root.join(name), text).unwrap();
            std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        let preset = PRESET.replace("{town}", root.to_str().unwrap());
        std::fs::write(root.join("harnesses/echo.toml"), preset).unwrap();
        let env = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", folder.path().to_str().unwrap()),
            ("GIT_AUTHOR_NAME", "Test"),
            ("GIT_AUTHOR_EMAIL", "test@example.org"),
            ("GIT_COMMITTER_NAME", "Test"),
            ("GIT_COMMITTER_EMAIL", "test@example.org"),
        ];
        let around = Surroundings {
            env: env
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            gt: root.join("gt"),
            current_dir: root.clone(),
            clock,
            ..Surroundings::default()
        };
        let town = Town::open(&root, around).unwrap();
        TestTown { town, tmux, folder }
    }

    /// Adds the rig `lab` with the prefix `lb`, from a repository with one commit.
    pub(crate) fn with_rig(mut self) -> Self {
        let source = self.folder.path().join("lab");
        std::fs::create_dir(&source).unwrap();
        self.git(&source, &["init", "--quiet", "--initial-branch=main"]);
        self.commit(&source, "README.md", "lab\n");
        rig::add(&mut self.town, "lab", source.to_str().unwrap(), Some("lb")).unwrap();
        self
    }

    /// Adds settings to `town.toml`, and opens the town again.
    pub(crate) fn with_settings(mut self, text: &str) -> Self {
        let file = self.town.root().join("town.toml");
        let before = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{before}\n{text}")).unwrap();
        self.town = Town::open(self.town.root(), self.town.around().clone()).unwrap();
        self
    }

    /// Runs git in a folder; returns its output.
    pub(crate) fn git(&self, dir: &Path, words: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .args(words)
            .current_dir(dir)
            .env_clear()
            .envs(&self.town.around().env)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {words:?}: {error}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Commits a file in a worktree; returns the commit.
    pub(crate) fn commit(&self, dir: &Path, file: &str, text: &str) -> String {
        std::fs::write(dir.join(file), text).unwrap();
        self.git(dir, &["add", "--all"]);
        self.git(dir, &["commit", "--quiet", "--message", file]);
        self.git(dir, &["rev-parse", "HEAD"])
    }

    /// Registers the agent `agent/<name>`, without a start.
    pub(crate) fn agent(&self, name: &str) -> Identity {
        let agent = Identity::agent(name);
        directory::write_agent_file(&self.town, &agent, &AgentFile::default()).unwrap();
        agent
    }

    /// Starts an agent and waits until it shows its prompt.
    pub(crate) fn start(&self, agent: &Identity) -> StartedAgent {
        start::start(&self.town, agent, &StartOptions::default()).unwrap()
    }

    pub(crate) fn container(&self, agent: &Identity) -> Option<Container> {
        containers::of_agent(&self.town, agent).unwrap()
    }

    /// Returns the sessions of an agent, the newest first.
    pub(crate) fn sessions(&self, agent: &Identity) -> Vec<Record> {
        let query = SessionQuery {
            agent: Some(agent.address()),
            ..SessionQuery::default()
        };
        Sessions::of(&self.town).find(&query).unwrap()
    }

    pub(crate) fn item(&self, title: &str) -> WorkId {
        let draft = ItemDraft {
            prefix: "lb".to_owned(),
            title: title.to_owned(),
            ..ItemDraft::default()
        };
        Work::of(&self.town).create(&draft).unwrap().id
    }

    /// Types a line into an agent's pane, as a person would.
    pub(crate) fn type_line(&self, agent: &Identity, line: &str) {
        let pane = self.container(agent).unwrap().pane().pane;
        let keys = || Command::new("send-keys").target(pane);
        let typed = [keys().args(["-l", line]), keys().arg("Enter")];
        self.tmux.server().run(typed).unwrap();
    }

    /// Waits until an agent's screen shows a line.
    #[track_caller]
    pub(crate) fn await_line(&self, agent: &Identity, line: &str) {
        wait_until(line, TIMEOUT, || {
            let screen = peek::peek(&self.town, agent, None, false).ok()?;
            screen.lines.iter().any(|shown| shown == line).then_some(())
        });
    }

    /// Waits until the program in an agent's pane has ended.
    #[track_caller]
    pub(crate) fn await_death(&self, agent: &Identity) {
        wait_until("the program has ended", TIMEOUT, || {
            let container = self.container(agent);
            container.is_none_or(|it| it.pane().dead).then_some(())
        });
    }

    pub(crate) fn tag(&self, agent: &Identity, option: &str) -> String {
        let name = self.container(agent).unwrap().name().to_owned();
        let target = SessionName::try_from(name.as_str()).unwrap();
        let ask = Command::new("show-options").arg("-qv").target(target);
        let value = self.tmux.server().run(ask.arg(option)).unwrap();
        value.trim_end().to_owned()
    }
}
