//! The table of event types. Each row holds all properties of one type.

use super::{Decay, Visibility};

/// A type of events, or all types with a common prefix.
#[derive(Clone, Copy, Debug)]
pub struct EventKind {
    /// The type, or `prefix_*`.
    pub pattern: &'static str,
    pub visibility: Visibility,
    pub ttl_seconds: u64,
    pub decay: Decay,
    /// The template of its line in the feed. `{name}` is a field of the payload, or `actor` or
    /// `type`. A part in brackets is omitted if one of its fields is missing.
    pub line: &'static str,
}

const DAY: u64 = 86_400;

const fn row(
    pattern: &'static str,
    visibility: Visibility,
    days: u64,
    decay: Decay,
    line: &'static str,
) -> EventKind {
    EventKind {
        pattern,
        visibility,
        ttl_seconds: days * DAY,
        decay,
        line,
    }
}

use Decay::{Flat, Rapid, Slow, Steady};
use Visibility::{Audit, Both};

/// All known types, one row each.
#[rustfmt::skip]
pub const KINDS: &[EventKind] = &[
    row("session_start", Both, 3, Steady, "{actor} began[ with {harness}][, after {parent_id}]"),
    row("session_end", Both, 3, Steady, "{actor} ended: {outcome}[ by {by}]"),
    row("session_death", Both, 30, Flat, "{actor} died[ with exit code {exit_code}]"),
    row("mass_death", Both, 90, Flat, "{count} agents died together: {agents}"),
    row("session_step_started", Both, 3, Steady, "{actor} began the step {step}[ ({ref})][ for {target}]"),
    row("session_step_completed", Both, 3, Steady, "{actor} finished the step {step}[ for {target}][ after {seconds} s]"),
    row("question", Both, 3, Steady, "{actor}: {reason}"),
    row("answer", Both, 3, Steady, "{actor} answered {target}: option {option}[ in the window {window}]"),
    row("keys", Audit, 14, Slow, "{actor} sent {count} keys to {target}"),
    row("work_created", Audit, 14, Slow, "{actor} made {bead}[ for {target}]"),
    row("work_updated", Audit, 14, Slow, "{actor} changed {bead}[, assigned to {target}][: {fields}]"),
    row("work_closed", Audit, 14, Slow, "{actor} closed {bead}[, assigned to {target}]"),
    row("work_reopened", Audit, 14, Slow, "{actor} reopened {bead}"),
    row("mail_archived", Audit, 14, Slow, "{actor} archived mail to {target}"),
    row("command", Audit, 14, Slow, "{actor} ran {ran}[ {names}][, which failed: {failed}]"),
    row("api_call", Audit, 30, Flat, "{actor} called {operation} as {credential}[ for {target}], with the status {status}"),
    row("denied", Both, 30, Flat, "{actor} was refused: {reason}"),
    row("turn_end", Both, 3, Steady, "{actor} ended its turn[: {reason}]"),
    row("turn_failed", Both, 3, Steady, "{actor} failed in its turn[: {reason}]"),
    row("usage_limit", Both, 3, Steady, "{actor} reached a usage limit[: {reason}]"),
    row("account_switch", Both, 14, Slow, "{actor} moved {target} to the account {account}[: {reason}][, which failed: {error}]"),
    row("nudge", Both, 3, Steady, "{actor} sent {target} a message[, which waits: {reason}]"),
    row("handoff", Both, 7, Steady, "{actor} handed off[ for {target}][: {subject}]"),
    row("hook", Both, 14, Slow, "{actor} hooked {bead}[ for {target}]"),
    row("unhook", Both, 14, Slow, "{actor} unhooked {bead}[ for {target}]"),
    row("sling", Both, 14, Slow, "{actor} assigned {bead} to {target}"),
    row("spawn", Both, 14, Slow, "{actor} made {polecat}[ for {bead}]"),
    row("done", Both, 14, Slow, "{actor} finished {bead}[ for {target}][ on {branch}]"),
    row("task_start", Both, 14, Slow, "{actor} started {target}[ with {harness}]"),
    row("init_failed", Both, 14, Slow, "{actor} could not be set up[: {reason}]"),
    row("paused", Both, 14, Slow, "{actor} paused {target}[: {reason}]"),
    row("resumed", Both, 14, Slow, "{actor} resumed[ {target}][ in a {conversation} conversation]"),
    row("update_up_to_date", Both, 14, Slow, "{actor} updated {target}: {base} has nothing new"),
    row("update_merged", Both, 14, Slow, "{actor} merged {base} into {target}[, commits: {commits}]"),
    row("update_conflict", Both, 14, Slow, "{actor} merged {base} into {target}, with conflicts in {files}[ and {more} more]"),
    row("cleanup", Both, 14, Slow, "{actor} cleaned {target} up[, kept {saved}]"),
    row("pull_request", Both, 14, Slow, "{actor} opened a pull request for {bead}[: {url}]"),
    row("server_start", Both, 3, Steady, "{actor} started the server {server} for {target}[ on port {port}]"),
    row("server_stop", Both, 3, Steady, "{actor} stopped the server {server} for {target}"),
    row("server_failed", Both, 3, Steady, "{actor} lost its server {server}[, which ended with exit code {exit_code}][, which was killed by signal {signal}][: it {reason}]"),
    row("background_failed", Both, 14, Slow, "{actor} has a background task that failed: {task}[, with exit code {exit_code}][, killed by signal {signal}]"),
    row("molecule_attached", Both, 14, Slow, "{actor} attached the molecule {molecule} ({formula})[ for {bead}][, for {target}]"),
    row("molecule_done", Both, 14, Slow, "{actor} finished the molecule {molecule} ({formula})[ for {target}]"),
    row("molecule_detached", Both, 14, Slow, "{actor} gave up the molecule {molecule} ({formula})[ for {target}][, {done} of {total} steps done]"),
    row("molecule_*", Both, 14, Slow, "{actor}: {type} {molecule}[ ({formula})][, {done} of {total} steps done]"),
    row("schedule_queued", Both, 14, Slow, "{actor} queued {bead}[ for {rig}][: {reason}]"),
    row("schedule_removed", Both, 14, Slow, "{actor} removed {bead} from the schedule"),
    row("schedule_failed", Both, 14, Slow, "{actor} could not start {bead}[ in {rig}][: {reason}]"),
    row("schedule_recurring", Both, 14, Slow, "{actor} queued {bead}[ for {rig}]: the recurring work {name} ({formula}) was due"),
    row("schedule_skipped", Both, 14, Slow, "{actor} skipped a run of the recurring work {name}[: {reason}]"),
    row("schedule_added", Both, 14, Slow, "{actor} added the recurring work {name} ({formula}): {cron}"),
    row("schedule_dropped", Both, 14, Slow, "{actor} removed the recurring work {name}"),
    row("batch_landed", Both, 30, Flat, "all {total} items of {bead} have landed[: {title}]"),
    row("error", Both, 14, Slow, "{actor} failed[: {reason}]"),
    row("escalation_raised", Both, 14, Slow, "{actor} asks for help[ for {target}][ with {bead}][: {reason}]"),
    row("escalation_again", Both, 14, Slow, "{actor} asks for help again[ for {target}][ with {bead}][: {reason}]"),
    row("escalation_acknowledged", Both, 14, Slow, "{actor} acknowledged {escalation}[: {message}]"),
    row("escalation_closed", Both, 14, Slow, "{actor} closed {escalation}[: {message}][ ({reason})]"),
    row("escalation_*", Both, 14, Slow, "{actor}: {type}[: {reason}]"),
    row("budget_warning", Both, 14, Slow, "most of a budget is spent: {reason}"),
    row("budget_exhausted", Both, 30, Flat, "a budget is exhausted: {reason}"),
    row("budget_raised", Both, 30, Flat, "{actor} raised the budget {scope} by {amount}"),
    row("estop", Both, 30, Flat, "{actor} made an emergency stop[ of {rig}][: {reason}]"),
    row("thaw", Both, 30, Flat, "{actor} ended the emergency stop[ of {rig}]"),
    row("dnd", Both, 3, Steady, "do not disturb for {target} is {state}[ until {until}], by {actor}"),
    row("mail", Both, 30, Flat, "{actor} wrote to {to}[: {subject}]"),
    row("merge_aborted", Both, 30, Flat, "{actor} aborted the merge in {target}[, with conflicts in {files}][ and {more} more]"),
    row("merge_merged", Both, 30, Flat, "{actor} merged {branch}[ as {commit}]"),
    row("merge_conflict", Both, 30, Flat, "{actor} found conflicts in {branch}[: {reason}][, which {repair_agent} repairs]"),
    row("merge_failed", Both, 30, Flat, "{actor} could not merge {branch}[: {reason}][, which {repair_agent} repairs]"),
    row("project_allow", Both, 30, Flat, "{actor} approved the commands of {rig}"),
    row("project_deny", Both, 30, Flat, "{actor} withdrew the approved commands of {rig}"),
    row("merge_held", Both, 30, Flat, "{actor} waits for the approval of {branch}[: {reason}]"),
    row("merge_approved", Both, 30, Flat, "{actor} approves {branch}[: {reason}]"),
    row("merge_rejected", Both, 30, Flat, "{actor} rejects {branch}[: {reason}]"),
    row("merge_withdrawn", Both, 30, Flat, "{actor} does not merge {branch}[: {reason}]"),
    row("merge_waiting", Both, 30, Flat, "{actor} has not merged {branch} yet[: {reason}]"),
    row("merge_*", Both, 30, Flat, "{actor}: {type}[ {branch}][: {reason}]"),
    row("prime", Audit, 1, Rapid, "{actor} was primed: {state}"),
    row("patrol_action", Both, 14, Slow, "the patrol: {action}[ {target}][ for {bead}]: {reason}[, which failed: {error}]"),
    row("role_woken", Both, 14, Slow, "{target} has something to decide[: {matters}][ ({how})][, and was not notified: {error}]"),
    row("patrol_*", Audit, 1, Rapid, "{actor}: {type}[: {reason}]"),
    row("polecat_checked", Audit, 1, Rapid, "{actor} checked {polecat}[: {status}]"),
    row("polecat_nudged", Audit, 1, Rapid, "{actor} nudged {polecat}[: {reason}]"),
    row("events_accepted", Both, 30, Flat, "{actor} accepted a break of the event log: {reason}"),
    row("krc_prune", Audit, 1, Rapid, "{removed} old events were dropped"),
];

/// The row for all other types.
pub const OTHER: EventKind = row("*", Both, 7, Steady, "{actor}: {type}[: {message}]");

/// Returns the row of a type.
pub fn kind_of(kind: &str) -> &'static EventKind {
    let pattern = super::best(KINDS.iter().map(|row| row.pattern), kind);
    KINDS
        .iter()
        .find(|row| Some(row.pattern) == pattern)
        .unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_reads_well_about_its_own_target() {
        for row in KINDS {
            let kind = row.pattern.replace('*', "x");
            let event =
                crate::event::Event::new(&kind, crate::caller::Caller::Gt).with("target", "x");
            let line = event.line_about("x");
            for wrong in ["up it", "of it", "back it", "off it"] {
                assert!(!line.contains(wrong), "{}: {line}", row.pattern);
            }
        }
    }

    #[test]
    fn the_documented_table_is_this_one() {
        let text = include_str!("../../../../docs/events.md");
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.split(" | ").collect())
            .filter(|cells: &Vec<&str>| cells.len() == 5)
            .collect();
        for kind in KINDS {
            let name = format!("`{}`", kind.pattern);
            assert!(text.contains(&name), "{name} is not documented");
            let named: Vec<&Vec<&str>> = rows.iter().filter(|row| row[0].contains(&name)).collect();
            assert!(named.len() < 2, "{name} has several rows");
            for row in named {
                let days = kind.ttl_seconds / DAY;
                let kept = format!("{days} day{}", if days == 1 { "" } else { "s" });
                assert_eq!((row[1], row[2]), (&*kept, kind.decay.as_str()), "{name}");
            }
        }
        // Every documented type has the retention of the table, including a type that only matches
        // a pattern.
        for row in &rows {
            for name in row[0].split('`').skip(1).step_by(2) {
                let days = kind_of(name).ttl_seconds / DAY;
                assert!(row[1].starts_with(&format!("{days} day")), "{name}");
            }
        }
    }

    #[test]
    fn a_type_is_found_by_its_name_or_its_beginning() {
        assert_eq!(kind_of("nudge").pattern, "nudge");
        assert_eq!(kind_of("merge_started").pattern, "merge_*");
        assert_eq!(kind_of("merge").pattern, "*");
        assert_eq!(kind_of("nudges").pattern, "*");
    }
}
