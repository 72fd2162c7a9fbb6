//! Names of files that firmware, loaders, packages and this program bring on a boot partition and below /etc: programs look for
//! them by these names.

use crate::shareable::words::spelt_words;
use crate::shareable::{identities, options};

/// Pieces of such names, beside public words.
const PIECES: &str = "armbianenv|armstub|attached|audit|autoboot|bcm2712d0|bootaa64|bootarm|bootcode|bootia32|bootx64|ca|cert|\
     cm4io|cm4s|cm5io|copying|csi|custom|db|distroconfig|dsi|dtbo|dtbs|elf|entries|extlinux|extra|extraconfig|\
     fake|fixup|fixup4cd|fixup4db|fixup4x|fkms|folder2ram|gic|gpio|grub|grubaa64|grubx64|hook|hostname|hw|\
     hwclock|i2c|initcpio|initrd|inittab|intfc|kms|loader|log2ram|logrotate|mdadm|miniuart|mkinitcpio|modprobe|\
     mtab|nobtcfg|nobtcmd|openrc|orangepienv|overlays|pem|pieeprom|post|postinst|postrm|ramlog|rc|resolv|rev|\
     rtc|runit|scr|service|sock|sockets|spi|start4cd|start4db|start4x|startup|supplicant|syscfg|sysinit|timer|\
     toml|uboot|uenv|usercfg|userconf|v3d|vc|vmlinux|vmlinuz|volatile|wlan|wpa|z50";

/// Whether a component of a path is made of such pieces: "start4.elf", "autoboot.txt", "bcm2711-rpi-4-b.dtb", "overlays".
pub(super) fn is_known(name: &str) -> bool {
    let is_piece = |piece: &str| {
        let stem = piece.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_numbered = piece.len() - stem.len() <= 4;
        let is_one_of =
            |text: &str| PIECES.split('|').any(|known| known.eq_ignore_ascii_case(text));
        options::is_words(piece) || is_one_of(piece) || is_numbered && is_one_of(stem)
    };
    name.len() <= 64
        && !name.contains('/')
        && !identities::is_address(name)
        && spelt_words(name).is_empty()
        && name.split(['.', '-', '_', '+']).filter(|piece| !piece.is_empty()).all(is_piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_programs_look_for_are_known_and_others_are_not() {
        for name in [
            "bootcode.bin",
            "start.elf",
            "start4.elf",
            "start4cd.elf",
            "start_x.elf",
            "fixup4.dat",
            "fixup_cd.dat",
            "recovery.elf",
            "recover4.elf",
            "autoboot.txt",
            "tryboot.txt",
            "usercfg.txt",
            "syscfg.txt",
            "config.txt",
            "cmdline.txt",
            "issue.txt",
            "overlays",
            "vc4-kms-v3d.dtbo",
            "bcm2711-rpi-4-b.dtb",
            "bcm2712-rpi-cm5-cm5io.dtb",
            "kernel8.img",
            "kernel_2712.img",
            "initramfs_2712",
            "u-boot.bin",
            "armbianEnv.txt",
            "boot.scr",
            "custom.toml",
            "mdadm.conf",
            "inittab",
            "log2ram.service",
            "armbian-ramlog.service",
            "40-rpi-volatile-storage.conf",
            "postinst.d",
            "server-key.pem",
        ] {
            assert!(is_known(name), "{name}");
        }
        for name in [
            "qzovl.dtbo",
            "kernel-qzbuild.img",
            "alice.txt",
            "vpn@qzoffice.service",
            "backup-of-qzanne.service",
            "555-1234.txt",
            "b827eb3a2b1c.bin",
            "start.qzcorp.elf",
            "/home/max/start.elf",
        ] {
            assert!(!is_known(name), "{name}");
        }
    }
}
