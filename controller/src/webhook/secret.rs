//! The certificate in a Secret: what is in it, whether it can still be used, and what takes its place.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::certificate::pair;
use super::issue::Issued;

/// When the certificate is to be replaced.
pub const RENEW_AT: &str = "statefulset-scheduling.dev/renew-at";
/// The name that the certificate is for.
pub const ISSUED_FOR: &str = "statefulset-scheduling.dev/issued-for";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The authorities that are trusted: this certificate's, and the one before.
const AUTHORITIES: &str = "ca.crt";

/// A certificate that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
    /// The authorities that are to be trusted.
    pub authorities: Vec<u8>,
}

/// What a Secret holds, if it is for this name and not to be replaced yet.
///
/// # Errors
/// Why it is to be replaced.
pub fn read(secret: &Secret, dns_name: &str, now: SystemTime) -> Result<Kept, String> {
    let annotation = |name: &str| secret.metadata.annotations.as_ref()?.get(name);
    if annotation(ISSUED_FOR).map(String::as_str) != Some(dns_name) {
        return Err(format!("it is not for {dns_name}"));
    }
    let renew_at = annotation(RENEW_AT).and_then(|text| text.parse::<Timestamp>().ok());
    if renew_at.is_none_or(|at| SystemTime::from(at) <= now) {
        return Err("its time is over".to_owned());
    }
    let member = |name: &str| secret.data.as_ref()?.get(name).map(|bytes| bytes.0.clone());
    let members = (member(CERTIFICATE), member(KEY), member(AUTHORITIES));
    let (Some(certificate), Some(key), Some(authorities)) = members else {
        return Err("it is not complete".to_owned());
    };
    pair(&certificate, &key).map_err(|error| error.to_string())?;
    if authorities.is_empty() {
        return Err("it has no authority".to_owned());
    }
    Ok(Kept { certificate, key, authorities })
}

/// A Secret of a new certificate. The authority of the one that it replaces stays trusted: other replicas
/// present that for a while.
pub fn write(
    (namespace, name): (&str, &str),
    dns_name: &str,
    issued: &Issued,
    renew_at: SystemTime,
    replaced: Option<&Secret>,
) -> Secret {
    let before = replaced.and_then(|secret| secret.data.as_ref()?.get(AUTHORITIES));
    let before = before.and_then(|bytes| std::str::from_utf8(&bytes.0).ok()).and_then(first);
    let authorities = format!("{}{}", issued.authority, before.unwrap_or_default());
    let data = [(CERTIFICATE, &issued.certificate), (KEY, &issued.key), (AUTHORITIES, &authorities)];
    let renew_at = Timestamp::try_from(renew_at).unwrap_or(Timestamp::UNIX_EPOCH);
    let annotations = [(RENEW_AT, renew_at.to_string()), (ISSUED_FOR, dns_name.to_owned())];
    Secret {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            // What was read is what is replaced, and nothing newer.
            resource_version: replaced.and_then(|secret| secret.metadata.resource_version.clone()),
            labels: replaced.and_then(|secret| secret.metadata.labels.clone()),
            annotations: Some(annotations.map(|(name, value)| (name.to_owned(), value)).into()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(
            data.into_iter()
                .map(|(name, text)| (name.to_owned(), ByteString(text.clone().into_bytes())))
                .collect::<BTreeMap<_, _>>(),
        ),
        ..Secret::default()
    }
}

/// When a certificate of this life is to be replaced: after two thirds of it.
pub fn renew_at(now: SystemTime, life: Duration) -> SystemTime {
    now + life / 3 * 2
}

/// The first certificate of several in PEM.
fn first(pem: &str) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----";
    pem.find("-----BEGIN CERTIFICATE-----").zip(pem.find(END)).and_then(|(from, to)| pem.get(from..to + END.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::issue::{LIFE, issue};

    const NAME: &str = "webhook.ns.svc";
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

    fn made(now: SystemTime, replaced: Option<&Secret>) -> Secret {
        let issued = issue(NAME, now, LIFE).expect("it can be made");
        write(("ns", "tls"), NAME, &issued, renew_at(now, LIFE), replaced)
    }

    #[test]
    fn a_certificate_is_used_for_two_thirds_of_its_life_and_for_its_name_only() {
        let now = SystemTime::now();
        let secret = made(now, None);
        let day = Duration::from_hours(24);
        assert!(read(&secret, NAME, now).is_ok());
        assert!(read(&secret, NAME, now + 240 * day).is_ok());
        assert_eq!(read(&secret, NAME, now + 244 * day).expect_err("it is late"), "its time is over");
        assert!(read(&secret, "another.ns.svc", now).is_err());
    }

    #[test]
    fn what_is_broken_is_replaced() {
        let now = SystemTime::now();
        let broken = |change: fn(&mut Secret)| {
            let mut secret = made(now, None);
            change(&mut secret);
            read(&secret, NAME, now).is_err()
        };
        assert!(broken(|secret| secret.data = None));
        assert!(broken(|secret| secret.metadata.annotations = None));
        assert!(broken(|secret| {
            secret.data.get_or_insert_default().remove("ca.crt");
        }));
        assert!(broken(|secret| {
            secret.data.get_or_insert_default().insert("tls.key".to_owned(), ByteString(b"x".to_vec()));
        }));
    }

    #[test]
    fn the_authority_before_stays_trusted_and_the_one_before_that_does_not() {
        let now = SystemTime::now();
        let mut one = made(now, None);
        one.metadata.resource_version = Some("7".to_owned());
        let two = made(now, Some(&one));
        assert_eq!(two.metadata.resource_version.as_deref(), Some("7"));
        let three = made(now, Some(&two));
        let authorities = |secret: &Secret| {
            let kept = read(secret, NAME, now).expect("it can be used");
            String::from_utf8(kept.authorities).expect("it is text")
        };
        assert_eq!(authorities(&one).matches(BEGIN).count(), 1);
        for (secret, before) in [(&two, &one), (&three, &two)] {
            let (authorities, before) = (authorities(secret), authorities(before));
            assert_eq!(authorities.matches(BEGIN).count(), 2);
            assert!(authorities.ends_with(first(&before).expect("there is one")));
        }
    }
}
