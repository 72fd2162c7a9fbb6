//! What the cluster can carry at most, pipe by pipe, and which one binds.
//!
//! Each resource has a demand D: seconds that one operation keeps it busy, divided by how many of it there are. The ceiling is 1 / D
//! of the busiest (utilisation law; Denning and Buzen 1978). Placement groups spread the load evenly, and all operations are in
//! flight at once as far as it helps. With few in flight some boards wait for others: [`Ceiling::expected`].

use crate::range::carry;
use rubus_machine::ceiling;
use rubus_stats::estimate::Estimate;
use serde::Serialize;

use crate::boards::DiskBus;
use crate::design::{Design, Group};
use crate::layout::{ALLOCATION_BYTES, Layout};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// 4 MiB writes.
    LargeWrite,
    /// 4 MiB reads.
    LargeRead,
    /// 4 MiB, 70 % reads.
    LargeMixed,
    /// 4 KiB random writes into existing objects.
    SmallWrite,
    /// 4 KiB random reads.
    SmallRead,
    /// 4 KiB random, 70 % reads.
    SmallMixed,
}

impl Work {
    /// All, in the order of the table.
    pub const ALL: [Work; 6] = [
        Work::LargeWrite,
        Work::LargeRead,
        Work::LargeMixed,
        Work::SmallWrite,
        Work::SmallRead,
        Work::SmallMixed,
    ];

    /// Bytes of an operation.
    pub fn bytes(self) -> f64 {
        if self.is_large() { 4194304.0 } else { 4096.0 }
    }

    /// Whether of 4 MiB.
    pub fn is_large(self) -> bool {
        matches!(self, Work::LargeWrite | Work::LargeRead | Work::LargeMixed)
    }

    /// Share of the operations that read.
    fn reads(self) -> f64 {
        match self {
            Work::LargeWrite | Work::SmallWrite => 0.0,
            Work::LargeRead | Work::SmallRead => 1.0,
            Work::LargeMixed | Work::SmallMixed => 0.7,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Work::LargeWrite => "4 MiB write",
            Work::LargeRead => "4 MiB read",
            Work::LargeMixed => "4 MiB, 70 % read",
            Work::SmallWrite => "4 KiB write",
            Work::SmallRead => "4 KiB read",
            Work::SmallMixed => "4 KiB, 70 % read",
        }
    }
}

/// A resource that operations keep busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    Disk,
    /// USB bridges, or lanes.
    Bus,
    /// The boards' processors.
    Processor,
    /// What arrives at the boards' ports.
    NetworkIn,
    /// What leaves them.
    NetworkOut,
    /// The client's own port.
    Client,
}

impl Resource {
    const ALL: [Resource; 6] = [
        Resource::Disk,
        Resource::Bus,
        Resource::Processor,
        Resource::NetworkIn,
        Resource::NetworkOut,
        Resource::Client,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Disk => "disks",
            Resource::Bus => "USB/PCIe",
            Resource::Processor => "processors",
            Resource::NetworkIn => "network in",
            Resource::NetworkOut => "network out",
            Resource::Client => "client's port",
        }
    }
}

/// What one pipe lets through.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pipe {
    /// Which.
    pub resource: Resource,
    /// Operations of the client per second that it would let through alone.
    pub per_second: Estimate,
}

/// The ceiling of a kind of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// What clients do.
    pub work: Work,
    /// Operations per second, all clients together.
    pub iops: Estimate,
    /// Bytes of users per second.
    pub bytes_per_second: Estimate,
    /// The pipe that binds.
    pub binds: Resource,
    /// False when another pipe may be as narrow, going by the intervals.
    pub is_sure: bool,
    /// Seconds of a lone operation: no queue anywhere.
    pub latency_floor_s: Estimate,
    /// Operations in flight beyond which more only wait: ceiling times floor.
    pub knee_depth: f64,
    /// What is expected with the design's number of operations in flight.
    pub expected_iops: Estimate,
    /// The same in bytes of users per second.
    pub expected_bytes_per_second: Estimate,
    /// All pipes, the narrowest first.
    pub pipes: Vec<Pipe>,
}

impl Ceiling {
    /// Operations per second with `in_flight` of them in flight.
    pub fn expected(&self, in_flight: u32) -> Estimate {
        expected(in_flight, self.iops, self.latency_floor_s)
    }
}

/// Transactions that BlueStore commits with one flush when several wait (`_kv_sync_thread` takes all queued ones). Assumed.
const COMMITS_TOGETHER: Estimate = Estimate { value: 4.0, low: 1.0, high: 16.0 };
/// Processor seconds of an N100 core for a client's operation at its primary OSD: messenger, placement group, log. Assumed from published
/// 1000 to 4000 operations per second and core.
const CLIENT_OPERATION_S: Estimate = Estimate { value: 250e-6, low: 120e-6, high: 500e-6 };
/// The same for an operation that one OSD sends to another. Assumed.
const SUB_OPERATION_S: Estimate = Estimate { value: 130e-6, low: 60e-6, high: 260e-6 };
/// Processor seconds of an N100 core per byte that passes a board: copies, checksums, coding, TCP. Assumed.
const BYTE_S: Estimate = Estimate { value: 0.6e-9, low: 0.3e-9, high: 1.3e-9 };
/// There and back of a small message between two boards through both kernels, seconds; as in the model of network disks. Assumed.
const ROUND_TRIP_S: Estimate = Estimate { value: 220e-6, low: 120e-6, high: 500e-6 };
/// Share of a port's TCP payload that the messenger reaches: all of it at best, 85 % with small frames and interrupts on one core. Assumed.
const PORT_SHARE: Estimate = Estimate { value: 1.0, low: 0.85, high: 1.0 };
/// Headers of a message pair, bytes. Assumed.
const MESSAGE_BYTES: f64 = 400.0;

/// What one operation costs in total over the cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    read_operations: f64,
    read_bytes: f64,
    write_operations: f64,
    write_bytes: f64,
    network_in: f64,
    network_out: f64,
    client_bytes: f64,
    sub_operations: f64,
}

/// Costs of an operation of `bytes`.
///
/// Network: the client's bytes reach the primary OSD, which sends (k + m - 1) / k of them on: so a cluster of n ports takes
/// n * port / (1 + (k + m - 1) / k). A read brings (k - 1) / k to the primary first.
/// Small writes: legacy EC reads k chunks and writes k + m; Fast EC takes the cheaper of (1 + m) reads and (k - 1) reads, and writes
/// 1 + m (ceph.io, 2025-11-20). Copies are written only.
fn costs(layout: Layout, work: Work, is_read: bool) -> Costs {
    let bytes = work.bytes();
    let (k, w) = (f64::from(layout.data()), f64::from(layout.width()));
    let m = w - k;
    let unit = ALLOCATION_BYTES as f64;
    let remote = (k - 1.0) / k;
    let is_code = matches!(layout, Layout::Erasure { .. });
    match (work.is_large(), is_read) {
        (true, false) => Costs {
            write_bytes: bytes * w / k,
            network_in: bytes * (1.0 + (w - 1.0) / k),
            network_out: bytes * (w - 1.0) / k,
            client_bytes: bytes,
            sub_operations: w - 1.0,
            ..Costs::default()
        },
        (true, true) => Costs {
            read_bytes: bytes,
            network_in: bytes * remote,
            network_out: bytes * (1.0 + remote),
            client_bytes: bytes,
            sub_operations: k - 1.0,
            ..Costs::default()
        },
        (false, true) => {
            // A legacy pool reads the whole stripe for any part of it.
            let (reads, moved) = match (is_code, layout.is_fast()) {
                (false, _) => (1.0, 0.0),
                (true, true) => (1.0, remote),
                (true, false) => (k, k - 1.0),
            };
            let messages = moved * (unit + MESSAGE_BYTES);
            Costs {
                read_operations: reads,
                read_bytes: reads * unit,
                network_in: messages + MESSAGE_BYTES,
                network_out: messages + bytes + MESSAGE_BYTES,
                client_bytes: bytes + MESSAGE_BYTES,
                sub_operations: moved,
                ..Costs::default()
            }
        }
        (false, false) => {
            let (reads, writes, read_moved, written_moved) = match (is_code, layout.is_fast()) {
                (false, _) => (0.0, w, 0.0, w - 1.0),
                (true, false) => (k, w, k - 1.0, w - 1.0),
                // The data chunk is at the primary one time in k.
                (true, true) if k - 1.0 < 1.0 + m => {
                    (k - 1.0, 1.0 + m, remote * (k - 1.0), m + remote)
                }
                (true, true) => (1.0 + m, 1.0 + m, m + remote, m + remote),
            };
            let messages = (read_moved + written_moved) * (unit + MESSAGE_BYTES);
            Costs {
                read_operations: reads,
                read_bytes: reads * unit,
                write_operations: writes,
                // The data and its entry in the write-ahead log.
                write_bytes: writes * 2.0 * unit,
                network_in: messages + bytes + MESSAGE_BYTES,
                network_out: messages + MESSAGE_BYTES,
                client_bytes: bytes + MESSAGE_BYTES,
                sub_operations: read_moved + written_moved,
            }
        }
    }
}

impl Costs {
    /// A mean of reads and writes.
    fn mixed(layout: Layout, work: Work) -> Costs {
        let (read, write) = (costs(layout, work, true), costs(layout, work, false));
        let share = work.reads();
        let mix = |of: fn(&Costs) -> f64| share * of(&read) + (1.0 - share) * of(&write);
        Costs {
            read_operations: mix(|c| c.read_operations),
            read_bytes: mix(|c| c.read_bytes),
            write_operations: mix(|c| c.write_operations),
            write_bytes: mix(|c| c.write_bytes),
            network_in: mix(|c| c.network_in),
            network_out: mix(|c| c.network_out),
            client_bytes: mix(|c| c.client_bytes),
            sub_operations: mix(|c| c.sub_operations),
        }
    }
}

/// The ceilings of a design that was checked. With boards of several kinds each carries its share by its disks' bytes, so the slowest
/// for its share binds.
pub fn ceilings(design: &Design) -> Vec<Ceiling> {
    Work::ALL.map(|work| of_work(design, work)).into()
}

fn of_work(design: &Design, work: Work) -> Ceiling {
    let costs = Costs::mixed(design.layout, work);
    let mut pipes: Vec<Pipe> = Resource::ALL
        .into_iter()
        .filter_map(|resource| {
            let per_second = carry(|pick| {
                let busiest = busiest_s(design, work, costs, resource, pick);
                if busiest > 0.0 { 1.0 / busiest } else { 0.0 }
            });
            (per_second.value > 0.0).then_some(Pipe { resource, per_second })
        })
        .collect();
    pipes.sort_by(|a, b| a.per_second.value.total_cmp(&b.per_second.value));
    let least = |of: fn(&Estimate) -> f64| {
        let all = pipes.iter().map(|pipe| of(&pipe.per_second));
        all.fold(f64::INFINITY, f64::min)
    };
    let iops = Estimate::new(least(|e| e.value), least(|e| e.low), least(|e| e.high));
    let latency_floor_s = latency_floor(design, work);
    let expected_iops = expected(design.in_flight, iops, latency_floor_s);
    Ceiling {
        work,
        iops,
        bytes_per_second: iops.scaled(work.bytes()),
        expected_iops,
        expected_bytes_per_second: expected_iops.scaled(work.bytes()),
        binds: pipes[0].resource,
        is_sure: pipes.len() < 2 || pipes[0].per_second.high < pipes[1].per_second.low,
        latency_floor_s,
        knee_depth: (iops.value * latency_floor_s.value).max(1.0),
        pipes,
    }
}

/// Operations per second with N of them in flight, which fall on the boards by chance: N / (L + (N - 1) / X), with X the ceiling and L the
/// time of a lone one. This is the lower balanced job bound of a closed queueing network (Zahorjan, Sevcik, Eager and Galler 1982); with
/// M boards that are equally busy it is N / (N + M - 1) of the ceiling. The interval ends at what N operations could reach if none ever
/// waited in vain: the ceiling, or N / L.
fn expected(in_flight: u32, ceiling: Estimate, lone_s: Estimate) -> Estimate {
    let n = f64::from(in_flight);
    // A lone operation takes the busiest resource at least as long as its share there.
    let at = |ceiling: f64, lone_s: f64| n / (lone_s.max(1.0 / ceiling) + (n - 1.0) / ceiling);
    let value = at(ceiling.value, lone_s.value);
    let most = ceiling.high.min(n / lone_s.low);
    Estimate::new(value, at(ceiling.low, lone_s.high), most.max(value))
}

/// Payload of a port, bytes per second.
pub fn payload(bits: u64) -> f64 {
    ceiling::ethernet(bits).bytes_per_second
}

/// Seconds that an operation keeps the busiest of a resource busy: over the groups, by their share.
fn busiest_s(
    design: &Design,
    work: Work,
    costs: Costs,
    resource: Resource,
    pick: &mut dyn FnMut(&Estimate) -> f64,
) -> f64 {
    if resource == Resource::Client {
        return costs.client_bytes / payload(design.client_bits) / pick(&PORT_SHARE);
    }
    let raw: f64 = design.groups.iter().map(bytes_of).sum();
    let mut busiest: f64 = 0.0;
    for group in &design.groups {
        let share = bytes_of(group) / raw;
        let boards = f64::from(group.count);
        let osds = boards * f64::from(group.disks);
        let port = payload(group.board.link_bits);
        let shares_bus =
            matches!(group.board.bus, DiskBus::Usb { is_shared_with_network: true, .. });
        let figures = &group.disk.figures;
        let seconds = match resource {
            Resource::Disk if work.is_large() => {
                (costs.read_bytes / pick(&figures.read_bytes_per_second)
                    + costs.write_bytes / pick(&figures.write_bytes_per_second))
                    / osds
            }
            Resource::Disk => {
                let written = costs.write_operations / written_per_second(group, pick);
                (costs.read_operations / pick(&figures.read_iops) + written) / osds
            }
            Resource::Bus => {
                let network = if shares_bus { costs.network_in + costs.network_out } else { 0.0 };
                // SATA: a port per disk.
                let lanes = match group.board.bus {
                    DiskBus::Sata => osds,
                    DiskBus::Usb { .. } | DiskBus::Pcie { .. } => boards,
                };
                (costs.read_bytes + costs.write_bytes + network)
                    / group.board.bus.bytes_per_second()
                    / lanes
            }
            Resource::Processor => {
                let passed =
                    costs.network_in + costs.network_out + costs.read_bytes + costs.write_bytes;
                let own = pick(&CLIENT_OPERATION_S) + costs.sub_operations * pick(&SUB_OPERATION_S);
                let slower = pick(&group.board.slower);
                (own + passed * pick(&BYTE_S)) * slower / (boards * f64::from(group.board.cores))
            }
            Resource::NetworkIn => costs.network_in / (boards * port * pick(&PORT_SHARE)),
            Resource::NetworkOut => costs.network_out / (boards * port * pick(&PORT_SHARE)),
            Resource::Client => 0.0,
        };
        busiest = busiest.max(seconds * share);
    }
    busiest
}

fn bytes_of(group: &Group) -> f64 {
    f64::from(group.count) * f64::from(group.disks) * group.disk.bytes as f64
}

/// Small durable writes of an OSD per second: each is data, a log entry and a share in a flush.
fn written_per_second(group: &Group, pick: &mut dyn FnMut(&Estimate) -> f64) -> f64 {
    let figures = &group.disk.figures;
    let flushed = pick(&figures.commits_per_second) * pick(&COMMITS_TOGETHER);
    flushed.min(pick(&figures.write_iops) / 2.0)
}

/// Seconds of a lone operation: the way to the primary and back, the way to the others, the disk, the processors, the bytes on each link.
fn latency_floor(design: &Design, work: Work) -> Estimate {
    let one = |is_read: bool| {
        carry(|pick| {
            // The slowest group takes part in nearly every operation.
            let each =
                design.groups.iter().map(|group| latency_s(design, group, work, is_read, pick));
            each.fold(0.0, f64::max)
        })
    };
    match work.reads() {
        0.0 => one(false),
        1.0 => one(true),
        share => {
            let (read, write) = (one(true), one(false));
            let mix = |r: f64, w: f64| share * r + (1.0 - share) * w;
            Estimate::new(
                mix(read.value, write.value),
                mix(read.low, write.low),
                mix(read.high, write.high),
            )
        }
    }
}

fn latency_s(
    design: &Design,
    group: &Group,
    work: Work,
    is_read: bool,
    pick: &mut dyn FnMut(&Estimate) -> f64,
) -> f64 {
    let layout = design.layout;
    let k = f64::from(layout.data());
    let is_code = k > 1.0;
    let figures = &group.disk.figures;
    let bytes = work.bytes();
    let share = pick(&PORT_SHARE);
    let port = payload(group.board.link_bits) * share;
    let slower = pick(&group.board.slower);
    let trip = pick(&ROUND_TRIP_S);
    let to_client = trip + bytes / port.min(payload(design.client_bits) * share);
    let primary = pick(&CLIENT_OPERATION_S) * slower;
    let other = pick(&SUB_OPERATION_S) * slower;
    let chunk = if work.is_large() { bytes / k } else { 4096.0 };
    let bus = group.board.bus.bytes_per_second();
    // What a lone read waits for: the disk's rate is with several reads in flight, and a lone one
    // takes longer.
    let read_s = LONE_READS_WORTH / pick(&figures.read_iops)
        + chunk / pick(&figures.read_bytes_per_second).min(bus);
    let among = |chunks: f64| trip + other + chunks * chunk / port;
    if is_read {
        let gather = if is_code { among(k - 1.0) } else { 0.0 };
        return to_client + primary + read_s + gather;
    }
    let commit_s = 1.0 / pick(&figures.commits_per_second)
        + chunk / pick(&figures.write_bytes_per_second).min(bus);
    let spread = among(f64::from(layout.width()) - 1.0);
    let first = if is_code && !work.is_large() { among(k - 1.0) + read_s } else { 0.0 };
    to_client + primary + first + spread + commit_s
}

/// Reads in flight at which a disk gives its most; a lone one takes this many times the mean interval.
/// Assumed.
const LONE_READS_WORTH: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wishes::Wishes;
    use rubus_stats::Rng;

    fn design(layout: &str, board: &str, nodes: u32) -> Design {
        let wishes = Wishes {
            nodes: Some(nodes),
            board: Some(board.into()),
            disk: Some("1TB".into()),
            client_link: Some("10Gbit".into()),
            release: Some("umbrella".into()),
            ..Wishes::default()
        };
        wishes.with_layout(layout).design(None).expect("a design")
    }

    fn pipe(design: &Design, work: Work, resource: Resource) -> f64 {
        let ceiling = of_work(design, work);
        let pipe = ceiling.pipes.iter().find(|pipe| pipe.resource == resource);
        pipe.expect("that pipe").per_second.value * work.bytes()
    }

    #[test]
    fn writes_are_bounded_by_the_ports_and_their_amplification() {
        let port = payload(1_000_000_000);
        let found = pipe(&design("3+1", "pi4-4gb", 4), Work::LargeWrite, Resource::NetworkIn);
        assert!((found / (4.0 * port / 2.0) - 1.0).abs() < 1e-9, "{found}");
        let found = pipe(&design("3x", "pi4-4gb", 4), Work::LargeWrite, Resource::NetworkIn);
        assert!((found / (4.0 * port / 3.0) - 1.0).abs() < 1e-9, "{found}");
        let found = pipe(&design("3+1", "pi4-4gb", 4), Work::LargeRead, Resource::NetworkOut);
        assert!((found / (4.0 * port / (1.0 + 2.0 / 3.0)) - 1.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn fast_ec_does_fewer_disk_operations_for_a_small_write() {
        let of = |text, fast| {
            let c = costs(Layout::erasure(text, fast).unwrap(), Work::SmallWrite, false);
            (c.read_operations, c.write_operations)
        };
        assert_eq!(of("4+2", false), (4.0, 6.0));
        assert_eq!(of("4+2", true), (3.0, 3.0));
        assert_eq!(of("2+1", true), (1.0, 2.0));
        assert_eq!(of("8+2", true), (3.0, 3.0));
    }

    #[test]
    fn intervals_hold_their_values_and_more_boards_carry_more() {
        for layout in ["3x", "2x", "2+1", "3+1", "2+2", "4+2"] {
            for board in crate::boards::known() {
                let (few, many) = (design(layout, &board.kind, 6), design(layout, &board.kind, 12));
                for (few, many) in ceilings(&few).iter().zip(&ceilings(&many)) {
                    for e in few.pipes.iter().map(|p| p.per_second).chain([
                        few.iops,
                        few.latency_floor_s,
                        few.expected_iops,
                    ]) {
                        assert!(e.low <= e.value && e.value <= e.high && e.low >= 0.0, "{e:?}");
                    }
                    assert!(few.iops.value <= many.iops.value * (1.0 + 1e-9));
                    assert!(few.expected_iops.value <= few.iops.value * (1.0 + 1e-9));
                    assert!(
                        few.pipes
                            .windows(2)
                            .all(|w| w[0].per_second.value <= w[1].per_second.value)
                    );
                }
            }
        }
    }

    #[test]
    fn with_few_operations_in_flight_boards_wait_for_one_another() {
        let exact = Estimate::exact;
        // Four boards that each work on an operation for a second: a lone one takes four.
        let of = |in_flight| expected(in_flight, exact(1.0), exact(4.0)).value;
        assert!((of(1) - 0.25).abs() < 1e-12);
        assert!((of(16) - 16.0 / 19.0).abs() < 1e-12);
        // A floor below the ceiling's own time is none.
        assert_eq!(expected(7, exact(2.0), exact(0.1)).value, 2.0);
        let wide = expected(16, Estimate::new(1.0, 0.8, 1.1), Estimate::new(4.0, 3.0, 9.0));
        assert!(wide.low < 16.0 / 19.0 && wide.high == 1.1, "{wide:?}");
    }

    /// Operations go from board to board at random, each queue in order; as long as none waits for all, the formula
    /// holds.
    #[test]
    fn a_simulated_cluster_carries_what_is_expected() {
        const BOARDS: usize = 4;
        for in_flight in [1_u32, 4, 16, 64] {
            let mut chance = Rng::stream(7, u64::from(in_flight));
            let mut queues = [0_u32; BOARDS];
            queues[0] = in_flight;
            let (mut time_s, mut done) = (0.0, 0_u32);
            while done < 100_000 {
                let busy: Vec<usize> = (0..BOARDS).filter(|board| queues[*board] > 0).collect();
                time_s += 1.0 / busy.len() as f64;
                queues[busy[chance.below(busy.len() as u64) as usize]] -= 1;
                queues[chance.below(BOARDS as u64) as usize] += 1;
                done += 1;
            }
            // A visit takes a second; four visits on average are an operation.
            let found = f64::from(done) / time_s / BOARDS as f64;
            let formula = expected(in_flight, Estimate::exact(1.0), Estimate::exact(4.0)).value;
            assert!((found / formula - 1.0).abs() < 0.03, "{in_flight}: {found} {formula}");
        }
    }

    #[test]
    fn a_board_whose_port_hangs_on_usb_2_is_bound_by_that_bus() {
        let ceiling = of_work(&design("2+1", "pi3b+", 4), Work::LargeWrite);
        assert_eq!(ceiling.binds, Resource::Bus);
    }
}
