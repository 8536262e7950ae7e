//! Usage by day and model, for costs and budgets.
//!
//! A session may run for days, and programs use several models in one conversation. The total of a
//! [`Usage`] tells neither, so readers of transcripts also keep one [`DailyUsage`] per day and
//! model.

use super::Usage;
use serde::{Deserialize, Serialize};

/// Usage of one model on one day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DailyUsage {
    /// Local date, such as `2026-11-17`.
    pub day: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub tokens: u64,
    /// Tokens that are not included in the cost.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub unpriced_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl DailyUsage {
    pub fn of(day: &str, usage: &Usage) -> Self {
        DailyUsage {
            day: day.to_owned(),
            model: usage.model.clone(),
            tokens: usage.tokens(),
            unpriced_tokens: usage.unpriced_tokens,
            cost_usd: usage.cost_usd,
        }
    }
}

/// Adds a part to the part of its day and model, or appends it.
pub fn add(parts: &mut Vec<DailyUsage>, part: &DailyUsage) {
    let is_same = |known: &&mut DailyUsage| known.day == part.day && known.model == part.model;
    let Some(known) = parts.iter_mut().find(is_same) else {
        parts.push(part.clone());
        return;
    };
    known.tokens = known.tokens.saturating_add(part.tokens);
    known.unpriced_tokens = known.unpriced_tokens.saturating_add(part.unpriced_tokens);
    let costs = known.cost_usd.into_iter().chain(part.cost_usd);
    known.cost_usd = costs
        .reduce(|a, b| a + b)
        .map(|cost| (cost * 1e9).round() / 1e9);
}

/// Returns the local date of a time in UTC (RFC 3339), by the offset of the time zone.
pub(super) fn local_day(at: &str, utc_offset_seconds: i32) -> String {
    let number = |range| {
        at.get(range)
            .and_then(|digits: &str| digits.parse::<i64>().ok())
    };
    let fields = || {
        let date = (number(0..4)?, number(5..7)?, number(8..10)?);
        Some((date, number(11..13)?, number(14..16)?, number(17..19)?))
    };
    let Some(((year, month, day), hour, minute, second)) = fields() else {
        return at.get(..10).unwrap_or(at).to_owned();
    };
    let second_of_day = hour * 3_600 + minute * 60 + second + i64::from(utc_offset_seconds);
    let days = days_since_epoch(year, month, day) + second_of_day.div_euclid(86_400);
    let (year, month, day) = date_of(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns the days from 1970-01-01 to a date. The year begins in March, so that a leap day is its
/// last day.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Inverts [`days_since_epoch`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = match month < 10 {
        true => (month + 3, 0),
        false => (month - 9, 1),
    };
    (era * 400 + year + carry, month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_follows_the_time_zone() {
        for (at, offset, expected) in [
            ("2026-11-17T12:00:00.000Z", 0, "2026-11-17"),
            ("2026-11-17T23:30:00.000Z", 3_600, "2026-11-18"),
            ("2026-11-17T00:30:00.000Z", -3_600, "2026-11-16"),
            ("2026-12-31T23:59:59.999Z", 60, "2027-01-01"),
            ("2028-02-28T23:00:00.000Z", 7_200, "2028-02-29"),
            ("2028-03-01T00:00:00.000Z", -1, "2028-02-29"),
            ("2100-02-28T23:00:00.000Z", 7_200, "2100-03-01"),
            ("1970-01-01T00:00:00.000Z", -1, "1969-12-31"),
            ("", 0, ""),
            ("nonsense", 0, "nonsense"),
        ] {
            assert_eq!(local_day(at, offset), expected, "{at} {offset}");
        }
    }

    #[test]
    fn parts_of_one_day_and_model_are_added() {
        let part = |day: &str, model: &str, tokens, cost_usd| DailyUsage {
            day: day.to_owned(),
            model: Some(model.to_owned()),
            tokens,
            cost_usd,
            ..DailyUsage::default()
        };
        let mut parts = Vec::new();
        add(&mut parts, &part("2026-11-17", "a", 1, Some(0.1)));
        add(&mut parts, &part("2026-11-17", "b", 2, None));
        add(&mut parts, &part("2026-11-18", "a", 4, Some(0.4)));
        add(&mut parts, &part("2026-11-17", "a", 8, Some(0.2)));
        add(&mut parts, &part("2026-11-17", "b", 16, Some(1.0)));
        let found: Vec<(u64, Option<f64>)> =
            parts.iter().map(|it| (it.tokens, it.cost_usd)).collect();
        assert_eq!(found, [(9, Some(0.3)), (18, Some(1.0)), (4, Some(0.4))]);
    }
}
