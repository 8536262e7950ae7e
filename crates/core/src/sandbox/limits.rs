//! Resource limits of the processes in a sandbox.
//!
//! They are set inside, by a shell that becomes the program: the number of processes then counts
//! only those of the sandbox's user namespace (Linux 5.14 and later), and the broker outside keeps
//! its own limits. The kernel does not apply that number to root.

use serde::Deserialize;

/// `sandbox.limits` of a role. 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxLimits {
    pub processes: u64,
    /// Maximum size of a file that a process writes, in megabytes.
    pub file_mb: u64,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        SandboxLimits {
            processes: 4096,
            file_mb: 0,
        }
    }
}

impl SandboxLimits {
    /// Returns the words before the program that set the limits. There are no core dumps: they
    /// would hold secrets of the program.
    pub fn words(self) -> Vec<String> {
        let mut lines = vec!["ulimit -c 0".to_owned()];
        if self.processes > 0 {
            // The letter differs between shells.
            let count = self.processes;
            lines.push(format!(
                "{{ ulimit -u {count} 2>/dev/null || ulimit -p {count}; }}"
            ));
        }
        if self.file_mb > 0 {
            // In blocks of 512 bytes.
            lines.push(format!("ulimit -f {}", self.file_mb.saturating_mul(2048)));
        }
        let script = format!("{} && exec \"$@\"", lines.join(" && "));
        ["/bin/sh", "-c", &script, "sh"].map(str::to_owned).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_zero_are_not_set() {
        let script = |limits: SandboxLimits| limits.words()[2].clone();
        let none = SandboxLimits {
            processes: 0,
            file_mb: 0,
        };
        assert_eq!(script(none), "ulimit -c 0 && exec \"$@\"");
        let both = SandboxLimits {
            file_mb: 3,
            ..SandboxLimits::default()
        };
        assert_eq!(
            script(both),
            "ulimit -c 0 && { ulimit -u 4096 2>/dev/null || ulimit -p 4096; } && ulimit -f 6144 \
             && exec \"$@\""
        );
    }
}
