//! Creates a pull request for a task's branch with GitHub's program `gh`.
//!
//! `gh` gets its arguments directly, without a shell, and uses its own login. The text is passed on
//! standard input: arguments are visible to other processes and limited in length. If the branch
//! already has a pull request, returns its URL. This is checked first, so that nothing is pushed if
//! gh does not work.

use super::site::TaskSite;
use super::{event_of, wip};
use crate::base::files::{self, TemporaryFile, io_problem};
use crate::base::git::{Hardening, passes};
use crate::base::program::{self, RunLimits};
use crate::records::events::Events;
use crate::records::items::Work;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::work::WorkId;
use serde_json::Value;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Timeout of gh, and grace period for its end.
const TIMEOUT: Duration = Duration::from_secs(120);
const GRACE: Duration = Duration::from_secs(5);

/// Exit status of gh without a login.
const NOT_LOGGED_IN: i32 = 4;

/// Variables that make gh print colours into a pipe.
const FOR_A_TERMINAL: [&str; 2] = ["CLICOLOR_FORCE", "GH_FORCE_TTY"];

#[derive(Clone, Debug, Default)]
pub struct PullRequestOptions {
    pub draft: bool,
    /// Title to use instead of the item's.
    pub title: Option<String>,
    /// Text to use instead of the item's description.
    pub body: Option<String>,
    /// Only report the command.
    pub dry_run: bool,
}

#[derive(Clone, Debug)]
pub struct PullRequest {
    pub id: WorkId,
    pub branch: String,
    pub base: String,
    /// URL of the pull request; `None` in a dry run.
    pub url: Option<String>,
    /// This call created it.
    pub created: bool,
    /// Command that creates it; its standard input is `body`.
    pub words: Vec<String>,
    pub body: String,
    pub warnings: Vec<String>,
}

/// Pushes the branch of a task and creates a pull request for it.
pub fn pull_request(town: &Town, id: &WorkId, options: &PullRequestOptions) -> Result<PullRequest> {
    let site = TaskSite::of_holder(town, id)?;
    let branch = site.own_branch()?;
    let base = site.base()?;
    let gh = Gh::of(&site)?;
    if !base.has_remote() {
        return Err(
            Problem::conflict(format!("the rig {} has no remote", site.rig))
                .hint("`gt task merge` brings the branch into the base without one"),
        );
    }
    let head = site.head()?;
    let tip = base.tip()?;
    if site.count(&head, &tip)? == 0 {
        return Err(Problem::conflict(format!(
            "{branch} has no commits that {} lacks",
            base.branch
        )));
    }
    wip::refuse_among(&site, &tip)?;
    let item = Work::of(town).get(id)?;
    let title = options.title.clone().unwrap_or(item.title);
    let body = options
        .body
        .clone()
        .unwrap_or_else(|| match &*item.description {
            "" => format!("{id}"),
            description => format!("{description}\n\n{id}"),
        });
    let mut words = vec![
        "pr".to_owned(),
        "create".to_owned(),
        format!("--head={branch}"),
        format!("--base={}", base.branch),
        format!("--title={title}"),
        "--body-file=-".to_owned(),
    ];
    words.extend(options.draft.then(|| "--draft".to_owned()));
    let mut request = PullRequest {
        id: id.clone(),
        branch: branch.clone(),
        base: base.branch.clone(),
        url: None,
        created: false,
        words: [&["gh".to_owned()], &words[..]].concat(),
        body,
        warnings: Vec::new(),
    };
    let changed = site.changed()?.len();
    if changed > 0 {
        request.warnings.push(format!(
            "{changed} changed files are not committed, and not part of it"
        ));
    }
    if options.dry_run {
        return Ok(request);
    }
    request.url = gh.existing(&branch)?;
    base.push(&head, &branch).map_err(|problem| {
        Problem::failed(format!("{branch} could not be pushed"))
            .caused_by_problem(&problem)
            .hint("a pull request is made from a branch of the remote")
    })?;
    if request.url.is_none() {
        let told = gh.run(&words, Some(&request.body)).map_err(|problem| {
            problem.hint(format!(
                "{branch} is pushed; run it again to continue from there"
            ))
        })?;
        let mut lines = told.lines().rev().map(str::trim);
        request.url = lines.find(|line| line.contains("://")).map(str::to_owned);
        request.created = true;
        let event = event_of(town, "pull_request", id, &site.agent)
            .with("branch", branch)
            .with("url", request.url.clone());
        Events::of(town).note(vec![event]);
    }
    Ok(request)
}

/// The program `gh`, run in a task's worktree.
struct Gh<'a> {
    site: &'a TaskSite<'a>,
    program: PathBuf,
}

impl<'a> Gh<'a> {
    fn of(site: &'a TaskSite<'a>) -> Result<Self> {
        let program = site.town.around().find_program("gh").ok_or_else(|| {
            Problem::environment("a pull request needs gh, which is not on the PATH")
                .hint("install it from https://cli.github.com, then `gh auth login`")
                .hint("`gt task merge` brings the branch into the base without it")
        })?;
        Ok(Gh { site, program })
    }

    /// Returns the URL of an open pull request of this branch.
    fn existing(&self, branch: &str) -> Result<Option<String>> {
        let head = format!("--head={branch}");
        let words = [
            "pr",
            "list",
            &head,
            "--state=open",
            "--limit=1",
            "--json=url",
        ];
        let told = self.run(&words.map(str::to_owned), None)?;
        let found: Value = serde_json::from_str(&told).map_err(|error| {
            Problem::failed("gh did not say which pull requests there are").caused_by(error)
        })?;
        Ok(found[0]["url"].as_str().map(str::to_owned))
    }

    /// Returns the text as standard input: an unlinked file. With a pipe, gh could take a truncated
    /// text for the whole if this process were killed.
    fn text(&self, text: &str) -> Result<Stdio> {
        let file = TemporaryFile::new(&self.site.town.runtime_dir().join("tmp"), "text")?;
        files::write_passing(&file.0, text.as_bytes())?;
        let open = File::open(&file.0).map_err(|error| io_problem("read", &file.0, &error))?;
        Ok(open.into())
    }

    fn run(&self, words: &[String], input: Option<&str>) -> Result<String> {
        let around = self.site.town.around();
        let env = around.env.iter().filter(|(name, _)| passes(name));
        let env = env.filter(|(name, _)| !FOR_A_TERMINAL.contains(&name.as_str()));
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .current_dir(&self.site.dir)
            .env_clear()
            .envs(env)
            // It runs without a terminal, so it must not prompt.
            .env("GH_PROMPT_DISABLED", "1")
            .env("GH_NO_UPDATE_NOTIFIER", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(input.map_or_else(|| Ok(Stdio::null()), |text| self.text(text))?)
            // This process handles Ctrl-C and ends gh, so that a cancellation is not reported as a
            // failure of gh.
            .process_group(0);
        // gh calls git.
        let hardening = Hardening::for_command(&self.site.dir, around, "status");
        hardening.apply(&mut command, &around.env, false);
        let limits = RunLimits {
            time: Some(TIMEOUT),
            cancel: Some(&around.cancel),
            grace: Some(GRACE),
        };
        let shown = words.iter().take(2).map(String::as_str);
        let shown = format!("gh {}", shown.collect::<Vec<_>>().join(" "));
        let output = program::output(command, &limits)
            .map_err(|error| Problem::environment("cannot run gh").caused_by(error))?
            .map_err(|reason| Problem::failed(format!("`{shown}` was stopped: {reason}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.code() == Some(NOT_LOGGED_IN) {
            return Err(Problem::environment("gh is not logged in")
                .cause(said)
                .hint("run `gh auth login`, then try again"));
        }
        let problem = Problem::failed(format!("`{shown}` failed ({})", output.status)).cause(said);
        Err(match self.site.base()?.folder() {
            Some(folder) => problem.hint(format!(
                "the rig {} was added from {}; gh needs one that was added from its address on GitHub",
                self.site.rig,
                folder.display()
            )),
            None => problem.hint("`gh auth status` says whether it reaches the remote's host, and as whom"),
        })
    }
}
