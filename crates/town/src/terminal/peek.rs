//! Reads an agent's screen.

use crate::catalog::{directory, roles};
use crate::terminal::adopted;
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::{Result, Town};
use gt_core::{Identity, Problem};
use gt_tmux::{Command, ErrorKind, PaneId, SessionName, Target};

#[derive(Clone, Debug)]
pub struct PeekedScreen {
    pub container: String,
    pub pane: PaneId,
    pub title: String,
    pub lines: Vec<String>,
}

/// Reads the last lines of an agent's pane, in one call to tmux.
///
/// The call captures the active pane and asks at the same time which pane is the agent's. A second
/// call is needed only if the user has made another pane active.
pub fn peek(
    town: &Town,
    identity: &Identity,
    lines: Option<u32>,
    ansi: bool,
) -> Result<PeekedScreen> {
    let town = &*adopted::home_of(town, identity);
    let not_running =
        || directory::not_running(town, identity).hint("`gt agents` lists those that do");
    let gone = |kind| {
        matches!(
            kind,
            ErrorKind::NoServer | ErrorKind::NoSuchSession | ErrorKind::NoSuchPane
        )
    };
    let cannot = |error| tmux_problem(&format!("cannot look at {identity}"), error);
    // Without a name the container is found by its tags.
    let by_name = roles::container_name(town, identity)
        .ok()
        .and_then(|container| SessionName::try_from(container.as_str()).ok())
        .map(|name| (name.to_string(), read(town, name.into(), lines, ansi)));
    let (container, (facts, text)) = match by_name {
        Some((container, Ok(seen))) => (container, seen),
        Some((_, Err(error))) if !gone(error.kind()) => return Err(cannot(error)),
        _ => {
            // The container may have another name, because the role's settings have changed.
            let found = containers::of_agent(town, identity)?.ok_or_else(not_running)?;
            return of_container(town, &found, lines, ansi).map_err(cannot);
        }
    };
    let active = PaneFacts::parse(&facts);
    if active.town.is_none_or(str::is_empty) || active.agent.is_none_or(str::is_empty) {
        // The session is an agent by its name alone, the user's own session of that name, or a
        // leftover of ours.
        let found = containers::of_agent(town, identity)?;
        let orphan = found.filter(|found| found.adopted().is_some());
        let orphan = orphan.ok_or_else(not_running)?;
        return of_container(town, &orphan, lines, ansi).map_err(cannot);
    }
    if let Some(other) = active
        .town
        .filter(|root| !root.is_empty() && *root != town.root_text())
    {
        return Err(Problem::conflict(format!(
            "the container {container} belongs to the town at {other}"
        )));
    }
    let (title, text, pane) = match active.agent_pane {
        Some(pane) if Some(pane) != active.pane => {
            let (facts, text) = read(town, pane.into(), lines, ansi).map_err(|error| {
                if gone(error.kind()) {
                    return Problem::not_found(format!("the pane of {identity} is gone"))
                        .hint(format!("`gt start {identity}` gives it a new one"));
                }
                cannot(error)
            })?;
            (PaneFacts::parse(&facts).title.to_owned(), text, Some(pane))
        }
        _ => (active.title.to_owned(), text, active.pane),
    };
    let pane = pane.ok_or_else(|| Problem::failed("tmux did not say which pane it showed"))?;
    Ok(PeekedScreen {
        container,
        pane,
        title,
        lines: last(&text, lines),
    })
}

/// Reads the pane of an agent whose container was listed.
fn of_container(
    town: &Town,
    container: &Container,
    lines: Option<u32>,
    ansi: bool,
) -> std::result::Result<PeekedScreen, gt_tmux::Error> {
    let pane = container.pane().pane;
    let (facts, text) = read(town, pane.into(), lines, ansi)?;
    Ok(PeekedScreen {
        container: container.name().to_owned(),
        pane,
        title: PaneFacts::parse(&facts).title.to_owned(),
        lines: last(&text, lines),
    })
}

const FACTS: &str = "#{pane_id} #{@gt_pane}\n#{@gt_town}\n#{@gt_agent}\n#{pane_title}";

struct PaneFacts<'a> {
    pane: Option<PaneId>,
    agent_pane: Option<PaneId>,
    town: Option<&'a str>,
    agent: Option<&'a str>,
    title: &'a str,
}

impl<'a> PaneFacts<'a> {
    fn parse(text: &'a str) -> Self {
        let mut lines = text.splitn(4, '\n');
        let mut ids = lines.next().unwrap_or_default().split(' ');
        let mut id = || ids.next().and_then(|id| id.parse().ok());
        PaneFacts {
            pane: id(),
            agent_pane: id(),
            town: lines.next(),
            agent: lines.next(),
            title: lines.next().unwrap_or_default().trim_end_matches('\n'),
        }
    }
}

fn read(
    town: &Town,
    target: Target,
    lines: Option<u32>,
    ansi: bool,
) -> std::result::Result<(String, String), gt_tmux::Error> {
    let mut capture = Command::new("capture-pane")
        .args(["-p", "-J"])
        .target(target.clone());
    if ansi {
        capture = capture.arg("-e");
    }
    if let Some(lines) = lines {
        capture = capture.arg("-S").arg(format!("-{lines}"));
    }
    let facts = Command::new("display-message")
        .arg("-p")
        .target(target)
        .arg(FACTS);
    let mut output = town.server().run_each([facts, capture])?.into_iter();
    Ok((
        output.next().unwrap_or_default(),
        output.next().unwrap_or_default(),
    ))
}

/// Returns the last non-empty lines; without a number the whole visible screen.
fn last(text: &str, wanted: Option<u32>) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    if let Some(wanted) = wanted {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        lines.drain(..lines.len().saturating_sub(wanted));
    }
    lines
}
