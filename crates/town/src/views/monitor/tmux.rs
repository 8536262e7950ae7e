//! The control client: tmux reports which containers exist.
//!
//! Only notifications that can change the list of containers or of their clients are passed on.
//! tmux itself renames windows all the time, which does not matter here.

use super::SharedMonitor;
use gt_tmux::{Notification, Reconnecting, Server};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of the server. A server that hangs must not delay the exit of the board.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct MonitorClient {
    control: Reconnecting,
    is_connected: bool,
}

impl MonitorClient {
    /// Creates a client that is not connected yet.
    pub(super) fn new(server: &Server, shared: &Arc<SharedMonitor>) -> std::io::Result<Self> {
        let control = Reconnecting::new(server.clone().with_timeout(TIMEOUT), None);
        let told = control.notifications();
        let shared = Arc::clone(shared);
        // The thread ends with the last connection, when no more notifications can arrive.
        std::thread::Builder::new()
            .name("monitor-tmux".to_owned())
            .spawn(move || {
                for notification in told {
                    match notification {
                        Notification::Exit { .. } => {
                            shared.request(|requests| requests.lost = true);
                        }
                        told if is_news(&told) => {
                            shared.request(|requests| requests.containers = true);
                        }
                        _ => {}
                    }
                }
            })?;
        Ok(MonitorClient {
            control,
            is_connected: false,
        })
    }

    pub(super) fn is_connected(&self) -> bool {
        self.is_connected
    }

    pub(super) fn was_lost(&mut self) {
        self.is_connected = false;
    }

    /// Connects if possible; returns whether it is connected now.
    pub(super) fn connect(&mut self) -> bool {
        // A client process is not worth starting if no server listens.
        if !self.is_connected {
            self.is_connected =
                self.control.server().is_running() && self.control.connect().is_ok();
        }
        self.is_connected
    }

    /// Returns whether a server listens on the socket.
    pub(super) fn has_server(&self) -> bool {
        self.control.server().is_running()
    }
}

fn is_news(told: &Notification) -> bool {
    matches!(
        told,
        Notification::SessionsChanged
            | Notification::SessionRenamed { .. }
            | Notification::WindowAdd { .. }
            | Notification::WindowClose { .. }
            | Notification::UnlinkedWindowAdd { .. }
            | Notification::UnlinkedWindowClose { .. }
            | Notification::ClientDetached { .. }
            | Notification::ClientSessionChanged { .. }
            | Notification::Lagged { .. }
            | Notification::Reconnected
    )
}
