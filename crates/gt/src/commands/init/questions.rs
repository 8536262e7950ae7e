//! The questions of `gt init` at a terminal. They come before anything is made, so that Ctrl-C
//! leaves nothing.

use super::InitChoices;
use crate::context::Context;
use crate::output;
use crate::output::question;
use gt_core::{Problem, harness};
use gt_town::Surroundings;
use gt_town::catalog::harnesses::FALLBACK;
use std::path::Path;

/// The harness that is part of `gt`.
const DEMO: &str = "demo";

pub(super) fn ask(path: &Path, context: &Context) -> Result<InitChoices, Problem> {
    let around = context.around();
    question::text(&format!(
        "Making the town {}. Enter accepts the default, Ctrl-C makes nothing.",
        path.display()
    ))?;
    output::line("")?;
    let harness = harness(around)?;
    output::line("")?;
    let desktop = desktop(around)?;
    output::line("")?;
    let socket = socket(path)?;
    output::line("")?;
    Ok(InitChoices {
        harness,
        socket,
        desktop,
    })
}

/// Asks for the agent program, among those on this machine.
fn harness(around: &Surroundings) -> Result<String, Problem> {
    let mut options = Vec::new();
    for name in harness::builtin_names().filter(|name| *name != DEMO) {
        let preset = harness::resolve(name, None)?.value;
        if let Some(program) = around.find_program(&preset.command.program) {
            let about = format!("{}, {}", preset.title, program.display());
            options.push((name.to_owned(), about));
        }
    }
    let is_none_found = options.is_empty();
    if is_none_found {
        let preset = harness::resolve(FALLBACK, None)?.value;
        let install = preset.install.unwrap_or_default();
        let about = format!("{}, not installed: {install}", preset.title);
        options.push((FALLBACK.to_owned(), about));
    }
    let about = "a part of gt, to try it without a model".to_owned();
    options.push((DEMO.to_owned(), about));
    let question = match is_none_found {
        true => "Which program do your agents run? None was found on the PATH.",
        false => "Which program do your agents run? These are installed:",
    };
    let index = question::choose(question, &options)?;
    Ok(options.swap_remove(index).0)
}

/// Asks for desktop notifications. The default is yes where there is a desktop that can show them.
fn desktop(around: &Surroundings) -> Result<bool, Problem> {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| around.var(name).is_some());
    let can_show = match cfg!(target_os = "macos") {
        true => around.find_program("osascript").is_some(),
        false => has_display && around.find_program("notify-send").is_some(),
    };
    question::yes(
        "Desktop notifications when an agent waits, is done or has died?",
        can_show,
    )
}

/// Asks for the tmux server.
fn socket(path: &Path) -> Result<String, Problem> {
    let folder = path.file_name().and_then(|name| name.to_str());
    let name = folder.filter(|name| gt_core::name::is_well_formed(name));
    let name = name.unwrap_or("gt");
    let options = [
        (
            "own".to_owned(),
            format!("a server of its own, `tmux -L {name}`"),
        ),
        (
            "default".to_owned(),
            "your default server, beside your own sessions".to_owned(),
        ),
    ];
    let index = question::choose("In which tmux server do the agents run?", &options)?;
    Ok(match index {
        0 => name.to_owned(),
        _ => String::new(),
    })
}
