//! Snapshot of the containers, from which they can be restored after their tmux server is gone.
//!
//! A save is a [`SaveHeader`] and a [`SavedContainer`] for each container. It holds what tmux shows,
//! and nothing of an agent's environment, which may contain secrets. This module has the format and
//! the decisions: which agents to restore ([`judge`]), in which conversation ([`conversation`]), and
//! which entries the next save must keep ([`carried_over`]). The engine writes and reads the file.

mod text;

pub use text::printable;

use crate::harness::Preset;
use crate::record::{Outcome, Record};
use crate::role::OnExit;
use crate::startup::Conversation;
use serde::{Deserialize, Serialize};

/// Format version. It is raised when an older `gt` could no longer read the file.
pub const VERSION: u32 = 1;

/// Maximum duration of a machine's shutdown, from the first process to the last.
const SHUTDOWN_SECONDS: i64 = 120;

/// Metadata of a save. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveHeader {
    pub version: u32,
    pub town: String,
    pub host: String,
    pub saved_at: String,
    /// Whether `gt` made the save without a request.
    pub automatic: bool,
    /// Number of containers that follow.
    pub containers: usize,
}

/// Unique identity of a tmux server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerId {
    pub pid: u32,
    /// Seconds since the epoch.
    pub started: i64,
}

/// One container of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedContainer {
    pub name: String,
    /// Address of the agent.
    pub agent: String,
    /// Session in the container, and the chain that it belongs to.
    #[serde(rename = "life")]
    pub session: String,
    pub chain: String,
    pub harness: String,
    /// Id of the conversation in the agent program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_session: Option<String>,
    /// Start options, as the tag holds them.
    #[serde(default)]
    pub start: String,
    #[serde(default)]
    pub auto_respawn: bool,
    #[serde(default)]
    pub state: String,
    /// Time and server of the observation. Older than the save if the entry was carried over from
    /// the previous one.
    pub seen_at: String,
    pub server: ServerId,
    pub windows: Vec<SavedWindow>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedWindow {
    pub index: u32,
    pub name: String,
    /// tmux gave it its name and may change it.
    #[serde(default)]
    pub named_by_tmux: bool,
    pub layout: String,
    pub active: bool,
    pub zoomed: bool,
    pub columns: u32,
    pub rows: u32,
    pub panes: Vec<SavedPane>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPane {
    pub id: String,
    pub index: u32,
    pub folder: String,
    /// Name of the foreground process.
    pub command: String,
    pub title: String,
    /// Whether it is the agent's pane, and not one that the user has opened.
    pub is_agents: bool,
    pub active: bool,
    pub dead: bool,
    /// Time since its death, at the time of the save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_for_seconds: Option<i64>,
    pub columns: u32,
    pub rows: u32,
    /// Scrollback and screen, with escape sequences as tmux gives them.
    pub text: String,
}

impl SavedContainer {
    /// Returns the window and the pane of the agent itself.
    pub fn agents_pane(&self) -> Option<(&SavedWindow, &SavedPane)> {
        self.windows.iter().find_map(|window| {
            let pane = window.panes.iter().find(|pane| pane.is_agents)?;
            Some((window, pane))
        })
    }

    /// Returns whether the agent had ended and would not have been respawned. An orderly shutdown
    /// of the machine ends the agents a moment before their server, and a save may still record
    /// that: an agent that had only just died counts as lost with the server.
    fn was_over(&self) -> bool {
        if self.windows.is_empty() {
            // No save has recorded it: only the journal lists it, as a lost session.
            return false;
        }
        let long_dead = self.agents_pane().is_none_or(|(_, pane)| {
            let just_now = pane.dead_for_seconds.is_some_and(|s| s <= SHUTDOWN_SECONDS);
            pane.dead && !just_now
        });
        long_dead && !self.auto_respawn
    }
}

/// Present state of a saved container's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOwner {
    Nothing,
    /// The agent, in any state.
    Itself,
    /// Something else; the text describes it.
    Another(String),
    /// No container, and its folder is gone too; a start does not create the folder.
    NoFolder,
}

/// Action of a restore for a saved container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreDecision {
    Restore,
    /// It is running.
    Runs,
    Taken(String),
    /// Its session was ended on purpose after the save.
    Ended(Outcome),
    /// Its agent had already ended, and would not have been respawned.
    WasOver,
    /// The agent was removed.
    Removed,
}

/// Decides on one saved container. `last` is the agent's newest session in the journal, which is
/// more current than the save; `named` means that the caller asked for this agent by name, and
/// `on_exit` is its role's setting for clean exits.
pub fn judge(
    saved: &SavedContainer,
    here: NameOwner,
    last: Option<&Record>,
    named: bool,
    on_exit: OnExit,
) -> RestoreDecision {
    let is_removed = here == NameOwner::NoFolder;
    match here {
        NameOwner::Itself => return RestoreDecision::Runs,
        NameOwner::Another(words) => return RestoreDecision::Taken(words),
        NameOwner::Nothing | NameOwner::NoFolder => {}
    }
    if named {
        return RestoreDecision::Restore;
    }
    match ended_on_request(saved, last, on_exit) {
        Some(outcome) => RestoreDecision::Ended(outcome),
        None if saved.was_over() => RestoreDecision::WasOver,
        None if is_removed => RestoreDecision::Removed,
        None => RestoreDecision::Restore,
    }
}

/// Returns the outcome of a session that was ended on purpose. Any other session was lost, even if
/// the journal does not have its end yet; so was a session that would have been restarted after its
/// clean exit.
fn ended_on_request(
    saved: &SavedContainer,
    last: Option<&Record>,
    on_exit: OnExit,
) -> Option<Outcome> {
    let restarts = saved.auto_respawn && on_exit == OnExit::Restart;
    last?.outcome.filter(|outcome| match outcome {
        Outcome::Crash => false,
        Outcome::Exited => !restarts,
        _ => true,
    })
}

/// Returns the containers of the previous save that the next one carries over, so that the newest
/// save alone lists every agent to restore: agents without a container that were lost with a server
/// other than the running ones. A container that is missing from its own server was closed on
/// purpose. The first of `servers` runs since `server_since`; `last` returns an agent's newest
/// session, and `on_exit` its role's setting for clean exits.
pub fn carried_over(
    before: Vec<SavedContainer>,
    now: &[SavedContainer],
    servers: &[ServerId],
    server_since: &str,
    not_before: &str,
    last: impl Fn(&str) -> Option<Record>,
    on_exit: impl Fn(&str) -> OnExit,
) -> Vec<SavedContainer> {
    let is_lost = |saved: &SavedContainer| {
        if servers.contains(&saved.server)
            || saved.seen_at.as_str() < not_before
            || saved.was_over()
            || now.iter().any(|other| other.agent == saved.agent)
        {
            return false;
        }
        let last = last(&saved.agent);
        // It has run again since, even if no save has recorded it. A failed attempt has its end in
        // the journal.
        let was_back = last.as_ref().is_some_and(|session| {
            session.id != saved.session
                && session.outcome.is_none()
                && session.started_at.as_deref() >= Some(server_since)
        });
        !was_back && ended_on_request(saved, last.as_ref(), on_exit(&saved.agent)).is_none()
    };
    before.into_iter().filter(is_lost).collect()
}

/// Returns the conversation that an agent continues: the one with this id, if it is known.
///
/// Without an id the fallback is the newest conversation of its folder, but only for programs that
/// never report theirs: for the others a missing id means that no conversation had begun. The
/// fallback also requires that no other agent uses the folder, or two agents would continue one
/// conversation.
pub fn conversation(preset: &Preset, id: Option<&str>, alone_in_folder: bool) -> Conversation {
    let command = &preset.command;
    let tells_its_id = !command.session_id.is_empty() || preset.hooks.installer.is_some();
    match id {
        Some(id) if !command.resume.is_empty() => Conversation::Resume(id.to_owned()),
        _ if tells_its_id && !command.resume.is_empty() => Conversation::New,
        _ if alone_in_folder && !command.r#continue.is_empty() => Conversation::Continue,
        _ => Conversation::New,
    }
}

/// Returns whether a text is made only of characters of a tmux layout.
pub fn is_layout(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_hexdigit() || matches!(c, ',' | 'x' | '{' | '}' | '[' | ']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(agent: &str, server: u32) -> SavedContainer {
        SavedContainer {
            agent: agent.to_owned(),
            seen_at: "2026-01-17T12:00:00.000Z".to_owned(),
            server: ServerId {
                pid: server,
                started: 0,
            },
            windows: vec![SavedWindow {
                panes: vec![SavedPane {
                    is_agents: true,
                    ..SavedPane::default()
                }],
                ..SavedWindow::default()
            }],
            ..SavedContainer::default()
        }
    }

    fn ended(outcome: Option<Outcome>) -> Record {
        Record {
            outcome,
            ..Record::about("a")
        }
    }

    #[test]
    fn only_who_was_lost_comes_back() {
        let check =
            |here: NameOwner, last: Option<Record>, named: bool, expected: RestoreDecision| {
                let saved = saved("mayor", 1);
                let verdict = judge(&saved, here, last.as_ref(), named, OnExit::Restart);
                assert_eq!(verdict, expected);
            };
        check(NameOwner::Nothing, None, false, RestoreDecision::Restore);
        check(
            NameOwner::Nothing,
            Some(ended(None)),
            false,
            RestoreDecision::Restore,
        );
        let crashed = Some(ended(Some(Outcome::Crash)));
        check(NameOwner::Nothing, crashed, false, RestoreDecision::Restore);
        check(NameOwner::Itself, None, true, RestoreDecision::Runs);
        check(NameOwner::NoFolder, None, false, RestoreDecision::Removed);
        // A restore by name fails with an error about the missing folder.
        check(NameOwner::NoFolder, None, true, RestoreDecision::Restore);
        let killed = Some(ended(Some(Outcome::Killed)));
        let on_request = RestoreDecision::Ended(Outcome::Killed);
        check(NameOwner::NoFolder, killed, false, on_request);
        let taken = NameOwner::Another("a session of yours".into());
        check(
            taken,
            None,
            true,
            RestoreDecision::Taken("a session of yours".into()),
        );
        for outcome in [
            Outcome::Killed,
            Outcome::Done,
            Outcome::Handoff,
            Outcome::Stopped,
            Outcome::Exited,
        ] {
            let last = Some(ended(Some(outcome)));
            check(
                NameOwner::Nothing,
                last.clone(),
                false,
                RestoreDecision::Ended(outcome),
            );
            check(NameOwner::Nothing, last, true, RestoreDecision::Restore);
        }
    }

    #[test]
    fn a_clean_exit_is_final_unless_a_restart_was_due() {
        let mut armed = saved("mayor", 1);
        armed.auto_respawn = true;
        let last = ended(Some(Outcome::Exited));
        for (on_exit, expected) in [
            (OnExit::Stop, RestoreDecision::Ended(Outcome::Exited)),
            (OnExit::Restart, RestoreDecision::Restore),
        ] {
            let verdict = judge(&armed, NameOwner::Nothing, Some(&last), false, on_exit);
            assert_eq!(verdict, expected, "{on_exit:?}");
        }
    }

    #[test]
    fn a_dead_one_comes_back_only_if_something_would_have_brought_it_back() {
        let mut dead = saved("mayor", 1);
        dead.windows[0].panes[0].dead = true;
        let verdict =
            |saved: &SavedContainer| judge(saved, NameOwner::Nothing, None, false, OnExit::Stop);
        assert_eq!(verdict(&dead), RestoreDecision::WasOver);
        for (seconds, expected) in [
            (121, RestoreDecision::WasOver),
            (120, RestoreDecision::Restore),
        ] {
            dead.windows[0].panes[0].dead_for_seconds = Some(seconds);
            assert_eq!(verdict(&dead), expected, "dead for {seconds} s");
        }
        dead.windows[0].panes[0].dead_for_seconds = Some(999);
        dead.auto_respawn = true;
        assert_eq!(verdict(&dead), RestoreDecision::Restore);
    }

    #[test]
    fn the_next_save_takes_over_who_was_lost_with_a_server() {
        let here = ServerId { pid: 2, started: 0 };
        let before = ["lost", "back", "stopped", "closed", "was back", "tried"].map(|agent| {
            let server = if agent == "closed" { 2 } else { 1 };
            saved(agent, server)
        });
        let last = |agent: &str| match agent {
            "stopped" => Some(ended(Some(Outcome::Killed))),
            "was back" => Some(Record {
                started_at: Some("2026-01-17T12:30:00.000Z".to_owned()),
                ..Record::about("b")
            }),
            "lost" => Some(Record {
                started_at: Some("2026-01-17T11:30:00.000Z".to_owned()),
                ..Record::about("a")
            }),
            "tried" => Some(Record {
                started_at: Some("2026-01-17T12:30:00.000Z".to_owned()),
                ..ended(Some(Outcome::Crash))
            }),
            _ => None,
        };
        let agents = |not_before: &str| -> Vec<String> {
            let now = [saved("back", 2)];
            let since = "2026-01-17T12:00:00.000Z";
            let on_exit = |_: &str| OnExit::Stop;
            let kept = carried_over(
                before.to_vec(),
                &now,
                &[here],
                since,
                not_before,
                last,
                on_exit,
            );
            kept.into_iter().map(|saved| saved.agent).collect()
        };
        assert_eq!(agents("2026-01-01T00:00:00.000Z"), ["lost", "tried"]);
        assert_eq!(agents("2026-02-01T00:00:00.000Z"), Vec::<String>::new());
    }

    #[test]
    fn known_conversation_is_resumed() {
        let check = |change: fn(&mut Preset), id: Option<&str>, alone, expected| {
            let mut preset = crate::harness::resolve("claude", None).unwrap().value;
            change(&mut preset);
            assert_eq!(conversation(&preset, id, alone), expected);
        };
        let silent = |preset: &mut Preset| {
            preset.command.session_id.clear();
            preset.hooks.installer = None;
        };
        check(|_| {}, Some("x"), true, Conversation::Resume("x".into()));
        check(|_| {}, None, true, Conversation::New);
        check(silent, None, true, Conversation::Continue);
        check(silent, None, false, Conversation::New);
        let old = |preset: &mut Preset| preset.command.resume.clear();
        check(old, Some("x"), true, Conversation::Continue);
        let none =
            |preset: &mut Preset| preset.command = crate::harness::CommandTemplate::default();
        check(none, Some("x"), true, Conversation::New);
    }

    #[test]
    fn layouts_are_distinguished_from_other_texts() {
        assert!(is_layout("f91d,120x40,0,0{60x40,0,0,0,59x40,61,0,1}"));
        for text in ["", "tiled ; kill-server", "#(x)"] {
            assert!(!is_layout(text), "{text}");
        }
    }
}
