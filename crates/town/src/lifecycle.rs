//! The life cycle of an agent: start, stop, respawn, save, restore, hand off, prime, adopt.

pub mod account_switch;
pub mod adopt;
pub mod epilogue;
pub mod handoff;
pub mod prime;
pub mod respawn;
pub mod restore;
pub mod save;
pub mod seance;
pub mod start;
pub mod stop;
pub mod sync;
