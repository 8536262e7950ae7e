//! The router: one route for each row of the table.
//!
//! A route exists only through its row, and [`handle`] is the only handler: no route can leave out
//! a check.

use crate::access::{self, ApiCaller, Principal};
use crate::failure::{ApiFailure, json_response};
use crate::gate::{self, RequestOrigin};
use crate::paging::with_etag;
use crate::serve::{ApiConnection, no_connection};
use crate::state::ApiState;
use crate::{command, events, openapi, page};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, FromRequestParts, RawPathParams, Request};
use axum::http::header::{self, HeaderMap};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use gt_core::Problem;
use gt_core::operation::{Action, HttpMethod, Operation, ParameterPlace, TABLE};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Maximum size of a body, in bytes.
const LARGEST_BODY: usize = 512 * 1024;

/// Headers of every response. The page loads only its own files, and no other page may embed it.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-cache"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Returns the router of the service.
pub fn app(state: Arc<ApiState>) -> Router {
    let mut router = Router::new();
    for operation in TABLE {
        let state = Arc::clone(&state);
        let handler = move |request: Request| handle(operation, Arc::clone(&state), request);
        router = router.route(operation.path, on(filter(operation.method), handler));
    }
    let unknown = {
        let state = Arc::clone(&state);
        move |request: Request| refuse_unknown(Arc::clone(&state), request, StatusCode::NOT_FOUND)
    };
    let other_method = move |request: Request| {
        refuse_unknown(Arc::clone(&state), request, StatusCode::METHOD_NOT_ALLOWED)
    };
    router
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
}

fn filter(method: HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Patch => MethodFilter::PATCH,
        HttpMethod::Delete => MethodFilter::DELETE,
    }
}

/// A request that has passed all checks.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) principal: Principal,
    pub(crate) values: Map<String, Value>,
    pub(crate) headers: HeaderMap,
    pub(crate) uri: Uri,
}

async fn handle(operation: &'static Operation, state: Arc<ApiState>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let answered = answer(operation, &state, &mut parts, body).await;
    secured(answered.unwrap_or_else(ApiFailure::into_response))
}

async fn refuse_unknown(state: Arc<ApiState>, request: Request, status: StatusCode) -> Response {
    let (parts, _) = request.into_parts();
    let check = || -> Result<(), ApiFailure> {
        let connection = connection_of(&parts)?;
        let origin = gate::check(&state, connection, &parts)?;
        access::authenticate(&state, connection, origin, &parts).map(drop)
    };
    let failure = check().err().unwrap_or_else(|| {
        let path = parts.uri.path();
        let problem = match status {
            StatusCode::NOT_FOUND => Problem::not_found(format!("there is no route {path}")),
            _ => Problem::usage(format!("{path} has no method {}", parts.method)),
        };
        ApiFailure::new(
            status,
            problem.hint("GET /api/v1/openapi.json lists the routes"),
        )
    });
    secured(failure.into_response())
}

async fn answer(
    operation: &'static Operation,
    state: &Arc<ApiState>,
    parts: &mut Parts,
    body: Body,
) -> Result<Response, ApiFailure> {
    let connection = connection_of(parts)?.clone();
    let origin = gate::check(state, &connection, parts)?;
    let Some(scope) = operation.scope else {
        return answer_public(operation, state, origin, parts, body).await;
    };
    let principal = access::authenticate(state, &connection, origin, parts)?;
    if !state.limits.take(&principal.credential, Instant::now()) {
        return Err(ApiFailure::too_many("too many requests"));
    }
    if principal.scope < scope {
        let problem = Problem::denied(format!(
            "{} has the scope {}; {} needs {scope}",
            principal.credential, principal.scope, operation.name
        ));
        return Err(ApiFailure::forbidden(problem));
    }
    let values = values_of(operation, parts, body).await?;
    operation.check(&values)?;
    let request = ApiRequest {
        principal,
        values,
        headers: parts.headers.clone(),
        uri: parts.uri.clone(),
    };
    let document = match operation.action {
        Action::Command(_) => return command::run(operation, state, request).await,
        Action::EventStream => return events::stream(state, &request),
        Action::WebSocket => return events::websocket(state, request, parts).await,
        Action::EventPage => events::page(state, &request).await?,
        Action::OpenApi => openapi::document(env!("CARGO_PKG_VERSION")),
        Action::Caller => caller_document(&request.principal),
        Action::Logout => return page::logout(state, &request.principal),
        // Routes without a scope.
        Action::Login | Action::PageFile => return Err(access::refuse(state)),
    };
    let response = json_response(StatusCode::OK, &document);
    Ok(with_etag(response, &document, &request.headers))
}

async fn answer_public(
    operation: &'static Operation,
    state: &Arc<ApiState>,
    origin: RequestOrigin,
    parts: &mut Parts,
    body: Body,
) -> Result<Response, ApiFailure> {
    if !state.limits.take("", Instant::now()) {
        return Err(ApiFailure::too_many("too many requests"));
    }
    match operation.action {
        Action::PageFile => Ok(page::file(operation.path)),
        Action::Login if origin == RequestOrigin::Own => {
            let values = values_of(operation, parts, body).await?;
            operation.check(&values)?;
            page::login(state, &values)
        }
        _ => {
            let problem = Problem::denied("only the page of this service may log in");
            Err(ApiFailure::forbidden(problem))
        }
    }
}

fn caller_document(principal: &Principal) -> Value {
    let (kind, agent) = match &principal.caller {
        ApiCaller::Person => ("person", None),
        ApiCaller::Agent(address) => ("agent", Some(address)),
    };
    let mut document = json!({
        "kind": kind,
        "scope": principal.scope,
        "credential": principal.credential,
    });
    if let Some(agent) = agent {
        document["agent"] = json!(agent);
    }
    document
}

fn connection_of(parts: &Parts) -> Result<&ApiConnection, ApiFailure> {
    let connection = parts.extensions.get::<ConnectInfo<ApiConnection>>();
    connection
        .map(|ConnectInfo(connection)| connection)
        .ok_or_else(no_connection)
}

/// Returns the values of all parameters: from the path, the query and the body.
async fn values_of(
    operation: &Operation,
    parts: &mut Parts,
    body: Body,
) -> Result<Map<String, Value>, ApiFailure> {
    let mut values = Map::new();
    let malformed = |what: &str| ApiFailure::from(Problem::usage(format!("{what} is malformed")));
    let value_of = |place, name: &str, text: &str| {
        let mut parameters = operation.parameters.iter();
        let found = parameters.find(|one| one.place == place && one.name == name);
        found.map_or_else(|| Value::from(text), |one| one.value_of(text))
    };
    let path = RawPathParams::from_request_parts(parts, &()).await;
    for (name, text) in &path.map_err(|_| malformed("the path"))? {
        values.insert(name.to_owned(), value_of(ParameterPlace::Path, name, text));
    }
    let query: Vec<(String, String)> = axum::extract::Query::try_from_uri(&parts.uri)
        .map_err(|_| malformed("the query"))?
        .0;
    for (name, text) in query {
        let value = value_of(ParameterPlace::Query, &name, &text);
        insert_new(&mut values, name, value)?;
    }
    let text = to_bytes(body, LARGEST_BODY).await.map_err(|_| {
        let problem = Problem::usage(format!("a body has at most {LARGEST_BODY} bytes"));
        ApiFailure::new(StatusCode::PAYLOAD_TOO_LARGE, problem)
    })?;
    if text.is_empty() {
        return Ok(values);
    }
    // A page of another origin can send other types without asking first.
    let kind = parts.headers.get(header::CONTENT_TYPE);
    // A type that is not text is not JSON.
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let problem = Problem::usage("the body must be application/json");
        return Err(ApiFailure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
    }
    let document: Value = serde_json::from_slice(&text)
        .map_err(|error| Problem::usage("the body is not JSON").caused_by(error))?;
    let Value::Object(fields) = document else {
        return Err(Problem::usage("the body is not a JSON object").into());
    };
    for (name, value) in fields {
        let is_of_body = |one: &gt_core::operation::OperationParameter| {
            one.name == name && one.place == ParameterPlace::Body
        };
        // The check refuses an unknown parameter with a hint.
        if operation.parameters.iter().any(|one| one.name == name)
            && !operation.parameters.iter().any(is_of_body)
        {
            return Err(Problem::usage(format!("{name:?} does not belong to the body")).into());
        }
        insert_new(&mut values, name, value)?;
    }
    Ok(values)
}

fn insert_new(
    values: &mut Map<String, Value>,
    name: String,
    value: Value,
) -> Result<(), ApiFailure> {
    match values.contains_key(&name) {
        true => Err(Problem::usage(format!("{name:?} is given twice")).into()),
        false => {
            values.insert(name, value);
            Ok(())
        }
    }
}

fn secured(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}
