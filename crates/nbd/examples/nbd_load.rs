//! Puts load on an NBD server and prints what came of it as one JSON object. It is lighter than what
//! it measures: `benches/nbd_servers.py` uses it.
//!
//! Usage: nbd_load URI read|write random|sequential BLOCK_BYTES DEPTH CONNECTIONS SECONDS [WINDOW_BYTES]

use std::time::{Duration, Instant};

use rubus_host::net::Stream;
use rubus_nbd::client::{Client, Due, Wish, agree};
use rubus_nbd::uri::{Server, Uri};
use rubus_nbd::wire::{Command, CommandFlags, ErrorCode};

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone)]
struct Load {
    uri: Uri,
    command: Command,
    random: bool,
    block: usize,
    depth: usize,
    seconds: f64,
    window: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, command, order, block, depth, connections, seconds, window @ ..] = &arguments[..]
    else {
        eprintln!("see the head of examples/nbd_load.rs");
        std::process::exit(2);
    };
    let number = |text: &String| text.parse::<f64>().expect("a number");
    let load = Load {
        uri: Uri::parse(uri).expect("an address"),
        command: match command.as_str() {
            "write" => Command::Write,
            _ => Command::Read,
        },
        random: order == "random",
        block: number(block) as usize,
        depth: number(depth) as usize,
        seconds: number(seconds),
        window: window.first().map_or(u64::MAX, |text| number(text) as u64),
    };
    let connections = number(connections) as u64;
    let begun: Vec<_> = (0..connections)
        .map(|number| {
            let load = load.clone();
            let client = connect(&load.uri);
            std::thread::spawn(move || run(&load, client, number, connections))
        })
        .collect();
    let mut times_ns = Vec::new();
    let mut rate = 0.0;
    for thread in begun {
        let (times, seconds) = thread.join().expect("no thread fails");
        rate += times.len() as f64 / seconds;
        times_ns.extend(times);
    }
    times_ns.sort_unstable();
    let at = |share: f64| {
        let last = times_ns.len().saturating_sub(1);
        let place = (times_ns.len() as f64 * share) as usize;
        times_ns.get(place.min(last)).map_or(0.0, |ns| f64::from(*ns) / 1e3)
    };
    println!(
        "{{\"requests\": {}, \"iops\": {rate:.1}, \"p50_us\": {:.1}, \"p99_us\": {:.1}}}",
        times_ns.len(),
        at(0.5),
        at(0.99)
    );
}

fn connect(uri: &Uri) -> (Client<Stream>, u64) {
    let stream = match &uri.server {
        Server::Tcp { host, port } => Stream::tcp(host, *port, PATIENCE),
        Server::Unix(path) => Stream::unix(path),
    };
    let wish = Wish { export: uri.export.clone(), tls: false, structured_replies: false };
    let (stream, offer) =
        agree(stream.expect("it listens"), wish, PATIENCE, Ok).expect("an export");
    (Client::new(stream, &offer), offer.size_bytes)
}

/// Keeps the queue full; gives how long each request took, and how long it all took.
fn run(
    load: &Load,
    (mut client, size): (Client<Stream>, u64),
    number: u64,
    of: u64,
) -> (Vec<u32>, f64) {
    let blocks = size.min(load.window) / load.block as u64;
    let mut memory = vec![0x5a; load.block * load.depth];
    let mut next = blocks / of * number;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1) | 1;
    let mut begun_at = vec![Instant::now(); load.depth];
    let mut free: Vec<u32> = (0..load.depth as u32).collect();
    let (mut due, mut answers) = (Vec::new(), Vec::new());
    let mut times = Vec::with_capacity(1 << 20);
    let begin = Instant::now();
    let mut now = begin;
    loop {
        let goes_on = (now - begin).as_secs_f64() < load.seconds;
        due.clear();
        for slot in free.drain(..) {
            if !goes_on {
                continue;
            }
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let block = if load.random { state % blocks } else { next % blocks };
            next += 1;
            begun_at[slot as usize] = now;
            due.push(Due {
                slot,
                command: load.command,
                flags: CommandFlags::NONE,
                offset: block * load.block as u64,
                length: load.block as u32,
                memory_at: slot as usize * load.block,
            });
        }
        if due.is_empty() && client.in_flight() == 0 {
            break;
        }
        answers.clear();
        client.exchange(&due, &mut memory, &mut answers).expect("the server goes on");
        now = Instant::now();
        for answer in &answers {
            assert_eq!(answer.error, ErrorCode::NONE, "{}", client.words());
            times.push((now - begun_at[answer.slot as usize]).as_nanos() as u32);
            free.push(answer.slot);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    client.disconnect();
    (times, seconds)
}
