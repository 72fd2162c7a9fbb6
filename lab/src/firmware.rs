//! Plays the firmware of a board: reads the FAT boot partition of a card as the boot ROM's
//! programs would, and says what to start. A card without a usable boot partition does not start.
//!
//! What the settings mean is described at
//! <https://www.raspberrypi.com/documentation/computers/config_txt.html>. Understood here: section
//! filters, `include`, `kernel`, `arm_64bit`, `initramfs`, `auto_initramfs`, `cmdline`, `device_tree`,
//! `os_prefix` and `dtoverlay`; other settings have no effect on an emulated board.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::board::Board;
use crate::tools;

/// Revision code of a Raspberry Pi 3 Model B 1.2, the board that the emulator builds.
const REVISION: &str = "a02082";
const SERIAL_NUMBER: &str = "00000000b0a2d102";

/// What the firmware hands to the processor, as files beside each other.
#[derive(Clone, Debug)]
pub struct Boot {
    /// The kernel image that the firmware chose.
    pub kernel: PathBuf,
    /// The initial RAM filesystem, when the settings name one.
    pub initramfs: Option<PathBuf>,
    /// The device tree with overlays applied and the firmware's own entries added.
    pub device_tree: Option<PathBuf>,
    /// The kernel's command line.
    pub cmdline: String,
}

/// The settings in `config.txt` that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settings {
    kernel: Option<String>,
    /// Whether a 64-bit kernel is wanted. A Raspberry Pi 3 takes one for 32 bits by itself.
    arm_64bit: bool,
    initramfs: Option<String>,
    auto_initramfs: bool,
    cmdline: Option<String>,
    device_tree: Option<String>,
    os_prefix: String,
    overlays: Vec<String>,
}

/// Where the firmware may look, as image files.
#[derive(Clone, Debug)]
pub struct Media<'a> {
    /// The SD card, when there is one.
    pub card: Option<&'a Path>,
    /// USB disks, in the order in which they are tried.
    pub usb: Vec<&'a Path>,
}

/// What the firmware remembers beside the disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The one-shot flag that a reboot with the argument `0 tryboot` sets: `tryboot.txt` is read
    /// instead of `config.txt`.
    pub tryboot: bool,
    /// The firmware is one that knows trials, and says so in the device tree at every start.
    pub knows_trials: bool,
    /// Takes the card for that of a Raspberry Pi 3, whatever the board: its section of `config.txt`, its kernel's name, and
    /// the firmware's programs, which have to be there.
    pub as_pi3: bool,
    /// Starts from a USB disk when no card has a boot partition: the one-time bit of a Raspberry Pi
    /// 3, the order in the EEPROM of later ones.
    pub usb_boot: bool,
}

/// Reads the boot partition and puts what it names into `directory`.
///
/// # Errors
/// When no disk has a boot partition, or a file that the settings name is not in it or empty.
pub fn read(board: Board, media: &Media<'_>, switches: Switches, directory: &Path) -> Result<Boot> {
    let (partition, boot_mode) = boot_partition(media, switches)?;
    let settings_file = if switches.tryboot { "tryboot.txt" } else { "config.txt" };
    let section = if switches.as_pi3 { Board::Pi3.name() } else { board.name() };
    let mut settings = Settings::default();
    match partition.text(settings_file, directory) {
        Ok(config) => {
            let include = |name: &str| partition.text(name, directory).ok();
            parse(&config, section, &include, &mut settings);
        }
        // Everything has a default; a trial is of its file.
        Err(_) if switches.as_pi3 && !switches.tryboot => {}
        Err(error) => return Err(error),
    }
    let usual = match (switches.as_pi3, settings.arm_64bit) {
        (true, true) => Board::Pi3.kernel_file(),
        (true, false) => "kernel7.img",
        (false, _) => board.kernel_file(),
    };
    let kernel = settings.kernel.clone().unwrap_or_else(|| usual.to_owned());
    // A prefix without a kernel behind it does not count.
    if partition.fetch(&format!("{}{kernel}", settings.os_prefix), directory).is_err() {
        settings.os_prefix.clear();
    }
    let fetch = |name: &str| partition.fetch(&format!("{}{name}", settings.os_prefix), directory);
    let initramfs = match (&settings.initramfs, settings.auto_initramfs) {
        (Some(name), _) => Some(fetch(name)),
        (None, true) => Some(fetch(&initramfs_of(&kernel))),
        (None, false) => None,
    };
    let initramfs = match initramfs {
        // The kernel is started without one that is not there.
        Some(Err(_)) if switches.as_pi3 => None,
        initramfs => initramfs.transpose()?,
    };
    let device_tree = match board.device_tree() {
        Some((default, _)) => {
            let name = settings.device_tree.as_deref().unwrap_or(default);
            let base = fetch(name)?;
            let tree = finish_device_tree(base, &settings, &partition, directory)?;
            put_start(&tree, boot_mode, switches)?;
            Some(tree)
        }
        None => None,
    };
    let cmdline_name = settings.cmdline.as_deref().unwrap_or("cmdline.txt");
    let cmdline = partition.text(&format!("{}{cmdline_name}", settings.os_prefix), directory)?;
    Ok(Boot {
        kernel: fetch(&kernel)?,
        initramfs,
        device_tree,
        cmdline: command_line(&cmdline, board),
    })
}

/// The first boot partition that the firmware finds, and the number that it has for this way to start:
/// 1 is the SD card, 4 a USB disk.
fn boot_partition(media: &Media<'_>, switches: Switches) -> Result<(BootPartition, u32)> {
    let mut failures = Vec::new();
    let usb = switches.usb_boot.then_some(&media.usb);
    let usb = usb.into_iter().flatten().map(|disk| (*disk, 4));
    for (disk, boot_mode) in media.card.map(|card| (card, 1)).into_iter().chain(usb) {
        let found = BootPartition::of(disk).and_then(|partition| {
            let programs: &[&str] =
                if switches.as_pi3 { &["bootcode.bin", "start.elf"] } else { &[] };
            programs.iter().try_for_each(|program| partition.has(program))?;
            Ok(partition)
        });
        match found {
            Ok(partition) => return Ok((partition, boot_mode)),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    if failures.is_empty() {
        bail!("the firmware finds nothing to start from: there is no card");
    }
    bail!("{}", failures.join("; "))
}

/// Says in the device tree how the board was started, where later boards' firmware does.
fn put_start(tree: &Path, boot_mode: u32, switches: Switches) -> Result<()> {
    let node = "/chosen/bootloader";
    put(tree, "x", node, "boot-mode", &boot_mode.to_string())?;
    put(tree, "x", node, "partition", "1")?;
    if !(switches.knows_trials || switches.tryboot) {
        return Ok(());
    }
    let is_trial = u32::from(switches.tryboot).to_string();
    put(tree, "x", node, "tryboot", &is_trial)
}

/// The only line of `cmdline.txt` that counts, with the firmware's name of the console replaced.
fn command_line(text: &str, board: Board) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    line.replace("console=serial0", &format!("console={}", board.console()))
}

/// Reads `config.txt`. A section filter holds until the next one; the last value of a setting wins. What is included begins
/// under the filter that holds, and leaves it as it was.
fn parse(
    config: &str,
    board_section: &str,
    include: &dyn Fn(&str) -> Option<String>,
    settings: &mut Settings,
) {
    let mut applies = true;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            applies = section == "all" || section == board_section;
        } else if let Some(name) = line.strip_prefix("include ").filter(|_| applies) {
            if let Some(included) = include(name.trim()) {
                parse(&included, board_section, &|_| None, settings);
            }
        } else if applies && !line.starts_with('#') {
            apply_setting(line, settings);
        }
    }
}

fn apply_setting(line: &str, settings: &mut Settings) {
    // `initramfs` is the one setting that is written without an equals sign.
    if let Some(rest) = line.strip_prefix("initramfs ") {
        settings.initramfs = rest.split_whitespace().next().map(str::to_owned);
        return;
    }
    let Some((name, value)) = line.split_once('=') else {
        return;
    };
    let value = value.trim();
    let text = || (!value.is_empty()).then(|| value.to_owned());
    match name.trim() {
        "kernel" => settings.kernel = text(),
        "arm_64bit" => settings.arm_64bit = value != "0",
        "auto_initramfs" => settings.auto_initramfs = value == "1",
        "cmdline" => settings.cmdline = text(),
        "device_tree" => settings.device_tree = text(),
        "os_prefix" => value.clone_into(&mut settings.os_prefix),
        "dtoverlay" => {
            let name = value.split([',', ':']).next().unwrap_or_default();
            if !name.is_empty() {
                settings.overlays.push(name.to_owned());
            }
        }
        _ => {}
    }
}

/// The initial RAM filesystem that `auto_initramfs` loads with a kernel.
fn initramfs_of(kernel: &str) -> String {
    let name = kernel.strip_suffix(".img").unwrap_or(kernel);
    name.replacen("kernel", "initramfs", 1)
}

/// Applies the overlays that are in the boot partition and adds what the firmware itself writes:
/// the board's revision code and serial number, and a seed without which the kernel's random
/// numbers would keep programs waiting for a minute.
fn finish_device_tree(
    base: PathBuf,
    settings: &Settings,
    partition: &BootPartition,
    directory: &Path,
) -> Result<PathBuf> {
    let finished = directory.join("board.dtb");
    let mut merge = tools::command("fdtoverlay");
    merge.arg("-i").arg(&base).arg("-o").arg(&finished);
    let mut overlays = 0;
    for name in &settings.overlays {
        // The firmware passes over an overlay that it does not find.
        let path = format!("{}overlays/{name}.dtbo", settings.os_prefix);
        if let Ok(overlay) = partition.fetch(&path, directory) {
            merge.arg(overlay);
            overlays += 1;
        }
    }
    if overlays > 0 {
        tools::run(&mut merge)?;
    } else {
        fs::copy(&base, &finished)?;
    }
    put(&finished, "x", "/system", "linux,revision", REVISION)?;
    put(&finished, "s", "/", "serial-number", SERIAL_NUMBER)?;
    put(&finished, "x", "/chosen", "rng-seed", &random_words()?)?;
    Ok(finished)
}

/// Sets a property of a device tree: `format` is `s` for text, `x` for words in hexadecimal digits.
fn put(tree: &Path, format: &str, node: &str, name: &str, value: &str) -> Result<()> {
    tools::run(
        tools::command("fdtput")
            .args(["-p", "-t", format])
            .arg(tree)
            .args([node, name])
            .args(value.split(' ')),
    )?;
    Ok(())
}

/// Eight random words, in hexadecimal digits.
fn random_words() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let words = bytes.chunks_exact(4).map(|word| {
        let word = word.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        format!("{word:08x}")
    });
    Ok(words.collect::<Vec<_>>().join(" "))
}

/// The first partition of a card image.
#[derive(Debug)]
struct BootPartition {
    /// The image and the partition's place in it, in mtools' form.
    address: String,
}

impl BootPartition {
    fn of(card: &Path) -> Result<Self> {
        let sector = first_sector(card)?;
        let start = boot_partition_start(&sector)
            .with_context(|| format!("the firmware finds no boot partition on {card:?}"))?;
        Ok(Self { address: format!("{}@@{start}", card.display()) })
    }

    /// Copies a file out of the partition; it keeps its last name.
    fn fetch(&self, name: &str, directory: &Path) -> Result<PathBuf> {
        let file_name = Path::new(name).file_name().context("a setting names no file")?;
        let target = directory.join(file_name);
        tools::run(
            tools::command("mcopy")
                .args(["-n", "-o", "-i", &self.address])
                .arg(format!("::{name}"))
                .arg(&target),
        )
        .with_context(|| format!("the firmware finds no {name} in the boot partition"))?;
        if fs::metadata(&target)?.len() == 0 {
            bail!("the file {name} in the boot partition is empty");
        }
        Ok(target)
    }

    /// Fails when it does not hold a file.
    fn has(&self, name: &str) -> Result<()> {
        let mut list = tools::command("mdir");
        tools::run(list.args(["-b", "-i", &self.address]).arg(format!("::{name}")))
            .with_context(|| format!("the boot ROM finds no {name} in the boot partition"))?;
        Ok(())
    }

    fn text(&self, name: &str, directory: &Path) -> Result<String> {
        let path = self.fetch(name, directory)?;
        fs::read_to_string(&path).with_context(|| format!("{name} is not text"))
    }
}

/// Where the boot partition and the Linux partition behind it start on a card, in bytes.
///
/// # Errors
/// When one is missing.
pub fn partition_starts(card: &Path) -> Result<(u64, u64)> {
    let sector = first_sector(card)?;
    let boot = boot_partition_start(&sector)?;
    let root = partition_start(&sector, &[0x83]).context("the card has no Linux partition")?;
    Ok((boot, root))
}

fn first_sector(card: &Path) -> Result<[u8; 512]> {
    let mut sector = [0u8; 512];
    File::open(card)
        .and_then(|file| file.read_exact_at(&mut sector, 0))
        .with_context(|| format!("could not read the first sector of {card:?}"))?;
    Ok(sector)
}

/// Where the first FAT partition of an MBR starts, in bytes.
fn boot_partition_start(sector: &[u8; 512]) -> Result<u64> {
    const FAT_TYPES: [u8; 6] = [0x01, 0x04, 0x06, 0x0b, 0x0c, 0x0e];
    if sector[510..] != [0x55, 0xaa] {
        bail!("it has no partition table");
    }
    partition_start(sector, &FAT_TYPES).context("no partition of its table is FAT")
}

/// Where the first partition of one of these types starts, in bytes.
fn partition_start(sector: &[u8; 512], types: &[u8]) -> Option<u64> {
    let mut entries = sector[446..510].chunks_exact(16);
    let entry = entries.find(|entry| types.contains(&entry[4]))?;
    let start = u32::from_le_bytes([entry[8], entry[9], entry[10], entry[11]]);
    Some(u64::from(start) * 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(config: &str, board_section: &str) -> Settings {
        let mut settings = Settings::default();
        let include = |name: &str| (name == "more.txt").then(|| "kernel=more.img\n[pi4]\n".into());
        parse(config, board_section, &include, &mut settings);
        settings
    }

    #[test]
    fn what_is_included_counts_where_it_stands() {
        let kernel = |config: &str| settings_of(config, "pi3").kernel;
        assert_eq!(kernel("include more.txt\n").as_deref(), Some("more.img"));
        assert_eq!(kernel("include more.txt\nkernel=a.img\n").as_deref(), Some("a.img"));
        assert_eq!(kernel("kernel=a.img\n[none]\ninclude more.txt\n").as_deref(), Some("a.img"));
        assert_eq!(kernel("kernel=a.img\ninclude gone.txt\n").as_deref(), Some("a.img"));
    }

    #[test]
    fn settings_of_other_boards_do_not_count_and_the_last_value_wins() {
        let config = "kernel=a.img\n[pi4]\nkernel=b.img\n[pi3]\ncmdline=x.txt\n[all]\n\
                      kernel = c.img\n#kernel=d.img\ndtoverlay=disable-bt,foo=1\ndtoverlay=\n";
        let settings = settings_of(config, "pi3");
        assert_eq!(settings.kernel.as_deref(), Some("c.img"));
        assert_eq!(settings.cmdline.as_deref(), Some("x.txt"));
        assert_eq!(settings.overlays, ["disable-bt"]);
    }

    #[test]
    fn both_forms_of_an_initramfs_are_understood() {
        let settings = settings_of("initramfs initrd.img followkernel\n", "pc");
        assert_eq!(settings.initramfs.as_deref(), Some("initrd.img"));
        assert!(settings_of("auto_initramfs=1", "pi3").auto_initramfs);
        assert_eq!(initramfs_of("kernel8.img"), "initramfs8");
        assert_eq!(initramfs_of("kernel_2712.img"), "initramfs_2712");
    }

    #[test]
    fn usb_disks_are_tried_when_allowed_and_no_card_has_a_boot_partition() {
        let directory = tempfile::tempdir().unwrap();
        let disk = |name: &str, kind: u8| {
            let mut sector = [0u8; 512];
            sector[510..].copy_from_slice(&[0x55, 0xaa]);
            sector[446 + 4] = kind;
            sector[446 + 9] = 8;
            let path = directory.path().join(name);
            fs::write(&path, sector).unwrap();
            path
        };
        let (fat, linux) = (disk("fat", 0x0c), disk("linux", 0x83));
        let mode = |card: Option<&Path>, usb: &Path, usb_boot| {
            let usb = vec![usb];
            let switches = Switches { usb_boot, ..Switches::default() };
            boot_partition(&Media { card, usb }, switches).map(|(_, mode)| mode)
        };
        assert_eq!(mode(Some(&fat), &fat, true).unwrap(), 1);
        assert_eq!(mode(Some(&linux), &fat, true).unwrap(), 4);
        assert_eq!(mode(None, &fat, true).unwrap(), 4);
        assert!(mode(Some(&linux), &fat, false).is_err());
        assert!(mode(None, &fat, false).is_err());
        assert!(mode(None, &linux, true).is_err());
    }

    #[test]
    fn console_is_named_as_the_kernel_names_it() {
        let line = command_line("console=serial0,115200 root=x \nsecond line\n", Board::Pi3);
        assert_eq!(line, "console=ttyAMA0,115200 root=x");
    }

    #[test]
    fn first_fat_partition_is_found_and_nothing_else() {
        let mut sector = [0u8; 512];
        assert!(boot_partition_start(&sector).unwrap_err().to_string().contains("table"));
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        sector[446 + 4] = 0x83;
        assert!(boot_partition_start(&sector).unwrap_err().to_string().contains("FAT"));
        sector[462 + 4] = 0x0c;
        sector[462 + 8..462 + 12].copy_from_slice(&16384u32.to_le_bytes());
        assert_eq!(boot_partition_start(&sector).unwrap(), 8 << 20);
    }
}
