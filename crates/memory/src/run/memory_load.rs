//! A program that takes more and more memory, and says how long touching it takes.
//!
//! Its pages compress to an exactly known share: that share of their bytes is random, the rest is zeros. No two are
//! alike, and none holds one value only, which the kernel would keep without storing it.

use rubus_stats::{Histogram, Rng};
use rubus_vocabulary::memory::{Access, Counters, Phase};
use rubus_vocabulary::spec::Distribution;

use super::region::Region;
use rubus_host::ticks::now_ns;
use rubus_vocabulary::spread::Spread;

/// Share of the touches that write.
pub const WRITE_SHARE: f64 = 0.5;
/// Zipf's exponent, as YCSB has it.
const EXPONENT: f64 = 0.99;
/// Between two looks at the clock while pages are filled.
const FILLED_AT_ONCE: u64 = 64;
/// Numbers that are apart from one another for each thing that is drawn.
const TOUCHES_STREAM: u64 = u64::MAX;

/// Memory that grows on demand.
pub struct MemoryLoad {
    region: Region,
    page_bytes: usize,
    random_bytes: usize,
    pages: u64,
    seed: u64,
}

/// How pages are to be touched.
#[derive(Clone, Copy, Debug)]
pub struct Touching {
    /// How the pages are touched.
    pub access: Access,
    /// Seconds of warm-up.
    pub warm_up_s: f64,
    /// Seconds of measurement.
    pub seconds: f64,
    /// Touches at most.
    pub most: u64,
    /// Touches that take longer are slow.
    pub limit_ns: u64,
    /// Seed of the order.
    pub seed: u64,
}

impl MemoryLoad {
    /// Room for `max_bytes`; none of it is taken yet. Pages compress to `content_percent` (1 to 100) percent.
    ///
    /// # Errors
    /// If the address space is too small, or the kernel promises no more memory than it has
    /// (`vm.overcommit_memory` 2).
    pub fn new(
        max_bytes: u64,
        page_bytes: u64,
        content_percent: u32,
        seed: u64,
    ) -> std::io::Result<Self> {
        let most = usize::try_from(max_bytes).map_err(|_| rustix::io::Errno::NOMEM)?;
        let page_bytes = page_bytes as usize;
        let random_bytes = page_bytes * content_percent.clamp(1, 100) as usize / 100;
        Ok(MemoryLoad {
            region: Region::reserve(most)?,
            page_bytes,
            random_bytes: random_bytes.max(16),
            pages: 0,
            seed,
        })
    }

    /// Writes pages until there are `pages`, or for `max_s` seconds; returns how many there are.
    pub fn grow(&mut self, pages: u64, max_s: f64) -> u64 {
        let room = (self.region.bytes() / self.page_bytes) as u64;
        let (wanted, begun) = (pages.min(room), now_ns());
        while self.pages < wanted {
            if self.pages % FILLED_AT_ONCE == 0 && (now_ns() - begun) as f64 / 1e9 > max_s {
                break;
            }
            let mut random = Rng::stream(self.seed, self.pages);
            let at = self.pages as usize * self.page_bytes;
            let random_bytes = self.random_bytes;
            random.fill(&mut self.region.all_mut()[at..at + random_bytes]);
            self.pages += 1;
        }
        self.pages
    }

    /// Touches pages one after the other. The counters of what comes back are left to who sees the whole machine.
    pub fn touch(&mut self, how: &Touching) -> Phase {
        let law = match how.access {
            Access::Uniform => Distribution::Uniform,
            Access::Zipf => Distribution::Zipf(EXPONENT),
        };
        let pages = Spread::new(self.pages, law, &[], self.seed);
        let mut random = Rng::stream(how.seed, TOUCHES_STREAM);
        let warm_up_ends = now_ns() + (how.warm_up_s * 1e9) as u64;
        let mut warm_ups = 0;
        while now_ns() < warm_up_ends && warm_ups < how.most {
            self.once(&pages, &mut random);
            warm_ups += 1;
        }
        let mut took = [Histogram::new(), Histogram::new()];
        let (mut touches, mut slow) = (0, 0);
        let faults_before = major_faults();
        let begun = now_ns();
        let mut now = begun;
        while touches < how.most && (now - begun) as f64 / 1e9 < how.seconds {
            let (is_write, nanoseconds) = self.once(&pages, &mut random);
            took[usize::from(is_write)].record(nanoseconds);
            touches += 1;
            slow += u64::from(nanoseconds > how.limit_ns);
            now = now_ns();
        }
        let [reads, writes] = took;
        let mut all = reads.clone();
        all.merge(&writes);
        Phase {
            access: how.access,
            write_share: writes.count() as f64 / touches.max(1) as f64,
            touches,
            elapsed_s: (now - begun) as f64 / 1e9,
            latency_ns: all.latency(),
            read_mean_ns: reads.mean_ns(),
            write_mean_ns: writes.mean_ns(),
            slow,
            major_faults: major_faults().saturating_sub(faults_before),
            counters: Counters::default(),
        }
    }

    /// One touch: whether it wrote, and what it took.
    fn once(&mut self, pages: &Spread, random: &mut Rng) -> (bool, u64) {
        let at = pages.draw(random) as usize * self.page_bytes;
        let is_write = random.unit() < WRITE_SHARE;
        let number = random.next_u64();
        let page = &mut self.region.all_mut()[at..at + self.page_bytes];
        // What is written is as random as what was there, so the page compresses as before.
        let place: *mut u64 = page[8..16].as_mut_ptr().cast();
        let before = now_ns();
        // SAFETY: the eight bytes lie within the page, which is borrowed exclusively, at a multiple of eight. Volatile,
        // so that the touch happens here and is not left out.
        unsafe {
            if is_write {
                place.write_volatile(number)
            } else {
                std::hint::black_box(place.read_volatile());
            }
        }
        (is_write, now_ns() - before)
    }
}

/// Major faults of this process so far.
fn major_faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a place of the right type, all zeros is one of its values, and asking about oneself
    // cannot fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_majflt as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touching(access: Access) -> Touching {
        Touching { access, warm_up_s: 0.0, seconds: 10.0, most: 5000, limit_ns: 5_000_000, seed: 9 }
    }

    #[test]
    fn pages_are_what_they_should_compress_to_and_differ() {
        let mut load = MemoryLoad::new(1 << 20, 4096, 25, 1).expect("addresses");
        assert_eq!(load.grow(10, 10.0), 10);
        let all = load.region.all_mut();
        let pages: Vec<&[u8]> = all[..10 * 4096].chunks(4096).collect();
        for page in &pages {
            assert!(page[1024..].iter().all(|&byte| byte == 0));
            assert!(page[..1024].iter().filter(|&&byte| byte == 0).count() < 32);
        }
        assert_ne!(pages[0], pages[1]);
        assert!(all[10 * 4096..].iter().all(|&byte| byte == 0), "no more than asked for");
        assert_eq!(load.grow(10_000, 10.0), 256, "no more than there is room for");
    }

    #[test]
    fn it_gives_up_in_time() {
        let mut load = MemoryLoad::new(64 << 20, 4096, 50, 1).expect("addresses");
        assert_eq!(load.grow(16_384, -1.0), 0);
    }

    #[test]
    fn touches_are_counted_and_keep_what_pages_compress_to() {
        let mut load = MemoryLoad::new(1 << 20, 4096, 25, 1).expect("addresses");
        load.grow(256, 10.0);
        for access in Access::ALL {
            let phase = load.touch(&touching(access));
            assert_eq!(phase.touches, 5000);
            assert!((0.45..0.55).contains(&phase.write_share), "{}", phase.write_share);
            assert!(phase.latency_ns.p99.is_some() && phase.elapsed_s > 0.0);
        }
        let all = load.region.all_mut();
        assert!(all.chunks(4096).all(|page| page[1024..].iter().all(|&byte| byte == 0)));
    }

    #[test]
    fn what_took_longer_than_the_limit_is_slow() {
        let mut load = MemoryLoad::new(1 << 20, 4096, 25, 1).expect("addresses");
        load.grow(256, 10.0);
        let mut how = touching(Access::Uniform);
        how.limit_ns = 0;
        let phase = load.touch(&how);
        assert!(phase.slow > phase.touches / 2 && phase.is_beyond(), "{phase:?}");
    }
}
