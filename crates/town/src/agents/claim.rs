//! Claims on identities: one process per agent at a time.
//!
//! Two programs that both act as `gastown/crew/max` would both do its work. Each session therefore
//! claims its identity in a file with its process and its session id. A claim is valid until that
//! process or that session ends.

use crate::base::error_enum::error_enum;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::{files, processes};
use crate::records::sessions::Sessions;
use crate::{Result, Town};
use gt_core::{Identity, Problem};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);

/// An identity that was not claimed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another running process has the claim.
    #[error(transparent)]
    Taken(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(ClaimError: Taken, Other);

#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    pid: u32,
    born: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "life")]
    session: Option<String>,
}

impl Claim {
    fn runs(&self) -> bool {
        processes::is_born_as(self.pid, &self.born).is_some()
    }

    fn is_alive(&self, town: &Town) -> bool {
        if !self.runs() {
            return false;
        }
        // A process that is still exiting after the end of its session holds no claim.
        let Some(session) = &self.session else {
            return true;
        };
        let known = Sessions::of(town).find_known([session.as_str()].into_iter());
        // If the end of the session is unknown, the running process keeps its claim.
        let known = known.or_warn(format_args!("the end of session {session} is unknown"));
        known.is_none_or(|known| {
            known
                .get(session)
                .is_none_or(|session| session.outcome.is_none())
        })
    }
}

/// Returns the running process that has claimed an identity.
pub(crate) fn process(town: &Town, agent: &Identity) -> Option<u32> {
    let text = files::read_if_there(&town.agent_file_path(agent, "claims"));
    let claim = parse(agent, &text.or_warn("the claim is unknown")??)?;
    claim.runs().then_some(claim.pid)
}

/// Returns the files of claims whose processes have ended.
pub(crate) fn ended(town: &Town) -> Vec<PathBuf> {
    let folder = town.runtime_dir().join("claims");
    files::entries(&folder)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .filter(|path| {
            // A claim that cannot be read may be incomplete, because it is being written.
            let text = std::fs::read(path).unwrap_or_default();
            // It counts as running.
            serde_json::from_slice::<Claim>(&text).is_ok_and(|claim| !claim.runs())
        })
        .collect()
}

/// Parses a claim. A claim that cannot be parsed counts as ended, because its process is unknown.
fn parse(agent: &Identity, text: &str) -> Option<Claim> {
    let claim = serde_json::from_str(text);
    claim.or_warn(format_args!("the claim of {agent} cannot be read"))
}

/// Claims an identity for the program that runs this command. Fails if another running process has
/// the claim.
pub fn take(town: &Town, agent: &Identity, session: Option<&str>) -> Result<(), ClaimError> {
    let path = town.agent_file_path(agent, "claims");
    let Some(pid) = processes::caller() else {
        return Ok(());
    };
    let Some(born) = processes::birth_certificate(pid) else {
        return Ok(());
    };
    let _lock = FileLock::take(
        &path.with_extension("lock"),
        town.deadline().at_most(TIMEOUT),
    )?;
    let text = files::read_if_there(&path)?;
    let present = text.and_then(|text| parse(agent, &text));
    let same_session =
        |claim: &Claim| claim.session.is_some() && claim.session.as_deref() == session;
    // The caller may be a child process that inherited the agent's variables. Its claim would end
    // before the agent does, so the existing claim stays.
    let is_kept = |claim: &Claim| same_session(claim) && claim.runs();
    if present.as_ref().is_some_and(is_kept) {
        return Ok(());
    }
    let is_other = |claim: &Claim| {
        let same_process = claim.pid == pid && claim.born == born;
        // The claim of a program that was not started as this agent (it has no session) yields to a
        // session of the agent.
        let is_stray = claim.session.is_none() && session.is_some();
        !same_session(claim) && !same_process && !is_stray
    };
    if let Some(other) = present.filter(|claim| is_other(claim) && claim.is_alive(town)) {
        let problem = Problem::conflict(format!(
            "another session is {agent} already: process {}",
            other.pid
        ));
        return Err(ClaimError::Taken(problem.hint(format!(
            "end one of them: `gt stop {agent}`, or leave that program"
        ))));
    }
    let claim = Claim {
        pid,
        born,
        session: session.map(str::to_owned),
    };
    let text = serde_json::to_vec(&claim)
        .map_err(|error| Problem::failed("cannot claim the identity").caused_by(error))?;
    files::write_passing(&path, &text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn claim_that_cannot_be_read_is_logged_and_counts_as_ended() {
        let (_folder, town) = town();
        let mayor = Identity::town(gt_core::Role::Mayor);
        let path = town.agent_file_path(&mayor, "claims");
        files::make_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{\"pid\":").unwrap();
        let (found, warnings) = warnings_of(|| process(&town, &mayor));
        assert_eq!(found, None);
        assert!(
            warnings[0].starts_with("the claim of mayor cannot be read"),
            "{warnings:?}"
        );
    }
}
