//! Prefixes of ids: of items, mail, merges, escalations and sessions.

use crate::env::TestEnv;
use crate::mq::{finish, item};

/// Lines that change nothing. A capitalised word is an id.
const READING: &[&str] = &[
    "work show ITEM",
    "work tree ITEM",
    "work list --parent ITEM",
    "work ready --parent ITEM",
    "work search Part --parent ITEM",
    "task show ITEM",
    "mail read MAIL",
    "mail read --thread MAIL",
    "escalate show ESCALATION",
    "escalate list --item ITEM",
    "mq status MERGE",
    "mq diff MERGE",
    "events --about ITEM",
    "sessions list --work ITEM",
    "sessions stats --work ITEM",
    "sessions list --chain SESSION",
    "sessions show SESSION",
    "sessions chain SESSION",
    "sessions chain ITEM",
    "step list SESSION",
];

/// Lines that change something, in an order in which each succeeds.
const CHANGING: &[&str] = &[
    "work update OTHER --priority 1",
    "work create Part --rig gastown --parent OTHER",
    "work create Next --rig gastown --dep OTHER",
    "work dep add OTHER ITEM",
    "work dep remove OTHER ITEM",
    "hook OTHER --agent gastown/amy",
    "unhook OTHER",
    "mol attach shiny --on OTHER --agent gastown/amy",
    "mol detach --agent gastown/amy",
    "budget raise item:OTHER 5",
    "escalate Help --item OTHER",
    "escalate ack ESCALATION",
    "escalate close ESCALATION",
    "mail reply MAIL -m Yes",
    "mail send human -s Re -m Yes --reply-to MAIL",
    "mail archive MAIL --agent human",
    "mq run MERGE",
    "sling OTHER gastown/amy --no-start",
    "work close OTHER",
    "work reopen OTHER",
];

fn id(env: &TestEnv, args: &[&str]) -> String {
    let made = env.json(args);
    let made = made.get(0).unwrap_or(&made);
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn prefix_of_an_id_is_enough_for_every_command() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let (_, merge) = finish(&env, "amy", "a.txt", "a");
    let work = item(&env, &["One"]);
    env.gt(&["work", "create", "Part", "--parent", &work]).ok();
    env.gt(&["sling", &work, "gastown/max"]).ok();
    let session = env.agent("gastown/crew/max")["session"].clone();
    let session = session.as_str().unwrap().to_owned();
    env.gt(&["step", "start", "plan", "--session", &session])
        .ok();
    let mail = id(&env, &["mail", "send", "human", "-s", "Hi", "-m", "There"]);
    let escalation = id(&env, &["escalate", "Look", "--item", &work]);
    env.gt(&["mail", "read", &mail]).ok();
    env.gt(&["stop", "gastown/max"]).ok();
    let ids = [
        ("ITEM", work),
        ("OTHER", item(&env, &["Two"])),
        ("MAIL", mail),
        ("MERGE", merge),
        ("ESCALATION", escalation),
        ("SESSION", session),
    ];
    let folder = env.town().join("gastown/crew/max");
    let answer = |line: &str, is_prefix: bool| {
        let replaced = |word: &str| {
            let found = ids.iter().find(|(name, _)| word.ends_with(name));
            found.map_or(word.to_owned(), |(name, id)| {
                word.replace(name, &id[..id.len() - usize::from(is_prefix)])
            })
        };
        let words: Vec<String> = line.split(' ').map(replaced).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        env.gt_in(&folder, &[&words[..], &["--json"]].concat())
    };
    for line in READING {
        let expected = answer(line, false).ok().stdout;
        assert_ne!(expected.trim(), "[]", "{line}");
        assert_eq!(answer(line, true).ok().stdout, expected, "{line}");
    }
    for line in CHANGING {
        let done = answer(line, true);
        assert_eq!(done.code, 0, "{line}: {}", done.stderr);
    }
}

#[test]
fn prefix_of_several_ids_is_refused_with_their_names() {
    let env = TestEnv::with_rig();
    // All items begin with the prefix of the rig.
    let mut ids: Vec<String> = Vec::new();
    while ids.len() < 60 {
        ids.push(env.create_item("More"));
        let first = &ids[ids.len() - 1][..4];
        if ids.iter().filter(|id| id.starts_with(first)).count() > 1 {
            for line in [
                &["work", "show", first][..],
                &["sessions", "list", "--work", first],
            ] {
                let refused = env.gt(line).fails(2).stderr;
                assert!(refused.contains("could be any of"), "{line:?}: {refused}");
            }
            return;
        }
    }
    panic!("no two of 60 ids begin with the same character");
}
