//! The base: the branch that a rig's work is merged into.
//!
//! If the rig's remote accepts pushes, the base is a branch of the remote. If the remote is a
//! repository that a person works in, its branch must not move under that checkout. Then the base
//! is kept in the rig's repository as `refs/gt/merged/<branch>`, and published to the remote as
//! `gt/merged/<branch>`.

use super::combine::{BEADS, Combined, Pair, combine};
use super::remote::{self, Remote, has_files, is_checked_out};
use crate::base::clock::Clock;
use crate::base::git::{Git, GitError, without_password};
use crate::base::or_log::OrLog;
use crate::base::settings::MergeInto;
use crate::repo::{base_branch, rig, workspace};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::merge::Merge;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum duration of a push.
const PUSH_LIMIT: Duration = Duration::from_secs(120);

/// Base branch of a rig.
#[derive(Debug)]
pub(crate) struct Base<'a> {
    town: &'a Town,
    rig: &'a str,
    repository: PathBuf,
    pub(crate) branch: String,
    into: MergeInto,
    remote: Remote,
}

/// Result of moving the base.
#[derive(Clone, Debug)]
pub(crate) enum Advance {
    Done,
    /// Another process moved the base first.
    Moved,
    /// The remote is reachable and refuses the push.
    NotTaken(Problem),
}

impl<'a> Base<'a> {
    pub(crate) fn clock(&self) -> &Clock {
        self.town.clock()
    }

    pub(crate) fn of(town: &'a Town, rig: &'a str) -> Result<Self> {
        let repository = rig::repository(town, rig);
        let entry = rig::entry(town, rig)?;
        let branch = match &entry.default_branch {
            Some(branch) => branch.clone(),
            None => Git::at(&repository, town.around()).run(["symbolic-ref", "--short", "HEAD"])?,
        };
        let remote = Remote::of(town, &repository)?;
        let wanted = town.settings().merge_of(rig).into;
        let into = wanted.unwrap_or_else(|| match &remote {
            Remote::None => MergeInto::Own,
            Remote::Folder(path) if has_files(town, path, &branch) => MergeInto::Own,
            _ => MergeInto::Origin,
        });
        Ok(Base {
            town,
            rig,
            repository,
            branch,
            into,
            remote,
        })
    }

    pub(crate) fn git(&self) -> Git<'_> {
        Git::at(&self.repository, self.town.around())
    }

    /// Fetches from the remote. A failure is an error only if the base is a branch of the remote.
    pub(crate) fn fetch(&self) -> Result<(), GitError> {
        self.fetch_by(|| workspace::fetch(self.town, self.rig))
    }

    /// Fetches with the timeout of a push, for the queue: it cannot merge into a branch of the
    /// remote without fetching.
    pub(super) fn fetch_for_queue(&self) -> Result<(), GitError> {
        match self.into {
            MergeInto::Own => self.fetch(),
            MergeInto::Origin => {
                self.fetch_by(|| workspace::fetch_within(self.town, self.rig, PUSH_LIMIT))
            }
        }
    }

    fn fetch_by(&self, fetch: impl FnOnce() -> Result<(), GitError>) -> Result<(), GitError> {
        let fetched = match self.remote {
            Remote::None => return Ok(()),
            _ => fetch(),
        };
        match (fetched, self.into) {
            (Err(GitError::Other(problem)), MergeInto::Origin) => {
                let words = format!("the remote of {} cannot be reached", self.rig);
                let unreached = Problem::failed(words)
                    .caused_by_problem(&problem)
                    .hint("nothing was merged; `gt mq run` continues when it can be reached");
                Err(unreached.into())
            }
            (Err(GitError::Other(_)), MergeInto::Own) => Ok(()),
            (fetched, _) => fetched,
        }
    }

    /// Returns the ref in the rig's repository that holds the position of the base.
    pub(super) fn name(&self) -> Result<String> {
        match self.into {
            MergeInto::Origin => Ok(self.theirs()),
            MergeInto::Own => base_branch::start_point(self.town, self.rig),
        }
    }

    /// Returns the folder of the rig's repository.
    pub(super) fn git_dir(&self) -> &Path {
        &self.repository
    }

    /// Returns the commit of the base.
    pub(crate) fn tip(&self) -> Result<String> {
        self.commit(&self.name()?)?.ok_or_else(|| {
            Problem::failed(format!(
                "the rig {} has no branch {}",
                self.rig, self.branch
            ))
            .hint("`gt doctor` checks every rig")
        })
    }

    /// Returns the tip of the base's other possible location, if the base does not contain it. It
    /// holds commits of the remote's owner, or work that was merged here before the remote's branch
    /// became the base.
    pub(crate) fn missing_tip(&self) -> Result<Option<String>> {
        let other = match self.into {
            MergeInto::Own => self.theirs(),
            MergeInto::Origin => base_branch::merged_ref(&self.branch),
        };
        let Some(other) = self.commit(&other)? else {
            return Ok(None);
        };
        let is_in = self.contains(&self.tip()?, &other)?;
        Ok((!is_in).then_some(other))
    }

    /// Returns whether the base lacks work that was merged before the remote's branch became the
    /// base.
    pub(super) fn lacks_earlier_merges(&self) -> Result<bool> {
        Ok(self.into == MergeInto::Origin && self.missing_tip()?.is_some())
    }

    /// Deletes the ref of the work merged here once the remote's branch, which is the base now,
    /// contains it. Otherwise a commit that is removed from that branch later would come back.
    pub(super) fn forget_own(&self) {
        let own = base_branch::merged_ref(&self.branch);
        let forget = || -> Result<()> {
            let Some(commit) = self.commit(&own)? else {
                return Ok(());
            };
            if self.contains(&self.tip()?, &commit)? {
                self.git().run(["update-ref", "-d", &own, &commit])?;
            }
            Ok(())
        };
        if self.into == MergeInto::Origin {
            forget().or_warn(format_args!("{own} stays until the next run"));
        }
    }

    /// Describes the origin of the commit that [`Base::missing_tip`] returns, as a part of a sentence.
    pub(super) fn describe_missing_tip(&self) -> &'static str {
        match self.into {
            MergeInto::Own => "of the remote",
            MergeInto::Origin => "as it was merged here",
        }
    }

    /// Returns whether `part` is an ancestor of `whole`.
    pub(crate) fn contains(&self, whole: &str, part: &str) -> Result<bool> {
        self.git().contains(whole, part)
    }

    /// Returns the commit that a name refers to; `None` if the name is unknown.
    pub(crate) fn commit(&self, name: &str) -> Result<Option<String>> {
        self.git().commit(name)
    }

    /// Creates the merge commit of `tip` and `commit`. If only files of beads are in conflict,
    /// those of `commit` win, as after an update of its branch.
    pub(super) fn combine(&self, tip: &str, commit: &str, message: &str) -> Result<Combined> {
        let pair = Pair {
            onto: tip,
            other: commit,
            beads_of: commit,
            message,
        };
        combine(self.town, self.git(), pair)
    }

    /// Returns the files that differ between two commits, except those of beads.
    pub(super) fn changes(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let words = ["diff", "--name-only", "--no-renames", "-z", from, to, "--"];
        let names = self.git().run(words)?;
        let names = names.split('\0').filter(|name| !name.is_empty());
        let names = names.filter(|name| !name.starts_with(BEADS));
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns the protected files of the rig that differ between two commits.
    pub(super) fn protected_changes(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let patterns = protected_pathspecs(&self.town.settings().merge_of(self.rig).protected);
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let words = ["diff", "--name-only", "--no-renames", "-z", from, to, "--"];
        let words = words.iter().map(|word| (*word).to_owned());
        let names = self.git().run(words.chain(patterns))?;
        let names = names.split('\0').filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    }

    /// Moves the base from one commit to another. Returns [`Advance::Moved`] if the base has moved
    /// meanwhile.
    pub(crate) fn advance(&self, from: &str, to: &str) -> Result<Advance> {
        match self.into {
            MergeInto::Own => self.advance_own(to),
            MergeInto::Origin => self.advance_origin(from, to),
        }
    }

    fn advance_own(&self, to: &str) -> Result<Advance> {
        let name = base_branch::merged_ref(&self.branch);
        let before = self.commit(&name)?;
        // Never moves the ref backwards, even if another process has moved it.
        if let Some(before) = &before
            && !self.contains(to, before)?
        {
            return Ok(Advance::Moved);
        }
        // For git an empty old value means that the ref must not exist yet.
        let before = before.unwrap_or_default();
        self.git().run(["update-ref", &name, to, &before])?;
        Ok(Advance::Done)
    }

    fn advance_origin(&self, from: &str, to: &str) -> Result<Advance> {
        // Together with the lease this guarantees that every push is a fast-forward.
        if !self.contains(to, from)? {
            return Err(Problem::failed(format!(
                "{to} is not a descendant of {from}"
            )));
        }
        let pushed = self.push_from(from, to, &self.branch);
        let Err(problem) = pushed else {
            return Ok(Advance::Done);
        };
        // Another push may have been first, or this one may have succeeded without an answer that
        // reached us.
        self.fetch_for_queue()?;
        let now = self.tip()?;
        if self.contains(&now, to)? {
            return Ok(Advance::Done);
        }
        if now != from {
            return Ok(Advance::Moved);
        }
        Ok(Advance::NotTaken(
            Problem::failed(format!("the remote does not accept {}", self.branch))
                .caused_by_problem(&problem)
                .hint(format!(
                    "where {} may not be pushed to: `into = \"own\"` under [rigs.{}.merge]",
                    self.branch, self.rig
                )),
        ))
    }

    /// Publishes the merged work to the remote under another name, if the branch itself must not be
    /// moved. Returns that name if anything was pushed.
    pub(crate) fn publish(&self) -> Result<Option<String>> {
        let offered = format!("gt/merged/{}", self.branch);
        let merged = self.commit(&base_branch::merged_ref(&self.branch))?;
        let (MergeInto::Own, Some(merged)) = (self.into, merged) else {
            return Ok(None);
        };
        let there = self.commit(&format!("refs/remotes/origin/{offered}"))?;
        if matches!(self.remote, Remote::None) || there.as_ref() == Some(&merged) {
            return Ok(None);
        }
        self.push(&merged, &offered).map_err(|problem| {
            Problem::failed(format!("the remote's {offered} could not be moved"))
                .caused_by_problem(&problem)
        })?;
        Ok(Some(offered))
    }

    /// Returns a sentence that says where merged work is, and how a person gets it into a checkout.
    pub(crate) fn delivery(&self) -> String {
        let Base { branch, rig, .. } = self;
        match (self.into, &self.remote) {
            (MergeInto::Own, Remote::Folder(path)) if has_files(self.town, path, branch) => {
                format!(
                    "Your checkout's `{branch}` is unchanged: `gt mq pull {rig}` fast-forwards \
                     it to `gt/merged/{branch}`."
                )
            }
            (MergeInto::Own, Remote::None) => format!(
                "The work is in the town's copy of {rig}, as `{}`.",
                base_branch::merged_ref(branch)
            ),
            (MergeInto::Own, _) => format!(
                "The remote's `{branch}` is unchanged: the work is in its `gt/merged/{branch}`."
            ),
            (MergeInto::Origin, _) => {
                format!("The remote's `{branch}` has it: `git pull` takes it into your checkout.")
            }
        }
    }

    /// Pushes a commit to a branch of the remote, as a fast-forward only, and never to a branch
    /// that is checked out there.
    pub(crate) fn push(&self, commit: &str, branch: &str) -> Result<()> {
        self.check_not_checked_out(branch)?;
        let refspec = format!("{commit}:refs/heads/{branch}");
        let git = self.git_for_push()?;
        git.run(["push", "--quiet", "origin", &refspec]).map(drop)
    }

    /// Pushes a commit to a branch of the remote that must be exactly at `from`: a branch that was
    /// reset meanwhile is not moved forward again.
    pub(crate) fn push_from(&self, from: &str, commit: &str, branch: &str) -> Result<()> {
        self.check_not_checked_out(branch)?;
        let lease = format!("--force-with-lease=refs/heads/{branch}:{from}");
        let refspec = format!("{commit}:refs/heads/{branch}");
        let git = self.git_for_push()?;
        git.run(["push", "--quiet", &lease, "origin", &refspec])
            .map(drop)
    }

    /// Returns git for a push. An agent without a sandbox can change the address of the remote: the
    /// hooks of a repository on this machine run only if it is the one from which the rig was added.
    fn git_for_push(&self) -> Result<Git<'_>> {
        let git = self.git().with_time_limit(PUSH_LIMIT);
        let source = &rig::entry(self.town, self.rig)?.git_url;
        let urls = git.run(["remote", "get-url", "--push", "--all", "origin"])?;
        let known = remote::are_known(self.town, &self.repository, source, urls.lines());
        Ok(match known {
            true => git,
            false => git.to_unknown_remote(),
        })
    }

    /// Returns the commit of a remote branch at the last fetch.
    pub(crate) fn known_remote_commit(&self, branch: &str) -> Result<Option<String>> {
        self.commit(&format!("refs/remotes/origin/{branch}"))
    }

    /// Asks the remote for the current commit of a branch.
    pub(crate) fn remote_commit(&self, branch: &str) -> Result<Option<String>> {
        let name = format!("refs/heads/{branch}");
        let git = self.git().with_time_limit(PUSH_LIMIT);
        let told = git.run(["ls-remote", "--quiet", "origin", &name])?;
        let mut lines = told.lines().filter_map(|line| line.split_once('\t'));
        let found = lines.find(|(_, found)| *found == name);
        Ok(found.map(|(commit, _)| commit.to_owned()))
    }

    /// Deletes the branches of the remote that are still at the given commits, with one push.
    pub(crate) fn remove_remote<S: AsRef<str>>(&self, branches: &[(S, S)]) -> Result<()> {
        let branches = branches
            .iter()
            .map(|(branch, commit)| (branch.as_ref(), commit.as_ref()));
        let free = branches.filter(|(branch, _)| self.check_not_checked_out(branch).is_ok());
        let (leases, names): (Vec<String>, Vec<String>) = free
            .map(|(branch, commit): (&str, &str)| {
                let name = format!("refs/heads/{branch}");
                (
                    format!("--force-with-lease={name}:{commit}"),
                    format!(":{name}"),
                )
            })
            .unzip();
        if names.is_empty() {
            return Ok(());
        }
        let words = ["push".to_owned(), "--quiet".to_owned()];
        let git = self.git_for_push()?;
        git.run([&words[..], &leases, &["origin".to_owned()], &names].concat())
            .map(drop)
    }

    /// Returns the commit through which an entry is part of the base; `None` if the base does not
    /// contain the entry.
    pub(crate) fn landing(&self, merge: &Merge) -> Result<Option<String>> {
        // Work that was merged here is brought into the remote's branch before anything else.
        let before = match self.into {
            MergeInto::Origin => self.missing_tip()?,
            MergeInto::Own => None,
        };
        for tip in [Some(self.tip()?), before].into_iter().flatten() {
            if let Some(planned) = &merge.merged_as
                && self.contains(&tip, planned)?
            {
                return Ok(Some(planned.clone()));
            }
            if self.contains(&tip, &merge.commit)? {
                return Ok(Some(tip));
            }
        }
        Ok(None)
    }

    pub(crate) fn rig(&self) -> &str {
        self.rig
    }

    pub(crate) fn into(&self) -> MergeInto {
        self.into
    }

    /// Returns the URL of the remote without its password.
    pub(crate) fn remote_url(&self) -> String {
        let url = self.git().run(["remote", "get-url", "--push", "origin"]);
        url.map_or_else(|_| "no remote".to_owned(), |url| without_password(&url))
    }

    pub(crate) fn has_remote(&self) -> bool {
        !matches!(self.remote, Remote::None)
    }

    /// Returns the path of the remote if it is a folder on this machine.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.remote {
            Remote::Folder(path) => Some(path),
            _ => None,
        }
    }

    /// Fails if the branch is checked out at the remote, or if the rig has no remote.
    pub(crate) fn check_not_checked_out(&self, branch: &str) -> Result<()> {
        match &self.remote {
            Remote::Folder(path) if is_checked_out(self.town, path, branch) => Err(
                Problem::conflict(format!("{branch} is checked out in {}", path.display())),
            ),
            Remote::None => Err(Problem::not_found(format!("{} has no remote", self.rig))),
            _ => Ok(()),
        }
    }

    fn theirs(&self) -> String {
        format!("refs/remotes/origin/{}", self.branch)
    }
}
/// Returns the pathspecs of git for the protected files. Case is ignored, because a file system may
/// ignore it, and `make` also reads `makefile`. `dir/**` includes a file or link that replaces `dir`.
fn protected_pathspecs(patterns: &[String]) -> Vec<String> {
    let parent = |pattern: &str| pattern.strip_suffix("/**").map(str::to_owned);
    let all = patterns.iter().flat_map(|pattern| {
        let parent = parent(pattern).filter(|parent| !parent.is_empty());
        [Some(pattern.clone()), parent].into_iter().flatten()
    });
    all.map(|pattern| format!(":(top,glob,icase){pattern}"))
        .collect()
}
