use super::*;

fn town() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("town");
    crate::Town::init(&root, None, "/tmp/none", "demo").unwrap();
    (dir, root)
}

fn key(target: &ConfigTarget, key: &str) -> SettingKey {
    SettingKey::find(target.scope(), key).unwrap()
}

#[test]
fn a_bad_value_leaves_the_file_as_it_is() {
    let (_dir, root) = town();
    let around = Surroundings::default();
    let file = ConfigFile::of(&root, ConfigTarget::Town, &around).unwrap();
    let before = fs::read_to_string(file.path()).unwrap();
    let check = |name: &str, words: &[&str], why: &str| {
        let problem = file
            .set(&key(&ConfigTarget::Town, name), words)
            .unwrap_err();
        let shown = format!("{problem} {:?} {:?}", problem.causes(), problem.hints());
        assert!(shown.contains(why), "{shown}");
        assert!(shown.contains(name) || name == "harness", "{shown}");
        assert_eq!(fs::read_to_string(file.path()).unwrap(), before);
    };
    check("limits.parallel_starts", &["100"], "from 1 to 64");
    check("limits.at_limit", &["buy"], "wait, switch");
    check("notify.quiet_hours", &["late"], "22:00-07:00");
    check("krc.ttl.nudge", &["long"], "30s, 90m");
    check("harness", &["cluade"], "did you mean claude?");
}

#[test]
fn concurrent_writers_lose_nothing() {
    let (_dir, root) = town();
    let names: Vec<String> = (0..12).map(|number| format!("env_{number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let root = &root;
            scope.spawn(move || {
                let around = Surroundings::default();
                let file = ConfigFile::of(root, ConfigTarget::Town, &around).unwrap();
                let key = key(&ConfigTarget::Town, &format!("krc.ttl.{name}"));
                file.set(&key, &["5d"]).unwrap();
            });
        }
    });
    let around = Surroundings::default();
    let file = ConfigFile::of(&root, ConfigTarget::Town, &around).unwrap();
    let settings = file.settings().unwrap();
    let ttl = settings.iter().find(|row| row.setting.key == "krc.ttl");
    let ttl = ttl.unwrap().value.as_ref().unwrap().as_table().unwrap();
    assert_eq!(ttl.len(), names.len(), "{ttl:?}");
}

#[test]
fn permissions_and_links_stay() {
    let (dir, root) = town();
    let around = Surroundings::default();
    let real = dir.path().join("real.toml");
    let link = root.join(settings::FILE);
    fs::rename(&link, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let file = ConfigFile::of(&root, ConfigTarget::Town, &around).unwrap();
    file.set(&key(&ConfigTarget::Town, "save.keep"), &["3"])
        .unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(TownSettings::read(&root).unwrap().save.keep, 3);
}

#[test]
fn an_edit_is_refused_if_the_file_has_changed_meanwhile() {
    let (_dir, root) = town();
    let around = Surroundings::default();
    let file = ConfigFile::of(&root, ConfigTarget::Town, &around).unwrap();
    let edit = file.begin_edit().unwrap();
    assert!(!file.finish_edit(&edit).unwrap());
    assert!(!edit.path().exists());
    let edit = file.begin_edit().unwrap();
    file.set(&key(&ConfigTarget::Town, "save.keep"), &["3"])
        .unwrap();
    fs::write(edit.path(), "name = \n").unwrap();
    let error = file.finish_edit(&edit).unwrap_err();
    assert!(matches!(error, EditError::Invalid(_)), "{error:?}");
    fs::write(edit.path(), "name = 'mine'\n").unwrap();
    let error = file.finish_edit(&edit).unwrap_err();
    assert!(matches!(error, EditError::Other(_)), "{error:?}");
    assert!(error.to_string().contains("while you edited it"), "{error}");
    assert!(edit.path().exists());
    assert_eq!(TownSettings::read(&root).unwrap().save.keep, 3);
}
