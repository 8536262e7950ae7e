//! Handoffs from one session to the next, as values.
//!
//! A session leaves two things to the next one: a message with the state of the work, and a marker
//! that says that the handoff is done. The marker is needed because the request for a handoff may
//! still be part of a conversation that continues.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// How a session hands off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandoffMode {
    /// A new session with a new conversation.
    #[default]
    Normal,
    /// Saves the state only: the same session continues, after its context was compacted.
    Auto,
    /// A new session that continues the same conversation.
    Cycle,
}

/// The reason for a handoff because the context is full.
pub const COMPACTION: &str = "compaction";

/// The marker for the next session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The session that handed off.
    pub session: String,
    pub container: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default)]
    pub mode: HandoffMode,
    /// The message with the state of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "letter")]
    pub mail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The branch of the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The harness of the next session, if it differs from the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// RFC 3339, in UTC.
    pub at: String,
}

impl Marker {
    /// Returns whether a different session left the marker, in order to end. If that session ended
    /// as handed off, the handoff is complete.
    pub fn is_from_before(&self, session: Option<&str>) -> bool {
        self.mode != HandoffMode::Auto && session != Some(self.session.as_str())
    }

    pub fn is_compaction(&self) -> bool {
        self.reason.as_deref() == Some(COMPACTION)
    }
}

/// Returns the seconds that are left until a session may hand off, if any. The cooldown prevents
/// an endless chain of handoffs. A negative age means that the clock was set back: the real age is
/// unknown, so the handoff is allowed.
pub fn too_soon(age_seconds: i64, cooldown_seconds: i64) -> Option<i64> {
    (0..cooldown_seconds)
        .contains(&age_seconds)
        .then(|| cooldown_seconds - age_seconds)
}

/// The state that was found at a handoff.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Collected {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Changed files as git reports them.
    pub changed_files: Vec<String>,
    /// Commits that no remote has, one line each. This list and the lists below hold one entry
    /// more than is shown if there are more.
    pub unpushed: Vec<String>,
    /// Why the state of the worktree is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The item on the agent's hook, as one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooked: Option<String>,
    pub in_progress: Vec<String>,
    pub ready: Vec<String>,
    pub inbox: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub molecule: Option<String>,
}

/// Heading of the items that are not assigned.
const READY: &str =
    "Ready for any agent, and not yours unless you are given one (`gt hook ITEM` takes one up)";

/// Maximum number of lines of one kind. More would only use up the reader's context.
pub const MAX_LINES: usize = 20;

impl Collected {
    /// Returns warnings for a person before the handoff, about work that exists only here.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match self.changed_files.len() {
            0 => {}
            1 => warnings.push("1 changed file".to_owned()),
            number => warnings.push(format!("{number} changed files")),
        }
        match self.unpushed.len() {
            0 => {}
            1 => warnings.push("1 commit that no remote has".to_owned()),
            number if number > MAX_LINES => {
                warnings.push(format!("more than {MAX_LINES} commits that no remote has"));
            }
            number => warnings.push(format!("{number} commits that no remote has")),
        }
        if let Some(why) = &self.unknown {
            warnings.push(format!("a worktree whose condition is unknown: {why}"));
        }
        warnings
    }

    /// Formats the state as a section of the handoff message.
    pub fn text(&self) -> String {
        let mut text = String::from("## State at the handoff\n");
        let one = |text: &mut String, what: &str, value: &Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{what}: {value}");
            }
        };
        one(&mut text, "Branch", &self.branch);
        one(&mut text, "On the hook", &self.hooked);
        one(&mut text, "Molecule", &self.molecule);
        one(
            &mut text,
            "How the worktree stands is not known",
            &self.unknown,
        );
        let count = self.changed_files.len().saturating_sub(MAX_LINES);
        let more = format!("and {count} more");
        list(&mut text, "Changed files", &self.changed_files, &more);
        for (what, lines) in [
            ("Commits that no remote has", &self.unpushed),
            ("In progress", &self.in_progress),
            (READY, &self.ready),
            ("Inbox", &self.inbox),
        ] {
            list(&mut text, what, lines, "and more");
        }
        text
    }
}

fn list(text: &mut String, what: &str, lines: &[String], more: &str) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "{what}:");
    for line in lines.iter().take(MAX_LINES) {
        let _ = writeln!(text, "- {line}");
    }
    if lines.len() > MAX_LINES {
        let _ = writeln!(text, "- {more}");
    }
}

/// Heading of the earlier message that a new message carries along.
const CARRIED: &str = "## The message before this one";

/// The heading in messages of earlier versions.
const CARRIED_BEFORE: &str = "## The letter before this one";

/// Returns the body of a handoff message by a session that continues. The message replaces
/// `before`, which is either the message that was left to this session and still applies, or the
/// session's own earlier message (`is_own`). Of an own message only the carried part is kept; the
/// rest is outdated.
pub fn with_earlier_message(body: &str, before: &str, is_own: bool) -> String {
    let body = body.trim_end();
    let carried = before.split_once(CARRIED);
    let carried = carried.or_else(|| before.split_once(CARRIED_BEFORE));
    let earlier = match (carried, is_own) {
        (Some((_, carried)), true) => carried.trim(),
        (None, true) => "",
        // One message back is enough: the part that it carried is more than a session old.
        (Some((own, _)), false) => own.trim(),
        (None, false) => before.trim(),
    };
    match earlier {
        "" => body.to_owned(),
        earlier => format!("{body}\n\n{CARRIED}\n\n{earlier}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_is_for_the_next_session() {
        let marker = Marker {
            session: "a".into(),
            ..Marker::default()
        };
        assert!(marker.is_from_before(Some("b")));
        assert!(marker.is_from_before(None));
        assert!(!marker.is_from_before(Some("a")));
        let auto = Marker {
            mode: HandoffMode::Auto,
            ..marker
        };
        assert!(!auto.is_from_before(Some("b")), "no session has ended");
    }

    #[test]
    fn session_must_last_before_it_hands_over() {
        assert_eq!(too_soon(60, 60), None);
        assert_eq!(too_soon(10, 60), Some(50));
        assert_eq!(too_soon(-5, 60), None, "a clock that was set back");
        assert_eq!(too_soon(-315_360_000, 60), None);
        assert_eq!(too_soon(0, 0), None);
    }

    #[test]
    fn text_of_an_earlier_session_is_carried_once() {
        let first = with_earlier_message("State 1\n", "The roof is open.", false);
        assert_eq!(first, format!("State 1\n\n{CARRIED}\n\nThe roof is open."));
        let second = with_earlier_message("State 2", &first, true);
        assert_eq!(second, first.replace("State 1", "State 2"));
        // The next session gets the message of the session before it, and no older one.
        let third = with_earlier_message("State 3", &second, false);
        assert_eq!(third, format!("State 3\n\n{CARRIED}\n\nState 2"));
        assert_eq!(with_earlier_message("State", "Old state", true), "State");
        assert_eq!(with_earlier_message("State", "", false), "State");
    }

    #[test]
    fn more_than_is_shown_is_not_counted_as_if_it_were_all() {
        let collected = Collected {
            unpushed: vec!["c".to_owned(); MAX_LINES + 1],
            unknown: Some("git was stopped".to_owned()),
            ..Collected::default()
        };
        assert_eq!(
            collected.warnings(),
            [
                "more than 20 commits that no remote has",
                "a worktree whose condition is unknown: git was stopped"
            ]
        );
        let text = collected.text();
        assert!(text.contains("- c\n- and more\n"), "{text}");
        assert!(text.contains("is not known: git was stopped\n"), "{text}");
    }

    #[test]
    fn message_has_all_facts_and_shortens_long_lists() {
        let collected = Collected {
            branch: Some("crew/max".into()),
            changed_files: (0..25).map(|n| format!("f{n}")).collect(),
            ..Collected::default()
        };
        let text = collected.text();
        assert!(text.contains("Branch: crew/max\n"), "{text}");
        assert!(text.contains("- f19\n- and 5 more\n"), "{text}");
        assert!(!text.contains("f20") && !text.contains("Inbox"), "{text}");
        assert_eq!(collected.warnings(), ["25 changed files"]);
        assert!(Collected::default().warnings().is_empty());
    }
}
