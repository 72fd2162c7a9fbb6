//! What is changed on a card: one file, or one byte of a table, in the ways that people and programs do it.

use rubus_stats::Rng;

use super::card::Card;

/// A kind of change.
pub struct Change {
    /// What it is, for people.
    pub name: &'static str,
    /// Makes it.
    pub make: fn(&Card, &mut Rng),
}

const CONFIG: &str = "config.txt";
const LINE: &str = "cmdline.txt";
const KERNEL: &str = "kernel8.img";
const INITRAMFS: &str = "initramfs8";
/// What names the root as the card was made.
const ROOT: &str = "root=PARTUUID=7c0a02d1-02";
const BOOT_FROM: &str = "PARTUUID=7c0a02d1-01";

/// Every kind of change.
pub const CHANGES: &[Change] = &[
    // The command line.
    Change {
        name: "another disk's PARTUUID",
        make: |card, random| {
            let other = format!("root=PARTUUID={:08x}-02", random.next_u64() as u32);
            card.edit_boot(LINE, |line| line.replace(ROOT, &other));
        },
    },
    Change {
        name: "a partition that is not there",
        make: |card, random| {
            let other = format!("root=PARTUUID=7c0a02d1-{:02x}", 3 + random.below(9));
            card.edit_boot(LINE, |line| line.replace(ROOT, &other));
        },
    },
    Change {
        name: "the boot partition as root",
        make: |card, _| card.edit_boot(LINE, |line| line.replace("7c0a02d1-02", "7c0a02d1-01")),
    },
    Change {
        name: "the root by its UUID",
        make: |card, _| {
            let uuid = format!("root=UUID={}", card.root_uuid());
            card.edit_boot(LINE, |line| line.replace(ROOT, &uuid));
        },
    },
    Change {
        name: "another UUID",
        make: |card, random| {
            let uuid =
                format!("root=UUID={:08x}-4f39-4f39-8207-d89dd61f7510", random.next_u64() as u32);
            card.edit_boot(LINE, |line| line.replace(ROOT, &uuid));
        },
    },
    Change {
        name: "the root by its label",
        make: |card, _| card.edit_boot(LINE, |line| line.replace(ROOT, "root=LABEL=rootfs")),
    },
    Change {
        name: "a label that nothing has",
        make: |card, _| card.edit_boot(LINE, |line| line.replace(ROOT, "root=LABEL=writable")),
    },
    Change {
        name: "the root by its device",
        make: |card, _| card.edit_boot(LINE, |line| line.replace(ROOT, "root=/dev/mmcblk0p2")),
    },
    Change {
        name: "a device that is not there",
        make: |card, random| {
            let devices = ["/dev/sda2", "/dev/mmcblk0p3", "/dev/mmcblk1p2", "/dev/nvme0n1p2"];
            let root = format!("root={}", devices[random.below(4) as usize]);
            card.edit_boot(LINE, |line| line.replace(ROOT, &root));
        },
    },
    Change {
        name: "capitals in the PARTUUID",
        make: |card, _| card.edit_boot(LINE, |line| line.replace("7c0a02d1-02", "7C0A02D1-02")),
    },
    Change {
        name: "no root=",
        make: |card, _| card.edit_boot(LINE, |line| line.replace(ROOT, "")),
    },
    Change {
        name: "root= on a second line",
        make: |card, _| card.edit_boot(LINE, |line| line.replace(ROOT, &format!("\n{ROOT}"))),
    },
    Change {
        name: "words on a second line",
        make: |card, _| card.edit_boot(LINE, |line| format!("{}\nquiet splash\n", line.trim_end())),
    },
    Change {
        name: "two roots, the wrong one last",
        make: |card, _| {
            card.edit_boot(LINE, |line| format!("{} root=PARTUUID=deadbeef-02\n", line.trim_end()));
        },
    },
    Change {
        name: "two roots, the right one last",
        make: |card, _| card.edit_boot(LINE, |line| format!("root=/dev/sda2 {line}")),
    },
    Change {
        name: "a filesystem that the root is not",
        make: |card, random| {
            let kinds = ["btrfs", "f2fs", "xfs", "vfat"];
            let kind = format!("rootfstype={}", kinds[random.below(4) as usize]);
            card.edit_boot(LINE, |line| line.replace("rootfstype=ext4", &kind));
        },
    },
    Change {
        name: "no rootfstype=",
        make: |card, _| card.edit_boot(LINE, |line| line.replace("rootfstype=ext4", "")),
    },
    Change {
        name: "options of btrfs for ext4",
        make: |card, _| {
            card.edit_boot(LINE, |line| line.replace(ROOT, &format!("{ROOT} rootflags=subvol=@")));
        },
    },
    Change {
        name: "options that ext4 has",
        make: |card, random| {
            let options = ["noatime", "commit=60", "data=journal", "lazytime"];
            let words = format!("{ROOT} rootflags={}", options[random.below(4) as usize]);
            card.edit_boot(LINE, |line| line.replace(ROOT, &words));
        },
    },
    Change {
        name: "no rootwait",
        make: |card, _| card.edit_boot(LINE, |line| line.replace(" rootwait", "")),
    },
    Change {
        name: "harmless words",
        make: |card, random| {
            let words = ["quiet", "splash", "cgroup_enable=memory", "psi=1", "rootdelay=1", "rw"];
            let word = words[random.below(6) as usize];
            card.edit_boot(LINE, |line| format!("{} {word}\n", line.trim_end()));
        },
    },
    Change {
        name: "an init that is not there",
        make: |card, _| {
            card.edit_boot(LINE, |line| format!("{} init=/opt/start\n", line.trim_end()));
        },
    },
    Change {
        name: "lines that end as on Windows",
        make: |card, _| card.edit_boot(LINE, |line| format!("{}\r\n", line.trim_end())),
    },
    Change {
        name: "tabs between words",
        make: |card, _| card.edit_boot(LINE, |line| line.replace(' ', "\t")),
    },
    Change {
        name: "an empty first line",
        make: |card, _| card.edit_boot(LINE, |line| format!("\n{line}")),
    },
    Change { name: "no cmdline.txt", make: |card, _| card.remove_boot(LINE) },
    Change { name: "an empty cmdline.txt", make: |card, _| card.write_boot(LINE, "") },
    Change {
        name: "cmdline.txt in UTF-16",
        make: |card, _| {
            let line = card.boot_text(LINE);
            let units = std::iter::once(0xfeff).chain(line.encode_utf16());
            card.write_boot(LINE, units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
        },
    },
    // The settings.
    Change { name: "no config.txt", make: |card, _| card.remove_boot(CONFIG) },
    Change { name: "an empty config.txt", make: |card, _| card.write_boot(CONFIG, "") },
    Change {
        name: "a kernel that is not there",
        make: |card, _| card.edit_boot(CONFIG, |text| format!("{text}kernel=vmlinuz-7\n")),
    },
    Change {
        name: "a kernel that is not there, for a Pi 4",
        make: |card, _| card.edit_boot(CONFIG, |text| format!("{text}[pi4]\nkernel=vmlinuz-7\n")),
    },
    Change {
        name: "a kernel that is not there, for a Pi 3",
        make: |card, _| card.edit_boot(CONFIG, |text| format!("{text}[pi3]\nkernel=vmlinuz-7\n")),
    },
    Change {
        name: "a kernel that is not there, for no board",
        make: |card, _| {
            card.edit_boot(CONFIG, |text| format!("{text}[none]\nkernel=gone\n[all]\n"))
        },
    },
    Change {
        name: "a wrong kernel first and the right one last",
        make: |card, _| {
            card.edit_boot(CONFIG, |text| format!("{text}kernel=gone\nkernel={KERNEL}\n"));
        },
    },
    Change {
        name: "everything below a filter for another board",
        make: |card, random| {
            let filters = ["[pi4]", "[pi5]", "[none]", "[pi02]", "[0x12345678]"];
            let filter = filters[random.below(5) as usize];
            card.edit_boot(CONFIG, |text| format!("{filter}\n{text}"));
        },
    },
    Change {
        name: "32 bits",
        make: |card, _| card.edit_boot(CONFIG, |text| text.replace("arm_64bit=1", "arm_64bit=0")),
    },
    Change {
        name: "no initramfs named",
        make: |card, _| card.edit_boot(CONFIG, |text| text.replace("auto_initramfs=1", "")),
    },
    Change {
        name: "the initramfs by its name",
        make: |card, _| {
            let named = format!("initramfs {INITRAMFS} followkernel");
            card.edit_boot(CONFIG, |text| text.replace("auto_initramfs=1", &named));
        },
    },
    Change {
        name: "an initramfs with an equals sign",
        make: |card, _| {
            let named = format!("initramfs={INITRAMFS}");
            card.edit_boot(CONFIG, |text| text.replace("auto_initramfs=1", &named));
        },
    },
    Change {
        name: "an initramfs that is not there",
        make: |card, _| {
            card.edit_boot(CONFIG, |text| {
                text.replace("auto_initramfs=1", "initramfs initrd.gone followkernel")
            });
        },
    },
    Change {
        name: "another command line, which is not there",
        make: |card, _| card.edit_boot(CONFIG, |text| format!("{text}cmdline=other.txt\n")),
    },
    Change {
        name: "a prefix with nothing behind it",
        make: |card, _| card.edit_boot(CONFIG, |text| format!("{text}os_prefix=next/\n")),
    },
    Change {
        name: "a file to include that is not there",
        make: |card, _| card.edit_boot(CONFIG, |text| format!("{text}include usercfg.txt\n")),
    },
    Change {
        name: "harmless settings",
        make: |card, random| {
            let lines =
                ["gpu_mem=64", "arm_freq=1200", "# a remark", "dtparam=audio=on", "over_voltage=2"];
            let line = lines[random.below(5) as usize];
            card.edit_boot(CONFIG, |text| format!("{text}{line}\n"));
        },
    },
    Change {
        name: "settings whose lines end as on Windows",
        make: |card, _| card.edit_boot(CONFIG, |text| text.replace('\n', "\r\n")),
    },
    // Files of the boot partition.
    Change { name: "no kernel", make: |card, _| card.remove_boot(KERNEL) },
    Change { name: "an empty kernel", make: |card, _| card.write_boot(KERNEL, "") },
    Change {
        name: "half a kernel",
        make: |card, random| {
            let kernel = card.boot_file(KERNEL);
            let share = 0.1 + 0.8 * random.unit();
            card.write_boot(KERNEL, &kernel[..(kernel.len() as f64 * share) as usize]);
        },
    },
    Change { name: "no initramfs", make: |card, _| card.remove_boot(INITRAMFS) },
    Change { name: "an empty initramfs", make: |card, _| card.write_boot(INITRAMFS, "") },
    Change {
        name: "half an initramfs",
        make: |card, random| {
            let bytes = card.boot_file(INITRAMFS);
            let share = 0.1 + 0.8 * random.unit();
            card.write_boot(INITRAMFS, &bytes[..(bytes.len() as f64 * share) as usize]);
        },
    },
    Change {
        name: "noise for an initramfs",
        make: |card, random| {
            let bytes: Vec<u8> = (0..100_000).map(|_| random.next_u64() as u8).collect();
            card.write_boot(INITRAMFS, bytes);
        },
    },
    Change { name: "no bootcode.bin", make: |card, _| card.remove_boot("bootcode.bin") },
    Change { name: "no start.elf", make: |card, _| card.remove_boot("start.elf") },
    Change { name: "a further file", make: |card, _| card.write_boot("ssh", "") },
    // The table.
    Change {
        name: "the boot partition as one of Linux",
        make: |card, _| card.write_at(446 + 4, &[0x83]),
    },
    Change {
        name: "another type of FAT",
        make: |card, random| {
            card.write_at(446 + 4, &[[0x0b, 0x0e, 0x06][random.below(3) as usize]])
        },
    },
    Change { name: "an active boot partition", make: |card, _| card.write_at(446, &[0x80]) },
    Change { name: "no signature of the table", make: |card, _| card.write_at(510, &[0, 0]) },
    Change {
        name: "another identifier of the disk",
        make: |card, random| card.write_at(440, &(random.next_u64() as u32 | 1).to_le_bytes()),
    },
    // The root.
    Change {
        name: "a root without its superblock",
        make: |card, _| card.write_at(card.root_at() + 1024, &[0; 1024]),
    },
    Change {
        name: "another UUID of the root's filesystem",
        make: |card, _| card.tune_root(&["-f", "-U", "b1f7a3d2-3c5e-4f39-8207-d89dd61f7510"]),
    },
    Change {
        name: "another label of the root's filesystem",
        make: |card, _| card.tune_root(&["-L", "system"]),
    },
    Change { name: "no fstab", make: |card, _| drop(card.on_root("rm /etc/fstab")) },
    Change {
        name: "a boot partition in fstab that is not there",
        make: |card, random| {
            let other = format!("PARTUUID={:08x}-01", random.next_u64() as u32);
            card.edit_fstab(|text| text.replace(BOOT_FROM, &other));
        },
    },
    Change {
        name: "the same, which may be missing",
        make: |card, random| {
            let other = format!("PARTUUID={:08x}-01", random.next_u64() as u32);
            card.edit_fstab(|text| {
                text.lines()
                    .map(|line| {
                        if line.starts_with(BOOT_FROM) {
                            line.replace(BOOT_FROM, &other).replace("defaults", "defaults,nofail")
                        } else {
                            line.to_owned()
                        }
                    })
                    .map(|line| line + "\n")
                    .collect()
            });
        },
    },
    Change {
        name: "a backup disk in fstab that is not there",
        make: |card, random| {
            let line = format!("UUID={:016x} /mnt ext4 defaults 0 2\n", random.next_u64());
            card.edit_fstab(|text| format!("{text}{line}"));
        },
    },
    Change {
        name: "a backup disk that may be missing",
        make: |card, random| {
            let option = ["nofail", "noauto", "nofail,noatime"][random.below(3) as usize];
            let line = format!("UUID={:016x} /mnt ext4 {option} 0 2\n", random.next_u64());
            card.edit_fstab(|text| format!("{text}{line}"));
        },
    },
    Change {
        name: "a wrong filesystem for the boot partition",
        make: |card, _| card.edit_fstab(|text| text.replace("vfat", "ext4")),
    },
    Change {
        name: "a boot partition by its device",
        make: |card, _| card.edit_fstab(|text| text.replace(BOOT_FROM, "/dev/mmcblk0p1")),
    },
    Change {
        name: "no modules in the root",
        make: |card, _| {
            let listed = card.on_root("ls -p /usr/lib/modules");
            let names = listed.lines().filter_map(|line| line.split('/').nth(5));
            for release in
                names.filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
            {
                card.on_root(&format!("ln /usr/lib/modules/{release} /usr/lib/gone"));
                card.on_root(&format!("unlink /usr/lib/modules/{release}"));
            }
        },
    },
];
