//! The NBD client against servers that are not ours: what they offer is what nbdinfo says, and
//! every byte that is written and read is the one that nbdcopy finds.

use std::path::Path;
use std::time::Duration;

use crate::common::program::Home;
use crate::common::{can_run, report, take_turns};
use rubus_host::net::Stream;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{NbdServer, programs};
use rubus_nbd::client::{Client, Due, Offer, Style, Wish, agree};
use rubus_nbd::uri::{Server, Uri};
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode, TransmissionFlags};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);
const SIZE: usize = 8 << 20;
const DEPTH: usize = 16;
/// The largest request of these tests.
const MAX: usize = 256 << 10;
const NBDKIT: Need = Need::Program("nbdkit", "nbdkit");
const NBDINFO: Need = Need::Program("nbdinfo", "libnbd-bin");

fn connect(address: &str) -> (Client<Stream>, Offer) {
    let uri = Uri::parse(address).expect("an address");
    let stream = match &uri.server {
        Server::Tcp { host, port } => Stream::tcp(host, *port, PATIENCE),
        Server::Unix(path) => Stream::unix(path),
    };
    let wish = Wish { export: uri.export.clone(), tls: false, structured_replies: true };
    let stream = stream.expect("it listens");
    let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
    (Client::new(stream, &offer), offer)
}

/// Compares the offer with what nbdinfo found.
fn compare_with_nbdinfo(address: &str, offer: &Offer, is_reference_server: bool) {
    let text = programs::run("nbdinfo", &["--json", address]).expect("nbdinfo");
    let info: Value = serde_json::from_str(&text).expect("nbdinfo prints JSON");
    let export = &info["exports"][0];
    // Newer versions ask with `--size` before they are connected, which servers of the old style do not answer. Of the
    // reference server they say 0, although they copy all of it.
    let size = export["export-size"].as_u64().expect("a size");
    assert!(size == offer.size_bytes || size == 0 && is_reference_server, "{info}");
    let style = match offer.style {
        Style::Fixed => "newstyle-fixed",
        Style::Newstyle => "newstyle",
        Style::Oldstyle => "oldstyle",
    };
    assert_eq!(info["protocol"], style, "{info}");
    assert_eq!(info["structured"], offer.structured_replies, "{info}");
    for (name, flag) in [
        ("is_read_only", TransmissionFlags::READ_ONLY),
        ("is_rotational", TransmissionFlags::ROTATIONAL),
        ("can_flush", TransmissionFlags::SEND_FLUSH),
        ("can_fua", TransmissionFlags::SEND_FUA),
        ("can_trim", TransmissionFlags::SEND_TRIM),
        ("can_zero", TransmissionFlags::SEND_WRITE_ZEROES),
        ("can_multi_conn", TransmissionFlags::CAN_MULTI_CONN),
    ] {
        assert_eq!(export[name], offer.flags.has(flag), "{name}: {info}");
    }
    if let Some(sizes) = offer.block_sizes {
        assert_eq!(export["block_size_minimum"], sizes.min_bytes, "{info}");
        assert_eq!(export["block_size_preferred"], sizes.preferred_bytes);
        assert_eq!(export["block_size_maximum"], sizes.max_bytes);
    } else {
        assert!(export["block_size_minimum"].is_null(), "{info}");
    }
}

/// Random numbers, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

/// What a slot is doing.
#[derive(Clone, Copy)]
struct Doing {
    command: Command,
    offset: usize,
    length: usize,
    number: u8,
}

/// Reads, writes and flushes at random with many in flight; every read is checked against a model. Ranges in
/// flight do not overlap, since servers may work in any order.
fn exercise(client: &mut Client<Stream>, offer: &Offer, model: &mut [u8], operations: usize) {
    let unit = offer.blocks().min_bytes.max(512) as usize;
    let max_units = (offer.blocks().max_bytes as usize).min(MAX) / unit;
    let can_write = !offer.flags.has(TransmissionFlags::READ_ONLY);
    // nbdkit of the old style offers both and knows neither.
    let can_make_durable = offer.style != Style::Oldstyle;
    let mut random = Random(7);
    let mut memory = vec![0; DEPTH * MAX];
    let mut doing: Vec<Option<Doing>> = vec![None; DEPTH];
    let (mut begun, mut ended) = (0, 0);
    while ended < operations {
        let mut due = Vec::new();
        for slot in 0..DEPTH {
            if doing[slot].is_some() || begun == operations {
                continue;
            }
            let Some(next) = choose(&mut random, &doing, unit, max_units, can_write) else {
                continue;
            };
            if next.command == Command::Flush && !can_make_durable {
                continue;
            }
            begun += 1;
            doing[slot] = Some(next);
            let at = slot * MAX;
            if next.command == Command::Write {
                memory[at..at + next.length].fill(next.number);
            }
            let durable = next.number % 5 == 0
                && can_make_durable
                && offer.flags.has(TransmissionFlags::SEND_FUA);
            due.push(Due {
                slot: slot as u32,
                command: next.command,
                flags: match next.command {
                    Command::Write if durable => CommandFlags::FUA,
                    _ => CommandFlags::NONE,
                },
                offset: next.offset as u64,
                length: next.length as u32,
                memory_at: at,
            });
        }
        let mut answers = Vec::new();
        client
            .exchange_within(&due, &mut memory, &mut answers, PATIENCE)
            .expect("the server goes on");
        for answer in answers {
            let slot = answer.slot as usize;
            assert_eq!(answer.error, ErrorCode::NONE, "{}", client.words());
            let done = doing[slot].take().expect("it was in flight");
            let range = done.offset..done.offset + done.length;
            let bytes = &memory[slot * MAX..][..done.length];
            match done.command {
                Command::Read => assert!(model[range] == *bytes, "a read is not what was written"),
                Command::Write => model[range].copy_from_slice(bytes),
                _ => {}
            }
            ended += 1;
        }
    }
}

fn choose(
    random: &mut Random,
    doing: &[Option<Doing>],
    unit: usize,
    max_units: usize,
    can_write: bool,
) -> Option<Doing> {
    let command = match random.below(20) {
        0 if can_write => Command::Flush,
        1..10 if can_write => Command::Write,
        _ => Command::Read,
    };
    let (mut offset, mut length) = (0, 0);
    if command != Command::Flush {
        length = (1 + random.below(max_units)) * unit;
        offset = random.below((SIZE - length) / unit) * unit;
    }
    let overlaps =
        |other: &&Doing| offset < other.offset + other.length && other.offset < offset + length;
    let is_free = !doing.iter().flatten().any(|other| overlaps(&other));
    is_free.then(|| Doing { command, offset, length, number: random.below(256) as u8 })
}

/// Everything with one server.
fn meet(name: &str, server: &NbdServer) {
    let (mut client, offer) = connect(server.address());
    assert_eq!(offer.size_bytes, SIZE as u64);
    let mut model = vec![0; SIZE];
    exercise(&mut client, &offer, &mut model, 600);
    client.disconnect();
    drop(client);
    compare_with_nbdinfo(server.address(), &offer, name == "nbd-server");
    let copy = server.directory().join("copy");
    let path = copy.display().to_string();
    programs::run("nbdcopy", &["--request-size=65536", server.address(), &path]).expect("nbdcopy");
    let found = std::fs::read(&copy).expect("the copy");
    assert!(found == model, "{name}: nbdcopy found other bytes");
    report(&format!(
        "{name}: {}, structured replies {}, as nbdinfo and nbdcopy say",
        offer.style.name(),
        offer.structured_replies
    ));
}

#[test]
fn nbdkit_of_every_age() {
    if !can_run("nbd_client_nbdkit", &[NBDKIT, NBDINFO]) {
        return;
    }
    let _turn = take_turns();
    let memory: [&str; 2] = ["memory", "8M"];
    let policy = [
        "--filter=blocksize-policy",
        "memory",
        "8M",
        "blocksize-minimum=4096",
        "blocksize-preferred=64K",
        "blocksize-maximum=128K",
        "blocksize-error-policy=error",
    ];
    // Replies overtake one another: some requests are slow.
    let overtaking =
        ["--filter=error", "--filter=delay", "memory", "8M", "delay-read=2ms", "error-rate=0"];
    for (name, arguments) in [
        ("nbdkit", memory.to_vec()),
        ("nbdkit --no-sr", [&["--no-sr"][..], &memory].concat()),
        ("nbdkit --mask-handshake=0", [&["--mask-handshake=0"][..], &memory].concat()),
        ("nbdkit --oldstyle", [&["--oldstyle"][..], &memory].concat()),
        ("nbdkit --readonly", [&["--readonly"][..], &memory].concat()),
        ("nbdkit blocksize-policy", policy.to_vec()),
        ("nbdkit delay", overtaking.to_vec()),
    ] {
        let server = NbdServer::nbdkit(&arguments).expect("nbdkit serves");
        meet(name, &server);
    }
    let server = NbdServer::nbdkit_tcp("127.0.0.1", &memory).expect("nbdkit serves");
    meet("nbdkit over TCP", &server);
}

#[test]
fn qemu_and_the_reference_server() {
    let needs = [
        NBDINFO,
        Need::Program("qemu-nbd", "qemu-utils"),
        Need::Program("nbd-server", "nbd-server"),
    ];
    if !can_run("nbd_client_others", &needs) {
        return;
    }
    let _turn = take_turns();
    let server = NbdServer::qemu(SIZE as u64, &["--shared=4"]).expect("qemu-nbd serves");
    meet("qemu-nbd", &server);
    let server = NbdServer::reference(SIZE as u64).expect("nbd-server serves");
    meet("nbd-server", &server);
}

#[test]
fn what_a_server_leaves_out_comes_as_holes() {
    if !can_run("nbd_client_holes", &[Need::Program("qemu-nbd", "qemu-utils")]) {
        return;
    }
    let _turn = take_turns();
    let server = NbdServer::qemu(SIZE as u64, &[]).expect("qemu-nbd serves");
    let (mut client, _) = connect(server.address());
    let mut memory = vec![0xee; MAX];
    let mut answers = Vec::new();
    let read = Due {
        slot: 0,
        command: Command::Read,
        flags: CommandFlags::NONE,
        offset: 0,
        length: MAX as u32,
        memory_at: 0,
    };
    client.exchange_within(&[read], &mut memory, &mut answers, PATIENCE).expect("it answers");
    assert_eq!(answers[0].hole_bytes as usize, MAX, "nothing was written");
    assert!(memory.iter().all(|&byte| byte == 0));
}

#[test]
fn errors_reach_their_requests() {
    if !can_run("nbd_client_errors", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let arguments = ["--filter=error", "memory", "8M", "error-pread=EIO", "error-pread-rate=30%"];
    let server = NbdServer::nbdkit(&arguments).expect("nbdkit serves");
    let (mut client, _) = connect(server.address());
    let mut memory = vec![0; DEPTH * 4096];
    let (mut failed, mut fine) = (0, 0);
    for _ in 0..20 {
        let due: Vec<Due> = (0..DEPTH)
            .map(|slot| Due {
                slot: slot as u32,
                command: Command::Read,
                flags: CommandFlags::NONE,
                offset: slot as u64 * 4096,
                length: 4096,
                memory_at: slot * 4096,
            })
            .collect();
        let mut answers = Vec::new();
        client
            .exchange_within(&due, &mut memory, &mut answers, PATIENCE)
            .expect("the connection holds");
        while client.in_flight() > 0 {
            client
                .exchange_within(&[], &mut memory, &mut answers, PATIENCE)
                .expect("the connection holds");
        }
        for answer in answers {
            match answer.error {
                ErrorCode::NONE => fine += 1,
                ErrorCode::IO => failed += 1,
                other => panic!("{other}"),
            }
        }
    }
    assert!(failed > 20 && fine > 100, "{failed} failed, {fine} were fine");
    assert!(Path::new(server.directory()).exists());
}

#[test]
fn a_suite_that_a_network_disk_cannot_do_is_an_error_and_no_empty_run() {
    if !can_run("nbd_client_suites", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let server = NbdServer::nbdkit(&["memory", "256M"]).expect("nbdkit serves");
    let home = Home::new();
    let lost = format!("--i-will-lose-everything-on={}", server.address());
    for allowed in [&[][..], &[lost.as_str()]] {
        let arguments = [&["bench", server.address(), "--suite=stream"], allowed].concat();
        let answer = home.run(&arguments);
        assert_eq!(answer.status, Some(2), "{answer}");
        for words in ["nothing to measure", "no page cache", "rubus suites"] {
            assert!(answer.stderr.contains(words), "{words}: {answer}");
        }
        assert_eq!(answer.stdout, "", "{answer}");
    }
}
