//! Claims: which of them a pod needs, and which devices they get.
//!
//! Stands for the dynamic resources plugin with PodGroup-level claims: a pod's claim is its group's
//! only if name and source are equal; then the claim is reserved for the group, once. Left out:
//! resource slices (devices come from a table by device class), selectors, constraints, sharing,
//! allocation modes, alternatives beyond the first, the claim's finalizer, and freeing claims, which
//! is the ResourceClaim controller's.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{
    AllocatedDevice, Allocation, Claim, Cluster, Consumer, Device, Group, Key, Pod, Reference, Source,
};

/// How many consumers a claim can be reserved for.
const MAX_RESERVED: usize = 256;

/// The pool of devices that are not at a node.
pub const CLUSTER_POOL: &str = "cluster";

/// How many devices there are of a class, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// So many, usable from every node.
    Cluster(u32),
    /// So many at every node, usable only there.
    PerNode(u32),
    /// So many at the nodes of these names, usable only there.
    AtNodes(BTreeMap<String, u32>),
}

/// The devices of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices {
    /// By device class.
    pub classes: BTreeMap<String, Supply>,
    /// Of each class that is not listed.
    pub others: Supply,
}

impl Default for Devices {
    /// As many of everything, everywhere, as anybody asks for.
    fn default() -> Self {
        Self { classes: BTreeMap::new(), others: Supply::Cluster(u32::MAX) }
    }
}

/// A claim that a pod needs, and whom it is reserved for on the pod's behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The ResourceClaim.
    pub claim: Key,
    /// The pod or its group.
    pub consumer: Consumer,
}

/// A change of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    /// The ResourceClaim.
    pub claim: Key,
    /// Devices, where it had none when the pass began.
    pub allocate: Option<Allocation>,
    /// All that it is reserved for from now on.
    pub reserved: Vec<Consumer>,
}

/// The claims that a pod needs.
///
/// # Errors
///
/// Why it cannot be said yet.
pub fn needs(cluster: &Cluster, pod: &Pod, group: Option<&Group>) -> Result<Vec<Need>, String> {
    let mut needs = Vec::new();
    for reference in &pod.claims {
        let shared = group.filter(|group| group.claims.contains(reference));
        let (made, consumer) = match shared {
            Some(group) => (&group.made, Consumer::Group(group.key.name.clone(), group.uid.clone())),
            None => (&pod.made, Consumer::Pod(pod.key.name.clone(), pod.uid.clone())),
        };
        let Some(name) = name_of(reference, made)? else { continue };
        let claim = pod.key.beside(name);
        match cluster.claims.get(&claim) {
            None => return Err(format!("resourceclaim \"{name}\" not found")),
            Some(found) if found.deleting => return Err(format!("resourceclaim \"{name}\" is being deleted")),
            Some(_) => needs.push(Need { claim, consumer }),
        }
    }
    Ok(needs)
}

/// The name of the ResourceClaim behind a reference; none where none is needed.
fn name_of<'a>(
    reference: &'a Reference,
    made: &'a BTreeMap<String, Option<String>>,
) -> Result<Option<&'a str>, String> {
    match &reference.source {
        Source::Claim(name) => Ok(Some(name)),
        Source::Template(_) => match made.get(&reference.name) {
            Some(name) => Ok(name.as_deref()),
            None => Err(format!("the resourceclaim for \"{}\" is not created yet", reference.name)),
        },
    }
}

/// The claims as they will be.
#[derive(Clone, Debug)]
pub struct Book<'a> {
    cluster: &'a Cluster,
    devices: &'a Devices,
    taken: BTreeSet<Device>,
    changed: BTreeMap<Key, (Option<Allocation>, Vec<Consumer>)>,
}

impl<'a> Book<'a> {
    /// The claims as they are.
    pub fn new(cluster: &'a Cluster, devices: &'a Devices) -> Self {
        let allocated = cluster.claims.values().filter_map(|claim| claim.allocation.as_ref());
        let taken = allocated.flat_map(|it| it.devices.iter().map(|it| it.device.clone())).collect();
        Self { cluster, devices, taken, changed: BTreeMap::new() }
    }

    /// Whether a pod can have all of its claims at a node, or why not.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn fits(&self, needs: &[Need], node: &str) -> Result<(), String> {
        // Most pods have no claims.
        if needs.is_empty() { Ok(()) } else { self.clone().take(needs, node) }
    }

    /// Takes all claims of a pod at a node. After an error, some may have been taken.
    ///
    /// # Errors
    ///
    /// Why they cannot be taken.
    pub fn take(&mut self, needs: &[Need], node: &str) -> Result<(), String> {
        for need in needs {
            let Some(claim) = self.cluster.claims.get(&need.claim) else {
                return Err(format!("resourceclaim \"{}\" not found", need.claim.name));
            };
            let now = self.changed.get(&need.claim);
            let (allocation, mut reserved) =
                now.cloned().unwrap_or_else(|| (claim.allocation.clone(), claim.reserved.clone()));
            let allocation = match allocation {
                Some(allocation) => allocation,
                None => self.allocate(claim, node).ok_or("cannot allocate all claims")?,
            };
            if allocation.nodes.as_ref().is_some_and(|nodes| !nodes.contains(node)) {
                return Err("resourceclaim not available on the node".to_owned());
            }
            if !reserved.contains(&need.consumer) {
                if reserved.len() >= MAX_RESERVED {
                    return Err(format!("resourceclaim \"{}\" is in use by {MAX_RESERVED} others", need.claim.name));
                }
                reserved.push(need.consumer.clone());
            }
            self.changed.insert(need.claim.clone(), (Some(allocation), reserved));
        }
        Ok(())
    }

    /// What has to be written for these needs.
    pub fn uses<'n>(&self, needs: impl Iterator<Item = &'n Need>) -> Vec<ClaimUse> {
        let claims: BTreeSet<&Key> = needs.map(|need| &need.claim).collect();
        let mut uses = Vec::new();
        for key in claims {
            let (Some(claim), Some((allocation, reserved))) = (self.cluster.claims.get(key), self.changed.get(key))
            else {
                continue;
            };
            let allocate = allocation.clone().filter(|_| claim.allocation.is_none());
            if allocate.is_some() || *reserved != claim.reserved {
                uses.push(ClaimUse { claim: key.clone(), allocate, reserved: reserved.clone() });
            }
        }
        uses
    }

    fn allocate(&mut self, claim: &Claim, node: &str) -> Option<Allocation> {
        let mut allocation = Allocation::default();
        for request in &claim.requests {
            let supply = self.devices.classes.get(&request.class).unwrap_or(&self.devices.others);
            let (pool, count) = match supply {
                Supply::Cluster(count) => (CLUSTER_POOL, *count),
                Supply::PerNode(count) => (node, *count),
                Supply::AtNodes(nodes) => (node, nodes.get(node).copied().unwrap_or(0)),
            };
            if pool == node {
                allocation.nodes = Some([node.to_owned()].into());
            }
            let devices = (0..count).map(|index| Device {
                driver: request.class.clone(),
                pool: pool.to_owned(),
                name: format!("device-{index}"),
            });
            let wanted = usize::try_from(request.count).ok()?;
            let free: Vec<_> = devices.filter(|device| !self.taken.contains(device)).take(wanted).collect();
            if free.len() < wanted {
                return None;
            }
            self.taken.extend(free.iter().cloned());
            allocation
                .devices
                .extend(free.into_iter().map(|device| AllocatedDevice { request: request.name.clone(), device }));
        }
        Some(allocation)
    }
}
