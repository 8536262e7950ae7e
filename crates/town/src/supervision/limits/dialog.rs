//! Leaves the dialog that a program opened at a usage limit, so that a message can be typed.
//!
//! The preset names the option that neither buys nor changes anything. If the dialog has no such
//! option, no key is sent, and a person must answer.

use crate::agents::states;
use crate::messaging::answer::{self, Asker};
use crate::messaging::nudge;
use crate::terminal::containers::Container;
use crate::{Result, Town};
use gt_core::answer::{Choice, after_limit, fingerprint};
use gt_core::screen;

/// Answers the open dialog of a limited agent. Returns whether there was one.
pub(crate) fn leave(town: &Town, container: &Container) -> Result<bool> {
    let home = &*container.home(town);
    let Some(identity) = container.identity() else {
        return Ok(false);
    };
    let pane = container.pane();
    let preset = nudge::preset_of(home, container)?;
    let shown = states::screens(town, &[(container, pane.pane)]).pop();
    let lines = shown.flatten().unwrap_or_default();
    let seen = screen::classify(&lines, &pane.title, &preset);
    let Some(asking) = seen.dialog else {
        return Ok(false);
    };
    let Some(option) = after_limit(&asking, &preset) else {
        return Ok(false);
    };
    let asker = Asker::agent(home, identity, container)?;
    let choice = Choice::Text(option.to_owned());
    answer::answer(home, &asker, &choice, Some(&fingerprint(&asking)))?;
    Ok(true)
}
