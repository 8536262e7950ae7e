//! Commands in a town with a long history: they show a page, and say how to see more.
//!
//! `benches/history.rs` measures the same commands in a town that is a thousand times as large.

#[path = "../../benches/shared/history.rs"]
#[expect(dead_code, reason = "the benchmark uses more of it")]
mod generator;

use crate::env::TestEnv;
use generator::{AGENT, FIRST_TITLE, RARE_KIND, Scale};
use serde_json::Value;

const SCALE: Scale = Scale {
    sessions: 3_000,
    items: 7_000,
    events: 3_000,
    queued: 600,
    mails: 250,
    transcripts: 2,
    transcript_bytes: 100_000,
};

fn count(list: &Value) -> usize {
    list.as_array().unwrap().len()
}

#[test]
fn lists_of_a_long_history_are_pages() {
    let env = TestEnv::with_crew(&["w00"]);
    env.create_item("The first item");
    let marks = generator::write(&env.town(), env.home(), SCALE);
    env.gt(&["sessions", "rebuild"]).ok();

    let items = env.gt(&["work", "list"]).ok();
    assert_eq!(items.stdout.lines().count(), 501);
    let note = "More items match: `--page 2` shows the next ones, `--limit` more at once.\n";
    assert_eq!(items.stderr, note);
    let first = env.json(&["work", "list"]);
    assert_eq!(first[0]["title"], FIRST_TITLE);
    // A tenth of the items is open, and the first one.
    let second = env.json(&["work", "list", "--page", "2"]);
    assert_eq!((count(&first), count(&second)), (500, 201));
    assert_eq!(count(&env.json(&["work", "list", "--limit", "9999"])), 701);
    env.gt(&["work", "list", "--page", "0"]).fails(2);
    let closed = ["work", "list", "--status", "closed", "--limit", "7"];
    assert_eq!(count(&env.json(&closed)), 7);
    let tree = env.json(&["work", "tree", &marks.parent]);
    assert_eq!(count(&tree["children"]), 700);

    let inbox = env.gt(&["mail", "inbox", "--agent", AGENT]).ok().stdout;
    let more = "And 150 more: `--limit 250` shows all, `--page 2` the next ones.";
    assert_eq!(inbox.lines().last(), Some(more));
    let last = ["mail", "inbox", "--agent", AGENT, "--page", "3"];
    assert_eq!(count(&env.json(&last)), 50);
    let thread = ["mail", "read", &marks.mail, "--thread", "--keep-unread"];
    let thread = env
        .gt(&[&thread[..], &["--limit", "5", "--json"]].concat())
        .ok();
    assert_eq!(
        thread.stderr,
        "The newest 5 of 25 messages; `--limit 25` shows all.\n"
    );
    assert_eq!(thread.json()[4]["subject"], "Message 240");
    let prime = env.gt(&["prime", "--agent", AGENT]).ok().stdout;
    assert!(prime.contains("## Mail: 250 unread"), "{prime}");

    let sessions = env.gt(&["sessions", "list"]).ok();
    assert_eq!(sessions.stdout.lines().count(), 51);
    assert!(
        sessions
            .stderr
            .starts_with("More sessions match: `--until 20"),
        "{}",
        sessions.stderr
    );
    let chain = ["sessions", "chain", &marks.long_chain];
    // Every hundredth session, and the four others of the first five.
    assert_eq!(count(&env.json(&chain)["sessions"]), 34);
    let chain = env
        .gt(&[&chain[..], &["--limit", "10", "--json"]].concat())
        .ok();
    assert!(
        chain.stderr.starts_with("Only the newest 10 sessions"),
        "{}",
        chain.stderr
    );
    assert_eq!(count(&chain.json()["sessions"]), 10);

    let queue = env.gt(&["nudge", "--list", AGENT, "--json"]).ok();
    assert_eq!(count(&queue.json()), 500);
    assert_eq!(
        queue.stderr,
        "100 more wait behind these, or were set aside before them.\n"
    );

    assert_eq!(count(&env.json(&["events"])), 100);
    assert_eq!(count(&env.json(&["events", "--type", RARE_KIND])), 1);
    assert!(count(&env.json(&["events", "--since", "90d"])) >= 3_000);
    let older = env.json(&["events", "--before", "100", "--limit", "3"]);
    let numbers: Vec<u64> = older
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [97, 98, 99]);
    env.gt(&["events", "verify"]).ok();

    // Archived sessions are found as before.
    let count_of = |args: &[&str]| env.gt(args).ok().stdout.lines().count();
    let all = count_of(&["sessions", "export", "--jsonl"]);
    let moved = env.json(&["sessions", "archive", "--before", "90d"]);
    assert!(moved["lives"].as_u64().unwrap() > 2_000, "{moved}");
    assert!(count(&moved["files"]) >= 21, "{moved}");
    assert_eq!(count_of(&["sessions", "export", "--jsonl"]), all);
    let shown = env.json(&["sessions", "show", &marks.session]);
    assert_eq!(shown["id"], marks.session);
}
