//! A machine in a few lines: for each part one, more where it does not fit.

use std::collections::{BTreeSet, HashMap};

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, clean, hang, pad_right, shorten};
use rubus_vocabulary::machine::device_index::DeviceIndex;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};
use rubus_vocabulary::units::rate_si;

use super::gaps::Gaps;
use super::{Section, board, devices, memory, network, power, processor, swap, system};

/// Where values begin.
const LABEL_COLUMNS: usize = 14;
/// Maximum number of disks with lines of their own.
const MAX_DISKS: usize = 8;
/// Maximum number of lines of a value.
const MAX_LINES: usize = 3;
/// Columns that a line may leave free, since the next word does not fit.
const LONG_WORD: usize = 8;
/// Maximum number of rows of a section: network links, swap areas or clocks.
const MAX_ROWS: usize = 3;

/// The lines, with an empty one and a title before them.
pub(super) fn render(machine: &Machine, shows_serials: bool, style: Style) -> String {
    let mut lines = vec![String::new(), style.paint(Tone::Strong, "Machine")];
    let parts: [(Section, &str, &[&str]); 7] = [
        (board(machine, shows_serials), "board", &["serial"]),
        (system(machine), "system", &["distribution", "kernel", "container"]),
        (processor(machine), "processor", &["cores", "clock"]),
        (power(machine), "power", &["temperature", "since boot"]),
        (memory(machine), "memory", &["memory"]),
        (swap(machine), "swap", &["area", "zswap"]),
        (network(machine), "network", &[]),
    ];
    for (section, name, wanted) in parts {
        lines.extend(part(&section, name, wanted, style.columns));
    }
    lines.extend(disks(machine, shows_serials, style.columns));
    lines.join("\n") + "\n"
}

/// The wanted rows of a section, or all where none is named.
fn part(section: &Section, name: &str, wanted: &[&str], columns: usize) -> Vec<String> {
    let rows = section.rows.iter();
    let rows = rows.filter(|(label, _)| wanted.is_empty() || wanted.contains(&label.as_str()));
    let values = rows.take(MAX_ROWS).enumerate().flat_map(|(at, (label, value))| {
        let name = if at == 0 { name } else { "" };
        // A link has its name in the label, and zswap is no area.
        let is_named = wanted.is_empty() || label == "zswap";
        let value = if is_named { format!("{label} {value}") } else { value.clone() };
        lines(name, &value, columns)
    });
    values.collect()
}

/// The name and its value, in a few lines at most.
fn lines(name: &str, value: &str, columns: usize) -> Vec<String> {
    let first = format!("  {}", pad_right(name, LABEL_COLUMNS));
    // What the first line leaves free at its end is less than a long word.
    let room = MAX_LINES * (columns - LABEL_COLUMNS - 2 - LONG_WORD);
    hang(&first, &shorten(&bind_units(&clean(value)), room), columns)
}

fn disks(machine: &Machine, shows_serials: bool, columns: usize) -> Vec<String> {
    let is_disk = |device: &&BlockDevice| {
        let is_virtual = matches!(device.kind, BlockKind::Loop | BlockKind::Ram | BlockKind::Zram);
        device.parent.is_none() && !is_virtual
    };
    let disks: Vec<&BlockDevice> = machine.block_devices.iter().filter(is_disk).collect();
    let shown = disks.iter().take(MAX_DISKS).enumerate();
    let points = points_by_disk(machine);
    let mut all: Vec<String> = shown
        .flat_map(|(at, disk)| {
            let words = of_disk(disk, points.get(disk.name.as_str()), shows_serials);
            lines(if at == 0 { "disks" } else { "" }, &words, columns)
        })
        .collect();
    if disks.is_empty() {
        all.extend(lines("disks", "none", columns));
    }
    if let Some(more) = disks.len().checked_sub(MAX_DISKS).filter(|more| *more > 0) {
        all.extend(lines("", &format!("and {more} more"), columns));
    }
    all
}

/// "sda: 240 GB USB disk CT240BX500SSD1, at most 440 MB/s, /srv/data".
fn of_disk(disk: &BlockDevice, points: Option<&BTreeSet<&str>>, shows_serials: bool) -> String {
    let mut words = format!("{}: {}", disk.name, devices::headline(disk, &mut Gaps::default()));
    let rates = disk.path.iter().filter_map(|hop| hop.usable_bytes_per_second.get());
    if let Some(rate) = rates.reduce(f64::min) {
        words.push_str(&format!(", at most {}", rate_si(rate)));
    }
    if let Some(serial) = disk.serial.text().filter(|_| shows_serials) {
        words.push_str(&format!(", serial number {serial}"));
    }
    if let Some(points) = points {
        let points: Vec<&str> = points.iter().copied().collect();
        words.push_str(&format!(", mounted on {}", points.join(", ")));
    }
    words
}

/// Where what lies on each disk is mounted.
fn points_by_disk(machine: &Machine) -> HashMap<&str, BTreeSet<&str>> {
    let index = DeviceIndex::of(machine);
    let mut points: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    // An image that is mounted is a file of its disk, which is mounted elsewhere.
    let is_image =
        |device: &str| index.device(device).is_some_and(|device| device.kind == BlockKind::Loop);
    for mount in &machine.mounts {
        let devices = mount.device.as_deref().filter(|device| !is_image(device)).into_iter();
        for disk in devices.flat_map(|device| index.disks_below(device)) {
            points.entry(&disk.name).or_default().insert(&mount.point);
        }
    }
    points
}
