//! The message about a result of the merge queue, for the worker and for the person or agent that
//! assigned the item.

use super::{MAX_FILES, Merge, MergeStatus, quoted, short};
use std::fmt::Write;

/// The facts about a result.
#[derive(Clone, Copy, Debug)]
pub struct MergeReport<'a> {
    pub merge: &'a Merge,
    /// The title of the item.
    pub title: &'a str,
    /// How to get the merged work into a person's checkout.
    pub delivery: Option<&'a str>,
    /// The last lines of the log of the command that failed.
    pub tail: Option<&'a str>,
    /// The agent for the repair, if there is a repair.
    pub repair: Option<Repairer<'a>>,
}

/// The agent that repairs a branch that could not be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairer<'a> {
    Agent(&'a str),
    /// No agent is assigned; the setting says whether one is started.
    None {
        repair_agents: bool,
    },
}

impl MergeReport<'_> {
    pub fn subject(&self) -> String {
        let Merge { item, base, .. } = self.merge;
        let reason = self.merge.reason.as_deref().unwrap_or("no reason is known");
        match self.merge.status {
            MergeStatus::Merged => format!("{item} is merged into {base}"),
            MergeStatus::Queued | MergeStatus::Merging => {
                format!("{item} waits to be merged: {reason}")
            }
            MergeStatus::Held => format!("{item} waits for your approval: {reason}"),
            _ => format!("{item} could not be merged: {reason}"),
        }
    }

    pub fn body(&self) -> String {
        let Merge {
            id, rig, branch, ..
        } = self.merge;
        let mut text = format!("{}: {}\n\n", self.merge.item, self.title);
        match self.merge.status {
            MergeStatus::Merged => self.merged(&mut text),
            MergeStatus::Queued | MergeStatus::Merging => {
                let reason = self.merge.reason.as_deref().unwrap_or("no reason is known");
                let _ = writeln!(text, "{branch} was not merged yet: {reason}.");
                let _ = writeln!(text, "`gt mq run {rig}` tries again.");
            }
            MergeStatus::Held => self.held(&mut text),
            _ => self.refused(&mut text),
        }
        let _ = write!(text, "\n`gt mq status {id}` shows all of it.\n");
        text
    }

    fn held(&self, text: &mut String) {
        let Merge {
            id, branch, base, ..
        } = self.merge;
        let commit = short(&self.merge.commit);
        let _ = writeln!(
            text,
            "{branch} ({commit}) changes files that are protected, because they decide what runs \
             before a merge:"
        );
        self.list_files(text);
        let _ = writeln!(
            text,
            "\nRead the changes: `gt mq diff {id}` prints them against {base}."
        );
        let _ = writeln!(
            text,
            "Then a person runs `gt mq approve {id}`, or `gt mq reject {id} --reason TEXT`."
        );
    }

    fn list_files(&self, text: &mut String) {
        let files = &self.merge.files;
        for file in files.iter().take(MAX_FILES) {
            let _ = writeln!(text, "- {}", quoted(file));
        }
        if files.len() > MAX_FILES {
            let _ = writeln!(text, "- and {} more", files.len() - MAX_FILES);
        }
    }

    fn merged(&self, text: &mut String) {
        let Merge {
            branch,
            base,
            worker,
            ..
        } = self.merge;
        let commit = self
            .merge
            .merged_as
            .as_deref()
            .unwrap_or("an unknown commit");
        let _ = writeln!(
            text,
            "{branch} of {worker} was merged into {base} by the commit {commit}."
        );
        if let Some(delivery) = self.delivery {
            let _ = writeln!(text, "{delivery}");
        }
    }

    fn refused(&self, text: &mut String) {
        let Merge {
            branch,
            base,
            worker,
            commit,
            files,
            ..
        } = self.merge;
        let reason = self.merge.reason.as_deref().unwrap_or("no reason is known");
        let commit = short(commit);
        let _ = writeln!(
            text,
            "{branch} ({commit}) of {worker} could not be merged into {base}: {reason}."
        );
        if self.merge.status == MergeStatus::Conflict && !files.is_empty() {
            text.push_str("\nIn conflict:\n");
            self.list_files(text);
        }
        if let Some(tail) = self.tail.filter(|tail| !tail.trim().is_empty()) {
            text.push_str("\nThe last lines of the command:\n\n");
            for line in tail.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        if let Some(log) = &self.merge.log {
            let _ = writeln!(text, "\nThe log is {log}");
        }
        let (Some(repair), Some(repairer)) = (&self.merge.repair, self.repair) else {
            return;
        };
        // Writing to a string cannot fail.
        let _ = match repairer {
            Repairer::Agent(agent) => writeln!(
                text,
                "\n{agent} was given the repair, {repair}. It may have been started for it, \
                 which costs what its program costs; `repair_agents = false` under [merge] \
                 in town.toml leaves repairs to you."
            ),
            Repairer::None {
                repair_agents: true,
            } => writeln!(
                text,
                "\nThe repair, {repair}, waits for an agent: the next run of the queue tries \
                 to start one, or `gt sling {repair}` does."
            ),
            Repairer::None {
                repair_agents: false,
            } => writeln!(
                text,
                "\nNo agent was started for the repair, {repair}: `gt sling {repair}` starts one."
            ),
        };
    }
}

/// Returns the last lines of a text, limited in lines and in characters.
pub fn last_lines(text: &str, lines: usize, characters: usize) -> String {
    let text = text.trim_end();
    let skipped = text.lines().count().saturating_sub(lines);
    let kept: Vec<&str> = text.lines().skip(skipped).collect();
    let kept = kept.join("\n");
    let skipped = kept.chars().count().saturating_sub(characters);
    kept.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::tests::merge;

    fn report<'a>(merge: &'a Merge, repair: Option<Repairer<'a>>) -> MergeReport<'a> {
        MergeReport {
            merge,
            title: "Write a poem",
            delivery: Some("Your checkout's `main` is unchanged."),
            tail: Some("test a ... FAILED\n1 failed\n"),
            repair,
        }
    }

    #[track_caller]
    fn check(report: MergeReport<'_>, subject: &str, parts: &[&str]) {
        assert_eq!(report.subject(), subject);
        let body = report.body();
        assert!(body.starts_with("gt-abc: Write a poem\n"), "{body}");
        assert!(body.contains("`gt mq status mr-00000`"), "{body}");
        for part in parts {
            assert!(body.contains(part), "{part}: {body}");
        }
    }

    #[test]
    fn merged_names_the_commit_and_how_to_get_it() {
        let merged = Merge {
            status: MergeStatus::Merged,
            merged_as: Some("0123456789abcdef".into()),
            ..merge()
        };
        let parts = ["by the commit 0123456789abcdef.", "checkout's `main`"];
        check(report(&merged, None), "gt-abc is merged into main", &parts);
        assert!(!report(&merged, None).body().contains("FAILED"));
    }

    #[test]
    fn conflict_names_files_and_the_agent_that_repairs() {
        let merge = Merge {
            status: MergeStatus::Conflict,
            reason: Some("2 files are in conflict with main".into()),
            files: vec!["a.rs".into(), "b\nc".into()],
            repair: Some("gt-abc.1".parse().unwrap()),
            ..merge()
        };
        let mut given = report(&merge, Some(Repairer::Agent("gastown/polecats/Nux")));
        given.tail = None;
        let subject = "gt-abc could not be merged: 2 files are in conflict with main";
        let given_to = "gastown/polecats/Nux was given the repair, gt-abc.1";
        check(
            given,
            subject,
            &["- a.rs\n- \"b\\nc\"\n", given_to, "repair_agents = false"],
        );
        let repair_agents = false;
        let left = report(&merge, Some(Repairer::None { repair_agents }));
        check(left, subject, &["`gt sling gt-abc.1` starts one"]);
    }

    #[test]
    fn failure_has_the_last_lines_of_the_command() {
        let merge = Merge {
            status: MergeStatus::Failed,
            reason: Some("`make test` failed (exit status: 2)".into()),
            files: vec!["not named".into()],
            log: Some("/x/mr-00000.log".into()),
            ..merge()
        };
        let subject = "gt-abc could not be merged: `make test` failed (exit status: 2)";
        let parts = ["    test a ... FAILED\n    1 failed\n", "/x/mr-00000.log"];
        check(report(&merge, None), subject, &parts);
        assert!(!report(&merge, None).body().contains("not named"));
    }

    #[test]
    fn last_lines_are_cut_at_the_front() {
        assert_eq!(last_lines("a\nb\nc\n\n", 2, 100), "b\nc");
        assert_eq!(last_lines("aüc", 2, 2), "üc");
        assert_eq!(last_lines("", 2, 2), "");
    }
}
