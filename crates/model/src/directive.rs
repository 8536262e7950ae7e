//! Directives in a prompt: `[[delay=5]]` and others, anywhere in the text.
//!
//! A malformed directive is ignored, and the answer is the default one: the prompt comes from a
//! test, whose log shows what arrived.

use serde_json::Value;
use std::time::Duration;

/// Maximum delay: longer than any test, short enough to add up without overflow.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of chunks of a streamed answer.
const MAX_CHUNKS: usize = 100_000;

/// All directives of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Directives {
    /// `[[delay=S]]`: seconds before the first byte of the answer.
    pub(crate) delay: Duration,
    /// `[[text=…]]`: the answer.
    pub(crate) text: Option<String>,
    /// `[[error=STATUS]]`: a failure instead of an answer.
    pub(crate) error: Option<u16>,
    /// `[[limit=SECONDS]]`: a usage limit that ends in so many seconds, instead of an answer.
    pub(crate) limit: Option<u32>,
    /// `[[tool=NAME {…}]]`: tool calls, one after the other, before the answer.
    pub(crate) calls: Vec<ToolCall>,
    /// `[[stream=N]]`: the answer in so many chunks, slowly.
    pub(crate) chunks: Option<usize>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl Directives {
    pub(crate) fn of(prompt: &str) -> Self {
        let mut found = Directives::default();
        let mut rest = prompt;
        while let Some(start) = rest.find("[[") {
            rest = &rest[start + 2..];
            if let Some(after) = found.take(rest) {
                rest = after;
            }
        }
        found
    }

    /// Parses one directive and returns the text after it.
    fn take<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if let Some(text) = text.strip_prefix("tool=") {
            let (call, after) = call(text)?;
            self.calls.push(call);
            return Some(after);
        }
        let (directive, after) = text.split_once("]]")?;
        let (name, value) = directive.split_once('=')?;
        match name {
            "delay" => {
                let seconds: f64 = value.trim().parse().ok()?;
                self.delay = Duration::try_from_secs_f64(seconds).ok()?.min(LONGEST);
            }
            "text" => self.text = Some(value.to_owned()),
            "error" => {
                let status: u16 = value.trim().parse().ok()?;
                self.error = Some(status).filter(|status| (400..600).contains(status));
            }
            "limit" => self.limit = Some(value.trim().parse().ok()?),
            "stream" => {
                let chunks: usize = value.trim().parse().ok()?;
                self.chunks = Some(chunks.clamp(1, MAX_CHUNKS));
            }
            _ => return None,
        }
        Some(after)
    }
}

/// Parses `NAME {…}]]`. The arguments end where their JSON ends, even if they contain brackets.
fn call(text: &str) -> Option<(ToolCall, &str)> {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || "_-.:".contains(c)))
        .filter(|end| *end > 0)?;
    let name = text[..end].to_owned();
    let rest = text[end..].trim_start();
    if let Some(after) = rest.strip_prefix("]]") {
        let arguments = Value::Object(serde_json::Map::new());
        return Some((ToolCall { name, arguments }, after));
    }
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let arguments = values.next()?.ok().filter(Value::is_object)?;
    let after = rest[values.byte_offset()..]
        .trim_start()
        .strip_prefix("]]")?;
    Some((ToolCall { name, arguments }, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn each_directive_is_found_anywhere() {
        let found = Directives::of(
            "please [[delay=0.25]] say\n[[text=two\nlines]] [[error=529]][[stream=7]][[limit=60]] now",
        );
        let expected = Directives {
            delay: Duration::from_millis(250),
            text: Some("two\nlines".to_owned()),
            error: Some(529),
            limit: Some(60),
            calls: vec![],
            chunks: Some(7),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn calls_come_in_order_and_their_arguments_may_hold_brackets() {
        let found = Directives::of(
            r#"[[tool=Bash {"command":"[[ -f x ]] && echo {]]}","n":[[1]]}]] [[tool=mcp__a.b-c]]"#,
        );
        let first = json!({"command": "[[ -f x ]] && echo {]]}", "n": [[1]]});
        assert_eq!(
            found.calls,
            [
                ToolCall {
                    name: "Bash".to_owned(),
                    arguments: first
                },
                ToolCall {
                    name: "mcp__a.b-c".to_owned(),
                    arguments: json!({})
                },
            ]
        );
    }

    #[test]
    fn text_without_a_directive_changes_nothing() {
        for text in [
            "",
            "[[",
            "[[]]",
            "[[delay]]",
            "[[delay=-1]]",
            "[[delay=nan]]",
            "[[delay=1e400]]",
            "[[error=200]]",
            "[[error=x]]",
            "[[stream=]]",
            "[[tool=]]",
            "[[tool= {}]]",
            "[[tool=Bash {]]",
            "[[tool=Bash [1]]]",
            "[[text=open",
            "if [[ -f x ]]; then",
        ] {
            assert_eq!(Directives::of(text), Directives::default(), "{text}");
        }
    }

    #[test]
    fn a_broken_directive_does_not_hide_the_next() {
        assert_eq!(Directives::of("[[foo=1 [[error=500]]").error, Some(500));
        assert_eq!(Directives::of("[[tool=x { [[error=500]]").error, Some(500));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "(\\[\\[|\\]\\]|delay=|tool=|text=|error=|stream=|[{}\"0-9a-zä .-])*") {
            let _ = Directives::of(&text);
        }
    }
}
