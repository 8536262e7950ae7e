//! The part of the board's state that the next board begins with: theme, selection, order and
//! position. The caller stores it.

use crate::BoardTheme;
use crate::board::Board;
use crate::filter::Trait;
use crate::sort::Sort;
use gt_core::card::Column;
use gt_core::work::WorkId;
use serde::{Deserialize, Serialize};

/// Texts that are not known, such as those of a later version, are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedView {
    /// `dark` or `light`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub sort: String,
    pub reversed: bool,
    /// The selected traits, such as `state:busy`.
    pub filter: Vec<String>,
    pub hides_preview: bool,
    /// The card under the cursor, and its column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    pub column: String,
}

impl SavedView {
    /// Returns the theme that the user chose with a key.
    pub fn theme(&self) -> Option<BoardTheme> {
        match self.theme.as_deref()? {
            "dark" => Some(BoardTheme::Dark),
            "light" => Some(BoardTheme::Light),
            _ => None,
        }
    }
}

impl Board {
    /// Returns the state for the next board.
    pub fn saved_view(&self) -> SavedView {
        let theme = match self.theme {
            BoardTheme::Dark => Some("dark"),
            BoardTheme::Light => Some("light"),
            BoardTheme::Plain => None,
        };
        let lens = &self.lens;
        SavedView {
            theme: theme.map(str::to_owned),
            project: lens.project.clone(),
            sort: lens.sort.as_str().to_owned(),
            reversed: lens.reversed,
            filter: lens.filter.wanted.iter().map(Trait::token).collect(),
            hides_preview: !self.preview,
            card: self.cursor.as_ref().map(ToString::to_string),
            column: self.column.title().to_owned(),
        }
    }

    /// Restores the state of an earlier board, except for its theme. To be called before the first
    /// facts arrive.
    pub fn restore_view(&mut self, saved: &SavedView) {
        self.lens.project.clone_from(&saved.project);
        let sort = Sort::ALL.into_iter().find(|it| it.as_str() == saved.sort);
        self.lens.sort = sort.unwrap_or_default();
        self.lens.reversed = saved.reversed && sort.is_some();
        let traits = saved.filter.iter().filter_map(|token| Trait::parse(token));
        self.lens.filter.wanted = traits.collect();
        self.preview = !saved.hides_preview;
        let column = Column::ALL
            .into_iter()
            .find(|it| it.title() == saved.column);
        self.column = column.unwrap_or(self.column);
        // The cards of agents have the names of their containers as ids.
        let id = |id: &str| id.parse().unwrap_or_else(|_| WorkId::of_container(id));
        self.cursor = saved.card.as_deref().map(id);
        self.dirty = true;
    }
}
