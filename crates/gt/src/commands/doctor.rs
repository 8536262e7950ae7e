use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::capability::Capability;
use gt_town::views::doctor::{self, CheckStatus};
use std::process::ExitCode;

/// Check the machine and the town
///
/// tmux, git, agent programs, the socket, permissions, free space, journal, index, work items and
/// their backups, every rig and agent, and leftovers of killed processes. The exit code is 1 if a
/// check fails.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired without losing data
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(args: DoctorArgs, context: &Context) -> CommandResult {
    let town = context.town();
    if let (true, Ok(town)) = (args.fix, &town) {
        town.check_town_capability(Capability::Config)?;
    }
    let findings = doctor::examine(town, context.around(), args.fix);
    let worst = findings
        .iter()
        .any(|finding| finding.status == CheckStatus::Error);
    if context.json {
        output::json(&findings)?;
    } else {
        let paint = Paint::for_stdout();
        for finding in &findings {
            let sign = match finding.status {
                CheckStatus::Ok => paint.green("✓"),
                CheckStatus::Warning => paint.yellow("!"),
                CheckStatus::Error => paint.red("✗"),
            };
            output::line(format!("{sign} {}: {}", finding.check, finding.message))?;
            if let Some(hint) = &finding.hint {
                output::line(format!("  {} {hint}", paint.cyan("hint:")))?;
            }
        }
        if !args.fix && findings.iter().any(|finding| finding.fixable) {
            output::line("`gt doctor --fix` repairs some of this.")?;
        }
    }
    Ok(ExitCode::from(u8::from(worst)))
}
