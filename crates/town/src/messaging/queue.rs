//! The messages that wait for an agent, one durable file each.
//!
//! In `<town>/.runtime/nudges/<agent>/`, `new/` holds waiting messages, `taken/` the message that
//! is being typed, `done/` delivered messages with their proof, and `aside/` undeliverable messages
//! with the reason. A message moves by renaming, so it is always in exactly one place. The file
//! name of a taken message contains the agent's session and the phase of the delivery, written
//! *before* each step: after a crash, the next process knows what may have happened, and checks the
//! screen. Only the holder of the agent's typing lock moves messages out of `new/`.

mod entry;

pub use entry::{Phase, Receipt, SetAside, TakenMessage};

use crate::base::clock::Clock;
use crate::base::dnd;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::{files, processes};
use crate::{Result, Town};
use gt_core::nudge::{Message, Priority, Proof, fingerprint};
use gt_core::{Identity, Problem};
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Seconds for which receipts are kept for waiting senders.
const ANSWERS_KEPT_SECONDS: u64 = 600;

/// One agent's queue.
#[derive(Clone, Debug)]
pub struct MessageQueue {
    dir: PathBuf,
    clock: Clock,
}

/// Moves the queue of one agent to another agent whose queue is empty.
pub(crate) fn rename(town: &Town, from: &Identity, to: &Identity) {
    let (from, to) = (MessageQueue::of(town, from), MessageQueue::of(town, to));
    if to.is_empty() && !from.is_empty() {
        // A used queue leaves its folders behind when it is empty. If they cannot be removed, the
        // rename fails.
        let _ = fs::remove_dir_all(&to.dir);
        fs::rename(&from.dir, &to.dir).or_warn(format_args!(
            "the messages in {} wait for an agent that has another name now",
            from.dir.display()
        ));
    }
}

impl MessageQueue {
    pub fn of(town: &Town, identity: &Identity) -> Self {
        let name = identity.address().replace('/', ".");
        MessageQueue {
            dir: root(town).join(name),
            clock: town.clock().clone(),
        }
    }

    /// Returns whether a message was ever sent to the agent.
    pub(crate) fn is_used(&self) -> bool {
        self.dir.is_dir()
    }

    /// Returns the path of the typing lock.
    pub fn lock_path(&self) -> PathBuf {
        self.dir.join("typing.lock")
    }

    /// Returns the path of the lock of the background process that delivers messages.
    pub fn deliverer_lock_path(&self) -> PathBuf {
        self.dir.join("deliverer.lock")
    }

    /// Returns the folders whose entries change with the queue.
    pub fn folders(&self) -> [PathBuf; 2] {
        ["new", "taken"].map(|name| self.dir.join(name))
    }

    /// Adds a message. From here on it survives crashes.
    pub fn add(&self, message: &Message, depth: usize) -> Result<()> {
        let waiting = names(&self.dir.join("new")).len();
        if waiting >= depth {
            return Err(
                Problem::conflict(format!("{waiting} messages wait already"))
                    .hint("`gt nudge --list TARGET` shows them, `--cancel ID` cancels one"),
            );
        }
        let text = serde_json::to_vec(message)
            .map_err(|error| Problem::failed("cannot write the message").caused_by(error))?;
        files::write_whole(&self.new_path(&message.key()), &text)
    }

    /// Returns the waiting messages in the order of delivery. Files that cannot be read are left out;
    /// [`unreadable`](Self::unreadable) returns them.
    pub fn waiting(&self) -> Vec<Message> {
        let dir = self.dir.join("new");
        // `unreadable` reports the others.
        names(&dir)
            .iter()
            .filter_map(|name| read(&dir.join(name)).ok())
            .collect()
    }

    /// Returns the first messages in the order of delivery, at most this many, and the number of all
    /// files of waiting messages.
    pub fn first_waiting(&self, most: usize) -> (Vec<Message>, usize) {
        let dir = self.dir.join("new");
        let names = names(&dir);
        // `unreadable` reports the others.
        let messages = names.iter().filter_map(|name| read(&dir.join(name)).ok());
        (messages.take(most).collect(), names.len())
    }

    pub fn is_empty(&self) -> bool {
        names(&self.dir.join("new")).is_empty() && names(&self.dir.join("taken")).is_empty()
    }

    /// Returns whether a do-not-disturb holds all messages. Urgent ones come first, so the first
    /// message decides. A message that is being typed is completed.
    pub(crate) fn is_held_back(&self, town: &Town, agent: &Identity) -> bool {
        dnd::read(town, &agent.address()).is_some()
            && self.interrupted().is_none()
            && self
                .first_waiting(1)
                .0
                .first()
                .is_some_and(|message| message.priority != Priority::Urgent)
    }

    /// Returns whether any message that waits or is being typed can be read.
    pub(crate) fn has_readable(&self) -> bool {
        !self.first_waiting(1).0.is_empty() || self.interrupted().is_some()
    }

    /// Sets aside a message that cannot be delivered, so that the next one can be. The reason is
    /// written afterwards, with [`write_reason`](Self::write_reason).
    pub fn set_aside(&self, taken: &TakenMessage) -> Result<()> {
        files::make_dir(&self.dir.join("aside"))?;
        let from = self.taken_path(taken);
        fs::rename(&from, self.aside_path(&taken.message.key()))
            .map_err(|error| files::io_problem("set aside", &from, &error))
    }

    /// Writes why a message was set aside.
    pub fn write_reason(&self, message: &Message, reason: &str) -> Result<()> {
        let aside = SetAside {
            message: message.clone(),
            reason: reason.to_owned(),
        };
        let text = serde_json::to_vec(&aside)
            .map_err(|error| Problem::failed("cannot write the message").caused_by(error))?;
        files::write_whole(&self.aside_path(&message.key()), &text)
    }

    /// Returns the messages that were set aside, oldest first. Files that cannot be read are left
    /// out; [`unreadable`](Self::unreadable) returns them.
    pub fn set_aside_messages(&self) -> Vec<SetAside> {
        let dir = self.dir.join("aside");
        // `unreadable` reports the others.
        let read = |name: &String| read(&dir.join(name)).ok();
        names(&dir).iter().filter_map(read).collect()
    }

    /// Returns the newest messages that were set aside, at most this many, oldest first, and the
    /// number of all their files.
    pub fn newest_set_aside(&self, most: usize) -> (Vec<SetAside>, usize) {
        let dir = self.dir.join("aside");
        let names = names(&dir);
        let newest = &names[names.len().saturating_sub(most)..];
        // `unreadable` reports the others.
        let read = |name: &String| read(&dir.join(name)).ok();
        (newest.iter().filter_map(read).collect(), names.len())
    }

    /// Returns the files of the queue that hold no readable message, with the reason. They are
    /// never delivered. Reads at most this many files of each folder, the first in the order of
    /// delivery.
    pub fn unreadable(&self, most: usize) -> Vec<Problem> {
        let mut found = Vec::new();
        for folder in ["new", "taken", "aside"] {
            let dir = self.dir.join(folder);
            for name in names(&dir).into_iter().take(most) {
                let path = dir.join(name);
                // A file that is gone was delivered or moved meanwhile.
                if let Err(error) = read::<Message>(&path)
                    && path.exists()
                {
                    found.push(files::io_problem("read the message", &path, &error));
                }
            }
        }
        found
    }

    /// Resumes a message that was set aside and has appeared in the input line since.
    pub fn resume(&self, message: &Message, session: &str, prompts: u64) -> Result<()> {
        let taken = TakenMessage {
            message: message.clone(),
            phase: Phase::Pasting,
            session: session.to_owned(),
            since: 0,
            prompts,
            pastes: 1,
        };
        files::make_dir(&self.dir.join("taken"))?;
        let from = self.aside_path(&message.key());
        fs::rename(&from, self.taken_path(&taken))
            .map_err(|error| files::io_problem("take", &from, &error))
    }

    /// Puts a message that was set aside back to its place in the queue.
    pub fn requeue(&self, message: &Message) -> Result<()> {
        files::make_dir(&self.dir.join("new"))?;
        let from = self.aside_path(&message.key());
        fs::rename(&from, self.new_path(&message.key()))
            .map_err(|error| files::io_problem("put back", &from, &error))
    }

    /// Returns whether a message waits and no background process delivers it.
    pub fn wants_deliverer(&self) -> bool {
        !self.is_empty() && !FileLock::is_held(&self.deliverer_lock_path())
    }

    /// Cancels a message that still waits or was set aside.
    pub fn cancel(&self, id: &str) -> Result<bool> {
        let mut aside = self.set_aside_messages().into_iter();
        if let Some(aside) = aside.find(|it| it.message.id == id) {
            files::remove_if_there(&self.aside_path(&aside.message.key()))?;
            // Earlier versions could leave a second copy in the queue.
            files::remove_if_there(&self.new_path(&aside.message.key()))?;
            return Ok(true);
        }
        let Some(message) = self.waiting().into_iter().find(|message| message.id == id) else {
            return Ok(false);
        };
        match fs::remove_file(self.new_path(&message.key())) {
            Ok(()) => Ok(true),
            // Another process has just taken it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(files::io_problem("take back", &self.new_path(id), &error)),
        }
    }

    /// Returns the message that a crashed process had taken, with its phase.
    pub fn interrupted(&self) -> Option<TakenMessage> {
        let dir = self.dir.join("taken");
        names(&dir).iter().find_map(|name| {
            let (rest, phase) = name.rsplit_once('.')?;
            let (rest, prompts) = rest.rsplit_once('.')?;
            let (_, session) = rest.rsplit_once('.')?;
            let (prompts, pastes) = prompts.split_once('+').unwrap_or((prompts, "0"));
            let path = dir.join(name);
            Some(TakenMessage {
                // `unreadable` reports the file.
                message: read(&path).ok()?,
                phase: Phase::from_suffix(phase)?,
                session: session.to_owned(),
                since: fs::metadata(&path).map_or(0, |meta| meta.mtime()),
                prompts: prompts.parse().ok()?,
                pastes: pastes.parse().ok()?,
            })
        })
    }

    /// Takes the next message for typing.
    pub fn take(&self, session: &str) -> Result<Option<TakenMessage>> {
        let (first, _) = self.first_waiting(1);
        let Some(message) = first.into_iter().next() else {
            return Ok(None);
        };
        files::make_dir(&self.dir.join("taken"))?;
        let from = self.new_path(&message.key());
        let taken = TakenMessage {
            message,
            phase: Phase::Taken,
            session: session.to_owned(),
            since: self.clock.seconds(),
            prompts: 0,
            pastes: 0,
        };
        match fs::rename(&from, self.taken_path(&taken)) {
            Ok(()) => Ok(Some(taken)),
            // It was cancelled at this moment: take the next one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.take(session),
            Err(error) => Err(files::io_problem("take", &from, &error)),
        }
    }

    /// Records the next phase and its time.
    pub fn advance(&self, taken: &mut TakenMessage, phase: Phase, prompts: u64) -> Result<()> {
        let from = self.taken_path(taken);
        let next = TakenMessage {
            phase,
            prompts,
            since: self.clock.seconds(),
            pastes: taken.pastes + u32::from(phase == Phase::Pasting),
            ..taken.clone()
        };
        fs::File::options()
            .append(true)
            .open(&from)
            .and_then(|file| file.set_modified(self.clock.system_time()))
            .map_err(|error| files::io_problem("touch", &from, &error))?;
        fs::rename(&from, self.taken_path(&next))
            .map_err(|error| files::io_problem("move", &from, &error))?;
        *taken = next;
        Ok(())
    }

    /// Puts a message that was not submitted back to its place.
    pub fn put_back(&self, taken: &TakenMessage) -> Result<()> {
        let from = self.taken_path(taken);
        fs::rename(&from, self.new_path(&taken.message.key()))
            .map_err(|error| files::io_problem("put back", &from, &error))
    }

    /// Completes a message. The receipt is written first, for waiting senders.
    pub fn finish(&self, taken: &TakenMessage, receipt: &Receipt) -> Result<()> {
        self.write_receipt(receipt)?;
        // Earlier versions could leave a second copy there.
        files::remove_if_there(&self.aside_path(&taken.message.key()))?;
        files::remove_if_there(&self.taken_path(taken))
    }

    /// Writes the receipt of the submitted message, if the agent's hook has reported this prompt.
    /// The receipt survives tmux and the typing process.
    pub fn confirm(&self, prompt: &str) -> Result<()> {
        let Some(taken) = self.interrupted() else {
            return Ok(());
        };
        let is_it = fingerprint(&taken.message.displayed_text()) == fingerprint(prompt);
        if taken.phase != Phase::Entering || !is_it {
            return Ok(());
        }
        self.write_receipt(&Receipt {
            id: taken.message.id,
            proof: Some(Proof::Hook),
            attempts: 1,
        })
    }

    fn write_receipt(&self, receipt: &Receipt) -> Result<()> {
        let text = serde_json::to_vec(receipt)
            .map_err(|error| Problem::failed("cannot write the receipt").caused_by(error))?;
        let done = self.dir.join("done");
        forget_old(&done);
        files::write_whole(&done.join(&receipt.id), &text)
    }

    /// Removes a taken message that already has a receipt: its process died in between.
    pub fn forget(&self, taken: &TakenMessage) -> Result<()> {
        files::remove_if_there(&self.taken_path(taken))
    }

    /// Returns the receipt of a message once it is delivered.
    pub fn receipt(&self, id: &str) -> Option<Receipt> {
        match read(&self.dir.join("done").join(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            receipt => receipt.or_warn(format_args!("cannot read the receipt of message {id}")),
        }
    }

    /// Moves expired messages to `expired/`. Returns those that were moved. One that cannot be moved
    /// is logged, and the others are moved.
    pub fn expire(&self, now: i64) -> Result<Vec<Message>> {
        let uptime = processes::uptime();
        let mut moved = Vec::new();
        for message in self.waiting() {
            if !message.is_expired(now, uptime.as_ref()) {
                continue;
            }
            files::make_dir(&self.dir.join("expired"))?;
            let from = self.new_path(&message.key());
            match fs::rename(&from, self.dir.join("expired").join(message.key())) {
                Ok(()) => moved.push(message),
                // It was taken or cancelled meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = from.display();
                    tracing::warn!("cannot set the expired message {path} aside: {error}");
                }
            }
        }
        Ok(moved)
    }

    fn new_path(&self, key: &str) -> PathBuf {
        self.dir.join("new").join(key)
    }

    fn aside_path(&self, key: &str) -> PathBuf {
        self.dir.join("aside").join(key)
    }

    fn taken_path(&self, taken: &TakenMessage) -> PathBuf {
        self.dir.join("taken").join(taken.name())
    }
}

fn root(town: &Town) -> PathBuf {
    town.runtime_dir().join("nudges")
}

/// Returns whether a message waits for any agent: a cheap check before tmux is asked.
pub fn any_waiting(town: &Town) -> bool {
    files::entries(&root(town))
        .map(|agent| MessageQueue {
            dir: agent.path(),
            clock: town.clock().clone(),
        })
        .any(|queue| !queue.is_empty())
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = files::entries(dir)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn forget_old(done: &Path) {
    for entry in files::entries(done) {
        // Another process may have removed it.
        let age = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > ANSWERS_KEPT_SECONDS) {
            // Another process may have removed it; otherwise the next call tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
