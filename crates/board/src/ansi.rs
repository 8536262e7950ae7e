//! Converts terminal screens from `capture-pane -e`, text with colour sequences, to styled lines.
//!
//! Colours and attributes are converted; every other sequence is dropped. A style continues on the
//! next line, because tmux prints only changes.

use crate::text::{self, TAB, clean};
use gt_core::ansi::{Charset, Colour, Effect, Rendition, Sequence, Token, parse_line};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Converts a whole screen.
pub(crate) fn lines(screen: &[String]) -> Vec<Line<'static>> {
    let mut reader = AnsiReader::default();
    screen.iter().map(|line| reader.line(line)).collect()
}

#[derive(Default)]
struct AnsiReader {
    style: Style,
    charset: Charset,
}

impl AnsiReader {
    fn line(&mut self, line: &str) -> Line<'static> {
        let mut drawn = DrawnLine::default();
        parse_line(line, |token| match token {
            Token::Sequence(sequence) => {
                drawn.flush(self.style);
                self.select(&sequence);
            }
            Token::Control('\t') => {
                drawn.flush(self.style);
                let blanks = TAB - drawn.column % TAB;
                drawn.run.extend(std::iter::repeat_n(' ', blanks));
            }
            token => drawn.run.extend(self.charset.displayed(&token)),
        });
        drawn.flush(self.style);
        Line::from(drawn.spans)
    }

    /// Applies a select graphic rendition (SGR) sequence.
    fn select(&mut self, sequence: &Sequence<'_>) {
        sequence.renditions(|rendition| match rendition {
            Rendition::Reset => self.style = Style::default(),
            Rendition::On(effect) => self.style.add_modifier |= modifier(effect),
            Rendition::Off(effect) => self.style.add_modifier -= modifier(effect),
            Rendition::NormalWeight => {
                self.style.add_modifier -= Modifier::BOLD | Modifier::DIM;
            }
            Rendition::Foreground(colour) => self.style.fg = colour.map(color),
            Rendition::Background(colour) => self.style.bg = colour.map(color),
        });
    }
}

/// The part of a line that has been read.
#[derive(Default)]
struct DrawnLine {
    spans: Vec<Span<'static>>,
    /// Text since the last change of the style.
    run: String,
    /// Column after the last span.
    column: usize,
}

impl DrawnLine {
    fn flush(&mut self, style: Style) {
        if self.run.is_empty() {
            return;
        }
        let text = clean(&self.run);
        self.run.clear();
        self.column += text::width(&text);
        self.spans.push(Span::styled(text, style));
    }
}

fn modifier(effect: Effect) -> Modifier {
    match effect {
        Effect::Bold => Modifier::BOLD,
        Effect::Faint => Modifier::DIM,
        Effect::Italic => Modifier::ITALIC,
        Effect::Underline => Modifier::UNDERLINED,
        Effect::Blink => Modifier::SLOW_BLINK,
        Effect::Reverse => Modifier::REVERSED,
        Effect::Hidden => Modifier::HIDDEN,
        Effect::CrossedOut => Modifier::CROSSED_OUT,
    }
}

fn color(colour: Colour) -> Color {
    match colour {
        Colour::Named(number) => named(number),
        Colour::Indexed(number) => Color::Indexed(number),
        Colour::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

fn named(number: u8) -> Color {
    match number {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
        8 => Color::DarkGray,
        9 => Color::LightRed,
        10 => Color::LightGreen,
        11 => Color::LightYellow,
        12 => Color::LightBlue,
        13 => Color::LightMagenta,
        14 => Color::LightCyan,
        _ => Color::White,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Line<'static> {
        AnsiReader::default().line(line)
    }

    #[test]
    fn colours_of_all_kinds_are_read() {
        for (sequence, style) in [
            ("31", Style::new().fg(Color::Red)),
            ("97;100", Style::new().fg(Color::White).bg(Color::DarkGray)),
            ("38;5;208", Style::new().fg(Color::Indexed(208))),
            ("48;2;1;2;3", Style::new().bg(Color::Rgb(1, 2, 3))),
            ("38:2::1:2:3", Style::new().fg(Color::Rgb(1, 2, 3))),
            ("38:5:7", Style::new().fg(Color::Indexed(7))),
            ("58;5;1;32", Style::new().fg(Color::Green)),
            ("4:3", Style::new().add_modifier(Modifier::UNDERLINED)),
            (
                "1;3;7",
                Style::new().add_modifier(Modifier::BOLD | Modifier::ITALIC | Modifier::REVERSED),
            ),
            ("1;31;0", Style::new()),
            ("1;31;22;39", Style::new()),
            ("", Style::new()),
            ("38;5", Style::new()),
            ("38;2;300;0;0", Style::new()),
        ] {
            let line = read(&format!("\u{1b}[{sequence}mx"));
            assert_eq!(line.spans.len(), 1, "{sequence}");
            assert_eq!(line.spans[0].style, style, "{sequence}");
        }
    }

    #[test]
    fn everything_else_is_dropped() {
        for (text, shown) in [
            ("a\u{1b}[2Jb\u{1b}[10;20Hc", "abc"),
            (
                "a\u{1b}]8;;https://example.org\u{1b}\\link\u{1b}]8;;\u{7}z",
                "alinkz",
            ),
            ("a\u{1b}Pq…\u{1b}\\b", "ab"),
            ("\u{e}lqk\u{f}q", "┌─┐q"),
            ("\u{1b}(0x\u{1b}(Bx", "│x"),
            ("ab\tc", "ab      c"),
            ("日\tc", "日      c"),
            ("a\u{1b}", "a"),
            ("a\u{1b}[31", "a"),
            ("a\u{1b}]0;never ended", "a"),
            ("a\u{1b}[?25lb\u{1b}[>4;1mc", "abc"),
            ("a\u{8}b\u{7f}c\u{9b}d", "abcd"),
        ] {
            assert_eq!(read(text).to_string(), shown, "{text:?}");
        }
    }

    #[test]
    fn a_style_goes_on_into_the_next_line() {
        let lines = lines(&["\u{1b}[31mred".to_owned(), "still\u{1b}[m plain".to_owned()]);
        assert_eq!(lines[1].spans[0].style.fg, Some(Color::Red));
        assert_eq!(lines[1].spans[1].style.fg, None);
    }
}
