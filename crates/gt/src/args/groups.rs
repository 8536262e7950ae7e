//! The groups of the commands: the table behind `gt help` and `gt help GROUP`.

/// A group of commands, in the order of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandGroup {
    Start,
    Agents,
    Messages,
    Work,
    Merging,
    History,
    Roles,
    Setup,
    Hooks,
}
use CommandGroup::{Agents, History, Hooks, Merging, Messages, Roles, Setup, Start, Work};

/// A group with its name in `gt help GROUP` and its title.
pub(crate) const GROUPS: &[(CommandGroup, &str, &str)] = &[
    (Start, "start", "Start here"),
    (Agents, "agents", "Agents"),
    (Messages, "messages", "Messages"),
    (Work, "work", "Work"),
    (Merging, "merging", "Merging"),
    (History, "history", "History"),
    (Roles, "roles", "Town roles"),
    (Setup, "setup", "Setup"),
    (Hooks, "hooks", "For agents and hooks"),
];

/// Every visible command and its group, in the order of the help.
pub(crate) const COMMANDS: &[(&str, CommandGroup)] = &[
    ("init", Start),
    ("rig", Start),
    ("demo", Start),
    ("board", Start),
    ("status", Start),
    ("agents", Agents),
    ("crew", Agents),
    ("polecat", Agents),
    ("agent", Agents),
    ("start", Agents),
    ("stop", Agents),
    ("restart", Agents),
    ("interrupt", Agents),
    ("attach", Agents),
    ("peek", Agents),
    ("wait", Agents),
    ("watch", Agents),
    ("adopt", Agents),
    ("up", Agents),
    ("down", Agents),
    ("save", Agents),
    ("restore", Agents),
    ("estop", Agents),
    ("thaw", Agents),
    ("nudge", Messages),
    ("answer", Messages),
    ("broadcast", Messages),
    ("keys", Messages),
    ("mail", Messages),
    ("escalate", Messages),
    ("notify", Messages),
    ("dnd", Messages),
    ("work", Work),
    ("sling", Work),
    ("schedule", Work),
    ("task", Work),
    ("dev", Work),
    ("formula", Work),
    ("mq", Merging),
    ("done", Merging),
    ("sessions", History),
    ("seance", History),
    ("costs", History),
    ("budget", History),
    ("events", History),
    ("sync", History),
    ("mayor", Roles),
    ("deacon", Roles),
    ("witness", Roles),
    ("refinery", Roles),
    ("boot", Roles),
    ("dog", Roles),
    ("patrol", Roles),
    ("config", Setup),
    ("project", Setup),
    ("role", Setup),
    ("harness", Setup),
    ("account", Setup),
    ("daemon", Setup),
    ("dashboard", Setup),
    ("web", Setup),
    ("doctor", Setup),
    ("logs", Setup),
    ("tmux-conf", Setup),
    ("completions", Setup),
    ("prime", Hooks),
    ("hook", Hooks),
    ("unhook", Hooks),
    ("handoff", Hooks),
    ("checkpoint", Hooks),
    ("mol", Hooks),
    ("step", Hooks),
    ("signal", Hooks),
    ("status-line", Hooks),
];

/// Returns the names of a group's commands.
pub(crate) fn commands(group: CommandGroup) -> impl Iterator<Item = &'static str> {
    let rows = COMMANDS.iter().filter(move |(_, of)| *of == group);
    rows.map(|(name, _)| *name)
}

/// Returns the group with this name in `gt help GROUP`.
pub(crate) fn named(name: &str) -> Option<(CommandGroup, &'static str)> {
    let row = GROUPS.iter().find(|(_, known, _)| *known == name)?;
    Some((row.0, row.2))
}
