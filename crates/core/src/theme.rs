//! Colours of containers: a rig's by its name, fixed ones for the town's roles.

/// Background and foreground of a status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusTheme {
    pub name: &'static str,
    pub background: &'static str,
    pub foreground: &'static str,
}

const fn theme(
    name: &'static str,
    background: &'static str,
    foreground: &'static str,
) -> StatusTheme {
    StatusTheme {
        name,
        background,
        foreground,
    }
}

/// Palettes among which a rig's name chooses.
pub const PALETTES: [StatusTheme; 10] = [
    theme("ocean", "#1e3a5f", "#e0e0e0"),
    theme("forest", "#2d5a3d", "#e0e0e0"),
    theme("rust", "#8b4513", "#f5f5dc"),
    theme("plum", "#4a3050", "#e0e0e0"),
    theme("slate", "#4a5568", "#e0e0e0"),
    theme("ember", "#b33a00", "#f5f5dc"),
    theme("midnight", "#1a1a2e", "#c0c0c0"),
    theme("wine", "#722f37", "#f5f5dc"),
    theme("teal", "#0d5c63", "#e0e0e0"),
    theme("copper", "#6d4c41", "#f5f5dc"),
];

/// Gold on dark.
pub const MAYOR: StatusTheme = theme("mayor", "#3d3200", "#ffd700");
/// Silver on purple.
pub const DEACON: StatusTheme = theme("deacon", "#2d1f3d", "#c0b0d0");

/// Returns the theme of a rig. The result depends only on the name.
pub fn of_rig(rig: &str) -> StatusTheme {
    PALETTES[fnv32a(rig.as_bytes()) as usize % PALETTES.len()]
}

/// Returns the theme for a role's setting; `rig` is looked up by the given name.
pub fn find(wanted: &str, rig: &str) -> Option<StatusTheme> {
    match wanted {
        "rig" => Some(of_rig(rig)),
        "mayor" => Some(MAYOR),
        "deacon" => Some(DEACON),
        other => PALETTES.iter().copied().find(|theme| theme.name == other),
    }
}

pub fn fnv32a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_32a() {
        // Vectors from the published test suite of the hash.
        assert_eq!(fnv32a(b""), 0x811c_9dc5);
        assert_eq!(fnv32a(b"a"), 0xe40c_292c);
        assert_eq!(fnv32a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn a_rig_keeps_its_colour() {
        assert_eq!(of_rig("gastown"), of_rig("gastown"));
        assert_eq!(find("rig", "gastown"), Some(of_rig("gastown")));
        assert_eq!(find("teal", "gastown").map(|t| t.name), Some("teal"));
        assert_eq!(find("nope", "gastown"), None);
    }
}
