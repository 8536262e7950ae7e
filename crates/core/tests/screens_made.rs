//! Screens made by hand, for cases that the recordings lack or have only once.
//!
//! They are drawn as the programs draw, so that the tests cover the parsing of their form.
//! `screens.rs` has the recorded ones.

use gt_core::harness;
use gt_core::screen::{self, Classification};

fn classify(preset: &str, title: &str, text: &str) -> Classification {
    let preset = harness::resolve(preset, None)
        .expect("a built-in preset")
        .value;
    let lines: Vec<&str> = text.lines().collect();
    screen::classify(&lines, title, &preset)
}

/// Checks a classification. `expected` is the state, the rule and the text of the input line.
fn check(preset: &str, title: &str, text: &str, expected: (&str, &str, Option<&str>)) {
    let found = classify(preset, title, text);
    let typed = found.input.as_ref().map(screen::InputContent::typed);
    assert_eq!(
        (found.state.as_str(), found.rule.as_str(), typed),
        expected,
        "{text}\n{found:#?}"
    );
}

fn check_dialog(preset: &str, text: &str, kind: &str, options: &[&str], marked: Option<usize>) {
    let found = classify(preset, "", text);
    assert_eq!(found.state.as_str(), "waiting", "{text}\n{found:#?}");
    let dialog = found
        .dialog
        .unwrap_or_else(|| panic!("no dialog in\n{text}"));
    assert_eq!(dialog.kind, kind, "{text}");
    assert_eq!(dialog.options, options, "{text}");
    assert_eq!(dialog.marked, marked, "{text}");
}

const RULE: &str =
    "────────────────────────────────────────────────────────────────────────────────";

/// Returns Claude Code's input line with a conversation above it.
fn claude(above: &str, typed: &str, footer: &str) -> String {
    format!("{above}\n{RULE}\n❯\u{a0}{typed}\n{RULE}\n{footer}\n\n\n")
}

#[test]
fn claude_at_its_prompt() {
    let idle = |text: &str, typed| check("claude", "", text, ("idle", "prompt", Some(typed)));
    idle(&claude("", "", "  ? for shortcuts"), "");
    idle(&claude("● Done.", "", ""), "");
    idle(
        &claude("● Done.", "half", "  my status\n  ⏸ manual mode on"),
        "half",
    );
    // The end of a turn has the spinner's sign.
    idle(
        &claude("● Done.\n\n✻ Cooked for 6s · done 5:52 PM", "", ""),
        "",
    );
    idle(&claude("● Done.\n\n✻ Cooked for 1m 6s", "", ""), "");
    // A list in the input line is no menu.
    idle(&claude("", "1. Yes\n  2. No", ""), "1. Yes\n2. No");
    idle(
        &claude("", "Do you want to proceed?", ""),
        "Do you want to proceed?",
    );
    // A menu of completions is no dialog.
    let menu = "● Done.\n\n  ❯ /copy     Copy the last response\n    /compact  Free up context";
    idle(&claude(menu, "/co", ""), "/co");
    // A named session has its name on the rule.
    let named = format!("───────────────────────────────────── max ─\n❯ hi\n{RULE}\n");
    idle(&named, "hi");
    // A rule that was typed is further right.
    idle(
        &claude("", &format!("above\n  {}\n  below", &RULE[..90]), ""),
        &format!("above\n{}\nbelow", &RULE[..90]),
    );
}

#[test]
fn claude_talks_about_everything() {
    let talk = "● The documentation says:\n\n  Do you want to proceed?\n  ❯ 1. Yes\n    2. No\n\n  Esc to cancel · Tab to amend\n  ✻ Thinking… (esc to interrupt)\n\n  API Error: 400 means a bad request, and · Retrying in 3s that it goes on.\n  1 shell still running";
    check(
        "claude",
        "",
        &claude(talk, "", "  ? for shortcuts"),
        ("idle", "prompt", Some("")),
    );
    check(
        "claude",
        "✳ x",
        &claude(talk, "", ""),
        ("idle", "prompt", Some("")),
    );
    check(
        "claude",
        "◐ x",
        &claude(talk, "", ""),
        ("busy", "title.busy", Some("")),
    );
    let person = "❯ what does this mean?\n  ● API Error: 500\n  ✻ Baking… (3s · esc to interrupt)\n\n● It is an error.\n";
    check(
        "claude",
        "",
        &claude(person, "", ""),
        ("idle", "prompt", Some("")),
    );
    let tool = "● Bash(cat log)\n  ⎿  API Error: 400\n     ● API Error: 500\n     … +3 lines\n\n● All is well.\n";
    check(
        "claude",
        "",
        &claude(tool, "", ""),
        ("idle", "prompt", Some("")),
    );
}

#[test]
fn claude_at_work() {
    let busy = |above: &str, typed: &str, footer: &str| {
        let text = claude(above, typed, footer);
        let found = classify("claude", "✳ x", &text);
        assert_eq!(found.state.as_str(), "busy", "{text}\n{found:#?}");
    };
    for sign in ["·", "✢", "✳", "✶", "✻", "✽", "*"] {
        busy(&format!("❯ go\n\n{sign} Baking…"), "", "");
        busy(
            &format!("❯ go\n\n{sign} Baking… (12s · ↓ 2.3k tokens)\n  ⎿  Tip: drink water"),
            "",
            "",
        );
    }
    busy(
        "✻ 529 overloaded · Retrying in 9s · attempt 6/10\n  ⎿  If it persists, check it",
        "",
        "",
    );
    busy(
        "✽ Fixing the tests… (2m · ↑ 1k tokens)\n  ⎿  ☒ read\n     ☐ write\n",
        "",
        "",
    );
    busy(
        "* Baking…\n\n  ❯ a queued message",
        "Press up to edit queued messages",
        "",
    );
    busy(
        "❯ queued\n  ctrl+x ctrl+s to send now\n\n· Baking…\n                              ◐ medium · /effort",
        "",
        "",
    );
    busy(
        "● Done so far.",
        "",
        "  ⏸ manual mode on · esc to interrupt",
    );
    busy(
        "● Agent(x)\n\n✻ Waiting for 2 background agents to finish\n",
        "",
        "",
    );
    let shells = "● Started.\n\n✻ Cooked for 1s · done 5:52 PM · 2 shells still running\n";
    let found = classify("claude", "✳ x", &claude(shells, "", ""));
    assert_eq!((found.state.as_str(), found.background), ("idle", 2));
    assert!(found.is_at_prompt());
}

#[test]
fn claude_after_a_turn_that_went_wrong() {
    let error = "❯ go\n\n● API Error: 400 bad request, told at such length that it is\n  wrapped to a second line\n\n✻ Cooked for 1s";
    let found = classify("claude", "✳ x", &claude(error, "", ""));
    assert_eq!(found.state.as_str(), "error");
    assert_eq!(
        found.reason,
        "API Error: 400 bad request, told at such length that it is wrapped to a second line"
    );
    let again = format!("{error}\n\n❯ again\n\n● Now it works.\n");
    check(
        "claude",
        "",
        &claude(&again, "", ""),
        ("idle", "prompt", Some("")),
    );
    let stopped = "● word word\n  ⎿ \u{a0}Interrupted · What should Claude do instead?\n";
    check(
        "claude",
        "",
        &claude(stopped, "", ""),
        ("idle", "interrupted", Some("")),
    );
    let restored = claude(stopped, "the prompt that was stopped", "");
    check(
        "claude",
        "",
        &restored,
        ("idle", "interrupted", Some("the prompt that was stopped")),
    );
}

#[test]
fn claude_asks() {
    let ask = |text: &str, kind: &str, options: &[&str], marked| {
        check_dialog("claude", text, kind, options, Some(marked));
    };
    ask(
        &format!(
            "● Bash(x)\n\n{RULE}\n Bash command\n\n   touch x\n\n Do you want to proceed?\n   1. Yes\n ❯ 2. Yes, and don't ask again for touch commands in a folder whose name is so\n      long that it is wrapped\n   3. No\n\n Esc to cancel\n"
        ),
        "permission",
        &[
            "Yes",
            "Yes, and don't ask again for touch commands in a folder whose name is so long that it is wrapped",
            "No",
        ],
        1,
    );
    // The command in question looks like a dialog itself, and like an input line.
    ask(
        &format!(
            "{RULE}\n Bash command\n\n   cat <<EOF\n   {RULE}\n   ❯ 1. Never\n     2. Ever\n   {RULE}\n   EOF\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend"
        ),
        "permission",
        &["Yes", "No"],
        0,
    );
    ask(
        &format!(
            "{RULE}\n Do you trust the files in this folder?\n\n /tmp/p\n\n ❯ 1. Yes, proceed\n   2. No, exit\n\n Enter to confirm · Esc to cancel"
        ),
        "trust",
        &["Yes, proceed", "No, exit"],
        0,
    );
    ask(
        &format!(
            "{RULE}\n ☐ Size\n\nWhich size?\n\n  1. Small\n     s\n❯ 2. Large\n     l\n  3. Type something.\n{RULE}\n  4. Chat about this\n\nEnter to select · ↑/↓ to navigate · Esc to cancel"
        ),
        "question",
        &["Small", "Large", "Type something.", "Chat about this"],
        1,
    );
    ask(
        &format!(
            "{RULE}\n  Something new and unknown\n\n    Leave it\n  ❯ Take it\n\n  Press enter"
        ),
        screen::UNKNOWN,
        &["Leave it", "Take it"],
        1,
    );
}

/// Returns Codex's input line with a conversation above it.
fn codex(above: &str, typed: &str) -> String {
    format!("{above}\n\n\n› {typed}\n\n  gpt-6 high · ~/proj · 97% left\n  ? for shortcuts\n")
}

#[test]
fn codex_at_its_prompt_and_at_work() {
    let check = |title: &str, text: &str, state, rule, typed| {
        check("codex", title, text, (state, rule, Some(typed)));
    };
    let hint = "Ask Codex to do anything";
    check("proj", &codex("", hint), "idle", "prompt", "");
    check("⠸ proj", &codex("", hint), "busy", "title.busy", "");
    check(
        "[ . ] Action Required | proj",
        &codex("", hint),
        "waiting",
        "title.waiting",
        "",
    );
    check(
        "",
        &codex(
            "• Done.\n\n  Worked for 3s • 17:58",
            "1. a\n  2. b\n\n  3. c",
        ),
        "idle",
        "prompt",
        "1. a\n2. b\n\n3. c",
    );
    check(
        "",
        &codex("◦ Working (1m 02s • esc to interrupt)", hint),
        "busy",
        "spinner",
        "",
    );
    check(
        "",
        &codex(
            "• Reconnecting... 3/5 (9s • esc to interrupt)\n  └ We’re busy.",
            "half",
        ),
        "busy",
        "retrying",
        "half",
    );
    check(
        "",
        &codex(
            "• Working (2s • esc to interrupt)\n\n• Queued follow-up inputs\n  ↳ next\n    shift+← edit",
            hint,
        ),
        "busy",
        "spinner",
        "",
    );
    // An answer begins with the same sign, and may contain the same words.
    let talk = "› hi\n\n\n• Press esc to interrupt.\n\n  • Working (2s • esc to interrupt)\n  ■ {\"error\": 1}\n  › 1. Yes\n    2. No\n\n  Press enter to confirm or esc to cancel\n\n  Worked for 3s • 17:58";
    check("proj", &codex(talk, hint), "idle", "prompt", "");
    check(
        "",
        &codex("■ unexpected status 401 Unauthorized: no key", hint),
        "error",
        "error",
        "",
    );
    check(
        "",
        &codex("■ Conversation interrupted - use /feedback", hint),
        "idle",
        "interrupted",
        "",
    );
    check(
        "",
        &codex("■ {\"a\": 1}\n\n\n› again\n\n\n• Fine.", hint),
        "idle",
        "prompt",
        "",
    );
}

#[test]
fn codex_asks() {
    check_dialog(
        "codex",
        "\n  ✨ Update available! 0.166.0 -> 0.167.0\n\n  Release notes: https://example.com\n\n› 1. Update now (runs `npm install -g @openai/codex`)\n  2. Skip\n  3. Skip until next version\n\n  Press enter to continue\n",
        screen::UNKNOWN,
        &[
            "Update now (runs `npm install -g @openai/codex`)",
            "Skip",
            "Skip until next version",
        ],
        Some(0),
    );
    check_dialog(
        "codex",
        "• I will edit.\n\n\n  Would you like to make the following edits?\n\n  new.txt (+1 -0)\n\n  1. Yes, proceed (y)\n› 2. Yes, and don't ask again for these files (a)\n  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel",
        "permission",
        &[
            "Yes, proceed (y)",
            "Yes, and don't ask again for these files (a)",
            "No, and tell Codex what to do differently (esc)",
        ],
        Some(1),
    );
}

/// Returns Gemini CLI's input line with a conversation above it.
fn gemini(above: &str, line: &str) -> String {
    format!(
        "{above}\n{RULE}\n Shift+Tab to accept edits\n\n{line}\n\n workspace (/directory)        sandbox        /model\n ~/proj                        no sandbox     Auto\n\n"
    )
}

#[test]
fn gemini_at_its_prompt_and_at_work() {
    let check = |title: &str, text: &str, state, rule, typed| {
        check("gemini", title, text, (state, rule, Some(typed)));
    };
    let hint = " >   Type your message or @path/to/file";
    check("◇  Ready (proj)", &gemini("", hint), "idle", "prompt", "");
    check(
        "✦  Working… (proj)",
        &gemini("", hint),
        "busy",
        "title.busy",
        "",
    );
    check(
        "",
        &gemini("✦ Done.\n", " > 1. a\n   2. b\n\n   3. c"),
        "idle",
        "prompt",
        "1. a\n2. b\n\n3. c",
    );
    check(
        "",
        &gemini("✦ Done.\n", " * half"),
        "idle",
        "prompt",
        "half",
    );
    check(
        "",
        &gemini(
            " > hi\n\n ⠏ Thinking... (esc to cancel, 3s)          ? for shortcuts",
            hint,
        ),
        "busy",
        "spinner",
        "",
    );
    check(
        "◇  Ready",
        &gemini(" ⠏ I'm feeling lucky (esc to cancel, 1m 3s)", hint),
        "busy",
        "spinner",
        "",
    );
    let talk = " > hi\n\n✦ It says (esc to cancel, 3s).\n\n  ⠏ Thinking... (esc to cancel, 3s)\n\n  ✕ [API Error: 1]\n\n  ● 1. Allow once\n    2. Reject\n\n  Allow execution of [Shell]?\n";
    check("◇  Ready", &gemini(talk, hint), "idle", "prompt", "");
    let error =
        " > hi\n\n✕ [API Error: 400]\n\n\nℹ This request failed. Press F12 for diagnostics.\n";
    check("◇  Ready", &gemini(error, hint), "error", "error", "");
    check(
        "",
        &gemini(&format!("{error}\n > again\n\n✦ Fine.\n"), hint),
        "idle",
        "prompt",
        "",
    );
    check(
        "",
        &gemini("ℹ Request cancelled.\n", hint),
        "idle",
        "interrupted",
        "",
    );
    // Completions hang below the line.
    let menu = gemini(
        "✦ Done.\n",
        " > /mo\n\n model     Manage model configuration\n memory    Commands for memory",
    );
    check("", &menu, "idle", "prompt", "/mo");
}

#[test]
fn gemini_asks() {
    check_dialog(
        "gemini",
        " > go\n\n╭──────────────────────────────────────────╮\n│ ? Edit  a.txt: x => y                    │\n│ ╭──────────────────────────────────────╮ │\n│ │ ● 1. no option                       │ │\n│ ╰──────────────────────────────────────╯ │\n│ Apply this change?                       │\n│                                          │\n│   1. Allow once                          │\n│   2. Allow for this session, which is as │\n│      long as it lives                    │\n│ ● 3. No, suggest changes (esc)           │\n╰──────────────────────────────────────────╯\n",
        "permission",
        &[
            "Allow once",
            "Allow for this session, which is as long as it lives",
            "No, suggest changes (esc)",
        ],
        Some(2),
    );
}

/// Returns opencode's input line with a conversation above it.
fn opencode(above: &str, typed: &str, footer: &str) -> String {
    let typed = typed.replace('\n', "\n  ┃  ");
    format!(
        "{above}\n\n  ┃\n  ┃  {typed}\n  ┃\n  ┃  Build · Model Provider\n  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\n{footer}\n"
    )
}

#[test]
fn opencode_at_its_prompt_and_at_work() {
    let check = |text: &str, state, rule, typed| {
        check("opencode", "OC | x", text, (state, rule, Some(typed)));
    };
    let done = "  ┃\n  ┃  hi\n  ┃\n\n     Hello.\n\n     ▣  Build · Model · 1.7s";
    let footer = "   ~/proj      8.2K (4%)  ctrl+p commands";
    check(
        &opencode("", "Ask anything… \"Fix it\"", footer),
        "idle",
        "prompt",
        "",
    );
    check(&opencode(done, "", footer), "idle", "prompt", "");
    check(
        &opencode(done, "1. a\n\n2. b", footer),
        "idle",
        "prompt",
        "1. a\n\n2. b",
    );
    check(
        &opencode(done, "", "   ■■⬝⬝⬝⬝⬝⬝  esc interrupt    ctrl+p commands"),
        "busy",
        "footer",
        "",
    );
    check(
        &opencode(
            done,
            "x",
            "   ⬝⬝ overloaded [retrying in 4s attempt #2]   esc interrupt",
        ),
        "busy",
        "retrying",
        "x",
    );
    let talk = done.replace(
        "Hello.",
        "esc interrupt\n     △ Permission required\n\n     Allow once   Allow always   Reject",
    );
    check(&opencode(&talk, "", footer), "idle", "prompt", "");
    let tool = "  ┃\n  ┃  hi\n  ┃\n\n     Calling.\n\n  ┃\n  ┃  $ ls\n  ┃\n  ┃  a  b\n  ┃\n\n     ▣  Build · Model · interrupted";
    check(&opencode(tool, "", footer), "idle", "interrupted", "");
    let refused = "  ┃\n  ┃  hi\n  ┃\n\n     $ touch x\n\n     ▣  Build · Model";
    check(&opencode(refused, "", footer), "idle", "prompt", "");
    let error = "  ┃\n  ┃  hi\n  ┃\n\n  ┃\n  ┃  no such model\n  ┃\n\n     ▣  Build · Model";
    check(&opencode(error, "", footer), "error", "error", "");
}

#[test]
fn hint_in_the_line_is_recognised_by_its_faint_colour() {
    let suggested = format!(
        "{RULE}\n❯\u{a0}\u{1b}[7mn\u{1b}[0;2mow run the tests\u{1b}[0m\n{RULE}\n  ? for shortcuts"
    );
    check("claude", "", &suggested, ("idle", "prompt", Some("")));
    let typed = format!("{RULE}\n❯\u{a0}now run the tests\u{1b}[7m \u{1b}[0m\n{RULE}\n");
    check(
        "claude",
        "",
        &typed,
        ("idle", "prompt", Some("now run the tests")),
    );
    let plain = format!("{RULE}\n❯\u{a0}now run the tests\n{RULE}\n");
    check(
        "claude",
        "",
        &plain,
        ("idle", "prompt", Some("now run the tests")),
    );
}

#[test]
fn programs_without_a_described_input_line_are_read_by_their_marks() {
    let check = |preset: &str, text: &str, state: &str, rule: &str| {
        check(preset, "", text, (state, rule, None));
    };
    check(
        "copilot",
        "● Done.\n\n ❯\n\n / commands · ? help",
        "idle",
        "marks.ready",
    );
    check(
        "copilot",
        "● Thinking\n esc esc interrupt\n / commands · ? help",
        "busy",
        "marks.busy",
    );
    check("aider", "Waiting for claude\n", "busy", "marks.busy");
    check("aider", "> ", "idle", "marks.ready");
    check("pi", "Error: 429 too many\n", "error", "marks.error");
    check("amp", "whatever", "starting", "none");
    check_dialog(
        "copilot",
        " Confirm folder trust\n\n ❯ 1. Yes\n   2. Yes, and remember this folder for future sessions\n   3. No\n\n ↑/↓ to navigate · enter to select · esc to cancel",
        "trust",
        &[
            "Yes",
            "Yes, and remember this folder for future sessions",
            "No",
        ],
        Some(0),
    );
}

#[test]
fn nothing_and_noise() {
    for preset in harness::builtin_names() {
        check(preset, "", "", ("starting", "blank", None));
        for text in [
            "\n\n\n",
            "loading",
            "$ ls\nfile\n$ ",
            "❯",
            "›",
            "┃\n╹▀▀",
            "────────\n────────",
            "1. a\n2. b",
        ] {
            let found = classify(preset, "", text);
            let is_idle = found.state.as_str() == "idle";
            assert!(
                !is_idle || found.input.is_some() || found.rule.starts_with("marks."),
                "{preset} {text:?} {found:?}"
            );
        }
    }
}
