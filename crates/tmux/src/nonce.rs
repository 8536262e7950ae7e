//! Unpredictable words that separate our own marks from untrusted text.
//!
//! A pane title or a path may contain any byte, so no fixed separator is safe in a listing. A
//! separator that is generated for one query is safe, since the author of a title cannot know it.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Length of each word.
pub(crate) const LENGTH: usize = 24;

/// Returns a new word of [`LENGTH`] hexadecimal digits, which no tmux grammar has to quote.
pub(crate) fn nonce() -> String {
    // The operating system seeds RandomState, and each instance has a new key. The SipHash of empty
    // input under an unknown key is as unpredictable as the key. This avoids a dependency.
    let word = || RandomState::new().build_hasher().finish();
    let mut text = format!("{:016x}{:016x}", word(), word());
    text.truncate(LENGTH);
    text
}

#[cfg(test)]
mod tests {
    use super::nonce;
    use std::collections::HashSet;

    #[test]
    fn never_repeats() {
        let seen: HashSet<String> = (0..1000).map(|_| nonce()).collect();
        assert_eq!(seen.len(), 1000);
    }
}
