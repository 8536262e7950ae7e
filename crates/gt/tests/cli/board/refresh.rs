//! Changes without a `gt` command appear on the board within a second.

use super::keys::{commit, commit_to_base, running, wait_state};
use super::terminal::Terminal;
use super::wait_card;
use crate::dev::free_port;
use crate::stopwatch::Stopwatch;
use crate::task::with_project;
use gt_tmux::testing::wait_until;
use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

const A_SECOND: Duration = Duration::from_secs(1);

/// Checks that all boards show the change within a second.
#[track_caller]
fn agree(boards: &[&Terminal<'_>], what: &str, is_there: impl Fn(&str) -> bool) {
    let watch = Stopwatch::start();
    for board in boards {
        board.wait(what, &is_there);
    }
    watch.assert_within(what, A_SECOND);
}

/// Waits until the board's screen stops changing.
fn settle(board: &Terminal<'_>) {
    let mut since = (board.screen(), Instant::now());
    wait_until("the board rests", crate::env::TIMEOUT, || {
        let now = board.screen();
        if now != since.0 {
            since = (now, Instant::now());
        }
        (since.1.elapsed() > Duration::from_millis(1_500)).then_some(())
    });
}

#[test]
fn manual_git_changes_are_shown_within_a_second() {
    let (env, id, dir) = running();
    wait_state(&env, &id, "idle");
    let one = Terminal::open(&env, 150, 45);
    let two = Terminal::named(&env, "v", 120, 40, &[]);
    one.find(&id);
    two.find(&id);
    settle(&one);
    let both = [&one, &two];
    commit(&env, &dir, "mine.txt", "mine\n");
    agree(&both, "a commit", |screen| screen.contains("↑1"));
    commit(&env, &dir, "more.txt", "more\n");
    agree(&both, "another", |screen| screen.contains("↑2"));
    env.git(&dir, &["reset", "--quiet", "--soft", "HEAD~1"]);
    agree(&both, "one taken back", |screen| screen.contains("↑1"));
    // A commit on a packed branch creates a loose ref again.
    env.git(&dir, &["pack-refs", "--all"]);
    env.git(&dir, &["commit", "--quiet", "-m", "again"]);
    agree(&both, "one on a packed branch", |screen| {
        screen.contains("↑2")
    });
    commit_to_base(&env, "theirs.txt", "theirs\n");
    env.git(&dir, &["fetch", "--quiet", "origin"]);
    agree(&both, "a move of the base", |screen| screen.contains("↓1"));
    // A stopped task still has a worktree.
    env.gt(&["task", "stop", &id]).ok();
    wait_card(&env, &id, "stopped", |card| card["session"].is_null());
    settle(&one);
    commit(&env, &dir, "last.txt", "last\n");
    agree(&both, "one without a session", |screen| {
        screen.contains("↑3")
    });
}

#[test]
fn merge_is_not_refused_because_the_board_is_behind() {
    let (env, id, dir) = running();
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    settle(&board);
    // The command decides, whatever the board's snapshot says.
    board.act("m");
    board.wait_text("has no commits that");
    board.press(&["Escape"]);
    board.wait("no menu", |screen| !screen.contains("Start and work"));
    commit(&env, &dir, "mine.txt", "mine\n");
    board.act("m");
    wait_card(&env, &id, "merged", |card| card["branch"]["ahead"] == 0);
}

#[test]
fn dead_dev_server_is_shown_within_a_second() {
    let (env, id) = with_project(&format!(
        "[[dev_servers]]\nname = 'web'\nport = {}\ncommand = 'sleep 1000; exit 7'\n",
        free_port()
    ));
    env.gt(&["task", "start", &id]).ok();
    let started = env.json(&["dev", "start", &id]);
    let port = u16::try_from(started[0]["port"].as_u64().unwrap()).unwrap();
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let one = Terminal::open(&env, 150, 45);
    let two = Terminal::named(&env, "v", 150, 45, &[]);
    one.find(&id);
    let runs = format!(" :{port}");
    one.wait_text(&runs);
    one.act("r");
    one.wait_text("Dev servers of");
    // The second board shows the window of the server.
    two.find(&id);
    two.wait_text(&runs);
    two.press(&["Enter", "5"]);
    two.wait_text(&format!("running on port {port}"));
    settle(&one);
    // Kill the server's child process; the shell reports the failure by its exit code.
    let shell = started[0]["pid"].as_u64().unwrap();
    let children = format!("/proc/{shell}/task/{shell}/children");
    let child = fs::read_to_string(children).unwrap();
    let killed = env.command("kill").arg("-9").arg(child.trim()).status();
    assert!(killed.unwrap().success());
    let watch = Stopwatch::start();
    one.wait("its failure", |screen| {
        screen.contains("✗ web") && !screen.contains("running")
    });
    two.wait("its failure among the windows", |screen| {
        screen.contains("ended with 7")
            && screen.contains(&format!("on port {port}"))
            && !screen.contains("running")
    });
    watch.assert_within("its failure", A_SECOND);
    assert_eq!(env.json(&["dev", "list", &id])[0]["state"], "error");
    one.press(&["Escape"]);
    one.wait_text(&format!("✗:{port}"));
}

#[test]
fn answer_is_shown_as_soon_as_it_is_given() {
    let (env, id) = with_project("");
    let agent = format!("task/{id}");
    let prompt = "[[tool=sleep 5]]";
    env.gt(&["task", "start", &id, "--prompt", prompt]).ok();
    env.gt(&["wait", &id, "--until", "waiting"]).ok();
    let one = Terminal::open(&env, 150, 45);
    let two = Terminal::named(&env, "v", 150, 45, &[]);
    let both = [&one, &two];
    for board in both {
        board.find(&id);
        board.wait_text("Needs you 1");
    }
    settle(&one);
    env.gt(&["answer", &agent, "yes"]).ok();
    let watch = Stopwatch::start();
    for board in both {
        board.wait("it works", |screen| screen.contains("Needs you 0"));
        assert!(
            !board.screen().contains("begins with"),
            "{}",
            board.screen()
        );
    }
    watch.assert_within("it works", A_SECOND / 2);
    let report = env.agent(&agent);
    assert_eq!(report["state"], "busy", "{report}");
}

#[cfg(target_os = "linux")]
#[test]
fn board_that_watches_worktrees_and_servers_is_idle() {
    let (env, id) = with_project(&format!(
        "[[dev_servers]]\nname = 'web'\nport = {}\ncommand = 'exec sleep 1000'\n",
        free_port()
    ));
    env.gt(&["task", "start", &id]).ok();
    wait_state(&env, &id, "idle");
    let started = env.json(&["dev", "start", &id]);
    let port = u16::try_from(started[0]["port"].as_u64().unwrap()).unwrap();
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.wait_text(&format!(" :{port}"));
    settle(&board);
    // Ages on the board change occasionally, so the test waits for one interval without a wakeup.
    let mut since = (board.wakeups(), Instant::now());
    wait_until("two seconds without a wakeup", crate::env::TIMEOUT, || {
        let now = board.wakeups();
        if now != since.0 {
            since = (now, Instant::now());
        }
        (since.1.elapsed() > 2 * A_SECOND).then_some(())
    });
}
