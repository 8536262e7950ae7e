//! Plays the recording of a session, or exports it for other programs.

use super::player::{Pace, Player};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::cast::view::PlainView;
use gt_core::cast::{CastContent, CastEvent};
use gt_core::record::{Record, SessionStep};
use gt_core::{Problem, Role};
use gt_town::Town;
use gt_town::base::files;
use gt_town::catalog::roles;
use gt_town::records::sessions::Sessions;
use gt_town::terminal::recording::{Recording, Recordings, Summary};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::path::PathBuf;

/// Play the recording of a session in this terminal
///
/// Space pauses and continues, `.` shows the next event of a paused recording, `q` or Ctrl-C ends
/// it. If stdout is not a terminal, the text is printed at once. Sequences that affect more than
/// the screen (clipboard, titles, terminal queries) are filtered. With --json the recording is only
/// described.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The session's id, or a prefix of it
    id: String,
    /// Playback speed as a factor; 0 is the same as --dump
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = number)]
    speed: f64,
    /// Maximum length of a pause in seconds; 0 keeps the original pauses
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = number)]
    idle_limit: f64,
    /// Only one step: its name, its reference or its number in `gt step list`
    ///
    /// A terminal first gets all earlier output at once, so that the screen is correct.
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// Write everything at once, in the form for a terminal
    #[arg(long)]
    dump: bool,
    /// Write it as one asciicast v2 file, unchanged; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dump", "speed", "idle_limit", "step"])]
    export: Option<PathBuf>,
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number),
        false => Err("it cannot be less than 0".to_owned()),
    }
}

pub(super) fn run(
    args: &ReplayArgs,
    town: &Town,
    sessions: &Sessions,
    context: &Context,
) -> Result<(), Problem> {
    let session = sessions.get(&args.id)?;
    let recording = Recordings::of(town)
        .find(&session.id)?
        .ok_or_else(|| not_recorded(town, &session))?;
    if let Some(file) = &args.export {
        if file == Path::new("-") {
            return export(&recording, None).map(drop);
        }
        let file = context.around().current_dir.join(file);
        let summary = export(&recording, Some(&file))?;
        return match context.json {
            true => output::json(&document(&session, &file, &summary)),
            false => Ok(()),
        };
    }
    let step = args.step.as_deref();
    let step = step
        .map(|wanted| find_step(sessions, &session, wanted))
        .transpose()?;
    let span = match &step {
        Some(step) => span(step, &recording)?,
        None => Span::ALL,
    };
    if context.json {
        let summary = summary(&recording, span)?;
        let mut document = document(&session, recording.path(), &summary);
        document["bytes"] = json!(recording.bytes());
        if let Some(step) = &step {
            document["step"] = json!(step);
        }
        return output::json(&document);
    }
    let is_terminal = std::io::stdout().is_terminal();
    if !is_terminal && !args.dump {
        return print_text(&recording, span);
    }
    let is_at_once = args.dump || args.speed == 0.0;
    let pace = (!is_at_once).then_some(Pace {
        speed: args.speed,
        longest_pause: Some(args.idle_limit).filter(|limit| *limit > 0.0),
    });
    if is_terminal && pace.is_some() {
        warn_if_too_small(&recording)?;
    }
    context.catch_interrupts();
    Player::new(pace, span, &context.around().cancel).play(&recording)
}

/// Part of a recording, in seconds since its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Span {
    const ALL: Span = Span {
        from: 0.0,
        to: f64::INFINITY,
    };

    fn holds(&self, at: f64) -> bool {
        (self.from..=self.to).contains(&at)
    }
}

fn find_step(sessions: &Sessions, session: &Record, wanted: &str) -> Result<SessionStep, Problem> {
    let told = sessions.steps(&session.id)?;
    let steps = match told.is_empty() {
        true => session.steps.clone().unwrap_or_default(),
        false => told,
    };
    let number = wanted.parse::<usize>().ok();
    // The last step of a name: a step may have been started again.
    let named =
        |step: &&SessionStep| step.name == wanted || step.reference.as_deref() == Some(wanted);
    let named = steps.iter().rev().find(named);
    let numbered = || steps.get(number?.checked_sub(1)?);
    named.or_else(numbered).cloned().ok_or_else(|| {
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let problem = Problem::not_found(format!("{} has no step {wanted:?}", session.id));
        match names.is_empty() {
            true => problem.hint("it reported no steps; agents do so with `gt step start NAME`"),
            false => problem.hint(format!("its steps: {}", names.join(", "))),
        }
    })
}

/// Returns the position of a step in the recording. Begins one second earlier, because the start
/// time of a recording has a resolution of one second.
fn span(step: &SessionStep, recording: &Recording) -> Result<Span, Problem> {
    let unknown = || Problem::failed("the recording does not say when it began");
    let began = recording.header()?.timestamp.ok_or_else(unknown)?;
    let seconds = |time: &str| {
        let time: jiff::Timestamp = time.parse().ok()?;
        let since = time.as_millisecond() - began.checked_mul(1000)?;
        Some(jiff::SignedDuration::from_millis(since).as_secs_f64())
    };
    let from = seconds(&step.started_at).ok_or_else(unknown)?;
    let to = step.completed_at.as_deref().and_then(seconds);
    Ok(Span {
        from: (from - 1.0).max(0.0),
        to: to.unwrap_or(f64::INFINITY),
    })
}

fn document(session: &Record, file: &Path, summary: &Summary) -> serde_json::Value {
    json!({
        "id": session.id,
        "agent": session.agent,
        "file": file,
        "events": summary.events,
        "seconds": summary.seconds,
        "missing_bytes": summary.missing,
    })
}

fn not_recorded(town: &Town, session: &Record) -> Problem {
    let problem = Problem::not_found(format!("there is no recording of {}", session.id));
    let Some(role) = session.role.as_deref().and_then(Role::from_word) else {
        return problem;
    };
    let is_on = roles::resolve(town, role, session.rig.as_deref())
        .is_ok_and(|role| role.value.record.enabled);
    match is_on {
        true => problem.hint(
            "it began before recording was switched on, or ended longer ago than \
             keep_recordings_days in town.toml",
        ),
        false => problem.hint(format!(
            "sessions of the role {role} are recorded from the next start on with \
             `[record]` and `enabled = true` in {}",
            town.root().join(format!("roles/{role}.toml")).display()
        )),
    }
}

/// Writes the recording as one file or to stdout, with continuous times across its parts.
fn export(recording: &Recording, file: Option<&Path>) -> Result<Summary, Problem> {
    let mut summary = Summary::default();
    let mut trouble = Ok(());
    let mut write_to = |out: &mut dyn Write| -> std::io::Result<()> {
        let written = write_cast(recording, out, &mut summary);
        // A read error has another type than a write error.
        match written {
            Ok(written) => written,
            Err(problem) => {
                trouble = Err(problem);
                Err(std::io::Error::other("the recording cannot be read"))
            }
        }
    };
    let written = match file {
        None => match write_to(&mut BufWriter::new(std::io::stdout().lock())) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|e| Problem::failed("cannot write the answer").caused_by(e)),
        },
        // A pipe or a device must not be replaced by a file.
        Some(file) if file.metadata().is_ok_and(|meta| !meta.is_file()) => {
            let opened = OpenOptions::new().write(true).open(file);
            let written = opened.and_then(|file| write_to(&mut BufWriter::new(file)));
            written.map_err(|error| files::io_problem("write", file, &error))
        }
        Some(file) => files::write_whole_with(file, |out| write_to(out)),
    };
    trouble.and(written).map(|()| summary)
}

fn write_cast(
    recording: &Recording,
    out: &mut dyn Write,
    summary: &mut Summary,
) -> Result<std::io::Result<()>, Problem> {
    let mut written = out.write_all(recording.header()?.line().as_bytes());
    if written.is_ok() {
        recording.for_each(|event| {
            summary.add(&event);
            written = out.write_all(event.line().as_bytes());
            Ok(match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        })?;
    }
    Ok(written.and_then(|()| out.flush()))
}

/// Summarises a part of the recording. `seconds` is the time from the part's first event to its
/// last.
fn summary(recording: &Recording, span: Span) -> Result<Summary, Problem> {
    let mut summary = Summary::default();
    let mut first = None;
    recording.for_each(|event| {
        if span.holds(event.at) {
            first.get_or_insert(event.at);
            summary.add(&event);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if span.from > 0.0 {
        summary.seconds -= first.unwrap_or_default();
    }
    Ok(summary)
}

/// Prints only the text, for files and pipes.
fn print_text(recording: &Recording, span: Span) -> Result<(), Problem> {
    let mut plain = PlainView::default();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut written = Ok(());
    recording.for_each(|CastEvent { at, what }| {
        if !span.holds(at) {
            return Ok(ControlFlow::Continue(()));
        }
        let text = match (&what, what.remark_text()) {
            (CastContent::Output(text), _) => plain.push(text),
            (_, Some(remark)) => format!("{}[{remark}]\n", plain.interrupt()),
            _ => String::new(),
        };
        written = out.write_all(text.as_bytes());
        Ok(match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
    })?;
    written = written.and_then(|()| out.write_all(plain.interrupt().as_bytes()));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Problem::failed("cannot write the answer").caused_by(error))
        }
        _ => Ok(()),
    }
}

fn warn_if_too_small(recording: &Recording) -> Result<(), Problem> {
    let header = recording.header()?;
    let here = rustix::termios::tcgetwinsize(std::io::stdout());
    if here.is_ok_and(|here| here.ws_col < header.width || here.ws_row < header.height) {
        output::warn(format!(
            "it was recorded with {} columns and {} rows; this terminal has another size",
            header.width, header.height
        ));
    }
    Ok(())
}
