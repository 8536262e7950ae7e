//! How things stand when a life hands over.

use crate::git::Git;
use crate::work::{Query, Work};
use crate::{Result, Town, checkpoint, mail, molecule};
use gt_core::Identity;
use gt_core::handoff::Collected;
use gt_core::mail::Letter;
use gt_core::record::Record;
use gt_core::work::{Item, Status};
use std::path::Path;
use std::time::Duration;

/// A repository that does not answer must hold up nobody.
const LIMIT: Duration = Duration::from_secs(10);
/// As much as is shown of each, and one more to know that there is more.
const MOST: usize = 21;

pub(super) fn state(town: &Town, agent: &Identity, life: &Record) -> Result<Collected> {
    let work = Work::of(town);
    let address = agent.address();
    let prefix = agent.rig().and_then(|rig| town.registry().prefix_of(rig));
    let lines = |query: Query| -> Result<Vec<String>> {
        let query = Query {
            limit: Some(MOST),
            ..query
        };
        Ok(work.find(&query)?.iter().map(line).collect())
    };
    let mut collected = Collected {
        hooked: work.hooked(&address)?.map(|hooked| line(&hooked.item)),
        in_progress: lines(Query {
            status: Some(Status::InProgress),
            assignee: Some(address.clone()),
            ..Query::default()
        })?,
        ready: lines(Query {
            ready: true,
            prefix: prefix.map(str::to_owned),
            ..Query::default()
        })?,
        molecule: molecule::status(town, agent)?.map(|status| status.line()),
        inbox: inbox(town, &agent.address())?,
        ..Collected::default()
    };
    if let Some(dir) = &life.cwd {
        repository(town, Path::new(dir), &mut collected);
    }
    Ok(collected)
}

fn inbox(town: &Town, address: &str) -> Result<Vec<String>> {
    let unread = mail::unread_summary(town, address)?;
    let line =
        |letter: &Letter| format!("{} from {}: {}", letter.id, letter.sender, letter.subject);
    Ok(unread.iter().take(MOST).map(line).collect())
}

/// Where there is no repository there is nothing to say of one.
fn repository(town: &Town, dir: &Path, collected: &mut Collected) {
    let git = Git::at(dir, town.around()).within(LIMIT);
    // One call for the branch and the files: it is a program each time.
    let Ok(status) = git.run(["status", "--porcelain", "--branch", "-z"]) else {
        return;
    };
    let (head, files) = status.split_once('\0').unwrap_or((status.as_str(), ""));
    let branch = head
        .trim_start_matches("## ")
        .trim_start_matches("No commits yet on ");
    let branch = branch.split("...").next().unwrap_or(branch);
    collected.branch = Some(branch.to_owned()).filter(|branch| !branch.is_empty());
    collected.changed_files = checkpoint::changed_files(files);
    let log = git.run([
        "log",
        "--format=%h %s",
        "--max-count=21",
        "HEAD",
        "--not",
        "--remotes",
    ]);
    collected.unpushed = log.unwrap_or_default().lines().map(str::to_owned).collect();
}

fn line(item: &Item) -> String {
    format!("{} {}", item.id, item.title)
}
