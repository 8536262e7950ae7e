//! Usage limits, accounts, models and budgets on the real programs.

use crate::stage::{Stage, TIMEOUT};
use crate::{each, every, is_full};
use gt_tmux::testing::wait_until;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum wait for the end of a short limit: programs omit the seconds of its end, so that `gt`
/// waits up to a minute longer; upkeep adds another minute or two.
const LIMIT_TIMEOUT: Duration = Duration::from_secs(280);

/// Maximum wait for what an event causes: the next sweep of the daemon would do it too, later.
const BEFORE_SWEEP: Duration = Duration::from_secs(40);

fn agent(stage: &Stage) -> Value {
    let agents: Value = serde_json::from_str(&stage.ok(&["agents", "--json"])).unwrap();
    agents[0].clone()
}

/// Writes a dummy login for a subscription of Claude Code into a configuration folder: only
/// subscriptions have usage limits.
fn log_in(stage: &Stage, folder: &str, settings: &str) {
    let login = json!({"claudeAiOauth": {"accessToken": "sk-ant-oat01-dummy",
        "refreshToken": "sk-ant-ort01-dummy", "expiresAt": 4_102_444_800_000_u64,
        "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}});
    stage.write(&format!("{folder}/.credentials.json"), &login.to_string());
    stage.write(settings, r#"{"hasCompletedOnboarding": true}"#);
}

/// Starts the agent with a program that has usage limits.
fn start(stage: &Stage, more: &[&str]) {
    let args = ["crew", "start", "max", "--no-prompt"];
    let args = match stage.program().harness {
        "claude" => {
            let own = ["ANTHROPIC_API_KEY=", "ANTHROPIC_BASE_URL", "IS_SANDBOX"];
            let own = own.iter().flat_map(|name| ["--env", name]);
            args.into_iter().chain(own).collect()
        }
        _ => args.to_vec(),
    };
    stage.ok(&[&args, more].concat());
}

/// Waits until a request that contains this text was answered.
#[track_caller]
fn wait_answered(stage: &Stage, text: &str, timeout: Duration) {
    let what = format!("{} gets {text:?}", stage.program().harness);
    wait_until(&what, timeout, || {
        let requests = stage.requests();
        let mut own = requests.iter().filter(|it| it.has_tools);
        own.any(|it| it.status == 200 && it.prompt.contains(text))
            .then_some(())
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn agent_goes_on_by_itself_when_its_limit_has_ended() {
    each("limit resumed", |stage| {
        let is_claude = stage.program().harness == "claude";
        // Codex takes minutes: it shows its limit only on its screen, which regular upkeep reads.
        let is_included = is_claude || (is_full() && stage.program().harness == "codex");
        if !is_included {
            return;
        }
        let settings = std::fs::read_to_string(stage.path("gt/town.toml")).unwrap();
        stage.write(
            "gt/town.toml",
            &format!("{settings}\n[save]\nevery_minutes = 1\n"),
        );
        if is_claude {
            log_in(stage, ".claude", ".claude.json");
            // With this, Claude Code opens its dialog instead of continuing by itself.
            stage.write(
                ".claude/settings.json",
                r#"{"autoContinueAtUsageLimit": false}"#,
            );
        }
        start(stage, &[]);
        let limit = Duration::from_secs(20);
        let began = Instant::now();
        stage.nudge(&format!("[[limit={}]]", limit.as_secs()));
        let limited = wait_until("a limit with its end", TIMEOUT, || {
            let agent = agent(stage);
            let reason = agent["state_reason"].as_str().unwrap_or_default();
            let asks = reason.ends_with("asks what to do") || !is_claude;
            let is_whole = agent["state"] == "limited" && agent["resets_at"].is_string() && asks;
            is_whole.then_some(agent)
        });
        assert_eq!(limited["health"], "limited", "{limited}");
        let table = stage.ok(&["agents"]);
        assert!(table.contains("limited until "), "{table}");
        wait_answered(stage, "usage limit has ended", LIMIT_TIMEOUT);
        assert!(began.elapsed() > limit, "{:?}", began.elapsed());
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn limited_agent_moves_to_another_account_with_its_conversation() {
    each("account switch", |stage| {
        let harness = stage.program().harness;
        let model = match harness {
            "claude" => "claude-opus-4-8",
            "codex" => "gpt-other",
            _ => return,
        };
        for name in ["first", "second"] {
            let folder = format!("gt/.accounts/{name}/{harness}");
            stage.ok(&["account", "add", name, "--harness", harness]);
            match harness {
                "claude" => log_in(stage, &folder, &format!("{folder}/.claude.json")),
                _ => {
                    let (_, settings) = stage.program().settings[0];
                    stage.write(&format!("{folder}/config.toml"), settings);
                }
            }
        }
        let settings = std::fs::read_to_string(stage.path("gt/town.toml")).unwrap();
        let switch = settings.replace("[limits]", "[limits]\nat_limit = 'switch'");
        stage.write("gt/town.toml", &switch);
        start(stage, &["--account", "first", "--model", model]);
        // Codex shows its limit only on its screen, which the daemon reads.
        if harness == "codex" {
            stage.ok(&["daemon", "start"]);
        }
        stage.nudge("remember the blue door");
        stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
        let before = agent(stage)["session"].clone();
        stage.nudge("[[limit=7200]]");
        let prompt = "gt moved you to the account second";
        wait_answered(stage, prompt, BEFORE_SWEEP);
        let requests = stage.requests();
        let moved = requests.iter().find(|it| it.prompt.starts_with(prompt));
        let moved = moved.unwrap();
        let door = gt_model::fingerprint("remember the blue door");
        assert!(moved.history.contains(&door), "{:?}", moved.history);
        assert_eq!(moved.model, model);
        let now = agent(stage);
        assert_ne!(now["session"], before, "{now}");
        let events = stage.ok(&["events", "--type", "account_switch", "--json"]);
        assert!(events.contains("\"second\""), "{events}");
        stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
        stage.ok(&["daemon", "stop"]);
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn model_reaches_the_requests() {
    every("model", |stage| {
        let (given, requested) = match stage.program().harness {
            "claude" => ("claude-opus-4-8", "claude-opus-4-8"),
            "codex" => ("gpt-other", "gpt-other"),
            "opencode" => ("anthropic/claude-haiku-4-5", "claude-haiku-4-5"),
            _ => ("gemini-2.5-flash", "gemini-2.5-flash"),
        };
        stage.start(&["--no-prompt", "--model", given]);
        stage.nudge("hello");
        wait_answered(stage, "hello", TIMEOUT);
        let requests = stage.requests();
        let own = requests.iter().filter(|it| it.has_tools);
        let models: Vec<&str> = own.map(|it| it.model.as_str()).collect();
        assert!(
            models.iter().all(|model| *model == requested),
            "{models:?}\n{}",
            stage.screen()
        );
        assert_eq!(agent(stage)["model"], given);
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn exhausted_budget_pauses_the_agent_and_refuses_starts() {
    each("budget", |stage| {
        if stage.program().harness != "claude" {
            return;
        }
        let settings = std::fs::read_to_string(stage.path("gt/town.toml")).unwrap();
        stage.write(
            "gt/town.toml",
            &format!("{settings}\n[budget]\nday = 0.0001\n"),
        );
        stage.start(&["--no-prompt"]);
        stage.nudge("hello");
        let paused = wait_until("it is paused", TIMEOUT, || {
            let agent = agent(stage);
            (agent["state"] == "paused").then_some(agent)
        });
        let reason = paused["state_reason"].as_str().unwrap();
        assert!(reason.starts_with("budget of the day: $"), "{paused}");
        // The turn ended normally, and nothing was asked after it.
        let count = |stage: &Stage| stage.requests().iter().filter(|it| it.has_tools).count();
        assert_eq!(count(stage), 1);
        let sent = stage.nudge_with("a second message", &["--timeout", "1"]);
        assert_eq!(sent["deliverer"], "resume", "{sent}");
        let refused = stage.gt(&["start", "mayor", "--no-prompt"]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert_eq!(count(stage), 1);
        stage.ok(&["budget", "raise", "day", "1000", "--today"]);
        wait_answered(stage, "a second message", TIMEOUT);
    });
}
