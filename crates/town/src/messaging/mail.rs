//! Sends mail and notifies the recipients.
//!
//! A message is on disk before its recipient is notified. The notification goes through the nudge
//! queue, never through keys that are typed without reading the screen; its failure does not affect
//! the message. [`crate::records::items`] stores and reads messages.

use crate::agents::{caller, target};
use crate::base::fault;
use crate::base::or_log::OrLog;
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use crate::records::events::Events;
use crate::records::items::{MailDraft, MailQuery, Work};
use crate::terminal::adopted;
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use gt_core::event::Event;
use gt_core::mail::{self, Mail, MailGroup, PERSON};
use gt_core::nudge::Priority;
use gt_core::role::RoleScope;
use gt_core::session::SessionId;
use gt_core::work::{ItemStatus, WorkId};
use gt_core::{Caller, Identity, Problem, stale};
use serde_json::json;
use std::time::Duration;

/// Fault points of sending.
pub const FAULT_POINTS: &[&str] = &["mail.written", "mail.told"];

/// A message that was sent.
#[derive(Debug)]
pub struct SentMail {
    pub mail: Mail,
    /// Whether the recipient runs and will be notified.
    pub nudged: bool,
    /// Why a recipient that runs, or may run, could not be notified.
    pub problem: Option<Problem>,
}

/// Sends a message to agents, people and groups. Each recipient gets a copy.
pub fn send(town: &Town, draft: &MailDraft, to: &[String], nudge: bool) -> Result<Vec<SentMail>> {
    let running = containers::list_everywhere(town);
    let recipients = recipients(town, to, &draft.sender, running.as_deref().unwrap_or(&[]));
    let recipients = match (recipients, &running) {
        // Without the list of containers, running agents without a folder are unknown, and the
        // members of a group may be incomplete.
        (Err(_), Err(problem)) => return Err(problem.clone()),
        (Ok(_), Err(problem)) if names_a_group(town, to)? => return Err(problem.clone()),
        (recipients, _) => recipients?,
    };
    let messages = Work::of(town).send(draft, &recipients)?;
    fault::point(town, "mail.written");
    emit_sent(town, &messages);
    fault::point(town, "mail.told");
    let mut sent: Vec<SentMail> = messages.into_iter().map(SentMail::not_notified).collect();
    match running {
        _ if !nudge => {}
        Ok(running) => nudge_readers(town, &mut sent, running),
        // It is unknown whether the recipients run; their messages are stored.
        Err(problem) => {
            let is_told = |sent: &&mut SentMail| sent.mail.notifies_recipient();
            for sent in sent.iter_mut().filter(is_told) {
                sent.problem = Some(problem.clone());
            }
        }
    }
    Ok(sent)
}

/// Writes the events of messages that the caller has stored, and nudges their recipients if `nudge`
/// is set.
pub(crate) fn announce(town: &Town, messages: Vec<Mail>, nudge: bool) {
    emit_sent(town, &messages);
    let mut sent: Vec<SentMail> = messages.into_iter().map(SentMail::not_notified).collect();
    // A recipient that cannot be nudged still has its message.
    if nudge && let Ok(running) = containers::list_everywhere(town) {
        nudge_readers(town, &mut sent, running);
    }
}

fn names_a_group(town: &Town, to: &[String]) -> Result<bool> {
    for text in to {
        if MailGroup::read(text, town.registry())?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Replies to a message: to its sender, or to its recipient if the caller sent it. A reply marks
/// the message as read.
pub fn reply(town: &Town, id: &WorkId, draft: MailDraft, nudge: bool) -> Result<SentMail> {
    let work = Work::of(town);
    let answered = work.mail(id)?;
    let to = match answered.sender == draft.sender {
        true => answered.recipient.clone(),
        false => answered.sender.clone(),
    };
    let reader = draft.sender.clone();
    let draft = MailDraft {
        subject: match draft.subject.is_empty() {
            true => mail::answer_to(&answered.subject),
            false => draft.subject,
        },
        reply_to: Some(id.clone()),
        ..draft
    };
    let sent = send(town, &draft, &[to], nudge)?.into_iter().next();
    if reader == answered.recipient {
        work.mark_read(id)?;
    }
    sent.ok_or_else(|| Problem::failed("the answer was not written"))
}

/// Returns the number of unread messages and the most urgent ones, without bodies and without the
/// message on the hook.
pub fn unread_summary(town: &Town, agent: &str, most: usize) -> Result<(usize, Vec<Mail>)> {
    Work::of(town).count_and_messages(&MailQuery {
        recipient: Some(agent.to_owned()),
        unread: true,
        body: Some(0),
        limit: Some(most),
        ..MailQuery::default()
    })
}

/// Returns the running session of a recipient.
pub fn present_session(town: &Town, reader: &str) -> Option<SessionId> {
    let own = |name| town.around().var(name);
    // An agent knows its own session without a call of tmux.
    if own("GT_ROLE") == Some(reader)
        && let Some(session) = own("GT_SESSION_UUID").and_then(|session| session.parse().ok())
    {
        return Some(session);
    }
    let identity = Identity::from_address(reader, town.registry())?;
    let home = adopted::home_of(town, &identity);
    let container = containers::of_agent(&home, &identity);
    // Staleness is only a hint.
    container.or_debug("the session is unknown")??.session_id()
}

/// Returns why a message was not meant for this session, if it was sent before the session began. A
/// hooked message is meant for any next session.
pub fn stale_reason(mail: &Mail, session: &SessionId) -> Option<String> {
    if mail.status == ItemStatus::Hooked {
        return None;
    }
    let sent: jiff::Timestamp = mail.sent_at.parse().ok()?;
    let written = |at: i64| {
        let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
        format!("{at:.3}")
    };
    stale::reason(sent.as_millisecond(), session.began_at_millis()?, written)
}

/// Resolves a mail address: a person's, or that of an agent by any target.
pub fn address(town: &Town, text: &str) -> Result<String> {
    match text {
        PERSON => Ok(PERSON.to_owned()),
        text => Ok(mailbox(&target::resolve_known(town, text)?)),
    }
}

/// Returns the address of an agent's mailbox. The overseer is the person who runs the town.
pub(crate) fn mailbox(agent: &Identity) -> String {
    match caller::is_person(agent) {
        true => PERSON.to_owned(),
        false => agent.address(),
    }
}

/// Returns the recipients without duplicates. A sender to a group does not get a copy.
fn recipients(
    town: &Town,
    to: &[String],
    sender: &str,
    running: &[Container],
) -> Result<Vec<String>> {
    let known = target::all(town, running)?;
    let mut found: Vec<String> = Vec::new();
    for text in to {
        let meant = match MailGroup::read(text, town.registry())? {
            _ if text == PERSON => vec![PERSON.to_owned()],
            Some(group) => {
                let members = known.iter().filter(|agent| group.has(&agent.identity));
                let mut others: Vec<String> =
                    members.map(|agent| agent.identity.address()).collect();
                let count = others.len();
                others.retain(|to| to != sender);
                if others.is_empty() {
                    let other = if count == 0 { "" } else { "other " };
                    return Err(Problem::not_found(format!("{text} has no {other}members"))
                        .hint("`gt agents --all --stopped` lists all agents"));
                }
                others
            }
            None => {
                let agent = target::resolve_among(town, text, running)?;
                let exists = known.iter().any(|known| known.identity == agent);
                // The town's own agents are valid without a folder.
                if !exists && (agent.role().scope() != RoleScope::Town || agent.name().is_some()) {
                    return Err(Problem::not_found(format!("there is no agent {agent}"))
                        .hint("`gt agents --all --stopped` lists all agents"));
                }
                vec![mailbox(&agent)]
            }
        };
        for address in meant {
            if !found.contains(&address) {
                found.push(address);
            }
        }
    }
    Ok(found)
}

impl SentMail {
    fn not_notified(mail: Mail) -> Self {
        SentMail {
            mail,
            nudged: false,
            problem: None,
        }
    }
}

fn emit_sent(town: &Town, messages: &[Mail]) {
    let Some(first) = messages.first() else {
        return;
    };
    let ids: Vec<&str> = messages.iter().map(|mail| mail.id.as_str()).collect();
    let to: Vec<&str> = messages
        .iter()
        .map(|mail| mail.recipient.as_str())
        .collect();
    let event = match first.sender.as_str() {
        PERSON => town.event("mail"),
        agent => Event::new("mail", Caller::agent(agent)),
    };
    let event = event
        .with("to", json!(to))
        .with("subject", first.subject.clone())
        .with("letters", json!(ids))
        .with("thread", first.thread.to_string())
        .with("priority", first.priority);
    Events::of(town).note(vec![event]);
}

/// Queues a nudge to each running recipient, delivered as soon as it is idle.
fn nudge_readers(town: &Town, sent: &mut [SentMail], mut running: Vec<Container>) {
    running.retain(|container| !container.pane().dead && !container.lost_agent_pane());
    for sent in sent {
        let mail = &sent.mail;
        let reads = |container: &Container| {
            let identity = container.identity();
            identity.is_some_and(|identity| identity.address() == mail.recipient)
        };
        let place = running.iter().position(reads);
        let Some(container) = place.filter(|_| mail.notifies_recipient()) else {
            continue;
        };
        let container = running.swap_remove(container);
        let Some(identity) = container.identity() else {
            continue;
        };
        let order = NudgeRequest {
            is_command: false,
            text: &mail::new_mail_notice(mail),
            sender: None,
            mode: DeliveryMode::Queue,
            priority: match mail.priority {
                0 => Priority::Urgent,
                _ => Priority::Normal,
            },
            timeout: Duration::ZERO,
        };
        match nudge::send(town, identity, &order) {
            Ok(_) => sent.nudged = true,
            Err(error) => sent.problem = Some(error.into()),
        }
    }
}
