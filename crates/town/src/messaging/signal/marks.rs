//! States that `gt` itself notes on a container, because no hook reports them: paused, done, and an
//! interrupt that only the screen shows.

use super::{AFTER, Swapped, apply, ask, before_format, state_tags, unless, wake_delivery};
use crate::base::or_log::OrLog;
use crate::messaging::queue::MessageQueue;
use crate::records::events::Events;
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use gt_core::signal::ReportedState;
use gt_core::startup::tag;
use gt_core::state::{Reason, State, StateReport, StateSource};
use gt_core::{Identity, Problem, event, notify};
use gt_tmux::{Batch, Command, SessionId, SessionName, Target};

/// Marks the agent as paused, to continue later. The hooks of an interrupt do not change that (see
/// [`gt_core::signal::kept_states`]), nothing is typed meanwhile, and a new prompt ends it. Clears
/// the notes of an earlier pause. Returns true if the agent was not paused before.
pub fn mark_paused(town: &Town, identity: &Identity, reason: &str) -> Result<bool> {
    let target = container_id(town, identity)?;
    let now = town.clock().seconds();
    let is_paused = format!("#{{==:#{{{}}},{}}}", tag::STATE, State::Paused.as_str());
    let forget = unless(&target, &is_paused, forget_stop(&target));
    let tags = state_tags(&target, State::Paused, StateSource::Gt, now, reason);
    let batch = Batch::from(ask(target, &before_format()))
        .then(forget)
        .then_all(tags)
        .then_all(containers::pack(target));
    Ok(!was_paused(&apply(town, batch)?))
}

/// Ends a pause: the agent is at its prompt. Leaves an agent that is not paused as it is. Returns
/// whether it was paused.
pub fn clear_paused(town: &Town, identity: &Identity) -> Result<bool> {
    let target = container_id(town, identity)?;
    let now = town.clock().seconds();
    let tags = state_tags(
        &target,
        State::Idle,
        StateSource::Gt,
        now,
        "its pause is over",
    );
    let is_not = format!("#{{!=:#{{{}}},{}}}", tag::STATE, State::Paused.as_str());
    let batch = Batch::from(ask(target, &before_format())).then(unless(&target, &is_not, tags));
    let batch = batch.then_all(forget_stop(&target));
    let answer = apply(town, batch.then_all(containers::pack(target)))?;
    Ok(was_paused(&answer))
}

/// Marks the agent as done: it has submitted its work and stays. The hooks of that turn do not
/// change that, and a new prompt ends it. Does nothing if the agent has no container.
pub fn mark_done(town: &Town, identity: &Identity, reason: &str) -> Result<()> {
    let Some(container) = containers::of_agent(town, identity)? else {
        return Ok(());
    };
    let now = town.clock().seconds();
    let target = container.id();
    let tags = state_tags(&target, State::Done, StateSource::Gt, now, reason);
    let batch = Batch::from(ask(target, &before_format()));
    let batch = batch.then_all(tags).then_all(containers::pack(target));
    let batch = batch.then(ask(target, AFTER));
    let answer = apply(town, batch)?;
    let said = ReportedState {
        state: State::Done,
        reason: reason.into(),
        background: 0,
    };
    // The process that submits the work writes the event.
    Swapped::read(&answer).0.tell_people(town, &said);
    Ok(())
}

/// Notes an interrupt that the screen shows and that no hook has reported.
pub(crate) fn note_interrupt_on_screen(town: &Town, container: &Container, report: &StateReport) {
    if report.source == StateSource::Screen && report.reason == Some(Reason::Interrupted) {
        note_interrupt(town, container);
    }
}

/// Notes that a turn was interrupted, as seen on the screen, although its hooks reported that it
/// continues. Does nothing if anything has happened since the screen was read. Later readers read
/// the screen again, since no hook has reported it.
fn note_interrupt(town: &Town, container: &Container) {
    let town = &*container.home(town);
    let pane = container.pane();
    // Only if a hook set the state: the note then replaces it, and is not repeated.
    let is_told = StateSource::from_word(&pane.tag_state_source) == Some(StateSource::Hook);
    let Some(identity) = container.identity().filter(|_| is_told) else {
        return;
    };
    let is_other = |what: &str, seen: &str| format!("#{{!=:#{{{what}}},{seen}}}");
    let other = [
        is_other(tag::STATE, &pane.tag_state),
        is_other(tag::STATE_SOURCE, &pane.tag_state_source),
        is_other("window_activity", &pane.activity.to_string()),
    ];
    let [state, source, activity] = other;
    // The pane of an adopted program is also linked to a session of the person.
    let target: Target = match container.adopted() {
        Some(_) => container.id().into(),
        None => pane.pane.into(),
    };
    let other = format!("#{{||:{state},#{{||:{source},{activity}}}}}");
    let (idle, why) = (State::Idle, Reason::Interrupted);
    let mut tags = state_tags(&target, idle, StateSource::Gt, pane.activity, &why);
    tags.extend(containers::pack(target.clone()));
    // Of several concurrent readers, only one gets this answer.
    tags.push(ask(target.clone(), "noted"));
    let noted = apply(town, Batch::from(unless(&target, &other, tags)));
    // An interrupt that could not be noted is seen again.
    if noted.is_ok_and(|answer| !answer.trim().is_empty()) {
        let report = StateReport {
            reason: Some(why),
            ..StateReport::new(idle, StateSource::Screen)
        };
        let event = event::state_event(notify::NoticeKind::Done, &identity.address(), &report);
        let event = event.map(|event| event.with("session_id", pane.tag_session.clone()));
        Events::of(town).note(event.into_iter().collect());
    }
    if MessageQueue::of(town, identity).wants_deliverer()
        && let Ok(target) = SessionName::try_from(container.name())
    {
        let woken = wake_delivery(town, &target);
        woken.or_warn(format_args!(
            "messages to {identity} wait for the next command"
        ));
    }
}

fn was_paused(answer: &str) -> bool {
    Swapped::read(answer).0.before == Some(State::Paused)
}

/// Removes the notes of a pause: the turn that it stopped, and the resumer.
pub(super) fn forget_stop(target: &(impl Into<Target> + Clone)) -> [Command; 3] {
    use gt_core::startup::task_tag::{PUT_BACK, RESUMER, STOPPED};
    [STOPPED, PUT_BACK, RESUMER].map(|option| {
        let unset = Command::new("set-option").arg("-u");
        unset.target(target.clone()).arg(option)
    })
}

/// Returns the container of an agent; fails if it has none.
fn container_id(town: &Town, identity: &Identity) -> Result<SessionId> {
    let container = containers::of_agent(town, identity)?.ok_or_else(|| {
        Problem::not_found(format!("{identity} is not running"))
            .hint("`gt agents` lists those that do")
    })?;
    Ok(container.id())
}
