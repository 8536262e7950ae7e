//! Processes the entries of the queue, one after the other.

use super::base::{Advance, Base};
use super::combine::Combined;
use super::validate::{MergeCandidate, ValidationResult, validate};
use super::{MergeMessage, Tell, announce, repair, sweep};
use crate::base::estop;
use crate::base::fault;
use crate::records::items::Work;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::merge::{Merge, MergeRefusal, MergeStatus, list_some, short};
use gt_core::work::WorkId;
use std::cell::Cell;

/// Maximum number of attempts while the base keeps moving.
const TRIES: usize = 5;

/// The queue of a rig, while its lock is held.
pub(super) struct LockedQueue<'a> {
    pub(super) town: &'a Town,
    pub(super) rig: &'a str,
    pub(super) work: &'a Work,
    pub(super) base: &'a Base<'a>,
    pub(super) tell: Tell<'a>,
    /// Whether this run has published merged work to the remote.
    pub(super) has_published: Cell<bool>,
}

/// Result of an attempt to bring a commit into the base.
enum LandingOutcome {
    As(String),
    Refused(MergeRefusal, String),
    /// It changes these protected files, and no person has approved that.
    Held(Vec<String>),
    /// The remote is reachable and refuses the push.
    NotTaken(Problem),
    /// The base moved too often.
    Outrun,
}

/// Result of one entry.
pub(super) enum EntryOutcome {
    /// The entry no longer waits.
    OfNothing,
    Of(Merge),
    /// The remote refused it: it keeps waiting, and the run continues with other entries.
    NotTaken(Merge, Problem),
}

impl LockedQueue<'_> {
    /// Brings work into the base that was merged here and that it lacks, even if no entry waits.
    pub(super) fn begin(&self) -> Result<()> {
        if self.base.lacks_earlier_merges()? {
            self.base.fetch_for_queue()?;
            self.catch_up()?;
        }
        Ok(())
    }

    /// Merges one entry.
    pub(super) fn merge_one(&self, merge: &Merge) -> Result<EntryOutcome> {
        self.base.fetch_for_queue()?;
        if let Some(landed) = self.landed_already(merge)? {
            return self.settle(merge, &landed).map(EntryOutcome::Of);
        }
        self.catch_up()?;
        let Some(merge) = self.work.begin_merge(&merge.id)? else {
            return Ok(EntryOutcome::OfNothing);
        };
        fault::point(self.town, "mq.begun");
        self.say(&merge, &format!("merging into {}", self.base.branch));
        let title = self.work.get(&merge.item)?.title;
        let landed = self.land(&merge.commit, &merge.message(&title), Some(&merge));
        match landed {
            Ok(LandingOutcome::As(commit)) => self.settle(&merge, &commit).map(EntryOutcome::Of),
            Ok(LandingOutcome::Refused(refusal, tip)) => {
                self.refuse(&merge, &refusal, &tip).map(EntryOutcome::Of)
            }
            Ok(LandingOutcome::Held(files)) => self.hold(&merge, &files).map(EntryOutcome::Of),
            Ok(LandingOutcome::NotTaken(problem)) => {
                let merge = self.work.put_back_merge(&merge.id, problem.message())?;
                self.say(&merge, problem.message());
                Ok(EntryOutcome::NotTaken(merge, problem))
            }
            Ok(LandingOutcome::Outrun) => {
                let reason = format!("{} moved {TRIES} times meanwhile", self.base.branch);
                let merge = self.work.put_back_merge(&merge.id, &reason)?;
                self.say(&merge, &reason);
                Ok(EntryOutcome::Of(merge))
            }
            Err(problem) => {
                // If this fails too, the next run finds the entry unchanged.
                let _ = self.work.put_back_merge(&merge.id, problem.message());
                Err(problem)
            }
        }
    }

    /// Returns the commit by which an entry is in the base although that is not recorded: the
    /// process that moved the base was killed.
    fn landed_already(&self, merge: &Merge) -> Result<Option<String>> {
        if merge.status != MergeStatus::Merging {
            return Ok(None);
        }
        self.base.landing(merge)
    }

    /// Brings into the base the commits that the remote's owner has made since, or the work that
    /// was merged here before the remote's branch became the base. Must succeed before anything
    /// else is merged.
    pub(super) fn catch_up(&self) -> Result<()> {
        let Some(other) = self.base.missing_tip()? else {
            self.base.forget_own();
            return Ok(());
        };
        let branch = &self.base.branch;
        let place = self.base.describe_missing_tip();
        self.progress(&format!("merging {branch} {place}"));
        let message = format!("Merge {branch} {place}\n");
        match self.land(&other, &message, None)? {
            LandingOutcome::As(_) => {
                self.base.forget_own();
                Ok(())
            }
            LandingOutcome::Outrun => Err(Problem::conflict(format!("{branch} moved too often"))),
            LandingOutcome::NotTaken(problem) => Err(problem),
            // Only entries of the queue are held.
            LandingOutcome::Held(files) => Err(Problem::failed(list_some(&files))),
            LandingOutcome::Refused(refusal, _) => {
                let offered = format!("gt/merged/{branch}");
                let files = list_some(&refusal.files);
                let problem = Problem::conflict(format!(
                    "{branch} of the remote and what was merged here are in conflict: {}",
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

    /// Brings a commit into the base: combines it, validates it, and then moves the base
    /// atomically.
    fn land(&self, commit: &str, message: &str, merge: Option<&Merge>) -> Result<LandingOutcome> {
        for _ in 0..TRIES {
            let tip = self.base.tip()?;
            if self.base.contains(&tip, commit)? {
                return Ok(LandingOutcome::As(tip));
            }
            let new = match self.base.combine(&tip, commit, message)? {
                Combined::Commit(new) => new,
                other => {
                    let refusal = other.refusal(&self.base.branch);
                    let refusal = refusal.ok_or_else(|| Problem::failed("nothing was combined"))?;
                    return Ok(LandingOutcome::Refused(refusal, tip));
                }
            };
            if let Some(merge) = merge {
                let held = self.unapproved(merge, &tip, &new)?;
                if !held.is_empty() {
                    return Ok(LandingOutcome::Held(held));
                }
                self.work.plan_merge(&merge.id, &new)?;
                fault::point(self.town, "mq.built");
            }
            let candidate = MergeCandidate {
                rig: self.rig,
                merge,
                base: &tip,
                commit: &new,
            };
            let say = |text: &str| match merge {
                Some(merge) => self.say(merge, text),
                None => self.progress(text),
            };
            if let ValidationResult::Red { reason, log, tail } =
                validate(self.town, candidate, &say)?
            {
                // The agent that repairs it starts with these files.
                let files = match merge {
                    Some(_) => self.base.changes(&tip, &new)?,
                    None => Vec::new(),
                };
                let refusal = MergeRefusal {
                    status: MergeStatus::Failed,
                    reason,
                    files,
                    log: Some((log.display().to_string(), tail)),
                };
                return Ok(LandingOutcome::Refused(refusal, tip));
            }
            fault::point(self.town, "mq.validated");
            // The last check before the base moves.
            estop::check(self.town, Some(self.rig))?;
            match self.base.advance(&tip, &new)? {
                Advance::Done => {
                    fault::point(self.town, "mq.advanced");
                    return Ok(LandingOutcome::As(new));
                }
                Advance::NotTaken(problem) => return Ok(LandingOutcome::NotTaken(problem)),
                Advance::Moved => {}
            }
            say(&format!(
                "{} has moved in the meantime: trying again",
                self.base.branch
            ));
            self.base.fetch_for_queue()?;
        }
        Ok(LandingOutcome::Outrun)
    }

    /// Returns the protected files that an entry changes without the approval of a person. An
    /// approval is for one commit of the branch.
    pub(super) fn unapproved(&self, merge: &Merge, tip: &str, new: &str) -> Result<Vec<String>> {
        match merge.approved.as_deref() == Some(merge.commit.as_str()) {
            true => Ok(Vec::new()),
            false => self.base.protected_changes(tip, new),
        }
    }

    /// Sets an entry aside until a person approves its changes of protected files.
    fn hold(&self, merge: &Merge, files: &[String]) -> Result<Merge> {
        let merge = self.work.hold_merge(&merge.id, files)?;
        let reason = merge.reason.clone().unwrap_or_default();
        self.say(&merge, &format!("held: {reason}"));
        self.announce();
        Ok(merge)
    }

    pub(super) fn settle(&self, merge: &Merge, merged_as: &str) -> Result<Merge> {
        // Published first, so that the work is where the messages about the result say. `finish_up`
        // retries after a failure, and reports it.
        let _ = self.publish();
        let merge = self.work.settle_merge(&merge.id, merged_as)?;
        fault::point(self.town, "mq.recorded");
        self.say(&merge, &format!("merged as {}", short(merged_as)));
        self.announce();
        for item in [Some(&merge.item), merge.repair.as_ref()]
            .into_iter()
            .flatten()
        {
            let text = match self.work.holder(item) {
                Ok(None) => continue,
                Ok(Some(holder)) => {
                    format!("{item} stays on the hook of {holder}, and is not closed")
                }
                // The merge is recorded; an unknown holder does not block anything.
                Err(problem) => {
                    format!("the agent that has {item} on its hook is unknown: {problem}")
                }
            };
            (self.tell)(MergeMessage::Warning(&text));
        }
        Ok(merge)
    }

    fn refuse(&self, merge: &Merge, refusal: &MergeRefusal, tip: &str) -> Result<Merge> {
        let merge = self.work.refuse_merge(&merge.id, refusal, tip)?;
        fault::point(self.town, "mq.refused");
        self.say(&merge, &refusal.reason);
        // Agents cost money, so repairs are not repeated endlessly.
        match self.work.give_up_repairs(&merge.id)? {
            Some(stuck) => {
                let event = self.town.event("escalation_raised");
                super::escalate(self.town, &stuck, event)?;
            }
            None => self.hand_out(Some(&merge.id)),
        }
        fault::point(self.town, "mq.handed");
        // After the repair was assigned, so that the message names its agent.
        self.announce();
        Ok(merge)
    }

    fn hand_out(&self, only: Option<&WorkId>) {
        repair::assign_repairs(self.town, self.rig, only, self.tell);
    }

    fn announce(&self) {
        announce::announce(self.town, self.rig, Some(self.base), self.tell);
    }

    /// Runs the idempotent steps at the end of a run; the next run completes them if they fail.
    pub(super) fn finish_up(&self) {
        self.hand_out(None);
        self.announce();
        if let Err(problem) = self.publish() {
            let text = format!("{problem}: {}", problem.causes().join(": "));
            (self.tell)(MergeMessage::Warning(&text));
        }
        if self.has_published.get() {
            self.progress(&self.base.delivery());
        }
        sweep::sweep(self.town, self.rig, self.base);
        fault::point(self.town, "mq.swept");
    }

    fn publish(&self) -> Result<()> {
        if self.base.publish()?.is_some() {
            self.has_published.set(true);
        }
        Ok(())
    }

    fn say(&self, merge: &Merge, text: &str) {
        self.progress(&format!("{} {}: {text}", merge.id, merge.branch));
    }

    pub(super) fn progress(&self, text: &str) {
        (self.tell)(MergeMessage::Progress(text));
    }
}
