//! The ResourceClaim controller over HTTP.

mod api;

use api::Api;
use cluster_controllers::identity;
use cluster_controllers::resource_claims::decide::{GROUP_CLAIM, PROTECTION};
use cluster_controllers::resource_claims::{Config, start};
use serde_json::{Value, json};

fn template() -> Value {
    json!({
        "metadata": { "namespace": "prod", "name": "gpus" },
        "spec": { "spec": { "devices": { "requests": [{ "name": "gpu" }] } } },
    })
}

fn group() -> Value {
    json!({
        "metadata": { "namespace": "prod", "name": "group", "uid": "group-uid" },
        "spec": {
            "schedulingPolicy": { "basic": {} },
            "resourceClaims": [{ "name": "shared", "resourceClaimTemplateName": "gpus" }],
        },
    })
}

fn pod(name: &str, group: Option<&str>) -> Value {
    let mut pod = json!({
        "metadata": { "namespace": "prod", "name": name, "uid": format!("{name}-uid") },
        "spec": {
            "containers": [],
            "resourceClaims": [
                { "name": "own", "resourceClaimTemplateName": "gpus" },
                { "name": "shared", "resourceClaimTemplateName": "gpus" },
            ],
        },
    });
    if let Some(group) = group {
        pod["spec"]["schedulingGroup"] = json!({ "podGroupName": group });
    }
    pod
}

fn recorded(api: &Api, plural: &str, name: &str) -> Vec<(String, String)> {
    let object = api.get(plural, name).expect("it is there");
    let statuses = object["status"]["resourceClaimStatuses"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    statuses.iter().map(|status| (text(&status["name"]), text(&status["resourceClaimName"]))).collect()
}

#[tokio::test]
async fn a_group_gets_one_claim_that_its_pods_share_and_each_pod_its_own() {
    let api = Api::start().await;
    api.put("resourceclaimtemplates", template());
    for name in ["web-0", "web-1"] {
        api.put("pods", pod(name, Some("group")));
    }
    let _controller = start(&api.client(), Config::default());
    // Until the group is known, no claim can be told to be the pods' own.
    api.put("podgroups", group());
    api.until("the names of all claims", |api| {
        ["web-0", "web-1"].iter().all(|name| recorded(api, "pods", name).len() == 2)
    })
    .await;
    let shared = recorded(&api, "podgroups", "group");
    assert_eq!(api.list("resourceclaims").len(), 3);
    for name in ["web-0", "web-1"] {
        let claims = recorded(&api, "pods", name);
        assert_eq!(claims[1], shared[0]);
        let own = api.get("resourceclaims", &claims[0].1).expect("it is there");
        assert_eq!(own["metadata"]["ownerReferences"][0]["uid"], format!("{name}-uid"));
    }
    let claim = api.get("resourceclaims", &shared[0].1).expect("it is there");
    assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "PodGroup");
    assert_eq!(claim["metadata"]["annotations"][GROUP_CLAIM], "shared");
    let creates = api.asked("create", "resourceclaims");
    assert!(creates.iter().all(|asked| asked.user == identity::RESOURCE_CLAIM_CONTROLLER));
}

#[tokio::test]
async fn a_template_that_comes_late_is_waited_for() {
    let api = Api::start().await;
    api.put("pods", pod("web-0", None));
    let controller = start(&api.client(), Config::default());
    controller.synced().await;
    api.never("a claim", std::time::Duration::from_millis(50), |api| !api.list("resourceclaims").is_empty()).await;
    api.put("resourceclaimtemplates", template());
    api.until("both claims", |api| recorded(api, "pods", "web-0").len() == 2).await;
    assert_eq!(api.list("resourceclaims").len(), 2);
}

#[tokio::test]
async fn a_claim_is_given_back_when_its_last_consumer_is_gone() {
    let api = Api::start().await;
    api.put("pods", json!({ "metadata": { "namespace": "prod", "name": "web-0", "uid": "web-0-uid" }, "spec": { "containers": [] } }));
    api.put("podgroups", group());
    api.put("resourceclaimtemplates", template());
    api.put(
        "resourceclaims",
        json!({
            "metadata": { "namespace": "prod", "name": "claim", "finalizers": [PROTECTION] },
            "spec": {},
            "status": {
                "allocation": { "devices": {} },
                "reservedFor": [
                    { "resource": "pods", "name": "web-0", "uid": "web-0-uid" },
                    { "resource": "pods", "name": "web-0", "uid": "of-a-former-pod" },
                    { "resource": "podgroups", "apiGroup": "scheduling.k8s.io", "name": "group", "uid": "group-uid" },
                ],
            },
        }),
    );
    let _controller = start(&api.client(), Config::default());
    let reserved = |api: &Api| {
        let claim = api.get("resourceclaims", "claim").expect("it is there");
        claim["status"]["reservedFor"].as_array().map_or(0, Vec::len)
    };
    api.until("the former pod is forgotten", |api| reserved(api) == 2).await;
    api.delete("pods", "web-0", "Background");
    api.until("the pod is forgotten", |api| reserved(api) == 1).await;
    assert!(api.get("resourceclaims", "claim").is_some_and(|claim| claim["status"]["allocation"].is_object()));
    api.delete("podgroups", "group", "Background");
    api.until("the claim is given back", |api| {
        let claim = api.get("resourceclaims", "claim").expect("it is there");
        claim["status"]["allocation"].is_null() && claim["metadata"]["finalizers"].is_null()
    })
    .await;
    assert_eq!(reserved(&api), 0);
}
