//! Harness presets with the town's changes, and the programs installed on this machine.

use crate::base::files;
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::harness::{self, Preset};
use gt_core::overlay::{Layer, Overlaid};
use gt_core::role::RoleConfig;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The default harness.
pub const FALLBACK: &str = "claude";

/// Returns the preset of that name.
pub fn resolve(town: &Town, name: &str) -> Result<Overlaid<Preset>> {
    if !gt_core::name::is_well_formed(name) {
        return Err(Problem::usage(format!(
            "{name:?} cannot be the name of a harness"
        )));
    }
    let path = town.root().join("harnesses").join(format!("{name}.toml"));
    let text = files::read_if_there(&path)?;
    let source = path.display().to_string();
    let layer = text.as_deref().map(|text| Layer {
        source: &source,
        text,
    });
    harness::resolve(name, layer)
}

/// Returns the harness for a role: the given one, else the role's, `GT_HARNESS`, the town's, or the
/// fallback.
pub fn choose(town: &Town, given: Option<&str>, role: &RoleConfig) -> String {
    given
        .or(role.session.harness.as_deref())
        .or_else(|| town.around().var("GT_HARNESS"))
        .or(town.settings().harness.as_deref())
        .filter(|name| !name.is_empty())
        .unwrap_or(FALLBACK)
        .to_owned()
}

/// Returns the names of all harnesses, built-in first, then the town's own.
pub fn names(town: &Town) -> Vec<String> {
    let mut names: Vec<String> = harness::builtin_names().map(str::to_owned).collect();
    let mut own: Vec<String> = files::entries(&town.root().join("harnesses"))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
        .filter(|name| !names.contains(name))
        .collect();
    own.sort();
    names.extend(own);
    names
}

/// Returns the path of the program. The error says how to install it.
pub fn locate(town: &Town, preset: &Preset) -> Result<PathBuf> {
    town.around()
        .find_program(&preset.command.program)
        .ok_or_else(|| {
            let program = &preset.command.program;
            let place = match program.contains('/') {
                true => "does not exist or cannot be run",
                false => "is not on the PATH",
            };
            let problem = Problem::environment(format!(
                "the harness {} needs {program}, which {place}",
                preset.name
            ));
            let problem = match &preset.install {
                Some(install) => problem.hint(format!("install it: {install}")),
                None => problem,
            };
            problem.hint("`gt harness list` shows what is installed")
        })
}

/// Cache of presets, for commands that read many agents.
#[derive(Debug, Default)]
pub struct Presets(BTreeMap<String, Option<Preset>>);

impl Presets {
    pub fn get(&mut self, town: &Town, name: &str) -> Option<&Preset> {
        if name.is_empty() {
            return None;
        }
        if !self.0.contains_key(name) {
            // `gt doctor` reports a harness that cannot be read.
            let preset = resolve(town, name).or_debug(format_args!("harness {name}"));
            let preset = preset.map(|resolved| resolved.value);
            self.0.insert(name.to_owned(), preset);
        }
        self.0.get(name).and_then(Option::as_ref)
    }
}
