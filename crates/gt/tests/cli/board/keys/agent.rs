//! `p`, `R`, `n`, `y`, `x`, `d` and `c`: pause, resume, message, answer, stop and clean up.

use super::*;

#[test]
fn agent_is_paused_resumed_nudged_answered_and_stopped() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id, "--prompt", "[[delay=10m]]"])
        .ok();
    wait_state(&env, &id, "busy");
    let dir = folder(&env, &id);
    let agent = format!("task/{id}");
    let (pid, before) = (env.pid(&agent), head(&env, &dir));
    fs::write(dir.join("new"), "x\n").unwrap();
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("In progress 1");
    board.act("p");
    board.wait_text("‖");
    wait_state(&env, &id, "paused");
    env.wait_screen(&agent, "Interrupted");
    board.until("the commit", || {
        subject(&env, &dir) == "wip: paused session"
    });
    // The branch moves before the index does.
    board.until("nothing left to commit", || {
        env.git(&dir, &["status", "--porcelain"]).is_empty()
    });
    assert_eq!(env.json(&["task", "show", &id])["state"], "paused");
    board.act("R");
    env.wait_screen(&agent, "You said: continue");
    assert_eq!(head(&env, &dir), before);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "?? new\n");
    assert_eq!(env.pid(&agent), pid);
    wait_state(&env, &id, "idle");
    board.wait_text("Review 1");
    // Send a message, and answer the question that it causes.
    board.act("n");
    board.wait_text("Message");
    board.write("[[ask=Which one?|this|that]] '$(touch evil)' #{pane_id}");
    board.press(&["Enter"]);
    env.wait_screen(
        &agent,
        "> [[ask=Which one?|this|that]] '$(touch evil)' #{pane_id}",
    );
    wait_state(&env, &id, "waiting");
    board.wait_text("Which one?");
    board.wait_text("? waiting");
    board.act("y");
    board.wait_text("The number of an option");
    board.write("2");
    board.until("the choice", || {
        let screen = env.gt(&["peek", &agent]).stdout;
        screen.contains("You chose: that")
    });
    assert!(!dir.join("evil").exists());
    // The board asks for confirmation, and `n` cancels.
    board.act("x");
    board.wait_text(&format!("Stop {id}?"));
    board.press(&["n"]);
    board.wait("no question", |screen| {
        !screen.contains(&format!("Stop {id}?"))
    });
    assert_eq!(env.pid(&agent), pid);
    board.act("x");
    board.wait_text(&format!("Stop {id}?"));
    board.press(&["y"]);
    board.until("the container to be gone", || !has_container(&env, &id));
    assert!(dir.join("new").exists(), "the worktree stays");
    assert!(!crate::env::is_alive(pid));
    wait_card(&env, &id, "without a session", |card| {
        card["session"].is_null() && card["branch"]["dirty"] == 1
    });
}

#[test]
fn tabs_of_an_agent_without_an_item_show_its_branch_and_its_sessions() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "max"]).ok();
    let folder = env.town().join("gastown/crew/max");
    fs::write(folder.join("notes.txt"), "remember\n").unwrap();
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("gastown/crew/max");
    board.press(&["Enter"]);
    board.wait_text("gastown/crew/max has no work item.");
    board.press(&["3"]);
    board.wait_text("notes.txt");
    board.wait_text("+remember");
    board.press(&["5"]);
    board.wait_text("Servers");
    board.press(&["6"]);
    let session = env.agent("gastown/crew/max")["session"].clone();
    board.wait_text(session.as_str().unwrap());
}

#[test]
fn a_task_is_cleaned_up_as_foreseen_and_its_item_closed() {
    let (env, id, dir) = running();
    let board = Terminal::open(&env, 150, 45);
    let repository = env.town().join("gastown/.repo.git");
    let branch = || env.git(&repository, &["branch", "--list", &id]);
    board.wait_text("Needs you 1");
    board.act("d");
    for step in [
        format!("stop everything in the container {id}-az"),
        "remove the worktree".to_owned(),
        format!("delete the branch {id}"),
    ] {
        board.wait_text(&step);
    }
    board.press(&["y"]);
    board.until("all of it to be gone", || {
        !dir.exists() && !has_container(&env, &id) && branch().is_empty()
    });
    wait_card(&env, &id, "open", |card| card["status"] == "open");
    // Unmerged work is refused; `f` forces the cleanup and saves the work.
    board.wait_text("Open 1");
    board.act("s");
    wait_agent(&env, &id);
    board.wait_text("○ idle");
    let tip = commit(&env, &dir, "mine.txt", "x\n");
    board.act("d");
    board.wait_text("refused: ");
    board.press(&["y"]);
    board.wait_text("refused: ");
    assert!(dir.exists());
    board.press(&["f"]);
    board.until("it to be gone by force", || {
        !dir.exists() && !has_container(&env, &id) && branch().is_empty()
    });
    let saved = ["for-each-ref", "--format=%(objectname)", "refs/gt/saved"];
    assert_eq!(env.git(&repository, &saved).trim(), tip);
    board.wait_text("Open 1");
    board.act("c");
    wait_card(&env, &id, "closed", |card| card["status"] == "closed");
    board.wait_text("Done 1");
}
