//! The table of calls under `gt internal`: names only.

/// A call of `gt` that tmux, a detached process or a shell of ours makes. `gt internal` has one
/// subcommand for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Ends with a pane's process, so that tmux notices its end.
    AwaitDeath,
    /// Brings a tmux client to the next agent.
    Cycle,
    /// Delivers the waiting messages of an agent.
    Deliver,
    /// Tells people of an event.
    DeliverNotice,
    /// Ends the session of an agent that has submitted its work.
    EndSession,
    /// Runs one init command of a worktree.
    InitStep,
    /// Merges the queue of a rig in the background.
    Merge,
    /// Leaves the caller's session and starts [`Call::Merge`].
    MergeDetached,
    /// Records the output of a pane.
    Record,
    /// Records the end of an adopted program.
    RecordEnd,
    /// Prints a saved screen and then becomes another program.
    ReplayScrollback,
    /// Handles the death of an agent.
    Respawn,
    /// Saves the containers, and what else a town does every few minutes.
    Save,
    /// Writes the epilogue of a session that has handed over.
    Settle,
    /// Makes the journal agree with tmux.
    Sync,
    /// Starts the next session of an agent that has handed over.
    TakeOver,
}

impl Call {
    pub const ALL: [Call; 16] = [
        Call::AwaitDeath,
        Call::Cycle,
        Call::Deliver,
        Call::DeliverNotice,
        Call::EndSession,
        Call::InitStep,
        Call::Merge,
        Call::MergeDetached,
        Call::Record,
        Call::RecordEnd,
        Call::ReplayScrollback,
        Call::Respawn,
        Call::Save,
        Call::Settle,
        Call::Sync,
        Call::TakeOver,
    ];

    /// Returns the name of its subcommand.
    pub const fn as_str(self) -> &'static str {
        match self {
            Call::AwaitDeath => "await-death",
            Call::Cycle => "cycle",
            Call::Deliver => "deliver",
            Call::DeliverNotice => "deliver-notice",
            Call::EndSession => "end-session",
            Call::InitStep => "init-step",
            Call::Merge => "merge",
            Call::MergeDetached => "merge-detached",
            Call::Record => "record",
            Call::RecordEnd => "record-end",
            Call::ReplayScrollback => "replay-scrollback",
            Call::Respawn => "respawn",
            Call::Save => "save",
            Call::Settle => "settle",
            Call::Sync => "sync",
            Call::TakeOver => "take-over",
        }
    }

    /// Returns the words of the command.
    pub const fn words(self) -> [&'static str; 2] {
        ["internal", self.as_str()]
    }

    /// Returns the command with these arguments, which need no more quoting, as one line.
    pub(crate) fn line(self, arguments: &str) -> String {
        format!("internal {} {arguments}", self.as_str())
            .trim_end()
            .to_owned()
    }
}
