//! Processes the entries of the queue, one after the other.

use super::base::{Advance, Base};
use super::combine::Combined;
use super::validate::{Candidate, Verdict, validate};
use super::{Note, Tell, announce, repair, sweep};
use crate::base::estop;
use crate::base::fault;
use crate::records::items::Work;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::merge::{Merge, MergeStatus, Refusal, short, some_of};
use gt_core::work::WorkId;
use std::cell::Cell;

/// Maximum number of attempts while the base keeps moving.
const TRIES: usize = 5;

/// The queue of a rig, while its lock is held.
pub(super) struct Queue<'a> {
    pub(super) town: &'a Town,
    pub(super) rig: &'a str,
    pub(super) work: &'a Work,
    pub(super) base: &'a Base<'a>,
    pub(super) tell: Tell<'a>,
    /// Whether this run has published merged work to the remote.
    pub(super) has_published: Cell<bool>,
}

/// Result of an attempt to bring a commit into the base.
enum Landed {
    As(String),
    Refused(Refusal, String),
    /// The remote is reachable and refuses the push.
    NotTaken(Problem),
    /// The base moved too often.
    Outrun,
}

/// Result of one entry.
pub(super) enum Came {
    /// The entry no longer waits.
    OfNothing,
    Of(Merge),
    /// The remote refused it: it keeps waiting, and the run goes on with other entries.
    NotTaken(Merge, Problem),
}

impl Queue<'_> {
    /// Brings work into the base that was merged here and that it lacks, even if no entry waits.
    pub(super) fn begin(&self) -> Result<()> {
        if self.base.behind_itself()? {
            self.base.fetch_patiently()?;
            self.catch_up()?;
        }
        Ok(())
    }

    /// Merges one entry.
    pub(super) fn one(&self, merge: &Merge) -> Result<Came> {
        self.base.fetch_patiently()?;
        if let Some(landed) = self.landed_already(merge)? {
            return self.settle(merge, &landed).map(Came::Of);
        }
        self.catch_up()?;
        let Some(merge) = self.work.begin_merge(&merge.id)? else {
            return Ok(Came::OfNothing);
        };
        fault::point(self.town, "mq.begun");
        self.say(&merge, &format!("merging into {}", self.base.branch));
        let title = self.work.get(&merge.item)?.title;
        let landed = self.land(&merge.commit, &merge.message(&title), Some(&merge));
        match landed {
            Ok(Landed::As(commit)) => self.settle(&merge, &commit).map(Came::Of),
            Ok(Landed::Refused(refusal, tip)) => self.refuse(&merge, &refusal, &tip).map(Came::Of),
            Ok(Landed::NotTaken(problem)) => {
                let merge = self.work.put_back_merge(&merge.id, problem.message())?;
                self.say(&merge, problem.message());
                Ok(Came::NotTaken(merge, problem))
            }
            Ok(Landed::Outrun) => {
                let reason = format!("{} moved {TRIES} times meanwhile", self.base.branch);
                let merge = self.work.put_back_merge(&merge.id, &reason)?;
                self.say(&merge, &reason);
                Ok(Came::Of(merge))
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
        let Some(other) = self.base.behind()? else {
            self.base.forget_own();
            return Ok(());
        };
        let branch = &self.base.branch;
        let place = self.base.other_place();
        self.progress(&format!("taking over what is new in {branch} {place}"));
        let message = format!("Merge {branch} {place}\n");
        match self.land(&other, &message, None)? {
            Landed::As(_) => {
                self.base.forget_own();
                Ok(())
            }
            Landed::Outrun => Err(Problem::conflict(format!("{branch} moved too often"))),
            Landed::NotTaken(problem) => Err(problem),
            Landed::Refused(refusal, _) => {
                let offered = format!("gt/merged/{branch}");
                let files = some_of(&refusal.files);
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
    fn land(&self, commit: &str, message: &str, merge: Option<&Merge>) -> Result<Landed> {
        for _ in 0..TRIES {
            let tip = self.base.tip()?;
            if self.base.contains(&tip, commit)? {
                return Ok(Landed::As(tip));
            }
            let new = match self.base.combine(&tip, commit, message)? {
                Combined::Commit(new) => new,
                other => {
                    let refusal = other.refusal(&self.base.branch);
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
                None => self.progress(text),
            };
            if let Verdict::Red { reason, log, tail } = validate(self.town, candidate, &say)? {
                // The agent that repairs it starts with these files.
                let files = match merge {
                    Some(_) => self.base.changes(&tip, &new)?,
                    None => Vec::new(),
                };
                let refusal = Refusal {
                    status: MergeStatus::Failed,
                    reason,
                    files,
                    log: Some((log.display().to_string(), tail)),
                };
                return Ok(Landed::Refused(refusal, tip));
            }
            fault::point(self.town, "mq.validated");
            // The last check before the base moves.
            estop::check(self.town, Some(self.rig))?;
            match self.base.advance(&tip, &new)? {
                Advance::Done => {
                    fault::point(self.town, "mq.advanced");
                    return Ok(Landed::As(new));
                }
                Advance::NotTaken(problem) => return Ok(Landed::NotTaken(problem)),
                Advance::Moved => {}
            }
            say(&format!(
                "{} has moved in the meantime: trying again",
                self.base.branch
            ));
            self.base.fetch_patiently()?;
        }
        Ok(Landed::Outrun)
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
            (self.tell)(Note::Warning(&text));
        }
        Ok(merge)
    }

    fn refuse(&self, merge: &Merge, refusal: &Refusal, tip: &str) -> Result<Merge> {
        let merge = self.work.refuse_merge(&merge.id, refusal, tip)?;
        fault::point(self.town, "mq.refused");
        self.say(&merge, &refusal.reason);
        // Agents cost money: repairs that do not help end.
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
        repair::hand_out(self.town, self.rig, only, self.tell);
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
            (self.tell)(Note::Warning(&text));
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
        (self.tell)(Note::Progress(text));
    }
}
