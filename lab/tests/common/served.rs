//! A server of ours on a Unix socket, and a client of ours for it.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rubus_host::net::Stream;
use rubus_lab::devices::{Listening, Serving, programs};
use rubus_nbd::client::{Client, Due, Wish, agree};
use rubus_nbd::wire::{Command as Order, CommandFlags, ErrorCode};
use tempfile::TempDir;

use super::program;

/// For what takes milliseconds on a free machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Size of an image that is made, in bytes.
pub const SIZE: usize = 24 << 20;

/// A server of ours on a Unix socket, killed when this is dropped.
pub struct Served {
    serving: Serving,
    /// Where the socket and the image are.
    pub directory: TempDir,
}

impl Served {
    /// Serves an image of that size beside the socket, or one that is there already.
    pub fn new(directory: TempDir, options: &[&str]) -> Served {
        Served::under(&[], directory, options)
    }

    /// The same, started by another program.
    pub fn under(launcher: &[&str], directory: TempDir, options: &[&str]) -> Served {
        let image = directory.path().join("disk.img");
        let mut command = match launcher {
            [] => Command::new(program::binary()),
            [first, rest @ ..] => {
                let mut command = programs::command(first);
                command.args(rest).arg(program::binary());
                command
            }
        };
        command.arg("serve").arg(&image);
        if !image.exists() && !options.contains(&"--size") {
            command.args(["--size", &SIZE.to_string()]);
        }
        let socket = directory.path().join("socket");
        command.arg("--unix").arg(&socket).args(options);
        let serving = Serving::start(command, Listening::Socket(socket)).expect("rubus serves");
        Served { serving, directory }
    }

    /// The address as `rubus` takes it.
    pub fn address(&self) -> String {
        self.serving.address()
    }

    /// The image that it serves.
    pub fn image(&self) -> PathBuf {
        self.directory.path().join("disk.img")
    }

    /// A client of ours.
    pub fn connect(&self) -> Client<Stream> {
        connect(&self.directory.path().join("socket"))
    }

    /// Asks it to end, and gives its exit status with what it said.
    pub fn end(mut self) -> (i32, String, TempDir) {
        let status = self.serving.end().expect("it runs and ends");
        (status.code().unwrap_or(-1), self.serving.said(), self.directory)
    }

    /// Ends it without a warning.
    pub fn kill(mut self) -> TempDir {
        self.serving.kill();
        self.directory
    }
}

/// A client of ours on a Unix socket.
pub fn connect(socket: &Path) -> Client<Stream> {
    let stream = Stream::unix(socket).expect("it listens");
    let wish = Wish { export: String::new(), tls: false, structured_replies: true };
    let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
    Client::new(stream, &offer)
}

/// One request, answered.
pub fn ask(
    client: &mut Client<Stream>,
    command: Order,
    flags: CommandFlags,
    (offset, length): (usize, usize),
    memory: &mut [u8],
) -> ErrorCode {
    let due =
        Due { slot: 0, command, flags, offset: offset as u64, length: length as u32, memory_at: 0 };
    let mut answers = Vec::new();
    client.exchange_within(&[due], memory, &mut answers, PATIENCE).expect("the server goes on");
    answers[0].error
}

/// The SHA-256 sum of a file.
pub fn sum(path: &Path) -> String {
    let said = programs::run("sha256sum", &["-b", &path.display().to_string()]);
    let said = said.expect("sha256sum");
    said.split(' ').next().unwrap_or_default().to_string()
}

/// Random numbers, the same every time.
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end
    }

    /// `count` random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = (0..count.div_ceil(4)).map(|_| self.below(1 << 31) as u32);
        let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        bytes.truncate(count);
        bytes
    }
}

/// A directory for a server's image and socket.
pub fn directory() -> TempDir {
    TempDir::with_prefix("rubus-lab-").expect("a directory")
}

/// An image of random bytes with a hole in the middle.
pub fn image_with_a_hole(path: &Path) {
    let bytes = Random(1).bytes(SIZE / 3);
    let file = std::fs::File::create(path).expect("a file");
    file.write_all_at(&bytes, 0).expect("the beginning");
    file.write_all_at(&bytes, (SIZE / 3 * 2) as u64).expect("the end");
    file.set_len(SIZE as u64).expect("the size");
}

/// The same with an image that is all holes.
pub fn directory_with_image() -> TempDir {
    let place = directory();
    let file = std::fs::File::create(place.path().join("disk.img")).expect("a file");
    file.set_len(SIZE as u64).expect("its size");
    place
}
