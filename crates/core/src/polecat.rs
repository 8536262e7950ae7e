//! Names of polecats.
//!
//! Polecats come and go with their work, so their names are taken from a pool. A town may define
//! another pool; this is the built-in one.

/// Built-in pool.
#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "Toast", "Nux", "Furiosa", "Slit", "Rictus", "Capable", "Dag", "Cheedo", "Angharad", "Valkyrie",
    "Morsov", "Ace", "Doof", "Coma", "Corpus", "Giddy", "Keeper", "Goose", "Fifi", "Jessie",
    "Toecutter", "Bubba", "Johnny", "Nightrider", "Mudguts", "Clunk", "Starbuck", "Cundalini", "Diabando", "Wez",
    "Humungus", "Pappagallo", "Gyro", "Feral", "Zetta", "Aunty", "Blaster", "Ironbar", "Savannah", "Jedediah",
    "Scrooloose", "Blackfinger", "Tonton", "Dementus", "Octoboss", "Scabrous", "Smeg", "Glory", "Chumbucket", "Stank",
    "Gastrix", "Tenderloin", "Pinkeye", "Griffa", "Deepdog", "Scrotus", "Jeet", "Hope", "Quickie", "Mari",
];

/// Maximum number of passes through the pool: `Toast`, then `Toast-2`, and so on.
const ROUNDS: usize = 1_000;

/// Returns the first free name of a pool.
pub fn free_name(pool: &[&str], is_free: impl Fn(&str) -> bool) -> Option<String> {
    let names = (1..=ROUNDS).flat_map(|round| {
        pool.iter().map(move |name| match round {
            1 => (*name).to_owned(),
            _ => format!("{name}-{round}"),
        })
    });
    names.into_iter().find(|name| is_free(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::registry::Registry;

    #[test]
    fn every_name_can_be_given() {
        let registry = Registry::of([("gastown", "gt")]);
        let mut seen: Vec<String> = Vec::new();
        for name in NAMES {
            Identity::polecat("gastown", *name)
                .check_new(&registry)
                .unwrap();
            seen.push(name.to_ascii_lowercase());
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), NAMES.len(), "each stands there once");
        assert!(seen.len() >= 60);
    }

    #[test]
    fn a_pool_that_is_used_up_is_gone_through_again() {
        let taken = ["a", "b", "a-2"];
        let free = |name: &str| !taken.contains(&name);
        assert_eq!(free_name(&["a", "b"], free).as_deref(), Some("b-2"));
        assert_eq!(free_name(&["a", "c"], free).as_deref(), Some("c"));
        assert_eq!(free_name(&["a"], |_| false), None);
        assert_eq!(free_name(&[], |_| true), None);
    }
}
