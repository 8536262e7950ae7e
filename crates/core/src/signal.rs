//! Meaning of the hooks of agent programs.
//!
//! Each hook is a row of one table, with the names that the programs use. [`state_of`] derives the
//! state of the agent from a hook.

use crate::limit;
use crate::state::{Reason, State};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    SessionStart,
    Prompt,
    ToolStart,
    Permission,
    Notification,
    ToolEnd,
    Stop,
    StopFailure,
    Compact,
    Interrupt,
    /// The agent itself reports that its work is complete. No program has a hook for it.
    Done,
    SessionEnd,
}

/// Our word for each event, and the names that programs use for it.
const EVENTS: &[(HookEvent, &str, &[&str])] = &[
    (HookEvent::SessionStart, "session-start", &["SessionStart"]),
    (
        HookEvent::Prompt,
        "prompt",
        &["UserPromptSubmit", "BeforeAgent"],
    ),
    (
        HookEvent::ToolStart,
        "tool-start",
        &["PreToolUse", "BeforeTool"],
    ),
    (HookEvent::Permission, "permission", &["PermissionRequest"]),
    (HookEvent::Notification, "notification", &["Notification"]),
    (
        HookEvent::ToolEnd,
        "tool-end",
        &["PostToolUse", "PostToolUseFailure", "AfterTool"],
    ),
    (
        HookEvent::Stop,
        "stop",
        &["Stop", "AfterAgent", "agent-turn-complete"],
    ),
    (HookEvent::StopFailure, "stop-failure", &["StopFailure"]),
    (
        HookEvent::Compact,
        "compact",
        &["PreCompact", "PreCompress"],
    ),
    (HookEvent::Interrupt, "interrupt", &["Interrupt"]),
    (HookEvent::Done, "done", &[]),
    (HookEvent::SessionEnd, "session-end", &["SessionEnd"]),
];

impl HookEvent {
    /// Parses our word or a program's.
    pub fn from_word(word: &str) -> Option<HookEvent> {
        EVENTS
            .iter()
            .find(|(_, ours, theirs)| *ours == word || theirs.contains(&word))
            .map(|(event, _, _)| *event)
    }

    pub fn words() -> impl Iterator<Item = &'static str> {
        EVENTS.iter().map(|(_, word, _)| *word)
    }
}

/// State that a hook reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedState {
    pub state: State,
    pub reason: Reason,
    /// Number of tasks that the finished turn left running in the background.
    pub background: u32,
}

/// Returns the state of a session that was started with a prompt, until a hook reports that prompt.
pub fn first_prompt() -> ReportedState {
    ReportedState {
        state: State::Busy,
        reason: Reason::FirstPrompt,
        background: 0,
    }
}

/// Returns the state that an event reports; `None` if it reports none.
pub fn state_of(event: HookEvent, report: &Value) -> Option<ReportedState> {
    let said = |state, reason: &str| {
        Some(ReportedState {
            state,
            reason: one_line(reason).into(),
            background: 0,
        })
    };
    match event {
        HookEvent::SessionStart => said(State::Idle, "started"),
        HookEvent::Prompt => said(State::Busy, Reason::TookPrompt.as_str()),
        HookEvent::ToolStart | HookEvent::Permission if is_a_question(report) => {
            let reason = question(report).map(|question| format!("asks: {question}"));
            said(
                State::Waiting,
                reason.as_deref().unwrap_or("asks a question"),
            )
        }
        HookEvent::ToolStart | HookEvent::ToolEnd => said(State::Busy, &tool(report)),
        HookEvent::Permission => said(State::Waiting, &format!("asks: {}", tool(report))),
        HookEvent::Notification => notification(report),
        // The turn is over even if background tasks still run.
        HookEvent::Stop => Some(ReportedState {
            state: State::Idle,
            reason: Reason::Finished,
            background: background_tasks(report),
        }),
        HookEvent::StopFailure => {
            let message = failure(report).unwrap_or("its turn failed");
            let state = match limit::is_usage_limit(message) {
                true => State::Limited,
                false => State::Error,
            };
            Some(ReportedState {
                state,
                reason: one_line(message).into(),
                background: background_tasks(report),
            })
        }
        HookEvent::Interrupt => said(State::Idle, Reason::Interrupted.as_str()),
        HookEvent::Compact => said(State::Busy, "compacts its context"),
        HookEvent::Done => {
            let why = report["reason"].as_str().or(report["message"].as_str());
            said(State::Done, why.unwrap_or("says that it is done"))
        }
        HookEvent::SessionEnd => None,
    }
}

/// Returns whether a hook's report may be worth an event. Most hooks only report that the work
/// continues, and the start of a session has an event already.
pub fn may_cause_event(event: HookEvent, said: &ReportedState) -> bool {
    match event {
        HookEvent::SessionStart | HookEvent::ToolEnd | HookEvent::Compact => false,
        // These may end a pause.
        HookEvent::Prompt | HookEvent::ToolStart => true,
        _ => said.state != State::Busy,
    }
}

/// Time after the end of a turn during which its hooks may arrive late, and so do not indicate a
/// new turn.
const LATE_SECONDS: i64 = 10;

/// Returns the states that a hook does not override, each for a number of seconds or, with `None`,
/// without limit. An interrupt and the end of the work both end a turn; hooks of that turn arrive
/// later and must not undo them. A new prompt does.
pub fn kept_states(event: HookEvent, said: State) -> &'static [(State, Option<i64>)] {
    const FOR_GOOD: &[(State, Option<i64>)] = &[(State::Paused, None), (State::Done, None)];
    const A_WHILE: &[(State, Option<i64>)] = &[
        (State::Paused, Some(LATE_SECONDS)),
        (State::Done, Some(LATE_SECONDS)),
    ];
    // Some programs report twice that they wait: with the question itself, and later with a
    // reminder that has less detail.
    const STILL: &[(State, Option<i64>)] =
        &[(State::Paused, Some(LATE_SECONDS)), (State::Waiting, None)];
    const STILL_IDLE: &[(State, Option<i64>)] = &[
        (State::Paused, None),
        (State::Done, None),
        (State::Idle, None),
        (State::Error, None),
        (State::Limited, None),
    ];
    match (event, said) {
        (HookEvent::Prompt, _) => &[],
        (HookEvent::Notification, State::Waiting) => STILL,
        (HookEvent::Notification, State::Idle) => STILL_IDLE,
        (HookEvent::ToolStart, State::Busy) => A_WHILE,
        // An agent that asks or fails is not done.
        (_, State::Waiting | State::Error | State::Limited) => &A_WHILE[..1],
        (_, State::Idle | State::Busy) => FOR_GOOD,
        _ => &[],
    }
}

/// Returns whether a state noted `age_seconds` ago stays despite this hook.
pub fn is_kept(noted: State, age_seconds: i64, event: HookEvent, said: State) -> bool {
    kept_states(event, said).iter().any(|(state, seconds)| {
        *state == noted && seconds.is_none_or(|seconds| age_seconds < seconds)
    })
}

/// Returns whether the agent may be idle now, so that queued messages can be delivered.
pub fn ends_a_turn(event: HookEvent) -> bool {
    matches!(
        event,
        HookEvent::Stop | HookEvent::StopFailure | HookEvent::Interrupt | HookEvent::SessionStart
    )
}

fn notification(report: &Value) -> Option<ReportedState> {
    let kind = report["notification_type"].as_str().unwrap_or_default();
    let message = report["message"].as_str().unwrap_or_default();
    let state = match kind {
        "permission_prompt" | "ToolPermission" | "elicitation_dialog" => State::Waiting,
        "idle_prompt" => State::Idle,
        _ => return None,
    };
    Some(ReportedState {
        state,
        reason: one_line(message).into(),
        background: 0,
    })
}

/// Returns why a turn failed: the program's own message, or else the kind of the error.
fn failure(report: &Value) -> Option<&str> {
    [
        "last_assistant_message",
        "message",
        "error_details",
        "error",
    ]
    .iter()
    .filter_map(|field| report[*field].as_str())
    .find(|text| !text.trim().is_empty())
}

/// Returns whether the report is about a tool with which the program asks the person something.
fn is_a_question(report: &Value) -> bool {
    const QUESTIONS: &[&str] = &["AskUserQuestion", "request_user_input", "ask_user"];
    report["tool_name"]
        .as_str()
        .is_some_and(|name| QUESTIONS.contains(&name))
}

/// Returns the first question of the report.
fn question(report: &Value) -> Option<&str> {
    let input = &report["tool_input"];
    let several = input["questions"][0]["question"].as_str();
    several.or(input["question"].as_str())
}

fn background_tasks(report: &Value) -> u32 {
    let tasks = report["background_tasks"].as_array();
    tasks.map_or(0, |tasks| u32::try_from(tasks.len()).unwrap_or(u32::MAX))
}

/// Describes a tool call, such as `Bash(touch x)`.
fn tool(report: &Value) -> String {
    let name = report["tool_name"].as_str().unwrap_or("a tool");
    let input = &report["tool_input"];
    let what = ["command", "file_path", "url", "pattern", "question"]
        .iter()
        .find_map(|field| input[*field].as_str());
    what.map_or_else(|| name.to_owned(), |what| format!("{name}({what})"))
}

fn one_line(text: &str) -> String {
    const LONGEST: usize = 120;
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hooks_say_what_the_agent_does() {
        let check = |name: &str, report: Value, expected: Option<(State, &str)>| {
            let event = HookEvent::from_word(name).unwrap();
            let said = state_of(event, &report);
            let said = said.as_ref().map(|said| (said.state, said.reason.as_str()));
            assert_eq!(said, expected, "{name}");
        };
        let bash = json!({"tool_name": "Bash", "tool_input": {"command": "touch\nx"}});
        check(
            "UserPromptSubmit",
            json!({"prompt": "x"}),
            Some((State::Busy, "took a prompt")),
        );
        check(
            "PermissionRequest",
            bash.clone(),
            Some((State::Waiting, "asks: Bash(touch x)")),
        );
        check(
            "PreToolUse",
            json!({"tool_name": "request_user_input"}),
            Some((State::Waiting, "asks a question")),
        );
        let asked = json!({"tool_name": "AskUserQuestion",
            "tool_input": {"questions": [{"question": "Which?"}, {"question": "How?"}]}});
        for name in ["PreToolUse", "PermissionRequest"] {
            check(name, asked.clone(), Some((State::Waiting, "asks: Which?")));
        }
        check("PostToolUse", bash, Some((State::Busy, "Bash(touch x)")));
        check("Stop", json!({}), Some((State::Idle, "finished its turn")));
        check(
            "Stop",
            json!({"background_tasks": [1]}),
            Some((State::Idle, "finished its turn")),
        );
        check(
            "StopFailure",
            json!({"error": "500"}),
            Some((State::Error, "500")),
        );
        check(
            "StopFailure",
            json!({"error": "unknown", "last_assistant_message": "API Error: 400 bad"}),
            Some((State::Error, "API Error: 400 bad")),
        );
        let limit = "You've hit your limit · resets 6:22am (UTC)";
        check(
            "StopFailure",
            json!({"error": "rate_limit", "last_assistant_message": limit}),
            Some((State::Limited, limit)),
        );
        let refused = "API Error: Request rejected (429) · Rate limited";
        check(
            "StopFailure",
            json!({"error": "rate_limit", "last_assistant_message": refused}),
            Some((State::Error, refused)),
        );
        let asks = json!({"notification_type": "permission_prompt", "message": "m"});
        check("Notification", asks, Some((State::Waiting, "m")));
        check("Notification", json!({"notification_type": "other"}), None);
        check(
            "done",
            json!({"reason": "all tests\npass"}),
            Some((State::Done, "all tests pass")),
        );
        check(
            "done",
            Value::Null,
            Some((State::Done, "says that it is done")),
        );
        check("SessionEnd", json!({}), None);
    }

    #[test]
    fn the_hooks_of_an_interrupt_leave_a_pause_and_a_new_prompt_ends_it() {
        let check = |noted, age, event: &str, report: Value, stays: bool| {
            let event = HookEvent::from_word(event).unwrap();
            let said = state_of(event, &report).unwrap().state;
            let found = is_kept(noted, age, event, said);
            assert_eq!(found, stays, "{noted:?} {age} {event:?} {said:?}");
        };
        let none = Value::Null;
        let idle = json!({"notification_type": "idle_prompt"});
        for noted in [State::Paused, State::Done] {
            check(noted, 0, "prompt", none.clone(), false);
            check(noted, 99, "stop", none.clone(), true);
            check(noted, 99, "interrupt", none.clone(), true);
            check(noted, 99, "tool-end", none.clone(), true);
            check(noted, 99, "notification", idle.clone(), true);
            check(noted, 9, "tool-start", none.clone(), true);
            check(noted, 10, "tool-start", none.clone(), false);
            check(noted, 10, "permission", none.clone(), false);
            check(noted, 10, "stop-failure", none.clone(), false);
        }
        check(State::Paused, 9, "permission", none.clone(), true);
        check(State::Done, 0, "permission", none.clone(), false);
        check(State::Paused, 9, "stop-failure", none.clone(), true);
        check(State::Busy, 0, "stop", none, false);
    }

    #[test]
    fn a_reminder_says_nothing_new() {
        for state in [State::Waiting, State::Idle] {
            assert!(is_kept(state, 1000, HookEvent::Notification, state));
        }
        for failed in [State::Error, State::Limited] {
            assert!(is_kept(failed, 1000, HookEvent::Notification, State::Idle));
            assert!(!is_kept(failed, 0, HookEvent::Prompt, State::Busy));
        }
        assert!(!is_kept(
            State::Busy,
            0,
            HookEvent::Notification,
            State::Waiting
        ));
        assert!(!is_kept(
            State::Waiting,
            0,
            HookEvent::Notification,
            State::Idle
        ));
        assert!(!is_kept(
            State::Waiting,
            0,
            HookEvent::Permission,
            State::Waiting
        ));
    }

    #[test]
    fn background_tasks_are_counted_when_a_turn_is_over() {
        let tasks = |report: Value| state_of(HookEvent::Stop, &report).unwrap().background;
        assert_eq!(tasks(json!({})), 0);
        assert_eq!(tasks(json!({"background_tasks": []})), 0);
        assert_eq!(
            tasks(json!({"background_tasks": [{"id": "a"}, {"id": "b"}]})),
            2
        );
    }

    #[test]
    fn every_word_is_read_and_none_twice() {
        let mut words: Vec<&str> = EVENTS
            .iter()
            .flat_map(|(_, ours, theirs)| [&[*ours], *theirs].concat())
            .collect();
        for word in &words {
            assert!(HookEvent::from_word(word).is_some());
        }
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
        assert_eq!(HookEvent::from_word("nope"), None);
    }
}
