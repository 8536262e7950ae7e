use super::Answer;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::{Town, containers, harnesses, inject, target};
use serde_json::json;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

/// Give an agent a message
///
/// It is pasted when the agent is idle, seen on its screen, and then submitted. Where
/// the agent is busy or asks something, nothing is typed.
#[derive(Debug, Args)]
pub(crate) struct NudgeArgs {
    target: String,
    #[arg(required_unless_present = "stdin")]
    message: Option<String>,
    /// Read the message from standard input
    #[arg(long, conflicts_with = "message")]
    stdin: bool,
    /// Who sends it [default: GT_ROLE]
    #[arg(long, value_name = "ADDRESS")]
    sender: Option<String>,
    /// How long to wait until the agent is idle
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    timeout: f64,
}

pub(crate) fn run(args: NudgeArgs, context: &Context) -> Answer {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let message = match args.message {
        Some(message) => message,
        None => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Problem::usage("cannot read the message").caused_by(error))?;
            text
        }
    };
    let message = match args
        .sender
        .as_deref()
        .or_else(|| context.around().var("GT_ROLE"))
    {
        Some(sender) => format!("[from {sender}] {message}"),
        None => message,
    };
    let patience = Duration::try_from_secs_f64(args.timeout)
        .map_err(|_| Problem::usage(format!("{} is no time to wait", args.timeout)))?;
    context.catch_interrupts();
    let delivery = give(&town, &identity, &message, patience)?;
    let ms = u64::try_from(delivery.elapsed.as_millis()).unwrap_or(u64::MAX);
    if context.json {
        output::json(&json!({
            "agent": identity,
            "mode": "wait-idle",
            "delivered": "agent",
            "verified": delivery.verified,
            "proof": delivery.verified.then_some("screen"),
            "attempts": 1,
            "ms": ms,
            "id": delivery.id.to_string(),
        }))?;
    } else {
        let seen = if delivery.verified {
            "seen on its screen"
        } else {
            "not seen to be taken"
        };
        output::line(format!("Delivered to {identity} ({seen}, {ms} ms)."))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives a running agent a message.
pub(crate) fn give(
    town: &Town,
    identity: &Identity,
    message: &str,
    patience: Duration,
) -> Result<inject::Delivery, Problem> {
    let container = containers::of_agent(town, identity)?.ok_or_else(|| {
        Problem::not_found(format!("{identity} is not running"))
            .hint(format!("`gt start {identity}` starts it"))
    })?;
    let row = container.pane();
    if row.dead || container.lost_agent_pane() {
        return Err(Problem::conflict(format!("{identity} has ended"))
            .hint(format!("`gt start {identity}` starts it again")));
    }
    let preset = harnesses::resolve(town, &row.tag_harness)?.value;
    let pane = inject::Pane {
        id: row.pane,
        tty: &row.tty,
        pid: row.pid,
        container: container.name(),
    };
    inject::deliver(town, &pane, &preset, message, patience)
}
