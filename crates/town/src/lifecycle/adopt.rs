//! Makes agent programs that a person started in a tmux pane agents of the town, without a restart.
//!
//! The person's pane, window and session stay as they are. The container is a separate session on
//! the same tmux server that also shows the person's window (`link-window`), so that every command
//! finds the agent by its tags. For a server that is not the town's, a note in `.runtime/adopted/`
//! stores the socket ([`crate::terminal::adopted`]).
//!
//! A session named `agent_{slug}` without tags is an agent by its name alone: it can be listed,
//! read and messaged without a change ([`crate::terminal::containers`]). `gt adopt` adds its
//! conversation and hooks.
//!
//! [`candidates`] finds programs to adopt, [`conversation`] finds their conversations, and
//! [`crate::catalog::live_hooks`] installs hooks in a running program.

mod candidates;
mod conversation;
mod ending;
mod pane;

pub use candidates::{AdoptionCandidate, candidates};
pub use conversation::FoundConversation;
pub use ending::note_end;
pub use pane::container_of_pane;

use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::{fault, processes, surroundings, wake};
use crate::catalog::directory::{self, AgentFile};
use crate::catalog::{harnesses, live_hooks, other_towns, roles};
use crate::lifecycle::start::{self, StartOptions};
use crate::records::sessions::Sessions;
use crate::records::usage;
use crate::terminal::adopted::{AdoptionNote, home_of};
use crate::terminal::appearance;
use crate::terminal::containers::linked;
use crate::terminal::containers::{self, Adopted, Container, Owner, tmux_problem};
use crate::{Result, Town};
use gt_core::record::{Record, SessionStatus};
use gt_core::session::SessionId;
use gt_core::startup::{account_key, tag};
use gt_core::state::{State, StateSource};
use gt_core::{Identity, Problem, Role, adopt as core};
use gt_tmux::{Batch, Command, PaneId, SessionName};

/// Options of an adoption.
#[derive(Clone, Debug, Default)]
pub struct AdoptOptions {
    /// The agent that the program becomes; `agent/<slug of its folder>` by default.
    pub identity: Option<Identity>,
    /// The conversation, if it cannot be detected.
    pub conversation: Option<String>,
    /// Leave the program's settings as they are.
    pub no_hooks: bool,
}

/// The result of an adoption.
#[derive(Clone, Debug)]
pub struct AdoptedAgent {
    pub identity: Identity,
    pub container: String,
    pub session: SessionId,
    pub pid: u32,
    pub pane: PaneId,
    pub socket: String,
    pub harness: String,
    pub work_dir: Option<String>,
    pub conversation: Option<FoundConversation>,
    /// The settings file through which the program calls our hooks.
    pub hooks: Option<std::path::PathBuf>,
    pub warnings: Vec<String>,
}

/// Makes a running program an agent of the town.
pub fn adopt(
    town: &Town,
    candidate: &AdoptionCandidate,
    options: &AdoptOptions,
) -> Result<AdoptedAgent> {
    fault::point(town, "adopt.chosen");
    let _lock = linked::lock(town)?;
    let home = &town.with_server(&candidate.socket);
    let home = match candidate.socket == town.server().socket_path() {
        true => town,
        false => home,
    };
    let identity = match &options.identity {
        Some(identity) => identity.clone(),
        None => free_identity(town, home, candidate)?,
    };
    identity.check_new(town.registry())?;
    let _held = start::hold(town, &identity)?;
    let name = roles::container_name(town, &identity)?;
    refuse_taken(town, home, candidate, &identity, &name)?;
    let Some(birth) = processes::birth_certificate(candidate.pid) else {
        return Err(Problem::not_found(format!(
            "the process {} has ended",
            candidate.pid
        )));
    };
    let preset = harnesses::resolve(town, &candidate.harness)?.value;
    let found = match &options.conversation {
        Some(id) => Some(FoundConversation::given(id)),
        None => candidate.conversation.clone(),
    };
    let session = SessionId::new(town.clock().new_id());
    let adopted = Adopted {
        pid: candidate.pid,
        birth,
        is_linked: candidate.session_name != name,
    };
    let details = processes::details(candidate.pid);
    let work_dir = details.folder.as_ref().and_then(|dir| dir.to_str());
    let start_options = StartOptions {
        harness: Some(candidate.harness.clone()),
        work_dir: details.folder.clone(),
        config_dir: preset
            .env
            .config_dir
            .as_ref()
            .and_then(|variable| details.env.get(variable).cloned()),
        // A later start asks for permissions as this program does.
        skip_permissions: Some(core::never_asks(&preset, &details.words)),
        ..StartOptions::default()
    };
    let tags = tags(
        town,
        &identity,
        candidate,
        session,
        &adopted,
        &start_options,
        &found,
        &preset,
    );
    let mut warnings = Vec::new();
    let hooks = match options.no_hooks {
        true => None,
        false => live_hooks::plan(town, &preset, details.folder.as_deref()),
    };
    let mut note = AdoptionNote {
        agent: identity.address(),
        socket: candidate.socket.clone(),
        container: name.clone(),
        session: session.to_string(),
        pid: adopted.pid,
        birth: adopted.birth.clone(),
        pane: candidate.pane.to_string(),
        window: candidate.window.to_string(),
        tags: tags
            .iter()
            .map(|(option, value)| ((*option).to_owned(), value.clone()))
            .collect(),
        hooks: hooks.as_ref().map(|hooks| hooks.path.clone()),
        hook_command: hooks.as_ref().map(|hooks| hooks.command.clone()),
    };
    // Written before anything is created: if this process is killed later, the next sync removes
    // the leftovers by this note.
    note.write(town, &identity)?;
    fault::point(town, "adopt.noted");
    let record = begin(town, home, &identity, &name, candidate, session);
    let record = Record {
        cwd: work_dir.map(str::to_owned),
        harness_session_id: found.as_ref().map(|found| found.id.clone()),
        start: Some(start_options.to_tag()),
        ..record
    };
    let was_ours = containers::find(home, &name)?.is_some_and(|it| it.is_vacant());
    let made = container(home, candidate, &name, adopted.is_linked, &note.tags).and_then(|()| {
        fault::point(town, "adopt.contained");
        Sessions::of(town).record(&[record])
    });
    if let Err(problem) = made {
        roll_back(town, home, &identity, &name, was_ours);
        return Err(problem);
    }
    fault::point(town, "adopt.recorded");
    wake::monitors(home);
    if identity.role() == Role::Agent && directory::agent_file(town, &identity)?.is_none() {
        let file = AgentFile {
            work_dir: details.folder.clone(),
            harness: Some(candidate.harness.clone()),
            prompt: None,
        };
        let written = directory::write_agent_file(town, &identity, &file);
        warnings.extend(written.err().map(|problem| problem.to_string()));
    }
    let noted = usage::note_folder(town, session, &preset, &details.env);
    warnings.extend(noted.err().map(|problem| problem.to_string()));
    if let Some(Err(problem)) = hooks.as_ref().map(live_hooks::install) {
        warnings.push(problem.to_string());
        (note.hooks, note.hook_command) = (None, None);
        note.write(town, &identity)?;
    }
    fault::point(town, "adopt.hooked");
    // Key bindings and hooks are not installed on the person's own server.
    if home.server().socket_path() == town.server().socket_path() {
        let greeted = appearance::install_keys(town).and_then(|()| other_towns::remember(town));
        warnings.extend(greeted.err().map(|problem| problem.to_string()));
    }
    Ok(AdoptedAgent {
        container: name,
        session,
        pid: candidate.pid,
        pane: candidate.pane,
        socket: candidate.socket.display().to_string(),
        harness: candidate.harness.clone(),
        work_dir: work_dir.map(str::to_owned),
        conversation: found,
        hooks: note.hooks,
        warnings,
        identity,
    })
}

/// Returns the record of the session's start, as written to the journal.
fn begin(
    town: &Town,
    home: &Town,
    identity: &Identity,
    container: &str,
    candidate: &AdoptionCandidate,
    session: SessionId,
) -> Record {
    Record {
        tmux_session: Some(container.to_owned()),
        tmux_socket: Some(home.server().socket_path().to_string_lossy().into_owned()),
        tmux_pid: Some(candidate.server_pid),
        agent: Some(identity.address()),
        rig: identity.rig().map(str::to_owned),
        role: Some(identity.role().as_str().to_owned()),
        started_at: Some(town.clock().text()),
        work_unit: start::hooked_work(town, identity).map(|id| id.to_string()),
        chain_id: Some(session.to_string()),
        harness: Some(candidate.harness.clone()),
        pane: Some(candidate.pane.to_string()),
        pid: Some(candidate.pid),
        status: Some(SessionStatus::Running),
        host: Some(surroundings::host()),
        ..Record::about(session.to_string())
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "one table of tags from all that is known"
)]
fn tags(
    town: &Town,
    identity: &Identity,
    candidate: &AdoptionCandidate,
    session: SessionId,
    adopted: &Adopted,
    start_options: &StartOptions,
    found: &Option<FoundConversation>,
    preset: &gt_core::harness::Preset,
) -> Vec<(&'static str, String)> {
    let now = town.clock().seconds();
    let conversation = found.as_ref().map(|found| found.id.clone());
    let never_asks = start_options.skip_permissions == Some(true);
    vec![
        (
            appearance::TAG_BINARY,
            town.around().gt.to_string_lossy().into_owned(),
        ),
        (tag::ADOPTED, adopted.to_tag()),
        (tag::PANE, candidate.pane.to_string()),
        (tag::SESSION, session.to_string()),
        (tag::CHAIN, session.to_string()),
        (tag::HARNESS, candidate.harness.clone()),
        (tag::PROCESS_NAMES, preset.process.names.join(",")),
        (tag::HARNESS_SESSION, conversation.unwrap_or_default()),
        (
            tag::NEVER_ASKS,
            if never_asks { "1" } else { "" }.to_owned(),
        ),
        (tag::AUTO_RESPAWN, String::new()),
        (tag::START, start_options.to_tag()),
        (
            tag::ACCOUNT,
            account_key(&candidate.harness, start_options.config_dir.as_deref()),
        ),
        (tag::STATE, State::Running.as_str().to_owned()),
        (tag::STATE_SINCE, now.to_string()),
        (tag::STATE_SOURCE, StateSource::Process.as_str().to_owned()),
        (tag::STATE_REASON, String::new()),
        (tag::LEFT, String::new()),
        (tag::AGENT, identity.address()),
        // Last: this tag makes the container ours.
        (tag::TOWN, town.root_text().to_owned()),
    ]
}

/// Makes the container, with these tags: a new session that shows the person's window, or the
/// person's own session if it already has the container's name.
fn container(
    home: &Town,
    candidate: &AdoptionCandidate,
    name: &str,
    is_linked: bool,
    tags: &[(String, String)],
) -> Result<()> {
    let target = SessionName::try_from(name).map_err(|error| Problem::usage(error.to_string()))?;
    if is_linked {
        return linked::make_container(home, &target, candidate.pane, tags);
    }
    let tagged = home
        .server()
        .run_private(Batch::from(linked::set(&target, tags)));
    tagged
        .map(drop)
        .map_err(|error| tmux_problem("cannot tag the container", error))
}

/// Undoes an adoption that failed: the container ends, or is as it was before. The error that caused
/// it is reported, failures of the rollback are logged, and the next sync removes leftovers by the
/// note.
fn roll_back(town: &Town, home: &Town, identity: &Identity, name: &str, was_ours: bool) {
    let left = format!("the container {name} is left");
    let made = containers::find(home, name).or_warn(&left).flatten();
    let made = made.filter(|made| matches!(made.owner(), Owner::Agent(owner) if owner == identity));
    if let Some(container) = made {
        linked::release(home, &container).or_warn(&left);
        let unset = Command::new("set-option").arg("-u").target(container.id());
        if !was_ours {
            let batch = Batch::from(unset.arg(tag::TOWN));
            let batch = batch.then_all(containers::pack(container.id()));
            home.server().run(batch).or_warn(&left);
        }
    }
    linked::forget_locked(town, identity);
}

/// Releases containers whose programs have ended, and deletes the notes of containers that are
/// gone. A sync calls this after it has recorded the ends of the sessions.
pub(crate) fn tidy(town: &Town) -> Result<()> {
    let notes = AdoptionNote::all(town);
    if notes.is_empty() {
        return Ok(());
    }
    let _lock = linked::lock(town)?;
    for note in notes {
        let Some(identity) = Identity::from_address(&note.agent, town.registry()) else {
            continue;
        };
        let home = town.with_server(&note.socket);
        let Some(_held) = FileLock::try_take(&town.lock_path(&identity))? else {
            continue;
        };
        let own = match containers::of_agent(&home, &identity) {
            Ok(own) => own,
            // A person's server that does not answer is retried by the next sync.
            Err(_) if home.is_elsewhere() => continue,
            Err(problem) => return Err(problem),
        };
        // If the pane was moved since the sync, the next listing follows it.
        let is_moved = note.program_runs() && linked::moved_to(&home, &note)?.is_some();
        match own {
            _ if is_moved => {}
            Some(container) if container.adopted().is_none() => {
                linked::forget_locked(town, &identity);
            }
            Some(container) if container.pane().dead || container.lost_agent_pane() => {
                linked::release(&home, &container)?;
                linked::forget_locked(town, &identity);
            }
            Some(container) => find_conversation(&home, &container)?,
            None => linked::forget_locked(town, &identity),
        }
    }
    Ok(())
}

/// Records the conversation of a program that had none when it was adopted and has no hooks to
/// report it.
fn find_conversation(home: &Town, container: &Container) -> Result<()> {
    let row = container.pane();
    if !row.tag_harness_session.is_empty() {
        return Ok(());
    }
    let preset = harnesses::resolve(home, &row.tag_harness)?.value;
    let details = processes::details(row.pid);
    let Some(found) = conversation::find(home, &preset, row.pid, &details) else {
        return Ok(());
    };
    let set = Command::new("set-option").target(container.id());
    let set = set.args([tag::HARNESS_SESSION, found.id.as_str()]);
    home.server()
        .run(Batch::from(set).then_all(containers::pack(container.id())))
        .map_err(|error| tmux_problem("cannot tag the container", error))?;
    Sessions::of(home).record(&[Record {
        harness_session_id: Some(found.id),
        ..Record::about(row.tag_session.clone())
    }])
}

/// Returns the first free `agent/<slug>` for the program's folder.
fn free_identity(town: &Town, home: &Town, candidate: &AdoptionCandidate) -> Result<Identity> {
    if let Some(identity) = &candidate.identity {
        return Ok(identity.clone());
    }
    let folder = candidate.folder.clone().unwrap_or_default();
    let slug = core::slug(&folder.to_string_lossy());
    let known = directory::on_disk(town);
    for number in 1..1000 {
        let slug = match number {
            1 => slug.clone(),
            _ => format!("{slug}-{number}"),
        };
        let identity = Identity::agent(slug);
        let name = roles::container_name(town, &identity)?;
        let is_taken = known.contains(&identity)
            || containers::find(town, &name)?.is_some()
            || containers::find(home, &name)?.is_some();
        if !is_taken {
            return Ok(identity);
        }
    }
    Err(Problem::conflict("no name is free").hint("name it with `--name`"))
}

/// Fails if the agent is already running, or another session has the name.
fn refuse_taken(
    town: &Town,
    home: &Town,
    candidate: &AdoptionCandidate,
    identity: &Identity,
    name: &str,
) -> Result<()> {
    if let Some(agent) = pane::agent_in(home, candidate.pane)? {
        return Err(
            Problem::conflict(format!("the program is already the agent {agent}"))
                .hint("`gt agents` shows it"),
        );
    }
    let agents_home = home_of(town, identity);
    let here = containers::of_agent(&agents_home, identity)?;
    let is_itself = |it: &Container| it.pane().pane == candidate.pane && it.adopted().is_some();
    if let Some(other) = here.filter(|it| !is_itself(it)) {
        return Err(
            Problem::conflict(format!("{identity} exists already, in {}", other.name()))
                .hint("name another agent with `--name SLUG` or `--agent ADDRESS`"),
        );
    }
    let taken = containers::find(home, name)?;
    match taken {
        Some(other) if other.name() != candidate.session_name => Err(Problem::conflict(format!(
            "a tmux session named {name} exists already on {}",
            candidate.socket.display()
        ))
        .hint("name another agent with `--name SLUG` or `--agent ADDRESS`")),
        _ => Ok(()),
    }
}
