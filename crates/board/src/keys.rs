//! The one table of keys. Help, the action menu, the palette and the manual are made
//! from it, and so is what a key does: there is no other place that knows keys.

use crate::Tab;
use crate::action::{Action, Deed, ServerDeed};
use crate::sort::Sort;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

/// What has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Board,
    /// After `Space`.
    Actions,
    Detail,
    /// After `g`.
    Go,
    Search,
    Filter,
    Sort,
    /// Lists with a search of their own: the palette and the projects.
    Pick,
    Servers,
    MergeChoice,
    Cleanup,
    Confirm,
    /// A line to be typed: an answer or a message.
    Write,
    /// Help and messages.
    Read,
}

impl Mode {
    pub const ALL: [Mode; 14] = [
        Mode::Board,
        Mode::Actions,
        Mode::Detail,
        Mode::Go,
        Mode::Search,
        Mode::Filter,
        Mode::Sort,
        Mode::Pick,
        Mode::Servers,
        Mode::MergeChoice,
        Mode::Cleanup,
        Mode::Confirm,
        Mode::Write,
        Mode::Read,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Mode::Board => "Board",
            Mode::Actions => "Actions (Space)",
            Mode::Detail => "Detail",
            Mode::Go => "Go to (g)",
            Mode::Search => "Search (/)",
            Mode::Filter => "Filter (F)",
            Mode::Sort => "Sort (o)",
            Mode::Pick => "Palette and projects",
            Mode::Servers => "Dev servers (Space r)",
            Mode::MergeChoice => "Branch behind its base (Space a)",
            Mode::Cleanup => "Cleanup (Space d)",
            Mode::Confirm => "Questions",
            Mode::Write => "Answer and message (Space y, Space n)",
            Mode::Read => "Help and messages",
        }
    }

    /// Whether letters without a meaning of their own are text.
    pub(crate) fn takes_text(self) -> bool {
        matches!(self, Mode::Search | Mode::Pick | Mode::Write)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
}

impl Key {
    pub(crate) fn of(event: &KeyEvent) -> Option<Key> {
        // A letter tells by itself whether Shift was held. Whatever is held otherwise
        // makes a key that the board does not know.
        let held = event.modifiers - KeyModifiers::SHIFT - KeyModifiers::CONTROL;
        held.is_empty().then_some(Key {
            code: event.code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
        })
    }

    pub fn event(self) -> KeyEvent {
        let modifiers = if self.ctrl {
            KeyModifiers::CONTROL
        } else {
            KeyModifiers::NONE
        };
        KeyEvent::new(self.code, modifiers)
    }

    /// The letter that it types.
    pub(crate) fn letter(self) -> Option<char> {
        match self.code {
            KeyCode::Char(letter) if !self.ctrl => Some(letter),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(letter) => write!(f, "{letter}"),
            KeyCode::BackTab => f.write_str("Shift-Tab"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            code => write!(f, "{code:?}"),
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub mode: Mode,
    /// None for what only the palette has.
    pub keys: &'static [Key],
    pub action: Action,
    pub help: &'static str,
    /// The command that it stands for.
    pub command: Option<&'static str>,
}

impl Binding {
    pub fn keys_text(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(Key::to_string).collect();
        keys.join(" ")
    }
}

/// What a key means there.
pub(crate) fn find(mode: Mode, key: Key) -> Option<Action> {
    let rows = TABLE.iter().filter(|row| row.mode == mode);
    let mut hits = rows.filter(|row| row.keys.contains(&key));
    hits.next().map(|row| row.action)
}

/// The rows of one mode.
pub fn rows(mode: Mode) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.mode == mode)
}

/// The first key of an action there, for hints.
pub(crate) fn key_of(mode: Mode, action: Action) -> String {
    rows(mode)
        .find(|row| row.action == action)
        .and_then(|row| row.keys.first())
        .map(Key::to_string)
        .unwrap_or_default()
}

const fn ch(letter: char) -> Key {
    Key {
        code: KeyCode::Char(letter),
        ctrl: false,
    }
}

const fn ctrl(letter: char) -> Key {
    Key {
        code: KeyCode::Char(letter),
        ctrl: true,
    }
}

const fn code(code: KeyCode) -> Key {
    Key { code, ctrl: false }
}

const UP: Key = code(KeyCode::Up);
const DOWN: Key = code(KeyCode::Down);
const LEFT: Key = code(KeyCode::Left);
const RIGHT: Key = code(KeyCode::Right);
const PAGE_UP: Key = code(KeyCode::PageUp);
const PAGE_DOWN: Key = code(KeyCode::PageDown);
const HOME: Key = code(KeyCode::Home);
const END: Key = code(KeyCode::End);
const ENTER: Key = code(KeyCode::Enter);
const ESC: Key = code(KeyCode::Esc);
const TAB: Key = code(KeyCode::Tab);
const BACK_TAB: Key = code(KeyCode::BackTab);
const BACKSPACE: Key = code(KeyCode::Backspace);
const DELETE: Key = code(KeyCode::Delete);

const fn row(
    mode: Mode,
    keys: &'static [Key],
    action: Action,
    help: &'static str,
    command: Option<&'static str>,
) -> Binding {
    Binding {
        mode,
        keys,
        action,
        help,
        command,
    }
}

const fn key(mode: Mode, keys: &'static [Key], action: Action, help: &'static str) -> Binding {
    row(mode, keys, action, help, None)
}

const fn deed(
    keys: &'static [Key],
    deed: Deed,
    help: &'static str,
    command: &'static str,
) -> Binding {
    row(Mode::Actions, keys, Action::Do(deed), help, Some(command))
}

pub const TABLE: &[Binding] = &[
    key(Mode::Board, &[ch('j'), DOWN], Action::Down, "The next card"),
    key(Mode::Board, &[ch('k'), UP], Action::Up, "The card before"),
    key(
        Mode::Board,
        &[ch('h'), LEFT],
        Action::Left,
        "The column to the left",
    ),
    key(
        Mode::Board,
        &[ch('l'), RIGHT],
        Action::Right,
        "The column to the right",
    ),
    key(
        Mode::Board,
        &[ch('H'), ch('[')],
        Action::FirstColumn,
        "The first column",
    ),
    key(
        Mode::Board,
        &[ch('L'), ch(']')],
        Action::LastColumn,
        "The last column",
    ),
    key(
        Mode::Board,
        &[HOME],
        Action::Top,
        "The first card of the column (also g g)",
    ),
    key(
        Mode::Board,
        &[END, ch('G')],
        Action::Bottom,
        "The last card of the column (also g e)",
    ),
    key(
        Mode::Board,
        &[PAGE_DOWN, ctrl('d')],
        Action::PageDown,
        "Further down",
    ),
    key(
        Mode::Board,
        &[PAGE_UP, ctrl('u')],
        Action::PageUp,
        "Further up",
    ),
    key(
        Mode::Board,
        &[TAB],
        Action::NextNeedy,
        "The next card that needs you",
    ),
    key(
        Mode::Board,
        &[ch('g')],
        Action::Go,
        "Go to a card by its label",
    ),
    key(Mode::Board, &[ENTER], Action::Open, "Open the card"),
    key(
        Mode::Board,
        &[ch(' ')],
        Action::Actions,
        "Do something with the card, or with all that are marked",
    ),
    key(
        Mode::Board,
        &[ch('V')],
        Action::Mark,
        "Mark the card, or take its mark away",
    ),
    key(
        Mode::Board,
        &[ch('*')],
        Action::MarkColumn,
        "Mark all cards of the column, or none",
    ),
    key(
        Mode::Board,
        &[ch('/')],
        Action::Search,
        "Search ids, titles and labels",
    ),
    key(
        Mode::Board,
        &[ch('n')],
        Action::NextMatch,
        "The next card that was found",
    ),
    key(
        Mode::Board,
        &[ch('N')],
        Action::PreviousMatch,
        "The one before",
    ),
    key(
        Mode::Board,
        &[ch('F')],
        Action::Filter,
        "Show only some cards",
    ),
    key(Mode::Board, &[ch('o')], Action::Sort, "Choose the order"),
    key(
        Mode::Board,
        &[ch('p')],
        Action::Projects,
        "Choose the project",
    ),
    key(
        Mode::Board,
        &[ch(':'), ctrl('p')],
        Action::Palette,
        "Find a command by its name",
    ),
    key(
        Mode::Board,
        &[ch('v')],
        Action::Preview,
        "Show the agent's screen, or hide it",
    ),
    key(Mode::Board, &[ch('t')], Action::Theme, "Dark or light"),
    key(Mode::Board, &[ch('!')], Action::Log, "What was said"),
    key(Mode::Board, &[ch('?')], Action::Help, "This help"),
    key(Mode::Board, &[ctrl('l')], Action::Redraw, "Draw anew"),
    key(
        Mode::Board,
        &[ESC],
        Action::Back,
        "Drop the marks, then the search, then the filter",
    ),
    key(
        Mode::Board,
        &[ch('q'), ctrl('c')],
        Action::Quit,
        "Leave the board; agents go on",
    ),
    deed(
        &[ch('s')],
        Deed::Start,
        "Start",
        "gt task start ID --no-attach",
    ),
    deed(
        &[ch('S')],
        Deed::StartWork,
        "Start and work",
        "gt task start ID --work --no-attach",
    ),
    deed(
        &[ch('!')],
        Deed::StartYolo,
        "Start and work, never ask",
        "gt task start ID --work --yolo --no-attach",
    ),
    deed(&[ch('a')], Deed::Attach, "Attach", "gt task attach ID"),
    deed(
        &[ch('u')],
        Deed::Update,
        "Update from its base",
        "gt task update ID",
    ),
    deed(&[ch('p')], Deed::Pause, "Pause", "gt task pause ID"),
    deed(&[ch('R')], Deed::Resume, "Resume", "gt task resume ID"),
    deed(
        &[],
        Deed::ResumeKeepWip,
        "Resume, and keep the commit of the pause",
        "gt task resume ID --keep-wip",
    ),
    deed(&[ch('x')], Deed::Stop, "Stop", "gt task stop ID"),
    deed(&[ch('d')], Deed::Cleanup, "Clean up", "gt task cleanup ID"),
    deed(&[ch('r')], Deed::Servers, "Dev servers", "gt dev"),
    deed(&[ch('m')], Deed::Merge, "Merge", "gt task merge ID"),
    deed(
        &[ch('M')],
        Deed::AbortMerge,
        "Abort the merge",
        "gt task abort-merge ID",
    ),
    deed(&[ch('f')], Deed::Diff, "Diff", "gt task diff ID"),
    deed(
        &[ch('P')],
        Deed::PullRequest,
        "Pull request",
        "gt task pr ID",
    ),
    deed(
        &[ch('y')],
        Deed::Answer,
        "Answer what it asks",
        "gt answer AGENT CHOICE",
    ),
    deed(
        &[ch('n')],
        Deed::Nudge,
        "Send a message",
        "gt nudge AGENT --stdin",
    ),
    deed(
        &[ch('c')],
        Deed::Close,
        "Close the item",
        "gt work close ID",
    ),
    key(Mode::Actions, &[DOWN], Action::Down, "The next row"),
    key(Mode::Actions, &[UP], Action::Up, "The row before"),
    key(
        Mode::Actions,
        &[ENTER],
        Action::Accept,
        "Do that of the row",
    ),
    key(
        Mode::Actions,
        &[ESC, ch('q'), ch(' ')],
        Action::Back,
        "Do nothing",
    ),
    key(Mode::Actions, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(Mode::Detail, &[ch('j'), DOWN], Action::Down, "Scroll down"),
    key(Mode::Detail, &[ch('k'), UP], Action::Up, "Scroll up"),
    key(
        Mode::Detail,
        &[ch('h'), LEFT],
        Action::Left,
        "Scroll to the left",
    ),
    key(
        Mode::Detail,
        &[ch('l'), RIGHT],
        Action::Right,
        "Scroll to the right",
    ),
    key(
        Mode::Detail,
        &[PAGE_DOWN, ctrl('d')],
        Action::PageDown,
        "A page down",
    ),
    key(
        Mode::Detail,
        &[PAGE_UP, ctrl('u')],
        Action::PageUp,
        "A page up",
    ),
    key(
        Mode::Detail,
        &[HOME, ch('g')],
        Action::Top,
        "To the beginning",
    ),
    key(Mode::Detail, &[END, ch('G')], Action::Bottom, "To the end"),
    key(Mode::Detail, &[TAB], Action::NextTab, "The next tab"),
    key(
        Mode::Detail,
        &[BACK_TAB],
        Action::PreviousTab,
        "The tab before",
    ),
    key(Mode::Detail, &[ch('1')], Action::Tab(Tab::Task), "Task"),
    key(
        Mode::Detail,
        &[ch('2')],
        Action::Tab(Tab::Terminal),
        "Terminal",
    ),
    key(Mode::Detail, &[ch('3')], Action::Tab(Tab::Diff), "Diff"),
    key(Mode::Detail, &[ch('4')], Action::Tab(Tab::Events), "Events"),
    key(
        Mode::Detail,
        &[ch('5')],
        Action::Tab(Tab::Windows),
        "Windows and servers",
    ),
    key(
        Mode::Detail,
        &[ch('6')],
        Action::Tab(Tab::Chain),
        "Chain: the lives that worked on it",
    ),
    key(
        Mode::Detail,
        &[ch('J')],
        Action::NextCard,
        "The next card of the column",
    ),
    key(
        Mode::Detail,
        &[ch('K')],
        Action::PreviousCard,
        "The card before",
    ),
    key(
        Mode::Detail,
        &[ch(']')],
        Action::NextFile,
        "The next file of the diff",
    ),
    key(
        Mode::Detail,
        &[ch('[')],
        Action::PreviousFile,
        "The file before",
    ),
    key(
        Mode::Detail,
        &[ch(' ')],
        Action::Actions,
        "Do something with the card",
    ),
    key(
        Mode::Detail,
        &[ch(':'), ctrl('p')],
        Action::Palette,
        "Find a command by its name",
    ),
    key(Mode::Detail, &[ch('t')], Action::Theme, "Dark or light"),
    key(Mode::Detail, &[ch('!')], Action::Log, "What was said"),
    key(Mode::Detail, &[ch('?')], Action::Help, "This help"),
    key(Mode::Detail, &[ctrl('l')], Action::Redraw, "Draw anew"),
    key(
        Mode::Detail,
        &[ch('q'), ESC],
        Action::Back,
        "Back to the board",
    ),
    key(Mode::Detail, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(
        Mode::Go,
        &[ch('g')],
        Action::Top,
        "The first card of the column",
    ),
    key(
        Mode::Go,
        &[ch('e')],
        Action::Bottom,
        "The last card of the column",
    ),
    key(Mode::Go, &[ESC], Action::Back, "Stay"),
    key(Mode::Go, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(
        Mode::Search,
        &[ENTER],
        Action::Accept,
        "Keep what was found",
    ),
    key(
        Mode::Search,
        &[DOWN, ctrl('n')],
        Action::NextMatch,
        "The next card that was found",
    ),
    key(
        Mode::Search,
        &[UP, ctrl('p')],
        Action::PreviousMatch,
        "The one before",
    ),
    key(
        Mode::Search,
        &[BACKSPACE, ctrl('h')],
        Action::Erase,
        "Erase a letter",
    ),
    key(
        Mode::Search,
        &[DELETE],
        Action::Delete,
        "Erase the letter under the cursor",
    ),
    key(
        Mode::Search,
        &[ctrl('w')],
        Action::EraseWord,
        "Erase a word",
    ),
    key(Mode::Search, &[ctrl('u')], Action::EraseAll, "Erase all"),
    key(Mode::Search, &[LEFT], Action::Left, "A letter to the left"),
    key(
        Mode::Search,
        &[RIGHT],
        Action::Right,
        "A letter to the right",
    ),
    key(
        Mode::Search,
        &[HOME, ctrl('a')],
        Action::Top,
        "To the beginning",
    ),
    key(
        Mode::Search,
        &[END, ctrl('e')],
        Action::Bottom,
        "To the end",
    ),
    key(Mode::Search, &[ESC], Action::Back, "Show all cards again"),
    key(Mode::Search, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(Mode::Filter, &[ch('j'), DOWN], Action::Down, "The next row"),
    key(Mode::Filter, &[ch('k'), UP], Action::Up, "The row before"),
    key(
        Mode::Filter,
        &[ch(' '), ENTER],
        Action::Toggle,
        "Choose it, or not",
    ),
    key(
        Mode::Filter,
        &[ch('c')],
        Action::Clear,
        "Clear: all cards are shown again",
    ),
    key(
        Mode::Filter,
        &[ESC, ch('q'), ch('F')],
        Action::Back,
        "Close",
    ),
    key(Mode::Filter, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(Mode::Sort, &[ch('j'), DOWN], Action::Down, "The next row"),
    key(Mode::Sort, &[ch('k'), UP], Action::Up, "The row before"),
    key(
        Mode::Sort,
        &[ENTER, ch(' ')],
        Action::Accept,
        "This order; the same again turns it around",
    ),
    key(
        Mode::Sort,
        &[ch('o')],
        Action::SortBy(Sort::Usual),
        "Each column by its own",
    ),
    key(
        Mode::Sort,
        &[ch('p')],
        Action::SortBy(Sort::Priority),
        "By priority",
    ),
    key(
        Mode::Sort,
        &[ch('a')],
        Action::SortBy(Sort::Age),
        "By age, the oldest first",
    ),
    key(Mode::Sort, &[ch('i')], Action::SortBy(Sort::Id), "By id"),
    key(
        Mode::Sort,
        &[ch('s')],
        Action::SortBy(Sort::State),
        "By state, what needs a look first",
    ),
    key(
        Mode::Sort,
        &[ch('u')],
        Action::SortBy(Sort::Updated),
        "By the last change, the latest first",
    ),
    key(Mode::Sort, &[ESC, ch('q')], Action::Back, "Close"),
    key(Mode::Sort, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(Mode::Pick, &[DOWN, ctrl('n')], Action::Down, "The next row"),
    key(Mode::Pick, &[UP, ctrl('p')], Action::Up, "The row before"),
    key(Mode::Pick, &[ENTER], Action::Accept, "Take it"),
    key(
        Mode::Pick,
        &[BACKSPACE, ctrl('h')],
        Action::Erase,
        "Erase a letter",
    ),
    key(
        Mode::Pick,
        &[DELETE],
        Action::Delete,
        "Erase the letter under the cursor",
    ),
    key(Mode::Pick, &[ctrl('w')], Action::EraseWord, "Erase a word"),
    key(Mode::Pick, &[ctrl('u')], Action::EraseAll, "Erase all"),
    key(Mode::Pick, &[LEFT], Action::Left, "A letter to the left"),
    key(Mode::Pick, &[RIGHT], Action::Right, "A letter to the right"),
    key(
        Mode::Pick,
        &[HOME, ctrl('a')],
        Action::Top,
        "To the beginning",
    ),
    key(Mode::Pick, &[END, ctrl('e')], Action::Bottom, "To the end"),
    key(Mode::Pick, &[ESC], Action::Back, "Take none"),
    key(Mode::Pick, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(
        Mode::Servers,
        &[ch('j'), DOWN],
        Action::Down,
        "The next server",
    ),
    key(
        Mode::Servers,
        &[ch('k'), UP],
        Action::Up,
        "The server before",
    ),
    row(
        Mode::Servers,
        &[ch('s'), ENTER],
        Action::Server(ServerDeed::Start),
        "Start",
        Some("gt dev start ID [NAME]"),
    ),
    row(
        Mode::Servers,
        &[ch('x')],
        Action::Server(ServerDeed::Stop),
        "Stop",
        Some("gt dev stop ID [NAME]"),
    ),
    row(
        Mode::Servers,
        &[ch('r')],
        Action::Server(ServerDeed::Restart),
        "Restart",
        Some("gt dev restart ID [NAME]"),
    ),
    row(
        Mode::Servers,
        &[ch('o')],
        Action::Server(ServerDeed::Open),
        "Open in the browser",
        Some("gt dev open ID [NAME]"),
    ),
    key(Mode::Servers, &[ESC, ch('q')], Action::Back, "Do nothing"),
    key(Mode::Servers, &[ctrl('c')], Action::Quit, "Leave the board"),
    row(
        Mode::MergeChoice,
        &[ch('m')],
        Action::MergeAndAttach,
        "Merge & Attach",
        Some("gt task attach ID --merge"),
    ),
    row(
        Mode::MergeChoice,
        &[ch('s')],
        Action::SkipAndAttach,
        "Skip & Attach",
        Some("gt task attach ID --skip"),
    ),
    key(Mode::MergeChoice, &[ESC], Action::Back, "Cancel"),
    key(
        Mode::MergeChoice,
        &[ctrl('c')],
        Action::Quit,
        "Leave the board",
    ),
    row(
        Mode::Cleanup,
        &[ch('y')],
        Action::Yes,
        "Clean up",
        Some("gt task cleanup ID --yes"),
    ),
    row(
        Mode::Cleanup,
        &[ch('c')],
        Action::YesAndClose,
        "Clean up and close the item",
        Some("gt task cleanup ID --yes --close"),
    ),
    row(
        Mode::Cleanup,
        &[ch('f')],
        Action::Force,
        "Clean up although it was refused",
        Some("gt task cleanup ID --yes --force"),
    ),
    key(Mode::Cleanup, &[ch('j'), DOWN], Action::Down, "Scroll down"),
    key(Mode::Cleanup, &[ch('k'), UP], Action::Up, "Scroll up"),
    key(
        Mode::Cleanup,
        &[ESC, ch('n'), ch('q')],
        Action::Back,
        "Do nothing",
    ),
    key(Mode::Cleanup, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(Mode::Confirm, &[ch('y')], Action::Yes, "Yes"),
    key(Mode::Confirm, &[ch('j'), DOWN], Action::Down, "Scroll down"),
    key(Mode::Confirm, &[ch('k'), UP], Action::Up, "Scroll up"),
    key(Mode::Confirm, &[ch('n'), ESC, ch('q')], Action::Back, "No"),
    key(Mode::Confirm, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(Mode::Write, &[ENTER], Action::Accept, "Send it"),
    key(
        Mode::Write,
        &[BACKSPACE, ctrl('h')],
        Action::Erase,
        "Erase a letter",
    ),
    key(
        Mode::Write,
        &[DELETE],
        Action::Delete,
        "Erase the letter under the cursor",
    ),
    key(Mode::Write, &[ctrl('w')], Action::EraseWord, "Erase a word"),
    key(Mode::Write, &[ctrl('u')], Action::EraseAll, "Erase all"),
    key(Mode::Write, &[LEFT], Action::Left, "A letter to the left"),
    key(
        Mode::Write,
        &[RIGHT],
        Action::Right,
        "A letter to the right",
    ),
    key(
        Mode::Write,
        &[HOME, ctrl('a')],
        Action::Top,
        "To the beginning",
    ),
    key(Mode::Write, &[END, ctrl('e')], Action::Bottom, "To the end"),
    key(Mode::Write, &[ESC], Action::Back, "Send nothing"),
    key(Mode::Write, &[ctrl('c')], Action::Quit, "Leave the board"),
    key(Mode::Read, &[ch('j'), DOWN], Action::Down, "Scroll down"),
    key(Mode::Read, &[ch('k'), UP], Action::Up, "Scroll up"),
    key(
        Mode::Read,
        &[PAGE_DOWN, ctrl('d'), ch(' ')],
        Action::PageDown,
        "A page down",
    ),
    key(
        Mode::Read,
        &[PAGE_UP, ctrl('u')],
        Action::PageUp,
        "A page up",
    ),
    key(
        Mode::Read,
        &[HOME, ch('g')],
        Action::Top,
        "To the beginning",
    ),
    key(Mode::Read, &[END, ch('G')], Action::Bottom, "To the end"),
    key(
        Mode::Read,
        &[ESC, ch('q'), ch('?'), ch('!')],
        Action::Back,
        "Close",
    ),
    key(Mode::Read, &[ctrl('c')], Action::Quit, "Leave the board"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_one_thing_in_one_place() {
        for mode in Mode::ALL {
            let mut seen: Vec<Key> = Vec::new();
            for row in rows(mode) {
                assert!(!row.help.is_empty());
                for key in row.keys {
                    assert!(!seen.contains(key), "{mode:?} {key}");
                    seen.push(*key);
                }
            }
            assert!(!seen.is_empty(), "{mode:?}");
        }
    }

    #[test]
    fn the_letters_of_actions_are_those_of_the_document() {
        let letters: String = rows(Mode::Actions)
            .filter(|row| matches!(row.action, Action::Do(_)))
            .flat_map(|row| row.keys)
            .filter_map(|key| key.letter())
            .collect();
        assert_eq!(letters, "sS!aupRxdrmMfPync");
    }
}
