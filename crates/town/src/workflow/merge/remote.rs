//! Finds the location of a rig's remote, and whether it has checked-out files.
//!
//! It only reads. `base.rs` moves branches.

use crate::base::files;
use crate::base::git::Git;
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Kind of the rig's remote.
#[derive(Debug)]
pub(super) enum Remote {
    None,
    /// A repository on this machine.
    Folder(PathBuf),
    Elsewhere,
}

impl Remote {
    /// Asks git for the remote. Fails if git fails: work of a rig with a remote would otherwise be
    /// merged as if it had none.
    pub(super) fn of(town: &Town, repository: &Path) -> Result<Self> {
        let git = Git::at(repository, town.around());
        // Ask git: a URL may be an alias for another, and pushes may go elsewhere than fetches.
        let remotes = git.run(["remote", "--verbose"])?;
        let urls: Vec<&str> = urls(&remotes, "origin").collect();
        if urls.is_empty() {
            return Ok(Remote::None);
        }
        // Branches are moved at the push URL, which git names last.
        let mut urls = urls.iter().rev();
        let folder = urls.find_map(|url| folder_of(repository, url));
        Ok(folder.map_or(Remote::Elsewhere, Remote::Folder))
    }
}

/// Returns whether each of these URLs leads to another machine, or to the repository from which the rig
/// was added.
pub(super) fn are_known<'u>(
    town: &Town,
    repository: &Path,
    source: &str,
    urls: impl Iterator<Item = &'u str>,
) -> bool {
    let mut folders = urls.filter_map(|url| folder_of(repository, url)).peekable();
    // Towns of other tools do not always have the source.
    if folders.peek().is_none() || source.is_empty() {
        return true;
    }
    let known = folder_of(repository, source).or_else(|| {
        // The source may be an alias in the person's configuration, and not one in that of the rig.
        let git = Git::at(town.root(), town.around());
        let url = git.run(["ls-remote", "--get-url", "--", source]);
        let url = url.or_debug("the source of the rig is no remote")?;
        folder_of(repository, &url)
    });
    known.is_some_and(|known| folders.all(|folder| files::is_same(&folder, &known)))
}

/// Returns the URLs of a remote in the output of `git remote --verbose`: `name<tab>URL (fetch)`,
/// and likewise for pushes.
fn urls<'t>(remotes: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let lines = remotes.lines().filter_map(move |line| {
        let url = line.strip_prefix(name)?.strip_prefix('\t')?;
        let end = url.rfind(" (push)").or_else(|| url.rfind(" (fetch)"))?;
        Some(&url[..end])
    });
    lines.filter(|url| !url.is_empty())
}

/// Returns the folder of a URL, if it is on this machine.
fn folder_of(repository: &Path, url: &str) -> Option<PathBuf> {
    let path = match url.strip_prefix("file://") {
        Some(path) => decoded(path),
        None => OsString::from(url),
    };
    let mut with_end = path.clone();
    with_end.push(".git");
    // Git also finds a repository whose `.git` suffix was omitted.
    let folders = [path, with_end].map(|path| repository.join(path));
    folders.into_iter().find(|folder| folder.is_dir())
}

/// Decodes each `%XX` in the path of a URL.
fn decoded(path: &str) -> OsString {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
        let is_hex = |two: &&str| two.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = digits
            .filter(is_hex)
            .and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    OsString::from_vec(bytes)
}

/// Returns whether a person may work in that repository. A repository that cannot be read counts.
pub(super) fn has_files(town: &Town, path: &Path, branch: &str) -> bool {
    is_bare(town, path) != Some(true) || is_checked_out(town, path, branch)
}

/// Returns whether it is a repository with files. A repository that cannot be read does not count:
/// its files could not be updated.
pub(super) fn is_checkout(town: &Town, path: &Path) -> bool {
    is_bare(town, path) == Some(false)
}

/// Returns whether a repository has no worktree of its own. A repository that cannot be read is
/// logged, and the answer is `None`.
fn is_bare(town: &Town, path: &Path) -> Option<bool> {
    let answer = Git::at(path, town.around()).run(["rev-parse", "--is-bare-repository"]);
    let answer = answer.or_warn(format_args!("{} cannot be read", path.display()))?;
    Some(answer == "true")
}

/// Returns whether a branch is checked out anywhere. A repository that cannot be read counts: a
/// branch that may be checked out is not moved.
pub(super) fn is_checked_out(town: &Town, path: &Path, branch: &str) -> bool {
    let line = format!("branch refs/heads/{branch}");
    let worktrees = Git::at(path, town.around()).run(["worktree", "list", "--porcelain"]);
    let worktrees = worktrees.or_warn(format_args!("{} cannot be read", path.display()));
    worktrees.is_none_or(|text| text.lines().any(|found| found == line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::town;

    #[test]
    fn failing_git_is_not_taken_for_a_missing_remote() {
        let (dir, town) = town();
        let repository = dir.path().join("repo");
        std::fs::create_dir(&repository).unwrap();
        let git = Git::at(&repository, town.around()).only_own_repository();
        git.run(["init", "--quiet", "--bare"]).unwrap();
        let remote = Remote::of(&town, &repository);
        assert!(matches!(remote, Ok(Remote::None)), "{remote:?}");
        std::fs::write(repository.join("config"), "[remote \"origin\n").unwrap();
        assert!(Remote::of(&town, &repository).is_err());
        assert!(is_checked_out(&town, &repository, "main"));
    }

    #[test]
    fn a_remote_has_the_addresses_that_git_names() {
        let told = "origin\t/a b (c) (fetch) [blob:none]\norigin\thost:x (push)\n\
            origin2\t/d (fetch)\nempty\n";
        let of = |name: &str| urls(told, name).collect::<Vec<_>>();
        assert_eq!(of("origin"), ["/a b (c)", "host:x"]);
        assert_eq!(of("empty"), [""; 0]);
    }

    #[test]
    fn a_url_is_read_as_git_reads_it() {
        let check = |url: &str, path: &str| assert_eq!(decoded(url), OsString::from(path));
        check("/my%20repo", "/my repo");
        check("/%c3%BC%2F", "/ü/");
        check("/100%/%2/%zz/%+f", "/100%/%2/%zz/%+f");
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("my repo.git")).unwrap();
        let here = dir.path().display();
        for url in [
            "my repo.git".to_owned(),
            format!("{here}/my repo"),
            format!("file://{here}/my%20repo.git"),
            format!("file://{here}/my%20repo"),
        ] {
            let found = folder_of(dir.path(), &url);
            assert_eq!(found, Some(dir.path().join("my repo.git")), "{url}");
        }
        assert_eq!(folder_of(dir.path(), "git@host:my%20repo"), None);
    }
}
