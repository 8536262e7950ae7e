//! Resolves the target that a person types to an agent.
//!
//! Tried in this order: an address, a container's name, `rig/name` (crew first, then polecat), the
//! beginning of a session id, a bare name that only one agent has (a task's is the id of its work
//! item), and a role that only one agent has (`witness` in a town with one rig). Full addresses and
//! container names are resolved without listing the existing agents, so the most common calls cost
//! nothing; see [`read_exact`].

use crate::identity::{Identity, unknown_rig};
use crate::name;
use crate::problem::Problem;
use crate::registry::Registry;
use crate::role::{Role, RoleScope};
use crate::session::SessionId;
use crate::similar;

/// An agent that exists: on disk, in tmux, or both.
#[derive(Clone, Debug)]
pub struct KnownAgent {
    pub identity: Identity,
    pub container: String,
    pub session: Option<SessionId>,
    pub running: bool,
}

/// Parses a target that identifies one agent without a list of the existing ones.
pub fn read_exact(text: &str, registry: &Registry) -> Option<Identity> {
    Identity::from_address(text, registry)
        .filter(|identity| match identity.rig() {
            Some(rig) if identity.role().scope() == RoleScope::Rig => {
                registry.rigs.contains_key(rig)
            }
            _ => true,
        })
        .or_else(|| Identity::from_container(text, registry))
}

/// Resolves a target against the existing agents.
pub fn resolve(text: &str, registry: &Registry, known: &[KnownAgent]) -> Result<Identity, Problem> {
    // Tags are more reliable than names: a role may have a custom pattern, and a container's name
    // cannot hold a dotted id.
    if let Some(agent) = known.iter().find(|agent| agent.container == text) {
        return Ok(agent.identity.clone());
    }
    if let Some((rig, name)) = text.split_once('/').filter(|(_, name)| !name.contains('/'))
        && registry.rigs.contains_key(rig)
        && Identity::from_address(text, registry).is_none()
    {
        return short(rig, name, known);
    }
    if let Some(identity) = Identity::from_address(text, registry) {
        return match identity.rig() {
            Some(rig) if !registry.rigs.contains_key(rig) => Err(unknown_rig(rig, registry)),
            _ => Ok(identity),
        };
    }
    if let Some((rig, _)) = text.split_once('/')
        && !registry.rigs.contains_key(rig)
    {
        return Err(unknown_rig(rig, registry));
    }
    if SessionId::could_be_prefix(text) {
        let hits: Vec<&KnownAgent> = known
            .iter()
            .filter(|agent| agent.session.is_some_and(|id| id.has_prefix(text)))
            .collect();
        if !hits.is_empty() {
            return only_one(text, &hits);
        }
    }
    let named: Vec<&KnownAgent> = known
        .iter()
        .filter(|agent| agent.identity.name() == Some(text))
        .collect();
    if !named.is_empty() {
        return only_one(text, &named);
    }
    if let Some(role) = Role::from_word(text) {
        let of_role: Vec<&KnownAgent> = known
            .iter()
            .filter(|agent| agent.identity.role() == role)
            .collect();
        if !of_role.is_empty() {
            return only_one(text, &of_role);
        }
    }
    Identity::from_container(text, registry).ok_or_else(|| unknown(text, known))
}

/// Resolves `rig/name`: a crew worker of that name, then a polecat; a running one first.
fn short(rig: &str, name: &str, known: &[KnownAgent]) -> Result<Identity, Problem> {
    let choices = [Identity::crew(rig, name), Identity::polecat(rig, name)];
    let exists = |identity: &Identity, running: bool| {
        known
            .iter()
            .any(|agent| agent.identity == *identity && agent.running >= running)
    };
    choices
        .iter()
        .find(|identity| exists(identity, true))
        .or_else(|| choices.iter().find(|identity| exists(identity, false)))
        .cloned()
        .ok_or_else(|| {
            let problem = Problem::not_found(format!(
                "the rig {rig} has no crew worker or polecat called {name:?}"
            ));
            let of_rig = known.iter().map(|agent| &agent.identity);
            let of_rig = of_rig.filter(|agent| agent.rig() == Some(rig));
            let problem = with_similar(problem, name, of_rig);
            let shows = format!("`gt crew list {rig}` shows them");
            match name::check_agent(name) {
                Ok(()) => problem.hint(format!("{shows}; `gt crew add {rig}/{name}` makes one")),
                Err(_) => problem.hint(shows),
            }
        })
}

/// Adds a hint with the addresses of the agents whose name or address is similar.
pub fn with_similar<'a>(
    problem: Problem,
    text: &str,
    known: impl IntoIterator<Item = &'a Identity>,
) -> Problem {
    let names = known.into_iter().flat_map(|agent| {
        let address = agent.address();
        let name = agent.name().unwrap_or(agent.role().as_str()).to_owned();
        [(address.clone(), address.clone()), (name, address)]
    });
    let names: Vec<(String, String)> = names.collect();
    let mut close: Vec<&str> = Vec::new();
    for found in similar::similar(text, names.iter().map(|(name, _)| name.as_str())) {
        let of = names.iter().filter(|(name, _)| name == found);
        close.extend(of.map(|(_, address)| address.as_str()));
    }
    close.dedup();
    close.truncate(3);
    match close.is_empty() {
        true => problem,
        false => problem.hint(format!("did you mean {}?", close.join(" or "))),
    }
}

fn only_one(text: &str, hits: &[&KnownAgent]) -> Result<Identity, Problem> {
    match hits {
        [one] => Ok(one.identity.clone()),
        many => {
            let names: Vec<String> = many.iter().map(|agent| agent.identity.address()).collect();
            Err(
                Problem::usage(format!("{text:?} could be any of {}", names.join(", ")))
                    .hint("give the whole address"),
            )
        }
    }
}

fn unknown(text: &str, known: &[KnownAgent]) -> Problem {
    let problem = Problem::not_found(format!("there is no agent {text:?}"));
    with_similar(problem, text, known.iter().map(|agent| &agent.identity))
        .hint("`gt agents` lists those that run, `gt agents --stopped` those that could")
        .hint("targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> Registry {
        Registry::of([("gastown", "gt"), ("beads", "bd")])
    }

    fn known(identity: Identity, running: bool, session: Option<&str>) -> KnownAgent {
        KnownAgent {
            container: identity.container_name(&registry()).unwrap(),
            identity,
            session: session.map(|id| id.parse().unwrap()),
            running,
        }
    }

    #[test]
    fn short_targets_try_crew_then_polecat() {
        let registry = registry();
        let crew = known(Identity::crew("gastown", "Toast"), false, None);
        let polecat = known(Identity::polecat("gastown", "Toast"), true, None);
        let resolve =
            |known: &[KnownAgent]| resolve("gastown/Toast", &registry, known).unwrap().role();
        assert_eq!(resolve(std::slice::from_ref(&crew)), Role::Crew);
        assert_eq!(resolve(std::slice::from_ref(&polecat)), Role::Polecat);
        assert_eq!(
            resolve(&[crew.clone(), polecat.clone()]),
            Role::Polecat,
            "the running one"
        );
        let crew = KnownAgent {
            running: true,
            ..crew
        };
        assert_eq!(resolve(&[polecat, crew]), Role::Crew);
    }

    #[test]
    fn every_kind_of_target() {
        let registry = registry();
        let all = [
            known(
                Identity::crew("gastown", "max"),
                true,
                Some("0193a2b4-c5d6-7abc-8def-0123456789ab"),
            ),
            known(
                Identity::crew("beads", "amy"),
                true,
                Some("0193a2b4-ffff-7abc-8def-0123456789ab"),
            ),
            known(Identity::crew("beads", "max"), false, None),
            known(Identity::town(Role::Mayor), true, None),
        ];
        let check = |text: &str, address: &str| {
            assert_eq!(
                resolve(text, &registry, &all).unwrap().address(),
                address,
                "{text}"
            );
        };
        check("mayor", "mayor");
        check("hq-mayor", "mayor");
        check("gastown/witness", "gastown/witness");
        check("gastown/max", "gastown/crew/max");
        check("gt-crew-max", "gastown/crew/max");
        check("gt-furiosa", "gastown/polecats/furiosa");
        check("amy", "beads/crew/amy");
        check("0193a2b4-c", "gastown/crew/max");
        check("agent/x", "agent/x");
        check("agent_x", "agent/x");
        let fails = |text: &str, wanted: &str| {
            let problem = resolve(text, &registry, &all).unwrap_err();
            assert!(problem.message().contains(wanted), "{text}: {problem}");
        };
        fails("max", "could be any of");
        fails("0193a2b4", "could be any of");
        fails("nobody", "no agent");
        fails("nowhere/max", "no rig");
        fails("nowhere/crew/max", "no rig");
        fails("gastown/zed", "no crew worker or polecat");
    }

    #[test]
    fn a_role_means_the_only_agent_that_has_it() {
        let registry = registry();
        let of = |role, rig: &str| known(Identity::of_rig(role, rig), false, None);
        let one = [of(Role::Witness, "gastown"), of(Role::Refinery, "gastown")];
        let found = |text| resolve(text, &registry, &one).map(|agent| agent.address());
        assert_eq!(found("witness").unwrap(), "gastown/witness");
        assert_eq!(found("refinery").unwrap(), "gastown/refinery");
        assert!(found("polecat").unwrap_err().message().contains("no agent"));
        let two = [of(Role::Witness, "gastown"), of(Role::Witness, "beads")];
        let problem = resolve("witness", &registry, &two).unwrap_err();
        let wanted = "could be any of gastown/witness, beads/witness";
        assert!(problem.message().contains(wanted), "{problem}");
    }

    #[test]
    fn a_tag_knows_better_than_a_name() {
        let registry = registry();
        let task = known(Identity::task("gt-ab.1", &registry), true, None);
        let found = resolve("gt-ab_1-az", &registry, &[task]).unwrap();
        assert_eq!(found.name(), Some("gt-ab.1"));
    }

    #[test]
    fn an_item_means_the_agent_that_works_on_it() {
        let registry = registry();
        let task = known(Identity::task("gt-4k2qz", &registry), true, None);
        let polecat = known(Identity::polecat("gastown", "4k2qz"), true, None);
        let role = |known: &[KnownAgent]| resolve("gt-4k2qz", &registry, known).unwrap().role();
        assert_eq!(role(&[]), Role::Polecat, "the name says so");
        assert_eq!(role(std::slice::from_ref(&task)), Role::Task);
        assert_eq!(
            role(&[task, polecat]),
            Role::Polecat,
            "a container's own name"
        );
    }
}
