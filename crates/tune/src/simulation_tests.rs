//! Disks on which one setting has a known effect and all others have none: how often the right one is named.
//!
//! The noise of a turn is what turns of one to two seconds show on real disks: a few percent, with a drift over the
//! trial and turns now and then that a stall or another program spoils.

use rubus_stats::Rng;

use crate::course::{Bench, Ended, Side, Switch, Trial, Turn, run, winners};
use crate::decide::Word;
use crate::setting::{Candidate, Risk, Setting, Work};

/// Devices per row of the table.
const DEVICES: u64 = 100;
/// How long a turn takes with all around it, in seconds.
const TURN_S: f64 = 1.9;
/// The longest trial, in seconds.
const MAX_S: f64 = 1200.0;

fn candidate(setting: Setting, to: &str, works: &[Work]) -> Candidate {
    Candidate {
        setting,
        from: "x".into(),
        to: to.into(),
        knobs: Vec::new(),
        works: works.to_vec(),
        does: "",
        source: "",
        risk: Risk::None,
        set_by: Vec::new(),
    }
}

/// As many as a board with a hard disk has.
fn candidates() -> Vec<Candidate> {
    let queued = [Work::DeepRead, Work::MixedRead, Work::Commit];
    vec![
        candidate(Setting::ReadAhead, "512", &[Work::LargeRead]),
        candidate(Setting::ReadAhead, "2048", &[Work::LargeRead]),
        candidate(Setting::Scheduler, "none", &queued),
        candidate(Setting::Scheduler, "bfq", &queued),
        candidate(Setting::Requests, "128", &queued[..2]),
        candidate(Setting::Governor, "performance", &[Work::SmallRead, Work::Commit]),
    ]
}

/// A disk, its clock, and the candidate that has an effect on it.
struct Disk {
    random: Rng,
    /// Spread of a turn, as a share.
    noise: f64,
    /// The candidate with an effect, the work that feels it, and by which factor.
    effect: Option<(Setting, &'static str, Work, f64)>,
    live: Option<(Setting, String)>,
    elapsed_s: f64,
    drift_per_s: f64,
}

impl Disk {
    fn new(seed: u64, noise: f64, effect: Option<(Setting, &'static str, Work, f64)>) -> Disk {
        let mut random = Rng::from_seed(seed);
        // Up to a tenth over the trial, either way.
        let drift_per_s = (random.unit() - 0.5) * 0.2 / MAX_S;
        Disk { random, noise, effect, live: None, elapsed_s: 0.0, drift_per_s }
    }
}

/// The disk as the course sees it: measured, and switched.
struct Shared<'d>(&'d std::cell::RefCell<Disk>);

impl Bench for Shared<'_> {
    fn turn(&mut self, work: Work) -> Result<Turn, Ended> {
        let mut disk = self.0.borrow_mut();
        disk.elapsed_s += TURN_S;
        let (noise, drift) = (disk.noise, disk.drift_per_s * disk.elapsed_s);
        let mut log = noise * disk.random.normal() + drift;
        if disk.random.unit() < 0.01 {
            // A stall.
            log -= 0.1 + 0.3 * disk.random.unit();
        }
        let live = disk.live.clone();
        if let (Some((setting, to, felt, factor)), Some(live)) = (disk.effect, live) {
            if live == (setting, to.to_string()) && felt == work {
                log += factor.ln();
            }
        }
        let per_second = 2000.0 * log.exp();
        Ok(Turn::Rate { per_second, operations: per_second as u64 })
    }

    fn elapsed_s(&self) -> f64 {
        self.0.borrow().elapsed_s
    }

    fn turn_s(&self, _: Work) -> f64 {
        TURN_S
    }

    fn may_write(&self, _: Work, _: usize) -> bool {
        true
    }
}

impl Switch for Shared<'_> {
    fn switch(&mut self, candidate: &Candidate, side: Side) -> Result<(), String> {
        self.0.borrow_mut().live = match side {
            Side::Present => None,
            Side::Tried => Some((candidate.setting, candidate.to.clone())),
        };
        Ok(())
    }

    fn check(&mut self, _: &Candidate, _: Side) -> Result<(), String> {
        Ok(())
    }

    fn restore(&mut self, _: &Candidate) {
        self.0.borrow_mut().live = None;
    }
}

fn tried(disk: Disk) -> (Trial, f64) {
    let disk = std::cell::RefCell::new(disk);
    let trial = run(&candidates(), &mut Shared(&disk), &mut Shared(&disk), MAX_S);
    let elapsed_s = disk.borrow().elapsed_s;
    (trial, elapsed_s)
}

/// What a hundred devices came to.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    wrong: usize,
    /// The comparison with the effect was left open.
    open: usize,
    longest_s: f64,
}

fn tally(
    noise: f64,
    effect: Option<(Setting, &'static str, Work, f64)>,
    seed: u64,
    devices: u64,
) -> Tally {
    let all = candidates();
    let mut tally = Tally::default();
    for device in 0..devices {
        let (trial, elapsed_s) = tried(Disk::new(seed * 1000 + device, noise, effect));
        tally.longest_s = tally.longest_s.max(elapsed_s);
        let is_it = |number: usize| {
            effect.is_some_and(|(setting, to, _, _)| {
                (all[number].setting, all[number].to.as_str()) == (setting, to)
            })
        };
        let named: Vec<usize> =
            winners(&all, &trial).into_iter().map(|(number, _)| number).collect();
        let has_effect = |number: usize, work: Work| {
            is_it(number) && effect.is_some_and(|(_, _, felt, _)| felt == work)
        };
        let has_false = trial.comparisons.iter().any(|one| {
            let speaks = matches!(one.word, Word::Helps | Word::Hurts);
            speaks && !has_effect(one.candidate, one.work)
        });
        let denied = trial.comparisons.iter().any(|one| {
            has_effect(one.candidate, one.work)
                && matches!(one.word, Word::Hurts | Word::NoDifference)
        });
        tally.wrong += usize::from(has_false || denied);
        tally.right += usize::from(named.len() == 1 && is_it(named[0]));
        tally.open += usize::from(
            trial
                .comparisons
                .iter()
                .any(|one| has_effect(one.candidate, one.work) && one.word == Word::NotSettled),
        );
    }
    tally
}

#[test]
fn the_setting_with_an_effect_is_named_and_no_other() {
    let mut table = format!(
        "{:>6} {:>6} {:>6} {:>6} {:>6} {:>8}\n",
        "noise", "effect", "right", "open", "wrong", "longest"
    );
    let settings = [
        (Setting::ReadAhead, "512", Work::LargeRead),
        (Setting::Scheduler, "bfq", Work::MixedRead),
        (Setting::Governor, "performance", Work::SmallRead),
    ];
    let mut rows = Vec::new();
    for noise in [0.015, 0.03, 0.06] {
        for percent in [5_u32, 20, 50] {
            let at = rows.len();
            let (setting, to, work) = settings[(at + at / settings.len()) % settings.len()];
            let factor = 1.0 + f64::from(percent) / 100.0;
            let tally = tally(noise, Some((setting, to, work, factor)), at as u64, DEVICES);
            table.push_str(&format!(
                "{:>5.1}% {:>5}% {:>6} {:>6} {:>6} {:>6.0} s\n",
                noise * 100.0,
                percent,
                tally.right,
                tally.open,
                tally.wrong,
                tally.longest_s
            ));
            rows.push((noise, percent, tally));
        }
    }
    // Four times the devices, since a share of 5 % is to be told from a smaller one.
    let none = tally(0.03, None, 77, 4 * DEVICES);
    table.push_str(&format!(
        "{:>5.1}% {:>6} {:>6} {:>6} {:>4}/4\n",
        3.0, "none", "", "", none.wrong
    ));
    insta::assert_snapshot!(table);
    assert!(none.wrong <= 4 * 5, "{none:?}");
    for (noise, percent, tally) in &rows {
        assert!(tally.wrong <= 5, "noise {noise}, effect {percent} %: {tally:?}");
        assert!(tally.longest_s <= MAX_S, "{tally:?}");
        // A small effect under much noise is left open, not denied.
        let is_seen = *percent >= 20 || *noise <= 0.015;
        assert!(!is_seen || tally.right >= 95, "noise {noise}, effect {percent} %: {tally:?}");
    }
}
