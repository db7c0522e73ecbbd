//! Who set which field of a Lease.
//!
//! Stands for the conflicts of server-side apply. Leader election relies on an apply being refused when
//! somebody else was faster, so Leases have this, for the members of their flat spec. Left out: every
//! other resource, whose applies always win, and the removal of fields that an apply no longer has.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::resource::Resource;
use crate::status::Problem;

/// A field manager. Its applies and its other writes are told apart, as the server does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) applies: bool,
}

/// The managers of the fields of all Leases, by namespace, name and field.
#[derive(Debug, Default)]
pub(crate) struct Owners(HashMap<(String, String, String), BTreeSet<Manager>>);

impl Owners {
    /// Refuses an apply of `spec` over `before` that changes what somebody else has set.
    pub(crate) fn check(
        &self,
        (namespace, name): (&str, &str),
        before: &Value,
        spec: &Value,
        manager: &Manager,
    ) -> Result<(), Problem> {
        let mut conflicts = Vec::new();
        for (field, value) in spec.as_object().into_iter().flatten() {
            if before.get(field) == Some(value) {
                continue;
            }
            let owners = self.0.get(&(namespace.into(), name.into(), field.clone()));
            let others = owners.into_iter().flatten().filter(|owner| *owner != manager);
            conflicts.extend(others.map(|owner| format!("conflict with \"{}\": .spec.{field}", owner.name)));
        }
        if conflicts.is_empty() {
            return Ok(());
        }
        let count = conflicts.len();
        let why = format!("Apply failed with {count} conflict(s): {}", conflicts.join(", "));
        Err(Problem::conflict(Resource::Leases, name, &why))
    }

    /// Notes a write that was done: a changed field is its writer's alone, an applied one also its.
    pub(crate) fn note(
        &mut self,
        (namespace, name): (&str, &str),
        (before, after): (&Value, &Value),
        applied: &Value,
        manager: &Manager,
    ) {
        let fields: BTreeSet<&String> =
            [before, after].into_iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys).collect();
        for field in fields {
            let key = (namespace.to_owned(), name.to_owned(), field.clone());
            match after.get(field) {
                None => drop(self.0.remove(&key)),
                value if value != before.get(field) => drop(self.0.insert(key, BTreeSet::from([manager.clone()]))),
                _ if manager.applies && applied.get(field).is_some() => {
                    self.0.entry(key).or_default().insert(manager.clone());
                }
                _ => {}
            }
        }
    }
}
