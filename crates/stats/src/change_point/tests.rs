//! Simulated years of weekly runs: what is said falsely, and what is found how soon.

use super::*;

const WEEKS: usize = 52;
const YEARS: u64 = 150;

fn noise(rng: &mut Rng, runs: usize, deviation: f64) -> Vec<f64> {
    (0..runs).map(|_| deviation * rng.normal()).collect()
}

/// Noise that remembers the run before: a disk that is warm or full for weeks.
fn slow_noise(rng: &mut Rng, runs: usize, deviation: f64) -> Vec<f64> {
    const KEPT: f64 = 0.5;
    let mut now = 0.0;
    let fresh = deviation * (1.0 - KEPT * KEPT).sqrt();
    (0..runs)
        .map(|_| {
            now = KEPT * now + fresh * rng.normal();
            now
        })
        .collect()
}

/// Each run in one of two modes, as chance will have it.
fn modes(rng: &mut Rng, runs: usize, share: u64) -> Vec<f64> {
    let one = |rng: &mut Rng| {
        let low = if rng.below(100) < share { -0.7 } else { 0.0 };
        low + 0.03 * rng.normal()
    };
    (0..runs).map(|_| one(rng)).collect()
}

/// Share of years in which a false word is said in some week.
fn false_years(make: impl Fn(&mut Rng) -> Vec<f64>, is_false: impl Fn(Change) -> bool) -> f64 {
    let mut years = 0_u32;
    for year in 0..YEARS {
        let series = make(&mut Rng::stream(7, year));
        let says = |week: usize| find(&series[..week]).is_some_and(&is_false);
        years += u32::from((MIN_RUNS..=series.len()).any(says));
    }
    f64::from(years) / YEARS as f64
}

#[test]
fn a_false_word_is_said_in_few_years_of_weekly_runs() {
    let any = |_: Change| true;
    let mut shares = Vec::new();
    for deviation in [0.02, 0.05, 0.10] {
        let share = false_years(|rng| noise(rng, WEEKS, deviation), any);
        shares.push((format!("noise of {deviation}"), share));
        let share = false_years(|rng| slow_noise(rng, WEEKS, deviation), any);
        shares.push((format!("slow noise of {deviation}"), share));
    }
    // One run in the other mode is a spike until there are more of them.
    let lasting = |change: Change| matches!(change, Change::Step { .. } | Change::Drift { .. });
    for percent in [20, 50] {
        let share = false_years(|rng| modes(rng, WEEKS, percent), lasting);
        shares.push((format!("two modes, {percent} % low"), share));
    }
    for (what, share) in &shares {
        assert!(*share <= 0.05, "{what}: {share}");
    }
}

#[test]
fn a_fall_of_30_percent_is_found_by_the_third_run_after_it() {
    for (before, deviation) in [(6, 0.05), (10, 0.05), (20, 0.05), (40, 0.05)] {
        let mut found = 0;
        for trial in 0..YEARS {
            let mut series = noise(&mut Rng::stream(11, trial), before + 3, deviation);
            series[before..].iter_mut().for_each(|value| *value += 0.7_f64.ln());
            let says = find(&series);
            found += u32::from(matches!(says, Some(Change::Step { at, .. }) if at == before));
        }
        let share = f64::from(found) / YEARS as f64;
        assert!(share >= 0.9, "{before} runs before, noise of {deviation}: {share}");
    }
}

#[test]
fn each_of_the_four_words_is_said_of_what_it_is_for() {
    let mut rng = Rng::from_seed(3);
    let mut spike = noise(&mut rng, 15, 0.03);
    spike[8] -= 0.8;
    assert!(matches!(find(&spike), Some(Change::Spike { at: 8, .. })), "{:?}", find(&spike));
    let drift: Vec<f64> = noise(&mut rng, 20, 0.02)
        .iter()
        .enumerate()
        .map(|(at, one)| one - 0.02 * at as f64)
        .collect();
    assert!(matches!(find(&drift), Some(Change::Drift { ratio }) if ratio < 0.75));
    let two = modes(&mut rng, 20, 50);
    assert!(matches!(find(&two), Some(Change::TwoModes { .. })), "{:?}", find(&two));
    let mut step = noise(&mut rng, 20, 0.03);
    step[12..].iter_mut().for_each(|value| *value -= 0.4);
    assert!(matches!(find(&step), Some(Change::Step { at: 12, .. })));
}

#[test]
fn below_six_runs_only_the_last_one_looks_different() {
    assert_eq!(find(&[0.0, 0.0, -1.0, -1.0, -1.0]), None);
    let ratio = looks_different(&[0.0, 0.02, -0.4], 0.05).expect("it does");
    assert!((0.6..0.7).contains(&ratio), "{ratio}");
    assert_eq!(looks_different(&[0.0, 0.02, -0.1], 0.05), None, "a small difference");
    assert_eq!(looks_different(&[0.0, 0.02, -0.4], 0.9), None, "its interval reaches them");
    assert_eq!(looks_different(&[0.0], 0.1), None);
}

#[test]
fn a_known_event_needs_fewer_runs_than_a_search() {
    let series = [0.0, 0.04, -0.03, 0.02, -0.01, -0.3, -0.26, -0.33];
    assert_eq!(find(&series), None);
    assert!(matches!(at_event(&series, 5), Some(Change::Step { at: 5, .. })));
    assert_eq!(at_event(&series, 7), None, "one run after it");
    assert_eq!(at_event(&[0.0, 0.01, 0.02, 0.0, 0.01, 0.02, 0.01, 0.0], 4), None);
}
