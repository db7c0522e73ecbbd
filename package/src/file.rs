//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Reads a file.
///
/// # Errors
/// It cannot be read; the error names it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// Writes a file so that a reader sees the old content or the new one, also after a crash.
///
/// # Errors
/// It cannot be written; then nothing has changed.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let aside = aside(path)?;
    let written = (|| {
        let mut file = File::create(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&aside, path)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&aside);
    }
    written.with_context(|| path.display().to_string())
}

/// A name beside `path`, for what takes its place when it is complete; its folder is made.
///
/// # Errors
/// The folder cannot be made, or `path` names none.
pub fn aside(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    Ok(folder.join(format!(".{}.{}", name.display(), std::process::id())))
}
