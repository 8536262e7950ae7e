//! The real agent programs, through `gt`, against our own model server.
//!
//! Not part of a plain `cargo test`: `make test-agents` installs the pinned programs and runs these
//! tests, if possible in a network namespace with only loopback. Assertions use the server's log of
//! the requests that it received. With `GT_AGENTS_FULL=1` all programs get as many messages as the
//! project promises. Without it they get a fraction, and most tests skip the programs that start
//! slowly.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]
#![expect(clippy::print_stdout, reason = "what was skipped must be seen")]

mod adopt;
mod board;
mod contract;
mod day;
mod ending;
mod interrupted;
mod limits;
mod night;
mod nudging;
mod program;
mod project;
mod resolver;
mod sandbox;
mod seance;
#[expect(dead_code, reason = "the benchmark uses more of it")]
mod stage;
mod states;
mod task;
mod usage;

use gt_tmux::testing::wait_until;
use program::{PROGRAMS, Program};
use rustix::process::{Pid, Signal};
use stage::{Stage, TIMEOUT};
use std::process::Child;
use std::time::Instant;

/// Runs a check for every installed program, and prints which ones are missing. `GT_AGENTS_ONLY`
/// selects one program. Without `GT_AGENTS_FULL` slow programs are skipped; the checks that call
/// [`every`] cover them.
fn each(what: &str, check: impl Fn(&Stage)) {
    let full = is_full() || std::env::var_os("GT_AGENTS_ONLY").is_some();
    run(what, check, |program| full || !program.slow);
}

/// Runs a check for every program, also in the quick run. For checks that no other check implies.
fn every(what: &str, check: impl Fn(&Stage)) {
    run(what, check, |_| true);
}

fn run(what: &str, check: impl Fn(&Stage), included: impl Fn(&Program) -> bool) {
    let only = std::env::var("GT_AGENTS_ONLY").ok();
    let wanted = |program: &&Program| {
        included(program) && only.as_deref().is_none_or(|only| only == program.harness)
    };
    for program in PROGRAMS.iter().filter(wanted) {
        let began = Instant::now();
        match Stage::new(program) {
            Some(stage) => {
                check(&stage);
                let seconds = began.elapsed().as_secs_f64();
                println!("{what}: {} passed in {seconds:.1} s", program.harness);
            }
            None if std::env::var_os("CI").is_some() => {
                panic!("{} is not installed", program.harness)
            }
            None => println!(
                "{what}: {} skipped, it is not installed (make test-agents)",
                program.harness
            ),
        }
    }
}

/// Reports whether the quick run skips the second part of a check, which repeats the behaviour
/// after another slow start.
fn is_shortened(program: &Program) -> bool {
    program.slow && !is_full() && std::env::var_os("GT_AGENTS_ONLY").is_none()
}

fn is_full() -> bool {
    std::env::var_os("GT_AGENTS_FULL").is_some()
}

/// Returns the promised number, or the smaller one in the quick run.
fn count(full: usize, quick: usize) -> usize {
    if is_full() { full } else { quick }
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn it_comes_up_through_its_real_dialogs() {
    each("start, asked", |stage| {
        if stage.program().answers.is_none() {
            return;
        }
        stage.let_it_ask();
        // With `--no-dialogs` `gt` does not answer, and the program stays at its question.
        stage.start(&["--no-dialogs", "--no-prompt"]);
        // Codex shows its prompt for a moment before its dialog.
        let asked = wait_until("its question", TIMEOUT, || {
            let asked = stage.gt(&["answer", "gastown/max", "--json"]);
            asked.status.success().then_some(asked.stdout)
        });
        let asked = String::from_utf8_lossy(&asked);
        assert!(asked.contains("\"kind\": \"trust\""), "{asked}");
        stage.ok(&["stop", "gastown/max", "--force"]);
        stage.start(&[]);
        stage.wait_prompt("[GAS TOWN] crew max");
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn it_comes_up_in_a_fresh_home() {
    each("start", |stage| {
        stage.start(&[]);
        // The first prompt is the beacon.
        stage.wait_prompt("[GAS TOWN] crew max");
        runs_without_asking_and_stops(stage);
    });
}

/// Checks that the program runs commands without asking, and that a stop leaves no process.
fn runs_without_asking_and_stops(stage: &Stage) {
    stage.nudge(stage.program().run);
    wait_until("the command ran", TIMEOUT, || {
        let agents = stage.ok(&["agents", "--json"]);
        assert!(!agents.contains("\"waiting\""), "{agents}");
        stage.was_approved().then_some(())
    });
    stage.ok(&["stop", "gastown/max"]);
    stage.nothing_is_left();
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn it_goes_on_with_its_conversation_after_a_crash_of_the_server() {
    every("restore", |stage| {
        stage.start(&["--no-prompt"]);
        let sent = ["the first words", "the second words", "the third words"].map(String::from);
        stage.nudge(&sent[0]);
        stage.arrived(&sent[..1]);
        stage.wait_written(&sent[0]);
        stage.ok(&["save"]);
        stage.crash();
        let answer = stage.restore();
        assert_eq!(answer["agents"][0]["conversation"], "resume", "{answer}");
        stage.nudge(&sent[1]);
        // The model also gets the messages from before the crash.
        stage.arrived(&sent[..2]);
        // The old screen is in the scrollback.
        if !stage.program().clears_history {
            let all = stage.scrollback();
            let above = all.split_once("# gt: restored from the save of");
            let above = above.unwrap_or_else(|| panic!("{all}")).0;
            assert!(above.contains(&sent[0]), "{all}");
        }
        // A second crash without a new save.
        if !is_shortened(stage.program()) {
            stage.wait_written(&sent[1]);
            stage.crash();
            stage.restore();
            stage.nudge(&sent[2]);
            stage.arrived(&sent);
        }
        stage.ok(&["stop", "gastown/max"]);
        stage.nothing_is_left();
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn one_without_a_conversation_begins_one_after_a_crash() {
    each("restore, new", |stage| {
        stage.start(&["--no-prompt"]);
        stage.ok(&["save"]);
        stage.crash();
        stage.restore();
        let sent = ["the first words".to_owned()];
        stage.nudge(&sent[0]);
        stage.wait_prompt("the first words");
    });
}

/// Returns distinct messages of every size, most of them short.
fn messages(count: usize) -> Vec<String> {
    let block = |n: usize, bytes: usize| {
        let line = format!("{n:07} 0123456789abcdef ");
        let text = line.repeat(bytes / line.len() + 1);
        text[..bytes].trim_end().to_owned()
    };
    let message = |n: usize| match n % 20 {
        7 => (0..30)
            .map(|line| format!("message {n}, line {line}: Grüße, 日本語, 👩‍💻"))
            .collect::<Vec<_>>()
            .join("\n"),
        11 => block(n, 4_096),
        17 if n % 40 == 17 => block(n, 65_536),
        _ => format!("short message {n}"),
    };
    let mut all: Vec<String> = (0..count).map(message).collect();
    // The largest message is last, because every later request repeats it. It has many lines:
    // Gemini CLI takes minutes to process a single line of that length.
    if let Some(last) = all.last_mut() {
        let line = format!("{count:07} 0123456789abcdef 0123456789abcdef 0123456789abcdef\n");
        *last = line.repeat(1_000_000 / line.len()).trim_end().to_owned();
    }
    all
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn messages_arrive_once_whole_and_in_order() {
    every("messages", |stage| {
        stage.start(&["--no-prompt"]);
        // The last message has one megabyte.
        let mut sent = messages(count(100, 20));
        if is_shortened(stage.program()) {
            sent.truncate(12);
        }
        for text in &sent {
            let answer = stage.nudge(text);
            assert_eq!(
                answer["delivered"],
                "agent",
                "{text:.40}: {answer}\n{}",
                stage.screen()
            );
            assert_eq!(answer["verified"], true, "{text:.40}: {answer}");
        }
        stage.arrived(&sent);
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn twenty_writers_at_once_are_not_mixed() {
    each("writers", |stage| {
        stage.start(&["--no-prompt"]);
        let sent: Vec<String> = (0..20).map(|n| format!("writer {n} was here")).collect();
        let writers: Vec<Child> = sent
            .iter()
            .map(|text| stage.spawn(&["nudge", "gastown/max", text, "--timeout", "90"]))
            .collect();
        for writer in writers {
            let output = writer.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        stage.arrived_in_any_order(&sent);
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_permission_dialog_is_never_answered_by_a_message() {
    every("dialog", |stage| {
        stage.start(&["--no-prompt", "--ask-permissions"]);
        let mut sent = Vec::new();
        let program = stage.program();
        if program.run != program.ask {
            // The sandbox denies the command unless the model requests an escalation.
            stage.nudge(program.run);
            sent.push(program.run.to_owned());
            stage.arrived(&sent);
            assert!(!stage.was_approved(), "{}", stage.screen());
        }
        stage.nudge(program.ask);
        sent.push(program.ask.to_owned());
        stage.ok(&[
            "wait",
            "gastown/max",
            "--until",
            "waiting",
            "--timeout",
            "60",
        ]);
        for n in 0..count(50, 4) {
            for mode in ["immediate", "queue", "wait-idle"] {
                let text = format!("{mode} {n} while it asks");
                let answer = stage.nudge_with(&text, &["--mode", mode, "--timeout", "0.1"]);
                assert_eq!(answer["delivered"], "queue", "{mode}: {answer}");
                sent.push(text);
            }
        }
        // The dialog is still open, so no message answered it.
        let asked = stage.ok(&["answer", "gastown/max", "--json"]);
        assert!(asked.contains("\"kind\": \"permission\""), "{asked}");
        assert!(!stage.was_approved(), "it was not approved");
        // After the answer the queued messages arrive at the end of the turn.
        stage.ok(&["answer", "gastown/max", "yes"]);
        stage.arrived(&sent);
        assert!(stage.was_approved());
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_refused_question_stays_refused() {
    each("answer", |stage| {
        stage.start(&["--no-prompt", "--ask-permissions"]);
        let nothing = stage.gt(&["answer", "gastown/max", "yes"]);
        assert_eq!(nothing.status.code(), Some(4), "{nothing:?}");
        stage.nudge(stage.program().ask);
        stage.ok(&[
            "wait",
            "gastown/max",
            "--until",
            "waiting",
            "--timeout",
            "60",
        ]);
        stage.ok(&["answer", "gastown/max", "no"]);
        stage.ok(&["wait", "gastown/max", "--until", "idle", "--timeout", "60"]);
        assert!(!stage.was_approved());
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn a_half_typed_line_is_left_to_its_writer() {
    each("half a line", |stage| {
        stage.start(&["--no-prompt"]);
        stage.type_by_hand(&["-l", "half a line"]);
        wait_until("it is in the line", TIMEOUT, || {
            stage.screen().contains("half a line").then_some(())
        });
        let answer = stage.nudge_with("a message", &["--timeout", "0.5"]);
        assert_eq!(answer["delivered"], "queue", "{answer}");
        assert!(stage.screen().contains("half a line"));
        assert!(!stage.screen().contains("a message"), "{}", stage.screen());
        // The message is delivered after the half-typed line is completed and sent.
        stage.type_by_hand(&["-l", ", now whole"]);
        wait_until("it is whole", TIMEOUT, || {
            stage.screen().contains("now whole").then_some(())
        });
        stage.enter_until("the model got it", || !stage.history().is_empty());
        let answer = stage.nudge("the next one");
        assert_eq!(answer["delivered"], "agent", "{answer}");
        let sent = ["half a line, now whole", "a message", "the next one"];
        stage.arrived(&sent.map(String::from));
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn killed_at_any_moment_nothing_is_doubled_or_left_behind() {
    each("kills", |stage| {
        stage.start(&["--no-prompt"]);
        // The kills are spread over the time that a message takes here and now.
        let began = Instant::now();
        stage.nudge("the beginning");
        let whole = began.elapsed();
        let (mut sent, mut acknowledged) = (vec!["the beginning".to_owned()], Vec::new());
        for round in 0..count(50, 10) {
            let text = format!("round {round} of the killing");
            let mut child = stage.spawn(&["nudge", "gastown/max", &text, "--timeout", "60"]);
            let share = f64::from(u32::try_from(round).unwrap() * 37 % 100) / 100.0;
            // A third of them comes after the end.
            let pause = whole.mul_f64(1.5 * share);
            let began = Instant::now();
            while began.elapsed() < pause && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            if child.wait().unwrap().success() {
                acknowledged.push(gt_model::fingerprint(&text));
            }
            sent.push(text);
        }
        let end = stage.nudge("the end");
        assert_eq!(end["delivered"], "agent", "{end}\n{}", stage.screen());
        let last = gt_model::fingerprint("the end");
        let got = wait_until("the end", TIMEOUT, || {
            Some(stage.history()).filter(|history| history.last() == Some(&last))
        });
        // Messages are missing if the kill came before they were queued; all others arrive in
        // order.
        let known: Vec<String> = sent
            .iter()
            .map(|text| gt_model::fingerprint(text))
            .collect();
        let places: Vec<Option<usize>> = got[..got.len() - 1]
            .iter()
            .map(|print| known.iter().position(|known| known == print))
            .collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted_by(|a, b| a < b),
            "{places:?}\n{}",
            stage.screen()
        );
        assert!(
            acknowledged.iter().all(|print| got.contains(print)),
            "what was acknowledged has arrived"
        );
        assert!(
            places.len() * 4 > sent.len(),
            "several came as far as the queue"
        );
    });
}
