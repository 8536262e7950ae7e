//! `gt task start`: worktree, init commands, container and agent.

use super::*;
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;

/// Returns the text of a file in the worktree.
fn text(env: &TestEnv, id: &str, name: &str) -> String {
    fs::read_to_string(folder(env, id).join(name)).unwrap_or_default()
}

#[test]
fn the_id_of_an_item_means_the_agent_of_its_task() {
    let (env, id) = with_project("");
    let agent = format!("task/{id}");
    let answer = env.gt(&["peek", &id]).fails(3);
    let words = format!("{agent} is not running");
    assert!(answer.stderr.contains(&words), "{}", answer.stderr);
    env.gt(&["task", "start", &id]).ok();
    assert_eq!(env.json(&["peek", &id])["agent"], agent);
    // An unknown item id may be the name of a polecat that does not exist yet.
    let answer = env.gt(&["peek", "gt-zzzzz"]).fails(3);
    let words = "gastown/polecats/zzzzz is not running";
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
}

#[test]
fn a_task_gets_a_worktree_a_branch_a_container_and_its_item() {
    let (env, id) = with_project("[worktree]\ncopy = ['.env', 'missing']\n");
    fs::write(env.path("source-gastown/.env"), "A=1\n").unwrap();
    let started = env.json(&["task", "start", &id, "--work"]);
    let container = format!("{id}-az");
    for (field, expected) in [
        ("bead", json!(id)),
        ("agent", json!(format!("task/{id}"))),
        ("container", json!(container)),
        ("branch", json!(id)),
        ("work_dir", json!(folder(&env, &id))),
        ("harness", json!("demo")),
        ("started", json!(true)),
        ("reused", json!(false)),
        ("copied", json!([".env"])),
        ("init", json!([])),
    ] {
        assert_eq!(started[field], expected, "{field}: {started}");
    }
    assert_eq!(text(&env, &id, ".env"), "A=1\n");
    assert_eq!(env.format(&container, "#{@az_init_done}"), "1");
    let item = env.json(&["work", "show", &id]);
    assert_eq!(item["assignee"], json!(format!("task/{id}")));
    let session = &list_sessions(&env, &["--work", &id])[0];
    assert_eq!(session["branch"], json!(id));
    let prompt = session["initial_prompt"].as_str().unwrap();
    assert!(
        prompt.contains(&format!("Work on {id}: Fix it")),
        "{prompt}"
    );
    // A second start of a running task changes nothing.
    let again = env.json(&["task", "start", &id]);
    assert_eq!(again["started"], false);
    assert_eq!(again["session"], started["session"]);
    let shown = env.json(&["task", "show", &id]);
    assert_eq!(shown["title"], "Fix it");
    assert_eq!(shown["status"], "hooked");
    assert_eq!(shown["branch"], json!(id));
    assert_eq!(shown["initialized"], true);
    assert_eq!(shown["health"], "healthy");
    // After a stop the worktree and its files stay.
    env.gt(&["task", "stop", &id]).ok();
    assert_eq!(env.json(&["task", "list"])[0]["state"], "stopped");
    fs::write(folder(&env, &id).join(".env"), "A=2\n").unwrap();
    let again = env.json(&["task", "start", &id, "--prompt", "mind the gap"]);
    assert_eq!(again["reused"], true);
    assert_eq!(again["started"], true);
    assert_eq!(text(&env, &id, ".env"), "A=2\n");
    let prompt = list_sessions(&env, &["--work", &id])[0]["initial_prompt"].clone();
    let prompt = prompt.as_str().unwrap();
    assert!(prompt.ends_with("mind the gap"), "{prompt}");
    assert!(!prompt.contains("Work on"), "{prompt}");
}

#[test]
fn task_without_an_instruction_has_no_prompt_and_asks_permission() {
    let (env, id) = with_project("[harness]\nname = 'demo'\n");
    env.gt(&["task", "start", &id]).ok();
    let container = format!("{id}-az");
    assert_eq!(env.format(&container, "#{@gt_never_asks}"), "");
    assert_eq!(list_sessions(&env, &[])[0]["initial_prompt"], Value::Null);
    env.gt(&["task", "stop", &id]).ok();
    env.gt(&["task", "start", &id, "--yolo", "--work"]).ok();
    assert_eq!(env.format(&container, "#{@gt_never_asks}"), "1");
}

#[test]
fn init_commands_run_one_after_another_in_the_shell_and_once() {
    let (env, id) = with_project(
        r#"
[init]
commands = ["echo one >> made", "sleep 0.2; cat made > made-2; echo two >> made", "pwd >> made"]
"#,
    );
    let started = env.json(&["task", "start", &id]);
    let codes: Vec<&Value> = started["init"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ran| &ran["exit_code"])
        .collect();
    assert_eq!(codes, [0, 0, 0]);
    assert_eq!(text(&env, &id, "made-2"), "one\n");
    let dir = folder(&env, &id).canonicalize().unwrap();
    assert_eq!(
        text(&env, &id, "made"),
        format!("one\ntwo\n{}\n", dir.display())
    );
    let container = format!("{id}-az");
    assert_eq!(env.format(&container, "#{@az_init_done}"), "1");
    assert_eq!(env.format(&container, "#{@gt_init_done}"), "1");
    // The agent replaces the shell, and the output of the init commands is in the scrollback.
    assert_eq!(window_names(&env, &container), ["task"]);
    assert_eq!(env.agent(&format!("task/{id}"))["health"], "healthy");
    let history = env.tmux(
        gt_tmux::Command::new("capture-pane")
            .args(["-p", "-S", "-"])
            .target(gt_tmux::SessionName::try_from(container.as_str()).unwrap()),
    );
    assert!(history.contains("▸ pwd >> made"), "{history}");
    // A restart in the same container does not run the init commands again.
    let pid = env.pid(&format!("task/{id}"));
    crate::env::signal(pid, rustix::process::Signal::KILL);
    wait_until("its death to be seen", TIMEOUT, || {
        (env.agent(&format!("task/{id}"))["state"] == "crashed").then_some(())
    });
    let again = env.json(&["task", "start", &id]);
    assert_eq!(again["started"], true);
    assert_eq!(again["init"], json!([]));
    assert_eq!(text(&env, &id, "made").lines().count(), 3);
    // A new container runs the init commands again.
    env.gt(&["task", "stop", &id]).ok();
    let again = env.json(&["task", "start", &id]);
    assert_eq!(again["init"].as_array().unwrap().len(), 3);
}

#[test]
fn environment_of_the_shell_reaches_the_agent() {
    let (mut env, id) = with_project("[init]\ncommands = ['true']\n");
    let rc = env.path("rc");
    fs::write(
        &rc,
        "export LOADED=by-the-shell\nexport PATH=/own/bin:$PATH\n",
    )
    .unwrap();
    env.set("ENV", rc.to_str().unwrap());
    env.gt(&["task", "start", &id]).ok();
    let pid = env.pid(&format!("task/{id}"));
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ);
    let value = |name: &str| {
        let mut pairs = environ.split('\0');
        pairs.find_map(|pair| pair.strip_prefix(&format!("{name}=")))
    };
    assert_eq!(value("LOADED"), Some("by-the-shell"));
    let path = value("PATH").unwrap();
    assert!(path.starts_with("/own/bin:"), "{path}");
    assert_eq!(value("GT_ROLE"), Some(format!("task/{id}").as_str()));
}

#[test]
fn environment_from_shell_hooks_reaches_the_agent() {
    let (mut env, id) = with_project("[init]\ncommands = ['touch made-allowed', 'true']\n");
    // Like direnv: the prompt hook loads the environment once it is allowed.
    let hook = "_load() { [ -e made-allowed ] && export LOADED=by-the-hook; }\n\
                PROMPT_COMMAND=_load\n";
    fs::write(env.path(".bash_profile"), hook).unwrap();
    env.set("SHELL", "/bin/bash");
    env.gt(&["task", "start", &id]).ok();
    let loaded = |env: &TestEnv| {
        let pid = env.pid(&format!("task/{id}"));
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
        String::from_utf8_lossy(&environ).contains("LOADED=by-the-hook\0")
    };
    assert!(loaded(&env));
    // A later session in the same container has the environment, too.
    let pid = env.pid(&format!("task/{id}"));
    crate::env::signal(pid, rustix::process::Signal::KILL);
    wait_until("its death to be seen", TIMEOUT, || {
        (env.agent(&format!("task/{id}"))["state"] == "crashed").then_some(())
    });
    env.gt(&["task", "start", &id]).ok();
    assert!(loaded(&env));
}

#[test]
fn a_command_that_outlives_its_start_is_waited_for_by_the_next() {
    let (env, id) = with_project(
        "[init]\ncommands = ['echo x >> made; while [ ! -e made-go ]; do sleep 0.05; done; echo y >> made']\n",
    );
    let mut child = env.spawn(&["task", "start", &id]);
    wait_until("the command to run", TIMEOUT, || {
        (text(&env, &id, "made") == "x\n").then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(env.json(&["task", "show", &id])["state"], "initializing");
    let second = env.spawn(&["task", "start", &id, "--json"]);
    fs::write(folder(&env, &id).join("made-go"), "").unwrap();
    let answer = crate::env::Answer::of(second.wait_with_output().unwrap()).ok();
    assert_eq!(answer.json()["started"], true);
    assert_eq!(text(&env, &id, "made"), "x\ny\n");
}

#[test]
fn at_a_terminal_a_failure_is_asked_about() {
    let (env, id) = with_project("[init]\ncommands = ['exit 9']\n");
    // The login shell of this machine may read arbitrary startup files, so the test sets /bin/sh.
    let call = format!(
        "tmux -S {} set-option -g default-shell /bin/sh; {} task start {id} --no-attach; exec sleep 1000",
        env.socket().display(),
        env!("CARGO_BIN_EXE_gt")
    );
    env.tmux(
        gt_tmux::Command::new("new-session")
            .args([
                "-d", "-s", "person", "-x", "150", "-y", "20", "--", "env", "-u", "TMUX",
            ])
            .arg(format!("HOME={}", env.home().display()))
            .arg(format!("GT_TMUX_SOCKET={}", env.socket().display()))
            .args(["sh", "-c", &call]),
    );
    let target = gt_tmux::SessionName::try_from("person").unwrap();
    let screen = || {
        let look = gt_tmux::Command::new("capture-pane").arg("-p");
        env.tmux(look.target(target.clone()))
    };
    wait_until("the question", TIMEOUT, || {
        let asked = "`exit 9` ended with exit code 9. Continue? [y/N]";
        screen().contains(asked).then_some(())
    });
    let answer = gt_tmux::Command::new("send-keys").target(target.clone());
    env.tmux(answer.args(["y", "Enter"]));
    wait_until("the start", TIMEOUT, || {
        screen()
            .contains(&format!("task/{id} started"))
            .then_some(())
    });
}

#[test]
fn finished_task_goes_into_the_merge_queue() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    let dir = folder(&env, &id);
    fs::write(dir.join("new"), "x\n").unwrap();
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "-m", "Fix it"]);
    let mut done = env.gt_command(&["done", "--json"]);
    let done = done.env("GT_ROLE", format!("task/{id}")).current_dir(&dir);
    crate::env::run(done).ok();
    let queue = env.json(&["mq", "list"]);
    assert_eq!(queue[0]["branch"], json!(id), "{queue}");
}

#[test]
fn a_task_that_was_lost_with_its_server_comes_back_into_its_worktree() {
    let (env, id) = with_project(
        "[init]\ncommands = ['echo x >> made']\n[[background]]\ncommand = 'exec sleep 1000'\n",
    );
    env.gt(&["task", "start", &id]).ok();
    env.gt(&["save"]).ok();
    let pid = env.format(&format!("{id}-az"), "#{pid}").parse().unwrap();
    crate::env::signal(pid, rustix::process::Signal::KILL);
    wait_until("the server to be gone", TIMEOUT, || {
        (!crate::env::is_alive(pid)).then_some(())
    });
    env.gt(&["restore"]).ok();
    let agent = env.agent(&format!("task/{id}"));
    assert_eq!(agent["work_dir"], json!(folder(&env, &id)));
    let task = env.json(&["task", "start", &id]);
    assert_eq!(task["started"], false, "it runs");
    assert_eq!(task["windows"], json!(["task-1"]));
    assert_eq!(text(&env, &id, "made"), "x\n");
}

#[test]
fn continue_on_failure_does_not_run_a_failed_init_command_again() {
    let (env, id) = with_project(
        "[init]\ncommands = ['echo a >> made-a', 'echo b >> made-b; exit 3', 'echo c >> made-c']\n",
    );
    env.gt(&["task", "start", &id]).fails(1);
    let told = env.json(&["events", "--type", "init_failed"]);
    // The board runs this command for "Go on without it".
    let started = env.json(&["task", "start", &id, "--continue-on-failure"]);
    assert_eq!(started["started"], true);
    assert_eq!(started["init"][1]["exit_code"], 3, "{started}");
    for (file, content) in [("made-a", "a\n"), ("made-b", "b\n"), ("made-c", "c\n")] {
        assert_eq!(text(&env, &id, file), content, "{file} was made once");
    }
    assert_eq!(env.json(&["events", "--type", "init_failed"]), told);
    assert_eq!(env.json(&["task", "show", &id])["initialized"], true);
}

#[test]
fn failed_background_task_has_an_event_and_a_sign_on_the_card() {
    let (env, id) = with_project(
        "[[background]]\nname = 'build'\ncommand = 'while ! test -e made-go; do sleep 0.1; done; exit 7'\n\
         [[background]]\nname = 'fine'\ncommand = 'exit 0'\n",
    );
    env.gt(&["task", "start", &id]).ok();
    let card = || {
        let board = env.json(&["board"]);
        let cards = board["cards"].as_array().unwrap();
        cards.iter().find(|card| card["id"] == id).unwrap().clone()
    };
    wait_until("the one that succeeds to close", TIMEOUT, || {
        let background = &card()["background"];
        (*background == json!([{"name": "build", "state": "running"}])).then_some(())
    });
    let told = || env.json(&["events", "--type", "background_failed"]);
    assert_eq!(told(), json!([]));
    fs::write(folder(&env, &id).join("made-go"), "").unwrap();
    // Only tmux's hook detects the end.
    let told = wait_until("its event", TIMEOUT, || {
        let told = told();
        (told != json!([])).then_some(told)
    });
    assert_eq!(told[0]["actor"], format!("task/{id}"));
    assert_eq!(told[0]["payload"]["task"], "build");
    assert_eq!(told[0]["payload"]["exit_code"], 7);
    assert_eq!(
        card()["background"],
        json!([{"name": "build", "state": "failed", "exit_code": 7}])
    );
    env.gt(&["sync"]).ok();
    let again = env.json(&["events", "--type", "background_failed"]);
    assert_eq!(again.as_array().unwrap().len(), 1, "{again}");
}

#[test]
fn failed_init_command_is_reported_and_can_be_skipped() {
    let (env, id) =
        with_project("[init]\ncommands = ['echo a >> made-a', 'test -e made-b', 'exit 0']\n");
    assert_snapshot!(env.snapshot(&["task", "start", &id, "--json"]), @r#"
    exit code: 1
    --- stderr
    {"error":{"kind":"init_failed","message":"the init command `test -e made-b` ended with exit code 1","causes":[],"hints":["`gt attach task/gt-[ID]` goes to its shell; `gt task start gt-[ID]` tries it again","`gt task start gt-[ID] --continue-on-failure` continues without it"]}}
    "#);
    let task = env.json(&["task", "show", &id]);
    assert_eq!(task["state"], "error");
    assert_eq!(
        task["state_reason"],
        "init: `test -e made-b` ended with exit code 1"
    );
    assert_eq!(task["initialized"], false);
    assert_eq!(env.gt(&["start", &format!("task/{id}")]).code, 4);
    // A retry fails again while the file is missing, and does not repeat the commands that
    // succeeded.
    env.gt(&["task", "start", &id]).fails(1);
    assert_eq!(text(&env, &id, "made-a"), "a\n");
    fs::write(folder(&env, &id).join("made-b"), "").unwrap();
    let started = env.json(&["task", "start", &id]);
    assert_eq!(started["started"], true);
    assert_eq!(text(&env, &id, "made-a"), "a\n");
    assert_eq!(env.json(&["task", "show", &id])["initialized"], true);
    // Or the start continues on failure.
    let other = create(&env);
    env.gt(&["task", "start", &other]).fails(1);
    let started = env.json(&["task", "start", &other, "--continue-on-failure"]);
    assert_eq!(started["init"][1]["exit_code"], 1);
    assert_eq!(started["started"], true);
}

#[test]
fn ctrl_c_in_the_shell_ends_the_command_and_not_the_wait() {
    let (env, id) = with_project(
        "[init]\ncommands = ['touch made; exec sleep 1000']\ncontinue_on_failure = true\n",
    );
    let child = env.spawn(&["task", "start", &id, "--json"]);
    wait_until("the command to run", TIMEOUT, || {
        folder(&env, &id).join("made").exists().then_some(())
    });
    let shown = env.json(&["task", "show", &id]);
    assert_eq!(shown["state"], "initializing");
    // A concurrent start returns at once.
    let second = env.json(&["task", "start", &id]);
    assert_eq!(second["started"], false);
    assert_eq!(second["session"], Value::Null);
    env.gt(&["keys", &format!("task/{id}"), "C-c"]).ok();
    let output = child.wait_with_output().unwrap();
    let answer = crate::env::Answer::of(output).ok();
    assert_eq!(answer.json()["init"][0]["exit_code"], 130);
    assert_eq!(answer.json()["started"], true);
}

#[test]
fn background_windows_close_when_they_succeed_and_stay_when_they_fail() {
    let (env, id) = with_project(
        r#"
[[background]]
command = "echo '#{pane_id} #(touch made-evil)' > made-by-1"

[[background]]
name = "fails"
command = "exit 7"

[[background]]
name = "runs"
command = "exec sleep 1000"
"#,
    );
    let started = env.json(&["task", "start", &id]);
    assert_eq!(
        started["windows"],
        json!(["task-1", "task-fails", "task-runs"])
    );
    let container = format!("{id}-az");
    wait_until("the first to be done", TIMEOUT, || {
        let mut names = window_names(&env, &container);
        names.sort();
        (names == ["task", "task-fails", "task-runs"]).then_some(())
    });
    // The command text is for the shell only; tmux does not expand it.
    let literal = "#{pane_id} #(touch made-evil)\n";
    assert_eq!(text(&env, &id, "made-by-1"), literal);
    wait_until("the second to have failed", TIMEOUT, || {
        let windows = env.json(&["task", "show", &id])["windows"].clone();
        let failed = json!({"name": "task-fails", "running": false, "exit_code": 7});
        let runs = json!({"name": "task-runs", "running": true});
        let windows = windows.as_array().unwrap();
        (windows.contains(&failed) && windows.contains(&runs)).then_some(())
    });
    // A second start opens no windows, and all of them end with the task.
    let again = env.json(&["task", "start", &id]);
    assert_eq!(again["windows"], json!([]));
    let sleeper = env.format(&format!("{id}-az"), "#{W:#{P:#{pane_pid} }}");
    let pids: Vec<u32> = sleeper
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    env.gt(&["task", "stop", &id]).ok();
    assert_eq!(env.sessions(), Vec::<String>::new());
    for pid in pids {
        assert!(!crate::env::is_alive(pid), "{pid}");
    }
}

#[test]
fn a_start_that_is_killed_anywhere_is_finished_by_the_next() {
    let points = gt_town::workflow::task::FAULT_POINTS;
    for point in points {
        let (env, id) = with_project(
            "[worktree]\ncopy = ['.env']\n[init]\ncommands = ['echo x >> made', 'echo y >> made']\n\
             [[background]]\ncommand = 'echo z >> made-z; exec sleep 1000'\n",
        );
        fs::write(env.path("source-gastown/.env"), "A=1\n").unwrap();
        env.kill_at_fault(&["task", "start", &id, "--work", "--json"], point);
        let finished = env.json(&["task", "start", &id, "--work"]);
        assert_eq!(finished["branch"], json!(id), "{point}");
        assert_ne!(finished["session"], Value::Null, "{point}");
        let task = env.json(&["task", "show", &id]);
        assert_eq!(task["health"], "healthy", "{point}: {task}");
        assert_eq!(task["initialized"], true, "{point}");
        assert_eq!(task["windows"][0]["name"], "task-1", "{point}: {task}");
        assert_eq!(task["windows"].as_array().unwrap().len(), 1, "{point}");
        assert_eq!(text(&env, &id, "made"), "x\ny\n", "{point}");
        wait_until("the background task to run", TIMEOUT, || {
            (text(&env, &id, "made-z") == "z\n").then_some(())
        });
        assert_eq!(text(&env, &id, ".env"), "A=1\n", "{point}");
        let item = env.json(&["work", "show", &id]);
        assert_eq!(item["status"], "hooked", "{point}");
        assert_eq!(list_sessions(&env, &["--work", &id]).len(), 1, "{point}");
    }
}

#[test]
fn impossible_start_leaves_nothing_behind() {
    let (env, id) = with_project("");
    let repository = env.town().join("gastown/.repo.git");
    let untouched = |env: &TestEnv| {
        assert_eq!(env.sessions(), Vec::<String>::new());
        assert!(!folder(env, &id).exists());
        assert_eq!(env.json(&["work", "show", &id])["status"], "open");
        let branches = env.git(&repository, &["for-each-ref", &format!("refs/heads/{id}")]);
        assert_eq!(branches, "");
    };
    env.gt(&["task", "start", &id, "--harness", "nope"])
        .fails(3);
    untouched(&env);
    let role = "[session]\nstart_command = 'exit 3'\n";
    fs::write(env.town().join("roles/task.toml"), role).unwrap();
    assert_ne!(env.gt(&["task", "start", &id]).code, 0);
    untouched(&env);
    fs::remove_file(env.town().join("roles/task.toml")).unwrap();
    // An item of another agent, or a blocked item.
    env.gt(&["crew", "add", "max"]).ok();
    env.gt(&["hook", &id, "--agent", "gastown/crew/max"]).ok();
    assert_snapshot!(env.snapshot(&["task", "start", &id]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] is on the hook of gastown/crew/max
    hint: `gt unhook gt-[ID]` takes it off
    ");
    assert!(!folder(&env, &id).exists());
    env.gt(&["task", "start", "hq-abcde"]).fails(2);
}

#[test]
fn folders_and_sessions_of_others_are_left_alone() {
    let (env, id) = with_project("");
    let foreign = env.repository(&format!("gastown-{id}"));
    assert_snapshot!(env.snapshot(&["task", "start", &id]), @"
    exit code: 4
    --- stderr
    error: ~/gastown-gt-[ID] is a worktree of another repository than the rig gastown's
    hint: move it away, or set `path_template` in the project's .gt.toml
    ");
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    fs::remove_dir_all(foreign).unwrap();
    let container = format!("{id}-az");
    env.tmux(gt_tmux::Command::new("new-session").args(["-d", "-s", &container]));
    assert_snapshot!(env.snapshot(&["task", "start", &id]), @"
    exit code: 4
    --- stderr
    error: there is a tmux session gt-[ID]-az that gt did not start
    hint: rename it: `tmux rename-session -t =gt-[ID]-az NEW-NAME`
    ");
    assert!(!folder(&env, &id).exists());
}

#[test]
fn broken_project_file_is_reported_with_its_line() {
    let (env, id) = with_project("[worktree]\npath_template = '../../{bead-id}'\n");
    assert_snapshot!(env.snapshot(&["task", "start", &id]), @"
    exit code: 2
    --- stderr
    error: refs/remotes/origin/main:.gt.toml:2:17 cannot be read
    caused by: it may lead out of the project once, at its beginning
    hint: correct that line; every key is explained in the documentation
    ");
    assert_eq!(env.sessions(), Vec::<String>::new());
}

#[test]
fn project_file_that_breaks_during_a_run_blocks_no_command() {
    let (env, id) = with_project("");
    let started = env.json(&["task", "start", &id]);
    fs::write(folder(&env, &id).join(".gt.toml"), "x = 1\n").unwrap();
    let again = env.json(&["task", "start", &id]);
    assert_eq!(again["session"], started["session"]);
    let warning = again["warnings"][0].as_str().unwrap();
    assert!(warning.contains(".gt.toml:1:1"), "{warning}");
    // `--no-agent` starts no agent, not even in place of a dead one.
    let agent = format!("task/{id}");
    crate::env::signal(env.pid(&agent), rustix::process::Signal::KILL);
    wait_until("its death to be seen", TIMEOUT, || {
        (env.agent(&agent)["state"] == "crashed").then_some(())
    });
    let shell = env.json(&["task", "start", &id, "--no-agent"]);
    assert_eq!(shell["started"], false);
    assert_eq!(env.agent(&agent)["state"], "crashed");
}

#[test]
fn a_child_item_keeps_its_dots_everywhere_but_in_tmux() {
    let (env, id) = with_project("");
    let child = env.json(&["work", "create", "Part", "--parent", &id]);
    let child = child["id"].as_str().unwrap();
    assert!(child.contains('.'), "{child}");
    let started = env.json(&["task", "start", child]);
    assert_eq!(
        started["container"],
        json!(format!("{}-az", child.replace('.', "_")))
    );
    assert_eq!(started["branch"], json!(child));
    assert_eq!(started["work_dir"], json!(folder(&env, child)));
    assert_eq!(env.json(&["task", "show", child])["health"], "healthy");
}

/// Changes the path template of worktrees in the base.
fn move_template(env: &TestEnv, settings: &str) {
    let source = env.path("source-gastown");
    let template = "[worktree]\npath_template = '../trees/{bead-id}'\n";
    fs::write(source.join(".gt.toml"), format!("{template}{settings}")).unwrap();
    env.git(&source, &["commit", "--quiet", "--all", "-m", "Move"]);
    env.git(
        &env.path("gt/gastown/.repo.git"),
        &["fetch", "--quiet", "origin"],
    );
}

#[test]
fn worktree_is_found_after_the_template_changed() {
    let server = &format!(
        "[[dev_servers]]\nname = 'web'\ncommand = 'exec sleep 1000'\nport = {}\n",
        crate::dev::free_port()
    );
    let (env, id) = with_project(server);
    env.gt(&["task", "start", &id]).ok();
    let dir = folder(&env, &id);
    move_template(&env, server);
    fs::write(dir.join("code"), "x\n").unwrap();
    let shown = env.json(&["task", "show", &id]);
    assert_eq!(shown["work_dir"], json!(dir));
    assert_eq!(env.json(&["task", "list"])[0]["work_dir"], json!(dir));
    let diff = env.json(&["task", "diff", &id, "--stat"]);
    assert_eq!(diff["files"][0]["path"], "code");
    let card = || {
        let cards = env.json(&["board"]);
        let cards = cards["cards"].as_array().unwrap().clone();
        cards.into_iter().find(|card| card["id"] == json!(id))
    };
    assert_eq!(card().unwrap()["branch"]["dirty"], 1);
    env.gt(&["task", "pause", &id]).ok();
    env.gt(&["task", "stop", &id]).ok();
    env.gt(&["task", "resume", &id]).ok();
    env.gt(&["task", "stop", &id]).ok();
    let servers = env.json(&["dev", "start", &id]);
    assert_eq!(servers[0]["work_dir"], json!(dir));
    env.gt(&["task", "stop", &id]).ok();
    let started = env.json(&["task", "start", &id]);
    assert_eq!(started["work_dir"], json!(dir));
    assert_eq!(started["reused"], true);
    assert_eq!(env.agent(&format!("task/{id}"))["work_dir"], json!(dir));
    // The worktree is also found during a rebase, when no branch is checked out.
    env.git(&dir, &["add", "code"]);
    env.git(&dir, &["commit", "--quiet", "-m", "Code"]);
    let stops = ["-c", "sequence.editor=sed -i s/^pick/edit/"];
    env.git(
        &dir,
        &[&stops[..], &["rebase", "--quiet", "-i", "HEAD~1"]].concat(),
    );
    assert_eq!(env.json(&["task", "show", &id])["work_dir"], json!(dir));
    env.git(&dir, &["rebase", "--abort"]);
    // A new worktree uses the current template.
    let new = create(&env);
    let started = env.json(&["task", "start", &new]);
    assert_eq!(
        started["work_dir"],
        json!(env.path(&format!("trees/{new}")))
    );
    env.gt(&["task", "cleanup", &id, "--yes", "--force"]).ok();
    assert!(!dir.exists());
    assert_eq!(env.json(&["task", "show", &id])["work_dir"], Value::Null);
}

#[test]
fn branch_checked_out_by_another_agent_is_not_the_tasks() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    env.gt(&["task", "stop", &id]).ok();
    let repository = env.path("gt/gastown/.repo.git");
    let dir = folder(&env, &id);
    env.git(
        &repository,
        &["worktree", "remove", "--force", dir.to_str().unwrap()],
    );
    env.gt(&["crew", "add", "gastown/max"]).ok();
    let crew = env.path("gt/gastown/crew/max");
    env.git(&crew, &["switch", "--quiet", &id]);
    assert_eq!(env.json(&["task", "show", &id])["work_dir"], Value::Null);
    let plan = env.json(&["task", "cleanup", &id, "--dry-run"]);
    let steps = plan["steps"].as_array().unwrap();
    let removes = |step: &Value| step["action"] == "remove_worktree";
    assert!(!steps.iter().any(removes), "{plan}");
}

#[test]
fn task_commands_print_the_task() {
    let (env, id) = with_project("");
    assert_snapshot!(env.snapshot(&["task", "start", &id]), @"
    exit code: 0
    --- stdout
    ✓ task/gt-[ID] started in gt-[ID]-az (~/gastown-gt-[ID], branch gt-[ID])
    ");
    assert_snapshot!(env.snapshot(&["task", "start", &id]), @"
    exit code: 0
    --- stdout
    ✓ task/gt-[ID] runs already in gt-[ID]-az (~/gastown-gt-[ID], branch gt-[ID])
    ");
    wait_state(&env, &id, "idle");
    assert_snapshot!(env.snapshot(&["task", "list"]), @"
    exit code: 0
    --- stdout
    BEAD  STATE  BRANCH  WINDOWS  TITLE
    gt-[ID]  [STATE]  gt-[ID]  Fix it
    ");
    // The id is too long to be similar to a random one.
    assert_snapshot!(env.snapshot(&["task", "start", "gt-zzzzz.9.9"]), @"
    exit code: 3
    --- stderr
    error: there is no work item gt-[ID].9.9
    hint: `gt work list` shows them
    ");
}
