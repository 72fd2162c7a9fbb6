//! The server over a socket, on a disk that fails, waits and counts as it is told.

mod common;
#[path = "common/strange.rs"]
mod strange;

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::listening::{Caller, Listener};
use rubus_nbd::client::{Answer, Client, Due, Wish, agree};
use rubus_nbd::peer::PeerCertificate;
use rubus_nbd::server::disk::Disk;
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::handshake::{Export, Exports, NoExport};
use rubus_nbd::server::listener::{Opened, Server, Settings, Store};
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode};
use strange::{BAD, BLOCK, COLD, SIZE, SLOW, STUCK, Strange};

const PATIENCE: Duration = Duration::from_secs(20);

/// Exports of which one is found only when the disk is thawed.
struct Slow {
    exports: ExportTable,
    disk: Arc<Strange>,
}

impl Exports for Slow {
    fn list(&self) -> Vec<(String, String)> {
        self.exports.list()
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        if name == "slow" {
            let thawed = self.disk.thawed.0.lock().unwrap();
            drop(self.disk.thawed.1.wait_while(thawed, |thawed| !*thawed).unwrap());
        }
        self.exports.find("strange")
    }

    fn admits(&self, _: &str, _: Option<&PeerCertificate>) -> Result<(), NoExport> {
        Ok(())
    }
}

impl Store for Slow {
    fn may_wait(&self) -> bool {
        true
    }

    fn exports(&self) -> &dyn Exports {
        self
    }

    fn open(&self, name: &str, caller: &Caller) -> Result<Opened, String> {
        self.exports.open(name, caller)
    }
}

struct Run {
    disk: Arc<Strange>,
    server: Arc<Server>,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
    directory: tempfile::TempDir,
}

impl Run {
    fn new(sync: bool) -> Run {
        let disk = Arc::new(Strange::default());
        *disk.bytes.lock().unwrap() = vec![3; SIZE];
        let directory = tempfile::tempdir().expect("a directory");
        let listener = Listener::unix(&directory.path().join("socket")).expect("a socket");
        let exports = ExportTable::new(vec![Offered {
            name: "strange".into(),
            words: String::new(),
            source: Box::new(OneDisk {
                disk: Arc::clone(&disk) as Arc<dyn Disk>,
                identity: None,
                sync,
            }),
        }]);
        let store = Slow { exports, disk: Arc::clone(&disk) };
        let server = Server::new(Arc::new(store), Settings::default(), |_| {}).expect("a server");
        let runs = Arc::clone(&server);
        let thread = std::thread::spawn(move || runs.run(vec![listener]));
        Run { disk, server, thread: Some(thread), directory }
    }

    fn socket(&self) -> UnixStream {
        UnixStream::connect(self.directory.path().join("socket")).expect("it listens")
    }

    fn connect(&self) -> Client<Stream> {
        self.connect_to("")
    }

    fn connect_to(&self, export: &str) -> Client<Stream> {
        let wish = Wish { export: export.into(), tls: false, structured_replies: true };
        let stream = Stream::connected(self.socket().into(), "socket".into());
        let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
        Client::new(stream, &offer)
    }

    /// A connection that has agreed in the old way, by hand.
    fn connect_by_hand(&self) -> UnixStream {
        use std::io::{Read, Write};
        let mut socket = self.socket();
        let mut greeting = [0; 18];
        socket.read_exact(&mut greeting).expect("a greeting");
        // Client flags, then the name of the default export.
        socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").expect("an option");
        let mut agreed = [0; 10];
        socket.read_exact(&mut agreed).expect("an answer");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket
    }

    fn thaw(&self) {
        *self.disk.thawed.0.lock().unwrap() = true;
        self.disk.thawed.1.notify_all();
    }

    fn end(mut self) {
        self.thaw();
        self.server.stop();
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("no panic").expect("it ends well");
        assert!(!self.directory.path().join("socket").exists());
    }
}

fn due(slot: usize, command: Command, block: usize, blocks: usize) -> Due {
    Due {
        slot: slot as u32,
        command,
        flags: CommandFlags::NONE,
        offset: (block * BLOCK) as u64,
        length: (blocks * BLOCK) as u32,
        memory_at: 0,
    }
}

/// Some requests at once, and the answers in the order in which they come.
fn ask(client: &mut Client<Stream>, due: &[Due], memory: &mut [u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut new = due;
    while client.in_flight() > 0 || !new.is_empty() {
        client.exchange_within(new, memory, &mut answers, PATIENCE).expect("the server goes on");
        new = &[];
    }
    answers
}

fn request_by_hand(command: u16, cookie: u64, offset: u64, length: u32) -> [u8; 28] {
    let mut request = [0; 28];
    request[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
    request[6..8].copy_from_slice(&command.to_be_bytes());
    request[8..16].copy_from_slice(&cookie.to_be_bytes());
    request[16..24].copy_from_slice(&offset.to_be_bytes());
    request[24..].copy_from_slice(&length.to_be_bytes());
    request
}

fn error_of(client: &mut Client<Stream>, due: Due, memory: &mut [u8]) -> ErrorCode {
    ask(client, &[due], memory)[0].error
}

#[test]
fn a_bad_block_is_an_error_of_its_requests_alone() {
    let run = Run::new(false);
    run.thaw();
    let mut client = run.connect();
    let mut memory = vec![1; 2 << 20];
    for command in [Command::Read, Command::Write, Command::Trim] {
        let error = error_of(&mut client, due(0, command, BAD - 1, 2), &mut memory);
        assert_eq!(error, ErrorCode::IO, "{command:?}");
        let error = error_of(&mut client, due(0, command, BAD + 1, 2), &mut memory);
        assert_eq!(error, ErrorCode::NONE, "{command:?}");
    }
    // A write that is taken in pieces, and fails in the first.
    let error = error_of(&mut client, due(0, Command::Write, 0, 400), &mut memory);
    assert_eq!(error, ErrorCode::IO);
    let error = error_of(&mut client, due(0, Command::Read, BAD + 1, 1), &mut memory);
    assert_eq!(error, ErrorCode::NONE, "they are still in step");
    run.end();
}

#[test]
fn what_is_in_memory_does_not_wait_for_what_is_not() {
    let run = Run::new(false);
    let (mut client, mut other) = (run.connect(), run.connect());
    let mut memory = vec![0; 64 * BLOCK];
    let mut answers = Vec::new();
    // More cold reads than there are threads; they all hang.
    let cold: Vec<_> = (0..40).map(|n| due(n, Command::Read, COLD + n, 1)).collect();
    let all = [&cold[..], &[due(99, Command::Read, 1, 1)]].concat();
    client
        .exchange_within(&all, &mut memory, &mut answers, PATIENCE)
        .expect("the hot one is answered");
    assert_eq!(answers.iter().map(|a| a.slot).collect::<Vec<_>>(), [99]);
    let error = error_of(&mut other, due(0, Command::Read, 2, 1), &mut memory);
    assert_eq!(error, ErrorCode::NONE, "nor does another client");
    run.thaw();
    assert_eq!(ask(&mut client, &[], &mut memory).len(), 40);
    run.end();
}

#[test]
fn cold_reads_of_a_client_that_waits_for_each_are_handed_to_nobody() {
    let run = Run::new(false);
    run.thaw();
    let mut client = run.connect();
    let mut memory = vec![0; 64 * BLOCK];
    let readers = || std::mem::take(&mut *run.disk.readers.lock().unwrap());
    // A while it is not known that it waits.
    for _ in 0..20 {
        let read = due(0, Command::Read, COLD, 2);
        assert_eq!(error_of(&mut client, read, &mut memory), ErrorCode::NONE);
    }
    let names = readers();
    assert_eq!(names[..8], ["disk"; 8]);
    assert_eq!(names[8..], ["client"; 12]);
    // Several at once are for several threads.
    let several: Vec<_> = (0..8).map(|n| due(n, Command::Read, COLD + n, 1)).collect();
    assert_eq!(ask(&mut client, &several, &mut memory).len(), 8);
    assert_eq!(readers(), ["disk"; 8]);
    let error = error_of(&mut client, due(0, Command::Read, COLD, 1), &mut memory);
    assert_eq!(error, ErrorCode::NONE);
    assert_eq!(readers(), ["disk"], "it has to wait again before that is known");
    run.end();
}

#[test]
fn a_read_of_more_than_one_mebibyte_that_is_in_memory_is_handed_to_nobody() {
    let run = Run::new(false);
    run.thaw();
    let mut client = run.connect();
    // What the kernel asks for, and what qemu-img does.
    for blocks in [320, 512] {
        let mut memory = vec![0; blocks * BLOCK];
        let read = due(0, Command::Read, 100, blocks);
        assert_eq!(error_of(&mut client, read, &mut memory), ErrorCode::NONE);
        assert!(memory.iter().all(|&byte| byte == 3));
        assert!(run.disk.readers.lock().unwrap().is_empty());
    }
    run.end();
}

#[test]
fn after_a_slow_write_the_next_keeps_nobody_waiting() {
    use std::io::{Read, Write};
    let run = Run::new(false);
    let mut socket = run.connect_by_hand();
    let block = |command, cookie, block: usize| {
        let mut bytes =
            request_by_hand(command, cookie, (block * BLOCK) as u64, BLOCK as u32).to_vec();
        if command == 1 {
            bytes.resize(28 + BLOCK, 9);
        }
        bytes
    };
    let answer = |socket: &mut UnixStream| {
        let mut reply = [0; 16];
        socket.read_exact(&mut reply).expect("an answer");
        assert_eq!(reply[4..8], [0; 4], "no error");
        u64::from_be_bytes(reply[8..].try_into().unwrap())
    };
    let begun = |number| {
        run.disk.slow_writes_have_begun(number);
        std::thread::sleep(Duration::from_millis(50));
    };
    let let_go = || run.disk.let_a_slow_write_go();
    // The first arouses suspicion. What comes after it is there when it is done.
    socket.write_all(&block(1, 1, SLOW)).expect("it is taken");
    begun(1);
    let more = [block(1, 4, SLOW), block(1, 2, STUCK), block(0, 3, 1)].concat();
    socket.write_all(&more).expect("they are taken");
    let_go();
    begun(2);
    let_go();
    assert_eq!(answer(&mut socket), 1);
    assert_eq!(answer(&mut socket), 4);
    assert_eq!(answer(&mut socket), 3, "the read does not wait for the write");
    socket.read_exact(&mut [0; BLOCK]).expect("what was read");
    run.thaw();
    assert_eq!(answer(&mut socket), 2);
    assert_eq!(run.disk.bytes.lock().unwrap()[STUCK * BLOCK], 9);
    drop(socket);
    run.end();
}

#[test]
fn with_sync_every_change_is_durable_before_it_is_answered() {
    for sync in [false, true] {
        let run = Run::new(sync);
        let mut client = run.connect();
        let mut memory = vec![5; 512 * BLOCK];
        for blocks in [1, 512] {
            let write = due(0, Command::Write, 10, blocks);
            assert_eq!(error_of(&mut client, write, &mut memory), ErrorCode::NONE);
            let unflushed = run.disk.unflushed.load(Ordering::SeqCst);
            assert_eq!(unflushed == 0, sync, "{blocks} blocks, sync {sync}");
        }
        for command in [Command::Trim, Command::WriteZeroes] {
            run.disk.unflushed.store(0, Ordering::SeqCst);
            let change = due(0, command, 10, 4);
            assert_eq!(error_of(&mut client, change, &mut memory), ErrorCode::NONE);
            let unflushed = run.disk.unflushed.load(Ordering::SeqCst);
            assert_eq!(unflushed == 0, sync, "{command:?}, sync {sync}");
        }
        let durable = Due { flags: CommandFlags::FUA, ..due(0, Command::Write, 600, 2) };
        assert_eq!(error_of(&mut client, durable, &mut memory), ErrorCode::NONE);
        assert_eq!(run.disk.unflushed.load(Ordering::SeqCst), 0);
        run.end();
    }
}

#[test]
fn whoever_does_not_read_is_not_read_and_keeps_nobody_waiting() {
    use std::io::Write;
    let run = Run::new(false);
    run.thaw();
    let mut socket = run.connect_by_hand();
    // Reads of 1 MiB whose replies are not read: at some point the server accepts no more of them.
    socket.set_nonblocking(true).expect("a socket");
    let request = request_by_hand(0, 0, 1 << 20, 1 << 20);
    let mut asked = 0_u64;
    loop {
        match socket.write(&request) {
            Ok(_) => asked += 1,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                break;
            }
        }
        assert!(asked < 1 << 20, "everything is taken");
    }
    let mut memory = vec![0; BLOCK];
    let mut other = run.connect();
    let error = error_of(&mut other, due(0, Command::Read, 0, 1), &mut memory);
    assert_eq!(error, ErrorCode::NONE);
    drop(socket);
    run.end();
}

#[test]
fn large_writes_are_answered_though_the_next_is_not_whole() {
    use std::io::{Read, Write};
    const BYTES: usize = 128 << 10;
    let run = Run::new(false);
    let mut socket = run.connect_by_hand();
    let payload = vec![0x33; BYTES];
    let mut sent = Vec::new();
    for cookie in 0..3 {
        let offset = (1 << 20) + cookie * BYTES as u64;
        sent.extend(request_by_hand(1, cookie, offset, BYTES as u32));
        sent.extend(&payload);
    }
    // Of the third only a part comes before the first two are answered.
    let part = sent.len() - BYTES / 2;
    socket.write_all(&sent[..part]).expect("two and a half");
    let mut answers = [0; 32];
    socket.read_exact(&mut answers).expect("two answers");
    socket.write_all(&sent[part..]).expect("the rest");
    let mut third = [0; 16];
    socket.read_exact(&mut third).expect("the third answer");
    let cookies = [&answers[8..16], &answers[24..], &third[8..]];
    assert_eq!(cookies.map(|cookie| cookie[7]), [0, 1, 2]);
    assert!(
        [&answers[4..8], &answers[20..24], &third[4..8]].concat().iter().all(|&byte| byte == 0)
    );
    let end = (1 << 20) + 3 * BYTES;
    assert!(run.disk.bytes.lock().unwrap()[1 << 20..end].iter().all(|&byte| byte == 0x33));
    drop(socket);
    run.end();
}

#[test]
fn who_waits_for_an_export_keeps_nobody_waiting() {
    let run = Run::new(false);
    std::thread::scope(|scope| {
        let slow: Vec<_> = (0..4).map(|_| scope.spawn(|| run.connect_to("slow"))).collect();
        let mut memory = vec![0; BLOCK];
        for _ in 0..4 {
            let error = error_of(&mut run.connect(), due(0, Command::Read, 1, 1), &mut memory);
            assert_eq!(error, ErrorCode::NONE);
        }
        run.thaw();
        for client in slow {
            let mut client = client.join().expect("they come to terms");
            let error = error_of(&mut client, due(0, Command::Read, 1, 1), &mut memory);
            assert_eq!(error, ErrorCode::NONE);
        }
    });
    run.end();
}

#[test]
fn a_server_that_ends_finishes_what_is_in_flight() {
    let run = Run::new(false);
    let mut client = run.connect();
    let mut memory = vec![0; BLOCK];
    let mut answers = Vec::new();
    let both = [due(0, Command::Read, COLD, 1), due(1, Command::Read, 0, 1)];
    client
        .exchange_within(&both, &mut memory, &mut answers, PATIENCE)
        .expect("the hot one is answered");
    run.server.stop();
    run.thaw();
    client.exchange_within(&[], &mut memory, &mut answers, PATIENCE).expect("the cold one is, too");
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|answer| answer.error == ErrorCode::NONE));
    run.end();
}

/// The kernel's client makes an I/O error of every error that it is told, also of "shutting down", and the filesystem above stops. What
/// got no answer it asks for again, over its next connection.
#[test]
fn what_comes_after_the_stop_gets_no_error() {
    let run = Run::new(false);
    let mut client = run.connect();
    let mut memory = vec![0; BLOCK];
    let mut answers = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run.disk.slow_writes_have_begun(1);
            run.server.stop();
            run.disk.let_a_slow_write_go();
        });
        let both = [due(0, Command::Write, SLOW, 1), due(1, Command::Read, 0, 1)];
        client
            .exchange_within(&both, &mut memory, &mut answers, PATIENCE)
            .expect("the write had begun");
    });
    let mut goes_on = || client.exchange_within(&[], &mut memory, &mut answers, PATIENCE);
    assert!((0..3).any(|_| goes_on().is_err()), "it is not closed");
    let answered: Vec<_> = answers.iter().map(|answer| answer.error).collect();
    assert_eq!(answered, [ErrorCode::NONE]);
    run.end();
}

#[test]
fn one_connection_is_served_without_a_door() {
    let run = Run::new(false);
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let server = Arc::clone(&run.server);
    let thread = std::thread::spawn(move || {
        let caller = Caller { name: "pair".into(), address: None };
        server.run_one(Stream::connected(theirs.into(), "pair".into()), caller)
    });
    let wish = Wish { export: "strange".into(), tls: false, structured_replies: false };
    let stream = Stream::connected(ours.into(), "pair".into());
    let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
    let mut client = Client::new(stream, &offer);
    let mut memory = vec![0; BLOCK];
    let error = error_of(&mut client, due(0, Command::Read, 0, 1), &mut memory);
    assert_eq!((error, memory[0]), (ErrorCode::NONE, 3));
    client.disconnect();
    assert!(thread.join().expect("no panic").is_ok());
    run.end();
}

#[test]
fn large_reads_are_right_wherever_they_begin_and_a_file_that_shrank_is_an_error() {
    let bytes: Vec<u8> = (0..4 << 20).map(|at: usize| (at * 7 % 251) as u8).collect();
    for place in [std::env::temp_dir(), "/dev/shm".into()] {
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let path = directory.path().join("image");
        std::fs::write(&path, &bytes).expect("an image");
        let server = common::server_of_file(&path);
        for structured_replies in [false, true] {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            let serves = Arc::clone(&server);
            let thread = std::thread::spawn(move || {
                let caller = Caller { name: "pair".into(), address: None };
                serves.run_one(Stream::connected(theirs.into(), "pair".into()), caller)
            });
            let wish = Wish { export: "file".into(), tls: false, structured_replies };
            let stream = Stream::connected(ours.into(), "pair".into());
            let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
            let mut client = Client::new(stream, &offer);
            let ranges = [
                (0, 64 << 10),
                (1, 64 << 10),
                (4095, 1 << 20),
                (77, 5),
                (0, 1 << 20),
                (123, 300_001),
                (77, (3 << 20) + 5),
                (4096, 2 << 20),
                (0, 1280 << 10),
                (4096, 4096),
            ];
            let mut memory = vec![0; ranges.iter().map(|(_, length)| length).sum()];
            let mut all = Vec::new();
            let mut memory_at = 0;
            for (slot, (offset, length)) in ranges.into_iter().enumerate() {
                all.push(Due {
                    offset,
                    length: length as u32,
                    memory_at,
                    ..due(slot, Command::Read, 0, 1)
                });
                memory_at += length;
            }
            let answers = ask(&mut client, &all, &mut memory);
            assert!(answers.iter().all(|answer| answer.error == ErrorCode::NONE));
            for due in &all {
                let (at, length) = (due.offset as usize, due.length as usize);
                let got = &memory[due.memory_at..due.memory_at + length];
                assert!(got == &bytes[at..at + length], "{length} bytes at {at}");
            }
            if structured_replies {
                let file = std::fs::OpenOptions::new().write(true).open(&path);
                file.expect("it is there").set_len(2 << 20).expect("it shrinks");
                let cut = due(0, Command::Read, (2 << 20) / BLOCK - 1, 64);
                assert_eq!(error_of(&mut client, cut, &mut memory), ErrorCode::IO);
                let whole = due(0, Command::Read, 3, 64);
                assert_eq!(error_of(&mut client, whole, &mut memory), ErrorCode::NONE);
                assert!(memory[..64 * BLOCK] == bytes[3 * BLOCK..67 * BLOCK]);
            }
            client.disconnect();
            assert!(thread.join().expect("no panic").is_ok());
        }
    }
}
