//! Shares whose narrowest stage is known, since the times are made from it.

use super::*;
use rubus_fixtures::slow_sd_card_run;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::nas::{
    ColdRead, ConnectTimes, FileProtocol, LoadedConnect, NasLink, NetworkMount,
};

/// A server and the way to it.
#[derive(Clone)]
struct World {
    /// The link here, negotiated, in bits per second; absent where it does not say.
    link_bits: Option<u64>,
    /// What the narrowest place on the way carries, in bytes per second.
    path: f64,
    /// Whether packets queue there so that other connections see it.
    queues: bool,
    round_trip_s: f64,
    /// What the server's disk reads and writes, in bytes per second.
    disk: (f64, f64),
    /// What it takes to make something durable there.
    flush_s: f64,
    /// The server's own work for a request and for each MiB.
    work_s: (f64, f64),
    mount: NetworkMount,
    kind: &'static str,
    is_cold_known: bool,
}

fn gigabit() -> World {
    World {
        link_bits: Some(1_000_000_000),
        path: f64::INFINITY,
        queues: true,
        round_trip_s: 300e-6,
        disk: (400e6, 400e6),
        flush_s: 1e-3,
        work_s: (50e-6, 0.5e-3),
        mount: NetworkMount {
            protocol: FileProtocol::Nfs,
            version: Some("4.2".into()),
            transport: Some("tcp".into()),
            port: 2049,
            read_request_bytes: Some(1 << 20),
            write_request_bytes: Some(1 << 20),
            connections: None,
            is_sync: false,
            is_uncached: false,
            is_soft: false,
            is_encrypted: false,
            is_signed: false,
        },
        kind: "ethernet",
        is_cold_known: true,
    }
}

const MIB: f64 = 1024.0 * 1024.0;

impl World {
    fn run(&self) -> Run {
        let link = self.link_bits.map_or(f64::INFINITY, |bits| bits as f64 / 8.0 * 0.9415);
        let carried = link.min(self.path);
        let trips = if self.round_trip_s > 5e-3 { 6.0 } else { 1.0 };
        let large_s = trips * self.round_trip_s + MIB / carried + self.work_s.1 + self.work_s.0;
        let small_s = self.round_trip_s + self.work_s.0 + 4096.0 / carried;
        let times = [
            (job_names::SEQUENTIAL_READ, large_s, MIB),
            (job_names::SEQUENTIAL_WRITE, large_s.max(MIB / self.disk.1), MIB),
            (job_names::RANDOM_READ, small_s, 4096.0),
            (job_names::COMMIT, small_s + self.round_trip_s + self.flush_s, 4096.0),
        ];
        let mut run = slow_sd_card_run();
        run.doubts.clear();
        for (name, seconds, bytes) in times {
            let result = run.results.iter_mut().find(|result| result.job == name).unwrap();
            result.iops = Estimate::exact(1.0 / seconds);
            result.bytes_per_second = Estimate::exact(bytes / seconds);
            result.outcome = Outcome::Converged;
            result.doubts.clear();
        }
        let connect = |seconds: f64| ConnectTimes {
            samples: 9,
            least_ns: (seconds * 0.9e9) as u64,
            median_ns: (seconds * 1e9) as u64,
        };
        // The queue before the narrow place is a good part of what is under way.
        let queue_s = if self.queues && self.path < link { 0.3 * MIB / self.path } else { 20e-6 };
        let loaded = [job_names::SEQUENTIAL_READ, job_names::SEQUENTIAL_WRITE].map(|job| {
            LoadedConnect { job: job.into(), times: connect(self.round_trip_s + queue_s) }
        });
        let cold_s = large_s.max(MIB / self.disk.0);
        let cold = ColdRead {
            bytes: 64 << 20,
            first_bytes_per_second: MIB / cold_s,
            again_bytes_per_second: MIB / large_s,
        };
        run.target.filesystem = Some("nfs4".into());
        run.target.device = None;
        run.target.nas = Some(NasFacts {
            mount: self.mount.clone(),
            link: Fact::known(
                NasLink {
                    interface: "eth0".into(),
                    kind: self.kind.into(),
                    bits_per_second: self.link_bits,
                    duplex: Some("full".into()),
                    signal_dbm: None,
                    bus: None,
                    bus_bytes_per_second: None,
                },
                "/proc/net/route",
            ),
            connect: Fact::known(connect(self.round_trip_s), "connecting"),
            loaded: loaded.to_vec(),
            rpc: vec![],
            cold: if self.is_cold_known {
                Fact::known(cold, "an existing file")
            } else {
                Fact::unknown("no file of 32 MiB is there", "the share")
            },
        });
        run
    }
}

fn changed(change: impl Fn(&mut World)) -> World {
    let mut world = gigabit();
    change(&mut world);
    world
}

/// Each case, over a range of how narrow it is.
fn cases() -> Vec<(String, World, NasStage)> {
    let mut all = Vec::new();
    for (name, bits) in
        [("10 Mbit", 10_000_000), ("100 Mbit", 100_000_000), ("gigabit", 1_000_000_000)]
    {
        all.push((name.to_string(), changed(|w| w.link_bits = Some(bits)), NasStage::Link));
    }
    for path in [1e6, 5e6, 11.7e6, 30e6] {
        all.push((format!("a path of {path}"), changed(|w| w.path = path), NasStage::Path));
        let unknown = changed(|w| (w.path, w.link_bits) = (path, None));
        all.push((format!("a path of {path}, no rate"), unknown, NasStage::Path));
    }
    for trip in [20e-3, 40e-3, 100e-3] {
        all.push((
            format!("a trip of {trip}"),
            changed(|w| w.round_trip_s = trip),
            NasStage::RoundTrip,
        ));
    }
    for disk in [2e6, 10e6, 25e6] {
        all.push((
            format!("a disk of {disk}"),
            changed(|w| w.disk = (disk, disk)),
            NasStage::ServerDisk,
        ));
        let unread = changed(|w| (w.disk, w.is_cold_known) = ((disk, disk), false));
        all.push((format!("a disk of {disk}, unread"), unread, NasStage::ServerDisk));
    }
    all.push(("slow flushes".into(), changed(|w| w.flush_s = 150e-3), NasStage::ServerDisk));
    let sync = changed(|w| {
        w.mount.is_sync = true;
        w.flush_s = 20e-3;
    });
    all.push(("sync".into(), sync, NasStage::Sync));
    let small = changed(|w| {
        w.mount.read_request_bytes = Some(4096);
        w.work_s.1 = 60e-3;
    });
    all.push(("small requests".into(), small, NasStage::SmallRequests));
    let sealed = changed(|w| {
        w.mount.is_encrypted = true;
        w.work_s.1 = 60e-3;
    });
    all.push(("encrypted".into(), sealed, NasStage::Encryption));
    let radio = changed(|w| {
        (w.kind, w.link_bits, w.path, w.round_trip_s) = ("wifi", None, 6e6, 3e-3);
    });
    all.push(("Wi-Fi".into(), radio, NasStage::Link));
    // Behind a fair queue a connection does not wait, but both ways meet one ceiling.
    let fair = changed(|w| (w.path, w.queues) = (11.77e6, false));
    all.push(("a fair queue at 100 Mbit".into(), fair, NasStage::Path));
    all
}

#[test]
fn the_stage_that_was_made_narrow_is_named() {
    let mut wrong = Vec::new();
    for (name, world, narrow) in cases() {
        let found = verdict(&world.run()).unwrap();
        if found.narrow != Some(narrow) {
            wrong.push(format!("{name}: {:?} {:?} {}", found.narrow, found.stages, found.headline));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn answers_are_short_and_say_what_to_do() {
    for (name, world, _) in cases() {
        let found = verdict(&world.run()).unwrap();
        let words = found.headline.split_whitespace().count();
        assert!(words <= 25, "{name}: {words} words: {}", found.headline);
        assert!(found.headline.ends_with('.'), "{name}: {}", found.headline);
        assert!(!found.next.words.is_empty(), "{name}");
    }
}

/// A server with a slow program looks like nothing else that can be seen from here.
#[test]
fn what_nothing_explains_is_not_known() {
    let busy = changed(|w| w.work_s.1 = 60e-3);
    let found = verdict(&busy.run()).unwrap();
    assert_eq!((found.narrow, found.sureness), (None, Sureness::NotKnown));
    assert!(found.headline.starts_with("Not known"), "{}", found.headline);
}

#[test]
fn signs_alone_and_unsettled_figures_are_only_probable() {
    let sureness = |run: &Run| verdict(run).unwrap().sureness;
    let slow = changed(|w| w.link_bits = Some(100_000_000));
    assert_eq!(sureness(&slow.run()), Sureness::Sure);
    let mut open = slow.run();
    open.results.iter_mut().for_each(|result| result.outcome = Outcome::Inconclusive);
    assert_eq!(sureness(&open), Sureness::Probable);
    let fair = changed(|w| (w.path, w.queues) = (11.77e6, false));
    assert_eq!(sureness(&fair.run()), Sureness::Probable);
}

#[test]
fn a_run_on_no_share_or_without_its_figures_has_no_such_verdict() {
    assert!(verdict(&slow_sd_card_run()).is_none());
    let mut run = gigabit().run();
    run.results.retain(|result| result.job != job_names::COMMIT);
    assert!(verdict(&run).is_none());
}

/// A run with these times of large reads, large writes and commits, over the gigabit world.
fn with_times(world: &World, read_s: f64, write_s: f64, commit_s: f64) -> NasVerdict {
    let mut run = world.run();
    for (name, seconds, bytes) in [
        (job_names::SEQUENTIAL_READ, read_s, MIB),
        (job_names::SEQUENTIAL_WRITE, write_s, MIB),
        (job_names::COMMIT, commit_s, 4096.0),
    ] {
        let result = run.results.iter_mut().find(|result| result.job == name).unwrap();
        result.iops = Estimate::exact(1.0 / seconds);
        result.bytes_per_second = Estimate::exact(bytes / seconds);
    }
    verdict(&run).unwrap()
}

#[test]
fn a_large_write_that_nfs_makes_durable_is_no_slow_disk() {
    // Each takes a flush of the disk, 25 ms, beside the way through a gigabit.
    let found = with_times(&gigabit(), 9.5e-3, 9.5e-3 + 25e-3, 26e-3);
    assert_eq!(found.narrow, Some(NasStage::Link), "{:?}", found.stages);
    // SMB flushes when it is told to.
    let smb = changed(|w| w.mount.protocol = FileProtocol::Smb);
    let found = with_times(&smb, 9.5e-3, 9.5e-3 + 25e-3, 2e-3);
    assert_eq!(found.narrow, Some(NasStage::ServerDisk), "{:?}", found.stages);
    assert_eq!(found.sureness, Sureness::Probable, "slow writes are all that shows it");
}

#[test]
fn a_link_that_is_not_full_is_no_sure_answer_and_its_remedy_is_another() {
    let found = with_times(&gigabit(), 15e-3, 15e-3, 1e-3);
    assert_eq!((found.narrow, found.sureness), (Some(NasStage::Link), Sureness::Probable));
    assert!(found.next.words.contains("several files at a time"), "{}", found.next.words);
    let full = with_times(&gigabit(), 9.2e-3, 9.2e-3, 1e-3);
    assert_eq!((full.narrow, full.sureness), (Some(NasStage::Link), Sureness::Sure));
    assert!(full.next.words.contains("as fast as this link can be"), "{}", full.next.words);
}

#[test]
fn what_a_radio_does_to_writes_is_not_put_on_the_disk() {
    let radio =
        changed(|w| (w.kind, w.link_bits, w.round_trip_s, w.queues) = ("wifi", None, 3e-3, false));
    let found = with_times(&radio, 52e-3, 210e-3, 10e-3);
    assert_eq!((found.narrow, found.sureness), (Some(NasStage::Link), Sureness::Probable));
}

#[test]
fn a_queue_behind_a_link_of_unknown_rate_is_probably_the_network_beyond() {
    let found = verdict(&changed(|w| (w.path, w.link_bits) = (5e6, None)).run()).unwrap();
    assert_eq!((found.narrow, found.sureness), (Some(NasStage::Path), Sureness::Probable));
}

#[test]
fn without_small_reads_slow_commits_are_the_disk_s() {
    let mut run = gigabit().run();
    run.results.retain(|result| result.job != job_names::RANDOM_READ);
    for (name, seconds, bytes) in
        [(job_names::SEQUENTIAL_WRITE, 0.7, MIB), (job_names::COMMIT, 1.0, 4096.0)]
    {
        let result = run.results.iter_mut().find(|result| result.job == name).unwrap();
        result.iops = Estimate::exact(1.0 / seconds);
        result.bytes_per_second = Estimate::exact(bytes / seconds);
    }
    assert_eq!(verdict(&run).unwrap().narrow, Some(NasStage::ServerDisk));
}
