//! Bringing a task's branch up to date with the base of its rig.
//!
//! Whether the two go together is found out in memory. If they do, the commit that has both
//! is made there as well, and the worktree only moves on to it: no editor opens, no hook
//! runs, and whoever is killed leaves either the old state or the new. If they do not, the
//! merge is begun in the worktree, and an agent in the window `merge` is told which files
//! are in conflict. Whoever asks again while that goes on hears what is left.
//!
//! What is under `.beads/` is beads' own, and `bd sync` brings it together: a conflict there
//! does not count, and the branch keeps its own.

use super::site::Site;
use super::{TaskOptions, event_of, is_initialized, resolver, wip};
use crate::events::Events;
use crate::git::Git;
use crate::git::committer;
use crate::merge::{self, BEADS, Combined, Pair};
use crate::workspace::half_done;
use crate::{Result, Town, containers, fault, git, windows};
use gt_core::Problem;
use gt_core::work::WorkId;

/// Where a test can kill us.
pub const FAULT_POINTS: &[&str] = &["update.begun", "update.opened"];

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateResult {
    /// The branch has all that the base has.
    UpToDate,
    Merged,
    /// A merge was begun, and an agent was given its conflicts.
    Conflict,
    /// One was begun before, and somebody is at it.
    Merging,
}

impl UpdateResult {
    pub fn word(self) -> &'static str {
        match self {
            UpdateResult::UpToDate => "up_to_date",
            UpdateResult::Merged => "merged",
            UpdateResult::Conflict => "conflict",
            UpdateResult::Merging => "merging",
        }
    }

    /// Whether the branch has all of the base now.
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
    /// How many commits of the base it lacked.
    pub commits: u32,
    /// What is in conflict.
    pub files: Vec<String>,
    /// The harness of the agent that was given the conflicts by this call.
    pub resolver: Option<String>,
    pub warnings: Vec<String>,
}

/// Merges the base into the branch of a task. Whoever is given conflicts has the project's
/// init commands done, whether or not one of them may fail.
pub fn update(town: &Town, id: &WorkId, continue_on_failure: bool) -> Result<Updated> {
    let site = Site::of(town, id)?;
    let _lock = site.lock()?;
    let updated = bring_up_to_date(&site, continue_on_failure)?;
    // Of a merge that somebody is at nothing new is known.
    if updated.result != UpdateResult::Merging {
        let kind = format!("update_{}", updated.result.word());
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

fn bring_up_to_date(site: &Site<'_>, continue_on_failure: bool) -> Result<Updated> {
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
    match half_done(&site.dir) {
        Some("merge") => return go_on(site, updated, continue_on_failure),
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
    if let Err(problem) = base.fetch() {
        town.around().cancel.check()?;
        updated.warnings.push(format!("{problem}"));
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
            // Before anything is begun: where nobody could be given the conflicts, the
            // worktree stays as it is.
            ensure_container(site, continue_on_failure)?;
            let wishes = resolver::wishes(site)?;
            if !begin(site, &tip, &updated.base)? {
                updated.result = UpdateResult::Merged;
                return Ok(updated);
            }
            fault::point(town, "update.begun");
            updated.files = conflict.files;
            hand_over(site, &wishes, updated)
        }
        Combined::Strangers => Err(Problem::conflict(format!(
            "{id} has no history in common with {}",
            updated.base
        ))),
    }
}

/// Takes back a merge that is under way in a task's worktree. Gives the files that were in
/// conflict.
pub fn abort_merge(town: &Town, id: &WorkId) -> Result<Vec<String>> {
    let site = Site::of(town, id)?;
    let _lock = site.lock()?;
    if !git::is_merging(&site.dir) {
        return Err(
            Problem::conflict(format!("no merge is under way in {}", site.dir.display())).hint(
                format!("`gt task update {id}` begins one, where it is behind"),
            ),
        );
    }
    let files = unresolved(&site)?;
    // First, so that nobody works on in files that are taken back.
    close_window(&site)?;
    resolver::forget(&site)?;
    let git = site.git().to_the_end();
    git.run(["merge", "--abort"]).map_err(|problem| {
        Problem::failed("the merge cannot be taken back")
            .caused_by_problem(&problem)
            .hint(format!("look at {} with `git status`", site.dir.display()))
    })?;
    let event = event_of(town, "merge_aborted", id, &site.agent);
    let event = event.with("branch", site.branch());
    Events::of(town).note(vec![event.with_files(&files)]);
    Ok(files)
}

/// A merge that was begun before: what is left of it. If nobody was given its conflicts,
/// because whoever has begun it was killed or the container is gone, somebody is now. An
/// agent that has left, or a person who resolves them by hand, is left alone.
fn go_on(site: &Site<'_>, mut updated: Updated, continue_on_failure: bool) -> Result<Updated> {
    take_ours_in_beads(site)?;
    updated.files = unresolved(site)?;
    updated.result = UpdateResult::Merging;
    if updated.files.is_empty() || resolver::was_opened(site)? {
        return Ok(updated);
    }
    ensure_container(site, continue_on_failure)?;
    let wishes = resolver::wishes(site)?;
    hand_over(site, &wishes, updated)
}

/// A task that has no container gets one, with a shell in place of an agent.
fn ensure_container(site: &Site<'_>, continue_on_failure: bool) -> Result<()> {
    if is_initialized(site.town, &site.agent)? {
        return Ok(());
    }
    let options = TaskOptions {
        no_agent: true,
        continue_on_failure,
        asked_by: Some(format!("gt task update {}", site.id)),
        ..TaskOptions::default()
    };
    super::start(site.town, &site.id, &options, &mut |_| false).map(drop)
}

/// Gives the conflicts to an agent in a window of its own. The merge stands whatever comes
/// of that, so a failure is only told.
fn hand_over(
    site: &Site<'_>,
    wishes: &crate::start::StartOptions,
    mut updated: Updated,
) -> Result<Updated> {
    updated.result = UpdateResult::Conflict;
    close_window(site)?;
    match resolver::open(site, wishes, &updated.files) {
        Ok((harness, warnings)) => {
            updated.resolver = Some(harness);
            updated.warnings.extend(warnings);
        }
        Err(problem) => {
            let causes = problem.causes().join(": ");
            let words = format!("no agent could be given the conflicts: {problem} {causes}");
            updated.warnings.push(words.trim_end().to_owned());
        }
    }
    fault::point(site.town, "update.opened");
    Ok(updated)
}

/// Merges in memory.
fn combine(site: &Site<'_>, head: &str, tip: &str, base: &str) -> Result<Combined> {
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

fn message(site: &Site<'_>, base: &str) -> String {
    let branch = site.branch().unwrap_or_else(|| site.id.to_string());
    format!("Merge {base} into {branch}")
}

/// Lets the worktree move on to a commit that goes on from where it is. git itself refuses
/// where changes that are not committed would be lost.
fn move_on(site: &Site<'_>, commit: &str) -> Result<()> {
    let moved = quiet(site.git()).run(MERGE.iter().chain(&["--ff-only", commit]));
    moved
        .map(drop)
        .map_err(|problem| in_the_way(site, &problem))
}

/// Begins a merge that is known to have conflicts, and says whether it is under way.
fn begin(site: &Site<'_>, tip: &str, base: &str) -> Result<bool> {
    let git = quiet(site.git());
    let message = message(site, base);
    let mut args = committer(git);
    args.extend(MERGE);
    args.extend(["--no-ff", "-m", &message, tip]);
    let begun = git.run(args);
    if git::is_merging(&site.dir) {
        take_ours_in_beads(site)?;
        return Ok(true);
    }
    // A driver of the user's own may have known what to do.
    begun
        .map(|_| false)
        .map_err(|problem| in_the_way(site, &problem))
}

/// A merge in which nothing of the user's own can happen: no editor, no hook, no stash, no
/// question for a key.
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

/// Whoever is cut off in the middle would leave half of the files.
fn quiet(git: Git<'_>) -> Git<'_> {
    git.without_hooks().to_the_end()
}

fn in_the_way(site: &Site<'_>, problem: &Problem) -> Problem {
    Problem::conflict(format!("{} cannot be merged into as it is", site.id))
        .caused_by_problem(problem)
        .hint(format!(
            "commit or stash what is changed in {}, then try again",
            site.dir.display()
        ))
}

/// The files of a merge that nobody has resolved yet.
fn unresolved(site: &Site<'_>) -> Result<Vec<String>> {
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

/// Of a merge that is under way, what is beads' own stays as the branch has it.
fn take_ours_in_beads(site: &Site<'_>) -> Result<()> {
    let git = site.git().to_the_end();
    for file in unresolved(site)? {
        if !file.starts_with(BEADS) {
            continue;
        }
        let is_ours = git.says(["cat-file", "-e", &format!("HEAD:{file}")]);
        let words: &[&str] = match is_ours {
            true => &["checkout", "--quiet", "HEAD", "--"],
            false => &["rm", "--quiet", "--force", "--ignore-unmatch", "--"],
        };
        git.run([&["--literal-pathspecs"], words, &[&file]].concat())?;
    }
    Ok(())
}

/// Closes the window of an agent that was given conflicts.
fn close_window(site: &Site<'_>) -> Result<()> {
    let Some(container) = site.container()? else {
        return Ok(());
    };
    let own = container.own_windows();
    let panes: Vec<_> = own
        .filter(|row| row.tag_window == containers::RESOLVER_WINDOW)
        .collect();
    windows::close(site.town, &panes)
}
