//! The authority in the webhook configurations: whom the API server believes.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::kube_api::FIELD_MANAGER;

/// Writes the authorities into both configurations of a name, where they differ. At rest nothing is written.
/// Whether they were there already; a configuration that is not there trusts nobody wrong.
///
/// # Errors
/// One cannot be read or written.
pub async fn ensure(client: &kube::Client, name: &str, authorities: &[u8]) -> kube::Result<bool> {
    let bundle = serde_json::to_value(ByteString(authorities.to_vec())).map_err(kube::Error::SerdeError)?;
    let mut in_place = true;
    let kinds = [
        ApiResource::erase::<MutatingWebhookConfiguration>(&()),
        ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
    ];
    for kind in kinds {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let Some(configuration) = api.get_opt(name).await? else {
            tracing::warn!("there is no {} {name}: nothing is asked of this webhook by one", kind.kind);
            continue;
        };
        if let Some(patch) = patch(&configuration.data, &bundle) {
            let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
            let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            api.patch(name, &parameters, &Patch::<Value>::Json(patch)).await?;
            tracing::info!("the {} {name} trusts the certificate", kind.kind);
            in_place = false;
        }
    }
    Ok(in_place)
}

/// The change to a configuration that makes all its webhooks trust the bundle; none where they do. A webhook
/// that is no longer where it was fails it.
fn patch(configuration: &Value, bundle: &Value) -> Option<Value> {
    let webhooks = configuration["webhooks"].as_array()?;
    let differ = webhooks.iter().enumerate().filter(|(_, webhook)| webhook["clientConfig"]["caBundle"] != *bundle);
    let operations = differ.flat_map(|(index, webhook)| {
        let path = format!("/webhooks/{index}");
        [
            json!({ "op": "test", "path": format!("{path}/name"), "value": webhook["name"] }),
            json!({ "op": "add", "path": format!("{path}/clientConfig/caBundle"), "value": bundle }),
        ]
    });
    let operations: Vec<_> = operations.collect();
    (!operations.is_empty()).then_some(Value::Array(operations))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed() {
        let webhook = |name: &str, bundle: Option<&str>| {
            let mut client = json!({ "service": { "name": "webhook" } });
            if let Some(bundle) = bundle {
                client["caBundle"] = bundle.into();
            }
            json!({ "name": name, "clientConfig": client })
        };
        let configuration =
            json!({ "webhooks": [webhook("a", Some("eA==")), webhook("b", None), webhook("c", Some("eQ=="))] });
        let patch_to = |bundle: &str| patch(&configuration, &bundle.into());
        let paths = |patch: Option<Value>| -> Vec<String> {
            let operations = patch.into_iter().flat_map(|patch| patch.as_array().cloned().unwrap_or_default());
            operations.map(|one| format!("{} {}", one["op"], one["path"]).replace('"', "")).collect()
        };
        assert_eq!(
            paths(patch_to("eA==")),
            [
                "test /webhooks/1/name",
                "add /webhooks/1/clientConfig/caBundle",
                "test /webhooks/2/name",
                "add /webhooks/2/clientConfig/caBundle"
            ]
        );
        let in_place = json!({ "webhooks": [webhook("a", Some("eA=="))] });
        assert_eq!(patch(&in_place, &"eA==".into()), None);
        assert_eq!(patch(&json!({}), &"eA==".into()), None);
    }
}
