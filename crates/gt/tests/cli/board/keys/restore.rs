//! `R`, and the offer to restore lost agents; the fetch in the background.

use super::*;
use gt_tmux::Command as Tmux;

#[test]
fn lost_agents_are_restored_when_their_server_dies_and_at_the_start() {
    let (env, id, _) = running();
    env.gt(&["crew", "add", "max"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    let board = Terminal::open(&env, 150, 45);
    board.wait_text(&id);
    env.tmux(Tmux::new("kill-server"));
    board.wait_text("2 agents were lost with their tmux server. Restore all?");
    board.wait_text("gastown/crew/max");
    board.press(&["y"]);
    wait_agent(&env, &id);
    board.until("both agents", || env.running().len() == 2);
    board.wait("no question", |screen| !screen.contains("were lost"));
    // A second death is another offer, also for a board that is opened later.
    env.tmux(Tmux::new("kill-server"));
    board.wait_text("2 agents were lost with their tmux server. Restore all?");
    board.press(&["n"]);
    board.wait("no question", |screen| !screen.contains("were lost"));
    let later = Terminal::named(&env, "v", 80, 24, &[]);
    later.wait_text("2 agents were lost");
    later.press(&["n"]);
    later.wait("no question", |screen| !screen.contains("were lost"));
    later.press(&["R"]);
    later.wait_text("2 agents were lost");
    later.press(&["y"]);
    later.until("both agents", || env.running().len() == 2);
}

#[test]
fn item_of_a_lost_polecat_needs_attention_until_it_is_restored() {
    let (env, id) = with_project("");
    env.gt(&["sling", &id]).ok();
    let board = Terminal::open(&env, 150, 45);
    board.wait_text(&id);
    env.tmux(Tmux::new("kill-server"));
    board.wait_text("1 agent was lost with its tmux server. Restore it?");
    board.press(&["n"]);
    board.wait_text("its tmux session is gone");
    let lost = card(&env, &id);
    assert_eq!(lost["lost"], true, "{lost}");
    assert_eq!(lost["column"], "needs_you", "{lost}");
    assert!(
        lost["holder"]
            .as_str()
            .is_some_and(|it| it.contains("/polecats/"))
    );
    board.press(&["R"]);
    board.wait_text("Restore it?");
    board.press(&["y"]);
    wait_card(&env, &id, "back", |card| {
        card["lost"] == false && !card["session"].is_null()
    });
}

#[test]
fn branch_behind_its_base_is_shown_without_a_fetch_by_hand() {
    let (env, id, _) = running();
    commit_to_base(&env, "theirs.txt", "theirs\n");
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.wait_text("↓1");
}

#[test]
fn without_the_setting_nothing_is_fetched() {
    let (env, id, dir) = running();
    env.add_settings("[board]\nfetch_minutes = 0\n");
    commit_to_base(&env, "theirs.txt", "theirs\n");
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    // The board has read the branch, and a fetch would have come before that.
    commit(&env, &dir, "mine.txt", "mine\n");
    board.wait_text("↑1");
    let source = env.git(&env.path("source-gastown"), &["rev-parse", "HEAD"]);
    let known = env.git(&dir, &["rev-parse", "origin/main"]);
    assert_ne!(source, known);
}
