//! Our hooks in the agent programs.
//!
//! Each program gets them by its command line or its environment, for this one
//! process: the user's own settings and the repository stay as they are, and the
//! user's own hooks run as well. Each hook calls `gt signal`, which never fails and
//! never prints, so that no agent is held up by it.

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

/// What a program is started with, so that it calls us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// How a kind of programs gets our hooks.
struct Installer {
    /// As presets name it.
    name: &'static str,
    /// Whether the program would take them here and now.
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

/// Wires a program that has hooks and whose preset says how.
pub fn wire(town: &Town, preset: &Preset, on_compact: OnCompact) -> Result<Wiring> {
    match installer(preset)? {
        Some(installer) if (installer.fits)(town) => (installer.wire)(town, preset, on_compact),
        _ => Ok(Wiring::default()),
    }
}

/// Whether the model is told what our hook says when a session of this program begins.
pub fn primes(town: &Town, preset: &Preset) -> Result<bool> {
    let installer = installer(preset)?;
    Ok(preset.hooks.primes && installer.is_some_and(|installer| (installer.fits)(town)))
}

fn installer(preset: &Preset) -> Result<Option<&'static Installer>> {
    // An empty name is how a town turns them off.
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
            "the harness {} wants hooks by {name:?}, and there is no such installer",
            preset.name
        ))
        .hint(format!(
            "`installer` under [hooks] is one of {}, or empty for no hooks",
            names.join(", ")
        ))
    })
}

/// The file in which our hooks stand: one for each way, so that agents of different
/// roles do not write over each other's.
fn file(town: &Town, name: &str, ending: &str, on_compact: OnCompact) -> PathBuf {
    let way = match on_compact {
        OnCompact::Auto => "",
        OnCompact::Cycle => "-cycle",
        OnCompact::Nothing => "-plain",
    };
    let file = format!("{name}{way}.{ending}");
    town.runtime_dir().join("hooks").join(file)
}

/// A shell line that calls us and does nothing else: what a hook prints, and how it
/// ends, some programs take for a message to the model.
fn shell_line(town: &Town) -> String {
    calling(town, "signal >/dev/null 2>&1")
}

/// The same for a session that begins: what is printed here, the model is told.
fn prime_line(town: &Town) -> String {
    calling(town, "prime --hook 2>/dev/null")
}

/// The same before a context is compacted.
fn compact_line(town: &Town, on_compact: OnCompact) -> Option<String> {
    let words = compact_words(on_compact)?.join(" ");
    Some(calling(town, &format!("{words} >/dev/null 2>&1")))
}

/// What we are called with before a context is compacted.
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
