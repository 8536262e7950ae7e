//! Similar names, for the hint of an error about a mistyped name.

/// Most names in a hint.
const MAX: usize = 3;

/// Returns the known names that are closest to a mistyped one, best first; none if all differ too
/// much. Case does not count.
pub fn similar<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    // A third of the letters may differ.
    let limit = typed.chars().count().div_ceil(3);
    let mut close: Vec<(usize, &str)> = known
        .into_iter()
        .map(|name| (strsim::osa_distance(&typed, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    close.sort();
    close.dedup();
    close.truncate(MAX);
    close.into_iter().map(|(_, name)| name).collect()
}

/// Returns the hint that names the similar names, if there are any.
pub fn hint<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names = similar(typed, known);
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_close_and_other_names_are_not() {
        let known = ["max", "mayor", "Toast", "gt-4k2qz", "gastown"];
        let check = |typed: &str, expected: &[&str]| {
            assert_eq!(similar(typed, known), expected, "{typed}");
        };
        check("mx", &["max"]);
        check("amx", &["max"]);
        check("toats", &["Toast"]);
        check("gt-4k2qx", &["gt-4k2qz"]);
        check("gatsown", &["gastown"]);
        check("refinery", &[]);
        assert_eq!(hint("zed", known), None);
        assert_eq!(hint("mayro", known), Some("did you mean mayor?".to_owned()));
    }
}
