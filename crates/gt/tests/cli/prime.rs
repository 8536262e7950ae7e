//! `gt prime`: the text that an agent gets at the start of a session.

mod previous_session;
mod roles;

use crate::env::{Answer, TIMEOUT, TestEnv, run, run_with_stdin, signal};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

pub(crate) const MAX: &str = "gastown/crew/max";

/// Runs `gt` as the agent would in its container.
pub(crate) fn as_agent(env: &TestEnv, args: &[&str], report: Option<&Value>) -> Answer {
    let session = list_sessions(env, &["--agent", MAX, "--limit", "1"]);
    let mut command = env.gt_command(args);
    command.env("GT_ROLE", MAX).env("GT_ROOT", env.town());
    if let Some(session) = session
        .first()
        .filter(|session| session["status"] == "running")
    {
        command
            .env("GT_SESSION_UUID", session["id"].as_str().unwrap())
            .env("GT_SESSION", session["tmux_session"].as_str().unwrap());
    }
    let Some(report) = report else {
        return run(&mut command);
    };
    run_with_stdin(&mut command, &report.to_string())
}

pub(crate) fn state(env: &TestEnv) -> String {
    let said = as_agent(env, &["prime", "--state", "--json"], None)
        .ok()
        .json();
    assert_eq!(said["agent"], MAX);
    assert_eq!(said["role"], "crew");
    said["state"].as_str().unwrap().to_owned()
}

/// Waits until the hooks of the first turn have reported.
pub(crate) fn await_rest(env: &TestEnv) {
    wait_until("its first turn is over", TIMEOUT, || {
        let reason = env.format("gt-crew-max", "#{@gt_state_reason}");
        (reason == gt_core::state::Reason::Finished.as_str()).then_some(())
    });
}

pub(crate) fn give_work(env: &TestEnv, title: &str) -> String {
    let item = env.json(&[
        "work",
        "create",
        title,
        "-d",
        "All of it, and well.",
        "--rig",
        "gastown",
    ]);
    let id = item["id"].as_str().unwrap().to_owned();
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    id
}

#[test]
fn an_agent_begins_with_its_work() {
    let env = TestEnv::with_crew(&["max"]);
    assert_eq!(state(&env), "normal");
    let idle = as_agent(&env, &["prime"], None).ok().stdout;
    assert!(idle.contains("Nothing is on your hook"), "{idle}");
    let id = give_work(&env, "Mend the roof");
    assert_eq!(state(&env), "autonomous");
    env.gt(&["start", MAX]).ok();
    // The agent's own hook delivered the text before the first prompt.
    env.wait_screen(MAX, "Begin now");
    let screen = env.gt(&["peek", MAX]).ok().stdout;
    for words in [
        "# You are gastown/crew/max",
        &format!("## Your work: {id} Mend the roof"),
        "All of it, and well.",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    // In the agent's folder no `--agent` is needed.
    let folder = env.town().join("gastown/crew/max");
    let there = env.gt_in(&folder, &["prime", "--state"]).ok().stdout;
    assert_eq!(there.trim(), "autonomous");
    let nowhere = env.gt(&["prime", "--town", env.town().to_str().unwrap()]);
    assert!(nowhere.fails(2).stderr.contains("--agent"));
}

#[test]
fn session_after_a_crash_is_told_the_work_in_flight() {
    let env = TestEnv::with_crew(&["max"]);
    let id = give_work(&env, "Mend the roof");
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    as_agent(
        &env,
        &["checkpoint", "write", "--notes", "half the tiles are on"],
        None,
    )
    .ok();
    assert_eq!(state(&env), "autonomous", "its own notes are no crash");
    let asked = env.json(&["prime", "--state", "--agent", MAX]);
    assert_eq!(asked["state"], "autonomous", "for any caller: {asked}");
    signal(env.pid(MAX), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent(MAX)["state"] == "crashed").then_some(())
    });
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    assert_eq!(state(&env), "crash-recovery");
    let told = as_agent(&env, &["prime"], None).ok().stdout;
    for words in [
        "Your previous session ended by a crash",
        &format!("work {id}"),
        "It noted: half the tiles are on",
        "Begin now",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // Without a checkpoint the crash is still reported.
    as_agent(&env, &["checkpoint", "clear"], None).ok();
    assert_eq!(state(&env), "crash-recovery");
    // After a stop without notes there is nothing to recover.
    env.gt(&["stop", MAX, "--force"]).ok();
    as_agent(&env, &["checkpoint", "clear"], None).ok();
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    assert_eq!(state(&env), "autonomous");
}

#[test]
fn hook_report_sets_the_conversation_and_the_amount_of_text() {
    let env = TestEnv::with_crew(&["max"]);
    give_work(&env, "Mend the roof");
    env.gt(&["start", MAX]).ok();
    await_rest(&env);
    let report = |source: &str, id: &str| json!({"session_id": id, "source": source, "hook_event_name": "SessionStart"});
    let other = "11111111-2222-4333-8444-555555555555";
    // Run by the agent's own program, which holds the claim.
    let told = as_agent(&env, &["prime", "--hook"], Some(&report("clear", other)))
        .ok()
        .stdout;
    assert!(told.contains("## Your role"), "{told}");
    assert_eq!(
        list_sessions(&env, &["--limit", "1"])[0]["harness_session_id"],
        other
    );
    for source in ["compact", "resume"] {
        let told = as_agent(&env, &["prime", "--hook"], Some(&report(source, other)))
            .ok()
            .stdout;
        assert!(told.contains("Continue your previous task"), "{told}");
        assert!(told.contains("Mend the roof"), "{told}");
        assert!(!told.contains("## Your role"), "{told}");
    }
    // Invalid reports do not make the hook fail.
    for nonsense in [json!("x"), json!({"source": 7})] {
        as_agent(&env, &["prime", "--hook"], Some(&nonsense)).ok();
    }
}

#[test]
fn program_without_a_start_hook_is_primed_at_its_first_prompt() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    let prompt = |conversation: &str| {
        let report = json!({
            "hook_event_name": "BeforeAgent",
            "session_id": conversation,
            "prompt": "some words",
        });
        as_agent(&env, &["prime", "--hook", "--json"], Some(&report)).ok()
    };
    let words = |answer: &Answer| {
        let said = answer.json();
        let words = said["hookSpecificOutput"]["additionalContext"].as_str();
        words.unwrap().to_owned()
    };
    let first = words(&prompt("one"));
    assert!(first.starts_with("# You are gastown/crew/max"), "{first}");
    assert_eq!(prompt("one").stdout, "");
    // The hook also records the receipt of the prompt.
    let receipt = gt_core::nudge::fingerprint("some words");
    assert_eq!(env.format("gt-crew-max", "#{@gt_last_prompt}"), receipt);
    assert!(words(&prompt("two")).starts_with("# You are"));
    // After a compaction the agent is reminded once.
    as_agent(&env, &["handoff", "--auto", "--reason", "compaction"], None).ok();
    let reminded = words(&prompt("two"));
    assert!(
        reminded.contains("Continue your previous task"),
        "{reminded}"
    );
    assert_eq!(prompt("two").stdout, "");
}

#[test]
fn second_process_of_an_agent_is_refused() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    env.wait_screen(MAX, "# You are");
    let hook = |env: &TestEnv| {
        let mut command = env.gt_command(&["prime", "--hook"]);
        run(command.env("GT_ROLE", MAX).env("GT_ROOT", env.town()))
            .ok()
            .stdout
    };
    // The test is not the agent: it is another program that claims to be max.
    let told = hook(&env);
    assert!(
        told.starts_with("STOP. You are not gastown/crew/max"),
        "{told}"
    );
    assert!(!told.contains("Your role"), "{told}");
    // A child of the agent may run the hook, too, without taking the claim.
    let told = as_agent(&env, &["prime", "--hook"], Some(&json!({})))
        .ok()
        .stdout;
    assert!(told.starts_with("# You are gastown/crew/max"), "{told}");
    assert!(hook(&env).starts_with("STOP."));
    env.gt(&["stop", MAX, "--force"]).ok();
    let told = hook(&env);
    assert!(told.starts_with("# You are gastown/crew/max"), "{told}");
    // A new start as max takes the claim from any other program.
    env.gt(&["start", MAX]).ok();
    env.wait_screen(MAX, "# You are gastown/crew/max");
    assert!(hook(&env).starts_with("STOP."));
}

#[test]
fn hook_never_fails_and_a_single_section_is_json() {
    let env = TestEnv::with_crew(&["max"]);
    let outside = |role: Option<&str>| {
        let mut command = env.gt_command(&["prime", "--hook", "--town", "/nowhere"]);
        command.envs(role.map(|role| ("GT_ROLE", role)));
        run(&mut command).ok()
    };
    assert_eq!(outside(None).stdout, "", "another user's program");
    let told = outside(Some(MAX)).stdout;
    assert!(
        told.contains("Do not take this for having no work"),
        "{told}"
    );
    let told = |role: &str, code: i32, words: &str| {
        let with = |args: &[&str]| {
            let folder = env.town().join("gastown/crew/max");
            let mut command = env.gt_command(args);
            run(command.env("GT_ROLE", role).current_dir(folder))
        };
        let failed = with(&["prime"]).fails(code);
        assert!(failed.stderr.contains(words), "{}", failed.stderr);
        let told = with(&["prime", "--hook"]).ok().stdout;
        assert!(
            told.contains("Do not take this for having no work"),
            "{told}"
        );
    };
    told("gastown/crew/nobody", 3, "there is no agent");
    told("junk", 2, "GT_ROLE says \"junk\"");
    // The hook succeeds with an unwritable stdout and an invalid report.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = env.gt_command(&["prime", "--hook"]);
    command.env("GT_ROLE", MAX).stdout(full);
    let text = env.path("nonsense");
    fs::write(&text, "{").unwrap();
    command.stdin(fs::File::open(text).unwrap());
    assert!(command.status().unwrap().success());
    let log = fs::read_to_string(env.town().join(".runtime/gt.log")).unwrap();
    for words in [
        "prime: the hook's report is not JSON",
        "prime: cannot write",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    let part = env.json(&["prime", "--agent", MAX, "--section", "role"]);
    assert_eq!(part["name"], "role");
    assert!(
        part["text"].as_str().unwrap().contains("crew worker"),
        "{part}"
    );
}

#[test]
fn unknown_caller_is_not_shown_as_having_no_work() {
    let env = TestEnv::with_crew(&["max"]);
    for words in [
        &["hook"][..],
        &["unhook"],
        &["done"],
        &["prime", "--state"],
        &["checkpoint", "read"],
        &["mol", "status"],
        &["mail", "inbox"],
    ] {
        let whose = |agent| env.gt(&[words, &["--agent", agent]].concat());
        let error = whose("gastown/crew/gone").fails(3).stderr;
        assert!(
            error.contains("no agent gastown/crew/gone"),
            "{words:?}: {error}"
        );
        whose(MAX).ok();
    }
    // A missing worktree does not hide the item on the hook.
    let id = give_work(&env, "Mend the roof");
    fs::remove_dir_all(env.town().join("gastown/crew/max")).unwrap();
    assert_eq!(env.json(&["hook", "--agent", MAX])["id"], id);
}

#[test]
fn town_and_rig_texts_replace_the_text_of_a_role() {
    let env = TestEnv::with_crew(&["max"]);
    let write = |path: &str, text: &str| {
        let path = env.town().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("templates/crew.md", "The town says {{name}}.");
    let told = as_agent(&env, &["prime"], None).ok().stdout;
    assert!(told.contains("The town says max."), "{told}");
    write(
        "gastown/templates/crew.md",
        "The rig says {{rig}}, {{unknown}}.",
    );
    let told = as_agent(&env, &["prime"], None).ok().stdout;
    assert!(
        told.contains("The rig says gastown, {{unknown}}."),
        "{told}"
    );
    let explained = as_agent(&env, &["prime", "--explain"], None).ok().stdout;
    assert!(
        explained.contains("gastown/templates/crew.md"),
        "{explained}"
    );
}

#[test]
fn broken_role_text_hides_no_work() {
    let env = TestEnv::with_crew(&["max"]);
    let id = give_work(&env, "Mend the roof");
    let file = |name: &str| env.town().join(name);
    for folder in ["templates", "gastown/templates/crew.md"] {
        fs::create_dir_all(file(folder)).unwrap();
    }
    fs::write(file("templates/crew.md"), b"\xff\xfe").unwrap();
    fs::write(file("roles/crew.toml"), "rubbish").unwrap();
    let told = as_agent(&env, &["prime"], None).ok().stdout;
    for words in [
        &id,
        "gastown/templates/crew.md",
        "gt/templates/crew.md",
        "roles/crew.toml",
        "tell the person who runs you",
        "## Your role: crew worker max",
        "gt/gastown/crew/max, on the branch crew/max",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn omitted_sections_are_named() {
    let env = TestEnv::with_crew(&["max"]);
    let long = "Every tile is different.\n".repeat(2_000);
    let item = env.json(&["work", "create", "Roof", "-d", &long, "--rig", "gastown"]);
    env.gt(&["hook", item["id"].as_str().unwrap(), "--agent", MAX])
        .ok();
    let told = as_agent(&env, &["prime", "--json"], None).ok().json();
    let text = told["text"].as_str().unwrap();
    assert!(text.chars().count() <= 9_500, "{}", text.chars().count());
    assert!(text.contains("of work (`gt hook`)"), "{text}");
    assert!(text.contains("Begin now"), "what must be there is there");
    assert!(
        told["cuts"][0]["characters"].as_u64().unwrap() > 40_000,
        "{told}"
    );
    let whole = as_agent(&env, &["prime", "--section", "work"], None)
        .ok()
        .stdout;
    assert!(whole.len() > 50_000);
    as_agent(&env, &["prime", "--section", "x"], None).fails(3);
}

#[test]
fn prime_reports_an_unreadable_store() {
    let env = TestEnv::with_crew(&["max"]);
    give_work(&env, "Mend the roof");
    fs::write(env.town().join(".work/items.db"), "rubbish").unwrap();
    for file in ["items.db-wal", "items.db-shm"] {
        let _ = fs::remove_file(env.town().join(".work").join(file));
    }
    assert_snapshot!(as_agent(&env, &["prime"], None).rendered(&env), @"
    exit code: 1
    --- stderr
    error: the work items cannot be read or written
    caused by: file is not a database
    caused by: Error code 26: file is not a database
    hint: `gt doctor --fix` restores the newest backup of .work/backups; without one, remove .work to begin without any work
    ");
    let told = as_agent(
        &env,
        &["prime", "--hook"],
        Some(&json!({"source": "startup"})),
    )
    .ok();
    assert!(
        told.stdout.contains("Do not take this for having no work"),
        "{}",
        told.stdout
    );
}

fn report(env: &TestEnv) -> PathBuf {
    let path = env.path("report.json");
    let report = json!({"session_id": "11111111-2222-4333-8444-555555555555", "source": "startup"});
    fs::write(&path, report.to_string()).unwrap();
    path
}

#[test]
fn session_that_died_during_a_compaction_gets_the_full_prime() {
    let env = TestEnv::with_crew(&["max"]);
    let id = env.create_item("Mend the roof");
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    env.gt(&["handoff", MAX, "--auto", "--reason", "compaction"])
        .ok();
    signal(env.pid(MAX), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent(MAX)["state"] == "crashed").then_some(())
    });
    env.gt(&["start", MAX]).ok();
    env.wait_screen(MAX, "What was in flight");
    let screen = env.gt(&["peek", MAX]).ok().stdout;
    assert!(screen.contains("## Your role"), "{screen}");
}

#[test]
fn refused_prime_changes_nothing() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    env.wait_screen(MAX, "# You are");
    let conversation = || list_sessions(&env, &["--agent", MAX])[0]["harness_session_id"].clone();
    let before = conversation();
    let mut command = env.gt_command(&["prime", "--hook"]);
    command
        .env("GT_ROLE", MAX)
        .env("GT_ROOT", env.town())
        .env("GT_SESSION", "gt-crew-max")
        .stdin(fs::File::open(report(&env)).unwrap());
    let told = run(&mut command).ok().stdout;
    assert!(told.starts_with("STOP"), "{told}");
    assert_eq!(conversation(), before);
}

#[test]
fn escape_sequences_from_outside_are_not_printed() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&[
        "work",
        "create",
        "Roof",
        "-d",
        "- a\x1b[2J\x07b",
        "--rig",
        "gastown",
    ]);
    env.gt(&["hook", item["id"].as_str().unwrap(), "--agent", MAX])
        .ok();
    env.gt(&["start", MAX]).ok();
    let message = "\x1b]0;x\x07 and more";
    for args in [
        &["prime", "--agent", MAX][..],
        &["prime", "--agent", MAX, "--section", "work"],
        &["handoff", MAX, "--force", "--dry-run", "-m", message],
    ] {
        let said = env.gt(args).ok().stdout;
        assert!(!said.contains(['\x1b', '\x07']), "{args:?}: {said:?}");
    }
}

#[test]
fn prime_prints_identity_and_work() {
    let env = TestEnv::with_crew(&["max"]);
    give_work(&env, "Mend the roof");
    assert_snapshot!(env.snapshot(&["prime", "--agent", "gastown/max", "--section", "work"]), @"
    exit code: 0
    --- stdout
    ## Your work: gt-[ID] Mend the roof
    (task, priority 2)

    All of it, and well.
    ");
    assert_snapshot!(env.snapshot(&["prime"]), @"
    exit code: 2
    --- stderr
    error: which agent? This is not the folder or pane of an agent
    hint: add `--agent NAME`, or go to its folder
    ");
    assert_snapshot!(env.snapshot(&["prime", "--agent", "gastown/zoe"]), @r#"
    exit code: 3
    --- stderr
    error: the rig gastown has no crew worker or polecat called "zoe"
    hint: `gt crew list gastown` shows them; `gt crew add gastown/zoe` makes one
    "#);
}
