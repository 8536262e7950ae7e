//! One observation of an agent: its screen, and the last report of its hooks.

use crate::base::clock::Clock;
use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::nudge;
use gt_core::screen::{self, Asking, matches};
use gt_core::state::State;
use gt_tmux::{Command, PaneId, Target};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The result of one observation.
#[derive(Clone, Debug)]
pub struct PaneObservation {
    /// The process in the pane has ended or was replaced.
    pub is_over: bool,
    pub state: Option<State>,
    /// The end of the last turn, if the agent is at its prompt: idle, error or limited.
    pub ended: Option<State>,
    /// It was paused, to continue later.
    pub paused: bool,
    /// A question is open, or is about to open.
    pub dialog: bool,
    /// The open question, as far as it can be read.
    pub asking: Option<Asking>,
    /// The typed text in the input line; `None` if no input line is visible.
    pub input: Option<String>,
    /// The input line including placeholder hints of the program.
    raw_input: Option<String>,
    /// The text before the cursor, if the preset does not describe the input line.
    before_cursor: Option<String>,
    /// The fingerprint of the last prompt that the agent's hook reported.
    pub last_prompt: String,
    /// Number of prompts that its hook has reported.
    pub prompts: u64,
    /// Time of the program's last output, in seconds since the epoch.
    pub(super) drawn_at: i64,
    keys: PressedKeys,
    /// A hash that changes with everything visible and with every report of a hook.
    pub picture: u64,
}

/// Times of the last possible key presses, in seconds since the epoch.
#[derive(Clone, Copy, Debug, Default)]
struct PressedKeys {
    /// By a person at a tmux client.
    person_at: i64,
    /// Whether such a client is attached now.
    attached: bool,
    /// By `gt`.
    gt_at: i64,
}

impl PressedKeys {
    fn read(facts: &str) -> Self {
        let mut facts = facts.split(' ').map(|it| it.parse().unwrap_or_default());
        PressedKeys {
            person_at: facts.next().unwrap_or_default(),
            attached: facts.next().unwrap_or_default() > 0,
            gt_at: facts.next().unwrap_or_default(),
        }
    }

    /// Returns whether no key was pressed since then.
    fn are_untouched_since(&self, since: i64) -> bool {
        let by_person = match self.attached {
            true => self.person_at >= since,
            // tmux counts in seconds, and the creation of a session counts as activity.
            false => self.person_at > since,
        };
        // The Enter of the previous message may fall into the same second.
        !by_person && self.gt_at <= since
    }
}

/// Relation of a text to the input line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputRelation {
    There,
    /// The line is visible, and the text is not in it.
    Gone,
    /// No input line is visible.
    Unknown,
}

/// Format for the pane. Several sessions may show it: tmux answers for the one with the newest
/// activity, which is the one that a person types in.
const OF_PANE: &str = "#{cursor_x} #{cursor_y}\n#{window_activity}\n#{pane_dead} #{pane_pid}\n\
    #{session_activity} #{session_attached} 0#{@gt_typed}\n#{pane_title}";

/// Format for the tags of the agent's container.
const OF_CONTAINER: &str = "#{@gt_last_prompt}\n#{@gt_prompts}\n\
    #{?#{==:#{@gt_state_source},hook},#{@gt_state},} #{@gt_state_since}\n\
    #{||:#{==:#{@gt_state},paused},#{!=:#{@gt_hold},}}\n#{@gt_state_reason}";

impl PaneObservation {
    /// Observes the pane whose first process has that pid, in one call. The container is that of
    /// the agent in the pane; a program beside an agent has none.
    pub(super) fn observe(
        town: &Town,
        pane: PaneId,
        pid: u32,
        container: Option<&Target>,
        preset: &Preset,
    ) -> Result<Self> {
        let ask = |target: Target, format: &str| {
            let ask = Command::new("display-message").arg("-p");
            ask.target(target).arg(format)
        };
        // With colours: often only they distinguish hints and selected rows.
        let capture = Command::new("capture-pane").args(["-e", "-p"]).target(pane);
        let mut batch = vec![capture, ask(pane.into(), OF_PANE)];
        batch.extend(container.map(|container| ask(container.clone(), OF_CONTAINER)));
        let answers = town
            .server()
            .run_each(batch)
            .map_err(|error| tmux_problem("cannot read the pane", error))?;
        let [shown, of_pane, tags @ ..] = answers.as_slice() else {
            return Err(gt_core::Problem::failed(
                "tmux did not say what the pane shows",
            ));
        };
        let tags = tags.first().map_or("", String::as_str);
        Ok(Self::read(shown, of_pane, tags, pid, preset))
    }

    fn read(shown: &str, of_pane: &str, tags: &str, pid: u32, preset: &Preset) -> Self {
        let lines: Vec<&str> = shown.lines().collect();
        let mut facts = of_pane.splitn(5, '\n').map(str::trim_end);
        let mut fact = || facts.next().unwrap_or_default();
        let (cursor, drawn_at, process, keys, title) = (fact(), fact(), fact(), fact(), fact());
        let mut facts = tags.splitn(5, '\n').map(str::trim_end);
        let mut fact = || facts.next().unwrap_or_default();
        let (last_prompt, prompts, hooked, paused) = (fact(), fact(), fact(), fact());
        let seen = screen::classify(&lines, title, preset);
        let is_described = preset.screen.input.is_some();
        let before_cursor = (!is_described).then(|| screen::before_cursor(&lines, cursor));
        let hooked = recent_hook_state(hooked);
        let state = match seen.state {
            // Work that has just begun appears on the screen only after a moment.
            State::Idle | State::Error if hooked == Some(State::Busy) => hooked,
            _ if seen.is_at_prompt() => Some(State::Idle),
            State::Starting | State::Running => None,
            state => Some(state),
        };
        let ended = Some(seen.state).filter(|_| state == Some(State::Idle));
        let mut picture = DefaultHasher::new();
        (shown, of_pane, tags).hash(&mut picture);
        PaneObservation {
            is_over: process != format!("0 {pid}"),
            state,
            ended,
            paused: paused == "1",
            // A question that is about to open counts as open.
            dialog: seen.dialog.is_some()
                || seen.state == State::Waiting
                || hooked == Some(State::Waiting),
            asking: seen.dialog,
            raw_input: seen.input.as_ref().map(|input| input.text.clone()),
            input: seen.input.map(|input| input.typed().to_owned()),
            before_cursor,
            last_prompt: last_prompt.to_owned(),
            prompts: prompts.parse().unwrap_or_default(),
            drawn_at: drawn_at.parse().unwrap_or_default(),
            keys: PressedKeys::read(keys),
            picture: picture.finish(),
        }
    }

    /// Removes the prompt and the dialog, so that nothing is typed: the screen belongs to another
    /// program.
    pub(super) fn hide_prompt(&mut self) {
        (self.state, self.ended, self.asking) = (None, None, None);
        (self.input, self.raw_input, self.before_cursor) = (None, None, None);
        self.dialog = false;
    }

    /// Returns the relation of the text to the input line.
    pub(super) fn in_line(&self, text: &str, preset: &Preset) -> InputRelation {
        let input = if looks_like_a_hint(text, preset) {
            &self.raw_input
        } else {
            &self.input
        };
        match (input, &self.before_cursor) {
            (Some(input), _) if nudge::is_in_input(input, text) => InputRelation::There,
            (None, Some(before)) if nudge::ends_with(before, text) => InputRelation::There,
            (Some(_), _) | (None, Some(_)) => InputRelation::Gone,
            (None, None) => InputRelation::Unknown,
        }
    }

    /// Returns whether the input line can only hold the text that `gt` pasted at `since`: it is not
    /// empty, and no key was pressed since.
    pub(super) fn is_own_paste(&self, since: i64) -> bool {
        let has_text = self
            .input
            .as_deref()
            .is_some_and(|it| !it.trim().is_empty());
        has_text && self.keys.are_untouched_since(since)
    }

    /// Returns whether the agent's hook has confirmed this message. `prompts` is the number of
    /// prompts that it had reported before.
    pub(super) fn confirms(&self, text: &str, prompts: u64) -> bool {
        self.prompts > prompts && self.last_prompt == nudge::fingerprint(text)
    }
}

/// Returns whether a message reads like a placeholder of the program.
fn looks_like_a_hint(text: &str, preset: &Preset) -> bool {
    let form = preset.screen.input.as_ref();
    let hints = form.map(|form| form.placeholders.as_slice());
    let bears = |mark: &String| matches(text, mark);
    hints.unwrap_or_default().iter().any(bears)
}

/// Returns the state that a hook reported in the last two seconds, from `state since`.
fn recent_hook_state(hooked: &str) -> Option<State> {
    let (state, since) = hooked.split_once(' ')?;
    let age = Clock::default().seconds() - since.parse::<i64>().ok()?;
    State::from_word(state).filter(|_| (-1..2).contains(&age))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;
    use gt_core::startup::tag;
    use gt_tmux::SessionName;
    use gt_tmux::testing::TestServer;

    #[test]
    fn a_line_is_ours_unless_a_key_was_pressed_since() {
        for (facts, since, expected) in [
            ("100 0 0", 100, true),
            ("100 1 0", 100, false),
            ("99 1 0", 100, true),
            ("101 0 0", 100, false),
            ("99 0 0101", 100, false),
            ("99 0 0100", 100, true),
        ] {
            let keys = PressedKeys::read(facts);
            assert_eq!(keys.are_untouched_since(since), expected, "{facts}");
        }
    }

    #[test]
    fn tags_are_those_of_the_container_if_another_session_shows_the_pane() {
        let tmux = TestServer::new();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        let socket = tmux.socket_path().display().to_string();
        Town::init(&root, None, &socket, "demo").unwrap();
        let town = Town::open(&root, Surroundings::default()).unwrap();
        let preset = gt_core::harness::resolve("demo", None).unwrap().value;
        let own = SessionName::try_from("agent_helper").unwrap();
        let set = || Command::new("set-option").target(own.clone());
        let made = town.server().run([
            Command::new("new-session").args(["-d", "-s", "agent_helper", "cat"]),
            set().args([tag::LAST_PROMPT, &nudge::fingerprint("hello")]),
            set().args([tag::PROMPTS, "3"]),
            set().args([tag::STATE, "paused"]),
            // The newer session has the newer activity.
            Command::new("new-session").args(["-d", "-s", "desk", "cat"]),
            Command::new("link-window").args(["-d", "-s", "=agent_helper:", "-t", "=desk:"]),
            Command::new("display-message")
                .arg("-p")
                .target(own.clone())
                .arg("#{pane_id} #{pane_pid}"),
        ]);
        let made = made.unwrap();
        let (pane, pid) = made.trim().split_once(' ').unwrap();
        let (pane, pid): (PaneId, u32) = (pane.parse().unwrap(), pid.parse().unwrap());
        let seen = PaneObservation::observe(&town, pane, pid, Some(&own.into()), &preset).unwrap();
        assert!(!seen.is_over && seen.paused && seen.confirms("hello", 2));
        let beside = PaneObservation::observe(&town, pane, pid, None, &preset).unwrap();
        assert!(!beside.is_over && !beside.paused && beside.prompts == 0);
    }
}
