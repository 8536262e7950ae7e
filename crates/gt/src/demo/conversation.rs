//! One conversation: its transcript, its log and its hooks.
//!
//! Each method records one event, fires its hooks with Claude Code's JSON, and returns the
//! remaining output as [`HookOutput`]s. The caller shows them: `agent` on a terminal, `plain` in a pipe.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

use serde_json::{Value, json};

use super::command::CommandOutput;
use super::hooks::{DemoHooks, HookOutput};
use super::signals::Signals;
use super::transcript::{Transcript, append, new_id, now};

/// Counterpart of Claude Code's `.claude/settings.local.json`.
const LIVE_SETTINGS: &str = ".gt-demo/settings.local.json";

#[derive(Debug)]
pub(super) struct DemoConversation {
    transcript: Transcript,
    hooks: DemoHooks,
    signals: Rc<Signals>,
    log: Option<File>,
    cwd: String,
    bypass: bool,
}

/// Action that needs permission: a command, or a question to the user.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    name: &'static str,
    input: Value,
}

impl Tool {
    pub(super) fn bash(command: &str) -> Self {
        Self {
            name: "Bash",
            input: json!({"command": command}),
        }
    }

    pub(super) fn question(question: &str, options: &[String]) -> Self {
        let options: Vec<Value> = options
            .iter()
            .map(|label| json!({"label": label}))
            .collect();
        let input = json!({"questions": [{"question": question, "options": options}]});
        Self {
            name: "AskUserQuestion",
            input,
        }
    }
}

impl DemoConversation {
    pub(super) fn new(
        transcript: Transcript,
        hooks: DemoHooks,
        signals: Rc<Signals>,
        cwd: String,
        bypass: bool,
    ) -> Self {
        Self {
            transcript,
            hooks,
            signals,
            log: None,
            cwd,
            bypass,
        }
    }

    /// Also appends each received message to this file.
    pub(super) fn log_to(&mut self, path: &Path) -> Result<(), String> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path);
        self.log = Some(file.map_err(|error| format!("{}: {error}", path.display()))?);
        Ok(())
    }

    pub(super) fn cwd(&self) -> &str {
        &self.cwd
    }

    /// Returns whether tools run without permission.
    pub(super) fn bypasses_permissions(&self) -> bool {
        self.bypass
    }

    pub(super) fn has_hook(&self, event: &str) -> bool {
        self.hooks.has(event) || self.live_hooks().has(event)
    }

    /// Reads the hooks of the folder's settings file. Read for each event, because they may be
    /// added while the agent runs.
    fn live_hooks(&self) -> DemoHooks {
        let path = Path::new(&self.cwd).join(LIVE_SETTINGS);
        // The file may be half-written or missing, as for a real program.
        DemoHooks::load(&path).unwrap_or_default()
    }

    pub(super) fn start(&mut self, source: &str) -> Vec<HookOutput> {
        let notes = self.fire("SessionStart", source, json!({"source": source}));
        self.keep_context(notes)
    }

    /// Records a message of the user.
    pub(super) fn receive(&mut self, prompt: &str) -> Vec<HookOutput> {
        let mut notes = Vec::new();
        if let Some(log) = &mut self.log {
            let line = json!({"at": now(), "session_id": self.transcript.id, "prompt": prompt});
            if let Err(error) = append(log, &line) {
                notes.push(HookOutput::Warning(format!("log: {error}")));
            }
        }
        notes.extend(self.write("user", prompt));
        let fired = self.fire("UserPromptSubmit", "", json!({"prompt": prompt}));
        notes.extend(self.keep_context(fired));
        notes
    }

    /// Records an answer of the agent.
    pub(super) fn say(&mut self, text: &str) -> Vec<HookOutput> {
        let written = self.transcript.write_answer(text);
        write_warning(written).into_iter().collect()
    }

    pub(super) fn before_tool(&self, tool: &Tool) -> Vec<HookOutput> {
        self.tool("PreToolUse", tool, json!({}))
    }

    /// Reports an open permission dialog.
    pub(super) fn report_dialog(&self, tool: &Tool) -> Vec<HookOutput> {
        self.tool("PermissionRequest", tool, json!({}))
    }

    pub(super) fn after_command(&self, tool: &Tool, finished: &CommandOutput) -> Vec<HookOutput> {
        let response = json!({"stdout": finished.stdout, "stderr": finished.stderr});
        self.tool("PostToolUse", tool, json!({"tool_response": response}))
    }

    pub(super) fn after_question(&self, tool: &Tool, answer: &str) -> Vec<HookOutput> {
        self.tool(
            "PostToolUse",
            tool,
            json!({"tool_response": {"answer": answer}}),
        )
    }

    /// Reports that the user has not reacted for a while.
    pub(super) fn notify(&self, kind: &str, message: &str) -> Vec<HookOutput> {
        let more = json!({"notification_type": kind, "message": message});
        self.fire("Notification", kind, more)
    }

    pub(super) fn stop(&self, last_message: &str) -> Vec<HookOutput> {
        let more = json!({"stop_hook_active": false, "last_assistant_message": last_message});
        self.fire("Stop", "", more)
    }

    pub(super) fn failed(&self, error: &str) -> Vec<HookOutput> {
        let kind = match error.split_whitespace().next() {
            Some("400") => "invalid_request",
            Some("401") => "authentication_failed",
            Some("429") => "rate_limit",
            Some(status) if status.starts_with('5') => "server_error",
            _ => "unknown",
        };
        let last = format!("API Error: {error}");
        let more = json!({"error": kind, "error_details": error, "last_assistant_message": last});
        self.fire("StopFailure", kind, more)
    }

    pub(super) fn end(&self, reason: &str) -> Vec<HookOutput> {
        self.fire("SessionEnd", reason, json!({"reason": reason}))
    }

    /// Removes the transcript of a session that never began, so that its id can be used again.
    pub(super) fn discard(&self) -> Vec<HookOutput> {
        let removed = self.transcript.remove();
        let failed = removed.err().map(|error| format!("transcript: {error}"));
        failed.map(HookOutput::Warning).into_iter().collect()
    }

    /// Ends this session and starts an empty one with a new id.
    pub(super) fn clear(&mut self) -> Vec<HookOutput> {
        let mut notes = self.end("clear");
        let folder = self.transcript.path.parent().unwrap_or(Path::new("."));
        match Transcript::create(folder, new_id(), &self.cwd) {
            Ok(transcript) => self.transcript = transcript,
            Err(problem) => notes.push(HookOutput::Warning(problem)),
        }
        notes.extend(self.start("clear"));
        notes
    }

    fn tool(&self, event: &str, tool: &Tool, more: Value) -> Vec<HookOutput> {
        let mut fields = json!({"tool_name": tool.name, "tool_input": tool.input});
        merge(&mut fields, more);
        self.fire(event, tool.name, fields)
    }

    fn fire(&self, event: &str, subject: &str, more: Value) -> Vec<HookOutput> {
        let live = self.live_hooks();
        if !self.hooks.has(event) && !live.has(event) {
            return Vec::new();
        }
        let mut payload = json!({
            "session_id": self.transcript.id,
            "transcript_path": self.transcript.path.to_string_lossy(),
            "cwd": self.cwd,
            "permission_mode": if self.bypass { "bypassPermissions" } else { "default" },
            "hook_event_name": event,
        });
        merge(&mut payload, more);
        let mut notes = self.hooks.fire(event, subject, &payload, &self.signals);
        notes.extend(live.fire(event, subject, &payload, &self.signals));
        notes
    }

    fn keep_context(&mut self, mut notes: Vec<HookOutput>) -> Vec<HookOutput> {
        let mut failed = Vec::new();
        for note in &notes {
            if let HookOutput::Context(text) = note {
                failed.extend(self.write("context", text));
            }
        }
        notes.extend(failed);
        notes
    }

    fn write(&mut self, kind: &str, text: &str) -> Option<HookOutput> {
        write_warning(self.transcript.write(kind, text))
    }
}

fn write_warning(written: io::Result<()>) -> Option<HookOutput> {
    let failed = written.err();
    failed.map(|error| HookOutput::Warning(format!("transcript: {error}")))
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
