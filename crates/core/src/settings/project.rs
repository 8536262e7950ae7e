//! Settings of a project: `.gt.toml` at the root of its repository.

use super::SettingKind::{Boolean, Choice, Harness, Integer, Map, Tables, Text, Texts};
use super::{Setting, SettingDefault, SettingKind, absent, row, value};

const PORT: SettingKind = Integer { min: 1, max: 65535 };

/// Returns a row that every table of a list must have.
pub(super) const fn required(key: &'static str, kind: SettingKind, about: &'static str) -> Setting {
    row(key, kind, SettingDefault::Required, about)
}

pub(super) const ROWS: &[Setting] = &[
    value(
        "worktree.path_template",
        Text,
        "\"../{project}-{bead-id}\"",
        "Path of a task's worktree, relative to the project's folder.",
    ),
    value(
        "worktree.copy",
        Texts,
        "[]",
        "Files and folders that git does not have and a worktree needs.",
    ),
    value(
        "init.commands",
        Texts,
        "[]",
        "Shell lines that run in a new container before the agent is started.",
    ),
    value(
        "init.continue_on_failure",
        Boolean,
        "false",
        "A failing command does not stop the start.",
    ),
    value(
        "background",
        Tables,
        "[]",
        "Shell lines that run beside the agent, each in its window.",
    ),
    absent(
        "background.name",
        Text,
        ("its number, from 1", "\"tests\""),
        "Name of the window, after task-.",
    ),
    required("background.command", Text, "The shell line."),
    value(
        "dev_servers",
        Tables,
        "[]",
        "Development servers, which `gt dev` runs.",
    ),
    required("dev_servers.name", Text, "Name of the window, after dev-."),
    required("dev_servers.command", Text, "The shell line of the server."),
    value("dev_servers.port", PORT, "3000", "The first port to try."),
    value(
        "dev_servers.port_variable",
        Text,
        "\"PORT\"",
        "The environment variable that tells the server its port.",
    ),
    value(
        "dev_servers.ports",
        Map(&PORT),
        "{}",
        "Further ports: the variable of each, and the first to try.",
    ),
    absent(
        "harness.name",
        Harness,
        ("the role's, then the town's", "\"codex\""),
        "The agent program of the project's tasks.",
    ),
    absent(
        "harness.model",
        Text,
        ("the role's, then the harness's", "\"opus\""),
        "The model of agents in the project's worktrees.",
    ),
    BUILTIN,
    PATTERNS[0],
    PATTERNS[1],
    PATTERNS[2],
    PATTERNS[3],
    PATTERNS[4],
];

/// `[states]`, which projects and harnesses have.
pub(super) const BUILTIN: Setting = value(
    "states.builtin",
    Boolean,
    "true",
    "The built-in patterns of screens apply as well.",
);
pub(super) const PATTERNS: [Setting; 5] = [
    value(
        "states.patterns",
        Tables,
        "[]",
        "Patterns that map the last lines of an agent's screen to states.",
    ),
    required(
        "states.patterns.state",
        Choice(&["waiting", "error", "done", "busy"]),
        "The state of an agent when a line shows this.",
    ),
    required(
        "states.patterns.shows",
        Text,
        "The text of the line, as a mark.",
    ),
    value(
        "states.patterns.any_case",
        Boolean,
        "false",
        "Ignore the case of letters.",
    ),
    absent(
        "states.patterns.priority",
        Integer { min: 0, max: 65535 },
        ("100, 90, 80 or 70, by state", "95"),
        "If several patterns match, the highest priority wins.",
    ),
];
