//! Every program that a repository can name, against the real git.

use crate::base::git::{Git, Hardening};
use crate::{Result, Surroundings};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A repository whose configuration, attributes and hooks name programs. Each program notes its
/// call.
struct Trap {
    folder: tempfile::TempDir,
    around: Surroundings,
}

const HOOKS: &[&str] = &[
    "pre-commit",
    "commit-msg",
    "post-commit",
    "pre-merge-commit",
    "post-merge",
    "post-checkout",
    "post-index-change",
    "pre-push",
    "reference-transaction",
];

impl Trap {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap().to_owned();
        let around = Surroundings {
            env: [
                ("PATH".to_owned(), std::env::var("PATH").unwrap()),
                ("HOME".to_owned(), home),
            ]
            .into(),
            ..Surroundings::default()
        };
        let trap = Trap { folder, around };
        fs::create_dir(trap.dir()).unwrap();
        trap.run(&["init", "--quiet", "--initial-branch=main"]);
        trap.run(&["config", "user.name", "t"]);
        trap.run(&["config", "user.email", "t@localhost"]);
        let attributes = "*.f filter=evil diff=evil merge=evil\n*.c diff=converted\n";
        fs::write(trap.dir().join(".gitattributes"), attributes).unwrap();
        trap.commit("a.f");
        trap.commit("b.c");
        trap
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn git(&self, words: &[&str]) -> Result<String> {
        Git::at(&self.dir(), &self.around).run(words)
    }

    fn run(&self, words: &[&str]) -> String {
        self.git(words).unwrap()
    }

    fn commit(&self, file: &str) {
        let path = self.dir().join(file);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, format!("{before}more\n")).unwrap();
        self.run(&["add", "--all"]);
        self.run(&["commit", "--quiet", "--message", file]);
    }

    /// Makes a program that notes its call; returns its path.
    fn program(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let calls = self.calls_file();
        let text = format!("#!/bin/sh\necho {name} >> '{}'\ncat\n", calls.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn calls_file(&self) -> PathBuf {
        self.folder.path().join("calls")
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.calls_file()).unwrap_or_default()
    }

    fn set(&self, key: &str, value: &str) {
        self.run(&["config", key, value]);
    }

    /// Names a program in every setting.
    fn arm(&self) {
        for key in [
            "core.fsmonitor",
            "core.sshCommand",
            "core.alternateRefsCommand",
            "core.pager",
            "core.editor",
            "core.askPass",
            "credential.helper",
            "diff.external",
            "diff.evil.command",
            "diff.converted.textconv",
            "merge.evil.driver",
            "filter.evil.clean",
            "filter.evil.smudge",
            "gpg.program",
            "remote.origin.uploadpack",
            "remote.origin.receivepack",
        ] {
            self.set(key, &self.program(key));
        }
        self.set("filter.evil.required", "true");
        self.set("protocol.ext.allow", "always");
        self.set("core.hooksPath", self.hooks().to_str().unwrap());
        fs::create_dir_all(self.hooks()).unwrap();
        for hook in HOOKS {
            fs::copy(self.program(hook), self.hooks().join(hook)).unwrap();
        }
    }

    fn hooks(&self) -> PathBuf {
        self.folder.path().join("hooks")
    }

    /// Calls git in the ways in which gt does.
    fn exercise(&self) {
        let other = self.folder.path().join("other");
        let other = other.to_str().unwrap();
        self.run(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
        fs::write(self.dir().join("a.f"), "more\nside\n").unwrap();
        self.run(&["status", "--porcelain=2"]);
        assert!(self.run(&["diff"]).contains("+side"));
        assert!(self.run(&["log", "--patch", "-1"]).contains("+more"));
        self.commit("c.f");
        self.run(&["merge", "--no-edit", "main"]);
        self.run(&["worktree", "add", "--quiet", other, "main"]);
        self.run(&["update-ref", "refs/gt/test", "HEAD"]);
        self.run(&[
            "init",
            "--bare",
            "--quiet",
            "--initial-branch=main",
            "remote",
        ]);
        self.set("remote.origin.url", "./remote");
        self.run(&["push", "--quiet", "origin", "main"]);
        self.run(&["fetch", "--quiet", "origin"]);
        let touch = format!("ext::touch {}", self.calls_file().display());
        assert!(self.git(&["ls-remote", &touch]).is_err());
        assert!(self.git(&["fetch", "ssh://localhost:1/x"]).is_err());
    }
}

#[test]
fn programs_of_a_repository_do_not_run() {
    let trap = Trap::new();
    trap.arm();
    trap.exercise();
    assert_eq!(trap.calls(), "");
}

#[test]
fn settings_of_a_worktree_and_included_ones_do_not_run() {
    let trap = Trap::new();
    trap.set("include.path", "../included");
    trap.set("extensions.worktreeConfig", "true");
    let included = format!("[filter \"evil\"]\nclean = {}\n", trap.program("clean"));
    fs::write(trap.dir().join("included"), included).unwrap();
    let smudge = trap.program("smudge");
    trap.run(&["config", "--worktree", "filter.evil.smudge", &smudge]);
    trap.exercise();
    assert_eq!(trap.calls(), "");
}

#[test]
fn allowed_settings_and_those_of_the_person_are_used() {
    let mut trap = Trap::new();
    let clean = trap.program("clean");
    trap.set("filter.evil.clean", &clean);
    let ignored = |trap: &Trap| Hardening::of(&trap.dir(), &trap.around).ignored;
    assert_eq!(ignored(&trap)[0].key, "filter.evil.clean");
    trap.around.git_allow = vec!["Filter.Evil.*".to_owned()];
    assert_eq!(ignored(&trap), []);
    trap.commit("a.f");
    assert!(trap.calls().contains("clean"), "allowed");
    fs::remove_file(trap.calls_file()).unwrap();
    trap.run(&["config", "--unset", "filter.evil.clean"]);
    trap.around.git_allow = Vec::new();
    trap.run(&["config", "--global", "filter.evil.clean", &clean]);
    trap.commit("a.f");
    assert!(trap.calls().contains("clean"), "the person's own");
}

#[test]
fn git_lfs_works_as_it_is_installed_and_no_other_program_under_its_name() {
    let trap = Trap::new();
    trap.set("filter.lfs.clean", "git-lfs clean -- %f");
    trap.set("filter.lfs.process", "git-lfs filter-process");
    let found = |trap: &Trap| Hardening::of(&trap.dir(), &trap.around).ignored;
    assert_eq!(found(&trap), []);
    trap.set("filter.lfs.process", "git-lfs filter-process; evil");
    assert_eq!(found(&trap)[0].value, "git-lfs filter-process; evil");
}

#[test]
fn overrides_of_the_caller_stay() {
    let mut trap = Trap::new();
    let mut set = |name: &str, value: &str| {
        trap.around.env.insert(name.to_owned(), value.to_owned());
    };
    set("GIT_CONFIG_COUNT", "1");
    set("GIT_CONFIG_KEY_0", "user.name");
    set("GIT_CONFIG_VALUE_0", "caller");
    assert_eq!(trap.run(&["config", "user.name"]), "caller");
    assert_eq!(trap.run(&["config", "core.fsmonitor"]), "false");
}

#[test]
fn bare_repository_is_read_as_well() {
    let trap = Trap::new();
    let bare = trap.folder.path().join("bare.git");
    trap.run(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let git = Git::at(&bare, &trap.around);
    git.run(["config", "core.sshCommand", "evil"]).unwrap();
    let found = Hardening::of(Path::new(&bare), &trap.around).ignored;
    assert_eq!(found[0].key, "core.sshcommand");
}

impl Trap {
    /// Makes a repository with a planted filter at `path` in the repository `around`, and puts its
    /// commit into the index of that.
    fn plant_inside(&self, around: &Path, path: &str) -> PathBuf {
        let inside = around.join(path);
        fs::create_dir_all(&inside).unwrap();
        self.plain(&inside, &["init", "--quiet"]);
        fs::write(inside.join("f"), "one\n").unwrap();
        self.plain(&inside, &["add", "f"]);
        self.plain(&inside, &["commit", "--quiet", "--message", "one"]);
        let filter = self.program("nested");
        self.plain(&inside, &["config", "filter.nested.clean", &filter]);
        fs::create_dir_all(inside.join(".git/info")).unwrap();
        fs::write(inside.join(".git/info/attributes"), "* filter=nested\n").unwrap();
        fs::write(inside.join("f"), "two\n").unwrap();
        let head = self.plain(&inside, &["rev-parse", "HEAD"]);
        let entry = format!("160000,{head},{path}");
        self.plain(around, &["update-index", "--add", "--cacheinfo", &entry]);
        inside
    }

    /// Runs git as an agent does.
    fn plain(&self, dir: &Path, words: &[&str]) -> String {
        let mut git = std::process::Command::new("git");
        git.args(words).current_dir(dir).env_clear();
        git.envs(&self.around.env)
            .env("GIT_AUTHOR_NAME", "t")
            .env("GIT_AUTHOR_EMAIL", "t@localhost")
            .env("GIT_COMMITTER_NAME", "t")
            .env("GIT_COMMITTER_EMAIL", "t@localhost");
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {words:?}: {output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Calls git in the ways that enter repositories inside the worktree.
    fn enter(&self) {
        self.run(&["status", "--porcelain"]);
        self.run(&["diff", "HEAD"]);
        self.run(&["add", "--all"]);
    }
}

#[test]
fn repository_inside_a_worktree_runs_no_program() {
    let trap = Trap::new();
    trap.plant_inside(&trap.dir(), "inside");
    trap.enter();
    assert_eq!(trap.calls(), "");
    // Git itself runs it.
    trap.plain(&trap.dir(), &["status", "--porcelain"]);
    assert_ne!(trap.calls(), "");
}

#[test]
fn repositories_at_every_depth_and_in_every_form_run_no_program() {
    let trap = Trap::new();
    let outer = trap.plant_inside(&trap.dir(), "a");
    let inner = trap.plant_inside(&outer, "b");
    // That was the agent's own git.
    fs::remove_file(trap.calls_file()).unwrap_or_default();
    // Its git folder is elsewhere.
    let elsewhere = trap.dir().join("elsewhere");
    fs::rename(inner.join(".git"), &elsewhere).unwrap();
    let link = format!("gitdir: {}\n", elsewhere.display());
    fs::write(inner.join(".git"), link).unwrap();
    for version in ["2", "4"] {
        let of_version = ["update-index", "--index-version", version];
        trap.plain(&trap.dir(), &of_version);
        trap.enter();
        assert_eq!(trap.calls(), "", "index version {version}");
    }
    trap.plain(&trap.dir(), &["update-index", "--split-index"]);
    trap.enter();
    assert_eq!(trap.calls(), "", "split index");
}

#[test]
fn settings_that_lead_to_another_folder_are_not_followed() {
    let trap = Trap::new();
    let worktree = trap.folder.path().join("linked");
    let words = ["worktree", "add", "--quiet", worktree.to_str().unwrap()];
    trap.plain(&trap.dir(), &words);
    let victim = trap.folder.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("keep"), "").unwrap();
    trap.set("extensions.worktreeConfig", "true");
    trap.set("core.worktree", victim.to_str().unwrap());
    let git = Git::at(&worktree, &trap.around);
    assert_eq!(git.run(["status", "--porcelain"]).unwrap(), "");
    git.run(["clean", "--quiet", "-ffdx"]).unwrap();
    git.run(["reset", "--quiet", "--hard"]).unwrap();
    let left: Vec<_> = fs::read_dir(&victim).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].file_name() == "keep");
    trap.plain(&trap.dir(), &["config", "--unset", "core.worktree"]);
    trap.set("core.bare", "true");
    assert_eq!(git.run(["status", "--porcelain"]).unwrap(), "");
    // A repository inside the worktree, whose files would be written elsewhere.
    trap.set("core.bare", "false");
    let inside = trap.plant_inside(&trap.dir(), "inside");
    trap.plain(
        &inside,
        &["config", "core.worktree", victim.to_str().unwrap()],
    );
    Git::at(&inside, &trap.around)
        .run(["reset", "--quiet", "--hard"])
        .unwrap();
    assert!(!victim.join("f").exists());
    assert_eq!(trap.calls(), "");
}

#[test]
fn push_to_an_unknown_repository_on_this_machine_runs_none_of_its_programs() {
    let trap = Trap::new();
    let target = trap.folder.path().join("target");
    fs::create_dir(&target).unwrap();
    trap.plain(&target, &["init", "--quiet", "--bare"]);
    fs::create_dir_all(target.join("hooks")).unwrap();
    let hooks = [
        "pre-receive",
        "update",
        "post-receive",
        "post-update",
        "reference-transaction",
    ];
    for hook in hooks {
        fs::copy(trap.program(hook), target.join("hooks").join(hook)).unwrap();
    }
    let alternate = trap.program("core.alternateRefsCommand");
    trap.plain(
        &target,
        &["config", "core.alternateRefsCommand", &alternate],
    );
    let objects = trap.dir().join(".git/objects");
    fs::create_dir_all(target.join("objects/info")).unwrap();
    fs::write(
        target.join("objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    let url = target.to_str().unwrap();
    let dir = trap.dir();
    let git = Git::at(&dir, &trap.around).to_unknown_remote();
    git.run(["push", "--quiet", url, "HEAD:refs/heads/pushed"])
        .unwrap();
    assert_eq!(trap.calls(), "");
    assert_ne!(trap.plain(&target, &["rev-parse", "pushed"]), "");
    // The planted program waits for its input.
    let unset = ["config", "--unset", "core.alternateRefsCommand"];
    trap.plain(&target, &unset);
    trap.run(&["push", "--quiet", url, "HEAD:refs/heads/known"]);
    assert!(
        trap.calls().contains("update"),
        "hooks of a known remote run"
    );
}
