//! The plan of the first merge that a person starts in a rig, and its confirmation.
//!
//! The confirmation applies to one destination: if the base branch or the remote changes, `gt` asks
//! again. It is stored in `.runtime/merge/<rig>/confirmed`.

use super::{Base, validate};
use crate::base::files;
use crate::base::or_log::OrLog;
use crate::base::settings::MergeInto;
use crate::repo::base_branch;
use crate::{Result, Town};
use gt_core::work::WorkId;
use std::path::PathBuf;

/// Plan of a merge, to be shown to a person.
#[derive(Clone, Debug)]
pub struct MergePlan {
    pub rig: String,
    pub branch: String,
    pub base: String,
    /// One sentence each.
    pub steps: Vec<String>,
    /// Whether a person has confirmed it for this rig, or the settings require no confirmation.
    pub is_confirmed: bool,
    /// Text that identifies the destination.
    place: String,
}

impl MergePlan {
    pub(crate) fn of(town: &Town, base: &Base<'_>, branch: &str, item: &WorkId) -> Self {
        let place = format!("{:?} {} {}\n", base.into(), base.branch, base.remote_url());
        let wants_none = !town.settings().merge_defaults_of(base.rig()).confirm;
        let before = files::read_if_there(&confirmed_path(town, base.rig()));
        let before = before.or_warn("the confirmation is asked for again");
        let is_known = before.flatten().is_some_and(|before| before == place);
        MergePlan {
            rig: base.rig().to_owned(),
            branch: branch.to_owned(),
            base: base.branch.clone(),
            steps: steps(town, base, branch, item),
            is_confirmed: wants_none || is_known,
            place,
        }
    }

    /// Stores the confirmation, so that the next merge into the same destination does not ask.
    pub fn remember(&self, town: &Town) -> Result<()> {
        let path = confirmed_path(town, &self.rig);
        files::make_dir(path.parent().unwrap_or(town.root()))?;
        files::write_whole(&path, self.place.as_bytes())
    }
}

fn confirmed_path(town: &Town, rig: &str) -> PathBuf {
    validate::folder(town, rig).join("confirmed")
}

fn steps(town: &Town, base: &Base<'_>, branch: &str, item: &WorkId) -> Vec<String> {
    let (rig, onto) = (base.rig(), &base.branch);
    let mut steps = vec![format!("merge {branch} with {onto} of {rig}")];
    let lines = town.settings().merge_of(rig).validate;
    for line in &lines {
        steps.push(format!("run `{line}` on the result, which must succeed"));
    }
    if lines.is_empty() {
        steps.push(format!(
            "run no test: `validate` under [rigs.{rig}.merge] in town.toml is not set"
        ));
    }
    steps.push(match base.into() {
        MergeInto::Origin => format!("push it to {onto} of {}", base.remote_url()),
        MergeInto::Own => {
            let own = base_branch::merged_ref(onto);
            match base.has_remote() {
                true => format!(
                    "keep it as {own} in the town, and offer it as gt/merged/{onto} in {}, \
                     where {onto} itself stays as it is",
                    base.remote_url()
                ),
                false => format!("keep it as {own} in the town"),
            }
        }
    });
    steps.push(format!(
        "close {item}; its branch goes once nothing has it checked out"
    ));
    if !lines.is_empty() && town.settings().merge_defaults_of(rig).repair_agents {
        steps.push("start an agent that repairs it if a command fails".to_owned());
    }
    steps
}
