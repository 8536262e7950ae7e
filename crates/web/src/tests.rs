//! Every route of the table, with all kinds of callers.

use crate::{
    ApiConnection, ApiState, OperationOutput, OperationRunner, PeerIdentity, Principal, TownPlace,
    app,
};
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use gt_core::Problem;
use gt_core::operation::{AccessScope, Action, Operation, ParameterKind, ParameterPlace, TABLE};
use gt_town::base::surroundings::Login;
use gt_town::records::events::{EventQuery, Events};
use gt_town::{Surroundings, Town};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use tower::ServiceExt;

const LISTEN: &str = "127.0.0.1:7420";
const OWN: &str = "http://127.0.0.1:7420";
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The calls of a runner that carries out nothing.
type Calls = Arc<Mutex<Vec<(String, Vec<String>, Principal)>>>;

#[derive(Debug)]
struct RecordingRunner {
    calls: Calls,
    answer: Result<Value, Problem>,
}

impl OperationRunner for RecordingRunner {
    fn run(
        &self,
        operation: &Operation,
        arguments: Vec<String>,
        principal: &Principal,
    ) -> Result<OperationOutput, Problem> {
        let call = (operation.name.to_owned(), arguments, principal.clone());
        self.calls.lock().unwrap().push(call);
        let document = self.answer.clone()?;
        Ok(OperationOutput {
            exit_code: 0,
            document,
        })
    }
}

/// A town with a service. Each request gets a service of its own, so that limits do not add up.
struct Stage {
    _folder: tempfile::TempDir,
    place: TownPlace,
    calls: Calls,
    answer: Result<Value, Problem>,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        Town::init(&root, None, "/tmp/no-server", "demo").unwrap();
        let around = Surroundings {
            login: Login::named("ada"),
            current_dir: root.clone(),
            ..Surroundings::default()
        };
        Stage {
            _folder: folder,
            place: TownPlace { root, around },
            calls: Calls::default(),
            answer: Ok(json!([])),
        }
    }

    fn state(&self) -> Arc<ApiState> {
        let runner = RecordingRunner {
            calls: Arc::clone(&self.calls),
            answer: self.answer.clone(),
        };
        let listen = Some(LISTEN.parse().unwrap());
        Arc::new(ApiState::new(self.place.clone(), Box::new(runner), listen).unwrap())
    }

    fn token(&self, name: &str, scope: AccessScope, lifetime: SignedDuration) -> String {
        let access = &self.state().access;
        access.create_token(name, scope, lifetime).unwrap().1
    }

    async fn send(&self, call: &Call<'_>) -> Response<Body> {
        app(self.state()).oneshot(call.request()).await.unwrap()
    }

    async fn status(&self, call: &Call<'_>) -> u16 {
        self.send(call).await.status().as_u16()
    }

    fn ran(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

/// A request for an operation.
#[derive(Clone)]
struct Call<'a> {
    operation: &'a Operation,
    connection: ApiConnection,
    host: &'a str,
    headers: Vec<(&'a str, String)>,
    values: Map<String, Value>,
}

impl<'a> Call<'a> {
    fn of(operation: &'a Operation) -> Self {
        Call {
            operation,
            connection: ApiConnection::Tcp("127.0.0.1:50000".parse().unwrap()),
            host: LISTEN,
            headers: Vec::new(),
            values: values(operation),
        }
    }

    fn with(mut self, name: &'a str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn bearer(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    fn request(&self) -> Request<Body> {
        let mut path = self.operation.path.to_owned();
        let mut body = Map::new();
        for parameter in self.operation.parameters {
            let Some(value) = self.values.get(parameter.name) else {
                continue;
            };
            match parameter.place {
                ParameterPlace::Path => {
                    let text = value.as_str().unwrap().replace('/', "%2F");
                    path = path.replace(&format!("{{{}}}", parameter.name), &text);
                }
                ParameterPlace::Query => {
                    let sign = if path.contains('?') { '&' } else { '?' };
                    let value = value.to_string();
                    path += &format!("{sign}{}={}", parameter.name, value.trim_matches('"'));
                }
                ParameterPlace::Body => {
                    body.insert(parameter.name.to_owned(), value.clone());
                }
            }
        }
        let mut request = Request::builder()
            .method(self.operation.method.as_str())
            .uri(path)
            .header("host", self.host)
            .extension(ConnectInfo(self.connection.clone()));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if body.is_empty() {
            return request.body(Body::empty()).unwrap();
        }
        let request = request.header("content-type", "application/json");
        request
            .body(Body::from(Value::Object(body).to_string()))
            .unwrap()
    }
}

/// Returns a value for each required parameter.
fn values(operation: &Operation) -> Map<String, Value> {
    let value = |kind: ParameterKind| match kind {
        ParameterKind::Text => json!("lab/crew/max"),
        ParameterKind::Texts => json!(["a"]),
        ParameterKind::Boolean => json!(true),
        ParameterKind::Integer { min, .. } => json!(min),
        ParameterKind::Choice(words) => json!(words[0]),
    };
    let needed = operation.parameters.iter().filter(|one| one.is_required);
    needed
        .map(|one| (one.name.to_owned(), value(one.kind)))
        .collect()
}

fn row(name: &str) -> &'static Operation {
    TABLE.iter().find(|row| row.name == name).unwrap()
}

async fn document(response: Response<Body>) -> Value {
    let text = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn is_page(row: &Operation) -> bool {
    row.action == Action::PageFile
}

#[tokio::test]
async fn every_route_refuses_callers_without_valid_credentials() {
    let stage = Stage::new();
    let expired = stage.token("expired", AccessScope::Admin, SignedDuration::ZERO);
    let revoked = stage.token("revoked", AccessScope::Admin, HOUR);
    stage.state().access.revoke("revoked").unwrap();
    let valid = stage.token("valid", AccessScope::Admin, HOUR);
    let cut = &valid[..valid.len() - 2];
    let code = stage
        .state()
        .access
        .create_login(AccessScope::Admin)
        .unwrap();
    let device = stage
        .state()
        .access
        .redeem(&code, "phone")
        .unwrap()
        .unwrap();
    let cookie = format!("gt_device_7420={}", device.cookie);
    for row in TABLE.iter().filter(|row| row.scope.is_some()) {
        let call = || Call::of(row);
        let refused = [
            ("nothing", call()),
            ("a wrong token", call().bearer("gt_00_00")),
            ("a token with a wrong end", call().bearer(cut)),
            ("an expired token", call().bearer(&expired)),
            ("a revoked token", call().bearer(&revoked)),
            (
                "another scheme",
                call().with("authorization", &format!("Basic {valid}")),
            ),
            (
                "a cookie without its key",
                call().with("cookie", &cookie).with("origin", OWN),
            ),
            (
                "a key without its cookie",
                call().with("gt-device", &device.key).with("origin", OWN),
            ),
            (
                "the cookie of another port",
                call()
                    .with("cookie", &cookie.replace("7420", "7421"))
                    .with("gt-device", &device.key)
                    .with("origin", OWN),
            ),
            (
                "a wrong token beside a valid device",
                call()
                    .bearer("gt_00_00")
                    .with("cookie", &cookie)
                    .with("gt-device", &device.key)
                    .with("origin", OWN),
            ),
        ];
        for (what, call) in refused {
            assert_eq!(stage.status(&call).await, 401, "{} with {what}", row.name);
        }
    }
    assert_eq!(stage.ran(), 0);
}

#[tokio::test]
async fn every_route_refuses_foreign_hosts_and_origins() {
    let stage = Stage::new();
    let token = stage.token("admin", AccessScope::Admin, HOUR);
    for row in TABLE {
        let call = || Call::of(row).bearer(&token);
        for host in [
            "evil.example",
            "evil.example:7420",
            "127.0.0.1:7421",
            "127.0.0.1",
            "",
        ] {
            let call = Call { host, ..call() };
            assert_eq!(stage.status(&call).await, 421, "{} at {host:?}", row.name);
        }
        for origin in [
            "http://evil.example",
            "http://127.0.0.1:7421",
            "https://127.0.0.1:7420",
            "http://localhost:7420",
            "null",
            "",
        ] {
            let call = call().with("origin", origin);
            assert_eq!(
                stage.status(&call).await,
                403,
                "{} from {origin:?}",
                row.name
            );
        }
        for site in ["cross-site", "same-site", "other"] {
            let call = call().with("sec-fetch-site", site);
            assert_eq!(stage.status(&call).await, 403, "{} from {site}", row.name);
        }
        let twice = call()
            .with("origin", OWN)
            .with("origin", "http://evil.example");
        assert_eq!(stage.status(&twice).await, 400, "{}", row.name);
    }
    assert_eq!(stage.ran(), 0);
}

#[tokio::test]
async fn every_route_has_a_scope() {
    let stage = Stage::new();
    for scope in AccessScope::ALL {
        let token = stage.token(scope.as_str(), scope, HOUR);
        for row in TABLE.iter().filter(|row| row.action != Action::Login) {
            let before = stage.ran();
            let response = stage.send(&Call::of(row).bearer(&token)).await;
            let is_allowed = row.scope.is_none_or(|needed| scope >= needed);
            let is_refused = response.status() == StatusCode::FORBIDDEN;
            assert_eq!(
                is_refused, !is_allowed,
                "{} with {scope}: {response:?}",
                row.name
            );
            let has_run = stage.ran() > before;
            let runs = matches!(row.action, Action::Command(_));
            assert_eq!(has_run, is_allowed && runs, "{} with {scope}", row.name);
            let policy = &response.headers()["content-security-policy"];
            assert!(policy.to_str().unwrap().starts_with("default-src 'none'"));
        }
    }
}

#[tokio::test]
async fn a_device_changes_something_only_from_its_own_page() {
    let stage = Stage::new();
    let code = stage
        .state()
        .access
        .create_login(AccessScope::Admin)
        .unwrap();
    let login = Call {
        values: Map::from_iter([("code".to_owned(), json!(code))]),
        ..Call::of(row("login"))
    };
    assert_eq!(stage.status(&login).await, 403, "without an origin");
    let foreign = login.clone().with("origin", "http://127.0.0.1:3000");
    assert_eq!(stage.status(&foreign).await, 403);
    let response = stage.send(&login.clone().with("origin", OWN)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let cookie = response.headers()["set-cookie"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        cookie.contains("; HttpOnly; SameSite=Strict; Path=/"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let key = document(response).await["key"].as_str().unwrap().to_owned();
    assert_eq!(
        stage.status(&login.with("origin", OWN)).await,
        401,
        "used twice"
    );
    let device = |row| {
        Call::of(row)
            .with("cookie", &cookie)
            .with("gt-device", &key)
    };
    for row in TABLE
        .iter()
        .filter(|row| row.scope.is_some() && row.action != Action::Logout)
    {
        let expected = if row.is_read() { None } else { Some(403) };
        let status = stage.status(&device(row)).await;
        assert_eq!(
            Some(status).filter(|it| *it == 403),
            expected,
            "{}",
            row.name
        );
        let own = stage.status(&device(row).with("origin", OWN)).await;
        assert!(!matches!(own, 401 | 403), "{}: {own}", row.name);
    }
    let socket = device(row("websocket")).with("upgrade", "websocket");
    assert_eq!(
        stage.status(&socket).await,
        403,
        "a WebSocket without an origin"
    );
    let logout = device(row("logout")).with("origin", OWN);
    assert_eq!(stage.status(&logout).await, 200);
    assert_eq!(stage.status(&device(row("caller"))).await, 401);
}

#[tokio::test]
async fn unknown_routes_are_told_only_to_callers_who_are_known() {
    let stage = Stage::new();
    let token = stage.token("read", AccessScope::Read, HOUR);
    let request = |method: &str, path: &str, token: Option<&str>| {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", LISTEN)
            .extension(ConnectInfo(ApiConnection::Tcp(
                "127.0.0.1:5".parse().unwrap(),
            )));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.body(Body::empty()).unwrap()
    };
    let check = async |method: &str, path: &str, token: Option<&str>, expected: u16| {
        let request = request(method, path, token);
        let status = app(stage.state()).oneshot(request).await.unwrap().status();
        assert_eq!(status.as_u16(), expected, "{method} {path}");
    };
    check("GET", "/api/v1/nothing", None, 401).await;
    check("GET", "/api/v1/nothing", Some(&token), 404).await;
    check("DELETE", "/api/v1/status", None, 401).await;
    check("DELETE", "/api/v1/status", Some(&token), 405).await;
    check("TRACE", "/api/v1/status", None, 401).await;
}

#[tokio::test]
async fn the_unix_socket_knows_its_peers_by_their_process() {
    let stage = Stage::new();
    let unix = |row, peer| Call {
        connection: ApiConnection::Unix(peer),
        host: "localhost",
        ..Call::of(row)
    };
    let agent = || PeerIdentity::Agent {
        address: "lab/crew/max".to_owned(),
        pid: 7,
    };
    let person = || PeerIdentity::Person { pid: 8 };
    for row in TABLE.iter().filter(|row| row.scope.is_some()) {
        let unknown = PeerIdentity::Unknown(Problem::denied("the process 9 is gone"));
        assert_eq!(stage.status(&unix(row, unknown)).await, 403, "{}", row.name);
        let page = unix(row, person()).with("origin", "http://localhost");
        assert_eq!(
            stage.status(&page).await,
            403,
            "{}: no browser is here",
            row.name
        );
        let foreign = Call {
            host: "evil.example",
            ..unix(row, person())
        };
        assert_eq!(stage.status(&foreign).await, 421, "{}", row.name);
    }
    assert_eq!(stage.ran(), 0);
    // A header cannot make an agent a person.
    let token = stage.token("admin", AccessScope::Admin, HOUR);
    let as_agent = unix(row("agents_stop"), agent()).bearer(&token);
    assert_eq!(stage.status(&as_agent).await, 200);
    assert_eq!(stage.status(&unix(row("agents_stop"), person())).await, 200);
    let calls = stage.calls.lock().unwrap();
    let names: Vec<String> = calls
        .iter()
        .map(|(_, _, principal)| principal.caller_name(&stage.place.around))
        .collect();
    assert_eq!(names, ["lab/crew/max", "ada"]);
}

#[tokio::test]
async fn changes_are_recorded_with_their_caller() {
    let mut stage = Stage::new();
    let token = stage.token("ci", AccessScope::Work, HOUR);
    let stop = Call::of(row("agents_stop")).bearer(&token);
    assert_eq!(stage.status(&stop).await, 200);
    stage.answer = Err(Problem::not_found("there is no agent").hint("start it"));
    let response = stage.send(&stop).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let problem = document(response).await;
    assert_eq!(
        problem,
        json!({
            "type": "urn:gt:problem:not_found",
            "title": "Not Found",
            "status": 404,
            "detail": "there is no agent",
            "kind": "not_found",
            "causes": [],
            "hints": ["start it"],
        })
    );
    let town = Town::open(&stage.place.root, stage.place.around.clone()).unwrap();
    let query = EventQuery {
        kinds: vec!["api_call".to_owned()],
        ..EventQuery::default()
    };
    let events = Events::of(&town).find(&query).unwrap();
    let recorded = events.iter().map(|event| {
        let field = |name: &str| event.payload[name].clone();
        let fields = ["operation", "credential", "target", "status"].map(field);
        (event.actor.as_str(), Value::from(fields.to_vec()))
    });
    let expected = [200, 404].map(|status| {
        (
            "ada",
            json!(["agents_stop", "token ci", "lab/crew/max", status]),
        )
    });
    assert_eq!(recorded.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn repeated_request_with_a_key_runs_once() {
    let stage = Stage::new();
    let token = stage.token("ci", AccessScope::Talk, HOUR);
    let nudge = Call::of(row("agents_nudge"))
        .bearer(&token)
        .with("idempotency-key", "k1");
    let first = stage.send(&nudge).await;
    assert_eq!((first.status().as_u16(), stage.ran()), (200, 1));
    let second = stage.send(&nudge).await;
    assert_eq!(second.headers()["idempotency-replayed"], "true");
    assert_eq!((second.status().as_u16(), stage.ran()), (200, 1));
    let mut other = nudge.clone();
    other.values.insert("message".to_owned(), json!("another"));
    assert_eq!((stage.status(&other).await, stage.ran()), (422, 1));
}

#[tokio::test]
async fn bodies_are_checked() {
    let stage = Stage::new();
    let token = stage.token("ci", AccessScope::Admin, HOUR);
    let send = async |kind: &str, body: String| {
        let request = Request::builder()
            .method("POST")
            .uri("/api/v1/work")
            .header("host", LISTEN)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", kind)
            .extension(ConnectInfo(ApiConnection::Tcp(
                "127.0.0.1:5".parse().unwrap(),
            )));
        let request = request.body(Body::from(body)).unwrap();
        app(stage.state())
            .oneshot(request)
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    let json = "application/json";
    let title = || r#"{"title": "a"}"#.to_owned();
    assert_eq!(send("text/plain", title()).await, 415);
    assert_eq!(
        send("application/x-www-form-urlencoded", title()).await,
        415
    );
    assert_eq!(send(json, "{".to_owned()).await, 400);
    assert_eq!(send(json, "[]".to_owned()).await, 400);
    assert_eq!(
        send(json, r#"{"title": "a", "status": "open"}"#.to_owned()).await,
        400
    );
    assert_eq!(
        send(json, format!(r#"{{"title": "{}"}}"#, "a".repeat(600_000))).await,
        413
    );
    assert_eq!(stage.ran(), 0);
    assert_eq!(send("application/json; charset=utf-8", title()).await, 200);
}

#[tokio::test]
async fn lists_have_pages_and_etags() {
    let mut stage = Stage::new();
    let token = stage.token("ci", AccessScope::Read, HOUR);
    stage.answer = Ok(json!([{"id": "a"}, {"id": "b"}, {"id": "c"}]));
    let mut list = Call::of(row("work_list")).bearer(&token);
    list.values.insert("limit".to_owned(), json!(2));
    let first = stage.send(&list).await;
    let link = first.headers()["link"].to_str().unwrap().to_owned();
    assert_eq!(link, "</api/v1/work?limit=2&page=b>; rel=\"next\"");
    let etag = first.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(document(first).await, json!([{"id": "a"}, {"id": "b"}]));
    let same = list.clone().with("if-none-match", &etag);
    assert_eq!(stage.status(&same).await, 304);
    list.values.insert("page".to_owned(), json!("b"));
    let second = stage.send(&list).await;
    assert!(!second.headers().contains_key("link"));
    assert_eq!(document(second).await, json!([{"id": "c"}]));
}

#[tokio::test]
async fn failed_logins_are_limited_and_valid_tokens_are_not() {
    let stage = Stage::new();
    let token = stage.token("ci", AccessScope::Read, HOUR);
    let service = app(stage.state());
    let status = async |call: Call<'_>| {
        let response = service.clone().oneshot(call.request()).await.unwrap();
        response.status().as_u16()
    };
    for _ in 0..20 {
        assert_eq!(status(Call::of(row("status"))).await, 401);
    }
    assert_eq!(status(Call::of(row("status"))).await, 429);
    assert_eq!(status(Call::of(row("status")).bearer(&token)).await, 200);
}

#[tokio::test]
async fn events_page_by_their_numbers() {
    let stage = Stage::new();
    let token = stage.token("ci", AccessScope::Read, HOUR);
    let town = Town::open(&stage.place.root, stage.place.around.clone()).unwrap();
    let event = |kind: &str| gt_core::event::Event::emitted(kind, "ada");
    let events = vec![event("one"), event("two"), event("three")];
    Events::of(&town).append(events).unwrap();
    let page = async |after: u64| {
        let mut call = Call::of(row("events_list")).bearer(&token);
        call.values.insert("after".to_owned(), json!(after));
        call.values.insert("limit".to_owned(), json!(2));
        document(stage.send(&call).await).await
    };
    let first = page(0).await;
    assert_eq!(first["events"][1]["type"], "two");
    assert_eq!((&first["next"], &first["more"]), (&json!(2), &json!(true)));
    let second = page(2).await;
    assert_eq!(second["events"][0]["seq"], 3);
    assert_eq!(
        (&second["next"], &second["more"]),
        (&json!(3), &json!(false))
    );
    let lost = page(99).await;
    assert_eq!(lost["gap"], json!({"after": 99}));
}

#[test]
fn openapi_describes_every_route() {
    let document = crate::openapi("1");
    for row in TABLE.iter().filter(|row| !is_page(row)) {
        let method = row.method.as_str().to_lowercase();
        let described = &document["paths"][row.path][&method];
        assert_eq!(described["operationId"], row.name);
        let public = described["security"] == json!([]);
        assert_eq!(public, row.scope.is_none(), "{}", row.name);
        for (status, response) in described["responses"].as_object().unwrap() {
            if let Some(reference) = response["$ref"].as_str() {
                let pointer = reference.trim_start_matches('#');
                assert!(
                    document.pointer(pointer).is_some(),
                    "{}: {status}",
                    row.name
                );
            }
        }
    }
}
