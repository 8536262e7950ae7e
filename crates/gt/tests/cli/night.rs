//! A night, compressed: 30 items on 8 polecats whose agents crash, hang and fail, while the daemon
//! and the tmux server are killed. Without a person, every item is merged or escalated, and every
//! commit of the base passes the validation.
//!
//! `speed` under `[patrol]` turns minutes into seconds. `night/model.sh` is the model of the demo
//! agents, `night/work.sh` their work, `night/check.sh` the validation of the rig. `GT_NIGHT_SEED`
//! repeats a night; the history of a night that fails stays in the target folder.

#![expect(
    clippy::print_stderr,
    reason = "the seed and the history of a failed night must be seen"
)]

use crate::env::{TestEnv, signal};
use crate::mq::{MERGED, repository};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Number of items of each kind; `model.sh` and `work.sh` define them.
const KINDS: &[(&str, usize)] = &[
    ("plain", 10),
    ("crash", 3),
    ("exit", 2),
    ("hang", 2),
    ("freeze", 1),
    ("limit", 1),
    ("error", 1),
    ("idle", 1),
    ("conflict", 3),
    ("broken", 2),
    ("number", 2),
    ("doomed", 1),
    ("stuck", 1),
];
/// Kinds whose items clash with each other if they are made at the same time.
const CLASHING: &[&str] = &["conflict", "number"];
/// Kinds that no agent can finish.
const HOPELESS: &[&str] = &["doomed", "stuck"];
/// Kills of each night, and the time in milliseconds within which they happen.
const DAEMON_KILLS: usize = 3;
const SERVER_KILLS: usize = 2;
const KILLS_WITHIN: u64 = 40_000;
const TIMEOUT: Duration = Duration::from_secs(170);
const POLL: Duration = Duration::from_millis(500);

const SETTINGS: &str = r#"
[merge]
confirm = false

[patrol]
speed = 30
start_timeout = "15m"

[rigs.gastown.merge]
validate = ["sh check.sh"]
"#;

/// A deterministic source of randomness (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            let other = self.below(u64::try_from(end).unwrap() + 1);
            list.swap(end, usize::try_from(other).unwrap());
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Daemon,
    Server,
}

struct Night {
    env: TestEnv,
    seed: u64,
    began: Instant,
    /// Items with their kinds, in the order of their assignment.
    items: Vec<(String, &'static str)>,
    history: String,
}

impl Night {
    fn new(seed: u64) -> Self {
        let env = TestEnv::empty();
        env.gt(&["init", "--harness", "demo", "--sandbox", "none"])
            .ok();
        let settings = env.town().join("town.toml");
        let text = fs::read_to_string(&settings).unwrap();
        let text = text.replace(
            "hung_after_minutes = 30",
            "hung_after_minutes = 3\npolecats_per_rig = 8",
        );
        fs::write(&settings, format!("{text}{SETTINGS}")).unwrap();
        let source = env.repository("source-gastown");
        let files = [
            ("check.sh", include_str!("night/check.sh")),
            ("shared.txt", "nothing\n"),
        ];
        for (name, text) in files {
            fs::write(source.join(name), text).unwrap();
        }
        env.git(&source, &["add", "."]);
        env.git(&source, &["commit", "--quiet", "-m", "Add the validation"]);
        let source = source.to_str().unwrap();
        env.gt(&["rig", "add", "gastown", source, "--prefix", "gt"])
            .ok();
        let night = Night {
            env,
            seed,
            began: Instant::now(),
            items: Vec::new(),
            history: String::new(),
        };
        night.script_agents();
        night
    }

    fn folder(&self) -> PathBuf {
        self.env.path("night")
    }

    fn script_agents(&self) {
        let folder = self.folder();
        for name in ["kind", "asked"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        for (name, text) in [
            ("model.sh", include_str!("night/model.sh")),
            ("work.sh", include_str!("night/work.sh")),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        let town = self.env.town();
        let model = folder.join("model.sh");
        let harness = format!(
            "[command]\nargs = [\"demo-agent\", \"--answer\", \"sh {}\"]\n",
            model.display()
        );
        fs::write(town.join("harnesses/demo.toml"), harness).unwrap();
        let role = format!(
            "[env]\nNIGHT = '{}'\nGIT_AUTHOR_EMAIL = 'p@localhost'\nGIT_COMMITTER_NAME = 'p'\n\
             GIT_COMMITTER_EMAIL = 'p@localhost'\n",
            folder.display()
        );
        fs::write(town.join("roles/polecat.toml"), role).unwrap();
    }

    fn note(&mut self, text: &str) {
        let at = self.began.elapsed().as_secs_f64();
        let line = format!("{at:7.2} {text}\n");
        eprint!("{line}");
        self.history.push_str(&line);
    }

    fn create_items(&mut self, rng: &mut Rng) {
        let each = |(kind, number): &(&'static str, usize)| vec![*kind; *number];
        let mut kinds: Vec<&'static str> = KINDS.iter().flat_map(each).collect();
        rng.shuffle(&mut kinds);
        // Those that may clash start together.
        kinds.sort_by_key(|kind| !CLASHING.contains(kind));
        for kind in kinds {
            let id = self.env.create_item(&format!("A {kind} item"));
            fs::write(self.folder().join("kind").join(&id), kind).unwrap();
            self.items.push((id, kind));
        }
        let ids: Vec<&str> = self.items.iter().map(|(id, _)| id.as_str()).collect();
        let slung = self.env.gt(&[&["sling"], &ids[..]].concat());
        assert_eq!(slung.code, 0, "{slung:?}");
    }

    fn daemon(&self) -> Option<u32> {
        let status = self.env.gt(&["daemon", "status", "--json"]);
        let status: Value = serde_json::from_str(&status.stdout).ok()?;
        let pid = status["pid"]
            .as_u64()
            .filter(|_| status["running"] == true)?;
        u32::try_from(pid).ok()
    }

    fn server(&self) -> Option<u32> {
        let ask = gt_tmux::Command::new("display-message").args(["-p", "#{pid}"]);
        self.env.server().run(ask).ok()?.trim().parse().ok()
    }

    /// Kills a process. Only one of the two is missing at a time, because each one starts the other
    /// again. Returns false if one is missing.
    fn kill(&mut self, victim: Victim) -> bool {
        let (Some(daemon), Some(server)) = (self.daemon(), self.server()) else {
            return false;
        };
        // The timer that starts a daemon again is set by the first save of a server.
        if self.env.running().is_empty() {
            return false;
        }
        let pid = match victim {
            Victim::Daemon => daemon,
            Victim::Server => server,
        };
        signal(pid, Signal::KILL);
        self.note(&format!("kill -9 of the {victim:?} ({pid})"));
        true
    }

    /// Returns the items that are neither merged nor escalated, with their statuses.
    fn unsettled(&self) -> BTreeMap<String, String> {
        let escalated = self.escalated();
        let mut found = BTreeMap::new();
        let list = self
            .env
            .json(&["work", "list", "--all", "--rig", "gastown"]);
        for item in list.as_array().unwrap() {
            // A batch with an escalated item stays open, and role agents have items of their own.
            let kind = item["type"].as_str().unwrap();
            if ["batch", "molecule", "step", "handoff"].contains(&kind) {
                continue;
            }
            let id = item["id"].as_str().unwrap();
            let status = item["status"].as_str().unwrap();
            let known = self.items.iter().find(|(known, _)| known == id);
            let kind = known.map_or("repair", |(_, kind)| kind);
            // The repair of an escalated item waits for a person as well.
            let whole = id.split('.').next().unwrap_or(id);
            let is_escalated = escalated.iter().any(|it| it == id || it == whole);
            if status != "closed" && !is_escalated {
                found.insert(id.to_owned(), format!("{kind} {status}"));
            }
        }
        found
    }

    /// Returns the items with an escalation.
    fn escalated(&self) -> Vec<String> {
        let raised = self.env.json(&["escalate", "list", "--all"]);
        let raised = raised.as_array().unwrap().iter();
        let items = raised.filter_map(|it| it["item"].as_str().map(str::to_owned));
        items.collect()
    }

    /// Runs the night until every item is settled.
    fn run(&mut self, rng: &mut Rng) {
        let mut kills: Vec<(u64, Victim)> = [
            [Victim::Daemon; DAEMON_KILLS].as_slice(),
            [Victim::Server; SERVER_KILLS].as_slice(),
        ]
        .concat()
        .into_iter()
        .enumerate()
        .map(|(place, victim)| {
            // Even a short night has an early kill of each.
            let is_first = place == 0 || place == DAEMON_KILLS;
            let within = if is_first {
                KILLS_WITHIN / 3
            } else {
                KILLS_WITHIN
            };
            (2_000 + rng.below(within), victim)
        })
        .collect();
        kills.sort_by_key(|(at, _)| *at);
        let mut last = BTreeMap::new();
        loop {
            let elapsed = self.began.elapsed();
            if let Some((at, victim)) = kills.first().copied()
                && elapsed >= Duration::from_millis(at)
                && self.kill(victim)
            {
                kills.remove(0);
            }
            let unsettled = self.unsettled();
            if unsettled.len() != last.len() {
                self.note(&format!("{} items are unsettled", unsettled.len()));
            }
            last = unsettled;
            if last.is_empty() {
                return;
            }
            assert!(elapsed < TIMEOUT, "unsettled: {last:#?}");
            // Not a wait for a condition: the kills have their own times.
            std::thread::sleep(POLL);
        }
    }

    fn check_results(&self) {
        let escalated = self.escalated();
        for (id, kind) in &self.items {
            let is_hopeless = HOPELESS.contains(kind);
            let status = self.env.json(&["work", "show", id])["status"].clone();
            let expected = if is_hopeless { "escalated" } else { "merged" };
            let found = match status == "closed" {
                true => "merged",
                false if escalated.contains(id) => "escalated",
                false => "lost",
            };
            assert_eq!(found, expected, "{id}, a {kind} item: {status}");
        }
        let all = repository(&self.env);
        let commits = self
            .env
            .git(&all, &["rev-list", "--first-parent", "--reverse", MERGED]);
        let place = self.env.path("commit");
        for commit in commits.lines() {
            if place.exists() {
                fs::remove_dir_all(&place).unwrap();
            }
            fs::create_dir(&place).unwrap();
            let line = format!("git archive {commit} | tar -x -C {}", place.display());
            let mut unpack = self.env.command("sh");
            let unpacked = unpack.args(["-c", &line]).current_dir(&all).status();
            assert!(unpacked.unwrap().success(), "{commit}");
            if place.join("check.sh").exists() {
                let mut check = self.env.command("sh");
                let checked = check.arg("check.sh").current_dir(&place).output().unwrap();
                assert!(checked.status.success(), "{commit} is red: {checked:?}");
            }
        }
        let tip = self
            .env
            .git(&all, &["ls-tree", "-r", "--name-only", MERGED]);
        for (id, kind) in self
            .items
            .iter()
            .filter(|(_, kind)| !HOPELESS.contains(kind))
        {
            let is_there = match *kind {
                "conflict" => self
                    .env
                    .git(&all, &["show", &format!("{MERGED}:shared.txt")])
                    .contains(id.as_str()),
                "number" => tip.contains(&format!("numbers/{id}")),
                _ => tip.lines().any(|file| file == format!("{id}.txt")),
            };
            assert!(is_there, "{id}, a {kind} item, is not in the base:\n{tip}");
        }
    }
}

impl Drop for Night {
    /// Keeps the history of a night that failed.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("night-{}", self.seed));
        let mut history = format!("seed {}\n{}", self.seed, self.history);
        for words in [
            &["patrol", "log", "--lines", "1000"][..],
            &["escalate", "list", "--all"],
            &["agents", "--all"],
            &["work", "list", "--all"],
            &["mq", "list", "--all"],
            &["schedule", "list"],
            &["daemon", "status"],
            &["logs"],
        ] {
            let answer = self.env.gt(words);
            let _ = write!(
                history,
                "\n$ gt {words:?}\n{}{}",
                answer.stdout, answer.stderr
            );
        }
        // A history that cannot be kept must not hide the failure itself.
        let _ = fs::create_dir_all(&folder);
        let _ = fs::write(folder.join("history.txt"), &history);
        let copied = Command::new("cp")
            .arg("-r")
            .arg(self.env.town())
            .arg(&folder)
            .status();
        eprintln!(
            "{history}\nseed {}: kept in {} ({copied:?})",
            self.seed,
            folder.display()
        );
    }
}

#[test]
fn night_with_crashes_hangs_and_kills_ends_with_every_item_merged_or_escalated() {
    let seed = match std::env::var("GT_NIGHT_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::try_from(now.as_millis()).unwrap()
        }
    };
    eprintln!("seed {seed}");
    let mut rng = Rng(seed);
    let mut night = Night::new(seed);
    night.env.gt(&["daemon", "start"]).ok();
    night.create_items(&mut rng);
    night.note("all items are slung");
    night.run(&mut rng);
    night.note("all items are settled");
    night.check_results();
}
