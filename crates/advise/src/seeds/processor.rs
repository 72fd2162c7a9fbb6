//! What the processor does on the way: compression of zeros, and ciphers through ssh.

use rubus_stats::estimate::Estimate;

use super::{SeedCase, aside, exact, operation, published, rate};
use crate::path::{Kind, Resource, Step};
use crate::predict::predict;

const MB: f64 = 1e6;
const EXTENT: u64 = 128 << 10;
/// Bytes of zeros that one core of a Cortex-A53 at 1.2 GHz puts through zlib per second. No published figure; from
/// zlib's rate on an A72, less what an A53 is slower, with room on both sides.
const ZEROS_PER_CORE: (f64, f64, f64) = (20e6, 40e6, 80e6);

pub(super) fn cases() -> Vec<SeedCase> {
    let mut cases = vec![zeros()];
    let boards = ["Raspberry Pi 4B", "Raspberry Pi 3B+"];
    for board in boards {
        for bits in [32, 64] {
            cases.push(ssh(board, bits));
        }
    }
    cases
}

/// btrfs compresses extents of 128 KiB, and what is left takes whole blocks of 4 KiB: of zeros one.
fn zeros() -> SeedCase {
    let board = "Raspberry Pi 3 Model B";
    let (figure, source) =
        aside(board, "1 GiB of zeros onto btrfs with zlib over USB 2, dd bs=1M conv=fsync");
    let (low, value, high) = ZEROS_PER_CORE;
    let path = [
        rate(Kind::Compression, Resource::many("4 cores", 4), Estimate::new(value, low, high)),
        Step::Bytes { factor: exact(0.001), whole_bytes: 4096 },
        rate(Kind::Bus, Resource::one("USB 2"), exact(published("pi3-usb-ssd", "write-16m"))),
    ];
    let predicted = predict(&path, &operation(EXTENT, 64)).bytes_per_second;
    SeedCase {
        what: format!("1 GiB of zeros onto btrfs with zlib over USB 2, {board}"),
        stages: "the link's 16 MiB writes; 4 KiB of each 128 KiB left; four cores at 20 to 80 MB/s of zeros each, assumed".into(),
        predicted: predicted.scaled(1.0 / MB),
        published: figure,
        unit: "MB/s",
        source,
        why: "The link would carry 32 times its 32 MB/s, so the cores are the narrowest pipe and zeros measure the compressor. \
              How fast they are was not published, hence the wide interval; measuring zlib on the board settles it.",
    }
}

/// AES through ssh, from chacha20 through ssh: what copying and checking take besides the cipher is the same for both.
fn ssh(board: &str, bits: u32) -> SeedCase {
    let figure = |what: &str| aside(board, &format!("{what}, {bits}-bit user space"));
    let (chacha, _) = figure("openssl speed, chacha20-poly1305");
    let (through_ssh, _) = figure("ssh to itself, chacha20-poly1305");
    let (aes, _) = figure("openssl speed, aes-256-gcm");
    let (measured, source) = figure("ssh to itself, aes256-gcm");
    let besides = 1.0 / (1.0 / through_ssh - 1.0 / chacha);
    let path = [
        rate(Kind::Cipher, Resource::one("core"), exact(aes * MB)),
        rate(Kind::Processor, Resource::one("core"), exact(besides * MB)),
    ];
    let predicted = predict(&path, &operation(1 << 20, 1)).bytes_per_second;
    SeedCase {
        what: format!("AES-256-GCM through ssh to the same board, {board}, {bits} bits"),
        stages: "chacha20 with and without ssh, AES without".into(),
        predicted: predicted.scaled(1.0 / MB),
        published: measured,
        unit: "MB/s",
        source,
        why: match (board, bits) {
            ("Raspberry Pi 3B+", 64) => {
                "Misses: ssh has chacha20 code of its own, which gained nothing from 64 bits where openssl's more than doubled; \
                 so the difference of the two is no longer what ssh does besides. The stage has to be measured in the program \
                 that runs it."
            }
            _ => {
                "One core does the cipher and everything else, so their times add up; ssh's own chacha20 is slower than \
                 openssl's, which makes the rest look larger than it is, and the sum too slow."
            }
        },
    }
}
