//! Which width a kernel's file has, and whether a running release is that of it, by the names of Raspberry Pi OS.

use super::ChainFacts;
use crate::config_txt::BootPath;

/// Whether a kernel is one for 32 bits, by its header, else by its name and release; absent where none says so.
pub(super) fn is_32_bit(facts: &ChainFacts, path: &BootPath) -> Option<bool> {
    let told = facts.images.kernels.get(&path.kernel).and_then(|kernel| kernel.is_64_bit);
    if let Some(is_64_bit) = told {
        return Some(!is_64_bit);
    }
    match file_name(&path.kernel) {
        "kernel.img" | "kernel7.img" | "kernel7l.img" | "kernel8-32.img" => return Some(true),
        "kernel8.img" | "kernel_2712.img" => return Some(false),
        _ => {}
    }
    let release = facts.images.kernels.get(&path.kernel)?.release.as_deref()?;
    let is_64 = release.contains("v8") || release.ends_with("2712") || release.ends_with("arm64");
    let is_32 = release.ends_with("v6") || release.contains("v7") || release.ends_with("armmp");
    if is_64 { Some(false) } else { is_32.then_some(true) }
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a running release can be that of a kernel's file, by the names of Raspberry Pi OS.
pub(super) fn is_release_of(kernel: &str, release: &str) -> bool {
    let flavour = release.trim_end_matches('+');
    let is_plain = flavour.chars().all(|c| c.is_ascii_digit() || c == '.');
    match file_name(kernel) {
        "kernel.img" => flavour.ends_with("v6") || is_plain,
        "kernel7.img" => flavour.ends_with("v7"),
        "kernel7l.img" => flavour.ends_with("v7l"),
        "kernel8.img" => flavour.contains("v8") && !flavour.contains("16k"),
        "kernel_2712.img" => flavour.ends_with("2712") || flavour.contains("16k"),
        _ => false,
    }
}

/// Whether a kernel has pages of 16 KiB. Source: Raspberry Pi documentation, `kernel`: `kernel_2712.img` does.
pub(super) fn has_large_pages(facts: &ChainFacts, path: &BootPath) -> bool {
    let release = facts.images.kernels.get(&path.kernel).and_then(|one| one.release.as_deref());
    let says_so = |release: &str| release.ends_with("2712") || release.contains("16k");
    release.map_or(path.kernel.ends_with("kernel_2712.img"), says_so)
}
