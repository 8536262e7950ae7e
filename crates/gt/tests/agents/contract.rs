//! End-to-end contract with a real program: its hooks prime it, and its tool calls hand over and
//! submit work.

use crate::stage::{Stage, TIMEOUT};
use crate::{each, every, runs_without_asking_and_stops};
use gt_tmux::testing::{wait_until, wait_until_or};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::fs;

const MAX: &str = "gastown/crew/max";

fn read(stage: &Stage, args: &[&str]) -> Value {
    serde_json::from_str(&stage.ok(&[args, &["--json"]].concat())).unwrap()
}

/// Waits until a request after the first `after` ones contains `words`, in any role.
#[track_caller]
fn told(stage: &Stage, after: usize, words: &str) {
    let is_told = || {
        let requests = stage.requests();
        let mut texts = requests
            .iter()
            .skip(after)
            .flat_map(|request| request.user.iter().chain(&request.asides));
        texts.any(|text| text.contains(words)).then_some(())
    };
    let report = || {
        let asked: Vec<String> = stage.requests()[after..]
            .iter()
            .map(|request| format!("{:#?} {:#?}", request.user, request.asides))
            .collect();
        format!("{}\n{}", asked.join("\n"), stage.screen())
    };
    let what = format!("the model was told {words:?}");
    wait_until_or(&what, TIMEOUT, is_told, report);
}

/// Makes the model call its shell tool.
fn let_it_run(stage: &Stage, command: &str) {
    let call = json!({"command": command, "description": "as asked"});
    stage.nudge(&format!("[[tool=Bash {call}]]"));
}

fn await_session(stage: &Stage, number: usize) -> Value {
    wait_until("the next session", TIMEOUT, || {
        let all = read(stage, &["sessions", "list", "--agent", MAX]);
        let all = all.as_array().unwrap();
        (all.len() == number && all[0]["status"] == "running").then(|| all[0].clone())
    })
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn from_a_wish_to_merged_work_over_a_handoff_and_a_crash() {
    each("contract", |stage| {
        if stage.program().harness != "claude" {
            return;
        }
        // The API key comes from the role's environment.
        stage.write(
            "gt/roles/crew.toml",
            "[env]\nANTHROPIC_API_KEY = '{key}'\nANTHROPIC_BASE_URL = '{url}'\n\
             GIT_COMMITTER_NAME = 'max'\nGIT_COMMITTER_EMAIL = 'm@localhost'\nGIT_AUTHOR_EMAIL = 'm@localhost'\n",
        );
        let item = read(
            stage,
            &[
                "work",
                "create",
                "Write a poem",
                "-d",
                "Four lines.",
                "--rig",
                "gastown",
            ],
        );
        let id = item["id"].as_str().unwrap();
        stage.ok(&["sling", id, MAX]);
        told(stage, 0, "# You are gastown/crew/max");
        told(stage, 0, &format!("## Your work: {id} Write a poem"));
        told(stage, 0, "Begin now");
        let first = await_session(stage, 1);
        assert_eq!(first["work_unit"], id);
        wait_until("a checkpoint by itself", TIMEOUT, || {
            let noted = read(stage, &["checkpoint", "read", "--agent", MAX]);
            (noted["session_id"] == first["id"] && noted["hooked_bead"] == id).then_some(())
        });

        let dir = stage.path("gt/gastown/crew/max");
        fs::write(dir.join("poem.txt"), "one\ntwo\n").unwrap();
        let_it_run(
            stage,
            "git add -A && git commit -q -m Half && gt checkpoint write --notes 'two lines'",
        );
        wait_until("the checkpoint", TIMEOUT, || {
            (read(stage, &["checkpoint", "read", "--agent", MAX])["notes"] == "two lines")
                .then_some(())
        });
        let before = stage.requests().len();
        let_it_run(
            stage,
            "gt handoff --force -s 'Half a poem' -m 'Two lines are missing.'",
        );
        let second = await_session(stage, 2);
        assert_eq!(second["parent_id"], first["id"]);
        told(stage, before, "The handoff is DONE");
        told(stage, before, "Two lines are missing.");

        stage.ok(&["wait", MAX, "--timeout", "60"]);
        fs::write(dir.join("poem.txt"), "one\ntwo\nthree\nfour\n").unwrap();
        let_it_run(stage, "gt checkpoint write --notes 'to be committed'");
        wait_until("the checkpoint", TIMEOUT, || {
            (read(stage, &["checkpoint", "read", "--agent", MAX])["notes"] == "to be committed")
                .then_some(())
        });
        let before = stage.requests().len();
        let agents = read(stage, &["agents"]);
        let pid = i32::try_from(agents[0]["pid"].as_i64().unwrap()).unwrap();
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        let third = await_session(stage, 3);
        assert_eq!(third["parent_id"], second["id"]);
        told(stage, before, "It noted: to be committed");

        stage.ok(&["wait", MAX, "--timeout", "60"]);
        let_it_run(
            stage,
            "git commit -q -a -m Rest && gt done --exit -m 'four lines'",
        );
        wait_until("it is done", TIMEOUT, || {
            let session = read(stage, &["sessions", "show", third["id"].as_str().unwrap()]);
            (session["outcome"] == "done").then_some(())
        });
        // The queue merges without a further command.
        wait_until("it is merged", TIMEOUT, || {
            let item = read(stage, &["work", "show", id]);
            (item["status"] == "closed").then_some(())
        });
        let merged = read(stage, &["mq", "list", "--all"]);
        assert_eq!(merged[0]["status"], "merged", "{merged}");
        let chain = read(stage, &["sessions", "chain", id]);
        let sessions = chain["sessions"].as_array().unwrap().iter();
        let outcomes: Vec<&str> = sessions
            .map(|session| session["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes, ["handoff", "crash", "done"], "{chain}");
        stage.nothing_is_left();
    });
}

/// Reports whether the program runs with our hooks. Gemini CLI accepts hooks only from folders
/// owned by root.
fn has_hooks(stage: &Stage) -> bool {
    let harness = stage.program().harness;
    let file = stage.path(&format!("gt/.runtime/hooks/{harness}.json"));
    let has = harness != "gemini" || file.exists();
    if !has {
        println!("skipped: {harness} takes no hooks of this user");
    }
    has
}

fn start_with_a_poem(stage: &Stage, args: &[&str]) -> bool {
    let item = read(
        stage,
        &["work", "create", "Write a poem", "--rig", "gastown"],
    );
    stage.ok(&["hook", item["id"].as_str().unwrap(), "--agent", MAX]);
    stage.start(args);
    has_hooks(stage)
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn output_of_a_hook_reaches_the_model() {
    every("prime", |stage| {
        if !start_with_a_poem(stage, &[]) {
            return;
        }
        told(stage, 0, "# You are gastown/crew/max");
        told(stage, 0, "Write a poem");
        // The first request with tools already contains the prime text, so no answer was given
        // without it.
        let first = wait_until("a request with tools", TIMEOUT, || {
            let mut requests = stage.requests().into_iter();
            requests.find(|request| request.has_tools)
        });
        let texts = || first.user.iter().chain(&first.asides);
        assert!(
            texts().any(|text| text.contains("# You are gastown/crew/max")),
            "{first:#?}"
        );
        assert!(
            !texts().any(|text| text.contains("Begin with `gt prime`")),
            "{first:#?}"
        );
        if stage.program().slow {
            // The quick run has no other test that starts slow programs with a first prompt.
            stage.wait_prompt("[GAS TOWN] crew max");
            runs_without_asking_and_stops(stage);
        }
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn its_hooks_tell_what_it_does() {
    each("hooks", |stage| {
        stage.start(&["--no-prompt"]);
        if !has_hooks(stage) {
            return;
        }
        let sent = stage.nudge("some words");
        assert_eq!(sent["delivered"], "agent", "{sent}");
        stage.ok(&["wait", MAX, "--timeout", "60"]);
        wait_until("the hook of its turn's end", TIMEOUT, || {
            (stage.tag("@gt_state_reason") == "finished its turn").then_some(())
        });
        assert_eq!(stage.tag("@gt_prompts"), "1");
        assert_eq!(
            stage.tag("@gt_last_prompt"),
            gt_core::nudge::fingerprint("some words")
        );
        let session = await_session(stage, 1);
        assert!(session["harness_session_id"].is_string(), "{session}");
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn state_is_saved_when_its_context_is_compacted() {
    each("compaction", |stage| {
        let command = match stage.program().harness {
            "gemini" => "/compress",
            _ => "/compact",
        };
        if !start_with_a_poem(stage, &[]) {
            return;
        }
        stage.nudge("some words to compact");
        stage.ok(&["wait", MAX, "--timeout", "60"]);
        let session = await_session(stage, 1);
        let hook = read(stage, &["hook", "--agent", MAX]);
        assert!(
            hook["letter"].is_null(),
            "nothing was compacted yet: {hook}"
        );
        let before = stage.requests().len();
        stage.type_command(command);
        stage.enter_until("the letter", || {
            let hook = read(stage, &["hook", "--agent", MAX]);
            hook["letter"]["title"] == "Handoff: compaction"
        });
        stage.ok(&["wait", MAX, "--timeout", "60"]);
        stage.nudge("and now");
        told(stage, before, "Continue your previous task");
        assert_eq!(
            await_session(stage, 1)["id"],
            session["id"],
            "the same session continues"
        );
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_cycle_goes_on_with_the_same_conversation_in_a_new_process() {
    each("cycle", |stage| {
        // opencode takes half a minute for two starts, and behaves like the other programs here.
        if stage.program().harness == "opencode" {
            return;
        }
        if !start_with_a_poem(stage, &[]) {
            return;
        }
        stage.nudge("the roses are blue");
        told(stage, 0, "the roses are blue");
        stage.ok(&["wait", MAX, "--timeout", "60"]);
        let first = await_session(stage, 1);
        let before = stage.requests().len();
        stage.ok(&["handoff", MAX, "--cycle", "--force", "-s", "Go on"]);
        let second = await_session(stage, 2);
        assert_eq!(second["parent_id"], first["id"]);
        assert_eq!(second["harness_session_id"], first["harness_session_id"]);
        told(stage, before, "Continue your previous task");
        // The new process sends the history of the previous one to the model.
        let said = gt_model::fingerprint("the roses are blue");
        let requests = stage.requests();
        let mut later = requests[before..].iter();
        assert!(later.any(|it| it.history.contains(&said)), "{requests:#?}");
    });
}
