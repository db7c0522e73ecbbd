//! The controller that releases PodGroups which are being deleted.
//!
//! Stands for the podgroup-protection controller of kube-controller-manager: it removes the finalizer
//! `scheduling.k8s.io/podgroup-protection` once no pod that is not terminal names the group, which it asks the
//! server about before it believes its watch. Left out: adding the finalizer where admission did not, and the
//! finalizer of `CompositePodGroup`s, which 1.37 does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::api::{ListParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tracing::debug;

use crate::plugins::PROTECTION;

/// The user that the controller is.
pub const USER: &str = "system:serviceaccount:kube-system:podgroup-protection-controller";

/// A namespace and a name.
type Key = (String, String);

/// Which pods name which group, and which groups are going.
#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<Key, BTreeSet<String>>,
    of_pods: BTreeMap<Key, String>,
    going: BTreeSet<Key>,
}

impl State {
    fn pod(&mut self, pod: &Pod) {
        let key = (pod.namespace().unwrap_or_default(), pod.name_any());
        match group_of(pod) {
            Some(group) if !is_terminal(pod) => {
                self.groups.entry((key.0.clone(), group.to_owned())).or_default().insert(key.1.clone());
                self.of_pods.insert(key, group.to_owned());
            }
            _ => self.forget_pod(&key),
        }
    }

    fn forget_pod(&mut self, key: &Key) {
        let Some(group) = self.of_pods.remove(key) else { return };
        let group = (key.0.clone(), group);
        if let Some(pods) = self.groups.get_mut(&group) {
            pods.remove(&key.1);
            if pods.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    fn forget_pods(&mut self) {
        self.groups.clear();
        self.of_pods.clear();
    }

    /// The groups that are going and that no pod seems to use.
    fn unused(&self) -> Vec<Key> {
        self.going.iter().filter(|key| !self.groups.contains_key(*key)).cloned().collect()
    }
}

fn group_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_deref()
}

fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Runs until it is dropped; `client` is [`USER`]'s. What failed is tried again after `interval`.
pub async fn run(client: Client, interval: Duration) {
    let mut groups = pin!(watcher(Api::<PodGroup>::all(client.clone()), watcher::Config::default()));
    let mut pods = pin!(watcher(Api::<Pod>::all(client.clone()), watcher::Config::default()));
    let mut state = State::default();
    // Pods are believed only when all of them have been seen.
    let mut complete = false;
    loop {
        let rest = async {
            if state.going.is_empty() { std::future::pending().await } else { tokio::time::sleep(interval).await }
        };
        let mut failed = false;
        tokio::select! {
            event = groups.next() => match event {
                Some(Ok(watcher::Event::Apply(group) | watcher::Event::InitApply(group))) => {
                    let key = (group.namespace().unwrap_or_default(), group.name_any());
                    if group.metadata.deletion_timestamp.is_some() && is_protected(&group) {
                        state.going.insert(key);
                    } else {
                        state.going.remove(&key);
                    }
                }
                Some(Ok(watcher::Event::Delete(group))) => {
                    state.going.remove(&(group.namespace().unwrap_or_default(), group.name_any()));
                }
                Some(Ok(watcher::Event::Init)) => state.going.clear(),
                Some(Ok(watcher::Event::InitDone)) => {}
                Some(Err(error)) => {
                    debug!("watching PodGroups: {error}");
                    failed = true;
                }
                None => return,
            },
            event = pods.next() => match event {
                Some(Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => state.pod(&pod),
                Some(Ok(watcher::Event::Delete(pod))) => {
                    state.forget_pod(&(pod.namespace().unwrap_or_default(), pod.name_any()));
                }
                Some(Ok(watcher::Event::Init)) => {
                    complete = false;
                    state.forget_pods();
                }
                Some(Ok(watcher::Event::InitDone)) => complete = true,
                Some(Err(error)) => {
                    debug!("watching pods: {error}");
                    failed = true;
                }
                None => return,
            },
            () = rest => {}
        }
        if failed {
            // The watcher tries again; without a pause it would do nothing else.
            tokio::time::sleep(interval).await;
        }
        for key in if complete { state.unused() } else { Vec::new() } {
            match release(&client, &key).await {
                Ok(true) => drop(state.going.remove(&key)),
                Ok(false) => {}
                Err(error) => debug!("releasing PodGroup {}/{}: {error}", key.0, key.1),
            }
        }
    }
}

fn is_protected(group: &PodGroup) -> bool {
    group.finalizers().iter().any(|finalizer| finalizer == PROTECTION)
}

/// Removes the finalizer, if the server agrees that no pod uses the group. Whether it is done.
async fn release(client: &Client, (namespace, name): &Key) -> kube::Result<bool> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let listed = pods.list(&ListParams::default()).await?;
    if listed.items.iter().any(|pod| group_of(pod) == Some(name) && !is_terminal(pod)) {
        return Ok(false);
    }
    let groups: Api<PodGroup> = Api::namespaced(client.clone(), namespace);
    let Some(mut group) = groups.get_opt(name).await? else { return Ok(true) };
    if group.metadata.deletion_timestamp.is_none() {
        return Ok(true);
    }
    group.finalizers_mut().retain(|finalizer| finalizer != PROTECTION);
    groups.replace(name, &PostParams::default(), &group).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, group: &str, phase: &str) -> Pod {
        let value: Value = json!({
            "metadata": { "namespace": "prod", "name": name },
            "spec": { "containers": [], "schedulingGroup": { "podGroupName": group } },
            "status": { "phase": phase },
        });
        serde_json::from_value(value).expect("it is a pod")
    }

    #[test]
    fn a_group_is_unused_when_its_last_pod_is_gone_or_terminal() {
        let group = ("prod".to_owned(), "g".to_owned());
        let mut state = State::default();
        state.going.insert(group.clone());
        state.pod(&pod("a", "g", "Running"));
        state.pod(&pod("b", "g", "Pending"));
        assert!(state.unused().is_empty());
        state.pod(&pod("a", "g", "Succeeded"));
        state.forget_pod(&("prod".to_owned(), "b".to_owned()));
        assert_eq!(state.unused(), [group]);
    }
}
