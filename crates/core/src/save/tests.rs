use super::*;

fn saved(agent: &str, server: u32) -> SavedContainer {
    SavedContainer {
        agent: agent.to_owned(),
        seen_at: "2026-01-17T12:00:00.000Z".to_owned(),
        server: ServerId {
            pid: server,
            started: 0,
        },
        windows: vec![SavedWindow {
            panes: vec![SavedPane {
                is_agents: true,
                ..SavedPane::default()
            }],
            ..SavedWindow::default()
        }],
        ..SavedContainer::default()
    }
}

fn ended(outcome: Option<Outcome>) -> Record {
    Record {
        outcome,
        ..Record::about("a")
    }
}

#[test]
fn only_who_was_lost_comes_back() {
    let check = |here: NameOwner, last: Option<Record>, named: bool, expected: RestoreDecision| {
        let saved = saved("mayor", 1);
        let verdict = judge(&saved, here, last.as_ref(), named, OnExit::Restart);
        assert_eq!(verdict, expected);
    };
    check(NameOwner::Nothing, None, false, RestoreDecision::Restore);
    check(
        NameOwner::Nothing,
        Some(ended(None)),
        false,
        RestoreDecision::Restore,
    );
    let crashed = Some(ended(Some(Outcome::Crash)));
    check(NameOwner::Nothing, crashed, false, RestoreDecision::Restore);
    check(NameOwner::Itself, None, true, RestoreDecision::Runs);
    check(NameOwner::NoFolder, None, false, RestoreDecision::Removed);
    // A restore by name fails with an error about the missing folder.
    check(NameOwner::NoFolder, None, true, RestoreDecision::Restore);
    let killed = Some(ended(Some(Outcome::Killed)));
    let on_request = RestoreDecision::Ended(Outcome::Killed);
    check(NameOwner::NoFolder, killed, false, on_request);
    let taken = NameOwner::Another("a session of yours".into());
    check(
        taken,
        None,
        true,
        RestoreDecision::Taken("a session of yours".into()),
    );
    for outcome in [
        Outcome::Killed,
        Outcome::Done,
        Outcome::Handoff,
        Outcome::Stopped,
        Outcome::Exited,
    ] {
        let last = Some(ended(Some(outcome)));
        check(
            NameOwner::Nothing,
            last.clone(),
            false,
            RestoreDecision::Ended(outcome),
        );
        check(NameOwner::Nothing, last, true, RestoreDecision::Restore);
    }
}

#[test]
fn a_clean_exit_is_final_unless_a_restart_was_due() {
    let mut armed = saved("mayor", 1);
    armed.auto_respawn = true;
    let last = ended(Some(Outcome::Exited));
    for (on_exit, expected) in [
        (OnExit::Stop, RestoreDecision::Ended(Outcome::Exited)),
        (OnExit::Restart, RestoreDecision::Restore),
    ] {
        let verdict = judge(&armed, NameOwner::Nothing, Some(&last), false, on_exit);
        assert_eq!(verdict, expected, "{on_exit:?}");
    }
}

#[test]
fn a_dead_one_comes_back_only_if_something_would_have_brought_it_back() {
    let mut dead = saved("mayor", 1);
    dead.windows[0].panes[0].dead = true;
    let verdict =
        |saved: &SavedContainer| judge(saved, NameOwner::Nothing, None, false, OnExit::Stop);
    assert_eq!(verdict(&dead), RestoreDecision::WasOver);
    for (seconds, expected) in [
        (121, RestoreDecision::WasOver),
        (120, RestoreDecision::Restore),
    ] {
        dead.windows[0].panes[0].dead_for_seconds = Some(seconds);
        assert_eq!(verdict(&dead), expected, "dead for {seconds} s");
    }
    dead.windows[0].panes[0].dead_for_seconds = Some(999);
    dead.auto_respawn = true;
    assert_eq!(verdict(&dead), RestoreDecision::Restore);
}

#[test]
fn the_next_save_takes_over_who_was_lost_with_a_server() {
    let here = ServerId { pid: 2, started: 0 };
    let before = ["lost", "back", "stopped", "closed", "was back", "tried"].map(|agent| {
        let server = if agent == "closed" { 2 } else { 1 };
        saved(agent, server)
    });
    let last = |agent: &str| match agent {
        "stopped" => Some(ended(Some(Outcome::Killed))),
        "was back" => Some(Record {
            started_at: Some("2026-01-17T12:30:00.000Z".to_owned()),
            ..Record::about("b")
        }),
        "lost" => Some(Record {
            started_at: Some("2026-01-17T11:30:00.000Z".to_owned()),
            ..Record::about("a")
        }),
        "tried" => Some(Record {
            started_at: Some("2026-01-17T12:30:00.000Z".to_owned()),
            ..ended(Some(Outcome::Crash))
        }),
        _ => None,
    };
    let agents = |not_before: &str| -> Vec<String> {
        let now = [saved("back", 2)];
        let since = "2026-01-17T12:00:00.000Z";
        let on_exit = |_: &str| OnExit::Stop;
        let kept = carried_over(
            before.to_vec(),
            &now,
            &[here],
            since,
            not_before,
            last,
            on_exit,
        );
        kept.into_iter().map(|saved| saved.agent).collect()
    };
    assert_eq!(agents("2026-01-01T00:00:00.000Z"), ["lost", "tried"]);
    assert_eq!(agents("2026-02-01T00:00:00.000Z"), Vec::<String>::new());
}

#[test]
fn known_conversation_is_resumed() {
    let check = |change: fn(&mut Preset), id: Option<&str>, alone, expected| {
        let mut preset = crate::harness::resolve("claude", None).unwrap().value;
        change(&mut preset);
        assert_eq!(conversation(&preset, id, alone), expected);
    };
    let silent = |preset: &mut Preset| {
        preset.command.session_id.clear();
        preset.hooks.installer = None;
    };
    check(|_| {}, Some("x"), true, Conversation::Resume("x".into()));
    check(|_| {}, None, true, Conversation::New);
    check(silent, None, true, Conversation::Continue);
    check(silent, None, false, Conversation::New);
    let old = |preset: &mut Preset| preset.command.resume.clear();
    check(old, Some("x"), true, Conversation::Continue);
    let none = |preset: &mut Preset| preset.command = crate::harness::CommandTemplate::default();
    check(none, Some("x"), true, Conversation::New);
}

#[test]
fn layouts_are_distinguished_from_other_texts() {
    assert!(is_layout("f91d,120x40,0,0{60x40,0,0,0,59x40,61,0,1}"));
    for text in ["", "tiled ; kill-server", "#(x)"] {
        assert!(!is_layout(text), "{text}");
    }
}
