//! Appearance and key bindings of a container.
//!
//! The status line and the mouse are options of one session. Key bindings belong to the whole
//! server, so each of ours first checks whether it is in a container of ours, and otherwise runs
//! the user's own binding. External text reaches tmux only as the value of a tag, which a format
//! inserts with quoting; it is never part of a format.

use crate::base::callback::{self, Call};
use crate::terminal::containers::{self, tmux_problem};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::Role;
use gt_core::role::RoleConfig;
use gt_core::theme;
use gt_tmux::{Batch, Command, SessionName, Socket, format};

/// Tag with the path of our binary.
pub const TAG_BINARY: &str = "@gt_bin";
/// Server option with the version of the installed bindings.
const TAG_KEYS: &str = "@gt_keys";
/// Version of the installed bindings. Increase it whenever [`KEYS`] changes.
const KEYS_VERSION: &str = "3";

const STATUS_RIGHT: &str = "#(#{q:@gt_bin} --town #{q:@gt_town} status-line --session=#{q:session_name} 2>/dev/null) %H:%M ";

/// Returns the options of a container: colours, status line, mouse, sizes.
pub fn options(
    town: &Town,
    target: &SessionName,
    identity: &Identity,
    role: &RoleConfig,
    wanted_theme: Option<&str>,
) -> Vec<Command> {
    let set = |name: &str, value: &str| {
        Command::new("set-option")
            .target(target.clone())
            .arg(name)
            .arg(value)
    };
    let mut commands = vec![
        set(TAG_BINARY, &town.around().gt.to_string_lossy()),
        set("mouse", "on"),
        Command::new("set-option")
            .arg("-w")
            .target(target.clone())
            .arg("window-size")
            .arg("latest"),
    ];
    let wanted = wanted_theme.unwrap_or(&role.look.theme);
    let rig = identity.rig().unwrap_or_else(|| identity.short_name());
    if let Some(theme) = theme::find(wanted, rig) {
        let style = format!("bg={},fg={}", theme.background, theme.foreground);
        commands.extend([
            set("status-style", &style),
            set("status-left-length", "40"),
            set("status-left", &status_left(identity, role, target)),
            set("status-right-length", "80"),
            set("status-right", STATUS_RIGHT),
            set("status-interval", "5"),
        ]);
    }
    commands
}

/// Returns the left part of the status line: the icon, and the role for the town's own agents or
/// the container's name for others.
fn status_left(identity: &Identity, role: &RoleConfig, container: &SessionName) -> String {
    let label = match identity.role() {
        Role::Mayor => "Mayor".to_owned(),
        Role::Deacon => "Deacon".to_owned(),
        Role::Boot => "Boot".to_owned(),
        Role::Overseer => "Overseer".to_owned(),
        _ => container.to_string(),
    };
    format::escape_time(&format!("{} {label} ", role.look.icon))
}

/// A key binding: its table, its key, and the `gt` command that it runs in our containers.
struct KeyBinding {
    table: &'static str,
    key: &'static str,
    words: &'static str,
}

impl KeyBinding {
    fn action(&self) -> String {
        format!("run-shell -b \"{}\"", callback::by_tags(self.words))
    }
}

const KEYS: &[KeyBinding] = &[
    KeyBinding {
        table: "prefix",
        key: "g",
        words: "agents menu --client #{q:client_name}",
    },
    KeyBinding {
        table: "prefix",
        key: "a",
        words: "status --popup #{q:client_name}",
    },
    KeyBinding {
        table: "prefix",
        key: "n",
        words: "internal cycle next --session #{q:session_name} --client #{q:client_name}",
    },
    KeyBinding {
        table: "prefix",
        key: "p",
        words: "internal cycle previous --session #{q:session_name} --client #{q:client_name}",
    },
    KeyBinding {
        table: "root",
        key: "MouseDown1StatusRight",
        words: "agents menu --client #{q:client_name}",
    },
];

/// Returns the version of the keys that the server has bound; empty without a server.
pub(crate) fn keys_tag(town: &Town) -> Result<String> {
    let show = Command::new("show-options").args(["-gqv", TAG_KEYS]);
    match town.server().run(show) {
        Ok(version) => Ok(version.trim_end().to_owned()),
        Err(error) if containers::has_no_server(&error) => Ok(String::new()),
        Err(error) => Err(tmux_problem("cannot read the version of the keys", error)),
    }
}

/// Returns whether the bindings and hooks of this version are installed.
pub fn keys_are_current(keys_tag: &str) -> bool {
    keys_tag == KEYS_VERSION
}

/// Binds our keys and installs the hook for dead panes. Needed once per server and version.
pub fn install_keys(town: &Town) -> Result<()> {
    let problem = |error| tmux_problem("cannot bind the keys", error);
    let server = town.server();
    let bound = server
        .run_each([
            Command::new("list-keys"),
            Command::new("show-options").arg("-gq"),
            Command::new("show-options").arg("-sv").arg("set-clipboard"),
        ])
        .map_err(problem)?;
    let [keys, options, clipboard] = bound.as_slice() else {
        return Ok(());
    };
    let mut batch = Batch::new();
    for key in KEYS {
        let saved_as = format!("@gt_key_{}_{}", key.table, key.key);
        let theirs = users_binding(keys, key).or_else(|| saved_option(options, &saved_as));
        let theirs = theirs.unwrap_or_default();
        batch = batch
            .then(
                Command::new("set-option")
                    .arg("-g")
                    .arg(saved_as)
                    .arg(&*theirs),
            )
            .then(
                Command::new("bind-key")
                    .args(["-T", key.table, key.key, "if-shell", "-F", "#{@gt_town}"])
                    .arg(key.action())
                    .arg(theirs),
            )
            // A key that cannot be bound must not prevent the others.
            .then_line();
    }
    if clipboard.trim() == "external" && *server.socket() != Socket::Default {
        // With tmux's default, programs in panes may not set the clipboard. Agents may, but not the
        // programs in a person's own sessions, and the option is one of the whole server.
        batch = batch
            .then(Command::new("set-option").args(["-s", "set-clipboard", "on"]))
            .then_line();
    }
    batch = batch
        .then(respawn_hook())
        .then(Command::new("set-option").args(["-g", TAG_KEYS, KEYS_VERSION]));
    server.run_private(batch).map(drop).map_err(problem)
}

/// Returns the hook that calls `gt internal respawn` when a pane with auto-respawn dies. It has a
/// fixed index, so that it coexists with the user's hooks and is installed only once. tmux delays
/// the call by three seconds, so that no process of ours has to sleep.
pub fn respawn_hook() -> Command {
    let respawn = Call::Respawn.line("#{q:session_name} --pane #{q:hook_pane}");
    let call = callback::automatic_by_tags(&respawn);
    let action =
        format!("if-shell -F \"#{{@gt_auto_respawn}}\" {{ run-shell -b -d 3 \"{call}\" }}");
    Command::new("set-hook").args(["-g", "pane-died[970]", &action])
}

/// Returns the user's binding of a key as one command line; `None` if it is ours or free.
fn users_binding(list_keys: &str, key: &KeyBinding) -> Option<String> {
    list_keys.lines().find_map(|line| {
        let mut rest = line.strip_prefix("bind-key")?.trim_start();
        if let Some(repeated) = rest.strip_prefix("-r ") {
            rest = repeated.trim_start();
        }
        let rest = rest.strip_prefix("-T")?.trim_start();
        let (table, rest) = rest.split_once(' ')?;
        let (name, command) = rest.trim_start().split_once(' ')?;
        let is_it = table == key.table && name == key.key && !command.contains("@gt_town");
        // tmux prints the separator of several commands escaped for a shell.
        is_it.then(|| command.trim().replace(" \\; ", " ; "))
    })
}

fn saved_option(show_options: &str, name: &str) -> Option<String> {
    let value = show_options
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let unquoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    Some(unquoted.map_or_else(
        || value.to_owned(),
        |v| {
            v.replace("\\\"", "\"")
                .replace("\\$", "$")
                .replace("\\\\", "\\")
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_binding_is_found_and_ours_is_not_taken_for_it() {
        let listed = "\
bind-key    -T prefix       n                      next-window
bind-key -r -T prefix       p                      display-message hi \\; previous-window
bind-key    -T prefix       g                      if-shell -F \"#{@gt_town}\" \"run-shell x\" \"\"
bind-key    -T root         MouseDown1StatusRight  display-menu
";
        let theirs = |index: usize| users_binding(listed, &KEYS[index]);
        assert_eq!(theirs(0), None);
        assert_eq!(theirs(2).as_deref(), Some("next-window"));
        assert_eq!(
            theirs(3).as_deref(),
            Some("display-message hi ; previous-window")
        );
        assert_eq!(theirs(4).as_deref(), Some("display-menu"));
    }
}
