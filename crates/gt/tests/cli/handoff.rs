//! `gt handoff`: from one session of an agent to the next.

mod failures;

use crate::env::{TIMEOUT, TestEnv, is_alive, run};
use crate::sessions::list_sessions;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;

const MAX: &str = "gastown/crew/max";

fn with_work() -> (TestEnv, String) {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Mend the roof", "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap().to_owned();
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    env.gt(&["start", MAX]).ok();
    (env, id)
}

fn hooked(env: &TestEnv) -> Value {
    env.json(&["hook", "--agent", MAX])
}

fn chain(env: &TestEnv) -> Vec<Value> {
    let newest = &list_sessions(env, &["--limit", "1"])[0];
    let chain = env.json(&["sessions", "chain", newest["id"].as_str().unwrap()]);
    chain["sessions"].as_array().unwrap().clone()
}

#[test]
fn handoff_after_a_start_without_a_prompt_prompts_the_next_session() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX, "--no-prompt"]).ok();
    let mail = ["-s", "Half done", "-m", "The north side is open."];
    env.gt(&[&["handoff", MAX, "--force"], &mail[..]].concat())
        .ok();
    env.wait_screen(MAX, "• handoff");
    env.wait_screen(MAX, "The north side is open.");
    let start = env.format(
        env.agent(MAX)["container"].as_str().unwrap(),
        "#{@gt_start}",
    );
    assert!(
        start.contains("\"prompt\":false"),
        "a respawn has none still: {start}"
    );
}

#[test]
fn handoff_without_work_offers_ready_items_by_role_and_never_as_own() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Mend the roof", "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap();
    for (agent, is_offered) in [
        ("gastown/witness", false),
        ("gastown/refinery", false),
        ("deacon", false),
        (MAX, true),
    ] {
        env.gt(&["start", agent, "--no-prompt", "--create"]).ok();
        env.gt(&["handoff", agent, "--force"]).ok();
        let told = env.gt(&["prime", "--agent", agent]).ok().stdout;
        assert!(
            told.contains("Only a message is on your hook"),
            "{agent}: {told}"
        );
        assert!(!told.contains("Begin at once"), "{agent}: {told}");
        assert_eq!(told.contains(id), is_offered, "{agent}: {told}");
        assert_eq!(
            told.contains("Ready for any agent, and not yours"),
            is_offered,
            "{agent}: {told}"
        );
        env.gt(&["stop", agent]).ok();
    }
}

#[test]
fn an_agent_hands_over_to_itself_in_its_own_pane() {
    let (env, id) = with_work();
    let (before, pid) = (env.agent(MAX), env.pid(MAX));
    let words = "[[tool=gt handoff --force -s 'Half done' -m 'The north side is open.']]";
    env.gt(&["nudge", MAX, words]).ok();
    wait_until("the next session", TIMEOUT, || {
        (list_sessions(&env, &["--agent", MAX]).len() == 2).then_some(())
    });
    env.wait_screen(MAX, "The handoff is DONE");
    let screen = env.gt(&["peek", MAX]).ok().stdout;
    for words in [
        "## Left to you: Half done",
        "The north side is open.",
        "<- self",
        "Begin now",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    let after = env.agent(MAX);
    for same in ["container", "pane", "created_at"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    assert_ne!(after["session"], before["session"]);
    wait_until("the old process is gone", TIMEOUT, || {
        (!is_alive(pid)).then_some(())
    });
    let [first, second] = &chain(&env)[..] else {
        panic!("{:?}", chain(&env));
    };
    assert_eq!(first["outcome"], "handoff");
    assert_eq!(first["child_id"], second["id"]);
    assert_eq!(second["parent_id"], first["id"]);
    assert_eq!(second["chain_id"], first["chain_id"]);
    assert_eq!(second["work_unit"], id.as_str());
    assert_eq!(second["status"], "running");
    assert_eq!(second["pid"], after["pid"]);
    let hook = hooked(&env);
    assert_eq!(hook["id"], id.as_str());
    assert_eq!(hook["letter"]["title"], "Half done");
    // The handoff was delivered once, and its marker is removed.
    assert!(
        !env.town()
            .join(".runtime/handoffs/gastown.crew.max.json")
            .exists()
    );
    let state = env.json(&["prime", "--state", "--agent", MAX]);
    assert_eq!(state["state"], "autonomous", "{state}");
    // The process that started the session may still hold the lock.
    wait_until("everything agrees", TIMEOUT, || {
        let synced = env.gt(&["sync", "--verbose"]).ok().stdout;
        synced.contains("Everything agrees").then_some(())
    });
    assert_eq!(list_sessions(&env, &["--status", "running"]).len(), 1);
}

#[test]
fn person_hands_an_agent_over() {
    let (env, _) = with_work();
    let pane = env.agent(MAX)["pane"].clone();
    assert_snapshot!(env.snapshot(&["handoff", MAX]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max started [N] s ago; one handoff per [N] s is allowed
    hint: continue the work on the hook and try again in [N] s; `--force` hands over now
    ");
    let folder = env.town().join("gastown/crew/max");
    fs::write(folder.join("new.txt"), "x").unwrap();
    let told = env.gt(&["handoff", MAX, "--force", "--dry-run"]).ok();
    assert_snapshot!(told.rendered(&env), @"
    exit code: 0
    --- stdout
    gastown/crew/max would hand over, in gt-crew-max:

    Handoff

    ## State at the handoff
    Branch: crew/max
    On the hook: gt-[ID] Mend the roof
    Changed files:
    - new.txt
    --- stderr
    warning: gastown/crew/max has 1 changed file
    ");
    assert_eq!(list_sessions(&env, &[]).len(), 1, "it was only told");
    assert!(hooked(&env).get("letter").is_none());
    let answer = env.json(&[
        "handoff",
        MAX,
        "--force",
        "--collect",
        "-m",
        "By hand",
        "-s",
        "Go on",
    ]);
    assert_eq!(answer["successor"], chain(&env)[1]["id"], "{answer}");
    assert_eq!(env.agent(MAX)["pane"], pane);
    let mail = &hooked(&env)["letter"];
    let body = mail["description"].as_str().unwrap();
    assert!(body.starts_with("By hand\n\n## State"), "{mail}");
    assert!(
        body.contains("- new.txt") && body.contains("Branch: crew/max"),
        "{mail}"
    );
    env.gt(&["stop", MAX, "--force"]).ok();
    env.gt(&["handoff", MAX, "--force"]).fails(3);
    env.gt(&["handoff", "gastown/crew/nobody"]).fails(3);
    env.gt(&["handoff"]).fails(2);
}

#[test]
fn an_item_is_put_on_the_hook_and_a_role_of_the_rig_is_an_agent() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX, "gastown/witness"]).ok();
    let item = env.json(&["work", "create", "Mend the roof", "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap();
    let as_max = |args: &[&str]| {
        let mut command = env.gt_command(&[&["handoff", "--force"], args].concat());
        run(command.env("GT_ROLE", MAX).env("GT_ROOT", env.town()))
    };
    assert_snapshot!(as_max(&[id, "--dry-run"]).rendered(&env), @"
    exit code: 0
    --- stdout
    gastown/crew/max would hand over with gt-[ID] on its hook, in gt-crew-max:

    Handoff

    ## State at the handoff
    Branch: crew/max
    Ready for any agent, and not yours unless you are given one (`gt hook ITEM` takes one up):
    - gt-[ID] Mend the roof
    ");
    assert!(hooked(&env).is_null());
    as_max(&[id, "-m", "take it"]).ok();
    let now = hooked(&env);
    assert_eq!(
        (&now["id"], &now["letter"]["description"]),
        (&json!(id), &json!("take it"))
    );
    // A different item is refused before anything changes, also in a dry run.
    let other = env.json(&["work", "create", "Another", "--rig", "gastown"]);
    let other = other["id"].as_str().unwrap();
    as_max(&[other, "--dry-run"]).fails(4);
    as_max(&[other]).fails(4);
    assert_eq!(list_sessions(&env, &["--agent", MAX]).len(), 2);

    let witness = as_max(&["witness", "--json"]).ok().json();
    assert_eq!(witness["agent"], "gastown/witness");
    // For a person, an item id selects the agent that holds it.
    let held = env.gt(&["handoff", id, "--force", "--dry-run", "--json"]);
    assert_eq!(held.ok().json()["agent"], MAX);
    env.gt(&["handoff", other, "--force"]).fails(2);
}

#[test]
fn handoff_mail_without_a_text_has_the_state_and_a_one_line_subject() {
    let (env, id) = with_work();
    let answer = env.json(&["handoff", MAX, "--force", "--stdin", "-s", "Go\non"]);
    assert_eq!(answer["subject"], "Go on");
    let mail = &hooked(&env)["letter"];
    assert_eq!(mail["title"], "Go on");
    let body = mail["description"].as_str().unwrap();
    assert!(body.contains("## State") && body.contains(&id), "{body}");
}

#[test]
fn only_changed_settings_are_set_again() {
    let (env, _) = with_work();
    let container = env.agent(MAX)["container"].as_str().unwrap().to_owned();
    let tmux = |command: &'static str, args: &[&str]| {
        env.tmux(Tmux::new(command).args(args.iter().copied()))
    };
    let target = format!("={container}:");
    let look = |option: &str| tmux("show-options", &["-v", "-t", &target, option]);
    let hand_over = || {
        let answer = env.json(&["handoff", MAX, "--force", "--no-git-check", "-m", "Go on."]);
        answer["successor"].as_str().unwrap().to_owned()
    };
    tmux("set-option", &["-t", &target, "status-left", "mine"]);
    tmux("set-environment", &["-t", &target, "GT_ROLE", "mayor"]);
    let successor = hand_over();
    assert_eq!(look("status-left"), "mine", "nothing else was wanted");
    assert_eq!(look("@gt_session"), successor);
    let own = tmux("show-environment", &["-t", &target, "GT_SESSION_UUID"]);
    assert_eq!(own, format!("GT_SESSION_UUID={successor}"));
    // The process environment has the identity from the start, whatever tmux's session environment
    // says.
    let environ = fs::read(format!("/proc/{}/environ", env.pid(MAX))).unwrap();
    let environ = String::from_utf8_lossy(&environ);
    let has = |wanted: String| environ.split('\0').any(|variable| variable == wanted);
    assert!(has(format!("GT_ROLE={MAX}")), "{environ}");
    assert!(has(format!("GT_SESSION_UUID={successor}")), "{environ}");
    let role = env.town().join("roles/crew.toml");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    fs::write(role, "[look]\nicon = '*'\n").unwrap();
    hand_over();
    assert!(
        look("status-left").starts_with("* "),
        "{}",
        look("status-left")
    );
    let role = tmux("show-environment", &["-t", &target, "GT_ROLE"]);
    assert_eq!(role, format!("GT_ROLE={MAX}"), "all of it, then");
}

#[test]
fn handoff_during_a_start_or_stop_is_refused() {
    let (env, _) = with_work();
    let lock = env.town().join(".runtime/locks/gastown.crew.max.lock");
    let file = fs::File::open(lock).unwrap();
    file.lock().unwrap();
    assert_snapshot!(env.snapshot(&["handoff", MAX, "--force"]), @"
    exit code: 4
    --- stderr
    error: another gt (process [PID]) is starting or stopping gastown/crew/max
    hint: wait for it, then look with `gt agents`
    ");
    assert!(hooked(&env).get("letter").is_none(), "nothing was touched");
    drop(file);
    env.gt(&["handoff", MAX, "--force"]).ok();
}

#[test]
fn state_is_saved_before_a_compaction_and_the_session_goes_on() {
    let (env, _) = with_work();
    let pid = env.pid(MAX);
    env.gt(&["handoff", MAX, "--auto", "--reason", "compaction"])
        .ok();
    env.gt(&["handoff", MAX, "--auto", "--reason", "compaction"])
        .ok();
    assert_eq!(env.pid(MAX), pid);
    assert_eq!(list_sessions(&env, &[]).len(), 1);
    let messages = env.json(&["work", "list", "--type", "message", "--all"]);
    assert_eq!(
        messages.as_array().unwrap().len(),
        1,
        "written again, not twice: {messages}"
    );
    let session = &list_sessions(&env, &[])[0];
    let mut command = env.gt_command(&["prime", "--json"]);
    command
        .env("GT_ROLE", MAX)
        .env("GT_SESSION_UUID", session["id"].as_str().unwrap());
    let told = run(&mut command).ok().json();
    assert_eq!(told["state"], "autonomous", "no session has ended: {told}");
    assert_eq!(told["brief"], true);
    assert!(
        told["text"]
            .as_str()
            .unwrap()
            .contains("State at the handoff"),
        "{told}"
    );
    let again = run(&mut command).ok().json();
    assert_eq!(again["brief"], false, "the marker was for once");
}

#[test]
fn a_cycle_goes_on_with_the_same_conversation() {
    let (env, _) = with_work();
    let conversation = list_sessions(&env, &[])[0]["harness_session_id"].clone();
    env.gt(&[
        "handoff",
        MAX,
        "--cycle",
        "--force",
        "--reason",
        "compaction",
    ])
    .ok();
    let chain = chain(&env);
    assert_eq!(chain.len(), 2);
    assert_eq!(chain[0]["outcome"], "handoff");
    assert_eq!(chain[1]["harness_session_id"], conversation);
    env.wait_screen(MAX, "Continue your previous task");
    let screen = env.gt(&["peek", MAX]).ok().stdout;
    assert!(!screen.contains("<- self"), "{screen}");
    // For a program that cannot resume, `--cycle` warns instead of claiming a resume.
    let preset = env.town().join("harnesses/demo.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(preset, "[command]\nresume = []\ncontinue = []\n").unwrap();
    assert_snapshot!(env.snapshot(&["handoff", MAX, "--cycle", "--force"]), @"
    exit code: 0
    --- stdout
    gastown/crew/max was handed over: session [UUID] continues.
    --- stderr
    warning: demo cannot resume a conversation; a new one was started with the handoff message
    ");
}

#[test]
fn a_successor_that_does_not_come_up_is_a_crash_and_the_work_stays() {
    let (env, id) = with_work();
    let preset = env.town().join("harnesses/demo.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(
        &preset,
        "[command]\nargs = ['demo-agent', '--fail-at-start', '3']\n",
    )
    .unwrap();
    env.gt(&["handoff", MAX, "--force", "-m", "Go on"]).fails(1);
    let chain = chain(&env);
    assert_eq!(chain[0]["outcome"], "handoff");
    assert_eq!(chain[1]["outcome"], "crash");
    assert_eq!(hooked(&env)["id"], id.as_str());
    assert_eq!(hooked(&env)["letter"]["description"], "Go on");
    // The respawn after a crash takes over, because the role wants it.
    fs::remove_file(&preset).unwrap();
    wait_until("it is back", TIMEOUT, || {
        let running = list_sessions(&env, &["--status", "running"]);
        (!running.is_empty()).then_some(())
    });
    env.wait_screen(MAX, "Left to you");
}

#[test]
fn killed_at_any_step_it_loses_nothing_and_can_be_run_again() {
    for point in gt_town::lifecycle::handoff::FAULT_POINTS {
        let (env, id) = with_work();
        env.kill_at_fault(&["handoff", MAX, "--force", "-m", "Go on"], point);
        let items = env.json(&["work", "list", "--status", "hooked", "--type", "task"]);
        assert_eq!(items.as_array().unwrap().len(), 1, "{point}: {items}");
        env.gt(&["sync"]).ok();
        assert_eq!(
            list_sessions(&env, &["--status", "running"]).len(),
            1,
            "{point}"
        );
        env.gt(&["handoff", MAX, "--force", "-m", "Go on"]).ok();
        assert_eq!(hooked(&env)["id"], id.as_str(), "{point}");
        assert_eq!(hooked(&env)["letter"]["description"], "Go on", "{point}");
        let messages = env.json(&["work", "list", "--type", "message"]);
        assert_eq!(messages.as_array().unwrap().len(), 1, "{point}: {messages}");
        env.gt(&["sync"]).ok();
        let running = list_sessions(&env, &["--status", "running"]);
        assert_eq!(
            json!(running[0]["id"]),
            env.agent(MAX)["session"],
            "{point}"
        );
        assert_eq!(running.len(), 1, "{point}");
        let all = list_sessions(&env, &[]);
        let handed = all
            .iter()
            .filter(|session| session["outcome"] == "handoff")
            .count();
        assert!(handed >= 1, "{point}: {all:?}");
    }
}

#[test]
fn handoff_ends_all_processes_of_the_session() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    // Both children ignore the hangup; one has also left its terminal.
    let left = env.path("left");
    let child = |how: &str| {
        let log = left.display();
        format!(
            "({how} sh -c 'trap \"\" HUP; echo $$ >> {log}; sleep 1000; true' >/dev/null 2>&1 &)"
        )
    };
    let words = format!("[[tool={} ; {}]]", child("nohup"), child("setsid"));
    env.gt(&["nudge", MAX, &words]).ok();
    let pids = wait_until("both run", TIMEOUT, || {
        let text = fs::read_to_string(&left).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|pid| pid.parse().ok()).collect();
        (pids.len() == 2 && pids.iter().all(|pid| is_alive(*pid))).then_some(pids)
    });
    env.gt(&["handoff", MAX, "--force"]).ok();
    wait_until("both are gone", TIMEOUT, || {
        (!pids.iter().any(|pid| is_alive(*pid))).then_some(())
    });
}

#[test]
fn handoff_called_from_a_child_process_runs_to_its_end() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    let demo = "[command]\nargs = ['demo-agent', '--startup-delay', '3000']\nprompt = 'typed'\n";
    let preset = env.town().join("harnesses/demo.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(preset, demo).unwrap();
    // Without TMUX_PANE the command is not recognised as the agent, and performs the handoff
    // itself.
    let said = env.path("said");
    let words = format!(
        "[[tool=setsid sh -c 'unset TMUX_PANE; exec gt handoff --force > {} 2>&1']]",
        said.display()
    );
    env.gt(&["nudge", MAX, &words]).ok();
    wait_until("it has handed over", TIMEOUT, || {
        let said = fs::read_to_string(&said).ok()?;
        said.contains("was handed over").then_some(())
    });
    env.wait_screen(MAX, "Left to you");
}

#[test]
fn saving_the_state_keeps_the_current_step() {
    let env = TestEnv::with_crew(&["max"]);
    let id = env.create_item("Mend the roof");
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    env.gt(&["start", MAX]).ok();
    // The molecule is about the item on the hook, unless another one is named.
    let poured = env.json(&["mol", "attach", "shiny", "--agent", MAX]);
    assert!(poured.to_string().contains("Mend the roof"), "{poured}");
    env.gt(&["mol", "step", "start", "design", "--agent", MAX])
        .ok();
    let steps = || env.json(&["mol", "status", "--agent", MAX])["current"].clone();
    let before = steps();
    assert!(before.to_string().contains("design"), "{before}");
    env.gt(&["handoff", MAX, "--auto", "--reason", "compaction"])
        .ok();
    assert_eq!(steps(), before);
    // A handoff leaves the current step for the next session to begin.
    env.gt(&["handoff", MAX, "--force"]).ok();
    assert_ne!(steps(), before);
}

#[test]
fn handoff_prints_its_steps() {
    let (env, _) = with_work();
    assert_snapshot!(env.snapshot(&["handoff", "gastown/max", "--force", "--dry-run", "-m", "Half is done."]), @"
    exit code: 0
    --- stdout
    gastown/crew/max would hand over, in gt-crew-max:

    Handoff

    Half is done.
    ");
    assert_snapshot!(env.snapshot(&["handoff", "gastown/max", "--force", "-m", "Half is done."]), @"
    exit code: 0
    --- stdout
    gastown/crew/max was handed over: session [UUID] continues.
    ");
    assert_snapshot!(env.snapshot(&["handoff", "mayor"]), @"
    exit code: 3
    --- stderr
    error: mayor is not running, so it has nothing to hand over
    hint: `gt start mayor` starts it
    ");
}
