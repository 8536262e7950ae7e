//! `gt dashboard`: the login link of the page.

use crate::env::TestEnv;
use insta::assert_snapshot;
use std::net::TcpListener;

#[test]
fn link_needs_an_address_and_starts_the_daemon() {
    let env = TestEnv::with_town();
    assert_snapshot!(env.snapshot(&["dashboard"]), @"
    exit code: 4
    --- stderr
    error: the API of this town has no TCP address
    hint: `gt config set web.listen [TIME]` sets it
    ");
    let refused = env.gt(&["config", "set", "web.listen", "0.0.0.0:7420"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    // The address is free again when the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    env.gt(&["config", "set", "web.listen", &address.to_string()])
        .ok();
    let link = env.gt(&["dashboard", "--no-open"]).ok().stdout;
    assert!(
        link.starts_with(&format!("http://{address}/#code=")),
        "{link}"
    );
    assert_eq!(env.json(&["daemon", "status"])["running"], true);
}
