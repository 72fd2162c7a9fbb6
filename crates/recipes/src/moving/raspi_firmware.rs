//! Debian's package `raspi-firmware`, whose hooks rewrite `cmdline.txt` with each kernel and each initramfs. The
//! package of Raspberry Pi OS has hooks of the same name that leave the command line alone.

use std::path::Path;

use super::super::PlanInput;

/// One of its hooks; the others run the same program.
pub(in super::super) const HOOK: &str = "/etc/kernel/postinst.d/z50-raspi-firmware";

/// Whether the next update rewrites the command line.
pub(in super::super) fn rewrites_command_line(situation: &PlanInput<'_>) -> bool {
    let hook = situation.text(Path::new(HOOK));
    hook.contains(">/boot/firmware/cmdline.txt")
}
