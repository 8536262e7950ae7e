//! Options that select sessions, shared by `list`, `find` and `stats`.

use super::super::ids;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use gt_core::Problem;
use gt_core::record::Outcome;
use gt_town::Town;
use gt_town::agents::target;
use gt_town::base::time;
use gt_town::records::sessions::{SessionQuery, Sessions};

#[derive(Debug, Args)]
pub(crate) struct SessionFilterArgs {
    /// Only this agent's: an address or any other target
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
    /// Only this rig's
    #[arg(long)]
    rig: Option<String>,
    /// Only this role's
    #[arg(long)]
    role: Option<String>,
    /// Only sessions that worked on this item
    #[arg(long, value_name = "BEAD")]
    work: Option<String>,
    /// Only sessions of this chain
    #[arg(long, value_name = "ID")]
    chain: Option<String>,
    /// Only sessions with this outcome
    #[arg(long, value_parser = PossibleValuesParser::new(Outcome::ALL.map(Outcome::as_str)))]
    outcome: Option<String>,
    /// Only sessions with this status
    #[arg(long, value_enum)]
    status: Option<StatusArg>,
    /// Only sessions of this agent program
    #[arg(long)]
    harness: Option<String>,
    /// Only sessions that began since: 24h, yesterday, 2026-01-17
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only sessions that began before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StatusArg {
    Running,
    Stopped,
}

impl StatusArg {
    fn as_str(self) -> &'static str {
        match self {
            StatusArg::Running => "running",
            StatusArg::Stopped => "stopped",
        }
    }
}

impl SessionFilterArgs {
    pub(super) fn query(&self, town: &Town, sessions: &Sessions) -> Result<SessionQuery, Problem> {
        // Any session of a chain, or a prefix of its id, names the chain.
        let chain = match &self.chain {
            Some(chain) => {
                let session = sessions.get(chain)?;
                Some(session.chain_id.unwrap_or(session.id))
            }
            None => None,
        };
        let time = |text: &Option<String>| text.as_deref().map(time::recorded).transpose();
        let agent = self.agent.as_deref().map(|text| {
            // An agent that no longer exists is matched by its address.
            target::resolve(town, text).map_or_else(|_| text.to_owned(), |who| who.address())
        });
        let work = self.work.as_deref();
        let work = work.map(|text| ids::full_or_text(town, text));
        Ok(SessionQuery {
            agent,
            rig: self.rig.clone(),
            role: self.role.clone(),
            work: work.transpose()?,
            chain,
            outcome: self.outcome.clone(),
            status: self.status.map(|status| status.as_str().to_owned()),
            harness: self.harness.clone(),
            since: time(&self.since)?,
            until: time(&self.until)?,
            limit: None,
        })
    }
}
