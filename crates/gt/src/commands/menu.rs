use super::{CommandResult, attach};
use clap::Args;
use gt_core::Problem;
use gt_tmux::{Command, Server, SessionName, Socket, format};
use gt_town::Town;
use gt_town::agents::listing::{self, AgentFilter};
use gt_town::catalog::other_towns;
use gt_town::terminal::containers::tmux_problem;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Choose an agent from a menu inside tmux
///
/// Agents of this town come first, then the sessions of other servers: your own on
/// tmux's default socket and those of other towns.
#[derive(Debug, Args)]
pub(crate) struct MenuArgs {
    /// The tmux client to show it to [default: the one this runs in]
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// Only print the entries
    #[arg(long)]
    print: bool,
}

/// Entry of the menu.
struct MenuEntry {
    label: String,
    /// tmux command line, quoted for tmux.
    action: String,
}

impl MenuEntry {
    /// Returns the three arguments of a menu item. tmux expands formats in the label and the
    /// command.
    fn words(&self, key: Option<char>) -> [String; 3] {
        let key = key.map(String::from).unwrap_or_default();
        [
            format::escape(&self.label),
            key,
            format::escape(&self.action),
        ]
    }
}

/// Timeout of a menu or a pop-up that waits for a person.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Keys that choose entries, in order.
const SHORTCUTS: &str = "123456789abcdefhijklmnoprstuvwxyz";

gt_tmux::query! {
    struct SessionRow {
        name: String = "#{session_name}",
        town: String = "#{@gt_town}",
        agent: String = "#{@gt_agent}",
    }
}

pub(crate) fn run(args: &MenuArgs, town: &Town) -> CommandResult {
    let inside = args.client.is_some() || town.around().var("TMUX").is_some();
    if !inside && !args.print {
        return Err(Problem::usage("the menu shows inside tmux only")
            .hint("`gt agents` lists the agents, `gt attach TARGET` goes to one"));
    }
    let ours = own_entries(town)?;
    let others = other_entries(town);
    if args.print {
        for entry in ours.iter().chain(&others) {
            crate::output::line(&entry.label)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if ours.is_empty() && others.is_empty() {
        return Err(
            Problem::not_found("there is nothing to choose from").hint("`gt up` starts agents")
        );
    }
    let mut command =
        Command::new("display-menu").args(["-T", "#[align=centre]agents", "-x", "C", "-y", "C"]);
    if let Some(client) = &args.client {
        command = command.args(["-c", client]);
    }
    command = command.arg("--");
    let mut shortcuts = SHORTCUTS.chars();
    for entry in &ours {
        command = command.args(entry.words(shortcuts.next()));
    }
    if !ours.is_empty() && !others.is_empty() {
        command = command.arg(""); // a separator
    }
    for entry in &others {
        command = command.args(entry.words(shortcuts.next()));
    }
    // The menu appears on the server of the client that asked for it.
    let server = client_server(town);
    // tmux answers when the menu is closed.
    server
        .with_timeout(TIMEOUT)
        .run(command)
        .map_err(|error| tmux_problem("cannot show the menu", error))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the server that the caller's client is attached to.
fn client_server(town: &Town) -> Server {
    match attach::inside(town.around()) {
        Some(path) if path != town.server().socket_path() => Server::new(Socket::Path(path)),
        _ => town.server().clone(),
    }
}

fn own_entries(town: &Town) -> Result<Vec<MenuEntry>, Problem> {
    let socket = town.server().socket_path();
    let here = client_server(town).socket_path() == socket;
    let agents = listing::list(town, AgentFilter::default())?;
    Ok(agents
        .iter()
        .map(|agent| MenuEntry {
            label: format!("{}  {}", agent.identity, agent.report.label()),
            action: go_to(&agent.container, &socket, here),
        })
        .collect())
}

/// Returns the sessions of this user's other servers. Servers that do not answer are left out.
fn other_entries(town: &Town) -> Vec<MenuEntry> {
    let own = town.server().socket_path();
    let here = client_server(town).socket_path();
    let sockets = other_towns::sockets(town.around());
    let mut entries = Vec::new();
    for socket in sockets.into_iter().filter(|socket| *socket != own) {
        let server = Server::new(Socket::Path(socket.clone()));
        // Left out if it does not answer.
        let rows = server
            .rows::<SessionRow>(Command::new("list-sessions"))
            .unwrap_or_default();
        for row in rows {
            let (place, who) = if row.town.is_empty() {
                (socket.as_path(), &row.name)
            } else {
                (Path::new(&row.town), &row.agent)
            };
            let place = place.file_name().unwrap_or_default().to_string_lossy();
            entries.push(MenuEntry {
                label: format!("{place}: {who}"),
                action: go_to(&row.name, &socket, here == socket),
            });
        }
    }
    entries
}

/// Returns the tmux command that brings a client to a session, on its own server or another.
fn go_to(session: &str, socket: &Path, same_server: bool) -> String {
    if same_server {
        return SessionName::try_from(session)
            .map(|name| Command::new("switch-client").target(name).to_line())
            .unwrap_or_default();
    }
    let attach = attach::shell_attach(socket, session, false);
    let attach = format!("unset TMUX; exec {attach}");
    Command::new("detach-client")
        .args(["-E", &attach])
        .to_line()
}
