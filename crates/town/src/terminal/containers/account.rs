//! The account of an agent, and the digest for which gt has started it, by the tags of its container.
//!
//! A container of an earlier version has neither tag: its start options say both, unless they are
//! too long for a listing.

use super::Container;
use gt_core::startup::account_key;
use serde_json::Value;

impl Container {
    /// Returns the key of the account whose usage limits the agent shares.
    pub(crate) fn account_key(&self) -> String {
        let pane = self.pane();
        account_key(&pane.tag_harness, self.config_dir().as_deref())
    }

    /// Returns the configuration folder of the agent's program, unless it is the default one.
    pub(crate) fn config_dir(&self) -> Option<String> {
        let pane = self.pane();
        let folder = match pane.tag_account.split_once(' ') {
            Some((_, folder)) => folder.to_owned(),
            None => self.start_option("config_dir")?,
        };
        Some(folder).filter(|folder| !folder.is_empty())
    }

    /// Returns whether gt has started the agent for a digest.
    pub(crate) fn has_digest(&self) -> bool {
        !self.pane().tag_digest.is_empty() || self.start_option("digest").is_some()
    }

    /// Returns a start option that is a text.
    fn start_option(&self, name: &str) -> Option<String> {
        // Options that cannot be read are reported by the start that needs them.
        let options: Value = serde_json::from_str(&self.pane().tag_start).ok()?;
        options[name].as_str().map(str::to_owned)
    }
}
