//! Ids that people type: ids of items, messages, merges and escalations, or unique prefixes of
//! them.

use gt_core::Problem;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::records::items::Work;

/// Returns the id with this prefix.
pub(super) fn full(town: &Town, text: &str) -> Result<WorkId, Problem> {
    Work::of(town).expand(&text.parse()?)
}

/// Returns the ids with these prefixes.
pub(super) fn all(town: &Town, texts: &[String]) -> Result<Vec<WorkId>, Problem> {
    texts.iter().map(|text| full(town, text)).collect()
}
