//! Colours and attributes: the parameters of select graphic rendition (SGR) sequences.

/// One change of the style of the text that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendition {
    Reset,
    On(Effect),
    Off(Effect),
    /// Neither bold nor faint.
    NormalWeight,
    /// `None` is the terminal's default.
    Foreground(Option<Colour>),
    Background(Option<Colour>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Bold,
    Faint,
    Italic,
    Underline,
    Blink,
    Reverse,
    Hidden,
    CrossedOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// One of the 16 colours that have codes of their own, the bright ones from 8.
    Named(u8),
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// Calls `each` for every change. Unknown codes and underline colours are skipped.
pub(super) fn decode<'a>(
    mut parameters: impl Iterator<Item = &'a [u16]>,
    mut each: impl FnMut(Rendition),
) {
    use Effect::{Blink, Bold, CrossedOut, Faint, Hidden, Italic, Reverse, Underline};
    use Rendition::{Background, Foreground, NormalWeight, Off, On, Reset};
    while let Some(parameter) = parameters.next() {
        let Some((code, rest)) = parameter.split_first() else {
            continue;
        };
        each(match *code {
            0 => Reset,
            1 => On(Bold),
            2 => On(Faint),
            3 => On(Italic),
            // `4:0` is no underline, `4:3` a curly one.
            4 if rest == [0] => Off(Underline),
            4 | 21 => On(Underline),
            5 | 6 => On(Blink),
            7 => On(Reverse),
            8 => On(Hidden),
            9 => On(CrossedOut),
            22 => NormalWeight,
            23 => Off(Italic),
            24 => Off(Underline),
            25 => Off(Blink),
            27 => Off(Reverse),
            28 => Off(Hidden),
            29 => Off(CrossedOut),
            30..=37 => Foreground(named(code - 30)),
            39 => Foreground(None),
            40..=47 => Background(named(code - 40)),
            49 => Background(None),
            90..=97 => Foreground(named(code - 90 + 8)),
            100..=107 => Background(named(code - 100 + 8)),
            38 | 48 | 58 => match (code, extended(rest, &mut parameters)) {
                (38, Some(colour)) => Foreground(Some(colour)),
                (48, Some(colour)) => Background(Some(colour)),
                _ => continue,
            },
            _ => continue,
        });
    }
}

fn named(number: u16) -> Option<Colour> {
    u8::try_from(number).ok().map(Colour::Named)
}

/// Reads a colour from the subparameters (`38:5:n`, `38:2:r:g:b`, `38:2:space:r:g:b`) or, if there
/// are none, from the next parameters (`38;5;n`, `38;2;r;g;b`).
fn extended<'a>(rest: &[u16], next: &mut impl Iterator<Item = &'a [u16]>) -> Option<Colour> {
    let mut number = || next.next().and_then(|parameter| parameter.first().copied());
    match rest {
        [] => match number()? {
            5 => indexed(number()?),
            2 => rgb(number()?, number()?, number()?),
            _ => None,
        },
        [5, index, ..] => indexed(*index),
        [2, _, red, green, blue, ..] | [2, red, green, blue] => rgb(*red, *green, *blue),
        _ => None,
    }
}

fn indexed(number: u16) -> Option<Colour> {
    u8::try_from(number).ok().map(Colour::Indexed)
}

fn rgb(red: u16, green: u16, blue: u16) -> Option<Colour> {
    let byte = |number| u8::try_from(number).ok();
    Some(Colour::Rgb(byte(red)?, byte(green)?, byte(blue)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ansi::{Token, parse_line};
    use Rendition::{Background, Foreground, Off, On, Reset};

    #[test]
    fn codes_become_changes() {
        let check = |parameters: &str, expected: &[Rendition]| {
            let mut found = Vec::new();
            parse_line(&format!("\x1b[{parameters}"), |token| {
                if let Token::Sequence(sequence) = token {
                    sequence.renditions(|rendition| found.push(rendition));
                }
            });
            assert_eq!(found, expected, "{parameters}");
        };
        check("m", &[Reset]);
        check(
            "1;;31m",
            &[On(Effect::Bold), Reset, Foreground(Some(Colour::Named(1)))],
        );
        check("4:0;4:3m", &[Off(Effect::Underline), On(Effect::Underline)]);
        check("38;5;208m", &[Foreground(Some(Colour::Indexed(208)))]);
        check("48:5:7m", &[Background(Some(Colour::Indexed(7)))]);
        for colour in ["48;2;1;2;3m", "48:2:1:2:3m", "48:2::1:2:3m"] {
            check(colour, &[Background(Some(Colour::Rgb(1, 2, 3)))]);
        }
        check("58;5;1;39m", &[Foreground(None)]);
        // Incomplete, out of range, unknown, private, another sequence.
        for nothing in ["38;5m", "38;2;300;0;0m", "99m", ">4;2m", "31K"] {
            check(nothing, &[]);
        }
    }
}
