//! Calls of `gt internal`, and their names of earlier versions in a running tmux server.

use crate::env::{TIMEOUT, TestEnv, signal};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use rustix::process::Signal;

/// The line that the previous version has written into the hook.
const RESPAWN: &str = "GT_CALLER=gt #{q:@gt_bin} --town #{q:@gt_town} respawn #{q:session_name} \
                       --pane #{q:hook_pane} >/dev/null 2>&1 || true";

#[test]
fn hook_of_the_previous_version_respawns() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--auto-respawn"]).ok();
    let action = format!("if-shell -F \"#{{@gt_auto_respawn}}\" {{ run-shell -b \"{RESPAWN}\" }}");
    env.tmux(Tmux::new("set-hook").args(["-g", "pane-died[970]", &action]));
    let before = env.format("gt-crew-max", "#{@gt_session}");
    signal(env.pid("gastown/crew/max"), Signal::KILL);
    wait_until("it is back", TIMEOUT, || {
        let now = env.format("gt-crew-max", "#{pane_dead} #{@gt_session}");
        let (dead, session) = now.split_once(' ').unwrap();
        (dead == "0" && session != before).then_some(())
    });
}

#[test]
fn internal_is_not_in_the_help() {
    let env = TestEnv::with_town();
    let help = env.gt(&["help"]).ok().stdout;
    assert!(!help.contains("internal"), "{help}");
    let listed = env.gt(&["internal", "--help"]).ok().stdout;
    assert!(listed.contains("take-over"), "{listed}");
}
