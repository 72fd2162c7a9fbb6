//! The NBD server with the programs by which others test theirs: the reference implementation's test client in each of its
//! modes, libnbd's newest step by step (each option, each command, in the three forms of replies that there are), and
//! qemu's newest as a client.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::served::{Random, directory, sum};
use crate::common::{can_run, program, report, take_turns};
use rubus_lab::cache::Cache;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Listening, Serving, free_port, programs};
use rubus_lab::foreign::{Tester, debian_13, tester};
use tempfile::TempDir;

const SCENARIOS: &str = include_str!("../interop/scenarios.py");

/// A server of ours on a port of the loopback.
struct Served {
    _serving: Serving,
    port: u16,
    directory: TempDir,
}

impl Served {
    /// Serves `what`, a file in that directory.
    fn new(directory: TempDir, what: &str, options: &[&str]) -> Served {
        let port = free_port("127.0.0.1").expect("a port");
        let mut command = Command::new(program::binary());
        command.arg("serve").arg(directory.path().join(what));
        command.args(["--quiet", "--listen", &format!("127.0.0.1:{port}")]);
        command.args(options);
        let listening = Listening::Port("127.0.0.1".into(), port);
        Served { _serving: Serving::start(command, listening).expect("it serves"), port, directory }
    }

    fn address(&self) -> String {
        format!("nbd://127.0.0.1:{}", self.port)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// What a program said, which must have ended well.
fn well(what: &str, output: Output) -> String {
    let said = both(&output);
    assert!(output.status.success(), "{what}: {}\n{said}", output.status);
    said
}

/// The end of what a program said on both its outputs. The tester overwrites its lines of progress.
fn both(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said).replace('\r', "\n");
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// What the reference implementation's tester is built with.
const FOR_THE_TESTER: [Need; 3] = [
    Need::Program("cc", "gcc"),
    Need::Program("pkg-config", "pkgconf"),
    Need::Program("apt-get", "apt"),
];

/// No way to get it is a failure: a test that does not run shows nothing.
fn the_tester() -> Tester {
    tester(&Cache::of_this_machine()).expect("the reference implementation's tester")
}

/// Runs it; gives what was run in words, too.
fn run_tester(tester: &Tester, arguments: &[&str]) -> (String, Output) {
    let output = Command::new(&tester.program).args(arguments).output().expect("the tester starts");
    (format!("nbd-tester-client {arguments:?}"), output)
}

/// A server of what the tester asks for.
fn served_for_the_tester(options: &[&str]) -> Served {
    let options = [&["--size", "50MiB", "--name", "export1"], options].concat();
    Served::new(directory(), "disk.img", &options)
}

#[test]
fn the_reference_implementations_own_tests_pass() {
    const TEST: &str = "nbd_interop_reference";
    if !can_run(TEST, &FOR_THE_TESTER) {
        return;
    }
    let _turn = take_turns();
    let tester = the_tester();
    let run = |arguments: &[&str]| run_tester(&tester, arguments);
    let fresh = served_for_the_tester;
    let over_tcp = |served: &Served, mode: &[&str]| {
        let port = served.port.to_string();
        let (what, output) = run(&[&["-N", "export1"], mode, &["127.0.0.1", &port]].concat());
        well(&what, output)
    };
    let served = fresh(&[]);
    for mode in [&[][..], &["-o"], &["-w"], &["-w", "-f"], &["-h"]] {
        over_tcp(&served, mode);
    }
    drop(served);
    // Plays back what a filesystem once did, and compares each byte that is read.
    let [small, huge] = tester.records.each_ref().map(|path| path.display().to_string());
    let said = over_tcp(&fresh(&[]), &["-i", "-t", &small]);
    assert!(said.contains("Integrity"), "{said}");
    // That record has requests of up to 48 MiB, where a client may count on 32 MiB: refused, and said so.
    let served = fresh(&[]);
    let port = served.port.to_string();
    let (_, output) = run(&["-N", "export1", "-i", "-t", &huge, "127.0.0.1", &port]);
    assert!(both(&output).contains("Server errored a transaction"), "{}", both(&output));
    assert_eq!(over_tcp(&served, &["-h"]).matches("No errors").count(), 1);
    // Over a Unix socket; as inetd would; and what may not be written is not.
    let socket = directory();
    let path = socket.path().join("socket").display().to_string();
    let _unix = fresh(&["--unix", &path]);
    let (what, output) = run(&["-N", "export1", "-u", &path]);
    well(&what, output);
    let place = directory();
    let image = place.path().join("disk.img");
    let file = std::fs::File::create(&image).expect("an image");
    file.set_len(50 << 20).expect("its size");
    // An image that a process has open for writing is not served.
    drop(file);
    let (image, binary) = (image.display().to_string(), program::binary().display().to_string());
    let inetd = [
        "-N", "export1", "-I", "--", &binary, "serve", "--stdin", "--quiet", "--name", "export1",
        &image,
    ];
    let (what, output) = run(&inetd);
    well(&what, output);
    let served = Served::new(place, "disk.img", &["--name", "export1", "--read-only"]);
    over_tcp(&served, &["-w", "-F"]);
    report(
        "rubus serve: the reference implementation's test client passes in each of its modes in the clear",
    );
}

/// Certificates of a server and its clients in a new directory.
fn certificates() -> TempDir {
    let place = directory();
    let made = Command::new(program::binary())
        .args(["serve", "--make-certificates"])
        .arg(place.path())
        .output();
    well("--make-certificates", made.expect("the program starts"));
    place
}

/// The tester's words for a client that shows itself with certificates of one directory, and trusts the authority of
/// another.
fn encrypted(own: &TempDir, trusted: &TempDir) -> Vec<String> {
    let file = |place: &TempDir, name: &str| place.path().join(name).display().to_string();
    let words = [
        ["-C".into(), file(own, "client-cert.pem")],
        ["-K".into(), file(own, "client-key.pem")],
        ["-A".into(), file(trusted, "ca-cert.pem")],
    ];
    words.concat()
}

#[test]
fn the_reference_implementations_own_tests_pass_through_tls() {
    const TEST: &str = "nbd_interop_reference_tls";
    if !can_run(TEST, &FOR_THE_TESTER) {
        return;
    }
    let _turn = take_turns();
    let tester = the_tester();
    let (ours, strangers) = (certificates(), certificates());
    let place = ours.path().display().to_string();
    let fresh =
        |options: &[&str]| served_for_the_tester(&[&["--certificates", &place], options].concat());
    let run = |served: &Served, words: &[String], mode: &[&str]| {
        let port = served.port.to_string();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let all = [&["-N", "export1"], &words[..], mode, &["127.0.0.1", &port]].concat();
        run_tester(&tester, &all)
    };
    let known = encrypted(&ours, &ours);
    let record = tester.records[0].display().to_string();
    let plays_back = ["-i", "-t", &record];
    let passes = |served: &Served, words: &[String], mode: &[&str]| {
        let (what, output) = run(served, words, mode);
        well(&what, output)
    };
    let fails = |served: &Served, words: &[String]| {
        let (what, output) = run(served, words, &[]);
        let said = both(&output);
        assert!(!output.status.success(), "{what}:\n{said}");
        said
    };

    let required = fresh(&["--tls", "require"]);
    // Compares each byte that is read with what it knows, beginning with zeros: on a disk that is new.
    let said = passes(&required, &known, &plays_back);
    assert!(said.contains("Integrity"), "{said}");
    for mode in [&[][..], &["-o"], &["-w"], &["-w", "-f"]] {
        passes(&required, &known, mode);
    }
    fails(&required, &[]);
    // Another authority did not sign this server's certificate, and the name is not one of the server's.
    let elsewhere = [&known[..], &["-H".into(), "elsewhere.example".into()]].concat();
    for words in [encrypted(&ours, &strangers), elsewhere] {
        let said = fails(&required, &words);
        assert!(said.contains("TLS handshake failed"), "{said}");
    }
    drop(required);

    let allowed = fresh(&["--tls", "allow"]);
    passes(&allowed, &known, &["-w"]);
    passes(&allowed, &[], &["-w"]);
    drop(allowed);

    let verified = fresh(&["--tls", "require", "--verify-clients"]);
    passes(&verified, &known, &["-w"]);
    fails(&verified, &encrypted(&strangers, &ours));
    drop(verified);

    // What passes above would not pass without TLS: a server that has none refuses its beginning.
    let said = fails(&served_for_the_tester(&[]), &known);
    assert!(said.contains("Received error"), "{said}");
    report(
        "rubus serve: the reference implementation's test client passes through TLS, where it is allowed and required",
    );
}

/// The newest programs of others, to which the root directory is changed.
fn newest(program: &str, root: &Path) -> Command {
    let mut command = programs::command("chroot");
    command.arg(root).arg(program);
    command
}

#[test]
fn libnbd_goes_through_every_option_and_command() {
    const TEST: &str = "nbd_interop_libnbd";
    if !can_run(TEST, &[Need::Root, Need::Program("mmdebstrap", "mmdebstrap")]) {
        return;
    }
    let _turn = take_turns();
    let root = debian_13(&Cache::of_this_machine()).expect("Debian 13");
    let place = directory();
    let fixed = std::fs::File::create(place.path().join("fixed.img")).expect("an image");
    std::os::unix::fs::FileExt::write_all_at(&fixed, b"f", 0).expect("a byte");
    fixed.set_len(1 << 20).expect("its size");
    drop(fixed);
    let exports = "export.disk = { path = \"disk.img\", size = \"64MiB\" }\n\
        export.fixed = { path = \"fixed.img\", read-only = true }\n\
        export.huge = { path = \"huge.img\", size = \"16GiB\" }\n";
    std::fs::write(place.path().join("exports.toml"), exports).expect("the exports");
    let served = Served::new(place, "exports.toml", &[]);
    let script = served.place("scenarios.py");
    std::fs::write(&script, SCENARIOS).expect("the scenarios");
    let output = newest("python3", &root)
        .args(["-", &served.address()])
        .stdin(std::fs::File::open(&script).expect("the scenarios"))
        .output()
        .expect("chroot starts");
    report(&format!("rubus serve: {} of libnbd", well("scenarios.py", output)));
    let info = newest("nbdinfo", &root)
        .args(["--json", &format!("{}/huge", served.address())])
        .output()
        .expect("chroot starts");
    let text = String::from_utf8_lossy(&info.stdout).into_owned();
    well("nbdinfo", info);
    let info: serde_json::Value = serde_json::from_str(&text).expect("nbdinfo prints JSON");
    assert_eq!(info["structured"], true, "{info}");
    assert_eq!(info["extended"], true, "{info}");
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], 16_u64 << 30, "{info}");
    for can in ["can_block_status_payload", "can_multi_conn", "can_fast_zero"] {
        assert!(export[can].is_boolean(), "{can}: {info}");
    }
    assert_eq!(export["can_multi_conn"], true, "{info}");
}

#[test]
fn the_newest_clients_copy_and_compare() {
    const TEST: &str = "nbd_interop_newest";
    if !can_run(TEST, &[Need::Root, Need::Program("mmdebstrap", "mmdebstrap")]) {
        return;
    }
    let _turn = take_turns();
    let cache = Cache::of_this_machine();
    let root = debian_13(&cache).expect("Debian 13");
    let served = Served::new(directory(), "disk.img", &["--size", "24MiB"]);
    // Files that both sides of the changed root directory see.
    let shared = TempDir::new_in(root.join("tmp")).expect("a directory");
    let inside = |name: &str| {
        let name = shared.path().join(name);
        let path = name.strip_prefix(&root).expect("it is in there");
        format!("/{}", path.display())
    };
    let source = shared.path().join("source");
    crate::common::served::image_with_a_hole(&source);
    let (address, image) = (format!("{}/disk", served.address()), served.place("disk.img"));
    let newest = |program: &str, arguments: &[&str]| {
        let output = newest(program, &root).args(arguments).output();
        well(program, output.expect("chroot starts"))
    };
    newest("nbdcopy", &[&inside("source"), &address]);
    assert_eq!(sum(&image), sum(&source));
    newest("nbdcopy", &["--connections=4", "--requests=16", &address, &inside("back")]);
    assert_eq!(sum(&shared.path().join("back")), sum(&source));
    newest("qemu-img", &["compare", "-f", "raw", "-F", "raw", &inside("source"), &address]);
    let raw = ["-f", "raw", "-O", "raw"];
    newest(
        "qemu-img",
        &[&["convert", "-W", "-m", "8"], &raw[..], &[&address, &inside("again")]].concat(),
    );
    assert_eq!(sum(&shared.path().join("again")), sum(&source));
    newest("qemu-img", &["bench", "-c", "500", "-d", "32", "-f", "raw", &address]);
    newest(
        "qemu-img",
        &[
            "bench",
            "-w",
            "-c",
            "500",
            "-d",
            "32",
            "-s",
            "65536",
            "--flush-interval",
            "50",
            "-f",
            "raw",
            &address,
        ],
    );
    newest("qemu-img", &[&["convert", "-n"], &raw[..], &[&inside("source"), &address]].concat());
    assert_eq!(sum(&image), sum(&source));
    // qemu-nbd is a client of ours and a server for the next in line.
    let (behind, pid) = (inside("socket"), inside("pid"));
    newest("qemu-nbd", &["--fork", "-t", "-f", "raw", "-k", &behind, "--pid-file", &pid, &address]);
    let relay = format!("nbd+unix:///?socket={behind}");
    let bytes = Random(5).bytes(64 << 10);
    std::fs::write(shared.path().join("piece"), &bytes).expect("a piece");
    newest("nbdcopy", &[&relay, &inside("relayed")]);
    newest(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            &format!("write -s {} 1M 64k", inside("piece")),
            "-c",
            "flush",
            &relay,
        ],
    );
    let pid = std::fs::read_to_string(shared.path().join("pid")).expect("its number");
    programs::run("kill", &[pid.trim()]).expect("it runs");
    assert_eq!(sum(&shared.path().join("relayed")), sum(&source));
    let there = std::fs::read(&image).expect("the image");
    assert!(
        there[1 << 20..][..64 << 10] == bytes,
        "what was written by way of qemu-nbd is in the image"
    );
    report("rubus serve: the newest nbdcopy, qemu-img and qemu-nbd agree with it");
}
