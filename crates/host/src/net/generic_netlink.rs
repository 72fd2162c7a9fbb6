//! The messages between this program and the kernel's drivers: generic netlink, as in
//! `include/uapi/linux/netlink.h` and `genetlink.h`. Integers are in the processor's order; everything
//! begins at a multiple of four.
//!
//! What the kernel sends is read with the same care as what a server sends: every length is checked,
//! and nothing is taken that is not there.

/// Longest message that is sent or taken.
pub const MAX_BYTES: usize = 32 << 10;

const HEADER_BYTES: usize = 16;
const GENERIC_BYTES: usize = 4;
const ATTRIBUTE_BYTES: usize = 4;
const IS_ERROR: u16 = 2;
const IS_DONE: u16 = 3;
/// The first kind of message that belongs to a family.
const FIRST_FAMILY: u16 = 0x10;
const REQUEST_AND_ACK: u16 = 1 | 4;
const HAS_WORDS: u16 = 0x200;
/// Error messages repeat the request's header only.
const IS_CAPPED: u16 = 0x100;
const NESTED: u16 = 0x8000;
const KIND_OF_ATTRIBUTE: u16 = 0x3fff;

/// The family that knows all others.
pub mod control {
    /// Number of this family.
    pub const FAMILY: u16 = 0x10;
    /// "Which family has this name?"
    pub const GET_FAMILY: u8 = 3;
    /// Attribute: number of a family.
    pub const FAMILY_ID: u16 = 1;
    /// Attribute: name of a family.
    pub const FAMILY_NAME: u16 = 2;
    /// Attribute: the groups of a family.
    pub const GROUPS: u16 = 7;
    /// Attribute of a group: its name.
    pub const GROUP_NAME: u16 = 1;
    /// Attribute of a group: its number.
    pub const GROUP_ID: u16 = 2;
}

/// A message that is being written.
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A request to a family; the answer has the same `sequence`.
    pub fn request(family: u16, command: u8, sequence: u32) -> Writer {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&0_u32.to_ne_bytes());
        bytes.extend_from_slice(&family.to_ne_bytes());
        bytes.extend_from_slice(&REQUEST_AND_ACK.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&0_u32.to_ne_bytes());
        // Every family here has version 1.
        bytes.extend_from_slice(&[command, 1, 0, 0]);
        Writer { bytes }
    }

    /// Appends a 32-bit number.
    #[must_use]
    pub fn u32(self, kind: u16, value: u32) -> Writer {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Appends a 64-bit number.
    #[must_use]
    pub fn u64(self, kind: u16, value: u64) -> Writer {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Appends text, with the zero at its end that the kernel wants.
    #[must_use]
    pub fn text(self, kind: u16, value: &str) -> Writer {
        self.attribute(kind, &[value.as_bytes(), b"\0"].concat())
    }

    /// Appends an attribute that holds others.
    #[must_use]
    pub fn nested(mut self, kind: u16, inner: impl FnOnce(Writer) -> Writer) -> Writer {
        let start = self.bytes.len();
        self = inner(self.attribute(kind | NESTED, &[]));
        let length = self.bytes.len() - start;
        self.bytes[start..start + 2].copy_from_slice(&attribute_length(length).to_ne_bytes());
        self
    }

    /// Appends an attribute of this type and value.
    #[must_use]
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Writer {
        let length = attribute_length(ATTRIBUTE_BYTES + value.len());
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// The whole message.
    pub fn finish(mut self) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

/// All that is written here is far shorter than the longest attribute.
fn attribute_length(length: usize) -> u16 {
    u16::try_from(length).expect("no attribute of ours is longer than 64 KiB")
}

/// A message of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// The request of that number was done.
    Done {
        /// The request's number.
        sequence: u32,
    },
    /// The request of that number was refused.
    Refused {
        /// The request's number.
        sequence: u32,
        /// Why, as an error number, positive.
        errno: i32,
        /// Why, in the kernel's words, where it has some.
        words: Option<String>,
    },
    /// Something of a family.
    Message {
        /// The request that it answers; 0 for a notification.
        sequence: u32,
        /// Whose it is.
        family: u16,
        /// What it is.
        command: u8,
        /// What it says.
        attributes: Attributes<'a>,
    },
}

/// The messages in a datagram. It ends where something is malformed.
pub fn read(datagram: &[u8]) -> impl Iterator<Item = Incoming<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        loop {
            let (message, behind) = split(rest, u32_at(rest, 0)? as usize, HEADER_BYTES)?;
            rest = behind;
            if let Some(incoming) = one(message) {
                return Some(incoming);
            }
        }
    })
}

fn one(message: &[u8]) -> Option<Incoming<'_>> {
    let (kind, flags) = (u16_at(message, 4)?, u16_at(message, 6)?);
    let sequence = u32_at(message, 8)?;
    match kind {
        IS_ERROR => {
            let errno = u32_at(message, HEADER_BYTES)? as i32;
            if errno == 0 {
                return Some(Incoming::Done { sequence });
            }
            Some(Incoming::Refused {
                sequence,
                errno: errno.checked_neg().unwrap_or(i32::MAX),
                words: (flags & HAS_WORDS != 0).then(|| words(message, flags)).flatten(),
            })
        }
        IS_DONE => Some(Incoming::Done { sequence }),
        FIRST_FAMILY.. => Some(Incoming::Message {
            sequence,
            family: kind,
            command: *message.get(HEADER_BYTES)?,
            attributes: Attributes(message.get(HEADER_BYTES + GENERIC_BYTES..)?),
        }),
        _ => None,
    }
}

/// The kernel's words stand behind the request that they are about.
fn words(message: &[u8], flags: u16) -> Option<String> {
    const WORDS: u16 = 1;
    let request_at = HEADER_BYTES + 4;
    let request_bytes = match flags & IS_CAPPED {
        0 => (u32_at(message, request_at)? as usize).max(HEADER_BYTES),
        _ => HEADER_BYTES,
    };
    let behind = request_at.checked_add(request_bytes.checked_next_multiple_of(4)?)?;
    let text = Attributes(message.get(behind..)?).text(WORDS)?;
    let printable = |c: &char| !c.is_control();
    Some(text.chars().filter(printable).take(200).collect())
}

/// Attributes behind one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Those in the bytes of an attribute that holds others.
    pub fn of(bytes: &'a [u8]) -> Attributes<'a> {
        Attributes(bytes)
    }

    /// Each attribute with its kind.
    pub fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let length = usize::from(u16_at(rest, 0)?);
            let kind = u16_at(rest, 2)? & KIND_OF_ATTRIBUTE;
            let (attribute, behind) = split(rest, length, ATTRIBUTE_BYTES)?;
            rest = behind;
            Some((kind, &attribute[ATTRIBUTE_BYTES..]))
        })
    }

    /// The bytes of the first attribute of a kind.
    pub fn find(self, kind: u16) -> Option<&'a [u8]> {
        self.iter().find(|(k, _)| *k == kind).map(|(_, value)| value)
    }

    /// An 8-bit number.
    pub fn u8(self, kind: u16) -> Option<u8> {
        match self.find(kind)? {
            [value] => Some(*value),
            _ => None,
        }
    }

    /// A 16-bit number.
    pub fn u16(self, kind: u16) -> Option<u16> {
        Some(u16::from_ne_bytes(self.find(kind)?.try_into().ok()?))
    }

    /// A 32-bit number.
    pub fn u32(self, kind: u16) -> Option<u32> {
        Some(u32::from_ne_bytes(self.find(kind)?.try_into().ok()?))
    }

    /// Text up to its zero.
    pub fn text(self, kind: u16) -> Option<&'a str> {
        let bytes = self.find(kind)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }

    /// The attributes in an attribute.
    pub fn nested(self, kind: u16) -> Option<Attributes<'a>> {
        self.find(kind).map(Attributes)
    }
}

/// The number of a family and that of one of its groups, in the answer to [`control::GET_FAMILY`].
pub fn family(attributes: Attributes<'_>, group: &str) -> Option<(u16, Option<u32>)> {
    let id = attributes.u16(control::FAMILY_ID)?;
    let groups = attributes.nested(control::GROUPS).into_iter();
    let groups = groups.flat_map(|groups| groups.iter());
    let of_name = |(_, one): (u16, _)| {
        let one = Attributes(one);
        (one.text(control::GROUP_NAME)? == group).then(|| one.u32(control::GROUP_ID))?
    };
    Some((id, groups.into_iter().find_map(of_name)))
}

/// The first `length` bytes, and what stands behind them from the next multiple of four on.
fn split(bytes: &[u8], length: usize, least: usize) -> Option<(&[u8], &[u8])> {
    if length < least {
        return None;
    }
    let first = bytes.get(..length)?;
    let behind = length.next_multiple_of(4).min(bytes.len());
    Some((first, &bytes[behind..]))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(part.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(part.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The family of network disks (`include/uapi/linux/nbd-netlink.h`).
    mod nbd {
        pub const GROUP: &str = "nbd_mc_group";
        pub const CONNECT: u8 = 1;
        pub const INDEX: u16 = 1;
        pub const TIMEOUT: u16 = 4;
        pub const SOCKETS: u16 = 7;
        pub const BACKEND: u16 = 10;
        pub const SOCKET: u16 = 1;
        pub const SOCKET_FD: u16 = 1;
    }

    fn connect() -> Vec<u8> {
        Writer::request(0x1d, nbd::CONNECT, 3)
            .u32(nbd::INDEX, 5)
            .nested(nbd::SOCKETS, |list| {
                let socket = |fd| move |one: Writer| one.u32(nbd::SOCKET_FD, fd);
                let list = list.nested(nbd::SOCKET, socket(7));
                list.nested(nbd::SOCKET, socket(8))
            })
            .text(nbd::BACKEND, "rubus")
            .finish()
    }

    /// What the kernel's own tools would send, byte for byte.
    #[cfg(target_endian = "little")]
    #[test]
    fn a_request_has_the_layout_of_the_kernels_headers() {
        let expected: &[&[u8]] = &[
            &[68, 0, 0, 0, 0x1d, 0, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0],
            &[1, 1, 0, 0],
            &[8, 0, 1, 0, 5, 0, 0, 0],
            &[28, 0, 7, 0x80],
            &[12, 0, 1, 0x80, 8, 0, 1, 0, 7, 0, 0, 0],
            &[12, 0, 1, 0x80, 8, 0, 1, 0, 8, 0, 0, 0],
            &[10, 0, 10, 0, b'r', b'u', b'b', b'u', b's', 0, 0, 0],
        ];
        assert_eq!(connect(), expected.concat());
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = connect();
        let messages: Vec<_> = read(&bytes).collect();
        let [Incoming::Message { sequence: 3, family: 0x1d, command: nbd::CONNECT, attributes }] =
            messages[..]
        else {
            panic!("{messages:?}");
        };
        assert_eq!(attributes.u32(nbd::INDEX), Some(5));
        assert_eq!(attributes.text(nbd::BACKEND), Some("rubus"));
        let sockets = attributes.nested(nbd::SOCKETS).unwrap();
        let fds: Vec<_> =
            sockets.iter().map(|(_, one)| Attributes(one).u32(nbd::SOCKET_FD).unwrap()).collect();
        assert_eq!(fds, [7, 8]);
        assert_eq!(attributes.u8(nbd::INDEX), None, "another length");
        assert_eq!(attributes.u32(nbd::TIMEOUT), None);
    }

    #[test]
    fn the_family_and_its_group_are_found() {
        let answer = Writer::request(control::FAMILY, 1, 1)
            .text(control::FAMILY_NAME, "nbd")
            .attribute(control::FAMILY_ID, &0x1d_u16.to_ne_bytes())
            .nested(control::GROUPS, |list| {
                let group = |id, name: &'static str| {
                    move |one: Writer| {
                        let one = one.text(control::GROUP_NAME, name);
                        one.u32(control::GROUP_ID, id)
                    }
                };
                let list = list.nested(1, group(4, "other"));
                list.nested(2, group(5, nbd::GROUP))
            })
            .finish();
        let Some(Incoming::Message { attributes, .. }) = read(&answer).next() else {
            panic!("no message");
        };
        assert_eq!(family(attributes, nbd::GROUP), Some((0x1d, Some(5))));
        assert_eq!(family(attributes, "none"), Some((0x1d, None)));
    }

    #[test]
    fn a_refusal_has_its_number_and_the_kernels_words() {
        let request = connect();
        for capped in [false, true] {
            let copied = if capped { &request[..HEADER_BYTES] } else { &request[..] };
            let flags = HAS_WORDS | if capped { IS_CAPPED } else { 0 };
            let mut bytes = Vec::new();
            bytes.extend_from_slice(&0_u32.to_ne_bytes());
            bytes.extend_from_slice(&IS_ERROR.to_ne_bytes());
            bytes.extend_from_slice(&flags.to_ne_bytes());
            bytes.extend_from_slice(&3_u32.to_ne_bytes());
            bytes.extend_from_slice(&0_u32.to_ne_bytes());
            bytes.extend_from_slice(&(-16_i32).to_ne_bytes());
            bytes.extend_from_slice(copied);
            let text = Writer { bytes }.text(1, "no such\x1bthing").finish();
            let expected =
                Incoming::Refused { sequence: 3, errno: 16, words: Some("no suchthing".into()) };
            assert_eq!(read(&text).collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn several_messages_stand_behind_one_another() {
        let two = [connect(), connect()].concat();
        assert_eq!(read(&two).count(), 2);
        assert_eq!(read(&two[..two.len() - 1]).count(), 1);
        assert_eq!(read(&[0; 64]).count(), 0, "a length of 0 never ends");
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for message in read(&bytes) {
                if let Incoming::Message { attributes, .. } = message {
                    let _ = family(attributes, "x");
                }
            }
        }

        /// Damage in one place of a good message.
        #[test]
        fn damage_is_read_without_a_panic(at in 0_usize..68, with in any::<u8>(), flags in any::<u8>()) {
            let mut bytes = connect();
            bytes[at] = with;
            bytes[5] = 0;
            bytes[4] = if flags & 1 == 0 { 2 } else { 0x1d };
            bytes[7] = flags;
            for message in read(&bytes) {
                if let Incoming::Message { attributes, .. } = message {
                    for (_, value) in attributes.iter() {
                        prop_assert!(value.len() < bytes.len());
                    }
                }
            }
        }
    }
}
