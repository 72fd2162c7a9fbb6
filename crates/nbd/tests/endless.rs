//! Servers that never come to an end, a byte now and then or as fast as they can: a client gives up.

mod common;

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::{Nature, Server, disk};
use rubus_host::net::Stream;
use rubus_nbd::client::{Client, ClientError, Due, HandshakeError, Inquiry, Wish, agree};
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{
    Chunk, ChunkFlags, ChunkKind, Command, CommandFlags, ErrorCode, Greeting, HandshakeFlags,
    Request, write_error_body,
};

fn wish() -> Wish {
    Wish { export: String::new(), tls: false, structured_replies: true }
}

/// A server that greets and then sends a byte of an answer now and then.
fn dribbling() -> Stream {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    std::thread::spawn(move || {
        let mut said = Vec::new();
        let flags = HandshakeFlags::FIXED_NEWSTYLE.with(HandshakeFlags::NO_ZEROES);
        Greeting::Newstyle(flags).encode(&mut said);
        let _ = theirs.write_all(&said);
        // The mark of a reply, and so on: its header alone takes longer than a whole handshake may.
        let mark = 0x0003_e889_0455_65a9_u64.to_be_bytes();
        for byte in mark.into_iter().chain(std::iter::repeat(0)) {
            if theirs.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(70));
        }
    });
    Stream::connected(ours.into(), "pair".into())
}

/// On a busy machine a byte may come so late that it is silence.
fn is_given_up(error: &ClientError) -> bool {
    let is_slow = matches!(error, ClientError::Handshake(HandshakeError::TooSlow(_)));
    is_slow || matches!(error, ClientError::Silent(_))
}

#[test]
fn a_handshake_of_single_bytes_is_given_up() {
    let most = Duration::from_millis(100);
    let error = agree(dribbling(), wish(), most, Ok).expect_err("it has no end");
    assert!(is_given_up(&error), "{error}");
    let asked = Inquiry::begin(dribbling(), most).and_then(|mut inquiry| inquiry.list());
    let error = asked.expect_err("it has no end");
    assert!(is_given_up(&error), "{error}");
}

/// A wire to a server that answers each request with errors, none of which is the last.
struct Complaining {
    server: Server,
    cookie: Option<u64>,
}

impl Transport for Complaining {
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        match Request::decode(&sent) {
            Ok(request) => self.cookie = Some(request.cookie),
            Err(_) => self.server.take(&sent),
        }
        Ok(sent.len())
    }

    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], _wait: bool) -> io::Result<usize> {
        if let Some(cookie) = self.cookie {
            let mut body = Vec::new();
            write_error_body(ErrorCode::IO, "once more", Some(0), &mut body);
            let (flags, kind) = (ChunkFlags::NONE, ChunkKind::ErrorAt);
            let length = body.len() as u32;
            Chunk { flags, kind, cookie, length }.encode(&mut self.server.output);
            self.server.output.extend_from_slice(&body);
        }
        let now = self.server.output.len().min(parts[0].len());
        parts[0][..now].copy_from_slice(&self.server.output[..now]);
        self.server.output.drain(..now);
        Ok(now)
    }

    fn wait(&mut self, _or_room: bool, _most: Option<Duration>) -> io::Result<bool> {
        Ok(true)
    }
}

#[test]
fn answers_of_words_without_end_are_given_up() {
    let server = Server::new(Nature::default(), disk(4096));
    let (wire, offer) =
        agree(Complaining { server, cookie: None }, wish(), Duration::from_secs(20), Ok)
            .expect("they agree");
    let mut client = Client::new(wire, &offer);
    let mut patience = client.patience();
    patience.server = Duration::from_millis(300);
    client.set_patience(patience);
    let due = Due {
        slot: 0,
        command: Command::Read,
        flags: CommandFlags::NONE,
        offset: 0,
        length: 512,
        memory_at: 0,
    };
    let mut answers = Vec::new();
    let error = client.exchange(&[due], &mut [0; 512], &mut answers).expect_err("it has no end");
    assert!(matches!(error, ClientError::Silent(_)), "{error}");
    assert_eq!(answers, []);
}
