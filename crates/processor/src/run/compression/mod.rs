//! Measuring how well and how fast this processor compresses: on files of the machine, and on data that is the same everywhere.

mod corpus;

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_machine::not_copied::NotCopied;
use rubus_stats::estimate::Estimate;
use rubus_stats::passes;
use rubus_vocabulary::processor::compression::{
    Cut, EXTENT_BYTES, Method, Row, Sample, Source, Speed, exact_ratio, ratio,
};
use rubus_vocabulary::processor::starved;

use crate::files::codec::{Codec, max_compressed};
use crate::files::sample::{Bounds, sample};
use rubus_host::process::schedstat::Account;
use rubus_host::ticks::now_ns;

/// Windows of 128 KiB at most: 8 MiB, as the corpus has.
const WINDOWS: usize = corpus::PART * corpus::PARTS;
/// Parts into which the pieces are dealt; a part is what is timed at a time.
const PARTS: usize = corpus::PARTS;
/// Fewer pieces say nothing.
const MIN_PIECES: usize = 2 * PARTS;
/// Where the sample is taken from, it is drawn so.
const SEED: u64 = 0x5241_5350_4245_5252;
const BOUNDS: Bounds = Bounds {
    windows: WINDOWS,
    find: Duration::from_millis(1_500),
    read: Duration::from_millis(3_000),
    min_windows: MIN_PIECES,
    read_min: Duration::from_secs(10),
    files: 200_000,
};

/// Data that is going to be compressed.
pub struct Data {
    /// Where it is from.
    pub source: Source,
    /// With what each was drawn: pieces of one window are not independent.
    pieces: Vec<(usize, Vec<u8>)>,
}

impl Data {
    /// The same everywhere.
    pub fn corpus() -> Data {
        Data { source: Source::Corpus, pieces: corpus::corpus().into_iter().enumerate().collect() }
    }

    /// Pieces of files below a directory, on its own filesystem, without what a move leaves out (a swap file is no file of the
    /// user's): at most 8 MiB are read, for at most a few seconds, nothing is kept and nothing is written. Nothing where there
    /// are too few.
    pub fn files(directory: &Path, left_out: &NotCopied) -> Option<Data> {
        let windows = sample(directory, left_out, BOUNDS, SEED).into_iter().enumerate();
        let pieces: Vec<(usize, Vec<u8>)> = windows
            .flat_map(|(window, pieces)| pieces.into_iter().map(move |piece| (window, piece)))
            .collect();
        (pieces.len() >= MIN_PIECES).then(|| Data {
            source: Source::Files { directory: directory.display().to_string() },
            pieces,
        })
    }

    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|(_, piece)| piece.len() as u64).sum()
    }

    /// The pieces as they are compressed, dealt to parts: piece after piece for what was drawn by chance, and so that all
    /// parts of the corpus have the same mixture.
    fn parts(&self, cut: Cut) -> Parts<'_> {
        let mut parts: Parts<'_> = vec![Vec::new(); PARTS];
        for (number, (window, piece)) in self.pieces.iter().enumerate() {
            let part = match self.source {
                Source::Corpus => number / corpus::PART,
                Source::Files { .. } => number % PARTS,
            };
            match cut {
                Cut::Extents => parts[part].push((*window, &piece[..])),
                Cut::Pages { bytes } => {
                    let pages = piece.chunks_exact(bytes as usize);
                    parts[part].extend(pages.map(|page| (*window, page)));
                }
            }
        }
        parts.retain(|part| !part.is_empty());
        parts
    }
}

/// Pieces as they are compressed, part by part, each with its window.
type Parts<'a> = Vec<Vec<(usize, &'a [u8])>>;

/// What is to be measured on each data.
#[derive(Clone, Debug)]
pub struct CompressionPlan {
    /// The ways to cut, each with its methods.
    pub methods: Vec<(Cut, Vec<Method>)>,
    /// Threads that are all cores.
    pub threads: u32,
    /// Seconds that each figure takes at least.
    pub seconds: f64,
}

/// Measures all methods on all data. Those that were not reached when it was cancelled are missing.
pub fn compression(
    plan: &CompressionPlan,
    data: &[Data],
    says: &mut dyn FnMut(&str),
    cancel: &AtomicBool,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for data in data {
        let mut rows = Vec::new();
        for (cut, methods) in &plan.methods {
            let parts = data.parts(*cut);
            for method in methods {
                if cancel.load(Ordering::Relaxed) {
                    break;
                }
                let of = match data.source {
                    Source::Corpus => "the corpus",
                    Source::Files { .. } => "your files",
                };
                says(&format!("{method} on {of}, {}", words(*cut)));
                rows.extend(measure(plan, *method, *cut, &parts, data.source == Source::Corpus));
            }
        }
        samples.push(Sample {
            source: data.source.clone(),
            bytes: data.bytes(),
            pieces: data.pieces.len() as u32,
            rows,
        });
    }
    samples
}

fn words(cut: Cut) -> String {
    match cut {
        Cut::Extents => format!("{} KiB pieces", EXTENT_BYTES >> 10),
        Cut::Pages { bytes } => format!("pages of {} KiB", bytes >> 10),
    }
}

/// Nothing where the library has no memory for it, or there is no whole piece.
fn measure(
    plan: &CompressionPlan,
    method: Method,
    cut: Cut,
    parts: &[Vec<(usize, &[u8])>],
    is_all: bool,
) -> Option<Row> {
    let stored = Stored::of(method, cut, parts)?;
    let one = speed(plan, method, cut, parts, &stored, 1)?;
    let all = match plan.threads {
        1 => None,
        threads => speed(plan, method, cut, parts, &stored, threads),
    };
    let pieces = &stored.pieces;
    Some(Row {
        method,
        cut,
        ratio: if is_all { exact_ratio(pieces) } else { ratio(&stored.observations()) }?,
        left_share: stored.left as f64 / pieces.len() as f64,
        one,
        all,
        wrong: stored.wrong,
    })
}

/// What becomes of all pieces.
struct Stored<'a> {
    /// Original and kept bytes of each.
    pieces: Vec<(f64, f64)>,
    /// The window of each.
    windows: Vec<usize>,
    /// Those that stay as they are.
    left: u64,
    /// Those that did not come back.
    wrong: u64,
    /// Compressed pieces and how long they were, by part; without those that stay as they are.
    compressed: Vec<Vec<(Vec<u8>, &'a [u8])>>,
}

impl<'a> Stored<'a> {
    fn of(method: Method, cut: Cut, parts: &[Vec<(usize, &'a [u8])>]) -> Option<Stored<'a>> {
        let mut codec = Codec::of(method, cut)?;
        let mut out = vec![0; max_compressed(cut.piece_bytes())];
        let mut back = vec![0; cut.piece_bytes()];
        let mut stored = Stored {
            pieces: Vec::new(),
            windows: Vec::new(),
            left: 0,
            wrong: 0,
            compressed: Vec::new(),
        };
        for part in parts {
            let mut kept_ones = Vec::new();
            for (window, piece) in part {
                let length = codec.compress(piece, &mut out)?;
                let came_back = codec.expand(&out[..length], &mut back);
                let is_right = came_back == Some(piece.len()) && back[..piece.len()] == **piece;
                stored.wrong += u64::from(!is_right);
                let kept = cut.kept(piece.len(), length);
                stored.pieces.push((piece.len() as f64, kept.bytes));
                stored.windows.push(*window);
                if kept.is_compressed {
                    kept_ones.push((out[..length].to_vec(), *piece));
                } else {
                    stored.left += 1;
                }
            }
            stored.compressed.push(kept_ones);
        }
        (!stored.pieces.is_empty()).then_some(stored)
    }

    /// What was drawn by chance, each by itself: windows, or of a few the pieces in them.
    fn observations(&self) -> Vec<(f64, f64)> {
        let mut by_window = std::collections::BTreeMap::new();
        for (window, (original, kept)) in self.windows.iter().zip(&self.pieces) {
            let sums = by_window.entry(*window).or_insert((0.0, 0.0));
            *sums = (sums.0 + original, sums.1 + kept);
        }
        if by_window.len() >= MIN_PIECES {
            by_window.into_values().collect()
        } else {
            self.pieces.clone()
        }
    }
}

fn speed(
    plan: &CompressionPlan,
    method: Method,
    cut: Cut,
    parts: &[Vec<(usize, &[u8])>],
    stored: &Stored<'_>,
    threads: u32,
) -> Option<Speed> {
    let compress = |codec: &mut Codec, buffer: &mut [u8], part: usize| {
        let mut bytes = 0;
        for (_, piece) in &parts[part] {
            codec.compress(piece, buffer)?;
            bytes += piece.len() as u64;
        }
        Some(bytes)
    };
    let expand = |codec: &mut Codec, buffer: &mut [u8], part: usize| {
        let mut bytes = 0;
        for (compressed, piece) in &stored.compressed[part] {
            // One that does not come back was counted above.
            bytes += codec.expand(compressed, buffer).unwrap_or(piece.len()) as u64;
        }
        Some(bytes)
    };
    let timed = |work: Work<'_>| rate(plan.seconds, threads, method, cut, parts.len(), work);
    let is_something_kept = stored.compressed.iter().any(|part| !part.is_empty());
    let (compressing, mut waited) = timed(&compress)?;
    let mut expanding = None;
    if let Some((rate, share)) = is_something_kept.then(|| timed(&expand)).flatten() {
        expanding = Some(rate);
        waited = waited.max(share);
    }
    Some(Speed {
        threads,
        compress_bytes_per_second: compressing,
        expand_bytes_per_second: expanding,
        doubts: starved(waited),
    })
}

/// Goes through a part with a codec and a buffer; gives the original bytes.
type Work<'a> = &'a (dyn Fn(&mut Codec, &mut [u8], usize) -> Option<u64> + Sync);

/// All threads go through all parts at the same time, each beginning with another, until it is long enough. Passes of the same
/// number are one observation. Also the largest share of its time that a thread had to wait for a processor.
fn rate(
    seconds: f64,
    threads: u32,
    method: Method,
    cut: Cut,
    parts: usize,
    work: Work<'_>,
) -> Option<(Estimate, f64)> {
    let barrier = Barrier::new(threads as usize);
    let barrier = &barrier;
    let alone = |thread: usize| {
        let mut buffer = vec![0; max_compressed(cut.piece_bytes())];
        let codec = Codec::of(method, cut);
        // Before anything can fail: the others wait for all.
        barrier.wait();
        let mut codec = codec?;
        // Once untimed: what is allocated with the first piece, and the clock of the processor.
        work(&mut codec, &mut buffer, thread % parts)?;
        let account = Account::of_this_thread();
        let before_ns = account.run_delay_ns();
        let (begun_ns, mut timed) = (now_ns(), Vec::new());
        while timed.len() < parts || (now_ns() - begun_ns) as f64 / 1e9 < seconds {
            let start_ns = now_ns();
            let bytes = work(&mut codec, &mut buffer, (thread + timed.len()) % parts)?;
            timed.push((bytes, (now_ns() - start_ns) as f64 / 1e9));
        }
        let elapsed_ns = (now_ns() - begun_ns).max(1);
        let waited_ns = account.run_delay_ns().zip(before_ns);
        let waited_ns = waited_ns.map_or(0, |(after, before)| after.saturating_sub(before));
        Some((timed, waited_ns as f64 / elapsed_ns as f64))
    };
    let seen: Vec<(Vec<(u64, f64)>, f64)> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads as usize).map(|thread| scope.spawn(move || alone(thread))).collect();
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Option<_>>()
    })?;
    let (timed, waited): (Vec<_>, Vec<f64>) = seen.into_iter().unzip();
    let rounds = timed.iter().map(Vec::len).min()? / parts * parts;
    let rate = together(&timed, rounds, parts)?;
    Some((rate, waited.into_iter().fold(0.0, f64::max)))
}

/// The rate of all threads together. The value is from whole rounds through all parts, so that it is of the same data for every method; the
/// interval is from the parts, each with all its passes.
fn together(timed: &[Vec<(u64, f64)>], rounds: usize, parts: usize) -> Option<Estimate> {
    let sum = |thread: &[(u64, f64)], number: usize| {
        let of_part = thread[..rounds].iter().skip(number).step_by(parts);
        of_part.fold((0, 0.0), |sum, pass| (sum.0 + pass.0, sum.1 + pass.1))
    };
    let value: f64 = timed
        .iter()
        .map(|thread| {
            let sums = thread[..rounds]
                .iter()
                .fold((0, 0.0), |sum, pass| (sum.0 + pass.0, sum.1 + pass.1));
            sums.0 as f64 / f64::max(sums.1, 1e-9)
        })
        .sum();
    let observations: Vec<(u64, f64)> = (0..parts)
        .map(|number| {
            let rate: f64 = timed
                .iter()
                .map(|thread| {
                    let (bytes, seconds) = sum(thread, number);
                    bytes as f64 / f64::max(seconds, 1e-9)
                })
                .sum();
            (rate as u64, 1.0)
        })
        .collect();
    let spread = passes::rate(&observations)?;
    // The mean of the parts' rates is not the rate over all parts; the interval goes with the latter.
    let centre = spread.value;
    Some(Estimate::new(
        value,
        (value * spread.low / centre).min(value),
        (value * spread.high / centre).max(value),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_stats::Rng;

    fn plan(threads: u32) -> CompressionPlan {
        CompressionPlan {
            methods: vec![
                (Cut::Extents, vec![Method::Zstd(1), Method::Zlib(1), Method::Lz4]),
                (Cut::Pages { bytes: 4096 }, vec![Method::Lz4]),
            ],
            threads,
            seconds: 0.0,
        }
    }

    fn known() -> Data {
        // Half of the pieces become one sector of 32, half stay.
        let words: Vec<u8> = b"narrow pipe ".iter().copied().cycle().take(EXTENT_BYTES).collect();
        let mut rng = Rng::from_seed(1);
        let pieces = (0..32).map(|number| {
            if number / 8 % 2 == 0 {
                return words.clone();
            }
            let mut noise = vec![0; EXTENT_BYTES];
            rng.fill(&mut noise);
            noise
        });
        Data {
            source: Source::Files { directory: "/".into() },
            pieces: pieces.enumerate().collect(),
        }
    }

    #[test]
    fn known_content_has_the_known_ratio() {
        for threads in [1, 3] {
            let samples =
                compression(&plan(threads), &[known()], &mut |_| {}, &AtomicBool::new(false));
            let rows = &samples[0].rows;
            assert_eq!((rows.len(), samples[0].pieces), (4, 32));
            for row in &rows[..3] {
                let wanted = 2.0 / (1.0 + 1.0 / 32.0);
                assert!((row.ratio.value - wanted).abs() < 1e-9, "{row:?}");
                assert!(row.ratio.low < wanted && row.ratio.high > wanted);
                assert_eq!((row.left_share, row.wrong), (0.5, 0));
                assert!(
                    row.one.compress_bytes_per_second.value > 1e5
                        && row.one.expand_bytes_per_second.is_some()
                );
                assert_eq!(
                    row.all.as_ref().map(|all| all.threads),
                    Some(threads).filter(|threads| *threads > 1)
                );
            }
            assert_eq!(rows[3].left_share, 0.5);
        }
    }

    #[test]
    fn pieces_that_were_drawn_together_are_one_observation() {
        let ratio = |data: Data| {
            let samples = compression(&plan(1), &[data], &mut |_| {}, &AtomicBool::new(false));
            samples[0].rows[0].ratio
        };
        let apart = ratio(known());
        let mut pairs = known();
        for (number, (window, _)) in pairs.pieces.iter_mut().enumerate() {
            // Two neighbours, which are alike, at a time.
            *window = number / 2;
        }
        let pairs = ratio(pairs);
        assert!((pairs.value - apart.value).abs() < 1e-9);
        assert!(pairs.high > 1.2 * apart.high - 0.2 * apart.value, "{pairs:?} {apart:?}");
    }

    #[test]
    fn what_nothing_makes_smaller_is_not_expanded() {
        let mut data = known();
        data.pieces.retain(|(_, piece)| piece[..6] != *b"narrow");
        let samples = compression(&plan(1), &[data], &mut |_| {}, &AtomicBool::new(false));
        for row in &samples[0].rows {
            assert_eq!((row.ratio.value, row.left_share), (1.0, 1.0));
            assert_eq!(row.one.expand_bytes_per_second, None);
        }
    }

    #[test]
    fn rates_of_threads_add_up_over_the_same_data() {
        // Part 0 is quick, part 1 slow; a pass more of the quick one counts nothing.
        let thread = vec![(100, 1.0), (100, 3.0), (100, 1.0)];
        let rate = together(&[thread.clone(), thread], 2, 2).expect("a rate");
        assert!(
            (rate.value - 100.0).abs() < 1e-9 && rate.low < 100.0 && rate.high > 100.0,
            "{rate:?}"
        );
    }

    #[test]
    fn cancelled_is_cancelled_and_an_empty_directory_no_sample() {
        let samples = compression(&plan(1), &[known()], &mut |_| {}, &AtomicBool::new(true));
        assert_eq!(samples[0].rows.len(), 0);
        let empty = tempfile::tempdir().expect("a directory");
        assert!(Data::files(empty.path(), &NotCopied::default()).is_none());
    }
}
