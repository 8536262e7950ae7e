//! Event retention (`gt events prune`): removes expired events from the event log.
//!
//! A prune reads the log, writes the remaining events to a second file, and replaces the log with
//! it. Writers wait only for the last part, in which the prune copies the events that were written
//! meanwhile. A prune may be killed at any time: the old file stays until the new one is complete.
//!
//! The last line of a pruned log is an event about the prune. It names the replaced file, so that a
//! reader of that file knows where to continue ([`crate::records::stream`]).

mod prune;
mod stats;

pub(crate) use prune::MARKER;
pub use prune::{Pruned, PrunedFile};
pub use stats::{FileStats, KindStats};

use crate::base::clock::Clock;
use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::settings::KrcSettings;
use crate::records::events::Events;
use crate::{Result, Town};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for a concurrent prune.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The retention settings and files of a town.
#[derive(Clone, Debug)]
pub struct EventRetention {
    root: PathBuf,
    events: Events,
    settings: KrcSettings,
    clock: Clock,
}

/// The record of the last prune.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LastPrune {
    /// RFC 3339, in UTC.
    pub last_prune: String,
    pub removed: u64,
}

/// The result of `gt events prune --auto`.
#[derive(Clone, Debug)]
pub enum AutoPrune {
    Pruned(Pruned),
    /// The next prune is due at this time.
    NotYet(Timestamp),
    /// Another process is pruning.
    Busy,
}

impl EventRetention {
    pub fn of(town: &Town) -> Self {
        EventRetention {
            clock: town.clock().clone(),
            ..Self::new(town.root().to_owned(), town.settings().krc.clone())
        }
    }

    pub(crate) fn new(root: PathBuf, settings: KrcSettings) -> Self {
        EventRetention {
            events: Events::in_folder(&root),
            root,
            settings,
            clock: Clock::default(),
        }
    }

    /// Returns statistics of the log and the feed, by event type.
    pub fn stats(&self) -> Result<Vec<FileStats>> {
        let policy = self.settings.policy();
        [self.events.log(), self.events.feed()]
            .into_iter()
            .map(|lines| stats::of_file(lines, &policy, self.clock.now()))
            .collect()
    }

    /// Removes expired events. With `dry_run` it only counts them.
    pub fn prune(&self, dry_run: bool) -> Result<Pruned> {
        let _lock = FileLock::take(&self.lock_path(), TIMEOUT)?;
        self.prune_alone(dry_run)
    }

    /// Removes expired events unless a prune ran within the town's interval.
    pub fn auto_prune(&self, dry_run: bool) -> Result<AutoPrune> {
        let Some(_lock) = FileLock::try_take(&self.lock_path())? else {
            return Ok(AutoPrune::Busy);
        };
        let last = self.last_prune();
        let last: Option<Timestamp> = last.and_then(|last| last.last_prune.parse().ok());
        if let Some(last) = last {
            let interval = i64::try_from(self.settings.prune_interval.0).unwrap_or(i64::MAX);
            let due = last
                .saturating_add(SignedDuration::from_secs(interval))
                .unwrap_or(Timestamp::MAX);
            // A time in the future was written with a wrong clock, and does not count.
            let now = self.clock.now();
            if last <= now && now < due {
                return Ok(AutoPrune::NotYet(due));
            }
        }
        self.prune_alone(dry_run).map(AutoPrune::Pruned)
    }

    /// Returns the last prune, or `None` if there was none or its record cannot be read.
    pub fn last_prune(&self) -> Option<LastPrune> {
        let unknown = "the last prune is unknown";
        let text = files::read_if_there(&self.state_path()).or_warn(unknown)??;
        serde_json::from_str(&text).or_warn(unknown)
    }

    fn prune_alone(&self, dry_run: bool) -> Result<Pruned> {
        let pruned = prune::prune_log_and_feed(&self.events, &self.settings, dry_run, &self.clock)?;
        if !dry_run {
            let last = LastPrune {
                last_prune: self.clock.text(),
                removed: pruned.files.iter().map(|file| file.removed).sum(),
            };
            // Cannot fail: all fields are plain values.
            let text = serde_json::to_string(&last).unwrap_or_default();
            files::write_passing(&self.state_path(), text.as_bytes())?;
        }
        Ok(pruned)
    }

    fn lock_path(&self) -> PathBuf {
        self.root.join(".runtime/locks/krc.lock")
    }

    fn state_path(&self) -> PathBuf {
        self.root.join(".krc-autoprune.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::settings::Length;
    use crate::records::events::EventQuery;
    use gt_core::event::Event;

    fn event(kind: &str, days_ago: i64) -> Event {
        let at = Timestamp::now() - SignedDuration::from_hours(24 * days_ago);
        Event {
            ts: format!("{at:.3}"),
            ..Event::emitted(kind, "a")
        }
    }

    fn with(folder: &tempfile::TempDir, settings: KrcSettings) -> EventRetention {
        EventRetention::new(folder.path().to_owned(), settings)
    }

    fn kinds(retention: &EventRetention) -> Vec<String> {
        let found = retention.events.find(&EventQuery::default()).unwrap();
        found.into_iter().map(|event| event.kind).collect()
    }

    #[test]
    fn expired_events_are_pruned_and_the_newest_stay() {
        let folder = tempfile::tempdir().unwrap();
        let few = KrcSettings {
            minimum_kept: 2,
            ..KrcSettings::default()
        };
        let retention = with(&folder, few);
        let all = [
            event("patrol_a", 2),
            event("mail", 29),
            event("nudge", 4),
            event("hook", 13),
            event("patrol_b", 2),
            event("nudge", 4),
        ];
        retention.events.append(all.to_vec()).unwrap();
        let log = folder.path().join(".events.jsonl");
        let before = std::fs::read(&log).unwrap();
        let told = retention.prune(true).unwrap();
        assert_eq!((told.files[0].removed, told.files[0].kept), (2, 4));
        assert_eq!(std::fs::read(&log).unwrap(), before, "only told");
        let pruned = retention.prune(false).unwrap();
        assert_eq!((pruned.files[0].removed, pruned.files[0].kept), (2, 4));
        assert_eq!(
            kinds(&retention),
            ["mail", "hook", "patrol_b", "nudge", "krc_prune"]
        );
        // The feed has no patrols: the newer of its two nudges is among the newest two events.
        assert_eq!((pruned.files[1].removed, pruned.files[1].kept), (1, 3));
        // The prune's own event does not displace other events.
        assert_eq!(retention.prune(false).unwrap().files[0].removed, 0);
        assert_eq!(kinds(&retention).len(), 5);
    }

    #[test]
    fn damaged_lines_are_pruned_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let retention = with(&folder, KrcSettings::default());
        retention.events.append(vec![event("nudge", 0)]).unwrap();
        let path = folder.path().join(".events.jsonl");
        let mut text = b"not json\n".to_vec();
        text.extend(std::fs::read(&path).unwrap());
        std::fs::write(&path, text).unwrap();
        let stats = retention.stats().unwrap();
        assert_eq!((stats[0].events, stats[0].damaged), (1, 1));
        let pruned = retention.prune(false).unwrap();
        assert_eq!((pruned.files[0].damaged, pruned.files[0].kept), (1, 1));
        assert_eq!(kinds(&retention), ["nudge", "krc_prune"]);
    }

    #[test]
    fn newest_hundred_events_are_kept_regardless_of_age() {
        let folder = tempfile::tempdir().unwrap();
        let retention = with(&folder, KrcSettings::default());
        let old = (0..150).map(|_| event("nudge", 400)).collect();
        retention.events.append(old).unwrap();
        let pruned = retention.prune(false).unwrap();
        assert_eq!((pruned.files[0].removed, pruned.files[0].kept), (50, 100));
    }

    #[test]
    fn automatic_prune_runs_once_per_interval() {
        let folder = tempfile::tempdir().unwrap();
        let mut retention = with(&folder, KrcSettings::default());
        assert!(matches!(
            retention.auto_prune(true),
            Ok(AutoPrune::Pruned(_))
        ));
        assert!(matches!(
            retention.auto_prune(false),
            Ok(AutoPrune::Pruned(_))
        ));
        assert!(matches!(
            retention.auto_prune(false),
            Ok(AutoPrune::NotYet(_))
        ));
        retention.settings.prune_interval = Length(0);
        assert!(matches!(
            retention.auto_prune(false),
            Ok(AutoPrune::Pruned(_))
        ));
        let _other = FileLock::try_take(&retention.lock_path()).unwrap().unwrap();
        assert!(matches!(retention.auto_prune(false), Ok(AutoPrune::Busy)));
    }

    #[test]
    fn statistics_are_grouped_by_type() {
        let folder = tempfile::tempdir().unwrap();
        let retention = with(&folder, KrcSettings::default());
        let all = vec![event("nudge", 0), event("nudge", 400), event("mail", 1)];
        retention.events.append(all).unwrap();
        let log = &retention.stats().unwrap()[0];
        assert_eq!(log.expired, 1);
        let nudges = log.types.iter().find(|k| k.kind == "nudge").unwrap();
        assert_eq!((nudges.count, nudges.expired), (2, 1));
        assert!((nudges.value - 0.5).abs() < 0.01, "{nudges:?}");
        assert!(nudges.oldest < nudges.newest);
        let size = std::fs::metadata(folder.path().join(".events.jsonl"))
            .unwrap()
            .len();
        assert_eq!(log.types.iter().map(|kind| kind.bytes).sum::<u64>(), size);
    }
}
