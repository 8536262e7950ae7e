mod queue;

use super::{CommandResult, stdin};
use crate::context::Context;
use crate::output;
use crate::output::progress::ProgressLine;
use clap::{Args, ValueEnum};
use gt_core::nudge::{NotNow, Priority, Proof};
use gt_core::{Caller, Identity, Problem, ProblemKind};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::messaging::nudge::{
    self, Deliverer, DeliveryMode, LaterDelivery, NudgeOutcome, NudgeRequest, SentMessage,
};
use gt_town::terminal::{adopted, containers};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

/// Send a message to an agent
///
/// The message goes into the agent's queue and is typed when the agent is idle: gt pastes it,
/// checks that it appears in the input line, presses Enter, and waits for proof that the agent
/// received it. Nothing is typed while the agent shows a question, or is busy and might show one;
/// then a background process delivers the message as soon as the agent is ready.
#[derive(Debug, Args)]
pub(crate) struct NudgeArgs {
    /// The agent: its address or a short form of it, its container's name, or a prefix of its
    /// session id
    target: String,
    /// The message, in one line or several
    #[arg(required_unless_present_any = ["stdin", "list", "cancel", "again"])]
    message: Option<String>,
    /// Read the message from standard input
    #[arg(long, conflicts_with = "message")]
    stdin: bool,
    /// The message is a command of the agent's program, such as /compact; only people may send one
    #[arg(long)]
    command: bool,
    #[command(flatten)]
    flags: NudgeFlags,
    /// Only if the calling agent's session began less than a minute ago
    #[arg(long)]
    if_fresh: bool,
    /// List the waiting messages of the agent
    #[arg(long, group = "other")]
    list: bool,
    /// Cancel a waiting message
    #[arg(long, value_name = "ID", group = "other")]
    cancel: Option<String>,
    /// Resend a message that was set aside
    #[arg(long, value_name = "ID", group = "other")]
    again: Option<String>,
}

/// How messages are sent; shared with `gt broadcast`.
#[derive(Clone, Debug, Args)]
pub(crate) struct NudgeFlags {
    /// When to deliver it: now, in the background, or when the agent is idle
    #[arg(long, value_enum, default_value_t = ModeArg::WaitIdle)]
    pub(crate) mode: ModeArg,
    /// Urgent messages are delivered first
    #[arg(long, value_enum, default_value_t = PriorityArg::Normal)]
    pub(crate) priority: PriorityArg,
    /// The sender [default: GT_ROLE]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) sender: Option<String>,
    /// Seconds to wait for an idle agent before the message is left in the queue [default:
    /// `wait_seconds` of the town]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModeArg {
    Immediate,
    Queue,
    WaitIdle,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PriorityArg {
    Normal,
    Urgent,
}

/// Maximum age of a session for `--if-fresh`.
const FRESH_SECONDS: i64 = 60;
pub(crate) fn run(args: NudgeArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let town = adopted::home_of(&town, &identity).into_owned();
    if args.list {
        return queue::list(&town, &identity, context);
    }
    if let Some(id) = &args.cancel {
        return queue::cancel(&town, &identity, id, context);
    }
    if let Some(id) = &args.again {
        return queue::requeue(&town, &identity, id, context);
    }
    if args.if_fresh && !is_fresh(&town, context)? {
        return Ok(ExitCode::SUCCESS);
    }
    // Interrupts are caught only after the message was read: before, an interrupt ends the command
    // without sending a part of it.
    let text = message(args.message)?;
    context.catch_interrupts();
    let mut request = args.flags.request(&text, &town)?;
    if args.command {
        check_command(&town, &text)?;
        request.is_command = true;
        request.sender = None;
    }
    let sent = send(&town, &identity, &request, context)?;
    if context.json {
        output::json(&document(&identity, args.flags.mode(), &sent))?;
    } else {
        output::line(line(&identity, &sent))?;
    }
    Ok(code(args.flags.mode(), &sent))
}

/// Fails unless a person sends a command. A command can end the program, or let it stop asking.
fn check_command(town: &Town, text: &str) -> Result<(), Problem> {
    if !text.starts_with('/') {
        return Err(Problem::usage("a command of a program begins with a slash")
            .hint("leave out `--command` for a message"));
    }
    match town.caller() {
        Caller::Person(_) => Ok(()),
        Caller::Agent(_) | Caller::Gt => Err(Problem::conflict(
            "only a person may send a command to an agent's program",
        )
        .hint("without `--command` the text is sent as a message")),
    }
}

/// Delivers the waiting messages of an agent, each as soon as the agent is ready.
pub(super) fn deliver_waiting(target: &str, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, target)?;
    let town = adopted::home_of(&town, &identity).into_owned();
    context.catch_interrupts();
    nudge::deliver_waiting(&town, &identity, nudge::DELIVERER_LIMIT)?;
    Ok(ExitCode::SUCCESS)
}

/// Sends the message. While it waits, reports the reason on stderr.
fn send(
    town: &Town,
    identity: &Identity,
    request: &NudgeRequest<'_>,
    context: &Context,
) -> Result<SentMessage, Problem> {
    let spinner: Mutex<Option<ProgressLine>> = Mutex::new(None);
    let sent = nudge::send_reporting_wait(town, identity, request, &|reason| {
        let words = waiting(identity, request, reason);
        match (std::io::stderr().is_terminal(), context.json) {
            (true, _) => {
                if let Ok(mut spinner) = spinner.lock() {
                    // Removes the earlier spinner from the screen first.
                    *spinner = None;
                    *spinner = Some(ProgressLine::spinner(&words));
                }
            }
            (false, false) => output::note(words),
            // With `--json`, stderr is read as JSON as well.
            (false, true) => {}
        }
    });
    drop(spinner);
    Ok(sent?)
}

/// Returns the reason why a message waits, as a sentence.
pub(crate) fn waiting(identity: &Identity, request: &NudgeRequest<'_>, reason: NotNow) -> String {
    let limit = request.timeout.as_secs_f64();
    match reason {
        NotNow::Locked => format!("Waiting: another message is being typed to {identity}."),
        _ => format!(
            "Waiting up to {limit} s for {identity}: {}.",
            reason.describe()
        ),
    }
}

impl NudgeFlags {
    pub(crate) fn mode(&self) -> DeliveryMode {
        match self.mode {
            ModeArg::Immediate => DeliveryMode::Immediate,
            ModeArg::Queue => DeliveryMode::Queue,
            ModeArg::WaitIdle => DeliveryMode::WaitIdle,
        }
    }

    pub(crate) fn request<'a>(
        &'a self,
        text: &'a str,
        town: &'a Town,
    ) -> Result<NudgeRequest<'a>, Problem> {
        if let Some(sender) = &self.sender {
            town.check_own_name("--sender", sender)?;
        }
        let timeout = match self.timeout {
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|_| Problem::usage(format!("{seconds} is not a valid wait time")))?,
            None => Duration::from_secs(town.settings().nudge.wait_seconds),
        };
        Ok(NudgeRequest {
            is_command: false,
            text,
            sender: self
                .sender
                .as_deref()
                .or_else(|| town.around().var("GT_ROLE")),
            mode: self.mode(),
            priority: match self.priority {
                PriorityArg::Normal => Priority::Normal,
                PriorityArg::Urgent => Priority::Urgent,
            },
            timeout,
        })
    }
}

/// Returns the given message, or reads it from standard input.
pub(crate) fn message(given: Option<String>) -> Result<String, Problem> {
    if let Some(message) = given {
        return Ok(message);
    }
    stdin::message()
}

/// Returns whether the session of the agent that runs this command has just begun. After a
/// compaction or a clear, an older session has nothing new to report.
fn is_fresh(town: &Town, context: &Context) -> Result<bool, Problem> {
    let Some(own) = context.around().var("GT_SESSION") else {
        return Ok(true);
    };
    let began =
        containers::find(town, own)?.and_then(|container| container.session_id()?.began_at());
    let now = town.clock().seconds();
    Ok(began.is_none_or(|began| now - began <= FRESH_SECONDS))
}

pub(crate) fn document(identity: &Identity, mode: DeliveryMode, sent: &SentMessage) -> Value {
    let (delivered, receipt, reason) = match &sent.outcome {
        NudgeOutcome::Delivered(receipt) => ("agent", Some(receipt), None),
        NudgeOutcome::Queued(reason) => ("queue", None, reason.map(NotNow::describe)),
    };
    let proof = receipt.and_then(|receipt| receipt.proof);
    let mut document = json!({
        "agent": identity,
        "mode": mode.as_str(),
        "delivered": delivered,
        "verified": proof.is_some(),
        "proof": proof,
        "attempts": receipt.map_or(0, |receipt| receipt.attempts),
        "ms": u64::try_from(sent.elapsed.as_millis()).unwrap_or(u64::MAX),
        "id": sent.id,
    });
    if let Some(reason) = reason {
        document["reason"] = json!(reason);
    }
    if let Some(later) = sent.later {
        document["deliverer"] = json!(later.by.as_str());
        if let Some(until) = later.until.and_then(output::time) {
            document["tries_until"] = json!(until);
        }
        if let Some(until) = later.held_until.and_then(output::time) {
            document["held_until"] = json!(until);
        }
    }
    document
}

/// Returns the sentence that names the process that delivers a waiting message, and the time of its
/// expiry.
fn later(identity: &Identity, later: LaterDelivery) -> String {
    if later.by == Deliverer::DoNotDisturb {
        let end = later.held_until.and_then(output::time);
        return match end {
            Some(end) => format!(
                "It is held until {}, when do not disturb ends; `--priority urgent` passes.",
                output::minute(Some(&end))
            ),
            None => {
                format!("It is held until `gt dnd off {identity}`; `--priority urgent` passes.")
            }
        };
    }
    let who = match later.by {
        Deliverer::Background => "A background process delivers it as soon as the agent is ready",
        Deliverer::Resume => "It is delivered when the agent's pause ends",
        Deliverer::DoNotDisturb => "It is delivered when do not disturb ends",
        Deliverer::Thaw => "It is delivered when `gt thaw` ends the emergency stop",
        Deliverer::Start => "It is delivered when the agent is started again",
        Deliverer::NextCommand => {
            "It is delivered at the end of a turn, or by the next `gt nudge` or `gt sync`"
        }
    };
    let until = later.until.and_then(output::time);
    let until = until.map_or_else(String::new, |until| {
        format!(", until {}", output::minute(Some(&until)))
    });
    format!("{who}{until}.")
}

pub(crate) fn line(identity: &Identity, sent: &SentMessage) -> String {
    let ms = sent.elapsed.as_millis();
    match &sent.outcome {
        NudgeOutcome::Delivered(receipt) => {
            let proof = match receipt.proof {
                Some(Proof::Hook) => "its hook confirms it",
                Some(Proof::Transcript) => "its transcript has it",
                Some(Proof::Screen | Proof::Line) => "seen on its screen",
                None => "not seen to be taken",
            };
            format!("Delivered to {identity} ({proof}, {ms} ms).")
        }
        NudgeOutcome::Queued(reason) => {
            let because =
                reason.map_or_else(String::new, |reason| format!(": {}", reason.describe()));
            let more = sent
                .later
                .map_or_else(String::new, |it| format!(" {}", later(identity, it)));
            format!("Waits in the queue of {identity}{because}.{more}")
        }
    }
}

/// Returns a distinct exit code for a queued message if immediate delivery was requested.
pub(crate) fn code(mode: DeliveryMode, sent: &SentMessage) -> ExitCode {
    match (&sent.outcome, mode) {
        (NudgeOutcome::Queued(_), DeliveryMode::Immediate) => {
            ExitCode::from(ProblemKind::Queued.exit_code())
        }
        _ => ExitCode::SUCCESS,
    }
}
