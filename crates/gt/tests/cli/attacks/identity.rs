//! An agent that pretends to be another caller: by variables, by options, and by leaving its
//! process tree.

use crate::env::{Answer, TIMEOUT, TestEnv, login};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use std::fs;

const MAX: &str = "gastown/crew/max";

/// Makes a town in which `max` and `joe` run, without questions.
pub(crate) fn stage() -> TestEnv {
    let env = TestEnv::with_crew(&["max", "joe"]);
    env.gt(&["crew", "start", "--all", "--no-prompt"]).ok();
    for name in ["gastown/max", "gastown/joe"] {
        env.gt(&["wait", name, "--timeout", "30"]).ok();
    }
    env
}

/// Runs a shell script in the pane of an agent, as a command of its program.
pub(crate) fn inside(env: &TestEnv, agent: &str, script: &str) -> Answer {
    let file = |name: &str| env.path(&format!("attack.{name}"));
    let shown = |name: &str| file(name).display().to_string();
    for name in ["code", "out", "err"] {
        // There may be no earlier one.
        let _ = fs::remove_file(file(name));
    }
    fs::write(file("sh"), script).unwrap();
    let run = format!(
        "sh {} > {} 2> {}; echo $? > {}.new; mv {}.new {}",
        shown("sh"),
        shown("out"),
        shown("err"),
        shown("code"),
        shown("code"),
        shown("code")
    );
    fs::write(file("run"), run).unwrap();
    let message = format!("[[tool=sh {}]]", shown("run"));
    env.gt(&["nudge", agent, &message, "--timeout", "30"]).ok();
    let code = wait_until("the script has ended", TIMEOUT, || {
        fs::read_to_string(file("code")).ok()
    });
    env.gt(&["wait", agent, "--timeout", "30"]).ok();
    Answer {
        code: code.trim().parse().unwrap(),
        stdout: fs::read_to_string(file("out")).unwrap(),
        stderr: fs::read_to_string(file("err")).unwrap(),
    }
}

/// Returns the newest event of a type.
pub(super) fn last_event(env: &TestEnv, kind: &str) -> serde_json::Value {
    let events = env.json(&["events", "--type", kind]);
    let last = events.as_array().and_then(|events| events.last().cloned());
    last.unwrap_or_else(|| panic!("no event {kind}: {events}"))
}

#[test]
fn agent_cannot_claim_to_be_another_by_variables() {
    let env = stage();
    let refused = |script: &str| inside(&env, MAX, script).fails(7).stderr;
    assert_snapshot!(refused("GT_ROLE=mayor gt mail send gastown/joe -s Orders -m Stop"), @"
    error: GT_ROLE is mayor, but this command runs in the process tree of gastown/crew/max
    hint: unset GT_ROLE: an agent cannot act as another
    ");
    assert_snapshot!(refused("GT_ROLE=human gt mail send gastown/joe -s Orders -m Stop"), @"
    error: GT_ROLE is human, but this command runs in the process tree of gastown/crew/max
    hint: unset GT_ROLE: an agent cannot act as another
    ");
    assert_snapshot!(refused("GT_CALLER=ann gt unhook --agent gastown/joe"), @"
    error: GT_CALLER is ann, but this command runs in the process tree of gastown/crew/max
    hint: unset GT_CALLER: an agent cannot act as another
    ");
    assert_snapshot!(refused("GT_CALLER=gt gt internal end-dnd"), @"
    error: GT_CALLER is gt, but this command runs in the process tree of gastown/crew/max
    hint: unset GT_CALLER: an agent cannot act as another
    ");
    assert_snapshot!(refused("gt nudge gastown/joe --sender human Stop"), @"
    error: --sender is human, but this command runs in the process tree of gastown/crew/max
    hint: leave out --sender: an agent cannot act as another
    ");
    assert_snapshot!(refused("gt events emit deploy --actor mayor"), @"
    error: --actor is mayor, but this command runs in the process tree of gastown/crew/max
    hint: leave out --actor: an agent cannot act as another
    ");
    assert!(
        env.json(&["mail", "inbox", "gastown/joe"])
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn agent_is_named_as_the_actor_whatever_it_does_to_its_variables() {
    let env = stage();
    let scripts = [
        "gt events emit deploy",
        "env -u GT_ROLE -u GT_SESSION -u GT_ROOT gt --town \"$GT_ROOT\" events emit deploy",
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" gt --town \"$GT_ROOT\" events emit deploy",
        "cd / && env -u GT_ROLE -u GT_CALLER gt events emit deploy",
    ];
    for script in scripts {
        inside(&env, MAX, script).ok();
        assert_eq!(last_event(&env, "deploy")["actor"], MAX, "{script}");
        let mail = format!(
            "{} ",
            script.replace("events emit deploy", "mail send gastown/joe -s S -m M")
        );
        inside(&env, MAX, &mail).ok();
        assert_eq!(last_event(&env, "mail")["actor"], MAX, "{mail}");
    }
    let inbox = env.json(&["mail", "inbox", "gastown/joe"]);
    for mail in inbox.as_array().unwrap() {
        assert_eq!(mail["sender"], MAX, "{mail}");
    }
}

#[test]
fn agent_cannot_report_the_state_of_another() {
    let env = stage();
    // A hook never fails; its log says why it did nothing.
    let report = "echo '{}' | GT_SESSION=gt-crew-joe gt signal PermissionRequest";
    inside(&env, MAX, report).ok();
    let report = "echo '{}' | gt signal PermissionRequest --session gt-crew-joe";
    inside(&env, MAX, report).ok();
    assert_eq!(env.agent("gastown/crew/joe")["state"], "idle");
    let log = env.gt(&["logs"]).ok().stdout;
    for variable in ["GT_SESSION", "--session"] {
        let refusal = format!("{variable} is gt-crew-joe, but");
        assert!(log.contains(&refusal), "{log}");
    }
}

#[test]
fn every_change_is_an_event_with_caller_command_and_process() {
    let env = stage();
    let id = env.create_item("Paint");
    env.gt(&["hook", &id, "--agent", "gastown/joe"]).ok();
    env.gt(&["mail", "send", "gastown/joe", "-s", "S", "-m", "M"])
        .ok();
    let inbox = env.json(&["mail", "inbox", "gastown/joe"]);
    let mail = inbox[0]["id"].as_str().unwrap().to_owned();
    let changes = [
        ("unhook", "gt unhook --agent gastown/joe".to_owned()),
        (
            "work_created",
            "gt work create Mine --rig gastown".to_owned(),
        ),
        ("work_updated", format!("gt work update {id} --priority 1")),
        ("work_closed", format!("gt work close {id}")),
        ("work_reopened", format!("gt work reopen {id}")),
        (
            "mail_archived",
            format!("gt mail archive {mail} --agent gastown/joe"),
        ),
        ("keys", "gt keys gastown/joe x".to_owned()),
    ];
    for (kind, command) in changes {
        let (_, words) = command.split_once(' ').unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        // The agent's own rights do not matter here, only who is named.
        env.gt(&words).ok();
        let event = last_event(&env, kind);
        assert_eq!(event["actor"], login(), "{event}");
        assert!(
            command.starts_with(event["command"].as_str().unwrap()),
            "{event}"
        );
        assert!(event["pid"].is_u64(), "{event}");
    }
    // The end of a session is the agent's event, and names the caller.
    env.gt(&["stop", "gastown/joe"]).ok();
    let ended = last_event(&env, "session_end");
    assert_eq!(ended["actor"], "gastown/crew/joe");
    assert_eq!(ended["caller"], login());
    assert_eq!(ended["command"], "gt stop");
}

#[test]
fn process_that_left_its_tree_is_still_the_agent() {
    let env = stage();
    let done = env.path("left");
    // The process has another parent as soon as the shell that started it has exited.
    let script = format!(
        "setsid sh -c 'while [ $(cut -d\" \" -f4 /proc/$$/stat) = '$$' ]; do :; done; \
         gt events emit deploy; GT_ROLE=mayor gt events emit deploy 2> {0}.err; \
         echo $? > {0}.new; mv {0}.new {0}' > /dev/null 2>&1 &",
        done.display()
    );
    inside(&env, MAX, &script).ok();
    let code = wait_until("it has ended", TIMEOUT, || fs::read_to_string(&done).ok());
    assert_eq!(code.trim(), "7");
    assert_eq!(last_event(&env, "deploy")["actor"], MAX);
    let refusal = fs::read_to_string(env.path("left.err")).unwrap();
    assert_snapshot!(refusal, @"
    error: GT_ROLE is mayor, but this command runs in the process tree of gastown/crew/max
    hint: unset GT_ROLE: an agent cannot act as another
    ");
}

#[test]
fn process_whose_parent_becomes_gt_is_still_the_agent() {
    let env = stage();
    let id = env.create_item("Paint");
    env.gt(&["hook", &id, "--agent", "gastown/joe"]).ok();
    let done = env.path("claimed");
    let script = env.path("claim.sh");
    // The shell has become `gt wait` before the command begins.
    let text = "(\n\
        until tr '\\0' ' ' < /proc/$$/cmdline | grep -q 'gt wait'; do :; done\n\
        GT_CALLER=ann gt unhook --agent gastown/joe 2> DONE.err\n\
        echo $? > DONE.new\n\
        mv DONE.new DONE\n\
        ) &\n\
        exec gt wait gastown/joe --until waiting --timeout 5\n";
    let text = text.replace("DONE", &done.display().to_string());
    fs::write(&script, text).unwrap();
    let script = format!("sh {}", script.display());
    inside(&env, MAX, &script);
    let code = wait_until("it has ended", TIMEOUT, || fs::read_to_string(&done).ok());
    let refusal = fs::read_to_string(env.path("claimed.err")).unwrap();
    assert_eq!(code.trim(), "7", "{refusal}");
    assert!(
        refusal.contains("GT_CALLER is ann, but this command runs in the process tree"),
        "{refusal}"
    );
    let hooked = env.json(&["hook", "--agent", "gastown/joe"]);
    assert!(hooked.to_string().contains(&id), "{hooked}");
}

#[test]
fn person_may_act_as_an_agent() {
    let env = stage();
    env.gt(&["events", "emit", "deploy"]).ok();
    assert_eq!(last_event(&env, "deploy")["actor"], login());
    let mut as_max = env.gt_command(&["events", "emit", "deploy"]);
    crate::env::run(as_max.env("GT_ROLE", MAX)).ok();
    assert_eq!(last_event(&env, "deploy")["actor"], MAX);
}
