//! What is deployed: the project's own manifests, or those that the chart was rendered to.
//!
//! Stands for what happens to them in a cluster: containers get their arguments and their environment, and
//! ServiceAccounts their permissions. Left out: images, probes, resources, and everything that runs beside.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use crate::cluster::root;

/// Where the manifests of the controller stand in the project.
const CONTROLLER: &str = "deploy/controller";

/// What answers the webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// The module, as in Kubewarden.
    #[default]
    Kubewarden,
    /// The project's own webhook: its binary, over HTTPS.
    Webhook,
}

/// Where the manifests come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kustomizations of the project, for this engine.
    Kustomize(EngineKind),
    /// A file, as `helm template` writes it.
    Rendered(PathBuf),
}

impl Default for Source {
    fn default() -> Self {
        Self::Kustomize(EngineKind::default())
    }
}

/// What is deployed.
#[derive(Clone, Debug)]
pub struct Manifests(Vec<Value>);

/// A container of a Deployment, as it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The user that its ServiceAccount is.
    pub user: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
}

impl Manifests {
    /// Reads the manifests of a source.
    ///
    /// # Errors
    /// A file cannot be read, or is no YAML.
    pub fn read(source: &Source) -> anyhow::Result<Self> {
        let objects = match source {
            Source::Rendered(file) => documents(file)?,
            Source::Kustomize(engine) => {
                let engine = match engine {
                    EngineKind::Kubewarden => "deploy/kubewarden",
                    EngineKind::Webhook => "deploy/webhook",
                };
                let mut objects = kustomization(&root().join(CONTROLLER))?;
                objects.extend(kustomization(&root().join(engine))?);
                objects
            }
        };
        Ok(Self(objects.into_iter().filter(|object| !object.is_null()).collect()))
    }

    /// The objects of these kinds.
    pub fn of(&self, kinds: &[&str]) -> Vec<Value> {
        let is_of = |object: &&Value| object["kind"].as_str().is_some_and(|kind| kinds.contains(&kind));
        self.0.iter().filter(is_of).cloned().collect()
    }

    /// What answers the webhooks.
    ///
    /// # Errors
    /// Nothing does, or both do.
    pub fn engine(&self) -> anyhow::Result<EngineKind> {
        match (self.policies().is_empty(), self.configurations().is_empty()) {
            (false, true) => Ok(EngineKind::Kubewarden),
            (true, false) => Ok(EngineKind::Webhook),
            (true, true) => anyhow::bail!("there is neither a policy nor a webhook configuration"),
            (false, false) => anyhow::bail!("there are both policies and webhook configurations"),
        }
    }

    /// The ClusterAdmissionPolicies.
    pub fn policies(&self) -> Vec<Value> {
        self.of(&["ClusterAdmissionPolicy"])
    }

    /// The webhook configurations.
    pub fn configurations(&self) -> Vec<Value> {
        self.of(&["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
    }

    /// The container of this name, in the one Deployment that has it.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn container(&self, name: &str) -> anyhow::Result<Container> {
        let deployments = self.of(&["Deployment"]);
        let found = deployments.iter().flat_map(|deployment| {
            let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
            containers.filter(|container| container["name"] == name).map(move |container| (deployment, container))
        });
        match found.collect::<Vec<_>>().as_slice() {
            [(deployment, container)] => started(deployment, container),
            others => anyhow::bail!("{} containers are called {name}", others.len()),
        }
    }
}

/// How the container of a Deployment's pod is started.
fn started(deployment: &Value, container: &Value) -> anyhow::Result<Container> {
    let namespace = text(&deployment["metadata"]["namespace"])?;
    let pod = format!("{}-0", text(&deployment["metadata"]["name"])?);
    let account = text(&deployment["spec"]["template"]["spec"]["serviceAccountName"])?;
    let arguments = container["args"].as_array().into_iter().flatten().map(text);
    let environment = container["env"].as_array().into_iter().flatten().map(|variable| {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some("metadata.name") => pod.clone(),
            Some("metadata.namespace") => namespace.clone(),
            Some(other) => anyhow::bail!("the field {other} is not known"),
            None => text(&variable["value"])?,
        };
        Ok((text(&variable["name"])?, value))
    });
    Ok(Container {
        user: format!("system:serviceaccount:{namespace}:{account}"),
        arguments: arguments.collect::<Result<_, _>>()?,
        environment: environment.collect::<Result<_, _>>()?,
    })
}

/// The resources of a kustomization, without what it changes about them: labels.
fn kustomization(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for kustomization in documents(&folder.join("kustomization.yaml"))? {
        for resource in kustomization["resources"].as_array().into_iter().flatten() {
            objects.extend(documents(&folder.join(text(resource)?))?);
        }
    }
    Ok(objects)
}

fn documents(file: &Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().with_context(|| format!("{value} is no text"))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_own_manifests_say_how_each_program_is_started() {
        for (engine, kind) in [(EngineKind::Kubewarden, "ClusterAdmissionPolicy"), (EngineKind::Webhook, "Service")] {
            let manifests = Manifests::read(&Source::Kustomize(engine)).unwrap();
            assert_eq!(manifests.engine().unwrap(), engine);
            assert!(!manifests.of(&[kind]).is_empty());
            let controller = manifests.container("controller").unwrap();
            assert_eq!(controller.user, statefulset_scheduling_core::admission::DEFAULT_CONTROLLER);
            assert!(controller.arguments.contains(&"--leader-elect".to_owned()));
            let pod = ("POD_NAME".to_owned(), "statefulset-scheduling-controller-0".to_owned());
            assert!(controller.environment.contains(&pod));
            assert_eq!(manifests.container("webhook").is_ok(), engine == EngineKind::Webhook);
        }
    }
}
