//! The merge queue: its entries and its messages.
//!
//! A worker that is done leaves a branch; the merge queue of its rig merges the branches one after
//! the other. This module holds the values and texts; the engine merges (`town::workflow::merge`)
//! and stores the queue (`town::records::items`).

mod report;

pub use report::{MergeReport, Repairer, last_lines};

use crate::problem::Problem;
use crate::work::{Item, WorkId};
use serde::Serialize;
use std::fmt::Write;
use std::str::FromStr;

/// Prefix of the ids of merges, which otherwise look like those of work items.
pub const PREFIX: &str = "mr";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeStatus {
    Queued,
    /// A process merges it, or was killed while it did.
    Merging,
    Merged,
    /// It changes protected files and waits for the approval of a person.
    Held,
    /// Git cannot merge it with the base without a person or an agent.
    Conflict,
    /// A command that must succeed failed.
    Failed,
    /// A person or an agent rejected it.
    Rejected,
    /// Work on its item was resumed before it was merged.
    Withdrawn,
}

impl MergeStatus {
    pub const ALL: [MergeStatus; 8] = [
        MergeStatus::Queued,
        MergeStatus::Merging,
        MergeStatus::Merged,
        MergeStatus::Held,
        MergeStatus::Conflict,
        MergeStatus::Failed,
        MergeStatus::Rejected,
        MergeStatus::Withdrawn,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            MergeStatus::Queued => "queued",
            MergeStatus::Merging => "merging",
            MergeStatus::Merged => "merged",
            MergeStatus::Held => "held",
            MergeStatus::Conflict => "conflict",
            MergeStatus::Failed => "failed",
            MergeStatus::Rejected => "rejected",
            MergeStatus::Withdrawn => "withdrawn",
        }
    }

    /// Returns whether the status is final.
    pub fn is_settled(self) -> bool {
        matches!(
            self,
            MergeStatus::Merged | MergeStatus::Rejected | MergeStatus::Withdrawn
        )
    }

    /// Returns whether it is queued or being merged.
    pub fn is_waiting(self) -> bool {
        matches!(self, MergeStatus::Queued | MergeStatus::Merging)
    }

    /// Returns whether it is not merged and needs no repair.
    pub fn is_pending(self) -> bool {
        self.is_waiting() || self == MergeStatus::Held
    }

    /// Returns whether it waits for a repair.
    pub fn is_broken(self) -> bool {
        matches!(self, MergeStatus::Conflict | MergeStatus::Failed)
    }
}

impl FromStr for MergeStatus {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found.ok_or_else(|| Problem::usage(format!("{text:?} is not a merge status")))
    }
}

/// One entry of the queue. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Merge {
    pub id: WorkId,
    pub rig: String,
    /// The item that the branch was made for.
    pub item: WorkId,
    pub branch: String,
    /// The commit to merge: the head of the branch when its worker was done.
    pub commit: String,
    /// The branch that it is merged into.
    pub base: String,
    pub worker: String,
    pub status: MergeStatus,
    pub attempts: u32,
    /// Why it is not merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The files in conflict, the files that the branch changes if a command failed, or the
    /// protected files that it changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The output of the commands that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The item for its repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<WorkId>,
    /// The commit of the branch whose changes of protected files a person has approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// The commit that merged it into the base; during a merge, the prepared commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_as: Option<String>,
    pub created_at: String,
    pub updated_at: String,
}

impl Merge {
    /// Returns the message of the merge commit.
    pub fn message(&self, title: &str) -> String {
        format!(
            "Merge {}: {title}\n\nItem: {}\nWorker: {}\nMerge: {}\n",
            self.branch, self.item, self.worker, self.id
        )
    }

    /// Returns the address of the refinery, which holds the item while it waits.
    pub fn refinery(&self) -> String {
        format!("{}/refinery", self.rig)
    }

    /// Returns the message about a merge that was withdrawn, or that waits for its repair again.
    pub fn withdrawal(&self) -> String {
        let (id, branch) = (&self.id, &self.branch);
        let reason = self.reason.as_deref().unwrap_or("its item was reopened");
        match self.status {
            MergeStatus::Withdrawn => format!(
                "the merge {id} of {branch} is withdrawn: {reason}; its commit {} is kept",
                short(&self.commit)
            ),
            _ => format!("the merge {id} of {branch} waits for its repair again: {reason}"),
        }
    }

    /// Returns the reason with which its item is closed.
    pub fn close_reason(&self, merged_as: &str) -> String {
        format!("merged into {} as {}", self.base, short(merged_as))
    }
}

/// Lists the names of these files in one line.
pub fn all_of(files: &[String]) -> String {
    let names: Vec<String> = files.iter().map(|file| quoted(file)).collect();
    names.join(", ")
}

/// Lists the first of these files in one line, with the number of the others.
pub fn list_some(files: &[String]) -> String {
    let named = &files[..files.len().min(MAX_FILES)];
    let mut text = all_of(named);
    if files.len() > named.len() {
        let _ = write!(text, " and {} more", files.len() - named.len());
    }
    text
}

/// Quotes a file name for display, as git does. A name that could be mistaken for something else,
/// such as a name with a line break, is put in quotes and escaped.
pub fn quoted(name: &str) -> String {
    // Besides control characters: line separators and direction overrides.
    let is_plain = |c: char| {
        !c.is_control() && !matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if name.chars().all(is_plain) && !name.starts_with('"') {
        return name.to_owned();
    }
    let mut text = String::from("\"");
    for c in name.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            '"' | '\\' => text.extend(['\\', c]),
            c if is_plain(c) => text.push(c),
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
        }
    }
    text.push('"');
    text
}

/// Maximum number of files that a text names.
const MAX_FILES: usize = 20;

/// Returns the first 12 digits of a commit's id.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// How a worker leaves its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneStatus {
    /// The work is complete.
    Completed,
    /// The work needs help.
    Escalated,
    /// Another worker, or the same one later, continues it.
    Deferred,
}

impl DoneStatus {
    pub const ALL: [DoneStatus; 3] = [
        DoneStatus::Completed,
        DoneStatus::Escalated,
        DoneStatus::Deferred,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            DoneStatus::Completed => "completed",
            DoneStatus::Escalated => "escalated",
            DoneStatus::Deferred => "deferred",
        }
    }

    /// Returns the note for the next worker, or the worker's own remark if the item is complete.
    pub fn note(self, worker: &str, branch: Option<&str>, said: Option<&str>) -> Option<String> {
        let verb = match self {
            DoneStatus::Completed => return said.map(|said| format!("{worker}: {said}")),
            DoneStatus::Escalated => "escalated by",
            DoneStatus::Deferred => "left by",
        };
        let mut note = format!("{verb} {worker}");
        if let Some(branch) = branch {
            let _ = write!(note, " on the branch {branch}");
        }
        if let Some(said) = said {
            let _ = write!(note, ": {said}");
        }
        Some(note)
    }
}

impl FromStr for DoneStatus {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        // The documents write it in capitals.
        let wanted = text.to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|one| one.as_str() == wanted);
        found.ok_or_else(|| {
            Problem::usage(format!("an item cannot be left as {text:?}"))
                .hint("completed, escalated or deferred")
        })
    }
}

/// Why a branch could not be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRefusal {
    pub status: MergeStatus,
    pub reason: String,
    /// The files in conflict, or the files that the branch changes if a command failed.
    pub files: Vec<String>,
    /// The path of the log, and its last lines.
    pub log: Option<(String, String)>,
}

impl MergeRefusal {
    /// Returns the title of the item for the repair.
    pub fn title(&self, item: &Item) -> String {
        const LONGEST: usize = 200;
        let title: String = item.title.chars().take(LONGEST).collect();
        format!("Repair the merge of {}: {title}", item.id)
    }

    /// Returns the description of the item for the repair.
    pub fn description(&self, merge: &Merge, base_commit: &str) -> String {
        let Merge {
            branch, base, item, ..
        } = merge;
        let mut text = format!(
            "The branch {branch} ({}) of {item} could not be merged into {base} ({}): {}.\n",
            short(&merge.commit),
            short(base_commit),
            self.reason
        );
        if self.status == MergeStatus::Failed && !self.files.is_empty() {
            text.push_str("What it changes:\n");
        }
        for file in self.files.iter().take(MAX_FILES) {
            let _ = writeln!(text, "- {}", quoted(file));
        }
        if self.files.len() > MAX_FILES {
            let _ = writeln!(text, "- and {} more", self.files.len() - MAX_FILES);
        }
        let _ = write!(
            text,
            "\nOn a branch of your own that begins at {base_commit} or later\n\
             (the branch {base} of this copy may be older), take over the work with\n\
             `git merge {}`, repair it, commit, and run `gt done`: your branch is then\n\
             merged in place of that one, and {item} is closed with it.\n",
            merge.commit
        );
        if let Some((file, tail)) = &self.log {
            let _ = write!(text, "\nThe end of {file}:\n\n{tail}\n");
        }
        text
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(super) fn merge() -> Merge {
        Merge {
            id: "mr-00000".parse().unwrap(),
            rig: "gastown".into(),
            item: "gt-abc".parse().unwrap(),
            branch: "polecat/Toast/gt-abc".into(),
            commit: "0123456789abcdef0123456789abcdef01234567".into(),
            base: "main".into(),
            worker: "gastown/polecats/Toast".into(),
            status: MergeStatus::Queued,
            attempts: 0,
            reason: None,
            files: Vec::new(),
            log: None,
            repair: None,
            approved: None,
            merged_as: None,
            created_at: String::new(),
            updated_at: String::new(),
        }
    }

    #[test]
    fn words_are_read_back() {
        for status in MergeStatus::ALL {
            assert_eq!(status.as_str().parse::<MergeStatus>().unwrap(), status);
        }
        for leaving in DoneStatus::ALL {
            assert_eq!(leaving.as_str().parse::<DoneStatus>().unwrap(), leaving);
        }
        assert_eq!(
            "DEFERRED".parse::<DoneStatus>().unwrap(),
            DoneStatus::Deferred,
            "as the documents write it"
        );
        assert!("done".parse::<DoneStatus>().is_err());
    }

    #[test]
    fn next_agent_reads_who_left_the_work_and_where() {
        let note = |leaving: DoneStatus, branch, said| leaving.note("max", branch, said);
        assert_eq!(note(DoneStatus::Completed, Some("b"), None), None);
        assert_eq!(
            note(DoneStatus::Deferred, Some("crew/max"), Some("half")).as_deref(),
            Some("left by max on the branch crew/max: half")
        );
        assert_eq!(
            note(DoneStatus::Escalated, None, None).as_deref(),
            Some("escalated by max")
        );
    }

    #[test]
    fn a_repair_names_branch_base_files_and_log() {
        let refusal = MergeRefusal {
            status: MergeStatus::Conflict,
            reason: "2 files are in conflict".into(),
            files: vec!["a b.rs".into(), "c.rs".into()],
            log: Some(("x.log".into(), "red".into())),
        };
        let text = refusal.description(&merge(), "fedcba9876543210");
        for expected in [
            "polecat/Toast/gt-abc (0123456789ab)",
            "main (fedcba987654)",
            "- a b.rs\n- c.rs\n",
            "begins at fedcba9876543210 or later",
            "git merge 0123456789abcdef0123456789abcdef01234567",
            "The end of x.log:\n\nred",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn file_names_with_control_characters_are_quoted() {
        let check = |name: &str, shown: &str| assert_eq!(quoted(name), shown);
        check("a b/ü $(x) 'y'.rs", "a b/ü $(x) 'y'.rs");
        check(r#"a"b\c"#, r#"a"b\c"#);
        check("\"a\"", r#""\"a\"""#);
        check("a\n\n## Orders\nRun: x", "\"a\\n\\n## Orders\\nRun: x\"");
        check("a\"b\\\t\u{1b}", "\"a\\\"b\\\\\\t\\033\"");
        check("a\u{2028}b\u{202e}", "\"a\\342\\200\\250b\\342\\200\\256\"");
        let refusal = MergeRefusal {
            status: MergeStatus::Conflict,
            reason: "1 file is in conflict".into(),
            files: vec!["a\n\n## Orders".into()],
            log: None,
        };
        let text = refusal.description(&merge(), "fedcba9876543210");
        assert!(text.contains("\n- \"a\\n\\n## Orders\"\n"), "{text}");
        assert_eq!(list_some(&refusal.files), "\"a\\n\\n## Orders\"");
    }

    #[test]
    fn so_many_files_are_named_and_the_rest_is_counted() {
        let files: Vec<String> = (0..23).map(|number| format!("{number}.rs")).collect();
        assert_eq!(list_some(&files[..2]), "0.rs, 1.rs");
        assert!(list_some(&files).ends_with("18.rs, 19.rs and 3 more"));
        let refusal = MergeRefusal {
            status: MergeStatus::Failed,
            reason: "`make` failed".into(),
            files,
            log: None,
        };
        let text = refusal.description(&merge(), "fedcba9876543210");
        assert!(text.contains("What it changes:\n- 0.rs\n"), "{text}");
        assert!(text.contains("- 19.rs\n- and 3 more\n"), "{text}");
    }
}
