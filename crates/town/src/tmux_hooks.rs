//! The hooks by which tmux itself says that containers came or went.
//!
//! Each town has its own places among a server's hooks, so that they stand beside the
//! user's and other towns', and never twice. They call this very binary for this very
//! town. tmux gathers what happens within a moment, so that a storm of closings ends in
//! a few calls of `gt sync`; no process of ours has to be there.

use crate::callback::{AUTOMATIC, quiet};
use crate::{Town, look};
use gt_tmux::{Batch, Command};
use sha2::{Digest, Sha256};
use std::path::Path;

/// What tmux tells us about.
pub const EVENTS: [&str; 5] = [
    "session-created",
    "session-closed",
    "session-renamed",
    "pane-died",
    "pane-exited",
];

/// The commands that put the hooks in place; run again they change nothing.
pub fn commands(town: &Town) -> Vec<Command> {
    let place = place(town);
    let option = |name: &str| format!("@gt_sync_{name}_{place}");
    let set = |name: &str, value: &str| {
        Command::new("set-option")
            .args(["-g", &option(name)])
            .arg(value)
    };
    let (bin, root, due) = (option("bin"), option("town"), option("due"));
    // Paths are values of options, which the shell gets quoted: they are never code. The
    // mark that a call is due is taken away before the call, so that nothing is missed.
    let call = quiet(&format!(
        "{AUTOMATIC} GT_TMUX_SOCKET=#{{q:socket_path}} #{{q:{bin}}} --town #{{q:{root}}} sync --hook"
    ));
    let action = format!(
        "if-shell -F \"#{{{due}}}\" {{}} {{ set-option -g {due} 1 ; run-shell -b -d 0.1 -C {{ set-option -gu {due} ; run-shell -b \"{call}\" }} }}"
    );
    let hooks = EVENTS
        .map(|event| Command::new("set-hook").args(["-g", &format!("{event}[{place}]"), &action]));
    [
        set("bin", &town.around().gt.to_string_lossy()),
        set("town", town.root_text()),
        Command::new("set-option").args(["-gu", &due]),
    ]
    .into_iter()
    .chain(hooks)
    .collect()
}

/// These and the one that wakes a respawn. A user's own `set-hook` may have wiped them
/// since the last start, so every start puts them in place again.
pub(crate) fn all(town: &Town) -> impl Iterator<Item = Command> {
    std::iter::once(look::respawn_hook()).chain(commands(town))
}

/// The same apart from a start, for one that nobody should have to wait for.
pub fn renew(town: &Town) {
    let batch = all(town).fold(Batch::new(), Batch::then);
    // Without a server there is nobody whose hooks they would be.
    let _ = town.server().run(batch);
}

/// Returns what is wrong with the hooks on the town's server, if anything is.
pub fn defect(town: &Town) -> Option<String> {
    let place = place(town);
    let bin = format!("#{{@gt_sync_bin_{place}}}");
    let mut ask = vec![Command::new("display-message").args(["-p", &bin])];
    ask.extend(EVENTS.map(|event| Command::new("show-hooks").args(["-g", event])));
    let told = town.server().run(ask).ok()?;
    let missing: Vec<&str> = EVENTS
        .into_iter()
        .filter(|event| !told.contains(&format!("{event}[{place}]")))
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

/// Those of the town as lines for tmux's own configuration file.
pub fn configuration(town: &Town) -> String {
    commands(town)
        .into_iter()
        .fold(Batch::new(), |batch, command| {
            batch.then(command).then_line()
        })
        .to_script()
}

/// The town's place among a server's hooks and options: the same for ever, and no other town's.
pub(crate) fn place(town: &Town) -> u32 {
    const FIRST: u32 = 1_000_000;
    const PLACES: u32 = 1_000_000_000;
    let digest = Sha256::digest(town.root_text().as_bytes());
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    FIRST + number % PLACES
}

/// The line for `run-shell` whose small process ends with that of a pane.
pub(crate) fn await_death() -> String {
    quiet("#{q:@gt_bin} await-death #{pane_pid}")
}

/// Whether this tmux may miss that a pane's process ended until another child of
/// its own ends: so it was measured on 3.3a, and not on 3.5a. There a small
/// process that ends with the agent makes it look.
pub(crate) fn loses_deaths(town: &Town) -> bool {
    const SURE_SINCE: (u16, u16) = (3, 5);
    cfg!(target_os = "linux")
        && town
            .tmux_version()
            .is_ok_and(|version| (version.major, version.minor) < SURE_SINCE)
}
