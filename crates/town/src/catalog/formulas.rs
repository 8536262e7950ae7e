//! Formulas of a town: the embedded ones, and those that the town or a rig overrides. A file
//! replaces a whole formula, because steps of two formulas would not fit together.

use crate::base::files;
use crate::{Result, Town};
use gt_core::formula::{self, Formula};
use gt_core::overlay::Layer;
use gt_core::{Problem, similar};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A formula and its source.
#[derive(Clone, Debug)]
pub struct FoundFormula {
    pub formula: Formula,
    /// `built-in`, or the path of the file.
    pub source: String,
}

/// Returns the formula of that name: the rig's, else the town's, else the embedded one.
pub fn resolve(town: &Town, name: &str, rig: Option<&str>) -> Result<FoundFormula> {
    if !gt_core::name::is_well_formed(name) {
        return Err(Problem::usage(format!(
            "{name:?} cannot be the name of a formula"
        )));
    }
    for folder in folders(town, rig) {
        let path = folder.join(format!("{name}.toml"));
        if let Some(text) = files::read_if_there(&path)? {
            let source = path.display().to_string();
            let layer = Layer {
                source: &source,
                text: &text,
            };
            let formula = Formula::read(name, layer)?;
            return Ok(FoundFormula { formula, source });
        }
    }
    let layer = formula::builtin(name).ok_or_else(|| {
        let known = names(town, rig);
        let near = similar::hint(name, known.iter().map(String::as_str));
        let problem = Problem::not_found(format!("there is no formula called {name:?}"));
        let problem = near.into_iter().fold(problem, Problem::hint);
        problem
            .hint("`gt formula list` shows the available ones")
            .hint(format!("a town adds its own in formulas/{name}.toml"))
    })?;
    Ok(FoundFormula {
        formula: Formula::read(name, layer)?,
        source: layer.source.to_owned(),
    })
}

/// Returns the names of all formulas that this rig or the town has.
pub fn names(town: &Town, rig: Option<&str>) -> Vec<String> {
    let mut names: BTreeSet<String> = formula::builtin_names().map(str::to_owned).collect();
    for folder in folders(town, rig) {
        let files =
            files::entries(&folder).filter_map(|entry| entry.file_name().into_string().ok());
        names.extend(files.filter_map(|file| file.strip_suffix(".toml").map(str::to_owned)));
    }
    names.into_iter().collect()
}

/// Returns the folders that are searched, most specific first.
fn folders(town: &Town, rig: Option<&str>) -> Vec<PathBuf> {
    let rig = rig.map(|rig| town.root().join(rig).join("formulas"));
    rig.into_iter()
        .chain([town.root().join("formulas")])
        .collect()
}
