//! Short messages in a corner: what has begun, how it went. They go by themselves, and
//! are kept in a log.

use crate::Moment;
use std::collections::VecDeque;

const GOOD_MILLIS: i64 = 4_000;
const BAD_MILLIS: i64 = 8_000;
const KEPT: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenor {
    /// Something was begun and is not over.
    Running,
    Note,
    Good,
    Bad,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toast {
    /// The order that it is about.
    order: Option<u64>,
    pub(crate) tenor: Tenor,
    pub(crate) text: String,
    /// One about something that runs stays until it is over.
    until: Option<Moment>,
}

#[derive(Debug, Default)]
pub(crate) struct Toasts {
    shown: Vec<Toast>,
    log: VecDeque<(Moment, Tenor, String)>,
}

impl Toasts {
    pub(crate) fn begin(&mut self, order: u64, text: String) {
        self.shown.push(Toast {
            order: Some(order),
            tenor: Tenor::Running,
            text,
            until: None,
        });
    }

    /// What came of it, in the place of its beginning.
    pub(crate) fn end(&mut self, order: u64, tenor: Tenor, text: String, now: Moment) {
        self.shown.retain(|toast| toast.order != Some(order));
        self.say(tenor, text, now);
    }

    pub(crate) fn say(&mut self, tenor: Tenor, text: String, now: Moment) {
        let life = match tenor {
            Tenor::Bad => BAD_MILLIS,
            _ => GOOD_MILLIS,
        };
        // The same once more only stays longer.
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
            until: Some(now.plus_millis(life)),
        });
    }

    /// Whether any went.
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

    /// The latest first.
    pub(crate) fn log(&self) -> impl Iterator<Item = &(Moment, Tenor, String)> {
        self.log.iter().rev()
    }
}

impl Toast {
    /// One that is about the others.
    pub(crate) fn note(text: String) -> Self {
        Toast {
            order: None,
            tenor: Tenor::Note,
            text,
            until: None,
        }
    }
}
