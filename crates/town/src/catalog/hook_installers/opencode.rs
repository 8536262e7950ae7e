//! Hooks of opencode: it takes plugins through its environment, in addition to those in the user's
//! folder.
//!
//! With any plugin, its start waits for a package that it installs in the background. If that
//! package is missing and the network is slow or down, the screen stays blank for a minute. The
//! first start therefore runs without our plugin, and the state comes from the screen. Measured on
//! 1.18.33.

use super::{Wiring, compact_words, file};
use crate::base::files;
use crate::{Result, Surroundings, Town};
use gt_core::role::OnCompact;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const PLUGIN: &str = include_str!("opencode.js");
const VARIABLE: &str = "OPENCODE_CONFIG_CONTENT";

/// Returns whether the package is installed.
pub(super) fn fits(town: &Town) -> bool {
    user_folder(town.around()).is_some_and(|dir| dir.join("node_modules").is_dir())
}

pub(super) fn wire(town: &Town, on_compact: OnCompact) -> Result<Wiring> {
    let around = town.around();
    let path = file(town, "opencode", "js", on_compact);
    let gt = json!(around.gt.to_string_lossy()).to_string();
    let handoff = json!(compact_words(on_compact)).to_string();
    let plugin = PLUGIN
        .replace("\"{handoff}\"", &handoff)
        .replace("\"{gt}\"", &gt);
    files::write_if_changed(&path, &plugin)?;
    // The program reports invalid settings of the caller itself.
    let config = around.var(VARIABLE).unwrap_or("{}");
    let env = with_plugin(config, &path).map(|config| (VARIABLE.to_owned(), config));
    Ok(Wiring {
        args: Vec::new(),
        env: env.into_iter().collect(),
    })
}

/// Returns the folder of the user's settings and the package.
fn user_folder(around: &Surroundings) -> Option<PathBuf> {
    let config = match around.var("XDG_CONFIG_HOME") {
        Some(dir) => PathBuf::from(dir),
        None => around.home()?.join(".config"),
    };
    Some(config.join("opencode"))
}

/// Returns the settings with our plugin added; `None` if they are not valid, which the program
/// reports itself.
fn with_plugin(config: &str, plugin: &Path) -> Option<String> {
    let mut config: Value = serde_json::from_str(config).ok()?;
    let plugins = config.as_object_mut()?.entry("plugin").or_insert(json!([]));
    let address = format!("file://{}", encoded(&plugin.to_string_lossy()));
    plugins.as_array_mut()?.push(json!(address));
    Some(config.to_string())
}

/// Percent-encodes a path for a URL.
fn encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    path.bytes()
        .map(|byte| match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_plugin_is_added_to_the_callers_settings() {
        let check = |config: &str, expected: Option<&str>| {
            let got = with_plugin(config, Path::new("/t/x.js"));
            assert_eq!(got.as_deref(), expected);
        };
        check("{}", Some(r#"{"plugin":["file:///t/x.js"]}"#));
        check(
            r#"{"model":"m","plugin":["a"]}"#,
            Some(r#"{"model":"m","plugin":["a","file:///t/x.js"]}"#),
        );
        let odd = with_plugin("{}", Path::new("/a b#%ü/x.js"));
        let expected = r#"{"plugin":["file:///a%20b%23%25%C3%BC/x.js"]}"#;
        assert_eq!(odd.as_deref(), Some(expected));
        check("no json", None);
        check(r#"{"plugin":3}"#, None);
    }
}
