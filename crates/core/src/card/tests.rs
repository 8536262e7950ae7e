use super::*;

fn card(status: ItemStatus, state: Option<State>) -> Card {
    Card {
        status,
        updated_at: 7,
        session: state.map(|state| CardAgent {
            agent: "task/gt-4k2qz".to_owned(),
            container: "gt-4k2qz-az".to_owned(),
            harness: None,
            state,
            source: StateSource::Process,
            since: None,
            reason: None,
            background: 0,
            resets_at: None,
            continues: false,
            attached: false,
            only_shell: false,
        }),
        ..Card::new("gt-4k2qz".parse().expect("an id"), "Something")
    }
}

#[test]
fn column_of_a_card_follows_from_status_and_state() {
    for (status, state, column) in [
        (ItemStatus::Open, None, Column::Open),
        (ItemStatus::Blocked, None, Column::Open),
        (ItemStatus::Hooked, None, Column::InProgress),
        (
            ItemStatus::InProgress,
            Some(State::Stopped),
            Column::InProgress,
        ),
        (ItemStatus::Open, Some(State::Busy), Column::InProgress),
        (
            ItemStatus::InProgress,
            Some(State::Paused),
            Column::InProgress,
        ),
        (
            ItemStatus::InProgress,
            Some(State::Waiting),
            Column::NeedsYou,
        ),
        (
            ItemStatus::InProgress,
            Some(State::Crashed),
            Column::NeedsYou,
        ),
        (ItemStatus::InProgress, Some(State::Idle), Column::NeedsYou),
        (ItemStatus::InProgress, Some(State::Done), Column::Review),
        (ItemStatus::Closed, Some(State::Idle), Column::Done),
        (ItemStatus::Closed, Some(State::Waiting), Column::NeedsYou),
    ] {
        assert_eq!(card(status, state).column(), column, "{status:?} {state:?}");
    }
}

#[test]
fn agent_without_an_item_needs_you_only_if_it_cannot_go_on() {
    for (state, column) in [
        (State::Busy, Column::InProgress),
        (State::Idle, Column::InProgress),
        (State::Done, Column::InProgress),
        (State::Waiting, Column::NeedsYou),
        (State::Error, Column::NeedsYou),
        (State::Crashed, Column::NeedsYou),
    ] {
        let mut card = card(ItemStatus::InProgress, Some(state));
        card.is_agent = true;
        assert_eq!(card.column(), column, "{state:?}");
    }
}

#[test]
fn card_with_only_dev_servers_stays_where_its_status_puts_it() {
    for (status, column) in [
        (ItemStatus::Open, Column::Open),
        (ItemStatus::Hooked, Column::InProgress),
    ] {
        let mut card = card(status, Some(State::Idle));
        card.session.as_mut().expect("a session").only_shell = true;
        assert!(!card.needs_you(), "{status:?}");
        assert_eq!(card.column(), column);
        // Its init commands have failed.
        card.session.as_mut().expect("a session").state = State::Error;
        assert_eq!(card.column(), Column::NeedsYou);
    }
}

#[test]
fn an_idle_agent_with_a_result_is_to_be_reviewed_and_a_broken_merge_needs_you() {
    let mut card = card(ItemStatus::InProgress, Some(State::Idle));
    card.branch = Some(Branch {
        ahead: 1,
        ..Branch::default()
    });
    assert_eq!(card.column(), Column::Review);
    card.merge = Some(merge::MergeStatus::Conflict);
    assert_eq!(card.column(), Column::NeedsYou);
    card.session = None;
    card.merge = Some(merge::MergeStatus::Queued);
    assert_eq!(card.column(), Column::Review);
}

#[test]
fn conflicts_need_you_unless_they_are_being_resolved() {
    let mut card = card(ItemStatus::InProgress, Some(State::Idle));
    let conflicts = Branch {
        ahead: 1,
        merging: true,
        conflicts: vec!["a".to_owned()],
        ..Branch::default()
    };
    card.branch = Some(conflicts.clone());
    assert_eq!(card.column(), Column::NeedsYou);
    card.branch = Some(Branch {
        resolver: true,
        ..conflicts.clone()
    });
    assert_eq!(card.column(), Column::Review);
    // Its own agent may have started that merge.
    card.branch = Some(conflicts);
    card.session.as_mut().expect("a session").state = State::Busy;
    assert_eq!(card.column(), Column::InProgress);
    card.session = None;
    assert_eq!(card.column(), Column::NeedsYou);
}

#[test]
fn resolver_needs_you_unless_it_works_or_is_done() {
    let mut card = card(ItemStatus::InProgress, Some(State::Idle));
    let merging = Branch {
        ahead: 1,
        merging: true,
        conflicts: vec!["a".to_owned()],
        resolver: true,
        ..Branch::default()
    };
    let resolver = |state| {
        Some(CardResolver {
            window: "merge".to_owned(),
            state,
            since: None,
            reason: None,
        })
    };
    card.branch = Some(merging.clone());
    for (state, column) in [
        (State::Busy, Column::Review),
        (State::Waiting, Column::NeedsYou),
        (State::Idle, Column::NeedsYou),
        (State::Error, Column::NeedsYou),
        (State::Crashed, Column::NeedsYou),
    ] {
        card.resolver = resolver(state);
        assert_eq!(card.column(), column, "{state:?}");
    }
    card.branch.as_mut().expect("a branch").conflicts = Vec::new();
    card.resolver = resolver(State::Idle);
    assert_eq!(
        card.column(),
        Column::Review,
        "it has done what it was given"
    );
    card.resolver = resolver(State::Crashed);
    assert_eq!(card.asking_program(), None);
    // After the commit a question still needs a person; a failure does not.
    card.branch.as_mut().expect("a branch").merging = false;
    assert_eq!(card.column(), Column::Review);
    card.resolver = resolver(State::Waiting);
    assert_eq!(card.column(), Column::NeedsYou);
    assert_eq!(card.asking_program(), Some(AskingProgram::Window("merge")));
    assert!(matches!(card.speaker(), Speaker::Resolver(_)));
    card.session.as_mut().expect("a session").state = State::Waiting;
    assert_eq!(card.asking_program(), Some(AskingProgram::Agent));
    assert_eq!(card.speaker(), Speaker::Agent);
}

#[test]
fn stopped_agent_has_the_age_of_its_end_and_stays_in_its_column() {
    let mut card = card(ItemStatus::InProgress, None);
    card.stopped_since = Some(8);
    assert_eq!(card.state(), Some(State::Stopped));
    assert_eq!((card.since(), card.column()), (8, Column::InProgress));
    card.status = ItemStatus::Open;
    assert_eq!(card.column(), Column::Open);
}

#[test]
fn its_age_is_the_agents_or_else_the_items() {
    let mut card = card(ItemStatus::InProgress, Some(State::Busy));
    assert_eq!(card.since(), 7);
    card.session.as_mut().expect("a session").since = Some(9);
    assert_eq!(card.since(), 9);
}
