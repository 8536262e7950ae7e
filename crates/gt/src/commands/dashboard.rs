use super::CommandResult;
use super::web::{AccessArg, check_person};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_town::Town;
use gt_town::base::files;
use gt_town::supervision::daemon::{self, DaemonError};
use gt_web::AccessStore;
use serde_json::json;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Open the page of the town in a browser
///
/// Starts the daemon if it does not run, and prints a login link, which is valid once and for five
/// minutes. `web.listen` in town.toml is the address of the page. Only people may log in.
#[derive(Debug, Args)]
pub(crate) struct DashboardArgs {
    /// The operations that the browser may call; each scope includes the earlier ones
    #[arg(long, value_enum, default_value_t = AccessArg::Admin)]
    scope: AccessArg,
    /// Only print the link
    #[arg(long)]
    no_open: bool,
}

/// Maximum wait until a daemon that was just started listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &DashboardArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    check_person(&town)?;
    let Some(address) = town.settings().web.listen else {
        return Err(Problem::conflict("the API of this town has no TCP address")
            .hint("`gt config set web.listen 127.0.0.1:7420` sets it"));
    };
    match daemon::start(&town) {
        Err(DaemonError::Running(_)) => {}
        started => {
            started?;
        }
    }
    await_listening(address)?;
    let code = AccessStore::in_town(town.root()).create_login(args.scope.scope())?;
    let link = format!("http://{address}/#code={code}");
    if context.json {
        output::json(&json!({"link": link, "address": address.to_string()}))?;
    } else {
        output::line(&link)?;
    }
    if !args.no_open && !context.json {
        open(&town, &link)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn await_listening(address: SocketAddr) -> Result<(), Problem> {
    let deadline = Instant::now() + LISTEN_TIMEOUT;
    loop {
        match TcpStream::connect_timeout(&address, LISTEN_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                let problem = Problem::failed(format!("the daemon does not listen on {address}"));
                return Err(problem
                    .caused_by(error)
                    .hint("`gt daemon restart` reads the settings anew")
                    .hint("`gt daemon logs` shows why it could not listen"));
            }
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// Opens the link with the program of the desktop. The link has a secret, so that program gets only
/// the path of a private file that leads to it.
fn open(town: &Town, link: &str) -> Result<(), Problem> {
    let opener = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let around = town.around();
    let has_desktop = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| around.var(name).is_some());
    let Some(program) = around.find_program(opener).filter(|_| has_desktop) else {
        return Ok(());
    };
    let path: PathBuf = town.root().join(".runtime/web/open.html");
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={link}\">\n");
    files::write_whole(&path, page.as_bytes())?;
    let opened = Command::new(program)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        output::warn(format!("{opener} cannot be started: {error}"));
    }
    Ok(())
}
