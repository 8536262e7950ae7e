//! An agent that uses `gt` against others: their questions, keys, hooks, work, mail and sessions.

use super::identity::{inside, last_event, stage};
use crate::env::TestEnv;
use crate::nudge;
use insta::assert_snapshot;

const MAX: &str = "gastown/crew/max";

/// Runs a command in the pane of `max`; it must be denied, and the denial must be an event.
fn refused(env: &TestEnv, command: &str) -> String {
    let answer = inside(env, MAX, command).fails(7);
    let event = last_event(env, "denied");
    assert_eq!(event["actor"], MAX, "{event}");
    let reason = event["payload"]["reason"].as_str().unwrap();
    assert!(answer.stderr.contains(reason), "{event}: {}", answer.stderr);
    answer.stderr.lines().next().unwrap().to_owned()
}

#[test]
fn worker_cannot_change_the_affairs_of_others() {
    let env = stage();
    let id = env.json(&["work", "create", "Paint", "--rig", "gastown"])["id"].clone();
    let id = id.as_str().unwrap();
    env.gt(&["hook", id, "--agent", "gastown/joe"]).ok();
    assert_snapshot!(refused(&env, "gt answer gastown/joe yes"), @"error: gastown/crew/max does not have the capability `answer`");
    assert_snapshot!(refused(&env, "gt answer $GT_ROLE yes"), @"error: gastown/crew/max does not have the capability `answer`");
    assert_snapshot!(refused(&env, "gt keys gastown/joe Enter"), @"error: gastown/crew/max does not have the capability `keys`");
    assert_snapshot!(refused(&env, "gt unhook --agent gastown/joe"), @"error: gastown/crew/max does not have the capability `hook` for gastown/crew/joe");
    assert_snapshot!(refused(&env, "gt done --agent gastown/joe"), @"error: gastown/crew/max does not have the capability `hook` for gastown/crew/joe");
    assert_snapshot!(refused(&env, "gt stop gastown/joe"), @"error: gastown/crew/max does not have the capability `stop` for gastown/crew/joe");
    assert_snapshot!(refused(&env, "gt crew stop joe"), @"error: gastown/crew/max does not have the capability `stop` for gastown/crew/joe");
    assert_snapshot!(refused(&env, "gt crew rm joe --force"), @"error: gastown/crew/max does not have the capability `remove`");
    assert_snapshot!(refused(&env, "gt mail archive hq-00000 --agent gastown/joe"), @"error: gastown/crew/max does not have the capability `mail` for gastown/crew/joe");
    assert_snapshot!(refused(&env, "gt mail inbox human"), @"error: gastown/crew/max does not have the capability `mail` for the mailbox of the person");
    assert_snapshot!(refused(&env, "gt estop"), @"error: gastown/crew/max does not have the capability `stop` for the town");
    assert_snapshot!(refused(&env, "gt rig remove gastown"), @"error: gastown/crew/max does not have the capability `config` for the town");
    assert_snapshot!(refused(&env, "gt mq run gastown"), @"error: gastown/crew/max does not have the capability `merge`");
    assert_snapshot!(refused(&env, "gt start mayor"), @"error: gastown/crew/max does not have the capability `sling` for mayor");
    assert_snapshot!(refused(&env, "gt doctor --fix"), @"error: gastown/crew/max does not have the capability `config` for the town");
    // A shell between, or a removed variable, changes nothing.
    refused(
        &env,
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" gt --town \"$GT_ROOT\" stop gastown/joe",
    );
    assert_eq!(env.running().len(), 2, "both run");
    let hooked = env.json(&["hook", "--agent", "gastown/joe"]);
    assert!(hooked.to_string().contains(id), "{hooked}");
}

#[test]
fn worker_can_do_its_own_work() {
    let env = stage();
    let id = env.json(&["work", "create", "Paint", "--rig", "gastown"])["id"].clone();
    let id = id.as_str().unwrap();
    env.gt(&["hook", id, "--agent", "gastown/max"]).ok();
    for command in [
        "gt hook",
        "gt mail inbox",
        "gt mail send gastown/joe -s S -m M",
        "gt nudge gastown/joe hello --mode queue",
        "gt escalate 'help'",
        "gt work create Mine --rig gastown",
        "gt checkpoint write --notes half",
        "gt unhook",
        "gt agents",
        "gt doctor",
    ] {
        let answer = inside(&env, MAX, command);
        assert_ne!(answer.code, 7, "{command}: {}", answer.stderr);
    }
    let update = format!("gt work update {id} --priority 1");
    inside(&env, MAX, &update).ok();
}

#[test]
fn agent_cannot_answer_its_own_question() {
    let env = nudge::stage(&["max"]);
    let made = env.town().join("gastown/crew/max/made");
    // The answer comes from a process that the agent has left behind.
    let script = env.path("answer.sh");
    let loops = "while ! gt answer gastown/max > /dev/null 2>&1; do \
                 gt answer gastown/max yes 2> \"$HOME/refusal\"; \
                 test $? = 7 && touch \"$HOME/refused\" && exit; done";
    std::fs::write(&script, loops).unwrap();
    let ask = format!(
        "[[tool=sh -c 'sh {} > /dev/null 2>&1 &']] [[tool=touch made]]",
        script.display()
    );
    env.gt(&["nudge", "gastown/max", &ask]).ok();
    let wait = [
        "wait",
        "gastown/max",
        "--until",
        "waiting",
        "--timeout",
        "30",
    ];
    env.gt(&wait).ok();
    env.gt(&["answer", "gastown/max", "yes"]).ok();
    gt_tmux::testing::wait_until("the agent was refused", crate::env::TIMEOUT, || {
        env.path("refused").exists().then_some(())
    });
    assert!(!made.exists(), "the second question is still open");
    let refusal = std::fs::read_to_string(env.path("refusal")).unwrap();
    assert_snapshot!(refusal, @"
    error: gastown/crew/max does not have the capability `answer`
    hint: `gt role capabilities` prints the table; `gt escalate` asks a person
    ");
}

#[test]
fn town_can_give_more_and_a_rig_less() {
    let env = stage();
    env.add_settings("[capabilities.crew]\nstop = 'rig'\n");
    inside(
        &env,
        MAX,
        "gt interrupt gastown/joe --help > /dev/null && gt stop gastown/joe",
    )
    .ok();
    env.add_settings("[rigs.gastown.capabilities.crew]\nstop = 'none'\n");
    refused(&env, "gt stop gastown/max");
    env.add_settings("[capabilities.polecat]\nfly = 'town'\n");
    // The template of a new town determines the number of the line.
    let shown = env.snapshot(&["status"]);
    let (line, _) = shown.split_once(":1 cannot").unwrap();
    let (_, line) = line.rsplit_once(':').unwrap();
    assert_snapshot!(shown.replace(&format!(":{line}:1"), ":N:1"), @"
    exit code: 2
    --- stderr
    error: ~/gt/town.toml:N:1 cannot be read
    caused by: unknown variant `fly`, expected one of `report`, `hook`, `mail`, `message`, `answer`, `keys`, `create_work`, `work`, `sling`, `merge`, `stop`, `remove`, `config`
    hint: correct that line; every key is explained in the documentation
    ");
}
