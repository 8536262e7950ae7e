//! Our lines in the user's tmux configuration. Markers that name the town enclose them, so that
//! they are installed once, replaced as a whole, and removed without a trace.

use crate::base::files;
use crate::{Result, Surroundings};
use gt_core::Problem;
use std::path::{Path, PathBuf};

/// Returns the file that tmux reads, or would read if it existed.
pub fn default_path(around: &Surroundings) -> Result<PathBuf> {
    let home = around
        .home()
        .ok_or_else(|| Problem::usage("HOME is not set").hint("name the file with `--file`"))?;
    let usual = home.join(".tmux.conf");
    let config = around
        .var("XDG_CONFIG_HOME")
        .map_or_else(|| home.join(".config"), PathBuf::from);
    let other = config.join("tmux/tmux.conf");
    let only_other = !usual.exists() && other.exists();
    Ok(if only_other { other } else { usual })
}

/// Installs the lines in the file. Returns whether that changed it.
pub fn install(path: &Path, town: &str, lines: &str) -> Result<bool> {
    let (begin, end) = markers(town);
    let block = format!("{begin}\n{lines}{end}\n");
    change(path, |text| match split(text, town)? {
        Some((before, after)) => Ok(format!("{before}{block}{after}")),
        None if text.is_empty() || text.ends_with('\n') => Ok(format!("{text}{block}")),
        None => Ok(format!("{text}\n{block}")),
    })
}

/// Removes the lines. Returns whether they were there.
pub fn remove(path: &Path, town: &str) -> Result<bool> {
    change(path, |text| {
        Ok(match split(text, town)? {
            Some((before, after)) => format!("{before}{after}"),
            None => text.to_owned(),
        })
    })
}

fn markers(town: &str) -> (String, String) {
    // A line that ends in a backslash would continue on the next.
    let town = town.escape_debug();
    (
        format!("# >>> gt, the town at {town} >>>"),
        format!("# <<< gt, the town at {town} <<<"),
    )
}

/// Returns the text before and after our lines, if they are there.
fn split<'a>(text: &'a str, town: &str) -> Result<Option<(&'a str, &'a str)>> {
    let (begin, end) = markers(town);
    let Some(start) = line_position(text, &begin) else {
        return Ok(None);
    };
    let rest = &text[start..];
    let Some(stop) = line_position(rest, &end) else {
        return Err(Problem::conflict("the end of gt's lines is missing")
            .hint(format!("remove gt's lines by hand, from {begin:?} on")));
    };
    let after = &rest[stop..];
    let after = after.split_once('\n').map_or("", |(_, after)| after);
    Ok(Some((&text[..start], after)))
}

/// Returns the position of a line with exactly this text.
fn line_position(text: &str, wanted: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == wanted {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn change(path: &Path, edit: impl FnOnce(&str) -> Result<String>) -> Result<bool> {
    // Dotfiles are often symbolic links: the link stays.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = files::read_if_there(&path)?.unwrap_or_default();
    let after = edit(&before)?;
    if after == before {
        return Ok(false);
    }
    // A new file gets the usual permissions.
    let mode = path.metadata().map(|meta| meta.permissions()).ok();
    files::write_whole(&path, after.as_bytes())?;
    if let Some(mode) = mode {
        std::fs::set_permissions(&path, mode)
            .map_err(|error| files::io_problem("write", &path, &error))?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn lines_are_put_in_once_and_taken_out_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("real.conf");
        let link = folder.path().join(".tmux.conf");
        fs::write(&file, "set -g mouse on").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&file, &link).unwrap();
        assert!(install(&link, "/a", "one\ntwo\n").unwrap());
        assert!(!install(&link, "/a", "one\ntwo\n").unwrap());
        assert!(install(&link, "/b", "three\n").unwrap());
        assert!(install(&link, "/a", "four\n").unwrap());
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            "set -g mouse on\n# >>> gt, the town at /a >>>\nfour\n# <<< gt, the town at /a <<<\n\
             # >>> gt, the town at /b >>>\nthree\n# <<< gt, the town at /b <<<\n"
        );
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert!(remove(&link, "/a").unwrap());
        assert!(remove(&link, "/b").unwrap());
        assert!(!remove(&link, "/b").unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "set -g mouse on\n");
    }

    #[test]
    fn a_half_of_the_markers_is_left_to_a_person() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".tmux.conf");
        let text = format!("{}\nx\n", markers("/a").0);
        fs::write(&file, &text).unwrap();
        assert!(install(&file, "/a", "one\n").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
