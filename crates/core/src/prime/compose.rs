//! Putting the parts together, within what a context window has to spare.

use serde::Serialize;

/// What is given up first when there is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Never cut.
    Must,
    High,
    Middle,
    Low,
}

/// A part of what an agent is told.
#[derive(Clone, Debug)]
pub struct Section {
    pub name: &'static str,
    /// Where it comes from, for whoever wonders.
    pub source: String,
    pub text: String,
    pub weight: Weight,
    /// The command that shows the whole of it.
    pub whole: String,
}

/// A part that did not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    pub section: &'static str,
    pub characters: usize,
    pub whole: String,
}

#[derive(Clone, Debug, Default)]
pub struct Composed {
    pub text: String,
    pub cuts: Vec<Cut>,
}

/// Less of a part than this is not worth its place.
const LEAST: usize = 60;

/// The parts in their order, at most `budget` characters in all: what weighs least is
/// cut first, at the end of a line or of a word, and what was cut is named. Only what must
/// be there can take more than that.
pub fn compose(sections: &[Section], budget: usize) -> Composed {
    let mut order: Vec<usize> = (0..sections.len()).collect();
    order.sort_by_key(|index| sections[*index].weight);
    // A blank line after each, and the line that names the cuts.
    const NAMING: usize = 240;
    let mut left = budget.saturating_sub(NAMING);
    let mut texts: Vec<Option<String>> = vec![None; sections.len()];
    let mut cuts = Vec::new();
    for index in order {
        let section = &sections[index];
        let text = plain(&section.text);
        let text = text.trim_end();
        let length = text.chars().count() + 2;
        if section.weight == Weight::Must || length <= left {
            left = left.saturating_sub(length);
            texts[index] = Some(text.to_owned());
            continue;
        }
        let kept = (left >= LEAST).then(|| head(text, left - 2));
        let characters = length - 2 - kept.as_ref().map_or(0, |kept| kept.chars().count());
        left -= kept.as_ref().map_or(0, |kept| kept.chars().count() + 2);
        texts[index] = kept;
        cuts.push(Cut {
            section: section.name,
            characters,
            whole: section.whole.clone(),
        });
    }
    let mut parts: Vec<String> = texts.into_iter().flatten().collect();
    if !cuts.is_empty() {
        let named: Vec<String> = cuts
            .iter()
            .map(|cut| format!("{} of {} (`{}`)", cut.characters, cut.section, cut.whole))
            .collect();
        parts.push(format!("Left out, in characters: {}.", named.join(", ")));
    }
    Composed {
        text: parts.join("\n\n"),
        cuts,
    }
}

/// A text without what a terminal would act upon: parts of it come from others.
pub fn plain(text: &str) -> String {
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_kept).collect()
}

/// The lines that fit whole; the words, where a line is so long that too much would be lost
/// with it; or else as much as fits.
fn head(text: &str, most: usize) -> String {
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    let ends = ['\n', ' '].into_iter().filter_map(|end| kept.rfind(end));
    let mut whole = ends.map(|end| &kept[..end]);
    let whole = whole.find(|whole| whole.chars().count() >= most / 4 * 3);
    format!("{}…", whole.unwrap_or(&kept).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: &'static str, weight: Weight, text: String) -> Section {
        Section {
            name,
            source: String::new(),
            text,
            weight,
            whole: format!("gt {name}"),
        }
    }

    #[test]
    fn all_of_it_where_there_is_room() {
        let parts = [
            section("role", Weight::Low, "You.\n".into()),
            section("work", Weight::High, "Do.".into()),
        ];
        let composed = compose(&parts, 1_000);
        assert_eq!(composed.text, "You.\n\nDo.");
        assert!(composed.cuts.is_empty());
    }

    #[test]
    fn what_weighs_least_goes_first_and_is_named() {
        let long = |sign: &str| format!("{}\n", sign.repeat(50)).repeat(20);
        let parts = [
            section("who", Weight::Must, "x".repeat(300)),
            section("role", Weight::Low, long("r")),
            section("work", Weight::High, long("wü")),
            section("mail", Weight::Middle, long("m")),
        ];
        let composed = compose(&parts, 3_000);
        let length = composed.text.chars().count();
        assert!((2_500..=3_000).contains(&length), "{length}");
        let at = |sign: &str| composed.text.find(sign);
        assert!(at("xxx") < at("wü"), "in their order");
        assert!(composed.text.contains(&"wü".repeat(50)));
        assert!(!composed.text.contains("rrr"));
        let names: Vec<&str> = composed.cuts.iter().map(|cut| cut.section).collect();
        assert_eq!(names, ["mail", "role"]);
        assert!(composed.text.ends_with("of role (`gt role`)."));
        assert!(composed.text.contains(&format!("{}…", "m".repeat(50))));
        assert_eq!(composed.cuts[1].characters, 20 * 51 - 1);
    }

    #[test]
    fn of_one_long_line_the_words_are_kept_that_fit() {
        let parts = [
            section("role", Weight::Low, "r ".repeat(5_000)),
            section(
                "work",
                Weight::High,
                format!("## Work\n{}", "word ".repeat(5_000)),
            ),
        ];
        let composed = compose(&parts, 3_000);
        let length = composed.text.chars().count();
        assert!((2_700..=3_000).contains(&length), "{length}");
        assert!(composed.text.starts_with("## Work\nword "));
        assert!(composed.text.contains(" word…\n"), "at the end of a word");
        assert!(!composed.text.contains("r r"));
        // One without blanks, too.
        let parts = [section("work", Weight::High, "ü".repeat(5_000))];
        let composed = compose(&parts, 3_000);
        assert!(composed.text.chars().count() > 2_700);
    }

    #[test]
    fn a_terminal_finds_nothing_to_act_upon() {
        let text = "a\x1b[2J\x07b\tü\nc\r".to_owned();
        let parts = [section("work", Weight::High, text)];
        assert_eq!(compose(&parts, 1_000).text, "a[2Jb\tü\nc");
    }

    #[test]
    fn what_must_be_there_is_there() {
        let parts = [
            section("who", Weight::Must, "x".repeat(500)),
            section("work", Weight::High, "y".repeat(500)),
        ];
        let composed = compose(&parts, 100);
        assert!(composed.text.contains(&"x".repeat(500)));
        assert!(!composed.text.contains('y') || composed.text.contains("`gt work`"));
    }
}
