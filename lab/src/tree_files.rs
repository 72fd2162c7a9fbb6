//! Files of a board's tree: its kernel's release is read from them, and they are written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The release of the tree's only kernel.
///
/// # Errors
/// When there is none or more than one.
pub fn kernel_release(tree: &Path) -> Result<String> {
    let directory = tree.join("usr/lib/modules");
    let names: Vec<String> = fs::read_dir(&directory)
        .with_context(|| format!("no kernel modules in {directory:?}"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    match names.as_slice() {
        [only] => Ok(only.clone()),
        _ => bail!("expected one kernel in {directory:?}, found {names:?}"),
    }
}

/// Writes a file of a tree, and the directories above it.
pub(crate) fn write(tree: &Path, path: &str, content: &str, permissions: u32) -> Result<()> {
    let path: PathBuf = tree.join(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&path, content).with_context(|| format!("could not write {path:?}"))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(permissions))?;
    Ok(())
}

/// Makes a link of a tree, instead of what has its name.
pub(crate) fn replace_with_link(tree: &Path, path: &str, target: &str) -> Result<()> {
    let path = tree.join(path);
    if path.symlink_metadata().is_ok() {
        fs::remove_file(&path).with_context(|| format!("could not replace {path:?}"))?;
    }
    symlink(target, &path).with_context(|| format!("could not link {path:?}"))
}
