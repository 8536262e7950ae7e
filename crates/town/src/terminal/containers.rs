//! All containers of a server, read in one call.
//!
//! Tags on a container say which agent it belongs to. A session without tags may have the name of
//! an agent's container and still belong to the user; [`Owner`] distinguishes it, and commands only
//! show it. The list also has the user's sessions, so that no second query is needed.

mod account;
mod follow;
pub(crate) mod linked;
mod orphans;

pub(crate) use orphans::id_of_untagged;

use crate::base::clock::Clock;
use crate::base::or_log::OrLog;
use crate::base::processes;
use crate::terminal::adopted;
use crate::{Result, Town};
use gt_core::beside;
use gt_core::harness::Preset;
use gt_core::patterns::Patterns;
use gt_core::record::Outcome;
use gt_core::screen::CapturedScreen;
use gt_core::session::SessionId as AgentSessionId;
use gt_core::startup::tag;
use gt_core::state::{self, ObservedPane, State, StateSource};
use gt_core::{Identity, Problem, Role};
use gt_tmux::{
    Command, Error as TmuxError, ErrorKind, PaneId, SessionId, SessionName, Target, WindowId,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

gt_tmux::query! {
    /// One pane, with the tags of its session.
    pub struct PaneRow {
        pub session: SessionId = "#{session_id}",
        pub session_name: String = "#{session_name}",
        pub attached: String = "#{session_attached_list}",
        pub pane: PaneId = "#{pane_id}",
        /// The agent's process: the pane's first process, or a program that was adopted in it.
        pub pid: u32 = "#{pane_pid}",
        /// The pane's first process, if it is not the agent's. No field of tmux: filled in later.
        first_pid: Option<u32> = "",
        pub dead: bool = "#{pane_dead}",
        pub exit_status: Option<i32> = "#{pane_dead_status}",
        pub exit_signal: Option<i32> = "#{pane_dead_signal}",
        pub died_at: Option<i64> = "#{pane_dead_time}",
        pub title: String = "#{pane_title}",
        pub tty: String = "#{pane_tty}",
        pub start_path: String = "#{pane_start_path}",
        pub activity: i64 = "#{window_activity}",
        pub handled_at: Option<i64> = "#{session_activity}",
        pub attached_at: Option<i64> = "#{session_last_attached}",
        pub window: WindowId = "#{window_id}",
        /// Number of changes of tags on the server.
        changes: Option<u64> = "#{@gt_changes}",
        // On panes, and therefore not packed.
        pub tag_window: String = "#{@gt_window}",
        pub tag_beside: String = "#{@gt_beside}",
        pub tag_port: Option<u16> = "#{@gt_port}",
        pub tag_answers: String = "#{@gt_answers}",
        pub tag_typed: Option<i64> = "#{@gt_typed}",
    }
    packed "@gt_tags_1" {
        pub server_pid: u32 = "#{pid}",
        pub server_started: i64 = "#{start_time}",
        pub created: i64 = "#{session_created}",
        pub tag_town: String = "#{@gt_town}",
        pub tag_agent: String = "#{@gt_agent}",
        pub tag_session: String = "#{@gt_session}",
        pub tag_harness: String = "#{@gt_harness}",
        pub tag_model: String = "#{@gt_model}",
        pub tag_pane: Option<PaneId> = "#{@gt_pane}",
        pub tag_process_names: String = "#{@gt_process_names}",
        pub tag_state: String = "#{@gt_state}",
        pub tag_state_since: Option<i64> = "#{@gt_state_since}",
        pub tag_state_source: String = "#{@gt_state_source}",
        pub tag_state_reason: String = "#{@gt_state_reason}",
        pub tag_background_tasks: Option<u32> = "#{@gt_background_tasks}",
        pub tag_auto_respawn: bool = "#{@gt_auto_respawn}",
        pub tag_deaths: String = "#{@gt_deaths}",
        pub tag_chain: String = "#{@gt_chain}",
        pub tag_never_asks: bool = "#{@gt_never_asks}",
        pub tag_sandbox: String = "#{@gt_sandbox}",
        pub tag_harness_session: String = "#{@gt_harness_session}",
        pub tag_options: String = "#{@gt_dress}",
        /// Empty if it has 400 bytes or more, so that a listing stays cheap; most are shorter.
        pub tag_start: String = "#{?#{e|<:#{n:@gt_start},400},#{@gt_start},}",
        pub tag_account: String = "#{@gt_account}",
        pub tag_digest: String = "#{@gt_digest}",
        pub tag_adopted: String = "#{@gt_adopted}",
        pub tag_hold: String = "#{@gt_hold}",
        pub tag_left: bool = "#{@gt_left}",
    }
}

/// Number of changes of tags on this server.
const CHANGES: &str = "@gt_changes";

/// Returns the commands that end every batch which changes a tag of a container. They update the
/// packed copy that listings read, and count the change for summaries of all containers.
pub(crate) fn pack(container: impl Into<Target>) -> Vec<Command> {
    let copy = gt_tmux::pack::<PaneRow>(container);
    copy.into_iter().chain([changed()]).collect()
}

/// Returns the command that counts a change of tags.
pub(crate) fn changed() -> Command {
    // An option of the server is the first that tmux looks for.
    let count = format!("#{{e|+:0#{{{CHANGES}}},1}}");
    Command::new("set-option")
        .arg("-sF")
        .args([CHANGES, &count])
}

/// A server, and the number of changes of tags on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerChanges {
    server: u32,
    started: i64,
    changes: u64,
}

impl ServerChanges {
    pub(crate) fn is_same_server(&self, other: &ServerChanges) -> bool {
        (self.server, self.started) == (other.server, other.started)
    }
}

gt_tmux::query! {
    struct ChangesRow {
        server: u32 = "#{pid}",
        started: i64 = "#{start_time}",
        changes: Option<u64> = "#{@gt_changes}",
    }
}

/// Returns the changes of tags on the town's server; `None` without a server, or if no tag was
/// changed yet.
pub(crate) fn changes(town: &Town) -> Result<Option<ServerChanges>> {
    let ask = Command::new("display-message").arg("-p");
    match town.server().rows::<ChangesRow>(ask) {
        Ok(rows) => Ok(rows.first().and_then(|row| {
            Some(ServerChanges {
                server: row.server,
                started: row.started,
                changes: row.changes?,
            })
        })),
        Err(error) if has_no_server(&error) => Ok(None),
        Err(error) => Err(tmux_problem("cannot ask tmux for changes", error)),
    }
}

/// Name of the window in which a program resolves the conflicts of a merge.
pub(crate) const RESOLVER_WINDOW: &str = "merge";

/// Identifies a pane among all tmux servers. The pane id alone does not: each server counts its
/// panes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PanePlace {
    /// The process id of the server.
    pub server: u32,
    pub pane: PaneId,
}

impl PaneRow {
    /// Returns the pane's first process.
    pub fn pane_pid(&self) -> u32 {
        self.first_pid.unwrap_or(self.pid)
    }

    /// Makes another process of the pane the agent's.
    fn set_program(&mut self, pid: u32) {
        self.first_pid = Some(self.pane_pid());
        self.pid = pid;
    }

    /// Returns the folder that the agent's process is in, or was started in if the system does not
    /// say; empty if it has ended. tmux would read it from the kernel for each pane of a listing, in
    /// its only thread.
    pub fn folder(&self) -> String {
        match processes::folder(self.pid) {
            _ if self.dead => String::new(),
            Some(folder) => folder.to_string_lossy().into_owned(),
            None => self.start_path.clone(),
        }
    }

    pub fn place(&self) -> PanePlace {
        PanePlace {
            server: self.server_pid,
            pane: self.pane,
        }
    }

    /// Returns whether the pane is dead and tmux has no exit status, or does not have it yet.
    pub(crate) fn lost_its_status(&self) -> bool {
        self.dead && self.exit_status.is_none() && self.exit_signal.is_none()
    }

    /// Returns the time of the last input to this pane by `gt`, or to any pane of its container by
    /// an attached person. Attaching alone, as the board does, does not count as input.
    fn typed_at(&self) -> Option<i64> {
        let by_hand = self
            .handled_at
            .filter(|_| self.handled_at > self.attached_at);
        self.tag_typed.max(by_hand)
    }

    /// Returns the harness of the program that runs here beside the agent.
    pub fn harness_beside(&self) -> &str {
        match self.tag_beside.split(' ').next() {
            Some(harness) if !harness.is_empty() => harness,
            _ => &self.tag_harness,
        }
    }

    /// Returns the `gt` process that is starting the program beside the agent, and the time at
    /// which it began. Returns `None` if that process was killed and only its tag is left.
    pub(crate) fn starter_beside(&self) -> Option<(u32, i64)> {
        let mut words = self.tag_beside.split(' ').skip(1);
        let since = words.next()?.parse().ok()?;
        let pid = words.next()?.parse().ok()?;
        processes::is_born_as(pid, words.next()?)?;
        Some((pid, since))
    }

    /// Returns the state of the program that runs here beside the agent, with its screen if it was
    /// read.
    pub fn state_beside(
        &self,
        preset: Option<&Preset>,
        patterns: &Patterns,
        screen: Option<CapturedScreen<'_>>,
    ) -> state::StateReport {
        let starting = self.starter_beside();
        let seen = ObservedPane {
            dead: self.dead,
            exit_status: self.exit_status,
            exit_signal: self.exit_signal,
            died_at: self.died_at,
            title: &self.title,
            tag: starting.map(|_| State::Starting),
            tag_since: starting.map(|(_, since)| since),
            printed_at: Some(self.activity),
            typed_at: self.typed_at(),
            screen,
            ..ObservedPane::default()
        };
        beside::judge(&self.tag_window, &seen, preset, patterns)
    }
}

/// Returns whether a start that began at this time (seconds since the epoch) exceeds the time
/// limit.
fn is_too_long_a_start(since: Option<i64>) -> bool {
    const LONGEST_START_SECONDS: i64 = 600;
    let age = since.map(|since| Clock::default().seconds() - since);
    age.is_none_or(|age| age > LONGEST_START_SECONDS)
}

/// A tmux session with its panes.
#[derive(Clone, Debug)]
pub struct Container {
    panes: Vec<PaneRow>,
    agent_pane: usize,
    owner: Owner,
    socket: Option<PathBuf>,
}

/// A program that a person has started, as parsed from the tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    pub pid: u32,
    /// Distinguishes it from a later process with the same pid.
    pub birth: String,
    /// The container is ours, and the person's window is linked into it.
    pub is_linked: bool,
}

impl Adopted {
    pub fn to_tag(&self) -> String {
        let linked = if self.is_linked { " linked" } else { "" };
        format!("{} {}{linked}", self.pid, self.birth)
    }

    pub(crate) fn parse(tag: &str) -> Option<Self> {
        let mut words = tag.split(' ');
        Some(Adopted {
            pid: words.next()?.parse().ok()?,
            birth: words.next()?.to_owned(),
            is_linked: words.next() == Some("linked"),
        })
    }
}

/// Owner of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An agent of this town.
    Agent(Identity),
    /// An agent of the town at that root.
    OtherTown(String),
    /// An agent of this town by its session's name alone, `agent_{slug}`: gt did not start it. It
    /// can be listed, read and talked to, and its session is never removed.
    Orphan(Identity),
    /// It has no tag, but the name of an agent's container. It may belong to the user, so nothing
    /// is done to it.
    Named(Identity),
    /// A session of the user.
    Person,
}

/// Lists every container of the town's server. Returns none if there is no server.
pub fn list(town: &Town) -> Result<Vec<Container>> {
    let mut containers = read_all(town)?;
    if follow::follow_moved(town, &containers) {
        containers = read_all(town)?;
    }
    if !containers.iter().any(Container::lost_its_status) {
        return Ok(containers);
    }
    match recover_status(town) {
        true => read_all(town),
        false => Ok(containers),
    }
}

/// Lists the containers of the town's server, and those of its agents on other servers. A server
/// that does not answer counts as empty.
pub fn list_everywhere(town: &Town) -> Result<Vec<Container>> {
    let mut containers = list(town)?;
    let others = adopted::on_other_servers(town).into_iter();
    containers.extend(
        others
            .filter_map(|other| list_agents(&other).or_debug("a server does not answer"))
            .flatten(),
    );
    Ok(containers)
}

/// Lists only the containers of the town's agents, for servers other than the town's.
pub(crate) fn list_agents(other: &Town) -> Result<Vec<Container>> {
    let mut containers = list(other)?;
    containers.retain(|container| container.identity().is_some());
    Ok(containers)
}

/// Makes tmux check its child processes again. tmux 3.3 may miss the end of a child, and with it
/// the exit status and the hook, until another child ends. This runs a child that ends at once.
fn recover_status(town: &Town) -> bool {
    town.server()
        .run(Command::new("run-shell").arg("true"))
        .is_ok()
}

fn read_all(town: &Town) -> Result<Vec<Container>> {
    read(town, Command::new("list-panes").arg("-a"), || ())
}

/// Reads the containers whose panes a command lists.
fn read(town: &Town, command: Command, meanwhile: impl FnOnce()) -> Result<Vec<Container>> {
    match town.server().rows_while::<PaneRow>(command, meanwhile) {
        Ok(rows) => Ok(group(rows, town)),
        Err(error) if has_no_server(&error) => Ok(Vec::new()),
        Err(error) => Err(tmux_problem("cannot list the containers", error)),
    }
}

/// Returns whether a query failed because no session answers it. For a command without a target,
/// "no such session" only means that there are none. A server ends after its last session, and
/// answers no query that comes in that moment.
pub(crate) fn has_no_server(error: &TmuxError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NoServer | ErrorKind::ServerLost | ErrorKind::NoSuchSession
    )
}

/// Reads one container by its name.
pub fn find(town: &Town, name: &str) -> Result<Option<Container>> {
    let found = find_while(town, name, || ())?;
    let has_lost = found.as_ref().is_some_and(Container::lost_its_status);
    match has_lost && recover_status(town) {
        true => find_while(town, name, || ()),
        false => Ok(found),
    }
}

fn find_while(town: &Town, name: &str, meanwhile: impl FnOnce()) -> Result<Option<Container>> {
    let Ok(target) = SessionName::try_from(name) else {
        return Ok(None);
    };
    let command = Command::new("list-panes").arg("-s").target(target);
    let found = read(town, command, meanwhile)?;
    Ok(found.into_iter().next())
}

/// Reads only the containers that one of these texts could mean: an address, or a short target, which
/// is a container's name, the last part of an address, or the beginning of a session id. Returns
/// `None` if a text does not fit into a filter, or if a container needs the repairs of a whole listing.
pub(crate) fn list_named(town: &Town, texts: &[String]) -> Result<Option<Vec<Container>>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    let is_filter = |text: &String| !text.is_empty() && text.bytes().all(is_word);
    if !texts.iter().all(is_filter) {
        return Ok(None);
    }
    let conditions = texts.iter().flat_map(|text| match text.contains('/') {
        true => vec![has_tag(tag::AGENT, text)],
        false => {
            let is_named = |name: &str| format!("#{{==:#{{session_name}},{name}}}");
            // The second is the name of an agent without tags.
            let names = [text.clone(), format!("agent_{text}")];
            let mut short = names.map(|name| is_named(&name)).to_vec();
            short.push(format!("#{{m:*/{text},#{{{}}}}}", tag::AGENT));
            if AgentSessionId::could_be_prefix(text) {
                short.push(format!("#{{m:{text}*,#{{{}}}}}", tag::SESSION));
            }
            short
        }
    });
    select(town, conditions)
}

fn has_tag(tag: &str, value: &str) -> String {
    format!("#{{==:#{{{tag}}},{value}}}")
}

/// Lists the containers that meet one of these conditions. tmux expands each condition for each pane,
/// and prints only the panes that meet one.
fn select(town: &Town, conditions: impl Iterator<Item = String>) -> Result<Option<Vec<Container>>> {
    let any = conditions.reduce(|any, one| format!("#{{||:{any},{one}}}"));
    let command = Command::new("list-panes").args(["-a", "-f", &any.unwrap_or_default()]);
    let found = read(town, command, || ())?;
    // Moved panes, and deaths whose status tmux has lost, are repaired by a whole listing.
    let needs_all = |container: &Container| {
        container.lost_its_status()
            || (container.adopted().is_some() && container.lost_agent_pane())
    };
    match found.iter().any(needs_all) {
        true => Ok(None),
        false => Ok(Some(found)),
    }
}

fn group(rows: Vec<PaneRow>, town: &Town) -> Vec<Container> {
    let mut containers: Vec<Container> = Vec::new();
    for row in rows {
        match containers.iter_mut().rfind(|c| c.id() == row.session) {
            Some(container) => container.panes.push(row),
            None => containers.push(Container {
                owner: owner(&row, town),
                panes: vec![row],
                agent_pane: 0,
                socket: town.is_elsewhere().then(|| town.server().socket_path()),
            }),
        }
    }
    for container in &mut containers {
        let remembered = container.panes[0].tag_pane;
        let found = container
            .panes
            .iter()
            .position(|row| Some(row.pane) == remembered);
        container.agent_pane = found.unwrap_or(0);
    }
    orphans::complete(town, &mut containers);
    containers
}

fn owner(row: &PaneRow, town: &Town) -> Owner {
    if row.tag_town.is_empty() {
        return match Identity::from_container(&row.session_name, town.registry()) {
            // On other servers only tags identify an agent.
            _ if town.is_elsewhere() => Owner::Person,
            Some(identity) if identity.role() == Role::Agent => Owner::Orphan(identity),
            Some(identity) => Owner::Named(identity),
            None => Owner::Person,
        };
    }
    if row.tag_town != town.root_text() {
        return Owner::OtherTown(row.tag_town.clone());
    }
    Identity::from_address(&row.tag_agent, town.registry()).map_or(Owner::Person, Owner::Agent)
}

impl Container {
    /// Returns the row of the agent's pane: the tagged one, whatever else the user has opened.
    pub fn pane(&self) -> &PaneRow {
        &self.panes[self.agent_pane]
    }

    pub(crate) fn pane_mut(&mut self) -> &mut PaneRow {
        &mut self.panes[self.agent_pane]
    }

    /// Returns the program that a person has started here, if gt did not start it.
    pub fn adopted(&self) -> Option<Adopted> {
        match &self.owner {
            Owner::Orphan(_) => Some(Adopted::default()),
            _ => Adopted::parse(&self.pane().tag_adopted),
        }
    }

    /// Returns the socket of its tmux server, if that is not the town's.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Returns the town with the tmux server that this container is on.
    pub fn home<'a>(&self, town: &'a Town) -> Cow<'a, Town> {
        match &self.socket {
            Some(socket) => Cow::Owned(town.with_server(socket)),
            None => Cow::Borrowed(town),
        }
    }

    pub fn panes(&self) -> &[PaneRow] {
        &self.panes
    }

    /// Returns the panes of windows that gt has opened beside the agent's.
    pub fn own_windows(&self) -> impl Iterator<Item = &PaneRow> {
        let agents = self.pane().pane;
        let is_own = move |row: &&PaneRow| !row.tag_window.is_empty() && row.pane != agents;
        self.panes.iter().filter(is_own)
    }

    /// Returns the pane of the program that resolves the conflicts of a merge, dead or alive.
    pub fn resolver_pane(&self) -> Option<&PaneRow> {
        let is_its = |row: &&PaneRow| row.tag_window == RESOLVER_WINDOW;
        // Prefers a live pane if there are several.
        self.own_windows()
            .filter(is_its)
            .max_by_key(|row| !row.dead)
    }

    /// Returns whether the agent's pane is gone and only panes of the user are left.
    pub fn lost_agent_pane(&self) -> bool {
        let tag = self.pane().tag_pane;
        tag.is_some() && tag != Some(self.pane().pane)
    }

    /// Returns whether an adopted program has ended, after it had announced its exit.
    pub fn has_left(&self) -> bool {
        let is_over = self.pane().dead || self.lost_agent_pane();
        self.pane().tag_left && is_over && self.adopted().is_some()
    }

    /// Returns the outcome of the agent's process. Call it only after the process has ended.
    pub(crate) fn outcome(&self) -> Outcome {
        let row = self.pane();
        match self.lost_agent_pane() {
            _ if self.has_left() => Outcome::Exited,
            true => Outcome::Crash,
            false => Outcome::of_process(row.exit_status, row.exit_signal),
        }
    }

    /// Returns whether the agent was stopped and only the user's panes keep the container open.
    pub fn is_vacant(&self) -> bool {
        self.owner == Owner::Person && !self.pane().tag_town.is_empty()
    }

    /// Returns whether the agent, or the program that resolves merge conflicts beside it, is dead
    /// with an unknown exit status.
    fn lost_its_status(&self) -> bool {
        let resolver = self.resolver_pane();
        let is_lost =
            self.pane().lost_its_status() || resolver.is_some_and(PaneRow::lost_its_status);
        is_lost && self.identity().is_some() && self.adopted().is_none()
    }

    pub fn name(&self) -> &str {
        &self.pane().session_name
    }

    pub fn id(&self) -> SessionId {
        self.panes[0].session
    }

    /// Returns the changes of tags on its server when it was read.
    pub(crate) fn changes(&self) -> Option<ServerChanges> {
        let row = self.pane();
        Some(ServerChanges {
            server: row.server_pid,
            started: row.server_started,
            changes: row.changes?,
        })
    }

    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    pub fn identity(&self) -> Option<&Identity> {
        match &self.owner {
            Owner::Agent(identity) | Owner::Orphan(identity) => Some(identity),
            _ => None,
        }
    }

    /// Returns whether a person is attached. Control clients have no terminal and do not count.
    pub fn is_attached(&self) -> bool {
        let clients = self.pane().attached.split(',');
        clients.into_iter().any(|client| client.starts_with('/'))
    }

    pub fn session_id(&self) -> Option<AgentSessionId> {
        self.pane().tag_session.parse().ok()
    }

    pub fn process_names(&self) -> Vec<String> {
        let names = self.pane().tag_process_names.split(',');
        names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns the state in the tag. A start that was killed leaves "starting" behind.
    fn tagged_state(&self) -> Option<State> {
        let pane = self.pane();
        let state = State::from_word(&pane.tag_state)?;
        if state == State::Starting && is_too_long_a_start(pane.tag_state_since) {
            return Some(State::Running);
        }
        Some(state)
    }

    /// Returns the state of the agent, as far as the listing shows it.
    pub fn state(&self, preset: Option<&Preset>) -> state::StateReport {
        self.state_shown(preset, &Patterns::default(), None)
    }

    /// Returns the state of the agent with its screen, if it was read; see
    /// [`crate::agents::states`].
    pub fn state_shown(
        &self,
        preset: Option<&Preset>,
        patterns: &Patterns,
        screen: Option<CapturedScreen<'_>>,
    ) -> state::StateReport {
        let pane = self.pane();
        let reason = Some(pane.tag_state_reason.as_str()).filter(|reason| !reason.is_empty());
        state::judge(
            &ObservedPane {
                dead: pane.dead || self.lost_agent_pane(),
                exit_status: match self.has_left() {
                    true => Some(0),
                    false => pane.exit_status,
                },
                exit_signal: pane.exit_signal,
                died_at: pane.died_at,
                title: &pane.title,
                tag: self.tagged_state(),
                tag_source: StateSource::from_word(&pane.tag_state_source),
                tag_since: pane.tag_state_since,
                tag_reason: reason,
                tag_background: pane.tag_background_tasks.unwrap_or_default(),
                tag_hold: Some(pane.tag_hold.as_str()).filter(|reason| !reason.is_empty()),
                printed_at: Some(pane.activity),
                typed_at: pane.typed_at(),
                screen,
            },
            preset,
            patterns,
        )
    }
}

/// Returns the container of an agent: by its name if that matches, else by its tag, since a role's
/// settings may have changed after it was started.
pub fn of_agent(town: &Town, identity: &Identity) -> Result<Option<Container>> {
    of_agent_while(town, identity, || ())
}

/// Returns the containers of these agents, and maybe those of others: for a few agents their own are
/// cheaper than a listing of all.
pub(crate) fn of_agents(town: &Town, identities: &[Identity]) -> Result<Vec<Container>> {
    const FEW: usize = 4;
    if identities.len() > FEW {
        return list(town);
    }
    let own = identities.iter().map(|identity| of_agent(town, identity));
    let own: Vec<Option<Container>> = own.collect::<Result<_>>()?;
    Ok(own.into_iter().flatten().collect())
}

/// Returns the container of an agent, and runs `meanwhile` while tmux answers.
pub(crate) fn of_agent_while(
    town: &Town,
    identity: &Identity,
    meanwhile: impl FnOnce(),
) -> Result<Option<Container>> {
    if let Ok(name) = crate::catalog::roles::container_name(town, identity) {
        let found = find_while(town, &name, meanwhile)?;
        let own = found.filter(|container| container.identity() == Some(identity));
        // The listing follows a pane that a person has moved.
        let own = own.filter(|own| own.adopted().is_none() || !own.lost_agent_pane());
        if own.is_some() {
            return Ok(own);
        }
    }
    let all = match adopted::has_note(town, identity) {
        true => None,
        false => select(
            town,
            std::iter::once(has_tag(tag::AGENT, &identity.address())),
        )?,
    };
    let all = all.map_or_else(|| list(town), Ok)?;
    Ok(all
        .into_iter()
        .find(|container| container.identity() == Some(identity)))
}

/// Converts an error of tmux into a problem, with the right kind and hints.
pub fn tmux_problem(what: &str, error: TmuxError) -> Problem {
    let kind = error.kind();
    let problem = match kind {
        ErrorKind::NotInstalled | ErrorKind::TooOld | ErrorKind::BadSocket | ErrorKind::Stopped => {
            Problem::environment(what)
        }
        ErrorKind::NoSuchSession | ErrorKind::NoSuchWindow | ErrorKind::NoSuchPane => {
            Problem::not_found(what)
        }
        ErrorKind::Duplicate => Problem::conflict(what),
        _ => Problem::failed(what),
    };
    let stopped = match &error {
        TmuxError::Stopped { pid, .. } => Some(*pid),
        _ => None,
    };
    let problem = problem.caused_by(error);
    if let Some(pid) = stopped {
        return problem.hint(format!("`kill -CONT {pid}` resumes it"));
    }
    match kind {
        ErrorKind::BadSocket => problem
            .hint("choose another socket: GT_TMUX_SOCKET, or `socket` under [tmux] in town.toml"),
        ErrorKind::NotInstalled => {
            problem.hint("install tmux 3.2 or later: `apt-get install tmux`, `brew install tmux`")
        }
        ErrorKind::TooOld => problem.hint("gt needs tmux 3.2 or later; `gt doctor` shows details"),
        ErrorKind::ServerLost => problem.hint("the tmux server ended meanwhile; try again"),
        _ => problem,
    }
}

#[cfg(test)]
mod tests;
