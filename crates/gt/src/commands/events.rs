mod retention;

use super::{CommandResult, ids};
use crate::context::Context;
use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use gt_core::Problem;
use gt_core::capability::Capability;
use gt_core::event::{Event, Visibility};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::base::time;
use gt_town::records::events::{self, EventGap, EventQuery, Events, FoundEvents, SEARCHED_AT_ONCE};
use gt_town::records::items::Work;
use gt_town::records::stream::{self, Follow, StreamServer};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Default number of events, without `--limit` and `--since`.
const SHOWN: usize = 100;
/// Default number of past events with `--follow`.
const SHOWN_BEFORE: usize = 10;

/// Show the events of the town, the newest last
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EventsArgs {
    #[command(subcommand)]
    command: Option<EventsCommand>,
    /// Only these types, separated by commas: nudge,'session_*'
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Only events caused by this agent, or by 'gastown/*'
    #[arg(long = "agent", alias = "actor", value_name = "TARGET")]
    actor: Option<String>,
    /// Only events about this agent or work item, regardless of their actor
    #[arg(long, value_name = "AGENT|ITEM")]
    about: Option<String>,
    /// Only the feed: the events that matter to people, one short line each
    #[arg(long)]
    feed: bool,
    /// Only events since: 90m, 24h, yesterday, 2026-01-17
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events after the one with this number (`seq` in JSON), the oldest first
    #[arg(long, value_name = "SEQ", conflicts_with = "since")]
    after: Option<u64>,
    /// Only events before the one with this number: the next page of older events
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["follow", "feed"])]
    before: Option<u64>,
    /// Maximum number of events; the newest are shown [default: 100, or all with --since or --after]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Follow new events; with --json, one document per line
    #[arg(long, short)]
    follow: bool,
    /// Stream events and changes of sessions to each client of the town's socket
    #[arg(long, conflicts_with_all = ["kinds", "actor", "about", "feed", "since", "after", "before", "limit", "follow"])]
    serve: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum EventsCommand {
    Emit(EmitArgs),
    Verify(VerifyArgs),
    Stats(retention::StatsArgs),
    Prune(retention::PruneArgs),
    Retention(retention::RetentionArgs),
}

/// Check that the log is as gt wrote it, by its hash chain
///
/// Exits with 1 if a line was changed, removed, inserted or moved, and prints the first one.
#[derive(Debug, Args)]
struct VerifyArgs {
    /// Accept the break, with an event: the chain begins anew after it. Only people may do so
    #[arg(long)]
    accept: bool,
}

/// Write an event; for scripts and agents
#[derive(Debug, Args)]
struct EmitArgs {
    /// Its type: small letters, digits and _
    #[arg(value_name = "TYPE")]
    kind: String,
    /// Who caused it [default: the caller: an agent by address, a person by login name]
    #[arg(long)]
    actor: Option<String>,
    /// Additional fields, as a JSON object
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Its audience [default: that of its type]
    #[arg(long, value_enum)]
    visibility: Option<VisibilityArg>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum VisibilityArg {
    Audit,
    Feed,
    Both,
}

impl VisibilityArg {
    fn visibility(self) -> Visibility {
        match self {
            VisibilityArg::Audit => Visibility::Audit,
            VisibilityArg::Feed => Visibility::Feed,
            VisibilityArg::Both => Visibility::Both,
        }
    }
}

pub(crate) fn run(args: EventsArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    match args.command {
        Some(EventsCommand::Emit(args)) => emit(args, &town, context)?,
        Some(EventsCommand::Verify(args)) => return verify(&args, &town, context),
        Some(EventsCommand::Stats(retention::StatsArgs {})) => retention::stats(&town, context)?,
        Some(EventsCommand::Prune(args)) => retention::prune(&args, &town, context)?,
        Some(EventsCommand::Retention(retention::RetentionArgs {})) => {
            retention::show(&town, context)?;
        }
        None if args.serve => serve(&town, context)?,
        None => show(&args, &town, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the names by which events may refer to the given text: an item is also the agent of its
/// task. An agent that no longer exists is recognised by its events.
fn names_of(town: &Town, text: &str) -> Result<Vec<String>, Problem> {
    let mut names = vec![ids::full_or_text(town, text)?];
    match target::resolve(town, text) {
        Ok(agent) => names.extend(Some(agent.address()).filter(|address| address != text)),
        Err(problem) => {
            let is_item = names[0]
                .parse()
                .is_ok_and(|id| Work::of(town).get(&id).is_ok());
            let anything = EventQuery {
                about: names.clone(),
                limit: Some(1),
                reach: Some(SEARCHED_AT_ONCE),
                ..EventQuery::default()
            };
            if !is_item && Events::of(town).find(&anything)?.is_empty() {
                return Err(problem);
            }
        }
    }
    Ok(names)
}

/// Shows the matching events, and new ones with `--follow`.
fn show(args: &EventsArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let actor = args.actor.as_deref().map(|text| {
        // Patterns and agents that no longer exist are matched as text.
        target::resolve(town, text).map_or_else(|_| text.to_owned(), |who| who.address())
    });
    let about = args.about.as_deref().map(|text| names_of(town, text));
    let since = args.since.as_deref().map(time::parse_time).transpose()?;
    let usual = if args.follow { SHOWN_BEFORE } else { SHOWN };
    let is_limited = since.is_none() && args.after.is_none();
    let query = EventQuery {
        kinds: args.kinds.clone(),
        actor,
        about: about.transpose()?.unwrap_or_default(),
        feed: args.feed,
        since,
        after: args.after,
        before: args.before,
        limit: args.limit.or(is_limited.then_some(usual)),
        // A period that the caller names is searched completely.
        reach: is_limited.then_some(SEARCHED_AT_ONCE),
    };
    let as_line = if args.feed { feed_line } else { audit_line };
    if args.follow {
        return follow(town, query, as_line, context);
    }
    match (args.after, query.limit) {
        (Some(after), Some(limit)) => {
            let page = Events::of(town).page(Some(after), limit, &query)?;
            page.gap.iter().for_each(warn_of_gap);
            print_found(&page.events, as_line, context)
        }
        (after, None) => {
            let gap = after.map(|after| Events::of(town).gap_after(after));
            gap.transpose()?.flatten().iter().for_each(warn_of_gap);
            let mut printed = PrintedEvents::new(as_line, context);
            Events::of(town).each(&query, &mut |event| printed.add(&event))?;
            printed.finish()
        }
        (None, Some(_)) => {
            let found = Events::of(town).search(&query)?;
            print_found(&found.events, as_line, context)?;
            note_older(&found, &query);
            Ok(())
        }
    }
}

fn print_found(
    events: &[Event],
    as_line: fn(&Event) -> String,
    context: &Context,
) -> Result<(), Problem> {
    let mut printed = PrintedEvents::new(as_line, context);
    events.iter().try_for_each(|event| printed.add(event))?;
    printed.finish()
}

/// Events as the command prints them, one after another: a town may have more than fit in memory.
struct PrintedEvents {
    as_line: fn(&Event) -> String,
    json: Option<output::JsonList>,
    text: String,
    is_empty: bool,
}

impl PrintedEvents {
    fn new(as_line: fn(&Event) -> String, context: &Context) -> Self {
        PrintedEvents {
            as_line,
            json: context.json.then(output::JsonList::default),
            text: String::new(),
            is_empty: true,
        }
    }

    fn add(&mut self, event: &Event) -> Result<(), Problem> {
        const AT_ONCE: usize = 1 << 16;
        self.is_empty = false;
        match &mut self.json {
            Some(list) => list.add(event),
            None => {
                self.text += &(self.as_line)(event);
                match self.text.len() < AT_ONCE {
                    true => Ok(()),
                    false => output::print(&std::mem::take(&mut self.text)),
                }
            }
        }
    }

    fn finish(self) -> Result<(), Problem> {
        match self.json {
            Some(list) => list.finish(),
            None if self.is_empty => output::line("No events match."),
            None => output::print(&self.text),
        }
    }
}

/// Notes that older events were not searched.
fn note_older(found: &FoundEvents, query: &EventQuery) {
    let megabytes = SEARCHED_AT_ONCE >> 20;
    let next = match found.searched_from {
        Some(number) => format!("`--before {number}` searches older ones"),
        None => "`--since TIME` searches older ones".to_owned(),
    };
    let end = match query.before {
        Some(number) => format!("before event {number}"),
        None => "of the log".to_owned(),
    };
    if found.is_partial {
        output::note(format!(
            "Only the last {megabytes} MB {end} were searched; {next}."
        ));
    }
}

fn follow(
    town: &Town,
    query: EventQuery,
    as_line: fn(&Event) -> String,
    context: &Context,
) -> Result<(), Problem> {
    context.catch_interrupts();
    let line = |event: &Event| match context.json {
        true => format!("{}\n", json!(event)),
        false => as_line(event),
    };
    let gap = query.after.map(|after| Events::of(town).gap_after(after));
    match gap.transpose()?.flatten() {
        Some(gap) if context.json => output::line(json!({"gap": gap}).to_string())?,
        gap => gap.iter().for_each(warn_of_gap),
    }
    let mut follow = Follow::begin(town, query, &mut |event| output::print(&line(&event)))?;
    while !context.around().cancel.is_set() && output::has_reader() {
        let found = follow.next(Duration::from_millis(500))?;
        let lines: Vec<String> = found.iter().map(line).collect();
        output::print(&lines.concat())?;
    }
    Ok(())
}

/// Warns that events after a cursor are missing.
fn warn_of_gap(gap: &EventGap) {
    let after = gap.after;
    output::warn(match gap.missing {
        Some(1) => format!("1 event after {after} is no longer in the log"),
        Some(count) => format!("{count} events after {after} are no longer in the log"),
        None => format!("the log has no event {after}: it is another log"),
    });
}

fn serve(town: &Town, context: &Context) -> Result<(), Problem> {
    let server = StreamServer::bind(town)?;
    context.catch_interrupts();
    let path = stream::socket_path(town);
    if context.json {
        output::line(json!({"socket": path}).to_string())?;
    } else {
        output::line(format!("Streams on {}; Ctrl-C ends it.", path.display()))?;
    }
    server.run(&context.around().cancel)
}

fn emit(args: EmitArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let mut event = match &args.actor {
        Some(actor) => {
            town.check_own_name("--actor", actor)?;
            Event::emitted(&args.kind, actor)
        }
        None => Event::new(&args.kind, town.caller()),
    };
    if let Some(text) = &args.payload {
        event.payload = serde_json::from_str::<Map<String, Value>>(text).map_err(|error| {
            Problem::usage("the payload is not a JSON object")
                .caused_by(error)
                .hint("such as --payload '{\"bead\": \"gt-abc\"}'")
        })?;
    }
    if let Some(visibility) = args.visibility {
        event.visibility = visibility.visibility();
    }
    event.check()?;
    for event in Events::of(town).append(vec![event])? {
        if context.json {
            output::json(&event)?;
        } else {
            output::print(&audit_line(&event))?;
        }
    }
    Ok(())
}

fn verify(args: &VerifyArgs, town: &Town, context: &Context) -> CommandResult {
    if args.accept {
        town.check_town_capability(Capability::Config)?;
        let accepted = events::accept_break(town)?;
        if context.json {
            output::json(&json!({"accepted": accepted}))?;
        } else {
            output::line(match accepted {
                Some(found) => format!("Accepted: {}.", found.words()),
                None => "The log is as gt wrote it; there is nothing to accept.".to_owned(),
            })?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = Events::of(town).verify()?;
    if context.json {
        output::json(&report)?;
    } else {
        output::line(match &report.broken {
            Some(found) => format!(
                "The log is not as gt wrote it: {}.\n`gt events verify --accept` accepts this, with an event.",
                found.words()
            ),
            None => report.words(),
        })?;
    }
    Ok(match report.broken {
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

fn audit_line(event: &Event) -> String {
    let at = local(event, "%Y-%m-%d %H:%M:%S");
    fitted(&format!("{at}  {:<22} ", event.kind), event)
}

/// Formats an event as a line of the feed.
fn feed_line(event: &Event) -> String {
    fitted(&format!("{}  ", local(event, "%m-%d %H:%M")), event)
}

/// Formats an event after its head. Its text is broken to fit the terminal, below the head if there
/// is little room beside it.
fn fitted(head: &str, event: &Event) -> String {
    let (head, text) = (output::clean(head), output::clean(&event.line()));
    let columns = output::terminal_columns();
    let mut lines = output::hanging(&head, &text, columns);
    if lines.len() > 1 && columns.is_some_and(|columns| head.len() * 2 > columns) {
        lines = vec![head.trim_end().to_owned()];
        lines.extend(output::hanging("    ", &text, columns));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the local time of an event.
fn local(event: &Event, format: &str) -> String {
    match events::time_of(event) {
        Some(at) => {
            let here = at.to_zoned(jiff::tz::TimeZone::system());
            here.strftime(format).to_string()
        }
        None => event.ts.clone(),
    }
}
