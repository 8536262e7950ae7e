//! Resumes a task: prompts a paused agent, and restarts an ended one in its conversation.

use super::pause::set_tag;
use super::site::TaskSite;
use super::wip::{self, Undone};
use super::{TaskOptions, event_of, is_alive, tag_of, tags};
use crate::base::lock::FileLock;
use crate::lifecycle::restore::{self, Resumable};
use crate::lifecycle::start::StartOptions;
use crate::messaging::inject::{Submission, Typist};
use crate::messaging::nudge::{self, DeliveryMode, NudgeOutcome, NudgeRequest};
use crate::messaging::queue::{MessageQueue, Phase};
use crate::messaging::signal;
use crate::records::events::Events;
use crate::records::sessions::Sessions;
use crate::terminal::containers::Container;
use crate::{Result, Town};
use gt_core::beacon;
use gt_core::nudge::{NotNow, Priority, clean, fingerprint};
use gt_core::session::SessionId;
use gt_core::startup::Conversation;
use gt_core::state::State;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, shell};
use std::time::Duration;

/// Prompt that makes an agent continue.
const GO_ON: &str = "continue";
/// Maximum wait until the prompt can be typed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["resume.undone"];

#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// Keep the commit of the pause.
    pub keep_wip: bool,
    /// Prompt to send instead of the default.
    pub prompt: Option<String>,
    /// Continue when an init command fails.
    pub continue_on_failure: bool,
}

impl ResumeOptions {
    /// Returns the command line that repeats this request.
    fn command(&self, id: &WorkId) -> String {
        let keep_wip = if self.keep_wip { " --keep-wip" } else { "" };
        let prompt = self.prompt.as_deref().map(shell::quote);
        let prompt = prompt.map_or_else(String::new, |text| format!(" --prompt {text}"));
        format!("gt task resume {id}{keep_wip}{prompt}")
    }
}

#[derive(Clone, Debug)]
pub struct Resumed {
    pub id: WorkId,
    pub agent: Identity,
    pub container: String,
    pub session: Option<SessionId>,
    /// This call started the agent, in this conversation.
    pub started: Option<Conversation>,
    pub wip: Undone,
    /// Reason why it is still paused: the message is in its input line and was not submitted.
    pub still_paused: Option<NotNow>,
    /// Reason why the prompt is still queued.
    pub waits: Option<NotNow>,
    pub warnings: Vec<String>,
}

/// Resumes a task.
pub fn resume(town: &Town, id: &WorkId, options: &ResumeOptions) -> Result<Resumed> {
    let site = TaskSite::of(town, id)?;
    let lock = site.lock()?;
    let container = site.container()?;
    let Some(container) = container.filter(is_alive) else {
        let last = Sessions::of(town).newest_that_came_up(&site.agent.address())?;
        let last = last.ok_or_else(|| {
            Problem::not_found(format!("{id} has never run"))
                .hint(format!("`gt task start {id}` starts it"))
        })?;
        let wip = end_wip(&site, options)?;
        drop(lock);
        return start_again(&site, &last, options, wip);
    };
    let preset = nudge::preset_of(town, &container)?;
    let hold = &container.pane().tag_hold;
    if !hold.is_empty() {
        return Err(Problem::conflict(format!("{id} is paused: {hold}"))
            .hint("`gt budget` shows the budgets, and `gt budget raise SCOPE AMOUNT` raises one"));
    }
    let state = container.state(Some(&preset)).state;
    // A prompt from another source ends the pause, but its commit may remain.
    let is_paused = state == State::Paused;
    let has_wip = match options.keep_wip {
        true => wip::is_noted(&site),
        false => wip::at_tip(&site).is_some(),
    };
    if !is_paused && !has_wip {
        return Err(
            Problem::conflict(format!("{id} is not paused but {}", state.as_str()))
                .hint(format!("`gt nudge {} TEXT` sends it a message", site.agent)),
        );
    }
    let wip = end_wip(&site, options)?;
    set_tag(&site, &container, tags::WIP, "")?;
    let mut typist = Typist::new(town, &container, &preset);
    let forgotten = match is_paused && preset.interrupt.forgets {
        true => tag_of(town, &container, tags::STOPPED)?,
        false => String::new(),
    };
    if is_paused {
        // The program's hook may report the end of the pause first, and then needs to know the
        // caller.
        set_tag(&site, &container, tags::RESUMER, town.caller().as_str())?;
    }
    // Done before the pause is cleared: a process that is killed before anything is typed leaves
    // the state unchanged. Later the input line differs, and a person must handle it.
    let again = match is_paused {
        true => submit_again(&site, &container, &mut typist, options.prompt.as_deref()),
        false => Ok(None),
    };
    let again = again.inspect_err(|_| {
        // The next prompt comes from another caller.
        let _ = set_tag(&site, &container, tags::RESUMER, "");
    })?;
    let mut resumed = Resumed {
        id: id.clone(),
        agent: site.agent.clone(),
        container: container.name().to_owned(),
        session: container.session_id(),
        started: None,
        wip,
        still_paused: None,
        waits: None,
        warnings: Vec::new(),
    };
    if let Some(Submission::NotNow(why, phase)) = again {
        resumed.still_paused = Some(why);
        set_tag(&site, &container, tags::RESUMER, "")?;
        if let (Phase::Taken, Some(prompt)) = (phase, &options.prompt) {
            tell(town, &mut resumed, prompt, DeliveryMode::Queue)?;
        }
        return Ok(resumed);
    }
    if signal::clear_paused(town, &site.agent)? {
        let event = event_of(town, "resumed", id, &site.agent);
        Events::of(town).note(vec![event]);
    }
    if again.is_some() {
        // Delivers the messages that waited for the end of the pause; programs without hooks do not
        // report it.
        let _ = signal::wake_delivery_to(town, &container);
        return Ok(resumed);
    }
    let asks = typist.observe()?.dialog;
    match &options.prompt {
        None if !is_paused => {}
        // It continues after the answer, and needs no prompt.
        None if asks => resumed.warnings.push(format!(
            "it waits for an answer: `gt answer {}`",
            resumed.agent
        )),
        prompt => {
            let words = prompt.as_deref().unwrap_or(GO_ON);
            let words = match forgotten.as_str() {
                "" => words.to_owned(),
                message => with_reminder(&site, &container, message, words)?,
            };
            tell(town, &mut resumed, &words, DeliveryMode::WaitIdle)?;
        }
    }
    Ok(resumed)
}

/// Submits the message of the stopped turn again, if the program has put it back into its input
/// line and the line is unchanged.
fn submit_again(
    site: &TaskSite<'_>,
    container: &Container,
    typist: &mut Typist<'_>,
    more: Option<&str>,
) -> Result<Option<Submission>> {
    let put_back = tag_of(site.town, container, tags::PUT_BACK)?;
    if put_back.is_empty() {
        return Ok(None);
    }
    let _typing = FileLock::take(
        &MessageQueue::of(site.town, &site.agent).lock_path(),
        TIMEOUT,
    )?;
    typist.submit_put_back(&put_back, more)
}

/// Undoes the commit of the pause, or keeps it as requested.
fn end_wip(site: &TaskSite<'_>, options: &ResumeOptions) -> Result<Undone> {
    if !options.keep_wip {
        return wip::undo(site);
    }
    let kept = wip::accept(site)?;
    Ok(kept.map_or(Undone::Nothing, |wip| Undone::Kept(wip, "as requested")))
}

/// Returns the prompt for a program that may have forgotten the message of its stopped turn. Only
/// the first message is stored; repeated after a later one, it would be a new request.
fn with_reminder(
    site: &TaskSite<'_>,
    container: &Container,
    message: &str,
    words: &str,
) -> Result<String> {
    let session = Sessions::of(site.town).newest_that_came_up(&site.agent.address())?;
    let first = session.and_then(|session| session.initial_prompt);
    let reminded = tag_of(site.town, container, tags::REMINDED)?;
    let had_first = |first: &String| {
        // It was passed as an argument, in full or shortened, was typed, or came with an earlier
        // reminder.
        let texts = [first.as_str(), &clean(first), &beacon::argument(first)].map(fingerprint);
        texts.contains(&message.to_owned()) || reminded == message
    };
    let Some(first) = first.filter(had_first) else {
        return Ok(format!(
            "{words}\n\nYour turn was stopped, and you may have forgotten the message that it \
             was about. If so, say that, and do not start over with an earlier one."
        ));
    };
    let words = clean(&format!(
        "{words}\n\nYour turn was stopped. This is what you were told first:\n\n{first}"
    ));
    set_tag(site, container, tags::REMINDED, &fingerprint(&words))?;
    Ok(words)
}

fn tell(town: &Town, resumed: &mut Resumed, text: &str, mode: DeliveryMode) -> Result<()> {
    let request = NudgeRequest {
        is_command: false,
        text,
        sender: None,
        mode,
        // The agent is woken by a command: do-not-disturb does not hold it.
        priority: Priority::Urgent,
        timeout: TIMEOUT,
    };
    let sent = nudge::send(town, &resumed.agent, &request)?;
    let NudgeOutcome::Queued(reason) = sent.outcome else {
        return Ok(());
    };
    resumed.waits = Some(reason.unwrap_or(NotNow::Paused));
    Ok(())
}

/// Restarts an agent whose session has ended, with its former options.
fn start_again(
    site: &TaskSite<'_>,
    last: &gt_core::record::Record,
    options: &ResumeOptions,
    wip: Undone,
) -> Result<Resumed> {
    let (town, id) = (site.town, &site.id);
    let before = StartOptions::from_tag(last.start.as_deref().unwrap_or_default())?;
    let harness = last.harness.clone().or(before.harness.clone());
    let ended = Resumable {
        harness: harness.as_deref().unwrap_or_default(),
        start: last.start.as_deref().unwrap_or_default(),
        id: last.harness_session_id.as_deref(),
        alone: true,
    };
    let conversation = restore::conversation(town, &site.agent, &ended);
    let start = |conversation: &Conversation| {
        let is_new = *conversation == Conversation::New;
        let prompt = options.prompt.clone();
        let task_options = TaskOptions {
            // A new conversation needs the whole prompt.
            work: is_new,
            prompt: prompt.or_else(|| (!is_new).then(|| GO_ON.to_owned())),
            as_before: Some(StartOptions {
                harness: harness.clone(),
                conversation: conversation.clone(),
                ..before.clone()
            }),
            continue_on_failure: options.continue_on_failure,
            asked_by: Some(options.command(id)),
            ..TaskOptions::default()
        };
        super::start(town, id, &task_options, &mut |_| false)
    };
    let (started, used, warning) = restore::resume_or_begin(town, &conversation, start)?;
    let warnings = warning.into_iter().chain(started.warnings).collect();
    Ok(Resumed {
        id: id.clone(),
        agent: site.agent.clone(),
        container: started.container,
        session: started.session,
        started: Some(used),
        wip,
        still_paused: None,
        waits: None,
        warnings,
    })
}
