//! The answer about a share in words: what is narrow, the figure that matters, and what to change.

use rubus_draw::words::roughly;
use rubus_vocabulary::job_names;
use rubus_vocabulary::nas::{FileProtocol, NasFacts, RpcTimes};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::{bit_rate, bytes_iec, duration_ns, percent, rate_si};

use super::stages::{Shares, durable_s, is_near, payload, round_trip_s};
use super::{Load, NasStage, Sureness, Times, queueing_s};

const MIB: f64 = 1024.0 * 1024.0;

/// A stage as the row of a table.
pub fn stage_name(stage: NasStage) -> &'static str {
    match stage {
        NasStage::Link => "this machine's link",
        NasStage::Path => "the network beyond it",
        NasStage::RoundTrip => "round trips",
        NasStage::Sync => "the mount option sync",
        NasStage::SmallRequests => "small requests",
        NasStage::Uncached => "no cache here",
        NasStage::Encryption => "encryption",
        NasStage::ServerDisk => "the server's disk",
        NasStage::ServerWork => "the server's own work, or not told apart",
    }
}

/// The answer, in at most 25 words.
pub(super) fn headline(
    narrow: Option<NasStage>,
    sureness: Sureness,
    facts: &NasFacts,
    times: &Times,
) -> String {
    let Some(stage) = narrow else {
        return format!(
            "Not known what holds the NAS back: 1 MiB from its memory takes {}, and neither link nor round trip explains that.",
            span(times.read_s)
        );
    };
    let probably = match sureness {
        Sureness::Sure => "",
        Sureness::Probable | Sureness::NotKnown => ", probably,",
    };
    let rate = |seconds: f64| rate_si(MIB / seconds);
    let trip = span(round_trip_s(facts, times));
    match stage {
        NasStage::Link => format!("{}{probably} {}", link_name(facts), link_figure(facts, times)),
        NasStage::Path => {
            let queue = [job_names::SEQUENTIAL_READ, job_names::SEQUENTIAL_WRITE];
            let queue = queue.into_iter().filter_map(|job| queueing_s(facts, job));
            let queued = match queue.reduce(f64::max).filter(|queue_s| *queue_s > 1e-3) {
                Some(queue_s) => format!("; packets queue {}", span(queue_s)),
                None => String::new(),
            };
            format!(
                "The network beyond this machine{probably} holds the NAS back: {} read, {} written{queued}.",
                rate(times.read_s),
                rate(times.write_s)
            )
        }
        NasStage::RoundTrip => format!(
            "The round trip{probably} holds the NAS back: {trip} for each request. Opening 1,000 files waits {} for it.",
            roughly(Load::SMALL * round_trip_s(facts, times))
        ),
        NasStage::Sync => format!(
            "The mount option sync{probably} holds the NAS back: each write waits {} for the server's disk.",
            span(times.commit_s)
        ),
        NasStage::SmallRequests => {
            let sizes = [facts.mount.read_request_bytes, facts.mount.write_request_bytes];
            let least = sizes.into_iter().flatten().min().unwrap_or(0);
            format!(
                "Small requests{probably} hold the NAS back: {} each, {} read, {} written.",
                bytes_iec(least),
                rate(times.read_s),
                rate(times.write_s)
            )
        }
        NasStage::Uncached => format!(
            "The mount without a cache{probably} holds the NAS back: each read of a file waits {}.",
            span(times.small_s)
        ),
        NasStage::Encryption => format!(
            "Encryption{probably} holds the NAS back: {} read, {} written.",
            rate(times.read_s),
            rate(times.write_s)
        ),
        NasStage::ServerDisk => server_disk(probably, facts, times),
        NasStage::ServerWork => format!(
            "The server's own work{probably} holds the NAS back: {} for each request of 1 MiB.",
            span(times.read_s)
        ),
    }
}

/// Which of its three figures says most: reading, writing, or making durable.
fn server_disk(probably: &str, facts: &NasFacts, times: &Times) -> String {
    let begin = format!("The server's disk{probably} holds the NAS back:");
    let cold = facts.cold.value();
    if let Some(cold) =
        cold.filter(|cold| 2.0 * cold.first_bytes_per_second < cold.again_bytes_per_second)
    {
        return format!(
            "{begin} it reads {}, and from its memory {} arrive.",
            rate_si(cold.first_bytes_per_second),
            rate_si(cold.again_bytes_per_second)
        );
    }
    let commit_more_s = (times.commit_s - 2.0 * round_trip_s(facts, times)).max(0.0);
    let durable_s = durable_s(facts, commit_more_s);
    let write_more_s = Load::LARGE * (times.write_s - times.read_s - durable_s);
    if write_more_s > Load::COMMITS * times.commit_s {
        return format!(
            "{begin} it writes {}, and from its memory {} arrive.",
            rate_si(MIB / times.write_s),
            rate_si(MIB / times.read_s)
        );
    }
    let trips_s = 2.0 * round_trip_s(facts, times);
    format!(
        "{begin} a commit takes {}, and only {} of that is the network.",
        span(times.commit_s),
        span(trips_s.min(times.commit_s))
    )
}

fn link_name(facts: &NasFacts) -> String {
    match facts.link.value() {
        Some(link) if link.kind == "wifi" => match link.signal_dbm {
            Some(dbm) => format!("Wi-Fi ({}, {dbm} dBm)", link.interface),
            None => format!("Wi-Fi ({})", link.interface),
        },
        Some(link) => format!("The link {}", link.interface),
        None => "The link".into(),
    }
}

/// "holds the NAS back: 100 Mbit/s, and reads use 97 % of what that carries."
fn link_figure(facts: &NasFacts, times: &Times) -> String {
    let (read, write) = (MIB / times.read_s, MIB / times.write_s);
    let both =
        || format!("holds the NAS back: {} read, {} written.", rate_si(read), rate_si(write));
    let Some(link) = facts.link.value() else {
        return both();
    };
    let Some(carried) = payload(link) else {
        return both();
    };
    let share = percent((read.max(write) / carried).min(1.0));
    let bus = link.bus_bytes_per_second.filter(|bus| *bus <= carried);
    let at = match (bus, &link.bus, link.bits_per_second) {
        (Some(_), Some(bus), _) => format!("behind {bus}"),
        (_, _, Some(bits)) => bit_rate(bits as f64),
        _ => rate_si(carried),
    };
    let half = if link.duplex.as_deref() == Some("half") { " half duplex" } else { "" };
    let faster = if read >= write { "reads" } else { "writes" };
    format!("holds the NAS back: {at}{half}, and {faster} use {share} of what that carries.")
}

/// What to change.
pub(super) fn next(narrow: Option<NasStage>, facts: &NasFacts, times: &Times) -> NextStep {
    let words = match narrow {
        None => {
            "run iperf3 between both machines and look at the server's processor meanwhile (top): the one at its limit is narrow"
        }
        Some(NasStage::Link) => return NextStep::by_hand(link_remedy(facts, times)),
        Some(NasStage::Path) => {
            "look at the rate of the server's port and of the switch between: a 100 Mbit/s port, a radio link or powerline there is the usual cause"
        }
        Some(NasStage::RoundTrip) => {
            "connect by cable instead of Wi-Fi or a tunnel; for many small files, pack them or copy several at a time (for NFS also nconnect=4)"
        }
        Some(NasStage::Sync) => {
            "mount it without sync; until a program flushes or closes its file, a power cut of this machine loses what it wrote last"
        }
        Some(NasStage::SmallRequests) => {
            "mount it with rsize=1048576,wsize=1048576, and see what the server allows"
        }
        Some(NasStage::Uncached) => {
            "mount it without noac, actimeo=0 and cache=none, unless several machines write the same files"
        }
        Some(NasStage::Encryption) => match facts.mount.protocol {
            FileProtocol::Smb => {
                "on a network that you trust, mount it without seal; else use processors with AES instructions at both ends"
            }
            FileProtocol::Nfs => {
                "on a network that you trust, mount it with sec=krb5i; else use processors with AES instructions at both ends"
            }
        },
        Some(NasStage::ServerDisk) => {
            "run rubus on the server, on the disk itself; a faster network changes nothing. Exporting with async is fast, and a power cut of the server then loses files"
        }
        Some(NasStage::ServerWork) => "look at the server's processor meanwhile (top)",
    };
    NextStep::by_hand(words)
}

fn link_remedy(facts: &NasFacts, times: &Times) -> &'static str {
    let Some(link) = facts.link.value() else {
        return "connect by a faster link";
    };
    if link.kind == "wifi" {
        return "connect by cable; else use the 5 GHz band, near the access point";
    }
    if link.duplex.as_deref() == Some("half") {
        return "let both ends of the cable agree by themselves, and try another cable: half duplex is a fault";
    }
    if link.bus_bytes_per_second.is_some_and(|bus| payload(link) == Some(bus)) {
        return "move the adapter to a USB 3 port, if the board has one; else take another board";
    }
    match link.bits_per_second {
        Some(bits) if bits < 1_000_000_000 => {
            "try another cable first (a gigabit needs all four pairs), then another port of the switch; a board whose chip does 100 Mbit/s stays at that"
        }
        _ if !payload(link).is_some_and(|rate| is_near(rate, times)) => {
            "one request after the other leaves a part of the link free: copy several files at a time (for NFS also nconnect=4); then 2.5 Gbit/s at both ends is the next step"
        }
        _ => {
            "it is as fast as this link can be: 2.5 Gbit/s at both ends and in the switch is the next step, a faster disk changes nothing"
        }
    }
}

/// What else there is to know.
pub(super) fn notes(facts: &NasFacts, found: &Shares) -> Vec<String> {
    let mut notes = Vec::new();
    let protocol = facts.mount.protocol.name();
    if found.link_bytes_per_second.is_none() {
        notes.push("What this machine's link carries is not known, so it cannot be told from the network beyond it.".into());
    }
    match (facts.connect.value(), facts.connect.reason()) {
        (Some(times), _) => notes.push(format!(
            "A round trip to the server's kernel takes {} ({} connections).",
            duration_ns(times.median_ns),
            times.samples
        )),
        (None, reason) => notes.push(format!(
            "The round trip is not known ({}): it counts as the server's work.",
            reason.unwrap_or("no answer")
        )),
    }
    match (facts.cold.value(), facts.cold.reason()) {
        (Some(cold), _) => notes.push(format!(
            "An existing file: {} at first and {} from the server's memory, {} each. What was read there lately may have been in memory the first time.",
            rate_si(cold.first_bytes_per_second),
            rate_si(cold.again_bytes_per_second),
            bytes_iec(cold.bytes)
        )),
        (None, reason) => notes.push(format!(
            "How fast the server's disk reads is not known: {}. The figures of reading are those of its memory.",
            reason.unwrap_or("it was not measured")
        )),
    }
    notes.extend(rpc_note(&facts.rpc));
    if facts.rpc.is_empty() {
        notes.push(format!("{protocol} counts no times here: they are those of whole operations."));
    }
    let again: u64 = facts.rpc.iter().map(|times| times.retransmissions).sum();
    if again > 0 {
        notes.push(format!(
            "{again} requests were sent again: packets were lost, or the server was away."
        ));
    }
    notes
}

/// "NFS counted 250 READ of 10.0 ms, 40 COMMIT of 23.0 ms, network and server together."
fn rpc_note(rpc: &[RpcTimes]) -> Option<String> {
    // Version 4.2 reads with READ_PLUS (RFC 7862).
    let shown = ["READ", "READ_PLUS", "WRITE", "COMMIT", "GETATTR"];
    let each = shown.iter().filter_map(|name| {
        let times = rpc.iter().find(|times| times.operation == *name)?;
        let mean_ms = times.round_trip_ms as f64 / times.operations.max(1) as f64;
        Some(format!("{} {name} of {}", times.operations, span(mean_ms / 1e3)))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty())
        .then(|| format!("NFS counted {}: network and server together.", each.join(", ")))
}

fn span(seconds: f64) -> String {
    duration_ns((seconds * 1e9).round() as u64)
}
