//! Messages, molecules and handoff beads are work items: `gt work` shows them, and refuses changes
//! that would break them.

use crate::env::TestEnv;
use serde_json::{Value, json};

const MAX: &str = "gastown/crew/max";

fn id(item: &Value) -> &str {
    item["id"].as_str().unwrap()
}

fn ids(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(id).collect()
}

fn mol(env: &TestEnv, args: &[&str]) -> Value {
    env.json(&[&["mol"], args, &["--agent", MAX]].concat())
}

#[track_caller]
fn refused(env: &TestEnv, args: &[&str], hint: &str) {
    let answer = env.gt(&[&["work"], args].concat()).fails(4);
    assert!(answer.stderr.contains(hint), "{args:?}: {}", answer.stderr);
}

#[test]
fn sent_mail_cannot_be_changed() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let mail = env.json(&["mail", "send", MAX, "-s", "Plan", "-m", "Now"])[0].clone();
    let work = env.json(&["work", "create", "Work"]);
    let mail = id(&mail);
    for change in [
        &["--status", "in_progress"][..],
        &["--status", "blocked"],
        &["--status", "pinned"],
        &["--assignee", "gastown/amy"],
        &["--title", "Another"],
        &["--description", "Later"],
        &["--priority", "0"],
        &["--type", "task"],
        &["--remove-label", "gt:message"],
    ] {
        let args = [&["update", mail], change].concat();
        refused(&env, &args, &format!("`gt mail archive {mail}`"));
    }
    refused(&env, &["create", "Part", "--parent", mail], "gt mail");
    refused(&env, &["create", "Later", "--dep", mail], "gt mail");
    refused(&env, &["dep", "add", id(&work), mail], "gt mail");
    refused(&env, &["dep", "add", mail, id(&work)], "gt mail");
    env.gt(&["mol", "attach", "shiny", "--on", mail, "--agent", MAX])
        .fails(4);
    let inbox = env.json(&["mail", "inbox", "--agent", MAX]);
    assert_eq!(
        (ids(&inbox), &inbox[0]["subject"]),
        (vec![mail], &json!("Plan"))
    );
    // Notes and labels may be changed, and an unchanged title is accepted.
    let aside = ["--append-notes", "seen", "--add-label", "later"];
    env.gt(&[&["work", "update", mail, "--title", "Plan"], &aside[..]].concat())
        .ok();
    env.gt(&["work", "close", mail]).ok();
    assert_eq!(env.json(&["mail", "inbox", "--agent", MAX]), json!([]));
    env.gt(&["work", "reopen", mail]).ok();
    let inbox = env.json(&["mail", "inbox", "--agent", MAX]);
    assert_eq!(ids(&inbox), [mail]);
}

#[test]
fn a_molecule_is_moved_by_its_own_commands() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Work"]);
    let status = mol(&env, &["attach", "shiny", "--on", id(&item)]);
    let molecule = status["molecule"].as_str().unwrap();
    let step = id(&status["steps"][0]);
    let record = status["handoff_bead"].as_str().unwrap();
    let detach = format!("`gt mol detach --agent {MAX}`");
    refused(&env, &["close", molecule], &detach);
    let done = format!("`gt mol step done {step}`");
    refused(&env, &["close", step], &done);
    for change in [
        ["--type", "task"],
        ["--status", "open"],
        ["--status", "blocked"],
        ["--assignee", ""],
    ] {
        let update = |id| [&["update", id], &change[..]].concat();
        refused(&env, &update(molecule), &detach);
        if change[1] != "open" {
            refused(&env, &update(step), &done);
        }
    }
    for change in [["--type", "task"], ["--title", "hey"]] {
        refused(&env, &[&["update", record], &change[..]].concat(), &detach);
    }
    refused(&env, &["dep", "add", id(&item), record], &detach);
    env.gt(&["work", "update", step, "--notes", "n", "--priority", "1"])
        .ok();
    assert_eq!(mol(&env, &["status"])["total"], 5);
    // A completed step that is reopened stays assigned to its agent.
    mol(&env, &["step", "done", "design"]);
    let hint = env.gt(&["mol", "step", "start", "design", "--agent", MAX]);
    let hint = hint.fails(4).stderr;
    assert!(hint.contains(&format!("`gt work reopen {step}`")), "{hint}");
    let opened = env.json(&["work", "reopen", step]);
    assert_eq!(
        (&opened["status"], &opened["assignee"]),
        (&json!("open"), &json!(MAX))
    );
    let begun = mol(&env, &["step", "start", "design"]);
    assert_eq!(begun["current"], json!(["design"]));
    // A detached molecule cannot be reopened.
    mol(&env, &["detach"]);
    for over in [molecule, step] {
        refused(&env, &["reopen", over], "`gt mol attach FORMULA`");
    }
}

#[test]
fn steps_of_a_molecule_are_not_listed_as_work() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Work"]);
    let own = env.json(&["work", "create", "Mine", "--type", "step"]);
    let status = mol(&env, &["attach", "shiny", "--on", id(&item)]);
    let work = [id(&item), id(&own)];
    let list = |args: &[&str]| env.json(&[&["work", "list"], args].concat());
    assert_eq!(ids(&list(&[])), work);
    assert_eq!(ids(&env.json(&["work", "ready"])), work);
    mol(&env, &["step", "start", "design"]);
    assert_eq!(list(&["--status", "in_progress"]), json!([]));
    let record = &status["handoff_bead"];
    assert_eq!(list(&["--status", "pinned"])[0]["id"], *record);
    assert_eq!(list(&["--all"]).as_array().unwrap().len(), 9);
    assert_eq!(list(&["--type", "molecule"])[0]["id"], status["molecule"]);
    let steps = list(&["--parent", status["molecule"].as_str().unwrap()]);
    assert_eq!(steps.as_array().unwrap().len(), 5);
    let board = env.json(&["board"]);
    let cards = board["cards"].as_array().unwrap();
    let cards: Vec<&str> = cards.iter().map(id).collect();
    assert_eq!(cards, work);
}

#[test]
fn molecule_of_a_removed_agent_can_be_burned() {
    let env = TestEnv::with_crew(&["max"]);
    let attach = ["mol", "attach", "patrol", "--agent", "gastown/max"];
    env.gt(&attach).ok();
    env.gt(&["crew", "rm", "max"]).ok();
    env.gt(&["mol", "detach", "--agent", "gastown/crew/max"])
        .ok();
    env.gt(&["mol", "detach", "--agent", "gastown/crew/max"])
        .fails(3);
}
