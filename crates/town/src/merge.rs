//! The merge queue at work: mechanical, one branch of a rig after the other.
//!
//! A branch is merged with the base in memory, the rig's commands say whether the
//! result is sound, and only then the base moves to exactly that commit. So the base
//! never holds what was not validated, whoever is killed when. What cannot be merged
//! becomes an item for an agent. The queue itself is in `crate::work`.

mod base;
mod combine;
mod repair;
mod sweep;
mod validate;

pub(crate) use base::Base;
pub(crate) use sweep::queued_ref;

use crate::events::Events;
use crate::lock::{self, FileLock};
use crate::work::{Rejection, Work};
use crate::{Result, Town, fault, rig};
use base::Advance;
use combine::{Combined, combine};
use gt_core::event::Event;
use gt_core::merge::{Merge, Refusal, Status, short};
use gt_core::work::WorkId;
use gt_core::{Problem, Role};
use std::time::Duration;
use validate::{Candidate, Verdict, validate};

/// Where a test kills a run; each is what was just done.
pub const FAULT_POINTS: &[&str] = &[
    "mq.begun",
    "mq.built",
    "mq.validated",
    "mq.advanced",
    "mq.recorded",
    "mq.swept",
];

/// The same where a branch cannot be merged.
pub const REFUSAL_FAULT_POINTS: &[&str] = &["mq.begun", "mq.refused", "mq.handed"];

/// How often it is tried to be quicker than others who move the base.
const TRIES: usize = 5;

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// These alone, whatever else waits.
    pub only: Vec<WorkId>,
    /// One of each rig, and no more.
    pub once: bool,
}

/// What became of one entry.
#[derive(Clone, Debug)]
pub struct Ran {
    pub merge: Merge,
    /// What did not go as wished and changed nothing about it.
    pub warnings: Vec<String>,
}

/// Merges what waits in a rig. What was done before a problem came up is told first.
pub fn run(
    town: &Town,
    rig: &str,
    options: &RunOptions,
    tell: &dyn Fn(&str),
    mut give: impl FnMut(Ran),
) -> Result<()> {
    rig::check_not_parked(town, rig)?;
    let work = Work::of(town);
    let _lock = take_turn(town, rig, tell)?;
    let base = Base::of(town, rig)?;
    let queue = Queue {
        town,
        rig,
        work: &work,
        base: &base,
        tell,
    };
    let mut seen: Vec<WorkId> = Vec::new();
    let result = loop {
        let next = work.merges(Some(rig), false)?.into_iter().find(|merge| {
            matches!(merge.status, Status::Queued | Status::Merging)
                && !seen.contains(&merge.id)
                && (options.only.is_empty() || options.only.contains(&merge.id))
        });
        let Some(next) = next.filter(|_| !(options.once && !seen.is_empty())) else {
            break Ok(());
        };
        seen.push(next.id.clone());
        match queue.one(&next) {
            Ok(Some(ran)) => give(ran),
            Ok(None) => {}
            Err(problem) => break Err(problem),
        }
        if let Err(problem) = town.around().cancel.check() {
            break Err(problem);
        }
    };
    queue.finish_up(tell);
    result
}

/// What would become of what waits, as far as can be told without running anything.
pub fn foresee(town: &Town, rig: &str, only: &[WorkId]) -> Result<Vec<(Merge, Option<Refusal>)>> {
    let base = Base::of(town, rig)?;
    let mut tip = base.tip()?;
    let mut foreseen = Vec::new();
    for merge in Work::of(town).merges(Some(rig), false)? {
        let is_meant = only.is_empty() || only.contains(&merge.id);
        if !is_meant || !matches!(merge.status, Status::Queued | Status::Merging) {
            continue;
        }
        let refusal = match combine(base.git(), &tip, &merge.commit, "foreseen")? {
            Combined::Commit(commit) => {
                tip = commit;
                None
            }
            other => refusal_of(other, &base.branch),
        };
        foreseen.push((merge, refusal));
    }
    Ok(foreseen)
}

/// Queues again what could not be merged: as its branch is now, if it went on.
pub fn retry(town: &Town, id: &WorkId) -> Result<Merge> {
    let work = Work::of(town);
    let merge = work.merge(id)?;
    let base = Base::of(town, &merge.rig)?;
    let now = base.commit(&format!("refs/heads/{}", merge.branch));
    let commit = now
        .filter(|now| base.contains(now, &merge.commit))
        .unwrap_or(merge.commit);
    work.retry_merge(id, &commit)
}

/// Takes an entry out of the queue for good.
pub fn reject(town: &Town, id: &WorkId, rejection: &Rejection<'_>) -> Result<Merge> {
    let work = Work::of(town);
    let merge = work.merge(id)?;
    let path = lock_path(town, &merge.rig);
    let Some(_lock) = FileLock::try_take(&path)? else {
        let holder = lock::holder(&path).map_or_else(String::new, |pid| format!(" ({pid})"));
        return Err(Problem::conflict(format!(
            "the queue of {} is being worked off by another gt{holder}",
            merge.rig
        ))
        .hint("try again when it is done"));
    };
    let rejected = work.reject_merge(id, rejection)?;
    tell_of(town, &rejected);
    Ok(rejected)
}

fn lock_path(town: &Town, rig: &str) -> std::path::PathBuf {
    town.runtime_dir()
        .join("locks")
        .join(format!("merge-{rig}.lock"))
}

/// One run of a rig at a time: the second waits, and says for whom.
fn take_turn(town: &Town, rig: &str, tell: &dyn Fn(&str)) -> Result<FileLock> {
    let path = lock_path(town, rig);
    let mut is_told = false;
    loop {
        if let Some(lock) = FileLock::try_take(&path)? {
            return Ok(lock);
        }
        if !is_told {
            let holder = lock::holder(&path).map_or_else(String::new, |pid| format!(" ({pid})"));
            tell(&format!("waiting: another gt{holder} merges in {rig}"));
            is_told = true;
        }
        town.around().cancel.check()?;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The event of an entry that has changed.
fn tell_of(town: &Town, merge: &Merge) {
    let actor = gt_core::Identity::of_rig(Role::Refinery, &merge.rig).address();
    let event = Event::new(&format!("merge_{}", merge.status.word()), actor)
        .with("merge", merge.id.to_string())
        .with("bead", merge.item.to_string())
        .with("branch", merge.branch.clone())
        .with("worker", merge.worker.clone())
        .with("commit", merge.merged_as.clone())
        .with("repair", merge.repair.as_ref().map(WorkId::to_string))
        .with("reason", merge.reason.clone());
    Events::of(town).note(vec![event]);
}

fn refusal_of(combined: Combined, branch: &str) -> Option<Refusal> {
    let (reason, files) = match combined {
        Combined::Commit(_) => return None,
        Combined::Conflict(files) => {
            let count = files.len();
            let are = if count == 1 { "file is" } else { "files are" };
            (format!("{count} {are} in conflict with {branch}"), files)
        }
        Combined::Strangers => (format!("it has no history in common with {branch}"), vec![]),
    };
    Some(Refusal {
        status: Status::Conflict,
        reason,
        files,
        log: None,
    })
}

/// A rig's queue, while its lock is held.
struct Queue<'a> {
    town: &'a Town,
    rig: &'a str,
    work: &'a Work,
    base: &'a Base<'a>,
    tell: &'a dyn Fn(&str),
}

/// What came of an attempt to bring a commit into the base.
enum Landed {
    As(String),
    Refused(Refusal, String),
    /// Others moved the base too often.
    Outrun,
}

impl Queue<'_> {
    /// Merges one entry. `None` if it does not wait any more.
    fn one(&self, merge: &Merge) -> Result<Option<Ran>> {
        self.base.fetch()?;
        if let Some(landed) = self.landed_already(merge)? {
            return self.settle(merge, &landed).map(Some);
        }
        self.catch_up()?;
        let Some(merge) = self.work.begin_merge(&merge.id)? else {
            return Ok(None);
        };
        fault::point(self.town, "mq.begun");
        self.say(&merge, &format!("merging into {}", self.base.branch));
        let title = self.work.get(&merge.item)?.title;
        let landed = self.land(&merge.commit, &merge.message(&title), Some(&merge));
        match landed {
            Ok(Landed::As(commit)) => self.settle(&merge, &commit).map(Some),
            Ok(Landed::Refused(refusal, tip)) => self.refuse(&merge, &refusal, &tip).map(Some),
            Ok(Landed::Outrun) => {
                let reason = format!("{} moved {TRIES} times meanwhile", self.base.branch);
                let merge = self.work.put_back_merge(&merge.id, &reason)?;
                self.say(&merge, &reason);
                Ok(Some(Ran {
                    merge,
                    warnings: Vec::new(),
                }))
            }
            Err(problem) => {
                // Where even that fails, the next run finds it as it is.
                let _ = self.work.put_back_merge(&merge.id, problem.message());
                Err(problem)
            }
        }
    }

    /// The commit by which an entry is in the base although nobody has noted it: whoever
    /// moved the base was killed.
    fn landed_already(&self, merge: &Merge) -> Result<Option<String>> {
        if merge.status != Status::Merging {
            return Ok(None);
        }
        let tip = self.base.tip()?;
        let planned = merge.merged_as.clone();
        let planned = planned.filter(|commit| self.base.contains(&tip, commit));
        Ok(planned.or_else(|| {
            let is_in = self.base.contains(&tip, &merge.commit);
            is_in.then_some(tip)
        }))
    }

    /// Takes over what the remote's owner has committed since.
    fn catch_up(&self) -> Result<()> {
        let Some(theirs) = self.base.behind()? else {
            return Ok(());
        };
        let branch = &self.base.branch;
        (self.tell)(&format!(
            "taking over what is new in {branch} of the remote"
        ));
        let message = format!("Merge {branch} of the remote\n");
        match self.land(&theirs, &message, None)? {
            Landed::As(_) => Ok(()),
            Landed::Outrun => Err(Problem::conflict(format!("{branch} moved too often"))),
            Landed::Refused(refusal, _) => {
                let offered = format!("gt/merged/{branch}");
                let files = refusal.files.join(", ");
                let problem = Problem::conflict(format!(
                    "{branch} of the remote and what was merged here do not go together: {}",
                    refusal.reason
                ));
                let problem = match (files.is_empty(), &refusal.log) {
                    (false, _) => problem.cause(files),
                    (true, Some((log, _))) => problem.cause(format!("see {log}")),
                    (true, None) => problem,
                };
                Err(problem.hint(format!(
                    "in the repository itself: `git merge {offered}` on {branch}, and repair it"
                )))
            }
        }
    }

    /// Brings a commit into the base: combined, validated, and then moved in one step.
    fn land(&self, commit: &str, message: &str, merge: Option<&Merge>) -> Result<Landed> {
        for _ in 0..TRIES {
            let tip = self.base.tip()?;
            if self.base.contains(&tip, commit) {
                return Ok(Landed::As(tip));
            }
            let new = match combine(self.base.git(), &tip, commit, message)? {
                Combined::Commit(new) => new,
                other => {
                    let refusal = refusal_of(other, &self.base.branch);
                    let refusal = refusal.ok_or_else(|| Problem::failed("nothing was combined"))?;
                    return Ok(Landed::Refused(refusal, tip));
                }
            };
            if let Some(merge) = merge {
                self.work.plan_merge(&merge.id, &new)?;
                fault::point(self.town, "mq.built");
            }
            let candidate = Candidate {
                rig: self.rig,
                merge,
                base: &tip,
                commit: &new,
            };
            let say = |text: &str| match merge {
                Some(merge) => self.say(merge, text),
                None => (self.tell)(text),
            };
            if let Verdict::Red { reason, log, tail } = validate(self.town, candidate, &say)? {
                let refusal = Refusal {
                    status: Status::Failed,
                    reason,
                    files: Vec::new(),
                    log: Some((log.display().to_string(), tail)),
                };
                return Ok(Landed::Refused(refusal, tip));
            }
            fault::point(self.town, "mq.validated");
            if self.base.advance(&tip, &new)? == Advance::Done {
                fault::point(self.town, "mq.advanced");
                return Ok(Landed::As(new));
            }
            say(&format!(
                "{} has moved meanwhile: once more",
                self.base.branch
            ));
            self.base.fetch()?;
        }
        Ok(Landed::Outrun)
    }

    fn settle(&self, merge: &Merge, merged_as: &str) -> Result<Ran> {
        let merge = self.work.settle_merge(&merge.id, merged_as)?;
        fault::point(self.town, "mq.recorded");
        self.say(&merge, &format!("merged as {}", short(merged_as)));
        tell_of(self.town, &merge);
        Ok(Ran {
            merge,
            warnings: Vec::new(),
        })
    }

    fn refuse(&self, merge: &Merge, refusal: &Refusal, tip: &str) -> Result<Ran> {
        let merge = self.work.refuse_merge(&merge.id, refusal, tip)?;
        fault::point(self.town, "mq.refused");
        self.say(&merge, &refusal.reason);
        tell_of(self.town, &merge);
        let warnings = repair::hand_out(self.town, self.rig, Some(&merge.id));
        fault::point(self.town, "mq.handed");
        Ok(Ran { merge, warnings })
    }

    /// What can be done at any time, and by whoever comes next.
    fn finish_up(&self, tell: &dyn Fn(&str)) {
        for warning in repair::hand_out(self.town, self.rig, None) {
            tell(&warning);
        }
        match self.base.publish() {
            Ok(Some(branch)) => tell(&format!("the remote has it as {branch}")),
            Ok(None) => {}
            Err(problem) => tell(&format!(
                "warning: {problem}: {}",
                problem.causes().join(": ")
            )),
        }
        sweep::sweep(self.town, self.rig, self.base);
        fault::point(self.town, "mq.swept");
    }

    fn say(&self, merge: &Merge, text: &str) {
        (self.tell)(&format!("{} {}: {text}", merge.id, merge.branch));
    }
}
