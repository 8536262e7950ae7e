//! Everything about a start that is known before tmux is touched.

use super::{StartError, StartOptions};
use crate::agents::{account, sandbox};
use crate::base::callback::Call;
use crate::base::or_log::OrLog;
use crate::base::surroundings;
use crate::catalog::hook_installers::{self, Wiring};
use crate::catalog::{directory, harnesses, onboarding, roles, secrets};
use crate::records::budget;
use crate::records::items::{HandedOver, Work};
use crate::repo::{agent_settings, init_step, project, rig, workspace};
use crate::terminal::environment::{self, ServerEnvironment};
use crate::{Result, Town};
use gt_core::beacon::Beacon;
use gt_core::harness::Preset;
use gt_core::record::{Record, SessionStatus};
use gt_core::role::RoleConfig;
use gt_core::sandbox::{SandboxLevel, SandboxTool};
use gt_core::session::SessionId;
use gt_core::startup::{self, Conversation, LaunchPlan, StartRequest};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use gt_tmux::{Command, SessionName};
use std::path::{Path, PathBuf};

pub(crate) struct Prepared<'a> {
    pub(super) identity: &'a Identity,
    pub(super) options: &'a StartOptions,
    pub(super) role: RoleConfig,
    pub(super) preset: Preset,
    pub(super) program: PathBuf,
    pub(super) container: SessionName,
    pub(super) work_dir: PathBuf,
    pub(super) prompt: Option<String>,
    pub(super) passed_env: Vec<(String, String)>,
    /// Secret variables of the role. The pane's first process reads them again, so that tmux does
    /// not get to know them.
    secrets: Vec<(String, String)>,
    server_env: ServerEnvironment,
    pub(super) config_dir: Option<String>,
    pub(super) model: Option<String>,
    pub(super) sandbox: SandboxLevel,
    /// The window beside the agent in which the program runs; `None` for the agent itself.
    pub(super) window: Option<&'a str>,
}

impl<'a> Prepared<'a> {
    /// Reads what a start needs, and changes nothing.
    pub(crate) fn new(
        town: &Town,
        identity: &'a Identity,
        options: &'a StartOptions,
    ) -> Result<Self, StartError> {
        identity.check_new(town.registry()).or_else(|problem| {
            // The town's own agents have no chosen name; their addresses are reserved words.
            if identity.name().is_none() {
                Ok(())
            } else {
                Err(problem)
            }
        })?;
        if let Some(rig) = identity.rig().filter(|_| identity.role() != Role::Task) {
            rig::check_not_parked(town, rig)?;
        }
        let mut role = roles::resolve(town, identity.role(), identity.rig())?.value;
        check_variables(role.env.keys(), "the role", identity.role().as_str())?;
        options.apply_to(&mut role);
        let file = match identity.role() {
            Role::Agent => directory::agent_file(town, identity)?.unwrap_or_default(),
            _ => directory::AgentFile::default(),
        };
        let harness = options.harness.as_deref().or(file.harness.as_deref());
        let preset = harnesses::resolve(town, &harnesses::choose(town, harness, &role))?.value;
        let names = preset.env.set.keys().chain(&preset.env.clear);
        check_variables(names, "the harness", &preset.name)?;
        check_asks(options, &preset)?;
        let in_container = role.sandbox.level == Some(SandboxLevel::Container);
        let program = if options.command.is_some() || role.session.start_command.is_some() {
            PathBuf::new()
        } else if in_container {
            // The program of the image; the one of this machine need not be installed.
            let here = harnesses::locate(town, &preset);
            here.unwrap_or_else(|_| PathBuf::from(&preset.command.program))
        } else {
            harnesses::locate(town, &preset).map_err(StartError::ProgramMissing)?
        };
        let container = roles::container_by(town, identity, &role)?;
        let container = SessionName::try_from(container.as_str())
            .map_err(|error| Problem::usage(error.to_string()))?;
        let work_dir = match &options.work_dir {
            Some(dir) => town.around().current_dir.join(dir),
            None => workspace::path(town, identity, &role)?,
        };
        let is_bypassing = !program.as_os_str().is_empty() && startup::never_asks(&role, &preset);
        let sandbox = match options.continues {
            true => role.sandbox.level.unwrap_or_default(),
            false => sandbox::level(town, identity, &role, &preset, &work_dir, is_bypassing),
        };
        let instructions = options.instructions.clone().or(file.prompt);
        let prompt = prompt(
            town,
            identity,
            options,
            &role,
            instructions.as_deref(),
            hook_installers::primes(town, &preset)?,
        );
        let around = town.around();
        // A session that takes over gets what its container has already.
        let server_env = match options.takes_over {
            None => ServerEnvironment::read(town),
            Some(_) => ServerEnvironment::default(),
        };
        let secrets = secrets::resolve(town, &role)?;
        let of_shell = match identity.role() {
            Role::Task => init_step::environment(town, identity),
            _ => Vec::new(),
        };
        let passed_env = server_env
            .passed(town, &preset)
            .into_iter()
            .chain(around.agents_path().map(|path| ("PATH".to_owned(), path)))
            .chain(of_shell)
            .chain(beads(town, identity))
            .collect();
        let config_dir = config_dir(town, options, &preset)?;
        let model = model(identity, options, &role, &preset, &work_dir)?;
        Ok(Prepared {
            identity,
            options,
            role,
            preset,
            program,
            container,
            work_dir,
            prompt,
            passed_env,
            secrets,
            server_env,
            config_dir,
            model,
            sandbox,
            window: None,
        })
    }

    /// Returns the settings of the program in the repository that a person has not approved.
    pub(super) fn unapproved_settings(&self, town: &Town) -> Result<Vec<String>> {
        let is_own_line = self.program.as_os_str().is_empty();
        match self.identity.rig() {
            Some(rig) if !is_own_line => {
                agent_settings::unapproved(town, rig, &self.preset, &self.work_dir)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns a warning if the role wants permission prompts and the program never asks.
    pub(super) fn permission_warning(&self) -> Option<String> {
        let is_own_line = self.program.as_os_str().is_empty();
        let wants_asking = !self.role.start.skip_permissions && !is_own_line;
        (wants_asking && self.preset.command.cannot_ask)
            .then(|| format!("{} runs every command without asking", self.preset.title))
    }

    pub(super) fn no_folder(&self, town: &Town) -> Problem {
        if self.options.work_dir.is_some() {
            return Problem::not_found(format!("there is no folder {}", self.work_dir.display()))
                .hint("`--work-dir` takes a folder that exists; without it the agent has its own");
        }
        let problem = Problem::not_found(format!(
            "{} does not exist: {} is not a folder",
            self.identity,
            self.work_dir.display()
        ));
        let problem = directory::with_similar(town, problem, self.identity);
        match (self.identity.role(), self.identity.rig()) {
            (Role::Crew, Some(rig)) => problem.hint(format!(
                "`gt crew add {rig}/{}` makes it",
                self.identity.short_name()
            )),
            _ => problem.hint("add `--create` to make it"),
        }
    }

    /// Writes the answers to the program's first questions, if the role accepts dialogs.
    pub(super) fn write_onboarding_answers(&self, town: &Town, plan: &LaunchPlan) -> Vec<String> {
        let home = plan.env.get("HOME").map(Path::new);
        let home = home.or_else(|| town.around().home());
        let root = self.config_dir.as_deref().map(Path::new).or(home);
        let Some(root) = root.filter(|_| plan.runs_preset && self.role.start.accept_dialogs) else {
            return Vec::new();
        };
        let given = self.options.extra_env.iter().map(|(name, _)| name);
        let given = given.chain(self.role.env.keys()).cloned().collect();
        let mut env = plan.env.clone();
        env.extend(self.secrets.iter().cloned());
        let facts = onboarding::OnboardingFacts {
            root,
            work_dir: &self.work_dir.to_string_lossy(),
            never_asks: plan.never_asks,
            env: &env,
            given: &given,
        };
        onboarding::write_answers(&self.preset.seeds, &facts)
    }

    /// Fails if a budget that the agent is under is exhausted.
    pub(super) fn refuse_exhausted_budget(&self, town: &Town) -> Result<()> {
        if !budget::is_set(town) {
            return Ok(());
        }
        let item = hooked_work(town, self.identity);
        let item = item.as_ref().map(WorkId::as_str);
        budget::refuse_exhausted(town, Some(self.identity), None, item)
    }

    /// Returns the journal line that begins this session. `handed` is the work that the previous
    /// session has just handed over.
    pub(super) fn record(
        &self,
        town: &Town,
        session: SessionId,
        handed: Option<&HandedOver>,
    ) -> Record {
        let identity = self.identity;
        let id = session.to_string();
        let conversation = match &self.options.conversation {
            Conversation::New if !self.preset.command.session_id.is_empty() => Some(id.clone()),
            Conversation::Resume(known) => Some(known.clone()),
            _ => None,
        };
        let is_worktree =
            workspace::is_worktree(identity.role()) || self.work_dir.join(".git").exists();
        let (work_unit, molecule) = match handed {
            Some(handed) => (handed.work.clone(), handed.molecule.clone()),
            None => (hooked_work(town, identity), molecule(town, identity)),
        };
        Record {
            tmux_session: Some(self.container.to_string()),
            tmux_socket: Some(town.server().socket_path().to_string_lossy().into_owned()),
            agent: Some(identity.address()),
            rig: identity.rig().map(str::to_owned),
            role: Some(identity.role().as_str().to_owned()),
            started_at: Some(town.clock().text()),
            work_unit: work_unit.map(|id| id.to_string()),
            molecule_id: molecule
                .map(|id| id.to_string())
                .or_else(|| self.options.molecule.clone()),
            chain_id: Some(id.clone()),
            cwd: Some(self.work_dir.to_string_lossy().into_owned()),
            branch: is_worktree.then(|| self.branch(town)).flatten(),
            harness: Some(self.preset.name.clone()),
            model: self.model.clone(),
            harness_session_id: conversation,
            initial_prompt: self.prompt.clone(),
            start: Some(self.start_tag()),
            status: Some(SessionStatus::Running),
            host: Some(surroundings::host()),
            ..Record::about(id)
        }
    }

    /// Returns the branch of its worktree; after a handoff it is already known.
    fn branch(&self, town: &Town) -> Option<String> {
        let before = self.options.takes_over.as_ref();
        let known = before.and_then(|before| before.branch.clone());
        known.or_else(|| workspace::current_branch(town, &self.work_dir))
    }

    /// Returns the command that sets an option of its container.
    pub(super) fn option(&self, name: &str, value: &str) -> Command {
        Command::new("set-option")
            .target(self.container.clone())
            .args([name, value])
    }

    /// Returns the options for a respawn. They name the configuration folder of this start, because
    /// the conversation is there, even if the default changes, and its sandbox, which a respawn or
    /// a handoff does not change.
    pub(super) fn start_tag(&self) -> String {
        let options = StartOptions {
            config_dir: self.config_dir.clone(),
            sandbox: Some(self.sandbox),
            ..self.options.clone()
        };
        options.to_tag()
    }

    /// Returns whether a condition must be observed before it counts as running. A container that
    /// closes with its process is kept open until then, too.
    fn is_awaited(&self) -> bool {
        let start = &self.role.start;
        let is_watched = start.wait_for_agent || start.wait_ready || start.accept_dialogs;
        is_watched || self.options.command.is_some() || !start.remain_on_exit
    }

    /// Returns the argv, the environment and the tags of a session that continues this chain.
    pub(super) fn plan(
        &self,
        town: &Town,
        session: SessionId,
        chain: Option<&str>,
        wiring: &Wiring,
        unapproved: &[String],
    ) -> LaunchPlan {
        let ignore: &[String] = match unapproved {
            [] => &[],
            _ => &self.preset.repository.ignore,
        };
        let mut plan = startup::plan(&StartRequest {
            identity: self.identity,
            container: self.container.as_str(),
            session,
            chain,
            work_dir: &self.work_dir.to_string_lossy(),
            town_root: town.root_text(),
            socket: &town.socket_text(),
            role: &self.role,
            preset: &self.preset,
            program: &self.program.to_string_lossy(),
            command: self.options.command.as_deref(),
            prompt: self.prompt.as_deref(),
            conversation: self.options.conversation.clone(),
            config_dir: self.config_dir.as_deref(),
            model: self.model.as_deref(),
            digest: self.options.digest.as_deref(),
            sandbox: self.sandbox,
            passed_env: &[self.passed_env.as_slice(), &wiring.env].concat(),
            extra_env: &self.options.extra_env,
            hook_args: &[wiring.args.as_slice(), ignore].concat(),
            has_hooks: !wiring.args.is_empty() || !wiring.env.is_empty(),
            is_awaited: self.is_awaited(),
            now: town.clock().seconds(),
        });
        let preset = Some(&self.preset);
        plan.removed_env = self.server_env.foreign(town, preset, &plan.env);
        plan.argv = [
            environment::without(&plan.removed_env),
            self.run_agent_prefix(town),
            plan.argv,
        ]
        .concat();
        plan
    }

    /// Returns the words that start the program with the role's secret variables, and in its
    /// sandbox.
    fn run_agent_prefix(&self, town: &Town) -> Vec<String> {
        let level = self.sandbox;
        let is_sandboxed = level != SandboxLevel::None;
        if self.secrets.is_empty() && !is_sandboxed {
            return Vec::new();
        }
        let gt = town.around().gt.to_string_lossy().into_owned();
        let [internal, run] = Call::RunAgent.words().map(str::to_owned);
        let mut words = vec![gt, internal, run, self.identity.address()];
        if is_sandboxed {
            let options = ["--sandbox", level.as_str(), "--harness", &self.preset.name];
            words.extend(options.map(str::to_owned));
        }
        words.push("--".to_owned());
        words
    }

    /// Prepares the sandbox of the agent, if it has one. Fails if this system has none.
    pub(super) fn prepare_sandbox(&self, town: &Town) -> Result<()> {
        match self.sandbox {
            SandboxLevel::None => Ok(()),
            SandboxLevel::Workspace => sandbox::prepare(town, self.identity, &self.work_dir),
            SandboxLevel::Strict => {
                SandboxTool::HERE.check(self.sandbox)?;
                sandbox::allowed_hosts(&self.role, &self.preset)?;
                sandbox::prepare(town, self.identity, &self.work_dir)
            }
            SandboxLevel::Container => sandbox::container::prepare(
                town,
                self.identity,
                &self.role,
                &self.preset,
                &self.work_dir,
            ),
        }
    }
}

/// Returns the variable with the rig's beads folder: in its worktree an agent would find only a
/// copy.
fn beads(town: &Town, identity: &Identity) -> Option<(String, String)> {
    let folder = crate::records::items::beads_folder(town, identity.rig()?)?;
    Some(("BEADS_DIR".to_owned(), folder.to_str()?.to_owned()))
}

/// Returns the program's configuration folder, by precedence: the given one, the account's, the one
/// of the last start, the default account's, the one in the environment.
fn config_dir(town: &Town, options: &StartOptions, preset: &Preset) -> Result<Option<String>> {
    if options.config_dir.is_some() {
        return Ok(options.config_dir.clone());
    }
    let folder = match &options.account {
        Some(name) => Some(account::dir(town, name, preset)?),
        None if options.keeps_folder => return Ok(None),
        None => account::default_for(town, preset)?,
    };
    if let Some(folder) = folder {
        return Ok(Some(folder.to_string_lossy().into_owned()));
    }
    let variable = preset.env.config_dir.as_deref();
    let set = variable.and_then(|name| town.around().var(name));
    Ok(set.map(str::to_owned))
}

/// Returns the model to start with: of the caller, else of the project, the role or the harness.
/// Fails if the program has no option for it.
fn model(
    identity: &Identity,
    options: &StartOptions,
    role: &RoleConfig,
    preset: &Preset,
    work_dir: &Path,
) -> Result<Option<String>> {
    let runs_other = options.command.is_some() || role.session.start_command.is_some();
    let of_project = || {
        let is_project = identity.rig().is_some() || identity.role() == Role::Task;
        let project = is_project.then(|| project::of_worktree(work_dir));
        // A broken file is reported by the commands that need it.
        let project = project?.or_warn("the model of the project is unknown")?;
        project.harness.model
    };
    let chosen = options.model.clone();
    let chosen = match runs_other {
        true => chosen,
        false => chosen
            .or_else(of_project)
            .or_else(|| role.session.model.clone())
            .or_else(|| preset.model.clone()),
    };
    let Some(model) = chosen else {
        return Ok(None);
    };
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    if model.is_empty() || model.starts_with('-') || !model.chars().all(is_plain) {
        return Err(Problem::usage(format!(
            "{model:?} is not a valid model name"
        )));
    }
    if runs_other {
        return Err(Problem::usage("the model of a shell line cannot be chosen")
            .hint("leave out `--model`, or name the model in the line"));
    }
    if preset.command.model_args.is_empty() {
        let name = &preset.name;
        return Err(
            Problem::usage(format!("{name} has no option to choose a model"))
                .hint(format!(
                    "choose it in the settings of {name}, or add `model_args` under [command] in \
                     harnesses/{name}.toml"
                ))
                .hint("leave out `--model`, and `model` of the role, project and harness"),
        );
    }
    Ok(Some(model))
}

/// Returns the work item on the agent's hook. An error is logged: the agent finds it out too.
pub(crate) fn hooked_work(town: &Town, identity: &Identity) -> Option<WorkId> {
    let hooked = Work::of(town).hooked(&identity.address());
    let hooked = hooked.or_warn(format_args!("the hook of {identity} is unknown"))?;
    hooked.and_then(|hooked| hooked.unit())
}

/// Returns the molecule that is attached to the agent.
fn molecule(town: &Town, identity: &Identity) -> Option<WorkId> {
    let id = crate::work::molecule::id(town, identity);
    id.or_warn(format_args!("the molecule of {identity} is unknown"))?
}

const GO_ON: &str =
    "This is your next session, with the same conversation. Continue your previous task.";

fn prompt(
    town: &Town,
    identity: &Identity,
    options: &StartOptions,
    role: &RoleConfig,
    instructions: Option<&str>,
    primes: bool,
) -> Option<String> {
    let goes_on = options.conversation != Conversation::New;
    if let Some(text) = options.resume_prompt.as_ref().filter(|_| goes_on) {
        return Some(text.clone());
    }
    if !role.start.prompt {
        return None;
    }
    if goes_on {
        // A restored conversation needs no first prompt; after a handoff the agent must be told to
        // continue.
        if options.takes_over.is_some() {
            return Some(GO_ON.to_owned());
        }
        if options.restored.is_some() {
            return None;
        }
    }
    let time = town.clock().now().to_string();
    let sender = options
        .sender
        .as_deref()
        .or_else(|| town.around().var("GT_ROLE"));
    let beacon = Beacon {
        recipient: identity,
        sender: sender.unwrap_or("human"),
        time: time.get(..16).unwrap_or(&time),
        topic: options.topic.as_deref().unwrap_or(&role.start.topic),
        molecule: options.molecule.as_deref(),
        must_ask: !primes,
    };
    let instructions = instructions.or(role.start.instructions.as_deref());
    let parts = [instructions, options.digest_text.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    Some(beacon.prompt(Some(&parts.join("\n\n"))))
}

/// Fails if the caller demands permission prompts and this program has none.
fn check_asks(options: &StartOptions, preset: &Preset) -> Result<()> {
    let demands_asking = options.skip_permissions == Some(false) && options.command.is_none();
    if !demands_asking || !preset.command.cannot_ask {
        return Ok(());
    }
    let message = format!(
        "{} never asks for permission: it has no mode for it",
        preset.title
    );
    Err(Problem::usage(message).hint(
        "start it without `--ask-permissions`, or choose a program that asks: `--harness NAME`",
    ))
}

/// Fails for a variable name that no process can have: tmux would refuse the start half-way.
fn check_variables<'n>(
    names: impl Iterator<Item = &'n String>,
    what: &str,
    which: &str,
) -> Result<()> {
    let is_bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    match names.into_iter().find(is_bad) {
        Some(name) => Err(Problem::usage(format!(
            "{what} {which} sets {name:?}, which cannot be the name of a variable"
        ))
        .hint("correct its [env]")),
        None => Ok(()),
    }
}
