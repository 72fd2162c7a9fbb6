//! SD cards and eMMCs: what the card says of itself, and how its host talks to it.
//!
//! The speed mode is in debugfs, which only root may read. The kernel also logs it when it finds
//! the card, and the journal shows that to the users that Raspberry Pi OS and Debian put into the
//! group `adm`.

use std::path::Path;

use crate::ceiling::{mmc as ceiling, mmc_name};
use crate::sd::{self, Ios, Timing};
use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Hop, HopKind, Mmc};

use crate::probe::hop::usable;
use crate::probe::read::{filled_text, flag, number, text};
use crate::probe::sysfs::{base_name, driver};

/// Request tags of the kernel's MMC queue when the card takes one command at a time
/// (`MMC_QUEUE_DEPTH`, drivers/mmc/core/queue.c). With command queueing it is the card's or host's
/// own depth, 32 at most.
const TAGS_WITHOUT_QUEUEING: u32 = 64;

/// Whether a name in sysfs is an MMC host ("mmc0").
pub(crate) fn is_host(name: &str) -> bool {
    name.strip_prefix("mmc")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What the card of a block device says of itself. `host` is the kernel's name of its host.
pub(crate) fn card(files: &dyn Files, device: &str, host: Option<&str>) -> Mmc {
    let directory = format!("/sys/block/{device}/device");
    let file = |leaf: &str| format!("{directory}/{leaf}");
    // A card that is a network card as well is an SD card as a disk.
    let kind = filled_text(files, &file("type"));
    let kind = kind.map(|kind| if kind == "SDcombo" { "SD".to_string() } else { kind });
    let is_emmc = kind.text() == Some("MMC");
    let state = match host {
        Some(host) => HostState::read(files, host),
        None => HostState::unknown("the card's host is not known", &directory),
    };
    Mmc {
        manufacturer_id: filled_text(files, &file("manfid")).and_then(hexadecimal),
        oem_id: filled_text(files, &file("oemid")).map(|id| sd::oem_text(&id)),
        date: filled_text(files, &file("date")),
        timing: state.timing.map(|timing| timing.name().to_string()),
        clock_hz: state.clock_hz,
        width: state.width,
        promises: if is_emmc {
            Fact::unknown("an eMMC has no SD Status register", file("ssr"))
        } else {
            filled_text(files, &file("ssr")).and_then(|hex| sd::decode_ssr(&hex))
        },
        command_queueing: if is_emmc {
            flag(files, &file("cmdq_en"))
        } else {
            tags(files, device).map(|tags| tags < TAGS_WITHOUT_QUEUEING)
        },
        kind,
    }
}

/// Commands that the card takes at once: 1 without command queueing.
pub(crate) fn queue_depth(files: &dyn Files, device: &str) -> Fact<u32> {
    tags(files, device).map(|tags| if tags < TAGS_WITHOUT_QUEUEING { tags } else { 1 })
}

fn tags(files: &dyn Files, device: &str) -> Fact<u32> {
    number(files, &format!("/sys/block/{device}/mq/0/nr_tags"))
}

fn hexadecimal(text: String) -> Result<u32, String> {
    u32::from_str_radix(text.trim_start_matches("0x"), 16)
        .map_err(|_| format!("it says '{text}', not a hexadecimal number"))
}

/// The hop for an MMC host by its directory (".../mmc_host/mmc0").
pub(crate) fn host_hop(files: &dyn Files, directory: &str) -> Hop {
    let id = base_name(directory).to_string();
    // .../fe340000.mmc/mmc_host/mmc0: the controller is two levels up.
    let controller = directory.rsplitn(3, '/').nth(2).unwrap_or_default().to_string();
    let state = HostState::read(files, &id);
    let best = best_of_controller(files, &controller);
    let kind = card_kind(files, directory);
    let line = state.line();
    Hop {
        kind: HopKind::MmcHost,
        name: format!("{} host controller", kind.unwrap_or("SD/MMC")),
        chip: None,
        link: link_words(kind.unwrap_or("SD/MMC"), &state, best.get()),
        max_line_bits_per_second: best.clone().map(|best| line_at_best(best, kind)),
        driver: driver(files, &controller),
        usable_bytes_per_second: match (&line, best) {
            (Fact::Known { .. }, _) => usable(&line, |bits| Some(ceiling(bits))),
            // What the slot can do at best is an upper bound, and says so.
            (Fact::Unknown { .. }, Fact::Known { value, source }) => Fact::known(
                ceiling(line_at_best(value, kind)).bytes_per_second,
                format!("at most: the controller's best mode, {} ({source})", value.0.name()),
            ),
            (Fact::Unknown { unknown, source }, Fact::Unknown { .. }) => {
                Fact::unknown(unknown, source)
            }
        },
        line_bits_per_second: line,
        id,
        speaks_bulk_only: None,
    }
}

/// "SD, UHS-I DDR50, 50 MHz × 4 lines"; where the mode is unknown, what it is at best.
fn link_words(kind: &str, state: &HostState, best: Option<(Timing, u64)>) -> String {
    let timing = state.timing.get();
    let words = mmc_name(kind, timing, state.clock_hz.get(), state.width.get());
    match best {
        Some((best, _)) if timing.is_none() => format!("{words} ({} at best)", best.name()),
        _ => words,
    }
}

/// A controller's line rate at its best. SD has 4 data lines, eMMC up to 8.
fn line_at_best((timing, clock_hz): (Timing, u64), kind: Option<&str>) -> u64 {
    let width = if kind == Some("eMMC") { 8 } else { 4 };
    timing.line_bits_per_second(clock_hz, width)
}

/// "SD", "eMMC" or "SDIO", from the first card on the host.
fn card_kind(files: &dyn Files, host_directory: &str) -> Option<&'static str> {
    let host = base_name(host_directory);
    let card = crate::probe::sysfs::names(files, host_directory)
        .into_iter()
        .find(|name| name.starts_with(&format!("{host}:")))?;
    match text(files, &format!("{host_directory}/{card}/type")).text()? {
        "SD" | "SDcombo" => Some("SD"),
        "MMC" => Some("eMMC"),
        "SDIO" => Some("SDIO"),
        _ => None,
    }
}

/// The best mode of the slot, by what the device tree calls the controller.
fn best_of_controller(files: &dyn Files, controller: &str) -> Fact<(Timing, u64)> {
    let path = format!("{controller}/of_node/compatible");
    text(files, &path).and_then(|compatible| {
        compatible
            .split('\0')
            .find_map(Timing::best_of_host)
            .ok_or_else(|| "the best mode of this controller is not known".to_string())
    })
}

/// Why a card's link cannot be told.
const POWERED_OFF: &str = "the card is powered down at the moment, as nothing uses it";

/// How the host talks to the card now.
struct HostState {
    timing: Fact<Timing>,
    clock_hz: Fact<u64>,
    width: Fact<u32>,
}

impl HostState {
    fn read(files: &dyn Files, host: &str) -> HostState {
        let path = format!("/sys/kernel/debug/{host}/ios");
        let why = match files.text(Path::new(&path)) {
            Ok(text) if sd::is_powered_off(&text) => POWERED_OFF.to_string(),
            Ok(text) => return Self::from_ios(sd::parse_ios(&text), &path),
            Err(error) => error.to_string(),
        };
        let mut state = Self::unknown(&why, &path);
        if let Some(timing) = timing_from_journal(files, host) {
            state.timing = timing;
        }
        state
    }

    fn from_ios(ios: Ios, path: &str) -> HostState {
        fn fact<T>(value: Option<T>, path: &str) -> Fact<T> {
            match value {
                Some(value) => Fact::known(value, path),
                None => Fact::unknown("the file does not say it in known words", path),
            }
        }
        HostState {
            timing: fact(ios.timing, path),
            clock_hz: fact(ios.clock_hz, path),
            width: fact(ios.width, path),
        }
    }

    fn unknown(why: &str, source: &str) -> HostState {
        HostState {
            timing: Fact::unknown(why, source),
            clock_hz: Fact::unknown(why, source),
            width: Fact::unknown(why, source),
        }
    }

    /// Clock × lines where they are known, else the mode's highest rate over four lines: what the
    /// log tells of an eMMC leaves its width open.
    fn line(&self) -> Fact<u64> {
        let timing = match &self.timing {
            Fact::Known { value, .. } => *value,
            Fact::Unknown { unknown, source } => return Fact::unknown(unknown, source),
        };
        match (self.clock_hz.get(), self.width.get()) {
            (Some(clock_hz), Some(width)) => {
                Fact::known(timing.line_bits_per_second(clock_hz, width), self.clock_hz.source())
            }
            _ if matches!(timing, Timing::Hs200 | Timing::Hs400 | Timing::MmcDdr52) => {
                Fact::unknown("the number of data lines is not known", self.width.source())
            }
            _ => Fact::known(
                timing.line_bits_per_second(timing.max_clock_hz(), 4),
                format!("highest rate of {} ({})", timing.name(), self.timing.source()),
            ),
        }
    }
}

/// The mode that the kernel logged when it found the card. The last message counts: a card may
/// have been changed.
fn timing_from_journal(files: &dyn Files, host: &str) -> Option<Fact<Timing>> {
    let arguments = [
        "--dmesg",
        "--boot",
        "--quiet",
        "--no-pager",
        "--output=cat",
        "--grep=mmc[0-9]+: new .* card",
    ];
    let log = files.ask("journalctl", &arguments).ok()?;
    let timing = log.lines().rev().find_map(|line| Timing::from_kernel_log(line, host))?;
    Some(Fact::known(timing, "the kernel's log (journalctl --dmesg)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    const HOST: &str = "/sys/devices/platform/emmc2bus/fe340000.mmc/mmc_host/mmc0";
    const JOURNAL: [&str; 7] = [
        "journalctl",
        "--dmesg",
        "--boot",
        "--quiet",
        "--no-pager",
        "--output=cat",
        "--grep=mmc[0-9]+: new .* card",
    ];

    fn pi4() -> FakeFiles {
        FakeFiles::new()
            .file(format!("{HOST}/mmc0:aaaa/type"), "SD\n")
            .file(
                "/sys/devices/platform/emmc2bus/fe340000.mmc/of_node/compatible",
                "brcm,bcm2711-emmc2\0",
            )
            .link(
                "/sys/devices/platform/emmc2bus/fe340000.mmc/driver",
                "/sys/bus/platform/drivers/sdhci-iproc",
            )
            .dir("/sys/bus/platform/drivers/sdhci-iproc")
    }

    #[test]
    fn root_reads_the_mode_from_debugfs() {
        let files = pi4().file(
            "/sys/kernel/debug/mmc0/ios",
            "clock:\t\t50000000 Hz\nbus width:\t2 (4 bits)\ntiming spec:\t7 (sd uhs DDR50)\n",
        );
        let hop = host_hop(&files, HOST);
        assert_eq!(hop.link, "SD, UHS-I DDR50, 50 MHz × 4 lines");
        assert_eq!(hop.line_bits_per_second.get(), Some(400_000_000));
        assert_eq!(hop.max_line_bits_per_second.get(), Some(400_000_000));
        assert_eq!(hop.usable_bytes_per_second.get(), Some(45e6));
        assert_eq!(hop.driver.text(), Some("sdhci-iproc"));
    }

    #[test]
    fn an_ordinary_user_reads_it_from_the_journal() {
        let files = pi4().denied("/sys/kernel/debug").program(
            &JOURNAL,
            "mmc1: new high speed SDIO card at address 0001\n\
             mmc0: new high speed SDHC card at address 0001\n\
             mmc0: new ultra high speed DDR50 SDHC card at address aaaa\n",
        );
        let hop = host_hop(&files, HOST);
        assert_eq!(hop.link, "SD, UHS-I DDR50");
        assert_eq!(hop.usable_bytes_per_second.get(), Some(45e6));
        assert_eq!(
            hop.line_bits_per_second.source(),
            "highest rate of UHS-I DDR50 (the kernel's log (journalctl --dmesg))"
        );
    }

    #[test]
    fn without_either_the_slot_is_an_upper_bound_and_the_mode_unknown() {
        let files = pi4().denied("/sys/kernel/debug/mmc0/ios");
        let hop = host_hop(&files, HOST);
        assert_eq!(hop.link, "SD, speed mode unknown (UHS-I DDR50 at best)");
        assert_eq!(hop.line_bits_per_second.reason(), Some("permission denied; root may read it"));
        assert_eq!(hop.usable_bytes_per_second.get(), Some(45e6));
        assert!(
            hop.usable_bytes_per_second
                .source()
                .starts_with("at most: the controller's best mode, UHS-I DDR50"),
        );
        let nothing = host_hop(&FakeFiles::new(), HOST);
        assert_eq!(nothing.usable_bytes_per_second.get(), None);
    }

    #[test]
    fn a_card_that_is_a_network_card_as_well_is_an_sd_card() {
        let of = |kind: &str| FakeFiles::new().file("/sys/block/mmcblk0/device/type", kind);
        assert_eq!(card(&of("SDcombo\n"), "mmcblk0", None).kind.text(), Some("SD"));
        assert_eq!(card(&of("MMC\n"), "mmcblk0", None).kind.text(), Some("MMC"));
    }

    #[test]
    fn a_card_that_is_powered_down_does_not_tell_its_link() {
        let of = |power: &str| {
            let ios = format!(
                "clock:\t\t0 Hz\npower mode:\t{power}\nbus width:\t0 (1 bits)\ntiming spec:\t0 (legacy)\n"
            );
            let files = FakeFiles::new().file("/sys/kernel/debug/mmc0/ios", &ios);
            card(&files, "mmcblk0", Some("mmc0"))
        };
        let off = of("0 (off)");
        assert_eq!((off.width.get(), off.clock_hz.get()), (None, None));
        assert_eq!(off.timing.reason(), Some(POWERED_OFF));
        assert_eq!(of("2 (on)").width.get(), Some(1));
    }

    #[test]
    fn request_tags_tell_whether_the_card_is_queued() {
        let with_tags = |tags: &str| {
            FakeFiles::new()
                .file("/sys/block/mmcblk0/device/type", "SD\n")
                .file("/sys/block/mmcblk0/mq/0/nr_tags", tags)
        };
        let queued = with_tags("32\n");
        assert_eq!(card(&queued, "mmcblk0", None).command_queueing.get(), Some(true));
        assert_eq!(queue_depth(&queued, "mmcblk0").get(), Some(32));
        let single = with_tags("64\n");
        assert_eq!(card(&single, "mmcblk0", None).command_queueing.get(), Some(false));
        assert_eq!(queue_depth(&single, "mmcblk0").get(), Some(1));
    }
}
