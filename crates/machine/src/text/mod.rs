//! The text of a survey: what the rules found, then the machine in a few lines or with everything that is known about it, in an
//! order in which one would ask, and shortly why the rest is not known.

mod devices;
mod gaps;
mod short;

use crate::rules;
use rubus_vocabulary::machine::{
    Clock, Hop, HopKind, Link, Machine, Mount, Origin, Pressure, Setting,
};
use rubus_vocabulary::rule_finding::RuleFinding;
use rubus_vocabulary::units::{bit_rate, bytes_iec, bytes_si, percent, rate_si};

use crate::rules_text::{Shown, lines as found_lines};
use gaps::Gaps;
use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, clean, hang, pad_right};
use rubus_draw::words;

/// Where the values of a section begin.
const LABEL_COLUMNS: usize = 14;

/// How much of a machine is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Everything that is known, and where findings come from; else the machine in a few lines.
    pub everything: bool,
    /// Serial numbers, too: they tell this machine from all others.
    pub serials: bool,
}

/// The text of a survey, ending in a line feed.
pub fn render(machine: &Machine, extent: Extent, style: Style) -> String {
    render_with(machine, &[], "", extent, style)
}

/// The text of a survey with findings from elsewhere beside those of the rules, and with what belongs between them and the machine.
pub fn render_with(
    machine: &Machine,
    beside: &[RuleFinding],
    between: &str,
    extent: Extent,
    style: Style,
) -> String {
    let mut text = title(machine, style);
    text.push_str(&findings(machine, beside, extent, style));
    text.push_str(between);
    if extent.everything {
        text.push_str(&everything(machine, extent.serials, style));
    } else {
        text.push_str(&short::render(machine, extent.serials, style));
    }
    let mut hints = vec![if extent.everything {
        "Where each fact was read: rubus survey --json"
    } else {
        "Everything that was read, and what could not be: rubus survey --verbose"
    }];
    if !extent.serials {
        hints.push("With serial numbers, identifiers and all names: rubus survey --serials");
    }
    text.push('\n');
    for hint in hints {
        for line in hang("", hint, style.columns) {
            text.push_str(&style.paint(Tone::Faint, &line));
            text.push('\n');
        }
    }
    text
}

fn findings(machine: &Machine, beside: &[RuleFinding], extent: Extent, style: Style) -> String {
    let all = rules::with(rules::of_machine(machine), beside);
    let shown = if extent.everything { Shown::WithSources } else { Shown::All };
    let mut found = found_lines(&all.iter().collect::<Vec<_>>(), shown, style.columns, style);
    if found.is_empty() {
        found.push("Findings: none".into());
    }
    found.splice(1..1, next_step::lines(&rules::next(&all, machine), style));
    format!("\n{}\n", found.join("\n"))
}

/// Everything that is known about a machine.
fn everything(machine: &Machine, shows_serials: bool, style: Style) -> String {
    let mut text = String::new();
    let sections = [
        board(machine, shows_serials),
        system(machine),
        processor(machine),
        power(machine),
        memory(machine),
        swap(machine),
    ];
    for section in sections {
        text.push_str(&section.render(style));
    }
    text.push_str(&devices::render(machine, shows_serials, style));
    for section in [shared_buses(machine), mounts(machine), network(machine), kernel(machine)] {
        text.push_str(&section.render(style));
    }
    text
}

/// A titled list of labelled values. A value may have several lines' worth of text; a label that is
/// repeated is left out.
struct Section {
    title: &'static str,
    rows: Vec<(String, String)>,
    gaps: Gaps,
}

impl Section {
    fn new(title: &'static str) -> Section {
        Section { title, rows: Vec::new(), gaps: Gaps::default() }
    }

    fn row(&mut self, label: &str, value: impl Into<String>) {
        self.rows.push((label.to_string(), value.into()));
    }

    fn row_if(&mut self, label: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.row(label, value);
        }
    }

    pub fn render(mut self, style: Style) -> String {
        if let Some(line) = self.gaps.line() {
            self.row("not known", line);
        }
        let mut text = format!("\n{}\n", style.paint(Tone::Strong, self.title));
        if self.rows.is_empty() {
            text.push_str("  none\n");
        }
        let mut last_label = "";
        for (label, value) in &self.rows {
            let shown = if label == last_label { "" } else { label.as_str() };
            last_label = label;
            for line in labelled(shown, value, style.columns) {
                text.push_str(&if label == "not known" {
                    style.paint(Tone::Faint, &line)
                } else {
                    line
                });
                text.push('\n');
            }
        }
        text
    }
}

/// A label and its value, wrapped below its own start.
fn labelled(label: &str, value: &str, columns: usize) -> Vec<String> {
    let first = format!("  {}", pad_right(&clean(label), LABEL_COLUMNS));
    hang(&first, &bind_units(&clean(value)), columns)
}

fn join(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn title(machine: &Machine, style: Style) -> String {
    let name = machine.board.model.text().unwrap_or("A machine that does not tell its model");
    let origin = match &machine.origin {
        Origin::Live => format!("as it was at {}", words::moment(&machine.read_at)),
        Origin::Capture { path, label } => format!("from the capture {path} ({label})"),
    };
    let mut text = format!("{}\n", style.paint(Tone::Strong, &clean(name)));
    for line in hang("", &clean(&origin), style.columns) {
        text.push_str(&style.paint(Tone::Faint, &line));
        text.push('\n');
    }
    text
}

fn board(machine: &Machine, shows_serials: bool) -> Section {
    let mut s = Section::new("Board");
    let board = &machine.board;
    let model = s.gaps.take(&board.model, "model", String::clone);
    s.row_if("model", model);
    let revision = s.gaps.take(&board.revision, "revision code", |r| {
        let memory = r.memory_mib.map(|mib| format!(", {}", bytes_iec(u64::from(mib) << 20)));
        format!(
            "{} revision {}, {}{}, made by {} (code {:x})",
            r.board_type,
            r.revision,
            r.processor,
            memory.unwrap_or_default(),
            r.manufacturer,
            r.code
        )
    });
    s.row_if("revision", revision);
    let soc = s.gaps.take(&board.soc, "system on chip", String::clone);
    s.row_if("chip", soc);
    let firmware = s.gaps.take(&board.firmware, "firmware", String::clone);
    s.row_if("firmware", firmware);
    let serial = s.gaps.take(&board.serial, "serial number", String::clone);
    s.row_if("serial", serial.filter(|_| shows_serials));
    s
}

fn system(machine: &Machine) -> Section {
    let mut s = Section::new("System");
    let system = &machine.system;
    let os = s.gaps.take(&system.os, "distribution", String::clone);
    s.row_if("distribution", os);
    let kernel = [
        s.gaps.take(&system.kernel_release, "kernel release", |r| format!("Linux {r}")),
        s.gaps.take(&system.kernel_arch, "kernel architecture", String::clone),
        s.gaps.take(&system.user_space_bits, "word size of programs", |b| {
            format!("{b}-bit programs")
        }),
        s.gaps.take(&system.page_bytes, "page size", |b| format!("pages of {}", bytes_iec(*b))),
    ];
    s.row_if("kernel", Some(join(kernel)));
    let virtualization =
        s.gaps.take(&system.virtualization, "virtualization", |v| match v.as_str() {
            "none" => "no".to_string(),
            kind => kind.to_string(),
        });
    s.row_if("virtual", virtualization);
    s.row_if("container", system.container.clone());
    let command_line = s.gaps.take(&system.command_line, "kernel command line", String::clone);
    s.row_if("command line", command_line);
    s
}

fn processor(machine: &Machine) -> Section {
    let mut s = Section::new("Processor");
    let cpu = &machine.cpu;
    let cores = s.gaps.take(&cpu.cores, "number of cores", |n| format!("{n} × "));
    let model = s.gaps.take(&cpu.model, "model", String::clone);
    let unnamed = || "core".to_string();
    if cores.is_some() || model.is_some() {
        s.row("cores", cores.unwrap_or_default() + &model.unwrap_or_else(unnamed));
    }
    for clock in &cpu.clocks {
        let line = clock_line(clock, &mut s.gaps);
        s.row("clock", line);
    }
    let features = s.gaps.take(&cpu.crypto_features, "instruction-set extensions", |features| {
        let list = features.join(", ");
        if features.iter().any(|f| f == "aes") {
            list
        } else {
            join([Some(list).filter(|l| !l.is_empty()), Some("no aes".into())])
        }
    });
    s.row_if("extensions", features);
    s
}

fn clock_line(clock: &Clock, gaps: &mut Gaps) -> String {
    let hz = |hz: &u64| {
        if *hz >= 1_000_000_000 {
            format!("{:.2} GHz", *hz as f64 / 1e9)
        } else {
            format!("{:.0} MHz", *hz as f64 / 1e6)
        }
    };
    let current = gaps.take(&clock.current_hz, "present clock", |v| format!("{} now", hz(v)));
    let min = gaps.take(&clock.min_hz, "lowest clock", hz);
    let max = gaps.take(&clock.max_hz, "highest clock", hz);
    let range = match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (min, None) => min.map(|min| format!("at least {min}")),
    };
    let governor = gaps.take(&clock.governor, "governor", |g| format!("governor {g}"));
    format!("cores {}: {}", clock.cores, join([current, range, governor]))
}

fn power(machine: &Machine) -> Section {
    let mut s = Section::new("Heat and power");
    let power = &machine.power;
    for temperature in &power.temperatures {
        let degrees = s.gaps.take(&temperature.millicelsius, &temperature.zone, |m| {
            format!("{} {:.1} °C", temperature.zone, *m as f64 / 1000.0)
        });
        s.row_if("temperature", degrees);
    }
    if let Some(throttling) = s.gaps.take(&power.throttling, "throttling word", |t| *t) {
        s.row("now", words::throttling(&throttling, false));
        s.row(
            "since boot",
            format!("{} (throttled={:#x})", words::throttling(&throttling, true), throttling.word),
        );
    }
    let alarm =
        s.gaps.take(&power.undervoltage_alarm, "undervoltage alarm of the kernel", |alarm| {
            let words =
                if *alarm { "raised: the supply voltage was too low since boot" } else { "quiet" };
            words.to_string()
        });
    s.row_if("voltage alarm", alarm);
    s
}

fn memory(machine: &Machine) -> Section {
    let mut s = Section::new("Memory");
    let memory = &machine.memory;
    let line = [
        s.gaps.take(&memory.total_bytes, "total", |b| bytes_iec(*b)),
        s.gaps
            .take(&memory.available_bytes, "available", |b| format!("{} available", bytes_iec(*b))),
        s.gaps.take(&memory.cached_bytes, "cached", |b| format!("{} cache", bytes_iec(*b))),
        s.gaps.take(&memory.dirty_bytes, "dirty", |b| format!("{} not yet written", bytes_iec(*b))),
    ];
    s.row_if("memory", Some(join(line)));
    for pressure in &memory.pressure {
        let line = pressure_line(pressure, &mut s.gaps);
        s.row_if("pressure", Some(line));
    }
    s
}

fn pressure_line(pressure: &Pressure, gaps: &mut Gaps) -> String {
    let share = |p: &f64| percent(*p / 100.0);
    let name = |what: &str| format!("{} {what}", pressure.resource);
    let parts = [
        gaps.take(&pressure.some_avg10, &name("pressure"), |p| {
            format!("some task waited {} of the last 10 s", share(p))
        }),
        gaps.take(&pressure.some_avg300, &name("pressure"), |p| {
            format!("{} of the last 300 s", share(p))
        }),
        gaps.take(&pressure.full_avg10, &name("pressure"), |p| {
            format!("all tasks {} of the last 10 s", share(p))
        }),
    ];
    let line = join(parts);
    if line.is_empty() { line } else { format!("{}: {line}", pressure.resource) }
}

fn swap(machine: &Machine) -> Section {
    let mut s = Section::new("Swap");
    let swap = &machine.swap;
    for area in &swap.areas {
        let device = s.gaps.take(&area.device, "device below a swap area", |d| format!("on {d}"));
        let line = [
            Some(format!("{} ({})", area.path, area.kind)),
            Some(format!("{} of {} used", bytes_iec(area.used_bytes), bytes_iec(area.size_bytes))),
            Some(format!("priority {}", area.priority)),
            device,
        ];
        s.row("area", join(line));
    }
    if swap.areas.is_empty() {
        s.row("area", "no active swap area");
    }
    let enabled = s.gaps.take(&swap.zswap.enabled, "zswap", |on| on.to_string());
    if let Some(enabled) = enabled {
        let on = if enabled == "true" { "on" } else { "off" };
        let others = swap.zswap.parameters.iter().filter(|p| p.name != "enabled");
        let parameters = settings(others, &mut s.gaps);
        s.row("zswap", format!("{on}; {parameters}"));
    }
    let counters = settings(&swap.zswap.counters, &mut s.gaps);
    s.row_if("", Some(counters));
    if let Some(reason) =
        swap.zswap.counters_unknown.as_ref().filter(|_| swap.zswap.counters.is_empty())
    {
        s.gaps.add("zswap counters", reason);
    }
    for zram in &swap.zram {
        let line = [
            Some(zram.name.clone()),
            s.gaps.take(&zram.size_bytes, "zram size", |b| bytes_iec(*b)),
            s.gaps.take(&zram.algorithm, "zram compressor", String::clone),
            s.gaps.take(&zram.original_bytes, "zram contents", |b| {
                format!("holds {}", bytes_iec(*b))
            }),
            s.gaps.take(&zram.compressed_bytes, "zram compressed size", |b| {
                format!("compressed to {}", bytes_iec(*b))
            }),
            s.gaps.take(&zram.memory_bytes, "zram memory", |b| {
                format!("in {} of memory", bytes_iec(*b))
            }),
            s.gaps.take(&zram.backing_device, "zram backing device", |d| match d.as_str() {
                "none" => "no backing device".into(),
                device => format!("backed by {device}"),
            }),
        ];
        s.row("zram", join(line));
    }
    for manager in &swap.managers {
        let lines = s.gaps.take(&manager.settings, &manager.name, |lines| lines.join("; "));
        s.row("set up by", join([Some(manager.name.clone()), lines.filter(|l| !l.is_empty())]));
    }
    s
}

/// "name value · name value".
fn settings<'a>(settings: impl IntoIterator<Item = &'a Setting>, gaps: &mut Gaps) -> String {
    let known: Vec<String> = settings
        .into_iter()
        .filter_map(|s| gaps.take(&s.value, &s.name, |value| format!("{}\u{a0}{value}", s.name)))
        .collect();
    known.join(" · ")
}

fn shared_buses(machine: &Machine) -> Section {
    let mut s = Section::new("Shared buses");
    for bus in &machine.shared_buses {
        let rate =
            s.gaps.take(&bus.usable_bytes_per_second, &format!("rate of {}", bus.id), |rate| {
                format!(", about {} for all of them together", rate_si(*rate))
            });
        let line = format!("{}: {}{}", bus.name, bus.members.join(", "), rate.unwrap_or_default());
        s.row(&bus.id, line);
    }
    s
}

/// Filesystems that sit on no block device; the others stand with their device.
fn mounts(machine: &Machine) -> Section {
    let mut s = Section::new("Filesystems without a disk");
    for mount in machine.mounts.iter().filter(|mount| mount.device.is_none()) {
        let line = mount_line(mount, &mut s.gaps);
        s.row(&mount.filesystem, line);
    }
    s
}

/// "/srv, 21.5 GB of 32.0 GB free, compresses with zstd:3, (rw, noatime)".
fn mount_line(mount: &Mount, gaps: &mut Gaps) -> String {
    let size = gaps.take(&mount.size_bytes, "filesystem size", |b| bytes_si(*b));
    let free = gaps.take(&mount.available_bytes, "free space", |b| bytes_si(*b));
    let space = match (free, size) {
        (Some(free), Some(size)) => Some(format!("{free} of {size} free")),
        (Some(free), None) => Some(format!("{free} free")),
        (None, size) => size,
    };
    let root = (mount.root != "/").then(|| format!("shows {}", mount.root));
    let source = mount.device.is_none() && mount.source != mount.filesystem;
    let source = source.then(|| format!("from {}", mount.source));
    let compression = mount.compression.as_ref().map(|c| format!("compresses with {c}"));
    let options = Some(format!("({})", mount.options.join(", ")));
    join([Some(mount.point.clone()), source, root, space, compression, options])
}

fn network(machine: &Machine) -> Section {
    let mut s = Section::new("Network");
    for link in &machine.links {
        let line = link_line(link, &mut s.gaps);
        s.row(&link.name, line);
    }
    s
}

fn link_line(link: &Link, gaps: &mut Gaps) -> String {
    let what = |what: &str| format!("{} of {}", what, link.name);
    let on = link.path.last().map(|hop| format!("on {}", on_hop(hop)));
    join([
        Some(link.kind.clone()),
        gaps.take(&link.state, &what("state"), String::clone),
        gaps.take(&link.bits_per_second, &what("rate"), |b| bit_rate(*b as f64)),
        gaps.take(&link.duplex, &what("duplex"), |d| format!("{d} duplex")),
        gaps.take(&link.driver, &what("driver"), |d| format!("driver {d}")),
        on,
    ])
}

fn on_hop(hop: &Hop) -> String {
    if hop.kind == HopKind::Soc {
        return "the chip itself".into();
    }
    format!("{} ({}, {})", hop.name, hop.id, hop.link)
}

/// The value of a switch that the kernel was built without.
const NOT_SET: &str = "not set";

fn kernel(machine: &Machine) -> Section {
    let mut s = Section::new("Kernel settings");
    let vm = settings(&machine.vm, &mut s.gaps);
    s.row_if("vm", Some(vm));
    let (without, with): (Vec<&Setting>, Vec<&Setting>) =
        machine.kernel_config.iter().partition(|s| s.value.text() == Some(NOT_SET));
    let with = settings(with, &mut s.gaps);
    s.row_if("built with", Some(with));
    let names: Vec<&str> = without.iter().map(|setting| setting.name.as_str()).collect();
    s.row_if("built without", Some(names.join(" · ")));
    s
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::machine::BlockDevice;

    const SERIALS: Extent = Extent { everything: true, serials: true };

    #[test]
    fn serial_numbers_are_shown_where_they_are_asked_for_alone() {
        let machine = fixture::pi3_with_usb_ssd();
        let serials: Vec<&str> = machine
            .block_devices
            .iter()
            .map(|device| &device.serial)
            .chain([&machine.board.serial])
            .filter_map(|serial| serial.text())
            .collect();
        assert!(serials.len() >= 2, "{serials:?}");
        let shown = |extent| render(&machine, extent, Style::PLAIN);
        for serial in serials {
            assert!(shown(SERIALS).contains(serial), "{serial}");
            assert!(!shown(Extent::default()).contains(serial), "{serial}");
            let everything = Extent { everything: true, serials: false };
            assert!(!shown(everything).contains(serial), "{serial}");
        }
    }

    #[test]
    fn a_raspberry_pi_3() {
        insta::assert_snapshot!(render(&fixture::pi3_with_usb_ssd(), SERIALS, Style::PLAIN));
    }

    /// Findings first, all of them; then the machine in few lines, however many disks it has.
    #[test]
    fn a_survey_is_short_unless_everything_is_asked_for() {
        let mut machine = fixture::pi3_with_usb_ssd();
        let disk = machine.block_devices[0].clone();
        for number in 0..30 {
            let name = format!("sd{number}");
            machine.block_devices.push(BlockDevice { name, ..disk.clone() });
        }
        let text = render_with(&machine, &[], "\nbetween\n", Extent::default(), Style::PLAIN);
        let (found, rest) = text.split_once("\nbetween\n").expect("what belongs between");
        assert!(found.contains("Findings: ") && !found.contains(" more: "), "{found}");
        assert!(rest.lines().count() <= 40, "{rest}");
        assert!(rest.contains("more\n") && rest.contains("rubus survey --verbose"), "{rest}");
        insta::assert_snapshot!(render(
            &fixture::pi3_with_usb_ssd(),
            Extent::default(),
            Style::PLAIN
        ));
    }

    #[test]
    fn a_machine_that_tells_nothing() {
        insta::assert_snapshot!(render(&fixture::unreadable_machine(), SERIALS, Style::PLAIN));
    }

    #[test]
    fn no_line_is_wider_and_nothing_moves_the_cursor() {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.origin = Origin::Capture { path: "/x".repeat(80), label: "hand-built".into() };
        machine.mounts[0].options = vec!["option=\x1b[2J".repeat(40)];
        machine.block_devices[0].model =
            rubus_vocabulary::fact::Fact::known("model\r".repeat(50), "hostile");
        let text = render(&machine, SERIALS, Style::PLAIN);
        for line in text.lines() {
            assert!(rubus_draw::text::width(line) <= Style::PLAIN.columns, "{line}");
        }
        assert!(!text.contains(['\x1b', '\r']));
    }
}
