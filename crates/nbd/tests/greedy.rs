//! Clients that ask for much and take nothing, and disks that do not answer: others are served all the same.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::listening::Listener;
use rubus_nbd::client::{Client, Due, Wish, agree};
use rubus_nbd::identity::Uuid;
use rubus_nbd::server::disk::{Abilities, Disk, Extent, Zeroing};
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::listener::{Server, Settings};
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode};

/// Less than a client that takes nothing is given.
const PATIENCE: Duration = Duration::from_secs(30);
const SIZE: u64 = 1 << 30;
/// Reads from here on hang until the disk is let go.
const HUNG: u64 = 512 << 20;

/// A disk of which nothing is in memory.
#[derive(Default)]
struct Cold {
    is_free: (Mutex<bool>, Condvar),
}

impl Cold {
    fn let_go(&self) {
        *self.is_free.0.lock().unwrap() = true;
        self.is_free.1.notify_all();
    }
}

impl Disk for Cold {
    fn size_bytes(&self) -> u64 {
        SIZE
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn read_ready(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if offset >= HUNG {
            let free = self.is_free.0.lock().unwrap();
            drop(self.is_free.1.wait_while(free, |free| !*free).unwrap());
        }
        into.fill(5);
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
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

struct Run {
    disks: [Arc<Cold>; 2],
    server: Arc<Server>,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
    directory: tempfile::TempDir,
}

impl Run {
    /// A server with the exports "one" and "other".
    fn new() -> Run {
        Run::with(Settings::default())
    }

    fn with(settings: Settings) -> Run {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = Listener::unix(&directory.path().join("socket")).expect("a socket");
        let disks = [Arc::new(Cold::default()), Arc::new(Cold::default())];
        let offered = |name: &str, disk: &Arc<Cold>| Offered {
            name: name.into(),
            words: String::new(),
            source: Box::new(OneDisk {
                disk: Arc::clone(disk) as Arc<dyn Disk>,
                identity: None,
                sync: false,
            }),
        };
        let exports =
            ExportTable::new(vec![offered("one", &disks[0]), offered("other", &disks[1])]);
        let server = Server::new(Arc::new(exports), settings, |_| {}).expect("a server");
        let runs = Arc::clone(&server);
        let thread = std::thread::spawn(move || runs.run(vec![listener]));
        Run { disks, server, thread: Some(thread), directory }
    }

    fn connect(&self, export: &str) -> Client<Stream> {
        let socket = UnixStream::connect(self.directory.path().join("socket")).expect("it listens");
        let wish = Wish { export: export.into(), tls: false, structured_replies: true };
        let stream = Stream::connected(socket.into(), "socket".into());
        let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
        Client::new(stream, &offer)
    }

    fn end(mut self) {
        for disk in &self.disks {
            disk.let_go();
        }
        self.server.stop();
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic").expect("it ends well");
    }
}

fn reads(count: u32, offset: u64, length: u32) -> Vec<Due> {
    let read = |slot| Due {
        slot,
        command: Command::Read,
        flags: CommandFlags::NONE,
        offset: offset + u64::from(slot) * u64::from(length),
        length,
        memory_at: (slot * length) as usize,
    };
    (0..count).map(read).collect()
}

/// Asks, and takes no answer.
fn ask_only(client: &mut Client<Stream>, due: &[Due]) {
    let memory: usize = due.iter().map(|due| due.length as usize).sum();
    for due in due {
        client.queue(due, memory).expect("there is a slot");
    }
    // Sends, and looks only at what has come already.
    client.turn(&mut vec![0; memory], &mut Vec::new()).expect("it is sent");
}

fn is_served(client: &mut Client<Stream>, length: u32) {
    let mut memory = vec![0; 2 * length as usize];
    let mut answers = Vec::new();
    let mut new = reads(2, 0, length);
    while answers.len() < 2 {
        client
            .exchange_within(&new, &mut memory, &mut answers, PATIENCE)
            .expect("the server goes on");
        new.clear();
    }
    assert!(answers.iter().all(|answer| answer.error == ErrorCode::NONE));
    assert!(memory.iter().all(|&byte| byte == 5));
}

#[test]
fn clients_that_ask_for_much_and_read_nothing_stall_nobody() {
    let run = Run::new();
    let mut greedy: Vec<_> = (0..10).map(|_| run.connect("one")).collect();
    for client in &mut greedy {
        ask_only(client, &reads(2, 0, 32 << 20));
    }
    std::thread::sleep(Duration::from_millis(300));
    // Small requests have reserved memory; large ones get it from clients that do not read.
    for length in [4 << 10, 256 << 10, 2 << 20, 16 << 20] {
        is_served(&mut run.connect("one"), length);
    }
    drop(greedy);
    run.end();
}

#[test]
fn clients_that_begin_large_writes_and_stop_are_counted_and_give_way() {
    use std::io::{Read, Write};
    let run = Run::with(Settings { max_bytes: 8 << 20, ..Settings::default() });
    let begin = |_: i32| {
        let mut socket = UnixStream::connect(run.directory.path().join("socket")).unwrap();
        socket.read_exact(&mut [0; 18]).expect("a greeting");
        let agree = b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x03one";
        socket.write_all(agree).expect("an option");
        socket.read_exact(&mut [0; 10]).expect("an answer");
        // A durable write of 1 MiB, of which a byte is missing.
        let mut write = vec![0; 28 + (1 << 20) - 1];
        write[..8].copy_from_slice(b"\x25\x60\x95\x13\0\x01\0\x01");
        write[24..28].copy_from_slice(&(1_u32 << 20).to_be_bytes());
        socket.set_nonblocking(true).expect("a socket");
        (socket, write, 0)
    };
    let mut stopped: Vec<_> = (0..12).map(begin).collect();
    let mut push = || {
        let mut gone = 0;
        for (socket, write, at) in &mut stopped {
            match socket.write(&write[*at..]) {
                Ok(sent) => *at += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => gone += 1,
            }
        }
        gone
    };
    for _ in 0..30 {
        assert_eq!(push(), 0);
        std::thread::sleep(Duration::from_millis(10));
    }
    is_served(&mut run.connect("other"), 3 << 20);
    let mut gone = 0;
    for (socket, ..) in &mut stopped {
        // Nothing was answered: there is the end, or nothing.
        let read = socket.read(&mut [0]);
        gone +=
            usize::from(!matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock));
    }
    assert!((1..12).contains(&gone), "{gone} had to go");
    run.end();
}

#[test]
fn the_arithmetic_of_tls_keeps_nobody_at_the_door_waiting() {
    use rubus_nbd::server::handshake::TlsPolicy;
    use rubus_nbd::tls::{Pem, TlsServerSettings};
    let pem = |name: &'static str, text: &'static str| Pem { name, bytes: text.as_bytes() };
    let settings = TlsServerSettings::new(
        pem("certificate", include_str!("localhost-cert.pem")),
        pem("key", include_str!("localhost-key.pem")),
        None,
    );
    let run = Run::with(Settings {
        tls: TlsPolicy::Allow,
        certificates: Some(settings.expect("certificates")),
        ..Settings::default()
    });
    is_served(&mut run.connect("one"), 4096);
    let threads = std::fs::read_dir("/proc/self/task").expect("threads");
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    // They stay for some seconds.
    assert!(names.into_iter().any(|name| name.trim() == "greeting"));
    run.end();
}

#[test]
fn an_export_that_hangs_leaves_the_others_alone() {
    let run = Run::new();
    let mut waiting: Vec<_> = (0..4).map(|_| run.connect("one")).collect();
    for client in &mut waiting {
        ask_only(client, &reads(40, HUNG, 4096));
    }
    std::thread::sleep(Duration::from_millis(100));
    is_served(&mut run.connect("other"), 4096);
    run.end();
}

#[test]
fn a_client_whose_requests_hang_leaves_threads_to_the_others() {
    let run = Run::new();
    let mut waiting = run.connect("one");
    ask_only(&mut waiting, &reads(40, HUNG, 4096));
    std::thread::sleep(Duration::from_millis(100));
    is_served(&mut run.connect("one"), 4096);
    run.end();
}
