//! Where touching a page becomes slow, and where arithmetic says that it should.

use rubus_vocabulary::memory::{Access, Carries, End, Pressure, Rung, SetUpKind};

/// What rungs in any order say.
pub(crate) fn find(rungs: &[Rung], accesses: &[Access]) -> Vec<Carries> {
    let one = |&access: &Access| {
        let is_bad = |rung: &&Rung| {
            let slow = rung.phases.iter().any(|phase| phase.access == access && phase.is_beyond());
            slow || rung.ended_by.as_ref().is_some_and(End::is_answer)
        };
        let is_good =
            |rung: &&Rung| !is_bad(rung) && rung.phases.iter().any(|phase| phase.access == access);
        let order = |a: &&Rung, b: &&Rung| a.overcommit.total_cmp(&b.overcommit);
        let worst = rungs.iter().filter(is_bad).min_by(order);
        let below = |rung: &&Rung| worst.is_none_or(|worst| rung.overcommit < worst.overcommit);
        let best = rungs.iter().filter(is_good).filter(below).max_by(order);
        let because = match worst {
            Some(rung) => rung.ended_by.clone(),
            None => rungs.iter().find_map(|rung| rung.ended_by.clone()),
        };
        Carries {
            access,
            within: best.map(|rung| rung.overcommit),
            beyond: worst.map(|rung| rung.overcommit),
            because,
        }
    };
    accesses.iter().map(one).collect()
}

/// What arithmetic expects the memory to carry before pages go to a disk: memory M of which the pool takes P, and
/// pages that compress `ratio` to 1, make room for M − P + P · ratio.
///
/// Without a pool that is M. A zram device has no limit but its size: its pool may take everything, and what is
/// left to work in becomes ever less; so only its size limits it, which is taken for `swap_bytes` of pages.
pub fn expected(pressure: &Pressure) -> Option<f64> {
    let memory = pressure.group.memory_bytes as f64;
    match pressure.set_up.kind {
        SetUpKind::None | SetUpKind::Disk => Some(1.0),
        SetUpKind::Zswap => {
            let share = pressure.set_up.pool_share?;
            Some(1.0 + share * (pressure.measured_ratio? - 1.0))
        }
        SetUpKind::Zram => {
            let ratio = pressure.measured_ratio?;
            let pages = pressure.set_up.swap_bytes as f64 / memory;
            Some(1.0 + (pages * (1.0 - 1.0 / ratio)).max(0.0)).filter(|_| pages / ratio < 1.0)
        }
        SetUpKind::Mixed => None,
    }
}

/// The set-up that carries most, and the one whose touches at its limit are fastest among those that carry at least
/// nine tenths as much.
pub fn best(all: &[Pressure], access: Access) -> Option<&Pressure> {
    let times = |pressure: &&Pressure| pressure.carried(access).and_then(|found| found.within);
    let most = all.iter().filter_map(|p| times(&p)).max_by(f64::total_cmp)?;
    let near = all.iter().filter(|pressure| times(pressure).is_some_and(|t| t >= 0.9 * most));
    near.min_by(|a, b| {
        let mean = |p: &Pressure| mean_at_limit(p, access).unwrap_or(f64::INFINITY);
        mean(a).total_cmp(&mean(b))
    })
}

/// The mean touch in nanoseconds of the largest working set that answers in time.
pub fn mean_at_limit(pressure: &Pressure, access: Access) -> Option<f64> {
    let within = pressure.carried(access)?.within?;
    let rung = pressure.rungs.iter().find(|rung| rung.overcommit == within)?;
    rung.mean_touch_ns(access)
}

#[cfg(test)]
mod tests {
    use rubus_vocabulary::memory::{Group, SetUp};

    use super::*;

    fn pressure(
        kind: SetUpKind,
        swap_bytes: u64,
        pool_share: Option<f64>,
        ratio: Option<f64>,
    ) -> Pressure {
        Pressure {
            set_up: SetUp { kind, title: "it".into(), is_temporary: false, swap_bytes, pool_share },
            group: Group {
                version: Some(2),
                memory_bytes: 1000,
                reserve_bytes: None,
                kernel_counts_pool: true,
                swappiness: None,
            },
            content_percent: 33,
            measured_ratio: ratio,
            limit_ns: 5_000_000,
            rungs: Vec::new(),
            carries: vec![Carries {
                access: Access::Uniform,
                within: Some(1.5),
                beyond: Some(1.55),
                because: None,
            }],
            written_bytes: 0,
            budget_bytes: 0,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn a_pool_makes_room_for_what_it_saves() {
        let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-9;
        let zswap = pressure(SetUpKind::Zswap, 9000, Some(0.2), Some(3.0));
        assert!(near(expected(&zswap), 1.4));
        // 2000 bytes of pages in 500 of memory: 500 are left to work in.
        let zram = pressure(SetUpKind::Zram, 2000, None, Some(4.0));
        assert!(near(expected(&zram), 2.5));
        let too_large = pressure(SetUpKind::Zram, 8000, None, Some(4.0));
        assert_eq!(expected(&too_large), None);
        assert!(near(expected(&pressure(SetUpKind::Disk, 9000, None, None)), 1.0));
        assert_eq!(expected(&pressure(SetUpKind::Mixed, 9000, None, None)), None);
    }

    #[test]
    fn a_machine_carries_no_more_than_its_swap_holds_besides() {
        let own = pressure(SetUpKind::Disk, 100, None, None);
        assert_eq!(own.machine_carries(Access::Uniform, 1000), Some(1100));
        assert_eq!(own.machine_carries(Access::Zipf, 1000), None);
        let mut made = own;
        made.set_up.is_temporary = true;
        assert_eq!(made.machine_carries(Access::Uniform, 1000), Some(1500));
    }

    /// An SSD answers in 0.1 ms: no touch exceeds 5 ms, and yet the machine crawls.
    #[test]
    fn a_fast_disk_carries_everything_and_is_slow_all_the_same() {
        let memory = rubus_fixtures::memory_run();
        let memory = memory.memory().expect("it has one");
        let mut ssd = memory.pressure[0].clone();
        ssd.rungs.sort_by(|a, b| a.overcommit.total_cmp(&b.overcommit));
        for (rung, us) in ssd.rungs.iter_mut().zip([0.2, 0.3, 40.0, 66.0]) {
            for phase in &mut rung.phases {
                (phase.slow, phase.latency_ns.mean) = (0, Some(us * 1e3));
            }
        }
        let found = find(&ssd.rungs, &[Access::Uniform]);
        assert_eq!((found[0].within, found[0].beyond), (Some(1.6), None));
        let slowdown = ssd.slowdown(Access::Uniform, 1.6).expect("it was measured");
        assert!((slowdown - 330.0).abs() < 1e-9, "{slowdown}");
        assert_eq!(ssd.half_speed(Access::Uniform), Some((1.35, 1.4)));
        // Without a size that fits into memory there is nothing to compare with.
        ssd.rungs.remove(0);
        assert_eq!(ssd.slowdown(Access::Uniform, 1.6), None);
        assert_eq!(ssd.half_speed(Access::Uniform), None);
    }

    #[test]
    fn of_those_that_carry_about_as_much_the_faster_one_is_best() {
        let carrying = |title: &str, times: f64, mean: f64| {
            let mut one = pressure(SetUpKind::Zram, 0, None, None);
            one.set_up.title = title.into();
            one.carries[0].within = Some(times);
            let latency_ns =
                rubus_vocabulary::result::Latency { mean: Some(mean), ..Default::default() };
            one.rungs.push(Rung {
                overcommit: times,
                working_set_bytes: 0,
                grown_s: 0.0,
                pool_bytes: 0,
                stored_bytes: 0,
                phases: vec![rubus_vocabulary::memory::Phase {
                    access: Access::Uniform,
                    write_share: 0.5,
                    touches: 100,
                    elapsed_s: 1.0,
                    latency_ns,
                    read_mean_ns: None,
                    write_mean_ns: None,
                    slow: 0,
                    major_faults: 0,
                    counters: Default::default(),
                }],
                ended_by: None,
            });
            one
        };
        let all = [
            carrying("slow", 2.0, 900.0),
            carrying("fast", 1.85, 100.0),
            carrying("small", 1.0, 1.0),
        ];
        let found = best(&all, Access::Uniform).map(|one| one.set_up.title.as_str());
        assert_eq!(found, Some("fast"));
        assert!(best(&all, Access::Zipf).is_none());
    }
}
