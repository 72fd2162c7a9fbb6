//! Bare roots of Debian with working maintainer scripts: what a user finds on a new system, in a
//! directory. Programs run there in namespaces of their own, so nothing stays mounted or running.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::cache::{Cache, Key, workspace_root};
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

/// What of this machine lets a root reach the network as this machine does.
const NETWORK: [&str; 3] =
    ["/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"];

/// The oldest compiler that has to accept the code, which the tests install.
pub const OLDEST: &str = concat!(env!("CARGO_PKG_RUST_VERSION"), ".0");

/// Where the user keeps the checkout.
pub const CHECKOUT: &str = "rubus";

/// Shell lines that copy the toolchain that is used here, and the oldest that is supported (`$2`) if it is here, into the home
/// directory `$1`, without the documentation.
const COPY_TOOLCHAIN: &str = r#"
set -e
homes=$(rustup show home)
active=$(rustup show active-toolchain | cut -d ' ' -f 1)
mkdir -p "$1/.cargo/bin" "$1/.rustup/toolchains"
cp -L "$(command -v rustup)" "$1/.cargo/bin/rustup"
for name in cargo cargo-clippy cargo-fmt clippy-driver rustc rustdoc rustfmt; do
    ln -s rustup "$1/.cargo/bin/$name"
done
cd "$homes/toolchains"
for toolchain in "$active" "$2"-*; do
    [ -d "$toolchain" ] || continue
    mkdir -p "$1/.rustup/toolchains/$toolchain"
    tar -C "$toolchain" --exclude=./share/doc -cf - . | tar -C "$1/.rustup/toolchains/$toolchain" -xf -
done
printf 'version = "12"\nprofile = "minimal"\ndefault_toolchain = "%s"\n' "$active" >"$1/.rustup/settings.toml"
echo 'PATH="$HOME/.cargo/bin:$PATH"' >>"$1/.profile"
"#;

/// Shell lines that copy the source tree in the directory `$1`, as it is now, into the directory `$2`, with its last commit.
const COPY_CHECKOUT: &str = r#"
set -e
git -c safe.directory='*' clone --quiet --depth 1 --no-checkout "file://$1" "$2"
cd "$1"
git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
    tar --null --ignore-failed-read --files-from=- -cf - 2>/dev/null | tar -C "$2" -xf -
git -C "$2" reset --quiet
"#;

/// Shell lines that enter the root `$1` and run the script `$3` there as the user `$2`. Mounts end
/// with the namespace; `/sys` is read-only, since it is this machine's, unless `$4` says otherwise. `pivot_root`
/// makes it the namespace's root, since below a `chroot` the kernel makes no user namespaces; the old root then lies on the
/// new one until it is unmounted.
const ENTER: &str = r#"
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
[ -n "$4" ] || mount -o remount,bind,ro "$1/sys"
hostname debian
cd "$1"
pivot_root . .
umount --lazy .
cd /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
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
        let output = self.enter(user, script, "").output();
        output.with_context(|| format!("could not enter {:?}", self.directory.path()))
    }

    /// The same with this process's output, and with a `/sys` that may be written: for scripts that make devices
    /// and control groups.
    ///
    /// # Errors
    /// When the namespaces cannot be made.
    pub fn run_on_this_machine(&self, user: &str, script: &str) -> Result<ExitStatus> {
        let status = self.enter(user, script, "writable").status();
        status.with_context(|| format!("could not enter {:?}", self.directory.path()))
    }

    fn enter(&self, user: &str, script: &str, sys: &str) -> Command {
        let mut enter: Command = tools::command("unshare");
        enter.args(["--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]);
        enter.args(["sh", "-c", ENTER, "enter"]);
        enter.arg(self.path("/")).args([user, script, sys]);
        enter.stdin(Stdio::null());
        enter
    }

    /// Lets programs in the root reach the network as this machine does.
    ///
    /// # Errors
    /// When a file cannot be copied.
    pub fn add_network(&self) -> Result<()> {
        for file in NETWORK {
            if Path::new(file).exists() {
                let copy = self.path(file);
                // It may be a link that leads nowhere.
                let _ = fs::remove_file(&copy);
                fs::create_dir_all(copy.parent().unwrap_or(&copy))?;
                fs::copy(file, &copy).with_context(|| format!("could not copy {file}"))?;
            }
        }
        Ok(())
    }

    /// Takes the network away again, as far as names are looked up.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remove_network(&self) -> Result<()> {
        fs::write(self.path(NETWORK[0]), "").context("could not empty resolv.conf")
    }

    /// Gives the user the toolchain of this machine, as rustup would have installed it.
    ///
    /// # Errors
    /// When this machine has no rustup.
    pub fn add_toolchain(&self, oldest: &str) -> Result<()> {
        let home = self.path("home").join(USER);
        self.copy(COPY_TOOLCHAIN, &[home.as_os_str(), oldest.as_ref()])
    }

    /// Gives the user a checkout of this source tree as it is now.
    ///
    /// # Errors
    /// When git cannot clone it.
    pub fn add_checkout(&self) -> Result<()> {
        let checkout = self.path("home").join(USER).join(CHECKOUT);
        self.copy(COPY_CHECKOUT, &[workspace_root().as_os_str(), checkout.as_os_str()])
    }

    fn copy(&self, script: &str, arguments: &[&OsStr]) -> Result<()> {
        tools::run(tools::command("sh").args(["-c", script, "copy"]).args(arguments))?;
        let home = self.path("home").join(USER);
        let owner = fs::metadata(&home)?;
        let owner = format!("{}:{}", owner.uid(), owner.gid());
        tools::run(tools::command("chown").args(["-R", "-h", &owner]).arg(home))?;
        Ok(())
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

/// What makes the user in the root `$1`, and keeps no package files after installing.
fn user() -> String {
    format!(
        "chroot \"$1\" useradd --create-home --shell /bin/bash {USER} && \
         echo '{USER} ALL=(ALL) NOPASSWD: ALL' >\"$1/etc/sudoers.d/{USER}\" && \
         printf '127.0.0.1\\tlocalhost debian\\n' >>\"$1/etc/hosts\" && \
         echo 'APT::Keep-Downloaded-Packages \"false\";' >\"$1/etc/apt/apt.conf.d/room\""
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
