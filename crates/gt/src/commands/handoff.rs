use super::{CommandResult, attach, done, stdin};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::handoff::{COMPACTION, HandoffMode};
use gt_core::merge::DoneStatus;
use gt_core::prime::plain;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::lifecycle::handoff::{self, HandoffError, HandoffIntent, HandoffOptions};
use gt_town::lifecycle::prime;
use gt_town::records::items::Work;
use gt_town::terminal::containers;
use gt_town::terminal::containers::Container;
use gt_town::workflow::done::DoneOptions;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Hand over to a new session of the same agent, in the same container
///
/// The state of the work goes into a message on the agent's hook, and the next session begins with
/// it. Without a target, the calling agent hands over. A polecat puts its item back instead
/// (`gt done --status deferred`).
#[derive(Debug, Args)]
pub(crate) struct HandoffArgs {
    /// A work item to hook first, or another agent to hand over
    #[arg(value_name = "ITEM|TARGET")]
    what: Option<String>,
    /// The subject of the message
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    subject: Option<String>,
    /// Notes for the next session
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,
    /// Read the message from standard input
    #[arg(long, conflicts_with = "message")]
    stdin: bool,
    /// Add the state of git, the work and the inbox to the message
    #[arg(long)]
    collect: bool,
    /// The reason: after `compaction` the next session continues with a short reminder only
    #[arg(long, value_name = "WORD")]
    reason: Option<String>,
    /// Only save the state: the session continues, as before a compaction
    #[arg(long, conflicts_with = "cycle")]
    auto: bool,
    /// Continue the same conversation in a new process
    #[arg(long)]
    cycle: bool,
    /// Start another agent program in the new session, with a new conversation
    #[arg(long, value_name = "NAME", conflicts_with = "auto")]
    harness: Option<String>,
    /// Open the container of the agent afterwards
    #[arg(long, conflicts_with_all = ["auto", "dry_run"])]
    watch: bool,
    /// Show what would happen, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not warn about work that exists only in this worktree
    #[arg(long)]
    no_git_check: bool,
    /// Ignore the cooldown after the last handoff, and exhausted budgets
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: HandoffArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let is_by_hook = args.reason.as_deref() == Some(COMPACTION);
    hand_over(args, &town, context).inspect_err(|problem| {
        // The output of a hook is not read, so the problem is logged.
        if is_by_hook {
            tracing::error!("{}", problem.line());
        }
    })
}

fn hand_over(args: HandoffArgs, town: &Town, context: &Context) -> CommandResult {
    // The caller is a person, not an agent.
    let own = prime::calling_agent(town).ok();
    let (agent, item) = meaning(town, args.what.as_deref(), own.as_ref())?;
    // An agent that hands over runs this command in the pane that is about to be replaced.
    let is_in_a_pane = context.around().var("TMUX_PANE").is_some();
    let may_be_self = own.as_ref() == Some(&agent) && is_in_a_pane;
    let message = match args.stdin {
        true => Some(stdin::message()?),
        false => args.message.clone(),
    };
    let options = HandoffOptions {
        mode: match (args.auto, args.cycle) {
            (true, _) => HandoffMode::Auto,
            (_, true) => HandoffMode::Cycle,
            _ => HandoffMode::Normal,
        },
        subject: args.subject.clone(),
        message,
        reason: args.reason.clone(),
        collect: args.collect,
        git_check: !args.no_git_check || args.dry_run,
        item,
        force: args.force,
        asked_by: own.filter(|own| *own != agent).map(|own| own.address()),
        harness: args.harness.clone(),
    };
    if agent.role() == Role::Polecat && options.mode == HandoffMode::Normal {
        if options.harness.is_some() {
            return Err(Problem::usage(format!(
                "{agent} is a polecat: a handoff ends its session, and its item is open again"
            ))
            .hint("`gt sling ITEM --harness NAME` gives the item to another program"));
        }
        if options.item.is_some() {
            return Err(
                Problem::usage(format!("{agent} is a polecat, and has one item"))
                    .hint("`gt done --status deferred` puts it back"),
            );
        }
        return match args.dry_run {
            true => would_put_back(town, &agent, context),
            false => put_back(town, &agent, options, context),
        };
    }
    let is_only_said = args.auto || args.dry_run;
    let mut held = match is_only_said || may_be_self {
        true => None,
        false => Some(handoff::hold(town, &agent)?),
    };
    let mut options = options;
    let mut intent = match handoff::prepare(town, &agent, &options) {
        // The program compacts the context in any case, so at least the state is saved.
        Err(HandoffError::NotReplaceable(problem)) if is_before_compaction(&options) => {
            options.mode = HandoffMode::Auto;
            output::warn(format!("{problem}: only its state is saved"));
            held = None;
            handoff::prepare(town, &agent, &options)?
        }
        intent => intent?,
    };
    // The pane of an adopted program is not replaced.
    let adopted = intent.container.adopted();
    let is_self = may_be_self && adopted.is_none() && is_in(&intent.container, town, context);
    if may_be_self && !is_self && !is_only_said && options.mode != HandoffMode::Auto {
        held = Some(handoff::hold(town, &agent)?);
        intent = handoff::prepare(town, &agent, &options)?;
    }
    if args.watch {
        attach::check(intent.container.name(), context)?;
    }
    if !args.no_git_check {
        for warning in intent.collected.warnings() {
            output::warn(format!("{agent} has {warning}"));
        }
    }
    if args.dry_run {
        return dry_run(&intent, &options, context);
    }
    let Some(held) = held else {
        let mail = handoff::leave(town, &intent, &options)?.mail.id;
        let answer = answer(&intent, &options, &mail);
        if options.mode == HandoffMode::Auto {
            let words = format!("The state of {agent} is saved in {mail}.");
            return told(&answer, &words, context);
        }
        // The next step ends this process, so the answer is printed before.
        let words = format!("{agent} hands over; {mail} is on its hook.");
        told(&answer, &words, context)?;
        return match handoff::ask_for_take_over(town, &intent)? {
            true => Ok(ExitCode::SUCCESS),
            false => Err(Problem::failed("the next session has not taken over")
                .hint("`gt logs` shows why; the message is on the hook")),
        };
    };
    let (mail, started) = handoff::start_next_session(town, held, &intent, &options)?;
    for warning in &started.warnings {
        output::warn(warning);
    }
    let mut answer = answer(&intent, &options, &mail);
    answer["successor"] = json!(started.session.to_string());
    let mut words = format!(
        "{agent} was handed over: session {} continues.",
        started.session
    );
    if let Some(adopted) = adopted {
        let pane = intent.container.pane().pane;
        answer["released"] = json!({"pid": adopted.pid, "pane": pane.to_string()});
        words += &format!(
            "\nIt runs in {} now. The program in your pane {pane} (process {}) keeps running and is no longer an agent: end it, or two programs work in one folder.",
            started.container, adopted.pid
        );
    }
    told(&answer, &words, context)?;
    match args.watch {
        true => attach::attach_terminal(town, &started.container, false, context),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Returns whether this process runs in the agent's own pane, and not in one beside it.
fn is_in(container: &Container, town: &Town, context: &Context) -> bool {
    let around = context.around();
    let pane = container.pane().pane.to_string();
    around.var("TMUX_PANE") == Some(pane.as_str())
        && attach::inside(around).is_none_or(|socket| socket == town.server().socket_path())
}

/// Returns whether this is the cycle of a hook before a compaction.
fn is_before_compaction(options: &HandoffOptions) -> bool {
    options.mode == HandoffMode::Cycle && options.reason.as_deref() == Some(COMPACTION)
}

fn answer(intent: &HandoffIntent, options: &HandoffOptions, mail: &WorkId) -> Value {
    json!({
        "agent": intent.agent.address(),
        "session": intent.session.id,
        "container": intent.container.name(),
        "mode": options.mode,
        "letter": mail,
        "subject": intent.subject,
    })
}

/// Puts the item of a polecat back. A polecat has one item and one session for it, so its handoff
/// returns the item to where it came from.
fn put_back(
    town: &Town,
    agent: &Identity,
    options: HandoffOptions,
    context: &Context,
) -> CommandResult {
    let mut said: Vec<String> = [options.subject, options.reason, options.message]
        .into_iter()
        .flatten()
        .collect();
    if options.collect {
        said.push(handoff::state(town, agent)?.text());
    }
    let options = DoneOptions {
        leaving: DoneStatus::Deferred,
        message: Some(said.join("\n")).filter(|said| !said.is_empty()),
        push: true,
        force: false,
        exit: false,
    };
    done::finish(town, agent, &options, context)
}

fn would_put_back(town: &Town, agent: &Identity, context: &Context) -> CommandResult {
    let hooked = Work::of(town).hooked(&agent.address())?;
    let item = hooked.map(|hooked| hooked.item.id);
    let words = match &item {
        Some(item) => format!(
            "{agent} would put {item} back, and its session would end: it is a polecat, so this is `gt done --status deferred`."
        ),
        None => format!("{agent} has nothing on its hook to put back; its session would end."),
    };
    let answer = json!({"agent": agent.address(), "mode": "deferred", "item": item});
    let answer = output::without_nulls(answer);
    told(&answer, &words, context)
}

/// Resolves a word to an item to hook, another agent, or a role of the agent's rig.
fn meaning(
    town: &Town,
    what: Option<&str>,
    own: Option<&Identity>,
) -> Result<(Identity, Option<WorkId>), Problem> {
    let own = || {
        own.cloned().ok_or_else(|| {
            Problem::usage("no agent is named").hint("name an agent: `gt handoff AGENT`")
        })
    };
    let Some(what) = what else {
        return Ok((own()?, None));
    };
    if own().is_ok_and(|own| own.role().as_str() == what) {
        return Ok((own()?, None));
    }
    // A person has no rig of their own.
    if let Some(agent) = own().ok().and_then(|own| of_the_same_rig(what, &own)) {
        return Ok((agent, None));
    }
    let item = match what.parse::<WorkId>() {
        Ok(id) => existing(town, id)?,
        Err(_) => None,
    };
    match (target::resolve(town, what), item) {
        // An item is also the name of its task's agent, if that runs.
        (Ok(agent), Some(item)) if agent.role() == Role::Task => {
            match containers::of_agent(town, &agent)? {
                Some(_) => Ok((agent, None)),
                None => Ok((own()?, Some(item))),
            }
        }
        // If an agent runs this, the item goes to its own hook, even if another agent has the item.
        (Ok(_), Some(item)) if own().is_ok() => Ok((own()?, Some(item))),
        (Ok(agent), _) => {
            // A typo must not act on an agent that does not exist.
            target::check_known(town, &agent)?;
            Ok((agent, None))
        }
        (Err(_), Some(item)) => Ok((own()?, Some(item))),
        (Err(problem), None) => Err(problem),
    }
}

/// Returns the item if it exists. Fails if the store cannot be read.
fn existing(town: &Town, id: WorkId) -> Result<Option<WorkId>, Problem> {
    let work = Work::of(town);
    Ok(work.lookup(&work.expand(&id)?)?.map(|item| item.id))
}

/// Returns the agent of a role that a rig has once, in the rig of `own`.
fn of_the_same_rig(word: &str, own: &Identity) -> Option<Identity> {
    let role = Role::from_word(word)?;
    let is_one = matches!(role, Role::Witness | Role::Refinery);
    is_one.then(|| own.rig().map(|rig| Identity::of_rig(role, rig)))?
}

fn dry_run(intent: &HandoffIntent, options: &HandoffOptions, context: &Context) -> CommandResult {
    let answer = output::without_nulls(json!({
        "agent": intent.agent.address(),
        "session": intent.session.id,
        "container": intent.container.name(),
        "mode": options.mode,
        "subject": intent.subject,
        "body": intent.body,
        "item": options.item,
        "state": intent.collected,
    }));
    let with = match &options.item {
        Some(item) => format!(" with {item} on its hook"),
        None => String::new(),
    };
    let words = format!(
        "{} would hand over{with}, in {}:\n\n{}\n\n{}",
        intent.agent,
        intent.container.name(),
        intent.subject,
        intent.body.trim_end()
    );
    told(&answer, &plain(&words), context)
}

fn told(answer: &Value, words: &str, context: &Context) -> CommandResult {
    match context.json {
        true => output::json(answer)?,
        false => output::line(words)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes over in the background. The output of this process is not read, so results go to the
/// log.
pub(super) fn take_over(agent: &str, context: &Context) -> CommandResult {
    let town = &context.town()?;
    let result = target::resolve(town, agent).and_then(|agent| handoff::take_over(town, &agent));
    match result {
        Ok(started) => {
            for warning in &started.warnings {
                tracing::warn!("{warning}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) => {
            tracing::error!("{}", problem.line());
            Err(problem)
        }
    }
}
