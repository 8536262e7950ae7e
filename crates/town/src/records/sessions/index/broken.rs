//! Errors of the index.

use gt_core::Problem;

#[derive(Debug)]
pub(in crate::records::sessions) enum Broken {
    /// The database itself is damaged. It can be rebuilt.
    Damaged(String),
    /// It is intact, but of another version, journal or boot. It can be rebuilt.
    Outdated(String),
    /// The disk is full. Even a read may have to write.
    NoRoom(Problem),
    Other(Problem),
}

impl Broken {
    pub(in crate::records::sessions) fn into_problem(self) -> Problem {
        match self {
            Broken::Damaged(what) | Broken::Outdated(what) => {
                Problem::failed("the index of sessions is damaged")
                    .cause(what)
                    .hint("`gt sessions rebuild` creates it again")
            }
            Broken::NoRoom(problem) | Broken::Other(problem) => problem,
        }
    }
}

impl From<Problem> for Broken {
    fn from(problem: Problem) -> Self {
        Broken::Other(problem)
    }
}

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, ReadOnly};
        let code = error.sqlite_error_code();
        let problem = || Problem::failed("the index of sessions cannot be used");
        match code {
            Some(DiskFull) => Broken::NoRoom(
                problem()
                    .caused_by(error)
                    .hint("the disk is full: make room and try again"),
            ),
            Some(DatabaseBusy | DatabaseLocked) => Broken::Other(
                problem()
                    .caused_by(error)
                    .hint("another gt process uses it: try again"),
            ),
            Some(ReadOnly | CannotOpen) => Broken::Other(
                problem()
                    .caused_by(error)
                    .hint("check its folder and who owns it"),
            ),
            _ => Broken::Damaged(error.to_string()),
        }
    }
}
