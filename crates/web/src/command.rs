//! Operations that run a command.

use crate::app::ApiRequest;
use crate::failure::{ApiFailure, json_response};
use crate::idempotency::{KeyedRequest, StoredAnswer};
use crate::paging::{add_link, page_of, with_etag};
use crate::state::ApiState;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use gt_core::Problem;
use gt_core::operation::{AnswerShape, Operation};
use gt_town::records::events::{self, Events};
use serde_json::Value;
use std::sync::Arc;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The exit code of a message that was queued although immediate delivery was asked for.
const QUEUED: u8 = 6;

pub(crate) async fn run(
    operation: &'static Operation,
    state: &Arc<ApiState>,
    request: ApiRequest,
) -> Result<Response, ApiFailure> {
    let arguments = operation.arguments(&request.values)?;
    // The semaphore is never closed.
    let _permit = state.running.acquire().await.ok();
    let shared = Arc::clone(state);
    // A client that goes away does not end the operation.
    let work = move || match operation.is_read() {
        true => read(operation, &shared, arguments, &request),
        false => change(operation, &shared, arguments, &request),
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Problem::failed("the operation has panicked").into()))
}

fn read(
    operation: &Operation,
    state: &ApiState,
    arguments: Vec<String>,
    request: &ApiRequest,
) -> Result<Response, ApiFailure> {
    let output = state.runner.run(operation, arguments, &request.principal)?;
    let (document, next) = match (operation.answer, output.document) {
        (AnswerShape::List(key), Value::Array(list)) => {
            let page = page_of(list, key, &request.values)?;
            (Value::Array(page.elements), page.next)
        }
        (shape, document) => (shaped(shape, document), None),
    };
    let mut response = json_response(StatusCode::OK, &document);
    add_link(&mut response, &request.uri, next.as_deref());
    Ok(with_etag(response, &document, &request.headers))
}

fn change(
    operation: &Operation,
    state: &ApiState,
    arguments: Vec<String>,
    request: &ApiRequest,
) -> Result<Response, ApiFailure> {
    let key = request.headers.get(IDEMPOTENCY_KEY);
    let Some(key) = key else {
        return Ok(respond(
            &carry_out(operation, state, arguments, request),
            false,
        ));
    };
    let key = key
        .to_str()
        .map_err(|_| Problem::usage("the idempotency key is not ASCII"))?;
    let caller = &request.principal;
    let caller = caller.id.as_deref().unwrap_or(match &caller.caller {
        crate::access::ApiCaller::Person => "person",
        crate::access::ApiCaller::Agent(address) => address,
    });
    let fingerprint = serde_json::to_string(&(operation.name, &request.values))
        .map_err(|error| Problem::failed("cannot read the request").caused_by(error))?;
    match state.requests.begin(caller, key, &fingerprint)? {
        KeyedRequest::Repeated(answer) => Ok(respond(&answer, true)),
        KeyedRequest::New(name) => {
            let answer = carry_out(operation, state, arguments, request);
            state.requests.finish(&name, &fingerprint, &answer);
            Ok(respond(&answer, false))
        }
    }
}

/// Runs the command, and records the call.
fn carry_out(
    operation: &Operation,
    state: &ApiState,
    arguments: Vec<String>,
    request: &ApiRequest,
) -> StoredAnswer {
    let ran = state.runner.run(operation, arguments, &request.principal);
    let answer = match ran {
        Ok(output) => StoredAnswer {
            status: match output.exit_code {
                QUEUED => StatusCode::ACCEPTED.as_u16(),
                _ => StatusCode::OK.as_u16(),
            },
            document: shaped(operation.answer, output.document),
        },
        Err(problem) => {
            let failure = ApiFailure::from(problem);
            StoredAnswer {
                status: failure.status.as_u16(),
                document: failure.document(),
            }
        }
    };
    record(operation, state, request, answer.status);
    answer
}

fn respond(answer: &StoredAnswer, is_replayed: bool) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or_default();
    let mut response = json_response(status, &answer.document);
    let headers = response.headers_mut();
    if !status.is_success() {
        let problem = HeaderValue::from_static("application/problem+json");
        headers.insert(CONTENT_TYPE, problem);
    }
    if is_replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn shaped(shape: AnswerShape, document: Value) -> Value {
    match (shape, document) {
        (AnswerShape::Single, Value::Array(mut list)) if list.len() == 1 => list.remove(0),
        (_, document) => document,
    }
}

/// Writes the audit event of a call. The values may be secret and are left out.
fn record(operation: &Operation, state: &ApiState, request: &ApiRequest, status: u16) {
    let town = match state.place.open_for(&request.principal) {
        Ok(town) => town,
        Err(problem) => {
            tracing::warn!("a call is not recorded: {}", problem.line());
            return;
        }
    };
    let event = events::by_api(&town)
        .with("operation", operation.name)
        .with("credential", request.principal.credential.as_str())
        .with(
            "target",
            request.values.get("agent").cloned().unwrap_or_default(),
        )
        .with("status", status);
    Events::of(&town).note(vec![event]);
}
