//! Notifies people that an agent waits, is done or has died, without a resident process.
//!
//! The process that causes an event detects it: a hook that changes the state tag
//! ([`crate::messaging::signal`]), the sync that records a death in the journal
//! ([`crate::lifecycle::sync`]), or an open monitor, for programs without hooks and programs beside
//! agents. Each can tell whether it is the first: tmux swaps the tag atomically, and the journal
//! records an end once. So each notification is sent once, and no list of sent ones is needed. The
//! same process writes the event to the log ([`crate::records::events`]), whether or not
//! notifications are enabled.
//!
//! No caller waits for a notification: `raise` starts a process that applies the town's `[notify]`
//! settings ([`deliver`]). External text reaches programs as arguments and variables, and never as
//! code.

mod bell;
mod held;
mod programs;

use crate::agents::states::AgentStateChange;
use crate::base::callback::{self, Call};
use crate::base::clock::Clock;
use crate::base::dnd;
use crate::base::or_log::OrLog;
use crate::base::settings::NotifySettings;
use crate::records::events::Events;
use crate::records::items::Work;
use crate::{Result, Town};
use gt_core::environment::belongs_to_an_agent;
use gt_core::escalation::Escalation;
use gt_core::mail::PERSON;
use gt_core::notify::{self, Notice, NoticeKind};
use gt_core::startup::tag;
use gt_core::work::{Item, WorkId};
use gt_core::{Identity, Role, beside, event};
use gt_tmux::{Command as Tmux, SessionName, Target};
use held::HeldNotice;

/// The variables that carry a notice.
pub mod variable {
    pub const AGENT: &str = "GT_NOTIFY_AGENT";
    pub const EVENT: &str = "GT_NOTIFY_EVENT";
    pub const REASON: &str = "GT_NOTIFY_REASON";
    pub const ITEM: &str = "GT_NOTIFY_ITEM";
    pub const TITLE: &str = "GT_NOTIFY_TITLE";
}

/// Notifies people of a new event if the settings ask for it. Does not wait.
pub(crate) fn raise(town: &Town, event: NoticeKind, agent: &str, reason: &str) {
    let settings = &town.settings().notify;
    if settings.is_on() && settings.on.contains(&event) && !is_quiet(settings) {
        begin_or_hold(town, event, agent, reason, None);
    }
}

/// Notifies people of a new event of a work item if the settings ask for it. The notice names the
/// item in place of an agent. Does not wait.
pub(crate) fn of_item(town: &Town, event: NoticeKind, item: &str, reason: &str) {
    let settings = &town.settings().notify;
    if settings.is_on() && settings.on.contains(&event) && !is_quiet(settings) {
        begin_or_hold(town, event, item, reason, Some(item));
    }
}

/// Notifies people of an escalation if its severity and the settings ask for it. A critical one
/// ignores the list of events and the quiet hours. Does not wait.
pub(crate) fn of_escalation(town: &Town, escalation: &Escalation) {
    let settings = &town.settings().notify;
    let route = escalation.severity.route();
    let event = NoticeKind::Escalation;
    let is_wanted = route.always || (settings.on.contains(&event) && !is_quiet(settings));
    if settings.is_on() && route.notifies(escalation.raised) && is_wanted {
        let agent = escalation.agent.as_ref().unwrap_or(&escalation.raised_by);
        let reason = format!("[{}] {}", escalation.severity, escalation.line());
        let item = escalation.item.as_deref();
        match route.always {
            true => begin(town, event, agent, &reason, item),
            false => begin_or_hold(town, event, agent, &reason, item),
        }
    }
}

/// Starts a process that delivers a notification. During a do-not-disturb of the person, the
/// notification is held.
fn begin_or_hold(town: &Town, event: NoticeKind, agent: &str, reason: &str, item: Option<&str>) {
    if dnd::read(town, PERSON).is_none() {
        return begin(town, event, agent, reason, item);
    }
    let notice = HeldNotice {
        event,
        agent: agent.to_owned(),
        reason: reason.to_owned(),
        item: item.map(str::to_owned),
    };
    held::add(town, notice).or_warn("a notification is lost");
}

/// Delivers the notifications that were held. Does not wait for them.
pub(crate) fn deliver_held(town: &Town) -> Result<()> {
    held::take_all(town, |it| {
        begin(town, it.event, &it.agent, &it.reason, it.item.as_deref());
    })
}

/// Returns the number of notifications that are held.
pub(crate) fn count_held(town: &Town) -> usize {
    held::read(town).map_or(0, |held| held.len())
}

/// Starts a process that delivers a notification.
fn begin(town: &Town, event: NoticeKind, agent: &str, reason: &str, item: Option<&str>) {
    let mut call = callback::call(town, &Call::DeliverNotice.words());
    for name in town.around().env.keys() {
        if belongs_to_an_agent(name) {
            call.env_remove(name);
        }
    }
    call.env("GT_TMUX_SOCKET", town.with_own_server().socket_text())
        .env(variable::EVENT, event.as_str())
        .env(variable::AGENT, agent)
        .env(variable::REASON, reason);
    if let Some(item) = item {
        call.env(variable::ITEM, item);
    }
    if let Err(error) = callback::begin(call) {
        tracing::error!("cannot start a notification: {error}");
    }
}

/// Notifies people of a state that only the screen shows, and writes the event. Several monitors
/// may see it: tmux swaps the tag atomically, so that each finds the state reported by another.
/// `at` is the time of this reading and `before` that of the previous one, in milliseconds.
pub(crate) fn notify_screen_state(town: &Town, moved: &AgentStateChange, at: i64, before: i64) {
    let Some(NoticeRecord { who, what, target }) = notice_record(moved) else {
        return;
    };
    let (set, tag) = match moved.window {
        Some(_) => (Tmux::new("set-option").arg("-p"), tag::BESIDE_TOLD),
        None => (Tmux::new("set-option"), tag::TOLD),
    };
    let swap = vec![
        Tmux::new("display-message")
            .arg("-p")
            .target(target.clone())
            .arg(format!("#{{{tag}}}")),
        set.target(target)
            .args([tag, &format!("{who} {what} {at}")]),
    ];
    // A container that is gone needs no notification.
    let Ok(told) = town.server().run(swap) else {
        return;
    };
    let is_told = told
        .trim_end()
        .strip_prefix(&format!("{who} "))
        .and_then(|told| told.split_once(' '))
        .and_then(|(told, when)| Some((told, when.parse::<i64>().ok()?)))
        // Another monitor read the screen later, or has seen the same change.
        .is_some_and(|(told, when)| when >= at || (beside::is_same(told, &what) && when >= before));
    if let (Some(event), false) = (event_of(moved), is_told) {
        write_down(town, event, moved);
        let reason = moved.now.reason.as_deref().unwrap_or_default();
        raise(town, event, &moved.agent.address(), reason);
    }
}

fn write_down(town: &Town, told: NoticeKind, moved: &AgentStateChange) {
    let event = event::state_event(told, &moved.agent.address(), &moved.now).map(|event| {
        event
            .with(
                "session_id",
                moved.session.map(|session| session.to_string()),
            )
            .with("window", moved.window.as_ref().map(|it| it.name.clone()))
    });
    Events::of(town).note(event.into_iter().collect());
}

/// The record of a reported state.
struct NoticeRecord {
    who: String,
    what: String,
    /// The tmux object that carries the tag.
    target: Target,
}

/// Returns the record for a state. An agent's is on its container, under its session; that of a
/// program beside it is on the program's pane, with its question, because it may ask several in a
/// row.
fn notice_record(moved: &AgentStateChange) -> Option<NoticeRecord> {
    let state = moved.now.state.as_str();
    match &moved.window {
        Some(window) => {
            let reason = moved.now.reason.as_deref().unwrap_or_default();
            Some(NoticeRecord {
                who: window.pane.to_string(),
                what: format!("{state}:{}", beside::normalise_reason(reason)),
                target: window.pane.into(),
            })
        }
        None => Some(NoticeRecord {
            who: moved.session?.to_string(),
            what: format!("{state}:"),
            target: SessionName::try_from(moved.container.as_str()).ok()?.into(),
        }),
    }
}

fn is_quiet(settings: &NotifySettings) -> bool {
    let now = Clock::default()
        .now()
        .to_zoned(jiff::tz::TimeZone::system())
        .time();
    let minute = u16::try_from(i32::from(now.hour()) * 60 + i32::from(now.minute()));
    let hours = settings.quiet_hours.as_ref();
    hours.is_some_and(|hours| hours.contain(minute.unwrap_or_default()))
}

/// Returns the event that a state change of an agent causes, if any.
pub fn event_of(moved: &AgentStateChange) -> Option<NoticeKind> {
    if moved.window.is_some() {
        return beside::event(moved.before, moved.now.state);
    }
    // A first observation is not a change.
    moved
        .before
        .and_then(|before| notify::notice_for_change(Some(before), &moved.now))
}

/// Returns whether a board should ring its own terminal for this change. With `bell = true`, the
/// notification rings the terminals of all tmux clients, so a board inside tmux does not ring.
pub fn board_rings(town: &Town, moved: &AgentStateChange) -> bool {
    let settings = &town.settings().notify;
    let is_mine = match settings.bell {
        Some(true) => town.around().var("TMUX").is_none(),
        Some(false) => false,
        None => true,
    };
    is_mine
        && event_of(moved).is_some_and(|event| settings.on.contains(&event))
        && !is_quiet(settings)
        && dnd::read(town, PERSON).is_none()
}

/// The result of one notification channel.
#[derive(Debug)]
pub struct ChannelResult {
    pub way: &'static str,
    /// Number of receivers. A bell has none if no terminal is attached.
    pub result: Result<usize>,
}

/// Sends a notice through all configured channels. Returns their results.
pub fn deliver(town: &Town, notice: &Notice) -> Vec<ChannelResult> {
    let settings = &town.settings().notify;
    let mut told = Vec::new();
    if settings.bell == Some(true) {
        told.push(ChannelResult {
            way: "bell",
            result: bell::ring(town),
        });
    }
    if settings.desktop {
        told.push(ChannelResult {
            way: "desktop",
            result: programs::desktop(town, notice).map(|()| 1),
        });
    }
    if let Some(command) = &settings.command {
        told.push(ChannelResult {
            way: "command",
            result: programs::command(town, command, notice).map(|()| 1),
        });
    }
    told
}

/// Sends a notice from an unattended process, and logs failures.
pub fn deliver_unwatched(town: &Town, notice: &Notice) {
    for told in deliver(town, notice) {
        if let Err(problem) = told.result {
            tracing::error!("{}: {}", told.way, problem.line());
        }
    }
}

/// Returns a notice with its work item: the given one, or else the agent's.
pub fn with_work(
    town: &Town,
    event: NoticeKind,
    agent: &str,
    reason: &str,
    item: Option<&WorkId>,
) -> Notice {
    let given = item.and_then(|id| Work::of(town).get(id).or_debug("no item"));
    let item = given.or_else(|| work_of(town, agent));
    Notice {
        event,
        agent: agent.to_owned(),
        reason: reason.to_owned(),
        title: item.as_ref().map(|item| item.title.clone()),
        item: item.map(|item| item.id.to_string()),
    }
}

fn work_of(town: &Town, agent: &str) -> Option<Item> {
    Identity::from_address(agent, town.registry()).and_then(|identity| {
        let work = Work::of(town);
        match (identity.role(), identity.name()) {
            (Role::Task, Some(id)) => work.get(&id.parse().ok()?).or_debug("no item"),
            _ => {
                let hooked = work.hooked(agent);
                let unknown = format_args!("the hook of {agent} is unknown");
                Some(hooked.or_warn(unknown)??.item)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::states::SideWindow;
    use gt_core::state::{State, StateReport, StateSource};

    #[test]
    fn consecutive_questions_and_those_of_other_panes_are_distinguished() {
        let asks = |pane: &str, reason: &str| {
            let moved = AgentStateChange {
                agent: Identity::task("gt-abc12", &gt_core::registry::Registry::default()),
                container: "gt-abc12-az".to_owned(),
                session: None,
                window: Some(SideWindow {
                    name: "merge".to_owned(),
                    pane: pane.parse().unwrap(),
                }),
                before: Some(State::Waiting),
                now: StateReport {
                    background: 0,
                    limit: None,
                    state: State::Waiting,
                    source: StateSource::Screen,
                    since: None,
                    reason: Some(reason.into()),
                },
            };
            let record = notice_record(&moved).unwrap();
            format!("{} {}", record.who, record.what)
        };
        let one = asks("%1", "merge asks: x?");
        assert_eq!(one, asks("%1", "merge asks: x?"));
        assert_eq!(one, asks("%1", "merge asks:   x?"));
        assert_ne!(one, asks("%1", "merge asks: y?"));
        assert_ne!(one, asks("%2", "merge asks: x?"));
        // The tag separates its fields with blanks.
        assert_eq!(one.split(' ').count(), 2);
    }
}
