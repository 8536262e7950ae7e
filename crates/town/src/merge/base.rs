//! The branch that a rig's work is merged into, and how it is moved.
//!
//! Where the rig's remote takes pushes, that branch is the remote's own. A repository
//! with somebody's files in it is another matter: a branch that is checked out there
//! must not move under its owner. Then the branch is kept in the rig's own copy, as
//! `refs/gt/merged/<branch>`, and offered there as `gt/merged/<branch>`.

use super::combine::{BEADS, Combined, Pair, combine};
use super::remote::{Remote, has_files, is_checked_out};
use crate::git::{Git, without_password};
use crate::settings::MergeInto;
use crate::{Result, Town, rig, workspace};
use gt_core::Problem;
use gt_core::merge::Merge;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a remote may take to accept what is pushed.
const PUSH_LIMIT: Duration = Duration::from_secs(120);

/// A rig's base.
#[derive(Debug)]
pub(crate) struct Base<'a> {
    town: &'a Town,
    rig: &'a str,
    repository: PathBuf,
    pub(crate) branch: String,
    into: MergeInto,
    remote: Remote,
}

/// What became of a move.
#[derive(Clone, Debug)]
pub(crate) enum Advance {
    Done,
    /// Somebody else was quicker.
    Moved,
    /// The remote can be asked, and does not want it.
    NotTaken(Problem),
}

impl<'a> Base<'a> {
    pub(crate) fn of(town: &'a Town, rig: &'a str) -> Result<Self> {
        let repository = rig::repository(town, rig);
        let entry = rig::entry(town, rig)?;
        let branch = match &entry.default_branch {
            Some(branch) => branch.clone(),
            None => Git::at(&repository, town.around()).run(["symbolic-ref", "--short", "HEAD"])?,
        };
        let remote = Remote::of(town, &repository);
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

    /// Looks what the remote has. Without it nothing can be merged into its branch; one
    /// that is only taken from can wait.
    pub(crate) fn fetch(&self) -> Result<()> {
        self.fetch_by(|| workspace::fetch(self.town, self.rig))
    }

    /// The same for the queue, which gives a remote that it needs as much time for this as for
    /// a push.
    pub(super) fn fetch_patiently(&self) -> Result<()> {
        match self.into {
            MergeInto::Own => self.fetch(),
            MergeInto::Origin => {
                self.fetch_by(|| workspace::fetch_within(self.town, self.rig, PUSH_LIMIT))
            }
        }
    }

    fn fetch_by(&self, fetch: impl FnOnce() -> Result<()>) -> Result<()> {
        let fetched = match self.remote {
            Remote::None => return Ok(()),
            _ => fetch(),
        };
        if fetched.is_err() {
            self.town.around().cancel.check()?;
        }
        match self.into {
            MergeInto::Own => Ok(()),
            MergeInto::Origin => fetched.map_err(|problem| {
                Problem::failed(format!("the remote of {} cannot be asked", self.rig))
                    .caused_by_problem(&problem)
                    .hint("nothing was merged; `gt mq run` goes on when it can be reached")
            }),
        }
    }

    /// The ref of the rig's copy that says where it stands.
    pub(super) fn name(&self) -> String {
        match self.into {
            MergeInto::Origin => self.theirs(),
            MergeInto::Own => workspace::base(self.town, self.rig),
        }
    }

    /// The folder of the rig's copy.
    pub(super) fn git_dir(&self) -> &Path {
        &self.repository
    }

    /// The commit that it stands at.
    pub(crate) fn tip(&self) -> Result<String> {
        self.commit(&self.name()).ok_or_else(|| {
            Problem::failed(format!(
                "the rig {} has no branch {}",
                self.rig, self.branch
            ))
            .hint("`gt doctor` looks at every rig")
        })
    }

    /// What the base lacks of the other place where it may be kept: what the remote's owner
    /// has committed, or what was merged here before the remote's branch became the base.
    pub(crate) fn behind(&self) -> Result<Option<String>> {
        let other = match self.into {
            MergeInto::Own => self.theirs(),
            MergeInto::Origin => workspace::merged_ref(&self.branch),
        };
        let Some(other) = self.commit(&other) else {
            return Ok(None);
        };
        let is_in = self.contains(&self.tip()?, &other);
        Ok((!is_in).then_some(other))
    }

    /// Whether it lacks what was merged before the remote's branch became the base.
    pub(super) fn behind_itself(&self) -> Result<bool> {
        Ok(self.into == MergeInto::Origin && self.behind()?.is_some())
    }

    /// Forgets what was merged here once the remote's branch, which is the base now, has it all:
    /// what somebody takes out of that later is not to come back from here.
    pub(super) fn forget_own(&self) {
        let own = workspace::merged_ref(&self.branch);
        let Some(commit) = self.commit(&own).filter(|_| self.into == MergeInto::Origin) else {
            return;
        };
        if self.tip().is_ok_and(|tip| self.contains(&tip, &commit)) {
            // Where it fails the next run does it.
            let _ = self.git().run(["update-ref", "-d", &own, &commit]);
        }
    }

    /// Where what [`Base::behind`] gives comes from.
    pub(super) fn other_place(&self) -> &'static str {
        match self.into {
            MergeInto::Own => "of the remote",
            MergeInto::Origin => "as it was merged here",
        }
    }

    /// Whether a commit is a part of another's history.
    pub(crate) fn contains(&self, whole: &str, part: &str) -> bool {
        self.git()
            .says(["merge-base", "--is-ancestor", part, whole])
    }

    pub(crate) fn commit(&self, name: &str) -> Option<String> {
        let name = format!("{name}^{{commit}}");
        self.git()
            .run([
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &name,
            ])
            .ok()
    }

    /// Makes the commit that has a state of it and what comes in. Where only files of beads
    /// are in conflict, those that come in stay, as after an update of their branch.
    pub(super) fn combine(&self, tip: &str, commit: &str, message: &str) -> Result<Combined> {
        let pair = Pair {
            onto: tip,
            other: commit,
            beads_of: commit,
            message,
        };
        combine(self.town, self.git(), pair)
    }

    /// The files that one commit has otherwise than another, those of beads aside.
    pub(super) fn changes(&self, from: &str, to: &str) -> Result<Vec<String>> {
        let words = ["diff", "--name-only", "--no-renames", "-z", from, to, "--"];
        let names = self.git().run(words)?;
        let names = names.split('\0').filter(|name| !name.is_empty());
        let names = names.filter(|name| !name.starts_with(BEADS));
        Ok(names.map(str::to_owned).collect())
    }

    /// Moves it from one commit to another, unless it is not there any more.
    pub(crate) fn advance(&self, from: &str, to: &str) -> Result<Advance> {
        match self.into {
            MergeInto::Own => self.advance_own(to),
            MergeInto::Origin => self.advance_origin(from, to),
        }
    }

    fn advance_own(&self, to: &str) -> Result<Advance> {
        let name = workspace::merged_ref(&self.branch);
        let before = self.commit(&name);
        // Never back, whatever happened since the look.
        if let Some(before) = &before
            && !self.contains(to, before)
        {
            return Ok(Advance::Moved);
        }
        // To git an empty text is a ref that must not be there yet.
        let before = before.unwrap_or_default();
        self.git().run(["update-ref", &name, to, &before])?;
        Ok(Advance::Done)
    }

    fn advance_origin(&self, from: &str, to: &str) -> Result<Advance> {
        // With the lease on where it was, this makes every push one that only goes forwards.
        if !self.contains(to, from) {
            return Err(Problem::failed(format!("{to} does not go on from {from}")));
        }
        let pushed = self.push_from(from, to, &self.branch);
        let Err(problem) = pushed else {
            return Ok(Advance::Done);
        };
        // It may have been refused because others were quicker, and it may have gone
        // through although nobody could tell us.
        self.fetch_patiently()?;
        let now = self.tip()?;
        if self.contains(&now, to) {
            return Ok(Advance::Done);
        }
        if now != from {
            return Ok(Advance::Moved);
        }
        Ok(Advance::NotTaken(
            Problem::failed(format!("the remote does not take {}", self.branch))
                .caused_by_problem(&problem)
                .hint(format!(
                    "where {} may not be pushed to: `into = \"own\"` under [rigs.{}.merge]",
                    self.branch, self.rig
                )),
        ))
    }

    /// Offers the remote's owner what was merged, where the branch itself may not be
    /// moved. Says what came of it, if there was anything to do.
    pub(crate) fn publish(&self) -> Result<Option<String>> {
        let offered = format!("gt/merged/{}", self.branch);
        let merged = self.commit(&workspace::merged_ref(&self.branch));
        let (MergeInto::Own, Some(merged)) = (self.into, merged) else {
            return Ok(None);
        };
        let there = self.commit(&format!("refs/remotes/origin/{offered}"));
        if matches!(self.remote, Remote::None) || there.as_ref() == Some(&merged) {
            return Ok(None);
        }
        self.push(&merged, &offered).map_err(|problem| {
            Problem::failed(format!("the remote's {offered} could not be moved"))
                .caused_by_problem(&problem)
        })?;
        Ok(Some(offered))
    }

    /// Says where merged work is, and how it gets into the checkout of a person.
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
                workspace::merged_ref(branch)
            ),
            (MergeInto::Own, _) => format!(
                "The remote's `{branch}` is unchanged: the work is in its `gt/merged/{branch}`."
            ),
            (MergeInto::Origin, _) => {
                format!("The remote's `{branch}` has it: `git pull` takes it into your checkout.")
            }
        }
    }

    /// Pushes a commit to a branch of the remote, forwards only, and never to one that
    /// somebody has checked out there.
    pub(crate) fn push(&self, commit: &str, branch: &str) -> Result<()> {
        self.check_not_checked_out(branch)?;
        let refspec = format!("{commit}:refs/heads/{branch}");
        let git = self.git().within(PUSH_LIMIT);
        git.run(["push", "--quiet", "origin", &refspec]).map(drop)
    }

    /// The same for a branch of the remote that stands at exactly this commit, and only then:
    /// one that somebody has taken back meanwhile is not brought forwards again.
    pub(crate) fn push_from(&self, from: &str, commit: &str, branch: &str) -> Result<()> {
        self.check_not_checked_out(branch)?;
        let lease = format!("--force-with-lease=refs/heads/{branch}:{from}");
        let refspec = format!("{commit}:refs/heads/{branch}");
        let git = self.git().within(PUSH_LIMIT);
        git.run(["push", "--quiet", &lease, "origin", &refspec])
            .map(drop)
    }

    /// The commit that a branch of the remote stood at when it was last heard of.
    pub(crate) fn known_remote_commit(&self, branch: &str) -> Option<String> {
        self.commit(&format!("refs/remotes/origin/{branch}"))
    }

    /// The commit that a branch of the remote stands at, as the remote says it now.
    pub(crate) fn remote_commit(&self, branch: &str) -> Result<Option<String>> {
        let name = format!("refs/heads/{branch}");
        let git = self.git().within(PUSH_LIMIT);
        let told = git.run(["ls-remote", "--quiet", "origin", &name])?;
        let mut lines = told.lines().filter_map(|line| line.split_once('\t'));
        let found = lines.find(|(_, found)| *found == name);
        Ok(found.map(|(commit, _)| commit.to_owned()))
    }

    /// Removes branches of the remote that still are at these commits, all by one push.
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
        let git = self.git().within(PUSH_LIMIT);
        git.run([&words[..], &leases, &["origin".to_owned()], &names].concat())
            .map(drop)
    }

    /// The commit by which an entry of the queue is in the base, if it is.
    pub(crate) fn landing(&self, merge: &Merge) -> Result<Option<String>> {
        // What was merged here gets into the remote's branch before anything else does.
        let before = match self.into {
            MergeInto::Origin => self.behind()?,
            MergeInto::Own => None,
        };
        let landed = |tip: String| {
            let planned = merge.merged_as.clone();
            let planned = planned.filter(|commit| self.contains(&tip, commit));
            planned.or_else(|| self.contains(&tip, &merge.commit).then_some(tip))
        };
        let mut tips = [Some(self.tip()?), before].into_iter().flatten();
        Ok(tips.find_map(landed))
    }

    pub(crate) fn rig(&self) -> &str {
        self.rig
    }

    pub(crate) fn into(&self) -> MergeInto {
        self.into
    }

    /// The address of the remote, as it may be shown.
    pub(crate) fn remote_url(&self) -> String {
        let url = self.git().run(["remote", "get-url", "--push", "origin"]);
        url.map_or_else(|_| "no remote".to_owned(), |url| without_password(&url))
    }

    pub(crate) fn has_remote(&self) -> bool {
        !matches!(self.remote, Remote::None)
    }

    /// The remote, where it is a folder of this machine.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.remote {
            Remote::Folder(path) => Some(path),
            _ => None,
        }
    }

    /// Refuses a branch of the remote that somebody works on there.
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
