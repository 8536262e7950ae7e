//! The part of a preset that says where tokens are counted.

use crate::usage::Format;
use serde::Deserialize;

/// Where the program keeps its transcripts, from which tokens are counted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Transcripts {
    /// How they are read; without it nothing is counted.
    pub format: Option<Format>,
    /// The variable that names their folder, where it is not `env.config_dir`.
    pub variable: Option<String>,
    /// That folder if the variable is not set: under the home folder, or in the town
    /// where it begins with `{town}`.
    pub folder: String,
    /// The files under it. `{id}` is the conversation's id and `{id8}` its beginning; a
    /// `*` stands for anything but a slash.
    pub files: Vec<String>,
    /// More of the same conversation: files in the folder that is called like its
    /// transcript.
    pub beside: Vec<String>,
}
