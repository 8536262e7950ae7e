//! States that only real programs show: errors, retries, usage limits, background tasks, the start
//! of a session, and a start as root.

use crate::stage::{Stage, TIMEOUT};
use crate::{each, is_full};
use gt_tmux::testing::wait_until;
use serde_json::{Value, json};
use std::time::Duration;

fn agent(stage: &Stage) -> Value {
    let agents: Value = serde_json::from_str(&stage.ok(&["agents", "--json"])).unwrap();
    agents[0].clone()
}

#[track_caller]
fn wait_state(stage: &Stage, state: &str) -> Value {
    let what = format!("{} is {state}", stage.program().harness);
    wait_until(&what, TIMEOUT, || {
        let agent = agent(stage);
        (agent["state"] == state).then_some(agent)
    })
}

/// Makes Claude Code send its idle notification after two seconds; a user hook then creates the
/// file `reminded`.
fn remind_after_two_seconds(stage: &Stage) {
    let home = stage.path("");
    // The delay lets our own hook, which runs concurrently, finish first.
    let command = format!("sleep 1; touch '{}/reminded'", home.display());
    let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {"Notification": hook}});
    stage.write(".claude/settings.json", &settings.to_string());
    stage.write(".claude.json", r#"{"messageIdleNotifThresholdMs": 2000}"#);
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn api_error_stays_until_the_next_prompt() {
    each("API error", |stage| {
        let is_claude = stage.program().harness == "claude";
        if is_claude {
            remind_after_two_seconds(stage);
        }
        stage.start(&["--no-prompt"]);
        stage.nudge("[[error=400]]");
        let failed = wait_state(stage, "error");
        let reason = failed["state_reason"].as_str().unwrap();
        assert!(reason.contains("400"), "{failed}");
        assert_eq!(failed["health"], "turn_failed");
        if is_claude {
            assert!(reason.starts_with("API Error: 400"), "{failed}");
            wait_until("the idle reminder", TIMEOUT, || {
                stage.path("reminded").exists().then_some(())
            });
            assert_eq!(agent(stage)["state"], "error", "{}", stage.screen());
        }
        let waited = stage.ok(&["wait", "gastown/max", "--timeout", "30", "--json"]);
        assert!(waited.contains("\"error\""), "{waited}");
        stage.nudge("hello");
        wait_state(stage, "idle");
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn retried_request_is_the_reason_of_busy() {
    each("retry", |stage| {
        let error = match stage.program().harness {
            "claude" | "opencode" => "[[error=500]]",
            // Codex shows other errors only at its last attempts.
            "codex" => "[[error=401]]",
            _ => return,
        };
        stage.start(&["--no-prompt"]);
        stage.nudge(error);
        let retrying = wait_until("a retry that is shown", TIMEOUT, || {
            let agent = agent(stage);
            let reason = agent["state_reason"].as_str().unwrap_or_default();
            let is_shown = reason.starts_with("retrying: ") && reason.contains(", attempt ");
            is_shown.then_some(agent)
        });
        assert_eq!(retrying["state"], "busy");
        stage.ok(&["stop", "gastown/max", "--force"]);
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn usage_limit_is_limited_with_its_reset_time() {
    each("usage limit", |stage| {
        let is_claude = stage.program().harness == "claude";
        if !["claude", "codex"].contains(&stage.program().harness) {
            return;
        }
        start_with_limits(stage);
        let before = jiff::Timestamp::now();
        stage.nudge("[[limit=7200]]");
        let limited = wait_until("a limit with its time", TIMEOUT, || {
            let agent = agent(stage);
            let is_whole = agent["state"] == "limited"
                && (agent["continues"] == true || stage.program().harness == "codex");
            is_whole.then_some(agent)
        });
        let resets_at: jiff::Timestamp = limited["resets_at"].as_str().unwrap().parse().unwrap();
        let seconds = resets_at.as_second() - before.as_second();
        assert!((7_080..=7_320).contains(&seconds), "{limited}");
        assert_eq!(limited["health"], "limited");
        let reason = limited["state_reason"].as_str().unwrap();
        assert!(reason.contains("limit"), "{limited}");
        assert_eq!(
            reason.ends_with("continues by itself"),
            is_claude,
            "{limited}"
        );
        let line = stage.ok(&["agents"]);
        assert!(line.contains("limited"), "{line}");
        // A message after the limit begins a normal turn.
        stage.nudge("hello");
        wait_state(stage, "idle");
    });
}

/// Starts the program so that it has usage limits. In Claude Code only subscriptions have them.
fn start_with_limits(stage: &Stage) {
    if stage.program().harness != "claude" {
        return stage.start(&["--no-prompt"]);
    }
    let login = json!({"claudeAiOauth": {"accessToken": "sk-ant-oat01-dummy",
        "refreshToken": "sk-ant-ort01-dummy", "expiresAt": 4_102_444_800_000_u64,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}});
    stage.write(".claude/.credentials.json", &login.to_string());
    stage.write(".claude.json", r#"{"hasCompletedOnboarding": true}"#);
    stage.ok(&[
        "crew",
        "start",
        "max",
        "--no-prompt",
        "--env",
        "ANTHROPIC_API_KEY=",
        "--env",
        "ANTHROPIC_BASE_URL",
        "--env",
        "IS_SANDBOX",
    ]);
}

/// Maximum wait after a reset until Claude Code continues; it waits up to two minutes itself.
const AUTOMATIC_CONTINUE: Duration = Duration::from_secs(300);

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn limit_that_ends_is_followed_by_the_turn_that_the_program_begins() {
    each("limit ends", |stage| {
        // This check takes minutes, so only the full run has it.
        if stage.program().harness != "claude" || !is_full() {
            return;
        }
        start_with_limits(stage);
        stage.answer_where("usage limit has reset", "[[delay=5]]");
        stage.nudge("[[limit=8]]");
        let limited = wait_state(stage, "limited");
        assert!(limited["resets_at"].is_string(), "{limited}");
        let wait_for = |state: &str| {
            wait_until(state, AUTOMATIC_CONTINUE, || {
                let agent = agent(stage);
                let is_known = ["limited", "busy", "idle"].map(|it| agent["state"] == it);
                assert!(is_known.contains(&true), "{agent}");
                (agent["state"] == state).then_some(())
            });
        };
        wait_for("busy");
        wait_for("idle");
        let requests = stage.requests();
        let own = requests.iter().filter(|it| it.has_tools);
        let statuses: Vec<u16> = own.map(|it| it.status).collect();
        assert_eq!(statuses, [429, 200], "{}", stage.screen());
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn background_shell_leaves_the_agent_idle() {
    each("background", |stage| {
        if stage.program().harness != "claude" {
            return;
        }
        stage.start(&["--no-prompt"]);
        let call = json!({"command": "sleep 300", "description": "s", "run_in_background": true});
        stage.nudge(&format!("[[tool=Bash {call}]]"));
        let idle = wait_until("idle with a background task", TIMEOUT, || {
            let agent = agent(stage);
            (agent["background"] == 1).then_some(agent)
        });
        assert_eq!(idle["state"], "idle", "{idle}");
        stage.ok(&["wait", "gastown/max", "--timeout", "30"]);
        let checked = stage.ok(&["agents", "check"]);
        assert!(checked.contains("idle (1 background task)"), "{checked}");
        let sent = stage.nudge("hello");
        assert_eq!(sent["delivered"], "agent", "{sent}");
        stage.wait_prompt("hello");
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn session_that_begins_with_a_prompt_is_never_idle_before_it() {
    each("first prompt", |stage| {
        stage.answer_where("[GAS TOWN]", "[[delay=60]]");
        stage.start(&[]);
        let is_asked = || stage.requests().iter().any(|request| request.has_tools);
        while !is_asked() {
            let agent = agent(stage);
            assert_ne!(agent["state"], "idle", "{agent}\n{}", stage.screen());
        }
        assert_eq!(agent(stage)["state"], "busy");
        stage.ok(&["stop", "gastown/max", "--force"]);
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn start_as_root_names_the_variable_that_helps() {
    each("root", |stage| {
        if stage.program().harness != "claude" || !rustix::process::getuid().is_root() {
            return;
        }
        let output = stage
            .command(env!("CARGO_BIN_EXE_gt"))
            .env_remove("IS_SANDBOX")
            .args(["crew", "start", "max"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(told.contains("IS_SANDBOX=1"), "{told}");
        assert!(!told.contains("by hand"), "{told}");
        // With `--ask-permissions` no permission is bypassed, so the variable is not needed.
        let output = stage
            .command(env!("CARGO_BIN_EXE_gt"))
            .env_remove("IS_SANDBOX")
            .args(["crew", "start", "max", "--no-prompt", "--ask-permissions"])
            .args(["--env", "ANTHROPIC_API_KEY", "--env", "ANTHROPIC_BASE_URL"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        stage.nudge(stage.program().ask);
        let asks = wait_state(stage, "waiting");
        let reason = asks["state_reason"].as_str().unwrap();
        assert!(reason.contains("touch approved"), "{asks}");
        assert!(!stage.path("gt/gastown/crew/max/approved").exists());
    });
}
