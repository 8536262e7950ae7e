//! Statistics of an event file.

use crate::Result;
use crate::base::lines::Lines;
use crate::records::events::EventStamp;
use gt_core::event::Policy;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// Statistics of one event file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileStats {
    pub file: String,
    pub events: u64,
    pub bytes: u64,
    /// Events that a prune may remove.
    pub expired: u64,
    /// Lines that are not events.
    pub damaged: u64,
    /// Sorted by count, largest first.
    pub types: Vec<KindStats>,
}

/// The events of one type.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KindStats {
    #[serde(rename = "type")]
    pub kind: String,
    pub count: u64,
    pub oldest: String,
    pub newest: String,
    /// Average remaining value, from 1 (new) to 0.
    pub value: f64,
    pub bytes: u64,
    pub expired: u64,
}

pub(super) fn of_file(lines: &Lines, policy: &Policy, now: Timestamp) -> Result<FileStats> {
    let name = lines.path().file_name().unwrap_or_default();
    let mut stats = FileStats {
        file: name.to_string_lossy().into_owned(),
        bytes: lines.length(),
        ..FileStats::default()
    };
    let mut types: BTreeMap<String, KindStats> = BTreeMap::new();
    lines.read_from(0, |line| {
        let dated = EventStamp::read(line).and_then(|event| Some((event.time()?, event)));
        let Some((at, event)) = dated else {
            stats.damaged += 1;
            return Ok(());
        };
        let age = now.as_second() - at.as_second();
        let is_expired = u64::from(policy.is_expired(&event.kind, age));
        stats.events += 1;
        stats.expired += is_expired;
        let kind = match types.get_mut(event.kind.as_ref()) {
            Some(kind) => kind,
            None => types.entry(event.kind.to_string()).or_default(),
        };
        kind.count += 1;
        kind.expired += is_expired;
        kind.bytes += line.len() as u64;
        kind.value += policy.value(&event.kind, age);
        if kind.oldest.is_empty() || event.text() < kind.oldest.as_str() {
            event.text().clone_into(&mut kind.oldest);
        }
        if event.text() > kind.newest.as_str() {
            event.text().clone_into(&mut kind.newest);
        }
        Ok(())
    })?;
    stats.types = types
        .into_iter()
        .map(|(name, kind)| KindStats {
            kind: name,
            #[expect(
                clippy::cast_precision_loss,
                reason = "a mean is not better for the last bit of a count"
            )]
            value: kind.value / kind.count as f64,
            ..kind
        })
        .collect();
    stats
        .types
        .sort_by_key(|kind| std::cmp::Reverse(kind.count));
    Ok(stats)
}
