//! Errors of the index.

use gt_core::Problem;

const DAMAGED: &str = "the index of sessions is damaged";

#[derive(Debug, thiserror::Error)]
pub(in crate::records::sessions) enum IndexError {
    /// The database itself is damaged. It can be rebuilt.
    #[error("{DAMAGED}: {0}")]
    Damaged(String),
    /// It is intact, but of another version, journal or boot. It can be rebuilt.
    #[error("{DAMAGED}: {0}")]
    Outdated(String),
    /// The disk is full. Even a read may have to write.
    #[error(transparent)]
    NoRoom(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

impl From<IndexError> for Problem {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Damaged(what) | IndexError::Outdated(what) => Problem::failed(DAMAGED)
                .cause(what)
                .hint("`gt sessions rebuild` creates it again"),
            IndexError::NoRoom(problem) | IndexError::Other(problem) => problem,
        }
    }
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, ReadOnly};
        let code = error.sqlite_error_code();
        let problem = || Problem::failed("the index of sessions cannot be used");
        match code {
            Some(DiskFull) => IndexError::NoRoom(
                problem()
                    .caused_by(error)
                    .hint("the disk is full: make room and try again"),
            ),
            Some(DatabaseBusy | DatabaseLocked) => IndexError::Other(
                problem()
                    .caused_by(error)
                    .hint("another gt process uses it: try again"),
            ),
            Some(ReadOnly | CannotOpen) => IndexError::Other(
                problem()
                    .caused_by(error)
                    .hint("check its folder and who owns it"),
            ),
            _ => IndexError::Damaged(error.to_string()),
        }
    }
}
