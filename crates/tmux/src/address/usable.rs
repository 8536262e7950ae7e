//! Checks whether a server could listen on a socket.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::Access;
use rustix::net::SocketAddrUnix;

use super::Socket;

/// Returns the reason why no server can listen on `path`, or `None` if one could.
pub(super) fn obstacle(socket: &Socket, path: &Path) -> Option<String> {
    if SocketAddrUnix::new(path).is_err() {
        let length = path.as_os_str().len();
        return Some(format!("a path of {length} bytes is too long for a socket"));
    }
    match fs::metadata(path) {
        Ok(found) if found.file_type().is_socket() => None,
        Ok(found) if found.is_dir() => Some("it is a folder".to_owned()),
        Ok(_) => Some("it is a file, not a socket".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => missing_folder(socket, path),
        Err(error) => Some(error.to_string()),
    }
}

/// Reports a parent folder that is missing or not writable, unless tmux creates it. tmux creates
/// only its own folder for named sockets.
fn missing_folder(socket: &Socket, path: &Path) -> Option<String> {
    let is_created = match socket {
        Socket::Default => true,
        Socket::Name(name) => !name.contains('/'),
        Socket::Path(_) => false,
    };
    let folder = path.parent().filter(|_| !is_created)?;
    let shown = folder.display();
    if !folder.is_dir() {
        return Some(format!("there is no folder {shown}"));
    }
    let may_write = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK);
    let error = io::Error::from(may_write.err()?);
    Some(format!("the folder {shown} cannot be written to: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn impossible_sockets_are_distinguished_from_absent_servers() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        let check = |path: &Path, expected: Option<&str>| {
            let found = obstacle(&Socket::Path(path.to_owned()), path);
            let fits = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(fits, "{path:?}: {found:?}");
        };
        check(&at("free"), None);
        check(&at("socket"), None);
        check(&at("file"), Some("not a socket"));
        check(folder.path(), Some("a folder"));
        check(&at("no/such"), Some("there is no folder"));
        check(&at("file/below"), Some("Not a directory"));
        check(&at(&"x".repeat(200)), Some("too long"));
        let named = |name: &str| obstacle(&Socket::Name(name.to_owned()), &at("tmux-0").join(name));
        assert_eq!(named("gt"), None);
        assert!(named("a/b").is_some());
    }
}
