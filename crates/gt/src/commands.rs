//! The commands, one file each, and what several of them share.

pub(crate) mod account;
pub(crate) mod adopt;
pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod attach;
mod await_death;
pub(crate) mod board;
pub(crate) mod broadcast;
pub(crate) mod budget;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod config;
mod container_init;
pub(crate) mod costs;
pub(crate) mod crew;
mod cycle;
pub(crate) mod daemon;
pub(crate) mod dashboard;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod dnd;
pub(crate) mod doctor;
pub(crate) mod dog;
pub(crate) mod done;
pub(crate) mod down;
pub(crate) mod egress_bridge;
mod engine;
pub(crate) mod escalate;
pub(crate) mod estop;
pub(crate) mod events;
pub(crate) mod formula;
pub(crate) mod handoff;
pub(crate) mod harness;
pub(crate) mod hook;
mod hook_report;
mod ids;
pub(crate) mod init;
mod init_step;
pub(crate) mod internal;
pub(crate) mod interrupt;
pub(crate) mod keys;
pub(crate) mod logs;
pub(crate) mod mail;
pub(crate) mod menu;
pub(crate) mod mol;
pub(crate) mod mq;
mod no_command;
pub(crate) mod notify;
pub(crate) mod nudge;
mod page;
pub(crate) mod patrol;
pub(crate) mod peek;
pub(crate) mod polecat;
pub(crate) mod prime;
pub(crate) mod project;
mod record;
mod replay;
mod respawn;
pub(crate) mod restart;
pub(crate) mod restore;
pub(crate) mod rig;
pub(crate) mod role;
mod run_agent;
pub(crate) mod save;
pub(crate) mod schedule;
pub(crate) mod seance;
pub(crate) mod sessions;
pub(crate) mod signal;
pub(crate) mod single;
pub(crate) mod sling;
pub(crate) mod start;
pub(crate) mod start_flags;
pub(crate) mod status;
pub(crate) mod status_line;
mod stdin;
pub(crate) mod step;
pub(crate) mod stop;
pub(crate) mod sync;
pub(crate) mod task;
pub(crate) mod tmux_conf;
pub(crate) mod up;
pub(crate) mod wait;
pub(crate) mod watch;
pub(crate) mod web;
mod words;
pub(crate) mod work;

use crate::args::GtCommand;
use crate::context::Context;
use gt_core::{Problem, Role};
use std::process::ExitCode;

/// Result of a command: an exit code, or the problem that stopped it.
pub(crate) type CommandResult = Result<ExitCode, Problem>;

/// Runs a command; without one, shows the status or the first steps.
pub(crate) fn run_or_begin(command: Option<GtCommand>, context: &Context) -> CommandResult {
    match command {
        Some(command) => run(command, context),
        None => no_command::run(context),
    }
}

pub(crate) fn run(command: GtCommand, context: &Context) -> CommandResult {
    match command {
        GtCommand::Init(args) => init::run(args, context),
        GtCommand::Rig(command) => rig::run(command, context),
        GtCommand::Status(args) => status::run(args, context),
        GtCommand::Up(args) => up::run(args, context),
        GtCommand::Down(args) => down::run(args, context),
        GtCommand::Daemon(command) => daemon::run(command, context),
        GtCommand::Dashboard(args) => dashboard::run(&args, context),
        GtCommand::Web(command) => web::run(command, context),
        GtCommand::Doctor(args) => doctor::run(args, context),
        GtCommand::Config(command) => config::run(command, context),
        GtCommand::Agents(args) => agents::run(args, context),
        GtCommand::Start(args) => start::run(args, context),
        GtCommand::Stop(args) => stop::run(args, context),
        GtCommand::Restart(args) => restart::run(args, context),
        GtCommand::Interrupt(args) => interrupt::run(&args, context),
        GtCommand::Attach(args) => attach::run(args, context),
        GtCommand::Adopt(args) => adopt::run(args, context),
        GtCommand::Peek(args) => peek::run(args, context),
        GtCommand::Nudge(args) => nudge::run(args, context),
        GtCommand::Broadcast(args) => broadcast::run(args, context),
        GtCommand::Wait(args) => wait::run(args, context),
        GtCommand::Watch(args) => watch::run(&args, context),
        GtCommand::Notify(args) => notify::run(&args, context),
        GtCommand::Answer(args) => answer::run(args, context),
        GtCommand::Sessions(command) => sessions::run(command, context),
        GtCommand::Budget(args) => budget::run(&args, context),
        GtCommand::Costs(args) => costs::run(&args, context),
        GtCommand::Seance(args) => seance::run(&args, context),
        GtCommand::Sync(args) => sync::run(args, context),
        GtCommand::TmuxConf(args) => tmux_conf::run(args, context),
        GtCommand::Escalate(args) => escalate::run(args, context),
        GtCommand::Dnd(args) => dnd::run(&args, context),
        GtCommand::Estop(args) => estop::run(&args, context),
        GtCommand::Thaw(args) => estop::run_thaw(&args, context),
        GtCommand::Events(args) => events::run(args, context),
        GtCommand::Logs(args) => logs::run(&args, context),
        GtCommand::Step(command) => step::run(command, context),
        GtCommand::Patrol(args) => patrol::run(&args, context),
        GtCommand::Save(args) => save::run(&args, context),
        GtCommand::Restore(args) => restore::run(args, context),
        GtCommand::Work(command) => work::run(command, context),
        GtCommand::Sling(args) => sling::run(args, context),
        GtCommand::Schedule(command) => schedule::run(command, context),
        GtCommand::Board(args) => board::run(args, context),
        GtCommand::Task(command) => task::run(command, context),
        GtCommand::Dev(command) => dev::run(command, context),
        GtCommand::Hook(args) => hook::run(&args, context),
        GtCommand::Unhook(args) => hook::run_unhook(&args, context),
        GtCommand::Mail(command) => mail::run(command, context),
        GtCommand::Checkpoint(command) => checkpoint::run(command, context),
        GtCommand::Handoff(args) => handoff::run(args, context),
        GtCommand::Prime(args) => prime::run(&args, context),
        GtCommand::Mol(command) => mol::run(command, context),
        GtCommand::Formula(command) => formula::run(command, context),
        GtCommand::Done(args) => done::run(args, context),
        GtCommand::Mq(command) => mq::run(command, context),
        GtCommand::Keys(args) => keys::run(args, context),
        GtCommand::Signal(args) => signal::run(args, context),
        GtCommand::Crew(command) => crew::run(command, context),
        GtCommand::Polecat(command) => polecat::run(command, context),
        GtCommand::Project(command) => project::run(&command, context),
        GtCommand::Dog(command) => dog::run(command, context),
        GtCommand::Agent(command) => agent::run(command, context),
        GtCommand::Mayor(command) => single::run_town(Role::Mayor, command, context),
        GtCommand::Deacon(command) => single::run_town(Role::Deacon, command, context),
        GtCommand::Boot(command) => single::run_town(Role::Boot, command, context),
        GtCommand::Witness(command) => single::run_rig(Role::Witness, command, context),
        GtCommand::Refinery(command) => single::run_rig(Role::Refinery, command, context),
        GtCommand::Role(command) => role::run(command, context),
        GtCommand::Harness(command) => harness::run(command, context),
        GtCommand::Account(command) => account::run(command, context),
        GtCommand::Completions(args) => completions::run(&args),
        GtCommand::StatusLine(args) => status_line::run(args, context),
        GtCommand::Demo(args) => demo::run(args, context),
        GtCommand::Man(args) => completions::run_man(&args),
        GtCommand::Internal(command) => internal::run(command, context),
        GtCommand::DemoAgent(args) => Ok(crate::demo::run(args)),
    }
}
