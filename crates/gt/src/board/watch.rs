//! The monitor, shared by the threads of the board. It is closed with the board, even if a thread
//! still holds this handle.

use gt_core::Problem;
use gt_town::Town;
use gt_town::terminal::containers::PanePlace;
use gt_town::views::monitor::{Files, Monitor, MonitorChange, MonitoredAgent};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    monitor: Option<Monitor>,
    /// Files to watch once the monitor exists.
    files: Files,
}

impl Watch {
    pub(super) fn begin(
        &self,
        town: &Town,
        send: impl Fn(MonitorChange) + Send + 'static,
    ) -> Result<(), Problem> {
        let monitor = Monitor::start(town, send)?;
        let mut inner = self.lock();
        monitor.watch_files(std::mem::take(&mut inner.files));
        inner.monitor = Some(monitor);
        Ok(())
    }

    /// Returns the agents and their states, as the monitor last saw them.
    pub(super) fn agents(&self) -> Vec<MonitoredAgent> {
        self.lock()
            .monitor
            .as_ref()
            .map(Monitor::agents)
            .unwrap_or_default()
    }

    pub(super) fn set_view(&self, pane: Option<PanePlace>) {
        if let Some(monitor) = &self.lock().monitor {
            monitor.set_view(pane);
        }
    }

    /// Sets the files that the cards were made from.
    pub(super) fn watch_files(&self, files: Files) {
        let mut inner = self.lock();
        match &inner.monitor {
            Some(monitor) => monitor.watch_files(files),
            None => inner.files = files,
        }
    }

    /// Turns the watching of events on or off.
    pub(super) fn watch_events(&self, wanted: bool) {
        if let Some(monitor) = &self.lock().monitor {
            monitor.watch_events(wanted);
        }
    }

    pub(super) fn end(&self) {
        let monitor = self.lock().monitor.take();
        drop(monitor);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
