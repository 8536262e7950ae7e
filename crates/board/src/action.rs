//! The actions of keys: a cursor movement, an overlay, or an operation on a card, which is a `gt`
//! command ([`CardOperation`]).

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
    Card(CardOperation),
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
    Server(ServerOperation),
    Escalation(EscalationOperation),
    Merge(MergeOperation),
    SortBy(Sort),
}

/// An operation on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardOperation {
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
pub enum ServerOperation {
    Start,
    Stop,
    Restart,
    Open,
}

/// An operation on an entry of the merge queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOperation {
    Approve,
    Retry,
    Reject,
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscalationOperation {
    Acknowledge,
    Close,
}

impl CardOperation {
    /// Returns whether the operation takes one card only: it needs the terminal or the whole view.
    pub(crate) fn is_for_one(self) -> bool {
        matches!(
            self,
            CardOperation::Attach
                | CardOperation::Diff
                | CardOperation::Edit
                | CardOperation::Escalate
        )
    }

    /// Returns whether the operation starts a task.
    pub(crate) fn is_start(self) -> bool {
        matches!(
            self,
            CardOperation::Start | CardOperation::StartWork | CardOperation::StartYolo
        )
    }

    /// Returns whether a start should first offer to resume the card's last conversation.
    pub(crate) fn offers_resume(self, card: &Card) -> bool {
        self.is_start() && card.resumable && card.holder.is_none()
    }

    /// Returns the operation for this card: a start attaches instead if the task already runs.
    pub(crate) fn for_card(self, card: &Card) -> CardOperation {
        let starts = self.is_start();
        let runs = card.session.as_ref().is_some_and(|session| {
            session.harness.is_some() && !session.state.is_dead() && session.state != State::Paused
        });
        let is_own = card.holder.is_none();
        match starts && runs && is_own && card.status != ItemStatus::Closed {
            true => CardOperation::Attach,
            false => self,
        }
    }

    /// Returns whether the operation needs a confirmation, even for one card.
    pub(crate) fn asks_first(self) -> bool {
        matches!(self, CardOperation::Stop | CardOperation::AbortMerge)
    }

    /// Returns the beginning of the confirmation question.
    pub(crate) fn question(self) -> &'static str {
        match self {
            CardOperation::Start => "Start",
            CardOperation::StartWork => "Start work on",
            CardOperation::StartYolo => "Start work, without questions, on",
            CardOperation::Attach => "Attach to",
            CardOperation::Update => "Update",
            CardOperation::Pause => "Pause",
            CardOperation::Resume | CardOperation::ResumeKeepWip => "Resume",
            CardOperation::Stop => "Stop",
            CardOperation::Cleanup => "Clean up",
            CardOperation::Servers => "Servers of",
            CardOperation::Merge => "Merge",
            CardOperation::AbortMerge => "Abort the merge of",
            CardOperation::Diff => "Diff of",
            CardOperation::PullRequest => "Open a pull request for",
            CardOperation::Answer => "Answer",
            CardOperation::Nudge => "Tell",
            CardOperation::Interrupt => "Interrupt",
            CardOperation::Handoff => "Hand over",
            CardOperation::Sling => "Assign",
            CardOperation::Edit => "Edit",
            CardOperation::Escalate => "Escalate",
            CardOperation::Close => "Close",
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
            CardOperation::Attach
                | CardOperation::Stop
                | CardOperation::Answer
                | CardOperation::Nudge
                | CardOperation::Interrupt
                | CardOperation::Handoff
        )
    }

    /// Returns a reason against the operation that may be outdated: an agent may have committed in
    /// the meantime. For one card it is only displayed, and the command decides.
    pub(crate) fn warning(self, card: &Card) -> Option<&'static str> {
        let has_commits = card.branch.as_ref().is_some_and(|branch| branch.ahead > 0);
        match self {
            CardOperation::Merge | CardOperation::PullRequest if !has_commits => {
                Some("nothing is committed")
            }
            _ => None,
        }
    }

    /// Returns the reason if another agent than the item's own task holds the item: crew and
    /// polecats have their own worktrees and workflows.
    fn why_not_held(self, card: &Card) -> Option<String> {
        let holder = card.holder.as_deref()?;
        match self {
            CardOperation::Start
            | CardOperation::StartWork
            | CardOperation::StartYolo
            | CardOperation::Sling => Some(format!("on the hook of {holder}")),
            CardOperation::Update
            | CardOperation::Pause
            | CardOperation::Resume
            | CardOperation::ResumeKeepWip
            | CardOperation::Cleanup
            | CardOperation::AbortMerge => Some(format!("its agent is {holder}")),
            CardOperation::Attach
            | CardOperation::Stop
            | CardOperation::Servers
            | CardOperation::Merge
            | CardOperation::Diff
            | CardOperation::PullRequest
            | CardOperation::Answer
            | CardOperation::Nudge
            | CardOperation::Interrupt
            | CardOperation::Handoff
            | CardOperation::Edit
            | CardOperation::Escalate
            | CardOperation::Close => None,
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
            CardOperation::Start | CardOperation::StartWork | CardOperation::StartYolo => &[
                (is_closed, "it is closed"),
                (state == Some(State::Paused), "it is paused: R resumes"),
                (is_alive && card.holder.is_none(), "it runs: a attaches"),
            ],
            CardOperation::Attach => &[(!has_container, "it has no session")],
            CardOperation::Update => &[(branch.is_none(), "it has no worktree")],
            CardOperation::Pause => &[
                (!is_alive, "its agent does not run"),
                (state == Some(State::Paused), "it is paused"),
            ],
            CardOperation::Resume | CardOperation::ResumeKeepWip => &[
                (state.is_none() && !was_begun, "it was not started"),
                (is_alive && state != Some(State::Paused), "it is not paused"),
            ],
            CardOperation::Stop => &[(!has_container, "it has no session")],
            CardOperation::Cleanup => {
                &[(!has_container && branch.is_none(), "nothing to clean up")]
            }
            CardOperation::Servers => &[(is_closed, "it is closed")],
            CardOperation::Merge => &[
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
            CardOperation::AbortMerge => &[(
                !branch.is_some_and(|branch| branch.merging),
                "no merge is under way",
            )],
            CardOperation::Diff => &[(branch.is_none(), "it has no worktree")],
            CardOperation::PullRequest => &[(branch.is_none(), "it has no worktree")],
            CardOperation::Answer => &[(card.asking_program().is_none(), "it asks nothing")],
            CardOperation::Nudge | CardOperation::Interrupt | CardOperation::Handoff => {
                &[(!is_alive, "its agent does not run")]
            }
            CardOperation::Sling => &[
                (is_closed, "it is closed"),
                (is_alive && card.holder.is_none(), "its own agent runs"),
                (is_handed_in, "it is in the merge queue"),
            ],
            CardOperation::Edit | CardOperation::Escalate => &[],
            CardOperation::Close => &[(is_closed, "it is closed")],
        };
        checks.iter().find(|(holds, _)| *holds).map(|(_, why)| *why)
    }
}

impl ServerOperation {
    pub(crate) fn question(self) -> &'static str {
        match self {
            ServerOperation::Start => "Start the servers of",
            ServerOperation::Stop => "Stop the servers of",
            ServerOperation::Restart => "Restart the servers of",
            ServerOperation::Open => "Open the servers of",
        }
    }
}
