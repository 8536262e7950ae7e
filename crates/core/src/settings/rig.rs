//! Settings of a rig: `[rigs.<rig>]` in `town.toml`.

use super::SettingKind::{Boolean, Choice, ChoiceOr, Texts};
use super::kind::{AMOUNT, NUMBER};
use super::{Setting, SettingDefault, SettingKind, absent, row, value};

/// Returns a row that overrides a setting of the town.
const fn over(
    key: &'static str,
    kind: SettingKind,
    town: &'static str,
    about: &'static str,
) -> Setting {
    row(key, kind, SettingDefault::Town(town), about)
}

pub(super) const ROWS: &[Setting] = &[
    value(
        "merge.validate",
        Texts,
        "[]",
        "Shell lines that must succeed before the rig's base branch moves.",
    ),
    value(
        "merge.timeout_minutes",
        NUMBER,
        "30",
        "Timeout in minutes for each of these lines.",
    ),
    absent(
        "merge.memory_mb",
        NUMBER,
        ("three quarters of the machine's", "8000"),
        "Maximum memory of each of these lines with all its processes, in MiB.",
    ),
    value(
        "merge.processes",
        NUMBER,
        "1000",
        "Maximum number of processes of each of these lines.",
    ),
    value(
        "merge.keep",
        Texts,
        "[]",
        "Ignored files and folders that stay in the worktree of these lines, such as target.",
    ),
    value(
        "capabilities",
        SettingKind::Capabilities,
        "{}",
        "Overrides of what agents of this rig may do with gt: by role, then by capability.",
    ),
    value(
        "merge.protected",
        Texts,
        "[\".gt.toml\"]",
        "Files, as patterns of git, whose changes only a person may approve.",
    ),
    value(
        "merge.batch",
        SettingKind::Integer {
            min: 1,
            max: i64::MAX,
        },
        "1",
        "Maximum number of entries that are validated together.",
    ),
    absent(
        "merge.into",
        Choice(&["origin", "own"]),
        ("as the remote allows", "\"own\""),
        "The target of merged work: the remote's branch, or the town's own copy of it.",
    ),
    over(
        "merge.automatic",
        Boolean,
        "merge.automatic",
        "Finished work starts the merge queue of this rig in the background.",
    ),
    over(
        "merge.repair_agents",
        Boolean,
        "merge.repair_agents",
        "An agent is started for a branch that could not be merged.",
    ),
    over(
        "merge.repair_by",
        Choice(&["polecat", "worker"]),
        "merge.repair_by",
        "The agent that repairs a branch: a polecat, or the worker that made it, if that one is free.",
    ),
    over(
        "merge.confirm",
        Boolean,
        "merge.confirm",
        "`gt task merge` asks before the first merge of this rig.",
    ),
    over(
        "merge.sandbox",
        Choice(&["none", "workspace"]),
        "merge.sandbox",
        "The sandbox of the commands that validate a merge of this rig.",
    ),
    value(
        "merge.writable",
        Texts,
        "[]",
        "Caches that these lines may write in their sandbox; ~/ is the home folder.",
    ),
    over(
        "budget.rig",
        AMOUNT,
        "budget.rig",
        "Maximum spending of this rig per day, in US dollars.",
    ),
    over(
        "budget.agent",
        AMOUNT,
        "budget.agent",
        "Maximum spending of each agent of this rig per day, in US dollars.",
    ),
    over(
        "budget.item",
        AMOUNT,
        "budget.item",
        "Maximum cost of each work item of this rig, in US dollars.",
    ),
    over(
        "budget.warn_at",
        SettingKind::Decimal { min: 0.0, max: 1.0 },
        "budget.warn_at",
        "The share of a budget at which a notification is sent.",
    ),
    over(
        "at_limit",
        Choice(&["wait", "switch"]),
        "limits.at_limit",
        "Reaction of this rig's agents to a usage limit: they wait, or move to another account.",
    ),
    value(
        "beads",
        ChoiceOr(&["auto", "on", "off"], "the path of a .beads folder"),
        "\"auto\"",
        "Whether the rig's work items are kept in beads.",
    ),
    absent(
        "beads_program",
        ChoiceOr(&["bd", "br"], "the path of one of them"),
        ("the first that is found", "\"br\""),
        "The program of beads.",
    ),
];
