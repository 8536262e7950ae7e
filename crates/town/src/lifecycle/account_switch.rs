//! Moves a running agent to another account of its program, with its conversation.
//!
//! The transcripts of the conversation are copied into the folder of the other account, where they
//! stay. Then the next session takes over in the same container, as after a handoff: until the
//! process in the pane is replaced, the old session continues unchanged, and an interrupted move can
//! be retried. An existing transcript in the other account is replaced only if it is an earlier part
//! of the copied one, so a conversation that was continued there is never lost.

use crate::agents::account;
use crate::base::{estop, fault, files};
use crate::catalog::harnesses;
use crate::lifecycle::start::{self, Prepared, StartOptions, StartedAgent, TakeOver};
use crate::records::budget;
use crate::records::sessions::Sessions;
use crate::records::usage;
use crate::terminal::adopted;
use crate::terminal::containers;
use crate::{Result, Town};
use gt_core::harness::Preset;
use gt_core::startup::Conversation;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, save};
use std::path::{Path, PathBuf};

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["account.copied", "handoff.recorded", "handoff.respawned"];

/// Starts the agent's next session under another account, in the same conversation. `prompt` is the
/// first message there.
pub(crate) fn switch(
    town: &Town,
    identity: &Identity,
    name: &str,
    prompt: String,
) -> Result<StartedAgent> {
    estop::check(town, identity.rig())?;
    let _held = start::hold(town, identity)?;
    let home = adopted::home_of(town, identity);
    let container = containers::of_agent(&home, identity)?
        .filter(|it| it.session_id().is_some() && !it.pane().dead && !it.lost_agent_pane())
        .ok_or_else(|| Problem::not_found(format!("{identity} is not running")))?;
    if container.adopted().is_some() {
        return Err(Problem::conflict(format!(
            "{identity} runs in a pane of yours, and its program keeps its account"
        )));
    }
    let before = start::options_of(town, &container)?;
    let preset = harnesses::resolve(town, &container.pane().tag_harness)?.value;
    let pane = container.pane();
    let session = pane.tag_session.clone();
    // The journal also names the session of an earlier move that was interrupted.
    let known = Sessions::of(town).in_journal([session.as_str()].into_iter())?;
    let known = known.get(&session).cloned();
    let id = match pane.tag_harness_session.as_str() {
        "" => known.as_ref().and_then(|it| it.harness_session_id.clone()),
        id => Some(id.to_owned()),
    };
    let Conversation::Resume(id) = save::conversation(&preset, id.as_deref(), false) else {
        return Err(Problem::conflict(format!(
            "the conversation of {identity} is not known, or its program cannot resume it"
        )));
    };
    let to = account::dir(town, name, &preset)?;
    carry(town, &preset, before.config_dir.as_deref(), &to, &id)?;
    fault::point(town, "account.copied");
    let options = StartOptions {
        config_dir: Some(to.to_string_lossy().into_owned()),
        account: Some(name.to_owned()),
        sender: Some("gt".to_owned()),
        conversation: Conversation::Resume(id),
        resume_prompt: Some(prompt),
        takes_over: Some(TakeOver {
            session,
            known: known.filter(|record| record.agent.is_some()),
            branch: None,
        }),
        // A session that does not come up counts as dead and is handled as such.
        keep_on_timeout: true,
        keep_container: true,
        ..before
    };
    let item = start::hooked_work(town, identity);
    budget::refuse_exhausted(
        town,
        Some(identity),
        None,
        item.as_ref().map(WorkId::as_str),
    )?;
    let prepared = Prepared::new(town, identity, &options)?;
    Ok(start::take_over(town, &prepared, container, None)?)
}

/// Copies the transcripts of a conversation to the folder of another account.
fn carry(
    town: &Town,
    preset: &Preset,
    config_dir: Option<&str>,
    to: &Path,
    id: &str,
) -> Result<()> {
    let from = usage::folder_of(town, preset, config_dir.map(Path::new));
    let originals = from.as_deref();
    let originals = originals.map(|from| usage::conversation(from, preset, id));
    let originals = originals.unwrap_or_default();
    let unable = || {
        let name = &preset.name;
        Problem::conflict(format!(
            "a conversation of {name} cannot be brought to another account"
        ))
    };
    let from = from.filter(|_| !originals.is_empty()).ok_or_else(unable)?;
    if from == to {
        return Err(
            Problem::conflict("both accounts have the same folder").cause(to.display().to_string())
        );
    }
    let mut places: Vec<(PathBuf, PathBuf)> = Vec::new();
    for original in originals {
        let rest = original.strip_prefix(&from).map_err(|_| unable())?;
        let copy = to.join(rest);
        places.push((original, copy));
    }
    // Checked first, so that a refusal copies nothing.
    for (original, copy) in &places {
        if !is_part_of(copy, original)? {
            return Err(
                Problem::conflict("the conversation was continued in the other account")
                    .cause(copy.display().to_string()),
            );
        }
    }
    for (original, copy) in &places {
        let text = read(original)?;
        if let Some(parent) = copy.parent() {
            files::make_dir(parent)?;
        }
        files::write_whole(copy, &text)?;
    }
    Ok(())
}

/// Returns whether a file is missing, or has only the beginning of the other file.
fn is_part_of(copy: &Path, original: &Path) -> Result<bool> {
    if !copy.exists() {
        return Ok(true);
    }
    Ok(read(original)?.starts_with(&read(copy)?))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| files::io_problem("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_beginning_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, text) in [("whole", "a\nb\n"), ("part", "a\n"), ("other", "a\nc\n")] {
            std::fs::write(path(name), text).unwrap();
        }
        let check = |copy: &str, expected: bool| {
            assert_eq!(
                is_part_of(&path(copy), &path("whole")).unwrap(),
                expected,
                "{copy}"
            );
        };
        check("missing", true);
        check("part", true);
        check("whole", true);
        check("other", false);
    }
}
