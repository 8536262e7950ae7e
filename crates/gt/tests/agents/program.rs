//! The table of programs. A new program needs a row here, a preset, and a line in
//! `scripts/agents.sh`.

use gt_tmux::testing::temp_root;
use std::path::{Path, PathBuf};

type Files = &'static [(&'static str, &'static str)];

pub(crate) struct Program {
    /// Name of the preset.
    pub(crate) harness: &'static str,
    /// Path of the binary under `node_modules`; `*` matches one folder.
    binary: &'static str,
    /// Whether node runs the binary.
    script: bool,
    /// Whether the start takes seconds. The quick run skips slow programs in most checks.
    pub(crate) slow: bool,
    /// Settings files of the user: path under HOME, and text with `{url}`.
    pub(crate) settings: Files,
    /// Files that answer all first-run questions except folder trust, with `{key_end}`; `None` if
    /// the program asks none.
    pub(crate) answers: Option<Files>,
    /// Environment variables, with `{url}` and `{key}`.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// Whether the program clears the pane's history when it starts.
    pub(crate) clears_history: bool,
    /// Folder under HOME with the program's conversations.
    pub(crate) conversations: &'static str,
    /// Prompt that makes the program ask for permission to create the file `approved`.
    pub(crate) ask: &'static str,
    /// Prompt that makes the program run the same command without a request for escalation.
    pub(crate) run: &'static str,
}

pub(crate) const KEY: &str = "sk-dummy-0123456789abcdefghijklmnopqrstuv";

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        harness: "claude",
        binary: "claude-bin/claude",
        script: false,
        slow: false,
        settings: &[],
        answers: Some(&[(
            ".claude.json",
            r#"{"hasCompletedOnboarding": true, "bypassPermissionsModeAccepted": true,
               "hasSeenAutoDefaultNudge": true, "hasSeenAutoDefaultNotice": true,
               "customApiKeyResponses": {"approved": ["{key_end}"], "rejected": []}}"#,
        )]),
        env: &[
            ("ANTHROPIC_BASE_URL", "{url}"),
            ("ANTHROPIC_API_KEY", "{key}"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            // Claude Code refuses to skip permissions as root unless this variable says that it is
            // in a sandbox.
            ("IS_SANDBOX", "1"),
        ],
        clears_history: false,
        conversations: ".claude/projects",
        ask: r#"[[tool=Bash {"command":"touch approved","description":"t"}]]"#,
        run: r#"[[tool=Bash {"command":"touch approved","description":"t"}]]"#,
    },
    Program {
        harness: "codex",
        binary: "codex-bin/vendor/*/bin/codex",
        script: false,
        slow: false,
        settings: &[(
            ".codex/config.toml",
            "model = 'gpt-fake'\nmodel_provider = 'fake'\ncheck_for_update_on_startup = false\n\
             [model_providers.fake]\nname = 'fake'\nbase_url = '{url}/v1'\nwire_api = 'responses'\nenv_key = 'OPENAI_API_KEY'\n\
             [features]\ndaemon_auto_start = false\n[analytics]\nenabled = false\n",
        )],
        answers: Some(&[]),
        env: &[("OPENAI_API_KEY", "{key}")],
        clears_history: false,
        conversations: ".codex/sessions",
        ask: r#"[[tool=exec_command {"cmd":"touch approved","sandbox_permissions":"require_escalated","justification":"x"}]]"#,
        run: r#"[[tool=exec_command {"cmd":"touch approved"}]]"#,
    },
    Program {
        harness: "opencode",
        binary: "opencode-bin/bin/opencode",
        script: false,
        slow: true,
        settings: &[
            (
                ".config/opencode/opencode.json",
                r#"{"autoupdate": false, "model": "anthropic/claude-sonnet-4-5",
               "permission": {"bash": "allow", "edit": "allow"},
               "provider": {"anthropic": {"options": {"baseURL": "{url}/v1", "apiKey": "fake"},
                                          "models": {"claude-sonnet-4-5": {"name": "fake"}}}}}"#,
            ),
            // The plugin package, as it is after a start with network access.
            (
                ".config/opencode/package.json",
                r#"{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}"#,
            ),
            (
                ".config/opencode/package-lock.json",
                r#"{"name":"opencode","lockfileVersion":3,"requires":true,"packages":{"":{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}}}"#,
            ),
            (".config/opencode/node_modules/.keep", ""),
        ],
        answers: None,
        env: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ],
        clears_history: false,
        conversations: ".local/share/opencode",
        ask: r#"[[tool=bash {"command":"touch approved","description":"t"}]]"#,
        run: r#"[[tool=bash {"command":"touch approved","description":"t"}]]"#,
    },
    Program {
        harness: "gemini",
        binary: "@google/gemini-cli/bundle/gemini.js",
        script: true,
        slow: true,
        settings: &[],
        answers: Some(&[(
            ".gemini/settings.json",
            r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#,
        )]),
        env: &[
            ("GEMINI_API_KEY", "fake"),
            ("GOOGLE_GEMINI_BASE_URL", "{url}"),
            ("COLORTERM", "truecolor"),
        ],
        clears_history: true,
        conversations: ".gemini/tmp",
        ask: r#"[[tool=run_shell_command {"command":"touch approved","description":"t"}]]"#,
        run: r#"[[tool=run_shell_command {"command":"touch approved","description":"t"}]]"#,
    },
];

impl Program {
    /// Returns the directive that makes the program run this shell line.
    pub(crate) fn shell_call(&self, line: &str) -> String {
        let line = serde_json::Value::from(line).to_string();
        self.run.replace("\"touch approved\"", &line)
    }

    /// Returns the shell line that starts the program, or `None` if it is not installed.
    pub(crate) fn command_line(&self) -> Option<String> {
        let installed = installed()?;
        let binary = find(&installed, self.binary)?;
        let binary = binary.display();
        if !self.script {
            return Some(format!("exec '{binary}' \"$@\""));
        }
        // `node-bin` exists only where the system's node is too old.
        let node = installed.join("node-bin/bin/node");
        let node = if node.exists() {
            node
        } else {
            PathBuf::from("node")
        };
        Some(format!("exec '{}' '{binary}' \"$@\"", node.display()))
    }
}

impl Program {
    /// Returns the parent folder of the town. Sockets need a short path; Gemini CLI
    /// accepts hooks only from folders that root alone can write.
    pub(crate) fn place(&self) -> PathBuf {
        let beside = installed().filter(|_| self.harness == "gemini");
        let folder = beside.and_then(|dir| Some(dir.parent()?.to_owned()));
        folder.unwrap_or_else(temp_root)
    }
}

/// Returns the folder in which `make test-agents` installs the programs.
fn installed() -> Option<PathBuf> {
    let dir = match std::env::var_os("GT_AGENTS_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache/gt-agents"),
    };
    Some(dir.join("node_modules")).filter(|dir| dir.is_dir())
}

/// Returns the first existing path that matches a pattern whose `*` stands for one folder.
fn find(root: &Path, pattern: &str) -> Option<PathBuf> {
    let (before, after) = match pattern.split_once("/*/") {
        Some(parts) => parts,
        None => return Some(root.join(pattern)).filter(|path| path.exists()),
    };
    let entries = std::fs::read_dir(root.join(before)).ok()?.flatten();
    entries
        .map(|entry| entry.path().join(after))
        .find(|path| path.exists())
}
