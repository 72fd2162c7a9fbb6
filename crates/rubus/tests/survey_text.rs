//! What the text of a survey does not say: people paste it into forums.

use std::path::Path;

use assert_cmd::Command;

/// What is planted on the kernel command line, by kind.
const PLANTED: [(&str, &str); 8] = [
    ("wifi_password=hunter2qz", "hunter2qz"),
    ("ip=dhcp nfsroot=10.11.12.13:/srv/qzalice", "qzalice"),
    ("luks.key=/root/qzkey", "qzkey"),
    ("cifsroot=//qznas/share,username=qzbob,password=qzsecret", "qzsecret"),
    ("systemd.hostname=qzattic", "qzattic"),
    ("smsc95xx.macaddr=B8:27:EB:3A:2B:1C", "3A:2B:1C"),
    ("token=ghp_qzTOKEN0123456789", "ghp_qzTOKEN"),
    ("url='https://qzuser:qzpass@example.org/x'", "qzpass"),
];

/// A capture whose kernel command line has all that is planted.
fn planted(directory: &Path) -> String {
    let board = directory.join("board");
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([&captures.join("pi4b-usb3-ssd"), &board])
        .status()
        .expect("cp starts");
    assert!(copied.success());
    let file = board.join("files/proc/cmdline");
    let line = std::fs::read_to_string(&file).expect("the capture has a command line");
    let more: Vec<&str> = PLANTED.iter().map(|(parameter, _)| *parameter).collect();
    std::fs::write(&file, format!("{} {}\n", line.trim(), more.join(" "))).expect("it is written");
    board.display().to_string()
}

fn survey(home: &Path, board: &str, more: &[&str]) -> String {
    let mut command = Command::cargo_bin("rubus").expect("the program is built");
    command.env("XDG_DATA_HOME", home).env("COLUMNS", "1000").args(["--machine", board, "survey"]);
    let output = command.args(more).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

#[test]
fn the_text_has_no_secret_of_the_command_line_unless_it_is_asked_for() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let board = planted(home.path());
    for extent in [&[][..], &["--verbose"]] {
        let text = survey(home.path(), &board, extent);
        let is_whole = !extent.is_empty();
        assert_eq!(text.contains("rootwait"), is_whole, "known parameters stay: {text}");
        assert!(text.contains(&board), "what the reader named stays: {text}");
        for (parameter, secret) in PLANTED {
            assert!(!text.contains(secret), "{parameter} in {text}");
        }
    }
    let all: String =
        survey(home.path(), &board, &["--serials", "--verbose"]).split_whitespace().collect();
    for (parameter, secret) in PLANTED {
        assert!(all.contains(secret), "{parameter} is shown on request: {all}");
    }
}
