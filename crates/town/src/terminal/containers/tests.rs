use super::*;
use crate::Surroundings;
use std::os::unix::net::UnixListener;

#[test]
fn server_that_ends_during_a_query_has_no_containers() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let root = folder.path().join("town");
    Town::init(&root, None, socket.to_str().unwrap(), "demo").unwrap();
    let around = Surroundings {
        env: [("PATH".to_owned(), std::env::var("PATH").unwrap())].into(),
        ..Surroundings::default()
    };
    let town = Town::open(&root, around).unwrap();
    assert!(list(&town).unwrap().is_empty());
    assert!(find(&town, "hq-mayor").unwrap().is_none());
}
