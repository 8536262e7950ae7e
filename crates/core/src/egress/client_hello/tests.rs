use super::{Denial, HelloReader, LONGEST_HELLO};
use proptest::prelude::*;

fn long(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    [&length.to_be_bytes(), bytes].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [kind.to_be_bytes().to_vec(), long(content)].concat()
}

fn name(host: &str) -> Vec<u8> {
    let entry = [vec![0], long(host.as_bytes())].concat();
    extension(0, &long(&entry))
}

/// Returns a ClientHello message with these extensions.
fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    body.extend(long(&[0x13, 0x01]));
    body.extend([1, 0]);
    body.extend(long(&extensions.concat()));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1], &length[1..], &body].concat()
}

fn record(payload: &[u8]) -> Vec<u8> {
    [vec![22, 3, 1], long(payload)].concat()
}

fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    record(&message(extensions))
}

fn read(bytes: &[u8]) -> Result<Option<String>, Denial> {
    HelloReader::default().read(bytes)
}

#[test]
fn server_name_is_read_in_lower_case() {
    let bytes = hello(&[
        extension(10, &[0, 2, 0, 29]),
        name("API.example.org"),
        extension(43, &[2, 3, 4]),
    ]);
    assert_eq!(read(&bytes), Ok(Some("api.example.org".into())));
    let with_data = [bytes, vec![20, 3, 3, 0, 1, 1]].concat();
    assert_eq!(read(&with_data), Ok(Some("api.example.org".into())));
}

#[test]
fn pieces_and_fragments_are_joined() {
    let message = message(&[name("a.example.org")]);
    let fragments: Vec<u8> = message.chunks(3).flat_map(record).collect();
    let mut reader = HelloReader::default();
    let (last, start) = fragments.split_last().unwrap();
    for byte in start {
        assert_eq!(reader.read(&[*byte]), Ok(None));
    }
    assert_eq!(reader.read(&[*last]), Ok(Some("a.example.org".into())));
    assert_eq!(read(&fragments), Ok(Some("a.example.org".into())));
}

#[test]
fn hidden_and_absent_names_are_refused() {
    assert_eq!(read(&hello(&[])), Err(Denial::NoServerName));
    for kind in [0xfe0d, 0xffce] {
        let bytes = hello(&[name("a.example.org"), extension(kind, &[0; 8])]);
        assert_eq!(read(&bytes), Err(Denial::HiddenServerName));
    }
}

#[test]
fn ambiguous_names_are_refused() {
    let two = [
        vec![0],
        long(b"a.example.org"),
        vec![0],
        long(b"b.example.org"),
    ]
    .concat();
    let other_kind = [vec![1], long(b"a.example.org")].concat();
    let tables = [
        vec![name("a.example.org"), name("b.example.org")],
        vec![extension(0, &long(&two))],
        vec![extension(0, &long(&other_kind))],
        vec![extension(0, &[])],
        vec![name("")],
        vec![name("a.example.org.")],
        vec![name("127.0.0.1")],
        vec![name("a.example.org\0.evil.example")],
        vec![name("ä.example.org")],
    ];
    for extensions in tables {
        let found = read(&hello(&extensions));
        assert!(matches!(found, Err(Denial::NotTls(_))), "{found:?}");
    }
}

#[test]
fn other_protocols_are_refused_at_the_first_byte() {
    for bytes in [&b"GET / HTTP/1.1"[..], b"SSH-2.0", &[0x80, 0x2e], &[22, 2]] {
        assert!(matches!(read(bytes), Err(Denial::NotTls(_))), "{bytes:?}");
    }
    assert!(read(&record(&[2, 0, 0, 1, 0])).is_err());
    assert!(read(&[22, 3, 1, 0, 0]).is_err());
    assert!(read(&[22, 3, 1, 0x40, 1]).is_err());
}

#[test]
fn long_messages_are_refused() {
    assert!(read(&record(&[1, 1, 0, 0])).is_err());
    let most = u32::try_from(LONGEST_HELLO - 4).unwrap().to_be_bytes();
    assert_eq!(read(&record(&[1, most[1], most[2], most[3]])), Ok(None));
}

proptest! {
    #[test]
    fn reader_never_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        size in 1_usize..40,
    ) {
        let _ = read(&bytes);
        let body = record(&[&[1, 0, 1, 0][..], &bytes].concat());
        let mut reader = HelloReader::default();
        for piece in body.chunks(size) {
            if reader.read(piece).is_err() {
                break;
            }
        }
    }

    #[test]
    fn changed_byte_never_panics(at in 0_usize..90, byte: u8) {
        let mut bytes = hello(&[name("a.example.org"), extension(43, &[2, 3, 4])]);
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read(&bytes);
    }
}
