//! Collects the state of an agent for a handoff.

use crate::base::git::WorktreeStatus as Worktree;
use crate::messaging::mail;
use crate::records::items::{ItemQuery, Work};
use crate::repo::workspace;
use crate::work::molecule;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::handoff::{Collected, MAX_LINES};
use gt_core::mail::Mail;
use gt_core::record::Record;
use gt_core::work::{Item, ItemStatus};
use std::path::Path;
use std::time::Duration;

/// Timeout of git: a repository that does not answer must not block the handoff.
const LIMIT: Duration = Duration::from_secs(10);
/// Number of lines shown of each list, plus one to detect that there are more.
const MAX: usize = MAX_LINES + 1;

pub(super) fn state(town: &Town, agent: &Identity, session: &Record) -> Result<Collected> {
    // Git runs while the rest is read.
    std::thread::scope(|scope| {
        let git = session
            .cwd
            .as_ref()
            .map(|dir| scope.spawn(|| repository(town, agent, Path::new(dir))));
        let collected = work_and_mail(town, agent)?;
        // Fails only if the thread panicked.
        let found = git.and_then(|git| git.join().ok()).unwrap_or_default();
        Ok(Collected {
            branch: found.branch,
            changed_files: found.changed_files,
            unpushed: found.unpushed,
            unknown: found.unknown,
            ..collected
        })
    })
}

/// Returns only the branch, which the next session's record needs.
pub(super) fn branch_alone(town: &Town, session: &Record) -> Collected {
    let dir = session.cwd.as_ref().map(Path::new);
    Collected {
        branch: dir.and_then(|dir| workspace::current_branch(town, dir)),
        ..Collected::default()
    }
}

fn work_and_mail(town: &Town, agent: &Identity) -> Result<Collected> {
    let work = Work::of(town);
    let address = agent.address();
    let prefix = agent.rig().and_then(|rig| town.registry().prefix_of(rig));
    let lines = |query: ItemQuery| -> Result<Vec<String>> {
        let query = ItemQuery {
            limit: Some(MAX),
            ..query
        };
        Ok(work.find(&query)?.iter().map(line).collect())
    };
    Ok(Collected {
        hooked: work.hooked(&address)?.map(|hooked| line(&hooked.item)),
        in_progress: lines(ItemQuery {
            status: Some(ItemStatus::InProgress),
            assignee: Some(address.clone()),
            ..ItemQuery::default()
        })?,
        ready: match agent.role().looks_for_work() {
            true => lines(ItemQuery {
                ready: true,
                prefix: prefix.map(str::to_owned),
                ..ItemQuery::default()
            })?,
            false => Vec::new(),
        },
        molecule: molecule::status(town, agent)?.map(|status| status.line()),
        inbox: inbox(town, &address)?,
        ..Collected::default()
    })
}

fn inbox(town: &Town, address: &str) -> Result<Vec<String>> {
    let (_, unread) = mail::unread_summary(town, address, MAX)?;
    let line = |mail: &Mail| format!("{} from {}: {}", mail.id, mail.sender, mail.subject);
    Ok(unread.iter().map(line).collect())
}

/// Returns the state of the repository. A missing repository is an error only for agents that have
/// a worktree.
fn repository(town: &Town, agent: &Identity, dir: &Path) -> Collected {
    let git = workspace::git_of(town, agent, dir).with_time_limit(LIMIT);
    let most = format!("--max-count={MAX}");
    let log = ["log", "--format=%h %s", &most, "HEAD", "--not", "--remotes"];
    // The two calls are independent processes, so they run concurrently.
    let (worktree, log) = std::thread::scope(|scope| {
        let log = scope.spawn(|| git.run(log));
        (Worktree::of(git), log.join())
    });
    let log = log.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let unknown = worktree.as_ref().err().or(log.as_ref().err());
    let unknown = unknown.filter(|_| workspace::has_worktree(agent));
    Collected {
        unknown: unknown.map(ToString::to_string),
        unpushed: log.unwrap_or_default().lines().map(str::to_owned).collect(),
        ..worktree.map_or_else(
            |_| Collected::default(),
            |worktree| Collected {
                branch: worktree.branch,
                changed_files: worktree.changed,
                ..Collected::default()
            },
        )
    }
}

fn line(item: &Item) -> String {
    format!("{} {}", item.id, item.title)
}
