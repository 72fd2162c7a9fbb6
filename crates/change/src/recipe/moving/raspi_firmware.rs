//! Debian's package `raspi-firmware`, whose hooks write `cmdline.txt` anew with each kernel and each initial RAM filesystem. The
//! package of Raspberry Pi OS has hooks of the same name that leave the command line alone.

use std::path::Path;

use super::super::Situation;

/// One of its hooks; the others run the same program.
pub(in super::super) const HOOK: &str = "/etc/kernel/postinst.d/z50-raspi-firmware";

/// Whether the next update writes the command line anew.
pub(in super::super) fn rewrites_command_line(situation: &Situation<'_>) -> bool {
    let hook = situation.text(Path::new(HOOK));
    hook.contains(">/boot/firmware/cmdline.txt")
}
