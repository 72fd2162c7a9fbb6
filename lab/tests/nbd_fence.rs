//! A client that connects again while the server still has requests of its lost connection: none of them is done after
//! what the new connection writes.

use std::path::Path;
use std::time::Duration;

use crate::common::program::Home;
use crate::common::{can_run, report, take_turns};
use rubus_host::net::Stream;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Listening, NbdServer, PausingDevice, Serving};
use rubus_nbd::client::{Client, Due, Extras, Offer, Wish, agree_with};
use rubus_nbd::uri::{Server, Uri};
use rubus_nbd::wire::{Claim, Command, CommandFlags, ErrorCode};

const PATIENCE: Duration = Duration::from_secs(120);
const SIZE: u64 = 32 << 20;
const BLOCK: usize = 4096;
const OLD: u8 = 1;
const NEW: u8 = 2;
/// More than the server's threads for one connection.
const QUEUED: u32 = 64;

fn connect(socket: &Path, generation: u64) -> (Client<Stream>, Offer) {
    let wish = Wish { export: String::new(), tls: false, structured_replies: false };
    let claim = Claim { attachment: 0x7275_6275_7300, generation, lane: 0, ended: 0 };
    let extras = Extras { fence: Some(claim), ..Extras::default() };
    let stream = Stream::unix(socket).expect("it listens");
    let (stream, offer) = agree_with(stream, wish, extras, PATIENCE, Ok).expect("they agree");
    (Client::new(stream, &offer), offer)
}

fn due(slot: u32, command: Command, flags: CommandFlags) -> Due {
    Due { slot, command, flags, offset: 0, length: BLOCK as u32, memory_at: 0 }
}

/// Sends writes to one block, and waits for no answer.
fn send_writes(client: &mut Client<Stream>, flags: CommandFlags) {
    for slot in 0..QUEUED {
        let due = due(slot, Command::Write, flags);
        client.queue(&due, BLOCK).expect("it is fine");
    }
    let mut memory = vec![OLD; BLOCK];
    while !client.turn(&mut memory, &mut Vec::new()).expect("it sends").all_sent {}
}

fn ask(client: &mut Client<Stream>, command: Command, memory: &mut [u8]) {
    let mut answers = Vec::new();
    client
        .exchange_within(&[due(0, command, CommandFlags::NONE)], memory, &mut answers, PATIENCE)
        .expect("the connection holds");
    assert_eq!(answers[0].error, ErrorCode::NONE);
}

#[test]
fn what_a_lost_connection_left_behind_is_not_done_over_newer_writes() {
    if !can_run("nbd_fence", &[Need::NbdFile]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let mut device = PausingDevice::new(SIZE).expect("a device");
    let socket = home.path().join("socket");
    let mut command = home.command();
    command.args(["serve"]).arg(device.path());
    command.arg("--unix").arg(&socket);
    let listening = Listening::Socket(socket.clone());
    let mut served = Serving::start(command, listening).expect("it serves");
    // One after the other in one thread of the server, and several in its pool.
    for (round, flags) in [CommandFlags::NONE, CommandFlags::FUA].into_iter().enumerate() {
        let round = round as u64 * 10;
        let (mut old, offer) = connect(&socket, round + 1);
        assert!(offer.fenced);
        std::thread::scope(|scope| {
            let pause = scope.spawn(|| device.pause(Duration::from_secs(2)));
            std::thread::sleep(Duration::from_millis(500));
            send_writes(&mut old, flags);
            std::thread::sleep(Duration::from_millis(300));
            let (mut new, offer) = connect(&socket, round + 2);
            assert!(offer.fenced);
            let mut memory = vec![NEW; BLOCK];
            ask(&mut new, Command::Write, &mut memory);
            for _ in 0..10 {
                std::thread::sleep(Duration::from_millis(100));
                ask(&mut new, Command::Read, &mut memory);
                assert!(memory.iter().all(|&byte| byte == NEW), "an old write came late");
            }
            pause.join().expect("no panic").expect("it paused");
        });
    }
    let status = served.end().expect("it ends");
    assert!(status.success());
    assert!(served.said().contains("has replaced this connection"), "{}", served.said());
    report("rubus serve: an old connection's writes end before the new one begins");
}

#[test]
fn servers_of_other_makers_refuse_the_option_and_go_on() {
    let needs = [
        Need::Program("nbdkit", "nbdkit"),
        Need::Program("qemu-nbd", "qemu-utils"),
        Need::Program("nbd-server", "nbd-server"),
    ];
    if !can_run("nbd_fence_foreign", &needs) {
        return;
    }
    let _turn = take_turns();
    let servers = [
        NbdServer::nbdkit(&["memory", "8M"]).expect("nbdkit"),
        NbdServer::qemu(SIZE, &[]).expect("qemu-nbd"),
        NbdServer::reference(SIZE).expect("nbd-server"),
    ];
    for server in &servers {
        let uri = Uri::parse(server.address()).expect("an address");
        let stream = match &uri.server {
            Server::Tcp { host, port } => Stream::tcp(host, *port, PATIENCE),
            Server::Unix(path) => Stream::unix(path),
        };
        let wish = Wish { export: uri.export.clone(), tls: false, structured_replies: false };
        let claim = Claim { attachment: 1, generation: 1, lane: 0, ended: 0 };
        let extras = Extras { fence: Some(claim), ..Extras::default() };
        let stream = stream.expect("it listens");
        let (stream, offer) = agree_with(stream, wish, extras, PATIENCE, Ok).expect("they agree");
        assert!(!offer.fenced, "{}", server.address());
        let mut client = Client::new(stream, &offer);
        ask(&mut client, Command::Read, &mut vec![0; BLOCK]);
    }
    report("nbdkit, qemu-nbd and nbd-server refuse to fence, and serve all the same");
}
