//! Measures the overhead of `gt` in messages to the real programs, as ratios to the programs' own
//! latencies in the same run: from a bare Enter to the request, and from a bare start to the
//! prompt. `make bench` installs the programs; missing ones are skipped.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on says so by panicking"
)]

#[path = "../tests/agents/program.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod program;
#[path = "../tests/agents/stage.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod stage;

use gt_core::harness::Preset;
use gt_core::screen;
use gt_core::state::State;
use program::PROGRAMS;
use stage::Stage;
use std::time::{Duration, Instant};

fn main() {
    // `cargo test --benches` only checks that the benchmark builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    println!("gt against the programs themselves (median of each, same run)\n");
    println!("{:<46} {:>9} {:>9} {:>7}", "", "bare", "gt", "ratio");
    let only = std::env::var("GT_AGENTS_ONLY").ok();
    for program in PROGRAMS {
        if only.as_deref().is_some_and(|only| only != program.harness) {
            continue;
        }
        let Some(stage) = Stage::new(program) else {
            println!("{:<46} skipped: it is not installed", program.harness);
            continue;
        };
        let preset = gt_core::harness::resolve(program.harness, None)
            .unwrap()
            .value;
        readiness(&stage, &preset);
        messages(&stage, &preset);
    }
}

/// Measures from Enter to the request, and from `gt nudge` to the request and to its return.
fn messages(stage: &Stage, preset: &Preset) {
    const RUNS: usize = 15;
    stage.start(&["--no-prompt"]);
    let [mut bare, mut request, mut verified] = [const { Vec::new() }; 3];
    // The first turn of a conversation is slower than the others.
    for run in 0..=RUNS {
        await_idle(stage, preset);
        let text = format!("a bare message {run}");
        stage.paste(&text);
        wait_until(|| stage.plain_screen().contains(&text));
        std::thread::sleep(Duration::from_millis(preset.typing.settle_ms.max(50)));
        let began = Instant::now();
        stage.type_by_hand(&["Enter"]);
        stage.wait_prompt(&text);
        bare.push(began.elapsed());

        await_idle(stage, preset);
        let text = format!("a message of gt {run}");
        let began = Instant::now();
        let child = stage.spawn(&["nudge", "gastown/max", &text, "--timeout", "60"]);
        stage.wait_prompt(&text);
        request.push(began.elapsed());
        let output = child.wait_with_output().unwrap();
        verified.push(began.elapsed());
        assert!(output.status.success(), "{output:?}");
    }
    for times in [&mut bare, &mut request, &mut verified] {
        times.remove(0);
    }
    let name = preset.name.as_str();
    let bare = median(bare);
    report(
        &format!("{name}: nudge to request (bare Enter to it)"),
        bare,
        median(request),
    );
    report(
        &format!("{name}: nudge to verified return"),
        bare,
        median(verified),
    );
    stage.ok(&["stop", "gastown/max", "--force"]);
}

/// Measures from a start to the prompt, also in a sandbox.
fn readiness(stage: &Stage, preset: &Preset) {
    const RUNS: usize = 5;
    // The files that a first start leaves speed up both sides.
    stage.start(&["--no-prompt"]);
    stage.ok(&["stop", "gastown/max", "--force"]);
    let [mut bare, mut ours, mut inside] = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        let began = Instant::now();
        let command = &preset.command;
        stage.start_bare(&[&command.skip_permissions[..], &command.trust_folder].concat());
        wait_until(|| is_ready(&stage.bare_screen(), preset));
        bare.push(began.elapsed());
        stage.stop_bare();
        let began = Instant::now();
        stage.start(&["--no-prompt"]);
        ours.push(began.elapsed());
        stage.ok(&["stop", "gastown/max", "--force"]);
        let began = Instant::now();
        stage.start(&["--no-prompt", "--sandbox", "workspace"]);
        inside.push(began.elapsed());
        stage.ok(&["stop", "gastown/max", "--force"]);
    }
    let ours = median(ours);
    let label = format!("{}: start to ready (bare program)", preset.name);
    report(&label, median(bare), ours);
    let label = format!("{}: the same in a sandbox (gt without one)", preset.name);
    report(&label, ours, median(inside));
}

/// Returns whether the screen shows a ready agent, by the rules that `gt` uses.
fn is_ready(text: &str, preset: &Preset) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let shows = |mark: &String| lines.iter().any(|line| screen::matches(line, mark));
    let is_sure = preset.ready.sure.is_empty() || preset.ready.sure.iter().any(shows);
    let state = screen::read(&lines, preset).map(|(state, _)| state);
    is_sure && state == Some(State::Idle)
}

fn await_idle(stage: &Stage, preset: &Preset) {
    stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
    // Some screens look idle before the turn has ended.
    std::thread::sleep(Duration::from_millis(300));
    wait_until(|| is_ready(&stage.plain_screen(), preset));
}

/// Waits for the condition. Polls often, because the results are tens of milliseconds.
fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn report(what: &str, bare: Duration, ours: Duration) {
    println!(
        "{what:<46} {:>6.0} ms {:>6.0} ms {:>7.2}",
        bare.as_secs_f64() * 1e3,
        ours.as_secs_f64() * 1e3,
        ours.as_secs_f64() / bare.as_secs_f64()
    );
}
