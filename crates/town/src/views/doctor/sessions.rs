//! Checks the recorded sessions: the journal, the index, and the clock that dated both.

use super::DoctorFinding;
use crate::Town;
use crate::records::sessions::{JournalState, Sessions};
use gt_core::Problem;
use jiff::{SignedDuration, Timestamp};

/// Difference beyond which a future time means a wrong clock.
const AHEAD: SignedDuration = SignedDuration::from_mins(5);

/// Checks that every line of the journal can be read and the index agrees with it.
pub(super) fn check_sessions(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let sessions = Sessions::of(town);
    let path = sessions.journal_path().display();
    if sessions.journal_path().is_dir() {
        let message = format!("{path} is a folder: no session can be written down");
        let hint = "move it away; `gt doctor` then says whether the journal can be restored";
        return vec![DoctorFinding::error("journal", message).hint(hint)];
    }
    if let Some(problem) = sessions.lost_journal() {
        return vec![check_lost(&sessions, &problem, fix)];
    }
    let state = match sessions.examine_journal() {
        Ok(Some(state)) => state,
        Ok(None) => return vec![DoctorFinding::ok("journal", "nothing is written yet")],
        Err(problem) => return vec![DoctorFinding::of("journal", &problem)],
    };
    let mut findings = vec![check_lines(&sessions, &state, fix)];
    findings.push(check_index(&sessions, state.sessions, fix));
    findings.extend(check_clock(&state, town.clock().now()));
    findings
}

/// Reports a missing journal whose index still exists; a fix restores it.
fn check_lost(sessions: &Sessions, problem: &Problem, fix: bool) -> DoctorFinding {
    if !fix {
        return DoctorFinding::of("journal", problem).fixable();
    }
    match sessions.restore_journal() {
        Ok(records) => {
            let message = format!(
                "the journal was missing: wrote {} from the index; what the index had not read \
                 yet is lost",
                count(records as usize)
            );
            DoctorFinding::ok("journal", message)
        }
        Err(problem) => DoctorFinding::of("journal", &problem),
    }
}

fn check_lines(sessions: &Sessions, state: &JournalState, fix: bool) -> DoctorFinding {
    let path = sessions.journal_path().display();
    let Some(first) = state.damages.first() else {
        return DoctorFinding::ok("journal", format!("{} in {path}", count(state.sessions)));
    };
    let message = format!(
        "unreadable lines in {path}: {}; the first is line {}: {}",
        state.damages.len(),
        first.line,
        first.reason
    );
    if !fix {
        let hint = "`gt doctor --fix` moves them into index.damaged beside it";
        return DoctorFinding::error("journal", message)
            .hint(hint)
            .fixable();
    }
    match sessions.set_aside_damaged() {
        Ok((count, aside)) => {
            let aside = aside.display();
            DoctorFinding::ok(
                "journal",
                format!("moved damaged lines into {aside}: {count}"),
            )
        }
        Err(problem) => DoctorFinding::of("journal", &problem),
    }
}

fn check_index(sessions: &Sessions, records: usize, fix: bool) -> DoctorFinding {
    let compared = match fix {
        true => sessions.compare_now(),
        false => sessions.index_disagreement(),
    };
    match compared {
        Ok(None) => DoctorFinding::ok("index", format!("{}, as in the journal", count(records))),
        Ok(Some(reason)) if fix => DoctorFinding::ok("index", format!("{reason}; rebuilt now")),
        Ok(Some(reason)) => DoctorFinding::warning("index", reason)
            .hint("`gt sync` or `gt doctor --fix` rebuilds it")
            .fixable(),
        Err(problem) => DoctorFinding::of("index", &problem),
    }
}

fn count(sessions: usize) -> String {
    match sessions {
        1 => "1 session".to_owned(),
        many => format!("{many} sessions"),
    }
}

/// Reports a session in the future: the clock was ahead then, or is behind now.
fn check_clock(state: &JournalState, now: Timestamp) -> Option<DoctorFinding> {
    let newest: Timestamp = state.newest.as_deref()?.parse().ok()?;
    if newest.duration_since(now) <= AHEAD {
        return None;
    }
    let message = format!("the newest session is of {newest}, and now it is {now:.0}");
    Some(
        DoctorFinding::warning("clock", message)
            .hint("check the machine's clock; sessions are sorted by its times"),
    )
}
