use super::{CommandResult, agents, peek, rig, start, stop};
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::nudge::Priority;
use gt_core::registry::Registry;
use gt_core::{Identity, Problem, Role, shell};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter};
use gt_town::base::files;
use gt_town::base::git::Git;
use gt_town::catalog::roles;
use gt_town::lifecycle::start::StartOptions;
use gt_town::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use gt_town::repo::workspace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Make a small town and try everything on the built-in demo agent
///
/// It lives in ~/gt-demo with a tmux server of its own, and `gt demo --clean`
/// removes every trace of it.
#[derive(Debug, Args)]
pub(crate) struct DemoTownArgs {
    /// Stop its agents and remove it
    #[arg(long)]
    clean: bool,
    /// The folder of the demo town
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
}

const RIG: &str = "gastown";
/// File that marks a town as made by `gt demo`.
const MARK: &str = ".gt-demo";
const CREW: [&str; 2] = ["max", "amy"];

pub(crate) fn run(args: DemoTownArgs, context: &Context) -> CommandResult {
    // The demo prints text for a person, even with `--json`.
    let context = &context.as_text();
    let around = context.around();
    let dir = match &args.dir {
        Some(dir) => around.current_dir.join(dir),
        None => around
            .home()
            .map(|home| home.join("gt-demo"))
            .ok_or_else(|| {
                Problem::usage("there is no HOME for a demo").hint("name a folder with `--dir`")
            })?,
    };
    if args.clean {
        return clean(&dir, context);
    }
    context.catch_interrupts();
    let paint = Paint::for_stdout();
    let step = |text: &str| output::line(format!("\n{} {text}", paint.cyan("»")));
    step("gt init: a town, with the built-in demo agent and a tmux server of its own")?;
    let town = open_or_make(&dir, context)?;
    step("gt rig add: a small git repository, copied into the town")?;
    let town = add_rig(town, &dir)?;
    step("gt crew add: two workers, each with a worktree and a branch")?;
    for name in CREW {
        let identity = Identity::crew(RIG, name);
        let role = roles::resolve(&town, Role::Crew, Some(RIG))?.value;
        workspace::ensure(&town, &identity, &workspace::path(&town, &identity, &role)?)?;
    }
    step("gt up, gt crew start: agents of different roles")?;
    let mut wanted = vec![Identity::town(Role::Mayor), Identity::town(Role::Deacon)];
    wanted.extend(rig::own_agents(RIG));
    wanted.extend(CREW.map(|name| Identity::crew(RIG, name)));
    let options = StartOptions {
        create: true,
        // The agent then shows a permission dialog that can be answered.
        skip_permissions: Some(false),
        ..StartOptions::default()
    };
    start::start_many(
        &town,
        &wanted,
        &options,
        context,
        start::RunningAlready::IsFine,
    )?;
    step("gt nudge gastown/max \"hello from the demo\"")?;
    let order = NudgeRequest {
        is_command: false,
        text: "hello from the demo",
        sender: None,
        mode: DeliveryMode::WaitIdle,
        priority: Priority::Normal,
        timeout: Duration::from_secs(15),
    };
    let max = Identity::crew(RIG, CREW[0]);
    let sent = nudge::send(&town, &max, &order)?;
    output::line(super::nudge::line(&max, &sent))?;
    step("gt peek gastown/max")?;
    peek::print_last(&town, &Identity::crew(RIG, CREW[0]), 12)?;
    step("gt agents")?;
    agents::show(
        &engine::list(&town, AgentFilter::default())?,
        &town,
        context,
    )?;
    farewell(&town, paint)
}

fn open_or_make(dir: &Path, context: &Context) -> Result<Town, Problem> {
    if !dir.join("town.toml").exists() {
        if dir
            .read_dir()
            .is_ok_and(|mut entries| entries.next().is_some())
        {
            return Err(Problem::conflict(format!("{} is not empty", dir.display()))
                .hint("name an empty or a new folder with `--dir`"));
        }
        // The socket lies in the town, so that removing the town leaves nothing behind.
        let socket = dir.join(".runtime/tmux");
        Town::init(dir, Some("demo"), &socket.to_string_lossy(), "demo")?;
        // Only a town with this mark is ever removed as a whole.
        files::write_whole(&dir.join(MARK), b"made by `gt demo`\n")?;
    } else if !dir.join(MARK).exists() {
        return Err(Problem::conflict(format!(
            "{} is a town that `gt demo` did not make",
            dir.display()
        ))
        .hint("the demo wants a folder of its own: `--dir PATH`"));
    }
    let mut around = context.around().clone();
    // The demo uses its own server, whatever the caller's environment says.
    around.env.remove("GT_TMUX_SOCKET");
    around.env.remove("GT_HARNESS");
    Town::open(dir, around)
}

fn add_rig(mut town: Town, dir: &Path) -> Result<Town, Problem> {
    if town.registry().rigs.contains_key(RIG) {
        return Ok(town);
    }
    let source = dir.join("source");
    files::make_dir(&source)?;
    files::write_whole(
        &source.join("README.md"),
        b"# A small project\n\nThe agents of the demo work here.\n",
    )?;
    let around = town.around().clone();
    let git = Git::at(&source, &around);
    git.run(["init", "--quiet", "--initial-branch=main"])?;
    git.run(["add", "README.md"])?;
    git.run([
        "-c",
        "user.name=gt demo",
        "-c",
        "user.email=demo@localhost",
        "-c",
        "commit.gpgsign=false",
        "commit",
        "--quiet",
        "-m",
        "Begin",
    ])?;
    let source = source.to_string_lossy().into_owned();
    gt_town::repo::rig::add(&mut town, RIG, &source, Some("gt"))?;
    Ok(town)
}

fn farewell(town: &Town, paint: Paint) -> CommandResult {
    let bin = town
        .around()
        .gt
        .parent()
        .unwrap_or(Path::new("/"))
        .to_string_lossy()
        .into_owned();
    let line =
        |what: &str, command: &str| output::line(format!("  {command:<58} {}", paint.dim(what)));
    output::line(format!(
        "\nThe demo town is at {}. What to type next:",
        town.root().display()
    ))?;
    output::line(format!(
        "  export GT_ROOT={} PATH=\"$PATH\":{}",
        shell::quote(town.root_text()),
        shell::quote(&bin)
    ))?;
    line("all agents and work on one screen; q leaves", "gt board")?;
    line(
        "go there; leave with the prefix key (Ctrl-b) and d",
        "gt attach gastown/max",
    )?;
    line(
        "ask something that needs permission",
        "gt nudge gastown/amy '[[tool=ls -l]]'",
    )?;
    line("see a screen", "gt peek gastown/amy")?;
    line("how are the agents?", "gt agents check")?;
    line(
        "stop them all, and start them again",
        "gt down --all; gt up --all",
    )?;
    let clean = format!("gt demo --clean --dir {}", shell::quote(town.root_text()));
    line("remove every trace", &clean)?;
    Ok(ExitCode::SUCCESS)
}

fn clean(dir: &Path, context: &Context) -> CommandResult {
    if !dir.join("town.toml").exists() {
        output::line(format!("There is no demo at {}.", dir.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let town = open_or_make(dir, context)?;
    // A town with other rigs contains the user's work and is not removed.
    let only_ours = |registry: &Registry| registry.rigs.keys().all(|rig| rig == RIG);
    if town.settings().name != "demo" || !only_ours(town.registry()) {
        return Err(
            Problem::conflict(format!("{} is no longer only a demo", dir.display()))
                .hint("remove it by hand if you are sure"),
        );
    }
    let running: Vec<Identity> = engine::list(&town, AgentFilter::default())?
        .into_iter()
        .map(|agent| agent.identity)
        .collect();
    stop::stop_into(&town, &running, true, context, &mut Vec::new())?;
    gt_town::lifecycle::stop::end_orphans(&town, gt_town::base::processes::GRACE)?;
    // The server is in the demo's own folder. It ends with its last session, unless the user's
    // configuration keeps it.
    if town.server().socket_path().starts_with(dir) {
        // Usually it has ended already.
        let _ = town.server().run(gt_tmux::Command::new("kill-server"));
    }
    gt_town::catalog::other_towns::forget(town.around(), &town.server().socket_path())?;
    std::fs::remove_dir_all(dir).map_err(|error| files::io_problem("remove", dir, &error))?;
    output::line(format!("Removed {}.", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
