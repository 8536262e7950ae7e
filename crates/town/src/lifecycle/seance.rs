//! Seances: questions to an ended session, or to one that should not be disturbed.
//!
//! A session's dialogue is in its program's own conversation. A seance asks a *fork* of it, in the
//! same folder, and never writes to the original. The fork does not act as the agent, because it
//! has none of the agent's variables and none of our hooks. This module finds the sessions that can
//! be asked and prepares the command; the caller, which has the terminal, runs it.

mod across;

pub use across::{FAULT_POINTS, LentTranscript};

use crate::agents::account::{self, Account};
use crate::base::or_log::OrLog;
use crate::catalog::harnesses::{self, Presets};
use crate::lifecycle::start::StartOptions;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::records::usage;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::environment::belongs_to_an_agent;
use gt_core::harness::Preset;
use gt_core::record::{Outcome, Record};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Variables of an agent that describe its environment and not its identity.
const KEPT: &[&str] = &["GT_HARNESS", "GT_TMUX_SOCKET"];

/// A session in the list.
#[derive(Clone, Debug, Serialize)]
pub struct Offered {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The program's own id of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The account under which it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The first line of its first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    pub can_talk: bool,
    /// Why it cannot be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Filter for sessions.
#[derive(Clone, Debug, Default)]
pub struct SeanceFilter {
    pub role: Option<String>,
    pub rig: Option<String>,
    /// Maximum number of sessions; the newest are returned.
    pub recent: usize,
}

/// Returns the newest sessions, and whether each can be asked.
pub fn list(town: &Town, wanted: SeanceFilter) -> Result<Vec<Offered>> {
    across::clean_up(town)?;
    let sessions = Sessions::of(town).find(&SessionQuery {
        role: wanted.role,
        rig: wanted.rig,
        limit: Some(wanted.recent),
        ..SessionQuery::default()
    })?;
    let accounts = account::list(town)?;
    let mut presets = Presets::default();
    let offered = sessions.into_iter().map(|session| {
        let preset = presets.get(town, session.harness.as_deref().unwrap_or_default());
        let folder = config_dir(&session);
        let reason = match preset {
            Some(preset) => conversation(town, &session, preset).err(),
            None => Some(Problem::not_found("its harness no longer exists")),
        };
        let named = folder.and_then(|own| Account::with_folder(&accounts, &own));
        Offered {
            account: named.map(|account| account.account.clone()),
            topic: topic(&session),
            can_talk: reason.is_none(),
            reason: reason.map(|problem| problem.to_string()),
            id: session.id,
            agent: session.agent,
            role: session.role,
            rig: session.rig,
            started_at: session.started_at,
            ended_at: session.ended_at,
            outcome: session.outcome,
            harness: session.harness,
            conversation: session.harness_session_id,
        }
    });
    Ok(offered.collect())
}

fn topic(session: &Record) -> Option<String> {
    let mut lines = session.initial_prompt.as_deref()?.lines();
    let first = lines.find(|line| !line.trim().is_empty())?;
    Some(first.trim().to_owned())
}

/// The command that asks a session.
#[derive(Debug)]
pub struct SeanceCommand {
    pub session: String,
    pub agent: Option<String>,
    pub conversation: String,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The folder in which the conversation was held.
    pub cwd: PathBuf,
    /// Variables that are removed from the program's environment.
    pub unset: Vec<String>,
    pub set: Vec<(String, String)>,
    /// Files lent to another account for the talk; removed on drop.
    pub lent: Option<LentTranscript>,
}

/// Prepares a talk with a session, found by the beginning of its id or of its conversation's id.
/// Without a prompt it is interactive.
pub fn prepare(
    town: &Town,
    given: &str,
    other_account: Option<&str>,
    prompt: Option<&str>,
) -> Result<SeanceCommand> {
    across::clean_up(town)?;
    let session = find(town, given)?;
    let harness = session.harness.as_deref().unwrap_or_default();
    let preset = harnesses::resolve(town, harness)?.value;
    let ForkableConversation { id, files } = conversation(town, &session, &preset)?;
    let command = &preset.command;
    let mut args = command.args.clone();
    let fork = command.fork.iter();
    args.extend(fork.map(|word| word.replace("{id}", &id)));
    if let Some(prompt) = prompt {
        if command.print.is_empty() {
            return Err(unable(
                town,
                &preset,
                "cannot answer one prompt of a fork",
                |able| !able.command.print.is_empty(),
            )
            .hint("without `--prompt` it can be talked to at a terminal"));
        }
        // A prompt that begins with a dash would be parsed as an option.
        let dash = if prompt.starts_with('-') { " " } else { "" };
        let filled = command.print.iter();
        args.extend(filled.map(|word| word.replace("{prompt}", &format!("{dash}{prompt}"))));
    }
    let own = config_dir(&session);
    let wanted = match other_account {
        Some(name) => Some(account::dir(town, name, &preset)?),
        None => own.clone(),
    };
    let lent = match &wanted {
        Some(folder) if wanted != own => {
            let from = usage::folder_of(town, &preset, own.as_deref());
            across::lend(town, &preset, &files, from.as_deref(), folder)?
        }
        _ => None,
    };
    let (unset, set) = environment(town, &preset, wanted.as_deref());
    Ok(SeanceCommand {
        cwd: folder(&session),
        session: session.id,
        agent: session.agent,
        conversation: id,
        program: harnesses::locate(town, &preset)?,
        args,
        unset,
        set,
        lent,
    })
}

/// Returns the variables to remove and to set: the fork must not look like an agent, and it uses
/// its account's folder.
fn environment(
    town: &Town,
    preset: &Preset,
    folder: Option<&Path>,
) -> (Vec<String>, Vec<(String, String)>) {
    let names = town.around().env.keys();
    let foreign = names.filter(|name| belongs_to_an_agent(name) && !KEPT.contains(&name.as_str()));
    let unset = foreign
        .chain(&preset.env.clear)
        .chain(&preset.env.config_dir)
        .cloned()
        .collect();
    let mut set = vec![("GT_ROOT".to_owned(), town.root_text().to_owned())];
    let fixed = preset.env.set.iter();
    set.extend(fixed.map(|(name, value)| (name.clone(), value.clone())));
    if let (Some(variable), Some(folder)) = (&preset.env.config_dir, folder) {
        set.push((variable.clone(), folder.to_string_lossy().into_owned()));
    }
    (unset, set)
}

/// Returns the session whose id begins with `id`, or the newest whose conversation does.
fn find(town: &Town, id: &str) -> Result<Record> {
    let sessions = Sessions::of(town);
    if id.is_empty() {
        return sessions.get(id);
    }
    if let Some(session) = sessions.lookup(id)? {
        return Ok(session);
    }
    let all = sessions.find(&SessionQuery::default())?;
    let begins = |session: &&Record| {
        let conversation = session.harness_session_id.as_deref();
        conversation.is_some_and(|conversation| conversation.starts_with(id))
    };
    let fitting: Vec<&Record> = all.iter().filter(begins).collect();
    let Some(newest) = fitting.first() else {
        return sessions
            .get(id)
            .map_err(|missing| missing.hint("`gt seance` shows who can be talked to"));
    };
    let same = |session: &&Record| session.harness_session_id == newest.harness_session_id;
    if !fitting.iter().all(same) {
        return Err(
            Problem::usage(format!("{id} is a prefix of several conversations"))
                .hint("give more of the id"),
        );
    }
    Ok((*newest).clone())
}

/// A conversation that can be forked.
struct ForkableConversation {
    id: String,
    /// The known transcript files of the program.
    files: Vec<PathBuf>,
}

/// Returns the conversation of a session, if a fork of it can be asked.
fn conversation(town: &Town, session: &Record, preset: &Preset) -> Result<ForkableConversation> {
    if preset.command.fork.is_empty() {
        return Err(unable(town, preset, "cannot fork a conversation", |able| {
            !able.command.fork.is_empty()
        }));
    }
    let start = StartOptions::from_tag(session.start.as_deref().unwrap_or_default())?;
    if start.command.is_some() {
        return Err(Problem::not_found(
            "it ran another command than its harness",
        ));
    }
    let Some(id) = &session.harness_session_id else {
        return Err(Problem::not_found("its conversation is not known"));
    };
    let has_files = preset.usage.files.iter().any(|file| file.contains("{id}"));
    let files = transcripts(town, session, preset, id);
    if has_files && files.is_empty() {
        return Err(Problem::not_found(
            "it has said nothing, or its conversation is gone",
        ));
    }
    let cwd = folder(session);
    if !cwd.is_dir() {
        return Err(
            Problem::not_found(format!("its folder is gone: {}", cwd.display()))
                .hint("the program looks for a conversation by its folder"),
        );
    }
    Ok(ForkableConversation {
        id: id.clone(),
        files,
    })
}

/// Returns the folder of a session.
fn folder(session: &Record) -> PathBuf {
    PathBuf::from(session.cwd.as_deref().unwrap_or_default())
}

fn transcripts(town: &Town, session: &Record, preset: &Preset, id: &str) -> Vec<PathBuf> {
    let root = usage::folder_of(town, preset, config_dir(session).as_deref());
    root.map_or_else(Vec::new, |root| usage::conversation(&root, preset, id))
}

/// Returns the configuration folder that a session was started with.
fn config_dir(session: &Record) -> Option<PathBuf> {
    let start = StartOptions::from_tag(session.start.as_deref()?).or_warn(format_args!(
        "the folder of session {} is not known",
        session.id
    ))?;
    start.config_dir.map(PathBuf::from)
}

fn unable(town: &Town, preset: &Preset, what: &str, able: impl Fn(&Preset) -> bool) -> Problem {
    let names = harnesses::names(town)
        .into_iter()
        .filter(|name| harnesses::resolve(town, name).is_ok_and(|resolved| able(&resolved.value)));
    let names: Vec<String> = names.collect();
    Problem::usage(format!(
        "{} {what}",
        match preset.title.as_str() {
            "" => &preset.name,
            title => title,
        }
    ))
    .hint(format!("these can: {}", names.join(", ")))
}
