//! The cards of the board: every item, with the facts about the work on it, and every agent without
//! an item.
//!
//! Some facts are cheap: one database query and one tmux call cover all items. Others need git,
//! ports and transcripts, one worktree at a time. A [`Gatherer`] caches those and refreshes them
//! only if something may have changed, so that a caller can show the cheap facts at once and the
//! others as they arrive.

mod detail;
mod expensive;
mod lost;
mod usage;

pub use detail::{events_of, sessions_of, sessions_of_agent};

use crate::base::estop::{self, EstopNote};
use crate::catalog::directory;
use crate::catalog::harnesses::Presets;
use crate::records::items::{EscalationQuery, Overview, Work};
use crate::records::limits;
use crate::terminal::background_tasks;
use crate::terminal::containers::{self, Container, PanePlace};
use crate::views::monitor::{Files, MonitoredAgent};
use crate::workflow::task;
use crate::workflow::task::BaseAt;
use crate::{Result, Town};
use expensive::{ExpensiveFacts, Stamp};
use gt_core::card::{Card, CardAgent, Speaker};
use gt_core::escalation::Escalation;
use gt_core::merge::Merge;
use gt_core::state::StateReport;
use gt_core::work::{Item, ItemStatus, WorkId};
use gt_core::{Identity, Role};
use jiff::{SignedDuration, Timestamp};
use lost::{EndCache, EndKind};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use usage::UsageCache;

/// Time for which closed items stay on the board.
const CLOSED_IS_SHOWN: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Priority of an agent without an item, which comes after the items of its column.
const LOWEST_PRIORITY: u8 = 4;

/// Builds cards and caches the expensive facts.
#[derive(Debug, Default)]
pub struct Gatherer {
    aside: HashMap<WorkId, ExpensiveFacts>,
    places: expensive::WorktreeLocations,
    presets: Presets,
    ends: EndCache,
    spent: UsageCache,
}

/// The cards as currently known.
#[derive(Debug)]
pub struct GatheredCards {
    pub cards: Vec<Card>,
    /// Cards whose expensive facts are out of date; [`Gatherer::refresh_card`] refreshes one.
    pub stale: Vec<WorkId>,
    /// The escalations that are not closed, the most urgent first.
    pub escalations: Vec<Escalation>,
    /// The emergency stops in force, that of the town first.
    pub stops: Vec<EstopNote>,
    /// The entries of the merge queue, in the order of merging.
    pub merges: Vec<Merge>,
    /// The addresses of the crew, running or not.
    pub crew: Vec<String>,
    /// The addresses of agents that went down with the town's tmux server.
    pub lost: Vec<String>,
    /// Facts that could not be read.
    pub warnings: Vec<String>,
    sites: HashMap<WorkId, WorkSite>,
    /// The agents of cards without an item.
    agents: HashMap<WorkId, (Identity, Container)>,
    /// Git files of the bases, for change detection.
    bases: Files,
}

/// The place where an item is worked on.
#[derive(Clone, Debug)]
struct WorkSite {
    agent: Identity,
    container: Option<Container>,
    /// The worktree.
    dir: Option<PathBuf>,
    base: Option<BaseAt>,
    stamp: Stamp,
}

impl Gatherer {
    /// Returns all cards, from the cheap facts and the cache. `seen` overrides the states of agents
    /// with the caller's more recent ones.
    pub fn gather(&mut self, town: &Town, seen: &[MonitoredAgent]) -> Result<GatheredCards> {
        let mut warnings = Vec::new();
        let work = Work::of(town);
        let since = town.clock().now() - CLOSED_IS_SHOWN;
        let overview = work.overview(&since.to_string())?;
        if overview.has_more {
            warnings.push(
                "there are too many items: the most urgent open ones and the last closed ones are shown, and `gt work list` has the others".to_owned(),
            );
        }
        let merges = work.merges(None, false)?;
        let escalations = work.escalations(&EscalationQuery::default())?;
        // The board shows work items even if tmux does not answer.
        let containers = containers::list_everywhere(town).unwrap_or_else(|problem| {
            warnings.push(problem.to_string());
            Vec::new()
        });
        let agents = agents_of(town, &overview, &containers);
        self.places.begin();
        self.ends.begin(town);
        let lost = self.ends.restorable(town, &containers);
        let mut sites = HashMap::new();
        let mut cards = Vec::with_capacity(overview.items.len());
        let open: HashSet<&WorkId> = open_items(&overview);
        for item in &overview.items {
            let rig = rig_of(town, &overview, &item.id);
            let agent = agents.get(&item.id);
            let container = agent.and_then(|(_, container)| *container);
            let seen = container.and_then(|container| {
                let mut seen = seen.iter();
                seen.find(|seen| seen.container == container.name())
            });
            let session = agent.zip(container).map(|((agent, _), container)| {
                let report = seen.map(|seen| seen.report.clone());
                self.session(town, agent, container, report)
            });
            if let (Some((agent, _)), Some(rig)) = (agent, &rig) {
                let site = self.site(town, agent, rig, container, session.as_ref());
                sites.extend(site.map(|site| (item.id.clone(), site)));
            }
            let mut card = card(item, rig, &overview, &open, &merges);
            card.session = session;
            card.background = container.map_or_else(Vec::new, background_tasks::of_container);
            card.resolver = seen.and_then(|seen| Some(seen.resolver.clone()?.into()));
            card.holder = agent.and_then(|(agent, _)| holder(town, &item.id, agent));
            let end = match agent {
                Some((agent, None)) if card.is_worked_on() => {
                    self.ends.of(town, agent).map(|end| (agent, end))
                }
                _ => None,
            };
            match end {
                Some((_, end)) if end.kind == EndKind::Stopped => card.stopped_since = end.at,
                // A polecat that ended alone is restarted by the patrol, or its item goes to another.
                Some((agent, end)) if card.holder.is_none() || lost.contains(&agent.address()) => {
                    card.lost = true;
                    card.lost_since = end.at;
                }
                _ => {}
            }
            card.resumable = card.holder.is_none()
                && card.status != ItemStatus::Closed
                && !runs(card.session.as_ref())
                && sites.get(&item.id).is_some_and(|site| {
                    site.dir.is_some() && self.ends.is_resumable(town, &site.agent)
                });
            if let Some(aside) = self.aside.get(&item.id) {
                aside.fill(&mut card);
            }
            cards.push(card);
        }
        let mut without_item = HashMap::new();
        for (agent, container) in agents_without_item(&agents, &containers) {
            let report = seen.iter().find(|seen| seen.container == container.name());
            let report = report.map(|seen| seen.report.clone());
            let session = self.session(town, agent, container, report);
            let card = agent_card(agent, container, session);
            without_item.insert(card.id.clone(), (agent.clone(), container.clone()));
            cards.push(card);
        }
        self.aside.retain(|id, _| sites.contains_key(id));
        let has_site = |card: &&mut Card| card.is_agent || sites.contains_key(&card.id);
        let mut gone: Vec<&mut Card> = cards.iter_mut().filter(|card| !has_site(card)).collect();
        self.spent
            .read(town, gone.iter().map(|card| card.id.clone()).collect());
        for card in &mut gone {
            card.usage = self.spent.of(&card.id);
        }
        let is_stale = |id: &WorkId, site: &WorkSite| {
            self.aside
                .get(id)
                .is_none_or(|aside| aside.is_stale(&site.stamp))
        };
        let mut stale: Vec<WorkId> = sites
            .iter()
            .filter(|(id, site)| is_stale(id, site))
            .map(|(id, _)| id.clone())
            .collect();
        stale.sort();
        Ok(GatheredCards {
            cards,
            stale,
            escalations,
            stops: estop::all(town),
            merges,
            crew: crew(town),
            lost,
            warnings,
            sites,
            agents: without_item,
            bases: self.places.files.clone(),
        })
    }

    /// Refreshes the expensive facts of one card: branch, servers and usage.
    pub fn refresh_card(&mut self, town: &Town, gathered: &mut GatheredCards, id: &WorkId) {
        let Some(site) = gathered.sites.get(id) else {
            return;
        };
        let aside = ExpensiveFacts::find(town, id, site);
        if let Some(card) = gathered.cards.iter_mut().find(|card| card.id == *id) {
            aside.fill(card);
        }
        self.aside.insert(id.clone(), aside);
        gathered.stale.retain(|stale| stale != id);
    }

    fn session(
        &mut self,
        town: &Town,
        agent: &Identity,
        container: &Container,
        known: Option<StateReport>,
    ) -> CardAgent {
        let pane = container.pane();
        let report =
            known.unwrap_or_else(|| container.state(self.presets.get(town, &pane.tag_harness)));
        CardAgent {
            agent: agent.address(),
            container: container.name().to_owned(),
            harness: Some(pane.tag_harness.clone()).filter(|name| !name.is_empty()),
            state: report.state,
            source: report.source,
            since: report.since,
            background: report.background,
            resets_at: limits::resets_at(&report),
            continues: report.limit.as_ref().is_some_and(|limit| limit.continues),
            reason: report.reason.map(String::from),
            attached: container.is_attached(),
            only_shell: container.session_id().is_none(),
        }
    }

    /// Returns the place where an item is worked on, if there is one.
    fn site(
        &mut self,
        town: &Town,
        agent: &Identity,
        rig: &str,
        container: Option<&Container>,
        session: Option<&CardAgent>,
    ) -> Option<WorkSite> {
        let dir = self.places.worktree(town, agent, rig);
        if dir.is_none() && container.is_none() {
            return None;
        }
        let base = self.places.base(town, rig);
        Some(WorkSite {
            agent: agent.clone(),
            stamp: Stamp::of(container, session, base.as_ref(), dir.as_deref()),
            container: container.cloned(),
            dir,
            base,
        })
    }
}

impl GatheredCards {
    /// Returns the pane to show for a card: that of its agent, or of the conflict resolver beside
    /// it if that needs a person.
    pub fn pane_of(&self, card: &Card) -> Option<PanePlace> {
        let container = self.container_of(&card.id)?;
        let beside = match card.speaker() {
            Speaker::Resolver(_) => container.resolver_pane(),
            Speaker::Agent => None,
        };
        Some(beside.unwrap_or_else(|| container.pane()).place())
    }

    /// Returns the socket of the tmux server of an item's agent, if that is not the town's own.
    pub fn socket_of(&self, id: &WorkId) -> Option<&Path> {
        self.container_of(id)?.socket()
    }

    fn container_of(&self, id: &WorkId) -> Option<&Container> {
        let without_item = || self.agents.get(id).map(|(_, container)| container);
        match self.sites.get(id) {
            Some(site) => site.container.as_ref(),
            None => without_item(),
        }
    }

    /// Returns the agent that works on an item, or would.
    pub fn agent_of(&self, id: &WorkId) -> Option<&Identity> {
        let without_item = || self.agents.get(id).map(|(agent, _)| agent);
        let of_item = self.sites.get(id).map(|site| &site.agent);
        of_item.or_else(without_item)
    }

    /// Returns the git files of the branches with their state when they were read. A change to one
    /// of them may change a card.
    pub fn files(&self) -> Files {
        let own = self.sites.values().flat_map(|site| site.stamp.git.clone());
        own.chain(self.bases.clone()).collect()
    }

    /// Returns whether cards may change without a notification: a working agent changes files, and
    /// a server starts up.
    pub fn is_in_motion(&self) -> bool {
        let of_items = self.cards.iter().filter(|card| !card.is_agent);
        of_items.into_iter().any(expensive::is_in_motion)
    }
}

/// Returns the agent of each item: the agent that has it on its hook, otherwise its task's agent if
/// that has a container or a worktree.
fn agents_of<'a>(
    town: &Town,
    overview: &Overview,
    containers: &'a [Container],
) -> HashMap<WorkId, (Identity, Option<&'a Container>)> {
    let by_agent: HashMap<&Identity, &Container> = containers
        .iter()
        .filter_map(|container| Some((container.identity()?, container)))
        .collect();
    let mut found: HashMap<WorkId, (Identity, Option<&Container>)> = overview
        .items
        .iter()
        .map(|item| {
            let agent = Identity::task(item.id.as_str(), town.registry());
            let container = by_agent.get(&agent).copied();
            (item.id.clone(), (agent, container))
        })
        .collect();
    for (address, id) in &overview.hooks {
        let Some(agent) = Identity::from_address(address, town.registry()) else {
            continue;
        };
        let container = by_agent.get(&agent).copied();
        if let Some(known) = found.get_mut(id)
            && (known.1.is_none() || container.is_some())
        {
            *known = (agent, container);
        }
    }
    found
}

/// Returns the agents with a container that no item shows.
fn agents_without_item<'a>(
    agents: &HashMap<WorkId, (Identity, Option<&Container>)>,
    containers: &'a [Container],
) -> Vec<(&'a Identity, &'a Container)> {
    let shown: HashSet<&str> = agents
        .values()
        .filter_map(|(_, container)| Some(container.as_ref()?.name()))
        .collect();
    let others = containers.iter().filter_map(|container| {
        let agent = container.identity()?;
        (!shown.contains(container.name())).then_some((agent, container))
    });
    others.collect()
}

fn agent_card(agent: &Identity, container: &Container, session: CardAgent) -> Card {
    let since = session.since.unwrap_or_default();
    Card {
        is_agent: true,
        kind: agent.role().as_str().to_owned(),
        priority: LOWEST_PRIORITY,
        status: ItemStatus::InProgress,
        rig: agent.rig().map(str::to_owned),
        created_at: since,
        updated_at: since,
        holder: Some(agent.address()),
        session: Some(session),
        ..Card::new(WorkId::of_container(container.name()), agent.address())
    }
}

/// Returns the address of the agent that works on an item, if it is not the agent of the item's own
/// task.
fn holder(town: &Town, id: &WorkId, agent: &Identity) -> Option<String> {
    let own = Identity::task(id.as_str(), town.registry());
    (*agent != own).then(|| agent.address())
}

/// Returns whether an agent program runs, paused or not.
fn runs(session: Option<&CardAgent>) -> bool {
    session.is_some_and(|session| session.harness.is_some() && !session.state.is_dead())
}

fn crew(town: &Town) -> Vec<String> {
    let rigs = town.registry().rigs.keys();
    rigs.flat_map(|rig| directory::workers(town, rig, Role::Crew))
        .map(|worker| worker.address())
        .collect()
}

fn open_items(overview: &Overview) -> HashSet<&WorkId> {
    let is_open = |item: &&Item| item.closed_at.is_none();
    let open = overview.items.iter().filter(is_open);
    open.map(|item| &item.id).collect()
}

fn rig_of(town: &Town, overview: &Overview, id: &WorkId) -> Option<String> {
    let in_beads = overview.rigs.get(id).cloned();
    in_beads.or_else(|| Some(town.registry().split(id.as_str())?.0.to_owned()))
}

fn card(
    item: &Item,
    rig: Option<String>,
    overview: &Overview,
    open: &HashSet<&WorkId>,
    merges: &[Merge],
) -> Card {
    let merge = merges.iter().find(|merge| merge.item == item.id);
    Card {
        kind: item.kind.clone(),
        priority: item.priority,
        status: item.status,
        rig,
        labels: item.labels.clone(),
        assignee: item.assignee.clone(),
        parent: item.parent.clone(),
        blocked_by: item
            .deps
            .iter()
            .filter(|id| open.contains(id))
            .cloned()
            .collect(),
        parts: overview.parts.get(&item.id).copied(),
        created_at: seconds(&item.created_at),
        updated_at: seconds(&item.updated_at),
        merge: merge.map(|merge| merge.status),
        ..Card::new(item.id.clone(), item.title.clone())
    }
}

fn seconds(time: &str) -> i64 {
    time.parse().map_or(0, Timestamp::as_second)
}
