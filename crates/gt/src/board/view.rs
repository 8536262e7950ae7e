//! The agent's screen and the detail tab that are in view. A thread reads them again whenever
//! something has changed.

use super::details;
use super::inbox::Post;
use super::watch::Watch;
use gt_board::{AgentScreen, BoardEvent, Detail, Tab};
use gt_core::Identity;
use gt_core::card::CardServer;
use gt_core::work::WorkId;
use gt_tmux::Command;
use gt_town::Town;
use gt_town::terminal::containers::PanePlace;
use gt_town::views::cards::GatheredCards;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Panes of the agents by item, as last gathered.
#[derive(Debug, Default)]
pub(super) struct Panes(Mutex<HashMap<WorkId, ViewedPane>>);

#[derive(Clone, Debug)]
struct ViewedPane {
    agent: Identity,
    pane: Option<PanePlace>,
    /// Socket of the agent's tmux server, if it is not the town's.
    socket: Option<PathBuf>,
    servers: Vec<CardServer>,
    /// The card has no item.
    agent_only: bool,
}

impl Panes {
    pub(super) fn update_panes(&self, gathered: &GatheredCards) {
        let known = gathered.cards.iter().filter_map(|card| {
            let place = ViewedPane {
                agent: gathered.agent_of(&card.id)?.clone(),
                pane: gathered.pane_of(card),
                socket: gathered.socket_of(&card.id).map(Path::to_owned),
                servers: card.servers.clone(),
                agent_only: card.is_agent,
            };
            Some((card.id.clone(), place))
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known.collect();
    }

    fn place(&self, id: &WorkId) -> Option<ViewedPane> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).cloned()
    }
}

enum ViewRequest {
    Look(Option<WorkId>),
    Show(Option<(WorkId, Tab)>),
    /// The pane has new output.
    Printed,
    /// New events were logged.
    Happened,
    /// Anything may have changed.
    Changed,
}

/// Handle that sets what is in view.
#[derive(Clone, Debug)]
pub(super) struct ViewHandle(Sender<ViewRequest>);

impl ViewHandle {
    pub(super) fn open(town: Town, post: Post, panes: Arc<Panes>, watch: Watch) -> Self {
        let (tell, told) = channel();
        let worker = ViewWorker {
            town,
            post,
            panes,
            watch,
            look: None,
            pane: None,
            screen: AgentScreen::default(),
            show: None,
            follows: false,
        };
        std::thread::spawn(move || worker.run(&told));
        ViewHandle(tell)
    }

    /// Gives the worker a task. The worker ends with the board.
    fn send(&self, task: ViewRequest) {
        // Without a worker there is no board.
        let _ = self.0.send(task);
    }

    pub(super) fn set_item(&self, id: Option<WorkId>) {
        self.send(ViewRequest::Look(id));
    }

    pub(super) fn show(&self, what: Option<(WorkId, Tab)>) {
        self.send(ViewRequest::Show(what));
    }

    pub(super) fn on_output(&self) {
        self.send(ViewRequest::Printed);
    }

    pub(super) fn on_event(&self) {
        self.send(ViewRequest::Happened);
    }

    pub(super) fn changed(&self) {
        self.send(ViewRequest::Changed);
    }
}

struct ViewWorker {
    town: Town,
    post: Post,
    panes: Arc<Panes>,
    watch: Watch,
    look: Option<WorkId>,
    pane: Option<PanePlace>,
    screen: AgentScreen,
    show: Option<(WorkId, Tab)>,
    /// Whether the monitor watches events.
    follows: bool,
}

impl ViewWorker {
    fn run(mut self, told: &Receiver<ViewRequest>) {
        while let Ok(first) = told.recv() {
            let (mut screen, mut details) = (false, false);
            // Queued tasks are handled together, with one read.
            for task in std::iter::once(first).chain(told.try_iter()) {
                match task {
                    ViewRequest::Look(id) => {
                        self.look = id;
                        // The board has cleared this part of the screen, so the content is sent
                        // again even if unchanged.
                        self.screen = AgentScreen::default();
                        screen = true;
                    }
                    ViewRequest::Show(what) => {
                        self.show = what;
                        self.follow_events();
                        details = true;
                    }
                    ViewRequest::Happened => details |= self.shows_events(),
                    ViewRequest::Printed => screen = true,
                    ViewRequest::Changed => (screen, details) = (true, true),
                }
            }
            if screen {
                self.read_screen();
            }
            if details {
                self.read_details();
            }
        }
    }

    fn shows_events(&self) -> bool {
        matches!(self.show, Some((_, Tab::Events)))
    }

    /// Watches events only while they are in view.
    fn follow_events(&mut self) {
        let wanted = self.shows_events();
        if self.follows != wanted {
            self.follows = wanted;
            self.watch.watch_events(wanted);
        }
    }

    fn read_screen(&mut self) {
        let place = self.look.as_ref().and_then(|id| self.panes.place(id));
        let pane = place.as_ref().and_then(|place| place.pane);
        if pane != self.pane {
            self.pane = pane;
            self.watch.set_view(pane);
        }
        let text = pane.and_then(|pane| {
            let capture = Command::new("capture-pane").args(["-p", "-e"]);
            let capture = capture.target(pane.pane);
            let captured = match place?.socket {
                Some(socket) => self.town.with_server(&socket).server().run(capture),
                None => self.town.server().run(capture),
            };
            // A pane that is gone shows nothing.
            captured.ok()
        });
        let screen = AgentScreen {
            id: self.look.clone(),
            lines: text.map_or_else(Vec::new, |text| text.lines().map(str::to_owned).collect()),
        };
        if screen != self.screen {
            self.screen = screen.clone();
            self.post.send(BoardEvent::Screen(screen));
        }
    }

    fn read_details(&mut self) {
        let Some((id, tab)) = &self.show else { return };
        // A rig may have been added since.
        if let Ok(town) = Town::open(self.town.root(), self.town.around().clone()) {
            self.town = town;
        }
        let place = self.panes.place(id);
        let agent_only = place.as_ref().is_some_and(|place| place.agent_only);
        let (agent, servers) = place.map_or((None, Vec::new()), |place| {
            (Some(place.agent), place.servers)
        });
        let without_item = agent.as_ref().filter(|_| agent_only);
        let detail = match tab {
            Tab::Terminal => return,
            Tab::Task => match without_item {
                Some(agent) => Ok(details::agent(agent)),
                None => details::task(&self.town, id),
            },
            Tab::Diff => details::diff(&self.town, id, without_item),
            Tab::Events => details::events(&self.town, id, agent.as_ref()),
            Tab::Windows => match without_item {
                Some(_) => Ok(details::servers(servers)),
                None => details::windows(&self.town, id, servers),
            },
            Tab::Chain => details::chain(&self.town, id, without_item),
        };
        let detail = detail.unwrap_or_else(|problem| Detail::Failed(problem.to_string()));
        self.post.send(BoardEvent::Detail {
            id: id.clone(),
            tab: *tab,
            detail,
        });
    }
}
