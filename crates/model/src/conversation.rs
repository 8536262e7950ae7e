//! A conversation in any wire format, and the content of its last user turn.
//!
//! Every request carries the whole conversation. The wire formats reduce it to [`ConversationEntry`]s; the rest
//! is common to all of them.

use crate::typed::typed;

/// One entry of a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConversationEntry<'a> {
    /// A text of the user. `joined`: the program ended it with a line break, because it appended
    /// another message.
    User { text: &'a str, joined: bool },
    /// A text in the user's turn that is known to come from the program.
    Program(&'a str),
    /// An instruction to the model: a system or developer message among the others.
    Aside(&'a str),
    /// Result of a tool.
    ToolResult,
    /// Any text or tool call of the model.
    Model,
}

impl<'a> ConversationEntry<'a> {
    pub(crate) fn user(text: &'a str) -> Self {
        ConversationEntry::User {
            text,
            joined: false,
        }
    }
}

/// Summary of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConversationSummary {
    /// Every text of the last user turn, unchanged.
    pub(crate) user: Vec<String>,
    /// Texts of that turn that a person typed, without the text that the program added.
    pub(crate) prompts: Vec<String>,
    /// Last text that was typed, in this turn or an earlier one.
    pub(crate) prompt: String,
    /// All instructions to the model among the messages, oldest first.
    pub(crate) asides: Vec<String>,
    /// Number of tool results in the last user turn.
    pub(crate) tool_results: usize,
    /// Number of tool results since the last typed text, and so of the calls that it has led to.
    pub(crate) results_since_prompt: usize,
    /// Fingerprints of all typed texts, oldest first.
    pub(crate) history: Vec<String>,
}

impl ConversationSummary {
    pub(crate) fn of(items: &[ConversationEntry<'_>]) -> Self {
        let mut turn = ConversationSummary::default();
        let mut prompt = "";
        // A turn ends where the next one begins, not where the model answers: a request may end
        // with the beginning of the model's answer.
        let mut model_spoke = false;
        for item in items {
            if let ConversationEntry::Aside(text) = *item {
                turn.asides.push(text.to_owned());
                continue;
            }
            let begins = *item != ConversationEntry::Model && std::mem::take(&mut model_spoke);
            if begins {
                turn.user.clear();
                turn.prompts.clear();
                turn.tool_results = 0;
            }
            match *item {
                ConversationEntry::Model => model_spoke = true,
                ConversationEntry::Aside(_) => {}
                ConversationEntry::Program(text) => turn.user.push(text.to_owned()),
                ConversationEntry::ToolResult => {
                    turn.tool_results += 1;
                    turn.results_since_prompt += 1;
                }
                ConversationEntry::User { text, joined } => {
                    turn.user.push(text.to_owned());
                    let own = if joined {
                        text.strip_suffix('\n').unwrap_or(text)
                    } else {
                        text
                    };
                    if let Some(typed) = typed(own) {
                        prompt = typed;
                        turn.prompts.push(typed.to_owned());
                        turn.history.push(fingerprint(typed));
                        turn.results_since_prompt = 0;
                    }
                }
            }
        }
        prompt.clone_into(&mut turn.prompt);
        turn
    }

    /// Returns the fingerprint of the prompt, which is the last typed text.
    pub(crate) fn hash(&self) -> String {
        let last = self.history.last().cloned();
        last.unwrap_or_else(|| fingerprint(""))
    }
}

/// Returns a short hash of a text. White space at the end does not count.
///
/// opencode adds a space to a pasted message, so the exact bytes would not identify a message that
/// arrived whole. The result is the 64-bit FNV-1a hash as 16 hexadecimal digits: good enough
/// against accidental collisions, and fast for megabytes even without optimisation.
#[must_use]
pub fn fingerprint(text: &str) -> String {
    let hash = text
        .trim_end()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> ConversationEntry<'_> {
        ConversationEntry::user(text)
    }

    #[test]
    fn a_first_turn_holds_what_the_program_wrote_and_what_was_typed() {
        let turn = ConversationSummary::of(&[
            user("<system-reminder>x</system-reminder>\n"),
            user("hello"),
        ]);
        assert_eq!(
            turn.user,
            ["<system-reminder>x</system-reminder>\n", "hello"]
        );
        assert_eq!(turn.prompts, ["hello"]);
        assert_eq!(turn.prompt, "hello");
        assert_eq!(turn.history, [fingerprint("hello")]);
    }

    #[test]
    fn after_a_tool_call_the_prompt_is_still_the_one_it_came_from() {
        let turn = ConversationSummary::of(&[
            user("do it"),
            ConversationEntry::Model,
            ConversationEntry::ToolResult,
        ]);
        assert_eq!(turn.user, Vec::<String>::new());
        assert_eq!(turn.prompts, Vec::<String>::new());
        assert_eq!(turn.prompt, "do it");
        assert_eq!((turn.tool_results, turn.results_since_prompt), (1, 1));
    }

    #[test]
    fn a_message_beside_a_tool_result_is_a_new_prompt() {
        let turn = ConversationSummary::of(&[
            user("do it"),
            ConversationEntry::Model,
            ConversationEntry::ToolResult,
            user("one"),
            user("two"),
        ]);
        assert_eq!(turn.prompts, ["one", "two"]);
        assert_eq!(turn.prompt, "two");
        assert_eq!((turn.tool_results, turn.results_since_prompt), (1, 0));
        assert_eq!(turn.history, ["do it", "one", "two"].map(fingerprint));
    }

    #[test]
    fn the_line_break_of_a_joint_is_not_the_persons() {
        let joint = ConversationEntry::User {
            text: "failed\n",
            joined: true,
        };
        let turn = ConversationSummary::of(&[joint, user("again")]);
        assert_eq!(turn.user, ["failed\n", "again"]);
        assert_eq!(turn.prompts, ["failed", "again"]);
    }

    #[test]
    fn the_beginning_of_an_answer_does_not_end_the_turn() {
        let turn = ConversationSummary::of(&[user("hello"), ConversationEntry::Model]);
        assert_eq!(turn.user, ["hello"]);
    }

    #[test]
    fn fingerprints_are_blind_for_white_space_at_the_end_only() {
        assert_eq!(fingerprint("a b"), fingerprint("a b \n"));
        assert_ne!(fingerprint("a b"), fingerprint(" a b"));
        assert_eq!(fingerprint("").len(), 16);
        assert_eq!(fingerprint("a"), "af63dc4c8601ec8c");
    }
}
