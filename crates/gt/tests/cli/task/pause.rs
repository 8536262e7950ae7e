//! `gt task pause` and `gt task resume`.

use super::*;
use crate::env::signal;
use crate::sessions::list_sessions;
use gt_core::nudge::fingerprint;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

/// Makes a task whose agent is busy for longer than the test.
fn working() -> (TestEnv, String, PathBuf) {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id, "--prompt", "[[delay=10m]]"])
        .ok();
    wait_state(&env, &id, "busy");
    let dir = folder(&env, &id);
    (env, id, dir)
}

fn subject(env: &TestEnv, dir: &Path) -> String {
    let subject = env.git(dir, &["log", "-1", "--format=%s"]);
    subject.trim().to_owned()
}

#[test]
fn a_turn_is_stopped_and_the_work_kept_until_it_goes_on() {
    let (env, id, dir) = working();
    let agent = format!("task/{id}");
    let (pid, before) = (env.pid(&agent), head(&env, &dir));
    fs::write(dir.join("README.md"), "changed\n").unwrap();
    fs::write(dir.join("staged"), "x\n").unwrap();
    env.git(&dir, &["add", "staged"]);
    fs::write(dir.join("new"), "x\n").unwrap();
    fs::write(dir.join("made-ignored"), "x\n").unwrap();
    let status = env.git(&dir, &["status", "--porcelain"]);
    let paused = env.json(&["task", "pause", &id, "--reason", "lunch"]);
    assert_eq!(paused["interrupted"], true, "{paused}");
    assert_eq!(paused["warnings"], json!([]));
    let wip = head(&env, &dir);
    assert_eq!(paused["wip"], json!(wip));
    assert_eq!(subject(&env, &dir), "wip: paused session");
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    assert_eq!(env.format(&format!("{id}-az"), "#{@gt_wip}"), wip);
    let files = env.git(&dir, &["show", "--format=", "--name-only"]);
    let files: Vec<&str> = files.lines().collect();
    assert_eq!(files, ["README.md", "new", "staged"]);
    // The process still runs, at its interrupted turn.
    env.wait_screen(&agent, "Interrupted");
    assert_eq!(env.pid(&agent), pid);
    let shown = env.json(&["task", "show", &id]);
    assert_eq!(shown["state"], "paused");
    assert_eq!(shown["state_reason"], "lunch");
    // A second pause changes nothing, because there is nothing to commit.
    let again = env.json(&["task", "pause", &id]);
    assert_eq!(again["interrupted"], false, "{again}");
    assert_eq!(again["wip"], Value::Null);
    assert_eq!(head(&env, &dir), wip);
    // Messages are queued during the pause.
    env.gt(&["nudge", &agent, "--mode", "queue", "a word meanwhile"])
        .ok();
    assert_eq!(env.json(&["task", "show", &id])["state"], "paused");
    let resumed = env.json(&["task", "resume", &id]);
    assert_eq!(resumed["undone"], json!(wip), "{resumed}");
    assert_eq!(resumed["started"], false);
    assert_eq!(head(&env, &dir), before);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), status);
    assert_eq!(env.format(&format!("{id}-az"), "#{@gt_wip}"), "");
    env.wait_screen(&agent, "You said: continue");
    assert_eq!(env.pid(&agent), pid);
    assert_eq!(
        env.git(&dir, &["for-each-ref", "refs/gt/wip", "refs/gt/wip-index"]),
        ""
    );
    env.gt(&["task", "resume", &id]).fails(4);
}

#[test]
fn resume_wakes_an_agent_that_is_not_to_be_disturbed() {
    let (env, id, _) = working();
    let agent = format!("task/{id}");
    env.gt(&["task", "pause", &id]).ok();
    env.gt(&["dnd", "on", &agent]).ok();
    env.gt(&["task", "resume", &id]).ok();
    env.wait_screen(&agent, "You said: continue");
}

/// Makes a task whose turn was interrupted, and whose program put the message back into its input
/// line.
fn stopped_early() -> (TestEnv, String) {
    stopped_at("think about the moon for as long as it takes")
}

fn stopped_at(words: &str) -> (TestEnv, String) {
    let (env, id) = with_project("");
    let words = &format!("[[put-back]] [[delay=10m]] {words}");
    env.gt(&["task", "start", &id, "--prompt", words]).ok();
    wait_state(&env, &id, "busy");
    let paused = env.json(&["task", "pause", &id]);
    assert_eq!(paused["interrupted"], true, "{paused}");
    (env, id)
}

/// Returns the fingerprint of the program's last prompt, and the number of its prompts.
fn told(env: &TestEnv, id: &str) -> (String, u32) {
    let tags = env.format(&format!("{id}-az"), "#{@gt_last_prompt} #{@gt_prompts}");
    let (last, count) = tags.trim().split_once(' ').unwrap();
    (last.to_owned(), count.parse().unwrap())
}

/// Waits for the given number of prompts, and returns the fingerprint of the last. The hook may
/// report the prompt shortly after the title shows busy.
#[track_caller]
fn wait_told(env: &TestEnv, id: &str, count: u32) -> String {
    let reached = || Some(told(env, id)).filter(|it| it.1 == count);
    let report = || {
        let queue = env.gt(&["nudge", id, "--list", "--json"]).stdout;
        let screen = env.gt(&["peek", id]).stdout;
        format!("{:?}\n{queue}\n{screen}", told(env, id))
    };
    wait_until_or(&format!("{count} prompts"), TIMEOUT, reached, report).0
}

#[test]
fn a_message_that_was_put_back_is_submitted_again() {
    let (env, id) = stopped_early();
    let (last, count) = told(&env, &id);
    let resumed = env.json(&["task", "resume", &id]);
    assert_eq!(resumed["queued"], Value::Null, "{resumed}");
    assert_eq!(wait_told(&env, &id, count + 1), last, "the same once more");
    wait_state(&env, &id, "busy");
    // The second pause puts the message back again; the resume adds a text.
    env.gt(&["task", "pause", &id]).ok();
    let resumed = env.json(&["task", "resume", &id, "--prompt", "and be brief"]);
    assert_eq!(resumed["queued"], Value::Null, "{resumed}");
    assert_eq!(resumed["warnings"], json!([]));
    // The program gets both texts in one message.
    wait_told(&env, &id, count + 2);
    let screen = env.gt(&["peek", &id]).stdout;
    let last = screen.rfind("think about the moon").unwrap();
    assert!(screen[last..].contains("and be brief"), "{screen}");
}

#[test]
fn resume_with_a_message_adds_it_after_the_restored_line() {
    let check = |words: &str, more: &str| {
        let (env, id) = stopped_at(words);
        let (_, count) = told(&env, &id);
        let resumed = env.json(&["task", "resume", &id, "--prompt", more]);
        assert_eq!(resumed["still_paused"], Value::Null, "{more}: {resumed}");
        wait_told(&env, &id, count + 1);
    };
    // The program shows the pasted text as `[Pasted text #1 +4 lines]`, after the message.
    check("think about the moon", "and be brief\nand quick\nand good");
    // More lines than the window has.
    let words: Vec<String> = (1..90).map(|line| format!("line {line}")).collect();
    let words = words.join("\n");
    check(&words, "and be brief");
    check(&words, "and be brief\nand quick\nand good");
}

#[test]
fn agent_whose_line_cannot_be_submitted_stays_paused() {
    let (env, id) = stopped_early();
    let (_, count) = told(&env, &id);
    let resume = ["task", "resume", &id, "--prompt", "and be brief", "--json"];
    let fails = |queued: Value| {
        let answer = env.gt(&resume).fails(1);
        let resumed: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert!(resumed["still_paused"].is_string(), "{resumed}");
        assert_eq!(resumed["queued"], queued, "{resumed}");
        assert_eq!(env.json(&["task", "show", &id])["state"], "paused");
        assert_eq!(told(&env, &id).1, count, "Enter was not pressed");
    };
    let set = |options: &[&str]| {
        let container = gt_tmux::SessionName::try_from(format!("{id}-az").as_str()).unwrap();
        let set = gt_tmux::Command::new("select-pane").target(container);
        env.tmux(set.args(options.iter().copied()));
    };
    let before = env.format(&format!("{id}-az"), "#{pane_title}");
    // The title looks like a question, so nothing is typed and the message is queued.
    set(&["-T", "✋ demo"]);
    fails(json!("it is paused"));
    set(&["-T", &before]);
    // The typed text does not arrive. It may arrive later, so it is not queued as well.
    set(&["-d"]);
    fails(Value::Null);
    set(&["-e"]);
    env.gt(&["task", "resume", &id]).ok();
    wait_told(&env, &id, count + 1);
    wait_state(&env, &id, "busy");
}

#[test]
fn restored_message_that_a_person_edited_is_left_alone() {
    let (env, id) = stopped_early();
    let before = told(&env, &id);
    let container = gt_tmux::SessionName::try_from(format!("{id}-az").as_str()).unwrap();
    let write = gt_tmux::Command::new("send-keys").arg("-l");
    env.tmux(write.target(container).arg(" or the sun"));
    env.wait_screen(&id, "or the sun");
    let resumed = env.json(&["task", "resume", &id]);
    assert_eq!(resumed["queued"], "a person has begun to type there");
    assert_eq!(told(&env, &id), before, "Enter was not pressed");
    env.wait_screen(&id, "or the sun");
}

#[test]
fn restored_line_of_an_earlier_pause_is_not_submitted() {
    let (env, id) = stopped_early();
    let before = told(&env, &id);
    env.gt(&["keys", &id, "Enter"]).ok();
    wait_told(&env, &id, before.1 + 1);
    wait_state(&env, &id, "busy");
    let tags = || env.format(&format!("{id}-az"), "#{@gt_stopped}#{@gt_put_back}");
    assert_eq!(tags(), "", "a prompt has ended the pause");
    // A person interrupts that turn, and the input line has the same text again.
    env.gt(&["keys", &id, "Escape"]).ok();
    wait_state(&env, &id, "idle");
    let paused = env.json(&["task", "pause", &id]);
    assert_eq!(paused["interrupted"], false, "{paused}");
    assert_eq!(tags(), "");
    let resumed = env.json(&["task", "resume", &id]);
    assert_eq!(resumed["queued"], "a person has begun to type there");
    assert_eq!(told(&env, &id).1, before.1 + 1, "Enter was not pressed");
}

/// Makes the harness forget a message whose turn is interrupted.
fn make_forget(env: &TestEnv) {
    let preset = env.town().join("harnesses/demo.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(&preset, "[interrupt]\nforgets = true\n").unwrap();
}

#[test]
fn program_that_drops_the_message_gets_it_again() {
    let (env, id, _) = working();
    make_forget(&env);
    let first = list_sessions(&env, &[])[0]["initial_prompt"].clone();
    let first = first.as_str().unwrap();
    let (_, mut prompts) = told(&env, &id);
    // The reminder is forgotten, too, when its turn is interrupted.
    for words in ["on you go", "and on"] {
        env.gt(&["task", "pause", &id]).ok();
        let resumed = env.json(&["task", "resume", &id, "--prompt", words]);
        assert_eq!(resumed["queued"], Value::Null, "{resumed}");
        prompts += 1;
        let told = wait_told(&env, &id, prompts);
        wait_state(&env, &id, "busy");
        let reminder = "Your turn was stopped. This is what you were told first:";
        let all = fingerprint(&format!("{words}\n\n{reminder}\n\n{first}"));
        assert_eq!(told, all);
    }
}

#[test]
fn program_that_drops_a_finished_message_does_not_get_it_again() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id, "--prompt", "the first order"])
        .ok();
    make_forget(&env);
    let agent = format!("task/{id}");
    env.wait_screen(&agent, "You said");
    wait_state(&env, &id, "idle");
    // An idle agent has forgotten nothing.
    env.gt(&["task", "pause", &id]).ok();
    env.gt(&["task", "resume", &id]).ok();
    env.wait_screen(&agent, "You said: continue");
    assert_eq!(told(&env, &id).0, fingerprint("continue"));
    wait_state(&env, &id, "idle");
    // The interrupted message is not the first one.
    env.gt(&["nudge", &agent, "[[delay=10m]] the second order"])
        .ok();
    wait_state(&env, &id, "busy");
    env.gt(&["task", "pause", &id]).ok();
    env.gt(&["task", "resume", &id]).ok();
    wait_state(&env, &id, "idle");
    let said = "continue\n\nYour turn was stopped, and you may have forgotten the message that it \
                was about. If so, say that, and do not start over with an earlier one.";
    assert_eq!(told(&env, &id).0, fingerprint(said));
}

#[test]
fn pause_without_changes_makes_no_commit() {
    let (env, id, dir) = running();
    wait_state(&env, &id, "idle");
    fs::write(dir.join("made-ignored"), "x\n").unwrap();
    let before = head(&env, &dir);
    let paused = env.json(&["task", "pause", &id]);
    assert_eq!(paused["interrupted"], false, "{paused}");
    assert_eq!(paused["wip"], Value::Null);
    assert_eq!(head(&env, &dir), before);
    let resumed = env.json(&["task", "resume", &id, "--prompt", "go on with it"]);
    assert_eq!(resumed["undone"], Value::Null, "{resumed}");
    env.wait_screen(&format!("task/{id}"), "You said: go on with it");
}

#[test]
fn changes_in_a_submodule_are_reported_and_not_committed() {
    let (env, id, dir) = running();
    wait_state(&env, &id, "idle");
    add_submodule(&env, &dir);
    fs::write(dir.join("sub/s.txt"), "changed\n").unwrap();
    let before = head(&env, &dir);
    let paused = env.json(&["task", "pause", &id]);
    assert_eq!(paused["wip"], Value::Null, "{paused}");
    let warning = paused["warnings"][0].as_str().unwrap();
    assert!(warning.contains("inside sub "), "{warning}");
    assert_eq!(head(&env, &dir), before);
    // The other file is committed all the same.
    fs::write(dir.join("new"), "x\n").unwrap();
    let paused = env.json(&["task", "pause", &id]);
    let warning = paused["warnings"][0].as_str().unwrap();
    assert!(warning.contains("inside sub "), "{warning}");
    let files = env.git(&dir, &["show", "--format=", "--name-only"]);
    assert_eq!(files, "new\n");
    env.gt(&["task", "resume", &id]).ok();
    assert_eq!(head(&env, &dir), before);
    assert_eq!(read(&dir, "sub/s.txt"), "changed\n");
}

#[test]
fn a_question_stays_open_and_a_merge_under_way_is_not_committed() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id, "--prompt", "[[ask=Which?|this|that]]"])
        .ok();
    wait_state(&env, &id, "waiting");
    let dir = folder(&env, &id);
    let own = commit(&env, &dir, "README.md", "ours\n");
    let base = commit_to_base(&env, "README.md", "theirs\n");
    env.gt(&["task", "update", &id]).fails(1);
    let paused = env.json(&["task", "pause", &id]);
    assert_eq!(paused["asks"], true, "{paused}");
    assert_eq!(paused["interrupted"], false);
    let warning = paused["warnings"][0].as_str().unwrap();
    assert!(warning.contains("a merge is under way"), "{warning}");
    assert_eq!(head(&env, &dir), own);
    let merging = env.git(&dir, &["rev-parse", "MERGE_HEAD"]);
    assert_eq!(merging.trim(), base);
    let screen = env.gt(&["peek", &format!("task/{id}")]).stdout;
    assert!(screen.contains("Which?"), "{screen}");
    // The agent is not told to continue: the answer makes it continue.
    let resumed = env.json(&["task", "resume", &id]);
    let warning = resumed["warnings"][0].as_str().unwrap();
    assert!(warning.contains("gt answer"), "{warning}");
    env.gt(&["answer", &format!("task/{id}"), "this"]).ok();
    wait_state(&env, &id, "idle");
}

#[test]
fn pushed_commit_of_a_pause_stays() {
    let check = |change: &dyn Fn(&TestEnv, &Path), why: &str| {
        let (env, id, dir) = running();
        fs::write(dir.join("new"), "x\n").unwrap();
        let wip = env.json(&["task", "pause", &id])["wip"].clone();
        change(&env, &dir);
        let before = head(&env, &dir);
        let resumed = env.json(&["task", "resume", &id]);
        assert_eq!(resumed["kept"]["commit"], wip, "{why}: {resumed}");
        let reason = resumed["kept"]["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{resumed}");
        assert_eq!(head(&env, &dir), before, "{why}");
    };
    check(
        &|env, dir| drop(commit(env, dir, "more", "x\n")),
        "newer commits",
    );
    check(
        &|env, dir| drop(env.git(dir, &["push", "--quiet", "origin", "HEAD:refs/heads/x"])),
        "pushed",
    );
    let (env, id, dir) = running();
    fs::write(dir.join("new"), "x\n").unwrap();
    env.gt(&["task", "pause", &id]).ok();
    let wip = head(&env, &dir);
    let resumed = env.json(&["task", "resume", &id, "--keep-wip"]);
    assert_eq!(resumed["kept"]["commit"], json!(wip), "{resumed}");
    assert_eq!(head(&env, &dir), wip);
}

#[test]
fn typing_to_a_paused_agent_ends_the_pause_and_undoes_its_commit() {
    let (env, id, dir) = running();
    let agent = format!("task/{id}");
    wait_state(&env, &id, "idle");
    let before = head(&env, &dir);
    fs::write(dir.join("new"), "x\n").unwrap();
    env.gt(&["task", "pause", &id]).ok();
    // Commands that would build on the WIP commit are refused.
    commit_to_base(&env, "theirs", "x\n");
    assert_snapshot!(env.snapshot(&["task", "update", &id]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] is paused: the last commit of its branch holds uncommitted changes
    hint: `gt task resume gt-[ID]` undoes it; `--keep-wip` keeps it as an ordinary commit
    ");
    env.gt(&["keys", &agent, "h", "i", "Enter"]).ok();
    env.wait_screen(&agent, "You said: hi");
    wait_state(&env, &id, "idle");
    // The WIP commit is undone before the agent continues, so that the agent commits nothing on top
    // of it.
    assert_eq!(head(&env, &dir), before);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "?? new\n");
    assert_eq!(env.format(&format!("{id}-az"), "#{@gt_wip}"), "");
    env.gt(&["task", "resume", &id]).fails(4);
    assert_eq!(env.json(&["task", "update", &id])["result"], "merged");
    let screen = env.gt(&["peek", &agent]).stdout;
    assert!(!screen.contains("continue"), "{screen}");
}

#[test]
fn an_agent_that_is_gone_is_started_in_its_conversation() {
    let (env, id, dir) = running();
    let agent = format!("task/{id}");
    env.gt(&["nudge", &agent, "remember the word marzipan"])
        .ok();
    wait_state(&env, &id, "idle");
    let conversation = list_sessions(&env, &[])[0]["harness_session_id"].clone();
    assert!(conversation.is_string());
    fs::write(dir.join("new"), "x\n").unwrap();
    let before = head(&env, &dir);
    env.gt(&["task", "pause", &id]).ok();
    signal(env.pid(&agent), Signal::KILL);
    wait_state(&env, &id, "crashed");
    let resumed = env.json(&["task", "resume", &id]);
    assert_eq!(resumed["started"], true, "{resumed}");
    assert_eq!(resumed["conversation"], "resumed");
    assert_eq!(head(&env, &dir), before);
    assert_eq!(read(&dir, "new"), "x\n");
    let session = list_sessions(&env, &[])[0].clone();
    assert_eq!(session["harness_session_id"], conversation);
    let prompt = session["initial_prompt"].as_str().unwrap();
    assert!(prompt.ends_with("continue"), "{prompt}");
    // Without a container it is typed nowhere.
    wait_state(&env, &id, "idle");
    env.gt(&["task", "pause", &id]).ok();
    env.gt(&["task", "stop", &id]).ok();
    let resumed = env.json(&["task", "resume", &id]);
    assert_eq!(resumed["conversation"], "resumed", "{resumed}");
    assert_eq!(head(&env, &dir), before);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "?? new\n");
    assert_eq!(
        list_sessions(&env, &[])[0]["harness_session_id"],
        conversation
    );
    assert_eq!(env.agent(&agent)["health"], "healthy");
}

#[test]
fn resume_continues_without_the_failed_init_command() {
    let (env, id) = with_project("[init]\ncommands = ['test ! -e made-broken']\n");
    let agent = format!("task/{id}");
    env.gt(&["task", "start", &id, "--yolo"]).ok();
    env.gt(&["nudge", &agent, "remember the word marzipan"])
        .ok();
    wait_state(&env, &id, "idle");
    let conversation = list_sessions(&env, &[])[0]["harness_session_id"].clone();
    env.gt(&["task", "stop", &id]).ok();
    fs::write(folder(&env, &id).join("made-broken"), "").unwrap();
    assert_snapshot!(env.snapshot(&["task", "resume", &id]), @"
    exit code: 1
    --- stderr
    error: the init command `test ! -e made-broken` ended with exit code 1
    hint: `gt attach task/gt-[ID]` goes to its shell; `gt task resume gt-[ID]` tries it again
    hint: `gt task resume gt-[ID] --continue-on-failure` continues without it
    ");
    let resumed = env.json(&["task", "resume", &id, "--continue-on-failure"]);
    assert_eq!(resumed["conversation"], "resumed", "{resumed}");
    assert_eq!(
        list_sessions(&env, &[])[0]["harness_session_id"],
        conversation
    );
    let call = fs::read_to_string(format!("/proc/{}/cmdline", env.pid(&agent))).unwrap();
    assert!(call.contains("--dangerously-skip-permissions"), "{call}");
}

#[test]
fn a_pause_that_is_killed_is_finished_by_the_next_and_loses_nothing() {
    for point in gt_town::workflow::task::PAUSE_FAULT_POINTS {
        let (env, id, dir) = working();
        let before = head(&env, &dir);
        fs::write(dir.join("new"), "x\n").unwrap();
        env.kill_at_fault(&["task", "pause", &id, "--json"], point);
        assert_eq!(read(&dir, "new"), "x\n", "{point}");
        let paused = env.json(&["task", "pause", &id]);
        assert_eq!(paused["wip"], json!(head(&env, &dir)), "{point}: {paused}");
        let parent = env.git(&dir, &["rev-parse", "HEAD^"]);
        assert_eq!(parent.trim(), before, "{point}");
        env.gt(&["task", "resume", &id]).ok();
        assert_eq!(head(&env, &dir), before, "{point}");
        assert_eq!(read(&dir, "new"), "x\n", "{point}");
    }
}

#[test]
fn staged_changes_stay_staged_after_a_kill_at_any_point() {
    let points = gt_town::workflow::task::PAUSE_FAULT_POINTS.iter();
    for point in points.chain(gt_town::workflow::task::RESUME_FAULT_POINTS) {
        let (env, id, dir) = running();
        wait_state(&env, &id, "idle");
        let before = head(&env, &dir);
        fs::write(dir.join("staged"), "x\n").unwrap();
        env.git(&dir, &["add", "staged"]);
        fs::write(dir.join("staged"), "y\n").unwrap();
        fs::write(dir.join("new"), "x\n").unwrap();
        let status = env.git(&dir, &["status", "--porcelain"]);
        assert_eq!(status, "AM staged\n?? new\n");
        let is_pause = point.starts_with("pause");
        if !is_pause {
            env.gt(&["task", "pause", &id]).ok();
        }
        let word = if is_pause { "pause" } else { "resume" };
        env.kill_at_fault(&["task", word, &id], point);
        let has_moved = head(&env, &dir) != before;
        let resumed = env.json(&["task", "resume", &id]);
        assert_eq!(resumed["kept"], Value::Null, "{point}: {resumed}");
        assert_eq!(resumed["undone"].is_string(), has_moved, "{point}");
        assert_eq!(head(&env, &dir), before, "{point}");
        assert_eq!(env.git(&dir, &["status", "--porcelain"]), status, "{point}");
        assert_eq!(env.git(&dir, &["show", ":staged"]), "x\n", "{point}");
    }
}
