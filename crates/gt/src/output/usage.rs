//! Formats tokens and costs for people.

use gt_core::usage::Usage;

/// Formats a count as `950`, `12.3k` or `4.6M`.
pub(crate) fn tokens(count: u64) -> String {
    let (unit, sign) = match count {
        0..1_000 => return count.to_string(),
        1_000..1_000_000 => (1e3, "k"),
        1_000_000..1_000_000_000 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    // Truncated, not rounded: 999,999 must not become 1000.0k.
    let tenths = (count as f64 / unit * 10.0).floor() / 10.0;
    format!("{tenths:.1}{sign}")
}

/// Formats an amount as `$0.42`, with four decimals below a cent.
pub(crate) fn dollars(amount: f64) -> String {
    match amount > 0.0 && amount < 0.01 {
        true => format!("${amount:.4}"),
        false => format!("${amount:.2}"),
    }
}

/// Returns the cost of a session. A `+` after it means that some tokens have no price.
pub(crate) fn cost(usage: &Usage) -> Option<String> {
    let more = if usage.unpriced_tokens > 0 { "+" } else { "" };
    let cost = usage.cost_usd?;
    Some(format!("{}{more}", dollars(cost)))
}

/// Formats all figures in one line.
pub(crate) fn line(usage: &Usage) -> String {
    let mut parts = vec![
        format!("{} in", usage.input_tokens),
        format!("{} out", usage.output_tokens),
        format!("{} from the cache", usage.cache_read_tokens),
        format!("{} into the cache", usage.cache_write_tokens),
    ];
    parts.extend(cost(usage));
    parts.extend(usage.model.clone());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_not_too_much() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12.3k"),
            (999_999, "999.9k"),
            (4_600_000, "4.6M"),
            (7_000_000_000, "7.0G"),
        ] {
            assert_eq!(tokens(count), expected);
        }
        for (amount, expected) in [
            (0.0, "$0.00"),
            (0.0041, "$0.0041"),
            (0.42, "$0.42"),
            (123.456, "$123.46"),
        ] {
            assert_eq!(dollars(amount), expected);
        }
        let part = Usage {
            cost_usd: Some(0.5),
            unpriced_tokens: 1,
            ..Usage::default()
        };
        assert_eq!(cost(&part).as_deref(), Some("$0.50+"));
        assert_eq!(cost(&Usage::default()), None);
    }
}
