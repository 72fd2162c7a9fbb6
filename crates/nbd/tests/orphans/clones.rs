//! The same of clones: all connections of a client have one disk, and those of other clients another.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rubus_host::net::listening::Caller;
use rubus_nbd::identity::Uuid;
use rubus_nbd::peer::PeerCertificate;
use rubus_nbd::server::disk::{Abilities, Disk, Extent, Zeroing};
use rubus_nbd::server::handshake::{Export, Exports, NoExport};
use rubus_nbd::server::listener::{Opened, Settings, Store};
use rubus_nbd::server::overlay::{CloneExports, Fleet, GoldenFile, Lasting};
use rubus_nbd::wire::{Command, CommandFlags};

use super::slow::{BLOCK, Run, SLOW, Slow, send_writes, write};
use super::{due, exchange, waits};

const GOLDEN: u8 = 7;

/// A disk whose writes go through a slow one first.
struct Slowed {
    inner: Arc<dyn Disk>,
    slow: Arc<Slow>,
}

impl Disk for Slowed {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn read_ready(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read_ready(offset, into)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, into)
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.slow.write(offset, from)?;
        self.inner.write(offset, from)
    }

    fn flush(&self) -> io::Result<()> {
        self.inner.flush()
    }

    fn trim(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.trim(offset, length)
    }

    fn zero(&self, offset: u64, length: u64, how: Zeroing) -> io::Result<()> {
        self.inner.zero(offset, length, how)
    }

    fn extents(&self, offset: u64, length: u64, only_one: bool) -> io::Result<Vec<Extent>> {
        self.inner.extents(offset, length, only_one)
    }

    fn prefetch(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.prefetch(offset, length)
    }

    fn admits(&self) -> io::Result<()> {
        Ok(())
    }

    fn lost_writes(&self) -> Option<Uuid> {
        None
    }
}

/// The store of clones, with slow disks.
struct SlowClones {
    clones: CloneExports,
    slow: Arc<Slow>,
    opened: Mutex<Vec<Arc<Slowed>>>,
}

impl Exports for SlowClones {
    fn list(&self) -> Vec<(String, String)> {
        self.clones.list()
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        self.clones.find(name)
    }

    fn admits(&self, _: &str, _: Option<&PeerCertificate>) -> Result<(), NoExport> {
        Ok(())
    }
}

impl Store for SlowClones {
    fn open(&self, name: &str, caller: &Caller) -> Result<Opened, String> {
        let Opened { disk, sync } = self.clones.open(name, caller)?;
        let mut opened = self.opened.lock().expect("no panic");
        // One for each disk that the store gives out, and no more.
        let known = opened
            .iter()
            .find(|known| std::ptr::addr_eq(Arc::as_ptr(&known.inner), Arc::as_ptr(&disk)));
        let slowed = match known {
            Some(known) => Arc::clone(known),
            None => {
                let slowed = Arc::new(Slowed { inner: disk, slow: Arc::clone(&self.slow) });
                opened.push(Arc::clone(&slowed));
                slowed
            }
        };
        Ok(Opened { disk: slowed, sync })
    }

    fn may_wait(&self) -> bool {
        self.clones.may_wait()
    }

    fn exports(&self) -> &dyn Exports {
        self
    }
}

fn run(directory: &Path) -> (Run, Arc<SlowClones>) {
    let golden = directory.join("golden.img");
    std::fs::write(&golden, vec![GOLDEN; 1 << 20]).expect("room");
    let golden = GoldenFile::open(&golden).expect("an image");
    let fleet = Fleet::new(&directory.join("clones"), golden, Lasting::Kept, 9).expect("a fleet");
    let slow = Arc::new(Slow::default());
    let store = Arc::new(SlowClones {
        clones: CloneExports::new("root".into(), String::new(), fleet),
        slow: Arc::clone(&slow),
        opened: Mutex::default(),
    });
    let run = Run::of(Arc::clone(&store) as Arc<dyn Store>, slow, Settings::default());
    (run, store)
}

fn first_block(store: &SlowClones, export: &str) -> Vec<u8> {
    let caller = Caller { name: "test".into(), address: None };
    let Opened { disk, .. } = store.clones.open(export, &caller).expect("a clone");
    let mut bytes = vec![0; BLOCK];
    disk.read(0, &mut bytes).expect("it is read");
    bytes
}

#[test]
fn a_write_to_a_clone_waits_for_that_of_the_clients_dead_connection_alone() {
    for flags in [CommandFlags::NONE, CommandFlags::FUA] {
        let directory = tempfile::tempdir().expect("a directory");
        let (run, store) = run(directory.path());
        let mut old = run.connect_to("root/a");
        send_writes(&mut old, 50, SLOW, flags);
        run.disk.await_waiting(1);
        drop(old);
        // Another client has a disk of its own, at the same place of the same image.
        write(&mut run.connect_to("root/b"), 3);
        let mut new = run.connect_to("root/a");
        exchange(&mut new, due(0, Command::Write, 9), 4, &Default::default());
        waits(&run, &mut new, due(0, Command::Write, 0), 2);
        run.end();
        assert_eq!(first_block(&store, "root/a"), [2; BLOCK], "{flags:?}");
        assert_eq!(first_block(&store, "root/b"), [3; BLOCK]);
        assert_eq!(first_block(&store, "root/c"), [GOLDEN; BLOCK]);
    }
}
