//! The real notify-send on a private session bus, with a fake desktop (`desktop.py`).

use super::*;
use crate::external_programs::{self, SYSTEM_PYTHON};
use std::io::{BufRead, BufReader};
use std::path::Path;

const NEEDED: [&str; 4] = ["notify-send", "dbus-daemon", "python3-dbus", "python3-gi"];

/// Starts a private bus without other services.
fn start_bus(env: &mut TestEnv) {
    let (bus, settings) = (env.path("bus"), env.path("bus.conf"));
    let text = format!(
        "<busconfig><type>session</type><listen>unix:path={}</listen>\
         <policy context='default'><allow send_destination='*' eavesdrop='true'/>\
         <allow eavesdrop='true'/><allow own='*'/></policy></busconfig>",
        bus.display()
    );
    fs::write(&settings, text).unwrap();
    let mut daemon = env.command("dbus-daemon");
    daemon
        .args(["--nofork", "--nopidfile", "--print-address=1"])
        .arg(format!("--config-file={}", settings.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // The daemon prints its address once it listens.
    let stdout = daemon.spawn().unwrap().stdout.unwrap();
    let mut address = String::new();
    BufReader::new(stdout).read_line(&mut address).unwrap();
    env.set("DBUS_SESSION_BUS_ADDRESS", address.trim_end());
}

/// Makes a town that notifies the desktop, which writes to the file `shown`.
fn with_desktop(test: &str) -> Option<TestEnv> {
    if !external_programs::are_there(test, &NEEDED) {
        return None;
    }
    let mut env = TestEnv::with_town();
    start_bus(&mut env);
    let script = env.path("desktop.py");
    fs::write(&script, include_str!("desktop.py")).unwrap();
    let mut desktop = env.command(SYSTEM_PYTHON);
    desktop.arg(&script).arg(env.path("shown"));
    drop(desktop.spawn().unwrap());
    wait_until("the desktop", TIMEOUT, || {
        env.path("shown").exists().then_some(())
    });
    let path = env.town().join("town.toml");
    let settings = fs::read_to_string(&path).unwrap() + "\n[notify]\ndesktop = true\n";
    fs::write(path, settings).unwrap();
    Some(env)
}

/// Returns the notifications of the desktop, once there are `count` and no delivery runs.
#[track_caller]
fn shown(env: &TestEnv, count: usize) -> Vec<Value> {
    let read = || {
        let text = fs::read_to_string(env.path("shown")).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<Vec<Value>, _>>().unwrap_or_default()
    };
    wait_until(&format!("{count} notifications"), TIMEOUT, || {
        (read().len() >= count).then_some(())
    });
    wait_until_told(env);
    read()
}

fn hook_log(town: &Path) -> String {
    fs::read_to_string(town.join(".runtime/gt.log")).unwrap_or_default()
}

#[test]
fn the_desktop_shows_each_event_of_an_agent_once() {
    let Some(env) = with_desktop("notifications") else {
        return;
    };
    let item = env.json(&["work", "create", "Mend <i>it</i>", "--rig", "hq"]);
    let id = item["id"].as_str().unwrap();
    env.gt(&["hook", id, "--agent", "mayor"]).ok();
    env.gt(&["start", "mayor", "--no-prompt", "--ask-permissions"])
        .ok();
    let mut expected = Vec::new();
    let mut check = |event: &str, why: &str| {
        let body = format!("{id}: Mend &lt;i&gt;it&lt;/i&gt;\n{why}");
        expected.push(json!(["gt", format!("mayor {event}"), body]));
        assert_eq!(shown(&env, expected.len()), expected);
    };
    let question = r"[[tool=echo '<b>\074i\076</b> & so']]";
    env.gt(&["nudge", "mayor", question]).ok();
    check(
        "waits for you",
        r"asks: Bash(echo '&lt;b&gt;\074i\076&lt;/b&gt; &amp; so')",
    );
    env.gt(&["answer", "mayor", "yes"]).ok();
    check("is done", "finished its turn");
    signal(env.pid("mayor"), Signal::KILL);
    check("died", "killed by signal 9");
    assert_eq!(hook_log(&env.town()), "");
}

#[test]
fn the_desktop_shows_every_text_as_it_is() {
    let Some(env) = with_desktop("texts") else {
        return;
    };
    let long = "0123456789".repeat(1_000);
    let texts = [
        "<b>bold</b> & <a href=\"x\">x</a> &lt;",
        "--urgency=critical",
        "-",
        "two\nlines\n\n\ttab",
        r"\n \074b\076 \x3c \ \\ '\'' %s",
        "ünï 🦀",
        &long,
    ];
    for text in texts {
        let mut deliver = env.gt_command(&["notify", "deliver"]);
        deliver
            // The C locale does not have these characters.
            .env("LANG", "C")
            .env("GT_NOTIFY_EVENT", "waiting")
            .env("GT_NOTIFY_AGENT", "--help <i>")
            .env("GT_NOTIFY_REASON", text);
        crate::env::run(&mut deliver).ok();
    }
    let shown = shown(&env, texts.len());
    assert_eq!(shown.len(), texts.len());
    for (shown, text) in shown.iter().zip(texts) {
        // The summary is plain text; the body is markup.
        assert_eq!(shown[1], "--help <i> waits for you");
        let body = shown[2].as_str().unwrap();
        assert_eq!(body.matches(['<', '>']).count(), 0, "{body}");
        let read = body.replace("&lt;", "<").replace("&gt;", ">");
        assert_eq!(read.replace("&amp;", "&"), text);
    }
    assert_eq!(hook_log(&env.town()), "");
}

#[test]
fn without_a_bus_or_a_desktop_agents_go_on_and_the_log_says_why() {
    let Some(mut env) = with_desktop("no desktop") else {
        return;
    };
    let at = |name: &str| format!("unix:path={}", env.path(name).display());
    let (nowhere, bus) = (at("nowhere"), at("bus"));
    // A bus without a notification service.
    for pid in processes_of(env.home()) {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&words).contains("desktop.py") {
            signal(pid, Signal::KILL);
        }
    }
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    for (address, why) in [(&bus, "ServiceUnknown"), (&nowhere, "Could not connect")] {
        env.set("DBUS_SESSION_BUS_ADDRESS", address);
        let told = env.gt(&["notify", "test", "--json"]).fails(1).json();
        let error = told[0]["error"].as_str().unwrap();
        assert!(error.contains(why), "{error}");
        hook(&env, "permission", &bash("x"));
        wait_until_told(&env);
        let log = hook_log(&env.town());
        assert!(log.lines().last().unwrap().contains(why), "{log}");
        hook(&env, "tool-end", &bash("x"));
    }
    assert_eq!(hook_log(&env.town()).lines().count(), 2);
    assert_eq!(env.agent("mayor")["health"], "healthy");
}
