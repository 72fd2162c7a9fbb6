//! `rubus serve` among clients that mean no good, or are broken: it does not crash, its memory stays
//! small, and an honest client is served all the while.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::common::program::Home;
use crate::common::{report, take_turns};
use rubus_host::net::Stream;
use rubus_lab::devices::{Listening, Serving, free_port};
use rubus_nbd::client::{Client, ClientError, Due, HandshakeError, Wish, agree};
use rubus_nbd::tls::{Pem, Tls, TlsSettings};
use rubus_nbd::wire::{
    Command, CommandFlags, ErrorCode, InfoRequest, OPTION_REPLY_HEADER_BYTES, OptionReply,
    OptionReplyHeader, OptionRequest, Refusal, Request, SimpleReply,
};

/// An honest client has its answer within this time, however many others there are; generous, for
/// machines that are busy.
const PATIENCE: Duration = Duration::from_secs(120);
const DISK_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: usize = 64 << 10;
/// What a server may grow by, whatever its clients do.
const MAX_GROWTH_KIB: u64 = 48 << 10;

/// A server that runs.
struct Served {
    serving: Serving,
    /// Holds the image until the server has ended.
    _home: Home,
    port: u16,
}

impl Served {
    fn start(arguments: &[&str]) -> Served {
        Served::start_in(Home::new(), arguments)
    }

    fn start_in(home: Home, arguments: &[&str]) -> Served {
        let port = free_port("127.0.0.1").expect("a port");
        let mut command = home.command();
        command
            .args(["serve", "disk.img", "--size", "64MiB", "--quiet"])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(arguments);
        let listening = Listening::Port("127.0.0.1".into(), port);
        Served {
            serving: Serving::start(command, listening).expect("it serves"),
            _home: home,
            port,
        }
    }

    fn is_alive(&mut self) -> bool {
        self.serving.is_alive()
    }

    /// A connection that has been greeted.
    fn connect(&self) -> TcpStream {
        let mut stream = self.connect_only();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("the greeting");
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        stream
    }

    fn connect_only(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A client that has agreed on the export.
    fn agreed(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(&handshake()).expect("it is taken");
        // Size and flags, then the assent.
        let mut answer = [0; 20 + 12 + 20];
        stream.read_exact(&mut answer).expect("the answer");
        stream
    }

    /// A number of kibibytes, or a count, that the kernel knows of the server.
    fn status(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.serving.id().expect("it runs"));
        let text = std::fs::read_to_string(path).expect("it runs");
        let line = text.lines().find(|line| line.starts_with(field));
        let words: Vec<&str> = line.expect("the field").split_whitespace().collect();
        words[1].parse().expect("a number")
    }

    /// An honest client writes and reads.
    fn serves_the_honest(&self, number: u8) {
        let stream = Stream::tcp("127.0.0.1", self.port, PATIENCE).expect("it listens");
        let wish = Wish { export: "disk".into(), tls: false, structured_replies: number % 2 == 0 };
        let (stream, offer) = agree(stream, wish, PATIENCE, Ok).expect("they agree");
        assert_eq!(offer.size_bytes, DISK_BYTES);
        let mut client = Client::new(stream, &offer);
        let mut memory = vec![number; 2 * BLOCK_BYTES];
        memory[BLOCK_BYTES..].fill(0);
        for (slot, command) in [Command::Write, Command::Read].into_iter().enumerate() {
            let due = Due {
                slot: slot as u32,
                command,
                flags: CommandFlags::NONE,
                offset: u64::from(number) * BLOCK_BYTES as u64,
                length: BLOCK_BYTES as u32,
                memory_at: slot * BLOCK_BYTES,
            };
            let mut answers = Vec::new();
            client.exchange_within(&[due], &mut memory, &mut answers, PATIENCE).expect("an answer");
            assert_eq!(answers[0].error, ErrorCode::NONE);
        }
        assert!(memory.iter().all(|&byte| byte == number), "other bytes");
        client.disconnect();
    }

    /// Ends it as systemd does, and expects that it ends well.
    fn end(mut self) {
        let status = self.serving.end().expect("it runs");
        assert_eq!(status.code(), Some(0), "it ended with {status}");
    }
}

/// Flags of a client, and GO.
fn handshake() -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 3];
    OptionRequest::Go(InfoRequest { export: "disk".into(), wanted: Vec::new() }).encode(&mut bytes);
    bytes
}

fn request(command: Command, offset: u64, length: u32) -> [u8; Request::BYTES] {
    Request { flags: CommandFlags::NONE, command, cookie: 7, offset, length }.to_bytes()
}

/// Whether the other end hangs up, after whatever else it says.
fn is_hung_up_on(stream: &mut TcpStream) -> bool {
    let mut memory = [0; 4096];
    loop {
        match stream.read(&mut memory) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn clients_that_go_at_any_byte_leave_nothing_behind() {
    let _turn = take_turns();
    let mut served = Served::start(&[]);
    served.serves_the_honest(1);
    let before = served.status("VmRSS:");
    let mut said = handshake();
    said.extend_from_slice(&request(Command::Write, 0, 40));
    said.extend_from_slice(&[0xaa; 40]);
    said.extend_from_slice(&request(Command::Read, 0, 4096));
    said.extend_from_slice(&request(Command::Flush, 0, 0));
    said.extend_from_slice(&request(Command::Disconnect, 0, 0));
    for round in 0..3 {
        for end in 0..=said.len() {
            let mut stream = match round {
                // Without having read, so that the connection is reset.
                0 => served.connect_only(),
                _ => served.connect(),
            };
            // It may be gone already, which is its right.
            let _ = stream.write_all(&said[..end]);
            if round == 2 {
                // It has no more to say, and listens.
                let _ = stream.shutdown(Shutdown::Write);
                assert!(is_hung_up_on(&mut stream), "at byte {end}");
            }
        }
        served.serves_the_honest(2 + round);
    }
    assert!(served.is_alive());
    let grown = served.status("VmRSS:").saturating_sub(before);
    report(&format!("{} clients that went: {grown} KiB more", 3 * said.len()));
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");
    served.end();
}

#[test]
fn strangers_do_not_keep_the_honest_out() {
    let _turn = take_turns();
    let mut served = Served::start(&[]);
    served.serves_the_honest(1);
    let before = served.status("VmRSS:");
    let threads = served.status("Threads:");
    // Some say nothing at all, some say a part of what they should.
    let mut strangers: Vec<TcpStream> = (0..500).map(|_| served.connect_only()).collect();
    for (at, stream) in strangers.iter_mut().enumerate() {
        let said = handshake();
        let _ = stream.write_all(&said[..at % said.len()]);
    }
    for number in 2..6 {
        served.serves_the_honest(number);
    }
    let grown = served.status("VmRSS:").saturating_sub(before);
    let more_threads = served.status("Threads:").saturating_sub(threads);
    report(&format!("500 strangers at the door: {grown} KiB and {more_threads} threads more"));
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");
    assert!(more_threads < 50, "{more_threads} threads");
    // All of them are disconnected, even a client that sends a byte now and then.
    let mut slow = served.connect();
    let said = handshake();
    let mut sent = 0;
    while sent < said.len() - 1 && slow.write_all(&said[sent..=sent]).is_ok() {
        sent += 1;
        std::thread::sleep(Duration::from_millis(700));
    }
    assert!(is_hung_up_on(&mut slow));
    assert!(sent < said.len() - 1, "it was never too slow");
    for stream in &mut strangers {
        assert!(is_hung_up_on(stream));
    }
    served.serves_the_honest(6);
    assert!(served.is_alive());
    served.end();
}

#[test]
fn a_client_that_does_not_read_takes_no_memory() {
    let _turn = take_turns();
    let mut served = Served::start(&[]);
    served.serves_the_honest(1);
    let before = served.status("VmRSS:");
    // Each asks for gigabytes, and takes nothing of them.
    let deaf: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = served.agreed();
            stream.set_nonblocking(true).expect("it can be");
            let many = request(Command::Read, 0, 1 << 20).repeat(4096);
            let _ = stream.write(&many);
            stream
        })
        .collect();
    for number in 2..8 {
        served.serves_the_honest(number);
    }
    let grown = served.status("VmRSS:").saturating_sub(before);
    report(&format!("{} who do not read: {grown} KiB more", deaf.len()));
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");
    assert!(served.is_alive());
    // And it ends with clients in every state.
    let _greeted = served.connect();
    let mut half = served.agreed();
    half.write_all(&request(Command::Write, 0, 4096)[..20]).expect("there is room");
    let mut middle = served.agreed();
    middle.write_all(&request(Command::Write, 0, 1 << 20)).expect("there is room");
    let _idle = served.agreed();
    served.end();
    drop(deaf);
}

#[test]
fn a_request_too_large_and_the_next_one_are_told_apart() {
    let _turn = take_turns();
    let mut served = Served::start(&[]);
    let mut stream = served.agreed();
    let reply = |stream: &mut TcpStream| {
        let mut bytes = [0; SimpleReply::BYTES];
        stream.read_exact(&mut bytes).expect("a reply");
        u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])
    };
    // More than a request may move: it is read to its end, and refused.
    let length: u32 = (32 << 20) + 512;
    let mut writer = stream.try_clone().expect("a second handle");
    let sender = std::thread::spawn(move || {
        let payload = vec![0x25; length as usize];
        writer.write_all(&request(Command::Write, 0, length))?;
        writer.write_all(&payload)?;
        writer.write_all(&request(Command::Read, 0, 512))
    });
    assert_eq!(reply(&mut stream), ErrorCode::INVALID.0);
    assert_eq!(reply(&mut stream), 0);
    let mut data = [1; 512];
    stream.read_exact(&mut data).expect("the data");
    assert_eq!(data, [0; 512], "nothing was written");
    sender.join().expect("no panic").expect("it was taken");
    // Beyond the end, with numbers that overflow, or of no kind at all.
    for (command, offset, length, error) in [
        (Command::Read, DISK_BYTES, 512, ErrorCode::INVALID),
        (Command::Read, u64::MAX - 255, 512, ErrorCode::INVALID),
        (Command::Read, 0, u32::MAX, ErrorCode::INVALID),
        (Command::Trim, DISK_BYTES - 1, 2, ErrorCode::INVALID),
        (Command::WriteZeroes, 1 << 63, 512, ErrorCode::NO_SPACE),
        (Command::Other(99), 0, 512, ErrorCode::INVALID),
        (Command::BlockStatus, 0, 512, ErrorCode::INVALID),
        (Command::Flush, 0, 0, ErrorCode::NONE),
    ] {
        let bytes = request(command, offset, length);
        stream.write_all(&bytes).expect("it is taken");
        assert_eq!(reply(&mut stream), error.0, "{command:?} {offset} {length}");
    }
    // The server does not read four gigabytes of payload.
    let bytes = request(Command::Write, 0, u32::MAX);
    stream.write_all(&bytes).expect("it is taken");
    assert!(is_hung_up_on(&mut stream));
    served.serves_the_honest(1);
    assert!(served.is_alive());
    served.end();
}

/// What the fuzzers found worth keeping, over sockets.
#[test]
fn the_corpus_of_the_fuzzers_does_no_harm() {
    let _turn = take_turns();
    let mut served = Served::start(&[]);
    served.serves_the_honest(1);
    let before = served.status("VmRSS:");
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus");
    let mut count = 0;
    for (door, first) in [("server_handshake", 1), ("server_transmission", 2)] {
        let files = std::fs::read_dir(format!("{corpus}/{door}")).expect("the corpus");
        for file in files.flatten() {
            let bytes = std::fs::read(file.path()).expect("a file");
            let bytes = bytes.get(first..).unwrap_or_default();
            let mut stream = match door {
                "server_handshake" => served.connect(),
                _ => served.agreed(),
            };
            // It may hang up in the middle.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(Shutdown::Write);
            assert!(is_hung_up_on(&mut stream), "{}", file.path().display());
            count += 1;
        }
    }
    assert!(count > 20, "only {count} files");
    served.serves_the_honest(2);
    assert!(served.is_alive());
    let grown = served.status("VmRSS:").saturating_sub(before);
    report(&format!("{count} files of the corpus: {grown} KiB more"));
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");
    served.end();
}

/// Certificates in the home of a server to be.
fn home_with_certificates() -> Home {
    let home = Home::new();
    let made = home.run(&["serve", "--make-certificates", "certs"]);
    assert_eq!(made.status, Some(0), "{made}");
    let again = home.run(&["serve", "--make-certificates", "certs"]);
    assert_eq!(again.status, Some(2), "{again}");
    assert!(again.stderr.contains("is there already"), "{again}");
    home
}

fn trust(home: &Home, shows: bool) -> TlsSettings {
    let read =
        |name: &str| std::fs::read(home.path().join("certs").join(name)).expect("it is made");
    let (authority, certificate) = (read("ca-cert.pem"), read("client-cert.pem"));
    let key = read("client-key.pem");
    let pem = |name, bytes| Pem { name, bytes };
    let pair = (pem("certificate", &certificate[..]), pem("key", &key[..]));
    TlsSettings::new(pem("authority", &authority), shows.then_some(pair)).expect("certificates")
}

/// A TLS client reads the first block.
fn reads_encrypted(served: &Served, trust: &TlsSettings, name: &str) -> Result<(), ClientError> {
    let stream = Stream::tcp("127.0.0.1", served.port, PATIENCE).expect("it listens");
    let wish = Wish { export: "disk".into(), tls: true, structured_replies: true };
    let encrypt = |plain| match plain {
        Tunnel::Plain(stream) => {
            Tls::start(stream, trust, name, PATIENCE).map(|tls| Tunnel::Tls(Box::new(tls)))
        }
        tls => Ok(tls),
    };
    let (tunnel, offer) = agree(Tunnel::Plain(stream), wish, PATIENCE, encrypt)?;
    let mut client = Client::new(tunnel, &offer);
    let due = Due {
        slot: 0,
        command: Command::Read,
        flags: CommandFlags::NONE,
        offset: 0,
        length: BLOCK_BYTES as u32,
        memory_at: 0,
    };
    let (mut memory, mut answers) = (vec![1; BLOCK_BYTES], Vec::new());
    client.exchange_within(&[due], &mut memory, &mut answers, PATIENCE)?;
    assert_eq!(answers[0].error, ErrorCode::NONE);
    assert!(memory.iter().all(|&byte| byte == 0));
    client.disconnect();
    Ok(())
}

enum Tunnel {
    Plain(Stream),
    Tls(Box<Tls<Stream>>),
}

impl rubus_nbd::transport::Transport for Tunnel {
    fn send(&mut self, parts: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
        match self {
            Tunnel::Plain(stream) => stream.send(parts),
            Tunnel::Tls(tls) => tls.send(parts),
        }
    }

    fn receive(
        &mut self,
        parts: &mut [std::io::IoSliceMut<'_>],
        wait: bool,
    ) -> std::io::Result<usize> {
        match self {
            Tunnel::Plain(stream) => stream.receive(parts, wait),
            Tunnel::Tls(tls) => tls.receive(parts, wait),
        }
    }

    fn wait(&mut self, or_room: bool, most: Option<Duration>) -> std::io::Result<bool> {
        match self {
            Tunnel::Plain(stream) => stream.wait(or_room, most),
            Tunnel::Tls(tls) => tls.wait(or_room, most),
        }
    }
}

fn option(request: &OptionRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    bytes
}

fn option_reply(stream: &mut TcpStream) -> OptionReply {
    let mut head = [0; OPTION_REPLY_HEADER_BYTES];
    stream.read_exact(&mut head).expect("a reply");
    let header = OptionReplyHeader::decode(&head).expect("a reply");
    let mut data = vec![0; header.length as usize];
    stream.read_exact(&mut data).expect("its data");
    OptionReply::decode(header.kind, &data).expect("a reply")
}

#[test]
fn tls_cannot_be_bypassed() {
    let _turn = take_turns();
    let home = home_with_certificates();
    let (trusting, known) = (trust(&home, false), trust(&home, true));
    let stranger = trust(&home_with_certificates(), false);
    let required = ["--tls", "require", "--certificates", "certs"];
    let mut served = Served::start_in(home, &required);
    reads_encrypted(&served, &trusting, "localhost").expect("they trust one another");
    let before = served.status("VmRSS:");

    // In the clear nothing is told, in no way of asking.
    let stream = Stream::tcp("127.0.0.1", served.port, PATIENCE).expect("it listens");
    let wish = Wish { export: "disk".into(), tls: false, structured_replies: false };
    let refused = agree(stream, wish, PATIENCE, Ok).err();
    assert!(
        matches!(refused, Some(ClientError::Handshake(HandshakeError::TlsRequired))),
        "{refused:?}"
    );
    let mut clear = served.connect();
    clear.write_all(&[0, 0, 0, 3]).expect("it is taken");
    clear.write_all(&option(&OptionRequest::List)).expect("it is taken");
    let answer = option_reply(&mut clear);
    let is_refused = |why| matches!(why, OptionReply::Refused { why: Refusal::TlsRequired, .. });
    assert!(is_refused(answer));
    clear.write_all(&option(&OptionRequest::ExportName("disk".into()))).expect("it is taken");
    assert!(is_hung_up_on(&mut clear));

    // Nor does anything in the clear get behind the start of TLS.
    let start = option(&OptionRequest::StartTls);
    let list = option(&OptionRequest::List);
    let mut injected = served.connect();
    injected.write_all(&[&[0, 0, 0, 3][..], &start, &list].concat()).expect("it is taken");
    let mut heard = Vec::new();
    // It is reset, or closed, and nothing is said.
    let _ = injected.read_to_end(&mut heard);
    assert!(heard.is_empty(), "it said {heard:?}");
    let mut later = served.connect();
    later.write_all(&[&[0, 0, 0, 3][..], &start].concat()).expect("it is taken");
    assert_eq!(option_reply(&mut later), OptionReply::Ack);
    later.write_all(&list).expect("it is taken");
    let mut heard = Vec::new();
    let _ = later.read_to_end(&mut heard);
    let is_alert = heard.first() == Some(&0x15);
    assert!(heard.is_empty() || (is_alert && heard.len() < 20), "it said {heard:?}");

    // A client that starts TLS and stops there costs little, and is disconnected.
    let mut stuck: Vec<TcpStream> = (0..60).map(|_| served.connect()).collect();
    for stream in &mut stuck {
        stream.write_all(&[&[0, 0, 0, 3][..], &start].concat()).expect("it is taken");
    }
    reads_encrypted(&served, &trusting, "127.0.0.1").expect("it is served meanwhile");
    for stream in &mut stuck {
        assert!(is_hung_up_on(stream));
    }
    let grown = served.status("VmRSS:").saturating_sub(before);
    report(&format!("60 who are stuck in TLS: {grown} KiB more"));
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");

    // Our client does not talk to a server that is another.
    for (trust, name) in [(&stranger, "localhost"), (&trusting, "elsewhere")] {
        let refused = reads_encrypted(&served, trust, name);
        assert!(matches!(refused, Err(ClientError::Tls(_))), "{refused:?}");
    }
    reads_encrypted(&served, &known, "localhost").expect("a certificate does no harm");
    assert!(served.is_alive());
    served.end();
}

#[test]
fn a_client_shows_who_it_is_where_that_is_asked_for() {
    let _turn = take_turns();
    let home = home_with_certificates();
    let (unknown, known) = (trust(&home, false), trust(&home, true));
    let certificates = ["--certificates", "certs", "--verify-clients"];
    // Where TLS is optional, clients cannot be verified.
    let allowed = [&["serve", "disk.img", "--tls", "allow"], &certificates[..]].concat();
    let refused = home.run(&allowed);
    assert_eq!(refused.status, Some(2), "{refused}");
    assert!(refused.stderr.contains("needs --tls require"), "{refused}");
    let verified = [&["--tls", "require"], &certificates[..]].concat();
    let served = Served::start_in(home, &verified);
    reads_encrypted(&served, &known, "localhost").expect("it is known");
    let refused = reads_encrypted(&served, &unknown, "localhost").unwrap_err();
    assert!(refused.to_string().contains("wants a certificate of this client"), "{refused}");
    served.end();
}
