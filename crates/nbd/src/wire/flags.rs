//! The sets of flags that the two ends exchange. Unknown flags are preserved and ignored.

/// Defines a set of flags of one integer type with named members.
macro_rules! flags {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$flag_doc:meta])* $flag:ident = $bit:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$flag_doc])* pub const $flag: $name = $name(1 << $bit);)*

            /// The empty set.
            pub const NONE: $name = $name(0);

            /// Whether all of these are set.
            pub const fn has(self, flags: $name) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// The union of both sets.
            pub const fn with(self, flags: $name) -> $name {
                $name(self.0 | flags.0)
            }
        }
    };
}

flags! {
    /// What a server can do in the handshake.
    HandshakeFlags: u16 {
        /// It answers options and goes on (fixed newstyle).
        FIXED_NEWSTYLE = 0;
        /// It can leave out the 124 zeros after [`super::ExportName`].
        NO_ZEROES = 1;
    }
}

flags! {
    /// What a client accepts of the server's [`HandshakeFlags`].
    ClientFlags: u32 {
        FIXED_NEWSTYLE = 0;
        /// The zeros after [`super::ExportName`] may be omitted.
        NO_ZEROES = 1;
    }
}

flags! {
    /// What can be done with an export.
    TransmissionFlags: u16 {
        /// The flags mean something; always set.
        HAS_FLAGS = 0;
        /// Writing is refused.
        READ_ONLY = 1;
        /// FLUSH is known.
        SEND_FLUSH = 2;
        /// The flag FUA is known.
        SEND_FUA = 3;
        /// A medium that turns.
        ROTATIONAL = 4;
        /// TRIM is known.
        SEND_TRIM = 5;
        /// WRITE_ZEROES is known.
        SEND_WRITE_ZEROES = 6;
        /// The flag DF is known.
        SEND_DF = 7;
        /// A flush on one connection covers what was written on all.
        CAN_MULTI_CONN = 8;
        /// RESIZE is known (an extension without implementations).
        SEND_RESIZE = 9;
        /// CACHE is known.
        SEND_CACHE = 10;
        /// The flag FAST_ZERO is known.
        SEND_FAST_ZERO = 11;
        /// BLOCK_STATUS may name what it wants to know.
        BLOCK_STATUS_PAYLOAD = 12;
    }
}

flags! {
    /// How a request is to be done.
    CommandFlags: u16 {
        /// Durable before it is answered.
        FUA = 0;
        /// Zeros must take space.
        NO_HOLE = 1;
        /// One chunk, not several.
        DF = 2;
        /// One extent is enough.
        REQ_ONE = 3;
        /// Zeros only if that is faster than writing them.
        FAST_ZERO = 4;
        /// The length is that of a payload.
        PAYLOAD_LEN = 5;
    }
}

flags! {
    /// What a chunk of a structured reply is.
    ChunkFlags: u16 {
        /// The last of its reply.
        DONE = 0;
    }
}

flags! {
    /// What the context [`super::BASE_ALLOCATION`] says of an extent.
    AllocationFlags: u64 {
        /// It takes no space.
        HOLE = 0;
        /// It reads as zeros.
        ZERO = 1;
    }
}
