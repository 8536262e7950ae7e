//! The monitor, shared by the threads of the board, and ended with it: a thread that goes
//! on must not keep it open.

use gt_core::Problem;
use gt_tmux::PaneId;
use gt_town::Town;
use gt_town::monitor::{Change, Monitor, Seen};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Option<Monitor>>>);

impl Watch {
    pub(super) fn begin(
        &self,
        town: &Town,
        send: impl Fn(Change) + Send + 'static,
    ) -> Result<(), Problem> {
        let monitor = Monitor::start(town, send)?;
        *self.lock() = Some(monitor);
        Ok(())
    }

    /// What agents do, as far as it has been seen.
    pub(super) fn agents(&self) -> Vec<Seen> {
        self.lock()
            .as_ref()
            .map(Monitor::agents)
            .unwrap_or_default()
    }

    pub(super) fn look_at(&self, pane: Option<PaneId>) {
        if let Some(monitor) = &*self.lock() {
            monitor.look_at(pane);
        }
    }

    pub(super) fn end(&self) {
        let monitor = self.lock().take();
        drop(monitor);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Monitor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
