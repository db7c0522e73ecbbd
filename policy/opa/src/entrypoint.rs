//! The questions of the module.

use serde::Serialize;
use statefulset_scheduling_core::admission::{self, AdmissionReview, Call, Verdict};
use statefulset_scheduling_core::query;

use crate::data::{Data, members};

/// The entrypoints and their ids, as the ABI's function of this name answers.
pub const ENTRYPOINTS: &str = concat!(
    r#"{"statefulset_scheduling/review":0,"#,
    r#""statefulset_scheduling/validate":1,"#,
    r#""statefulset_scheduling/compile":2,"#,
    r#""statefulset_scheduling/query":3}"#,
);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrypoint {
    /// For the answer to an admission request.
    Review,
    /// Whether an intent is valid.
    Validate,
    /// For the objects that an intent compiles to.
    Compile,
    /// Anything that the core can be asked.
    Query,
}

impl Entrypoint {
    /// The entrypoint of this id.
    pub fn from_id(id: i32) -> Option<Self> {
        match id {
            0 => Some(Self::Review),
            1 => Some(Self::Validate),
            2 => Some(Self::Compile),
            3 => Some(Self::Query),
            _ => None,
        }
    }
}

/// Evaluates an entrypoint: a result set of one result. The data must be JSON, the input need not.
pub fn evaluate(entrypoint: Entrypoint, input: &[u8], data: &str) -> String {
    let answer = match std::str::from_utf8(input) {
        Ok(input) => answer(entrypoint, input, &Data::new(data)),
        Err(error) => unreadable(entrypoint, "", format!("the request is not UTF-8: {error}")),
    };
    format!(r#"[{{"result":{answer}}}]"#)
}

fn answer(entrypoint: Entrypoint, input: &str, data: &Data<'_>) -> String {
    let query = match entrypoint {
        Entrypoint::Review => return review(input, data),
        Entrypoint::Validate => format!(r#"{{"validate":{input}}}"#),
        Entrypoint::Compile => format!(r#"{{"compile":{input}}}"#),
        Entrypoint::Query => input.to_owned(),
    };
    match query::answer(&query, data).map(String::from_utf8) {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => unreadable(entrypoint, input, error.to_string()),
        Err(error) => unreadable(entrypoint, input, error.to_string()),
    }
}

fn review(input: &str, data: &Data<'_>) -> String {
    // The settings are the engine's to give: those that an input may have are left where they are.
    let request = members(input).and_then(|members| members.get("request").map(|raw| raw.get()));
    let call = match request {
        Some(request) => format!(r#"{{"request":{request},"settings":{}}}"#, data.settings),
        // The core says what is wrong with it.
        None => input.to_owned(),
    };
    let verdict = match Call::parse(&call) {
        Ok(call) => admission::answer(&call, data),
        Err(error) => Verdict::deny(400, error.to_string()),
    };
    respond(input, verdict)
}

fn respond(input: &str, verdict: Verdict) -> String {
    let uid = members(input)
        .and_then(|members| members.get("request").map(|raw| raw.get()))
        .and_then(members)
        .and_then(|request| request.get("uid").map(|raw| raw.get()))
        .and_then(|uid| serde_json::from_str(uid).ok())
        .unwrap_or_default();
    match AdmissionReview::new(uid, verdict) {
        Ok(review) => write(&review),
        Err(error) => write(&Unreadable { error: error.to_string() }),
    }
}

#[derive(Serialize)]
struct Unreadable {
    error: String,
}

fn unreadable(entrypoint: Entrypoint, input: &str, error: String) -> String {
    match entrypoint {
        Entrypoint::Review => respond(input, Verdict::deny(400, error)),
        _ => write(&Unreadable { error }),
    }
}

/// Text can always be written; were it not so, the result would be none.
fn write(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;

    fn ask(entrypoint: Entrypoint, input: &str, data: &str) -> Value {
        let mut results: Value = serde_json::from_str(&evaluate(entrypoint, input.as_bytes(), data)).unwrap();
        assert_eq!(results.as_array().map(Vec::len), Some(1), "{results}");
        results[0]["result"].take()
    }

    fn create(scheduling: &Value) -> String {
        let object = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
            "spec": {"podManagementPolicy": "Parallel", "scheduling": scheduling, "template": {"spec": {}}}});
        let kind = json!({"group": "apps", "version": "v1", "kind": "StatefulSet"});
        json!({"request": {"uid": "u-1", "kind": kind, "operation": "CREATE", "object": object}}).to_string()
    }

    #[test]
    fn every_entrypoint_is_told_with_its_id() {
        let told: std::collections::BTreeMap<String, i32> = serde_json::from_str(ENTRYPOINTS).unwrap();
        let names = ["review", "validate", "compile", "query"].map(|name| format!("statefulset_scheduling/{name}"));
        for (id, name) in (0..).zip(&names) {
            assert_eq!(told[name], id);
            let entrypoint = Entrypoint::from_id(id).map(|entrypoint| format!("{entrypoint:?}").to_lowercase());
            assert_eq!(entrypoint.as_deref(), name.strip_prefix("statefulset_scheduling/"));
        }
        assert_eq!((told.len(), Entrypoint::from_id(4), Entrypoint::from_id(-1)), (4, None, None));
    }

    #[test]
    fn a_review_is_answered_as_an_api_server_expects() {
        let allowed = ask(Entrypoint::Review, &create(&json!({"schedulingPolicy": {"gang": {}}})), "{}");
        assert_eq!(
            (&allowed["apiVersion"], &allowed["kind"]),
            (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
        );
        let response = &allowed["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(true)));
        assert_eq!(response["patchType"], "JSONPatch");
        assert_eq!(decode(&response["patch"])[0]["op"], "add");
        assert!(response.get("status").is_none() && response.get("warnings").is_none());

        let denied = ask(Entrypoint::Review, &create(&json!({"schedulingPolicy": {}})), "{}");
        assert_eq!(
            (&denied["response"]["allowed"], &denied["response"]["status"]["code"]),
            (&json!(false), &json!(422))
        );
        assert!(denied["response"].get("patch").is_none() && denied["response"].get("patchType").is_none());
    }

    fn decode(patch: &Value) -> Value {
        serde_json::from_slice(&STANDARD.decode(patch.as_str().unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn the_settings_come_from_the_data_and_never_from_the_input() {
        let mut input: Value = serde_json::from_str(&create(&json!({"schedulingPolicy": {}}))).unwrap();
        input["settings"] = json!({"featureGates": "WorkloadWithStatefulSet=false"});
        assert_eq!(ask(Entrypoint::Review, &input.to_string(), "{}")["response"]["allowed"], false);
        let closed = r#"{"featureGates": "WorkloadWithStatefulSet=false", "kubernetes": {}}"#;
        assert_eq!(
            ask(Entrypoint::Review, &create(&json!({"schedulingPolicy": {}})), closed)["response"]["allowed"],
            true
        );
        for unreadable in ["[]", "3", r#"{"unknown": 1}"#] {
            let response = &ask(Entrypoint::Review, &create(&json!({})), unreadable)["response"];
            assert_eq!(
                (&response["allowed"], &response["status"]["code"]),
                (&json!(false), &json!(500)),
                "{unreadable}"
            );
        }
    }

    #[test]
    fn the_queries_of_the_core_are_answered() {
        let report = ask(Entrypoint::Validate, r#"{"scheduling": {"schedulingPolicy": {}}}"#, "{}");
        assert_eq!(report["declarative"].as_array().map(Vec::len), Some(1), "{report}");
        let statefulset = json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": {"replicas": 3,
            "scheduling": {"schedulingPolicy": {"gang": {}}}, "template": {"spec": {}}}});
        let compiled = ask(Entrypoint::Compile, &json!({"statefulSet": statefulset}).to_string(), "{}");
        assert_eq!(compiled["podGroup"]["spec"]["schedulingPolicy"]["gang"]["minCount"], 3, "{compiled}");
        let name = r#"{"workloadName": {"ownerName": "web", "ownerUID": "u"}}"#;
        assert!(ask(Entrypoint::Query, name, "{}").as_str().unwrap().starts_with("web-"));
        let not_opted_in = json!({"statefulSet": {"metadata": {"name": "web"}, "spec": {}}}).to_string();
        assert_eq!(ask(Entrypoint::Compile, &not_opted_in, "{}"), Value::Null);
    }

    #[test]
    fn what_cannot_be_read_is_an_answer() {
        for input in ["", "{", "3", "null", "[]", r#"{"request": null}"#, r#"{"request": 3}"#, r#"{}, "review": {}"#] {
            let response = &ask(Entrypoint::Review, input, "{}")["response"];
            assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)), "{input}");
            for entrypoint in [Entrypoint::Compile, Entrypoint::Query] {
                assert!(ask(entrypoint, input, "{}")["error"].is_string(), "{entrypoint:?} {input}");
            }
        }
        assert!(ask(Entrypoint::Validate, "{", "{}")["error"].is_string());
        for entrypoint in [Entrypoint::Review, Entrypoint::Query] {
            let results: Value = serde_json::from_str(&evaluate(entrypoint, b"\xff", "{}")).unwrap();
            assert!(results.to_string().contains("not UTF-8"), "{results}");
        }
    }
}
