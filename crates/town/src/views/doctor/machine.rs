//! The programs that every town needs.

use super::Finding;
use crate::Surroundings;
use crate::base::git::Git;
use gt_tmux::{ErrorKind, Server, Socket};
use std::path::Path;

pub(super) fn check_programs(around: &Surroundings) -> Vec<Finding> {
    let tmux = match Server::new(Socket::Default).version() {
        Ok(version) => match version.check_minimum() {
            Ok(()) => Finding::ok("tmux", version.to_string()),
            Err(error) => {
                Finding::error("tmux", error.to_string()).hint("install tmux 3.2 or later")
            }
        },
        Err(error) if error.kind() == ErrorKind::NotInstalled => {
            Finding::error("tmux", "tmux is not installed")
                .hint("`apt-get install tmux` or `brew install tmux`")
        }
        Err(error) => Finding::error("tmux", error.to_string()),
    };
    let git = match Git::at(Path::new("/"), around).run(["--version"]) {
        Ok(version) => Finding::ok("git", version),
        Err(problem) => Finding::of("git", &problem),
    };
    vec![tmux, git]
}
