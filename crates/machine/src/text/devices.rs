//! The tree of block devices, each disk with the path of buses that leads to it.

use std::collections::{BTreeSet, HashMap, HashSet};

use rubus_vocabulary::machine::{
    BlockDevice, BlockKind, Hop, HopKind, Machine, Mmc, Mount, SdStatus, SwapArea,
};
use rubus_vocabulary::units::{bit_rate, bytes_iec, bytes_si, rate_si};

use super::gaps::Gaps;
use super::{join, mount_line};
use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, clean, hang, pad_right};

/// Where the details of a device begin, after its branch of the tree.
const LABEL_COLUMNS: usize = 11;

/// The section of the block devices.
pub fn render(machine: &Machine, shows_serials: bool, style: Style) -> String {
    let mut mounts: HashMap<&str, Vec<&Mount>> = HashMap::new();
    for mount in &machine.mounts {
        if let Some(device) = &mount.device {
            mounts.entry(device).or_default().push(mount);
        }
    }
    let mut areas: HashMap<&str, Vec<&SwapArea>> = HashMap::new();
    for area in &machine.swap.areas {
        areas.entry(area.device.text().unwrap_or_default()).or_default().push(area);
    }
    let mut tree = Tree {
        mounts,
        areas,
        above: above(&machine.block_devices),
        shows_serials,
        style,
        text: String::new(),
        drawn: HashSet::new(),
    };
    let roots = machine
        .block_devices
        .iter()
        .filter(|device| device.parent.is_none() && device.below.is_empty());
    for root in roots {
        tree.draw(root, "  ", "  ");
    }
    // Whatever hangs on something that is not listed (or on itself) is drawn as well.
    for device in &machine.block_devices {
        if !tree.drawn.contains(device.name.as_str()) {
            tree.draw(device, "  ", "  ");
        }
    }
    if machine.block_devices.is_empty() {
        tree.text.push_str("  none\n");
    }
    format!("\n{}\n{}", style.paint(Tone::Strong, "Disks, and the way to them"), tree.text)
}

struct Tree<'a> {
    /// What is mounted from each device, and the swap areas on it.
    mounts: HashMap<&'a str, Vec<&'a Mount>>,
    areas: HashMap<&'a str, Vec<&'a SwapArea>>,
    shows_serials: bool,
    style: Style,
    text: String,
    drawn: HashSet<&'a str>,
    /// What stands on each device, in the kernel's order.
    above: HashMap<&'a str, Vec<&'a BlockDevice>>,
}

/// The devices that are partitions of each one, or are made of it.
fn above(devices: &[BlockDevice]) -> HashMap<&str, Vec<&BlockDevice>> {
    let mut above: HashMap<&str, Vec<&BlockDevice>> = HashMap::new();
    for device in devices {
        let below: BTreeSet<&String> = device.parent.iter().chain(&device.below).collect();
        for name in below {
            above.entry(name).or_default().push(device);
        }
    }
    above
}

impl<'a> Tree<'a> {
    /// Draws a device and everything on it. `branch` is drawn before its first line, `below`
    /// before all others.
    fn draw(&mut self, device: &'a BlockDevice, branch: &str, below: &str) {
        if !self.drawn.insert(&device.name) {
            self.line(branch, &device.name, "see above", Tone::Faint);
            return;
        }
        let children = self.above.get(device.name.as_str()).cloned().unwrap_or_default();
        let stem = if children.is_empty() { "  " } else { "│ " };
        let mut gaps = Gaps::default();
        self.line(branch, &device.name, &headline(device, &mut gaps), Tone::Strong);
        for (label, value) in self.details(device, &mut gaps) {
            self.detail(&format!("{below}{stem}"), label, &value, Tone::Plain);
        }
        if let Some(line) = gaps.line() {
            self.detail(&format!("{below}{stem}"), "not known", &line, Tone::Faint);
        }
        for (i, child) in children.iter().enumerate() {
            let (corner, side) =
                if i + 1 == children.len() { ("└─", "  ") } else { ("├─", "│ ") };
            self.draw(child, &format!("{below}{corner}"), &format!("{below}{side}"));
        }
    }

    fn line(&mut self, before: &str, name: &str, text: &str, tone: Tone) {
        let first = format!("{before}{}  ", clean(name));
        for line in hang(&first, &bind_units(&clean(text)), self.style.columns) {
            // Only the words are painted, not the branch before them.
            let (branch, words) = match line.strip_prefix(before) {
                Some(words) => (before, words),
                None => ("", line.as_str()),
            };
            self.text.push_str(branch);
            self.text.push_str(&self.style.paint(tone, words));
            self.text.push('\n');
        }
    }

    fn detail(&mut self, before: &str, label: &str, value: &str, tone: Tone) {
        let columns = self.style.columns.saturating_sub(rubus_draw::text::width(before) + 1);
        let first = pad_right(label, LABEL_COLUMNS);
        for line in hang(&first, &bind_units(&clean(value)), columns) {
            self.text.push_str(&format!("{before} {}\n", self.style.paint(tone, &line)));
        }
    }

    fn details(&self, device: &BlockDevice, gaps: &mut Gaps) -> Vec<(&'static str, String)> {
        let mut rows: Vec<(&'static str, String)> = Vec::new();
        for (i, hop) in device.path.iter().enumerate() {
            let label = if i == 0 { "way" } else { "" };
            rows.push((label, format!("{}{}", if i == 0 { "" } else { "→ " }, hop_line(hop))));
        }
        if let Some(mmc) = &device.mmc {
            rows.extend(card(mmc, gaps));
        }
        if device.kind == BlockKind::Partition {
            rows.push(("names", names(device)));
        } else {
            rows.push(("queue", queue(device, gaps)));
            let serial = gaps.take(&device.serial, "serial", String::clone);
            rows.push(("serial", serial.filter(|_| self.shows_serials).unwrap_or_default()));
        }
        if let Some(file) = &device.backing_file {
            rows.push(("file", file.clone()));
        }
        for mount in self.mounts.get(device.name.as_str()).into_iter().flatten() {
            rows.push(("mounted", mount_line(mount, gaps)));
        }
        for area in self.areas.get(device.name.as_str()).into_iter().flatten() {
            rows.push(("swap", swap_line(area)));
        }
        rows.retain(|(_, value)| !value.is_empty());
        rows
    }
}

/// "63.9 GB SD card SC64G, removable".
pub(super) fn headline(device: &BlockDevice, gaps: &mut Gaps) -> String {
    let size = gaps.take(&device.size_bytes, "size", |b| bytes_si(*b));
    let what = match device.kind {
        // A partition has no model; the disk's is one line up.
        BlockKind::Partition => None,
        _ => {
            let vendor = gaps.take(&device.vendor, "vendor", |v| v.trim().to_string());
            let model = gaps.take(&device.model, "model", |m| m.trim().to_string());
            let name: Vec<String> = [Some(kind(device).to_string()), vendor, model]
                .into_iter()
                .flatten()
                .filter(|part| !part.is_empty())
                .collect();
            Some(name.join(" "))
        }
    };
    let content = gaps.take(&device.content, "content", String::clone);
    let label = device.identity.label.as_ref().map(|label| format!("'{label}'"));
    let content: Vec<String> = [content, label].into_iter().flatten().collect();
    let flag = |fact, name: &str, words: &str, gaps: &mut Gaps| {
        gaps.take(fact, name, |set: &bool| *set).filter(|set| *set).map(|_| words.to_string())
    };
    let read_only = flag(&device.read_only, "whether read-only", "read-only", gaps);
    let (mut removable, mut spins) = (None, None);
    if device.kind == BlockKind::Disk {
        removable = flag(&device.removable, "whether removable", "removable", gaps);
        spins = flag(&device.rotational, "whether it spins", "reports itself as rotational", gaps);
    }
    let content = Some(content.join(" ")).filter(|c| !c.is_empty());
    let rest = join([what, content, read_only, removable, spins]);
    format!("{} {rest}", size.unwrap_or_else(|| "size unknown".into()))
}

/// The kernel's word for what a card or soldered flash is.
fn mmc_type(device: &BlockDevice) -> Option<&str> {
    device.mmc.as_ref().and_then(|mmc| mmc.kind.text())
}

fn kind(device: &BlockDevice) -> &'static str {
    match device.kind {
        BlockKind::Disk => match device.path.last().map(|hop| hop.kind) {
            _ if device.mmc.is_some() => match mmc_type(device) {
                Some("SD") => "SD card",
                Some("MMC") => "eMMC",
                _ => "SD or eMMC",
            },
            Some(HopKind::UsbDevice | HopKind::UsbHub | HopKind::UsbController) => "USB disk",
            Some(HopKind::Nvme) => "NVMe disk",
            Some(HopKind::Virtio) => "virtual disk",
            _ => "disk",
        },
        BlockKind::Partition => "partition",
        BlockKind::Loop => "loop device",
        BlockKind::Md => "RAID array",
        BlockKind::Dm => "device-mapper volume",
        BlockKind::Zram => "compressed memory",
        BlockKind::Nbd => "network disk",
        BlockKind::Ram => "RAM disk",
        BlockKind::Rom => "optical drive",
        BlockKind::MmcArea => "special area of the eMMC",
    }
}

/// "Microchip LAN9514 hub (1-1), USB 2, 480 Mbit/s, about 35.0 MB/s, driver hub". Facts that a hop
/// does not have are left out: most hops have no rate of their own.
fn hop_line(hop: &Hop) -> String {
    if hop.kind == HopKind::Soc {
        return hop.name.clone();
    }
    let id = match &hop.chip {
        Some(chip) => format!("{} ({}, {chip})", hop.name, hop.id),
        None => format!("{} ({})", hop.name, hop.id),
    };
    let line = hop.line_bits_per_second.get().map(|bits| bit_rate(bits as f64));
    // The link's own words usually say the rate already.
    let said = |rate: &String| {
        hop.link.contains(rate.as_str()) || hop.link.contains(&rate.replace(".00", ""))
    };
    let line = line.filter(|rate| !said(rate));
    join([
        Some(id),
        Some(hop.link.clone()).filter(|link| !link.is_empty()),
        line,
        hop.usable_bytes_per_second
            .get()
            .map(|rate| format!("about {} in practice", rate_si(rate))),
        hop.driver.text().map(|driver| format!("driver {driver}")),
    ])
}

fn card(mmc: &Mmc, gaps: &mut Gaps) -> Vec<(&'static str, String)> {
    let connected = [
        gaps.take(&mmc.timing, "bus mode", String::clone),
        gaps.take(&mmc.clock_hz, "bus clock", |hz| format!("{:.0} MHz", *hz as f64 / 1e6)),
        gaps.take(&mmc.width, "bus width", |n| {
            format!("{n} data line{}", if *n == 1 { "" } else { "s" })
        }),
        gaps.take(&mmc.command_queueing, "command queueing", |on| {
            format!("command queueing {}", if *on { "on" } else { "off" })
        }),
    ];
    let promises = gaps.take(&mmc.promises, "the card's promises", promises);
    let maker = [
        gaps.take(&mmc.manufacturer_id, "maker", |id| format!("id {id:#04x}")),
        gaps.take(&mmc.oem_id, "OEM", |oem| format!("OEM {oem}")),
        gaps.take(&mmc.date, "date of manufacture", |date| format!("made {date}")),
    ];
    vec![
        ("card bus", join(connected)),
        ("promises", promises.unwrap_or_default()),
        ("maker", join(maker)),
    ]
}

fn promises(status: &SdStatus) -> String {
    let some = |n: u8, words: String| (n > 0).then_some(words);
    join([
        some(status.speed_class, format!("class {}", status.speed_class)),
        some(status.uhs_grade, format!("U{}", status.uhs_grade)),
        some(status.video_class, format!("V{}", status.video_class)),
        Some(match status.application_class {
            0 => "no application class".to_string(),
            class => format!("A{class}"),
        }),
        (status.allocation_unit_kib > 0).then(|| {
            format!(
                "allocation units of {}",
                bytes_iec(u64::from(status.allocation_unit_kib) << 10)
            )
        }),
        Some(match status.queue_depth {
            0 => "no command queue".to_string(),
            depth => format!("a queue of {depth} commands"),
        }),
        Some(if status.cache { "a write cache" } else { "no write cache" }.to_string()),
    ])
}

fn queue(device: &BlockDevice, gaps: &mut Gaps) -> String {
    let logical = gaps.take(&device.logical_block_bytes, "block size", |b| *b);
    let physical = gaps.take(&device.physical_block_bytes, "physical block size", |b| *b);
    let blocks = match (logical, physical) {
        (Some(l), Some(p)) if l != p => Some(format!("blocks of {l} B in units of {p} B")),
        (Some(bytes), _) | (None, Some(bytes)) => Some(format!("blocks of {bytes} B")),
        (None, None) => None,
    };
    join([
        gaps.take(&device.scheduler, "scheduler", |s| format!("scheduler {s}")),
        gaps.take(&device.queue_requests, "kernel queue", |n| {
            format!("{n} requests in the kernel")
        }),
        gaps.take(&device.device_queue_depth, "device queue", |n| {
            format!("{n} at once in the device")
        }),
        gaps.take(&device.write_cache, "write cache", |c| format!("cache {c}")),
        gaps.take(&device.discard_max_bytes, "TRIM", |bytes| match bytes {
            0 => "no TRIM".to_string(),
            bytes => format!("TRIM up to {}", bytes_iec(*bytes)),
        }),
        blocks,
    ])
}

fn names(device: &BlockDevice) -> String {
    join([
        device.identity.uuid.as_ref().map(|uuid| format!("UUID {uuid}")),
        device.identity.partuuid.as_ref().map(|uuid| format!("PARTUUID {uuid}")),
    ])
}

fn swap_line(area: &SwapArea) -> String {
    let used = format!("{} of {} used", bytes_iec(area.used_bytes), bytes_iec(area.size_bytes));
    let file = (area.kind == "file").then(|| format!("file {}", area.path));
    join([file, Some(used), Some(format!("priority {}", area.priority))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    #[test]
    fn a_card_without_a_type_is_not_called_an_emmc() {
        let mut disk = fixture::pi3_with_usb_ssd().device("mmcblk0").expect("the card").clone();
        let mut of = |of_kernel: Fact<String>| {
            disk.mmc.as_mut().expect("what a card has").kind = of_kernel;
            kind(&disk)
        };
        assert_eq!(of(Fact::known("SD".into(), "test")), "SD card");
        assert_eq!(of(Fact::known("MMC".into(), "test")), "eMMC");
        assert_eq!(of(Fact::unknown("no such file", "test")), "SD or eMMC");
    }

    /// Two disks in an array that carries a volume; the array is drawn once.
    #[test]
    fn an_array_is_drawn_once_and_named_twice() {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.mounts.clear();
        machine.block_devices.retain(|device| device.name == "sda" || device.name == "sda1");
        for device in &mut machine.block_devices {
            device.path.clear();
        }
        let mut second = machine.block_devices[0].clone();
        second.name = "sdb".into();
        let mut array = second.clone();
        array.name = "md0".into();
        array.kind = BlockKind::Md;
        array.below = vec!["sda1".into(), "sdb".into()];
        machine.block_devices.extend([second, array]);
        let text = render(&machine, true, Style::PLAIN);
        let branches: Vec<&str> =
            text.lines().filter(|line| line.contains("GB") || line.contains("see above")).collect();
        insta::assert_snapshot!(branches.join("\n"), @r"
        sda  32.0 GB disk JMicron Generic SSD, partition table (gpt)
        └─sda1  32.0 GB btrfs 'data'
          └─md0  32.0 GB RAID array JMicron Generic SSD, partition table (gpt)
        sdb  32.0 GB disk JMicron Generic SSD, partition table (gpt)
        └─md0  see above
        ");
    }

    #[test]
    fn a_device_that_stands_on_itself_does_not_hang_the_drawing() {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.block_devices.truncate(1);
        machine.block_devices[0].below = vec!["mmcblk0".into()];
        assert!(render(&machine, true, Style::PLAIN).contains("mmcblk0  see above"));
    }
}
