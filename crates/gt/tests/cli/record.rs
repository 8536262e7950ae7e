//! Recordings: the output of a pane from its first byte, and its replay.

use crate::env::{TIMEOUT, TestEnv, processes_of, signal};
use gt_tmux::testing::{TestServer, wait_until};
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const GT: &str = env!("CARGO_BIN_EXE_gt");

/// Makes a town in which only the mayor is recorded.
fn town() -> TestEnv {
    let env = TestEnv::with_town();
    set_recording(&env, "enabled = true");
    env
}

fn set_recording(env: &TestEnv, settings: &str) {
    let role = env.town().join("roles/mayor.toml");
    fs::write(role, format!("[record]\n{settings}\n")).unwrap();
}

/// Starts an agent whose program is a shell line, and returns the session id.
fn start_line(env: &TestEnv, agent: &str, line: &str) -> String {
    let start = ["start", agent, "--command", line, "--no-auto-respawn"];
    let started = env.json(&[&start[..], &["--no-wait", "--no-prompt", "--no-verify"]].concat());
    started[0]["session"].as_str().unwrap().to_owned()
}

/// Returns the recording of a session as text.
fn replay(env: &TestEnv, id: &str) -> String {
    env.gt(&["sessions", "replay", id]).stdout
}

fn wait_recorded(env: &TestEnv, id: &str, text: &str) {
    wait_until(&format!("{text:?} in the recording"), TIMEOUT, || {
        replay(env, id).contains(text).then_some(())
    });
}

/// Returns the processes that record.
fn recorders(env: &TestEnv) -> Vec<u32> {
    let mut pids = processes_of(env.home());
    pids.retain(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"record")
    });
    pids
}

fn wait_no_recorder(env: &TestEnv) {
    wait_until("no recorder runs", TIMEOUT, || {
        recorders(env).is_empty().then_some(())
    });
}

/// Parses an asciicast into its header and its events.
fn lines(text: &str) -> (Value, Vec<Value>) {
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    let header: Value = lines.next().unwrap();
    assert_eq!(header["version"], 2, "{header}");
    let events: Vec<Value> = lines.collect();
    let times: Vec<f64> = events.iter().map(|e| e[0].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    (header, events)
}

/// Joins the texts of all events of one kind.
fn texts(events: &[Value], code: &str) -> String {
    let own = events.iter().filter(|event| event[1] == code);
    own.map(|event| event[2].as_str().unwrap()).collect()
}

fn folder(env: &TestEnv) -> PathBuf {
    env.town().join(".sessions/recordings")
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn session_is_recorded_from_its_first_byte() {
    let env = town();
    let id = start_line(
        &env,
        "mayor",
        "printf 'the very first\\n'; cat; printf 'the very last'",
    );
    wait_recorded(&env, &id, "the very first");
    let path = folder(&env).join(format!("{id}.cast"));
    assert_eq!((mode(&path), mode(&folder(&env))), (0o600, 0o700));
    let (header, events) = lines(&fs::read_to_string(&path).unwrap());
    assert_eq!(header["title"], "mayor", "{header}");
    assert_eq!(
        (&header["width"], &header["height"]),
        (&json!(200), &json!(50))
    );
    assert!(
        header["env"]["TERM"].is_string() && header["timestamp"].is_i64(),
        "{header}"
    );
    assert_eq!(texts(&events, "o"), "the very first\r\n");
    // The recording continues after a resize.
    let target = SessionName::try_from("hq-mayor").unwrap();
    let resize = Tmux::new("resize-window")
        .target(target)
        .args(["-x", "90", "-y", "20"]);
    env.tmux(resize);
    wait_until("the pane is smaller", TIMEOUT, || {
        let tty = env.format("hq-mayor", "#{pane_tty}");
        let file = fs::File::open(tty).unwrap();
        let size = rustix::termios::tcgetwinsize(file).unwrap();
        (size.ws_col == 90).then_some(())
    });
    env.gt(&["keys", "mayor", "h", "é", "Enter"]).ok();
    wait_recorded(&env, &id, "hé");
    // The last byte is recorded, and the recorder ends with the agent.
    env.gt(&["keys", "mayor", "C-d"]).ok();
    wait_no_recorder(&env);
    let text = fs::read_to_string(&path).unwrap();
    let (_, events) = lines(&text);
    assert_eq!(texts(&events, "r"), "90x20");
    assert!(texts(&events, "o").ends_with("the very last"), "{text}");
    let shown = env.json(&["sessions", "show", &id]);
    assert_eq!(shown["recording"], json!(path), "{shown}");
    // The export joins the parts and leaves out our own fields.
    env.gt(&["sessions", "replay", &id, "--export", "out.cast"])
        .ok();
    let exported = fs::read_to_string(env.path("out.cast")).unwrap();
    let (own, same) = lines(&exported);
    assert_eq!((same, own.get("part")), (events, None));
    let printed = env
        .gt(&["sessions", "replay", &id, "--export", "-"])
        .ok()
        .stdout;
    assert_eq!(printed, exported);
    let told = env.json(&["sessions", "replay", &id[..20]]);
    assert_eq!(told["missing_bytes"], 0, "{told}");
}

#[test]
fn replay_with_step_shows_only_that_step() {
    let env = town();
    // The program prints the next word only on input, so that each word has its own second.
    let line = "echo before; read x; echo within; read x; echo after; exec cat";
    let id = start_line(&env, "mayor", line);
    wait_recorded(&env, &id, "before");
    let next_second = || {
        let began = Instant::now();
        wait_until("more than a second has gone by", TIMEOUT, || {
            (began.elapsed() > Duration::from_millis(1200)).then_some(())
        });
    };
    next_second();
    env.gt(&["step", "start", "build", "--ref", "he-1.2", "--life", &id])
        .ok();
    env.gt(&["keys", "mayor", "Enter"]).ok();
    wait_recorded(&env, &id, "within");
    env.gt(&["step", "done", "build", "--life", &id]).ok();
    next_second();
    env.gt(&["keys", "mayor", "Enter"]).ok();
    wait_recorded(&env, &id, "after");
    for step in ["build", "he-1.2", "1"] {
        let text = env.gt(&["sessions", "replay", &id, "--step", step]).ok();
        assert!(text.stdout.contains("within"), "{step}: {}", text.stdout);
        assert!(!text.stdout.contains("before"), "{step}: {}", text.stdout);
        assert!(!text.stdout.contains("after"), "{step}: {}", text.stdout);
    }
    let told = env.json(&["sessions", "replay", &id, "--step", "build"]);
    assert_eq!(told["step"]["name"], "build", "{told}");
    // A terminal dump also contains the earlier output.
    let dumped = env.gt(&["sessions", "replay", &id, "--step", "build", "--dump"]);
    let dumped = dumped.ok().stdout;
    assert!(
        dumped.contains("before") && !dumped.contains("after"),
        "{dumped}"
    );
    assert_snapshot!(env.snapshot(&["sessions", "replay", &id, "--step", "test"]), @r#"
    exit code: 3
    --- stderr
    error: [UUID] has no step "test"
    hint: its steps: build
    "#);
}

#[test]
fn agents_without_recording_are_not_recorded() {
    let env = town();
    let id = start_line(&env, "deacon", "echo hello; exec cat");
    env.wait_screen("deacon", "hello");
    assert_eq!(env.format("hq-deacon", "#{pane_pipe}"), "0");
    assert_eq!(recorders(&env), Vec::<u32>::new());
    assert!(!folder(&env).exists());
    assert_snapshot!(env.snapshot(&["sessions", "replay", &id]), @"
    exit code: 3
    --- stderr
    error: there is no recording of [UUID]
    hint: sessions of the role deacon are recorded from the next start on with `[record]` and `enabled = true` in ~/gt/roles/deacon.toml
    ");
    let shown = env.json(&["sessions", "show", &id]);
    assert_eq!(shown.get("recording"), None);
}

#[test]
fn the_demo_agent_is_recorded_and_outlives_its_recorder() {
    let env = town();
    let started = env.json(&["start", "mayor", "--no-prompt"]);
    let id = started[0]["session"].as_str().unwrap();
    wait_recorded(&env, id, "demo agent");
    let [recorder] = recorders(&env)[..] else {
        panic!("one process records it");
    };
    env.gt(&["nudge", "mayor", "remember this"]).ok();
    wait_recorded(&env, id, "You said: remember this");
    signal(recorder, Signal::KILL);
    wait_no_recorder(&env);
    env.gt(&["nudge", "mayor", "and go on"]).ok();
    env.wait_screen("mayor", "You said: and go on");
    let text = replay(&env, id);
    assert!(text.contains("You said: remember this"), "{text}");
    assert!(!text.contains("and go on"), "{text}");
    // A kill may leave a torn last line.
    let path = folder(&env).join(format!("{id}.cast"));
    let whole = fs::read_to_string(&path).unwrap();
    lines(&whole);
    fs::write(&path, format!("{whole}[99.0, \"o\", \"torn")).unwrap();
    assert_eq!(replay(&env, id), text);
    env.gt(&["stop", "mayor"]).ok();
}

#[test]
fn each_session_in_a_pane_has_its_own_recording() {
    let env = town();
    let line = "echo one life; exec cat";
    let start_after_death = || {
        signal(env.pid("mayor"), Signal::KILL);
        wait_until("it is dead", TIMEOUT, || {
            (env.agent("mayor")["state"] == "crashed").then_some(())
        });
        start_line(&env, "mayor", line)
    };
    let first = start_line(&env, "mayor", line);
    wait_recorded(&env, &first, "one life");
    let pane = env.format("hq-mayor", "#{pane_id}");
    // The start follows at once: the first recorder may not have noticed the death yet.
    let second = start_after_death();
    wait_recorded(&env, &second, "one life");
    env.gt(&["keys", "mayor", "x", "y", "Enter"]).ok();
    wait_recorded(&env, &second, "xy");
    assert_eq!(replay(&env, &first), "one life\n");
    // With recording disabled, the next session in the same pane is not recorded.
    set_recording(&env, "enabled = false");
    let third = start_after_death();
    env.wait_screen("mayor", "one life");
    assert_eq!(
        env.format("hq-mayor", "#{pane_id} #{pane_pipe}"),
        format!("{pane} 0")
    );
    wait_no_recorder(&env);
    env.gt(&["sessions", "replay", &third]).fails(3);
    assert!(!replay(&env, &second).is_empty());
    // An archived session keeps its recording.
    env.gt(&["stop", "mayor"]).ok();
    env.gt(&["sessions", "archive", "--before", "now"]).ok();
    assert_eq!(replay(&env, &first), "one life\n");
}

#[test]
fn unsafe_sequences_are_left_out_of_a_replay() {
    let env = town();
    let hostile =
        "\\033]52;c;Y2xpcA==\\007\\033]0;title\\033\\\\\\033[6n\\033[c\\033[21t\\033Pq\\033\\\\";
    let line = format!("printf 'a{hostile}\\033[31mred\\033[0m\\033[?1000h.\\n'; exec sleep 100");
    let id = start_line(&env, "mayor", &line);
    wait_recorded(&env, &id, "ared.");
    let dumped = env.gt(&["sessions", "replay", &id, "--dump"]).ok().stdout;
    assert!(dumped.starts_with("a\x1b[31mred\x1b[0m.\r\n"), "{dumped:?}");
    assert!(
        !dumped.contains("\x1b]") && !dumped.contains("\x1b[6n"),
        "{dumped:?}"
    );
    // An export is unfiltered.
    let exported = env.gt(&["sessions", "replay", &id, "--export", "-"]).ok();
    let text = texts(&lines(&exported.stdout).1, "o");
    assert!(
        text.contains("\x1b]52;c;Y2xpcA==\x07") && text.contains("\x1b[6n"),
        "{text:?}"
    );
}

#[test]
fn a_hostile_town_is_recorded_and_runs_nothing() {
    let env = TestEnv::empty();
    let town = env.path("$(touch TRAP) 'q\" #(touch TRAP) %H ;");
    let town = town.to_str().unwrap();
    env.gt(&["init", town, "--harness", "demo", "--sandbox", "none"])
        .ok();
    let role = Path::new(town).join("roles/mayor.toml");
    fs::write(role, "[record]\nenabled = true\n").unwrap();
    let started = env.json(&["--town", town, "start", "mayor", "--no-prompt"]);
    let id = started[0]["session"].as_str().unwrap();
    wait_until("it is recorded", TIMEOUT, || {
        let text = env.gt(&["--town", town, "sessions", "replay", id]).stdout;
        text.contains("demo agent").then_some(())
    });
    assert!(!env.path("TRAP").exists());
    assert!(!Path::new(town).join("mayor/TRAP").exists());
}

/// Opens a terminal that runs a line as in a person's shell.
fn terminal(env: &TestEnv, outer: &TestServer, line: &str) {
    let shell = format!(
        "unset TMUX TMUX_PANE; export HOME='{}' GT_TMUX_SOCKET='{}'; {line}; exec sleep 1000",
        env.home().display(),
        env.socket().display()
    );
    let new = Tmux::new("new-session").args(["-d", "-s", "t", "-x", "220", "-y", "60", &shell]);
    outer.server().run_private(new).unwrap();
}

#[test]
fn replay_restores_the_terminal() {
    let env = town();
    // Half a second between the two words, a full-screen program, and then hours without output.
    let line = "printf 'one\\033[?1049h\\033[?25l\\033[2;5r\\033[31m'; sleep 0.5; printf two; exec sleep 100";
    let id = start_line(&env, "mayor", line);
    wait_recorded(&env, &id, "two");
    env.gt(&["stop", "mayor", "--force"]).ok();
    let path = folder(&env).join(format!("{id}.cast"));
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("[9000.0, \"o\", \"three\"]\n[18000.0, \"o\", \"four\"]\n");
    fs::write(&path, text).unwrap();
    let outer = TestServer::new();
    let session = SessionName::try_from("t").unwrap();
    let press = |key: &str| {
        let send = Tmux::new("send-keys").target(session.clone()).arg(key);
        outer.server().run(send).unwrap();
    };
    let ask = |format: &str| {
        let ask = Tmux::new("display-message")
            .arg("-p")
            .target(session.clone());
        outer
            .server()
            .run(ask.arg(format))
            .unwrap()
            .trim()
            .to_owned()
    };
    let wait_shown = |text: &str| {
        wait_until(&format!("{text:?} in the terminal"), TIMEOUT, || {
            let capture = Tmux::new("capture-pane").arg("-p").target(session.clone());
            let screen = outer.server().run(capture).unwrap();
            screen.contains(text).then_some(())
        });
    };
    let play = format!("'{GT}' sessions replay {id} --idle-limit 0; stty -a; echo the end");
    terminal(&env, &outer, &play);
    wait_shown("two");
    assert_eq!(ask("#{alternate_on} #{cursor_flag}"), "1 0");
    // The gap lasts two hours, so the test pauses and steps through it.
    press("Space");
    press(".");
    wait_shown("three");
    press(".");
    wait_shown("the end");
    wait_shown(" icanon");
    assert_eq!(
        ask("#{alternate_on} #{cursor_flag} #{scroll_region_upper} #{scroll_region_lower}"),
        "0 1 0 59"
    );
    // Ended by a key, and by Ctrl-C.
    for key in ["q", "C-c"] {
        let outer = TestServer::new();
        terminal(&env, &outer, &play);
        let capture = || {
            let capture = Tmux::new("capture-pane").arg("-p").target(session.clone());
            outer.server().run(capture).unwrap()
        };
        wait_until("it plays", TIMEOUT, || {
            capture().contains("two").then_some(())
        });
        let send = Tmux::new("send-keys").target(session.clone()).arg(key);
        outer.server().run(send).unwrap();
        wait_until("it has ended", TIMEOUT, || {
            let screen = capture();
            (screen.contains("the end") && screen.contains(" icanon")).then_some(())
        });
        assert!(!capture().contains("three"));
    }
}

#[test]
fn a_flood_stays_within_its_bound_and_is_hardly_slower() {
    const BYTES: u64 = 20_000_000;
    let env = TestEnv::with_town();
    set_recording(&env, "enabled = true\nmax_mb = 2");
    let line = format!(
        "echo begin; yes 'a line of the flood, which is long' | head -c {BYTES}; echo; \
         echo finished; exec sleep 1000"
    );
    let flood = |agent: &str, container: &str| {
        let began = Instant::now();
        let id = start_line(&env, agent, &line);
        let title = format!("#{{P:#{{C:finished}}}} {container}");
        wait_until("the flood has passed", TIMEOUT * 2, || {
            let found = env.format(container, &title);
            (!found.starts_with("0 ")).then_some(())
        });
        (id, began.elapsed())
    };
    let (_, without) = flood("deacon", "hq-deacon");
    let (id, with) = flood("mayor", "hq-mayor");
    let slower = with.as_secs_f64() / without.as_secs_f64();
    assert!(
        slower < 5.0 || with < Duration::from_secs(2),
        "{without:?} without a recording, {with:?} with one"
    );
    let length = || -> u64 {
        let files = fs::read_dir(folder(&env)).unwrap().flatten();
        files
            .filter_map(|file| file.metadata().ok())
            .map(|meta| meta.len())
            .sum()
    };
    assert!(length() <= 2 << 20, "{}", length());
    wait_recorded(&env, &id, "finished");
    assert!(length() <= 2 << 20, "{}", length());
    // The recording keeps its beginning and its end, and states how much is missing between.
    let (_, events) = lines(&env.gt(&["sessions", "replay", &id, "--export", "-"]).stdout);
    let text = texts(&events, "o");
    assert!(text.starts_with("begin\r\n"), "{}", &text[..100]);
    assert!(text.ends_with("finished\r\n"));
    assert!(texts(&events, "m").contains("MB are missing here"));
    let told = env.json(&["sessions", "replay", &id]);
    let missing = told["missing_bytes"].as_u64().unwrap();
    assert!(missing > BYTES - (2 << 20), "{told}");
}
