//! Raises escalations, and raises them again until they are acknowledged.
//!
//! An escalation and the mail about it are written in one transaction; the event, the nudges and
//! the notification follow. If a process is killed in between, [`raise_due`] completes them. The
//! table of recipients and intervals is [`gt_core::escalation::ROUTES`].

use crate::base::fault;
use crate::base::or_log::OrLog;
use crate::base::wake;
use crate::messaging::{mail, notify};
use crate::records::events::{Events, by_command};
use crate::records::items::{
    Addressed, EscalationDraft, EscalationQuery, MailDraft, RaisedEscalation, Work,
};
use crate::records::sessions::Sessions;
use crate::{Result, Town};
use gt_core::escalation::{Escalation, LONGEST_MESSAGE, Severity, message};
use gt_core::event::Event;
use gt_core::mail::PERSON;
use gt_core::work::{ItemStatus, WorkId};
use gt_core::{Caller, Identity, Role};
use jiff::{SignedDuration, Timestamp};

/// Fault points of a raise.
pub const FAULT_POINTS: &[&str] = &["escalate.written", "escalate.told"];

/// Age after which an unfinished announcement counts as interrupted.
const INTERRUPTED_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// An escalation to raise.
#[derive(Clone, Debug, Default)]
pub struct NewEscalation {
    pub severity: Severity,
    pub message: String,
    /// The component that raises it: `patrol`, `budget`, `merge`.
    pub source: &'static str,
    pub item: Option<WorkId>,
    /// Address of the agent that it is about.
    pub agent: Option<String>,
    /// Deduplication key: while an escalation with this key is not closed, raising the key again
    /// counts one more occurrence of it and creates no other. By convention `<source>:<subject>`,
    /// such as `respawn:gastown/crew/max`.
    pub key: Option<String>,
}

/// Raises an escalation: stores it, notifies its recipients and writes the event
/// `escalation_raised`. An automatic message that is too long is shortened.
pub fn raise(town: &Town, new: &NewEscalation) -> Result<Escalation> {
    let event = match &new.agent {
        Some(agent) => town.event_at("escalation_raised", agent),
        None => town.event("escalation_raised"),
    };
    raise_with(town, new, event)
}

/// Raises an escalation with an event that carries further fields, and may have a shorter reason.
pub(crate) fn raise_with(town: &Town, new: &NewEscalation, event: Event) -> Result<Escalation> {
    let text: String = new.message.chars().take(LONGEST_MESSAGE).collect();
    let caller = town.caller();
    let draft = EscalationDraft {
        severity: new.severity,
        message: message(&text)?,
        source: new.source.to_owned(),
        raised_by: caller.as_str().to_owned(),
        item: new.item.as_ref().map(WorkId::to_string),
        agent: new.agent.clone(),
        key: new.key.clone(),
    };
    let raised = Work::of(town).raise_escalation(&draft, |it| addressed(it, &caller))?;
    fault::point(town, "escalate.written");
    if !raised.is_news {
        return Ok(raised.escalation);
    }
    let escalation = raised.escalation.clone();
    let reason = event.payload.get("reason").cloned();
    let event = event
        .with("escalation", escalation.id.to_string())
        .with("severity", escalation.severity.as_str())
        .with("bead", escalation.item.clone())
        .with(
            "reason",
            reason.unwrap_or_else(|| escalation.message.clone().into()),
        );
    announce(town, raised, event)?;
    Ok(escalation)
}

/// Closes escalations whose cause is gone, raises open ones again when they are due, and completes
/// announcements that were interrupted. Returns the escalations that were raised.
pub fn raise_due(town: &Town, now: Timestamp) -> Result<Vec<Escalation>> {
    let work = Work::of(town);
    for known in work.escalations(&EscalationQuery::default())? {
        let key = known.key.as_deref().unwrap_or_default();
        if let Some(reason) = gone(town, &work, key, &known.updated_at)? {
            resolve(town, key, &reason)?;
        }
    }
    let mut raised = work.escalations_to_announce(now - INTERRUPTED_AFTER)?;
    for due in work.escalations_due(now)? {
        let again = work.raise_escalation_again(&due, now, |it| addressed(it, &Caller::Gt))?;
        raised.extend(again);
    }
    let mut told = Vec::new();
    for raised in raised {
        let escalation = raised.escalation.clone();
        let kind = match escalation.raised {
            1 => "escalation_raised",
            _ => "escalation_again",
        };
        let event = Event::new(kind, Caller::Gt)
            .with("target", escalation.agent.clone())
            .with("escalation", escalation.id.to_string())
            .with("severity", escalation.severity.as_str())
            .with("bead", escalation.item.clone())
            .with("raised", escalation.raised)
            .with("reason", escalation.message.clone());
        announce(town, raised, event)?;
        told.push(escalation);
    }
    Ok(told)
}

/// Acknowledges an escalation: it stays in the lists, and is not raised again. Idempotent.
pub fn acknowledge(town: &Town, id: &WorkId) -> Result<Escalation> {
    let caller = town.caller();
    let (escalation, is_new) = Work::of(town).acknowledge_escalation(id, caller.as_str())?;
    if is_new {
        note(
            town,
            by_command(town, "escalation_acknowledged"),
            &escalation,
        );
    }
    Ok(escalation)
}

/// Closes an escalation. Idempotent.
pub fn close(town: &Town, id: &WorkId, reason: Option<&str>) -> Result<Escalation> {
    let caller = town.caller();
    let (escalation, is_new) = Work::of(town).close_escalation(id, caller.as_str(), reason)?;
    if is_new {
        note(town, by_command(town, "escalation_closed"), &escalation);
    }
    Ok(escalation)
}

/// Closes the escalation with this key because its cause is gone. Does nothing if there is none.
pub fn resolve(town: &Town, key: &str, reason: &str) -> Result<Option<Escalation>> {
    let caller = town.caller();
    let closed = Work::of(town).close_escalation_of(key, caller.as_str(), reason)?;
    if let Some(closed) = &closed {
        note(town, town.event("escalation_closed").by_gt(), closed);
    }
    Ok(closed)
}

/// Returns why the cause of a key is gone: its item is no longer blocked, its merge is no longer
/// stuck, or its agent was started after `since`.
fn gone(town: &Town, work: &Work, key: &str, since: &str) -> Result<Option<String>> {
    let Some((source, subject)) = key.split_once(':') else {
        return Ok(None);
    };
    let is_gone = match source {
        "done" => {
            let item = work.get(&subject.parse()?);
            item.or_debug("no item")
                .filter(|item| item.status != ItemStatus::Blocked)
                .map(|item| format!("{} is {}", item.id, item.status.as_str()))
        }
        "merge" => {
            let merge = work.merge(&subject.parse()?);
            merge
                .or_debug("no entry")
                .filter(|merge| !merge.status.is_broken())
                .map(|merge| format!("{} is {}", merge.id, merge.status.as_str()))
        }
        "respawn" => {
            let newest = Sessions::of(town).newest_that_came_up(subject)?;
            newest
                .filter(|session| session.started_at.as_deref().is_some_and(|at| at > since))
                .filter(|session| session.ended_at.is_none())
                .map(|_| format!("{subject} runs"))
        }
        _ => None,
    };
    Ok(is_gone)
}

fn note(town: &Town, event: Event, escalation: &Escalation) {
    let event = event
        .with("target", escalation.agent.clone())
        .with("escalation", escalation.id.to_string())
        .with("severity", escalation.severity.as_str())
        .with("bead", escalation.item.clone())
        .with("message", escalation.line())
        .with("reason", escalation.reason.clone());
    Events::of(town).note(vec![event]);
    wake::monitors(town);
}

/// Returns the mail of a raise. The mayor gets every escalation that is not about itself; people
/// get it depending on the severity, and whenever the mayor does not.
fn addressed(escalation: &Escalation, caller: &Caller) -> Vec<Addressed> {
    let route = escalation.severity.route();
    let mayor = Identity::town(Role::Mayor).address();
    let is_about_mayor = escalation.agent.as_ref() == Some(&mayor) || caller.is_agent(&mayor);
    let sender = match caller {
        Caller::Person(_) => PERSON,
        other => other.as_str(),
    };
    let mut recipients = Vec::new();
    if !is_about_mayor {
        recipients.push(mayor);
    }
    // The person who raises an escalation gets no mail about it.
    let tells_person = route.tells_person(escalation.raised) || is_about_mayor;
    if tells_person && sender != PERSON {
        recipients.push(PERSON.to_owned());
    }
    let draft = MailDraft {
        priority: route.mail_priority,
        ..MailDraft::new(sender, &escalation.subject(), &escalation.body())
    };
    let draft = |to: String| (to, draft.clone());
    recipients.into_iter().map(draft).collect()
}

fn announce(town: &Town, raised: RaisedEscalation, event: Event) -> Result<()> {
    let RaisedEscalation {
        escalation, mail, ..
    } = raised;
    Events::of(town).note(vec![event]);
    wake::monitors(town);
    mail::announce(town, mail, true);
    notify::of_escalation(town, &escalation);
    fault::point(town, "escalate.told");
    Work::of(town).escalation_told(&escalation)
}

#[cfg(test)]
mod tests;
