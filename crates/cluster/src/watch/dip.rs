//! Where a job's throughput fell because an OSD went down, and when it was back.
//!
//! The bins of a job are too short for slow disks, so they are joined to half a second. What is usual is the median of what was
//! before an OSD could have failed without being missed: an OSD that hangs is marked down only after the grace. In a job that
//! began later, it is the median of what moved anything.

use rubus_vocabulary::cluster_facts::Dip;

/// How long a silent OSD is waited for before it is marked down (`osd_heartbeat_grace`, 20 s), and the monitors' own time.
const GRACE_S: f64 = 26.0;
/// How long bins are at least, in seconds.
const JOINED_S: f64 = 0.5;
/// How far the moment at which an OSD was marked down may be off, with a bin's length.
const NEAR_S: f64 = 2.0;
/// Below this share of what was usual it has fallen.
const FALLEN: f64 = 0.5;
/// From this share on it is back.
const BACK: f64 = 0.75;
/// How many bins in a row have to be back.
const FOR_GOOD: usize = 4;

/// The dip of a job around an OSD that was marked down at `down_s`. The job moved `bytes` in bins of `bin_s` seconds from
/// `job_s` on; all moments count from the run's start. Absent where there are too few bins before, or it was not low when the OSD
/// was marked down: until then, whatever needs the OSD waits.
pub fn dip(job: &str, job_s: f64, bin_s: f64, bytes: &[u64], down_s: f64) -> Option<Dip> {
    let join = (JOINED_S / bin_s).ceil().max(1.0) as usize;
    let joined_s = bin_s * join as f64;
    let bins: Vec<u64> = bytes.chunks_exact(join).map(|bins| bins.iter().sum()).collect();
    let start_s = |bin: usize| job_s + bin as f64 * joined_s;
    let usual = usual(&bins, |bin| start_s(bin + 1) < down_s - GRACE_S)
        .or_else(|| usual(&bins, |bin| bins[bin] > 0 && start_s(bin + 1) < down_s))?;
    let is_low = |bin: usize| (bins[bin] as f64) < usual * FALLEN;
    let is_near = |bin: &usize| (start_s(*bin) - down_s).abs() <= NEAR_S;
    let low = (0..bins.len()).filter(is_near).find(|&bin| is_low(bin))?;
    let fallen = (0..=low).rev().take_while(|&bin| is_low(bin)).last()?;
    let is_back = |bin: &u64| *bin as f64 >= usual * BACK;
    let back = (fallen..bins.len().saturating_sub(FOR_GOOD - 1))
        .find(|&bin| bins[bin..bin + FOR_GOOD].iter().all(is_back));
    let low = &bins[fallen..back.unwrap_or(bins.len())];
    Some(Dip {
        job: job.into(),
        started_s: start_s(fallen),
        ended_s: back.map(start_s),
        lowest_share: low.iter().min().map_or(0.0, |&least| least as f64 / usual),
    })
}

/// The median of these bins, if there are enough of them and they moved something.
fn usual(bins: &[u64], is_before: impl Fn(usize) -> bool) -> Option<f64> {
    let mut before: Vec<u64> =
        (0..bins.len()).filter(|&bin| is_before(bin)).map(|bin| bins[bin]).collect();
    before.sort_unstable();
    let median = *before.get(before.len() / 2)?;
    (before.len() >= 4 && median > 0).then_some(median as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job from 10 s on in bins of 0.1 s: 1000 bytes each, and nothing between these moments of the run.
    fn job(seconds: f64, falls_s: f64, back_s: f64) -> Vec<u64> {
        let bins = (seconds / 0.1) as usize;
        (0..bins)
            .map(|bin| 10.0 + bin as f64 * 0.1)
            .map(|at_s| if (falls_s..back_s).contains(&at_s) { 0 } else { 1000 })
            .collect()
    }

    #[test]
    fn a_killed_osd_is_a_short_dip_and_its_ends_are_right_within_a_second() {
        let found = dip("randwrite", 10.0, 0.1, &job(60.0, 40.0, 43.3), 41.2).expect("a dip");
        assert!((found.started_s - 40.0).abs() <= 1.0, "{found:?}");
        assert!((found.ended_s.expect("it is back") - 43.3).abs() <= 1.0, "{found:?}");
        assert_eq!(found.lowest_share, 0.0);
    }

    #[test]
    fn an_osd_that_hangs_is_a_dip_that_began_long_before_it_was_marked_down() {
        let found = dip("randwrite", 10.0, 0.1, &job(90.0, 50.0, 74.0), 73.0).expect("a dip");
        assert!((found.started_s - 50.0).abs() <= 1.0, "{found:?}");
        assert!((found.ended_s.expect("it is back") - 74.0).abs() <= 1.0, "{found:?}");
    }

    #[test]
    fn a_job_that_hung_for_most_of_its_time_has_a_dip() {
        let found = dip("deep", 10.0, 0.1, &job(26.0, 13.0, 99.0), 37.3).expect("a dip");
        assert!((found.started_s - 13.0).abs() <= 1.0, "{found:?}");
        assert_eq!(found.ended_s, None);
    }

    #[test]
    fn a_job_that_ends_in_it_was_not_back_and_one_without_it_has_none() {
        let found = dip("randwrite", 10.0, 0.1, &job(40.0, 45.0, 99.0), 46.0).expect("a dip");
        assert_eq!(found.ended_s, None);
        assert_eq!(dip("randwrite", 10.0, 0.1, &job(60.0, 99.0, 99.0), 40.0), None);
        assert_eq!(dip("randwrite", 10.0, 0.1, &[], 40.0), None);
    }

    #[test]
    fn what_was_over_before_the_osd_was_marked_down_is_something_else() {
        assert_eq!(dip("randwrite", 10.0, 0.1, &job(60.0, 30.0, 33.0), 40.0), None);
        assert_eq!(dip("randwrite", 10.0, 0.1, &job(20.0, 25.0, 30.0), 40.0), None);
    }
}
