//! Numbers with their nouns, for messages.

use std::fmt::Display;

/// Returns a number with its noun, such as `1 agent` or `2 agents`. The plural adds an `s`.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_ending() {
        let all = [0_usize, 1, 2].map(|number| counted(number, "agent"));
        assert_eq!(all, ["0 agents", "1 agent", "2 agents"]);
    }
}
