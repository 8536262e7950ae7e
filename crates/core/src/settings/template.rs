//! Text of new files: every setting as a comment, with its default and its description.

use super::kind::shown;
use super::{Setting, SettingDefault, SettingKind, SettingScope};
use toml::Value;

/// Width of the comments.
const WIDTH: usize = 96;

/// Returns every setting of a scope as comments. `prefix` stands before the keys; `default` returns
/// a default in TOML that is not that of the table.
pub fn commented(
    scope: SettingScope,
    prefix: &str,
    default: impl Fn(&Setting) -> Option<String>,
) -> String {
    let rows = scope.settings().iter();
    let rows = rows.filter(|row| is_offered(row, scope));
    rows.map(|row| {
        let value = default(row).unwrap_or_else(|| example(row).to_owned());
        described(row, &format!("#{prefix}{} = {value}", row.key))
    })
    .collect()
}

/// Values that `gt init` writes.
#[derive(Clone, Copy, Debug)]
pub struct NewTown<'a> {
    pub name: &'a str,
    pub harness: &'a str,
    pub socket: &'a str,
}

/// Returns the text of a new `town.toml`: the given values, and all other settings as comments.
pub fn town_file(new: NewTown<'_>) -> String {
    let quoted = |text: &str| shown(&Value::from(text));
    let written = [
        ("name", quoted(new.name)),
        ("harness", quoted(new.harness)),
        ("tmux.socket", quoted(new.socket)),
        ("limits.parallel_starts", "8".to_owned()),
        ("limits.hung_after_minutes", "30".to_owned()),
    ];
    let line = |row: &Setting, key: &str| {
        let given = written.iter().find(|(key, _)| *key == row.key);
        let line = match given {
            Some((_, value)) => format!("{key} = {value}"),
            None => format!("#{key} = {}", example(row)),
        };
        described(row, &line)
    };
    let rows = SettingScope::Town.settings();
    let table = |name: &str| {
        let rows = rows.iter();
        let below =
            rows.filter_map(|row| Some((row, row.key.strip_prefix(name)?.strip_prefix('.')?)));
        below.map(|(row, key)| line(row, key)).collect::<String>()
    };
    let is_in_table = |row: &&Setting| {
        ["tmux.", "limits."]
            .iter()
            .any(|it| row.key.starts_with(it))
    };
    let root: String = rows
        .iter()
        .filter(|row| !is_in_table(row))
        .map(|row| line(row, row.key))
        .collect();
    let head = "The settings of a town of gt. A line such as `#key = value` is a setting that is not \
                set: it shows the default, or an example if there is no default value. To set it, \
                remove the #, or run `gt config set KEY VALUE`. `gt config list` shows the values in \
                effect.";
    let rigs = "Settings of one rig. Replace NAME by its name.";
    [
        comment(head),
        "\n".to_owned(),
        root,
        comment(rigs),
        "\n".to_owned(),
        commented(SettingScope::Rig, "rigs.NAME.", |_| None),
        format!("[tmux]\n{}", table("tmux")),
        format!("[limits]\n{}", table("limits").trim_end()),
        "\n".to_owned(),
    ]
    .concat()
}

/// Returns whether a row can be written as one line.
fn is_offered(row: &Setting, scope: SettingScope) -> bool {
    let is_required = matches!(row.default, SettingDefault::Required);
    !is_required && !matches!(row.kind, SettingKind::Tables) && !row.is_field(scope)
}

/// Returns a setting below its description.
fn described(row: &Setting, line: &str) -> String {
    let default = match row.default {
        SettingDefault::Absent { means, .. } => format!(" Default: {means}."),
        SettingDefault::Town(key) => format!(" Default: {key} of the town."),
        _ => String::new(),
    };
    let about = format!("{}{default}", row.described());
    format!("{}{line}\n\n", comment(&about))
}

fn example(row: &Setting) -> &'static str {
    match row.default {
        SettingDefault::Value(text) => text,
        SettingDefault::Absent { example, .. } => example,
        SettingDefault::Town(key) => {
            let mut town = SettingScope::Town.settings().iter();
            town.find(|row| row.key == key).map_or("\"\"", example)
        }
        SettingDefault::Required => "\"\"",
    }
}

/// Returns a text as lines that begin with `# `.
fn comment(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("# {line}\n")).collect()
}
