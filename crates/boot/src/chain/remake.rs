//! How an initial RAM filesystem is made again, in the words of the program that made it.

use crate::initramfs::{Listing, Maker};

/// Something that an initial RAM filesystem lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacks<'a> {
    /// It is of another kernel, or damaged.
    Freshness,
    /// The program that opens an encrypted root.
    Cryptsetup,
    /// The program that puts a volume group together.
    Lvm,
    Module(&'a str),
}

/// What to do, to be done on the system itself.
pub(super) fn remake(listings: &[&Listing], lacks: Lacks<'_>) -> String {
    match (listings.iter().find_map(|listing| listing.maker()), lacks) {
        (Some(Maker::InitramfsTools), lacks) => by_initramfs_tools(lacks),
        (Some(Maker::Dracut), Lacks::Freshness) => {
            "make it again: sudo dracut --force --regenerate-all".into()
        }
        (Some(Maker::Dracut), Lacks::Cryptsetup) => dracut("--add crypt"),
        (Some(Maker::Dracut), Lacks::Lvm) => dracut("--add lvm"),
        (Some(Maker::Dracut), Lacks::Module(module)) => dracut(&format!("--add-drivers {module}")),
        (Some(Maker::Mkinitcpio), Lacks::Freshness) => "make it again: sudo mkinitcpio -P".into(),
        (Some(Maker::Mkinitcpio), Lacks::Cryptsetup) => mkinitcpio("encrypt", "HOOKS"),
        (Some(Maker::Mkinitcpio), Lacks::Lvm) => mkinitcpio("lvm2", "HOOKS"),
        (Some(Maker::Mkinitcpio), Lacks::Module(module)) => mkinitcpio(module, "MODULES"),
        (None, Lacks::Freshness) => {
            "make it again by the program of its system (update-initramfs, dracut, mkinitcpio, mkinitfs)".into()
        }
        (None, Lacks::Cryptsetup) => with_own_program("cryptsetup"),
        (None, Lacks::Lvm) => with_own_program("lvm"),
        (None, Lacks::Module(module)) => with_own_program(&format!("the module {module}")),
    }
}

fn by_initramfs_tools(lacks: Lacks<'_>) -> String {
    match lacks {
        Lacks::Freshness => "make it again: sudo update-initramfs -u -k all".into(),
        Lacks::Cryptsetup => {
            "install cryptsetup-initramfs, then sudo update-initramfs -u -k all".into()
        }
        Lacks::Lvm => "install lvm2, then sudo update-initramfs -u -k all".into(),
        Lacks::Module(module) => {
            format!(
                "write {module} into /etc/initramfs-tools/modules, then sudo update-initramfs -u"
            )
        }
    }
}

fn dracut(option: &str) -> String {
    format!("make it again: sudo dracut --force {option} --regenerate-all")
}

fn mkinitcpio(word: &str, list: &str) -> String {
    format!("write {word} into {list} of /etc/mkinitcpio.conf, then sudo mkinitcpio -P")
}

fn with_own_program(what: &str) -> String {
    format!("make it again with {what} in it, by the program of its system")
}
