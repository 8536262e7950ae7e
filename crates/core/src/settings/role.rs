//! Settings of a role: `roles/<role>.toml`. The built-in file of the role overrides the defaults.

use super::SettingKind::{Boolean, Choice, Harness, Map, Text, Texts, Variable};
use super::kind::{NUMBER, NUMBER_32};
use super::{Setting, absent, value};

/// Palettes, and words that select one.
pub(super) const THEMES: &[&str] = &[
    "rig", "mayor", "deacon", "none", "ocean", "forest", "rust", "plum", "slate", "ember",
    "midnight", "wine", "teal", "copper",
];

pub(super) const ROWS: &[Setting] = &[
    value("description", Text, "\"\"", "One line for `gt role list`."),
    value(
        "session.pattern",
        Text,
        "\"\"",
        "Name of the container. {prefix}, {rig}, {role} and {name} are filled in.",
    ),
    value(
        "session.work_dir",
        Text,
        "\"\"",
        "Working directory. {town}, {rig}, {role} and {name} are filled in.",
    ),
    value(
        "session.needs_pre_sync",
        Boolean,
        "false",
        "Fetch from the rig's remote before the start.",
    ),
    absent(
        "session.start_command",
        Text,
        ("the harness's command", "\"my-agent --fast\""),
        "A shell line to run instead of the harness's own command.",
    ),
    absent(
        "session.process_names",
        Texts,
        ("the harness's names", "[\"my-agent\"]"),
        "Process names of a live agent; an empty list accepts any process.",
    ),
    absent(
        "session.harness",
        Harness,
        ("the town's", "\"codex\""),
        "The agent program of this role.",
    ),
    absent(
        "session.model",
        Text,
        ("the harness's", "\"opus\""),
        "The model of this role's agents.",
    ),
    value(
        "start.skip_permissions",
        Boolean,
        "false",
        "Run without asking for permission.",
    ),
    value(
        "start.wait_for_agent",
        Boolean,
        "false",
        "Wait until the agent's process is seen in the pane.",
    ),
    value(
        "start.accept_dialogs",
        Boolean,
        "false",
        "Answer the start-up dialogs that the harness preset knows.",
    ),
    value(
        "start.wait_ready",
        Boolean,
        "false",
        "Wait until the agent shows its prompt.",
    ),
    value(
        "start.auto_respawn",
        Boolean,
        "false",
        "Start the agent again when it dies.",
    ),
    value(
        "start.on_exit",
        Choice(&["stop", "restart"]),
        "\"stop\"",
        "Action after the program exits by itself with status 0; it applies only with auto_respawn.",
    ),
    value(
        "start.on_demand",
        Boolean,
        "false",
        "Run the agent only while it has something to decide.",
    ),
    value(
        "start.deaths_per_item",
        NUMBER,
        "0",
        "Deaths over one work item after which the agent is not respawned; 0 means no maximum.",
    ),
    value(
        "start.remain_on_exit",
        Boolean,
        "false",
        "Keep the pane of a dead agent, with its last lines.",
    ),
    value("start.track_pid", Boolean, "false", "Write a PID file."),
    value(
        "start.verify_survived",
        Boolean,
        "false",
        "Check at the end of the start that the agent is still alive.",
    ),
    value(
        "start.prompt",
        Boolean,
        "false",
        "Give the beacon as the first prompt.",
    ),
    value(
        "start.topic",
        Text,
        "\"\"",
        "Topic of the beacon when the caller gives none.",
    ),
    absent(
        "start.formula",
        Text,
        ("none", "\"patrol\""),
        "Formula that `gt prime` pours for an agent without work and without a molecule.",
    ),
    absent(
        "start.instructions",
        Text,
        ("none", "\"Run the tests before each commit.\""),
        "Text that is appended to the beacon.",
    ),
    value(
        "handoff.on_compact",
        Choice(&["auto", "cycle", "nothing"]),
        "\"auto\"",
        "Before a program compacts its context: save the state, begin another session, or nothing.",
    ),
    absent(
        "sandbox.level",
        Choice(&["none", "workspace", "strict", "container"]),
        ("the town's sandbox.default", "\"workspace\""),
        "The sandbox of the role's agents.",
    ),
    value(
        "sandbox.writable",
        Texts,
        "[]",
        "Further files and folders that the agents may write in a sandbox.",
    ),
    value(
        "sandbox.caches",
        Choice(&["own", "read-only"]),
        "\"own\"",
        "Caches of toolchains in a sandbox: own ones, which the rig's agents share, or yours, which they only read.",
    ),
    value(
        "sandbox.hidden",
        Texts,
        "[]",
        "Further files and folders that the agents do not see in a sandbox.",
    ),
    value(
        "sandbox.limits.processes",
        NUMBER,
        "4096",
        "Maximum number of processes in a sandbox; 0 means no maximum. The kernel does not apply it to root.",
    ),
    value(
        "sandbox.limits.file_mb",
        NUMBER,
        "0",
        "Maximum size of a file that a process in a sandbox writes, in megabytes; 0 means no maximum.",
    ),
    value(
        "sandbox.hosts",
        Texts,
        "[]",
        "Further hosts that the agents reach from a strict sandbox or a container, such as \"*.crates.io\".",
    ),
    absent(
        "sandbox.image",
        Text,
        ("none", "\"localhost/agents:1\""),
        "Image for the level container. It must be on this machine and have the agent program.",
    ),
    absent(
        "sandbox.engine",
        Choice(&["podman", "docker"]),
        ("the first that is installed", "\"podman\""),
        "Program that runs containers.",
    ),
    value(
        "sandbox.network",
        Choice(&["none", "proxy", "engine"]),
        "\"proxy\"",
        "Network of a container: none, the hosts of a strict sandbox, or the engine's default.",
    ),
    value(
        "sandbox.readable",
        Texts,
        "[]",
        "Further files and folders of this machine that the agents read in a container.",
    ),
    value(
        "sandbox.arguments",
        Texts,
        "[]",
        "Further arguments for `podman run` or `docker run`, such as \"--memory=4g\".",
    ),
    value(
        "record.enabled",
        Boolean,
        "false",
        "Record the output of the agents' panes.",
    ),
    value(
        "record.max_mb",
        NUMBER_32,
        "0",
        "Maximum size of the recording of one session, in megabytes; at least 1 applies.",
    ),
    value(
        "look.theme",
        Choice(THEMES),
        "\"\"",
        "Colours of the status line: by the rig's name, of a role, a palette, or none.",
    ),
    value(
        "look.icon",
        Text,
        "\"\"",
        "The sign before the agent's name in the status line.",
    ),
    value(
        "env",
        Map(&Variable),
        "{}",
        "Environment variables of the role's agents: texts, or references to secrets.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn themes_are_complete() {
        for theme in crate::theme::PALETTES {
            assert!(THEMES.contains(&theme.name), "{}", theme.name);
        }
        for name in THEMES.iter().filter(|name| **name != "none") {
            assert!(crate::theme::find(name, "x").is_some(), "{name}");
        }
    }
}
