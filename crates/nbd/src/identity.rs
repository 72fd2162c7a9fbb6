//! Whether an export is still the same disk: what a client must know before it resumes after a lost
//! connection.
//!
//! A client believes that the disk kept every write that was acknowledged. A server program that was
//! restarted has kept them, because the page cache of its machine did. A machine that was restarted
//! lost those that were not flushed, and nothing in the protocol says so: a filesystem that
//! continues over it is silently damaged. The same holds for an export under whose name another
//! image is served by now, and for a discarded overlay.
//!
//! A server of ours therefore ends the description of an export (`NBD_INFO_DESCRIPTION`) in its
//! identity: `[rubus boot=UUID export=UUID generation=N sync=0|1]`. [`judge`] compares two of them.
//! [`Appearance`] is all that can be seen of an export, and compares also those of servers that say
//! nothing about themselves.

use std::fmt;

use crate::client::Offer;
use crate::wire::TransmissionFlags;

const OPENS: &str = "[rubus ";

/// Which disk an export is, in the words of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What loses acknowledged writes that were not flushed changes this: the server machine's
    /// `/proc/sys/kernel/random/boot_id`, and a random number after a flush that failed and for a
    /// disk that was unplugged meanwhile. A server that keeps acknowledged writes in its own memory
    /// must make up a new one whenever it starts.
    pub boot: Uuid,
    /// Which image it is.
    pub export: Uuid,
    /// How many times the content was found to have changed: a discarded overlay, or an image that
    /// another program wrote to.
    pub generation: u64,
    /// A write is on stable storage before it is acknowledged.
    pub sync: bool,
}

/// 128 bits, written as UUIDs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uuid(pub u128);

/// Whether a client may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same disk with every acknowledged write.
    Same,
    /// The same disk, but writes that had been acknowledged and not flushed are gone.
    SameButUnflushedLost,
    /// Another disk, or none that could be recognised.
    Other(Difference),
}

/// What is not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Another image is served.
    Export,
    /// The overlay was discarded, or another program wrote to the image while no server had it
    /// open.
    Generation {
        /// The number before.
        before: u64,
        /// The number now.
        now: u64,
    },
    /// The size has changed.
    Size {
        /// Size before, in bytes.
        before: u64,
        /// Size now, in bytes.
        now: u64,
    },
    /// Something that the client relies on cannot be done now.
    Lacks(&'static str),
    /// It cannot be written now.
    ReadOnly,
    /// The server said who it is, and says so no more.
    NoIdentity,
    /// The server never identified itself, there were unflushed writes, and the user did not vouch
    /// for it.
    Unknown,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Export => f.write_str("another image is served under this name now"),
            Difference::Generation { before, now } => write!(
                f,
                "its contents were discarded or replaced (generation {now}, it was {before})"
            ),
            Difference::Size { before, now } => {
                write!(f, "it has {now} bytes now and had {before}")
            }
            Difference::Lacks(what) => write!(f, "it cannot {what} any more"),
            Difference::ReadOnly => f.write_str("it can only be read now"),
            Difference::NoIdentity => {
                f.write_str("its server does not say any more which disk it is")
            }
            Difference::Unknown => f.write_str(
                "its server does not say which disk it is, so it is unknown whether unflushed writes are still there",
            ),
        }
    }
}

/// Whether a client that saw `before` may resume with what it sees `now`. `unflushed`: writes were
/// acknowledged and not flushed, or that is unknown.
pub fn judge(before: &Identity, now: &Identity, unflushed: bool) -> Verdict {
    if before.export != now.export {
        return Verdict::Other(Difference::Export);
    }
    if before.generation != now.generation {
        return Verdict::Other(Difference::Generation {
            before: before.generation,
            now: now.generation,
        });
    }
    // What was acknowledged was acknowledged before, so `now.sync` does not matter.
    if before.boot == now.boot || before.sync || !unflushed {
        Verdict::Same
    } else {
        Verdict::SameButUnflushedLost
    }
}

impl Identity {
    /// Finds the identity at the end of a description. Anything that is not exactly as [`Identity`]
    /// is written is none: an identity that is half understood would be worse than none.
    pub fn parse(description: &str) -> Option<Identity> {
        let at = description.rfind(OPENS)?;
        // Behind the words of people comes a space.
        if at > 0 && !description[..at].ends_with(' ') {
            return None;
        }
        let inner = description[at + OPENS.len()..].strip_suffix(']')?;
        let mut parts = inner.split(' ');
        let mut value = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        let identity = Identity {
            boot: Uuid::parse(value("boot")?)?,
            export: Uuid::parse(value("export")?)?,
            generation: number(value("generation")?)?,
            sync: match value("sync")? {
                "0" => false,
                "1" => true,
                _ => return None,
            },
        };
        parts.next().is_none().then_some(identity)
    }

    /// What a client keeps of a server with which it goes on after [`Verdict::Same`]. Writes that an
    /// earlier run of the server acknowledged without making them durable are still not durable
    /// when the new run makes its own so.
    #[must_use]
    pub fn followed_by(&self, now: &Identity, unflushed: bool) -> Identity {
        Identity { sync: now.sync && (self.sync || !unflushed), ..*now }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{OPENS}boot={} export={} generation={} sync={}]",
            self.boot,
            self.export,
            self.generation,
            u8::from(self.sync)
        )
    }
}

impl Uuid {
    /// Reads the usual form: 32 hexadecimal digits, in lower case, in groups of 8, 4, 4, 4 and 12.
    pub fn parse(text: &str) -> Option<Uuid> {
        let mut value = 0_u128;
        if text.len() != 36 {
            return None;
        }
        for (i, byte) in text.bytes().enumerate() {
            let digit = match (i, byte) {
                (8 | 13 | 18 | 23, b'-') => continue,
                (8 | 13 | 18 | 23, _) => return None,
                (_, b'0'..=b'9') => byte - b'0',
                (_, b'a'..=b'f') => byte - b'a' + 10,
                _ => return None,
            };
            value = value << 4 | u128::from(digit);
        }
        Some(Uuid(value))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Uuid(value) = self;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            value >> 96,
            value >> 80 & 0xffff,
            value >> 64 & 0xffff,
            value >> 48 & 0xffff,
            value & 0xffff_ffff_ffff
        )
    }
}

/// A number as it is printed: no sign, no zeros in front.
fn number(text: &str) -> Option<u64> {
    let value: u64 = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

/// All that a client can see of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appearance {
    /// Who it says that it is.
    pub identity: Option<Identity>,
    pub size_bytes: u64,
    /// What can be done with it.
    pub flags: TransmissionFlags,
}

/// Flags that a client relies on once they were promised.
const RELIED_ON: [(TransmissionFlags, &str); 5] = [
    (TransmissionFlags::SEND_FLUSH, "flush"),
    (TransmissionFlags::SEND_FUA, "make single writes durable (FUA)"),
    (TransmissionFlags::SEND_TRIM, "trim"),
    (TransmissionFlags::SEND_WRITE_ZEROES, "write zeros"),
    (TransmissionFlags::CAN_MULTI_CONN, "serve several connections (multi-conn)"),
];

impl Appearance {
    /// What a handshake has shown.
    pub fn of(offer: &Offer) -> Appearance {
        Appearance {
            identity: offer.description.as_deref().and_then(Identity::parse),
            size_bytes: offer.size_bytes,
            flags: offer.flags,
        }
    }

    /// Whether a client that saw this may resume with what it sees `now`. A server without an
    /// identity counts as the same if no unflushed write can have been lost, or if the user vouches
    /// that it never loses an acknowledged write.
    pub fn judge(&self, now: &Appearance, unflushed: bool, vouched_for: bool) -> Verdict {
        if let Some(difference) = self.difference(now) {
            return Verdict::Other(difference);
        }
        match (&self.identity, &now.identity) {
            (Some(before), Some(now)) => judge(before, now, unflushed),
            (Some(_), None) => Verdict::Other(Difference::NoIdentity),
            (None, _) if vouched_for || !unflushed => Verdict::Same,
            (None, _) => Verdict::Other(Difference::Unknown),
        }
    }

    /// What differs on the outside.
    fn difference(&self, now: &Appearance) -> Option<Difference> {
        if self.size_bytes != now.size_bytes {
            return Some(Difference::Size { before: self.size_bytes, now: now.size_bytes });
        }
        let (could, can) = (self.flags, now.flags);
        if can.has(TransmissionFlags::READ_ONLY) && !could.has(TransmissionFlags::READ_ONLY) {
            return Some(Difference::ReadOnly);
        }
        let lost = RELIED_ON.iter().find(|(flag, _)| could.has(*flag) && !can.has(*flag));
        lost.map(|(_, what)| Difference::Lacks(what))
    }

    /// What a client keeps after [`Verdict::Same`].
    #[must_use]
    pub fn followed_by(&self, now: &Appearance, unflushed: bool) -> Appearance {
        let identity = match (&self.identity, &now.identity) {
            (Some(before), Some(now)) => Some(before.followed_by(now, unflushed)),
            // A server that begins to name itself may have lost something before it did.
            (None, Some(now)) => Some(Identity { sync: now.sync && !unflushed, ..*now }),
            (_, None) => None,
        };
        Appearance {
            identity,
            // Flags that were not promised to the kernel are not relied on.
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOOT: &str = "3e9c9a90-7a6c-4f5c-8b2e-0123456789ab";
    const EXPORT: &str = "00000000-0000-0001-0000-00000000002a";

    fn identity() -> Identity {
        Identity {
            boot: Uuid::parse(BOOT).expect("a UUID"),
            export: Uuid::parse(EXPORT).expect("a UUID"),
            generation: 7,
            sync: false,
        }
    }

    fn appearance() -> Appearance {
        Appearance {
            identity: Some(identity()),
            size_bytes: 1 << 30,
            flags: TransmissionFlags::HAS_FLAGS
                .with(TransmissionFlags::SEND_FLUSH)
                .with(TransmissionFlags::SEND_TRIM),
        }
    }

    fn rebooted(identity: Identity) -> Identity {
        Identity { boot: Uuid(1), ..identity }
    }

    #[test]
    fn is_written_as_servers_publish_it() {
        assert_eq!(
            identity().to_string(),
            format!("[rubus boot={BOOT} export={EXPORT} generation=7 sync=0]")
        );
        assert_eq!(Identity::parse(&identity().to_string()), Some(identity()));
        let words = format!("the classroom's image {}", identity());
        assert_eq!(Identity::parse(&words), Some(identity()));
    }

    #[test]
    fn what_is_nearly_an_identity_is_none() {
        let whole = identity().to_string();
        for wrong in [
            String::new(),
            "nbdkit".into(),
            format!("{whole} "),
            format!("word{whole}"),
            whole.replace("rubus", "rubUS"),
            whole.replace("boot=", "boot=0"),
            whole.replace("3e9c", "3E9C"),
            whole.replace("-7a6c", "7a6c-"),
            whole.replace(" export", "  export"),
            whole.replace("generation=7", "generation=07"),
            whole.replace("generation=7", "generation=+7"),
            whole.replace("generation=7", "generation=18446744073709551616"),
            whole.replace("sync=0", "sync=2"),
            whole.replace("sync=0", "sync=0 more=1"),
            whole.replace(" sync=0", ""),
            whole.replace(']', ""),
        ] {
            assert_eq!(Identity::parse(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_last_identity_counts() {
        let other = Identity { generation: 8, ..identity() };
        let text = format!("{} {other}", identity());
        assert_eq!(Identity::parse(&text), Some(other));
    }

    #[test]
    fn a_server_program_that_was_restarted_is_the_same_disk() {
        assert_eq!(judge(&identity(), &identity(), true), Verdict::Same);
    }

    #[test]
    fn a_machine_that_was_restarted_lost_what_was_not_flushed() {
        let (before, now) = (identity(), rebooted(identity()));
        assert_eq!(judge(&before, &now, true), Verdict::SameButUnflushedLost);
        assert_eq!(judge(&before, &now, false), Verdict::Same);
        let synchronous = Identity { sync: true, ..before };
        assert_eq!(judge(&synchronous, &now, true), Verdict::Same);
        // What the server promises now says nothing about what it acknowledged before.
        let promises = Identity { sync: true, ..now };
        assert_eq!(judge(&before, &promises, true), Verdict::SameButUnflushedLost);
    }

    #[test]
    fn another_image_and_a_discarded_overlay_are_other_disks() {
        let other = Identity { export: Uuid(2), ..identity() };
        let discarded = Identity { generation: 8, ..identity() };
        for unflushed in [false, true] {
            assert_eq!(judge(&identity(), &other, unflushed), Verdict::Other(Difference::Export));
            assert_eq!(
                judge(&identity(), &discarded, unflushed),
                Verdict::Other(Difference::Generation { before: 7, now: 8 })
            );
        }
    }

    #[test]
    fn writes_of_a_run_that_was_not_synchronous_stay_unflushed() {
        let first = identity();
        let second = Identity { sync: true, ..first };
        let kept = first.followed_by(&second, true);
        let after_reboot = rebooted(second);
        assert_eq!(judge(&kept, &after_reboot, true), Verdict::SameButUnflushedLost);
        let kept = first.followed_by(&second, false);
        assert_eq!(judge(&kept, &after_reboot, true), Verdict::Same);
    }

    #[test]
    fn size_and_abilities_must_be_as_they_were() {
        let before = appearance();
        let grown = Appearance { size_bytes: 2 << 30, ..before };
        let size = Difference::Size { before: 1 << 30, now: 2 << 30 };
        assert_eq!(before.judge(&grown, false, true), Verdict::Other(size));
        let cannot = Appearance {
            flags: TransmissionFlags::HAS_FLAGS.with(TransmissionFlags::SEND_TRIM),
            ..before
        };
        assert_eq!(before.judge(&cannot, false, true), Verdict::Other(Difference::Lacks("flush")));
        // To be able to do more is fine.
        assert_eq!(cannot.judge(&before, true, false), Verdict::Same);
        let read_only =
            Appearance { flags: before.flags.with(TransmissionFlags::READ_ONLY), ..before };
        assert_eq!(before.judge(&read_only, false, true), Verdict::Other(Difference::ReadOnly));
    }

    #[test]
    fn a_server_without_identity_needs_somebody_who_vouches_for_it() {
        let silent = Appearance { identity: None, ..appearance() };
        let unknown = Verdict::Other(Difference::Unknown);
        assert_eq!(silent.judge(&silent, true, false), unknown);
        assert_eq!(silent.judge(&silent, false, false), Verdict::Same);
        assert_eq!(silent.judge(&silent, true, true), Verdict::Same);
        // It names itself now; whether it is the one from before is unknown all the same.
        assert_eq!(silent.judge(&appearance(), true, false), unknown);
        // A server that once identified itself and does not now is never accepted, even if vouched
        // for.
        assert_eq!(
            appearance().judge(&silent, false, true),
            Verdict::Other(Difference::NoIdentity)
        );
    }

    fn some_identity() -> impl Strategy<Value = Identity> {
        (any::<u128>(), any::<u128>(), any::<u64>(), any::<bool>()).prop_map(
            |(boot, export, generation, sync)| Identity {
                boot: Uuid(boot),
                export: Uuid(export),
                generation,
                sync,
            },
        )
    }

    /// Identities of which some parts are often equal.
    fn like_one_another() -> impl Strategy<Value = Identity> {
        (0..2_u128, 0..2_u128, 0..2_u64, any::<bool>()).prop_map(
            |(boot, export, generation, sync)| Identity {
                boot: Uuid(boot),
                export: Uuid(export),
                generation,
                sync,
            },
        )
    }

    proptest! {
        #[test]
        fn comes_back_from_any_description(words in ".{0,40}", identity in some_identity()) {
            let text = format!("{words} {identity}");
            prop_assert_eq!(Identity::parse(&text), Some(identity));
        }

        #[test]
        fn what_is_read_is_what_would_be_written(
            text in "(\\PC{0,9} |x)?\\[rubus boot=[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-fA]{12} \
                     export=0{8}-0000-0000-0000-0{11}[0-9] generation=[0-9]{1,2} sync=[0-2]\\]"
        ) {
            if let Some(identity) = Identity::parse(&text) {
                prop_assert!(text.ends_with(&identity.to_string()));
            }
        }

        #[test]
        fn any_text_is_taken_without_a_panic(text in "\\PC{0,200}") {
            let _ = Identity::parse(&text);
        }

        /// Nothing that could have been lost is ever passed over.
        #[test]
        fn never_the_same_after_a_loss(before in like_one_another(), now in like_one_another()) {
            let verdict = judge(&before, &now, true);
            let may_have_lost = before.boot != now.boot && !before.sync;
            let other = before.export != now.export || before.generation != now.generation;
            prop_assert_eq!(verdict == Verdict::Same, !may_have_lost && !other);
            prop_assert_eq!(judge(&before, &now, false) == Verdict::Same, !other);
        }

        /// Over any row of servers that are followed, what one of them may have lost is noticed.
        #[test]
        fn no_row_of_servers_hides_a_loss(row in prop::collection::vec(like_one_another(), 2..6)) {
            let mut kept = row[0];
            // Whether every write since the first of the row is durable.
            let mut durable = row[0].sync;
            for now in &row[1..] {
                if judge(&kept, now, true) != Verdict::Same {
                    break;
                }
                prop_assert!(durable || kept.boot == now.boot);
                kept = kept.followed_by(now, true);
                durable &= now.sync;
            }
        }
    }
}
