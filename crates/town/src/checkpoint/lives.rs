//! How the lives around a checkpoint ended.

use crate::sessions::Sessions;
use crate::{Result, Town};
use gt_core::checkpoint::Checkpoint;
use gt_core::record::Record;
use std::collections::HashMap;

/// The lives by which it is told whether a checkpoint was left to one of them.
pub(crate) struct Lives {
    own: Option<String>,
    known: HashMap<String, Record>,
}

impl Lives {
    /// This life and the one before it, those that the checkpoint names, and another.
    pub(crate) fn around(
        town: &Town,
        own: Option<&str>,
        left: Option<&Checkpoint>,
        other: Option<&str>,
    ) -> Result<Self> {
        let sessions = Sessions::of(town);
        let writer = left.and_then(|left| left.session_id.as_deref());
        let told_to = left.and_then(|left| left.told_to.as_deref());
        let named = [own, writer, told_to, other].into_iter().flatten();
        let mut lives = Lives {
            own: own.map(str::to_owned),
            known: sessions.known(named)?,
        };
        let parent = lives.parent().filter(|id| lives.get(id).is_none());
        if let Some(parent) = parent.map(str::to_owned) {
            lives
                .known
                .extend(sessions.known([parent.as_str()].into_iter())?);
        }
        Ok(lives)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Record> {
        self.known.get(id)
    }

    /// The life before this one.
    pub(crate) fn before(&self) -> Option<&Record> {
        self.get(self.parent()?)
    }

    /// Whether they have left it to this life.
    pub(crate) fn have_left(&self, left: &Checkpoint) -> bool {
        left.is_left_to(self.own.as_deref(), self.parent(), |id| {
            self.get(id)?.outcome
        })
    }

    fn parent(&self) -> Option<&str> {
        self.get(self.own.as_deref()?)?.parent_id.as_deref()
    }
}
