//! The manual contains exactly the keys of the table.

use crate::keys::{self, KeyMode};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- keys: made from crates/board/src/keys/table.rs -->\n";
const END: &str = "<!-- end of keys -->\n";

/// Returns the tables of the manual.
fn tables() -> String {
    let mut text = String::from(BEGIN);
    for mode in KeyMode::ALL {
        let has_commands = keys::rows(mode).any(|row| row.command.is_some());
        let _ = write!(text, "\n### {}\n\n", mode.title());
        text.push_str(match has_commands {
            true => "| key | | command |\n| --- | --- | --- |\n",
            false => "| key | |\n| --- | --- |\n",
        });
        for row in keys::rows(mode) {
            let keys: Vec<String> = row.keys().map(|key| format!("`{key}`")).collect();
            let _ = write!(text, "| {} | {} |", keys.join(" "), row.help);
            if has_commands {
                let command = row.command.map(|command| format!(" `{command}` "));
                let _ = write!(text, "{}|", command.as_deref().unwrap_or(" "));
            }
            text.push('\n');
        }
    }
    text.push('\n');
    text.push_str(END);
    text
}

#[test]
fn the_manual_has_the_keys_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/board.md");
    let manual = std::fs::read_to_string(&path).expect("docs/board.md");
    let (before, rest) = manual.split_once(BEGIN).expect("the beginning of the keys");
    let (_, after) = rest.split_once(END).expect("their end");
    let tables = tables();
    let wanted = format!("{before}{tables}{after}");
    if std::env::var_os("GT_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("docs/board.md can be written");
        return;
    }
    assert!(
        manual == wanted,
        "GT_UPDATE_DOCS=1 cargo test -p gt-board the_manual writes it:\n{tables}"
    );
}
