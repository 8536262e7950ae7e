//! Separates the text that a person typed from the text that the program added.
//!
//! The agent programs put text into the user's turn: reminders, the environment, project files,
//! notes about an interruption. Mostly these are separate texts beside the typed one, but they may
//! stand before it in the same text, and one frames it. Each is a row here, as it was seen on the
//! wire. A text that matches no row counts as typed, so a message that merely mentions such a tag
//! stays as it is.
//!
//! If a program changes the message itself (Gemini joins queued ones, opencode adds a space to a
//! pasted one), the wire format does not show it, and it is not undone here.

/// Beginning and end of the blocks that a program writes.
const BLOCKS: &[(&str, &str)] = &[
    // Claude Code and opencode: reminders, project files, the date.
    ("<system-reminder>", "</system-reminder>"),
    // Claude Code: traces of slash commands, shell commands and background work.
    ("<local-command-caveat>", "</local-command-caveat>"),
    ("<local-command-stdout>", "</local-command-stdout>"),
    ("<command-name>", "</command-name>"),
    ("<command-message>", "</command-message>"),
    ("<command-args>", "</command-args>"),
    ("<bash-input>", "</bash-input>"),
    ("<bash-stdout>", "</bash-stdout>"),
    ("<bash-stderr>", "</bash-stderr>"),
    ("<task-notification>", "</task-notification>"),
    // Codex: the environment, project files, an interrupted turn, shell commands.
    ("<environment_context>", "</environment_context>"),
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<user_shell_command>", "</user_shell_command>"),
    // Gemini CLI: the environment and project files, and the output of hooks.
    ("<session_context>", "</session_context>"),
    ("<hook_context>", "</hook_context>"),
];

/// Beginnings of texts that a program writes as a whole.
const NOTES: &[&str] = &[
    // Claude Code: Escape.
    "[Request interrupted by user",
    // Gemini CLI and opencode: shell commands.
    "I ran the following shell command:\n```sh\n",
    "The following tool was executed by the user",
];

/// Text that Claude Code writes before a message that it took while it worked.
const FRAME_START: &str = "The user sent a new message while you were working:\n";
/// Text that Claude Code writes after such a message, by version.
const FRAME_ENDS: &[&str] = &[
    "\n\nThis is how Claude Code surfaces messages",
    "\n\nIMPORTANT: After completing your current task",
];

/// Returns the typed part of a text of the user's turn, if it has one.
pub(crate) fn typed(text: &str) -> Option<&str> {
    let text = without_blocks(text);
    if text.trim().is_empty() || NOTES.iter().any(|note| text.starts_with(note)) {
        return None;
    }
    let framed = text.strip_prefix(FRAME_START).and_then(before_frame_end);
    Some(framed.unwrap_or(text))
}

/// Returns the messages in a system message that holds nothing else. Claude Code 2.1.197 passes on
/// in this way what it took while it worked.
pub(crate) fn typed_in_system(text: &str) -> Vec<&str> {
    if !text.starts_with(FRAME_START) {
        return vec![];
    }
    text.split(FRAME_START)
        .filter_map(before_frame_end)
        .collect()
}

fn before_frame_end(text: &str) -> Option<&str> {
    // The message may contain the same words: the last occurrence counts.
    let end = FRAME_ENDS.iter().find_map(|end| text.rfind(end))?;
    Some(&text[..end])
}

/// Returns the text without the blocks that it begins with.
fn without_blocks(mut text: &str) -> &str {
    while let Some(rest) = after_block(text) {
        text = rest;
    }
    text
}

fn after_block(text: &str) -> Option<&str> {
    let start = text.trim_start();
    BLOCKS.iter().find_map(|(open, close)| {
        let inside = start.strip_prefix(open)?;
        let end = inside.find(close)? + close.len();
        // The program also writes the line break after a block.
        Some(inside[end..].trim_start_matches('\n'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(typed(text), expected, "{text}");
    }

    #[test]
    fn typed_text_is_unchanged() {
        check("hello", Some("hello"));
        check(
            "  two\n\n lines with a blank \n",
            Some("  two\n\n lines with a blank \n"),
        );
        check(
            "what is <system-reminder>?",
            Some("what is <system-reminder>?"),
        );
        check(
            "say <turn_aborted>x</turn_aborted>",
            Some("say <turn_aborted>x</turn_aborted>"),
        );
        check("<x>y</x>", Some("<x>y</x>"));
        check(
            "<system-reminder> is never closed",
            Some("<system-reminder> is never closed"),
        );
    }

    #[test]
    fn text_of_the_program_is_no_prompt() {
        check("", None);
        check(" \n", None);
        check("<system-reminder>\na\n</system-reminder>\n", None);
        check(
            "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nb\n\n</INSTRUCTIONS>",
            None,
        );
        check(
            "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
            None,
        );
        check("<turn_aborted>\nc\n</turn_aborted>", None);
        check("<session_context>\nd\n</session_context>", None);
        check("<hook_context>e</hook_context>", None);
        check("[Request interrupted by user for tool use]", None);
        check(
            "<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>",
            None,
        );
        check(
            "<command-name>/clear</command-name>\n<command-args></command-args>",
            None,
        );
    }

    #[test]
    fn blocks_before_a_prompt_are_taken_off() {
        check(
            "<system-reminder>a</system-reminder>\nhello\nyou",
            Some("hello\nyou"),
        );
        check(
            "<system-reminder>a</system-reminder>\n\n<system-reminder>b</system-reminder>hello",
            Some("hello"),
        );
    }

    #[test]
    fn a_message_that_claude_took_while_working_is_unframed() {
        let frame = "The user sent a new message while you were working:\none\ntwo\n\nThis is how \
                     Claude Code surfaces messages the user sends mid-turn. Address it.\n";
        check(frame, Some("one\ntwo"));
        let one = "The user sent a new message while you were working:\none\n\nIMPORTANT: After \
                   completing your current task, you MUST address the user's message above.";
        assert_eq!(typed_in_system(one), ["one"]);
        let two = format!("{one}\n\n{one}");
        assert_eq!(typed_in_system(&two), ["one", "one"]);
        assert_eq!(typed_in_system("# Environment"), Vec::<&str>::new());
    }
}
