//! Service units, for systems that start the daemon themselves.

use std::path::Path;

/// Returns a systemd user unit that runs the daemon of this town.
pub fn systemd(gt: &Path, root: &Path) -> String {
    let [gt, root] = [gt, root].map(|path| systemd_quote(&path.to_string_lossy()));
    format!(
        "[Unit]
Description=gt daemon

[Service]
ExecStart={gt} --town {root} daemon run
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=5
# Agents run in tmux, which must outlive the daemon.
KillMode=process
# Variables that agents need, such as API keys, go into a file that only you can read:
# EnvironmentFile=%h/.config/gt/environment

[Install]
# systemd starts user units at your first login and stops them after your last logout. To start the
# daemon with the machine: loginctl enable-linger
WantedBy=default.target
"
    )
}

/// Quotes a word of a command line in a unit file: `%` and `$` are special inside quotes, too.
fn systemd_quote(word: &str) -> String {
    let mut quoted = String::from("\"");
    for character in word.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' | '$' => quoted.extend([character, character]),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// Returns a launchd agent that runs the daemon of this town.
pub fn launchd(gt: &Path, root: &Path, label: &str) -> String {
    let [gt, root] = [gt, root].map(|path| xml(&path.to_string_lossy()));
    let label = xml(label);
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>Label</key>
    <string>{label}</string>
    <key>ProgramArguments</key>
    <array>
        <string>{gt}</string>
        <string>--town</string>
        <string>{root}</string>
        <string>daemon</string>
        <string>run</string>
    </array>
    <key>RunAtLoad</key>
    <true/>
    <key>KeepAlive</key>
    <true/>
    <key>AbandonProcessGroup</key>
    <true/>
</dict>
</plist>
"#
    )
}

fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without lingering, a user unit does not start with the machine.
    #[test]
    fn systemd_unit_names_the_command_for_lingering() {
        let unit = systemd(Path::new("/usr/bin/gt"), Path::new("/home/ann/gt"));
        let is_named =
            |line: &str| line.starts_with('#') && line.contains("loginctl enable-linger");
        assert!(unit.lines().any(is_named), "{unit}");
    }

    #[test]
    fn paths_are_quoted_for_each_format() {
        let gt = Path::new("/opt/my tools/gt");
        let root = Path::new("/home/a&b/100%/\"x\"/$HOME");
        let unit = systemd(gt, root);
        let line =
            r#"ExecStart="/opt/my tools/gt" --town "/home/a&b/100%%/\"x\"/$$HOME" daemon run"#;
        assert!(unit.lines().any(|found| found == line), "{unit}");
        let plist = launchd(gt, root, "gt.daemon.<x>");
        assert!(
            plist.contains("<string>/home/a&amp;b/100%/\"x\"/$HOME</string>"),
            "{plist}"
        );
        assert!(
            plist.contains("<string>gt.daemon.&lt;x&gt;</string>"),
            "{plist}"
        );
    }
}
