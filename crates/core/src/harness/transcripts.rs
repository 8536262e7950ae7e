//! The part of a preset that locates transcripts, from which tokens are counted.

use crate::usage::Format;
use serde::Deserialize;

/// Where the program stores its transcripts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Transcripts {
    /// The format. Without it no tokens are counted.
    pub format: Option<Format>,
    /// The variable that names the folder, if it is not `env.config_dir`.
    pub variable: Option<String>,
    /// The default folder if the variable is not set: relative to the home folder, or to the town
    /// if it begins with `{town}`.
    pub folder: String,
    /// The files in the folder. `{id}` is the id of the conversation and `{id8}` its first
    /// characters; `*` matches anything but a slash.
    pub files: Vec<String>,
    /// More files of the same conversation, in the folder named after its transcript.
    pub beside: Vec<String>,
}
