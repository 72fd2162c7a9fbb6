//! A client that comes again after it has lost a connection: nothing that the old one left behind is done after the
//! server has let the new one begin.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rubus_host::listening::Listener;
use rubus_host::net::Stream;
use rubus_nbd::client::{Client, Due, Extras, Offer, Wish, agree_with};
use rubus_nbd::server::disk::{Abilities, Disk, Extent, Zeroing};
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::listener::{Server, Settings};
use rubus_nbd::wire::{Claim, Command, CommandFlags, ErrorCode};

const PATIENCE: Duration = Duration::from_secs(30);
const BLOCK: usize = 4096;
/// What is written with this byte waits until the disk is let go.
const SLOW: u8 = 1;

/// A disk that is slow with some writes, and remembers all.
#[derive(Default)]
struct Slow {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_free: bool,
    waiting: usize,
    /// The first byte of every write that was done, in order.
    done: Vec<u8>,
}

impl Slow {
    fn let_go(&self) {
        self.state.lock().unwrap().is_free = true;
        self.changed.notify_all();
    }

    /// Waits until so many writes wait.
    fn await_waiting(&self, count: usize) {
        let state = self.state.lock().unwrap();
        let few = |state: &mut State| state.waiting < count;
        let (_state, waited) = self.changed.wait_timeout_while(state, PATIENCE, few).unwrap();
        assert!(!waited.timed_out(), "the writes do not come");
    }

    fn done(&self) -> Vec<u8> {
        self.state.lock().unwrap().done.clone()
    }
}

impl Disk for Slow {
    fn size_bytes(&self) -> u64 {
        1 << 20
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn read_ready(&self, _: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(5);
        Ok(())
    }

    fn read(&self, _: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(5);
        Ok(())
    }

    fn write(&self, _: u64, from: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        if from[0] == SLOW {
            state.waiting += 1;
            self.changed.notify_all();
            state = self.changed.wait_while(state, |state| !state.is_free).unwrap();
        }
        state.done.push(from[0]);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn trim(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn zero(&self, _: u64, _: u64, _: Zeroing) -> io::Result<()> {
        Ok(())
    }

    fn extents(&self, _: u64, length: u64, _: bool) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent::data(length)])
    }

    fn prefetch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

struct Run {
    disk: Arc<Slow>,
    server: Arc<Server>,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
    directory: tempfile::TempDir,
}

type Connected = Result<(Client<Stream>, Offer), String>;

impl Run {
    fn new() -> Run {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = Listener::unix(&directory.path().join("socket")).expect("a socket");
        let disk = Arc::new(Slow::default());
        let exports = ExportTable::new(vec![Offered {
            name: "disk".into(),
            words: String::new(),
            source: Box::new(OneDisk {
                disk: Arc::clone(&disk) as Arc<dyn Disk>,
                identity: None,
                sync: false,
            }),
        }]);
        let server = Server::new(Arc::new(exports), Settings::default(), |_| {}).expect("a server");
        let runs = Arc::clone(&server);
        let thread = std::thread::spawn(move || runs.run(vec![listener]));
        Run { disk, server, thread: Some(thread), directory }
    }

    /// Connects in a thread.
    fn connecting(&self, fence: Option<Claim>) -> std::thread::JoinHandle<Connected> {
        let path = self.directory.path().join("socket");
        std::thread::spawn(move || {
            let socket = UnixStream::connect(path).expect("it listens");
            let wish = Wish { export: "disk".into(), tls: false, structured_replies: false };
            let extras = Extras { fence, ..Extras::default() };
            let stream = Stream::connected(socket.into(), "socket".into());
            let (stream, offer) = agree_with(stream, wish, extras, PATIENCE, Ok)
                .map_err(|error| error.to_string())?;
            Ok((Client::new(stream, &offer), offer))
        })
    }

    fn connect(&self, fence: Option<Claim>) -> Client<Stream> {
        let (client, offer) = self.connecting(fence).join().unwrap().expect("they agree");
        assert_eq!(offer.fenced, fence.is_some());
        client
    }

    fn end(mut self) -> Vec<u8> {
        self.disk.let_go();
        self.server.stop();
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic").expect("it ends well");
        self.disk.done()
    }
}

/// A connection of one attachment.
fn claim(generation: u64, lane: u32) -> Option<Claim> {
    Some(Claim { attachment: 0x1234, generation, lane, ended: 0 })
}

/// Sends so many writes of one byte to the same block, and waits for nothing.
fn send_writes(client: &mut Client<Stream>, count: u32, byte: u8, flags: CommandFlags) {
    for slot in 0..count {
        let due = Due {
            slot,
            command: Command::Write,
            flags,
            offset: 0,
            length: BLOCK as u32,
            memory_at: 0,
        };
        client.queue(&due, BLOCK).expect("it is fine");
    }
    let mut memory = vec![byte; BLOCK];
    while !client.turn(&mut memory, &mut Vec::new()).expect("it sends").all_sent {}
}

/// Writes one block and waits for the answer.
fn write(client: &mut Client<Stream>, byte: u8) {
    let due = Due {
        slot: 0,
        command: Command::Write,
        flags: CommandFlags::NONE,
        offset: 0,
        length: BLOCK as u32,
        memory_at: 0,
    };
    let mut answers = Vec::new();
    client.exchange(&[due], &mut vec![byte; BLOCK], &mut answers).expect("it is served");
    assert_eq!(answers[0].error, ErrorCode::NONE);
}

#[test]
fn nothing_of_the_old_connection_is_done_after_the_new_one_begins() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    send_writes(&mut old, 50, SLOW, CommandFlags::NONE);
    run.disk.await_waiting(1);
    let new = run.connecting(claim(2, 0));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!new.is_finished(), "a write of the old one is still under way");
    run.disk.let_go();
    let (mut new, _) = new.join().unwrap().expect("they agree");
    write(&mut new, 2);
    // What was under way ended before; the 49 others were never begun.
    assert_eq!(run.end(), [SLOW, 2]);
}

#[test]
fn what_waits_for_a_thread_is_forgotten_and_what_has_one_is_waited_for() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    send_writes(&mut old, 100, SLOW, CommandFlags::FUA);
    run.disk.await_waiting(12);
    let new = run.connecting(claim(2, 0));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!new.is_finished());
    run.disk.let_go();
    let (mut new, _) = new.join().unwrap().expect("they agree");
    write(&mut new, 2);
    let mut expected = vec![SLOW; 12];
    expected.push(2);
    assert_eq!(run.end(), expected);
}

#[test]
fn a_disk_that_hangs_has_words_and_stops_nobody_else() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    send_writes(&mut old, 1, SLOW, CommandFlags::NONE);
    run.disk.await_waiting(1);
    let new = run.connecting(claim(2, 0));
    let start = Instant::now();
    write(&mut run.connect(None), 7);
    write(&mut run.connect(claim(3, 1)), 8);
    assert!(start.elapsed() < Duration::from_secs(3), "others wait");
    let why = new.join().unwrap().map(|_| ()).expect_err("it is not let in");
    assert!(why.contains("still waits for its disk"), "{why}");
    assert_eq!(run.end(), [7, 8, SLOW]);
}

#[test]
fn the_other_lanes_of_an_attachment_go_on() {
    let run = Run::new();
    let mut other = run.connect(claim(1, 1));
    let mut stranger = run.connect(None);
    let old = run.connect(claim(2, 0));
    let mut new = run.connect(claim(3, 0));
    write(&mut other, 4);
    write(&mut stranger, 5);
    write(&mut new, 6);
    drop(old);
    assert_eq!(run.end(), [4, 5, 6]);
}

#[test]
fn an_idle_connection_is_ended_too_and_one_that_comes_late_is_not_let_in() {
    let run = Run::new();
    let mut old = run.connect(claim(1, 0));
    write(&mut old, 3);
    // Longer than a client keeps its thread.
    std::thread::sleep(Duration::from_millis(2500));
    let mut new = run.connect(claim(2, 0));
    write(&mut new, 4);
    let mut byte = [0];
    let ended = old.transport().receive_into(&mut byte, true);
    assert!(matches!(ended, Ok(0)), "{ended:?}");
    let late = run.connecting(claim(1, 0)).join().unwrap();
    let why = late.map(|_| ()).expect_err("a newer one is here");
    assert!(why.contains("a newer connection"), "{why}");
    write(&mut new, 5);
    assert_eq!(run.end(), [3, 4, 5]);
}
