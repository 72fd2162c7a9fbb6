//! `rubus nbd copy` between our server, those of others, files and devices: every byte arrives, holes stay holes,
//! what was interrupted goes on, and what could not be read is never written.

mod data;
mod servers;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use self::data::{SIZE, expected, is_the_copy, noise, sparse, taken, write_data};
use self::servers::{failing, nbdkit_at, serve, slowly, thinking};
use crate::common::program::{Answer, Home, binary};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::free_port;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Listening, LoopDevice, NbdServer, Serving, programs};
use rustix::process::{Pid, Signal, kill_process};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(300);
const NBDKIT: Need = Need::Program("nbdkit", "nbdkit");
const QEMU: Need = Need::Program("qemu-nbd", "qemu-utils");
const REFERENCE: Need = Need::Program("nbd-server", "nbd-server");

/// 40 MiB of holes, as a file to be served.
fn empty(home: &Home) -> PathBuf {
    let path = home.path().join("exported.img");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(40 << 20).expect("room");
    path
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn copy(home: &Home, from: &str, to: &str, options: &[&str]) -> Answer {
    let arguments = [&["nbd", "copy", "--json", from, to], options].concat();
    home.run(&arguments)
}

fn fine(answer: &Answer) -> serde_json::Value {
    assert_eq!(answer.status, Some(0), "{answer}");
    let json = answer.json();
    assert!(json["verify_s"].is_number(), "{json}");
    assert_eq!(json["different"].as_array().map(Vec::len), Some(0), "{json}");
    json
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_disk_goes_from_every_server_to_a_file_and_back_to_every_server() {
    if !can_run("nbd_copy_servers", &[NBDKIT, QEMU, REFERENCE]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let image = home.path().join("disk.img");
    sparse(&image);
    let ours = serve(&home, &[&text(&image)], "ours");
    let file = NbdServer::nbdkit(&["file", &text(&image)]).expect("nbdkit");
    let qemu = NbdServer::qemu(SIZE, &["--shared=8"]).expect("qemu-nbd");
    let reference = NbdServer::reference(SIZE).expect("nbd-server");
    for server in [&qemu, &reference] {
        write_data(&server.directory().join("image"));
    }
    for (name, address) in [
        ("rubus serve", ours.address().as_str()),
        ("nbdkit", file.address()),
        ("qemu-nbd", qemu.address()),
        ("nbd-server", reference.address()),
    ] {
        let to = home.path().join("copy.img");
        fine(&copy(&home, address, &text(&to), &[]));
        is_the_copy(&to);
        let left: Vec<_> = std::fs::read_dir(home.path()).expect("a directory").collect();
        let beside = left.iter().flatten().any(|entry| text(&entry.path()).contains("partial"));
        assert!(!beside, "something is left: {left:?}");
        std::fs::remove_file(&to).expect("it is there");
        report(&format!("{name}: copied to a file"));
    }
    // Fresh images, and then again over what is there: a disk that is not empty has to be given up.
    let ours =
        serve(&home, &[&text(&home.path().join("new.img")), "--size", &SIZE.to_string()], "new");
    let qemu = NbdServer::qemu(SIZE, &["--shared=8"]).expect("qemu-nbd");
    let reference = NbdServer::reference(SIZE).expect("nbd-server");
    let new = home.path().join("nbdkit.img");
    std::fs::File::create(&new).and_then(|file| file.set_len(SIZE)).expect("an image");
    let file = NbdServer::nbdkit(&["file", &text(&new)]).expect("nbdkit");
    let source = text(&image.with_extension("source"));
    sparse(Path::new(&source));
    for (name, address, path, tells) in [
        ("rubus serve", ours.address().as_str(), home.path().join("new.img"), true),
        ("nbdkit", file.address(), new.clone(), true),
        ("qemu-nbd", qemu.address(), qemu.directory().join("image"), true),
        ("nbd-server", reference.address(), reference.directory().join("image"), false),
    ] {
        let lost = format!("--i-will-lose-everything-on={address}");
        let first: &[&str] = if tells { &[] } else { &[&lost] };
        fine(&copy(&home, &source, address, first));
        assert!(std::fs::read(&path).expect("the image") == expected(), "{name}");
        let refused = copy(&home, &source, address, &[]);
        assert_eq!(refused.status, Some(3), "{refused}");
        assert!(refused.stderr.contains("--i-will-lose-everything-on"), "{refused}");
        // What was a hole at the source becomes zeros over old data.
        let old = std::fs::OpenOptions::new().write(true).open(&path).expect("the image");
        old.write_all_at(&[7; 100_000], 12 * MIB + 5).expect("room");
        fine(&copy(&home, &source, address, &[&lost]));
        assert!(std::fs::read(&path).expect("the image") == expected(), "{name}, over old data");
        report(&format!("{name}: copied from a file, twice"));
    }
    // From server to server.
    let to = format!("--i-will-lose-everything-on={}", qemu.address());
    fine(&copy(&home, &ours.address(), qemu.address(), &[&to]));
    assert!(std::fs::read(qemu.directory().join("image")).expect("the image") == expected());
}

#[test]
fn what_would_lose_data_or_cannot_be_is_refused() {
    if !can_run("nbd_copy_refusals", &[Need::Root, Need::Loop, NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let (image, other) = (home.path().join("disk.img"), home.path().join("other.img"));
    sparse(&image);
    std::fs::write(&other, "mine").expect("a file");
    let refused = copy(&home, &text(&image), &text(&other), &[]);
    assert_eq!(refused.status, Some(3), "{refused}");
    assert_eq!(std::fs::read(&other).expect("it is there"), b"mine");
    fine(&copy(&home, &text(&image), &text(&other), &["--overwrite"]));
    is_the_copy(&other);
    let same = copy(&home, &text(&image), &text(&image), &["--overwrite"]);
    assert_eq!(same.status, Some(2), "{same}");
    let small = NbdServer::nbdkit(&["memory", "31M"]).expect("nbdkit");
    let answer = copy(&home, &text(&image), small.address(), &[]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("does not fit"), "{answer}");
    let read_only = NbdServer::nbdkit(&["--readonly", "memory", "64M"]).expect("nbdkit");
    let answer = copy(&home, &text(&image), read_only.address(), &[]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("reading only"), "{answer}");
    // A device goes past the guard: empty it may be written, then not without a word.
    let device = LoopDevice::new(SIZE + MIB).expect("a loop device");
    let json = fine(&copy(&home, &text(&image), &text(device.path()), &[]));
    assert_eq!(json["destination_bytes"], SIZE + MIB, "{json}");
    let back = home.path().join("back.img");
    fine(&copy(&home, &text(device.path()), &text(&back), &[]));
    let found = std::fs::read(&back).expect("the copy");
    assert!(found[..SIZE as usize] == expected() && found.len() as u64 == SIZE + MIB);
    let refused = copy(&home, &text(&image), &text(device.path()), &[]);
    assert_eq!(refused.status, Some(3), "{refused}");
}

#[test]
fn a_server_that_thinks_is_waited_for_as_long_as_was_said() {
    if !can_run("nbd_copy_patience", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let to = text(&home.path().join("copy.img"));
    let server = thinking(&home);
    let from = server.address();
    let answer = copy(&home, &from, &to, &["--patience", "1"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    let words = "the server did not answer within 1 s";
    assert!(answer.stderr.contains(words), "{answer}");
    // With the usual patience the same command goes on.
    drop(server);
    let _server = thinking(&home);
    fine(&copy(&home, &from, &to, &[]));
}

#[test]
fn what_failed_to_be_read_is_never_written() {
    if !can_run("nbd_copy_read_errors", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let (image, to) = (home.path().join("disk.img"), home.path().join("copy.img"));
    sparse(&image);
    let partial = home.path().join("copy.img.partial");
    let always = NbdServer::nbdkit(&[
        "--filter=error",
        "file",
        &text(&image),
        "error-pread=EIO",
        "error-pread-rate=100%",
    ]);
    let answer = copy(&home, always.expect("nbdkit").address(), &text(&to), &[]);
    assert_eq!(answer.status, Some(2), "{answer}");
    for words in
        ["reading 262144 bytes at byte", "input/output error", "the same command continues"]
    {
        assert!(answer.stderr.contains(words), "{words}: {answer}");
    }
    assert!(!to.exists());
    assert!(std::fs::read(&partial).expect("it is kept").iter().all(|byte| *byte == 0));
    // Some reads fail: run after run the copy gets on, and at the end it is the disk. The address is the same every
    // time, since this server does not say who it is.
    let sometimes =
        ["--filter=error", "file", &text(&image), "error-pread=EIO", "error-pread-rate=10%"];
    let _ = std::fs::remove_file(&partial);
    let mut failures = 0;
    let json = loop {
        // A run that fails goes with a request in flight.
        let server = nbdkit_at(home.path().join("sometimes"), &sometimes);
        let answer = copy(&home, &server.address(), &text(&to), &["--no-verify", "--depth=2"]);
        if answer.status == Some(0) {
            break answer.json();
        }
        assert_eq!(answer.status, Some(2), "{answer}");
        assert!(answer.stderr.contains("input/output error"), "{answer}");
        // What is there already is what the source has.
        let (found, expected) = (std::fs::read(&partial).expect("it is kept"), expected());
        let same = found.iter().zip(&expected).all(|(is, should)| is == should || *is == 0);
        assert!(same, "other bytes were written");
        failures += 1;
        assert!(failures < 500, "it does not get on");
    };
    is_the_copy(&to);
    report(&format!("{failures} runs failed before the one that did not: {json}"));
}

/// The bytes of the disk that cannot be read: a sector, two next to each other at the end of a piece, and a whole piece.
const BAD: [(u64, u64); 3] =
    [(MIB + 512, MIB + 1024), (2 * MIB - 1024, 2 * MIB), (6 * MIB, 6 * MIB + (256 << 10))];

#[test]
fn past_bad_sectors_all_else_is_copied_and_they_are_listed() {
    if !can_run("nbd_copy_bad_sectors", &[NBDKIT, QEMU]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let (image, to) = (home.path().join("disk.img"), home.path().join("copy.img"));
    sparse(&image);
    // A server of its own, since nbdkit 1.32 ends when a client goes away with requests in flight.
    let server = failing(&home, &image, &BAD);
    let answer = copy(&home, server.address(), &text(&to), &[]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("--skip-unreadable"), "{answer}");
    assert!(!to.exists());
    // Past them, they are zeros, over data that was there before too.
    let server = failing(&home, &image, &BAD);
    let mut is = expected();
    for (from, to) in BAD {
        is[from as usize..to as usize].fill(0);
    }
    let qemu = NbdServer::qemu(SIZE, &["--shared=8"]).expect("qemu-nbd");
    std::fs::write(qemu.directory().join("image"), noise(9, SIZE as usize)).expect("room");
    let lost = format!("--i-will-lose-everything-on={}", qemu.address());
    for (name, path, options) in [
        (text(&to), to.clone(), vec!["--restart"]),
        (qemu.address().to_owned(), qemu.directory().join("image"), vec![lost.as_str()]),
    ] {
        let options = [&["--skip-unreadable"], &options[..]].concat();
        let answer = copy(&home, server.address(), &name, &options);
        assert_eq!(answer.status, Some(1), "{answer}");
        let json = answer.json();
        assert_eq!(json["unreadable"], serde_json::json!(BAD), "{json}");
        assert_eq!(json["different"], serde_json::json!([]), "{json}");
        assert!(std::fs::read(&path).expect("the copy") == is, "{name}");
    }
    // What fails once is no bad sector.
    let once = format!(
        "pread=[ $4 -ge 4194304 ] || [ -e $tmpdir/$4 ] || {{ touch $tmpdir/$4; echo EIO once >&2; exit 1; }}; \
         dd if={} iflag=skip_bytes,count_bytes skip=$4 count=$3 status=none",
        image.display()
    );
    let size = format!("get_size=echo {SIZE}");
    let once = NbdServer::nbdkit(&["eval", &size, &once]).expect("nbdkit");
    let options = ["--skip-unreadable", "--overwrite"];
    let json = fine(&copy(&home, once.address(), &text(&to), &options));
    assert_eq!(json["unreadable"], serde_json::json!([]), "{json}");
    is_the_copy(&to);
}

#[test]
fn a_copy_that_was_killed_goes_on_and_one_of_another_disk_does_not() {
    if !can_run("nbd_copy_resume", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let image = home.path().join("disk.img");
    std::fs::write(&image, noise(3, 40 << 20)).expect("room");
    // 40 MiB take eighteen seconds, and the journal is written every five.
    let slow = slowly(&home, &image);
    let (to, partial) = (home.path().join("copy.img"), home.path().join("copy.img.partial"));
    let journal = home.path().join("copy.img.partial.journal");
    let mut command = home.command();
    command.args(["nbd", "copy", "--no-verify", &slow.address(), &text(&to)]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
    let has_done = || std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("done "));
    wait_until("a section is in the journal", has_done);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(!to.exists() && partial.exists(), "it is not whole");
    // What is in the journal is at the destination.
    let found = std::fs::read(&partial).expect("it is kept");
    let lines = std::fs::read_to_string(&journal).expect("a journal");
    let mut sections = 0;
    for line in lines.lines().filter_map(|line| line.strip_prefix("done ")) {
        let number: usize = line.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        let (from, to) = (number << 22, (number + 1) << 22);
        assert!(found[from..to] == noise(3, 40 << 20)[from..to], "section {number}");
        sections += 1;
    }
    // Damage of the journal is worth what it is worth: less is done.
    let torn = &lines.as_bytes()[..lines.len() - 5];
    std::fs::write(&journal, torn).expect("room");
    drop(slow);
    let quick = nbdkit_at(home.path().join("slow"), &["file", &text(&image)]);
    let answer = copy(&home, &quick.address(), &text(&to), &[]);
    let json = fine(&answer);
    assert_eq!(json["resumed_bytes"], (sections - 1) << 22, "{json}");
    assert!(std::fs::read(&to).expect("the copy") == noise(3, 40 << 20));
    assert!(!journal.exists() && !partial.exists());
    drop(quick);

    // Asked to end it says how to go on; then the source changes.
    let exported = empty(&home);
    let to_export = slowly(&home, &exported);
    let address = to_export.address();
    let journal = text(&home.path().join("journal"));
    let arguments = ["nbd", "copy", "--no-verify", &text(&image), &address, "--journal", &journal];
    let mut command = home.command();
    let child = command.args(arguments).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_until("two sections are there", || taken(&exported) >= 12 * MIB);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let answer = Answer::of(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.status, Some(1), "{answer}");
    assert!(answer.stderr.contains("the same command continues"), "{answer}");
    let lines = std::fs::read_to_string(&journal).expect("a journal");
    assert!(lines.contains("done "), "{lines}");
    let file =
        std::fs::OpenOptions::new().append(false).write(true).open(&image).expect("it is there");
    file.write_all_at(b"changed", 1000).expect("room");
    drop(file);
    drop(to_export);
    let _to_export = slowly(&home, &exported);
    let answer = home.run(&arguments);
    assert_eq!(answer.status, Some(2), "{answer}");
    for words in ["source is not what it was", "--restart"] {
        assert!(answer.stderr.contains(words), "{answer}");
    }
    // The destination is not lost by that: starting over still requires consent to overwrite it.
    let anew = [&arguments[..], &["--restart"]].concat();
    assert_eq!(home.run(&anew).status, Some(3));
}

#[test]
fn a_source_that_is_written_meanwhile_and_a_server_that_dies_are_told() {
    if !can_run("nbd_copy_changes", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let image = home.path().join("disk.img");
    std::fs::write(&image, noise(5, 40 << 20)).expect("room");
    let exported = empty(&home);
    let slow = slowly(&home, &exported);
    let address = slow.address();
    let start = |to: &str| {
        let mut command = home.command();
        command.args(["nbd", "copy", "--no-verify", &text(&image), to]);
        command.args([&format!("--i-will-lose-everything-on={to}")]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let child = start(&address);
    wait_until("it copies", || taken(&exported) > 0);
    let file = std::fs::OpenOptions::new().write(true).open(&image).expect("it is there");
    file.write_all_at(b"changed", 1000).expect("room");
    let answer = Answer::of(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.status, Some(1), "{answer}");
    assert!(answer.says("written to while it was copied"), "{answer}");
    drop(slow);
    let exported = empty(&home);
    let slow = slowly(&home, &exported);
    let child = start(&address);
    wait_until("it copies", || taken(&exported) > 0);
    drop(slow);
    let answer = Answer::of(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.status, Some(2), "{answer}");
    for words in ["closed the connection", &address, "--journal"] {
        assert!(answer.stderr.contains(words), "{words}: {answer}");
    }
}

/// A filesystem in memory, unmounted when this is dropped.
struct Small(PathBuf);

impl Small {
    fn new(path: PathBuf, size: &str) -> Small {
        std::fs::create_dir(&path).expect("a directory");
        let options = format!("size={size}");
        programs::run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", &text(&path)])
            .expect("it can be mounted");
        Small(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = programs::run("umount", &["--lazy", &text(&self.0)]);
    }
}

#[test]
fn on_a_full_disk_it_ends_and_goes_on_when_there_is_room() {
    if !can_run("nbd_copy_full", &[Need::Root]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let image = home.path().join("disk.img");
    std::fs::write(&image, noise(9, 24 << 20)).expect("room");
    let served = serve(&home, &[&text(&image), "--read-only"], "ours");
    let small = Small::new(home.path().join("small"), "10M");
    let to = small.0.join("copy.img");
    // What is under way when the disk is full is lost, so that little is.
    let one = ["--connections=1", "--depth=1"];
    let answer = copy(&home, &served.address(), &text(&to), &one);
    assert_eq!(answer.status, Some(2), "{answer}");
    for words in ["No space left on device", "at byte", "make room"] {
        assert!(answer.stderr.contains(words), "{words}: {answer}");
    }
    assert!(!to.exists());
    programs::run("mount", &["-o", "remount,size=64M", &text(&small.0)]).expect("it grows");
    let json = fine(&copy(&home, &served.address(), &text(&to), &[]));
    assert!(json["resumed_bytes"].as_u64() > Some(0), "{json}");
    assert!(std::fs::read(&to).expect("the copy") == noise(9, 24 << 20));
}

#[test]
fn through_tls_it_is_the_same_and_so_is_what_a_server_tells() {
    let _turn = take_turns();
    let home = Home::new();
    let image = home.path().join("disk.img");
    sparse(&image);
    let made = home.run(&["serve", "--make-certificates", "certs"]);
    assert_eq!(made.status, Some(0), "{made}");
    let port = free_port("127.0.0.1").expect("a port");
    let mut command = Command::new(binary());
    home.adopt(&mut command);
    command.args(["serve", "--quiet", "disk.img", "--tls=require", "--certificates=certs"]);
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    let _served = Serving::start(command, Listening::Port("127.0.0.1".into(), port));
    let address =
        format!("nbds://127.0.0.1:{port}/?tls-certificates={}", text(&home.path().join("certs")));
    let info = home.run(&["nbd", "info", "--json", &address]).json();
    assert!(info["tls"].as_str().is_some_and(|tls| tls.starts_with("TLS 1.3")), "{info}");
    assert_eq!(info["extended_headers"], true, "{info}");
    assert_eq!(info["size_bytes"], SIZE, "{info}");
    let listed = home.run(&["nbd", "list", "--json", &address]);
    assert_eq!(listed.json()["exports"][0]["name"], "disk", "{listed}");
    let plain = home.run(&["nbd", "info", &format!("nbd://127.0.0.1:{port}")]);
    assert_eq!(plain.status, Some(2), "{plain}");
    assert!(plain.stderr.contains("nbds://"), "{plain}");
    let to = home.path().join("copy.img");
    fine(&copy(&home, &address, &text(&to), &[]));
    is_the_copy(&to);
    let lost = format!("--i-will-lose-everything-on={address}");
    fine(&copy(&home, &text(&to), &address, &[&lost]));
    assert!(std::fs::read(&image).expect("the image") == expected());
}

#[test]
fn info_and_list_know_the_servers_of_others() {
    if !can_run("nbd_copy_info", &[REFERENCE, QEMU]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let reference = NbdServer::reference(SIZE).expect("nbd-server");
    let info = home.run(&["nbd", "info", "--json", reference.address()]);
    let json = info.json();
    assert_eq!(
        (&json["size_bytes"], &json["extended_headers"]),
        (&SIZE.into(), &false.into()),
        "{info}"
    );
    assert_eq!(json["style"], "fixed newstyle", "{info}");
    assert_eq!(json["contexts"].as_array().map(Vec::len), Some(0), "{info}");
    let server = reference.address().trim_end_matches("disk");
    let listed = home.run(&["nbd", "list", "--json", server]);
    assert_eq!(listed.status, Some(0), "{listed}");
    assert_eq!(listed.json()["exports"][0]["name"], "disk", "{listed}");
    assert_eq!(listed.json()["exports"][0]["size_bytes"], SIZE, "{listed}");
    let nowhere = home.run(&["nbd", "info", &format!("{server}nothing")]);
    assert_eq!(nowhere.status, Some(2), "{nowhere}");
    let qemu = NbdServer::qemu(SIZE, &[]).expect("qemu-nbd");
    let info = home.run(&["nbd", "info", "--json", qemu.address()]).json();
    assert_eq!(info["contexts"][0], "base:allocation", "{info}");
}

#[test]
fn a_file_that_backs_a_loop_device_is_not_replaced() {
    if !can_run("nbd_copy_in_use", &[Need::Root]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let (from, to) = (home.path().join("from.img"), home.path().join("to.img"));
    sparse(&from);
    std::fs::write(&to, vec![7; 1 << 20]).expect("a file");
    let to = text(&to);
    let device = programs::run("losetup", &["--find", "--show", &to]).expect("a loop device");
    let refused = copy(&home, &text(&from), &to, &["--overwrite"]);
    programs::run("losetup", &["--detach", &device]).expect("it was there");
    assert_eq!(refused.status, Some(3), "{refused}");
    assert!(refused.stderr.contains(&device), "{refused}");
    assert_eq!(std::fs::read(&to).expect("it is there"), vec![7; 1 << 20]);
    fine(&copy(&home, &text(&from), &to, &["--overwrite"]));
}
