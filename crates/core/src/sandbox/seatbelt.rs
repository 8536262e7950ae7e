//! The profile of a sandbox for Seatbelt (`sandbox-exec` on macOS).
//!
//! Seatbelt hides and opens paths by rules, of which the last one that matches counts; it mounts
//! nothing. So [`Mount::Replace`] only protects the replaced folder, and private temporary files
//! are in a folder of their own, to which `TMPDIR` must lead. The profile has not been tried on
//! macOS.

use super::{EGRESS_PORT, Mount, SandboxPlan};

impl SandboxPlan {
    /// Returns the profile. `temporary` is the folder for temporary files.
    pub fn seatbelt(&self, temporary: &str) -> String {
        let mut lines = vec![
            "(version 1)".to_owned(),
            "(allow default)".to_owned(),
            "(deny file-write*)".to_owned(),
            "(allow file-write* (subpath \"/dev\"))".to_owned(),
            // Other processes cannot be signalled, inspected or asked to act for the agent.
            "(deny signal)".to_owned(),
            "(allow signal (target same-sandbox))".to_owned(),
            "(deny process-info*)".to_owned(),
            "(allow process-info* (target same-sandbox))".to_owned(),
            "(deny appleevent-send)".to_owned(),
            "(deny job-creation)".to_owned(),
        ];
        for shared in ["/tmp", "/private/tmp", "/private/var/tmp"] {
            lines.push(format!("(deny file-read* (subpath {}))", quoted(shared)));
        }
        for mount in &self.mounts {
            let path = quoted(mount.path());
            lines.push(match mount {
                Mount::HideFolder(_) => format!("(deny file-read* file-write* (subpath {path}))"),
                Mount::HideFile(_) => {
                    format!("(deny file-read* file-write* network-outbound (literal {path}))")
                }
                Mount::Read(_) | Mount::Replace { .. } => {
                    format!("{}\n(deny file-write* (subpath {path}))", readable(&path))
                }
                Mount::Write(_) => writable(&path),
            });
        }
        for folder in [temporary, &self.broker] {
            lines.push(writable(&quoted(folder)));
        }
        if !self.has_network {
            lines.push("(deny network*)".to_owned());
            lines.push(format!(
                "(allow network-outbound (remote ip \"localhost:{EGRESS_PORT}\"))"
            ));
            let broker = quoted(&self.broker);
            lines.push(format!("(allow network-outbound (subpath {broker}))"));
        }
        lines.join("\n") + "\n"
    }
}

/// Opens a folder, which may be below a hidden one, for reading.
fn readable(path: &str) -> String {
    format!(
        "(allow file-read-metadata (path-ancestors {path}))\n(allow file-read* (subpath {path}))"
    )
}

fn writable(path: &str) -> String {
    format!("{}\n(allow file-write* (subpath {path}))", readable(path))
}

/// Returns a path as a string of the profile's language.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SandboxPlan {
        SandboxPlan {
            mounts: vec![
                Mount::HideFolder("/t".to_owned()),
                Mount::HideFile("/s/socket".to_owned()),
                Mount::Write("/t/w \"x\"".to_owned()),
                Mount::Read("/t/w \"x\"/.git".to_owned()),
            ],
            broker: "/b".to_owned(),
            has_network: true,
            ..SandboxPlan::default()
        }
    }

    #[test]
    fn later_rules_open_parts_of_hidden_folders() {
        let profile = plan().seatbelt("/tmp/own");
        let places = [
            "(deny file-write*)\n",
            "(deny file-read* (subpath \"/private/tmp\"))",
            "(deny file-read* file-write* (subpath \"/t\"))",
            "(deny file-read* file-write* network-outbound (literal \"/s/socket\"))",
            "(allow file-write* (subpath \"/t/w \\\"x\\\"\"))",
            "(deny file-write* (subpath \"/t/w \\\"x\\\"/.git\"))",
            "(allow file-write* (subpath \"/tmp/own\"))",
            "(allow file-write* (subpath \"/b\"))",
        ];
        let places = places.map(|rule| profile.find(rule).expect(rule));
        assert!(places.is_sorted(), "{profile}");
        assert!(!profile.contains("network*"), "{profile}");
    }

    #[test]
    fn only_the_proxy_and_the_broker_are_reached_without_a_network() {
        let strict = SandboxPlan {
            has_network: false,
            ..plan()
        };
        let profile = strict.seatbelt("/tmp/own");
        let end = "(deny network*)\n(allow network-outbound (remote ip \"localhost:3128\"))\n\
                   (allow network-outbound (subpath \"/b\"))\n";
        assert!(profile.ends_with(end), "{profile}");
    }

    #[test]
    fn parentheses_of_every_rule_are_closed() {
        for line in plan().seatbelt("/tmp/own").lines() {
            let count = |sign: char| line.matches(sign).count();
            assert!(line.starts_with('('), "{line}");
            assert_eq!(count('('), count(')'), "{line}");
        }
    }
}
