//! Failures as problem details (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use gt_core::{Problem, ProblemKind};
use serde_json::{Value, json};

/// A problem with its HTTP status.
#[derive(Clone, Debug)]
pub(crate) struct ApiFailure {
    pub(crate) status: StatusCode,
    pub(crate) problem: Problem,
    header: Option<(HeaderName, HeaderValue)>,
}

impl From<Problem> for ApiFailure {
    fn from(problem: Problem) -> Self {
        let status = match problem.kind() {
            ProblemKind::Usage => StatusCode::BAD_REQUEST,
            ProblemKind::Denied => StatusCode::FORBIDDEN,
            ProblemKind::NotFound => StatusCode::NOT_FOUND,
            ProblemKind::Conflict
            | ProblemKind::Running
            | ProblemKind::Queued
            | ProblemKind::Unconfirmed => StatusCode::CONFLICT,
            ProblemKind::Environment => StatusCode::SERVICE_UNAVAILABLE,
            ProblemKind::Failed | ProblemKind::InitFailed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, problem)
    }
}

impl ApiFailure {
    pub(crate) fn new(status: StatusCode, problem: Problem) -> Self {
        ApiFailure {
            status,
            problem,
            header: None,
        }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    /// The caller has not proved who it is.
    pub(crate) fn unauthenticated(message: &str) -> Self {
        let problem = Problem::denied(message).hint(
            "send a token as `Authorization: Bearer TOKEN`; `gt web token create NAME` makes one",
        );
        Self::new(StatusCode::UNAUTHORIZED, problem).with(header::WWW_AUTHENTICATE, "Bearer")
    }

    pub(crate) fn forbidden(problem: Problem) -> Self {
        Self::new(StatusCode::FORBIDDEN, problem)
    }

    pub(crate) fn too_many(message: &str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, Problem::denied(message))
            .with(header::RETRY_AFTER, "60")
    }

    pub(crate) fn document(&self) -> Value {
        let kind = self.problem.kind().as_str();
        json!({
            "type": format!("urn:gt:problem:{kind}"),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.problem.message(),
            "kind": kind,
            "causes": self.problem.causes(),
            "hints": self.problem.hints(),
        })
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = json_response(self.status, &self.document());
        let headers = response.headers_mut();
        let problem = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem);
        headers.extend(self.header);
        response
    }
}

/// Returns a response with a JSON document.
pub(crate) fn json_response(status: StatusCode, document: &Value) -> Response {
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
