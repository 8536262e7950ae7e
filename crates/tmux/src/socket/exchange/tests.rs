use super::*;
use proptest::prelude::*;

fn message(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(append(&mut bytes, HeaderLayout::Long, kind, data, false));
    bytes
}

fn numbers(values: &[i32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

fn text(stream: i32, text: &[u8]) -> Vec<u8> {
    [&stream.to_ne_bytes(), text].concat()
}

/// Returns an answer with text on stdout and stderr.
fn answer() -> Vec<u8> {
    [
        message(kind::FLAGS, &[0; 8]),
        message(kind::WRITE_OPEN, &numbers(&[1, STDOUT, 0])),
        message(kind::WRITE, &text(1, b"out \xff")),
        message(kind::WRITE_OPEN, &numbers(&[2, STDERR, 0])),
        message(kind::WRITE, &text(2, b"err")),
        message(kind::WRITE, &text(1, b" more")),
        message(kind::EXIT, &numbers(&[3])),
    ]
    .concat()
}

fn check(outcome: ExchangeOutcome) {
    let ExchangeOutcome::Finished {
        code,
        stdout,
        stderr,
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (code, stdout.as_slice(), stderr.as_slice()),
        (3, &b"out \xff more"[..], &b"err"[..])
    );
}

#[test]
fn collects_until_the_exit_wherever_the_stream_is_cut() {
    let bytes = answer();
    for size in 1..bytes.len() {
        let mut exchange = Exchange::new(HeaderLayout::Long, b"");
        let outcome = bytes
            .chunks(size)
            .find_map(|chunk| match exchange.take(chunk) {
                ExchangeStep::Continue => None,
                ExchangeStep::Done(outcome) => Some(outcome),
            });
        check(outcome.unwrap());
    }
}

#[test]
fn streams_are_acknowledged_and_files_refused() {
    let mut exchange = Exchange::new(HeaderLayout::Long, b"");
    exchange.take(&message(kind::WRITE_OPEN, &numbers(&[7, STDOUT, 0])));
    assert_eq!(
        exchange.take_replies(),
        message(kind::WRITE_READY, &numbers(&[7, 0]))
    );
    exchange.take(&message(
        kind::WRITE_OPEN,
        &[&numbers(&[8, -1, 0])[..], b"/tmp/x\0"].concat(),
    ));
    assert_eq!(
        exchange.take_replies(),
        message(kind::WRITE_READY, &numbers(&[8, NOT_SUPPORTED]))
    );
    exchange.take(&message(
        kind::READ_OPEN,
        &[&numbers(&[9, -1])[..], b"/tmp/x\0"].concat(),
    ));
    assert_eq!(
        exchange.take_replies(),
        message(kind::READ_DONE, &numbers(&[9, NOT_SUPPORTED]))
    );
}

#[test]
fn stdin_is_given_in_pieces() {
    let input = vec![b'x'; 40_000];
    let mut exchange = Exchange::new(HeaderLayout::Long, &input);
    exchange.take(&message(kind::READ_OPEN, &numbers(&[5, STDIN])));
    let replies = exchange.take_replies();
    let (mut rest, mut read) = (replies.as_slice(), 0);
    while let ParsedMessage::Message(received, length) = parse(rest, HeaderLayout::Long) {
        rest = &rest[length..];
        match received.kind {
            kind::READ => read += received.data.len() - 4,
            _ => assert_eq!(
                (received.kind, received.data),
                (kind::READ_DONE, numbers(&[5, 0]))
            ),
        }
    }
    assert_eq!((read, rest.len()), (input.len(), 0));
}

#[test]
fn an_exit_may_carry_a_message() {
    let mut exchange = Exchange::new(HeaderLayout::Long, b"");
    let step = exchange.take(&message(
        kind::EXIT,
        &[&numbers(&[1])[..], b"gone\0"].concat(),
    ));
    assert!(
        matches!(step, ExchangeStep::Done(ExchangeOutcome::Finished { code: 1, stderr, .. }) if stderr == b"gone")
    );
}

#[test]
fn a_refused_version_means_that_nothing_was_run() {
    let mut exchange = Exchange::new(HeaderLayout::Long, b"");
    let step = exchange.take(&message(kind::VERSION, b""));
    assert!(matches!(
        step,
        ExchangeStep::Done(ExchangeOutcome::NotTried)
    ));
}

#[test]
fn a_hang_up_is_a_loss() {
    let mut exchange = Exchange::new(HeaderLayout::Long, b"");
    assert!(matches!(
        exchange.take(b""),
        ExchangeStep::Done(ExchangeOutcome::Lost { .. })
    ));
    let mut exchange = Exchange::new(HeaderLayout::Long, b"");
    let unopened = message(kind::WRITE, &text(1, b"x"));
    assert!(matches!(
        exchange.take(&unopened),
        ExchangeStep::Done(ExchangeOutcome::Lost { .. })
    ));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0u32..400,
        data in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        for layout in [HeaderLayout::Short, HeaderLayout::Long] {
            Exchange::new(layout, b"input").take(&bytes);
            let mut framed = Vec::new();
            prop_assert!(append(&mut framed, layout, kind, &data, false));
            framed.extend_from_slice(&bytes);
            Exchange::new(layout, b"input").take(&framed);
        }
    }
}
