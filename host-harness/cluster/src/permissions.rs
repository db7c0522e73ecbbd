//! What the deployed RBAC allows. It is asked about those alone that it grants something: the people of a
//! cluster and its own controllers have permissions of their own.

use cluster_apiserver::{Authorizer, Occasion, Verb};
use serde_json::Value;

use crate::manifests::Manifests;

/// Who may do what, by the roles and bindings of manifests.
pub struct Permissions(Vec<Grant>);

/// The rules that a binding grants a user.
struct Grant {
    user: String,
    /// Where; none everywhere.
    namespace: Option<String>,
    rules: Vec<Value>,
}

impl Permissions {
    /// Those that manifests grant.
    pub fn of(manifests: &Manifests) -> Self {
        let roles = manifests.of(&["ClusterRole", "Role"]);
        let mut grants = Vec::new();
        for binding in manifests.of(&["ClusterRoleBinding", "RoleBinding"]) {
            let namespace = (binding["kind"] == "RoleBinding").then(|| &binding["metadata"]["namespace"]);
            let role = &binding["roleRef"];
            let granted = roles.iter().filter(|it| {
                let is_in = role["kind"] != "Role" || namespace == Some(&it["metadata"]["namespace"]);
                it["kind"] == role["kind"] && it["metadata"]["name"] == role["name"] && is_in
            });
            let allowed: Vec<_> = granted.flat_map(|role| list(&role["rules"])).cloned().collect();
            for subject in list(&binding["subjects"]) {
                let [account_namespace, name] =
                    ["namespace", "name"].map(|it| subject[it].as_str().unwrap_or_default());
                grants.push(Grant {
                    user: format!("system:serviceaccount:{account_namespace}:{name}"),
                    namespace: namespace.and_then(Value::as_str).map(str::to_owned),
                    rules: allowed.clone(),
                });
            }
        }
        Self(grants)
    }
}

impl Authorizer for Permissions {
    fn allows(&self, occasion: &Occasion<'_>) -> bool {
        let mut own = self.0.iter().filter(|grant| grant.user == occasion.user).peekable();
        let is_here = |grant: &Grant| grant.namespace.is_none() || grant.namespace.as_deref() == occasion.namespace;
        own.peek().is_none() || own.any(|grant| is_here(grant) && grant.rules.iter().any(|rule| allows(rule, occasion)))
    }
}

fn allows(rule: &Value, occasion: &Occasion<'_>) -> bool {
    let has = |member: &str, wanted: &str| list(&rule[member]).any(|it| it == wanted || it == "*");
    let plural = occasion.resource.plural();
    let resource = occasion.subresource.map_or_else(|| plural.to_owned(), |part| format!("{plural}/{}", part.as_str()));
    // What is created has no name yet.
    let name = occasion.name.filter(|_| occasion.verb != Verb::Create);
    let named = list(&rule["resourceNames"]).next().is_none()
        || list(&rule["resourceNames"]).any(|it| name.is_some_and(|name| it == name));
    has("apiGroups", occasion.group) && has("resources", &resource) && has("verbs", occasion.verb.as_str()) && named
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use cluster_apiserver::{ADMIN, Resource, Subresource};
    use statefulset_scheduling_core::admission::DEFAULT_CONTROLLER;

    use super::*;
    use crate::manifests::{EngineKind, Source};

    #[test]
    fn the_deployed_roles_say_who_may_do_what() {
        let permissions = Permissions::of(&Manifests::read(&Source::Kustomize(EngineKind::Webhook)).unwrap());
        let namespace = Some("statefulset-scheduling-system");
        let webhook = "system:serviceaccount:statefulset-scheduling-system:statefulset-scheduling-webhook";
        let secret = Some("statefulset-scheduling-webhook-tls");
        for (user, verb, resource, subresource, namespace, name, allowed) in [
            (DEFAULT_CONTROLLER, Verb::Create, Resource::Workloads, None, Some("x"), Some("w"), true),
            (DEFAULT_CONTROLLER, Verb::Delete, Resource::Workloads, None, Some("x"), Some("w"), false),
            (DEFAULT_CONTROLLER, Verb::Patch, Resource::StatefulSets, None, Some("x"), Some("s"), true),
            (
                DEFAULT_CONTROLLER,
                Verb::Patch,
                Resource::StatefulSets,
                Some(Subresource::Status),
                Some("x"),
                None,
                false,
            ),
            (DEFAULT_CONTROLLER, Verb::Watch, Resource::StatefulSets, None, None, None, true),
            (DEFAULT_CONTROLLER, Verb::Create, Resource::Leases, None, namespace, Some("l"), true),
            (DEFAULT_CONTROLLER, Verb::Create, Resource::Leases, None, Some("x"), Some("l"), false),
            (webhook, Verb::Create, Resource::Secrets, None, namespace, secret, true),
            (webhook, Verb::Get, Resource::Secrets, None, namespace, secret, true),
            (webhook, Verb::Get, Resource::Secrets, None, namespace, Some("another"), false),
            (webhook, Verb::List, Resource::Secrets, None, namespace, None, false),
            (ADMIN, Verb::Delete, Resource::Workloads, None, Some("x"), Some("w"), true),
        ] {
            let group = resource.group();
            let occasion = Occasion { user, verb, resource, group, subresource, namespace, name, n: 0, sequence: 0 };
            assert_eq!(permissions.allows(&occasion), allowed, "{occasion:?}");
        }
    }
}
