//! Copies files into a worktree that git does not track: `.env`, `.direnv` and the like.
//!
//! The paths come from a file that others may write. Therefore nothing is read from outside the
//! project and nothing is written outside the worktree, whatever symbolic links exist on either
//! side. Existing files are not overwritten.

use crate::base::files;
use crate::repo::project;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::project::{InsidePath, Project};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Copied paths, and warnings about the paths that were refused.
#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) paths: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Copies the configured paths that the project has and the worktree lacks.
pub(super) fn copy(town: &Town, rig: &str, project: &Project, dir: &Path) -> Result<Copied> {
    let mut copied = Copied::default();
    let Ok(from) = project::folder(town, rig).canonicalize() else {
        return Ok(copied);
    };
    let to = dir
        .canonicalize()
        .map_err(|error| files::io_problem("open", dir, &error))?;
    for path in project.worktree.copy.iter().map(InsidePath::as_str) {
        match copy_one(&from, &to, path) {
            Ok(true) => copied.paths.push(path.to_owned()),
            Ok(false) => {}
            Err(CopyRefusal::LeadsOut) => copied
                .warnings
                .push(format!("{path} was not copied: a link leads out of it")),
            Err(CopyRefusal::Failed(error)) => {
                return Err(Problem::failed(format!("cannot copy {path}")).caused_by(error));
            }
        }
    }
    Ok(copied)
}

enum CopyRefusal {
    LeadsOut,
    Failed(io::Error),
}

impl From<io::Error> for CopyRefusal {
    fn from(error: io::Error) -> Self {
        CopyRefusal::Failed(error)
    }
}

/// Copies one path atomically: to a temporary name beside its place, followed by a rename.
fn copy_one(from: &Path, to: &Path, path: &str) -> Result<bool, CopyRefusal> {
    let source = from.join(path);
    let Ok(real) = source.canonicalize() else {
        return Ok(false);
    };
    let target = to.join(path);
    if !real.starts_with(from) {
        return Err(CopyRefusal::LeadsOut);
    }
    if target.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Ok(false);
    };
    // The nearest existing folder decides: the folders below it are created by this function.
    let there = parent.ancestors().find(|dir| dir.exists());
    if !there.is_some_and(|dir| dir.canonicalize().is_ok_and(|real| real.starts_with(to))) {
        return Err(CopyRefusal::LeadsOut);
    }
    fs::create_dir_all(parent)?;
    let mut beside = std::ffi::OsString::from(".gt-copy-");
    beside.push(name);
    let beside = parent.join(beside);
    remove(&beside)?;
    copy_tree(&real, &beside, from)?;
    fs::rename(&beside, &target)?;
    Ok(true)
}

/// Removes the leftover of a copy that was killed.
fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

/// Copies files with their permissions, folders recursively, and symbolic links that stay inside as
/// links. Skips sockets and other special files.
fn copy_tree(from: &Path, to: &Path, project: &Path) -> Result<(), CopyRefusal> {
    let meta = from.symlink_metadata()?;
    if meta.is_symlink() {
        let inside = from
            .canonicalize()
            .is_ok_and(|real| real.starts_with(project));
        let target: PathBuf = fs::read_link(from)?;
        return match inside && target.is_relative() {
            true => Ok(std::os::unix::fs::symlink(target, to)?),
            // A link that leads out of the worktree has no meaning in the worktree.
            false => Ok(()),
        };
    }
    if meta.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), project)?;
        }
        return Ok(fs::set_permissions(to, meta.permissions())?);
    }
    if meta.is_file() {
        fs::copy(from, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn nothing_is_read_or_written_through_a_link_that_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (from, to, out) = (root.join("from"), root.join("to"), root.join("out"));
        for folder in [&from, &to, &out] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(out.join("secret"), "x").unwrap();
        fs::write(from.join(".env"), "A=1").unwrap();
        fs::set_permissions(from.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(from.join("d")).unwrap();
        symlink("../.env", from.join("d/inside")).unwrap();
        symlink(out.join("secret"), from.join("d/outside")).unwrap();
        symlink(&out, from.join("leads")).unwrap();
        symlink(&out, to.join("trap")).unwrap();
        fs::create_dir(from.join("trap")).unwrap();
        fs::write(from.join("trap/x"), "x").unwrap();
        let copy = |path: &str| copy_one(&from, &to, path);
        assert!(matches!(copy(".env"), Ok(true)));
        let mode = to.join(".env").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(to.join(".env"), "A=2").unwrap();
        assert!(matches!(copy(".env"), Ok(false)), "what is there stays");
        assert_eq!(fs::read_to_string(to.join(".env")).unwrap(), "A=2");
        assert!(matches!(copy("missing"), Ok(false)));
        assert!(matches!(copy("leads/secret"), Err(CopyRefusal::LeadsOut)));
        assert!(matches!(copy("trap/x"), Err(CopyRefusal::LeadsOut)));
        assert!(!out.join("x").exists());
        // Leftover of a copy that was killed.
        fs::create_dir(to.join(".gt-copy-d")).unwrap();
        assert!(matches!(copy("d"), Ok(true)));
        assert!(to.join("d/inside").is_symlink());
        assert!(!to.join("d/outside").exists());
        assert!(!to.join(".gt-copy-d").exists());
    }
}
