//! `gt peek`: the screen of an agent.

use crate::env::TestEnv;

#[test]
fn peek_shows_the_last_lines_with_or_without_colours() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["nudge", "gastown/max", "[[fill=300]]"]).ok();
    env.wait_screen("gastown/max", "? for shortcuts");
    let lines = |args: &[&str]| {
        env.json(&[&["peek", "gastown/max"], args].concat())["lines"]
            .as_array()
            .unwrap()
            .len()
    };
    assert!(lines(&[]) <= 50);
    assert_eq!(lines(&["-n", "5"]), 5);
    gt_tmux::testing::wait_until("scrollback is reached", crate::env::TIMEOUT, || {
        (lines(&["-n", "200"]) == 200).then_some(())
    });
    assert!(!env.gt(&["peek", "gastown/max"]).stdout.contains('\u{1b}'));
    assert!(
        env.gt(&["peek", "gastown/max", "--ansi"])
            .stdout
            .contains('\u{1b}')
    );
}
