use super::*;

#[test]
fn the_template_reads_back_whatever_the_name_holds() {
    let dir = tempfile::tempdir().unwrap();
    let text = TownSettings::template("a \"b\"\n", "gt-test", "demo");
    std::fs::write(dir.path().join(FILE), text).unwrap();
    let settings = TownSettings::read(dir.path()).unwrap();
    assert_eq!(settings.name, "a \"b\"\n");
    assert_eq!(settings.tmux.socket, "gt-test");
    assert_eq!(settings.harness.as_deref(), Some("demo"));
}

#[test]
fn times_of_events_are_read_as_people_write_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let text = "[krc]\nprune_interval = '10m'\nttl = { 'session_*' = '5d' }\n";
    std::fs::write(&path, text).unwrap();
    let krc = TownSettings::read(dir.path()).unwrap().krc;
    assert_eq!((krc.prune_interval, krc.minimum_kept), (Length(600), 100));
    assert_eq!(krc.policy().ttl_of("session_end"), 432_000);
    std::fs::write(&path, "[krc.ttl]\nnudge = 'long'\n").unwrap();
    let problem = TownSettings::read(dir.path()).unwrap_err();
    assert!(problem.message().contains("town.toml:2:9"), "{problem}");
}

#[test]
fn notifications_are_off_by_default() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        TownSettings::read(dir.path()).map(|settings| settings.notify)
    };
    assert!(!read("").unwrap().is_on());
    let text = "[notify]\nbell = false\non = ['died']\nquiet_hours = '22:00-07:00'\n";
    let notify = read(text).unwrap();
    assert!(!notify.is_on() && notify.on == [NoticeKind::Died]);
    assert!(notify.quiet_hours.unwrap().contain(0));
    assert!(read("[notify]\ncommand = 'true'\n").unwrap().is_on());
    let says = |text: &str, place: &str, why: &str| {
        let problem = read(text).unwrap_err();
        let words = [problem.message(), &problem.causes().join(" ")].join(" ");
        assert!(words.contains(place) && words.contains(why), "{words}");
    };
    says("[notify]\non = ['dead']\n", "town.toml:2:7", "waiting");
    says(
        "[notify]\nquiet_hours = '22-7'\n",
        "town.toml:2:15",
        "22:00-07:00",
    );
}

#[test]
fn rig_settings_override_the_towns_for_merging() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    std::fs::write(&path, "").unwrap();
    let defaults = TownSettings::read(dir.path())
        .unwrap()
        .merge_defaults_of("a");
    assert_eq!(defaults, MergeDefaults::default());
    let text = "[merge]\nautomatic = false\n[rigs.a.merge]\nautomatic = true\n\
                    confirm = false\n[rigs.b.merge]\nrepair_agents = false\n";
    std::fs::write(&path, text).unwrap();
    let settings = TownSettings::read(dir.path()).unwrap();
    let of = |rig: &str| {
        let found = settings.merge_defaults_of(rig);
        (found.automatic, found.repair_agents, found.confirm)
    };
    assert_eq!(of("a"), (true, true, false));
    assert_eq!(of("b"), (false, false, true));
    assert_eq!(of("c"), (false, true, true));
}

#[test]
fn rig_may_switch_accounts_where_the_town_waits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        TownSettings::read(dir.path())
    };
    let settings = read("[rigs.a]\nat_limit = 'switch'\n").unwrap();
    assert_eq!(settings.at_limit(Some("a")), AtLimit::Switch);
    assert_eq!(settings.at_limit(Some("b")), AtLimit::Wait);
    assert_eq!(settings.at_limit(None), AtLimit::Wait);
    assert!(read("[limits]\nat_limit = 'buy'\n").is_err());
}

#[test]
fn a_broken_file_says_where() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE), "name = 'x'\n[tmux]\nsocket = 7\n").unwrap();
    let problem = TownSettings::read(dir.path()).unwrap_err();
    assert!(problem.message().contains("town.toml:3:10"), "{problem}");
}
