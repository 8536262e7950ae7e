//! Live events: pages, server-sent events, and the WebSocket.
//!
//! All three read the log by the numbers of its lines. A stream reads a page, sends it, and waits
//! until the log grows; a slow client delays only its own stream, and nothing is buffered for it.

use crate::access::SUBPROTOCOL;
use crate::app::ApiRequest;
use crate::failure::ApiFailure;
use crate::paging::limit_of;
use crate::state::ApiState;
use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderName;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use gt_core::Problem;
use gt_core::operation::{Operation, TABLE};
use gt_town::records::events::{EventPage, EventQuery, Events};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Events that a stream reads at once.
const CHUNK: usize = 200;
/// Interval of pings, and of the check that a token is still valid.
const PING: Duration = Duration::from_secs(20);
/// Maximum time in which a client takes a message.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a message from a client.
const LARGEST_MESSAGE: usize = 4096;

fn query_of(request: &ApiRequest) -> EventQuery {
    let text = |name: &str| request.values.get(name).and_then(Value::as_str);
    let kinds = text("type").into_iter().flat_map(|kinds| kinds.split(','));
    EventQuery {
        kinds: kinds
            .filter(|kind| !kind.is_empty())
            .map(str::to_owned)
            .collect(),
        about: text("about").map(str::to_owned).into_iter().collect(),
        ..EventQuery::default()
    }
}

fn after_of(request: &ApiRequest) -> Option<u64> {
    request.values.get("after").and_then(Value::as_u64)
}

/// Returns a page of events.
pub(crate) async fn page(state: &Arc<ApiState>, request: &ApiRequest) -> Result<Value, ApiFailure> {
    let (query, after, limit) = (
        query_of(request),
        after_of(request),
        limit_of(&request.values),
    );
    let page = read_page(Arc::clone(state), query, after, limit).await?;
    let page = serde_json::to_value(page)
        .map_err(|error| Problem::failed("cannot write the events").caused_by(error))?;
    Ok(page)
}

async fn read_page(
    state: Arc<ApiState>,
    query: EventQuery,
    after: Option<u64>,
    limit: usize,
) -> Result<EventPage, Problem> {
    let read = move || Events::of(&state.place.open()?).page(after, limit, &query);
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|_| Err(Problem::failed("the log cannot be read")))
}

/// A reader of the log that waits for new events.
#[derive(Debug)]
struct EventFeed {
    state: Arc<ApiState>,
    query: EventQuery,
    grown: watch::Receiver<u64>,
    /// The number of the last event that was read; `None` before the first read.
    cursor: Option<u64>,
    /// Whether the log may have unread events.
    has_more: bool,
}

impl EventFeed {
    fn new(state: &Arc<ApiState>, request: &ApiRequest, after: Option<u64>) -> Self {
        EventFeed {
            grown: state.growth(),
            state: Arc::clone(state),
            query: query_of(request),
            cursor: after,
            has_more: true,
        }
    }

    /// Returns the cursor at which the stream begins: without one, it begins with the next event.
    async fn begin(&mut self) -> Result<u64, Problem> {
        let cursor = match self.cursor {
            Some(cursor) => cursor,
            None => self.read(None, 0).await?.next,
        };
        self.cursor = Some(cursor);
        Ok(cursor)
    }

    /// Returns the next events; waits for some. A caller that stops waiting loses nothing.
    async fn next(&mut self) -> Result<EventPage, Problem> {
        loop {
            if !self.has_more && self.grown.changed().await.is_err() {
                return Err(Problem::failed("the service ends"));
            }
            self.grown.borrow_and_update();
            // Until the page is read.
            self.has_more = true;
            let cursor = self.begin().await?;
            let page = self.read(Some(cursor), CHUNK).await?;
            self.cursor = Some(page.next);
            self.has_more = page.more;
            if !page.events.is_empty() || page.gap.is_some() {
                return Ok(page);
            }
        }
    }

    async fn read(&self, after: Option<u64>, limit: usize) -> Result<EventPage, Problem> {
        read_page(Arc::clone(&self.state), self.query.clone(), after, limit).await
    }

    /// Returns whether the caller's token or device is no longer valid.
    async fn is_revoked(&self, id: Option<&str>) -> bool {
        let Some(id) = id.map(str::to_owned) else {
            return false;
        };
        let state = Arc::clone(&self.state);
        let read = tokio::task::spawn_blocking(move || state.access.has(&id)).await;
        !matches!(read, Ok(Ok(true)))
    }
}

/// Returns the state of the agents, for a client that has missed events.
async fn snapshot(state: &Arc<ApiState>, request: &ApiRequest) -> Value {
    let row: Option<&'static Operation> = TABLE.iter().find(|row| row.name == "agents_list");
    let (state, principal) = (Arc::clone(state), request.principal.clone());
    let read = move || {
        let row = row?;
        // Without a snapshot the client reads the agents itself.
        let arguments = row.arguments(&serde_json::Map::new()).ok()?;
        let output = state.runner.run(row, arguments, &principal).ok()?;
        Some(json!({"agents": output.document}))
    };
    let read = tokio::task::spawn_blocking(read).await;
    // A panic is reported by its hook; the client reads the agents itself.
    read.ok().flatten().unwrap_or_default()
}

/// Sends events as server-sent events.
pub(crate) fn stream(state: &Arc<ApiState>, request: &ApiRequest) -> Result<Response, ApiFailure> {
    let last = request.headers.get(LAST_EVENT_ID);
    // An id that is not ours is none: the stream begins with new events.
    let last = last.and_then(|last| last.to_str().ok()?.parse().ok());
    let feed = EventFeed::new(state, request, last.or_else(|| after_of(request)));
    let id = request.principal.id.clone();
    let begin = (feed, VecDeque::<SseEvent>::new(), id, false);
    let events = stream::unfold(begin, |(mut feed, mut ready, id, has_begun)| async move {
        if !has_begun {
            // The failure is logged.
            let cursor = feed.begin().await.inspect_err(warn_of_end).ok()?;
            let hello = SseEvent::default().event("hello").id(cursor.to_string());
            // Serialising a JSON value cannot fail.
            ready.push_back(hello.json_data(json!({"cursor": cursor})).ok()?);
        }
        let mut check = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let state = Arc::clone(&feed.state);
        while ready.is_empty() {
            let page = tokio::select! {
                page = feed.next() => page.inspect_err(warn_of_end).ok()?, // logged
                () = state.closed() => return None,
                _ = check.tick() => match feed.is_revoked(id.as_deref()).await {
                    true => return None,
                    false => continue,
                },
            };
            if let Some(gap) = &page.gap {
                // Serialising numbers and texts cannot fail.
                ready.push_back(SseEvent::default().event("gap").json_data(gap).ok()?);
            }
            for event in &page.events {
                let id = event.seq.unwrap_or_default().to_string();
                let message = SseEvent::default().event("event").id(id);
                // Serialising an event cannot fail.
                ready.push_back(message.json_data(event).ok()?);
            }
        }
        let next = ready.pop_front()?;
        Some((Ok::<SseEvent, Infallible>(next), (feed, ready, id, true)))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// Logs the failure that ends a stream of events.
fn warn_of_end(problem: &Problem) {
    tracing::warn!("a stream of events ends: {}", problem.line());
}

/// Sends events over a WebSocket.
pub(crate) async fn websocket(
    state: &Arc<ApiState>,
    request: ApiRequest,
    parts: &mut Parts,
) -> Result<Response, ApiFailure> {
    let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).await;
    let upgrade = upgrade.map_err(|rejection| {
        let problem = Problem::usage("this route is a WebSocket").cause(rejection.to_string());
        ApiFailure::new(StatusCode::BAD_REQUEST, problem)
    })?;
    let state = Arc::clone(state);
    let upgrade = upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(LARGEST_MESSAGE)
        .max_frame_size(LARGEST_MESSAGE);
    Ok(upgrade.on_upgrade(move |socket| converse(socket, state, request)))
}

/// Sends events until the client goes away, its token is revoked, or the service ends.
async fn converse(mut socket: WebSocket, state: Arc<ApiState>, request: ApiRequest) {
    let mut feed = EventFeed::new(&state, &request, after_of(&request));
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let hello = match feed.begin().await {
        Ok(cursor) => json!({"type": "hello", "cursor": cursor}),
        Err(problem) => {
            warn_of_end(&problem);
            return;
        }
    };
    let hello = Message::Text(hello.to_string().into());
    if socket.send(hello).await.is_err() {
        return;
    }
    loop {
        let messages = tokio::select! {
            page = feed.next() => match page {
                Ok(page) => messages_of(&page, &state, &request).await,
                Err(problem) => {
                    warn_of_end(&problem);
                    break;
                }
            },
            message = socket.recv() => match message {
                // The client has nothing to say; axum answers its pings.
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            _ = ping.tick() => match feed.is_revoked(request.principal.id.as_deref()).await {
                true => break,
                false => vec![Message::Ping(Bytes::new())],
            },
            () = state.closed() => break,
        };
        for message in messages {
            let sent = tokio::time::timeout(SEND_TIMEOUT, socket.send(message)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    }
    // The client may be gone already.
    let _ = tokio::time::timeout(SEND_TIMEOUT, socket.send(Message::Close(None))).await;
}

async fn messages_of(
    page: &EventPage,
    state: &Arc<ApiState>,
    request: &ApiRequest,
) -> Vec<Message> {
    let mut messages = Vec::new();
    if let Some(gap) = &page.gap {
        let snapshot = snapshot(state, request).await;
        messages.push(json!({"type": "gap", "gap": gap, "snapshot": snapshot}));
    }
    let events = page.events.iter();
    messages.extend(events.map(|event| json!({"type": "event", "event": event})));
    let messages = messages.into_iter();
    messages
        .map(|message| Message::Text(message.to_string().into()))
        .collect()
}
