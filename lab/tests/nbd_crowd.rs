//! `rubus serve` among a thousand busy clients and a few greedy ones: its memory and threads stay bounded, every client gets the
//! bytes that it wrote, and none is starved. The bounds are counts of requests, not times, so a slow machine keeps them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Duration;

use crate::common::program;
use crate::common::served::directory;
use crate::common::{report, take_turns};
use rubus_lab::devices::{Listening, Serving};
use rubus_nbd::wire::{
    Command, CommandFlags, ErrorCode, InfoRequest, OptionRequest, Request, SimpleReply,
};

const CLIENTS: usize = 1000;
/// Requests that each of them keeps in flight.
const DEPTH: usize = 4;
const BLOCK: usize = 4096;
/// Clients that always have many large reads in flight.
const GREEDY: usize = 8;
const GREEDY_DEPTH: usize = 32;
const GREEDY_BYTES: usize = 1 << 20;
/// Rounds that the slowest client does.
const ROUNDS: usize = 10;
/// Rounds that the client in the middle may do meanwhile. The kernel shares two processors out among two thousand threads: the middle
/// was seen to do 1.4 to 5.5 times what the slowest did, with the image in memory as on a disk. One that is starved does none.
const MAX_TYPICAL_ROUNDS: usize = 20 * ROUNDS;
/// A client disconnects after this number of rounds, so that the test ends when another one is starved.
const MAX_ROUNDS: usize = 2 * MAX_TYPICAL_ROUNDS;
/// What the server may grow by: a busy client has a thread and 260 KiB to receive in, and the payloads of all together are bounded.
/// Here they are 16 MiB.
const MAX_GROWTH_KIB: u64 = CLIENTS as u64 * 320 + (64 << 10);
/// Threads that the server may start: one for each busy client, 16 that wait for the disk, and 8 for handshakes.
const MAX_THREADS: u64 = (CLIENTS + GREEDY + 16 + 8) as u64;
/// Only so that a hanging test ends.
const HANGING: Duration = Duration::from_secs(120);

/// A connection that has agreed on the export.
fn agreed(socket: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(HANGING)).expect("a timeout");
    stream.set_write_timeout(Some(HANGING)).expect("a timeout");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("the greeting");
    let mut said = vec![0, 0, 0, 3];
    let go = OptionRequest::Go(InfoRequest { export: String::new(), wanted: Vec::new() });
    go.encode(&mut said);
    stream.write_all(&said).expect("it is taken");
    let mut answer = [0; 20 + 12 + 20];
    stream.read_exact(&mut answer).expect("the answer");
    stream
}

fn request(command: Command, cookie: usize, offset: usize, length: usize) -> [u8; Request::BYTES] {
    Request {
        flags: CommandFlags::NONE,
        command,
        cookie: cookie as u64,
        offset: offset as u64,
        length: length as u32,
    }
    .to_bytes()
}

/// Receives a reply without error; gives its cookie.
fn reply(stream: &mut UnixStream) -> usize {
    let mut bytes = [0; SimpleReply::BYTES];
    stream.read_exact(&mut bytes).expect("a reply");
    let error = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    assert_eq!(error, ErrorCode::NONE.0);
    let mut cookie = [0; 8];
    cookie.copy_from_slice(&bytes[8..16]);
    u64::from_be_bytes(cookie) as usize
}

/// What client `number` writes in a round to one of its blocks.
fn content(number: usize, round: usize, slot: usize) -> [u8; BLOCK] {
    let mut block = [number as u8; BLOCK];
    for (at, value) in [number, round, slot].into_iter().enumerate() {
        block[at * 8..][..8].copy_from_slice(&(value as u64).to_le_bytes());
    }
    block
}

/// How far all clients are.
struct Crowd {
    /// Clients that the server has not served yet. It gives each a thread as its first request comes, and until the last has one,
    /// some are ahead.
    to_begin: AtomicUsize,
    /// Clients that have rounds to do.
    to_do: AtomicUsize,
    /// A client failed, and the others need not go on.
    has_failed: AtomicBool,
}

/// Stops the others when its client fails.
struct StopsOthers<'a>(&'a Crowd);

impl Drop for StopsOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
    }
}

/// Writes its own blocks and reads them back, a round after the other, until all clients have done theirs. Gives how many it did
/// since all were served.
fn busy(mut stream: UnixStream, number: usize, crowd: &Crowd) -> usize {
    let _stops = StopsOthers(crowd);
    let mut counted = None;
    for round in 0.. {
        serve_round(&mut stream, number, round);
        if round == 0 {
            crowd.to_begin.fetch_sub(1, Ordering::Relaxed);
        }
        if crowd.has_failed.load(Ordering::Relaxed) {
            break;
        }
        if crowd.to_begin.load(Ordering::Relaxed) > 0 {
            continue;
        }
        let counted = counted.get_or_insert(0);
        *counted += 1;
        if *counted == ROUNDS {
            crowd.to_do.fetch_sub(1, Ordering::Relaxed);
        }
        let is_over = crowd.to_do.load(Ordering::Relaxed) == 0;
        if is_over || *counted > MAX_ROUNDS {
            return *counted;
        }
    }
    0
}

/// Writes all blocks of a client at once, and then reads all.
fn serve_round(stream: &mut UnixStream, number: usize, round: usize) {
    let offset = |slot: usize| (number * DEPTH + slot) * BLOCK;
    let mut said = Vec::new();
    for slot in 0..DEPTH {
        said.extend(request(Command::Write, slot, offset(slot), BLOCK));
        said.extend(content(number, round, slot));
    }
    stream.write_all(&said).expect("it is taken");
    (0..DEPTH).for_each(|_| _ = reply(stream));
    let said = (0..DEPTH).flat_map(|slot| request(Command::Read, slot, offset(slot), BLOCK));
    let said: Vec<u8> = said.collect();
    stream.write_all(&said).expect("it is taken");
    for _ in 0..DEPTH {
        let slot = reply(stream);
        let mut block = [0; BLOCK];
        stream.read_exact(&mut block).expect("the data");
        assert!(
            block == content(number, round, slot),
            "client {number}, round {round}, block {slot}: other bytes"
        );
    }
}

/// Always has many large reads in flight. Gives how many were answered.
fn greedy(mut stream: UnixStream, is_over: &AtomicBool) -> usize {
    let ask = request(Command::Read, 0, 0, GREEDY_BYTES);
    stream.write_all(&ask.repeat(GREEDY_DEPTH)).expect("it is taken");
    let mut data = vec![0; GREEDY_BYTES];
    let mut answered = 0;
    while !is_over.load(Ordering::Relaxed) {
        reply(&mut stream);
        stream.read_exact(&mut data).expect("the data");
        answered += 1;
        stream.write_all(&ask).expect("it is taken");
    }
    answered
}

/// A number of kibibytes, or a count, that the kernel knows of the server.
fn status(serving: &Serving, field: &str) -> u64 {
    let path = format!("/proc/{}/status", serving.id().expect("it runs"));
    let text = std::fs::read_to_string(path).expect("it runs");
    let line = text.lines().find(|line| line.starts_with(field));
    let words: Vec<&str> = line.expect("the field").split_whitespace().collect();
    words[1].parse().expect("a number")
}

#[test]
fn a_thousand_busy_clients_take_bounded_memory_and_none_is_starved() {
    let _turn = take_turns();
    let place = directory();
    let socket = place.path().join("socket");
    let mut command = std::process::Command::new(program::binary());
    command.arg("serve").arg(place.path().join("disk.img"));
    command.args(["--size", "64MiB", "--quiet", "--unix"]).arg(&socket);
    let mut serving =
        Serving::start(command, Listening::Socket(socket.clone())).expect("it serves");
    let memory = status(&serving, "VmRSS:");
    let threads = status(&serving, "Threads:");
    let streams: Vec<UnixStream> = (0..CLIENTS).map(|_| agreed(&socket)).collect();
    let greedies: Vec<UnixStream> = (0..GREEDY).map(|_| agreed(&socket)).collect();
    let crowd = Crowd {
        to_begin: AtomicUsize::new(CLIENTS),
        to_do: AtomicUsize::new(CLIENTS),
        has_failed: AtomicBool::new(false),
    };
    let is_over = AtomicBool::new(false);
    let (rounds, large, more_threads) = std::thread::scope(|scope| {
        let (crowd, is_over) = (&crowd, &is_over);
        let thread = || Builder::new().stack_size(128 << 10);
        let greedies: Vec<_> = greedies
            .into_iter()
            .map(|stream| thread().spawn_scoped(scope, move || greedy(stream, is_over)))
            .collect();
        let clients: Vec<_> = streams
            .into_iter()
            .enumerate()
            .map(|(number, stream)| {
                thread().spawn_scoped(scope, move || busy(stream, number, crowd))
            })
            .collect();
        let rounds: Vec<_> =
            clients.into_iter().map(|client| client.expect("a thread").join().ok()).collect();
        // Threads of the server that are idle end seconds later.
        let more_threads = status(&serving, "Threads:").saturating_sub(threads);
        is_over.store(true, Ordering::Relaxed);
        let large: Vec<_> =
            greedies.into_iter().map(|greedy| greedy.expect("a thread").join().ok()).collect();
        (rounds, large, more_threads)
    });
    let rounds: Vec<usize> = rounds.into_iter().flatten().collect();
    let large: Vec<usize> = large.into_iter().flatten().collect();
    assert_eq!((rounds.len(), large.len()), (CLIENTS, GREEDY));
    let [slowest, fastest] = [rounds.iter().min(), rounds.iter().max()].map(|end| *end.unwrap());
    let mut sorted = rounds.clone();
    sorted.sort_unstable();
    let typical = sorted[CLIENTS / 2];
    let grown = status(&serving, "VmHWM:").saturating_sub(memory);
    report(&format!(
        "{CLIENTS} clients: {slowest} to {fastest} rounds, typically {typical}, {large:?} large reads, {grown} KiB and {more_threads} threads more"
    ));
    assert!(slowest >= ROUNDS, "a client was starved: {slowest} of {ROUNDS} rounds");
    assert!(
        typical <= MAX_TYPICAL_ROUNDS,
        "a client was left behind: {slowest} to {fastest} rounds, typically {typical}"
    );
    assert!(large.iter().all(|&answered| answered > 0), "{large:?}");
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");
    assert!(more_threads <= MAX_THREADS, "{more_threads} threads");
    assert!(serving.is_alive());
    let status = serving.end().expect("it runs");
    assert_eq!(status.code(), Some(0), "it ended with {status}");
}
