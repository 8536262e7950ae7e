//! Directives that a conversation gets from a table instead of from its prompt.
//!
//! An agent that receives its work from a hook has no directive in its prompt. A test adds a row
//! per piece of work: the conversation that contains the row's text is answered by the row's
//! directives. Directives in the prompt take precedence.

use crate::conversation::ConversationEntry;
use crate::directive::Directives;
use std::sync::{Mutex, PoisonError};

/// Rows of text and directives. Rows can be added while the server runs.
#[derive(Debug, Default)]
pub(crate) struct Playbook {
    rows: Mutex<Vec<(String, Directives)>>,
}

impl Playbook {
    /// Adds a row, which replaces an earlier row of the same text.
    pub(crate) fn add(&self, text: &str, directives: &str) {
        let row = (text.to_owned(), Directives::of(directives));
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.retain(|(other, _)| other != text);
        rows.push(row);
    }

    /// Returns the directives of the first row whose text occurs in the conversation.
    pub(crate) fn find(&self, items: &[ConversationEntry<'_>]) -> Option<Directives> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let occurs = |text: &str| items.iter().any(|item| contains(item, text));
        let row = rows.iter().find(|(text, _)| occurs(text))?;
        Some(row.1.clone())
    }
}

fn contains(item: &ConversationEntry<'_>, wanted: &str) -> bool {
    match item {
        ConversationEntry::User { text, .. }
        | ConversationEntry::Program(text)
        | ConversationEntry::Aside(text) => text.contains(wanted),
        ConversationEntry::ToolResult | ConversationEntry::Model => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_with_a_matching_text_selects_the_directives() {
        let playbook = Playbook::default();
        playbook.add("work: a", "[[text=first]]");
        playbook.add("work: b", "[[text=second]]");
        let find =
            |items: &[ConversationEntry<'_>]| playbook.find(items).and_then(|found| found.text);
        let told = ConversationEntry::Aside("your work: b");
        assert_eq!(
            find(&[told, ConversationEntry::user("begin")]),
            Some("second".to_owned())
        );
        assert_eq!(
            find(&[ConversationEntry::user("work: a")]),
            Some("first".to_owned())
        );
        assert_eq!(
            find(&[ConversationEntry::user("work: c"), ConversationEntry::Model]),
            None
        );
        playbook.add("work: a", "[[text=third]]");
        assert_eq!(
            find(&[ConversationEntry::user("work: a")]),
            Some("third".to_owned())
        );
    }
}
