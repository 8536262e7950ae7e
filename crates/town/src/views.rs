//! Overviews for people: cards of the board, live changes, the counts of the status line, doctor.

pub mod cards;
pub mod doctor;
pub mod monitor;
pub mod state_counts;
pub mod work_tree;
