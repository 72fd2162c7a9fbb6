//! `rubus bench cpu --against-binary` with programs that are no rubus to compare with: each is refused in words, before
//! anything is measured.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use assert_cmd::Command;

/// What is said about a program: a script with this text, if there is one.
fn complaint(program: &Path, script: Option<&str>, mode: u32) -> String {
    let home = tempfile::tempdir().expect("a temporary directory");
    if let Some(script) = script {
        // Renamed when it is closed: a file that is being written cannot be run.
        let fresh = home.path().join("fresh");
        std::fs::write(&fresh, format!("#!/bin/sh\n{script}\n")).expect("a file");
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(mode)).expect("its owner");
        std::fs::rename(&fresh, home.path().join(program)).expect("a name");
    }
    let output = Command::cargo_bin("rubus")
        .expect("the program is built")
        .current_dir(home.path())
        .env("XDG_DATA_HOME", home.path())
        .args(["bench", "cpu", "ciphers", "--against-binary"])
        .arg(program)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

const VERSION: &str =
    concat!("if [ \"$1\" = --version ]; then echo rubus ", env!("CARGO_PKG_VERSION"), "; exit; fi");

#[test]
fn what_is_no_program_is_said_to_be_none() {
    let absent = complaint(Path::new("rubus-armv7"), None, 0);
    assert!(absent.contains("cannot look at rubus-armv7"), "{absent}");
    let directory = complaint(Path::new("/usr"), None, 0);
    assert!(directory.contains("/usr is no program"), "{directory}");
    let text = complaint(Path::new("other"), Some("echo"), 0o644);
    assert!(text.contains("`chmod +x other`"), "{text}");
}

#[test]
fn another_program_and_another_version_are_told_apart() {
    let other = complaint(Path::new("other"), Some("echo GNU cat"), 0o755);
    assert!(
        other.contains("other is no rubus: asked for its version, it says 'GNU cat'"),
        "{other}"
    );
    let silent = complaint(Path::new("other"), Some("echo broken >&2; exit 3"), 0o755);
    assert!(silent.contains("does not say which version it is"), "{silent}");
    assert!(silent.contains("status 3: broken"), "{silent}");
    let old = complaint(Path::new("other"), Some("echo rubus 0.0.1"), 0o755);
    assert!(old.contains("other is rubus 0.0.1, and this is rubus "), "{old}");
}

#[test]
fn one_that_cannot_be_loaded_or_fails_or_prints_nonsense_is_named() {
    let script = format!("{VERSION}\necho no such cipher >&2; exit 2");
    let failed = complaint(Path::new("other"), Some(&script), 0o755);
    assert!(failed.contains("status 2: no such cipher"), "{failed}");
    let script = format!("{VERSION}\necho '{{\"results\": 7}}'");
    let nonsense = complaint(Path::new("other"), Some(&script), 0o755);
    assert!(nonsense.contains("no result that this rubus can read"), "{nonsense}");
    // What would load it is not there.
    let home = tempfile::tempdir().expect("a temporary directory");
    let script = foreign(home.path(), b"#!/no/such/loader\n");
    assert!(script.contains("it is no program, and what its first line names"), "{script}");
}

/// The error message for a file with these bytes, which is not executable anywhere.
fn foreign(home: &Path, bytes: &[u8]) -> String {
    let program = home.join("rubus-armv7");
    std::fs::write(&program, bytes).expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("its owner");
    let said = complaint(&program, None, 0);
    assert!(said.contains("this system cannot run it"), "{said}");
    said
}

#[test]
fn a_program_for_another_processor_is_refused_with_what_both_are_built_for() {
    let home = tempfile::tempdir().expect("a temporary directory");
    // The header of a big-endian program for the IBM System/370 (machine 9), which ends there: no system runs it, whatever its
    // processor, and no emulator is set up for it.
    let header = b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x09";
    let said = foreign(home.path(), header);
    let own = format!(
        "it is built for 32 bits, machine 9, and this one for {} bits, {}:",
        usize::BITS,
        std::env::consts::ARCH
    );
    assert!(said.contains(&own), "{said}");
}

/// What a rubus on another kind of processor would print: this one's own result, with another architecture in it.
#[test]
fn one_for_another_kind_of_processor_that_runs_all_the_same_is_said_to_be_emulated() {
    let rubus = assert_cmd::cargo::cargo_bin("rubus");
    let other = match std::env::consts::ARCH {
        "arm" | "aarch64" => "x86_64",
        _ => "arm",
    };
    let home = tempfile::tempdir().expect("a temporary directory");
    let fresh = home.path().join("fresh");
    let script = format!(
        "#!/bin/sh\n{} \"$@\" | sed 's/\"architecture\": *\"{}\"/\"architecture\": \"{other}\"/'\n",
        rubus.display(),
        std::env::consts::ARCH
    );
    std::fs::write(&fresh, script).expect("a file");
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).expect("its owner");
    std::fs::rename(&fresh, home.path().join("wrapper")).expect("a name");
    let output = Command::new(&rubus)
        .current_dir(home.path())
        .env("XDG_DATA_HOME", home.path())
        .args([
            "bench",
            "cpu",
            "linpack",
            "--unknowns",
            "64",
            "--seconds",
            "0.2",
            "--against-binary",
            "./wrapper",
        ])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = words.join(" ");
    let own = std::env::consts::ARCH;
    for wanted in [
        format!("wrapper ({} bits, {other}), ", usize::BITS),
        format!("(for {other}, and the other for {own}: no processor runs both by itself"),
        "the ratio is that of the emulator)".into(),
    ] {
        assert!(said.contains(&wanted), "{wanted}:\n{text}");
    }
}
