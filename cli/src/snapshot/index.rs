//! The Workloads and PodGroups of a cluster, found as the core asks for them.

use std::collections::HashMap;

use k8s_openapi::api::scheduling::v1beta1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use statefulset_scheduling_core::discovery::{ControllerRef, Index, PodGroup, Workload};

/// Where an object is: its namespace and what it is found by.
type Key<T> = (String, T);

/// What a PodGroup says of itself, beside what the core reads.
#[derive(Clone, Debug, Default)]
pub struct PodGroupStatus {
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// All Workloads and PodGroups that were read.
#[derive(Default)]
pub struct Groups {
    workloads: Vec<Key<Workload>>,
    made: Vec<(Key<PodGroup>, PodGroupStatus)>,
    of_controller: HashMap<Key<ControllerRef>, Vec<usize>>,
    of_workload: HashMap<Key<String>, Vec<usize>>,
    of_owner: HashMap<Key<String>, Vec<usize>>,
}

impl Groups {
    /// Adds a Workload.
    pub fn add_workload(&mut self, workload: api::Workload) {
        let namespace = workload.metadata.namespace.clone().unwrap_or_default();
        let workload = Workload::from(workload);
        if let Some(controller) = &workload.controller {
            let key = (namespace.clone(), controller.clone());
            self.of_controller.entry(key).or_default().push(self.workloads.len());
        }
        self.workloads.push((namespace, workload));
    }

    /// Adds a PodGroup.
    pub fn add_pod_group(&mut self, mut pod_group: api::PodGroup) {
        let namespace = pod_group.metadata.namespace.clone().unwrap_or_default();
        let conditions = pod_group.status.take().and_then(|status| status.conditions).unwrap_or_default();
        let pod_group = PodGroup::from(pod_group);
        let place = self.made.len();
        if let Some(workload) = &pod_group.workload_name {
            self.of_workload.entry((namespace.clone(), workload.clone())).or_default().push(place);
        }
        if let Some(owner) = &pod_group.identity.controller_uid {
            self.of_owner.entry((namespace.clone(), owner.clone())).or_default().push(place);
        }
        self.made.push(((namespace, pod_group), PodGroupStatus { conditions }));
    }

    /// All Workloads, each with its namespace.
    pub fn workloads(&self) -> impl Iterator<Item = (&str, &Workload)> {
        self.workloads.iter().map(|(namespace, workload)| (namespace.as_str(), workload))
    }

    /// All PodGroups, each with its namespace.
    pub fn pod_groups(&self) -> impl Iterator<Item = (&str, &PodGroup)> {
        self.made.iter().map(|((namespace, pod_group), _)| (namespace.as_str(), pod_group))
    }

    /// What a PodGroup says of itself.
    pub fn status(&self, namespace: &str, name: &str) -> Option<&PodGroupStatus> {
        let found = self.made.iter().find(|((of, group), _)| of == namespace && group.identity.name == name);
        found.map(|(_, status)| status)
    }

    fn pod_groups_at(&self, places: Option<&Vec<usize>>) -> Vec<&PodGroup> {
        places.into_iter().flatten().filter_map(|place| Some(&self.made.get(*place)?.0.1)).collect()
    }
}

impl Index for Groups {
    fn workloads_of(&self, namespace: &str, controller: &ControllerRef) -> Vec<&Workload> {
        let places = self.of_controller.get(&(namespace.to_owned(), controller.clone()));
        places.into_iter().flatten().filter_map(|place| Some(&self.workloads.get(*place)?.1)).collect()
    }

    fn pod_groups_of(&self, namespace: &str, workload_name: &str) -> Vec<&PodGroup> {
        self.pod_groups_at(self.of_workload.get(&(namespace.to_owned(), workload_name.to_owned())))
    }

    fn pod_groups_controlled_by(&self, namespace: &str, uid: &str) -> Vec<&PodGroup> {
        self.pod_groups_at(self.of_owner.get(&(namespace.to_owned(), uid.to_owned())))
    }
}
