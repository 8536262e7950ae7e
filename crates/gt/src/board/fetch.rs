//! Fetches the rigs' remotes in a thread while the board is open, so that the cards show how far a
//! branch is behind. The monitor sees the refs that a fetch moves.

use gt_town::Town;
use gt_town::repo::workspace;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub(super) struct BackgroundFetch {
    _end: Sender<()>,
}

impl BackgroundFetch {
    /// Starts the thread, which fetches for the first time at once. Returns `None` if the setting
    /// `board.fetch_minutes` is 0.
    pub(super) fn start(town: &Town) -> Option<Self> {
        town.settings().board.fetch_interval()?;
        let (end, ended) = channel();
        let town = town.clone();
        std::thread::spawn(move || run(town, &ended));
        Some(BackgroundFetch { _end: end })
    }
}

fn run(mut town: Town, ended: &Receiver<()>) {
    // The setting may change while the board is open.
    while let Some(interval) = town.settings().board.fetch_interval() {
        let rigs: Vec<String> = town.registry().rigs.keys().cloned().collect();
        for rig in rigs {
            workspace::fetch_in_background(&town, &rig);
        }
        if ended.recv_timeout(interval) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        // A rig may have been added since. A town that cannot be read keeps its settings.
        if let Ok(newer) = Town::open(town.root(), town.around().clone()) {
            town = newer;
        }
    }
}
