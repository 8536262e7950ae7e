//! Distributes notifications to listeners.
//!
//! Each listener has a bounded channel. The reader of the control client must never wait for a
//! listener: the server buffers output for a client that does not read, and grows. A full channel
//! therefore drops notifications, and the listener gets a count as soon as there is room.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::notification::Notification;

/// Maximum number of notifications that wait for one listener.
const CAPACITY: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Hub {
    listeners: Mutex<Vec<Listener>>,
}

#[derive(Debug)]
struct Listener {
    sender: SyncSender<Notification>,
    lost: u64,
}

impl Hub {
    pub(super) fn subscribe(&self) -> Receiver<Notification> {
        let (sender, receiver) = sync_channel(CAPACITY);
        self.lock().push(Listener { sender, lost: 0 });
        receiver
    }

    /// Sends the notification to every listener that has room, and removes disconnected listeners.
    pub(super) fn publish(&self, notification: &Notification) {
        self.lock()
            .retain_mut(|listener| listener.offer(notification));
    }

    /// Reports losses to the listeners that have room by now. Returns whether some still have none;
    /// the caller must then call this again later.
    pub(super) fn report_losses(&self) -> bool {
        let mut listeners = self.lock();
        listeners.retain_mut(|listener| listener.report_loss() != ListenerDelivery::Gone);
        listeners.iter().any(|listener| listener.lost > 0)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(PartialEq)]
enum ListenerDelivery {
    Done,
    Full,
    Gone,
}

impl Listener {
    /// Offers a notification. Returns whether the listener is still connected.
    fn offer(&mut self, notification: &Notification) -> bool {
        let delivery = match self.report_loss() {
            ListenerDelivery::Done => self.deliver(notification.clone()),
            other => other,
        };
        if delivery == ListenerDelivery::Full {
            self.lost += 1;
        }
        delivery != ListenerDelivery::Gone
    }

    fn report_loss(&mut self) -> ListenerDelivery {
        if self.lost == 0 {
            return ListenerDelivery::Done;
        }
        let delivery = self.deliver(Notification::Lagged { lost: self.lost });
        if delivery == ListenerDelivery::Done {
            self.lost = 0;
        }
        delivery
    }

    fn deliver(&self, notification: Notification) -> ListenerDelivery {
        match self.sender.try_send(notification) {
            Ok(()) => ListenerDelivery::Done,
            Err(TrySendError::Full(_)) => ListenerDelivery::Full,
            Err(TrySendError::Disconnected(_)) => ListenerDelivery::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_notifications_are_counted_and_reported() {
        let hub = Hub::default();
        let receiver = hub.subscribe();
        for _ in 0..CAPACITY + 5 {
            hub.publish(&Notification::SessionsChanged);
        }
        assert!(hub.report_losses(), "there is no room yet");
        assert_eq!(receiver.recv(), Ok(Notification::SessionsChanged));
        assert!(!hub.report_losses());
        assert_eq!(
            receiver.try_iter().last(),
            Some(Notification::Lagged { lost: 5 })
        );
        hub.publish(&Notification::Reconnected);
        assert_eq!(receiver.recv(), Ok(Notification::Reconnected));
    }

    #[test]
    fn listeners_that_left_are_forgotten() {
        let hub = Hub::default();
        drop(hub.subscribe());
        let kept = hub.subscribe();
        hub.publish(&Notification::SessionsChanged);
        assert_eq!(hub.lock().len(), 1);
        assert_eq!(kept.recv(), Ok(Notification::SessionsChanged));
    }
}
