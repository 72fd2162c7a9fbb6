//! Captures that were made by hand, cut off, or made to do harm.

use super::*;

/// A directory with a manifest and a tree, as a person would write it.
fn by_hand(manifest: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("files");
    std::fs::create_dir_all(files.join("sys/devices/usb1/1-1")).unwrap();
    std::fs::create_dir_all(files.join("sys/bus/usb/devices")).unwrap();
    std::fs::create_dir_all(files.join("proc")).unwrap();
    std::fs::create_dir_all(files.join("sys/block/empty")).unwrap();
    std::fs::write(files.join("sys/devices/usb1/1-1/speed"), "480\n").unwrap();
    std::fs::write(files.join("proc/cpuinfo"), "processor : 0\n").unwrap();
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, files.join(name)).unwrap();
    };
    link("../../../devices/usb1/1-1", "sys/bus/usb/devices/1-1");
    link("/sys/devices/usb1", "sys/bus/usb/devices/usb1");
    link("../../../../../../../../../etc/hostname", "proc/climber");
    std::fs::write(directory.path().join("manifest.json"), manifest).unwrap();
    std::fs::write(directory.path().join("README"), "hand-built\n").unwrap();
    directory
}

const HAND_BUILT: &str = r#"{
    "format": "rubus capture", "version": 1, "label": "hand-built: a test", "missing": "absent",
    "links": {"/sys/class/net/eth0": "/sys/devices/usb1/1-1/net/eth0"},
    "space": {"/": {"size_bytes": 100, "available_bytes": 40}},
    "programs": [{"call": ["uname", "-m"], "output": "armv7l\n"},
                 {"call": ["vcgencmd", "version"], "error": {"failed":
                  {"status": 255, "complaint": "VCHI", "output": ""}}}],
    "firmware_words": [{"tag": "0x00030046", "word": "0x50000"},
                       {"tag": "0x00000001", "error": "denied"}],
    "errors": [{"path": "/sys/kernel/debug/zswap", "question": "list", "error": "denied"}]
}"#;

#[test]
fn a_hand_built_tree_is_everything_there_is() {
    let directory = by_hand(HAND_BUILT);
    let captured = Captured::open(directory.path()).unwrap();
    let path = Path::new;
    assert_eq!(captured.label(), "hand-built: a test");
    assert_eq!(captured.recorded_at(), "");
    assert_eq!(captured.text(path("/sys/bus/usb/devices/1-1/speed")).unwrap(), "480");
    assert_eq!(captured.text(path("/sys/bus/usb/devices/usb1/1-1/speed")).unwrap(), "480");
    assert_eq!(captured.list(path("/sys/bus/usb/devices")).unwrap(), ["1-1", "usb1"]);
    assert_eq!(captured.list(path("/sys/class/net")).unwrap(), ["eth0"]);
    assert_eq!(captured.list(path("/sys/block/empty")).unwrap(), Vec::<String>::new());
    assert_eq!(captured.text(path("/proc/meminfo")), Err(ReadError::Absent));
    // A link out of the tree leads to a path of the captured machine, not of this one, and what a
    // link leads to is there, so that drivers need no directories of their own.
    assert_eq!(captured.real_path(path("/proc/climber")).unwrap(), path("/etc/hostname"));
    assert!(captured.text(path("/proc/climber")).is_err());
    assert_eq!(captured.space(path("/")).unwrap().available_bytes, 40);
    assert_eq!(captured.ask("uname", &["-m"]).unwrap(), "armv7l\n");
    assert!(matches!(
        captured.ask("vcgencmd", &["version"]),
        Err(ReadError::Failed { status: 255, .. })
    ));
    assert_eq!(captured.firmware_word(0x30046), Ok(0x50000));
    assert_eq!(captured.firmware_word(1), Err(ReadError::Denied));
    assert_eq!(captured.list(path("/sys/kernel/debug/zswap")), Err(ReadError::Denied));
}

fn error_of(manifest: &str) -> String {
    let directory = by_hand(manifest);
    let error = Captured::open(directory.path()).unwrap_err().to_string();
    error.replace(&directory.path().display().to_string(), "CAPTURE")
}

#[test]
fn a_broken_manifest_is_told_with_its_place_and_a_remedy() {
    for (manifest, expected) in [
        ("{", "EOF while parsing"),
        ("[]", "manifest.json: invalid"),
        (r#"{"format": "x", "version": 1, "label": ""}"#, "of the format 'x'"),
        (r#"{"format": "rubus capture", "version": 1}"#, "missing field `label`"),
        (
            r#"{"format": "rubus capture", "version": 1, "label": "", "link": {}}"#,
            "unknown field `link`",
        ),
        (
            r#"{"format": "rubus capture", "version": 1, "label": "", "files": {"/proc/x": 1}}"#,
            "files/proc/x is missing",
        ),
        (
            r#"{"format": "rubus capture", "version": 1, "label": "", "files": {"/proc/cpuinfo": 1}}"#,
            "files/proc/cpuinfo has 14 bytes, and manifest.json says 1",
        ),
        (
            r#"{"format": "rubus capture", "version": 1, "label": "", "programs": [{"call": ["x"]}]}"#,
            "needs either an answer or an error",
        ),
        (
            r#"{"format": "rubus capture", "version": 1, "label": "",
                "firmware_words": [{"tag": "7", "word": "0x1"}]}"#,
            "bad tag",
        ),
    ] {
        let error = error_of(manifest);
        assert!(error.contains(expected), "{error}");
        assert!(error.starts_with("CAPTURE is not a usable capture"), "{error}");
        let remedy = error.contains("manifest.json, or") || error.contains("rubus survey --save");
        assert!(remedy, "{error}");
    }
}

#[test]
fn a_newer_capture_is_refused_with_the_versions() {
    let manifest = r#"{"format": "rubus capture", "version": 2, "rubus_version": "9.1",
        "label": "", "news": []}"#;
    assert_eq!(
        error_of(manifest),
        "CAPTURE has format version 2, and this rubus reads up to version 1; \
         use the rubus that saved it (9.1), or a newer one"
    );
}

#[test]
fn other_files_are_not_taken_for_captures() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for (contents, expected) in [
        (b"".as_slice(), "empty or cut off"),
        (b"x", "empty or cut off"),
        (b"not a tar at all, only text", "is not a tar"),
        (&[b'x'; 5000], "is not a tar"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "is not a tar"),
        (&[0_u8; 1024], "no manifest.json"),
    ] {
        std::fs::write(&path, contents).unwrap();
        let error = Captured::open(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let manifest = directory.path().join("manifest.json");
    std::fs::write(&manifest, b"{}").unwrap();
    let error = Captured::open(&manifest).unwrap_err().to_string();
    assert!(error.contains("give the directory that it is in"), "{error}");
    let missing = Captured::open(&directory.path().join("missing")).unwrap_err();
    assert!(matches!(missing, CaptureError::Absent), "{missing}");
    let empty = Captured::open(directory.path());
    assert!(empty.is_err());
}

#[test]
fn a_capture_that_is_cut_off_is_noticed() {
    let (_directory, path) = saved(&machine(), "a.tar", Identities::Keep);
    let whole = all_bytes(&path);
    // Up to the end mark of a tar, two empty blocks, every cut loses something.
    for length in (0..whole.len() - 1024).step_by(509) {
        let opened = Captured::from_archive(Path::new("cut"), &whole[..length]);
        let error = opened.expect_err(&format!("cut at {length}")).to_string();
        assert!(!error.contains('\n'), "{error}");
    }
}

/// A tar of the given entries, names unchecked.
fn tar_of(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, contents) in entries {
        let mut header = tar::Header::new_old();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        if *kind == tar::EntryType::Regular {
            header.set_size(contents.len() as u64);
            header.set_cksum();
            bytes.extend(header.as_bytes());
            bytes.extend(*contents);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        } else {
            header.set_size(0);
            header.set_link_name_literal(contents).unwrap();
            header.set_cksum();
            bytes.extend(header.as_bytes());
        }
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

#[test]
fn names_that_climb_out_and_strange_entries_are_refused() {
    let manifest = ("manifest.json", tar::EntryType::Regular, HAND_BUILT.as_bytes());
    let open = |entry| Captured::from_archive(Path::new("x.tar"), &tar_of(&[manifest, entry]));
    for name in ["files/../../../etc/passwd", "/etc/passwd", "../x"] {
        let error = open((name, tar::EntryType::Regular, b"x".as_slice())).unwrap_err();
        assert!(error.to_string().contains("points out of the capture"), "{error}");
    }
    for kind in [tar::EntryType::Link, tar::EntryType::Char, tar::EntryType::Fifo] {
        let error = open(("files/x", kind, b"manifest.json".as_slice())).unwrap_err();
        assert!(error.to_string().contains("do not have"), "{error}");
    }
    let link = ("files/etc", tar::EntryType::Symlink, b"/proc/self/root/etc".as_slice());
    let captured = open(link).unwrap();
    assert_eq!(captured.text(Path::new("/etc/hostname")), Err(ReadError::Absent));
}

#[test]
fn of_two_entries_of_one_name_the_later_holds() {
    let archive = tar_of(&[
        ("manifest.json", tar::EntryType::Regular, HAND_BUILT.as_bytes()),
        ("files/x", tar::EntryType::Regular, b"first"),
        ("files/x", tar::EntryType::Regular, b"second"),
        ("files/x/y", tar::EntryType::Regular, b"below a file"),
    ]);
    let captured = Captured::from_archive(Path::new("x.tar"), &archive).unwrap();
    assert_eq!(captured.text(Path::new("/x")).unwrap(), "second");
}

#[test]
fn what_unpacks_without_end_is_stopped() {
    use std::io::Write;
    let mut header = tar::Header::new_gnu();
    header.set_path("files/zeros").unwrap();
    header.set_size(64 << 30);
    header.set_cksum();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(header.as_bytes()).unwrap();
    for _ in 0..20 {
        packer.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = packer.finish().unwrap();
    let error = Captured::from_archive(Path::new("x.tar.gz"), &bomb).unwrap_err();
    assert!(error.to_string().contains("files/zeros is larger than"), "{error}");
}

#[test]
fn too_many_entries_and_too_long_paths_are_refused() {
    let mut many = Vec::new();
    for at in 0..=LIMITS.entries {
        many.extend(tar_of(&[(&format!("files/{at}"), tar::EntryType::Regular, b"")]));
        many.truncate(many.len() - 1024);
    }
    many.resize(many.len() + 1024, 0);
    let error = Captured::from_archive(Path::new("x"), &many).unwrap_err();
    assert!(error.to_string().contains("more than 50000 entries"), "{error}");

    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    let name = format!("files/{}", "long/".repeat(1000));
    builder.append_data(&mut header, format!("{name}x"), &b""[..]).unwrap();
    let long = builder.into_inner().unwrap();
    let error = Captured::from_archive(Path::new("x"), &long).unwrap_err();
    assert!(error.to_string().contains("a path in it is longer"), "{error}");
}

#[test]
fn a_directory_that_is_no_capture_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = Captured::open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("no manifest.json"), "{error}");
    std::fs::write(directory.path().join("manifest.json"), HAND_BUILT).unwrap();
    let error = Captured::open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("fifo is neither a file"), "{error}");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(300))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(0_u8.., 0..2000)) {
        let _ = Captured::from_archive(Path::new("x"), &bytes);
    }

    #[test]
    fn changed_captures_never_panic(
        changes in proptest::collection::vec((0_usize.., 0_u8..), 1..20),
        packed: bool,
    ) {
        let mut bytes = example(packed).to_vec();
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Ok(captured) = Captured::from_archive(Path::new("x"), &bytes) {
            read_everything_there(&captured);
        }
    }

    #[test]
    fn changed_manifests_never_panic(
        changes in proptest::collection::vec((0_usize..HAND_BUILT.len(), " -~"), 1..4),
    ) {
        let mut manifest = HAND_BUILT.as_bytes().to_vec();
        for (at, text) in changes {
            manifest[at] = text.as_bytes()[0];
        }
        let archive = tar_of(&[("manifest.json", tar::EntryType::Regular, &manifest)]);
        if let Ok(captured) = Captured::from_archive(Path::new("x"), &archive) {
            read_everything_there(&captured);
        }
    }

    #[test]
    fn no_identity_makes_redaction_panic(serial in "\\PC{0,20}", uuid in "[0-9a-fA-F-]{0,40}") {
        let files = FakeFiles::new()
            .file("/sys/block/sda/device/serial", &serial)
            .file("/sys/block/sda/device/wwid", format!("naa.{uuid}"))
            .file("/proc/cmdline", format!("root=UUID={uuid} {serial}"))
            .file("/run/udev/data/b8:0", format!("E:ID_SERIAL={serial}\nE:ID_NET_NAME_MAC={serial}\n"));
        let recorder = Recorder::new(&files);
        read_everything_there(&recorder);
        let mut record = recorder.record();
        let redactor = redact::Redactor::new(secrets::find(&files, &record, &[]));
        redactor.redact(&mut record);
    }
}

fn example(packed: bool) -> &'static [u8] {
    use std::sync::OnceLock;
    static PLAIN: OnceLock<Vec<u8>> = OnceLock::new();
    static PACKED: OnceLock<Vec<u8>> = OnceLock::new();
    let (cell, name) = if packed { (&PACKED, "a.tgz") } else { (&PLAIN, "a.tar") };
    cell.get_or_init(|| {
        let (_directory, path) = saved(&machine(), name, Identities::Keep);
        all_bytes(&path)
    })
}
