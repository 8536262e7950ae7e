//! Reads refs from their files, without git: one small file is much faster than a process.
//!
//! A ref is in a file of its own, or in `packed-refs`. git writes `packed-refs` before it removes the
//! file, so a reader that looks in this order misses no ref. Everything else (symbolic refs, other
//! storages, damaged files) is left to git.

use super::{common_dir, config, setting};
use std::fs;
use std::path::Path;

/// Returns the commit of a full ref name in the repository at `dir`, or that it does not exist; `None`
/// if only git can tell.
pub(super) fn commit(dir: &Path, name: &str) -> Option<Option<String>> {
    let common = common_dir(&config::git_dir(dir)?);
    if setting(&common.join("config"), "extensions.refstorage").is_some() {
        return None;
    }
    let path = common.join(name);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {
            // git reports a file that cannot be read.
            let text = fs::read_to_string(&path).ok()?;
            return as_commit(text.trim_end()).map(Some);
        }
        // Other branches may be in a folder of that name.
        Ok(found) if !found.is_dir() => return None,
        _ => {}
    }
    let packed = match fs::read_to_string(common.join("packed-refs")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(None),
        // git reports a file that cannot be read.
        packed => packed.ok()?,
    };
    let mut lines = packed.lines();
    let found = lines.find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
    match found {
        Some(commit) => as_commit(commit).map(Some),
        None => Some(None),
    }
}

fn as_commit(text: &str) -> Option<String> {
    let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|it| it.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;
    use crate::base::git::{Git, own_dir};

    struct Repository {
        folder: tempfile::TempDir,
        around: Surroundings,
    }

    impl Repository {
        fn new(words: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let home = folder.path().display().to_string();
            let env = [
                ("PATH", "/usr/local/bin:/usr/bin:/bin"),
                ("HOME", home.as_str()),
                ("GIT_AUTHOR_NAME", "t"),
                ("GIT_AUTHOR_EMAIL", "t@localhost"),
                ("GIT_COMMITTER_NAME", "t"),
                ("GIT_COMMITTER_EMAIL", "t@localhost"),
            ];
            let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let around = Surroundings {
                env: env.into(),
                ..Surroundings::default()
            };
            let repository = Repository { folder, around };
            repository.git(&[&["init", "--quiet", "--initial-branch=main"], words].concat());
            repository.git(&["commit", "--quiet", "--allow-empty", "--message", "one"]);
            repository
        }

        fn git(&self, words: &[&str]) -> String {
            let git = Git::at(self.folder.path(), &self.around);
            git.run(words.iter().copied()).unwrap()
        }

        fn commit(&self, name: &str) -> Option<Option<String>> {
            commit(self.folder.path(), name)
        }
    }

    #[test]
    fn refs_are_found_in_their_files_and_in_the_packed_file() {
        let repository = Repository::new(&[]);
        repository.git(&["branch", "a/b"]);
        let head = repository.git(&["rev-parse", "HEAD"]);
        let check = || {
            let found = Some(Some(head.clone()));
            assert_eq!(repository.commit("refs/heads/main"), found);
            assert_eq!(repository.commit("refs/heads/a/b"), found);
            for missing in [
                "refs/heads/a",
                "refs/heads/b",
                "refs/heads/ain",
                "refs/heads/a/b/c",
            ] {
                assert_eq!(repository.commit(missing), Some(None), "{missing}");
            }
        };
        check();
        repository.git(&["pack-refs", "--all"]);
        assert!(
            !repository
                .folder
                .path()
                .join(".git/refs/heads/main")
                .exists()
        );
        check();
    }

    #[test]
    fn refs_of_a_worktree_are_those_of_its_repository() {
        let repository = Repository::new(&[]);
        repository.git(&["worktree", "add", "--quiet", "-b", "side", "side"]);
        let side = repository.folder.path().join("side");
        assert!(own_dir(&side).is_some());
        let head = repository.git(&["rev-parse", "HEAD"]);
        assert_eq!(commit(&side, "refs/heads/side"), Some(Some(head)));
    }

    #[test]
    fn symbolic_and_damaged_refs_are_left_to_git() {
        let repository = Repository::new(&[]);
        repository.git(&["symbolic-ref", "refs/heads/link", "refs/heads/main"]);
        assert_eq!(repository.commit("refs/heads/link"), None);
        let refs = repository.folder.path().join(".git/refs/heads");
        fs::write(refs.join("bad"), "no hash\n").unwrap();
        assert_eq!(repository.commit("refs/heads/bad"), None);
        std::os::unix::fs::symlink("main", refs.join("other")).unwrap();
        assert_eq!(repository.commit("refs/heads/other"), None);
    }

    #[test]
    fn other_storages_are_left_to_git() {
        let repository = Repository::new(&["--ref-format=reftable"]);
        assert_eq!(repository.commit("refs/heads/main"), None);
        let git = Git::at(repository.folder.path(), &repository.around);
        let head = repository.git(&["rev-parse", "HEAD"]);
        assert_eq!(git.ref_commit("refs/heads/main").unwrap(), Some(head));
        assert_eq!(git.ref_commit("refs/heads/none").unwrap(), None);
    }
}
