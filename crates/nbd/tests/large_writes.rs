//! Large writes to a server whose disk is a file, however their bytes come.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::listening::Caller;
use rubus_nbd::server::listener::Server;

const PATIENCE: Duration = Duration::from_secs(20);
const SIZE: usize = 16 << 20;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FUA: u16 = 1;

/// A client's end of a connection.
trait Socket: Read + Write {}
impl Socket for UnixStream {}
impl Socket for TcpStream {}

struct Run {
    server: Arc<Server>,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Run {
    /// An image of threes.
    fn new(place: &Path) -> Run {
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let path = directory.path().join("image");
        std::fs::write(&path, vec![3; SIZE]).expect("an image");
        Run { server: common::server_of_file(&path), path, _directory: directory }
    }

    /// A connection that has agreed in the old way, and the thread that serves it.
    fn connect(&self, tcp: bool) -> (Box<dyn Socket>, JoinHandle<()>) {
        let (mut ours, theirs): (Box<dyn Socket>, OwnedFd) = if tcp {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
            let address = listener.local_addr().expect("an address");
            let ours = TcpStream::connect(address).expect("it listens");
            ours.set_nodelay(true).expect("a socket");
            ours.set_read_timeout(Some(PATIENCE)).expect("a socket");
            let (theirs, _) = listener.accept().expect("a connection");
            (Box::new(ours), theirs.into())
        } else {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            ours.set_read_timeout(Some(PATIENCE)).expect("a socket");
            (Box::new(ours), theirs.into())
        };
        let server = Arc::clone(&self.server);
        let thread = std::thread::spawn(move || {
            let caller = Caller { name: "client".into(), address: None };
            // How a client goes is its own affair.
            let _ = server.run_one(Stream::connected(theirs, "client".into()), caller);
        });
        let mut greeting = [0; 18];
        ours.read_exact(&mut greeting).expect("a greeting");
        // Client flags, then the name of the default export.
        ours.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").expect("an option");
        ours.read_exact(&mut [0; 10]).expect("an answer");
        (ours, thread)
    }
}

fn request(flags: u16, command: u16, cookie: u64, offset: usize, length: usize) -> Vec<u8> {
    let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
    request.extend(flags.to_be_bytes());
    request.extend(command.to_be_bytes());
    request.extend(cookie.to_be_bytes());
    request.extend((offset as u64).to_be_bytes());
    request.extend((length as u32).to_be_bytes());
    request
}

fn write(flags: u16, cookie: u64, offset: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = request(flags, WRITE, cookie, offset, payload.len());
    bytes.extend(payload);
    bytes
}

/// The error and the cookie of the next answer.
fn answer(socket: &mut dyn Socket) -> (u32, u64) {
    let mut reply = [0; 16];
    socket.read_exact(&mut reply).expect("an answer");
    let error = u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"));
    let cookie = u64::from_be_bytes(reply[8..].try_into().expect("eight bytes"));
    (error, cookie)
}

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    let seed = seed * 31 + 7;
    (0..bytes).map(|at| ((at + seed) * seed % 251) as u8).collect()
}

#[test]
fn they_are_right_wherever_they_go_and_in_whatever_pieces_they_come() {
    // None overlaps another: those that are durable may be done later than the next.
    let ranges = [
        (1, 64 << 10),
        (1 << 20, 64 << 10),
        ((3 << 20) - 1, 1 << 20),
        (77_777, 5),
        (2 << 20, 256 << 10),
        (100_123, 300_001),
        (5_000_000, 3 << 20),
        (4096 * 19, 777),
        (SIZE - (256 << 10), (256 << 10) - 1),
        (9 << 20, 100_000),
        (10_000_001, 2_000_003),
        (SIZE - 1, 1),
    ];
    let pieces = [
        &[usize::MAX][..],
        &[1, 27, 28, 29, 65_535, 100_000],
        &[28, 256 << 10],
        &[4096, 3, 1_000_000],
    ];
    for place in [std::env::temp_dir(), "/dev/shm".into()] {
        for tcp in [false, true] {
            for sizes in pieces {
                let run = Run::new(&place);
                let (mut socket, thread) = run.connect(tcp);
                let mut wanted = vec![3; SIZE];
                let mut sent = Vec::new();
                for (cookie, (offset, length)) in ranges.into_iter().enumerate() {
                    let payload = pattern(cookie, length);
                    wanted[offset..offset + length].copy_from_slice(&payload);
                    let flags = if cookie % 3 == 2 { FUA } else { 0 };
                    sent.extend(write(flags, cookie as u64, offset, &payload));
                }
                let mut at = 0;
                for &size in sizes.iter().cycle() {
                    let end = at + size.min(sent.len() - at);
                    socket.write_all(&sent[at..end]).expect("it is taken");
                    at = end;
                    if at == sent.len() {
                        break;
                    }
                    if size < 100 {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
                // Those that are durable are answered when they are, which may be later than others.
                let mut cookies: Vec<u64> = (0..ranges.len())
                    .map(|_| {
                        let (error, cookie) = answer(&mut *socket);
                        assert_eq!(error, 0, "write {cookie}");
                        cookie
                    })
                    .collect();
                cookies.sort_unstable();
                assert!(cookies.into_iter().eq(0..ranges.len() as u64));
                // They are in step still, and a client reads what it wrote.
                let (offset, length) = (123, 2 << 20);
                let read = request(0, READ, 99, offset, length);
                socket.write_all(&read).expect("it is taken");
                assert_eq!(answer(&mut *socket), (0, 99));
                let mut got = vec![0; length];
                socket.read_exact(&mut got).expect("what was read");
                assert!(got == wanted[offset..offset + length]);
                drop(socket);
                thread.join().expect("no panic");
                let found = std::fs::read(&run.path).expect("the image");
                assert!(found == wanted, "{place:?}, TCP {tcp}, {sizes:?}");
            }
        }
    }
}

#[test]
fn they_are_answered_though_the_next_is_not_whole() {
    const BYTES: usize = 256 << 10;
    for tcp in [false, true] {
        let run = Run::new(&std::env::temp_dir());
        let (mut socket, thread) = run.connect(tcp);
        let sent: Vec<u8> = (0..4)
            .flat_map(|cookie: usize| {
                write(0, cookie as u64, cookie * BYTES, &pattern(cookie, BYTES))
            })
            .collect();
        // The header of the third, and then a part of its payload.
        let third = 2 * (28 + BYTES);
        socket.write_all(&sent[..third + 28]).expect("two writes");
        assert_eq!(answer(&mut *socket), (0, 0));
        assert_eq!(answer(&mut *socket), (0, 1));
        let part = third + BYTES / 2;
        socket.write_all(&sent[third + 28..part]).expect("a part");
        std::thread::sleep(Duration::from_millis(20));
        socket.write_all(&sent[part..]).expect("the rest");
        assert_eq!(answer(&mut *socket), (0, 2));
        assert_eq!(answer(&mut *socket), (0, 3));
        drop(socket);
        thread.join().expect("no panic");
    }
}

#[test]
fn who_goes_in_the_middle_of_one_changes_nothing_outside_of_it() {
    const BYTES: usize = 512 << 10;
    const AT: usize = 1 << 20;
    for tcp in [false, true] {
        let run = Run::new(&std::env::temp_dir());
        for came in [0, 1, 70_000, BYTES - 1] {
            let (mut socket, thread) = run.connect(tcp);
            let first = write(0, 1, 0, &[7; BYTES]);
            let second = write(0, 2, AT, &[9; BYTES]);
            socket.write_all(&first).expect("it is taken");
            socket.write_all(&second[..28 + came]).expect("a part is");
            assert_eq!(answer(&mut *socket), (0, 1));
            drop(socket);
            thread.join().expect("no panic");
            let found = std::fs::read(&run.path).expect("the image");
            assert!(found[..BYTES].iter().all(|&byte| byte == 7));
            assert!(found[BYTES..AT].iter().all(|&byte| byte == 3));
            let inside = &found[AT..AT + came];
            assert!(inside.iter().all(|&byte| byte == 3 || byte == 9));
            assert!(found[AT + came..].iter().all(|&byte| byte == 3));
        }
        let (mut socket, thread) = run.connect(tcp);
        let whole = write(FUA, 3, AT, &[5; BYTES]);
        socket.write_all(&whole).expect("it is taken");
        assert_eq!(answer(&mut *socket), (0, 3));
        drop(socket);
        thread.join().expect("no panic");
    }
}

#[test]
fn one_that_does_not_fit_changes_nothing_and_the_next_does() {
    const BYTES: usize = 256 << 10;
    const NO_SPACE: u32 = 28;
    let run = Run::new(&std::env::temp_dir());
    let (mut socket, thread) = run.connect(false);
    let beyond = write(0, 1, SIZE - BYTES + 1, &[7; BYTES]);
    let fits = write(0, 2, SIZE - BYTES, &[8; BYTES]);
    for _ in 0..3 {
        socket.write_all(&beyond).expect("it is taken");
        socket.write_all(&fits).expect("it is taken");
        assert_eq!(answer(&mut *socket), (NO_SPACE, 1));
        assert_eq!(answer(&mut *socket), (0, 2));
    }
    drop(socket);
    thread.join().expect("no panic");
    let found = std::fs::read(&run.path).expect("the image");
    assert_eq!(found.len(), SIZE);
    assert!(found[..SIZE - BYTES].iter().all(|&byte| byte == 3));
    assert!(found[SIZE - BYTES..].iter().all(|&byte| byte == 8));
}
