//! The built-in page: its files, and the login of a device.

use crate::access::{Principal, cookie_name, refuse};
use crate::failure::{ApiFailure, json_response};
use crate::state::ApiState;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use gt_core::Problem;
use gt_town::records::events::{self, Events};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Returns a file of the page.
pub(crate) fn file(path: &str) -> Response {
    let (kind, text) = match path {
        "/page.js" => (
            "text/javascript; charset=utf-8",
            include_str!("page/page.js"),
        ),
        "/page.css" => ("text/css; charset=utf-8", include_str!("page/page.css")),
        _ => ("text/html; charset=utf-8", include_str!("page/page.html")),
    };
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Exchanges the code of a login link for a device: its cookie, which scripts cannot read, and its
/// key, which is not sent to other ports.
pub(crate) fn login(
    state: &Arc<ApiState>,
    values: &Map<String, Value>,
) -> Result<Response, ApiFailure> {
    let text = |name: &str| values.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(device) = state.access.redeem(text("code"), text("name"))? else {
        return Err(refuse(state));
    };
    let town = state.place.open_for_person()?;
    let event = events::by_api(&town)
        .with("operation", "login")
        .with("credential", format!("device {}", device.record.name))
        .with("status", StatusCode::OK.as_u16());
    Events::of(&town).note(vec![event]);
    let document = json!({
        "name": device.record.name,
        "scope": device.record.scope,
        "key": device.key,
        "expires_at": device.record.expires_at.to_string(),
    });
    let lifetime = device
        .record
        .expires_at
        .duration_since(device.record.created_at);
    let cookie = format!(
        "{}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}",
        cookie_name(state),
        device.cookie,
        lifetime.as_secs()
    );
    with_cookie(&document, &cookie)
}

/// Ends the session of a device.
pub(crate) fn logout(state: &ApiState, principal: &Principal) -> Result<Response, ApiFailure> {
    let Some(id) = principal.id.as_deref().filter(|_| principal.is_device) else {
        let problem = Problem::conflict("only a device has a session to end");
        return Err(problem
            .hint("`gt web token revoke NAME` removes a token")
            .into());
    };
    state.access.revoke(id)?;
    let cookie = format!(
        "{}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0",
        cookie_name(state)
    );
    with_cookie(&json!({"ended": true}), &cookie)
}

fn with_cookie(document: &Value, cookie: &str) -> Result<Response, ApiFailure> {
    let mut response = json_response(StatusCode::OK, document);
    let cookie = HeaderValue::from_str(cookie)
        .map_err(|error| Problem::failed("the cookie is malformed").caused_by(error))?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}
