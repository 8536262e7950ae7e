use super::*;

#[test]
fn wide_characters_and_control_characters() {
    let mut table = Table::new(&["A", "B"]);
    table.row(["日本".into(), "x".into()]);
    table.row(["a\u{1b}[2J".into(), "y".into()]);
    let text = table.render(Paint { on: false });
    assert_eq!(text, "A      B\n日本   x\na\u{fffd}[2J  y\n");
}

#[test]
fn address_keeps_its_end_and_a_kept_column_its_width() {
    let mut table = Table::new(&["ID", "AGENT", "STARTED", "LASTED"]).keeping(2);
    table.row([
        "01a1f038-8e11-7647".into(),
        Cell::address("gastown/polecats/Toast"),
        "2026-11-18 19:53".into(),
        "4m".into(),
    ]);
    assert_eq!(
        table.render_for(Some(50), Paint { on: false }),
        "ID           AGENT        STARTED           LASTED\n\
         01a1f038-8…  …cats/Toast  2026-11-18 19:53  4m\n"
    );
}

#[test]
fn headings_are_not_cut() {
    let headings = ["AGENT", "HARNESS", "CONTAINER"];
    let mut table = Table::new(&headings);
    table.row(["hello/polecats/Toast", "claude-next", "he-Toast-2"].map(Cell::from));
    for columns in 20..60 {
        let text = table.render_for(Some(columns), Paint { on: false });
        assert!(text.lines().all(|line| line.width() <= columns), "{text}");
        assert!(
            headings.iter().all(|it| text.contains(it)),
            "{columns}: {text}"
        );
    }
}

#[test]
fn emoji_of_several_characters_are_cut() {
    let mut table = Table::new(&["A"]);
    table.row(["⚙️⚙️⚙️⚙️⚙️ settings".into()]);
    for columns in 6..20 {
        let text = table.render_for(Some(columns), Paint { on: false });
        assert!(text.lines().all(|line| line.width() <= columns), "{text}");
    }
}

#[test]
fn table_with_too_many_columns_becomes_several_tables() {
    let mut table = Table::new(&["NAME", "FIRST", "SECOND", "THIRD", "FOURTH"]);
    let cells = ["max", "1", "2", "3", "4"];
    table.row(cells.map(Cell::from));
    assert_eq!(
        table.render_for(Some(20), Paint { on: false }),
        "NAME  FIRST  SECOND\nmax   1      2\n\nNAME  THIRD  FOURTH\nmax   3      4\n"
    );
}

#[test]
fn empty_column_takes_no_room() {
    let mut table = Table::new(&["A", "", "B"]);
    table.row(["a".into(), "".into(), "b".into()]);
    assert_eq!(
        table.render_for(Some(4), Paint { on: false }),
        "A  B\na  b\n"
    );
}

#[test]
fn a_table_fits_the_terminal_and_is_whole_elsewhere() {
    let mut table = Table::new(&["ID", "TITLE", "AGENT"]);
    let long = "Write the whole of the manual, in 日本語 as well";
    table.row(["he-1".into(), long.into(), "hello/crew/max".into()]);
    let off = Paint { on: false };
    let whole = table.render_for(None, off);
    assert!(whole.contains(long));
    for columns in [20, 40, 60] {
        let text = table.render_for(Some(columns), off);
        assert!(text.lines().all(|line| line.width() <= columns), "{text}");
        assert!(text.contains("he-1"), "{text}");
    }
    let text = table.wrapping().render_for(Some(40), off);
    assert_eq!(
        text,
        "ID    TITLE               AGENT\n\
         he-1  Write the whole of  hello/crew/max\n      the manual, in\n      \
         日本語 as well\n"
    );
}
