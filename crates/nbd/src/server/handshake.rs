//! The server's side of the handshake, as a state machine that takes and gives bytes.
//!
//! The caller sends what [`ServerHandshake::to_send`] gives, does what [`ServerHandshake::step`] says
//! and hands over what the client sends, in pieces of any size. Before a client has shown what it is,
//! it costs little: the length of an option kept in memory, the length of one skipped and the number
//! of options are limited, and no option is looked at before the answer to the previous one has been
//! sent. Limiting the time and the number of clients is up to the caller.

use super::disk::Abilities;
use super::transmission::{Replies, Rules, flags_of};
use crate::peer::PeerCertificate;
use crate::wire::{
    BASE_ALLOCATION, BlockSizes, Claim, ClientFlags, ContextRequest, ExportName, Greeting,
    HandshakeFlags, Info, InfoRequest, MAX_OPTION_BYTES, OPTION_HEADER_BYTES, OptionHeader,
    OptionReply, OptionRequest, Refusal, TransmissionFlags,
};

/// A client is disconnected after this many options without an agreement.
pub const MAX_OPTIONS: u32 = 256;
/// A client is disconnected after this many bytes without an agreement.
pub const MAX_HANDSHAKE_BYTES: u64 = 1 << 20;

/// Number of [`BASE_ALLOCATION`] in replies. There is no other context.
const ALLOCATION: u32 = 1;
const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const START_TLS: u32 = 5;

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsPolicy {
    /// No TLS.
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
    pub name: String,
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
    /// The protocol's error code.
    pub why: Refusal,
    /// The message for a human reader.
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

    /// Whether a client with this certificate, or with none, may ask for the export of that name at all.
    ///
    /// # Errors
    /// If this client may not ask for it.
    fn admits(&self, name: &str, peer: Option<&PeerCertificate>) -> Result<(), NoExport>;
}

/// What the machine needs next, after what is to be sent has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bytes of the client, for [`ServerHandshake::received`].
    Receive,
    /// Both ends go on encrypted: start TLS, then call [`ServerHandshake::tls_started`].
    StartTls,
    /// What the client's claim replaces is to be ended: see [`ServerHandshake::claim`], then call
    /// [`ServerHandshake::fenced`].
    Fence,
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
        /// The reason for the refusal.
        words: String,
    },
    /// It asked in the clear, in the old way.
    #[error("the client wanted to continue without TLS")]
    TlsRequired,
    /// It sent more in the clear after asking for TLS, which would have been taken for encrypted.
    #[error(
        "the client sent more in the clear after asking for TLS; someone in between may have done that"
    )]
    Injected,
    /// What its earlier connection left behind has not ended, or a newer one was here first.
    #[error("{0}")]
    NotFenced(&'static str),
    /// It never comes to the point.
    #[error("the handshake exceeded its limit of {0}")]
    Endless(&'static str),
}

/// What both ends have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
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
    /// Skips this many bytes of an option.
    Skip(OptionHeader, u32),
    StartTls,
    /// What has been agreed on, and what says so, by this option.
    Fence(Box<Agreed>, u32, Vec<u8>),
    Serve(Box<Agreed>),
    Close(Closing),
}

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
    fences: bool,
    claim: Option<Claim>,
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
            fences: false,
            claim: None,
        }
    }

    /// One that lets a client say which connection it replaces; the caller ends that.
    #[must_use]
    pub fn fencing(mut self) -> Self {
        self.fences = true;
        self
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
            State::Fence(..) => Step::Fence,
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
            self.claim = None;
            self.state = State::OptionHeader;
        }
    }

    /// Which connection the client says that it is.
    pub fn claim(&self) -> Option<Claim> {
        self.claim
    }

    /// What the client's claim replaces has ended, or has not.
    pub fn fenced(&mut self, done: Result<(), &'static str>) {
        match std::mem::replace(&mut self.state, State::OptionHeader) {
            State::Fence(agreed, option, assent) => match done {
                Ok(()) => {
                    self.out.extend_from_slice(&assent);
                    self.state = State::Serve(agreed);
                }
                Err(words) if option == EXPORT_NAME => self.close(Closing::NotFenced(words)),
                Err(words) => self.refuse(option, Refusal::Policy, words),
            },
            state => self.state = state,
        }
    }

    /// Requests follow, as soon as what the client replaces has ended.
    fn agree(&mut self, agreed: Agreed, option: u32) {
        let agreed = Box::new(agreed);
        self.state = match self.claim {
            Some(_) => State::Fence(agreed, option, std::mem::take(&mut self.out)),
            None => State::Serve(agreed),
        };
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
        let left = MAX_HANDSHAKE_BYTES.saturating_sub(self.total_bytes);
        if self.options > MAX_OPTIONS {
            return self.close(Closing::Endless("256 options"));
        }
        if u64::from(header.length) > left {
            return self.close(Closing::Endless("1 MiB"));
        }
        if !self.fixed && header.option != EXPORT_NAME {
            return self
                .close(Closing::NotNbd("it sends an option that its own flags do not allow"));
        }
        match header.length {
            0 => self.option(header.option, &[], exports),
            length if length as usize <= MAX_OPTION_BYTES => {
                self.state = State::OptionData(header);
            }
            length => self.state = State::Skip(header, length),
        }
    }

    fn tls_is_missing(&self) -> bool {
        self.policy == TlsPolicy::Require && !self.encrypted
    }

    /// Answers an option that was too long and has been skipped.
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
                    self.agree(agreed, option);
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
            OptionRequest::Fence(claim) if self.fences => {
                self.claim = Some(claim);
                self.reply(option, &OptionReply::Ack);
            }
            OptionRequest::Fence(_) | OptionRequest::Other { .. } => {
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
                ExportName { size_bytes: agreed.rules.size_bytes, flags: agreed.rules.flags }
                    .encode(self.no_zeroes, &mut self.out);
                self.agree(agreed, EXPORT_NAME);
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
        tell(Info::Export { size_bytes: agreed.rules.size_bytes, flags: agreed.rules.flags });
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
        Agreed { export, rules, encrypted: self.encrypted }
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
        let is_asked = all || contexts.queries.iter().any(|query| query == BASE_ALLOCATION);
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
mod tests;
