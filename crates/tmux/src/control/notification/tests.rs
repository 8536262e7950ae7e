use super::Notification as N;
use crate::{PaneId, SessionId, WindowId};

fn check(line: &str, expected: &N) {
    assert_eq!(&N::parse(line.as_bytes()), expected, "{line}");
}

#[test]
fn reads_the_lines_of_tmux() {
    check("%sessions-changed", &N::SessionsChanged);
    check(
        "%session-changed $1 a b",
        &N::SessionChanged {
            session: SessionId(1),
            name: "a b".into(),
        },
    );
    check(
        "%session-renamed $1 x",
        &N::SessionRenamed {
            session: SessionId(1),
            name: "x".into(),
        },
    );
    check(
        "%session-window-changed $1 @2",
        &N::SessionWindowChanged {
            session: SessionId(1),
            window: WindowId(2),
        },
    );
    check(
        "%window-add @2",
        &N::WindowAdd {
            window: WindowId(2),
        },
    );
    check(
        "%window-renamed @2 ",
        &N::WindowRenamed {
            window: WindowId(2),
            name: String::new(),
        },
    );
    check(
        "%unlinked-window-close @2",
        &N::UnlinkedWindowClose {
            window: WindowId(2),
        },
    );
    check(
        "%pane-mode-changed %3",
        &N::PaneModeChanged { pane: PaneId(3) },
    );
    check(
        "%client-detached /dev/pts/1",
        &N::ClientDetached {
            client: "/dev/pts/1".into(),
        },
    );
    check(
        "%client-session-changed /dev/pts/1 $1 a b",
        &N::ClientSessionChanged {
            client: "/dev/pts/1".into(),
            session: SessionId(1),
            name: "a b".into(),
        },
    );
    check(
        "%layout-change @1 b25d,80x24,0,0,0 b25d,80x24,0,0,0 *",
        &N::LayoutChange {
            window: WindowId(1),
            layout: "b25d,80x24,0,0,0 b25d,80x24,0,0,0 *".into(),
        },
    );
    check("%exit", &N::Exit { reason: None });
    check(
        "%exit server exited",
        &N::Exit {
            reason: Some("server exited".into()),
        },
    );
    check(
        "%message hello",
        &N::Message {
            text: "hello".into(),
        },
    );
}

#[test]
fn reads_subscriptions_of_every_width() {
    check(
        "%subscription-changed my name $1 @2 0 %3 : a : b",
        &N::SubscriptionChanged {
            name: "my name".into(),
            session: SessionId(1),
            window: Some(WindowId(2)),
            pane: Some(PaneId(3)),
            value: "a : b".into(),
        },
    );
    check(
        "%subscription-changed s $1 - - - :",
        &N::SubscriptionChanged {
            name: "s".into(),
            session: SessionId(1),
            window: None,
            pane: None,
            value: String::new(),
        },
    );
}

#[test]
fn undoes_the_escapes_of_output() {
    check(
        "%output %1 a\\015\\012\\134 \\9 \\40",
        &N::Output {
            pane: PaneId(1),
            data: b"a\r\n\\ \\9 \\40".to_vec(),
        },
    );
    check(
        "%extended-output %1 25 future : x: y",
        &N::ExtendedOutput {
            pane: PaneId(1),
            age: 25,
            data: b"x: y".to_vec(),
        },
    );
    assert_eq!(
        N::parse(b"%output %1 \xff"),
        N::Output {
            pane: PaneId(1),
            data: vec![0xff]
        }
    );
}

#[test]
fn keeps_what_it_does_not_know() {
    check(
        "%brand-new 1 2",
        &N::Other {
            name: "brand-new".into(),
            rest: "1 2".into(),
        },
    );
    check(
        "%window-add 2",
        &N::Other {
            name: "window-add".into(),
            rest: "2".into(),
        },
    );
    check(
        "%output",
        &N::Other {
            name: "output".into(),
            rest: String::new(),
        },
    );
    check(
        "%",
        &N::Other {
            name: String::new(),
            rest: String::new(),
        },
    );
}
