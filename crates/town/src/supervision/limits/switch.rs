//! Moves agents at a usage limit to another account of their program.

use super::{LimitNotes, LimitedAgent};
use crate::agents::account;
use crate::base::settings::AtLimit;
use crate::lifecycle::account_switch;
use crate::records::events::Events;
use crate::{Result, Town};
use gt_core::startup::account_key;

/// Returns the account to which an agent is moved now: the first one for its program that is not
/// limited. Returns `None` if the settings say that it waits, or if it was moved because of this
/// limit already.
pub(super) fn target(
    town: &Town,
    agent: &LimitedAgent<'_>,
    notes: &LimitNotes,
    now: i64,
) -> Result<Option<String>> {
    let moves = town.settings().at_limit(agent.identity.rig()) == AtLimit::Switch;
    let is_moved = notes.has_moved(&agent.identity.address(), agent.until);
    if !moves || is_moved || agent.until <= now {
        return Ok(None);
    }
    let harness = &agent.container.pane().tag_harness;
    let is_free = |account: &account::Account| {
        account.folders.get(harness).is_some_and(|folder| {
            let key = account_key(harness, Some(&folder.to_string_lossy()));
            key != agent.account && !notes.limited.contains_key(&key)
        })
    };
    let found = account::list(town)?.into_iter().find(is_free);
    Ok(found.map(|account| account.account))
}

/// Moves an agent, and writes the event. Returns whether it was moved.
pub(super) fn switch_account(town: &Town, agent: &LimitedAgent<'_>, account: &str) -> bool {
    let prompt = format!(
        "gt moved you to the account {account}, because your previous account reached its usage \
         limit. The conversation is the same. Continue with your work."
    );
    let moved = account_switch::switch(town, agent.identity, account, prompt);
    let problem = moved.as_ref().err().map(gt_core::Problem::line);
    if let Some(problem) = &problem {
        tracing::error!("{} stays in its account: {problem}", agent.identity);
    }
    let event = town
        .event_at("account_switch", &agent.identity.address())
        .by_gt()
        .with("account", account)
        .with("reason", "its usage limit was reached")
        .with("error", problem);
    Events::of(town).note(vec![event]);
    moved.is_ok()
}
