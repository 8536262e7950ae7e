//! Formulas: how a kind of work is done, as steps that depend on each other.
//!
//! A formula is a TOML file with variables and steps. Some are embedded; a town or a rig can
//! replace them. This module reads, validates, orders and fills in formulas. The engine
//! (`town::work::molecule`) makes a molecule of one, for one agent.

use crate::name;
use crate::overlay::{Layer, broken_toml};
use crate::problem::Problem;
use crate::work::check_title;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("formulas/", $name, ".toml")))),*]
    };
}

const BUILTIN: &[(&str, &str)] = builtin!["shiny", "patrol", "review"];

/// Returns the names of the embedded formulas.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Returns the text of an embedded formula.
pub fn builtin(name: &str) -> Option<Layer<'static>> {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some(Layer {
        source: "built-in",
        text,
    })
}

/// A formula: variables and steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formula {
    /// The name, which is also the name of its file.
    #[serde(rename = "formula")]
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub vars: BTreeMap<String, FormulaVariable>,
    pub steps: Vec<FormulaStep>,
}

/// A variable, which replaces `{{name}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FormulaVariable {
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The caller must give a value. An optional variable without a default is empty.
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormulaStep {
    pub id: String,
    pub title: String,
    #[serde(default)]
    pub description: String,
    /// The steps that must be done before this one.
    #[serde(default)]
    pub needs: Vec<String>,
}

impl Formula {
    /// Reads and validates the formula of this name.
    pub fn read(name: &str, layer: Layer<'_>) -> Result<Formula, Problem> {
        let formula: Formula = toml::from_str(layer.text)
            .map_err(|error| broken_toml(layer.source, layer.text, &error))?;
        formula
            .check(name)
            .map_err(|why| Problem::usage(format!("{}: {why}", layer.source)))?;
        Ok(formula)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        if self.name != name {
            let own = &self.name;
            return Err(format!("it is named {own:?}, but its file {name:?}"));
        }
        if self.steps.is_empty() {
            return Err("it has no steps".to_owned());
        }
        let mut ids = BTreeSet::new();
        for step in &self.steps {
            if !name::is_well_formed(&step.id) {
                return Err(format!("{:?} cannot be the id of a step", step.id));
            }
            if !ids.insert(step.id.as_str()) {
                return Err(format!("two steps are called {}", step.id));
            }
            check_title(&step.title).map_err(|why| format!("the step {}: {why}", step.id))?;
        }
        for step in &self.steps {
            if let Some(unknown) = step.needs.iter().find(|id| !ids.contains(id.as_str())) {
                return Err(format!(
                    "the step {} needs {unknown:?}, which is none of its steps",
                    step.id
                ));
            }
        }
        if let Some(odd) = self.vars.keys().find(|name| !is_variable(name)) {
            return Err(format!("{odd:?} cannot be the name of a variable"));
        }
        self.check_variables("its description", &self.description)?;
        for step in &self.steps {
            for text in [&step.title, &step.description] {
                self.check_variables(&format!("the step {}", step.id), text)?;
            }
        }
        let in_order = self.order();
        let stuck: Vec<&str> = self
            .steps
            .iter()
            .filter(|step| !in_order.iter().any(|other| other.id == step.id))
            .map(|step| step.id.as_str())
            .collect();
        match stuck.as_slice() {
            [] => Ok(()),
            stuck => Err(format!(
                "these steps depend on each other in a cycle: {}",
                stuck.join(", ")
            )),
        }
    }

    fn check_variables(&self, what: &str, text: &str) -> Result<(), String> {
        let mut names = pieces(text).filter_map(|piece| match piece {
            TemplatePiece::Variable(name) => Some(name),
            TemplatePiece::Text(_) => None,
        });
        match names.find(|name| !self.vars.contains_key(*name)) {
            None => Ok(()),
            Some(name) => Err(format!(
                "{what} uses {{{{{name}}}}}, which is not under [vars]"
            )),
        }
    }

    /// Returns the steps in an order that satisfies their dependencies, otherwise as written.
    /// Steps of a cycle are omitted; a formula that passed [`Formula::read`] has none.
    pub fn order(&self) -> Vec<&FormulaStep> {
        let mut ordered: Vec<&FormulaStep> = Vec::new();
        let is_in = |ordered: &[&FormulaStep], id: &str| ordered.iter().any(|step| step.id == id);
        while let Some(next) = self.steps.iter().find(|step| {
            !is_in(&ordered, &step.id) && step.needs.iter().all(|need| is_in(&ordered, need))
        }) {
            ordered.push(next);
        }
        ordered
    }

    /// Returns a copy with the variables filled in and the steps in order. Filled-in values are
    /// not searched for variables again.
    pub fn fill(&self, given: &BTreeMap<String, String>) -> Result<Formula, Problem> {
        if let Some(unknown) = given.keys().find(|name| !self.vars.contains_key(*name)) {
            let known: Vec<&str> = self.vars.keys().map(String::as_str).collect();
            let problem = Problem::usage(format!(
                "the formula {} has no variable {unknown:?}",
                self.name
            ));
            return Err(match known.as_slice() {
                [] => problem.hint("it has none"),
                known => problem.hint(format!("it has {}", known.join(", "))),
            });
        }
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, variable) in &self.vars {
            let value = given.get(name).or(variable.default.as_ref());
            if variable.required && value.is_none_or(|value| value.trim().is_empty()) {
                let what = match variable.description.as_str() {
                    "" => String::new(),
                    description => format!(" ({description})"),
                };
                return Err(Problem::usage(format!(
                    "the formula {} needs the variable {name}{what}",
                    self.name
                ))
                .hint(format!("`--var {name}=…`")));
            }
            values.insert(name, value.map_or("", String::as_str));
        }
        let fill = |text: &str| -> String {
            pieces(text)
                .map(|piece| match piece {
                    TemplatePiece::Text(text) => text,
                    TemplatePiece::Variable(name) => values.get(name).copied().unwrap_or_default(),
                })
                .collect()
        };
        let filled = self.order().into_iter().map(|step| {
            let title = fill(&step.title);
            check_title(&title).map_err(|problem| {
                Problem::usage(format!("the title of the step {} is {title:?}", step.id))
                    .caused_by_problem(&problem)
            })?;
            Ok(FormulaStep {
                title,
                description: fill(&step.description),
                ..step.clone()
            })
        });
        let steps: Result<Vec<FormulaStep>, Problem> = filled.collect();
        Ok(Formula {
            description: fill(&self.description),
            steps: steps?,
            ..self.clone()
        })
    }
}

enum TemplatePiece<'t> {
    Text(&'t str),
    Variable(&'t str),
}

/// Splits a text into plain text and variables. Braces around anything else are plain text:
/// instructions may mention other templates.
fn pieces(text: &str) -> impl Iterator<Item = TemplatePiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((name, after)) = variable_at(rest) {
            rest = after;
            return Some(TemplatePiece::Variable(name));
        }
        let openings = rest.match_indices('{').map(|(at, _)| at);
        let end = openings
            .filter(|at| *at > 0)
            .find(|at| variable_at(&rest[*at..]).is_some());
        let (before, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(TemplatePiece::Text(before))
    })
}

/// Returns the variable at the start of a text, and the rest.
fn variable_at(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix("{{")?.split_once("}}")?;
    let name = name.trim();
    is_variable(name).then_some((name, after))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Formula, Problem> {
        let text = format!("formula = 'x'\n{text}");
        Formula::read(
            "x",
            Layer {
                source: "formulas/x.toml",
                text: &text,
            },
        )
    }

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn every_embedded_formula_reads_and_can_be_filled_in() {
        for name in builtin_names() {
            let formula = Formula::read(name, builtin(name).unwrap())
                .unwrap_or_else(|problem| panic!("{name}: {problem} {:?}", problem.causes()));
            assert!(!formula.description.is_empty(), "{name}");
            let required = formula.vars.iter().filter(|(_, var)| var.required);
            let values = required.map(|(name, _)| (name.clone(), "value".to_owned()));
            let steps = formula.fill(&values.collect()).unwrap().steps;
            assert_eq!(steps.len(), formula.steps.len(), "{name}");
        }
    }

    #[test]
    fn steps_come_in_an_order_in_which_they_can_be_done() {
        let formula = read(
            "[[steps]]\nid = 'c'\ntitle = 'C'\nneeds = ['a', 'b']\n\
             [[steps]]\nid = 'b'\ntitle = 'B'\n\
             [[steps]]\nid = 'a'\ntitle = 'A'\nneeds = ['b']\n\
             [[steps]]\nid = 'd'\ntitle = 'D'\n",
        )
        .unwrap();
        let order: Vec<&str> = formula
            .order()
            .iter()
            .map(|step| step.id.as_str())
            .collect();
        assert_eq!(order, ["b", "a", "c", "d"]);
    }

    #[test]
    fn a_formula_that_cannot_work_is_refused() {
        let check = |text: &str, expected: &str| {
            let problem = read(text).unwrap_err();
            let shown = format!("{problem} {:?}", problem.causes());
            assert!(shown.contains(expected), "{shown}");
            assert!(shown.contains("formulas/x.toml"), "{shown}");
        };
        let step = |id: &str, more: &str| format!("[[steps]]\nid = '{id}'\ntitle = 'T'\n{more}\n");
        check("steps = []\n", "no steps");
        check("description = 'x'\n", "missing field `steps`");
        check(&[step("a", ""), step("a", "")].concat(), "two steps");
        check(&step("a b", ""), "cannot be the id");
        check(&step("a", "needs = ['z']"), "none of its steps");
        check(&step("a", "needs = ['a']"), "in a cycle: a");
        check(
            &[
                step("a", "needs = ['b']"),
                step("b", "needs = ['a']"),
                step("c", ""),
            ]
            .concat(),
            "in a cycle: a, b",
        );
        check(&step("a", "description = 'do {{what}}'"), "{{what}}");
        check(
            &format!("description = 'do {{{{what}}}}'\n{}", step("a", "")),
            "its description uses {{what}}",
        );
        check(&step("a", "need = []"), "unknown field `need`");
        check("[[steps]]\nid = 'a'\ntitle = ''\n", "needs a title");
        check(
            &format!("[vars.'a b']\n{}", step("a", "")),
            "name of a variable",
        );
        let other = Layer {
            source: "built-in",
            text: BUILTIN[0].1,
        };
        assert!(Formula::read("other", other).is_err(), "a wrong name");
    }

    #[test]
    fn variables_are_filled_in_once() {
        let formula = read(
            "description = 'On {{what}}'\n\
             [vars.what]\nrequired = true\ndescription = 'the thing'\n[vars.how]\ndefault = 'well'\n\
             [vars.why]\n\
             [[steps]]\nid = 'a'\ntitle = 'Do {{what}} {{ how }}'\n\
             description = 'ü{{why}}{{{what}} {{not this}} {{ {{how}}'\n",
        )
        .unwrap();
        let filled = formula.fill(&given(&[("what", "{{how}} now")])).unwrap();
        assert_eq!(filled.description, "On {{how}} now");
        let steps = filled.steps;
        assert_eq!(steps[0].title, "Do {{how}} now well");
        assert_eq!(steps[0].description, "ü{{{how}} now {{not this}} {{ well");
        let problem = formula.fill(&given(&[])).unwrap_err();
        assert!(problem.message().contains("what (the thing)"), "{problem}");
        assert!(formula.fill(&given(&[("what", " ")])).is_err());
        let problem = formula
            .fill(&given(&[("what", "x"), ("waht", "y")]))
            .unwrap_err();
        assert!(problem.hints()[0].contains("how, what, why"), "{problem}");
        let problem = formula.fill(&given(&[("what", "two\nlines")])).unwrap_err();
        assert!(problem.message().contains("the step a"), "{problem}");
    }
}
