//! Layered TOML: built-in text, then the town's, then the rig's.
//!
//! Only the fields that a layer sets override those below it; tables merge field by field. The
//! result records which layer set each field, for `gt role show`. Each layer is first parsed
//! separately, because an error in the merged table has no file and line.

use crate::problem::Problem;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// One layer: its source and its text.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// `built-in`, or the path of the file.
    pub source: &'a str,
    pub text: &'a str,
}

/// Result of merging the layers.
#[derive(Clone, Debug)]
pub struct Overlaid<T> {
    pub value: T,
    /// Dotted field names, each with its TOML value and the source that set it.
    pub fields: BTreeMap<String, OverlaidField>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OverlaidField {
    pub value: Value,
    pub source: String,
}

/// Merges the layers; later layers override earlier ones.
pub fn overlay<T: DeserializeOwned>(layers: &[Layer<'_>]) -> Result<Overlaid<T>, Problem> {
    let mut merged = Table::new();
    let mut fields = BTreeMap::new();
    for layer in layers {
        let table = read::<T>(layer)?;
        note_fields("", &table, layer.source, &mut fields);
        merge(&mut merged, table);
    }
    let value = Value::Table(merged)
        .try_into()
        .map_err(|error: toml::de::Error| {
            let sources: Vec<&str> = layers.iter().map(|layer| layer.source).collect();
            Problem::usage(format!("cannot combine {}", sources.join(" and "))).caused_by(error)
        })?;
    Ok(Overlaid { value, fields })
}

fn read<T: DeserializeOwned>(layer: &Layer<'_>) -> Result<Table, Problem> {
    let text = without_comments(layer.text);
    // `T` has a default for every field, so a layer that sets only some of them parses as `T`.
    toml::from_str::<T>(&text)
        .and_then(|_| toml::from_str::<Table>(&text))
        .map_err(|error| broken_toml(layer.source, &text, &error))
}

/// Returns a TOML text with an empty line in place of each line that is only a comment. The parser
/// checks every byte of a comment, and comments are most of a new `town.toml`, which every command
/// reads.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    // In a string of several lines, `#` may begin a line.
    if text.contains("\"\"\"") || text.contains("'''") {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n');
    let lines = lines.map(|line| match line.trim_start().starts_with('#') {
        true => "\n",
        false => line,
    });
    Cow::Owned(lines.collect())
}

/// Returns the problem for a broken TOML file: file, line and column, and the expected input.
pub fn broken_toml(source: &str, text: &str, error: &toml::de::Error) -> Problem {
    let message = error.message().trim().to_owned();
    match error.span() {
        Some(span) => broken_at(source, text, span.start, message),
        None => broken(source, "", message),
    }
}

/// Returns the problem for an error that the TOML parser does not find; `at` is its byte offset.
pub fn broken_at(source: &str, text: &str, at: usize, message: String) -> Problem {
    broken(source, &place_of(text, at), message)
}

/// Returns the line and column of a byte offset, for a message after the name of the file.
pub(crate) fn place_of(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    format!(":{}:{column}", line_of(text, at))
}

/// Returns the line of a byte offset, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

fn broken(source: &str, place: &str, message: String) -> Problem {
    Problem::usage(format!("{source}{place} cannot be read"))
        .cause(message)
        .hint("correct that line; every key is explained in the documentation")
}

fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn note_fields(
    path: &str,
    table: &Table,
    source: &str,
    fields: &mut BTreeMap<String, OverlaidField>,
) {
    for (key, value) in table {
        let name = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        if let Value::Table(inner) = value {
            note_fields(&name, inner, source, fields);
        } else {
            let field = OverlaidField {
                value: value.clone(),
                source: source.to_owned(),
            };
            fields.insert(name, field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn only_lines_that_are_comments_are_emptied() {
        let text = "# one\na = 'b # c' # d\n\t# two\n[e]\n#f = 1";
        assert_eq!(without_comments(text), "\na = 'b # c' # d\n\n[e]\n\n");
        for quotes in ["\"\"\"", "'''"] {
            let text = format!("a = {quotes}\n# b\n{quotes}\n");
            assert_eq!(without_comments(&text), text);
        }
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    struct Sample {
        name: String,
        look: Look,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default, deny_unknown_fields)]
    struct Look {
        icon: String,
        size: u8,
    }

    const BASE: Layer<'_> = Layer {
        source: "built-in",
        text: "name = 'a'\n[look]\nicon = 'x'\nsize = 1\n",
    };

    #[test]
    fn only_set_fields_override_and_each_knows_its_source() {
        let town = Layer {
            source: "roles/a.toml",
            text: "[look]\nsize = 2\n",
        };
        let result = overlay::<Sample>(&[BASE, town]).unwrap();
        assert_eq!(result.value.name, "a");
        assert_eq!(result.value.look.icon, "x");
        assert_eq!(result.value.look.size, 2);
        assert_eq!(result.fields["look.icon"].source, "built-in");
        assert_eq!(result.fields["look.size"].source, "roles/a.toml");
    }

    #[test]
    fn a_broken_layer_names_file_line_and_what_was_expected() {
        let check = |text: &str, place: &str, expected: &str| {
            let town = Layer {
                source: "roles/a.toml",
                text,
            };
            let problem = overlay::<Sample>(&[BASE, town]).unwrap_err();
            let shown = format!("{problem} / {:?}", problem.causes());
            assert!(shown.contains(place), "{shown}");
            assert!(shown.contains(expected), "{shown}");
        };
        check("name = 'b'\n[look]\nsize = 'big'\n", "a.toml:3:8", "u8");
        check("[look]\nsise = 1\n", "a.toml:2:1", "unknown field");
        check("name = \n", "a.toml:1:8", "");
    }
}
