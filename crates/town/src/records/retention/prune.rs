//! Removes lines from a file that other processes append to.

use crate::Result;
use crate::base::clock::Clock;
use crate::base::files;
use crate::base::lines::{Backwards, Lines, whole_length};
use crate::base::settings::KrcSettings;
use crate::records::events::{self, EventStamp, Events};
use gt_core::Caller;
use gt_core::Problem;
use gt_core::event::{ChainBreak, ChainVerifier, Event, FileHash, Policy};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Type of the event that each prune writes. These events do not count towards the minimum number
/// of events to keep and do not cause a prune: otherwise repeated prunes would displace all other
/// events.
pub(crate) const MARKER: &str = "krc_prune";

/// Result of a prune, or of a dry run.
#[derive(Clone, Debug, Serialize)]
pub struct Pruned {
    pub dry_run: bool,
    pub files: Vec<PrunedFile>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PrunedFile {
    pub file: String,
    pub removed: u64,
    pub kept: u64,
    /// Lines that are not events. They are removed too.
    pub damaged: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// Prunes the log and the feed. The caller holds the retention lock.
pub(super) fn prune_log_and_feed(
    events: &Events,
    settings: &KrcSettings,
    dry_run: bool,
    clock: &Clock,
) -> Result<Pruned> {
    let policy = settings.policy();
    let mut pruned = Pruned {
        dry_run,
        files: Vec::new(),
    };
    for (lines, is_log) in [(events.log(), true), (events.feed(), false)] {
        let name = lines.path().file_name().unwrap_or_default();
        let mut told = PrunedFile {
            file: name.to_string_lossy().into_owned(),
            ..PrunedFile::default()
        };
        if let Some(mut file) = lines.open()? {
            // The prune must not hide that the log was changed. One read verifies and plans.
            let mut verifier = is_log.then(|| events.verifier()).transpose()?;
            let plan = PrunePlan::of(
                lines,
                &mut file,
                &policy,
                settings.minimum_kept,
                clock.seconds(),
                verifier.as_mut(),
            )?;
            let broken = verifier.and_then(|verifier| verifier.finish().broken);
            plan.add_to(&mut told);
            if !dry_run && plan.changes() {
                let anchor = is_log.then_some(AnchorFacts {
                    events,
                    broken: broken.as_ref(),
                    clock,
                });
                told.bytes_after = replace(events, lines, &mut file, &plan, anchor.as_ref())?;
            }
        }
        pruned.files.push(told);
    }
    Ok(pruned)
}

/// The parts of a file that stay.
struct PrunePlan {
    /// The byte ranges that stay, as start and end.
    spans: Vec<(u64, u64)>,
    /// Position up to which the file was read.
    end: u64,
    removed: u64,
    kept: u64,
    damaged: u64,
}

impl PrunePlan {
    fn of(
        lines: &Lines,
        file: &mut File,
        policy: &Policy,
        minimum: usize,
        now: i64,
        mut verifier: Option<&mut ChainVerifier>,
    ) -> Result<Self> {
        let cannot = |error| files::io_problem("read", lines.path(), &error);
        let length = file.metadata().map_err(cannot)?.len();
        let newest = newest_from(file, length, minimum).map_err(cannot)?;
        let mut plan = PrunePlan {
            spans: Vec::new(),
            end: 0,
            removed: 0,
            kept: 0,
            damaged: 0,
        };
        lines.read_file(file, 0, |line| {
            let begin = plan.end;
            plan.end += line.len() as u64;
            if let Some(verifier) = &mut verifier {
                verifier.add(line);
            }
            let event = EventStamp::read(line);
            let at = event.as_ref().and_then(EventStamp::time);
            match (event, at) {
                (Some(event), Some(at)) => {
                    let is_old = policy.is_expired(&event.kind, now - at.as_second());
                    let is_marker = u64::from(event.kind == MARKER);
                    if is_old && (begin < newest || is_marker == 1) {
                        plan.removed += 1 - is_marker;
                    } else {
                        plan.kept += 1 - is_marker;
                        plan.keep(begin);
                    }
                }
                _ => plan.damaged += 1,
            }
            Ok::<(), Problem>(())
        })?;
        Ok(plan)
    }

    /// Keeps the line from `begin` to the current position.
    fn keep(&mut self, begin: u64) {
        match self.spans.last_mut() {
            Some((_, end)) if *end == begin => *end = self.end,
            _ => self.spans.push((begin, self.end)),
        }
    }

    fn changes(&self) -> bool {
        self.removed > 0 || self.damaged > 0
    }

    fn add_to(&self, told: &mut PrunedFile) {
        told.removed = self.removed;
        told.kept = self.kept;
        told.damaged = self.damaged;
        told.bytes_before = self.end;
        told.bytes_after = self.spans.iter().map(|(begin, end)| end - begin).sum();
    }
}

/// Returns the position at which the newest `minimum` events begin.
fn newest_from(file: &File, length: u64, minimum: usize) -> io::Result<u64> {
    let mut lines = Backwards::before(file, length)?;
    let (mut count, mut from) = (0, length);
    while count < minimum {
        let Some((at, line)) = lines.next_line()? else {
            return Ok(0);
        };
        if EventStamp::read(&line).is_some_and(|event| event.kind != MARKER) {
            count += 1;
            from = at;
        }
    }
    Ok(from)
}

/// Replaces the file with the lines that stay and the lines that were appended since it was read.
/// Returns the new length.
fn replace(
    events: &Events,
    lines: &Lines,
    old: &mut File,
    plan: &PrunePlan,
    anchor: Option<&AnchorFacts<'_>>,
) -> Result<u64> {
    let path = lines.path();
    // The name is fixed, so that the next prune overwrites the leftovers of a crash.
    let beside = path.with_extension("jsonl.prune");
    let written = write_beside(&beside, old, plan)
        .map_err(|error| files::io_problem("write", &beside, &error))
        .and_then(|new| {
            let _lock = events.lock()?;
            finish(new, &beside, path, old, plan, anchor)
        });
    if written.is_err() {
        // If this fails, the next prune overwrites the leftover.
        let _ = files::remove_if_there(&beside);
    }
    written
}

/// The input of the event about a prune, which is the anchor of the log's chain.
struct AnchorFacts<'a> {
    events: &'a Events,
    /// The break of the chain before the prune.
    broken: Option<&'a ChainBreak>,
    clock: &'a Clock,
}

/// A writer that hashes what it writes.
struct HashingWriter {
    file: BufWriter<File>,
    hash: FileHash,
}

impl Write for HashingWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let length = self.file.write(text)?;
        self.hash.add(text.get(..length).unwrap_or_default());
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn write_beside(beside: &Path, old: &mut File, plan: &PrunePlan) -> io::Result<HashingWriter> {
    let new = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(beside)?;
    let mut new = HashingWriter {
        file: BufWriter::with_capacity(1 << 18, new),
        hash: FileHash::default(),
    };
    for (begin, end) in &plan.spans {
        copy(old, *begin, *end, &mut new)?;
    }
    new.flush()?;
    // Outside the lock, so that writers do not wait for the disk.
    new.file.get_ref().sync_data()?;
    Ok(new)
}

/// Completes the replacement under the writers' lock.
fn finish(
    mut new: HashingWriter,
    beside: &Path,
    path: &Path,
    old: &mut File,
    plan: &PrunePlan,
    anchor: Option<&AnchorFacts<'_>>,
) -> Result<u64> {
    let cannot = |error| files::io_problem("replace", path, &error);
    let meta = old.metadata().map_err(cannot)?;
    let whole = whole_length(old, meta.len()).map_err(cannot)?;
    copy(old, plan.end, whole, &mut new).map_err(cannot)?;
    let mut chain = None;
    if let Some(anchor) = anchor {
        let told = Event {
            ts: anchor.clock.text(),
            ..Event::new(MARKER, Caller::Gt)
                .with("removed", plan.removed)
                .with("damaged", plan.damaged)
                .with("replaced", meta.ino())
                .with_break(anchor.broken)
        };
        let chain = chain.insert(anchor.events.open_chain_of(old)?);
        let line = chain.head.seal_anchor(&events::line(&told)?, &new.hash);
        new.write_all(&line).map_err(cannot)?;
    }
    let mut put_in_place = || -> io::Result<u64> {
        new.flush()?;
        new.file.get_ref().sync_data()?;
        std::fs::rename(beside, path)?;
        Ok(new.file.get_ref().metadata()?.len())
    };
    let length = put_in_place().map_err(cannot)?;
    if let (Some(anchor), Some(chain)) = (anchor, chain) {
        anchor.events.store_head(&chain);
    }
    Ok(length)
}

fn copy(from: &mut File, begin: u64, end: u64, to: &mut impl Write) -> io::Result<()> {
    from.seek(SeekFrom::Start(begin))?;
    let length = end.saturating_sub(begin);
    let copied = io::copy(&mut io::Read::take(from, length), to)?;
    match copied == length {
        true => Ok(()),
        false => Err(io::Error::other("the file became shorter meanwhile")),
    }
}
