//! The messages of a queue by their state: being typed, set aside, delivered.

use gt_core::nudge::{Message, Proof};
use serde::{Deserialize, Serialize};

/// Progress of the typing of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was typed yet.
    Taken,
    /// The text may have been pasted.
    Pasting,
    /// The text was seen in the input line, and Enter may have been pressed.
    Entering,
}

impl Phase {
    /// Returns the word in file names and JSON documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Taken => "taken",
            Phase::Pasting => "pasting",
            Phase::Entering => "entering",
        }
    }

    pub(super) fn from_suffix(suffix: &str) -> Option<Phase> {
        [Phase::Taken, Phase::Pasting, Phase::Entering]
            .into_iter()
            .find(|phase| phase.as_str() == suffix)
    }
}

/// A message that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenMessage {
    pub message: Message,
    pub phase: Phase,
    /// The session that it is typed to.
    pub session: String,
    /// Start of this phase in seconds since the epoch.
    pub since: i64,
    /// Number of prompts that the agent's hook had reported then.
    pub prompts: u64,
    /// Number of times it was pasted.
    pub pastes: u32,
}

impl TakenMessage {
    pub(super) fn name(&self) -> String {
        let TakenMessage {
            message,
            phase,
            session,
            prompts,
            pastes,
            ..
        } = self;
        let (key, phase) = (message.key(), phase.as_str());
        match pastes {
            0 => format!("{key}.{session}.{prompts}.{phase}"),
            _ => format!("{key}.{session}.{prompts}+{pastes}.{phase}"),
        }
    }
}

/// An undelivered message that is not retried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    #[serde(flatten)]
    pub message: Message,
    /// The reason, for people.
    #[serde(default = "unknown_reason")]
    pub reason: String,
}

/// Returns the reason of a message whose process was killed before it wrote one.
pub(super) fn unknown_reason() -> String {
    "not delivered, and gt was killed before it wrote the reason".to_owned()
}

/// The receipt of a delivered message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub id: String,
    /// Absent if no proof was observed that the agent took the message.
    pub proof: Option<Proof>,
    pub attempts: u32,
}
