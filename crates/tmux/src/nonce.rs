//! Words that nobody can guess, to tell our own marks from text that strangers wrote.
//!
//! A pane title or a path may hold any byte, so no fixed separator is safe in a listing. A
//! separator made up for one query is: whoever wrote the title could not know it.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A fresh word of 24 hexadecimal digits, safe in every grammar that tmux has.
pub(crate) fn nonce() -> String {
    // RandomState is seeded by the operating system and gives a new key each time; SipHash
    // of nothing under an unknown key is as unpredictable as the key. This saves a dependency.
    let word = || RandomState::new().build_hasher().finish();
    let mut text = format!("{:016x}{:016x}", word(), word());
    text.truncate(24);
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
