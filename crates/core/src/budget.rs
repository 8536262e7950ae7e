//! Budgets: limits of spending, and how far they are used.
//!
//! A budget belongs to a [`BudgetScope`]. The engine sums the spending and carries out what follows from a
//! [`BudgetLevel`] (`town::supervision::budgets`); this module only compares.

use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Default of `warn_at`.
pub const WARN_AT: f64 = 0.8;

/// Scope of a budget. The budgets of the town, of a rig and of an agent are per local day; that of
/// an item is for its whole life.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BudgetScope {
    /// All agents of the town.
    Day,
    Rig(String),
    /// Address of an agent.
    Agent(String),
    Item(String),
}

impl BudgetScope {
    /// Returns whether its spending starts at zero every day.
    pub fn is_daily(&self) -> bool {
        !matches!(self, BudgetScope::Item(_))
    }

    /// Returns the name of its setting under `[budget]`.
    pub fn setting(&self) -> &'static str {
        match self {
            BudgetScope::Day => "day",
            BudgetScope::Rig(_) => "rig",
            BudgetScope::Agent(_) => "agent",
            BudgetScope::Item(_) => "item",
        }
    }

    /// Describes the scope in a sentence: "the budget of …".
    pub fn describe(&self) -> String {
        match self {
            BudgetScope::Day => "the day".to_owned(),
            BudgetScope::Rig(rig) => format!("rig {rig} for the day"),
            BudgetScope::Agent(agent) => format!("{agent} for the day"),
            BudgetScope::Item(item) => item.clone(),
        }
    }
}

impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetScope::Day => f.write_str("day"),
            BudgetScope::Rig(rig) => write!(f, "rig:{rig}"),
            BudgetScope::Agent(agent) => write!(f, "agent:{agent}"),
            BudgetScope::Item(item) => write!(f, "item:{item}"),
        }
    }
}

impl From<BudgetScope> for String {
    fn from(scope: BudgetScope) -> Self {
        scope.to_string()
    }
}

impl TryFrom<String> for BudgetScope {
    type Error = Problem;

    fn try_from(text: String) -> Result<Self, Problem> {
        text.parse()
    }
}

impl FromStr for BudgetScope {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        let found = match text.split_once(':') {
            None if text == "day" => Some(BudgetScope::Day),
            Some(("rig", name)) => named(name).map(BudgetScope::Rig),
            Some(("agent", name)) => named(name).map(BudgetScope::Agent),
            Some(("item", name)) => named(name).map(BudgetScope::Item),
            _ => None,
        };
        found.ok_or_else(|| {
            Problem::usage(format!("there is no budget {text:?}"))
                .hint("day, rig:NAME, agent:NAME or item:ID; `gt budget` shows them")
        })
    }
}

/// Limits in US dollars; an absent one does not limit.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// Of one work item.
    pub item: Option<f64>,
    /// Of one agent per day.
    pub agent: Option<f64>,
    /// Of one rig per day.
    pub rig: Option<f64>,
    /// Of the whole town per day.
    pub day: Option<f64>,
    /// Share of a budget at which a warning is given.
    pub warn_at: Option<f64>,
}

impl BudgetLimits {
    /// Returns whether any scope is limited.
    pub fn is_set(&self) -> bool {
        let all = [self.item, self.agent, self.rig, self.day];
        all.iter().any(Option::is_some)
    }

    /// Returns these limits, with those of a rig over them.
    #[must_use]
    pub fn overridden_by(&self, rig: &BudgetLimits) -> BudgetLimits {
        BudgetLimits {
            item: rig.item.or(self.item),
            agent: rig.agent.or(self.agent),
            rig: rig.rig.or(self.rig),
            day: self.day,
            warn_at: rig.warn_at.or(self.warn_at),
        }
    }

    /// Returns the limit for a scope.
    pub fn of(&self, scope: &BudgetScope) -> Option<f64> {
        let limit = match scope {
            BudgetScope::Day => self.day,
            BudgetScope::Rig(_) => self.rig,
            BudgetScope::Agent(_) => self.agent,
            BudgetScope::Item(_) => self.item,
        };
        limit.filter(|limit| limit.is_finite() && *limit >= 0.0)
    }

    /// Returns the share at which a warning is given.
    pub fn warn_share(&self) -> f64 {
        let share = self.warn_at.filter(|share| (0.0..=1.0).contains(share));
        share.unwrap_or(WARN_AT)
    }
}

/// A raise of a budget by a person or an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Raise {
    pub scope: BudgetScope,
    /// Dollars that are added to the limit.
    pub usd: f64,
    /// The only local day on which it counts; absent if it counts from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The caller of the command.
    pub by: String,
    /// Time in RFC 3339.
    pub at: String,
}

/// Returns the dollars by which a budget is raised on a day.
pub fn raised_usd(raises: &[Raise], scope: &BudgetScope, today: &str) -> f64 {
    let counts = |raise: &&Raise| {
        raise.scope == *scope && raise.day.as_deref().is_none_or(|day| day == today)
    };
    raises.iter().filter(counts).map(|raise| raise.usd).sum()
}

/// How far a budget is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetLevel {
    Ok,
    Warn,
    Exhausted,
}

impl BudgetLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            BudgetLevel::Ok => "ok",
            BudgetLevel::Warn => "warn",
            BudgetLevel::Exhausted => "exhausted",
        }
    }
}

/// A budget with its spending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub scope: BudgetScope,
    pub spent_usd: f64,
    /// The limit, with raises.
    pub limit_usd: f64,
    pub level: BudgetLevel,
}

impl Budget {
    /// Compares spending with a limit. A limit of zero is exhausted from the start.
    pub fn new(scope: BudgetScope, spent_usd: f64, limit_usd: f64, warn_share: f64) -> Self {
        let level = match spent_usd {
            spent if spent >= limit_usd => BudgetLevel::Exhausted,
            spent if spent >= limit_usd * warn_share => BudgetLevel::Warn,
            _ => BudgetLevel::Ok,
        };
        Budget {
            scope,
            spent_usd,
            limit_usd,
            level,
        }
    }

    /// Returns the figures for people: `$8.20 of $10.00`.
    pub fn figures(&self) -> String {
        format!("${:.2} of ${:.2}", self.spent_usd, self.limit_usd)
    }

    /// Returns the reason of a pause: `budget of the day: $10.20 of $10.00`.
    pub fn reason(&self) -> String {
        format!("budget of {}: {}", self.scope.describe(), self.figures())
    }

    /// Returns the share that is used, for a bar; 1 at most.
    pub fn share(&self) -> f64 {
        match self.limit_usd > 0.0 {
            true => (self.spent_usd / self.limit_usd).clamp(0.0, 1.0),
            false => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_follows_the_spending() {
        for (spent, limit, expected) in [
            (0.0, 10.0, BudgetLevel::Ok),
            (7.99, 10.0, BudgetLevel::Ok),
            (8.0, 10.0, BudgetLevel::Warn),
            (9.99, 10.0, BudgetLevel::Warn),
            (10.0, 10.0, BudgetLevel::Exhausted),
            (12.0, 10.0, BudgetLevel::Exhausted),
            (0.0, 0.0, BudgetLevel::Exhausted),
        ] {
            let budget = Budget::new(BudgetScope::Day, spent, limit, WARN_AT);
            assert_eq!(budget.level, expected, "{spent} of {limit}");
        }
        let budget = Budget::new(BudgetScope::Day, 10.2, 10.0, WARN_AT);
        assert_eq!(budget.reason(), "budget of the day: $10.20 of $10.00");
    }

    #[test]
    fn scopes_read_back() {
        for text in ["day", "rig:lab", "agent:lab/crew/max", "item:lb-4k2qz"] {
            assert_eq!(text.parse::<BudgetScope>().unwrap().to_string(), text);
        }
        for text in ["", "days", "rig", "rig:", "lab", "item:"] {
            let problem = text.parse::<BudgetScope>().unwrap_err();
            assert!(!problem.hints().is_empty(), "{text}");
        }
    }

    #[test]
    fn rig_overrides_all_but_the_day() {
        let town = BudgetLimits {
            item: Some(1.0),
            rig: Some(5.0),
            day: Some(20.0),
            ..BudgetLimits::default()
        };
        let rig = BudgetLimits {
            item: Some(3.0),
            agent: Some(2.0),
            day: Some(99.0),
            ..BudgetLimits::default()
        };
        let both = town.overridden_by(&rig);
        assert_eq!(both.of(&BudgetScope::Item("x".into())), Some(3.0));
        assert_eq!(both.of(&BudgetScope::Agent("x".into())), Some(2.0));
        assert_eq!(both.of(&BudgetScope::Rig("x".into())), Some(5.0));
        assert_eq!(both.of(&BudgetScope::Day), Some(20.0));
        assert!(both.is_set() && !BudgetLimits::default().is_set());
        assert!((both.warn_share() - WARN_AT).abs() < f64::EPSILON);
    }

    #[test]
    fn raise_for_today_ends_with_the_day() {
        let raise = |scope: BudgetScope, usd, day: Option<&str>| Raise {
            scope,
            usd,
            day: day.map(str::to_owned),
            by: "ann".to_owned(),
            at: String::new(),
        };
        let raises = [
            raise(BudgetScope::Day, 5.0, None),
            raise(BudgetScope::Day, 2.0, Some("2026-11-17")),
            raise(BudgetScope::Rig("lab".into()), 7.0, None),
        ];
        assert!((raised_usd(&raises, &BudgetScope::Day, "2026-11-17") - 7.0).abs() < 1e-9);
        assert!((raised_usd(&raises, &BudgetScope::Day, "2026-11-18") - 5.0).abs() < 1e-9);
        assert!(raised_usd(&raises, &BudgetScope::Rig("other".into()), "2026-11-17").abs() < 1e-9);
    }
}
