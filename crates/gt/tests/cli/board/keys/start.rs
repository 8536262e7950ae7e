//! `s`, `S` and `!`, and a start that fails.

use super::*;
use crate::sessions::list_sessions;
use serde_json::Value;

#[test]
fn start_keys_differ_in_prompt_and_permissions() {
    let (env, silent) = with_project("");
    let told = create(&env, "Say it");
    let free = create(&env, "Do it [[tool=touch made-free]]");
    let board = Terminal::open(&env, 150, 45);
    for (id, mail) in [(&silent, "s"), (&told, "S"), (&free, "!")] {
        board.find(id);
        board.act(mail);
    }
    for id in [&silent, &told, &free] {
        wait_state(&env, id, "idle");
        assert!(has_container(&env, id), "{id}");
        let branch = env.git(&folder(&env, id), &["branch", "--show-current"]);
        assert_eq!(branch.trim(), id);
        assert_eq!(window_names(&env, &format!("{id}-az")), ["task"]);
        let item = env.json(&["work", "show", id]);
        assert_eq!(item["assignee"], format!("task/{id}"));
    }
    let prompt = |id: &str| list_sessions(&env, &["--work", id])[0]["initial_prompt"].clone();
    let skips = |id: &str| {
        let flag = "--dangerously-skip-permissions";
        call_of(&env, id).iter().any(|word| word == flag)
    };
    assert_eq!(prompt(&silent), Value::Null);
    for (id, title) in [(&told, "Say it"), (&free, "Do it")] {
        let prompt = prompt(id);
        let wanted = format!("Work on {id}: {title}");
        assert!(prompt.as_str().unwrap().contains(&wanted), "{prompt}");
    }
    env.wait_screen(&format!("task/{told}"), "You said: ");
    assert!(!skips(&silent) && !skips(&told) && skips(&free));
    // The agent ran its command without asking.
    board.until("its file", || {
        folder(&env, &free).join("made-free").exists()
    });
}

#[test]
fn failed_init_command_is_shown_and_retried() {
    let (env, id) = with_project("[init]\ncommands = ['test -e made-ready']\n");
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.act("s");
    board.wait("the failure", |screen| {
        screen.contains("✗ Starting") && screen.contains("ended with exit code 1")
    });
    wait_card(&env, &id, "in error", |card| {
        let reason = card["session"]["reason"].as_str().unwrap_or_default();
        card["session"]["state"] == "error"
            && card["column"] == "needs_you"
            && reason == "init: `test -e made-ready` ended with exit code 1"
    });
    board.wait("its state", |screen| {
        screen.contains("Needs you 1") && screen.contains("init: `test")
    });
    assert_eq!(env.agent(&format!("task/{id}"))["harness"], Value::Null);
    // The board offers to continue without the failed command; Escape declines.
    board.wait_text(&format!("Go on with {id}?"));
    board.press(&["Escape"]);
    board.wait("no question", |screen| !screen.contains("Go on with"));
    fs::write(folder(&env, &id).join("made-ready"), "").unwrap();
    board.act("s");
    wait_agent(&env, &id);
}

#[test]
fn a_start_goes_on_without_the_init_command_that_failed() {
    let (env, id) = with_project("[init]\ncommands = ['test -e never']\n");
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.act("S");
    board.wait_text(&format!("Go on with {id}?"));
    assert_eq!(env.agent(&format!("task/{id}"))["harness"], Value::Null);
    board.press(&["y"]);
    wait_agent(&env, &id);
    let prompt = list_sessions(&env, &["--work", &id])[0]["initial_prompt"].clone();
    assert!(prompt.as_str().unwrap().contains(&id), "{prompt}");
}

#[test]
fn a_resume_and_a_server_go_on_without_it_too() {
    let (env, id) = with_project(&format!(
        "[init]\ncommands = ['test ! -e made-broken']\n\
         [[dev_servers]]\nname = 'web'\nport = {}\ncommand = 'exec sleep 1000'\n",
        crate::dev::free_port()
    ));
    env.gt(&["task", "start", &id]).ok();
    wait_state(&env, &id, "idle");
    env.gt(&["task", "stop", &id]).ok();
    fs::write(folder(&env, &id).join("made-broken"), "").unwrap();
    let container = format!("{id}-az");
    let board = Terminal::open(&env, 150, 45);
    let is_asked_and = |key: &str| {
        board.wait_text(&format!("Go on with {id}?"));
        board.press(&[key]);
    };
    let serve = || {
        board.act("r");
        board.wait_text("Dev servers of");
        board.press(&["s"]);
    };
    board.find(&id);
    serve();
    is_asked_and("n");
    assert_eq!(
        window_names(&env, &container),
        ["task"],
        "it is no place yet"
    );
    // The remaining shell is not an agent, so `R` asks whether to continue, and starts one.
    board.act("R");
    is_asked_and("y");
    wait_agent(&env, &id);
    env.gt(&["task", "stop", &id]).ok();
    serve();
    is_asked_and("y");
    board.until("its window", || {
        has_container(&env, &id) && window_names(&env, &container) == ["task", "dev-web"]
    });
}
