//! Whatever a server sends: no panic, no endless loop, and no more memory than the limits allow.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Nature, Server, disk};
use proptest::prelude::*;
use rubus_nbd::client::{Due, Flight, Handshake, Replies, Step, Wish};
use rubus_nbd::wire::{Command, CommandFlags, Request};

/// Remembers the largest piece of memory that was asked for.
struct Watching;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is the system's allocator; only a number is noted.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// No single piece of memory may be larger, the test's own included.
const MAX_BYTES: usize = 512 << 10;

fn wish(tls: bool) -> Wish {
    Wish { export: "disk".into(), tls, structured_replies: true }
}

/// Feeds the bytes into a handshake as long as it wants any; gives how many it took.
fn feed(bytes: &[u8], tls: bool) -> usize {
    let mut handshake = Handshake::new(wish(tls)).expect("the name is fine");
    let mut used = 0;
    loop {
        handshake.to_send();
        match handshake.step() {
            Step::Read(wanted) => {
                assert!(wanted > 0, "it asks for nothing");
                assert!(wanted <= 16 << 10, "it asks for {wanted} bytes");
                let Some(next) = bytes.get(used..used + wanted) else {
                    return used;
                };
                used += wanted;
                if handshake.received(next).is_err() {
                    return used;
                }
            }
            Step::StartTls => handshake.tls_started(),
            Step::Done => return used,
        }
    }
}

/// What an honest server says in a handshake.
fn honest_handshake(has_tls: bool, knows_go: bool) -> Vec<u8> {
    let nature = Nature {
        has_tls,
        knows_go,
        exports: vec!["disk".into()],
        description: Some("a disk".into()),
        block_sizes: Some(rubus_nbd::wire::BlockSizes::DEFAULT),
        ..Nature::default()
    };
    let mut server = Server::new(nature, disk(4096));
    let mut handshake = Handshake::new(wish(has_tls)).expect("the name is fine");
    let mut said = Vec::new();
    loop {
        server.take(&handshake.to_send());
        match handshake.step() {
            Step::Read(bytes) => {
                let bytes: Vec<u8> = server.output.drain(..bytes).collect();
                said.extend_from_slice(&bytes);
                handshake.received(&bytes).expect("the server is honest");
            }
            Step::StartTls => handshake.tls_started(),
            Step::Done => return said,
        }
    }
}

const SLOTS: u32 = 4;
const BLOCK: u32 = 8192;

fn flight(structured: bool) -> Flight {
    let replies = if structured { Replies::Structured } else { Replies::Simple };
    let mut flight = Flight::new(replies, None);
    for slot in 0..SLOTS {
        let command = if slot == 3 { Command::Flush } else { Command::Read };
        let due = Due {
            slot,
            command,
            flags: CommandFlags::NONE,
            offset: u64::from(slot * BLOCK),
            length: BLOCK,
            memory_at: (slot * BLOCK) as usize,
        };
        flight.begin(&due, (SLOTS * BLOCK) as usize).expect("the slots are free");
    }
    flight
}

/// What an honest server answers to those requests.
fn honest_answers(structured: bool) -> Vec<u8> {
    let nature = Nature { chunk_bytes: 1000, ..Nature::default() };
    let mut server = Server::new(nature, disk((SLOTS * BLOCK) as usize));
    let mut handshake =
        Handshake::new(Wish { export: String::new(), tls: false, structured_replies: structured })
            .expect("the name is fine");
    while let Step::Read(bytes) = handshake.step() {
        server.take(&handshake.to_send());
        let bytes: Vec<u8> = server.output.drain(..bytes).collect();
        handshake.received(&bytes).expect("the server is honest");
    }
    for slot in 0..SLOTS {
        let request = Request {
            flags: CommandFlags::NONE,
            command: if slot == 3 { Command::Flush } else { Command::Read },
            cookie: 1 << 32 | u64::from(slot),
            offset: u64::from(slot * BLOCK),
            length: BLOCK,
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        server.take(&bytes);
    }
    std::mem::take(&mut server.output)
}

/// Feeds the bytes into a flight in pieces, as the client does.
fn fly(structured: bool, bytes: &[u8], piece: usize) -> usize {
    let mut flight = flight(structured);
    let mut memory = vec![0; (SLOTS * BLOCK) as usize];
    let mut answers = Vec::new();
    let mut stage: Vec<u8> = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        stage.extend_from_slice(piece);
        let Ok(used) = flight.receive(&stage, &mut memory, &mut answers) else {
            break;
        };
        stage.drain(..used);
        assert!(stage.len() < 8192, "{} bytes wait for more", stage.len());
    }
    assert!(answers.len() <= SLOTS as usize);
    assert_eq!(answers.len() + flight.in_flight(), SLOTS as usize);
    answers.len()
}

/// Bytes of an honest server with some of them changed, and cut somewhere.
fn spoilt(honest: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = honest.len();
    let changes = proptest::collection::vec((0..length, any::<u8>()), 0..6);
    (changes, 0..=length).prop_map(move |(changes, end)| {
        let mut bytes = honest.clone();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes.truncate(end);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_handshake_takes_anything(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        tls: bool,
    ) {
        feed(&bytes, tls);
        // Behind a good greeting, too.
        let mut greeted = honest_handshake(false, true)[..18].to_vec();
        greeted.extend_from_slice(&bytes);
        feed(&greeted, tls);
        prop_assert!(LARGEST.load(Ordering::Relaxed) < MAX_BYTES);
    }

    #[test]
    fn a_handshake_takes_a_spoilt_one(
        bytes in prop_oneof![
            spoilt(honest_handshake(true, true)),
            spoilt(honest_handshake(false, true)),
            spoilt(honest_handshake(false, false)),
        ],
        tls: bool,
    ) {
        feed(&bytes, tls);
        prop_assert!(LARGEST.load(Ordering::Relaxed) < MAX_BYTES);
    }

    #[test]
    fn requests_in_flight_take_anything(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        structured: bool,
        magic: bool,
        piece in 1_usize..100,
    ) {
        let mut bytes = bytes;
        if magic && bytes.len() > 16 {
            bytes[..4].copy_from_slice(&0x668e_33ef_u32.to_be_bytes());
            bytes[8..16].copy_from_slice(&(1_u64 << 32).to_be_bytes());
        }
        fly(structured, &bytes, piece);
        prop_assert!(LARGEST.load(Ordering::Relaxed) < MAX_BYTES);
    }

    #[test]
    fn requests_in_flight_take_spoilt_answers(
        (structured, bytes) in prop_oneof![
            spoilt(honest_answers(true)).prop_map(|bytes| (true, bytes)),
            spoilt(honest_answers(false)).prop_map(|bytes| (false, bytes)),
        ],
        piece in 1_usize..5000,
    ) {
        fly(structured, &bytes, piece);
        prop_assert!(LARGEST.load(Ordering::Relaxed) < MAX_BYTES);
    }
}

#[test]
fn the_honest_ones_come_through() {
    for (tls, go) in [(true, true), (false, true), (false, false)] {
        let said = honest_handshake(tls, go);
        assert_eq!(feed(&said, tls), said.len());
    }
    for structured in [true, false] {
        let said = honest_answers(structured);
        for piece in [1, 7, 5000, said.len()] {
            assert_eq!(fly(structured, &said, piece), SLOTS as usize);
        }
    }
}

#[test]
fn a_list_without_end_ends() {
    use rubus_nbd::wire::{OptionReply, Refusal};
    let mut handshake = Handshake::new(wish(false)).expect("the name is fine");
    let mut bytes = honest_handshake(false, true)[..18].to_vec();
    let refused = |why| OptionReply::Refused { why, text: String::new() };
    refused(Refusal::Unsupported).encode(8, &mut bytes);
    refused(Refusal::Unknown).encode(7, &mut bytes);
    let mut used = 0;
    let mut entry = Vec::new();
    let server = OptionReply::Server { name: "another".into(), details: String::new() };
    server.encode(3, &mut entry);
    for _ in 0..1_000_000 {
        let Step::Read(wanted) = handshake.step() else { panic!("it wants to go on") };
        while bytes.len() < used + wanted {
            bytes = bytes.split_off(used);
            used = 0;
            bytes.extend_from_slice(&entry);
        }
        if let Err(error) = handshake.received(&bytes[used..used + wanted]) {
            assert!(error.to_string().contains("no end"), "{error}");
            return;
        }
        used += wanted;
    }
    panic!("it listened for ever");
}
