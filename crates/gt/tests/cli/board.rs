//! The board on a real terminal, driven by keys and read from the screen.

mod events_tab;
mod keys;
mod refresh;
mod saved_view;
mod snapshot;
pub(crate) mod terminal;

use crate::env::{TIMEOUT, TestEnv};
use crate::stopwatch::Stopwatch;
use crate::task::{folder, with_project, without_items};
use gt_tmux::testing::{wait_until, wait_until_or};
use insta::assert_snapshot;
use serde_json::Value;
use std::fs;
use terminal::Terminal;

fn create(env: &TestEnv, title: &str) -> String {
    let item = env.json(&["work", "create", title]);
    item["id"].as_str().unwrap().to_owned()
}

/// Returns one card of `gt board --json`.
#[track_caller]
fn card(env: &TestEnv, id: &str) -> Value {
    let board = env.json(&["board"]);
    let cards = board["cards"].as_array().unwrap();
    let found = cards.iter().find(|card| card["id"] == id);
    found
        .unwrap_or_else(|| panic!("no {id} in {board}"))
        .clone()
}

#[track_caller]
fn wait_card(env: &TestEnv, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
    let matches = || is_so(&card(env, id)).then_some(());
    wait_until_or(&format!("{id}: {what}"), TIMEOUT, matches, || {
        format!("{:#}", card(env, id))
    });
}

/// Returns a shell line that commits one file.
fn committing(text: &str) -> String {
    format!(
        "printf '{text}\\n' > shared.txt; git add .; \
         git -c user.name=t -c user.email=t@localhost commit -qm {text}"
    )
}

#[test]
fn from_idea_to_merged_by_keys_alone() {
    let env = without_items("");
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("There are no work items here; n creates one");
    // The new card gets the cursor.
    board.press(&["n"]);
    board.wait_text("New item");
    board.write(&format!("Make it [[tool={}]]", committing("mine")));
    board.press(&["Enter"]);
    board.wait_text("Made gt-");
    board.wait_text("Open 1");
    let items = env.json(&["work", "list"]);
    let id = items[0]["id"].as_str().unwrap().to_owned();
    board.act("S");
    board.wait_text("Needs you 1");
    wait_card(&env, &id, "waiting", |card| {
        card["session"]["state"] == "waiting" && card["column"] == "needs_you"
    });
    board.wait_text("waiting <1m: Bash");
    board.act("y");
    board.wait_text("The number of an option");
    board.write("1");
    board.wait_text("Review 1");
    wait_card(&env, &id, "something to review", |card| {
        card["branch"]["ahead"] == 1 && card["column"] == "review"
    });
    // The base changes the same file.
    let source = env.path("source-gastown");
    fs::write(source.join("shared.txt"), "theirs\n").unwrap();
    env.git(&source, &["add", "."]);
    env.git(&source, &["commit", "--quiet", "-m", "Theirs"]);
    board.act("u");
    board.wait_text("merge");
    let dir = folder(&env, &id);
    wait_until("a merge with conflicts", TIMEOUT, || {
        fs::read_to_string(dir.join("shared.txt"))
            .is_ok_and(|text| text.contains("<<<<<<<"))
            .then_some(())
    });
    wait_card(&env, &id, "in conflict", |card| {
        card["branch"]["conflicts"] == serde_json::json!(["shared.txt"])
    });
    let shown = env.json(&["task", "show", &id]);
    let windows = shown["windows"].as_array().unwrap();
    assert!(
        windows.iter().any(|window| window["name"] == "merge"),
        "{shown}"
    );
    // Resolve the conflict by hand.
    fs::write(dir.join("shared.txt"), "mine\ntheirs\n").unwrap();
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "--no-edit"]);
    wait_card(&env, &id, "resolved", |card| {
        card["branch"]["merging"] == false && card["branch"]["behind"] == 0
    });
    board.act("u");
    board.wait_text("up to date");
    board.act("m");
    wait_card(&env, &id, "merged", |card| card["branch"]["ahead"] == 0);
    // Clean up the worktree.
    board.act("d");
    board.wait_text(dir.file_name().unwrap().to_str().unwrap());
    board.press(&["c"]);
    wait_until("the worktree to be gone", TIMEOUT, || {
        (!dir.exists()).then_some(())
    });
    wait_card(&env, &id, "done", |card| {
        card["column"] == "done" && card["session"].is_null()
    });
    assert!(!env.sessions().contains(&format!("{id}-az")));
    board.wait_text("Done 1");
    board.press(&["q"]);
    wait_until("the board to end", TIMEOUT, || {
        (!board.is_open()).then_some(())
    });
}

#[test]
fn stopped_task_has_the_age_of_its_end() {
    let (env, id) = with_project("");
    let start = ["task", "start", &id, "--no-attach", "--prompt", "hello"];
    env.gt(&start).ok();
    assert!(card(&env, &id)["stopped_since"].is_null());
    env.gt(&["task", "stop", &id]).ok();
    let card = card(&env, &id);
    let sessions = env.json(&["sessions", "list"]);
    // The board has no milliseconds.
    let second = |time: &Value| time.as_str().map(|time| time[..19].to_owned());
    let ended = second(&sessions[0]["ended_at"]);
    assert_eq!(second(&card["since"]), ended, "{card} {sessions}");
    assert_eq!(card["column"], "in_progress");
    let board = Terminal::open(&env, 100, 30);
    board.wait_text("stopped <1m");
}

#[test]
fn two_boards_and_the_command_line_agree_within_a_second() {
    let (env, id) = with_project("");
    let one = Terminal::open(&env, 120, 40);
    let two = Terminal::named(&env, "v", 80, 24, &["--theme", "light"]);
    one.wait_text(&id);
    two.wait_text(&id);
    // Measures from the end of the command that made the change.
    let agree = |what: &str, text: &str| {
        let watch = Stopwatch::start();
        one.wait_text(text);
        two.wait_text(text);
        watch.assert_within(what, std::time::Duration::from_secs(1));
    };
    env.gt(&["task", "start", &id, "--prompt", "[[tool=true]]"])
        .ok();
    env.gt(&["wait", &id, "--until", "waiting"]).ok();
    agree("a question", "Needs you 1");
    let other = create(&env, "Made elsewhere");
    agree("a new item", "Open 1");
    env.gt(&["task", "stop", &id]).ok();
    agree("a stop", "Needs you 0");
    env.gt(&["work", "close", &other]).ok();
    agree("a close", "Done 1");
    // A change made on one board shows on the other.
    one.press(&["/"]);
    one.write(&id);
    one.press(&["Enter"]);
    one.act("s");
    one.wait_text(&format!("Resume {id}?"));
    one.press(&["s"]);
    one.wait_text("Needs you 1");
    agree("a start by a key", "Needs you 1");
}

#[test]
fn the_terminal_is_given_back_however_the_board_ends() {
    let (env, id) = with_project("");
    for (name, signal) in [("x", None), ("y", Some("TERM")), ("z", Some("HUP"))] {
        let shell = env.path("out");
        let script = format!(
            "{} board; stty -a > {}; sleep 100",
            env!("CARGO_BIN_EXE_gt"),
            shell.display()
        );
        // A server that is shutting down accepts no new session.
        let socket = env.path(name);
        let mut command = env.command("tmux");
        command.arg("-u").arg("-S").arg(&socket);
        command.args([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
        ]);
        command.arg(&script);
        assert!(command.status().unwrap().success());
        let server = gt_tmux::Server::new(gt_tmux::Socket::Path(socket)).with_config("/dev/null");
        let tmux = |words: &[&'static str]| {
            let command = gt_tmux::Command::new(words[0]).args(words[1..].iter().copied());
            server.run(command).unwrap_or_default()
        };
        wait_until("the board", TIMEOUT, || {
            tmux(&["capture-pane", "-p"]).contains(&id).then_some(())
        });
        match signal {
            None => drop(tmux(&["send-keys", "q"])),
            Some(signal) => {
                let boards = crate::env::processes_of(env.home());
                let board = boards.into_iter().find(|pid| {
                    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                    line.ends_with(b"board\0")
                });
                let pid = board.unwrap().to_string();
                let kill = env
                    .command("kill")
                    .args([&format!("-{signal}"), &pid])
                    .status();
                assert!(kill.unwrap().success());
            }
        }
        let settings = wait_until("the shell's turn", TIMEOUT, || {
            let text = fs::read_to_string(&shell).ok()?;
            text.contains("icanon").then_some(text)
        });
        assert!(
            settings.contains(" icanon") && settings.contains(" echo "),
            "{settings}"
        );
        assert!(!tmux(&["capture-pane", "-p"]).contains("Needs you"));
        assert_eq!(
            tmux(&["display-message", "-p", "#{alternate_on}"]).trim(),
            "0"
        );
        assert_eq!(
            tmux(&["display-message", "-p", "#{mouse_any_flag}"]).trim(),
            "0"
        );
        tmux(&["kill-server"]);
        fs::remove_file(&shell).unwrap();
    }
    env.gt(&["board"]).fails(2);
}

#[test]
fn board_without_a_terminal_is_an_error_with_a_hint() {
    let (env, _) = with_project("");
    assert_snapshot!(env.snapshot(&["board"]), @"
    exit code: 2
    --- stderr
    error: the board needs a terminal
    hint: `gt board --json` prints its cards
    ");
}
