//! A disk that fails under `rubus serve`: clients are told so with the right number, and the server goes on.

use std::time::Duration;

use crate::common::program::Home;
use crate::common::served::{SIZE as SIZE_SERVED, Served, directory};
use crate::common::{can_run, report, take_turns};
use rubus_host::net::Stream;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FailingDevice, Listening, Serving, programs};
use rubus_nbd::client::{Client, Due, Wish, agree};
use rubus_nbd::identity::{Identity, Verdict, judge};
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode};

const PATIENCE: Duration = Duration::from_secs(120);
const SIZE: u64 = 32 << 20;
const BLOCK: usize = 64 << 10;

fn connect(socket: &std::path::Path) -> Client<Stream> {
    let wish = Wish { export: String::new(), tls: false, structured_replies: true };
    let stream = Stream::unix(socket).expect("it listens");
    let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
    Client::new(stream, &offer)
}

fn ask(
    client: &mut Client<Stream>,
    command: Command,
    flags: CommandFlags,
    offset: u64,
) -> ErrorCode {
    let length = if command == Command::Flush { 0 } else { BLOCK };
    let due = Due { slot: 0, command, flags, offset, length: length as u32, memory_at: 0 };
    let (mut memory, mut answers) = (vec![7; BLOCK], Vec::new());
    client
        .exchange_within(&[due], &mut memory, &mut answers, PATIENCE)
        .expect("the connection holds");
    answers[0].error
}

#[test]
fn a_disk_that_fails_is_said_to_fail_and_the_server_goes_on() {
    let needs = [Need::NbdFile, Need::Program("nbdcopy", "libnbd-bin")];
    if !can_run("nbd_faults", &needs) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let mut device = FailingDevice::new(SIZE).expect("a device");
    let socket = home.path().join("socket");
    let mut command = home.command();
    command.args(["serve", "--quiet"]).arg(device.path());
    command.arg("--unix").arg(&socket);
    let listening = Listening::Socket(socket.clone());
    let mut served = Serving::start(command, listening).expect("it serves");
    let mut client = connect(&socket);
    let none = CommandFlags::NONE;
    assert_eq!(ask(&mut client, Command::Write, none, 0), ErrorCode::NONE);
    assert_eq!(ask(&mut client, Command::Flush, none, 0), ErrorCode::NONE);
    device.begin_to_fail().expect("it fails from now on");
    let far = SIZE / 2;
    assert_eq!(ask(&mut client, Command::Read, none, far), ErrorCode::IO);
    let durable = ask(&mut client, Command::Write, CommandFlags::FUA, far);
    assert_eq!(durable, ErrorCode::IO);
    // A write may lie in memory; then the flush says what became of it.
    let written = ask(&mut client, Command::Write, none, 2 * BLOCK as u64);
    let flushed = ask(&mut client, Command::Flush, none, 0);
    assert!([written, flushed].contains(&ErrorCode::IO), "{written}, {flushed}");
    // Another client, of another maker, is told the same and is not let down.
    let address = served.address();
    let size = programs::run("nbdinfo", &["--size", &address]).expect("it answers");
    assert_eq!(size, SIZE.to_string());
    let copy = home.path().join("copy").display().to_string();
    let copied = programs::run("nbdcopy", &[&address, &copy]).expect_err("it fails");
    assert!(format!("{copied:#}").contains("Input/output error"), "{copied:#}");
    // Ours names the place, and keeps nothing that it did not read.
    let ours = home.run(&["nbd", "copy", &address, "ours.img"]);
    assert_eq!(ours.status, Some(2), "{ours}");
    for words in ["reading", "at byte", "input/output error", "look at the log of the server"] {
        assert!(ours.stderr.contains(words), "{words}: {ours}");
    }
    assert!(!home.path().join("ours.img").exists());
    assert!(served.is_alive(), "it ended: {}", served.said());
    report("EIO under the image: clients are told, and the server goes on");
    drop(served);
    device.vanish();
}

/// The kernel reports a failed write-back once. The next client to flush would be told that all is well.
#[test]
fn a_failed_flush_is_final_for_every_client_and_for_the_end() {
    if !can_run("nbd_faults_flush", &[Need::Program("strace", "strace")]) {
        return;
    }
    let _turn = take_turns();
    // Each thread's first one fails, and those after it succeed. strace as a grandchild: what ends is the server.
    let launcher = [
        "strace",
        "-D",
        "-f",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync",
        "-e",
        "inject=fdatasync:error=EIO:when=1",
    ];
    let served = Served::under(&launcher, directory(), &[]);
    let (mut first, mut second) = (served.connect(), served.connect());
    let none = CommandFlags::NONE;
    assert_eq!(ask(&mut first, Command::Write, none, 0), ErrorCode::NONE);
    let before = told_identity(&served);
    assert_eq!(ask(&mut first, Command::Flush, none, 0), ErrorCode::IO);
    for client in [&mut first, &mut second] {
        assert_eq!(ask(client, Command::Flush, none, 0), ErrorCode::IO);
        let durable = ask(client, Command::Write, CommandFlags::FUA, 0);
        assert_eq!(durable, ErrorCode::IO);
        assert_eq!(ask(client, Command::Read, none, 0), ErrorCode::NONE);
    }
    // A client that reconnects is told that writes may be lost.
    let now = told_identity(&served);
    assert_eq!(judge(&before, &now, true), Verdict::SameButUnflushedLost);
    drop((first, second));
    let (status, said, _place) = served.end();
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("NOT everything"), "{said}");
    assert!(said.contains("writes may be lost"), "{said}");
    assert!(!said.contains("everything is on stable"), "{said}");
    report("a failed flush stays failed on every connection");
}

fn told_identity(served: &Served) -> Identity {
    let wish = Wish { export: String::new(), tls: false, structured_replies: false };
    let stream = Stream::unix(&served.directory.path().join("socket")).expect("it listens");
    let (_stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
    let description = offer.description.unwrap_or_default();
    Identity::parse(&description).expect("it names itself")
}

#[test]
fn an_image_that_shrinks_or_vanishes_is_an_error_and_never_zeros() {
    let _turn = take_turns();
    let none = CommandFlags::NONE;
    let fua = CommandFlags::FUA;
    let served = Served::new(directory(), &[]);
    let mut client = served.connect();
    let far = (SIZE_SERVED - BLOCK) as u64;
    assert_eq!(ask(&mut client, Command::Write, fua, far), ErrorCode::NONE);
    let file = std::fs::File::options().write(true).open(served.image()).expect("the image");
    file.set_len(1 << 20).expect("it shrinks");
    assert_eq!(ask(&mut client, Command::Read, none, far), ErrorCode::IO);
    for flags in [none, fua] {
        assert_eq!(ask(&mut client, Command::Write, flags, far), ErrorCode::IO);
    }
    assert_eq!(ask(&mut client, Command::Read, none, far), ErrorCode::IO);
    assert_eq!(file.metadata().expect("its length").len(), 1 << 20);
    drop(client);
    let (status, said, _place) = served.end();
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("cut off"), "{said}");

    let served = Served::new(directory(), &[]);
    let mut client = served.connect();
    assert_eq!(ask(&mut client, Command::Write, fua, 0), ErrorCode::NONE);
    std::fs::remove_file(served.image()).expect("it goes");
    assert_eq!(ask(&mut client, Command::Write, fua, 0), ErrorCode::IO);
    let socket = served.directory.path().join("socket");
    let stream = Stream::unix(&socket).expect("it listens");
    let wish = Wish { export: String::new(), tls: false, structured_replies: true };
    // It agrees, and hangs up.
    let admitted = agree(stream, wish, PATIENCE, Ok).is_ok_and(|(stream, offer)| {
        let mut client = Client::new(stream, &offer);
        let due = Due {
            slot: 0,
            command: Command::Read,
            flags: none,
            offset: 0,
            length: BLOCK as u32,
            memory_at: 0,
        };
        let (mut memory, mut answers) = (vec![0; BLOCK], Vec::new());
        let answered = client.exchange_within(&[due], &mut memory, &mut answers, PATIENCE);
        answered.is_ok() && !answers.is_empty()
    });
    assert!(!admitted, "nobody comes in any more");
    assert_eq!(served.end().0, 2);
}
