//! Tests of states for which the screen is read.

use super::*;
use crate::screen::CapturedScreen;

fn preset() -> Preset {
    let mut preset = Preset::default();
    preset.title_marks.ready = vec!["✳".into()];
    preset.title_marks.busy = vec!["◑".into()];
    preset
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn looked(lines: &[String]) -> Option<CapturedScreen<'_>> {
    Some(CapturedScreen {
        lines,
        silent_seconds: None,
    })
}

#[test]
fn screen_decides_where_no_other_source_reports() {
    let asks = lines("Go on? [y/n]");
    let table = Patterns::default();
    let unknown = Preset::default();
    let mut seen = ObservedPane {
        tag: Some(State::Running),
        tag_source: Some(StateSource::Process),
        screen: looked(&asks),
        ..ObservedPane::default()
    };
    let report = judge(&seen, Some(&unknown), &table);
    assert_eq!(
        (report.state, report.source),
        (State::Waiting, StateSource::Screen)
    );
    assert_eq!(report.reason.as_deref(), Some("asks: Go on? [y/n]"));
    // Questions of a plain shell do not count.
    assert_eq!(judge(&seen, None, &table).state, State::Running);
    for tag in [
        State::Idle,
        State::Busy,
        State::Error,
        State::Done,
        State::Starting,
        State::Paused,
    ] {
        seen.tag = Some(tag);
        seen.tag_source = Some(StateSource::Hook);
        assert_eq!(judge(&seen, Some(&unknown), &table).state, tag);
    }
    // After a pause there may never be another report.
    seen.tag = Some(State::Idle);
    seen.tag_source = Some(StateSource::Gt);
    assert_eq!(judge(&seen, Some(&unknown), &table).state, State::Waiting);
    seen.dead = true;
    assert_eq!(judge(&seen, Some(&unknown), &table).state, State::Crashed);
}

#[test]
fn the_screen_says_what_is_asked_where_a_hook_does_not() {
    let demo = crate::harness::resolve("demo", None).unwrap().value;
    let dialog = lines("Bash(rm -rf build)\n\nDo you want to proceed?\n❯ 1. Yes\n  2. No");
    let mut seen = ObservedPane {
        tag: Some(State::Waiting),
        tag_source: Some(StateSource::Hook),
        tag_reason: Some("demo needs your permission"),
        screen: looked(&dialog),
        ..ObservedPane::default()
    };
    let mut check = |title, told, source, reason: &str| {
        (seen.title, seen.tag_reason) = (title, told);
        let report = judge(&seen, Some(&demo), &Patterns::default());
        assert_eq!((report.state, report.source), (State::Waiting, source));
        assert_eq!(report.reason.as_deref(), Some(reason));
    };
    let shown = "asks: Do you want to proceed? (Bash(rm -rf build))";
    check("", Some("needs you"), StateSource::Hook, shown);
    check("", None, StateSource::Hook, shown);
    check(
        "",
        Some("asks: Bash(x)"),
        StateSource::Hook,
        "asks: Bash(x)",
    );
    seen.tag = Some(State::Busy);
    seen.title = "✋ demo";
    let report = judge(&seen, Some(&demo), &Patterns::default());
    assert_eq!(
        (report.source, report.reason.as_deref()),
        (StateSource::Title, Some(shown))
    );
}

#[test]
fn interrupt_without_a_hook_is_read_from_the_screen() {
    const RULE: &str = "────────────────────────────────────────";
    let claude = crate::harness::resolve("claude", None).unwrap().value;
    let screen = |above: &str| lines(&format!("❯ go\n\n{above}\n\n{RULE}\n❯ \n{RULE}"));
    let stopped = screen("● Bash(x)\n  ⎿  Interrupted · What should Claude do instead?");
    let at_prompt = screen("● Fine.");
    let works = screen("✻ Thinking… (esc to interrupt)");
    let check = |tag, reason, lines: &[String], silent, expected: &str| {
        let seen = ObservedPane {
            tag: Some(tag),
            tag_source: Some(StateSource::Hook),
            tag_since: Some(10),
            tag_reason: Some(reason),
            printed_at: Some(12),
            screen: Some(CapturedScreen {
                lines,
                silent_seconds: Some(silent),
            }),
            ..ObservedPane::default()
        };
        let report = judge(&seen, Some(&claude), &Patterns::default());
        let since = report.since.unwrap();
        let found = format!("{} {:?} {since}", report.state.as_str(), report.source);
        assert_eq!(found, expected, "{tag:?} {reason} {lines:?}");
        let is_interrupted = report.reason == Some(Reason::Interrupted);
        assert_eq!(is_interrupted, report.state == State::Idle, "{report:?}");
    };
    let (asks, prompt, tool) = ("asks: Bash(x)", "took a prompt", "runs Bash(x)");
    let (busy, waiting) = (State::Busy, State::Waiting);
    check(waiting, asks, &stopped, 0, "idle Screen 12");
    // An unreadable screen may be a question, and so may one that is not drawn yet.
    check(waiting, asks, &at_prompt, 60, "waiting Hook 10");
    check(waiting, asks, &works, 0, "waiting Hook 10");
    check(busy, prompt, &stopped, 4, "idle Screen 12");
    // A turn that was stopped before it began leaves no message.
    check(busy, prompt, &at_prompt, 4, "idle Screen 12");
    check(busy, prompt, &at_prompt, 1, "busy Hook 10");
    check(busy, prompt, &works, 60, "busy Hook 10");
    // Work that is not drawn, such as background work.
    check(busy, tool, &at_prompt, 60, "busy Hook 10");
    check(busy, tool, &stopped, 4, "idle Screen 12");
}

#[test]
fn state_from_a_pane_alone_has_a_start_time() {
    let preset = preset();
    let unknown = Preset::default();
    let (asks, prints) = (lines("Go on? [y/n]"), lines("compiling"));
    let seen = |title, lines| ObservedPane {
        title,
        tag: Some(State::Running),
        tag_source: Some(StateSource::Process),
        tag_since: Some(10),
        printed_at: Some(30),
        typed_at: Some(20),
        screen: Some(CapturedScreen {
            lines,
            silent_seconds: Some(1),
        }),
        ..ObservedPane::default()
    };
    let check = |preset: &Preset, seen: ObservedPane<'_>, state, since| {
        let report = judge(&seen, Some(preset), &Patterns::default());
        assert_eq!((report.state, report.since), (state, since), "{report:?}");
    };
    let (waiting, busy, idle) = (State::Waiting, State::Busy, State::Idle);
    check(&unknown, seen("", &asks), waiting, Some(30));
    check(&preset, seen("✳ demo", &[]), idle, Some(30));
    // The last output is not the beginning of a state that prints constantly.
    check(&unknown, seen("", &prints), busy, Some(20));
    check(&preset, seen("◑ demo", &[]), busy, Some(20));
    let untouched = ObservedPane {
        typed_at: Some(5),
        ..seen("", &prints)
    };
    check(&unknown, untouched, busy, Some(10));
    let mut says_all = preset.clone();
    says_all.title_marks.always = true;
    let asked = ObservedPane {
        tag: Some(waiting),
        tag_source: Some(StateSource::Hook),
        ..seen("", &[])
    };
    check(&says_all, asked, idle, Some(30));
}

fn claude() -> Preset {
    crate::harness::resolve("claude", None).unwrap().value
}

const RULE: &str = "────────────────────────────────────────";

fn claude_screen(above: &str, footer: &str) -> Vec<String> {
    let text = format!("❯ go\n\n{above}\n\n{RULE}\n❯ \n{RULE}\n{footer}");
    text.lines().map(str::to_owned).collect()
}

fn judged(lines: &[String], tag: State, reason: &str, printed_at: i64, silent: i64) -> StateReport {
    let seen = ObservedPane {
        tag: Some(tag),
        tag_source: Some(StateSource::Hook),
        tag_since: Some(100),
        tag_reason: Some(reason),
        printed_at: Some(printed_at),
        screen: Some(CapturedScreen {
            lines,
            silent_seconds: Some(silent),
        }),
        ..ObservedPane::default()
    };
    judge(&seen, Some(&claude()), &Patterns::default())
}

#[test]
fn retry_on_the_screen_is_the_reason_of_busy() {
    let retry = "✻ 529 Overloaded · Retrying in 2s · attempt 3/10";
    let report = judged(
        &claude_screen(retry, ""),
        State::Busy,
        Reason::TookPrompt.as_str(),
        101,
        0,
    );
    assert_eq!(
        (report.state, report.source),
        (State::Busy, StateSource::Hook)
    );
    let reason = report.reason.as_deref();
    assert_eq!(reason, Some("retrying: 529 Overloaded, attempt 3/10"));
    let works = judged(
        &claude_screen("✻ Baking…", ""),
        State::Busy,
        "Bash(ls)",
        101,
        0,
    );
    assert_eq!(works.reason.as_deref(), Some("Bash(ls)"));
}

#[test]
fn limit_of_a_hook_continues_where_the_footer_says_so() {
    let told = "You've hit your limit · resets 6:22am (UTC)";
    let above =
        format!("  ⎿  {told}\n\n● Usage limit reached · continuing automatically at 6:22am");
    let continues = "    Continuing automatically at 6:22am · Esc to cancel";
    let report = judged(
        &claude_screen(&above, continues),
        State::Limited,
        told,
        101,
        0,
    );
    assert_eq!(
        (report.state, report.source),
        (State::Limited, StateSource::Hook)
    );
    assert_eq!(report.since, Some(100));
    let limit = report.limit.unwrap();
    assert!(limit.continues && limit.reset.is_some());
    let reason = format!("{told} · continues by itself");
    assert_eq!(report.reason.as_deref(), Some(reason.as_str()));
    let cancelled = judged(&claude_screen(&above, ""), State::Limited, told, 101, 0);
    assert!(!cancelled.limit.unwrap().continues);
    assert_eq!(cancelled.reason.as_deref(), Some(told));
    // The program has continued by itself, and no hook has reported it.
    let works = claude_screen("✻ Baking…", "");
    let report = judged(&works, State::Limited, told, 200, 0);
    assert_eq!(report.state, State::Busy);
    let report = judged(&works, State::Limited, told, 100, 0);
    assert_eq!(report.state, State::Limited, "drawn before the hook spoke");
}

#[test]
fn bare_code_of_a_hook_gives_way_to_the_message_on_the_screen() {
    let lines = claude_screen("● API Error: 400 bad request", "");
    let reason = |told: &str| judged(&lines, State::Error, told, 101, 0).reason.unwrap();
    assert_eq!(&*reason("unknown"), "API Error: 400 bad request");
    assert_eq!(&*reason("API Error: 401 no"), "API Error: 401 no");
}

#[test]
fn first_prompt_that_never_comes_ends_in_silence() {
    let lines = claude_screen("", "");
    let state = |silent| judged(&lines, State::Busy, &Reason::FirstPrompt, 99, silent).state;
    assert_eq!(state(1), State::Busy);
    assert_eq!(state(3), State::Idle);
}
