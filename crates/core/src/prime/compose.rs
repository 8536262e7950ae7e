//! Joins the sections of a priming text within a budget of characters.

use serde::Serialize;

/// Order in which sections are cut when they exceed the budget: `Low` first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Never cut.
    Must,
    High,
    Middle,
    Low,
}

/// A section of the text that an agent receives.
#[derive(Clone, Debug)]
pub struct Section {
    pub name: &'static str,
    /// Origin of the text, for diagnostics.
    pub source: String,
    pub text: String,
    pub weight: Weight,
    /// Command that shows the full text.
    pub whole: String,
}

/// A section that did not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutSection {
    pub section: &'static str,
    pub characters: usize,
    pub whole: String,
    /// Whether the whole section was left out.
    #[serde(skip)]
    pub is_all: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Composed {
    pub text: String,
    pub cuts: Vec<CutSection>,
}

/// Minimum length of a section that is worth including.
const MIN: usize = 60;
/// Divisor of the room that each lighter weight keeps from the heavier ones, if it needs it. An
/// eighth is enough for a role's text and some steps.
const KEPT: usize = 8;
/// Characters reserved for the line that lists the cuts.
const NAMING: usize = 280;

/// Joins the sections in their order, to at most `budget` characters.
///
/// Heavier sections choose first, but leave an eighth of the room to each lighter weight. Sections
/// of one weight share: short ones stay whole; long ones are cut at the end of a line or of a word.
/// A last line lists the cuts. Only sections of weight [`Weight::Must`] can exceed the budget.
pub fn compose(sections: &[Section], budget: usize) -> Composed {
    let texts: Vec<String> = sections
        .iter()
        .map(|section| plain(&section.text).trim_end().to_owned())
        .collect();
    // Includes the blank line after each section.
    let lengths: Vec<usize> = texts.iter().map(|text| text.chars().count() + 2).collect();
    let of = |weight: Weight| -> Vec<usize> {
        let all = 0..sections.len();
        all.filter(|index| sections[*index].weight == weight)
            .collect()
    };
    let need = |weight: Weight| -> usize { of(weight).iter().map(|index| lengths[*index]).sum() };
    let room = budget.saturating_sub(NAMING + need(Weight::Must));
    let mut left = room;
    let mut parts: Vec<Option<String>> = texts.iter().cloned().map(Some).collect();
    let mut cuts = Vec::new();
    let weights = [Weight::High, Weight::Middle, Weight::Low];
    for (place, weight) in weights.into_iter().enumerate() {
        let lighter = weights[place + 1..].iter().map(|it| need(*it));
        let kept = lighter.map(|need| (need.min(room / KEPT), need));
        let kept = kept.filter(|(kept, need)| kept == need || *kept >= MIN);
        let kept: usize = kept.map(|(kept, _)| kept).sum();
        let chosen = of(weight);
        let wanted: Vec<usize> = chosen.iter().map(|index| lengths[*index]).collect();
        for (index, share) in chosen
            .into_iter()
            .zip(shares(&wanted, left.saturating_sub(kept)))
        {
            let (text, length) = (&texts[index], lengths[index]);
            if share < length {
                parts[index] = (share > 0).then(|| head(text, share - 2));
                let kept = parts[index].as_ref().map(|part| part.chars().count());
                left -= kept.map_or(0, |kept| kept + 2);
                cuts.push(CutSection {
                    section: sections[index].name,
                    characters: length - 2 - kept.unwrap_or(0),
                    whole: sections[index].whole.clone(),
                    is_all: kept.is_none(),
                });
            } else {
                left -= length;
            }
        }
    }
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
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

/// Divides the room among these lengths: a length below an equal share is granted in full, and the
/// others share the rest. If a share would be too short to be useful, the last such section gets
/// nothing.
fn shares(lengths: &[usize], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|index| lengths[*index]);
    loop {
        let mut shares = vec![0; lengths.len()];
        let mut left = room;
        for (place, index) in order.iter().enumerate() {
            shares[*index] = lengths[*index].min(left / (order.len() - place));
            left -= shares[*index];
        }
        let is_nothing = |index: &usize| shares[*index] < lengths[*index].min(MIN);
        match order
            .iter()
            .copied()
            .filter(|index| is_nothing(index))
            .max()
        {
            Some(last) => order.retain(|index| *index != last),
            None => return shares,
        }
    }
}

/// Removes the characters that a terminal would act upon: some of the text comes from other
/// processes.
pub fn plain(text: &str) -> String {
    let is_kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_kept).collect()
}

/// Returns the lines that fit; or the words, if a line is so long that too much would be lost with
/// it; or else as many characters as fit.
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

    fn named(composed: &Composed) -> Vec<&str> {
        composed.cuts.iter().map(|cut| cut.section).collect()
    }

    #[test]
    fn section_of_least_weight_is_cut_first_and_named() {
        let long = |sign: &str| format!("{}\n", sign.repeat(50)).repeat(20);
        let parts = [
            section("who", Weight::Must, "x".repeat(300)),
            section("role", Weight::Low, long("r")),
            section("work", Weight::High, long("wü")),
            section("mail", Weight::Middle, long("m")),
        ];
        let composed = compose(&parts, 3_500);
        let length = composed.text.chars().count();
        assert!((3_000..=3_500).contains(&length), "{length}");
        let at = |sign: &str| composed.text.find(sign);
        assert!(at("xxx") < at("rrr") && at("rrr") < at("wü"), "in order");
        assert!(composed.text.contains(&long("wü")), "all of it");
        assert_eq!(named(&composed), ["mail", "role"]);
        assert!(composed.text.ends_with("of role (`gt role`)."));
        assert!(composed.text.contains(&format!("{}…", "m".repeat(50))));
        let kept = composed.text.matches(&"r".repeat(50)).count();
        assert_eq!(composed.cuts[1].characters, 20 * 51 - 1 - (kept * 51));
    }

    #[test]
    fn a_long_part_pushes_out_no_short_one() {
        let parts = [
            section("role", Weight::Low, "r".repeat(630)),
            section("work", Weight::High, "work ".repeat(2_500)),
            section("letter", Weight::High, "l".repeat(46)),
            section("checkpoint", Weight::High, "c".repeat(264)),
            section("molecule", Weight::Middle, "m".repeat(700)),
        ];
        let composed = compose(&parts, 9_500);
        assert_eq!(named(&composed), ["work"]);
        let length = composed.text.chars().count();
        assert!((9_000..=9_500).contains(&length), "{length}");
        for part in [&parts[0], &parts[2], &parts[3], &parts[4]] {
            assert!(composed.text.contains(&part.text), "{}", part.name);
        }
        // For every small budget, heavier sections come first and the budget holds.
        for budget in 0..1_500 {
            let composed = compose(&parts, budget);
            let length = composed.text.chars().count();
            assert!(length <= budget.max(NAMING), "{length} of {budget}");
            let has_mail = composed.text.contains(&parts[2].text);
            assert!(has_mail || !composed.text.contains("mm"), "{budget}");
        }
    }

    #[test]
    fn short_sections_stay_whole_and_long_ones_share_the_rest() {
        for (lengths, room, expected) in [
            (&[100, 50][..], 200, &[100, 50][..]),
            (&[1_000, 50, 300], 850, &[500, 50, 300]),
            (&[1_000, 50, 900], 850, &[400, 50, 400]),
            // Too little for all of them: the last gets nothing.
            (&[1_000, 1_000, 1_000], 150, &[75, 75, 0]),
            (&[1_000, 1_000, 40], 70, &[70, 0, 0]),
            (&[1_000], 59, &[0]),
            (&[], 100, &[]),
        ] {
            assert_eq!(shares(lengths, room), expected, "{lengths:?} in {room}");
        }
    }

    #[test]
    fn long_line_is_cut_at_the_end_of_a_word() {
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
        assert!(composed.text.contains("## Work\nword "));
        assert!(composed.text.contains(" word…\n"), "at the end of a word");
        assert!(composed.text.contains("r r…\n"), "its eighth");
        // A text without blanks is cut too.
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
    fn mandatory_section_is_never_cut() {
        let parts = [
            section("who", Weight::Must, "x".repeat(500)),
            section("work", Weight::High, "y".repeat(500)),
        ];
        let composed = compose(&parts, 100);
        assert!(composed.text.contains(&"x".repeat(500)));
        assert!(!composed.text.contains('y') || composed.text.contains("`gt work`"));
    }
}
