//! Formulas, and the molecules poured from them.

use crate::env::TestEnv;
use crate::sessions::list_sessions;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;

const MAX: [&str; 2] = ["--agent", "gastown/crew/max"];

fn mol(env: &TestEnv, args: &[&str]) -> Value {
    env.json(&[&["mol"], args, &MAX].concat())
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

fn states(status: &Value) -> Vec<(&str, &str)> {
    let steps = status["steps"].as_array().unwrap().iter();
    steps
        .map(|step| (text(step, "step"), text(step, "state")))
        .collect()
}

fn item(env: &TestEnv, title: &str) -> String {
    let item = env.json(&["work", "create", title]);
    text(&item, "id").to_owned()
}

fn events(env: &TestEnv, kinds: &str) -> Vec<Value> {
    let found = env.json(&["events", "--type", kinds]);
    found.as_array().unwrap().clone()
}

/// Writes a formula of three steps, of which the last two depend on the first.
fn write_formula(env: &TestEnv) {
    let folder = env.town().join("formulas");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("three.toml"),
        "formula = 'three'\ndescription = 'Three steps'\n[vars.what]\ndefault = 'it'\n\
         [[steps]]\nid = 'build'\ntitle = 'Build {{what}}'\nneeds = ['plan']\n\
         [[steps]]\nid = 'plan'\ntitle = 'Plan {{what}}'\ndescription = 'Think about {{what}}.'\n\
         [[steps]]\nid = 'tell'\ntitle = 'Tell'\nneeds = ['plan']\n",
    )
    .unwrap();
}

#[test]
fn formulas_are_listed_and_a_file_replaces_them() {
    let env = TestEnv::with_rig();
    let listed = env.json(&["formula", "list"]);
    let shiny = listed.as_array().unwrap().iter();
    let shiny = shiny
        .clone()
        .find(|found| found["formula"] == "shiny")
        .unwrap();
    assert_eq!(shiny["source"], "built-in");
    assert_eq!(shiny["steps"], 5);
    write_formula(&env);
    let shown = env.json(&["formula", "show", "three"]);
    let order: Vec<&str> = shown["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| text(step, "id"))
        .collect();
    assert_eq!(order, ["plan", "build", "tell"]);
    // A rig's formula overrides the town's, only for agents of that rig.
    let folder = env.town().join("gastown/formulas");
    fs::create_dir_all(&folder).unwrap();
    let own = "formula = 'three'\n[[steps]]\nid = 'only'\ntitle = 'Only'\n";
    fs::write(folder.join("three.toml"), own).unwrap();
    let steps = |args: &[&str]| {
        let shown = env.json(&[&["formula", "show", "three"], args].concat());
        shown["steps"].as_array().unwrap().len()
    };
    assert_eq!((steps(&[]), steps(&["--rig", "gastown"])), (3, 1));
    assert_snapshot!(env.snapshot(&["formula", "show", "shiny"]), @"
    exit code: 0
    --- stdout
    shiny (built-in)
    Do one piece of work from design to submission, each step checked before the next
      {{bead}} the work item that it is about; `gt mol attach` fills it in [default: see `gt hook`]
      {{title}} what is to be done; `gt mol attach` fills it in [default: the work on your hook]
    1. design: Design: {{title}}
         Read the work item ({{bead}}), the code it touches and the tests around it. Decide what changes and what stays.
         Write down the plan in the item's notes: the approach, the files, what could go wrong.
    2. implement: Implement: {{title}} (after design)
         Carry out the plan in small commits. Where the plan turns out wrong, change it in the notes first.
    3. review: Review: {{title}} (after implement)
         Read your own change as a reviewer would: every line of the diff, the errors that can happen, the names, what is
         missing. Put right what you find.
    4. test: Test: {{title}} (after review)
         Run the project's tests and checks. Add tests that fail without the change. Everything is green at the end.
    5. submit: Submit: {{title}} (after test)
         Commit what is left, and hand the work in with `gt done`: that ends this step, once it was begun, and the molecule.
    ");
    env.gt(&["formula", "show", "nosuch"]).fails(3);
    env.gt(&["formula", "show", "../x"]).fails(2);
    env.gt(&["formula", "show", "three", "--rig", "nowhere"])
        .fails(3);
    // A broken formula is reported, and hides no other.
    fs::write(folder.join("bad.toml"), "formula = 'bad'\nsteps = [\n").unwrap();
    assert_snapshot!(env.snapshot(&["formula", "list", "--rig", "gastown"]), @"
    exit code: 0
    --- stdout
    FORMULA  STEPS  FROM
    patrol  4  built-in  One round of an agent that decides about others
    review  4  built-in  Review a change from two sides at once, and write one answer
    shiny  5  built-in  Do one piece of work from design to submission, each step checked before the next
    three  1  ~/gt/gastown/formulas/three.toml
    --- stderr
    warning: ~/gt/gastown/formulas/bad.toml:2:10 cannot be read: unclosed array, expected `]`
    ");
    let why = env.json(&["formula", "list", "--rig", "gastown"]);
    let bad = why
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["formula"] == "bad");
    let why = &bad.unwrap()["error"]["causes"][0];
    assert_eq!(why, "unclosed array, expected `]`");
    assert_snapshot!(env.snapshot(&["formula", "show", "bad", "--rig", "gastown"]), @"
    exit code: 2
    --- stderr
    error: ~/gt/gastown/formulas/bad.toml:2:10 cannot be read
    caused by: unclosed array, expected `]`
    hint: correct that line; every key is explained in the documentation
    ");
}

#[test]
fn a_molecule_is_walked_through_to_its_end() {
    let env = TestEnv::with_crew(&["max"]);
    write_formula(&env);
    let bead = item(&env, "Mend the roof");
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(mol(&env, &["status"]), Value::Null);
    let status = mol(
        &env,
        &["attach", "three", "--on", &bead, "--var", "what=a house"],
    );
    assert_eq!(status["on"], json!(bead));
    assert_eq!(status["molecule"], json!(format!("{bead}.1")));
    assert_eq!(
        states(&status),
        [("plan", "ready"), ("build", "waiting"), ("tell", "waiting")]
    );
    assert_eq!(status["steps"][1]["title"], "Build a house");
    assert_eq!(status["steps"][1]["waits_for"], json!(["plan"]));
    // The pinned handoff bead of the agent, and the items of the molecule.
    let handoff = env.json(&["work", "show", text(&status, "handoff_bead")]);
    assert_eq!(handoff["status"], "pinned");
    assert_eq!(handoff["title"], "gastown/crew/max Handoff");
    assert_eq!(handoff["deps"], json!([status["molecule"]]));
    let molecule = env.json(&["work", "show", text(&status, "molecule")]);
    assert_eq!(molecule["type"], "molecule");
    assert_eq!(molecule["labels"], json!(["formula:three", "gt:molecule"]));
    assert_eq!(molecule["ephemeral"], true);
    let ready = env.json(&["work", "ready"]);
    assert_eq!(ready.as_array().unwrap().len(), 1, "no steps: {ready}");
    let parts = ["work", "ready", "--parent", text(&status, "molecule")];
    assert_eq!(env.json(&parts).as_array().unwrap().len(), 1);
    // Only one molecule at a time, and steps only in order.
    env.gt(&[&["mol", "attach", "shiny"][..], &MAX].concat())
        .fails(4);
    env.gt(&[&["mol", "step", "start", "build"][..], &MAX].concat())
        .fails(4);
    env.gt(&[&["mol", "step", "done", "build"][..], &MAX].concat())
        .fails(4);
    env.gt(&[&["mol", "step", "start", "nosuch"][..], &MAX].concat())
        .fails(3);
    let status = mol(&env, &["step", "start", "plan"]);
    assert_eq!(status["current"], json!(["plan"]));
    assert_snapshot!(env.snapshot(&[&["mol", "status"][..], &MAX].concat()), @"
    exit code: 0
    --- stdout
    Molecule gt-[ID].1 (three) on gt-[ID]: 0 of 3 steps done.
    [>] plan  Plan a house
    [ ] build  Build a house  (after plan)
    [ ] tell  Tell  (after plan)

    Now: plan — Plan a house
    Think about a house.
    When it is done: `gt mol step done plan`
    ");
    // Starting a step twice is idempotent.
    mol(&env, &["step", "start", "plan"]);
    let status = mol(&env, &["step", "done", "plan", "--note", "use bricks"]);
    assert_eq!(status["ready"], json!(["build", "tell"]));
    assert_eq!(status["done"], 1);
    assert!(text(&status["steps"][0], "notes").ends_with("use bricks"));
    env.gt(&[&["mol", "step", "start", "plan"][..], &MAX].concat())
        .fails(4);
    // A step can be completed by its item id, without a start.
    mol(&env, &["step", "done", text(&status["steps"][2], "id")]);
    let end = mol(&env, &["step", "done", "build"]);
    assert_eq!(
        (end["status"].clone(), end["done"].clone()),
        (json!("closed"), json!(3))
    );
    assert_eq!(
        mol(&env, &["step", "done", "build"])["done"],
        3,
        "said again"
    );
    assert_eq!(mol(&env, &["status"]), Value::Null);
    env.gt(&[&["mol", "step", "done", "nosuch"][..], &MAX].concat())
        .fails(3);
    let molecule = env.json(&["work", "show", text(&end, "molecule")]);
    assert_eq!(molecule["close_reason"], "done");
    assert_eq!(
        env.json(&["work", "show", &bead])["status"],
        "open",
        "not ours to close"
    );
    // The session records the molecule and its steps, each once.
    let session = &list_sessions(&env, &[])[0];
    assert_eq!(session["molecule_id"], molecule["id"]);
    let told = env.json(&["step", "list", text(session, "id")]);
    let told: Vec<(&str, bool)> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (text(step, "name"), step["completed_at"].is_string()))
        .collect();
    assert_eq!(told, [("plan", true), ("tell", true), ("build", true)]);
    assert_eq!(events(&env, "session_step_started").len(), 3);
    let ended = events(&env, "session_step_completed");
    assert_eq!(ended.len(), 3);
    assert_eq!(ended[0]["payload"]["session_id"], session["id"]);
    assert_eq!(events(&env, "molecule_attached,molecule_done").len(), 2);
    // The handoff bead is reused for the next molecule.
    let next = mol(&env, &["attach", "shiny"]);
    assert_eq!(next["handoff_bead"], handoff["id"]);
    let notes = env.json(&["work", "show", text(&handoff, "id")]);
    let notes: Vec<&str> = text(&notes, "notes").lines().collect();
    let words = ["attached", "done", "attached"];
    assert_eq!(notes.len(), words.len(), "{notes:?}");
    for (line, word) in notes.iter().zip(words) {
        assert!(line.contains(word), "{notes:?}");
    }
}

#[test]
fn a_molecule_is_given_up_and_its_steps_with_it() {
    let env = TestEnv::with_crew(&["max"]);
    write_formula(&env);
    assert_eq!(mol(&env, &["detach"]), Value::Null);
    let status = mol(&env, &["attach", "three"]);
    mol(&env, &["step", "done", "plan"]);
    let given_up = mol(&env, &["detach"]);
    assert_eq!(
        (given_up["done"].clone(), given_up["total"].clone()),
        (json!(1), json!(3))
    );
    let steps = env.json(&[
        "work",
        "list",
        "--all",
        "--parent",
        text(&status, "molecule"),
    ]);
    let reasons: Vec<&str> = steps
        .as_array()
        .unwrap()
        .iter()
        .map(|step| text(step, "close_reason"))
        .collect();
    assert_eq!(reasons, ["done", "detached", "detached"]);
    assert_eq!(mol(&env, &["status"]), Value::Null);
    env.gt(&[&["mol", "step", "done", "plan"][..], &MAX].concat())
        .fails(3);
    // Without a session the steps are still in the event log.
    assert_eq!(events(&env, "session_step_completed").len(), 1);
    assert_eq!(events(&env, "molecule_detached")[0]["payload"]["done"], 1);
    // A session that starts later records its molecule.
    let status = mol(&env, &["attach", "three"]);
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(
        list_sessions(&env, &[])[0]["molecule_id"],
        status["molecule"]
    );
    mol(&env, &["detach"]);
    mol(&env, &["attach", "three"]);
    // A formula that cannot be poured creates no items.
    let before = env
        .json(&["work", "list", "--all"])
        .as_array()
        .unwrap()
        .len();
    mol(&env, &["detach"]);
    env.gt(&[&["mol", "attach", "review"][..], &MAX].concat())
        .fails(2);
    env.gt(&[&["mol", "attach", "three", "--var", "x=y"][..], &MAX].concat())
        .fails(2);
    env.gt(&[&["mol", "attach", "three", "--var", "what"][..], &MAX].concat())
        .fails(2);
    let twice = ["--var", "what=a", "--var", "what=b"];
    assert_snapshot!(env.snapshot(&[&["mol", "attach", "three"], &twice[..], &MAX].concat()), @r#"
    exit code: 2
    --- stderr
    error: "what" is given twice
    "#);
    env.gt(&[&["mol", "attach", "three", "--on", "gt-nosuch"][..], &MAX].concat())
        .fails(3);
    env.gt(&["mol", "attach", "three"]).fails(2);
    let after = env
        .json(&["work", "list", "--all"])
        .as_array()
        .unwrap()
        .len();
    assert_eq!(before, after);
}

#[test]
fn one_of_many_concurrent_pours_wins() {
    let env = TestEnv::with_crew(&["max"]);
    let racers: Vec<_> = (0..20)
        .map(|_| env.spawn(&[&["mol", "attach", "shiny"][..], &MAX].concat()))
        .collect();
    let codes: Vec<i32> = racers
        .into_iter()
        .map(|racer| racer.wait_with_output().unwrap().status.code().unwrap())
        .collect();
    assert_eq!(
        codes.iter().filter(|code| **code == 0).count(),
        1,
        "{codes:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == 4).count(),
        19,
        "{codes:?}"
    );
    let list = |kind: &str| {
        let found = env.json(&["work", "list", "--all", "--type", kind]);
        found.as_array().unwrap().len()
    };
    assert_eq!((list("molecule"), list("step"), list("handoff")), (1, 5, 1));
}

#[test]
fn a_kill_in_between_loses_nothing() {
    let env = TestEnv::with_crew(&["max"]);
    write_formula(&env);
    env.gt(&["crew", "start", "max"]).ok();
    let killed = |args: &[&str], point: &str| {
        let args = [&["mol"], args, &MAX].concat();
        env.kill_at_fault(&args, point);
    };
    let mut points = gt_town::work::molecule::FAULT_POINTS.iter();
    let mut next = || *points.next().unwrap();
    killed(&["attach", "three"], next());
    env.gt(&[&["mol", "attach", "three"][..], &MAX].concat())
        .fails(4);
    let molecule = mol(&env, &["status"])["molecule"].clone();
    killed(&["step", "start", "plan"], next());
    mol(&env, &["step", "start", "plan"]);
    assert_eq!(
        list_sessions(&env, &[])[0]["molecule_id"],
        molecule,
        "made up for"
    );
    assert_eq!(events(&env, "session_step_started").len(), 1);
    killed(&["step", "done", "plan"], next());
    assert_eq!(mol(&env, &["step", "done", "plan"])["done"], 1);
    assert_eq!(events(&env, "session_step_completed").len(), 1);
    killed(&["detach"], next());
    assert_eq!(mol(&env, &["detach"]), Value::Null);
    assert_eq!(points.next(), None);
}

#[test]
fn the_record_of_an_agent_stays() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    write_formula(&env);
    mol(&env, &["attach", "three"]);
    let status = mol(&env, &["status"]);
    let (molecule, record) = (text(&status, "molecule"), text(&status, "handoff_bead"));
    let other = item(&env, "Other");
    let exported = env.gt(&["work", "export"]).ok().stdout;
    for args in [
        &["close", &other, record][..],
        &["update", record, "--status", "open"],
        &["update", record, "--assignee", "gastown/amy"],
        &["update", record, "--remove-label", "gt:handoff"],
        &["dep", "remove", record, molecule],
    ] {
        let refused = env.gt(&[&["work"], args].concat()).fails(4);
        let hint = "`gt mol detach --agent gastown/crew/max`";
        assert!(refused.stderr.contains(hint), "{args:?}: {refused:?}");
    }
    // Closing several items is atomic: if one is refused, none is closed.
    assert_eq!(env.json(&["work", "show", &other])["status"], "open");
    // An import from another town does not close the handoff bead.
    let mut lines = exported
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut line = lines.find(|line| line["id"] == record).unwrap();
    line["updated_at"] = "2099-01-01T00:00:00Z".into();
    line["status"] = "closed".into();
    fs::write(env.path("one.jsonl"), line.to_string()).unwrap();
    let path = env.path("one.jsonl");
    let imported = env.json(&["work", "import", path.to_str().unwrap()]);
    assert_eq!(imported["unchanged"], 1, "{imported}");
    assert_eq!(text(&mol(&env, &["status"]), "molecule"), molecule);
    env.gt(&["work", "update", record, "--append-notes", "seen"])
        .ok();
}
