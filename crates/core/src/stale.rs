//! Messages that were meant for an earlier session.
//!
//! An earlier session may have handled a message that was sent before the present one began. Such a
//! message is marked and still delivered: only the agent can tell.

/// Returns why a message is stale, if it is. Both times are milliseconds since the epoch; `written`
/// formats them for people.
pub fn reason(
    message_at: i64,
    session_began_at: i64,
    written: impl Fn(i64) -> String,
) -> Option<String> {
    (message_at < session_began_at).then(|| {
        format!(
            "message={} session_started={}",
            written(message_at),
            written(session_began_at)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_sent_before_the_session_are_stale() {
        let written = |at: i64| at.to_string();
        assert_eq!(
            reason(1, 2, written).as_deref(),
            Some("message=1 session_started=2")
        );
        assert_eq!(reason(2, 2, written), None);
        assert_eq!(reason(3, 2, written), None);
    }
}
