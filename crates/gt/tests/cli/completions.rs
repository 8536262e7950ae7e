//! `gt completions` and the manual pages.

use crate::env::TestEnv;

#[test]
fn completions_and_manual_pages_come_from_the_same_source() {
    let env = TestEnv::empty();
    for shell in ["bash", "zsh", "fish"] {
        let script = env.gt(&["completions", shell]).ok().stdout;
        assert!(
            script.contains("status-line") && script.contains("crew"),
            "{shell}"
        );
        // The completion script contains the values of enumerated arguments.
        for word in ["escalated", "lowest", "overseer"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    env.gt(&["man", "man1"]).ok();
    assert!(env.path("man1/gt-crew-start.1").exists());
    let help = env.gt(&["--help"]).ok().stdout;
    assert!(help.contains("Usage: gt"), "{help}");
    assert_eq!(env.gt(&["help"]).ok().stdout, help);
    let of_one = env.gt(&["help", "mail", "send"]).ok().stdout;
    assert_eq!(of_one, env.gt(&["mail", "send", "--help"]).ok().stdout);
    env.gt(&["help", "nosuch"]).fails(2);
}
