//! `n`, `e`, `g`, `i`, `h`, `E` and `Q`: items, their workers, and texts of several lines.

use super::*;
use crate::env::TIMEOUT;
use crate::sling::polecats;
use gt_tmux::testing::wait_until_or;
use serde_json::json;

/// Waits for the first item that fits.
#[track_caller]
fn wait_item(
    env: &TestEnv,
    board: &Terminal<'_>,
    what: &str,
    fits: impl Fn(&serde_json::Value) -> bool,
) -> String {
    let list = || env.json(&["work", "list", "--all"]);
    let find = || {
        let items = list();
        let found = items.as_array()?.iter().find(|item| fits(item))?;
        Some(found["id"].as_str()?.to_owned())
    };
    wait_until_or(what, TIMEOUT, find, || {
        format!("{}\n{:#}", board.screen(), list())
    })
}

#[test]
fn item_is_created_and_edited_in_a_form() {
    let (env, other) = with_project("");
    let board = Terminal::open(&env, 150, 45);
    board.wait_text(&other);
    board.press(&["n"]);
    board.wait_text("New item");
    board.write("Fix --the 'parser'");
    board.press(&["Tab"]);
    board.paste("First line\n\tSecond: $(touch evil)\n\nLast");
    // Skip the project.
    board.press(&["Tab", "Tab"]);
    board.write("1");
    board.press(&["Tab"]);
    board.write("b");
    board.press(&["Tab"]);
    board.write("cli, parser");
    board.press(&["Enter"]);
    let id = wait_item(&env, &board, "the new item", |item| {
        item["title"] == "Fix --the 'parser'"
    });
    let item = env.json(&["work", "show", &id]);
    assert_eq!(
        item["description"],
        "First line\n\tSecond: $(touch evil)\n\nLast"
    );
    assert_eq!(
        (&item["priority"], &item["type"], &item["labels"]),
        (&json!(1), &json!("bug"), &json!(["cli", "parser"]))
    );
    // The new card has the cursor.
    board.wait_text(&format!("Made {id}"));
    board.wait_text("Open 2");
    board.act("e");
    board.wait_text(&format!("Edit {id}"));
    board.write("!");
    board.press(&["Tab", "C-u"]);
    board.write("Shorter");
    board.press(&["C-j"]);
    board.write("now");
    board.press(&["Tab", "Tab", "Tab", "C-u"]);
    board.write("parser");
    board.press(&["Tab"]);
    board.write(&other);
    board.press(&["Enter"]);
    wait_item(&env, &board, "the changed item", |item| {
        item["title"] == "Fix --the 'parser'!" && item["deps"] == json!([other])
    });
    let item = env.json(&["work", "show", &id]);
    assert_eq!(item["description"], "Shorter\nnow");
    assert_eq!(item["labels"], json!(["parser"]));
    // An unknown blocker is refused, and the text stays.
    board.press(&["+"]);
    board.wait_text("New item");
    board.write("Waits");
    board.press(&["BTab"]);
    board.write("gt-zzzzz");
    board.press(&["Enter"]);
    board.wait("the form again", |screen| {
        screen.contains("New item") && screen.contains("Waits") && screen.contains("gt-zzzzz")
    });
}

#[test]
fn polecat_gets_an_item_and_its_branch_is_shown_offered_and_merged() {
    let (mut env, id) = with_project("");
    let bin = program(
        &env,
        "bin/gh",
        "#!/bin/sh\necho \"$*\" >> \"$HOME/gh-words\"\n\
         case $2 in list) echo '[]';; create) echo https://example.com/pull/2;; esac\n",
    );
    let path = std::env::var("PATH").unwrap();
    let bin = bin.parent().unwrap();
    env.set("PATH", &format!("{}:{path}", bin.display()));
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("Open 1");
    board.act("g");
    board.wait_text("A polecat of gastown");
    board.press(&["Enter"]);
    wait_card(&env, &id, "a polecat", |card| {
        card["holder"]
            .as_str()
            .is_some_and(|it| it.contains("/polecats/"))
            && card["session"]["state"] == "idle"
    });
    let agent = card(&env, &id)["holder"].as_str().unwrap().to_owned();
    board.wait_text(&format!("→ {agent}"));
    let dir = env.town().join(&agent);
    let own = commit(&env, &dir, "mine.txt", "a line of mine\n");
    board.wait_text("↑1");
    board.act("f");
    board.wait_text("+a line of mine");
    board.press(&["q"]);
    board.wait_text("Review 1");
    board.act("P");
    board.wait_text("https://example.com/pull/2");
    let words = fs::read_to_string(env.path("gh-words")).unwrap();
    let name = agent.rsplit('/').next().unwrap();
    let head = format!("--head=polecat/{name}/{id} ");
    assert!(words.contains(&head), "{words}");
    board.act("m");
    wait_card(&env, &id, "merged", |card| card["status"] == "closed");
    let merged = env.git(
        &env.town().join("gastown/.repo.git"),
        &["log", "--all", "--format=%H"],
    );
    assert!(merged.contains(&own), "{merged}");
    // A polecat ends with its item.
    board.until("the end of the polecat", || {
        polecats(&env)
            .iter()
            .all(|polecat| polecat["running"] != true)
    });
    assert_eq!(env.running(), [""; 0]);
}

#[test]
fn crew_gets_an_item_and_its_turn_is_interrupted_and_handed_over() {
    let (env, id) = with_project("");
    env.add_settings("[handoff]\ncooldown = '0s'\n");
    env.gt(&["crew", "add", "max"]).ok();
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("Open 1");
    board.act("g");
    board.wait_text("gastown/crew/max (does not run)");
    board.write("max");
    board.press(&["Enter"]);
    let agent = "gastown/crew/max";
    wait_card(&env, &id, "its worker", |card| {
        card["holder"] == agent && card["session"]["state"] == "idle"
    });
    board.wait_text(&format!("→ {agent}"));
    // A message of several lines reaches the agent as it was pasted.
    board.act("n");
    board.wait_text("Message");
    board.paste("[[delay=10m]] one\n  two");
    board.press(&["M-Enter"]);
    board.write("three");
    board.press(&["Enter"]);
    wait_state(&env, &id, "busy");
    let screen = env.gt(&["peek", agent]).stdout;
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let first = lines
        .iter()
        .position(|line| line.contains("[[delay=10m]] one"));
    let first = first.unwrap_or_else(|| panic!("{screen}"));
    assert!(lines[first + 1].ends_with("  two"), "{screen}");
    assert!(lines[first + 2].ends_with("three"), "{screen}");
    board.wait_text("● working");
    board.act("i");
    board.wait_text(&format!("Interrupting {agent}: interrupted"));
    wait_state(&env, &id, "idle");
    let before = env.agent(agent)["session"].clone();
    board.act("h");
    board.wait_text("Notes for the next session");
    board.write("The parser is next.");
    board.press(&["Enter"]);
    board.until("another session", || {
        let agents = env.json(&["agents"]);
        let agents = agents.as_array().unwrap();
        let found = agents.iter().find(|it| it["agent"] == agent);
        found.is_some_and(|it| it["session"].is_string() && it["session"] != before)
    });
}

#[test]
fn entry_of_the_merge_queue_is_shown_and_merged_and_an_item_is_escalated() {
    let (env, id) = with_project("");
    env.gt(&["sling", &id]).ok();
    wait_card(&env, &id, "a polecat", |card| {
        card["session"]["state"] == "idle"
    });
    let agent = card(&env, &id)["holder"].as_str().unwrap().to_owned();
    commit(&env, &env.town().join(&agent), "mine.txt", "mine\n");
    env.gt(&["done", "--agent", &agent]).ok();
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("Review 1");
    board.act("E");
    board.wait_text("It is raised until it is acknowledged");
    board.write("Who reviews it?");
    board.press(&["Enter"]);
    board.until("the escalation", || {
        let all = env.json(&["escalate", "list"]);
        all[0]["message"] == "Who reviews it?" && all[0]["item"] == id.as_str()
    });
    board.press(&["Q"]);
    board.wait_text("Merge queue: 1 entry");
    board.wait_text("queued");
    board.press(&["m"]);
    wait_card(&env, &id, "merged", |card| card["status"] == "closed");
}

#[test]
fn item_with_a_conversation_is_resumed_before_it_is_started() {
    let (env, id, _) = running();
    env.gt(&["nudge", &format!("task/{id}"), "remember this"])
        .ok();
    env.gt(&["task", "stop", &id]).ok();
    let conversation = |at: usize| {
        let all = crate::sessions::list_sessions(&env, &["--work", &id]);
        all[at]["harness_session_id"].clone()
    };
    let before = conversation(0);
    assert!(before.is_string(), "{before}");
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    wait_card(&env, &id, "resumable", |card| card["resumable"] == true);
    board.act("s");
    board.wait_text(&format!("Resume {id}?"));
    board.press(&["Enter"]);
    wait_agent(&env, &id);
    assert_eq!(conversation(0), before);
}

#[test]
fn empty_town_has_a_form_too() {
    let env = without_items("");
    let board = Terminal::open(&env, 80, 24);
    board.press(&["n"]);
    board.wait_text("‹ gastown ›");
    board.press(&["Escape"]);
    board.wait("no form", |screen| !screen.contains("New item"));
    assert_eq!(env.json(&["work", "list"]), json!([]));
}
