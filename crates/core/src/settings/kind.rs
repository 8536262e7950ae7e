//! Kinds of values: parses what a person types, checks values, and describes the permitted ones.

use crate::capability::CapabilityOverrides;
use toml::Value;

/// Kind of a setting's value.
#[derive(Clone, Copy, Debug)]
pub enum SettingKind {
    Text,
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    Decimal {
        min: f64,
        max: f64,
    },
    /// `90m`, `7d`.
    Duration,
    /// `22:00-07:00`.
    Hours,
    /// Name of a harness.
    Harness,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, or another text, which the description names.
    ChoiceOr(&'static [&'static str], &'static str),
    /// List of texts.
    Texts,
    /// List of these words.
    Choices(&'static [&'static str]),
    /// A table with names of any kind, and values of this kind.
    Map(&'static SettingKind),
    /// Overrides of the table of capabilities: by role, then by capability.
    Capabilities,
    /// Value of an environment variable: a text, or a reference to a secret.
    Variable,
    /// `true`, `false`, a text, or `{ last = N }`.
    SeedValue,
    /// A list of tables, which people edit in the file.
    Tables,
}

/// A number that is not negative.
pub(super) const NUMBER: SettingKind = SettingKind::Integer {
    min: 0,
    max: i64::MAX,
};
/// A number that is not negative and has 32 bits.
pub(super) const NUMBER_32: SettingKind = SettingKind::Integer {
    min: 0,
    max: 4_294_967_295,
};
/// A number that is not negative, with decimals.
pub(super) const AMOUNT: SettingKind = SettingKind::Decimal {
    min: 0.0,
    max: f64::MAX,
};

impl SettingKind {
    /// Describes the permitted values.
    pub fn allowed(self) -> String {
        match self {
            SettingKind::Text => "a text".to_owned(),
            SettingKind::Boolean => "true or false".to_owned(),
            SettingKind::Integer { min, max } if max >= 4_294_967_295 => {
                format!("a whole number, at least {min}")
            }
            SettingKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            SettingKind::Decimal { min, max } if max == f64::MAX => {
                format!("a number, at least {min}")
            }
            SettingKind::Decimal { min, max } => format!("a number from {min} to {max}"),
            SettingKind::Duration => "a duration such as 30s, 90m, 24h, 7d or 2w".to_owned(),
            SettingKind::Hours => "a time range such as 22:00-07:00".to_owned(),
            SettingKind::Harness => {
                "the name of a harness; `gt harness list` shows them".to_owned()
            }
            SettingKind::Choice(words) => words.join(", "),
            SettingKind::ChoiceOr(words, other) => format!("{}, or {other}", words.join(", ")),
            SettingKind::Texts => "a list of texts, one argument each".to_owned(),
            SettingKind::Choices(words) => {
                format!("a list, one argument each, of: {}", words.join(", "))
            }
            SettingKind::Map(inner) => {
                format!("a table such as {{ NAME = … }}, of: {}", inner.allowed())
            }
            SettingKind::Variable => {
                "a text, { file = … }, { command = [ … ] } or { credential = … }".to_owned()
            }
            SettingKind::SeedValue => "true, false, a number, a text, or { last = N }".to_owned(),
            SettingKind::Capabilities => {
                "a table such as { crew = { sling = \"town\" } }; `gt role capabilities` lists the names"
                    .to_owned()
            }
            SettingKind::Tables => "a list of tables; `gt config edit` opens the file".to_owned(),
        }
    }

    /// Returns the words of a closed set, for completion.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            SettingKind::Boolean => &["true", "false"],
            SettingKind::Choice(words)
            | SettingKind::ChoiceOr(words, _)
            | SettingKind::Choices(words) => words,
            _ => &[],
        }
    }

    /// Parses the arguments of a command. The error says why they are not such a value.
    pub fn parse(self, words: &[&str]) -> Result<Value, String> {
        let is_list = matches!(self, SettingKind::Texts | SettingKind::Choices(_));
        let value = match (words, is_list) {
            ([one], _) if is_list && one.starts_with('[') => inline(one)?,
            (many, true) => Value::Array(many.iter().map(|word| Value::from(*word)).collect()),
            ([one], false) => self.parse_one(one)?,
            (many, false) => return Err(format!("it has one value, not {}", many.len())),
        };
        self.check(&value)?;
        Ok(value)
    }

    fn parse_one(self, word: &str) -> Result<Value, String> {
        let is_table = word.trim_start().starts_with('{');
        match self {
            SettingKind::Boolean => match word {
                "true" => Ok(Value::from(true)),
                "false" => Ok(Value::from(false)),
                _ => Err(format!("{word:?} is neither true nor false")),
            },
            SettingKind::Integer { .. } => {
                let number = word.replace('_', "").parse::<i64>();
                let number = number.map_err(|_| format!("{word:?} is not a whole number"))?;
                Ok(Value::from(number))
            }
            SettingKind::Decimal { .. } => {
                let number = word.parse::<f64>();
                let number = number.map_err(|_| format!("{word:?} is not a number"))?;
                Ok(Value::from(number))
            }
            SettingKind::Map(_) | SettingKind::Capabilities if !is_table => {
                Err("it is a table".to_owned())
            }
            SettingKind::Map(_)
            | SettingKind::Capabilities
            | SettingKind::Variable
            | SettingKind::SeedValue
                if is_table =>
            {
                inline(word)
            }
            SettingKind::SeedValue if matches!(word, "true" | "false") => {
                Ok(Value::from(word == "true"))
            }
            SettingKind::Tables => {
                Err("a list of tables cannot be given as an argument".to_owned())
            }
            _ => Ok(Value::from(word)),
        }
    }

    /// Fails for a value that the setting cannot have.
    pub fn check(self, value: &Value) -> Result<(), String> {
        let wrong_type = || Err(format!("{} is not {}", shown(value), self.article()));
        match (self, value) {
            (SettingKind::Text, Value::String(_))
            | (SettingKind::Harness | SettingKind::ChoiceOr(..), Value::String(_))
            | (SettingKind::Boolean, Value::Boolean(_))
            | (SettingKind::Tables, Value::Array(_))
            | (SettingKind::Variable, Value::String(_) | Value::Table(_))
            | (
                SettingKind::SeedValue,
                Value::Boolean(_) | Value::Integer(_) | Value::String(_) | Value::Table(_),
            ) => Ok(()),
            (SettingKind::Integer { min, max }, Value::Integer(number)) => {
                match (min..=max).contains(number) {
                    true => Ok(()),
                    false => Err(format!("{number} is not permitted")),
                }
            }
            (SettingKind::Decimal { min, max }, Value::Float(_) | Value::Integer(_)) => {
                // Large integers lose digits, which no limit has.
                let whole = value.as_integer().map(|number| number as f64);
                let number = value.as_float().or(whole).unwrap_or(f64::NAN);
                match (min..=max).contains(&number) {
                    true => Ok(()),
                    false => Err(format!("{number} is not permitted")),
                }
            }
            (SettingKind::Duration, Value::String(text)) => match is_duration(text) {
                true => Ok(()),
                false => Err(format!("{text:?} is not a duration")),
            },
            (SettingKind::Hours, Value::String(text)) => {
                let hours = crate::notify::QuietHours::try_from(text.clone());
                hours.map(|_| ())
            }
            (SettingKind::Choice(words), Value::String(text)) => is_among(words, text),
            (SettingKind::Texts, Value::Array(values)) => values
                .iter()
                .try_for_each(|one| SettingKind::Text.check(one)),
            (SettingKind::Choices(words), Value::Array(values)) => {
                let choice = SettingKind::Choice(words);
                values.iter().try_for_each(|one| choice.check(one))
            }
            (SettingKind::Map(inner), Value::Table(values)) => {
                values.iter().try_for_each(|(name, one)| {
                    inner.check(one).map_err(|why| format!("{name}: {why}"))
                })
            }
            (SettingKind::Capabilities, Value::Table(_)) => {
                let overrides = value.clone().try_into::<CapabilityOverrides>();
                overrides
                    .map(drop)
                    .map_err(|error| error.message().to_owned())
            }
            _ => wrong_type(),
        }
    }

    fn article(self) -> &'static str {
        match self {
            SettingKind::Boolean => "true or false",
            SettingKind::Integer { .. } => "a whole number",
            SettingKind::Decimal { .. } => "a number",
            SettingKind::Texts | SettingKind::Choices(_) => "a list of texts",
            SettingKind::Map(_) | SettingKind::Capabilities => "a table",
            SettingKind::Tables => "a list of tables",
            SettingKind::SeedValue => "true, false, a number, a text or a table",
            _ => "a text",
        }
    }
}

fn is_among(words: &[&str], text: &str) -> Result<(), String> {
    if words.contains(&text) {
        return Ok(());
    }
    let near = crate::similar::hint(text, words.iter().copied());
    let near = near.map_or_else(String::new, |hint| format!("; {hint}"));
    Err(format!("{text:?} is not one of the words{near}"))
}

/// Parses an array or an inline table.
fn inline(text: &str) -> Result<Value, String> {
    let table = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let mut table = table.map_err(|error| error.message().trim().to_owned())?;
    match table.remove("value") {
        Some(value) if table.is_empty() => Ok(value),
        _ => Err(format!("{text:?} is not one value")),
    }
}

fn is_duration(text: &str) -> bool {
    let text = text.trim();
    let number = text.strip_suffix(['s', 'm', 'h', 'd', 'w']);
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Formats a value in one line of TOML.
pub(super) fn shown(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_values_and_wrong_ones_say_why() {
        let check = |kind: SettingKind, words: &[&str], expected: Result<&str, &str>| {
            let found = kind.parse(words).map(|value| shown(&value));
            match expected {
                Ok(text) => assert_eq!(found.as_deref(), Ok(text), "{kind:?} {words:?}"),
                Err(why) => {
                    let error = found.unwrap_err();
                    assert!(error.contains(why), "{kind:?} {words:?}: {error}");
                }
            }
        };
        let few = SettingKind::Integer { min: 1, max: 64 };
        check(SettingKind::Text, &["a \"b\""], Ok(r#"'a "b"'"#));
        check(SettingKind::Text, &["a", "b"], Err("one value, not 2"));
        check(SettingKind::Boolean, &["true"], Ok("true"));
        check(
            SettingKind::Boolean,
            &["yes"],
            Err("neither true nor false"),
        );
        check(few, &["8"], Ok("8"));
        check(few, &["65"], Err("65 is not permitted"));
        check(few, &["8.5"], Err("not a whole number"));
        check(AMOUNT, &["20"], Ok("20.0"));
        check(AMOUNT, &["-1"], Err("not permitted"));
        check(AMOUNT, &["nan"], Err("not permitted"));
        check(SettingKind::Duration, &["90m"], Ok(r#""90m""#));
        check(SettingKind::Duration, &["90"], Err("not a duration"));
        check(SettingKind::Hours, &["22:00-07:00"], Ok(r#""22:00-07:00""#));
        check(SettingKind::Hours, &["22-7"], Err("22:00-07:00"));
        let choice = SettingKind::Choice(&["wait", "switch"]);
        check(choice, &["wait"], Ok(r#""wait""#));
        check(choice, &["swich"], Err("did you mean switch?"));
        check(SettingKind::Texts, &["a", "b c"], Ok(r#"["a", "b c"]"#));
        check(SettingKind::Texts, &["['a']"], Ok(r#"["a"]"#));
        check(SettingKind::Texts, &["[]"], Ok("[]"));
        check(SettingKind::Texts, &["[1]"], Err("1 is not a text"));
        let lengths = SettingKind::Map(&SettingKind::Duration);
        check(lengths, &["{ a = '5d' }"], Ok(r#"{ a = "5d" }"#));
        check(lengths, &["{ a = 5 }"], Err("a: 5 is not a text"));
        check(lengths, &["5d"], Err("table"));
        let secret = "{ file = '~/.token' }";
        check(
            SettingKind::Variable,
            &[secret],
            Ok(r#"{ file = "~/.token" }"#),
        );
        check(SettingKind::Variable, &["x"], Ok(r#""x""#));
        check(SettingKind::Texts, &["[1]\nb = 2"], Err("not one value"));
    }
}
