//! The end of an adopted program that runs in a person's shell.

use super::Desk;
use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use crate::sessions;
use crate::watch::Watch;
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

/// Waits until the session of the agent has ended, and returns it. Reads only the journal, so it
/// does not itself detect the end.
fn ended(env: &TestEnv) -> Value {
    wait_until("the end is recorded", TIMEOUT, || {
        let known = sessions::list_sessions(env, &["--agent", "agent/helper"])[0].clone();
        (known["status"] == "stopped").then_some(known)
    })
}

fn adopt(env: &TestEnv, desk: &Desk<'_>, options: &[&str]) -> u32 {
    let pid = desk.start_program("")["pid"].to_string();
    let words = [&["adopt", &pid, "--name", "helper"], options].concat();
    env.json(&words);
    env.gt(&["wait", "agent/helper", "--until", "idle", "--timeout", "30"])
        .ok();
    pid.parse().unwrap()
}

/// Repairs the terminal: a killed or stopped program leaves it without echo and line discipline.
/// Returns when the shell has done so: before, Enter does not end a line.
fn sane(desk: &Desk<'_>) {
    let line = "stty sane; echo repaired-$((6 * 7))";
    desk.tmux(&["send-keys", "-t", "=desk:", "-l", line]);
    desk.tmux(&["send-keys", "-t", "=desk:", "C-j"]);
    desk.wait_screen("repaired-42");
}

fn check_shell_is_left_alone(env: &TestEnv, desk: &Desk<'_>) {
    // The process that records the end releases the container afterwards.
    wait_until("it is off the list", TIMEOUT, || {
        env.running().is_empty().then_some(())
    });
    wait_until("only the person's session is left", TIMEOUT, || {
        (desk.sessions() == ["desk"]).then_some(())
    });
    sane(desk);
    desk.run("echo the shell goes on-$((6 * 7))");
    desk.wait_screen("the shell goes on-42");
    assert_eq!(
        desk.candidates(),
        Vec::<Value>::new(),
        "nothing was started"
    );
}

fn check_exit(env: &TestEnv, socket: &Path) {
    let desk = Desk::open(env, socket);
    let pid = adopt(env, &desk, &[]);
    desk.run("/exit");
    // Until the program has exited, it reads what is typed for the shell.
    wait_until("the program has exited", TIMEOUT, || {
        (!is_alive(pid)).then_some(())
    });
    // The program's hook records the end, without another command.
    let known = ended(env);
    assert_eq!(known["outcome"], "exited", "{known}");
    assert_eq!(known["exit_code"], Value::Null, "{known}");
    check_shell_is_left_alone(env, &desk);
    wait_until("no hook is left", TIMEOUT, || {
        (!desk.settings().exists()).then_some(())
    });
}

#[test]
fn program_that_exits_is_recorded_as_exited() {
    let env = TestEnv::with_town();
    check_exit(&env, &env.socket());
}

#[test]
fn program_that_exits_on_another_server_is_recorded_as_exited() {
    let env = TestEnv::with_town();
    check_exit(&env, &env.path("other"));
}

#[test]
fn conversation_that_ends_is_not_the_programs_end() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.socket());
    let pid = adopt(&env, &desk, &[]);
    desk.run("/clear");
    env.gt(&["nudge", "agent/helper", "hello there"]).ok();
    env.wait_screen("agent/helper", "You said: hello there");
    signal(pid, Signal::KILL);
    wait_until("a sync takes it off the list", TIMEOUT, || {
        env.gt(&["sync"]).ok();
        env.running().is_empty().then_some(())
    });
    assert_eq!(ended(&env)["outcome"], "crash");
}

#[test]
fn suspended_program_gets_no_keys() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.socket());
    let pid = adopt(&env, &desk, &[]);
    signal(pid, Signal::STOP);
    wait_until("the shell has the terminal", TIMEOUT, || {
        let screen = desk.tmux(&["capture-pane", "-p", "-t", "=desk:"]);
        screen.contains("Stopped").then_some(())
    });
    // Another program of the person shows an empty input line just like the agent's.
    let rule = "─".repeat(120);
    let prompt = format!("{rule}\n❯ \n{rule}\n  ? for shortcuts\n");
    std::fs::write(desk.folder.join("prompt"), prompt).unwrap();
    sane(&desk);
    desk.run("clear; cat prompt -");
    wait_until("the other program runs", TIMEOUT, || {
        let screen = desk.tmux(&["capture-pane", "-p", "-t", "=desk:"]);
        (screen.contains("? for shortcuts") && !screen.contains("Stopped")).then_some(())
    });
    let queued = env.json(&["nudge", "agent/helper", "touch reached", "--timeout", "1"]);
    assert_eq!(queued["delivered"], "queue", "{queued}");
    let screen = desk.tmux(&["capture-pane", "-p", "-t", "=desk:"]);
    assert!(!screen.contains("touch reached"), "{screen}");
    assert!(!desk.folder.join("reached").exists());
}

#[test]
fn program_that_is_killed_is_recorded_as_a_crash() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = adopt(&env, &desk, &[]);
    let watch = Watch::begin(&env);
    signal(pid, Signal::KILL);
    // `gt watch` records the end.
    watch.expect_of("agent/helper", "crashed");
    let known = ended(&env);
    assert_eq!(known["outcome"], "crash", "{known}");
    watch.end();
    assert!(!is_alive(pid));
    check_shell_is_left_alone(&env, &desk);
}

#[test]
fn end_without_hooks_is_recorded_by_the_next_look() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.socket());
    let pid = adopt(&env, &desk, &["--no-hooks"]);
    desk.run("/exit");
    wait_until("the program has exited", TIMEOUT, || {
        (!is_alive(pid)).then_some(())
    });
    wait_until("a sync takes it off the list", TIMEOUT, || {
        env.gt(&["sync"]).ok();
        env.running().is_empty().then_some(())
    });
    // The exit status is unknown here, so a clean exit counts as a crash.
    assert_eq!(ended(&env)["outcome"], "crash");
    check_shell_is_left_alone(&env, &desk);
}
