//! The targets of a key: the marked cards, or the card under the cursor when the key was pressed.

use super::*;

#[test]
fn marked_cards_are_stopped_with_one_question() {
    let (env, first) = with_project("");
    let ids = [first, create(&env, "Second"), create(&env, "Third")];
    for id in &ids {
        env.gt(&["task", "start", id]).ok();
    }
    for id in &ids {
        wait_state(&env, id, "idle");
    }
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("Needs you 3");
    // Mark the first and the third card.
    for id in [&ids[0], &ids[2]] {
        board.find(id);
        board.press(&["V"]);
    }
    board.act("x");
    board.wait_text("Stop 2 cards?");
    board.press(&["y"]);
    board.until("both to be gone", || {
        !has_container(&env, &ids[0]) && !has_container(&env, &ids[2])
    });
    board.wait_text("Needs you 0");
    assert_eq!(env.sessions(), [format!("{}-az", ids[1])]);
}

#[test]
fn a_question_is_about_the_card_that_it_was_opened_for() {
    let (env, first) = with_project("");
    env.gt(&["task", "start", &first, "--prompt", "[[delay=10m]]"])
        .ok();
    wait_state(&env, &first, "busy");
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("In progress 1");
    board.act("x");
    board.wait_text(&format!("Stop {first}?"));
    // A more urgent card takes its position, and the card moves elsewhere.
    let pid = env.pid(&format!("task/{first}"));
    let urgent = env.json(&["work", "create", "Urgent", "--priority", "0"]);
    let urgent = urgent["id"].as_str().unwrap().to_owned();
    env.gt(&["task", "start", &urgent, "--prompt", "[[delay=10m]]"])
        .ok();
    crate::env::signal(pid, rustix::process::Signal::KILL);
    wait_state(&env, &urgent, "busy");
    board.wait("both in their columns", |screen| {
        screen.contains("In progress 1")
            && screen.contains("Needs you 1")
            && screen.contains(&urgent)
    });
    board.press(&["y"]);
    board.until("it to be stopped", || !has_container(&env, &first));
    wait_card(&env, &first, "without a session", |card| {
        card["session"].is_null()
    });
    assert_eq!(card(&env, &urgent)["session"]["state"], "busy");
    assert!(has_container(&env, &urgent));
}
