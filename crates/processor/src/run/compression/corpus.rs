//! Data to compress that is the same on every machine: text, a log, records, instructions, and noise as photographs are.
//!
//! It is made from whole numbers alone, so that it has the same bytes in every version on every architecture. Its parts all have the same
//! mixture.

use rubus_stats::Rng;
use rubus_vocabulary::processor::compression::EXTENT_BYTES;

/// Pieces of one part.
pub const PART: usize = 8;
pub const PARTS: usize = 8;

/// All of it: [`PARTS`] times [`PART`] pieces of 128 KiB.
pub fn corpus() -> Vec<Vec<u8>> {
    (0..PART * PARTS)
        .map(|number| {
            let mut rng = Rng::stream(0x636f_7270_7573, number as u64);
            let mut piece = match number % PART {
                0 | 1 => text(&mut rng),
                2 => log(&mut rng),
                3 | 4 => records(&mut rng),
                5 | 6 => instructions(&mut rng),
                _ => noise(&mut rng),
            };
            piece.truncate(EXTENT_BYTES);
            piece
        })
        .collect()
}

/// Words as often as Zipf's law has them, in sentences.
fn text(rng: &mut Rng) -> Vec<u8> {
    // One vocabulary for all pieces.
    let mut letters = Rng::from_seed(26);
    let words: Vec<Vec<u8>> = (0..4096).map(|_| word(&mut letters)).collect();
    let (mut out, mut since_stop) = (Vec::new(), 0);
    while out.len() < EXTENT_BYTES {
        out.extend(&words[rank(rng, words.len() as u64)]);
        since_stop += 1;
        let ends = since_stop > 4 && rng.below(12) == 0;
        out.extend(match (ends, rng.below(6)) {
            (true, 0) => &b".\n"[..],
            (true, _) => &b". "[..],
            (false, 0) => &b", "[..],
            _ => &b" "[..],
        });
        since_stop = if ends { 0 } else { since_stop };
    }
    out
}

/// A number below `most`, small ones more often: a power of two by chance, then one up to it.
fn rank(rng: &mut Rng, most: u64) -> usize {
    let octaves = u64::from(most.ilog2());
    let octave = 1 + rng.below(octaves);
    rng.below(1 << octave).min(most - 1) as usize
}

fn word(rng: &mut Rng) -> Vec<u8> {
    const ONSETS: &[&[u8]] = &[
        b"t", b"s", b"r", b"n", b"d", b"st", b"l", b"m", b"p", b"k", b"v", b"b", b"th", b"h", b"f",
    ];
    const VOWELS: &[&[u8]] = &[b"e", b"a", b"o", b"i", b"u", b"ou", b"ea"];
    let mut word = Vec::new();
    for _ in 0..1 + rng.below(4) {
        word.extend(ONSETS[rng.below(ONSETS.len() as u64) as usize]);
        word.extend(VOWELS[rng.below(VOWELS.len() as u64) as usize]);
    }
    word
}

/// Lines with a time, a host, a program, a message and numbers.
fn log(rng: &mut Rng) -> Vec<u8> {
    const PROGRAMS: [&str; 6] =
        ["kernel", "systemd[1]", "sshd[812]", "cron[420]", "NetworkManager[511]", "dhcpcd[377]"];
    const MESSAGES: [&str; 6] = [
        "Started session of user pi, number",
        "link becomes ready after",
        "Accepted publickey for pi from 192.168.1.20 port",
        "usb 1-1.4: new high-speed USB device number",
        "(root) CMD (run-parts /etc/cron.hourly) pid",
        "mmc0: Timeout waiting for hardware interrupt, register",
    ];
    let (mut out, mut seconds) = (Vec::new(), rng.below(86_400));
    while out.len() < EXTENT_BYTES {
        seconds += rng.below(30);
        let which = rng.below(6) as usize;
        let line = format!(
            "Nov {:2} {:02}:{:02}:{:02} raspberrypi {}: {} {}\n",
            1 + seconds / 86_400 % 30,
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            PROGRAMS[(which + rng.below(2) as usize) % 6],
            MESSAGES[which],
            rng.below(60_000)
        );
        out.extend(line.into_bytes());
    }
    out
}

/// Records of a database: a counter, a time, a kind, a measurement, a name, and room that is not used.
fn records(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut number, mut time) =
        (rng.below(1 << 20) as u32, 1_700_000_000_000 + rng.below(1 << 36));
    while out.len() < EXTENT_BYTES {
        number += 1;
        time += rng.below(5_000);
        out.extend(number.to_le_bytes());
        out.extend(time.to_le_bytes());
        out.extend((rank(rng, 32) as u16).to_le_bytes());
        out.extend((20_000 + rng.below(4096) as u32).to_le_bytes());
        let name = format!("sensor-{:03}", rank(rng, 256));
        out.extend(name.as_bytes());
        out.extend(vec![0; 36 - name.len()]);
    }
    out
}

/// Words of 32 bits as a program of a machine with such instructions has them: few operations, nearby registers and addresses.
fn instructions(rng: &mut Rng) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    let mut operations = Rng::from_seed(32);
    let operations: Vec<u32> =
        (0..256).map(|_| operations.next_u64() as u32 & 0xffe0_0000).collect();
    while out.len() < EXTENT_BYTES {
        // Sequences come back, as calls and loops do.
        if out.len() > 4096 && rng.below(8) == 0 {
            let length = 8 + 4 * rng.below(6) as usize;
            let from = out.len() - 4 * (8 + rng.below(1000) as usize);
            let again = out[from..from + length].to_vec();
            out.extend(again);
            continue;
        }
        let operation = operations[rank(rng, 256)];
        let registers = (rank(rng, 32) | rank(rng, 32) << 5 | rank(rng, 16) << 10) as u32;
        let immediate = if rng.below(3) == 0 { (rng.below(64) as u32) << 15 } else { 0 };
        out.extend((operation | registers | immediate).to_le_bytes());
    }
    out
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let mut out = vec![0; EXTENT_BYTES];
    rng.fill(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_everywhere_and_for_ever() {
        let corpus = corpus();
        assert_eq!(corpus.len(), PART * PARTS);
        assert!(corpus.iter().all(|piece| piece.len() == EXTENT_BYTES));
        let step =
            |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = corpus.iter().flatten().fold(0xcbf2_9ce4_8422_2325, step);
        assert_eq!(
            hash, 14_121_183_955_048_722_994,
            "figures of other versions cannot be compared any more"
        );
    }
}
