//! Usage of a session: tokens, and their cost.
//!
//! Each agent program writes transcripts in a separate format. This module parses them line by line
//! and without I/O: a [`TranscriptProgress`] takes lines, adds them up, and can be stored between
//! two reads of the same file, so that the second continues where the first stopped. The engine
//! finds the files and decides when to read them; [`crate::price`] has the prices.
//!
//! One file may hold several sessions, because a conversation can be resumed, and a fork begins
//! with a copy of its origin. So a session counts only the lines with a time inside its [`UsageWindow`].
//!
//! Claude Code also writes lines with the conversation's cost (`cost-state`). They are ignored:
//! their total continues across sessions and forks, they have no time, and a killed program writes
//! none.

mod claude;
mod codex;
pub mod daily;
mod gemini;
pub mod opencode;
mod prompt;

pub use daily::DailyUsage;
pub use prompt::is_prompt;

use crate::price::Prices;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::{AddAssign, Sub};

/// Number of recent answers that may still change: the lines of one answer follow each other
/// closely, but those of concurrent answers are interleaved.
const RECENT: usize = 64;

/// Tokens of a session, and their cost. Input excludes what was read from a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// Model of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Cost of all tokens whose price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens that are not included in the cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_tokens: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Returns the sum of all tokens.
    pub fn tokens(&self) -> u64 {
        [
            self.output_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
        ]
        .into_iter()
        .fold(self.input_tokens, u64::saturating_add)
    }

    /// Rounds the cost to a billionth of a dollar, to remove floating-point noise of sums.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        self.cost_usd = self.cost_usd.map(|cost| (cost * 1e9).round() / 1e9);
        self
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, more: &Usage) {
        for (sum, more) in [
            (&mut self.input_tokens, more.input_tokens),
            (&mut self.output_tokens, more.output_tokens),
            (&mut self.cache_read_tokens, more.cache_read_tokens),
            (&mut self.cache_write_tokens, more.cache_write_tokens),
            (&mut self.unpriced_tokens, more.unpriced_tokens),
        ] {
            *sum = sum.saturating_add(more);
        }
        if more.model.is_some() {
            self.model.clone_from(&more.model);
        }
        if let Some(cost) = more.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
    }
}

impl Sub<&Usage> for Usage {
    type Output = Usage;

    /// Subtracts a part, saturating at zero.
    fn sub(mut self, part: &Usage) -> Usage {
        for (rest, part) in [
            (&mut self.input_tokens, part.input_tokens),
            (&mut self.output_tokens, part.output_tokens),
            (&mut self.cache_read_tokens, part.cache_read_tokens),
            (&mut self.cache_write_tokens, part.cache_write_tokens),
            (&mut self.unpriced_tokens, part.unpriced_tokens),
        ] {
            *rest = rest.saturating_sub(part);
        }
        let part = part.cost_usd.unwrap_or_default();
        self.cost_usd = self.cost_usd.map(|cost| (cost - part).max(0.0));
        self
    }
}

/// Tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Number of written tokens that stay in the cache for an hour, which costs more.
    pub cache_write_1h: u64,
}

/// One answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelAnswer {
    /// Id of the answer. Later lines with the same id update it.
    pub id: Option<String>,
    pub model: String,
    pub tokens: Tokens,
    /// Cost that the program itself computed.
    pub cost: Option<f64>,
}

/// Format of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Claude,
    Codex,
    Gemini,
    /// A database; [`opencode::answer`] parses its rows.
    Opencode,
}

impl Format {
    /// Returns whether a transcript is of a conversation in this folder, judging by its first line.
    /// Always false for formats without the folder in that line; those transcripts are found by
    /// their id.
    pub fn is_of_folder(self, first_line: &str, folder: &str, sha256_of_folder: &str) -> bool {
        match self {
            Format::Codex => codex::folder(first_line).is_some_and(|own| own == folder),
            Format::Gemini => {
                gemini::project(first_line).is_some_and(|own| own == sha256_of_folder)
            }
            Format::Claude | Format::Opencode => false,
        }
    }
}

/// Period that counts for a session. Times are RFC 3339 in UTC with milliseconds, as all the
/// programs write them, so they can be compared as strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageWindow {
    pub since: String,
    /// Absent while the session runs.
    pub until: Option<String>,
    /// Offset of the local time zone, for the day of an answer.
    pub utc_offset_seconds: i32,
}

impl UsageWindow {
    fn holds(&self, at: &str) -> bool {
        at >= self.since.as_str() && self.until.as_deref().is_none_or(|until| at <= until)
    }

    /// Returns the local day of a time in UTC.
    pub fn day(&self, at: &str) -> String {
        daily::local_day(at, self.utc_offset_seconds)
    }
}

/// Progress in one transcript. Its size does not grow with the transcript's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TranscriptProgress {
    /// Usage of answers that no longer change.
    settled: Usage,
    /// The settled usage by day and model.
    settled_daily: Vec<DailyUsage>,
    recent: VecDeque<Recent>,
    /// State that earlier lines set for later ones; only Codex needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    codex: Option<codex::CodexContext>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Recent {
    id: String,
    day: String,
    usage: Usage,
}

impl TranscriptProgress {
    /// Reads one line. Ignores a line that it cannot parse: the format belongs to another program,
    /// and the next release may change it.
    pub fn line(&mut self, format: Format, line: &str, window: &UsageWindow, prices: &Prices) {
        let found = match format {
            Format::Claude => claude::answer(line),
            Format::Codex => self.codex.get_or_insert_default().answer(line),
            Format::Gemini => gemini::answer(line),
            Format::Opencode => None,
        };
        if let Some((at, answer)) = found.filter(|(at, _)| window.holds(at)) {
            self.count(answer, &window.day(&at), prices);
        }
    }

    /// Counts an answer of a day, or replaces the figures of an answer that was counted already.
    pub fn count(&mut self, answer: ModelAnswer, day: &str, prices: &Prices) {
        let usage = priced(&answer, prices);
        if usage.tokens() == 0 {
            return;
        }
        let Some(id) = answer.id else {
            self.settle(day, &usage);
            return;
        };
        if let Some(known) = self.recent.iter_mut().find(|known| known.id == id) {
            known.usage = usage;
            return;
        }
        let day = day.to_owned();
        self.recent.push_back(Recent { id, day, usage });
        if self.recent.len() > RECENT
            && let Some(old) = self.recent.pop_front()
        {
            self.settle(&old.day, &old.usage);
        }
    }

    fn settle(&mut self, day: &str, usage: &Usage) {
        self.settled += usage;
        daily::add(&mut self.settled_daily, &DailyUsage::of(day, usage));
    }

    /// Returns the usage so far.
    pub fn usage(&self) -> Usage {
        let mut sum = self.settled.clone();
        for recent in &self.recent {
            sum += &recent.usage;
        }
        sum.rounded()
    }

    /// Returns the usage so far by day and model.
    pub fn daily(&self) -> Vec<DailyUsage> {
        let mut parts = self.settled_daily.clone();
        for recent in &self.recent {
            daily::add(&mut parts, &DailyUsage::of(&recent.day, &recent.usage));
        }
        parts
    }
}

fn priced(answer: &ModelAnswer, prices: &Prices) -> Usage {
    let tokens = answer.tokens;
    let mut usage = Usage {
        input_tokens: tokens.input,
        output_tokens: tokens.output,
        cache_read_tokens: tokens.cache_read,
        cache_write_tokens: tokens.cache_write,
        model: Some(answer.model.clone()).filter(|model| !model.is_empty()),
        cost_usd: answer
            .cost
            .or_else(|| prices.cost(&answer.model, &answer.tokens)),
        unpriced_tokens: 0,
    };
    if usage.cost_usd.is_none() {
        usage.unpriced_tokens = usage.tokens();
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: &str = "2026-11-17";

    fn answer(id: Option<&str>, output: u64) -> ModelAnswer {
        ModelAnswer {
            id: id.map(str::to_owned),
            model: "claude-opus-4-5".to_owned(),
            tokens: Tokens {
                output,
                ..Tokens::default()
            },
            cost: None,
        }
    }

    #[test]
    fn an_answer_counts_once_with_its_newest_figures() {
        let prices = Prices::builtin();
        let mut reading = TranscriptProgress::default();
        reading.count(answer(Some("a"), 1), DAY, &prices);
        reading.count(answer(Some("b"), 2), DAY, &prices);
        reading.count(answer(Some("a"), 100), DAY, &prices);
        assert_eq!(reading.usage().output_tokens, 102);
        // It can be stored and continued.
        let text = serde_json::to_string(&reading).unwrap();
        let mut reading: TranscriptProgress = serde_json::from_str(&text).unwrap();
        reading.count(answer(Some("a"), 101), DAY, &prices);
        assert_eq!(reading.usage().output_tokens, 103);
        let cost = reading.usage().cost_usd.unwrap();
        assert!((cost - 103.0 * 25e-6).abs() < 1e-12, "{cost}");
    }

    #[test]
    fn stored_progress_does_not_grow() {
        let prices = Prices::builtin();
        let mut reading = TranscriptProgress::default();
        for n in 0..10_000 {
            reading.count(answer(Some(&format!("msg_{n}")), 1), DAY, &prices);
            reading.count(answer(None, 1), DAY, &prices);
        }
        assert_eq!(reading.usage().output_tokens, 20_000);
        assert_eq!(reading.daily().len(), 1);
        assert_eq!(reading.daily()[0].tokens, 20_000);
        assert!(serde_json::to_string(&reading).unwrap().len() < 32_768);
    }

    #[test]
    fn without_a_price_there_is_no_cost() {
        let prices = Prices::builtin();
        let mut reading = TranscriptProgress::default();
        let unknown = |cost| ModelAnswer {
            model: "gpt-unheard-of".to_owned(),
            cost,
            ..answer(None, 7)
        };
        reading.count(unknown(None), DAY, &prices);
        assert_eq!(reading.usage().cost_usd, None);
        assert_eq!(reading.usage().unpriced_tokens, 7);
        // The program's own cost counts, and unpriced tokens do not hide it.
        reading.count(unknown(Some(0.5)), DAY, &prices);
        assert_eq!(reading.usage().cost_usd, Some(0.5));
        assert_eq!(reading.usage().unpriced_tokens, 7);
        assert_eq!(reading.usage().model.as_deref(), Some("gpt-unheard-of"));
    }
}
