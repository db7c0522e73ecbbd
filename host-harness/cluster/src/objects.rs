//! The objects that tests and the demo begin with.

use cluster_apiserver::Profile;
use serde_json::{Value, json};
use statefulset_scheduling_core::api::SCHEDULING_ANNOTATION;

/// Which carrier a StatefulSet's intent stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// `spec.scheduling`
    Field,
    /// The annotation.
    Annotation,
}

impl Carrier {
    /// The carrier that a server of this profile stores: the field where there is one.
    pub fn of(profile: Profile) -> Self {
        match profile {
            Profile::Kep => Self::Field,
            Profile::V1_37 => Self::Annotation,
        }
    }

    /// Where it is, as errors say it.
    pub fn path(self) -> String {
        match self {
            Self::Field => "spec.scheduling".to_owned(),
            Self::Annotation => format!("metadata.annotations[{SCHEDULING_ANNOTATION}]"),
        }
    }
}

/// A StatefulSet to create.
#[derive(Clone, Debug)]
pub struct Set(Value);

impl Set {
    /// A Parallel StatefulSet of so many replicas in the namespace `default`, without an intent. Each pod
    /// wants one cpu.
    pub fn new(name: &str, replicas: i32) -> Self {
        Self(json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": { "name": name, "namespace": "default", "labels": { "app": name } },
            "spec": {
                "replicas": replicas,
                "podManagementPolicy": "Parallel",
                "serviceName": name,
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{
                            "name": "main",
                            "image": "example.com/app:1",
                            "resources": { "requests": { "cpu": "1", "memory": "64Mi" } },
                        }],
                    },
                },
            },
        }))
    }

    /// With this intent, in this carrier.
    #[must_use]
    pub fn with_intent(mut self, carrier: Carrier, intent: &Value) -> Self {
        match carrier {
            Carrier::Field => self.0["spec"]["scheduling"] = intent.clone(),
            Carrier::Annotation => {
                self.0["metadata"]["annotations"][SCHEDULING_ANNOTATION] = intent.to_string().into();
            }
        }
        self
    }

    /// With the member that a JSON pointer names set to this; what is missing on the way is made.
    #[must_use]
    pub fn with(mut self, pointer: &str, value: Value) -> Self {
        let mut place = &mut self.0;
        for member in pointer.split('/').skip(1) {
            let member = member.replace("~1", "/");
            place = match member.parse::<usize>() {
                Ok(index) if place.is_array() => &mut place[index],
                _ => &mut place[member],
            };
        }
        *place = value;
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        self.with("/metadata/namespace", namespace.into())
    }

    /// The object.
    pub fn object(self) -> Value {
        self.0
    }
}

/// An intent: all or nothing.
pub fn gang() -> Value {
    json!({ "schedulingPolicy": { "gang": {} } })
}
