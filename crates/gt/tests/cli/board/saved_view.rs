//! The view of the last board is restored.

use super::terminal::Terminal;
use crate::env::TIMEOUT;
use crate::task::with_project;
use gt_tmux::testing::wait_until;
use std::fs;

fn quit(board: &Terminal<'_>) {
    board.press(&["q"]);
    wait_until("the board to end", TIMEOUT, || {
        (!board.is_open()).then_some(())
    });
}

#[test]
fn order_is_kept_and_a_damaged_file_is_ignored_with_a_warning() {
    let (env, id) = with_project("");
    let board = Terminal::named(&env, "u", 100, 30, &[]);
    board.wait_text(&id);
    board.press(&["o", "i"]);
    board.wait_text("by id");
    quit(&board);
    let file = env.town().join(".runtime/board-view.json");
    let saved = || -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap()
    };
    let before = saved();
    assert_eq!(
        (&before["sort"], &before["theme"]),
        (&"id".into(), &"dark".into())
    );
    assert_eq!(before["card"], id);
    // Options are for one board.
    let options = ["--theme", "light", "--rig", "gastown"];
    let board = Terminal::named(&env, "x", 100, 30, &options);
    board.wait_text("· gastown");
    board.wait_text(&id);
    quit(&board);
    assert_eq!(saved(), before);
    let board = Terminal::named(&env, "v", 100, 30, &[]);
    board.wait_text("by id");
    quit(&board);

    fs::write(&file, "{\"sort\": ").unwrap();
    let board = Terminal::named(&env, "w", 100, 30, &[]);
    board.wait_text(&id);
    assert!(!board.screen().contains("by id"), "{}", board.screen());
    quit(&board);
    let log = env.gt(&["logs"]).ok().stdout.clone();
    assert!(
        log.contains("the view of the last board is ignored"),
        "{log}"
    );
}
