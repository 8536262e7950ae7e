//! Checks merge queues that should run automatically.

use super::DoctorFinding;
use crate::Town;
use crate::records::items::Work;
use crate::workflow::merge::background;
use gt_core::merge::Merge;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum wait for a process that was just started.
const START_TIMEOUT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

/// Finds waiting entries of rigs that merge automatically but have no merge process. A fix starts
/// one.
pub(super) fn check_queues(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let left = left_alone(town);
        if left.is_empty() || Instant::now() >= deadline {
            let findings = left
                .iter()
                .map(|(rig, waiting)| report(town, rig, waiting, fix));
            return findings.collect();
        }
        std::thread::sleep(POLL);
    }
}

fn left_alone(town: &Town) -> BTreeMap<String, Vec<Merge>> {
    let mut rigs: BTreeMap<String, Vec<Merge>> = BTreeMap::new();
    // A database that cannot be read is reported by the check of the work items.
    for merge in Work::of(town).merges(None, false).unwrap_or_default() {
        if merge.status.is_waiting() {
            rigs.entry(merge.rig.clone()).or_default().push(merge);
        }
    }
    rigs.retain(|rig, _| background::is_wanted(town, rig) && !background::is_running(town, rig));
    rigs
}

fn report(town: &Town, rig: &str, waiting: &[Merge], fix: bool) -> DoctorFinding {
    let ids: Vec<&str> = waiting.iter().map(|merge| merge.id.as_str()).collect();
    let ids = ids.join(" ");
    if fix {
        return match background::start(town, rig) {
            Ok(_) => {
                DoctorFinding::ok("merges", format!("started the merge queue of {rig}: {ids}"))
            }
            Err(problem) => DoctorFinding::of("merges", &problem),
        };
    }
    let reason = waiting.iter().find_map(|merge| merge.reason.as_deref());
    let killed = match (reason, background::killed_runs(town, rig)) {
        (Some(reason), _) => format!("; the last run: {reason}"),
        (None, 0) => String::new(),
        (None, 1) => "; the last run was killed".to_owned(),
        (None, runs) => format!("; the last {runs} runs were killed"),
    };
    let message = format!("no process merges the waiting entries of {rig}: {ids}{killed}");
    let log = background::log_path(town, rig);
    let hint = format!("`gt doctor --fix` starts it; the log is {}", log.display());
    DoctorFinding::warning("merges", message)
        .hint(hint)
        .fixable()
}
