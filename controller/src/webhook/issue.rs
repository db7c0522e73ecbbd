//! Makes an authority, and a certificate that it signed. The authority's key is gone afterwards: nothing
//! else can ever be signed with it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SerialNumber, date_time_ymd,
};

/// How long a certificate is valid.
pub const LIFE: Duration = Duration::from_hours(365 * 24);
/// How far the clocks of two hosts may be apart.
const SKEW: Duration = Duration::from_hours(1);

/// A certificate, its key, and the authority, in PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// The certificate of the authority.
    pub authority: String,
}

/// Makes a certificate for a name.
///
/// # Errors
/// The name is none.
pub fn issue(dns_name: &str, now: SystemTime, life: Duration) -> Result<Issued, rcgen::Error> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    let params = |names: Vec<String>, common_name: String| {
        let mut params = CertificateParams::new(names)?;
        params.not_before = epoch + since.saturating_sub(SKEW);
        params.not_after = epoch + since.saturating_add(life);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.serial_number = Some(SerialNumber::from(fastrand::u64(1..)));
        Ok::<_, rcgen::Error>(params)
    };
    // Each authority has a name of its own: an old one and a new one are trusted side by side.
    let mut authority = params(Vec::new(), format!("statefulset-scheduling-webhook {:x}", fastrand::u64(..)))?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    // A common name may have 64 characters only, and nobody reads it.
    let mut certificate = params(vec![dns_name.to_owned()], "statefulset-scheduling-webhook".to_owned())?;
    certificate.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    certificate.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    certificate.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = certificate.signed_by(&key, &authority)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem(), authority: authority.pem() })
}
