//! One function per parser of external bytes. A function panics if the parser panics or if a
//! property does not hold. [`TARGETS`] lists them by name.

use gt_core::cast::view::{PlainView, PlaybackScreen};
use gt_core::cast::{CastContent, CastEvent, CastHeader, Utf8Decoder};
use gt_core::event::Event;
use gt_core::harness::{self, Preset};
use gt_core::overlay::Layer;
use gt_core::patterns::Patterns;
use gt_core::price::Prices;
use gt_core::record::Record;
use gt_core::registry::Registry;
use gt_core::save::{SaveHeader, SavedContainer};
use gt_core::screen::CapturedScreen;
use gt_core::signal::{self, HookEvent};
use gt_core::state::{ObservedPane, State, StateSource, judge};
use gt_core::usage::{Format, TranscriptProgress, UsageWindow};
use gt_core::{Role, adopt, ansi, beads, limit, save, target, usage};
use gt_tmux::ControlParser;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt::Debug;
use std::sync::LazyLock;

/// A target: takes any bytes.
pub type Target = fn(&[u8]);

pub const TARGETS: &[(&str, Target)] = &[
    ("hook_report", hook_report),
    ("transcript_claude", transcript_claude),
    ("transcript_codex", transcript_codex),
    ("transcript_gemini", transcript_gemini),
    ("transcript_opencode", transcript_opencode),
    ("control_mode", control_mode),
    ("socket_frames", socket_frames),
    ("save_file", save_file),
    ("journal_line", journal_line),
    ("event_line", event_line),
    ("toml_role", toml_role),
    ("toml_harness", toml_harness),
    ("toml_town", toml_town),
    ("toml_project", toml_project),
    ("toml_formula", toml_formula),
    ("screen", screen),
    ("cast_file", cast_file),
    ("limit_text", limit_text),
    ("beads_output", beads_output),
    ("rigs_json", rigs_json),
    ("typed_target", typed_target),
];

static PRICES: LazyLock<Prices> = LazyLock::new(Prices::builtin);
static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    harness::builtin_names()
        .filter_map(|name| harness::resolve(name, None).ok())
        .map(|preset| preset.value)
        .collect()
});

pub fn hook_report(data: &[u8]) {
    let Ok(report) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    adopt::ends_program(&report);
    for word in HookEvent::words() {
        let Some(event) = HookEvent::from_word(word) else {
            continue;
        };
        if let Some(said) = signal::state_of(event, &report) {
            let reason = said.reason.as_str();
            assert!(reason.chars().count() <= 120, "unbounded: {reason}");
            assert!(!reason.contains('\n'), "several lines: {reason}");
            signal::may_cause_event(event, &said);
        }
    }
}

pub fn transcript_claude(data: &[u8]) {
    transcript(Format::Claude, data);
}

pub fn transcript_codex(data: &[u8]) {
    transcript(Format::Codex, data);
}

pub fn transcript_gemini(data: &[u8]) {
    transcript(Format::Gemini, data);
}

fn transcript(format: Format, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let window = UsageWindow {
        utc_offset_seconds: 7200,
        ..UsageWindow::default()
    };
    let mut progress = TranscriptProgress::default();
    for line in text.lines() {
        progress.line(format, line, &window, &PRICES);
        format.is_of_folder(line, "/town/max", "79e5");
        usage::is_prompt(line, "go on", "2026-11-17T14:00:05Z");
    }
    reread(&progress);
    let _ = progress.usage().rounded().tokens();
}

pub fn transcript_opencode(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut progress = TranscriptProgress::default();
    for line in text.lines() {
        if let Some(answer) = usage::opencode::answer("msg_1", line) {
            progress.count(answer, "2026-11-17", &PRICES);
        }
    }
    reread(&progress);
}

/// Checks that messages do not depend on how the stream is split, and that they are bounded.
pub fn control_mode(data: &[u8]) {
    const LIMIT: usize = 64;
    let whole = ControlParser::with_limit(LIMIT).push(data);
    let mut parser = ControlParser::with_limit(LIMIT);
    let split: Vec<_> = data.chunks(3).flat_map(|part| parser.push(part)).collect();
    assert_eq!(whole, split);
    for message in whole {
        if let gt_tmux::ControlMessage::Reply(block) | gt_tmux::ControlMessage::Injected(block) =
            message
        {
            assert!(block.body.len() <= LIMIT);
        }
    }
}

pub fn socket_frames(data: &[u8]) {
    for is_long in [false, true] {
        let whole = gt_tmux::testing::exchange(is_long, &[data]);
        let parts: Vec<&[u8]> = data.chunks(7).collect();
        assert_eq!(whole, gt_tmux::testing::exchange(is_long, &parts));
    }
}

pub fn save_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for (at, line) in text.lines().enumerate() {
        if at == 0 {
            read_again::<SaveHeader>(line.as_bytes());
        } else {
            read_again::<SavedContainer>(line.as_bytes());
        }
    }
    save::is_layout(&text);
}

pub fn journal_line(data: &[u8]) {
    let mut session: Option<Record> = None;
    for line in data.split(|byte| *byte == b'\n') {
        let Some(record) = read_again::<Record>(line) else {
            continue;
        };
        for item in record.work_units() {
            record.share_of(item);
        }
        match &mut session {
            Some(session) => session.merge(record),
            None => session = Some(record),
        }
    }
    if let Some(session) = session {
        reread(&session.without_cleared());
    }
}

pub fn event_line(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        if let Some(event) = read_again::<Event>(line) {
            let _ = (event.check(), event.line(), event.source_words());
            event.line_about("hello/crew/max");
        }
    }
}

pub fn toml_role(data: &[u8]) {
    with_text(data, |text| {
        for role in [Role::Mayor, Role::Crew, Role::Polecat] {
            let _ = role.resolve(&[Layer {
                source: "role.toml",
                text,
            }]);
        }
    });
}

pub fn toml_harness(data: &[u8]) {
    with_text(data, |text| {
        for name in ["claude", "own"] {
            let layer = Layer {
                source: "own.toml",
                text,
            };
            let _ = harness::resolve(name, Some(layer));
        }
    });
}

pub fn toml_town(data: &[u8]) {
    with_text(data, |text| {
        if let Ok(settings) = gt_town::base::settings::TownSettings::parse("town.toml", text) {
            settings.save_interval();
            settings.merge_defaults_of("hello");
        }
    });
}

pub fn toml_project(data: &[u8]) {
    with_text(data, |text| {
        if let Ok(project) = gt_core::project::Project::read(".gt.toml", text) {
            let template = &project.worktree.path_template;
            template.fill("hello", "he-3k6t7");
            assert_eq!(project.background().count(), project.background.len());
        }
    });
}

pub fn toml_formula(data: &[u8]) {
    with_text(data, |text| {
        let layer = Layer {
            source: "own.toml",
            text,
        };
        if let Ok(formula) = gt_core::formula::Formula::read("own", layer) {
            assert_eq!(formula.order().len(), formula.steps.len());
            let _ = formula.fill(&std::collections::BTreeMap::new());
        }
    });
}

/// The first line is the title of the pane.
pub fn screen(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (title, shown) = text.split_once('\n').unwrap_or(("", &text));
    let lines: Vec<String> = shown.lines().map(str::to_owned).collect();
    let printable = save::printable(shown);
    assert_eq!(save::printable(&printable), printable);
    for line in &lines {
        ansi::parse_line(line, |_| {});
    }
    for preset in PRESETS.iter() {
        let seen = ObservedPane {
            title,
            tag: Some(State::Running),
            tag_source: Some(StateSource::Process),
            screen: Some(CapturedScreen {
                lines: &lines,
                silent_seconds: Some(9),
            }),
            ..ObservedPane::default()
        };
        judge(&seen, Some(preset), &Patterns::default());
        let found = gt_core::screen::classify(&lines, title, preset);
        if let Some(asking) = &found.dialog {
            assert!(asking.marked.is_none_or(|at| at < asking.options.len()));
            gt_core::answer::listed(asking);
        }
        gt_core::screen::before_cursor(&lines, title);
        gt_core::screen::open_dialog(&lines, &preset.dialogs);
    }
}

pub fn cast_file(data: &[u8]) {
    let (mut screen, mut plain) = (PlaybackScreen::default(), PlainView::default());
    for line in data.split(|byte| *byte == b'\n') {
        if let Some(header) = CastHeader::from_line(line) {
            assert_eq!(
                CastHeader::from_line(header.line().as_bytes()),
                Some(header)
            );
        }
        let Some(event) = CastEvent::from_line(line) else {
            continue;
        };
        let again = CastEvent::from_line(event.line().as_bytes());
        assert_eq!(again.map(|again| again.what), Some(event.what.clone()));
        if let CastContent::Output(text) = &event.what {
            screen.push(text);
            let shown = plain.push(text);
            assert!(!shown.contains('\x1b'), "a sequence remains: {shown:?}");
            let pieces: String = gt_core::cast::pieces(text).collect();
            assert_eq!(&pieces, text);
        }
    }
    let mut decoder = Utf8Decoder::default();
    let mut text: String = data.chunks(2).map(|part| decoder.push(part)).collect();
    text.push_str(decoder.finish());
    assert_eq!(text, String::from_utf8_lossy(data));
}

pub fn limit_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    limit::is_usage_limit(&text);
    limit::Reset::parse(&text);
    let (line, below) = text.split_once('\n').unwrap_or((&text, ""));
    if let Some(retry) = limit::Retry::parse(line, below) {
        retry.limit();
    }
}

pub fn beads_output(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    beads::reason(&text, &text);
    for value in beads::objects(&text).unwrap_or_default() {
        let time = |text: &str| Some(text.to_owned());
        if let Ok(Some(bead)) = beads::Bead::read(value, "2026-11-17T14:00:05.000Z", time) {
            beads::exported(&bead.imported());
        }
    }
}

pub fn rigs_json(data: &[u8]) {
    with_text(data, |text| {
        let Ok(registry) = Registry::from_json(text) else {
            return;
        };
        let again = Registry::from_json(&registry.to_json()).map(|again| again.to_json());
        assert_eq!(again.ok(), Some(registry.to_json()));
        registry.suggest_prefix("hello");
        registry.split("he-crew-max");
    });
}

/// Checks that the address of a resolved agent means the same agent.
pub fn typed_target(data: &[u8]) {
    let registry = Registry::of([("hello", "he"), ("gas-town", "gt")]);
    with_text(data, |text| {
        let _ = target::resolve(text, &registry, &[]);
        if let Some(agent) = target::read_exact(text, &registry) {
            let again = target::read_exact(&agent.address(), &registry);
            assert_eq!(again.as_ref(), Some(&agent), "{text:?}");
        }
    });
}

fn with_text(data: &[u8], take: impl FnOnce(&str)) {
    if let Ok(text) = std::str::from_utf8(data) {
        take(text);
    }
}

fn read_again<T: Serialize + DeserializeOwned + PartialEq + Debug>(line: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(line).ok()?;
    reread(&value);
    Some(value)
}

/// Checks that a value survives being written and read.
fn reread<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("a value that was read can be written");
    let again: T = serde_json::from_str(&text).expect("a value that was written can be read");
    assert_eq!(&again, value);
}
