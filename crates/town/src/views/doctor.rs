//! Checks of a machine and a town, with fixes.
//!
//! Each check is a function that returns findings, and a row of [`CHECKS`]. A fix never loses data.
//! The checks are in one file per topic.

mod agents;
mod configuration;
mod folders;
mod items;
mod leftovers;
mod machine;
mod merges;
mod server;
mod sessions;
mod unattended;

use crate::workflow::recovery;
use crate::{Result, Surroundings, Town};
use gt_core::Problem;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    Ok,
    Warning,
    Error,
}

#[derive(Clone, Debug, Serialize)]
pub struct DoctorFinding {
    pub check: &'static str,
    pub status: CheckStatus,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub fixable: bool,
}

impl DoctorFinding {
    fn new(check: &'static str, status: CheckStatus, message: impl Into<String>) -> Self {
        DoctorFinding {
            check,
            status,
            message: message.into(),
            hint: None,
            fixable: false,
        }
    }

    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckStatus::Ok, message)
    }

    fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckStatus::Warning, message)
    }

    fn error(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, CheckStatus::Error, message)
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn fixable(mut self) -> Self {
        self.fixable = true;
        self
    }

    fn of(check: &'static str, problem: &Problem) -> Self {
        let causes: Vec<&str> = problem.causes().iter().map(String::as_str).collect();
        let because = if causes.is_empty() {
            String::new()
        } else {
            format!(": {}", causes.join(": "))
        };
        let mut finding = Self::error(check, format!("{problem}{because}"));
        finding.hint = problem.hints().first().cloned();
        finding
    }
}

/// Checks one part of a town and returns findings; repairs it if `fix` is set.
type Check = fn(&Town, fix: bool) -> Vec<DoctorFinding>;

/// The checks of a town, in the order in which they are reported.
const CHECKS: &[Check] = &[
    server::check_socket,
    folders::check_permissions,
    folders::check_room,
    configuration::check_rigs,
    configuration::check_worktree_settings,
    sessions::check_sessions,
    items::check_work,
    items::check_backups,
    items::check_beads,
    items::check_unread,
    merges::check_queues,
    configuration::check_git_programs,
    configuration::check_roles,
    configuration::check_harnesses,
    configuration::check_prices,
    agents::check_names,
    agents::check_agents,
    agents::check_sandbox,
    server::check_hook,
    server::check_sync_hooks,
    agents::check_pids,
    leftovers::check_leftovers,
    leftovers::check_containers,
    unattended::check_log,
    unattended::check_events,
    unattended::check_saves,
];

/// Runs all checks. A town that cannot be opened is a finding as well.
pub fn examine(town: Result<Town>, around: &Surroundings, fix: bool) -> Vec<DoctorFinding> {
    let mut findings = machine::check_programs(around);
    match town {
        Ok(town) => {
            findings.push(DoctorFinding::ok("town", town.root().display().to_string()));
            findings.extend(CHECKS.iter().flat_map(|check| check(&town, fix)));
            if fix && let Err(problem) = recovery::resume_unattended(&town) {
                findings.push(DoctorFinding::of("recovery", &problem));
            }
        }
        Err(problem) => findings.push(DoctorFinding::of("town", &problem)),
    }
    findings
}
