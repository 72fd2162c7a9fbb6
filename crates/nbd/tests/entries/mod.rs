//! The doors through which a stranger's bytes come in, each as a function of bytes alone. The fuzz
//! targets in `fuzz/` and the test `corpus` go through the same ones. What breaks a promise panics.

#![allow(dead_code)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use rubus_nbd::client::{
    self, Answer, Due, Extras, Flight, Handshake, Inquiry, MAX_LISTED, Style, Wish,
};
use rubus_nbd::peer::PeerCertificate;
use rubus_nbd::server::disk::{Abilities, Extent};
use rubus_nbd::server::handshake::{
    Export, Exports, MAX_HANDSHAKE_BYTES, NoExport, ServerHandshake, Step, TlsPolicy,
};
use rubus_nbd::server::transmission::{Parsed, Replies, Rules, Ticket, Work, flags_of};
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{
    BlockSizes, ChunkFlags, ChunkKind, Command, CommandFlags, ErrorCode, ExportName, MAX_EXTENTS,
    OPTION_REPLY_HEADER_BYTES, OptionReply, OptionReplyHeader, OptionRequest, Refusal, ReplyHeader,
    TransmissionFlags, read_error_body, read_hole_body, read_status_body,
};

mod both_ends;

pub use both_ends::both_ends;

/// What takes the bytes of a stranger.
pub type Entry = fn(&[u8]);

/// Every door by its name, which is also that of its fuzz target and its corpus.
pub const ALL: [(&str, Entry); 6] = [
    ("server_handshake", server_handshake),
    ("server_transmission", server_transmission),
    ("client_handshake", client_handshake),
    ("client_inquiry", client_inquiry),
    ("client_flight", client_flight),
    ("both_ends", both_ends),
];

const DISK_BYTES: usize = 64 << 10;
const MAX_BLOCK_BYTES: u32 = 16 << 10;

fn abilities(is_read_only: bool) -> Abilities {
    Abilities {
        is_read_only,
        can_trim: true,
        can_zero_fast: true,
        knows_extents: true,
        is_shared: true,
        is_rotational: false,
    }
}

/// What the server has, and whether anybody has asked.
#[derive(Default)]
struct Two {
    asked: Cell<bool>,
}

impl Exports for Two {
    fn list(&self) -> Vec<(String, String)> {
        self.asked.set(true);
        vec![("disk".into(), "one".into()), ("ä".into(), String::new())]
    }

    fn find(&self, name: &str) -> Result<Export, NoExport> {
        self.asked.set(true);
        match name {
            "" | "disk" | "ä" => Ok(Export {
                name: "disk".into(),
                size_bytes: DISK_BYTES as u64,
                abilities: abilities(name == "ä"),
                block_sizes: BlockSizes {
                    min_bytes: 1,
                    preferred_bytes: 4096,
                    max_bytes: MAX_BLOCK_BYTES,
                },
                description: "one".into(),
            }),
            _ => Err(NoExport { why: Refusal::Unknown, words: format!("no export '{name}'") }),
        }
    }

    fn admits(&self, _: &str, _: Option<&PeerCertificate>) -> Result<(), NoExport> {
        Ok(())
    }
}

fn piece_of(choice: u8) -> usize {
    [1, 7, 100, 5000][usize::from(choice % 4)]
}

fn policy_of(choice: u8) -> TlsPolicy {
    match choice % 3 {
        0 => TlsPolicy::Off,
        1 => TlsPolicy::Allow,
        _ => TlsPolicy::Require,
    }
}

/// A client in its handshake. The first byte chooses the server's nature.
pub fn server_handshake(data: &[u8]) {
    let Some((&nature, bytes)) = data.split_first() else {
        return;
    };
    let (policy, piece) = (policy_of(nature), piece_of(nature / 3));
    let mut server = ServerHandshake::new(policy).fencing();
    let exports = Two::default();
    server.to_send();
    let (mut at, mut encrypted) = (0, false);
    loop {
        match server.step() {
            Step::Receive if at == bytes.len() => return,
            Step::Receive => {
                let end = bytes.len().min(at + piece);
                let used = server.received(&bytes[at..end], &exports);
                assert!(used > 0 && at + used <= end, "{used} bytes taken");
                at += used;
                assert!(at as u64 <= MAX_HANDSHAKE_BYTES + 5000);
                let no_answers = server.step() == Step::Serve;
                check_option_replies(&server.to_send(), no_answers);
                let in_clear = policy == TlsPolicy::Require && !encrypted;
                assert!(!(in_clear && exports.asked.get()), "told in the clear");
            }
            Step::StartTls => {
                assert!(policy != TlsPolicy::Off && !encrypted);
                encrypted = true;
                server.tls_started();
            }
            Step::Fence => {
                assert!(server.claim().is_some() && server.to_send().is_empty());
                let done = match nature & 0x80 {
                    0 => Ok(()),
                    _ => Err("the disk hangs"),
                };
                server.fenced(done);
                let no_answers = server.step() == Step::Serve;
                check_option_replies(&server.to_send(), no_answers);
            }
            Step::Serve => {
                let agreed = server.into_agreed().expect("an agreement");
                assert_eq!(agreed.encrypted, encrypted);
                assert!(encrypted || policy != TlsPolicy::Require);
                assert!(agreed.rules.flags.has(TransmissionFlags::HAS_FLAGS));
                return;
            }
            Step::Close => {
                let why = server.closing().expect("a reason").to_string();
                assert!(!why.is_empty());
                assert_eq!(server.received(b"more", &exports), 0);
                return;
            }
        }
    }
}

/// What a server answers can be read by a client. The answer to a name alone has no header.
fn check_option_replies(mut bytes: &[u8], may_be_name: bool) {
    assert!(bytes.len() < 64 << 10, "an answer of {} bytes", bytes.len());
    let is_name = [ExportName::length(true), ExportName::length(false)].contains(&bytes.len());
    if may_be_name && is_name && OptionReplyHeader::decode(&bytes[..8]).is_err() {
        let is_reply = bytes.len() >= OPTION_REPLY_HEADER_BYTES
            && OptionReplyHeader::decode(&bytes[..OPTION_REPLY_HEADER_BYTES]).is_ok();
        if !is_reply {
            ExportName::decode(bytes).expect("an export");
            return;
        }
    }
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(OPTION_REPLY_HEADER_BYTES);
        let header = OptionReplyHeader::decode(head).expect("a header");
        let (data, rest) = rest.split_at(header.length as usize);
        OptionReply::decode(header.kind, data).expect("a reply");
        bytes = rest;
    }
}

/// The smallest server there can be: it has the disk in memory and does one thing after the other.
struct Server {
    rules: Rules,
    disk: Vec<u8>,
    input: Vec<u8>,
    skip: u64,
    out: Vec<u8>,
    /// Requests that have to be answered, in order.
    owed: VecDeque<u64>,
}

impl Server {
    fn new(rules: Rules) -> Self {
        Server {
            rules,
            disk: disk(),
            input: Vec::new(),
            skip: 0,
            out: Vec::new(),
            owed: VecDeque::new(),
        }
    }

    /// Takes what a client has sent; false when the connection is over.
    fn take(&mut self, bytes: &[u8]) -> bool {
        self.input.extend_from_slice(bytes);
        loop {
            let skipped = self.skip.min(self.input.len() as u64);
            self.input.drain(..skipped as usize);
            self.skip -= skipped;
            if self.skip > 0 || self.input.is_empty() {
                return true;
            }
            match self.rules.parse(&self.input) {
                Parsed::Need(bytes) => {
                    assert!(bytes > self.input.len() && bytes <= 32 + 12);
                    return true;
                }
                Parsed::Fatal(_) | Parsed::Disconnect => return false,
                Parsed::Refuse { refusal, header_bytes, skip_bytes } => {
                    self.input.drain(..header_bytes);
                    self.skip = skip_bytes;
                    self.owed.push_back(refusal.ticket.cookie);
                    let replies = self.rules.replies;
                    let (ticket, error, words) = (refusal.ticket, refusal.error, refusal.words);
                    replies.failed(ticket, error, words, &mut self.out);
                }
                Parsed::Request { request, header_bytes } => {
                    let mut used = header_bytes;
                    if let Work::Write { length, .. } = request.work {
                        used += length as usize;
                        if self.input.len() < used {
                            return true;
                        }
                    }
                    self.owed.push_back(request.ticket.cookie);
                    let message: Vec<u8> = self.input.drain(..used).collect();
                    self.work(request.ticket, request.work, &message[header_bytes..]);
                }
            }
        }
    }

    fn work(&mut self, ticket: Ticket, work: Work, payload: &[u8]) {
        let replies = self.rules.replies;
        let range = |offset: u64, length: u64| offset as usize..(offset + length) as usize;
        match work {
            Work::Read { offset, length, whole } => self.read(ticket, offset, length, whole),
            Work::Extents { offset, length, only_one, context } => {
                let extents = extents(&self.disk[range(offset, length)]);
                let question = (length, only_one);
                replies.extents(ticket, context, question, &extents, &mut self.out);
            }
            work => {
                match work {
                    Work::Write { offset, length, .. } => {
                        self.disk[range(offset, u64::from(length))].copy_from_slice(payload);
                    }
                    Work::Zero { offset, length, .. } | Work::Trim { offset, length, .. } => {
                        self.disk[range(offset, length)].fill(0);
                    }
                    _ => {}
                }
                replies.done(ticket, &mut self.out);
            }
        }
    }

    /// In pieces of a page where the client takes pieces, zeros as holes.
    fn read(&mut self, ticket: Ticket, offset: u64, length: u32, whole: bool) {
        let replies = self.rules.replies;
        let end = offset + u64::from(length);
        let mut at = offset;
        while at < end {
            let in_pieces = replies != Replies::Simple && !whole;
            let now = if in_pieces { (4096 - at % 4096).min(end - at) } else { end - at };
            let data = &self.disk[at as usize..(at + now) as usize];
            let last = at + now == end;
            let is_hole = in_pieces
                && data.iter().all(|&byte| byte == 0)
                && replies.hole(ticket, at, now as u32, last, &mut self.out);
            if !is_hole {
                let mut head = [0; Replies::MAX_DATA_HEAD_BYTES];
                let length = replies.data_head(ticket, at, now as u32, last, &mut head);
                self.out.extend_from_slice(&head[..length]);
                self.out.extend_from_slice(data);
            }
            at += now;
        }
    }
}

fn extents(bytes: &[u8]) -> Vec<Extent> {
    bytes
        .chunks(4096)
        .map(|page| {
            if page.iter().all(|&byte| byte == 0) {
                Extent::hole(page.len() as u64)
            } else {
                Extent::data(page.len() as u64)
            }
        })
        .collect()
}

/// Every other page is zeros.
fn disk() -> Vec<u8> {
    (0..DISK_BYTES)
        .map(|at| match at / 4096 % 2 {
            0 => 0,
            _ => (at.wrapping_mul(2_654_435_761) >> 11) as u8 | 1,
        })
        .collect()
}

fn rules_of(nature: u8) -> Rules {
    let replies = match nature % 3 {
        0 => Replies::Simple,
        1 => Replies::Structured,
        _ => Replies::Extended,
    };
    let asked = nature & 0x40 == 0 && replies != Replies::Simple;
    let mut flags = flags_of(abilities(nature & 0x80 != 0));
    if replies != Replies::Simple {
        flags = flags.with(TransmissionFlags::SEND_DF);
    }
    if replies == Replies::Extended && asked {
        flags = flags.with(TransmissionFlags::BLOCK_STATUS_PAYLOAD);
    }
    Rules {
        size_bytes: DISK_BYTES as u64,
        flags,
        block_sizes: BlockSizes {
            min_bytes: if nature & 0x20 == 0 { 1 } else { 512 },
            preferred_bytes: 4096,
            max_bytes: MAX_BLOCK_BYTES,
        },
        replies,
        allocation: asked.then_some(1),
    }
}

/// A client after its handshake. The first byte chooses what was agreed on, the second how much of
/// the rest comes at a time.
pub fn server_transmission(data: &[u8]) {
    let [nature, piece, bytes @ ..] = data else {
        return;
    };
    let rules = rules_of(*nature);
    let is_read_only = rules.flags.has(TransmissionFlags::READ_ONLY);
    let mut server = Server::new(rules);
    for piece in bytes.chunks(piece_of(*piece)) {
        let goes_on = server.take(piece);
        check_replies(&mut server);
        let most = MAX_BLOCK_BYTES as usize + 32 + 5000;
        assert!(server.input.len() <= most, "more is kept than one request");
        if !goes_on {
            break;
        }
    }
    assert!(!is_read_only || server.disk == disk(), "it was written");
}

/// What the server answers are replies to what was asked, each once, in order.
fn check_replies(server: &mut Server) {
    let out = std::mem::take(&mut server.out);
    let replies = server.rules.replies;
    let mut at = 0;
    while at < out.len() {
        let (header, length) =
            ReplyHeader::decode(&out[at..]).expect("a reply").expect("a whole reply");
        at += length;
        let (cookie, body_bytes, last) = match header {
            ReplyHeader::Simple(reply) => {
                assert_eq!(replies, Replies::Simple);
                assert_eq!(server.owed.front(), Some(&reply.cookie));
                // The data of a read have no length of their own; nothing behind can be checked.
                return server.owed.clear();
            }
            ReplyHeader::Chunk(chunk) => {
                assert_eq!(replies, Replies::Structured);
                check_chunk(chunk.kind, &out[at..at + chunk.length as usize]);
                (chunk.cookie, u64::from(chunk.length), chunk.flags == ChunkFlags::DONE)
            }
            ReplyHeader::Extended(chunk) => {
                assert_eq!(replies, Replies::Extended);
                check_chunk(chunk.kind, &out[at..at + chunk.length as usize]);
                (chunk.cookie, chunk.length, chunk.flags == ChunkFlags::DONE)
            }
        };
        at += body_bytes as usize;
        assert_eq!(server.owed.front(), Some(&cookie));
        if last {
            server.owed.pop_front();
        }
    }
    assert!(server.owed.is_empty(), "a request was not answered");
}

fn check_chunk(kind: ChunkKind, body: &[u8]) {
    match kind {
        ChunkKind::None => assert!(body.is_empty()),
        ChunkKind::Data => assert!(body.len() > 8),
        ChunkKind::Hole => {
            let (offset, length) = read_hole_body(body).expect("a hole");
            assert!(length > 0 && offset + u64::from(length) <= DISK_BYTES as u64);
        }
        ChunkKind::BlockStatus | ChunkKind::LongBlockStatus => {
            let (context, extents) = read_status_body(kind, body).expect("extents");
            let total: u64 = extents.iter().map(|extent| extent.length).sum();
            assert!(context == 1 && total <= DISK_BYTES as u64);
        }
        ChunkKind::Error | ChunkKind::ErrorAt => {
            let (error, words) = read_error_body(kind, body).expect("an error");
            assert!(error != ErrorCode::NONE && !words.is_empty());
        }
        ChunkKind::Other(_) => panic!("an unknown chunk"),
    }
}

fn wish(nature: u8) -> Wish {
    Wish { export: "disk".into(), tls: nature & 1 != 0, structured_replies: nature & 2 != 0 }
}

fn extras(nature: u8) -> Extras {
    Extras { extended_headers: nature & 0x40 != 0, allocation: nature & 0xc0 != 0, fence: None }
}

/// A server in its handshake, as our client hears it. The first byte chooses the client's wish.
pub fn client_handshake(data: &[u8]) {
    let Some((&nature, mut bytes)) = data.split_first() else {
        return;
    };
    let mut handshake = Handshake::with(wish(nature), extras(nature)).expect("the name is fine");
    loop {
        assert!(handshake.to_send().len() < 64 << 10);
        match handshake.step() {
            client::Step::Read(wanted) => {
                assert!(wanted > 0 && wanted <= 16 << 10, "it wants {wanted} bytes");
                let Some((next, rest)) = bytes.split_at_checked(wanted) else {
                    return;
                };
                bytes = rest;
                if handshake.received(next).is_err() {
                    return;
                }
            }
            client::Step::StartTls => handshake.tls_started(),
            client::Step::Done => {
                if let Some(offer) = handshake.into_offer() {
                    assert!(i64::try_from(offer.size_bytes).is_ok());
                }
                return;
            }
        }
    }
}

/// A server whose every byte is known beforehand, and which takes whatever is sent.
struct Said<'a>(&'a [u8]);

impl Transport for Said<'_> {
    fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn receive(&mut self, parts: &mut [IoSliceMut<'_>], _wait: bool) -> io::Result<usize> {
        let now = self.0.len().min(parts[0].len());
        let (head, rest) = self.0.split_at(now);
        parts[0][..now].copy_from_slice(head);
        self.0 = rest;
        Ok(now)
    }

    fn wait(&mut self, _or_room: bool, _most: Option<Duration>) -> io::Result<bool> {
        Ok(true)
    }
}

/// A server that is asked what it has. The first byte chooses whether through TLS.
pub fn client_inquiry(data: &[u8]) {
    let Some((&nature, bytes)) = data.split_first() else {
        return;
    };
    let Ok(mut inquiry) = Inquiry::begin(Said(bytes), Duration::from_secs(1)) else {
        return;
    };
    if inquiry.style() != Style::Fixed {
        return;
    }
    if nature & 1 != 0 {
        let Ok(encrypted) = inquiry.start_tls(Ok) else {
            return;
        };
        inquiry = encrypted;
    }
    let asked = (|| {
        inquiry.agrees_to(&OptionRequest::StructuredReply)?;
        if let Some(listing) = inquiry.list()? {
            assert!(listing.exports.len() <= MAX_LISTED);
        }
        inquiry.contexts("disk")?;
        inquiry.about("disk")
    })();
    if let Ok(Ok(learnt)) = asked {
        assert!(learnt.block_sizes.is_none_or(|sizes| sizes.check().is_ok()));
    }
}

const SLOTS: u32 = 8;
/// Number of block statuses in flight in addition.
const STATUSES: u32 = 2;
/// The context that they are about.
const CONTEXT: u32 = 1;
const SLOT_BYTES: u32 = 8 << 10;
const MEMORY_BYTES: usize = (SLOTS * SLOT_BYTES) as usize;

/// A server after the handshake, as our client hears it. The first byte chooses the style of replies,
/// the second how much of the rest comes at a time.
pub fn client_flight(data: &[u8]) {
    let [nature, piece, bytes @ ..] = data else {
        return;
    };
    let replies = match nature % 4 {
        0 => client::Replies::Simple,
        1 => client::Replies::Structured,
        _ => client::Replies::Extended,
    };
    let mut flight = Flight::new(replies, Some(CONTEXT));
    for slot in SLOTS..SLOTS + STATUSES {
        flight.begin_status(slot, u64::from(slot), 1 << 20).expect("the slots are free");
    }
    for slot in 0..SLOTS {
        let command = match slot % 4 {
            0 => Command::Flush,
            1 => Command::Write,
            _ => Command::Read,
        };
        let due = Due {
            slot,
            command,
            flags: CommandFlags::NONE,
            offset: u64::from(slot * SLOT_BYTES),
            length: SLOT_BYTES,
            memory_at: (slot * SLOT_BYTES) as usize,
        };
        flight.begin(&due, MEMORY_BYTES).expect("the slots are free");
    }
    let mut memory = vec![0xaa; MEMORY_BYTES];
    let mut answers = Vec::new();
    hear(&mut flight, bytes, piece_of(*piece), &mut memory, &mut answers);
    let all = (SLOTS + STATUSES) as usize;
    assert!(answers.len() <= all);
    assert_eq!(flight.in_flight() + answers.len(), all);
    for answer in answers.iter().filter(|answer| answer.slot >= SLOTS) {
        let extents = flight.take_extents(answer.slot);
        assert_eq!(extents.is_empty(), answer.error != ErrorCode::NONE);
        assert!(extents.len() <= MAX_EXTENTS);
        assert!(extents.iter().all(|extent| extent.length > 0));
    }
    // What is not a read's stays as it was.
    for slot in (0..SLOTS).filter(|slot| slot % 4 < 2) {
        let at = (slot * SLOT_BYTES) as usize;
        let own = &memory[at..at + SLOT_BYTES as usize];
        assert!(own.iter().all(|&byte| byte == 0xaa), "written elsewhere");
    }
}

/// Hands over bytes as a client gets them; false when the server breaks the protocol.
fn hear(
    flight: &mut Flight,
    bytes: &[u8],
    piece: usize,
    memory: &mut [u8],
    answers: &mut Vec<Answer>,
) -> bool {
    let mut stage: Vec<u8> = Vec::new();
    for piece in bytes.chunks(piece) {
        stage.extend_from_slice(piece);
        match flight.receive(&stage, memory, answers) {
            Ok(used) => {
                stage.drain(..used);
            }
            Err(_) => return false,
        }
        assert!(stage.len() <= 16 << 10, "more is kept than one message");
    }
    true
}
