//! Details of a reported state that only the screen shows: the question, the limit, the error.

use super::State;
use super::report::StateReport;
use crate::limit::Limit;
use crate::screen::{self, Classification};

/// Adds the text of a reported question, as the screen shows it.
pub(super) fn with_question(report: StateReport, shown: Classification) -> StateReport {
    let is_asked = shown.state == State::Waiting && mentions_question(&shown.reason);
    let is_known = report.reason.as_deref().is_some_and(mentions_question);
    match is_asked && !is_known {
        true => StateReport {
            reason: Some(shown.reason.into()),
            ..report
        },
        false => report,
    }
}

/// Adds the reason of a retried request, which shows only in the status line of a busy program.
pub(super) fn with_retry(report: StateReport, shown: Classification) -> StateReport {
    match shown.rule == screen::RETRYING_RULE {
        true => StateReport {
            reason: Some(shown.reason.into()),
            ..report
        },
        false => report,
    }
}

/// Replaces a missing reason, or a bare error code from a hook, by the message on the screen.
pub(super) fn with_reason(report: StateReport, shown: Classification) -> StateReport {
    match report.reason.as_deref().is_none_or(is_bare_code) {
        true => StateReport {
            reason: Some(shown.reason.into()),
            ..report
        },
        false => report,
    }
}

/// Adds whether the program continues by itself after the limit, which shows only on its screen.
pub(super) fn with_limit(report: StateReport, shown: Classification) -> StateReport {
    let shown_limit = shown.limit.unwrap_or_default();
    let told = report.limit.unwrap_or_default();
    let limit = Limit {
        reset: told.reset.clone().or(shown_limit.reset.clone()),
        continues: shown_limit.continues,
    };
    let says_the_same = told.reset.is_none() || told.reset == shown_limit.reset;
    let reason = match report.reason {
        Some(reason) if !says_the_same => limit.describe(&reason),
        _ => shown.reason,
    };
    StateReport {
        reason: Some(reason.into()),
        limit: Some(limit),
        ..report
    }
}

pub(super) fn is_bare_code(reason: &str) -> bool {
    !reason.contains(char::is_whitespace)
}

/// Prefix of a reason that quotes the question.
const ASKS: &str = "asks: ";

pub(crate) fn mentions_question(reason: &str) -> bool {
    reason.starts_with(ASKS)
}
