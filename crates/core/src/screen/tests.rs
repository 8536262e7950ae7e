use super::*;

fn preset() -> Preset {
    let mut preset = Preset::default();
    preset.screen.ready = vec!["^❯ ".into()];
    preset.screen.busy = vec!["esc to interrupt".into()];
    preset.screen.waiting = vec!["Do you want to proceed?".into()];
    preset
}

#[test]
fn a_question_outweighs_a_busy_line_outweighs_the_prompt() {
    let preset = preset();
    let check = |text: &str, expected: Option<State>| {
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            read(&lines, &preset).map(|(state, _)| state),
            expected,
            "{text}"
        );
    };
    check("hello\n───\n❯ \n───", Some(State::Idle));
    check("✻ Working… (esc to interrupt)\n❯ ", Some(State::Busy));
    check(
        "Do you want to proceed?\n❯ 1. Yes\n  2. No",
        Some(State::Waiting),
    );
    check("pick one\n❯ A\n  B", None);
    check("loading", None);
    check("> one\n  two\n● three\n───\n❯\n───", Some(State::Idle));
    check("Allow it?\n● 1. Once\n  2. Always\n❯", None);
    let talked = format!("esc to interrupt\n{}❯ ", "talk\n".repeat(40));
    check(&talked, Some(State::Idle));
}

#[test]
fn rows_of_a_menu_are_read_with_their_mark() {
    let trust = DialogPattern {
        name: "trust".into(),
        shows: vec!["Do you trust".into()],
        choose: vec!["Yes, I trust this folder".into()],
        ..DialogPattern::default()
    };
    let check = |text: &str, options: &[&str], marked, wanted| {
        let lines: Vec<&str> = text.lines().collect();
        let open = open_dialog(&lines, std::slice::from_ref(&trust)).unwrap();
        assert_eq!(open.menu.options, options);
        assert_eq!((open.menu.marked, open.wanted), (marked, wanted));
    };
    check(
        " Do you trust the files in this folder?\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm",
        &["No, exit", "Yes, I trust this folder"],
        0,
        Some(1),
    );
    check(
        "│ Do you trust it? It is a folder like any other one.\n│\n│   1. Nope\n│ ❯ 2. Yes, I trust this folder\n│      really\n│   3. Other\n",
        &["Nope", "Yes, I trust this folder", "Other"],
        1,
        Some(1),
    );
    check(
        " Do you trust it?\n ❯ Later\n   Never",
        &["Later", "Never"],
        0,
        None,
    );
    assert_eq!(open_dialog(&["❯ Do you trust it?"], &[trust]), None);
}
