//! The plans of the smaller recipes for captured boards, as their owner would read them.

use std::process::Command;

fn plan(capture: &str, recipe: &str, wishes: &[&str]) -> String {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/");
    let home = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_rubus"))
        .args(["plan", recipe, "--machine"])
        .arg(format!("{captures}{capture}"))
        .args(wishes)
        .env("XDG_DATA_HOME", home.path())
        .env("COLUMNS", "80")
        .output()
        .expect("it runs");
    format!(
        "{}{}exit status {}\n",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code().unwrap_or(-1)
    )
}

#[test]
fn a_stick_becomes_swap() {
    insta::assert_snapshot!(plan("pi4b-usb3-ssd", "swap", &["to=disk:/dev/sdb", "size=1G"]));
}

#[test]
fn an_array_with_a_disk_that_is_in_use() {
    let wishes = ["devices=/dev/sda,/dev/sdb", "at=/mnt/fast"];
    insta::assert_snapshot!(plan("pi4b-usb3-ssd", "raid0", &wishes));
}

#[test]
fn a_stick_gets_a_filesystem() {
    let wishes = ["device=/dev/sda", "at=/mnt/data", "filesystem=btrfs"];
    insta::assert_snapshot!(plan("pi2b-sd-usb-stick", "format", &wishes));
}

#[test]
fn swap_in_memory_with_another_size() {
    insta::assert_snapshot!(plan("pi5-nvme", "swap", &["to=zram", "size=1G"]));
}

#[test]
fn swap_leaves_the_card() {
    insta::assert_snapshot!(plan("pi2b-sd-usb-stick", "swap", &["to=none"]));
}

#[test]
fn a_directory_in_memory() {
    insta::assert_snapshot!(plan("pi3bplus-usb-ssd", "ramdisk", &["at=/mnt/ram"]));
}

#[test]
fn a_recipe_of_ones_own_with_faults() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("own.toml");
    let text = "name = \"own\"\ntitle = \"t\"\n\n[[step]]\ndo = \"set_nob\"\nwhy = \"w\"\n";
    std::fs::write(&path, text).expect("it can be written");
    let said = plan("pi5-nvme", &path.display().to_string(), &[]);
    let said = said.replace(&directory.path().display().to_string(), "DIR");
    insta::assert_snapshot!(said);
}
