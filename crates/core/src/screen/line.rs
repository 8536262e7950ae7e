//! Lines of a screen: their text, and the significant part of their style.
//!
//! A screen may come with its colours (`capture-pane -e`) or without them. Colour is significant in
//! two cases: a hint in an empty input line is faint, and a menu without a cursor sign has its
//! chosen row on another background. tmux writes a style once for all the cells that share it,
//! across lines, so the lines of a screen are parsed together.

use crate::ansi::{Charset, Colour, Effect, Rendition, Token, parse_line};

/// Returns whether a character is drawn around text, and so does not begin it.
pub(super) fn is_frame(c: char) -> bool {
    c.is_whitespace() || ('\u{2500}'..='\u{257f}').contains(&c)
}

#[derive(Clone, Debug, Default)]
pub(super) struct ScreenLine {
    /// Text without trailing blanks; no-break spaces are replaced by spaces.
    pub(super) text: String,
    /// One per character; empty for a screen without colours.
    styles: Vec<Style>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    faint: bool,
    ground: Ground,
}

/// Background of a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ground {
    #[default]
    Default,
    Colour(Colour),
    Reversed,
}

/// Parses the lines up to the last non-blank one.
pub(super) fn parse(lines: &[impl AsRef<str>]) -> Vec<ScreenLine> {
    let is_coloured = lines.iter().any(|line| line.as_ref().contains('\u{1b}'));
    let (mut style, mut charset) = (Style::default(), Charset::default());
    let mut parsed: Vec<ScreenLine> = lines
        .iter()
        .map(|line| match is_coloured {
            true => coloured(line.as_ref(), &mut style, &mut charset),
            false => ScreenLine {
                text: plain(line.as_ref()),
                styles: Vec::new(),
            },
        })
        .collect();
    while parsed.last().is_some_and(ScreenLine::is_blank) {
        parsed.pop();
    }
    parsed
}

fn plain(line: &str) -> String {
    line.replace('\u{a0}', " ").trim_end().to_owned()
}

fn coloured(line: &str, style: &mut Style, charset: &mut Charset) -> ScreenLine {
    let (mut text, mut styles) = (String::with_capacity(line.len()), Vec::new());
    parse_line(line, |token| {
        let shown = match token {
            Token::Control('\t') => Some('\t'),
            _ => charset.displayed(&token),
        };
        if let Some(c) = shown {
            text.push(c);
            styles.push(*style);
        }
        if let Token::Sequence(sequence) = token {
            sequence.renditions(|rendition| style.apply(rendition));
        }
    });
    let text = plain(&text);
    styles.truncate(text.chars().count());
    ScreenLine { text, styles }
}

impl Style {
    fn apply(&mut self, rendition: Rendition) {
        match rendition {
            Rendition::Reset => *self = Style::default(),
            Rendition::On(Effect::Faint) => self.faint = true,
            Rendition::NormalWeight => self.faint = false,
            Rendition::On(Effect::Reverse) => self.ground = Ground::Reversed,
            Rendition::Background(Some(colour)) => self.ground = Ground::Colour(colour),
            Rendition::Off(Effect::Reverse) | Rendition::Background(None) => {
                self.ground = Ground::Default;
            }
            Rendition::On(_) | Rendition::Off(_) | Rendition::Foreground(_) => {}
        }
    }
}

impl ScreenLine {
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the number of leading blanks.
    pub(super) fn indent(&self) -> usize {
        self.text.chars().take_while(|c| *c == ' ').count()
    }

    /// Returns the text without surrounding blanks and frames.
    pub(super) fn trimmed(&self) -> &str {
        self.text.trim_matches(is_frame)
    }

    /// Returns whether it is a horizontal rule, perhaps with a few words on it.
    pub(super) fn is_rule(&self) -> bool {
        let is_stroke = |c: char| matches!(c, '─' | '━' | '▔');
        let text = self.text.trim_start();
        let strokes = text.chars().filter(|c| is_stroke(*c)).count();
        text.chars().take(4).filter(|c| is_stroke(*c)).count() == 4
            && strokes >= 8
            && strokes * 2 >= text.chars().count()
    }

    /// Returns whether it consists of drawing characters only: a rule, the edge of a box, half
    /// blocks.
    pub(super) fn is_drawn(&self) -> bool {
        let is_drawing = |c: char| is_frame(c) || matches!(c, '▀' | '▄' | '▔' | '▁' | '█');
        !self.is_blank() && self.text.chars().all(is_drawing)
    }

    /// Returns the column of a bar at its left, if it begins with one.
    pub(super) fn bar(&self) -> Option<usize> {
        let column = self.indent();
        (self.text.chars().nth(column) == Some('┃')).then_some(column)
    }

    /// Returns whether the text from that column on is faint, except its first character, on which
    /// the terminal's cursor may stand.
    pub(super) fn is_faint_from(&self, column: usize) -> bool {
        let mut rest = self
            .text
            .chars()
            .zip(&self.styles)
            .skip(column)
            .filter(|(c, _)| !c.is_whitespace())
            .skip(1)
            .peekable();
        rest.peek().is_some() && rest.all(|(_, style)| style.faint)
    }

    /// Returns the background at that column; the default one if the screen has no colours.
    pub(super) fn ground_at(&self, column: usize) -> Ground {
        let style = self.styles.get(column).copied().unwrap_or_default();
        style.ground
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_off_and_tell_what_is_faint() {
        let lines = parse(&[
            "\u{1b}[1m›\u{1b}[0m \u{1b}[2mAsk me anything",
            "still faint\u{1b}[0m \u{1b}]8;;http://x\u{1b}\\link",
            "❯\u{a0}\u{1b}[7mP\u{1b}[0;2mress up\u{1b}[0m  ",
            "",
        ]);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            ["› Ask me anything", "still faint link", "❯ Press up"]
        );
        assert!(lines[0].is_faint_from(2));
        assert!(!lines[0].is_faint_from(0) || lines[0].is_faint_from(1));
        assert!(!lines[1].is_faint_from(0));
        assert!(lines[2].is_faint_from(2));
    }

    #[test]
    fn rules_may_bear_words_and_tables_are_none() {
        let line = |text: &str| parse(&[text]).remove(0);
        assert!(line("────────────────").is_rule());
        assert!(line("▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔ ◐ medium · /effort ▔").is_rule());
        assert!(!line("╭────────────────╮").is_rule());
        assert!(!line("──── a few words that are most of it").is_rule());
        assert!(!line("╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌").is_rule());
        assert!(line("╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌").is_drawn());
    }
}
