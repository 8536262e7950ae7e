//! What a caller may wish for a start. What is left open comes from the role.

use super::Restored;
use gt_core::record::Record;
use gt_core::role::RoleConfig;
use gt_core::startup::Conversation;
use gt_core::{Identity, Kind, Problem};
use gt_tmux::PaneId;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Kept with the container as a tag, so that a respawn is a start like the first.
/// What may be secret, or was meant for one start alone, is left out; variables
/// are in the session's own table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StartOptions {
    /// Another harness than the role's.
    pub harness: Option<String>,
    /// Another folder than the role's.
    pub work_dir: Option<PathBuf>,
    /// Make the agent's worktree if it is not there.
    #[serde(skip)]
    pub create: bool,
    /// A shell line to run instead of the harness; it gets no prompt.
    pub command: Option<String>,
    /// Who starts it, for the beacon.
    #[serde(skip)]
    pub sender: Option<String>,
    #[serde(skip)]
    pub topic: Option<String>,
    pub molecule: Option<String>,
    /// Appended to the beacon.
    pub instructions: Option<String>,
    #[serde(skip)]
    pub conversation: Conversation,
    /// The next prompt of a conversation that is resumed, in place of the beacon.
    #[serde(skip)]
    pub resume_prompt: Option<String>,
    /// Variables beside the standard ones. They may be secret.
    #[serde(skip)]
    pub extra_env: Vec<(String, String)>,
    /// The program's configuration folder.
    pub config_dir: Option<String>,
    /// The account whose folder it is; where both are set, the folder counts.
    pub account: Option<String>,
    /// It goes on with the folder that it had, and where that was none, with none.
    #[serde(skip)]
    pub keeps_folder: bool,
    /// Another theme than the role's.
    pub theme: Option<String>,
    pub wait_for_agent: Option<bool>,
    /// Leave a container that does not come up in time, instead of undoing the start.
    #[serde(skip)]
    pub keep_on_timeout: bool,
    /// Leave the container of an agent that dies while it comes up.
    #[serde(skip)]
    pub keep_container: bool,
    /// Only if this pane's agent is still dead, and still wanted back.
    #[serde(skip)]
    pub respawn_of: Option<PaneId>,
    /// It takes the place of a life that has handed over, and may still run.
    #[serde(skip)]
    pub takes_over: Option<TakeOver>,
    /// It goes on from a life that was lost with its container.
    #[serde(skip)]
    pub restored: Option<Restored>,
    /// It takes the place of the shell in which its worktree was made ready.
    #[serde(skip)]
    pub after_shell: bool,
    pub accept_dialogs: Option<bool>,
    pub wait_ready: Option<bool>,
    /// Another patience than the harness's.
    #[serde(skip)]
    pub ready_timeout: Option<Duration>,
    pub auto_respawn: Option<bool>,
    pub remain_on_exit: Option<bool>,
    pub track_pid: Option<bool>,
    pub verify_survived: Option<bool>,
    pub skip_permissions: Option<bool>,
    /// Give the beacon as the first prompt.
    pub prompt: Option<bool>,
}

/// The life whose place is taken.
#[derive(Clone, Debug, Default)]
pub struct TakeOver {
    pub life: String,
    /// What the journal says of it.
    pub known: Option<Record>,
    /// The branch that its worktree is on.
    pub branch: Option<String>,
}

impl StartOptions {
    /// As the tag holds it.
    pub(crate) fn to_tag(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        value.to_string()
    }

    /// Reads the tag; one that is missing or damaged wishes for nothing. Whoever starts by
    /// it goes on with what was begun, and that is in the folder which it names.
    pub fn from_tag(text: &str) -> Self {
        let wishes = serde_json::from_str(text).ok();
        wishes.map_or_else(Self::default, |wishes| StartOptions {
            keeps_folder: true,
            ..wishes
        })
    }

    /// Adds to a problem with the agent program how to start another one instead.
    pub(super) fn hint_other_program(&self, identity: &Identity, problem: Problem) -> Problem {
        if problem.kind() != Kind::Environment {
            return problem;
        }
        let is_by_gt = self.restored.is_some() || self.respawn_of.is_some();
        problem.hint(match is_by_gt {
            true => format!("`gt start {identity} --harness NAME` starts it with another program"),
            false => "`--harness NAME` chooses another program".to_owned(),
        })
    }

    pub(super) fn apply_to(&self, role: &mut RoleConfig) {
        let start = &mut role.start;
        for (wish, setting) in [
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
            if let Some(wish) = wish {
                *setting = wish;
            }
        }
        // The letter of a handoff must be read, whatever the first start was told.
        start.prompt |= self.takes_over.is_some();
    }
}
