//! Marks: the notation with which a preset describes a line.

use super::line::is_frame;

/// Returns whether a line matches a mark. `x` may stand anywhere in it, `^x` begins it after blanks
/// and frames, `^^x` begins it in the first column; `x$` ends it. `*` stands for any text in
/// between. A no-break space counts as a space.
pub fn matches(line: &str, mark: &str) -> bool {
    let line = line.replace('\u{a0}', " ");
    let line = line.trim_end();
    let (mark, to_end) = match mark.strip_suffix('$') {
        Some(mark) => (mark, true),
        None => (mark, false),
    };
    if let Some(start) = mark.strip_prefix("^^") {
        fits(line, start, true, to_end)
    } else if let Some(start) = mark.strip_prefix('^') {
        fits(line.trim_start_matches(is_frame), start, true, to_end)
    } else {
        fits(line, mark, false, to_end)
    }
}

fn fits(text: &str, mark: &str, from_start: bool, to_end: bool) -> bool {
    // The screen comes without trailing blanks, so `❯ ` may arrive as `❯`.
    let padded = format!("{text} ");
    let mut rest = padded.as_str();
    for (index, piece) in mark.split('*').enumerate() {
        match rest.find(piece) {
            Some(at) if at == 0 || index > 0 || !from_start => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    let last = mark.rsplit('*').next().unwrap_or(mark);
    !to_end || text.ends_with(last)
}

/// Returns the longest of the marks that match a line. The longest is the most specific.
pub(super) fn longest_match<'p>(line: &str, marks: &'p [String]) -> Option<&'p str> {
    marks
        .iter()
        .filter(|mark| matches(line, mark))
        .max_by_key(|mark| mark.chars().count())
        .map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_match_behind_frames_and_with_hard_spaces() {
        let check = |line: &str, mark: &str, expected: bool| {
            assert_eq!(matches(line, mark), expected, "{line:?} {mark:?}");
        };
        check("│ ❯\u{a0}hello", "^❯ ", true);
        check("❯", "^❯ ", true);
        check("say ❯ x", "^❯ ", false);
        check("  (3s · esc to interrupt)", "esc to interrupt", true);
        check("❯ hello", "^^❯ ", true);
        check("  ❯ hello", "^^❯ ", false);
        check("  ⎿ \u{a0}Interrupted", "^^  ⎿  Interrupted", true);
        check("     ▣  Build · Fake · 1.7s", "^▣  * · * · ", true);
        check("     ▣  Build · Fake", "^▣  * · * · ", false);
        check("  ┃    Commands      esc", "  esc$", true);
        check("  ┃    Commands      esc to go", "  esc$", false);
        check(
            "✻ Worked for 1s · 2 shells still running",
            "^^✻ *still running$",
            true,
        );
    }

    #[test]
    fn the_longest_mark_says_most() {
        let marks = ["^^● ".to_owned(), "^^● API Error".to_owned()];
        assert_eq!(
            longest_match("● API Error: 400", &marks),
            Some("^^● API Error")
        );
        assert_eq!(longest_match("● Hello", &marks), Some("^^● "));
        assert_eq!(longest_match("  ● Hello", &marks), None);
    }
}
