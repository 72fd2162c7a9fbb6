//! The disks of a board, as files: the SD card with Raspberry Pi OS's layout (MBR; a FAT32 boot
//! partition with firmware settings, kernel, initial RAM filesystem and device tree; an ext4 root)
//! and a USB disk as it is sold (one FAT32 partition). No loop device or mount is needed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::board::Board;
use crate::cache::{Cache, Key};
use crate::{initramfs, tools, tree};

const SECTOR_BYTES: u64 = 512;
const MIB: u64 = 1 << 20;

/// Size of the SD card. The emulated card wants a power of two.
pub const SD_BYTES: u64 = 2048 * MIB;
/// Size of the USB disk.
pub const USB_BYTES: u64 = 4096 * MIB;

/// Where Raspberry Pi OS starts its boot partition, and its size.
const BOOT_START: u64 = 8 * MIB;
const BOOT_BYTES: u64 = 512 * MIB;
const ROOT_START: u64 = BOOT_START + BOOT_BYTES;

const USB_START: u64 = MIB;

/// Raised when the making of disks changes in a way that no ingredient shows.
const FORMAT: &str = "disks 2";

/// The disks of a board.
#[derive(Clone, Debug)]
pub struct Disks {
    /// The SD card.
    pub sd: PathBuf,
    /// The USB disk.
    pub usb: PathBuf,
}

/// The disks from the cache; builds them first when they are not there.
///
/// # Errors
/// What the building tools report. See [`crate::tools::BUILD`] for those it needs.
pub fn disks(cache: &Cache, board: Board) -> Result<Disks> {
    let directory = cache.entry(board.name(), &key(board), |directory| {
        build(board, directory).with_context(|| format!("could not build the {}", board.title()))
    })?;
    Ok(Disks { sd: directory.join("sd.img"), usb: directory.join("usb.img") })
}

/// Whether the disks are in the cache.
#[must_use]
pub fn built(cache: &Cache, board: Board) -> bool {
    cache.lookup(board.name(), &key(board)).is_some()
}

/// Removes the disks from the cache, so that the next use takes Debian's newest packages.
///
/// # Errors
/// When they cannot be removed.
pub fn forget(cache: &Cache, board: Board) -> Result<()> {
    cache.forget(board.name(), &key(board))
}

/// Everything that the disks are made from, except the packages' versions.
fn key(board: Board) -> Key {
    let mut ingredients = vec![
        FORMAT.to_owned(),
        board.name().to_owned(),
        board.config_txt().to_owned(),
        cmdline(board),
        initramfs::INIT.to_owned(),
    ];
    ingredients.extend(tree::ingredients(board));
    ingredients.extend(board.boot_modules().iter().map(|&name| name.to_owned()));
    ingredients.extend(board.overlays().iter().map(|(_, source)| (*source).to_owned()));
    Key::of(ingredients.iter().map(String::as_str))
}

/// `cmdline.txt`, as Raspberry Pi OS writes it. The firmware replaces `serial0`.
fn cmdline(board: Board) -> String {
    let id = board.disk_id();
    format!(
        "console=serial0,115200 root=PARTUUID={id:08x}-02 rootfstype=ext4 fsck.repair=yes rootwait\n"
    )
}

fn build(board: Board, directory: &Path) -> Result<()> {
    let absent = tools::missing(tools::BUILD);
    if !absent.is_empty() {
        bail!("{}", tools::remedy(&absent));
    }
    let root = directory.join("root");
    tree::make(board, &root)?;
    let boot = directory.join("boot");
    boot_files(board, &root, &boot)?;
    make_sd(board, &boot, &root, &directory.join("sd.img"))?;
    make_usb(&directory.join("usb.img"))?;
    fs::remove_dir_all(&root)?;
    fs::remove_dir_all(&boot)?;
    Ok(())
}

/// Gathers what goes into the boot partition.
fn boot_files(board: Board, root: &Path, boot: &Path) -> Result<()> {
    let release = tree::kernel_release(root)?;
    fs::create_dir_all(boot)?;
    fs::copy(root.join(format!("boot/vmlinuz-{release}")), boot.join(board.kernel_file()))
        .context("could not copy the kernel")?;
    fs::copy(root.join(format!("boot/initrd.img-{release}")), boot.join(board.initramfs_file()))
        .context("could not copy the initial RAM filesystem")?;
    fs::write(boot.join("config.txt"), board.config_txt())?;
    fs::write(boot.join("cmdline.txt"), cmdline(board))?;
    if let Some((name, source)) = board.device_tree() {
        let source = root.join(format!("usr/lib/linux-image-{release}")).join(source);
        fs::copy(&source, boot.join(name)).with_context(|| format!("could not copy {source:?}"))?;
    }
    for (name, source) in board.overlays() {
        let overlays = boot.join("overlays");
        fs::create_dir_all(&overlays)?;
        let text = overlays.join(format!("{name}.dts"));
        fs::write(&text, source)?;
        tools::run(
            tools::command("dtc")
                .args(["-q", "-@", "-I", "dts", "-O", "dtb", "-o"])
                .arg(overlays.join(format!("{name}.dtbo")))
                .arg(&text),
        )?;
        fs::remove_file(&text)?;
    }
    Ok(())
}

fn make_sd(board: Board, boot: &Path, root: &Path, image: &Path) -> Result<()> {
    blank(image, SD_BYTES)?;
    let table = format!(
        "label: dos\nlabel-id: 0x{:08x}\nstart={}, size={}, type=c\nstart={}, type=83\n",
        board.disk_id(),
        BOOT_START / SECTOR_BYTES,
        BOOT_BYTES / SECTOR_BYTES,
        ROOT_START / SECTOR_BYTES,
    );
    partition(image, &table)?;
    make_fat(image, "bootfs", BOOT_START, BOOT_BYTES)?;
    copy_into_fat(boot, image, BOOT_START)?;
    // Inode tables are initialised now: done later by the kernel, it would disturb measurements.
    let extended = format!("offset={ROOT_START},lazy_itable_init=0,lazy_journal_init=0");
    tools::run(
        tools::command("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-L", "rootfs", "-E", &extended, "-d"])
            .arg(root)
            .arg(image)
            .arg(format!("{}k", (SD_BYTES - ROOT_START) / 1024)),
    )?;
    Ok(())
}

fn make_usb(image: &Path) -> Result<()> {
    blank(image, USB_BYTES)?;
    let start = USB_START / SECTOR_BYTES;
    partition(image, &format!("label: dos\nlabel-id: 0x0a5b0d15\nstart={start}, type=c\n"))?;
    make_fat(image, "USB-DISK", USB_START, USB_BYTES - USB_START)
}

fn blank(image: &Path, bytes: u64) -> Result<()> {
    let file = File::create(image).with_context(|| format!("could not make {image:?}"))?;
    file.set_len(bytes).with_context(|| format!("could not make {image:?} {bytes} bytes long"))
}

fn partition(image: &Path, table: &str) -> Result<()> {
    let mut sfdisk = tools::command("sfdisk")
        .arg("-q")
        .arg(image)
        .stdin(Stdio::piped())
        .spawn()
        .context("could not start sfdisk")?;
    if let Some(mut input) = sfdisk.stdin.take() {
        input.write_all(table.as_bytes())?;
    }
    let status = sfdisk.wait()?;
    if !status.success() {
        bail!("sfdisk on {image:?} failed ({status})");
    }
    Ok(())
}

fn make_fat(image: &Path, label: &str, start: u64, bytes: u64) -> Result<()> {
    tools::run(
        tools::command("mkfs.vfat")
            .args(["-F", "32", "-n", label, "-S", "512", "--offset"])
            .arg((start / SECTOR_BYTES).to_string())
            .arg(image)
            .arg((bytes / 1024).to_string()),
    )?;
    Ok(())
}

/// Copies the files and folders in `from` to the top of a FAT filesystem inside an image.
fn copy_into_fat(from: &Path, image: &Path, start: u64) -> Result<()> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    names.sort();
    tools::run(
        tools::command("mcopy")
            .args(["-s", "-Q", "-i"])
            .arg(format!("{}@@{start}", image.display()))
            .args(&names)
            .arg("::"),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_is_a_power_of_two_and_the_root_starts_after_the_boot_partition() {
        assert!(SD_BYTES.is_power_of_two());
        assert_eq!(ROOT_START, 520 * MIB);
    }

    #[test]
    fn cmdline_names_the_root_by_partition() {
        let line = cmdline(Board::Pi3);
        assert!(line.contains("root=PARTUUID=3b0a02d1-02 rootfstype=ext4"), "{line}");
    }

    #[test]
    fn boards_have_different_keys() {
        assert_ne!(key(Board::Pi3), key(Board::Pc));
    }
}
