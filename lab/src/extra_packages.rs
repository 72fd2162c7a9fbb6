//! Debian packages that a board's disks lack and a single test needs: unpacked into an archive, which the board unpacks over its
//! root. What is there already stays as it is.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::board::Board;
use crate::cache::{Cache, Key};
use crate::{tools, tree};

/// Name of the archive in its directory.
pub const ARCHIVE: &str = "packages.tar";

/// A directory with the archive of these packages and all they depend on, without what no test reads.
///
/// # Errors
/// When this is not root, or Debian's archive cannot be reached.
pub fn archive(cache: &Cache, board: Board, packages: &[&str]) -> Result<PathBuf> {
    let include = packages.join(",");
    let architecture = board.debian_architecture();
    let key = Key::of([tree::SUITE, architecture, &include]);
    let name = format!("packages-{architecture}-{}", key.short());
    cache.entry(&name, &key, |directory| {
        let source = format!(
            "deb [signed-by={}] {} {} main non-free-firmware",
            tree::KEYRING,
            tree::mirror()?,
            tree::SUITE
        );
        tools::run(
            tools::command("mmdebstrap")
                .args(["--quiet", "--mode=root", "--variant=extract"])
                .arg(format!("--architectures={architecture}"))
                .arg(format!("--include={include}"))
                .arg("--customize-hook=rm -rf \"$1\"/usr/share/doc \"$1\"/usr/share/locale \"$1\"/dev")
                .arg(tree::SUITE)
                .arg(directory.join(ARCHIVE))
                .arg(source),
        )
        .with_context(|| format!("could not unpack the Debian packages {include}"))?;
        Ok(())
    })
}
