//! Hints name the command that helps, with arguments that the command accepts.

use crate::env::TestEnv;
use insta::assert_snapshot;

#[test]
fn rig_commands_name_the_rig_as_they_take_it() {
    let env = TestEnv::with_rig();
    env.add_rig("other", "ot");
    for (args, hint) in [
        (&["witness", "start"][..], "`gt witness start RIG`"),
        (&["refinery", "status"], "`gt refinery status RIG`"),
        (&["crew", "add", "max"], "RIG/NAME, or add `--rig RIG`"),
        (&["crew", "start", "max"], "RIG/NAME, or add `--rig RIG`"),
    ] {
        let refused = env.gt(args).fails(2);
        let expected = format!("{hint}; the rigs: gastown, other");
        assert!(refused.stderr.contains(&expected), "{args:?}: {refused:?}");
    }
    env.gt(&["witness", "status", "other"]).ok();
}

#[test]
fn missing_work_dir_is_named_as_the_problem() {
    let env = TestEnv::with_crew(&["max"]);
    for args in [
        ["crew", "start", "max", "--work-dir", "/no/such"],
        ["start", "--work-dir", "/no/such", "--create", "mayor"],
    ] {
        let refused = env.gt(&args).fails(3);
        assert!(
            refused.stderr.contains("there is no folder /no/such"),
            "{refused:?}"
        );
        assert!(refused.stderr.contains("--work-dir"), "{refused:?}");
        assert!(!refused.stderr.contains("crew add"), "{refused:?}");
    }
    assert!(env.running().is_empty());
}

#[test]
fn agents_of_a_role_that_do_not_run_are_named_with_their_start() {
    let env = TestEnv::with_rig();
    let found = env.gt(&["agents", "--role", "dog"]).ok().stdout;
    assert_eq!(
        found,
        "No agents of the role dog run here. `gt dog run ERRAND` starts one.\n"
    );
    let found = env.gt(&["agents", "--role", "witness", "--rig", "gastown"]);
    assert_eq!(
        found.ok().stdout,
        "No agents of the role witness run in the rig gastown. `gt witness start gastown` starts one.\n"
    );
    env.gt(&["start", "deacon/dogs/rex"]).ok();
    assert_snapshot!(env.snapshot(&["agents", "--role", "dog"]), @"
    exit code: 0
    --- stdout
    AGENT  STATE  SINCE  WHAT
    deacon/dogs/rex  [STATE] !  [N]
    ! no permission prompts and no sandbox: `gt doctor`
    ");
}

#[test]
fn program_that_is_missing_is_named_with_what_can_be_done() {
    let env = TestEnv::with_crew(&["max"]);
    let preset = env.town().join("harnesses/gone.toml");
    std::fs::create_dir_all(preset.parent().unwrap()).unwrap();
    std::fs::write(preset, "[command]\nprogram = '/no/such'\n").unwrap();
    assert_snapshot!(env.snapshot(&["crew", "start", "max", "--harness", "gone"]), @"
    exit code: 5
    --- stderr
    error: the harness gone needs /no/such, which does not exist or cannot be run
    hint: `gt harness list` shows what is installed
    hint: `--harness NAME` chooses another program
    ");
}

#[test]
fn handoff_to_a_missing_program_is_refused_with_what_can_be_done() {
    let env = TestEnv::with_crew(&["max"]);
    let preset = env.town().join("harnesses/gone.toml");
    std::fs::create_dir_all(preset.parent().unwrap()).unwrap();
    std::fs::write(preset, "[command]\nprogram = '/no/such'\n").unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    let before = env.pid("gastown/crew/max");
    let args = ["handoff", "gastown/max", "--force", "--harness", "gone"];
    assert_snapshot!(env.snapshot(&args), @"
    exit code: 5
    --- stderr
    error: the harness gone needs /no/such, which does not exist or cannot be run
    hint: `gt harness list` shows what is installed
    hint: `--harness NAME` hands over to another program
    ");
    assert_eq!(env.pid("gastown/crew/max"), before);
}
