//! Prices of tokens: a table of models, which a town can change.
//!
//! The built-in table is `prices.toml`; `<town>/prices.toml` overrides single fields of it or adds
//! models. A model in neither table has no price. There is no fallback to a similar name: a name
//! that merely looks like a known one is another model.

use crate::overlay::{Layer, overlay};
use crate::problem::Problem;
use crate::usage::Tokens;
use serde::Deserialize;
use std::collections::BTreeMap;

const BUILTIN: Layer<'static> = Layer {
    source: "built-in",
    text: include_str!("prices.toml"),
};

/// Prices by model name.
#[derive(Clone, Debug, Default)]
pub struct Prices(BTreeMap<String, Price>);

/// US dollars per million tokens.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    /// Price of a cache write that stays for an hour; absent means the price of any other write.
    pub cache_write_1h: Option<f64>,
    /// Other prices for a long prompt.
    pub long: Option<LongContextPrice>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct LongContextPrice {
    /// Number of prompt tokens above which a prompt is long.
    pub above: u64,
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    pub cache_write_1h: Option<f64>,
}

impl Prices {
    /// Returns the built-in table with the town's over it.
    pub fn resolve(town: Option<Layer<'_>>) -> Result<Prices, Problem> {
        let layers: Vec<Layer<'_>> = [BUILTIN].into_iter().chain(town).collect();
        let table = overlay::<BTreeMap<String, Price>>(&layers)?.value;
        Ok(Prices(table))
    }

    /// Returns the built-in table. It is embedded in the program, and a test parses it.
    pub fn builtin() -> Prices {
        Prices::resolve(None).unwrap_or_default()
    }

    /// Returns the cost of an answer; `None` if any of its tokens have no price.
    pub fn cost(&self, model: &str, tokens: &Tokens) -> Option<f64> {
        let price = self.find(model)?;
        let prompt = [tokens.cache_read, tokens.cache_write]
            .into_iter()
            .fold(tokens.input, u64::saturating_add);
        let long = price.long.as_ref().filter(|long| prompt > long.above);
        let price = long.map_or_else(|| price.clone(), LongContextPrice::price);
        let for_minutes = tokens.cache_write.saturating_sub(tokens.cache_write_1h);
        let rows = [
            (tokens.input, price.input),
            (tokens.output, price.output),
            (tokens.cache_read, price.cache_read),
            (for_minutes, price.cache_write),
            (
                tokens.cache_write_1h,
                price.cache_write_1h.or(price.cache_write),
            ),
        ];
        let mut sum = 0.0;
        for (count, price) in rows.into_iter().filter(|(count, _)| *count > 0) {
            let price = price.filter(|price| price.is_finite() && *price >= 0.0)?;
            sum += count as f64 * price / 1e6;
        }
        Some(sum)
    }

    /// Returns the row of a model: the row with its exact name, or else the longest name with a `*`
    /// at its end that matches.
    fn find(&self, model: &str) -> Option<&Price> {
        let model = model.to_ascii_lowercase();
        // Providers and their gateways put a path before the name.
        let name = model.rsplit('/').next().unwrap_or(&model);
        let names = [model.as_str(), name, without_date(name)];
        if let Some(price) = names.iter().find_map(|name| self.0.get(*name)) {
            return Some(price);
        }
        let fits = |pattern: &&String| {
            let beginning = pattern.strip_suffix('*');
            beginning.is_some_and(|beginning| names.iter().any(|name| name.starts_with(beginning)))
        };
        let longest = self.0.keys().filter(fits).max_by_key(|key| key.len())?;
        self.0.get(longest)
    }
}

impl LongContextPrice {
    fn price(&self) -> Price {
        Price {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            cache_write_1h: self.cache_write_1h,
            long: None,
        }
    }
}

/// Strips the release date from a name: `-20251001`, `@20251001`, `-2025-10-01`.
fn without_date(name: &str) -> &str {
    let is_date =
        |text: &str| text.starts_with("20") && text.bytes().filter(u8::is_ascii_digit).count() == 8;
    for length in [8, 10] {
        let Some(at) = name.len().checked_sub(length) else {
            continue;
        };
        if let (Some(before), Some(date)) = (name.get(..at), name.get(at..))
            && let Some(before) = before.strip_suffix(['-', '@'])
            && is_date(date)
        {
            return before;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(prices: &Prices, model: &str) -> Option<f64> {
        let tokens = Tokens {
            input: 1_000_000,
            ..Tokens::default()
        };
        prices.cost(model, &tokens)
    }

    #[test]
    fn every_row_of_the_table_is_whole() {
        let prices = Prices::resolve(None).unwrap();
        assert!(prices.0.len() > 20);
        for (model, price) in &prices.0 {
            assert!(price.input < price.output, "{model}");
            assert!(price.cache_read < price.input, "{model}");
            if let Some(long) = &price.long {
                assert!(long.above >= 100_000 && long.input > price.input, "{model}");
            }
            assert_eq!(model, &model.to_lowercase());
        }
    }

    #[test]
    fn a_name_with_a_date_or_a_path_is_known_and_a_new_one_is_not() {
        let prices = Prices::builtin();
        for (model, expected) in [
            ("claude-haiku-4-5", Some(1.0)),
            ("claude-haiku-4-5-20251001", Some(1.0)),
            ("claude-haiku-4-5@20251001", Some(1.0)),
            ("anthropic/claude-haiku-4-5", Some(1.0)),
            ("gpt-5.2-2025-12-11", Some(1.75)),
            ("Claude-Opus-4-20250514", Some(15.0)),
            ("claude-opus-4-9", None),
            ("gpt-5.2-pro", None),
            ("gpt-fake", None),
            ("", None),
        ] {
            assert_eq!(cost(&prices, model), expected, "{model}");
        }
    }

    #[test]
    fn a_town_changes_a_field_and_adds_models() {
        let prices = Prices::resolve(Some(Layer {
            source: "prices.toml",
            text: "[claude-haiku-4-5]\ninput = 2\n['mine-*']\ninput = 3\n['mine-big-*']\ninput = 9.5\n",
        }))
        .unwrap();
        assert_eq!(cost(&prices, "claude-haiku-4-5-20251001"), Some(2.0));
        assert_eq!(prices.find("claude-haiku-4-5").unwrap().output, Some(5.0));
        assert_eq!(cost(&prices, "mine-small"), Some(3.0));
        assert_eq!(cost(&prices, "mine-big-1"), Some(9.5));
        let output = Tokens {
            output: 1,
            ..Tokens::default()
        };
        assert_eq!(prices.cost("mine-small", &output), None, "half a price");
        let broken = Prices::resolve(Some(Layer {
            source: "prices.toml",
            text: "[x]\ninputs = 1\n",
        }));
        let problem = broken.unwrap_err();
        assert!(problem.message().contains("prices.toml:2:1"), "{problem}");
    }

    #[test]
    fn a_long_prompt_costs_more() {
        let prices = Prices::builtin();
        let tokens = |input| Tokens {
            input,
            output: 1_000_000,
            ..Tokens::default()
        };
        assert_eq!(prices.cost("gemini-2.5-pro", &tokens(0)), Some(10.0));
        let long = prices.cost("gemini-2.5-pro", &tokens(400_000)).unwrap();
        assert!((long - (15.0 + 1.0)).abs() < 1e-9, "{long}");
    }
}
