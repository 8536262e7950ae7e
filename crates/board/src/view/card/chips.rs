//! The short texts at the end of a card: branch, servers, parts, usage.

use super::Chip;
use crate::text::clean;
use crate::theme::{self, Tone};
use gt_core::card::{
    BackgroundState, BackgroundTask, Branch, Card, CardServer, PartCount, ServerState,
};
use gt_core::usage::Usage;

/// Returns the state of the branch, the servers and the background tasks.
pub(in crate::view) fn work(card: &Card) -> Vec<Chip> {
    let mut chips = card.branch.as_ref().map(branch_chips).unwrap_or_default();
    // Servers that were not started appear only in the action menu.
    let is_shown = |server: &&CardServer| server.state != ServerState::Stopped;
    chips.extend(card.servers.iter().filter(is_shown).map(server_chip));
    let has_failed = |task: &&BackgroundTask| task.state == BackgroundState::Failed;
    chips.extend(
        card.background
            .iter()
            .filter(has_failed)
            .map(background_chip),
    );
    chips
}

fn branch_chips(branch: &Branch) -> Vec<Chip> {
    let mut parts: Vec<(String, Tone)> = Vec::new();
    parts.extend(merge_chip(branch));
    if branch.ahead > 0 {
        parts.push((format!("↑{}", branch.ahead), Tone::Good));
    }
    if branch.behind > 0 {
        parts.push((format!("↓{}", branch.behind), Tone::Asks));
    }
    if branch.dirty > 0 {
        parts.push((format!("~{}", branch.dirty), Tone::Paused));
    }
    if branch.added > 0 {
        parts.push((format!("+{}", branch.added), Tone::Good));
    }
    if branch.removed > 0 {
        parts.push((format!("−{}", branch.removed), Tone::Bad));
    }
    parts
}

/// Returns the state of a merge in the worktree.
fn merge_chip(branch: &Branch) -> Option<Chip> {
    let conflicts = match branch.conflicts.len() {
        0 if branch.merging => return Some(("merging".to_owned(), Tone::Bad)),
        0 => return None,
        1 => "1 conflict".to_owned(),
        count => format!("{count} conflicts"),
    };
    Some(match branch.resolver {
        true => (format!("resolving {conflicts}"), Tone::Busy),
        false => (format!("✗ {conflicts}"), Tone::Bad),
    })
}

fn background_chip(task: &BackgroundTask) -> Chip {
    (format!("✗ {} failed", clean(&task.name)), Tone::Bad)
}

/// Returns the port of a running server; otherwise its sign with the port or the name.
fn server_chip(server: &CardServer) -> Chip {
    let (sign, _, tone) = theme::server(server.state);
    let text = match (server.state, server.port) {
        (ServerState::Running, Some(port)) => format!(":{port}"),
        (_, Some(port)) => format!("{sign}:{port}"),
        (_, None) => format!("{sign}{}", clean(&server.name)),
    };
    (text, tone)
}

/// Returns the progress of the parts, and the usage.
pub(in crate::view) fn spent(card: &Card) -> Vec<Chip> {
    let mut chips = Vec::new();
    if let Some(parts) = card.parts {
        let text = format!("{} {}/{}", progress(parts), parts.closed, parts.all);
        chips.push((text, Tone::Good));
    }
    if let Some(usage) = &card.usage {
        chips.push((usage_text(usage), Tone::Dim));
    }
    chips
}

/// Draws a progress bar of five cells. It is full only if all parts are closed, and empty only if
/// none is.
fn progress(parts: PartCount) -> String {
    const CELLS: u32 = 5;
    let full = match parts {
        PartCount { all: 0, .. } | PartCount { closed: 0, .. } => 0,
        PartCount { closed, all } if closed >= all => CELLS,
        PartCount { closed, all } => (u64::from(closed) * u64::from(CELLS) / u64::from(all))
            .clamp(1, u64::from(CELLS - 1)) as u32,
    };
    let cells = (0..CELLS).map(|cell| if cell < full { '▰' } else { '▱' });
    cells.collect()
}

fn usage_text(usage: &Usage) -> String {
    spent_text(usage.tokens(), usage.cost_usd)
}

/// Formats tokens and their cost. The unit distinguishes the number from others.
pub(in crate::view) fn spent_text(tokens: u64, cost_usd: Option<f64>) -> String {
    let tokens = format!("{} tok", short_number(tokens));
    match cost_usd {
        Some(cost) => format!("{tokens} {}", dollars(cost)),
        None => tokens,
    }
}

pub(in crate::view) fn dollars(cost: f64) -> String {
    format!("${cost:.2}")
}

/// Formats a number with at most three digits and a letter for its unit.
fn short_number(number: u64) -> String {
    let scaled = |unit: u64, letter: char| {
        let tenths = number / (unit / 10);
        match tenths {
            ..100 => format!("{}.{}{letter}", tenths / 10, tenths % 10),
            _ => format!("{}{letter}", tenths / 10),
        }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => scaled(1_000, 'k'),
        1_000_000..1_000_000_000 => scaled(1_000_000, 'M'),
        _ => scaled(1_000_000_000, 'G'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12k"),
            (999_999, "999k"),
            (1_250_000, "1.2M"),
            (u64::MAX, "18446744073G"),
        ] {
            assert_eq!(short_number(number), text);
        }
    }

    #[test]
    fn tokens_are_called_tokens() {
        assert_eq!(spent_text(177, None), "177 tok");
        assert_eq!(spent_text(1_250, Some(0.031)), "1.2k tok $0.03");
    }

    #[test]
    fn a_bar_is_full_only_when_all_is_done() {
        for (closed, all, bar) in [
            (0, 0, "▱▱▱▱▱"),
            (0, 9, "▱▱▱▱▱"),
            (1, 900, "▰▱▱▱▱"),
            (899, 900, "▰▰▰▰▱"),
            (9, 9, "▰▰▰▰▰"),
        ] {
            assert_eq!(progress(PartCount { closed, all }), bar);
        }
    }
}
