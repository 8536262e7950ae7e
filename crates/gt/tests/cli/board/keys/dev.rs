//! `r`: dev servers, with and without an agent.

use super::*;
use crate::dev::free_port;
use crate::env::TIMEOUT;
use gt_tmux::testing::wait_until;
use serde_json::Value;
use std::net::TcpListener;

fn server(env: &TestEnv, id: &str) -> Value {
    env.json(&["dev", "list", id])[0].clone()
}

/// Waits for a file of the worktree, and returns the number in it.
fn written(dir: &Path, name: &str) -> u16 {
    wait_until(name, TIMEOUT, || {
        let text = fs::read_to_string(dir.join(name)).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    })
}

#[test]
fn a_server_is_started_restarted_opened_and_stopped() {
    let (mut env, id) = with_project(&format!(
        "[init]\ncommands = ['echo ready > made-ready']\n\
         [[dev_servers]]\nname = 'web'\nport = {}\n\
         command = 'cat made-ready > made-before; echo $PORT > made-port; exec sleep 1000'\n",
        free_port()
    ));
    let browser = program(
        &env,
        "browser",
        "#!/bin/sh\necho \"$1\" > \"$HOME/opened\"\n",
    );
    env.set("BROWSER", browser.to_str().unwrap());
    let board = Terminal::open(&env, 150, 45);
    let serve = |keys: &[&str]| {
        board.act("r");
        board.wait_text("Dev servers of");
        board.press(keys);
    };
    let container = format!("{id}-az");
    let dir = folder(&env, &id);
    board.wait_text(&id);
    // The worktree, the container and the init commands come first.
    serve(&["s"]);
    let port = written(&dir, "made-port");
    let before = fs::read_to_string(dir.join("made-before")).unwrap();
    assert_eq!(before, "ready\n");
    board.until("its window", || {
        window_names(&env, &container).contains(&"dev-web".to_owned())
    });
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    assert_eq!(server(&env, &id)["port"], port);
    let pid = server(&env, &id)["pid"].clone();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    board.wait_text(&format!(" :{port}"));
    // A restart keeps the port and replaces the process.
    fs::remove_file(dir.join("made-port")).unwrap();
    drop(listener);
    serve(&["j", "r"]);
    assert_eq!(written(&dir, "made-port"), port);
    board.until("another process", || {
        let now = server(&env, &id)["pid"].clone();
        now.is_u64() && now != pid
    });
    // An agent starts in the same container.
    board.act("s");
    wait_agent(&env, &id);
    assert_eq!(window_names(&env, &container), ["task", "dev-web"]);
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    serve(&["j", "o"]);
    let url = format!("http://localhost:{port}/\n");
    board.until("the browser", || {
        fs::read_to_string(env.path("opened")).is_ok_and(|text| text == url)
    });
    drop(listener);
    serve(&["j", "x"]);
    board.until("its window to be gone", || {
        window_names(&env, &container) == ["task"]
    });
    assert_eq!(server(&env, &id)["state"], "stopped");
}
