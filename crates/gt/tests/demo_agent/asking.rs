//! Dialogs: permissions, questions, trust.

use crate::stage::Stage;

#[test]
fn permission_by_keys() {
    let stage = Stage::ready(&[]);
    stage.say("[[tool=echo ran; touch one]]");
    stage.wait_for(" Bash command\n   echo ran; touch one\n Do you want to proceed?\n ❯ 1. Yes\n");
    stage.wait_title("✋ demo");

    stage.keys(&["Down"]);
    stage.wait_for(" ❯ 2. No, and tell demo what to do differently (esc)\n Esc to cancel\n");
    stage.keys(&["Up", "Enter"]);
    stage.wait_for("  ⎿  ran\n● The command ended with exit code 0.\n");
    assert!(stage.path("one").exists());

    for (message, key, end) in [
        (
            "[[tool=touch two]]",
            "2",
            "● The command was refused: touch two",
        ),
        (
            "[[tool=touch three]]",
            "Escape",
            "  ⎿  Interrupted · What should demo do",
        ),
    ] {
        stage.wait_ready();
        stage.say(message);
        stage.wait_for(" ❯ 1. Yes");
        stage.keys(&[key]);
        stage.wait_for(end);
    }
    assert!(!stage.path("two").exists() && !stage.path("three").exists());
    stage.wait_title("✳ demo");
}

#[test]
fn a_dialog_swallows_a_paste_and_enter_approves() {
    let stage = Stage::ready(&[]);
    stage.say("[[tool=touch one]]");
    stage.wait_for(" ❯ 1. Yes");
    stage.paste("2 no\nplease\n");
    // The key follows the paste, so the dialog has read the paste when the mark moves.
    stage.keys(&["Down"]);
    stage.wait_for(" ❯ 2. No");
    stage.keys(&["Up", "Enter"]);
    stage.wait_for("● The command ended with exit code 0.");
    stage.wait_ready();
    assert!(stage.path("one").exists());
    assert_eq!(stage.received(), ["[[tool=touch one]]"]);
}

#[test]
fn permissions_can_be_skipped() {
    let stage = Stage::ready(&["--dangerously-skip-permissions"]);
    stage.say("[[tool=pwd; exit 3]][[text=done]]");
    stage.wait_for(&format!("  ⎿  {}\n● done\n", stage.folder.path().display()));
    stage.wait_ready();
}

#[test]
fn a_question_is_asked() {
    let stage = Stage::ready(&[]);
    stage.say("[[ask=Which one?|alpha|beta]]");
    stage.wait_for(" Which one?\n ❯ 1. alpha\n   2. beta\n Enter to select");
    stage.keys(&["2"]);
    stage.wait_for("● You chose: beta\n");
}

#[test]
fn trust_is_asked_for_and_no_is_marked() {
    let asked = " Do you trust the files in this folder?";
    let stage = Stage::empty();
    stage.start(&["--trust-dialog", "--settings", &stage.settings()]);
    stage.wait_for(asked);
    stage.wait_for(" ❯ No, exit\n   Yes, I trust this folder\n Enter to confirm · Esc to cancel\n");
    stage.keys(&["Enter"]);
    assert_eq!(stage.status(), "1");
    assert!(stage.hooks().is_empty());

    stage.start(&["--trust-dialog", "hello"]);
    stage.wait_for(asked);
    stage.keys(&["Down", "Enter"]);
    stage.wait_for("● You said: hello");
    stage.wait_ready();
}
