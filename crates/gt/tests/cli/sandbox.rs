//! The default sandbox of a new town, and the work of an agent inside.

use crate::env::{TIMEOUT, TestEnv};
use crate::external_programs::are_there;
use gt_tmux::testing::wait_until_or;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Makes a town as a new user does, with the crew `max` and `joe`.
fn new_town(env: &TestEnv) {
    env.gt(&["init", "--harness", "demo"]).ok();
    env.add_rig("gastown", "gt");
    env.gt(&["crew", "add", "max", "joe"]).ok();
}

fn level(env: &TestEnv, name: &str) -> Value {
    env.agent(&format!("gastown/crew/{name}"))["sandbox"].clone()
}

/// Puts a `bwrap` on the PATH that logs its last argument, and then runs this line.
fn wrap_bubblewrap(env: &mut TestEnv, line: &str) -> (PathBuf, PathBuf) {
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|dir| dir.join("bwrap"));
    let real = real.into_iter().find(|file| file.is_file()).unwrap();
    let (bin, log) = (env.path("bin"), env.path("calls"));
    fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\necho \"$last\" >>'{}'\n{}\n",
        log.display(),
        line.replace("REAL", &real.display().to_string())
    );
    let wrapper = bin.join("bwrap");
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    env.set("PATH", &format!("{}:{path}", bin.display()));
    (wrapper, log)
}

/// Returns the number of probes: they run the shell line `:`.
fn probes(log: &PathBuf) -> usize {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|line| *line == ":").count()
}

#[test]
fn new_town_sandboxes_agents_that_bypass_permissions() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let env = TestEnv::empty();
    new_town(&env);
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(level(&env, "max"), "workspace");
    env.gt(&["crew", "start", "joe", "--ask-permissions"]).ok();
    assert_eq!(level(&env, "joe"), "none");
    let shown = env.gt(&["agents"]).ok().stdout;
    assert!(!shown.contains('!'), "{shown}");
    env.gt(&["mayor", "start"]).ok();
    assert_eq!(env.agent("mayor")["sandbox"], "workspace");
    env.gt(&["nudge", "mayor", "[[tool=gt agents]]"]).ok();
    env.wait_screen("mayor", "gastown/crew/joe");
}

#[test]
fn town_without_the_setting_has_no_sandbox_and_marks_its_agents() {
    let env = TestEnv::with_crew(&["max"]);
    let text = fs::read_to_string(env.town().join("town.toml")).unwrap();
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("sandbox.default"))
        .collect();
    assert_ne!(kept.len(), text.lines().count(), "{text}");
    fs::write(env.town().join("town.toml"), kept.join("\n")).unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(level(&env, "max"), "none");
    let shown = env.gt(&["agents"]).ok().stdout;
    assert!(shown.contains(" !  "), "{shown}");
    let note = "! no permission prompts and no sandbox: `gt doctor`\n";
    assert!(shown.ends_with(note), "{shown}");
    let doctor = env.gt(&["doctor"]).stdout;
    assert!(doctor.contains("sandbox.default is none"), "{doctor}");
}

#[test]
fn level_of_an_agent_stays_at_respawn_and_handoff() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["config", "set", "sandbox.default", "auto"]).ok();
    let before = env.agent("gastown/crew/max")["session"].clone();
    env.gt(&["handoff", "gastown/crew/max", "--force"]).ok();
    let is_next = || {
        let agent = env.agent("gastown/crew/max");
        (agent["session"] != before && agent["state"] == "idle").then_some(())
    };
    let screen = || env.gt(&["peek", "gastown/max"]).stdout;
    wait_until_or("the next session", TIMEOUT, is_next, screen);
    assert_eq!(level(&env, "max"), "none");
    env.gt(&["restart", "gastown/max"]).ok();
    assert_eq!(level(&env, "max"), "workspace");
    env.gt(&["config", "set", "sandbox.default", "none"]).ok();
    let pid = env.pid("gastown/crew/max");
    crate::env::signal(pid, rustix::process::Signal::KILL);
    let is_new = || {
        let agent = env.agent("gastown/crew/max");
        (agent["pid"].is_u64() && agent["pid"] != pid).then_some(())
    };
    wait_until_or("the respawn", TIMEOUT, is_new, screen);
    assert_eq!(level(&env, "max"), "workspace");
}

#[test]
fn working_bubblewrap_is_probed_once_until_it_changes() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let mut env = TestEnv::empty();
    let (wrapper, log) = wrap_bubblewrap(&mut env, "exec REAL \"$@\"");
    new_town(&env);
    assert_eq!(probes(&log), 1, "by gt init");
    env.gt(&["crew", "start", "max", "joe"]).ok();
    assert_eq!(level(&env, "joe"), "workspace");
    assert_eq!(probes(&log), 1);
    let text = fs::read_to_string(&wrapper).unwrap();
    fs::write(&wrapper, format!("{text}# changed\n")).unwrap();
    env.gt(&["crew", "restart", "max"]).ok();
    assert_eq!(probes(&log), 2);
}

#[test]
fn broken_bubblewrap_leaves_the_default_open_and_refuses_a_demanded_level() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let mut env = TestEnv::empty();
    let (_, log) = wrap_bubblewrap(&mut env, "echo 'No permissions' >&2; exit 1");
    let init = env.gt(&["init", "--harness", "demo"]).ok();
    let warning = "agents run without permission prompts and without a sandbox";
    assert!(init.stderr.contains(warning), "{init:?}");
    env.add_rig("gastown", "gt");
    env.gt(&["crew", "add", "max", "joe"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(level(&env, "max"), "none");
    assert_eq!(probes(&log), 1, "the failure is kept for a while");
    let demanded = env.gt(&["crew", "start", "joe", "--sandbox", "workspace"]);
    let demanded = demanded.fails(5);
    assert!(demanded.stderr.contains("No permissions"), "{demanded:?}");
    assert_eq!(probes(&log), 2, "a demanded level is probed again");
    let doctor = env.gt(&["doctor"]).stdout;
    assert!(doctor.contains("No permissions"), "{doctor}");
}

#[test]
fn folder_that_contains_the_home_folder_is_refused() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let env = TestEnv::empty();
    new_town(&env);
    let home = env.home().to_str().unwrap().to_owned();
    env.gt(&["agent", "new", "a"]).ok();
    let start = ["agent", "start", "a", "--work-dir", &home];
    let demanded = env.gt(&[&start[..], &["--sandbox", "workspace"]].concat());
    assert_ne!(demanded.code, 0);
    assert!(
        demanded.stderr.contains("contains your home folder"),
        "{demanded:?}"
    );
    env.gt(&start).ok();
    assert_eq!(env.agent("agent/a")["sandbox"], "none");
}

#[test]
fn stash_and_caches_work_inside_and_are_private() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let env = TestEnv::with_crew(&["max", "joe"]);
    let folder = env.town().join("gastown/crew/max");
    let line = "{ echo changed >> README.md && git stash && git stash list && \
                test \"$(cat README.md)\" = hello && git stash pop && \
                ! git update-ref refs/gt/merged/main HEAD && \
                mkdir -p \"$CARGO_HOME/registry\" && echo x > \"$CARGO_HOME/registry/x\" && \
                ulimit -c && echo \"$CARGO_HOME\" && echo end; } > result 2>&1; sleep 1000";
    let start = [
        "crew",
        "start",
        "max",
        "--sandbox",
        "workspace",
        "--command",
    ];
    env.gt(&[&start[..], &[line]].concat()).ok();
    let read = || fs::read_to_string(folder.join("result")).unwrap_or_default();
    let is_over = || read().ends_with("end\n").then_some(());
    wait_until_or("the work is done", TIMEOUT, is_over, read);
    let text = read();
    assert!(text.contains("stash@{0}"), "{text}");
    let cargo = env.town().join(".runtime/caches/rig-gastown/cargo");
    let cargo = cargo.canonicalize().unwrap();
    let expected = format!("\n0\n{}\nend\n", cargo.display());
    assert!(text.ends_with(&expected), "{text}");
    assert!(cargo.join("registry/x").exists());
    let repository = env.town().join("gastown/.repo.git");
    let refs = env.git(&repository, &["for-each-ref", "refs/stash", "refs/gt"]);
    assert!(!refs.contains("stash"), "{refs}");
}

#[test]
fn removed_worktree_of_a_sandboxed_worker_is_made_again_on_its_branch() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let env = TestEnv::with_crew(&["max"]);
    let start = ["start", "gastown/crew/max", "--sandbox", "workspace"];
    env.gt(&start).ok();
    env.gt(&["stop", "max"]).ok();
    let folder = env.town().join("gastown/crew/max");
    fs::remove_dir_all(&folder).unwrap();
    env.gt(&[&start[..], &["--create"]].concat()).ok();
    let branch = env.git(&folder, &["branch", "--show-current"]);
    assert_eq!(branch.trim(), "crew/max/main");
}

#[test]
fn workers_that_start_at_once_in_a_sandbox_all_get_their_branches() {
    if !are_there("a sandbox", &["bwrap"]) {
        return;
    }
    let names = ["amy", "bob", "cat", "dan", "eve", "max"];
    let env = TestEnv::with_crew(&names);
    let start = ["crew", "start", "--all", "--no-prompt"];
    env.gt(&[&start[..], &["--sandbox", "workspace"]].concat())
        .ok();
    for name in names {
        let folder = env.town().join("gastown/crew").join(name);
        let branch = env.git(&folder, &["branch", "--show-current"]);
        assert_eq!(branch.trim(), format!("crew/{name}/main"));
    }
}
