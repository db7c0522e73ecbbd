//! The layer: a compressed archive with one file.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};

use super::BINARY;
use crate::digest;

/// The archive, and the digest that it has before it is compressed.
pub(super) struct Layer {
    pub(super) gzip: Vec<u8>,
    pub(super) uncompressed: String,
}

/// The layer of a binary. Nothing in it tells when or by whom it was packed.
pub(super) fn of(binary: &[u8], epoch: u64) -> Result<Layer> {
    let mut header = tar::Header::new_ustar();
    header.set_size(binary.len() as u64);
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(epoch);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, BINARY, binary)?;
    let archive = archive.into_inner()?;
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(&archive)?;
    Ok(Layer { gzip: gzip.finish()?, uncompressed: digest::sha256(&archive) })
}
