//! A server of the tests' own: it takes and gives bytes, knows no socket, and can be told to be of
//! any age and in any mood.

#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;

use rubus_host::block::image::Image;
use rubus_nbd::server::export_table::{ExportTable, Offered, OneDisk};
use rubus_nbd::server::file_disk::FileDisk;
use rubus_nbd::server::listener::{Server as RealServer, Settings};
use rubus_nbd::wire::{
    BlockSizes, Chunk, ChunkFlags, ChunkKind, ClientFlags, Command, CommandFlags, ErrorCode,
    ExportName, Greeting, HandshakeFlags, Info, OPTION_HEADER_BYTES, OptionHeader, OptionReply,
    OptionRequest, Refusal, Request, SimpleReply, TransmissionFlags, write_error_body,
    write_hole_body,
};

/// The real server, with a writable file as its only export, "file".
pub fn server_of_file(path: &Path) -> Arc<RealServer> {
    let image = Image::open(path, true).expect("an image");
    let exports = ExportTable::new(vec![Offered {
        name: "file".into(),
        words: String::new(),
        source: Box::new(OneDisk {
            disk: Arc::new(FileDisk::new(Arc::new(image))),
            identity: None,
            sync: false,
        }),
    }]);
    RealServer::new(Arc::new(exports), Settings::default(), |_| {}).expect("a server")
}

/// What the server is like.
#[derive(Clone, Debug)]
pub struct Nature {
    pub oldstyle: bool,
    pub fixed: bool,
    pub no_zeroes: bool,
    pub knows_go: bool,
    pub structured: bool,
    pub tls_only: bool,
    pub has_tls: bool,
    pub exports: Vec<String>,
    pub flags: TransmissionFlags,
    pub block_sizes: Option<BlockSizes>,
    pub description: Option<String>,
    pub refusal: Option<(Refusal, String)>,
    /// Structured replies to reads come in pieces of this size; pages of zeros as holes.
    pub chunk_bytes: u32,
    /// Requests that touch this byte fail.
    pub bad_byte: Option<u64>,
}

impl Default for Nature {
    fn default() -> Self {
        Nature {
            oldstyle: false,
            fixed: true,
            no_zeroes: true,
            knows_go: true,
            structured: true,
            tls_only: false,
            has_tls: false,
            exports: vec![String::new()],
            flags: TransmissionFlags::HAS_FLAGS
                .with(TransmissionFlags::SEND_FLUSH)
                .with(TransmissionFlags::SEND_FUA),
            block_sizes: None,
            description: None,
            refusal: None,
            chunk_bytes: u32::MAX,
            bad_byte: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting,
    ClientFlags,
    Options,
    Requests,
    Ended,
}

/// A server with its disk.
#[derive(Debug)]
pub struct Server {
    nature: Nature,
    phase: Phase,
    structured: bool,
    encrypted: bool,
    input: Vec<u8>,
    pub output: Vec<u8>,
    pub disk: Vec<u8>,
    /// Every request that came, in order.
    pub requests: Vec<Request>,
}

impl Server {
    pub fn new(nature: Nature, disk: Vec<u8>) -> Self {
        let mut server = Server {
            phase: Phase::Greeting,
            structured: false,
            encrypted: false,
            input: Vec::new(),
            output: Vec::new(),
            disk,
            requests: Vec::new(),
            nature,
        };
        server.greet();
        server
    }

    /// Whether it has hung up.
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    fn greet(&mut self) {
        let size_bytes = self.disk.len() as u64;
        let flags = self.nature.flags;
        if self.nature.oldstyle {
            Greeting::Oldstyle { size_bytes, flags }.encode(&mut self.output);
            self.phase = Phase::Requests;
            return;
        }
        let mut flags = HandshakeFlags::NONE;
        if self.nature.fixed {
            flags = flags.with(HandshakeFlags::FIXED_NEWSTYLE);
        }
        if self.nature.no_zeroes {
            flags = flags.with(HandshakeFlags::NO_ZEROES);
        }
        Greeting::Newstyle(flags).encode(&mut self.output);
        self.phase = Phase::ClientFlags;
    }

    /// Takes what the client has sent.
    pub fn take(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        loop {
            let used = match self.phase {
                Phase::Greeting | Phase::Ended => 0,
                Phase::ClientFlags => self.client_flags(),
                Phase::Options => self.option(),
                Phase::Requests => self.request(),
            };
            if used == 0 {
                return;
            }
            self.input.drain(..used);
        }
    }

    fn client_flags(&mut self) -> usize {
        let Some(bytes) = self.input.first_chunk::<4>() else {
            return 0;
        };
        let flags = ClientFlags::decode(bytes).expect("four bytes are flags");
        assert_eq!(flags.has(ClientFlags::FIXED_NEWSTYLE), self.nature.fixed);
        assert_eq!(flags.has(ClientFlags::NO_ZEROES), self.nature.no_zeroes);
        self.phase = Phase::Options;
        4
    }

    fn option(&mut self) -> usize {
        let Some(head) = self.input.get(..OPTION_HEADER_BYTES) else {
            return 0;
        };
        let header = OptionHeader::decode(head).expect("the client sends options");
        let end = OPTION_HEADER_BYTES + header.length as usize;
        let Some(data) = self.input.get(OPTION_HEADER_BYTES..end) else {
            return 0;
        };
        let request = OptionRequest::decode(header.option, data).expect("options are well-formed");
        assert_eq!(request.number(), header.option);
        self.answer(&request);
        end
    }

    fn answer(&mut self, request: &OptionRequest) {
        let refuse = |why, text: &str| OptionReply::Refused { why, text: text.into() };
        let tls_missing = self.nature.tls_only && !self.encrypted;
        let replies = match request {
            OptionRequest::ExportName(name) if self.nature.exports.contains(name) => {
                let export =
                    ExportName { size_bytes: self.disk.len() as u64, flags: self.nature.flags };
                export.encode(self.nature.no_zeroes, &mut self.output);
                self.phase = Phase::Requests;
                return;
            }
            OptionRequest::ExportName(_) => {
                self.phase = Phase::Ended;
                return;
            }
            OptionRequest::StartTls if self.nature.has_tls => {
                self.encrypted = true;
                self.structured = false;
                vec![OptionReply::Ack]
            }
            _ if tls_missing => vec![refuse(Refusal::TlsRequired, "")],
            OptionRequest::StructuredReply if self.nature.structured => {
                self.structured = true;
                vec![OptionReply::Ack]
            }
            OptionRequest::List => {
                let names = self.nature.exports.iter().map(|name| OptionReply::Server {
                    name: name.clone(),
                    details: "a disk".into(),
                });
                names.chain([OptionReply::Ack]).collect()
            }
            OptionRequest::Go(info) if self.nature.knows_go => match &self.nature.refusal {
                Some((why, text)) => vec![refuse(*why, text)],
                None if self.nature.exports.contains(&info.export) => {
                    self.phase = Phase::Requests;
                    self.told()
                }
                None => vec![refuse(Refusal::Unknown, "no such export")],
            },
            _ => vec![refuse(Refusal::Unsupported, "")],
        };
        for reply in replies {
            reply.encode(request.number(), &mut self.output);
        }
    }

    fn told(&self) -> Vec<OptionReply> {
        let export = Info::Export { size_bytes: self.disk.len() as u64, flags: self.nature.flags };
        let sizes = self.nature.block_sizes.map(Info::BlockSize);
        let description = self.nature.description.clone().map(Info::Description);
        let infos = [Some(export), sizes, description];
        let infos = infos.into_iter().flatten().map(OptionReply::Info);
        infos.chain([OptionReply::Ack]).collect()
    }

    fn request(&mut self) -> usize {
        let Some(head) = self.input.get(..Request::BYTES) else {
            return 0;
        };
        let request = Request::decode(head).expect("the client sends requests");
        let payload = match request.command {
            Command::Write => request.length as usize,
            _ => 0,
        };
        let end = Request::BYTES + payload;
        if self.input.len() < end {
            return 0;
        }
        self.requests.push(request);
        if request.command == Command::Disconnect {
            self.phase = Phase::Ended;
            return end;
        }
        let (from, to) =
            (request.offset as usize, request.offset as usize + request.length as usize);
        let is_bad =
            self.nature.bad_byte.is_some_and(|bad| (from as u64..to as u64).contains(&bad));
        if is_bad {
            self.fail(&request);
            return end;
        }
        match request.command {
            Command::Read if self.structured => self.read_in_chunks(&request),
            Command::Read => {
                self.simple(&request, ErrorCode::NONE);
                self.output.extend_from_slice(&self.disk[from..to]);
            }
            Command::Write => {
                self.disk[from..to].copy_from_slice(&self.input[Request::BYTES..end]);
                self.simple(&request, ErrorCode::NONE);
            }
            Command::Flush => self.simple(&request, ErrorCode::NONE),
            _ => self.simple(&request, ErrorCode::INVALID),
        }
        end
    }

    fn simple(&mut self, request: &Request, error: ErrorCode) {
        let cookie = request.cookie;
        SimpleReply { error, cookie }.encode(&mut self.output);
    }

    fn fail(&mut self, request: &Request) {
        if !self.structured || request.command != Command::Read {
            self.simple(request, ErrorCode::IO);
            return;
        }
        let mut body = Vec::new();
        write_error_body(ErrorCode::IO, "bad byte", self.nature.bad_byte, &mut body);
        self.chunk(request, ChunkKind::ErrorAt, true, &body);
    }

    fn read_in_chunks(&mut self, request: &Request) {
        let end = request.offset + u64::from(request.length);
        let mut at = request.offset;
        while at < end {
            let bytes = u64::from(self.nature.chunk_bytes).min(end - at);
            let data = self.disk[at as usize..(at + bytes) as usize].to_vec();
            let mut body = Vec::new();
            let kind = if data.iter().all(|&byte| byte == 0) {
                write_hole_body(at, bytes as u32, &mut body);
                ChunkKind::Hole
            } else {
                body.extend_from_slice(&at.to_be_bytes());
                body.extend_from_slice(&data);
                ChunkKind::Data
            };
            at += bytes;
            // Half of the servers say "done" with the last piece, half afterwards.
            let finishes = at == end && request.cookie % 2 == 0;
            self.chunk(request, kind, finishes, &body);
        }
        if request.cookie % 2 == 1 {
            self.chunk(request, ChunkKind::None, true, &[]);
        }
    }

    fn chunk(&mut self, request: &Request, kind: ChunkKind, finishes: bool, body: &[u8]) {
        let chunk = Chunk {
            flags: if finishes { ChunkFlags::DONE } else { ChunkFlags::NONE },
            kind,
            cookie: request.cookie,
            length: body.len() as u32,
        };
        chunk.encode(&mut self.output);
        self.output.extend_from_slice(body);
    }
}

/// A disk of `bytes` bytes whose content depends on the offset, with blocks of zeros in between.
pub fn disk(bytes: usize) -> Vec<u8> {
    let byte = |at: usize| match at / 512 % 3 {
        0 => 0,
        _ => (at.wrapping_mul(2_654_435_761) >> 13) as u8 | 1,
    };
    (0..bytes).map(byte).collect()
}

/// Bytes with their offsets and characters, sixteen to a line.
pub fn hexdump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown: String = line
            .iter()
            .map(|&byte| match byte {
                b' '..=b'~' => char::from(byte),
                _ => '.',
            })
            .collect();
        text.push_str(&format!("    {:<47}  {shown}\n", hex.join(" ")));
    }
    text
}

/// A write that must be durable.
pub const DURABLE: CommandFlags = CommandFlags::FUA;
