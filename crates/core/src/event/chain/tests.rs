use super::*;
use crate::event::Event;
use proptest::prelude::*;

fn event(number: usize) -> Vec<u8> {
    let mut event = Event::emitted("nudge", "a").with("number", number);
    event.ts = format!("2026-01-17T01:00:00.{number:03}Z");
    serde_json::to_vec(&event).unwrap()
}

/// Returns the lines of a log with this many events, and its head.
fn log(count: usize) -> (Vec<Vec<u8>>, ChainHead) {
    let mut head = ChainHead::default();
    let lines = (0..count).map(|number| head.seal(&event(number))).collect();
    (lines, head)
}

fn verify(lines: &[Vec<u8>], head: &ChainHead) -> ChainReport {
    verify_with(lines, StoredHead::Present(head.clone()))
}

fn verify_with(lines: &[Vec<u8>], stored: StoredHead) -> ChainReport {
    let mut verifier = ChainVerifier::new(stored);
    lines.iter().for_each(|line| verifier.add(line));
    verifier.finish()
}

/// Removes the lines that are not kept and appends the anchor, as a prune does.
fn prune(lines: &mut Vec<Vec<u8>>, head: &mut ChainHead, keeps: impl Fn(usize) -> bool) {
    let found = verify(lines, head).broken;
    let mut number = 0;
    lines.retain(|_| {
        number += 1;
        keeps(number - 1)
    });
    let mut before = FileHash::default();
    lines.iter().for_each(|line| before.add(line));
    let told = Event::emitted("krc_prune", "gt").with_break(found.as_ref());
    lines.push(head.seal_anchor(&serde_json::to_vec(&told).unwrap(), &before));
}

fn broken(report: &ChainReport) -> (u64, &str) {
    let broken = report.broken.as_ref().expect("it is broken");
    (broken.line, broken.reason.as_str())
}

#[test]
fn sealed_line_has_the_documented_form() {
    let mut head = ChainHead::default();
    let line = String::from_utf8(head.seal(br#"{"type":"a"}"#)).unwrap();
    insta::assert_snapshot!(line, @r#"{"type":"a","seq":1,"hash":"0b6ca65540a6e2ad42427b0a6d7aebf72ac32b5ddbfe3ea6835de659dfcb6580"}"#);
    assert_eq!(ChainHead::at_end(line.as_bytes()), Some(head));
}

#[test]
fn head_is_found_in_the_end_of_the_text() {
    let (lines, head) = log(3);
    let text = lines.concat();
    let end = &text[text.len().saturating_sub(LONGEST_SEAL)..];
    assert_eq!(ChainHead::at_end(end), Some(head));
    let payload = format!(
        r#"{{"payload":{{"a":1,"seq":1,"hash":"{}"}}}}"#,
        "a".repeat(64)
    );
    for line in [
        "",
        "\n",
        "{\"type\":\"a\"}\n",
        "\"}\n",
        &format!("{payload}\n"),
    ] {
        assert_eq!(ChainHead::at_end(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn lines_of_earlier_versions_are_valid() {
    let (lines, head) = log(3);
    let old = [&[b"{\"type\":\"old\"}\n".to_vec()][..], &lines].concat();
    let report = verify(&old, &head);
    assert_eq!((report.lines, report.unchained), (4, 1));
    assert_eq!((report.broken, report.head), (None, head));
    assert_eq!(verify_with(&old[..1], StoredHead::Missing).broken, None);
}

#[test]
fn line_and_reason_of_a_break_are_reported() {
    let (lines, head) = log(5);
    let check = |change: &dyn Fn(&mut Vec<Vec<u8>>), expected: (u64, &str)| {
        let mut changed = lines.clone();
        change(&mut changed);
        assert_eq!(broken(&verify(&changed, &head)), expected);
    };
    check(&|lines| drop(lines.remove(0)), (1, "event 1 is missing"));
    check(
        &|lines| drop(lines.drain(1..3)),
        (2, "events 2 to 3 are missing"),
    );
    check(
        &|lines| lines.truncate(4),
        (5, "the log ends before event 5"),
    );
    check(&|lines| lines.clear(), (1, "the log ends before event 5"));
    check(
        &|lines| lines.insert(2, b"{}\n".to_vec()),
        (3, "the line has no hash"),
    );
    check(
        &|lines| lines.insert(2, lines[0].clone()),
        (3, "event 1 follows event 2"),
    );
    let mut other = ChainHead::default();
    let forged = other.seal(&event(9));
    check(
        &|lines| lines[1].clone_from(&forged),
        (2, "event 1 follows event 1"),
    );
    check(
        &|lines| lines[2][40] ^= 1,
        (3, "the hash does not match the line and the line before it"),
    );
    check(
        &|lines| lines[4] = log(4).1.seal(&event(9)),
        (5, "the line is not the one that was written"),
    );
}

#[test]
fn missing_or_damaged_head_is_a_break() {
    let (lines, _) = log(2);
    let of = |stored| verify_with(&lines, stored);
    assert_eq!(broken(&of(StoredHead::Missing)).0, 3);
    assert_eq!(broken(&of(StoredHead::Damaged)).0, 3);
    // A process that was killed has not stored the head.
    assert_eq!(of(StoredHead::Present(log(1).1)).broken, None);
    assert_eq!(of(StoredHead::Present(ChainHead::default())).broken, None);
}

#[test]
fn next_event_continues_from_the_head_if_the_log_was_cut_off() {
    let (mut lines, head) = log(5);
    lines.truncate(3);
    let last = ChainHead::at_end(&lines.concat());
    let mut head = ChainHead::to_continue(last, Some(head));
    lines.push(head.seal(&event(7)));
    assert_eq!(
        broken(&verify(&lines, &head)),
        (4, "events 4 to 5 are missing")
    );
    let one = log(1).1;
    let two = ChainHead::to_continue(Some(log(2).1), Some(one.clone()));
    assert_eq!(two, log(2).1);
    assert_eq!(ChainHead::to_continue(Some(one.clone()), None), one);
    assert_eq!(ChainHead::to_continue(None, None), ChainHead::default());
}

#[test]
fn prune_does_not_hide_a_break() {
    let (mut lines, mut head) = log(9);
    lines.remove(4);
    for _ in 0..2 {
        prune(&mut lines, &mut head, |number| number % 2 == 0);
        lines.push(head.seal(&event(10)));
        let report = verify(&lines, &head);
        let reason = broken(&report).1;
        assert_eq!(
            reason,
            "a prune has found a break at line 5 (2026-01-17T01:00:00.005Z): event 5 is missing"
        );
    }
    // A person accepts it: an anchor without a break.
    let mut before = FileHash::default();
    lines.iter().for_each(|line| before.add(line));
    lines.push(head.seal_anchor(&event(11), &before));
    assert_eq!(verify(&lines, &head).broken, None);
}

#[test]
fn chain_of_a_log_that_is_pruned_completely_goes_on() {
    let (mut lines, mut head) = log(3);
    let stored_before = head.clone();
    prune(&mut lines, &mut head, |_| false);
    assert_eq!(verify(&lines, &head).broken, None);
    assert_eq!(verify(&lines, &stored_before).broken, None);
    lines.push(head.seal(&event(4)));
    assert_eq!(verify(&lines, &head).broken, None);
    lines.remove(0);
    assert_eq!(
        broken(&verify(&lines, &head)),
        (1, "events 1 to 4 are missing")
    );
    let (mut none, mut head) = (Vec::new(), ChainHead::default());
    prune(&mut none, &mut head, |_| true);
    assert_eq!(verify(&none, &head).broken, None);
}

proptest! {
    #[test]
    fn every_change_is_found_and_an_unchanged_log_is_valid(
        count in 1_usize..12,
        prunes in prop::collection::vec(any::<u16>(), 0..3),
        more in 0_usize..4,
        change in 0_u8..6,
        at in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        bit in 0_u8..7,
    ) {
        let (mut lines, mut head) = log(count);
        for mask in prunes {
            prune(&mut lines, &mut head, |number| mask & (1 << (number % 16)) != 0);
            lines.extend((0..more).map(|number| head.seal(&event(number))));
        }
        prop_assert_eq!(verify(&lines, &head).broken, None);
        let valid = lines.clone();
        let (at, to) = (at.index(lines.len()), to.index(lines.len()));
        match change {
            0 => {
                let byte = byte.index(lines[at].len() - 1);
                lines[at][byte] ^= 1 << bit;
                // A new line break makes two lines.
                prop_assume!(lines[at][byte] != b'\n');
            }
            1 => drop(lines.remove(at)),
            2 => lines.swap(at, to),
            3 => lines.insert(at, lines[to].clone()),
            4 => lines.truncate(at),
            _ => lines.insert(at, b"{\"type\":\"inserted\"}\n".to_vec()),
        }
        // A line without a hash before the chain may be of an earlier version.
        let is_before = change == 5 && at == 0 && !valid.concat().windows(8).any(|w| w == b"\"before\"");
        prop_assume!(lines != valid && !is_before);
        let report = verify(&lines, &head);
        prop_assert!(report.broken.is_some(), "{}", String::from_utf8_lossy(&lines.concat()));
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = ChainHead::at_end(&text);
        let mut verifier = ChainVerifier::new(StoredHead::Missing);
        text.split_inclusive(|byte| *byte == b'\n').for_each(|line| verifier.add(line));
        let _ = verifier.finish();
    }
}
