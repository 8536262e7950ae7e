//! Asks agents to quit by themselves: by the command of their program, or by keys.

use crate::Town;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::catalog::harnesses;
use crate::messaging::inject::{self, Reached, Submission, Typist};
use crate::messaging::queue::MessageQueue;
use crate::terminal::containers::Container;
use gt_core::harness::Preset;
use gt_tmux::Batch;
use std::time::Duration;

/// Asks every agent to quit by itself; returns how long to wait. Agents that cannot be asked are
/// ended by signals.
pub(super) fn ask(town: &Town, victims: &[Container]) -> Duration {
    let mut presets = harnesses::Presets::default();
    let mut longest = Duration::ZERO;
    let mut by_keys = Batch::new();
    let mut by_command = Vec::new();
    for container in victims
        .iter()
        .filter(|c| !c.pane().dead && !c.lost_agent_pane())
    {
        let preset = presets
            .get(town, &container.pane().tag_harness)
            .cloned()
            .unwrap_or_default();
        longest = longest.max(Duration::from_secs_f64(
            preset.quit.seconds.clamp(0.0, 30.0),
        ));
        if preset.quit.command.is_some() {
            by_command.push((container, preset));
        } else {
            by_keys = by_keys
                .then_all(inject::key_presses(
                    container.pane().pane,
                    &preset.quit.keys,
                ))
                .then_line();
        }
    }
    let unanswered = ask_by_command(town, &by_command);
    for (container, preset) in unanswered {
        by_keys = by_keys
            .then_all(inject::key_presses(
                container.pane().pane,
                &preset.quit.keys,
            ))
            .then_line();
    }
    if !by_keys.is_empty() {
        // The processes that do not quit are ended by signals.
        let typed = town.server().run_private(by_keys);
        typed.or_debug("the keys to quit were not typed");
    }
    longest
}

/// Types the quit command to idle agents, all concurrently; returns the agents that did not take
/// it.
fn ask_by_command<'a>(
    town: &Town,
    wanted: &'a [(&'a Container, Preset)],
) -> Vec<(&'a Container, &'a Preset)> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = wanted
            .iter()
            .map(|(container, preset)| {
                let answer = scope.spawn(move || {
                    let command = preset.quit.command.as_deref().unwrap_or_default();
                    // If another process is typing, keys are used instead.
                    let queue = container.identity().map(|who| MessageQueue::of(town, who));
                    let lock = queue.map(|queue| FileLock::try_take(&queue.lock_path()));
                    let Some(Ok(Some(_lock))) = lock else {
                        return false;
                    };
                    let mut typist = Typist::new(town, container, preset);
                    let typed = typist.submit(command, Reached::NOTHING, false, |_, _| Ok(()));
                    matches!(typed, Ok(Submission::Submitted { .. }))
                });
                (*container, preset, answer)
            })
            .collect();
        let silent = asked.into_iter().filter_map(|(container, preset, answer)| {
            (!answer.join().unwrap_or(false)).then_some((container, preset))
        });
        silent.collect()
    })
}
