//! The check of Host, Origin and Sec-Fetch-Site, before authentication.
//!
//! A page of another origin in the same browser can send requests to this service, and with DNS
//! rebinding under a name of its own. The Host header must be one of the service's own names, and
//! the Origin header, if there is one, the origin of exactly that name. Requests without an Origin
//! (images, scripts, navigations) are refused by `Sec-Fetch-Site`, which all current browsers send;
//! a device must also send its key in a header, which no other page can ([`crate::access`]).

use crate::failure::ApiFailure;
use crate::serve::ApiConnection;
use crate::state::ApiState;
use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use gt_core::Problem;
use std::net::SocketAddr;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Whether a request comes from a page of this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    /// A page of this service.
    Own,
    /// Not from a page.
    None,
}

/// Fails for a request from a page of another origin, or under a foreign name.
pub(crate) fn check(
    state: &ApiState,
    connection: &ApiConnection,
    parts: &Parts,
) -> Result<RequestOrigin, ApiFailure> {
    let host = single(&parts.headers, &HOST)?.or_else(|| parts.uri.host());
    let host = host.unwrap_or_default();
    let is_own_name = match connection {
        ApiConnection::Unix(_) => host == "localhost",
        ApiConnection::Tcp(_) => state.listen.is_some_and(|at| is_name_of(host, at)),
    };
    if !is_own_name {
        let problem = Problem::denied("the Host of this request is not a name of this service");
        return Err(ApiFailure::new(StatusCode::MISDIRECTED_REQUEST, problem));
    }
    let foreign = || ApiFailure::forbidden(Problem::denied("this request is from another origin"));
    let origin = single(&parts.headers, &ORIGIN)?;
    if let Some(origin) = origin {
        let is_own = origin.strip_prefix("http://") == Some(host);
        // No browser opens a Unix socket.
        let is_tcp = matches!(connection, ApiConnection::Tcp(_));
        return match is_own && is_tcp {
            true => Ok(RequestOrigin::Own),
            false => Err(foreign()),
        };
    }
    match single(&parts.headers, &FETCH_SITE)? {
        None => Ok(RequestOrigin::None),
        Some("same-origin") => Ok(RequestOrigin::Own),
        // An address that the person typed.
        Some("none") if parts.method.is_safe() => Ok(RequestOrigin::None),
        // A link to the page itself.
        Some(_) if is_navigation(parts) => Ok(RequestOrigin::None),
        Some(_) => Err(foreign()),
    }
}

fn is_navigation(parts: &Parts) -> bool {
    let mode = parts.headers.get(FETCH_MODE);
    parts.method.is_safe() && parts.uri.path() == "/" && mode.is_some_and(|mode| mode == "navigate")
}

/// Returns whether a Host header names this address.
fn is_name_of(host: &str, at: SocketAddr) -> bool {
    let port = at.port();
    host == at.to_string() || host == format!("localhost:{port}")
}

/// Returns the value of a header that may occur once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiFailure> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    let text = first.map(|value| value.to_str());
    match (text, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(text)), None) => Ok(Some(text)),
        _ => Err(ApiFailure::from(Problem::usage(format!(
            "the header {name} is malformed"
        )))),
    }
}
