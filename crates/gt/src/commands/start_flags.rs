//! Options of every command that starts agents.

use crate::context::Context;
use clap::Args;
use gt_core::Problem;
use gt_core::sandbox::SandboxLevel;
use gt_core::startup::Conversation;
use gt_town::lifecycle::start::StartOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Start options")]
pub(crate) struct StartFlags {
    /// The agent program [default: the role's, GT_HARNESS, the town's]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The model, by the agent program's own name for it [default: the project's, the role's, the
    /// harness's]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Appended to the first prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    instructions: Option<String>,
    /// Why it is started, for the first prompt
    #[arg(long)]
    topic: Option<String>,
    /// The molecule that the topic is about
    #[arg(long, value_name = "ID")]
    molecule: Option<String>,
    /// The sender in its first prompt [default: GT_ROLE]
    #[arg(long, value_name = "ADDRESS")]
    sender: Option<String>,
    /// Give it no first prompt
    #[arg(long)]
    no_prompt: bool,
    /// Resume this conversation of the agent program
    #[arg(long, value_name = "ID", group = "conversation")]
    resume: Option<String>,
    /// Continue its newest conversation
    #[arg(long = "continue", group = "conversation")]
    continue_newest: bool,
    /// Fork this conversation
    #[arg(long, value_name = "ID", group = "conversation")]
    fork: Option<String>,
    /// A shell line to run instead of the agent program
    #[arg(long, value_name = "LINE")]
    command: Option<String>,
    /// Another folder than the role's
    #[arg(long, value_name = "PATH")]
    work_dir: Option<PathBuf>,
    /// Make its worktree if there is none
    #[arg(long)]
    create: bool,
    /// A variable to pass on from this environment, or NAME=VALUE (then visible to `ps`)
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// A file of NAME=VALUE lines
    #[arg(long, value_name = "FILE")]
    env_file: Vec<PathBuf>,
    /// The agent program's configuration folder
    #[arg(long, value_name = "PATH")]
    config_dir: Option<String>,
    /// The account to use: its configuration folder (`gt account list`)
    #[arg(long, value_name = "NAME", conflicts_with = "config_dir")]
    account: Option<String>,
    /// The colours of the status line: a palette, `rig`, `mayor`, `deacon` or `none`
    #[arg(long)]
    theme: Option<String>,
    #[command(flatten)]
    permissions: PermissionFlags,
    /// The sandbox: `none`, `workspace`, `strict` or `container` [default: the role's, the town's]
    #[arg(long, value_name = "LEVEL", value_parser = sandbox_level)]
    sandbox: Option<SandboxLevel>,
    /// Do not wait until it is ready
    #[arg(long)]
    no_wait: bool,
    /// Timeout in seconds until it is ready
    #[arg(long, value_name = "SECONDS")]
    ready_timeout: Option<f64>,
    /// Keep a container that is not ready in time, instead of rolling back the start
    #[arg(long)]
    keep_on_timeout: bool,
    /// Leave the program's start-up dialogs to a person
    #[arg(long)]
    no_dialogs: bool,
    /// Respawn it when it dies
    #[arg(long, overrides_with = "no_auto_respawn")]
    auto_respawn: bool,
    /// Do not respawn it when it dies
    #[arg(long)]
    no_auto_respawn: bool,
    /// Close the container when the agent ends
    #[arg(long)]
    no_remain_on_exit: bool,
    /// Write no PID file
    #[arg(long)]
    no_track_pid: bool,
    /// Skip the final check that it still runs
    #[arg(long)]
    no_verify: bool,
}

// The option of every command that starts an agent. No doc comment: clap would take it for the
// help text of each command that flattens these flags.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct PermissionFlags {
    /// Make the agent program ask for permission, regardless of its role
    #[arg(long)]
    pub(crate) ask_permissions: bool,
}

pub(crate) fn sandbox_level(word: &str) -> Result<SandboxLevel, String> {
    SandboxLevel::from_word(word)
        .ok_or_else(|| "the levels are none, workspace, strict and container".to_owned())
}

impl StartFlags {
    /// Returns flags that only set these variables.
    pub(crate) fn with_env(env: Vec<String>) -> Self {
        StartFlags {
            env,
            ..StartFlags::default()
        }
    }

    pub(crate) fn options(&self, context: &Context) -> Result<StartOptions, Problem> {
        let off = |flag: bool| flag.then_some(false);
        if let Some(theme) = self.theme.as_deref().filter(|theme| *theme != "none")
            && gt_core::theme::find(theme, "").is_none()
        {
            let names: Vec<&str> = gt_core::theme::PALETTES.iter().map(|p| p.name).collect();
            return Err(Problem::usage(format!("there is no theme {theme:?}"))
                .hint(format!("rig, mayor, deacon, none, {}", names.join(", "))));
        }
        if let Some(sender) = &self.sender {
            context.town()?.check_own_name("--sender", sender)?;
        }
        Ok(StartOptions {
            digest: None,
            digest_text: None,
            harness: self.harness.clone(),
            model: self.model.clone(),
            // A respawn runs in another folder, so the path is made absolute.
            work_dir: self
                .work_dir
                .as_ref()
                .map(|dir| context.around().current_dir.join(dir)),
            create: self.create,
            command: self.command.clone(),
            sender: self.sender.clone(),
            topic: self.topic.clone(),
            molecule: self.molecule.clone(),
            instructions: self.instructions.clone(),
            conversation: self.conversation(),
            extra_env: self.extra_env(context)?,
            config_dir: self.config_dir.clone(),
            account: self.account.clone(),
            keeps_folder: false,
            continues: false,
            theme: self.theme.clone(),
            wait_for_agent: off(self.no_wait),
            keep_on_timeout: self.keep_on_timeout,
            keep_container: false,
            respawn_of: None,
            resume_prompt: None,
            takes_over: None,
            restored: None,
            after_shell: false,
            accept_dialogs: off(self.no_dialogs || self.no_wait),
            wait_ready: off(self.no_wait),
            ready_timeout: self.ready_timeout()?,
            auto_respawn: match (self.auto_respawn, self.no_auto_respawn) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            remain_on_exit: off(self.no_remain_on_exit),
            track_pid: off(self.no_track_pid),
            verify_survived: off(self.no_verify),
            skip_permissions: off(self.permissions.ask_permissions),
            sandbox: self.sandbox,
            prompt: off(self.no_prompt),
        })
    }

    fn conversation(&self) -> Conversation {
        match (&self.resume, &self.fork, self.continue_newest) {
            (Some(id), _, _) => Conversation::Resume(id.clone()),
            (_, Some(id), _) => Conversation::Fork(id.clone()),
            (_, _, true) => Conversation::Continue,
            _ => Conversation::New,
        }
    }

    fn ready_timeout(&self) -> Result<Option<Duration>, Problem> {
        self.ready_timeout
            .map(|seconds| {
                Duration::try_from_secs_f64(seconds)
                    .map_err(|_| Problem::usage(format!("{seconds} is not a valid wait time")))
            })
            .transpose()
    }

    fn extra_env(&self, context: &Context) -> Result<Vec<(String, String)>, Problem> {
        let mut env = Vec::new();
        for path in &self.env_file {
            env.extend(read_env_file(&context.around().current_dir.join(path))?);
        }
        for word in &self.env {
            let pair = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => {
                    let value = context.around().env.get(word).cloned().ok_or_else(|| {
                        Problem::usage(format!("the variable {word} is not set here"))
                    })?;
                    (word.clone(), value)
                }
            };
            check_name(&pair.0, "--env")?;
            env.push(pair);
        }
        Ok(env)
    }
}

fn read_env_file(path: &Path) -> Result<Vec<(String, String)>, Problem> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| gt_town::base::files::io_problem("read", path, &error))?;
    let mut env = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{}:{}", path.display(), number + 1);
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| Problem::usage(format!("{place} is not NAME=VALUE")))?;
        check_name(name.trim(), &place)?;
        let value = value.trim();
        let quoted = ['"', '\'']
            .iter()
            .find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
        env.push((name.trim().to_owned(), quoted.unwrap_or(value).to_owned()));
    }
    Ok(env)
}

fn check_name(name: &str, place: &str) -> Result<(), Problem> {
    let well_formed = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if well_formed {
        return Ok(());
    }
    Err(Problem::usage(format!(
        "{place}: {name:?} cannot be the name of a variable"
    )))
}
