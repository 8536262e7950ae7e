//! Builds the text that an agent gets at the start of a session.
//!
//! [`gather`] reads the state: data left to the agent, the item on its hook, and its role's text.
//! It changes nothing. [`begin`] is for the agent itself: it also pours the formula of the role, once
//! per session. After the agent has received the text, [`settle`] removes the data that was meant for
//! it alone.

mod sections;

use crate::agents::target;
use crate::base::or_log::OrLog;
use crate::catalog::{formulas, roles};
use crate::lifecycle::handoff;
use crate::records::events::Events;
use crate::records::items::{Hooked, Work};
use crate::terminal::containers::tmux_problem;
use crate::work::checkpoint::{self, SessionsAround};
use crate::work::molecule::{self, FormulaRequest};
use crate::{Result, Town};
use gt_core::checkpoint::Checkpoint;
use gt_core::event::Event;
use gt_core::handoff::Marker;
use gt_core::prime::{self, Composed, PrimeSource, PrimeState, Reminder, Section, Situation};
use gt_core::record::Record;
use gt_core::startup::tag;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, SessionName};
use std::time::{Duration, Instant};

/// Maximum wait for the journal's record of a session after its process has started.
const BEGINNING: Duration = Duration::from_millis(500);

/// The state of an agent.
#[derive(Debug)]
pub struct Primed {
    pub agent: Identity,
    /// The session that gets the text.
    pub session: Option<Record>,
    /// The previous session.
    pub before: Option<Record>,
    pub state: PrimeState,
    pub hooked: Option<Hooked>,
    /// The session's own checkpoint, or one that was left to it, with its age in seconds.
    pub checkpoint: Option<(Checkpoint, i64)>,
    /// The marker of a completed handoff.
    pub marker: Option<Marker>,
    /// Set if the agent knows its role and needs only a reminder.
    pub reminder: Option<Reminder>,
    pub sections: Vec<Section>,
    pub composed: Composed,
}

/// Returns the calling agent ([`target::default_agent`]). Fails if a variable names an unknown agent without
/// a session.
pub fn calling_agent(town: &Town) -> Result<Identity> {
    let agent = target::default_agent(town)?;
    let around = town.around();
    // A started agent certainly exists, and waits for the answer, so the check is skipped.
    if around.var("GT_ROLE").is_some() && around.var("GT_SESSION_UUID").is_none() {
        target::check_known(town, &agent)?;
    }
    Ok(agent)
}

/// Reads the state of an agent.
pub fn gather(town: &Town, agent: &Identity, source: PrimeSource) -> Result<Primed> {
    composed(town, read(town, agent, source)?)
}

/// Reads the state of the calling agent, after pouring the formula of its role if the session has
/// had no molecule yet. A failure to pour is logged: the agent still gets its text.
pub fn begin(town: &Town, agent: &Identity, source: PrimeSource) -> Result<Primed> {
    let primed = read(town, agent, source)?;
    if primed.reminder.is_none() {
        pour(town, &primed).or_warn(format_args!("the formula of {agent} is not poured"));
    }
    composed(town, primed)
}

/// Pours the formula of the agent's role. Work on the hook comes first.
fn pour(town: &Town, primed: &Primed) -> Result<()> {
    let agent = &primed.agent;
    let has_molecule = |session: &Record| session.molecule_id.is_some();
    if primed.hooked.is_some() || primed.session.as_ref().is_none_or(has_molecule) {
        return Ok(());
    }
    let role = roles::resolve(town, agent.role(), agent.rig())?.value;
    let Some(formula) = role.start.formula.filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    // An unfinished molecule of the previous session continues.
    if molecule::id(town, agent)?.is_some() {
        return Ok(());
    }
    let rig = agent.rig().map(|rig| ("rig".to_owned(), rig.to_owned()));
    let known = formulas::resolve(town, &formula, agent.rig())?.formula.vars;
    let request = FormulaRequest {
        formula: &formula,
        vars: rig
            .into_iter()
            .filter(|(name, _)| known.contains_key(name))
            .collect(),
        on: None,
    };
    molecule::attach(town, agent, request).map(drop)
}

fn composed(town: &Town, mut primed: Primed) -> Result<Primed> {
    primed.sections = sections::of(town, &primed)?;
    primed.composed = prime::compose(&primed.sections, town.settings().prime.budget);
    Ok(primed)
}

fn read(town: &Town, agent: &Identity, source: PrimeSource) -> Result<Primed> {
    let hooked = Work::of(town).hooked(&agent.address())?;
    let work = hooked.as_ref().and_then(Hooked::unit);
    let found = checkpoint::read(town, agent)?;
    let found = found.filter(|left| checkpoint::is_about(left, work.as_ref(), town.clock().now()));
    let marker = handoff::read_marker(town, agent)?;
    let own = session_of(town, agent)?;
    let named = marker.as_ref().map(|marker| marker.session.as_str());
    let look = || SessionsAround::around(town, own.as_deref(), found.as_ref(), named);
    let mut sessions = look()?;
    // A fast program calls before its start has recorded the session and its predecessor.
    let until = Instant::now() + town.deadline().at_most(BEGINNING);
    let is_unknown = |sessions: &SessionsAround| {
        own.as_deref()
            .is_some_and(|own| sessions.get(own).is_none())
    };
    while is_unknown(&sessions) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
        sessions = look()?;
    }
    let checkpoint = found.filter(|left| {
        let is_own = own.is_some() && left.session_id == own;
        is_own || sessions.left_to_current(left)
    });
    let session = own.as_deref().map(|id| {
        let known = sessions.get(id).cloned();
        known.unwrap_or_else(|| Record::about(id))
    });
    let before = sessions.before().cloned();
    let is_left = checkpoint
        .as_ref()
        .is_some_and(|it| sessions.left_to_current(it));
    let state = prime::state(&Situation {
        session: own.as_deref(),
        marker: marker.as_ref(),
        marked: named.and_then(|id| sessions.get(id)?.outcome),
        is_left,
        before: before.as_ref().and_then(|before| before.outcome),
        same_work: before.as_ref().is_some_and(|before| {
            let now = work.as_ref().map(WorkId::as_str);
            before.work_unit.as_deref() == now
        }),
        same_conversation: before.as_ref().is_some_and(|before| {
            let now = session
                .as_ref()
                .and_then(|session| session.harness_session_id.as_ref());
            now.is_some() && before.harness_session_id.as_ref() == now
        }),
        has_work: hooked.is_some(),
    });
    let checkpoint = checkpoint.map(|left| {
        let age = checkpoint::age(&left, town.clock().now());
        (left, age)
    });
    // The marker is from this session: a later session has not seen the compaction.
    let compacted = marker.as_ref().is_some_and(|marker| {
        marker.is_compaction() && own.as_deref() == Some(marker.session.as_str())
    });
    Ok(Primed {
        agent: agent.clone(),
        session,
        before,
        state,
        hooked,
        checkpoint,
        marker,
        reminder: source.reminder(compacted),
        sections: Vec::new(),
        composed: Composed::default(),
    })
}

/// Returns why a prompt needs the state: it is the first of its conversation in this session, or
/// the first since its context was compacted. For programs that take no text from a hook at the
/// start of a session, or take it too late.
pub fn due_with_prompt(town: &Town, conversation: &str) -> Result<Option<PrimeSource>> {
    let around = town.around();
    let container = around.var("GT_SESSION").unwrap_or_default();
    let target =
        SessionName::try_from(container).map_err(|error| Problem::usage(error.to_string()))?;
    let session = around.var("GT_SESSION_UUID").unwrap_or_default();
    let told = format!("{session} {conversation}");
    let ask = Command::new("display-message").arg("-p");
    let ask = ask.target(target.clone()).arg("#{@gt_primed}");
    let note = Command::new("set-option").target(target);
    let before = town
        .server()
        .run(
            Batch::new()
                .then(ask)
                .then(note.arg(tag::PRIMED).arg(&told)),
        )
        .map_err(|error| tmux_problem("cannot tag the container", error))?;
    if before.trim_end_matches('\n') != told {
        return Ok(Some(PrimeSource::Startup));
    }
    let marker = handoff::read_marker(town, &calling_agent(town)?)?;
    let compacted = marker.is_some_and(|marker| marker.is_compaction());
    Ok(compacted.then_some(PrimeSource::Compact))
}

/// Removes the data that was delivered, and records the delivery.
pub fn settle(town: &Town, primed: &Primed) -> Result<()> {
    if primed.marker.is_some() {
        handoff::remove_marker(town, &primed.agent)?;
    }
    let left = primed.checkpoint.as_ref().map(|(left, _)| left);
    let cuts = &primed.composed.cuts;
    let is_told = primed.state == PrimeState::CrashRecovery
        && !cuts
            .iter()
            .any(|cut| cut.section == "checkpoint" && cut.is_all);
    let left = left.filter(|_| is_told);
    let session = primed.session.as_ref().map(|session| session.id.as_str());
    if let Some(session) =
        session.filter(|session| left.is_some_and(|left| !left.is_known_to(session)))
    {
        checkpoint::mark_read(town, &primed.agent, session)?;
    }
    // Without the session id: every start has this event, so it does not belong in the timeline.
    let event = Event::new("prime", &primed.agent)
        .with("state", primed.state.as_str())
        .with("characters", primed.composed.text.chars().count())
        .by_gt();
    Events::of(town).note(vec![event]);
    Ok(())
}

/// Returns the session: the calling one, or the running one if another process calls.
fn session_of(town: &Town, agent: &Identity) -> Result<Option<String>> {
    let around = town.around();
    let is_own = around.var("GT_ROLE") == Some(agent.address().as_str());
    if let Some(session) = around.var("GT_SESSION_UUID").filter(|_| is_own) {
        return Ok(Some(session.to_owned()));
    }
    Ok(checkpoint::running_session(town, agent)?.map(|session| session.id))
}

#[cfg(test)]
mod tests;
