//! The table of subcommands of `gt internal`: their names, not their code.

/// A call of `gt` by tmux, a detached process or a shell that `gt` started. `gt internal` has one
/// subcommand for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Waits for the end of a pane's process and then exits, which makes tmux notice that end.
    AwaitDeath,
    /// Compares the spending with the budgets.
    CheckBudgets,
    /// The first process of an agent's container: runs the program that the broker hands over.
    ContainerInit,
    /// Switches a tmux client to the next or previous agent.
    Cycle,
    /// Delivers the waiting messages of an agent.
    Deliver,
    /// Notifies people of an event.
    DeliverNotice,
    /// Becomes a program inside a strict sandbox, and forwards its connections.
    EgressBridge,
    /// Delivers what was held until the end of a do-not-disturb.
    EndDnd,
    /// Ends the session of an agent that has submitted its work.
    EndSession,
    /// Becomes the engine of a container, and adopts the processes that the engine detaches.
    Engine,
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
    /// Prints a saved screen, then replaces itself with another program (`exec`).
    ReplayScrollback,
    /// Handles the death of an agent.
    Respawn,
    /// Resumes the agents whose usage limit has ended.
    ResumeLimited,
    /// Becomes the program of an agent, with the secret variables of its role.
    RunAgent,
    /// Saves the containers and does the other periodic work of a town.
    Save,
    /// Starts the assignments that wait in the schedule.
    Schedule,
    /// Writes the epilogue of a session that a handoff has ended.
    Settle,
    /// Reconciles the journal with tmux.
    Sync,
    /// Starts the next session of an agent after a handoff.
    TakeOver,
}

impl Call {
    pub const ALL: [Call; 24] = [
        Call::AwaitDeath,
        Call::CheckBudgets,
        Call::ContainerInit,
        Call::Cycle,
        Call::Deliver,
        Call::DeliverNotice,
        Call::EgressBridge,
        Call::EndDnd,
        Call::EndSession,
        Call::Engine,
        Call::InitStep,
        Call::Merge,
        Call::MergeDetached,
        Call::Record,
        Call::RecordEnd,
        Call::ReplayScrollback,
        Call::Respawn,
        Call::ResumeLimited,
        Call::RunAgent,
        Call::Save,
        Call::Schedule,
        Call::Settle,
        Call::Sync,
        Call::TakeOver,
    ];

    /// Returns the name of its subcommand.
    pub const fn as_str(self) -> &'static str {
        match self {
            Call::AwaitDeath => "await-death",
            Call::CheckBudgets => "check-budgets",
            Call::ContainerInit => "container-init",
            Call::Cycle => "cycle",
            Call::Deliver => "deliver",
            Call::DeliverNotice => "deliver-notice",
            Call::EgressBridge => "egress-bridge",
            Call::EndDnd => "end-dnd",
            Call::EndSession => "end-session",
            Call::Engine => "engine",
            Call::InitStep => "init-step",
            Call::Merge => "merge",
            Call::MergeDetached => "merge-detached",
            Call::Record => "record",
            Call::RecordEnd => "record-end",
            Call::ReplayScrollback => "replay-scrollback",
            Call::Respawn => "respawn",
            Call::ResumeLimited => "resume-limited",
            Call::RunAgent => "run-agent",
            Call::Save => "save",
            Call::Schedule => "schedule",
            Call::Settle => "settle",
            Call::Sync => "sync",
            Call::TakeOver => "take-over",
        }
    }

    /// Returns the arguments of `gt` that name the subcommand.
    pub const fn words(self) -> [&'static str; 2] {
        ["internal", self.as_str()]
    }

    /// Returns the subcommand with these arguments as one line. The arguments are already quoted.
    pub(crate) fn line(self, arguments: &str) -> String {
        format!("internal {} {arguments}", self.as_str())
            .trim_end()
            .to_owned()
    }
}
