//! Holes of an image travel as holes: what is sent is counted.

mod common;

use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_host::net::listening::Caller;
use rubus_nbd::client::{Client, Due, Wish, agree};
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode};

const PATIENCE: Duration = Duration::from_secs(20);
const SIZE: usize = 64 << 20;
const DATA: usize = 1 << 20;

/// Counts what comes.
#[derive(Debug)]
struct Counting(Stream, Arc<AtomicUsize>);

impl Transport for Counting {
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Stream::send(&self.0, parts)
    }

    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], wait: bool) -> io::Result<usize> {
        let got = Stream::receive(&self.0, parts, wait)?;
        self.1.fetch_add(got, Ordering::Relaxed);
        Ok(got)
    }

    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> io::Result<bool> {
        Stream::wait(&self.0, or_room, most)
    }
}

/// Reads all of an image with requests of this size; gives its bytes, and how many came.
fn read_all(path: &std::path::Path, request: usize, structured: bool) -> (Vec<u8>, usize) {
    let server = common::server_of_file(path);
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let thread = std::thread::spawn(move || {
        let caller = Caller { name: "pair".into(), address: None };
        server.run_one(Stream::connected(theirs.into(), "pair".into()), caller)
    });
    let wish = Wish { export: "file".into(), tls: false, structured_replies: structured };
    let counted = Arc::new(AtomicUsize::new(0));
    let stream = Stream::connected(ours.into(), "pair".into());
    let transport = Counting(stream, Arc::clone(&counted));
    let (transport, offer) = agree(transport, wish, PATIENCE, Ok).expect("they agree");
    let mut client = Client::new(transport, &offer);
    counted.store(0, Ordering::Relaxed);
    // A client must not rely on what its memory had.
    let mut memory = vec![9; SIZE];
    for at in (0..SIZE).step_by(request) {
        let due = Due {
            slot: 0,
            command: Command::Read,
            flags: CommandFlags::NONE,
            offset: at as u64,
            length: request as u32,
            memory_at: at,
        };
        let mut answers = Vec::new();
        client
            .exchange_within(&[due], &mut memory, &mut answers, PATIENCE)
            .expect("the server goes on");
        assert_eq!(answers[0].error, ErrorCode::NONE);
    }
    client.disconnect();
    assert!(thread.join().expect("no panic").is_ok());
    (memory, counted.load(Ordering::Relaxed))
}

#[test]
fn a_sparse_image_takes_as_many_bytes_on_the_wire_as_it_has_data() {
    for place in [std::env::temp_dir(), "/dev/shm".into()] {
        let directory = tempfile::tempdir_in(place).expect("a directory");
        let path = directory.path().join("image");
        let file = std::fs::File::create(&path).expect("an image");
        file.set_len(SIZE as u64).expect("its size");
        let data = vec![7; DATA];
        // In the middle of a request, too.
        for at in [0, (20 << 20) + (300 << 10), SIZE - DATA] {
            file.write_all_at(&data, at as u64).expect("data");
        }
        let image = std::fs::read(&path).expect("an image");
        for request in [256 << 10, 1 << 20, 2 << 20, 32 << 20] {
            let (bytes, on_wire) = read_all(&path, request, true);
            assert!(bytes == image, "{request}");
            let most = match request {
                // Data at both ends of a request have a hole between them that is sent.
                large if large > 2 << 20 => 60 << 20,
                _ => 6 << 20,
            };
            assert!(on_wire < most, "{on_wire} with {request}");
        }
        let (bytes, on_wire) = read_all(&path, 1 << 20, false);
        assert!(bytes == image);
        assert!(on_wire > SIZE, "a client that cannot be told gets zeros");
    }
}
