//! Colours, status lines and keys; the user's own settings are kept.

use crate::env::{TestEnv, run};
use gt_tmux::{Command as Tmux, SessionName};

#[test]
fn a_container_shows_its_role_and_rig() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "mayor", "deacon", "gastown/crew/max"])
        .ok();
    let style = |container: &str| env.format(container, "#{status-style}");
    assert_eq!(style("hq-mayor"), "bg=#3d3200,fg=#ffd700");
    assert_eq!(style("hq-deacon"), "bg=#2d1f3d,fg=#c0b0d0");
    // The palette entry that FNV-32a selects for "gastown".
    assert_eq!(style("gt-crew-max"), "bg=#0d5c63,fg=#e0e0e0");
    assert_eq!(env.format("hq-mayor", "#{T:status-left}"), "🎩 Mayor");
    assert_eq!(
        env.format("gt-crew-max", "#{T:status-left}"),
        "👷 gt-crew-max"
    );
    assert_eq!(
        env.format("gt-crew-max", "#{mouse} #{status-interval} #{window-size}"),
        "1 5 latest"
    );
    env.gt(&["crew", "restart", "max", "--theme", "wine"]).ok();
    assert_eq!(style("gt-crew-max"), "bg=#722f37,fg=#f5f5dc");
}

#[test]
fn a_users_bindings_and_hooks_are_kept() {
    let env = TestEnv::with_town();
    let server = env.server();
    server
        .run_private([
            Tmux::new("new-session").args(["-d", "-s", "mine", "exec sleep 1000"]),
            Tmux::new("bind-key").args([
                "n",
                "set-option",
                "-g",
                "@mine",
                "pressed",
                ";",
                "set-option",
                "-g",
                "@too",
                "yes",
            ]),
            Tmux::new("set-hook").args(["-g", "pane-died", "set-option -g @died yes"]),
        ])
        .unwrap();
    env.gt(&["mayor", "start"]).ok();
    env.gt(&["deacon", "start"]).ok();
    let keys = env.tmux(Tmux::new("list-keys"));
    let bound: Vec<&str> = keys
        .lines()
        .filter(|line| line.contains("@gt_town"))
        .collect();
    assert_eq!(bound.len(), 5, "{bound:?}");
    let hooks = env.tmux(Tmux::new("show-hooks").args(["-g", "pane-died"]));
    assert!(
        hooks.contains("pane-died[0] set-option -g @died yes"),
        "{hooks}"
    );
    assert_eq!(
        hooks.matches("pane-died[970]").count(),
        1,
        "never twice: {hooks}"
    );
    // In the user's session the key keeps its meaning.
    let mut client = std::process::Command::new("script");
    let attach = format!(
        "tmux -S '{}' -f /dev/null attach -t =mine",
        env.socket().display()
    );
    let client = client
        .args(["-qec", &attach, "/dev/null"])
        .env("TERM", "xterm-256color");
    let mut client = client
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    gt_tmux::testing::wait_until("the client is there", crate::env::TIMEOUT, || {
        (!env.tmux(Tmux::new("list-clients")).is_empty()).then_some(())
    });
    use std::io::Write;
    let stdin = client.stdin.as_mut().unwrap();
    stdin.write_all(b"\x02n").unwrap();
    stdin.flush().unwrap();
    gt_tmux::testing::wait_until("the user's own command ran", crate::env::TIMEOUT, || {
        let both = env.tmux(Tmux::new("display-message").args(["-p", "#{@mine} #{@too}"]));
        (both == "pressed yes").then_some(())
    });
    assert_eq!(
        env.tmux(Tmux::new("list-clients").args(["-F", "#{session_name}"])),
        "mine"
    );
    // In an agent's container the same key goes to the next agent.
    env.tmux(Tmux::new("switch-client").args(["-t", "=hq-mayor"]));
    let stdin = client.stdin.as_mut().unwrap();
    stdin.write_all(b"\x02n").unwrap();
    stdin.flush().unwrap();
    gt_tmux::testing::wait_until("the client is with the deacon", crate::env::TIMEOUT, || {
        (env.tmux(Tmux::new("list-clients").args(["-F", "#{session_name}"])) == "hq-deacon")
            .then_some(())
    });
    env.tmux(Tmux::new("detach-client").args(["-s", "=hq-deacon"]));
    client.wait().unwrap();
}

#[test]
fn key_whose_command_fails_leaves_the_pane_as_it_is() {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    // A program that logs each call and fails.
    let (program, calls) = (env.path("fails"), env.path("calls"));
    let text = format!(
        "#!/bin/sh
echo call >> '{}'
exit 1
",
        calls.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for option in [["@gt_bin", program], ["status", "off"]] {
        let mayor = SessionName::try_from("hq-mayor").unwrap();
        env.tmux(Tmux::new("set-option").target(mayor).args(option));
    }
    let mut client = std::process::Command::new("script");
    let attach = format!(
        "tmux -S '{}' -f /dev/null attach -t =hq-mayor",
        env.socket().display()
    );
    let mut client = client
        .args(["-qec", &attach, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    gt_tmux::testing::wait_until("the client is there", crate::env::TIMEOUT, || {
        (!env.tmux(Tmux::new("list-clients")).is_empty()).then_some(())
    });
    for (number, key) in ["g", "a", "n", "p"].into_iter().enumerate() {
        // tmux treats keys that arrive together as a paste, so the test waits after each one.
        let stdin = client.stdin.as_mut().unwrap();
        stdin.write_all(format!("\x02{key}").as_bytes()).unwrap();
        stdin.flush().unwrap();
        gt_tmux::testing::wait_until("the key has made its call", crate::env::TIMEOUT, || {
            let calls = fs::read_to_string(&calls).unwrap_or_default();
            (calls.lines().count() > number).then_some(())
        });
    }
    // Once tmux has seen this command end, it has also seen the earlier ones end.
    env.tmux(Tmux::new("run-shell").arg("true"));
    assert_eq!(env.format("hq-mayor", "#{pane_in_mode}"), "0");
    env.tmux(Tmux::new("detach-client").args(["-s", "=hq-mayor"]));
    client.wait().unwrap();
}

/// The option is one of the whole server: on a person's default server it would let the programs in
/// all of their sessions set the clipboard.
#[test]
fn clipboard_is_opened_only_on_a_server_of_the_towns_own() {
    let env = TestEnv::with_town();
    let clipboard = Tmux::new("show-options").args(["-sv", "set-clipboard"]);
    env.gt(&["mayor", "start"]).ok();
    assert_eq!(env.tmux(clipboard).trim(), "on");
    let on_default = |args: &[&str]| run(env.gt_command(args).env("GT_TMUX_SOCKET", "default"));
    on_default(&["deacon", "start"]).ok();
    let tmux = |args: &[&str]| {
        let mut tmux = std::process::Command::new("tmux");
        tmux.args(args).env("TMUX_TMPDIR", env.home());
        let output = tmux.env_remove("TMUX").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let found = tmux(&["show-options", "-sv", "set-clipboard"]);
    tmux(&["kill-server"]);
    assert_eq!(found.trim(), "external");
}
