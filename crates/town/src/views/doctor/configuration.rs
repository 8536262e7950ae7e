//! Files that people edit: the registry of rigs, roles, harnesses and prices.

use super::DoctorFinding;
use crate::Town;
use crate::base::git::{Git, Hardening};
use crate::catalog::{harnesses, roles};
use crate::records::usage;
use crate::repo::{rig, workspace, worktree_settings};
use gt_core::Role;

pub(super) fn check_rigs(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let registry = town.registry();
    let mut findings = Vec::new();
    for (name, entry) in &registry.rigs {
        let mut others = registry.clone();
        others.rigs.remove(name);
        if let Err(problem) = others.check_new(name, &entry.beads.prefix) {
            findings.push(DoctorFinding::of("rigs", &problem));
        }
        let repository = rig::repository(town, name);
        match Git::at(&repository, town.around()).is_repository() {
            Ok(true) => {}
            Ok(false) => findings.push(
                DoctorFinding::error(
                    "rigs",
                    format!("{name}: {} is not a repository", repository.display()),
                )
                .hint(format!(
                    "git clone --bare {} {}",
                    crate::base::git::without_password(&entry.git_url),
                    repository.display()
                )),
            ),
            Err(problem) => findings.push(DoctorFinding::of("rigs", &problem)),
        }
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::ok(
            "rigs",
            format!("{} registered", registry.rigs.len()),
        ));
    }
    findings
}

/// Checks that each worktree has a configuration file of its own. An earlier version of `gt` added
/// rigs without.
pub(super) fn check_worktree_settings(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let rigs = town.registry().rigs.keys();
    let shared = rigs.filter(|rig| !worktree_settings::are_separate(town, rig));
    shared
        .map(|rig| {
            let separated = fix.then(|| {
                let _lock = workspace::lock_repository(town, rig)?;
                worktree_settings::separate_existing(town, rig)
            });
            match separated {
                Some(Ok(())) => DoctorFinding::ok(
                    "rigs",
                    format!("{rig}: its worktrees have settings of their own now"),
                ),
                Some(Err(problem)) => DoctorFinding::of("rigs", &problem),
                None => DoctorFinding::warning(
                    "rigs",
                    format!(
                        "{rig}: its worktrees share all settings, and `git config --worktree` fails"
                    ),
                )
                .hint("`gt doctor --fix` sets `extensions.worktreeConfig`")
                .fixable(),
            }
        })
        .collect()
}

/// Reports settings of a rig's repository that name a program. They may be the person's own or an
/// agent's.
pub(super) fn check_git_programs(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for name in town.registry().rigs.keys() {
        let hardening = Hardening::of(&rig::repository(town, name), town.around());
        for setting in hardening.ignored {
            let file = setting.file.display();
            let message = format!(
                "{name}: gt does not run {:?}, which {} in {file} names",
                setting.value, setting.key
            );
            let hint = format!(
                "`git config --file {file} --unset-all {key}` removes it; `allow = [\"{key}\"]` \
                 under `[git]` in town.toml allows it",
                key = setting.key
            );
            findings.push(DoctorFinding::warning("git", message).hint(hint));
        }
    }
    findings
}

pub(super) fn check_roles(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let rigs =
        std::iter::once(None).chain(town.registry().rigs.keys().map(|rig| Some(rig.as_str())));
    let mut findings: Vec<DoctorFinding> = rigs
        .flat_map(|rig| Role::all().map(move |role| (rig, role)))
        .filter_map(|(rig, role)| roles::resolve(town, role, rig).err())
        .map(|problem| DoctorFinding::of("roles", &problem))
        .collect();
    findings.dedup_by(|a, b| a.message == b.message);
    if findings.is_empty() {
        findings.push(DoctorFinding::ok("roles", "all can be read"));
    }
    findings
}

pub(super) fn check_harnesses(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let mut installed = Vec::new();
    for name in harnesses::names(town) {
        match harnesses::resolve(town, &name) {
            Ok(preset) => {
                if town
                    .around()
                    .find_program(&preset.value.command.program)
                    .is_some()
                {
                    installed.push(name);
                }
            }
            Err(problem) => findings.push(DoctorFinding::of("harnesses", &problem)),
        }
    }
    let default = harnesses::choose(town, None, &gt_core::role::RoleConfig::default());
    if installed.contains(&default) {
        findings.push(DoctorFinding::ok(
            "harnesses",
            format!("installed: {}", installed.join(", ")),
        ));
    } else {
        findings.push(
            DoctorFinding::warning(
                "harnesses",
                format!("the town's default, {default}, is not installed here"),
            )
            .hint("install it, or set `harness` in town.toml; `gt harness list` shows the choice"),
        );
    }
    findings
}

pub(super) fn check_prices(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    vec![match usage::prices(town) {
        Ok(_) => DoctorFinding::ok("prices", "all can be read"),
        Err(problem) => DoctorFinding::of("prices", &problem),
    }]
}
