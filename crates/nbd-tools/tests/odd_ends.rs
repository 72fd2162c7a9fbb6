//! Copies from and to servers that name no block sizes, have odd sizes, or take few connections.

#[path = "../../nbd/tests/common/mod.rs"]
mod common;
#[path = "common/no_devices.rs"]
mod no_devices;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{Nature, Server, disk};
use rubus_nbd::wire::TransmissionFlags;
use rubus_nbd_tools::copying::destination::{self, CopyRequest, Destination};
use rubus_nbd_tools::copying::run::DiskCopying;
use rubus_nbd_tools::copying::source::{self, Source};
use rubus_nbd_tools::disk_copy::DiskCopy;

use no_devices::OnlyFiles;

/// No multiple of 512, and several sections.
const SIZE: usize = (9 << 20) + 1_235_567;

/// A server of one kind at a socket, until its directory is gone.
struct Strange {
    directory: tempfile::TempDir,
    /// The disk, as each connection has left it.
    left: Receiver<Vec<u8>>,
}

impl Strange {
    /// One that accepts a number of connections, and lets others wait.
    fn new(nature: Nature, bytes: Vec<u8>, accepts: usize) -> Strange {
        let directory = tempfile::tempdir().expect("a directory");
        let left = serve(&directory.path().join("socket"), nature, bytes, accepts);
        Strange { directory, left }
    }

    fn address(&self) -> String {
        address(&self.directory.path().join("socket"))
    }
}

fn address(socket: &Path) -> String {
    format!("nbd+unix:///?socket={}", socket.display())
}

fn serve(socket: &Path, nature: Nature, bytes: Vec<u8>, accepts: usize) -> Receiver<Vec<u8>> {
    let listener = UnixListener::bind(socket).expect("a socket");
    let (sender, left) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(accepts).flatten() {
            let server = Server::new(nature.clone(), bytes.clone());
            let sender = sender.clone();
            std::thread::spawn(move || sender.send(speak(server, stream)));
        }
        // Further connections get no greeting and are not refused either.
        std::thread::sleep(Duration::from_secs(600));
        drop(listener);
    });
    left
}

/// Serves a client until it goes; gives the disk.
fn speak(mut server: Server, mut stream: UnixStream) -> Vec<u8> {
    let mut memory = vec![0; 64 << 10];
    loop {
        if stream.write_all(&std::mem::take(&mut server.output)).is_err() || server.has_ended() {
            return server.disk;
        }
        match stream.read(&mut memory) {
            Ok(0) | Err(_) => return server.disk,
            Ok(bytes) => server.take(&memory[..bytes]),
        }
    }
}

fn request() -> CopyRequest {
    CopyRequest {
        overwrite: false,
        losses: Vec::new(),
        journal: None,
        starts_over: false,
        skip_unreadable: false,
        verify: true,
        connections: 4,
        depth: 4,
        patience: Duration::from_secs(60),
    }
}

fn from(address: &str) -> Source {
    source::of_export(address, request().patience).expect("a source")
}

fn to_file(path: &Path) -> Destination {
    destination::of_path(path, SIZE as u64, &request(), &OnlyFiles).expect("a destination")
}

fn copy(source: Source, target: Destination) -> anyhow::Result<DiskCopy> {
    let copying = DiskCopying::begin(source, target, &request()).expect("they fit");
    let outcome = copying.run(&AtomicBool::new(false), &|_| {});
    copying.end(outcome).map(|done| done.expect("nobody interrupts it"))
}

fn file_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("copy.img")
}

#[test]
fn an_odd_size_is_copied_and_read_back_where_a_server_names_no_block_sizes() {
    let bytes = disk(SIZE);
    let server = Strange::new(Nature::default(), bytes.clone(), 9);
    let path = file_in(&server.directory);
    let done = copy(from(&server.address()), to_file(&path)).expect("it is copied");
    assert!(done.is_good() && done.verify_s.is_some(), "{done:?}");
    assert!(std::fs::read(&path).expect("the copy") == bytes);
}

#[test]
fn an_odd_size_goes_on_after_an_error() {
    let bytes = disk(SIZE);
    let bad = Nature { bad_byte: Some(SIZE as u64 - 3), ..Nature::default() };
    let failing = Strange::new(bad, bytes.clone(), 9);
    let path = file_in(&failing.directory);
    let error = copy(from(&failing.address()), to_file(&path)).expect_err("a byte is bad");
    assert!(error.to_string().contains("--skip-unreadable"), "{error}");
    // The same address, whose server is now without fault.
    let socket = failing.directory.path().join("socket");
    std::fs::remove_file(&socket).expect("it is there");
    let _left = serve(&socket, Nature::default(), bytes.clone(), 9);
    let done = copy(from(&address(&socket)), to_file(&path)).expect("it is copied");
    assert_eq!(done.resumed_bytes, 8 << 20, "{done:?}");
    assert!(done.is_good());
    assert!(std::fs::read(&path).expect("the copy") == bytes);
}

#[test]
fn an_odd_size_is_copied_to_a_server_that_names_no_block_sizes() {
    let server = Strange::new(Nature::default(), vec![0xee; SIZE], 9);
    let image = server.directory.path().join("image");
    std::fs::write(&image, disk(SIZE)).expect("room");
    let source = source::of_path(&image, &OnlyFiles).expect("a source");
    let request = CopyRequest { losses: vec![server.address()], ..request() };
    let target = destination::of_export(&server.address(), &request).expect("a destination");
    let done = copy(source, target).expect("it is copied");
    assert!(done.is_good() && done.is_durable, "{done:?}");
    let left = server.left.recv_timeout(Duration::from_secs(60)).expect("its client has gone");
    assert!(left == disk(SIZE));
}

#[test]
fn a_server_that_takes_fewer_connections_than_it_promises_is_copied_over_those() {
    let bytes = disk(SIZE);
    let flags = Nature::default().flags.with(TransmissionFlags::CAN_MULTI_CONN);
    for accepts in [1, 2] {
        let nature = Nature { flags, ..Nature::default() };
        let server = Strange::new(nature, bytes.clone(), accepts);
        let path = file_in(&server.directory);
        let done = copy(from(&server.address()), to_file(&path)).expect("it is copied");
        assert!(done.is_good() && done.connections as usize <= accepts, "{done:?}");
        assert!(std::fs::read(&path).expect("the copy") == bytes);
    }
}
