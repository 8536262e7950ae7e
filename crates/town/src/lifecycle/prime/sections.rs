//! The sections of the text for an agent.

use super::Primed;
use crate::base::files;
use crate::catalog::{harnesses, roles};
use crate::messaging::mail;
use crate::repo::workspace;
use crate::work::matters;
use crate::work::molecule::{self, MoleculeStatus};
use crate::{Result, Town};
use gt_core::beacon;
use gt_core::checkpoint::Checkpoint;
use gt_core::digest;
use gt_core::handoff::Marker;
use gt_core::harness::PromptStyle;
use gt_core::mail::KIND;
use gt_core::prime::{self, PrimeState, Section, Weight};
use gt_core::record::{Outcome, Record};
use gt_core::work::Item;
use gt_core::{Identity, Problem};
use std::fmt::Write;
use std::path::PathBuf;

pub(super) fn of(town: &Town, primed: &Primed) -> Result<Vec<Section>> {
    let is_brief = primed.reminder.is_some();
    let mut sections = vec![who(primed)];
    if let Some(marker) = &primed.marker {
        let is_over = primed.state == PrimeState::PostHandoff;
        sections.extend(is_over.then(|| handed_over(marker)));
    }
    if !is_brief {
        sections.push(role(town, primed));
        sections.extend(instructions(town, primed));
    }
    if let Some(hooked) = &primed.hooked {
        sections.push(match (is_brief, hooked.item.kind == KIND) {
            (_, true) => mail_of_before(&hooked.item),
            (true, false) => reminder(&hooked.item),
            (false, false) => work(&hooked.item),
        });
    }
    let mail = primed
        .hooked
        .as_ref()
        .and_then(|hooked| hooked.mail.as_ref());
    sections.extend(mail.map(mail_of_before));
    if primed.state == PrimeState::CrashRecovery {
        sections.push(in_flight(primed));
    }
    sections.extend(decisions(town, primed)?);
    let molecule = molecule::status(town, &primed.agent)?;
    sections.extend(molecule.map(|status| steps(&status, is_brief)));
    sections.extend(messages(town, primed)?);
    sections.push(directive(primed));
    Ok(sections)
}

fn section(name: &'static str, weight: Weight, source: &str, whole: &str, text: String) -> Section {
    Section {
        name,
        source: source.to_owned(),
        text: text.trim_end().to_owned(),
        weight,
        whole: whole.to_owned(),
    }
}

fn who(primed: &Primed) -> Section {
    let text = format!("# You are {}", primed.agent);
    section("identity", Weight::Must, "the town", "gt prime", text)
}

fn handed_over(marker: &Marker) -> Section {
    let reason = marker
        .reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(" ({reason})"));
    let text = format!(
        "The handoff is DONE: your previous session handed over to you at {}{reason}. Where its words ask for a \
         handoff (`/handoff`, `gt handoff`), they were meant for it: do not hand over again because of them.",
        marker.at
    );
    section(
        "handoff",
        Weight::Must,
        "the marker of the handoff",
        "gt prime",
        text,
    )
}

/// Returns the role's text: the rig's, the town's, or the built-in one. An unreadable part does not
/// hide the others.
fn role(town: &Town, primed: &Primed) -> Section {
    let agent = &primed.agent;
    let mut broken = Vec::new();
    let (source, text) = template(town, agent, &mut broken);
    let config = roles::resolve(town, agent.role(), agent.rig());
    let work_dir = config.and_then(|role| workspace::path(town, agent, &role.value));
    let session = primed.session.as_ref();
    let work_dir = work_dir.unwrap_or_else(|problem| {
        broken.push(problem);
        let cwd = session
            .and_then(|session| session.cwd.as_ref())
            .map(PathBuf::from);
        let builtin = || {
            // The problem with the role is in the text already.
            let role = agent.role().resolve(&[]).ok()?.value;
            workspace::path(town, agent, &role).ok()
        };
        cwd.or_else(builtin).unwrap_or_else(|| "its folder".into())
    });
    let branch = session
        .and_then(|session| session.branch.clone())
        .unwrap_or_else(|| workspace::branch(agent));
    let filled = prime::fill(
        &text,
        &[
            ("agent", &agent.address()),
            ("name", agent.short_name()),
            ("rig", agent.rig().unwrap_or("the town")),
            ("town", town.root_text()),
            ("work_dir", &work_dir.to_string_lossy()),
            ("branch", &branch),
        ],
    );
    let mut told = String::new();
    for problem in &broken {
        let line = problem.line();
        let _ = writeln!(
            told,
            "({line}. This part of your instructions is missing: tell the person who runs you.)\n"
        );
    }
    section(
        "role",
        Weight::Low,
        &source,
        "gt prime --section role",
        told + &filled,
    )
}

/// Returns the first prompt of the session, if its program got only a reference to it.
fn instructions(town: &Town, primed: &Primed) -> Option<Section> {
    let session = primed.session.as_ref()?;
    let prompt = session.initial_prompt.as_deref()?;
    let is_short = beacon::argument(prompt) == prompt;
    // A preset that cannot be read stops the start of an agent, not its text.
    let preset = harnesses::resolve(town, session.harness.as_deref()?).ok()?;
    if is_short || preset.value.command.prompt == PromptStyle::Typed {
        return None;
    }
    let text = format!("## Your instructions\n\n{prompt}");
    Some(section(
        "instructions",
        Weight::Must,
        "the start",
        "gt prime --section instructions",
        text,
    ))
}

/// Returns the template of the role, and its source.
fn template(town: &Town, agent: &Identity, broken: &mut Vec<Problem>) -> (String, String) {
    let file = format!("{}.md", agent.role().as_str());
    let rig = agent.rig().map(|rig| town.root().join(rig));
    for folder in rig.into_iter().chain([town.root().to_owned()]) {
        let path = folder.join("templates").join(&file);
        match files::read_if_there(&path) {
            Ok(Some(text)) => return (path.display().to_string(), text),
            Ok(None) => {}
            Err(problem) => broken.push(problem),
        }
    }
    let text = prime::template(agent.role());
    ("built-in".to_owned(), text.to_owned())
}

fn work(item: &Item) -> Section {
    let mut text = format!(
        "## Your work: {} {}\n({}, priority {})\n",
        item.id, item.title, item.kind, item.priority
    );
    for (what, words) in [("", &item.body()), ("Notes:\n", &item.notes)] {
        if !words.trim().is_empty() {
            let _ = write!(text, "\n{what}{}\n", words.trim_end());
        }
    }
    section("work", Weight::High, "the hook", "gt hook", text)
}

/// Returns the handoff message of an earlier session.
fn mail_of_before(item: &Item) -> Section {
    let text = format!(
        "## Left to you: {} ({})\n\n{}\n",
        item.title,
        item.id,
        item.description.trim_end()
    );
    section(
        "letter",
        Weight::High,
        "the message on the hook",
        "gt hook",
        text,
    )
}

fn reminder(item: &Item) -> Section {
    let text = format!(
        "On your hook: {} {} (`gt hook` shows it).",
        item.id, item.title
    );
    section("work", Weight::High, "the hook", "gt hook", text)
}

/// Returns the state of the previous session at its end.
fn in_flight(primed: &Primed) -> Section {
    let mut text = String::from("## What was in flight\n");
    if let Some(before) = &primed.before {
        let _ = writeln!(text, "{}", end_of(before));
    }
    match &primed.checkpoint {
        Some((checkpoint, age)) => checkpoint_lines(&mut text, checkpoint, *age),
        None => text.push_str("It left no checkpoint: the worktree says how far it came.\n"),
    }
    section(
        "checkpoint",
        Weight::High,
        "the checkpoint, and the journal of sessions",
        "gt checkpoint read",
        text,
    )
}

fn end_of(session: &Record) -> String {
    let how = match session.outcome {
        Some(Outcome::Crash) => "ended by a crash",
        Some(Outcome::Killed | Outcome::Stopped) => "was stopped",
        Some(Outcome::Exited) => "exited",
        _ => "ended",
    };
    let at = session.ended_at.as_deref().unwrap_or("an unknown time");
    format!("Your previous session {how}, at {at}.")
}

fn checkpoint_lines(text: &mut String, checkpoint: &Checkpoint, age: i64) {
    let minutes = age.max(0) / 60;
    let age = match minutes {
        0..60 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    };
    let _ = writeln!(text, "Found a {}.", checkpoint.summary(&age));
    if let Some(notes) = &checkpoint.notes {
        let _ = writeln!(text, "It noted: {notes}");
    }
    if let Some(commit) = &checkpoint.last_commit {
        let _ = writeln!(text, "Its last commit: {commit}");
    }
    for file in &checkpoint.modified_files {
        let _ = writeln!(text, "- {file}");
    }
}

fn steps(status: &MoleculeStatus, is_brief: bool) -> Section {
    let text = match is_brief {
        true => format!("{}. `gt mol status` shows its steps.", status.line()),
        false => format!("## Your molecule\n{}", status.text()),
    };
    section(
        "molecule",
        Weight::Middle,
        "the molecule",
        "gt mol status",
        text,
    )
}

/// Returns the matters that a role agent has to decide.
fn decisions(town: &Town, primed: &Primed) -> Result<Option<Section>> {
    if digest::row_of(primed.agent.role()).is_none() {
        return Ok(None);
    }
    let text = digest::overview(&primed.agent, &matters::collect(town)?);
    Ok(text.map(|text| {
        section(
            "decisions",
            Weight::High,
            "open escalations and merges",
            "gt escalate list",
            format!("## To decide\n{text}"),
        )
    }))
}

/// Returns the unread mail. Messages from before this session are marked, because an earlier
/// session may have handled them.
fn messages(town: &Town, primed: &Primed) -> Result<Option<Section>> {
    const MAX: usize = 10;
    let (count, unread) = mail::unread_summary(town, &mail::mailbox(&primed.agent), MAX)?;
    if count == 0 {
        return Ok(None);
    }
    let session = primed
        .session
        .as_ref()
        .and_then(|session| session.id.parse().ok());
    let mut text = format!("## Mail: {count} unread\n");
    for mail in &unread {
        let stale = session
            .as_ref()
            .and_then(|session| mail::stale_reason(mail, session))
            .map_or("", |_| ", from before this session");
        let _ = writeln!(
            text,
            "- {} from {}: {} (priority {}{stale})",
            mail.id, mail.sender, mail.subject, mail.priority
        );
    }
    text.push_str("`gt mail read ID` shows one.\n");
    let whole = "gt mail inbox";
    Ok(Some(section(
        "mail",
        Weight::Middle,
        "the mailbox",
        whole,
        text,
    )))
}

/// Returns the instruction for the agent.
fn directive(primed: &Primed) -> Section {
    let has_work = primed
        .hooked
        .as_ref()
        .is_some_and(|it| it.item.kind != KIND);
    let without_work = primed.agent.role().without_work();
    let text = match (primed.reminder, primed.state, primed.hooked.is_some()) {
        (Some(reminder), _, _) => reminder.directive().to_owned(),
        (_, PrimeState::CrashRecovery, _) => {
            "## Begin now\nLook at `git status` and `git log` first: the changes there are your own work. Then continue \
             where it stopped, without asking and without waiting."
                .to_owned()
        }
        (_, _, true) if has_work => {
            "## Begin now\nThe item on your hook is your work. Begin at once, without asking and without waiting."
                .to_owned()
        }
        (_, _, true) => format!(
            "## Now\nOnly a message is on your hook, and no work item. Continue the unfinished work in the message that \
             belongs to your role. Items that it lists as ready are not assigned: do not begin one that you were not \
             given. Then look at `gt mail inbox`, and if no mail asks you to do something, {without_work}."
        ),
        (_, _, false) => format!(
            "## Now\nNothing is on your hook. Look at `gt mail inbox`; if no mail asks you to do something, {without_work}."
        ),
    };
    section("directive", Weight::Must, "the state", "gt prime", text)
}
