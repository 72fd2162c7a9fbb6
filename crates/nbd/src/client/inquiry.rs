//! Questions to a server of which no transmission comes: which exports there are, what each offers, what the server can.
//!
//! What a server can make this take is bounded: [`MAX_LISTED`] exports, [`MAX_TEXT_BYTES`] of names and descriptions,
//! and a number of replies to each option.

use std::time::Duration;

use super::{ClientError, HandshakeError, Limit, Style, read_all, send_all};
use crate::transport::Transport;
use crate::wire::{
    BlockSizes, ClientFlags, ContextRequest, Greeting, HandshakeFlags, Info, InfoRequest,
    OPTION_REPLY_HEADER_BYTES, OptionReply, OptionReplyHeader, OptionRequest, Refusal,
    TransmissionFlags,
};

/// Maximum number of exports taken from a server's list.
pub const MAX_LISTED: usize = 10_000;
/// Maximum length of the text taken from a server's list.
const MAX_TEXT_BYTES: usize = 4 << 20;
const MAX_REPLIES: usize = 20_000;

/// What a server says of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// The name that the server uses itself.
    pub name: Option<String>,
    pub size_and_flags: Option<(u64, TransmissionFlags)>,
    /// The block sizes, where it names them.
    pub block_sizes: Option<BlockSizes>,
    /// The server's description of the export.
    pub description: Option<String>,
}

/// The exports of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Names, and words about each.
    pub exports: Vec<(String, String)>,
    /// There are more.
    pub more: bool,
}

/// A conversation of options.
#[derive(Debug)]
pub struct Inquiry<T> {
    transport: T,
    most: Duration,
    style: Style,
    /// What a server of the old style says of its one export.
    old: Option<(u64, TransmissionFlags)>,
}

impl<T: Transport> Inquiry<T> {
    /// Takes the greeting; the server has `most` for each answer.
    ///
    /// # Errors
    /// When there is no NBD server.
    pub fn begin(mut transport: T, most: Duration) -> Result<Self, ClientError> {
        let limit = Limit::of(most);
        let mut greeting = read_all(&mut transport, Greeting::MARK_BYTES, &limit)?;
        let length = Greeting::length(&greeting).map_err(|_| HandshakeError::NotNbd)?;
        let rest = read_all(&mut transport, length - greeting.len(), &limit)?;
        greeting.extend_from_slice(&rest);
        let decoded = Greeting::decode(&greeting).map_err(HandshakeError::from)?;
        let (style, old) = match decoded {
            Greeting::Oldstyle { size_bytes, flags } => {
                (Style::Oldstyle, Some((size_bytes, flags)))
            }
            Greeting::Newstyle(flags) if flags.has(HandshakeFlags::FIXED_NEWSTYLE) => {
                let mut out = Vec::new();
                let mut ours = ClientFlags::FIXED_NEWSTYLE;
                if flags.has(HandshakeFlags::NO_ZEROES) {
                    ours = ours.with(ClientFlags::NO_ZEROES);
                }
                ours.encode(&mut out);
                send_all(&mut transport, &out, &limit)?;
                (Style::Fixed, None)
            }
            Greeting::Newstyle(_) => (Style::Newstyle, None),
        };
        Ok(Inquiry { transport, most, style, old })
    }

    /// The server's style. Only one of fixed newstyle can be asked anything.
    pub fn style(&self) -> Style {
        self.style
    }

    /// Size and flags of the only export, of a server of the old style.
    pub fn old_export(&self) -> Option<(u64, TransmissionFlags)> {
        self.old
    }

    /// The way to the server.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Goes on encrypted; the text is the server's if it refuses.
    ///
    /// # Errors
    /// When there is no encryption.
    pub fn start_tls(
        mut self,
        encrypt: impl FnOnce(T) -> Result<T, ClientError>,
    ) -> Result<Self, ClientError> {
        match self.ask(&OptionRequest::StartTls)?.1 {
            OptionReply::Refused { text, .. } => Err(HandshakeError::NoTls(text).into()),
            _ => {
                self.transport = encrypt(self.transport)?;
                Ok(self)
            }
        }
    }

    /// Whether the server agrees to an option without data.
    ///
    /// # Errors
    /// When the server breaks the protocol or is gone.
    pub fn agrees_to(&mut self, option: &OptionRequest) -> Result<bool, ClientError> {
        Ok(self.ask(option)?.1 == OptionReply::Ack)
    }

    /// Names and descriptions of the exports, and whether there are more; nothing when the server does not tell.
    ///
    /// # Errors
    /// When the server wants TLS, breaks the protocol or is gone.
    pub fn list(&mut self) -> Result<Option<Listing>, ClientError> {
        let (replies, last) = self.ask(&OptionRequest::List)?;
        if let OptionReply::Refused { why, .. } = last {
            return match why {
                Refusal::TlsRequired => Err(HandshakeError::TlsRequired.into()),
                _ => Ok(None),
            };
        }
        let mut listed = Vec::new();
        let mut text_bytes = 0;
        for reply in replies {
            let OptionReply::Server { name, details } = reply else {
                continue;
            };
            text_bytes += name.len() + details.len();
            if listed.len() >= MAX_LISTED || text_bytes > MAX_TEXT_BYTES {
                return Ok(Some(Listing { exports: listed, more: true }));
            }
            listed.push((name, details));
        }
        Ok(Some(Listing { exports: listed, more: false }))
    }

    /// What the server says of an export, or why it says nothing.
    ///
    /// # Errors
    /// When the server breaks the protocol or is gone.
    pub fn about(
        &mut self,
        export: &str,
    ) -> Result<Result<Learnt, (Refusal, String)>, ClientError> {
        let request = InfoRequest {
            export: export.into(),
            wanted: vec![Info::NAME, Info::DESCRIPTION, Info::BLOCK_SIZE],
        };
        let (replies, last) = self.ask(&OptionRequest::Info(request))?;
        if let OptionReply::Refused { why, text } = last {
            return Ok(Err((why, text)));
        }
        let mut learnt = Learnt::default();
        for reply in replies {
            match reply {
                OptionReply::Info(Info::Export { size_bytes, flags }) => {
                    learnt.size_and_flags = Some((size_bytes, flags));
                }
                OptionReply::Info(Info::Name(name)) => learnt.name = Some(name),
                OptionReply::Info(Info::Description(text)) => learnt.description = Some(text),
                OptionReply::Info(Info::BlockSize(sizes)) => {
                    sizes.check().map_err(HandshakeError::from)?;
                    learnt.block_sizes = Some(sizes);
                }
                _ => {}
            }
        }
        Ok(Ok(learnt))
    }

    /// The contexts in which BLOCK_STATUS tells something of an export; the server must have agreed to structured
    /// replies.
    ///
    /// # Errors
    /// When the server breaks the protocol or is gone.
    pub fn contexts(&mut self, export: &str) -> Result<Vec<String>, ClientError> {
        let request = ContextRequest { export: export.into(), queries: Vec::new() };
        let (replies, last) = self.ask(&OptionRequest::ListContexts(request))?;
        if let OptionReply::Refused { .. } = last {
            return Ok(Vec::new());
        }
        let names = replies.into_iter().filter_map(|reply| match reply {
            OptionReply::Context { name, .. } => Some(name),
            _ => None,
        });
        Ok(names.collect())
    }

    /// Ends the inquiry with `NBD_OPT_ABORT`.
    pub fn end(mut self) {
        if self.style == Style::Fixed {
            let mut out = Vec::new();
            OptionRequest::Abort.encode(&mut out);
            // Whether it arrives does not matter.
            let _ = send_all(&mut self.transport, &out, &Limit::of(self.most));
        }
    }

    /// All replies to an option, and the one that ends them.
    fn ask(
        &mut self,
        request: &OptionRequest,
    ) -> Result<(Vec<OptionReply>, OptionReply), ClientError> {
        let mut out = Vec::new();
        request.encode(&mut out);
        let limit = Limit::of(self.most);
        send_all(&mut self.transport, &out, &limit)?;
        let (mut replies, mut taken_bytes) = (Vec::new(), 0);
        for _ in 0..MAX_REPLIES {
            let head = read_all(&mut self.transport, OPTION_REPLY_HEADER_BYTES, &limit)?;
            let header = OptionReplyHeader::decode(&head).map_err(HandshakeError::from)?;
            if header.option != request.number() {
                return Err(HandshakeError::Unasked(header.option).into());
            }
            let data = read_all(&mut self.transport, header.length as usize, &limit)?;
            let reply = OptionReply::decode(header.kind, &data).map_err(HandshakeError::from)?;
            match reply {
                OptionReply::Ack | OptionReply::Refused { .. } => return Ok((replies, reply)),
                // What goes beyond is passed over, so that the conversation can go on.
                reply if taken_bytes <= MAX_TEXT_BYTES && replies.len() <= MAX_LISTED => {
                    taken_bytes += data.len();
                    replies.push(reply);
                }
                _ => {}
            }
        }
        Err(HandshakeError::Endless.into())
    }
}
