//! The tmux hooks that call `gt internal sync` when containers are created, are renamed or end.
//!
//! Each town has its own index in a server's hook arrays, so that its hooks coexist with those of
//! the user and of other towns, and are installed only once. They call this binary for this town.
//! tmux combines the events of a short interval, so that many ends cause only a few calls. No
//! process of ours has to run.

use crate::Town;
use crate::base::callback::{AUTOMATIC, Call, quiet};
use crate::terminal::{appearance, containers};
use gt_tmux::{Batch, Command};
use sha2::{Digest, Sha256};
use std::path::Path;

/// The tmux events with a hook.
pub const EVENTS: [&str; 5] = [
    "session-created",
    "session-closed",
    "session-renamed",
    "pane-died",
    "pane-exited",
];

/// Returns the commands that install the hooks. They are idempotent.
pub fn commands(town: &Town) -> Vec<Command> {
    let index = hook_index(town);
    let option = |name: &str| format!("@gt_sync_{name}_{index}");
    let set = |name: &str, value: &str| {
        Command::new("set-option")
            .args(["-g", &option(name)])
            .arg(value)
    };
    let (bin, root, due) = (option("bin"), option("town"), option("due"));
    // The states of agents change with their processes, so the hooks count too. Paths are values of options, which tmux quotes for the shell: they are never code. The option
    // that marks a pending call (`due`) is unset before the call, so that no event is missed.
    let call = quiet(&format!(
        "{AUTOMATIC} GT_TMUX_SOCKET=#{{q:socket_path}} #{{q:{bin}}} --town #{{q:{root}}} {}",
        Call::Sync.line("")
    ));
    let changed = containers::changed().to_line();
    let action = format!(
        "{changed} ; if-shell -F \"#{{{due}}}\" {{}} {{ set-option -g {due} 1 ; run-shell -b -d 0.1 -C {{ set-option -gu {due} ; run-shell -b \"{call}\" }} }}"
    );
    let hooks = EVENTS
        .map(|event| Command::new("set-hook").args(["-g", &format!("{event}[{index}]"), &action]));
    [
        set("bin", &town.around().gt.to_string_lossy()),
        set("town", town.root_text()),
        Command::new("set-option").args(["-gu", &due]),
    ]
    .into_iter()
    .chain(hooks)
    .collect()
}

/// Returns the commands for these hooks and the respawn hook. A user's own `set-hook` may have
/// removed them since the last start, so every start installs them again.
pub(crate) fn all(town: &Town) -> impl Iterator<Item = Command> {
    std::iter::once(appearance::respawn_hook()).chain(commands(town))
}

/// Installs the hooks outside of a start, and ignores failures.
pub fn renew(town: &Town) {
    let batch = all(town).fold(Batch::new(), Batch::then);
    // Without a server there are no hooks to set.
    let _ = town.server().run(batch);
}

/// Checks the hooks on the town's server. Returns a description of the defect, if there is one.
pub fn defect(town: &Town) -> Option<String> {
    let index = hook_index(town);
    let bin = format!("#{{@gt_sync_bin_{index}}}");
    let mut ask = vec![Command::new("display-message").args(["-p", &bin])];
    ask.extend(EVENTS.map(|event| Command::new("show-hooks").args(["-g", event])));
    // Another check reports a server that does not answer.
    let told = town.server().run(ask).ok()?;
    let missing: Vec<&str> = EVENTS
        .into_iter()
        .filter(|event| !told.contains(&format!("{event}[{index}]")))
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Some(format!(
            "tmux's hooks of gt are gone ({missing}): sessions that come and go are not recorded"
        ));
    }
    let program = told.lines().next().unwrap_or_default();
    let is_there = Path::new(program).is_file();
    (!is_there).then(|| {
        format!(
            "tmux's hooks call {program}, which is gone: sessions that come and go are not recorded"
        )
    })
}

/// Returns the town's hooks as lines for tmux's own configuration file.
pub fn configuration(town: &Town) -> String {
    commands(town)
        .into_iter()
        .fold(Batch::new(), |batch, command| {
            batch.then(command).then_line()
        })
        .to_script()
}

/// Returns the town's index in a server's hook arrays, also used in option names: a hash of the
/// town's root, so that it is stable and differs between towns.
pub(crate) fn hook_index(town: &Town) -> u32 {
    const FIRST: u32 = 1_000_000;
    const COUNT: u32 = 1_000_000_000;
    let digest = Sha256::digest(town.root_text().as_bytes());
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    FIRST + number % COUNT
}

/// Returns the line for `run-shell` that starts a small process, which exits when the pane's
/// process ends.
pub(crate) fn await_death() -> String {
    quiet(&format!(
        "#{{q:@gt_bin}} {}",
        Call::AwaitDeath.line("#{pane_pid}")
    ))
}

/// Returns whether this version of tmux may not notice the end of a pane's process until another of
/// its child processes ends: seen with 3.3a, not with 3.5a. As a workaround, a small process
/// ([`await_death`]) exits together with the agent, which makes tmux check.
pub(crate) fn misses_pane_deaths(town: &Town) -> bool {
    const SURE_SINCE: (u16, u16) = (3, 5);
    cfg!(target_os = "linux")
        && town
            .tmux_version()
            .is_ok_and(|version| (version.major, version.minor) < SURE_SINCE)
}
