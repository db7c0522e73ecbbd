//! Digests as OCI and in-toto write them.

use anyhow::{Result, ensure};
use sha2::{Digest as _, Sha256};

/// The digest of bytes, `sha256:` and 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

/// The 64 hexadecimal digits alone.
pub fn hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The hexadecimal digits of a digest.
///
/// # Errors
/// It is no SHA-256 digest as [`sha256`] writes it; so what it names is also safe as a file name.
pub fn digits(digest: &str) -> Result<&str> {
    let digits = digest.strip_prefix("sha256:").unwrap_or_default();
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    ensure!(digits.len() == 64 && digits.bytes().all(lower), "{digest:?} is no digest: sha256: and 64 digits");
    Ok(digits)
}

/// Compares bytes with what was said about them.
///
/// # Errors
/// Their size or their digest is another one.
pub fn verify(what: &str, bytes: &[u8], digest: &str, size: u64) -> Result<()> {
    digits(digest)?;
    ensure!(bytes.len() as u64 == size, "{what} {digest}: {} bytes instead of {size}", bytes.len());
    let actual = sha256(bytes);
    ensure!(actual == digest, "{what}: its digest is {actual} instead of {digest}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_sha256sum() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
        verify("nothing", b"", empty, 0).expect("it is of nothing");
    }

    #[test]
    fn what_could_leave_a_folder_is_no_digest() {
        for wrong in ["sha256:../../etc/passwd", "sha512:00", "", "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B"]
        {
            assert!(digits(wrong).is_err(), "{wrong}");
        }
    }
}
