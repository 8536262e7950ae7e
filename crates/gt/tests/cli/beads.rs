//! A rig whose work items are in beads. A stand-in (`beads/stand_in.py`) prints the documented
//! output of `bd` and `br`; with `GT_TEST_BR` the tests also run the real `br` at that path.

mod outside_changes;

use crate::env::{Answer, TIMEOUT, TestEnv, run};
use crate::mq::{commit, item, repository};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOAST: &str = "gastown/polecats/Toast";

/// A town whose rig has a `.beads` folder, and the tracker program for it.
struct Beads {
    env: TestEnv,
    program: PathBuf,
}

impl Beads {
    /// Makes a town with a stand-in of this name.
    fn new(name: &str) -> Self {
        let beads = Self::without_program(name);
        let python = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .expect("python3");
        let python = String::from_utf8(python.stdout).unwrap();
        let text = format!("#!{}\n{}", python.trim(), include_str!("beads/stand_in.py"));
        fs::write(&beads.program, text).unwrap();
        fs::set_permissions(&beads.program, PermissionsExt::from_mode(0o755)).unwrap();
        beads
    }

    fn without_program(name: &str) -> Self {
        let mut env = TestEnv::with_rig();
        let bin = env.path("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(env.path("source-gastown/.beads")).unwrap();
        let path = std::env::var("PATH").unwrap();
        env.set("PATH", &format!("{}:{path}", bin.display()));
        let program = bin.join(name);
        Beads { env, program }
    }

    fn folder(&self) -> PathBuf {
        self.env.path("source-gastown/.beads")
    }

    /// Runs the tracker directly, without `gt`.
    #[track_caller]
    fn say(&self, words: &[&str]) -> Value {
        let mut command = self.env.command(self.program.to_str().unwrap());
        command
            .args(words)
            .env("BEADS_DIR", self.folder())
            .current_dir(self.folder().parent().unwrap());
        run(&mut command).ok().json()
    }

    #[track_caller]
    fn shown(&self, id: &str) -> Value {
        self.say(&["show", id, "--json"])[0].clone()
    }

    #[track_caller]
    fn make(&self, title: &str) -> String {
        let made = self.say(&["create", "--json", &format!("--title={title}")]);
        made["id"].as_str().unwrap().to_owned()
    }

    /// Returns the ids of all beads, from either documented shape of the listing.
    fn all(&self) -> Vec<String> {
        let all = self.say(&["list", "--all", "--json"]);
        let all = all.get("issues").unwrap_or(&all);
        ids(all).into_iter().map(str::to_owned).collect()
    }

    /// Returns the calls of the stand-in, each with its actor.
    fn calls(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder().join("calls.log")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn trouble(&self, kind: &str, command: &str) {
        fs::write(self.folder().join(format!("{kind}.tmp")), command).unwrap();
    }

    fn no_trouble(&self) {
        for kind in ["fail", "hang"] {
            let _ = fs::remove_file(self.folder().join(format!("{kind}.tmp")));
        }
    }

    fn set(&self, line: &str) {
        let file = self.env.town().join("town.toml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{text}\n[rigs.gastown]\n{line}\n")).unwrap();
    }
}

/// Runs a test with both stand-ins, and with the real `br` if given.
fn each(test: impl Fn(&Beads)) {
    test(&Beads::new("bd"));
    with("br", test);
}

/// Runs a test with one stand-in, and with the real `br` if given.
fn with(name: &str, test: impl Fn(&Beads)) {
    test(&Beads::new(name));
    if let Some(real) = std::env::var_os("GT_TEST_BR") {
        let beads = Beads::without_program("br");
        std::os::unix::fs::symlink(Path::new(&real), &beads.program).unwrap();
        fs::remove_dir(beads.folder()).unwrap();
        let source = beads.env.path("source-gastown");
        let mut init = beads.env.command(beads.program.to_str().unwrap());
        run(init.args(["init", "--prefix", "demo"]).current_dir(source)).ok();
        test(&beads);
    }
}

fn ids(items: &Value) -> Vec<&str> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn work_commands_go_through_beads() {
    each(|beads| {
        let env = &beads.env;
        let first = item(env, &["First", "-p", "1", "--type", "bug", "--label", "ui"]);
        assert!(first.starts_with("demo-"), "{first}");
        let shown = beads.shown(&first);
        assert_eq!(
            (&shown["title"], &shown["status"]),
            (&json!("First"), &json!("open"))
        );
        assert_eq!(
            (&shown["priority"], &shown["issue_type"]),
            (&json!(1), &json!("bug"))
        );
        assert_eq!(shown["labels"], json!(["ui"]));

        let second = item(env, &["Second", "--description=-d", "--dep", &first]);
        env.gt(&["work", "update", &second, "--title=--title"]).ok();
        let part = item(env, &["A part", "--parent", &first]);
        assert!(part.starts_with(&format!("{first}.")), "{part}");
        let shown = env.json(&["work", "show", &second]);
        assert_eq!(
            (&shown["title"], &shown["description"]),
            (&json!("--title"), &json!("-d"))
        );
        assert_eq!(shown["blocked_by"], json!([first]));
        assert_eq!(env.json(&["work", "show", &part])["parent"], json!(first));
        let ready = env.json(&["work", "ready", "--rig", "gastown"]);
        assert_eq!(ids(&ready), [&first, &part]);

        env.gt(&[
            "work", "update", &first, "--title", "Changed", "--notes", "n",
        ])
        .ok();
        env.gt(&[
            "work",
            "update",
            &first,
            "--add-label",
            "x",
            "--remove-label",
            "ui",
        ])
        .ok();
        let shown = beads.shown(&first);
        assert_eq!(
            (&shown["title"], &shown["notes"]),
            (&json!("Changed"), &json!("n"))
        );
        assert_eq!(shown["labels"], json!(["x"]));
        env.gt(&["work", "close", &first, "--reason", "enough"])
            .ok();
        let shown = beads.shown(&first);
        assert_eq!(shown["status"], "closed");
        assert_eq!(shown["close_reason"], "enough");
        assert_eq!(
            env.json(&["work", "show", &second])["blocked_by"],
            json!([])
        );
        env.gt(&["work", "reopen", &first]).ok();
        assert_eq!(beads.shown(&first)["status"], "open");
        env.gt(&["work", "dep", "remove", &second, &first]).ok();
        assert!(
            beads.shown(&second)["dependencies"]
                .as_array()
                .is_none_or(Vec::is_empty)
        );
    });
}

#[test]
fn changes_in_beads_are_seen() {
    each(|beads| {
        let env = &beads.env;
        let [first, second] = ["One", "Two"].map(|title| beads.make(title));
        beads.say(&["dep", "add", &second, &first, "--type=blocks", "--json"]);
        assert_eq!(ids(&env.json(&["work", "ready"])), [&first]);
        assert_eq!(
            env.json(&["work", "show", &second])["blocked_by"],
            json!([first])
        );
        beads.say(&[
            "update",
            &first,
            "--json",
            "--status=deferred",
            "--title=Uno",
        ]);
        assert_eq!(env.json(&["work", "ready"]), json!([]));
        let shown = env.json(&["work", "show", &first]);
        assert_eq!(
            (&shown["title"], &shown["status"]),
            (&json!("Uno"), &json!("blocked"))
        );
        assert_eq!(shown["labels"], json!(["beads:deferred"]));
        beads.say(&["close", &first, "--reason=no", "--json"]);
        assert_eq!(ids(&env.json(&["work", "ready"])), [&second]);
        assert_eq!(ids(&env.json(&["work", "search", "uno"])), [&first]);
        // `gt`'s internal label is never written to beads.
        assert_eq!(beads.shown(&first)["labels"], Value::Null);
    });
}

#[test]
fn acceptance_criteria_are_shown_and_stay_in_beads() {
    each(|beads| {
        let env = &beads.env;
        let id = beads.make("The work");
        let update = ["update", &id, "--json", "--description=Do it."];
        beads.say(&[&update[..], &["--acceptance=- it works"]].concat());
        let text = env.gt(&["work", "show", &id]).ok().stdout;
        let body = "Do it.\n\nAcceptance criteria:\n- it works\n";
        assert!(text.contains(body), "{text}");
        // Only the description is written back.
        env.gt(&["work", "update", &id, "--description", "Do it soon."])
            .ok();
        let shown = beads.shown(&id);
        assert_eq!(shown["description"], "Do it soon.");
        assert_eq!(shown["acceptance_criteria"], "- it works");
        beads.say(&["update", &id, "--json", "--acceptance=- it works well"]);
        let found = env.json(&["work", "show", &id]);
        assert_eq!(found["acceptance_criteria"], "- it works well");
        assert_eq!(found["description"], "Do it soon.");
    });
}

#[test]
fn a_bead_goes_all_the_way_to_the_base() {
    each(|beads| {
        let env = &beads.env;
        let id = beads.make("The work");
        assert_eq!(ids(&env.json(&["work", "ready"])), [&id]);
        let slung = env.json(&["sling", &id]);
        assert_eq!(slung["agent"], TOAST);
        let shown = beads.shown(&id);
        assert_eq!(
            (&shown["status"], &shown["assignee"]),
            (&json!("hooked"), &json!(TOAST))
        );
        let pid = env.pid(TOAST);
        let variables = fs::read_to_string(format!("/proc/{pid}/environ"));
        let expected = format!("BEADS_DIR={}", beads.folder().display());
        assert!(variables.is_err() || variables.unwrap().contains(&expected));
        let primed = env.gt(&["prime", "--agent", TOAST]);
        assert!(primed.stdout.contains(&id), "{primed:?}");
        let dir = env.town().join("gastown/polecats/Toast");
        let tip = commit(env, &dir, "a.txt", "a\n");
        env.gt(&["done", "--agent", TOAST, "-m", "it works"]).ok();
        let shown = beads.shown(&id);
        assert_eq!(shown["status"], "in_progress");
        assert_eq!(shown["assignee"], "gastown/refinery");
        assert!(
            shown["notes"].as_str().unwrap().contains("it works"),
            "{shown}"
        );
        env.gt(&["mq", "run"]).ok();
        let shown = beads.shown(&id);
        assert_eq!(shown["status"], "closed", "{shown}");
        let merged = ["merge-base", "--is-ancestor", &tip, "refs/gt/merged/main"];
        env.git(&repository(env), &merged);
        wait_until("its session is over", TIMEOUT, || {
            env.running().is_empty().then_some(())
        });
    });
}

#[test]
fn a_repair_is_a_part_of_its_bead() {
    with("bd", |beads| {
        let env = &beads.env;
        beads.set("merge.validate = ['false']");
        env.gt(&["crew", "add", "max"]).ok();
        let id = beads.make("Bad work");
        env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
        commit(env, &env.town().join("gastown/crew/max"), "a.txt", "a\n");
        env.gt(&["done", "--agent", "gastown/max"]).ok();
        // After a kill the repair is not created a second time.
        env.kill_at_fault(&["mq", "run"], "beads.created");
        env.gt(&["mq", "run"]);
        assert_eq!(beads.all().len(), 2);
        let repair = format!("{id}.1");
        let shown = beads.shown(&repair);
        assert_eq!(
            (&shown["issue_type"], &shown["status"]),
            // A polecat gets the repair at once.
            (&json!("bug"), &json!("hooked"))
        );
        let queue = env.json(&["mq", "list"]);
        assert_eq!(queue[0]["repair"], json!(repair));
    });
}

#[test]
fn killed_run_of_recurring_work_leaves_no_second_bead() {
    each(|beads| {
        let env = &beads.env;
        env.gt(&["schedule", "pause"]).ok();
        let add = ["schedule", "add", "--cron", "@daily", "patrol"];
        env.gt(&[&add[..], &["--name", "nightly"]].concat()).ok();
        let now = ["schedule", "run", "nightly"];
        let killed = run(env.gt_command(&now).env("GT_FAULT", "beads.created"));
        assert_eq!(killed.code, -9, "{killed:?}");
        assert_eq!(beads.all().len(), 1);
        assert_eq!(env.json(&["schedule", "list"])["queue"], json!([]));
        env.gt(&now).ok();
        let made = beads.all();
        assert_eq!(made.len(), 1);
        let list = env.json(&["schedule", "list"]);
        assert_eq!(list["queue"][0]["bead"], json!(made[0]), "{list}");
        assert_eq!(list["recurring"][0]["runs"], 1, "{list}");
        // The next run has a bead of its own.
        env.gt(&["work", "close", &made[0]]).ok();
        env.gt(&now).ok();
        assert_eq!(beads.all().len(), 2);
    });
}

#[test]
fn nothing_is_run_while_nothing_changes() {
    let beads = Beads::new("bd");
    let env = &beads.env;
    env.gt(&["crew", "add", "max"]).ok();
    let id = beads.make("The work");
    let agent = ["--agent", "gastown/max"];
    env.gt(&["hook", &id, agent[0], agent[1]]).ok();
    env.gt(&["work", "list"]).ok();
    let before = beads.calls().len();
    env.gt(&["hook", agent[0], agent[1]]).ok();
    env.gt(&["prime", agent[0], agent[1]]).ok();
    env.gt(&["work", "list"]).ok();
    env.gt(&["mail", "inbox", agent[0], agent[1]]);
    assert_eq!(beads.calls().len(), before, "{:?}", beads.calls());
    // The write carries the actor.
    env.gt_command(&["work", "close", &id])
        .env("GT_ROLE", "gastown/max")
        .output()
        .unwrap();
    let last = beads.calls().pop().unwrap();
    assert_eq!(
        (&last[0], &last[1]),
        (&json!("gastown/max"), &json!("close"))
    );
}

#[track_caller]
fn tells_of_beads(answer: Answer, words: &str) {
    let answer = answer.fails(1);
    assert!(answer.stderr.contains("beads of gastown"), "{answer:?}");
    assert!(answer.stderr.contains(words), "{answer:?}");
}

#[test]
fn failing_beads_program_is_an_error_and_changes_nothing() {
    let beads = Beads::new("br");
    let env = &beads.env;
    env.gt(&["crew", "add", "max"]).ok();
    let id = beads.make("The work");
    env.gt(&["work", "list"]).ok();
    beads.trouble("fail", "update");
    let hook = ["hook", &id, "--agent", "gastown/max"];
    tells_of_beads(env.gt(&hook), "database is locked");
    assert_eq!(env.json(&["hook", "--agent", "gastown/max"]), Value::Null);
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    beads.trouble("fail", "list");
    beads.make("Another");
    for look in [
        vec!["work", "list"],
        vec!["work", "ready"],
        vec!["work", "show", &id],
    ] {
        tells_of_beads(env.gt(&look), "database is locked");
    }
    beads.no_trouble();
    env.gt(&hook).ok();
    assert_eq!(beads.shown(&id)["status"], "hooked");
}

#[test]
fn without_a_program_the_towns_own_items_are_used_unless_beads_is_wanted() {
    let beads = Beads::without_program("bd");
    let env = &beads.env;
    let mut env_path = env.gt_command(&["doctor"]);
    // A PATH without bd and br of the machine.
    let only = "/usr/bin:/bin";
    assert_snapshot!(run(env_path.env("PATH", only)).rendered(env), @r#"
    exit code: 0
    --- stdout
    ✓ tmux: 3.3a
    ✓ git: git version 2.39.5
    ✓ town: ~/gt
    ✓ socket: ~/s (no server runs yet)
    ✓ permissions: only you can read the town
    ✓ disk: [N] MB free, and the town can be written
    ✓ rigs: 1 registered
    ✓ journal: nothing is written yet
    ✓ work: nothing is written yet
    ! beads: gastown has its items in the town, although there is ~/source-gastown/.beads: bd or br is not on PATH
      hint: install it, or set `beads = "off"` for the rig in town.toml
    ✓ roles: all can be read
    ✓ harnesses: installed: demo
    ✓ prices: all can be read
    ✓ names: agent names are unique
    ✓ agents: 0 run, all well
    ✓ sandbox: sandbox.default is none: only roles that name one have one
    ✓ pids: no stray processes
    ✓ leftovers: no files of killed processes
    ✓ hooks: no warnings in the log of the last hour
    ✓ events: the log is as gt wrote it
    "#);
    let id = item(env, &["Own"]);
    assert!(id.starts_with("gt-"), "{id}");
    beads.set("beads = 'on'");
    assert_snapshot!(run(env.gt_command(&["work", "list"]).env("PATH", only)).rendered(env), @r#"
    exit code: 5
    --- stderr
    error: bd or br is not on PATH
    hint: install beads, or set `beads = "off"` for the rig in town.toml
    "#);
    let town = env.town().join("town.toml");
    let text = fs::read_to_string(&town).unwrap();
    fs::write(&town, text.replace("'on'", "'off'")).unwrap();
    assert_eq!(ids(&env.json(&["work", "list"])), [&id]);
}

#[test]
fn a_kill_in_between_loses_nothing() {
    with("bd", |beads| {
        let env = &beads.env;
        env.gt(&["crew", "add", "max"]).ok();
        let killed = |point: &str, args: &[&str]| {
            assert!(gt_town::records::items::BEADS_FAULT_POINTS.contains(&point));
            env.kill_at_fault(args, point);
        };
        killed("beads.created", &["work", "create", "The work"]);
        let ready = env.json(&["work", "ready"]);
        let id = ids(&ready)[0].to_owned();

        let hook = ["hook", &id, "--agent", "gastown/max"];
        killed("beads.written", &hook);
        assert_eq!(beads.shown(&id)["status"], "hooked");
        assert_eq!(env.json(&["hook", "--agent", "gastown/max"]), Value::Null);
        assert_eq!(ids(&env.json(&["work", "ready"])), [&id]);
        env.gt(&hook).ok();

        killed("beads.written", &["unhook", "--agent", "gastown/max"]);
        assert_eq!(beads.shown(&id)["status"], "open");
        // The item is still on the hook, and the next command writes that to beads again.
        assert_eq!(
            env.json(&["hook", "--agent", "gastown/max"])["status"],
            "hooked"
        );
        assert_eq!(beads.shown(&id)["status"], "hooked");
        killed("beads.written", &["work", "close", &id]);
        assert_eq!(env.json(&["work", "show", &id])["status"], "closed");
    });
}

#[test]
fn changes_without_the_program_are_sent_to_beads_later() {
    with("bd", |beads| {
        let env = &beads.env;
        let [id, other] = ["The work", "Other"].map(|title| beads.make(title));
        env.gt(&["work", "list"]).ok();
        let away = env.path("away");
        fs::rename(&beads.program, &away).unwrap();
        env.gt(&["work", "close", &id, "--reason", "meanwhile"])
            .ok();
        env.gt(&[
            "work", "update", &other, "--title", "Ours", "--notes", "ours",
        ])
        .ok();
        fs::rename(&away, &beads.program).unwrap();
        beads.say(&["update", &other, "--json", "--title=Theirs"]);
        assert_eq!(env.json(&["work", "show", &other])["title"], "Theirs");
        let shown = beads.shown(&id);
        assert_eq!(
            (&shown["status"], &shown["close_reason"]),
            (&json!("closed"), &json!("meanwhile"))
        );
        let shown = beads.shown(&other);
        assert_eq!(
            (&shown["title"], &shown["notes"]),
            (&json!("Theirs"), &json!("ours"))
        );
    });
}

#[test]
fn racing_claims_put_a_bead_on_one_hook() {
    const RACERS: usize = 8;
    with("bd", |beads| {
        let env = &beads.env;
        let names: Vec<String> = (0..RACERS).map(|number| format!("w{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        env.gt(&[&["crew", "add"], names.as_slice()].concat()).ok();
        let id = beads.make("The work");
        let racers: Vec<_> = names
            .iter()
            .map(|name| env.spawn(&["hook", &id, "--agent", &format!("gastown/{name}")]))
            .collect();
        let codes: Vec<i32> = racers
            .into_iter()
            .map(|racer| Answer::of(racer.wait_with_output().unwrap()).code)
            .collect();
        assert_eq!(
            codes.iter().filter(|code| **code == 0).count(),
            1,
            "{codes:?}"
        );
        assert_eq!(codes.iter().filter(|code| **code == 4).count(), RACERS - 1);
        let winner = codes.iter().position(|code| *code == 0).unwrap();
        let shown = beads.shown(&id);
        assert_eq!(shown["assignee"], format!("gastown/crew/w{winner}"));
    });
}

#[test]
fn claim_of_another_holder_is_taken_back() {
    with("bd", |beads| {
        let env = &beads.env;
        env.gt(&["crew", "add", "max"]).ok();
        let id = beads.make("The work");
        env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
        env.gt(&["work", "update", &id, "--status", "in_progress"])
            .ok();
        assert_eq!(beads.shown(&id)["status"], "in_progress");
        env.gt(&["work", "update", &id, "--status", "open"])
            .fails(4);
        env.gt(&["work", "update", &id, "--status", "hooked"]).ok();
        assert_eq!(beads.shown(&id)["status"], "hooked");
        // An item that was closed and reopened in beads is still on the hook.
        beads.say(&["close", &id, "--reason=done", "--json"]);
        let opened = env.json(&["work", "reopen", &id]);
        assert_eq!(
            (&opened["status"], &opened["assignee"]),
            (&json!("hooked"), &json!("gastown/crew/max"))
        );
        env.gt(&["unhook", "--agent", "gastown/max"]).ok();
        let shown = beads.shown(&id);
        assert_eq!(
            (&shown["status"], &shown["assignee"]),
            (&json!("open"), &Value::Null)
        );
    });
}

#[test]
fn molecules_and_mail_stay_in_the_town() {
    with("br", |beads| {
        let env = &beads.env;
        env.gt(&["crew", "add", "max"]).ok();
        let id = beads.make("The work");
        let agent = ["--agent", "gastown/max"];
        env.gt(&["hook", &id, agent[0], agent[1]]).ok();
        env.gt(&["mol", "attach", "shiny", "--on", &id, agent[0], agent[1]])
            .ok();
        env.gt(&["mail", "send", "gastown/max", "-s", "Hello", "-m", "x"])
            .ok();
        let status = env.json(&["mol", "status", agent[0], agent[1]]);
        assert_eq!(status["formula"], json!("shiny"), "{status}");
        assert_eq!(beads.all(), [id.as_str()]);
        // The molecule uses up no child ids of beads.
        let part = item(env, &["A part", "--parent", &id]);
        assert_eq!(part, format!("{id}.1"));
    });
}

/// Needs the real `br`: the stand-in has no import.
#[test]
fn the_real_program_imports_what_is_exported() {
    let Some(real) = std::env::var_os("GT_TEST_BR") else {
        return;
    };
    let env = TestEnv::with_rig();
    let whole = item(&env, &["Whole", "--label", "ui", "--type", "epic"]);
    let part = item(&env, &["Part", "--parent", &whole]);
    let last = item(&env, &["Last", "--dep", &part]);
    env.gt(&["hook", &last, "--agent", "mayor"]).ok();
    env.gt(&["work", "close", &part, "--reason", "no need"])
        .ok();
    let folder = env.path("elsewhere");
    fs::create_dir_all(&folder).unwrap();
    let br = |words: &[&str]| {
        let mut command = env.command(Path::new(&real).to_str().unwrap());
        run(command.args(words).current_dir(&folder)).ok()
    };
    br(&["init", "--prefix", "gt"]);
    let exported = env.gt(&["work", "export"]).ok().stdout;
    fs::write(folder.join(".beads/issues.jsonl"), exported).unwrap();
    br(&["sync", "--import-only", "--json"]);
    let shown = br(&["show", &whole, &part, &last, "--json"]).json();
    assert_eq!(
        (&shown[0]["issue_type"], &shown[0]["labels"][0]),
        (&json!("epic"), &json!("ui"))
    );
    let edge = |place: usize| &shown[place]["dependencies"][0];
    assert_eq!(edge(1)["id"], whole, "{shown}");
    assert_eq!(edge(1)["dependency_type"], "parent-child", "{shown}");
    assert_eq!(shown[1]["close_reason"], "no need", "{shown}");
    assert_eq!(edge(2)["id"], part, "{shown}");
    assert_eq!(edge(2)["dependency_type"], "blocks", "{shown}");
    assert_eq!(shown[2]["status"], "open", "{shown}");
}

#[test]
fn record_of_an_agent_that_is_gone_from_beads_counts_as_closed() {
    let beads = Beads::new("bd");
    let env = &beads.env;
    let id = beads.make("The work");
    let file = beads.folder().join("issues.jsonl");
    let before = fs::read_to_string(&file).unwrap();
    let mut record: Value = serde_json::from_str(before.lines().next().unwrap()).unwrap();
    record["id"] = json!("demo-zzz");
    record["status"] = json!("pinned");
    record["labels"] = json!(["gt:handoff"]);
    record["assignee"] = json!("mayor");
    fs::write(&file, format!("{before}{record}\n")).unwrap();
    assert_eq!(env.json(&["work", "show", "demo-zzz"])["status"], "pinned");
    env.gt(&["work", "close", "demo-zzz"]).fails(4);
    fs::write(&file, before).unwrap();
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    assert_eq!(env.json(&["work", "show", "demo-zzz"])["status"], "closed");
}

#[test]
fn item_that_beads_closed_is_closed_here_even_if_beads_then_refuses() {
    let beads = Beads::new("bd");
    let env = &beads.env;
    env.gt(&["crew", "add", "max"]).ok();
    let [first, second] = ["First", "Second"].map(|title| beads.make(title));
    env.gt(&["hook", &first, "--agent", "gastown/max"]).ok();
    beads.trouble("fail", &format!("close {second}"));
    let close = ["work", "close", &first, &second];
    tells_of_beads(env.gt(&close), "database is locked");
    assert_eq!(env.json(&["work", "show", &first])["status"], "closed");
    assert_eq!(env.json(&["hook", "--agent", "gastown/max"]), Value::Null);
    assert_eq!(env.json(&["work", "show", &second])["status"], "open");
    beads.no_trouble();
    env.gt(&close).ok();
    assert_eq!(beads.shown(&second)["status"], "closed");
}
