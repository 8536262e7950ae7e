//! Checks activity that runs unattended: hook calls and automatic saves.

use super::DoctorFinding;
use crate::Town;
use crate::base::log::Log;
use crate::base::time::timestamp;
use crate::lifecycle::save;
use crate::records::events::Events;
use crate::terminal::containers;
use gt_core::state::State;
use jiff::SignedDuration;

/// Age in seconds after which a warning is not reported.
const RECENT_SECONDS: i64 = 60 * 60;

/// Reports recent warnings and errors of the log.
pub(super) fn check_log(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let recent = SignedDuration::from_secs(RECENT_SECONDS);
    let then = town.clock().now().checked_sub(recent).unwrap_or_default();
    let entries = match Log::of(town).warnings_since(then) {
        Ok(entries) => entries,
        Err(problem) => return vec![DoctorFinding::warning("hooks", problem.line())],
    };
    let Some(newest) = entries.last() else {
        return vec![DoctorFinding::ok(
            "hooks",
            "no warnings in the log of the last hour",
        )];
    };
    let count = match entries.len() {
        1 => "1 warning in the log of the last hour".to_owned(),
        many => format!("{many} warnings in the log of the last hour"),
    };
    let message = format!(
        "{count}, the newest of `gt {}`: {}",
        newest.command, newest.text
    );
    vec![DoctorFinding::warning("hooks", message).hint("`gt logs` shows them")]
}

/// Verifies the hash chain of the event log.
pub(super) fn check_events(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let finding = match Events::of(town).verify() {
        Ok(report) => match &report.broken {
            Some(found) => {
                let message = format!("the log is not as gt wrote it: {}", found.words());
                DoctorFinding::error("events", message)
                    .hint("`gt events verify --accept` accepts this, with an event")
            }
            None => DoctorFinding::ok("events", "the log is as gt wrote it"),
        },
        Err(problem) => DoctorFinding::of("events", &problem),
    };
    vec![finding]
}

/// Checks that the town saves itself. Starts and ends of turns request saves, so an old save is
/// normal while nothing happens.
pub(super) fn check_saves(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let settings = &town.settings().save;
    // A server that does not answer is reported by the check of the socket.
    let containers = containers::list(town).unwrap_or_default();
    let asked_at = containers
        .iter()
        .filter(|container| container.identity().is_some())
        .map(|container| {
            let pane = container.pane();
            let is_idle = pane.tag_state == State::Idle.as_str();
            let turn_ended = pane.tag_state_since.filter(|_| is_idle);
            turn_ended.unwrap_or_default().max(pane.created)
        })
        .max();
    let Some(asked_at) = asked_at.filter(|_| settings.auto) else {
        return Vec::new();
    };
    let every = i64::try_from(town.settings().save_interval().as_secs()).unwrap_or(i64::MAX);
    let newest = save::newest_at(town);
    let is_late = newest.is_none_or(|at| asked_at.saturating_sub(at) > every.max(RECENT_SECONDS));
    let told = newest.map_or_else(
        || "nothing was saved yet".to_owned(),
        |at| format!("the newest is of {}", timestamp(at)),
    );
    if !is_late || save::is_pending(town) {
        return vec![DoctorFinding::ok("saves", told)];
    }
    let message = format!("agents have worked since the last save: {told}");
    vec![DoctorFinding::warning("saves", message).hint("`gt save` shows why it cannot save")]
}
