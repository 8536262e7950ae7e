//! The newest sessions of an agent.

use super::{SessionQuery, Sessions};
use crate::Result;
use gt_core::record::Record;

impl Sessions {
    /// Returns the newest session of an agent in the journal.
    pub(crate) fn newest_of(&self, agent: &str) -> Result<Option<Record>> {
        Ok(self.newest(agent, 1)?.into_iter().next())
    }

    /// Returns the newest session of an agent that came up. A session whose start failed has no
    /// conversation to resume, even if an id was chosen for it.
    pub(crate) fn newest_that_came_up(&self, agent: &str) -> Result<Option<Record>> {
        // It is usually the newest session, or close to it.
        for limit in [1, 50, usize::MAX] {
            let sessions = self.newest(agent, limit)?;
            let is_all = sessions.len() < limit;
            let mut came_up = sessions
                .into_iter()
                .filter(|s| s.failed_start != Some(true));
            match came_up.next() {
                None if !is_all => {}
                found => return Ok(found),
            }
        }
        Ok(None)
    }

    fn newest(&self, agent: &str, limit: usize) -> Result<Vec<Record>> {
        self.find(&SessionQuery {
            agent: Some(agent.to_owned()),
            limit: Some(limit),
            ..SessionQuery::default()
        })
    }
}
