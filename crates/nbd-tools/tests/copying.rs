//! Copies into files: how often they wait for the disk, and that each end of an interrupted one is a beginning of the next.

#[path = "common/no_devices.rs"]
mod no_devices;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rubus_host::files::syncs;
use rubus_host::net::listening::Listener;
use rubus_nbd::identity::Uuid;
use rubus_nbd::server::disk::{Abilities, Disk, Extent, Zeroing};
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::listener::{Server, Settings};
use rubus_nbd_tools::copy::journal;
use rubus_nbd_tools::copying::destination::{self, CopyRequest};
use rubus_nbd_tools::copying::run::DiskCopying;
use rubus_nbd_tools::copying::source;
use rubus_nbd_tools::disk_copy::DiskCopy;

use no_devices::OnlyFiles;

const SECTION: usize = 4 << 20;
/// Four sections, the last of which is shorter.
const SIZE: usize = 3 * SECTION + 1_235_567;

/// Bytes that are nowhere zeros, other ones for each seed.
fn noise(seed: u32) -> Vec<u8> {
    let byte = |at: usize| (at as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13;
    (0..SIZE).map(|at| byte(at) as u8 | 1).collect()
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

/// A copy that ran to its end, and how often this thread waited for a disk meanwhile.
fn copied(from: &Path, to: &Path, request: &CopyRequest) -> (DiskCopy, u64) {
    let before = syncs::of_this_thread();
    let source = source::of_path(from, &OnlyFiles).expect("a source");
    let target = destination::of_path(to, source.end.size_bytes(), request, &OnlyFiles);
    let copying = DiskCopying::begin(source, target.expect("a destination"), request);
    let copying = copying.expect("they fit");
    let outcome = copying.run(&AtomicBool::new(false), &|_| {});
    let done = copying.end(outcome).expect("it ends well").expect("it is whole");
    (done, syncs::of_this_thread() - before)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[test]
fn a_short_copy_waits_for_its_bytes_and_for_its_name_and_for_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let (from, to) = (directory.path().join("from.img"), directory.path().join("to.img"));
    std::fs::write(&from, noise(1)).expect("room");
    for verify in [true, false] {
        let request = CopyRequest { verify, overwrite: true, ..request() };
        let (done, syncs) = copied(&from, &to, &request);
        assert_eq!(syncs, 2, "one for the data, one for the directory");
        assert!(done.is_durable && done.is_good());
        assert!(std::fs::read(&to).expect("the copy") == noise(1));
        for ending in [".partial", ".partial.journal"] {
            assert!(!beside(&to, ending).exists(), "{ending}");
        }
    }
}

/// A disk whose last section is not read until it is let go.
struct Gated {
    bytes: Vec<u8>,
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gated {
    fn new() -> Arc<Gated> {
        let is_open = Mutex::new(false);
        Arc::new(Gated { bytes: noise(2), is_open, changed: Condvar::new() })
    }

    fn open(&self) {
        *self.is_open.lock().expect("no panic") = true;
        self.changed.notify_all();
    }
}

impl Disk for Gated {
    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn abilities(&self) -> Abilities {
        Abilities { is_read_only: true, ..Abilities::default() }
    }

    fn read_ready(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let offset = offset as usize;
        if offset >= 3 * SECTION {
            let is_open = self.is_open.lock().expect("no panic");
            drop(self.changed.wait_while(is_open, |is_open| !*is_open).expect("no panic"));
        }
        into.copy_from_slice(&self.bytes[offset..offset + into.len()]);
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn trim(&self, _: u64, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn zero(&self, _: u64, _: u64, _: Zeroing) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
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

/// A server of that disk; gives its address.
fn serve(disk: &Arc<Gated>, directory: &Path) -> (Arc<Server>, String) {
    let socket = directory.join("socket");
    let listener = Listener::unix(&socket).expect("a socket");
    let disk = Arc::clone(disk) as Arc<dyn Disk>;
    let exports = ExportTable::new(vec![Offered {
        name: "disk".into(),
        words: String::new(),
        source: Box::new(OneDisk { disk, identity: None, sync: false }),
    }]);
    let server = Server::new(Arc::new(exports), Settings::default(), |_| {}).expect("a server");
    let runs = Arc::clone(&server);
    std::thread::spawn(move || runs.run(vec![listener]));
    (server, format!("nbd+unix:///disk?socket={}", socket.display()))
}

/// Has a copy interrupted when all but the last section is done; gives how often it waited for a disk.
fn interrupted(disk: &Gated, address: &str, to: &Path) -> u64 {
    let before = syncs::of_this_thread();
    let request = request();
    let source = source::of_export(address, request.patience).expect("a source");
    let target = destination::of_path(to, SIZE as u64, &request, &OnlyFiles);
    let target = target.expect("a destination");
    let copying = DiskCopying::begin(source, target, &request).expect("they fit");
    let cancel = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let (cancel, copying) = (&cancel, &copying);
        copying.run(cancel, &move |progress| {
            if progress.done_bytes >= 3 * SECTION as u64 && !cancel.swap(true, Ordering::SeqCst) {
                // After the copy has looked, so that it begins nothing more.
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(500));
                    disk.open();
                });
            }
        })
    });
    assert!(copying.end(outcome).expect("it says so").is_none(), "it was interrupted");
    syncs::of_this_thread() - before
}

#[test]
fn a_copy_goes_on_whatever_of_its_journal_is_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let (disk, to) = (Gated::new(), directory.path().join("copy.img"));
    let (server, address) = serve(&disk, directory.path());
    let (partial, kept) = (beside(&to, ".partial"), beside(&to, ".partial.journal"));
    assert_eq!(interrupted(&disk, &address, &to), 3, "data, journal, directory");
    let whole = std::fs::read(&kept).expect("a journal");
    let sections = journal::parse(&whole).expect("a journal").done.len();
    assert_eq!(sections, 3);

    // Within lines and at their ends, the last cuts first: with part of a head alone the file is made again.
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let cuts = ends.flat_map(|end| [end - 20, end - 1, end]);
    for cut in cuts.collect::<Vec<_>>().into_iter().rev().chain([1, 0]) {
        let left = &whole[..cut];
        std::fs::write(&kept, left).expect("room");
        let done = journal::parse(left).map(|journal| journal.done).unwrap_or_default();
        // What is not in the journal may be anything.
        let mut bytes = noise(2);
        for number in (0..4).filter(|number| done.iter().all(|(section, _)| section != number)) {
            let end = SIZE.min((number + 1) * SECTION);
            bytes[number * SECTION..end].fill(0xee);
        }
        std::fs::write(&partial, &bytes).expect("room");

        let source = source::of_export(&address, request().patience).expect("a source");
        let target = destination::of_path(&to, SIZE as u64, &request(), &OnlyFiles);
        let copying = DiskCopying::begin(source, target.expect("a destination"), &request());
        let copying = copying.expect("it goes on");
        let outcome = copying.run(&AtomicBool::new(false), &|_| {});
        let copy = copying.end(outcome).expect("it ends well").expect("it is whole");
        assert_eq!(copy.resumed_bytes, (done.len() * SECTION) as u64, "cut at {cut}");
        assert!(copy.is_good());
        assert!(std::fs::read(&to).expect("the copy") == noise(2), "cut at {cut}");
        assert!(!partial.exists() && !kept.exists());
        std::fs::rename(&to, &partial).expect("the same file under its old name");
    }
    server.stop();
}

#[test]
fn records_about_a_file_that_is_gone_are_forgotten_before_it_is_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (disk, to) = (Gated::new(), directory.path().join("copy.img"));
    let (server, address) = serve(&disk, directory.path());
    interrupted(&disk, &address, &to);
    server.stop();
    let kept = beside(&to, ".partial.journal");
    assert!(std::fs::metadata(&kept).expect("a journal").len() > 0);
    std::fs::remove_file(beside(&to, ".partial")).expect("it is there");
    let opened = destination::of_path(&to, SIZE as u64, &request(), &OnlyFiles);
    assert!(opened.is_ok_and(|target| target.is_zero));
    assert_eq!(std::fs::read(&kept).expect("it is there"), b"");
}
