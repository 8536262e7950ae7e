//! The commands, one file each, and what several of them share.

pub(crate) mod account;
pub(crate) mod adopt;
pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod attach;
mod await_death;
mod begin;
pub(crate) mod board;
pub(crate) mod broadcast;
pub(crate) mod budget;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod costs;
pub(crate) mod crew;
mod cycle;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod dnd;
pub(crate) mod doctor;
pub(crate) mod dog;
pub(crate) mod done;
pub(crate) mod down;
pub(crate) mod escalate;
pub(crate) mod estop;
pub(crate) mod events;
pub(crate) mod feed;
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
pub(crate) mod krc;
pub(crate) mod logs;
pub(crate) mod mail;
pub(crate) mod menu;
pub(crate) mod mol;
pub(crate) mod mq;
pub(crate) mod notify;
pub(crate) mod nudge;
pub(crate) mod patrol;
pub(crate) mod peek;
pub(crate) mod polecat;
pub(crate) mod prime;
mod record;
mod replay;
mod respawn;
pub(crate) mod restart;
pub(crate) mod restore;
pub(crate) mod rig;
pub(crate) mod role;
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
mod words;
pub(crate) mod work;

use crate::args::Command;
use crate::context::Context;
use gt_core::{Problem, Role};
use std::process::ExitCode;

/// Result of a command: an exit code, or the problem that stopped it.
pub(crate) type CommandResult = Result<ExitCode, Problem>;

/// Runs a command, or what stands for `gt` alone.
pub(crate) fn run_or_begin(command: Option<Command>, context: &Context) -> CommandResult {
    match command {
        Some(command) => run(command, context),
        None => begin::run(context),
    }
}

pub(crate) fn run(command: Command, context: &Context) -> CommandResult {
    match command {
        Command::Init(args) => init::run(args, context),
        Command::Rig(command) => rig::run(command, context),
        Command::Status(args) => status::run(args, context),
        Command::Up(args) => up::run(args, context),
        Command::Down(args) => down::run(args, context),
        Command::Daemon(command) => daemon::run(command, context),
        Command::Doctor(args) => doctor::run(args, context),
        Command::Agents(args) => agents::run(args, context),
        Command::Start(args) => start::run(args, context),
        Command::Stop(args) => stop::run(args, context),
        Command::Restart(args) => restart::run(args, context),
        Command::Interrupt(args) => interrupt::run(&args, context),
        Command::Attach(args) => attach::run(args, context),
        Command::Adopt(args) => adopt::run(args, context),
        Command::Peek(args) => peek::run(args, context),
        Command::Nudge(args) => nudge::run(args, context),
        Command::Broadcast(args) => broadcast::run(args, context),
        Command::Wait(args) => wait::run(args, context),
        Command::Watch(args) => watch::run(&args, context),
        Command::Notify(args) => notify::run(&args, context),
        Command::Answer(args) => answer::run(args, context),
        Command::Sessions(command) => sessions::run(command, context),
        Command::Budget(args) => budget::run(&args, context),
        Command::Costs(args) => costs::run(&args, context),
        Command::Seance(args) => seance::run(&args, context),
        Command::Sync(args) => sync::run(args, context),
        Command::TmuxConf(args) => tmux_conf::run(args, context),
        Command::Escalate(args) => escalate::run(args, context),
        Command::Dnd(args) => dnd::run(&args, context),
        Command::Estop(args) => estop::run(&args, context),
        Command::Thaw(args) => estop::run_thaw(&args, context),
        Command::Events(args) => events::run(args, context),
        Command::Feed(args) => feed::run(&args, context),
        Command::Logs(args) => logs::run(&args, context),
        Command::Krc(command) => krc::run(command, context),
        Command::Step(command) => step::run(command, context),
        Command::Patrol(args) => patrol::run(&args, context),
        Command::Save(args) => save::run(&args, context),
        Command::Restore(args) => restore::run(args, context),
        Command::Work(command) => work::run(command, context),
        Command::Sling(args) => sling::run(args, context),
        Command::Schedule(command) => schedule::run(command, context),
        Command::Board(args) => board::run(args, context),
        Command::Task(command) => task::run(command, context),
        Command::Dev(command) => dev::run(command, context),
        Command::Hook(args) => hook::run(&args, context),
        Command::Unhook(args) => hook::run_unhook(&args, context),
        Command::Mail(command) => mail::run(command, context),
        Command::Checkpoint(command) => checkpoint::run(command, context),
        Command::Handoff(args) => handoff::run(args, context),
        Command::Prime(args) => prime::run(&args, context),
        Command::Mol(command) => mol::run(command, context),
        Command::Formula(command) => formula::run(command, context),
        Command::Done(args) => done::run(args, context),
        Command::Mq(command) => mq::run(command, context),
        Command::Keys(args) => keys::run(args, context),
        Command::Signal(args) => signal::run(args, context),
        Command::Crew(command) => crew::run(command, context),
        Command::Polecat(command) => polecat::run(command, context),
        Command::Dog(command) => dog::run(command, context),
        Command::Agent(command) => agent::run(command, context),
        Command::Mayor(command) => single::run_town(Role::Mayor, command, context),
        Command::Deacon(command) => single::run_town(Role::Deacon, command, context),
        Command::Boot(command) => single::run_town(Role::Boot, command, context),
        Command::Witness(command) => single::run_rig(Role::Witness, command, context),
        Command::Refinery(command) => single::run_rig(Role::Refinery, command, context),
        Command::Role(command) => role::run(command, context),
        Command::Harness(command) => harness::run(command, context),
        Command::Account(command) => account::run(command, context),
        Command::Completions(args) => completions::run(&args),
        Command::StatusLine(args) => status_line::run(args, context),
        Command::Demo(args) => demo::run(args, context),
        Command::Man(args) => completions::run_man(&args),
        Command::Internal(command) => internal::run(command, context),
        Command::DemoAgent(args) => Ok(crate::demo::run(args)),
    }
}
