//! The recorded screens, each with its row of the table.

use gt_core::harness::{self, Preset};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) preset: String,
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) state: String,
    pub(crate) rule: String,
    /// Absent if no dialog is open.
    pub(crate) options: Option<Vec<String>>,
    pub(crate) marked: Option<usize>,
    /// Absent if there is no input line.
    pub(crate) input: Option<String>,
    #[serde(default)]
    pub(crate) placeholder: bool,
    #[serde(default)]
    pub(crate) pasted: bool,
    /// Absent if the text does not matter.
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) background: u32,
    /// Whether it continues by itself after a usage limit.
    #[serde(default)]
    pub(crate) continues: bool,
}

pub(crate) struct Screen {
    pub(crate) name: String,
    pub(crate) row: Row,
    pub(crate) preset: Preset,
    pub(crate) lines: Vec<String>,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/screens")
}

pub(crate) fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn table() -> BTreeMap<String, Row> {
    toml::from_str(&read("table.toml")).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn screens() -> impl Iterator<Item = Screen> {
    table().into_iter().map(|(name, row)| {
        let preset = harness::resolve(&row.preset, None).expect("a built-in preset");
        Screen {
            preset: preset.value,
            lines: read(&format!("{name}.txt"))
                .lines()
                .map(str::to_owned)
                .collect(),
            name,
            row,
        }
    })
}
