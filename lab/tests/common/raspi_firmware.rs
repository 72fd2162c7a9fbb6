//! Debian's own package `raspi-firmware` on a board: with each initramfs its hooks rewrite `config.txt` and
//! `cmdline.txt`. The recipe `desktop` moves such a board, and each update in between leaves it on the intended root.

use std::process::Command;
use std::time::Instant;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::extra_packages;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

use super::desktop::{LONG, SOON, WAIT, must, root};

/// What of the package is used on a running board; the rest is for real firmware.
const HOOKS: [&str; 4] = [
    "./etc/default/raspi-firmware",
    "./etc/initramfs/post-update.d/z50-raspi-firmware",
    "./etc/kernel/postinst.d/z50-raspi-firmware",
    "./usr/share/initramfs-tools/hooks/raspi-firmware-fsck",
];
const ARCHIVE: &str = "raspi-firmware.tar";
const OLD: &str = "ext4 ";
const NEW: &str = "btrfs subvol=/@";
const UPDATE: &str = "update-initramfs -u 2>&1";

/// Moves a board with the package there and back, with an update before each restart and after it.
pub fn there_and_back_with_updates(test: &str, board: Board) {
    if !can_boot(test, board) {
        return;
    }
    let Some(rubus) = rubus_or_skip(test, board) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join(ARCHIVE);
    pack_hooks(&cache, board, &archive);
    let kit = Kit::temporary(&cache, board, &[UsbDisk::as_sold()]).unwrap();
    let options = Options { push: vec![rubus, archive], ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let begun = Instant::now();
    let told = |what: &str| println!("{:4.0} s: {what}", begun.elapsed().as_secs_f64());

    let mut old = boot();
    install(&mut old);
    must(&mut old, UPDATE, LONG);
    let usual = command_line(&mut old);
    assert!(usual.contains(" root=/dev/mmcblk0p2 rw "), "{usual}");
    told("the package is installed");
    apply(&mut old, &kit.usb_disks()[0].serial);
    told("applied");
    update(&mut old, " root=PARTUUID=");
    is_applied(&mut old);
    told("updated on the old root");
    old.switch_off().unwrap();

    let mut new = boot();
    assert_eq!(root(&mut new), NEW, "{}", new.console());
    is_applied(&mut new);
    update(&mut new, " root=PARTUUID=");
    is_applied(&mut new);
    told("updated on the new root");
    undo(&mut new);
    assert_eq!(command_line(&mut new), usual);
    update(&mut new, " root=/dev/mmcblk0p2 ");
    told("undone, and updated on the new root");
    new.switch_off().unwrap();

    let mut back = boot();
    assert_eq!(root(&mut back), OLD, "{}", back.console());
    let status = must(&mut back, "rubus status", SOON);
    assert!(status.contains("undone"), "{status}");
    update(&mut back, " root=/dev/mmcblk0p2 ");
    assert_eq!(command_line(&mut back), usual);
    told("updated on the old root again");
    back.switch_off().unwrap();
}

fn pack_hooks(cache: &Cache, board: Board, to: &std::path::Path) {
    let packages = extra_packages::archive(cache, board, &["raspi-firmware"]).unwrap();
    let packages = packages.join(extra_packages::ARCHIVE);
    let tree = tempfile::tempdir().unwrap();
    let tar = |arguments: &mut Command| assert!(arguments.status().unwrap().success());
    tar(Command::new("tar").arg("-xf").arg(packages).arg("-C").arg(tree.path()).args(HOOKS));
    tar(Command::new("tar").arg("-cf").arg(to).arg("-C").arg(tree.path()).args(HOOKS));
}

/// The hooks in their places, and what the owner of this board would set: its one serial console, and the overlay that frees it.
/// On `pc` the hooks would do nothing, since it is no ARM system; there dpkg says that it is one.
fn install(board: &mut Session) {
    let (console, dpkg) = match board.board() {
        Board::Pi3 => ("ttyAMA0,115200", ""),
        Board::Pc => (
            "ttyS0",
            "mkdir -p /usr/local/sbin
             cat >/usr/local/sbin/dpkg <<'END'
#!/bin/sh
case $1 in --print-architecture) echo arm64 ;; *) exec /usr/bin/dpkg \"$@\" ;; esac
END
             chmod 755 /usr/local/sbin/dpkg",
        ),
    };
    let script = format!(
        "set -e
         tar -xf /run/lab/push/{ARCHIVE} -C /
         echo 'CONSOLES=\"{console}\"' >>/etc/default/raspi-firmware
         echo dtoverlay=disable-bt >/etc/default/raspi-firmware-custom
         {dpkg}"
    );
    must(board, &script, SOON);
}

fn apply(board: &mut Session, serial: &str) {
    let usb = board.usb_device(0).unwrap();
    let script = format!(
        "rubus apply desktop device={usb} compress=zstd:1 {WAIT} --yes --i-will-lose-everything-on={serial}"
    );
    let said = must(board, &script, LONG);
    assert!(said.contains("is applied"), "{said}");
}

/// Rebuilds the initramfs, which rewrites the command line: it names this root.
fn update(board: &mut Session, names: &str) {
    must(board, "echo unwritten >/boot/firmware/config.txt", SOON);
    must(board, UPDATE, LONG);
    let line = command_line(board);
    assert!(line.contains(names), "{line}");
    let config = must(board, "cat /boot/firmware/config.txt", SOON);
    assert!(!config.contains("unwritten"), "no hook has run: {config}");
}

fn command_line(board: &mut Session) -> String {
    must(board, "cat /boot/firmware/cmdline.txt", SOON)
}

fn is_applied(board: &mut Session) {
    let status = board.run("rubus status", "root", SOON).unwrap();
    let said = format!("{}\n{}", status.text(), status.complaint_text());
    println!("{said}");
    assert_eq!(status.status, 0, "{said}");
    let line = said.lines().find(|line| line.contains("-desktop "));
    assert!(line.is_some_and(|line| line.ends_with("applied")), "{said}");
}

/// The initial RAM filesystem is not the one that the change has made, so that undoing names two commands and does neither at
/// first. The one that puts the original back is taken.
fn undo(board: &mut Session) {
    let stopped = board.run("rubus undo --yes", "root", SOON).unwrap();
    let said = format!("{} {}", stopped.text(), stopped.complaint_text());
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(stopped.status, 1, "{said}");
    println!("{said}");
    let command = said.split('`').find(|words| words.starts_with("sudo mv "));
    let command = command.unwrap_or_else(|| panic!("it names no command: {said}"));
    must(board, command.trim_start_matches("sudo "), SOON);
    let said = must(board, "rubus undo --yes", LONG);
    assert!(said.contains("is undone"), "{said}");
}
