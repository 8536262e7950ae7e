//! Where the `tracing` events of this process go.
//!
//! Warnings and errors of every command are appended to the town's log ([`gt_town::base::log`]),
//! which `gt logs` shows. `--verbose` and `GT_LOG` also print events on stderr; a command whose
//! stderr is not read (a callback, the board) writes the events that `GT_LOG` asks for to the log
//! instead.
//!
//! The subscriber is written by hand, because every call of `gt` installs it, also hooks and
//! status lines, and because there are no spans: until the first event it opens and looks up
//! nothing. `tracing-subscriber` would add six crates and a registry of spans to each call.

use crate::context::Context;
use crate::output;
use gt_town::base::clock::Clock;
use gt_town::base::log::Log;
use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::sync::OnceLock;
use tracing::field::{Field, Visit};
use tracing::metadata::LevelFilter;
use tracing::span;
use tracing::{Event, Metadata, Subscriber};

/// Variable that selects the events to show: `debug`, or `gt_town::messaging=trace,warn`.
const VARIABLE: &str = "GT_LOG";

/// Commands that draw on the terminal, which other output would damage.
const DRAWING: &[&str] = &["board", "attach"];

/// Installs the subscriber for the command with these names. A later call has no effect.
pub(crate) fn install(context: &Context, command: &[&str]) {
    // The demo agent stands for a foreign program.
    if command == ["demo-agent"] {
        return;
    }
    let mut asked = context.verbose.then(|| LogFilter::from(LevelFilter::DEBUG));
    if let Some(text) = context
        .around()
        .var(VARIABLE)
        .filter(|text| !text.is_empty())
    {
        match LogFilter::parse(text) {
            Some(filter) => asked = Some(filter),
            None => output::warn(format!(
                "{VARIABLE}={text:?} is ignored: it is not error, warn, info, debug, trace, or MODULE=LEVEL,…"
            )),
        }
    }
    let is_drawing = || {
        let draws = command.first().is_some_and(|name| DRAWING.contains(name));
        draws && std::io::stderr().is_terminal()
    };
    // The daemon also logs that it starts and ends.
    let mut file = LogFilter::from(match command.first() {
        Some(&"daemon") => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    });
    if asked.is_some() && (context.is_unattended(command) || is_drawing()) {
        file = asked.take().unwrap_or(file).at_least(LevelFilter::WARN);
    }
    let clock = context.around().clock.clone();
    let context = context.clone();
    let logger = Logger {
        stderr: asked.unwrap_or_else(|| LogFilter::from(LevelFilter::OFF)),
        file,
        command: command.join(" "),
        clock,
        // Without a town there is no log.
        root: Box::new(move || context.root().ok()),
        log: OnceLock::new(),
    };
    // Fails only if a subscriber is installed already.
    let _ = tracing::subscriber::set_global_default(logger);
}

/// The levels that are shown, by module.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LogFilter {
    level: LevelFilter,
    /// Exceptions by the beginning of a module's path. The longest one applies.
    modules: Vec<(String, LevelFilter)>,
}

impl From<LevelFilter> for LogFilter {
    fn from(level: LevelFilter) -> Self {
        LogFilter {
            level,
            modules: Vec::new(),
        }
    }
}

impl LogFilter {
    fn parse(text: &str) -> Option<Self> {
        let mut filter = LogFilter::from(LevelFilter::OFF);
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            match part.split_once('=') {
                Some((module, level)) => {
                    let exception = (module.to_owned(), level.parse().ok()?);
                    filter.modules.push(exception);
                }
                None => filter.level = part.parse().ok()?,
            }
        }
        filter
            .modules
            .sort_by_key(|(module, _)| std::cmp::Reverse(module.len()));
        Some(filter)
    }

    /// Returns the filter with every level raised to at least this one.
    fn at_least(mut self, level: LevelFilter) -> Self {
        self.level = self.level.max(level);
        for (_, of_module) in &mut self.modules {
            *of_module = (*of_module).max(level);
        }
        self
    }

    fn allows(&self, metadata: &Metadata<'_>) -> bool {
        self.level_of(metadata.target()) >= *metadata.level()
    }

    fn level_of(&self, target: &str) -> LevelFilter {
        let mut modules = self.modules.iter();
        let found = modules.find(|(module, _)| target.starts_with(module.as_str()));
        found.map_or(self.level, |(_, level)| *level)
    }

    fn most(&self) -> LevelFilter {
        let levels = self.modules.iter().map(|(_, level)| *level);
        levels.fold(self.level, LevelFilter::max)
    }
}

struct Logger {
    stderr: LogFilter,
    file: LogFilter,
    command: String,
    clock: Clock,
    /// Finds the town's folder; called at the first event for the log.
    root: Box<dyn Fn() -> Option<PathBuf> + Send + Sync>,
    log: OnceLock<Option<Log>>,
}

impl Logger {
    fn log(&self) -> Option<&Log> {
        let log = self
            .log
            .get_or_init(|| (self.root)().map(|root| Log::at(&root)));
        log.as_ref()
    }
}

impl Subscriber for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.file.allows(metadata) || self.stderr.allows(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.file.most().max(self.stderr.most()))
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut text = EventText::default();
        event.record(&mut text);
        let text = text.finish();
        if self.file.allows(metadata)
            && let Some(log) = self.log()
        {
            // There is no other place for a failure to log.
            let _ = log.append(self.clock.now(), *metadata.level(), &self.command, &text);
        }
        if self.stderr.allows(metadata) {
            let (level, target) = (metadata.level(), metadata.target());
            let text = output::clean(&text);
            // If stderr is closed, the event cannot be shown.
            let _ = writeln!(std::io::stderr(), "{level:>5} {target}: {text}");
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The message of an event, followed by its other fields.
#[derive(Debug, Default)]
struct EventText {
    message: String,
    fields: String,
}

impl EventText {
    fn finish(self) -> String {
        self.message + &self.fields
    }
}

impl Visit for EventText {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_by_level_and_module() {
        let filter = LogFilter::parse("warn, gt_town::records=off,gt_town=debug").unwrap();
        assert_eq!(filter.level_of("gt::board"), LevelFilter::WARN);
        assert_eq!(filter.level_of("gt_town::base::lock"), LevelFilter::DEBUG);
        assert_eq!(filter.level_of("gt_town::records::items"), LevelFilter::OFF);
        assert_eq!(filter.most(), LevelFilter::DEBUG);
        let raised = filter.at_least(LevelFilter::WARN);
        assert_eq!(
            raised.level_of("gt_town::records::items"),
            LevelFilter::WARN
        );
        for text in ["loud", "gt=7", "gt_town=loud"] {
            assert_eq!(LogFilter::parse(text), None, "{text}");
        }
    }
}
