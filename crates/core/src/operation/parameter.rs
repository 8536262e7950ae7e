//! Parameters of operations.

use crate::problem::Problem;
use serde_json::{Value, json};

/// Maximum length of a text, in bytes.
const LONGEST_TEXT: usize = 128 * 1024;
/// Maximum number of texts in a list.
const MAX_TEXTS: usize = 100;

/// A parameter: one row of an operation.
#[derive(Clone, Copy, Debug)]
pub struct OperationParameter {
    pub name: &'static str,
    pub place: ParameterPlace,
    pub kind: ParameterKind,
    pub is_required: bool,
    pub used_as: ParameterUse,
    pub about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterPlace {
    Path,
    Query,
    Body,
}

/// The permitted values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterKind {
    Text,
    Texts,
    Boolean,
    Integer { min: u64, max: u64 },
    Choice(&'static [&'static str]),
}

/// How a value becomes a part of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterUse {
    /// After all options.
    Positional,
    /// As `--option=value`.
    Option(&'static str),
    /// As `--flag`, if the value is true.
    Flag(&'static str),
    /// The service itself uses it.
    Service,
}

impl OperationParameter {
    /// Fails for a value of the wrong type.
    pub fn check(&self, value: &Value) -> Result<(), Problem> {
        let is_valid = match self.kind {
            ParameterKind::Text => value.as_str().is_some_and(is_text),
            ParameterKind::Texts => value.as_array().is_some_and(|values| {
                let all_texts = values.iter().all(|one| one.as_str().is_some_and(is_text));
                all_texts && !values.is_empty() && values.len() <= MAX_TEXTS
            }),
            ParameterKind::Boolean => value.is_boolean(),
            ParameterKind::Integer { min, max } => {
                value.as_u64().is_some_and(|it| (min..=max).contains(&it))
            }
            ParameterKind::Choice(words) => value.as_str().is_some_and(|it| words.contains(&it)),
        };
        match is_valid {
            true => Ok(()),
            false => Err(Problem::usage(format!(
                "{:?} must be {}",
                self.name,
                self.kind.words()
            ))),
        }
    }

    /// Returns the value of a parameter in a path or query, which is text. A text that is not of
    /// the kind stays a text, for [`OperationParameter::check`] to refuse.
    pub fn value_of(&self, text: &str) -> Value {
        let parsed = match self.kind {
            ParameterKind::Boolean => text.parse().ok().map(Value::Bool),
            ParameterKind::Integer { .. } => text.parse::<u64>().ok().map(Value::from),
            ParameterKind::Texts => Some(json!([text])),
            ParameterKind::Text | ParameterKind::Choice(_) => None,
        };
        parsed.unwrap_or_else(|| Value::from(text))
    }
}

impl ParameterKind {
    /// Returns the words of the command line for a value that was checked.
    pub(super) fn texts(self, value: &Value) -> Vec<String> {
        match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(values) => {
                let texts = values.iter().filter_map(Value::as_str);
                texts.map(str::to_owned).collect()
            }
            other => vec![other.to_string()],
        }
    }

    /// Returns the JSON Schema.
    pub fn schema(self) -> Value {
        match self {
            ParameterKind::Text => json!({"type": "string", "maxLength": LONGEST_TEXT}),
            ParameterKind::Texts => json!({
                "type": "array",
                "items": {"type": "string", "maxLength": LONGEST_TEXT},
                "minItems": 1,
                "maxItems": MAX_TEXTS,
            }),
            ParameterKind::Boolean => json!({"type": "boolean"}),
            ParameterKind::Integer { min, max } => {
                json!({"type": "integer", "minimum": min, "maximum": max})
            }
            ParameterKind::Choice(words) => json!({"type": "string", "enum": words}),
        }
    }

    fn words(self) -> String {
        match self {
            ParameterKind::Text => format!("a text of at most {LONGEST_TEXT} bytes, without NUL"),
            ParameterKind::Texts => format!("a list of 1 to {MAX_TEXTS} texts"),
            ParameterKind::Boolean => "true or false".to_owned(),
            ParameterKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            ParameterKind::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }
}

fn is_text(text: &str) -> bool {
    text.len() <= LONGEST_TEXT && !text.contains('\0')
}
