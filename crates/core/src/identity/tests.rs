use super::*;

fn registry() -> Registry {
    Registry::of([("gastown", "gt"), ("beads", "bd"), ("web", "gt-web")])
}

/// Every row of the naming tables, in both directions.
#[test]
fn names_and_addresses_both_ways() {
    let registry = registry();
    let check = |identity: Identity, container: &str, address: &str| {
        assert_eq!(
            identity.container_name(&registry).as_deref(),
            Some(container)
        );
        assert_eq!(identity.address(), address);
        assert_eq!(
            Identity::from_container(container, &registry),
            Some(identity.clone())
        );
        assert_eq!(
            Identity::from_address(address, &registry),
            Some(identity.clone())
        );
        let config = identity.role().resolve(&[]).unwrap().value;
        assert_eq!(
            identity
                .container_by(&config.session.pattern, &registry)
                .as_deref(),
            Some(container),
            "the pattern in the role's file agrees with the naming function"
        );
        if identity.role().scope() != RoleScope::Town {
            identity.check_new(&registry).unwrap();
        }
    };
    check(Identity::town(Role::Mayor), "hq-mayor", "mayor");
    check(Identity::town(Role::Deacon), "hq-deacon", "deacon");
    check(Identity::town(Role::Boot), "hq-boot", "boot");
    check(Identity::town(Role::Overseer), "hq-overseer", "overseer");
    check(Identity::dog("rex"), "hq-dog-rex", "deacon/dogs/rex");
    check(
        Identity::of_rig(Role::Witness, "gastown"),
        "gt-witness",
        "gastown/witness",
    );
    check(
        Identity::of_rig(Role::Refinery, "gastown"),
        "gt-refinery",
        "gastown/refinery",
    );
    check(
        Identity::crew("gastown", "max"),
        "gt-crew-max",
        "gastown/crew/max",
    );
    check(
        Identity::polecat("gastown", "furiosa"),
        "gt-furiosa",
        "gastown/polecats/furiosa",
    );
    check(
        Identity::polecat("gastown", "Toast"),
        "gt-Toast",
        "gastown/polecats/Toast",
    );
    check(
        Identity::of_rig(Role::Witness, "beads"),
        "bd-witness",
        "beads/witness",
    );
    check(
        Identity::crew("web", "max"),
        "gt-web-crew-max",
        "web/crew/max",
    );
    check(Identity::polecat("web", "x"), "gt-web-x", "web/polecats/x");
    check(
        Identity::agent("my-cool-agent"),
        "agent_my-cool-agent",
        "agent/my-cool-agent",
    );
    check(Identity::agent("a_b"), "agent_a_b", "agent/a_b");
    check(
        Identity::task("gt-abc12", &registry),
        "gt-abc12-az",
        "task/gt-abc12",
    );
}

#[test]
fn other_spellings_of_an_address_are_understood() {
    let registry = registry();
    let check = |text: &str, address: &str| {
        let identity = Identity::from_address(text, &registry);
        assert_eq!(
            identity.map(|i| i.address()).as_deref(),
            Some(address),
            "{text}"
        );
    };
    check("mayor/", "mayor");
    check("hq/mayor", "mayor");
    check("deacon/boot", "boot");
    check("deacon/dogs/boot", "boot");
    check("gastown/polecat/Toast", "gastown/polecats/Toast");
    for text in [
        "",
        "/",
        "crew",
        "gastown",
        "gastown/max",
        "a/b/c/d",
        "gastown//max",
    ] {
        assert_eq!(Identity::from_address(text, &registry), None, "{text:?}");
    }
}

#[test]
fn a_dotted_id_is_mapped_for_tmux() {
    let registry = registry();
    let child = Identity::task("gt-abc12.1", &registry);
    assert_eq!(
        child.container_name(&registry).as_deref(),
        Some("gt-abc12_1-az")
    );
    assert_eq!(child.rig(), Some("gastown"));
    child.check_new(&registry).unwrap();
}

#[test]
fn other_session_names_are_no_agents() {
    let registry = registry();
    for name in [
        "main", "0", "hq-", "hq-foo", "hq-dog-", "gt", "gt-", "gt-crew-", "agent_", "zz-max",
        "foo-az", "gt.max", "work:1", "",
    ] {
        assert_eq!(Identity::from_container(name, &registry), None, "{name}");
    }
}

#[test]
fn names_that_two_readings_could_claim_are_refused() {
    let registry = registry();
    for identity in [
        Identity::polecat("gastown", "witness"),
        Identity::polecat("gastown", "crew-max"),
        Identity::polecat("gastown", "web-x"),
        Identity::polecat("gastown", "fix-az"),
        Identity::crew("gastown", "x-az"),
        Identity::crew("nowhere", "max"),
        Identity::crew("gastown", "#(touch x)"),
        Identity::dog("boot"),
    ] {
        assert!(identity.check_new(&registry).is_err(), "{identity}");
    }
    Identity::polecat("gastown", "az")
        .check_new(&registry)
        .unwrap();
    assert_eq!(
        Identity::from_container("gt-az", &registry),
        Some(Identity::polecat("gastown", "az"))
    );
}
