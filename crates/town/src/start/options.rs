//! What a caller may wish for a start. What is left open comes from the role.

use gt_core::role::RoleConfig;
use gt_core::startup::Conversation;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Another harness than the role's.
    pub harness: Option<String>,
    /// Another folder than the role's.
    pub work_dir: Option<PathBuf>,
    /// Make the agent's worktree if it is not there.
    pub create: bool,
    /// A shell line to run instead of the harness; it gets no prompt.
    pub command: Option<String>,
    /// Who starts it, for the beacon.
    pub sender: Option<String>,
    pub topic: Option<String>,
    pub molecule: Option<String>,
    /// Appended to the beacon.
    pub instructions: Option<String>,
    pub conversation: Conversation,
    /// Variables beside the standard ones. They may be secret.
    pub extra_env: Vec<(String, String)>,
    /// The program's configuration folder.
    pub config_dir: Option<String>,
    /// Another theme than the role's.
    pub theme: Option<String>,
    pub wait_for_agent: Option<bool>,
    /// Leave a container that does not come up in time, instead of undoing the start.
    pub keep_on_timeout: bool,
    /// Leave the container of an agent that dies while it comes up.
    pub keep_container: bool,
    pub accept_dialogs: Option<bool>,
    pub wait_ready: Option<bool>,
    /// Another patience than the harness's.
    pub ready_timeout: Option<Duration>,
    pub auto_respawn: Option<bool>,
    pub remain_on_exit: Option<bool>,
    pub track_pid: Option<bool>,
    pub verify_survived: Option<bool>,
    pub skip_permissions: Option<bool>,
    /// Give the beacon as the first prompt.
    pub prompt: Option<bool>,
}

impl StartOptions {
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
    }
}
