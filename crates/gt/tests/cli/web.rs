//! `gt web`: tokens for the HTTP API.

use crate::env::TestEnv;
use insta::assert_snapshot;
use std::os::unix::fs::PermissionsExt;

#[test]
fn token_is_created_listed_and_revoked() {
    let env = TestEnv::with_town();
    let made = env
        .gt(&["web", "token", "create", "ci", "--days", "30"])
        .ok();
    assert!(made.stdout.starts_with("gt_"), "{}", made.stdout);
    assert!(
        made.stderr.contains("The token ci has the scope read"),
        "{}",
        made.stderr
    );
    let list = env.json(&["web", "token", "list"]);
    assert_eq!(
        (&list[0]["kind"], &list[0]["name"]),
        (&"token".into(), &"ci".into())
    );
    let secret = made.stdout.trim().rsplit('_').next().unwrap();
    let path = env.town().join(".runtime/web/access.json");
    let file = std::fs::read_to_string(&path).unwrap();
    assert!(!file.contains(secret), "{file}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_snapshot!(env.snapshot(&["web", "token", "create", "ci"]), @r#"
    exit code: 4
    --- stderr
    error: there is a token "ci" already
    hint: `gt web token revoke ci` removes it
    "#);
    assert_snapshot!(env.snapshot(&["web", "token", "revoke", "ci"]), @"
    exit code: 0
    --- stdout
    Revoked ci.
    ");
    assert_snapshot!(env.snapshot(&["web", "token", "revoke", "ci"]), @r#"
    exit code: 3
    --- stderr
    error: there is no token or device "ci"
    hint: `gt web token list` lists them
    "#);
    assert_snapshot!(env.snapshot(&["web", "token", "list"]), @"
    exit code: 0
    --- stdout
    There are no tokens and devices. `gt web token create NAME` creates a token.
    ");
}
