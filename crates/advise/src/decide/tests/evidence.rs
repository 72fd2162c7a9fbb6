//! What was seen and measured is what counts, as far as it goes.

use super::*;
use rubus_vocabulary::result::Outcome;

/// A bridge says of any disk that it turns; only with a maker's name for such disks it is believed. And what says nothing is no
/// SSD either.
#[test]
fn a_bridges_word_alone_makes_no_spinning_disk() {
    let mut machine = fixture::pi3_with_usb_ssd();
    let mut kind = |model: &str, rotational: Fact<bool>| {
        let disk = machine.block_devices.iter_mut();
        let mut disk = disk.filter(|disk| disk.name == "sda");
        let disk = disk.next().expect("a USB disk");
        disk.model = Fact::known(model.into(), "a test");
        disk.removable = Fact::known(false, "a test");
        disk.rotational = rotational;
        let advice = ask(&machine, &Known::default(), Purpose::Desktop, &[]);
        let mut all = advice.candidates.into_iter();
        all.find(|one| one.name == "sda").expect("it is weighed").what
    };
    let said = || Fact::known(true, "a test");
    let unknown = "USB disk (SSD or platters, its bridge does not tell)";
    assert!(kind("Generic Disk", said()).starts_with(unknown));
    assert!(kind("Samsung SSD 850", said()).starts_with("SSD on USB 2"));
    assert!(kind("WDC WD10SPZX", said()).starts_with("spinning disk"));
    let silent = Fact::unknown("not there", "a test");
    assert!(kind("Generic Disk", silent).starts_with(unknown));
}

/// A run that settled nothing still says what the card cannot do, and the text says that it did not settle.
#[test]
fn figures_that_did_not_settle_bound_the_times() {
    let mut run = fixture::slow_sd_card_run();
    let machine = run.machine.clone();
    for result in &mut run.results {
        result.outcome = Outcome::Inconclusive;
    }
    let card = |runs: &[(RunId, rubus_vocabulary::result::Run)]| {
        let known = Known::of(&machine, runs);
        let advice = ask(&machine, &known, Purpose::Desktop, &[]);
        advice.now().expect("the root is on the card").clone()
    };
    let usual = card(&[]);
    let bounded = card(&[(RunId(7), run.clone())]);
    assert!(bounded.source.ends_with("not settled"), "{}", bounded.source);
    let writes = run.job(job_names::RANDOM_WRITE).expect("it was tried").iops;
    let figure = bounded.figures.random_write;
    assert!(figure.low >= writes.low * 0.99 && figure.high <= writes.high * 1.01);
    assert!(usual.figures.random_write.high > writes.high);
    // Each figure has the mark of that, and so has the time.
    assert_eq!(bounded.basis.random_write, Basis::Unsettled);
    assert_eq!(bounded.basis.time_s, Basis::Unsettled);
    // Without a lower end only the upper one counts, and the time is at least what it says.
    for result in &mut run.results {
        let most = result.iops.high;
        result.iops = Estimate::new(result.iops.value, 0.0, most);
    }
    let at_most = card(&[(RunId(7), run)]);
    assert!(at_most.figures.random_write.high <= writes.high * 1.01);
    assert_ne!(at_most.basis.random_write, Basis::Measured);
    let least_s = 500.0 / writes.high;
    assert!(at_most.time_s.high >= least_s && at_most.time_s.value >= least_s);
}
