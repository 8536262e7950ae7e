//! Short messages in a corner about commands that started or ended. They expire, and are kept in a
//! log.

use crate::Moment;
use std::collections::VecDeque;

const GOOD_MILLIS: i64 = 4_000;
const BAD_MILLIS: i64 = 8_000;
const KEPT: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToastKind {
    /// A command is in progress.
    Running,
    Note,
    Good,
    Bad,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toast {
    /// The command that the message is about.
    order: Option<u64>,
    pub(crate) tenor: ToastKind,
    pub(crate) text: String,
    /// When the message expires; `None` for a command in progress.
    until: Option<Moment>,
}

#[derive(Debug, Default)]
pub(crate) struct Toasts {
    shown: Vec<Toast>,
    log: VecDeque<(Moment, ToastKind, String)>,
}

impl Toasts {
    pub(crate) fn begin(&mut self, order: u64, text: String) {
        self.shown.push(Toast {
            order: Some(order),
            tenor: ToastKind::Running,
            text,
            until: None,
        });
    }

    /// Replaces the message of a command in progress by its result.
    pub(crate) fn end(&mut self, order: u64, tenor: ToastKind, text: String, now: Moment) {
        self.shown.retain(|toast| toast.order != Some(order));
        self.say(tenor, text, now);
    }

    /// Removes the message of a command in progress.
    pub(crate) fn drop(&mut self, order: u64) {
        self.shown.retain(|toast| toast.order != Some(order));
    }

    pub(crate) fn say(&mut self, tenor: ToastKind, text: String, now: Moment) {
        let session = match tenor {
            ToastKind::Bad => BAD_MILLIS,
            _ => GOOD_MILLIS,
        };
        // A repeated message only extends the time of the first one.
        self.shown
            .retain(|toast| toast.text != text || toast.until.is_none());
        self.log.push_back((now, tenor, text.clone()));
        if self.log.len() > KEPT {
            self.log.pop_front();
        }
        self.shown.push(Toast {
            order: None,
            tenor,
            text,
            until: Some(now.plus_millis(session)),
        });
    }

    /// Removes expired messages. Returns whether there were any.
    pub(crate) fn expire(&mut self, now: Moment) -> bool {
        let before = self.shown.len();
        self.shown
            .retain(|toast| toast.until.is_none_or(|until| until > now));
        self.shown.len() != before
    }

    pub(crate) fn next_end(&self) -> Option<Moment> {
        self.shown.iter().filter_map(|toast| toast.until).min()
    }

    pub(crate) fn shown(&self) -> &[Toast] {
        &self.shown
    }

    /// Returns the log, the latest message first.
    pub(crate) fn log(&self) -> impl Iterator<Item = &(Moment, ToastKind, String)> {
        self.log.iter().rev()
    }
}

impl Toast {
    /// Creates a message about the other messages.
    pub(crate) fn note(text: String) -> Self {
        Toast {
            order: None,
            tenor: ToastKind::Note,
            text,
            until: None,
        }
    }
}
