//! `gt mail`: sending, announcing, reading, replying, searching and archiving.

mod announcements;

use crate::env::{Answer, TIMEOUT, TestEnv, run_with_stdin};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;

const MAX: &str = "gastown/crew/max";
const AMY: &str = "gastown/crew/amy";

/// Runs a command as an agent.
fn by(env: &TestEnv, agent: &str, args: &[&str]) -> Answer {
    let output = env.gt_command(args).env("GT_ROLE", agent).output().unwrap();
    Answer {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[track_caller]
fn json_by(env: &TestEnv, agent: &str, args: &[&str]) -> Value {
    by(env, agent, &[args, &["--json"]].concat()).ok().json()
}

/// Sends a message to one recipient, and returns it.
#[track_caller]
fn send(env: &TestEnv, sender: &str, to: &str, subject: &str, more: &[&str]) -> Value {
    let args = [&["mail", "send", to, "-s", subject], more].concat();
    json_by(env, sender, &args)[0].clone()
}

fn id(mail: &Value) -> &str {
    mail["id"].as_str().unwrap()
}

#[track_caller]
fn subjects(env: &TestEnv, agent: &str, args: &[&str]) -> Vec<String> {
    let messages = json_by(env, agent, &[&["mail"], args].concat());
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|mail| mail["subject"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn mail_is_sent_read_answered_and_archived() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    assert_eq!(env.json(&["mail", "inbox"]), json!([]));
    let mail = send(&env, MAX, "gastown/amy", "Plan", &["-m", "One\n\ttwo"]);
    for (field, expected) in [
        ("sender", json!(MAX)),
        ("recipient", json!(AMY)),
        ("subject", json!("Plan")),
        ("body", json!("One\n\ttwo")),
        ("priority", json!(2)),
        ("status", json!("open")),
        ("thread", mail["id"].clone()),
        ("reply_to", Value::Null),
        ("read_at", Value::Null),
        ("nudged", json!(false)),
    ] {
        assert_eq!(mail[field], expected, "{field}: {mail}");
    }
    assert!(id(&mail).starts_with("hq-"));
    let file = fs::metadata(env.town().join(".work/items.db")).unwrap();
    assert_eq!(
        file.permissions().mode() & 0o777,
        0o600,
        "readable by the owner only"
    );
    assert_eq!(subjects(&env, AMY, &["inbox", "--unread"]), ["Plan"]);
    assert_eq!(subjects(&env, MAX, &["inbox"]), [""; 0]);
    // It stays unread when others read it, or when its recipient uses `--keep-unread`.
    let read = ["mail", "read", id(&mail)];
    env.gt(&read).ok();
    by(&env, AMY, &[&read[..], &["--keep-unread"]].concat()).ok();
    assert_eq!(subjects(&env, AMY, &["inbox", "--unread"]), ["Plan"]);
    let shown = by(&env, AMY, &read).ok().stdout;
    assert!(
        shown.contains("Plan") && shown.contains("\n\ttwo\n"),
        "{shown}"
    );
    assert_eq!(subjects(&env, AMY, &["inbox", "--unread"]), [""; 0]);
    assert_eq!(subjects(&env, AMY, &["inbox"]), ["Plan"]);
    // A reply and its reply are in one thread.
    let answer = json_by(&env, AMY, &["mail", "reply", id(&mail), "-m", "Why?"]);
    assert_eq!(answer["recipient"], json!(MAX));
    assert_eq!(answer["subject"], "Re: Plan");
    assert_eq!(answer["reply_to"], mail["id"]);
    let more = [
        "mail",
        "send",
        AMY,
        "-s",
        "Because",
        "--reply-to",
        id(&answer),
    ];
    assert_eq!(json_by(&env, MAX, &more)[0]["thread"], mail["id"]);
    let thread = ["mail", "read", id(&answer), "--thread"];
    let thread: Vec<Value> = json_by(&env, MAX, &thread).as_array().unwrap().clone();
    let thread: Vec<&str> = thread
        .iter()
        .map(|mail| mail["subject"].as_str().unwrap())
        .collect();
    assert_eq!(thread, ["Plan", "Re: Plan", "Because"]);
    by(&env, AMY, &["mail", "reply", id(&mail)]).fails(2);
    // An archived message leaves the inbox, and the search finds it.
    by(&env, MAX, &["mail", "archive", id(&mail)]).fails(4);
    by(&env, AMY, &["mail", "archive", id(&mail), "hq-nosuch"]).fails(3);
    assert_eq!(subjects(&env, AMY, &["inbox"]).len(), 2, "all or none");
    by(&env, AMY, &["mail", "archive", id(&mail)]).ok();
    assert_eq!(subjects(&env, AMY, &["inbox"]), ["Because"]);
    assert_eq!(subjects(&env, AMY, &["inbox", "--all"]).len(), 2);
    assert_eq!(subjects(&env, AMY, &["search", "TWO"]), ["Plan"]);
    assert_eq!(subjects(&env, MAX, &["search", "two"]), ["Plan"], "its own");
    assert_eq!(subjects(&env, "mayor", &["search", "two"]), [""; 0]);
    assert_eq!(
        subjects(&env, "mayor", &["search", "two", "--everybody"]),
        ["Plan"]
    );
    assert_eq!(subjects(&env, AMY, &["search", "100%"]), [""; 0]);
    // Messages are not listed as work, unless asked for by type.
    for args in [
        &["work", "list", "--all"][..],
        &["work", "search", "Plan"],
        &["work", "ready"],
    ] {
        assert_eq!(env.json(args), json!([]), "{args:?}");
    }
    let messages = env.json(&["work", "list", "--type", "message"]);
    assert_eq!(messages.as_array().unwrap().len(), 2, "{messages}");
    assert_eq!(messages[0]["labels"], json!(["gt:message"]));
    env.gt(&["work", "create", "x", "--type", "message"])
        .fails(2);
    env.gt(&["work", "update", id(&mail), "--type", "task"])
        .fails(4);
    let told = env.json(&["events", "--type", "mail"]);
    assert_eq!(told.as_array().unwrap().len(), 3, "{told}");
    assert_snapshot!(env.snapshot(&["events", "--feed"]), @"
    exit code: 0
    --- stdout
    [TIME] [TIME]  gastown/crew/max wrote to gastown/crew/amy: Plan
    [TIME] [TIME]  gastown/crew/amy wrote to gastown/crew/max: Re: Plan
    [TIME] [TIME]  gastown/crew/max wrote to gastown/crew/amy: Because
    ");
}

#[test]
fn people_have_a_mailbox_and_urgent_mail_comes_first() {
    let env = TestEnv::with_crew(&["max"]);
    send(&env, MAX, "human", "Later", &["--priority", "low"]);
    send(&env, MAX, "human", "Done", &[]);
    send(&env, MAX, "human", "Help", &["--urgent"]);
    let inbox = env.json(&["mail", "inbox"]);
    let order: Vec<&Value> = inbox
        .as_array()
        .unwrap()
        .iter()
        .map(|l| &l["subject"])
        .collect();
    assert_eq!(order, ["Help", "Done", "Later"]);
    let answer = env.json(&["mail", "reply", id(&inbox[0]), "-m", "Coming"]);
    assert_eq!(answer["sender"], "human");
    assert_eq!(subjects(&env, MAX, &["inbox"]), ["Re: Help"]);
    assert_eq!(
        env.json(&["mail", "inbox", "--agent", "gastown/max"])[0]["id"],
        answer["id"]
    );
    assert!(env.json(&["mail", "read", id(&inbox[0])])["read_at"].is_string());
    assert_snapshot!(env.snapshot(&["mail", "inbox"]), @"
    exit code: 0
    --- stdout
    ID  STATUS  PRIORITY  AGE  FROM  TO  SUBJECT
    hq-[ID]  read  urgent  [N]  gastown/crew/max  human  Help
    hq-[ID]  new  normal  [N]  gastown/crew/max  human  Done
    hq-[ID]  new  low  [N]  gastown/crew/max  human  Later
    ");
}

#[test]
fn each_member_of_a_group_gets_a_message() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.add_rig("beads", "bd");
    env.gt(&["crew", "add", "beads/zoe"]).ok();
    let check = |to: &[&str], expected: &[&str]| {
        let args = [&["mail", "send"], to, &["-s", "News", "--no-nudge"]].concat();
        let sent = json_by(&env, MAX, &args);
        let sent = sent.as_array().unwrap();
        let mut found: Vec<&str> = sent
            .iter()
            .map(|l| l["recipient"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{to:?}");
        assert!(sent.iter().all(|mail| mail["thread"] == sent[0]["id"]));
    };
    // A group leaves out the sender, unless it is named.
    check(
        &["gastown/*"],
        &[AMY, "gastown/refinery", "gastown/witness"],
    );
    check(&["gastown/crew/*"], &[AMY]);
    check(&["@crew"], &["beads/crew/zoe", AMY]);
    check(
        &["@crew", "amy", "mayor"],
        &["beads/crew/zoe", AMY, "mayor"],
    );
    check(&["@witnesses"], &["beads/witness", "gastown/witness"]);
    check(&["human", "gastown/max"], &[MAX, "human"]);
    let all = json_by(&env, MAX, &["mail", "send", "@all", "-s", "All"]);
    assert_eq!(all.as_array().unwrap().len(), 3 + 4 + 2, "{all}");
    for (to, text) in [
        ("@nobody", "no group"),
        ("@polecats", "has no members"),
        ("nowhere/*", "no rig"),
        ("nowhere/max", "no rig"),
        ("gastown/zed", "no crew worker"),
        ("gastown/crew/zed", "no agent"),
        ("agent/zed", "no agent"),
        ("$(touch x)", "no agent"),
        ("", "no agent"),
    ] {
        // With one unknown recipient the message goes to none.
        let answer = by(&env, MAX, &["mail", "send", "amy", to, "-s", "Lost"]).fails(3);
        assert!(answer.stderr.contains(text), "{to}: {}", answer.stderr);
        assert!(answer.stderr.contains("hint:"), "{to}: {}", answer.stderr);
    }
    assert!(!subjects(&env, AMY, &["inbox"]).contains(&"Lost".to_owned()));
}

#[test]
fn running_recipient_is_notified_and_old_mail_is_stale() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let log = env.path("log");
    let preset = format!(
        "[command]\nargs = ['demo-agent', '--log', '{}']\n",
        log.display()
    );
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    let old = send(&env, "mayor", MAX, "Before", &[]);
    assert_eq!(old["nudged"], false, "it does not run");
    let kept = send(&env, "mayor", MAX, "On the hook", &[]);
    env.gt(&["hook", id(&kept), "--agent", MAX]).ok();
    env.gt(&["hook", id(&kept), "--agent", AMY]).fails(4);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    let quiet = send(&env, "mayor", MAX, "Quiet", &["--no-nudge"]);
    let new = send(&env, "mayor", MAX, "Say \"#{pid}\" $(x).", &[]);
    assert_eq!(
        (&quiet["nudged"], &new["nudged"]),
        (&json!(false), &json!(true))
    );
    let expected = format!(
        "You have mail from mayor: Say \"#{{pid}}\" $(x). Read it: gt mail read {}",
        id(&new)
    );
    wait_until("the reader is told", TIMEOUT, || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let prompts: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        (prompts.len() == 1 && prompts[0]["prompt"] == json!(expected)).then_some(())
    });
    // A message to oneself is not announced.
    assert_eq!(send(&env, MAX, MAX, "Self", &[])["nudged"], false);
    let inbox = json_by(&env, "human", &["mail", "inbox", "--agent", MAX]);
    for mail in inbox.as_array().unwrap() {
        let is_old = mail["id"] == old["id"];
        assert_eq!(mail["stale"], is_old, "{mail}");
        assert_eq!(mail["stale_reason"].is_string(), is_old, "{mail}");
    }
    assert_snapshot!(env.snapshot(&["mail", "inbox", "--agent", MAX]), @r##"
    exit code: 0
    --- stdout
    ID  STATUS  PRIORITY  AGE  FROM  TO  SUBJECT
    hq-[ID]  new  normal  [N]  gastown/crew/max  gastown/crew/max  Self
    hq-[ID]  new  normal  [N]  mayor  gastown/crew/max  Say "#{pid}" $(x).
    hq-[ID]  new  normal  [N]  mayor  gastown/crew/max  Quiet
    hq-[ID]  on the hook  normal  [N]  mayor  gastown/crew/max  On the hook
    hq-[ID]  new, stale  normal  [N]  mayor  gastown/crew/max  Before
    "##);
    // After the unhook the message belongs to its recipient as before.
    env.gt(&["unhook", id(&kept)]).ok();
    let item = env.json(&["work", "show", id(&kept)]);
    assert_eq!(
        (&item["status"], &item["assignee"]),
        (&json!("open"), &json!(MAX))
    );
}

#[test]
fn mail_to_oneself_goes_on_the_hook_with_the_work() {
    let env = TestEnv::with_crew(&["max"]);
    let note = send(&env, MAX, MAX, "Go on at step 2", &["-m", "and test"]);
    json_by(&env, MAX, &["hook", id(&note)]);
    let item = env.json(&["work", "create", "Work"]);
    let hooked = json_by(&env, MAX, &["hook", id(&item)]);
    assert_eq!(hooked["id"], item["id"]);
    assert_eq!(hooked["letter"]["id"], note["id"]);
    let shown = by(&env, MAX, &["hook"]).ok().stdout;
    let words = ["Work", id(&note), "Go on at step 2", "and test"];
    assert!(words.iter().all(|word| shown.contains(word)), "{shown}");
    // Closing the item closes the message as well.
    env.gt(&["work", "close", id(&item)]).ok();
    let mail = env.json(&["work", "show", id(&note)]);
    assert_eq!(mail["status"], "closed", "{mail}");
    assert_eq!(json_by(&env, MAX, &["hook"]), Value::Null);
    let reopened = env.json(&["work", "reopen", id(&note)]);
    assert_eq!(
        reopened["assignee"],
        json!(MAX),
        "a letter stays its reader's"
    );
}

#[test]
fn mail_of_fifty_concurrent_senders_is_kept() {
    let env = TestEnv::with_crew(&["max"]);
    let names: Vec<String> = (0..50).map(|number| format!("letter {number}")).collect();
    let senders: Vec<Child> = names
        .iter()
        .map(|name| env.spawn(&["mail", "send", "mayor", MAX, "-s", name]))
        .collect();
    for sender in senders {
        let output = sender.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    for reader in ["mayor", MAX] {
        let mut found = subjects(&env, reader, &["inbox"]);
        found.sort_by_key(|name| name.trim_start_matches("letter ").parse::<u32>().ok());
        assert_eq!(found, names, "{reader}");
    }
}

#[test]
fn mail_text_is_never_executed() {
    let env = TestEnv::with_crew(&["max"]);
    let hostile = "a\nb \u{1b}[31m $(touch x) `y` #(touch z) '; DROP TABLE letters; -- \u{202e}";
    let mail = send(
        &env,
        MAX,
        "mayor",
        hostile,
        &["-m", "\u{1b}]0;owned\u{7}\r\n--help"],
    );
    let subject = hostile.replace(['\n', '\u{1b}'], " ");
    assert_eq!(mail["subject"], json!(subject));
    assert_eq!(mail["body"], "\u{1b}]0;owned\u{7}\r\n--help");
    for args in [&["mail", "inbox"][..], &["mail", "read", id(&mail)]] {
        let shown = by(&env, "mayor", args).ok().stdout;
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\r']), "{shown:?}");
    }
    assert_eq!(
        subjects(&env, "mayor", &["search", "'; DROP"]),
        [subject.as_str()]
    );
    by(&env, MAX, &["mail", "send", "mayor", "-s", " \n"]).fails(2);
    by(
        &env,
        MAX,
        &["mail", "send", "mayor", "-s", &"x".repeat(501)],
    )
    .fails(2);
    by(&env, MAX, &["mail", "send", "mayor", "-s", "x", "-p", "9"]).fails(2);
    by(
        &env,
        MAX,
        &[
            "mail",
            "send",
            "mayor",
            "-s",
            "x",
            "--reply-to",
            "hq-nosuch",
        ],
    )
    .fails(3);
    let task = env.json(&["work", "create", "Work"]);
    by(&env, MAX, &["mail", "read", id(&task)]).fails(3);
    by(&env, "nowhere/crew/x", &["mail", "inbox"]).fails(3);
    // The maximum size is a megabyte.
    let long = "0123456789".repeat(100_000);
    let send = ["mail", "send", "mayor", "-s", "Long", "--stdin", "--json"];
    let with_body = |body: &str| run_with_stdin(&mut env.gt_command(&send), body);
    let sent = with_body(&long).ok().json();
    let read = by(&env, "mayor", &["mail", "read", id(&sent[0])])
        .ok()
        .stdout;
    assert!(read.ends_with(&format!("\n{long}\n")));
    with_body(&format!("{long}x")).fails(2);
}

#[test]
fn killed_sender_leaves_all_messages_or_none() {
    for point in gt_town::messaging::mail::FAULT_POINTS {
        let env = TestEnv::with_crew(&["max", "amy"]);
        env.kill_at_fault(&["mail", "send", "@crew", "-s", "News"], point);
        for reader in [MAX, AMY] {
            assert_eq!(subjects(&env, reader, &["inbox"]), ["News"], "{point}");
        }
    }
}

#[test]
fn mail_prints_messages() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["mail", "inbox", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    No messages match.
    ");
    assert_snapshot!(env.snapshot(&["mail", "send", "gastown/max", "-s", "Roof", "-m", "Mend it."]), @"
    exit code: 0
    --- stdout
    Sent hq-[ID] to gastown/crew/max.
    ");
    assert_snapshot!(env.snapshot(&["mail", "inbox", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    ID  STATUS  PRIORITY  AGE  FROM  TO  SUBJECT
    hq-[ID]  new  normal  [N]  human  gastown/crew/max  Roof
    ");
    assert_snapshot!(env.snapshot(&["mail", "send", "unknown", "-s", "Roof"]), @r#"
    exit code: 3
    --- stderr
    error: there is no agent "unknown"
    hint: `gt agents` lists those that run, `gt agents --stopped` those that could
    hint: targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items
    "#);
    assert_snapshot!(env.snapshot(&["mail", "archive", "nonsense"]), @r#"
    exit code: 2
    --- stderr
    error: "nonsense" is not the id of a message
    hint: such as hq-[ID]: `gt mail inbox` shows them
    "#);
    assert_snapshot!(env.snapshot(&["mail", "read", "gt-zzzzz"]), @"
    exit code: 3
    --- stderr
    error: there is no message gt-[ID]
    hint: `gt mail inbox` shows them
    ");
}
