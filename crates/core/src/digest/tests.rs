use super::*;
use crate::registry::Registry;

const NOW: i64 = 1_000_000;

fn registry() -> Registry {
    Registry::of([("lab", "lb")])
}

fn agent(address: &str) -> Identity {
    Identity::from_address(address, &registry()).unwrap()
}

fn matter(id: &str, about: &str) -> Matter {
    let agent = (!about.is_empty()).then(|| agent(about));
    Matter {
        kind: MatterKind::Escalation,
        id: id.to_owned(),
        revision: 1,
        severity: Severity::Medium,
        source: "patrol".to_owned(),
        key: None,
        raised_by: "gt".to_owned(),
        rig: agent.as_ref().and_then(|it| it.rig().map(str::to_owned)),
        agent,
        item: None,
        line: format!("the matter {id}"),
    }
}

fn running(_: &Identity) -> Readiness {
    Readiness::Running
}

fn absent(_: &Identity) -> Readiness {
    Readiness::Startable
}

fn ids(digests: &[Digest]) -> Vec<(&str, Vec<&str>)> {
    let digests = digests.iter();
    digests
        .map(|digest| {
            let ids = digest.matters.keys().map(String::as_str);
            (digest.agent.as_str(), ids.collect())
        })
        .collect()
}

#[test]
fn each_matter_has_one_recipient() {
    let check = |matter: Matter, expected: Option<&str>| {
        let found = matter.recipient().map(|it| it.address());
        assert_eq!(found.as_deref(), expected, "{matter:?}");
    };
    let with = |about: &str, change: fn(&mut Matter)| {
        let mut matter = matter("esc-1", about);
        change(&mut matter);
        matter
    };
    check(matter("esc-1", "lab/polecats/Toast"), Some("lab/witness"));
    check(matter("esc-1", "lab/crew/max"), None);
    check(matter("esc-1", "lab/witness"), Some("deacon"));
    check(matter("esc-1", "mayor"), Some("deacon"));
    check(matter("esc-1", "deacon/dogs/rex"), Some("deacon"));
    check(matter("esc-1", "deacon"), Some("boot"));
    check(matter("esc-1", "boot"), None);
    check(matter("esc-1", ""), Some("deacon"));
    let of_item: fn(&mut Matter) = |it| {
        it.item = Some("lb-1".to_owned());
        it.rig = Some("lab".to_owned());
    };
    check(with("", of_item), Some("lab/witness"));
    check(
        with("lab/polecats/Toast", |it| it.source = "merge".to_owned()),
        Some("lab/refinery"),
    );
    check(
        with("lab/polecats/Toast", |it| it.kind = MatterKind::Merge),
        Some("lab/refinery"),
    );
    let of_queue: fn(&mut Matter) = |it| {
        it.key = Some("patrol:old-merge:lab".to_owned());
        it.rig = Some("lab".to_owned());
    };
    check(with("", of_queue), Some("lab/refinery"));
    // Money, and agents that cannot be started, are for people.
    for source in ["budget", SOURCE] {
        let mut matter = matter("esc-1", "lab/polecats/Toast");
        matter.source = source.to_owned();
        check(matter, None);
    }
    // A request of a person or of a role agent is not sent back to role agents of the town.
    check(with("", |it| it.raised_by = "ann".to_owned()), None);
    check(with("deacon", |it| it.raised_by = "boot".to_owned()), None);
    check(
        with("lab/polecats/Toast", |it| {
            it.raised_by = "lab/witness".to_owned();
        }),
        None,
    );
    check(
        with("lab/polecats/Toast", |it| {
            it.raised_by = "lab/polecats/Toast".to_owned();
        }),
        Some("lab/witness"),
    );
}

#[test]
fn every_role_started_on_demand_has_a_row_and_no_other() {
    for role in Role::all() {
        let on_demand = role.resolve(&[]).unwrap().value.start.on_demand;
        assert_eq!(row_of(role).is_some(), on_demand, "{role}");
    }
}

#[test]
fn nothing_to_decide_gives_no_digest() {
    let mut memory = DigestMemory::default();
    assert_eq!(plan(&[], absent, &mut memory, NOW), []);
    assert_eq!(memory, DigestMemory::default());
}

#[test]
fn matter_is_delivered_once_and_again_when_it_is_raised_again() {
    let mut memory = DigestMemory::default();
    let mut matters = vec![matter("esc-1", "lab/polecats/Toast")];
    let first = plan(&matters, absent, &mut memory, NOW);
    assert_eq!(ids(&first), [("lab/witness", vec!["esc-1"])]);
    memory.delivered(&first[0], Role::Witness, NOW);
    for later in [1, 400, 100_000] {
        assert_eq!(plan(&matters, running, &mut memory, NOW + later), []);
    }
    matters[0].revision = 2;
    let again = plan(&matters, absent, &mut memory, NOW + 200_000);
    assert_eq!(again[0].id, "dg-2");
    assert!(
        again[0].text.contains("raised 2 times"),
        "{}",
        again[0].text
    );
}

#[test]
fn digests_of_an_agent_are_spaced_and_collect_what_came_meanwhile() {
    let mut memory = DigestMemory::default();
    let mut matters = vec![matter("esc-1", "lab/polecats/Toast")];
    let first = plan(&matters, absent, &mut memory, NOW);
    memory.delivered(&first[0], Role::Witness, NOW);
    matters.push(matter("esc-2", "lab/polecats/Toast"));
    matters.push(matter("esc-3", "lab/polecats/Salt"));
    matters.push(matter("esc-4", "mayor"));
    // Another agent does not wait for the first.
    let others = plan(&matters, running, &mut memory, NOW + 10);
    assert_eq!(ids(&others), [("deacon", vec!["esc-4"])]);
    memory.delivered(&others[0], Role::Deacon, NOW + 10);
    assert_eq!(plan(&matters, running, &mut memory, NOW + 299), []);
    let later = plan(&matters, running, &mut memory, NOW + 300);
    assert_eq!(ids(&later), [("lab/witness", vec!["esc-2", "esc-3"])]);
}

#[test]
fn interrupted_delivery_is_repeated_with_its_id_unless_its_matters_are_settled() {
    let mut memory = DigestMemory::default();
    let matters = [matter("esc-1", "lab/polecats/Toast")];
    let first = plan(&matters, absent, &mut memory, NOW);
    // The process was killed: a later one reads the memory.
    let text = serde_json::to_string(&memory).unwrap();
    let mut memory: DigestMemory = serde_json::from_str(&text).unwrap();
    assert_eq!(plan(&matters, running, &mut memory, NOW + 1), first);
    assert_eq!(plan(&[], running, &mut memory, NOW + 2), []);
    assert_eq!(
        memory.of("lab/witness"),
        None,
        "settled matters are forgotten"
    );
}

#[test]
fn low_severity_waits_until_the_agent_runs() {
    let mut memory = DigestMemory::default();
    let mut low = matter("esc-1", "lab/polecats/Toast");
    low.severity = Severity::Low;
    let matters = [low];
    assert_eq!(plan(&matters, absent, &mut memory, NOW), []);
    assert_eq!(plan(&matters, running, &mut memory, NOW).len(), 1);
}

#[test]
fn unavailable_agent_gets_nothing_and_misses_nothing() {
    let mut memory = DigestMemory::default();
    let matters = [matter("esc-1", "lab/polecats/Toast")];
    let unavailable = |_: &Identity| Readiness::Unavailable;
    assert_eq!(plan(&matters, unavailable, &mut memory, NOW), []);
    assert_eq!(plan(&matters, absent, &mut memory, NOW + 1).len(), 1);
}

#[test]
fn size_is_limited_and_the_rest_follows() {
    let mut memory = DigestMemory::default();
    let name = |n: usize| format!("esc-{n:03}");
    let mut matters: Vec<Matter> = (0..45)
        .map(|n| matter(&name(n), "lab/polecats/Toast"))
        .collect();
    matters[44].severity = Severity::Critical;
    let mut seen = 0;
    for round in 0..3 {
        let at = NOW + round * 300;
        let digests = plan(&matters, running, &mut memory, at);
        if round == 0 {
            assert!(
                digests[0].matters.contains_key("esc-044"),
                "the most severe first"
            );
            assert!(
                digests[0].text.contains("45 matters"),
                "{}",
                digests[0].text
            );
            assert!(
                digests[0].text.contains("and 25 more"),
                "{}",
                digests[0].text
            );
        }
        seen += digests[0].matters.len();
        memory.delivered(&digests[0], Role::Witness, at);
    }
    assert_eq!(seen, 45);
    assert_eq!(plan(&matters, running, &mut memory, NOW + 10_000), []);
}

#[test]
fn failed_deliveries_wait_longer_each_time() {
    let mut memory = DigestMemory::default();
    let matters = [matter("esc-1", "lab/polecats/Toast")];
    let mut at = NOW;
    let mut waits = Vec::new();
    for failures in 1..=8 {
        let digests = plan(&matters, absent, &mut memory, at);
        assert_eq!(digests[0].id, "dg-1");
        assert_eq!(memory.failed(&digests[0], at), failures);
        let begin = at;
        while plan(&matters, absent, &mut memory, at).is_empty() {
            at += 60;
        }
        waits.push((at - begin) / 60);
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
    // A clock that was set back.
    let mut before = memory.clone();
    let digest = plan(&matters, absent, &mut before, at)[0].clone();
    memory.failed(&digest, at);
    assert_eq!(plan(&matters, absent, &mut memory, at - 1_000_000), []);
    assert_eq!(
        plan(&matters, absent, &mut memory, at - 1_000_000 + 3600).len(),
        1
    );
}

#[test]
fn overview_shows_the_open_matters_of_one_agent() {
    let matters = [
        matter("esc-1", "lab/polecats/Toast"),
        matter("esc-2", "mayor"),
    ];
    let text = overview(&agent("lab/witness"), &matters).unwrap();
    assert!(text.contains("esc-1") && !text.contains("esc-2"), "{text}");
    assert_eq!(overview(&agent("lab/refinery"), &matters), None);
    assert_eq!(overview(&agent("lab/crew/max"), &matters), None);
}
