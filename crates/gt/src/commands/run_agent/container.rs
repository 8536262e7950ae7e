//! The broker of an agent in a container of podman or docker.

use super::{ENDING, cannot_start, pass_signals_on, report_end, serve_egress};
use gt_core::harness::Preset;
use gt_core::role::RoleConfig;
use gt_core::sandbox::container::{
    self as arguments, ContainerEngine, ContainerNetwork, FIRST_PROCESS, HANDOVER_SOCKET,
};
use gt_core::sandbox::{BROKER_FOLDER, BROKER_VARIABLE, EGRESS_PORT};
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::sandbox;
use gt_town::agents::sandbox::container::{self, InstalledEngine};
use gt_town::agents::sandbox::leftovers::BrokerFolder;
use gt_town::base::callback::Call;
use gt_town::base::job::Job;
use gt_town::terminal::broker;
use gt_town::terminal::first_process::{self, ContainerProgram};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The agent whose program runs in a container.
pub(super) struct ContainedAgent<'a> {
    pub(super) town: &'a Town,
    pub(super) agent: &'a Identity,
    pub(super) role: &'a RoleConfig,
    pub(super) preset: &'a Preset,
    /// The secret variables of the role.
    pub(super) values: Vec<(String, String)>,
}

/// Runs the program in a container, until it ends.
pub(super) fn run(
    contained: ContainedAgent<'_>,
    program: &OsString,
    words: &[OsString],
) -> Result<ExitCode, Problem> {
    let (town, role) = (contained.town, contained.role);
    let engine = InstalledEngine::find(town, &role.sandbox)?;
    let folder = BrokerFolder::make(town)?;
    let plan = container::plan(
        town,
        contained.agent,
        role,
        contained.preset,
        &folder.path,
        &engine,
    )?;
    let inside = container::program_inside(town, Path::new(program), &plan);
    let mut handed: Vec<OsString> = Vec::new();
    let values = contained.values.into_iter();
    let all = std::env::vars_os().filter_map(|(name, value)| {
        // JSON cannot hold other text.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    });
    let mut env = arguments::variables(all, &plan.mounts);
    env.extend(plan.env.iter().cloned());
    env.extend(values);
    env.extend(contained.preset.sandbox.env.clone());
    let socket = format!("{BROKER_FOLDER}/{}", broker::SOCKET);
    env.insert(BROKER_VARIABLE.to_owned(), socket);
    if plan.network == ContainerNetwork::Proxy {
        let allowed = sandbox::allowed_hosts(role, contained.preset)?;
        let proxy = allowed.proxy_variables(EGRESS_PORT).into_iter();
        env.extend(proxy.map(|(name, value)| (name.to_owned(), value)));
        handed.push(FIRST_PROCESS.into());
        handed.extend(Call::EgressBridge.words().map(OsString::from));
        handed.push("--".into());
        serve_egress(town, contained.agent, &folder.path, allowed)?;
    }
    handed.push(inside.into_os_string());
    handed.extend(words.iter().cloned());
    let program_inside = ContainerProgram {
        words: handed.iter().map(|word| word.as_bytes().to_vec()).collect(),
        env,
        new_session: sandbox::may_type_into_terminal(),
    };
    let calls = broker::listen(&folder.path, broker::SOCKET)?;
    let handover = broker::listen(&folder.path, HANDOVER_SOCKET)?;
    folder.note_container(engine.kind, &plan.name)?;
    let args = plan
        .run(&Call::ContainerInit.words())
        .map_err(|error| Problem::usage(error.to_string()))?;
    let line = first_process::hand_over(handover, program_inside);
    let (around, work_dir) = (town.around().clone(), town.around().current_dir.clone());
    std::thread::spawn(move || broker::serve(calls, around, work_dir));
    let job = Job::start(engine_command(town, contained.preset, &engine, &args))
        .map_err(|error| cannot_start(engine.program.as_os_str()).caused_by(error))?;
    pass_signals_on(ENDING, move |signal| {
        if !line.send(signal) {
            job.signal_directly(signal);
        }
    });
    let ended = job
        .wait()
        .map_err(|error| Problem::failed("cannot wait for the container").caused_by(error))?;
    // The engine has removed it, unless one of its processes was killed.
    folder.remove_container(town)?;
    drop(folder);
    report_end(ended)
}

fn engine_command(
    town: &Town,
    preset: &Preset,
    engine: &InstalledEngine,
    args: &[String],
) -> Command {
    let mut command = match engine.kind {
        ContainerEngine::Podman => {
            let mut command = Command::new(&town.around().gt);
            command.args(Call::Engine.words()).arg("--");
            command.arg(&engine.program);
            command
        }
        ContainerEngine::Docker => {
            // The processes of the container are children of docker's daemon. The name of this
            // process stands for them: it ends with them.
            if let Some(name) = preset.process.names.first() {
                // Without the name, the agent is reported as dead.
                let named = std::fs::write("/proc/self/comm", name);
                named.unwrap_or_else(|error| tracing::warn!("no process name: {error}"));
            }
            Command::new(&engine.program)
        }
    };
    command.args(args);
    command
}
