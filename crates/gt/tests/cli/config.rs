//! `gt config`: reads, changes and explains settings.

mod documentation;
mod edit;
mod list;
mod set;

use crate::env::TestEnv;
use std::fs;

/// Makes a town whose file has only these lines.
fn town_with(text: &str) -> TestEnv {
    let env = TestEnv::with_town();
    fs::write(env.town().join("town.toml"), text).unwrap();
    env
}

fn town_file(env: &TestEnv) -> String {
    fs::read_to_string(env.town().join("town.toml")).unwrap()
}
