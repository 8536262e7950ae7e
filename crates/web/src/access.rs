//! Authentication: who sends a request, and how far its scope goes.
//!
//! On the Unix socket the kernel names the process of the caller; its process tree tells whether it
//! is an agent. On TCP a caller needs a token, or the cookie and the key of a device. Cookies are
//! sent to every port of a host, so a cookie alone proves nothing: the key is kept by the page's own
//! origin.

use crate::failure::ApiFailure;
use crate::gate::RequestOrigin;
use crate::serve::{ApiConnection, PeerIdentity};
use crate::state::ApiState;
use axum::http::HeaderName;
use axum::http::header::{AUTHORIZATION, COOKIE, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use axum::http::request::Parts;
use gt_core::Problem;
use gt_core::operation::AccessScope;
use gt_town::Surroundings;
use std::time::Instant;

/// The header with the key of a device.
const DEVICE_KEY: HeaderName = HeaderName::from_static("gt-device");
/// The subprotocol of the WebSocket, and the prefix of the one that holds the key of a device:
/// a page cannot set headers of a WebSocket.
pub(crate) const SUBPROTOCOL: &str = "gt";
const KEY_PROTOCOL: &str = "gt-device.";

/// On whose behalf an operation runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiCaller {
    /// The person who runs the town.
    Person,
    /// An agent, by address. Its capabilities apply.
    Agent(String),
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub caller: ApiCaller,
    pub scope: AccessScope,
    /// Proof of the identity, for the audit: `token ci`, `device phone`, `process 12`.
    pub credential: String,
    /// The id of the token or device.
    pub(crate) id: Option<String>,
    pub(crate) is_device: bool,
}

impl Principal {
    /// Returns the value of `GT_CALLER` for this caller.
    pub fn caller_name(&self, around: &Surroundings) -> String {
        match &self.caller {
            ApiCaller::Person => around.login_name().to_owned(),
            ApiCaller::Agent(address) => address.clone(),
        }
    }
}

/// Returns the caller of a request.
pub(crate) fn authenticate(
    state: &ApiState,
    connection: &ApiConnection,
    origin: RequestOrigin,
    parts: &Parts,
) -> Result<Principal, ApiFailure> {
    match connection {
        ApiConnection::Unix(PeerIdentity::Person { pid }) => {
            Ok(of_process(ApiCaller::Person, *pid))
        }
        ApiConnection::Unix(PeerIdentity::Agent { address, pid }) => {
            Ok(of_process(ApiCaller::Agent(address.clone()), *pid))
        }
        ApiConnection::Unix(PeerIdentity::Unknown(problem)) => {
            Err(ApiFailure::forbidden(problem.clone()))
        }
        ApiConnection::Tcp(_) => by_secret(state, origin, parts),
    }
}

fn of_process(caller: ApiCaller, pid: u32) -> Principal {
    Principal {
        caller,
        scope: AccessScope::Admin,
        credential: format!("process {pid}"),
        id: None,
        is_device: false,
    }
}

fn by_secret(
    state: &ApiState,
    origin: RequestOrigin,
    parts: &Parts,
) -> Result<Principal, ApiFailure> {
    // A header that is not text proves nothing.
    let text = |name: &HeaderName| parts.headers.get(name)?.to_str().ok();
    let found = match parts.headers.contains_key(AUTHORIZATION) {
        true => {
            let token = text(&AUTHORIZATION).and_then(|text| text.strip_prefix("Bearer "));
            let token = token.map(|token| state.access.token(token.trim()));
            let token = token.transpose()?.flatten();
            token.map(|token| Principal {
                caller: ApiCaller::Person,
                scope: token.scope,
                credential: format!("token {}", token.name),
                id: Some(token.id),
                is_device: false,
            })
        }
        false => {
            let key = text(&DEVICE_KEY).or_else(|| key_in_protocols(text(&SEC_WEBSOCKET_PROTOCOL)));
            let cookie = cookie_of(state, text(&COOKIE));
            let device = cookie.zip(key);
            let device = device.map(|(cookie, key)| state.access.device(cookie, key));
            let device = device.transpose()?.flatten();
            device.map(|device| Principal {
                caller: ApiCaller::Person,
                scope: device.scope,
                credential: format!("device {}", device.name),
                id: Some(device.id),
                is_device: true,
            })
        }
    };
    let Some(principal) = found else {
        return Err(refuse(state));
    };
    // A browser sends an Origin with each request that could change something.
    let needs_origin = !parts.method.is_safe() || parts.headers.contains_key(UPGRADE);
    if principal.is_device && needs_origin && origin != RequestOrigin::Own {
        let problem = Problem::denied("a device sends this request only from its own page");
        return Err(ApiFailure::forbidden(problem));
    }
    Ok(principal)
}

/// Returns the refusal of a request without valid credentials.
pub(crate) fn refuse(state: &ApiState) -> ApiFailure {
    match state.limits.fail(Instant::now()) {
        true => ApiFailure::too_many("too many requests without a valid token"),
        false => ApiFailure::unauthenticated("this request has no valid token or device"),
    }
}

fn key_in_protocols(header: Option<&str>) -> Option<&str> {
    let mut protocols = header?.split(',').map(str::trim);
    protocols.find_map(|protocol| protocol.strip_prefix(KEY_PROTOCOL))
}

/// Returns the name of the cookie. Browsers share cookies between the ports of a host.
pub(crate) fn cookie_name(state: &ApiState) -> String {
    let port = state.listen.map_or(0, |at| at.port());
    format!("gt_device_{port}")
}

fn cookie_of<'a>(state: &ApiState, header: Option<&'a str>) -> Option<&'a str> {
    let name = cookie_name(state);
    let mut cookies = header?.split(';').map(str::trim);
    cookies.find_map(|cookie| cookie.strip_prefix(name.as_str())?.strip_prefix('='))
}
