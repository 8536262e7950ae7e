//! Collects the snapshot of a patrol: one listing of the containers, one query per store. Files of
//! an agent are read only if a rule may act on it, so an idle agent without work costs no file.

use crate::agents::claim;
use crate::agents::listing;
use crate::agents::states::States;
use crate::base::dnd::{self, DndNotes};
use crate::base::estop;
use crate::base::files;
use crate::base::lock::FileLock;
use crate::catalog::harnesses::Presets;
use crate::catalog::{directory, roles};
use crate::lifecycle::restore;
use crate::messaging::queue::{self, MessageQueue};
use crate::records::events::{self, Events};
use crate::records::items::Work;
use crate::records::keepalive;
use crate::records::limits;
use crate::records::sessions::Sessions;
use crate::records::usage;
use crate::repo::rig;
use crate::supervision::scheduler;
use crate::terminal::containers::{self, Container};
use crate::terminal::pidfile;
use crate::workflow::merge::background;
use crate::workflow::polecat;
use crate::workflow::schedule::{self, ScheduleSnapshot};
use crate::{Result, Town};
use gt_core::patrol::{
    AgentDeath, AgentFacts, EndFacts, ItemFacts, Leftover, LeftoverFacts, LimitFacts,
    MergeQueueFacts, PatrolMemory, Presence, QueueFacts, RespawnFacts, ServerFacts, Snapshot,
    WaitingFacts,
};
use gt_core::record::{Outcome, Record};
use gt_core::state::{State, StateReport, StateSource};
use gt_core::work::{ItemStatus, WorkId};
use gt_core::{Identity, Role};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Time after the last key of a person for which an agent counts as attended.
const ATTENDED_FOR: i64 = 15 * 60;
/// Silence after which transcripts are checked.
const SILENT_AFTER: i64 = 10 * 60;
/// Maximum age of the deaths in the snapshot.
const DEATHS_FOR: SignedDuration = SignedDuration::from_mins(15);

/// The snapshot, and the containers that it was made of.
pub(super) struct ObservedTown {
    pub(super) snapshot: Snapshot,
    pub(super) containers: Vec<Container>,
}

impl ObservedTown {
    pub(super) fn container(&self, agent: &str) -> Option<&Container> {
        let is_its = |it: &&Container| it.identity().is_some_and(|who| who.address() == agent);
        self.containers.iter().find(is_its)
    }
}

pub(super) fn observe(town: &Town, memory: &PatrolMemory) -> Result<ObservedTown> {
    let work = Work::of(town);
    let held = work.held()?;
    let containers = containers::list_everywhere(town)?;
    let mut ours: Vec<(&Identity, &Container)> = containers
        .iter()
        .filter_map(|container| Some((container.identity()?, container)))
        .collect();
    ours.sort_by(|a, b| listing::order(a.0).cmp(&listing::order(b.0)));
    let shown: Vec<&Container> = ours.iter().map(|(_, container)| *container).collect();
    let reports = States::default().read(town, &shown);
    let mut observer = Observer {
        town,
        presets: Presets::default(),
        undisturbed: dnd::all(town),
        now: town.clock().seconds(),
        sessions: Sessions::of(town),
        hooks: held
            .iter()
            .map(|held| (held.agent.as_str(), held.item.as_str()))
            .collect(),
        any_message: queue::any_waiting(town),
    };
    let mut agents = Vec::new();
    for ((identity, container), report) in ours.iter().zip(&reports) {
        agents.push(observer.present(identity, container, report)?);
    }
    let present: HashSet<String> = ours.iter().map(|(it, _)| it.address()).collect();
    for held in &held {
        let identity = Identity::from_address(&held.agent, town.registry());
        if let Some(identity) = identity
            && !present.contains(&identity.address())
        {
            agents.push(observer.absent(identity)?);
        }
    }
    let mut items: Vec<ItemFacts> = held
        .iter()
        .map(|held| {
            let holder = Identity::from_address(&held.agent, town.registry());
            let has_container = present.contains(&held.agent);
            ItemFacts {
                id: held.item.to_string(),
                rig: holder.as_ref().and_then(|it| it.rig().map(str::to_owned)),
                holder: Some(held.agent.clone()),
                since: seconds(&held.since),
                holder_exists: has_container
                    || holder.is_some_and(|holder| {
                        holder.role() == Role::Polecat || directory::has(town, &holder)
                    }),
            }
        })
        .collect();
    items.extend(observer.reassigned(memory, &work)?);
    let now = town.clock().now();
    let due = work.escalations_due(now)?;
    let mut snapshot = Snapshot {
        is_stopped: estop::read(town, None).is_some(),
        server: ServerFacts {
            is_alive: !containers.is_empty(),
            lost: match town.settings().patrol.restore {
                true => restore::lost_agents(town, &containers)?,
                false => Vec::new(),
            },
        },
        merge_queues: merge_queues(town, &work)?,
        schedule: schedule_facts(town, &work)?,
        deaths: observer.deaths(&agents)?,
        escalations_due: due.iter().map(|it| it.id.to_string()).collect(),
        leftovers: observer.leftovers(&containers, town.settings().patrol.worktree_after.0 > 0)?,
        // If the free space is unknown, there is no alarm.
        free_bytes: rustix::fs::statvfs(town.root())
            .ok()
            .map(|room| room.f_bavail.saturating_mul(room.f_frsize)),
        agents,
        items,
    };
    for rig in estop::all(town).into_iter().filter_map(|note| note.rig) {
        leave_out(&mut snapshot, &rig);
    }
    Ok(ObservedTown {
        snapshot,
        containers,
    })
}

/// Removes the facts of a rig that is stopped.
fn leave_out(snapshot: &mut Snapshot, rig: &str) {
    let is_other = |its: &Option<String>| its.as_deref() != Some(rig);
    snapshot.agents.retain(|agent| is_other(&agent.rig));
    snapshot.items.retain(|item| is_other(&item.rig));
    snapshot.merge_queues.retain(|queue| queue.rig != rig);
}

struct Observer<'a> {
    town: &'a Town,
    presets: Presets,
    undisturbed: DndNotes,
    now: i64,
    sessions: Sessions,
    /// Items by agent.
    hooks: HashMap<&'a str, &'a str>,
    any_message: bool,
}

impl Observer<'_> {
    /// Returns the facts of an agent that has a container.
    fn present(
        &mut self,
        identity: &Identity,
        container: &Container,
        report: &StateReport,
    ) -> Result<AgentFacts> {
        let row = container.pane();
        let is_dead = row.dead || container.lost_agent_pane();
        // A session that was never attached has the time of its start there.
        let is_typed = row.attached_at.is_some()
            && row.handled_at > row.attached_at
            && row
                .handled_at
                .is_some_and(|at| self.now - at < ATTENDED_FOR);
        let deaths = row
            .tag_deaths
            .split(',')
            .filter(|it| !it.is_empty())
            .count();
        let mut facts = self.facts(identity, report);
        facts.presence = if is_dead {
            Presence::Dead
        } else {
            Presence::Alive
        };
        facts.started_at = container
            .session_id()
            .and_then(|session| session.began_at_millis())
            .map(|at| at / 1000);
        // An agent under do-not-disturb counts as attended by a person.
        facts.is_attended =
            container.is_attached() || is_typed || self.undisturbed.contains_key(&facts.address);
        facts.is_adopted = container.adopted().is_some();
        facts.is_on_demand = identity.role() == Role::Dog || container.has_digest();
        facts.signs.printed_at = Some(row.activity);
        facts.respawn = RespawnFacts {
            is_wanted: false,
            is_armed: row.tag_auto_respawn,
            deaths,
        };
        facts.queue = match is_dead {
            true => None,
            false => self.queue(identity),
        };
        if facts.is_at_rest() {
            return Ok(facts);
        }
        facts.is_locked = self.is_locked(identity);
        facts.signs.keepalive_at = keepalive::read(self.town, identity)
            .and_then(|sign| keepalive::age(&sign, self.now))
            .map(|age| self.now - age);
        facts.signs.transcript_at = self.transcript_at(container);
        facts.respawn.is_wanted = self.is_respawned(identity);
        if is_dead {
            let known = self
                .sessions
                .find_known([row.tag_session.as_str()].into_iter())?;
            let recorded = known.get(&row.tag_session);
            facts.ended = Some(EndFacts {
                at: row.died_at.unwrap_or(row.activity),
                outcome: container.outcome(),
                how: report
                    .reason
                    .clone()
                    .map_or_else(|| "ended".to_owned(), String::from),
                is_recorded: recorded.is_some_and(|session| session.outcome.is_some()),
                is_lost: false,
            });
            return Ok(facts);
        }
        facts.limit = report.limit.as_ref().map(|limit| LimitFacts {
            until: limits::resets_at(report),
            account: container.account_key(),
            continues: limit.continues,
        });
        if report.state == State::Done && facts.item.is_some() {
            facts.is_finished = true;
        }
        Ok(facts)
    }

    /// Returns the facts of an agent that has an item and no container.
    fn absent(&self, identity: Identity) -> Result<AgentFacts> {
        let report = StateReport::new(State::Stopped, StateSource::Process);
        let mut facts = self.facts(&identity, &report);
        facts.presence = Presence::Gone;
        facts.is_locked = self.is_locked(&identity);
        let last = self.sessions.newest_of(&facts.address)?;
        facts.ended = last.as_ref().and_then(|last| end(last, self.now));
        facts.respawn.is_wanted = self.is_respawned(&identity);
        Ok(facts)
    }

    fn facts(&self, identity: &Identity, report: &StateReport) -> AgentFacts {
        let address = identity.address();
        let item = self.hooks.get(address.as_str());
        AgentFacts {
            item: item.map(|item| (*item).to_owned()),
            rig: identity.rig().map(str::to_owned),
            state: report.state,
            source: report.source,
            since: report.since,
            background: report.background,
            started_at: None,
            ..AgentFacts::idle(&address, identity.role(), self.now)
        }
    }

    /// Returns whether a process is starting or stopping the agent, or assigning work to it.
    fn is_locked(&self, identity: &Identity) -> bool {
        let is_polecat = identity.role() == Role::Polecat;
        FileLock::is_held(&self.town.lock_path(identity))
            || is_polecat && polecat::claim::is_held(self.town, identity)
    }

    fn is_respawned(&self, identity: &Identity) -> bool {
        let role = roles::resolve(self.town, identity.role(), identity.rig());
        // A start reports a role that cannot be read.
        role.is_ok_and(|role| role.value.start.auto_respawn)
    }

    fn queue(&self, identity: &Identity) -> Option<QueueFacts> {
        if !self.any_message {
            return None;
        }
        let queue = MessageQueue::of(self.town, identity);
        if queue.is_held_back(self.town, identity) {
            return None;
        }
        let waiting = queue.waiting();
        let interrupted = queue.interrupted().map(|taken| taken.message.created_at);
        let times = waiting.iter().map(|message| message.created_at);
        Some(QueueFacts {
            oldest_at: times.chain(interrupted).min()?,
            waiting: waiting.len().max(1),
            has_deliverer: !queue.wants_deliverer(),
        })
    }

    /// Returns the items that a patrol took from an agent and that are open and on no hook.
    fn reassigned(&self, memory: &PatrolMemory, work: &Work) -> Result<Vec<ItemFacts>> {
        let mut found = Vec::new();
        for id in memory.reassigned() {
            if self.hooks.values().any(|hooked| *hooked == id) {
                continue;
            }
            // An id that cannot be parsed names no item of the town.
            let Ok(id) = id.parse::<WorkId>() else {
                continue;
            };
            let item = work.lookup(&id)?;
            if item.is_some_and(|item| item.status == ItemStatus::Open) {
                found.push(ItemFacts {
                    rig: self
                        .town
                        .registry()
                        .split(id.as_str())
                        .map(|(rig, _)| rig.to_owned()),
                    id: id.to_string(),
                    holder: None,
                    since: None,
                    holder_exists: false,
                });
            }
        }
        Ok(found)
    }

    /// Returns recent deaths of agents that had come up. Another rule handles those that were lost
    /// with their server.
    fn deaths(&self, agents: &[AgentFacts]) -> Result<Vec<AgentDeath>> {
        let since = self.town.clock().now().checked_sub(DEATHS_FOR).ok();
        let events = Events::of(self.town).find(&events::EventQuery {
            kinds: vec!["session_death".to_owned()],
            since,
            ..events::EventQuery::default()
        })?;
        let text = |event: &gt_core::event::Event, name: &str| {
            event.payload.get(name)?.as_str().map(str::to_owned)
        };
        let failed = |event: &gt_core::event::Event| {
            event.payload.get("failed_start") == Some(&serde_json::Value::Bool(true))
        };
        let ids: Vec<String> = events
            .iter()
            .filter_map(|it| text(it, "session_id"))
            .collect();
        let known = match ids.is_empty() {
            true => HashMap::new(),
            false => self.sessions.find_known(ids.iter().map(String::as_str))?,
        };
        let is_lost = |event: &gt_core::event::Event| {
            let session = text(event, "session_id").and_then(|id| known.get(&id));
            session.is_some_and(|session| session.lost == Some(true))
        };
        // The journal may not have the deaths of panes that are dead already.
        let shown = agents.iter().filter_map(|agent| {
            let end = agent.ended.as_ref()?;
            let is_death = end.outcome == Outcome::Crash && !end.is_lost;
            is_death.then(|| AgentDeath {
                agent: agent.address.clone(),
                at: end.at,
            })
        });
        let deaths = events
            .iter()
            .filter(|event| !failed(event) && !is_lost(event));
        Ok(deaths
            .map(|event| AgentDeath {
                agent: event.actor.clone(),
                at: text(event, "ended_at")
                    .and_then(|at| seconds(&at))
                    .or_else(|| seconds(&event.ts))
                    .unwrap_or(self.now),
            })
            .chain(shown)
            .collect())
    }

    fn leftovers(
        &self,
        containers: &[Container],
        with_worktrees: bool,
    ) -> Result<Vec<LeftoverFacts>> {
        let lost = pidfile::without_container(self.town, || Ok(containers))?;
        let alive = lost.into_iter().filter(|tracked| tracked.alive.is_some());
        let mut left: Vec<LeftoverFacts> = alive
            .map(|tracked| LeftoverFacts {
                kind: Leftover::Process,
                since: modified(&pidfile::path(self.town, &tracked.container)).unwrap_or(self.now),
                name: tracked.container,
            })
            .collect();
        let locks = git_locks(self.town)
            .into_iter()
            .map(|path| (Leftover::Lock, path));
        let claims = claim::ended(self.town).into_iter();
        let claims = claims.map(|path| (Leftover::Claim, path));
        left.extend(locks.chain(claims).map(|(kind, path)| LeftoverFacts {
            kind,
            since: modified(&path).unwrap_or(self.now),
            name: path.display().to_string(),
        }));
        if with_worktrees {
            left.extend(self.worktrees(containers)?);
        }
        Ok(left)
    }

    /// Returns the worktrees of polecats that have no container and no item. Whether their work is
    /// saved is checked when one is removed.
    fn worktrees(&self, containers: &[Container]) -> Result<Vec<LeftoverFacts>> {
        let mut found = Vec::new();
        for rig in self.town.registry().rigs.keys() {
            for identity in directory::workers(self.town, rig, Role::Polecat) {
                let address = identity.address();
                let has_container = containers.iter().any(|it| it.identity() == Some(&identity));
                if has_container
                    || self.hooks.contains_key(address.as_str())
                    || polecat::claim::is_held(self.town, &identity)
                {
                    continue;
                }
                found.push(LeftoverFacts {
                    kind: Leftover::Worktree,
                    since: polecat::last_change(self.town, &identity)?,
                    name: address,
                });
            }
        }
        Ok(found)
    }

    /// Returns when the transcript of a silent agent last changed.
    fn transcript_at(&mut self, container: &Container) -> Option<i64> {
        let row = container.pane();
        let silent_after = SILENT_AFTER / i64::from(self.town.settings().patrol.speed.max(1));
        if self.now - row.activity < silent_after || row.tag_harness_session.is_empty() {
            return None;
        }
        // Without its settings the transcript is unknown, and the other signs decide.
        let preset = self.presets.get(self.town, &row.tag_harness)?;
        let config_dir = container.config_dir().map(PathBuf::from);
        let root = usage::folder_of(self.town, preset, config_dir.as_deref())?;
        let files = usage::conversation(&root, preset, &row.tag_harness_session);
        files.iter().filter_map(|path| modified(path)).max()
    }
}

/// Returns the end of a session. One that the journal has as running was lost with its container.
fn end(last: &Record, now: i64) -> Option<EndFacts> {
    let ended = last.ended_at.as_deref().and_then(seconds);
    Some(EndFacts {
        at: ended.unwrap_or(now),
        outcome: last.outcome.unwrap_or(Outcome::Killed),
        how: match (last.outcome, last.exit_code) {
            (Some(_), Some(code)) => format!("exit status {code}"),
            (Some(outcome), None) => outcome.as_str().to_owned(),
            (None, _) => "its container is gone".to_owned(),
        },
        is_recorded: last.outcome.is_some(),
        is_lost: last.lost == Some(true),
    })
}

fn merge_queues(town: &Town, work: &Work) -> Result<Vec<MergeQueueFacts>> {
    let mut queues: BTreeMap<String, (usize, i64)> = BTreeMap::new();
    for merge in work.merges(None, false)? {
        if !merge.status.is_waiting() {
            continue;
        }
        let at = seconds(&merge.created_at).unwrap_or_default();
        let queue = queues.entry(merge.rig).or_insert((0, at));
        *queue = (queue.0 + 1, queue.1.min(at));
    }
    let facts = |(rig, (waiting, oldest_at)): (String, (usize, i64))| MergeQueueFacts {
        is_running: background::is_running(town, &rig),
        is_automatic: background::is_wanted(town, &rig),
        rig,
        waiting,
        oldest_at,
    };
    Ok(queues.into_iter().map(facts).collect())
}

/// Returns the assignments that could start now. Assignments that wait for a slot do not count.
fn schedule_facts(town: &Town, work: &Work) -> Result<Option<WaitingFacts>> {
    if !work.has_queued_assignments()? {
        return Ok(None);
    }
    let snapshot = ScheduleSnapshot::read(town)?;
    let plan = snapshot.plan(town);
    let ready = snapshot
        .entries
        .iter()
        .filter(|entry| plan.starts.contains(&entry.item.id));
    let times: Vec<i64> = ready
        .filter_map(|entry| seconds(&entry.queued_at))
        .collect();
    let Some(oldest_at) = times.iter().copied().min() else {
        return Ok(None);
    };
    Ok(Some(WaitingFacts {
        waiting: times.len(),
        oldest_at,
        is_running: scheduler::is_running(town),
        is_paused: schedule::paused(town)?.is_some(),
    }))
}

/// Returns the lock files of git in the repositories of all rigs. A git process that was killed
/// leaves them.
fn git_locks(town: &Town) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in town.registry().rigs.keys() {
        let repository = rig::repository(town, name);
        let worktrees = repository.join("worktrees");
        let folders = files::folder_names(&worktrees).into_iter();
        let folders = folders.map(|folder| worktrees.join(folder));
        for folder in std::iter::once(repository).chain(folders) {
            let locks = ["index.lock", "HEAD.lock"].map(|lock| folder.join(lock));
            found.extend(locks.into_iter().filter(|lock| lock.exists()));
        }
    }
    found
}

/// Returns when a file was changed, in seconds since the epoch.
pub(super) fn modified(path: &Path) -> Option<i64> {
    // A file that is gone meanwhile has no time.
    let at = path.metadata().and_then(|meta| meta.modified()).ok()?;
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).ok()
}

fn seconds(time: &str) -> Option<i64> {
    Some(time.parse::<Timestamp>().ok()?.as_second())
}
