//! Sends a server in the same program a fixed stream of requests, for counting instructions: `BENCHMARKS.md` says how.
//!
//! Usage: nbd_stream IMAGE read|write DEPTH ROUNDS

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use rubus_host::block::image::Image;
use rubus_host::net::Stream;
use rubus_host::net::listening::Caller;
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::file_disk::FileDisk;
use rubus_nbd::server::listener::{Server, Settings};
use rubus_nbd::wire::{
    ClientFlags, Command, CommandFlags, InfoRequest, OptionRequest, Request, SimpleReply,
};

const BLOCK: usize = 4096;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [image, command, depth, rounds] = &arguments[..] else {
        eprintln!("see the head of examples/nbd_stream.rs");
        std::process::exit(2);
    };
    let command = if command == "write" { Command::Write } else { Command::Read };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let (depth, rounds) = (number(depth), number(rounds));
    let image = Image::open(Path::new(image), true).expect("an image");
    let blocks = image.size_bytes() / BLOCK as u64;
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let thread = std::thread::spawn(move || serve(image, theirs));
    ask(ours, command, depth, rounds, blocks);
    thread.join().expect("no panic");
}

fn serve(image: Image, socket: UnixStream) {
    let exports = ExportTable::new(vec![Offered {
        name: "disk".into(),
        words: String::new(),
        source: Box::new(OneDisk {
            disk: Arc::new(FileDisk::new(Arc::new(image))),
            identity: None,
            sync: false,
        }),
    }]);
    let server = Server::new(Arc::new(exports), Settings::default(), |_| {}).expect("a server");
    let caller = Caller { name: "stream".into(), address: None };
    let stream = Stream::connected(socket.into(), "stream".into());
    server.run_one(stream, caller).expect("they agree");
}

/// All requests of a round at once, then all answers to them, so that nothing depends on the time.
fn ask(mut socket: UnixStream, command: Command, depth: u64, rounds: u64, blocks: u64) {
    let mut out = Vec::new();
    ClientFlags::FIXED_NEWSTYLE.with(ClientFlags::NO_ZEROES).encode(&mut out);
    OptionRequest::Go(InfoRequest { export: "disk".into(), wanted: Vec::new() }).encode(&mut out);
    socket.write_all(&out).expect("the server listens");
    // Greeting, the reply about the export, the assent.
    socket.read_exact(&mut [0; 18 + 20 + 12 + 20]).expect("they agree");
    let (sent, received) = match command {
        Command::Write => (BLOCK, 0),
        _ => (0, BLOCK),
    };
    let mut answers = vec![0; (SimpleReply::BYTES + received) * depth as usize];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..rounds {
        out.clear();
        for cookie in 0..depth {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (state >> 33) % blocks * BLOCK as u64;
            let (flags, length) = (CommandFlags::NONE, BLOCK as u32);
            let request = Request { flags, command, cookie, offset, length };
            out.extend_from_slice(&request.to_bytes());
            out.resize(out.len() + sent, 0x5a);
        }
        socket.write_all(&out).expect("the server takes them");
        socket.read_exact(&mut answers).expect("the server answers");
    }
}
