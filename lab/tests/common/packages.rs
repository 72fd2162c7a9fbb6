//! Debian packages and apt repositories made by `scripts/package` from a program that is there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rubus_lab::cache::workspace_root;
use rubus_lab::devices::needs::Need;

/// What making a package and a repository needs.
pub const NEEDS: [Need; 5] = [
    Need::Program("dpkg-deb", "dpkg"),
    Need::Program("apt-ftparchive", "apt-utils"),
    Need::Program("gpg", "gpg"),
    Need::Program("gpgv", "gpgv"),
    Need::Program("python3", "python3"),
];

/// Makes the packages of a version in a directory; gives the path of the Debian package.
pub fn make(program: &Path, architecture: &str, version: &str, directory: &Path) -> PathBuf {
    let mut command = script();
    command.arg("--binary").arg(program);
    command.args(["--arch", architecture, "--version", version, "--out"]);
    succeeds(command.arg(directory));
    directory.join(format!("rubus_{version}_{architecture}.deb"))
}

/// Makes the apt repository of the packages in a directory, signed with a key that is kept in `key`.
pub fn make_repository(packages: &Path, repository: &Path, key: &Path, url: &str) {
    let mut command = script();
    command.arg("--out").arg(packages).arg("--apt").arg(repository);
    succeeds(command.arg("--key").arg(key).args(["--url", url]));
}

/// A program that writes as many texts as the script asks for, and is packed in no time.
pub fn small_program(directory: &Path) -> PathBuf {
    let program = directory.join("rubus");
    let text = r##"#!/bin/sh
case $1 in
    manual) echo '.TH rubus 1' >"$3/rubus.1" ;;
    completions) echo "# $2" ;;
esac
"##;
    std::fs::write(&program, text).unwrap();
    succeeds(Command::new("chmod").arg("755").arg(&program));
    program
}

fn script() -> Command {
    let mut command = Command::new(workspace_root().join("scripts/package"));
    // As for every other file of a build, not of the day.
    command.env("SOURCE_DATE_EPOCH", "1700000000");
    command.env("RUBUS_PACKAGE_LEVEL", "1");
    command
}

/// The output of a program that has to succeed.
pub fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", all(&output));
    output
}

/// Both outputs of a program.
pub fn all(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    format!("{out}{}", String::from_utf8_lossy(&output.stderr))
}
