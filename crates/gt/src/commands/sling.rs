use super::start_flags::PermissionFlags;
use super::{CommandResult, start};
use crate::context::Context;
use crate::error;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::work::{Item, WorkId};
use gt_core::{Identity, Problem, similar};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::base::estop;
use gt_town::catalog::harnesses;
use gt_town::records::items::{ItemDraft, Work};
use gt_town::repo::rig;
use gt_town::supervision::scheduler;
use gt_town::terminal::containers;
use gt_town::workflow::batch::{self, BatchChoice};
use gt_town::workflow::schedule::{self, Assigned, QueuedSling};
use gt_town::workflow::sling::{self, SlingOptions, SlingTarget, Slung};
use serde_json::{Value, json};

/// Assign work items to agents, and start the agents
///
/// For a rig, a free polecat takes the item, or a new one is made, with its worktree on the
/// branch polecat/NAME/ITEM. Several words in quotes are the title of a new item. Any other
/// agent gets the item on its hook; it is started or, if it runs, notified. Several items go
/// to as many polecats. A polecat of the rig that has the item already continues with it.
/// Items beyond the limits of the town wait in the schedule:
/// `gt schedule list` shows them.
///
/// Several items are a batch: they get a common parent, unless they have one. Those that wait for
/// others are queued, and start when these are closed. You get one message when all are closed.
/// `gt work tree BATCH` shows their progress.
#[derive(Debug, Args)]
pub(crate) struct SlingArgs {
    /// Work items, or titles of new ones, and a rig or an agent among them [default: the rig of each item]
    #[arg(required = true, value_name = "ITEM|TITLE|TARGET")]
    words: Vec<String>,
    /// The agent program [default: the role's, GT_HARNESS, the town's]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The model, by the agent program's own name for it [default: the project's, the role's, the
    /// harness's]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The account under which the agent program runs
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Message for the agent beside the item; kept in the notes of the item
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    args: Option<String>,
    #[command(flatten)]
    permissions: PermissionFlags,
    /// Only choose the agent and put the item on its hook
    #[arg(long)]
    no_start: bool,
    /// Also assign items that wait for others
    #[arg(long)]
    force: bool,
    /// Fail instead of queueing if the limits allow no more agents
    #[arg(long)]
    now: bool,
    /// The batch of the items: a work item, or the title of a new one [default: the parent of
    /// several items, or a new one]
    #[arg(long, value_name = "ITEM|TITLE", conflicts_with = "no_batch")]
    batch: Option<String>,
    /// Sling several items without a batch
    #[arg(long)]
    no_batch: bool,
}

pub(crate) fn run(args: SlingArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if let Some(harness) = &args.harness {
        // Checked before items are created.
        harnesses::resolve(&town, harness)?;
    }
    let (items, target) = read(&town, &args.words, context)?;
    let orders = items.into_iter().map(|(id, item)| {
        let order = item.and_then(|item| {
            let to = match &target {
                Some(target) => target.clone(),
                None => sling::target_of(&town, &id)?,
            };
            Ok((item, to))
        });
        (id, order)
    });
    let orders: Vec<SlingRequest> = orders.collect();
    let choice = match (args.batch, args.no_batch) {
        (Some(name), _) => BatchChoice::Named(name),
        (None, true) => BatchChoice::None,
        (None, false) => BatchChoice::Several,
    };
    // Items that cannot be read are reported with their own row.
    let present: Vec<&Item> = orders
        .iter()
        .filter_map(|(_, order)| order.as_ref().ok().map(|(item, _)| item))
        .collect();
    let gathered = batch::gather(&town, &present, &choice)?;
    if let Some(warning) = &gathered.warning {
        output::warn(warning);
    }
    let options = SlingOptions {
        harness: args.harness,
        model: args.model,
        account: args.account,
        args: args.args,
        no_start: args.no_start,
        force: args.force,
        queue_blocked: gathered.batch.is_some(),
        ask_permissions: args.permissions.ask_permissions,
        sender: None,
        formula: None,
        avoid: None,
    };
    context.catch_interrupts();
    for warning in gt_town::lifecycle::start::pre_sync(&town, &receivers(&orders)) {
        output::warn(warning);
    }
    // With `--no-start` there is nothing that could start later.
    let is_direct = args.now || args.no_start;
    let results = match is_direct {
        true => start::in_parallel(&town, "slinging", &orders, |(_, order)| {
            let (item, to) = order.as_ref().map_err(Problem::clone)?;
            let slung = schedule::sling_now(&town, item, to, &options)?;
            Ok(Assigned::Slung(Box::new(slung)))
        }),
        false => sling_or_queue(&town, &orders, &options)?,
    };
    if results
        .iter()
        .any(|it| matches!(it, Ok(Assigned::Queued(_))))
    {
        scheduler::wake(&town);
    }
    tell(&orders, &results, gathered.batch.as_ref(), context)
}

fn sling_or_queue(
    town: &Town,
    orders: &[SlingRequest],
    options: &SlingOptions,
) -> Result<Vec<Result<Assigned, Problem>>, Problem> {
    // An order that failed is reported with its result.
    let wanted: Vec<Option<(&Item, &SlingTarget)>> = orders
        .iter()
        .map(|(_, order)| order.as_ref().ok().map(|(item, to)| (item, to)))
        .collect();
    let decision = schedule::decide(town, &wanted, options)?;
    let numbered: Vec<(&SlingRequest, Option<&str>)> = orders
        .iter()
        .zip(decision.reasons.iter().map(Option::as_deref))
        .collect();
    Ok(start::in_parallel(
        town,
        "slinging",
        &numbered,
        |((_, order), reason)| {
            let (item, to) = order.as_ref().map_err(Problem::clone)?;
            Ok(schedule::sling_or_queue(town, item, to, options, *reason)?)
        },
    ))
}

/// Item and its target, or the reason why it cannot be given to an agent.
type SlingRequest = (WorkId, Result<(Item, SlingTarget), Problem>);

/// Named item, or the error that there is none.
type NamedItem = (WorkId, Result<Item, Problem>);

/// Returns one agent per order, with a placeholder polecat for a rig, for steps that run once per
/// rig.
fn receivers(orders: &[SlingRequest]) -> Vec<Identity> {
    // The caller reports the orders that failed.
    let receiver = |(_, order): &SlingRequest| match &order.as_ref().ok()?.1 {
        SlingTarget::Rig(rig) => Some(Identity::polecat(rig, "any")),
        SlingTarget::Agent(agent) => Some(agent.clone()),
    };
    orders.iter().filter_map(receiver).collect()
}

fn tell(
    orders: &[SlingRequest],
    results: &[Result<Assigned, Problem>],
    batch: Option<&Item>,
    context: &Context,
) -> CommandResult {
    let paint = Paint::for_stdout();
    let mut documents: Vec<Value> = Vec::new();
    let mut failures: Vec<(&WorkId, &Problem)> = Vec::new();
    for ((id, _), result) in orders.iter().zip(results) {
        match result {
            Ok(Assigned::Queued(queued)) => {
                documents.push(queued_document(queued));
                if !context.json {
                    output::line(queued_line(queued, paint))?;
                }
            }
            Ok(Assigned::Slung(slung)) => {
                documents.push(document(slung));
                if !context.json {
                    output::line(line(slung, paint))?;
                }
                for warning in &slung.warnings {
                    output::warn(format!("{}: {warning}", slung.agent));
                }
            }
            Err(problem) => {
                let mut document = error::as_json(problem);
                document["bead"] = json!(id);
                document["started"] = json!(false);
                documents.push(document);
                failures.push((id, problem));
            }
        }
    }
    if let Some(batch) = batch {
        let id = &batch.id;
        let slung = |document: &&mut Value| document.get("error").is_none();
        for document in documents.iter_mut().filter(slung) {
            document["batch"] = json!(id);
        }
        if !context.json {
            let title = output::clean(&batch.title);
            output::line(format!(
                "Batch {id}: {title}; `gt work tree {id}` shows it."
            ))?;
        }
    }
    if context.json {
        match (documents.as_slice(), failures.is_empty()) {
            ([one], true) => output::json(one)?,
            // A single failure is reported as an error only.
            ([_], false) => {}
            (many, _) => output::json(&many)?,
        }
    }
    error::finish_as_first(&failures, results.len(), "slung")
}

pub(super) fn document(slung: &Slung) -> Value {
    output::without_nulls(json!({
        "bead": slung.id,
        "agent": slung.agent,
        "container": slung.container,
        "branch": slung.branch,
        "work_dir": slung.work_dir,
        "session": slung.session,
        "started": slung.started,
        "reused": slung.reused,
        "nudged": slung.nudged,
        "warnings": slung.warnings,
    }))
}

fn queued_document(queued: &QueuedSling) -> Value {
    json!({
        "bead": queued.id,
        "queued": true,
        "rig": queued.rig,
        "place": queued.place,
        "waiting": queued.waiting,
        "reason": queued.reason,
        "started": false,
    })
}

fn queued_line(queued: &QueuedSling, paint: Paint) -> String {
    let QueuedSling {
        id,
        rig,
        place,
        waiting,
        reason,
    } = queued;
    format!(
        "{} {id} is queued for {rig}, place {place} of {waiting}: {reason}",
        paint.yellow("…")
    )
}

pub(super) fn line(slung: &Slung, paint: Paint) -> String {
    let what = match slung {
        _ if slung.started => format!("started in {}", slung.container),
        _ if slung.nudged => "was nudged".to_owned(),
        _ if slung.session.is_some() => "runs already".to_owned(),
        _ => "not started".to_owned(),
    };
    let branch = slung
        .branch
        .as_ref()
        .map_or_else(String::new, |branch| format!(", branch {branch}"));
    format!(
        "{} {} → {} ({what}{branch})",
        paint.green("✓"),
        slung.id,
        paint.bold(&slung.agent.address()),
    )
}

/// Splits the words into items and at most one target, in any order.
fn read(
    town: &Town,
    words: &[String],
    context: &Context,
) -> Result<(Vec<NamedItem>, Option<SlingTarget>), Problem> {
    let work = Work::of(town);
    let mut items: Vec<NamedItem> = Vec::new();
    let mut titles: Vec<&String> = Vec::new();
    let mut targets: Vec<(&String, SlingTarget)> = Vec::new();
    for word in words {
        // An id and the name of an agent have no blanks.
        if word.trim().contains(char::is_whitespace) {
            titles.push(word);
            continue;
        }
        // Other words are a rig or an agent.
        let id = word.parse::<WorkId>().ok();
        let id = id.map(|id| work.expand(&id)).transpose()?;
        let item = match &id {
            Some(id) => work.lookup(id)?,
            None => None,
        };
        let target = match item {
            Some(_) => None,
            None => read_target(town, word, id.is_some())?,
        };
        match (target, id) {
            (Some(target), _) => targets.push((word, target)),
            (None, Some(id)) if !items.iter().any(|(known, _)| *known == id) => {
                let item = item.map_or_else(|| work.get(&id), Ok);
                items.push((id, item));
            }
            _ => {}
        }
    }
    if let [(first, _), (second, _), ..] = targets.as_slice() {
        return Err(Problem::usage(format!(
            "an item goes to one rig or agent, not to both {first} and {second}"
        ))
        .hint("name one rig or one agent"));
    }
    let target = targets.pop().map(|(_, target)| target);
    // Checked before items are created.
    if items.len() + titles.len() > 1 && matches!(target, Some(SlingTarget::Agent(_))) {
        return Err(
            Problem::usage("an agent has one hook").hint("name one item, or a rig for all of them")
        );
    }
    for title in titles {
        let item = create(town, title, target.as_ref())?;
        if !context.json {
            output::line(format!("Made {}: {}", item.id, output::clean(&item.title)))?;
        }
        items.push((item.id.clone(), Ok(item)));
    }
    if items.is_empty() {
        return Err(
            Problem::usage("no work item is named").hint("`gt work ready` shows what can be begun")
        );
    }
    Ok((items, target))
}

/// Creates an item with this title in the rig of the target, else in the rig of this folder or the
/// only one.
fn create(town: &Town, title: &str, target: Option<&SlingTarget>) -> Result<Item, Problem> {
    let given = match target {
        Some(SlingTarget::Rig(rig)) => Some(rig.as_str()),
        Some(SlingTarget::Agent(agent)) => agent.rig(),
        None => None,
    };
    let prefix = match (given, target) {
        // An agent of the town works on items of the town.
        (None, Some(_)) => {
            estop::check(town, None)?;
            rig::TOWN_PREFIX.to_owned()
        }
        _ => {
            let rig = rig::named_or_only(town, given, "name it: `gt sling 'Fix the bug' RIG`")?;
            // Checked before the item is created, so that a retry does not create a second one.
            estop::check(town, Some(&rig))?;
            rig::work_prefix(town, &rig)?
        }
    };
    Work::of(town).create(&ItemDraft {
        prefix,
        title: title.to_owned(),
        ..ItemDraft::default()
    })
}

/// Parses a rig or an agent. A word that could be an item id counts as one, unless an agent has
/// that name: a misspelt item must not create a polecat.
fn read_target(
    town: &Town,
    word: &str,
    could_be_an_item: bool,
) -> Result<Option<SlingTarget>, Problem> {
    let name = word.strip_suffix('/').unwrap_or(word);
    if town.registry().rigs.contains_key(name) {
        return Ok(Some(SlingTarget::Rig(name.to_owned())));
    }
    if !could_be_an_item {
        let agent = target::resolve(town, word).map_err(|problem| {
            let rigs = town.registry().rigs.keys().map(String::as_str);
            let near = similar::hint(name, rigs);
            near.into_iter().fold(problem, Problem::hint)
        });
        return Ok(Some(SlingTarget::Agent(agent?)));
    }
    let containers = containers::list(town)?;
    let known = target::all(town, &containers)?;
    let found = known
        .into_iter()
        .find(|agent| agent.container == word || agent.identity.name() == Some(word));
    Ok(found.map(|agent| SlingTarget::Agent(agent.identity)))
}
