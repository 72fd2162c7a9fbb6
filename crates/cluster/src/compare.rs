//! Layouts and boards side by side: `rubus cluster compare`.

use rubus_draw::style::Tone;
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, hang};
use rubus_draw::{Style, next_step};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::assumed;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::{bytes_si, iops, rate_si};
use serde::{Serialize, Serializer};

use crate::capacity::{self, BACKFILLFULL, Capacity};
use crate::ceilings::{self, Work};
use crate::cost;
use crate::design::Design;
use crate::layout::{FailureDomain, Layout};
use crate::measured::Measured;
use crate::memory::Fit;
use crate::range::carry;
use crate::rebuild::{self, ANNUAL_FAILURES, YEAR_H};
use crate::report::Report;
use crate::text::{boards_and_disks, money};
use crate::wishes::Wishes;

/// Boards that may be lost where a restart of one leaves a spare.
const SAFE_LOSSES: u32 = 2;

/// All variants.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Version of this structure: 1. Fields are only added within a version.
    pub schema: u32,
    /// What was asked for, in words.
    pub base: String,
    /// What to do next.
    pub next: NextStep,
    /// The rows, in the order in which they are shown.
    pub rows: Vec<Row>,
}

/// A variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// The heading below which it stands.
    pub group: String,
    /// Its name: "2 boards, mirror and backup".
    pub name: String,
    /// What it gives, or why it is impossible.
    #[serde(flatten, serialize_with = "as_field")]
    #[cfg_attr(feature = "schema", schemars(with = "Outcome"))]
    pub outcome: Result<Figures, String>,
}

/// What [`as_field`] writes.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum Outcome {
    /// What it gives.
    Figures(Figures),
    /// Why it is impossible.
    Impossible(String),
}

/// In JSON a row has either `figures` or `impossible`.
fn as_field<S: Serializer>(
    outcome: &Result<Figures, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match outcome {
        Ok(figures) => serializer.serialize_newtype_variant("Outcome", 0, "figures", figures),
        Err(why) => serializer.serialize_newtype_variant("Outcome", 1, "impossible", why),
    }
}

/// What a variant gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Bytes of users that fit safely.
    pub usable_bytes: Estimate,
    /// Boards, or disks of a mirror, that may be lost without losing data.
    pub survives: u32,
    /// Whether it is whole again without a person.
    pub heals: bool,
    /// Bytes of users per second at most, written in 4 MiB.
    pub write_bytes_per_second: Estimate,
    /// 4 KiB writes per second at most; absent where there are no block writes.
    pub small_write_iops: Option<Estimate>,
    /// How the memory fits; absent where it is no question.
    pub memory: Option<Fit>,
    /// Probability of losing data in a year by independent failures.
    pub loss_per_year: Estimate,
    /// Everything over the years, euros.
    pub total: Estimate,
    /// That per usable TB.
    pub total_per_usable_tb: Estimate,
    /// What else decides, in a sentence.
    pub remark: String,
}

/// Compares the usual layouts on the boards that were asked for, other boards, and ways without Ceph.
///
/// # Errors
/// When not even 2 copies on the boards that were asked for can be sized: bad input.
pub fn compare(wishes: &Wishes, measured: Option<&Measured>) -> Result<Comparison, String> {
    if !wishes.group.is_empty() {
        return Err(
            "compare takes boards of one kind: give --nodes, --board and --disk, not groups".into(),
        );
    }
    let two = wishes.clone().with_layout("2x");
    let base = two.design(measured)?;
    let mut rows = Vec::new();
    let fast = if base.release.has_fast_ec() { " fast" } else { "" };
    let here = format!("Ceph on {} x {}", base.boards(), base.groups[0].board.name);
    let mut layouts: Vec<String> = vec!["3x".into()];
    layouts.extend(["2+1", "2+2", "3+1", "4+2"].map(|code| format!("{code}{fast}")));
    let asked = (wishes.ec.clone(), wishes.replica);
    match asked {
        (Some(code), _) => {
            layouts.push(format!("{code}{}", if wishes.fast_ec { " fast" } else { "" }))
        }
        (None, Some(copies)) => layouts.push(format!("{copies}x")),
        (None, None) => {}
    }
    let mut seen = Vec::new();
    for layout in layouts {
        if seen.contains(&layout) {
            continue;
        }
        rows.push(of_ceph(&here, wishes.clone().with_layout(&layout), measured));
        seen.push(layout);
    }
    rows.extend(other_boards(wishes, &base));
    rows.push(mirror_and_backup(&base));
    rows.push(garage(&base));
    Ok(Comparison { schema: 1, base: boards_and_disks(&base), next: next(&rows), rows })
}

/// The cheapest that heals by itself, has the memory for it and loses nothing with two boards; else one that bears the loss of one; else
/// the cheapest. What keeps a single spare has none while a board restarts, and Ceph's documentation advises against it.
fn next(rows: &[Row]) -> NextStep {
    let here = rows.first().map(|row| row.group.as_str());
    let of_ceph = |row: &&Row| {
        Some(row.group.as_str()) == here
            && row.outcome.as_ref().is_ok_and(|found| found.memory.is_some())
    };
    let cheapest = |only: fn(&Figures) -> bool| {
        let found = rows.iter().filter(of_ceph);
        let found = found.filter_map(|row| Some((row, row.outcome.as_ref().ok()?)));
        let per_tb = |figures: &Figures| figures.total_per_usable_tb.value;
        found
            .filter(|(_, figures)| only(figures))
            .min_by(|a, b| per_tb(a.1).total_cmp(&per_tb(b.1)))
    };
    let heals = |found: &Figures| found.heals && found.memory == Some(Fit::Good);
    let has_spare = cheapest(|found| {
        found.heals && found.memory == Some(Fit::Good) && found.survives >= SAFE_LOSSES
    });
    let size = |row: &Row, why: &str| {
        let options = options(&row.name);
        format!(
            "size with `rubus cluster size`, the same options and {options}: the cheapest here that heals by itself{why}"
        )
    };
    NextStep::by_hand(&match (has_spare, cheapest(heals), cheapest(|_| true)) {
        (Some((row, _)), _, _) => size(row, " and bears the loss of two boards"),
        (None, Some((row, _)), _) => size(row, "; while one board is away it has no spare"),
        (None, None, Some((row, _))) => format!(
            "take more boards, or boards with more memory: no cluster here both fits and heals by itself; {} is the cheapest",
            row.name
        ),
        (None, None, None) => "take more boards: no cluster can be made of these".into(),
    })
}

/// The options of `rubus cluster size` for a row's layout: "--ec 2+1 --fast-ec" for "EC 2+1 fast".
fn options(name: &str) -> String {
    match (name.strip_prefix("EC "), name.strip_suffix(" replicas")) {
        (Some(code), _) => match code.strip_suffix(" fast") {
            Some(code) => format!("--ec {code} --fast-ec"),
            None => format!("--ec {code}"),
        },
        (None, Some(copies)) => format!("--replica {copies}"),
        (None, None) => name.into(),
    }
}

fn of_ceph(group: &str, wishes: Wishes, measured: Option<&Measured>) -> Row {
    let name = match (&wishes.ec, wishes.replica) {
        (Some(code), _) => format!("EC {code}{}", if wishes.fast_ec { " fast" } else { "" }),
        (None, copies) => format!("{} replicas", copies.unwrap_or(3)),
    };
    let report = wishes.design(measured).and_then(Report::of);
    Row { group: group.into(), name, outcome: report.map(|report| of_report(&report)) }
}

fn of_report(report: &Report) -> Figures {
    let find = |work: Work| report.ceilings.iter().find(|ceiling| ceiling.work == work);
    let none = Estimate::exact(0.0);
    let write = find(Work::LargeWrite).map_or(none, |ceiling| ceiling.bytes_per_second);
    let remark = match (report.design.layout, report.capacity.heals) {
        (Layout::Replica { copies: 2 }, _) => "two copies that differ have no third to decide",
        (Layout::Erasure { parity: 1, .. }, false) => {
            "m=1, and never heals: unprotected until the replacement"
        }
        (Layout::Erasure { parity: 1, .. }, true) => "m=1: no spare while a board restarts",
        (_, false) => "does not heal; degraded until the replacement",
        (_, true) => "",
    };
    Figures {
        usable_bytes: report.capacity.usable_padded_bytes,
        survives: report.loss.survives,
        heals: report.capacity.heals,
        write_bytes_per_second: write,
        small_write_iops: find(Work::SmallWrite).map(|ceiling| ceiling.iops),
        memory: report.memory.iter().map(|memory| memory.fit).min(),
        loss_per_year: report.rebuild.loss_per_year,
        total: report.cost.total,
        total_per_usable_tb: report.cost.total_per_usable_tb,
        remark: remark.into(),
    }
}

/// The same number of disks in two mini PCs, with two copies: what fewer and stronger boards give.
fn other_boards(wishes: &Wishes, base: &Design) -> Vec<Row> {
    let group = &base.groups[0];
    if !group.board.is_arm || base.boards() < 2 {
        return Vec::new();
    }
    let disks = (base.osds() / 2).max(1);
    let mut other = wishes.clone().with_layout("2x");
    other.nodes = Some(2);
    other.board = Some("mini-pc".into());
    other.disks = Some(disks);
    other.link = None;
    // The price of a board was that of another board; a power supply comes with it.
    other.node_price = None;
    other.power_price = None;
    other.node_from = None;
    let mut row = of_ceph("Other boards, as many disks", other, None);
    row.name = "2 mini PCs, 2 replicas".into();
    if let Ok(figures) = &mut row.outcome {
        figures.remark = format!(
            "{disks} disks each; two copies; a third machine must run a monitor, or the loss of one board stops all"
        );
    }
    vec![row]
}

/// Share of a file system that stays fast and leaves room to work. Assumed.
const FILE_SYSTEM_FULL: f64 = 0.90;

/// Two boards of the same kind without a cluster: a mirror of two disks serves, and the other board keeps a backup of as much.
///
/// Loss of data: both disks of the mirror in one replacement, and the backup's disk as well; what was written since the last backup is
/// lost much more easily.
fn mirror_and_backup(base: &Design) -> Row {
    let group = &base.groups[0];
    let per_board = (base.osds() / 2).max(2);
    let mut two = base.clone();
    two.groups[0].count = 2;
    two.groups[0].disks = per_board;
    two.domain = FailureDomain::Host;
    two.layout = Layout::Replica { copies: 2 };
    let bytes = f64::from(per_board / 2) * group.disk.bytes as f64 * FILE_SYSTEM_FULL;
    let usable = Estimate::exact(bytes);
    let port = ceilings::payload(group.board.link_bits).min(ceilings::payload(base.client_bits));
    let figures = &group.disk.figures;
    let bus = group.board.bus.bytes_per_second();
    // Each byte goes to both disks of the mirror, over one bus.
    let write = carry(|pick| port.min(pick(&figures.write_bytes_per_second)).min(bus / 2.0));
    let window_h = Estimate::new(72.0, 12.0, 336.0);
    let loss = carry(|pick| {
        let rate = pick(&ANNUAL_FAILURES);
        let meanwhile = rate * pick(&window_h) / YEAR_H;
        2.0 * rate * meanwhile * meanwhile
    });
    let capacity = plain_capacity(&two, bytes, true);
    let bill = cost::cost(&two, &capacity);
    Row {
        group: "Without Ceph".into(),
        name: "2 boards, mirror and backup".into(),
        outcome: Ok(Figures {
            usable_bytes: usable,
            survives: 2,
            heals: false,
            write_bytes_per_second: write,
            small_write_iops: Some(figures.commits_per_second),
            memory: None,
            loss_per_year: loss,
            total: bill.total,
            total_per_usable_tb: bill.total.scaled(1e12 / bytes),
            remark: format!(
                "{per_board} disks each; no fail-over: a dead board costs hours, and what changed since the last backup"
            ),
        }),
    }
}

/// Garage with three copies: objects over S3 only, small in memory.
fn garage(base: &Design) -> Row {
    let group = "Without Ceph".to_string();
    let name = "Garage, 3 replicas".to_string();
    let mut three = base.clone();
    three.layout = Layout::Replica { copies: 3 };
    three.domain = FailureDomain::Host;
    if let Err(why) = three.check() {
        return Row { group, name, outcome: Err(why) };
    }
    let found = capacity::capacity(&three);
    // No full ratios of its own: the same room for healing is left, or a file system's.
    let share = if found.heals { BACKFILLFULL } else { FILE_SYSTEM_FULL };
    let left =
        found.raw_bytes as f64 - if found.heals { found.largest_domain_bytes as f64 } else { 0.0 };
    let bytes = share * left.min(found.placeable_bytes) / 3.0;
    let write = ceilings::ceilings(&three).into_iter().find(|c| c.work == Work::LargeWrite);
    let bill = cost::cost(&three, &plain_capacity(&three, bytes, found.heals));
    Row {
        group,
        name,
        outcome: Ok(Figures {
            usable_bytes: Estimate::exact(bytes),
            survives: 2,
            heals: false,
            write_bytes_per_second: write.map_or(Estimate::exact(0.0), |ceiling| ceiling.bytes_per_second),
            small_write_iops: None,
            memory: Some(Fit::Good),
            loss_per_year: rebuild::rebuild(&three, &found).loss_per_year,
            total: bill.total,
            total_per_usable_tb: bill.total.scaled(1e12 / bytes),
            remark: "S3 objects only, no block devices or POSIX files; runs in 1 GB; a lost board is taken out by hand".into(),
        }),
    }
}

/// What the cost needs to know of a capacity that was computed in another way.
fn plain_capacity(design: &Design, bytes: f64, heals: bool) -> Capacity {
    Capacity {
        usable_bytes: Estimate::exact(bytes),
        usable_padded_bytes: Estimate::exact(bytes),
        heals,
        ..capacity::capacity(design)
    }
}

/// A probability in percent, short enough for a column.
/// A probability within a year, as a percentage.
pub fn share_of_years(probability: f64) -> String {
    match probability * 100.0 {
        p if p < 0.001 => "<0.001 %".into(),
        p if p < 0.1 => assumed(&format!("{p:.3} %")),
        p => assumed(&format!("{p:.1} %")),
    }
}

/// How the memory fits, in two words.
pub fn memory_words(fit: Fit) -> &'static str {
    match fit {
        Fit::TooSmall => "too small",
        Fit::OnlyWithoutMonitor => "no mon",
        Fit::Tight => "tight",
        Fit::Good => "fits",
    }
}

/// What the columns mean.
pub const LEGEND: &str = "Writes: ceilings of one client, [range] in `rubus cluster size` and --json. Loss: independent failures alone. \
                          In all: with switch, energy and failures over the years. ~ assumed, not measured or published.";

/// The table for people.
pub fn render(comparison: &Comparison, style: Style) -> String {
    // One table of all would be wider than a terminal.
    let mut safety = Table::new(&[
        ("", Align::Left),
        ("usable", Align::Right),
        ("may fail", Align::Right),
        ("heals", Align::Left),
        ("memory", Align::Left),
        ("loss a year", Align::Right),
    ])
    .close();
    let mut price = Table::new(&[
        ("", Align::Left),
        ("writes", Align::Right),
        ("4 KiB writes", Align::Right),
        ("in all", Align::Right),
        ("per TB", Align::Right),
    ]);
    let mut heading = "";
    let mut remarks: Vec<(usize, String)> = Vec::new();
    let mut impossible = Vec::new();
    for row in &comparison.rows {
        if row.group != heading {
            safety.heading(&row.group);
            price.heading(&row.group);
            heading = &row.group;
        }
        let figures = match &row.outcome {
            Ok(figures) => figures,
            Err(why) => {
                let why = why.lines().next().unwrap_or_default();
                impossible.push(format!("{}: {why}.", row.name));
                let mut cells =
                    vec![format!("  {}", row.name).into(), Cell::toned("impossible", Tone::Bad)];
                cells.resize(6, Cell::default());
                safety.row(cells);
                continue;
            }
        };
        let mut name = format!("  {}", row.name);
        if !figures.remark.is_empty() {
            let at =
                remarks.iter().find(|(_, remark)| *remark == figures.remark).map(|(at, _)| *at);
            let at = at.unwrap_or_else(|| {
                remarks.push((remarks.len() + 1, figures.remark.clone()));
                remarks.len()
            });
            name = format!("{name} [{at}]");
        }
        let memory = match figures.memory {
            Some(fit @ Fit::TooSmall) => Cell::toned(memory_words(fit), Tone::Bad),
            Some(fit @ (Fit::OnlyWithoutMonitor | Fit::Tight)) => {
                Cell::toned(memory_words(fit), Tone::Warn)
            }
            Some(Fit::Good) => memory_words(Fit::Good).into(),
            None => "-".into(),
        };
        safety.row(vec![
            name.into(),
            bytes_si(figures.usable_bytes.value as u64).into(),
            figures.survives.to_string().into(),
            if figures.heals { "yes" } else { "no" }.into(),
            memory,
            share_of_years(figures.loss_per_year.value).into(),
        ]);
        price.row(vec![
            format!("  {}", row.name).into(),
            assumed(&rate_si(figures.write_bytes_per_second.value)).into(),
            figures.small_write_iops.map_or("-".into(), |e| assumed(&iops(e.value))).into(),
            assumed(&money(figures.total.value)).into(),
            assumed(&money(figures.total_per_usable_tb.value)).into(),
        ]);
    }
    let mut lines = vec![style.paint(Tone::Strong, &comparison.base)];
    lines.extend(next_step::lines(&comparison.next, style));
    lines.push(String::new());
    lines.extend(safety.lines(style));
    lines.push(String::new());
    lines.extend(price.lines(style));
    lines.push(String::new());
    for (at, remark) in &remarks {
        lines.extend(hang(&format!("[{at}] "), &bind_units(remark), style.columns));
    }
    for why in &impossible {
        lines.extend(hang("", &bind_units(why), style.columns));
    }
    lines.push(String::new());
    lines.extend(hang("", &bind_units(LEGEND), style.columns));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(nodes: u32, board: &str) -> Vec<Row> {
        let wishes = Wishes {
            nodes: Some(nodes),
            board: Some(board.into()),
            disk: Some("1TB".into()),
            ..Wishes::default()
        };
        compare(&wishes, None).unwrap().rows
    }

    #[test]
    fn safe_capacity_of_four_boards_is_what_each_layout_leaves() {
        let found = rows(4, "pi4-4gb");
        let usable = |name: &str| {
            let row = found.iter().find(|row| row.name.starts_with(name)).expect(name);
            row.outcome.as_ref().map(|f| (f.usable_bytes.value / 1e10).round() / 100.0)
        };
        assert_eq!(usable("3 replicas"), Ok(0.90));
        assert_eq!(usable("EC 2+1"), Ok(1.80));
        assert_eq!(usable("EC 2+2"), Ok(1.70));
        assert_eq!(usable("EC 3+1"), Ok(2.55));
        assert!(usable("EC 4+2").is_err());
        assert_eq!(usable("2 boards"), Ok(0.90));
        assert_eq!(usable("Garage"), Ok(0.90));
    }

    #[test]
    fn what_is_recommended_has_a_spare_and_its_options() {
        let mut all = rows(4, "pi5-8gb");
        assert!(next(&all).words.contains("--replica 3: the cheapest here"), "{:?}", next(&all));
        all.retain(|row| row.name != "3 replicas");
        let words = next(&all).words;
        assert!(words.contains("--ec 2+1 --fast-ec: the cheapest here"), "{words}");
        assert!(words.ends_with("while one board is away it has no spare"), "{words}");
    }

    #[test]
    fn no_number_of_boards_breaks_the_table() {
        for kind in ["pi3b+", "pi5-8gb", "mini-pc"] {
            for nodes in [2, 3, 4, 6, 7, 40] {
                let found = rows(nodes, kind);
                assert!(found.len() >= 7);
                for figures in found.iter().filter_map(|row| row.outcome.as_ref().ok()) {
                    assert!(figures.usable_bytes.value > 0.0);
                    assert!(
                        figures.total.low > 0.0 && figures.total_per_usable_tb.value.is_finite()
                    );
                }
            }
        }
    }
}
