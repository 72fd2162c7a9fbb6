//! A disk that is slow with some writes, a server of it, and clients.

#![allow(dead_code)]

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::listening::Listener;
use rubus_nbd::client::{Client, Due, Extras, Offer, Wish, agree_with};
use rubus_nbd::identity::Uuid;
use rubus_nbd::server::disk::{Abilities, Disk, Extent, Zeroing};
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::listener::{Server, Settings, Store};
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{Claim, Command, CommandFlags, ErrorCode};

pub const PATIENCE: Duration = Duration::from_secs(30);
pub const BLOCK: usize = 4096;
/// What is written with this byte waits until the disk is let go.
pub const SLOW: u8 = 1;

/// A disk that is slow with some writes, and remembers all.
#[derive(Default)]
pub struct Slow {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_free: bool,
    waiting: usize,
    done: Vec<(u64, u8)>,
}

impl Slow {
    pub fn let_go(&self) {
        self.state.lock().unwrap().is_free = true;
        self.changed.notify_all();
    }

    /// Waits until this number of writes wait.
    pub fn await_waiting(&self, count: usize) {
        let state = self.state.lock().unwrap();
        let few = |state: &mut State| state.waiting < count;
        let (_state, waited) = self.changed.wait_timeout_while(state, PATIENCE, few).unwrap();
        assert!(!waited.timed_out(), "the writes do not come");
    }

    /// Waits until this number of writes are done.
    pub fn await_done(&self, count: usize) {
        let state = self.state.lock().unwrap();
        let few = |state: &mut State| state.done.len() < count;
        let (_state, waited) = self.changed.wait_timeout_while(state, PATIENCE, few).unwrap();
        assert!(!waited.timed_out(), "the writes are not done");
    }

    pub fn done(&self) -> Vec<u8> {
        self.places().into_iter().map(|(_, byte)| byte).collect()
    }

    /// The block and the first byte of every write that was done, in order.
    pub fn places(&self) -> Vec<(u64, u8)> {
        self.state.lock().unwrap().done.clone()
    }
}

impl Disk for Slow {
    fn size_bytes(&self) -> u64 {
        1 << 20
    }

    fn abilities(&self) -> Abilities {
        Abilities { can_trim: true, ..Abilities::default() }
    }

    fn read_ready(&self, _: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(5);
        Ok(())
    }

    fn read(&self, _: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(5);
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        if from[0] == SLOW {
            state.waiting += 1;
            self.changed.notify_all();
            state = self.changed.wait_while(state, |state| !state.is_free).unwrap();
        }
        state.done.push((offset / BLOCK as u64, from[0]));
        self.changed.notify_all();
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

    fn admits(&self) -> io::Result<()> {
        Ok(())
    }

    fn lost_writes(&self) -> Option<Uuid> {
        None
    }
}

pub struct Run {
    pub disk: Arc<Slow>,
    pub server: Arc<Server>,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
    pub directory: tempfile::TempDir,
    pub settings: Settings,
}

pub type Connected = Result<(Client<Stream>, Offer), String>;

impl Run {
    pub fn new() -> Run {
        Run::with(Settings::default())
    }

    /// One whose server has these settings.
    pub fn with(settings: Settings) -> Run {
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
        Run::of(Arc::new(exports), disk, settings)
    }

    /// One that serves this, whose writes go through a slow disk.
    pub fn of(store: Arc<dyn Store>, disk: Arc<Slow>, settings: Settings) -> Run {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = Listener::unix(&directory.path().join("socket")).expect("a socket");
        let server = Server::new(store, settings.clone(), |_| {}).expect("a server");
        let runs = Arc::clone(&server);
        let thread = std::thread::spawn(move || runs.run(vec![listener]));
        Run { disk, server, thread: Some(thread), directory, settings }
    }

    /// Connects in a thread.
    pub fn connecting(&self, fence: Option<Claim>) -> std::thread::JoinHandle<Connected> {
        self.connecting_to("disk", fence)
    }

    fn connecting_to(
        &self,
        export: &'static str,
        fence: Option<Claim>,
    ) -> std::thread::JoinHandle<Connected> {
        let path = self.directory.path().join("socket");
        std::thread::spawn(move || {
            let socket = UnixStream::connect(path).expect("it listens");
            let wish = Wish { export: export.into(), tls: false, structured_replies: false };
            let extras = Extras { fence, ..Extras::default() };
            let stream = Stream::connected(socket.into(), "socket".into());
            let (stream, offer) = agree_with(stream, wish, extras, PATIENCE, Ok)
                .map_err(|error| error.to_string())?;
            Ok((Client::new(stream, &offer), offer))
        })
    }

    pub fn connect(&self, fence: Option<Claim>) -> Client<Stream> {
        let (client, offer) = self.connecting(fence).join().unwrap().expect("they agree");
        assert_eq!(offer.fenced, fence.is_some());
        client
    }

    pub fn connect_to(&self, export: &'static str) -> Client<Stream> {
        self.connecting_to(export, None).join().unwrap().expect("they agree").0
    }

    pub fn end(mut self) -> Vec<u8> {
        self.disk.let_go();
        self.server.stop();
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic").expect("it ends well");
        self.disk.done()
    }
}

/// Sends `count` writes of one byte to the same block, and waits for no reply.
pub fn send_writes<T: Transport>(
    client: &mut Client<T>,
    count: u32,
    byte: u8,
    flags: CommandFlags,
) {
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

/// Writes the first block and waits for the answer.
pub fn write<T: Transport>(client: &mut Client<T>, byte: u8) {
    write_block(client, 0, byte);
}

/// Writes a block and waits for the answer.
pub fn write_block<T: Transport>(client: &mut Client<T>, block: u64, byte: u8) {
    let due = Due {
        slot: 0,
        command: Command::Write,
        flags: CommandFlags::NONE,
        offset: block * BLOCK as u64,
        length: BLOCK as u32,
        memory_at: 0,
    };
    let mut answers = Vec::new();
    client.exchange(&[due], &mut vec![byte; BLOCK], &mut answers).expect("it is served");
    assert_eq!(answers[0].error, ErrorCode::NONE);
}
