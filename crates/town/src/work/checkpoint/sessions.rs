//! The sessions around a checkpoint, and how they ended.

use crate::records::sessions::Sessions;
use crate::{Result, Town};
use gt_core::checkpoint::Checkpoint;
use gt_core::record::Record;
use std::collections::HashMap;

/// Maximum number of consecutive failed starts that are skipped.
const MAX_FAILED_STARTS: usize = 20;

/// The sessions that decide whether a checkpoint was left to the current one.
pub(crate) struct SessionsAround {
    own: Option<String>,
    /// The previous session that came up.
    before: Option<String>,
    known: HashMap<String, Record>,
}

impl SessionsAround {
    /// Reads this session and the previous one, the sessions that the checkpoint names, and
    /// `other`.
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
        let mut records = SessionsAround {
            own: own.map(str::to_owned),
            before: None,
            known: sessions.find_known(named)?,
        };
        records.before = records.parent().map(str::to_owned);
        // A failed start leaves no checkpoint, so the session before it counts.
        for _ in 0..MAX_FAILED_STARTS {
            let Some(before) = records.before.clone() else {
                break;
            };
            if records.get(&before).is_none() {
                let found = sessions.find_known([before.as_str()].into_iter())?;
                records.known.extend(found);
            }
            let failed = records
                .get(&before)
                .filter(|session| session.failed_start == Some(true));
            match failed.map(|session| session.parent_id.clone()) {
                Some(earlier) => records.before = earlier,
                None => break,
            }
        }
        Ok(records)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Record> {
        self.known.get(id)
    }

    /// Returns the previous session.
    pub(crate) fn before(&self) -> Option<&Record> {
        self.get(self.before.as_deref()?)
    }

    /// Returns whether the checkpoint was left to this session.
    pub(crate) fn left_to_current(&self, left: &Checkpoint) -> bool {
        left.is_left_to(self.own.as_deref(), self.before.as_deref(), |id| {
            self.get(id)?.outcome
        })
    }

    fn parent(&self) -> Option<&str> {
        self.get(self.own.as_deref()?)?.parent_id.as_deref()
    }
}
