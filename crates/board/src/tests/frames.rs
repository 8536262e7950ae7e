use super::*;

#[test]
fn the_board_is_drawn() {
    let stage = Stage::new(80, 24);
    stage.assert_shows("▸Needs you 3");
}
