use super::*;
use proptest::prelude::*;

fn block(time: u64, number: u64, flags: u64, succeeded: bool, body: &str) -> Block {
    Block {
        guard: Guard {
            time,
            number,
            flags,
        },
        succeeded,
        body: body.as_bytes().to_vec(),
        truncated: false,
    }
}

const STREAM: &[u8] = b"%begin 10 1 0\n%end 10 1 0\n%session-changed $0 a\n\
    %begin 11 2 1\nx\n%end 11 1 1\n%end 10 2 1\n%sessions-changed\n\n%end 11 2 1\n\
    stray\n%begin 11 3 1\ncan't find session: q\n%error 11 3 1\n%exit\n";

fn expected() -> Vec<ControlMessage> {
    let note = ControlMessage::Notification;
    vec![
        ControlMessage::Injected(block(10, 1, 0, true, "")),
        note(Notification::parse(b"%session-changed $0 a")),
        // An end with other numbers, or a line that looks like a notification, belongs to the
        // answer.
        ControlMessage::Reply(block(
            11,
            2,
            1,
            true,
            "x\n%end 11 1 1\n%end 10 2 1\n%sessions-changed\n\n",
        )),
        note(Notification::Other {
            name: String::new(),
            rest: "stray".into(),
        }),
        ControlMessage::Reply(block(11, 3, 1, false, "can't find session: q\n")),
        note(Notification::Exit { reason: None }),
    ]
}

#[test]
fn reads_a_stream() {
    assert_eq!(ControlParser::default().push(STREAM), expected());
}

#[test]
fn it_does_not_matter_where_the_stream_is_cut() {
    for cut in 0..=STREAM.len() {
        let mut parser = ControlParser::default();
        let mut messages = parser.push(&STREAM[..cut]);
        messages.extend(parser.push(&STREAM[cut..]));
        assert_eq!(messages, expected(), "cut at {cut}");
    }
    let mut parser = ControlParser::default();
    let messages: Vec<_> = STREAM
        .iter()
        .flat_map(|byte| parser.push(&[*byte]))
        .collect();
    assert_eq!(messages, expected());
}

#[test]
fn keeps_no_more_than_its_limit() {
    let mut parser = ControlParser::with_limit(16);
    parser.push(b"%begin 1 2 1\n");
    for _ in 0..1000 {
        parser.push(b"0123456789\n");
        parser.push(&[b'x'; 100]);
    }
    assert!(parser.line.len() <= 16);
    assert!(
        parser
            .open
            .as_ref()
            .is_some_and(|open| open.body.len() <= 16 && open.truncated)
    );
    let messages = parser.push(b"\n%end 1 2 1\n%window-add @1\n");
    assert!(
        matches!(&messages[0], ControlMessage::Reply(block) if block.truncated && block.succeeded)
    );
    assert_eq!(messages.len(), 2);
}

#[test]
fn bytes_that_are_no_text_stay_as_they_are() {
    let messages = ControlParser::default().push(b"%begin 1 2 1\n\xff\x00\n%end 1 2 1\n");
    assert!(matches!(&messages[..], [ControlMessage::Reply(block)] if block.body == b"\xff\x00\n"));
}

/// Generates pieces of a valid stream, and invalid ones.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"%begin 1 2 1\n".to_vec()),
        Just(b"%end 1 2 1\n".to_vec()),
        Just(b"%error 1 2 1\n".to_vec()),
        Just(b"%begin 1 2 0\n".to_vec()),
        Just(b"%end 1 2 0\n".to_vec()),
        Just(b"%output %1 \\01\n".to_vec()),
        Just(b"%extended-output %1 : :\n".to_vec()),
        Just(b"%subscription-changed a $1 - - - : \n".to_vec()),
        "%[a-z-]{0,24} [$@%0-9: -]{0,12}\n".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_no_cut_makes_a_difference(
        pieces in proptest::collection::vec(piece(), 0..20),
        cuts in proptest::collection::vec(1usize..9, 1..8),
        limit in 1usize..64,
    ) {
        let stream = pieces.concat();
        let whole = ControlParser::with_limit(limit).push(&stream);
        let mut parser = ControlParser::with_limit(limit);
        let mut piecewise = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            piecewise.extend(parser.push(head));
            rest = tail;
        }
        prop_assert_eq!(whole, piecewise);
    }
}
