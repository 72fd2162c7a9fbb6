//! Why some predictions miss, so that measuring everything again keeps what was found out.

use super::Subject;
use super::case::Case;

/// Errors below this need no explanation.
const NOTABLE: f64 = 0.10;

/// Subject, a part of the case's name, the sign of the error (positive: predicted too fast), and why.
const NOTES: &[(Subject, &str, f64, &str)] = &[
    (
        Subject::Swap,
        "zswap, then disk: 1.40",
        1.0,
        "just behind the cliff the share of pages on the disk is a small difference of large numbers",
    ),
    (Subject::Network, "nbdkit:", -1.0, WAKING),
    (Subject::Network, "qemu-nbd:", -1.0, WAKING),
    (Subject::Network, "rubus serve:", 1.0, TURNS),
    (Subject::Compressing, "zlib", 1.0, KERNELS_ZLIB),
    (Subject::Kernel, "lost, 64 KiB", 1.0, WINDOW),
    (Subject::Buses, "dm-crypt on usb-storage, 64 KiB", 1.0, HELD),
    (Subject::Buses, "usb-storage", 1.0, SLOWER),
    (Subject::Buses, "dm-crypt on NVMe, 4 KiB reads, 64", 1.0, ALIKE),
    (Subject::Kernel, "dm-delay", -1.0, TICKS),
    (Subject::Kernel, "RAID-1 of two null_blk, 4 KiB reads", -1.0, LESS_BUSY),
    (Subject::Kernel, "RAID-1 of two null_blk, 64 KiB reads", -1.0, LESS_BUSY),
    (Subject::Kernel, "RAID-1 of two scsi_debug, 4 KiB reads", -1.0, LESS_BUSY),
];

/// Of servers that hand each request to another thread.
const WAKING: &str = "alone, a request waits for a processor that went to sleep, four in flight keep it awake: they are more than four times as many, \
     which no bound of constant costs allows";

/// Of a server and a client that answer and send in batches.
const TURNS: &str = "client and server take turns, since each sends all that is due at once and sleeps until the other one has: their processors' time \
     by request adds up, and together they fill one processor (seen at both ends with 8 to 32 in flight); with 64, from which the stage was taken, a request \
     took less than that sum, so both worked at the same time";

/// Of the kernel's copy.
const KERNELS_ZLIB: &str =
    "btrfs with the kernel's zlib is up to a fifth slower than the library; it is not known why";

/// Of a bridge that takes one command.
const HELD: &str = "the bridge's only command waits for its driver, and the driver for the processor, which deciphers something else meanwhile; the model \
     lets the bridge go on";

/// Of a bridge.
const SLOWER: &str = "with the slow disk the bridge takes longer for a command than the disk takes longer; it is not known why";

/// Of a layer on a controller.
const ALIKE: &str = "missed alike in two runs; it is not known why";

/// Of lost packets.
const WINDOW: &str = "losses narrow TCP's window, and netem loses all packets of a burst that the kernel hands on as one; the model knows neither";

/// Of a timer that is coarser than what is below it.
const TICKS: &str =
    "the layer waits in ticks of 4 ms, and what the device below takes falls into the same tick";

/// Of a mirror.
const LESS_BUSY: &str =
    "a read goes to the disk that has less to do; the model spreads reads by chance";

/// The explanation of a case, when it misses and one is known.
pub(super) fn of(case: &Case) -> Option<&'static str> {
    if case.error().abs() < NOTABLE {
        return None;
    }
    let mut known = NOTES.iter();
    known
        .find(|(subject, part, sign, _)| {
            *subject == case.forecast.subject
                && case.forecast.name.contains(part)
                && case.error() * sign > 0.0
        })
        .map(|note| note.3)
}
