//! Tests of the monitor with a real tmux: which changes it reports, and that it sleeps while
//! nothing happens.

use super::*;
use crate::Surroundings;
use crate::base::processes;
use crate::base::wake;
use crate::records::events::Events;
use crate::records::items::{ItemDraft, Work};
use gt_core::event::Event;
use gt_core::startup::tag;
use gt_core::state::State;
use gt_core::state::StateSource;
use gt_tmux::PaneId;
use gt_tmux::testing::{TIMEOUT, TestServer, wait_until};
use gt_tmux::{Command, SessionName};
use rustix::process::{Pid, Signal};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A town with a private server, a program without hooks and one with hooks.
struct Stage {
    town: Town,
    tmux: TestServer,
    _folder: tempfile::TempDir,
}

const PLAIN: &str = r#"
[command]
program = "cat"
[screen]
ready = ["^ready"]
busy = ["working"]
waiting = ["Do you want"]
"#;

impl Stage {
    fn new() -> Self {
        let tmux = TestServer::new();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        let socket = tmux.socket_path().display().to_string();
        Town::init(&root, None, &socket, "plain").unwrap();
        std::fs::write(root.join("harnesses/plain.toml"), PLAIN).unwrap();
        let around = Surroundings {
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            current_dir: root.clone(),
            ..Surroundings::default()
        };
        let town = Town::open(&root, around).unwrap();
        Stage {
            town,
            tmux,
            _folder: folder,
        }
    }

    /// Creates a container with the tags of an agent, in which a program waits.
    fn agent(&self, name: &str, harness: &str) -> SessionName {
        let container = format!("agent_{name}");
        let target = SessionName::try_from(container.as_str()).unwrap();
        let mut commands = vec![
            Command::new("new-session").args(["-d", "-s", &container, "cat"]),
            Command::new("set-option").args(["-g", "remain-on-exit", "on"]),
        ];
        let session = uuid::Uuid::now_v7().to_string();
        let address = format!("agent/{name}");
        for (option, value) in [
            (tag::TOWN, self.town.root_text()),
            (tag::AGENT, &address),
            (tag::SESSION, &session),
            (tag::HARNESS, harness),
            (tag::STATE, "running"),
            (tag::STATE_SOURCE, "process"),
        ] {
            let set = Command::new("set-option").target(target.clone());
            commands.push(set.args([option, value]));
        }
        self.tmux.server().run(commands).unwrap();
        target
    }

    fn ask(&self, of: &SessionName, format: &str) -> String {
        let ask = Command::new("display-message").arg("-p");
        let ask = ask.target(of.clone()).arg(format);
        self.tmux.server().run(ask).unwrap().trim().to_owned()
    }

    /// Prints a line in the pane, as its program would.
    fn print(&self, to: &SessionName, text: &str) {
        std::fs::write(self.ask(to, "#{pane_tty}"), format!("{text}\r\n")).unwrap();
    }

    fn pane(&self, of: &SessionName) -> PaneId {
        self.ask(of, "#{pane_id}").parse().unwrap()
    }

    fn item(&self) {
        let draft = ItemDraft {
            prefix: "gt".to_owned(),
            title: "x".to_owned(),
            ..ItemDraft::default()
        };
        Work::of(&self.town).create(&draft).unwrap();
    }

    fn watch(&self) -> (Monitor, Receiver<MonitorChange>) {
        let (send, changes) = channel();
        let monitor = Monitor::start(&self.town, move |change| drop(send.send(change))).unwrap();
        (monitor, changes)
    }
}

#[track_caller]
fn expect(
    changes: &Receiver<MonitorChange>,
    what: &str,
    is_it: impl Fn(&MonitorChange) -> bool,
) -> MonitorChange {
    let mut others = Vec::new();
    loop {
        match changes.recv_timeout(TIMEOUT) {
            Ok(change) if is_it(&change) => return change,
            Ok(change) => others.push(change),
            Err(_) => panic!("{what} did not come, only {others:?}"),
        }
    }
}

#[track_caller]
fn expect_state(changes: &Receiver<MonitorChange>, state: State) -> AgentStateChange {
    let is_it =
        |change: &MonitorChange| matches!(change, MonitorChange::Moved(m) if m.now.state == state);
    match expect(changes, state.as_str(), is_it) {
        MonitorChange::Moved(moved) => *moved,
        other => panic!("{other:?}"),
    }
}

/// Waits until the monitor has not woken up for more than a second.
fn settle(monitor: &Monitor) {
    let mut since = (monitor.wakeups(), std::time::Instant::now());
    wait_until("the monitor is still", TIMEOUT, || {
        if monitor.wakeups() != since.0 {
            since = (monitor.wakeups(), std::time::Instant::now());
        }
        (since.1.elapsed() > Duration::from_millis(1_200)).then_some(())
    });
}

#[test]
fn state_of_a_program_without_hooks_comes_from_its_screen() {
    let stage = Stage::new();
    let max = stage.agent("max", "plain");
    let (monitor, changes) = stage.watch();
    assert_eq!(monitor.agents()[0].report.state, State::Running);
    stage.print(&max, "Do you want it?");
    let moved = expect_state(&changes, State::Waiting);
    assert_eq!(moved.now.source, StateSource::Screen);
    assert_eq!(moved.before, Some(State::Running));
    assert!(moved.now.since.is_some());
    expect(&changes, "agents", |change| {
        *change == MonitorChange::Agents
    });
    assert_eq!(monitor.agents()[0].report.state, State::Waiting);
    assert_eq!(agents(&stage.town).unwrap()[0].report.state, State::Waiting);
    // A report of the agent's own hook takes precedence.
    let hook = Command::new("set-option").target(max.clone());
    let commands = vec![
        hook.clone().args([tag::STATE, "busy"]),
        hook.args([tag::STATE_SOURCE, "hook"]),
    ];
    stage.tmux.server().run(commands).unwrap();
    wake::monitors(&stage.town);
    assert_eq!(
        expect_state(&changes, State::Busy).now.source,
        StateSource::Hook
    );
}

/// Opens a window of `gt` beside an agent, in which a program waits. Returns its pane and terminal.
fn window(stage: &Stage, beside: &SessionName, name: &str) -> (PaneId, String) {
    let make = Command::new("new-window")
        .args(["-d", "-P", "-F", "#{pane_id} #{pane_tty}"])
        .target(beside.clone())
        .args(["-n", name, "cat"]);
    let made = stage.tmux.server().run(make).unwrap();
    let (pane, tty) = made.trim().split_once(' ').unwrap();
    let pane: PaneId = pane.parse().unwrap();
    for (option, value) in [
        (tag::BESIDE, "plain"),
        (crate::terminal::windows::TAG, name),
    ] {
        let set = Command::new("set-option").arg("-p").target(pane);
        stage.tmux.server().run(set.args([option, value])).unwrap();
    }
    wake::monitors(&stage.town);
    (pane, tty.to_owned())
}

#[test]
fn only_the_resolver_beside_an_agent_is_read() {
    let stage = Stage::new();
    let max = stage.agent("max", "unknown");
    let (monitor, changes) = stage.watch();
    let (_, server) = window(&stage, &max, "dev");
    let (pane, tty) = window(&stage, &max, "merge");
    let resolver = || monitor.agents()[0].resolver.clone();
    wait_until("it is seen", TIMEOUT, || resolver().map(drop));
    settle(&monitor);
    let before = monitor.wakeups();
    std::fs::write(&server, "Do you want it?\r\n").unwrap();
    expect_no_wakeup(&monitor, before, "nothing happens that counts");
    for question in ["Do you want one?", "Do you want two?"] {
        std::fs::write(&tty, format!("\x1b[2J\x1b[H{question}\r\n")).unwrap();
        let moved = expect_state(&changes, State::Waiting);
        let asks = format!("merge asks: {question}");
        assert_eq!(moved.now.reason.as_deref(), Some(asks.as_str()));
        assert_eq!(moved.agent.address(), "agent/max");
        assert_eq!(moved.window.unwrap().pane, pane);
    }
    expect(&changes, "agents", |change| {
        *change == MonitorChange::Agents
    });
    assert_eq!(resolver().unwrap().report.state, State::Waiting);
    assert_eq!(monitor.agents()[0].report.state, State::Running);
    // A screen that is blank for a moment has not asked again.
    for text in ["", "Do you want two?"] {
        std::fs::write(&tty, format!("\x1b[2J\x1b[H{text}")).unwrap();
        settle(&monitor);
    }
    let is_news = |change: &MonitorChange| matches!(change, MonitorChange::Moved(_));
    let news: Vec<MonitorChange> = changes.try_iter().filter(is_news).collect();
    assert_eq!(news, []);
    let before = monitor.wakeups();
    expect_no_wakeup(&monitor, before, "it only waits");
    let close = Command::new("kill-pane").target(pane);
    stage.tmux.server().run(close).unwrap();
    wait_until("it is gone", TIMEOUT, || resolver().is_none().then_some(()));
    settle(&monitor);
}

#[test]
fn question_of_a_resolver_is_news_after_its_start() {
    let stage = Stage::new();
    let max = stage.agent("max", "unknown");
    let mut starter = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let born = processes::birth_certificate(starter.id()).unwrap();
    let starting = format!("plain 1 {} {born}", starter.id());
    let (pane, tty) = window(&stage, &max, "merge");
    let set = Command::new("set-option").arg("-p").target(pane);
    let set = set.args([tag::BESIDE, &starting]);
    stage.tmux.server().run(set).unwrap();
    let (monitor, changes) = stage.watch();
    std::fs::write(&tty, "Do you want it?\r\n").unwrap();
    settle(&monitor);
    let resolver = || monitor.agents()[0].resolver.clone().unwrap();
    assert_eq!(resolver().report.state, State::Starting);
    starter.kill().unwrap();
    let moved = expect_state(&changes, State::Waiting);
    assert_eq!(moved.window.unwrap().pane, pane);
    starter.wait().unwrap();
    settle(&monitor);
}

#[test]
fn program_without_patterns_is_busy_until_it_falls_silent() {
    let stage = Stage::new();
    let max = stage.agent("max", "plain");
    let (monitor, changes) = stage.watch();
    stage.print(&max, "something");
    assert_eq!(
        expect_state(&changes, State::Busy).now.source,
        StateSource::Screen
    );
    expect_state(&changes, State::Running);
    settle(&monitor);
}

/// Checks that the monitor was not woken since a count of its wakeups. The absence of an event
/// cannot be awaited: this waits several times as long as a wakeup takes.
#[track_caller]
fn expect_no_wakeup(monitor: &Monitor, before: u64, why: &str) {
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(monitor.wakeups(), before, "{why}");
}

fn place_of(monitor: &Monitor, pane: PaneId) -> PanePlace {
    let seen = monitor.agents();
    let mut places = seen.iter().map(|seen| seen.place);
    places.find(|place| place.pane == pane).unwrap()
}

#[test]
fn only_the_pane_in_view_reports_output() {
    let stage = Stage::new();
    // An unknown program is watched only while it is in view.
    let (max, amy) = (stage.agent("max", "unknown"), stage.agent("amy", "unknown"));
    let (monitor, changes) = stage.watch();
    let pane = place_of(&monitor, stage.pane(&max));
    monitor.set_view(Some(pane));
    expect(&changes, "the first look", |change| {
        *change == MonitorChange::Screen(pane)
    });
    for text in ["one", "two"] {
        stage.print(&max, text);
        expect(&changes, text, |change| {
            *change == MonitorChange::Screen(pane)
        });
    }
    settle(&monitor);
    let before = monitor.wakeups();
    stage.print(&amy, "three");
    expect_no_wakeup(&monitor, before, "the other pane woke it");
    monitor.set_view(None);
    settle(&monitor);
    let before = monitor.wakeups();
    stage.print(&max, "four");
    expect_no_wakeup(&monitor, before, "nothing is in view");
}

#[test]
fn nothing_wakes_it_while_nothing_happens() {
    let stage = Stage::new();
    for name in ["max", "amy"] {
        stage.agent(name, "plain");
    }
    stage.item();
    let (monitor, _changes) = stage.watch();
    settle(&monitor);
    let before = monitor.wakeups();
    // Reading causes no wakeup.
    let items = Work::of(&stage.town).find(&crate::records::items::ItemQuery::default());
    assert_eq!(items.unwrap().len(), 1);
    agents(&stage.town).unwrap();
    expect_no_wakeup(&monitor, before, "nothing happens");
}

#[test]
fn a_server_that_comes_goes_and_comes_again_is_followed() {
    let stage = Stage::new();
    let (monitor, changes) = stage.watch();
    assert_eq!(monitor.agents(), []);
    stage.agent("max", "plain");
    let moved = expect_state(&changes, State::Running);
    assert_eq!(
        (moved.agent.address().as_str(), moved.before),
        ("agent/max", None)
    );
    stage
        .tmux
        .server()
        .run(Command::new("kill-server"))
        .unwrap();
    expect_state(&changes, State::Stopped);
    assert_eq!(monitor.agents(), []);
    wait_until("the server is gone", TIMEOUT, || {
        (!stage.tmux.server().is_running()).then_some(())
    });
    stage.agent("amy", "plain");
    assert_eq!(
        expect_state(&changes, State::Running).agent.address(),
        "agent/amy"
    );
    // The new server is watched as well as the old one.
    stage.agent("bob", "plain");
    assert_eq!(
        expect_state(&changes, State::Running).agent.address(),
        "agent/bob"
    );
    // A killed server leaves its socket behind.
    let pid = i32::try_from(stage.tmux.pid().unwrap()).unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    expect_state(&changes, State::Stopped);
    wait_until("the server is dead", TIMEOUT, || {
        (!stage.tmux.server().is_running()).then_some(())
    });
    stage.agent("eve", "plain");
    let moved = expect_state(&changes, State::Running);
    assert_eq!(moved.agent.address(), "agent/eve");
}

#[test]
fn changes_of_work_items_are_reported() {
    let stage = Stage::new();
    let (_monitor, changes) = stage.watch();
    for _ in 0..2 {
        stage.item();
        expect(&changes, "work", |change| *change == MonitorChange::Work);
    }
}

/// Writes a file as git does: writes another file and renames it.
fn put(file: &Path, text: &str) {
    let lock = file.with_extension("lock");
    std::fs::write(&lock, text).unwrap();
    std::fs::rename(&lock, file).unwrap();
}

#[test]
fn writes_to_watched_files_are_reported() {
    for open in [
        EventSources::open as fn(WatchedPaths) -> EventSources,
        EventSources::closed,
    ] {
        let stage = Stage::new();
        let (send, changes) = channel();
        let send = move |change| drop(send.send(change));
        let monitor = Monitor::start_with(&stage.town, open, send).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (head, branch) = (folder.path().join("HEAD"), folder.path().join("refs/a/b"));
        put(&head, "one");
        monitor.watch_files(stamps([head.clone(), branch.clone()]));
        let told = |what: &str| {
            drop(expect(&changes, what, |change| {
                *change == MonitorChange::Files
            }));
        };
        put(&head, "two");
        told("another file in its place");
        std::fs::create_dir_all(branch.parent().unwrap()).unwrap();
        put(&branch, "one");
        told("one in a folder that was not there");
        put(&branch, "two");
        told("the same again");
        std::fs::remove_dir_all(folder.path().join("refs")).unwrap();
        told("its end");
        // A file that was written between the read and the watch is reported.
        let before = stamps([head.clone()]);
        put(&head, "three");
        monitor.watch_files(before);
        told("one that was written meanwhile");
    }
}

#[test]
fn events_are_sent_to_subscribers() {
    for (open, hears) in [
        (EventSources::open as fn(WatchedPaths) -> EventSources, true),
        (EventSources::closed, false),
    ] {
        let stage = Stage::new();
        let (send, changes) = channel();
        let send = move |change| drop(send.send(change));
        let monitor = Monitor::start_with(&stage.town, open, send).unwrap();
        let events = Events::of(&stage.town);
        let write = |kind: &str| drop(events.append(vec![Event::emitted(kind, "a")]).unwrap());
        let told = |what: &str| {
            drop(expect(&changes, what, |change| {
                *change == MonitorChange::Events
            }));
        };
        write("before");
        monitor.watch_events(true);
        told("what may have happened meanwhile");
        write("one");
        told("a line more");
        // A prune replaces the log by another file.
        let log = events.log().path().to_owned();
        put(&log, &std::fs::read_to_string(&log).unwrap().repeat(2));
        told("another log");
        write("two");
        told("a line more in that one");
        monitor.watch_events(false);
        if !hears {
            continue;
        }
        settle(&monitor);
        changes.try_iter().for_each(drop);
        let before = monitor.wakeups();
        write("three");
        expect_no_wakeup(&monitor, before, "no subscriber");
    }
}

#[test]
fn unchanged_files_wake_no_monitor() {
    let stage = Stage::new();
    let (monitor, changes) = stage.watch();
    let folder = tempfile::tempdir().unwrap();
    let (head, other) = (folder.path().join("HEAD"), folder.path().join("other"));
    put(&head, "one");
    monitor.watch_files(stamps([head.clone()]));
    settle(&monitor);
    let before = monitor.wakeups();
    assert_eq!(std::fs::read(&head).unwrap(), b"one");
    expect_no_wakeup(&monitor, before, "it was only read");
    put(&other, "one");
    settle(&monitor);
    let is_told = |change: &MonitorChange| *change == MonitorChange::Files;
    assert_eq!(changes.try_iter().filter(is_told).count(), 0);
    monitor.watch_files(Files::new());
    settle(&monitor);
    let before = monitor.wakeups();
    put(&head, "two");
    expect_no_wakeup(&monitor, before, "no subscriber");
}

#[test]
fn end_of_a_window_beside_an_agent_is_reported() {
    let stage = Stage::new();
    let max = stage.agent("max", "unknown");
    let (pane, _) = window(&stage, &max, "dev-web");
    let (monitor, changes) = stage.watch();
    settle(&monitor);
    // Drops the report of the new server.
    changes.try_iter().for_each(drop);
    let ask = Command::new("display-message").arg("-p");
    let ask = ask.target(pane).arg("#{pane_pid}");
    let pid: i32 = stage
        .tmux
        .server()
        .run(ask)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    expect(&changes, "agents", |change| {
        *change == MonitorChange::Agents
    });
    settle(&monitor);
}

#[test]
fn unread_change_is_reported_when_it_can_be_read() {
    let stage = Stage::new();
    stage.item();
    let path = Work::of(&stage.town).path().to_owned();
    let time = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let (read, written) = (time(&path), time(Path::new(&log)));
    assert!(read >= written, "{read:?} {written:?}");
    let (_monitor, changes) = stage.watch();
    let file = std::fs::File::open(&path).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    expect(&changes, "work", |change| *change == MonitorChange::Work);
}

#[test]
fn touched_file_exists_only_while_a_monitor_runs() {
    let stage = Stage::new();
    let path = wake::folder(&stage.town).join(wake::FILE);
    wake::monitors(&stage.town);
    assert!(!path.exists());
    let (one, _changes) = stage.watch();
    let (two, heard) = stage.watch();
    assert!(path.exists());
    drop(one);
    assert!(path.exists(), "the other one still listens");
    wake::monitors(&stage.town);
    expect(&heard, "agents", |change| *change == MonitorChange::Agents);
    drop(two);
    assert!(!path.exists());
}

#[test]
fn deaths_of_a_hundred_panes_are_reported() {
    let stage = Stage::new();
    for number in 0..100 {
        stage.agent(&format!("a{number}"), "plain");
    }
    let (monitor, changes) = stage.watch();
    assert_eq!(monitor.agents().len(), 100);
    let last = SessionName::try_from("agent_a99").unwrap();
    let pid: i32 = stage.ask(&last, "#{pane_pid}").parse().unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let moved = expect_state(&changes, State::Crashed);
    assert_eq!(moved.agent.address(), "agent/a99");
}

#[test]
fn polling_replaces_missing_kernel_events() {
    let stage = Stage::new();
    let (send, changes) = channel();
    let send = move |change| drop(send.send(change));
    let monitor = Monitor::start_with(&stage.town, EventSources::closed, send).unwrap();
    let max = stage.agent("max", "plain");
    expect_state(&changes, State::Running);
    stage.print(&max, "Do you want it?");
    expect_state(&changes, State::Waiting);
    let pane = place_of(&monitor, stage.pane(&max));
    monitor.set_view(Some(pane));
    for _ in 0..2 {
        expect(&changes, "the screen", |change| {
            *change == MonitorChange::Screen(pane)
        });
    }
    stage.item();
    expect(&changes, "work", |change| *change == MonitorChange::Work);
    let state = Command::new("set-option").target(max.clone());
    let commands = vec![
        state.clone().args([tag::STATE, "busy"]),
        state.args([tag::STATE_SOURCE, "hook"]),
    ];
    stage.tmux.server().run(commands).unwrap();
    wake::monitors(&stage.town);
    expect_state(&changes, State::Busy);
    stage
        .tmux
        .server()
        .run(Command::new("kill-server"))
        .unwrap();
    expect_state(&changes, State::Stopped);
}
