//! The page of a gallery is for others: what is on it comes from the runs as they may be shared, not as they were given.

use std::path::Path;
use std::process::Command;

use rubus_fixtures::slow_sd_card_run;
use rubus_vocabulary::fact::Fact;

#[test]
fn the_page_of_a_gallery_has_nothing_that_a_shared_run_has_not() {
    let place = tempfile::tempdir().expect("a directory");
    let mut run = slow_sd_card_run();
    for device in &mut run.machine.block_devices {
        device.model = Fact::known("qzalice".into(), "a test");
    }
    run.machine.board.model = Fact::known("Board of qzattic".into(), "a test");
    run.suite = "qzsuite".into();
    run.target.filesystem = Some("qzfs".into());
    std::fs::write(place.path().join("run.json"), run.to_json_text().expect("JSON"))
        .expect("written");
    let page = page(place.path());
    assert!(page.contains("Random write"), "{page}");
    assert!(!page.contains("qz"), "{page}");
}

fn page(place: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rubus"))
        .args(["gallery", "run.json", "--html", "-"])
        .current_dir(place)
        .env("XDG_DATA_HOME", place)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("a page")
}
