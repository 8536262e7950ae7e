//! Duties in a town of tests, with a clock that the test moves.

use super::*;
use gt_town::records::items::Work;
use gt_town::repo::rig;
use gt_town::supervision::recurring::{self, NewRecurring};
use std::process::Command;

/// Maximum wait for a run of a duty.
const TIMEOUT: Duration = Duration::from_secs(20);

fn duty(name: &str) -> &'static Duty {
    let is_it = |duty: &&Duty| duty.name == name;
    DUTIES.iter().find(is_it).expect("a duty")
}

/// Makes a town with the rig `lab`, whose clock stands at this time.
fn town(folder: &Path, clock: &Clock) -> Town {
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let mut git = Command::new("git");
        let git = git.args(identity).args(args).current_dir(folder);
        assert!(git.status().unwrap().success(), "{args:?}");
    };
    git(&["init", "--quiet", "source"]);
    let commit = ["commit", "--quiet", "--allow-empty", "-m", "Begin"];
    git(&[&["-C", "source"], &commit[..]].concat());
    let root = folder.join("town");
    let socket = folder.join("s").display().to_string();
    Town::init(&root, None, &socket, "demo").unwrap();
    let around = Surroundings {
        env: [("PATH", std::env::var("PATH").unwrap())]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
        current_dir: root.clone(),
        clock: clock.clone(),
        ..Surroundings::default()
    };
    let mut town = Town::open(&root, around).unwrap();
    let source = folder.join("source");
    rig::add(&mut town, "lab", source.to_str().unwrap(), Some("lb")).unwrap();
    town
}

#[test]
fn recurring_work_that_falls_due_runs_without_a_sweep() {
    let clock = Clock::stopped_at("2026-01-10T12:00:00Z".parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let town = town(folder.path(), &clock);
    let new = NewRecurring {
        cron: "* * * * *".to_owned(),
        formula: "patrol".to_owned(),
        rig: "lab".to_owned(),
        ..NewRecurring::default()
    };
    recurring::add(&town, new).unwrap();
    // One second before the next minute.
    clock.advance(Duration::from_secs(59));
    let place = Arc::new(DaemonTown {
        root: town.root().to_owned(),
        around: town.around().clone(),
    });
    let note = Arc::new(SharedNote::begin(&town, "test").unwrap());
    let runs = |note: &SharedNote| note.lock().duties.get("recurring").map_or(0, |it| it.runs);
    let wake = Arc::new(Notify::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let attended = attend(
            duty("recurring"),
            Duration::ZERO,
            Arc::clone(&wake),
            Arc::clone(&place),
            Arc::clone(&note),
        );
        let attended = tokio::spawn(attended);
        let await_runs = |count: u64| {
            let note = Arc::clone(&note);
            let reached = async move {
                while runs(&note) < count {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(TIMEOUT, reached)
        };
        // The first sweep of a daemon. From now on only the timer wakes the duty.
        wake.notify_one();
        await_runs(1).await.expect("the first sweep");
        assert!(Work::of(&town).queued_assignments().unwrap().is_empty());
        clock.advance(Duration::from_secs(1));
        await_runs(2).await.expect("the timer");
        attended.abort();
    });
    runtime.shutdown_background();
    let queued = Work::of(&town).queued_assignments().unwrap();
    assert_eq!(queued.len(), 1, "{queued:?}");
    assert_eq!(queued[0].item.labels, ["recurring:patrol"]);
}
