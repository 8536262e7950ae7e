//! Finds the agent of one pane. The cost does not depend on the number of panes: hooks ask this.

use crate::base::processes;
use crate::terminal::adopted::{AdoptionNote, agent_of_pane};
use crate::terminal::containers::linked;
use crate::terminal::containers::{self, Adopted, tmux_problem};
use crate::{Result, Town};
use gt_tmux::{Command, PaneId, SessionName};

/// Tags of a session that shows the pane.
struct Tags {
    session: String,
    agent_pane: Option<PaneId>,
    agent: String,
    adopted: String,
    town: String,
}

const FORMAT: &str = "#{@gt_pane}\n#{@gt_agent}\n#{@gt_adopted}\n#{@gt_town}";

/// Returns the tags of the sessions that show the pane.
fn tags(home: &Town, pane: PaneId) -> Result<Vec<Tags>> {
    let problem = |error| tmux_problem("cannot find the pane", error);
    let ask = || Command::new("display-message").arg("-p");
    let list = ask().target(pane).arg("#{window_linked_sessions_list}");
    let list = home.server().run(list).map_err(problem)?;
    // A name with a comma is the person's: containers have none.
    let names = list.trim_end_matches('\n').split(',');
    let names: Vec<SessionName> = names
        .filter_map(|name| SessionName::try_from(name).ok())
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let asks: Vec<Command> = names
        .iter()
        .map(|name| ask().target(name).arg(FORMAT))
        .collect();
    let answers = home.server().run_each(asks).map_err(problem)?;
    let read = |(name, answer): (SessionName, String)| {
        let mut lines = answer.splitn(4, '\n');
        let mut line = || lines.next().unwrap_or_default().trim_end_matches('\n');
        Tags {
            session: name.to_string(),
            agent_pane: line().parse().ok(),
            agent: line().to_owned(),
            adopted: line().to_owned(),
            town: line().to_owned(),
        }
    };
    Ok(names.into_iter().zip(answers).map(read).collect())
}

/// Returns the container of the adopted agent whose program runs in this pane. Hooks know only the
/// pane that they run in.
pub fn container_of_pane(home: &Town, pane: PaneId) -> Result<Option<String>> {
    let own = tags(home, pane)?.into_iter().find(|tags| {
        let is_its = tags.agent_pane == Some(pane) && tags.town == home.root_text();
        let adopted = Adopted::parse(&tags.adopted).filter(|_| is_its);
        adopted.is_some_and(|it| processes::is_alive(it.pid, &it.birth))
    });
    if let Some(tags) = own {
        return Ok(Some(tags.session));
    }
    let Some(identity) = agent_of_pane(home, &home.server().socket_path(), pane) else {
        return Ok(None);
    };
    // The person has moved the pane.
    let container = containers::of_agent(home, &identity)?;
    Ok(container.map(|container| container.name().to_owned()))
}

/// Returns the address of the agent whose pane this is, in any town.
pub(super) fn agent_in(home: &Town, pane: PaneId) -> Result<Option<String>> {
    let mut all = tags(home, pane)?.into_iter();
    let own = all.find(|tags| tags.agent_pane == Some(pane) && !tags.agent.is_empty());
    if let Some(tags) = own {
        return Ok(Some(tags.agent));
    }
    let socket = home.server().socket_path();
    for note in AdoptionNote::all(home) {
        let is_its = note.socket == socket && note.pane() == Some(pane) && note.program_runs();
        // The person has moved the pane, and no container shows it yet.
        if is_its && linked::moved_to(home, &note)?.is_some() {
            return Ok(Some(note.agent));
        }
    }
    Ok(None)
}
