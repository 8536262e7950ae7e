//! The built-in `demo` agent: a small stand-in for an AI coding agent.
//!
//! It has the features that a program which runs agents must handle: a prompt, a busy line, a
//! permission dialog, errors, hooks, sessions that can be resumed, and large pastes. Its command
//! line, hooks and screen are modelled on Claude Code. It has no model: directives in a message
//! (`demo/directive.rs`) or a script (`demo/script.rs`) determine its answer. Tests, demos and
//! benchmarks run hundreds of them, so it has one thread that sleeps until an event arrives.
//!
//! Code map: `agent` has the event loop and the state, `turn` processes a message, `keys`
//! interprets keys. `input`, `editor`, `dialog`, `directive`, `script` and `live` are pure.
//! `conversation` writes the `transcript` and fires `hooks`, which run through `command`. `screen`
//! and `terminal` do the terminal I/O, `signals` has the only wait, and `plain` is the agent in a
//! pipe.
//!
//! It uses nothing of the rest of `gt`, so that it behaves like a third-party program.

mod agent;
mod command;
mod conversation;
mod dialog;
mod directive;
mod editor;
mod hooks;
mod input;
mod keys;
mod live;
mod plain;
mod screen;
mod script;
mod signals;
mod tally;
mod terminal;
mod transcript;
mod turn;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::raw_mode::RawMode;
use agent::{Agent, SessionStart};
use conversation::DemoConversation;
use hooks::DemoHooks;
use plain::PlainAgent;
use screen::DemoScreen;
use script::Script;
use signals::Signals;
use transcript::{OpenedTranscript, RequestedConversation};

/// Run the built-in demo agent, which stands in for a real one in tests and demos
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The first message, submitted at the start
    prompt: Option<String>,

    /// Use this id for the session; it must be a new UUID
    #[arg(long, value_name = "UUID")]
    session_id: Option<String>,

    /// Resume the conversation with this id
    #[arg(long, value_name = "ID", conflicts_with = "newest")]
    resume: Option<String>,

    /// Continue the newest conversation of this folder
    #[arg(long = "continue")]
    newest: bool,

    /// Fork the conversation: use a new id, with --resume or --continue
    #[arg(long)]
    fork_session: bool,

    /// Answer in plain text until the input ends, as in a pipe
    #[arg(long, short)]
    print: bool,

    /// Read hooks from this file, in Claude Code's format
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// The model that the transcript names
    #[arg(long, value_name = "NAME", default_value = "demo")]
    model: String,

    /// Run commands without asking
    #[arg(long)]
    dangerously_skip_permissions: bool,

    /// Append each message received to this file, as a line of JSON
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Do what the lines of this file say
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Run this command for each message, which is its input; the directives that it prints are
    /// the answer
    #[arg(long, value_name = "COMMAND")]
    answer: Option<String>,

    /// Wait this long before the screen shows anything
    #[arg(long, value_name = "MS", default_value_t = 0)]
    startup_delay: u64,

    /// Ask whether the folder is trusted before the prompt
    #[arg(long)]
    trust_dialog: bool,

    /// Ignore SIGTERM and SIGHUP
    #[arg(long)]
    ignore_term: bool,

    /// Start a child that sleeps, in its own session or not; may be repeated
    #[arg(long, value_name = "KIND")]
    spawn_child: Vec<ChildKind>,

    /// Exit with status 0 after this long
    #[arg(long, value_name = "MS")]
    exit_after: Option<u64>,

    /// Print an error and exit at once with this status
    #[arg(long, value_name = "CODE")]
    fail_at_start: Option<u8>,
}

/// How a child started with `--spawn-child` relates to the agent.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ChildKind {
    /// In a session of its own, out of reach of the terminal's signals
    Setsid,
    /// In the agent's own process group
    Plain,
}

impl ChildKind {
    fn spawn(self) -> io::Result<Child> {
        let argv: &[&str] = match self {
            Self::Setsid => &["setsid", "sleep", "1000"],
            Self::Plain => &["sleep", "1000"],
        };
        Command::new(argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }
}

/// Runs the agent and returns its exit status.
pub(crate) fn run(args: DemoArgs) -> ExitCode {
    if let Some(status) = args.fail_at_start {
        complain("the demo agent was asked to fail at its start");
        return ExitCode::from(status);
    }
    match start(args) {
        Ok(status) => ExitCode::from(status),
        Err(problem) => {
            complain(&problem);
            ExitCode::FAILURE
        }
    }
}

fn start(args: DemoArgs) -> Result<u8, String> {
    let started = Instant::now();
    let text = |error: io::Error| error.to_string();
    let signals = Rc::new(Signals::install(args.ignore_term).map_err(text)?);
    let hooks = args
        .settings
        .as_deref()
        .map_or(Ok(DemoHooks::default()), DemoHooks::load)?;
    let script = args
        .script
        .as_deref()
        .map_or(Ok(Script::default()), script::load)?;
    let children: Vec<Child> = args
        .spawn_child
        .iter()
        .map(|kind| kind.spawn())
        .collect::<io::Result<_>>()
        .map_err(|error| format!("--spawn-child: {error}"))?;
    if !signals.sleep_until(started + Duration::from_millis(args.startup_delay)) {
        return Ok(signals.ending().unwrap_or(0));
    }

    let cwd = std::env::current_dir()
        .map_err(text)?
        .to_string_lossy()
        .into_owned();
    let wanted = RequestedConversation {
        session_id: args.session_id,
        resume: args.resume,
        newest: args.newest,
        fork: args.fork_session,
    };
    let OpenedTranscript {
        mut transcript,
        source,
        entries,
    } = transcript::open(&transcript::folder()?, &cwd, wanted)?;
    transcript.model = args.model;
    let identity = match std::env::var("GT_ROLE") {
        Ok(role) if !role.is_empty() => format!("{role} · {cwd}"),
        _ => cwd.clone(),
    };
    let bypass = args.dangerously_skip_permissions;
    let mut conversation =
        DemoConversation::new(transcript, hooks, Rc::clone(&signals), cwd, bypass);
    if let Some(log) = &args.log {
        conversation.log_to(log)?;
    }

    let exit_at = args
        .exit_after
        .map(|after| started + Duration::from_millis(after));
    if args.print || !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let plain = PlainAgent::new(conversation, signals, io::stdout(), exit_at);
        return Ok(plain.run(source, args.prompt, script));
    }
    let _raw = RawMode::enter().map_err(text)?;
    let screen = DemoScreen::open().map_err(text)?;
    let begin = SessionStart {
        identity,
        source,
        entries,
        prompt: args.prompt,
        trust_dialog: args.trust_dialog,
        ignore_term: args.ignore_term,
        children,
        exit_at,
        answer: args.answer,
    };
    Ok(Agent::new(conversation, screen, script, signals, begin).run())
}

fn complain(problem: &str) {
    // If stderr is closed, the exit status still reports the failure.
    let _ = writeln!(io::stderr(), "error: {problem}");
}
