//! Harness presets: one row per agent program.
//!
//! A preset says how a program is started, recognised, read and asked to leave.
//! The built-in ones are embedded TOML files; a town overrides single fields or
//! adds programs in `harnesses/<name>.toml`. `docs/harnesses.md` explains every
//! key.

mod transcripts;

pub use transcripts::Transcripts;

use crate::overlay::{Layer, Overlaid, overlay};
use crate::patterns::Rules;
use crate::problem::Problem;
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

/// The names of the built-in presets, in the order of the table.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// The text of a built-in preset.
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
        return Err(
            Problem::not_found(format!("there is no harness called {name:?}"))
                .hint("`gt harness list` shows those there are")
                .hint(format!("a town adds its own in harnesses/{name}.toml")),
        );
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

/// An agent program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preset {
    pub name: String,
    pub title: String,
    pub homepage: Option<String>,
    /// How to install it: the hint when it is missing.
    pub install: Option<String>,
    pub command: Command,
    pub process: Process,
    pub env: Env,
    pub screen: Screen,
    pub title_marks: TitleMarks,
    pub ready: Ready,
    pub typing: Typing,
    pub interrupt: Interrupt,
    pub quit: Quit,
    pub hooks: Hooks,
    pub usage: Transcripts,
    pub seeds: Vec<Seed>,
    pub dialogs: Vec<Dialog>,
    pub failures: Vec<Failure>,
    pub states: Rules,
}

/// Why the program may end at once, and what helps.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// It is this failure when any of these marks is in its last lines.
    pub shows: Vec<String>,
    pub hint: String,
}

impl Preset {
    /// What helps against the failure that these lines show.
    pub fn hint_for(&self, lines: &[impl AsRef<str>]) -> Option<&str> {
        let shows = |mark: &String| {
            let mut lines = lines.iter();
            lines.any(|line| crate::screen::matches(line.as_ref(), mark))
        };
        let mut failures = self.failures.iter();
        let found = failures.find(|failure| failure.shows.iter().any(shows));
        found.map(|failure| failure.hint.as_str())
    }

    /// Whether its screen can show that a turn is held up: a request is sent again, or a
    /// dialog is open of which no hook tells.
    pub fn shows_delays(&self) -> bool {
        let is_untold = |dialog: &Dialog| matches!(dialog.name.as_str(), LIMIT | RETRY);
        let screen = &self.screen;
        !screen.retrying.is_empty() || screen.spinner.retries || self.dialogs.iter().any(is_untold)
    }
}

/// The name of a dialog that asks what to do at a usage limit.
pub(crate) const LIMIT: &str = "limit";
/// The name of a dialog that asks whether a request that failed is sent again.
pub(crate) const RETRY: &str = "retry";

/// How the program is called. `{id}` and `{file}` are filled in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Command {
    /// Looked up on `PATH`; `{gt}` is our own binary.
    pub program: String,
    pub args: Vec<String>,
    /// Given as well when the role runs without asking for permission.
    pub skip_permissions: Vec<String>,
    /// Given instead when it is to ask for permission, where it would not by itself.
    pub ask_permissions: Vec<String>,
    /// The program has no mode that asks for permission: a start that demands it fails.
    pub cannot_ask: bool,
    /// Given as well when the role's dialogs at the start are answered: trust in the
    /// agent's folder, which is `{folder}` in quotes.
    pub trust_folder: Vec<String>,
    pub version: Vec<String>,
    pub prompt: PromptStyle,
    pub prompt_flag: Option<String>,
    pub settings: Vec<String>,
    pub session_id: Vec<String>,
    pub resume: Vec<String>,
    pub r#continue: Vec<String>,
    pub fork: Vec<String>,
    /// Given after `fork` to answer one prompt, `{prompt}`, and end.
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
pub struct Process {
    /// Names by which a live agent is known in the pane's process tree.
    pub names: Vec<String>,
    /// It re-executes itself as a child.
    pub relaunches: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Env {
    pub set: BTreeMap<String, String>,
    /// Set as well when it is to ask for permission.
    pub ask_permissions: BTreeMap<String, String>,
    /// Set to empty, so that a nested program does not think itself inside another.
    pub clear: Vec<String>,
    /// Taken over from the environment of `gt` where set. May be secret.
    pub pass: Vec<String>,
    /// The variable that names the program's configuration folder.
    pub config_dir: Option<String>,
}

/// Marks on the screen; see [`crate::screen::matches`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Screen {
    pub ready: Vec<String>,
    pub busy: Vec<String>,
    pub waiting: Vec<String>,
    pub error: Vec<String>,
    /// Lines that end a failed turn, where the error is a framed block above them.
    pub error_above: Vec<String>,
    /// The last turn was stopped by a person.
    pub interrupted: Vec<String>,
    /// The turn is over, and something it started goes on.
    pub background: Vec<String>,
    /// The last turn ended at a usage limit.
    pub limited: Vec<String>,
    /// Beneath the input line: it goes on by itself after the limit.
    pub continues: Vec<String>,
    /// Beneath the input line: a request failed, and is sent again.
    pub retrying: Vec<String>,
    /// Directly above the input line: a dialog is about to open.
    pub about_to_ask: Vec<String>,
    /// What begins a message of the conversation, the person's or the agent's.
    pub messages: Vec<String>,
    /// A window over the conversation, which has the keys.
    pub overlay: Vec<String>,
    /// What the program prints when it leaves by itself; `{id}` is its conversation.
    pub farewell: Vec<String>,
    pub spinner: Spinner,
    pub input: Option<InputLine>,
}

/// The line above the input line that says what a busy program does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spinner {
    /// One of these signs begins it.
    pub signs: String,
    /// And it contains one of these.
    pub says: Vec<String>,
    /// It also says when a request failed and is sent again.
    pub retries: bool,
}

/// Where a person types, and how it is told from the conversation above it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputLine {
    pub frame: Frame,
    /// What stands before the text, with the blanks before and after it.
    #[serde(default)]
    pub prompts: Vec<String>,
    /// Marks of texts that the program shows in an empty line.
    #[serde(default)]
    pub placeholders: Vec<String>,
    /// Marks of texts that stand for a long paste.
    #[serde(default)]
    pub pastes: Vec<String>,
}

/// How an input line is set off from the rest of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frame {
    /// Between two horizontal rules.
    Rules,
    /// A horizontal rule above it, with at most one line in between.
    RuleAbove,
    /// A paragraph of its own, with one more beneath it: the footer.
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
    /// A title without any of them says that it is neither busy nor waiting.
    pub always: bool,
}

impl TitleMarks {
    /// Whether the program says its state in the title at all.
    pub fn says_anything(&self) -> bool {
        self.always
            || ![&self.ready, &self.busy, &self.waiting]
                .iter()
                .all(|m| m.is_empty())
    }

    /// The first of these marks that a title begins with.
    pub fn first<'m>(marks: &'m [String], title: &str) -> Option<&'m str> {
        let title = title.trim_start();
        let found = marks.iter().find(|mark| title.starts_with(mark.as_str()));
        found.map(String::as_str)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ready {
    /// How long the first prompt may take, at worst.
    pub timeout_seconds: u64,
    /// A wait instead of a mark, for programs without any.
    pub settle_ms: u64,
    /// How long the prompt must stay, for programs that show it before they ask something.
    pub confirm_ms: u64,
    /// Marks that make a prompt sure, so that it need not be watched for so long.
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

/// What the program needs between a paste and Enter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Typing {
    pub settle_ms: u64,
    /// The same for texts above 4 KB.
    pub settle_long_ms: u64,
}

/// How a turn of the program is stopped, and nothing else: the program stays.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interrupt {
    /// Pressed one after another, as long as it works.
    pub keys: Vec<String>,
    /// It forgets a message whose turn is stopped before its answer began.
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

/// How the program is asked to leave by itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quit {
    pub keys: Vec<String>,
    /// Typed instead of the keys, where that works better.
    pub command: Option<String>,
    /// How long it gets before it is sent TERM.
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
pub struct Hooks {
    /// Which installer writes our hooks into the program's settings.
    pub installer: Option<String>,
    /// A turn that failed ends with the hook of one that did not.
    pub hides_failures: bool,
    /// What our hook says when a session begins, the model is told. Where it is not, the
    /// first prompt sends the agent to `gt prime`.
    pub primes: bool,
    /// A settings file in the folder of a running program that it reads again when it
    /// changes, so that our hooks reach a program that we did not start.
    pub live: Option<String>,
}

/// An answer that is written into one of the program's JSON files before it asks, if
/// nothing stands there yet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// Under the program's own folder (`env.config_dir`), or the home folder.
    pub file: String,
    /// The keys that lead to it. `{folder}` is the agent's.
    pub path: Vec<String>,
    pub value: SeedValue,
    /// Only if one of these variables reaches the agent.
    #[serde(default)]
    pub when_env: Vec<String>,
    /// And only if somebody gave it to this agent, not if it was merely there.
    #[serde(default)]
    pub when_given: bool,
    /// Only if it runs without asking for permission.
    #[serde(default)]
    pub when_never_asks: bool,
    /// It is one of a list.
    #[serde(default)]
    pub append: bool,
    /// Not if that list has it.
    #[serde(default)]
    pub unless_in: Option<Vec<String>>,
    /// Also where `false` stands, because the program writes that by itself.
    #[serde(default)]
    pub over_false: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum SeedValue {
    Flag(bool),
    Text(String),
    /// The last characters of the variable that is set.
    EndOfVariable {
        last: usize,
    },
}

/// A dialog that is known by what it shows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialog {
    pub name: String,
    /// It is this dialog when any of these shows.
    pub shows: Vec<String>,
    /// The row to choose at the start: the first of these that is there. Without
    /// any the answer is left to a person.
    pub choose: Vec<String>,
    /// The texts of its choices, where their form does not tell them from the rest.
    pub options: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_preset_reads_and_says_how_it_is_known() {
        for name in builtin_names() {
            let preset = resolve(name, None)
                .unwrap_or_else(|p| panic!("{name}: {p} {:?}", p.causes()))
                .value;
            assert_eq!(preset.name, name);
            assert!(!preset.title.is_empty(), "{name}");
            assert!(!preset.process.names.is_empty(), "{name}");
            assert_eq!(
                preset.command.prompt == PromptStyle::Flag,
                preset.command.prompt_flag.is_some(),
                "{name}: a prompt flag goes with that style"
            );
            assert_eq!(
                preset.usage.format.is_some(),
                !preset.usage.files.is_empty(),
                "{name}: who knows how to read knows where"
            );
            for dialog in &preset.dialogs {
                assert!(
                    !dialog.name.is_empty() && !dialog.shows.is_empty(),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_town_overrides_one_field_or_adds_a_program() {
        let layer = |text| {
            Some(Layer {
                source: "harnesses/x.toml",
                text,
            })
        };
        let claude = resolve("claude", layer("[command]\nargs = ['--verbose']\n"))
            .unwrap()
            .value;
        assert_eq!(claude.command.args, ["--verbose"]);
        assert_eq!(claude.command.program, "claude");
        let own = resolve("x", layer("[command]\nprogram = 'x-agent'\n"))
            .unwrap()
            .value;
        assert_eq!(
            (own.name.as_str(), own.command.program.as_str()),
            ("x", "x-agent")
        );
        assert!(resolve("x", layer("title = 'X'\n")).is_err());
        assert!(resolve("nope", None).is_err());
    }
}
