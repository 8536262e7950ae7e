//! Options that a caller may set for a start. Unset ones come from the role.

use super::{Restored, StartError};
use crate::terminal::containers::{Container, tmux_problem};
use crate::{Result, Town};
use gt_core::record::Record;
use gt_core::role::RoleConfig;
use gt_core::sandbox::SandboxLevel;
use gt_core::startup::Conversation;
use gt_core::startup::tag;
use gt_core::{Identity, Problem};
use gt_tmux::{Command, PaneId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Options of a start.
///
/// They are stored in a tag of the container, so that a respawn uses the same options. Secrets and
/// options for a single start are left out; variables are in the environment of the tmux session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StartOptions {
    /// Harness instead of the role's.
    pub harness: Option<String>,
    /// Model instead of the project's, the role's or the harness's.
    pub model: Option<String>,
    /// Folder instead of the role's.
    pub work_dir: Option<PathBuf>,
    /// Create the agent's worktree if it is missing.
    #[serde(skip)]
    pub create: bool,
    /// Shell line to run instead of the harness; it gets no prompt.
    pub command: Option<String>,
    /// The sender in the beacon.
    #[serde(skip)]
    pub sender: Option<String>,
    #[serde(skip)]
    pub topic: Option<String>,
    pub molecule: Option<String>,
    /// Text appended to the beacon.
    pub instructions: Option<String>,
    /// Id of the digest for which gt starts the agent. The patrol ends such a session when it has
    /// nothing left to do.
    pub digest: Option<String>,
    /// Text of that digest, appended to the beacon. It is too long for the tag.
    #[serde(skip)]
    pub digest_text: Option<String>,
    #[serde(skip)]
    pub conversation: Conversation,
    /// The next prompt of a resumed conversation, in place of the beacon.
    #[serde(skip)]
    pub resume_prompt: Option<String>,
    /// Additional variables, which may be secret.
    #[serde(skip)]
    pub extra_env: Vec<(String, String)>,
    /// The program's configuration folder.
    pub config_dir: Option<String>,
    /// The account whose folder is used; `config_dir` takes precedence.
    pub account: Option<String>,
    /// Keep the configuration folder of the last start, even if it had none.
    #[serde(skip)]
    pub keeps_folder: bool,
    /// The options are those of an earlier start, so a default that came later does not apply.
    #[serde(skip)]
    pub continues: bool,
    /// Theme instead of the role's.
    pub theme: Option<String>,
    pub wait_for_agent: Option<bool>,
    /// Keep a container that does not come up in time, instead of rolling the start back.
    #[serde(skip)]
    pub keep_on_timeout: bool,
    /// Keep the container of an agent that dies while it comes up.
    #[serde(skip)]
    pub keep_container: bool,
    /// Start only if this pane's agent is still dead and still to be respawned.
    #[serde(skip)]
    pub respawn_of: Option<PaneId>,
    /// The session that has handed over, and may still run; this one replaces it.
    #[serde(skip)]
    pub takes_over: Option<TakeOver>,
    /// The session that was lost with its container; this one continues it.
    #[serde(skip)]
    pub restored: Option<Restored>,
    /// Replace the shell in which the worktree was prepared.
    #[serde(skip)]
    pub after_shell: bool,
    pub accept_dialogs: Option<bool>,
    pub wait_ready: Option<bool>,
    /// Timeout instead of the harness's.
    #[serde(skip)]
    pub ready_timeout: Option<Duration>,
    pub auto_respawn: Option<bool>,
    pub remain_on_exit: Option<bool>,
    pub track_pid: Option<bool>,
    pub verify_survived: Option<bool>,
    pub skip_permissions: Option<bool>,
    /// Sandbox instead of the role's. In a tag it is that of the last start.
    pub sandbox: Option<SandboxLevel>,
    /// Pass the beacon as the first prompt.
    pub prompt: Option<bool>,
}

/// The session that is replaced.
#[derive(Clone, Debug, Default)]
pub struct TakeOver {
    pub session: String,
    /// Its record in the journal.
    pub known: Option<Record>,
    /// The branch that its worktree is on.
    pub branch: Option<String>,
}

impl StartOptions {
    /// Serializes the options for the tag.
    pub(crate) fn to_tag(&self) -> String {
        // Cannot fail: all fields are plain values.
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        value.to_string()
    }

    /// Parses the tag; a missing tag yields the defaults. Fails on a damaged tag: with the
    /// defaults, an agent that was started to ask for permission would run without asking. A start
    /// from a tag continues earlier work, which is in the configuration folder that the tag names.
    pub fn from_tag(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let options: StartOptions = serde_json::from_str(text).map_err(|error| {
            Problem::failed("the options that it was started with cannot be read")
                .caused_by(error)
                .hint("start it again with the options that it needs: `gt start TARGET`, `--ask-permissions`")
        })?;
        Ok(StartOptions {
            keeps_folder: true,
            continues: true,
            ..options
        })
    }

    /// Adds a hint if the agent program is missing: how to start another program instead.
    pub(super) fn hint_other_program(&self, identity: &Identity, error: StartError) -> StartError {
        let StartError::ProgramMissing(problem) = error else {
            return error;
        };
        let is_by_gt = self.restored.is_some() || self.respawn_of.is_some();
        StartError::ProgramMissing(problem.hint(match is_by_gt {
            true => format!("`gt start {identity} --harness NAME` starts it with another program"),
            false => "`--harness NAME` chooses another program".to_owned(),
        }))
    }

    pub(super) fn apply_to(&self, role: &mut RoleConfig) {
        let start = &mut role.start;
        for (request, setting) in [
            (self.wait_for_agent, &mut start.wait_for_agent),
            (self.accept_dialogs, &mut start.accept_dialogs),
            (self.wait_ready, &mut start.wait_ready),
            (self.auto_respawn, &mut start.auto_respawn),
            (self.remain_on_exit, &mut start.remain_on_exit),
            (self.track_pid, &mut start.track_pid),
            (self.verify_survived, &mut start.verify_survived),
            (self.skip_permissions, &mut start.skip_permissions),
            (self.prompt, &mut start.prompt),
        ] {
            if let Some(request) = request {
                *setting = request;
            }
        }
        if let Some(level) = self.sandbox {
            role.sandbox.level = Some(level);
        }
        // The next session must read the handoff message, even if the first session was started
        // without a prompt.
        start.prompt |= self.takes_over.is_some();
    }
}

/// Returns the options that the agent was started with.
pub(crate) fn options_of(town: &Town, container: &Container) -> Result<StartOptions> {
    let mut options = StartOptions::from_tag(&start_tag(town, container)?)?;
    options.harness = Some(container.pane().tag_harness.clone()).filter(|name| !name.is_empty());
    Ok(options)
}

/// Returns the options of the container's start, regardless of their length.
pub(crate) fn start_tag(town: &Town, container: &Container) -> Result<String> {
    let text = town
        .server()
        .run(
            Command::new("show-options")
                .arg("-qv")
                .target(container.id())
                .arg(tag::START),
        )
        .map_err(|error| tmux_problem("cannot read the container's tags", error))?;
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_tag_is_an_error_and_a_missing_one_yields_the_defaults() {
        let asking = StartOptions {
            skip_permissions: Some(false),
            ..StartOptions::default()
        };
        let tag = asking.to_tag();
        let read = StartOptions::from_tag(&tag).unwrap();
        assert_eq!(read.skip_permissions, Some(false));
        assert!(read.keeps_folder && read.continues);
        for damaged in [&tag[..tag.len() - 1], "{\"skip_permissions\":\"no\"}", "x"] {
            let problem = StartOptions::from_tag(damaged).unwrap_err();
            assert!(!problem.hints().is_empty(), "{problem}");
        }
        let missing = StartOptions::from_tag("").unwrap();
        assert_eq!(missing.skip_permissions, None);
    }
}
