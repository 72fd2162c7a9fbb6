//! The answer for people.

use rubus_draw::style::Tone;
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, hang, pad_left, pad_right};
use rubus_draw::{Style, next_step};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::{Basis, assumed, two_digits};
use rubus_vocabulary::units::{bit_rate, bytes_iec, bytes_si, counted, iops, rate_si};

use crate::beside::{Beside, Job};
use crate::boards::Board;
use crate::capacity::{BACKFILLFULL, Capacity, FULL, NEARFULL};
use crate::ceilings::{Ceiling, Work};
use crate::cost::{Cost, Item};
use crate::design::Design;
use crate::layout::{FailureDomain, Layout};
use crate::memory::BoardMemory;
use crate::objects;
use crate::report::Report;

/// What marks and ranges mean.
pub const LEGEND: &str = "~ assumed, not measured or published; [a to b] is a 95 % interval, or for ~ the plausible range.";
/// What the columns of the ceilings mean.
pub fn ceilings_note(in_flight: u32) -> String {
    format!(
        "\"at most\" needs many operations in flight, and several clients where one client's port binds; \"with {in_flight}\" is \
         expected with that number in flight (--in-flight), as some boards then wait for others; \"alone\" is the latency floor. \"?\": the \
         intervals overlap, so another pipe may bind instead."
    )
}

/// The whole answer.
pub fn render(report: &Report, style: Style) -> String {
    let mut page = Page { lines: Vec::new(), style };
    let title = hang("", &title(&report.design), style.columns);
    page.lines.extend(title.iter().map(|line| style.paint(Tone::Strong, line)));
    let answer = hang("", &bind_units(&answer(report)), style.columns);
    page.lines.extend(answer);
    page.lines.extend(next_step::lines(&report.next, style));
    for sentence in basis(&report.design) {
        page.say(&sentence);
    }
    // What runs and was measured is shown whole, whatever the minimum says.
    if !report.fits() && report.beside.is_none() {
        memory(&mut page, report);
        page.lines.push(String::new());
        page.say("What it would hold, do and cost with enough memory: --json.");
        return page.lines.join("\n") + "\n";
    }
    capacity(&mut page, report);
    memory(&mut page, report);
    ceilings(&mut page, report);
    if let Some(found) = &report.beside {
        beside(&mut page, report, found);
    }
    rebuild(&mut page, report);
    cost(&mut page, &report.cost);
    page.heading("Reservations");
    for reservation in &report.reservations {
        page.item(reservation);
    }
    page.lines.push(String::new());
    page.say(LEGEND);
    page.lines.join("\n") + "\n"
}

/// What fits and what one client gets, or why nothing does.
pub fn answer(report: &Report) -> String {
    if !report.fits() {
        return match report.beside {
            Some(_) => "The boards have less memory than Ceph's minimum.".into(),
            None => "It cannot work: the boards have too little memory.".into(),
        };
    }
    let basis = figures_basis(&report.design);
    let of = |work| report.ceilings.iter().find(|ceiling| ceiling.work == work);
    let mut said = format!(
        "{} of {} are usable.",
        bytes_si(report.capacity.usable_bytes.value as u64),
        bytes_si(report.capacity.raw_bytes)
    );
    if let (Some(large), Some(small)) = (of(Work::LargeWrite), of(Work::SmallWrite)) {
        let rate = |ceiling: &Ceiling| basis.figure(&amount(ceiling, ceiling.iops.value));
        said.push_str(&format!(
            " Large writes reach {} at most (bound by {}), small ones {} ({}).",
            rate(large),
            large.binds.name(),
            rate(small),
            small.binds.name(),
        ));
    }
    said
}

struct Page {
    lines: Vec<String>,
    style: Style,
}

impl Page {
    fn heading(&mut self, text: &str) {
        self.lines.push(String::new());
        self.lines.push(self.style.paint(Tone::Strong, text));
    }

    fn say(&mut self, text: &str) {
        self.lines.extend(hang("  ", &bind_units(text), self.style.columns));
    }

    fn item(&mut self, text: &str) {
        self.lines.extend(hang("  - ", &bind_units(text), self.style.columns));
    }

    fn table(&mut self, table: Table) {
        self.lines.extend(table.indented(2).lines(self.style));
    }
}

/// `4 x Raspberry Pi 4, 4 GB, 1 x 1.00 TB SATA SSD each, 1.00 Gbit/s`.
pub fn boards_and_disks(design: &Design) -> String {
    let groups = design.groups.iter().map(|group| {
        format!(
            "{} x {}, {} x {} {} each, {}",
            group.count,
            group.board.name,
            group.disks,
            bytes_si(group.disk.bytes),
            group.disk.media.name(),
            bit_rate(group.board.link_bits as f64),
        )
    });
    groups.collect::<Vec<_>>().join(" and ")
}

/// What was assumed, and where measured figures come from.
pub fn basis(design: &Design) -> Vec<String> {
    let mut said = Vec::new();
    if !design.assumed.is_empty() {
        said.push(format!("Not given, so assumed: {}.", design.assumed.join("; ")));
    }
    let figures = design.groups.iter().map(|group| &group.disk.figures);
    let measured = figures.filter(|figures| figures.basis == Basis::Measured);
    said.extend(measured.map(|figures| format!("Disk figures: {}.", figures.source)));
    said
}

/// Boards and disks, layout, release.
pub fn title(design: &Design) -> String {
    let domain = match design.domain {
        FailureDomain::Host => "boards",
        FailureDomain::Osd => "disks",
    };
    format!(
        "{}; {} over {domain}; {} {}",
        boards_and_disks(design),
        design.layout.name(),
        design.release.name(),
        design.release
    )
}

/// Decimal and binary: `2.55 TB (2.32 TiB)`.
pub fn terabytes(bytes: f64) -> String {
    format!("{} ({})", bytes_si(bytes as u64), bytes_iec(bytes as u64))
}

/// A value with its range where it has one, each drawn by `draw`.
pub fn with_range(estimate: Estimate, draw: impl Fn(f64) -> String) -> String {
    let (low, high) = (draw(estimate.low), draw(estimate.high));
    let value = draw(estimate.value);
    if low == value && high == value {
        return value;
    }
    format!("{value} [{low} to {high}]")
}

fn capacity(page: &mut Page, report: &Report) {
    page.heading("Capacity");
    const NAME_COLUMNS: usize = 14;
    const BYTES_COLUMNS: usize = 18;
    let style = page.style;
    for (name, bytes, why) in capacities(report) {
        let first = format!(
            "  {}  {}  ",
            pad_right(name, NAME_COLUMNS),
            pad_left(&terabytes(bytes), BYTES_COLUMNS)
        );
        let lines = hang(&first, &bind_units(&why), style.columns);
        page.lines.extend(lines.iter().map(|line| {
            let (figures, why) = line.split_at(first.len().min(line.len()));
            format!("{figures}{}", style.paint(Tone::Faint, why)).trim_end().to_string()
        }));
    }
    let design = &report.design;
    if !design.objects.is_empty() {
        page.say(&format!("Objects, by number: {}.", objects::words(&design.objects)));
    }
    padding(page, report);
    page.heading("When something fails");
    for words in &report.loss.words {
        page.item(words);
    }
}

/// The capacities from raw to the last write: name, bytes, and why it is that much.
pub fn capacities(report: &Report) -> Vec<(&'static str, f64, String)> {
    let (capacity, design) = (&report.capacity, &report.design);
    let mut rows = vec![
        ("raw", capacity.raw_bytes as f64, counted(design.osds().into(), "disk", "disks")),
        (
            "on paper",
            capacity.nominal_bytes,
            format!("raw / {:.2}; what a shopping list says", design.layout.factor()),
        ),
    ];
    if capacity.placeable_bytes < capacity.raw_bytes as f64 * 0.999 {
        rows.push((
            "placeable raw",
            capacity.placeable_bytes,
            "one chunk of an object per domain: larger domains stay partly empty".into(),
        ));
    }
    rows.push(("safe raw", capacity.safe_raw_bytes, safe_words(capacity)));
    rows.push((
        "usable",
        capacity.usable_bytes.value,
        format!(
            "down to {} with OSDs 5 % uneven and BlueStore's database (~)",
            bytes_si(capacity.usable_bytes.low as u64)
        ),
    ));
    if !design.objects.is_empty() {
        rows.push((
            "usable for your objects",
            capacity.usable_padded_bytes.value,
            format!("{:.2} bytes on disk per byte", capacity.padded_factor),
        ));
    }
    rows.push(("writes stop at", capacity.full_bytes, format!("full ratio {FULL:.2}")));
    rows
}

fn safe_words(capacity: &Capacity) -> String {
    if capacity.is_limited_by_loss {
        format!("{BACKFILLFULL:.2} of what is left after losing a domain: it must fit there")
    } else {
        format!("{NEARFULL:.2} of raw, where Ceph begins to warn (nearfull)")
    }
}

fn padding(page: &mut Page, report: &Report) {
    let layout = report.design.layout;
    let other = match layout {
        Layout::Replica { .. } => None,
        Layout::Erasure { fast: true, .. } => Some("legacy EC"),
        Layout::Erasure { fast: false, .. } => Some("Fast EC"),
    };
    page.lines.push(String::new());
    let mut columns =
        vec![("object", Align::Right), ("on disk", Align::Right), ("per byte", Align::Right)];
    if let Some(other) = other {
        columns.push((other, Align::Right));
    }
    let mut table = Table::new(&columns);
    for row in &report.capacity.padding {
        let factor = |stored: u64| format!("{:.2}", stored as f64 / row.object_bytes as f64);
        let mut cells: Vec<Cell> = vec![
            bytes_iec(row.object_bytes).into(),
            bytes_iec(row.stored_bytes).into(),
            factor(row.stored_bytes).into(),
        ];
        if other.is_some() {
            cells.push(factor(row.stored_other_bytes.unwrap_or(0)).into());
        }
        table.row(cells);
    }
    page.table(table);
}

fn memory(page: &mut Page, report: &Report) {
    page.heading("Memory");
    for sentence in memories(report) {
        page.say(&sentence);
    }
}

/// What each kind of board has, and what an OSD may take of it.
pub fn memories(report: &Report) -> Vec<String> {
    let mib =
        |bytes: Option<u64>| bytes.map_or("none".into(), |bytes| format!("{} MiB", bytes >> 20));
    let of_one = |memory: &BoardMemory| {
        [
            format!(
                "{}: {} for {}, a monitor ({}), a manager ({}) and the system ({}).",
                memory.board,
                memory.basis.figure(&bytes_iec(memory.memory_bytes)),
                counted(memory.osds.into(), "OSD", "OSDs"),
                assumed(&bytes_iec(memory.monitor_bytes)),
                assumed(&bytes_iec(memory.manager_bytes)),
                assumed(&bytes_iec(memory.system_bytes)),
            ),
            format!(
                "osd_memory_target: {} beside monitor and manager, {} without. {}",
                mib(memory.target_bytes),
                mib(memory.target_without_monitor_bytes),
                memory.words
            ),
        ]
    };
    report.memory.iter().flat_map(of_one).collect()
}

fn ceilings(page: &mut Page, report: &Report) {
    let client = bit_rate(report.design.client_bits as f64);
    page.heading(&format!("Ceilings, one client at {client}"));
    let expected = format!("with {}", report.design.in_flight);
    let mut table = Table::new(&[
        ("", Align::Left),
        ("at most", Align::Right),
        ("range", Align::Left),
        (&expected, Align::Right),
        ("bound by", Align::Left),
        ("alone", Align::Right),
    ])
    .close();
    let basis = figures_basis(&report.design);
    for ceiling in &report.ceilings {
        let draw = |value: f64| basis.figure(&amount(ceiling, value));
        let sure = if ceiling.is_sure { "" } else { "?" };
        table.row(vec![
            ceiling.work.name().into(),
            draw(ceiling.iops.value).into(),
            range(ceiling, basis).into(),
            draw(ceiling.expected_iops.value).into(),
            format!("{}{sure}", ceiling.binds.name()).into(),
            assumed(&format!("{:.1} ms", ceiling.latency_floor_s.value * 1e3)).into(),
        ]);
    }
    page.table(table);
    page.say(&ceilings_note(report.design.in_flight));
    page.lines.push(String::new());
    pictures(page, report);
}

fn beside(page: &mut Page, report: &Report, found: &Beside) {
    page.heading(&format!("Expected and measured: {}", found.source));
    let mut table = Table::new(&[
        ("job", Align::Left),
        ("in flight", Align::Right),
        ("expected", Align::Left),
        ("measured", Align::Left),
        ("one board", Align::Right),
    ]);
    for row in besides(found) {
        table.row(row.map(Cell::from).into());
    }
    page.table(table);
    for sentence in besides_note(report, found) {
        page.say(&sentence);
    }
}

/// Each job of a run: its name, operations in flight, expected, measured, what one board gave.
pub fn besides(found: &Beside) -> Vec<[String; 5]> {
    let row = |job: &Job| {
        let draw = |bytes: f64| {
            if job.work.is_large() {
                format!("{:.1}", bytes / 1e6)
            } else {
                iops(bytes / job.work.bytes())
            }
        };
        let unit = if job.work.is_large() { "MB/s" } else { "IOPS" };
        let apart = if job.is_apart() { " *" } else { "" };
        let settled = if job.is_settled { "" } else { "?" };
        [
            job.job.clone(),
            job.in_flight.to_string(),
            with_range(job.expected_bytes_per_second, draw),
            format!("{settled}{} {unit}{apart}", with_range(job.measured_bytes_per_second, draw)),
            job.one_board_bytes_per_second.map_or("-".into(), |one| draw(one.value)),
        ]
    };
    found.jobs.iter().map(row).collect()
}

/// What its marks mean, and what to know of the run.
pub fn besides_note(report: &Report, found: &Beside) -> Vec<String> {
    let osds = report.design.osds();
    let count = if found.osds == osds { String::new() } else { format!(", not the {osds} above") };
    let mut said = vec![
        format!(
            "Measured was a cluster of {}{count}, its pool with {}.",
            counted(found.osds.into(), "OSD", "OSDs"),
            found.layout
        ),
        "\"one board\": its own disk without a cluster, from --node-from. ? did not settle. * the intervals have nothing in common."
            .into(),
    ];
    if found.changes > 0 {
        said.push(format!(
            "During the run the cluster was not as it should be ({}), so it is not the cluster above.",
            counted(found.changes as u64, "change", "changes")
        ));
    }
    said
}

/// How the figures of its disks are known: as the least known of them.
pub fn figures_basis(design: &Design) -> Basis {
    let mut figures = design.groups.iter().map(|group| &group.disk.figures);
    let is_measured = figures.all(|figures| figures.basis == Basis::Measured);
    if is_measured { Basis::Measured } else { Basis::Assumed }
}

/// The range without the unit that stands beside it already; with no more digits than its value has.
pub fn range(ceiling: &Ceiling, basis: Basis) -> String {
    let draw = |operations: f64| {
        if ceiling.work.is_large() {
            format!("{:.0}", operations * ceiling.work.bytes() / 1e6)
        } else {
            iops(operations)
        }
    };
    let unit = if ceiling.work.is_large() { " MB/s" } else { "" };
    let (low, high) = (draw(ceiling.iops.low), draw(ceiling.iops.high));
    if low == high {
        return String::new();
    }
    let range = format!("[{low} to {high}{unit}]");
    if basis == Basis::Assumed { two_digits(&range) } else { range }
}

/// Operations per second as bytes per second where they are large.
pub fn amount(ceiling: &Ceiling, operations: f64) -> String {
    if ceiling.work.is_large() {
        rate_si(operations * ceiling.work.bytes())
    } else {
        format!("{} IOPS", iops(operations))
    }
}

/// The pipes of large and small writes, each as long as what it lets through.
fn pictures(page: &mut Page, report: &Report) {
    const LONGEST: f64 = 36.0;
    let block = if page.style.ascii { "#" } else { "█" };
    let basis = figures_basis(&report.design);
    for ceiling in &report.ceilings {
        if !matches!(ceiling.work.name(), "4 MiB write" | "4 KiB write") {
            continue;
        }
        let mut table = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)]);
        table.heading(&format!("Pipes of a {}:", ceiling.work.name()));
        let widest = ceiling.pipes.last().map_or(1.0, |pipe| pipe.per_second.value);
        for pipe in &ceiling.pipes {
            // By the logarithm: the widest is often a hundred times the narrowest.
            let share = 1.0 + (pipe.per_second.value / widest).log10() / 3.0;
            let length = (share.max(0.03) * LONGEST).round() as usize;
            table.row(vec![
                format!("  {}", pipe.resource.name()).into(),
                basis.figure(&amount(ceiling, pipe.per_second.value)).into(),
                block.repeat(length).into(),
            ]);
        }
        page.table(table);
    }
    page.say("(bars: logarithmic, three decades)");
}

/// Hours in words that suit them.
pub fn hours(hours: f64) -> String {
    match hours {
        h if h < 1.0 => format!("{:.0} min", h * 60.0),
        h if h < 48.0 => format!("{h:.1} h"),
        h => format!("{:.1} days", h / 24.0),
    }
}

/// A probability: `1 in 240`, or a percentage from 5 % on.
pub fn chance(probability: f64) -> String {
    match probability {
        p if p <= 0.0 => "0".into(),
        p if p >= 0.05 => format!("{:.0} %", p * 100.0),
        p if p >= 1e-6 => {
            let one_in = 1.0 / p;
            let digits = 10f64.powf((one_in.log10().floor() - 1.0).max(0.0));
            format!("1 in {:.0}", (one_in / digits).round() * digits)
        }
        _ => "below 1 in 1 million".into(),
    }
}

/// An assumed probability; one that is only bounded has no figure to mark.
fn about(chance: &str) -> String {
    if chance.starts_with("below") { chance.into() } else { assumed(chance) }
}

fn rebuild(page: &mut Page, report: &Report) {
    page.heading("Rebuild and risk");
    for sentence in rebuilds(report) {
        page.say(&sentence);
    }
}

/// What it takes to be whole again, and the risk meanwhile.
pub fn rebuilds(report: &Report) -> Vec<String> {
    let rebuild = &report.rebuild;
    let (wait, basis) = if report.capacity.heals {
        ("the out delay", Basis::Measured)
    } else {
        ("until the replacement is there", Basis::Assumed)
    };
    let mut said = vec![
        format!(
            "A full failure domain holds {} of chunks; restoring them reads {}.",
            bytes_si(rebuild.lost_bytes as u64),
            bytes_si(rebuild.read_bytes as u64)
        ),
        format!(
            "Restoring {} at {}; before it {wait}, {}.",
            assumed(&with_range(rebuild.restore_h, hours)),
            assumed(&rate_si(rebuild.bytes_per_second.value)),
            basis.figure(&with_range(rebuild.wait_h, hours)),
        ),
    ];
    said.extend(rebuild.felt.iter().cloned());
    said.push(format!(
        "Loss of data in that time by further failures: {}.",
        about(&with_range(rebuild.loss_in_window, chance))
    ));
    if let Some(unreadable) = rebuild.unreadable_in_window {
        said.push(format!(
            "An unreadable sector while nothing is spare (data-sheet error rate): {}. It costs one object.",
            about(&chance(unreadable))
        ));
    }
    said.push(format!(
        "In a year, by independent failures alone: {}. Shared causes (power, firmware, a wrong command) come on top.",
        about(&with_range(rebuild.loss_per_year, chance))
    ));
    said
}

/// `1063 EUR`.
pub fn money(value: f64) -> String {
    format!("{value:.0} EUR")
}

fn cost(page: &mut Page, cost: &Cost) {
    page.heading(&format!("Cost and power over {} years", cost.years));
    let mut table = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Right)]);
    let (listed, forgotten) = bill(cost);
    for row in listed {
        table.row(row.map(Cell::from).into());
    }
    table.heading("What it forgot:");
    for row in forgotten {
        table.row(row.map(Cell::from).into());
    }
    page.table(table);
    page.say(&in_all(cost));
}

/// The bill, each line with name, how that is reckoned, and the sum: a shopping list with its total, and what it forgot.
pub fn bill(cost: &Cost) -> (Vec<[String; 3]>, Vec<[String; 3]>) {
    let line = |item: &Item| {
        // As exact as the sum beside it, which it is reckoned with.
        let mark = if item.basis == Basis::Assumed { "~" } else { "" };
        let each = format!("{:.0} x {mark}{}", item.count, money(item.each));
        [item.what.clone(), each, money(item.total())]
    };
    let mut listed: Vec<_> = cost.listed.iter().map(line).collect();
    listed.push([
        "the shopping list".into(),
        format!("{}/TB on paper", money(cost.listed_per_nominal_tb)),
        money(cost.listed_total),
    ]);
    let mut forgotten: Vec<_> = cost.forgotten.iter().map(line).collect();
    forgotten.push([
        "energy".into(),
        assumed(&format!("{:.0} W", cost.watts.value)),
        assumed(&money(cost.energy.value)),
    ]);
    forgotten.push([
        "boards and disks that fail".into(),
        "~4 % a year".into(),
        assumed(&money(cost.failures.value)),
    ]);
    (listed, forgotten)
}

/// Everything over the years, and per usable TB.
pub fn in_all(cost: &Cost) -> String {
    format!(
        "In all {}; per usable TB {} and {}.",
        assumed(&with_range(cost.total, money)),
        assumed(&with_range(cost.total_per_usable_tb, money)),
        assumed(&format!("{:.1} W", cost.watts_per_usable_tb.value))
    )
}

/// The boards that have a name.
pub fn boards(boards: &[Board], style: Style) -> String {
    let mut table = Table::new(&[
        ("kind", Align::Left),
        ("board", Align::Left),
        ("memory", Align::Right),
        ("network", Align::Right),
        ("to disk", Align::Right),
        ("power", Align::Right),
        ("EUR", Align::Right),
    ]);
    for board in boards {
        table.row(vec![
            board.kind.as_str().into(),
            // The memory has its own column.
            board.name.split(", ").next().unwrap_or_default().into(),
            bytes_iec(board.memory_bytes).into(),
            bit_rate(board.link_bits as f64).into(),
            rate_si(board.bus.bytes_per_second()).into(),
            assumed(&format!("{:.1} W", board.watts.value)).into(),
            assumed(&format!("{:.0}", board.price)).into(),
        ]);
    }
    let mut lines = table.lines(style);
    lines.push(String::new());
    lines.push("~ assumed. Memory: what the kernel reports.".into());
    lines.join("\n") + "\n"
}
