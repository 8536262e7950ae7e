//! What depends on the version: one row per feature.

use super::Version;

/// Writes the enum, the list of all and the two look-ups from one table.
macro_rules! features {
    ($($(#[$doc:meta])* $name:ident, $major:literal . $minor:literal, $what:literal;)+) => {
        /// Something that not every tmux can do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Feature {
            $($(#[$doc])* $name,)+
        }

        impl Feature {
            /// Every feature, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The first version that has it.
            #[must_use]
            pub const fn since(self) -> Version {
                match self {
                    $(Self::$name => Version::new($major, $minor),)+
                }
            }

            /// What is missing without it, in words for a message.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$name => $what,)+
                }
            }
        }
    };
}

features! {
    /// `attach-session -f no-output,ignore-size`, which the control client needs.
    ClientFlags, 3 . 2, "client flags for control mode";
    /// `new-session -e NAME=value`.
    SessionEnvironment, 3 . 2, "environment for a new session (new-session -e)";
    /// `remain-on-exit failed`.
    RemainOnExitFailed, 3 . 2, "remain-on-exit failed";
    /// `refresh-client -B`.
    Subscriptions, 3 . 2, "format subscriptions (refresh-client -B)";
    /// `display-popup`.
    Popups, 3 . 2, "popups";
    /// `remain-on-exit-format`.
    RemainOnExitFormat, 3 . 3, "remain-on-exit-format";
    /// `display-message -l`.
    LiteralMessages, 3 . 4, "literal messages (display-message -l)";
    /// `%config-error` in control mode.
    ConfigErrorNotification, 3 . 4, "notification of configuration errors";
    /// The `command-error` hook.
    CommandErrorHook, 3 . 5, "command-error hook";
    /// `pane_dead_status` that is never lost. Debian's 3.3a loses one in four.
    ReliableExitStatus, 3 . 5, "exit status of every pane";
}
