//! `/proc/self/mountstats`: what the NFS client counted for each kind of operation since the mount.
//!
//! Format: `nfs_show_stats()` (fs/nfs/super.c) and `_print_rpc_iostats()` (net/sunrpc/stats.c): operation, requests,
//! transmissions, major timeouts, bytes sent, bytes received, and queueing, round-trip and execution time in
//! milliseconds; newer kernels put the number of errors behind. The counters are sums since the mount, so only the difference
//! of two looks says what happened between them.

use rubus_vocabulary::mount_entry::unescape_octal;
use rubus_vocabulary::nas::RpcTimes;

/// The counters of the mount at that point, each operation once; empty where it is none of NFS.
pub fn of_mount(text: &str, point: &str) -> Vec<RpcTimes> {
    let mut found = Vec::new();
    let mut is_it = false;
    let mut is_counted = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("device ") {
            let place =
                rest.split_once(" mounted on ").and_then(|(_, rest)| rest.split_once(" with "));
            is_it = place.is_some_and(|(place, _)| unescape_octal(place) == point);
            is_counted = false;
            // Of two mounts on one point the later one is seen.
            if is_it {
                found.clear();
            }
        } else if line.trim() == "per-op statistics" {
            is_counted = true;
        } else if is_it && is_counted {
            found.extend(counters(line));
        }
    }
    found
}

/// What was counted between two looks, operations without any left out. A counter that went back (mounted again) gives
/// nothing for its operation.
pub fn between(before: &[RpcTimes], after: &[RpcTimes]) -> Vec<RpcTimes> {
    let each = after.iter().filter_map(|late| {
        let none = RpcTimes::default();
        let early = before.iter().find(|early| early.operation == late.operation).unwrap_or(&none);
        Some(RpcTimes {
            operation: late.operation.clone(),
            operations: late.operations.checked_sub(early.operations)?,
            retransmissions: late.retransmissions.checked_sub(early.retransmissions)?,
            timeouts: late.timeouts.checked_sub(early.timeouts)?,
            queue_ms: late.queue_ms.checked_sub(early.queue_ms)?,
            round_trip_ms: late.round_trip_ms.checked_sub(early.round_trip_ms)?,
            execute_ms: late.execute_ms.checked_sub(early.execute_ms)?,
        })
    });
    each.filter(|times| times.operations > 0).collect()
}

fn counters(line: &str) -> Option<RpcTimes> {
    let (operation, numbers) = line.trim().split_once(": ")?;
    let numbers: Option<Vec<u64>> =
        numbers.split_whitespace().map(|number| number.parse().ok()).collect();
    let [operations, sent, timeouts, _, _, queue_ms, round_trip_ms, execute_ms, ..] = numbers?[..]
    else {
        return None;
    };
    Some(RpcTimes {
        operation: operation.to_string(),
        operations,
        retransmissions: sent.saturating_sub(operations),
        timeouts,
        queue_ms,
        round_trip_ms,
        execute_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of Linux 6.1.
    const TEXT: &str = "\
device /dev/root mounted on / with fstype ext4
device nas:/media mounted on /mnt/my\\040nas with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,hard,proto=tcp,timeo=600,retrans=2,sec=sys
\tage:\t4321
\tcaps:\tcaps=0xfffbc03f,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t12 40 0 0 9 3 100 0 0 0 0 8 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t1000 2000 0 0 1000 2000 0 0
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 769 0 1 0 4 400 400 0 400 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 1 1 0
\t        READ: 250 253 1 40000 262144000 30 2500 2600 0
\t       WRITE: 100 100 0 104857600 13600 900 4000 4950 0
\t      COMMIT: 10 10 0 1800 1040 0 230 231 0
device nas:/other mounted on /mnt/other with fstype nfs statvers=1.1
\tper-op statistics
\t        READ: 7 7 0 1 1 1 1 1
";

    #[test]
    fn each_operation_of_the_mount_is_read() {
        let found = of_mount(TEXT, "/mnt/my nas");
        let read = found.iter().find(|times| times.operation == "READ").unwrap();
        assert_eq!((read.operations, read.retransmissions, read.timeouts), (250, 3, 1));
        assert_eq!((read.queue_ms, read.round_trip_ms, read.execute_ms), (30, 2500, 2600));
        assert_eq!(found.len(), 4);
        // Kernels before 5.3 have no number of errors.
        assert_eq!(of_mount(TEXT, "/mnt/other")[0].execute_ms, 1);
        assert!(of_mount(TEXT, "/").is_empty());
    }

    #[test]
    fn two_looks_give_what_happened_between() {
        let before = of_mount(TEXT, "/mnt/my nas");
        let later =
            TEXT.replace("COMMIT: 10 10 0 1800 1040 0 230 231", "COMMIT: 30 31 0 1 1 0 830 835");
        let passed = between(&before, &of_mount(&later, "/mnt/my nas"));
        assert_eq!(passed.len(), 1);
        assert_eq!(
            (passed[0].operations, passed[0].retransmissions, passed[0].round_trip_ms),
            (20, 1, 600)
        );
        // It was mounted again meanwhile.
        assert!(between(&of_mount(&later, "/mnt/my nas"), &before).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\\n\\t]{0,400}") {
            of_mount(&format!("device a mounted on /m with fstype nfs\nper-op statistics\n{text}"), "/m");
        }
    }
}
