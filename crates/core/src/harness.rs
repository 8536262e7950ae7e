//! Harness presets: one row per agent program.
//!
//! A preset describes how a program is started, recognised, read and asked to exit. The built-in
//! presets are embedded TOML files; a town overrides single fields or adds programs in
//! `harnesses/<name>.toml`. `docs/harnesses.md` explains every key.

mod transcripts;

pub use transcripts::Transcripts;

use crate::overlay::{Layer, Overlaid, overlay};
use crate::patterns::Rules;
use crate::problem::Problem;
use crate::similar;
use serde::Deserialize;
use std::collections::BTreeMap;

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("presets/", $name, ".toml")))),*]
    };
}

const BUILTIN: &[(&str, &str)] = builtin![
    "claude",
    "codex",
    "opencode",
    "gemini",
    "cursor-agent",
    "amp",
    "copilot",
    "pi",
    "goose",
    "aider",
    "demo",
];

/// Returns the names of the built-in presets, in the order of the table.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Returns the text of a built-in preset.
pub fn builtin(name: &str) -> Option<Layer<'static>> {
    let (_, text) = BUILTIN.iter().find(|(known, _)| *known == name)?;
    Some(Layer {
        source: "built-in",
        text,
    })
}

/// Resolves a preset from the built-in row and the town's file, either of which may be absent.
pub fn resolve(name: &str, town: Option<Layer<'_>>) -> Result<Overlaid<Preset>, Problem> {
    let layers: Vec<Layer<'_>> = builtin(name).into_iter().chain(town).collect();
    let Some(top) = layers.last() else {
        let problem = Problem::not_found(format!("there is no harness called {name:?}"));
        let similar = similar::hint(name, builtin_names());
        let problem = similar.into_iter().fold(problem, Problem::hint);
        return Err(problem
            .hint("`gt harness list` shows the available ones")
            .hint(format!("a town adds its own in harnesses/{name}.toml")));
    };
    let source = top.source.to_owned();
    let mut resolved = overlay::<Preset>(&layers)?;
    let preset = &mut resolved.value;
    if preset.name.is_empty() {
        preset.name = name.to_owned();
    }
    if preset.command.program.is_empty() {
        return Err(Problem::usage(format!("{source} names no program"))
            .hint("add a line `program = \"…\"` under [command]"));
    }
    Ok(resolved)
}

/// The preset of an agent program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preset {
    pub name: String,
    pub title: String,
    pub homepage: Option<String>,
    /// How to install it: the hint when it is missing.
    pub install: Option<String>,
    /// Model that it is started with, unless the caller, the project or the role names another.
    pub model: Option<String>,
    pub command: CommandTemplate,
    pub process: ProcessNames,
    pub env: Env,
    pub screen: ScreenPatterns,
    pub title_marks: TitleMarks,
    pub ready: Ready,
    pub typing: Typing,
    pub interrupt: Interrupt,
    pub quit: Quit,
    pub hooks: HookSettings,
    pub repository: RepositorySettings,
    pub sandbox: ProgramSandbox,
    pub usage: Transcripts,
    pub seeds: Vec<Seed>,
    pub dialogs: Vec<DialogPattern>,
    pub failures: Vec<FailurePattern>,
    pub states: Rules,
}

/// Settings of the program that a repository may contain. They can make it run commands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepositorySettings {
    /// Their paths from the root of the repository.
    pub files: Vec<String>,
    /// Arguments with which the program ignores them.
    pub ignore: Vec<String>,
}

/// The needs of the program inside a sandbox.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramSandbox {
    /// Folders that the program writes, relative to the home folder or below `{town}/`. An account
    /// replaces them.
    pub folders: Vec<String>,
    /// Files that the program writes, relative to the home folder.
    pub files: Vec<String>,
    /// Hosts that the program needs, for a strict sandbox.
    pub hosts: Vec<String>,
    /// Variables that are set inside a sandbox.
    pub env: BTreeMap<String, String>,
}

/// A reason why the program may exit at once, with a hint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailurePattern {
    /// Marks of this failure: any of them in the last lines is enough.
    pub shows: Vec<String>,
    pub hint: String,
}

impl Preset {
    /// Returns the hint for the failure that these lines show.
    pub fn hint_for(&self, lines: &[impl AsRef<str>]) -> Option<&str> {
        let shows = |mark: &String| {
            let mut lines = lines.iter();
            lines.any(|line| crate::screen::matches(line.as_ref(), mark))
        };
        let mut failures = self.failures.iter();
        let found = failures.find(|failure| failure.shows.iter().any(shows));
        found.map(|failure| failure.hint.as_str())
    }

    /// Returns whether the screen can show that a turn is delayed: by a retry, or by an open
    /// dialog that no hook reports.
    pub fn shows_delays(&self) -> bool {
        let is_untold = |dialog: &DialogPattern| matches!(dialog.name.as_str(), LIMIT | RETRY);
        let screen = &self.screen;
        !screen.retrying.is_empty() || screen.spinner.retries || self.dialogs.iter().any(is_untold)
    }
}

/// The name of the dialog that a program opens at a usage limit.
pub(crate) const LIMIT: &str = "limit";
/// The name of the dialog that offers to retry a failed request.
pub(crate) const RETRY: &str = "retry";

/// The command line of the program. `{id}` and `{file}` are filled in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandTemplate {
    /// Looked up on `PATH`; `{gt}` is our own binary.
    pub program: String,
    pub args: Vec<String>,
    /// Added when the role runs without asking for permission.
    pub skip_permissions: Vec<String>,
    /// Added when the agent is to ask for permission, for programs that do not ask by default.
    pub ask_permissions: Vec<String>,
    /// The program has no mode that asks for permission: a start that demands it fails.
    pub cannot_ask: bool,
    /// Added when the role answers the dialogs at the start: trust in the agent's folder, which is
    /// `{folder}` in quotes.
    pub trust_folder: Vec<String>,
    /// Added to choose the model, `{model}`. Empty if the program has no such option.
    pub model_args: Vec<String>,
    pub version: Vec<String>,
    pub prompt: PromptStyle,
    pub prompt_flag: Option<String>,
    pub settings: Vec<String>,
    pub session_id: Vec<String>,
    pub resume: Vec<String>,
    pub r#continue: Vec<String>,
    pub fork: Vec<String>,
    /// Added after `fork` to answer one prompt, `{prompt}`, and exit.
    pub print: Vec<String>,
}

/// How the first prompt reaches the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptStyle {
    #[default]
    Positional,
    Flag,
    /// Pasted once the program is ready.
    Typed,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessNames {
    /// Process names by which a live agent is recognised in the pane's process tree.
    pub names: Vec<String>,
    /// The program re-executes itself as a child process.
    pub relaunches: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Env {
    pub set: BTreeMap<String, String>,
    /// Also set when the agent is to ask for permission.
    pub ask_permissions: BTreeMap<String, String>,
    /// Set to empty, so that the program does not behave as nested in another.
    pub clear: Vec<String>,
    /// Copied from the environment of `gt` if set. May be secret.
    pub pass: Vec<String>,
    /// The variable that names the program's configuration folder.
    pub config_dir: Option<String>,
}

/// Marks on the screen; see [`crate::screen::matches`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScreenPatterns {
    pub ready: Vec<String>,
    pub busy: Vec<String>,
    pub waiting: Vec<String>,
    pub error: Vec<String>,
    /// Lines that end a failed turn, if the error is a framed block above them.
    pub error_above: Vec<String>,
    /// A person interrupted the last turn.
    pub interrupted: Vec<String>,
    /// The turn is over, but a task that it started still runs.
    pub background: Vec<String>,
    /// The last turn ended at a usage limit.
    pub limited: Vec<String>,
    /// Below the input line: the program continues by itself after the limit.
    pub continues: Vec<String>,
    /// Below the input line: a request failed and is retried.
    pub retrying: Vec<String>,
    /// Directly above the input line: a dialog is about to open.
    pub about_to_ask: Vec<String>,
    /// Start of a message in the conversation, by the person or the agent.
    pub messages: Vec<String>,
    /// An overlay over the conversation, which receives the keys.
    pub overlay: Vec<String>,
    /// Text that the program prints when it exits by itself; `{id}` is its conversation.
    pub farewell: Vec<String>,
    pub spinner: Spinner,
    pub input: Option<InputLine>,
}

/// The line above the input line that shows the activity of a busy program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spinner {
    /// The characters that it can begin with.
    pub signs: String,
    /// Texts of which it must contain one.
    pub says: Vec<String>,
    /// It also shows retries of a failed request.
    pub retries: bool,
}

/// The input line, and how it is told apart from the conversation above it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputLine {
    pub frame: InputFrame,
    /// Prompts before the text, including the blanks before and after them.
    #[serde(default)]
    pub prompts: Vec<String>,
    /// Marks of placeholders that the program shows in an empty line.
    #[serde(default)]
    pub placeholders: Vec<String>,
    /// Marks of labels that stand for a long paste.
    #[serde(default)]
    pub pastes: Vec<String>,
}

/// How an input line is set off from the rest of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputFrame {
    /// Between two horizontal rules.
    Rules,
    /// Below a horizontal rule, with at most one line in between.
    RuleAbove,
    /// A separate paragraph, with one more below it: the footer.
    Paragraph,
    /// A bar at the left of each of its lines, and a foot under the bar.
    Bar,
}

/// Marks at the beginning of the terminal's title.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TitleMarks {
    pub ready: Vec<String>,
    pub busy: Vec<String>,
    pub waiting: Vec<String>,
    /// A title without any mark means neither busy nor waiting.
    pub always: bool,
}

impl TitleMarks {
    /// Returns whether the program shows its state in the title at all.
    pub fn has_marks(&self) -> bool {
        self.always
            || ![&self.ready, &self.busy, &self.waiting]
                .iter()
                .all(|m| m.is_empty())
    }

    /// Returns the first of these marks that the title begins with.
    pub fn first<'m>(marks: &'m [String], title: &str) -> Option<&'m str> {
        let title = title.trim_start();
        let found = marks.iter().find(|mark| title.starts_with(mark.as_str()));
        found.map(String::as_str)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ready {
    /// Timeout for the first prompt.
    pub timeout_seconds: u64,
    /// A fixed delay, for programs without a mark.
    pub settle_ms: u64,
    /// How long the prompt must stay visible, for programs that show it before a dialog.
    pub confirm_ms: u64,
    /// Marks that confirm the prompt at once, so that `confirm_ms` does not apply.
    pub sure: Vec<String>,
}

impl Default for Ready {
    fn default() -> Self {
        Ready {
            timeout_seconds: 60,
            settle_ms: 0,
            confirm_ms: 0,
            sure: Vec::new(),
        }
    }
}

/// Delays that the program needs between a paste and Enter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Typing {
    pub settle_ms: u64,
    /// The delay for texts above 4 KB.
    pub settle_long_ms: u64,
}

/// How to stop a turn of the program without ending the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interrupt {
    /// Pressed one after another, as long as the agent is busy.
    pub keys: Vec<String>,
    /// The program drops a message whose turn is stopped before the answer began.
    pub forgets: bool,
}

impl Default for Interrupt {
    fn default() -> Self {
        Interrupt {
            keys: vec!["C-c".to_owned()],
            forgets: false,
        }
    }
}

/// How the program is asked to exit.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quit {
    pub keys: Vec<String>,
    /// Typed instead of the keys, if that is more reliable.
    pub command: Option<String>,
    /// Timeout before TERM is sent.
    pub seconds: f64,
}

impl Default for Quit {
    fn default() -> Self {
        Quit {
            keys: vec!["C-c".to_owned()],
            command: None,
            seconds: 3.0,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookSettings {
    /// The installer that writes our hooks into the program's settings.
    pub installer: Option<String>,
    /// A failed turn ends with the same hook as a successful one.
    pub hides_failures: bool,
    /// The model gets the output of our hook at the start of a session. Otherwise the first prompt
    /// tells the agent to run `gt prime`.
    pub primes: bool,
    /// A settings file in the folder of a running program that it reloads after a change, so that
    /// our hooks reach a program that we did not start.
    pub live: Option<String>,
}

/// A setting that is written to one of the program's JSON files before its start, so that the
/// program does not ask for it. An existing value stays.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// Relative to the program's own folder (`env.config_dir`), or the home folder.
    pub file: String,
    /// The keys that lead to the value. `{folder}` is the agent's folder.
    pub path: Vec<String>,
    pub value: SeedValue,
    /// Only if one of these variables reaches the agent.
    #[serde(default)]
    pub when_env: Vec<String>,
    /// And only if the variable was given to this agent, not merely inherited.
    #[serde(default)]
    pub when_given: bool,
    /// Only if the agent runs without asking for permission.
    #[serde(default)]
    pub when_never_asks: bool,
    /// Append the value to a list.
    #[serde(default)]
    pub append: bool,
    /// Skip if this list contains the value.
    #[serde(default)]
    pub unless_in: Option<Vec<String>>,
    /// Also replace `false`, because the program writes that itself.
    #[serde(default)]
    pub over_false: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum SeedValue {
    Flag(bool),
    Number(u32),
    Text(String),
    /// The last characters of the variable that is set.
    EndOfVariable {
        last: usize,
    },
}

/// A dialog that is recognised by its text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DialogPattern {
    pub name: String,
    /// Marks of this dialog: any of them is enough.
    pub shows: Vec<String>,
    /// The rows to choose at the start, in order of preference. Without any a person must answer.
    pub choose: Vec<String>,
    /// The rows to choose after a usage limit has ended, in order of preference: rows that neither
    /// buy nor change anything. Without any a person must answer.
    pub resume: Vec<String>,
    /// The texts of its options, if their layout does not identify them.
    pub options: Vec<String>,
}

#[cfg(test)]
mod tests;
