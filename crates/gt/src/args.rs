//! The command line: global options and the table of commands.

mod aliases;
pub(crate) mod capabilities;
pub(crate) mod complete;
pub(crate) mod groups;
mod help;
mod old_forms;
mod suggestions;

use crate::commands;
use crate::demo::DemoArgs;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::PathBuf;

/// Run AI coding agents as named tmux sessions, and manage their whole lifecycle.
#[derive(Debug, Parser)]
#[command(
    name = "gt",
    version = concat!(env!("CARGO_PKG_VERSION"), env!("GT_BUILD")),
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "`gt help GROUP` lists a group with its subcommands: start, agents, messages, work, merging, \
                  history, roles, setup, hooks. `gt help COMMAND` explains a command."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Absent if `gt` is called alone.
    #[command(subcommand)]
    pub(crate) command: Option<GtCommand>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// The town to work on [default: GT_ROOT, then this folder and its parents, then ~/gt]
    #[arg(long, global = true, display_order = 1000, value_name = "PATH")]
    pub(crate) town: Option<PathBuf>,
    /// Answer with one JSON document on stdout, and errors as JSON on stderr
    #[arg(long, global = true, display_order = 1001)]
    pub(crate) json: bool,
    /// Print the steps of the command on stderr; GT_LOG selects them [env: GT_LOG]
    #[arg(long, short, global = true, display_order = 1002)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum GtCommand {
    // Town and rigs.
    Init(commands::init::InitArgs),
    #[command(subcommand)]
    Rig(commands::rig::RigCommand),
    #[command(subcommand)]
    Project(commands::project::ProjectCommands),
    Status(commands::status::StatusArgs),
    Board(commands::board::BoardArgs),
    Up(commands::up::UpArgs),
    Down(commands::down::DownArgs),
    #[command(subcommand)]
    Daemon(commands::daemon::DaemonCommand),
    Dashboard(commands::dashboard::DashboardArgs),
    #[command(subcommand)]
    Web(commands::web::WebCommand),
    Estop(commands::estop::EstopArgs),
    Thaw(commands::estop::ThawArgs),
    Doctor(commands::doctor::DoctorArgs),
    #[command(subcommand)]
    Config(commands::config::ConfigCommand),

    // Agents of every role.
    Agents(commands::agents::AgentsArgs),
    Start(commands::start::StartArgs),
    Stop(commands::stop::StopArgs),
    Restart(commands::restart::RestartArgs),
    Interrupt(commands::interrupt::InterruptArgs),
    Attach(commands::attach::AttachArgs),
    Adopt(commands::adopt::AdoptArgs),
    Peek(commands::peek::PeekArgs),
    Dnd(commands::dnd::DndArgs),
    Nudge(commands::nudge::NudgeArgs),
    Broadcast(commands::broadcast::BroadcastArgs),
    Wait(commands::wait::WaitArgs),
    Watch(commands::watch::WatchArgs),
    Notify(commands::notify::NotifyArgs),
    Answer(commands::answer::AnswerArgs),
    Keys(commands::keys::KeysArgs),

    // Agents by role.
    #[command(subcommand)]
    Crew(commands::crew::CrewCommand),
    #[command(subcommand)]
    Polecat(commands::polecat::PolecatCommand),
    #[command(subcommand)]
    Dog(commands::dog::DogCommand),
    #[command(subcommand)]
    Agent(commands::agent::AgentCommand),
    /// The mayor, which coordinates the whole town
    #[command(subcommand)]
    Mayor(commands::single::TownCommand),
    /// The deacon, which decides about problems of the town
    #[command(subcommand)]
    Deacon(commands::single::TownCommand),
    /// Boot, which decides about a deacon that hangs
    #[command(subcommand)]
    Boot(commands::single::TownCommand),
    /// A rig's witness, which decides about polecats that need help
    #[command(subcommand)]
    Witness(commands::single::SingleRigCommand),
    /// A rig's refinery, which decides about merges that need judgement
    #[command(subcommand)]
    Refinery(commands::single::SingleRigCommand),

    // Work.
    #[command(subcommand)]
    Work(commands::work::WorkCommand),
    Sling(commands::sling::SlingArgs),
    #[command(subcommand)]
    Schedule(commands::schedule::ScheduleCommand),
    #[command(subcommand)]
    Task(commands::task::TaskCommand),
    #[command(subcommand)]
    Dev(commands::dev::DevCommand),
    Hook(commands::hook::HookArgs),
    Unhook(commands::hook::UnhookArgs),
    #[command(subcommand)]
    Mail(commands::mail::MailCommand),
    Escalate(commands::escalate::EscalateArgs),
    #[command(subcommand)]
    Checkpoint(commands::checkpoint::CheckpointCommand),
    #[command(subcommand)]
    Mol(commands::mol::MolCommand),
    #[command(subcommand)]
    Formula(commands::formula::FormulaCommand),
    Done(commands::done::DoneArgs),
    #[command(subcommand)]
    Mq(commands::mq::MqCommand),

    Prime(commands::prime::PrimeArgs),
    Handoff(commands::handoff::HandoffArgs),

    // History and saved state.
    #[command(subcommand)]
    Sessions(commands::sessions::SessionsCommand),
    Budget(commands::budget::BudgetArgs),
    Costs(commands::costs::CostsArgs),
    Seance(commands::seance::SeanceArgs),
    Sync(commands::sync::SyncArgs),
    Events(commands::events::EventsArgs),
    Logs(commands::logs::LogsArgs),
    #[command(subcommand)]
    Step(commands::step::StepCommand),
    Patrol(commands::patrol::PatrolArgs),
    Save(commands::save::SaveArgs),
    Restore(commands::restore::RestoreArgs),

    // Tables behind the commands.
    #[command(subcommand)]
    Role(commands::role::RoleCommand),
    #[command(subcommand)]
    Harness(commands::harness::HarnessCommand),
    #[command(subcommand)]
    Account(commands::account::AccountCommand),

    // For shells, status lines and hooks.
    Completions(commands::completions::CompletionsArgs),
    Signal(commands::signal::SignalArgs),
    StatusLine(commands::status_line::StatusLineArgs),
    TmuxConf(commands::tmux_conf::TmuxConfArgs),
    Demo(commands::demo::DemoTownArgs),
    #[command(hide = true)]
    Man(commands::completions::ManArgs),
    /// Calls that tmux and processes of gt make
    #[command(subcommand, hide = true)]
    Internal(commands::internal::InternalCommand),
    /// The built-in demo agent
    #[command(hide = true)]
    DemoAgent(DemoArgs),
}

/// Returns the complete table, including the subcommands and their help.
pub(crate) fn table() -> clap::Command {
    let mut table = Cli::command();
    table.build();
    help::complete(table)
}

/// Returns the text of `gt help GROUP` if the arguments of this process ask for it.
pub(crate) fn group_help() -> Option<String> {
    let words: Vec<OsString> = std::env::args_os().collect();
    // Other calls must not pay for the complete table.
    let is_help = words.get(1).is_some_and(|word| word == "help");
    is_help.then(|| help::of_group(&table(), &words)).flatten()
}

/// Parses the arguments of this process. Builds only the subcommand in use: hooks and status lines
/// call `gt` constantly, and the complete table costs more than their own work. Help builds the
/// complete table.
pub(crate) fn matches() -> Result<ArgMatches, clap::Error> {
    let words = without_help(std::env::args_os().collect());
    let words = aliases::rewrite(old_forms::rewrite(words));
    let parsed = parser(&words).try_get_matches_from(&words);
    let parsed = parsed.or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            table().try_get_matches_from(&words)
        }
        _ => Err(error),
    });
    parsed.map_err(|error| suggestions::shown(error, &words))
}

/// Returns the parser of these words. If they name a command, it has no other one, because clap
/// copies the global options into each.
fn parser(words: &[OsString]) -> clap::Command {
    let named = words.get(old_forms::first_of_command(words));
    let named = named.and_then(|name| {
        let all = GtCommand::augment_subcommands(clap::Command::new("gt"));
        // To free the other commands takes half as long as to make them.
        ManuallyDrop::new(all).find_subcommand(name).cloned()
    });
    match named {
        Some(command) => {
            let parser = clap::Command::new("gt").disable_help_subcommand(true);
            Global::augment_args(parser).subcommand(command)
        }
        None => Cli::command(),
    }
}

/// Rewrites `gt help mail send` to `gt mail send --help`. clap's own help command would copy the
/// whole table on every call.
fn without_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// Returns the names of the given command without its arguments, which may be secret: `nudge`, `events
/// prune`.
pub(crate) fn words(matches: &ArgMatches) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = matches.subcommand();
    while let Some((name, matches)) = rest {
        words.push(name);
        rest = matches.subcommand();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    #[test]
    fn parser_of_one_command_accepts_and_refuses_as_the_complete_one() {
        let check = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let shown = |command: clap::Command| {
                let matches = command.try_get_matches_from(&words);
                match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
                    Ok(parsed) => format!("{parsed:?}"),
                    Err(error) => error.to_string(),
                }
            };
            assert_eq!(shown(parser(&words)), shown(Cli::command()), "{line}");
        };
        for line in [
            "gt hook",
            "gt --json hook --agent max",
            "gt --town /t signal stop --strict",
            "gt mail send mayor -s a -m b --town /t",
            "gt mail help",
            "gt hook --version",
            "gt hook a b",
            "gt hook --agnt max",
            "gt mail snd",
            "gt mail send",
            "gt --verbose hook",
            "gt --version",
            "gt hok",
        ] {
            check(line);
        }
    }
}
