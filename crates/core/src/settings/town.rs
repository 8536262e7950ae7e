//! Settings of a town: `town.toml`.

use super::SettingKind::{
    Boolean, Choice, Choices, Duration, Harness, Hours, Integer, Map, Text, Texts,
};
use super::kind::{AMOUNT, NUMBER, NUMBER_32};
use super::{Setting, SettingKind, absent, value};

pub(super) const NOTICES: &[&str] = &["waiting", "done", "died", "escalation", "budget", "landed"];

/// Names of the rules of the patrol.
const RULES: &[&str] = &[
    "server-died",
    "mass-death",
    "unrecorded-death",
    "low-disk",
    "crash-loop",
    "dead-agent",
    "dead-polecat",
    "unfinished-reassign",
    "absent-holder",
    "overdue-boot",
    "hung-start",
    "hung-agent",
    "limit-ended",
    "failed-turn",
    "unanswered-question",
    "not-handed-in",
    "finished-round",
    "idle-with-work",
    "old-message",
    "old-merge",
    "old-schedule",
    "escalation-due",
    "zombie-container",
    "leftover",
];

const POSITIVE: SettingKind = Integer {
    min: 1,
    max: i64::MAX,
};
const SHARE: SettingKind = SettingKind::Decimal { min: 0.0, max: 1.0 };
const NO_BUDGET: (&str, &str) = ("no budget", "20.0");

pub(super) const ROWS: &[Setting] = &[
    value("name", Text, "\"\"", "The town's name, for people."),
    Setting {
        variable: Some("GT_HARNESS"),
        ..absent(
            "harness",
            Harness,
            ("claude", "\"claude\""),
            "The agent program of every role that names none.",
        )
    },
    Setting {
        variable: Some("GT_TMUX_SOCKET"),
        ..value(
            "tmux.socket",
            Text,
            "\"\"",
            "The tmux server of the agents: a socket name, as for `tmux -L`, or an absolute path. \
             Empty means your default tmux server.",
        )
    },
    absent(
        "tmux.history_limit",
        NUMBER_32,
        ("what the tmux server has", "10000"),
        "Lines of scrollback of a new container.",
    ),
    value(
        "limits.parallel_starts",
        Integer { min: 1, max: 64 },
        "8",
        "Maximum number of agents that are started at the same time.",
    ),
    value(
        "limits.hung_after_minutes",
        NUMBER,
        "30",
        "Minutes without output after which a busy agent counts as hung.",
    ),
    value(
        "limits.polecats",
        NUMBER,
        "50",
        "Maximum number of polecats that work at the same time in the town.",
    ),
    value(
        "limits.polecats_per_rig",
        NUMBER,
        "25",
        "Maximum number of polecats that work at the same time in each rig.",
    ),
    value(
        "limits.at_limit",
        Choice(&["wait", "switch"]),
        "\"wait\"",
        "Reaction of an agent to a usage limit: it waits, or moves to another account.",
    ),
    value(
        "notify.desktop",
        Boolean,
        "false",
        "Desktop notifications, by notify-send on Linux and osascript on macOS.",
    ),
    absent(
        "notify.bell",
        Boolean,
        ("only an open board rings", "true"),
        "Ring the terminals of all attached clients.",
    ),
    absent(
        "notify.command",
        Text,
        ("none", "\"ntfy publish mine \\\"$GT_NOTIFY_AGENT\\\"\""),
        "A shell line that is run for each event, with the facts in variables.",
    ),
    value(
        "notify.on",
        Choices(NOTICES),
        "[\"waiting\", \"done\", \"died\", \"escalation\", \"budget\", \"landed\"]",
        "The events to report.",
    ),
    absent(
        "notify.quiet_hours",
        Hours,
        ("none", "\"22:00-07:00\""),
        "A part of the day without notifications, in local time.",
    ),
    value(
        "merge.automatic",
        Boolean,
        "true",
        "Finished work starts the merge queue of its rig in the background.",
    ),
    value(
        "merge.repair_agents",
        Boolean,
        "true",
        "An agent is started for a branch that could not be merged.",
    ),
    value(
        "merge.repair_by",
        Choice(&["polecat", "worker"]),
        "\"polecat\"",
        "The agent that repairs a branch: a polecat, or the worker that made it, if that one is free.",
    ),
    value(
        "merge.confirm",
        Boolean,
        "true",
        "`gt task merge` asks before the first merge of a rig.",
    ),
    value(
        "merge.sandbox",
        Choice(&["none", "workspace"]),
        "\"none\"",
        "The sandbox of the commands that validate a merge.",
    ),
    absent(
        "budget.day",
        AMOUNT,
        NO_BUDGET,
        "Maximum spending of the town per day, in US dollars.",
    ),
    absent(
        "budget.rig",
        AMOUNT,
        NO_BUDGET,
        "Maximum spending of each rig per day, in US dollars.",
    ),
    absent(
        "budget.agent",
        AMOUNT,
        NO_BUDGET,
        "Maximum spending of each agent per day, in US dollars.",
    ),
    absent(
        "budget.item",
        AMOUNT,
        NO_BUDGET,
        "Maximum cost of each work item, in US dollars.",
    ),
    absent(
        "budget.warn_at",
        SHARE,
        ("0.8", "0.8"),
        "The share of a budget at which a notification is sent.",
    ),
    value(
        "save.auto",
        Boolean,
        "true",
        "Save automatically: after starts and stops, and while agents work.",
    ),
    value(
        "save.keep",
        POSITIVE,
        "20",
        "Number of automatic saves to keep, and of other saves.",
    ),
    value(
        "save.scrollback_lines",
        NUMBER_32,
        "2000",
        "Lines of scrollback that are saved of a pane, beside its screen.",
    ),
    value(
        "save.every_minutes",
        NUMBER,
        "5",
        "Maximum age of the newest save while anything runs; 0 means that only ends of turns save.",
    ),
    value(
        "save.resurrect",
        Boolean,
        "false",
        "Let tmux-resurrect save as well, if it is installed.",
    ),
    value(
        "patrol.automatic",
        Boolean,
        "true",
        "Patrol without a command: with the automatic save, and by the daemon.",
    ),
    value(
        "patrol.wake_roles",
        Boolean,
        "true",
        "Send role agents what they have to decide, and start those that do not run.",
    ),
    value(
        "patrol.off",
        Choices(RULES),
        "[]",
        "Rules of the patrol that are disabled; `gt patrol rules` explains them.",
    ),
    value(
        "patrol.restore",
        Boolean,
        "true",
        "Restore the agents whose tmux server died.",
    ),
    value(
        "patrol.resumes",
        NUMBER_32,
        "2",
        "Resumes of a dead polecat before its item goes to another one.",
    ),
    value(
        "patrol.reassigns",
        NUMBER_32,
        "1",
        "Number of times that an item goes to another polecat before an escalation.",
    ),
    value(
        "patrol.restarts",
        NUMBER_32,
        "3",
        "Restarts of a hung agent within a day before an escalation.",
    ),
    value(
        "patrol.starts_per_minute",
        POSITIVE,
        "4",
        "Maximum number of agents that patrols start within a minute.",
    ),
    value(
        "patrol.mass_deaths",
        Integer {
            min: 2,
            max: i64::MAX,
        },
        "3",
        "Number of agents whose deaths within 30 seconds are a mass death.",
    ),
    value(
        "patrol.start_timeout",
        Duration,
        "\"5m\"",
        "Time after which a start counts as hung.",
    ),
    value(
        "patrol.idle_after",
        Duration,
        "\"5m\"",
        "Time after which an idle agent with work gets a message.",
    ),
    value(
        "patrol.question_after",
        Duration,
        "\"15m\"",
        "Time after which an unanswered question is escalated.",
    ),
    value(
        "patrol.message_after",
        Duration,
        "\"10m\"",
        "Maximum age of a waiting message.",
    ),
    value(
        "patrol.merge_after",
        Duration,
        "\"5m\"",
        "Maximum age of a waiting merge.",
    ),
    value(
        "patrol.clean_after",
        Duration,
        "\"1h\"",
        "Time after which the container of a dead agent without work is removed.",
    ),
    value(
        "patrol.worktree_after",
        Duration,
        "\"7d\"",
        "Time after which the worktree of an unused polecat is removed; 0d keeps it.",
    ),
    value(
        "patrol.min_free_mb",
        NUMBER,
        "500",
        "Minimum free disk space in megabytes; below it patrols start nothing.",
    ),
    value(
        "patrol.speed",
        Integer {
            min: 1,
            max: 4_294_967_295,
        },
        "1",
        "Divisor of all times of patrols and of the daemon, to try a night in minutes.",
    ),
    value(
        "schedule.harnesses",
        Map(&NUMBER),
        "{}",
        "Maximum number of running agents by harness, such as { claude = 4 }.",
    ),
    value(
        "schedule.accounts",
        Map(&NUMBER),
        "{}",
        "Maximum number of running agents by account, such as { work = 2 }.",
    ),
    absent(
        "schedule.max_load",
        AMOUNT,
        ("no maximum", "1.5"),
        "Load average per processor at which no more work is started. Only on Linux.",
    ),
    value(
        "schedule.start_spacing",
        Duration,
        "\"2s\"",
        "Minimum time between two starts from the schedule.",
    ),
    value(
        "polecats.names",
        Texts,
        "[]",
        "Names for new polecats; an empty list means the built-in names.",
    ),
    value(
        "polecats.rig_names",
        Map(&Texts),
        "{}",
        "Names for new polecats of single rigs, such as { hello = [\"Ann\", \"Bob\"] }.",
    ),
    value(
        "nudge.depth",
        NUMBER,
        "200",
        "Maximum number of messages that wait for one agent.",
    ),
    value(
        "nudge.ttl_minutes",
        NUMBER,
        "1440",
        "Minutes after which an undelivered message expires; 0 means never.",
    ),
    value(
        "nudge.urgent_ttl_minutes",
        NUMBER,
        "0",
        "Minutes after which an undelivered urgent message expires; 0 means never.",
    ),
    value(
        "nudge.wait_seconds",
        NUMBER,
        "15",
        "Seconds that `gt nudge` waits for an idle agent before it leaves the message in the queue.",
    ),
    value(
        "sessions.archive_after_days",
        NUMBER_32,
        "90",
        "Days after which an ended session moves to the archive; 0 means never.",
    ),
    value(
        "sessions.keep_recordings_days",
        NUMBER_32,
        "30",
        "Days after its last change after which a recording is removed; 0 means never.",
    ),
    value(
        "prime.budget",
        NUMBER,
        "9500",
        "Maximum number of characters that an agent gets at the start of a session.",
    ),
    value(
        "handoff.cooldown",
        Duration,
        "\"60s\"",
        "Minimum age of a session before a handoff.",
    ),
    value(
        "krc.prune_interval",
        Duration,
        "\"1h\"",
        "Minimum interval between two automatic prunes of old events.",
    ),
    value(
        "krc.minimum_kept",
        NUMBER,
        "100",
        "Number of newest events that stay regardless of their age.",
    ),
    value(
        "krc.ttl",
        Map(&Duration),
        "{}",
        "Retention of events by type or pattern, such as { \"session_*\" = \"5d\" }.",
    ),
    value(
        "board.fetch_minutes",
        NUMBER,
        "5",
        "Minutes between two fetches of the rigs' remotes while a board is open; 0 means never.",
    ),
    absent(
        "web.listen",
        Text,
        ("only the Unix socket", "\"127.0.0.1:7420\""),
        "The loopback address on which the daemon serves the HTTP API to browsers.",
    ),
    value(
        "capabilities",
        SettingKind::Capabilities,
        "{}",
        "Overrides of what agents may do with gt: by role, then by capability.",
    ),
    value(
        "git.allow",
        Texts,
        "[]",
        "Settings of a repository's own git configuration that git uses although they name a program.",
    ),
    value(
        "sandbox.default",
        Choice(&["none", "auto", "workspace", "strict"]),
        "\"none\"",
        "The sandbox of agents that run without permission prompts and whose role names none; auto \
         is workspace where it works. `gt init` sets auto.",
    ),
    value(
        "env.pass",
        Texts,
        "[]",
        "Environment variables of yours that agents get, besides the inherited ones.",
    ),
    value(
        "env.remove",
        Texts,
        "[]",
        "Environment variables of yours that agents do not get.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::NoticeKind;

    #[test]
    fn closed_sets_agree_with_their_tables() {
        let kinds: Vec<&str> = NoticeKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(NOTICES, kinds);
        let rules: Vec<&str> = crate::patrol::RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(RULES, rules);
    }
}
