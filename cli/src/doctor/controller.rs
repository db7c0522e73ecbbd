//! Is there a controller, and does it lead?

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use statefulset_scheduling_core::plan::Step;

use super::Finding;
use crate::snapshot::{Snapshot, api, explain};

/// The name of the Lease, as `deploy/controller` has it.
const LEASE: &str = "statefulset-scheduling-controller";

pub(super) async fn examine(
    client: &Client,
    namespace: &str,
    snapshot: &Snapshot,
    findings: &mut Vec<Finding>,
) -> anyhow::Result<()> {
    let lease = match api::<Lease>(client, Some(namespace)).get_opt(LEASE).await {
        Ok(lease) => lease,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            findings.push(Finding::doubtful(
                format!("whether the controller leads cannot be told: {}", status.message),
                format!("allow to get leases in {namespace}"),
            ));
            return Ok(());
        }
        Err(error) => return Err(explain(error)),
    };
    findings.push(match lease.and_then(|lease| lease.spec) {
        Some(spec) => leads(&spec, namespace, Timestamp::now()),
        None => without_lease(snapshot, namespace),
    });
    Ok(())
}

fn leads(spec: &LeaseSpec, namespace: &str, now: Timestamp) -> Finding {
    let look = format!("kubectl -n {namespace} get pods, and read the log of {LEASE}");
    let Some(holder) = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty()) else {
        return Finding::broken(format!("no controller leads: nobody holds the Lease {namespace}/{LEASE}"), look);
    };
    let renewed = spec.renew_time.as_ref().map_or(i64::MIN, |time| time.0.as_second());
    let ago = now.as_second().saturating_sub(renewed);
    if ago > i64::from(spec.lease_duration_seconds.unwrap_or_default()) {
        let since =
            if renewed == i64::MIN { "was never renewed".to_owned() } else { format!("ended, renewed {ago} s ago") };
        return Finding::broken(format!("no controller leads: the Lease of {holder} {since}"), look);
    }
    Finding::good(format!("the controller leads: {holder}"))
}

/// Without leader election there is no Lease; then only its work tells of a controller.
fn without_lease(snapshot: &Snapshot, namespace: &str) -> Finding {
    let at_rest = |set: &&crate::snapshot::Set| {
        set.subject.binding.is_some() && set.decision(&snapshot.groups).step == Step::Rest
    };
    let done = snapshot.sets.iter().filter(at_rest).count();
    if done > 0 && done == snapshot.sets.len() {
        return Finding::good(format!(
            "the controller does its work, without a Lease: {done} of {done} StatefulSets with an intent are in step"
        ));
    }
    let start = "kubectl apply -k deploy/controller, or name its namespace by --controller-namespace";
    if snapshot.sets.is_empty() {
        let what =
            format!("whether a controller runs cannot be told: no Lease in {namespace}, no StatefulSet with an intent");
        return Finding::doubtful(what, start);
    }
    Finding::broken(
        format!(
            "no controller runs: no Lease in {namespace}, and {done} of {} StatefulSets with an intent are in step",
            snapshot.sets.len()
        ),
        start,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Health;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    #[test]
    fn a_lease_leads_while_it_is_held_and_renewed() {
        let now = Timestamp::from_second(1_000).unwrap();
        for (holder, renewed, health) in [
            (Some("a"), Some(995), Health::Good),
            (Some("a"), Some(985), Health::Good),
            (Some("a"), Some(984), Health::Broken),
            (Some("a"), None, Health::Broken),
            (Some(""), Some(999), Health::Broken),
            (None, Some(999), Health::Broken),
        ] {
            let spec = LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                lease_duration_seconds: Some(15),
                renew_time: renewed.map(|second| MicroTime(Timestamp::from_second(second).unwrap())),
                ..LeaseSpec::default()
            };
            let finding = leads(&spec, "ns", now);
            assert_eq!(finding.health, health, "{finding:?}");
        }
    }
}
