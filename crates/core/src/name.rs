//! Validation of names.
//!
//! Names end up in tmux targets, folders, branches and shell lines, so only `[a-zA-Z0-9_-]` is
//! allowed when something is created. Whether a name could be *parsed* in two ways is decided in
//! [`crate::identity`], which knows the naming scheme.

use crate::problem::Problem;
use thiserror::Error;

/// Maximum length of a name that we create: container names stay readable in a status line, and
/// branch and folder names stay far below any file system's limit.
const LONGEST: usize = 64;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum NameError {
    #[error("the {what} cannot be empty")]
    Empty { what: &'static str },
    #[error("the {what} {name:?} is longer than {LONGEST} characters")]
    TooLong { what: &'static str, name: String },
    #[error("the {what} {name:?} holds {bad:?}")]
    Character {
        what: &'static str,
        name: String,
        bad: char,
    },
    #[error("the {what} {name:?} cannot begin with {first:?}")]
    Beginning {
        what: &'static str,
        name: String,
        first: char,
    },
    #[error("{name:?} is reserved by gt and cannot be a {what}")]
    Reserved { what: &'static str, name: String },
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        let hint = match error {
            NameError::Reserved { .. } => "choose another name",
            _ => "letters, digits, `_` and `-` are allowed, beginning with a letter or digit",
        };
        Problem::usage(error.to_string()).hint(hint)
    }
}

/// Words for roles or folders, which cannot name an agent: an address such as `gastown/witness`
/// must have one meaning.
const AGENT_WORDS: &[&str] = &[
    "agent", "agents", "all", "boot", "crew", "deacon", "dog", "dogs", "hq", "mayor", "overseer",
    "polecat", "polecats", "refinery", "task", "witness",
];

/// Words that cannot name a rig: roles, and the town's own folders.
const RIG_WORDS: &[&str] = &[
    "agent",
    "agents",
    "all",
    "boot",
    "crew",
    "daemon",
    "deacon",
    "dog",
    "dogs",
    "formulas",
    "harnesses",
    "hq",
    "logs",
    "mayor",
    "overseer",
    "polecat",
    "polecats",
    "refinery",
    "roles",
    "settings",
    "task",
    "tasks",
    "witness",
];

/// Checks the name of a crew worker, polecat or dog.
pub fn check_agent(name: &str) -> Result<(), NameError> {
    check("name", name)?;
    reserved("name", name, AGENT_WORDS)
}

/// Checks the name of a rig.
pub fn check_rig(name: &str) -> Result<(), NameError> {
    check("rig name", name)?;
    reserved("rig name", name, RIG_WORDS)
}

/// Derives a rig's name from the name of a folder or repository: characters that a name cannot
/// have become dashes.
pub fn derive_rig(folder: &str) -> Result<String, NameError> {
    let folder = folder.strip_suffix(".git").unwrap_or(folder);
    let dashed: String = folder
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() || c == '_' {
            true => c,
            false => '-',
        })
        .collect();
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    let name = parts.join("-");
    let name = name.trim_start_matches('_').to_owned();
    check_rig(&name)?;
    Ok(name)
}

/// Checks a rig's prefix. `hq` belongs to the town and `agent` to `agent_{slug}`.
pub fn check_prefix(prefix: &str) -> Result<(), NameError> {
    check("prefix", prefix)?;
    let claimed = ["hq-", "agent_"]
        .iter()
        .any(|word| prefix.to_ascii_lowercase().starts_with(word));
    if claimed {
        return Err(NameError::Reserved {
            what: "prefix",
            name: prefix.to_owned(),
        });
    }
    reserved("prefix", prefix, &["hq", "agent"])
}

/// Checks the slug of an `agent_{slug}`. No word is reserved, because a slug has its own prefix.
pub fn check_slug(slug: &str) -> Result<(), NameError> {
    check("slug", slug)
}

/// Checks the name of an account.
pub fn check_account(name: &str) -> Result<(), NameError> {
    check("account's name", name)
}

/// Checks a work item's id. Child items have dotted ids, which tmux does not allow in a name; the
/// container's name replaces the dots and a tag keeps the exact id.
pub fn check_work_id(id: &str) -> Result<(), NameError> {
    check("work item id", &id.replace('.', "_"))
}

/// Checks the name that a container would get.
pub fn check_container(name: &str) -> Result<(), NameError> {
    check("container's name", name)
}

/// Returns whether a text is a well-formed name, by its characters and length alone.
pub fn is_well_formed(name: &str) -> bool {
    check("name", name).is_ok()
}

fn check(what: &'static str, name: &str) -> Result<(), NameError> {
    let Some(first) = name.chars().next() else {
        return Err(NameError::Empty { what });
    };
    if let Some(bad) = name
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
    {
        return Err(NameError::Character {
            what,
            name: name.to_owned(),
            bad,
        });
    }
    // A leading dash is parsed as an option wherever the name is an argument.
    if !first.is_ascii_alphanumeric() {
        return Err(NameError::Beginning {
            what,
            name: name.to_owned(),
            first,
        });
    }
    if name.len() > LONGEST {
        return Err(NameError::TooLong {
            what,
            name: name.to_owned(),
        });
    }
    Ok(())
}

/// Fails if the name is a reserved word. Ignores case, because some file systems do.
fn reserved(what: &'static str, name: &str, words: &[&str]) -> Result<(), NameError> {
    if words.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        return Err(NameError::Reserved {
            what,
            name: name.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_tmux_git_and_shells_take_unquoted() {
        for name in ["max", "Toast", "a1", "x_y-z", "7up"] {
            assert_eq!(check_agent(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn refuses_what_could_mean_something_elsewhere() {
        for name in [
            "",
            "a.b",
            "a:b",
            "a b",
            "-x",
            "_x",
            "#(touch x)",
            "ä",
            "a/b",
            "$1",
            "a\n",
            "=x",
        ] {
            assert!(check_agent(name).is_err(), "{name:?}");
        }
        assert!(check_agent(&"x".repeat(65)).is_err());
    }

    #[test]
    fn rig_name_is_derived_from_a_folder() {
        for (folder, name) in [
            ("hello", "hello"),
            ("hello.git", "hello"),
            ("my.web app", "my-web-app"),
            (".dotfiles", "dotfiles"),
            ("__x", "x"),
            ("a--b", "a-b"),
        ] {
            assert_eq!(derive_rig(folder).as_deref(), Ok(name), "{folder}");
        }
        for folder in ["", "...", "mayor", "日本"] {
            assert!(derive_rig(folder).is_err(), "{folder}");
        }
    }

    #[test]
    fn refuses_words_of_our_own_in_any_case() {
        for name in ["witness", "Crew", "polecats", "mayor"] {
            assert!(check_agent(name).is_err(), "{name}");
            assert!(check_rig(name).is_err(), "{name}");
        }
        assert!(check_rig("roles").is_err());
        for prefix in ["hq", "hq-dog", "agent_x", "HQ-x"] {
            assert!(check_prefix(prefix).is_err(), "{prefix}");
        }
        assert_eq!(check_slug("witness"), Ok(()));
        assert_eq!(check_work_id("gt-abc12.1"), Ok(()));
    }
}
