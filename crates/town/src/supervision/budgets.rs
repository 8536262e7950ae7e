//! Compares spending with the budgets, and pauses the agents of an exhausted one.
//!
//! A check runs after the end of a turn (a detached `gt internal check-budgets`, if any budget is
//! set), after a raise, and once a minute in the daemon. It is idempotent. An agent under an
//! exhausted budget gets the tag `@gt_hold`: its present turn ends normally, its state is then
//! `paused`, and messages to it wait. Starts are refused by
//! [`records::budget`](crate::records::budget).

use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::settings;
use crate::base::wake;
use crate::messaging::escalate::{self, NewEscalation};
use crate::messaging::notify;
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use crate::messaging::signal;
use crate::records::budget::{self, BudgetNotes, Budgets, NotifiedLevel};
use crate::records::events::{Events, by_command};
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::{Result, Town};
use gt_core::budget::{Budget, BudgetLevel, BudgetScope, Raise};
use gt_core::escalation::Severity;
use gt_core::notify::NoticeKind;
use gt_core::nudge::Priority;
use gt_core::startup::tag;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command};
use std::time::Duration;

/// Message to an agent whose pause is over.
const GO_ON: &str = "Your budget allows more work again. Continue with your work.";

/// Waits before the repeated checks after a turn.
const USAGE_DELAYS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(8)];

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    pub budgets: Vec<Budget>,
    /// Agents that were paused by this check, with the reason.
    pub paused: Vec<(Identity, String)>,
    /// Agents whose pause this check ended.
    pub resumed: Vec<Identity>,
}

/// Checks all budgets. Returns `None` without a check if another process waits to do one, because
/// that check will include the present spending.
pub fn check_once(town: &Town) -> Result<Option<Checked>> {
    let waiting = town.runtime_dir().join("budget.waiting.lock");
    let Some(turn) = FileLock::try_take(&waiting)? else {
        return Ok(None);
    };
    let lock = budget::lock(town)?;
    drop(turn);
    check_locked(town, lock).map(Some)
}

/// Checks all budgets after a turn. Programs write the usage of a turn some time after their hook
/// has reported its end, and no event follows that write, so the check is repeated.
pub fn check_after_turn(town: &Town) -> Result<()> {
    check_once(town)?;
    for delay in USAGE_DELAYS {
        std::thread::sleep(delay);
        town.around().cancel.check()?;
        // The town may have been removed meanwhile.
        if town.root().join(settings::FILE).exists() {
            check_once(town)?;
        }
    }
    Ok(())
}

/// Checks all budgets: notifies people of new levels, and pauses and resumes agents.
pub fn check(town: &Town) -> Result<Checked> {
    let lock = budget::lock(town)?;
    check_locked(town, lock)
}

fn check_locked(town: &Town, _lock: FileLock) -> Result<Checked> {
    let mut notes = BudgetNotes::read(town)?;
    if !budget::is_set(town) && notes.told.is_empty() {
        return Ok(Checked::default());
    }
    let items = notes.told.keys().filter_map(|scope| match scope {
        BudgetScope::Item(item) => Some(item.clone()),
        _ => None,
    });
    let items: Vec<String> = items.collect();
    let budgets = Budgets::read(town, &notes, &items)?;
    notify_people(town, &mut notes, &budgets)?;
    let (paused, resumed) = hold(town, &budgets)?;
    Ok(Checked {
        budgets: budgets.all,
        paused,
        resumed,
    })
}

/// Raises a budget by an amount, for today or from now on, and checks all budgets.
pub fn raise(town: &Town, scope: BudgetScope, usd: f64, only_today: bool) -> Result<Checked> {
    if !usd.is_finite() || usd <= 0.0 {
        return Err(Problem::usage("a budget is raised by more than $0"));
    }
    let lock = budget::lock(town)?;
    let mut notes = BudgetNotes::read(town)?;
    let today = budget::today(town);
    // Raises for other days have no effect now.
    let counts = |raise: &Raise| raise.day.as_ref().is_none_or(|day| *day == today);
    notes.raises.retain(counts);
    notes.raises.push(Raise {
        scope: scope.clone(),
        usd,
        day: only_today.then_some(today),
        by: town.caller().as_str().to_owned(),
        at: town.clock().text(),
    });
    notes.write(town)?;
    let event = by_command(town, "budget_raised")
        .with("scope", scope.to_string())
        .with("amount", format!("${usd:.2}"))
        .with("today", only_today.then_some(true));
    Events::of(town).note(vec![event]);
    check_locked(town, lock)
}

/// Notifies people of each budget whose level has risen since they were last told. Daily budgets
/// start anew each day.
fn notify_people(town: &Town, notes: &mut BudgetNotes, budgets: &Budgets) -> Result<()> {
    let today = &budgets.spending.today;
    let mut news: Vec<&Budget> = Vec::new();
    let before = notes.clone();
    notes.told.retain(|scope, told| {
        let is_present = told.day == *today || !scope.is_daily();
        let now = budgets.all.iter().find(|budget| budget.scope == *scope);
        is_present && now.is_some_and(|now| now.level >= told.level)
    });
    for budget in budgets.all.iter().filter(|it| it.level > BudgetLevel::Ok) {
        let known = notes.told.get(&budget.scope).map(|told| told.level);
        if known < Some(budget.level) {
            news.push(budget);
            let told = NotifiedLevel {
                level: budget.level,
                day: today.clone(),
            };
            notes.told.insert(budget.scope.clone(), told);
        }
    }
    if *notes == before {
        return Ok(());
    }
    // The key of an escalation makes it idempotent, so it comes before the note. The event comes
    // after it, so that no event is written twice.
    for budget in news.iter().filter(|it| it.level == BudgetLevel::Exhausted) {
        escalate::raise(town, &escalation(budget))?;
    }
    for scope in before.told.keys() {
        let is_over = notes.told.get(scope).map(|told| told.level) != Some(BudgetLevel::Exhausted);
        if is_over {
            escalate::resolve(town, &key(scope), "the budget is no longer exhausted")?;
        }
    }
    notes.write(town)?;
    let events = news.iter().map(|budget| {
        let kind = match budget.level {
            BudgetLevel::Exhausted => "budget_exhausted",
            _ => "budget_warning",
        };
        town.event(kind)
            .by_gt()
            .with("scope", budget.scope.to_string())
            .with("reason", budget.reason())
    });
    Events::of(town).note(events.collect());
    for budget in news.iter().filter(|it| it.level == BudgetLevel::Warn) {
        let subject = budget.scope.describe();
        notify::raise(town, NoticeKind::Budget, &subject, &budget.figures());
    }
    Ok(())
}

fn key(scope: &BudgetScope) -> String {
    format!("budget:{scope}")
}

fn escalation(budget: &Budget) -> NewEscalation {
    let scope = &budget.scope;
    let today = if scope.is_daily() { " --today" } else { "" };
    NewEscalation {
        severity: Severity::High,
        message: format!(
            "The budget of {} is exhausted: {}. Its agents pause at the end of their turn and none \
             is started. `gt budget raise {scope} AMOUNT{today}` raises it.",
            scope.describe(),
            budget.figures()
        ),
        source: "budget",
        item: match scope {
            BudgetScope::Item(item) => item.parse::<WorkId>().ok(),
            _ => None,
        },
        agent: match scope {
            BudgetScope::Agent(agent) => Some(agent.clone()),
            _ => None,
        },
        key: Some(key(scope)),
    }
}

/// Agents that were paused, and those that were resumed.
type Held = (Vec<(Identity, String)>, Vec<Identity>);

/// Tags the agents under an exhausted budget, and untags the others.
fn hold(town: &Town, budgets: &Budgets) -> Result<Held> {
    let mut held = (Vec::new(), Vec::new());
    let mut events = Vec::new();
    for container in containers::list_everywhere(town)? {
        let Some(identity) = container.identity() else {
            continue;
        };
        let address = identity.address();
        let item = budgets.spending.work.get(&address).map(String::as_str);
        let budget = budgets.exhausted(&address, identity.rig(), item);
        let before = container.pane().tag_hold.as_str();
        match budget {
            Some(budget) if before.is_empty() => {
                let reason = budget.reason();
                set_hold(town, &container, Some(&reason))?;
                let event = town.event_at("paused", &address).by_gt();
                events.push(event.with("reason", reason.clone()));
                held.0.push((identity.clone(), reason));
            }
            // The figures in the reason change as long as turns are running.
            Some(budget) if before != budget.reason() => {
                set_hold(town, &container, Some(&budget.reason()))?;
            }
            None if !before.is_empty() => {
                set_hold(town, &container, None)?;
                events.push(town.event_at("resumed", &address).by_gt());
                tell_to_continue(town, &container, identity, item.is_some());
                held.1.push(identity.clone());
            }
            _ => {}
        }
    }
    if !events.is_empty() {
        Events::of(town).note(events);
        wake::monitors(town);
    }
    Ok(held)
}

fn set_hold(town: &Town, container: &Container, reason: Option<&str>) -> Result<()> {
    let set = Command::new("set-option").target(container.id());
    let set = match reason {
        Some(reason) => set.args([tag::HOLD, reason]),
        None => set.args(["-u", tag::HOLD]),
    };
    let batch = Batch::from(set).then_all(containers::pack(container.id()));
    let done = container.home(town).server().run(batch);
    done.map(drop)
        .map_err(|error| tmux_problem("cannot tag the container", error))
}

/// Tells an agent that has work to continue. Other agents only get their waiting messages.
fn tell_to_continue(town: &Town, container: &Container, identity: &Identity, has_work: bool) {
    if !has_work {
        // The container was listed while the agent was paused, so its recorded state is ignored.
        let woken = signal::wake_delivery_to(&container.home(town), container);
        woken.or_warn(format_args!(
            "messages for {identity} wait for the next command"
        ));
        return;
    }
    let request = NudgeRequest {
        is_command: false,
        text: GO_ON,
        sender: None,
        mode: DeliveryMode::Queue,
        // It ends a pause that gt began: do-not-disturb does not hold it.
        priority: Priority::Urgent,
        timeout: Duration::ZERO,
    };
    nudge::send(town, identity, &request)
        .or_warn(format_args!("{identity} was not told to continue"));
}

#[cfg(test)]
mod tests;
