//! Checks on a real server that tmux reads each word as intended, on every transport.

use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::testing::TestServer;
use crate::{Batch, Command, Control, Error, SessionName};

/// Texts that are known to break quoting somewhere.
const TRAPS: &[&str] = &[
    "",
    " ",
    ";",
    "a;",
    "a\\;",
    "\\",
    "\\\\",
    "'",
    "\"",
    "$HOME",
    "${HOME}",
    "$",
    "~",
    "~root/x",
    "a~",
    "#",
    "#x",
    "# comment",
    "{",
    "}",
    "{}",
    "%",
    "%if",
    "%1",
    "=x",
    "A=b",
    "-x",
    "--",
    "a\nb",
    "\n",
    "a\n # b",
    "\t",
    "\r",
    "\r\n",
    "\u{1b}[201~",
    "\u{7f}",
    "\u{1}",
    "\\n",
    "\\012",
    "\\u00e9",
    "ü",
    "🦀",
    "e\u{301}",
    "\u{85}",
    "\u{200b}",
    "\u{2028}",
    "#{pid}",
    "#(touch x)",
    "a\\\nb",
    "||",
    "&&",
    "`id`",
    "*",
    "?",
    "[a]",
    "!",
    "\u{feff}",
];

type Way<'a> = &'a dyn Fn(Batch) -> Result<String, Error>;

/// Stores the texts as buffers in one batch and reads them back through files, since some versions
/// of tmux escape the text that they print.
fn check(test: &TestServer, way: Way<'_>, texts: &[String]) {
    let texts: Vec<&String> = texts.iter().filter(|text| !text.is_empty()).collect();
    let key = |index: usize| format!("k{index}");
    let file = |index: usize| test.folder().join(key(index));
    let set = |(index, text)| {
        Command::new("set-buffer")
            .option("-b", key(index))
            .flag("--")
            .arg(text)
    };
    let save = |index| {
        Command::new("save-buffer")
            .option("-b", key(index))
            .arg(file(index).to_str().unwrap())
    };
    way(texts.iter().copied().enumerate().map(set).collect()).unwrap();
    let batch: Batch = (0..texts.len()).map(save).collect();
    test.server().run(batch).unwrap();
    for (index, text) in texts.into_iter().enumerate() {
        assert_eq!(&fs::read_to_string(file(index)).unwrap(), text);
    }
}

fn on_every_way(check: impl Fn(&TestServer, Way<'_>)) {
    let private = TestServer::new();
    let server = private.server();
    server
        .run(Command::new("new-session").flag("-d").option("-s", "main"))
        .unwrap();
    let control: Control = server.control(&SessionName::new("main").unwrap()).unwrap();
    check(&private, &|batch| server.run(batch));
    check(&private, &|batch| server.run_private(batch));
    check(&private, &|batch| control.run(batch));
}

#[test]
fn known_traps_do_not_close() {
    let texts: Vec<String> = TRAPS.iter().map(|text| (*text).to_owned()).collect();
    on_every_way(|test, way| check(test, way, &texts));
}

#[test]
fn any_text_arrives_as_it_is() {
    let text = prop_oneof![
        // Any character except NUL, which no argument can contain.
        proptest::collection::vec(any::<char>(), 0..12).prop_map(|chars| chars
            .into_iter()
            .filter(|character| *character != '\0')
            .collect::<String>()),
        // Combinations of pieces that are special next to each other.
        proptest::collection::vec(proptest::sample::select(TRAPS), 0..6)
            .prop_map(|pieces| pieces.concat()),
    ];
    let texts = proptest::collection::vec(text, 1..20);
    on_every_way(|test, way| {
        let mut runner = TestRunner::new(Config {
            cases: 24,
            failure_persistence: None,
            ..Config::default()
        });
        runner
            .run(&texts, |texts| {
                check(test, way, &texts);
                Ok(())
            })
            .unwrap();
    });
}
