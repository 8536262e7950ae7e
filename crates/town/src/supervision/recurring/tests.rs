//! Recurring work in a town of tests.

use super::*;
use crate::base::clock::Clock;
use crate::records::events::EventQuery;
use crate::supervision::scheduler;
use crate::testing::TestTown;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

fn stage() -> (TestTown, Clock) {
    let clock = Clock::stopped_at("2026-01-10T12:00:00Z".parse().unwrap());
    (TestTown::with_clock(clock.clone()).with_rig(), clock)
}

fn nightly(town: &Town) -> Recurring {
    let new = NewRecurring {
        name: Some("nightly".to_owned()),
        cron: "0 3 * * *".to_owned(),
        formula: "review".to_owned(),
        rig: "lab".to_owned(),
        vars: [("change".to_owned(), "the last day".to_owned())].into(),
        ..NewRecurring::default()
    };
    add(town, new).unwrap().0
}

fn events(town: &Town, kind: &str) -> usize {
    let query = EventQuery {
        kinds: vec![kind.to_owned()],
        ..EventQuery::default()
    };
    Events::of(town).find(&query).unwrap().len()
}

#[test]
fn missed_runs_are_queued_once_and_not_while_the_last_item_is_open() {
    let (stage, clock) = stage();
    let town = &stage.town;
    nightly(town);
    assert!(run_due(town).unwrap().is_empty());
    clock.advance(DAY * 5);
    let queued = run_due(town).unwrap();
    assert_eq!(queued.len(), 1, "five missed runs are one");
    assert!(queued[0].title.starts_with("nightly: Review"), "{queued:?}");
    assert_eq!(queued[0].labels, ["recurring:nightly"]);
    assert!(run_due(town).unwrap().is_empty());
    for _ in 0..3 {
        clock.advance(DAY);
        assert!(run_due(town).unwrap().is_empty(), "its item is open");
    }
    assert_eq!(events(town, "schedule_skipped"), 1);
    Work::of(town).close(&queued[0].id, None).unwrap();
    assert!(
        run_due(town).unwrap().is_empty(),
        "nothing was planned since"
    );
    clock.advance(DAY);
    assert_eq!(run_due(town).unwrap().len(), 1);
    assert_eq!(events(town, "schedule_recurring"), 2);
}

#[test]
fn run_that_cannot_be_queued_is_escalated_once() {
    let (stage, clock) = stage();
    let town = &stage.town;
    let folder = town.root().join("formulas");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "formula = \"own\"\n[[steps]]\nid = \"one\"\ntitle = \"One\"\n";
    std::fs::write(folder.join("own.toml"), text).unwrap();
    let new = NewRecurring {
        cron: "@daily".to_owned(),
        formula: "own".to_owned(),
        rig: "lab".to_owned(),
        ..NewRecurring::default()
    };
    add(town, new).unwrap();
    std::fs::remove_file(folder.join("own.toml")).unwrap();
    for _ in 0..2 {
        clock.advance(DAY);
        assert!(run_due(town).unwrap().is_empty());
    }
    let open = Work::of(town).escalations(&Default::default()).unwrap();
    assert_eq!(open.len(), 1);
    assert!(open[0].message.contains("the recurring work own"));
    std::fs::write(folder.join("own.toml"), text).unwrap();
    clock.advance(DAY);
    assert_eq!(run_due(town).unwrap().len(), 1);
    assert!(
        Work::of(town)
            .escalations(&Default::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn wrong_recurring_work_is_refused() {
    let (stage, _) = stage();
    let good = NewRecurring {
        cron: "@daily".to_owned(),
        formula: "patrol".to_owned(),
        rig: "lab".to_owned(),
        ..NewRecurring::default()
    };
    for wrong in [
        NewRecurring {
            cron: "daily".to_owned(),
            ..good.clone()
        },
        NewRecurring {
            formula: "none".to_owned(),
            ..good.clone()
        },
        NewRecurring {
            rig: "none".to_owned(),
            ..good.clone()
        },
        NewRecurring {
            name: Some("a b".to_owned()),
            ..good.clone()
        },
        // Its variable is required.
        NewRecurring {
            formula: "review".to_owned(),
            ..good.clone()
        },
    ] {
        assert!(add(&stage.town, wrong.clone()).is_err(), "{wrong:?}");
    }
    add(&stage.town, good.clone()).unwrap();
    assert!(add(&stage.town, good).is_err(), "the name is taken");
}

#[test]
fn run_starts_a_polecat_with_the_molecule() {
    let stage = TestTown::new().with_rig();
    let town = &stage.town;
    nightly(town);
    let item = run_now(town, "nightly").unwrap().unwrap();
    let report = scheduler::run(town).unwrap();
    assert_eq!(report.started.len(), 1, "{:?}", report.failed);
    let agent = report.started[0].agent.address();
    let molecule = Work::of(town).molecule(&agent).unwrap().unwrap();
    assert_eq!(molecule.formula, "review");
    assert_eq!(molecule.item.parent, Some(item.id));
    assert!(run_now(town, "other").is_err());
}
