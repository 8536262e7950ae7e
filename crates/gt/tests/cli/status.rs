//! `gt status`, and tables in narrow and wide terminals.

mod tables;

use crate::env::{TIMEOUT, TestEnv, run_with_stdin};
use crate::help::{assert_fits, at_width};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;

const QUESTION: &str = "[[ask=Which colour should the button in the settings have?|red|blue]]";

/// Makes a town with an idle worker, a polecat with an item, and a worker that asks a question.
fn busy_town() -> TestEnv {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "max", "amy"]).ok();
    let title = "Write the whole of the manual, with examples for every command of the tool";
    env.create_item(title);
    env.gt(&["sling", &env.create_item(title)]).ok();
    for name in ["max", "amy", "Toast"] {
        env.gt(&["wait", name, "--until", "idle", "--timeout", "30"])
            .ok();
    }
    env.gt(&["nudge", "amy", QUESTION]).ok();
    env.gt(&["wait", "amy", "--until", "waiting", "--timeout", "30"])
        .ok();
    env
}

#[test]
fn agents_fit_the_width_and_questions_have_their_command() {
    let env = busy_town();
    assert_snapshot!(env.snapshot(&["agents"]), @r"
        exit code: 0
        --- stdout
        AGENT  STATE  SINCE  WHAT
        gastown/crew/amy  waiting !  [N]  asks: Which colour should the button in the settings have?
        gastown/crew/max  [STATE] !  [N]
        gastown/polecats/Toast  [STATE] !  [N]  gt-[ID] Write the whole of the manual, with examples for every command of the tool
        gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
        ! no permission prompts and no sandbox: `gt doctor`
        ");
    assert_snapshot!(at_width(&env, 60, &["agents"]).ok().rendered(&env), @r"
        exit code: 0
        --- stdout
        AGENT  STATE  SINCE  WHAT
        gastown/crew/amy  waiting !  [N]  asks: Which colou…
        gastown/crew/max  [STATE] !  [N]
        gastown/polecats/Toast  [STATE] !  [N]  gt-[ID] Write th…
        gastown/crew/amy waits for an answer:
          `gt answer gastown/crew/amy`
        ! no permission prompts and no sandbox: `gt doctor`
        ");
    assert_snapshot!(env.snapshot(&["agents", "--wide", "max"]), @r"
        exit code: 0
        --- stdout
        AGENT  STATE  SINCE  HEALTH  HARNESS  CONTAINER  NOTES  WHAT
        gastown/crew/max  [STATE] !  [N]  healthy  demo  gt-crew-max
        ! no permission prompts and no sandbox: `gt doctor`
        ");
    let session = env.agent("gastown/crew/max")["session"].clone();
    let session = session.as_str().unwrap();
    for columns in [60, 80, 140] {
        for args in [
            &["agents"][..],
            &["agents", "--wide"],
            &["answer", "amy"],
            &["crew", "list"],
            &["harness", "list"],
            &["harness", "show", "claude"],
            &["mail", "inbox"],
            &["polecat", "list"],
            &["rig", "list"],
            &["role", "show", "crew"],
            &["sessions", "list"],
            &["sessions", "show", session],
            &["status"],
            &["work", "list"],
        ] {
            let text = at_width(&env, columns, args).ok().stdout;
            // A folder of the test has no blanks at which a line could be broken.
            let is_path = |line: &&str| line.split(' ').any(|word| word.starts_with('/'));
            let lines: Vec<&str> = text.lines().filter(|line| !is_path(line)).collect();
            assert_fits(&lines.join("\n"), columns);
        }
    }
    // A pipe gets whole cells.
    assert!(
        env.gt(&["work", "list"])
            .ok()
            .stdout
            .contains("every command of the tool")
    );
    for (columns, line) in [
        (30, "Which colour should the button"),
        (60, "Which colour should the button in the settings have?"),
    ] {
        let text = at_width(&env, columns, &["answer", "amy"]).ok().stdout;
        assert_eq!(text.lines().next(), Some(line), "{text}");
    }
    assert_snapshot!(env.snapshot(&["answer", "amy"]), @r"
        exit code: 0
        --- stdout
        Which colour should the button in the settings have?
        ❯ 1. red
          2. blue
        `gt answer gastown/crew/amy NUMBER` answers.
        ");
}

#[test]
fn status_lists_what_needs_attention_once() {
    let env = busy_town();
    assert_snapshot!(env.snapshot(&["status"]), @r"
        exit code: 0
        --- stdout
        gt at ~/gt (tmux socket: ~/s)
          gastown (gt): 3 running
        Agents: 2 idle, 1 waiting.

        AGENT  STATE  SINCE  WHAT
        gastown/crew/amy  waiting  [N]  asks: Which colour should the button in the settings have?
        gastown/crew/max  [STATE]  [N]
        gastown/polecats/Toast  [STATE]  [N]  gt-[ID] Write the whole of the manual, with examples for every command of the tool

        Needs attention:
          ! gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
        ");
    let session = env.agent("gastown/crew/max")["session"].clone();
    assert_snapshot!(env.snapshot(&["sessions", "show", session.as_str().unwrap()]), @"
    exit code: 0
    --- stdout
    agent  gastown/crew/max
    outcome  running
    started  [TIME] [TIME] ([N] so far)
    usage  4 in, 22 out, [N] from the cache, [N] into the cache, demo
    harness  demo
    container  gt-crew-max
    folder  ~/gt/gastown/crew/max
    session  [UUID]
    conversation  [UUID]
    ");
    env.tmux(Tmux::new("kill-server"));
    wait_until("the loss is in the status", TIMEOUT, || {
        let status = env.gt(&["status"]).ok().stdout;
        let is_told = status.contains("are lost with the tmux server: `gt restore`");
        is_told.then_some(())
    });
}

/// Makes agents of which one asks a question, one is limited, one crashed and one works.
fn troubled_town() -> TestEnv {
    let env = TestEnv::with_crew(&["amy", "bob", "cat", "max"]);
    let start = ["crew", "start", "--all", "--no-prompt", "--no-auto-respawn"];
    env.gt(&start).ok();
    let wait = |name: &str, state: &str| {
        env.gt(&["wait", name, "--until", state, "--timeout", "30"])
            .ok();
    };
    for (name, message, state) in [
        ("amy", QUESTION, "waiting"),
        ("cat", "[[crash]]", "crashed"),
        ("max", "[[delay=60]] Look at all of it", "busy"),
    ] {
        wait(name, "idle");
        env.gt(&["nudge", name, message]).ok();
        wait_until(state, TIMEOUT, || {
            let agent = env.agent(&format!("gastown/crew/{name}"));
            (agent["state"] == state).then_some(())
        });
    }
    wait("bob", "idle");
    for (event, report) in [
        ("UserPromptSubmit", r#"{"prompt": "go on"}"#),
        (
            "StopFailure",
            r#"{"error": "rate_limit", "last_assistant_message": "You've hit your limit"}"#,
        ),
    ] {
        let args = ["signal", event, "--session", "gt-crew-bob", "--strict"];
        run_with_stdin(&mut env.gt_command(&args), report).ok();
    }
    env
}

#[test]
fn status_at_three_widths() {
    let env = troubled_town();
    // Where the first line breaks depends on the length of the home folder.
    let at = |columns: usize| {
        let shown = at_width(&env, columns, &["status"]).ok().rendered(&env);
        shown.replace("socket:\n  ~", "socket: ~")
    };
    assert_snapshot!(at(60), @"
    exit code: 0
    --- stdout
    gt at ~/gt (tmux socket: ~/s)
      gastown (gt): 3 running
    Agents: 1 busy, 1 crashed, 1 limited, 1 waiting.

    AGENT  STATE  SINCE  WHAT
    gastown/crew/amy  waiting  [N]  asks: Which colour should…
    gastown/crew/bob  limited  [N]  You've hit your limit
    gastown/crew/cat  crashed  [N]  killed by signal 9
    gastown/crew/max  [STATE]  [N]

    Needs attention:
      ! gastown/crew/amy waits for an answer:
        `gt answer gastown/crew/amy`
      ! gastown/crew/bob: limited: `gt peek gastown/crew/bob`
      ! gastown/crew/cat: agent dead: `gt peek gastown/crew/cat`
    ");
    assert_snapshot!(at(80), @"
    exit code: 0
    --- stdout
    gt at ~/gt (tmux socket: ~/s)
      gastown (gt): 3 running
    Agents: 1 busy, 1 crashed, 1 limited, 1 waiting.

    AGENT  STATE  SINCE  WHAT
    gastown/crew/amy  waiting  [N]  asks: Which colour should the button in the s…
    gastown/crew/bob  limited  [N]  You've hit your limit
    gastown/crew/cat  crashed  [N]  killed by signal 9
    gastown/crew/max  [STATE]  [N]

    Needs attention:
      ! gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
      ! gastown/crew/bob: limited: `gt peek gastown/crew/bob`
      ! gastown/crew/cat: agent dead: `gt peek gastown/crew/cat`
    ");
    assert_snapshot!(at(140), @"
    exit code: 0
    --- stdout
    gt at ~/gt (tmux socket: ~/s)
      gastown (gt): 3 running
    Agents: 1 busy, 1 crashed, 1 limited, 1 waiting.

    AGENT  STATE  SINCE  WHAT
    gastown/crew/amy  waiting  [N]  asks: Which colour should the button in the settings have?
    gastown/crew/bob  limited  [N]  You've hit your limit
    gastown/crew/cat  crashed  [N]  killed by signal 9
    gastown/crew/max  [STATE]  [N]

    Needs attention:
      ! gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
      ! gastown/crew/bob: limited: `gt peek gastown/crew/bob`
      ! gastown/crew/cat: agent dead: `gt peek gastown/crew/cat`
    ");
    // The command of each trouble is in one line of the section, and its cause only in the table.
    let text = env.gt(&["status"]).ok().stdout;
    for once in [
        "asks: Which colour",
        "gt answer gastown/crew/amy",
        "killed by signal",
        "hit your limit",
    ] {
        assert_eq!(text.matches(once).count(), 1, "{once}: {text}");
    }
    assert_snapshot!(at_width(&env, 60, &["agents"]).ok().rendered(&env), @"
    exit code: 0
    --- stdout
    AGENT  STATE  SINCE  WHAT
    gastown/crew/amy  waiting !  [N]  asks: Which colour shou…
    gastown/crew/bob  limited !  [N]  You've hit your limit
    gastown/crew/cat  crashed  [N]  killed by signal 9
    gastown/crew/max  [STATE] !  [N]
    gastown/crew/amy waits for an answer:
      `gt answer gastown/crew/amy`
    ! no permission prompts and no sandbox: `gt doctor`
    ");
    assert_snapshot!(at_width(&env, 140, &["agents", "--wide"]).ok().rendered(&env), @"
    exit code: 0
    --- stdout
    AGENT  STATE  SINCE  HEALTH  HARNESS  CONTAINER  NOTES  WHAT
    gastown/crew/amy  waiting !  [N]  healthy  demo  gt-crew-amy  asks: Which colour should the button in the settings have?
    gastown/crew/bob  limited !  [N]  limited  demo  gt-crew-bob  You've hit your limit
    gastown/crew/cat  crashed  [N]  agent dead  demo  gt-crew-cat  killed by signal 9
    gastown/crew/max  [STATE] !  [N]  healthy  demo  gt-crew-max
    gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
    ! no permission prompts and no sandbox: `gt doctor`
    ");
}

#[test]
fn harness_and_session_at_three_widths() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["wait", "max", "--until", "idle", "--timeout", "30"])
        .ok();
    let session = env.agent("gastown/crew/max")["session"].clone();
    env.gt(&["stop", "max"]).ok();
    let show = |columns: usize| {
        let args = ["sessions", "show", session.as_str().unwrap()];
        let shown = at_width(&env, columns, &args).ok().stdout;
        // A path is not broken.
        let lines = shown.lines().filter(|line| !line.contains('/'));
        assert_fits(&lines.collect::<Vec<_>>().join("\n"), columns);
        shown
    };
    for columns in [60, 80, 140] {
        // Where the line is broken depends on the numbers.
        let words: Vec<String> = show(columns)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        assert_eq!(words, show(200).split_whitespace().collect::<Vec<_>>());
    }
    let harness = |columns: usize| {
        let args = ["harness", "show", "demo"];
        let shown = at_width(&env, columns, &args).ok().stdout;
        shown.split("env.").next().unwrap().to_owned()
    };
    assert_snapshot!(harness(60), @r#"
    FIELD                     VALUE                     FROM
    command.args              ["demo-agent"]            built-in
    command.continue          ["--continue"]            built-in
    command.fork              ["--resume", "{id}",      built-in
                              "--fork-session"]
    command.model_args        ["--model", "{model}"]    built-in
    command.print             ["--print", "{prompt}"]   built-in
    command.program           "{gt}"                    built-in
    command.prompt            "positional"              built-in
    command.resume            ["--resume", "{id}"]      built-in
    command.session_id        ["--session-id", "{id}"]  built-in
    command.settings          ["--settings", "{file}"]  built-in
    command.skip_permissions  ["--dangerously-skip-per  built-in
                              missions"]
    dialogs                   [{ choose = ["Yes, I      built-in
                              trust this folder"],
                              name = "trust", options
                              = ["No, exit", "Yes, I
                              trust this folder"],
                              shows = ["Do you trust
                              the files in this
                              folder?"] }, { name =
                              "permission", shows =
                              ["^Do you want to
                              proceed?"] }, { name =
                              "question", shows =
                              ["Enter to select · ↑/↓
                              to navigate"] }]
    "#);
    assert_snapshot!(harness(80), @r#"
    FIELD                      VALUE                                        FROM
    command.args               ["demo-agent"]                               built-in
    command.continue           ["--continue"]                               built-in
    command.fork               ["--resume", "{id}", "--fork-session"]       built-in
    command.model_args         ["--model", "{model}"]                       built-in
    command.print              ["--print", "{prompt}"]                      built-in
    command.program            "{gt}"                                       built-in
    command.prompt             "positional"                                 built-in
    command.resume             ["--resume", "{id}"]                         built-in
    command.session_id         ["--session-id", "{id}"]                     built-in
    command.settings           ["--settings", "{file}"]                     built-in
    command.skip_permissions   ["--dangerously-skip-permissions"]           built-in
    dialogs                    [{ choose = ["Yes, I trust this folder"],    built-in
                               name = "trust", options = ["No, exit",
                               "Yes, I trust this folder"], shows = ["Do
                               you trust the files in this folder?"] }, {
                               name = "permission", shows = ["^Do you want
                               to proceed?"] }, { name = "question", shows
                               = ["Enter to select · ↑/↓ to navigate"] }]
    "#);
    assert_snapshot!(harness(140), @r#"
    FIELD                      VALUE                                                                                                    FROM
    command.args               ["demo-agent"]                                                                                           built-in
    command.continue           ["--continue"]                                                                                           built-in
    command.fork               ["--resume", "{id}", "--fork-session"]                                                                   built-in
    command.model_args         ["--model", "{model}"]                                                                                   built-in
    command.print              ["--print", "{prompt}"]                                                                                  built-in
    command.program            "{gt}"                                                                                                   built-in
    command.prompt             "positional"                                                                                             built-in
    command.resume             ["--resume", "{id}"]                                                                                     built-in
    command.session_id         ["--session-id", "{id}"]                                                                                 built-in
    command.settings           ["--settings", "{file}"]                                                                                 built-in
    command.skip_permissions   ["--dangerously-skip-permissions"]                                                                       built-in
    dialogs                    [{ choose = ["Yes, I trust this folder"], name = "trust", options = ["No, exit", "Yes, I trust this      built-in
                               folder"], shows = ["Do you trust the files in this folder?"] }, { name = "permission", shows = ["^Do
                               you want to proceed?"] }, { name = "question", shows = ["Enter to select · ↑/↓ to navigate"] }]
    "#);
}
