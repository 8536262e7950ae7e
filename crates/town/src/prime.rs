//! Telling an agent how things stand when a life of it begins.
//!
//! [`gather`] reads what there is: what was left to the agent, what is on its hook, what
//! its role is told. It changes nothing. When the agent has been told, [`settle`] puts
//! away what was meant for it alone.

mod sections;

use crate::checkpoint::{self, Lives};
use crate::containers::tmux_problem;
use crate::events::Events;
use crate::handoff;
use crate::work::{Hooked, Work};
use crate::{Result, Town, target};
use gt_core::checkpoint::Checkpoint;
use gt_core::event::Event;
use gt_core::handoff::Marker;
use gt_core::prime::{self, Composed, Reminder, Section, Situation, Source, State};
use gt_core::record::Record;
use gt_core::startup::tag;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, SessionName};
use std::time::{Duration, Instant};

/// So long after its process a life may be written down.
const BEGINNING: Duration = Duration::from_millis(500);

/// How things stand for an agent.
#[derive(Debug)]
pub struct Primed {
    pub agent: Identity,
    /// The life that is told.
    pub life: Option<Record>,
    /// The one before it.
    pub before: Option<Record>,
    pub state: State,
    pub hooked: Option<Hooked>,
    /// The life's own checkpoint, or one that was left to it; and its age in seconds.
    pub checkpoint: Option<(Checkpoint, i64)>,
    /// The marker of a handoff that has happened.
    pub marker: Option<Marker>,
    /// It knows who it is, and is only reminded.
    pub reminder: Option<Reminder>,
    pub sections: Vec<Section>,
    pub composed: Composed,
}

/// The agent that asks ([`target::own`]). One that a variable names without a session must be
/// known.
pub fn who(town: &Town) -> Result<Identity> {
    let agent = target::own(town)?;
    let around = town.around();
    // One that was started is sure to be there, and waits for the answer.
    if around.var("GT_ROLE").is_some() && around.var("GT_SESSION_UUID").is_none() {
        target::check_known(town, &agent)?;
    }
    Ok(agent)
}

/// Reads how things stand.
pub fn gather(town: &Town, agent: &Identity, source: Source) -> Result<Primed> {
    let hooked = Work::of(town).hooked(&agent.address())?;
    let work = hooked.as_ref().and_then(Hooked::unit);
    let found = checkpoint::read(town, agent)?;
    let found = found.filter(|left| checkpoint::is_about(left, work.as_ref()));
    let marker = handoff::read_marker(town, agent)?;
    let own = life_of(town, agent)?;
    let named = marker.as_ref().map(|marker| marker.session.as_str());
    let look = || Lives::around(town, own.as_deref(), found.as_ref(), named);
    let mut lives = look()?;
    // A quick program asks before its start has written down that it lives, and after whom.
    let until = Instant::now() + town.patience().at_most(BEGINNING);
    let is_unknown = |lives: &Lives| own.as_deref().is_some_and(|own| lives.get(own).is_none());
    while is_unknown(&lives) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
        lives = look()?;
    }
    let checkpoint = found.filter(|left| {
        let is_own = own.is_some() && left.session_id == own;
        is_own || lives.have_left(left)
    });
    let life = own.as_deref().map(|id| {
        let known = lives.get(id).cloned();
        known.unwrap_or_else(|| Record::about(id))
    });
    let before = lives.before().cloned();
    let is_left = checkpoint.as_ref().is_some_and(|it| lives.have_left(it));
    let state = prime::state(&Situation {
        life: own.as_deref(),
        marker: marker.as_ref(),
        marked: named.and_then(|id| lives.get(id)?.outcome),
        is_left,
        before: before.as_ref().and_then(|before| before.outcome),
        same_work: before.as_ref().is_some_and(|before| {
            let now = work.as_ref().map(WorkId::as_str);
            before.work_unit.as_deref() == now
        }),
        same_conversation: before.as_ref().is_some_and(|before| {
            let now = life
                .as_ref()
                .and_then(|life| life.harness_session_id.as_ref());
            now.is_some() && before.harness_session_id.as_ref() == now
        }),
        has_work: hooked.is_some(),
    });
    let checkpoint = checkpoint.map(|left| {
        let age = checkpoint::age(&left);
        (left, age)
    });
    // Left by this very life: one that began since knows nothing of it.
    let compacted = marker.as_ref().is_some_and(|marker| {
        marker.is_compaction() && own.as_deref() == Some(marker.session.as_str())
    });
    let mut primed = Primed {
        agent: agent.clone(),
        life,
        before,
        state,
        hooked,
        checkpoint,
        marker,
        reminder: source.reminder(compacted),
        sections: Vec::new(),
        composed: Composed::default(),
    };
    primed.sections = sections::of(town, &primed)?;
    primed.composed = prime::compose(&primed.sections, town.settings().prime.budget);
    Ok(primed)
}

/// Whether a prompt is the first of its conversation in this life, or the first since its
/// context was compacted, and why it is then to be told how things stand. For programs
/// that take no words from a hook when a session begins, or too late.
pub fn due_with_prompt(town: &Town, conversation: &str) -> Result<Option<Source>> {
    let around = town.around();
    let container = around.var("GT_SESSION").unwrap_or_default();
    let target =
        SessionName::try_from(container).map_err(|error| Problem::usage(error.to_string()))?;
    let life = around.var("GT_SESSION_UUID").unwrap_or_default();
    let told = format!("{life} {conversation}");
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
        return Ok(Some(Source::Startup));
    }
    let marker = handoff::read_marker(town, &who(town)?)?;
    let compacted = marker.is_some_and(|marker| marker.is_compaction());
    Ok(compacted.then_some(Source::Compact))
}

/// Puts away what has been told, and notes that it was.
pub fn settle(town: &Town, primed: &Primed) -> Result<()> {
    if primed.marker.is_some() {
        handoff::remove_marker(town, &primed.agent)?;
    }
    let left = primed.checkpoint.as_ref().map(|(left, _)| left);
    let cuts = &primed.composed.cuts;
    let is_told = primed.state == State::CrashRecovery
        && !cuts
            .iter()
            .any(|cut| cut.section == "checkpoint" && cut.is_all);
    let left = left.filter(|_| is_told);
    let life = primed.life.as_ref().map(|life| life.id.as_str());
    if let Some(life) = life.filter(|life| left.is_some_and(|left| !left.is_known_to(life))) {
        checkpoint::note_told(town, &primed.agent, life)?;
    }
    // Without the life's id: it is a part of every beginning, and worth no line in one.
    let event = Event::new("prime", &primed.agent)
        .with("state", primed.state.word())
        .with("characters", primed.composed.text.chars().count())
        .by_gt();
    Events::of(town).note(vec![event]);
    Ok(())
}

/// The life that is meant: the one that asks, or the one that runs when somebody else does.
fn life_of(town: &Town, agent: &Identity) -> Result<Option<String>> {
    let around = town.around();
    let is_own = around.var("GT_ROLE") == Some(agent.address().as_str());
    if let Some(life) = around.var("GT_SESSION_UUID").filter(|_| is_own) {
        return Ok(Some(life.to_owned()));
    }
    Ok(checkpoint::running_life(town, agent)?.map(|life| life.id))
}
