//! Patrols of a town of tests, with real tmux, git and SQLite.

mod interventions;
mod leftovers;

use super::*;
use crate::base::estop;
use crate::records::items::{EscalationQuery, Work};
use crate::terminal::{containers, peek};
use crate::testing::StoppedTown;
use crate::workflow::done::{DoneOptions, done};
use crate::workflow::sling::{SlingOptions, SlingTarget, Slung, sling};
use gt_core::Identity;
use gt_core::merge::DoneStatus;
use gt_core::patrol::ActionKind;
use gt_tmux::testing::{TIMEOUT, wait_until};
use gt_tmux::{Batch, Command, SessionName};
use std::time::Duration;

const MINUTE: u64 = 60;

impl StoppedTown {
    fn sling(&self, title: &str, no_start: bool) -> Slung {
        let item = self.town.item(title);
        let to = SlingTarget::Rig("lab".to_owned());
        let options = SlingOptions {
            no_start,
            ..SlingOptions::default()
        };
        sling(self.town(), &item, &to, &options).unwrap()
    }

    fn crash(&self, agent: &Identity) {
        self.town.type_line(agent, "crash");
        self.town.await_death(agent);
    }

    /// Lets time pass and runs a patrol; returns its rules and actions, which must succeed.
    #[track_caller]
    fn patrol_after(&self, seconds: u64) -> Vec<(&'static str, ActionKind)> {
        self.clock.advance(Duration::from_secs(seconds));
        // A process that was just started may hold the lock of the last patrol until its exec.
        let done = wait_until("no other patrol runs", TIMEOUT, || {
            patrol_once(self.town()).unwrap()
        });
        let mut found = Vec::new();
        for Performed { action, result } in done {
            assert!(result.is_ok(), "{action:?}: {result:?}");
            // The stand-in for gt records no deaths: patrols do.
            if action.rule != "unrecorded-death" {
                found.push((action.rule, action.kind));
            }
        }
        found
    }

    fn holder(&self, work: &Slung) -> Identity {
        let holder = Work::of(self.town()).holder(&work.id).unwrap().unwrap();
        Identity::from_address(&holder, self.town().registry()).unwrap()
    }

    /// Sets the state that hooks would have reported, since now.
    fn report(&self, agent: &Identity, state: &str) {
        let name = self.town.container(agent).unwrap().name().to_owned();
        let since = self.clock.seconds().to_string();
        let source = if state == "starting" { "start" } else { "hook" };
        let target = SessionName::try_from(name.as_str()).unwrap();
        let tags = [
            ("@gt_state", state),
            ("@gt_state_since", since.as_str()),
            ("@gt_state_source", source),
        ];
        let set = tags.map(|(tag, value)| {
            let set = Command::new("set-option").target(target.clone());
            set.args([tag, value])
        });
        let batch = Batch::from(set.to_vec()).then_all(containers::pack(target));
        self.town.tmux.server().run(batch).unwrap();
    }
}

#[test]
fn dead_polecat_is_resumed_then_reassigned_then_escalated() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    let first = work.agent.clone();
    stage.crash(&first);
    assert_eq!(
        stage.patrol_after(15),
        [("dead-polecat", ActionKind::Resume)]
    );
    assert!(stage.is_alive(&first));
    let sessions = stage.town.sessions(&first);
    assert_eq!(sessions.len(), 2);
    assert_eq!(
        sessions[0].parent_id,
        Some(sessions[1].id.clone()),
        "one chain"
    );
    stage.crash(&first);
    assert_eq!(
        stage.patrol_after(60),
        [("dead-polecat", ActionKind::Resume)]
    );
    stage.crash(&first);
    stage.town.commit(&work.work_dir, "door", "blue\n");
    assert_eq!(
        stage.patrol_after(120),
        [("dead-polecat", ActionKind::Reassign)]
    );
    let second = stage.holder(&work);
    assert_ne!(second, first);
    assert!(stage.is_alive(&second) && !stage.is_alive(&first));
    let notes = Work::of(stage.town()).get(&work.id).unwrap().notes;
    assert!(notes.contains(work.branch.as_deref().unwrap()), "{notes}");
    assert!(work.work_dir.join("door").exists(), "its work stays");
    stage.crash(&second);
    assert_eq!(
        stage.patrol_after(600),
        [("dead-polecat", ActionKind::Escalate)]
    );
    let query = EscalationQuery::default();
    let raised = Work::of(stage.town()).escalations(&query).unwrap();
    assert_eq!(raised.len(), 1);
    assert_eq!(raised[0].item, Some(work.id.to_string()));
    assert_eq!(stage.patrol_after(600), []);
    let log = log(stage.town(), 100).unwrap();
    assert!(log.len() >= 4, "{log:?}");
    for event in log {
        let text = |name: &str| event.payload[name].as_str().unwrap_or_default().to_owned();
        assert!(
            !text("rule").is_empty() && !text("reason").is_empty(),
            "{event:?}"
        );
        assert!(!event.payload["evidence"].as_array().unwrap().is_empty());
    }
}

#[test]
fn item_that_was_taken_off_and_not_assigned_reaches_another_polecat() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    for seconds in [15, 60] {
        stage.crash(&work.agent);
        assert_eq!(
            stage.patrol_after(seconds),
            [("dead-polecat", ActionKind::Resume)]
        );
    }
    stage.crash(&work.agent);
    // As a patrol that was killed after it had taken the item off leaves it.
    stage.clock.advance(Duration::from_secs(120));
    let mut memory = memory::read(stage.town()).unwrap();
    let seen = observe::observe(stage.town(), &memory).unwrap();
    let settings = stage
        .town()
        .settings()
        .patrol
        .rules(&stage.town().settings().limits);
    let now = stage.clock.seconds();
    let actions = patrol::decide_round(&seen.snapshot, &mut memory, &settings, now);
    assert!(actions.iter().any(|it| it.kind == ActionKind::Reassign));
    memory::write(stage.town(), &memory).unwrap();
    crate::work::hook::take_off(stage.town(), &work.agent).unwrap();
    assert_eq!(
        stage.patrol_after(1),
        [("unfinished-reassign", ActionKind::Reassign)]
    );
    assert!(stage.is_alive(&stage.holder(&work)));
}

#[test]
fn hooked_item_whose_polecat_never_started_is_started() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", true);
    assert_eq!(stage.patrol_after(60), []);
    assert_eq!(plan(stage.town()).unwrap(), []);
    stage.clock.advance(Duration::from_secs(2 * MINUTE));
    assert_eq!(plan(stage.town()).unwrap().len(), 1);
    assert!(!stage.is_alive(&work.agent), "a plan changes nothing");
    assert_eq!(
        stage.patrol_after(1),
        [("dead-polecat", ActionKind::Resume)]
    );
    assert!(stage.is_alive(&work.agent));
}

#[test]
fn stopped_polecat_is_left_alone() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    let options = crate::lifecycle::stop::StopOptions::default();
    crate::lifecycle::stop::stop_one(stage.town(), &work.agent, options).unwrap();
    assert_eq!(stage.patrol_after(9 * 60 * MINUTE), []);
}

#[test]
fn idle_polecat_with_work_is_nudged() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    stage.report(&work.agent, "idle");
    assert_eq!(stage.patrol_after(4 * MINUTE), []);
    assert_eq!(
        stage.patrol_after(2 * MINUTE),
        [("idle-with-work", ActionKind::Nudge)]
    );
    wait_until("the nudge is on the screen", TIMEOUT, || {
        let screen = peek::peek(stage.town(), &work.agent, None, false).ok()?;
        let text = screen.lines.join(" ");
        text.contains("on your hook and are idle").then_some(())
    });
}

#[test]
fn hung_start_is_restarted_in_its_container() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    stage.report(&work.agent, "starting");
    assert_eq!(stage.patrol_after(4 * MINUTE), []);
    let before = stage.town.container(&work.agent).unwrap().pane().pid;
    assert_eq!(
        stage.patrol_after(2 * MINUTE),
        [("hung-start", ActionKind::Restart)]
    );
    let container = stage.town.container(&work.agent).unwrap();
    assert!(!container.pane().dead && container.pane().pid != before);
    assert_eq!(stage.holder(&work), work.agent);
    assert_eq!(stage.town.sessions(&work.agent).len(), 2);
}

#[test]
fn old_merge_starts_the_queue_again() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    stage.town.commit(&work.work_dir, "door", "blue\n");
    let options = DoneOptions {
        leaving: DoneStatus::Completed,
        message: None,
        push: true,
        force: false,
        exit: false,
    };
    done(stage.town(), &work.agent, &options).unwrap();
    assert_eq!(stage.patrol_after(MINUTE), []);
    let again = stage.patrol_after(5 * MINUTE);
    assert_eq!(again, [("old-merge", ActionKind::RunMergeQueue)]);
    assert_eq!(stage.patrol_after(MINUTE), []);
}

#[test]
fn mass_death_is_one_alarm_and_starts_wait() {
    let stage = StoppedTown::new();
    let works = ["one", "two", "three"].map(|title| stage.sling(title, false));
    for work in &works {
        stage.crash(&work.agent);
    }
    assert_eq!(
        stage.patrol_after(15),
        [("mass-death", ActionKind::MassDeathAlarm)]
    );
    assert_eq!(stage.patrol_after(60), []);
    let later = stage.patrol_after(90);
    assert_eq!(later, [("dead-polecat", ActionKind::Resume); 3]);
    let raised = Work::of(stage.town()).escalations(&EscalationQuery::default());
    assert_eq!(raised.unwrap().len(), 1);
}

#[test]
fn concurrent_patrol_is_refused() {
    let stage = StoppedTown::new();
    let _lock = FileLock::try_take(&lock_path(stage.town()))
        .unwrap()
        .unwrap();
    assert!(patrol_once(stage.town()).unwrap().is_none());
}

#[test]
fn stopped_rig_is_left_alone() {
    let stage = StoppedTown::new();
    let work = stage.sling("Paint the door", false);
    stage.crash(&work.agent);
    let note = |rig: Option<&str>| estop::EstopNote {
        rig: rig.map(str::to_owned),
        reason: None,
        by: "ada".to_owned(),
        at: stage.clock.text(),
        interrupted: Vec::new(),
    };
    for rig in [Some("lab"), None] {
        estop::set(stage.town(), &note(rig)).unwrap();
        assert_eq!(stage.patrol_after(MINUTE), [], "{rig:?}");
        estop::clear(stage.town(), rig).unwrap();
    }
    assert_eq!(
        stage.patrol_after(1),
        [("dead-polecat", ActionKind::Resume)]
    );
}
