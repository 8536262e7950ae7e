//! The file with the view of the last board. The board works without it, so errors are only logged.

use gt_board::SavedView;
use gt_core::Problem;
use gt_town::Town;
use gt_town::base::files;
use gt_town::base::or_log::OrLog;
use std::path::PathBuf;

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("board-view.json")
}

/// Returns the saved view; the default one if the file is missing or damaged.
pub(super) fn read(town: &Town) -> SavedView {
    let path = path(town);
    let text = files::read_if_there(&path).or_warn("the view of the last board is unknown");
    let Some(text) = text.flatten() else {
        return SavedView::default();
    };
    let saved = serde_json::from_str(&text).map_err(|error| {
        Problem::environment(format!("{} is damaged", path.display())).caused_by(error)
    });
    let saved = saved.or_warn("the view of the last board is ignored");
    let mut saved: SavedView = saved.unwrap_or_default();
    // The rig may have been removed since.
    let rigs = &town.registry().rigs;
    saved.project = saved.project.filter(|rig| rigs.contains_key(rig));
    saved
}

pub(super) fn write(town: &Town, view: &SavedView) {
    let written = match serde_json::to_string_pretty(view) {
        Ok(text) => files::write_passing(&path(town), format!("{text}\n").as_bytes()),
        Err(error) => Err(Problem::environment("the view has no JSON").caused_by(error)),
    };
    // The next board begins with the view before.
    written.or_warn("the view of the board is not saved");
}
