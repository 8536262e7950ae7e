//! The programs that every town needs.

use super::DoctorFinding;
use crate::Surroundings;
use crate::base::git::Git;
use gt_tmux::{ErrorKind, Server, Socket};
use std::path::Path;

pub(super) fn check_programs(around: &Surroundings) -> Vec<DoctorFinding> {
    let tmux = match Server::new(Socket::Default).version() {
        Ok(version) => match version.check_minimum() {
            Ok(()) => DoctorFinding::ok("tmux", version.to_string()),
            Err(error) => {
                DoctorFinding::error("tmux", error.to_string()).hint("install tmux 3.2 or later")
            }
        },
        Err(error) if error.kind() == ErrorKind::NotInstalled => {
            DoctorFinding::error("tmux", "tmux is not installed")
                .hint("`apt-get install tmux` or `brew install tmux`")
        }
        Err(error) => DoctorFinding::error("tmux", error.to_string()),
    };
    let git = match Git::at(Path::new("/"), around).run(["--version"]) {
        Ok(version) => DoctorFinding::ok("git", version),
        Err(problem) => DoctorFinding::of("git", &problem),
    };
    vec![tmux, git]
}
