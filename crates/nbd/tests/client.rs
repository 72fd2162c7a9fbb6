//! The client with many requests in flight, over a wire that cuts everything into pieces and brings
//! replies in any order.

mod common;

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use common::{Nature, Server, disk};
use proptest::prelude::*;
use rubus_nbd::client::{Answer, Client, ClientError, Due, FlightError, Wish, agree};
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode, SimpleReply};

const PATIENCE: Duration = Duration::from_secs(1);
const DISK_BYTES: usize = 1 << 20;

/// A wire to a server in the same program. The sizes of the pieces come from a list, over and over.
struct Pieces {
    server: Server,
    sizes: Vec<usize>,
    turn: usize,
    /// One send in three finds no room.
    is_tight: bool,
    sends: usize,
}

impl Pieces {
    fn new(nature: Nature, sizes: Vec<usize>) -> Self {
        Pieces {
            server: Server::new(nature, disk(DISK_BYTES)),
            sizes,
            turn: 0,
            is_tight: false,
            sends: 0,
        }
    }

    fn size(&mut self) -> usize {
        self.turn += 1;
        self.sizes[self.turn % self.sizes.len()].max(1)
    }
}

impl Transport for Pieces {
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut left = self.size();
        self.sends += 1;
        if self.is_tight && self.sends % 3 == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut sent = 0;
        for part in parts {
            let now = part.len().min(left);
            self.server.take(&part[..now]);
            (sent, left) = (sent + now, left - now);
        }
        Ok(sent)
    }

    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        let most = self.size();
        if self.server.output.is_empty() && !self.server.has_ended() {
            assert!(!wait, "the client waits for what will never come");
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let output = &mut self.server.output;
        let most = most.min(output.len());
        let mut got = 0;
        for part in parts {
            let now = part.len().min(most - got);
            part[..now].copy_from_slice(&output[got..got + now]);
            got += now;
        }
        output.drain(..got);
        Ok(got)
    }

    fn wait(&mut self, or_room: bool, _most: Option<Duration>) -> io::Result<bool> {
        Ok(or_room || !self.server.output.is_empty())
    }
}

fn connect(nature: Nature, sizes: Vec<usize>, structured: bool) -> Client<Pieces> {
    let wish = Wish { export: String::new(), tls: false, structured_replies: structured };
    let pieces = Pieces::new(nature, sizes);
    let (mut pieces, offer) = agree(pieces, wish, PATIENCE, Ok).expect("they agree");
    pieces.is_tight = true;
    Client::new(pieces, &offer)
}

fn due(slot: u32, command: Command, offset: usize, length: usize) -> Due {
    Due {
        slot,
        command,
        flags: CommandFlags::NONE,
        offset: offset as u64,
        length: length as u32,
        memory_at: slot as usize * MAX,
    }
}

/// The largest request of these tests.
const MAX: usize = 20_000;

/// Keeps the queue full with the given requests; gives the answers in the order in which they came,
/// with what each read.
fn run(
    client: &mut Client<Pieces>,
    depth: u32,
    requests: &[(Command, usize, usize)],
) -> Vec<(usize, Answer, Vec<u8>)> {
    let mut memory = vec![0xee; depth as usize * MAX];
    let mut waiting = requests.iter().copied().enumerate();
    let mut running: Vec<Option<(usize, usize)>> = vec![None; depth as usize];
    let mut results = Vec::new();
    loop {
        let mut batch = Vec::new();
        for slot in 0..depth {
            if running[slot as usize].is_some() {
                continue;
            }
            let Some((number, (command, offset, length))) = waiting.next() else {
                break;
            };
            running[slot as usize] = Some((number, length));
            let request = due(slot, command, offset, length);
            if command == Command::Write {
                memory[request.memory_at..][..length].fill(number as u8 | 1);
            }
            batch.push(request);
        }
        if running.iter().all(Option::is_none) {
            return results;
        }
        let mut answers = Vec::new();
        client
            .exchange(&batch, &mut memory, &mut answers)
            .expect("the server keeps to the protocol");
        assert!(!answers.is_empty());
        for answer in answers {
            let taken = running[answer.slot as usize].take();
            let (number, length) = taken.expect("only what is in flight is answered");
            let at = answer.slot as usize * MAX;
            results.push((number, answer, memory[at..at + length].to_vec()));
        }
    }
}

fn request() -> impl Strategy<Value = (Command, usize, usize)> {
    let command =
        prop_oneof![3 => Just(Command::Read), 2 => Just(Command::Write), 1 => Just(Command::Flush)];
    let length = prop_oneof![Just(512_usize), Just(4096), 1..MAX];
    (command, length).prop_flat_map(|(command, length)| match command {
        Command::Flush => (Just(command), Just(0), Just(0)).boxed(),
        _ => (Just(command), 0..DISK_BYTES - length, Just(length)).boxed(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The server works in order, so its disk after each request is known.
    #[test]
    fn every_byte_arrives_however_the_wire_cuts_it(
        requests in proptest::collection::vec(request(), 1..30),
        sizes in proptest::collection::vec(prop_oneof![1_usize..64, 1_usize..50_000], 1..20),
        depth in 1_u32..8,
        structured: bool,
        chunk_bytes in 256_u32..30_000,
    ) {
        // A list of small sizes only takes for ever.
        let mut sizes = sizes;
        sizes.push(4097);
        let nature = Nature { chunk_bytes, ..Nature::default() };
        let mut client = connect(nature, sizes, structured);
        let results = run(&mut client, depth, &requests);
        prop_assert_eq!(results.len(), requests.len());
        let mut model = disk(DISK_BYTES);
        for (number, answer, bytes) in results {
            let (command, offset, length) = requests[number];
            prop_assert_eq!(answer.error, ErrorCode::NONE);
            match command {
                Command::Read => prop_assert!(bytes == model[offset..offset + length]),
                Command::Write => model[offset..offset + length].fill(number as u8 | 1),
                _ => {}
            }
        }
    }
}

#[test]
fn a_bad_block_fails_its_request_and_no_other() {
    for structured in [true, false] {
        let nature = Nature { bad_byte: Some(5000), ..Nature::default() };
        let mut client = connect(nature, vec![77], structured);
        let requests = [
            (Command::Read, 0, 4096),
            (Command::Read, 4096, 4096),
            (Command::Write, 4096, 4096),
            (Command::Read, 8192, 4096),
        ];
        let results = run(&mut client, 2, &requests);
        let errors: Vec<ErrorCode> = results.iter().map(|result| result.1.error).collect();
        let (fine, bad) = (ErrorCode::NONE, ErrorCode::IO);
        assert_eq!(errors, [fine, bad, bad, fine]);
        assert_eq!(client.words(), if structured { "bad byte" } else { "" });
    }
}

#[test]
fn holes_are_zeros_and_are_counted() {
    let mut client = connect(Nature { chunk_bytes: 512, ..Nature::default() }, vec![1001], true);
    // The disk has one page of zeros in three.
    let results = run(&mut client, 1, &[(Command::Read, 0, 512 * 6)]);
    let (_, answer, bytes) = &results[0];
    assert_eq!(answer.hole_bytes, 1024);
    assert_eq!(bytes[..], disk(512 * 6));
}

#[test]
fn the_headers_of_a_queue_that_is_never_empty_do_not_pile_up() {
    // Pieces of 20 000 bytes leave something unsent nearly always.
    let mut client = connect(Nature::default(), vec![20_001], false);
    let requests: Vec<_> = (0..5000).map(|i| (Command::Write, i % 100 * 512, 7000)).collect();
    assert_eq!(run(&mut client, 4, &requests).len(), 5000);
}

/// A server that has said all it will ever say.
struct Script {
    bytes: VecDeque<u8>,
    sent: Vec<u8>,
}

impl Transport for Script {
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        parts.iter().for_each(|part| self.sent.extend_from_slice(part));
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], _wait: bool) -> io::Result<usize> {
        let mut got = 0;
        for part in parts {
            for to in part.iter_mut() {
                match self.bytes.pop_front() {
                    Some(byte) => *to = byte,
                    None => return Ok(got),
                }
                got += 1;
            }
        }
        Ok(got)
    }

    fn wait(&mut self, _or_room: bool, _most: Option<Duration>) -> io::Result<bool> {
        Ok(true)
    }
}

fn scripted(structured: bool, script: impl FnOnce(u64) -> Vec<u8>) -> Result<(), ClientError> {
    let offer = rubus_nbd::client::Offer {
        style: rubus_nbd::client::Style::Fixed,
        size_bytes: 1 << 20,
        flags: Default::default(),
        block_sizes: None,
        structured_replies: structured,
        extended_headers: false,
        allocation: None,
        description: None,
        fenced: false,
    };
    // The first request of slot 0 has this cookie.
    let cookie = 1 << 32;
    let script = Script { bytes: script(cookie).into(), sent: Vec::new() };
    let mut client = Client::new(script, &offer);
    let mut memory = vec![0; 4096];
    let mut answers = Vec::new();
    let read = due(0, Command::Read, 8192, 4096);
    client.exchange(&[read], &mut memory, &mut answers)
}

fn chunk(kind: u16, done: bool, cookie: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = 0x668e_33ef_u32.to_be_bytes().to_vec();
    bytes.extend(u16::from(done).to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn data(offset: u64, bytes: usize) -> Vec<u8> {
    let mut body = offset.to_be_bytes().to_vec();
    body.resize(8 + bytes, 7);
    body
}

fn hole(offset: u64, bytes: u32) -> Vec<u8> {
    let mut body = offset.to_be_bytes().to_vec();
    body.extend(bytes.to_be_bytes());
    body
}

fn simple(error: u32, cookie: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let error = ErrorCode(error);
    SimpleReply { error, cookie }.encode(&mut bytes);
    bytes
}

#[test]
fn a_server_that_breaks_the_rules_is_found_out() {
    let good = scripted(true, |cookie| chunk(1, true, cookie, &data(8192, 4096)));
    assert!(good.is_ok(), "{good:?}");
    let wrong = |script: &dyn Fn(u64) -> Vec<u8>| match scripted(true, script) {
        Err(ClientError::Flight(error)) => error,
        other => panic!("{other:?}"),
    };
    use FlightError::{NotInFlight, Unsuitable, WrongBytes};
    // Another slot, another number of the slot, a request that is not there.
    assert_eq!(wrong(&|c| chunk(1, true, c + 1, &data(8192, 4096))), NotInFlight);
    assert_eq!(wrong(&|c| chunk(1, true, c << 1, &data(8192, 4096))), NotInFlight);
    assert_eq!(wrong(&|_| chunk(0, true, u64::MAX, &[])), NotInFlight);
    // Too little, too much, elsewhere, twice, and lengths that wrap around.
    assert_eq!(wrong(&|c| chunk(1, true, c, &data(8192, 4095))), WrongBytes);
    assert_eq!(wrong(&|c| chunk(1, true, c, &data(8192, 4097))), WrongBytes);
    assert_eq!(wrong(&|c| chunk(1, true, c, &data(0, 4096))), WrongBytes);
    assert_eq!(wrong(&|c| chunk(1, true, c, &data(u64::MAX, 4096))), WrongBytes);
    assert_eq!(wrong(&|c| chunk(1, true, c, &[0; 7])), WrongBytes);
    assert_eq!(wrong(&|c| chunk(0, true, c, &[])), WrongBytes);
    let twice = |c| [chunk(2, false, c, &hole(8192, 4096)), chunk(2, true, c, &hole(8192, 1))];
    assert_eq!(wrong(&|c| twice(c).concat()), WrongBytes);
    assert_eq!(wrong(&|c| chunk(2, true, c, &hole(8193, u32::MAX))), WrongBytes);
    // What does not belong to a read.
    assert_eq!(wrong(&|c| chunk(5, true, c, &[0; 12])), Unsuitable("read"));
    assert_eq!(wrong(&|c| chunk(9, true, c, &[])), Unsuitable("read"));
    assert_eq!(wrong(&|c| simple(0, c)), Unsuitable("read"));
    // The first answer ended it; the second answers nothing.
    let again = |c| [chunk(1, true, c, &data(8192, 4096)), chunk(0, true, c, &[])];
    assert_eq!(wrong(&|c| again(c).concat()), NotInFlight);
    assert!(matches!(wrong(&|c| chunk(0x8001, true, c, &[0; 5000])), FlightError::Malformed(_)));
    assert!(matches!(wrong(&|_| vec![0; 16]), FlightError::Malformed(_)));
    assert!(matches!(
        scripted(true, |c| chunk(1, true, c, &data(8192, 100))[..60].to_vec()),
        Err(ClientError::Flight(WrongBytes) | ClientError::Closed(_))
    ));
    assert!(matches!(
        scripted(false, |c| chunk(1, true, c, &data(8192, 4096))),
        Err(ClientError::Flight(Unsuitable(_)))
    ));
    assert!(matches!(scripted(false, |c| simple(0, c)), Err(ClientError::Closed(_))));
}

#[test]
fn requests_that_cannot_be_made_are_refused_here() {
    let mut client = connect(Nature::default(), vec![100_001], true);
    let mut memory = vec![0; MAX];
    let mut answers = Vec::new();
    let outside = due(1, Command::Read, 0, 512);
    let twice = due(0, Command::Flush, 0, 0);
    for bad in [&[outside][..], &[twice, twice]] {
        let answer = client.exchange(bad, &mut memory, &mut answers);
        assert!(matches!(answer, Err(ClientError::Flight(FlightError::BadRequest))));
    }
}

#[test]
fn a_client_says_goodbye() {
    let mut client = connect(Nature::default(), vec![100_001], true);
    run(&mut client, 2, &[(Command::Read, 0, 512)]);
    client.disconnect();
    let server = &client.transport().server;
    let last = server.requests.last().expect("there were requests");
    assert_eq!((last.command, server.requests.len()), (Command::Disconnect, 2));
    assert!(server.has_ended());
}
