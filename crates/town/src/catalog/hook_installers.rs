//! Installs our hooks in agent programs that `gt` starts.
//!
//! Each process gets the hooks through its command line or its environment: the user's settings and
//! the repository stay unchanged, and the user's own hooks run as well. The hooks that report
//! states call `gt signal` with its output and its exit status discarded, so that they do not
//! disturb the agent. `live_hooks.rs` handles programs that are already running.

mod claude;
mod codex;
mod gemini;
mod opencode;

use crate::{Result, Town};
use gt_core::Problem;
use gt_core::handoff::COMPACTION;
use gt_core::harness::Preset;
use gt_core::role::OnCompact;
use gt_core::shell;
use std::path::PathBuf;

/// Arguments and variables that make a program call our hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// Installation of our hooks for one kind of program.
struct Installer {
    /// The name by which presets refer to it.
    name: &'static str,
    /// Returns whether the program accepts the hooks in this town.
    fits: fn(&Town) -> bool,
    wire: fn(&Town, &Preset, OnCompact) -> Result<Wiring>,
}

const INSTALLERS: &[Installer] = &[
    Installer {
        name: "claude",
        fits: |_| true,
        wire: claude::wire,
    },
    Installer {
        name: "codex",
        fits: |_| true,
        wire: |town, _, on_compact| Ok(codex::wire(town, on_compact)),
    },
    Installer {
        name: "gemini",
        fits: gemini::fits,
        wire: |town, _, on_compact| gemini::wire(town, on_compact),
    },
    Installer {
        name: "opencode",
        fits: opencode::fits,
        wire: |town, _, on_compact| opencode::wire(town, on_compact),
    },
];

/// Returns the wiring for a program; empty if its preset names no installer.
pub fn wire(town: &Town, preset: &Preset, on_compact: OnCompact) -> Result<Wiring> {
    match installer(preset)? {
        Some(installer) if (installer.fits)(town) => (installer.wire)(town, preset, on_compact),
        _ => Ok(Wiring::default()),
    }
}

/// Returns whether the program passes the output of our session-start hook to the model.
pub fn primes(town: &Town, preset: &Preset) -> Result<bool> {
    let installer = installer(preset)?;
    Ok(preset.hooks.primes && installer.is_some_and(|installer| (installer.fits)(town)))
}

fn installer(preset: &Preset) -> Result<Option<&'static Installer>> {
    // A town disables hooks with an empty name.
    let Some(name) = preset
        .hooks
        .installer
        .as_deref()
        .filter(|it| !it.is_empty())
    else {
        return Ok(None);
    };
    let found = INSTALLERS.iter().find(|installer| installer.name == name);
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = INSTALLERS.iter().map(|installer| installer.name).collect();
        Problem::usage(format!(
            "the harness {} names the hook installer {name:?}, which does not exist",
            preset.name
        ))
        .hint(format!(
            "`installer` under [hooks] is one of {}, or empty for no hooks",
            names.join(", ")
        ))
    })
}

/// Returns the path of the file with our hooks. There is one file per compaction mode, so that
/// agents of different roles do not overwrite each other's file.
fn file(town: &Town, name: &str, ending: &str, on_compact: OnCompact) -> PathBuf {
    let way = match on_compact {
        OnCompact::Auto => "",
        OnCompact::Cycle => "-cycle",
        OnCompact::Nothing => "-plain",
    };
    let file = format!("{name}{way}.{ending}");
    town.runtime_dir().join("hooks").join(file)
}

/// Returns a shell line that calls `gt signal` without output: some programs pass the output and
/// the exit status of a hook to the model.
fn shell_line(town: &Town) -> String {
    calling(town, "signal >/dev/null 2>&1")
}

/// Returns the shell line that runs at the start of a session. Its output goes to the model.
fn prime_line(town: &Town) -> String {
    calling(town, "prime --hook 2>/dev/null")
}

/// Returns the shell line that runs before the program compacts its context.
fn compact_line(town: &Town, on_compact: OnCompact) -> Option<String> {
    let words = compact_words(on_compact)?.join(" ");
    Some(calling(town, &format!("{words} >/dev/null 2>&1")))
}

/// Returns the arguments of the `gt` call before the program compacts its context.
fn compact_words(on_compact: OnCompact) -> Option<[&'static str; 4]> {
    let mode = match on_compact {
        OnCompact::Auto => "--auto",
        OnCompact::Cycle => "--cycle",
        OnCompact::Nothing => return None,
    };
    Some(["handoff", mode, "--reason", COMPACTION])
}

fn calling(town: &Town, command: &str) -> String {
    let gt = shell::quote(&town.around().gt.to_string_lossy());
    format!("{gt} {command} || true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_core::harness::{builtin_names, resolve};

    #[test]
    fn every_preset_names_an_installer_that_there_is() {
        for name in builtin_names() {
            let preset = resolve(name, None).unwrap().value;
            assert!(installer(&preset).is_ok(), "{name}");
        }
    }
}
