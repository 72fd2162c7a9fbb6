//! A tree with everything in it that copies lose, and the comparison of two trees by tools that are not ours.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;

use rubus_lab::devices::needs::Need;

/// What making and comparing the tree needs.
pub const NEEDS: [Need; 7] = [
    Need::Root,
    Need::Loop,
    Need::Program("rsync", "rsync"),
    Need::Program("setfacl", "acl"),
    Need::Program("setfattr", "attr"),
    Need::Program("setcap", "libcap2-bin"),
    Need::Program("mkfs.btrfs", "btrfs-progs"),
];

/// Bytes that no compression shortens, the same every time.
pub fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Runs a line of shell in a directory; it must succeed. Gives its output.
pub fn shell(directory: &Path, line: &str) -> String {
    let output = Command::new("bash")
        .args(["-c", line])
        .current_dir(directory)
        .env("LC_ALL", "C")
        .env("PATH", rubus_lab::devices::programs::search_path())
        .output()
        .expect("bash starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {complaint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Makes the tree in an empty directory of a filesystem that keeps everything (ext4).
pub fn grow(root: &Path) {
    odd_names(root);
    contents(root);
    nodes_and_links(root);
    modes_and_times(root);
    attributes(root);
    many(root);
    // Last, since nothing can be changed behind them.
    shell(
        root,
        "chattr +i immutable; chattr +a append; chattr +d nodump; chattr +A noatime; chattr +S sync
         chattr +i immutable-directory; chattr +dA many; chattr +T top",
    );
}

fn odd_names(root: &Path) {
    let names: [&[u8]; 6] = [
        b"new\nline",
        b"\xff\xfe not UTF-8",
        b" blanks around ",
        b"-dash",
        b"*?[",
        b"\x01\x1b[31m",
    ];
    for name in names {
        fs::write(root.join(OsStr::from_bytes(name)), name).unwrap();
    }
    fs::write(root.join("n".repeat(255)), "long").unwrap();
    // 6000 bytes deep: more than a path may have.
    shell(
        root,
        "mkdir deep; cd deep; for i in $(seq 30); do mkdir -- $(printf 'd%.0s' $(seq 200)); cd -P -- d*; done; echo x > bottom",
    );
}

fn contents(root: &Path) {
    fs::create_dir(root.join("links")).unwrap();
    fs::write(root.join("links/first"), noise(5000, 1)).unwrap();
    for name in 0..98 {
        fs::hard_link(root.join("links/first"), root.join(format!("links/{name}"))).unwrap();
    }
    fs::hard_link(root.join("links/first"), root.join("zz-far-away")).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(&noise(100_000, 2), 10 << 20).unwrap();
    sparse.write_all_at(b"z", 40 << 20).unwrap();
    let hole = fs::File::create(root.join("nothing-but-a-hole")).unwrap();
    hole.set_len(1 << 30).unwrap();
    let tail = fs::File::create(root.join("ends-in-a-hole")).unwrap();
    tail.write_all_at(&noise(70_000, 3), 0).unwrap();
    tail.set_len(5 << 20).unwrap();
    fs::write(root.join("big"), noise(20 << 20, 4)).unwrap();
    fs::write(root.join("text"), "the same again ".repeat(100_000)).unwrap();
    fs::write(root.join("empty"), "").unwrap();
}

fn nodes_and_links(root: &Path) {
    symlink("text", root.join("link")).unwrap();
    symlink(OsStr::from_bytes(b"/nowhere/\xff\n"), root.join("link-odd")).unwrap();
    symlink("t".repeat(4000), root.join("link-long")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    shell(
        root,
        "chown -h 12:34 link; touch -h -d '2009-02-13 23:31:30.987654321' link
         mkfifo -m 640 fifo; mknod -m 660 character c 1 3; mknod -m 600 block b 259 70000
         mknod -m 000 whiteout c 0 0; chown 5:6 socket fifo",
    );
}

fn modes_and_times(root: &Path) {
    shell(
        root,
        "for m in 4755 2755 6711 1777 0000 4000 0200; do
           echo x > mode-$m; chown 1000:50 mode-$m; chmod $m mode-$m; mkdir directory-$m; chmod $m directory-$m
         done
         echo x > owner; chown 4000000000:65534 owner
         echo x > before; touch -d '1938-04-24 22:13:19.123456789' before
         echo x > later; touch -d '2100-01-01 00:00:00.000000001' later",
    );
}

fn attributes(root: &Path) {
    shell(
        root,
        "echo x > x; setfattr -n user.one -v 1 x; setfattr -n user.empty x; setfattr -n trusted.two -v 0x00ff00 x
         setfattr -n user.long -v $(printf 'L%.0s' $(seq 3000)) x; setfattr -n user.directory -v d deep
         setfattr -h -n trusted.link -v l link; setfattr -h -n trusted.fifo -v f fifo
         echo x > capable; chown 1000:1000 capable; chmod 755 capable; setcap cap_net_raw,cap_net_bind_service+ep capable
         echo x > listed; setfacl -m u:1000:rw,g:50:r,m:rw listed
         mkdir default; setfacl -m u:1000:rwx default; setfacl -d -m u:1001:rwx,g:60:rx default
         touch default/inherits; mkdir default/bare; setfacl -b default/bare; touch default/bare/plain
         for f in immutable append nodump noatime sync; do echo x > $f; done
         ln immutable immutable-too; mkdir immutable-directory top; echo x > immutable-directory/inside",
    );
}

fn many(root: &Path) {
    fs::create_dir(root.join("many")).unwrap();
    for number in 0..2000_u64 {
        let length = [0, 1, 100, 4096, 5000, 20_000][number as usize % 6];
        let path = root.join(format!("many/{number}"));
        fs::write(path, noise(length, number + 7)).unwrap();
    }
    for number in 0..200_u64 {
        let directory = root.join(format!("tree/{}/{number}", number % 20));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("file"), noise(3000, number + 9)).unwrap();
    }
    shell(root, "touch -d '2001-09-09 01:46:40.000000001' tree/3 tree");
}

/// What the flags of `lsattr` are that every filesystem of the test keeps.
const KEPT_FLAGS: &str = "SDiadA";

/// Everything in which the trees differ, as tools that are not ours say it; empty when there is nothing.
pub fn differences(from: &Path, to: &Path) -> String {
    let (a, b) = (from.display(), to.display());
    let mut said = shell(
        from,
        &format!(
            "rsync -aHAXxn --numeric-ids --checksum --delete --itemize-changes --exclude /.rubus-copy --exclude '/deep/*' {a}/ {b}/"
        ),
    );
    // rsync cannot go that deep, find can. Directories have lengths of their own on every filesystem.
    let find = r"find . -path ./.rubus-copy -prune -o \( -type d -printf '%y %m %U:%G %T@ - - %P\0' \) -o -printf '%y %m %U:%G %T@ %n %s %l %P\0' | sort -z | tr '\0' '\n'";
    let lists = "find . -path ./.rubus-copy -prune -o -path './deep/*' -prune -o ! -type l -print0 | sort -z | xargs -0 getfacl -np --";
    let capabilities = "find . -path ./.rubus-copy -prune -o -path './deep/*' -prune -o -type f -print0 | sort -z | xargs -0 getcap --";
    let flags = format!(
        "find . -path ./.rubus-copy -prune -o -path './deep/*' -prune -o \\( -type f -o -type d \\) -print0 | sort -z | xargs -0 lsattr -d 2>/dev/null | sed -E 's/^([^ ]*) /\\1\\t/' | awk -F'\\t' '{{ gsub(/[^{KEPT_FLAGS}]/, \"\", $1); print }}'"
    );
    let sizes = r"find . -path ./.rubus-copy -prune -o -type f -size +1M -printf '%P %b\n' | sort";
    for (what, line) in
        [("find", find), ("getfacl", lists), ("getcap", capabilities), ("lsattr", &flags)]
    {
        let (ours, theirs) = (shell(from, line), shell(to, line));
        assert!(what == "getcap" || ours.lines().count() > 3, "{what} says nothing");
        if ours != theirs {
            said += &unlike(what, &ours, &theirs);
        }
    }
    let (ours, theirs) = (shell(from, sizes), shell(to, sizes));
    for (mine, copied) in ours.lines().zip(theirs.lines()) {
        let blocks = |line: &str| -> u64 {
            let number = line.rsplit(' ').next().and_then(|n| n.parse().ok());
            number.unwrap_or_else(|| panic!("no number in {line}"))
        };
        if blocks(copied) > blocks(mine) + 64 {
            said += &format!("takes more: {mine}, {copied}\n");
        }
    }
    said
}

fn unlike(what: &str, ours: &str, theirs: &str) -> String {
    let mut said = String::new();
    let other: std::collections::HashSet<&str> = theirs.lines().collect();
    let own: std::collections::HashSet<&str> = ours.lines().collect();
    for line in ours.lines().filter(|line| !other.contains(line)) {
        said += &format!("{what} < {line}\n");
    }
    for line in theirs.lines().filter(|line| !own.contains(line)) {
        said += &format!("{what} > {line}\n");
    }
    if said.is_empty() {
        said = format!("{what}: in another order\n");
    }
    said
}
