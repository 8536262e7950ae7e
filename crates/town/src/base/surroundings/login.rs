//! The login name of the person that runs gt.

use super::Surroundings;
use std::sync::{Arc, OnceLock};

/// The login name of the person, looked up when it is first needed.
#[derive(Clone, Debug, Default)]
pub struct Login(Arc<OnceLock<String>>);

impl Login {
    /// Returns a known name, for tests.
    pub fn named(name: &str) -> Self {
        Login(Arc::new(OnceLock::from(name.to_owned())))
    }
}

impl Surroundings {
    /// Returns the login name of the current user: by user id, or by `USER` if `/etc/passwd` does
    /// not have that id.
    pub fn login_name(&self) -> &str {
        self.login.0.get_or_init(|| {
            let uid = rustix::process::getuid().as_raw();
            // A container may have no such file.
            let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
            let known = login_name_in(&users, uid).map(str::to_owned);
            let variable = || self.var("USER").or_else(|| self.var("LOGNAME"));
            known
                .or_else(|| variable().map(str::to_owned))
                .unwrap_or_else(|| uid.to_string())
        })
    }
}

fn login_name_in(passwd: &str, uid: u32) -> Option<&str> {
    let uid = uid.to_string();
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let is_it = fields.nth(1)? == uid && !name.is_empty() && !name.starts_with(['+', '-']);
        is_it.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_names_are_found_by_user_id() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\n+nis\nbroken\nada:x:1000:1000::/home/ada:\n:x:7:7:::\n";
        let check = |uid, name| assert_eq!(login_name_in(passwd, uid), name, "{uid}");
        check(0, Some("root"));
        check(1000, Some("ada"));
        check(7, None);
        check(100, None);
    }
}
