//! Runs the board: the terminal, and the threads that gather facts and run commands.
//!
//! `gt-board` decides what is shown and what a key means. This module has the rest: an event loop
//! that sleeps until a key or an event arrives ([`inbox`]), the facts ([`facts`]), the screen and
//! the details in view ([`view`]), the commands ([`invocations`]), and the terminal, which is restored
//! on every exit ([`terminal`]).

mod details;
mod facts;
mod fetch;
mod inbox;
mod invocations;
mod saved_view;
mod terminal;
mod view;
mod watch;

use facts::FactsReader;
use fetch::BackgroundFetch;
use gt_board::{Board, BoardEvent, BoardRequest, BoardTheme, Moment};
use gt_core::Problem;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::messaging::notify;
use gt_town::views::monitor::MonitorChange;
use inbox::{BoardInbox, Post};
use invocations::Invocations;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use terminal::Terminal;
use view::{Panes, ViewHandle};
use watch::Watch;

/// Options of the board at its start.
#[derive(Debug)]
pub(crate) struct BoardOptions {
    /// `None` is the theme of the last board.
    pub(crate) theme: Option<BoardTheme>,
    pub(crate) project: Option<String>,
    pub(crate) mouse: bool,
}

/// Shows the board until the person quits.
pub(crate) fn run(town: Town, look: BoardOptions) -> Result<(), Problem> {
    let no_terminal =
        |error| Problem::environment("the board cannot use this terminal").caused_by(error);
    let inbox = BoardInbox::open().map_err(no_terminal)?;
    let panes = Arc::new(Panes::default());
    let eyes = Watch::default();
    let (first, second) = (town.clone(), town.clone());
    let facts = FactsReader::gather(first, inbox.post(), Arc::clone(&panes), eyes.clone());
    let view = ViewHandle::open(second, inbox.post(), panes, eyes.clone());
    watch(&town, &eyes, &facts, &view, &inbox.post())?;
    let saved = saved_view::read(&town);
    let theme = look.theme.or(saved.theme()).unwrap_or_default();
    let mut board = Board::new(theme);
    board.restore_view(&saved);
    let _fetch = BackgroundFetch::start(&town);
    let mut session = BoardSession {
        board,
        invocations: Invocations::new(&town, &inbox.post()),
        terminal: Terminal::take(look.mouse).map_err(no_terminal)?,
        inbox,
        facts,
        view,
        looking: None,
    };
    if let Some(project) = &look.project {
        session.board.show_project(Some(project.clone()));
    }
    let ended = session.run();
    let mut view = session.board.saved_view();
    // Options are for this board only, unless a key has changed what they set.
    if view.theme.is_none() || look.theme == Some(session.board.theme()) {
        view.theme = saved.theme;
    }
    if look.project.is_some() && look.project == view.project {
        view.project = saved.project;
    }
    saved_view::write(&town, &view);
    eyes.end();
    ended.map_err(no_terminal)
}

/// Starts the monitor and forwards its notices to the facts, the view and the event loop.
fn watch(
    town: &Town,
    eyes: &Watch,
    facts: &FactsReader,
    view: &ViewHandle,
    post: &Post,
) -> Result<(), Problem> {
    let (facts, view, post, own) = (facts.clone(), view.clone(), post.clone(), town.clone());
    eyes.begin(town, move |change| match change {
        MonitorChange::Screen(_) => view.on_output(),
        MonitorChange::Agents | MonitorChange::Work | MonitorChange::Files => facts.ask(),
        MonitorChange::Events => view.on_event(),
        MonitorChange::Moved(moved) => {
            facts.ask();
            if notify::board_rings(&own, &moved) {
                post.request_bell();
            }
        }
    })
}

struct BoardSession {
    board: Board,
    invocations: Invocations,
    terminal: Terminal,
    inbox: BoardInbox,
    facts: FactsReader,
    view: ViewHandle,
    /// Item whose agent's screen is in view.
    looking: Option<WorkId>,
}

impl BoardSession {
    fn run(&mut self) -> io::Result<()> {
        let (width, height) = crossterm::terminal::size()?;
        let mut requests = self
            .board
            .handle(BoardEvent::Resize { width, height }, now());
        loop {
            if self.fulfil(requests)? || self.inbox.is_ending() {
                return Ok(());
            }
            requests = self.handle_all()?;
            if !requests.is_empty() {
                continue;
            }
            if self.inbox.take_bell_request() {
                self.terminal.ring()?;
            }
            if self.board.is_dirty() {
                let board = &mut self.board;
                self.terminal
                    .screen()
                    .draw(|frame| board.draw(frame, now()))?;
            }
            let timeout = self.board.wake_at().map(until);
            self.inbox.wait(timeout);
            if self.board.wake_at().is_some_and(|at| at <= now()) {
                requests = self.board.handle(BoardEvent::Tick, now());
            }
        }
    }

    /// Handles all queued events, and returns the requests of the board.
    fn handle_all(&mut self) -> io::Result<Vec<BoardRequest>> {
        let mut requests = Vec::new();
        for event in self.inbox.take_events() {
            match event {
                // The agent of a card may have another pane now.
                BoardEvent::Facts(_) => self.view.changed(),
                // The monitor does not see changes that a command made in git.
                BoardEvent::Outcome { .. } => self.facts.ask(),
                _ => {}
            }
            requests.extend(self.board.handle(event, now()));
        }
        while requests.is_empty() && crossterm::event::poll(Duration::ZERO)? {
            let event = match crossterm::event::read()? {
                crossterm::event::Event::Key(key) => BoardEvent::Key(key),
                crossterm::event::Event::Mouse(mouse) => BoardEvent::Mouse(mouse),
                crossterm::event::Event::Paste(text) => BoardEvent::Paste(text),
                crossterm::event::Event::Resize(width, height) => {
                    BoardEvent::Resize { width, height }
                }
                _ => continue,
            };
            requests.extend(self.board.handle(event, now()));
        }
        Ok(requests)
    }

    /// Carries out the requests of the board. Returns true if it wants to quit.
    fn fulfil(&mut self, requests: Vec<BoardRequest>) -> io::Result<bool> {
        for request in requests {
            match request {
                BoardRequest::Quit => return Ok(true),
                BoardRequest::Redraw => {
                    self.terminal.screen().clear()?;
                    self.facts.ask();
                }
                BoardRequest::Run(order) => self.invocations.run(order),
                BoardRequest::Foresee(order) => self.invocations.foresee(order),
                BoardRequest::Ask(order) => self.invocations.ask(order),
                BoardRequest::ReadItem(order) => self.invocations.read_item(order),
                BoardRequest::ReadBehind(order) => self.invocations.read_behind(order),
                BoardRequest::HandOver(order) => {
                    // The screen is not visible while the command has the terminal.
                    self.view.set_item(None);
                    let invocations = &self.invocations;
                    let outcome = self
                        .terminal
                        .restore_while(|| invocations.run_here(&order))?;
                    self.view.set_item(self.looking.clone());
                    self.inbox.ignore_interrupt();
                    self.inbox.post().send(outcome);
                }
                BoardRequest::Look(id) => {
                    self.looking.clone_from(&id);
                    self.view.set_item(id);
                }
                BoardRequest::Show { id, tab } => self.view.show(Some((id, tab))),
                BoardRequest::Unshow => self.view.show(None),
            }
        }
        Ok(false)
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Moment::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

fn until(moment: Moment) -> Duration {
    let left = moment.millis().saturating_sub(now().millis());
    Duration::from_millis(u64::try_from(left).unwrap_or(0))
}
