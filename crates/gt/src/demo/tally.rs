//! Simulated token usage of the demo agent, deterministic for a conversation.
//!
//! Four bytes are a token. Every answer reads the whole conversation; text that an earlier answer
//! has read comes from a cache.

use serde_json::{Value, json};

/// Tokens at the end of a conversation, which never come from the cache.
const UNCACHED: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct TokenTally {
    cached: u64,
    new: u64,
}

impl TokenTally {
    /// Adds text that the next answer will read.
    pub(super) fn add_input(&mut self, text: &str) {
        self.new += tokens(text);
    }

    /// Adds text that an earlier answer has read.
    pub(super) fn remember(&mut self, text: &str) {
        self.cached += tokens(text);
    }

    /// Returns the usage of this answer, with Claude Code's field names.
    pub(super) fn answer(&mut self, text: &str) -> Value {
        let output = tokens(text);
        let usage = json!({
            "input_tokens": UNCACHED,
            "cache_creation_input_tokens": self.new,
            "cache_read_input_tokens": self.cached,
            "output_tokens": output,
        });
        self.cached += self.new + output;
        self.new = 0;
        usage
    }
}

fn tokens(text: &str) -> u64 {
    (text.len() as u64 / 4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reads_what_was_said_before() {
        let mut tally = TokenTally::default();
        tally.remember("12345678");
        tally.add_input("1234567812345678");
        tally.add_input("");
        let first = tally.answer("1234");
        assert_eq!(first["cache_read_input_tokens"], 2);
        assert_eq!(first["cache_creation_input_tokens"], 5);
        assert_eq!(first["output_tokens"], 1);
        let second = tally.answer("12345678");
        assert_eq!(second["cache_read_input_tokens"], 8);
        assert_eq!(second["cache_creation_input_tokens"], 0);
        assert_eq!(second["output_tokens"], 2);
    }
}
