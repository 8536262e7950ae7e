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

/// Returns the id with this prefix. Returns the text if it is no id, or that of a deleted item.
pub(super) fn full_or_text(town: &Town, text: &str) -> Result<String, Problem> {
    match text.parse() {
        Ok(id) => Ok(Work::of(town).expand(&id)?.to_string()),
        Err(_) => Ok(text.to_owned()),
    }
}

/// Returns the ids with these prefixes.
pub(super) fn all(town: &Town, texts: &[String]) -> Result<Vec<WorkId>, Problem> {
    texts.iter().map(|text| full(town, text)).collect()
}

/// Returns the id of the message with this prefix.
pub(super) fn message(town: &Town, text: &str) -> Result<WorkId, Problem> {
    if text.parse::<WorkId>().is_err() {
        return Err(
            Problem::usage(format!("{text:?} is not the id of a message"))
                .hint("such as hq-50yhm: `gt mail inbox` shows them"),
        );
    }
    full(town, text)
}
