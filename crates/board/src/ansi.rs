//! Converts terminal screens from `capture-pane -e`, text with colour sequences, to styled lines.
//!
//! Colours and attributes are converted; every other sequence is dropped. A style continues on the
//! next line, because tmux prints only changes.

use crate::text::{self, TAB, clean};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Converts a whole screen.
pub(crate) fn lines(screen: &[String]) -> Vec<Line<'static>> {
    let mut reader = Reader::default();
    screen.iter().map(|line| reader.line(line)).collect()
}

#[derive(Default)]
struct Reader {
    style: Style,
    /// Whether letters stand for line-drawing characters, after a shift-out.
    drawing: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Line<'static> {
        let mut spans = Vec::new();
        let mut run = String::new();
        let mut column = 0;
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\u{1b}' => {
                    self.flush(&mut run, &mut column, &mut spans);
                    self.escape(&mut letters);
                }
                '\u{e}' | '\u{f}' => self.drawing = letter == '\u{e}',
                '\t' => {
                    self.flush(&mut run, &mut column, &mut spans);
                    run.extend(std::iter::repeat_n(' ', TAB - column % TAB));
                }
                _ if self.drawing => run.push(box_piece(letter)),
                _ => run.push(letter),
            }
        }
        self.flush(&mut run, &mut column, &mut spans);
        Line::from(spans)
    }

    fn flush(&self, run: &mut String, column: &mut usize, spans: &mut Vec<Span<'static>>) {
        if run.is_empty() {
            return;
        }
        let text = clean(run);
        run.clear();
        *column += text::width(&text);
        spans.push(Span::styled(text, self.style));
    }

    fn escape(&mut self, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        match letters.next() {
            Some('[') => {
                let mut parameters = String::new();
                for letter in letters.by_ref() {
                    match letter {
                        '\u{40}'..='\u{7e}' => {
                            if letter == 'm' {
                                self.select(&parameters);
                            }
                            return;
                        }
                        _ => parameters.push(letter),
                    }
                }
            }
            // String sequences, such as links and titles, extend to their terminator.
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while let Some(letter) = letters.next() {
                    match letter {
                        '\u{7}' | '\u{9c}' => return,
                        '\u{1b}' => {
                            letters.next_if_eq(&'\\');
                            return;
                        }
                        _ => {}
                    }
                }
            }
            Some('(') => self.drawing = letters.next() == Some('0'),
            Some(')' | '*' | '+' | '#' | '%' | ' ') => {
                letters.next();
            }
            _ => {}
        }
    }

    /// Applies a select graphic rendition (SGR) sequence.
    fn select(&mut self, parameters: &str) {
        if parameters.starts_with(['<', '=', '>', '?']) {
            return;
        }
        let mut rest = parameters.split(';');
        while let Some(parameter) = rest.next() {
            let mut parts = parameter.split(':');
            let code: u16 = number(parts.next()).unwrap_or(0);
            match code {
                0 => self.style = Style::default(),
                1 => self.add(Modifier::BOLD),
                2 => self.add(Modifier::DIM),
                3 => self.add(Modifier::ITALIC),
                // `4:0` is no underline, `4:3` a curly one.
                4 if parts.next() == Some("0") => self.remove(Modifier::UNDERLINED),
                4 | 21 => self.add(Modifier::UNDERLINED),
                5 | 6 => self.add(Modifier::SLOW_BLINK),
                7 => self.add(Modifier::REVERSED),
                8 => self.add(Modifier::HIDDEN),
                9 => self.add(Modifier::CROSSED_OUT),
                22 => self.remove(Modifier::BOLD | Modifier::DIM),
                23 => self.remove(Modifier::ITALIC),
                24 => self.remove(Modifier::UNDERLINED),
                25 => self.remove(Modifier::SLOW_BLINK),
                27 => self.remove(Modifier::REVERSED),
                28 => self.remove(Modifier::HIDDEN),
                29 => self.remove(Modifier::CROSSED_OUT),
                30..=37 => self.style.fg = Some(ansi(code - 30)),
                39 => self.style.fg = None,
                40..=47 => self.style.bg = Some(ansi(code - 40)),
                49 => self.style.bg = None,
                90..=97 => self.style.fg = Some(ansi(code - 90 + 8)),
                100..=107 => self.style.bg = Some(ansi(code - 100 + 8)),
                38 | 48 | 58 => {
                    let colour = if parameter.contains(':') {
                        extended(&mut parts.filter(|part| !part.is_empty()))
                    } else {
                        extended(&mut rest)
                    };
                    match code {
                        38 => self.style.fg = colour.or(self.style.fg),
                        48 => self.style.bg = colour.or(self.style.bg),
                        // Underline colours are not supported.
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, modifier: Modifier) {
        self.style.add_modifier |= modifier;
    }

    fn remove(&mut self, modifier: Modifier) {
        self.style.add_modifier -= modifier;
    }
}

fn number(text: Option<&str>) -> Option<u16> {
    text.and_then(|text| text.parse().ok())
}

/// Parses `5;n` or `2;r;g;b`.
fn extended(parts: &mut dyn Iterator<Item = &str>) -> Option<Color> {
    let mut byte = || number(parts.next()).and_then(|number| u8::try_from(number).ok());
    match byte()? {
        5 => Some(Color::Indexed(byte()?)),
        2 => Some(Color::Rgb(byte()?, byte()?, byte()?)),
        _ => None,
    }
}

fn ansi(number: u16) -> Color {
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

/// Maps a letter to the alternate character set of the VT100.
fn box_piece(letter: char) -> char {
    match letter {
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'q' => '─',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        'a' => '▒',
        '`' => '◆',
        'f' => '°',
        'g' => '±',
        '~' => '·',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Line<'static> {
        Reader::default().line(line)
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
