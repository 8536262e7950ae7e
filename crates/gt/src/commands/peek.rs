use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::terminal::peek;
use serde_json::json;
use std::process::ExitCode;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Show an agent's screen
#[derive(Debug, Args)]
pub(crate) struct PeekArgs {
    /// The agent: its address or a short form of it, its container's name, or a prefix of its
    /// session id
    target: String,
    /// The last N lines, scrollback included [default: the visible screen]
    #[arg(value_name = "N", conflicts_with = "lines")]
    last: Option<u32>,
    /// The last N lines, scrollback included
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u32>,
    /// Keep colours
    #[arg(long)]
    ansi: bool,
}

pub(crate) fn run(args: PeekArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let screen = peek::peek(&town, &identity, args.lines.or(args.last), args.ansi)?;
    if context.json {
        output::json(&json!({
            "agent": identity,
            "container": screen.container,
            "pane": screen.pane.to_string(),
            "title": screen.title,
            "lines": screen.lines,
        }))?;
    } else {
        let mut text = match args.ansi {
            true => screen.lines.join("\n"),
            false => fitted(&screen.lines),
        };
        if args.ansi {
            text.push_str("\u{1b}[0m");
        }
        text.push('\n');
        output::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the last lines of an agent's screen.
pub(crate) fn print_last(town: &Town, identity: &Identity, lines: u32) -> Result<(), Problem> {
    let screen = peek::peek(town, identity, Some(lines), false)?;
    output::print(&format!("{}\n", fitted(&screen.lines)))
}

/// Returns the lines for stdout. On a terminal that is narrower than the pane, rules and gaps are
/// shorter.
fn fitted(lines: &[String]) -> String {
    let Some(columns) = output::terminal_columns() else {
        return lines.join("\n");
    };
    let lines: Vec<String> = lines.iter().map(|line| shortened(line, columns)).collect();
    lines.join("\n")
}

/// Makes the longest run of one sign shorter, so that the line fits. Text is not shortened: a line
/// without such a run stays as it is.
fn shortened(line: &str, columns: usize) -> String {
    let excess = line.width().saturating_sub(columns);
    let signs: Vec<char> = line.chars().collect();
    let is_sign = |sign: char| !sign.is_alphanumeric() && sign.width() == Some(1);
    let runs: Vec<&[char]> = signs.chunk_by(|one, other| one == other).collect();
    let lengths = runs.iter().enumerate().filter(|(_, run)| is_sign(run[0]));
    let longest = lengths.max_by_key(|(_, run)| run.len());
    let Some((at, _)) = longest.filter(|(_, run)| excess > 0 && run.len() > excess) else {
        return line.to_owned();
    };
    let before = runs[..at].iter().copied().flatten();
    let after = runs[at..].iter().copied().flatten().skip(excess);
    before.chain(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_gaps_of_wide_panes_are_shortened_and_text_is_not() {
        for (line, expected) in [
            ("──────────────────", "──────────"),
            ("╭────────────────╮", "╭────────╮"),
            ("│ >              │", "│ >      │"),
            ("idle          3:00", "idle  3:00"),
            ("A text of 18 cells", "A text of 18 cells"),
            ("日本               ", "日本      "),
            ("──────────", "──────────"),
        ] {
            assert_eq!(shortened(line, 10), expected);
        }
    }
}
