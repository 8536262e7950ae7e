//! `gt internal`: the calls that tmux, detached processes and shells of ours make.
//!
//! The names are those of [`Call`](gt_town::base::callback::Call). `args/old_forms.rs` maps the
//! names of earlier versions to these.

use super::{
    CommandResult, await_death, budget, container_init, cycle, done, egress_bridge, engine,
    handoff, init_step, mq, notify, nudge, record, replay, respawn, run_agent, save, schedule,
    sync,
};
use crate::context::Context;
use clap::{Args, Subcommand};
use gt_town::lifecycle::stop::LeavingProcesses;
use gt_town::supervision::limits;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum InternalCommand {
    AwaitDeath(await_death::AwaitDeathArgs),
    /// Compare the spending with the budgets; after a turn
    CheckBudgets,
    ContainerInit(container_init::ContainerInitArgs),
    Cycle(cycle::CycleArgs),
    /// Deliver the waiting messages of an agent as soon as it is ready; for tmux
    Deliver(AgentArgs),
    /// Send the notification that the environment describes
    DeliverNotice,
    EgressBridge(egress_bridge::EgressBridgeArgs),
    /// Deliver the messages that were held during a do-not-disturb; for tmux
    EndDnd,
    /// End the session of an agent that has submitted its work; for tmux
    EndSession(AgentArgs),
    Engine(engine::EngineArgs),
    InitStep(init_step::InitStepArgs),
    /// Merge the queue of a rig in the background
    Merge(RigArgs),
    /// Start the process that merges in the background
    MergeDetached(RigArgs),
    Record(record::RecordArgs),
    /// Wait for the end of an adopted program, and record it
    RecordEnd(RecordEndArgs),
    ReplayScrollback(replay::ReplayArgs),
    Respawn(respawn::RespawnArgs),
    /// Resume the agents whose usage limit has ended; for tmux
    ResumeLimited,
    RunAgent(run_agent::RunAgentArgs),
    /// Save all containers; for tmux, which ignores the output
    Save(SaveArgs),
    /// Start assignments of the schedule
    Schedule,
    /// Write the epilogue of a session that has handed over
    Settle(SettleArgs),
    /// Reconcile the journal with tmux; for a hook of tmux
    Sync,
    /// Let the next session of an agent take over; for tmux
    TakeOver(AgentArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[arg(value_name = "TARGET")]
    agent: String,
}

#[derive(Debug, Args)]
pub(crate) struct RigArgs {
    rig: String,
}

#[derive(Debug, Args)]
pub(crate) struct RecordEndArgs {
    pid: u32,
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// Only if the newest save is old
    #[arg(long)]
    timer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SettleArgs {
    #[arg(value_name = "SESSION")]
    session: String,
    /// First end the processes that the session left running
    #[arg(long, value_name = "PROCESSES")]
    leaving: Option<LeavingProcesses>,
}

pub(crate) fn run(command: InternalCommand, context: &Context) -> CommandResult {
    match command {
        InternalCommand::AwaitDeath(args) => await_death::run(&args),
        InternalCommand::CheckBudgets => budget::check(context),
        InternalCommand::ContainerInit(args) => container_init::run(&args),
        InternalCommand::Cycle(args) => cycle::run(args, context),
        InternalCommand::Deliver(args) => nudge::deliver_waiting(&args.agent, context),
        InternalCommand::DeliverNotice => notify::deliver(context),
        InternalCommand::EgressBridge(args) => egress_bridge::run(&args),
        InternalCommand::EndDnd => end_dnd(context),
        InternalCommand::Engine(args) => engine::run(&args),
        InternalCommand::EndSession(args) => done::end_session(&args.agent, context),
        InternalCommand::InitStep(args) => init_step::run(&args, context),
        InternalCommand::Merge(args) => mq::merge_in_background(&args.rig, context),
        InternalCommand::MergeDetached(args) => mq::merge_detached(&args.rig, context),
        InternalCommand::Record(args) => record::run(args, context),
        InternalCommand::RecordEnd(args) => sync::record_end(args.pid, context),
        InternalCommand::ReplayScrollback(args) => replay::run(&args),
        InternalCommand::Respawn(args) => respawn::run(args, context),
        InternalCommand::ResumeLimited => resume_limited(context),
        InternalCommand::RunAgent(args) => run_agent::run(args, context),
        InternalCommand::Save(args) => save::run_unattended(args.timer, context),
        InternalCommand::Schedule => schedule::run_unattended(context),
        InternalCommand::Settle(args) => sync::settle(args.session, args.leaving, context),
        InternalCommand::Sync => sync::run_for_hook(context),
        InternalCommand::TakeOver(args) => handoff::take_over(&args.agent, context),
    }
}

fn resume_limited(context: &Context) -> CommandResult {
    let town = context.town()?;
    limits::resume_due(&town, town.clock().seconds())?;
    Ok(ExitCode::SUCCESS)
}

fn end_dnd(context: &Context) -> CommandResult {
    gt_town::messaging::dnd::end_due(&context.town()?)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::CommandFactory;
    use gt_town::base::callback::Call;

    #[test]
    fn internal_has_one_subcommand_for_each_call() {
        let mut table = Cli::command();
        table.build();
        let internal = table.find_subcommand("internal").unwrap();
        assert!(internal.is_hide_set());
        let names: Vec<&str> = internal
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        assert_eq!(names, Call::ALL.map(Call::as_str));
    }
}
