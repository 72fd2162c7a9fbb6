//! initramfs-tools on an emulated processor. To make an initial RAM filesystem, it starts some two thousand programs, and
//! each that is linked when it starts takes 25 to 70 ms there, a static one 7. So the smallest of them are busybox's while it
//! runs, and libraries that were copied are not looked up again. What it makes is the same.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::tree_files;

/// Where its tools are, in the tree.
const DIRECTORY: &str = "usr/lib/rubus-lab/quick";

/// What busybox does as the usual programs do, in the way that initramfs-tools calls them.
const APPLETS: &[&str] =
    &["basename", "cat", "dirname", "mkdir", "readlink", "rm", "sed", "touch", "tr", "uniq"];

/// The usual one is a script of bash, which asks the dynamic linker in the end. By which name it is asked, it gives itself.
const LDD: &str = "#!/bin/busybox sh\nexec /lib*/ld-linux-*.so.* --list \"$1\"\n";

/// Modules have nothing that their copies could lose this way. What else is asked of it, the usual one does.
const CP: &str = "#!/bin/busybox sh
case $1 in
  -p | -pP) exec /bin/busybox cp \"$@\" ;;
  --reflink=auto) shift 3; exec /bin/busybox cp -p \"$@\" ;;
esac
exec /usr/bin/cp \"$@\"
";

/// Replacements in its scripts: the file, what is there, and what comes instead.
const CHANGES: &[(&str, &str, &str)] = &[
    (
        "usr/sbin/mkinitramfs",
        "export PATH='/usr/bin:",
        "export PATH='/usr/lib/rubus-lab/quick:/usr/bin:",
    ),
    (
        "usr/share/initramfs-tools/hook-functions",
        "(.*)/\\1/' 2>/dev/null); do\n",
        "(.*)/\\1/' 2>/dev/null); do\n\t\t[ -e \"${DESTDIR}/${x}\" ] && continue\n",
    ),
];

/// Changes the tree so.
///
/// # Errors
/// When its scripts are others than are known here, or a file cannot be written.
pub fn quicken(tree: &Path) -> Result<()> {
    for (path, old, new) in CHANGES {
        let path = tree.join(path);
        let script =
            fs::read_to_string(&path).with_context(|| format!("could not read {path:?}"))?;
        ensure!(
            script.matches(old).count() == 1,
            "{path:?} has changed: it has not just one {old:?}"
        );
        fs::write(&path, script.replace(old, new))?;
    }
    for (name, script) in [("cp", CP), ("ldd", LDD)] {
        tree_files::write(tree, &format!("{DIRECTORY}/{name}"), script, 0o755)?;
    }
    for applet in APPLETS {
        tree_files::replace_with_link(tree, &format!("{DIRECTORY}/{applet}"), "/usr/bin/busybox")?;
    }
    Ok(())
}

/// What [`quicken`] does, for the key of the cache.
pub fn ingredients() -> impl Iterator<Item = String> {
    let changes = CHANGES.iter().map(|(_, _, new)| *new);
    let applets = APPLETS.iter().copied();
    changes.chain(applets).chain([CP, LDD]).map(str::to_owned)
}
