//! The client's side of the handshake, as a state machine that takes and gives bytes.
//!
//! Every message of a server says how long it is, so the machine always knows how many bytes it
//! needs next and never reads past the end of the handshake. The caller sends what [`Handshake::to_send`]
//! gives, and then does what [`Handshake::step`] says.

use super::error::HandshakeError;
use super::flight::Replies;
use crate::wire::{
    BASE_ALLOCATION, BlockSizes, Claim, ClientFlags, ContextRequest, ExportName, FENCE, Greeting,
    HandshakeFlags, Info, InfoRequest, Malformed, OPTION_REPLY_HEADER_BYTES, OptionReply,
    OptionReplyHeader, OptionRequest, Refusal, TransmissionFlags,
};

/// Number of export names kept for the error message.
const MAX_NAMES: usize = 20;
/// Maximum number of replies to one option.
const MAX_REPLIES: u32 = 10_000;

/// What the client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Name of the export; empty for the server's default.
    pub export: String,
    /// Encrypted, or not at all.
    pub tls: bool,
    /// Structured replies where the server has them.
    pub structured_replies: bool,
}

/// What a client may ask for beyond its [`Wish`], of servers that have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Extended headers, in place of structured replies.
    pub extended_headers: bool,
    /// What takes space and what reads as zeros (BLOCK_STATUS in the context `base:allocation`).
    pub allocation: bool,
    /// That what an earlier connection of the same attachment left behind is ended first.
    pub fence: Option<Claim>,
}

/// What the machine needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read exactly this many bytes from the server, for [`Handshake::received`].
    Read(usize),
    /// Both ends go on encrypted: start TLS, then call [`Handshake::tls_started`].
    StartTls,
    /// The handshake is over; see [`Handshake::into_offer`].
    Done,
}

/// How far a server has come with the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Fixed newstyle: options and answers.
    Fixed,
    /// Newstyle before it was fixed: the client names an export and hopes.
    Newstyle,
    /// One export without a name.
    Oldstyle,
}

impl Style {
    /// The name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Style::Fixed => "fixed newstyle",
            Style::Newstyle => "newstyle",
            Style::Oldstyle => "oldstyle",
        }
    }
}

/// What both ends have agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The server's style.
    pub style: Style,
    /// Size of the export.
    pub size_bytes: u64,
    /// What can be done with it.
    pub flags: TransmissionFlags,
    /// The block sizes, where the server named them.
    pub block_sizes: Option<BlockSizes>,
    /// Reads are answered with structured replies.
    pub structured_replies: bool,
    /// Headers have lengths of 64 bits; then replies are structured, too.
    pub extended_headers: bool,
    /// The number of the context `base:allocation`, if BLOCK_STATUS tells it.
    pub allocation: Option<u32>,
    /// The server's words about the export.
    pub description: Option<String>,
    /// Nothing of the connections that this one replaces is done any more.
    pub fenced: bool,
}

impl Offer {
    /// How the server answers.
    pub fn replies(&self) -> Replies {
        match (self.extended_headers, self.structured_replies) {
            (true, _) => Replies::Extended,
            (false, true) => Replies::Structured,
            (false, false) => Replies::Simple,
        }
    }

    /// The block sizes that hold, named or not.
    pub fn blocks(&self) -> BlockSizes {
        self.block_sizes.unwrap_or(BlockSizes::DEFAULT)
    }
}

/// What the machine waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    GreetingMark,
    Greeting(Vec<u8>),
    ReplyHeader(Asked),
    ReplyData(Asked, OptionReplyHeader),
    ExportName,
    StartTls,
    Done,
}

/// The option that was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    StartTls,
    Fence,
    ExtendedHeaders,
    StructuredReply,
    SetContexts,
    Go,
    List,
}

impl Asked {
    fn number(self) -> u32 {
        match self {
            Asked::List => 3,
            Asked::StartTls => 5,
            Asked::Fence => FENCE,
            Asked::Go => 7,
            Asked::StructuredReply => 8,
            Asked::SetContexts => 10,
            Asked::ExtendedHeaders => 11,
        }
    }
}

#[derive(Debug)]
pub struct Handshake {
    wish: Wish,
    extras: Extras,
    state: State,
    out: Vec<u8>,
    replies: u32,
    no_zeroes: bool,
    encrypted: bool,
    known: Vec<String>,
    more: bool,
    size_and_flags: Option<(u64, TransmissionFlags)>,
    offer: Offer,
}

impl Handshake {
    /// A handshake that has not begun. The server speaks first.
    ///
    /// # Errors
    /// When the name of the export cannot be asked for.
    pub fn new(wish: Wish) -> Result<Self, HandshakeError> {
        Handshake::with(wish, Extras::default())
    }

    /// [`Handshake::new`] with extensions, which the server need not support.
    ///
    /// # Errors
    /// If the export's name is not valid in the protocol.
    pub fn with(wish: Wish, extras: Extras) -> Result<Self, HandshakeError> {
        if !crate::wire::fits_a_string(&wish.export) {
            return Err(HandshakeError::BadName);
        }
        Ok(Handshake {
            wish,
            extras,
            state: State::GreetingMark,
            out: Vec::new(),
            replies: 0,
            no_zeroes: false,
            encrypted: false,
            known: Vec::new(),
            more: false,
            size_and_flags: None,
            offer: Offer {
                style: Style::Fixed,
                size_bytes: 0,
                flags: TransmissionFlags::NONE,
                block_sizes: None,
                structured_replies: false,
                extended_headers: false,
                allocation: None,
                description: None,
                fenced: false,
            },
        })
    }

    /// What is to be sent before the next step; empty when nothing is.
    pub fn to_send(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// What is needed next.
    pub fn step(&self) -> Step {
        match &self.state {
            State::GreetingMark => Step::Read(Greeting::MARK_BYTES),
            State::Greeting(mark) => match Greeting::length(mark) {
                Ok(length) => Step::Read(length - mark.len()),
                // Found out when the mark came.
                Err(_) => Step::Done,
            },
            State::ReplyHeader(_) => Step::Read(OPTION_REPLY_HEADER_BYTES),
            State::ReplyData(_, header) => Step::Read(header.length as usize),
            State::ExportName => Step::Read(ExportName::length(self.no_zeroes)),
            State::StartTls => Step::StartTls,
            State::Done => Step::Done,
        }
    }

    /// Takes the bytes that [`Handshake::step`] asked for.
    ///
    /// # Errors
    /// When the server breaks the protocol or does not agree; the handshake is over then.
    pub fn received(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::GreetingMark => {
                Greeting::length(bytes).map_err(|_| HandshakeError::NotNbd)?;
                self.state = State::Greeting(bytes.to_vec());
                Ok(())
            }
            State::Greeting(mut greeting) => {
                greeting.extend_from_slice(bytes);
                self.greeted(Greeting::decode(&greeting)?)
            }
            State::ReplyHeader(asked) => self.reply_began(asked, OptionReplyHeader::decode(bytes)?),
            State::ReplyData(asked, header) => {
                let reply = OptionReply::decode(header.kind, bytes)?;
                self.replied(asked, reply)
            }
            State::ExportName => {
                let export = ExportName::decode(bytes)?;
                self.agree(export.size_bytes, export.flags)
            }
            state @ (State::StartTls | State::Done) => {
                self.state = state;
                Ok(())
            }
        }
    }

    /// TLS has been started: everything from here on is encrypted. What was agreed in the clear is
    /// forgotten.
    pub fn tls_started(&mut self) {
        if self.state == State::StartTls {
            self.encrypted = true;
            self.after_tls();
        }
    }

    /// What was agreed on; nothing while the handshake is not over.
    pub fn into_offer(self) -> Option<Offer> {
        (self.state == State::Done && self.size_and_flags.is_some()).then_some(self.offer)
    }

    fn greeted(&mut self, greeting: Greeting) -> Result<(), HandshakeError> {
        let theirs = match greeting {
            Greeting::Newstyle(flags) => flags,
            Greeting::Oldstyle { size_bytes, flags } => return self.oldstyle(size_bytes, flags),
        };
        let fixed = theirs.has(HandshakeFlags::FIXED_NEWSTYLE);
        self.no_zeroes = theirs.has(HandshakeFlags::NO_ZEROES);
        let mut ours = ClientFlags::NONE;
        if fixed {
            ours = ours.with(ClientFlags::FIXED_NEWSTYLE);
        }
        if self.no_zeroes {
            ours = ours.with(ClientFlags::NO_ZEROES);
        }
        ours.encode(&mut self.out);
        if !fixed {
            self.offer.style = Style::Newstyle;
            if self.wish.tls {
                return Err(HandshakeError::NoTls(String::new()));
            }
            self.ask_by_name();
        } else if self.wish.tls {
            self.ask(Asked::StartTls, &OptionRequest::StartTls);
        } else {
            self.after_tls();
        }
        Ok(())
    }

    fn oldstyle(
        &mut self,
        size_bytes: u64,
        flags: TransmissionFlags,
    ) -> Result<(), HandshakeError> {
        self.offer.style = Style::Oldstyle;
        if self.wish.tls {
            return Err(HandshakeError::NoTls(String::new()));
        }
        if !self.wish.export.is_empty() {
            return Err(HandshakeError::NoNames(self.wish.export.clone()));
        }
        self.agree(size_bytes, flags)
    }

    fn after_tls(&mut self) {
        match self.extras.fence {
            Some(claim) => self.ask(Asked::Fence, &OptionRequest::Fence(claim)),
            None => self.after_fence(),
        }
    }

    fn after_fence(&mut self) {
        if self.extras.extended_headers {
            self.ask(Asked::ExtendedHeaders, &OptionRequest::ExtendedHeaders);
        } else {
            self.without_extended_headers();
        }
    }

    fn without_extended_headers(&mut self) {
        if self.wish.structured_replies {
            self.ask(Asked::StructuredReply, &OptionRequest::StructuredReply);
        } else {
            self.go();
        }
    }

    /// Contexts go with structured replies and with nothing less.
    fn after_replies(&mut self) {
        self.offer.structured_replies = true;
        if !self.extras.allocation {
            return self.go();
        }
        let request = ContextRequest {
            export: self.wish.export.clone(),
            queries: vec![BASE_ALLOCATION.into()],
        };
        self.ask(Asked::SetContexts, &OptionRequest::SetContexts(request));
    }

    fn go(&mut self) {
        let info = InfoRequest {
            export: self.wish.export.clone(),
            wanted: vec![Info::BLOCK_SIZE, Info::DESCRIPTION],
        };
        self.ask(Asked::Go, &OptionRequest::Go(info));
    }

    fn ask_by_name(&mut self) {
        OptionRequest::ExportName(self.wish.export.clone()).encode(&mut self.out);
        self.state = State::ExportName;
    }

    fn ask(&mut self, asked: Asked, request: &OptionRequest) {
        request.encode(&mut self.out);
        self.replies = 0;
        self.state = State::ReplyHeader(asked);
    }

    fn reply_began(
        &mut self,
        asked: Asked,
        header: OptionReplyHeader,
    ) -> Result<(), HandshakeError> {
        if header.option != asked.number() {
            return Err(HandshakeError::Unasked(header.option));
        }
        self.replies += 1;
        if self.replies > MAX_REPLIES {
            return Err(HandshakeError::Endless);
        }
        if header.length > 0 {
            self.state = State::ReplyData(asked, header);
            return Ok(());
        }
        let reply = OptionReply::decode(header.kind, &[])?;
        self.replied(asked, reply)
    }

    fn replied(&mut self, asked: Asked, reply: OptionReply) -> Result<(), HandshakeError> {
        match (asked, reply) {
            (_, OptionReply::Refused { why: Refusal::TlsRequired, .. }) if !self.encrypted => {
                Err(HandshakeError::TlsRequired)
            }
            (Asked::StartTls, OptionReply::Ack) => {
                self.state = State::StartTls;
                Ok(())
            }
            (Asked::StartTls, OptionReply::Refused { text, .. }) => {
                Err(HandshakeError::NoTls(text))
            }
            (Asked::Fence, OptionReply::Ack) => {
                self.offer.fenced = true;
                self.after_fence();
                Ok(())
            }
            (Asked::Fence, OptionReply::Refused { .. }) => {
                self.after_fence();
                Ok(())
            }
            (Asked::ExtendedHeaders, OptionReply::Ack) => {
                self.offer.extended_headers = true;
                self.after_replies();
                Ok(())
            }
            (Asked::ExtendedHeaders, OptionReply::Refused { .. }) => {
                self.without_extended_headers();
                Ok(())
            }
            (Asked::StructuredReply, OptionReply::Ack) => {
                self.after_replies();
                Ok(())
            }
            (Asked::SetContexts, OptionReply::Context { id, name }) => {
                if name == BASE_ALLOCATION {
                    self.offer.allocation = Some(id);
                }
                self.state = State::ReplyHeader(asked);
                Ok(())
            }
            (Asked::SetContexts, OptionReply::Ack) => {
                self.go();
                Ok(())
            }
            (Asked::StructuredReply | Asked::SetContexts, OptionReply::Refused { .. }) => {
                self.offer.allocation = None;
                self.go();
                Ok(())
            }
            (Asked::Go, reply) => self.told_about_export(reply),
            (Asked::List, reply) => self.listed(reply),
            // A kind of reply that belongs to no such option is passed over.
            (asked, _) => {
                self.state = State::ReplyHeader(asked);
                Ok(())
            }
        }
    }

    fn told_about_export(&mut self, reply: OptionReply) -> Result<(), HandshakeError> {
        self.state = State::ReplyHeader(Asked::Go);
        match reply {
            OptionReply::Ack => {
                let (size_bytes, flags) = self.size_and_flags.ok_or(HandshakeError::NoSize)?;
                self.agree(size_bytes, flags)
            }
            OptionReply::Info(Info::Export { size_bytes, flags }) => {
                self.size_and_flags = Some((size_bytes, flags));
                Ok(())
            }
            OptionReply::Info(Info::BlockSize(sizes)) => {
                sizes.check()?;
                self.offer.block_sizes = Some(sizes);
                Ok(())
            }
            OptionReply::Info(Info::Description(text)) => {
                self.offer.description = Some(text);
                Ok(())
            }
            OptionReply::Refused { why: Refusal::Unsupported, .. } => {
                self.ask_by_name();
                Ok(())
            }
            OptionReply::Refused { why: Refusal::Unknown, .. } => {
                self.ask(Asked::List, &OptionRequest::List);
                Ok(())
            }
            OptionReply::Refused { why, text } => Err(HandshakeError::Refused { why, text }),
            OptionReply::Info(Info::Name(_) | Info::Other { .. })
            | OptionReply::Server { .. }
            | OptionReply::Context { .. }
            | OptionReply::Other { .. } => Ok(()),
        }
    }

    /// The export is not there: learns which are.
    fn listed(&mut self, reply: OptionReply) -> Result<(), HandshakeError> {
        match reply {
            OptionReply::Server { .. } if self.known.len() >= MAX_NAMES => self.more = true,
            OptionReply::Server { name, .. } => self.known.push(name),
            OptionReply::Ack | OptionReply::Refused { .. } => {
                return Err(HandshakeError::NoSuchExport {
                    wanted: self.wish.export.clone(),
                    known: std::mem::take(&mut self.known),
                    more: self.more,
                });
            }
            OptionReply::Info(_) | OptionReply::Context { .. } | OptionReply::Other { .. } => {}
        }
        self.state = State::ReplyHeader(Asked::List);
        Ok(())
    }

    fn agree(&mut self, size_bytes: u64, flags: TransmissionFlags) -> Result<(), HandshakeError> {
        // Offsets are signed 64-bit numbers wherever such an export could be used.
        if i64::try_from(size_bytes).is_err() {
            return Err(HandshakeError::Malformed(Malformed::Value {
                what: "the size of an export",
                value: size_bytes,
            }));
        }
        self.size_and_flags = Some((size_bytes, flags));
        self.offer.size_bytes = size_bytes;
        self.offer.flags = flags;
        self.state = State::Done;
        Ok(())
    }
}
