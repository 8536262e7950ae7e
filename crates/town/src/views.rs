//! Overviews for people: cards of the board, live changes, doctor.

pub mod cards;
pub mod doctor;
pub mod monitor;
pub mod work_tree;
