//! Measures the cost of one command on each way to the server.
//!
//! `cargo run --release -p gt-tmux --features testing --example latency -- 100`, where the
//! number is that of the sessions: a server works harder the more it has.
//!
//! Read the ratios; the times are those of this machine at this moment.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::{Duration, Instant};

use gt_tmux::testing::TestServer;
use gt_tmux::{Batch, Command, SessionName, query};

query! {
    /// Ten fields, as a program that watches panes would ask for them.
    struct Pane {
        session: String = "#{session_name}",
        id: gt_tmux::PaneId = "#{pane_id}",
        pid: Option<u32> = "#{pane_pid}",
        title: String = "#{pane_title}",
        path: std::path::PathBuf = "#{pane_current_path}",
        command: String = "#{pane_current_command}",
        dead: bool = "#{pane_dead}",
        status: Option<i32> = "#{pane_dead_status}",
        tty: String = "#{pane_tty}",
        created: u64 = "#{session_created}",
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let sessions: usize = std::env::args()
        .nth(1)
        .map_or(Ok(10), |count| count.parse())?;
    let test = TestServer::new();
    let program = test.server().clone().with_program(test.server().program());
    let version = program.version()?;
    let socket = program.clone().with_version(version);
    let start = |index| {
        let name = format!("s{index}");
        Command::new("new-session")
            .flag("-d")
            .option("-s", name)
            .arg("exec sleep 1000")
    };
    program.run((0..sessions).map(start).collect::<Batch>())?;
    let control = program.control(&SessionName::new("s0")?)?;

    let mut out = stdout().lock();
    writeln!(out, "tmux {version}, median of many, {sessions} sessions\n")?;

    let say = || Command::new("display-message").flag("-p").arg("x");
    let exec = median(200, || program.run(say()).map(drop))?;
    let direct = median(2000, || socket.run(say()).map(drop))?;
    let turn = median(5000, || control.run(say()).map(drop))?;
    let batch: Batch = (0..500).map(|_| say()).collect();
    let pipelined = median(20, || {
        control
            .run_all(&batch)
            .into_iter()
            .try_for_each(|one| one.map(drop))
    })? / 500;
    writeln!(out, "one command")?;
    for (way, time) in [
        ("exec", exec),
        ("socket", direct),
        ("control", turn),
        ("control, pipelined", pipelined),
    ] {
        report(&mut out, way, time, exec)?;
    }

    let list = || Command::new("list-panes").flag("-a");
    let exec = median(50, || program.rows::<Pane>(list()).map(drop))?;
    let direct = median(100, || socket.rows::<Pane>(list()).map(drop))?;
    let turn = median(100, || control.rows::<Pane>(list()).map(drop))?;
    writeln!(out, "\nlist-panes with ten fields")?;
    for (way, time) in [("exec", exec), ("socket", direct), ("control", turn)] {
        report(&mut out, way, time, exec)?;
    }
    Ok(())
}

fn report(
    out: &mut impl Write,
    way: &str,
    time: Duration,
    against: Duration,
) -> std::io::Result<()> {
    let ratio = against.as_secs_f64() / time.as_secs_f64();
    writeln!(
        out,
        "  {way:<20} {:>8.3} ms   1/{ratio:.1} of exec",
        time.as_secs_f64() * 1000.0
    )
}

fn median<E>(times: usize, mut run: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    let mut durations = Vec::with_capacity(times);
    for _ in 0..times {
        let started = Instant::now();
        run()?;
        durations.push(started.elapsed());
    }
    durations.sort_unstable();
    Ok(durations[times / 2])
}
