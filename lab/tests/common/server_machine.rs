//! A machine that serves an image with `rubus serve` and whose power can be cut: what it had not
//! made durable is gone.
//!
//! The server is the product's, on this machine. Its image is on an ext4 of its own, on a loop
//! device. A power cut copies what the kernel had written to that device by then: the rest was in
//! the page cache, and the next server gets the copy. The machine's boot id and its `/dev/shm` are
//! a file and a directory of this test.

use std::fs::{File, FileTimes};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rubus_lab::devices::{Listening, LoopDevice, Serving, free_port, mark, programs};
use rustix::process::Signal;
use tempfile::TempDir;

use super::program;

const DISK_BYTES: u64 = 160 << 20;
pub const IMAGE_BYTES: u64 = 64 << 20;

/// The machine. Its server is killed and everything of it gone when this is dropped.
pub struct ServerMachine {
    serving: Serving,
    disk: LoopDevice,
    place: TempDir,
    boots: u32,
    port: u16,
}

impl ServerMachine {
    /// One that serves an empty image.
    pub fn new(is_sync: bool) -> ServerMachine {
        let place = mark::directory().unwrap();
        for name in ["shm", "disk"] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        boot(place.path(), 1);
        let disk = LoopDevice::new(DISK_BYTES).unwrap();
        programs::run("mkfs.ext4", &["-q", "-F", &node(&disk)]).unwrap();
        mount(&disk, place.path());
        let image = File::create(place.path().join("disk/image")).unwrap();
        image.set_len(IMAGE_BYTES).unwrap();
        image.sync_all().unwrap();
        // An image that a process has open for writing is not served.
        drop(image);
        let port = free_port("127.0.0.1").unwrap();
        ServerMachine { serving: serve(place.path(), port, is_sync), disk, place, boots: 1, port }
    }

    /// The port of its server on this machine's loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The image that it serves.
    pub fn image(&self) -> PathBuf {
        self.place.path().join("disk/image")
    }

    /// Serves it in the same or in the other way, from now on.
    pub fn serve_anew(&mut self, is_sync: bool) {
        if self.serving.is_alive() {
            assert!(self.serving.end().unwrap().success());
        }
        self.serving = serve(self.place.path(), self.port, is_sync);
    }

    pub fn kill(&mut self) {
        self.serving.kill();
    }

    pub fn end(&mut self) {
        let status = self.serving.end().unwrap();
        assert!(status.success(), "{status}: {}", self.serving.said());
    }

    pub fn come_back(&mut self) {
        self.serving.come_back().unwrap();
    }

    pub fn freeze_for(&self, time: Duration) {
        self.serving.signal(Signal::STOP).unwrap();
        std::thread::sleep(time);
        self.serving.signal(Signal::CONT).unwrap();
    }

    /// Kills the server and cuts the power of its machine.
    pub fn cut_power(&mut self) {
        self.kill();
        let left = LoopDevice::new(DISK_BYTES).unwrap();
        copy_still(&self.disk, left.file().unwrap());
        unmount(self.place.path());
        // A program that looked at the new device while it was empty must not have left that in the page cache.
        programs::run("blockdev", &["--flushbufs", &node(&left)]).unwrap();
        mount(&left, self.place.path());
        self.disk = left;
        self.boots += 1;
        boot(self.place.path(), self.boots);
        for kept in std::fs::read_dir(self.place.path().join("shm")).unwrap() {
            std::fs::remove_file(kept.unwrap().path()).unwrap();
        }
    }

    /// Puts older bytes back behind the server's back, from that offset on, as no machine does: it
    /// has promised the newer ones, and nothing tells that they are gone.
    pub fn forget(&self, older: &[u8], at: u64) {
        let file = File::options().write(true).open(self.image()).unwrap();
        let dated = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(&older[at as usize..], at).unwrap();
        let times = FileTimes::new().set_modified(dated);
        file.set_times(times).unwrap();
    }

    /// All bytes of the image, as the next server will find them.
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.image()).unwrap()
    }

    /// Copies other bytes into the image.
    pub fn overwrite(&self, bytes: &[u8]) {
        std::fs::write(self.image(), bytes).unwrap();
    }

    /// Gives the image's name to another file with these bytes.
    pub fn replace(&self, bytes: &[u8]) {
        let copy = self.place.path().join("disk/copy");
        std::fs::write(&copy, bytes).unwrap();
        std::fs::rename(&copy, self.image()).unwrap();
    }
}

impl Drop for ServerMachine {
    fn drop(&mut self) {
        self.kill();
        unmount(self.place.path());
    }
}

fn serve(place: &Path, port: u16, is_sync: bool) -> Serving {
    let script = "mount --bind \"$1/boot\" /proc/sys/kernel/random/boot_id && \
                  mount --bind \"$1/shm\" /dev/shm && \
                  exec \"$0\" serve \"$1/disk/image\" --quiet --listen \"$2\" $3";
    let mut command: Command = programs::command("unshare");
    command.args(["--mount", "sh", "-c", script]);
    command.arg(program::binary()).arg(place);
    command.arg(format!("127.0.0.1:{port}"));
    command.arg(if is_sync { "--sync" } else { "" });
    Serving::start(command, Listening::Port("127.0.0.1".into(), port)).unwrap()
}

fn boot(place: &Path, number: u32) {
    // In place: the file is bound to another one's place.
    let mut file = File::create(place.join("boot")).unwrap();
    writeln!(file, "00000000-0000-4000-8000-{number:012x}").unwrap();
}

fn node(disk: &LoopDevice) -> String {
    disk.path().display().to_string()
}

fn mount(disk: &LoopDevice, place: &Path) {
    let at = place.join("disk").display().to_string();
    programs::run("mount", &["-t", "ext4", &node(disk), &at]).unwrap();
}

fn unmount(place: &Path) {
    let at = place.join("disk").display().to_string();
    if let Err(error) = programs::run("umount", &[&at]) {
        eprintln!("{at} is unmounted later: {error:#}");
        let _ = programs::run("umount", &["--lazy", &at]);
    }
}

/// Copies a device's file at a moment at which nothing is written to it.
fn copy_still(disk: &LoopDevice, to: &Path) {
    let from = File::open(disk.file().unwrap()).unwrap();
    let to = File::options().write(true).open(to).unwrap();
    let mut piece = vec![0; 1 << 20];
    loop {
        let before = written(disk);
        for at in (0..DISK_BYTES).step_by(piece.len()) {
            from.read_exact_at(&mut piece, at).unwrap();
            to.write_all_at(&piece, at).unwrap();
        }
        if written(disk) == before && before.1 == 0 {
            return;
        }
    }
}

/// How many writes a device has done, and how many requests it is doing.
fn written(disk: &LoopDevice) -> (u64, u64) {
    let name = disk.path().file_name().unwrap().to_string_lossy();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let fields: Vec<u64> = stat.split_whitespace().map(|field| field.parse().unwrap()).collect();
    (fields[4], fields[8])
}
