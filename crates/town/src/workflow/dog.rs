//! Sends a dog on an errand: a work item of the town on the hook of a dog, which is started for it.
//!
//! A dog ends its session with `gt done`; if it does not, the patrol ends the session. If this
//! process is killed, it leaves an open item with the label `errand`, or a stopped dog with the
//! item on its hook, which the patrol escalates.

use crate::base::estop;
use crate::base::lock::FileLock;
use crate::catalog::directory;
use crate::records::budget;
use crate::records::items::{ItemDraft, Work};
use crate::repo::rig::TOWN_PREFIX;
use crate::workflow::polecat::TownSnapshot;
use crate::workflow::sling::{self, SlingOptions, SlingTarget, Slung};
use crate::{Result, Town};
use gt_core::mail::PERSON;
use gt_core::work::Item;
use gt_core::{Caller, Identity, Problem, Role, name, polecat};
use std::time::Duration;

/// Label of the items of errands.
pub const LABEL: &str = "errand";

/// Names of dogs.
const NAMES: &[&str] = &[
    "rex", "fido", "bella", "bruno", "luna", "rocky", "daisy", "argos",
];

/// Maximum length of a title in characters.
const LONGEST_TITLE: usize = 80;

/// Maximum wait for another process that chooses a dog.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An errand, and how its dog is started.
#[derive(Clone, Debug, Default)]
pub struct Errand {
    pub text: String,
    /// Name of the dog; the default is one that is free.
    pub dog: Option<String>,
    pub harness: Option<String>,
    pub model: Option<String>,
}

/// Makes the item of an errand and starts a dog with it.
pub fn send(town: &Town, errand: &Errand) -> Result<(Item, Slung)> {
    let text = errand.text.trim();
    let Some(title) = text.lines().next().filter(|line| !line.is_empty()) else {
        return Err(Problem::usage("the errand is empty").hint("`gt dog run ERRAND` names it"));
    };
    // Held until the item is on the hook, so that two errands do not choose the same dog.
    let lock = FileLock::take(&town.runtime_dir().join("locks/dogs.lock"), TIMEOUT)?;
    let dog = match &errand.dog {
        Some(name) => named(town, name)?,
        None => free(town)?,
    };
    // Checked before the item is created, so that a retry does not create a second one.
    estop::check(town, None)?;
    budget::refuse_exhausted(town, Some(&dog), None, None)?;
    let sender = match town.caller() {
        Caller::Person(_) => PERSON.to_owned(),
        other => other.as_str().to_owned(),
    };
    let item = Work::of(town).create(&ItemDraft {
        prefix: TOWN_PREFIX.to_owned(),
        title: shortened(title),
        description: format!(
            "{text}\n\nReport the result, also that of a failure: `gt mail send {sender} -s SUBJECT -m TEXT`"
        ),
        labels: vec![LABEL.to_owned()],
        ..ItemDraft::default()
    })?;
    let options = SlingOptions {
        harness: errand.harness.clone(),
        model: errand.model.clone(),
        sender: Some(sender),
        ..SlingOptions::default()
    };
    let to = SlingTarget::Agent(dog.clone());
    let hooks_only = SlingOptions {
        no_start: true,
        ..options.clone()
    };
    let slung = sling::sling_item(town, &item, &to, &hooks_only);
    drop(lock);
    let slung = slung.and_then(|_| sling::sling_item(town, &item, &to, &options));
    let slung = slung.map_err(|error| {
        let again = format!(
            "the errand is kept: `gt sling {} {dog}` tries again",
            item.id
        );
        Problem::from(error).hint(again)
    })?;
    Ok((item, slung))
}

/// Returns the dog with this name. Fails if it has an errand.
fn named(town: &Town, name: &str) -> Result<Identity> {
    name::check_agent(name).map_err(|error| Problem::usage(error.to_string()))?;
    let dog = Identity::dog(name);
    match is_free(&TownSnapshot::read(town)?, &dog) {
        true => Ok(dog),
        false => Err(Problem::conflict(format!("{dog} is on an errand"))
            .hint("without a name, gt sends a free dog")),
    }
}

/// Returns a dog without an errand: one that has a folder, or a new one.
fn free(town: &Town) -> Result<Identity> {
    let snapshot = TownSnapshot::read(town)?;
    let known = directory::on_disk(town).into_iter();
    let mut known = known.filter(|it| it.role() == Role::Dog && is_free(&snapshot, it));
    if let Some(dog) = known.next() {
        return Ok(dog);
    }
    let name = polecat::free_name(NAMES, |name| is_free(&snapshot, &Identity::dog(name)));
    let name = name.ok_or_else(|| Problem::conflict("all dogs are on errands"))?;
    Ok(Identity::dog(name))
}

fn is_free(snapshot: &TownSnapshot, dog: &Identity) -> bool {
    !snapshot.is_running(dog) && snapshot.bead(dog).is_none()
}

fn shortened(line: &str) -> String {
    match line.chars().count() > LONGEST_TITLE {
        true => line.chars().take(LONGEST_TITLE - 1).chain(['…']).collect(),
        false => line.to_owned(),
    }
}
