//! The rows of the table: mode, keys, action, help text and equivalent command.

use super::{Binding, KeyMode};
use crate::Tab;
use crate::action::BoardAction::*;
// Short names keep the columns of the table narrow.
use crate::action::{
    CardOperation as Op, EscalationOperation as EscalationOp, MergeOperation as MergeOp,
    ServerOperation as ServerOp,
};
use crate::sort::Sort as Invocation;

/// Keeps the table readable: one line for each row.
macro_rules! rows {
    ($($mode:ident $keys:literal $action:expr, $help:literal $(, $command:literal)?;)*) => {
        &[$(Binding {
            mode: KeyMode::$mode,
            keys: $keys,
            action: $action,
            help: $help,
            command: rows!(@ $($command)?),
        }),*]
    };
    (@) => { None };
    (@ $command:literal) => { Some($command) };
}

pub const TABLE: &[Binding] = rows! {
    Board       "j Down"             Down,                         "The next card";
    Board       "k Up"               Up,                           "The card before";
    Board       "h Left"             Left,                         "The column to the left";
    Board       "l Right"            Right,                        "The column to the right";
    Board       "H ["                FirstColumn,                  "The first column";
    Board       "L ]"                LastColumn,                   "The last column";
    Board       "Home"               Top,                          "The first card of the column (also g g)";
    Board       "End G"              Bottom,                       "The last card of the column (also g e)";
    Board       "PgDn Ctrl-d"        PageDown,                     "Further down";
    Board       "PgUp Ctrl-u"        PageUp,                       "Further up";
    Board       "Tab"                NextNeedy,                    "The oldest question, or the next that needs you";
    Board       "y"                  Card(Op::Answer),             "Answer what the agent asks", "gt answer AGENT CHOICE";
    Board       "g"                  Go,                           "Go to a card by its label";
    Board       "Enter"              Open,                         "Open the card";
    Board       "Space"              Actions,                      "Actions of the card, or of all marked cards";
    Board       "V"                  Mark,                         "Mark or unmark the card";
    Board       "*"                  MarkColumn,                   "Mark all cards of the column, or none";
    Board       "/"                  Search,                       "Search ids, titles and labels";
    Board       "n"                  CreateOrNextMatch,            "Create an item; during a search, the next card found", "gt work create TITLE";
    Board       "N"                  PreviousMatch,                "The card found before";
    Board       "+"                  Create,                       "Create an item, also during a search", "gt work create TITLE";
    Board       "F"                  Filter,                       "Show only some cards";
    Board       "o"                  Sort,                         "Choose the order";
    Board       "p"                  Projects,                     "Choose the project";
    Board       ": Ctrl-p"           Palette,                      "Find a command by its name";
    Board       "v"                  Preview,                      "Show the agent's screen, or hide it";
    Board       "t"                  Theme,                        "Dark or light";
    Board       "E"                  Escalations,                  "Show the escalations", "gt escalate list";
    Board       "Q"                  MergeQueue,                   "Show the merge queue", "gt mq list";
    Board       "R"                  Restore,                      "Restore the agents that were lost with their tmux server", "gt restore";
    Board       "X"                  EmergencyStop,                "Emergency stop, or end it", "gt estop; gt thaw";
    Board       "!"                  Log,                          "Show the messages";
    Board       "?"                  Help,                         "This help";
    Board       "Ctrl-l"             Redraw,                       "Draw anew";
    Board       "Esc"                Back,                         "Drop the marks, then the search, then the filter";
    Board       "q Ctrl-c"           Quit,                         "Leave the board; agents keep running";

    Actions     "s"                  Card(Op::Start),              "Start", "gt task start ID --no-attach";
    Actions     "S"                  Card(Op::StartWork),          "Start and work", "gt task start ID --work --no-attach";
    Actions     "!"                  Card(Op::StartYolo),          "Start and work, never ask", "gt task start ID --work --yolo --no-attach";
    Actions     "a"                  Card(Op::Attach),             "Attach", "gt task attach ID";
    Actions     "u"                  Card(Op::Update),             "Update from its base", "gt task update ID";
    Actions     "p"                  Card(Op::Pause),              "Pause", "gt task pause ID";
    Actions     "R"                  Card(Op::Resume),             "Resume", "gt task resume ID";
    Actions     ""                   Card(Op::ResumeKeepWip),      "Resume, and keep the commit of the pause", "gt task resume ID --keep-wip";
    Actions     "x"                  Card(Op::Stop),               "Stop", "gt task stop ID";
    Actions     "d"                  Card(Op::Cleanup),            "Clean up", "gt task cleanup ID";
    Actions     "r"                  Card(Op::Servers),            "Dev servers", "gt dev";
    Actions     "m"                  Card(Op::Merge),              "Merge", "gt task merge ID";
    Actions     "M"                  Card(Op::AbortMerge),         "Abort the merge", "gt task abort-merge ID";
    Actions     "f"                  Card(Op::Diff),               "Diff", "gt task diff ID";
    Actions     "P"                  Card(Op::PullRequest),        "Pull request", "gt task pr ID";
    Actions     "y"                  Card(Op::Answer),             "Answer what it asks", "gt answer AGENT CHOICE";
    Actions     "n"                  Card(Op::Nudge),              "Send a message", "gt nudge AGENT --stdin";
    Actions     "i"                  Card(Op::Interrupt),          "Interrupt its turn", "gt interrupt AGENT";
    Actions     "h"                  Card(Op::Handoff),            "Hand over (new session)", "gt handoff AGENT --collect --stdin";
    Actions     "g"                  Card(Op::Sling),              "Give to a polecat or crew", "gt sling ID [AGENT]";
    Actions     "e"                  Card(Op::Edit),               "Edit", "gt work update ID; gt work dep add|remove ID BLOCKER";
    Actions     "E"                  Card(Op::Escalate),           "Escalate", "gt escalate --item ID --stdin";
    Actions     "c"                  Card(Op::Close),              "Close the item", "gt work close ID";
    Actions     "Down"               Down,                         "The next row";
    Actions     "Up"                 Up,                           "The row before";
    Actions     "Enter"              Accept,                       "Run the action of the row";
    Actions     "Esc q Space"        Back,                         "Do nothing";
    Actions     "Ctrl-c"             Quit,                         "Leave the board";

    Detail      "j Down"             Down,                         "Scroll down";
    Detail      "k Up"               Up,                           "Scroll up";
    Detail      "h Left"             Left,                         "Scroll to the left";
    Detail      "l Right"            Right,                        "Scroll to the right";
    Detail      "PgDn Ctrl-d"        PageDown,                     "A page down";
    Detail      "PgUp Ctrl-u"        PageUp,                       "A page up";
    Detail      "Home g"             Top,                          "To the beginning";
    Detail      "End G"              Bottom,                       "To the end";
    Detail      "Tab"                NextTab,                      "The next tab";
    Detail      "Shift-Tab"          PreviousTab,                  "The tab before";
    Detail      "1"                  Tab(Tab::Task),               "Task";
    Detail      "2"                  Tab(Tab::Terminal),           "Terminal";
    Detail      "3"                  Tab(Tab::Diff),               "Diff";
    Detail      "4"                  Tab(Tab::Events),             "Events";
    Detail      "5"                  Tab(Tab::Windows),            "Windows and servers";
    Detail      "6"                  Tab(Tab::Chain),              "Chain: the sessions that worked on it";
    Detail      "J"                  NextCard,                     "The next card of the column";
    Detail      "K"                  PreviousCard,                 "The card before";
    Detail      "]"                  NextFile,                     "The next file of the diff";
    Detail      "["                  PreviousFile,                 "The file before";
    Detail      "}"                  NextHunk,                     "The next hunk of the diff";
    Detail      "{"                  PreviousHunk,                 "The hunk before";
    Detail      "c"                  Comment,                      "Write a comment on the line of the diff";
    Detail      "s"                  SendComments,                 "Send the comments to the agent", "gt nudge AGENT --stdin";
    Detail      "y"                  Card(Op::Answer),             "Answer what the agent asks", "gt answer AGENT CHOICE";
    Detail      "Space"              Actions,                      "Do something with the card";
    Detail      ": Ctrl-p"           Palette,                      "Find a command by its name";
    Detail      "t"                  Theme,                        "Dark or light";
    Detail      "E"                  Escalations,                  "Show the escalations", "gt escalate list";
    Detail      "Q"                  MergeQueue,                   "Show the merge queue", "gt mq list";
    Detail      "X"                  EmergencyStop,                "Emergency stop, or end it", "gt estop; gt thaw";
    Detail      "!"                  Log,                          "Show the messages";
    Detail      "?"                  Help,                         "This help";
    Detail      "Ctrl-l"             Redraw,                       "Draw anew";
    Detail      "q Esc"              Back,                         "Back to the board";
    Detail      "Ctrl-c"             Quit,                         "Leave the board";

    Go          "g"                  Top,                          "The first card of the column";
    Go          "e"                  Bottom,                       "The last card of the column";
    Go          "Esc"                Back,                         "Stay";
    Go          "Ctrl-c"             Quit,                         "Leave the board";

    Search      "Enter"              Accept,                       "Keep what was found";
    Search      "Down Ctrl-n"        NextMatch,                    "The next card that was found";
    Search      "Up Ctrl-p"          PreviousMatch,                "The one before";
    Search      "Backspace Ctrl-h"   Erase,                        "Erase a character";
    Search      "Delete"             Delete,                       "Erase the character under the cursor";
    Search      "Ctrl-w"             EraseWord,                    "Erase a word";
    Search      "Ctrl-u"             EraseAll,                     "Erase all";
    Search      "Left"               Left,                         "A character to the left";
    Search      "Right"              Right,                        "A character to the right";
    Search      "Home Ctrl-a"        Top,                          "To the beginning";
    Search      "End Ctrl-e"         Bottom,                       "To the end";
    Search      "Esc"                Back,                         "Show all cards again";
    Search      "Ctrl-c"             Quit,                         "Leave the board";

    Filter      "j Down"             Down,                         "The next row";
    Filter      "k Up"               Up,                           "The row before";
    Filter      "Space Enter"        Toggle,                       "Select it, or deselect it";
    Filter      "c"                  Clear,                        "Clear: all cards are shown again";
    Filter      "Esc q F"            Back,                         "Close";
    Filter      "Ctrl-c"             Quit,                         "Leave the board";

    Sort        "j Down"             Down,                         "The next row";
    Sort        "k Up"               Up,                           "The row before";
    Sort        "Enter Space"        Accept,                       "Sort by this; again reverses it";
    Sort        "o"                  SortBy(Invocation::Usual),          "Each column by its own";
    Sort        "p"                  SortBy(Invocation::Priority),       "By priority";
    Sort        "a"                  SortBy(Invocation::Age),            "By age, the oldest first";
    Sort        "i"                  SortBy(Invocation::Id),             "By id";
    Sort        "s"                  SortBy(Invocation::State),          "By state, what needs a look first";
    Sort        "u"                  SortBy(Invocation::Updated),        "By the last change, the latest first";
    Sort        "Esc q"              Back,                         "Close";
    Sort        "Ctrl-c"             Quit,                         "Leave the board";

    Pick        "Down Ctrl-n"        Down,                         "The next row";
    Pick        "Up Ctrl-p"          Up,                           "The row before";
    Pick        "Enter"              Accept,                       "Take it";
    Pick        "Backspace Ctrl-h"   Erase,                        "Erase a character";
    Pick        "Delete"             Delete,                       "Erase the character under the cursor";
    Pick        "Ctrl-w"             EraseWord,                    "Erase a word";
    Pick        "Ctrl-u"             EraseAll,                     "Erase all";
    Pick        "Left"               Left,                         "A character to the left";
    Pick        "Right"              Right,                        "A character to the right";
    Pick        "Home Ctrl-a"        Top,                          "To the beginning";
    Pick        "End Ctrl-e"         Bottom,                       "To the end";
    Pick        "Esc"                Back,                         "Take none";
    Pick        "Ctrl-c"             Quit,                         "Leave the board";

    Servers     "j Down"             Down,                         "The next server";
    Servers     "k Up"               Up,                           "The server before";
    Servers     "s Enter"            Server(ServerOp::Start),      "Start", "gt dev start ID [NAME]";
    Servers     "x"                  Server(ServerOp::Stop),       "Stop", "gt dev stop ID [NAME]";
    Servers     "r"                  Server(ServerOp::Restart),    "Restart", "gt dev restart ID [NAME]";
    Servers     "o"                  Server(ServerOp::Open),       "Open in the browser", "gt dev open ID [NAME]";
    Servers     "Esc q"              Back,                         "Do nothing";
    Servers     "Ctrl-c"             Quit,                         "Leave the board";

    MergeChoice "m"                  MergeAndAttach,               "Merge & Attach", "gt task update ID; gt task attach ID --skip";
    MergeChoice "s"                  SkipAndAttach,                "Skip & Attach", "gt task attach ID --skip";
    MergeChoice "Esc"                Back,                         "Cancel";
    MergeChoice "Ctrl-c"             Quit,                         "Leave the board";

    ResumeFirst "R Enter"            ResumeConversation,           "Resume its conversation", "gt task resume ID";
    ResumeFirst "s"                  StartAnew,                    "Start a new conversation", "gt task start ID --no-attach";
    ResumeFirst "Esc n q"            Back,                         "Do nothing";
    ResumeFirst "Ctrl-c"             Quit,                         "Leave the board";

    Cleanup     "y"                  Yes,                          "Clean up", "gt task cleanup ID --yes";
    Cleanup     "c"                  YesAndClose,                  "Clean up and close the item", "gt task cleanup ID --yes --close";
    Cleanup     "f"                  Force,                        "Clean up although it was refused", "gt task cleanup ID --yes --force";
    Cleanup     "j Down"             Down,                         "Scroll down";
    Cleanup     "k Up"               Up,                           "Scroll up";
    Cleanup     "Esc n q"            Back,                         "Do nothing";
    Cleanup     "Ctrl-c"             Quit,                         "Leave the board";

    InitFailed  "y"                  Yes,                          "Go on without it", "gt … --continue-on-failure";
    InitFailed  "a"                  SkipAndAttach,                "Look: go to its shell", "gt task attach ID --skip";
    InitFailed  "Esc n q"            Back,                         "Leave it as it is";
    InitFailed  "Ctrl-c"             Quit,                         "Leave the board";

    Escalations "j Down"             Down,                         "The next escalation";
    Escalations "k Up"               Up,                           "The escalation before";
    Escalations "a"                  Escalation(EscalationOp::Acknowledge),   "Acknowledge: it is not raised again", "gt escalate ack ID";
    Escalations "c"                  Escalation(EscalationOp::Close),   "Close: it is resolved", "gt escalate close ID";
    Escalations "Enter"              Open,                         "Go to the card that it is about";
    Escalations "Esc q E"            Back,                         "Close the list";
    Escalations "Ctrl-c"             Quit,                         "Leave the board";

    MergeQueue  "j Down"             Down,                         "The next entry";
    MergeQueue  "k Up"               Up,                           "The entry before";
    MergeQueue  "a"                  Merge(MergeOp::Approve),      "Approve an entry that is held: it is merged", "gt mq approve ENTRY";
    MergeQueue  "r"                  Merge(MergeOp::Retry),        "Retry: queue it again with the present commit", "gt mq retry ENTRY";
    MergeQueue  "x"                  Merge(MergeOp::Reject),       "Reject: its item is open again", "gt mq reject ENTRY --reason TEXT --reopen";
    MergeQueue  "m"                  Merge(MergeOp::Run),          "Merge what waits in its rig", "gt mq run RIG";
    MergeQueue  "Enter"              Open,                         "Go to its card";
    MergeQueue  "Esc q Q"            Back,                         "Close the list";
    MergeQueue  "Ctrl-c"             Quit,                         "Leave the board";

    EmergencyStop "y"                Yes,                          "Stop it, or end its stop", "gt estop [--rig NAME]; gt thaw [--rig NAME]";
    EmergencyStop "j Down"           Down,                         "The next: the town, or a rig";
    EmergencyStop "k Up"             Up,                           "The one before";
    EmergencyStop "n Esc q X"        Back,                         "Do nothing";
    EmergencyStop "Ctrl-c"           Quit,                         "Leave the board";

    Confirm     "y"                  Yes,                          "Yes";
    Confirm     "j Down"             Down,                         "Scroll down";
    Confirm     "k Up"               Up,                           "Scroll up";
    Confirm     "n Esc q"            Back,                         "No";
    Confirm     "Ctrl-c"             Quit,                         "Leave the board";

    Form        "Enter"              Accept,                       "Save it";
    Form        "Tab"                NextField,                    "The next field";
    Form        "Shift-Tab"          PreviousField,                "The field before";
    Form        "Alt-Enter Ctrl-j"   NewLine,                      "A line break in the description";
    Form        "Down"               Down,                         "The next line, or the next field";
    Form        "Up"                 Up,                           "The line before, or the field before";
    Form        "Backspace Ctrl-h"   Erase,                        "Erase a character";
    Form        "Delete"             Delete,                       "Erase the character under the cursor";
    Form        "Ctrl-w"             EraseWord,                    "Erase a word";
    Form        "Ctrl-u"             EraseAll,                     "Erase all of the field";
    Form        "Left"               Left,                         "A character to the left, or the choice before";
    Form        "Right"              Right,                        "A character to the right, or the next choice";
    Form        "Home Ctrl-a"        Top,                          "To the beginning of the line";
    Form        "End Ctrl-e"         Bottom,                       "To the end of the line";
    Form        "Esc"                Back,                         "Change nothing";
    Form        "Ctrl-c"             Quit,                         "Leave the board";

    Write       "Enter"              Accept,                       "Send it";
    Write       "Down"               Down,                         "Scroll down";
    Write       "Up"                 Up,                           "Scroll up";
    Write       "Backspace Ctrl-h"   Erase,                        "Erase a character";
    Write       "Delete"             Delete,                       "Erase the character under the cursor";
    Write       "Ctrl-w"             EraseWord,                    "Erase a word";
    Write       "Ctrl-u"             EraseAll,                     "Erase all";
    Write       "Left"               Left,                         "A character to the left";
    Write       "Right"              Right,                        "A character to the right";
    Write       "Home Ctrl-a"        Top,                          "To the beginning";
    Write       "End Ctrl-e"         Bottom,                       "To the end";
    Write       "Esc"                Back,                         "Send nothing";
    Write       "Ctrl-c"             Quit,                         "Leave the board";

    Read        "/"                  Search,                       "Search the keys";
    Read        "Tab"                NextTab,                      "All keys, or only the important ones";
    Message     "Enter"              Accept,                       "Send it";
    Message     "Alt-Enter Ctrl-j"   NewLine,                      "A line break";
    Message     "Down"               Down,                         "The next line";
    Message     "Up"                 Up,                           "The line before";
    Message     "Backspace Ctrl-h"   Erase,                        "Erase a character";
    Message     "Delete"             Delete,                       "Erase the character under the cursor";
    Message     "Ctrl-w"             EraseWord,                    "Erase a word";
    Message     "Ctrl-u"             EraseAll,                     "Erase all";
    Message     "Left"               Left,                         "A character to the left";
    Message     "Right"              Right,                        "A character to the right";
    Message     "Home Ctrl-a"        Top,                          "To the beginning of the line";
    Message     "End Ctrl-e"         Bottom,                       "To the end of the line";
    Message     "Esc"                Back,                         "Send nothing";
    Message     "Ctrl-c"             Quit,                         "Leave the board";

    Read        "j Down"             Down,                         "Scroll down";
    Read        "k Up"               Up,                           "Scroll up";
    Read        "PgDn Ctrl-d Space"  PageDown,                     "A page down";
    Read        "PgUp Ctrl-u"        PageUp,                       "A page up";
    Read        "Home g"             Top,                          "To the beginning";
    Read        "End G"              Bottom,                       "To the end";
    Read        "Esc q ? !"          Back,                         "Close";
    Read        "Ctrl-c"             Quit,                         "Leave the board";
};
