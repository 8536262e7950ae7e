//! Features that depend on the version, one row each.

use super::Version;

/// Generates the enum, the list of all features and the two look-ups from one table.
macro_rules! features {
    ($($(#[$doc:meta])* $name:ident, $major:literal . $minor:literal, $label:literal;)+) => {
        /// A feature that not every tmux has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Feature {
            $($(#[$doc])* $name,)+
        }

        impl Feature {
            /// Every feature, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Returns the first version that has the feature.
            #[must_use]
            pub const fn since(self) -> Version {
                match self {
                    $(Self::$name => Version::new($major, $minor),)+
                }
            }

            /// Returns the name of the feature for messages.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)+
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
    /// A reliable `pane_dead_status`. Debian's 3.3a loses one in four.
    ReliableExitStatus, 3 . 5, "exit status of every pane";
}
