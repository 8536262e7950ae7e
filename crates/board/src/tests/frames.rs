//! Snapshots of every view, at the sizes that matter.

use super::views::{SIZES, each_view, view};
use super::*;
use crate::Tab;
use crate::overlay::Overlay;
use ratatui::style::Color;

#[test]
fn every_view_at_every_size() {
    each_view(|name, open| {
        let mut all = String::new();
        for (width, height) in SIZES {
            let stage = open(width, height, BoardTheme::Dark);
            all.push_str(&format!("--- {width}x{height}\n{}", stage.screen()));
        }
        insta::assert_snapshot!(name, all);
    });
}

/// Every kind of overlay, in the order of [`kind_of`].
const OVERLAYS: &[&str] = &[
    "actions",
    "go",
    "search",
    "filter",
    "sort",
    "palette",
    "projects",
    "servers",
    "merge choice",
    "resume first",
    "cleanup",
    "init failed",
    "confirm",
    "escalations",
    "merge queue",
    "restore",
    "emergency stop",
    "answer",
    "write",
    "form",
    "workers",
    "comment",
    "help",
    "log",
];

/// Returns the place in [`OVERLAYS`]. A new kind needs a row there.
fn kind_of(overlay: &Overlay) -> usize {
    match overlay {
        Overlay::Actions { .. } => 0,
        Overlay::Go { .. } => 1,
        Overlay::Search { .. } => 2,
        Overlay::Filter { .. } => 3,
        Overlay::Sort { .. } => 4,
        Overlay::Palette { .. } => 5,
        Overlay::Projects { .. } => 6,
        Overlay::Servers { .. } => 7,
        Overlay::MergeChoice { .. } => 8,
        Overlay::ResumeFirst { .. } => 9,
        Overlay::Cleanup { .. } => 10,
        Overlay::InitFailed { .. } => 11,
        Overlay::Confirm { .. } => 12,
        Overlay::Escalations { .. } => 13,
        Overlay::MergeQueue { .. } => 14,
        Overlay::Restore { .. } => 15,
        Overlay::EmergencyStop { .. } => 16,
        Overlay::Answer { .. } => 17,
        Overlay::Write { .. } => 18,
        Overlay::Form { .. } => 19,
        Overlay::Workers { .. } => 20,
        Overlay::Comment { .. } => 21,
        Overlay::Help { .. } => 22,
        Overlay::Log { .. } => 23,
    }
}

#[test]
fn every_overlay_and_tab_has_a_view() {
    let (mut overlays, mut tabs) = (vec![false; OVERLAYS.len()], Vec::new());
    each_view(|_, open| {
        let stage = open(140, 40, BoardTheme::Dark);
        if let Some(overlay) = &stage.board.overlay {
            overlays[kind_of(overlay)] = true;
        }
        tabs.extend(stage.board.detail.as_ref().map(|detail| detail.tab));
    });
    let missing = OVERLAYS.iter().zip(overlays).filter(|(_, seen)| !seen);
    let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
    assert!(missing.is_empty(), "no view shows {missing:?}");
    assert!(Tab::ALL.iter().all(|tab| tabs.contains(tab)), "{tabs:?}");
}

#[test]
fn colours_change_nothing_but_colours() {
    each_view(|name, open| {
        for (width, height) in SIZES {
            let text = |theme| open(width, height, theme).screen();
            let dark = text(BoardTheme::Dark);
            assert_eq!(dark, text(BoardTheme::Light), "{name}");
            assert_eq!(dark, text(BoardTheme::Plain), "{name}");
        }
    });
}

#[test]
fn without_colours_there_are_none() {
    each_view(|name, open| {
        let stage = open(140, 40, BoardTheme::Plain);
        for cell in stage.terminal.backend().buffer().content() {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{name}");
        }
    });
}

#[test]
fn the_preview_has_the_colours_of_the_agents_screen() {
    let stage = view("", 80, 24, BoardTheme::Dark, town());
    let cells = stage.terminal.backend().buffer().content();
    for colour in [Color::Green, Color::Indexed(208), Color::Rgb(255, 0, 0)] {
        assert!(cells.iter().any(|cell| cell.fg == colour), "{colour:?}");
    }
}

#[test]
fn each_state_has_its_own_symbol() {
    let mut facts = town();
    facts.cards = [
        State::Busy,
        State::Waiting,
        State::Error,
        State::Done,
        State::Paused,
        State::Idle,
        State::Crashed,
        State::Exited,
        State::Stopped,
        State::Starting,
        State::Running,
    ]
    .into_iter()
    .enumerate()
    .map(|(number, state)| working(card(&format!("gt-0000{number}"), "x"), state, 60))
    .collect();
    let mut seen = std::collections::BTreeSet::new();
    for card in &facts.cards {
        let state = card.session.as_ref().map(|session| session.state);
        assert!(seen.insert(crate::theme::state_sign(state)), "{state:?}");
    }
    let stage = Stage::with(200, 50, BoardTheme::Plain, facts);
    for sign in seen {
        stage.assert_shows(&format!("{sign} gt-0000"));
    }
}

#[test]
fn an_empty_town_is_a_board_too() {
    for (width, height) in SIZES {
        let mut stage = Stage::with(
            width,
            height,
            BoardTheme::Dark,
            BoardFacts {
                town: "hello".to_owned(),
                ..BoardFacts::default()
            },
        );
        stage.assert_shows("Needs you 0");
        assert_eq!(stage.board.wake_at(), None, "it sleeps for ever");
        for keys in [
            "j", "k", "h", "l", "H", "L", "G", "<Home>", "<Tab>", "n<Esc>", "N", "V", "*",
            "<Enter>", "gg", "ge", "ga",
        ] {
            stage.press(keys);
        }
        stage.press(" ");
        stage.assert_mode(KeyMode::Board);
        stage.assert_shows("There is no card here");
        stage.press("p<Esc>F<Esc>o<Esc>?<Esc>!<Esc>:start<Enter>");
        stage.assert_mode(KeyMode::Board);
    }
}

#[test]
fn too_small_is_said() {
    for (width, height) in [(20, 5), (39, 24), (80, 9), (5, 1), (1, 1)] {
        let stage = Stage::new(width, height);
        let screen = stage.screen();
        assert!(screen.starts_with("too small") || width < 10, "{screen}");
    }
    Stage::new(40, 10).assert_shows("Needs you 3");
}

#[test]
fn a_warning_is_shown_at_the_bottom() {
    let mut facts = town();
    facts.warnings = vec!["bd cannot be run".to_owned(), "another".to_owned()];
    let stage = Stage::with(120, 40, BoardTheme::Dark, facts);
    stage.assert_shows("! bd cannot be run (+1)");
}
