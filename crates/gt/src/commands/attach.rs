use super::CommandResult;
use crate::context::Context;
use clap::Args;
use gt_core::{Problem, shell};
use gt_tmux::{Command, Server, SessionName, Socket};
use gt_town::agents::target;
use gt_town::base::or_log::OrLog;
use gt_town::catalog::directory;
use gt_town::terminal::adopted;
use gt_town::terminal::containers::{self, tmux_problem};
use gt_town::{Surroundings, Town};
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Open an agent's container in this terminal
///
/// Inside tmux the client switches to it; outside, this terminal attaches. Leave it with the prefix
/// key and `d`; a client of another tmux server then returns to that server.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The agent: its address or a short form of it, its container's name, or a prefix of its
    /// session id
    target: String,
    /// Read-only: no key reaches the agent
    #[arg(long)]
    read_only: bool,
}

pub(crate) fn run(args: AttachArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let home = adopted::home_of(&town, &identity);
    let container = containers::of_agent(&home, &identity)?;
    let container = container.ok_or_else(|| {
        directory::not_running(&town, &identity).hint(format!("`gt start {identity}` starts it"))
    })?;
    let home = container.home(&town);
    if container.adopted().is_some() {
        // The window may show another pane that a person opened.
        let row = container.pane();
        // Only in the container: the person's session stays at its window.
        let window = format!("{}:{}", container.id(), row.window);
        let select = Command::new("select-window").args(["-t", &window]);
        let pane = Command::new("select-pane").target(row.pane);
        // Otherwise the person sees the pane that was shown last.
        let selected = home.server().run([select, pane]);
        selected.or_warn(format_args!("cannot show the pane of {identity}"));
    }
    attach_terminal(&home, container.name(), args.read_only, context)
}

/// Shows a container in this terminal.
pub(crate) fn attach_terminal(
    town: &Town,
    container: &str,
    read_only: bool,
    context: &Context,
) -> CommandResult {
    let name =
        SessionName::try_from(container).map_err(|error| Problem::failed(error.to_string()))?;
    let around = context.around();
    match inside(around) {
        Some(socket) if socket == town.server().socket_path() => {
            let mut command = Command::new("switch-client").target(name);
            if read_only {
                command = command.arg("-r");
            }
            town.server()
                .run(command)
                .map_err(|error| tmux_problem("cannot switch to it", error))?;
        }
        Some(socket) => {
            // A client belongs to one server: it detaches here, attaches there, and returns when it
            // detaches there.
            let there = shell_attach(&town.server().socket_path(), container, read_only);
            let attach = match own_session(around) {
                Some(session) => format!("{there}; {}", shell_return(&socket, session)),
                None => format!("exec {there}"),
            };
            let attach = format!("unset TMUX; {attach}");
            Server::new(Socket::Path(socket))
                .run(Command::new("detach-client").args(["-E", &attach]))
                .map_err(|error| tmux_problem("cannot leave this tmux server", error))?;
        }
        None => {
            check(container, context)?;
            let mut command = town.server().attach_command(name);
            if read_only {
                command.arg("-r");
            }
            let error = command.exec();
            return Err(Problem::environment("cannot run tmux").caused_by(error));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if there is no terminal to show a container in. For commands that do something else before
/// they attach.
pub(crate) fn check(container: &str, context: &Context) -> Result<(), Problem> {
    let is_terminal = || std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if inside(context.around()).is_some() || is_terminal() {
        return Ok(());
    }
    Err(Problem::usage("attaching needs a terminal")
        .hint(format!("`gt peek {container}` shows its screen")))
}

/// Returns the socket of the tmux server that this process runs in.
pub(crate) fn inside(around: &Surroundings) -> Option<PathBuf> {
    let (socket, _) = around.var("TMUX")?.split_once(',')?;
    Some(PathBuf::from(socket))
}

/// Returns the id of the tmux session that this process runs in.
fn own_session(around: &Surroundings) -> Option<u32> {
    around.var("TMUX")?.rsplit_once(',')?.1.parse().ok()
}

/// Returns a shell line with which a client of another server attaches to a session of this one.
pub(crate) fn shell_attach(socket: &Path, session: &str, read_only: bool) -> String {
    let flag = if read_only { " -r" } else { "" };
    format!(
        "tmux -u -S {} attach-session{flag} -t {}",
        shell::quote(&socket.to_string_lossy()),
        shell::quote(&format!("={session}"))
    )
}

fn shell_return(socket: &Path, session: u32) -> String {
    format!(
        "exec tmux -u -S {} attach-session -t '${session}'",
        shell::quote(&socket.to_string_lossy())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_reaches_the_shell() {
        let line = shell_attach(Path::new("/tmp/a b'c"), "x'; touch y #", false);
        assert_eq!(
            line,
            r#"tmux -u -S '/tmp/a b'\''c' attach-session -t '=x'\''; touch y #'"#
        );
    }
}
