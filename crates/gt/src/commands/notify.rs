use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::{Args, Subcommand, ValueEnum};
use gt_core::Problem;
use gt_core::notify::NoticeKind;
use gt_core::plural::counted;
use gt_town::messaging::notify::{self, variable};
use serde_json::json;
use std::process::ExitCode;

/// Show the notification settings, or send a test
///
/// Notifications report that an agent waits, is done or has died. They are set in [notify] of
/// town.toml, or with `gt config set notify.desktop true`.
#[derive(Debug, Args)]
pub(crate) struct NotifyArgs {
    #[command(subcommand)]
    command: Option<NotifyCommand>,
}

#[derive(Debug, Subcommand)]
enum NotifyCommand {
    Test(TestArgs),
}

/// Send a test notification through every configured channel
///
/// It ignores quiet hours.
#[derive(Debug, Args)]
struct TestArgs {
    /// The event to report
    #[arg(long, value_enum, default_value_t = EventArg::Waiting)]
    event: EventArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EventArg {
    Waiting,
    Done,
    Died,
    Escalation,
    Budget,
    Landed,
}

impl EventArg {
    fn event(self) -> NoticeKind {
        match self {
            EventArg::Waiting => NoticeKind::Waiting,
            EventArg::Done => NoticeKind::Done,
            EventArg::Died => NoticeKind::Died,
            EventArg::Escalation => NoticeKind::Escalation,
            EventArg::Budget => NoticeKind::Budget,
            EventArg::Landed => NoticeKind::Landed,
        }
    }
}

pub(crate) fn run(args: &NotifyArgs, context: &Context) -> CommandResult {
    match &args.command {
        None => show(context),
        Some(NotifyCommand::Test(args)) => test(args, context),
    }
}

fn show(context: &Context) -> CommandResult {
    let town = context.town()?;
    let settings = &town.settings().notify;
    let on: Vec<&str> = settings.on.iter().map(|event| event.as_str()).collect();
    let hours = settings.quiet_hours.map(|hours| hours.to_string());
    if context.json {
        output::json(&output::without_nulls(json!({
            "is_on": settings.is_on(),
            "bell": settings.bell,
            "desktop": settings.desktop,
            "command": settings.command,
            "on": on,
            "quiet_hours": hours,
        })))?;
        return Ok(ExitCode::SUCCESS);
    }
    let bell = match settings.bell {
        Some(true) => "rings the attached terminals",
        Some(false) => "off",
        None => "only an open board rings",
    };
    let lines = [
        ("bell", bell),
        ("desktop", if settings.desktop { "on" } else { "off" }),
        ("command", settings.command.as_deref().unwrap_or("none")),
        ("on", &on.join(", ")),
        ("quiet hours", hours.as_deref().unwrap_or("none")),
    ];
    for (name, value) in lines {
        output::line(format!("{name:<12} {}", output::clean(value)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn test(args: &TestArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if !town.settings().notify.is_on() {
        return Err(Problem::conflict("no notifications are configured")
            .hint("`gt config set notify.desktop true` turns on desktop notifications")
            .hint("`gt config list notify` shows the other channels"));
    }
    let notice = notify::with_work(
        &town,
        args.event.event(),
        "test",
        "this is only a test",
        None,
    );
    let told = notify::deliver(&town, &notice);
    let failures: Vec<Option<String>> = told.iter().map(|told| failure(&told.result)).collect();
    let failed = failures.iter().flatten().count();
    if context.json {
        let ways = told.iter().zip(&failures).map(|(told, error)| {
            output::without_nulls(json!({"way": told.way, "told": error.is_none(), "error": error}))
        });
        output::json(&ways.collect::<Vec<_>>())?;
    } else {
        let paint = Paint::for_stdout();
        for (told, failure) in told.iter().zip(&failures) {
            let (mark, how) = match failure {
                None => (paint.green("✓"), "sent".to_owned()),
                Some(why) => (paint.red("✗"), format!("failed: {}", output::clean(why))),
            };
            output::line(format!("{mark} {:<8} {how}", told.way))?;
        }
    }
    if failed == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let message = format!("{failed} of {} failed", counted(told.len(), "channel"));
    let mut problem = Problem::failed(message);
    for failure in told.iter().filter_map(|told| told.result.as_ref().err()) {
        for hint in failure.hints() {
            problem = problem.hint(hint.as_str());
        }
    }
    Err(problem.hint("`gt config list notify` shows the settings"))
}

/// Returns why a channel did not reach a person.
fn failure(result: &Result<usize, Problem>) -> Option<String> {
    match result {
        Ok(0) => Some("no terminal is attached to the town's tmux server".to_owned()),
        Ok(_) => None,
        Err(problem) => Some(why(problem)),
    }
}

/// Formats a failure in one line.
fn why(problem: &Problem) -> String {
    let causes = problem.causes().iter().map(String::as_str);
    let words: Vec<&str> = [problem.message()].into_iter().chain(causes).collect();
    words.join(": ")
}

pub(super) fn deliver(context: &Context) -> CommandResult {
    let around = context.around();
    let missing = || Problem::usage("no event is named");
    let var = |name| around.var(name);
    let event = var(variable::EVENT).and_then(NoticeKind::from_word);
    let event = event.ok_or_else(missing)?;
    let agent = var(variable::AGENT).ok_or_else(missing)?;
    let reason = var(variable::REASON).unwrap_or_default();
    let town = context.town()?;
    let item = var(variable::ITEM).and_then(|item| item.parse().ok());
    let notice = notify::with_work(&town, event, agent, reason, item.as_ref());
    notify::deliver_unwatched(&town, &notice);
    Ok(ExitCode::SUCCESS)
}
