//! Usage limits and retries, parsed from the messages of the agent programs.
//!
//! A program that reached a usage limit says in words when the limit ends. [`Reset`] is that time
//! as far as the words tell; the engine converts it to a timestamp, because that needs a time
//! zone. [`Retry`] is a failed request that the program retries by itself.

/// A usage limit that an agent has reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    pub reset: Option<Reset>,
    /// The program continues by itself once the limit has ended.
    pub continues: bool,
}

/// Appended to the reason of a limit after which the program continues by itself.
const CONTINUES: &str = " · continues by itself";

impl Limit {
    /// Parses the limit in the message of a program.
    pub fn from_text(text: &str) -> Self {
        Limit {
            reset: Reset::parse(text),
            continues: text.ends_with(CONTINUES),
        }
    }

    /// Returns the text, with a suffix if the program continues by itself.
    pub fn describe(&self, text: &str) -> String {
        match self.continues && !text.ends_with(CONTINUES) {
            true => format!("{text}{CONTINUES}"),
            false => text.to_owned(),
        }
    }
}

/// Returns whether a program's message says that a usage limit was reached. A request that was
/// refused because of too many requests does not count: its message names no quota.
pub fn is_usage_limit(message: &str) -> bool {
    let message = message.to_lowercase().replace('’', "'");
    let hit = message
        .split_once("hit your ")
        .is_some_and(|(_, rest)| rest.contains("limit"));
    hit || message.contains("usage limit")
}

/// The end of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Seconds after the message.
    In(i64),
    /// Seconds from now: the program counts them down.
    Left(i64),
    /// At this time of day: on the date, or else the next time that the clock shows it.
    At {
        date: Option<Date>,
        hour: i8,
        minute: i8,
        /// The name of a time zone. `None` means the program's own.
        zone: Option<String>,
    },
}

/// A date. Without a year it is the next such date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: Option<i16>,
    pub month: i8,
    pub day: i8,
}

impl Reset {
    /// Parses `resets 6:22am (UTC)`, `try again at Nov 20th, 2026 4:31 AM`, `reset in 2 hours`.
    pub fn parse(text: &str) -> Option<Self> {
        const ANCHORS: &[&str] = &["resets ", "reset ", "try again "];
        let lower = text.to_lowercase();
        // The last match wins: a message often mentions another time first.
        let mut found: Vec<(usize, &str)> = ANCHORS
            .iter()
            .flat_map(|anchor| lower.match_indices(anchor))
            .collect();
        found.sort_unstable();
        found
            .into_iter()
            .rev()
            .find_map(|(at, anchor)| Reset::after(text.get(at + anchor.len()..)?))
    }

    fn after(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace().peekable();
        if words.next_if(|word| *word == "in").is_some() {
            let rest: Vec<&str> = words.collect();
            return duration(&rest.join(" ")).map(Reset::In);
        }
        words.next_if(|word| matches!(*word, "at" | "on"));
        let date = match words.next_if(|word| month(word).is_some()) {
            Some(name) => {
                let day = leading_number(words.next()?)?;
                let year = words.next_if(|word| {
                    let digits = word.trim_end_matches(',');
                    digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
                });
                Some(Date {
                    year: year.and_then(leading_number),
                    month: month(name)?,
                    day: i8::try_from(day)
                        .ok()
                        .filter(|day| (1..=31).contains(day))?,
                })
            }
            None => None,
        };
        words.next_if(|word| *word == "at");
        let (hour, minute) = clock(words.next()?, words.peek().copied())?;
        let zone = words.find_map(|word| word.strip_prefix('(')?.split_once(')'));
        Some(Reset::At {
            date,
            hour,
            minute,
            zone: zone.map(|(zone, _)| zone.to_owned()),
        })
    }
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let word = word.trim_end_matches([',', '.']).to_lowercase();
    let is_word = word.len() >= 3 && word.chars().all(char::is_alphabetic);
    let at = MONTHS.iter().position(|month| word.starts_with(month))?;
    is_word.then(|| i8::try_from(at + 1).ok()).flatten()
}

fn leading_number(word: &str) -> Option<i16> {
    let end = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    word[..end].parse().ok()
}

/// Parses `6:22am`, `6am`, `6:31` with `AM.` as the next word, or `06:43`.
fn clock(word: &str, next: Option<&str>) -> Option<(i8, i8)> {
    let word = word.to_lowercase();
    let end = word
        .find(|c: char| !c.is_ascii_digit() && c != ':')
        .unwrap_or(word.len());
    let (digits, suffix) = word.split_at(end);
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let next = next.map(str::to_lowercase).unwrap_or_default();
    let half = [suffix, &next].into_iter().find_map(|text| {
        let is = |half: &str| text.starts_with(half);
        is("am").then_some(0).or_else(|| is("pm").then_some(12))
    });
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        None if digits.contains(':') => hour,
        _ => return None,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}

/// Parses `59m 57s`, `2 hours` or `3.5s` into seconds.
fn duration(text: &str) -> Option<i64> {
    let mut seconds = 0.0;
    let mut rest = text.trim_start();
    let mut any = false;
    loop {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<f64>() else {
            break;
        };
        let unit = rest[end..].trim_start();
        let length = unit
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(unit.len());
        let factor = match &unit[..length] {
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        seconds += number * factor;
        any = true;
        rest = unit[length..].trim_start_matches([' ', ',']);
    }
    const LONGEST: f64 = 400.0 * 86_400.0;
    #[expect(clippy::cast_possible_truncation, reason = "at most 400 days")]
    (any && seconds <= LONGEST).then_some(seconds as i64)
}

/// A failed request that the program retries by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    pub cause: String,
    /// `3`, or `3/10` if the program shows its maximum number of attempts.
    pub attempt: Option<String>,
    pub wait_seconds: Option<i64>,
}

/// Maximum wait between two attempts. A longer wait is a limit, not a retry.
const LONGEST_RETRY_SECONDS: i64 = 300;

impl Retry {
    /// Parses the line of a busy program and the text below it. The forms are
    /// `500 … · Retrying in 2s · attempt 3/10`, `Rate limited [retrying in 2s attempt #1]`, and
    /// `Reconnecting... 3/5 (1s • esc to interrupt)` with the cause in the next line.
    pub fn parse(line: &str, below: &str) -> Option<Self> {
        let whole = format!("{line} {below}");
        let lower = whole.to_lowercase();
        if lower.len() == whole.len()
            && let Some(at) = lower.find("retrying in")
        {
            let after = &whole[at + "retrying in".len()..];
            return Some(Retry {
                cause: cause(&whole[..at]),
                attempt: after.split_once("attempt").and_then(|(_, it)| attempt(it)),
                wait_seconds: duration(after),
            });
        }
        let (_, after) = line.split_once("Reconnecting")?;
        Some(Retry {
            cause: cause(below),
            attempt: attempt(after.trim_start_matches(['.', '…'])),
            wait_seconds: None,
        })
    }

    /// Returns the limit that the retry waits for, if the wait is long or the cause is a limit.
    pub fn limit(&self) -> Option<Limit> {
        let waits_long = self.wait_seconds > Some(LONGEST_RETRY_SECONDS);
        (waits_long || is_usage_limit(&self.cause)).then(|| Limit {
            reset: Reset::parse(&self.cause).or(self.wait_seconds.map(Reset::Left)),
            continues: true,
        })
    }

    /// Returns `retrying: Overloaded, attempt 3/10`. Omits the wait, which changes every second.
    pub fn describe(&self) -> String {
        let cause = match self.cause.is_empty() {
            true => "the request failed",
            false => &self.cause,
        };
        match &self.attempt {
            Some(attempt) => format!("retrying: {cause}, attempt {attempt}"),
            None => format!("retrying: {cause}"),
        }
    }
}

fn attempt(text: &str) -> Option<String> {
    let text = text.trim_start_matches([' ', '#']);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '/')
        .unwrap_or(text.len());
    let attempt = text[..end].trim_end_matches('/');
    (!attempt.is_empty()).then(|| attempt.to_owned())
}

/// Extracts the cause of a failure: without decorations and URLs, and the message of a JSON body.
fn cause(text: &str) -> String {
    const LONGEST: usize = 120;
    let text = text.split(", url: ").next().unwrap_or_default();
    let is_drawn = |c: char| matches!(c, '⬝' | '■' | '└' | '·' | '[');
    let text = text.replace(is_drawn, " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    // A limit is printed as JSON or as a sentence.
    let from_json = serde_json::from_str::<serde_json::Value>(&text).ok();
    let message = from_json.as_ref().and_then(|it| {
        let message = it["message"].as_str();
        message.or(it["error"]["message"].as_str())
    });
    message.unwrap_or(&text).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_times_are_read_from_the_words_of_the_programs() {
        let at = |date: Option<(Option<i16>, i8, i8)>, hour, minute, zone: Option<&str>| {
            Some(Reset::At {
                date: date.map(|(year, month, day)| Date { year, month, day }),
                hour,
                minute,
                zone: zone.map(str::to_owned),
            })
        };
        let check = |text: &str, expected| assert_eq!(Reset::parse(text), expected, "{text}");
        check(
            "You've hit your limit · resets 6:22am (UTC)",
            at(None, 6, 22, Some("UTC")),
        );
        check(
            "You've hit your limit · resets 12am (Europe/Berlin)",
            at(None, 0, 0, Some("Europe/Berlin")),
        );
        check(
            "You've hit your weekly limit · resets Nov 20, 4:38pm (UTC)",
            at(Some((None, 11, 20)), 16, 38, Some("UTC")),
        );
        check(
            "purchase more credits or try again at 6:31 AM.",
            at(None, 6, 31, None),
        );
        check(
            "or try again at Nov 20th, 2026 4:31 AM.",
            at(Some((Some(2026), 11, 20)), 4, 31, None),
        );
        check(
            "5h limit: only <1% left · resets at 06:43 · /status",
            at(None, 6, 43, None),
        );
        check(
            "limit resets December 1 at 1pm",
            at(Some((None, 12, 1)), 13, 0, None),
        );
        check(
            "5 hour usage limit reached. It will reset in 2 hours. To continue",
            Some(Reset::In(7_200)),
        );
        check("Please try again in 3.5s.", Some(Reset::In(3)));
        check("try again in 1h 2m", Some(Reset::In(3_720)));
        for text in [
            "Please try again later.",
            "resets soon",
            "resets 25:00",
            "resets 6",
            "resets Nov 99, 6am",
            "resets 13pm",
            "Stop and wait for limit to reset ",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_limit_names_a_quota() {
        for text in [
            "You've hit your limit · resets 6:22am (UTC)",
            "You've hit your 5-hour limit · resets 6:22am (UTC)",
            "You’ve hit your usage limit. Upgrade to Pro",
            "Usage limit reached for gemini-3.8-flash.",
            "5 hour usage limit reached. It will reset in 2 hours.",
        ] {
            assert!(is_usage_limit(text), "{text}");
        }
        for text in [
            "API Error: Request rejected (429) · Rate limited",
            "rate limit exceeded: Rate limit reached for gpt-fake. Please try again in 3.5s.",
            "Request too large (max 32MB)",
            "API Error: Repeated 529 Overloaded errors.",
        ] {
            assert!(!is_usage_limit(text), "{text}");
        }
    }

    #[test]
    fn retries_are_read_from_the_lines_of_the_programs() {
        let check = |line: &str, below: &str, expected: &str| {
            let retry = Retry::parse(line, below).unwrap();
            assert_eq!(retry.describe(), expected);
            retry
        };
        let one = check(
            "500 Internal server error · Retrying in 2s · attempt 3/10",
            "",
            "retrying: 500 Internal server error, attempt 3/10",
        );
        assert_eq!((one.wait_seconds, one.limit()), (Some(2), None));
        check(
            "Reconnecting... 3/5 (1s • esc to interrupt)",
            "└ Unexpected status 402 Payment Required: Payment required, url: http://127.0.0.1/v1",
            "retrying: Unexpected status 402 Payment Required: Payment required, attempt 3/5",
        );
        check(
            r#"■■■⬝⬝⬝⬝⬝ {"type":"overloaded_error","message":"Overloaded"} [retrying in 1s attempt #1]"#,
            "",
            "retrying: Overloaded, attempt 1",
        );
        let long = check(
            "⬝⬝⬝ This request would exceed your account's rate limit. [retrying in 59m 57s attempt #1",
            "",
            "retrying: This request would exceed your account's rate limit., attempt 1",
        );
        let waits = Limit {
            reset: Some(Reset::Left(3_597)),
            continues: true,
        };
        assert_eq!(long.limit(), Some(waits));
        let limit = check(
            "■■■■⬝5⬝hour usage limit reached. It will reset in 2 hours. [retrying in",
            "attempt #1]",
            "retrying: 5 hour usage limit reached. It will reset in 2 hours., attempt 1",
        );
        assert_eq!(limit.limit().unwrap().reset, Some(Reset::In(7_200)));
        assert_eq!(Retry::parse("Working (3s • esc to interrupt)", ""), None);
        assert_eq!(Retry::parse("Thinking… (3s)", "Tip: retry"), None);
    }

    #[test]
    fn a_limit_that_continues_says_so_once() {
        let mut limit = Limit::from_text("You've hit your limit · resets 6am");
        assert!(!limit.continues);
        limit.continues = true;
        let reason = limit.describe("You've hit your limit · resets 6am");
        assert_eq!(
            reason,
            "You've hit your limit · resets 6am · continues by itself"
        );
        assert_eq!(Limit::from_text(&reason), limit);
        assert_eq!(limit.describe(&reason), reason);
    }
}
