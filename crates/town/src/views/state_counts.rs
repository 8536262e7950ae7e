//! The number of agents in each state, for tmux's status line.
//!
//! Every attached client asks for it every few seconds, and a listing of all containers costs more
//! the more agents there are. So the counts are kept in a file, together with the number of changes
//! of tags that tmux counts ([`containers::pack`]): one small query shows whether they still hold.
//! tmux counts in the batch that sets the tags, so a writer that is killed leaves no stale counts.

use crate::base::files;
use crate::base::or_log::OrLog;
use crate::catalog::harnesses::Presets;
use crate::terminal::adopted;
use crate::terminal::containers::{self, Container, ServerChanges};
use crate::{Result, Town};
use gt_core::state::State;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Counts of this age hold even if tags have changed since: with many busy agents they always have.
const MIN_AGE_MILLISECONDS: i64 = 1000;

/// Counts of this age do not hold although no tag has changed: titles, and processes that end
/// without a hook, change states too.
const MAX_AGE_MILLISECONDS: i64 = 10_000;

/// The states of a town's agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// The state of the agent in the container that was asked for.
    pub own: Option<State>,
    counts: Vec<(State, usize)>,
}

/// Counts in the file, with the changes up to which they hold.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredCounts {
    changes: ServerChanges,
    /// Milliseconds since the epoch.
    at: i64,
    counts: Vec<(String, usize)>,
}

impl StateCounts {
    /// Reads the counts of the whole town, and the state of the agent in one container.
    pub fn read(town: &Town, container: Option<&str>) -> Result<Self> {
        let own = container
            .map(|name| containers::find(town, name))
            .transpose()?;
        let own = own.flatten();
        let changes = match &own {
            Some(own) => own.changes(),
            None => containers::changes(town)?,
        };
        let state = own.map(|own| state(town, &own, &mut Presets::default()));
        let stored = match changes {
            Some(changes) => stored(town, &changes),
            None => None,
        };
        let counts = match stored {
            Some(counts) => counts,
            None => count(town, changes)?,
        };
        Ok(StateCounts { own: state, counts })
    }

    /// Returns the number of agents in a state.
    pub fn of(&self, state: State) -> usize {
        let mut counts = self.counts.iter();
        counts
            .find(|(it, _)| *it == state)
            .map_or(0, |(_, count)| *count)
    }
}

fn state(town: &Town, container: &Container, presets: &mut Presets) -> State {
    let harness = &container.pane().tag_harness;
    container.state(presets.get(town, harness)).state
}

/// Returns the counts of the file, if they still hold.
fn stored(town: &Town, changes: &ServerChanges) -> Option<Vec<(State, usize)>> {
    // Agents on other servers change there.
    if !adopted::on_other_servers(town).is_empty() {
        return None;
    }
    let text = files::read_if_there(&path(town)).or_debug("the counts are read again")??;
    // A file of another version, or damaged by a full disk: the agents are counted again.
    let stored: StoredCounts = serde_json::from_str(&text).ok()?;
    let age = town.clock().milliseconds() - stored.at;
    let holds = match stored.changes == *changes {
        true => (0..MAX_AGE_MILLISECONDS).contains(&age),
        false => stored.changes.is_same_server(changes) && (0..MIN_AGE_MILLISECONDS).contains(&age),
    };
    let count = |(word, count): (String, usize)| Some((State::from_word(&word)?, count));
    holds.then(|| stored.counts.into_iter().filter_map(count).collect())
}

/// Counts the agents, and stores the counts. `changes` was read before the agents are.
fn count(town: &Town, changes: Option<ServerChanges>) -> Result<Vec<(State, usize)>> {
    let at = town.clock().milliseconds();
    let mut presets = Presets::default();
    let mut counts: Vec<(State, usize)> = Vec::new();
    for container in containers::list_everywhere(town)? {
        if container.identity().is_none() {
            continue;
        }
        let state = state(town, &container, &mut presets);
        match counts.iter_mut().find(|(it, _)| *it == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    if let Some(changes) = changes {
        let word = |(state, count): &(State, usize)| (state.as_str().to_owned(), *count);
        let stored = StoredCounts {
            changes,
            at,
            counts: counts.iter().map(word).collect(),
        };
        // Cannot fail: all fields are plain values.
        let text = serde_json::to_vec(&stored).unwrap_or_default();
        // A town that is read-only counts again each time.
        files::write_passing(&path(town), &text).or_debug("the counts are not stored");
    }
    Ok(counts)
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("state-counts.json")
}

#[cfg(test)]
mod tests;
