//! Parses terminal output into tokens.

/// A complete token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Text(char),
    Control(char),
    /// `ESC`, the intermediate characters, and the final character.
    Escape(String, char),
    /// `ESC [`, the parameters and intermediate characters, and the final character.
    Sequence(String, char),
}

/// Maximum length of parameters. No sequence in use has longer ones.
const LONGEST: usize = 256;
/// Maximum length of a string sequence. A longer one is treated as unterminated.
const LONGEST_STRING: usize = 4 << 20;

/// Splits text into tokens, one character at a time. String sequences (titles, private messages)
/// are dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Parser {
    state: State,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Ground,
    Escape(String),
    Sequence(String),
    String {
        ends_with_bell: bool,
        length: usize,
    },
    /// An escape inside a string, which may be its terminator.
    StringEscape,
}

impl Parser {
    pub(super) fn push(&mut self, c: char) -> Option<Token> {
        if matches!(c, '\x18' | '\x1a') {
            self.state = State::Ground;
            return None;
        }
        match &mut self.state {
            State::String {
                ends_with_bell,
                length,
            } => {
                *length += 1;
                let is_over = (c == '\x07' && *ends_with_bell) || c == '\u{9c}';
                if c == '\x1b' {
                    self.state = State::StringEscape;
                } else if is_over || *length > LONGEST_STRING {
                    self.state = State::Ground;
                }
                return None;
            }
            State::StringEscape if c == '\\' => {
                self.state = State::Ground;
                return None;
            }
            // Another sequence interrupted the string.
            State::StringEscape => self.state = State::Escape(String::new()),
            _ => {}
        }
        match c {
            '\x1b' => {
                self.state = State::Escape(String::new());
                None
            }
            // Control characters also take effect inside sequences.
            c if c.is_ascii_control() => Some(Token::Control(c)),
            c if !c.is_ascii() => {
                self.state = State::Ground;
                Some(match c.is_control() {
                    true => Token::Control(c),
                    false => Token::Text(c),
                })
            }
            c => self.printed(c),
        }
    }

    fn printed(&mut self, c: char) -> Option<Token> {
        match std::mem::take(&mut self.state) {
            State::Escape(between) => self.escaped(between, c),
            State::Sequence(mut parameters) => match c {
                ' '..='?' => {
                    if parameters.len() < LONGEST {
                        parameters.push(c);
                    }
                    self.state = State::Sequence(parameters);
                    None
                }
                last => (parameters.len() < LONGEST).then_some(Token::Sequence(parameters, last)),
            },
            _ => Some(Token::Text(c)),
        }
    }

    fn escaped(&mut self, mut between: String, c: char) -> Option<Token> {
        match c {
            ' '..='/' => {
                if between.len() < LONGEST {
                    between.push(c);
                }
                self.state = State::Escape(between);
                None
            }
            '[' if between.is_empty() => {
                self.state = State::Sequence(String::new());
                None
            }
            ']' | 'P' | 'X' | '^' | '_' if between.is_empty() => {
                self.state = State::String {
                    ends_with_bell: c == ']',
                    length: 0,
                };
                None
            }
            last => Some(Token::Escape(between, last)),
        }
    }
}
