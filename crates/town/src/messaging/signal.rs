//! Reports of an agent's own hooks.
//!
//! A hook runs `gt signal` with the program's JSON on its standard input. The state goes onto the
//! container as tags, in one call. The fingerprint of a prompt that the agent accepted becomes a
//! tag too: it is the receipt of a nudge. The end of a turn starts the delivery of waiting
//! messages (`signal/deliveries.rs`). `signal/marks.rs` sets the states that no hook reports.

mod deliveries;
mod marks;

pub use deliveries::wake_deliveries;
pub(crate) use deliveries::{wake_after_start, wake_delivery_to};
pub(crate) use marks::note_interrupt_on_screen;
pub use marks::{clear_paused, mark_done, mark_paused};

use deliveries::wake_delivery;
use marks::forget_stop;

use crate::base::callback::{self, Call};
use crate::base::settings::AtLimit;
use crate::base::wake;
use crate::messaging::queue::MessageQueue;
use crate::records::budget;
use crate::records::events::Events;
use crate::records::sessions::Sessions;
use crate::records::usage;
use crate::terminal::containers::{self, tmux_problem};
use crate::terminal::{limit_timer, save_schedule};
use crate::{Result, Town};
use gt_core::record::Record;
use gt_core::session::SessionId as AgentSessionId;
use gt_core::signal::{self, HookEvent, ReportedState};
use gt_core::startup::tag;
use gt_core::state::{Reason, State, StateReport, StateSource};
use gt_core::{Identity, Problem, event, notify, nudge};
use gt_tmux::{Batch, Command, ErrorKind, SessionName, Target};
use serde_json::Value;

/// Notes the report of a hook about the agent of this container.
pub fn note(town: &Town, container: &str, event: HookEvent, report: &Value) -> Result<()> {
    let target =
        SessionName::try_from(container).map_err(|error| Problem::usage(error.to_string()))?;
    let set = |option: &str, value: &str| {
        Command::new("set-option")
            .target(target.clone())
            .arg(option)
            .arg(value)
    };
    let mut batch = Batch::new();
    let said = signal::state_of(event, report);
    // tmux runs a batch atomically: of two hooks that report the same state, only one sees the
    // change.
    let tells = said
        .clone()
        .filter(|said| signal::may_cause_event(event, said));
    if tells.is_some() {
        batch = batch.then(ask(target.clone(), &before_format()));
    }
    if let Some(said) = &said {
        let now = town.clock().seconds();
        let tags = report_tags(&target, event, said, now);
        let tags = match begins_with_prompt(event, report) {
            true => vec![with_first_prompt(&target, event, now, tags)],
            false => tags,
        };
        // tmux itself checks, so that no concurrent pause is lost between a read and this write.
        batch = match kept_state_format(signal::kept_states(event, said.state), now) {
            Some(stays) => batch.then(unless(&target, &stays, tags)),
            None => batch.then_all(tags),
        };
    }
    if tells.is_some() {
        batch = batch.then(ask(target.clone(), AFTER));
    }
    let conversation = report["session_id"].as_str();
    if let Some(id) = conversation {
        batch = batch
            .then(ask(target.clone(), SESSION_AND_CONVERSATION))
            .then(set(tag::HARNESS_SESSION, id));
    }
    if let (HookEvent::Prompt, Some(prompt)) = (event, report["prompt"].as_str()) {
        // The count distinguishes a prompt from an earlier one with the same text.
        let count = Command::new("set-option")
            .arg("-F")
            .target(target.clone())
            .args([tag::PROMPTS, "#{e|+:0#{@gt_prompts},1}"]);
        batch = batch
            .then(set(tag::LAST_PROMPT, &nudge::fingerprint(prompt)))
            .then(count);
    }
    if event == HookEvent::Prompt {
        batch = batch.then_all(forget_stop(&target));
    }
    if !batch.is_empty() {
        batch = batch.then_all(containers::pack(target.clone()));
    }
    let mut own = agent_of_environment(town);
    let mut before = String::new();
    if !batch.is_empty() {
        let asks_agent = own.is_none();
        if asks_agent {
            batch = Batch::from(ask(target.clone(), AGENT_AND_TOWN))
                .then_all(batch.commands().cloned());
        }
        let session = own_session(town, container);
        if let Some(session) = &session {
            batch = only_of(session, &target, &batch);
        }
        before = match town.server().run(batch) {
            Ok(printed) => printed,
            // A program that ends with its tmux server still reports its end: there is no container
            // left to tag.
            Err(error) if event == HookEvent::SessionEnd && is_server_gone(&error) => return Ok(()),
            Err(error) => return Err(tmux_problem("cannot tag the container", error)),
        };
        if session.is_some() {
            // The report comes from an ended session, and does not concern the next one.
            let Some(rest) = before.strip_prefix(OF_THIS_SESSION) else {
                return Ok(());
            };
            before = rest.to_owned();
        }
        if asks_agent {
            let (first, rest) = before.split_once('\n').unwrap_or_default();
            own = agent_of_tags(town, first);
            before = rest.to_owned();
        }
        wake::monitors(town);
    }
    if let Some(said) = tells {
        let (swapped, rest) = Swapped::read(&before);
        swapped.write_down(town, &said);
        // People are not notified of a person's own action.
        if event != HookEvent::Interrupt {
            swapped.tell_people(town, &said);
        }
        before = rest.to_owned();
    }
    if let Some(said) = said.as_ref().filter(|said| said.state == State::Limited) {
        limit_timer::set_for_message(town, &said.reason);
        let rig = own.as_ref().and_then(Identity::rig);
        if town.settings().at_limit(rig) == AtLimit::Switch {
            limit_timer::set_soon(town);
        }
    }
    let noted = usage::note(town, event, report);
    if let (HookEvent::Prompt, Some(prompt), Some(own)) = (event, report["prompt"].as_str(), &own) {
        // The tag above is lost when the tmux server ends.
        MessageQueue::of(town, own).confirm(prompt)?;
    }
    if signal::ends_a_turn(event)
        && own
            .as_ref()
            .is_none_or(|own| MessageQueue::of(town, own).wants_deliverer())
    {
        wake_delivery(town, &target)?;
    }
    if signal::ends_a_turn(event) {
        save_schedule::request_if_old(town);
        if budget::is_set(town) {
            callback::start_detached(town, &Call::CheckBudgets.words());
        }
    }
    conversation.map_or(Ok(()), |id| remember_conversation(town, &before, id))?;
    noted
}

/// Returns the agent that the environment of this hook names. It names none for an adopted program,
/// or for a server process that several agents share.
fn agent_of_environment(town: &Town) -> Option<Identity> {
    let address = town.around().var("GT_ROLE")?;
    Identity::from_address(address, town.registry())
}

/// The agent of a container, and its town.
const AGENT_AND_TOWN: &str = "#{@gt_agent} #{@gt_town}";

/// Returns the agent that tmux names in answer to [`AGENT_AND_TOWN`].
fn agent_of_tags(town: &Town, answer: &str) -> Option<Identity> {
    let (agent, root) = answer.split_once(' ')?;
    Identity::from_address(agent, town.registry()).filter(|_| root == town.root_text())
}

/// Returns the session in whose environment a hook of this container runs.
fn own_session(town: &Town, container: &str) -> Option<AgentSessionId> {
    let around = town.around();
    let is_own = around.var("GT_SESSION") == Some(container);
    let session = around.var("GT_SESSION_UUID").filter(|_| is_own)?;
    session.parse().ok()
}

/// First line of tmux's answer if a report belongs to the present session.
const OF_THIS_SESSION: &str = "of this session\n";

/// Returns the commands, restricted to a container that still holds this session. tmux itself
/// checks, so that no handoff can come in between, and no second query is needed.
fn only_of(session: &AgentSessionId, target: &SessionName, batch: &Batch) -> Batch {
    let is_other = format!("#{{!=:#{{{}}},{session}}}", tag::SESSION);
    let first = ask(target.clone(), OF_THIS_SESSION.trim_end());
    let all = std::iter::once(first).chain(batch.commands().cloned());
    Batch::from(unless(target, &is_other, all))
}

/// Returns the format of the tags before a report: the state, the resumer and the question. The
/// reason is included only for a question, because the reasons of other states may have several
/// lines. If an interrupt was noted from the screen alone (see [`note_interrupt_on_screen`]), the
/// last hook reported busy, so the format yields busy: if the turn ends after all, that is a change.
fn before_format() -> String {
    let interrupted = Reason::Interrupted;
    let is_noted = format!(
        "#{{&&:#{{==:#{{@gt_state_source}},gt}},#{{==:#{{@gt_state_reason}},{interrupted}}}}}"
    );
    let question = "#{?#{==:#{@gt_state},waiting},#{@gt_state_reason},}";
    format!("#{{?{is_noted},busy,#{{@gt_state}}}} #{{@gt_resumer}} {question}")
}

/// The tags after a report: the state, whether the agent is being stopped, its session, and the
/// agent.
const AFTER: &str = "#{@gt_state} #{==:#{@gt_leaving},#{@gt_session}} #{@gt_session} #{@gt_agent}";

/// The present session, and its conversation before a report.
const SESSION_AND_CONVERSATION: &str = "#{@gt_session} #{@gt_harness_session}";

/// The change that a report made. tmux prints both states in one batch, so of several identical
/// reports only one made the change.
struct Swapped<'a> {
    before: Option<State>,
    resumer: &'a str,
    question: &'a str,
    now: &'a str,
    is_leaving: bool,
    session: &'a str,
    agent: &'a str,
}

impl<'a> Swapped<'a> {
    /// Parses the first two lines of tmux's answer, and also returns the rest.
    fn read(answer: &'a str) -> (Self, &'a str) {
        let mut lines = answer.splitn(3, '\n');
        let mut line = || lines.next().unwrap_or_default();
        let (before, after, rest) = (line(), line(), line());
        let mut before = before.splitn(3, ' ');
        let mut after = after.splitn(4, ' ');
        let mut was = || before.next().unwrap_or_default();
        let mut is = || after.next().unwrap_or_default();
        let swapped = Swapped {
            before: State::from_word(was()),
            resumer: was(),
            question: was(),
            now: is(),
            is_leaving: is() == "1",
            session: is(),
            agent: is(),
        };
        (swapped, rest)
    }

    /// Returns whether the container now has the reported state. A pause, for example, is not
    /// overwritten by every report.
    fn has_state(&self, said: &ReportedState) -> bool {
        self.now == said.state.as_str() && !self.agent.is_empty()
    }

    /// Returns the notification that the report causes, unless the agent is being stopped.
    fn notice(&self, said: &ReportedState) -> Option<notify::NoticeKind> {
        let begun = notify::notice_for_change(self.before, &report(said));
        begun.filter(|_| self.has_state(said) && !self.is_leaving)
    }

    fn tell_people(&self, town: &Town, said: &ReportedState) {
        if let Some(event) = self.notice(said) {
            crate::messaging::notify::raise(town, event, self.agent, &said.reason);
        }
    }

    fn write_down(&self, town: &Town, said: &ReportedState) {
        let is_over = self.before == Some(State::Paused) && self.has_state(said);
        let by = Some(self.resumer).filter(|by| !by.is_empty());
        let resumed = is_over.then(|| event::resumed(self.agent, by));
        let is_another = said.state == State::Waiting
            && event::asks_another(self.question, &said.reason)
            && self.has_state(said)
            && !self.is_leaving;
        let another = is_another.then_some(notify::NoticeKind::Waiting);
        // The person who interrupts a turn needs no notification, but it is written as an event.
        let is_cut = said.reason == Reason::Interrupted
            && matches!(self.before, Some(State::Busy | State::Waiting))
            && self.has_state(said)
            && !self.is_leaving;
        let cut = is_cut.then_some(notify::NoticeKind::Done);
        let begun = self.notice(said).or(another).or(cut);
        let begun = begun.and_then(|begun| event::state_event(begun, self.agent, &report(said)));
        let all = resumed.into_iter().chain(begun);
        let all = all.map(|event| event.with("session_id", self.session));
        Events::of(town).note(all.collect());
    }
}

fn report(said: &ReportedState) -> StateReport {
    StateReport {
        reason: Some(said.reason.clone()),
        ..StateReport::new(said.state, StateSource::Hook)
    }
}

fn ask(target: impl Into<Target>, format: &str) -> Command {
    let ask = Command::new("display-message").arg("-p");
    ask.target(target).arg(format)
}

fn is_server_gone(error: &gt_tmux::Error) -> bool {
    matches!(error.kind(), ErrorKind::NoServer | ErrorKind::ServerLost)
}

fn apply(town: &Town, batch: Batch) -> Result<String> {
    let done = town.server().run(batch);
    wake::monitors(town);
    done.map_err(|error| tmux_problem("cannot tag the container", error))
}

/// Returns the tags for a hook's report.
fn report_tags(
    target: &SessionName,
    event: HookEvent,
    said: &ReportedState,
    now: i64,
) -> Vec<Command> {
    let mut tags = state_tags(target, said.state, StateSource::Hook, now, &said.reason);
    // Background tasks are reported at the end of a turn; the count holds until the next turn
    // begins.
    let tells_of_tasks = signal::ends_a_turn(event) && event != HookEvent::Interrupt;
    if tells_of_tasks || event == HookEvent::Prompt {
        let count = Some(said.background).filter(|count| *count > 0);
        let count = count.map(|count| count.to_string()).unwrap_or_default();
        let set = Command::new("set-option").target(target.clone());
        tags.push(set.args([tag::BACKGROUND_TASKS, &count]));
    }
    if event == HookEvent::Prompt {
        let unset = Command::new("set-option").arg("-u");
        tags.push(unset.target(target.clone()).arg(tag::FIRST_PROMPT));
    }
    tags
}

/// Returns whether a session begins whose program may have been started with a prompt.
fn begins_with_prompt(event: HookEvent, report: &Value) -> bool {
    let is_first = !matches!(report["source"].as_str(), Some("clear" | "compact"));
    event == HookEvent::SessionStart && is_first
}

/// Returns the tags of a session that begins: busy if its program was started with a prompt, else
/// idle.
fn with_first_prompt(
    target: &SessionName,
    event: HookEvent,
    now: i64,
    idle: Vec<Command>,
) -> Command {
    let busy = report_tags(target, event, &signal::first_prompt(), now);
    let lines = |commands: Vec<Command>| {
        let lines: Vec<String> = commands.into_iter().map(|it| it.to_line()).collect();
        lines.join(" ; ")
    };
    Command::new("if-shell")
        .arg("-F")
        .target(target.clone())
        .args([
            &format!("#{{{}}}", tag::FIRST_PROMPT),
            &lines(busy),
            &lines(idle),
        ])
}

fn state_tags(
    target: &(impl Into<Target> + Clone),
    state: State,
    source: StateSource,
    now: i64,
    reason: &str,
) -> Vec<Command> {
    // A repeated report does not reset the time. This command comes first, because it reads the
    // previous state.
    let is_same = format!("#{{==:#{{{}}},{}}}", tag::STATE, state.as_str());
    let before = format!("#{{{}}}", tag::STATE_SINCE);
    let since = format!("#{{?#{{&&:{is_same},{before}}},{before},{now}}}");
    let since = Command::new("set-option")
        .arg("-F")
        .target(target.clone())
        .args([tag::STATE_SINCE, &since]);
    let values = [
        (tag::STATE, state.as_str()),
        (tag::STATE_SOURCE, source.as_str()),
        (tag::STATE_REASON, reason),
    ];
    let set = |(option, value): (&str, &str)| {
        Command::new("set-option")
            .target(target.clone())
            .args([option, value])
    };
    std::iter::once(since).chain(values.map(set)).collect()
}

/// Returns a command that runs these commands only if the format is empty or 0.
fn unless(
    target: &(impl Into<Target> + Clone),
    format: &str,
    commands: impl IntoIterator<Item = Command>,
) -> Command {
    let lines: Vec<String> = commands.into_iter().map(|it| it.to_line()).collect();
    Command::new("if-shell")
        .arg("-F")
        .target(target.clone())
        .args([format, "", &lines.join(" ; ")])
}

/// Returns a format that is true while a container is in one of these states, and for less than the
/// given number of seconds, if any.
fn kept_state_format(states: &[(State, Option<i64>)], now: i64) -> Option<String> {
    let is = |(state, seconds): &(State, Option<i64>)| {
        let is_it = format!("#{{==:#{{{}}},{}}}", tag::STATE, state.as_str());
        match seconds {
            None => is_it,
            Some(seconds) => {
                let since = format!("#{{e|-:{now},0#{{{}}}}}", tag::STATE_SINCE);
                format!("#{{&&:{is_it},#{{e|<:{since},{seconds}}}}}")
            }
        }
    };
    states
        .iter()
        .map(is)
        .reduce(|any, one| format!("#{{||:{any},{one}}}"))
}

/// Notes the conversation of the agent of this container, and nothing else.
pub fn note_conversation(town: &Town, container: &str, id: &str) -> Result<()> {
    let target =
        SessionName::try_from(container).map_err(|error| Problem::usage(error.to_string()))?;
    let set = Command::new("set-option").target(target.clone());
    let batch = Batch::from(ask(target.clone(), SESSION_AND_CONVERSATION))
        .then(set.args([tag::HARNESS_SESSION, id]))
        .then_all(containers::pack(target.clone()));
    let batch = match own_session(town, container) {
        Some(session) => only_of(&session, &target, &batch),
        None => return Ok(()),
    };
    let answer = apply(town, batch)?;
    match answer.strip_prefix(OF_THIS_SESSION) {
        Some(before) => remember_conversation(town, before, id),
        None => Ok(()),
    }
}

/// Writes a conversation's id to the journal when it is new: the tag is lost with the server.
/// `before` holds the session and its previous id.
fn remember_conversation(town: &Town, before: &str, id: &str) -> Result<()> {
    let (session, known) = before
        .trim_end_matches('\n')
        .split_once(' ')
        .unwrap_or_default();
    // If `gt` chose the id, it equals the session's id and was recorded at the start.
    let is_chosen = known.is_empty() && session == id;
    if session.is_empty() || known == id || is_chosen {
        return Ok(());
    }
    Sessions::of(town).record(&[Record {
        harness_session_id: Some(id.to_owned()),
        ..Record::about(session)
    }])
}

/// Returns the container whose agent has this conversation: for hooks that run in another program's
/// environment.
pub fn container_of_conversation(town: &Town, id: &str) -> Result<Option<String>> {
    let all = containers::list(town)?;
    Ok(all
        .iter()
        .find(|container| container.pane().tag_harness_session == id)
        .map(|container| container.name().to_owned()))
}

#[cfg(test)]
mod tests;
