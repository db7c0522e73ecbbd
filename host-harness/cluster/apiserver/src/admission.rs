//! Admission webhooks.
//!
//! Stands for the dispatch of `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration`: which
//! webhook is asked about what, with which request, and what its answer or its failure does. The embedder
//! brings the webhooks and what answers them; no HTTP is spoken. Left out: reinvocation, match policy,
//! side effects, admission policies, and audit annotations.
//!
//! Members of a request that are absent are left out, where a server on the wire has null.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use thiserror::Error;

use crate::conditions::{Condition, Matched, matched};
use crate::identity::User;
use crate::resource::{Served, Subresource};
use crate::select::{LabelSelector, Labels, labels_of};
use crate::status::Problem;

/// When a webhook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before defaulting and validation; the object may be changed.
    Mutating,
    /// After them; the object is final.
    Validating,
}

/// What a webhook says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Whether the request may go on.
    pub allowed: bool,
    /// The code of a denial; 400 where it is none.
    pub code: u16,
    /// Why it is denied.
    pub message: String,
    /// What the client is warned about, allowed or not.
    pub warnings: Vec<String>,
    /// The object as it is to become, where it is to be changed; not looked at in the validating phase.
    pub patched: Option<Value>,
}

impl Answer {
    /// Allows the request and changes nothing.
    pub fn allow() -> Self {
        Self { allowed: true, ..Self::default() }
    }

    /// Allows the request with the object changed to `object`.
    pub fn patch(object: Value) -> Self {
        Self { patched: Some(object), ..Self::allow() }
    }

    /// Allows the request with the object changed by a JSON Patch.
    ///
    /// # Errors
    /// The patch is none, or does not fit the object.
    pub fn json_patch(mut object: Value, patch: &Value) -> Result<Self, WebhookError> {
        crate::patch::apply(&mut object, patch).map_err(|problem| WebhookError::Failed(problem.message))?;
        Ok(Self::patch(object))
    }

    /// Denies the request.
    pub fn deny(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::default() }
    }
}

/// Why a webhook gave no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WebhookError {
    /// It cannot be reached, or what it says cannot be read.
    #[error("{0}")]
    Failed(String),
}

/// What answers a webhook's calls.
pub trait Admission: Send + Sync {
    /// Answers one `AdmissionRequest` of `admission.k8s.io/v1`.
    fn review(&self, request: Value, phase: Phase) -> BoxFuture<'_, Result<Answer, WebhookError>>;
}

/// What happens to a request when a webhook gives no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is refused.
    #[default]
    Fail,
    /// It goes on as if the webhook were not there.
    Ignore,
}

/// What a webhook is asked about; each list may hold `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// API groups, the core group being empty.
    pub api_groups: Vec<String>,
    /// API versions.
    pub api_versions: Vec<String>,
    /// Resources: `pods`, `pods/eviction`, `pods/*`, `*`, `*/*`.
    pub resources: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: Vec<String>,
}

impl Rule {
    /// A rule about one resource.
    pub fn new(group: &str, version: &str, resource: &str, operations: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Self {
            api_groups: owned(&[group]),
            api_versions: owned(&[version]),
            resources: owned(&[resource]),
            operations: owned(operations),
        }
    }

    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        let subresource = attributes.subresource.map_or("", Subresource::as_str);
        let plural = attributes.served.resource.plural();
        let about = |rule: &String| {
            let (resource, part) = rule.split_once('/').unwrap_or((rule, ""));
            (resource == "*" || resource == plural) && (part == "*" || part == subresource)
        };
        has(&self.api_groups, attributes.served.group)
            && has(&self.api_versions, attributes.served.version)
            && has(&self.operations, attributes.operation.as_str())
            && self.resources.iter().any(about)
    }
}

/// One webhook.
#[derive(Clone)]
pub struct Webhook {
    /// Its name, as denials tell it.
    pub name: String,
    /// When it is asked.
    pub phase: Phase,
    /// What it is asked about: any of them.
    pub rules: Vec<Rule>,
    /// A `LabelSelector` of objects, old or new; null for all.
    pub object_selector: Value,
    /// A `LabelSelector` of namespaces; null for all.
    pub namespace_selector: Value,
    /// What must hold of the objects as well.
    pub conditions: Vec<Condition>,
    /// What happens when it gives no answer.
    pub failure_policy: FailurePolicy,
    /// How long it may take.
    pub timeout: Duration,
    /// What answers.
    pub backend: Arc<dyn Admission>,
}

impl Webhook {
    /// A webhook for everything its rules say, which may take 10 seconds and must answer.
    pub fn new(name: &str, phase: Phase, rules: Vec<Rule>, backend: Arc<dyn Admission>) -> Self {
        Self {
            name: name.to_owned(),
            phase,
            rules,
            object_selector: Value::Null,
            namespace_selector: Value::Null,
            conditions: Vec::new(),
            failure_policy: FailurePolicy::Fail,
            timeout: Duration::from_secs(10),
            backend,
        }
    }

    /// Whether it is asked.
    ///
    /// # Errors
    /// That cannot be told, and the webhook must not fail.
    fn is_asked(&self, attributes: &Attributes<'_>) -> Result<bool, Problem> {
        if !self.rules.iter().any(|rule| rule.matches(attributes)) || !self.selects(attributes) {
            return Ok(false);
        }
        match (matched(&self.conditions, attributes.object, attributes.old), self.failure_policy) {
            (Matched::Yes, _) => Ok(true),
            (Matched::No, _) | (Matched::Failed(_), FailurePolicy::Ignore) => Ok(false),
            (Matched::Failed(why), FailurePolicy::Fail) => {
                Err(Problem::internal(&format!("webhook \"{}\": match condition {why}", self.name)))
            }
        }
    }

    fn selects(&self, attributes: &Attributes<'_>) -> bool {
        // What cannot be read as a selector matches everything: a real server would not have stored it.
        let of = |selector: &Value| LabelSelector::of(selector).unwrap_or_default();
        let by_namespace = attributes.namespace_labels.as_ref();
        if !by_namespace.is_none_or(|labels| of(&self.namespace_selector).matches(labels)) {
            return false;
        }
        let selector = of(&self.object_selector);
        let objects = [attributes.object, attributes.old].into_iter().flatten();
        selector == LabelSelector::default()
            || objects.map(|object| labels_of(&object["metadata"])).any(|labels| selector.matches(&labels))
    }

    /// Asks, within the timeout.
    async fn ask(&self, request: Value) -> Result<Answer, String> {
        match tokio::time::timeout(self.timeout, self.backend.review(request, self.phase)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(format!("failed calling webhook \"{}\": failed to call webhook: {error}", self.name)),
            Err(_) => Err(format!(
                "failed calling webhook \"{}\": failed to call webhook: context deadline exceeded",
                self.name
            )),
        }
    }

    /// The answer; none where a failure is ignored.
    async fn answer(&self, request: Value) -> Result<Option<Answer>, Problem> {
        match (self.ask(request).await, self.failure_policy) {
            (Ok(answer), _) => Ok(Some(answer)),
            (Err(why), FailurePolicy::Fail) => Err(Problem::internal(&why)),
            (Err(why), FailurePolicy::Ignore) => {
                tracing::warn!("ignored: {why}");
                Ok(None)
            }
        }
    }

    fn denial(&self, answer: &Answer) -> Problem {
        let why = if answer.message.is_empty() { " without explanation" } else { ": " };
        let message = format!("admission webhook \"{}\" denied the request{why}{}", self.name, answer.message);
        Problem::denied(answer.code.max(400), message)
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("name", &self.name).field("phase", &self.phase).finish_non_exhaustive()
    }
}

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A request as admission sees it. The objects are as the client's version has them.
#[derive(Clone)]
pub(crate) struct Attributes<'a> {
    pub(crate) served: Served,
    pub(crate) subresource: Option<Subresource>,
    /// Group, version and kind of the object, where it is not the resource's.
    pub(crate) kind: Option<(&'static str, &'static str, &'static str)>,
    pub(crate) operation: Operation,
    pub(crate) namespace: &'a str,
    /// Empty where there is none yet, and in the deletion of a collection.
    pub(crate) name: &'a str,
    pub(crate) user: &'a User,
    pub(crate) object: Option<&'a Value>,
    pub(crate) old: Option<&'a Value>,
    pub(crate) options: &'a Value,
    pub(crate) dry_run: bool,
    pub(crate) uid: String,
    /// Of the object's namespace, or of the object if it is one; none for what is in no namespace.
    pub(crate) namespace_labels: Option<Labels>,
}

impl Attributes<'_> {
    fn request(&self) -> Value {
        let Served { group, version, resource, .. } = self.served;
        let (kind_group, kind_version, kind) = self.kind.unwrap_or((group, version, resource.kind()));
        let kind = json!({ "group": kind_group, "version": kind_version, "kind": kind });
        let resource = json!({ "group": group, "version": version, "resource": resource.plural() });
        let mut request = json!({
            "uid": self.uid,
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "operation": self.operation.as_str(),
            "userInfo": self.user.info(),
            "dryRun": self.dry_run,
        });
        let texts = [("name", self.name), ("namespace", self.namespace)];
        for (member, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request[member] = text.into();
        }
        if let Some(subresource) = self.subresource {
            request["subResource"] = subresource.as_str().into();
            request["requestSubResource"] = subresource.as_str().into();
        }
        let values = [("object", self.object), ("oldObject", self.old), ("options", Some(self.options))];
        for (member, value) in values {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                request[member] = value.clone();
            }
        }
        request
    }
}

/// Asks the mutating webhooks, one after the other, each about what the one before left. The object comes
/// back if it was changed.
pub(crate) async fn mutate(
    webhooks: &[Webhook],
    attributes: &Attributes<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>, Problem> {
    let mut changed: Option<Value> = None;
    for webhook in webhooks.iter().filter(|webhook| webhook.phase == Phase::Mutating) {
        let attributes = Attributes { object: changed.as_ref().or(attributes.object), ..attributes.clone() };
        if !webhook.is_asked(&attributes)? {
            continue;
        }
        let Some(answer) = webhook.answer(attributes.request()).await? else { continue };
        warnings.extend(answer.warnings.iter().cloned());
        if !answer.allowed {
            return Err(webhook.denial(&answer));
        }
        if let Some(patched) = answer.patched {
            if attributes.operation == Operation::Delete {
                let why = format!("failed calling webhook \"{}\": a deletion cannot be mutated", webhook.name);
                return Err(Problem::internal(&why));
            }
            changed = Some(patched);
        }
    }
    Ok(changed)
}

/// Asks the validating webhooks, all at once; the first denial in their order counts.
pub(crate) async fn validate(
    webhooks: &[Webhook],
    attributes: &Attributes<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), Problem> {
    let mut asked = Vec::new();
    for webhook in webhooks.iter().filter(|webhook| webhook.phase == Phase::Validating) {
        if webhook.is_asked(attributes)? {
            asked.push(webhook);
        }
    }
    let answers = asked.into_iter().map(|webhook| async move { (webhook, webhook.answer(attributes.request()).await) });
    let mut refused = None;
    for (webhook, answer) in join_all(answers).await {
        let problem = match answer {
            Err(problem) => problem,
            Ok(None) => continue,
            Ok(Some(answer)) => {
                warnings.extend(answer.warnings.iter().cloned());
                if answer.allowed {
                    continue;
                }
                webhook.denial(&answer)
            }
        };
        refused.get_or_insert(problem);
    }
    refused.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;

    /// Answers what it was made with.
    struct Fixed(Result<Answer, WebhookError>, Duration);

    impl Admission for Fixed {
        fn review(&self, _: Value, _: Phase) -> BoxFuture<'_, Result<Answer, WebhookError>> {
            Box::pin(async {
                tokio::time::sleep(self.1).await;
                self.0.clone()
            })
        }
    }

    fn webhook(phase: Phase, answer: Result<Answer, WebhookError>) -> Webhook {
        let rules = vec![Rule::new("", "v1", "pods", &["CREATE"])];
        Webhook::new("pods.example.dev", phase, rules, Arc::new(Fixed(answer, Duration::ZERO)))
    }

    fn attributes<'a>(user: &'a User, object: &'a Value) -> Attributes<'a> {
        Attributes {
            served: Resource::Pods.served(),
            subresource: None,
            kind: None,
            operation: Operation::Create,
            namespace: "prod",
            name: "web-0",
            user,
            object: Some(object),
            old: None,
            options: &Value::Null,
            dry_run: false,
            uid: "u".into(),
            namespace_labels: Some(labels_of(&json!({ "labels": { "team": "a" } }))),
        }
    }

    #[test]
    fn rules_and_selectors_choose() {
        let (user, object) = (User::named("me"), json!({ "metadata": { "labels": { "managed": "true" } } }));
        let attributes = attributes(&user, &object);
        let asked = |change: fn(&mut Webhook)| {
            let mut webhook = webhook(Phase::Mutating, Ok(Answer::allow()));
            change(&mut webhook);
            webhook.is_asked(&attributes).expect("it can be told")
        };
        assert!(asked(|_| {}));
        assert!(asked(|webhook| webhook.rules = vec![Rule::new("*", "*", "*/*", &["*"])]));
        assert!(!asked(|webhook| webhook.rules[0].operations = vec!["DELETE".into()]));
        assert!(!asked(|webhook| webhook.rules[0].resources = vec!["pods/status".into()]));
        assert!(asked(|webhook| webhook.object_selector = json!({ "matchLabels": { "managed": "true" } })));
        assert!(!asked(|webhook| webhook.object_selector = json!({ "matchLabels": { "managed": "no" } })));
        assert!(!asked(|webhook| webhook.namespace_selector = json!({ "matchLabels": { "team": "b" } })));
    }

    #[tokio::test]
    async fn a_request_has_the_members_of_a_real_one() {
        let (user, object) = (User::named("me"), json!({ "metadata": { "name": "web-0" } }));
        let request = attributes(&user, &object).request();
        assert_eq!(request["kind"], json!({ "group": "", "version": "v1", "kind": "Pod" }));
        assert_eq!(request["resource"], json!({ "group": "", "version": "v1", "resource": "pods" }));
        assert_eq!((&request["operation"], &request["name"]), (&json!("CREATE"), &json!("web-0")));
        assert_eq!(request["userInfo"]["username"], "me");
        for absent in ["oldObject", "options", "subResource"] {
            assert!(request.get(absent).is_none(), "{absent}");
        }
    }

    #[tokio::test]
    async fn answers_and_failures_have_their_effect() {
        let (user, object) = (User::named("me"), json!({ "metadata": {} }));
        let attributes = attributes(&user, &object);
        let mut warnings = Vec::new();
        let warned = Answer { warnings: vec!["careful".into()], ..Answer::patch(json!({ "a": 1 })) };
        let patched = mutate(&[webhook(Phase::Mutating, Ok(warned))], &attributes, &mut warnings).await;
        assert_eq!(
            (patched.expect("it is allowed"), &warnings[..]),
            (Some(json!({ "a": 1 })), &["careful".to_owned()][..])
        );

        let denied = webhook(Phase::Validating, Ok(Answer::deny(403, "no")));
        let problem = validate(&[denied], &attributes, &mut warnings).await.expect_err("it is denied");
        assert_eq!(problem.code, 403);
        assert_eq!(problem.message, "admission webhook \"pods.example.dev\" denied the request: no");

        let failed = || Err(WebhookError::Failed("connection refused".into()));
        let problem = validate(&[webhook(Phase::Validating, failed())], &attributes, &mut warnings).await;
        let problem = problem.expect_err("it fails");
        assert_eq!(problem.code, 500);
        assert!(problem.message.contains("failed calling webhook \"pods.example.dev\""), "{}", problem.message);
        let mut ignored = webhook(Phase::Mutating, failed());
        ignored.failure_policy = FailurePolicy::Ignore;
        assert!(mutate(&[ignored], &attributes, &mut warnings).await.expect("it goes on").is_none());

        let mut slow = webhook(Phase::Mutating, Ok(Answer::allow()));
        slow.backend = Arc::new(Fixed(Ok(Answer::allow()), Duration::from_secs(5)));
        slow.timeout = Duration::from_millis(5);
        let problem = mutate(&[slow], &attributes, &mut warnings).await.expect_err("it is late");
        assert!(problem.message.ends_with("context deadline exceeded"), "{}", problem.message);
    }
}
