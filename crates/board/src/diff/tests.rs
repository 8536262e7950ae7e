use super::*;

const TEXT: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,4 +1,4 @@ fn main\n fn main() {\n-\told();\n-\tolder();\n+\tnew();\n \n+}\ndiff --git a/a b b/a b\nnew file mode 100644\n--- /dev/null\n+++ b/a b\n@@ -0,0 +1 @@\n+--- x\n\\ No newline at end of file\n";

#[test]
fn files_lines_and_counts_are_read() {
    let diff = ParsedDiff::parse(TEXT);
    let files: Vec<(&str, usize, usize)> = diff
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.added, file.removed))
        .collect();
    assert_eq!(files, [("src/a.rs", 2, 2), ("a b", 1, 0)]);
    let rows: Vec<(RowKind, Option<u32>, Option<u32>, &str)> = diff
        .rows
        .iter()
        .map(|row| (row.kind, row.old, row.new, row.text.trim()))
        .collect();
    let expected = [
        (RowKind::File, None, None, "src/a.rs"),
        (RowKind::Hunk, None, None, "@@ -1,4 +1,4 @@ fn main"),
        (RowKind::Context, Some(1), Some(1), "fn main() {"),
        (RowKind::Removed, Some(2), None, "old();"),
        (RowKind::Removed, Some(3), None, "older();"),
        (RowKind::Added, None, Some(2), "new();"),
        (RowKind::Context, Some(4), Some(3), ""),
        (RowKind::Added, None, Some(4), "}"),
        (RowKind::File, None, None, "a b"),
        (RowKind::Remark, None, None, "new file mode 100644"),
        (RowKind::Hunk, None, None, "@@ -0,0 +1 @@"),
        (RowKind::Added, None, Some(1), "--- x"),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn removed_lines_are_beside_the_lines_that_replace_them() {
    let diff = ParsedDiff::parse(TEXT);
    let texts: Vec<String> = diff
        .pairs
        .iter()
        .map(|(old, new)| {
            let text = |row: &Option<usize>| row.map_or("-", |row| diff.rows[row].text.trim());
            format!("{} | {}", text(old), text(new))
        })
        .collect();
    let expected = [
        "src/a.rs | src/a.rs",
        "@@ -1,4 +1,4 @@ fn main | @@ -1,4 +1,4 @@ fn main",
        "fn main() { | fn main() {",
        "old(); | new();",
        "older(); | -",
        " | ",
        "- | }",
        "a b | a b",
        "new file mode 100644 | new file mode 100644",
        "@@ -0,0 +1 @@ | @@ -0,0 +1 @@",
        "- | --- x",
    ];
    assert_eq!(texts, expected);
    for row in 0..diff.rows.len() {
        for side_by_side in [false, true] {
            let position = diff.position(row, side_by_side);
            let found = diff.row_at(position, side_by_side);
            assert_eq!(diff.position(found, side_by_side), position, "{row}");
        }
    }
}

#[test]
fn line_is_found_again_in_another_version_of_the_diff() {
    let diff = ParsedDiff::parse(TEXT);
    for row in 0..diff.rows.len() {
        if let Some(place) = diff.place(row) {
            assert_eq!(diff.find(&place), Some(row), "{place}");
        }
    }
    let gone = DiffPlace {
        path: "a b".to_owned(),
        line: 99,
        is_old: false,
    };
    assert_eq!(diff.find(&gone), Some(diff.files[1].row));
}

#[test]
fn message_has_the_place_and_the_line_of_each_comment() {
    let diff = ParsedDiff::parse(TEXT);
    let comment = |row: usize, text: &str| LineComment {
        place: diff.place(row).expect("a line"),
        quoted: diff.rows[row].text.clone(),
        text: text.to_owned(),
        sent_by: None,
    };
    assert_eq!(
        message(&[comment(3, "Keep it"), comment(5, "Call it later")]),
        "2 comments on your diff:\n\nsrc/a.rs:2 (removed line)\n>         old();\nKeep it\n\n\
         src/a.rs:2\n>         new();\nCall it later"
    );
}

#[test]
fn text_that_is_no_diff_has_no_lines() {
    for text in [
        "",
        "\n",
        "hello\nworld",
        "@@ -x +y @@",
        "diff --git ",
        "+++ b/",
    ] {
        let diff = ParsedDiff::parse(text);
        assert!(diff.rows.iter().all(|row| row.old.or(row.new).is_none()));
    }
}
