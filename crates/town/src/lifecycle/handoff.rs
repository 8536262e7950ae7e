//! Hands over from one session of an agent to the next, in the same container.
//!
//! The order makes it safe to be killed at any point. It collects the state; writes and hooks a
//! handoff message, in one transaction; writes the marker; then records the end of the session in
//! the journal, linked to its successor; and only then replaces the process ([`take_over`], through
//! the usual start path). Until the journal is written, the old session continues unchanged and the
//! command can be retried. Afterwards the work is on the hook for the next session, however it is
//! started.
//!
//! An agent that hands over runs this command in the pane that is about to be replaced. tmux
//! therefore does the last part: it calls `gt internal take-over`.

mod collect;
mod marker;

pub use marker::{read as read_marker, remove as remove_marker};

use crate::base::callback::{self, Call};
use crate::base::error_enum::error_enum;
use crate::base::estop;
use crate::base::fault;
use crate::base::lock::FileLock;
use crate::catalog::{harnesses, roles};
use crate::lifecycle::start::{self, Prepared, StartOptions, StartedAgent, TakeOver};
use crate::records::budget;
use crate::records::events::Events;
use crate::records::items::{HandedOver, MailDraft, Work};
use crate::records::sessions::Sessions;
use crate::terminal::adopted;
use crate::terminal::containers::{self, Container, Owner, tmux_problem};
use crate::work::{checkpoint, hook};
use crate::{Result, Town};
use gt_core::handoff::{Collected, HandoffMode, Marker, too_soon};
use gt_core::record::Record;
use gt_core::startup::Conversation;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, mail, save as saved};
use gt_tmux::{Command, SessionName};

/// Fault points of a handoff.
pub const FAULT_POINTS: &[&str] = &[
    "handoff.collected",
    "handoff.written",
    "handoff.marked",
    "handoff.recorded",
    "handoff.respawned",
];

/// Options of a handoff.
#[derive(Clone, Debug, Default)]
pub struct HandoffOptions {
    pub mode: HandoffMode,
    pub subject: Option<String>,
    pub message: Option<String>,
    pub reason: Option<String>,
    /// Add the collected state to the message, besides the caller's text.
    pub collect: bool,
    /// Check for work that exists only in the agent's worktree.
    pub git_check: bool,
    /// Hook this item first.
    pub item: Option<WorkId>,
    /// Ignore the cooldown and exhausted budgets.
    pub force: bool,
    /// The requester, if it is not the agent itself.
    pub asked_by: Option<String>,
    /// The harness of the next session, if it changes.
    pub harness: Option<String>,
}

/// A prepared handoff: nothing has been changed yet.
#[derive(Debug)]
pub struct HandoffIntent {
    pub agent: Identity,
    pub container: Container,
    pub session: Record,
    pub collected: Collected,
    pub subject: String,
    pub body: String,
}

/// A handoff that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HandoffError {
    /// The session cannot be replaced now. Its state can still be saved ([`HandoffMode::Auto`]).
    #[error(transparent)]
    NotReplaceable(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(HandoffError: NotReplaceable, Other);

/// Takes the lock that prevents concurrent starts and stops of an agent, for [`start_next_session`]. Take it
/// before the agent's state is read.
pub fn hold(town: &Town, agent: &Identity) -> Result<FileLock> {
    Ok(start::hold(town, agent)?)
}

/// Reads everything that a handoff needs, and changes nothing.
pub fn prepare(
    town: &Town,
    agent: &Identity,
    options: &HandoffOptions,
) -> Result<HandoffIntent, HandoffError> {
    // The database is opened while tmux answers.
    let open_ahead = || Work::of(town).open_early();
    let home = adopted::home_of(town, agent);
    let container = containers::of_agent_while(&home, agent, open_ahead)?;
    // An agent that died in its pane is handled and reported as a crash.
    let runs =
        |it: &Container| it.session_id().is_some() && !it.pane().dead && !it.lost_agent_pane();
    let container = container.filter(runs);
    let container = container.ok_or_else(|| {
        Problem::not_found(format!(
            "{agent} is not running, so it has nothing to hand over"
        ))
        .hint(format!("`gt start {agent}` starts it"))
    })?;
    check_adopted(agent, &container, options.mode)?;
    let session = session_of(town, agent, &container, options.mode)?;
    if options.mode != HandoffMode::Auto {
        estop::check(town, agent.rig())?;
        check_program(town, agent, &container, &session, options)?;
        if !options.force {
            check_cooldown(town, agent, &container)?;
            check_budget(town, agent, options)?;
        }
    }
    if let Some(item) = &options.item {
        let checked = Work::of(town).check_hook(&agent.address(), item);
        checked.map_err(Problem::from)?;
    }
    let message = options.message.as_deref().map(str::trim_end);
    let message = message.filter(|message| !message.is_empty());
    let wants_state = options.collect || options.mode != HandoffMode::Normal || message.is_none();
    // Without the collected state there is no need to wait for git and the mailbox.
    let collected = match wants_state || options.git_check {
        true => collect::state(town, agent, &session)?,
        false => collect::branch_alone(town, &session),
    };
    let subject = options
        .subject
        .clone()
        .unwrap_or_else(|| match &options.reason {
            Some(reason) => format!("Handoff: {reason}"),
            None => "Handoff".to_owned(),
        });
    let subject = mail::subject(&subject)?;
    let message = message.unwrap_or_default();
    let message = match &options.asked_by {
        Some(who) => format!("{who} asked for this handoff.\n\n{message}"),
        None => message.to_owned(),
    };
    let body = match (message.trim_end(), wants_state) {
        (message, false) => message.to_owned(),
        ("", true) => collected.text(),
        (message, true) => format!("{message}\n\n{}", collected.text()),
    };
    Ok(HandoffIntent {
        agent: agent.clone(),
        container,
        session,
        collected,
        subject,
        body,
    })
}

/// Returns the collected state of an agent.
pub fn state(town: &Town, agent: &Identity) -> Result<Collected> {
    let home = adopted::home_of(town, agent);
    let session = match containers::of_agent(&home, agent)? {
        Some(container) => session_of(town, agent, &container, HandoffMode::Normal)?,
        None => Record::default(),
    };
    collect::state(town, agent, &session)
}

/// Writes the data for the next session: the hooked message and the marker. [`HandoffMode::Auto`] needs
/// nothing more.
pub fn leave(town: &Town, intent: &HandoffIntent, options: &HandoffOptions) -> Result<HandedOver> {
    let agent = &intent.agent;
    let address = agent.address();
    fault::point(town, "handoff.collected");
    if let Some(item) = &options.item {
        hook::hook_item(town, agent, item)?;
    }
    let draft = MailDraft {
        priority: 1,
        ..MailDraft::new(&address, &intent.subject, &intent.body)
    };
    let ends = options.mode != HandoffMode::Auto;
    let handed = Work::of(town).hand_over(&address, &intent.session.id, ends, &draft)?;
    let mail = &handed.mail;
    fault::point(town, "handoff.written");
    let marker = Marker {
        session: intent.session.id.clone(),
        container: intent.container.name().to_owned(),
        reason: options.reason.clone(),
        mode: options.mode,
        mail: Some(mail.id.to_string()),
        subject: Some(intent.subject.clone()),
        branch: intent.collected.branch.clone(),
        harness: options.harness.clone(),
        at: town.clock().text(),
    };
    marker::write(town, agent, &marker)?;
    fault::point(town, "handoff.marked");
    let mut event = town
        .event_at("handoff", &address)
        .with("session_id", intent.session.id.clone())
        .with("subject", intent.subject.clone())
        .with("reason", options.reason.clone())
        .with("letter", mail.id.to_string());
    if options.mode == HandoffMode::Auto {
        event = event.with("mode", "auto");
        // The other modes end the session, and its successor writes the next checkpoint.
        checkpoint::refresh(town, agent, &intent.session.id, None)?;
    }
    Events::of(town).note(vec![event]);
    Ok(handed)
}

/// Replaces the session that has left a marker with the next one.
pub fn take_over(town: &Town, agent: &Identity) -> Result<StartedAgent> {
    let _held = start::hold(town, agent)?;
    let marker = read_marker(town, agent)?.filter(|marker| marker.mode != HandoffMode::Auto);
    let marker = marker.ok_or_else(|| {
        Problem::not_found(format!("{agent} has not handed over"))
            .hint("`gt handoff` does all of it")
    })?;
    let home = adopted::home_of(town, agent);
    let container = containers::of_agent(&home, agent)?.ok_or_else(|| {
        Problem::not_found(format!("{agent} is no longer running"))
            .hint(format!("`gt start {agent}`: its work is still on its hook"))
    })?;
    let session = session_of(town, agent, &container, marker.mode)?;
    let before = TakeOver {
        session: marker.session,
        known: complete_record(&session),
        branch: marker.branch,
    };
    let harness = marker.harness.as_deref();
    let start_options =
        next_start_options(town, &container, &session, marker.mode, harness, before)?;
    let prepared =
        Prepared::new(town, agent, &start_options).inspect_err(|_| cancel_handoff(town, agent))?;
    let mut started = start::take_over(town, &prepared, container, None)?;
    started
        .warnings
        .extend(lost_conversation_warning(marker.mode, &start_options));
    Ok(started)
}

/// Writes the data for the next session, as [`leave`] does, and starts it at once.
pub fn start_next_session(
    town: &Town,
    _held: FileLock,
    intent: &HandoffIntent,
    options: &HandoffOptions,
) -> Result<(WorkId, StartedAgent)> {
    let (container, session) = (&intent.container, &intent.session);
    let before = TakeOver {
        session: session.id.clone(),
        known: complete_record(session),
        branch: intent.collected.branch.clone(),
    };
    let harness = options.harness.as_deref();
    let start_options =
        next_start_options(town, container, session, options.mode, harness, before)?;
    // The start is prepared while the message is written to disk.
    let (handed, prepared) = std::thread::scope(|scope| {
        let prepared = scope.spawn(|| Prepared::new(town, &intent.agent, &start_options));
        (leave(town, intent, options), prepared.join())
    });
    let prepared = prepared.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let prepared = prepared.inspect_err(|_| cancel_handoff(town, &intent.agent));
    let handed = handed?;
    let mut started = start::take_over(town, &prepared?, container.clone(), Some(handed.clone()))?;
    started
        .warnings
        .extend(lost_conversation_warning(options.mode, &start_options));
    Ok((handed.mail.id, started))
}

/// Removes the marker of a handoff that cannot happen: the session continues. The message stays on
/// the hook for the next session.
fn cancel_handoff(town: &Town, agent: &Identity) {
    // A marker that remains does no harm: the journal shows that the session has not handed over.
    let _ = remove_marker(town, agent);
}

/// Returns the warning for a cycle that could not continue its conversation.
fn lost_conversation_warning(mode: HandoffMode, start_options: &StartOptions) -> Option<String> {
    let is_cut_off =
        mode == HandoffMode::Cycle && matches!(start_options.conversation, Conversation::New);
    let harness = start_options.harness.as_deref().unwrap_or("this program");
    is_cut_off.then(|| {
        format!(
            "{harness} cannot resume a conversation; a new one was started with the handoff message"
        )
    })
}

/// Returns the start options of the next session.
fn next_start_options(
    town: &Town,
    container: &Container,
    session: &Record,
    mode: HandoffMode,
    other_harness: Option<&str>,
    before: TakeOver,
) -> Result<StartOptions> {
    let harness = &container.pane().tag_harness;
    let other_harness = other_harness.filter(|other| other != harness);
    let conversation = match (mode, other_harness) {
        // No program can continue the conversation of another program.
        (HandoffMode::Cycle, None) => {
            let preset = harnesses::resolve(town, harness)?.value;
            saved::conversation(&preset, session.harness_session_id.as_deref(), true)
        }
        _ => Conversation::New,
    };
    let mut start_options = options_before(town, container, session)?;
    let harness = match other_harness {
        Some(other) => {
            // The configuration folder and the command line belong to the previous program.
            start_options.config_dir = None;
            start_options.keeps_folder = false;
            start_options.command = None;
            other
        }
        None => harness,
    };
    Ok(StartOptions {
        harness: Some(harness.to_owned()).filter(|name| !name.is_empty()),
        sender: Some("self".to_owned()),
        topic: Some("handoff".to_owned()),
        conversation,
        takes_over: Some(before),
        // A session that does not come up counts as dead and is handled as such.
        keep_on_timeout: true,
        keep_container: true,
        ..start_options
    })
}

/// Returns the start options of the previous session, from the journal or else from tmux.
fn options_before(town: &Town, container: &Container, session: &Record) -> Result<StartOptions> {
    match &session.start {
        Some(start) => StartOptions::from_tag(start),
        None => start::options_of(town, container),
    }
}

/// Fails if the container is an agent's by its name alone, or if a cycle would have to resume the
/// conversation of an adopted program, which continues to run.
fn check_adopted(
    agent: &Identity,
    container: &Container,
    mode: HandoffMode,
) -> Result<(), HandoffError> {
    if let Owner::Orphan(_) = container.owner() {
        let problem = Problem::conflict(format!(
            "{agent} is known only by the name of its tmux session; gt did not start it"
        ));
        let hint = format!(
            "`gt adopt {}` makes it an agent of the town",
            container.name()
        );
        return Err(problem.hint(hint).into());
    }
    if mode == HandoffMode::Cycle && container.adopted().is_some() {
        let problem = Problem::conflict(format!(
            "{agent} runs in a pane of yours, and its program keeps the conversation"
        ));
        return Err(HandoffError::NotReplaceable(problem.hint(format!(
            "`gt handoff {agent}` without `--cycle` begins a new conversation, with the message"
        ))));
    }
    Ok(())
}

/// Fails if the program of the next session is not installed, before anything is written.
fn check_program(
    town: &Town,
    agent: &Identity,
    container: &Container,
    session: &Record,
    options: &HandoffOptions,
) -> Result<()> {
    let harness = match &options.harness {
        Some(harness) => harness,
        None => &container.pane().tag_harness,
    };
    let role = roles::resolve(town, agent.role(), agent.rig())?.value;
    let runs_a_command = options.harness.is_none()
        && (options_before(town, container, session)?.command.is_some() || harness.is_empty());
    if runs_a_command || role.session.start_command.is_some() {
        return Ok(());
    }
    let preset = harnesses::resolve(town, harness)?.value;
    harnesses::locate(town, &preset)
        .map(drop)
        .map_err(|problem| problem.hint("`--harness NAME` hands over to another program"))
}

/// Asks tmux to start the take-over, and waits. On success the caller, which runs in the replaced
/// pane, is usually killed before it sees the answer. Returns whether there is a next session.
pub fn ask_for_take_over(town: &Town, intent: &HandoffIntent) -> Result<bool> {
    let container = &intent.container;
    let take_over = callback::by_tags(&Call::TakeOver.line("#{q:@gt_agent}"));
    let target = SessionName::try_from(container.name())
        .map_err(|error| Problem::usage(error.to_string()))?;
    town.server()
        .run(Command::new("run-shell").target(target).arg(take_over))
        .map_err(|error| tmux_problem("tmux could not be asked for the next session", error))?;
    let now = containers::of_agent(town, &intent.agent)?;
    Ok(now.is_some_and(|now| now.pane().tag_session != intent.session.id))
}

/// Returns the session in a container. The tags in tmux are nearly always sufficient. The journal
/// is read only for the conversation, for start options that do not fit into a tag, and for an
/// earlier handoff of the session that was interrupted.
fn session_of(
    town: &Town,
    agent: &Identity,
    container: &Container,
    mode: HandoffMode,
) -> Result<Record> {
    let pane = container.pane();
    let id = pane.tag_session.clone();
    let is_own_pane = !container.lost_agent_pane();
    let shown = Record {
        cwd: Some(pane.start_path.clone()).filter(|_| is_own_pane),
        start: Some(pane.tag_start.clone()).filter(|start| !start.is_empty()),
        ..Record::about(id.clone())
    };
    let was_cut = read_marker(town, agent)?.is_some_and(|marker| marker.session == id);
    if is_own_pane && shown.start.is_some() && mode != HandoffMode::Cycle && !was_cut {
        return Ok(Record {
            agent: Some(agent.address()),
            role: Some(agent.role().as_str().to_owned()),
            rig: agent.rig().map(str::to_owned),
            tmux_session: Some(container.name().to_owned()),
            ..shown
        });
    }
    let ids = [id.as_str()].into_iter();
    let known = Sessions::of(town).in_journal(ids)?.remove(&id);
    Ok(known.unwrap_or(shown))
}

/// Returns the record if it is complete, so that the start does not read it again.
fn complete_record(session: &Record) -> Option<Record> {
    Some(session.clone()).filter(|session| session.agent.is_some())
}

/// Fails if a budget that the agent is under is exhausted: the next session is a new start.
fn check_budget(
    town: &Town,
    agent: &Identity,
    options: &HandoffOptions,
) -> Result<(), HandoffError> {
    let item = match &options.item {
        Some(item) => Some(item.clone()),
        None => start::hooked_work(town, agent),
    };
    let item = item.as_ref().map(WorkId::as_str);
    budget::refuse_exhausted(town, Some(agent), None, item).map_err(|problem| {
        HandoffError::NotReplaceable(problem.hint("`--force` hands over nevertheless"))
    })
}

fn check_cooldown(
    town: &Town,
    agent: &Identity,
    container: &Container,
) -> Result<(), HandoffError> {
    let Some(began) = container
        .session_id()
        .and_then(|session| session.began_at())
    else {
        return Ok(());
    };
    let age = town.clock().seconds() - began;
    let cooldown = i64::try_from(town.settings().handoff.cooldown.0).unwrap_or(i64::MAX);
    match too_soon(age, cooldown) {
        None => Ok(()),
        Some(seconds) => {
            let problem = Problem::conflict(format!(
                "{agent} started {age} s ago; one handoff per {cooldown} s is allowed"
            ));
            Err(HandoffError::NotReplaceable(problem.hint(format!(
                "continue the work on the hook and try again in {seconds} s; `--force` hands over now"
            ))))
        }
    }
}

#[cfg(test)]
mod tests;
