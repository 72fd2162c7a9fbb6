//! How a conversation begins: the greeting and the client's answer, and the end of the handshake in
//! the old ways.

use super::{ClientFlags, HandshakeFlags, Malformed, OPTION_MAGIC, Reader, TransmissionFlags};

const INIT_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Zeros that end an oldstyle greeting, and [`ExportName`] where they were not declined.
const ZEROES: usize = 124;

/// What a server says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// Newstyle: the client sends options next.
    Newstyle(HandshakeFlags),
    /// There is one export and nothing to talk about (before 2010).
    Oldstyle {
        /// Size of the export.
        size_bytes: u64,
        /// What can be done with it.
        flags: TransmissionFlags,
    },
}

impl Greeting {
    /// Length of the part that tells the styles apart.
    pub const MARK_BYTES: usize = 16;
    /// Length in newstyle, mark included.
    pub const NEWSTYLE_BYTES: usize = 18;
    /// Length in oldstyle, mark included.
    pub const OLDSTYLE_BYTES: usize = 28 + ZEROES;

    /// The length of a greeting that begins with this mark.
    ///
    /// # Errors
    /// When this is no NBD server.
    pub fn length(mark: &[u8]) -> Result<usize, Malformed> {
        let mut reader = Reader::new("the greeting", mark);
        reader.magic64(INIT_MAGIC)?;
        match reader.u64()? {
            OPTION_MAGIC => Ok(Greeting::NEWSTYLE_BYTES),
            OLDSTYLE_MAGIC => Ok(Greeting::OLDSTYLE_BYTES),
            found => Err(Malformed::Magic { what: "the greeting", found }),
        }
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&INIT_MAGIC.to_be_bytes());
        match self {
            Greeting::Newstyle(flags) => {
                out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
                out.extend_from_slice(&flags.0.to_be_bytes());
            }
            Greeting::Oldstyle { size_bytes, flags } => {
                out.extend_from_slice(&OLDSTYLE_MAGIC.to_be_bytes());
                out.extend_from_slice(&size_bytes.to_be_bytes());
                out.extend_from_slice(&u32::from(flags.0).to_be_bytes());
                out.extend_from_slice(&[0; ZEROES]);
            }
        }
    }

    /// Reads the whole message.
    ///
    /// # Errors
    /// If the length is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let length = Greeting::length(bytes)?;
        let mut reader = Reader::new("the greeting", &bytes[Greeting::MARK_BYTES..]);
        if bytes.len() != length {
            return Err(Malformed::Length { what: "the greeting" });
        }
        if length == Greeting::NEWSTYLE_BYTES {
            return Ok(Greeting::Newstyle(HandshakeFlags(reader.u16()?)));
        }
        Ok(Greeting::Oldstyle {
            size_bytes: reader.u64()?,
            // The upper half is of the handshake and has no meaning here.
            flags: TransmissionFlags(reader.u32()? as u16),
        })
    }
}

impl ClientFlags {
    /// Appends the client's answer to the greeting.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }

    /// Decodes the client's flags.
    ///
    /// # Errors
    /// If the message is not four bytes long.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("the client's flags", bytes);
        let flags = ClientFlags(reader.u32()?);
        reader.end()?;
        Ok(flags)
    }
}

/// What a server answers to [`super::OptionRequest::ExportName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportName {
    /// Size of the export.
    pub size_bytes: u64,
    /// What can be done with it.
    pub flags: TransmissionFlags,
}

impl ExportName {
    /// Length of the message.
    pub fn length(no_zeroes: bool) -> usize {
        10 + if no_zeroes { 0 } else { ZEROES }
    }

    /// Appends the message.
    pub fn encode(&self, no_zeroes: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.size_bytes.to_be_bytes());
        out.extend_from_slice(&self.flags.0.to_be_bytes());
        if !no_zeroes {
            out.extend_from_slice(&[0; ZEROES]);
        }
    }

    /// Reads the message, with or without zeros.
    ///
    /// # Errors
    /// If the message is too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new("the export", bytes);
        Ok(ExportName { size_bytes: reader.u64()?, flags: TransmissionFlags(reader.u16()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_greetings_survive_the_wire() {
        let newstyle = Greeting::Newstyle(HandshakeFlags::FIXED_NEWSTYLE);
        let oldstyle =
            Greeting::Oldstyle { size_bytes: 1 << 40, flags: TransmissionFlags::HAS_FLAGS };
        for (greeting, length) in [(newstyle, 18), (oldstyle, 152)] {
            let mut bytes = Vec::new();
            greeting.encode(&mut bytes);
            assert_eq!(bytes.len(), length);
            assert_eq!(Greeting::length(&bytes[..16]), Ok(length));
            assert_eq!(Greeting::decode(&bytes), Ok(greeting));
        }
        assert!(Greeting::decode(b"SSH-2.0-OpenSSH_9").is_err());
    }

    #[test]
    fn the_old_answer_to_a_name_survives_the_wire() {
        let export = ExportName {
            size_bytes: 1 << 30,
            flags: TransmissionFlags::HAS_FLAGS.with(TransmissionFlags::READ_ONLY),
        };
        for no_zeroes in [true, false] {
            let mut bytes = Vec::new();
            export.encode(no_zeroes, &mut bytes);
            assert_eq!(bytes.len(), ExportName::length(no_zeroes));
            assert_eq!(ExportName::decode(&bytes), Ok(export));
        }
        assert!(ExportName::decode(&[0; 9]).is_err());
    }

    #[test]
    fn a_greeting_cut_short_is_refused() {
        let mut bytes = Vec::new();
        Greeting::Newstyle(HandshakeFlags::NONE).encode(&mut bytes);
        for end in 0..bytes.len() {
            assert!(Greeting::decode(&bytes[..end]).is_err());
        }
    }
}
