//! Telling that what waited to be merged was withdrawn, because its item was taken up again.
//! `crate::work` does that, in one with what takes it up.

use super::tell_of;
use crate::work::Work;
use crate::{Result, Town};
use gt_core::merge::{Merge, Status};
use gt_core::work::WorkId;

/// What waits to be merged for an item, before something is done to that.
#[derive(Debug)]
pub struct Waiting<'a> {
    town: &'a Town,
    entry: Option<WorkId>,
    /// What it becomes when it is withdrawn: that of a repair waits for it again.
    after: Status,
}

impl<'a> Waiting<'a> {
    pub fn of(town: &'a Town, item: &WorkId) -> Result<Self> {
        let merge = Work::of(town).merge_of(item)?;
        let is_own = merge.as_ref().is_some_and(|merge| merge.item == *item);
        let waiting = merge.filter(|merge| is_own || merge.status.is_waiting());
        Ok(Waiting {
            town,
            entry: waiting.map(|merge| merge.id),
            after: if is_own {
                Status::Withdrawn
            } else {
                Status::Failed
            },
        })
    }

    /// What has been withdrawn since.
    pub fn withdrawn(&self) -> Result<Option<Merge>> {
        let Some(entry) = &self.entry else {
            return Ok(None);
        };
        let merge = Work::of(self.town).merge(entry)?;
        Ok(Some(merge).filter(|merge| merge.status == self.after))
    }

    /// The same, with an event of it.
    pub fn tell_withdrawn(&self) -> Result<Option<Merge>> {
        let withdrawn = self.withdrawn()?;
        if let Some(merge) = &withdrawn {
            tell_of(self.town, merge);
        }
        Ok(withdrawn)
    }
}
