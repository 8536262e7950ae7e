//! Arguments with a fixed set of words, for shell completion.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// Value parser that lists the words to shells but accepts any text. The command validates the
/// argument, with its own hint and exit code, and may accept more words.
#[derive(Clone, Debug)]
pub(crate) struct SuggestedWords(Vec<&'static str>);

impl SuggestedWords {
    pub(crate) fn of(words: impl IntoIterator<Item = &'static str>) -> Self {
        SuggestedWords(words.into_iter().collect())
    }
}

impl TypedValueParser for SuggestedWords {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
