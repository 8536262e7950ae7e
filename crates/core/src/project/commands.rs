//! The commands of a project, and the comparison with those that a person has approved.
//!
//! A repository can be changed by agents, and by people who push to it. So `gt` runs a command of
//! `.gt.toml` only after a person has approved exactly that command.

use super::Project;
use serde::{Deserialize, Serialize};

/// Occasion on which a command of a project runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectCommandKind {
    Init,
    Background,
    DevServer,
}

impl ProjectCommandKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ProjectCommandKind::Init => "init",
            ProjectCommandKind::Background => "background",
            ProjectCommandKind::DevServer => "dev server",
        }
    }
}

/// A command of a project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProjectCommand {
    pub kind: ProjectCommandKind,
    pub command: String,
}

impl Project {
    /// Returns the commands that `gt` runs for this project, in the order of the file.
    pub fn commands(&self) -> Vec<ProjectCommand> {
        let command = |kind, command: &str| ProjectCommand {
            kind,
            command: command.to_owned(),
        };
        let init = self.init.commands.iter();
        let init = init.map(|line| command(ProjectCommandKind::Init, line.as_str()));
        let background = self.background.iter();
        let background =
            background.map(|task| command(ProjectCommandKind::Background, task.command.as_str()));
        let servers = self.dev_servers.iter();
        let servers =
            servers.map(|server| command(ProjectCommandKind::DevServer, server.command.as_str()));
        init.chain(background).chain(servers).collect()
    }
}

/// Returns the commands that are not approved.
pub fn unapproved(commands: &[ProjectCommand], approved: &[ProjectCommand]) -> Vec<ProjectCommand> {
    let is_new = |command: &&ProjectCommand| !approved.contains(command);
    commands.iter().filter(is_new).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_approved_for_its_occasion() {
        let text = "[init]\ncommands = ['make']\n[[background]]\ncommand = 'watch'\n\
                    [[dev_servers]]\nname = 'web'\ncommand = 'serve'\n";
        let commands = Project::read("x", text).unwrap().commands();
        let shown: Vec<(ProjectCommandKind, &str)> = commands
            .iter()
            .map(|it| (it.kind, it.command.as_str()))
            .collect();
        let expected = [
            (ProjectCommandKind::Init, "make"),
            (ProjectCommandKind::Background, "watch"),
            (ProjectCommandKind::DevServer, "serve"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(unapproved(&commands, &commands), []);
        // A server's command does not run as an init command without another approval.
        let moved = ProjectCommand {
            kind: ProjectCommandKind::Init,
            command: "serve".to_owned(),
        };
        let changed = [commands[0].clone(), moved.clone()];
        assert_eq!(unapproved(&changed, &commands), [moved]);
    }
}
