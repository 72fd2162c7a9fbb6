//! Secrets of every kind in every file, name and answer of a machine: none is left in a capture, in any spelling.

use std::path::Path;

use super::reading::read_everything_there;
use super::*;
use crate::files::{Files, ReadError};
use crate::shareable::planted::{Planted, Text, planted};
use crate::shareable::spelt::{left_of, spelt_otherwise};
use crate::simulated::fake::FakeFiles;
use crate::simulated::recorder::Recorder;

/// A machine that has a text wherever people, servers or makers may put one.
fn machine(text: &str) -> FakeFiles {
    // A table's columns have no blanks.
    let column = text.replace(' ', "\\040");
    let name = text.replace('/', "_");
    let mut files = FakeFiles::new()
        .file("/proc/cmdline", format!("quiet {text} root=/dev/mmcblk0p2 x={text}\n"))
        .file("/boot/firmware/cmdline.txt", format!("quiet {text}\n# {text}\n"))
        .file(
            "/boot/firmware/config.txt",
            format!(
                "# {text}\n[{text}]\n[EDID={text}]\nkernel={text}\ninitramfs {text} followkernel\n\
                 include {text}\n{text}=1\ndtoverlay={text}\nos_prefix={text}/\n{text}\n"
            ),
        )
        .file(
            "/etc/fstab",
            format!(
                "{column} /mnt/data ext4 defaults 0 0\n/dev/sda1 /mnt/{column} cifs rw,{column} 0 0\n\
                 # {text}\n{text}\n"
            ),
        )
        .file("/etc/crypttab", format!("{column} {column} {column} luks,{column}\n# {text}\n"))
        .file(
            "/proc/self/mountinfo",
            format!(
                "24 1 179:2 / / rw shared:1 - ext4 /dev/mmcblk0p2 rw\n\
                 70 24 0:50 /{column} /mnt/{column} rw,{column} shared:9 - cifs {column} rw,{column}\n"
            ),
        )
        .file("/proc/swaps", format!("Filename Type Size Used Priority\n{column} file 1 0 -2\n"))
        .file("/etc/default/zramswap", format!("{text}\nPERCENT={text}\n# {text}\n"))
        .file("/etc/rpi/swap.conf", format!("[{text}]\nMechanism={text}\n"))
        .file("/etc/unknown", text)
        .file("/home/x/notes", text)
        .file("/var/lib/secret", format!("{text}\0"))
        .file("/dev/sda", format!("superblock {text}\0"))
        .file("/boot/initramfs8", format!("\u{1f}{text}\0"))
        .file("/usr/bin/own", format!("#!/bin/sh\n{text}\n"))
        .file("/sys/block/sda/device/state", format!("{text}\n"))
        .file("/sys/block/dm-0/dm/name", format!("{name}\n"))
        .file("/sys/block/loop0/loop/backing_file", format!("{text}\n"))
        .file("/sys/block/nbd0/backend", format!("{text}\n"))
        .file("/sys/block/sda/sda1/uevent", format!("DEVNAME=sda1\nPARTNAME={text}\n"))
        .file("/boot/config-6.1", format!("CONFIG_SWAP=y\nCONFIG_LOCALVERSION=\"{text}\"\n# {text}\n"))
        .file("/proc/cpuinfo", format!("Hardware: x\nOwner: {text}\n"))
        .file("/proc/77/comm", format!("{text}\n"))
        .file("/proc/1/environ", format!("container={text}\0OWNER={text}\0"))
        .file("/proc/1/cgroup", format!("1:name=systemd:/docker/{text}\n0::/{text}\n"))
        .file("/proc/self/smaps", format!("1-2 r-xp 0 b3:02 1 /{text}\nSize: 4 kB\n"))
        .file("/etc/os-release", format!("ID=debian\nHOME_URL=\"{text}\"\n"))
        .file(
            "/run/udev/data/b8:1",
            format!(
                "S:disk/by-label/{name}\nS:mapper/{name}\nE:ID_FS_LABEL={text}\nE:ID_PART_ENTRY_NAME={text}\n\
                 E:DM_NAME={text}\nE:OWNER={text}\nE:ID_PATH={text}\nE:ID_FS_TYPE={text}\n"
            ),
        )
        .file(format!("/etc/sysctl.d/{name}.conf"), "vm.swappiness = 1\n")
        .link("/dev/disk/by-label/x", format!("/home/{name}"))
        .dir(format!("/home/{name}"))
        .program(&["journalctl", "--dmesg"], text)
        .program(&["mdadm", "--detail"], text)
        .failing_program(
            &["blkid"],
            ReadError::Failed { status: 2, complaint: text.into(), output: text.into() },
        )
        .space(format!("/media/{name}"), 10, 5)
        .failing("/mnt/x", ReadError::Other(format!("{text} is gone")));
    let is_interface = !text.contains(['/', ' ', ':', '=']) && text.len() <= 15;
    if is_interface {
        files = files.file(format!("/sys/class/net/{text}/speed"), "100\n");
    }
    files
}

/// A shareable capture of what was recorded: its bytes as a text, and what is read of it.
fn saved(recorder: &Recorder<'_>) -> (String, Captured) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.tar");
    save(recorder, &path, "for a test", "2026-11-21T00:58:12Z", Identities::Replace).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (String::from_utf8_lossy(&bytes).into_owned(), Captured::open(&path).unwrap())
}

fn capture_of(planted: &Planted) -> Text {
    Text::of(&bytes_of(planted))
}

fn bytes_of(planted: &Planted) -> String {
    let machine = machine(&planted.text);
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    for call in [["journalctl", "--dmesg"], ["mdadm", "--detail"]] {
        recorder.ask(call[0], &call[1..]).unwrap();
    }
    let _ = recorder.ask("blkid", &[]);
    let name = planted.text.replace('/', "_");
    recorder.space(&Path::new("/media").join(name)).unwrap();
    let _ = recorder.text(Path::new("/mnt/x"));
    saved(&recorder).0
}

/// A number that could be a telephone's, a customer's or a person's, where no rule says that it is a size or a counter.
#[test]
fn no_long_number_is_left_but_where_a_number_is_known() {
    let mut leaks = Vec::new();
    for number in ["493055", "1715551", "49305512", "493055123", "017155512345", "490154203237518"]
    {
        for text in [number.to_string(), format!("{number},rw"), format!("nr {number}")] {
            let planted = Planted { text, secrets: vec![number.to_string()] };
            let text = capture_of(&planted);
            if let Some(spelling) = text.has(number) {
                leaks.push(format!("{}: {:?}", planted.text, text.around(&spelling)));
            }
        }
    }
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}

#[test]
fn no_spelling_of_a_secret_is_left_in_a_capture() {
    // What of a hardware address names its maker stays.
    const MAKERS: [&str; 6] = ["dc-a6-32", "dc:a6:32", "dca632", "b8-27-eb", "b8:27:eb", "b827eb"];
    let mut leaks = Vec::new();
    for spelling in spelt_otherwise(97) {
        let planted = Planted { text: spelling.clone(), secrets: Vec::new() };
        let text = bytes_of(&planted).to_lowercase();
        let text = MAKERS.iter().fold(text, |text, maker| text.replace(maker, "…"));
        if let Some(part) = left_of(&spelling, &text) {
            leaks.push(format!("{part} of {spelling}"));
        }
    }
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}

/// Names that are words, numbers or short, where nothing but their place tells that they are of people.
#[test]
fn names_without_a_form_are_left_out_by_their_place() {
    let user = "/home/max /home/jo /home/4711 /home//eva";
    let machine = FakeFiles::new()
        .file("/proc/swaps", "Filename Type Size Used Priority\n/home/max/swap file 1 0 -2\n")
        .file("/etc/fstab", "/dev/sda1 /home/jo ext4 defaults 0 0\n/dev/sda2 /home//eva ext4 rw 0 0\n")
        .file("/home/4711/notes", "x")
        .file("/sys/block/dm-0/dm/uuid", "CRYPT-PLAIN-qzplain\n")
        .file("/sys/block/dm-0/dm/name", "qzplain\n")
        .file(
            "/run/udev/data/b254:0",
            "E:DM_UUID=CRYPT-PLAIN-qzother\nS:disk/by-id/dm-name-qzlink\n",
        )
        .file(
            "/run/udev/data/b8:0",
            "E:ID_SERIAL=SanDisk_Stick_daddy\nE:ID_MODEL=Stick\nS:disk/by-id/usb-SanDisk_Stick_daddy-0:0\n",
        )
        .file("/sys/block/sda/device/vpd_pg80", b"\0\x80\0\x09qzschmidt")
        .failing("/mnt/x", ReadError::Other("/home/max/x: permission denied".into()))
        .program(&["journalctl", "--dmesg"], &format!("key {} is used", "0a1b2c3d4e".repeat(4)));
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let _ = recorder.text(Path::new("/mnt/x"));
    recorder.ask("journalctl", &["--dmesg"]).unwrap();
    let (text, _) = saved(&recorder);
    let words = ["qzplain", "qzother", "qzlink", "daddy", "qzschmidt", "0a1b2c3d4e0a"];
    let left: Vec<&str> =
        user.split(' ').chain(words).filter(|secret| text.contains(secret)).collect();
    assert!(left.is_empty(), "{left:?} are left in {text}");
    assert!(text.contains("SanDisk_Stick_") && text.contains("permission denied"), "{text}");
}

#[test]
fn no_secret_of_any_kind_is_left_in_a_capture() {
    let mut leaks = Vec::new();
    for one in planted() {
        let text = capture_of(&one);
        for secret in &one.secrets {
            if let Some(spelling) = text.has(secret) {
                leaks.push(format!("{secret} of {}: {:?}", one.text, text.around(&spelling)));
            }
        }
    }
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}

/// Tables have names with escapes, paths and answers have them as they are.
#[test]
fn a_name_with_a_blank_has_one_pseudonym_in_all_its_writings() {
    let machine = FakeFiles::new()
        .file(
            "/proc/self/mountinfo",
            "24 1 179:2 / / rw shared:1 - ext4 /dev/mmcblk0p2 rw\n\
             90 24 8:17 / /srv/Qzfamily\\040Qzschmidt rw shared:9 - ext4 /dev/sdb1 rw\n\
             91 24 8:18 / /srv/100%25-qzalice rw shared:9 - ext4 /dev/sdb2 rw\n\
             92 24 8:19 / /srv/%71%7A%62%6F%62 rw shared:9 - ext4 /dev/sdb3 rw\n",
        )
        .file("/etc/fstab", "LABEL=Qzfamily\\040Qzschmidt /srv/Qzanna\\040Fotos ext4 rw 0 0\n")
        .file(
            "/run/udev/data/b8:17",
            "E:ID_FS_LABEL=Qzfamily_Qzschmidt\nE:ID_FS_LABEL_ENC=Qzfamily\\x20Qzschmidt\n\
             S:disk/by-label/Qzfamily\\x20Qzschmidt\n",
        )
        .file("/boot/firmware/config.txt", "include %71%7A%63%61%72%6F%6C.txt\n")
        .link("/dev/disk/by-label/Qzfamily\\x20Qzschmidt", "/dev/sdb1")
        .dir("/srv/Qzfamily Qzschmidt")
        .space("/srv/Qzfamily Qzschmidt", 10, 5)
        .space("/srv/100%25-qzalice", 10, 5)
        .space("/srv/%71%7A%62%6F%62", 10, 5)
        .failing("/srv/Qzanna Fotos", ReadError::Denied);
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    for path in ["/srv/Qzfamily Qzschmidt", "/srv/100%25-qzalice", "/srv/%71%7A%62%6F%62"] {
        recorder.space(Path::new(path)).unwrap();
    }
    let _ = recorder.text(Path::new("/srv/Qzanna Fotos"));
    let (text, kept) = saved(&recorder);
    let names = ["Qzschmidt", "qzalice", "%71%7A", "Qzanna", "Fotos", "qzbob"];
    let left: Vec<&&str> = names.iter().filter(|name| text.contains(**name)).collect();
    assert!(left.is_empty(), "{left:?} are left in {text}");
    // What is mounted is still where its free space is told.
    let mounted = kept.text(Path::new("/proc/self/mountinfo")).unwrap();
    let points: Vec<&str> = mounted.lines().filter_map(|line| line.split(' ').nth(4)).collect();
    assert_eq!(points.len(), 4);
    for point in &points[1..] {
        let place = if point.contains('%') { point.to_string() } else { escapes::decoded(point) };
        assert!(kept.space(Path::new(&place)).is_ok(), "{place} in {text}");
    }
}

/// What programs make of a file's name stays in its pseudonym.
#[test]
fn files_that_a_config_names_are_still_what_they_were() {
    let machine = FakeFiles::new()
        .file(
            "/boot/firmware/config.txt",
            "kernel=qzkernel.img\ncmdline=qzcmd.txt\n[pi4]\nkernel=u-boot-qz.bin\n",
        )
        .file("/boot/firmware/qzcmd.txt", "root=/dev/mmcblk0p2 rootwait\n")
        .file("/boot/firmware/qzkernel.img", "\0x")
        .file("/boot/firmware/qzinitramfs", "\0y");
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (_, kept) = saved(&recorder);
    let config = kept.text(Path::new("/boot/firmware/config.txt")).unwrap();
    let values: Vec<&str> =
        config.lines().filter_map(|line| Some(line.split_once('=')?.1)).collect();
    let [kernel, line, loader] = values[..] else { panic!("{config}") };
    assert!(!config.contains("qz"), "{config}");
    assert!(kernel.ends_with(".img") && loader.starts_with("u-boot"), "{config}");
    let boot = Path::new("/boot/firmware");
    assert_eq!(kept.text(&boot.join(line)).unwrap(), "root=/dev/mmcblk0p2 rootwait");
    assert!(kept.read_prefix(&boot.join(kernel), 1).is_ok());
    // The firmware makes this name of the kernel's.
    let initramfs = kernel.replace("kernel", "initramfs").replace(".img", "");
    assert_ne!(initramfs, kernel);
    assert!(kept.read_prefix(&boot.join(initramfs), 1).is_ok(), "{config}");
}

/// Firmware and programs look for files by their names.
#[test]
fn files_that_programs_look_for_keep_their_names() {
    let boot = Path::new("/boot/firmware");
    let files = ["start4.elf", "fixup4.dat", "autoboot.txt", "tryboot.txt", "usercfg.txt"];
    let config = "include usercfg.txt\n[tryboot]\nkernel=u-boot.bin\n";
    let settings = "[all]\ntryboot_a_b=1\nboot_partition=2\n";
    let machine = files.iter().fold(FakeFiles::new(), |machine, name| match *name {
        "autoboot.txt" => machine.file(boot.join(name), settings),
        _ => machine.file(boot.join(name), "gpu_mem=16\n"),
    });
    let arrays = Path::new("/etc/mdadm/mdadm.conf");
    let machine = machine.file(boot.join("config.txt"), config).file(arrays, "MAILADDR root\n");
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (_, kept) = saved(&recorder);
    let names = kept.list(boot).unwrap();
    assert!(files.iter().all(|file| names.iter().any(|name| name == file)), "{names:?}");
    assert_eq!(kept.text(&boot.join("config.txt")).unwrap(), config.trim_end());
    assert_eq!(kept.text(&boot.join("autoboot.txt")).unwrap(), settings.trim_end());
    assert!(kept.text(arrays).is_ok());
}

/// What udev makes of makers, products, serial numbers and mappings.
#[test]
fn names_inside_udevs_names_are_left_out() {
    let nvme = "nvme-nvme.144d-533634454e58305431323334353620202020-53414d53554e47-00000001";
    let machine = FakeFiles::new()
        .file(
            "/run/udev/data/b8:0",
            "E:ID_BUS=usb\nE:ID_SERIAL=Qzalice_Qzbob_Backup_4C530001230412345678-0:0\n\
             E:ID_SERIAL_SHORT=4C530001230412345678\n\
             S:disk/by-id/usb-Qzalice_Qzbob_Backup_4C530001230412345678-0:0\n",
        )
        .file(
            "/run/udev/data/b8:16",
            "E:ID_SERIAL=SanDisk_Ultra_Qzcarol_Privat-0:0\nE:ID_MODEL=Ultra\n\
             S:disk/by-id/usb-SanDisk_Ultra_Qzcarol_Privat-0:0\n",
        )
        .file(
            "/run/udev/data/b8:32",
            "E:ID_MODEL=PersistentDisk\nE:ID_SERIAL=0Google_PersistentDisk_qzpayroll-data\n\
             S:disk/by-id/scsi-0Google_PersistentDisk_qzpayroll-data\n",
        )
        .file(
            "/run/udev/data/b259:0",
            format!("S:disk/by-id/{nvme}\nS:disk/by-id/wwn-0x50014ee2b1c2d3e4\n"),
        )
        .file("/run/udev/data/b253:0", "E:DM_UUID=QZSOFT-qzteam-pool\n")
        .file(
            "/run/udev/data/b253:1",
            "E:DM_UUID=DMRAID-isw_bajcefgj_qzvolume\n\
             S:disk/by-id/dm-uuid-DMRAID-isw_bajcefgj_qzvolume\n",
        )
        .file("/run/udev/data/b259:1", "S:disk/by-id/nvme-nqn.2019-08.org.qzorg:nvme:qzsub_1\n")
        .link("/dev/disk/by-id/usb-Qzdora_Stick_0123456789AB-0:0-part1", "/dev/sdd1");
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (text, _) = saved(&recorder);
    let secrets = [
        "Qz",
        "qz",
        "QZ",
        "bajcefgj",
        "Privat",
        "4C5300",
        "533634454e58",
        "50014ee2b1c2",
        "0123456789AB",
    ];
    let left: Vec<&&str> = secrets.iter().filter(|name| text.contains(**name)).collect();
    assert!(left.is_empty(), "{left:?} are left in {text}");
    assert!(text.contains("SanDisk_Ultra_") && text.contains("_Backup_"), "{text}");
}

/// Programs that make filesystems and disks let people give a word where an identity is expected.
#[test]
fn a_word_in_the_place_of_an_identity_is_left_out_and_still_found() {
    let machine = FakeFiles::new()
        .file("/proc/cmdline", "root=UUID=qzwordy resume=UUID=jo rootwait\n")
        .file("/etc/fstab", "UUID=jo none swap sw 0 0\n")
        .file(
            "/run/udev/data/b8:1",
            "E:ID_FS_UUID=qzwordy\nE:ID_WWN=qzwwn\nS:disk/by-uuid/qzwordy\nS:disk/by-diskseq/qzseq-7\n",
        )
        .file("/run/udev/data/b8:2", "E:ID_FS_UUID=jo\nS:disk/by-uuid/jo\n")
        .file(
            "/run/udev/data/b8:3",
            "E:ID_USB_SERIAL_SHORT=Qzbob_stick\nE:ID_NVME_SERIAL=Qzeva\nE:SCSI_IDENT_SERIAL=Qztom\n\
             E:ID_SERIAL_SHORT=qzone\nE:ID_SERIAL_SHORT=qztwo\nE:ID_FS_UUID=Qz-first\n\
             E:ID_FS_UUID=Qz-second\n",
        )
        .link("/dev/disk/by-uuid/qzwordy", "../../sda1")
        .link("/dev/disk/by-uuid/jo", "../../sda2");
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (text, kept) = saved(&recorder);
    let small = text.to_lowercase();
    assert!(!small.contains("qz") && !text.contains("UUID=jo"), "{text}");
    let line = kept.text(Path::new("/proc/cmdline")).unwrap();
    let named: Vec<&str> =
        line.split(' ').filter_map(|word| Some(word.split_once("=UUID=")?.1)).collect();
    assert_eq!(named.len(), 2, "{line}");
    for (name, entry) in named.iter().zip(["b8:1", "b8:2"]) {
        let udev = kept.text(Path::new(&format!("/run/udev/data/{entry}"))).unwrap();
        let has = |wanted: String| udev.lines().any(|line| line == wanted);
        assert!(has(format!("E:ID_FS_UUID={name}")), "{name} in {udev}");
        assert!(has(format!("S:disk/by-uuid/{name}")), "{name} in {udev}");
    }
}

/// Programs know an array by the kernel's mark before its name, and a board by one of several names.
#[test]
fn what_tells_a_kind_stays_beside_a_name() {
    let machine = FakeFiles::new()
        .file("/sys/block/md_qzraid/size", "1000\n")
        .file("/proc/self/mountinfo", "24 1 9:127 / /srv rw - ext4 /dev/md_qzraid rw\n")
        .file("/proc/device-tree/compatible", "qzcorp,qzboard\0brcm,bcm2711\0");
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (_, kept) = saved(&recorder);
    let disks = kept.list(Path::new("/sys/block")).unwrap();
    let [disk] = disks.as_slice() else { panic!("{disks:?}") };
    let mounts = kept.text(Path::new("/proc/self/mountinfo")).unwrap();
    assert!(disk.starts_with("md_") && !disk.contains("qz"), "{disk}");
    assert!(mounts.contains(&format!(" /dev/{disk} ")), "{disk} in {mounts}");
    let board = kept.text(Path::new("/proc/device-tree/compatible")).unwrap();
    assert!(board.contains("brcm,bcm2711") && !board.contains("qz"), "{board:?}");
}

/// A disk's identity is made of a maker's words and numbers, or of words that an owner gave a target.
#[test]
fn words_in_the_identity_of_a_disk_are_left_out_unless_they_are_a_products() {
    // "QEMU NVMe Ctrl" and "Qzmodel", as NVMe names that have neither EUI nor GUID write them.
    let machine = FakeFiles::new()
        .file("/sys/block/sda/device/wwid", "t10.qzdisk7\n")
        .file("/sys/block/sdb/device/wwid", "t10.qzverylongname\n")
        .file("/sys/block/sdc/device/wwid", "t10.Qzowner ATA     Qztarget    Qzdisk9\n")
        .file("/sys/block/nvme0n1/wwid", "nvme.1b36-717a736572-717a6d6f64656c-00000001\n")
        .file("/sys/block/nvme2n1/eui", "00 25 38 5b 71 b0 12 34\n")
        .link("/dev/disk/by-id/nvme-eui.0025385b71b01234", "../../nvme2n1")
        .file(
            "/sys/block/nvme1n1/wwid",
            "nvme.1b36-717a31-51454d55204e564d65204374726c-00000001\n",
        );
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (_, kept) = saved(&recorder);
    for file in ["sda/device/wwid", "sdb/device/wwid", "sdc/device/wwid", "nvme0n1/wwid"] {
        let id = kept.text(&Path::new("/sys/block").join(file)).unwrap().to_lowercase();
        assert!(!id.contains("qz") && !id.contains("717a"), "{file}: {id}");
        assert!(id.starts_with("t10.") || id.starts_with("nvme.1b36-"), "{file}: {id}");
    }
    let eui = kept.text(Path::new("/sys/block/nvme2n1/eui")).unwrap();
    let digits = eui.trim().replace(' ', "");
    assert!(digits.len() == 16 && digits != "0025385b71b01234", "{eui}");
    let links = kept.list(Path::new("/dev/disk/by-id")).unwrap();
    assert_eq!(links, [format!("nvme-eui.{digits}")]);
    let known = kept.text(Path::new("/sys/block/nvme1n1/wwid")).unwrap();
    assert!(known.trim_end().ends_with("-51454d55204e564d65204374726c-00000001"), "{known}");
}

/// A partition has a type, which is a UUID, too; a type of one's own may be that of one machine.
#[test]
fn types_of_partitions_stay_where_all_machines_have_them() {
    let known = "E:ID_PART_ENTRY_TYPE=0fc63daf-8483-4772-8e79-3d69d8477de4";
    let own = "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9";
    let machine = FakeFiles::new()
        .file("/run/udev/data/b8:1", known)
        .file("/run/udev/data/b8:2", format!("E:ID_PART_ENTRY_TYPE={own}\nE:ID_FS_UUID={own}\n"));
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (_, kept) = saved(&recorder);
    assert_eq!(kept.text(Path::new("/run/udev/data/b8:1")).unwrap(), known);
    let other = kept.text(Path::new("/run/udev/data/b8:2")).unwrap();
    assert!(!other.contains(own) && other.contains("E:ID_PART_ENTRY_TYPE="), "{other}");
}

/// Kernels, udev and firmware print some names without escapes, and some fields in several places.
#[test]
fn names_beside_their_known_places_are_left_out() {
    let machine = FakeFiles::new()
        .file(
            "/proc/self/mountinfo",
            "24 1 179:2 / / rw shared:1 - ext4 /dev/mmcblk0p2 rw\n\
             70 24 0:50 / /mnt/nas rw shared:9 - cifs //nas/x rw,username=John Qzdoe,uid=1000\n\
             qzmount 24 0:51 / /mnt rw - ext4 /dev/sda1 rw\n",
        )
        .file(
            "/proc/cpuinfo",
            "Serial\t\t: 10000000aabbccdd\nserial\t\t: 20000000aabbccee\nSERIAL : qzalice\n\
             Serial : 12345678\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n",
        )
        .file(
            "/run/udev/data/b8:0",
            "E:ID_FS_UUID_ENC=qzwordy\nE:ID_FS_UUID_ENC=Qzfamily7\\x20data\n\
             E:ID_NET_NAME_MAC=qzlan\nE:ID_BUS=usb\nS:disk/by-id/qzdisk\n\
             S:disk/by-id/qzowner-qzstick\nS:disk/by-id/usb-Qzgadget-0:0\n",
        )
        .file(
            "/boot/firmware/config.txt",
            "kernel=0171 286 9746\nstart_file=533,386,4262.elf\n\
             initramfs initrd.gz 0x00a00000\nkernel=kernel8.img\n",
        )
        .file("/etc/crypttab", "x /dev/disk/by-id/qzkey none luks\n")
        .file("/sys/class/net/eth0/operstate", "475-575-6538\n")
        .file("/proc/sys/kernel/arch", "1968-08-19\n")
        .program(
            &["rpi-eeprom-update"],
            "CURRENT: Wed 11 Jan 17:40:52 UTC 2023 (1673458852)\nx 2023 (5551234567)\n",
        )
        .program(&["dmesg"], "mmc0: new SDXC card at address aaaa\nusb 1-1: Product: 7b1f f1ba\n");
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    for program in ["rpi-eeprom-update", "dmesg"] {
        recorder.ask(program, &[]).unwrap();
    }
    let (text, _) = saved(&recorder);
    let small = text.to_lowercase();
    let secrets = [
        "qz",
        "aabbcc",
        "12345678",
        "286 9746",
        "386,4262",
        "5551234567",
        "7b1f",
        "f1ba",
        "475-575",
        "1968-08",
    ];
    let left: Vec<&&str> = secrets.iter().filter(|name| small.contains(**name)).collect();
    assert!(left.is_empty(), "{left:?} are left in {text}");
    for public in [
        "address aaaa",
        "initrd.gz 0x00a00000",
        "kernel=kernel8.img",
        "Model\t\t: Raspberry Pi 4 Model B Rev 1.4",
    ] {
        assert!(text.contains(public), "{public} in {text}");
    }
}

/// A short number stands for other things elsewhere; in the name of a link it is the disk's.
#[test]
fn short_serial_numbers_are_replaced_wherever_a_link_is_named() {
    let link = "disk/by-id/usb-Kingston_DataTraveler_48392715-0:0";
    let machine = FakeFiles::new()
        .file("/proc/cmdline", format!("resume=/dev/{link} mem=48392715\n"))
        .file("/etc/fstab", format!("/dev/{link}-part1 /mnt ext4 defaults 0 0\n"))
        .file("/run/udev/data/b8:0", format!("S:{link}\n"));
    let recorder = Recorder::new(&machine);
    read_everything_there(&recorder);
    let (_, kept) = saved(&recorder);
    let [line, table, udev] = ["/proc/cmdline", "/etc/fstab", "/run/udev/data/b8:0"]
        .map(|file| kept.text(Path::new(file)).unwrap());
    let linked = udev.trim_end().strip_prefix("S:").unwrap().to_string();
    assert!(linked != link && linked.starts_with("disk/by-id/usb-Kingston_"), "{linked}");
    assert!(line.contains(&format!("resume=/dev/{linked} ")), "{linked} in {line}");
    assert!(table.starts_with(&format!("/dev/{linked}-part1 ")), "{linked} in {table}");
}
