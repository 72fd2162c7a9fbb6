//! A run of a processor compared job by job.

use rubus_fixtures as fixture;
use rubus_vocabulary::processor::ProcessorRun;
use rubus_vocabulary::processor::linpack::Linpack;

#[test]
fn each_kind_of_core_is_compared_by_its_name() {
    let run = fixture::processor_run();
    let processor = run.processor().expect("it is of a processor");
    let mut linpack = processor.linpack.clone().expect("it is in the fixture");
    let titles = |linpack: &Linpack| -> Vec<String> {
        let run = ProcessorRun { linpack: Some(linpack.clone()), ..processor.clone() };
        let jobs = run.jobs().into_iter().map(|job| job.title);
        jobs.filter(|title| title.starts_with("linpack")).collect()
    };
    let alike = ["linpack, one core", "linpack, all cores"];
    assert_eq!(titles(&linpack), alike);
    let mut little = linpack.all.clone();
    little.core = Some("Cortex-A55".into());
    linpack.other_kinds.push(little);
    // The fastest core keeps its title, and its history.
    let kinds = ["linpack, one core", "linpack, one Cortex-A55", alike[1]];
    assert_eq!(titles(&linpack), kinds);
    // The fixture's stability test has a wrong result of its own.
    linpack.stability = None;
    let run_of = |linpack: &Linpack| ProcessorRun {
        compression: None,
        linpack: Some(linpack.clone()),
        ..processor.clone()
    };
    let right = run_of(&linpack);
    linpack.other_kinds[0].different = 1;
    let wrong = run_of(&linpack);
    assert!(right.is_right() && !wrong.is_right());
}
