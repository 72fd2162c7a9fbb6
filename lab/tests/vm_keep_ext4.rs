//! `desktop filesystem=ext4`: from each filesystem to each other one, on top of one another, and back to the card as it was.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::common::desktop::{LONG, MAY_DIFFER, SOON, WAIT, must, root};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::extra_packages;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

/// The program from Debian's f2fs-tools that makes an f2fs; every board has its libraries.
const F2FS_FILES: [&str; 1] = ["*/mkfs.f2fs"];
const ARCHIVE: &str = "f2fs-tools.tar";
const EXT4: &str = "ext4 ";
const BTRFS: &str = "btrfs subvol=/@";

#[test]
fn a_pc_keeps_ext4_then_takes_btrfs_and_goes_back_step_by_step() {
    there_and_back(
        "vm_keep_ext4: ext4, then btrfs",
        Board::Pc,
        &[("filesystem=ext4 swap=file swap-size=256M", EXT4), ("compress=zstd:1", BTRFS)],
    );
}

#[test]
fn a_pc_takes_btrfs_then_goes_back_to_ext4_on_another_disk_and_back_step_by_step() {
    there_and_back(
        "vm_keep_ext4: btrfs, then ext4",
        Board::Pc,
        &[("compress=zstd:1", BTRFS), ("filesystem=ext4 boot-copy=yes", EXT4)],
    );
}

#[test]
fn a_pc_moves_to_f2fs_and_goes_back() {
    there_and_back("vm_keep_ext4: f2fs", Board::Pc, &[("filesystem=f2fs", "f2fs ")]);
}

#[test]
fn a_raspberry_pi_3_keeps_ext4_and_goes_back() {
    there_and_back("vm_keep_ext4: pi3", Board::Pi3, &[("filesystem=ext4", EXT4)]);
}

/// Moves with these options, each to the next USB disk, and the root that each gives; then each is undone, the last first.
fn there_and_back(test: &str, kind: Board, moves: &[(&str, &str)]) {
    if !can_boot(test, kind) {
        return;
    }
    let Some(rubus) = rubus_or_skip(test, kind) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let disks = [UsbDisk::as_sold(), UsbDisk::blank(1, 8 << 30)];
    let kit = Kit::temporary(&cache, kind, &disks[..moves.len()]).unwrap();
    let mut options = Options { push: vec![rubus], ..Options::default() };
    let directory = tempfile::tempdir().unwrap();
    let needs_tools = moves.iter().any(|(_, becomes)| becomes.starts_with("f2fs"));
    if needs_tools {
        options.push.push(f2fs_tools(&cache, kind, directory.path()));
    }
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();
    let begun = Instant::now();
    let told = |what: &str| println!("{:4.0} s: {what}", begun.elapsed().as_secs_f64());

    for (number, (wishes, becomes)) in moves.iter().enumerate() {
        let mut board = boot();
        told("it runs");
        if needs_tools {
            let unpack = format!(
                "tar --keep-directory-symlink --no-overwrite-dir -xf /run/lab/push/{ARCHIVE} -C / && ldconfig"
            );
            must(&mut board, &unpack, SOON);
        }
        let usb = board.usb_device(number).unwrap();
        let serial = &kit.usb_disks()[number].serial;
        let script = format!(
            "rubus apply desktop device={usb} {wishes} {WAIT} --yes --i-will-lose-everything-on={serial}"
        );
        let said = must(&mut board, &script, LONG);
        assert!(said.contains("is applied"), "{said}");
        told(&format!("applied: {wishes}"));
        board.switch_off().unwrap();

        let mut board = boot();
        assert_eq!(root(&mut board), *becomes, "{wishes}");
        let verified = board.run("rubus verify", "root", SOON).unwrap();
        let said = format!("{}\n{}", verified.text(), verified.complaint_text());
        assert_eq!(verified.status, 0, "{said}");
        is_as_wished(&mut board, wishes);
        told("verified");
        board.switch_off().unwrap();
    }

    let roots: Vec<&str> = moves.iter().map(|(_, becomes)| *becomes).collect();
    for left in (0..moves.len()).rev() {
        let mut board = boot();
        // The change that was undone last ends at the first start of the root before.
        must(&mut board, "rubus resume || true", SOON);
        must(&mut board, "rubus undo --yes", LONG);
        told("undone");
        board.switch_off().unwrap();
        let mut board = boot();
        let expected = left.checked_sub(1).map_or(EXT4, |before| roots[before]);
        assert_eq!(root(&mut board), expected);
        board.switch_off().unwrap();
    }
    let mut back = boot();
    let swaps = must(&mut back, "cat /proc/swaps", SOON);
    assert!(swaps.contains("/var/swap"), "{swaps}");
    must(&mut back, "rubus resume", SOON);
    back.switch_off().unwrap();
    let mut may_differ = MAY_DIFFER.to_vec();
    if needs_tools {
        may_differ.extend(["/etc/ld.so.cache", "/usr/sbin/mkfs.f2fs"]);
    }
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), &may_differ);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// What the wishes say of the running system.
fn is_as_wished(board: &mut Session, wishes: &str) {
    let swaps = must(board, "cat /proc/swaps", SOON);
    assert_eq!(swaps.lines().count(), 2, "{swaps}");
    let in_file = wishes.contains("swap=file");
    assert_eq!(swaps.contains("/swapfile "), in_file, "{swaps}");
    if wishes.contains("ext4") {
        let said = must(board, "cat /proc/cmdline; grep ' / ' /etc/fstab", SOON);
        assert!(said.contains("rootfstype=ext4"), "{said}");
        assert!(!said.contains("rootflags") && !said.contains("subvol"), "{said}");
        let line = said.lines().find(|line| line.starts_with("PARTUUID="));
        let pass = line.and_then(|line| line.split_whitespace().last());
        assert_eq!(pass, Some("1"), "{said}");
    }
}

/// An archive of what makes an f2fs, which the boards' own disks lack.
fn f2fs_tools(cache: &Cache, board: Board, directory: &Path) -> PathBuf {
    let packages = extra_packages::archive(cache, board, &["f2fs-tools"]).unwrap();
    let (all, archive) = (packages.join(extra_packages::ARCHIVE), directory.join(ARCHIVE));
    let tree = tempfile::tempdir().unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(all).arg("-C").arg(tree.path());
    unpack.arg("--wildcards").args(F2FS_FILES);
    assert!(unpack.status().unwrap().success());
    let mut pack = Command::new("tar");
    pack.arg("-cf").arg(&archive).arg("-C").arg(tree.path()).arg("usr");
    assert!(pack.status().unwrap().success());
    archive
}
