//! The agent that resolves the conflicts of a merge: the task's program in the window `merge`,
//! beside the task's agent.

use super::site::TaskSite;
use super::{tag_of, tags};
use crate::Result;
use crate::lifecycle::start::{self, StartOptions};
use crate::repo::project;
use crate::terminal::containers::RESOLVER_WINDOW;
use crate::terminal::containers::tmux_problem;
use crate::terminal::windows::{self, AfterEnd, NewWindow};
use gt_core::Problem;
use gt_core::merge::all_of;
use gt_core::project::Label;
use gt_core::startup::tag;
use gt_tmux::{Command, SessionName};

/// Returns the options for its program: those of the task's agent, or those that the next agent
/// would get.
pub(super) fn start_options(site: &TaskSite<'_>) -> Result<StartOptions> {
    let container = site.container()?;
    let started = match &container {
        Some(container) => tag_of(site.town, container, tag::START)?,
        None => String::new(),
    };
    let before = StartOptions::from_tag(&started)?;
    let of_agent = container.map(|container| container.pane().tag_harness.clone());
    let of_agent = of_agent.filter(|name| !name.is_empty());
    let of_project = || {
        // The start reports settings that cannot be read.
        let project = project::of_worktree(&site.dir).ok()?;
        project
            .harness
            .name
            .as_ref()
            .map(Label::as_str)
            .map(str::to_owned)
    };
    let options = StartOptions {
        harness: before.harness.clone().or(of_agent).or_else(of_project),
        work_dir: Some(site.dir.clone()),
        keep_on_timeout: true,
        // A custom command line cannot take a prompt.
        command: None,
        ..before
    };
    // Check that the program exists before anything is begun.
    start::check(site.town, &site.agent, &options)?;
    Ok(options)
}

/// Returns whether the merge under way was given to a resolver in this container.
pub(super) fn was_opened(site: &TaskSite<'_>) -> Result<bool> {
    let Some(container) = site.container()? else {
        return Ok(false);
    };
    Ok(tag_of(site.town, &container, tags::MERGE)? == merge_head(site)?)
}

/// Clears the mark, because the next merge is a new one even if it is of the same commit.
pub(super) fn forget(site: &TaskSite<'_>) -> Result<()> {
    let Some(container) = site.container()? else {
        return Ok(());
    };
    let set = Command::new("set-option")
        .target(container.id())
        .args([tags::MERGE, ""]);
    let done = site.town.server().run(set).map(drop);
    done.map_err(|error| tmux_problem("cannot mark the container", error))
}

/// Returns the commit that is being merged.
fn merge_head(site: &TaskSite<'_>) -> Result<String> {
    site.git().run(["rev-parse", "--verify", "MERGE_HEAD"])
}

/// Returns the prompt of the resolver.
fn prompt(files: &[String]) -> String {
    format!(
        "There are merge conflicts in: {}. Please resolve these conflicts, then stage and commit.",
        all_of(files)
    )
}

/// Opens the window. Returns the harness and the warnings.
pub(super) fn open(
    site: &TaskSite<'_>,
    options: &StartOptions,
    files: &[String],
) -> Result<(String, Vec<String>)> {
    let container = site.container()?.ok_or_else(|| {
        Problem::not_found(format!("{} has no container", site.agent))
            .hint(format!("`gt task start {}` makes it", site.id))
    })?;
    let name = SessionName::try_from(container.name())
        .map_err(|error| Problem::failed(error.to_string()))?;
    let note = Command::new("set-option")
        .target(container.id())
        .args([tags::MERGE, &merge_head(site)?]);
    let mut ran = String::new();
    let prompt = prompt(files);
    let warnings = start::start_beside(
        site.town,
        &site.agent,
        RESOLVER_WINDOW,
        options,
        &prompt,
        |opening| {
            opening.harness.clone_into(&mut ran);
            let window = NewWindow {
                name: RESOLVER_WINDOW,
                command: opening.line,
                sandbox: None,
                dir: &site.dir,
                env: opening.env,
                after_end: AfterEnd::StayIfFailed,
                tags: opening.tags,
            };
            windows::open(site.town, &name, &window, vec![note])
        },
    )?;
    Ok((ran, warnings))
}
