//! Fuzz targets. `targets.rs` has one function per parser; `fuzz_targets/` calls them from libFuzzer,
//! and `crates/town/tests/fuzz_seeds.rs` runs the stored inputs through them without it.

pub mod targets;
