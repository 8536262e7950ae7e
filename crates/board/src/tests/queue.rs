//! The merge queue, and the offer to restore lost agents.

use super::*;
use crate::MergeFacts;
use insta::assert_snapshot;

/// Returns entries in several states.
pub(crate) fn merges() -> Vec<MergeFacts> {
    let entry = |entry: &str, item: &str, status, reason: Option<&str>| MergeFacts {
        id: id(entry),
        item: id(item),
        rig: "gastown".to_owned(),
        branch: format!("polecat/Toast/{item}"),
        worker: "gastown/polecats/Toast".to_owned(),
        status,
        reason: reason.map(str::to_owned),
        files: reason.iter().map(|_| "src/a.rs".to_owned()).collect(),
        attempts: u32::from(reason.is_some()),
        repair: None,
        since: NOW - 60,
    };
    vec![
        entry("mr-00aaa", "gt-00que", merge::MergeStatus::Merging, None),
        entry(
            "mr-00bbb",
            "gt-00brk",
            merge::MergeStatus::Conflict,
            Some("it conflicts with main"),
        ),
    ]
}

fn queued() -> Stage {
    let mut facts = town();
    facts.merges = merges();
    Stage::with(100, 30, BoardTheme::Dark, facts)
}

fn lost(agents: &[&str]) -> BoardEvent {
    let mut facts = town();
    facts.lost = agents.iter().map(|agent| (*agent).to_owned()).collect();
    BoardEvent::Facts(facts)
}

#[test]
fn queue_shows_the_state_of_each_entry() {
    let mut stage = queued();
    stage.press("Qj");
    assert_snapshot!("merge_queue", stage.screen());
}

#[test]
fn entries_are_retried_rejected_and_merged() {
    for (keys, command) in [
        ("Qjr", "run: gt mq retry mr-00bbb --json"),
        ("Qm", "run: gt mq run gastown --json"),
        (
            "Qjxtoo late<Enter>",
            "run: gt mq reject mr-00bbb --reason=too late --reopen --json",
        ),
    ] {
        let mut stage = queued();
        assert_eq!(commands(&stage.press(keys)), [command]);
    }
    // A rejection needs a reason.
    let mut stage = queued();
    assert_eq!(commands(&stage.press("Qx<Enter>")), Vec::<String>::new());
    let mut stage = queued();
    stage.press("Qj<Enter>");
    stage.assert_cursor("gt-00brk");
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn held_entry_is_approved_and_others_are_not() {
    let mut facts = town();
    facts.merges = merges();
    facts.merges[1].status = merge::MergeStatus::Held;
    let mut stage = Stage::with(100, 30, BoardTheme::Dark, facts);
    stage.press("Qj");
    stage.assert_shows("a approve");
    assert_eq!(
        commands(&stage.press("a")),
        ["run: gt mq approve mr-00bbb --json"]
    );
    let mut stage = queued();
    assert_eq!(commands(&stage.press("Qja")), Vec::<String>::new());
    stage.assert_shows("mr-00bbb is conflict, not held");
}

#[test]
fn selection_of_the_queue_stays_on_its_entry() {
    let mut stage = queued();
    stage.press("Qj");
    let mut facts = town();
    facts.merges = merges();
    facts.merges.reverse();
    stage.happens(BoardEvent::Facts(facts));
    assert_eq!(
        commands(&stage.press("r")),
        ["run: gt mq retry mr-00bbb --json"]
    );
    let mut stage = Stage::new(80, 24);
    stage.press("Q");
    stage.assert_mode(KeyMode::Board);
    stage.assert_shows("Nothing waits to be merged");
}

#[test]
fn open_lists_that_become_empty_offer_only_to_close() {
    for (key, title, operation) in [
        ("Q", "Merge queue: nothing waits to be merged", "r retry"),
        ("E", "Escalations: none is open", "a acknowledge"),
    ] {
        let mut facts = town();
        facts.merges = merges();
        facts.escalations = vec![escalation("esc-00aaa", Severity::High, false)];
        let mut stage = Stage::with(100, 30, BoardTheme::Dark, facts);
        stage.press(key);
        stage.assert_shows(operation);
        stage.happens(BoardEvent::Facts(BoardFacts {
            escalations: Vec::new(),
            ..town()
        }));
        stage.assert_shows(title);
        stage.assert_shows("Esc close");
        stage.assert_shows_not(operation);
    }
}

#[test]
fn message_that_would_cover_a_dialog_is_in_the_last_line() {
    let mut stage = Stage::new(80, 24);
    stage.press("h p");
    stage.assert_shows("┌");
    let boxed = stage.screen();
    assert!(
        boxed
            .lines()
            .last()
            .is_some_and(|line| line.contains("Space actions"))
    );
    // The menu is as high as the screen.
    stage.press(" ");
    let screen = stage.screen();
    let last = screen.lines().last().unwrap_or_default();
    assert!(last.starts_with(" ⋯ Pausing "), "{screen}");
    stage.assert_shows("↑0 ↓");
    // A small dialog leaves the box its corner.
    let mut stage = Stage::new(200, 50);
    stage.press("h po");
    let screen = stage.screen();
    let last = screen.lines().last().unwrap_or_default();
    assert!(last.contains("Space actions"), "{screen}");
    stage.assert_shows("⋯ Pausing ");
}

#[test]
fn restore_is_offered_once_for_each_death() {
    let mut stage = Stage::new(80, 24);
    stage.happens(lost(&["gastown/crew/max", "mayor"]));
    stage.assert_shows("2 agents were lost with their tmux server. Restore all?");
    stage.assert_shows("gastown/crew/max");
    stage.press("n");
    stage.assert_mode(KeyMode::Board);
    // One of them came back; nothing else was lost.
    stage.happens(lost(&["mayor"]));
    stage.assert_mode(KeyMode::Board);
    // A key offers it again.
    let requests = stage.press("Ry");
    assert_eq!(commands(&requests), ["run: gt restore --json"]);
    stage.assert_shows("Restoring 1 agent…");
    // Another death.
    stage.happens(lost(&[]));
    stage.happens(lost(&["mayor"]));
    stage.assert_shows("1 agent was lost with its tmux server. Restore it?");
    // Agents that came back by themselves need no answer.
    stage.happens(lost(&[]));
    stage.assert_mode(KeyMode::Board);
    stage.press("R");
    stage.assert_shows("No agents were lost with their tmux server");
}

#[test]
fn offer_waits_for_an_open_overlay_and_ignores_earlier_keys() {
    let mut stage = Stage::new(80, 24);
    stage.press("nMake");
    stage.happens(lost(&["mayor"]));
    stage.assert_mode(KeyMode::Form);
    stage.press("<Esc>");
    stage.assert_mode(KeyMode::Confirm);
    let mut stage = Stage::new(80, 24);
    let now = stage.now;
    stage.board.handle(lost(&["mayor"]), now);
    // The key was pressed before a frame showed the question.
    assert_eq!(commands(&stage.press("y")), Vec::<String>::new());
    assert_eq!(commands(&stage.press("y")), ["run: gt restore --json"]);
}
