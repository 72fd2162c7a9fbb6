//! A network disk in words.

use rubus_vocabulary::cluster_facts::{ClusterChange, ClusterFacts, Dip, NodeLoad};
use rubus_vocabulary::result::{NetworkFacts, TargetFacts, TargetKind};
use rubus_vocabulary::units::{bytes_iec, bytes_si, duration_ns};

use crate::words;

/// What was measured and where it was: "a test file in /mnt", "the network disk nbd://pi/card".
pub fn measured(target: &TargetFacts) -> String {
    let kind = words::target_kind(target.kind);
    match &target.network {
        Some(network) => format!("{kind} {}", network.uri),
        None if target.kind == TargetKind::Pool => format!("{kind} {}", target.path),
        None => format!("{kind} in {}", target.path),
    }
}

/// One sentence without a full stop: where it is, how large, how far, how it was spoken to.
pub fn network(network: &NetworkFacts) -> String {
    let way = match &network.tls {
        Some(tls) => format!("encrypted ({tls})"),
        None => "in the clear".into(),
    };
    let mut parts = vec![format!("{} at {}", bytes_si(network.export_bytes), network.peer), way];
    if network.connections > 1 {
        parts.push(format!("{} connections", network.connections));
    }
    if let Some(trip) = &network.round_trip {
        parts.push(format!(
            "a read of {} takes {} there and back",
            bytes_iec(u64::from(trip.read_bytes)),
            duration_ns(trip.median_ns)
        ));
    }
    parts.join(", ")
}

/// What the server offers, in words.
pub fn offer(network: &NetworkFacts) -> String {
    let sizes = &network.block_sizes;
    let range = format!(
        "requests of {} to {}{}",
        bytes_iec(u64::from(sizes.least_bytes)),
        bytes_iec(u64::from(sizes.most_bytes)),
        if sizes.is_stated { "" } else { " (by default)" }
    );
    let can = [
        (network.is_read_only, "read-only"),
        (network.structured_replies, "structured replies"),
        (network.can_flush, "flush"),
        (network.can_fua, "FUA"),
        (network.can_trim, "trim"),
        (network.can_write_zeroes, "write zeroes"),
        (network.can_multi_conn, "several connections"),
    ];
    let can = can.iter().filter(|(can, _)| *can).map(|(_, what)| *what);
    let all: Vec<String> =
        [network.handshake.clone(), range].into_iter().chain(can.map(str::to_string)).collect();
    all.join(", ")
}

/// The cluster that an image lies in: "Ceph 18.2.7 reef, 3 copies, 4 of 4 OSDs up at the start".
pub fn cluster(facts: &ClusterFacts) -> String {
    let release = facts.release.as_deref().unwrap_or("of an unknown release");
    format!(
        "Ceph {release}, {}, {} of {} OSDs up at the start",
        facts.layout, facts.osds_up, facts.osds
    )
}

/// What happened to it meanwhile, one sentence each, and why that may not be all.
pub fn happened(facts: &ClusterFacts) -> Vec<String> {
    let changes = facts.changes.iter().map(ClusterChange::words);
    let dips = facts.dips.iter().map(|dip: &Dip| format!("{}: {}", dip.job, dip.words()));
    let silence = facts.not_watched.iter().map(|why| format!("not watched {why}"));
    changes.chain(dips).chain(loads(facts)).chain(silence).collect()
}

/// What its machines spent, a sentence for the heaviest of each job.
pub fn loads(facts: &ClusterFacts) -> Vec<String> {
    let loads = heaviest(&facts.nodes).into_iter();
    loads.map(NodeLoad::words).collect()
}

/// Of each job, the machine whose processors worked most, and the one whose link carried most, if that is another.
fn heaviest(loads: &[NodeLoad]) -> Vec<&NodeLoad> {
    let carried = |load: &NodeLoad| load.received_bytes_per_second + load.sent_bytes_per_second;
    let mut found: Vec<&NodeLoad> = Vec::new();
    for of_job in loads.iter().map(|load| &load.job) {
        if found.iter().any(|load| load.job == *of_job) {
            continue;
        }
        let all = || loads.iter().filter(|load| load.job == *of_job);
        let busiest = all().max_by(|a, b| a.busy.total_cmp(&b.busy));
        let fullest = all().max_by(|a, b| carried(a).total_cmp(&carried(b)));
        found.extend(busiest);
        found.extend(fullest.filter(|fullest| busiest.is_none_or(|one| one.node != fullest.node)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_disk_says_where_it_is_and_what_it_offers() {
        let run = rubus_fixtures::network_run();
        let facts = run.target.network.as_ref().expect("it is one");
        insta::assert_snapshot!(measured(&run.target), @"the network disk nbds://attic.example/card?tls-certificates=/etc/pki/nbd");
        insta::assert_snapshot!(network(facts), @"31.9 GB at 192.0.2.7:10809, encrypted (TLS 1.3, ChaCha20-Poly1305), a read of 512 B takes 1.48 ms there and back");
        insta::assert_snapshot!(offer(facts), @"fixed newstyle, requests of 512 B to 32.0 MiB, structured replies, flush, FUA, trim, write zeroes, several connections");
        let mut plain = facts.clone();
        plain.tls = None;
        plain.connections = 4;
        plain.round_trip = None;
        insta::assert_snapshot!(network(&plain), @"31.9 GB at 192.0.2.7:10809, in the clear, 4 connections");
    }

    #[test]
    fn a_cluster_says_what_it_is_and_what_happened_to_it() {
        let facts = rubus_fixtures::troubled_cluster();
        insta::assert_snapshot!(cluster(&facts), @"Ceph 18.2.7 reef, erasure code 2+1, 4 of 4 OSDs up at the start");
        insta::assert_snapshot!(happened(&facts).join("\n"), @r"
        osd.1 was down (it was silent: it hangs, or its machine or network is gone) from 33.1 s to 61.0 s
        random-write: throughput fell to 0 % of what it was at 12.0 s, and was back at 33.5 s
        random-write: node1 worked 43 % of its processors' time; eth0 received 3.00 MB/s, sent 1.50 MB/s
        random-write: node2 worked 20 % of its processors' time; eth0 received 11.5 MB/s, sent 5.75 MB/s
        not watched after 62 s: it has ended
        ");
    }
}
