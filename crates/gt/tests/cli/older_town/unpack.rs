//! Unpacks the fixture, with its tmux server and its agents.

use crate::env::{TIMEOUT, TestEnv, run};
use crate::save::gzip;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub(super) const CONTAINERS: usize = 4;

/// The unpacked town. Its agents run.
pub(super) struct OlderTown {
    pub(super) env: TestEnv,
    places: Vec<(String, String)>,
}

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/older_town");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the start time of a process in clock ticks.
fn birth(pid: &str) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(19).unwrap().to_owned()
}

/// Splits the archive into paths and contents.
fn files(archive: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in archive.split_inclusive('\n') {
        let heading = line
            .strip_prefix("-- ")
            .and_then(|line| line.strip_suffix(" --\n"));
        if let Some(path) = heading {
            files.push((path, String::new()));
        } else {
            files.last_mut().unwrap().1.push_str(line);
        }
    }
    files
}

fn is_callback(line: &str) -> bool {
    line.starts_with("set-hook ") || line.starts_with("bind-key ")
}

impl OlderTown {
    pub(super) fn unpack() -> Self {
        let env = TestEnv::empty();
        let mut older = OlderTown {
            places: vec![
                ("@HOME@".to_owned(), env.home().to_str().unwrap().to_owned()),
                ("@GT@".to_owned(), env!("CARGO_BIN_EXE_gt").to_owned()),
                ("@PATH@".to_owned(), std::env::var("PATH").unwrap()),
            ],
            env,
        };
        older.make_folders();
        let gates = older.start_server();
        older.write_files();
        older.load("items.sql", ".work/items.db");
        older.load("index.sql", ".sessions/index.db");
        older.update_position();
        older.import("repo.export", &older.env.town().join("gastown/.repo.git"));
        older.import("source.export", &older.env.path("source/.git"));
        older.check_out();
        older.set_callbacks();
        for gate in gates {
            fs::write(gate, "go\n").unwrap();
        }
        older.wait_for_agents();
        older
    }

    /// Returns a text of the fixture with the facts of this machine.
    fn text(&self, name: &str) -> String {
        let places = self.places.iter();
        places.fold(fixture(name), |text, (place, value)| {
            text.replace(place, value)
        })
    }

    /// Returns the arguments of a command, and the older version's answer.
    pub(super) fn expected(&self, name: &str) -> (Vec<&'static str>, Value) {
        let mut all: Value = serde_json::from_str(&self.text("expected.json")).unwrap();
        let mut one = all[name].take();
        let args = one["arguments"].as_array().unwrap().iter();
        let args = args.map(|arg| &*arg.as_str().unwrap().to_owned().leak());
        (args.collect(), one["answer"].take())
    }

    fn make_folders(&self) {
        for (path, _) in files(&fixture("town.txt")) {
            let path = self
                .env
                .path(path.trim_end_matches(" (no newline at the end)"));
            let is_folder = path.to_str().unwrap().ends_with('/');
            let folder = if is_folder {
                &path
            } else {
                path.parent().unwrap()
            };
            fs::create_dir_all(folder).unwrap();
        }
        let private = ["-R", "go-rwx", "gt"];
        run(self.env.command("chmod").args(private)).ok();
    }

    /// Sets up the tmux server, and returns the pipes that its agents wait for.
    fn start_server(&mut self) -> Vec<PathBuf> {
        let conf = self.text("tmux.conf");
        let names = conf.lines().filter_map(|line| {
            let words = line.strip_prefix("new-session -d -s ")?;
            words.split_whitespace().next()
        });
        let names: Vec<&str> = names.collect();
        assert_eq!(names.len(), CONTAINERS);
        let gates: Vec<PathBuf> = names
            .iter()
            .map(|name| self.env.path(&format!("go-{name}")))
            .collect();
        run(self.env.command("mkfifo").args(&gates)).ok();
        let containers = conf.lines().filter(|line| !is_callback(line));
        self.source(containers);

        let ask = |format: &str| {
            self.env
                .tmux(Tmux::new("display-message").args(["-p", format]))
        };
        let mut places = vec![
            ("@SERVER_PID@".to_owned(), ask("#{pid}")),
            ("@SERVER_STARTED@".to_owned(), ask("#{start_time}")),
            ("@HOST@".to_owned(), ask("#{host}")),
        ];
        for name in &names {
            let pid = self.env.format(name, "#{pane_pid}");
            places.push((format!("@BORN:{name}@"), birth(&pid)));
            places.push((format!("@PID:{name}@"), pid));
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        places.push(("@BOOT@".to_owned(), boot.trim().to_owned()));
        self.places.extend(places);
        gates
    }

    /// Sets the hooks and keys by which tmux calls `gt`. They need the files of the town.
    fn set_callbacks(&self) {
        let conf = self.text("tmux.conf");
        self.source(conf.lines().filter(|line| is_callback(line)));
    }

    fn source<'a>(&self, lines: impl Iterator<Item = &'a str>) {
        let lines: Vec<&str> = lines.collect();
        let file = self.env.path("tmux.conf");
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        let socket = self.env.socket();
        let mut tmux = self.env.command("tmux");
        tmux.args(["-f", "/dev/null", "-S", socket.to_str().unwrap()]);
        // Both in one call: a server without sessions ends at once.
        tmux.args(["start-server", ";", "source-file", file.to_str().unwrap()]);
        run(&mut tmux).ok();
        fs::remove_file(file).unwrap();
    }

    fn write_files(&self) {
        for (path, mut content) in files(&self.text("town.txt")) {
            let whole = path.strip_suffix(" (no newline at the end)");
            if whole.is_some() {
                content.pop();
            }
            let path = whole.unwrap_or(path);
            if path.ends_with('/') {
                continue;
            }
            let content = if Path::new(path).extension().is_some_and(|end| end == "gz") {
                gzip(&self.env, &["-c"], content.as_bytes())
            } else {
                content.into_bytes()
            };
            fs::write(self.env.path(path), content).unwrap();
        }
    }

    fn load(&self, dump: &str, database: &str) {
        let database = rusqlite::Connection::open(self.env.town().join(database)).unwrap();
        // A dump names rows before those that they refer to.
        let script = format!("PRAGMA foreign_keys = OFF;\n{}", self.text(dump));
        database.execute_batch(&script).unwrap();
    }

    /// Notes the present bytes of the journal in the index, whose lengths depend on the home.
    fn update_position(&self) {
        let sessions = self.env.town().join(".sessions");
        let journal = fs::read(sessions.join("index.jsonl")).unwrap();
        let database = rusqlite::Connection::open(sessions.join("index.db")).unwrap();
        let kept = "SELECT length(tail) FROM read_so_far";
        let kept: usize = database.query_row(kept, [], |row| row.get(0)).unwrap();
        let tail = &journal[journal.len() - kept..];
        let note = "UPDATE read_so_far SET bytes = ?1, tail = ?2";
        assert_eq!(database.execute(note, (journal.len(), tail)).unwrap(), 1);
    }

    fn import(&self, export: &str, repository: &Path) {
        fs::create_dir_all(repository.join("objects")).unwrap();
        fs::create_dir_all(repository.join("refs")).unwrap();
        let file = self.env.path(export);
        fs::write(&file, self.text(export)).unwrap();
        let mut import = self.env.command("git");
        import
            .args(["fast-import", "--quiet", "--force"])
            .env("GIT_DIR", repository)
            .stdin(Stdio::from(fs::File::open(&file).unwrap()));
        run(&mut import).ok();
        fs::remove_file(file).unwrap();
    }

    /// Writes the git indexes of all worktrees, which are not in the fixture.
    fn check_out(&self) {
        let repository = self.env.town().join("gastown/.repo.git");
        let list = self
            .env
            .git(&repository, &["worktree", "list", "--porcelain"]);
        let folders = list
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "));
        for folder in folders
            .map(Path::new)
            .filter(|folder| *folder != repository)
        {
            self.env.git(folder, &["reset", "--quiet"]);
            assert_eq!(self.env.git(folder, &["status", "--porcelain"]), "");
        }
        self.env
            .git(&self.env.path("source"), &["reset", "--quiet"]);
    }

    fn wait_for_agents(&self) {
        wait_until("three are idle, one waits", TIMEOUT, || {
            let agents = self.env.json(&["agents", "--all"]);
            let mut states = super::column(&agents, "state");
            states.sort();
            (states == ["idle", "idle", "idle", "waiting"]).then_some(())
        });
    }
}
