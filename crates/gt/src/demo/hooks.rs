//! Hooks in Claude Code's format, from the file given with `--settings`.
//!
//! A hook is a shell command that gets the event as JSON on its input. Its output can only add to
//! the context: a hook that fails, hangs or is missing becomes a warning and never stops the agent.
//! Decisions of hooks (`"decision": "block"`, exit code 2) have no effect.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use super::command::{CommandOutput, Running};
use super::signals::Signals;

/// Upper limit for the timeout of a hook.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Events whose output becomes context.
const CONTEXT_EVENTS: [&str; 2] = ["SessionStart", "UserPromptSubmit"];

/// Output of hooks for the caller to show.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookOutput {
    Context(String),
    Warning(String),
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct DemoHooks {
    #[serde(default)]
    hooks: BTreeMap<String, Vec<HookGroup>>,
}

#[derive(Debug, Deserialize)]
struct HookGroup {
    matcher: Option<String>,
    hooks: Vec<DemoHook>,
}

#[derive(Debug, Deserialize)]
struct DemoHook {
    /// Empty for hooks that are not commands. Those are skipped.
    #[serde(default)]
    command: String,
    /// In seconds.
    timeout: Option<u64>,
}

impl DemoHooks {
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| problem(&error))?;
        serde_json::from_str(&text).map_err(|error| problem(&error))
    }

    pub(super) fn has(&self, event: &str) -> bool {
        self.hooks.contains_key(event)
    }

    /// Runs the hooks of `event` whose matcher accepts `subject`, one after the other.
    pub(super) fn fire(
        &self,
        event: &str,
        subject: &str,
        payload: &Value,
        signals: &Signals,
    ) -> Vec<HookOutput> {
        let groups = self.hooks.get(event).into_iter().flatten();
        groups
            .filter(|group| group.takes(subject))
            .flat_map(|group| &group.hooks)
            .filter(|hook| !hook.command.is_empty())
            .filter_map(|hook| {
                // The `SessionEnd` hook must run to its end even after a signal.
                let hurry = event != "SessionEnd";
                match hook.run(payload, signals, hurry) {
                    Ok(finished) => note(event, &finished),
                    Err(problem) => Some(warning(event, &problem)),
                }
            })
            .collect()
    }
}

impl HookGroup {
    /// Returns whether the matcher accepts `subject`. A matcher is empty, `*`, or names separated
    /// by `|`.
    fn takes(&self, subject: &str) -> bool {
        match self.matcher.as_deref() {
            None | Some("" | "*") => true,
            Some(names) => names.split('|').any(|name| name == subject),
        }
    }
}

impl DemoHook {
    fn run(
        &self,
        payload: &Value,
        signals: &Signals,
        hurry: bool,
    ) -> Result<CommandOutput, String> {
        let limit = self
            .timeout
            .map_or(TIMEOUT, Duration::from_secs)
            .min(TIMEOUT);
        let until = Instant::now() + limit;
        let input = format!("{payload}\n").into_bytes();
        let mut running =
            Running::start(&self.command, input).map_err(|error| error.to_string())?;
        loop {
            match running.transfer() {
                Ok(Some(finished)) => return Ok(finished),
                Ok(None) => {}
                Err(error) => return Err(error.to_string()),
            }
            if Instant::now() >= until {
                running.kill();
                return Err(format!("no end after {} s", limit.as_secs()));
            }
            if hurry && signals.ending().is_some() {
                running.kill();
                return Err("cut short by a signal".to_owned());
            }
            let mut fds = Vec::new();
            running.watch(&mut fds);
            signals.wait(&mut fds, Some(until));
        }
    }
}

fn note(event: &str, finished: &CommandOutput) -> Option<HookOutput> {
    if let Some(failure) = finished.failure() {
        let reason = finished.stderr.lines().next().unwrap_or_default();
        return Some(warning(event, format!("{failure} {reason}").trim_end()));
    }
    let context = context(&finished.stdout);
    (CONTEXT_EVENTS.contains(&event) && !context.is_empty()).then_some(HookOutput::Context(context))
}

fn warning(event: &str, problem: &str) -> HookOutput {
    HookOutput::Warning(format!("{event} hook: {problem}"))
}

/// Returns `hookSpecificOutput.additionalContext` of JSON output, or plain text as it is.
fn context(stdout: &str) -> String {
    let text = stdout.trim_end();
    match serde_json::from_str::<Value>(text) {
        Ok(json @ Value::Object(_)) => {
            let inside = json.pointer("/hookSpecificOutput/additionalContext");
            inside
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fire(event: &str, settings: Value) -> Vec<HookOutput> {
        let hooks: DemoHooks = serde_json::from_value(settings).expect("settings");
        let signals = Signals::new().expect("signals");
        hooks.fire(
            event,
            "startup",
            &json!({"n": "x".repeat(300_000)}),
            &signals,
        )
    }

    fn one(command: &str) -> Value {
        json!([{"hooks": [{"type": "command", "command": command}]}])
    }

    #[test]
    fn output_becomes_context_only_where_it_should() {
        let start = fire(
            "SessionStart",
            json!({"hooks": {"SessionStart": one("wc -c")}}),
        );
        assert_eq!(start, [HookOutput::Context("300009".to_owned())]);
        assert_eq!(fire("Stop", json!({"hooks": {"Stop": one("echo hi")}})), []);
    }

    #[test]
    fn failures_are_warnings() {
        let run = |command| fire("Stop", json!({"hooks": {"Stop": one(command)}}));
        assert_eq!(
            run("echo no >&2; exit 2"),
            [HookOutput::Warning("Stop hook: exit code 2 no".to_owned())]
        );
        let [HookOutput::Warning(missing)] = &run("/no/such/program")[..] else {
            panic!("no warning");
        };
        assert!(missing.contains("exit code 127"), "{missing}");
        let hangs = json!([{"hooks": [{"command": "sleep 100", "timeout": 0}]}]);
        assert_eq!(
            fire("Stop", json!({"hooks": {"Stop": hangs}})),
            [HookOutput::Warning(
                "Stop hook: no end after 0 s".to_owned()
            )]
        );
    }

    #[test]
    fn a_background_process_does_not_hold_the_hook() {
        let before = Instant::now();
        let notes = fire(
            "SessionStart",
            json!({"hooks": {"SessionStart": one("sleep 5 & echo a")}}),
        );
        assert_eq!(notes, [HookOutput::Context("a".to_owned())]);
        assert!(before.elapsed() < Duration::from_secs(4));
    }

    #[test]
    fn matchers_and_json_output() {
        let group = |matcher: &str, command: &str| json!({"matcher": matcher, "hooks": [{"command": command}]});
        let json = r#"echo '{"hookSpecificOutput": {"additionalContext": "inside"}}'"#;
        let notes = fire(
            "SessionStart",
            json!({"permissions": {}, "hooks": {"SessionStart": [
                group("resume", "echo no"), group("resume|startup", "echo yes"), group("*", json),
                {"hooks": [{"type": "prompt", "prompt": "not a command"}]},
            ]}}),
        );
        assert_eq!(
            notes,
            [
                HookOutput::Context("yes".to_owned()),
                HookOutput::Context("inside".to_owned())
            ]
        );
    }
}
