//! The NBD server with clients that are not ours: libnbd, qemu and fio find every byte that they
//! wrote; with nbdkit beside it, the same commands leave the same image; and what was acknowledged
//! is there after the server was killed.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::served::{
    PATIENCE, Random, SIZE, Served, ask, connect, directory, directory_with_image,
    image_with_a_hole, sum,
};
use crate::common::{can_run, program, report, take_turns};
use rubus_host::net::Stream;

use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{
    FilesystemKind, Listening, LoopDevice, NbdServer, Serving, SmallFilesystem, programs,
};
use rubus_nbd::client::{Client, Wish, agree};
use rubus_nbd::wire::{Command as Order, CommandFlags, ErrorCode};
use serde_json::Value;
use tempfile::TempDir;

const NBDKIT: Need = Need::Program("nbdkit", "nbdkit");
const LIBNBD: Need = Need::Program("nbdcopy", "libnbd-bin");
const QEMU: Need = Need::Program("qemu-img", "qemu-utils");
const FIO: Need = Need::Program("fio", "fio");
const STRACE: Need = Need::Program("strace", "strace");

#[test]
fn libnbd_and_qemu_find_what_they_wrote() {
    if !can_run("nbd_server_libnbd", &[LIBNBD, QEMU]) {
        return;
    }
    let _turn = take_turns();
    let served = Served::new(directory(), &["--description", "of a test"]);
    let (address, place) = (served.address(), served.directory.path());
    let text = programs::run("nbdinfo", &["--json", &address]).expect("nbdinfo");
    let info: Value = serde_json::from_str(&text).expect("nbdinfo prints JSON");
    let export = &info["exports"][0];
    assert_eq!(info["protocol"], "newstyle-fixed");
    assert_eq!(info["structured"], true);
    for can in ["flush", "fua", "trim", "zero", "multi_conn", "cache", "df", "fast_zero"] {
        assert_eq!(export[format!("can_{can}")], true, "{can}: {info}");
    }
    assert_eq!(export["contexts"][0], "base:allocation");
    let description = export["description"].as_str().expect("a description");
    assert!(description.starts_with("of a test [rubus boot="), "{description}");

    let (source, back) = (place.join("source"), place.join("back"));
    image_with_a_hole(&source);
    let paths = [&source, &back].map(|path| path.display().to_string());
    let [source_path, back_path] = &paths;
    programs::run("nbdcopy", &[source_path, &address]).expect("nbdcopy there");
    programs::run("nbdcopy", &["--request-size=65536", &address, back_path]).expect("and back");
    assert_eq!(sum(&source), sum(&back));
    assert_eq!(sum(&source), sum(&served.image()));
    programs::run("qemu-img", &["compare", "-f", "raw", "-F", "raw", source_path, &address])
        .expect("qemu-img finds no difference");
    let map = programs::run("qemu-img", &["map", "--output=json", "-f", "raw", &address]);
    let map: Value = serde_json::from_str(&map.expect("a map")).expect("JSON");
    let holes = map.as_array().expect("extents").iter().filter(|e| e["data"] == false);
    assert!(holes.count() > 0, "nbdcopy kept the hole: {map}");
    std::fs::remove_file(&back).expect("it was there");
    programs::run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &address, back_path])
        .expect("qemu-img converts from it");
    assert_eq!(sum(&source), sum(&back));
    programs::run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", source_path, &address])
        .expect("qemu-img converts to it");
    assert_eq!(sum(&source), sum(&served.image()));
    programs::run(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            "write -P 7 1M 2M",
            "-c",
            "write -z -u 2M 64k",
            "-c",
            "flush",
            "-c",
            "read -P 7 1M 1M",
            "-c",
            "read -P 0 2M 64k",
            "-c",
            "discard 4M 1M",
            "-c",
            "write -f -P 9 3M 4k",
            "-c",
            "read -P 9 3M 4k",
            &address,
        ],
    )
    .expect("qemu-io reads what it wrote");
    let (status, said, directory) = served.end();
    assert_eq!(status, 0, "{said}");
    assert!(!directory.path().join("socket").exists(), "the socket is gone");
    report("rubus serve: nbdinfo, nbdcopy, qemu-img and qemu-io agree with it");
}

#[test]
fn fio_verifies_every_block() {
    if !can_run("nbd_server_fio", &[FIO]) {
        return;
    }
    let _turn = take_turns();
    let served = Served::new(directory(), &[]);
    let out = programs::run(
        "fio",
        &[
            "--name=x",
            "--ioengine=nbd",
            &format!("--uri={}", served.address()),
            "--rw=randwrite",
            "--bsrange=512-128k",
            "--iodepth=16",
            "--size=16m",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--fsync=64",
            "--thread",
            "--do_verify=1",
            "--verify_state_save=0",
        ],
    )
    .expect("fio finds no wrong block");
    assert!(out.contains("err= 0"), "{out}");
}

#[test]
fn the_same_commands_leave_the_same_image_as_with_nbdkit() {
    if !can_run("nbd_server_differential", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let served = Served::new(directory(), &[]);
    let other = directory();
    let image = other.path().join("disk.img");
    let file = std::fs::File::create(&image).expect("a file");
    file.set_len(SIZE as u64).expect("its size");
    let path = image.display().to_string();
    let nbdkit = NbdServer::nbdkit(&["file", &path]).expect("nbdkit serves");
    let socket = nbdkit.address().split_once("socket=").expect("a socket").1;
    let mut theirs = connect(Path::new(socket));
    let mut ours = [served.connect(), served.connect()];
    let mut random = Random(42);
    for number in 0..600 {
        let length = 1 + random.below(200 << 10);
        let offset = random.below(SIZE - length);
        let (command, flags) = match random.below(12) {
            0 => (Order::Flush, CommandFlags::NONE),
            1 => (Order::WriteZeroes, CommandFlags::NONE),
            2 => (Order::WriteZeroes, CommandFlags::NO_HOLE),
            3 => (Order::Write, CommandFlags::FUA),
            4..8 => (Order::Read, CommandFlags::NONE),
            _ => (Order::Write, CommandFlags::NONE),
        };
        let range = match command {
            Order::Flush => (0, 0),
            _ => (offset, length),
        };
        let mut memory = random.bytes(length);
        let mut same = memory.clone();
        let ours = ask(&mut ours[number % 2], command, flags, range, &mut memory);
        let theirs = ask(&mut theirs, command, flags, range, &mut same);
        assert_eq!(ours, theirs, "{command:?} {range:?}");
        assert!(memory == same, "both read the same at {range:?}");
    }
    assert_eq!(sum(&served.image()), sum(&image));
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let _turn = take_turns();
    let mut random = Random(7);
    let mut image = vec![0; SIZE];
    let mut place = directory();
    for round in 0..3 {
        let served = Served::new(place, &[]);
        let mut client = served.connect();
        let mut memory = vec![0; 64 << 10];
        // Whatever the round before has acknowledged is still there.
        for at in (0..SIZE).step_by(memory.len()) {
            let range = (at, memory.len());
            let error = ask(&mut client, Order::Read, CommandFlags::NONE, range, &mut memory);
            assert_eq!(error, ErrorCode::NONE);
            assert!(memory == image[at..at + memory.len()], "round {round} at {at}");
        }
        for number in 0..300 {
            let length = 512 * (1 + random.below(100));
            let offset = 512 * random.below((SIZE - length) / 512);
            memory.resize(length.max(64 << 10), 0);
            memory[..length].fill(random.below(256) as u8);
            let flags = match number % 7 {
                0 => CommandFlags::FUA,
                _ => CommandFlags::NONE,
            };
            let range = (offset, length);
            let error = ask(&mut client, Order::Write, flags, range, &mut memory);
            assert_eq!(error, ErrorCode::NONE);
            image[offset..offset + length].copy_from_slice(&memory[..length]);
        }
        place = served.kill();
    }
    assert!(std::fs::read(place.path().join("disk.img")).expect("the image") == image);
}

#[test]
fn a_flush_on_one_connection_covers_the_writes_on_another() {
    if !can_run("nbd_server_flush", &[STRACE]) {
        return;
    }
    let _turn = take_turns();
    let place = directory();
    let trace = place.path().join("trace").display().to_string();
    let launcher = [
        "strace",
        // As a grandchild: what is killed in the end is the server.
        "-D",
        "-f",
        "-e",
        "trace=pwrite64,fdatasync",
        "-o",
        &trace,
    ];
    let served = Served::under(&launcher, place, &[]);
    let (mut first, mut second) = (served.connect(), served.connect());
    let mut memory = vec![7; 4096];
    for client in [&mut first, &mut second] {
        let error = ask(client, Order::Write, CommandFlags::NONE, (0, 4096), &mut memory);
        assert_eq!(error, ErrorCode::NONE);
    }
    let before = std::fs::read_to_string(&trace).expect("the trace");
    assert!(before.contains("pwrite64") && !before.contains("fdatasync"), "{before}");
    let error = ask(&mut second, Order::Flush, CommandFlags::NONE, (0, 0), &mut []);
    assert_eq!(error, ErrorCode::NONE);
    // The answer came after the system had said that all is on stable storage.
    let after = std::fs::read_to_string(&trace).expect("the trace");
    assert!(after.contains("fdatasync"), "{after}");
}

#[test]
fn a_full_disk_is_said_to_be_full_and_nothing_else_ends() {
    if !can_run("nbd_server_full", &[Need::Root]) {
        return;
    }
    let _turn = take_turns();
    let small = SmallFilesystem::new(FilesystemKind::Tmpfs, 8 << 20).expect("a filesystem");
    let place = TempDir::new_in(small.path()).expect("a directory on it");
    let served = Served::new(place, &[]);
    let mut client = served.connect();
    let mut memory = vec![7; 1 << 20];
    let mut errors = Vec::new();
    for number in 0..SIZE >> 20 {
        let range = (number << 20, 1 << 20);
        errors.push(ask(&mut client, Order::Write, CommandFlags::NONE, range, &mut memory));
    }
    let (fine, full): (Vec<ErrorCode>, Vec<ErrorCode>) =
        errors.iter().copied().partition(|error| *error == ErrorCode::NONE);
    assert!(fine.len() >= 6 && full.len() >= 15, "{errors:?}");
    assert!(full.iter().all(|error| *error == ErrorCode::NO_SPACE), "{errors:?}");
    let error = ask(&mut client, Order::Read, CommandFlags::NONE, (0, 1 << 20), &mut memory);
    assert_eq!((error, memory[0], memory[4095]), (ErrorCode::NONE, 7, 7));
    drop(client);
    let (status, said, _place) = served.end();
    assert_eq!(status, 0);
    assert!(said.contains("ERRORS"), "{said}");
}

#[test]
fn a_file_that_may_not_grow_is_no_reason_to_die() {
    let _turn = take_turns();
    let served = Served::under(&["prlimit", "--fsize=1048576"], directory_with_image(), &[]);
    let mut client = served.connect();
    let mut memory = vec![7; 4096];
    let inside = ask(&mut client, Order::Write, CommandFlags::NONE, (0, 4096), &mut memory);
    let beyond = ask(&mut client, Order::Write, CommandFlags::NONE, (2 << 20, 4096), &mut memory);
    let read = ask(&mut client, Order::Read, CommandFlags::NONE, (2 << 20, 4096), &mut memory);
    assert_eq!([inside, beyond, read], [ErrorCode::NONE, ErrorCode::NO_SPACE, ErrorCode::NONE]);
}

#[test]
fn a_large_write_that_fails_midway_is_an_error_and_the_next_is_none() {
    let _turn = take_turns();
    let served = Served::under(&["prlimit", "--fsize=1048576"], directory_with_image(), &[]);
    let mut client = served.connect();
    let mut memory = vec![7; 4 << 20];
    let mut write = |offset, length| {
        let flags = CommandFlags::NONE;
        let range = (offset, length);
        ask(&mut client, Order::Write, flags, range, &mut memory)
    };
    // The limit is in the middle of the first and the third, and before all of the second.
    let errors = [
        write(1 << 19, 1 << 20),
        write(2 << 20, 256 << 10),
        write(1 << 18, 4 << 20),
        write(1 << 18, 512 << 10),
        write(0, 64 << 10),
    ];
    let (full, none) = (ErrorCode::NO_SPACE, ErrorCode::NONE);
    assert_eq!(errors, [full, full, full, none, none]);
    let image = std::fs::read(served.image()).expect("the image");
    assert!(image[1 << 18..3 << 18].iter().all(|&byte| byte == 7));
    assert!(image[1 << 20..].iter().all(|&byte| byte != 7));
}

#[test]
fn what_is_large_goes_past_the_memory_of_the_server() {
    if !can_run("nbd_server_uncopied", &[STRACE]) {
        return;
    }
    let _turn = take_turns();
    let place = directory();
    let trace = place.path().join("trace").display().to_string();
    let calls = "trace=pwrite64,splice";
    // As a grandchild: what is killed in the end is the server.
    let launcher = ["strace", "-D", "-f", "-e", calls, "-o", &trace];
    let served = Served::under(&launcher, place, &[]);
    let mut client = served.connect();
    const BYTES: usize = 256 << 10;
    const WRITES: usize = 16;
    let mut memory = vec![7; BYTES];
    for number in 0..WRITES {
        let range = (number * BYTES, BYTES);
        let flags = CommandFlags::NONE;
        let error = ask(&mut client, Order::Write, flags, range, &mut memory);
        assert_eq!(error, ErrorCode::NONE);
    }
    let flags = CommandFlags::NONE;
    let error = ask(&mut client, Order::Read, flags, (0, BYTES), &mut memory);
    assert_eq!(error, ErrorCode::NONE);
    assert!(memory.iter().all(|&byte| byte == 7));
    let told = std::fs::read_to_string(&trace).expect("the trace");
    let bytes = |call: &str| {
        let calls = told.lines().filter(|line| line.contains(call));
        let given = calls.filter_map(|line| line.rsplit_once("= ")?.1.parse::<usize>().ok());
        given.sum::<usize>()
    };
    // What came with the first header was received before anybody knew what it was.
    let (spliced, written) = (bytes("splice"), bytes("pwrite64"));
    assert!(written <= BYTES, "{told}");
    assert!(spliced >= 2 * (WRITES * BYTES - written), "{told}");
    // However the bytes came: of a block that is written in two parts the disk may have to be read.
    let copied = told.lines().filter(|line| line.contains("pwrite64("));
    let ends = copied.filter_map(|line| {
        let (call, _) = line.rsplit_once(')')?;
        let mut numbers = call.rsplit(", ").map(str::parse::<usize>);
        Some(numbers.next()?.ok()? + numbers.next()?.ok()?)
    });
    assert!(ends.clone().count() > 0, "{told}");
    assert!(ends.clone().all(|end| end % 4096 == 0), "{told}");
}

#[test]
fn part_of_a_block_of_a_device_can_be_zeroed_and_trimmed() {
    if !can_run("nbd_server_device", &[Need::Root, Need::Loop]) {
        return;
    }
    let _turn = take_turns();
    let device = LoopDevice::new(8 << 20).expect("a loop device");
    let place = directory();
    let socket = place.path().join("socket");
    let mut command = Command::new(program::binary());
    command.arg("serve").arg(device.path());
    command.arg("--unix").arg(&socket);
    let _serving = Serving::start(command, Listening::Socket(socket.clone())).expect("it serves");
    let mut client = connect(&socket);
    const BYTES: usize = 64 << 10;
    let mut wanted = vec![7; BYTES];
    let mut order = |command, range, memory: &mut [u8]| {
        let error = ask(&mut client, command, CommandFlags::NONE, range, memory);
        assert_eq!(error, ErrorCode::NONE, "{command:?} of {range:?}");
    };
    order(Order::Write, (0, BYTES), &mut wanted);
    // Within a block, over the edge of one, and with whole blocks between.
    for range in [(100, 10), (1000, 100), (5001, 20_000), (40_000, 511)] {
        order(Order::WriteZeroes, range, &mut []);
        wanted[range.0..range.0 + range.1].fill(0);
    }
    order(Order::Trim, (63 << 10, 3), &mut []);
    let mut found = vec![1; BYTES];
    order(Order::Read, (0, BYTES), &mut found);
    assert!(found == wanted);
}

#[test]
fn a_second_server_of_one_image_is_refused() {
    let _turn = take_turns();
    let served = Served::new(directory(), &[]);
    let second = Command::new(program::binary())
        .args(["serve", "--unix", "/nowhere/socket"])
        .arg(served.image())
        .output()
        .expect("rubus starts");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(3), "{said}");
    assert!(said.contains("(rubus), which may write to it"), "{said}");
}

#[test]
fn who_asks_or_only_looks_is_not_said_to_be_refused() {
    let _turn = take_turns();
    let served = Served::new(directory(), &[]);
    let socket = served.directory.path().join("socket");
    drop(UnixStream::connect(&socket).expect("it listens"));
    let info = Command::new(program::binary())
        .args(["nbd", "info", &served.address()])
        .output()
        .expect("rubus starts");
    assert!(info.status.success(), "{info:?}");
    let asked = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(asked.contains("24.0 MiB"), "{asked}");
    // This client arrives after them, so the server has seen them before it.
    drop(served.connect());
    let (status, said, _place) = served.end();
    assert_eq!(status, 0, "{said}");
    assert_eq!(said.matches("left during the handshake").count(), 1, "{said}");
    assert_eq!(said.matches("asked what there is").count(), 3, "{said}");
    assert!(!said.contains("refused"), "{said}");
    assert!(said.contains("made, 24.0 MiB"), "{said}");
}

#[test]
fn sockets_that_are_given_are_used() {
    if !can_run("nbd_server_given", &[LIBNBD]) {
        return;
    }
    let _turn = take_turns();
    let place = directory_with_image();
    let image = place.path().join("disk.img").display().to_string();
    let binary = program::binary().display().to_string();
    // libnbd starts a server as systemd does, with a socket that is there before it.
    let arguments = ["--size", "--", "[", &binary, "serve", "--quiet", &image, "]"];
    let size = programs::run("nbdinfo", &arguments);
    assert_eq!(size.expect("nbdinfo"), SIZE.to_string());
    // And as inetd does, with the connection as standard input.
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut child = Command::new(&binary)
        .args(["serve", "--quiet", "--stdin", &image])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .spawn()
        .expect("rubus starts");
    let wish = Wish { export: "disk".into(), tls: false, structured_replies: false };
    let stream = Stream::connected(ours.into(), "pair".into());
    let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
    let mut client = Client::new(stream, &offer);
    let mut memory = vec![7; 4096];
    for command in [Order::Write, Order::Flush, Order::Read] {
        let range = match command {
            Order::Flush => (0, 0),
            _ => (0, 4096),
        };
        let error = ask(&mut client, command, CommandFlags::NONE, range, &mut memory);
        assert_eq!(error, ErrorCode::NONE);
    }
    client.disconnect();
    let status = child.wait().expect("it ends with its client");
    assert!(status.success(), "{status}");
}

#[test]
fn strangers_at_the_door_keep_no_client_out_and_are_sent_away() {
    let _turn = take_turns();
    let served = Served::new(directory(), &["--quiet"]);
    let socket = served.directory.path().join("socket");
    let strangers: Vec<_> =
        (0..300).map(|_| UnixStream::connect(&socket).expect("it listens")).collect();
    let mut memory = vec![0; 4096];
    let mut client = served.connect();
    let error = ask(&mut client, Order::Read, CommandFlags::NONE, (0, 4096), &mut memory);
    assert_eq!(error, ErrorCode::NONE);
    // Each gets the greeting of 18 bytes, and then the end.
    for mut stranger in strangers {
        let mut bytes = Vec::new();
        stranger.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let _ = stranger.read_to_end(&mut bytes);
        assert!(bytes.len() <= 18, "{} bytes", bytes.len());
    }
    let error = ask(&mut client, Order::Read, CommandFlags::NONE, (0, 4096), &mut memory);
    assert_eq!(error, ErrorCode::NONE, "an honest client stays");
}
