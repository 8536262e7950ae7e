use super::*;

/// Long grapheme clusters, and the part of them that tmux 3.3a shows in a cell.
const CUT: &[(&str, &str)] = &[
    (
        "👨\u{200d}👩\u{200d}👧\u{200d}👦",
        "👨\u{200d}👩\u{200d}👧\u{200d}",
    ),
    (
        "👩\u{200d}❤\u{fe0f}\u{200d}💋\u{200d}👨",
        "👩\u{200d}❤\u{fe0f}\u{200d}💋",
    ),
    (
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}",
    ),
    ("🇩🇪", "🇩🇪"),
    ("x\u{fffe}y", "xy"),
    ("x\u{378}y", "xy"),
    ("日\u{200d}本", "日\u{200d}本"),
];

#[test]
fn cut_grapheme_clusters_are_recognised() {
    let marks = format!("e{}", "\u{301}".repeat(30));
    let ten = format!("e{}", "\u{301}".repeat(10));
    let all = CUT.iter().copied().chain([(marks.as_str(), ten.as_str())]);
    for (sent, shown) in all {
        for (before, after) in [("", ""), ("hello ", " and on"), ("", "🎉"), ("👍", "")] {
            let message = format!("{before}{sent}{after}");
            let screen = format!("{before}{shown}{after}");
            assert!(is_in_input(&screen, &message), "{screen:?} {message:?}");
            assert!(ends_with(&format!("> {screen}"), &message), "{message:?}");
            assert!(!is_in_input("", &message), "{message:?}");
            assert!(!is_in_input("rm -r", &message), "{message:?}");
            let long = format!("{message} is followed by a good deal more than enough words");
            let cut = format!("{screen} is followed\nby a good\ndeal more than enough");
            assert!(is_in_input(&cut, &long), "{cut:?}");
        }
        assert!(is_showable(sent), "{sent:?}");
    }
}

#[test]
fn composed_letters_are_recognised() {
    let marks = |count: usize| "\u{301}".repeat(count);
    for (message, shown) in [
        ("e\u{301}".to_owned(), "é".to_owned()),
        (format!("e{}", marks(30)), format!("é{}", marks(9))),
        (
            format!("cafe{} noir", marks(2)),
            "café\u{301} noir".to_owned(),
        ),
        ("か\u{3099}んばって".to_owned(), "がんばって".to_owned()),
    ] {
        assert!(is_in_input(&shown, &message), "{shown:?} {message:?}");
    }
    assert!(!is_in_input("中国", "日本 e\u{301}"));
    assert!(!is_in_input("éé", "e\u{301}") && !is_in_input("é", "e"));
    assert!(!is_in_input("rm é", "e\u{301}"));
}

#[test]
fn other_clusters_are_not_taken_for_the_message() {
    assert!(!is_in_input("👎", "👍"));
    assert!(!is_in_input("👨\u{200d}👩🎉", "👨\u{200d}👩\u{200d}👧"));
    assert!(!is_in_input("okay 👍", "ok 👍") && !is_in_input("👍 ok 👍", "ok"));
    assert!(!ends_with("> 👎", "👍") && ends_with("> 👍 ", "👍"));
}

#[test]
fn text_without_a_visible_character_is_not_showable() {
    for text in [
        "",
        " \n",
        "\u{fffe}",
        "\u{200b}\u{feff}",
        "\u{301}",
        "\u{fdd0}",
    ] {
        assert!(!is_showable(text), "{text:?}");
    }
    for text in ["a", "👍", "日", "…", "♥", "\u{301}e"] {
        assert!(is_showable(text), "{text:?}");
    }
}

#[test]
fn a_message_is_recognised_in_an_input_line() {
    let long = "The quick brown fox jumps over the lazy dog and goes on and on";
    assert!(is_in_input("check your hook", "check your hook"));
    assert!(is_in_input(
        "The quick brown fox\njumps over the\n  lazy",
        long
    ));
    assert!(is_in_input("over the lazy\ndog and goes\non and on", long));
    assert!(is_in_input(
        "The quick brown fox jumps over\n[...]\nthe lazy dog and goes on and on",
        &long.repeat(3)
    ));
    assert!(!is_in_input(
        "The quick brown fox jumps over the lazy",
        long
    ));
    assert!(!is_in_input("over the lazy dog and goes\non and on", long));
    assert!(is_in_input("[Pasted text #4]", &long.repeat(20)));
    assert!(!is_in_input("[Pasted text #4]", long), "too short for one");
    assert!(is_in_input(
        "what is [Pasted text #1 +9 lines]",
        "what is [Pasted text #1 +9 lines]"
    ));
    assert!(!is_in_input("[Pasted ~3 lines] and then", "a\nb\nc"));
    assert!(!is_in_input("ok let me think", "ok"));
    assert!(!is_in_input("why", "y") && is_in_input(" y ", "y"));
    assert!(is_in_input("[Pasted text #4 +2 lines]", "a\nb\nc"));
    assert!(is_in_input("[Pasted ~3 lines]", "a\nb\nc"));
    assert!(is_in_input("[Pasted Content 5 chars]", "grüße"));
    assert!(is_in_input("[Pasted Text: 5 chars]", "grüße"));
    assert!(!is_in_input("[Pasted text #1 +9 lines]", long), "another's");
    assert!(!is_in_input("", "x"));
    assert!(!is_in_input("something else", "check your hook"));
    assert!(!is_in_input("half a line check your ho", "check your hook"));
}

#[test]
fn messages_of_one_sender_are_distinguished() {
    let from = |text: &str| format!("[from gastown/polecats/Toast] {text}");
    for (shown, sent) in [
        ("the build is green", "the build is red"),
        ("👍", "👎"),
        ("take gt-00001 from the hook", "take gt-00002 from the hook"),
        ("the build is green", "the build is green, merge it"),
        ("go on with the next step\nand then\nrest", "and then\nrest"),
    ] {
        let (shown, sent) = (from(shown), from(sent));
        assert!(is_in_input(&sent, &sent) && is_in_input(&shown, &shown));
        assert!(!is_in_input(&shown, &sent), "{shown:?} {sent:?}");
        assert!(!is_in_input(&sent, &shown), "{sent:?} {shown:?}");
    }
    // The visible part has the sender and too little of the text.
    let long = from("the build is green and everything else is as it was before");
    let part = "[from gastown\n/polecats/Toast]\nthe build is";
    assert!(!is_in_input(part, &long));
}

/// Wraps a text to this width, as a program with a prompt and an indent does.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let rows = text.lines().flat_map(|line| {
        let cells: Vec<char> = line.chars().collect();
        let rows = cells.chunks(width).map(|row| row.iter().collect());
        rows.collect::<Vec<String>>()
    });
    rows.collect()
}

proptest::proptest! {
    #[test]
    fn only_the_shown_message_of_a_template_is_recognised(
        sender in "[a-z]{1,12}/[a-z]{1,12}",
        before in "[a-z .,\n]{0,120}",
        numbers in (100_u32..1_000, 100_u32..1_000),
        after in "[a-z .,\n]{0,120}",
        width in 8_usize..90,
    ) {
        let message = |number: u32| format!("[from {sender}] {before}{number}{after}");
        let (one, other) = (message(numbers.0), message(numbers.1));
        let shown = wrap(&one, width).join("\n");
        proptest::prop_assert!(is_in_input(&shown, &one));
        proptest::prop_assert_eq!(is_in_input(&shown, &other), one == other);
    }

    #[test]
    fn last_rows_of_a_high_line_are_recognised(
        text in "[a-z]{40}[a-z ]{200,400}[a-z]{40}",
        width in 12_usize..60,
    ) {
        let message = format!("[from mayor] {text}");
        let rows = wrap(&message, width);
        let shown = rows[rows.len() - 4..].join("\n");
        proptest::prop_assert!(is_in_input(&shown, &message));
        let shown = rows[..rows.len() - 1].join("\n");
        proptest::prop_assert!(is_in_input(&shown, &message));
    }
}

#[test]
fn text_added_to_a_line_is_recognised() {
    let before = "think about\nthe moon";
    let more = "\n\nand be brief\nand quick";
    let check = |input: &str, expected| {
        assert_eq!(is_added(input, before, more), expected, "{input}");
    };
    check("think about the\nmoon\n\nand be brief\nand quick", true);
    check("think about the moon[Pasted text #1 +3\nlines]", true);
    check("think about the moon[Pasted text #1 +7 lines]", false);
    check("think about the moon", false);
    check("think about the moon, and be brief", false);
    // Only the end of a line that is too high is visible.
    check("the moon\n\nand be brief\nand quick", true);
    check("the moon[Pasted text #2 +3 lines]", true);
    check("the moon[Pasted text #1 +7 lines]", false);
    check("moon", false);
    assert!(!is_added("the end", "the end", "the end"), "not there yet");
    let label = "[Pasted text #1 +9 lines]";
    assert!(is_added(
        &format!("{label}[Pasted text #2 +3 lines]"),
        label,
        more
    ));
}

#[test]
fn a_message_is_recognised_before_the_cursor() {
    assert!(ends_with("hello\n> check your hook", "check your hook"));
    assert!(ends_with("> check your\n  hook", "check your hook"));
    assert!(!ends_with("> check your hook\n> ", "check your hook"));
    assert!(!ends_with("", "x") && !ends_with("x", ""));
}
