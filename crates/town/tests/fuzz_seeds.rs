//! Runs the seeds and the stored findings of each fuzz target through its function, without
//! libFuzzer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../fuzz/src/targets.rs"]
#[expect(
    clippy::expect_used,
    unreachable_pub,
    reason = "shared with the fuzz targets"
)]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    match fs::read_dir(fuzz.join(kind).join(target)) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    }
}

#[test]
fn every_stored_input_passes_its_target() {
    for (name, target) in targets::TARGETS {
        let seeds = inputs("seeds", name);
        assert!(!seeds.is_empty(), "fuzz/seeds/{name} is empty");
        for path in seeds.into_iter().chain(inputs("findings", name)) {
            let data = fs::read(&path).unwrap();
            let outcome = std::panic::catch_unwind(|| target(&data));
            assert!(outcome.is_ok(), "{} fails its target", path.display());
        }
    }
}

#[test]
fn every_target_has_a_program() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for (name, _) in targets::TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(fuzz.join(format!("fuzz_targets/{name}.rs")).exists());
    }
}
