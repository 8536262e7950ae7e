//! `.gt.toml`: a project's settings for its worktrees and tasks.
//!
//! The file lies at the root of a repository, so anyone with write access there may change it. This
//! module only parses and checks it: it rejects a path that could lead outside its folder, a name
//! that tmux would misread and an unknown key, and reports the line. The engine decides what runs,
//! and where.

mod commands;
mod values;

pub use commands::{ProjectCommand, ProjectCommandKind, unapproved};
pub use values::{CheckedList, InsidePath, Label, PathTemplate, ShellCommand, VariableName};

use crate::overlay::{broken_at, broken_toml};
use crate::patterns::Rules;
use crate::problem::Problem;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// Name of the file, at a repository's root.
pub const FILE: &str = ".gt.toml";

/// A project's settings. Every key is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Project {
    pub worktree: WorktreeTemplate,
    pub init: Init,
    pub background: Vec<Background>,
    pub dev_servers: Vec<DevServer>,
    pub harness: Harness,
    /// Patterns that map the last lines of an agent's screen to states.
    pub states: Rules,
}

/// Location of a task's worktree, and the files to copy into it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorktreeTemplate {
    pub path_template: PathTemplate,
    /// Files and folders of the project that git does not track.
    pub copy: CheckedList<InsidePath>,
}

/// Commands to run in a new container before the agent program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Init {
    pub commands: CheckedList<ShellCommand>,
    /// Whether the start continues after a command fails.
    pub continue_on_failure: bool,
}

/// A command that runs in a separate window, beside the agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Name of the window; absent means its number, from 1.
    name: Option<Spanned<Label>>,
    pub command: ShellCommand,
}

/// A development server in a separate window.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevServer {
    name: Spanned<Label>,
    pub command: ShellCommand,
    /// First port to try.
    #[serde(default = "DevServer::usual_port")]
    port: u16,
    /// Environment variable that holds the port.
    #[serde(default)]
    port_variable: VariableName,
    /// Additional ports: the variable of each, and the first port to try.
    #[serde(default)]
    ports: BTreeMap<VariableName, u16>,
}

/// Agent program for this project's tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Harness {
    pub name: Option<Label>,
    /// Model of all agents in this project's worktrees.
    pub model: Option<String>,
}

impl Project {
    /// Parses the text of a file. Errors refer to it as `source`.
    pub fn read(source: &str, text: &str) -> Result<Self, Problem> {
        let project: Project =
            toml::from_str(text).map_err(|error| broken_toml(source, text, &error))?;
        project.check(source, text)?;
        Ok(project)
    }

    /// Checks what the deserializer does not: values in lists, duplicate names and variables, and
    /// port 0.
    fn check(&self, source: &str, text: &str) -> Result<(), Problem> {
        let broken = |at: usize, message: String| Err(broken_at(source, text, at, message));
        let wrong = self.worktree.copy.first_invalid();
        if let Some((at, message)) = wrong.or_else(|| self.init.commands.first_invalid()) {
            return broken(at, message);
        }
        let named = self.background.iter().filter_map(|task| task.name.as_ref());
        let servers = self.dev_servers.iter().map(|server| &server.name);
        for names in [named.collect::<Vec<_>>(), servers.collect()] {
            for (index, name) in names.iter().enumerate() {
                if names[..index]
                    .iter()
                    .any(|one| one.as_ref() == name.as_ref())
                {
                    let message = format!("there are two called {:?}", name.as_ref().as_str());
                    return broken(name.span().start, message);
                }
            }
        }
        for server in &self.dev_servers {
            let at = server.name.span().start;
            let name = server.name();
            if server.ports.contains_key(&server.port_variable) {
                let variable = server.port_variable.as_str();
                return broken(at, format!("{name:?} has two ports called {variable}"));
            }
            if server.ports().any(|(_, port)| port == 0) {
                return broken(at, format!("{name:?} has a port 0"));
            }
        }
        Ok(())
    }

    /// Returns the background tasks with their names.
    pub fn background(&self) -> impl Iterator<Item = (String, &ShellCommand)> {
        self.background.iter().enumerate().map(|(index, task)| {
            let given = task.name.as_ref().map(|name| name.as_ref().as_str());
            let name = given.map_or_else(|| (index + 1).to_string(), str::to_owned);
            (name, &task.command)
        })
    }
}

impl DevServer {
    fn usual_port() -> u16 {
        3000
    }

    pub fn name(&self) -> &str {
        self.name.as_ref().as_str()
    }

    /// Returns the variable of the main port.
    pub fn port_variable(&self) -> &str {
        self.port_variable.as_str()
    }

    /// Returns the variables, each with the first port to try, beginning with the main port.
    pub fn ports(&self) -> impl Iterator<Item = (&str, u16)> {
        let first = (self.port_variable.as_str(), self.port);
        let others = self.ports.iter().map(|(name, port)| (name.as_str(), *port));
        std::iter::once(first).chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
[worktree]
path_template = "../{project}-{bead-id}"
copy = [".env", ".direnv"]

[init]
commands = ["direnv allow", "bun install"]
continue_on_failure = true

[[background]]
command = "bun run watch"

[[background]]
name = "tests"
command = "bun test --watch"

[[dev_servers]]
name = "web"
command = "bun run dev"

[[dev_servers]]
name = "api"
command = "bun run api"
port = 8000
port_variable = "API_PORT"
ports = { DEBUG_PORT = 9229 }

[harness]
name = "claude"

[states]
builtin = false

[[states.patterns]]
state = "done"
shows = "^All tests pass"
any_case = true
priority = 95
"#;

    #[test]
    fn every_key_is_read() {
        let project = Project::read(".gt.toml", WHOLE).unwrap();
        assert_eq!(
            project.worktree.path_template.fill("app", "gt-abc12.1"),
            "../app-gt-abc12.1"
        );
        let copied: Vec<&str> = project
            .worktree
            .copy
            .iter()
            .map(InsidePath::as_str)
            .collect();
        assert_eq!(copied, [".env", ".direnv"]);
        assert_eq!(project.init.commands.iter().count(), 2);
        assert!(project.init.continue_on_failure);
        let names: Vec<String> = project.background().map(|(name, _)| name).collect();
        assert_eq!(names, ["1", "tests"]);
        let ports: Vec<Vec<(&str, u16)>> = project
            .dev_servers
            .iter()
            .map(|server| server.ports().collect())
            .collect();
        assert_eq!(
            ports,
            [
                vec![("PORT", 3000)],
                vec![("API_PORT", 8000), ("DEBUG_PORT", 9229)]
            ]
        );
        assert_eq!(project.harness.name.unwrap().as_str(), "claude");
        let [pattern] = project.states.patterns.as_slice() else {
            panic!("{:?}", project.states);
        };
        assert_eq!(
            (pattern.shows(), pattern.priority()),
            ("^All tests pass", 95)
        );
        assert!(!project.states.builtin);
    }

    #[test]
    fn an_empty_file_says_what_is_usual() {
        let project = Project::read(".gt.toml", "").unwrap();
        assert_eq!(
            project.worktree.path_template.fill("app", "gt-1"),
            "../app-gt-1"
        );
        assert!(project.init.commands.is_empty() && project.dev_servers.is_empty());
    }

    #[test]
    fn error_in_a_project_file_names_its_line() {
        let check = |text: &str, place: &str, why: &str| {
            let problem = Project::read(".gt.toml", text).unwrap_err();
            let shown = format!("{problem} / {:?}", problem.causes());
            assert!(shown.contains(place), "{text}: {shown}");
            assert!(shown.contains(why), "{text}: {shown}");
        };
        check("x = 1", ":1:1", "unknown field");
        check("[worktree]\npath = 'x'", ":2:1", "unknown field");
        check("[init]\ncommands = 'x'", ":2:12", "expected a sequence");
        check("[init]\ncommands = [\n'a',\n'']", ":4:1", "empty");
        check("[init]\ncommands = [\"a\\nb\"]", ":2:13", "one line");
        check("[worktree]\ncopy = ['../x']", ":2:9", "leads out");
        check("[worktree]\ncopy = ['/etc/passwd']", ":2:9", "leads out");
        check("[worktree]\ncopy = ['.git/config']", ":2:9", "git's own");
        check("[[background]]\nname = 'a'", ":1:1", "command");
        let two = "[[dev_servers]]\nname = 'a'\ncommand = 'x'\n";
        check(&two.repeat(2), ":5:8", "two called");
        check(
            &format!("{two}ports = {{ PORT = 1 }}"),
            ":2:8",
            "two ports called PORT",
        );
        check(&format!("{two}port = 0"), ":2:8", "port 0");
        check(&format!("{two}port = 70000"), ":4:8", "u16");
        check(&format!("{two}port_variable = 'a b'"), ":4:17", "variable");
        check(
            "[[dev_servers]]\nname = 'a:b'\ncommand = 'x'",
            ":2:8",
            "letters",
        );
        check("[harness]\nname = '../x'", ":2:8", "letters");
        check("[states]\ntable = 1", ":2:1", "unknown field");
        let pattern = "[[states.patterns]]\nshows = 'x'\n";
        check(pattern, ":1:1", "state");
        check(&format!("{pattern}state = 'happy'"), ":3:9", "happy");
        check(
            &format!("{pattern}state = 'done'\nregex = 1"),
            ":4:1",
            "regex",
        );
        check(
            "[[states.patterns]]\nstate = 'done'\nshows = '^'",
            ":3:9",
            "shows no state",
        );
        check(
            &format!("{pattern}state = 'done'\npriority = -1"),
            ":4:12",
            "u16",
        );
    }
}
