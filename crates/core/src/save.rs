//! What is kept of containers, so that they can be made again when their tmux server
//! is gone.
//!
//! A save is a [`Header`] and a [`Saved`] for each container. It holds what tmux shows,
//! and nothing of an agent's environment, which may be secret. Here are its shape and
//! the decisions: who is wanted back ([`judge`]), in which conversation
//! ([`conversation`]), and what the next save must not forget ([`carried`]). Writing and
//! reading is the engine's.

pub(crate) mod text;

pub use text::printable;

use crate::harness::Preset;
use crate::record::{Outcome, Record};
use crate::role::OnExit;
use crate::startup::Conversation;
use serde::{Deserialize, Serialize};

/// Raised when an older `gt` could no longer read what is written.
pub const VERSION: u32 = 1;

/// A machine that goes down takes no longer than this from the first process to the last.
const SHUTDOWN_SECONDS: i64 = 120;

/// What a save says of itself. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub version: u32,
    pub town: String,
    pub host: String,
    pub saved_at: String,
    /// Nobody asked for it.
    pub automatic: bool,
    /// How many containers follow.
    pub containers: usize,
}

/// One tmux server among all that ever were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerId {
    pub pid: u32,
    /// Seconds since the epoch.
    pub started: i64,
}

/// One container of an agent's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub name: String,
    /// The agent's address.
    pub agent: String,
    /// The life in it, and the chain that this life belongs to.
    pub life: String,
    pub chain: String,
    pub harness: String,
    /// The program's own name for the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_session: Option<String>,
    /// The wishes of its start, as the tag holds them.
    #[serde(default)]
    pub start: String,
    #[serde(default)]
    pub auto_respawn: bool,
    #[serde(default)]
    pub state: String,
    /// When it was seen, and on which server. Older than the save where it was taken
    /// over from the one before.
    pub seen_at: String,
    pub server: ServerId,
    pub windows: Vec<Window>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
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
    pub panes: Vec<Pane>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pane {
    pub id: String,
    pub index: u32,
    pub folder: String,
    /// The name of what ran in the foreground.
    pub command: String,
    pub title: String,
    /// The agent's own, whatever else the user has opened.
    pub is_agents: bool,
    pub active: bool,
    pub dead: bool,
    /// How long it had been dead then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_for_seconds: Option<i64>,
    pub columns: u32,
    pub rows: u32,
    /// Scrollback and screen, with escape sequences as tmux gives them.
    pub text: String,
}

impl Saved {
    /// The window and the pane of the agent itself.
    pub fn agents_pane(&self) -> Option<(&Window, &Pane)> {
        self.windows.iter().find_map(|window| {
            let pane = window.panes.iter().find(|pane| pane.is_agents)?;
            Some((window, pane))
        })
    }

    /// Whether its agent had ended, and nothing would have brought it back. A machine that
    /// goes down in good order ends the agents a moment before their server, and a save
    /// may still see that: who had only just died is taken for lost with the server.
    fn was_over(&self) -> bool {
        if self.windows.is_empty() {
            // No save has seen it: only the journal knows of it, as of one that was lost.
            return false;
        }
        let long_dead = self.agents_pane().is_none_or(|(_, pane)| {
            let just_now = pane.dead_for_seconds.is_some_and(|s| s <= SHUTDOWN_SECONDS);
            pane.dead && !just_now
        });
        long_dead && !self.auto_respawn
    }
}

/// What stands today under the name of a saved container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Here {
    Nothing,
    /// The agent, in whatever state.
    Itself,
    /// Something else; the words say what.
    Another(String),
    /// Nothing, and its folder is gone as well, which a start does not make again.
    NoFolder,
}

/// What a restore does with a saved container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Restore,
    /// It is there.
    Runs,
    Taken(String),
    /// Its life was ended by somebody's wish after the save.
    Ended(Outcome),
    /// Its agent was dead already, and nobody wanted it back.
    WasOver,
    /// Somebody has removed it.
    Removed,
}

/// Judges one saved container. `last` is the agent's newest life in the journal, which
/// knows more than the save does; `named` says that somebody asked for this very agent, and
/// `on_exit` what its role says of clean exits.
pub fn judge(
    saved: &Saved,
    here: Here,
    last: Option<&Record>,
    named: bool,
    on_exit: OnExit,
) -> Verdict {
    let is_removed = here == Here::NoFolder;
    match here {
        Here::Itself => return Verdict::Runs,
        Here::Another(words) => return Verdict::Taken(words),
        Here::Nothing | Here::NoFolder => {}
    }
    if named {
        return Verdict::Restore;
    }
    match ended_by_wish(saved, last, on_exit) {
        Some(outcome) => Verdict::Ended(outcome),
        None if saved.was_over() => Verdict::WasOver,
        None if is_removed => Verdict::Removed,
        None => Verdict::Restore,
    }
}

/// The outcome of a session that was ended on purpose. Any other was lost, whether or not that
/// is written yet; so was one that would have been started again after its clean exit.
fn ended_by_wish(saved: &Saved, last: Option<&Record>, on_exit: OnExit) -> Option<Outcome> {
    let restarts = saved.auto_respawn && on_exit == OnExit::Restart;
    last?.outcome.filter(|outcome| match outcome {
        Outcome::Crash => false,
        Outcome::Exited => !restarts,
        _ => true,
    })
}

/// The containers of the save before that the next one takes over, so that the newest
/// save alone always has everybody who is to come back: agents that are not there now,
/// and were lost with another server than those that run. One that is missing from
/// its own server was closed by somebody. The first of `servers` runs since `server_since`, `last` gives an
/// agent's newest life, and `on_exit` what its role says of clean exits.
pub fn carried(
    before: Vec<Saved>,
    now: &[Saved],
    servers: &[ServerId],
    server_since: &str,
    not_before: &str,
    last: impl Fn(&str) -> Option<Record>,
    on_exit: impl Fn(&str) -> OnExit,
) -> Vec<Saved> {
    let is_lost = |saved: &Saved| {
        if servers.contains(&saved.server)
            || saved.seen_at.as_str() < not_before
            || saved.was_over()
            || now.iter().any(|other| other.agent == saved.agent)
        {
            return false;
        }
        let last = last(&saved.agent);
        // It was here again since, whether or not a save has seen it. A try that failed
        // has its end written.
        let was_back = last.as_ref().is_some_and(|life| {
            life.id != saved.life
                && life.outcome.is_none()
                && life.started_at.as_deref() >= Some(server_since)
        });
        !was_back && ended_by_wish(saved, last.as_ref(), on_exit(&saved.agent)).is_none()
    };
    before.into_iter().filter(is_lost).collect()
}

/// The conversation that an agent goes on with: the very same, if its id is known.
///
/// Without an id the newest one of its folder has to do, but only for programs that
/// never tell theirs: of the others it means that none had begun. And only where the
/// folder is the agent's alone, or two would go on with one conversation.
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

/// Whether a text can be a layout of tmux's, and nothing else.
pub fn is_layout(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_hexdigit() || matches!(c, ',' | 'x' | '{' | '}' | '[' | ']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(agent: &str, server: u32) -> Saved {
        Saved {
            agent: agent.to_owned(),
            seen_at: "2026-01-17T12:00:00.000Z".to_owned(),
            server: ServerId {
                pid: server,
                started: 0,
            },
            windows: vec![Window {
                panes: vec![Pane {
                    is_agents: true,
                    ..Pane::default()
                }],
                ..Window::default()
            }],
            ..Saved::default()
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
        let check = |here: Here, last: Option<Record>, named: bool, expected: Verdict| {
            let saved = saved("mayor", 1);
            let verdict = judge(&saved, here, last.as_ref(), named, OnExit::Restart);
            assert_eq!(verdict, expected);
        };
        check(Here::Nothing, None, false, Verdict::Restore);
        check(Here::Nothing, Some(ended(None)), false, Verdict::Restore);
        let crashed = Some(ended(Some(Outcome::Crash)));
        check(Here::Nothing, crashed, false, Verdict::Restore);
        check(Here::Itself, None, true, Verdict::Runs);
        check(Here::NoFolder, None, false, Verdict::Removed);
        // Whoever names it gets to know what is missing.
        check(Here::NoFolder, None, true, Verdict::Restore);
        let killed = Some(ended(Some(Outcome::Killed)));
        let by_wish = Verdict::Ended(Outcome::Killed);
        check(Here::NoFolder, killed, false, by_wish);
        let taken = Here::Another("a session of yours".into());
        check(
            taken,
            None,
            true,
            Verdict::Taken("a session of yours".into()),
        );
        for outcome in [
            Outcome::Killed,
            Outcome::Done,
            Outcome::Handoff,
            Outcome::Stopped,
            Outcome::Exited,
        ] {
            let last = Some(ended(Some(outcome)));
            check(Here::Nothing, last.clone(), false, Verdict::Ended(outcome));
            check(Here::Nothing, last, true, Verdict::Restore);
        }
    }

    #[test]
    fn a_clean_exit_is_final_unless_a_restart_was_due() {
        let mut armed = saved("mayor", 1);
        armed.auto_respawn = true;
        let last = ended(Some(Outcome::Exited));
        for (on_exit, expected) in [
            (OnExit::Stop, Verdict::Ended(Outcome::Exited)),
            (OnExit::Restart, Verdict::Restore),
        ] {
            let verdict = judge(&armed, Here::Nothing, Some(&last), false, on_exit);
            assert_eq!(verdict, expected, "{on_exit:?}");
        }
    }

    #[test]
    fn a_dead_one_comes_back_only_if_something_would_have_brought_it_back() {
        let mut dead = saved("mayor", 1);
        dead.windows[0].panes[0].dead = true;
        let verdict = |saved: &Saved| judge(saved, Here::Nothing, None, false, OnExit::Stop);
        assert_eq!(verdict(&dead), Verdict::WasOver);
        for (seconds, expected) in [(121, Verdict::WasOver), (120, Verdict::Restore)] {
            dead.windows[0].panes[0].dead_for_seconds = Some(seconds);
            assert_eq!(verdict(&dead), expected, "dead for {seconds} s");
        }
        dead.windows[0].panes[0].dead_for_seconds = Some(999);
        dead.auto_respawn = true;
        assert_eq!(verdict(&dead), Verdict::Restore);
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
            let kept = carried(
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
    fn the_same_conversation_where_it_is_known() {
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
        let none = |preset: &mut Preset| preset.command = crate::harness::Command::default();
        check(none, Some("x"), true, Conversation::New);
    }

    #[test]
    fn layouts_are_told_from_other_texts() {
        assert!(is_layout("f91d,120x40,0,0{60x40,0,0,0,59x40,61,0,1}"));
        for text in ["", "tiled ; kill-server", "#(x)"] {
            assert!(!is_layout(text), "{text}");
        }
    }
}
