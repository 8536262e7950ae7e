//! Escalations and the emergency stop.

use super::views::{SIZES, view};
use super::*;
use crate::StopFacts;

/// Returns the town with open escalations and stops.
fn alarmed() -> BoardFacts {
    let mut facts = town();
    let mut by_person = escalation("esc-00high", Severity::High, false);
    by_person.who = "ada".to_owned();
    by_person.item = None;
    by_person.since = NOW - 4000;
    by_person.message = "disk is full".to_owned();
    let mut critical = escalation("esc-00crit", Severity::Critical, false);
    critical.count = 3;
    let low = escalation("esc-00low", Severity::Low, false);
    facts.escalations.splice(0..0, [critical, by_person, low]);
    facts.stops = vec![stop(None), stop(Some("beads"))];
    facts
}

fn stop(rig: Option<&str>) -> StopFacts {
    StopFacts {
        rig: rig.map(str::to_owned),
        by: "ada".to_owned(),
        reason: rig.is_none().then(|| "wrong base branch".to_owned()),
        since: Some(NOW - 130),
    }
}

#[test]
fn stops_and_escalations_are_above_everything_at_every_size() {
    for (name, keys) in [
        ("alarms", ""),
        ("alarms_in_detail", "h<Enter>"),
        ("alarms_escalations", "E"),
        ("alarms_emergency_stop", "Xj"),
    ] {
        let mut all = String::new();
        for (width, height) in SIZES {
            let stage = view(keys, width, height, BoardTheme::Dark, alarmed());
            all.push_str(&format!("--- {width}x{height}\n{}", stage.screen()));
        }
        insta::assert_snapshot!(name, all);
    }
}

#[test]
fn smallest_board_shows_its_cards_before_the_alarms() {
    let stage = Stage::with(40, 10, BoardTheme::Plain, alarmed());
    stage.assert_shows_not("EMERGENCY");
    let stage = Stage::with(40, 11, BoardTheme::Plain, alarmed());
    stage.assert_shows("■ EMERGENCY STOP 2m by ada");
    stage.assert_shows_not("critical");
}

#[test]
fn acknowledged_escalation_is_only_in_the_list() {
    let mut stage = Stage::new(80, 24);
    stage.assert_shows_not("deploy key");
    stage.press("E");
    stage.assert_shows("deploy key");
    stage.assert_shows("✓ medium");
}

#[test]
fn escalations_are_acknowledged_and_closed_by_keys() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, alarmed());
    assert_eq!(
        commands(&stage.press("Ea")),
        ["run: gt escalate ack esc-00crit --json"]
    );
    assert_eq!(
        commands(&stage.press("jc")),
        ["run: gt escalate close esc-00high --json"]
    );
    stage.press("<Esc>");
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn key_acts_on_the_escalation_that_was_shown() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, alarmed());
    stage.press("Ej");
    let mut newer = alarmed();
    newer.escalations.remove(1);
    // No frame has shown the new list yet.
    stage.board.handle(BoardEvent::Facts(newer), stage.now);
    let key = parse("a").remove(0);
    let requests = stage.board.handle(BoardEvent::Key(key), stage.now);
    assert_eq!(
        commands(&requests),
        ["run: gt escalate ack esc-00high --json"]
    );
    stage.draw();
    // Its neighbour took its place in the frame.
    assert_eq!(
        commands(&stage.press("a")),
        ["run: gt escalate ack esc-00low --json"]
    );
}

#[test]
fn enter_goes_to_the_card_of_an_escalation() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, alarmed());
    stage.press("E<Enter>");
    stage.assert_mode(KeyMode::Board);
    stage.assert_cursor("gt-00bsy");
    stage.press("Ej<Enter>");
    stage.assert_shows("It is about no card of the board");
}

#[test]
fn no_escalation_is_said() {
    let mut facts = town();
    facts.escalations.clear();
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    stage.press("E");
    stage.assert_mode(KeyMode::Board);
    stage.assert_shows("No escalations are open");
}

#[test]
fn emergency_stop_is_confirmed_inside_the_board() {
    let mut stage = Stage::new(80, 24);
    assert_eq!(commands(&stage.press("X")), [""; 0]);
    stage.assert_shows("Stop the town");
    assert_eq!(commands(&stage.press("y")), ["run: gt estop --json"]);
    assert_eq!(commands(&stage.press("Xn")), [""; 0]);
    stage.assert_mode(KeyMode::Board);
    // The project in view is offered first.
    assert_eq!(
        commands(&stage.press("pbea<Enter>Xy")),
        ["run: gt estop --rig beads --json"]
    );
}

#[test]
fn stop_in_force_is_offered_for_thaw() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, alarmed());
    stage.assert_shows("EMERGENCY STOP of beads 2m by ada");
    assert_eq!(commands(&stage.press("Xy")), ["run: gt thaw --json"]);
    assert_eq!(
        commands(&stage.press("Xjjy")),
        ["run: gt thaw --rig beads --json"]
    );
    let mut facts = alarmed();
    facts.stops.remove(0);
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    assert_eq!(
        commands(&stage.press("Xy")),
        ["run: gt thaw --rig beads --json"]
    );
}

#[test]
fn end_of_a_town_command_is_announced() {
    let mut stage = Stage::new(80, 24);
    stage.press("Xy");
    stage.assert_shows("Stopping the town…");
    let result = Ok(String::new());
    stage.happens(BoardEvent::Outcome { order: 1, result });
    stage.assert_shows("Stopping the town: done");
}

#[test]
fn alarm_can_be_clicked() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, alarmed());
    let click = |row| {
        BoardEvent::Mouse(crossterm::event::MouseEvent {
            kind: crossterm::event::MouseEventKind::Down(crossterm::event::MouseButton::Left),
            column: 5,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    stage.happens(click(0));
    stage.assert_mode(KeyMode::EmergencyStop);
    stage.press("<Esc>");
    stage.happens(click(2));
    stage.assert_mode(KeyMode::Escalations);
}
