//! Runs the commands that must succeed before the base moves.
//!
//! They are shell lines of `town.toml`, never of the repository, because agents change the
//! repository. They run in a separate worktree, `.runtime/merge/<rig>/tree`, which is reused. Files
//! that git ignores are removed from it before each run, because a branch could leave one that lets
//! the next branch pass; `keep` names those that stay, so that builds are incremental.
//!
//! The commands run code of the branch. So they get only the variables that an agent gets, and with
//! the setting `merge.sandbox` they run in a sandbox ([`crate::agents::sandbox::validation_plan`]).

use super::capture::Capture;
use super::resources::{self, ResourceLimits};
use crate::agents::sandbox;
use crate::base::clock::Clock;
use crate::base::git::Git;
use crate::base::settings::ValidationSandbox;
use crate::base::{files, processes};
use crate::repo::workspace::submodules;
use crate::repo::{rig, workspace};
use crate::{Result, Town};
use gt_core::environment::belongs_to_an_agent;
use gt_core::merge::Merge;
use gt_core::sandbox::SandboxTool;
use gt_core::{Problem, merge};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Grace period between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum number of bytes that are shown of the end of a log.
const TAIL: u64 = 4_000;

/// Result of the commands for a commit.
#[derive(Debug)]
pub(super) enum ValidationResult {
    Green,
    Red {
        reason: String,
        log: PathBuf,
        tail: String,
    },
}

/// Commit to validate, with its context.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeCandidate<'a> {
    pub(super) rig: &'a str,
    /// Entry of the queue; `None` if only the remote's commits are taken over.
    pub(super) merge: Option<&'a Merge>,
    pub(super) base: &'a str,
    pub(super) commit: &'a str,
}

/// Runs the rig's commands on a commit.
pub(super) fn validate(
    town: &Town,
    candidate: MergeCandidate<'_>,
    tell: &dyn Fn(&str),
) -> Result<ValidationResult> {
    let settings = town.settings().merge_of(candidate.rig);
    if settings.validate.is_empty() {
        return Ok(ValidationResult::Green);
    }
    let limits = CommandLimits {
        time: Duration::from_secs(60 * settings.timeout_minutes),
        resources: ResourceLimits::new(settings.memory_mb, settings.processes),
    };
    // Processes of a killed run would work in the same folder.
    end_leftovers(town, candidate.rig);
    let bwrap = match town.settings().merge_defaults_of(candidate.rig).sandbox {
        ValidationSandbox::None => None,
        ValidationSandbox::Workspace => Some(check_sandbox(town, candidate.rig)?),
    };
    let tree = prepare(town, candidate)?;
    let log = log_path(town, candidate);
    files::make_dir(log.parent().unwrap_or(town.root()))?;
    files::remove_if_there(&log)?;
    check_out_submodules(town, candidate, &tree, &log, tell)?;
    for line in &settings.validate {
        tell(&format!("running {line}"));
        let mut output = append(&log)?;
        writeln!(output, "$ {line}").map_err(|error| files::io_problem("write", &log, &error))?;
        let cannot = |error: std::io::Error| files::io_problem("write", &log, &error);
        let (capture, pipe) = Capture::begin(output).map_err(cannot)?;
        let command = match &bwrap {
            Some(bwrap) => sandboxed(town, candidate.rig, &tree, bwrap, line),
            None => Ok(shell(line)),
        };
        let ended = command.and_then(|command| run(town, candidate, &tree, command, pipe, limits));
        end_leftovers(town, candidate.rig);
        capture.finish(GRACE).map_err(cannot)?;
        let reason = match ended? {
            CommandEnd::By(status) if status.success() => continue,
            CommandEnd::By(status) => format!("`{line}` failed ({status})"),
            CommandEnd::TooLate => format!(
                "`{line}` took longer than {}",
                minutes(settings.timeout_minutes)
            ),
            CommandEnd::TooMuch(what) => format!("`{line}` {what}"),
        };
        let tail = tail(&log)?;
        return Ok(ValidationResult::Red { reason, log, tail });
    }
    files::remove_if_there(&log)?;
    Ok(ValidationResult::Green)
}

/// Checks out the submodules of the worktree. A submodule that is unavailable is left empty and
/// noted in the log: the commands decide whether they need it.
fn check_out_submodules(
    town: &Town,
    candidate: MergeCandidate<'_>,
    tree: &Path,
    log: &Path,
    tell: &dyn Fn(&str),
) -> Result<()> {
    for missing in submodules::populate(town, candidate.rig, tree) {
        town.around().cancel.check()?;
        submodules::empty(tree, &missing.path)?;
        tell(&missing.text());
        writeln!(append(log)?, "{}", missing.text())
            .map_err(|error| files::io_problem("write", log, &error))?;
    }
    Ok(())
}

/// Clones the submodules of a rig. Returns a sentence for each that its worktrees lack.
pub fn missing_submodules(town: &Town, rig: &str) -> Vec<String> {
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let has_any = git.says(["rev-parse", "--verify", "--quiet", "HEAD:.gitmodules"]);
    let missing = has_any.and_then(|has_any| match has_any {
        true => try_submodules(town, rig),
        false => Ok(Vec::new()),
    });
    missing.unwrap_or_else(|problem| vec![problem.to_string()])
}

/// Creates the worktree of the queue at the rig's base and checks out its submodules. Returns a
/// sentence for each failure.
fn try_submodules(town: &Town, rig: &str) -> Result<Vec<String>> {
    let base = super::Base::of(town, rig)?.tip()?;
    let candidate = MergeCandidate {
        rig,
        merge: None,
        base: &base,
        commit: &base,
    };
    let tree = prepare(town, candidate)?;
    let missing = submodules::populate(town, rig, &tree);
    Ok(missing.iter().map(submodules::Missing::text).collect())
}

fn minutes(count: u64) -> String {
    match count {
        1 => "1 minute".to_owned(),
        count => format!("{count} minutes"),
    }
}

enum CommandEnd {
    By(ExitStatus),
    TooLate,
    /// It exceeded a limit, which is the end of a sentence.
    TooMuch(String),
}

#[derive(Clone, Copy)]
struct CommandLimits {
    time: Duration,
    resources: ResourceLimits,
}

fn run(
    town: &Town,
    candidate: MergeCandidate<'_>,
    tree: &Path,
    mut command: Command,
    output: PipeWriter,
    limits: CommandLimits,
) -> Result<CommandEnd> {
    let around = town.around();
    let cannot = |error: std::io::Error| {
        Problem::environment("cannot run a shell for the rig's commands").caused_by(error)
    };
    let inherited = around
        .env
        .iter()
        .filter(|(name, _)| town.settings().env.passes(name) && !belongs_to_an_agent(name));
    let is_sandboxed = command.get_program() != SHELL;
    command
        .current_dir(tree)
        .env_clear()
        .envs(inherited)
        .env("GT_MERGE_BASE", candidate.base)
        .env("GT_MERGE_COMMIT", candidate.commit)
        .envs(marks(town, candidate.rig))
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(cannot)?)
        .stderr(output)
        // Ctrl-C at the terminal must reach only this process, which then ends the whole process
        // group.
        .process_group(0);
    if is_sandboxed {
        // The folder that this variable names is not there inside.
        command.env("TMPDIR", "/tmp");
    }
    if let Some(merge) = candidate.merge {
        command
            .env("GT_MERGE_ID", merge.id.as_str())
            .env("GT_MERGE_ITEM", merge.item.as_str())
            .env("GT_MERGE_BRANCH", &merge.branch);
    }
    let mut child = command.spawn().map_err(cannot)?;
    // It holds the write ends of the pipe.
    drop(command);
    processes::sacrifice_first(child.id());
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(cannot)? {
            return Ok(CommandEnd::By(status));
        }
        let late = began.elapsed() > limits.time;
        if late || around.cancel.is_set() {
            end(town, candidate.rig, &mut child);
            around.cancel.check()?;
            return Ok(CommandEnd::TooLate);
        }
        if let Some(what) = limits.resources.exceeded_by(child.id()) {
            resources::kill_tree(child.id(), || processes_of(town, candidate.rig));
            // It is killed; `end_leftovers` handles the rest.
            let _ = child.wait();
            return Ok(CommandEnd::TooMuch(what));
        }
        // Poll: the end of a child and Ctrl-C cannot be awaited together.
        std::thread::sleep(Duration::from_millis(20));
    }
}

const SHELL: &str = "/bin/sh";

fn shell(line: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.args(["-c", line]);
    command
}

/// Returns the path of the sandbox program. Fails if the sandbox of a rig's commands is not available.
fn check_sandbox(town: &Town, rig: &str) -> Result<PathBuf> {
    sandbox::bubblewrap::check(town).map_err(|problem| {
        let message = format!("the commands of {rig} need their sandbox (`merge.sandbox`)");
        let mut wrapped = Problem::environment(message).cause(problem.message().to_owned());
        for cause in problem.causes() {
            wrapped = wrapped.cause(cause.clone());
        }
        // The last hint is for the start of an agent.
        let hints = problem.hints();
        for hint in hints.iter().take(hints.len().saturating_sub(1)) {
            wrapped = wrapped.hint(hint.clone());
        }
        wrapped.hint(format!(
            "`gt config set --rig {rig} merge.sandbox none` runs them without one"
        ))
    })
}

/// Returns the command that runs a shell line in a sandbox. It begins with an empty folder for
/// each line.
fn sandboxed(town: &Town, rig: &str, tree: &Path, bwrap: &Path, line: &str) -> Result<Command> {
    let scratch = folder(town, rig).join("scratch");
    files::remove_folder(&scratch)?;
    files::make_dir(&scratch)?;
    let writable = &town.settings().merge_of(rig).writable;
    let plan = sandbox::validation_plan(town, tree, &scratch, writable)?;
    let mut command = Command::new(bwrap);
    let (tool, temporary) = (SandboxTool::HERE, plan.broker.as_str());
    command.args(tool.arguments(&plan, temporary));
    let variables = tool.variables(temporary);
    if !variables.is_empty() {
        // The caller clears the environment of the command.
        let words = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        command.arg("env").args(words);
    }
    command.args([SHELL, "-c", line]);
    Ok(command)
}

/// Ends a command and all processes that it has started.
fn end(town: &Town, rig: &str, child: &mut Child) {
    let table = processes::snapshot();
    let mut all = table.descendants(child.id());
    all.extend(processes_of(town, rig));
    signal(&table, &all);
    // It has ended, or cannot be killed.
    let _ = child.try_wait();
}

/// Ends processes that carry the marks of this rig's commands: their command has ended, or the
/// process that waited for it was killed.
pub(super) fn end_leftovers(town: &Town, rig: &str) {
    let left = processes_of(town, rig);
    if !left.is_empty() {
        signal(&processes::snapshot(), &left);
    }
}

fn signal(table: &gt_core::process::ProcessTable, pids: &BTreeSet<u32>) {
    let handles = processes::hold(table, pids);
    processes::signal_all(&handles, Signal::TERM);
    let left = processes::wait_all(handles, GRACE);
    processes::signal_all(&left, Signal::KILL);
    // A process that survives KILL is left to the kernel.
    let _ = processes::wait_all(left, GRACE);
}

fn processes_of(town: &Town, rig: &str) -> BTreeSet<u32> {
    let marks = marks(town, rig).map(|(name, value)| format!("{name}={value}"));
    let table = processes::snapshot();
    let own = std::process::id();
    // A tmux server may inherit the marks, but serves other processes.
    let others = table
        .iter()
        .filter(|process| process.pid != own && !process.name.starts_with("tmux"));
    let pids: Vec<u32> = others.map(|process| process.pid).collect();
    processes::with_variables(&pids, &[marks])
}

/// Returns the variables that identify all processes started by a rig's commands.
fn marks(town: &Town, rig: &str) -> [(&'static str, String); 3] {
    let tree = tree(town, rig);
    [
        ("GT_ROOT", town.root_text().to_owned()),
        ("GT_MERGE_RIG", rig.to_owned()),
        ("GT_MERGE_TREE", tree.to_string_lossy().into_owned()),
    ]
}

/// Returns the worktree at the candidate's commit, without changes of an earlier run.
fn prepare(town: &Town, candidate: MergeCandidate<'_>) -> Result<PathBuf> {
    let tree = tree(town, candidate.rig);
    let _lock = workspace::lock_repository(town, candidate.rig)?;
    let commit = candidate.commit;
    let is_there = tree.join(".git").exists();
    let keep = &town.settings().merge_of(candidate.rig).keep;
    if is_there && check_out(town, &tree, commit, keep).is_ok() {
        return Ok(tree);
    }
    town.around().cancel.check()?;
    if is_there {
        // Commands may leave folders without write permission.
        files::make_writable(&tree);
        if check_out(town, &tree, commit, keep).is_ok() {
            return Ok(tree);
        }
    }
    // It does not exist, or a run was killed while git wrote it. Only the queue uses it, so it is
    // created again.
    if let Err(problem) = files::remove_folder(&tree) {
        put_aside(&tree, town.clock()).map_err(|_| problem)?;
    }
    if let Some(folder) = tree.parent() {
        files::make_dir(folder)?;
    }
    let repository = rig::repository(town, candidate.rig);
    let git = Git::at(&repository, town.around());
    git.run(["worktree", "prune"])?;
    let target = tree.to_string_lossy().into_owned();
    let add = [
        "worktree", "add", "--quiet", "--force", "--detach", "--", &target, commit,
    ];
    git.run(ALONE.iter().chain(&add)).map_err(|problem| {
        Problem::failed("cannot make the worktree of the merge queue").caused_by_problem(&problem)
    })?;
    Ok(tree)
}

/// Disables recursion: the submodules of the queue's worktree are checked out afterwards, one by
/// one.
const ALONE: [&str; 2] = ["-c", "submodule.recurse=false"];

/// Puts the worktree on a commit and removes everything that is not part of it and not kept.
fn check_out(town: &Town, tree: &Path, commit: &str, keep: &[String]) -> Result<()> {
    let git = Git::at(tree, town.around());
    let checkout = ["checkout", "--quiet", "--force", "--detach", commit];
    git.run(ALONE.iter().chain(&checkout))?;
    let kept = keep.iter().map(|pattern| format!("--exclude={pattern}"));
    let clean = ["clean", "--quiet", "-ffdx"].map(str::to_owned);
    git.run(clean.into_iter().chain(kept))?;
    submodules::reset(town, tree)
}

/// Renames a worktree that cannot be removed, for example because commands wrote files as another
/// user. First tries to remove an earlier one.
fn put_aside(tree: &Path, clock: &Clock) -> std::io::Result<()> {
    let aside = tree.with_extension("left");
    let stamp = clock.now().as_millisecond();
    if files::remove_folder(&aside).is_ok() {
        return fs::rename(tree, aside);
    }
    fs::rename(tree, tree.with_extension(format!("left-{stamp}")))
}

fn tree(town: &Town, rig: &str) -> PathBuf {
    folder(town, rig).join("tree")
}

pub(super) fn folder(town: &Town, rig: &str) -> PathBuf {
    town.runtime_dir().join("merge").join(rig)
}

fn log_path(town: &Town, candidate: MergeCandidate<'_>) -> PathBuf {
    let name = match candidate.merge {
        Some(merge) => format!("{}.log", merge.id),
        None => format!("{}.log", merge::short(candidate.commit)),
    };
    folder(town, candidate.rig).join(name)
}

fn append(path: &Path) -> Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| files::io_problem("write", path, &error))
}

/// Returns the end of a log, without control characters.
pub(super) fn tail(path: &Path) -> Result<String> {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(TAIL);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // Drop the first line, which may be cut.
        let whole = match (from, text.split_once('\n')) {
            (1.., Some((_, rest))) => rest,
            _ => &text,
        };
        let is_shown = |c: &char| !c.is_control() || *c == '\n' || *c == '\t';
        Ok(whole.chars().filter(is_shown).collect())
    };
    read().map_err(|error| files::io_problem("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_whole_lines_without_escapes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let text = format!("{}\n\u{1b}[31mred\u{1b}[0m\r\nend\n", "x".repeat(5_000));
        fs::write(&path, text).unwrap();
        assert_eq!(tail(&path).unwrap(), "[31mred[0m\nend\n");
        fs::write(&path, "short\n").unwrap();
        assert_eq!(tail(&path).unwrap(), "short\n");
    }
}
