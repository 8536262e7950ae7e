//! Towns and warnings for unit tests.

use crate::{Surroundings, Town};
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

/// Makes a town without a tmux server.
#[cfg(test)]
pub(crate) fn town() -> (TempDir, Town) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("town");
    Town::init(&root, None, "/tmp/gt-no-server", "demo").unwrap();
    let around = Surroundings {
        env: [("PATH".to_owned(), std::env::var("PATH").unwrap())].into(),
        ..Surroundings::default()
    };
    let town = Town::open(&root, around).unwrap();
    (folder, town)
}

/// Runs an action, and returns its value and the warnings that it logs.
pub(crate) fn warnings_of<T>(action: impl FnOnce() -> T) -> (T, Vec<String>) {
    let collector = Collector::default();
    let texts = Arc::clone(&collector.0);
    let value = tracing::subscriber::with_default(collector, action);
    let texts = std::mem::take(&mut *texts.lock().unwrap());
    (value, texts)
}

#[derive(Default)]
struct Collector(Arc<Mutex<Vec<String>>>);

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{value:?}");
    }
}
