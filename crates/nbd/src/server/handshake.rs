//! The server's side of the handshake, as a state machine that takes and gives bytes.
//!
//! The caller sends what [`ServerHandshake::to_send`] gives, does what [`ServerHandshake::step`] says
//! and hands over what the client sends, in pieces of any size. Before a client has shown what it is,
//! it costs little: an option has a length that is kept and one that is thrown away, there are so many
//! of them, and no option is looked at before the answer to the one before has been sent. Time and
//! the number of clients are the caller's to limit.

use super::disk::Abilities;
use super::transmission::{Replies, Rules, flags_of};
use crate::wire::{
    BASE_ALLOCATION, BlockSizes, ClientFlags, ContextRequest, ExportName, Greeting, HandshakeFlags,
    Info, InfoRequest, MOST_OPTION_BYTES, OPTION_HEADER_BYTES, OptionHeader, OptionReply,
    OptionRequest, Refusal, TransmissionFlags,
};

/// A client that has not come to the point with so many options is hung up on.
pub const MOST_OPTIONS: u32 = 256;
/// A client that has not come to the point with so many bytes is hung up on.
pub const MOST_HANDSHAKE_BYTES: u64 = 1 << 20;

/// Number of [`BASE_ALLOCATION`] in replies. There is no other context.
const ALLOCATION: u32 = 1;
const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const START_TLS: u32 = 5;

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsPolicy {
    /// Never.
    #[default]
    Off,
    /// As the client wants.
    Allow,
    /// Always: before it, nothing is told and nothing done.
    Require,
}

/// An export, as clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Size.
    pub size_bytes: u64,
    /// What can be done with it.
    pub abilities: Abilities,
    /// The sizes of requests.
    pub block_sizes: BlockSizes,
    /// Words about it.
    pub description: String,
}

/// Why a client does not get an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoExport {
    /// For programs.
    pub why: Refusal,
    /// For people.
    pub words: String,
}

/// What a server has. Both are asked before anybody has proved anything, so they are cheap and open
/// nothing.
pub trait Exports {
    /// Names, and words about each.
    fn list(&self) -> Vec<(String, String)>;

    /// The export of that name; of the empty name, the default.
    ///
    /// # Errors
    /// When there is none, or this client does not get it.
    fn find(&self, name: &str) -> Result<Export, NoExport>;
}

/// What the machine needs next, after what is to be sent has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes of the client, for [`ServerHandshake::received`].
    Receive,
    /// Both ends go on encrypted: start TLS, then call [`ServerHandshake::tls_started`].
    StartTls,
    /// Requests follow; see [`ServerHandshake::into_agreed`].
    Serve,
    /// Hang up; [`ServerHandshake::closing`] says why.
    Close,
}

/// Why there is no agreement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closing {
    /// The client says so.
    #[error("the client ended the handshake")]
    Aborted,
    /// It speaks something else, or breaks the rules in a way that cannot be answered.
    #[error("the client does not speak NBD as the protocol has it: {0}")]
    NotNbd(&'static str),
    /// It asked in the old way, which has no way of saying no.
    #[error("the client asked for the export '{name}' and does not get it: {words}")]
    NoExport {
        /// What it asked for.
        name: String,
        /// Why not.
        words: String,
    },
    /// It asked in the clear, in the old way.
    #[error("the client wanted to go on without TLS")]
    TlsRequired,
    /// It sent more in the clear after asking for TLS, which would have been taken for encrypted.
    #[error(
        "the client sent more in the clear after asking for TLS; somebody in between may have done that"
    )]
    Injected,
    /// It never comes to the point.
    #[error("the client did not come to the point within {0}")]
    Endless(&'static str),
}

/// What both ends have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The export.
    pub export: Export,
    /// What the client may ask for.
    pub rules: Rules,
    /// Whether TLS was started.
    pub encrypted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    ClientFlags,
    OptionHeader,
    OptionData(OptionHeader),
    /// Throws so many bytes of an option away.
    Skip(OptionHeader, u32),
    StartTls,
    Serve(Box<Agreed>),
    Close(Closing),
}

/// The handshake.
#[derive(Debug)]
pub struct ServerHandshake {
    policy: TlsPolicy,
    state: State,
    input: Vec<u8>,
    out: Vec<u8>,
    options: u32,
    total_bytes: u64,
    fixed: bool,
    no_zeroes: bool,
    encrypted: bool,
    replies: Replies,
    /// The export for which [`BASE_ALLOCATION`] was asked for.
    allocation_of: Option<String>,
}

impl ServerHandshake {
    /// A handshake that has not begun. The server speaks first.
    pub fn new(policy: TlsPolicy) -> Self {
        let mut out = Vec::new();
        let flags = HandshakeFlags::FIXED_NEWSTYLE.with(HandshakeFlags::NO_ZEROES);
        Greeting::Newstyle(flags).encode(&mut out);
        ServerHandshake {
            policy,
            state: State::ClientFlags,
            input: Vec::new(),
            out,
            options: 0,
            total_bytes: 0,
            fixed: false,
            no_zeroes: false,
            encrypted: false,
            replies: Replies::Simple,
            allocation_of: None,
        }
    }

    /// What is to be sent before the next step; empty when nothing is.
    pub fn to_send(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// What is needed next.
    pub fn step(&self) -> Step {
        match self.state {
            State::ClientFlags | State::OptionHeader | State::OptionData(_) | State::Skip(..) => {
                Step::Receive
            }
            State::StartTls => Step::StartTls,
            State::Serve(_) => Step::Serve,
            State::Close(_) => Step::Close,
        }
    }

    /// Takes bytes of the client, and gives how many of them. It takes none while something is to be
    /// sent, so the rest has to be given again after that; what is left in [`Step::Serve`] are
    /// requests.
    pub fn received(&mut self, bytes: &[u8], exports: &dyn Exports) -> usize {
        let mut used = 0;
        while used < bytes.len() && self.out.is_empty() && self.step() == Step::Receive {
            let rest = &bytes[used..];
            let now = match &mut self.state {
                State::Skip(header, left) => {
                    let now = rest.len().min(*left as usize);
                    *left -= now as u32;
                    if *left == 0 {
                        let header = *header;
                        self.state = State::OptionHeader;
                        self.too_long(header);
                    }
                    now
                }
                state => {
                    let needed = match state {
                        State::OptionHeader => OPTION_HEADER_BYTES,
                        State::OptionData(header) => header.length as usize,
                        _ => 4,
                    };
                    let now = rest.len().min(needed - self.input.len());
                    self.input.extend_from_slice(&rest[..now]);
                    if self.input.len() == needed {
                        let message = std::mem::take(&mut self.input);
                        self.message(&message, exports);
                    }
                    now
                }
            };
            used += now;
            self.total_bytes += now as u64;
        }
        if self.state == State::StartTls && used < bytes.len() {
            self.out.clear();
            self.close(Closing::Injected);
        }
        used
    }

    /// TLS has been started: everything from here on is encrypted. What was agreed in the clear is
    /// forgotten, for it may not have been the client that said it.
    pub fn tls_started(&mut self) {
        if self.state == State::StartTls {
            self.encrypted = true;
            self.replies = Replies::Simple;
            self.allocation_of = None;
            self.state = State::OptionHeader;
        }
    }

    /// Why there is no agreement, once there is none.
    pub fn closing(&self) -> Option<&Closing> {
        match &self.state {
            State::Close(why) => Some(why),
            _ => None,
        }
    }

    /// What was agreed on; nothing while the handshake is not over.
    pub fn into_agreed(self) -> Option<Agreed> {
        match self.state {
            State::Serve(agreed) => Some(*agreed),
            _ => None,
        }
    }

    fn close(&mut self, why: Closing) {
        self.state = State::Close(why);
    }

    fn message(&mut self, bytes: &[u8], exports: &dyn Exports) {
        match std::mem::replace(&mut self.state, State::OptionHeader) {
            State::ClientFlags => self.client_flags(bytes),
            State::OptionHeader => match OptionHeader::decode(bytes) {
                Ok(header) => self.option_began(header, exports),
                Err(_) => self.close(Closing::NotNbd("an option begins with a wrong mark")),
            },
            State::OptionData(header) => self.option(header.option, bytes, exports),
            state => self.state = state,
        }
    }

    fn client_flags(&mut self, bytes: &[u8]) {
        let known = ClientFlags::FIXED_NEWSTYLE.with(ClientFlags::NO_ZEROES);
        match ClientFlags::decode(bytes) {
            Ok(flags) if known.has(flags) => {
                self.fixed = flags.has(ClientFlags::FIXED_NEWSTYLE);
                self.no_zeroes = flags.has(ClientFlags::NO_ZEROES);
            }
            _ => self.close(Closing::NotNbd("its flags are unknown")),
        }
    }

    fn option_began(&mut self, header: OptionHeader, exports: &dyn Exports) {
        self.options += 1;
        let left = MOST_HANDSHAKE_BYTES.saturating_sub(self.total_bytes);
        if self.options > MOST_OPTIONS {
            return self.close(Closing::Endless("256 options"));
        }
        if u64::from(header.length) > left {
            return self.close(Closing::Endless("1 MiB"));
        }
        if !self.fixed && header.option != EXPORT_NAME {
            return self.close(Closing::NotNbd(
                "it sends an option that its own flags do not allow",
            ));
        }
        match header.length {
            0 => self.option(header.option, &[], exports),
            length if length as usize <= MOST_OPTION_BYTES => {
                self.state = State::OptionData(header);
            }
            length => self.state = State::Skip(header, length),
        }
    }

    fn tls_is_missing(&self) -> bool {
        self.policy == TlsPolicy::Require && !self.encrypted
    }

    /// An option was so long that it was thrown away.
    fn too_long(&mut self, header: OptionHeader) {
        if header.option == EXPORT_NAME {
            self.close(Closing::NotNbd("the name of an export is too long"));
        } else if self.tls_is_missing() && header.option != START_TLS {
            self.refuse_in_clear(header.option);
        } else {
            self.refuse(header.option, Refusal::TooBig, "the option is too long");
        }
    }

    fn refuse_in_clear(&mut self, option: u32) {
        let words = "this server wants TLS first";
        self.refuse(option, Refusal::TlsRequired, words);
    }

    fn option(&mut self, option: u32, data: &[u8], exports: &dyn Exports) {
        // Before anything else is looked at.
        if self.tls_is_missing() && !matches!(option, START_TLS | ABORT) {
            match option {
                EXPORT_NAME => self.close(Closing::TlsRequired),
                option => self.refuse_in_clear(option),
            }
            return;
        }
        let request = match OptionRequest::decode(option, data) {
            Ok(request) => request,
            Err(_) if option == EXPORT_NAME => {
                return self.close(Closing::NotNbd("the name of an export is not text"));
            }
            Err(why) => return self.refuse(option, Refusal::Invalid, &why.to_string()),
        };
        match request {
            OptionRequest::ExportName(name) => self.export_name(&name, exports),
            OptionRequest::Abort => {
                self.reply(option, &OptionReply::Ack);
                self.close(Closing::Aborted);
            }
            OptionRequest::List => {
                for (name, details) in exports.list() {
                    self.reply(option, &OptionReply::Server { name, details });
                }
                self.reply(option, &OptionReply::Ack);
            }
            OptionRequest::StartTls => self.start_tls(),
            OptionRequest::Info(info) => {
                self.tell(option, &info, exports);
            }
            OptionRequest::Go(info) => {
                if let Some(agreed) = self.tell(option, &info, exports) {
                    self.state = State::Serve(Box::new(agreed));
                }
            }
            OptionRequest::StructuredReply => match self.replies {
                Replies::Simple => {
                    self.replies = Replies::Structured;
                    self.reply(option, &OptionReply::Ack);
                }
                Replies::Structured => {
                    let words = "structured replies have been agreed on already";
                    self.refuse(option, Refusal::Invalid, words);
                }
                Replies::Extended => {
                    let words = "extended headers have been agreed on already";
                    self.refuse(option, Refusal::ExtendedHeaders, words);
                }
            },
            OptionRequest::ExtendedHeaders if self.replies == Replies::Extended => {
                let words = "extended headers have been agreed on already";
                self.refuse(option, Refusal::Invalid, words);
            }
            OptionRequest::ExtendedHeaders => {
                self.replies = Replies::Extended;
                self.reply(option, &OptionReply::Ack);
            }
            OptionRequest::ListContexts(contexts) => {
                let is_asked = contexts.queries.is_empty()
                    || contexts.queries.iter().any(|query| query == "base:");
                self.contexts(option, &contexts, is_asked, exports);
            }
            OptionRequest::SetContexts(contexts) => {
                // Whatever comes of this, what was agreed before holds no more.
                self.allocation_of = None;
                if self.contexts(option, &contexts, false, exports) {
                    self.allocation_of = Some(contexts.export);
                }
            }
            OptionRequest::Other { .. } => {
                let words = "this server does not know the option";
                self.refuse(option, Refusal::Unsupported, words);
            }
        }
    }

    fn reply(&mut self, option: u32, reply: &OptionReply) {
        reply.encode(option, &mut self.out);
    }

    fn refuse(&mut self, option: u32, why: Refusal, words: &str) {
        let text = words.into();
        self.reply(option, &OptionReply::Refused { why, text });
    }

    fn start_tls(&mut self) {
        let (why, words) = match self.policy {
            _ if self.encrypted => (Refusal::Invalid, "TLS has been started already"),
            TlsPolicy::Off => (Refusal::Policy, "TLS is switched off"),
            TlsPolicy::Allow | TlsPolicy::Require => {
                self.reply(START_TLS, &OptionReply::Ack);
                self.state = State::StartTls;
                return;
            }
        };
        self.refuse(START_TLS, why, words);
    }

    /// Asked in the way that knows no errors.
    fn export_name(&mut self, name: &str, exports: &dyn Exports) {
        match exports.find(name) {
            Ok(export) => {
                let agreed = self.agreed(name, export);
                ExportName {
                    size_bytes: agreed.rules.size_bytes,
                    flags: agreed.rules.flags,
                }
                .encode(self.no_zeroes, &mut self.out);
                self.state = State::Serve(Box::new(agreed));
            }
            Err(NoExport { words, .. }) => {
                let name = name.into();
                self.close(Closing::NoExport { name, words });
            }
        }
    }

    /// Tells about an export; gives what would be agreed on.
    fn tell(&mut self, option: u32, info: &InfoRequest, exports: &dyn Exports) -> Option<Agreed> {
        let export = match exports.find(&info.export) {
            Ok(export) => export,
            Err(NoExport { why, words }) => {
                self.refuse(option, why, &words);
                return None;
            }
        };
        let agreed = self.agreed(&info.export, export);
        let mut tell = |info| self.reply(option, &OptionReply::Info(info));
        tell(Info::Export {
            size_bytes: agreed.rules.size_bytes,
            flags: agreed.rules.flags,
        });
        let is_wanted = |number| info.wanted.contains(&number);
        if is_wanted(Info::NAME) {
            tell(Info::Name(agreed.export.name.clone()));
        }
        if is_wanted(Info::DESCRIPTION) && !agreed.export.description.is_empty() {
            tell(Info::Description(agreed.export.description.clone()));
        }
        if is_wanted(Info::BLOCK_SIZE) {
            tell(Info::BlockSize(agreed.export.block_sizes));
        }
        self.reply(option, &OptionReply::Ack);
        Some(agreed)
    }

    /// What is agreed on if the client takes the export that it calls `name`.
    fn agreed(&self, name: &str, export: Export) -> Agreed {
        let is_asked = self.allocation_of.as_deref() == Some(name);
        let allocation = (is_asked && export.abilities.knows_extents).then_some(ALLOCATION);
        let mut flags = flags_of(export.abilities);
        if self.replies != Replies::Simple {
            flags = flags.with(TransmissionFlags::SEND_DF);
        }
        if self.replies == Replies::Extended && allocation.is_some() {
            flags = flags.with(TransmissionFlags::BLOCK_STATUS_PAYLOAD);
        }
        let rules = Rules {
            size_bytes: export.size_bytes,
            flags,
            block_sizes: export.block_sizes,
            replies: self.replies,
            allocation,
        };
        Agreed {
            export,
            rules,
            encrypted: self.encrypted,
        }
    }

    /// Tells of the context that there is if it is asked for; gives whether that was so.
    fn contexts(
        &mut self,
        option: u32,
        contexts: &ContextRequest,
        all: bool,
        exports: &dyn Exports,
    ) -> bool {
        if self.replies == Replies::Simple {
            let words = "ask for structured replies first";
            self.refuse(option, Refusal::Invalid, words);
            return false;
        }
        let export = match exports.find(&contexts.export) {
            Ok(export) => export,
            Err(NoExport { why, words }) => {
                self.refuse(option, why, &words);
                return false;
            }
        };
        let is_asked = all
            || contexts
                .queries
                .iter()
                .any(|query| query == BASE_ALLOCATION);
        let is_told = is_asked && export.abilities.knows_extents;
        if is_told {
            let (id, name) = (ALLOCATION, BASE_ALLOCATION.into());
            self.reply(option, &OptionReply::Context { id, name });
        }
        self.reply(option, &OptionReply::Ack);
        is_told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{self, Handshake, Wish};
    use crate::wire::{OPTION_REPLY_HEADER_BYTES, OptionReplyHeader};

    struct Two;

    impl Exports for Two {
        fn list(&self) -> Vec<(String, String)> {
            vec![
                ("root".into(), "a disk".into()),
                ("ä".into(), String::new()),
            ]
        }

        fn find(&self, name: &str) -> Result<Export, NoExport> {
            match name {
                "" | "root" => Ok(Export {
                    name: "root".into(),
                    size_bytes: 1 << 30,
                    abilities: Abilities {
                        knows_extents: true,
                        ..Abilities::default()
                    },
                    block_sizes: BlockSizes::DEFAULT,
                    description: "a disk".into(),
                }),
                name => Err(NoExport {
                    why: Refusal::Unknown,
                    words: format!("no export '{name}'"),
                }),
            }
        }
    }

    /// Nobody may be asked for anything.
    struct Untouchable;

    impl Exports for Untouchable {
        fn list(&self) -> Vec<(String, String)> {
            panic!("the list was made for somebody in the clear")
        }

        fn find(&self, name: &str) -> Result<Export, NoExport> {
            panic!("'{name}' was looked for by somebody in the clear")
        }
    }

    const FIXED: [u8; 4] = [0, 0, 0, 3];

    /// A server that has been greeted by a client with these flags.
    fn begun(policy: TlsPolicy, flags: [u8; 4]) -> ServerHandshake {
        let mut server = ServerHandshake::new(policy);
        assert_eq!(server.to_send().len(), Greeting::NEWSTYLE_BYTES);
        assert_eq!(server.received(&flags, &Untouchable), 4);
        server
    }

    fn bytes_of(request: &OptionRequest) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        bytes
    }

    fn raw(option: u32, length: u32) -> Vec<u8> {
        let mut bytes = bytes_of(&OptionRequest::Other {
            option,
            data: Vec::new(),
        });
        bytes[12..16].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    fn ask(server: &mut ServerHandshake, request: &OptionRequest) -> Vec<OptionReply> {
        let bytes = bytes_of(request);
        assert_eq!(server.received(&bytes, &Two), bytes.len());
        replies(&server.to_send())
    }

    fn replies(mut bytes: &[u8]) -> Vec<OptionReply> {
        let mut replies = Vec::new();
        while !bytes.is_empty() {
            let (head, rest) = bytes.split_at(OPTION_REPLY_HEADER_BYTES);
            let header = OptionReplyHeader::decode(head).expect("a header");
            let (data, rest) = rest.split_at(header.length as usize);
            replies.push(OptionReply::decode(header.kind, data).expect("a reply"));
            bytes = rest;
        }
        replies
    }

    fn refusal(replies: &[OptionReply]) -> Refusal {
        match replies {
            [OptionReply::Refused { why, .. }] => *why,
            other => panic!("{other:?} is no refusal"),
        }
    }

    fn go(export: &str) -> OptionRequest {
        OptionRequest::Go(InfoRequest {
            export: export.into(),
            wanted: vec![Info::BLOCK_SIZE, Info::DESCRIPTION, Info::NAME],
        })
    }

    fn contexts(export: &str, queries: &[&str]) -> ContextRequest {
        ContextRequest {
            export: export.into(),
            queries: queries.iter().map(|&query| query.into()).collect(),
        }
    }

    /// Both ends against each other, with pieces of this size.
    fn both(wish: Wish, policy: TlsPolicy, piece: usize) -> (client::Offer, Agreed) {
        let mut client = Handshake::new(wish).expect("the wish is fine");
        let mut server = ServerHandshake::new(policy);
        let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
        loop {
            to_server.extend(client.to_send());
            to_client.extend(server.to_send());
            let now = to_server.len().min(piece);
            let used = server.received(&to_server[..now], &Two);
            to_server.drain(..used);
            match client.step() {
                client::Step::Read(bytes) if to_client.len() >= bytes => {
                    let bytes: Vec<u8> = to_client.drain(..bytes).collect();
                    client.received(&bytes).expect("an honest server");
                }
                client::Step::Read(_) => {}
                client::Step::StartTls => {
                    assert_eq!(server.step(), Step::StartTls);
                    client.tls_started();
                    server.tls_started();
                }
                client::Step::Done => {
                    assert_eq!(server.step(), Step::Serve);
                    assert!(to_client.is_empty() && server.to_send().is_empty());
                    let offer = client.into_offer().expect("an offer");
                    return (offer, server.into_agreed().expect("an agreement"));
                }
            }
        }
    }

    #[test]
    fn our_client_and_our_server_agree() {
        for (tls, policy) in [
            (false, TlsPolicy::Off),
            (false, TlsPolicy::Allow),
            (true, TlsPolicy::Allow),
            (true, TlsPolicy::Require),
        ] {
            for structured_replies in [false, true] {
                for piece in [1, 5, 1000] {
                    let wish = Wish {
                        export: String::new(),
                        tls,
                        structured_replies,
                    };
                    let (offer, agreed) = both(wish, policy, piece);
                    assert_eq!(offer.size_bytes, agreed.rules.size_bytes);
                    assert_eq!(offer.flags, agreed.rules.flags);
                    assert_eq!(offer.block_sizes, Some(BlockSizes::DEFAULT));
                    assert_eq!(offer.description.as_deref(), Some("a disk"));
                    assert_eq!(offer.structured_replies, structured_replies);
                    let structured = agreed.rules.replies == Replies::Structured;
                    assert_eq!(structured, structured_replies);
                    assert_eq!(agreed.encrypted, tls);
                    assert_eq!(agreed.export.name, "root");
                }
            }
        }
    }

    #[test]
    fn an_old_client_asks_by_name() {
        for (flags, length) in [([0, 0, 0, 0], 134), ([0, 0, 0, 1], 134), (FIXED, 10)] {
            let mut server = begun(TlsPolicy::Off, flags);
            let bytes = bytes_of(&OptionRequest::ExportName("root".into()));
            server.received(&bytes, &Two);
            let answer = server.to_send();
            assert_eq!(answer.len(), length);
            let export = ExportName::decode(&answer).expect("an export");
            assert_eq!(export.size_bytes, 1 << 30);
            assert_eq!(server.step(), Step::Serve);
            let agreed = server.into_agreed().expect("an agreement");
            assert_eq!(agreed.rules.replies, Replies::Simple);
        }
        // A missing export ends this client's connection and nothing else (CVE-2011-1925).
        let mut server = begun(TlsPolicy::Off, FIXED);
        server.received(&bytes_of(&OptionRequest::ExportName("boot".into())), &Two);
        assert_eq!(server.step(), Step::Close);
        assert!(matches!(server.closing(), Some(Closing::NoExport { .. })));
        assert!(server.to_send().is_empty());
    }

    #[test]
    fn an_old_client_has_no_other_options() {
        let mut server = begun(TlsPolicy::Off, [0; 4]);
        server.received(&bytes_of(&OptionRequest::List), &Untouchable);
        assert_eq!(server.step(), Step::Close);
    }

    #[test]
    fn an_unknown_option_is_refused_and_the_next_is_heard() {
        let mut server = begun(TlsPolicy::Off, FIXED);
        for option in [0, 4, 12, 13, 0xffff, u32::MAX] {
            for length in [0, 1, 4096, MOST_OPTION_BYTES] {
                let other = OptionRequest::Other {
                    option,
                    data: vec![0x49; length],
                };
                let replies = ask(&mut server, &other);
                assert_eq!(refusal(&replies), Refusal::Unsupported);
            }
        }
        assert_eq!(ask(&mut server, &OptionRequest::List).len(), 3);
    }

    #[test]
    fn a_long_option_is_thrown_away_and_the_next_is_heard() {
        for option in [3, 5, 6, 7, 8, 9, 10, 11, 99] {
            let mut server = begun(TlsPolicy::Off, FIXED);
            for length in [MOST_OPTION_BYTES + 1, 0xffff] {
                let mut bytes = raw(option, length as u32);
                bytes.resize(bytes.len() + length, 0xff);
                for piece in bytes.chunks(4000) {
                    assert_eq!(server.received(piece, &Untouchable), piece.len());
                    assert!(server.input.capacity() <= MOST_OPTION_BYTES);
                }
                assert_eq!(refusal(&replies(&server.to_send())), Refusal::TooBig);
            }
            assert_eq!(ask(&mut server, &OptionRequest::List).len(), 3);
        }
    }

    #[test]
    fn an_option_that_is_longer_than_everything_ends_it() {
        // CVE-2022-26495: 0xffffffff and one more was nothing.
        for option in 0..13 {
            for length in [1 << 21, 1 << 31, u32::MAX - 1, u32::MAX] {
                let mut server = begun(TlsPolicy::Off, FIXED);
                server.received(&raw(option, length), &Untouchable);
                assert_eq!(server.step(), Step::Close, "{option} {length}");
            }
        }
        let mut server = begun(TlsPolicy::Off, FIXED);
        let mut bytes = raw(1, MOST_OPTION_BYTES as u32 + 1);
        bytes.resize(bytes.len() + MOST_OPTION_BYTES + 1, b'a');
        server.received(&bytes, &Untouchable);
        assert_eq!(server.step(), Step::Close);
    }

    #[test]
    fn names_whose_length_is_not_that_of_the_option_are_refused() {
        // CVE-2022-26496, CVE-2017-15118.
        for option in [6, 7, 9, 10] {
            for length in [0, 1, 5, 0xffff, 1 << 31, u32::MAX - 1, u32::MAX] {
                for data_bytes in [0, 1, 3, 4, 5, 4097, 9000] {
                    let mut data = u32::to_be_bytes(length).to_vec();
                    data.resize(data_bytes, b'a');
                    let mut server = begun(TlsPolicy::Off, FIXED);
                    ask(&mut server, &OptionRequest::StructuredReply);
                    let replies = ask(&mut server, &OptionRequest::Other { option, data });
                    assert_eq!(refusal(&replies), Refusal::Invalid);
                    assert_eq!(ask(&mut server, &OptionRequest::List).len(), 3);
                }
            }
        }
    }

    #[test]
    fn a_client_comes_to_the_point_or_goes() {
        let mut server = begun(TlsPolicy::Off, FIXED);
        for _ in 0..MOST_OPTIONS {
            ask(&mut server, &OptionRequest::List);
        }
        server.received(&bytes_of(&OptionRequest::List), &Untouchable);
        assert_eq!(server.step(), Step::Close);
        let mut server = begun(TlsPolicy::Off, FIXED);
        let mut rounds = 0;
        while server.step() == Step::Receive {
            let mut bytes = raw(99, 40_000);
            bytes.resize(bytes.len() + 40_000, 0);
            let mut at = 0;
            while at < bytes.len() && server.step() == Step::Receive {
                at += server.received(&bytes[at..], &Untouchable);
                server.to_send();
            }
            rounds += 1;
        }
        assert_eq!(rounds, (MOST_HANDSHAKE_BYTES / 40_016 + 1) as u32);
    }

    #[test]
    fn a_flood_of_options_is_answered_one_by_one() {
        let mut server = begun(TlsPolicy::Off, FIXED);
        let flood = bytes_of(&OptionRequest::List).repeat(1000);
        let one = flood.len() / 1000;
        assert_eq!(server.received(&flood, &Two), one);
        assert_eq!(server.received(&flood[one..], &Two), 0, "nobody reads");
        assert_eq!(replies(&server.to_send()).len(), 3);
        assert_eq!(server.received(&flood[one..], &Two), one);
    }

    #[test]
    fn a_failed_go_may_be_tried_again() {
        let mut server = begun(TlsPolicy::Off, FIXED);
        for name in ["boot", "ROOT", "root\0"] {
            assert_eq!(refusal(&ask(&mut server, &go(name))), Refusal::Unknown);
            assert_eq!(server.step(), Step::Receive);
        }
        assert_eq!(ask(&mut server, &go("root")).len(), 5);
        assert_eq!(server.step(), Step::Serve);
        // What comes now is no option any more.
        assert_eq!(server.received(&bytes_of(&go("root")), &Untouchable), 0);
    }

    #[test]
    fn a_client_may_go_at_any_time() {
        for policy in [TlsPolicy::Off, TlsPolicy::Require] {
            let mut server = begun(policy, FIXED);
            let data = b"bye".to_vec();
            let bytes = bytes_of(&OptionRequest::Other { option: 2, data });
            server.received(&bytes, &Untouchable);
            assert_eq!(replies(&server.to_send()), [OptionReply::Ack]);
            assert_eq!(server.closing(), Some(&Closing::Aborted));
        }
    }

    #[test]
    fn whoever_speaks_something_else_is_hung_up_on() {
        for first in [[0, 0, 0, 4], [0, 0, 1, 3], [0x16, 3, 1, 0], *b"GET "] {
            let server = begun(TlsPolicy::Off, first);
            assert_eq!(server.step(), Step::Close, "{first:?}");
        }
        let mut server = begun(TlsPolicy::Off, FIXED);
        server.received(b"IHAVEOPS\0\0\0\x03\0\0\0\0", &Untouchable);
        assert_eq!(server.step(), Step::Close);
    }

    #[test]
    fn without_tls_nothing_is_told_where_it_is_required() {
        let name = || "root".to_string();
        let mut server = begun(TlsPolicy::Require, FIXED);
        let info = InfoRequest {
            export: name(),
            wanted: Vec::new(),
        };
        for request in [
            OptionRequest::List,
            OptionRequest::Info(info),
            go("root"),
            OptionRequest::StructuredReply,
            OptionRequest::ExtendedHeaders,
            OptionRequest::ListContexts(contexts("root", &[])),
            OptionRequest::SetContexts(contexts("root", &[BASE_ALLOCATION])),
            OptionRequest::Other {
                option: 77,
                data: vec![1, 2, 3],
            },
            // Not even whether it is well-formed.
            OptionRequest::Other {
                option: 7,
                data: vec![0xff; 5],
            },
        ] {
            server.received(&bytes_of(&request), &Untouchable);
            let answer = replies(&server.to_send());
            assert_eq!(refusal(&answer), Refusal::TlsRequired, "{request:?}");
            assert!(!format!("{answer:?}").contains("root"));
        }
        server.received(&bytes_of(&OptionRequest::ExportName(name())), &Untouchable);
        assert_eq!(server.closing(), Some(&Closing::TlsRequired));
        let mut old = begun(TlsPolicy::Require, [0; 4]);
        old.received(&bytes_of(&OptionRequest::ExportName(name())), &Untouchable);
        assert_eq!(old.closing(), Some(&Closing::TlsRequired));
    }

    #[test]
    fn tls_forgets_what_was_said_in_the_clear() {
        // CVE-2021-3716: an option of somebody in between held after the upgrade.
        let mut server = begun(TlsPolicy::Allow, FIXED);
        ask(&mut server, &OptionRequest::ExtendedHeaders);
        let set = OptionRequest::SetContexts(contexts("root", &[BASE_ALLOCATION]));
        assert_eq!(ask(&mut server, &set).len(), 2);
        assert_eq!(
            ask(&mut server, &OptionRequest::StartTls),
            [OptionReply::Ack]
        );
        assert_eq!(server.step(), Step::StartTls);
        server.tls_started();
        ask(&mut server, &go("root"));
        let agreed = server.into_agreed().expect("an agreement");
        assert!(agreed.encrypted);
        assert_eq!(agreed.rules.replies, Replies::Simple);
        assert_eq!(agreed.rules.allocation, None);
    }

    #[test]
    fn what_follows_starttls_in_the_clear_is_an_attack() {
        for policy in [TlsPolicy::Allow, TlsPolicy::Require] {
            let start = bytes_of(&OptionRequest::StartTls);
            for more in [
                &bytes_of(&OptionRequest::StructuredReply)[..],
                b"I",
                &[0x16, 3, 1],
            ] {
                let mut server = begun(policy, FIXED);
                server.received(&[&start, more].concat(), &Untouchable);
                assert_eq!(server.closing(), Some(&Closing::Injected));
                assert!(server.to_send().is_empty());
            }
        }
    }

    #[test]
    fn tls_starts_once_and_only_where_it_is_wanted() {
        let mut server = begun(TlsPolicy::Off, FIXED);
        assert_eq!(
            refusal(&ask(&mut server, &OptionRequest::StartTls)),
            Refusal::Policy
        );
        let mut server = begun(TlsPolicy::Require, FIXED);
        let data = vec![1];
        let lie = OptionRequest::Other { option: 5, data };
        assert_eq!(refusal(&ask(&mut server, &lie)), Refusal::Invalid);
        ask(&mut server, &OptionRequest::StartTls);
        server.tls_started();
        assert_eq!(
            refusal(&ask(&mut server, &OptionRequest::StartTls)),
            Refusal::Invalid
        );
    }

    #[test]
    fn contexts_are_agreed_on_for_one_export() {
        let allocation = OptionReply::Context {
            id: ALLOCATION,
            name: BASE_ALLOCATION.into(),
        };
        let with = |queries: &[&str]| OptionRequest::SetContexts(contexts("root", queries));
        let mut server = begun(TlsPolicy::Off, FIXED);
        assert_eq!(
            refusal(&ask(&mut server, &with(&[BASE_ALLOCATION]))),
            Refusal::Invalid
        );
        ask(&mut server, &OptionRequest::StructuredReply);
        for (queries, is_told) in [
            (&[][..], true),
            (&["base:"], true),
            (&[BASE_ALLOCATION], true),
            (&["qemu:dirty-bitmap:x", "base:allocation"], true),
            (&["base", "base:alloc", "qemu:", ""], false),
        ] {
            let list = OptionRequest::ListContexts(contexts("root", queries));
            let replies = ask(&mut server, &list);
            assert_eq!(replies.contains(&allocation), is_told, "{queries:?}");
        }
        for (queries, is_told) in [
            (&[][..], false),
            (&["base:"], false),
            (&["x:y", BASE_ALLOCATION], true),
            (&["x:y"], false),
        ] {
            let replies = ask(&mut server, &with(queries));
            assert_eq!(replies.contains(&allocation), is_told, "{queries:?}");
            assert_eq!(server.allocation_of.is_some(), is_told);
        }
        // What is refused undoes what was agreed on before.
        ask(&mut server, &with(&[BASE_ALLOCATION]));
        let other = OptionRequest::SetContexts(contexts("boot", &[BASE_ALLOCATION]));
        assert_eq!(refusal(&ask(&mut server, &other)), Refusal::Unknown);
        assert_eq!(server.allocation_of, None);
        // The same export by another name is another export.
        ask(&mut server, &with(&[BASE_ALLOCATION]));
        ask(&mut server, &go(""));
        let agreed = server.into_agreed().expect("an agreement");
        assert_eq!(agreed.rules.allocation, None);
    }

    #[test]
    fn extended_headers_bring_the_filter_with_them() {
        let mut server = begun(TlsPolicy::Off, FIXED);
        let extended = OptionRequest::ExtendedHeaders;
        assert_eq!(ask(&mut server, &extended), [OptionReply::Ack]);
        assert_eq!(refusal(&ask(&mut server, &extended)), Refusal::Invalid);
        assert_eq!(
            refusal(&ask(&mut server, &OptionRequest::StructuredReply)),
            Refusal::ExtendedHeaders
        );
        let set = OptionRequest::SetContexts(contexts("root", &[BASE_ALLOCATION]));
        ask(&mut server, &set);
        ask(&mut server, &go("root"));
        let rules = server.into_agreed().expect("an agreement").rules;
        assert_eq!(rules.replies, Replies::Extended);
        assert_eq!(rules.allocation, Some(ALLOCATION));
        let flags = TransmissionFlags::BLOCK_STATUS_PAYLOAD.with(TransmissionFlags::SEND_DF);
        assert!(rules.flags.has(flags));
    }
}
