//! What becomes of whole requests, as an engine hands them over.

use serde_json::{Value, json};

use super::{Call, DEFAULT_CONTROLLER, MAX_MESSAGE_LENGTH, Verdict, answer};
use crate::api::{Carrier, MANAGED_LABEL, SCHEDULING_ANNOTATION};
use crate::binding::BINDING_ANNOTATION;
use crate::query::NoCluster;

const USER: &str = "kubernetes-admin";
const BOTH: [Carrier; 2] = [Carrier::Field, Carrier::Annotation];
const BINDING: &str = r#"{"name":"web-5","uid":"9c1f","replicas":3}"#;
const ANNOTATION: &str = "metadata.annotations[statefulset-scheduling.dev/scheduling]";

// Fixtures.

fn no_settings() -> Value {
    json!({})
}

fn closed_workload() -> Value {
    json!({"featureGates": "WorkloadWithStatefulSet=false"})
}

fn closed_claims() -> Value {
    json!({"featureGates": "DRAWorkloadResourceClaims=false"})
}

/// A StatefulSet without an intent.
fn plain() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "annotations": {"team": "shop"}},
        "spec": {
            "serviceName": "web",
            "replicas": 3,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [
                    {"name": "web", "image": "nginx:1.29", "resources": {"limits": {"cpu": 0.50}}},
                ]},
            },
        },
    })
}

/// `object` with the intent `scheduling` in `carrier`.
fn with(carrier: Carrier, scheduling: &Value, mut object: Value) -> Value {
    match carrier {
        Carrier::Field => object["spec"]["scheduling"] = scheduling.clone(),
        Carrier::Annotation => object["metadata"]["annotations"][SCHEDULING_ANNOTATION] = scheduling.to_string().into(),
    }
    object
}

fn annotated(text: &str) -> Value {
    let mut object = plain();
    object["metadata"]["annotations"][SCHEDULING_ANNOTATION] = text.into();
    object
}

fn gang() -> Value {
    json!({"schedulingPolicy": {"gang": {}}})
}

fn opted_in(carrier: Carrier) -> Value {
    with(carrier, &gang(), plain())
}

fn labelled(mut object: Value, value: &str) -> Value {
    object["spec"]["template"]["metadata"]["labels"][MANAGED_LABEL] = value.into();
    object
}

fn bound(mut object: Value, binding: &str) -> Value {
    object["metadata"]["annotations"][BINDING_ANNOTATION] = binding.into();
    object
}

/// An opted-in StatefulSet as it is once the policy and the controller have seen it.
fn settled(carrier: Carrier) -> Value {
    bound(labelled(opted_in(carrier), "true"), BINDING)
}

/// `object` with the member at a JSON pointer removed.
fn without(mut object: Value, parent: &str, name: &str) -> Value {
    object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    object
}

/// `object` with the member at a JSON pointer set.
fn setting(mut object: Value, parent: &str, name: &str, value: Value) -> Value {
    object.pointer_mut(parent).unwrap()[name] = value;
    object
}

// Requests.

fn request(operation: &str, user: &str, object: &Value, old_object: &Value) -> Value {
    json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "apps", "version": "v1", "kind": "StatefulSet"},
        "resource": {"group": "apps", "version": "v1", "resource": "statefulsets"},
        "name": "web",
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": object,
        "oldObject": old_object,
        "dryRun": false,
    })
}

fn ask(request: &Value, settings: &Value) -> Verdict {
    let call = json!({"request": request, "settings": settings}).to_string();
    answer(&Call::parse(&call).unwrap(), &NoCluster)
}

fn create(object: &Value, settings: &Value) -> Verdict {
    ask(&request("CREATE", USER, object, &Value::Null), settings)
}

fn update(old: &Value, new: &Value, settings: &Value) -> Verdict {
    ask(&request("UPDATE", USER, new, old), settings)
}

/// What is stored: the object, changed as the verdict says. Asked about again, nothing changes.
fn stored(verdict: &Verdict, object: &Value, again: impl Fn(&Value) -> Verdict) -> Value {
    assert!(verdict.allowed && verdict.message.is_empty() && verdict.code == 0, "{}", verdict.message);
    let changed = verdict.patch.apply(&object.to_string()).unwrap();
    let second = again(&changed);
    assert!(second.allowed, "{}", second.message);
    assert_eq!(second.patch, super::Patch::default(), "a second review changes something");
    changed
}

/// What a create stores.
fn created(object: &Value, settings: &Value) -> Value {
    stored(&create(object, settings), object, |changed| create(changed, settings))
}

/// What an update stores.
fn updated(old: &Value, new: &Value, settings: &Value) -> Value {
    stored(&update(old, new, settings), new, |changed| update(old, changed, settings))
}

fn operations(verdict: &Verdict) -> Value {
    serde_json::to_value(&verdict.patch).unwrap()
}

#[track_caller]
fn assert_untouched(verdict: &Verdict, what: &str) {
    assert_eq!(verdict, &Verdict::allow(), "{what}");
}

/// The request is denied with these errors, and nothing is changed.
#[track_caller]
fn assert_refused(verdict: &Verdict, errors: &[&str]) {
    let found: Vec<String> = verdict.errors.iter().map(ToString::to_string).collect();
    assert_eq!(found, errors);
    let message = if let [one] = errors { (*one).to_owned() } else { format!("[{}]", errors.join(", ")) };
    assert_eq!((verdict.allowed, verdict.code, &verdict.message), (false, 422, &message));
    assert!(verdict.patch.is_empty());
}

// The label.

#[test]
fn a_new_statefulset_that_opted_in_gets_the_label_on_its_pod_template() {
    let label = json!({MANAGED_LABEL: "true"});
    let at_label = "/spec/template/metadata/labels/statefulset-scheduling.dev~1managed";
    for (metadata, patch) in [
        (json!({"labels": {"app": "web"}}), json!([{"op": "add", "path": at_label, "value": "true"}])),
        (json!({"labels": {}}), json!([{"op": "add", "path": at_label, "value": "true"}])),
        (json!({"labels": {MANAGED_LABEL: "false"}}), json!([{"op": "add", "path": at_label, "value": "true"}])),
        (json!({"labels": {MANAGED_LABEL: null}}), json!([{"op": "add", "path": at_label, "value": "true"}])),
        (json!({"labels": {MANAGED_LABEL: true}}), json!([{"op": "add", "path": at_label, "value": "true"}])),
        (json!({}), json!([{"op": "add", "path": "/spec/template/metadata/labels", "value": label}])),
        (
            json!({"labels": null, "annotations": {"a": "b"}}),
            json!([{"op": "add", "path": "/spec/template/metadata/labels", "value": label}]),
        ),
        (json!(null), json!([{"op": "add", "path": "/spec/template/metadata", "value": {"labels": label}}])),
        (json!({"labels": {MANAGED_LABEL: "true"}}), json!([])),
    ] {
        for carrier in BOTH {
            let object = setting(opted_in(carrier), "/spec/template", "metadata", metadata.clone());
            let verdict = create(&object, &no_settings());
            assert_eq!(operations(&verdict), patch, "{metadata}");
            assert_eq!(verdict.warnings, [""; 0]);
            let stored = created(&object, &no_settings());
            assert_eq!(stored.pointer(at_label), Some(&json!("true")), "{metadata}");
        }
    }
    for carrier in BOTH {
        let object = without(opted_in(carrier), "/spec/template", "metadata");
        let patch = json!([{"op": "add", "path": "/spec/template/metadata", "value": {"labels": label}}]);
        assert_eq!(operations(&create(&object, &no_settings())), patch);
        assert_eq!(created(&object, &no_settings()).pointer(at_label), Some(&json!("true")));
    }
}

#[test]
fn the_label_is_the_only_thing_that_changes_about_a_valid_new_statefulset() {
    for carrier in BOTH {
        assert_eq!(created(&opted_in(carrier), &no_settings()), labelled(opted_in(carrier), "true"));
        let object = setting(opted_in(carrier), "/spec/template", "futureField", json!({"deep": [1, null]}));
        assert_eq!(created(&object, &Value::Null), labelled(object, "true"));
    }
}

#[test]
fn a_statefulset_without_a_template_gets_no_label_and_is_left_to_the_api_server() {
    for carrier in BOTH {
        for object in [
            without(opted_in(carrier), "/spec", "template"),
            setting(opted_in(carrier), "/spec", "template", Value::Null),
        ] {
            assert_untouched(&create(&object, &no_settings()), "create");
            assert_untouched(&update(&settled(carrier), &bound(object, BINDING), &no_settings()), "update");
        }
    }
}

#[test]
fn an_update_puts_back_the_label_that_somebody_dropped_or_changed() {
    for carrier in BOTH {
        let old = settled(carrier);
        let labels = "/spec/template/metadata/labels";
        for new in [
            without(old.clone(), labels, MANAGED_LABEL),
            labelled(old.clone(), "false"),
            labelled(old.clone(), ""),
            setting(old.clone(), labels, MANAGED_LABEL, Value::Null),
        ] {
            assert_eq!(updated(&old, &new, &no_settings()), old);
            let request = request("UPDATE", DEFAULT_CONTROLLER, &new, &old);
            assert_untouched(&ask(&request, &no_settings()), "the controller may");
        }
        let bare = without(old.clone(), "/spec/template", "metadata");
        assert_eq!(
            operations(&update(&old, &bare, &no_settings())),
            json!([{"op": "add", "path": "/spec/template/metadata", "value": {"labels": {MANAGED_LABEL: "true"}}}])
        );
    }
}

#[test]
fn an_update_never_adds_a_label_that_the_old_object_lacked() {
    for carrier in BOTH {
        let old = opted_in(carrier);
        for new in [
            old.clone(),
            setting(old.clone(), "/spec", "replicas", json!(5)),
            setting(old.clone(), "/spec/template", "metadata", Value::Null),
            labelled(old.clone(), "true"),
            labelled(old.clone(), "false"),
        ] {
            assert_untouched(&update(&old, &new, &no_settings()), &new.to_string());
        }
        let old = labelled(old, "false");
        assert_untouched(&update(&old, &opted_in(carrier), &no_settings()), "the label had another value");
    }
    let old = labelled(plain(), "true");
    assert_untouched(&update(&old, &plain(), &no_settings()), "it never opted in");
}

// The binding.

#[test]
fn a_binding_is_stripped_from_what_is_new() {
    let remove = json!({"op": "remove", "path": "/metadata/annotations/statefulset-scheduling.dev~1pod-group"});
    for user in [USER, DEFAULT_CONTROLLER] {
        let object = bound(plain(), BINDING);
        let verdict = ask(&request("CREATE", user, &object, &Value::Null), &no_settings());
        assert_eq!(operations(&verdict), json!([remove]), "{user}");
    }
    for binding in [BINDING, "", "no binding at all"] {
        assert_eq!(created(&bound(plain(), binding), &no_settings()), plain(), "{binding}");
        assert_eq!(created(&bound(opted_in(Carrier::Field), binding), &closed_workload()), plain(), "{binding}");
        for carrier in BOTH {
            let stored = created(&bound(opted_in(carrier), binding), &no_settings());
            assert_eq!(stored, labelled(opted_in(carrier), "true"), "{binding}");
        }
    }
}

#[test]
fn an_update_undoes_what_anybody_but_the_controller_did_to_the_binding() {
    let at_binding = "/metadata/annotations/statefulset-scheduling.dev~1pod-group";
    let put_back = json!([{"op": "add", "path": at_binding, "value": BINDING}]);
    let remove = json!([{"op": "remove", "path": at_binding}]);
    let intents = BOTH.map(|carrier| labelled(opted_in(carrier), "true"));
    for object in intents.into_iter().chain([plain()]) {
        for (old, new, patch) in [
            (bound(object.clone(), BINDING), object.clone(), &put_back),
            (bound(object.clone(), BINDING), bound(object.clone(), ""), &put_back),
            (bound(object.clone(), BINDING), bound(object.clone(), r#"{"fallback":"Mine"}"#), &put_back),
            (object.clone(), bound(object.clone(), BINDING), &remove),
        ] {
            assert_eq!(&operations(&update(&old, &new, &no_settings())), patch, "{new}");
            assert_eq!(updated(&old, &new, &no_settings()), old);
            let by_controller = |settings: &Value, user| ask(&request("UPDATE", user, &new, &old), settings);
            assert_untouched(&by_controller(&no_settings(), DEFAULT_CONTROLLER), "the controller may");
            let renamed = json!({"controllers": ["system:serviceaccount:a:b", "ops"]});
            assert_untouched(&by_controller(&renamed, "ops"), "the controller of the settings may");
            assert_eq!(&operations(&by_controller(&renamed, DEFAULT_CONTROLLER)), patch, "and nobody else");
        }
    }
}

#[test]
fn a_binding_is_put_back_where_no_annotation_is_left() {
    let old = settled(Carrier::Field);
    for new in [
        without(old.clone(), "/metadata", "annotations"),
        setting(old.clone(), "/metadata", "annotations", json!(null)),
    ] {
        let verdict = update(&old, &new, &no_settings());
        assert_eq!(
            operations(&verdict),
            json!([{"op": "add", "path": "/metadata/annotations", "value": {BINDING_ANNOTATION: BINDING}}])
        );
        let stored = updated(&old, &new, &no_settings());
        assert_eq!(stored["metadata"]["annotations"], json!({BINDING_ANNOTATION: BINDING}));
    }
    let new = setting(old.clone(), "/metadata", "annotations", json!({}));
    let patch = json!([{"op": "add", "path": "/metadata/annotations/statefulset-scheduling.dev~1pod-group",
        "value": BINDING}]);
    assert_eq!(operations(&update(&old, &new, &no_settings())), patch);
}

#[test]
fn a_manifest_that_is_applied_again_keeps_what_was_added_to_it() {
    for carrier in BOTH {
        let manifest = setting(opted_in(carrier), "/spec", "replicas", json!(5));
        let stored = updated(&settled(carrier), &manifest, &no_settings());
        assert_eq!(stored, setting(settled(carrier), "/spec", "replicas", json!(5)));
    }
    let text = r#"{"schedulingPolicy":{"gang":{}}}"#;
    let with_claims = r#"{"schedulingPolicy":{"gang":{}},"resourceClaims":[{"name":"a","resourceClaimName":"c"}]}"#;
    let old = bound(labelled(annotated(text), "true"), BINDING);
    assert_eq!(updated(&old, &annotated(with_claims), &closed_claims()), old, "all of it at once");
}

// The gate of the feature.

#[test]
fn a_closed_workload_gate_removes_the_intent_of_what_is_new() {
    let at_field = json!({"op": "remove", "path": "/spec/scheduling"});
    let at_annotation = json!({"op": "remove", "path": "/metadata/annotations/statefulset-scheduling.dev~1scheduling"});
    let field_warning = "spec.scheduling: removed, the feature gate WorkloadWithStatefulSet is closed";
    let annotation_warning = "metadata.annotations[statefulset-scheduling.dev/scheduling]: removed, the feature gate \
                              WorkloadWithStatefulSet is closed";
    let broken = with(Carrier::Field, &json!({"schedulingPolicy": 3}), plain());
    for (object, patch, warnings) in [
        (opted_in(Carrier::Field), json!([at_field]), &[field_warning][..]),
        (opted_in(Carrier::Annotation), json!([at_annotation]), &[annotation_warning]),
        (
            with(Carrier::Annotation, &gang(), opted_in(Carrier::Field)),
            json!([at_field, at_annotation]),
            &[field_warning, annotation_warning],
        ),
        (annotated("[cannot be read"), json!([at_annotation]), &[annotation_warning]),
        (broken, json!([at_field]), &[field_warning]),
    ] {
        for verdict in [create(&object, &closed_workload()), update(&plain(), &object, &closed_workload())] {
            assert_eq!(operations(&verdict), patch);
            assert_eq!(verdict.warnings, warnings);
        }
        assert_eq!(created(&object, &closed_workload()), plain());
        assert_eq!(updated(&plain(), &object, &closed_workload()), plain());
    }
    assert_untouched(&create(&plain(), &closed_workload()), "it did not opt in");
}

#[test]
fn a_closed_workload_gate_keeps_the_intent_that_is_stored() {
    for carrier in BOTH {
        let old = settled(carrier);
        let scaled = setting(old.clone(), "/spec", "replicas", json!(5));
        assert_untouched(&update(&old, &old, &closed_workload()), "unchanged");
        assert_untouched(&update(&old, &scaled, &closed_workload()), "scaled");
        let manifest = setting(opted_in(carrier), "/spec", "replicas", json!(5));
        assert_eq!(updated(&old, &manifest, &closed_workload()), scaled, "applied again");
    }
}

#[test]
fn a_closed_workload_gate_refuses_a_change() {
    let basic = json!({"schedulingPolicy": {"basic": {}}});
    let field = ["spec.scheduling: Forbidden", "spec.scheduling: Invalid value: null: field is immutable"];
    let annotation = [
        "metadata.annotations[statefulset-scheduling.dev/scheduling]: Forbidden",
        "metadata.annotations[statefulset-scheduling.dev/scheduling]: Invalid value: null: field is immutable",
    ];
    for (carrier, errors) in [(Carrier::Field, field), (Carrier::Annotation, annotation)] {
        let old = settled(carrier);
        assert_refused(&update(&old, &with(carrier, &basic, plain()), &closed_workload()), &errors);
        assert_refused(&update(&old, &plain(), &closed_workload()), &errors[1..]);
    }
}

// The gate of shared claims.

/// An intent with one claim, and a StatefulSet of which the pods use it.
fn claiming(carrier: Carrier) -> Value {
    let claims = json!([{"name": "gpus", "resourceClaimTemplateName": "gpu-pool"}]);
    let scheduling = json!({
        "schedulingPolicy": {"gang": {}},
        "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]},
        "disruptionMode": {"all": {}},
        "resourceClaims": claims,
    });
    setting(with(carrier, &scheduling, plain()), "/spec/template/spec", "resourceClaims", claims)
}

/// The same without the shared claim.
fn unclaiming(carrier: Carrier) -> Value {
    let scheduling = json!({
        "schedulingPolicy": {"gang": {}},
        "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]},
        "disruptionMode": {"all": {}},
    });
    with(carrier, &scheduling, claiming(carrier))
}

#[test]
fn a_closed_claims_gate_removes_the_claims_of_what_is_new_and_keeps_the_rest() {
    let label = json!({"op": "add", "path": "/spec/template/metadata/labels/statefulset-scheduling.dev~1managed",
        "value": "true"});
    let text = concat!(
        r#"{"schedulingPolicy":{"gang":{}},"#,
        r#""schedulingConstraints":{"topology":[{"key":"topology.kubernetes.io/rack"}]},"#,
        r#""disruptionMode":{"all":{}}}"#,
    );
    let at_annotation = "/metadata/annotations/statefulset-scheduling.dev~1scheduling";
    let rewritten = json!({"op": "add", "path": at_annotation, "value": text});
    for (carrier, path, change) in [
        (Carrier::Field, "spec.scheduling", json!({"op": "remove", "path": "/spec/scheduling/resourceClaims"})),
        (Carrier::Annotation, ANNOTATION, rewritten),
    ] {
        let verdict = create(&claiming(carrier), &closed_claims());
        assert_eq!(operations(&verdict), json!([change, label]));
        assert_eq!(
            verdict.warnings,
            [format!("{path}.resourceClaims: removed, the feature gate DRAWorkloadResourceClaims is closed")]
        );
        let stored = created(&claiming(carrier), &closed_claims());
        match carrier {
            Carrier::Field => assert_eq!(stored, labelled(unclaiming(carrier), "true")),
            Carrier::Annotation => assert_eq!(stored["spec"], labelled(unclaiming(carrier), "true")["spec"]),
        }
        assert_eq!(created(&claiming(carrier), &no_settings()), labelled(claiming(carrier), "true"), "open");
    }
}

#[test]
fn claims_that_a_closed_gate_removes_are_not_judged() {
    let scheduling = json!({"resourceClaims": [{}, {}, {}, {}, {}]});
    for carrier in BOTH {
        let stored = created(&with(carrier, &scheduling, plain()), &closed_claims());
        assert_eq!(stored, labelled(with(carrier, &json!({}), plain()), "true"));
    }
}

#[test]
fn a_closed_claims_gate_removes_the_claims_of_a_manifest_that_is_applied_again() {
    let warning = |carrier: Carrier| {
        let path = carrier.path();
        format!("{path}.resourceClaims: removed, the feature gate DRAWorkloadResourceClaims is closed")
    };
    for carrier in BOTH {
        let old = created(&claiming(carrier), &closed_claims());
        let verdict = update(&old, &claiming(carrier), &closed_claims());
        assert_eq!(verdict.warnings, [warning(carrier)]);
        assert_eq!(updated(&old, &claiming(carrier), &closed_claims()), old);
        let immutable = format!("{}: Invalid value: null: field is immutable", carrier.path());
        assert_refused(&update(&old, &claiming(carrier), &no_settings()), &[&immutable]);
        // The rest of the intent is no less immutable.
        let changed = json!({"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpu-pool"}]});
        assert_refused(&update(&old, &with(carrier, &changed, plain()), &closed_claims()), &[&immutable]);
    }
    let (field, annotation) = (Carrier::Field, Carrier::Annotation);
    for (from, to) in [(field, annotation), (annotation, field)] {
        let old = created(&claiming(from), &closed_claims());
        let stored = updated(&old, &labelled(claiming(to), "true"), &closed_claims());
        assert_eq!(stored, created(&claiming(to), &closed_claims()), "moved to the {to}");
    }
}

#[test]
fn a_closed_claims_gate_keeps_the_claims_that_are_stored_and_refuses_to_change_them() {
    for carrier in BOTH {
        let old = labelled(claiming(carrier), "true");
        let scaled = setting(old.clone(), "/spec", "replicas", json!(5));
        assert_untouched(&update(&old, &scaled, &closed_claims()), "scaled");
        for other in BOTH {
            let moved = labelled(claiming(other), "true");
            assert_untouched(&update(&old, &moved, &closed_claims()), "written anew");
        }
        let immutable = format!("{}: Invalid value: null: field is immutable", carrier.path());
        let other = json!({"resourceClaims": [{"name": "gpus", "resourceClaimName": "another"}]});
        assert_refused(&update(&old, &with(carrier, &other, old.clone()), &closed_claims()), &[&immutable]);
        assert_refused(&update(&old, &unclaiming(carrier), &closed_claims()), &[&immutable]);
    }
}

// The intent is immutable as a whole.

#[test]
fn an_intent_may_be_written_anew_as_long_as_it_means_the_same() {
    let full = json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}});
    let field = |scheduling: Value| with(Carrier::Field, &scheduling, plain());
    let spellings = [
        field(full),
        field(json!({"disruptionMode": {"all": {}}, "schedulingPolicy": {"basic": null, "gang": {"minCount": null}}})),
        field(json!({"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}, "resourceClaims": []})),
        annotated(r#"{"schedulingPolicy":{"gang":{}},"disruptionMode":{"all":{}}}"#),
        annotated("{\n  \"disruptionMode\": {\"all\": {}},\n  \"schedulingPolicy\": {\"gang\": {}}\n}\n"),
        annotated("schedulingPolicy:\n  gang: {}\ndisruptionMode:\n  all: {}\n"),
        annotated("# one unit\ndisruptionMode: {all: {}}\nschedulingPolicy: {gang: {}}\nresourceClaims: []\n"),
    ];
    for old in &spellings {
        for new in &spellings {
            let (old, new) = (labelled(old.clone(), "true"), labelled(new.clone(), "true"));
            assert_untouched(&update(&old, &new, &no_settings()), &format!("{old} -> {new}"));
            assert_untouched(&update(&old, &new, &closed_workload()), &format!("{old} -> {new}"));
        }
    }
}

#[test]
fn an_intent_may_not_be_added_removed_or_changed() {
    let field = "spec.scheduling: Invalid value: null: field is immutable";
    let annotation =
        "metadata.annotations[statefulset-scheduling.dev/scheduling]: Invalid value: null: field is immutable";
    let basic = json!({"schedulingPolicy": {"basic": {}}});
    for (carrier, error) in [(Carrier::Field, field), (Carrier::Annotation, annotation)] {
        for scheduling in [json!({}), gang(), basic.clone()] {
            let set = with(carrier, &scheduling, plain());
            assert_refused(&update(&plain(), &set, &no_settings()), &[error]);
            assert_refused(&update(&set, &plain(), &no_settings()), &[error]);
        }
        for (old, new) in [(gang(), basic.clone()), (basic.clone(), gang()), (gang(), json!({}))] {
            let [old, new] = [old, new].map(|scheduling| with(carrier, &scheduling, plain()));
            assert_refused(&update(&old, &new, &no_settings()), &[error]);
            let request = request("UPDATE", DEFAULT_CONTROLLER, &new, &old);
            assert_refused(&ask(&request, &no_settings()), &[error]);
        }
    }
    let moved = with(Carrier::Annotation, &basic, plain());
    assert_refused(&update(&opted_in(Carrier::Field), &moved, &no_settings()), &[annotation]);
    let moved = with(Carrier::Field, &basic, plain());
    assert_refused(&update(&opted_in(Carrier::Annotation), &moved, &no_settings()), &[field]);
}

#[test]
fn both_carriers_at_once_are_refused_unless_they_were_there_before() {
    let error = "metadata.annotations[statefulset-scheduling.dev/scheduling]: Forbidden: may not be set together with \
                 spec.scheduling; remove one of the two";
    let both = with(Carrier::Annotation, &gang(), opted_in(Carrier::Field));
    assert_refused(&create(&both, &no_settings()), &[error]);
    for carrier in BOTH {
        assert_refused(&update(&opted_in(carrier), &both, &no_settings()), &[error]);
    }
    let scaled = setting(both.clone(), "/spec", "replicas", json!(5));
    assert_untouched(&update(&both, &scaled, &no_settings()), "it predates the policy");
}

#[test]
fn an_annotation_that_cannot_be_read_is_refused_unless_it_was_there_before() {
    let old = annotated("schedulingPolicy: [");
    let scaled = setting(old.clone(), "/spec", "replicas", json!(5));
    assert_untouched(&update(&old, &scaled, &no_settings()), "scaled");
    let partition = json!({"rollingUpdate": {"partition": 1}});
    let partitioned = setting(old.clone(), "/spec", "updateStrategy", partition);
    assert_untouched(&update(&old, &partitioned, &no_settings()), "it has no group");
    let bound = bound(old.clone(), BINDING);
    assert_eq!(updated(&old, &bound, &no_settings()), old, "the binding is nobody's to write");

    let empty = "metadata.annotations[statefulset-scheduling.dev/scheduling]: Required value: is empty; write {} for \
                 the Basic policy";
    assert_refused(&create(&annotated(""), &no_settings()), &[empty]);
    assert_refused(&update(&opted_in(Carrier::Annotation), &annotated(""), &no_settings()), &[empty]);
    assert_refused(&update(&old, &annotated(""), &no_settings()), &[empty]);
    let immutable =
        "metadata.annotations[statefulset-scheduling.dev/scheduling]: Invalid value: null: field is immutable";
    assert_refused(&update(&old, &opted_in(Carrier::Annotation), &no_settings()), &[immutable]);
    assert_refused(&update(&old, &plain(), &no_settings()), &[immutable]);
}

#[test]
fn an_intent_in_a_carrier_that_is_not_read_is_somebody_elses() {
    for (unread, read) in [("field", "annotation"), ("annotation", "field")] {
        let settings = json!({"carriers": [read]});
        let carrier = if unread == "field" { Carrier::Field } else { Carrier::Annotation };
        let object = with(carrier, &json!({"schedulingPolicy": 3}), plain());
        assert_untouched(&create(&object, &settings), unread);
        assert_untouched(&update(&plain(), &object, &settings), unread);
        assert_untouched(&update(&object, &plain(), &settings), unread);
        let other = if carrier == Carrier::Field { Carrier::Annotation } else { Carrier::Field };
        let both = with(other, &gang(), object);
        assert_eq!(created(&both, &settings), labelled(both, "true"), "only the {read} counts");
    }
}

// The rules.

#[test]
fn a_new_statefulset_is_denied_with_every_error_and_warning_at_once() {
    let object =
        setting(annotated("schedulingPolicy: {gang: {minCount: 3}}"), "/spec", "podManagementPolicy", json!(""));
    assert_refused(
        &create(&object, &no_settings()),
        &[
            "metadata.annotations[statefulset-scheduling.dev/scheduling].schedulingPolicy.gang: Forbidden: gang \
             scheduling requires podManagementPolicy: Parallel; OrderedReady creates pods sequentially, which can \
             never satisfy a gang",
            "metadata.annotations[statefulset-scheduling.dev/scheduling].schedulingPolicy.gang.minCount: Forbidden: \
             may not be set: the size of the gang is derived from spec.replicas",
        ],
    );
    let scheduling =
        json!({"disruptionMode": {"all": {}}, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]});
    let verdict = create(&with(Carrier::Field, &scheduling, plain()), &no_settings());
    assert_refused(
        &verdict,
        &["spec.scheduling.disruptionMode: Invalid value: \"\": the disruptionMode `all` is not supported with the \
           Basic scheduling policy"],
    );
    assert_eq!(
        verdict.warnings,
        ["spec.scheduling.resourceClaims[0]: no entry of spec.template.spec.resourceClaims has the same name and \
          source, so no pod uses this shared claim"]
    );
}

#[test]
fn what_cannot_be_read_of_an_opted_in_statefulset_is_an_error_at_its_path() {
    let object = setting(annotated("schedulingPolicy: 1"), "/spec", "replicas", json!("3"));
    let errors = [
        "spec.replicas: Invalid value: \"3\": must be a 32-bit integer",
        "metadata.annotations[statefulset-scheduling.dev/scheduling].schedulingPolicy: Invalid value: 1: must be an \
         object",
    ];
    assert_refused(&create(&object, &no_settings()), &errors);
    let object = setting(opted_in(Carrier::Field), "/spec", "replicas", json!("3"));
    assert_refused(&update(&opted_in(Carrier::Field), &object, &no_settings()), &errors[..1]);
}

#[test]
fn an_update_is_judged_by_what_it_changes() {
    let partition = |value: i32| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": value}});
    for carrier in BOTH {
        let old = settled(carrier);
        let pods = "/spec/template/spec";
        let reason =
            "the scheduler refuses a group whose pods differ in priority from each other or from their PodGroup";
        let priority = format!(
            "spec.template.spec.priorityClassName: Invalid value: \"high\": field is immutable while {} is set: \
             {reason}",
            carrier.path()
        );
        let by_hand = format!(
            "spec.template.spec.schedulingGroup: Forbidden: may not be set together with {}: each pod gets the group \
             that is made for the StatefulSet",
            carrier.path()
        );
        for (parent, name, value, error) in [
            (
                "/spec",
                "updateStrategy",
                partition(2),
                "spec.updateStrategy.rollingUpdate.partition: Forbidden: partitioned rollouts are not supported for \
                 StatefulSets with spec.scheduling set",
            ),
            (pods, "priorityClassName", json!("high"), &priority),
            (pods, "schedulingGroup", json!({"podGroupName": "mine"}), &by_hand),
        ] {
            let new = setting(old.clone(), parent, name, value);
            assert_refused(&update(&old, &new, &no_settings()), &[error]);
            assert_refused(&ask(&request("UPDATE", DEFAULT_CONTROLLER, &new, &old), &no_settings()), &[error]);
            let scaled = setting(new.clone(), "/spec", "replicas", json!(5));
            assert_untouched(&update(&new, &scaled, &no_settings()), "it was there before");
        }
        let new = setting(old.clone(), pods, "schedulerName", json!("default-scheduler"));
        assert_untouched(&update(&old, &new, &no_settings()), "the default, written");
        let new = setting(old.clone(), "/spec", "updateStrategy", partition(0));
        assert_untouched(&update(&old, &new, &no_settings()), "no partition");
    }
}

#[test]
fn an_update_warns_about_claims_that_no_pod_uses() {
    let old = labelled(claiming(Carrier::Field), "true");
    let new = without(old.clone(), "/spec/template/spec", "resourceClaims");
    let verdict = update(&old, &new, &no_settings());
    assert!(verdict.allowed && verdict.patch.is_empty());
    assert_eq!(
        verdict.warnings,
        ["spec.scheduling.resourceClaims[0]: no entry of spec.template.spec.resourceClaims has the same name and \
          source, so no pod uses this shared claim"]
    );
}

// What is not looked at.

#[test]
fn requests_that_are_neither_creates_nor_updates_of_statefulsets_are_allowed_as_they_are() {
    let kind = |group: &str, kind: &str| json!({"group": group, "version": "v1", "kind": kind});
    let invalid = bound(annotated("["), "mine");
    let update = request("UPDATE", USER, &invalid, &plain());
    let create = request("CREATE", USER, &invalid, &Value::Null);
    for (what, request) in [
        ("status", setting(update.clone(), "", "subResource", json!("status"))),
        (
            "scale",
            setting(setting(update, "", "kind", kind("autoscaling", "Scale")), "", "subResource", json!("scale")),
        ),
        ("delete", request("DELETE", USER, &Value::Null, &invalid)),
        ("connect", request("CONNECT", USER, &json!({}), &Value::Null)),
        ("no operation", request("", USER, &invalid, &Value::Null)),
        ("no operation of this writing", request("create", USER, &invalid, &Value::Null)),
        ("another group", setting(create.clone(), "", "kind", kind("apps.kruise.io", "StatefulSet"))),
        ("the core group", setting(create.clone(), "", "kind", kind("", "StatefulSet"))),
        ("another kind", setting(create.clone(), "", "kind", kind("apps", "Deployment"))),
        ("a pod", setting(create.clone(), "", "kind", kind("", "Pod"))),
        ("no kind", without(create, "", "kind")),
    ] {
        assert_untouched(&ask(&request, &no_settings()), what);
        assert_untouched(&ask(&request, &closed_workload()), what);
    }
}

#[test]
fn a_statefulset_that_did_not_opt_in_is_allowed_whatever_else_it_holds() {
    let pods = "/spec/template/spec";
    for object in [
        plain(),
        setting(plain(), "/spec", "replicas", json!("three")),
        setting(plain(), "/spec", "podManagementPolicy", json!({"odd": []})),
        setting(plain(), "/spec", "updateStrategy", json!({"rollingUpdate": {"partition": "x"}})),
        setting(plain(), "/spec", "scheduling", Value::Null),
        setting(plain(), "/metadata", "annotations", json!({SCHEDULING_ANNOTATION: null})),
        setting(plain(), "/metadata", "annotations", Value::Null),
        setting(plain(), "/metadata", "name", json!(["web"])),
        setting(plain(), pods, "containers", json!("none")),
        setting(plain(), pods, "resourceClaims", json!([1, null, {}])),
        setting(plain(), pods, "schedulingGroup", json!({"podGroupName": "mine"})),
        setting(plain(), pods, "priorityClassName", json!(7)),
        labelled(plain(), "true"),
        json!({}),
        json!({"metadata": null, "spec": null, "futureField": [[[]]]}),
    ] {
        let what = object.to_string();
        assert_untouched(&create(&object, &no_settings()), &what);
        assert_untouched(&create(&object, &closed_workload()), &what);
        assert_untouched(&update(&plain(), &object, &no_settings()), &what);
        assert_untouched(&update(&object, &plain(), &no_settings()), &what);
    }
}

// What cannot be answered.

#[test]
fn an_object_that_is_none_is_denied() {
    for (object, what) in [
        (Value::Null, "it is null"),
        (json!([]), "invalid type: sequence, expected an object at line 1 column 0"),
        (json!("web"), "invalid type: string \"web\", expected an object at line 1 column 5"),
        (json!(3), "invalid type: integer `3`, expected an object at line 1 column 1"),
        (json!({"spec": "web"}), "invalid type: string \"web\", expected an object at line 1 column 13"),
    ] {
        for (name, verdict) in [
            ("object", create(&object, &no_settings())),
            ("object", update(&plain(), &object, &no_settings())),
            ("oldObject", update(&object, &plain(), &no_settings())),
        ] {
            assert_eq!(verdict, Verdict::deny(400, format!("request.{name} is no StatefulSet: {what}")));
        }
    }
    for (operation, absent) in [("CREATE", "object"), ("UPDATE", "object"), ("UPDATE", "oldObject")] {
        let request = without(request(operation, USER, &plain(), &plain()), "", absent);
        let verdict = ask(&request, &no_settings());
        assert_eq!(
            verdict,
            Verdict::deny(400, format!("request.{absent} is no StatefulSet: it is null")),
            "{operation}"
        );
    }
}

#[test]
fn settings_that_cannot_be_read_deny_only_what_opted_in() {
    let wrong = json!({"featureGates": "Workload=true"});
    let message = "the policy cannot be applied: settings.featureGates: Invalid value: \"Workload=true\": unrecognized \
                   feature gate: Workload (known: WorkloadWithStatefulSet, DRAWorkloadResourceClaims, AllAlpha)";
    let denial = Verdict::deny(500, message);
    for carrier in BOTH {
        assert_eq!(create(&opted_in(carrier), &wrong), denial);
        assert_eq!(update(&opted_in(carrier), &opted_in(carrier), &wrong), denial);
        assert_eq!(update(&plain(), &opted_in(carrier), &wrong), denial);
        assert_eq!(update(&opted_in(carrier), &plain(), &wrong), denial);
        let request = request("UPDATE", USER, &opted_in(carrier), &opted_in(carrier));
        let status = setting(request.clone(), "", "subResource", json!("status"));
        assert_untouched(&ask(&status, &wrong), "status");
        let kind = json!({"group": "apps.kruise.io", "version": "v1", "kind": "StatefulSet"});
        assert_untouched(&ask(&setting(request, "", "kind", kind), &wrong), "another group");
    }
    assert_untouched(&create(&plain(), &wrong), "it did not opt in");
    assert_untouched(&create(&bound(plain(), BINDING), &wrong), "nor did one that brings a binding");
    assert_untouched(&update(&plain(), &plain(), &wrong), "it did not opt in");
    assert_untouched(&create(&Value::Null, &wrong), "nothing");
    for settings in [json!([]), json!("x"), json!({"carriers": ["label"]}), json!({"unknown": 1})] {
        assert_eq!(create(&opted_in(Carrier::Field), &settings).code, 500, "{settings}");
    }
}

#[test]
fn settings_that_cannot_be_read_never_keep_a_statefulset_from_being_deleted() {
    for carrier in BOTH {
        let request = request("DELETE", USER, &Value::Null, &settled(carrier));
        assert_untouched(&ask(&request, &no_settings()), "readable settings");
        assert_untouched(&ask(&request, &json!({"featureGates": "Workload=true"})), "unreadable settings");
    }
}

#[test]
fn settings_may_be_absent() {
    let object = opted_in(Carrier::Field);
    for settings in ["", r#", "settings": null"#, r#", "settings": {}"#] {
        let request = request("CREATE", USER, &object, &Value::Null);
        let call = format!(r#"{{"request": {request}{settings}}}"#);
        let verdict = answer(&Call::parse(&call).unwrap(), &NoCluster);
        assert_eq!(verdict, create(&object, &no_settings()), "{settings}");
    }
}

#[test]
fn a_message_is_cut_to_what_a_status_may_hold() {
    let long = "é".repeat(MAX_MESSAGE_LENGTH);
    let scheduling = json!({"resourceClaims": [long, long, long, long]});
    let verdict = create(&with(Carrier::Field, &scheduling, plain()), &no_settings());
    assert_eq!((verdict.allowed, verdict.code), (false, 422));
    let whole = verdict.errors.to_string();
    assert!(whole.len() > MAX_MESSAGE_LENGTH);
    let cut = verdict.message.strip_suffix('…').unwrap();
    assert!(whole.starts_with(cut));
    assert!((MAX_MESSAGE_LENGTH - 1..=MAX_MESSAGE_LENGTH).contains(&cut.len()), "{}", cut.len());

    let fits = "é".repeat(MAX_MESSAGE_LENGTH / 2);
    assert_eq!(Verdict::deny(400, fits.clone()).message, fits);
    assert_eq!(Verdict::deny(400, format!("{fits}.")).message, format!("{fits}…"));
    assert_eq!(Verdict::deny(400, format!(".{fits}")).message.len(), MAX_MESSAGE_LENGTH - 1 + '…'.len_utf8());
}

#[test]
fn a_call_that_cannot_be_read_says_why() {
    for (call, error) in [
        ("", "the request cannot be read: EOF while parsing a value at line 1 column 0"),
        ("{}", "the request cannot be read: there is none"),
        (r#"{"request": null}"#, "the request cannot be read: there is none"),
        (
            r#"{"request": []}"#,
            "the request cannot be read: invalid type: sequence, expected an object at line 1 column 12",
        ),
        (r#"{"request": {"operation": 3}}"#, "the request cannot be read: request.operation must be a string"),
        (r#"{"request": {"kind": {"kind": []}}}"#, "the request cannot be read: request.kind.kind must be a string"),
        (r#"{"request": {}} {}"#, "the request cannot be read: trailing characters at line 1 column 17"),
    ] {
        assert_eq!(Call::parse(call).unwrap_err().to_string(), error, "{call}");
    }
}
