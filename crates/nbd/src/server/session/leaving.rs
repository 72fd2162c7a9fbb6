//! A client that is gone while others use its disk: what it asked for before is done if it disconnected in
//! order, and given up otherwise.

use super::super::transmission::{Parsed, Work};
use super::{Gone, Session};

/// No socket holds more that its client has sent before it went.
const MAX_BYTES: usize = 64 << 20;
const RECEIVED_BYTES: usize = 256 << 10;

impl Session {
    /// Says to those that wait for it whether its client disconnected in order. In the middle of a request that is
    /// not known yet.
    #[cold]
    pub(super) fn say_how_it_ends(&mut self) {
        let is_orderly = match &self.ends {
            Some(Gone::Done) => true,
            Some(_) => false,
            None if self.skip > 0 || self.taking.is_some() => return,
            None => self.disconnects(),
        };
        if !is_orderly && self.ends.is_none() {
            self.ended();
        }
        if let Some(member) = &self.member {
            if is_orderly {
                member.ends_in_order();
            } else {
                member.broke();
            }
        }
    }

    /// Whether the last of what a client that is gone has sent is a disconnect.
    fn disconnects(&mut self) -> bool {
        let header_bytes = self.rules.header_bytes();
        loop {
            let have = self.inbox.bytes().len();
            let need = have + RECEIVED_BYTES;
            match self.inbox.receive(&mut self.line, need, header_bytes, false) {
                Ok(0) => break,
                Ok(_) if have < MAX_BYTES => {}
                // It is not gone, or breaks while it is read.
                Ok(_) | Err(_) => return false,
            }
        }
        let mut rest = self.inbox.bytes();
        loop {
            let used = match self.rules.parse(rest) {
                Parsed::Disconnect => return true,
                Parsed::Need(_) | Parsed::Fatal(_) => return false,
                Parsed::Request { request, header_bytes } => match request.work {
                    Work::Write { length, .. } => header_bytes + length as usize,
                    Work::Read { .. }
                    | Work::Flush
                    | Work::Trim { .. }
                    | Work::Zero { .. }
                    | Work::Prefetch { .. }
                    | Work::Extents { .. }
                    | Work::Nothing => header_bytes,
                },
                Parsed::Refuse { header_bytes, skip_bytes, .. } => {
                    header_bytes + skip_bytes as usize
                }
            };
            match rest.get(used..) {
                Some(after) => rest = after,
                None => return false,
            }
        }
    }
}
