//! The published figures, as they were printed. iozone and fio meant 1024 bytes by a kB; the articles
//! 10^6 bytes by an MB.

use crate::published::{Aside, DeviceKind, Published, Reference};
use crate::spec::{Direction, Pattern};

use Direction::{Read, Write};
use Pattern::{Random, Sequential};

const KB: f64 = 1024.0;
const MB: f64 = 1e6;

const DESKTOP: &str =
    "an article of March 2018 on a Raspberry Pi 3 desktop with btrfs, a USB SSD and zswap";
const NETWORK: &str = "a retrospective on network block devices with a Raspberry Pi 2";
const SYSTEM: &str = "a Czech article series of 2019 on 64-bit kernels, ciphers and SD cards";

/// 4 KiB, 512 KiB or 16 MiB at depth 1.
const fn iozone(
    job: &'static str,
    direction: Direction,
    pattern: Pattern,
    record_kib: u32,
    rate: f64,
) -> Published {
    Published {
        job,
        direction,
        pattern,
        block_bytes: Some(record_kib << 10),
        queue_depth: Some(1),
        bytes_per_second: rate * KB,
    }
}

/// Blocks and depth that the article does not name.
const fn unnamed(
    job: &'static str,
    direction: Direction,
    pattern: Pattern,
    bytes_per_second: f64,
) -> Published {
    Published { job, direction, pattern, block_bytes: None, queue_depth: None, bytes_per_second }
}

const IOZONE: &str = "iozone -e -I -a -s 100M -r 4k -r 512k -r 16M -i 0 -i 1 -i 2";

const PI3_USB_SSD: [Published; 18] = [
    iozone("write-4k", Write, Sequential, 4, 10885.0),
    iozone("rewrite-4k", Write, Sequential, 4, 11722.0),
    iozone("read-4k", Read, Sequential, 4, 11881.0),
    iozone("reread-4k", Read, Sequential, 4, 12764.0),
    iozone("random-read-4k", Read, Random, 4, 11026.0),
    iozone("random-write-4k", Write, Random, 4, 9815.0),
    iozone("write-512k", Write, Sequential, 512, 26928.0),
    iozone("rewrite-512k", Write, Sequential, 512, 27430.0),
    iozone("read-512k", Read, Sequential, 512, 26352.0),
    iozone("reread-512k", Read, Sequential, 512, 26657.0),
    iozone("random-read-512k", Read, Random, 512, 26092.0),
    iozone("random-write-512k", Write, Random, 512, 26775.0),
    iozone("write-16m", Write, Sequential, 16384, 31640.0),
    iozone("rewrite-16m", Write, Sequential, 16384, 31292.0),
    iozone("read-16m", Read, Sequential, 16384, 28698.0),
    iozone("reread-16m", Read, Sequential, 16384, 30284.0),
    iozone("random-read-16m", Read, Random, 16384, 30063.0),
    iozone("random-write-16m", Write, Random, 16384, 31284.0),
];

const PI3_CARD: [Published; 18] = [
    iozone("write-4k", Write, Sequential, 4, 3061.0),
    iozone("rewrite-4k", Write, Sequential, 4, 3043.0),
    iozone("read-4k", Read, Sequential, 4, 9279.0),
    iozone("reread-4k", Read, Sequential, 4, 9435.0),
    iozone("random-read-4k", Read, Random, 4, 8722.0),
    iozone("random-write-4k", Write, Random, 4, 3346.0),
    iozone("write-512k", Write, Sequential, 512, 18953.0),
    iozone("rewrite-512k", Write, Sequential, 512, 19084.0),
    iozone("read-512k", Read, Sequential, 512, 22630.0),
    iozone("reread-512k", Read, Sequential, 512, 22427.0),
    iozone("random-read-512k", Read, Random, 512, 22594.0),
    iozone("random-write-512k", Write, Random, 512, 14009.0),
    iozone("write-16m", Write, Sequential, 16384, 19316.0),
    iozone("rewrite-16m", Write, Sequential, 16384, 20004.0),
    iozone("read-16m", Read, Sequential, 16384, 22959.0),
    iozone("reread-16m", Read, Sequential, 16384, 22923.0),
    iozone("random-read-16m", Read, Random, 16384, 22812.0),
    iozone("random-write-16m", Write, Random, 16384, 19043.0),
];

const PI2_CARD: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 1031.0 * KB),
    unnamed("random-write", Write, Random, 2333.0 * KB),
    unnamed("sequential-read", Read, Sequential, 16106.0 * KB),
    unnamed("random-read", Read, Random, 5260.0 * KB),
];

const PI2_NBD: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 9798.0 * KB),
    unnamed("random-write", Write, Random, 3258.0 * KB),
    unnamed("sequential-read", Read, Sequential, 19156.0 * KB),
    unnamed("random-read", Read, Random, 12867.0 * KB),
];

const PI4_CARD_A1: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 25.2 * MB),
    unnamed("random-write", Write, Random, 3.88 * MB),
    unnamed("sequential-read", Read, Sequential, 44.0 * MB),
    unnamed("random-read", Read, Random, 8.94 * MB),
];

const PI3_CARD_A1: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 19.4 * MB),
    unnamed("random-write", Write, Random, 3.57 * MB),
    unnamed("sequential-read", Read, Sequential, 22.6 * MB),
    unnamed("random-read", Read, Random, 7.37 * MB),
];

const PI3_OVERCLOCKED_CARD_A1: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 21.1 * MB),
    unnamed("random-write", Write, Random, 3.57 * MB),
    unnamed("sequential-read", Read, Sequential, 37.3 * MB),
    unnamed("random-read", Read, Random, 8.7 * MB),
];

const PI4_CARD_A2: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 31.8 * MB),
    unnamed("random-write", Write, Random, 3.16 * MB),
    unnamed("sequential-read", Read, Sequential, 43.8 * MB),
    unnamed("random-read", Read, Random, 6.05 * MB),
];

const PI3PLUS_CARD_A2: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 20.4 * MB),
    unnamed("random-write", Write, Random, 3.28 * MB),
    unnamed("sequential-read", Read, Sequential, 22.7 * MB),
    unnamed("random-read", Read, Random, 5.43 * MB),
];

const PI3PLUS_OVERCLOCKED_CARD_A2: [Published; 4] = [
    unnamed("sequential-write", Write, Sequential, 23.2 * MB),
    unnamed("random-write", Write, Random, 3.31 * MB),
    unnamed("sequential-read", Read, Sequential, 37.0 * MB),
    unnamed("random-read", Read, Random, 6.11 * MB),
];

/// Everything that a suite's jobs can be compared with.
pub const REFERENCES: [Reference; 10] = [
    Reference {
        id: "pi3-usb-ssd",
        board: "Raspberry Pi 3 Model B",
        kind: DeviceKind::Usb,
        device: "32 GB M.2 SATA SSD, used, USB 3 enclosure on USB 2",
        filesystem: None,
        tool: IOZONE,
        source: DESKTOP,
        note: "",
        figures: &PI3_USB_SSD,
    },
    Reference {
        id: "pi3-card-f2fs",
        board: "Raspberry Pi 3 Model B",
        kind: DeviceKind::Card,
        device: "microSD card",
        filesystem: Some("f2fs"),
        tool: IOZONE,
        source: DESKTOP,
        note: "",
        figures: &PI3_CARD,
    },
    Reference {
        id: "pi2-card",
        board: "Raspberry Pi 2",
        kind: DeviceKind::Card,
        device: "microSD card",
        filesystem: None,
        tool: "fio, tiobench job file, 60 s each",
        source: NETWORK,
        note: "the article does not print the size of the blocks",
        figures: &PI2_CARD,
    },
    Reference {
        id: "pi2-nbd",
        board: "Raspberry Pi 2",
        kind: DeviceKind::Network,
        device: "NBD over 100 Mbit/s Ethernet, Celeron J1900 as server",
        filesystem: None,
        tool: "fio, tiobench job file",
        source: NETWORK,
        note: "the article labels the reads as writes and the writes as reads, and does not print the size of the blocks; the reads are faster than 100 Mbit/s",
        figures: &PI2_NBD,
    },
    Reference {
        id: "pi4-card-a1",
        board: "Raspberry Pi 4",
        kind: DeviceKind::Card,
        device: "SanDisk microSDXC 64 GB Extreme, A1",
        filesystem: None,
        tool: "not named",
        source: SYSTEM,
        note: "the article does not print the size of the blocks or the queue depth",
        figures: &PI4_CARD_A1,
    },
    Reference {
        id: "pi3-card-a1",
        board: "Raspberry Pi 3",
        kind: DeviceKind::Card,
        device: "SanDisk microSDXC 64 GB Extreme, A1",
        filesystem: None,
        tool: "not named",
        source: SYSTEM,
        note: "the article does not print the size of the blocks or the queue depth",
        figures: &PI3_CARD_A1,
    },
    Reference {
        id: "pi3-overclocked-card-a1",
        board: "Raspberry Pi 3, overclocked",
        kind: DeviceKind::Card,
        device: "SanDisk microSDXC 64 GB Extreme, A1",
        filesystem: None,
        tool: "not named",
        source: SYSTEM,
        note: "the article does not print the size of the blocks or the queue depth",
        figures: &PI3_OVERCLOCKED_CARD_A1,
    },
    Reference {
        id: "pi4-card-a2",
        board: "Raspberry Pi 4",
        kind: DeviceKind::Card,
        device: "SanDisk microSDXC 64 GB Extreme, A2",
        filesystem: None,
        tool: "not named",
        source: SYSTEM,
        note: "the article does not print the size of the blocks or the queue depth",
        figures: &PI4_CARD_A2,
    },
    Reference {
        id: "pi3plus-card-a2",
        board: "Raspberry Pi 3+",
        kind: DeviceKind::Card,
        device: "SanDisk microSDXC 64 GB Extreme, A2",
        filesystem: None,
        tool: "not named",
        source: SYSTEM,
        note: "the article does not print the size of the blocks or the queue depth",
        figures: &PI3PLUS_CARD_A2,
    },
    Reference {
        id: "pi3plus-overclocked-card-a2",
        board: "Raspberry Pi 3+, overclocked",
        kind: DeviceKind::Card,
        device: "SanDisk microSDXC 64 GB Extreme, A2",
        filesystem: None,
        tool: "not named",
        source: SYSTEM,
        note: "the article does not print the size of the blocks or the queue depth",
        figures: &PI3PLUS_OVERCLOCKED_CARD_A2,
    },
];

const fn aside(
    board: &'static str,
    what: &'static str,
    value: f64,
    unit: &'static str,
    source: &'static str,
) -> Aside {
    Aside { board, what, value, unit, source }
}

/// What else was published: ciphers, compression, arithmetic.
pub const ASIDES: [Aside; 44] = [
    aside("Raspberry Pi 4", "random reads of a SanDisk Extreme 64 GB A1", 2310.0, "IOPS", SYSTEM),
    aside("Raspberry Pi 3", "random reads of a SanDisk Extreme 64 GB A1", 1880.0, "IOPS", SYSTEM),
    aside(
        "Raspberry Pi 3, overclocked",
        "random reads of a SanDisk Extreme 64 GB A1",
        2170.0,
        "IOPS",
        SYSTEM,
    ),
    aside("Raspberry Pi 4", "random reads of a SanDisk Extreme 64 GB A2", 2050.0, "IOPS", SYSTEM),
    aside("Raspberry Pi 3+", "random reads of a SanDisk Extreme 64 GB A2", 1730.0, "IOPS", SYSTEM),
    aside(
        "Raspberry Pi 3+, overclocked",
        "random reads of a SanDisk Extreme 64 GB A2",
        1950.0,
        "IOPS",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3 Model B",
        "1 GiB of zeros onto btrfs with zlib over USB 2, dd bs=1M conv=fsync",
        123.0,
        "MB/s",
        DESKTOP,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 256-bit key, encryption, 32-bit kernel",
        86.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 256-bit key, decryption, 32-bit kernel",
        75.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 256-bit key, encryption, 64-bit kernel",
        88.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 256-bit key, decryption, 64-bit kernel",
        78.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 512-bit key, encryption, 32-bit kernel",
        66.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 512-bit key, decryption, 32-bit kernel",
        57.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 512-bit key, encryption, 64-bit kernel",
        67.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "aes-xts-plain64, 512-bit key, decryption, 64-bit kernel",
        59.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 256-bit key, encryption, 32-bit kernel",
        65.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 256-bit key, decryption, 32-bit kernel",
        56.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 256-bit key, encryption, 64-bit kernel",
        64.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 256-bit key, decryption, 64-bit kernel",
        58.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 512-bit key, encryption, 32-bit kernel",
        49.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 512-bit key, decryption, 32-bit kernel",
        42.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 512-bit key, encryption, 64-bit kernel",
        49.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "aes-xts-plain64, 512-bit key, decryption, 64-bit kernel",
        44.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "ssh to itself, chacha20-poly1305, 32-bit user space",
        52.9,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "ssh to itself, chacha20-poly1305, 64-bit user space",
        51.9,
        "MB/s",
        SYSTEM,
    ),
    aside("Raspberry Pi 4B", "ssh to itself, aes256-gcm, 32-bit user space", 27.7, "MB/s", SYSTEM),
    aside("Raspberry Pi 4B", "ssh to itself, aes256-gcm, 64-bit user space", 20.5, "MB/s", SYSTEM),
    aside(
        "Raspberry Pi 3B+",
        "ssh to itself, chacha20-poly1305, 32-bit user space",
        27.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "ssh to itself, chacha20-poly1305, 64-bit user space",
        27.4,
        "MB/s",
        SYSTEM,
    ),
    aside("Raspberry Pi 3B+", "ssh to itself, aes256-gcm, 32-bit user space", 19.3, "MB/s", SYSTEM),
    aside("Raspberry Pi 3B+", "ssh to itself, aes256-gcm, 64-bit user space", 19.9, "MB/s", SYSTEM),
    aside(
        "Raspberry Pi 4B",
        "openssl speed, chacha20-poly1305, 32-bit user space",
        138.2,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "openssl speed, chacha20-poly1305, 64-bit user space",
        266.4,
        "MB/s",
        SYSTEM,
    ),
    aside("Raspberry Pi 4B", "openssl speed, aes-256-gcm, 32-bit user space", 32.3, "MB/s", SYSTEM),
    aside("Raspberry Pi 4B", "openssl speed, aes-256-gcm, 64-bit user space", 23.5, "MB/s", SYSTEM),
    aside(
        "Raspberry Pi 4B",
        "openssl speed, aes-256-gcm, 64-bit user space without NEON",
        37.5,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "openssl speed, chacha20-poly1305, 32-bit user space",
        96.0,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "openssl speed, chacha20-poly1305, 64-bit user space",
        221.3,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "openssl speed, aes-256-gcm, 32-bit user space",
        24.3,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "openssl speed, aes-256-gcm, 64-bit user space",
        25.8,
        "MB/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "HPL 2.3, N 20000, NB 208, 32-bit user space",
        11.0,
        "GFLOP/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 4B",
        "HPL 2.3, N 20000, NB 208, 64-bit user space",
        16.3,
        "GFLOP/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "HPL 2.3, N 10000, NB 176, 32-bit user space",
        6.7,
        "GFLOP/s",
        SYSTEM,
    ),
    aside(
        "Raspberry Pi 3B+",
        "HPL 2.3, N 10000, NB 176, 64-bit user space",
        6.7,
        "GFLOP/s",
        SYSTEM,
    ),
];
