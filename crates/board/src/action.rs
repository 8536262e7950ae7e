//! The actions of keys: a cursor movement, an overlay, or a [`Deed`], which is a `gt` command.

use crate::Tab;
use crate::sort::Sort;
use gt_core::card::Card;
use gt_core::state::State;
use gt_core::work::ItemStatus;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardAction {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Top,
    Bottom,
    FirstColumn,
    LastColumn,
    NextNeedy,
    NextMatch,
    PreviousMatch,
    /// Creates an item.
    Create,
    /// Creates an item; while a search is active, moves to the next card that was found.
    CreateOrNextMatch,
    Open,
    Actions,
    Go,
    Search,
    Filter,
    Sort,
    Projects,
    Palette,
    Mark,
    MarkColumn,
    Preview,
    Theme,
    Log,
    Escalations,
    MergeQueue,
    Restore,
    EmergencyStop,
    Help,
    Redraw,
    Quit,
    /// Closes the open view; if none is open, clears marks, search and filter.
    Back,
    Tab(Tab),
    NextTab,
    PreviousTab,
    NextCard,
    PreviousCard,
    NextFile,
    PreviousFile,
    NextHunk,
    PreviousHunk,
    /// Writes a comment on the line under the cursor of the diff.
    Comment,
    SendComments,
    Do(Deed),
    Yes,
    YesAndClose,
    Force,
    MergeAndAttach,
    SkipAndAttach,
    ResumeConversation,
    StartAnew,
    Accept,
    Toggle,
    Clear,
    Erase,
    Delete,
    EraseWord,
    EraseAll,
    NewLine,
    NextField,
    PreviousField,
    Server(ServerDeed),
    Escalation(EscalationDeed),
    Merge(MergeDeed),
    SortBy(Sort),
}

/// An operation on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Start,
    StartWork,
    StartYolo,
    Attach,
    Update,
    Pause,
    Resume,
    ResumeKeepWip,
    Stop,
    Cleanup,
    Servers,
    Merge,
    AbortMerge,
    Diff,
    PullRequest,
    Answer,
    Nudge,
    Interrupt,
    Handoff,
    Sling,
    Edit,
    Escalate,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerDeed {
    Start,
    Stop,
    Restart,
    Open,
}

/// An operation on an entry of the merge queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeDeed {
    Approve,
    Retry,
    Reject,
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscalationDeed {
    Acknowledge,
    Close,
}

impl Deed {
    /// Returns whether the operation takes one card only: it needs the terminal or the whole view.
    pub(crate) fn is_for_one(self) -> bool {
        matches!(
            self,
            Deed::Attach | Deed::Diff | Deed::Edit | Deed::Escalate
        )
    }

    /// Returns whether the operation starts a task.
    pub(crate) fn is_start(self) -> bool {
        matches!(self, Deed::Start | Deed::StartWork | Deed::StartYolo)
    }

    /// Returns whether a start should first offer to resume the card's last conversation.
    pub(crate) fn offers_resume(self, card: &Card) -> bool {
        self.is_start() && card.resumable && card.holder.is_none()
    }

    /// Returns the operation for this card: a start attaches instead if the task already runs.
    pub(crate) fn deed_for(self, card: &Card) -> Deed {
        let starts = self.is_start();
        let runs = card.session.as_ref().is_some_and(|session| {
            session.harness.is_some() && !session.state.is_dead() && session.state != State::Paused
        });
        let is_own = card.holder.is_none();
        match starts && runs && is_own && card.status != ItemStatus::Closed {
            true => Deed::Attach,
            false => self,
        }
    }

    /// Returns whether the operation needs a confirmation, even for one card.
    pub(crate) fn asks_first(self) -> bool {
        matches!(self, Deed::Stop | Deed::AbortMerge)
    }

    /// Returns the beginning of the confirmation question.
    pub(crate) fn question(self) -> &'static str {
        match self {
            Deed::Start => "Start",
            Deed::StartWork => "Start work on",
            Deed::StartYolo => "Start work, without questions, on",
            Deed::Attach => "Attach to",
            Deed::Update => "Update",
            Deed::Pause => "Pause",
            Deed::Resume | Deed::ResumeKeepWip => "Resume",
            Deed::Stop => "Stop",
            Deed::Cleanup => "Clean up",
            Deed::Servers => "Servers of",
            Deed::Merge => "Merge",
            Deed::AbortMerge => "Abort the merge of",
            Deed::Diff => "Diff of",
            Deed::PullRequest => "Open a pull request for",
            Deed::Answer => "Answer",
            Deed::Nudge => "Tell",
            Deed::Interrupt => "Interrupt",
            Deed::Handoff => "Hand over",
            Deed::Sling => "Assign",
            Deed::Edit => "Edit",
            Deed::Escalate => "Escalate",
            Deed::Close => "Close",
        }
    }

    /// Returns the reason why the operation is impossible for this card now, alone or as one of
    /// many.
    ///
    /// The command makes the final decision. This checks only obvious facts of the card, so that
    /// stale data does not block an operation that is possible by now.
    pub(crate) fn reason_against(self, card: &Card, alone: bool) -> Option<Cow<'static, str>> {
        let itemless = self.needs_item() && card.is_agent;
        if itemless {
            return Some("it is an agent without an item".into());
        }
        let plainly = self.why_not_plainly(card).map(Cow::from);
        let held = || self.why_not_held(card).map(Cow::from);
        // For several cards, a command that will probably fail is not started.
        let doubtful = || self.warning(card).filter(|_| !alone).map(Cow::from);
        plainly.or_else(held).or_else(doubtful)
    }

    /// Returns whether the operation is about the item and not only about its agent.
    pub(crate) fn needs_item(self) -> bool {
        !matches!(
            self,
            Deed::Attach
                | Deed::Stop
                | Deed::Answer
                | Deed::Nudge
                | Deed::Interrupt
                | Deed::Handoff
        )
    }

    /// Returns a reason against the operation that may be outdated: an agent may have committed in
    /// the meantime. For one card it is only displayed, and the command decides.
    pub(crate) fn warning(self, card: &Card) -> Option<&'static str> {
        let has_commits = card.branch.as_ref().is_some_and(|branch| branch.ahead > 0);
        match self {
            Deed::Merge | Deed::PullRequest if !has_commits => Some("nothing is committed"),
            _ => None,
        }
    }

    /// Returns the reason if another agent than the item's own task holds the item: crew and
    /// polecats have their own worktrees and workflows.
    fn why_not_held(self, card: &Card) -> Option<String> {
        let holder = card.holder.as_deref()?;
        match self {
            Deed::Start | Deed::StartWork | Deed::StartYolo | Deed::Sling => {
                Some(format!("on the hook of {holder}"))
            }
            Deed::Update
            | Deed::Pause
            | Deed::Resume
            | Deed::ResumeKeepWip
            | Deed::Cleanup
            | Deed::AbortMerge => Some(format!("its agent is {holder}")),
            Deed::Attach
            | Deed::Stop
            | Deed::Servers
            | Deed::Merge
            | Deed::Diff
            | Deed::PullRequest
            | Deed::Answer
            | Deed::Nudge
            | Deed::Interrupt
            | Deed::Handoff
            | Deed::Edit
            | Deed::Escalate
            | Deed::Close => None,
        }
    }

    fn why_not_plainly(self, card: &Card) -> Option<&'static str> {
        let state = card.session.as_ref().map(|session| session.state);
        let has_container = state.is_some_and(|state| state != State::Stopped);
        // A container may hold only a shell, for servers or after a failed init command.
        let has_agent = (card.session.as_ref()).is_some_and(|session| session.harness.is_some());
        let is_alive = has_agent && state.is_some_and(|state| !state.is_dead());
        let is_closed = card.status == ItemStatus::Closed;
        let branch = card.branch.as_ref();
        // Its conversation can be continued in another container.
        let was_begun = branch.is_some() && card.is_worked_on();
        let is_handed_in = card.merge.is_some_and(|merge| !merge.is_settled());
        let checks: &[(bool, &'static str)] = match self {
            Deed::Start | Deed::StartWork | Deed::StartYolo => &[
                (is_closed, "it is closed"),
                (state == Some(State::Paused), "it is paused: R resumes"),
                (is_alive && card.holder.is_none(), "it runs: a attaches"),
            ],
            Deed::Attach => &[(!has_container, "it has no session")],
            Deed::Update => &[(branch.is_none(), "it has no worktree")],
            Deed::Pause => &[
                (!is_alive, "its agent does not run"),
                (state == Some(State::Paused), "it is paused"),
            ],
            Deed::Resume | Deed::ResumeKeepWip => &[
                (state.is_none() && !was_begun, "it was not started"),
                (is_alive && state != Some(State::Paused), "it is not paused"),
            ],
            Deed::Stop => &[(!has_container, "it has no session")],
            Deed::Cleanup => &[(!has_container && branch.is_none(), "nothing to clean up")],
            Deed::Servers => &[(is_closed, "it is closed")],
            Deed::Merge => &[
                (branch.is_none(), "it has no worktree"),
                (
                    is_handed_in
                        && !card
                            .merge
                            .is_some_and(gt_core::merge::MergeStatus::is_broken),
                    "it is in the merge queue",
                ),
            ],
            // A branch in the merge queue is not a merge in the worktree.
            Deed::AbortMerge => &[(
                !branch.is_some_and(|branch| branch.merging),
                "no merge is under way",
            )],
            Deed::Diff => &[(branch.is_none(), "it has no worktree")],
            Deed::PullRequest => &[(branch.is_none(), "it has no worktree")],
            Deed::Answer => &[(card.asking_program().is_none(), "it asks nothing")],
            Deed::Nudge | Deed::Interrupt | Deed::Handoff => {
                &[(!is_alive, "its agent does not run")]
            }
            Deed::Sling => &[
                (is_closed, "it is closed"),
                (is_alive && card.holder.is_none(), "its own agent runs"),
                (is_handed_in, "it is in the merge queue"),
            ],
            Deed::Edit | Deed::Escalate => &[],
            Deed::Close => &[(is_closed, "it is closed")],
        };
        checks.iter().find(|(holds, _)| *holds).map(|(_, why)| *why)
    }
}

impl ServerDeed {
    pub(crate) fn question(self) -> &'static str {
        match self {
            ServerDeed::Start => "Start the servers of",
            ServerDeed::Stop => "Stop the servers of",
            ServerDeed::Restart => "Restart the servers of",
            ServerDeed::Open => "Open the servers of",
        }
    }
}
