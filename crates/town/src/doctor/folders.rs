//! The folders of the town itself: who may read and write them.

use super::Finding;
use crate::Town;
use std::os::unix::fs::PermissionsExt;

/// Folders that hold messages, prompts or environment are the owner's alone.
pub(super) fn check_permissions(town: &Town, fix: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dir in [
        town.root().to_owned(),
        town.runtime_dir(),
        town.root().join(".sessions"),
    ] {
        let Ok(meta) = dir.metadata() else { continue };
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 == 0 {
            continue;
        }
        let message = format!("{} is open to others ({mode:o})", dir.display());
        let fixed =
            fix && std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).is_ok();
        findings.push(if fixed {
            Finding::ok("permissions", format!("{message}; closed now"))
        } else {
            Finding::warning("permissions", message)
                .hint(format!("chmod 700 {}", dir.display()))
                .fixable()
        });
    }
    if findings.is_empty() {
        findings.push(Finding::ok("permissions", "the town is yours alone"));
    }
    findings
}
