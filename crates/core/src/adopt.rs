//! Recognises agent programs that a person started: the program, its conversation, and how our
//! hooks are added to the person's settings file.
//!
//! Pure functions over data that the engine has read about a process. The engine decides where to
//! look for programs.

use crate::harness::Preset;
use serde_json::{Map, Value, json};

/// Interpreters whose first argument is the script that they run.
const INTERPRETERS: [&str; 6] = ["node", "bun", "deno", "python", "python3", "MainThread"];

/// Returns whether a process runs the program of this preset, by its kernel name and its
/// arguments.
pub fn is_program(preset: &Preset, name: &str, words: &[String]) -> bool {
    let program = preset.command.program.as_str();
    let first = words.first().map(|word| base(word)).unwrap_or_default();
    if program == "{gt}" {
        let wanted = preset.command.args.first();
        return first == "gt" && wanted.is_some() && words.get(1) == wanted;
    }
    let program = base(program);
    if program.is_empty() || is_one_shot(preset, words) {
        return false;
    }
    if first == program || (name == program && !INTERPRETERS.contains(&first)) {
        return true;
    }
    let is_part = |part: &str| {
        let rest = part.strip_prefix(program);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
    };
    let script = words.get(1).map(String::as_str).unwrap_or_default();
    INTERPRETERS.contains(&first) && script.split('/').any(is_part)
}

/// Returns whether the process was started for a single answer (`--print`) and then exits.
fn is_one_shot(preset: &Preset, words: &[String]) -> bool {
    let flag = preset.command.print.first();
    flag.is_some_and(|flag| {
        let short = (flag == "--print").then_some("-p");
        flag.starts_with("--")
            && words
                .iter()
                .any(|word| word == flag || Some(&**word) == short)
    })
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the conversation id on the command line of a program, given to resume or to start a
/// conversation.
pub fn conversation_in(preset: &Preset, words: &[String]) -> Option<String> {
    let command = &preset.command;
    [&command.session_id, &command.resume]
        .into_iter()
        .find_map(|template| {
            let at = template.iter().position(|word| word == "{id}")?;
            let before = &template[..at];
            if before.is_empty() {
                return None;
            }
            let mut places = words.windows(at + 1);
            let found = places.find(|place| &place[..at] == before)?;
            let id = found[at].clone();
            let flag_inside = || template.contains(&id);
            (is_id(&id) && !flag_inside()).then_some(id)
        })
}

/// Returns whether a word can be the id of a conversation. Such a word is also safe as a path
/// component.
pub fn is_id(word: &str) -> bool {
    word.len() >= 8
        && !word.starts_with('-')
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns whether the command line tells the program not to ask for permissions.
pub fn never_asks(preset: &Preset, words: &[String]) -> bool {
    let flags = &preset.command.skip_permissions;
    !flags.is_empty() && flags.iter().all(|flag| words.contains(flag))
}

/// Returns whether a report that a conversation ended also means that the program ends. After
/// `/clear` and `/resume` another conversation starts in the same program.
pub fn ends_program(report: &Value) -> bool {
    let reason = report["reason"].as_str().unwrap_or_default();
    !["clear", "resume", "compact"].contains(&reason)
}

/// Returns whether the last lines of a screen show the program's exit message for this
/// conversation. Only the last lines count: a message further up may come from an earlier process
/// in the same conversation. Line breaks and indentation are ignored.
pub fn shows_farewell(preset: &Preset, screen: &str, conversation: &str) -> bool {
    const LAST_LINES: usize = 12;
    let lines = screen.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let words = last.iter().flat_map(|line| line.split_whitespace());
    let words = words.collect::<Vec<_>>().join(" ");
    let texts = preset.screen.farewell.iter();
    let mut texts = texts.map(|text| text.replace("{id}", conversation));
    texts.any(|text| words.contains(&text))
}

/// Makes a slug from the name of a folder. Falls back to `agent` if no character is usable.
pub fn slug(folder: &str) -> String {
    let mut slug = String::new();
    for mail in base(folder.trim_end_matches('/')).chars() {
        match mail {
            _ if mail.is_ascii_alphanumeric() => slug.push(mail.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(32);
    let slug = slug.trim_matches('-');
    match slug.is_empty() {
        true => "agent".to_owned(),
        false => slug.to_owned(),
    }
}

/// Adds a hook for these events to settings in Claude Code's format. Keeps everything else.
/// Idempotent: a hook that is already there is not added again. Returns `None` if the settings
/// have an unexpected structure.
pub fn with_hooks(settings: &Value, events: &[&str], command: &str, seconds: u32) -> Option<Value> {
    let mut settings = settings.clone();
    if settings.is_null() {
        settings = json!({});
    }
    let hooks = settings
        .as_object_mut()?
        .entry("hooks")
        .or_insert_with(|| json!({}))
        .as_object_mut()?;
    for event in events {
        let groups = hooks
            .entry((*event).to_owned())
            .or_insert_with(|| json!([]))
            .as_array_mut()?;
        if !groups.iter().any(|group| is_only(group, command)) {
            let hook = json!({"type": "command", "command": command, "timeout": seconds});
            groups.push(json!({"hooks": [hook]}));
        }
    }
    Some(settings)
}

/// Removes our hook, and the entries that it leaves empty. Returns `None` if nothing remains.
pub fn without_hooks(settings: &Value, command: &str) -> Option<Value> {
    let mut settings = settings.clone();
    let Some(fields) = settings.as_object_mut() else {
        return Some(settings);
    };
    if let Some(hooks) = fields.get_mut("hooks").and_then(Value::as_object_mut) {
        let before = hooks.clone();
        for groups in hooks.values_mut() {
            if let Some(groups) = groups.as_array_mut() {
                groups.retain(|group| !is_only(group, command));
            }
        }
        // Lists that were empty before stay: the person wrote them.
        let is_emptied = |event: &str, groups: &Value| {
            groups == &json!([]) && before.get(event) != Some(&json!([]))
        };
        let kept = hooks.iter().filter(|(event, it)| !is_emptied(event, it));
        *hooks = kept
            .map(|(event, it)| (event.clone(), it.clone()))
            .collect::<Map<_, _>>();
        if hooks.is_empty() && !before.is_empty() {
            fields.remove("hooks");
        }
    }
    (!fields.is_empty()).then_some(settings)
}

/// Returns whether a group of hooks holds this command and nothing else.
fn is_only(group: &Value, command: &str) -> bool {
    let hooks = group["hooks"].as_array();
    hooks.is_some_and(|hooks| matches!(hooks.as_slice(), [hook] if hook["command"] == command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{builtin_names, resolve};

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_program_is_known_by_its_words() {
        let check = |name: &str, line: &str, expected: &[&str]| {
            let found: Vec<&str> = builtin_names()
                .filter(|harness| {
                    let preset = resolve(harness, None).unwrap().value;
                    is_program(&preset, name, &words(line))
                })
                .collect();
            assert_eq!(found, expected, "{name}: {line}");
        };
        check("claude", "claude", &["claude"]);
        check(
            "claude",
            "/opt/x/claude --resume 0193a2b4-c5d6",
            &["claude"],
        );
        check("claude", "claude --print hello", &[]);
        check(
            "MainThread",
            "node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js",
            &["claude"],
        );
        check(
            "node",
            "/usr/bin/node /x/@google/gemini-cli/bundle/gemini.js",
            &["gemini"],
        );
        check("node", "node server.js", &[]);
        check("codex", "codex resume 0193a2b4-c5d6", &["codex"]);
        check("gt", "/x/gt demo-agent --session-id y", &["demo"]);
        check("gt", "gt agents", &[]);
        check("vim", "vim claude", &[]);
        check("bash", "bash claude", &[]);
        check("python3", "/usr/bin/python3 /home/u/bin/aider", &["aider"]);
    }

    #[test]
    fn the_conversation_is_read_from_the_command_line() {
        let check = |harness: &str, line: &str, expected: Option<&str>| {
            let preset = resolve(harness, None).unwrap().value;
            let found = conversation_in(&preset, &words(line));
            assert_eq!(found.as_deref(), expected, "{line}");
        };
        let id = "0193a2b4-c5d6-7abc-8def-0123456789ab";
        check("claude", &format!("claude --resume {id}"), Some(id));
        check(
            "claude",
            &format!("claude -x --session-id {id} hi"),
            Some(id),
        );
        check("claude", "claude --resume", None);
        check("claude", "claude --resume --fork-session", None);
        check("claude", "claude", None);
        check("codex", &format!("codex -c a=b resume {id}"), Some(id));
        check("codex", "codex resume --last", None);
    }

    #[test]
    fn reports_of_the_end_of_a_conversation_tell_whether_the_program_ends() {
        let check = |reason: &str, expected: bool| {
            let report = json!({"reason": reason});
            assert_eq!(ends_program(&report), expected, "{reason}");
        };
        check("prompt_input_exit", true);
        check("logout", true);
        check("other", true);
        check("clear", false);
        check("resume", false);
        assert!(ends_program(&Value::Null));
    }

    #[test]
    fn farewell_on_the_screen_counts_for_its_own_conversation() {
        let codex = resolve("codex", None).unwrap().value;
        let id = "0193a2b4-c5d6-7abc-8def-0123456789ab";
        let farewell = format!(
            "$ codex\nToken usage: total=2,508\nTo continue this session, run:\n  codex resume {id}\n$ \n\n"
        );
        assert!(shows_farewell(&codex, &farewell, id));
        // The next process in the same conversation was killed.
        let again = format!(
            "{farewell}codex resume {id}\n{}Killed\n$ ",
            "• text\n".repeat(12)
        );
        assert!(!shows_farewell(&codex, &again, id));
        assert!(!shows_farewell(&codex, &farewell, "0193a2b4-another"));
        let typed = format!("$ codex resume {id}\nKilled\n$ ");
        assert!(!shows_farewell(&codex, &typed, id), "only the command line");
        let claude = resolve("claude", None).unwrap().value;
        assert!(!shows_farewell(&claude, &farewell, id));
        let farewell = format!("\nResume this session with:\nclaude --resume {id}\n# \n");
        assert!(shows_farewell(&claude, &farewell, id));
    }

    #[test]
    fn a_folder_gives_a_slug() {
        for (folder, expected) in [
            ("/home/u/My Project", "my-project"),
            ("/srv/web.app/", "web-app"),
            ("/", "agent"),
            ("/tmp/___", "agent"),
            ("/x/日本", "agent"),
        ] {
            assert_eq!(slug(folder), expected, "{folder}");
            crate::name::check_slug(expected).unwrap();
        }
    }

    #[test]
    fn hooks_are_added_once_and_taken_out_again() {
        let own = json!({
            "permissions": {"allow": ["x"]},
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}], "Empty": []},
        });
        let added = with_hooks(&own, &["Stop", "Notification"], "gt signal", 5).unwrap();
        assert_eq!(added["hooks"]["Stop"].as_array().unwrap().len(), 2);
        assert_eq!(added["permissions"], own["permissions"]);
        let again = with_hooks(&added, &["Stop", "Notification"], "gt signal", 5);
        assert_eq!(again.as_ref(), Some(&added));
        assert_eq!(without_hooks(&added, "gt signal"), Some(own.clone()));
        assert_eq!(without_hooks(&own, "gt signal"), Some(own));
        let alone = with_hooks(&Value::Null, &["Stop"], "gt signal", 5).unwrap();
        assert_eq!(without_hooks(&alone, "gt signal"), None, "nothing is left");
        // Settings with an unexpected structure are not changed.
        assert_eq!(with_hooks(&json!([]), &["Stop"], "x", 5), None);
        assert_eq!(with_hooks(&json!({"hooks": 1}), &["Stop"], "x", 5), None);
    }
}
