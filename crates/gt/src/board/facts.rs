//! Gathers the facts in a thread, whenever something may have changed.

use super::inbox::Post;
use super::view::Panes;
use super::watch::Watch;
use gt_board::{BoardEvent, EscalationFacts, MergeFacts, SpentToday, StopFacts};
use gt_core::escalation::{Escalation, EscalationState};
use gt_core::merge::Merge;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::base::estop::EstopNote;
use gt_town::base::or_log::OrLog;
use gt_town::records::budget;
use gt_town::views::cards::{GatheredCards, Gatherer};
use jiff::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Interval while an agent works: its changes to files cause no notice.
const WHILE_IN_MOTION: Duration = Duration::from_secs(2);
/// Interval at which partial results are shown while git is still queried.
const BETWEEN_PARTS: Duration = Duration::from_millis(200);

/// Handle that requests new facts.
#[derive(Clone, Debug)]
pub(super) struct FactsReader(Sender<()>);

impl FactsReader {
    /// Starts the thread, which gathers for the first time at once.
    pub(super) fn gather(town: Town, post: Post, panes: Arc<Panes>, watch: Watch) -> Self {
        let (ask, asked) = channel();
        let worker = FactsWorker {
            town,
            post,
            panes,
            watch,
            asked,
            gatherer: Gatherer::default(),
            told: gt_board::BoardFacts::default(),
            spent: None,
        };
        std::thread::spawn(move || worker.run());
        FactsReader(ask)
    }

    pub(super) fn ask(&self) {
        // The worker ends with the board.
        let _ = self.0.send(());
    }
}

struct FactsWorker {
    town: Town,
    post: Post,
    panes: Arc<Panes>,
    watch: Watch,
    asked: Receiver<()>,
    gatherer: Gatherer,
    told: gt_board::BoardFacts,
    spent: Option<SpentToday>,
}

impl FactsWorker {
    fn run(mut self) {
        loop {
            let in_motion = self.refresh();
            let asked = match in_motion {
                true => self.asked.recv_timeout(WHILE_IN_MOTION),
                false => self.asked.recv().map_err(RecvTimeoutError::from),
            };
            if asked == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Gathers everything once. Returns whether more changes are expected without a notice.
    fn refresh(&mut self) -> bool {
        let Some(mut gathered) = self.gather() else {
            return false;
        };
        let mut told = Instant::now();
        let mut stale = VecDeque::from(gathered.stale.clone());
        while let Some(id) = stale.pop_front() {
            // New changes do not wait until git was queried about every item.
            if self.is_asked() {
                match self.gather() {
                    Some(newer) => gathered = newer,
                    None => return false,
                }
                let more = gathered.stale.iter().filter(|id| !stale.contains(id));
                let more: Vec<WorkId> = more.cloned().collect();
                stale.extend(more);
            }
            self.gatherer.refresh_card(&self.town, &mut gathered, &id);
            if told.elapsed() > BETWEEN_PARTS {
                self.show(&gathered);
                told = Instant::now();
            }
        }
        self.spent = spent_today(&self.town);
        self.show(&gathered);
        gathered.is_in_motion()
    }

    fn is_asked(&self) -> bool {
        self.asked.try_iter().count() > 0
    }

    /// Gathers everything that needs no query of git.
    fn gather(&mut self) -> Option<GatheredCards> {
        self.is_asked();
        // Rigs and settings may have changed.
        if let Ok(town) = Town::open(self.town.root(), self.town.around().clone()) {
            self.town = town;
        }
        let seen = self.watch.agents();
        match self.gatherer.gather(&self.town, &seen) {
            Ok(gathered) => {
                self.watch.watch_files(gathered.files());
                self.show(&gathered);
                Some(gathered)
            }
            Err(problem) => {
                let mut facts = self.told.clone();
                facts.warnings = vec![problem.to_string()];
                self.post_facts(facts);
                None
            }
        }
    }

    fn facts(&self, gathered: &GatheredCards) -> gt_board::BoardFacts {
        gt_board::BoardFacts {
            town: self.town.settings().name.clone(),
            me: Some(self.town.around().login_name().to_owned()),
            projects: self.town.registry().rigs.keys().cloned().collect(),
            cards: gathered.cards.clone(),
            escalations: gathered.escalations.iter().map(escalation).collect(),
            stops: gathered.stops.iter().map(stop).collect(),
            spent_today: self.spent.clone(),
            merges: gathered.merges.iter().map(merge).collect(),
            crew: gathered.crew.clone(),
            lost: gathered.lost.clone(),
            warnings: gathered.warnings.clone(),
        }
    }

    /// Sends the facts. Updates the panes first, so that the detail view matches the cards.
    fn show(&mut self, gathered: &GatheredCards) {
        self.panes.update_panes(gathered);
        self.post_facts(self.facts(gathered));
    }

    /// Sends the facts if they differ from the last ones.
    fn post_facts(&mut self, facts: gt_board::BoardFacts) {
        if facts != self.told {
            self.told = facts.clone();
            self.post.send(BoardEvent::Facts(facts));
        }
    }
}

fn spent_today(town: &Town) -> Option<SpentToday> {
    let spent = budget::spent_today(town).or_warn("the cost of today is unknown")?;
    Some(SpentToday {
        all: spent.day,
        by_project: spent.rigs,
    })
}

fn escalation(it: &Escalation) -> EscalationFacts {
    let item = it.item.as_deref();
    EscalationFacts {
        id: it.id.clone(),
        severity: it.severity,
        who: it.agent.as_ref().unwrap_or(&it.raised_by).clone(),
        // Text that is not an id matches no card.
        item: item.and_then(|item| item.parse().ok()),
        message: it.message.clone(),
        since: seconds(&it.created_at).unwrap_or_default(),
        count: it.count,
        is_acknowledged: it.state == EscalationState::Acknowledged,
    }
}

fn merge(it: &Merge) -> MergeFacts {
    MergeFacts {
        id: it.id.clone(),
        item: it.item.clone(),
        rig: it.rig.clone(),
        branch: it.branch.clone(),
        worker: it.worker.clone(),
        status: it.status,
        reason: it.reason.clone(),
        files: it.files.clone(),
        attempts: it.attempts,
        repair: it.repair.clone(),
        since: seconds(&it.updated_at).unwrap_or_default(),
    }
}

fn stop(note: &EstopNote) -> StopFacts {
    StopFacts {
        rig: note.rig.clone(),
        by: note.by.clone(),
        reason: note.reason.clone(),
        since: seconds(&note.at),
    }
}

fn seconds(time: &str) -> Option<i64> {
    // A note without a time has no age.
    time.parse().ok().map(Timestamp::as_second)
}
