use super::*;
use crate::records::items::{EscalationQuery, Work};
use crate::records::sessions::Sessions;
use crate::testing::TestTown;
use crate::workflow::sling::{self, SlingOptions, SlingTarget};
use gt_core::escalation::{Escalation, EscalationState};
use gt_core::record::{Outcome, Record, SessionStatus};
use gt_core::usage::Usage;

/// A town with a rig and these settings.
fn town(settings: &str) -> TestTown {
    let mut place = TestTown::new().with_rig();
    let root = place.town.root().to_owned();
    let path = root.join("town.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\n{settings}\n")).unwrap();
    place.town = Town::open(&root, place.town.around().clone()).unwrap();
    place
}

/// Records an ended session of today that cost that much.
fn spend(place: &TestTown, agent: &Identity, item: Option<&WorkId>, cost: f64) {
    let now = place.town.clock().text();
    let session = Record {
        agent: Some(agent.address()),
        rig: agent.rig().map(str::to_owned),
        started_at: Some(now.clone()),
        ended_at: Some(now),
        outcome: Some(Outcome::Stopped),
        status: Some(SessionStatus::Stopped),
        work_unit: item.map(WorkId::to_string),
        usage: Some(Usage {
            output_tokens: 1,
            cost_usd: Some(cost),
            ..Usage::default()
        }),
        ..Record::about(place.town.clock().new_id().to_string())
    };
    Sessions::of(&place.town).record(&[session]).unwrap();
}

/// Returns the number of open escalations.
fn escalations(place: &TestTown) -> usize {
    let all = Work::of(&place.town).escalations(&EscalationQuery::default());
    let is_open = |it: &Escalation| it.state == EscalationState::Open;
    all.unwrap().into_iter().filter(is_open).count()
}

fn levels(checked: &Checked) -> Vec<(String, BudgetLevel)> {
    let all = checked.budgets.iter();
    all.map(|it| (it.scope.to_string(), it.level)).collect()
}

#[test]
fn only_agents_of_the_exhausted_scope_are_held_until_a_raise() {
    let place = town("[budget]\nagent = 10");
    let (max, amy) = (place.agent("max"), place.agent("amy"));
    place.start(&max);
    place.start(&amy);
    spend(&place, &max, None, 9.0);
    spend(&place, &amy, None, 2.0);
    let checked = check(&place.town).unwrap();
    assert_eq!(
        levels(&checked),
        [
            ("agent:agent/amy".to_owned(), BudgetLevel::Ok),
            ("agent:agent/max".to_owned(), BudgetLevel::Warn)
        ]
    );
    assert!(checked.paused.is_empty());
    spend(&place, &max, None, 2.0);
    let checked = check(&place.town).unwrap();
    let reason = "budget of agent/max for the day: $11.00 of $10.00";
    assert_eq!(checked.paused, [(max.clone(), reason.to_owned())]);
    assert_eq!(place.tag(&max, tag::HOLD), reason);
    assert_eq!(place.tag(&amy, tag::HOLD), "");
    // A second check changes nothing.
    let again = check(&place.town).unwrap();
    assert!(again.paused.is_empty() && again.resumed.is_empty());
    assert_eq!(escalations(&place), 1);
    let raised = raise(&place.town, BudgetScope::Agent(max.address()), 5.0, true).unwrap();
    assert_eq!(raised.resumed, std::slice::from_ref(&max));
    assert_eq!(place.tag(&max, tag::HOLD), "");
    assert_eq!(escalations(&place), 0);
    let notes = BudgetNotes::read(&place.town).unwrap();
    assert_eq!(notes.raises.len(), 1);
    assert!(notes.raises[0].day.is_some());
}

#[test]
fn exhausted_item_and_rig_refuse_a_sling_before_anything_is_allocated() {
    let place = town("[budget]\nitem = 5\n[rigs.lab.budget]\nrig = 20");
    let item = place.item("first");
    let polecat = Identity::polecat("lab", "Toast");
    spend(&place, &polecat, Some(&item), 6.0);
    let to = SlingTarget::Rig("lab".to_owned());
    let sling = |id: &WorkId| {
        let slung = sling::sling(&place.town, id, &to, &SlingOptions::default());
        Problem::from(slung.unwrap_err()).message_with_causes()
    };
    let refused = sling(&item);
    assert!(
        refused.contains(&format!(
            "the budget of {item} is exhausted: $6.00 of $5.00"
        )),
        "{refused}"
    );
    let other = place.item("second");
    spend(&place, &polecat, None, 15.0);
    let refused = sling(&other);
    assert!(
        refused.contains("the budget of rig lab for the day is exhausted: $21.00 of $20.00"),
        "{refused}"
    );
    assert!(place.sessions(&polecat).iter().all(|it| it.pid.is_none()));
    assert!(Work::of(&place.town).hooks().unwrap().is_empty());
}

#[test]
fn raise_wakes_an_agent_that_is_not_to_be_disturbed() {
    let place = town("[budget]\nagent = 10");
    let item = place.item("Paint the door");
    let to = SlingTarget::Rig("lab".to_owned());
    let slung = sling::sling(&place.town, &item, &to, &SlingOptions::default()).unwrap();
    spend(&place, &slung.agent, Some(&item), 11.0);
    assert_eq!(check(&place.town).unwrap().paused.len(), 1);
    let address = slung.agent.address();
    crate::messaging::dnd::turn_on(&place.town, &address, None).unwrap();
    raise(&place.town, BudgetScope::Agent(address), 5.0, true).unwrap();
    nudge::deliver_waiting(&place.town, &slung.agent, Duration::from_secs(60)).unwrap();
    place.await_line(&slung.agent, &format!("said: {GO_ON}"));
}
