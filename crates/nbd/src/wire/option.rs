//! Options, with which both ends come to terms, and the replies to them.

use super::{
    Claim, FENCE, Info, MAX_OPTION_BYTES, MAX_STRING_BYTES, Malformed, OPTION_MAGIC, Reader, cut_to,
};

const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// Length of [`OptionHeader`].
pub const OPTION_HEADER_BYTES: usize = 16;
/// Length of [`OptionReplyHeader`].
pub const OPTION_REPLY_HEADER_BYTES: usize = 20;

/// The header of an option; its data follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// The option's number.
    pub option: u32,
    /// Length of the data.
    pub length: u32,
}

impl OptionHeader {
    /// Reads the header. The length is not judged: a server must stay in step with a client that
    /// sends too much.
    ///
    /// # Errors
    /// If the length or the magic number is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an option", bytes);
        reader.magic64(OPTION_MAGIC)?;
        let header = OptionHeader { option: reader.u32()?, length: reader.u32()? };
        reader.end()?;
        Ok(header)
    }
}

/// An option of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionRequest {
    /// Begin with this export, or hang up; the answer is [`super::ExportName`] and not an option's reply.
    ExportName(String),
    /// The client goes.
    Abort,
    /// Which exports are there?
    List,
    /// Go on encrypted.
    StartTls,
    /// Tell about an export.
    Info(InfoRequest),
    /// Tell about an export and begin with it.
    Go(InfoRequest),
    /// Use structured replies.
    StructuredReply,
    /// Which contexts does BLOCK_STATUS know?
    ListContexts(ContextRequest),
    /// Tell about these contexts in BLOCK_STATUS, and about no others.
    SetContexts(ContextRequest),
    /// Use requests and structured replies with lengths of 64 bits.
    ExtendedHeaders,
    /// Be this connection of an attachment, and end what it replaces; not of the protocol.
    Fence(Claim),
    /// An option that this program does not know.
    Other {
        /// Number of the option.
        option: u32,
        data: Vec<u8>,
    },
}

/// An export, and what is to be told about it besides its size and flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoRequest {
    /// Name of the export.
    pub export: String,
    /// Numbers of [`Info`].
    pub wanted: Vec<u16>,
}

/// An export, and the contexts in which its blocks have a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextRequest {
    /// Name of the export.
    pub export: String,
    /// Names of contexts; in a request for the list also beginnings of them.
    pub queries: Vec<String>,
}

impl OptionRequest {
    /// The protocol's number.
    pub fn number(&self) -> u32 {
        match self {
            OptionRequest::ExportName(_) => 1,
            OptionRequest::Abort => 2,
            OptionRequest::List => 3,
            OptionRequest::StartTls => 5,
            OptionRequest::Info(_) => 6,
            OptionRequest::Go(_) => 7,
            OptionRequest::StructuredReply => 8,
            OptionRequest::ListContexts(_) => 9,
            OptionRequest::SetContexts(_) => 10,
            OptionRequest::ExtendedHeaders => 11,
            OptionRequest::Fence(_) => FENCE,
            OptionRequest::Other { option, .. } => *option,
        }
    }

    /// Appends header and data.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        match self {
            OptionRequest::ExportName(name) => data.extend_from_slice(name.as_bytes()),
            OptionRequest::Info(info) | OptionRequest::Go(info) => info.encode(&mut data),
            OptionRequest::ListContexts(contexts) | OptionRequest::SetContexts(contexts) => {
                contexts.encode(&mut data);
            }
            OptionRequest::Fence(claim) => claim.encode(&mut data),
            OptionRequest::Other { data: other, .. } => data.extend_from_slice(other),
            OptionRequest::Abort
            | OptionRequest::List
            | OptionRequest::StartTls
            | OptionRequest::StructuredReply
            | OptionRequest::ExtendedHeaders => {}
        }
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&self.number().to_be_bytes());
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(&data);
    }

    /// Reads the data of an option.
    ///
    /// # Errors
    /// When they are not what the option asks for.
    pub fn decode(option: u32, data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an option", data);
        let plain = |request: OptionRequest| {
            if data.is_empty() { Ok(request) } else { Err(Malformed::Length { what: "an option" }) }
        };
        match option {
            1 => Ok(OptionRequest::ExportName(reader.text_to_end()?)),
            2 => Ok(OptionRequest::Abort),
            3 => plain(OptionRequest::List),
            5 => plain(OptionRequest::StartTls),
            6 => InfoRequest::decode(data).map(OptionRequest::Info),
            7 => InfoRequest::decode(data).map(OptionRequest::Go),
            8 => plain(OptionRequest::StructuredReply),
            9 => ContextRequest::decode(data).map(OptionRequest::ListContexts),
            10 => ContextRequest::decode(data).map(OptionRequest::SetContexts),
            11 => plain(OptionRequest::ExtendedHeaders),
            FENCE => Claim::decode(data).map(OptionRequest::Fence),
            option => Ok(OptionRequest::Other { option, data: data.to_vec() }),
        }
    }
}

impl InfoRequest {
    fn encode(&self, data: &mut Vec<u8>) {
        data.extend_from_slice(&(self.export.len() as u32).to_be_bytes());
        data.extend_from_slice(self.export.as_bytes());
        data.extend_from_slice(&(self.wanted.len() as u16).to_be_bytes());
        for number in &self.wanted {
            data.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an option about an export", data);
        let length = reader.u32()? as usize;
        let export = reader.text(length)?;
        let count = reader.u16()?;
        let mut wanted = Vec::new();
        for _ in 0..count {
            wanted.push(reader.u16()?);
        }
        reader.end()?;
        Ok(InfoRequest { export, wanted })
    }
}

impl ContextRequest {
    fn encode(&self, data: &mut Vec<u8>) {
        data.extend_from_slice(&(self.export.len() as u32).to_be_bytes());
        data.extend_from_slice(self.export.as_bytes());
        data.extend_from_slice(&(self.queries.len() as u32).to_be_bytes());
        for query in &self.queries {
            data.extend_from_slice(&(query.len() as u32).to_be_bytes());
            data.extend_from_slice(query.as_bytes());
        }
    }

    fn decode(data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("an option about contexts", data);
        let length = reader.u32()? as usize;
        let export = reader.text(length)?;
        let count = reader.u32()?;
        // The count is not believed: each query takes bytes, and those run out.
        let mut queries = Vec::new();
        for _ in 0..count {
            let length = reader.u32()? as usize;
            queries.push(reader.text(length)?);
        }
        reader.end()?;
        Ok(ContextRequest { export, queries })
    }
}

/// The header of a reply to an option; its data follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionReplyHeader {
    /// The option that is answered.
    pub option: u32,
    /// What kind of answer.
    pub kind: u32,
    /// Length of the data.
    pub length: u32,
}

impl OptionReplyHeader {
    /// Reads the header.
    ///
    /// # Errors
    /// When it is none, or its data would be longer than [`MAX_OPTION_BYTES`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a reply to an option", bytes);
        reader.magic64(OPTION_REPLY_MAGIC)?;
        let header =
            OptionReplyHeader { option: reader.u32()?, kind: reader.u32()?, length: reader.u32()? };
        reader.end()?;
        if header.length as usize > MAX_OPTION_BYTES {
            return Err(Malformed::TooLong {
                what: "a reply to an option",
                bytes: u64::from(header.length),
            });
        }
        Ok(header)
    }
}

/// A reply to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionReply {
    /// Yes, or: that was all.
    Ack,
    /// One export of the list.
    Server {
        name: String,
        /// Words about it.
        details: String,
    },
    /// Something about the export.
    Info(Info),
    /// A context of BLOCK_STATUS.
    Context {
        /// Its number in replies; without a meaning in a list.
        id: u32,
        name: String,
    },
    /// The server refuses the option.
    Refused {
        why: Refusal,
        /// In the server's words, if it has any.
        text: String,
    },
    /// A number without a meaning here.
    Other {
        /// Type of the reply.
        kind: u32,
        /// What came with it.
        data: Vec<u8>,
    },
}

impl OptionReply {
    const SERVER: u32 = 2;
    const INFO: u32 = 3;
    const CONTEXT: u32 = 4;

    /// Appends header and data; `option` is the number of the option that is answered.
    pub fn encode(&self, option: u32, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = match self {
            OptionReply::Ack => 1,
            OptionReply::Server { name, details } => {
                data.extend_from_slice(&(name.len() as u32).to_be_bytes());
                data.extend_from_slice(name.as_bytes());
                data.extend_from_slice(details.as_bytes());
                OptionReply::SERVER
            }
            OptionReply::Info(info) => {
                info.encode(&mut data);
                OptionReply::INFO
            }
            OptionReply::Context { id, name } => {
                data.extend_from_slice(&id.to_be_bytes());
                data.extend_from_slice(name.as_bytes());
                OptionReply::CONTEXT
            }
            OptionReply::Refused { why, text } => {
                data.extend_from_slice(cut_to(text, MAX_STRING_BYTES).as_bytes());
                why.number()
            }
            OptionReply::Other { kind, data: other } => {
                data.extend_from_slice(other);
                *kind
            }
        };
        out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
        out.extend_from_slice(&option.to_be_bytes());
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(&data);
    }

    /// Reads the data of a reply of this kind. Words for people that are no text are shown as well
    /// as possible.
    ///
    /// # Errors
    /// When they are not what the kind says.
    pub fn decode(kind: u32, data: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("a reply to an option", data);
        Ok(match kind {
            1 if data.is_empty() => OptionReply::Ack,
            1 => return Err(Malformed::Length { what: "an assent" }),
            OptionReply::SERVER => {
                let length = reader.u32()? as usize;
                let name = reader.text(length)?;
                let details = String::from_utf8_lossy(reader.rest()).into_owned();
                OptionReply::Server { name, details }
            }
            OptionReply::INFO => OptionReply::Info(Info::decode(data)?),
            OptionReply::CONTEXT => {
                OptionReply::Context { id: reader.u32()?, name: reader.text_to_end()? }
            }
            kind if kind & Refusal::BIT != 0 => OptionReply::Refused {
                why: Refusal::of(kind),
                text: String::from_utf8_lossy(data).into_owned(),
            },
            kind => OptionReply::Other { kind, data: data.to_vec() },
        })
    }
}

/// Why a server does not do what an option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not know the option.
    Unsupported,
    /// It does not want to.
    Policy,
    /// The option makes no sense.
    Invalid,
    /// Its platform cannot.
    Platform,
    /// The server accepts this option only under TLS.
    TlsRequired,
    /// There is no such export.
    Unknown,
    /// It is going.
    Shutdown,
    /// The client has to ask for the block sizes.
    BlockSizeRequired,
    /// The option is too long.
    TooBig,
    /// Only with extended headers, or only without.
    ExtendedHeaders,
    /// A number without a meaning here.
    Other(u32),
}

impl Refusal {
    const BIT: u32 = 1 << 31;

    /// The protocol's number.
    pub fn number(self) -> u32 {
        Refusal::BIT
            | match self {
                Refusal::Unsupported => 1,
                Refusal::Policy => 2,
                Refusal::Invalid => 3,
                Refusal::Platform => 4,
                Refusal::TlsRequired => 5,
                Refusal::Unknown => 6,
                Refusal::Shutdown => 7,
                Refusal::BlockSizeRequired => 8,
                Refusal::TooBig => 9,
                Refusal::ExtendedHeaders => 10,
                Refusal::Other(number) => number,
            }
    }

    /// From the protocol's number.
    pub fn of(number: u32) -> Refusal {
        match number & !Refusal::BIT {
            1 => Refusal::Unsupported,
            2 => Refusal::Policy,
            3 => Refusal::Invalid,
            4 => Refusal::Platform,
            5 => Refusal::TlsRequired,
            6 => Refusal::Unknown,
            7 => Refusal::Shutdown,
            8 => Refusal::BlockSizeRequired,
            9 => Refusal::TooBig,
            10 => Refusal::ExtendedHeaders,
            number => Refusal::Other(number),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::Unsupported => "it does not know the option",
            Refusal::Policy => "its settings forbid it",
            Refusal::Invalid => "it calls the option invalid",
            Refusal::Platform => "its platform cannot do it",
            Refusal::TlsRequired => "it wants TLS",
            Refusal::Unknown => "it has no such export",
            Refusal::Shutdown => "it is shutting down",
            Refusal::BlockSizeRequired => "it insists on its block sizes",
            Refusal::TooBig => "it calls the option too long",
            Refusal::ExtendedHeaders => "it disagrees about extended headers",
            Refusal::Other(number) => return write!(f, "error {number}"),
        })
    }
}

/// Whether a name can be asked for at all.
pub(crate) fn fits_a_string(name: &str) -> bool {
    name.len() <= MAX_STRING_BYTES && !name.contains('\0')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{BlockSizes, TransmissionFlags};

    fn request() -> impl Strategy<Value = OptionRequest> {
        let info = (".{0,40}", proptest::collection::vec(any::<u16>(), 0..5))
            .prop_map(|(export, wanted)| InfoRequest { export, wanted });
        let contexts = (".{0,40}", proptest::collection::vec(".{0,20}", 0..5))
            .prop_map(|(export, queries)| ContextRequest { export, queries });
        prop_oneof![
            ".{0,40}".prop_map(OptionRequest::ExportName),
            Just(OptionRequest::Abort),
            Just(OptionRequest::List),
            Just(OptionRequest::StartTls),
            Just(OptionRequest::StructuredReply),
            info.clone().prop_map(OptionRequest::Info),
            info.prop_map(OptionRequest::Go),
            Just(OptionRequest::ExtendedHeaders),
            contexts.clone().prop_map(OptionRequest::ListContexts),
            contexts.prop_map(OptionRequest::SetContexts),
            (12_u32.., proptest::collection::vec(any::<u8>(), 0..40))
                .prop_map(|(option, data)| OptionRequest::Other { option, data }),
        ]
    }

    fn reply() -> impl Strategy<Value = OptionReply> {
        prop_oneof![
            Just(OptionReply::Ack),
            (".{0,40}", ".{0,40}")
                .prop_map(|(name, details)| OptionReply::Server { name, details }),
            (any::<u64>(), any::<u16>()).prop_map(|(size_bytes, flags)| {
                OptionReply::Info(Info::Export { size_bytes, flags: TransmissionFlags(flags) })
            }),
            ".{0,40}".prop_map(|text| OptionReply::Info(Info::Description(text))),
            (any::<u32>(), ".{0,40}").prop_map(|(id, name)| OptionReply::Context { id, name }),
            any::<[u32; 3]>().prop_map(|[min_bytes, preferred_bytes, max_bytes]| {
                OptionReply::Info(Info::BlockSize(BlockSizes {
                    min_bytes,
                    preferred_bytes,
                    max_bytes,
                }))
            }),
            (0_u32..1 << 31, ".{0,40}")
                .prop_map(|(number, text)| OptionReply::Refused { why: Refusal::of(number), text }),
        ]
    }

    proptest! {
        #[test]
        fn options_survive_the_wire(request in request()) {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            let (head, data) = bytes.split_at(OPTION_HEADER_BYTES);
            let header = OptionHeader::decode(head).unwrap();
            prop_assert_eq!(header.length as usize, data.len());
            prop_assert_eq!(OptionRequest::decode(header.option, data), Ok(request));
        }

        #[test]
        fn replies_survive_the_wire(option: u32, reply in reply()) {
            let mut bytes = Vec::new();
            reply.encode(option, &mut bytes);
            let (head, data) = bytes.split_at(OPTION_REPLY_HEADER_BYTES);
            let header = OptionReplyHeader::decode(head).unwrap();
            prop_assert_eq!((header.option, header.length as usize), (option, data.len()));
            prop_assert_eq!(OptionReply::decode(header.kind, data), Ok(reply));
        }

        #[test]
        fn any_bytes_are_read_without_panic(
            number: u32,
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let _ = OptionHeader::decode(&bytes);
            let _ = OptionReplyHeader::decode(&bytes);
            for number in [number, number % 16, number | 1 << 31] {
                let _ = OptionRequest::decode(number, &bytes);
                let _ = OptionReply::decode(number, &bytes);
            }
        }
    }

    #[test]
    fn a_name_longer_than_its_option_is_refused() {
        // The length says 0xffffffff: a server once added 1 to that.
        let lie = [0xff, 0xff, 0xff, 0xff, b'a', 0, 0];
        assert!(OptionRequest::decode(7, &lie).is_err());
        assert!(OptionReply::decode(2, &lie).is_err());
    }

    #[test]
    fn queries_that_are_not_there_are_refused() {
        let no_name = [0, 0, 0, 0];
        for count in [1_u32, 0xffff, 1 << 31, u32::MAX] {
            let lie = [no_name, count.to_be_bytes()].concat();
            for option in [9, 10] {
                assert!(OptionRequest::decode(option, &lie).is_err());
            }
        }
        let long_query = [0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, b'b'];
        assert!(OptionRequest::decode(10, &long_query).is_err());
    }

    #[test]
    fn a_reply_beyond_the_limit_is_refused_before_it_is_read() {
        let mut bytes = Vec::new();
        OptionReply::Ack.encode(3, &mut bytes);
        bytes[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(OptionReplyHeader::decode(&bytes), Err(Malformed::TooLong { .. })));
    }
}
