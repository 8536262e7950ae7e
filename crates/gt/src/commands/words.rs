//! Arguments that are one of a few words, for shells that complete them.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

/// Tells shells which words there are, and takes any: whoever reads the argument refuses it
/// with a hint and an exit code of its own, and may know more than these.
#[derive(Clone, Debug)]
pub(crate) struct Words(Vec<&'static str>);

impl Words {
    pub(crate) fn of(words: impl IntoIterator<Item = &'static str>) -> Self {
        Words(words.into_iter().collect())
    }
}

impl TypedValueParser for Words {
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
