//! Decides the answer to a request, and its line in the log.
//!
//! A decision is a value: making it does not wait and writes nothing. `server` carries it out.

use crate::api::{
    self, ModelRequest, ModelResponse, RefusalReply, ReplyContent, StreamEvent, UsageEstimate, Wire,
};
use crate::conversation::ConversationSummary;
use crate::directive::Directives;
use crate::journal::LoggedRequest;
use crate::playbook::Playbook;
use crate::schema;
use serde_json::Value;
use std::time::Duration;

/// Pause after a chunk of a slow stream.
const PACE: Duration = Duration::from_millis(50);
/// Maximum number of characters of the prompt that an answer repeats.
const ECHO: usize = 60;
/// Maximum number of input tokens to report. With true numbers a long message would make the
/// programs compact the conversation, which would disturb tests of messages.
const MAX_INPUT: usize = 5_000;

/// A request, its log line and its answer.
#[derive(Debug)]
pub(crate) struct AnsweredRequest {
    /// Line of the log, without its number and its time.
    pub(crate) request: LoggedRequest,
    /// Time to wait before the first byte.
    pub(crate) delay: Duration,
    pub(crate) reply: Reply,
}

#[derive(Debug)]
pub(crate) enum Reply {
    Json(Value),
    Refusal(RefusalReply),
    /// With a pause after each paced event.
    Events(Vec<StreamEvent>, Duration),
}

/// Decides on a request. `serial` makes ids unique; `created` is the time in the answer.
pub(crate) fn decide(
    method: &str,
    target: &str,
    body: &[u8],
    serial: u64,
    created: i64,
    playbook: &Playbook,
) -> AnsweredRequest {
    let request = LoggedRequest {
        method: method.to_owned(),
        path: target.to_owned(),
        ..LoggedRequest::default()
    };
    let path = target.split('?').next().unwrap_or_default();
    let Some(wire) = api::wire(path).filter(|_| method == "POST") else {
        let (status, answer) = api::other::respond(method, path, body);
        return at_once(LoggedRequest { status, ..request }, answer);
    };
    let request = LoggedRequest {
        api: wire.api,
        ..request
    };
    let json: Value = match serde_json::from_slice(body) {
        Ok(json) => json,
        Err(error) => {
            let answer = (wire.error)(400, &format!("the body is not JSON: {error}"));
            let status = 400;
            return at_once(LoggedRequest { status, ..request }, answer);
        }
    };
    let asked = (wire.read)(path, &json);
    let turn = ConversationSummary::of(&asked.items);
    // A side request repeats the prompt, but its directives are meant for the real one. And a
    // request that the program makes by itself is not about the last prompt.
    let is_about_prompt = !turn.prompts.is_empty() || turn.tool_results > 0;
    let directives = if asked.has_tools && is_about_prompt {
        let own = Directives::of(&turn.prompt);
        let has_own = own != Directives::default();
        let listed = (!has_own).then(|| playbook.find(&asked.items)).flatten();
        listed.unwrap_or(own)
    } else {
        Directives::default()
    };
    let mut reported = UsageEstimate::default();
    let mut status = directives.error.unwrap_or(200);
    let reply = if let Some(seconds) = directives.limit {
        let refusal = (wire.limit)(created + i64::from(seconds));
        status = 429;
        Reply::Refusal(refusal)
    } else if let Some(status) = directives.error {
        Reply::Json((wire.error)(status, &format!("fake error {status}")))
    } else {
        let says = says(&asked, &turn, &directives);
        let usage = usage(body, &says);
        reported = usage;
        let answer = ModelResponse {
            serial,
            model: asked.model,
            body: &json,
            says,
            usage,
            created,
        };
        reply(wire, &answer, asked.stream, &directives)
    };
    AnsweredRequest {
        delay: directives.delay,
        reply,
        request: LoggedRequest {
            model: asked.model.to_owned(),
            stream: asked.stream,
            has_tools: asked.has_tools,
            prompt_bytes: turn.prompt.len(),
            hash: turn.hash(),
            user: turn.user,
            prompts: turn.prompts,
            asides: turn.asides,
            prompt: turn.prompt,
            history: turn.history,
            tool_results: turn.tool_results,
            status,
            usage: reported,
            ..request
        },
    }
}

fn at_once(request: LoggedRequest, answer: Value) -> AnsweredRequest {
    AnsweredRequest {
        request,
        delay: Duration::ZERO,
        reply: Reply::Json(answer),
    }
}

fn reply(wire: &Wire, answer: &ModelResponse<'_>, stream: bool, directives: &Directives) -> Reply {
    if !stream {
        return Reply::Json((wire.whole)(answer));
    }
    let pace = directives.chunks.map_or(Duration::ZERO, |_| PACE);
    Reply::Events((wire.events)(answer), pace)
}

fn says(
    asked: &ModelRequest<'_>,
    turn: &ConversationSummary,
    directives: &Directives,
) -> ReplyContent {
    if let Some(call) = directives.calls.get(turn.results_since_prompt) {
        return ReplyContent::Call(call.clone());
    }
    let text = match (&directives.text, asked.schema) {
        (Some(text), _) => text.clone(),
        (None, Some(schema)) => schema::sample(schema).to_string(),
        (None, None) if asked.has_tools => format!("Fake answer, echo: {}", echo(&turn.prompt)),
        // Not an echo: a title that repeats the prompt could be taken for the answer.
        (None, None) => "Fake title".to_owned(),
    };
    let pieces = text.split_inclusive(' ').map(str::to_owned).collect();
    ReplyContent::Text(match directives.chunks {
        Some(count) => chunks(pieces, count),
        None => pieces,
    })
}

/// Returns the beginning of the prompt on one line.
fn echo(prompt: &str) -> String {
    let chars = prompt.chars().take(ECHO);
    chars
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Returns exactly `count` chunks: numbers follow a short text; the last chunk holds the rest of a
/// long one.
fn chunks(mut pieces: Vec<String>, count: usize) -> Vec<String> {
    let rest = pieces.split_off(count.min(pieces.len()));
    if let Some(last) = pieces.last_mut() {
        last.push_str(&rest.concat());
    }
    let missing = pieces.len()..count;
    pieces.extend(missing.map(|number| format!(" {}", number + 1)));
    pieces
}

fn usage(body: &[u8], says: &ReplyContent) -> UsageEstimate {
    let output = match says {
        ReplyContent::Text(pieces) => pieces.iter().map(String::len).sum(),
        ReplyContent::Call(call) => call.arguments.to_string().len(),
    };
    let tokens = |bytes: usize| (bytes / 4).max(1) as u64;
    let input = tokens(body.len().min(MAX_INPUT * 4));
    UsageEstimate {
        input,
        cached: input / 2,
        output: tokens(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(content: &str, tools: bool) -> AnsweredRequest {
        let tools = if tools { json!([{}]) } else { json!([]) };
        let body = json!({"tools": tools, "messages": [{"role": "user", "content": content}]});
        decide(
            "POST",
            "/v1/messages",
            body.to_string().as_bytes(),
            1,
            0,
            &Playbook::default(),
        )
    }

    fn said(decision: &AnsweredRequest) -> &str {
        let Reply::Json(answer) = &decision.reply else {
            panic!("a stream: {decision:?}");
        };
        answer["content"][0]["text"].as_str().unwrap()
    }

    #[test]
    fn the_answer_repeats_the_beginning_of_the_prompt_on_one_line() {
        assert_eq!(said(&ask("a\nb", true)), "Fake answer, echo: a b");
        let long = "ä".repeat(100);
        assert_eq!(
            said(&ask(&long, true)),
            format!("Fake answer, echo: {}", "ä".repeat(60))
        );
    }

    #[test]
    fn side_requests_heed_no_directives() {
        let decision = ask("[[error=500]] [[delay=9]] [[text=x]]", false);
        assert_eq!(decision.request.status, 200);
        assert_eq!(decision.delay, Duration::ZERO);
        assert_eq!(said(&decision), "Fake title");
    }

    #[test]
    fn a_word_of_the_program_itself_does_not_repeat_the_directives() {
        let body = json!({"tools": [{}], "messages": [
            {"role": "user", "content": "[[error=500]]"},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": "<task-notification>done</task-notification>"},
        ]});
        let decision = decide(
            "POST",
            "/v1/messages",
            body.to_string().as_bytes(),
            1,
            0,
            &Playbook::default(),
        );
        assert_eq!(decision.request.status, 200);
        assert_eq!(decision.request.prompt, "[[error=500]]");
        assert!(!decision.request.is_message());
    }

    #[test]
    fn an_answer_has_as_many_chunks_as_asked_for() {
        for text in ["", "a", "a b c d e f g"] {
            for count in [1, 3, 20] {
                let pieces: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
                let chunks = chunks(pieces, count);
                assert_eq!(chunks.len(), count, "{text}");
                assert!(chunks.concat().starts_with(text));
            }
        }
    }

    #[test]
    fn a_body_that_is_no_json_is_refused_in_the_formats_own_way() {
        let decision = decide(
            "POST",
            "/v1beta/models/g:generateContent",
            b"{",
            1,
            0,
            &Playbook::default(),
        );
        assert_eq!(decision.request.status, 400);
        let Reply::Json(answer) = decision.reply else {
            panic!("a stream");
        };
        assert_eq!(answer["error"]["status"], "INVALID_ARGUMENT");
    }
}
