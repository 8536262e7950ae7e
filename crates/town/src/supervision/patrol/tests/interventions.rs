//! Actions on agents that have ended or are stuck, and on queues.

use super::*;
use crate::lifecycle::{save, stop};
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use crate::messaging::queue::MessageQueue;
use gt_core::nudge::Priority;

#[test]
fn agents_of_a_dead_server_are_restored() {
    let stage = StoppedTown::new();
    let ada = stage.town.agent("ada");
    stage.town.start(&ada);
    save::save(stage.town(), true).unwrap();
    let kill = stage.town.tmux.server().run(Command::new("kill-server"));
    kill.unwrap();
    wait_until("the server has ended", TIMEOUT, || {
        stage.town.container(&ada).is_none().then_some(())
    });
    assert_eq!(
        stage.patrol_after(MINUTE),
        [("server-died", ActionKind::RestoreServer)]
    );
    assert!(stage.is_alive(&ada));
    assert_eq!(stage.patrol_after(MINUTE), []);
}

#[test]
fn dead_agent_that_the_hook_left_is_respawned() {
    let stage = StoppedTown::new();
    let mayor = Identity::from_address("mayor", stage.town().registry()).unwrap();
    stage.town.start(&mayor);
    stage.crash(&mayor);
    // The stand-in for gt does not respawn it.
    assert_eq!(stage.patrol_after(30), []);
    assert_eq!(
        stage.patrol_after(10 * MINUTE),
        [("dead-agent", ActionKind::Respawn)]
    );
    assert!(stage.is_alive(&mayor));
}

#[test]
fn hung_agent_is_nudged_then_interrupted_then_restarted() {
    let stage = StoppedTown::new();
    // Ctrl-C would end the script that stands in for an agent.
    let preset = stage.town().root().join("harnesses/echo.toml");
    let text = std::fs::read_to_string(&preset).unwrap();
    let keys = "\n[interrupt]\nkeys = [\"Escape\"]\n";
    std::fs::write(&preset, text + keys).unwrap();
    let work = stage.sling("Paint the door", false);
    stage.report(&work.agent, "busy");
    let before = stage.town.container(&work.agent).unwrap().pane().pid;
    assert_eq!(stage.patrol_after(29 * MINUTE), []);
    let hung = |kind| [("hung-agent", kind)];
    assert_eq!(stage.patrol_after(2 * MINUTE), hung(ActionKind::Nudge));
    assert_eq!(stage.patrol_after(4 * MINUTE), [], "it gets time");
    assert_eq!(stage.patrol_after(MINUTE), hung(ActionKind::Interrupt));
    let same = stage.town.container(&work.agent).unwrap().pane().pid;
    assert_eq!(same, before);
    assert_eq!(stage.patrol_after(5 * MINUTE), hung(ActionKind::Restart));
    let container = stage.town.container(&work.agent).unwrap();
    assert!(!container.pane().dead && container.pane().pid != before);
    assert_eq!(stage.holder(&work), work.agent);
}

#[test]
fn old_message_without_a_deliverer_is_delivered() {
    let stage = StoppedTown::new();
    let ada = stage.town.agent("ada");
    stage.town.start(&ada);
    let request = NudgeRequest {
        is_command: false,
        text: "hello",
        sender: None,
        mode: DeliveryMode::Queue,
        priority: Priority::Normal,
        timeout: Duration::ZERO,
    };
    nudge::send(stage.town(), &ada, &request).unwrap();
    assert_eq!(MessageQueue::of(stage.town(), &ada).waiting().len(), 1);
    assert_eq!(stage.patrol_after(9 * MINUTE), []);
    assert_eq!(
        stage.patrol_after(2 * MINUTE),
        [("old-message", ActionKind::Redeliver)]
    );
}

#[test]
fn assignment_that_could_start_wakes_the_scheduler() {
    let mut stage = StoppedTown::new();
    stage
        .town
        .town
        .change_settings(|settings| settings.limits.polecats_per_rig = 1);
    let busy = stage.sling("Paint the door", false);
    let item = stage.town.item("Paint the wall");
    let work = Work::of(stage.town());
    let options = gt_core::schedule::AssignmentOptions::default();
    work.enqueue_assignment(&item, "lab", &options, "ada")
        .unwrap();
    assert_eq!(stage.patrol_after(2 * MINUTE), [], "it waits for a slot");
    stop::stop_one(stage.town(), &busy.agent, stop::StopOptions::default()).unwrap();
    assert_eq!(
        stage.patrol_after(1),
        [("old-schedule", ActionKind::RunScheduler)]
    );
    assert_eq!(stage.patrol_after(1), [], "it backs off");
    crate::supervision::scheduler::run(stage.town()).unwrap();
    assert_eq!(stage.patrol_after(MINUTE), []);
}
