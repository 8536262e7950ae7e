//! The argument list of an agent, which all users of the machine can read.

use crate::env::TestEnv;
use std::fs;

const LAST_WORDS: &str = "the-last-words";

/// Starts `max` with these instructions. Returns its arguments.
fn arguments(env: &TestEnv, instructions: &str) -> String {
    env.gt(&["crew", "start", "max", "--instructions", instructions])
        .ok();
    let pid = env.pid("gastown/crew/max");
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap()
}

#[test]
fn long_first_prompt_is_primed_and_not_in_the_arguments() {
    let env = TestEnv::with_crew(&["max"]);
    let long = format!("{}{LAST_WORDS}", "word ".repeat(200));
    let arguments = arguments(&env, &long);
    assert!(!arguments.contains(LAST_WORDS), "{arguments}");
    assert!(arguments.contains("`gt prime`"), "{arguments}");
    let text = env.gt(&["prime", "--agent", "gastown/max"]).ok().stdout;
    assert_eq!(text.matches(LAST_WORDS).count(), 1, "{text}");
}

#[test]
fn short_first_prompt_is_an_argument_and_not_primed() {
    let env = TestEnv::with_crew(&["max"]);
    let arguments = arguments(&env, LAST_WORDS);
    assert!(arguments.contains(LAST_WORDS), "{arguments}");
    let text = env.gt(&["prime", "--agent", "gastown/max"]).ok().stdout;
    assert_eq!(text.matches(LAST_WORDS).count(), 0, "{text}");
}

#[test]
fn harness_that_types_its_prompts_has_none_in_the_arguments() {
    let env = TestEnv::with_crew(&["max"]);
    let folder = env.town().join("harnesses");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("demo.toml"), "[command]\nprompt = \"typed\"\n").unwrap();
    let arguments = arguments(&env, LAST_WORDS);
    assert!(!arguments.contains(LAST_WORDS), "{arguments}");
    env.wait_screen("gastown/max", "You said: [GAS TOWN]");
}
