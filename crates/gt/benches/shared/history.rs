//! Writes the history of a large town: sessions, items, mail, events, queued messages, transcripts.
//!
//! All files have the formats that `gt` writes. Events go through the engine, so that their hash
//! chain is valid; items and mail are inserted into the database that `gt` has created.

use gt_core::Identity;
use gt_core::event::Event;
use gt_core::nudge::{Message, Priority};
use gt_town::Town;
use gt_town::base::surroundings::Surroundings;
use gt_town::messaging::queue::MessageQueue;
use gt_town::records::events::Events;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// The agent with the mail and the queued messages.
pub(crate) const AGENT: &str = "gastown/crew/w00";
/// The title of the most urgent item.
pub(crate) const FIRST_TITLE: &str = "The most urgent item";
/// The type of an event that only the oldest event has.
pub(crate) const RARE_KIND: &str = "oldest_of_all";
/// The session that every hundredth session continues.
const LONG_CHAIN: u64 = 100;
/// Number of sessions that run.
const RUNNING: u64 = 50;
/// Time over which sessions and items are spread: two years.
const SECONDS: u64 = 2 * 365 * 24 * 3600;
/// Time over which events are spread.
const EVENT_SECONDS: u64 = 30 * 24 * 3600;

/// Sizes of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) sessions: u64,
    pub(crate) items: u64,
    pub(crate) events: u64,
    pub(crate) queued: u64,
    pub(crate) mails: u64,
    pub(crate) transcripts: u64,
    pub(crate) transcript_bytes: u64,
}

impl Scale {
    /// The largest history that `gt` is measured with: 10 GB of transcripts.
    pub(crate) const FULL: Scale = Scale {
        sessions: 1_000_000,
        items: 100_000,
        events: 5_000_000,
        queued: 10_000,
        mails: 60_000,
        transcripts: 10_000,
        transcript_bytes: 1_000_000,
    };

    pub(crate) fn divided_by(self, by: u64) -> Scale {
        Scale {
            sessions: self.sessions / by,
            items: self.items / by,
            events: self.events / by,
            queued: self.queued / by,
            mails: self.mails / by,
            transcripts: self.transcripts / by,
            transcript_bytes: self.transcript_bytes,
        }
    }

    /// Returns the number of items that are not closed: a tenth.
    pub(crate) fn open_items(&self) -> u64 {
        self.items / 10
    }
}

/// Ids that the measured commands name.
#[derive(Debug)]
pub(crate) struct Marks {
    /// An ended session in the middle of the history.
    pub(crate) session: String,
    /// A session of the longest chain.
    pub(crate) long_chain: String,
    /// The most urgent item.
    pub(crate) item: String,
    /// The item with a thousand parts, or a tenth of all items if those are fewer.
    pub(crate) parent: String,
    /// A message of the longest thread, which has a tenth of all messages.
    pub(crate) mail: String,
}

/// Writes the history of a town that has the rig `gastown`, a worker `w00` and no items yet. `home`
/// is the home folder of its agents.
pub(crate) fn write(root: &Path, home: &Path, scale: Scale) -> Marks {
    let town = Town::open(root, surroundings(root, home)).expect("the town");
    let now = jiff::Timestamp::now().as_second();
    sessions(&town, scale, now);
    items(&town, scale, now);
    events(&town, scale, now);
    queue(&town, scale, now);
    transcripts(home, scale, now);
    Marks {
        session: session_id(scale, now, scale.sessions / 2 + 1),
        long_chain: session_id(scale, now, LONG_CHAIN * 3),
        item: item_id(0),
        parent: item_id(1),
        mail: mail_id(0),
    }
}

fn surroundings(root: &Path, home: &Path) -> Surroundings {
    Surroundings {
        env: [("HOME".to_owned(), home.to_string_lossy().into_owned())].into(),
        current_dir: root.to_owned(),
        ..Surroundings::default()
    }
}

fn sessions(town: &Town, scale: Scale, now: i64) {
    let folder = town.root().join(".sessions");
    fs::create_dir_all(&folder).expect("a folder");
    let file = File::create(folder.join("index.jsonl")).expect("a journal");
    let mut file = BufWriter::new(file);
    for number in 0..scale.sessions {
        writeln!(file, "{}", begin(scale, now, number)).expect("a line");
        if number >= RUNNING {
            writeln!(file, "{}", end(scale, now, number - RUNNING)).expect("a line");
        }
    }
    file.flush().expect("the journal");
}

/// Returns the second at which a session begins.
fn began(scale: Scale, now: i64, number: u64) -> i64 {
    let ago = (scale.sessions - number) * SECONDS / scale.sessions;
    now - i64::try_from(ago).expect("small")
}

/// Returns a UUIDv7 with the time of the session's start.
fn session_id(scale: Scale, now: i64, number: u64) -> String {
    uuid(began(scale, now, number), number)
}

fn uuid(second: i64, number: u64) -> String {
    let milliseconds = u64::try_from(second).expect("after 1970") * 1000;
    let random = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
        milliseconds >> 16,
        milliseconds & 0xffff,
        random & 0xfff,
        (random >> 12) & 0xfff,
        (random >> 16) & 0xffff_ffff_ffff,
    )
}

fn time(second: i64) -> String {
    let time = jiff::Timestamp::from_second(second).expect("a time");
    format!("{time:.3}")
}

fn agent_of(number: u64) -> (String, String) {
    let (rig, name) = (number % 20, number / 20 % 200);
    (format!("rig{rig}"), format!("rig{rig}/crew/w{name}"))
}

fn begin(scale: Scale, now: i64, number: u64) -> Value {
    let id = session_id(scale, now, number);
    let (rig, agent) = agent_of(number);
    let chain = match number.is_multiple_of(LONG_CHAIN) {
        true => 0,
        // The others have five sessions each.
        false => number - number % 5,
    };
    json!({
        "id": id, "tmux_session": agent.replace('/', "-"), "agent": agent,
        // Another server, so that a sync of this one does not end them.
        "tmux_socket": "/tmp/tmux-1000/elsewhere",
        "rig": rig, "role": "crew", "started_at": time(began(scale, now, number)),
        "work_unit": number.is_multiple_of(3).then(|| item_id(number % scale.items.max(1))),
        "chain_id": session_id(scale, now, chain), "cwd": format!("/home/user/gt/{agent}"),
        "branch": "crew/w", "harness": "claude", "harness_session_id": id,
        "pane": format!("%{}", number % 500), "pid": number % 32_000 + 2,
        "initial_prompt": format!("[GAS TOWN] {agent} <- human • cold-start\n\nCheck your hook and mail, then act on the hook if present."),
        "status": "running", "host": "machine",
    })
}

fn end(scale: Scale, now: i64, number: u64) -> Value {
    let outcomes = ["handoff", "done", "crash", "killed"];
    json!({
        "id": session_id(scale, now, number),
        "ended_at": time(began(scale, now, number) + 55), "status": "stopped",
        "outcome": outcomes[usize::try_from(number % 4).expect("small")],
        "usage": {
            "input_tokens": 1000 + number % 900, "output_tokens": 200,
            "cache_read_tokens": 0, "cache_write_tokens": 0,
            "model": "claude-fable-1", "cost_usd": 0.01,
        },
    })
}

fn item_id(number: u64) -> String {
    format!("gt-{}", letters(number))
}

fn mail_id(number: u64) -> String {
    format!("hq-{}", letters(number))
}

/// Writes a number in the five letters of an id.
fn letters(mut number: u64) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut text = [b'0'; 5];
    for place in text.iter_mut().rev() {
        *place = ALPHABET[usize::try_from(number % 32).expect("small")];
        number /= 32;
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn items(town: &Town, scale: Scale, now: i64) {
    let mut db = Connection::open(town.root().join(".work/items.db")).expect("the items");
    db.pragma_update(None, "synchronous", "OFF")
        .expect("a setting");
    let all = db.transaction().expect("a transaction");
    for number in 0..scale.items {
        insert_item(&all, scale, now, number).expect("an item");
    }
    for number in 0..scale.mails {
        insert_mail(&all, scale, now, number).expect("a message");
    }
    all.commit().expect("the items");
}

fn insert_item(db: &Connection, scale: Scale, now: i64, number: u64) -> rusqlite::Result<()> {
    let is_open = number < scale.open_items();
    let ago = i64::try_from(number * SECONDS / scale.items).expect("small");
    let created = time(now - ago - 600);
    let closed = (!is_open).then(|| time(now - ago));
    let status = match (is_open, number % 9) {
        (false, _) => "closed",
        (true, 7) => "in_progress",
        (true, 8) => "blocked",
        (true, _) => "open",
    };
    let parts = 1_000.min(scale.items / 10);
    let parent = (number > 1 && number < 2 + parts).then(|| item_id(1));
    let title = match number {
        0 => FIRST_TITLE.to_owned(),
        _ => format!("Something to do, number {number}"),
    };
    let priority = if number == 0 { 0 } else { number % 4 + 1 };
    let body = "The test of the parser fails on the second page of a long list. ".repeat(8);
    db.prepare_cached(
        "INSERT INTO items (id, title, description, type, priority, status, parent, created_at,
         updated_at, closed_at) VALUES (?1, ?2, ?3, 'task', ?4, ?5, ?6, ?7, ?7, ?8)",
    )?
    .execute(params![
        item_id(number),
        title,
        body,
        priority,
        status,
        parent,
        created,
        closed
    ])?;
    if !is_open {
        db.prepare_cached(
            "INSERT INTO merges (id, rig, item, branch, commit_id, base, worker, status,
             created_at, updated_at) VALUES (?1, 'gastown', ?2, ?3, 'c', 'main', 'gastown/crew/w00',
             'merged', ?4, ?4)",
        )?
        .execute(params![
            format!("mr-{}", letters(number)),
            item_id(number),
            format!("branch-{number}"),
            closed
        ])?;
    }
    if number.is_multiple_of(5) {
        db.prepare_cached("INSERT INTO labels (item, label) VALUES (?1, ?2)")?
            .execute(params![item_id(number), format!("area-{}", number % 40)])?;
    }
    if number.is_multiple_of(10) && number > 0 {
        db.prepare_cached("INSERT INTO dependencies (item, blocker) VALUES (?1, ?2)")?
            .execute([item_id(number), item_id(number - 1)])?;
    }
    Ok(())
}

/// Inserts an unread message. A tenth of them are one thread.
fn insert_mail(db: &Connection, scale: Scale, now: i64, number: u64) -> rusqlite::Result<()> {
    let ago = i64::try_from((scale.mails - number) * SECONDS / scale.mails).expect("small");
    let sent = time(now - ago);
    let thread = match number.is_multiple_of(10) {
        true => mail_id(0),
        false => mail_id(number),
    };
    let body = "The branch is merged. Nothing else is to be done. ".repeat(6);
    db.prepare_cached(
        "INSERT INTO items (id, title, description, type, priority, status, assignee, ephemeral,
         created_at, updated_at) VALUES (?1, ?2, ?3, 'message', ?4, 'open', ?5, 1, ?6, ?6)",
    )?
    .execute(params![
        mail_id(number),
        format!("Message {number}"),
        body,
        number % 3 + 1,
        AGENT,
        sent
    ])?;
    db.prepare_cached("INSERT INTO labels (item, label) VALUES (?1, 'gt:message')")?
        .execute([mail_id(number)])?;
    db.prepare_cached(
        "INSERT INTO letters (item, sender, recipient, thread, sent_at)
         VALUES (?1, 'mayor', ?2, ?3, ?4)",
    )?
    .execute([&mail_id(number), AGENT, &thread, &sent])?;
    Ok(())
}

fn events(town: &Town, scale: Scale, now: i64) {
    const AT_ONCE: u64 = 20_000;
    let events = Events::of(town);
    let mut first = 0;
    while first < scale.events {
        let next = (first + AT_ONCE).min(scale.events);
        let some = (first..next).map(|number| event(scale, now, number));
        events.append(some.collect()).expect("events");
        first = next;
    }
}

fn event(scale: Scale, now: i64, number: u64) -> Event {
    let kinds = [
        "turn_end",
        "nudge",
        "session_start",
        "command",
        "patrol_checked",
        "session_end",
        "hook",
    ];
    let kind = match number {
        0 => RARE_KIND,
        _ => kinds[usize::try_from(number % 7).expect("small")],
    };
    let ago = (scale.events - number) * EVENT_SECONDS / scale.events;
    let (_, agent) = agent_of(number);
    Event {
        ts: time(now - i64::try_from(ago).expect("small")),
        ..Event::emitted(kind, &agent)
    }
    .with("target", agent_of(number + 1).1)
    .with("bead", item_id(number % scale.items.max(1)))
    .with(
        "session_id",
        session_id(scale, now, number % scale.sessions),
    )
}

fn queue(town: &Town, scale: Scale, now: i64) {
    let agent = Identity::from_address(AGENT, town.registry()).expect("the agent");
    let [waiting, _] = MessageQueue::of(town, &agent).folders();
    fs::create_dir_all(&waiting).expect("a folder");
    for number in 0..scale.queued {
        let message = Message {
            id: uuid(now, number),
            sender: Some("mayor".to_owned()),
            caller: None,
            text: format!("Look at the results of the tests again, number {number}."),
            is_command: false,
            priority: Priority::Normal,
            created_at: now,
            expires_at: Some(now + 24 * 3600),
            uptime: None,
        };
        let text = serde_json::to_vec(&message).expect("a message");
        fs::write(waiting.join(message.key()), text).expect("a message");
    }
}

/// Writes the transcripts of the newest sessions, as Claude Code does.
fn transcripts(home: &Path, scale: Scale, now: i64) {
    let filler = "x".repeat(40_000);
    let user = json!({"type": "user", "message": {"content": filler}}).to_string();
    let newest = scale.sessions.saturating_sub(scale.transcripts)..scale.sessions;
    for number in newest {
        let id = session_id(scale, now, number);
        let (_, agent) = agent_of(number);
        let folder = format!(".claude/projects/-home-user-gt-{}", agent.replace('/', "-"));
        let folder = home.join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        let file = File::create(folder.join(format!("{id}.jsonl"))).expect("a transcript");
        let mut file = BufWriter::with_capacity(1 << 18, file);
        let mut written = 0;
        let mut answers = 0;
        while written < scale.transcript_bytes {
            answers += 1;
            let answer = json!({
                "type": "assistant", "timestamp": time(began(scale, now, number) + 5),
                "message": {
                    "id": format!("msg_{answers}"), "model": "claude-fable-1",
                    "usage": {"input_tokens": 10, "output_tokens": 20},
                },
            });
            let lines = format!("{user}\n{answer}\n");
            file.write_all(lines.as_bytes()).expect("a line");
            written += lines.len() as u64;
        }
        file.flush().expect("a transcript");
    }
}
