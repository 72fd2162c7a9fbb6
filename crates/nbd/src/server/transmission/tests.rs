//! Requests judged and replies written, tried one by one.

use proptest::prelude::*;

use super::replies::allocation;
use super::*;
use crate::server::disk;
use crate::wire::{
    Chunk, ChunkKind, Extent, MAX_EXTENTS, ReplyHeader, read_error_body, read_status_body,
};

const SIZE: u64 = 1 << 20;

fn writable() -> Abilities {
    Abilities {
        can_trim: true,
        can_zero_fast: true,
        knows_extents: true,
        is_shared: true,
        ..Abilities::default()
    }
}

fn rules(replies: Replies) -> Rules {
    let mut flags = flags_of(writable());
    if replies != Replies::Simple {
        flags = flags.with(TransmissionFlags::SEND_DF);
    }
    if replies == Replies::Extended {
        flags = flags.with(TransmissionFlags::BLOCK_STATUS_PAYLOAD);
    }
    Rules {
        size_bytes: SIZE,
        flags,
        block_sizes: BlockSizes { min_bytes: 1, preferred_bytes: 4096, max_bytes: 1 << 16 },
        replies,
        allocation: (replies != Replies::Simple).then_some(1),
    }
}

fn ask(rules: &Rules, command: Command, flags: CommandFlags, offset: u64, length: u64) -> Parsed {
    let cookie = 0xc00c1e;
    let bytes = match rules.replies {
        Replies::Extended => {
            ExtendedRequest { flags, command, cookie, offset, length }.to_bytes().to_vec()
        }
        _ => CompactRequest { flags, command, cookie, offset, length: length as u32 }
            .to_bytes()
            .to_vec(),
    };
    for end in 0..bytes.len() {
        assert_eq!(rules.parse(&bytes[..end]), Parsed::Need(bytes.len()));
    }
    rules.parse(&bytes)
}

fn refused(parsed: Parsed) -> (ErrorCode, u64) {
    match parsed {
        Parsed::Refuse { refusal, skip_bytes, .. } => (refusal.error, skip_bytes),
        other => panic!("{other:?} is no refusal"),
    }
}

fn work(parsed: Parsed) -> Work {
    match parsed {
        Parsed::Request { request, .. } => request.work,
        other => panic!("{other:?} is no request"),
    }
}

const PLAIN: CommandFlags = CommandFlags::NONE;
const ALL: [Replies; 3] = [Replies::Simple, Replies::Structured, Replies::Extended];

#[test]
fn requests_within_the_rules_are_done() {
    for replies in ALL {
        let rules = rules(replies);
        let last = Work::Read { offset: SIZE - 512, length: 512, whole: false };
        assert_eq!(work(ask(&rules, Command::Read, PLAIN, SIZE - 512, 512)), last);
        let durable = Work::Write { offset: 0, length: 1, durable: true };
        let fua = CommandFlags::FUA;
        assert_eq!(work(ask(&rules, Command::Write, fua, 0, 1)), durable);
        assert_eq!(work(ask(&rules, Command::Flush, PLAIN, 0, 0)), Work::Flush);
        let zero = Work::Zero {
            offset: 0,
            length: SIZE,
            how: Zeroing { may_punch: false, only_if_fast: true },
            durable: false,
        };
        let flags = CommandFlags::NO_HOLE.with(CommandFlags::FAST_ZERO);
        assert_eq!(work(ask(&rules, Command::WriteZeroes, flags, 0, SIZE)), zero);
        assert_eq!(ask(&rules, Command::Disconnect, PLAIN, 0, 0), Parsed::Disconnect);
    }
}

#[test]
fn what_goes_beyond_the_end_has_the_error_of_its_command() {
    let cases = [
        (Command::Read, ErrorCode::INVALID),
        (Command::Trim, ErrorCode::INVALID),
        (Command::Cache, ErrorCode::INVALID),
        (Command::Write, ErrorCode::NO_SPACE),
        (Command::WriteZeroes, ErrorCode::NO_SPACE),
    ];
    for replies in ALL {
        let rules = rules(replies);
        for (command, error) in cases {
            for (offset, length) in [
                (SIZE, 1),
                (SIZE - 1, 2),
                (1, SIZE),
                (u64::MAX, 1),
                (u64::MAX - 511, 512),
                (1 << 63, 1 << 16),
            ] {
                let (found, skip) = refused(ask(&rules, command, PLAIN, offset, length));
                assert_eq!(found, error, "{command:?} {offset} {length}");
                let payload = if command == Command::Write { length } else { 0 };
                assert_eq!(skip, payload);
            }
        }
    }
}

#[test]
fn lengths_that_overflow_are_refused_or_end_the_connection() {
    for replies in ALL {
        let rules = rules(replies);
        for length in [0, 0xffff_u64 + 2, 1 << 31, u64::from(u32::MAX)] {
            for command in [Command::Read, Command::Trim, Command::Cache, Command::WriteZeroes] {
                if command != Command::Read && length == 0xffff + 2 {
                    continue;
                }
                let (_, skip) = refused(ask(&rules, command, PLAIN, 512, length));
                assert_eq!(skip, 0);
            }
        }
        // The server does not read four gigabytes just to refuse them.
        let endless = ask(&rules, Command::Write, PLAIN, 0, u64::from(u32::MAX));
        assert!(matches!(endless, Parsed::Fatal(Malformed::TooLong { .. })));
    }
    let rules = rules(Replies::Extended);
    for length in [1 << 32, (1 << 32) + 512, 1 << 63, u64::MAX] {
        refused(ask(&rules, Command::Read, PLAIN, 0, length));
        refused(ask(&rules, Command::Trim, PLAIN, 512, length));
    }
}

#[test]
fn an_oversized_write_keeps_both_in_step() {
    for replies in ALL {
        let rules = rules(replies);
        let most = u64::from(rules.block_sizes.max_bytes);
        work(ask(&rules, Command::Write, PLAIN, 0, most));
        assert_eq!(
            refused(ask(&rules, Command::Write, PLAIN, 0, most + 1)),
            (ErrorCode::INVALID, most + 1)
        );
    }
}

#[test]
fn unknown_flags_and_commands_are_invalid() {
    for replies in ALL {
        let rules = rules(replies);
        for bit in 6..16 {
            for number in 0..9 {
                let command = Command::of(number);
                if command != Command::Disconnect {
                    let (error, _) = refused(ask(&rules, command, CommandFlags(1 << bit), 0, 512));
                    assert_eq!(error, ErrorCode::INVALID);
                }
            }
        }
        for number in [8, 9, 0x7fff, 0xffff] {
            let (error, _) = refused(ask(&rules, Command::Other(number), PLAIN, 0, 512));
            assert_eq!(error, ErrorCode::INVALID);
        }
        // Known flags of other commands.
        for (command, flag) in [
            (Command::Read, CommandFlags::NO_HOLE),
            (Command::Write, CommandFlags::DF),
            (Command::Write, CommandFlags::FAST_ZERO),
            (Command::Trim, CommandFlags::REQ_ONE),
        ] {
            assert_eq!(refused(ask(&rules, command, flag, 0, 512)).0, ErrorCode::INVALID);
        }
    }
    let simple = rules(Replies::Simple);
    refused(ask(&simple, Command::Read, CommandFlags::DF, 0, 512));
    refused(ask(&simple, Command::BlockStatus, PLAIN, 0, 512));
}

#[test]
fn an_export_that_is_only_read_is_not_changed() {
    for replies in ALL {
        let abilities = Abilities { is_read_only: true, ..writable() };
        let rules = Rules { flags: flags_of(abilities), ..rules(replies) };
        for (command, skip) in
            [(Command::Write, 512), (Command::Trim, 0), (Command::WriteZeroes, 0)]
        {
            assert_eq!(refused(ask(&rules, command, PLAIN, 0, 512)), (ErrorCode::PERMISSION, skip));
        }
        work(ask(&rules, Command::Read, PLAIN, 0, 512));
    }
}

#[test]
fn requests_are_multiples_of_the_block_size() {
    let mut rules = rules(Replies::Simple);
    rules.block_sizes.min_bytes = 512;
    work(ask(&rules, Command::Read, PLAIN, 512, 1024));
    for (offset, length) in [(1, 512), (0, 511), (0, 513)] {
        assert_eq!(
            refused(ask(&rules, Command::Read, PLAIN, offset, length)).0,
            ErrorCode::INVALID
        );
    }
}

#[test]
fn a_payload_where_none_belongs_is_thrown_away() {
    let rules = rules(Replies::Extended);
    for command in [Command::Read, Command::Flush, Command::Other(99)] {
        let flags = CommandFlags::PAYLOAD_LEN;
        assert_eq!(refused(ask(&rules, command, flags, 0, 4096)), (ErrorCode::INVALID, 4096));
    }
    // Compact headers do not have the flag, so nothing follows.
    let rules = Rules { replies: Replies::Structured, ..rules };
    let flags = CommandFlags::PAYLOAD_LEN;
    assert_eq!(refused(ask(&rules, Command::Read, flags, 0, 4096)), (ErrorCode::INVALID, 0));
}

fn filtered(rules: &Rules, contexts: &[u32]) -> (Parsed, usize) {
    let mut payload = Vec::new();
    StatusFilter { length: SIZE, contexts: contexts.to_vec() }.encode(&mut payload);
    let mut bytes = Vec::new();
    ExtendedRequest {
        flags: CommandFlags::PAYLOAD_LEN,
        command: Command::BlockStatus,
        cookie: 1,
        offset: 0,
        length: payload.len() as u64,
    }
    .encode(&mut bytes);
    bytes.extend_from_slice(&payload);
    (rules.parse(&bytes), bytes.len())
}

#[test]
fn a_block_status_may_name_its_contexts() {
    let rules = rules(Replies::Extended);
    let (parsed, length) = filtered(&rules, &[1]);
    let whole = Work::Extents { offset: 0, length: SIZE, only_one: false, context: 1 };
    assert!(
        matches!(parsed, Parsed::Request { request, header_bytes }
            if request.work == whole && header_bytes == length),
        "{parsed:?}"
    );
    assert_eq!(work(filtered(&rules, &[]).0), Work::Nothing);
    for wrong in [&[0][..], &[2], &[1, 1], &[1, 2, 3]] {
        let (error, skip) = refused(filtered(&rules, wrong).0);
        assert_eq!(error, ErrorCode::INVALID);
        assert_eq!(skip, 8 + 4 * wrong.len() as u64);
    }
}

#[test]
fn the_longest_list_of_extents_is_whole() {
    let kinds = [disk::Extent::data(4096), disk::Extent::hole(4096)];
    let extents: Vec<_> = (0..MAX_EXTENTS + 7).map(|at| kinds[at % 2]).collect();
    let ticket = Ticket { cookie: 1, offset: 0 };
    for (replies, head) in [(Replies::Structured, 20), (Replies::Extended, 32)] {
        for length in [4096 * MAX_EXTENTS as u64, u64::MAX] {
            let mut out = Vec::new();
            replies.extents(ticket, 1, (length, false), &extents, &mut out);
            let (header, _) = ReplyHeader::decode(&out).unwrap().unwrap();
            let (kind, body) = match header {
                ReplyHeader::Chunk(chunk) => (chunk.kind, u64::from(chunk.length)),
                ReplyHeader::Extended(chunk) => (chunk.kind, chunk.length),
                ReplyHeader::Simple(_) => panic!("simple"),
            };
            assert_eq!(body as usize, out.len() - head);
            let (_, told) = read_status_body(kind, &out[head..]).unwrap();
            assert_eq!(told.len(), MAX_EXTENTS);
        }
    }
}

#[test]
fn extents_never_go_beyond_the_question() {
    let hole = disk::Extent::hole;
    let told = allocation(&[hole(1 << 40), hole(1 << 40)], u64::from(u32::MAX), 1);
    assert_eq!(told, [Extent { length: u64::from(u32::MAX), flags: 3 }]);
    // One extent of almost 4 GiB is one extent in 32 bits, too.
    let mut out = Vec::new();
    let ticket = Ticket { cookie: 1, offset: 0 };
    let question = (u64::from(u32::MAX), true);
    Replies::Structured.extents(ticket, 1, question, &[hole(1 << 40)], &mut out);
    assert_eq!(out.len(), Chunk::BYTES + 4 + 8);
    let data = disk::Extent::data;
    let merged = allocation(&[data(1), data(2), hole(0), data(3), hole(9)], 10, 99);
    assert_eq!(merged.len(), 2);
    assert_eq!((merged[0].length, merged[1].length), (6, 4));
    assert_eq!(allocation(&[], 77, 1)[0].length, 77);
}

#[test]
fn an_error_of_the_longest_text_is_whole() {
    let ticket = Ticket { cookie: 1, offset: 7 };
    for words in ["", &"ä".repeat(3000)] {
        for (replies, head) in [(Replies::Structured, 20), (Replies::Extended, 32)] {
            let mut out = Vec::new();
            replies.failed_at(ticket, ErrorCode::IO, words, 512, &mut out);
            let (header, length) = ReplyHeader::decode(&out).unwrap().unwrap();
            assert_eq!(length, head);
            let body = &out[head..];
            let announced = match header {
                ReplyHeader::Chunk(chunk) => u64::from(chunk.length),
                ReplyHeader::Extended(chunk) => chunk.length,
                ReplyHeader::Simple(_) => panic!("simple"),
            };
            assert_eq!(announced as usize, body.len());
            let (error, text) = read_error_body(ChunkKind::ErrorAt, body).unwrap();
            assert_eq!(error, ErrorCode::IO);
            assert!(text.len() <= 4096 && words.starts_with(&text));
        }
    }
}

#[test]
fn heads_of_data_are_as_long_as_they_say() {
    let ticket = Ticket { cookie: 5, offset: 4096 };
    for replies in ALL {
        let mut head = [0; Replies::MAX_DATA_HEAD_BYTES];
        let length = replies.data_head(ticket, 4096, 512, true, &mut head);
        assert_eq!(length, replies.data_head_bytes());
        let (header, _) = ReplyHeader::decode(&head).unwrap().unwrap();
        match header {
            ReplyHeader::Simple(reply) => assert_eq!(reply.cookie, 5),
            ReplyHeader::Chunk(chunk) => assert_eq!((chunk.cookie, chunk.length), (5, 520)),
            ReplyHeader::Extended(chunk) => {
                assert_eq!((chunk.cookie, chunk.offset, chunk.length), (5, 4096, 520));
            }
        }
    }
}

proptest! {
    /// Whatever is asked, what is done lies within the export and the limits, and what is not
    /// done is answered to its cookie.
    #[test]
    fn no_request_escapes_the_rules(
        kind in 0_usize..3,
        read_only: bool,
        flags in prop_oneof![any::<u16>(), 0_u16..64, Just(0)],
        number in prop_oneof![any::<u16>(), 0_u16..9],
        cookie: u64,
        offset in prop_oneof![any::<u64>(), 0..SIZE + 2, Just(u64::MAX)],
        length in prop_oneof![any::<u64>(), 0..SIZE + 2, Just(1 << 31), Just(u64::from(u32::MAX))],
        tail in proptest::collection::vec(any::<u8>(), 0..24),
    ) {
        let replies = ALL[kind];
        let mut rules = rules(replies);
        if read_only {
            rules.flags = rules.flags.with(TransmissionFlags::READ_ONLY);
        }
        let (flags, command) = (CommandFlags(flags), Command::of(number));
        let mut bytes = match replies {
            Replies::Extended => ExtendedRequest { flags, command, cookie, offset, length }
                .to_bytes()
                .to_vec(),
            _ => CompactRequest { flags, command, cookie, offset, length: length as u32 }
                .to_bytes()
                .to_vec(),
        };
        bytes.extend_from_slice(&tail);
        match rules.parse(&bytes) {
            Parsed::Need(more) => prop_assert!(more > bytes.len() && more <= 32 + 12),
            Parsed::Disconnect => prop_assert_eq!(command, Command::Disconnect),
            Parsed::Fatal(_) => prop_assert!(length > MAX_SKIPPED_BYTES),
            Parsed::Refuse { refusal, skip_bytes, .. } => {
                prop_assert_eq!(refusal.ticket.cookie, cookie);
                prop_assert!(refusal.error != ErrorCode::NONE && !refusal.words.is_empty());
                prop_assert!(skip_bytes <= MAX_SKIPPED_BYTES);
            }
            Parsed::Request { request, header_bytes } => {
                prop_assert_eq!(request.ticket.cookie, cookie);
                prop_assert!(header_bytes <= bytes.len());
                let (offset, length) = match request.work {
                    Work::Read { offset, length, .. } | Work::Write { offset, length, .. } => {
                        prop_assert!(length <= rules.block_sizes.max_bytes);
                        (offset, u64::from(length))
                    }
                    Work::Trim { offset, length, .. }
                    | Work::Zero { offset, length, .. }
                    | Work::Prefetch { offset, length }
                    | Work::Extents { offset, length, .. } => (offset, length),
                    Work::Flush | Work::Nothing => (0, 1),
                };
                prop_assert!(length > 0 && offset <= SIZE && length <= SIZE - offset);
                if read_only {
                    let changes = matches!(
                        request.work,
                        Work::Write { .. } | Work::Trim { .. } | Work::Zero { .. }
                    );
                    prop_assert!(!changes);
                }
            }
        }
    }
}
