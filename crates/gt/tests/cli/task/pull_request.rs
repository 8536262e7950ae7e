//! Pull requests through the real gh and a fake GitHub (`github.py`). git pushes the branch to a
//! real repository through a local shell instead of ssh.

use super::*;
use crate::env::processes_of;
use crate::external_programs;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const LOGIN: &str = "github.test:\n    oauth_token: good-secret\n    user: t\n";

/// A task with one commit, in a rig that was added from an address of the fake GitHub.
struct GitHub {
    env: TestEnv,
    id: String,
    dir: PathBuf,
}

impl GitHub {
    fn new(test: &str) -> Option<Self> {
        if !external_programs::are_there(test, &["gh", "python3", "openssl"]) {
            return None;
        }
        let mut env = TestEnv::with_town();
        let source = env.repository("source");
        let words = ["clone", "--quiet", "--bare", ".", "../owner/repo.git"];
        env.git(&source, &words);
        let ssh = env.path("ssh");
        let script =
            "#!/bin/sh\nfor word; do last=$word; done\ncd \"$HOME\" && eval \"exec $last\"\n";
        fs::write(&ssh, script).unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        let port = serve(&env);
        env.set("HTTPS_PROXY", &format!("http://127.0.0.1:{port}"));
        env.set(
            "SSL_CERT_FILE",
            env.path("github/cert.pem").to_str().unwrap(),
        );
        env.set("GIT_SSH_COMMAND", ssh.to_str().unwrap());
        env.set("GIT_SSH_VARIANT", "simple");
        let url = "git@github.test:owner/repo.git";
        env.gt(&["rig", "add", "gastown", url, "--prefix", "gt"])
            .ok();
        let id = create(&env);
        let started = env.json(&["task", "start", &id]);
        let dir = PathBuf::from(started["work_dir"].as_str().unwrap());
        commit(&env, &dir, "new", "x\n");
        let github = GitHub { env, id, dir };
        github.log_in(LOGIN);
        Some(github)
    }

    /// Writes the file that `gh auth login` writes.
    fn log_in(&self, text: &str) {
        let folder = self.env.path(".config/gh");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("hosts.yml"), text).unwrap();
    }

    fn log_out(&self) {
        fs::remove_dir_all(self.env.path(".config/gh")).unwrap();
    }

    fn says(&self, name: &str) -> String {
        fs::read_to_string(self.env.path("github").join(name)).unwrap_or_default()
    }

    fn pulls(&self) -> Vec<Value> {
        let text = self.says("pulls.json");
        match &*text {
            "" => Vec::new(),
            text => serde_json::from_str(text).unwrap(),
        }
    }

    /// Returns the commit of the task's branch on the remote.
    fn pushed(&self) -> String {
        let repository = self.env.path("owner/repo.git");
        let words = ["for-each-ref", "--format=%(objectname)"];
        let name = format!("refs/heads/{}", self.id);
        let told = self.env.git(&repository, &[&words[..], &[&name]].concat());
        told.trim().to_owned()
    }
}

/// Starts the server, and returns its port. The server ends with the test.
fn serve(env: &TestEnv) -> String {
    let folder = env.path("github");
    fs::create_dir(&folder).unwrap();
    let mut openssl = env.command("openssl");
    openssl
        .args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=github.test"])
        .args(["-addext", "subjectAltName=DNS:github.test"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(&folder);
    crate::env::run(&mut openssl).ok();
    let script = folder.join("github.py");
    fs::write(&script, include_str!("github.py")).unwrap();
    let mut python = env.command("python3");
    python.arg(script).arg(&folder);
    drop(python.spawn().unwrap());
    wait_until("GitHub to listen", TIMEOUT, || {
        fs::read_to_string(folder.join("port")).ok()
    })
}

#[test]
fn pull_request_is_made_with_any_item_text() {
    let Some(mut github) = GitHub::new("a pull request") else {
        return;
    };
    let id = github.id.clone();
    let title = "--draft \"it\" 'x' $(touch evil) `touch evil` -- 🦀";
    // Longer than the kernel's limit for one argument.
    let long = "x".repeat(200_000);
    let text = format!("--web\n\"q\" 's' $(touch evil)\r\n\\n <b>&amp;</b> 🦀\n\n{long}\n-");
    fs::write(github.env.path("text"), &text).unwrap();
    let mut update = github.env.gt_command(&["work", "update", &id]);
    update
        .arg(format!("--title={title}"))
        .args(["--description", "-"])
        .stdin(fs::File::open(github.env.path("text")).unwrap());
    crate::env::run(&mut update).ok();
    let stored = github.env.json(&["work", "show", &id]);
    let description = stored["description"].as_str().unwrap();
    assert!(description.len() > 200_000, "{}", description.len());
    // With these variables gh colours the output that gt parses.
    github.env.set("CLICOLOR_FORCE", "1");
    github.env.set("GH_FORCE_TTY", "100");
    let described = github.env.json(&["task", "pr", &id, "--dry-run"]);
    assert_eq!(described["created"], false);
    assert_eq!(github.says("requests"), "", "GitHub was not asked");
    assert_eq!(github.pushed(), "");
    let made = github.env.json(&["task", "pr", &id]);
    let url = "https://github.test/owner/repo/pull/1";
    assert_eq!(
        (&made["url"], &made["created"]),
        (&json!(url), &json!(true))
    );
    let pulls = github.pulls();
    assert_eq!(pulls.len(), 1);
    for (field, expected) in [
        ("title", json!(title)),
        ("body", json!(format!("{description}\n\n{id}"))),
        ("headRefName", json!(id)),
        ("baseRefName", json!("main")),
        ("draft", json!(false)),
    ] {
        assert!(pulls[0][field] == expected, "{field}: {:.300}", pulls[0]);
    }
    assert_eq!(described["body"], pulls[0]["body"]);
    assert_eq!(github.pushed(), head(&github.env, &github.dir));
    assert!(!github.dir.join("evil").exists());
    // A second run finds the pull request and pushes the new commit.
    commit(&github.env, &github.dir, "more", "x\n");
    let found = github.env.json(&["task", "pr", &id]);
    assert_eq!(
        (&found["url"], &found["created"]),
        (&json!(url), &json!(false))
    );
    assert_eq!(github.pulls().len(), 1);
    assert_eq!(github.pushed(), head(&github.env, &github.dir));
    let told = github.env.json(&["events", "--type", "pull_request"]);
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told[0]["payload"]["url"], url);
    assert_eq!(told[0]["actor"], crate::env::login());
}

#[test]
fn unusable_gh_pushes_nothing() {
    let Some(mut github) = GitHub::new("no pull request") else {
        return;
    };
    let id = github.id.clone();
    let fails = |github: &GitHub, code: i32, words: &[&str]| {
        let stderr = github.env.gt(&["task", "pr", &id]).fails(code).stderr;
        for word in words {
            assert!(stderr.contains(word), "{word}: {stderr}");
        }
        assert!(!stderr.contains("secret"), "{stderr}");
        assert_eq!(github.pushed(), "");
    };
    github.log_out();
    fails(&github, 5, &["gh is not logged in", "`gh auth login`"]);
    github.log_in(&LOGIN.replace("good", "stale"));
    fails(&github, 1, &["401", "`gh auth status`"]);
    github.log_in(LOGIN);
    github.env.set("HTTPS_PROXY", "http://127.0.0.1:1");
    fails(&github, 1, &["`gh pr list` failed", "connection refused"]);
    // gh identifies the GitHub repository by the remote's address; a folder has none.
    let repository = github.env.town().join("gastown/.repo.git");
    let folder = github.env.path("owner/repo.git");
    let folder = folder.to_str().unwrap();
    let words = ["config", "remote.origin.url", folder];
    github.env.git(&repository, &words);
    fails(&github, 1, &["was added from", folder]);
    assert_eq!(github.pulls().len(), 0);
}

#[test]
fn ctrl_c_ends_a_gh_that_waits_and_nothing_is_half_done() {
    let Some(github) = GitHub::new("Ctrl-C") else {
        return;
    };
    let (env, id) = (&github.env, &github.id);
    let description = "only for the standard input";
    env.gt(&["work", "update", id, "--description", description])
        .ok();
    for (name, shown) in [("PullRequestList", "list"), ("PullRequestCreate", "create")] {
        fs::write(env.path("github/requests"), "").unwrap();
        fs::write(env.path("github/hang"), name).unwrap();
        let gt = env!("CARGO_BIN_EXE_gt");
        // Ctrl-C also reaches the shell, which must survive.
        let person = Person::at(env, &format!("trap : INT; {gt} task pr {id}"));
        wait_until("gh to ask", TIMEOUT, || {
            github.says("requests").contains(name).then_some(())
        });
        let lines = command_lines(env);
        let gh = format!("gh pr {shown} ");
        assert!(lines.iter().any(|line| line.contains(&gh)), "{lines:?}");
        let told = lines.join("\n");
        assert!(!told.contains("secret") && !told.contains(description));
        person.presses("C-c");
        let screen = person.sees("ended-with-1");
        let stopped = format!("`gh pr {shown}` was stopped: interrupted");
        assert!(screen.contains(&stopped), "{screen}");
        assert_eq!(github.pushed().is_empty(), shown == "list", "{screen}");
        let lines = command_lines(env);
        assert!(!lines.iter().any(|line| line.contains(&gh)), "{lines:?}");
        let close = gt_tmux::Command::new("kill-session").target(Person::target());
        env.tmux(close);
    }
    fs::remove_file(env.path("github/hang")).unwrap();
    assert_eq!(env.json(&["task", "pr", id])["created"], true);
    assert_eq!(github.pulls().len(), 1);
}

/// Returns the command lines of all processes of the test, which every user of the machine may
/// read.
fn command_lines(env: &TestEnv) -> Vec<String> {
    let processes = processes_of(env.home()).into_iter();
    let lines = processes.filter_map(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}
