//! Syncs of a town of tests, with a real tmux.

use super::*;
use crate::records::sessions::SessionEnd;
use crate::testing::TestTown;
use gt_core::record::Outcome;
use gt_core::session::SessionId;
use gt_tmux::Command;

#[test]
fn sync_records_the_end_of_a_session_that_crashed() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    stage.start(&agent);
    stage.type_line(&agent, "crash");
    stage.await_death(&agent);
    let sessions = Sessions::of(&stage.town);
    let synced = sync(&stage.town, &sessions, false).unwrap();
    assert_eq!(synced.lines.len(), 1);
    let record = &stage.sessions(&agent)[0];
    assert_eq!(record.outcome, Some(Outcome::Crash));
    assert_eq!(record.exit_code, Some(3));
    // The journal agrees now.
    assert_eq!(sync(&stage.town, &sessions, false).unwrap().lines.len(), 0);
}

#[test]
fn sync_records_sessions_that_were_lost_with_their_server() {
    let stage = TestTown::new();
    let agents = ["one", "two"].map(|name| stage.agent(name));
    for agent in &agents {
        stage.start(agent);
    }
    stage
        .tmux
        .server()
        .run(Command::new("kill-server"))
        .unwrap();
    let sessions = Sessions::of(&stage.town);
    let told = sync(&stage.town, &sessions, true).unwrap();
    assert_eq!(told.lines.len(), 2);
    let open = |agent| stage.sessions(agent)[0].outcome.is_none();
    assert!(agents.iter().all(open), "a dry run writes nothing");
    sync(&stage.town, &sessions, false).unwrap();
    assert!(!agents.iter().any(open));
}

#[test]
fn session_that_ended_after_the_listing_is_not_revived() {
    let stage = TestTown::new();
    let [here, gone] = ["one", "two"].map(|name| stage.start(&stage.agent(name)).session);
    let two = stage.agent("two");
    crate::lifecycle::stop::stop_one(&stage.town, &two, Default::default()).unwrap();
    let revival = |id: SessionId| (JournalChange::Revived, Record::about(id.to_string()));
    let mut lines = vec![revival(here), revival(gone)];
    confirm_revivals(&stage.town, &mut lines).unwrap();
    let ids: Vec<&str> = lines.iter().map(|(_, line)| line.id.as_str()).collect();
    assert_eq!(ids, [here.to_string()]);
}

#[test]
fn running_session_that_the_journal_has_ended_is_revived() {
    let stage = TestTown::new();
    let agent = stage.agent("one");
    let started = stage.start(&agent);
    let sessions = Sessions::of(&stage.town);
    let end = SessionEnd::of(Outcome::Crash);
    let line = Sessions::ending(started.session.to_string(), end, stage.town.clock());
    sessions.record(&[line]).unwrap();
    let synced = sync(&stage.town, &sessions, false).unwrap();
    let changes: Vec<JournalChange> = synced.lines.iter().map(|(change, _)| *change).collect();
    assert_eq!(changes, [JournalChange::Revived]);
    assert_eq!(stage.sessions(&agent)[0].outcome, None);
}
