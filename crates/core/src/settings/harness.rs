//! Settings of a harness: `harnesses/<name>.toml`. The built-in preset overrides the defaults.

use super::SettingKind::{Boolean, Choice, ChoiceOr, Map, SeedValue, Tables, Text, Texts};
use super::kind::{AMOUNT, NUMBER};
use super::project::{BUILTIN, PATTERNS, required};
use super::{Setting, absent, value};

const INSTALLERS: &[&str] = &["claude", "codex", "gemini", "opencode"];
const NONE: (&str, &str) = ("none", "\"…\"");

/// Returns a row of a list of texts that is empty by default.
const fn list(key: &'static str, about: &'static str) -> Setting {
    value(key, Texts, "[]", about)
}

/// Returns a row that is off by default.
const fn flag(key: &'static str, about: &'static str) -> Setting {
    value(key, Boolean, "false", about)
}

pub(super) const ROWS: &[Setting] = &[
    value(
        "name",
        Text,
        "\"\"",
        "The name by which it is chosen; empty means the file's name.",
    ),
    value("title", Text, "\"\"", "The name for people."),
    absent("homepage", Text, NONE, "The project's own page."),
    absent(
        "install",
        Text,
        NONE,
        "How to install the program: the hint when it is missing.",
    ),
    absent(
        "model",
        Text,
        ("the program's", "\"opus\""),
        "The model, unless the caller, the project or the role names another.",
    ),
    value(
        "command.program",
        Text,
        "\"\"",
        "The program, which is looked up on the PATH.",
    ),
    list("command.args", "Arguments that are always given."),
    list(
        "command.skip_permissions",
        "Arguments for running without asking for permission.",
    ),
    list(
        "command.ask_permissions",
        "Arguments for asking for permission, if the program does not ask by default.",
    ),
    flag(
        "command.cannot_ask",
        "The program has no mode that asks for permission.",
    ),
    list(
        "command.trust_folder",
        "Arguments that make the program trust {folder}.",
    ),
    list(
        "command.model_args",
        "Arguments that choose the model, {model}.",
    ),
    list(
        "command.version",
        "Arguments that make it print its version.",
    ),
    value(
        "command.prompt",
        Choice(&["positional", "flag", "typed"]),
        "\"positional\"",
        "How the first prompt reaches the program.",
    ),
    absent(
        "command.prompt_flag",
        Text,
        ("none", "\"--prompt\""),
        "The option before the prompt, with prompt = \"flag\".",
    ),
    list(
        "command.settings",
        "Arguments that pass our settings file, {file}.",
    ),
    list(
        "command.session_id",
        "Arguments that give a new conversation the id {id}.",
    ),
    list(
        "command.resume",
        "Arguments that resume the conversation {id}.",
    ),
    list(
        "command.continue",
        "Arguments that continue the newest conversation of the folder.",
    ),
    list(
        "command.fork",
        "Arguments that continue a copy of the conversation {id}.",
    ),
    list(
        "command.print",
        "Arguments after fork: answer {prompt} on standard output and end.",
    ),
    list(
        "process.names",
        "Process names by which a live agent is recognised.",
    ),
    flag(
        "process.relaunches",
        "The program re-executes itself as a child process.",
    ),
    value(
        "env.set",
        Map(&Text),
        "{}",
        "Environment variables with their values.",
    ),
    value(
        "env.ask_permissions",
        Map(&Text),
        "{}",
        "Environment variables that are also set when the program is to ask for permission.",
    ),
    list("env.clear", "Environment variables that are set to empty."),
    list(
        "env.pass",
        "Environment variables of yours that the program gets.",
    ),
    absent(
        "env.config_dir",
        Text,
        ("none", "\"MY_AGENT_HOME\""),
        "The variable that names the program's configuration folder.",
    ),
    list("screen.ready", "Marks of a screen that waits for a prompt."),
    list(
        "screen.busy",
        "Marks below the input line of a program that works.",
    ),
    list("screen.waiting", "Marks of a dialog that asks something."),
    list(
        "screen.error",
        "Marks of a failed turn, in the last message.",
    ),
    list(
        "screen.error_above",
        "Marks of lines that end a failed turn, below a framed error.",
    ),
    list(
        "screen.interrupted",
        "Marks of an interrupted turn, in the last message.",
    ),
    list(
        "screen.background",
        "Marks of a turn that is over while its task still runs.",
    ),
    list(
        "screen.limited",
        "Marks of a turn that ended at a usage limit.",
    ),
    list(
        "screen.continues",
        "Marks below the input line: it continues by itself after the limit.",
    ),
    list(
        "screen.retrying",
        "Marks below the input line: a failed request is sent again.",
    ),
    list(
        "screen.about_to_ask",
        "Marks directly above the input line: a dialog is about to open.",
    ),
    list(
        "screen.messages",
        "Marks that begin a message of the conversation.",
    ),
    list(
        "screen.overlay",
        "Marks of a window over the screen that has the keys.",
    ),
    list(
        "screen.farewell",
        "Texts that the program prints when it exits by itself.",
    ),
    value(
        "screen.spinner.signs",
        Text,
        "\"\"",
        "Characters with which the line of a busy program begins.",
    ),
    list(
        "screen.spinner.says",
        "Marks of which that line must match one.",
    ),
    flag(
        "screen.spinner.retries",
        "That line also shows retries of a failed request.",
    ),
    required(
        "screen.input.frame",
        Choice(&["rules", "rule-above", "paragraph", "bar"]),
        "How the input line is set off from the rest; required in [screen.input].",
    ),
    list(
        "screen.input.prompts",
        "Texts before the input, from the first column on.",
    ),
    list(
        "screen.input.placeholders",
        "Marks of texts that the program shows in an empty line.",
    ),
    list(
        "screen.input.pastes",
        "Marks of labels that stand for a long paste.",
    ),
    list(
        "title_marks.ready",
        "Beginnings of the terminal's title when it waits for a prompt.",
    ),
    list(
        "title_marks.busy",
        "Beginnings of the terminal's title when it works.",
    ),
    list(
        "title_marks.waiting",
        "Beginnings of the terminal's title when it asks something.",
    ),
    flag(
        "title_marks.always",
        "A title without any mark means neither busy nor waiting.",
    ),
    value(
        "ready.timeout_seconds",
        NUMBER,
        "60",
        "Timeout for the first prompt.",
    ),
    value(
        "ready.settle_ms",
        NUMBER,
        "0",
        "A fixed delay, for programs without a mark.",
    ),
    value(
        "ready.confirm_ms",
        NUMBER,
        "0",
        "Milliseconds that the prompt must stay visible.",
    ),
    list("ready.sure", "Marks that confirm the prompt at once."),
    value(
        "typing.settle_ms",
        NUMBER,
        "0",
        "Milliseconds between a paste and Enter.",
    ),
    value(
        "typing.settle_long_ms",
        NUMBER,
        "0",
        "Milliseconds between a paste above 4 KB and Enter.",
    ),
    value(
        "interrupt.keys",
        Texts,
        "[\"C-c\"]",
        "Keys that stop a turn without ending the program.",
    ),
    flag(
        "interrupt.forgets",
        "The program forgets a message whose turn is stopped before the answer began.",
    ),
    value("quit.keys", Texts, "[\"C-c\"]", "Keys that make it exit."),
    absent(
        "quit.command",
        Text,
        ("none", "\"/exit\""),
        "Text that is typed instead of the keys.",
    ),
    value(
        "quit.seconds",
        AMOUNT,
        "3.0",
        "Seconds before TERM is sent.",
    ),
    list(
        "repository.files",
        "Settings of the program in a repository; they need a person's approval.",
    ),
    list(
        "repository.ignore",
        "Arguments with which the program ignores these settings.",
    ),
    list(
        "sandbox.folders",
        "Folders that the program writes inside a sandbox, relative to the home folder.",
    ),
    list(
        "sandbox.files",
        "Files that the program writes inside a sandbox, relative to the home folder.",
    ),
    list(
        "sandbox.hosts",
        "Hosts that the program needs inside a strict sandbox.",
    ),
    value(
        "sandbox.env",
        Map(&Text),
        "{}",
        "Variables that are set inside a sandbox.",
    ),
    absent(
        "hooks.installer",
        ChoiceOr(INSTALLERS, "an empty text for none"),
        ("none", "\"claude\""),
        "How the program gets our hooks.",
    ),
    flag(
        "hooks.hides_failures",
        "A failed turn ends with the same hook as a successful one.",
    ),
    flag(
        "hooks.primes",
        "The model gets the output of our hook at the start of a session.",
    ),
    absent(
        "hooks.live",
        Text,
        ("none", "\".my-agent/settings.json\""),
        "A settings file that a running program reloads after a change.",
    ),
    absent(
        "usage.format",
        Choice(INSTALLERS),
        ("nothing is counted", "\"claude\""),
        "Format of the transcripts from which tokens are counted.",
    ),
    absent(
        "usage.variable",
        Text,
        ("that of env.config_dir", "\"MY_AGENT_HOME\""),
        "The variable that names the folder of the transcripts.",
    ),
    value(
        "usage.folder",
        Text,
        "\"\"",
        "That folder if the variable is not set.",
    ),
    list("usage.files", "The transcripts in that folder."),
    list("usage.beside", "More files of the same conversation."),
    value(
        "seeds",
        Tables,
        "[]",
        "Answers that are written to the program's JSON files before its start.",
    ),
    required(
        "seeds.file",
        Text,
        "The file, relative to the program's own folder or the home folder.",
    ),
    required("seeds.path", Texts, "The keys that lead to the value."),
    required("seeds.value", SeedValue, "The value."),
    list(
        "seeds.when_env",
        "Only if one of these variables reaches the agent.",
    ),
    flag(
        "seeds.when_given",
        "Only if the variable was given to this agent by name.",
    ),
    flag(
        "seeds.when_never_asks",
        "Only if the agent runs without asking for permission.",
    ),
    flag("seeds.append", "Append the value to a list."),
    absent(
        "seeds.unless_in",
        Texts,
        ("none", "[\"rejected\"]"),
        "Skip if this list contains the value.",
    ),
    flag("seeds.over_false", "Also replace false."),
    value(
        "dialogs",
        Tables,
        "[]",
        "Dialogs that are recognised by their text.",
    ),
    value(
        "dialogs.name",
        Text,
        "\"\"",
        "The dialog's name, for messages and scripts.",
    ),
    list(
        "dialogs.shows",
        "Marks of this dialog: any of them is enough.",
    ),
    list(
        "dialogs.choose",
        "The rows to choose at the start, in order of preference.",
    ),
    list(
        "dialogs.resume",
        "The rows to choose after a usage limit has ended.",
    ),
    list(
        "dialogs.options",
        "The texts of its options, if their layout does not identify them.",
    ),
    value(
        "failures",
        Tables,
        "[]",
        "Reasons why the program may exit at once, with hints.",
    ),
    required(
        "failures.shows",
        Texts,
        "Marks of this failure: any of them is enough.",
    ),
    required("failures.hint", Text, "The hint of the error message."),
    BUILTIN,
    PATTERNS[0],
    PATTERNS[1],
    PATTERNS[2],
    PATTERNS[3],
    PATTERNS[4],
];
