//! `rubus boot` as its user meets it: on a captured machine, on an image, and on what is none.

use std::io::Read;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use flate2::read::GzDecoder;
use serde_json::Value;

const CARD: &[u8] = include_bytes!("../../boot-check/src/card/fixtures/card.img.gz");

/// The status, what was printed, and what was complained of.
fn boot(arguments: &[&str]) -> (i32, String, String) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = Command::cargo_bin("rubus")
        .expect("the program is built")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("XDG_DATA_HOME", home.path())
        .arg("boot")
        .args(arguments)
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

struct Image {
    _directory: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn image(change: impl Fn(&mut Vec<u8>)) -> Image {
    let mut bytes = Vec::new();
    GzDecoder::new(CARD).read_to_end(&mut bytes).expect("a fixture");
    change(&mut bytes);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("card.img");
    std::fs::write(&path, &bytes).expect("a file");
    Image { _directory: directory, path, bytes }
}

impl Image {
    fn boot(&self, more: &[&str]) -> (i32, String, String) {
        let path = self.path.display().to_string();
        boot(&[&[path.as_str()], more].concat())
    }
}

#[test]
fn a_captured_machine_starts() {
    let (status, text, _) = boot(&["--machine", "captures/pi4b-usb3-ssd"]);
    assert_eq!(status, 0, "{text}");
    assert!(text.starts_with("It probably starts; check "), "{text}");
}

#[test]
fn an_image_is_read_and_not_written() {
    let image = image(|_| {});
    let (status, text, _) = image.boot(&["--board", "pi4"]);
    assert_eq!(status, 0, "{text}");
    let (status, json, _) = image.boot(&["--json"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((status, report["outcome"].as_str()), (0, Some("starts")), "{json}");
    let now = std::fs::read(&image.path).expect("the image");
    assert!(now == image.bytes, "the bytes of the image are as they were");
}

#[test]
fn a_clone_that_kept_the_old_name_says_which_word_to_change() {
    // Another identifier in the table: the partitions are no longer called as cmdline.txt says.
    let image = image(|bytes| bytes[440..444].copy_from_slice(&0x3c4d_5e6f_u32.to_le_bytes()));
    let (status, text, _) = image.boot(&["--board", "pi4"]);
    assert_eq!(status, 1, "{text}");
    let head = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(
        words.join(" "),
        "It probably stops at the root: cmdline.txt names PARTUUID=1a2b3c4d-02; this disk has 3c4d5e6f-02 (partition 2). \
         To do: If the root is on this disk, write root=PARTUUID=3c4d5e6f-02 into cmdline.txt on the boot \
         partition, and see that /etc/fstab names it"
    );
}

#[test]
fn what_is_no_disk_is_a_mistake_with_its_remedy() {
    let cut = image(|bytes| bytes.truncate(6 << 20));
    let empty = image(|bytes| bytes.clear());
    for (outcome, words) in [
        (cut.boot(&[]), "copy or download it again"),
        (empty.boot(&[]), "no partition table"),
        (boot(&["captures"]), "neither a disk nor a file"),
        (boot(&["/none"]), "no such file"),
        (boot(&["Cargo.toml", "--board", "pi9"]), "possible values"),
        (boot(&["--board", "pi4"]), "required"),
    ] {
        let (status, _, complaint) = outcome;
        assert_eq!(status, 2, "{complaint}");
        assert!(complaint.contains(words), "{complaint}");
    }
}
