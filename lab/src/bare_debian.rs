//! Bare roots of Debian with working maintainer scripts: what a user finds on a new system, in a
//! directory. Programs run there in namespaces of their own, so nothing stays mounted or running.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::cache::{Cache, Key};
use crate::{tools, tree};

/// An ordinary user who may use sudo without a password.
pub const USER: &str = "pi";

/// Programs that build such a root and enter it.
pub const TOOLS: &[tools::Tool] = &[
    tools::Tool { program: "mmdebstrap", package: "mmdebstrap" },
    tools::Tool { program: "unshare", package: "util-linux" },
];

/// What Debian's installer adds to the smallest system, as far as instructions use it.
const INSTALLED: &str = "bash-completion,ca-certificates,man-db,sudo,wget";

/// Raised when the making of roots changes in a way that no ingredient shows.
const FORMAT: &str = "bare root 2";

const ARCHIVE: &str = "root.tar";

/// Shell lines that enter the root `$1` and run the script `$3` there as the user `$2`. Mounts end
/// with the namespace; `/sys` is read-only, since it is this machine's.
const ENTER: &str = r#"
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -o remount,bind,ro "$1/sys"
hostname debian
exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    TERM=dumb DEBIAN_FRONTEND=noninteractive su -w DEBIAN_FRONTEND -c "$3" - "$2"
"#;

/// A root in a directory that is gone when this is dropped.
#[derive(Debug)]
pub struct BareDebian {
    directory: TempDir,
}

impl BareDebian {
    /// Unpacks a new root of a Debian release, such as `bookworm`, for this machine's processor.
    ///
    /// # Errors
    /// When this is not root, or Debian's archive cannot be reached.
    pub fn new(cache: &Cache, suite: &str) -> Result<BareDebian> {
        let archive = archive(cache, suite)?;
        let directory = cache.work_directory()?;
        let root = directory.path().join("root");
        fs::create_dir(&root)?;
        tools::run(
            tools::command("tar")
                .args(["--extract", "--numeric-owner", "--xattrs", "--directory"])
                .arg(&root)
                .arg("--file")
                .arg(archive),
        )?;
        Ok(BareDebian { directory })
    }

    /// The path of a file in the root, seen from outside.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        let root = self.directory.path().join("root");
        root.join(path.trim_start_matches('/'))
    }

    /// Runs a shell script as a user, in that user's home directory.
    ///
    /// # Errors
    /// When the namespaces cannot be made.
    pub fn run(&self, user: &str, script: &str) -> Result<Output> {
        let mut enter: Command = tools::command("unshare");
        enter.args(["--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]);
        enter.args(["sh", "-c", ENTER, "enter"]);
        enter.arg(self.path("/")).args([user, script]);
        let output = enter.stdin(Stdio::null()).output();
        output.with_context(|| format!("could not enter {:?}", self.directory.path()))
    }
}

fn archive(cache: &Cache, suite: &str) -> Result<PathBuf> {
    let user = user();
    let key = Key::of([FORMAT, suite, INSTALLED, std::env::consts::ARCH, &user]);
    let made = cache.entry(&format!("bare-{suite}"), &key, |directory| {
        make(suite, &user, &directory.join(ARCHIVE))
    })?;
    Ok(made.join(ARCHIVE))
}

/// What makes the user, in the root `$1`.
fn user() -> String {
    format!(
        "chroot \"$1\" useradd --create-home --shell /bin/bash {USER} && \
         echo '{USER} ALL=(ALL) NOPASSWD: ALL' >\"$1/etc/sudoers.d/{USER}\" && \
         printf '127.0.0.1\\tlocalhost debian\\n' >>\"$1/etc/hosts\""
    )
}

fn make(suite: &str, user: &str, archive: &Path) -> Result<()> {
    let source = format!("deb [signed-by={}] {} {suite} main", tree::KEYRING, tree::mirror()?);
    tools::run(
        tools::command("mmdebstrap")
            .args(["--quiet", "--mode=root", "--variant=minbase"])
            .arg(format!("--include={INSTALLED}"))
            .arg(format!("--customize-hook={user}"))
            // Nothing here has to survive a power cut, and dpkg would wait for the disk after each file.
            .arg("--dpkgopt=force-unsafe-io")
            .arg(suite)
            .arg(archive)
            .arg(source),
    )
    .with_context(|| format!("could not make a root of Debian {suite}"))?;
    Ok(())
}
