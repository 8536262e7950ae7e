//! Updates a task's branch with the base of its rig.
//!
//! The merge is tried in memory. If it succeeds, the merge commit is created there as well, and the
//! worktree only fast-forwards to it: no editor opens, no hook runs, and a killed process leaves
//! either the old or the new state. If there are conflicts, the merge is begun in the worktree, and
//! an agent in the window `merge` is told which files are in conflict. Further calls report the
//! remaining conflicts.
//!
//! Files under `.beads/` belong to beads, and `bd sync` reconciles them: a conflict there does not
//! count, and the branch keeps its version.

use super::site::TaskSite;
use super::{TaskOptions, event_of, is_initialized, resolver, wip};
use crate::base::git::{Git, GitError, committer};
use crate::base::{fault, git};
use crate::records::events::Events;
use crate::repo::workspace::unfinished_operation;
use crate::terminal::{containers, windows};
use crate::workflow::merge::{self, BEADS, Combined, Pair};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::work::WorkId;

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["update.begun", "update.opened"];

/// Result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateResult {
    /// The branch contains all commits of the base.
    UpToDate,
    Merged,
    /// A merge was begun, and its conflicts were given to an agent.
    Conflict,
    /// A merge was begun before and is under way.
    Merging,
}

impl UpdateResult {
    pub fn as_str(self) -> &'static str {
        match self {
            UpdateResult::UpToDate => "up_to_date",
            UpdateResult::Merged => "merged",
            UpdateResult::Conflict => "conflict",
            UpdateResult::Merging => "merging",
        }
    }

    /// Returns whether the branch contains all commits of the base now.
    pub fn is_done(self) -> bool {
        matches!(self, UpdateResult::UpToDate | UpdateResult::Merged)
    }
}

#[derive(Clone, Debug)]
pub struct Updated {
    pub id: WorkId,
    pub result: UpdateResult,
    pub branch: Option<String>,
    /// The branch that was merged.
    pub base: String,
    /// Number of commits of the base that were missing.
    pub commits: usize,
    /// Files in conflict.
    pub files: Vec<String>,
    /// Harness of the agent to which this call gave the conflicts.
    pub resolver: Option<String>,
    pub warnings: Vec<String>,
}

/// Merges the base into the branch of a task. Before conflicts are given to an agent, the project's
/// init commands run; `continue_on_failure` ignores their failures.
pub fn update(town: &Town, id: &WorkId, continue_on_failure: bool) -> Result<Updated> {
    let site = TaskSite::of(town, id)?;
    let _lock = site.lock()?;
    let updated = bring_up_to_date(&site, continue_on_failure)?;
    // A merge that was begun by an earlier call already has its event.
    if updated.result != UpdateResult::Merging {
        let kind = format!("update_{}", updated.result.as_str());
        let event = event_of(town, &kind, id, &site.agent)
            .with("base", updated.base.clone())
            .with("branch", updated.branch.clone())
            .with("commits", updated.commits)
            .with("resolver", updated.resolver.clone())
            .with_files(&updated.files);
        Events::of(town).note(vec![event]);
    }
    Ok(updated)
}

fn bring_up_to_date(site: &TaskSite<'_>, continue_on_failure: bool) -> Result<Updated> {
    let (town, id) = (site.town, &site.id);
    let base = site.base()?;
    let mut updated = Updated {
        id: id.clone(),
        result: UpdateResult::UpToDate,
        branch: site.branch(),
        base: base.branch.clone(),
        commits: 0,
        files: Vec::new(),
        resolver: None,
        warnings: Vec::new(),
    };
    match unfinished_operation(&site.dir) {
        Some("merge") => return continue_merge(site, updated, continue_on_failure),
        Some(other) => {
            return Err(Problem::conflict(format!(
                "a {other} is under way in {}",
                site.dir.display()
            ))
            .hint(format!("finish it there, or `git {other} --abort`")));
        }
        None => {}
    }
    wip::refuse(site)?;
    match base.fetch() {
        Err(GitError::Other(problem)) => updated.warnings.push(problem.to_string()),
        fetched => fetched?,
    }
    let tip = base.tip()?;
    let head = site.head()?;
    updated.commits = site.count(&tip, &head)?;
    if updated.commits == 0 {
        return Ok(updated);
    }
    match combine(site, &head, &tip, &updated.base)? {
        Combined::Commit(commit) => {
            move_on(site, &commit)?;
            updated.result = UpdateResult::Merged;
            Ok(updated)
        }
        Combined::Conflict(conflict) => {
            // Checked before the merge begins: without a container and a program for the resolver,
            // the worktree stays unchanged.
            ensure_container(site, continue_on_failure)?;
            let options = resolver::start_options(site)?;
            if !begin(site, &tip, &updated.base)? {
                updated.result = UpdateResult::Merged;
                return Ok(updated);
            }
            fault::point(town, "update.begun");
            updated.files = conflict.files;
            hand_over(site, &options, updated)
        }
        Combined::Unrelated => Err(Problem::conflict(format!(
            "{id} has no history in common with {}",
            updated.base
        ))),
    }
}

/// Aborts a merge that is under way in a task's worktree. Returns the files that were in conflict.
pub fn abort_merge(town: &Town, id: &WorkId) -> Result<Vec<String>> {
    let site = TaskSite::of(town, id)?;
    let _lock = site.lock()?;
    if !git::is_merging(&site.dir) {
        return Err(
            Problem::conflict(format!("no merge is under way in {}", site.dir.display())).hint(
                format!("`gt task update {id}` begins one, where it is behind"),
            ),
        );
    }
    let files = unresolved(&site)?;
    // Closed first, so that the resolver does not edit files that are being reset.
    close_window(&site)?;
    resolver::forget(&site)?;
    let git = site.git().uncancellable();
    git.run(["merge", "--abort"]).map_err(|problem| {
        Problem::failed("the merge cannot be aborted")
            .caused_by_problem(&problem)
            .hint(format!("look at {} with `git status`", site.dir.display()))
    })?;
    let event = event_of(town, "merge_aborted", id, &site.agent);
    let event = event.with("branch", site.branch());
    Events::of(town).note(vec![event.with_files(&files)]);
    Ok(files)
}

/// Reports the state of a merge that was begun before. If its conflicts were given to no agent,
/// because the process was killed or the container is gone, opens a resolver now. An agent that has
/// ended is not replaced, and a person who resolves the conflicts by hand is not disturbed.
fn continue_merge(
    site: &TaskSite<'_>,
    mut updated: Updated,
    continue_on_failure: bool,
) -> Result<Updated> {
    take_ours_in_beads(site)?;
    updated.files = unresolved(site)?;
    updated.result = UpdateResult::Merging;
    if updated.files.is_empty() || resolver::was_opened(site)? {
        return Ok(updated);
    }
    ensure_container(site, continue_on_failure)?;
    let options = resolver::start_options(site)?;
    hand_over(site, &options, updated)
}

/// Creates a container with a shell instead of an agent, if the task has none.
fn ensure_container(site: &TaskSite<'_>, continue_on_failure: bool) -> Result<()> {
    if is_initialized(site.town, &site.agent)? {
        return Ok(());
    }
    let options = TaskOptions {
        no_agent: true,
        continue_on_failure,
        asked_by: Some(format!("gt task update {}", site.id)),
        ..TaskOptions::default()
    };
    super::start(site.town, &site.id, &options, &mut |_| false)?;
    Ok(())
}

/// Gives the conflicts to an agent in a separate window. A failure is only a warning, because the
/// merge is under way in any case.
fn hand_over(
    site: &TaskSite<'_>,
    options: &crate::lifecycle::start::StartOptions,
    mut updated: Updated,
) -> Result<Updated> {
    updated.result = UpdateResult::Conflict;
    close_window(site)?;
    match resolver::open(site, options, &updated.files) {
        Ok((harness, warnings)) => {
            updated.resolver = Some(harness);
            updated.warnings.extend(warnings);
        }
        Err(problem) => {
            let causes = problem.causes().join(": ");
            let words = format!("no agent could be started for the conflicts: {problem} {causes}");
            updated.warnings.push(words.trim_end().to_owned());
        }
    }
    fault::point(site.town, "update.opened");
    Ok(updated)
}

/// Merges in memory.
fn combine(site: &TaskSite<'_>, head: &str, tip: &str, base: &str) -> Result<Combined> {
    if site.count(head, tip)? == 0 {
        return Ok(Combined::Commit(tip.to_owned()));
    }
    let pair = Pair {
        onto: head,
        other: tip,
        beads_of: head,
        message: &message(site, base),
    };
    merge::combine(site.town, site.git(), pair)
}

fn message(site: &TaskSite<'_>, base: &str) -> String {
    let branch = site.branch().unwrap_or_else(|| site.id.to_string());
    format!("Merge {base} into {branch}")
}

/// Fast-forwards the worktree to a commit. Git refuses if uncommitted changes would be lost.
fn move_on(site: &TaskSite<'_>, commit: &str) -> Result<()> {
    let moved = quiet(site.git()).run(MERGE.iter().chain(&["--ff-only", commit]));
    moved
        .map(drop)
        .map_err(|problem| cannot_merge(site, &problem))
}

/// Begins a merge that is expected to have conflicts. Returns whether it is under way.
fn begin(site: &TaskSite<'_>, tip: &str, base: &str) -> Result<bool> {
    let git = quiet(site.git());
    let message = message(site, base);
    let mut args = committer(git)?;
    args.extend(MERGE);
    args.extend(["--no-ff", "-m", &message, tip]);
    let begun = git.run(args);
    if git::is_merging(&site.dir) {
        take_ours_in_beads(site)?;
        return Ok(true);
    }
    // A merge driver of the user may have resolved the conflicts.
    begun
        .map(|_| false)
        .map_err(|problem| cannot_merge(site, &problem))
}

/// Merge command that is independent of the user's settings: no editor, no hook, no stash, no
/// signature.
const MERGE: &[&str] = &[
    "-c",
    "commit.gpgSign=false",
    "merge",
    "--quiet",
    "--no-edit",
    "--no-stat",
    "--no-autostash",
    "--no-verify-signatures",
];

/// Disables hooks and cancellation: an interrupted merge would leave half of the files.
fn quiet(git: Git<'_>) -> Git<'_> {
    git.uncancellable()
}

fn cannot_merge(site: &TaskSite<'_>, problem: &Problem) -> Problem {
    Problem::conflict(format!("{} cannot be merged into as it is", site.id))
        .caused_by_problem(problem)
        .hint(format!(
            "commit or stash what is changed in {}, then try again",
            site.dir.display()
        ))
}

/// Returns the files of a merge that are still unresolved.
fn unresolved(site: &TaskSite<'_>) -> Result<Vec<String>> {
    let names = site
        .git()
        .run(["diff", "--name-only", "--diff-filter=U", "-z"])?;
    let mut names: Vec<String> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names.dedup();
    Ok(names)
}

/// Resolves the conflicts in files of beads with the branch's version.
fn take_ours_in_beads(site: &TaskSite<'_>) -> Result<()> {
    let git = site.git().uncancellable();
    for file in unresolved(site)? {
        if !file.starts_with(BEADS) {
            continue;
        }
        let name = format!("HEAD:{file}");
        let is_ours = git.says(["rev-parse", "--verify", "--quiet", &name])?;
        let words: &[&str] = match is_ours {
            true => &["checkout", "--quiet", "HEAD", "--"],
            false => &["rm", "--quiet", "--force", "--ignore-unmatch", "--"],
        };
        git.run([&["--literal-pathspecs"], words, &[&file]].concat())?;
    }
    Ok(())
}

/// Closes the window of the resolver.
fn close_window(site: &TaskSite<'_>) -> Result<()> {
    let Some(container) = site.container()? else {
        return Ok(());
    };
    let own = container.own_windows();
    let panes: Vec<_> = own
        .filter(|row| row.tag_window == containers::RESOLVER_WINDOW)
        .collect();
    windows::close(site.town, &panes)
}
