//! Values of a project's file. Each is checked when it is parsed, so that a problem has its line.

use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// A list whose values are checked one by one and keep their offsets. An error of the deserializer
/// would only name the line in which the list begins.
#[derive(Clone, Debug)]
pub struct CheckedList<T>(Vec<(usize, Result<T, String>)>);

impl<T> Default for CheckedList<T> {
    fn default() -> Self {
        CheckedList(Vec::new())
    }
}

impl<T> CheckedList<T> {
    /// Returns the valid values: all of them, once the file is checked.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        // The check of the file reports the invalid values.
        self.0.iter().filter_map(|(_, value)| value.as_ref().ok())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first invalid value: its offset, and the reason.
    pub(super) fn first_invalid(&self) -> Option<(usize, String)> {
        let mut wrong = self.0.iter();
        wrong.find_map(|(at, value)| Some((*at, value.as_ref().err()?.clone())))
    }
}

impl<'de, T: TryFrom<String, Error = String>> Deserialize<'de> for CheckedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<Spanned<String>>::deserialize(deserializer)?;
        let values = texts.into_iter().map(|text| {
            let at = text.span().start;
            (at, T::try_from(text.into_inner()))
        });
        Ok(CheckedList(values.collect()))
    }
}

/// A shell command of the project.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ShellCommand(String);

/// A name that can be part of a window's name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Label(String);

/// Name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct VariableName(String);

/// A path inside the project.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct InsidePath(String);

/// Path of a worktree relative to the project's folder: inside it, or beside it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PathTemplate(String);

macro_rules! text {
    ($($name:ident)*) => {$(
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    )*};
}

text!(ShellCommand Label VariableName InsidePath PathTemplate);

impl TryFrom<String> for ShellCommand {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("a command is empty".to_owned());
        }
        if text.contains(['\n', '\r', '\0']) {
            return Err("a command is one line; longer ones belong in a script".to_owned());
        }
        Ok(ShellCommand(text))
    }
}

impl TryFrom<String> for Label {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        const LONGEST: usize = 40;
        let may_be = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_good = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(may_be)
            && text.len() <= LONGEST;
        match is_good {
            true => Ok(Label(text)),
            false => Err(format!(
                "a name has letters, digits, - and _, and at most {LONGEST} of them"
            )),
        }
    }
}

impl Default for VariableName {
    fn default() -> Self {
        VariableName("PORT".to_owned())
    }
}

impl TryFrom<String> for VariableName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let may_be = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_good = !text.is_empty()
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(may_be);
        match is_good {
            true => Ok(VariableName(text)),
            false => Err(format!("{text:?} cannot be the name of a variable")),
        }
    }
}

impl TryFrom<String> for InsidePath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let path = text.strip_suffix('/').unwrap_or(&text);
        for part in path.split('/') {
            check_part(part)?;
            if part == ".." {
                return Err(format!("{text:?} leads out of the project"));
            }
        }
        Ok(InsidePath(path.to_owned()))
    }
}

/// Fails for a part that no path may contain.
fn check_part(part: &str) -> Result<(), String> {
    match part {
        "" => Err("the path leads out of the project, or a part of it is empty".to_owned()),
        "." => Err("a part of the path is only a dot".to_owned()),
        _ if part.eq_ignore_ascii_case(".git") => {
            Err("the path leads into git's own folder".to_owned())
        }
        _ if part.chars().any(char::is_control) => {
            Err("the path holds a control character".to_owned())
        }
        _ => Ok(()),
    }
}

const PROJECT: &str = "{project}";
const BEAD: &str = "{bead-id}";

impl Default for PathTemplate {
    fn default() -> Self {
        PathTemplate(format!("../{PROJECT}-{BEAD}"))
    }
}

impl PathTemplate {
    /// Returns the path for one item, relative to the project's folder.
    pub fn fill(&self, project: &str, id: &str) -> String {
        self.0.replace(BEAD, id).replace(PROJECT, project)
    }
}

impl TryFrom<String> for PathTemplate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rest = text.replace(PROJECT, "").replace(BEAD, "");
        if rest.contains(['{', '}']) {
            return Err(format!("only {PROJECT} and {BEAD} are filled in"));
        }
        let beside = text.strip_prefix("../");
        let parts: Vec<&str> = beside.unwrap_or(&text).split('/').collect();
        for part in &parts {
            check_part(part)?;
            if *part == ".." {
                return Err("it may lead out of the project once, at its beginning".to_owned());
            }
            // Hidden files beside the project do not belong to it: a home's settings, for example.
            if beside.is_some() && part.starts_with('.') {
                return Err(format!("{part:?} beside the project is hidden"));
            }
        }
        match parts.last().is_some_and(|last| last.contains(BEAD)) {
            true => Ok(PathTemplate(text)),
            false => Err(format!(
                "the last part must hold {BEAD}, or all tasks would share a worktree"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_stays_in_or_beside_the_project() {
        for good in [
            "../{project}-{bead-id}",
            "../worktrees/{bead-id}",
            ".worktrees/{bead-id}",
            "{bead-id}",
        ] {
            assert!(PathTemplate::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "../{project}",
            "../{bead-id}/x",
            "/tmp/{bead-id}",
            "../../{bead-id}",
            "a/../../{bead-id}",
            "../.ssh/{bead-id}",
            "../.{bead-id}",
            ".git/{bead-id}",
            ".GIT/{bead-id}",
            "./{bead-id}",
            "../{town}-{bead-id}",
            "a\n/{bead-id}",
            "a//{bead-id}",
            "..",
        ] {
            assert!(PathTemplate::try_from(bad.to_owned()).is_err(), "{bad:?}");
        }
    }
}
