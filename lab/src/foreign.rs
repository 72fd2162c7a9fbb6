//! Programs of others that no package of this machine's release has: a Debian 13 to change the root directory to, and
//! the test client of the NBD reference implementation, built from Debian's source package. Both come through apt,
//! are kept in the cache of the lab, and need root or a compiler.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cache::{Cache, Key};
use crate::tools;
use crate::tree::{KEYRING, SUITE, mirror};

/// What is in the root directory beside what it depends on: NBD clients that are newer than those of Debian 12.
const PACKAGES: &str =
    "bash,coreutils,libc-bin,libnbd-bin,python3-libnbd,python3-minimal,qemu-utils";

/// A directory with Debian 13 in it, in which its `nbdinfo`, `nbdcopy`, `qemu-img`, `qemu-nbd` and, for Python, libnbd run
/// with `chroot`.
///
/// # Errors
/// When this is not root, or Debian's archive cannot be reached.
pub fn debian_13(cache: &Cache) -> Result<PathBuf> {
    let key = Key::of([SUITE, PACKAGES]);
    let entry = cache.entry("nbd-clients", &key, |place| {
        let source = format!("deb [signed-by={KEYRING}] {} {SUITE} main", mirror()?);
        tools::run(
            tools::command("mmdebstrap")
                .args(["--quiet", "--mode=root", "--variant=extract"])
                .arg(format!("--include={PACKAGES}"))
                .arg(SUITE)
                .arg(place.join("root"))
                .arg(source),
        )
        .context("could not unpack Debian's packages (this needs root and Debian's archive)")?;
        Ok(())
    })?;
    Ok(entry.join("root"))
}

/// The reference implementation's `nbd-tester-client`, and the records of transactions that it plays back.
#[derive(Debug)]
pub struct Tester {
    /// Path of the `nbd-tester-client` program.
    pub program: PathBuf,
    /// Records of transactions: the small one and the one with requests of up to 48 MiB.
    pub records: [PathBuf; 2],
}

/// What its `configure` would find out on any machine that Debian runs on, and two choices: without the one the tester
/// does not play inetd, without the other it knows no TLS.
const CONFIGURATION: &str = "#define _GNU_SOURCE 1\n\
    #define HAVE_GNUTLS 1\n\
    #define ISSERVER 1\n\
    #define PACKAGE_VERSION \"of Debian's source package\"\n\
    #define SIZEOF_UNSIGNED_SHORT_INT 2\n\
    #define SIZEOF_UNSIGNED_INT 4\n\
    #define SIZEOF_UNSIGNED_LONG_INT 8\n\
    #define SIZEOF_UNSIGNED_LONG_LONG_INT 8\n";

/// Builds the tester from Debian's source package of the reference implementation.
///
/// # Errors
/// When Debian's archive cannot be reached, or there is no compiler, no glib or no GnuTLS to build it with.
pub fn tester(cache: &Cache) -> Result<Tester> {
    let key = Key::of([SUITE, CONFIGURATION]);
    let entry = cache.entry("nbd-tester-client", &key, |place| {
        let source = source_package("nbd", place)?;
        fs::write(place.join("config.h"), CONFIGURATION)?;
        let wanted = ["--cflags", "--libs", "glib-2.0", "gnutls"];
        let libraries = tools::run(tools::command("pkg-config").args(wanted)).context(
            "no glib or no GnuTLS to build with; on Debian: apt-get install libglib2.0-dev libgnutls28-dev pkgconf",
        )?;
        let libraries = String::from_utf8_lossy(&libraries).into_owned();
        tools::run(
            tools::command("cc")
                .args(["-w", "-O1", "-I"])
                .arg(place)
                .arg("-I")
                .arg(&source)
                .arg("-o")
                .arg(place.join("nbd-tester-client"))
                .arg(source.join("tests/run/nbd-tester-client.c"))
                .args(["cliserv.c", "crypto-gnutls.c", "buffer.c"].map(|name| source.join(name)))
                .args(libraries.split_whitespace()),
        )
        .context("the source package does not build")?;
        for name in RECORDS {
            fs::rename(source.join("tests/run").join(name), place.join(name))?;
        }
        fs::remove_dir_all(&source)?;
        Ok(())
    })?;
    Ok(Tester {
        program: entry.join("nbd-tester-client"),
        records: RECORDS.map(|name| entry.join(name)),
    })
}

const RECORDS: [&str; 2] = ["integrity-test.tr", "integrityhuge-test.tr"];

/// Fetches Debian's source package with apt, with lists of its own so that those of this machine stay as they are; gives
/// the directory with what its authors published.
fn source_package(name: &str, place: &Path) -> Result<PathBuf> {
    let apt = place.join("apt");
    for directory in ["lists/partial", "cache/archives/partial", "source"] {
        fs::create_dir_all(apt.join(directory))?;
    }
    let list = format!("deb-src [signed-by={KEYRING}] {} {SUITE} main\n", mirror()?);
    fs::write(apt.join("sources.list"), list)?;
    let get = |arguments: &[&str]| {
        let set = |name: &str, path: &Path| format!("{name}={}", path.display());
        tools::run(
            tools::command("apt-get")
                .args(["-qq", "-o", "Dir::Etc::SourceParts=/dev/null"])
                .args(["-o", "APT::Sandbox::User=root"])
                .args(["-o", &set("Dir::Etc::SourceList", &apt.join("sources.list"))])
                .args(["-o", &set("Dir::State::Lists", &apt.join("lists"))])
                .args(["-o", &set("Dir::Cache", &apt.join("cache"))])
                .args(arguments)
                .current_dir(apt.join("source")),
        )
    };
    get(&["update"]).context("Debian's archive cannot be reached")?;
    get(&["source", "--download-only", name])
        .with_context(|| format!("Debian's archive has no source of {name}"))?;
    let found = fs::read_dir(apt.join("source"))?;
    let mut archives = found.filter_map(|entry| Some(entry.ok()?.path()));
    let archive = archives
        .find(|path| path.to_string_lossy().contains(".orig.tar"))
        .with_context(|| format!("the source package {name} has no archive of its authors"))?;
    let source = place.join("source");
    fs::create_dir(&source)?;
    tools::run(
        tools::command("tar")
            .args(["--strip-components=1", "--no-same-owner", "-xf"])
            .arg(&archive)
            .arg("-C")
            .arg(&source),
    )?;
    fs::remove_dir_all(&apt)?;
    Ok(source)
}
