//! Plans for the captured machines of the repository, as their owners would see them.

use std::path::Path;
use std::process::Command;

fn plan(capture: &str, wishes: &[&str]) -> String {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let output = Command::new(env!("CARGO_BIN_EXE_rubus"))
        .args(["plan", "desktop", "--machine"])
        .arg(captures.join(capture))
        .args(wishes)
        .env("COLUMNS", "80")
        .output()
        .expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    assert_eq!(text(output.stderr), "");
    format!("exit {}\n{}", output.status.code().expect("it was not killed"), text(output.stdout))
}

#[test]
fn a_desktop_on_a_free_stick() {
    insta::assert_snapshot!(plan("pi4b-usb3-ssd", &["device=/dev/sdb"]));
}

#[test]
fn a_desktop_on_a_disk_that_is_mounted() {
    insta::assert_snapshot!(plan("pi2b-sd-usb-stick", &["device=/dev/sda"]));
}

#[test]
fn a_desktop_that_is_there_already() {
    insta::assert_snapshot!(plan("pi3bplus-usb-ssd", &["device=/dev/sda"]));
}

#[test]
fn a_desktop_without_a_disk() {
    insta::assert_snapshot!(plan("pi5-nvme", &[]));
}
