//! A copy of a file of settings that a person edits; it replaces the file if it is valid.

use super::{ConfigFile, ConfigTarget};
use crate::Result;
use crate::base::clock::Clock;
use crate::base::error_enum::error_enum;
use crate::base::files;
use gt_core::Problem;
use gt_core::settings::commented;
use std::path::{Path, PathBuf};

/// An edit that did not replace the file.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not valid as this file. A further edit can correct it.
    #[error(transparent)]
    Invalid(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(EditError: Invalid, Other);

/// A copy that is being edited.
#[derive(Debug)]
pub struct ConfigEdit {
    path: PathBuf,
    /// Text of the file when the copy was made; absent if there was no file.
    original: Option<String>,
    /// Text that the copy was made with.
    offered: String,
}

impl ConfigEdit {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl ConfigFile<'_> {
    /// Makes a copy of the file for an editor. A file that does not exist is offered with every
    /// setting as a comment.
    pub fn begin_edit(&self) -> Result<ConfigEdit> {
        let original = files::read_if_there(&self.path)?;
        let offered = match &original {
            Some(text) => text.clone(),
            None => self.new_text()?,
        };
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let id = Clock::default().new_id().simple();
        // An editor recognises the format by the end of the name.
        let name = name.trim_start_matches('.');
        let path = self
            .root
            .join(".runtime/edits")
            .join(format!("{id}-{name}"));
        files::write_whole(&path, offered.as_bytes())?;
        Ok(ConfigEdit {
            path,
            original,
            offered,
        })
    }

    /// Replaces the file by the edited copy if it is valid, and removes the copy. Returns false if
    /// the text is unchanged. After an error the copy stays.
    pub fn finish_edit(&self, edit: &ConfigEdit) -> Result<bool, EditError> {
        let text = files::read_if_there(&edit.path)?
            .ok_or_else(|| Problem::not_found(format!("{} was removed", edit.path.display())))?;
        if text == edit.offered {
            files::remove_if_there(&edit.path)?;
            return Ok(false);
        }
        // Errors refer to the lines of the copy, which are those of the new file.
        self.check(&text).map_err(EditError::Invalid)?;
        let _lock = self.lock()?;
        if files::read_if_there(&self.path)? != edit.original {
            return Err(Problem::conflict(format!(
                "{} was changed while you edited it",
                self.path.display()
            ))
            .hint(format!("compare it with {}", edit.path.display()))
            .into());
        }
        self.replace(&text)?;
        files::remove_if_there(&edit.path)?;
        Ok(true)
    }

    /// Returns the text that a new file is offered with.
    fn new_text(&self) -> Result<String> {
        let (what, below) = match &self.target {
            ConfigTarget::Role { role, rig: None } => {
                (format!("the role {role}"), "the built-in ones")
            }
            ConfigTarget::Role {
                role,
                rig: Some(rig),
            } => (
                format!("the role {role} in the rig {rig}"),
                "the town's and the built-in ones",
            ),
            ConfigTarget::Harness(name) => (format!("the harness {name}"), "the built-in ones"),
            _ => ("this project".to_owned(), "the defaults"),
        };
        // A harness that the town is about to add has no settings yet.
        let defaults = self.settings().unwrap_or_default();
        let settings = commented(self.target.scope(), "", |row| {
            self.default_of(&defaults, row)
        });
        Ok(format!(
            "# Settings of {what}, over {below}. To change one, remove the # before it.\n\n{settings}"
        ))
    }
}
