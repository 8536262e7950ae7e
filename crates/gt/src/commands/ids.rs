//! Ids that people type: whole ids of items, messages, merges and escalations, or beginnings of them.

use gt_core::Problem;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::records::items::Work;

/// Returns the id that this text begins.
pub(super) fn full(town: &Town, text: &str) -> Result<WorkId, Problem> {
    Work::of(town).expand(&text.parse()?)
}

/// Returns the ids that these texts begin.
pub(super) fn all(town: &Town, texts: &[String]) -> Result<Vec<WorkId>, Problem> {
    texts.iter().map(|text| full(town, text)).collect()
}
