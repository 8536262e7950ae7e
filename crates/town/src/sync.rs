//! Making the journal agree with tmux: one listing, one plan, one write.

use crate::containers::{self, Container};
use crate::sessions::{Query, Sessions, timestamp};
use crate::{Result, Town};
use gt_core::record::{Record, Status};
use gt_core::sync::{self, Change, Death, Shown};

/// Writes what the journal lacks, or only tells it. Gives the lines.
pub fn sync(town: &Town, only_tell: bool) -> Result<Vec<(Change, Record)>> {
    let sessions = Sessions::of(town);
    // The journal first: a life that begins meanwhile is in tmux before it is written,
    // and one that ends leaves tmux before it is written.
    let running = sessions.find(&Query {
        status: Some(Status::Running.word().to_owned()),
        ..Query::default()
    })?;
    let has_server = town.server().is_running();
    let shown: Vec<Shown> = containers::list(town)?.iter().filter_map(shown).collect();
    let is_known = |id: &str| sessions.get(id).is_ok();
    let mut lines = sync::plan(&running, &shown, is_known, has_server, &timestamp(None));
    // Whoever starts and stops agents meanwhile writes better lines than we could.
    lines.retain(|(change, line)| match sessions.get(&line.id) {
        Ok(life) => *change != Change::Found && life.outcome.is_none(),
        Err(_) => true,
    });
    if !only_tell && !lines.is_empty() {
        let records: Vec<Record> = lines.iter().map(|(_, record)| record.clone()).collect();
        sessions.record(&records)?;
    }
    Ok(lines)
}

/// What tmux tells of an agent of ours.
fn shown(container: &Container) -> Option<Shown> {
    let identity = container.identity()?;
    let life = container.life()?;
    let pane = container.pane();
    let text = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
    Some(Shown {
        death: (pane.dead || container.lost_agent_pane()).then(|| Death {
            at: pane.died_at.map(|at| timestamp(Some(at))),
            exit_code: pane.exit_status,
        }),
        life: Record {
            tmux_session: Some(container.name().to_owned()),
            agent: Some(identity.address()),
            rig: identity.rig().map(str::to_owned),
            role: Some(identity.role().word().to_owned()),
            started_at: Some(timestamp(life.began_at())),
            chain_id: text(&pane.tag_chain).or_else(|| Some(life.to_string())),
            cwd: text(&pane.path),
            harness: text(&pane.tag_harness),
            harness_session_id: text(&pane.tag_harness_session),
            pane: Some(pane.pane.to_string()),
            pid: Some(pane.pid),
            status: Some(Status::Running),
            ..Record::about(life.to_string())
        },
    })
}
