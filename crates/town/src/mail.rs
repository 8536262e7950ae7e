//! Sending letters, and what their readers are told.
//!
//! A letter is on the disk before anybody is told of it. Its reader is told by the queue
//! of messages, never by keys that nobody looked after; whether that works changes nothing
//! about the letter. Reading and keeping letters is `work`'s.

use crate::containers::{self, Container};
use crate::events::Events;
use crate::nudge::{self, Mode, Order};
use crate::work::{LetterDraft, LetterQuery, Work};
use crate::{Result, Town, adopted, caller, directory, fault, target};
use gt_core::event::Event;
use gt_core::mail::{self, Group, Letter, PERSON};
use gt_core::nudge::Priority;
use gt_core::role::Scope;
use gt_core::session::SessionId;
use gt_core::work::{Status, WorkId};
use gt_core::{Caller, Identity, Problem, stale};
use serde_json::json;
use std::time::Duration;

/// Where a test can kill a sender.
pub const FAULT_POINTS: &[&str] = &["mail.written", "mail.told"];

/// A letter that was sent.
#[derive(Debug)]
pub struct Sent {
    pub letter: Letter,
    /// Whether its reader runs and will be told.
    pub nudged: bool,
    /// Why a reader that runs, or may run, could not be told.
    pub problem: Option<Problem>,
}

/// Sends a letter to agents, to people and to groups, each of whom gets one of its own.
pub fn send(town: &Town, draft: &LetterDraft, to: &[String], nudge: bool) -> Result<Vec<Sent>> {
    let running = containers::list_everywhere(town);
    let recipients = recipients(town, to, &draft.sender, running.as_deref().unwrap_or(&[]));
    let recipients = match (recipients, &running) {
        // One that only runs could not be seen, and of a group nobody knows whether it is whole.
        (Err(_), Err(problem)) => return Err(problem.clone()),
        (Ok(_), Err(problem)) if names_a_group(town, to)? => return Err(problem.clone()),
        (recipients, _) => recipients?,
    };
    let letters = Work::of(town).send(draft, &recipients)?;
    fault::point(town, "mail.written");
    tell(town, &letters);
    fault::point(town, "mail.told");
    let mut sent: Vec<Sent> = letters.into_iter().map(Sent::untold).collect();
    match running {
        _ if !nudge => {}
        Ok(running) => nudge_readers(town, &mut sent, running),
        // Whether they run is not known; their letters are sent.
        Err(problem) => {
            let is_told = |sent: &&mut Sent| sent.letter.is_told();
            for sent in sent.iter_mut().filter(is_told) {
                sent.problem = Some(problem.clone());
            }
        }
    }
    Ok(sent)
}

/// Tells of letters that were written by the caller, and nudges their readers if wanted.
pub(crate) fn announce(town: &Town, letters: Vec<Letter>, nudge: bool) {
    tell(town, &letters);
    let mut sent: Vec<Sent> = letters.into_iter().map(Sent::untold).collect();
    // A reader that cannot be nudged has its letter all the same.
    if nudge && let Ok(running) = containers::list_everywhere(town) {
        nudge_readers(town, &mut sent, running);
    }
}

fn names_a_group(town: &Town, to: &[String]) -> Result<bool> {
    for text in to {
        if Group::read(text, town.registry())?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Answers a letter: to whoever wrote it, or, for its own writer, to whoever got it. To
/// answer a letter is to have read it.
pub fn reply(town: &Town, id: &WorkId, draft: LetterDraft, nudge: bool) -> Result<Sent> {
    let work = Work::of(town);
    let answered = work.letter(id)?;
    let to = match answered.sender == draft.sender {
        true => answered.recipient.clone(),
        false => answered.sender.clone(),
    };
    let reader = draft.sender.clone();
    let draft = LetterDraft {
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

/// How many letters wait to be read, and the most urgent of them, without their bodies and
/// without what is on the hook.
pub fn unread_summary(town: &Town, agent: &str, most: usize) -> Result<(usize, Vec<Letter>)> {
    Work::of(town).count_and_letters(&LetterQuery {
        recipient: Some(agent.to_owned()),
        unread: true,
        body: Some(0),
        limit: Some(most),
        ..LetterQuery::default()
    })
}

/// The life of a reader that runs now.
pub fn present_life(town: &Town, reader: &str) -> Option<SessionId> {
    let own = |name| town.around().var(name);
    // An agent knows its own without asking tmux.
    if own("GT_ROLE") == Some(reader)
        && let Some(life) = own("GT_SESSION_UUID").and_then(|life| life.parse().ok())
    {
        return Some(life);
    }
    let identity = Identity::from_address(reader, town.registry())?;
    // Whether a letter is stale is only a hint, and none where nobody can tell.
    let home = adopted::home_of(town, &identity);
    containers::of_agent(&home, &identity).ok()??.life()
}

/// Why a letter was not meant for this life, if it was sent before that began. What is on
/// the hook was meant for whoever comes.
pub fn stale_reason(letter: &Letter, life: &SessionId) -> Option<String> {
    if letter.status == Status::Hooked {
        return None;
    }
    let sent: jiff::Timestamp = letter.sent_at.parse().ok()?;
    let written = |at: i64| {
        let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
        format!("{at:.3}")
    };
    stale::reason(sent.as_millisecond(), life.began_at_millis()?, written)
}

/// An address for mail: a person's, or that of an agent by any target.
pub fn address(town: &Town, text: &str) -> Result<String> {
    match text {
        PERSON => Ok(PERSON.to_owned()),
        text => Ok(mailbox(&target::known(town, text)?)),
    }
}

/// The address of an agent's mailbox. The overseer is the person who runs the town.
pub(crate) fn mailbox(agent: &Identity) -> String {
    match caller::is_person(agent) {
        true => PERSON.to_owned(),
        false => agent.address(),
    }
}

/// Those who are meant, each once. Who writes to a group does not write to itself.
fn recipients(
    town: &Town,
    to: &[String],
    sender: &str,
    running: &[Container],
) -> Result<Vec<String>> {
    let known = directory::everybody(town, running)?;
    let mut found: Vec<String> = Vec::new();
    for text in to {
        let meant = match Group::read(text, town.registry())? {
            _ if text == PERSON => vec![PERSON.to_owned()],
            Some(group) => {
                let members = known.iter().filter(|agent| group.has(&agent.identity));
                let mut others: Vec<String> =
                    members.map(|agent| agent.identity.address()).collect();
                let count = others.len();
                others.retain(|to| to != sender);
                if others.is_empty() {
                    let nobody = if count == 0 { "nobody" } else { "nobody else" };
                    return Err(Problem::not_found(format!("{nobody} is in {text}"))
                        .hint("`gt agents --all --stopped` shows who there is"));
                }
                others
            }
            None => {
                let agent = target::resolve_among(town, text, running)?;
                let exists = known.iter().any(|known| known.identity == agent);
                // The town's own have no folder of theirs to be known by.
                if !exists && (agent.role().scope() != Scope::Town || agent.name().is_some()) {
                    return Err(Problem::not_found(format!("there is no agent {agent}"))
                        .hint("`gt agents --all --stopped` shows who there is"));
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

impl Sent {
    fn untold(letter: Letter) -> Self {
        Sent {
            letter,
            nudged: false,
            problem: None,
        }
    }
}

fn tell(town: &Town, letters: &[Letter]) {
    let Some(first) = letters.first() else {
        return;
    };
    let ids: Vec<&str> = letters.iter().map(|letter| letter.id.as_str()).collect();
    let to: Vec<&str> = letters
        .iter()
        .map(|letter| letter.recipient.as_str())
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

/// Leaves those who run a message; each gets it as soon as it is idle.
fn nudge_readers(town: &Town, sent: &mut [Sent], mut running: Vec<Container>) {
    running.retain(|container| !container.pane().dead && !container.lost_agent_pane());
    for sent in sent {
        let letter = &sent.letter;
        let reads = |container: &Container| {
            let identity = container.identity();
            identity.is_some_and(|identity| identity.address() == letter.recipient)
        };
        let place = running.iter().position(reads);
        let Some(container) = place.filter(|_| letter.is_told()) else {
            continue;
        };
        let container = running.swap_remove(container);
        let Some(identity) = container.identity() else {
            continue;
        };
        let order = Order {
            text: &mail::news(letter),
            sender: None,
            mode: Mode::Queue,
            priority: match letter.priority {
                0 => Priority::Urgent,
                _ => Priority::Normal,
            },
            patience: Duration::ZERO,
        };
        match nudge::send(town, identity, &order) {
            Ok(_) => sent.nudged = true,
            Err(problem) => sent.problem = Some(problem),
        }
    }
}
