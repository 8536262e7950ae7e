//! Changes one value in the text of a file. Comments, order and spacing of everything else stay.

use super::kind::shown;
use super::resolve::{toml_value, value_at};
use toml::{Table, Value};
use toml_edit::{Document, DocumentMut, Item, TableLike};

/// Returns the text with a value set. A line of the template that has the key as a comment becomes
/// the setting; otherwise a new key goes to the end of its table.
pub fn set(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    let changed = match has(text, path)? {
        true => replace(text, path, value)?,
        false => match uncomment(text, path, value) {
            Some(changed) => changed,
            None => insert(text, path, value)?,
        },
    };
    match find(&changed, path)? {
        Some(found) if found == *value => Ok(changed),
        _ => Err(format!("{} cannot be set in this file", path.join("."))),
    }
}

/// Returns the text without a value. The line becomes a comment with the default, if there is one.
pub fn unset(text: &str, path: &[String], default: Option<&str>) -> Result<String, String> {
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let mut table: &dyn TableLike = document.as_table();
    let mut is_inline = false;
    let mut place = None;
    for name in path {
        let (key, item) = table.get_key_value(name).ok_or("it is not set")?;
        is_inline |= item.is_inline_table() && Some(name) != path.last();
        place = Some((key, item));
        match item.as_table_like() {
            Some(inner) => table = inner,
            None => break,
        }
    }
    let line = place.and_then(|(key, item)| {
        let end = item.as_value()?.span()?.end;
        Some((key.span()?.start, item.as_value()?.span()?.start, end))
    });
    let changed = match line {
        Some((key, value, end)) if !is_inline => {
            let begin = text[..key].rfind('\n').map_or(0, |at| at + 1);
            let end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
            let comment = default.map_or_else(String::new, |default| {
                format!("#{}{default}\n", text[begin..value].trim_start())
            });
            [&text[..begin], &comment, &text[end..]].concat()
        }
        _ => remove(text, path)?,
    };
    match find(&changed, path)? {
        None => Ok(changed),
        Some(_) => Err(format!(
            "{} cannot be removed from this file",
            path.join(".")
        )),
    }
}

fn names(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn find(text: &str, path: &[String]) -> Result<Option<Value>, String> {
    let table: Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    Ok(value_at(&table, &names(path)).cloned())
}

fn has(text: &str, path: &[String]) -> Result<bool, String> {
    find(text, path).map(|found| found.is_some())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| error.to_string())
}

/// Converts a value for insertion into a document.
fn item(value: &Value) -> Result<toml_edit::Value, String> {
    let text = shown(value);
    text.parse()
        .map_err(|error: toml_edit::TomlError| error.to_string())
}

/// Replaces an existing value.
fn replace(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    let mut document = parse(text)?;
    let mut place: &mut Item = document.as_item_mut();
    for name in path {
        let table = place.as_table_like_mut().ok_or("it is not in a table")?;
        place = table.get_mut(name).ok_or("it is not set")?;
    }
    match (place.as_value_mut(), value) {
        (Some(old), value) => {
            let decor = old.decor().clone();
            *old = item(value)?;
            *old.decor_mut() = decor;
        }
        (None, Value::Table(entries)) => {
            let table = place.as_table_like_mut().ok_or("it is not a table")?;
            table.clear();
            for (name, value) in entries {
                table.insert(name, Item::Value(item(value)?));
            }
        }
        (None, _) => return Err("it is a table".to_owned()),
    }
    Ok(document.to_string())
}

/// Replaces a comment such as `#notify.desktop = false` by the setting.
fn uncomment(text: &str, path: &[String], value: &Value) -> Option<String> {
    let wanted = path.join(".");
    let mut header = String::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let inside = bare
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next());
        if let Some(name) = inside.filter(|_| !bare.starts_with("[[")) {
            header = format!("{}.", name.trim());
        }
        let setting = bare.strip_prefix('#').and_then(|rest| rest.split_once('='));
        // A comment in words stays.
        let key = setting.filter(|(_, value)| toml_value(value).is_some());
        let key = key.map(|(key, _)| key.trim());
        if let Some(key) = key.filter(|key| format!("{header}{key}") == wanted) {
            let end = begin + line.len();
            let changed = format!(
                "{}{key} = {}\n{}",
                &text[..begin],
                shown(value),
                &text[end..]
            );
            // Text inside a string may look like such a comment.
            let is_set = find(&changed, path).is_ok_and(|found| found.as_ref() == Some(value));
            return is_set.then_some(changed);
        }
        begin += line.len();
    }
    None
}

/// Adds a key at the end of its table, and the table at the end of the file.
fn insert(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    let mut document = parse(text)?;
    let (key, tables) = path.split_last().ok_or("there is no key")?;
    let is_new = !tables.is_empty() && {
        let whole: Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        value_at(&whole, &names(tables)).is_none()
    };
    let mut above = String::new();
    if is_new {
        // Comments at the end of the file stay above the new table.
        above = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing("");
        if above.is_empty() && !text.is_empty() {
            above = "\n".to_owned();
        }
    }
    let mut place: &mut dyn TableLike = document.as_table_mut();
    for (depth, name) in tables.iter().enumerate() {
        let is_last = depth + 1 == tables.len();
        if place.get(name).is_none() {
            let mut table = toml_edit::Table::new();
            table.set_implicit(!is_last);
            if is_last && is_new {
                let gap = if above.trim().is_empty() { "" } else { "\n" };
                table.decor_mut().set_prefix(format!("{above}{gap}"));
            }
            place.insert(name, Item::Table(table));
        }
        let inner = place.get_mut(name).ok_or("it cannot be added")?;
        place = inner.as_table_like_mut().ok_or("its table is a value")?;
    }
    place.insert(key, Item::Value(item(value)?));
    Ok(document.to_string())
}

/// Removes a table, or a key of an inline table.
fn remove(text: &str, path: &[String]) -> Result<String, String> {
    let mut document = parse(text)?;
    let (key, tables) = path.split_last().ok_or("there is no key")?;
    let mut place: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        let inner = place.get_mut(name).ok_or("it is not set")?;
        place = inner.as_table_like_mut().ok_or("its table is a value")?;
    }
    let removed = place.remove(key);
    let comment = removed.as_ref().and_then(Item::as_table);
    let comment = comment.and_then(|table| table.decor().prefix()?.as_str());
    if let Some(comment) = comment.filter(|comment| comment.contains('#')) {
        let trailing = document.trailing().as_str().unwrap_or_default();
        let trailing = format!("{comment}{trailing}");
        document.set_trailing(trailing);
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(key: &str) -> Vec<String> {
        key.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn set_keeps_comments_and_order() {
        let check = |text: &str, key: &str, value: Value, expected: &str| {
            assert_eq!(set(text, &path(key), &value).as_deref(), Ok(expected));
        };
        let text = "# Mine.\nname = 'x' # short\n\n[tmux]\n# Socket.\nsocket = \"\"   # none\n";
        check(
            text,
            "tmux.socket",
            Value::from("gt"),
            "# Mine.\nname = 'x' # short\n\n[tmux]\n# Socket.\nsocket = \"gt\"   # none\n",
        );
        check(
            text,
            "tmux.history_limit",
            Value::from(5),
            "# Mine.\nname = 'x' # short\n\n[tmux]\n# Socket.\nsocket = \"\"   # none\nhistory_limit = 5\n",
        );
        check(
            "name = 'x'\n",
            "rigs.a.merge.batch",
            Value::from(2),
            "name = 'x'\n\n[rigs.a.merge]\nbatch = 2\n",
        );
        check(
            "[a]\nb = 1\n# The end.\n",
            "notify.desktop",
            Value::from(true),
            "[a]\nb = 1\n# The end.\n\n[notify]\ndesktop = true\n",
        );
        check(
            "",
            "notify.bell",
            Value::from(true),
            "[notify]\nbell = true\n",
        );
        check(
            "n = {a = 1}\n",
            "n.b",
            Value::from(2),
            "n = {a = 1, b = 2 }\n",
        );
        check(
            "[t.a]\nb = 1\n",
            "t.c",
            Value::from(2),
            "[t]\nc = 2\n[t.a]\nb = 1\n",
        );
    }

    #[test]
    fn set_turns_the_comment_of_a_new_file_into_the_setting() {
        let text = "# Desktop.\n#notify.desktop = false\n# End.\n\n[tmux]\n#history_limit = 10\n";
        let changed = set(text, &path("notify.desktop"), &Value::from(true)).unwrap();
        assert_eq!(
            changed,
            text.replace("#notify.desktop = false", "notify.desktop = true")
        );
        let changed = set(&changed, &path("tmux.history_limit"), &Value::from(7)).unwrap();
        assert!(
            changed.ends_with("[tmux]\nhistory_limit = 7\n"),
            "{changed}"
        );
        let changed = set(&changed, &path("notify.bell"), &Value::from(true)).unwrap();
        assert!(
            changed.contains("notify.desktop = true\nnotify.bell = true\n"),
            "{changed}"
        );
        let changed = unset(&changed, &path("notify.bell"), None).unwrap();
        let back = unset(&changed, &path("notify.desktop"), Some("false")).unwrap();
        let back = unset(&back, &path("tmux.history_limit"), Some("10")).unwrap();
        assert_eq!(back, text);
        // A comment in words stays.
        let text = "[save]\n# keep = how many are kept\n";
        let changed = set(text, &path("save.keep"), &Value::from(3)).unwrap();
        assert!(
            changed.contains("# keep = how many") && changed.contains("\nkeep = 3"),
            "{changed}"
        );
        // A string that looks like a comment stays.
        let text = "a = '''\n#b = 1\n'''\n";
        let changed = set(text, &path("b"), &Value::from(2)).unwrap();
        assert_eq!(changed, "a = '''\n#b = 1\n'''\nb = 2\n");
    }

    #[test]
    fn unset_removes_only_its_own_lines() {
        let check = |text: &str, key: &str, expected: &str| {
            assert_eq!(
                unset(text, &path(key), None).as_deref(),
                Ok(expected),
                "{key}"
            );
        };
        let text = "# A.\na = 1\n# B.\nb = [\n  'x', # why\n]\n# C.\nc = { d = 1, e = 2 }\n\n# F.\n[f.g]\nh = 1\n";
        check(text, "a", &text.replace("a = 1\n", ""));
        check(text, "b", &text.replace("b = [\n  'x', # why\n]\n", ""));
        check(text, "c.d", &text.replace("{ d = 1, e = 2 }", "{ e = 2 }"));
        check(text, "f.g.h", &text.replace("h = 1\n", ""));
        check(
            text,
            "f.g",
            &text.replace("\n# F.\n[f.g]\nh = 1\n", "\n# F.\n"),
        );
        assert!(unset(text, &path("x.y"), None).is_err());
    }
}
