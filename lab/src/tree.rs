//! The root file system of a board before it becomes an image: Debian's packages unpacked, without
//! running their maintainer scripts (that needs no emulation, so it takes seconds), and by hand the
//! few things that those scripts would have made.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::{Context, Result};

use crate::board::Board;
pub use crate::tree_files::kernel_release;
pub(crate) use crate::tree_files::{replace_with_link, write};
use crate::{modules, quick_initramfs, tools};

/// The Debian release on the boards.
pub(crate) const SUITE: &str = "trixie";

/// Packages of every board beside the kernel; what they depend on comes with them.
const PACKAGES: &[&str] = &[
    "acl",
    "attr",
    "base-files",
    "base-passwd",
    "bash",
    "btrfs-progs",
    "busybox-static",
    "coreutils",
    "dash",
    "debianutils",
    "dmsetup",
    "dosfstools",
    "dpkg",
    "dphys-swapfile",
    "e2fsprogs",
    "fdisk",
    "findutils",
    "grep",
    "gzip",
    "hostname",
    "initramfs-tools",
    "iproute2",
    "kmod",
    "libc-bin",
    "libcap2-bin",
    "login",
    "mawk",
    "mdadm",
    "mount",
    "nbd-client",
    "nbd-server",
    "passwd",
    "procps",
    "rsync",
    "sed",
    "systemd-standalone-tmpfiles",
    "tar",
    "udev",
    "util-linux",
    "util-linux-extra",
    "xz-utils",
    "zstd",
];

/// Whom to believe what comes from Debian's archive.
pub(crate) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The ordinary user of a board and his numeric identity.
pub const USER: &str = "pi";
const USER_ID: u32 = 1000;

/// Files written into the tree: path and content. The initial process is the lab's own: Debian's
/// takes minutes on an emulated processor.
const FILES: &[(&str, &str)] = &[
    ("etc/hostname", "raspberrypi\n"),
    ("etc/hosts", "127.0.0.1\tlocalhost\n127.0.1.1\traspberrypi\n"),
    ("etc/machine-id", "b0a2d10000000000000000000000001a\n"),
    ("etc/dphys-swapfile", "CONF_SWAPFILE=/var/swap\nCONF_SWAPSIZE=128\n"),
    // The emulated board has no VideoCore; its drivers would wait for it, and one of them crashes.
    ("etc/modprobe.d/rubus-lab.conf", "blacklist vchiq\nblacklist vc4\nblacklist leds_gpio\n"),
    // Nor do the tests need what is on every PC's board; loading it takes seconds.
    (
        "etc/modprobe.d/rubus-lab-pc.conf",
        "blacklist iTCO_wdt\nblacklist lpc_ich\nblacklist i2c_i801\nblacklist pcspkr\nblacklist psmouse\n\
         blacklist mousedev\nblacklist evdev\nblacklist button\nblacklist joydev\n",
    ),
    ("etc/initramfs-tools/initramfs.conf", INITRAMFS_CONF),
    ("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
];

/// What is left out: documentation, other languages, tools that come along with others, the names of all hardware there
/// is (the database that udev reads was never built from them), and hooks of initramfs-tools that Raspberry Pi OS
/// lacks: with those of nbd-client, an initial RAM filesystem would get the drivers of every network card.
const NEVER: &[&str] = &[
    "usr/bin/qemu-img",
    "usr/bin/qemu-io",
    "usr/bin/qemu-storage-daemon",
    "usr/lib/udev/hwdb.d",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/initramfs-tools/hooks/dmsetup",
    "usr/share/initramfs-tools/hooks/nbd",
    "usr/share/initramfs-tools/hooks/nbd-client",
];

/// Settings of initramfs-tools.
const INITRAMFS_CONF: &str = include_str!("../board/initramfs.conf");

/// What initramfs-tools runs after it has made an initial RAM filesystem.
const POST_UPDATE: &str = include_str!("../board/post-update");

/// The first program of the root file system.
const INIT: &str = include_str!("../board/init");

/// Unpacks the packages and finishes the tree.
///
/// # Errors
/// When this is not root, when Debian's archive cannot be reached or lacks a package, and what the
/// tools report.
pub fn make(board: Board, tree: &Path) -> Result<()> {
    unpack(board, tree)?;
    thin_out(tree)?;
    finish(board, tree)
}

/// `/etc/fstab`, as Raspberry Pi OS writes it.
fn fstab(board: Board) -> String {
    let id = board.disk_id();
    format!(
        "proc            /proc           proc    defaults          0       0\n\
         PARTUUID={id:08x}-01  /boot/firmware  vfat    defaults          0       2\n\
         PARTUUID={id:08x}-02  /               ext4    defaults,noatime  0       1\n\
         # a swapfile is not a swap partition, no line here\n\
         #   use  dphys-swapfile swap[on|off]  for that\n"
    )
}

/// Names of the packages on a board.
fn packages(board: Board) -> Vec<String> {
    let mut names = vec![format!("linux-image-{}", board.debian_architecture())];
    let own = board.own_packages().iter();
    names.extend(PACKAGES.iter().chain(own).map(|&name| name.to_owned()));
    names
}

fn unpack(board: Board, tree: &Path) -> Result<()> {
    let architecture = board.debian_architecture();
    let packages = packages(board).join(",");
    let source = format!("deb [signed-by={KEYRING}] {} {SUITE} main", mirror()?);
    tools::run(
        tools::command("mmdebstrap")
            .args(["--quiet", "--mode=root", "--variant=extract"])
            .arg(format!("--architectures={architecture}"))
            .arg(format!("--include={packages}"))
            .arg(SUITE)
            .arg(tree)
            .arg(source),
    )
    .context("could not unpack Debian's packages (this needs root and Debian's archive)")?;
    Ok(())
}

/// Where this machine gets Debian from: `$RUBUS_LAB_MIRROR`, else as configured for apt.
///
/// # Errors
/// When apt knows of no archive.
pub(crate) fn mirror() -> Result<String> {
    if let Ok(mirror) = std::env::var("RUBUS_LAB_MIRROR") {
        return Ok(mirror);
    }
    // Works before the first update too.
    let listing = tools::run(tools::command("apt-get").args(["update", "--print-uris"]))?;
    mirror_in(&String::from_utf8_lossy(&listing)).context(
        "apt on this machine has no source that looks like Debian's archive; set \
         RUBUS_LAB_MIRROR to a mirror",
    )
}

/// The main archive in a list of what an update would fetch: `'URI/dists/SUITE/InRelease' …`. It is
/// told by the end of its address: the security archive and others end otherwise.
fn mirror_in(listing: &str) -> Option<String> {
    listing.lines().find_map(|line| {
        let (uri, _) = line.strip_prefix('\'')?.split_once("/dists/")?;
        uri.ends_with("/debian").then(|| uri.to_owned())
    })
}

/// Removes what no board here can use. A change copies the whole root, on an emulated processor.
fn thin_out(tree: &Path) -> Result<()> {
    for path in NEVER.iter().map(|path| tree.join(path)) {
        let Ok(found) = path.symlink_metadata() else {
            continue;
        };
        let removed =
            if found.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("could not remove {path:?}"))?;
    }
    let release = kernel_release(tree)?;
    modules::thin_out(tree, &release)?;
    device_trees_of_others(&tree.join(format!("usr/lib/linux-image-{release}")))
}

/// Debian's kernel brings the device trees of all boards; those of Broadcom's chips stay.
fn device_trees_of_others(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name() != "broadcom" {
            let path = entry.path();
            fs::remove_dir_all(&path).with_context(|| format!("could not remove {path:?}"))?;
        }
    }
    Ok(())
}

/// What the packages' maintainer scripts and an installer would have left.
fn finish(board: Board, tree: &Path) -> Result<()> {
    for (path, content) in FILES {
        write(tree, path, content, 0o644)?;
    }
    write(tree, "etc/fstab", &fstab(board), 0o644)?;
    accounts(tree)?;
    write(tree, "usr/lib/rubus-lab/init", INIT, 0o755)?;
    replace_with_link(tree, "usr/sbin/init", "../lib/rubus-lab/init")?;
    replace_with_link(tree, "usr/bin/awk", "mawk")?;
    replace_with_link(tree, "etc/mtab", "../proc/self/mounts")?;
    for directory in ["boot/firmware", "mnt", "media", "sys/fs"] {
        fs::create_dir_all(tree.join(directory))?;
    }
    // No kernel is started from here: the boot partition has it.
    let release = kernel_release(tree)?;
    initramfs_tools(board, tree, &release)?;
    symlink_kernel_name(tree, &release)
}

/// initramfs-tools as Raspberry Pi OS sets it up: what it makes is brought into the boot partition.
fn initramfs_tools(board: Board, tree: &Path, release: &str) -> Result<()> {
    quick_initramfs::quicken(tree)?;
    // Raspberry Pi OS's kernel has these built in.
    let modules = board.boot_modules().join("\n") + "\n";
    write(tree, "etc/initramfs-tools/modules", &modules, 0o644)?;
    let hook = POST_UPDATE.replace("@RELEASE@", release).replace("@NAME@", board.initramfs_file());
    let path = "etc/initramfs/post-update.d/z50-raspi-firmware";
    write(tree, path, &hook, 0o755)?;
    // An update only renews what is there.
    let own = crate::initramfs::make(board, tree)?;
    let path = tree.join(format!("boot/initrd.img-{release}"));
    fs::write(&path, own).with_context(|| format!("could not write {path:?}"))
}

/// What [`make`] does with a tree, for the key of the cache.
#[must_use]
pub fn ingredients(board: Board) -> Vec<String> {
    let mut all = vec![SUITE.to_owned(), INIT.to_owned(), POST_UPDATE.to_owned(), fstab(board)];
    all.extend(packages(board));
    all.extend(FILES.iter().map(|(_, content)| (*content).to_owned()));
    all.extend(NEVER.iter().map(|&path| path.to_owned()));
    all.extend(modules::ingredients());
    all.extend(quick_initramfs::ingredients());
    all
}

/// Raspberry Pi OS keeps the kernel only in the boot partition; Debian's copy stays for tools that
/// look for it, and its usual short name points to it.
fn symlink_kernel_name(tree: &Path, release: &str) -> Result<()> {
    replace_with_link(tree, "vmlinuz", &format!("boot/vmlinuz-{release}"))
}

/// Root without a password, and one ordinary user.
fn accounts(tree: &Path) -> Result<()> {
    let master = |name: &str| {
        let path = tree.join("usr/share/base-passwd").join(name);
        fs::read_to_string(&path).with_context(|| format!("could not read {path:?}"))
    };
    let passwd = master("passwd.master")?.replace("root:*:", "root::");
    let passwd = format!("{passwd}{USER}:x:{USER_ID}:{USER_ID}:,,,:/home/{USER}:/bin/bash\n");
    let group = format!("{}{USER}:x:{USER_ID}:\n", master("group.master")?);
    write(tree, "etc/passwd", &passwd, 0o644)?;
    write(tree, "etc/group", &group, 0o644)?;
    write(tree, "etc/shadow", &format!("{USER}:*:20000:0:99999:7:::\n"), 0o640)?;
    let home = tree.join("home").join(USER);
    fs::create_dir_all(&home)?;
    chown(&home, Some(USER_ID), Some(USER_ID)).with_context(|| format!("chown of {home:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_main_archive_and_not_the_security_one() {
        let listing = "'http://tools.example/apt/dists/stable/InRelease' tools.example 0 \n\
                       'http://mirror.example/debian-security/dists/x/InRelease' mirror 0 \n\
                       'http://mirror.example/debian/dists/bookworm/InRelease' mirror 0 \n";
        assert_eq!(mirror_in(listing).as_deref(), Some("http://mirror.example/debian"));
        assert_eq!(mirror_in(""), None);
    }

    #[test]
    fn fstab_names_both_partitions_of_the_card() {
        let text = fstab(Board::Pi3);
        assert!(text.contains("PARTUUID=3b0a02d1-01  /boot/firmware  vfat"), "{text}");
        assert!(text.contains("PARTUUID=3b0a02d1-02  /  "), "{text}");
    }
}
