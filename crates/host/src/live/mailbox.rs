//! The property mailbox of the Raspberry Pi firmware, through `/dev/vcio`.
//!
//! Format: "Mailbox property interface", raspberrypi/firmware wiki. A message is a buffer of
//! 32-bit words: its size in bytes, a code (0 asks, 0x80000000 answers), then tags of
//! (tag, size of its value, code, value), then an end mark of 0.

use std::ffi::c_char;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Updater, ioctl, opcode};

use crate::files::ReadError;

const DEVICE: &str = "/dev/vcio";
/// Set by the firmware in the code of a message, and in that of a tag, that it answered.
const ANSWERED: u32 = 0x8000_0000;

/// A message with one tag that has one word as its value.
type Message = [u32; 7];

/// Asks for the one-word value of `tag`. The word that is sent along is 0: for the throttling
/// word a mask of sticky bits to clear would stand there.
pub(crate) fn word(tag: u32) -> Result<u32, ReadError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let device = rustix::fs::open(DEVICE, flags, Mode::empty())?;
    let mut message = question(tag);
    send(device.as_fd(), &mut message)?;
    answer(tag, &message)
}

fn question(tag: u32) -> Message {
    let size_bytes = size_of::<Message>() as u32;
    [size_bytes, 0, tag, 4, 0, 0, 0]
}

/// The kernel declares the call for a `char *`, so its number has the size of a pointer in it.
const PROPERTY_CALL: rustix::ioctl::Opcode = opcode::read_write::<*mut c_char>(100, 0);

fn send(device: rustix::fd::BorrowedFd<'_>, message: &mut Message) -> Result<(), ReadError> {
    // SAFETY: the driver reads the size in the first word, copies that many bytes in and out
    // again, and keeps no reference; `message` is that long and outlives the call.
    unsafe {
        let call = Updater::<PROPERTY_CALL, Message>::new(message);
        ioctl(device, call)?;
    }
    Ok(())
}

fn answer(tag: u32, message: &Message) -> Result<u32, ReadError> {
    if message[1] != ANSWERED {
        return Err(ReadError::Other(format!(
            "the firmware refused the question (code {:#010x})",
            message[1]
        )));
    }
    if message[4] & ANSWERED == 0 {
        return Err(ReadError::Other(format!(
            "the firmware does not know the property {tag:#010x}"
        )));
    }
    Ok(message[5])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_changes_nothing_and_is_well_formed() {
        assert_eq!(question(0x30046), [28, 0, 0x30046, 4, 0, 0, 0]);
        #[cfg(target_pointer_width = "64")]
        assert_eq!(PROPERTY_CALL as u64, 0xc008_6400);
        #[cfg(target_pointer_width = "32")]
        assert_eq!(PROPERTY_CALL as u64, 0xc004_6400);
    }

    #[test]
    fn an_answer_is_believed_only_when_it_is_marked_as_one() {
        let good = [28, ANSWERED, 0x30046, 4, ANSWERED | 4, 0x50005, 0];
        assert_eq!(answer(0x30046, &good), Ok(0x50005));
        let mut refused = good;
        refused[1] = 0x8000_0001;
        assert!(answer(0x30046, &refused).is_err());
        let mut unknown_tag = good;
        unknown_tag[4] = 0;
        assert!(answer(0x30046, &unknown_tag).is_err());
    }
}
