//! The table of capabilities: one row each, with its reach for every role.

use super::Capability as C;
use super::Reach::{self, None as No, Own, Rig, Town};
use crate::role::Role;

/// The rows: a capability, and its reach for each column.
#[rustfmt::skip]
pub const TABLE: [(C, [Reach; 7]); 13] = [
    //               mayor  deacon boot   witness refinery crew  other workers
    (C::Report,     [Own,   Own,   Own,   Own,    Own,     Own,  Own]),
    (C::Hook,       [Town,  Town,  Own,   Rig,    Own,     Own,  Own]),
    (C::Mail,       [Own,   Own,   Own,   Own,    Own,     Own,  Own]),
    (C::Message,    [Town,  Town,  Town,  Town,   Town,    Town, Town]),
    (C::Answer,     [Town,  Town,  Town,  Rig,    No,      No,   No]),
    (C::Keys,       [Town,  Town,  Town,  Rig,    No,      No,   No]),
    (C::CreateWork, [Town,  Town,  Town,  Town,   Town,    Town, Town]),
    (C::Work,       [Town,  Town,  Own,   Rig,    Rig,     Rig,  Own]),
    (C::Sling,      [Town,  Town,  Town,  Rig,    Rig,     Rig,  No]),
    (C::Merge,      [Town,  Town,  No,    No,     Rig,     No,   No]),
    (C::Stop,       [Town,  Town,  Town,  Rig,    Own,     Own,  Own]),
    (C::Remove,     [Town,  Town,  No,    Rig,    No,      No,   No]),
    (C::Config,     [No,    No,    No,    No,     No,      No,   No]),
];

/// Returns the column of a role; `None` for people.
pub(super) fn column(role: Role) -> Option<usize> {
    Some(match role {
        Role::Overseer => return None,
        Role::Mayor => 0,
        Role::Deacon => 1,
        Role::Boot => 2,
        Role::Witness => 3,
        Role::Refinery => 4,
        Role::Crew => 5,
        Role::Dog | Role::Polecat | Role::Agent | Role::Task => 6,
    })
}
